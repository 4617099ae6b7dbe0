"""The worlds that agree with all tables of an ANGEL release, and walks from one of them to the next."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from jali.core.arrays import Bools, Floats, Ints, combine, counted, owners, runs
from jali.core.programs import Sums, transport
from jali.cover.overlap import in_all
from jali.releases.linked.join import LARGEST, in_common, meeting
from jali.releases.linked.tables import GroupTable

MOST = 1_000_000
"""The most unknowns of a program."""


class Entries(NamedTuple):
    """The cells of a table, batch by batch where batches count; sorted by batch."""

    batch: Ints  # (entries,)
    cell: Ints  # (entries,)
    people: Ints  # (entries,)

    @classmethod
    def of(cls, table: GroupTable, *, batches: bool) -> Entries:
        if not batches or not table.linked:
            cells = np.arange(len(table.sizes))
            return cls(np.zeros_like(cells), cells, table.sizes)
        cell, batch, people = table.shares
        order = np.lexsort((cell, batch))
        return cls(batch[order], cell[order], people[order])


class Worlds(NamedTuple):
    """The unknowns of all worlds: each is the people of one cell of every table."""

    cells: Ints  # (unknowns, tables)
    entries: Ints  # (unknowns, tables) the cells, batch by batch where batches count
    people: list[Ints]  # of each table's entries
    sums: Sums
    only: Ints | None  # (unknowns,) the one world that there is, where it is known without any program

    def groups(self, subset: Sequence[int], width: Sequence[int]) -> tuple[Ints, Ints]:
        """The combination of cells of some tables that each unknown is in, and an unknown of each combination."""
        number, first = combine([(self.cells[:, i], width[i]) for i in subset], len(self.cells))
        return number.astype(np.int64), first


def linked(tables: Sequence[GroupTable]) -> bool:
    """Whether batches tie some of the tables: where one alone shows them they tell nothing."""
    return sum(table.linked for table in tables) > 1


def worlds_of(tables: Sequence[GroupTable], *, batches: bool, deadline: float) -> Worlds | None:
    """The worlds of some tables, of which the first has the columns of all others; None where they are too many.

    `batches` says whether batches count; see `linked`. `deadline` is a time of `time.monotonic`.
    """
    if any(_too_wide(one, two) for one, two in combinations(tables, 2)):
        return None
    entries = [Entries.of(table, batches=batches) for table in tables]
    unknowns = np.arange(len(entries[0].cell))[:, None]  # (unknowns, tables so far): entries
    for at in range(1, len(tables)):
        found = _partners(tables, entries, at, deadline)
        if found is None:
            return None
        begin, partner = found
        many = np.diff(begin)[unknowns[:, 0]]
        if int(many.sum()) > MOST:
            return None
        place = runs(begin[unknowns[:, 0]], many)
        unknowns = np.column_stack([np.repeat(unknowns, many, axis=0), partner[place]])
        unknowns = unknowns[_meet(tables[: at + 1], entries, unknowns)]
    return _worlds(entries, unknowns)


def _too_wide(one: GroupTable, two: GroupTable) -> bool:
    """Whether a column has too many pairs of nodes to list those that have a value in common."""
    return any(a.name == b.name and a.cover.nodes * b.cover.nodes > LARGEST for a in one.columns for b in two.columns)


def _partners(
    tables: Sequence[GroupTable], entries: list[Entries], at: int, deadline: float
) -> tuple[Ints, Ints] | None:  # fmt: skip
    """The entries of a table that can hold people of each entry of the first, as runs; None where they are too many."""
    first, own = entries[0], entries[at]
    linked = bool(first.batch.any()) and tables[at].linked
    batch = first.batch if linked else np.zeros_like(first.batch)
    batches = int(batch.max()) + 1
    one, two, many = [], [], 0
    for a, b in meeting((batch, first.cell), own[:2], in_common(tables[0], tables[at]), batches):
        one.append(a)
        two.append(b)
        many += len(a)
        if many > 4 * MOST or time.monotonic() > deadline:
            return None
    return np.searchsorted(np.concatenate(one), np.arange(len(batch) + 1)), np.concatenate(two)


def _meet(tables: Sequence[GroupTable], entries: list[Entries], unknowns: Ints) -> Bools:
    """Which unknowns' cells, of the tables so far, have a value in common in every column: (unknowns,)."""
    meet = np.ones(len(unknowns), dtype=bool)
    last = len(tables) - 1
    for column in tables[last].columns:
        places = [(i, c) for i, table in enumerate(tables) for c in table.columns if c.name == column.name]
        if len(places) < 3:  # the first table's cells were looked at alone
            continue
        shown = [c.held[entries[i].cell[unknowns[:, i]]].astype(np.int64) for i, c in places]
        number, first = combine([(n, c.cover.nodes) for n, (_, c) in zip(shown, places, strict=True)], len(unknowns))
        nodes = np.stack([n[first] for n in shown], axis=1)
        meet &= in_all([c.cover for _, c in places], nodes)[number]
    return meet


