"""Partition: which group each distinct combination belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from jali.encoding.table import Table
from jali.principles.counts import Counts, Ints


@dataclass(frozen=True, eq=False)
class Partition:
    """Groups of a table's combinations; suppressed combinations are one more group, the last."""

    group: Ints  # (combinations,)
    groups: int
    levels: Mapping[str, int]  # the level of each quasi-identifier
    suppressed: bool = False  # whether the last group holds suppressed combinations
    checked: int = 0  # how many nodes the search judged

    def counts(self, table: Table) -> Counts:
        """People by group and sensitive value."""
        return table.frequencies.counts(self.group, self.groups)

    @property
    def hidden(self) -> NDArray[np.bool_]:
        """Which combinations are suppressed: (combinations,)."""
        last = self.group == self.groups - 1
        return last if self.suppressed else np.zeros_like(last)


def levels_of(table: Table, levels: tuple[int, ...]) -> Mapping[str, int]:
    """Levels by column name."""
    return MappingProxyType({c.name: level for c, level in zip(table.quasi, levels, strict=True)})
