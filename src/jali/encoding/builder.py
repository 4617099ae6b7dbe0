"""Builder: a hierarchy that waits for its column."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from jali.encoding import values as v
from jali.encoding.hierarchy import Hierarchy


@dataclass(frozen=True)
class Builder(ABC):
    """A hierarchy that waits for its column: says what its values are, which there are, then what they become."""

    reads_text: ClassVar[bool] = False  # whether a file's column is read as text, so that 01234 keeps its zero
    judges_groups: ClassVar[bool] = False  # whether a sensitive column is judged by the first level's groups

    def typed(self, column: str, present: pa.Array) -> pa.Array:
        """The values that occur, each in its place, as the kind that this hierarchy works on."""
        return present

    def domain(self, column: str, present: pa.Array) -> tuple[pa.Array, bool]:
        """The distinct values of the column in order (the missing one last), and whether they were declared."""
        return v.ordered(present), False

    @abstractmethod
    def build(self, column: str, values: pa.Array, *, declared: bool = False) -> Hierarchy:
        """The hierarchy over these values."""
