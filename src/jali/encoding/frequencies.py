"""Frequencies: the distinct combinations of a table with their counts, which is all that a search reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jali.core.arrays import Floats, Ints, added, combine, counted
from jali.principles.counts import Counts, Sensitive


class Under(NamedTuple):
    """How many values of the domain each node covers, level by level."""

    sizes: list[Floats]  # (levels)(nodes,)
    logs: list[Floats]  # their logarithms; 0 for a node that covers none


class Nodes(NamedTuple):
    """The nodes of all levels of a hierarchy, one level after the other."""

    widths: tuple[int, ...]  # (levels,) how many nodes each level has
    maps: NDArray[np.int32]  # (levels · values,) the node of each value
    examples: NDArray[np.int32]  # (nodes of all levels,) a value of each node
    under: dict[str, Under]  # by domain, what `Column.under` found


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
    finest: float | None = None  # the entropy term of the table's own cells, where these are coarser

    @property
    def combinations(self) -> int:
        """How many distinct combinations there are."""
        return len(self.codes)

    @cached_property
    def whole(self) -> Counts:
        """The counts of everybody as one group."""
        return self.counts(np.zeros(self.combinations, dtype=np.int64), 1)

    @cached_property
    def sizes(self) -> Ints:
        """The rows of each combination: (combinations,)."""
        return counted(self.combination, self.rows, self.combinations)

    @cached_property
    def columns(self) -> tuple[NDArray[np.int32], ...]:
        """The codes of each quasi column, one after the other: (columns)(combinations,)."""
        return tuple(np.ascontiguousarray(self.codes[:, at]) for at in range(self.codes.shape[1]))

    @cached_property
    def rows_by_code(self) -> list[Ints]:
        """The rows of each value of each quasi column, up to the last value that occurs: (columns)(values,)."""
        return [counted(self.codes[:, at], self.sizes) for at in range(self.codes.shape[1])]

    @cached_property
    def entropy_term(self) -> float:
        """Σ F log F over the table's own cells of combination and value, by weight (persons merged)."""
        if self.finest is not None:
            return self.finest
        weight = self.weight
        if self.person is not None:
            _, index = np.unique(self.combination * len(self.joint) + self.value, return_inverse=True)
            weight = added(index, weight)
        share = weight[weight > 0] / float(self.weight.sum())
        return float(np.sum(share * np.log(share)))

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
        own = (
            group[self.combination] if groups > 1 else np.zeros(len(self.combination), dtype=np.int64)
        )  # takes nothing
        return Counts(groups, own, self.value, self.people, self.sensitive, judged, self.person)

    def projected(self, columns: Sequence[int]) -> Frequencies:
        """The frequencies of the same records with some of the quasi columns, from the combinations alone."""
        codes = self.codes[:, list(columns)]
        widths = (codes.max(axis=0, initial=0) + 1).tolist()
        number, first = combine([(codes[:, i], width) for i, width in enumerate(widths)], len(codes))
        kept = entries(
            (number[self.combination], len(first)), (self.value, len(self.joint)), self.person, self.rows, self.weight
        )
        return replace(self, codes=codes[first], row_combination=number[self.row_combination], **kept)

    def without_values(self) -> Frequencies:
        """The frequencies of the same records where nobody's sensitive value is known; for one row a person."""
        people = counted(self.combination, self.people, self.combinations)
        return replace(
            self,
            combination=np.arange(self.combinations),
            value=np.zeros(self.combinations, dtype=np.int64),
            people=people,
            rows=people,
            weight=added(self.combination, self.weight, self.combinations),
            joint=np.zeros((1, 0), dtype=np.int64),
            sensitive=(),
            judged=(),
        )


def entries(
    combination: tuple[NDArray[np.integer], int],
    value: tuple[NDArray[np.integer], int],
    person: Ints | None,
    rows: Ints | None,
    weight: Floats | None,
) -> dict[str, Any]:
    """The entries of records, or of finer entries, as fields of Frequencies: what differs in nothing is one."""
    keys = [combination, value]
    if person is not None:
        keys.append((person, int(person.max(initial=0)) + 1))
    entry, first = combine(keys, len(value[0]))
    every = counted(entry, rows)
    return {
        "combination": combination[0][first].astype(np.int64),
        "value": value[0][first].astype(np.int64),
        "people": every if person is None else np.ones(len(every), dtype=np.int64),
        "rows": every,
        "weight": every.astype(np.float64) if weight is None else added(entry, weight),
        "person": None if person is None else person[first],
    }


def _pairs(first: Ints, second: Ints) -> Ints:
    return np.unique(first * (int(second.max(initial=0)) + 1) + second)
