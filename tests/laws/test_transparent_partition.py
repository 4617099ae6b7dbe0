"""Transparent releases: every group keeps its promise, only what is proved is claimed, everything else is refused."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow.csv import write_csv

import jali
from jali.encoding.table import Table
from jali.errors import InfeasibleError, InputError
from jali.job import Job
from jali.principles.base import Principle
from jali.principles.counts import Sensitive, dense
from jali.publish.transparent import withstands
from jali.releases.summary import KNOWS_ALGORITHM, NOT_COVERED
from jali.search.halves import People, halve, people_of
from jali.search.items import columns_of
from oracles import principles as oracle
from oracles.often import seeds

TREE = [("a", "x", "*"), ("b", "x", "*"), ("c", "y", "*"), ("d", "y", "*")]
QUASI = {"age": jali.bands(5, 10), "tree": jali.taxonomy(TREE)}


def people(seed: int, rows: int | None = None, **columns: Any) -> Table:
    """A small table with ties; `columns` are further roles."""
    random = np.random.default_rng(seed)
    rows = int(random.integers(4, 40)) if rows is None else rows
    data = {
        "age": random.integers(20, 20 + int(random.integers(1, 15)), size=rows),
        "tree": [("a", "b", "c", "d")[i] for i in random.integers(4, size=rows)],
        "ill": [("flu", "cold", "cancer")[i] for i in random.choice(3, size=rows, p=(0.4, 0.35, 0.25))],
        "ward": [("I", "II")[i] for i in random.integers(2, size=rows)],
        "weight": random.integers(1, 4, size=rows).astype(float),
    }
    return jali.table(pa.table(data), quasi=QUASI, **({"sensitive": ["ill"]} | columns))


def groups_of(release: Any, column: str = "ill") -> list[list[int]]:
    """People by value in each group of the published table, a group being the rows that show the same."""
    found: defaultdict[tuple[Any, ...], Counter[str]] = defaultdict(Counter)
    for row in release.tables["data"].to_pylist():
        found[tuple(row[name] for name in QUASI)][row[column]] += 1
    values = sorted({value for group in found.values() for value in group})
    return [[group[value] for value in values] for group in found.values()]


Judged = Callable[[list[int], list[int]], bool]
PROMISES: dict[str, tuple[list[Principle], Judged]] = {
    "distinct": ([jali.DistinctDiversity(2)], lambda g, _: oracle.distinct_values(g) >= 2),
    "frequency": ([jali.FrequencyDiversity(1.5)], lambda g, _: oracle.largest_share(g, sum(g)) <= Fraction(2, 3)),
    "alpha": ([jali.AlphaAnonymity(0.75, 2)], lambda g, _: oracle.largest_share(g, sum(g)) <= 0.75 and sum(g) >= 2),
    "entropy": ([jali.EntropyDiversity(1.5)], lambda g, _: oracle.entropy(g) >= math.log(1.5) - 1e-9),
    "recursive": ([jali.RecursiveDiversity(3, 2)], lambda g, _: oracle.needed_c(g, 2) < 3),
    "closeness": (
        [jali.KAnonymity(2), jali.TCloseness(0.4)],
        lambda g, w: oracle.equal_closeness(g, w) <= 0.4 and sum(g) >= 2,
    ),
    "safety": ([jali.Safety(0.8, 0)], lambda g, _: oracle.largest_share(g, sum(g)) < 0.8),
}


@pytest.mark.parametrize("name", PROMISES)
@given(seed=seeds, split=st.sampled_from([None, "area", "range"]))
def test_every_published_group_keeps_the_promise_and_nobody_is_lost(name: str, seed: int, split: Any) -> None:
    """Judged from the published table by the definition."""
    table, (required, holds) = people(seed), PROMISES[name]
    try:
        release = jali.partition(table, required, split=split, transparent=True)
    except (InfeasibleError, InputError):
        with pytest.raises((InfeasibleError, InputError)):  # then no partition does
            jali.partition(table, required)
        return
    found = groups_of(release)
    whole = [sum(column) for column in zip(*found, strict=True)]
    assert all(holds(group, whole) for group in found)
    expected = Counter(table.frame("arrow")["ill"].to_pylist())
    assert Counter(release.tables["data"]["ill"].to_pylist()) == expected
    assert not release.hidden_rows.any()


@given(seed=seeds)
def test_the_release_says_what_it_withstands_and_stays_that_way_in_its_files(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    """The manifest has the claim and no trace of samples; boxes overlap, so figures about attackers are bounds."""
    table = people(seed, 30)
    release = jali.partition(table, [jali.DistinctDiversity(2)], transparent=True)
    folder = release.save(tmp_path_factory.mktemp("out") / "release")
    for each in (release, jali.load(folder)):
        assert each.transparent
        assert withstands(each)
        assert each.manifest.method["transparent"] is True
        assert each.manifest.method["mode"] == "relaxed"
        assert each.disclosure_bound == "at most"
        assert KNOWS_ALGORITHM in repr(each)
        assert NOT_COVERED[1] not in repr(each)
        notes = jali.audit(each).notes
        assert f"the release says that its promises hold {KNOWS_ALGORITHM}" in notes
        assert not any(NOT_COVERED[1] in note for note in notes)
    told = json.loads((folder / "manifest.json").read_text())
    assert set(told["method"]) - {"named"} == {"name", "mode", "split", "show", "suppress", "transparent"}


def test_the_report_repeats_the_claim_and_a_plain_release_makes_none() -> None:
    table = people(1, 30)
    for transparent in (True, False):
        release = jali.partition(table, [jali.DistinctDiversity(2)], transparent=transparent)
        assert (KNOWS_ALGORITHM in jali.report(release).html) is transparent
        assert (KNOWS_ALGORITHM in repr(release)) is transparent
        assert (NOT_COVERED[1] in repr(release)) is not transparent
        assert ("transparent" in release.manifest.method) is transparent


@given(seed=seeds)
def test_several_sensitive_columns_weights_and_other_columns_are_as_in_a_plain_partition(seed: int) -> None:
    """Each sensitive column keeps its promise; pairs of values, and other columns, stay with each other."""
    table = people(seed, 24, sensitive=["ill", "ward"], weights="weight")
    required = [jali.DistinctDiversity(2, sensitive="ill"), jali.FrequencyDiversity(1.25, sensitive="ward")]
    try:
        release = jali.partition(table, required, transparent=True)
    except InfeasibleError:
        return
    assert all(oracle.distinct_values(group) >= 2 for group in groups_of(release))
    assert all(5 * max(group) <= 4 * sum(group) for group in groups_of(release, "ward"))
    pairs = [Counter(zip(*(t[n].to_pylist() for n in ("ill", "ward")), strict=True))
             for t in (release.tables["data"], table.frame("arrow"))]  # fmt: skip
    assert pairs[0] == pairs[1]
    total = sum(release.tables["data"]["weight"].to_pylist())
    assert total == pytest.approx(float(table.frequencies.weight.sum()), rel=1e-4)
    other = jali.partition(people(seed, 24, other=["ward"]), [jali.DistinctDiversity(2)], transparent=True)
    assert other.of_role("other")


@given(seed=seeds)
def test_records_that_stand_for_several_people_are_divided_like_people(seed: int) -> None:
    """A table of counted records is published as the same table row by row."""
    table = people(seed, 12)
    counted = replace(table, multiplicity=np.random.default_rng(seed).integers(1, 4, size=table.records))
    release = jali.partition(counted, [jali.AlphaAnonymity(0.9, 3)], transparent=True)
    assert release.rows == counted.rows
    assert all(sum(group) >= 3 and 10 * max(group) <= 9 * sum(group) for group in groups_of(release))


@given(seed=seeds, by=st.sampled_from(["area", "range"]))
def test_the_compiled_cuts_are_those_of_the_plain_twin(seed: int, by: Any) -> None:
    table, random = people(seed), np.random.default_rng(seed)
    orders = {"drawn": random.permutation(table.records), "ties": random.permutation(table.records)}
    one, other = (
        halve(columns_of(table), people_of(table), (jali.KAnonymity(2),), by=by, compiled=compiled, **orders)
        for compiled in (True, False)
    )
    assert np.array_equal(one.group, other.group)
    assert one.checked == other.checked


@given(seed=seeds)
def test_nodes_are_counted_alike_whether_or_not_their_values_fit_into_one_array(seed: int) -> None:
    """Few people and many values are counted one by one; people by node and value are what they are."""
    random = np.random.default_rng(seed)
    values, shape = int(random.integers(1, 3000)), (int(random.integers(1, 5)), int(random.integers(1, 5)))
    whole = dense(np.ones((1, values), dtype=np.int64))
    value = random.integers(values, size=shape[0] * shape[1])
    nodes = random.permutation(len(value)).reshape(shape)
    counts = People(value * 0, value, whole).counts(nodes)
    found: Counter[tuple[int, int]] = Counter()
    for node, own, n in zip(counts.group.tolist(), counts.value.tolist(), counts.n.tolist(), strict=True):
        found[node, own] += n
    assert found == Counter((i, int(value[j])) for i, row in enumerate(nodes) for j in row)


# -- where nothing reads sensitive values -----------------------------------------------------------------------------

SIZES: dict[str, Callable[[Table], Any]] = {
    **{
        f"generalize {metric} {suppress}": lambda t, m=metric, s=suppress: jali.generalize(
            t, [jali.KAnonymity(3)], metric=m, suppress=s, transparent=True
        )
        for metric, suppress in (("loss", 0), ("discernibility", 0.3), ("average", 0.3), ("height", 0))
    },
    **{
        f"partition {split}": lambda t, s=split: jali.partition(t, jali.KAnonymity(3), split=s, transparent=True)
        for split in (None, "range", "entropy")
    },
    **{
        f"recode {peel} {suppress} {show}": lambda t, p=peel, s=suppress, w=show: jali.recode(
            t, jali.KAnonymity(3), objective="granularity", peel=p, suppress=s, show=w, transparent=True
        )
        for peel, suppress, show in (("size", 0, "taxonomy"), ("size", 0.3, "set"), ("principle", 0, "taxonomy"))
    },
    "repair": lambda t: jali.repair(
        jali.generalize(t, [jali.KAnonymity(2)], metric="loss", transparent=True), jali.KAnonymity(3), transparent=True
    ),
}


@pytest.mark.parametrize("name", SIZES)
@given(seed=seeds)
def test_what_is_shown_does_not_change_when_sensitive_values_change_places(name: str, seed: int) -> None:
    """Under k-anonymity alone every assignment of the values leads to the same groups, so nothing follows from them."""
    table = people(seed)
    column = table["ill"]
    mixed = replace(column, codes=np.random.default_rng(seed + 1).permutation(column.codes))
    other = replace(table, columns=tuple(mixed if c.name == "ill" else c for c in table.columns))
    shown = []
    for each in (table, other):
        release = SIZES[name](each)
        assert release.transparent
        rows = release.tables["data"].select(list(QUASI)).to_pylist()
        shown.append(Counter(tuple(row.values()) for row in rows))
    if name == "repair":  # of groups with equally many rows, the random order of the release says which goes first
        assert sorted(shown[0].values()) == sorted(shown[1].values())
    else:
        assert shown[0] == shown[1]


@given(seed=seeds)
def test_the_contents_of_dealt_buckets_follow_from_how_many_have_each_value(seed: int) -> None:
    """Whoever has them: so all tables that fit the buckets lead to them equally often, also under Safety."""
    table = people(seed, 24)
    order = np.random.default_rng(seed).permutation(table.records)
    other = table.take(order, None)
    for required in ([jali.FrequencyDiversity(2)], [jali.DistinctDiversity(2)], [jali.Safety(0.9, 1)]):
        contents = []
        for each in (table, other):
            try:
                release = jali.anatomize(each, required, transparent=True)
            except InfeasibleError:
                contents.append(None)
                continue
            assert KNOWS_ALGORITHM in repr(release)
            buckets: defaultdict[int, list[tuple[str, int]]] = defaultdict(list)
            for row in release.tables["buckets"].to_pylist():
                buckets[row["bucket"]].append((row["ill"], row["count"]))
            contents.append(sorted(sorted(bucket) for bucket in buckets.values()))
        assert contents[0] == contents[1]


# -- promises under mixing ---------------------------------------------------------------------------------------------

MIXED = [
    jali.KAnonymity(3), jali.AlphaAnonymity(0.6, 2), jali.DistinctDiversity(2), jali.FrequencyDiversity(1.7),
    jali.EntropyDiversity(1.8), jali.RecursiveDiversity(2, 2), jali.RecursiveDiversity(3, 3),
    jali.RecursiveDiversity(3, 2, protected=("0",), share=0.2), jali.TCloseness(0.3),
    jali.TCloseness(0.2, distance="ordered"), jali.Safety(0.7, 0), jali.MultiAttribute(jali.FrequencyDiversity(1.7)),
]  # fmt: skip
groups = st.lists(st.lists(st.integers(0, 6), min_size=4, max_size=4).filter(any), min_size=2, max_size=4)


@pytest.mark.parametrize("principle", MIXED, ids=repr)
@given(groups=groups, times=st.lists(st.integers(1, 5), min_size=4, max_size=4))
def test_shares_that_keep_a_promise_keep_it_when_they_are_mixed(
    principle: Principle, groups: list[list[int]], times: list[int]
) -> None:
    """An attacker who does not know the random bits believes a mixture of groups' shares."""
    assert principle.closed_under_mixing()
    column = (Sensitive("ill", ("0", "1", "2", "3"), ordered=True),)
    whole = dense(np.array([[10, 6, 3, 1]]), column)
    counts = replace(dense(np.array(groups), column), whole=whole)
    held = [group for group, holds in zip(groups, principle.holds(counts), strict=True) if holds]
    mixture = [sum(a * n for a, n in zip(times, column, strict=False)) for column in zip(*held, strict=True)]
    if mixture:
        assert principle.holds(replace(dense(np.array([mixture]), column), whole=whole)).all()


