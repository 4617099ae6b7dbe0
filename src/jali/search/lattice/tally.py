"""Tally: the counts of one lattice node, rolled up from a finer one."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jali.core.arrays import Floats, Ints, added
from jali.encoding.table import Table
from jali.principles.counts import Counts

Levels = tuple[int, ...]
"""A node of the lattice: the level of each quasi-identifier."""

_DENSE = 1 << 22  # largest key space counted in a plain array; beyond it keys are sorted


@dataclass(frozen=True, eq=False)
class Tally:
    """A node's groups: their codes, how many rows they have, and their entries of sensitive values."""

    levels: Levels
    codes: tuple[NDArray[np.int32], ...]  # a (groups,) array per quasi-identifier: nodes at the levels
    rows: Ints  # (groups,)
    group: Ints  # (entries,)
    value: Ints  # (entries,) joint sensitive value
    people: Ints  # (entries,)
    entry_rows: Ints  # (entries,)
    weight: Floats  # (entries,)
    person: Ints | None = None  # (entries,)

    lifted: dict[tuple[int, int], NDArray[np.int32]] = field(default_factory=dict)  # codes at coarser levels

    @property
    def groups(self) -> int:
        """How many groups the node has."""
        return len(self.rows)

    @property
    def nbytes(self) -> int:
        """What the tally holds in memory, roughly."""
        return self.group.nbytes * 5 + self.rows.nbytes * (2 + len(self.levels))

    @cached_property
    def row_weights(self) -> Floats:
        """The rows as floats, which is how they are added up."""
        return self.rows.astype(np.float64)


