"""Principles judge as their definitions say, exactly, and never get worse when groups are joined."""

from __future__ import annotations

import dataclasses
import json
import math
import subprocess
import sys
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jali.errors import InputError
from jali.principles import (
    AlphaAnonymity,
    Counts,
    DistinctDiversity,
    EntropyDiversity,
    FrequencyDiversity,
    KAnonymity,
    MultiAttribute,
    Principle,
    RecursiveDiversity,
    Sensitive,
    TCloseness,
    dense,
    from_dict,
)
from jali.principles.base import at_most, less_than
from oracles import principles as oracle

Matrix = list[list[int]]

few = st.one_of(st.just(0), st.integers(0, 3))
some = st.one_of(few, st.integers(0, 30), st.integers(0, 5_000_000))


@st.composite
def matrices(draw: st.DrawFn, cell: st.SearchStrategy[int] = some, groups: int = 5, values: int = 6) -> Matrix:
    """Groups × values: ties, empty groups, groups of one, a single group, a single value, and huge counts."""
    width = draw(st.integers(1, values))
    return draw(st.lists(st.lists(cell, min_size=width, max_size=width), min_size=1, max_size=groups))


def column_of(values: int, *, name: str = "condition") -> Sensitive:
    """A column whose values are named "0", "1", …, in order, with a tree of pairs of pairs."""
    levels = [np.arange(values)]
    while levels[-1].max(initial=0) > 0:
        levels.append(levels[-1] // 2)
    return Sensitive(name, tuple(str(v) for v in range(values)), ordered=True, tree=tuple(levels))


def counts_of(matrix: Sequence[Sequence[int]]) -> Counts:
    return dense(np.array(matrix), (column_of(len(matrix[0])),))


def tree_of(values: int) -> list[list[int]]:
    return [level.tolist() for level in column_of(values).tree]


def reference_of(matrix: Matrix) -> list[int]:
    return [sum(column) for column in zip(*matrix, strict=True)]


def random_matrices() -> list[Matrix]:
    """Some thousand groups of every kind: small with ties, skewed, huge, mostly empty."""
    random = np.random.default_rng(20240607)
    found = []
    for shape in ((80, values) for values in (1, 2, 3, 5, 9)):
        ties = random.integers(0, 4, shape)
        skewed = np.floor(random.pareto(0.7, shape) * 2).clip(max=1e6)
        huge = random.integers(0, 5_000_000, shape) * random.integers(0, 2, shape)
        sparse = (random.random(shape) < 0.2) * random.integers(1, 40, shape)
        found += [matrix.astype(np.int64).tolist() for matrix in (ties, skewed, huge, sparse)]
    return found


BATCH = random_matrices()
SOME = range(0, len(BATCH), 3)  # of every width and of every kind; the others are tried by make test-slow
batch = pytest.mark.parametrize(
    "matrix",
    [pytest.param(m, id=str(i), marks=() if i in SOME else pytest.mark.slow) for i, m in enumerate(BATCH)],
)


def assert_exact(make: Callable[[Fraction], Principle], counts: Counts, levels: Sequence[object], strict: bool) -> None:
    """The level is the oracle's, the lower the better, and `holds` turns at it, not a hair before or after."""
    hair = Fraction(1, 10**30)
    level_found = make(Fraction(1)).level(counts).tolist()
    assert level_found == pytest.approx([float(level) for level in levels], rel=1e-12, abs=0)
    for level in {level for level in levels if isinstance(level, Fraction) and (0 < level < 1 or (strict and level))}:
        group = [i for i, other in enumerate(levels) if other == level]
        assert make(level).holds(counts)[group].tolist() == [not strict] * len(group)
        assert make(level + hair).holds(counts)[group].all()
        assert not make(level - hair).holds(counts)[group].any()


# What each principle measures is what its definition says


@batch
def test_shares_are_those_of_the_definition(matrix: Matrix) -> None:
    """k-anonymity, (α, k)-anonymity, distinct and frequency diversity, group by group."""
    counts = counts_of(matrix)
    for group, row in enumerate(matrix):
        size = sum(row)
        if size == 0:
            continue
        share = oracle.largest_share(row, size)
        assert KAnonymity(3).holds(counts)[group] == (size >= 3)
        assert DistinctDiversity(2).holds(counts)[group] == (oracle.distinct_values(row) >= 2)
        assert FrequencyDiversity(2.5).holds(counts)[group] == (share <= Fraction(2, 5))
        assert FrequencyDiversity(2.5).level(counts)[group] == pytest.approx(float(1 / share))
        assert AlphaAnonymity(0.4, 3).holds(counts)[group] == (share <= Fraction(2, 5) and size >= 3)
        assert AlphaAnonymity(0.4, 3).level(counts)[group] == (float(share) if size >= 3 else math.inf)
        last = oracle.largest_share(row, size, [len(row) - 1])
        named = AlphaAnonymity("1/3", 1, values=[len(row) - 1])
        assert named.holds(counts)[group] == (last <= Fraction(1, 3))
        assert named.level(counts)[group] == float(last)


@batch
def test_shares_turn_exactly_at_their_bounds(matrix: Matrix) -> None:
    """A group holds for the share that it has, and not for any smaller one."""
    counts = counts_of([row for row in matrix if sum(row)] or [[1]])
    levels = [oracle.largest_share(row, sum(row)) for row in matrix if sum(row)] or [Fraction(1)]
    assert_exact(lambda alpha: AlphaAnonymity(alpha, 1), counts, levels, strict=False)
    for level in set(levels):
        at = [i for i, other in enumerate(levels) if other == level]
        assert FrequencyDiversity(1 / level).holds(counts)[at].all()
        assert not FrequencyDiversity(1 / level + Fraction(1, 10**30)).holds(counts)[at].any()


@batch
def test_entropy_is_that_of_the_definition(matrix: Matrix) -> None:
    """exp(-Σ p log p), to twelve digits."""
    level = EntropyDiversity(2).level(counts_of(matrix))
    expected = [math.exp(oracle.entropy(row)) if sum(row) else math.inf for row in matrix]
    assert level.tolist() == pytest.approx(expected, rel=1e-12)


@batch
def test_adjusted_entropy_is_that_of_algorithm_1(matrix: Matrix) -> None:
    """With the first half of the values as don't-care values, and with all but the first."""
    values = len(matrix[0])
    for careless in (range(values // 2), range(1, values)):
        level = EntropyDiversity(1, dont_care=careless).level(counts_of(matrix))
        for group, row in enumerate(matrix):
            inside = [row[v] for v in careless]
            outside = [row[v] for v in range(values) if v not in careless]
            assert math.log(level[group]) == pytest.approx(oracle.adjusted_entropy(inside, outside), abs=1e-12)


@given(matrices(groups=1, values=5), st.integers(0, 4))
def test_adjusted_entropy_is_the_largest_that_lowering_can_reach(matrix: Matrix, careless: int) -> None:
    """Definition 4.5 itself: no other don't-care counts give more entropy, and some give as much."""
    row = matrix[0]
    level = EntropyDiversity(1, dont_care=range(min(careless, len(row)))).level(counts_of(matrix))[0]
    assert math.log(level) == pytest.approx(oracle.highest_entropy(row[:careless], row[careless:]), abs=1e-9)


def test_the_reference_of_adjusted_entropy() -> None:
    """Don't-care 11, 10, 3, 2 and sensitive 3, 4 give 1.772971168390 nats."""
    level = EntropyDiversity(2, dont_care=["0", "1", "2", "3"]).level(counts_of([[11, 10, 3, 2, 3, 4]]))
    assert math.log(level[0]) == pytest.approx(1.772971168390, abs=1e-12)


@batch
def test_recursive_diversity_is_that_of_the_definition(matrix: Matrix) -> None:
    """Definitions 4.2 and 4.3, for every l, with and without don't-care values, turning exactly where they say."""
    values = len(matrix[0])
    counts = counts_of(matrix)
    for l, careless in product(range(1, values + 2), ((), (0,), tuple(range(0, values, 2)))):
        levels = [oracle.needed_c(row, l, careless) for row in matrix]
        made = lambda c, l=l, careless=careless: RecursiveDiversity(c, l, dont_care=careless)  # noqa: E731
        assert_exact(made, counts, levels, strict=True)
        for c in (Fraction(3, 100), Fraction(1), Fraction(3)):
            expected = [level < c or level == 0 for level in levels]
            assert made(c).holds(counts).tolist() == expected


@given(matrices(), st.integers(1, 7), st.sets(st.integers(0, 5)))
def test_recursive_diversity_withstands_whoever_rules_out_values(matrix: Matrix, l: int, careless: set[int]) -> None:
    """Definition 4.3 is the worst over all values to protect and all ways to rule out l - 2 others, ties included."""
    careless &= set(range(len(matrix[0])))
    level = RecursiveDiversity(1, l, dont_care=careless).level(counts_of(matrix))
    assert level.tolist() == pytest.approx([float(oracle.needed_c_by_attack(row, l, careless)) for row in matrix])


@batch
def test_protected_values_are_never_too_rare(matrix: Matrix) -> None:
    """Definition 4.4: each protected value in at least its share of every group, exactly."""
    counts, values = counts_of(matrix), len(matrix[0])
    protected = sorted({0, values - 1})
    for share in (Fraction(1, 10), Fraction(1, 2), Fraction(1)):
        principle = RecursiveDiversity(4, 2, protected=protected, share=share)
        for group, row in enumerate(matrix):
            if sum(row):
                enough = oracle.rarest_share(row, sum(row), protected) >= share
                assert principle.holds(counts)[group] == (enough and oracle.needed_c(row, 2) < 4)
                level = float(oracle.needed_c(row, 2)) if enough else math.inf
                assert principle.level(counts)[group] == pytest.approx(level)


CLOSENESS: dict[str, Callable[[list[int], list[int]], Fraction]] = {
    "equal": oracle.equal_closeness,
    "ordered": oracle.ordered_closeness,
    "hierarchical": lambda row, reference: oracle.hierarchical_closeness(row, reference, tree_of(len(row))),
}
distances = pytest.mark.parametrize("distance", CLOSENESS)


@batch
@distances
def test_closeness_is_the_formula_and_turns_exactly_at_it(matrix: Matrix, distance: str) -> None:
    """A group holds for the distance that it has, and not for any smaller one."""
    rows = [row for row in matrix if sum(row)] or [[1]]
    levels = [CLOSENESS[distance](row, reference_of(rows)) for row in rows]
    assert_exact(lambda t: TCloseness(t, distance=distance), counts_of(rows), levels, strict=False)


@distances
@given(matrix=matrices(few, groups=3, values=5))
def test_closeness_is_the_cheapest_way_to_move_the_earth(distance: str, matrix: Matrix) -> None:
    """The formulas agree with the linear program that defines the distance."""
    rows = [row for row in matrix if sum(row)] or [[1]]
    values = len(rows[0])
    apart = {
        "equal": oracle.equal_distance(values),
        "ordered": oracle.ordered_distance(values),
        "hierarchical": oracle.tree_distance(tree_of(values)),
    }[distance]
    expected = [oracle.earth_mover(row, reference_of(rows), apart) for row in rows]
    assert TCloseness(1, distance=distance).level(counts_of(rows)).tolist() == pytest.approx(expected, abs=1e-9)


@distances
@given(matrix=matrices(st.integers(0, 2**40), groups=4))
def test_closeness_is_exact_beyond_64_bits(distance: str, matrix: Matrix) -> None:
    """Products of three large counts do not overflow."""
    rows = [[n + 2**39 for n in row] for row in matrix]
    levels = [CLOSENESS[distance](row, reference_of(rows)) for row in rows]
    assert_exact(lambda t: TCloseness(t, distance=distance), counts_of(rows), levels, strict=False)


@distances
def test_the_whole_table_is_close_to_itself(distance: str) -> None:
    """One group that holds everybody is at distance 0; so is any group of a column with one value."""
    assert TCloseness(0, distance=distance).holds(counts_of([[3, 1, 4]])).all()
    assert TCloseness(0, distance=distance).level(counts_of([[3], [1], [0]])).tolist() == [0, 0, 0]


def test_closeness_looks_at_the_whole_table_that_the_groups_are_part_of() -> None:
    """Some groups judged by themselves are held against everybody, also when they are split or merged."""
    everybody = counts_of([[3, 1], [1, 1], [0, 2]])
    first = Counts(1, np.array([0, 0]), np.array([0, 1]), np.array([3, 1]), everybody.sensitive, everybody.joint)
    part = dataclasses.replace(first, whole=everybody)
    assert TCloseness(0).holds(first).all()
    for counts in (part, part.merged(), part.merged().split("condition")[0]):
        assert TCloseness(0.2).level(counts).tolist() == [0.25]


@given(
    st.lists(st.tuples(st.integers(0, 2**62), st.integers(0, 2**62)), min_size=1, max_size=5),
    st.fractions(min_value=0, max_value=2**40),
)
def test_counts_are_compared_exactly_whatever_their_size(pairs: list[tuple[int, int]], ratio: Fraction) -> None:
    """left ≤ ratio · right and left < ratio · right, as whole numbers of any length."""
    left, right = (np.array(side) for side in zip(*pairs, strict=True))
    assert at_most(left, ratio, right).tolist() == [x <= ratio * y for x, y in pairs]
    assert less_than(left, ratio, right).tolist() == [x < ratio * y for x, y in pairs]


# Figures that are known


def test_ninety_five_five_needs_c_above_eighteen() -> None:
    """90, 5, 5 with l = 3: r_1 / r_3 is 18, and c must exceed it."""
    counts = counts_of([[5, 90, 5]])
    assert RecursiveDiversity(18, 3).level(counts).tolist() == [18]
    assert not RecursiveDiversity(18, 3).holds(counts)[0]
    assert RecursiveDiversity(18.000001, 3).holds(counts)[0]


def test_seven_of_a_hundred_are_seven_percent() -> None:
    """7 ≤ 0.07 · 100, and not 7 < 0.07 · 100, although 0.07 * 100 is 7.000000000000001 in floats."""
    counts = counts_of([[7] + [1] * 93])
    assert AlphaAnonymity(0.07, 1).holds(counts)[0]
    assert not AlphaAnonymity(0.069999, 1).holds(counts)[0]
    assert not RecursiveDiversity(0.07, 2).holds(counts_of([[7, 100]]))[0]
    sick = RecursiveDiversity(0.07, 2, dont_care=["1"])
    assert sick.holds(counts_of([[7, 100], [6, 100]])).tolist() == [False, True]
    assert FrequencyDiversity(Fraction(100, 7)).holds(counts)[0]


@pytest.mark.parametrize("values", [1, 2, 3, 7, 10, 1000])
@pytest.mark.parametrize("n", [1, 3, 4_999_999])
def test_equal_counts_are_as_diverse_as_they_are_many(values: int, n: int) -> None:
    """Ten equal counts are entropy 10-diverse: a bound met exactly is met, and no more than that."""
    counts = counts_of([[n] * values])
    assert EntropyDiversity(values).holds(counts)[0]
    assert not EntropyDiversity(values * (1 + 1e-8)).holds(counts)[0]
    assert EntropyDiversity(values).level(counts)[0] == pytest.approx(values, rel=1e-12)
    assert FrequencyDiversity(values).holds(counts)[0]


def test_the_definition_of_dont_care_holds_where_lowering_the_counts_does_not() -> None:
    """1,000 healthy don't-cares and 20 sick are (0.03, 2)-diverse: at most 3 % are sick."""
    principle = RecursiveDiversity(0.03, 2, dont_care=["0"])
    assert principle.holds(counts_of([[1000, 20], [1000, 30], [1000, 29], [1000, 0]])).tolist() == [
        True,
        False,
        True,
        True,
    ]


def test_the_three_diverse_inpatients_have_an_entropy_of_two_point_eight() -> None:
    """Figure 4: each group has 2, 1, 1, which is 2.8-diverse and 3-diverse by distinct values."""
    counts = counts_of([[1, 1, 2], [1, 2, 1], [1, 1, 2]])
    assert EntropyDiversity(2.8).holds(counts).all()
    assert not EntropyDiversity(2.83).holds(counts).any()
    assert DistinctDiversity(3).holds(counts).all()


def test_diverse_in_each_column_is_not_diverse_in_both() -> None:
    """Section 4.3: (s1, v1), (s1, v2), (s2, v3), (s3, v3) is (2, 3)-diverse in each column, and not at all in both."""
    rows = [(0, "s1", "v1"), (0, "s1", "v2"), (0, "s2", "v3"), (0, "s3", "v3")]
    counts = rows_counted(rows)
    for name in ("S", "V"):
        assert RecursiveDiversity(2.1, 3, sensitive=name).holds(counts).all()
        assert RecursiveDiversity(2, 3, sensitive=name).level(counts).tolist() == [2]
    for inner in (RecursiveDiversity(2, 2), DistinctDiversity(2), EntropyDiversity(2), FrequencyDiversity(2)):
        assert not MultiAttribute(inner).holds(counts).any()
    assert MultiAttribute(DistinctDiversity(2)).level(counts).tolist() == [1]


# Several sensitive columns, several values a person


def rows_counted(rows: Sequence[tuple[int, str, str]], groups: int | None = None) -> Counts:
    """Counts with one entry a row, over two sensitive columns S and V."""
    names = [sorted({row[i] for row in rows}) for i in (1, 2)]
    joint = np.array(list(product(range(len(names[0])), range(len(names[1])))))
    value = np.array([names[0].index(s) * len(names[1]) + names[1].index(v) for _, s, v in rows])
    group = np.array([g for g, _, _ in rows])
    columns = tuple(Sensitive(name, tuple(labels), True) for name, labels in zip("SV", names, strict=True))
    return Counts(groups or int(group.max()) + 1, group, value, np.ones_like(group), columns, joint)


two_columns = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from(["a", "b", "c"]), st.sampled_from(["x", "y", "z"])),
    min_size=1,
    max_size=40,
)
INNER: list[tuple[Principle, Callable[[list[int]], bool]]] = [
    (KAnonymity(2), lambda row: sum(row) >= 2),
    (DistinctDiversity(2), lambda row: oracle.distinct_values(row) >= 2),
    (FrequencyDiversity(1.5), lambda row: oracle.largest_share(row, sum(row)) <= Fraction(2, 3)),
    (EntropyDiversity(1.8), lambda row: oracle.entropy(row) >= math.log(1.8)),
    (RecursiveDiversity(2, 2), lambda row: oracle.needed_c(row, 2) < 2),
]


@pytest.mark.parametrize(("inner", "holds"), INNER, ids=[repr(inner) for inner, _ in INNER])
@given(rows=two_columns)
def test_multi_attribute_is_the_definition_on_literal_rows(inner: Principle, holds: Callable, rows: list) -> None:
    """Definition 4.6: each column in turn, the others as quasi-identifiers."""
    verdict = MultiAttribute(inner).holds(rows_counted(rows, groups=4))
    expected = oracle.multi_attribute(rows, 2, holds)
    assert verdict.tolist() == [expected.get(group, True) for group in range(4)]


@given(matrices(), st.sampled_from([inner for inner, _ in INNER] + [TCloseness(0.2)]))
def test_with_one_column_multi_attribute_is_its_principle(matrix: Matrix, inner: Principle) -> None:
    """The same levels, the same verdicts."""
    counts = counts_of(matrix)
    assert MultiAttribute(inner).holds(counts).tolist() == inner.holds(counts).tolist()
    occupied = counts.size > 0
    assert MultiAttribute(inner).level(counts)[occupied].tolist() == inner.level(counts)[occupied].tolist()


def test_a_value_named_for_one_column_leaves_the_others_alone() -> None:
    """A don't-care value of S is none of V's, and (α, k) of a value of S says nothing about V."""
    counts = rows_counted([(0, "healthy", "x"), (0, "sick", "x"), (0, "healthy", "y"), (0, "sick", "y")])
    MultiAttribute(EntropyDiversity(2, dont_care=["healthy"])).check(counts)
    assert MultiAttribute(AlphaAnonymity(0.5, 1, values=["sick"])).holds(counts).all()
    assert not MultiAttribute(AlphaAnonymity(0.4, 1, values=["sick"])).holds(counts).any()
    with pytest.raises(InputError, match='no value of "S" or "V"'):
        MultiAttribute(EntropyDiversity(2, dont_care=["helthy"])).check(counts)


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2), st.integers(0, 3)), min_size=1, max_size=30),
)
def test_shares_are_of_people_where_people_have_several_values(rows: list[tuple[int, int, int]]) -> None:
    """Rows are (person, group, value): shares divide by people. What choices do is in test_people."""
    person, group, value = (np.array(column) for column in zip(*rows, strict=True))
    counts = Counts(3, group, value, np.ones_like(group), (column_of(4),), np.arange(4)[:, None], person)
    found = oracle.people_by_group([(p, (g, v)) for p, g, v in rows], 0)
    for g, values in found.items():
        row = [len(values.get(v, ())) for v in range(4)]
        size = len(set().union(*values.values()))
        share = oracle.largest_share(row, size)
        assert KAnonymity(2).holds(counts)[g] == (size >= 2)
        assert AlphaAnonymity(0.5, 1).holds(counts)[g] == (share <= Fraction(1, 2))
        assert FrequencyDiversity(2).level(counts)[g] == pytest.approx(float(1 / share))


