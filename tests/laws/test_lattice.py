"""Laws of the lattice search: it finds what judging every node finds."""

from __future__ import annotations

from fractions import Fraction

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

import jali
from jali.encoding.table import Table
from jali.errors import InfeasibleError, InputError
from jali.search.lattice.costs import METRICS
from jali.search.lattice.lattice import Lattice, frontier
from oracles.lattice import BruteForce
from oracles.often import examples


def _ignore(done: int, total: int) -> None:
    del done, total


ZIPS = ["13053", "13068", "14850", "14853", "14053"]
TREE = [("a", "x", "*"), ("b", "x", "*"), ("c", "y", "*"), ("d", "y", "*"), ("e", "y", "*")]


@st.composite
def tables(draw: st.DrawFn, *, persons: bool = False, weights: bool = False) -> Table:
    """Small tables with ties, single values, and every kind of hierarchy."""
    rows = draw(st.integers(1, 14))
    column = lambda values: draw(st.lists(st.sampled_from(values), min_size=rows, max_size=rows))  # noqa: E731
    frame = {
        "age": column(draw(st.sampled_from([[30], [20, 21, 29, 30], [1, 2, 3, 18, 35, None]]))),
        "zip": column(ZIPS[: draw(st.integers(1, 5))]),
        "tree": column([row[0] for row in TREE][: draw(st.integers(1, 4))]),
        "ill": column(["flu", "cold", "cancer", None][: draw(st.integers(1, 4))]),
    }
    given_columns = {"quasi": {"age": jali.bands(5, 10), "zip": jali.suppress(), "tree": jali.taxonomy(TREE)}}
    if persons:
        frame["who"] = draw(st.lists(st.integers(0, 6), min_size=rows, max_size=rows))
    if weights:
        frame["w"] = draw(st.lists(st.sampled_from([0.5, 1.0, 2.25]), min_size=rows, max_size=rows))
    return jali.table(
        pa.table(frame), **given_columns, sensitive=["ill"], person="who" if persons else None,
        weights="w" if weights else None, domain=draw(st.sampled_from(["declared", "present"])),
    )  # fmt: skip


requirements = st.lists(
    st.sampled_from(
        [
            jali.KAnonymity(2),
            jali.KAnonymity(3),
            jali.DistinctDiversity(2),
            jali.EntropyDiversity(1.5),
            jali.FrequencyDiversity(1.5),
            jali.RecursiveDiversity(2, 2),
            jali.TCloseness(0.3),
        ]
    ),
    min_size=1,
    max_size=2,
    unique=True,
)


def lattice_of(table: Table, principles: list) -> Lattice | None:  # type: ignore[type-arg]
    """The lattice, or None where the whole table fails already."""
    try:
        return Lattice(table, tuple(principles), on_step=_ignore)
    except (InfeasibleError, InputError):
        return None


@given(tables(), requirements)
def test_minimal_finds_exactly_the_minimal_nodes(table: Table, principles: list) -> None:  # type: ignore[type-arg]
    lattice = lattice_of(table, principles)
    if lattice is not None:
        assert lattice.minimal() == BruteForce(table, principles).minimal()


@given(tables(), requirements, st.sampled_from(METRICS), st.sampled_from(["0", "0.1", "0.25", "0.5", "0.99"]))
def test_the_best_node_is_the_best_of_all_under_the_budget(table, principles, metric, share):  # type: ignore[no-untyped-def]
    _same_best(table, principles, metric, Fraction(share))


@given(tables(weights=True), requirements, st.sampled_from(METRICS), st.sampled_from(["0", "0.3", "0.6"]))
def test_weights_count_in_the_cost_and_never_in_privacy(table, principles, metric, share):  # type: ignore[no-untyped-def]
    _same_best(table, principles, metric, Fraction(share))


