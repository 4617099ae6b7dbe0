"""A missing sensitive value is no value: promises about values are judged on the people whose value is known."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jali
from jali.principles.base import Principle, hold, least_people
from jali.principles.counts import Counts, Sensitive, dense
from jali.risk.audit.audit import audit
from jali.search.batches import deal, reach
from oracles.often import examples

NAMES = ("a", "b", "c", None)
COLUMN = Sensitive("ill", NAMES, ordered=True, unknown=3)
PLAIN = Sensitive("ill", NAMES[:3], ordered=True)
ABOUT_VALUES = [
    jali.DistinctDiversity(2), jali.FrequencyDiversity(2), jali.EntropyDiversity(1.7), jali.RecursiveDiversity(2, 2),
    jali.EntropyDiversity(2, dont_care=["a"]), jali.RecursiveDiversity(3, 2, protected=["b"], share=0.1),
    jali.TCloseness(0.3), jali.TCloseness(0.3, distance="ordered"), jali.AlphaAnonymity(0.6, 1), jali.Safety(0.8, 1),
    jali.AlphaAnonymity(0.5, 1, values=["a"]), jali.RecursiveDiversity(2, 2, dont_care=["c"]),
]  # fmt: skip
matrices = st.integers(1, 6).flatmap(
    lambda groups: st.lists(
        st.lists(st.integers(0, 4), min_size=4, max_size=4).filter(any), min_size=groups, max_size=groups
    )
)


@examples(4)
@given(matrices, st.sampled_from(ABOUT_VALUES))
def test_a_group_is_judged_as_if_only_those_were_there_whose_value_is_known(
    rows: list[list[int]], principle: Principle
) -> None:
    """By verdict and by level; where nobody is known, there is nothing to learn."""
    matrix = np.array(rows)
    counts, known = dense(matrix, (COLUMN,)), dense(matrix[:, :3], (PLAIN,))
    somebody = matrix[:, :3].sum(axis=1) > 0
    assert principle.holds(counts).tolist() == principle.holds(known).tolist()
    assert principle.holds(counts)[~somebody].all()
    assert principle.level(counts)[somebody] == pytest.approx(principle.level(known)[somebody])
    if somebody.any():
        assert principle.worst(counts) == pytest.approx(principle.worst(known))
    assert principle.alone(counts).tolist() == principle.alone(known).tolist()


@given(matrices, st.integers(1, 6))
def test_k_counts_everybody(rows: list[list[int]], k: int) -> None:
    counts = dense(np.array(rows), (COLUMN,))
    assert jali.KAnonymity(k).holds(counts).tolist() == [sum(row) >= k for row in rows]
    both = jali.AlphaAnonymity(1, k).holds(counts).tolist()
    assert both == [sum(row) >= k for row in rows]


@given(matrices, st.sampled_from([p for p in ABOUT_VALUES if p.monotone]), st.randoms(use_true_random=False))
def test_merging_groups_never_breaks_a_promise_where_values_are_missing(
    rows: list[list[int]], principle: Principle, random: Any
) -> None:
    counts = dense(np.array(rows), (COLUMN,))
    if principle.holds(counts).all():
        into = np.array([random.randrange(len(rows)) for _ in rows])
        _, into = np.unique(into, return_inverse=True)
        assert principle.holds(counts.merged(into)).all()


@given(matrices)
def test_no_smaller_group_than_the_least_holds(rows: list[list[int]]) -> None:
    """Searches skip groups of fewer people: one person whose value is missing keeps every diversity."""
    counts = dense(np.array(rows), (COLUMN,))
    for required in (
        [jali.FrequencyDiversity(3)],
        [jali.AlphaAnonymity(0.2, 3)],
        [jali.KAnonymity(2), jali.Safety(0.7, 1)],
    ):
        assert not (hold(required, counts) & (counts.size < least_people(required, counts))).any()


visits = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 2), st.sampled_from([0, 1, 2, 3, 3])),
    min_size=1,
    max_size=14,
    unique=True,
)


@examples(4)
@given(visits, st.sampled_from([p for p in ABOUT_VALUES if not isinstance(p, (jali.TCloseness, jali.Safety))]))
def test_people_with_several_rows_are_never_judged_more_kindly(
    rows: list[tuple[int, int, int]], principle: Principle
) -> None:
    """Somebody with a missing and a known value may not be counted, but nobody's verdict is better for it."""
    person, group, value = (
        np.array(part) for part in zip(*sorted(rows, key=lambda r: (r[1], r[2], r[0])), strict=True)
    )
    every = np.arange(4)[:, None]
    ones = np.ones(len(rows), dtype=np.int64)
    counts = Counts(3, group, value, ones, (COLUMN,), every, person)
    inside = value < 3
    known = Counts(3, group[inside], value[inside], ones[inside], (PLAIN,), every[:3], person[inside])
    assert not (principle.holds(counts) & ~principle.holds(known)).any()


