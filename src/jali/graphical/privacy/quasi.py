"""What somebody who knows everybody's quasi-identifiers believes about each of them, and what he knows for certain.

He knows how many people have each combination of quasi-identifiers, and the published marginals. People whose
combinations fall into the same cells of all marginals with the sensitive columns look alike to him: they are one
profile. Unknown is how many people of each profile have each sensitive value. For a person of a profile

- a value is possible where some whole table with these profiles and marginals gives it to somebody of the profile;
- the belief is what maximum entropy expects of the profile under the same sums, over the values that are possible.

A promise must be kept by the belief about every profile. So nobody's value is certain, nor are fewer values possible
than the promise needs. With a single marginal the belief is the share of its cell: nothing new is to be judged.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jali.core.arrays import Bools, Floats, Ints, combine
from jali.graphical.marginal import ABSENT, Cache, Marginal
from jali.graphical.maxent import finest
from jali.graphical.privacy.join import Cell, cell_of, quasi_of
from jali.graphical.privacy.maxent import Finding, Rule, worst_row
from jali.graphical.privacy.tables import FITTED_TIE, Tables

EXCHANGES = 2 * 10**9
"""Products of numbers that the look for exchanges may take for one way to split the marginals."""

ROUGH = 200
"""Rounds of scaling of a first look."""

CLEAR = 0.01
"""What a first look must miss a bound by, relatively, to be believed."""


@dataclass(frozen=True, eq=False)
class Profiles:
    """People by profile and joint sensitive value, for the marginals with certain sensitive columns."""

    cache: Cache  # of the table itself
    sensitive: tuple[int, ...]
    marginals: tuple[Marginal, ...]

    @cached_property
    def _cells(self) -> list[tuple[NDArray[np.int32], int]]:
        """The cell of each combination in each marginal, and how many cells that has."""
        found = []
        for quasi in (quasi_of(self.cache, marginal) for marginal in self.marginals):
            counts = self.cache.counts(quasi)
            found.append((counts.cell_of_combination, len(counts.n)))
        return found

    @cached_property
    def _profile(self) -> tuple[Ints, Ints]:
        """The profile of each combination, and a combination of each profile."""
        source = self.cache.sources[0]
        number, first = combine(self._cells, len(source.n))
        return number.astype(np.int64), first.astype(np.int64)

    @cached_property
    def people(self) -> Ints:
        """How many people of each profile have each joint value in the table: (profiles, values)."""
        levels = [0 if i in self.sensitive else ABSENT for i in range(len(self.cache.domain.attributes))]
        values, source = self.cache.counts(Marginal(tuple(levels))), self.cache.sources[0]
        found = np.zeros((len(self._profile[1]), len(values.n)), dtype=np.int64)
        np.add.at(found, (self._profile[0], values.cell_of_combination), source.n)
        return found

    @cached_property
    def _places(self) -> list[Ints]:
        """The cell of each profile in each marginal: (profiles,) each."""
        return [cell[self._profile[1]].astype(np.int64) for cell, _ in self._cells]

    @cached_property
    def _open(self) -> tuple[Ints, Ints]:
        """The profiles and values that no single marginal rules out."""
        possible = np.ones(self.people.shape, dtype=bool)
        for place, (_, size) in zip(self._places, self._cells, strict=True):
            possible &= _summed(self.people, place, size)[place] > 0
        profile, value = np.nonzero(possible)
        return profile.astype(np.int64), value.astype(np.int64)

    @cached_property
    def tables(self) -> Tables:
        """All tables with these marginals and as many people of each profile; the profiles come last."""
        (profile, value), values = self._open, self.people.shape[1]
        places = [place[profile] * values + value for place in self._places]
        n = [
            _summed(self.people, place, size).reshape(-1)
            for place, (_, size) in zip(self._places, self._cells, strict=True)
        ]
        return Tables(np.stack([*places, profile], axis=1), (*n, self.people.sum(axis=1)))

    def findings(self, rules: Sequence[Rule], deadline: float) -> list[Finding]:
        """What each rule finds. Where a first look shows a clear breach, it is a breach, and what follows is saved."""
        first = self._rows(self.tables.expected(self.tables.limits[1] > 0, deadline, rounds=ROUGH))
        if any(rule.clearly_broken(first, CLEAR, FITTED_TIE) for rule in rules):
            return [self._finding(rule, first) for rule in rules]
        world = self.people[self._open]
        near = partial(self.exchanged, deadline=deadline)
        known = self._rows(((world > 0) | near(world)).astype(np.float64))
        if all(_counts_values(rule) and self._finding(rule, known).holds for rule in rules):
            return [self._finding(rule, known) for rule in rules]  # more values could only be better
        possible = self.tables.possible(world, whole=True, deadline=deadline, near=near)
        belief = self._rows(self.tables.expected(possible, deadline))
        return [self._finding(rule, belief) for rule in rules]

    def _rows(self, people: Floats) -> Floats:
        """People expected in the open cells as rows: (profiles, values)."""
        found = np.zeros(self.people.shape)
        found[self._open] = people
        return found

    def exchanged(self, world: NDArray[Any], deadline: float = math.inf) -> Bools:
        """The open cells that have anybody in a table that four people of this one make when they exchange two values.

        Somebody of (a, b) has t, of (a, b') and (a', b) has s, of (a', b') has t; a stands for the cells of some of the
        marginals, b for those of the others. If each of the four takes the other of s and t, all sums stay. At the
        deadline no further way to split the marginals is tried.
        """
        people = self._rows(world)
        found = np.zeros(people.shape, dtype=bool)
        every = range(len(self.marginals))
        for size in range(1, len(self.marginals) // 2 + 1):
            for some in itertools.combinations(every, size):
                others = [i for i in every if i not in some]
                if (len(others) > size or 0 in some) and time.monotonic() < deadline:  # halves stand twice
                    found |= self._exchanged_between(people, list(some), others)
        return found[self._open]

    def _exchanged_between(self, people: Floats, some: Sequence[int], others: Sequence[int]) -> Bools:
        (left, lefts), (right, rights) = (
            combine([(self._places[i], self._cells[i][1]) for i in part], len(people)) for part in (some, others)
        )
        if len(lefts) > len(rights):
            left, lefts, right, rights = right, rights, left, lefts
        values = people.shape[1]
        if len(lefts) ** 2 * len(rights) * values**2 > EXCHANGES:
            return np.zeros(people.shape, dtype=bool)
        has = np.zeros((values, len(lefts), len(rights)), dtype=np.float32)
        has[:, left, right] = (people > 0).T
        found = np.zeros(people.shape, dtype=bool)
        for s in range(values):
            lacks = np.flatnonzero(people[:, s] == 0)
            for t in range(values):
                if t != s and len(lacks):
                    some_have = (has[s] @ has[t].T > 0).astype(np.float32) @ has[s] > 0
                    found[lacks, s] |= (people[lacks, t] > 0) & some_have[left[lacks], right[lacks]]
        return found

    def _finding(self, rule: Rule, rows: Floats) -> Finding:
        """What a rule finds in the belief about the profiles."""
        levels, holds = rule.judge(rows, FITTED_TIE)
        at = worst_row(rule, levels, holds)
        return Finding(rule, bool(holds[at]), float(levels[at]), self._cell(at))

    def _cell(self, profile: int) -> Cell:
        """The cells that a profile falls into, each column at the finest level that a marginal shows."""
        shown, codes = quasi_of(self.cache, finest(self.marginals)), self.cache.sources[0].cells
        at = int(self._profile[1][profile])
        nodes = [self.cache.domain.attributes[i].maps[shown.levels[i]][codes[at, i]] for i in shown.attributes]
        return cell_of(shown, np.array(nodes, dtype=np.int64))


def _counts_values(rule: Rule) -> bool:
    """Whether the rule looks only at which values are possible, and more are better."""
    return rule.expected is not None and rule.expected.looks_at == "values"


def _summed(people: Ints, place: Ints, size: int) -> Ints:
    """The rows of each place, added: (places, values)."""
    found = np.zeros((size, people.shape[1]), dtype=np.int64)
    np.add.at(found, place, people)
    return found
