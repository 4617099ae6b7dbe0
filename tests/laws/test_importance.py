"""What matters to the analyst stays sharp: costs are weighed by column, and the best is still the best of all."""

from __future__ import annotations

from fractions import Fraction
from typing import Any
from unittest.mock import patch

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

import jali
from jali import kernels
from jali.encoding.table import Table
from jali.errors import InfeasibleError, InputError
from jali.publish.checks import importance_of
from jali.search.halves import _compiled_cut, _plain_cut, people_of
from jali.search.items import MODES, columns_of
from jali.search.lattice.costs import METRICS
from jali.search.lattice.lattice import Lattice
from jali.search.mondrian import mondrian
from jali.search.recode import recode_groups
from oracles.importance import Weighed, WeighedReference, relative, weighed_granularity, weighed_kl
from oracles.often import examples, seeds

TREE = [("a", "x", "*"), ("b", "x", "*"), ("c", "y", "*"), ("d", "y", "*"), ("e", "y", "*")]
BUILDERS = {"age": jali.bands(5, 10), "zip": jali.suppress(), "tree": jali.taxonomy(TREE)}
promises = st.lists(
    st.sampled_from([jali.KAnonymity(2), jali.KAnonymity(3), jali.DistinctDiversity(2), jali.TCloseness(0.3)]),
    min_size=1, max_size=2, unique=True,
)  # fmt: skip
importances = st.dictionaries(
    st.sampled_from(sorted(BUILDERS)), st.sampled_from([0.001, 0.25, 0.5, 1, 2, 3, 7.5, 40]), min_size=1
)
splits = st.sampled_from(["range", "entropy", "kl", "pdf"])
ALIKE = st.sampled_from([None, {}, {"age": 1, "zip": 1.0}, {"age": 3, "zip": 3, "tree": 3}])


@st.composite
def tables(draw: st.DrawFn, *, weights: bool = False, most: int = 14) -> Table:
    """Small tables with ties, single values, and several kinds of hierarchy."""
    rows = draw(st.integers(1, most))
    column = lambda values: draw(st.lists(st.sampled_from(values), min_size=rows, max_size=rows))  # noqa: E731
    frame = {
        "age": column(draw(st.sampled_from([[30], [20, 21, 29, 30], [1, 2, 3, 18, 35, None]]))),
        "zip": column(["13053", "13068", "14850", "14853"][: draw(st.integers(1, 4))]),
        "tree": column([row[0] for row in TREE][: draw(st.integers(1, 5))]),
        "ill": column(["flu", "cold", None][: draw(st.integers(1, 3))]),
    }
    if weights:
        frame["w"] = draw(st.lists(st.sampled_from([0.5, 1.0, 2.25]), min_size=rows, max_size=rows))
    return jali.table(
        pa.table(frame), quasi=BUILDERS, sensitive=["ill"], weights="w" if weights else None,
        domain=draw(st.sampled_from(["declared", "present"])),
    )  # fmt: skip


def lattice_of(table: Table, principles: list[Any]) -> Lattice | None:
    try:
        return Lattice(table, tuple(principles), on_step=lambda done, total: None)
    except (InfeasibleError, InputError):
        return None


@given(
    st.booleans().flatmap(lambda weights: tables(weights=weights)), promises, st.sampled_from(METRICS),
    st.sampled_from(["0", "0.1", "0.3", "0.6", "0.99"]), importances,
)  # fmt: skip
@examples(4)
def test_the_best_weighed_node_is_the_best_of_all(
    table: Table, principles: list[Any], metric: Any, share: str, importance: dict[str, float]
) -> None:
    """Every node, every suppression within the budget, every row: no bound cut off the best one."""
    lattice = lattice_of(table, principles)
    oracle = Weighed(table, principles, importance)
    expected = None if lattice is None else oracle.best(metric, Fraction(share))
    if lattice is None or expected is None:
        return
    for looks in (2**62, -1):  # without kernels and with them
        with patch.object(kernels, "LOOKS", looks):
            node, hidden = Lattice(table, tuple(principles), on_step=lambda done, total: None).best(
                metric, Fraction(share), importance_of(table, importance)
            )
        groups = list(oracle.groups(node))
        gone = [key for key, one in zip(groups, hidden, strict=True) if one]
        assert sorted(gone) == sorted(oracle.suppressed(node, int(Fraction(share) * table.rows)) or [])
        assert oracle.cost(metric, node, gone) == pytest.approx(expected[0], abs=1e-8)


