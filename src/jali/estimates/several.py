"""SeveralEstimate: several tables about the same people; each question goes to the one that fits it best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from jali.errors import InputError, nearest
from jali.estimates.base import Count, condition_of, names_of, table_of
from jali.estimates.boxes import BoxEstimate
from jali.estimates.condition import Condition, columns
from jali.estimates.linked import LinkedEstimate
from jali.estimates.patterns import Floats


@dataclass(frozen=True, eq=False)
class SeveralEstimate:
    """Estimates of tables about the same people, of which the first has every column.

    A question is asked of the table that has all of its columns and the fewest others (ANGEL paper, end of Section 5):
    with fewer columns, cells can be smaller. Of equal ones the first is asked.
    """

    parts: tuple[LinkedEstimate | BoxEstimate, ...]

    def __post_init__(self) -> None:
        every = {column.name for part in self.parts for column in part.columns}
        if not self.parts or {column.name for column in self.parts[0].columns} != every:
            raise InputError("several tables: the first must have every column")

    @property
    def total(self) -> float:
        """The mass of all people."""
        return self.parts[0].total

    def part(self, names: Sequence[str]) -> LinkedEstimate | BoxEstimate:
        """The table that a question about these columns is asked of."""
        known = [column.name for column in self.parts[0].columns]
        for name in names:
            if name not in known:
                raise InputError(f'no column "{name}" was published', do=nearest(str(name), known))
        asked = {*names}
        fitting = [part for part, own in zip(self.parts, self._names, strict=True) if asked <= own]
        return min(fitting, key=_quasi)

    @cached_property
    def _names(self) -> tuple[frozenset[str], ...]:
        """The columns of each table."""
        return tuple(frozenset(column.name for column in part.columns) for part in self.parts)

    def count(self, condition: str | Condition | None = None, *, where: Mapping[str, object] | None = None) -> Count:
        """How many people satisfy the condition, with what is certain and possible of it."""
        asked = condition_of(condition, where)
        return self.part(sorted(columns(asked))).count(asked)

    def probability(self, cells: Any) -> Floats:
        """The probability of each cell, given by exact values of some columns (None is the missing value): (cells,)."""
        table = table_of(cells)
        return self.part(table.column_names).probability(table)

    def frame(self, columns: Sequence[str], kind: str | None = None) -> Any:
        """The joint table of some columns at exact values, with a `count`; sums to the total."""
        names = names_of(columns)
        return self.part(names).frame(names, kind)

    def sample(self, n: int | None = None, *, seed: int | np.random.Generator) -> pa.Table:
        """People drawn from the table that has every column."""
        return self.parts[0].sample(n, seed=seed)

    def __repr__(self) -> str:
        return "\n".join([f"SeveralEstimate({len(self.parts)} tables)", *(f"  {part!r}" for part in self.parts)])


def _quasi(part: LinkedEstimate | BoxEstimate) -> int:
    """How many columns the boxes of a table have."""
    return len(part.shown if isinstance(part, LinkedEstimate) else part.columns)
