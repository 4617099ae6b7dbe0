"""Every world of a small release: each is published again, and those that lead to the release are counted."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, islice, product
from math import factorial, prod
from time import monotonic
from typing import NamedTuple

import numpy as np

from jali.core.arrays import Ints
from jali.risk.attacks.replay import People, Replay

Row = tuple[int, ...]
Way = tuple[Row, ...]
"""How the values of a group are spread over its slots: (slots, values)."""


DEEPEST = 100
"""Groups of more slots than this have too many worlds in any case."""


class Belief(NamedTuple):
    """What the attacker believes of the people of each slot, and how it was found."""

    chance: list[list[Fraction]]  # (slots, values)
    worlds: int  # that were looked at
    same: int  # of them those that lead to the release
    survivors: tuple[tuple[Ints, int], ...] = ()  # worlds that lead to it, (slots, values) each, and their weights


def spreads(counts: Row, sizes: Row) -> Iterator[Way]:
    """Every way to spread values over parts: tables with these column and row sums.

    >>> list(spreads((1, 1), (1, 1)))
    [((0, 1), (1, 0)), ((1, 0), (0, 1))]
    """
    if len(sizes) == 1:
        yield (counts,)
        return
    for row in _takes(counts, sizes[0]):
        left = tuple(n - taken for n, taken in zip(counts, row, strict=True))
        for rest in spreads(left, sizes[1:]):
            yield (row, *rest)


def _takes(counts: Row, size: int) -> Iterator[Row]:
    """Every way to take so many of these."""
    if not counts:
        yield ()
        return
    rest = sum(counts[1:])
    for first in range(max(0, size - rest), min(counts[0], size) + 1):
        for others in _takes(counts[1:], size - first):
            yield (first, *others)


def arrangements(way: Way) -> int:
    """How many assignments of values to single people a way stands for: Π_slot size! / Π_value n!."""
    return prod(factorial(sum(row)) // prod(map(factorial, row)) for row in way)


def ways_of(people: People, group: Ints, most: int) -> list[list[Way]] | None:
    """The ways of each group, when each slot is in a group; None where all of them together are more than `most`."""
    counts, size = people.counts, people.size
    found, total = [], 1
    for one in range(int(group.max()) + 1):
        own = np.flatnonzero(group == one)
        histogram, sizes = tuple(counts[own].sum(axis=0).tolist()), tuple(size[own].tolist())
        if len(own) > DEEPEST and sum(n > 0 for n in histogram) > 1:
            return None
        used = [value for value, n in enumerate(histogram) if n]
        some = islice(spreads(tuple(histogram[value] for value in used), sizes), most // total + 1)
        ways = [_widened(way, used, len(histogram)) for way in some] if len(used) > 1 else [_alone(histogram, sizes)]
        total *= len(ways)
        if total > most:
            return None
        found.append(ways)
    return found


def _widened(way: Way, used: list[int], width: int) -> Way:
    """A way over some of the values, over all of them."""
    place = {value: at for at, value in enumerate(used)}
    return tuple(tuple(row[place[v]] if v in place else 0 for v in range(width)) for row in way)


def _alone(histogram: Row, sizes: Row) -> Way:
    """The only way where everybody has the same value."""
    return tuple(tuple(size if n else 0 for n in histogram) for size in sizes)


def enumerate_worlds(people: People, group: Ints, replay: Replay, ways: list[list[Way]], until: float) -> Belief | None:
    """The share of the worlds that lead to the release; None where the time is up before all were looked at."""
    slots = [np.flatnonzero(group == one) for one in range(len(ways))]
    weight = [[arrangements(way) for way in own] for own in ways]
    sums = np.zeros(people.counts.shape, dtype=object)
    survivors: list[tuple[Ints, int]] = []
    looked_at = total = 0
    for chosen in product(*(range(len(own)) for own in ways)):
        if monotonic() > until:
            return None
        world = np.zeros(people.counts.shape, dtype=np.int64)
        for own, place, one in zip(ways, slots, chosen, strict=True):
            world[place] = own[one]
        looked_at += 1
        if replay.same(people.world(world)):
            many = prod(own[one] for own, one in zip(weight, chosen, strict=True))
            sums, total = sums + world.astype(object) * many, total + many
            survivors.append((world, many))
    size = people.size.tolist()
    if not total:
        return Belief([], looked_at, 0)
    chance = [[Fraction(int(n), total * size[slot]) for n in row] for slot, row in enumerate(sums)]
    return Belief(chance, looked_at, len(survivors), tuple(survivors))


def given_facts(belief: Belief, column: Ints, slot: int, value: int, facts: int) -> Fraction:
    """The largest belief that somebody of a slot has a value of a column, given so many facts about single people.

    Every slot must be one person, and `column` is the column's value of each value. The worst fact says that if
    somebody has some value, then this person has this one: it rules out the worlds in which only the first is true.
    The worst k of them are looked for among all sets of k.
    """
    worlds = np.stack([np.argmax(world, axis=1) for world, _ in belief.survivors])
    held, many = column[worlds], np.array([weight for _, weight in belief.survivors], dtype=object)
    yes = held[:, slot] == value
    has, rest = sum(many[yes], 0), held[~yes]
    others = many[~yes]
    if not has:
        return Fraction(0)
    ruled_out = {
        tuple(np.flatnonzero(rest[:, person] == one).tolist())
        for person in range(held.shape[1])
        for one in set(rest[:, person].tolist())
    }
    most = max(
        (sum(others[list(set().union(*some))], 0) for some in combinations(ruled_out, min(facts, len(ruled_out)))),
        default=0,
    )
    return Fraction(int(has), int(has + sum(others, 0) - most))
