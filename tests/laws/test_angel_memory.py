"""ANGEL beyond memory: batches, buckets and marginals are those that memory makes of the same draws."""

from __future__ import annotations

import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jali
from jali.encoding.large import LargeTable
from jali.errors import InputError
from jali.publish import angel_large, angelize
from jali.publish.angel_large import Beyond
from jali.publish.portions import PERSON
from jali.releases.linked.private import Assigned
from jali.search.halves import Orders, seated
from jali.search.trunk import Branch, Trunk
from laws.test_memory import CUT_BY, PEOPLE, ROLES, both, many, order_of, outcome, watched_draws
from oracles.often import examples, first_often

PROMISES: list[Any] = [
    jali.FrequencyDiversity(2), jali.DistinctDiversity(2), jali.EntropyDiversity(1.5), jali.TCloseness(0.5),
    jali.RecursiveDiversity(3, 2), [jali.FrequencyDiversity(1.5), jali.AlphaAnonymity(0.8, 2)],
]  # fmt: skip
SEVERAL: Any = ROLES | {"sensitive": ["disease", "ward"]}
NAMED: list[Any] = [
    jali.FrequencyDiversity(1.5, sensitive="disease"), jali.MultiAttribute(jali.DistinctDiversity(2)),
    [jali.EntropyDiversity(1.2, sensitive="ward"), jali.DistinctDiversity(2, sensitive="disease")],
]  # fmt: skip
ASKED = st.one_of(
    st.tuples(st.sampled_from([ROLES, CUT_BY]), st.sampled_from(PROMISES)),
    st.tuples(st.just(SEVERAL), st.sampled_from(NAMED)),
)
MARGINALS = st.sampled_from([None, [["age", "disease"]], [["zip"], ["sex", "disease"]], [["sex", "zip", "disease"]]])
SHOWN = st.sampled_from([None, "taxonomy", "interval", "set", "pdf", "set-exact"])


def told(release: Any) -> tuple[Any, ...]:
    """What the tables of a release show, whatever the numbers of batches and the orders of rows."""
    batches: dict[int, dict[str, Counter[Any]]] = defaultdict(lambda: defaultdict(Counter))
    apart = {}
    for name, table in release.tables.items():
        rows = Counter(tuple(sorted(row.items(), key=str)) for row in table.drop(_numbers(table)).to_pylist())
        if "batch" not in table.column_names:
            apart[name] = rows
            continue
        for row in table.to_pylist():
            batches[row.pop("batch")][name][tuple(sorted(row.items(), key=str))] += 1
    each = Counter(
        tuple((name, frozenset(rows.items())) for name, rows in sorted(own.items())) for own in batches.values()
    )
    return each, apart


def _numbers(table: Any) -> list[str]:
    return [name for name in table.column_names if name == "batch"]


def same(found: Any, expected: Any, held: jali.Table) -> None:
    """Two releases show the same, and say the same of it."""
    assert told(found) == told(expected)
    first, second = found.manifest, expected.manifest
    assert (first.counts, first.domain, first.notes) == (second.counts, second.domain, second.notes)
    assert {name: own for name, own in first.method.items() if name != "tried"} == second.method
    assert first.metrics == pytest.approx(second.metrics, abs=1e-9)
    measured(found, held)


def measured(release: Any, held: jali.Table) -> Any:
    """A release is saved, verified from its files, and costs what its manifest says."""
    with tempfile.TemporaryDirectory() as folder:
        loaded = jali.load(release.save(Path(folder) / "out"))
    assert jali.measure(loaded, held).kl == pytest.approx(release.manifest.metrics["kl"], abs=1e-9)
    return loaded


@contextmanager
def forced(order: Any) -> Iterator[None]:
    """Equal halves in memory whose people are drawn, and of equal values divided, in this order."""

    def seat(table: jali.Table, required: Any, way: Any, step: Any) -> Assigned:
        listed = table.one_by_one()
        return Assigned.of_records(listed, seated(listed, required, way, Orders(order, order)))

    with patch.object(angelize, "seated_at_random", seat), patch.object(
        angelize, "BUCKETS", ("best", *angel_large.BUCKETS)
    ):  # fmt: skip
        yield


def same_halves(held: jali.Table, large: jali.Table, promises: Any, **options: Any) -> None:
    """Batches beyond memory are what memory makes of the same draws; or one line says what to change."""
    with watched_draws() as drawn:
        found = outcome(lambda: jali.angelize(large, promises, transparent=True, **options), large)
    if found is None:
        return
    with forced(order_of(held, drawn) if drawn else None):
        expected = outcome(lambda: jali.angelize(held, promises, transparent=True, **options), held)
    if isinstance(expected, str):
        assert found == expected
        return
    same(found, expected, held)
    assert found.transparent


