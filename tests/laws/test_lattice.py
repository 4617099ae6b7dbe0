"""Laws of the lattice search: it finds what judging every node finds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

import jali
from jali import kernels
from jali.encoding.table import Table
from jali.errors import InfeasibleError, InputError
from jali.kernels import tallies
from jali.publish.checks import importance_of
from jali.search.gate import recorded
from jali.search.lattice import compiled
from jali.search.lattice.costs import METRICS
from jali.search.lattice.lattice import Lattice, frontier
from oracles.lattice import BruteForce
from oracles.often import examples


def _ignore(done: int, total: int) -> None:
    del done, total


PATHS = {"generic": (2**62, 10**6), "compiled": (-1, 10**6), "compiled, hardly any room for tallies": (-1, 0)}


@contextmanager
def path(name: str) -> Iterator[None]:
    """Search by this path, however small the table is."""
    before = kernels.LOOKS, compiled.GROUPS
    kernels.LOOKS, compiled.GROUPS = PATHS[name]
    try:
        yield
    finally:
        kernels.LOOKS, compiled.GROUPS = before


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
    expected = BruteForce(table, principles).minimal()
    for name in PATHS:
        lattice = lattice_of(table, principles)
        if lattice is not None:
            with path(name):
                assert lattice.minimal() == expected


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
    if lattice_of(table, principles) is None:
        return
    oracle = BruteForce(table, principles)
    expected = oracle.best(metric, share)
    found = set()
    for name in PATHS:
        with path(name):
            found.add(_the_best(table, principles, metric, share, oracle, expected))
    assert len(found) == 1, "every path breaks ties alike"


def _the_best(table, principles, metric, share, oracle, expected):  # noqa: PLR0917  # type: ignore[no-untyped-def]
    """The best node and what it suppresses, compared with the oracle's."""
    lattice = lattice_of(table, principles)
    assert lattice is not None
    if expected is None:  # only where merging can break a promise, else it was told before
        assert not lattice.monotone
        with pytest.raises(InfeasibleError, match="were judged"):
            lattice.best(metric, share)
        return None
    node, hidden = lattice.best(metric, share)
    groups = list(oracle.groups(node))
    found = [key for key, gone in zip(groups, hidden, strict=True) if gone]
    assert sorted(found) == sorted(oracle.suppressed(node, int(share * table.rows)) or [])
    assert oracle.cost(metric, node, found) == pytest.approx(expected[0], abs=1e-8)
    return node, tuple(hidden.tolist())


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


def test_what_kernels_cannot_judge_takes_the_generic_path() -> None:
    """Principles of users, those about all groups at once, and people with several rows."""
    rows = {"age": [1, 2, 3, 4, 5, 6] * 2, "ill": list("abcabc") * 2, "who": [0, 1, 2, 3, 4, 5] * 2}

    class Mine(jali.DistinctDiversity):
        """Has no compiled form, since a subclass never inherits one."""

    plain = jali.table(pa.table(rows), quasi=["age"], sensitive=["ill"])
    people = jali.table(pa.table(rows), quasi=["age"], sensitive=["ill"], person="who")
    with path("compiled"):
        for table, principle in ((plain, Mine(2)), (plain, jali.Safety(0.9, 1)), (people, jali.KAnonymity(2))):
            lattice = Lattice(table, (principle,), on_step=_ignore)
            assert lattice._compiled is None
            assert lattice.minimal() == BruteForce(table, [principle]).minimal() or principle.scope == "table"
        assert Lattice(plain, (jali.KAnonymity(2),), on_step=_ignore)._compiled is not None


def test_a_record_of_verdicts_is_kept_by_the_generic_path() -> None:
    table = jali.datasets.census(rows=60, seed=1, quasi=["age", "sex"])
    promise = (jali.KAnonymity(2), jali.DistinctDiversity(2))
    with path("compiled"), recorded() as trace:
        Lattice(table, promise, on_step=_ignore).best("loss", Fraction(0))
    assert trace.verdicts


def test_steps_of_a_compiled_search_are_heard_and_can_stop_it() -> None:
    table, heard = jali.datasets.census(rows=300, seed=1, quasi=["age", "sex", "education"]), []

    def stop(done: int, total: int) -> None:
        heard.append((done, total))
        raise KeyboardInterrupt

    for share in ("0", "0.1"):
        with path("compiled"), pytest.raises(KeyboardInterrupt):
            Lattice(table, (jali.KAnonymity(5),), on_step=stop).best("loss", Fraction(share))
    assert len(heard) == 2


@given(st.integers(0, 10_000))
def test_larger_tables_have_the_same_best_node_on_every_path(seed: int) -> None:
    """Ties, many values, missing ones, important columns, suppression that must take further groups in."""
    draw = np.random.default_rng(seed)
    rows, values, missing = int(draw.integers(20, 300)), int(draw.integers(1, 80)), float(draw.choice([0, 0.1, 0.9]))
    unknown = {name: draw.random(rows) < missing for name in "st"}
    frame = pa.table(
        {f"q{i}": draw.integers(0, int(draw.integers(1, 9)), rows) for i in range(3)}
        | {name: pa.array(draw.integers(0, n, rows), mask=unknown[name]) for name, n in (("s", values), ("t", 3))}
    )
    quasi = {"q0": jali.bands(2, 4, low=0, high=8), "q1": jali.bands(3, low=0, high=8), "q2": jali.suppress()}
    table = jali.table(frame, quasi=quasi, sensitive=["s", "t"])
    promise = [
        jali.KAnonymity(int(draw.integers(1, 9))),
        jali.EntropyDiversity(float(draw.choice([1, 1.5, 2])), sensitive="t"),
        jali.FrequencyDiversity(1.2, sensitive="s"),
    ][: int(draw.integers(1, 4))]
    metric, share = str(draw.choice(METRICS)), Fraction(str(draw.choice(["0", "0.05", "0.3"])))
    given = [None, {"q0": 3}, {"q1": 0.001, "q2": 40}][int(draw.integers(0, 3))]
    importance = None if given is None else importance_of(table, given)
    if lattice_of(table, promise) is None:
        return
    found = []
    for name, hardly_fewer in [*((name, False) for name in PATHS), ("compiled", True)]:
        lattice = lattice_of(table, promise)
        assert lattice is not None
        with path(name):
            if hardly_fewer and lattice._compiled is not None:  # as in a table whose combinations are nearly all rows
                lattice._compiled.room.counter[tallies.LEFT_OVER] = 1
            node, hidden = lattice.best(metric, share, importance)  # type: ignore[arg-type]
            assert name == "generic" or lattice._compiled is not None
        found.append((node, hidden.tolist()))
    assert found[0] == found[1] == found[2] == found[3]
