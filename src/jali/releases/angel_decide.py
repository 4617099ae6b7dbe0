"""Whether all tables of an ANGEL release together keep k: decided, or said to be undecided when the time is over.

k is broken where some cells, one of each of some tables, hold at least one and fewer than k people in every world that
agrees with what is published. One world in which nobody is in them, or k are, shows that they do not break it. So
worlds are sought that clear as many combinations of cells as possible at once; for those that are left the least and
the most are programs of their own.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from jali.principles.counts import Bools, Ints
from jali.programs import Least, Sums
from jali.releases.angel_joint import JointCell, smallest_certain
from jali.releases.angel_tables import GroupTable
from jali.releases.angel_worlds import Worlds, agrees, worlds_of

JOINT_TIME = 60.0
"""How many seconds a check of all tables together may take where nothing else is said."""


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
        self.least = np.bincount(self.number, world, minlength=len(self.example)).astype(np.int64)
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
    worlds = worlds_of(tables)
    if worlds is None:
        return JointCheck(None, found)
    verdict = _Decision(tables, worlds, k, deadline).verdict()
    return JointCheck(verdict, found) if isinstance(verdict, bool | None) else JointCheck(False, verdict)


class _Decision:
    def __init__(self, tables: Sequence[GroupTable], worlds: Worlds, k: int, deadline: float) -> None:
        self.tables, self.worlds, self.k, self.deadline = tables, worlds, k, deadline
        self.some: list[_Combinations] = []
        self.world = worlds.only

    def verdict(self) -> JointCell | bool | None:
        """Cells that break k; else whether none do, None where it is not known."""
        if self.world is None and not self._look(np.zeros(self.worlds.sums.unknowns)):
            return None
        width = [len(table.sizes) for table in self.tables]
        for many in range(2, len(self.tables) + 1):
            for subset in combinations(range(len(self.tables)), many):
                if time.monotonic() > self.deadline and self.worlds.only is None:
                    return None
                self.some.append(_Combinations(self.worlds, subset, width))
                assert self.world is not None  # seen above
                self.some[-1].see(self.world, self.k)
        if self.worlds.only is None and not self._clear():
            return None
        return self._settle()

    def _look(self, objective: np.ndarray[tuple[int], np.dtype[np.float64]]) -> bool:
        """See a world in which the objective is small; false where none was found in time."""
        found = self.worlds.sums.least(objective, deadline=self.deadline)
        world = _whole(self.worlds.sums, found)
        if world is None:
            return False
        self.world = world
        for each in self.some:
            each.see(world, self.k)
        return True

    def _clear(self) -> bool:
        """See worlds that keep people out of all doubtful combinations at once, as long as that clears many."""
        while True:
            before = sum(int(each.doubtful.sum()) for each in self.some)
            if before < 2:
                return True
            weight = np.zeros(self.worlds.sums.unknowns)
            for each in self.some:
                weight += each.doubtful[each.number] / np.maximum(1, each.least)[each.number]
            if not self._look(weight):
                return False
            if sum(int(each.doubtful.sum()) for each in self.some) > before / 2:
                return True

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
        """The combination if it breaks k, True if it does not."""
        inside = some.number == at
        if part is None:  # there is one world only
            return self._cell(some, at, int(some.least[at]), int(some.least[at]))
        kept = np.isin(part, part[inside])
        sums, objective = self.worlds.sums.where(kept), inside[kept].astype(np.float64)
        ends = []
        for sign in (1.0, -1.0):
            found = sums.least(sign * objective, deadline=self.deadline)
            world = _whole(sums, found)
            if world is not None:
                assert self.world is not None  # seen before
                self.world = self.world.copy()
                self.world[kept] = world
                for each in self.some:
                    each.see(self.world, self.k)
            if not some.doubtful[at]:
                return True
            if found is None or not found.reached:
                return None
            ends.append(int(found.bound))
        return self._cell(some, at, ends[0], -ends[1])

    def _cell(self, some: _Combinations, at: int, low: int, high: int) -> JointCell:
        cells = self.worlds.cells[some.example[at]]
        shown = {self.tables[i].name: self.tables[i].label(int(cells[i])) for i in some.subset}
        return JointCell(low, high, shown)


def _whole(sums: Sums, found: Least | None) -> Ints | None:
    """What a program found, as whole numbers that agree exactly with what is known."""
    if found is None or found.x is None:
        return None
    world = np.rint(found.x).astype(np.int64)
    return world if agrees(sums, world) else None
