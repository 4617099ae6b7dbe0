"""Bounds of counts from all marginals together: no table that agrees passes them, and some table reaches them."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
from hypothesis import given

import jali
from jali.graphical.marginal import Cache
from jali.graphical.privacy.privacy import check
from jali.graphical.search import Found
from jali.publish.marginals import publish_collection
from oracles import collections as oracle

PAIR = [(0, -1, 0), (-1, 0, 0)]
CHAIN = [(0, 0, -1), (-1, 0, 0)]
APART = [(0, -1, 0), (-1, 0, -1)]
TRIANGLE = [(0, 0, -1), (-1, 0, 0), (0, -1, 0)]
LEVELS = [(0, -1, 0), (1, 0, 0)]  # the first column at two levels
MAPS = [[[0, 1, 2], [0, 0, 1]], [[0, 1, 2]], [[0, 1, 2]]]


def released(rows: list[tuple[int, ...]], collection: list[tuple[int, ...]]) -> Any:
    """The release of just these marginals."""
    tree = jali.taxonomy([("a0", "a01", "*"), ("a1", "a01", "*"), ("a2", "a2", "*")])
    names = ("a", "b", "s")
    data = {name: [f"{name}{row[i]}" for row in rows] for i, name in enumerate(names)}
    table = jali.table(pa.table(data), quasi={"a": tree, "b": jali.suppress()}, sensitive=["s"])
    cache = Cache.of(table)
    marginals = tuple(
        cache.domain.marginal({name: level for name, level in zip(names, levels, strict=True) if level >= 0})
        for levels in collection
    )
    found = Found(marginals, 0.0, check(marginals, cache, jali.KAnonymity(1)), 1, True)
    told = {"name": "marginals", "base": False, "search": "greedy", "attacker": "marginals"}
    return publish_collection(table, cache, found, (jali.KAnonymity(1),), told)


ROW = st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 2))
SOME = st.sets(st.integers(0, 2), min_size=1, max_size=2)


@given(
    st.lists(ROW, min_size=1, max_size=12), st.sampled_from([PAIR, CHAIN, APART, LEVELS, TRIANGLE]), SOME, SOME, SOME
)
def test_bounds_of_a_count_are_those_of_all_tables_that_agree(
    rows: list[tuple[int, ...]], collection: list[tuple[int, ...]], a: set[int], b: set[int], s: set[int]
) -> None:
    """Against integer programs over every cell; where a collection is not decomposable they are still bounds."""
    present = [{row[i] for row in rows} for i in range(3)]
    if any(len(values) < 2 for values in present):
        return  # a column with one value stands in no marginal
    rows = [*rows, *((x, rows[0][1], rows[0][2]) for x in range(3) if x not in present[0])]
    estimate = released(rows, collection).estimate()
    said = " AND ".join(
        f"{name} IN ({', '.join(repr(f'{name}{v}') for v in sorted(some))})"
        for name, some in (("a", a), ("b", b), ("s", s))
    )
    count = estimate.count(said)
    inside = {cell for cell in oracle.domain(MAPS) if cell[0] in a and cell[1] in b and cell[2] in s}
    most = oracle.most_within(inside, rows, collection, MAPS)
    least = len(rows) - oracle.most_within(set(oracle.domain(MAPS)) - inside, rows, collection, MAPS)
    assert count.low <= least
    assert most <= count.high
    if collection != TRIANGLE:
        assert (count.low, count.high) == (least, most)