# -- in tables, files and methods ----------------------------------------------------------------------------------


def _table(ill: list[str | None], **more: Any) -> jali.Table:
    zips = [f"1{i % 2}" for i in range(len(ill))]
    return jali.table(pa.table({"zip": zips, "ill": ill}), quasi={"zip": jali.mask()}, sensitive=["ill"], **more)


HALF = ["positive", "positive", None, None] * 3


def test_positive_or_empty_is_no_diversity() -> None:
    two = [jali.KAnonymity(2), jali.DistinctDiversity(2)]
    with pytest.raises(jali.InputError, match=r"larger than the number of values of .ill. \(1 value\)"):
        jali.generalize(_table(HALF), two)
    release = jali.generalize(_table(HALF, missing_is_value=["ill"]), two)
    assert "a missing one counts as a value" in repr(release)
    assert "a missing one is no value" in repr(jali.generalize(_table(HALF), two[:1]))


@pytest.mark.parametrize("valued", [True, False])
@pytest.mark.parametrize("kind", ["generalize", "partition", "recode", "anatomize", "angelize"])
def test_what_counts_as_a_value_comes_back_from_the_files(kind: str, valued: bool, tmp_path: Path) -> None:
    """Verdict, audit and manifest of the loaded release are those of the one that was made."""
    ill = ["flu", "cold", None, "gout", "cold", "flu", "gout", None] * 3
    table = _table(ill, missing_is_value=["ill"] if valued else [])
    required = [jali.FrequencyDiversity(2)]
    made = getattr(jali, kind)(table, required, **({"k": 2} if kind == "angelize" else {}))
    loaded = jali.load(made.save(tmp_path / "out"))
    told = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert [c["missing_is_value"] for c in told["columns"] if c["name"] == "ill"] == [valued]
    assert loaded["ill"].judged[0].unknown == (None if valued else 3)
    assert ("is no value" in str(audit(loaded))) == (not valued)
    assert str(audit(loaded).sensitive) == str(audit(made).sensitive)
    counts = loaded.counts()
    cells = counts.known("ill")
    sizes = np.bincount(cells.group, cells.n, minlength=counts.groups)
    largest = cells.largest(cells.n)
    assert (2 * largest <= sizes).all()


tables = st.lists(st.tuples(st.integers(0, 5), st.sampled_from(["a", "b", "c", None, None])), min_size=2, max_size=24)


def _kept(groups: Any, l: int) -> bool:
    """Whether in every group no value is held by more than 1/l of the people whose value is known."""
    return all(
        l * max(Counter(v for v in values if v is not None).values(), default=0) <= sum(v is not None for v in values)
        for values in groups
    )


