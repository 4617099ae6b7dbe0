"""Privacy of collections of marginals: what `check` says is what every table, cell and distribution says."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

from jali.errors import InputError
from jali.graphical.marginal import Attribute, Cache, Domain, Marginal, MarginalCounts, maximal
from jali.graphical.maxent import tree_of
from jali.graphical.privacy import maxent as privacy_maxent
from jali.graphical.privacy.join import capped, hull, proportional, ratio, smallest, support
from jali.graphical.privacy.maxent import rule
from jali.graphical.privacy.privacy import Checker, Columns, Verdict, check, unnamed_columns
from jali.principles import (
    AlphaAnonymity,
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
)
from jali.principles.diversity import adjusted_perplexity_of_rows
from oracles import collections as oracle

Levels = tuple[int, ...]


class Case(NamedTuple):
    """A tiny table and a collection of its marginals."""

    rows: list[tuple[int, ...]]
    maps: list[list[list[int]]]
    collection: list[Levels]
    cache: Cache

    @property
    def marginals(self) -> list[Marginal]:
        return [Marginal(levels) for levels in self.collection]

    @property
    def decomposable(self) -> bool:
        return tree_of(self.cache.domain, maximal(self.marginals)) is not None


def cache_of(rows: list[tuple[int, ...]], maps: list[list[list[int]]], hidden: int = 1) -> Cache:
    attributes = []
    for i, chain in enumerate(maps):
        levels = tuple(np.array(level, dtype=np.int32) for level in chain)
        nodes = tuple(int(level.max()) + 1 for level in levels)
        sizes = tuple(np.bincount(level, minlength=n).astype(np.int64) for level, n in zip(levels, nodes, strict=True))
        role: Any = "sensitive" if i >= len(maps) - hidden else "quasi"
        attributes.append(Attribute(f"{role[0]}{i}", role, levels, nodes, sizes, len(chain[0])))
    cells, n = np.unique(np.array(rows, dtype=np.int32), axis=0, return_counts=True)
    every = Marginal((0,) * len(maps))
    return Cache(Domain(tuple(attributes)), (MarginalCounts(every, cells, n, np.arange(len(n), dtype=np.int32)),))


def random_chain(rng: np.random.Generator, values: int) -> list[list[int]]:
    chain = [list(range(values))]
    while max(chain[-1]) >= 1 and rng.random() < 0.6:
        nodes = max(chain[-1]) + 1
        up = np.unique(rng.integers(0, max(nodes - 1, 1), nodes), return_inverse=True)[1]
        if up.max() == 0:
            break
        chain.append([int(up[node]) for node in chain[-1]])
    return chain


def random_case(
    rng: np.random.Generator,
    *,
    values: int | None = None,
    most: int = 40,
    hidden: int = 1,
    often: float = 0.7,
    even: float = 0.7,
) -> Case:
    quasi = int(rng.integers(1, 4))
    sizes = [int(rng.integers(2, 4)) for _ in range(quasi)]
    maps = [random_chain(rng, size) for size in sizes]
    maps += [[list(range(values or int(rng.integers(2, 5))))] for _ in range(hidden)]
    people = int(rng.integers(1, most + 1))
    weights = [rng.dirichlet(np.full(len(chain[0]), even)) for chain in maps]
    columns = [rng.choice(len(w), people, p=w) for w in weights]
    if rng.random() < 0.5:  # some dependence
        columns[-1] = np.where(rng.random(people) < 0.6, columns[0] % len(maps[-1][0]), columns[-1])
    rows = [tuple(int(column[i]) for column in columns) for i in range(people)]
    collection: list[Levels] = []
    for _ in range(int(rng.integers(1, 5))):
        levels = [int(rng.integers(-1, len(chain))) if rng.random() < 0.7 else -1 for chain in maps[:quasi]]
        levels += [0 if rng.random() < often else -1 for _ in range(hidden)]
        if max(levels) >= 0:
            collection.append(tuple(levels))
    collection = collection or [(0,) + (-1,) * (len(maps) - 1)]
    return Case(rows, maps, collection, cache_of(rows, maps, hidden))


def dependent_case(rng: np.random.Generator, collection: list[Levels], hidden: int) -> Case:
    """Two quasi-identifiers, on whose sum each sensitive value depends: small bounds are frequent."""
    people = int(rng.integers(10, 30))
    first, second = rng.integers(0, 2, people), rng.integers(0, 3, people)
    sensitive = [(first + second + (rng.random(people) < 0.2)) % 4 for _ in range(hidden)]
    rows = [tuple(int(x) for x in row) for row in zip(first, second, *sensitive, strict=True)]
    maps = [[[0, 1]], [[0, 1, 2]], *([[0, 1, 2, 3]] for _ in range(hidden))]
    return Case(rows, maps, collection, cache_of(rows, maps, hidden))


def cases(seed: int, number: int, *, decomposable: bool | None = True, **options: Any) -> Iterator[Case]:
    rng, made = np.random.default_rng(seed), 0
    while made < number:
        case = random_case(rng, **options)
        if decomposable is None or case.decomposable == decomposable:
            made += 1
            yield case


def quasi_cells(case: Case, hidden: int = 1) -> list[tuple[int, ...]]:
    return sorted({cell[:-hidden] for cell in oracle.domain(case.maps)})


def matching(case: Case, verdict: Verdict, hidden: int = 1) -> list[tuple[int, ...]]:
    """The cells of the domain that lie in the verdict's worst cell."""
    assert verdict.worst is not None
    wanted = {case.cache.domain.names.index(name): place for name, place in verdict.worst.items()}
    cells = quasi_cells(case, hidden)
    return [t for t in cells if all(case.maps[i][level][t[i]] == node for i, (level, node) in wanted.items())]


