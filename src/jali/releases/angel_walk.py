"""Walks from world to world: people swap their cells of one table, as long as what is published stays the same.

Programs over all tables at once are slow, and a single world clears many combinations of cells. So a first world is
dealt table by table, each deal a flow; then people who are in doubtful combinations swap cells with others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from jali.encoding.frequencies import combine
from jali.principles.counts import Floats, Ints
from jali.programs import transport
from jali.releases.angel_worlds import Worlds, agrees

AT_ONCE = 20_000
"""How many people are asked at a time whether they can swap."""


class Places(NamedTuple):
    """Where an unknown is found from the entries of all tables that it is part of, table by table."""

    keys: list[Ints]  # sorted: beginning · entries + entry, for all tables but the first
    width: list[int]  # entries of each table

    @classmethod
    def of(cls, entries: Ints) -> Places:
        width = [int(entries[:, i].max()) + 1 for i in range(entries.shape[1])]
        begin, keys = entries[:, 0], []
        for i in range(1, len(width)):
            own, begin = np.unique(begin * width[i] + entries[:, i], return_inverse=True)
            begin = begin.reshape(-1)
            keys.append(own)
        return cls(keys, width)

    def find(self, entries: Ints) -> Ints:
        """The number of each row of entries in the order of all of them; -1 where nobody can be in all of them."""
        begin = entries[:, 0]
        for i, keys in enumerate(self.keys, start=1):
            wanted = begin * self.width[i] + entries[:, i]
            at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
            begin = np.where((keys[at] == wanted) & (begin >= 0), at, -1)
        return begin


def first_world(worlds: Worlds) -> Ints | None:
    """A world, dealt table by table: (unknowns,); None where a deal leaves somebody without a cell."""
    rest = range(1, worlds.entries.shape[1])
    return _dealt(worlds, rest, worlds.entries[:, 0], worlds.people[0])


def extended_world(worlds: Worlds, some: Worlds, tables: Sequence[int], world: Ints) -> Ints | None:
    """The world of `some` of the tables, by their numbers, and a deal of all others; None where that does not go."""
    places = Places.of(some.entries)
    at = places.find(some.entries)
    number = np.empty(len(at), dtype=np.int64)
    number[at] = np.arange(len(at))
    begin = number[places.find(worlds.entries[:, list(tables)])]
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
        at = self.places.find(worlds.entries)
        self.unknown_at = np.empty(len(at), dtype=np.int64)
        self.unknown_at[at] = np.arange(len(at))
        self.seat = np.repeat(np.arange(len(world)), world)  # (people,) the unknown that each is counted in
        self.by_first = np.argsort(worlds.entries[:, 0], kind="stable")
        self.start = np.searchsorted(worlds.entries[self.by_first, 0], np.arange(len(worlds.people[0]) + 1))

    def world(self) -> Ints:
        """The world as it is now: (unknowns,)."""
        return np.bincount(self.seat, minlength=len(self.unknown_at)).astype(np.int64)

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
        one, two, here, there = one[fits], two[fits], self.unknown_at[here[fits]], self.unknown_at[there[fits]]
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
    """Pairs of which no two have anybody in common: whoever is in several keeps the first."""
    both = np.stack([one, two], axis=1).reshape(-1)
    _, first = np.unique(both, return_index=True)
    fresh = np.zeros(len(both), dtype=bool)
    fresh[first] = True
    return np.flatnonzero(fresh.reshape(-1, 2).all(axis=1))