@given(tables, st.integers(1, 3), st.sampled_from(["generalize", "partition", "recode", "anatomize", "angelize"]))
def test_every_method_judges_those_whose_value_is_known(rows: list[tuple[int, str | None]], l: int, kind: str) -> None:
    frame = pa.table({"age": [row[0] for row in rows], "ill": pa.array([row[1] for row in rows], pa.string())})
    table = jali.table(frame, quasi={"age": jali.bands(2, 4)}, sensitive=["ill"])
    try:
        release = getattr(jali, kind)(table, [jali.FrequencyDiversity(l)], **({"k": 1} if kind == "angelize" else {}))
    except (jali.InputError, jali.InfeasibleError):
        assert kind != "generalize" or l > 1 or len(rows) < 2
        return
    counts = release.counts()
    groups = [[] for _ in range(counts.groups)]
    labels = counts.sensitive[0].labels
    for group, value, n in zip(counts.group, counts.joint[counts.value, 0], counts.n, strict=True):
        groups[group] += [labels[value]] * int(n)
    assert _kept(groups, l)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=30), st.integers(1, 4), st.randoms(use_true_random=False))
def test_anatomy_deals_those_who_are_known_by_their_values(values: list[int], l: int, random: Any) -> None:
    """No bucket has a value twice, each has l people who are known, and the others are spread evenly."""
    known = [value for value in values if value != 3]
    order = np.array(random.sample(range(len(values)), len(values)))
    most = reach(np.bincount(np.array(values)), unknown=3)
    assert most == (len(known) // max(Counter(known).values()) if known else len(values))
    if l > most:
        with pytest.raises(jali.InfeasibleError):
            deal(np.array(values), l, order, unknown=3)
        return
    bucket = deal(np.array(values), l, order, unknown=3)
    found: dict[int, list[int]] = {}
    for number, value in zip(bucket.tolist(), values, strict=True):
        found.setdefault(number, []).append(value)
    for inside in found.values():
        here = [value for value in inside if value != 3]
        assert len(set(here)) == len(here)
        assert len(here) >= l or not known
    without = [inside.count(3) for inside in found.values()]
    assert max(without) - min(without) <= 1


def test_collections_of_marginals_say_that_they_cannot_leave_people_out() -> None:
    ill = ["flu", "cold", None, "gout"] * 6
    with pytest.raises(jali.InputError, match="missing_is_value"):
        jali.marginals(_table(ill), [jali.KAnonymity(2), jali.EntropyDiversity(1.5)])
    jali.marginals(_table(ill, missing_is_value=["ill"]), [jali.KAnonymity(2), jali.EntropyDiversity(1.5)])


def test_where_nobody_is_known_there_is_nothing_to_learn(tmp_path: Path) -> None:
    table = _table([None, "a", None, "b"])
    release = jali.generalize(table, [jali.DistinctDiversity(2)], levels={"zip": 0})
    assert release.manifest.counts["groups"] == 2
    found = audit(release).sensitive[0]
    assert (found.distinct_l, found.largest_share, found.homogeneous.groups) == (2, 0.5, 0)
    assert jali.disclosure.maximum(release, 0) == 0.5
    empty = audit(_table([None] * 4, types={"ill": "text"})).sensitive[0]
    assert (empty.distinct_l, empty.largest_share, empty.disclosure) == (0, 0.0, None)


@pytest.mark.parametrize(
    ("given", "problem"), [(["zip"], "no sensitive column"), ("ill", "must be a list"), (["il"], "did you mean")]
)
def test_what_missing_is_value_cannot_mean_is_refused(given: Any, problem: str) -> None:
    with pytest.raises(jali.InputError, match=problem):
        _table(HALF, missing_is_value=given)


def test_a_missing_value_that_is_none_cannot_be_protected() -> None:
    with pytest.raises(jali.InputError, match="missing_is_value"):
        jali.generalize(_table(HALF), [jali.AlphaAnonymity(0.5, 2, values=[None])])
    jali.generalize(_table(HALF, missing_is_value=["ill"]), [jali.AlphaAnonymity(0.5, 2, values=[None])])