# Joining groups


def every_principle(values: int) -> list[Principle]:
    """One or more of each family, with bounds that random groups sometimes meet."""
    most = str(values - 1)
    return [
        KAnonymity(3),
        AlphaAnonymity(0.6, 2),
        AlphaAnonymity("1/3", 1, values=["0", most]),
        DistinctDiversity(2),
        FrequencyDiversity(1.5),
        EntropyDiversity(1.7),
        EntropyDiversity(1.7, dont_care=["0"]),
        EntropyDiversity(2.5, dont_care=["0", most]),
        RecursiveDiversity(1, 2),
        RecursiveDiversity(2.5, 3),
        RecursiveDiversity(0.5, 2, dont_care=["0"]),
        RecursiveDiversity(0.7, 3, dont_care=["0", most]),
        RecursiveDiversity(3, 2, protected=["0"], share=0.1),
        RecursiveDiversity(3, 2, dont_care=["0"], protected=[most, "0"], share="1/20"),
        TCloseness(0.3),
        TCloseness(0.3, distance="ordered"),
        TCloseness(0.3, distance="hierarchical"),
    ]


def assert_joining_helps(principle: Principle, counts: Counts, into: list[int]) -> None:
    merged = counts.merged(np.array(into))
    held, holds = principle.holds(counts), principle.holds(merged)
    level, joined = principle.level(counts), principle.level(merged)
    for group in range(merged.groups):
        members = [member for member, target in enumerate(into) if target == group]
        if members and all(held[members]):
            assert holds[group], f"{principle!r} broke"
        if members and principle.better == "higher":
            assert joined[group] >= min(level[members]) * (1 - 1e-12)
        elif members:
            assert joined[group] <= max(level[members]) * (1 + 1e-12) + 1e-15


