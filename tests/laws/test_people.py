"""Laws of tables in which people have several rows: promises hold whichever of a person's values is looked for."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

import jali
from jali.encoding.table import Table
from jali.errors import InfeasibleError, InputError
from jali.principles import column
from jali.principles.base import Principle
from jali.principles.counts import Counts, Sensitive
from oracles import people as oracle

LABELS = ("a", "b", "c", "d")
COLUMN = Sensitive("s", LABELS, ordered=True)
PRINCIPLES: tuple[Principle, ...] = (
    jali.KAnonymity(2),
    jali.DistinctDiversity(2),
    jali.DistinctDiversity(3),
    jali.FrequencyDiversity(1.5),
    jali.AlphaAnonymity(0.6, 2),
    jali.AlphaAnonymity(0.4, 1, values=["a", "c"]),
    jali.EntropyDiversity(1.7),
    jali.EntropyDiversity(1.5, dont_care=["a"]),
    jali.EntropyDiversity(2.1, dont_care=["b", "d"]),
    jali.RecursiveDiversity(2.5, 2),
    jali.RecursiveDiversity(3.5, 3),
    jali.RecursiveDiversity(0.7, 2, dont_care=["a", "d"]),
    jali.RecursiveDiversity(3.5, 3, dont_care=["b"]),
    jali.RecursiveDiversity(3, 2, protected=["a"], share=0.3),
    jali.RecursiveDiversity(3, 1, protected=["a", "b"], share=0.1),
)
visits = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=9)  # (person, value)


def counted(groups: list[list[tuple[int, int]]]) -> Counts:
    """Counts of literal groups of (person, value)."""
    rows = [(g, *row) for g, group in enumerate(groups) for row in group]
    group, person, value = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    return Counts(len(groups), group, value, np.ones_like(group), (COLUMN,), np.arange(4)[:, None], person)


@given(visits)
def test_a_level_is_that_of_the_worst_choice_that_the_counts_allow(rows: list) -> None:
    """Neither better, which would be false, nor worse, which would cost; so whatever holds is kept by every choice."""
    counts = counted([rows])
    for principle in PRINCIPLES:
        worst = oracle.worst(principle, oracle.allowed(rows, 4), LABELS)
        assert principle.level(counts).tolist() == pytest.approx([worst], rel=1e-9)
        holds = bool(principle.holds(counts)[0])
        assert holds == oracle.enough(principle, worst)
        assert not holds or oracle.keeps(principle, rows, LABELS)


@given(st.lists(visits, min_size=1, max_size=4))
def test_groups_are_judged_one_by_one(groups: list) -> None:
    for principle in PRINCIPLES:
        alone = [float(principle.level(counted([rows]))[0]) for rows in groups]
        assert principle.level(counted(groups)).tolist() == alone


@given(st.lists(visits, min_size=1, max_size=4))
def test_many_choices_are_judged_some_at_a_time(groups: list) -> None:
    principle = jali.EntropyDiversity(2, dont_care=["b", "d"])
    at_once = principle.level(counted(groups)).tolist()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(column, "_AT_ONCE", 1)
        assert principle.level(counted(groups)).tolist() == at_once


def test_the_bound_is_not_always_tight() -> None:
    """Counts do not say who has what: two people have a and b, so that these are not the values of all four."""
    rows = [(0, 0), (0, 1), (1, 0), (1, 1), (2, 2), (3, 3)]
    assert oracle.keeps(jali.DistinctDiversity(3), rows, LABELS)
    assert jali.DistinctDiversity(3).level(counted([rows])).tolist() == [2]


# -- merging --------------------------------------------------------------------------------------------------------


def test_merging_breaks_entropy_diversity_where_people_have_several_values() -> None:
    """Four of the twelve can say a or b. Beside the others their b makes up for all rare values."""
    one = [(p, v) for p in range(12) for v in ((0, 1) if p < 4 else (p % 2,))]
    other = [(20 + p, 0 if p < 9 else 2) for p in range(11)] + [(31, 3)]
    counts, principle = counted([one, other]), jali.EntropyDiversity(1.85)
    assert principle.holds(counts).all()
    assert not principle.holds(counts.merged()).any()
    assert not principle.monotone_for_several_values


def test_merging_breaks_don_t_care_diversity_where_people_have_several_values() -> None:
    """Three people who have both don't-care values fill more than their own places."""
    one, other = [(0, 0), (1, 1), (2, 2), (6, 3)], [(3, 1), (3, 2), (4, 1), (4, 2), (5, 1), (5, 2)]
    principle = jali.RecursiveDiversity(1.5, 4, dont_care=["b", "c"])
    counts = counted([one, other])
    assert principle.holds(counts).all()
    assert not principle.holds(counts.merged()).any()
    assert not principle.monotone_for_several_values