# Bounds


def test_the_bound_on_a_cell_is_what_integer_programs_find() -> None:
    tried = 0
    for case in cases(1, 25, most=12):
        for t in quasi_cells(case):
            assert oracle.bound(t, case.rows, case.collection, case.maps) == oracle.most_people(
                t, case.rows, case.collection, case.maps
            ), (case.rows, case.maps, case.collection, t)
            tried += 1
    assert tried > 120


@pytest.mark.slow
def test_the_bound_on_a_cell_is_what_thousands_of_integer_programs_find() -> None:
    for case in cases(2, 2000, most=15):
        t = quasi_cells(case)[len(case.rows) % len(quasi_cells(case))]
        found = oracle.most_people(t, case.rows, case.collection, case.maps)
        assert oracle.bound(t, case.rows, case.collection, case.maps) == found


@pytest.mark.parametrize("k", [2, 3, 5])
def test_anonymity_is_judged_as_its_two_definitions_say(k: int) -> None:
    """k-link by the marginals, k-combinatorial by the bound on every cell of the domain."""
    seen = {"link": 0, "combinatorial": 0, "holds": 0}
    rng = np.random.default_rng(k)
    two = [(0, -1, 0), (-1, 0, 0)]
    some = [dependent_case(rng, two, 1) for _ in range(60)]
    for case in [*some, *cases(10 + k, 120, most=25 * k, values=4, often=0.95)]:
        if k > len(case.rows):
            continue
        verdict = check(case.marginals, case.cache, KAnonymity(k))
        group = oracle.smallest_group(case.rows, case.collection, case.maps)
        bounds = [oracle.bound(t, case.rows, case.collection, case.maps) for t in quasi_cells(case)]
        breach = min((n for n in bounds if 0 < n < k), default=None)
        assert verdict.holds == (group >= k and breach is None)
        if group < k:
            assert verdict.reached == group
            inside = set(matching(case, verdict))
            assert any(row[:-1] in inside for row in case.rows)
            seen["link"] += 1
        elif breach is not None:
            assert verdict.reached == breach
            for t in matching(case, verdict):
                assert oracle.bound(t, case.rows, case.collection, case.maps) == breach
            seen["combinatorial"] += 1
        else:
            assert k <= verdict.reached <= min(group, *(n for n in bounds if n > 0))
            seen["holds"] += 1
    assert min(seen.values()) >= 3, seen


def agrees_with_integer_programs(case: Case, k: int, hidden: int = 1) -> bool | None:
    """The verdict, which must be that of Definition 4.2; None where a marginal alone breaks the promise."""
    quasi = [levels[:-hidden] + (-1,) * hidden for levels in case.collection if max(levels[:-hidden]) >= 0]
    if quasi and min(min(oracle.published(case.rows, one, case.maps).values()) for one in quasi) < k:
        return None
    verdict = check(case.marginals, case.cache, KAnonymity(k))
    breach = oracle.smallest_breach(k, case.rows, case.collection, case.maps, hidden=hidden)
    assert verdict.holds == (breach is None)
    assert verdict.holds or verdict.reached == breach
    return verdict.holds


def test_anonymity_of_collections_that_are_not_decomposable_is_what_integer_programs_find() -> None:
    rng = np.random.default_rng(20)
    found = [agrees_with_integer_programs(case, 2) for case in cases(20, 8, decomposable=False) if len(case.rows) > 1]
    found += [agrees_with_integer_programs(case_of_pairs(rng), 3) for _ in range(12)]
    assert min(found.count(True), found.count(False)) >= 3, found


def case_of_pairs(rng: np.random.Generator) -> Case:
    """All pairs of three columns: people can only move in step, and nobody moves past an empty cell."""
    pairs = [(0, 0, -1, -1), (-1, 0, 0, -1), (0, -1, 0, -1), (0, -1, -1, 0)]
    n = rng.integers(3, 7, (2, 2, 2))
    n[0, 0, 0], n[1, 1, 1] = rng.integers(0, 3, 2)
    rows = [(*cell, int(rng.integers(0, 2))) for cell in np.ndindex(2, 2, 2) for _ in range(n[cell])]
    maps = [[[0, 1]]] * 4
    return Case(rows, maps, pairs, cache_of(rows, maps))