@given(st.data(), st.one_of(matrices(few), matrices()))
def test_merging_groups_never_breaks_a_monotone_principle(data: st.DataObject, matrix: Matrix) -> None:
    """Groups that hold, joined, hold; and the joined level is no worse than the worst of its parts."""
    into = data.draw(st.lists(st.integers(0, 2), min_size=len(matrix), max_size=len(matrix)))
    for principle in every_principle(len(matrix[0])):
        assert principle.monotone
        assert_joining_helps(principle, counts_of(matrix), into)


@given(two_columns, st.lists(st.integers(0, 2), min_size=4, max_size=4))
def test_merging_groups_never_breaks_a_multi_attribute_principle(rows: list, into: list[int]) -> None:
    """The same where other sensitive columns are known: parts that agree on them are joined with each other."""
    careless = [EntropyDiversity(1.7, dont_care=["a"]), RecursiveDiversity(0.5, 2, dont_care=["a"])]
    close = [TCloseness(0.5), TCloseness(0.5, distance="ordered")]
    for inner in [
        *(inner for inner, _ in INNER),
        *careless,
        *close,
        RecursiveDiversity(3, 2, protected=["a"], share=0.2),
    ]:
        assert MultiAttribute(inner).monotone
        assert_joining_helps(MultiAttribute(inner), rows_counted(rows, groups=4), into)


people = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=30)


def people_counted(rows: Sequence[tuple[int, int, int]]) -> Counts:
    """Counts from literal rows (person, group, value)."""
    person, group, value = (np.array(column) for column in zip(*rows, strict=True))
    return Counts(4, group, value, np.ones_like(group), (column_of(3),), np.arange(3)[:, None], person)


@given(people, st.lists(st.integers(0, 2), min_size=4, max_size=4))
def test_merging_people_with_several_values_breaks_only_principles_that_say_so(rows: list, into: list[int]) -> None:
    """Nobody is in two groups."""
    counts = people_counted([(10 * group + person, group, value) for person, group, value in rows])
    assert MultiAttribute(DistinctDiversity(2)).monotone_for_several_values
    for principle in [*every_principle(3), *(MultiAttribute(p) for p in every_principle(3))]:
        if principle.monotone_for_several_values:
            assert_joining_helps(principle, counts, into)


@given(people, st.lists(st.integers(0, 2), min_size=4, max_size=4))
def test_merging_groups_that_share_people_breaks_only_principles_that_say_so(rows: list, into: list[int]) -> None:
    """Somebody in both groups is counted once in the joined one, so counts do not add up. Everybody has one value."""
    assert MultiAttribute(KAnonymity(2)).monotone_for_spread_people
    single = people_counted([(person, group, person % 3) for person, group, _ in rows])
    for principle in [*every_principle(3), *(MultiAttribute(p) for p in every_principle(3))]:
        if principle.monotone_for_spread_people:
            assert_joining_helps(principle, single, into)
        if principle.judges_size_alone:  # whatever values people have
            assert_joining_helps(principle, people_counted(rows), into)


