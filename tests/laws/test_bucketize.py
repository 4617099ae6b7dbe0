"""Laws of dealing people into buckets of different values."""

from __future__ import annotations

from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jali.errors import InfeasibleError, InputError
from jali.search.batches import deal, reach
from oracles import anatomy as oracle


@given(st.data())
def test_every_bucket_has_at_least_l_people_with_different_values_and_l_or_one_more_where_it_can(
    data: st.DataObject,
) -> None:
    """And everybody is in one bucket, there are as many buckets as there can be, numbered without gaps."""
    values = np.array(data.draw(st.lists(st.integers(0, 8), min_size=1, max_size=80)))
    l = data.draw(st.integers(1, reach(np.bincount(values))))
    bucket = deal(values, l, np.random.default_rng(data.draw(st.integers(0, 99))).permutation(len(values)))
    buckets, leftovers = len(values) // l, len(values) % l
    assert sorted(set(bucket.tolist())) == list(range(buckets))
    for number in range(buckets):
        here = values[bucket == number].tolist()
        assert len(here) >= l
        assert len(set(here)) == len(here)
        if buckets >= leftovers:
            assert len(here) in (l, l + 1)
    sizes = np.bincount(bucket)
    assert sizes.max() - sizes.min() <= 1


@given(st.lists(st.integers(0, 3), min_size=1, max_size=7), st.integers(1, 8))
def test_what_cannot_be_dealt_is_refused_and_nothing_else(values: list[int], l: int) -> None:
    """Against trying every way; the message names the largest l that can be reached."""
    given_, order = np.array(values), np.arange(len(values))
    if oracle.can_be_dealt(values, l):
        deal(given_, l, order)
        return
    most = len(values) // oracle.most_frequent(values)
    assert not any(oracle.can_be_dealt(values, more) for more in range(most + 1, l + 1))
    with pytest.raises(InfeasibleError, match=f"can reach is {most}$"):
        deal(given_, l, order)


@pytest.mark.parametrize(
    ("values", "l"), [((0, 0, 1, 1), 2), ((0, 1, 1, 2), 2), ((0, 0, 1, 1, 2), 2), ((0, 1, 2, 2), 2), ((0, 0, 1, 2), 2)]
)
def test_who_knows_the_algorithm_learns_nothing_from_it(values: tuple[int, ...], l: int) -> None:
    """Every table that fits some buckets gives rise to them equally often, over all orders of the records."""
    ways: dict[object, Counter[tuple[int, ...]]] = {}
    tables = oracle.tables(values)
    for table in tables:
        for order in permutations(range(len(values))):
            bucket = deal(np.array(table), l, np.array(order))
            ways.setdefault(oracle.published(table, bucket.tolist()), Counter())[table] += 1
    for seen, found in ways.items():
        fits = [t for t in tables if all(tuple(sorted(t[i] for i in people)) == held for people, held in seen)]  # type: ignore[attr-defined]
        assert set(found) == set(fits)
        assert len(set(found.values())) == 1


def test_who_meets_whom_follows_the_order_given_and_not_that_of_the_records() -> None:
    """The same people in another order, dealt by the same order of people, meet the same people."""
    random = np.random.default_rng(0)
    values, order = random.integers(0, 6, 60), random.permutation(60)
    moved = random.permutation(60)
    place = np.empty(60, dtype=np.int64)
    place[moved] = np.arange(60)
    first, second = deal(values, 3, order), deal(values[moved], 3, place[order])
    assert (first[moved] == second).all()
    met = {frozenset(np.flatnonzero(deal(values, 3, random.permutation(60)) == 0).tolist()) for _ in range(20)}
    assert len(met) == 20


@pytest.mark.parametrize(("values", "l"), [([4], 1), ([0, 0, 0], 1), ([0, 1, 2], 3), ([7, 7, 3, 3], 2), ([0, 1], 1)])
def test_the_edges(values: list[int], l: int) -> None:
    """One person, one value, one bucket for all."""
    bucket = deal(np.array(values), l, np.arange(len(values)))
    assert len(set(bucket.tolist())) == len(values) // l


def test_wrong_arguments_are_refused() -> None:
    for l in (0, -1):
        with pytest.raises(InputError, match="at least one"):
            deal(np.array([0, 1]), l, np.arange(2))
    with pytest.raises(InputError, match="one place"):
        deal(np.array([0, 1]), 1, np.arange(3))


def test_many_values_are_ranked_without_overflow() -> None:
    """More than 2**16 of them."""
    values = np.arange(70_000)
    bucket = deal(values, 7, np.random.default_rng(1).permutation(len(values)))
    assert (np.bincount(bucket) == 7).all()
