"""The idioms of `core/arrays.py` against the same spelled out."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jali.core import arrays
from jali.core.arrays import (
    Runs,
    added,
    added_by_key,
    combine,
    counted,
    exactly_added,
    found_among,
    is_dense,
    owners,
    pairs_of,
    portions,
    runs,
    runs_of,
    sorted_by,
    starts,
    steps,
)  # fmt: skip
from oracles import arrays as oracle

sizes = st.lists(st.integers(0, 4), max_size=8)
entries = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 5)), max_size=12)
keyed = st.lists(st.tuples(st.integers(0, 10**6) | st.integers(0, 9), st.integers(0, 5)), max_size=12)


def array(numbers: list[int]) -> arrays.Ints:
    return np.array(numbers, dtype=np.int64)


@pytest.fixture(autouse=True, params=[1 << 18, 2])
def piece(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Long arrays are worked on piece by piece: every law holds however small the pieces are."""
    monkeypatch.setattr(arrays, "_PIECE", request.param)


@given(entries, st.integers(0, 14))
def test_sums_by_index_are_those_of_each_index_alone(pairs: list[tuple[int, int]], length: int) -> None:
    """As floats, as whole numbers, and without amounts as a count; as long as asked, or as the largest index needs."""
    index, amount = [i for i, _ in pairs], [a for _, a in pairs]
    long = max([length, *(i + 1 for i in index)])
    wanted = oracle.sums(index, amount, long)
    assert added(array(index), array(amount), length).tolist() == wanted
    assert counted(array(index), array(amount), length).tolist() == wanted
    assert counted(array(index), length=length).tolist() == oracle.sums(index, [1] * len(index), long)
    assert added(array(index), array(amount), length).dtype == np.float64
    assert counted(array(index), array(amount), length).dtype == np.int64


@given(entries, st.integers(0, 12))
def test_a_negative_index_is_never_counted(pairs: list[tuple[int, int]], place: int) -> None:
    """Wherever it stands: a file that was forged may have one, and it must not become the last index."""
    index = [i for i, _ in pairs]
    index.insert(place, -1)
    with pytest.raises(ValueError, match="negative"):
        counted(array(index))


@given(entries.filter(len), st.sampled_from([1, 2**50, 2**58]))
def test_sums_of_large_integers_are_exact(pairs: list[tuple[int, int]], scale: int) -> None:
    """Where floats would round."""
    index, amount = [i for i, _ in pairs], [a * scale - 1 for _, a in pairs]
    assert exactly_added(array(index), array(amount), 10).tolist() == oracle.sums(index, amount, 10)


@given(keyed)
def test_sums_by_key_are_the_same_dense_and_sparse(pairs: list[tuple[int, int]]) -> None:
    """Keys that occur, in order, also with a sum of 0; the table of all keys and the sorted ones agree."""
    key, amount = [k for k, _ in pairs], [a for _, a in pairs]
    wanted = oracle.by_key(key, amount)
    with pytest.MonkeyPatch.context() as patch:
        for dense in (is_dense, lambda keys, entries: True, lambda keys, entries: False):
            patch.setattr(arrays, "is_dense", dense)
            keys, sums = added_by_key(array(key), array(amount))
            assert keys.tolist() == list(wanted)
            assert sums.tolist() == list(wanted.values())


@given(sizes, st.data())
def test_runs_are_counted_out(size: list[int], data: st.DataObject) -> None:
    """Where runs begin, whose each member is, and the members of runs from anywhere."""
    begin = data.draw(st.lists(st.integers(-3, 20), min_size=len(size), max_size=len(size)))
    start = starts(size)
    assert start.tolist() == [sum(size[:i]) for i in range(len(size) + 1)]
    assert owners(size).tolist() == [i for i, n in enumerate(size) for _ in range(n)]
    assert runs(array(begin), array(size)).tolist() == oracle.runs(begin, size)
    assert runs(0, array(size)).tolist() == oracle.runs([0] * len(size), size)
    which = data.draw(st.lists(st.integers(0, len(size) - 1), max_size=6)) if size else []
    many, places = runs_of(start, array(which))
    assert many.tolist() == [size[i] for i in which]
    assert places.tolist() == oracle.runs([int(start[i]) for i in which], [size[i] for i in which])