def test_people_in_two_groups_break_what_adds_counts_up() -> None:
    """One person in both groups holds value 1, two others value 0: half and half in each group, two to one in both."""
    counts = people_counted([(0, 0, 0), (1, 0, 1), (2, 1, 0), (1, 1, 1)])
    for principle in (AlphaAnonymity(0.5, 2), FrequencyDiversity(2), EntropyDiversity(2), RecursiveDiversity(1.5, 2)):
        assert principle.holds(counts).all()
        assert not principle.holds(counts.merged()).any()
        assert not principle.monotone_for_spread_people


@given(matrices(few))
def test_where_size_alone_is_judged_the_least_size_says_it_all(matrix: Matrix) -> None:
    """A search may skip the sensitive values of such a principle."""
    counts = counts_of(matrix)
    for principle in [*every_principle(len(matrix[0])), MultiAttribute(KAnonymity(3))]:
        if principle.judges_size_alone:
            enough = (counts.size >= principle.least_size()) | (counts.size == 0)
            assert principle.holds(counts).tolist() == enough.tolist()


@given(matrices(few))
def test_a_group_smaller_than_the_least_size_never_holds(matrix: Matrix) -> None:
    """Searches skip such groups without judging them."""
    counts = counts_of(matrix)
    sharp = [FrequencyDiversity(2.000001), EntropyDiversity(3), RecursiveDiversity(0.4, 2), RecursiveDiversity(0.5, 3)]
    for principle in [*every_principle(len(matrix[0])), *sharp, MultiAttribute(DistinctDiversity(3))]:
        small = (counts.size < principle.least_size()) & (counts.size > 0)
        assert not principle.holds(counts)[small].any(), principle