@pytest.mark.slow
@pytest.mark.parametrize("k", [2, 3])
def test_anonymity_of_many_collections_that_are_not_decomposable_is_what_integer_programs_find(k: int) -> None:
    rng = np.random.default_rng(k)
    some = cases(21 + k, 400, decomposable=False, most=30)
    found = [agrees_with_integer_programs(case, k) for case in some if len(case.rows) >= k]
    found += [agrees_with_integer_programs(case_of_pairs(rng), k) for _ in range(200)]
    assert min(found.count(True), found.count(False)) >= 20, (found.count(True), found.count(False))


@pytest.mark.parametrize(
    "collection",
    [
        [(0, -1, 0, 0), (-1, 0, 0, 0)],
        [(0, -1, 0, -1), (-1, 0, 0, -1), (0, -1, -1, 0)],
        [(0, -1, 0, -1), (0, -1, -1, 0), (-1, 0, 0, -1)],
        [(0, -1, 0, -1), (0, 0, -1, 0)],
        [(0, 0, -1, -1), (0, -1, 0, 0)],
    ],
)
def test_several_sensitive_columns_are_bounded_as_integer_programs_find(collection: list[Levels]) -> None:
    rng, found = np.random.default_rng(30), []
    for k in (2, 3):
        found += [agrees_with_integer_programs(dependent_case(rng, collection, 2), k, 2) for _ in range(4)]
    assert found.count(None) < len(found)


@pytest.mark.slow
def test_several_sensitive_columns_are_bounded_in_both_ways() -> None:
    rng, collection = np.random.default_rng(31), [(0, -1, 0, -1), (-1, 0, 0, -1), (0, -1, -1, 0)]
    found = [agrees_with_integer_programs(dependent_case(rng, collection, 2), 3, 2) for _ in range(25)]
    assert min(found.count(True), found.count(False)) >= 3, found


def test_no_set_of_cells_is_shown_to_hold_a_few_people() -> None:
    """Neither a coarser cell, nor fewer attributes, nor what one number leaves of another: nobody, or at least k."""
    rng, tried = np.random.default_rng(33), 0
    for case in [dependent_case(rng, [(0, -1, 0), (-1, 0, 0)], 1) for _ in range(60)]:
        if check(case.marginals, case.cache, KAnonymity(2)):
            cells = quasi_cells(case)
            for _ in range(5):
                some = {cells[i] for i in rng.choice(len(cells), int(rng.integers(1, len(cells))), replace=False)}
                inside = {cell for cell in oracle.domain(case.maps) if cell[:-1] in some}
                assert oracle.most_within(inside, case.rows, case.collection, case.maps) != 1
                tried += 1
    assert tried >= 50


# Diversity and closeness


def rules(rng: np.random.Generator, values: int) -> list[tuple[Principle, str, dict[str, Any]]]:
    l = int(rng.integers(2, values + 1))
    c = float(rng.choice([0.5, 1, 2, 3, 7.5]))
    careless = int(rng.integers(0, values))
    return [
        (DistinctDiversity(l), "distinct", {}),
        (FrequencyDiversity(float(rng.uniform(1, values))), "frequency", {}),
        (EntropyDiversity(float(rng.uniform(1, values))), "entropy", {}),
        (EntropyDiversity(float(rng.uniform(1, 2)), dont_care=[str(careless)]), "adjusted", {"dont_care": [careless]}),
        (RecursiveDiversity(c, l), "recursive", {"l": l}),
        (RecursiveDiversity(c, values), "recursive", {"l": values}),
        (RecursiveDiversity(c, l, dont_care=[str(careless)]), "recursive", {"l": l, "dont_care": [careless]}),
        (AlphaAnonymity(float(rng.uniform(0.2, 1)), 1), "alpha", {}),
        (AlphaAnonymity(float(rng.uniform(0.2, 1)), 1, values=[str(careless)]), "alpha", {"values": [careless]}),
        (TCloseness(float(rng.uniform(0, 0.6))), "closeness", {}),
    ]  # fmt: skip


def expect(verdict: Verdict, principle: Principle, levels: list[float], bound: float, *, close: float) -> None:
    """The verdict is what the worst level says, and where it holds it names that level; ties are left open."""
    worst = min(levels) if principle.better == "higher" else max(levels)
    if math.isfinite(worst) and abs(worst - bound) <= close * max(abs(bound), 1):
        return
    assert verdict.holds == (worst > bound if principle.better == "higher" else worst < bound)
    if verdict.holds:
        assert verdict.reached == pytest.approx(worst, rel=1e-6, abs=1e-9)


def bound_of(principle: Any) -> float:
    if isinstance(principle, DistinctDiversity):
        return principle.l - 0.5  # whole numbers: a tie is met
    for name in ("t", "alpha", "c", "l"):
        if hasattr(principle, name):
            return float(getattr(principle, name))
    raise AssertionError


def named_columns(case: Case) -> Columns:
    return unnamed_columns(case.cache)


