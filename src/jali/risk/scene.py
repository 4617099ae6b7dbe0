"""The scene of an attack: a release, its original, and what counts as exposed."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from jali.encoding.table import Table
from jali.errors import InputError
from jali.principles.base import at_most
from jali.principles.counts import Bools, Cells, Ints
from jali.releases.base import Release
from jali.risk.gallery import Names, value_name
from jali.risk.links import Links, links


@dataclass(frozen=True, eq=False)
class Scene:
    """A release, its original, and what counts as exposed."""

    release: Release
    original: Table
    sensitive: str | None
    threshold: Fraction
    cases: int

    @cached_property
    def cells(self) -> Cells:
        """People by published group and value."""
        cells = self.release.counts().cells(self.sensitive, asked_by="attacks")
        if not bool((cells.total == cells.size).all()):
            raise InputError(
                "attacks are not defined where a person can have several rows", do="publish one row per person"
            )
        return cells

    @cached_property
    def names(self) -> Names:
        """What groups are called."""
        return Names(self.release)

    def label(self, value: int) -> str:
        """What a value is called."""
        return value_name(self.cells.column.labels[value])

    @cached_property
    def links(self) -> Links:
        """The groups that each combination of the original can be in."""
        found = links(self.release, self.original)
        if not bool((found.groups > 0).all()):
            do = "use the table that it was made from, with the same hierarchies"
            raise InputError("the release does not cover every row of this table", do=do)
        return found

    @cached_property
    def truth(self) -> Cells:
        """People of the original by combination and value, the values numbered as in the release."""
        frequencies = self.original.frequencies
        counts = frequencies.counts(np.arange(frequencies.combinations, dtype=np.int64), frequencies.combinations)
        own = counts.cells(self.cells.column.name, asked_by="attacks")
        place = {label: number for number, label in enumerate(self.cells.column.labels)}
        if any(own.column.labels[value] not in place for value in np.unique(own.value)):
            do = "use the table that it was made from"
            raise InputError(f'values of "{own.column.name}" in this table are not in the release', do=do)
        number = np.array([place.get(label, -1) for label in own.column.labels], dtype=np.int64)[own.value]
        order = np.lexsort((number, own.group))
        column = self.cells.column
        return Cells(own.groups, own.group[order], number[order], own.n[order], own.size, column, self.cells.reference)

    def believed(self, cells: Cells) -> tuple[Ints, Ints, Bools]:
        """The most frequent value of each group, how many have it, and whether that is enough to be exposed."""
        order = np.lexsort((cells.value, -cells.n, cells.group))
        first = order[np.searchsorted(cells.group, np.arange(cells.groups)).clip(max=max(len(order) - 1, 0))]
        filled = cells.size > 0
        value = np.where(filled, cells.value[first], -1)
        n = np.where(filled, cells.n[first], 0)
        return value, n, filled & self.enough(n, cells.size)

    def enough(self, n: Ints, size: Ints) -> Bools:
        """Whether n of size reach the threshold, exactly."""
        return at_most(size, 1 / self.threshold, n)