@pytest.mark.parametrize(
    ("principle", "least"),
    [
        (KAnonymity(6), 6),
        (AlphaAnonymity(0.3, 2), 4),
        (AlphaAnonymity(0.25, 2), 4),
        (DistinctDiversity(4), 4),
        (FrequencyDiversity(2.5), 3),
        (EntropyDiversity(4), 4),
        (RecursiveDiversity(3, 4), 4),
        (RecursiveDiversity(0.4, 2), 4),
        (RecursiveDiversity(0.5, 3), 5),
        (MultiAttribute(DistinctDiversity(3)), 3),
    ],
    ids=repr,
)
def test_a_group_of_the_least_size_can_hold(principle: Principle, least: int) -> None:
    """The bound is as large as it can be: that many people, all different, hold, and one fewer do not."""
    assert principle.least_size() == least
    assert principle.holds(counts_of([[1] * least])).all()
    assert not principle.holds(counts_of([[1] * (least - 1)])).any()


@given(matrices(few))
def test_level_and_verdict_never_contradict_each_other(matrix: Matrix) -> None:
    """An empty group holds and has the best level there is; `worst` looks at people only."""
    counts = counts_of(matrix)
    for principle in every_principle(len(matrix[0])):
        empty = counts.size == 0
        assert principle.holds(counts)[empty].all()
        assert set(principle.level(counts)[empty]) <= {math.inf if principle.better == "higher" else 0.0}
        passing, failing = (
            principle.level(counts)[principle.holds(counts)],
            principle.level(counts)[~principle.holds(counts)],
        )
        if len(passing) and len(failing):
            gap = passing.min() - failing.max() if principle.better == "higher" else failing.min() - passing.max()
            assert gap >= 0, principle


# Sparse and large


@given(matrices(few, values=6), st.integers(0, 4), st.integers(0, 4))
def test_values_that_nobody_has_change_only_what_ranks_mean(matrix: Matrix, before: int, after: int) -> None:
    """A sparse column of many values is judged as the dense one, except for ordered closeness, which counts ranks."""
    values = len(matrix[0])
    wide = [[0] * before + row + [0] * after for row in matrix]
    column = Sensitive("condition", tuple(str(v - before) for v in range(values + before + after)), True)
    for principle in every_principle(values)[:-2]:
        narrow = principle.level(counts_of(matrix))
        assert principle.level(dense(np.array(wide), (column,))).tolist() == pytest.approx(narrow.tolist())
    counts = dense(np.array(wide), (column,))
    rows = [row for row in wide if sum(row)]
    expected = [float(oracle.ordered_closeness(row, reference_of(rows))) for row in rows]
    level = TCloseness(1, distance="ordered").level(counts)
    assert level[counts.size > 0].tolist() == pytest.approx(expected)