def _worlds(entries: list[Entries], unknowns: Ints) -> Worlds:
    """The unknowns with their sums: every entry of every table is the sum of the unknowns that it is part of."""
    at = np.cumsum([0, *(len(each.people) for each in entries)])
    row = np.concatenate([unknowns[:, i] + at[i] for i in range(len(entries))])
    many = len(unknowns)
    people = np.concatenate([each.people for each in entries]).astype(np.float64)
    sums = Sums(many, row, np.tile(np.arange(many), len(entries)), people, people)
    cells = np.stack([each.cell[unknowns[:, i]] for i, each in enumerate(entries)], axis=1)
    only = next((each.people[unknowns[:, i]] for i, each in enumerate(entries) if len(each.people) == many), None)
    only = only if only is not None and agrees(sums, only) else None
    return Worlds(cells, unknowns, [each.people for each in entries], sums, only)


def agrees(sums: Sums, people: Ints) -> bool:
    """Whether whole numbers have exactly the sums that are known."""
    found = np.bincount(sums.row, people[sums.unknown], minlength=len(sums.low))
    return bool((people >= 0).all() and np.array_equal(found, sums.low))


AT_ONCE = 20_000
"""How many people are asked at a time whether they can swap."""


class Places(NamedTuple):
    """Where an unknown is found from the entries of all tables that it is part of, table by table."""

    keys: list[Ints]  # sorted: beginning · entries + entry, for all tables but the first
    width: list[int]  # entries of each table
    unknown: Ints  # (unknowns,) in the order in which the keys find them

    @classmethod
    def of(cls, entries: Ints) -> Places:
        width = [int(entries[:, i].max()) + 1 for i in range(entries.shape[1])]
        begin, keys = entries[:, 0], []
        for i in range(1, len(width)):
            own, begin = np.unique(begin * width[i] + entries[:, i], return_inverse=True)
            begin = begin.reshape(-1)
            keys.append(own)
        return cls(keys, width, np.argsort(begin))

    def find(self, entries: Ints) -> Ints:
        """The unknown of each row of entries; -1 where nobody can be in all of them."""
        begin = entries[:, 0]
        for i, keys in enumerate(self.keys, start=1):
            wanted = begin * self.width[i] + entries[:, i]
            at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
            begin = np.where((keys[at] == wanted) & (begin >= 0), at, -1)
        return np.where(begin < 0, -1, self.unknown[begin])


def first_world(worlds: Worlds) -> Ints | None:
    """A world, dealt table by table: (unknowns,); None where a deal leaves somebody without a cell."""
    rest = range(1, worlds.entries.shape[1])
    return _dealt(worlds, rest, worlds.entries[:, 0], worlds.people[0])