def test_one_person_in_two_groups_breaks_distinct_diversity_where_values_differ() -> None:
    counts = counted([[(0, 0), (1, 1)], [(0, 1), (1, 0)]])
    assert jali.DistinctDiversity(2).holds(counts).all()
    assert not jali.DistinctDiversity(2).holds(counts.merged()).any()


# -- methods --------------------------------------------------------------------------------------------------------

TREE = [("k", "x", "*"), ("l", "x", "*"), ("m", "y", "*"), ("n", "y", "*")]
METHODS: dict[str, Any] = {
    "generalize": jali.generalize,
    "suppress": lambda t, p: jali.generalize(t, p, suppress=0.4),
    "sets": lambda t, p: jali.generalize(t, p, show="set"),
    "partition": jali.partition,
    "partition by kl": lambda t, p: jali.partition(t, p, split="kl", show="taxonomy", suppress=0.3),
    "recode": jali.recode,
    "recode by principle": lambda t, p: jali.recode(t, p, peel="principle", show="set"),
    "recode by size": lambda t, p: jali.recode(t, p, objective="granularity", suppress=0.4),
}
JUDGED = [p for p in PRINCIPLES if not isinstance(p, jali.KAnonymity)]


@st.composite
def tables(draw: st.DrawFn) -> Table:
    """Small tables about few people; every value occurs, so that any principle can name it."""
    rows = draw(st.integers(0, 7))
    column = lambda values: draw(st.lists(st.sampled_from(values), min_size=rows + 4, max_size=rows + 4))  # noqa: E731
    values = draw(st.lists(st.sampled_from(LABELS[: draw(st.integers(1, 4))]), min_size=rows, max_size=rows))
    who = [0, 1, *column(list(range(draw(st.integers(2, 7)))))[2:]]  # two people at the least
    frame = {"age": column([1, 2, 6, 7]), "tree": column(["k", "l", "m", "n"]), "s": [*LABELS, *values], "who": who}
    if draw(st.booleans()):  # nobody is in two groups
        first = {person: who.index(person) for person in who}
        frame |= {name: [frame[name][first[person]] for person in who] for name in ("age", "tree")}
    if draw(st.booleans()):  # everybody is somebody with one value
        frame["who"] = [10 * who[i] + LABELS.index(value) for i, value in enumerate(frame["s"])]
    quasi = {"age": jali.bands(5), "tree": jali.taxonomy(TREE)}
    return jali.table(pa.table(frame), quasi=quasi, sensitive=["s"], person="who")


def groups_of(table: Table, group: np.ndarray) -> list[list[tuple[int, int]]]:
    """The (person, value) of each group."""
    person = np.arange(table.records) if table.person is None else table.person
    rows = list(zip(group.tolist(), person.tolist(), table.sensitive[0].codes.tolist(), strict=True))
    return [[row[1:] for row in rows if row[0] == g] for g in sorted(set(group.tolist()))]


def nodes_of(table: Table) -> dict[tuple[int, ...], list[list[tuple[int, int]]]]:
    """The groups of every node of the lattice."""
    maps = [table.hierarchy(column.name).maps for column in table.quasi]
    found = {}
    for node in product(*(range(len(each)) for each in maps)):
        shown = [m[level][c.codes] for m, level, c in zip(maps, node, table.quasi, strict=True)]
        found[node] = groups_of(table, np.unique(np.stack(shown), axis=1, return_inverse=True)[1].reshape(-1))
    return found