@pytest.mark.slow
def test_a_hundred_thousand_groups_of_ten_thousand_values_fit() -> None:
    """Nothing is laid out as groups × values (8 GB), and sampled groups agree with the definitions."""
    groups, values = 100_000, 10_000
    random = np.random.default_rng(5)
    key = np.unique(random.integers(0, groups, 3_000_000) * values + random.integers(0, values, 3_000_000))
    n = random.integers(1, 50, len(key))
    counts = Counts(groups, key // values, key % values, n, (column_of(values),), np.arange(values)[:, None])
    reference = counts.reference("condition").tolist()
    sample = random.integers(0, groups, 15)
    rows = [np.zeros(values, dtype=np.int64) for _ in sample]
    for row, group in zip(rows, sample, strict=True):
        row[(key % values)[key // values == group]] = n[key // values == group]
    for principle in every_principle(values):
        assert len(principle.holds(counts)) == groups
    for distance in ("equal", "ordered", "hierarchical"):
        level = TCloseness(1, distance=distance).level(counts)[sample]
        assert level.tolist() == pytest.approx([_float_closeness(row, np.array(reference), distance) for row in rows])
    level = EntropyDiversity(2).level(counts)[sample]
    assert level.tolist() == pytest.approx([math.exp(oracle.entropy(row.tolist())) for row in rows])
    level = RecursiveDiversity(2, 9).level(counts)[sample]
    assert level.tolist() == pytest.approx([float(oracle.needed_c(row.tolist(), 9)) for row in rows])


def _float_closeness(row: np.ndarray, reference: np.ndarray, distance: str) -> float:
    """The dense formulas in floats: fractions of ten thousand values would take minutes."""
    extra = row / row.sum() - reference / reference.sum()
    if distance == "equal":
        return float(np.abs(extra).sum() / 2)
    if distance == "ordered":
        return float(np.abs(np.cumsum(extra)).sum() / (len(row) - 1))
    tree = column_of(len(row)).tree
    parts = [np.abs(np.bincount(level, weights=extra)).sum() for level in tree[:-1]]
    return float(sum(parts) / 2 / (len(tree) - 1))


# Parameters


ALL: list[Principle] = [
    *every_principle(3),
    MultiAttribute(EntropyDiversity(2.5, dont_care=["0"])),
    TCloseness(Fraction(1, 3), sensitive="condition"),
    EntropyDiversity(3, dont_care=[None, 7]),
]


@pytest.mark.parametrize("principle", ALL, ids=repr)
def test_a_principle_survives_being_written_down(principle: Principle) -> None:
    """to_dict gives plain JSON, from_dict gives the same principle, and so does its repr."""
    again = from_dict(json.loads(json.dumps(principle.to_dict())))
    assert again == principle
    assert hash(again) == hash(principle)
    assert eval(repr(principle)) == principle


@pytest.mark.parametrize(
    ("principle", "text"),
    [
        (KAnonymity(4), "KAnonymity(4)"),
        (KAnonymity(4.0), "KAnonymity(4)"),
        (EntropyDiversity(2.5), "EntropyDiversity(2.5)"),
        (AlphaAnonymity(0.2, 5), "AlphaAnonymity(0.2, 5)"),
        (RecursiveDiversity(3, 6, dont_care=["flu"]), "RecursiveDiversity(3, 6, dont_care=('flu',))"),
        (TCloseness(np.float64(0.2), distance="ordered"), "TCloseness(0.2, distance='ordered')"),
        (MultiAttribute(DistinctDiversity(2)), "MultiAttribute(DistinctDiversity(2))"),
    ],
)
def test_a_principle_shows_itself_as_it_was_written(principle: Principle, text: str) -> None:
    """Parameters as they were given, defaults left out."""
    assert repr(principle) == text


WRONG: list[tuple[Callable[[], object], str]] = [
    (lambda: KAnonymity(0), "k must be a whole number"),
    (lambda: KAnonymity(2.5), "k must be a whole number"),
    (lambda: KAnonymity("many"), "k must be a whole number"),  # type: ignore[arg-type]
    (lambda: KAnonymity(True), "k must be a whole number"),
    (lambda: AlphaAnonymity(0, 2), "alpha must be a share"),
    (lambda: AlphaAnonymity(1.01, 2), "alpha must be a share"),
    (lambda: AlphaAnonymity(0.5, 0), "k must be a whole number"),
    (lambda: AlphaAnonymity(0.5, 2, values="flu"), "values must be a list"),  # type: ignore[arg-type]
    (lambda: DistinctDiversity(0), "l must be a whole number"),
    (lambda: DistinctDiversity(2.5), "l must be a whole number"),  # type: ignore[arg-type]
    (lambda: FrequencyDiversity(0.99), "l must be a number of at least 1"),
    (lambda: EntropyDiversity(0.5), "l must be a number of at least 1"),
    (lambda: EntropyDiversity(math.nan), "l must be a number of at least 1"),
    (lambda: EntropyDiversity(math.inf), "l must be a number of at least 1"),
    (lambda: EntropyDiversity(2, dont_care="flu"), "dont_care must be a list"),  # type: ignore[arg-type]
    (lambda: EntropyDiversity(2, dont_care=7), "dont_care must be a list"),  # type: ignore[arg-type]
    (lambda: RecursiveDiversity(0, 2), "c must be a number above 0"),
    (lambda: RecursiveDiversity(3, 0), "l must be a whole number"),
    (lambda: RecursiveDiversity(3, 2, protected=["flu"], share=1.5), "share must be a share"),
    (lambda: RecursiveDiversity(3, 2, protected=["flu"], share=-0.1), "share must be a share"),
    (lambda: RecursiveDiversity(3, 2, protected=["flu"]), "go together"),
    (lambda: RecursiveDiversity(3, 2, share=0.1), "go together"),
    (lambda: TCloseness(-0.1), "t must be a number from 0 to 1"),
    (lambda: TCloseness(1.1), "t must be a number from 0 to 1"),
    (lambda: TCloseness(0.1, distance="orderd"), "distance must be one"),  # type: ignore[arg-type]
    (lambda: MultiAttribute(EntropyDiversity(2, sensitive="S")), "must not name one"),
    (lambda: MultiAttribute(MultiAttribute(KAnonymity(2))), "single principle"),
    (lambda: MultiAttribute(KAnonymity(2) & KAnonymity(3)), "single principle"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("make", "what"), WRONG, ids=range(len(WRONG)))
def test_a_wrong_parameter_is_named_with_what_was_given_and_what_to_do(make: Callable, what: str) -> None:
    """What was wrong: got what was given; what to do."""
    with pytest.raises(InputError, match=what) as caught:
        make()
    assert caught.value.got
    assert caught.value.do


UNFIT: list[tuple[Principle, str]] = [
    (KAnonymity(50), r"k = 50 is larger than the table \(12 people\); choose k of at most 12"),
    (AlphaAnonymity(0.5, 50), r"k = 50 is larger than the table \(12 people\)"),
    (
        DistinctDiversity(4),
        r'l = 4 is larger than the number of values of "condition" \(3 values\); choose l of at most 3',
    ),
    (FrequencyDiversity(3.5), "l = 3.5 is larger"),
    (EntropyDiversity(3.01), "l = 3.01 is larger"),
    (RecursiveDiversity(3, 4), "l = 4 is larger"),
    (EntropyDiversity(2, dont_care=["fluu"]), 'dont_care of EntropyDiversity names "fluu", which is no value'),
    (RecursiveDiversity(3, 2, protected=[None], share=0.1), "protected of RecursiveDiversity names the missing value"),
    (AlphaAnonymity(0.5, 2, values=["fluu"]), 'values of AlphaAnonymity names "fluu"'),
    (TCloseness(0.1, distance="ordered"), "has none; declare the order"),
    (TCloseness(0.1, distance="hierarchical"), "has none; give the column a hierarchy"),
    (EntropyDiversity(2, sensitive="conditoin"), 'did you mean "condition"'),
    (MultiAttribute(DistinctDiversity(4)), "l = 4 is larger"),
    (MultiAttribute(KAnonymity(50)), "k = 50 is larger"),
]


@pytest.mark.parametrize(("principle", "what"), UNFIT, ids=[repr(principle) for principle, _ in UNFIT])
def test_a_principle_that_makes_no_sense_for_the_table_says_so(principle: Principle, what: str) -> None:
    """The message gives back what the caller wrote; the values of the table stay in the table."""
    labels = ("flu", "heart disease", "cancer")
    whole = dense(np.array([[5, 4, 3]]), (Sensitive("condition", labels),))
    with pytest.raises(InputError, match=what) as caught:
        principle.check(whole)
    assert not any(label in str(caught.value).replace('"fluu"', "") for label in labels)


@pytest.mark.parametrize("principle", every_principle(3), ids=repr)
def test_a_principle_that_fits_the_table_passes_its_check(principle: Principle) -> None:
    """And one that needs a sensitive column says so where there is none."""
    principle.check(counts_of([[5, 4, 3]]))
    KAnonymity(12).check(counts_of([[5, 4, 3]]))
    DistinctDiversity(3).check(counts_of([[5, 4, 3]]))
    if not isinstance(principle, KAnonymity):
        nobody = Counts(1, np.array([0]), np.array([0]), np.array([20]))
        for judged in (principle, MultiAttribute(principle)):
            with pytest.raises(InputError, match="needs a sensitive column"):
                judged.check(nobody)


@pytest.mark.parametrize(
    ("principle", "row", "text"),
    [
        (KAnonymity(50), [9, 3], "50-anonymity cannot be met: the whole table has 12 people"),
        (
            AlphaAnonymity(0.2, 2),
            [9, 3],
            "(0.2, 2)-anonymity cannot be met: in the whole table one value has a share of 0.75",
        ),
        (DistinctDiversity(3), [9, 3, 0], "distinct diversity 3 cannot be met: the whole table reaches 2"),
        (EntropyDiversity(1.8), [9, 3], "entropy diversity 1.8 cannot be met: the whole table reaches 1.755"),
        (EntropyDiversity(1.755), [9, 3], "entropy diversity 1.755 cannot be met: the whole table reaches 1.7548"),
        (FrequencyDiversity(1.5), [9, 3], "frequency diversity 1.5 cannot be met: the whole table reaches 1.333"),
        (
            RecursiveDiversity(3, 2),
            [21, 5],
            "recursive (3, 2)-diversity cannot be met: the whole table needs c above 4.2",
        ),
        (
            RecursiveDiversity(3, 2),
            [9, 0],
            "recursive (3, 2)-diversity cannot be met: the whole table has too few values",
        ),
        (RecursiveDiversity(9, 2, protected=["1"], share=0.5), [9, 3], "a protected value is held by less than 0.5 of"),
        (
            MultiAttribute(DistinctDiversity(2)),
            [9, 0],
            "multi-attribute distinct diversity 2 cannot be met: the weakest",
        ),
    ],
)
def test_a_bound_that_the_whole_table_misses_says_by_how_much(principle: Principle, row: list[int], text: str) -> None:
    """The best that can be reached, in the words of the principle."""
    counts = counts_of([row])
    assert not principle.holds(counts).any()
    assert text in principle.shortfall(counts)


@pytest.mark.parametrize(
    ("principle", "text"),
    [
        (KAnonymity(4), "every person shares the quasi-identifiers with at least 3 others"),
        (
            FrequencyDiversity(5, sensitive="condition"),
            "in every group no condition is held by more than 1/5 of the people",
        ),
        (AlphaAnonymity(0.2, 1, values=["HIV"]), 'in every group "HIV" is held by at most 20 % of the people'),
        (DistinctDiversity(3), "in every group at least 3 different values of the sensitive column occur"),
    ],
)
def test_a_promise_is_a_plain_sentence(principle: Principle, text: str) -> None:
    """What a data steward reads."""
    assert principle.promise() == text


@pytest.mark.parametrize("principle", ALL, ids=repr)
def test_every_promise_names_its_bound_and_has_no_full_stop(principle: Principle) -> None:
    """Title, bound and promise are there for every principle."""
    assert principle.title
    assert principle.bound
    assert principle.promise()
    assert not principle.promise().endswith(".")


def test_importing_any_part_makes_every_principle_known_and_loads_only_numpy() -> None:
    """A job file may name any principle, whatever was imported before; a search does not pay for scipy or pyarrow."""
    script = (
        "import sys; from jali.principles.base import from_dict\n"
        "from_dict({'name': 'MultiAttribute', 'principle': {'name': 'TCloseness', 't': '1/3'}})\n"
        "print(*({'scipy', 'pyarrow', 'pandas', 'numba', 'rich'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []


@pytest.mark.parametrize(
    ("data", "what"),
    [
        ({"name": "EntropyDiversty", "l": 3}, 'did you mean "EntropyDiversity"'),
        ({"name": "ColumnPrinciple"}, 'no principle "ColumnPrinciple"'),
        ({"name": "KAnonymity", "kk": 3}, 'KAnonymity has no parameter "kk"; did you mean "k"'),
        ({"name": "KAnonymity"}, "KAnonymity needs k"),
    ],
)
def test_a_description_that_names_nothing_is_refused(data: dict, what: str) -> None:
    """Unknown names, abstract ones, unknown and missing parameters."""
    with pytest.raises(InputError, match=what):
        from_dict(data)
