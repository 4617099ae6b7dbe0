"""Counting worlds: the exact chance that clauses about people hold, when each bucket's values are in random order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import perm, prod

from jali.risk.disclosure.buckets import Buckets
from jali.risk.disclosure.knowledge import Implication, Person

Fact = tuple[Person, int]
"""That a person has the value of a number."""

FEASIBLE = 2_000_000
"""How many steps counting may take in one call, about some seconds; beyond it chances are estimated."""


class TooManyError(Exception):
    """Counting would take more steps than are allowed."""


@dataclass
class Budget:
    """The steps that are left."""

    steps: int = FEASIBLE

    def spend(self, steps: int) -> None:
        """Take steps, or stop."""
        self.steps -= steps
        if self.steps < 0:
            raise TooManyError


@dataclass(frozen=True)
class Clause:
    """If all of `given` hold, one of `then` does; what can never hold is left out already."""

    given: frozenset[Fact]
    then: frozenset[Fact]

    @property
    def people(self) -> set[Person]:
        """Whom it speaks of."""
        return {person for person, _ in self.given | self.then}


def clauses_of(buckets: Buckets, knowledge: Iterable[Implication]) -> list[Clause]:
    """The implications that say something, over people and values of the buckets."""
    made = (_clause(buckets, one) for one in knowledge)
    return list(dict.fromkeys(clause for clause in made if clause is not None))


def _clause(buckets: Buckets, one: Implication) -> Clause | None:
    """An implication without the atoms that nobody can fulfil; None where it holds in every world."""
    given = {buckets.atom(atom) for atom in one.given}
    then = {buckets.atom(atom) for atom in one.then}
    never = {(p, value) for p, value in given | then if value not in buckets.counts(p.bucket)}
    twice = len({person for person, _ in given}) < len(given)  # nobody has two values
    if twice or given & never or given & then:
        return None
    return Clause(frozenset(given), frozenset(then - never))


def components(clauses: Iterable[Clause]) -> list[list[Clause]]:
    """The clauses in parts that share no bucket: worlds of different buckets are independent."""
    parts: list[tuple[set[int], list[Clause]]] = []
    for clause in clauses:
        touched = {person.bucket for person in clause.people}
        joined = [part for part in parts if part[0] & touched]
        parts = [part for part in parts if not part[0] & touched]
        where = touched.union(*(part[0] for part in joined))
        parts.append((where, [*(c for part in joined for c in part[1]), clause]))
    return [part for _, part in parts]


def chance(buckets: Buckets, clauses: list[Clause], budget: Budget) -> Fraction:
    """Pr(all clauses), exactly.

    People are decided one after the other. A state is which clauses are still at risk and, in each bucket, how many
    people were given each value that is asked about later. That somebody has none of the values asked of him is
    1 − Σ [has v]; people about whom nothing was decided are free and need no counting: with a_v people given v,
    Pr = Π_v n_v (n_v − 1) … (n_v − a_v + 1) / n (n − 1) … (n − Σ a_v + 1).
    """
    if any(not clause.given and not clause.then for clause in clauses):
        return Fraction(0)
    steps, denominator = _plan(buckets, clauses, budget)
    states = {(1 << len(clauses)) - 1: 1}
    for step in steps:
        after: dict[int, int] = {}
        for key, weight in states.items():
            moves = step.moves(key, weight)
            budget.spend(len(moves) + 1)
            for found, amount in moves:
                after[found] = after.get(found, 0) + amount
        states = {key: weight for key, weight in after.items() if weight}
    return Fraction(sum(states.values()), denominator)


@dataclass(frozen=True)
class Slot:
    """Where a state keeps a number: some bits of it."""

    shift: int
    full: int  # the largest number it can hold, all its bits

    def read(self, key: int) -> int:
        """The number."""
        return (key >> self.shift) & self.full


@dataclass(frozen=True)
class Step:
    """One person decided. A clause's bit is set while every atom decided so far leaves it at risk."""

    cleared: Mapping[int, int]  # by the person's value: clauses that it makes safe
    otherwise: int  # the same, for none of these values
    closing: int  # clauses that speak of nobody later: at risk now means broken
    have: Mapping[int, tuple[int, Slot]]  # by value: people of the bucket who have it, and how many were given it
    total: Slot  # how many people of the bucket were given a value
    forgotten: int  # bits of numbers that nobody asks for later
    end: tuple[int, int] | None  # after the last person of a bucket: its size, and how many of it were decided

    def moves(self, key: int, weight: int) -> list[tuple[int, int]]:
        """The states that follow, with their weights."""
        base = key & ~self.otherwise
        safe = not base & self.closing
        found = [self._settled(base, weight)] if safe else []
        for value, cleared in self.cleared.items():
            changed = key & ~cleared
            n, slot = self.have[value]
            amount = weight * (n - slot.read(key))
            if changed == base or not amount:  # having the value is like having none of them
                continue
            given = (1 << slot.shift) + (1 << self.total.shift)
            if not changed & self.closing:
                found.append(self._settled(changed + given, amount))
            if safe:
                found.append(self._settled(base + given, -amount))
        return found

    def _settled(self, key: int, weight: int) -> tuple[int, int]:
        if self.end is not None:
            size, decided = self.end
            given = self.total.read(key)
            weight *= perm(size - given, decided - given)
        return key & ~self.forgotten, weight


