"""Linear and integer programs against all whole numbers that fit."""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from jali.core.programs import Sums, possible_ways, transport


@st.composite
def programs(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray, int, np.ndarray]:
    """A small matrix of sums, their limits, the largest each unknown can be, and an objective."""
    unknowns, sums = draw(st.integers(1, 4)), draw(st.integers(0, 3))
    matrix = np.array(draw(st.lists(st.integers(0, 2), min_size=sums * unknowns, max_size=sums * unknowns)))
    low = np.array(draw(st.lists(st.integers(0, 6), min_size=sums, max_size=sums)), dtype=float)
    more = np.array(draw(st.lists(st.integers(0, 3), min_size=sums, max_size=sums)), dtype=float)
    objective = np.array(draw(st.lists(st.integers(-2, 2), min_size=unknowns, max_size=unknowns)), dtype=float)
    return matrix.reshape(sums, unknowns), low, low + more, draw(st.integers(0, 3)), objective


def sums(matrix: np.ndarray, low: np.ndarray, high: np.ndarray, most: int) -> Sums:
    row, unknown = np.nonzero(matrix)
    weight = matrix[row, unknown].astype(float)
    return Sums(matrix.shape[1], row, unknown, low, high, weight, np.full(matrix.shape[1], float(most)))


class Range(NamedTuple):
    """What a sum lies between, and whether both ends are reached."""

    low: float
    high: float
    exact: bool


def range_of(known: Sums, objective: np.ndarray, deadline: float = math.inf) -> Range | None:
    """Minus the most of minus the sum, and the most of the sum; None where nothing fits."""
    least, most = (known.best(sign * objective, deadline=deadline) for sign in (-1.0, 1.0))
    assert (least is None) == (most is None)
    return None if least is None or most is None else Range(-least.limit, most.limit, least.exact and most.exact)


@given(programs())
def test_the_range_of_a_sum_is_that_of_all_whole_numbers_that_fit(
    program: tuple[np.ndarray, np.ndarray, np.ndarray, int, np.ndarray],
) -> None:
    """Enumeration of every x gives the same least and most, and the same verdict where nothing fits."""
    matrix, low, high, most, objective = program
    fits = [
        np.array(x)
        for x in itertools.product(range(most + 1), repeat=matrix.shape[1])
        if (matrix @ x >= low).all() and (matrix @ x <= high).all()
    ]
    known = sums(matrix, low, high, most)
    assert known.feasible() is bool(fits)
    found = range_of(known, objective)
    if not fits:
        assert found is None
        return
    totals = [float(objective @ x) for x in fits]
    assert found is not None
    assert tuple(found) == (min(totals), max(totals), True)


@given(programs())
def test_the_best_unknowns_fit_and_reach_the_most(
    program: tuple[np.ndarray, np.ndarray, np.ndarray, int, np.ndarray],
) -> None:
    """What is returned meets every sum and reaches the limit; with a gap it still fits, and the limit is not passed."""
    matrix, low, high, most, objective = program
    known = sums(matrix, low, high, most)
    found = range_of(known, objective)
    for gap in (0.0, 0.5):
        best = known.best(objective, gap=gap)
        assert (best is None) == (found is None)
        if best is None or found is None:
            continue
        assert best.x is not None
        x = np.rint(best.x)
        assert (matrix @ x >= low).all()
        assert (matrix @ x <= high).all()
        assert found.high <= best.limit
        assert objective @ x <= found.high
        assert gap or (best.exact and objective @ x == found.high == best.limit)


def test_without_time_nothing_is_claimed() -> None:
    """A deadline that has passed gives no bound and no verdict."""
    known = sums(np.array([[1, 1]]), np.array([2.0]), np.array([2.0]), 3)
    assert range_of(known, np.array([1.0, 0.0]), deadline=0.0) == (-math.inf, math.inf, False)
    assert known.feasible(deadline=0.0) is None


def test_unknowns_that_need_not_be_whole_give_the_linear_range() -> None:
    """2x + 2y = 3: x reaches 3/2 as a fraction; whole numbers do not fit at all."""
    args = (2, np.array([0, 0]), np.array([0, 1]), np.array([3.0]), np.array([3.0]), np.array([2.0, 2.0]))
    found = range_of(Sums(*args, whole=False), np.array([1.0, 0.0]))
    assert found is not None
    np.testing.assert_allclose(found[:2], [0, 1.5], atol=1e-9)
    assert range_of(Sums(*args), np.array([1.0, 0.0])) is None


@given(programs(), st.data())
def test_an_unknown_is_certain_where_every_x_that_fits_has_it_so(
    program: tuple[np.ndarray, np.ndarray, np.ndarray, int, np.ndarray], data: st.DataObject
) -> None:
    """Against every x: from one that fits, of the unknowns that are 0 or the most there."""
    matrix, low, high, most, _ = program
    every = [np.array(x) for x in itertools.product(range(most + 1), repeat=matrix.shape[1])]
    fits = [x for x in every if (matrix @ x >= low).all() and (matrix @ x <= high).all()]
    if not fits:
        return
    at = data.draw(st.sampled_from(fits))
    asked = (at == 0) | (at == most)
    sure, in_time = sums(matrix, low, high, most).certain(at, asked, deadline=math.inf)
    assert in_time
    assert sure.tolist() == [bool(some) and all(x[i] == at[i] for x in fits) for i, some in enumerate(asked)]


@given(programs())
def test_parts_are_apart(program: tuple[np.ndarray, np.ndarray, np.ndarray, int, np.ndarray]) -> None:
    """No sum has unknowns of two parts, and a part by itself has the range that it has among all."""
    matrix, low, high, most, objective = program
    known = sums(matrix, low, high, most)
    part = known.parts()
    assert all(len({*part[row > 0].tolist()}) <= 1 for row in matrix)
    if known.feasible():
        kept = part == part[0]
        alone = range_of(known.where(kept), objective[kept])
        assert alone == range_of(known, np.where(kept, objective, 0.0))


@given(st.data())
def test_a_transport_meets_all_needs_where_that_can_be(data: st.DataObject) -> None:
    """Against every way to send the amounts along the ways that there are; and which of these are ever used."""
    have = np.array(data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=3)))
    need = np.array(data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=3)))
    every = list(itertools.product(range(len(have)), range(len(need))))
    ways = data.draw(st.lists(st.sampled_from(every), unique=True, min_size=1, max_size=5))
    source, target = (np.array(side) for side in zip(*ways, strict=True))
    found = transport(have, need, source, target)

    def sent(amounts: np.ndarray) -> bool:
        left, come = np.bincount(source, amounts, len(have)), np.bincount(target, amounts, len(need))
        return bool((left == have).all() and (come == need).all())

    all_sent = [amounts for amounts in itertools.product(range(4), repeat=len(ways)) if sent(np.array(amounts))]
    used = possible_ways(have, need, source, target)
    assert (found is not None) == (used is not None) == bool(all_sent)
    assert found is None or sent(found)
    assert used is None or used.tolist() == [any(way) for way in zip(*all_sent, strict=True)]