def extended_world(worlds: Worlds, some: Worlds, tables: Sequence[int], world: Ints) -> Ints | None:
    """The world of `some` of the tables, by their numbers, and a deal of all others; None where that does not go."""
    begin = Places.of(some.entries).find(worlds.entries[:, list(tables)])
    return _dealt(worlds, [i for i in range(worlds.entries.shape[1]) if i not in tables], begin, world)


def _dealt(worlds: Worlds, tables: Iterable[int], begin: Ints, many: Ints) -> Ints | None:
    """A world, when the cells of all other tables are dealt: so `many` people are in the beginning of each unknown."""
    entries = worlds.entries
    for i in tables:
        number, example = combine([(begin, len(many)), (entries[:, i], len(worlds.people[i]))], len(entries))
        dealt = transport(many, worlds.people[i], begin[example], entries[example, i])
        if dealt is None:
            return None
        begin, many = number.astype(np.int64), dealt
    world = many[begin]
    return world if agrees(worlds.sums, world) else None


class Walk:
    """People as they are seated in one world, and their next swaps."""

    def __init__(self, worlds: Worlds, world: Ints, rng: np.random.Generator) -> None:
        self.worlds, self.rng = worlds, rng
        self.places = Places.of(worlds.entries)
        self.seat = owners(world)  # (people,) the unknown that each is counted in
        self.by_first = np.argsort(worlds.entries[:, 0], kind="stable")
        self.start = np.searchsorted(worlds.entries[self.by_first, 0], np.arange(len(worlds.people[0]) + 1))

    def world(self) -> Ints:
        """The world as it is now: (unknowns,)."""
        return counted(self.seat, length=len(self.worlds.entries))

    def step(self, weight: Floats) -> bool:
        """Let people of unknowns with a weight swap with others wherever that does not add to it; whether any did."""
        moved = False
        for table in range(1, self.worlds.entries.shape[1]):
            heavy = np.flatnonzero(weight[self.seat] > 0)
            one = self.rng.permutation(heavy)[:AT_ONCE]
            moved |= len(one) > 0 and self._swap(table, one, weight)
        return moved

    def _swap(self, table: int, one: Ints, weight: Floats) -> bool:
        entries = self.worlds.entries
        first = entries[self.seat[one], 0]
        room = self.start[first + 1] - self.start[first]
        wish = entries[self.by_first[self.start[first] + (self.rng.random(len(one)) * room).astype(np.int64)], table]
        order = self.rng.permutation(len(self.seat))
        held = entries[self.seat[order], table]
        by_held = order[np.argsort(held, kind="stable")]
        begin = np.searchsorted(np.sort(held), np.arange(len(self.worlds.people[table]) + 1))
        many = begin[wish + 1] - begin[wish]
        two = by_held[begin[wish] + (self.rng.random(len(one)) * many).astype(np.int64)]
        here, there = self._swapped(one, two, table), self._swapped(two, one, table)
        fits = (here >= 0) & (there >= 0)
        one, two, here, there = (each[fits] for each in (one, two, here, there))
        change = weight[here] + weight[there] - weight[self.seat[one]] - weight[self.seat[two]]
        kept = np.flatnonzero((change <= 0) & ((here != self.seat[one]) | (there != self.seat[two])))
        kept = kept[_apart(one[kept], two[kept])]
        self.seat[one[kept]], self.seat[two[kept]] = here[kept], there[kept]
        return len(kept) > 0

    def _swapped(self, own: Ints, other: Ints, table: int) -> Ints:
        rows = self.worlds.entries[self.seat[own]]
        rows[:, table] = self.worlds.entries[self.seat[other], table]
        return self.places.find(rows)


def _apart(one: Ints, two: Ints) -> Ints:
    """Pairs of which no two have a person in common: somebody in several pairs keeps the first."""
    both = np.stack([one, two], axis=1).reshape(-1)
    _, first = np.unique(both, return_index=True)
    fresh = np.zeros(len(both), dtype=bool)
    fresh[first] = True
    return np.flatnonzero(fresh.reshape(-1, 2).all(axis=1))