@dataclass(frozen=True)
class Louder(jali.FrequencyDiversity):
    """Judges as its parent does, but does not say so."""


def test_a_promise_that_does_not_say_that_it_may_be_mixed_is_refused() -> None:
    assert not Louder(2).closed_under_mixing()
    assert not jali.Safety(0.9, 1).closed_under_mixing()
    assert not jali.EntropyDiversity(2, dont_care=("flu",)).closed_under_mixing()
    with pytest.raises(InputError, match="closed_under_mixing"):
        jali.partition(people(0, 30), Louder(1.5), transparent=True)


# -- refusals ----------------------------------------------------------------------------------------------------------

VALUES = [jali.KAnonymity(2), jali.DistinctDiversity(2)]
REFUSED: dict[str, tuple[Callable[[Table], Any], str]] = {
    "generalize": (lambda t: jali.generalize(t, VALUES, metric="loss", transparent=True), "jali.partition, jali.angel"),
    "generalize kl": (lambda t: jali.generalize(t, jali.KAnonymity(2), transparent=True), 'metric="loss"'),
    "recode": (lambda t: jali.recode(t, VALUES, objective="granularity", transparent=True), "jali.partition"),
    "recode kl": (lambda t: jali.recode(t, jali.KAnonymity(2), transparent=True), 'objective="granularity"'),
    "marginals": (lambda t: jali.marginals(t, VALUES, transparent=True), "jali.partition"),
    "inject": (
        lambda t: jali.inject(t, jali.generalize(t, VALUES), VALUES, transparent=True), "jali.partition"
    ),
    "repair": (
        lambda t: jali.repair(jali.generalize(t, jali.KAnonymity(2)), VALUES, transparent=True), "jali.partition"
    ),
    "repair plain": (
        lambda t: jali.repair(jali.generalize(t, jali.KAnonymity(2)), jali.KAnonymity(3), transparent=True),
        "the release that is repaired is not",
    ),
    "tuples": (
        lambda t: jali.repair(
            jali.generalize(t, jali.KAnonymity(2), metric="loss"), jali.KAnonymity(3), by="tuples", transparent=True
        ),
        'by="groups"',
    ),
    "suppress": (lambda t: jali.partition(t, VALUES, suppress=0.1, transparent=True), "leave suppress out"),
    "suppress sizes": (
        lambda t: jali.partition(t, jali.KAnonymity(2), suppress=0.1, transparent=True), "leave suppress out"
    ),
    "split kl": (lambda t: jali.partition(t, VALUES, split="kl", transparent=True), 'use "area" or "range"'),
    "split entropy": (lambda t: jali.partition(t, VALUES, split="entropy", transparent=True), 'use "area" or "range"'),
    "split kl, sizes": (lambda t: jali.partition(t, jali.KAnonymity(2), split="kl", transparent=True), "leave split"),
    "area": (lambda t: jali.partition(t, VALUES, split="area"), "transparent=True"),
    "facts": (lambda t: jali.partition(t, jali.Safety(0.9, 1), transparent=True), "jali.anatomize or jali.angelize"),
    "buckets": (
        lambda t: jali.anatomize(t, VALUES[1:], buckets="partition", transparent=True), 'buckets="anatomy"'
    ),
    "word": (lambda t: jali.partition(t, VALUES, transparent="yes"), "true or false"),  # type: ignore[arg-type]
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_method_without_a_proof_is_refused_in_a_line_that_names_one_with_a_proof(name: str) -> None:
    call, text = REFUSED[name]
    with pytest.raises(InputError) as refused:
        call(people(3, 30))
    assert text in str(refused.value)
    assert "\n" not in str(refused.value)


def test_people_with_several_rows_are_refused_unless_only_sizes_are_promised() -> None:
    """A promise about sizes says nothing about values, so nothing can be learnt of them from the algorithm."""
    data = {"age": [1, 2, 3, 4], "tree": ["a", "b", "c", "d"], "ill": ["x", "y", "x", "y"], "who": [1, 1, 2, 3]}
    table = jali.table(pa.table(data), quasi=QUASI, sensitive=["ill"], person="who")
    with pytest.raises(InputError, match="one row per person"):
        jali.partition(table, jali.DistinctDiversity(2), transparent=True)
    worlds = [jali.table(pa.table(data | {"ill": list(ill)}), quasi=QUASI, sensitive=["ill"], person="who")
              for ill in itertools.product("xy", repeat=4)]  # fmt: skip
    for make in (jali.partition, lambda t, p, **how: jali.generalize(t, p, metric="loss", **how)):
        shown = [make(world, jali.KAnonymity(2), transparent=True) for world in worlds]
        assert all(each.transparent and withstands(each) for each in shown)
        assert len({str(each.groups.to_pylist()) for each in shown}) == 1


def test_a_repaired_release_does_not_inherit_the_claim() -> None:
    """Groups that break a promise about values are told by being suppressed."""
    release = jali.generalize(people(2, 40), jali.KAnonymity(2), metric="loss", transparent=True)
    repaired = jali.repair(release, jali.DistinctDiversity(2))
    assert not repaired.transparent
    assert NOT_COVERED[1] in repr(repaired)


# -- jobs and the frontier ---------------------------------------------------------------------------------------------


def test_a_job_asks_for_it_in_the_section_of_its_method(tmp_path: Path) -> None:
    """And in [frontier], as true or "prefer"."""
    write_csv(people(4, 30).frame("arrow").select(["age", "ill"]), tmp_path / "t.csv")
    text = """input = "t.csv"
method = "partition"
[quasi]
age = { bands = [5, 10] }
[sensitive]
ill = true
[partition]
transparent = true
[frontier]
transparent = "prefer"
methods = ["lattice", "partition"]
[[principles]]
name = "DistinctDiversity"
l = 2
"""
    (tmp_path / "job.toml").write_text(text)
    job = Job.load(tmp_path / "job.toml")
    assert job.run().transparent
    assert job.compare["transparent"] == "prefer"
    (tmp_path / "job.toml").write_text(text.replace("transparent = true", 'transparent = "yes"'))
    with pytest.raises(InputError, match="transparent must be true or false"):
        Job.load(tmp_path / "job.toml")


METHODS = ("lattice", "partition", "recode", "anatomy")


def test_a_transparent_frontier_compares_only_releases_that_withstand() -> None:
    """Methods without a proof have no release, and a reason that names one with a proof."""
    table = people(5, 40)
    found = jali.frontier(table, VALUES, transparent=True, methods=METHODS, strengths=(), queries=5)
    made = {point.method: point for point in found.points}
    assert [name for name, point in made.items() if point.transparent] == ["partition", "anatomy"]
    assert "jali.partition" in str(made["lattice"].reason)
    assert found.recommended is made["partition"]
    assert found.release(table).transparent
    assert found.to_dict()["recommended_transparent"]
    assert "It withstands an attacker who knows how the groups were chosen" in found.reason
    sizes = jali.frontier(table, jali.KAnonymity(3), transparent=True, methods=METHODS, strengths=(), queries=5)
    assert [p.method for p in sizes.points if p.transparent] == ["lattice", "partition", "recode"]
    assert sizes.release(table, method="lattice").manifest.method["metric"] == "loss"


def test_a_frontier_that_prefers_takes_a_transparent_release_at_comparable_loss() -> None:
    """The best of those that withstand if its KL is at most 1.1 times the lowest, and else the lowest of all."""
    table = people(6, 40)
    found = jali.frontier(table, VALUES, transparent="prefer", methods=METHODS, strengths=(), queries=5)
    assert [(p.method, p.transparent) for p in found.points] == [
        ("lattice", False), ("partition", False), ("partition", True), ("recode", False), ("anatomy", True),
    ]  # fmt: skip
    places = {(p.method, p.transparent): p for p in found.points}
    for ours, chosen in ((1.0, True), (1.0999, True), (1.1001, False), (0.5, True)):
        figures = {("partition", True): ours, ("recode", False): 1.0}
        points = tuple(replace(p, kl=figures.get(key, 2.0)) for key, p in places.items())
        other = replace(found, points=points)
        assert other.recommended is not None
        assert (other.recommended.method, other.recommended.transparent) == (
            ("partition", True) if chosen else ("recode", False)
        )
        assert other.release(table).transparent is chosen
        assert ("withstands an attacker who knows how the groups were chosen" in other.reason) is True


def test_a_plain_frontier_recommends_as_ever_and_shows_who_withstands() -> None:
    """By KL alone; the column is in the frame, the table, the page and the JSON."""
    table = people(7, 40)
    found = jali.frontier(table, jali.KAnonymity(3), methods=METHODS[:3], strengths=(), queries=5)
    assert found.recommended is min(found.points, key=lambda point: point.rank)
    assert found.frame()["transparent"].to_pylist() == [False, True, False]
    assert [p["transparent"] for p in found.to_dict()["points"]] == [False, True, False]
    assert "transparent" in repr(found).splitlines()[1]
    with pytest.raises(InputError, match="true, false or"):
        jali.frontier(table, VALUES, transparent="no")  # type: ignore[arg-type]