@dataclass
class _Layout:
    """Hands out the bits of a state."""

    used: int
    slots: dict[tuple[int, int | None], Slot] = field(default_factory=dict)

    def slot(self, bucket: int, value: int | None, largest: int) -> Slot:
        if (bucket, value) not in self.slots:
            self.slots[bucket, value] = Slot(self.used, (1 << largest.bit_length()) - 1)
            self.used += largest.bit_length()
        return self.slots[bucket, value]


def _plan(buckets: Buckets, clauses: list[Clause], budget: Budget) -> tuple[list[Step], int]:
    """The people in the order in which they are decided, and what all weights are to be divided by."""
    order = _order(clauses, budget)
    place = {person: i for i, person in enumerate(order)}
    last = [max(place[p] for p in clause.people) for clause in clauses]
    asked: dict[Person, set[int]] = {person: set() for person in order}
    for clause in clauses:
        for person, value in clause.given | clause.then:
            asked[person].add(value)
    decided: dict[int, list[Person]] = {}
    for person in order:
        decided.setdefault(person.bucket, []).append(person)
    layout = _Layout(len(clauses))
    steps = []
    for i, person in enumerate(order):
        mine = decided[person.bucket]
        counts = buckets.counts(person.bucket)
        total = layout.slot(person.bucket, None, len(mine))
        have = {value: (counts[value], layout.slot(person.bucket, value, len(mine))) for value in asked[person]}
        later = {value for other in mine if place[other] > i for value in asked[other]}
        end = (int(buckets.size[person.bucket]), len(mine)) if mine[-1] == person else None
        dead = [slot for value, (_, slot) in have.items() if value not in later] + ([total] if end else [])
        touching = [(1 << c, clause) for c, clause in enumerate(clauses) if person in clause.people]
        steps.append(
            Step(
                {value: _cleared(touching, person, value) for value in sorted(asked[person])},
                _cleared(touching, person, None),
                sum(1 << c for c in range(len(clauses)) if last[c] == i),
                have,
                total,
                sum(slot.full << slot.shift for slot in dead),
                end,
            )
        )
    return steps, prod(perm(int(buckets.size[bucket]), len(people)) for bucket, people in decided.items())


def _cleared(touching: list[tuple[int, Clause]], person: Person, value: int | None) -> int:
    """The clauses that are safe once the person has the value (None: no value that is asked about)."""
    safe = 0
    for bit, clause in touching:
        fulfilled = (person, value) in clause.then
        spared = any(p == person and v != value for p, v in clause.given)
        safe |= bit if fulfilled or spared else 0
    return safe


def _order(clauses: list[Clause], budget: Budget) -> list[Person]:
    """The people in an order that keeps few clauses open: greedily, the one who opens fewest and closes most."""
    of: dict[Person, set[int]] = {}
    for number, clause in enumerate(clauses):
        for person in clause.people:
            of.setdefault(person, set()).add(number)
    waiting = [clause.people for clause in clauses]  # who of each clause is still to come
    started: set[int] = set()
    order: list[Person] = []
    left = dict.fromkeys(sorted(of))

    def price(person: Person) -> tuple[int, Person]:
        opened = sum(c not in started for c in of[person])
        closed = sum(len(waiting[c]) == 1 for c in of[person])
        return opened - closed, person

    near: set[Person] = set()  # people of clauses that are open
    while left:
        budget.spend(len(near) + 1)
        best = min(near, key=price) if near else next(iter(left))
        del left[best]
        order.append(best)
        for number in of[best]:
            waiting[number].discard(best)
            near |= waiting[number]
        near.discard(best)
        started |= of[best]
    return order