@pytest.mark.parametrize("values", [2, 3, 4])
def test_every_principle_is_judged_as_the_maximum_entropy_distribution_says(values: int) -> None:
    """Against iterative fitting over the whole domain; two and three values use hulls, or ratios where l is all."""
    rng = np.random.default_rng(values)
    seen = {True: 0, False: 0}
    for case in cases(40 + values, 60, values=values, most=150, often=0.95, even=2):
        with_it = [levels for levels in maximal(case.marginals) if levels.levels[-1] == 0]
        p = oracle.maximum_entropy(case.rows, case.collection, case.maps)
        assert p is not None
        if not with_it:
            assert check(case.marginals, case.cache, EntropyDiversity(2)).holds
            continue
        cells = oracle.conditionals(p, values)
        reference = [sum(row[-1] == v for row in case.rows) for v in range(values)]
        for principle, name, extra in rules(rng, values):
            verdict = check(case.marginals, case.cache, principle)
            levels = [oracle.level(name, row, reference=reference, **extra) for row in cells.values()]
            expect(verdict, principle, levels, bound_of(principle), close=1e-6)
            seen[verdict.holds] += len(with_it) > 1
            if verdict.worst is not None and name != "adjusted":
                inside = [cells[t] for t in matching(case, verdict) if t in cells]
                summed = [math.fsum(row[v] for row in inside) for v in range(values)]
                there = oracle.level(name, summed, reference=reference, **extra)
                assert verdict.reached == pytest.approx(there, rel=1e-6, abs=1e-9)
    assert min(seen.values()) >= 10, seen


def test_collections_that_are_not_decomposable_are_all_judged_as_fitting_says() -> None:
    assert judged_by_fitting(50, 12) > 20


@pytest.mark.slow
def test_thousands_of_verdicts_on_collections_that_are_not_decomposable_are_those_of_fitting() -> None:
    assert judged_by_fitting(51, 900) > 2000


def judged_by_fitting(seed: int, number: int) -> int:
    """How many verdicts were those of fitting over the whole domain; cases in which that does not settle are left out.

    A domain of a few cells never keeps a verdict waiting.
    """
    rng, judged = np.random.default_rng(seed), 0
    for case in cases(seed, number, decomposable=False, values=3):
        p = oracle.maximum_entropy(case.rows, case.collection, case.maps)
        if p is None or not any(levels[-1] == 0 for levels in case.collection):
            continue
        cells = oracle.conditionals(p, 3)
        reference = [sum(row[-1] == v for row in case.rows) for v in range(3)]
        for at in rng.choice(10, 3, replace=False):
            principle, name, extra = rules(rng, 3)[at]
            verdict = check(case.marginals, case.cache, principle)
            assert verdict.principle is not None
            levels = [oracle.level(name, row, reference=reference, **extra) for row in cells.values()]
            expect(verdict, principle, levels, bound_of(principle), close=1e-5)
            judged += 1
    return judged


def test_a_cell_that_only_fitting_to_the_end_would_empty_is_empty() -> None:
    """All pairs leave one table, in which nobody of (0, 0) has the first value; fitting gets there ever more slowly.

    Among so many others the gap in shares is small long before the share of that cell has settled. Programs find the
    cells that can have anybody before anything is fitted.
    """
    n = np.zeros((3, 3, 2), dtype=np.int64)
    n[:2, :2], n[2, 2] = 1, 10**9
    n[0, 0, 0] = n[1, 1, 1] = 0
    cells = np.argwhere(n).astype(np.int32)
    domain = cache_of([(2, 2, 1)], [[[0, 1, 2]], [[0, 1, 2]], [[0, 1]]]).domain
    every = MarginalCounts(Marginal((0, 0, 0)), cells, n[tuple(cells.T)], np.arange(len(cells), dtype=np.int32))
    pairs = [Marginal((0, 0, -1)), Marginal((0, -1, 0)), Marginal((-1, 0, 0))]
    verdict = check(pairs, Cache(domain, (every,)), DistinctDiversity(2))
    assert not verdict
    assert verdict.reached == 1
    assert verdict.worst in ({"q0": (0, 0), "q1": (0, 0)}, {"q0": (0, 1), "q1": (0, 1)})


def test_three_marginals_are_judged_by_the_join_of_all_of_them() -> None:
    """Each marginal alone and every two keep the promise; the three together do not, in a cell that they name."""
    rng = np.random.default_rng(70)
    three = [Marginal((0, -1, -1, 0)), Marginal((-1, 0, -1, 0)), Marginal((-1, -1, 0, 0))]
    maps = [[[0, 1]], [[0, 1]], [[0, 1]], [[0, 1]]]
    for _ in range(20):
        s = rng.integers(0, 2, 200)
        columns = [np.where(rng.random(200) < 0.7, s, 1 - s) for _ in range(3)]
        rows = [tuple(int(x) for x in row) for row in zip(*columns, s, strict=True)]
        cache = cache_of(rows, maps)
        worst = [
            check(some, cache, FrequencyDiversity(1)).reached for some in (three[:2], three[1:], three[::2], three)
        ]
        asked = FrequencyDiversity((min(worst[:3]) + worst[3]) / 2)
        assert all(check(some, cache, asked) for some in (three[:2], three[1:], three[::2]))
        verdict = check(three, cache, asked)
        assert not verdict
        assert verdict.worst is not None
        assert len(verdict.worst) == 3
        p = oracle.maximum_entropy(rows, [marginal.levels for marginal in three], maps)
        assert p is not None
        largest = max(max(row) / sum(row) for row in oracle.conditionals(p, 2).values())
        assert verdict.reached == pytest.approx(1 / largest, rel=1e-6)