requirements = st.lists(st.sampled_from(JUDGED), min_size=1, max_size=2, unique=True)


@given(st.sampled_from(sorted(METHODS)), tables(), requirements, st.booleans())
def test_what_is_published_is_kept_by_every_choice(method: str, table: Table, asked: list, crowd: bool) -> None:
    """The release is made, or refused: no choice of one value for each person breaks it, and the audit says so."""
    _published_is_kept(method, table, asked, crowd=crowd)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@given(tables(), requirements, st.booleans())
def test_every_choice_keeps_what_each_method_publishes(method: str, table: Table, asked: list, crowd: bool) -> None:
    _published_is_kept(method, table, asked, crowd=crowd)


def _published_is_kept(method: str, table: Table, asked: list, *, crowd: bool) -> None:
    principles = [*asked, jali.KAnonymity(2)] if crowd else asked
    try:
        release = METHODS[method](table, principles)
    except InfeasibleError:
        return
    groups = groups_of(table, release.assignment(table))
    for principle in principles:
        assert all(oracle.keeps(principle, rows, LABELS) for rows in groups)
    found = jali.audit(release)
    assert set(found.kept.values()) == {True}
    _audited(found, groups)


def _audited(found: Any, groups: list[list[tuple[int, int]]]) -> None:
    """The figures are those of the worst choice that the numbers allow, and never better than any real choice."""
    shown = found.sensitive[0]
    for principle, figure in (
        (jali.DistinctDiversity(1), shown.distinct_l),
        (jali.EntropyDiversity(1), shown.entropy_l),
        (jali.FrequencyDiversity(1), 1 / shown.largest_share),
    ):
        real = min(oracle.worst(principle, oracle.choices(rows, 4), LABELS) for rows in groups)
        assert figure <= real + 1e-9
        numbers = min(oracle.worst(principle, oracle.allowed(rows, 4), LABELS) for rows in groups)
        assert figure == pytest.approx(numbers)
    for l, c in shown.recursive_c.items():
        worst = max(oracle.worst(jali.RecursiveDiversity(1, l), oracle.allowed(rows, 4), LABELS) for rows in groups)
        assert c == pytest.approx(worst)


@given(tables())
def test_the_audit_of_a_table_is_that_of_the_worst_choice(table: Table) -> None:
    _audited(jali.audit(table), nodes_of(table)[0, 0])


@given(tables(), requirements)
def test_the_lattice_finds_all_minimal_nodes_or_says_that_there_are_none(table: Table, asked: list) -> None:
    """Pruned or not: what judging every node of the lattice by every allowed choice finds."""
    good = [
        node
        for node, groups in nodes_of(table).items()
        if all(oracle.numbers_keep(p, rows, LABELS) for p in asked for rows in groups)
    ]
    below = lambda one, other: one != other and all(a <= b for a, b in zip(one, other, strict=True))  # noqa: E731
    try:
        found = {tuple(node.levels.values()) for node in jali.minimal(table, asked)}
    except InfeasibleError:
        found = set()
    assert found == {node for node in good if not any(below(other, node) for other in good)}
    if good:  # and so the methods that begin with the lattice find something
        jali.generalize(table, asked)
        jali.recode(table, asked)


# -- what was wrong once --------------------------------------------------------------------------------------------


def wards() -> Table:
    """Everybody in ward A has both HIV and flu."""
    frame = {
        "pid": [1, 1, 2, 2, 3, 3, 4, 5, 6],
        "ward": ["A"] * 6 + ["B"] * 3,
        "s": ["HIV", "flu"] * 3 + ["HIV", "flu", "cold"],
    }
    return jali.table(pa.table(frame), quasi={"ward": jali.suppress()}, sensitive=["s"], person="pid")