class Roller:
    """Rolls tallies of a table up: a coarser node's counts come from a finer node's, never from the rows."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.hierarchies = [table.hierarchy(column.name) for column in table.quasi]
        self.frequencies = table.frequencies
        self.top: Levels = tuple(h.height for h in self.hierarchies)
        self._whole = self.frequencies.whole
        self._steps: dict[tuple[int, int, int], NDArray[np.int32]] = {}
        self.nodes = [column.nodes for column in table.quasi]
        self._widths = [own.widths for own in self.nodes]

    @cached_property
    def bottom(self) -> Tally:
        """The finest node: the table's own combinations."""
        f = self.frequencies
        zero = tuple(0 for _ in self.hierarchies)
        return Tally(zero, f.columns, f.sizes, f.combination, f.value, f.people, f.rows, f.weight, f.person)

    @property
    def whole(self) -> Counts:
        """Everybody in one group."""
        return self._whole

    def _step(self, column: int, low: int, high: int) -> NDArray[np.int32]:
        """The node at level `high` of each node at level `low`."""
        if (column, low, high) not in self._steps:
            parents = self.hierarchies[column].parents
            nodes = np.arange(len(self.hierarchies[column].levels[low]), dtype=np.int32)
            for level in range(low, high):
                nodes = parents[level][nodes]
            self._steps[column, low, high] = nodes
        return self._steps[column, low, high]

    def lifted(self, finer: Tally, column: int, level: int) -> NDArray[np.int32]:
        """The nodes of a tally's groups in one column at a coarser level, kept for the next node that needs them."""
        low = finer.levels[column]
        if low == level:
            return finer.codes[column]
        found = finer.lifted.get((column, level))
        if found is None:
            found = finer.lifted[column, level] = self._step(column, low, level)[finer.codes[column]]
        return found

    def keys(self, finer: Tally, levels: Levels) -> tuple[NDArray[np.integer], int]:
        """A number for each group of a finer tally, the same for groups that meet at the levels; and their range."""
        widths = [self._widths[column][level] for column, level in enumerate(levels)]
        space = math.prod(widths)
        key: NDArray[Any] = np.zeros(finer.groups, dtype=np.int32 if space < 2**31 else np.int64)
        reached = 1
        for column, width in enumerate(widths):
            if width == 1:
                continue
            if reached * width >= 2**62:
                _, key = np.unique(key, return_inverse=True)
                reached = int(key.max(initial=0)) + 1
            key *= width
            key += self.lifted(finer, column, levels[column])
            reached *= width
        return key, reached

    def sizes(self, finer: Tally, levels: Levels) -> NDArray[np.float64]:
        """Rows of each group at the levels, zeros among them, in no particular order; cheaper than a whole tally."""
        key, space = self.keys(finer, levels)
        if space > _DENSE:
            _, key = np.unique(key, return_inverse=True)
        return added(key, finer.row_weights)

    def numbers(self, finer: Tally, levels: Levels) -> tuple[Ints, int]:
        """The group of each of the finer tally's groups at the levels, in the order of their codes; and how many."""
        key, space = self.keys(finer, levels)
        if space > _DENSE:
            distinct, number = np.unique(key, return_inverse=True)
            return number.astype(np.int64), len(distinct)
        present = np.zeros(space, dtype=bool)
        present[key] = True
        rank = np.cumsum(present)
        return rank[key] - 1, int(rank[-1])

    def cell_weights(self, finer: Tally, levels: Levels) -> Floats:
        """The weight of each group and sensitive value at the levels, in no particular order; cheaper than a tally."""
        key, space = self.keys(finer, levels)
        values = len(self.frequencies.joint)
        cell = key.astype(np.int64)[finer.group] * values + finer.value if space * values < 2**62 else None
        if cell is None or space * values > max(_DENSE, 4 * len(cell)):
            number, _ = self.numbers(finer, levels)
            _, cell = np.unique(number[finer.group] * values + finer.value, return_inverse=True)
        weight = added(cell, finer.weight)
        return weight[weight > 0]

    def roll(self, finer: Tally, levels: Levels) -> Tally:
        """The tally at coarser levels."""
        number, groups = self.numbers(finer, levels)
        first = np.empty(groups, dtype=np.int64)
        first[number] = np.arange(len(number))
        rows = added(number, finer.row_weights, groups).astype(np.int64)
        codes = tuple(self.lifted(finer, column, level)[first] for column, level in enumerate(levels))
        group = number[finer.group]
        if finer.person is not None:
            order = np.argsort(group, kind="stable")
            return Tally(
                levels, codes, rows, group[order], finer.value[order], finer.people[order], finer.entry_rows[order],
                finer.weight[order], finer.person[order],
            )  # fmt: skip
        return self._aggregate(finer, levels, codes, rows, group)

    def _aggregate(
        self, finer: Tally, levels: Levels, codes: tuple[NDArray[np.int32], ...], rows: Ints, group: Ints
    ) -> Tally:
        values = len(self.frequencies.joint)
        space = len(rows) * values
        key = group * values + finer.value
        if space > max(_DENSE, 4 * len(key)):
            keys, key = np.unique(key, return_inverse=True)
            people = added(key, finer.people)
        else:
            people = added(key, finer.people, space)
            keys = np.flatnonzero(people)
            people = people[keys]
        weight = people
        if self.table.weight is not None:
            weight = added(key, finer.weight)
            weight = weight if len(weight) == len(keys) else weight[keys]
        counted = people.astype(np.int64)
        return Tally(levels, codes, rows, keys // values, keys % values, counted, counted, weight)

    def counts(self, tally: Tally) -> Counts:
        """The tally as principles see it."""
        whole = self._whole
        return Counts(
            tally.groups, tally.group, tally.value, tally.people, whole.sensitive, whole.joint, tally.person, whole
        )


class Tallies:
    """Tallies at hand, so that a node is rolled up from the smallest finer one; memory is bounded."""

    LARGEST = 256 << 20  # bytes

    def __init__(self, roller: Roller) -> None:
        self.roller = roller
        self._restart([roller.bottom])

    def _restart(self, kept: list[Tally]) -> None:
        """Have these tallies at hand and no others; the finest is the first and stays."""
        self._kept = kept
        self._place = {tally.levels: place for place, tally in enumerate(kept)}
        self._levels = np.array([tally.levels for tally in kept]).T.copy()  # (columns, room)
        self._groups = np.array([tally.groups for tally in kept])  # (room,)
        self._bytes = sum(tally.nbytes for tally in kept[1:])

    def get(self, levels: Levels) -> Tally:
        """The tally of a node, which is kept."""
        place = self._place.get(levels)
        return self.keep(self.rolled(levels)) if place is None else self._kept[place]

    def rolled(self, levels: Levels) -> Tally:
        """The tally of a node, which is not kept."""
        return self.roller.roll(self.nearest(levels), levels)

    def nearest(self, levels: Levels) -> Tally:
        """The smallest tally at hand that is nowhere coarser."""
        many = len(self._kept)
        finer = (self._levels[:, :many] <= np.array(levels)[:, None]).all(axis=0)
        return self._kept[int(np.argmin(np.where(finer, self._groups[:many], np.iinfo(np.int64).max)))]

    def keep(self, tally: Tally) -> Tally:
        """Have the tally at hand from now on; where there is no more room, the older half is forgotten."""
        if self._bytes + tally.nbytes > self.LARGEST:
            self._restart([self._kept[0], *self._kept[1 + len(self._kept) // 2 :]])
        place = len(self._kept)
        if place == len(self._groups):  # twice the room
            self._levels, self._groups = np.tile(self._levels, 2), np.tile(self._groups, 2)
        self._levels[:, place], self._groups[place] = tally.levels, tally.groups
        self._place[tally.levels] = place
        self._kept.append(tally)
        self._bytes += tally.nbytes
        return tally


def below(low: Levels, high: Levels) -> bool:
    """Whether no level of `low` exceeds that of `high`."""
    return all(a <= b for a, b in zip(low, high, strict=True))