@examples(1)
@given(
    st.lists(PEOPLE, min_size=8, max_size=60), st.integers(14, 40), ASKED,
    st.fixed_dictionaries({
        "buckets": st.sampled_from(["best", "partition", "partition-kl"]), "show": SHOWN, "marginals": MARGINALS,
        "batches": st.sampled_from(["best", "halves"]), "k": st.integers(1, 6),
    }), st.sampled_from(["declared", "present"]),
)  # fmt: skip
def test_halved_batches_beyond_memory_are_those_of_the_same_draws_in_memory(
    rows: list[Any], room: int, asked: Any, options: Any, domain: Any
) -> None:
    """Whoever is drawn, in whatever order: the same batches, buckets and marginals, with the same figures and claim."""
    roles, promises = asked
    held, large = both(rows, room, roles)
    if isinstance(large, LargeTable):
        same_halves(held.with_domain(domain), large.with_domain(domain), promises, **options)


@pytest.mark.parametrize("promise", [jali.EntropyDiversity(1.5), jali.FrequencyDiversity(2.5), jali.TCloseness(0.05)])
@pytest.mark.parametrize("room", first_often([150, 20]))
def test_a_small_budget_halves_batches_of_a_table_that_does_not_fit(room: int, promise: Any) -> None:
    """Nodes beyond memory are cut in the order of the cuts before, or are batches, as they are in memory."""
    held, large = both(many(), room, CUT_BY)
    assert isinstance(large, LargeTable)
    same_halves(held, large, promise, k=4, marginals=[["zip", "disease"]])


@examples(1)
@given(
    st.lists(PEOPLE, min_size=8, max_size=60), st.integers(14, 40), ASKED,
    st.fixed_dictionaries({
        "buckets": st.sampled_from(["partition", "partition-kl"]), "show": SHOWN, "marginals": MARGINALS,
        "k": st.integers(1, 6),
    }), st.sampled_from(["declared", "present"]),
)  # fmt: skip
def test_cut_batches_beyond_memory_are_those_in_memory(
    rows: list[Any], room: int, asked: Any, options: Any, domain: Any
) -> None:
    """The same batches, buckets and marginals, or the same plain generalization where that costs less."""
    roles, promises = asked
    held, large = both(rows, room, roles)
    expected, found = (
        outcome(lambda t=t: jali.angelize(t.with_domain(domain), promises, batches="partition", **options), t)
        for t in (held, large)
    )
    if isinstance(found, str) or isinstance(expected, str):
        assert found in (expected, None)
    elif found is not None:
        same(found, expected, held.with_domain(domain))


@examples(1)
@given(
    st.lists(PEOPLE, min_size=12, max_size=90), st.integers(20, 60),
    st.sampled_from([jali.FrequencyDiversity(2), jali.Safety(0.9, 1), jali.EntropyDiversity(1.2)]),
    st.fixed_dictionaries({"k": st.integers(1, 6), "transparent": st.booleans(), "marginals": MARGINALS}),
)  # fmt: skip
def test_dealt_batches_beyond_memory_are_those_in_memory(
    rows: list[Any], room: int, promise: Any, options: Any
) -> None:
    """Buckets are the same, batches have the same values, and what the manifest says of the costs is true."""
    held, large = both(rows, room, ROLES)
    asked: Any = options | {"batches": "anatomy", "buckets": "partition"}
    expected = outcome(lambda: jali.angelize(held, promise, **asked), held)
    found = outcome(lambda: jali.angelize(large, promise, **asked), large)
    if found is None or isinstance(expected, str):
        assert found is None or found == expected
        return
    measured(found, held)
    if found.manifest.method["batches"] != expected.manifest.method["batches"]:
        assert "own" in {each.manifest.method["batches"] for each in (found, expected)}  # costs of draws are compared
        return
    assert found.manifest.counts == expected.manifest.counts
    assert found.manifest.method == expected.manifest.method
    for name in found.tables:
        assert _cells(found, name) == _cells(expected, name)
    assert _batches(found) == _batches(expected)
    for name in ("average", "loss"):
        assert found.manifest.metrics[name] == pytest.approx(expected.manifest.metrics[name])


def _cells(release: Any, name: str) -> Counter[Any]:
    """What the rows of a table show, without the numbers of their batches."""
    rows = release.tables[name].to_pylist()
    return Counter(tuple(value for name, value in row.items() if name != "batch") for row in rows)


def _batches(release: Any) -> Counter[Any]:
    """The values of each batch, whatever its number."""
    own: dict[int, list[Any]] = {}
    for row in release.tables["batches"].to_pylist():
        own.setdefault(row["batch"], []).append((row["disease"], row["count"]))
    return Counter(tuple(sorted(values, key=str)) for values in own.values())