def test_ties_are_met_by_at_most_and_missed_by_less_than() -> None:
    """Two marginals, a join in which every cell is uniform: bounds met exactly."""
    rows = [(a, b, s) for a in range(2) for b in range(2) for s in range(3) for _ in range(7)]
    cache = cache_of(rows, [[[0, 1]], [[0, 1]], [[0, 1, 2]]])
    two = [Marginal((0, -1, 0)), Marginal((-1, 0, 0))]
    assert check(two, cache, FrequencyDiversity(3)).holds
    assert check(two, cache, EntropyDiversity(3)).holds
    assert check(two, cache, TCloseness(0)).holds
    assert check(two, cache, AlphaAnonymity("1/3", 1)).holds
    assert not check(two, cache, RecursiveDiversity(1, 3)).holds
    assert check(two, cache, RecursiveDiversity(1.0001, 3)).holds


@pytest.mark.parametrize(
    "principle",
    [
        DistinctDiversity(2),
        FrequencyDiversity(2),
        EntropyDiversity(2),
        EntropyDiversity(2, dont_care=["b", "d"]),
        RecursiveDiversity(2, 1),
        RecursiveDiversity(2, 2),
        RecursiveDiversity(2, 5),
        RecursiveDiversity(2, 3, dont_care=["a", "c"]),
        RecursiveDiversity(2, 2, protected=["a"], share=0.25),
        AlphaAnonymity(0.5, 1),
        AlphaAnonymity(0.5, 1, values=["c"]),
        TCloseness(0.3),
        TCloseness(0.3, distance="ordered"),
        TCloseness(0.3, distance="hierarchical"),
    ],
    ids=repr,
)
def test_on_whole_people_levels_and_verdicts_are_those_of_the_principles(principle: Principle) -> None:
    """Random groups, with zeros and ties; scaling a row changes nothing."""
    rng = np.random.default_rng(12)
    tree = (np.arange(5), np.array([0, 0, 1, 1, 1]), np.zeros(5, dtype=np.int64))
    column = Sensitive("s", ("a", "b", "c", "d", "e"), ordered=True, tree=tree)
    n = rng.integers(0, 5, (2000, 5)) * (rng.random((2000, 5)) < 0.8)
    n[0] = 4
    counts = dense(n, (column,))
    mine = rule(principle, (column,), np.arange(5)[:, None], n.sum(axis=0))
    for scale in (1.0, 1 / 3, 1e-9):
        levels = mine.level(n * scale)
        people = n.sum(axis=1) > 0
        assert levels[people] == pytest.approx(principle.level(counts)[people], rel=1e-9, abs=1e-12)
        assert np.array_equal(mine.judge(n * scale).holds, principle.holds(counts))


def test_published_marginals_alone_give_the_verdict_of_the_table() -> None:
    """What is re-checked before anything is saved."""
    for case in cases(90, 150, most=80):
        again = Cache(case.cache.domain, tuple(case.cache.counts(one) for one in maximal(case.marginals)))
        with_it = any(levels[-1] == 0 for levels in case.collection)
        for principle in [KAnonymity(1), KAnonymity(min(3, len(case.rows))), EntropyDiversity(1.5), TCloseness(0.3)]:
            first = check(case.marginals, case.cache, principle)
            assert first == check(case.marginals, again, principle) or (not with_it and math.isnan(first.reached))


def test_marginals_without_the_sensitive_column_change_no_diversity() -> None:
    """Proposition 7.3."""
    for case in cases(60, 200):
        with_it = [marginal for marginal in maximal(case.marginals) if marginal.levels[-1] == 0]
        if with_it:
            principle = EntropyDiversity(1.5)
            assert check(case.marginals, case.cache, principle).holds == check(with_it, case.cache, principle).holds


# Prunings


def test_no_pruning_changes_a_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    """Theorem 7.1, on tables with many cells: the worst level with prunings is the worst level without."""
    rng = np.random.default_rng(7)
    for values in (2, 3, 4):
        for _ in range(10):
            people = 300
            columns = [rng.integers(0, 6, people), rng.integers(0, 5, people), rng.integers(0, 4, people)]
            sensitive = (rng.random(people) ** 2 * values).astype(int)
            rows = [tuple(int(x) for x in row) for row in zip(*columns, sensitive, strict=True)]
            maps = [[list(range(6)), [0, 0, 0, 1, 1, 1]], [list(range(5))], [list(range(4))], [list(range(values))]]
            collection = [Marginal((0, -1, -1, 0)), Marginal((1, 0, -1, 0)), Marginal((1, -1, 0, 0))]
            principles = [
                DistinctDiversity(1),
                FrequencyDiversity(1),
                EntropyDiversity(1),
                RecursiveDiversity(1e6, values),
                RecursiveDiversity(1e6, 2),
                TCloseness(1),
            ]
            pruned = Checker(cache_of(rows, maps), tuple(principles), named_columns_of(rows, maps)).check(collection)
            with monkeypatch.context() as patch:
                patch.setattr(privacy_maxent, "pruning", lambda rule, values: _nothing)
                plain = Checker(cache_of(rows, maps), tuple(principles), named_columns_of(rows, maps)).check(collection)
            assert pruned.holds == plain.holds
            assert [part.reached for part in pruned.parts] == pytest.approx([part.reached for part in plain.parts])