@pytest.mark.parametrize("method", [jali.generalize, jali.partition, jali.recode])
@pytest.mark.parametrize(
    "principle", [jali.EntropyDiversity(1.5), jali.DistinctDiversity(2), jali.RecursiveDiversity(3, 2)], ids=repr
)
def test_a_ward_in_which_everybody_has_hiv_is_not_published(method: Any, principle: Principle) -> None:
    release = method(wards(), [jali.KAnonymity(3), principle])
    assert len(release.groups) == 1
    assert jali.audit(release).sensitive[0].largest_share < 1
    with pytest.raises(InfeasibleError, match=r"EntropyDiversity\(2\)"):
        method(wards(), [jali.KAnonymity(3), jali.EntropyDiversity(2)])


def test_closeness_is_refused_where_a_person_has_several_values() -> None:
    for method in (jali.generalize, jali.partition, jali.recode, jali.minimal):
        with pytest.raises(InputError, match=r"no one distribution.*promise a diversity"):
            method(wards(), [jali.KAnonymity(2), jali.TCloseness(0.5)])
    assert jali.audit(wards()).sensitive[0].t is None


@pytest.mark.parametrize("method", [jali.generalize, jali.partition, jali.recode, jali.minimal])
def test_what_fine_groups_keep_is_not_said_to_be_impossible(method: Any) -> None:
    """As one group the table breaks the promise, since person 1 counts once; as two groups it keeps it."""
    frame = {"q": ["a", "a", "b", "b"], "pid": [1, 2, 1, 3], "s": ["x", "y", "x", "y"]}
    table = jali.table(pa.table(frame), quasi={"q": jali.suppress()}, sensitive=["s"], person="pid")
    found = method(table, [jali.KAnonymity(2), jali.RecursiveDiversity(1.5, 2)])
    if method is jali.minimal:
        assert [dict(node.levels) for node in found] == [{"q": 0}]
        assert not found.keeps((1,))
    else:
        assert len(found.groups) == 2


@given(st.lists(st.tuples(st.sampled_from("pq"), st.sampled_from("ab")), min_size=2, max_size=6), st.integers(2, 6))
def test_l_may_exceed_the_number_of_values_where_nothing_needs_protection(rows: list, l: int) -> None:
    """Groups with don't-care values only have nothing to protect; any other value makes a large l impossible."""
    quasi, values = zip(*rows, strict=True)
    frame = pa.table({"q": list(quasi), "s": list(values)})
    table = jali.table(frame, quasi={"q": jali.suppress()}, sensitive=["s"])
    for principle in (
        jali.EntropyDiversity(l, dont_care=values[:1]),
        jali.RecursiveDiversity(3, l, dont_care=values[:1]),
    ):
        if len(set(values)) == 1:
            assert len(jali.generalize(table, [principle]).groups) == len(set(quasi))
        elif l > 2:
            with pytest.raises(InfeasibleError, match="cannot be met"):
                jali.generalize(table, [principle])
    if l > len(set(values)):
        with pytest.raises(InputError, match="larger than the number of values"):
            jali.generalize(table, [jali.EntropyDiversity(l)])


# -- what is published beside the rows ------------------------------------------------------------------------------


@given(tables(), st.lists(st.sampled_from(PRINCIPLES), min_size=1, max_size=2, unique=True))
def test_the_table_of_people_says_only_what_the_promises_need(table: Table, asked: list) -> None:
    try:
        release = jali.generalize(table, asked)
    except InfeasibleError:
        return
    if release.people is None:
        assert table.person is None
        return
    rows = release.people.to_pylist()
    groups = groups_of(table, release.assignment(table))
    sizes = [row["people"] for row in rows if row["sensitive column"] is None]
    assert sorted(sizes) == sorted(len({person for person, _ in group}) for group in groups)
    assert {row["scope"] for row in rows} == {"group"}
    valued = [row["people"] for row in rows if row["sensitive column"] is not None]
    judged = any(not isinstance(p, jali.KAnonymity) for p in asked)
    having = [len({p for p, v in group if v == value}) for group in groups for _, value in {(0, v) for _, v in group}]
    assert sorted(valued) == (sorted(having) if judged else [])