@given(st.lists(st.integers(0, 5), max_size=12), st.integers(1, 5))
def test_runs_are_numbers_in_order(numbers: list[int], at_once: int) -> None:
    """They are given back one by one; numbers that fall somewhere, or come before the first, are refused."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrays, "AT_ONCE", at_once)
        assert Runs.of(array(sorted(numbers))).each.tolist() == sorted(numbers)
        assert Runs.of(array(sorted(numbers)) + 3, begin=3).each.tolist() == sorted(numbers)
        if 0 in numbers:
            with pytest.raises(ValueError, match="begin with 1"):
                Runs.of(array(sorted(numbers)), begin=1)
        if numbers != sorted(numbers):
            with pytest.raises(ValueError, match="not in order"):
                Runs.of(array(numbers))


@given(st.lists(st.integers(0, 5), max_size=8), st.data())
def test_members_sorted_by_code_are_the_runs_of_the_codes(codes: list[int], data: st.DataObject) -> None:
    """Members of one code keep their order; codes that nobody has are empty runs."""
    order, start = sorted_by(array(codes), 7)
    wanted = [[i for i, code in enumerate(codes) if code == one] for one in range(7)]
    assert [order[a:b].tolist() for a, b in pairwise(start.tolist())] == wanted
    which = data.draw(st.lists(st.integers(0, 6), max_size=6))
    owner, place = pairs_of(start, array(which))
    assert list(zip(owner.tolist(), order[place].tolist(), strict=True)) == [
        (at, member) for at, one in enumerate(which) for member in wanted[one]
    ]


@given(sizes, st.integers(1, 6))
def test_portions_take_every_row_once_and_none_much_more_than_asked(work: list[int], most: int) -> None:
    """In order; a portion passes the limit only by the rows that end it."""
    parts = portions(array(work), most)
    assert len(parts) >= 1
    assert [row for part in parts for row in range(part.start, part.stop)] == list(range(len(work)))
    assert all(sum(work[part]) < 2 * most + max(work, default=0) for part in parts)


@given(st.integers(0, 20), st.integers(1, 9), st.integers(1, 30))
def test_steps_take_every_row_once_and_never_more_than_asked(rows: int, width: int, most: int) -> None:
    """Unless a single row is more."""
    parts = list(steps(rows, width, most))
    assert [row for part in parts for row in range(part.start, part.stop)] == list(range(rows))
    assert all((part.stop - part.start) * width <= max(most, width) for part in parts)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2**40)), min_size=1, max_size=10))
def test_distinct_rows_are_numbered_in_their_order(rows: list[tuple[int, int]]) -> None:
    """Whether keys fit into a table or not."""
    number, first = combine([(array([a for a, _ in rows]), 4), (array([b for _, b in rows]), 2**40 + 1)], len(rows))
    assert (number.tolist(), first.tolist()) == oracle.numbers(rows)


@given(st.sets(st.tuples(st.integers(0, 3), st.integers(0, 5)), min_size=1), st.data())
def test_rows_are_found_among_known_ones(rows: set[tuple[int, int]], data: st.DataObject) -> None:
    """Where each stands, and -1 for one that is not known; without columns all rows are the same."""
    known = data.draw(st.permutations(sorted(rows)))
    asked = data.draw(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), max_size=6))
    ours, theirs = ([array([row[at] for row in some]) for at in range(2)] for some in (known, asked))
    found = found_among(ours, theirs, [4, 6], len(known) + len(asked))
    assert found.tolist() == [known.index(row) if row in known else -1 for row in asked]
    assert found_among([], [], [], 1 + len(asked)).tolist() == [0] * len(asked)
