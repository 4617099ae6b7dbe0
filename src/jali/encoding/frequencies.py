"""Frequencies: the distinct combinations of a table and their counts. No search touches the rows again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from jali.core.arrays import Floats, Ints, added, combine, counted
from jali.principles.counts import Counts, Sensitive


@dataclass(frozen=True, eq=False)
class Frequencies:
    """Distinct quasi-identifier combinations, and what stands under each: entries of sensitive values.

    Entries are sorted by combination, then joint value (then person). Privacy counts `people`; measures count `weight`.
    """

    codes: NDArray[np.int32]  # (combinations, quasi columns)
    combination: Ints  # (entries,)
    value: Ints  # (entries,) joint value of the sensitive columns as published
    people: Ints  # (entries,) people; 1 where persons are named
    rows: Ints  # (entries,)
    weight: Floats  # (entries,) the rows' weights; their number where there are none
    person: Ints | None  # (entries,)
    joint: Ints  # (joint values, sensitive columns) codes
    sensitive: tuple[Sensitive, ...]  # as judged
    judged: tuple[Ints, ...]  # judged[column][code] → value as judged
    row_combination: NDArray[np.int32]  # (rows,) the combination of each record of the table

    @property
    def combinations(self) -> int:
        """How many distinct combinations there are."""
        return len(self.codes)

    @property
    def spread_people(self) -> bool:
        """Whether somebody's rows differ in the quasi-identifiers, so that counts of people do not add up."""
        if self.person is None:
            return False
        pairs = _pairs(self.person, self.combination)
        return len(pairs) > len(np.unique(self.person))

    @property
    def several_values(self) -> bool:
        """Whether somebody has several sensitive values, so that people of different values do not add up."""
        return self.person is not None and len(_pairs(self.person, self.value)) > len(np.unique(self.person))

    def counts(self, group: Ints, groups: int | None = None) -> Counts:
        """People by group and sensitive value, when combination c belongs to group `group[c]`."""
        groups = int(group.max(initial=-1)) + 1 if groups is None else groups
        judged = np.empty_like(self.joint)
        for index, mapping in enumerate(self.judged):
            judged[:, index] = mapping[self.joint[:, index]]
        return Counts(groups, group[self.combination], self.value, self.people, self.sensitive, judged, self.person)

    def projected(self, columns: Sequence[int]) -> Frequencies:
        """The frequencies of the same records with some of the quasi columns, from the combinations alone."""
        codes = self.codes[:, list(columns)]
        widths = (codes.max(axis=0, initial=0) + 1).tolist()
        number, first = combine([(codes[:, i], width) for i, width in enumerate(widths)], len(codes))
        keys: list[tuple[NDArray[np.integer], int]] = [
            (number[self.combination], len(first)),
            (self.value, len(self.joint)),
        ]
        if self.person is not None:
            keys.append((self.person, int(self.person.max(initial=0)) + 1))
        entry, entry_first = combine(keys, len(self.value))
        rows = counted(entry, self.rows)
        return replace(
            self,
            codes=codes[first],
            combination=number[self.combination[entry_first]].astype(np.int64),
            value=self.value[entry_first],
            people=rows if self.person is None else np.ones(len(rows), dtype=np.int64),
            rows=rows,
            weight=added(entry, self.weight),
            person=None if self.person is None else self.person[entry_first],
            row_combination=number[self.row_combination],
        )


def _pairs(first: Ints, second: Ints) -> Ints:
    return np.unique(first * (int(second.max(initial=0)) + 1) + second)
