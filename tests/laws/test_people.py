"""Laws of tables in which people have several rows: promises hold whichever of a person's values is looked for."""

from __future__ import annotations

from itertools import product
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

import jali
from jali.encoding.table import Table
from jali.errors import InfeasibleError
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


@pytest.mark.parametrize("principle", PRINCIPLES, ids=repr)
@given(st.lists(visits, min_size=1, max_size=3))
def test_a_level_is_that_of_the_worst_choice_that_the_counts_allow(principle: Principle, groups: list) -> None:
    """Neither better, which would be false, nor worse, which would cost: the numbers allow that very choice."""
    counts = counted(groups)
    worst = [oracle.worst(principle, oracle.allowed(rows, 4), LABELS) for rows in groups]
    assert principle.level(counts).tolist() == pytest.approx(worst, rel=1e-9)
    assert principle.holds(counts).tolist() == [oracle.enough(principle, reached) for reached in worst]


@pytest.mark.parametrize("principle", PRINCIPLES, ids=repr)
@given(st.lists(visits, min_size=1, max_size=3))
def test_what_holds_is_kept_by_every_choice_of_one_value_for_each_person(principle: Principle, groups: list) -> None:
    for rows, holds in zip(groups, principle.holds(counted(groups)), strict=True):
        assert not holds or oracle.keeps(principle, rows, LABELS)


def test_the_bound_is_not_always_tight() -> None:
    """Counts do not say who has what: two people have a and b, so that these are not the values of all four."""
    rows = [(0, 0), (0, 1), (1, 0), (1, 1), (2, 2), (3, 3)]
    assert oracle.keeps(jali.DistinctDiversity(3), rows, LABELS)
    assert jali.DistinctDiversity(3).level(counted([rows])).tolist() == [2]


# -- merging --------------------------------------------------------------------------------------------------------


@given(st.lists(visits, min_size=2, max_size=2))
def test_merging_people_with_several_values_breaks_only_principles_that_say_so(groups: list) -> None:
    """Nobody is in both groups."""
    apart = [[(10 * g + person, value) for person, value in rows] for g, rows in enumerate(groups)]
    _merging(apart, [p for p in PRINCIPLES if p.monotone_for_several_values])


@given(st.lists(visits, min_size=2, max_size=2))
def test_merging_groups_that_share_people_breaks_only_principles_that_say_so(groups: list) -> None:
    """Everybody has one value."""
    single = [[(person, person % 4) for person, _ in rows] for rows in groups]
    _merging(single, [p for p in PRINCIPLES if p.monotone_for_spread_people])
    _merging(groups, [p for p in PRINCIPLES if p.judges_size_alone])


def _merging(groups: list[list[tuple[int, int]]], principles: list[Principle]) -> None:
    assert principles
    counts = counted(groups)
    for principle in principles:
        if principle.holds(counts).all():
            assert principle.holds(counts.merged()).all()


def test_merging_breaks_entropy_diversity_where_people_have_several_values() -> None:
    """Four of the twelve can say a or b. Beside the others their b makes up for all rare values."""
    one = [(p, v) for p in range(12) for v in ((0, 1) if p < 4 else (p % 2,))]
    other = [(20 + p, 0 if p < 9 else 2) for p in range(11)] + [(31, 3)]
    counts, principle = counted([one, other]), jali.EntropyDiversity(1.85)
    assert principle.holds(counts).all()
    assert not principle.holds(counts.merged()).any()
    assert not principle.monotone_for_several_values


def test_merging_breaks_don_t_care_diversity_where_people_have_several_values() -> None:
    """Two people who have both don't-care values fill more than their own places."""
    one, other = [(0, 0), (1, 1), (2, 2)], [(3, 1), (3, 2), (4, 1), (4, 2), (5, 1), (5, 2)]
    principle = jali.RecursiveDiversity(1.5, 3, dont_care=["b", "c"])
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
    who = column(list(range(draw(st.integers(2, 7)))))
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


@pytest.mark.parametrize("method", METHODS)
@given(tables(), requirements, st.booleans())
def test_what_is_published_is_kept_by_every_choice(method: str, table: Table, asked: list, crowd: bool) -> None:
    """The release is made, or refused: no choice of one value for each person breaks it, and the audit says so."""
    _published_is_kept(method, table, asked, crowd=crowd)


@pytest.mark.slow
@settings(max_examples=1000)
@pytest.mark.parametrize("method", METHODS)
@given(tables(), requirements, st.booleans())
def test_of_thousands_every_choice_keeps_what_is_published(method: str, table: Table, asked: list, crowd: bool) -> None:
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
