"""An attacker who replays dealing over all worlds and all orders.

The publisher lays everybody in a row, value by value, each value in random order, and deals the row out. So a world
together with the order within each value is a permutation of the people, and all of them are equally likely: all are
listed. Anatomy publishes the bucket of each person. ANGEL publishes how many people of each class of quasi-identifiers
are in each batch, and then the belief is the mixture of the shares of the batches.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

import numpy as np

from jali.core.arrays import Ints
from jali.principles import Safety
from jali.principles.base import Principle
from jali.search.batches import deal, reach
from red_team.cases import Case
from red_team.worlds import Outcome, World, arrangements, believed, excess, number_of_worlds, numbered, orders


def l_of(case: Case) -> int | None:
    """How many different values a bucket needs; None where the people cannot be dealt so."""
    l = max(_needed(p, case.people) for p in case.principles)
    return l if l <= reach(np.bincount(case.value)) else None


@cache
def _needed(principle: Principle, people: int) -> int:
    return principle.dealt_by(people)


@cache
def dealt(histogram: tuple[int, ...], l: int) -> tuple[World, World, Ints]:
    """Every world with every order within its values, (ways, people), the bucket of everybody, and the buckets' values.

    The last are (buckets, values), the same in every way.
    """
    values = np.repeat(np.arange(len(histogram)), histogram)
    bucket = deal(values, l, np.arange(len(values)))
    ways = orders(len(values))  # way[i] is the person who stands where person i does when nobody is moved
    worlds, buckets = np.empty_like(ways), np.empty_like(ways)
    np.put_along_axis(worlds, ways.astype(np.int64), values[None, :].astype(np.int8), axis=1)
    np.put_along_axis(buckets, ways.astype(np.int64), bucket[None, :].astype(np.int8), axis=1)
    contents = np.zeros((int(bucket.max()) + 1, len(histogram)), dtype=np.int64)
    np.add.at(contents, (bucket, values), 1)
    return worlds, buckets, contents


def literal(value: World, l: int) -> dict[tuple[tuple[int, ...], tuple[int, ...]], int]:
    """How often each world and buckets come about when `deal` is called with every world and every order."""
    often: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}
    for world in arrangements(tuple(np.bincount(value).tolist())):
        for order in orders(len(world)):
            made = deal(world.astype(np.int64), l, order.astype(np.int64))
            key = (tuple(world.tolist()), tuple(made.tolist()))
            often[key] = often.get(key, 0) + 1
    return often


def anatomy(case: Case) -> Outcome | None:
    """Belief against share where everybody's bucket is published; all worlds that fit must be equally likely."""
    l = l_of(case)
    if l is None:
        return None
    histogram = case.histogram
    releases, worst, even = _known(histogram, l)
    broken = int((~case.hold(dealt(histogram, l)[2], case.promises)).sum())
    return Outcome(number_of_worlds(histogram), releases, worst, broken + (0 if even else releases))


@cache
def _known(histogram: tuple[int, ...], l: int) -> tuple[int, Fraction, bool]:
    """Releases, the worst excess, and whether all worlds that fit the buckets are equally likely."""
    worlds, buckets, contents = dealt(histogram, l)
    key, first = numbered([*buckets.T.astype(np.int64)])
    belief, total = believed(key, worlds, len(histogram))
    share, size = contents[buckets[first]], contents.sum(axis=1)[buckets[first]]
    worst = excess(belief, total[:, None, None], share, size[:, :, None])
    pair, at = numbered([key, *worlds.T.astype(np.int64)])
    fitting = math.prod(number_of_worlds(bucket) for bucket in contents)
    even = len(set(np.bincount(pair).tolist())) == 1 and set(np.bincount(key[at]).tolist()) == {fitting}
    return len(first), worst, even


def angel(case: Case, bucket: Ints) -> Outcome | None:
    """Belief against the mixture of batch shares, where `bucket` is everybody's class of quasi-identifiers."""
    l = l_of(case)
    if l is None:
        return None
    histogram = case.histogram
    worlds, batches, contents = dealt(histogram, l)
    many = len(contents)
    members = (batches[:, :, None] == np.arange(many)).astype(np.int64)  # (ways, people, batches)
    table = np.stack([members[:, bucket == b].sum(axis=1) for b in range(int(bucket.max()) + 1)], axis=1)
    key, first = numbered([*table.reshape(len(worlds), -1).T])
    belief, total = believed(key, worlds, len(histogram))
    size = contents.sum(axis=1)
    common = math.lcm(*size.tolist())
    mixed = table[first] @ (contents * (common // size)[:, None])  # (releases, buckets, values)
    whole = np.bincount(bucket) * common
    worst = excess(belief, total[:, None, None], mixed[:, bucket], whole[bucket][None, :, None])
    kept = case.hold(contents, case.promises).all()
    one_by_one = tuple(p for p in case.promises if not isinstance(p, Safety) or p.k == 0)
    held = case.hold(belief.reshape(-1, len(histogram)) * 1000, one_by_one).reshape(len(first), -1).all(axis=1)
    return Outcome(number_of_worlds(histogram), len(first), worst, int((~held).sum()) + (0 if kept else len(first)))