@given(tables(), promises, importances)
def test_weighed_costs_only_grow_upwards(table: Table, principles: list[Any], importance: dict[str, float]) -> None:
    """A finer node never costs more, so that nothing is generalized needlessly, however unimportant."""
    oracle = Weighed(table, principles, importance)
    for node in oracle.nodes():
        for i, level in enumerate(node):
            if level:
                finer = (*node[:i], level - 1, *node[i + 1 :])
                for metric in ("kl", "loss", "height"):
                    assert oracle.cost(metric, finer, []) <= oracle.cost(metric, node, []) + 1e-9


@given(tables(), promises, st.sampled_from(METRICS), st.sampled_from([0.0, 0.3]), ALIKE)
def test_columns_that_are_alike_give_what_no_importance_gives(
    table: Table, principles: list[Any], metric: Any, suppress: float, alike: dict[str, float] | None
) -> None:
    """Exactly: the same levels and the same figures; of importance only ratios count."""
    assert importance_of(table, alike) is None
    try:
        plain = jali.generalize(table, principles, metric=metric, suppress=suppress)
    except (InfeasibleError, InputError):
        return
    weighed = jali.generalize(table, principles, metric=metric, suppress=suppress, importance=alike)
    assert (plain.levels, plain.manifest.metrics) == (weighed.levels, weighed.manifest.metrics)
    assert weighed.manifest.method == plain.manifest.method


@given(
    tables(most=40), promises, st.sampled_from(MODES), st.sampled_from(["range", "entropy", "kl", "pdf"]), importances
)
@examples(4)
def test_important_columns_are_cut_first(
    table: Table, principles: list[Any], mode: Any, split: str, importance: dict[str, float]
) -> None:
    """As the reference cuts, record by record; and compiled or not, with the same result."""
    how: Any = {
        "mode": mode,
        "split": "kl" if split == "pdf" else split,
        "importance": importance_of(table, importance),
    }
    how |= {"similarity": "pdf"} if split == "pdf" else {}
    try:
        boxes = mondrian(table, principles, **how)
    except (InfeasibleError, InputError):
        return
    reference = WeighedReference(table, principles, mode, how["split"], how.get("similarity", "box"))
    reference.times = relative(table, importance)
    if how["importance"] is None:
        return  # the exact comparison of parts, which test_mondrian.py checks
    expected = np.empty(table.records, dtype=np.int64)
    for number, rows in enumerate(reference.groups()):
        expected[rows] = number
    found = boxes.row_group if boxes.group is None else boxes.group[table.frequencies.row_combination]
    assert found is not None
    assert found.tolist() == expected.tolist()
    again = mondrian(table, principles, judge=Anything(), **how)
    assert again.groups == boxes.groups


class Anything:
    """A judge that allows everything, so that the generic path is taken."""

    def allows(self, group: Any, parts: Any) -> bool:
        return bool(parts.size.sum() == group.size.sum())

    def commit(self, group: Any, parts: Any) -> None:
        """Nothing to remember."""


@given(seeds, st.sampled_from(["area", "range"]))
def test_equal_halves_are_weighed_alike_compiled_or_not(seed: int, by: Any) -> None:
    """And the importance of a column decides which one is cut."""
    rng = np.random.default_rng(seed)
    rows = {name: rng.integers(0, 9, 64) for name in ("a", "b")}
    quasi = {"a": jali.bands(3), "b": jali.bands(3)}
    table = jali.table(pa.table({**rows, "ill": rng.integers(0, 3, 64)}), quasi=quasi, sensitive=["ill"])
    people = people_of(table)
    nodes = rng.permutation(64).astype(np.int32).reshape(4, 16)
    cuts = []
    for importance in ({"a": 1000}, {"b": 1000}):
        columns = columns_of(table, importance_of(table, importance))
        plain, compiled = (make(columns, people.combination, by, False) for make in (_plain_cut, _compiled_cut))
        (halves, uncut), (others, alike) = plain(nodes), compiled(nodes)
        assert (halves.tolist(), uncut.tolist()) == (others.tolist(), alike.tolist())
        cuts.append(halves)
    for column, halves in zip(("a", "b"), cuts, strict=True):
        values = rows[column][halves].reshape(4, 2, 8)
        assert (values[:, 0].max(axis=1) <= values[:, 1].min(axis=1)).all()