@given(tables(persons=True), requirements, st.sampled_from(METRICS), st.sampled_from(["0", "0.3", "0.6"]))
def test_privacy_counts_people_even_where_their_rows_are_spread(table, principles, metric, share):  # type: ignore[no-untyped-def]
    _same_best(table, principles, metric, Fraction(share))


@pytest.mark.slow
@examples(30)
@given(tables(), requirements, st.sampled_from(METRICS), st.sampled_from(["0", "0.1", "0.25", "0.5", "0.99"]))
def test_thousands_of_tables_agree_with_brute_force(table, principles, metric, share):  # type: ignore[no-untyped-def]
    _same_best(table, principles, metric, Fraction(share))


def _same_best(table: Table, principles: list, metric: str, share: Fraction) -> None:  # type: ignore[type-arg]
    lattice = lattice_of(table, principles)
    if lattice is None:
        return
    oracle = BruteForce(table, principles)
    expected = oracle.best(metric, share)
    if expected is None:  # only where merging can break a promise, else it was told before
        assert not lattice.monotone
        with pytest.raises(InfeasibleError, match="were judged"):
            lattice.best(metric, share)  # type: ignore[arg-type]
        return
    node, hidden = lattice.best(metric, share)  # type: ignore[arg-type]
    groups = list(oracle.groups(node))
    found = [key for key, gone in zip(groups, hidden, strict=True) if gone]
    assert sorted(found) == sorted(oracle.suppressed(node, int(share * table.rows)) or [])
    assert oracle.cost(metric, node, found) == pytest.approx(expected[0], abs=1e-8)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=4).map(tuple), st.data())
def test_the_frontier_is_that_of_the_upward_closed_set(top: tuple[int, ...], data: st.DataObject) -> None:
    seeds = [*data.draw(st.lists(st.tuples(*(st.integers(0, t) for t in top)), max_size=4)), top]
    above = lambda node: any(all(s <= n for s, n in zip(seed, node, strict=True)) for seed in seeds)  # noqa: E731
    expected = {s for s in seeds if not any(o != s and all(a <= b for a, b in zip(o, s, strict=True)) for o in seeds)}
    assert frontier(top, above) == sorted(expected)


def test_an_impossible_requirement_says_what_the_whole_table_reaches() -> None:
    frame = pa.table({"age": [1, 2, 3, 4], "ill": ["a", "a", "a", "b"]})
    table = jali.table(frame, quasi=["age"], sensitive=["ill"])
    with pytest.raises(InfeasibleError, match=r"entropy diversity 2 cannot be met: the whole table reaches 1\.7"):
        jali.generalize(table, [jali.EntropyDiversity(2)])


def test_a_lattice_too_large_says_its_size_and_what_to_do() -> None:
    frame = pa.table({f"c{i}": ["abcdefgh", "hgfedcba"] for i in range(8)})
    table = jali.table(frame, quasi={f"c{i}": jali.mask() for i in range(8)})
    with pytest.raises(InputError, match=r"43,046,721 nodes.*partition"):
        jali.generalize(table, [jali.KAnonymity(2)])


def test_a_search_can_be_interrupted() -> None:
    table = jali.datasets.census(rows=500, seed=1)

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        jali.generalize(table, [jali.KAnonymity(5)], on_step=stop)


def test_row_order_never_changes_the_node() -> None:
    table = jali.datasets.census(rows=800, seed=3, quasi=["age", "sex", "education"])
    rows = table.frame("arrow")
    again = rows.take(pa.array(np.random.default_rng(0).permutation(rows.num_rows)))
    hierarchies = {"age": jali.bands(5, 10, 20, low=17, high=90), "sex": jali.suppress(), "education": jali.suppress()}
    found = [
        jali.generalize(
            jali.table(frame, quasi=hierarchies, sensitive=["occupation"]), [jali.KAnonymity(3)], suppress=0.02
        ).levels
        for frame in (rows, again)
    ]
    assert found[0] == found[1]