def _nothing(rows: np.ndarray, block: np.ndarray) -> np.ndarray:
    return np.arange(len(rows))


def named_columns_of(rows: list[tuple[int, ...]], maps: list[list[list[int]]]) -> Columns:
    return unnamed_columns(cache_of(rows, maps))


@pytest.mark.parametrize("values", [1, 2, 3])
def test_what_a_hull_drops_is_a_mixture_of_what_it_keeps(values: int) -> None:
    from scipy.optimize import nnls

    rng = np.random.default_rng(8)
    dropped = 0
    for _ in range(200):
        number = int(rng.integers(1, 15))
        rows = rng.integers(0, 5, (number, values)).astype(float)
        rows = rows[rows.sum(axis=1) > 0]
        if len(rows) == 0:
            continue
        block = rng.integers(0, 2, len(rows))
        kept = hull(rows, block)
        for at in set(range(len(rows))) - set(kept.tolist()):
            mates = rows[[i for i in kept if block[i] == block[at]]]
            assert nnls(mates.T, rows[at])[1] < 1e-9
            dropped += 1
    assert dropped > 100


def test_dominated_bounds_stay_where_their_values_differ() -> None:
    """(1, 0) ≤ (1, 2), but joined with (0, 3) they bound by 0, which is fine, and by 2, which is a breach."""
    rows, block = np.array([[1.0, 0.0], [1.0, 2.0], [1.0, 3.0]]), np.zeros(3, dtype=np.int64)
    assert capped(5, dominance_from=0)(rows, block).tolist() == [0, 1]
    assert smallest(rows, block).tolist() == [0]


def test_capped_bounds_lose_no_breach() -> None:
    rng = np.random.default_rng(9)
    for _ in range(2000):
        k = int(rng.integers(2, 6))
        rows = rng.integers(0, 7, (int(rng.integers(1, 12)), 3)) * rng.integers(0, 2, 3)
        rows, other = rows[rows.any(axis=1)].astype(float), rng.integers(0, 7, 3)
        kept = capped(k, dominance_from=0)(rows, np.zeros(len(rows), dtype=np.int64)) if len(rows) else []
        every, left = (
            [int(np.minimum(row, other).sum()) for row in some] for some in (rows, rows[kept] if len(rows) else rows)
        )
        assert any(0 < n < k for n in every) == any(0 < n < k for n in left)


def test_ratio_pruning_keeps_the_largest_ratio_of_every_pair_whatever_follows() -> None:
    """Also where a value is absent, and its ratio infinite: every later factor meets the same worst pair."""
    rng = np.random.default_rng(13)
    for _ in range(1000):
        rows = rng.integers(0, 4, (int(rng.integers(1, 12)), 3)).astype(float)
        rows = rows[rows.any(axis=1)]
        block, later = rng.integers(0, 2, len(rows)), rng.integers(0, 4, 3).astype(float)
        kept = ratio(rows, block) if len(rows) else []
        for one in set(block.tolist()):
            every, left = (
                _largest_ratio(some * later) for some in (rows[block == one], rows[kept][block[kept] == one])
            )
            assert every == pytest.approx(left)


def _largest_ratio(rows: np.ndarray) -> float:
    pairs = [(a, b) for row in rows for i, a in enumerate(row) for j, b in enumerate(row) if i != j and a > 0]
    return max((a / b if b > 0 else math.inf for a, b in pairs), default=0.0)


def test_simple_prunings_keep_one_of_a_kind() -> None:
    rows = np.array([[1.0, 2.0], [2.0, 4.0], [3.0, 1.0], [0.0, 5.0]])
    block = np.array([0, 0, 0, 1])
    assert proportional(rows, block).tolist() == [0, 2, 3]
    assert support(rows, block).tolist() == [0, 3]
    assert ratio(rows, block).tolist() == [0, 2, 3]


def test_adjusted_entropy_of_real_numbers_is_the_foundations() -> None:
    found = adjusted_perplexity_of_rows(np.array([[11, 10, 3, 2, 3, 4.0]]), np.array([True] * 4 + [False] * 2))
    assert math.log(found[0]) == pytest.approx(1.772971168390, abs=1e-11)
    scaled = adjusted_perplexity_of_rows(np.array([[11, 10, 3, 2, 3, 4.0]]) / 77, np.array([True] * 4 + [False] * 2))
    assert scaled == pytest.approx(found)


# Limits, relaxation, refusals