@given(tables(), promises, st.sampled_from(["kl", "granularity"]), st.sampled_from(["taxonomy", "set"]), importances)
def test_what_recoding_reaches_is_weighed(
    table: Table, principles: list[Any], objective: Any, show: Any, importance: dict[str, float]
) -> None:
    """As the definitions say, row by row; and no full-domain generalization is better."""
    try:
        weights = importance_of(table, importance)
        found = recode_groups(table, principles, objective=objective, show=show, importance=weights)
    except (InfeasibleError, InputError):
        return
    times, group = relative(table, importance), found.group.tolist()
    slow = weighed_kl if objective == "kl" else weighed_granularity
    assert found.reached == pytest.approx(slow(table, group, show, times), abs=1e-9)
    oracle = Weighed(table, principles, importance)
    best = [oracle.cost("kl", node, []) for node in oracle.minimal()] if objective == "kl" else []
    assert all(found.reached <= cost + 1e-6 for cost in best)


def test_the_figures_that_are_reported_are_not_weighed() -> None:
    """The same levels have the same KL, whoever finds which column important; the release tells the importance."""
    rng = np.random.default_rng(0)
    frame = {"age": rng.integers(20, 40, 200), "zip": rng.choice(["1", "2", "3"], 200), "ill": rng.integers(0, 3, 200)}
    table = jali.table(pa.table(frame), quasi={"age": jali.bands(5, 10), "zip": jali.suppress()}, sensitive=["ill"])
    sharp = jali.generalize(table, jali.KAnonymity(25), importance={"zip": 50})
    plain = jali.generalize(table, jali.KAnonymity(25))
    other = jali.generalize(table, jali.KAnonymity(25), importance={"age": 50})
    assert (sharp.levels["zip"], other.levels["age"]) == (0, 1)
    assert sharp.levels != other.levels
    again = jali.generalize(table, jali.KAnonymity(25), levels=sharp.levels)
    assert again.manifest.metrics == sharp.manifest.metrics
    assert sharp.manifest.method["importance"] == {"zip": 50.0}
    assert "importance" not in plain.manifest.method
    assert sharp.manifest.metrics["kl"] >= plain.manifest.metrics["kl"]


@pytest.mark.parametrize("verb", ["generalize", "partition", "recode"])
def test_an_attacker_who_knows_the_algorithm_knows_the_importance(verb: str) -> None:
    """Replayed with it, the true table leads to the release."""
    frame = {"age": [21, 22, 31, 32, 41, 42, 51, 52], "zip": list("abababab"), "ill": list("xyxyxxyy")}
    quasi = {"age": jali.bands(10, 20), "zip": jali.suppress()}
    table = jali.table(pa.table(frame), quasi=quasi, sensitive=["ill"])
    release = getattr(jali, verb)(table, jali.DistinctDiversity(2), importance={"zip": 40})
    figures = jali.attacks(release, table)["algorithm"].figures
    assert figures["worlds that lead to the release"] >= 1


@pytest.mark.parametrize("verb", ["generalize", "partition", "recode"])
@pytest.mark.parametrize(
    ("importance", "message"),
    [
        ({"agee": 2}, 'did you mean "age"'),
        ({"age": 0}, "must be a number above 0"),
        ({"age": -1}, "must be a number above 0"),
        ({"age": float("nan")}, "must be a number"),
        ({"age": float("inf")}, "must be a number"),
        ({"age": "much"}, "must be a number"),
        ({"age": True}, "must be a number"),
        ({"age": 1e-9}, "1,000,000 times"),
        ([1, 2], "importance is by column"),
        (3, "importance is by column"),
    ],
)
def test_a_wrong_importance_is_refused_in_one_line(verb: str, importance: Any, message: str) -> None:
    table = jali.table(pa.table({"age": [1, 2, 3, 4], "zip": ["a", "b", "a", "b"]}), quasi=["age", "zip"])
    with pytest.raises(InputError, match=message):
        getattr(jali, verb)(table, jali.KAnonymity(2), importance=importance)