def twice() -> Table:
    """Person 1 is in both wards with the only value that both have."""
    frame = {
        "pid": [1, 2, 3, 1, 4, 5], "ward": list("AAABBB"), "s": ["HIV", "flu", "cold", "HIV", "acne", "gout"],
    }  # fmt: skip
    return jali.table(pa.table(frame), quasi={"ward": jali.suppress()}, sensitive=["s"], person="pid")


def test_nobody_is_given_away_by_counts_of_the_whole_table() -> None:
    """Who sees one person with HIV in each ward and one in the table knows whose it is; so it is not published."""
    for asked in ([jali.KAnonymity(3)], [jali.DistinctDiversity(3)], [jali.EntropyDiversity(2)]):
        release = jali.generalize(twice(), asked)
        assert len(release.groups) == 2
        assert set(release.people["scope"].to_pylist()) == {"group"}
    assert set(jali.generalize(twice(), [jali.KAnonymity(3)]).people["value"].to_pylist()) == {None}


def test_closeness_publishes_the_people_of_the_whole_table_and_is_checked_from_them(tmp_path: Any) -> None:
    release = jali.generalize(twice(), [jali.KAnonymity(3), jali.TCloseness(0.6)])
    scopes = release.people["scope"].to_pylist()
    assert scopes.count("table") == 5
    again = jali.load(release.save(tmp_path / "release"))
    assert again.kept() == {"KAnonymity(3)": True, "TCloseness(0.6)": True}
    assert jali.audit(again).sensitive[0].t == pytest.approx(0.4)  # 2/3 of a ward have values of 2/5 less


@given(tables(), st.sampled_from(JUDGED))
def test_a_saved_release_says_the_same_as_the_one_that_was_made(table: Table, principle: Principle) -> None:
    try:
        release = jali.generalize(table, [principle])
    except InfeasibleError:
        return
    with TemporaryDirectory() as folder:
        again = jali.load(release.save(Path(folder) / "release"))
    assert jali.audit(again).to_dict() == jali.audit(release).to_dict()


def test_counts_that_a_promise_needs_cannot_be_left_out() -> None:
    release = jali.generalize(wards(), [jali.KAnonymity(3), jali.DistinctDiversity(2)])
    release.people = pa.Table.from_pylist([row for row in release.people.to_pylist() if row["value"] != "flu"])
    with pytest.raises(InputError, match="does not fit"):
        release.verify()


def test_several_sensitive_columns_are_judged_one_by_one_or_refused() -> None:
    frame = {"pid": [1, 1, 2, 3], "q": ["a"] * 4, "s": list("xyxy"), "t": list("uuvv")}
    table = jali.table(pa.table(frame), quasi={"q": jali.suppress()}, sensitive=["s", "t"], person="pid")
    release = jali.generalize(table, [jali.KAnonymity(2), jali.DistinctDiversity(2, sensitive="t")])
    assert set(release.people["sensitive column"].to_pylist()) == {None, "t"}
    assert "no promise counts the people by value of s" in str(jali.audit(release))
    for method in (jali.generalize, jali.minimal):
        with pytest.raises(InputError, match="needs one row per person"):
            method(table, [jali.MultiAttribute(jali.DistinctDiversity(2))])


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_the_table_of_people_is_the_same_after_it_was_saved(form: Any, tmp_path: Path) -> None:
    """Numbers stay numbers, also when what was loaded is saved again."""
    frame = pa.table({"who": [1, 1, 2, 3, 4, 5], "a": [1, 1, 1, 2, 2, 2], "s": list("uvwuvw")})
    table = jali.table(frame, quasi={"a": jali.suppress()}, sensitive=["s"], person="who")
    jali.generalize(table, [jali.KAnonymity(2)]).save(tmp_path / "one", format=form)
    jali.load(tmp_path / "one").save(tmp_path / "two", format=form)
    one, two = (jali.load(tmp_path / name).tables["people"] for name in ("one", "two"))
    assert one["people"].type == pa.int64()
    assert one.equals(two)
    assert (tmp_path / "one" / f"people.{form}").read_bytes() == (tmp_path / "two" / f"people.{form}").read_bytes()