def test_the_relaxed_check_promises_what_it_says() -> None:
    seen = {True: 0, False: 0}
    for case in cases(70, 250, values=3, most=300, often=0.95, even=20):
        with_it = [marginal for marginal in maximal(case.marginals) if marginal.levels[-1] == 0]
        p = oracle.maximum_entropy(case.rows, case.collection, case.maps)
        if len(with_it) < 2 or p is None:
            continue
        quasi = [Marginal((*marginal.levels[:-1], -1)) for marginal in with_it]
        largest = max(len(case.cache.counts(marginal).n) for marginal in quasi)
        for epsilon in (0.3, 0.6):
            columns = unnamed_columns(case.cache)
            checker = Checker(case.cache, (RecursiveDiversity(1e9, 2),), columns, epsilon, limit=3 * largest)
            verdict = checker.check(case.marginals)
            if verdict.relaxed:
                share = (1 - epsilon) ** len(with_it)
                cells = oracle.conditionals(p, 3).values()
                enough = all(sum(x >= share * max(row) * (1 - 1e-9) for x in row) >= 2 for row in cells)
                assert enough or not verdict.holds
                seen[verdict.holds] += 1
    assert min(seen.values()) >= 3, seen


def test_the_relaxed_check_sees_a_value_that_is_rare_elsewhere() -> None:
    """Value 2 is rare in the table, but all of it stands in one cell: 20 people of it meet 3 and 3 of the others."""
    table = [((0, 0, s), 10) for s in (0, 1)] + [((1, 0, s), 290) for s in (0, 1)] + [((1, 1, s), 700) for s in (0, 1)]
    rows = [cell for cell, n in [*table, ((0, 0, 2), 20)] for _ in range(n)]
    maps, collection = [[[0, 1]], [[0, 1]], [[0, 1, 2]]], [(0, -1, 0), (-1, 0, 0)]
    cache = cache_of(rows, maps)
    p = oracle.maximum_entropy(rows, collection, maps)
    assert p is not None
    assert oracle.conditionals(p, 3)[0, 0] == pytest.approx([3, 3, 20])
    block = Checker(cache, (DistinctDiversity(2),), unnamed_columns(cache)).block((2,))
    tree = tree_of(cache.domain, [Marginal(levels) for levels in collection])
    assert tree is not None
    (finding,) = privacy_maxent.judged_relaxed(block.rules, block.factors, tree, 0.5)
    assert not finding.holds


def test_a_cell_without_a_frequent_value_fails_the_relaxed_check() -> None:
    """No value is frequent in both marginals, and the one that is second in both outweighs all in their cell."""
    first = [(0, s) for s, n in enumerate((10, 10, 1, 1, 6)) for _ in range(n)]
    first += [(1, s) for s, n in enumerate((1, 1, 10, 10, 6)) for _ in range(n)]
    rows = [(a, int(i % 2 if s == 4 else s > 1), s) for i, (a, s) in enumerate(first)]
    cache = cache_of(rows, [[[0, 1]], [[0, 1]], [[0, 1, 2, 3, 4]]])
    block = Checker(cache, (EntropyDiversity(2),), unnamed_columns(cache)).block((2,))
    tree = tree_of(cache.domain, [Marginal((0, -1, 0)), Marginal((-1, 0, 0))])
    assert tree is not None
    (finding,) = privacy_maxent.judged_relaxed(block.rules, block.factors, tree, 0.3)
    assert not finding.holds
    assert finding.reached == 0


def test_a_join_that_is_too_large_is_refused_with_the_reason() -> None:
    rows = [(int(a), int(b), int(s)) for a, b, s in np.random.default_rng(3).integers(0, 4, (300, 3))]
    cache = cache_of(rows, [[list(range(4))]] * 3)
    two = [Marginal((0, -1, 0)), Marginal((-1, 0, 0))]
    columns = unnamed_columns(cache)
    for principle in (EntropyDiversity(2), TCloseness(0.5)):
        verdict = Checker(cache, (principle,), columns, limit=40).check(two)
        assert not verdict.holds
        assert "more than 40 numbers" in verdict.reason
    relaxed = Checker(cache, (EntropyDiversity(2),), columns, 0.1, limit=40).check(two)
    assert not relaxed.relaxed or "instead of" in relaxed.reason
    unknown = Checker(cache, (TCloseness(0.5),), columns, 0.1, limit=40).check(two)
    assert not unknown.holds
    assert "does not know TCloseness" in unknown.reason


def test_sensitive_columns_together_in_one_marginal_and_apart_in_another_are_refused() -> None:
    rows = [(a, s, r) for a in range(2) for s in range(2) for r in range(2)] * 5
    cache = cache_of(rows, [[[0, 1]]] * 3, hidden=2)
    verdict = check([Marginal((0, 0, -1)), Marginal((-1, 0, 0))], cache, KAnonymity(2))
    assert not verdict.holds
    assert "together or apart" in verdict.reason


