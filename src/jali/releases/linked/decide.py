"""Whether all tables of an ANGEL release together keep k: decided, or said to be undecided when the time is over.

k is broken where some cells, one of each of some tables, hold at least one and fewer than k people in every world that
agrees with what is published. One world in which nobody is in them, or k are, shows that they do not break it. So a
walk goes from world to world and clears one combination after the other; for those that are left the least and the
most are programs of their own.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from jali.core.arrays import Bools, Ints, counted
from jali.core.programs import Best, Sums
from jali.releases.linked.join import JointCell, smallest_certain
from jali.releases.linked.tables import GroupTable
from jali.releases.linked.worlds import Walk, Worlds, agrees, extended_world, first_world, linked, worlds_of

JOINT_TIME = 60.0
"""How many seconds a check of all tables together may take where nothing else is said."""


PATIENCE = 40
"""The number of steps without progress after which programs take over."""


class JointCheck(NamedTuple):
    """Whether k holds for all tables together, and of the cells that certainly share somebody those with the fewest."""

    kept: bool | None  # None where it was not decided in time
    cell: JointCell | None  # if k is broken, a combination of cells that breaks it


class _Combinations:
    """Combinations of cells, one of each of some tables, as far as the worlds seen so far leave them in doubt."""

    def __init__(self, worlds: Worlds, subset: tuple[int, ...], width: Sequence[int]) -> None:
        self.subset = subset
        self.number, self.example = worlds.groups(subset, width)
        self.doubtful: Bools = np.ones(len(self.example), dtype=bool)
        self.least: Ints = np.zeros(len(self.example), dtype=np.int64)  # people of the worlds seen so far

    def see(self, world: Ints, k: int) -> None:
        """A world in which nobody is in a combination, or k people are, clears it."""
        self.least = counted(self.number, world, len(self.example))
        self.doubtful &= (self.least > 0) & (self.least < k)


def decide(tables: Sequence[GroupTable], size: Ints, k: int, *, seconds: float = JOINT_TIME) -> JointCheck:
    """Whether no combination of published cells certainly holds at least one and fewer than k people.

    `tables` with batches are joined on them, those without by their counts; `size` is the batches'. The first table
    has the columns of all others.
    """
    deadline = time.monotonic() + seconds
    if len(tables) < 2 or k < 2:
        return JointCheck(True, None)
    found = smallest_certain(tables, size)
    if found is not None and found.high < k:
        return JointCheck(False, found)
    worlds = worlds_of(tables, batches=linked(tables), deadline=deadline)
    if worlds is None:
        return JointCheck(None, found)
    verdict = _Decision(tables, worlds, k, deadline).verdict()
    return JointCheck(verdict, found) if isinstance(verdict, bool | None) else JointCheck(False, verdict)


class _Decision:
    def __init__(self, tables: Sequence[GroupTable], worlds: Worlds, k: int, deadline: float) -> None:
        self.tables, self.worlds, self.k, self.deadline = tables, worlds, k, deadline
        self.some: list[_Combinations] = []
        self.few: dict[tuple[int, ...], Worlds | None] = {}  # of some tables alone
        self.world = worlds.only

    def verdict(self) -> JointCell | bool | None:
        """Cells that break k; else whether none do, None where it is not known."""
        if self.world is None:
            self.world = first_world(self.worlds)
        if self.world is None:
            best = self.worlds.sums.best(np.zeros(self.worlds.sums.unknowns), deadline=self.deadline)
            self.world = _whole(self.worlds.sums, best)
        if self.world is None:
            return None
        width = [len(table.sizes) for table in self.tables]
        for many in range(2, len(self.tables) + 1):
            for subset in combinations(range(len(self.tables)), many):
                if time.monotonic() > self.deadline and self.worlds.only is None:
                    return None
                self.some.append(_Combinations(self.worlds, subset, width))
                self.some[-1].see(self.world, self.k)
        if self.worlds.only is None:
            self._walk()
        return self._settle()

    def _walk(self) -> None:
        """See worlds in which fewer and fewer people are in doubtful combinations, until that clears no more."""
        assert self.world is not None  # seen before
        walk, idle = Walk(self.worlds, self.world, np.random.default_rng(0)), 0
        left = self._doubtful()
        while left and idle < PATIENCE and time.monotonic() < self.deadline:
            weight = np.zeros(self.worlds.sums.unknowns)
            for each in self.some:
                weight += (each.doubtful / np.maximum(1, each.least))[each.number]
            walk.step(weight)
            self._see(walk.world())
            idle = 0 if self._doubtful() < left else idle + 1
            left = self._doubtful()

    def _doubtful(self) -> int:
        return sum(int(each.doubtful.sum()) for each in self.some)

    def _see(self, world: Ints) -> None:
        self.world = world
        for each in self.some:
            each.see(world, self.k)

    def _settle(self) -> JointCell | bool | None:
        """Look at the doubtful combinations one by one, those of few people first."""
        part = self.worlds.sums.parts() if self.worlds.only is None else None
        for each in self.some:
            for at in np.argsort(each.least, kind="stable"):
                if each.doubtful[at]:
                    broken = self._range(each, int(at), part)
                    if broken is None or isinstance(broken, JointCell):
                        return broken
        return True

    def _range(self, some: _Combinations, at: int, part: Ints | None) -> JointCell | bool | None:
        """The combination if it breaks k, True if it does not, None where that was not decided."""
        if part is None:  # there is one world only
            return self._cell(some, at, int(some.least[at]), int(some.least[at]))
        few = tuple(sorted({0, *some.subset}))
        if len(few) < len(self.tables):
            found = self._range_of_few(some, at, few)
            if found is not None:
                return found
        inside = some.number == at
        kept = np.isin(part, part[inside])
        ends = self._ends(self.worlds.sums, kept, inside)
        for world, _ in ends:
            if world is not None:
                assert self.world is not None  # seen before
                whole = self.world.copy()
                whole[kept] = world
                self._see(whole)
        return self._judged(some, at, ends)

    def _range_of_few(self, some: _Combinations, at: int, few: tuple[int, ...]) -> JointCell | bool | None:
        """The same from some tables alone: what breaks k there breaks it; a world in which it does not may go on."""
        if few not in self.few:
            self.few[few] = worlds_of(
                [self.tables[i] for i in few], batches=linked(self.tables), deadline=self.deadline
            )
        worlds = self.few[few]
        if worlds is None:
            return None
        cells = self.worlds.cells[some.example[at], list(some.subset)]
        inside = (worlds.cells[:, [few.index(i) for i in some.subset]] == cells).all(axis=1)
        part = worlds.sums.parts()
        kept = np.isin(part, part[inside])
        ends = self._ends(worlds.sums, kept, inside)
        dealt = first_world(worlds) if any(world is not None for world, _ in ends) else None
        for world, _ in ends:
            if world is not None and dealt is not None:
                dealt[kept] = world
                whole = extended_world(self.worlds, worlds, few, dealt)
                if whole is not None:
                    self._see(whole)
        found = self._judged(some, at, ends)
        return None if found is True and some.doubtful[at] else found

    def _ends(self, sums: Sums, kept: Bools, inside: Bools) -> list[tuple[Ints | None, int | None]]:
        """A world with the fewest people inside and one with the most, of some parts; and these numbers if known."""
        part, objective, ends = sums.where(kept), inside[kept].astype(np.float64), []
        for sign in (-1, 1):
            best = part.best(sign * objective, deadline=self.deadline)
            ends.append((_whole(part, best), sign * int(best.limit) if best is not None and best.exact else None))
        return ends

    def _judged(
        self, some: _Combinations, at: int, ends: list[tuple[Ints | None, int | None]]
    ) -> JointCell | bool | None:
        """The combination if it breaks k, True if it does not, None where its ends are not known."""
        (_, low), (_, high) = ends
        if not some.doubtful[at] or low == 0 or (high is not None and high >= self.k):
            return True
        return None if low is None or high is None else self._cell(some, at, low, high)

    def _cell(self, some: _Combinations, at: int, low: int, high: int) -> JointCell:
        cells = self.worlds.cells[some.example[at]]
        shown = {self.tables[i].name: self.tables[i].label(int(cells[i])) for i in some.subset}
        return JointCell(low, high, shown)


def _whole(sums: Sums, best: Best | None) -> Ints | None:
    """What a program found, as whole numbers that agree exactly with what is known."""
    if best is None or best.x is None:
        return None
    world = np.rint(best.x).astype(np.int64)
    return world if agrees(sums, world) else None