@examples(1)
@given(
    st.lists(PEOPLE, min_size=12, max_size=60), st.integers(18, 50), st.sampled_from(PROMISES), st.integers(1, 5),
    MARGINALS,
)  # fmt: skip
def test_the_best_beyond_memory_costs_no_more_than_what_memory_cuts(
    rows: list[Any], room: int, promises: Any, k: int, marginals: Any
) -> None:
    """Of all ways that can be done, cut batches are the same as in memory; the manifest says what was compared."""
    held, large = both(rows, room, ROLES)
    if not isinstance(large, LargeTable):
        return
    found = outcome(lambda: jali.angelize(large, promises, k=k, marginals=marginals), large)
    with patch.object(angelize, "TRIED", ("partition",)), patch.object(
        angelize, "BUCKETS", ("best", *angel_large.BUCKETS)
    ):  # fmt: skip
        expected = outcome(lambda: jali.angelize(held, promises, k=k, marginals=None), held)
    if found is None or isinstance(expected, str):
        assert found is None or found == expected
        return
    loaded = measured(found, held)
    assert loaded.manifest.method["tried"] == {
        "batches": ["partition", "halves", "anatomy"], "buckets": ["partition", "partition-kl"],
    }  # fmt: skip
    if marginals is None:
        assert found.manifest.metrics["kl"] <= expected.manifest.metrics["kl"] + 1e-9
        if found.manifest.method["batches"] in ("partition", "own"):
            assert found.manifest.metrics["kl"] == pytest.approx(expected.manifest.metrics["kl"], abs=1e-9)


@pytest.mark.slow
def test_a_budget_without_room_for_seats_leaves_dealt_batches_out() -> None:
    """They are refused where nothing else was asked for, in a line that says why."""
    _, large = both(many(), 60, ROLES)
    assert isinstance(large, LargeTable)
    assert large.memory < PERSON * large.rows
    assert jali.angelize(large, jali.FrequencyDiversity(2), k=4).manifest.method["batches"] != "anatomy"
    for promise in (jali.FrequencyDiversity(2), jali.Safety(0.9, 1)):
        with pytest.raises(InputError, match=r'batches="anatomy" holds 32 bytes for each row, more than memory = "11'):
            jali.angelize(large, promise, k=4, batches="anatomy" if promise.scope == "group" else "best")


def test_a_marginal_that_does_not_fit_says_so_in_one_line() -> None:
    """It names its columns, and nothing of the table."""
    _, large = both(many(), 60, ROLES)
    with pytest.raises(InputError, match=r"the marginal of age, zip has more combinations than memory holds; name"):
        jali.angelize(large, jali.FrequencyDiversity(2), k=4, marginals=[["age", "zip"]], transparent=True)


@pytest.mark.parametrize("buckets", first_often(["partition-kl", "partition", "best"]))
def test_no_sensitive_value_is_there_to_be_read_for_transparent_buckets(
    buckets: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trunks that form and compare them have no sensitive column, and none is counted for them or for a marginal."""
    _, large = both(many(), 60, ROLES)
    grow, sharpest, counting = Trunk.grow, Beyond._sharpest, type(large.elsewhere).count  # type: ignore[attr-defined]
    asked: list[set[str]] = []

    def watched(own: Trunk) -> list[Branch]:
        assert not own.table.sensitive
        return grow(own)

    def counted(own: Any, nodes: Any, **how: Any) -> Any:
        asked.append({*(how.get("of") or nodes)} | (how["within"].columns if how.get("within") else set()))
        return counting(own, nodes, **how)

    def watching(own: Beyond) -> Any:
        with patch.object(type(large.elsewhere), "count", counted):  # type: ignore[attr-defined]
            return sharpest(own)

    monkeypatch.setattr(Trunk, "grow", watched)
    monkeypatch.setattr(Beyond, "_sharpest", watching)
    jali.angelize(
        large, jali.FrequencyDiversity(2), k=4, buckets=buckets, transparent=True, marginals=[["zip", "disease"]]
    )
    assert asked
    assert not any("disease" in names for names in asked)


def test_rows_find_the_branch_that_an_engine_counts_them_in() -> None:
    """By the bounds of the cuts alone."""
    held, large = both(many(), 60, CUT_BY)
    assert isinstance(large, LargeTable)
    trunk = Trunk(large, (jali.KAnonymity(4),), split="range", importance=None, on_step=lambda done, total: None)
    branches = trunk.grow()
    assert len(branches) > 2
    pieces = [*trunk.pieces(branches, other=False)]
    for at, piece in enumerate(pieces):
        assert set(trunk.branch_of(branches, {c.name: c.codes for c in piece.columns}).tolist()) == {at}
    assert sum(piece.rows for piece in pieces) == held.rows == int(np.sum([branch.rows for branch in branches]))