def test_several_sensitive_columns_are_judged_by_name_and_by_multi_attribute() -> None:
    """In one marginal s1 is what s2 is: each alone is uniform, but who knows one knows the other."""
    rows = [(a, s, s) for a in range(2) for s in range(3) for _ in range(4)]
    cache = cache_of(rows, [[[0, 1]], [[0, 1, 2]], [[0, 1, 2]]], hidden=2)
    whole = [Marginal((0, 0, 0))]
    assert check(whole, cache, EntropyDiversity(3, sensitive="s1")).holds
    assert not check(whole, cache, MultiAttribute(EntropyDiversity(3))).holds
    assert check([Marginal((0, 0, -1)), Marginal((0, -1, 0))], cache, MultiAttribute(EntropyDiversity(3))).holds
    with pytest.raises(InputError, match="which sensitive column"):
        check(whole, cache, EntropyDiversity(3))


def test_the_k_of_alpha_anonymity_is_that_of_the_collection() -> None:
    """Two marginals that bound a cell by 1: k = 2 fails, whatever alpha says; k = 1 asks for alpha alone."""
    rows = [(0, 0, 0)] + [(0, 1, s) for s in (1, 2)] * 3 + [(1, 0, s) for s in (3, 4)] * 3 + [(1, 1, 0)] * 2
    cache = cache_of(rows, [[[0, 1]], [[0, 1]], [[0, 1, 2, 3, 4]]])
    two = [Marginal((0, -1, 0)), Marginal((-1, 0, 0))]
    assert not check(two, cache, KAnonymity(2))
    assert not check(two, cache, AlphaAnonymity(1, 2))
    assert check(two, cache, AlphaAnonymity(1, 1))


def test_a_table_without_sensitive_columns_has_its_marginals_judged_one_by_one() -> None:
    cache = cache_of([(0, 0), (0, 1), (1, 1), (1, 1)], [[[0, 1]], [[0, 1]]], hidden=0)
    assert check([Marginal((0, -1))], cache, KAnonymity(2))
    assert check([Marginal((0, -1)), Marginal((-1, 0))], cache, KAnonymity(1))
    assert not check([Marginal((0, -1)), Marginal((-1, 0))], cache, KAnonymity(2))
    with pytest.raises(InputError, match="needs a sensitive column"):
        check([Marginal((0, -1))], cache, EntropyDiversity(2))


def test_bad_questions_are_answered_in_one_line() -> None:
    cache = cache_of([(0, 0), (1, 1)], [[[0, 1]], [[0, 1]]])
    marginal = [Marginal((0, 0))]
    with pytest.raises(InputError, match="at least one marginal"):
        check([], cache, KAnonymity(1))
    with pytest.raises(InputError, match="larger than the table"):
        check(marginal, cache, KAnonymity(3))
    with pytest.raises(InputError, match="number of values"):
        check(marginal, cache, DistinctDiversity(3))
    with pytest.raises(InputError, match="epsilon"):
        check(marginal, cache, KAnonymity(1), epsilon=1.5)
    with pytest.raises(InputError, match="cannot be judged"):
        check(marginal, cache, MultiAttribute(KAnonymity(2)))


def test_marginals_that_contradict_each_other_are_refused() -> None:
    """As many people in both, but not the same: someone changed a published file."""
    cache = cache_of([(a, b, s) for a in range(2) for b in range(2) for s in range(2)], [[[0, 1]]] * 3)
    first, second = Marginal((0, -1, 0)), Marginal((-1, 0, 0))
    honest = cache.counts(second)
    changed = MarginalCounts(second, honest.cells, honest.n + np.array([1, -1, 0, 0]), honest.cell_of_combination)
    again = Cache(cache.domain, (cache.counts(first), changed))
    with pytest.raises(InputError, match="contradict"):
        check([first, second], again, EntropyDiversity(1.1))


def test_a_reason_names_no_value_and_a_verdict_is_a_truth_value() -> None:
    cache = cache_of([(0, 0), (0, 1), (1, 1)], [[[0, 1]], [[0, 1]]])
    verdict = check([Marginal((0, 0))], cache, [KAnonymity(2), DistinctDiversity(2)])
    assert not verdict
    assert verdict.worst == {"q0": (0, 1)}
    assert verdict.principle == KAnonymity(2)
    assert verdict.reached == 1
    assert check([Marginal((-1, 0))], cache, [KAnonymity(2), DistinctDiversity(2)])


def test_a_checker_says_the_same_whatever_it_was_asked_before() -> None:
    rng = np.random.default_rng(11)
    case = next(cases(80, 1, values=3, most=80))
    checker = Checker(case.cache, (KAnonymity(2), EntropyDiversity(1.2)), unnamed_columns(case.cache))
    for _ in range(60):
        levels = [tuple(int(rng.integers(-1, len(chain))) for chain in case.maps) for _ in range(3)]
        collection = [Marginal(one) for one in levels if max(one) >= 0]
        if collection:
            again = check(collection, case.cache, [KAnonymity(2), EntropyDiversity(1.2)])
            first = checker.check(collection)
            assert (first.holds, first.reason, first.worst) == (again.holds, again.reason, again.worst)
