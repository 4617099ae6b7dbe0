"""Tally: the counts of one lattice node, rolled up from a finer one."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from jali.encoding.table import Table
from jali.principles.counts import Counts, Ints

Floats = NDArray[np.float64]
Levels = tuple[int, ...]

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
        self._whole = self.frequencies.counts(np.zeros(self.frequencies.combinations, dtype=np.int64), 1)
        self._steps: dict[tuple[int, int, int], NDArray[np.int32]] = {}

    @cached_property
    def bottom(self) -> Tally:
        """The finest node: the table's own combinations."""
        f = self.frequencies
        rows = np.bincount(f.combination, weights=f.rows, minlength=f.combinations).astype(np.int64)
        codes = tuple(np.ascontiguousarray(f.codes[:, i]) for i in range(f.codes.shape[1]))
        zero = tuple(0 for _ in self.hierarchies)
        return Tally(zero, codes, rows, f.combination, f.value, f.people, f.rows, f.weight, f.person)

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

    def keys(self, finer: Tally, levels: Levels) -> tuple[Ints, int]:
        """A number for each group of a finer tally, the same for groups that meet at the levels; and their range."""
        widths = [len(self.hierarchies[column].levels[level]) for column, level in enumerate(levels)]
        space = math.prod(widths)
        key = np.zeros(finer.groups, dtype=np.int32 if space < 2**31 else np.int64)
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
        return np.bincount(key, weights=finer.row_weights)

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

    def roll(self, finer: Tally, levels: Levels) -> Tally:
        """The tally at coarser levels."""
        number, groups = self.numbers(finer, levels)
        first = np.empty(groups, dtype=np.int64)
        first[number] = np.arange(len(number))
        rows = np.bincount(number, weights=finer.row_weights, minlength=groups).astype(np.int64)
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
            people = np.bincount(key, weights=finer.people)
        else:
            people = np.bincount(key, weights=finer.people, minlength=space)
            keys = np.flatnonzero(people)
            people = people[keys]
        weight = people
        if self.table.weight is not None:
            weight = np.bincount(key, weights=finer.weight)
            weight = weight if len(weight) == len(keys) else weight[keys]
        people = people.astype(np.int64)
        return Tally(levels, codes, rows, keys // values, keys % values, people, people, weight)

    def counts(self, tally: Tally) -> Counts:
        """The tally as principles see it."""
        whole = self._whole
        return Counts(
            tally.groups, tally.group, tally.value, tally.people, whole.sensitive, whole.joint, tally.person, whole
        )


class Tallies:
    """Tallies at hand, the latest first, so that a node is rolled up from a near one; memory is bounded."""

    LARGEST = 256 << 20  # bytes

    def __init__(self, roller: Roller) -> None:
        self.roller = roller
        self.finest = roller.bottom
        self._kept: dict[Levels, Tally] = {}
        self._bytes = 0

    def get(self, levels: Levels) -> Tally:
        """The tally of a node."""
        found = self._kept.get(levels)
        if found is None:
            found = self.roller.roll(self._nearest(levels), levels)
            self._keep(found)
        return found

    def _nearest(self, levels: Levels) -> Tally:
        """The smallest tally at hand one step below, or the finest."""
        below = [self._kept.get((*levels[:i], level - 1, *levels[i + 1 :])) for i, level in enumerate(levels) if level]
        return min((t for t in below if t is not None), key=lambda t: len(t.group), default=self.finest)

    def _keep(self, tally: Tally) -> None:
        self._kept[tally.levels] = tally
        self._bytes += _bytes(tally)
        while self._bytes > self.LARGEST and len(self._kept) > 1:
            oldest = self._kept.pop(next(iter(self._kept)))
            self._bytes -= _bytes(oldest)


def _bytes(tally: Tally) -> int:
    return tally.group.nbytes * 5 + tally.rows.nbytes * 2
