"""Safety bounds the maximum disclosure of all groups at once, exactly, in every search that takes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product

import numba
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import jali
from jali import disclosure
from jali.encoding.table import Table
from jali.errors import InfeasibleError, InputError
from jali.kernels.worst_case import safe_alone
from jali.principles import Counts, Safety, dense, from_dict
from jali.principles.base import hold
from jali.search import mondrian as partitioning
from jali.search.mondrian import Boxes, mondrian
from oracles import disclosure as oracle
from oracles.often import examples, seeds

Rows = list[list[int]]


@st.composite
def matrices(draw: st.DrawFn, *, groups: int = 4, values: int = 4, people: int = 6) -> Rows:
    """Groups × values, each group with somebody in it."""
    width = draw(st.integers(1, values))
    row = st.lists(st.integers(0, people), min_size=width, max_size=width).filter(any)
    return draw(st.lists(row, min_size=1, max_size=groups))


def small_table(
    seed: int, rows: int, *, values: int = 4, widths: Sequence[int] = (4, 3), missing: float = 0.0
) -> Table:
    """A table with few distinct combinations, so that ties and empty parts are common; some values may be missing."""
    random = np.random.default_rng(seed)
    data = {f"q{i}": random.integers(0, width, rows) for i, width in enumerate(widths)}
    data["s"] = random.choice(
        [f"v{i}" for i in range(values)], rows, p=np.arange(values, 0, -1) / (values * (values + 1) / 2)
    )
    if missing:
        data["s"] = pa.array(data["s"], mask=random.random(rows) < missing)
    quasi = {f"q{i}": jali.bands(2) for i in range(len(widths))}
    return jali.table(pa.table(data), quasi=quasi, sensitive=["s"])


# -- judging ------------------------------------------------------------------------------------------------------


@examples(3)
@given(matrices(), st.integers(0, 3))
def test_the_level_of_a_group_is_the_worst_attack_on_somebody_in_it(rows: Rows, k: int) -> None:
    """Every group's level by enumeration; the largest is the maximum disclosure."""
    level = Safety(1, k).level(dense(np.array(rows)))
    expected = [oracle.maximum(rows, k, group=group) for group in range(len(rows))]
    assert np.allclose(level, [float(e) for e in expected], atol=1e-12)
    assert max(expected) == disclosure.maximum(rows, k, exact=True)


@examples(3)
@given(matrices(), st.integers(0, 3))
def test_a_bound_that_is_reached_exactly_is_not_kept(rows: Rows, k: int) -> None:
    """Strictly below: c at a level fails it, and the least bit above keeps it, however floats round."""
    counts = dense(np.array(rows))
    for group in range(len(rows)):
        level = oracle.maximum(rows, k, group=group)
        assert not Safety(level, k).holds(counts)[group]
        above = level + Fraction(1, 10**15)
        if above <= 1:
            assert Safety(above, k).holds(counts)[group]
    alone = [oracle.maximum([row], k) for row in rows]
    for row, level in enumerate(alone):
        assert not Safety(level, k).alone(counts)[row]
        assert level == 1 or Safety(min(Fraction(1), level + Fraction(1, 10**15)), k).alone(counts)[row]


@examples(3)
@given(matrices(groups=5, people=9), st.integers(0, 5), st.data())
def test_joining_groups_never_raises_the_level_of_any(rows: Rows, k: int, data: st.DataObject) -> None:
    """Theorem 14, and more: neither that of the joined groups beyond the larger of theirs nor that of others."""
    counts = dense(np.array(rows))
    into = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(rows), max_size=len(rows))))
    _, into = np.unique(into, return_inverse=True)
    before, after = Safety(1, k).level(counts), Safety(1, k).level(counts.merged(into.astype(np.int64)))
    for group in range(after.size):
        assert after[group] <= before[into == group].max() + 1e-12


@examples(1.5)
@given(matrices(people=3), st.integers(0, 3), st.sampled_from([0.3, 0.5, 0.7, 0.9, 1]))
def test_no_group_below_the_least_size_is_safe(rows: Rows, k: int, c: float) -> None:
    """And different people of that many values are."""
    safety = Safety(c, k)
    least = safety.least_size()
    holds = safety.alone(dense(np.array(rows)))
    assert not any(holds[i] for i, row in enumerate(rows) if sum(row) < least)
    assert safety.holds(dense(np.ones((1, least), dtype=np.int64))).all()
    if least > 1:
        assert not safety.holds(dense(np.ones((1, least - 1), dtype=np.int64))).all()


def test_an_empty_group_holds_and_changes_nothing() -> None:
    """Nobody is in it."""
    with_empty = Safety(0.7, 1).level(dense(np.array([[2, 2, 1], [0, 0, 0], [2, 1, 1]])))
    without = Safety(0.7, 1).level(dense(np.array([[2, 2, 1], [2, 1, 1]])))
    assert with_empty[[0, 2]].tolist() == without.tolist()
    assert Safety(0.1, 0).holds(dense(np.array([[0, 0]]))).tolist() == [True]


def test_it_is_written_down_and_promised_in_words() -> None:
    """repr, dict and sentence."""
    safety = Safety(0.7, 3, sensitive="disease")
    assert from_dict(safety.to_dict()) == safety
    assert repr(Safety(0.7, 3)) == "Safety(0.7, 3)"
    assert "any 3 more facts" in safety.promise()
    assert "the disease of no one with a probability of 70 % or more" in safety.promise()
    assert "and nothing else" in Safety(0.7, 0).promise()


@pytest.mark.parametrize(("c", "k"), [(0, 1), (1.1, 1), (-1, 1), ("x", 1), (0.5, -1), (0.5, 1.5), (0.5, "x")])
def test_bounds_that_make_no_sense_are_refused(c: object, k: object) -> None:
    """c in (0, 1], k a whole number from 0."""
    with pytest.raises(InputError, match=r"^(c|k) must be"):
        Safety(c, k)  # type: ignore[arg-type]


def test_people_with_several_rows_are_refused() -> None:
    """In judging and before a search."""
    counts = dense(np.array([[1, 1]]))
    n = np.array([0, 0, 1])
    several = Counts(1, n * 0, np.array([0, 1, 1]), n * 0 + 1, counts.sensitive, counts.joint, person=n)
    for ask in (Safety(0.9, 1).level, Safety(0.9, 1).holds, Safety(0.9, 1).check):
        with pytest.raises(InputError, match="several rows"):
            ask(several)


# -- the lattice --------------------------------------------------------------------------------------------------


@given(seeds)
def test_all_minimal_safe_nodes_are_found(seed: int) -> None:
    """Every node judged by the oracle; those with no safe node below are the minimal ones."""
    table, safety = small_table(seed, 60), Safety([0.6, 0.8, Fraction(2, 3)][seed % 3], seed % 3)
    heights = [table.hierarchy(c.name).height for c in table.quasi]
    safe = []
    for node in product(*(range(h + 1) for h in heights)):
        levels = {c.name: level for c, level in zip(table.quasi, node, strict=True)}
        made = jali.generalize(table, [jali.KAnonymity(1)], levels=levels)
        if disclosure.maximum(made, safety.k, exact=True) < Fraction(str(safety.c)):
            safe.append(node)
    lowest = [n for n in safe if not any(m != n and all(a <= b for a, b in zip(m, n, strict=True)) for m in safe)]
    if not safe:
        with pytest.raises(InfeasibleError):
            jali.minimal(table, [safety])
        return
    assert sorted(tuple(node.levels.values()) for node in jali.minimal(table, [safety])) == sorted(lowest)


@given(seeds)
def test_with_suppression_the_whole_published_table_is_safe(seed: int) -> None:
    """The suppressed rows are a group like the others; and a budget is never worse than none."""
    table, safety = small_table(seed, 150, values=8, widths=(6, 5, 2)), Safety(0.75, 1 + seed % 2)
    made = jali.generalize(table, [safety], suppress=0.3, metric="discernibility")
    assert disclosure.maximum(made, safety.k) < 0.75
    plain = jali.generalize(table, [safety], metric="discernibility")
    assert made.manifest.metrics["discernibility"] <= plain.manifest.metrics["discernibility"]
    assert made.manifest.counts["suppressed"] <= 0.3 * 150


def test_the_joining_groups_are_the_fewest_that_make_the_table_safe() -> None:
    """Bisection finds what trying one after the other finds."""
    from jali.search.common import breaking, first_union_that_holds

    random = np.random.default_rng(5)
    for _ in range(200):
        counts = dense(random.integers(0, 6, (int(random.integers(2, 9)), 4)) + (np.arange(4) == 0))
        principles = (Safety(float(random.choice([0.6, 0.75, 0.9])), int(random.integers(0, 3))),)
        hidden = breaking(principles, counts)
        assert hidden.any() == (not principles[0].holds(counts).all())
        if not hidden.any():
            continue
        joining = np.flatnonzero(~hidden)
        tried = None
        for j in range(len(joining) + 1):
            into = np.arange(counts.groups)
            into[joining[:j]] = into[hidden] = into[hidden][0]
            _, into = np.unique(into, return_inverse=True)
            if principles[0].holds(counts.merged(into)).all():
                tried = j
                break
        assert first_union_that_holds(principles, counts, np.flatnonzero(hidden), joining) == tried


def test_repair_makes_a_release_safe() -> None:
    """By suppressing groups, all judged together."""
    table = jali.datasets.census(rows=800, seed=4)
    made = jali.repair(jali.generalize(table, [jali.KAnonymity(4)]), [Safety(0.7, 2)])
    assert disclosure.maximum(made, 2) < 0.7
    assert 0 < made.manifest.counts["suppressed"] < 800


def test_recoding_refuses_it_and_says_why() -> None:
    """It judges groups one by one."""
    with pytest.raises(InputError, match="one by one"):
        jali.recode(small_table(0, 60), [Safety(0.9, 1)])


# -- partitions ---------------------------------------------------------------------------------------------------


class AskedAnew:
    """The judge that computes all groups again at every split."""

    def __init__(self, safety: Safety, whole: Counts) -> None:
        self.safety, self.groups = safety, [row(whole)[0]]

    def allows(self, group: Counts, parts: Counts) -> bool:
        after = list(self.groups)
        after.remove(row(group)[0])
        return oracle_maximum([*after, *row(parts)], self.safety.k) < Fraction(str(self.safety.c))

    def commit(self, group: Counts, parts: Counts) -> None:
        self.groups.remove(row(group)[0])
        self.groups += row(parts)


def row(counts: Counts) -> list[tuple[int, ...]]:
    """The people of each group by value, those aside whose value is missing."""
    cells, unknown = counts.cells(), counts.sensitive[0].unknown
    known = cells.value != (-1 if unknown is None else unknown)
    return [tuple(cells.n[known & (cells.group == g)].tolist()) for g in range(counts.groups)]


def oracle_maximum(rows: Sequence[Sequence[int]], k: int) -> Fraction:
    return disclosure.maximum([list(r) for r in rows if r], k, exact=True)


@pytest.mark.parametrize("split", ["range", "entropy", "kl"])
@pytest.mark.parametrize("mode", ["strict", "relaxed"])
def test_a_partition_is_what_judging_all_groups_anew_at_every_split_gives(
    mode: str, split: str, repeats: Callable[[int], int]
) -> None:
    """Same groups, whatever the table, also where c is reached exactly."""
    for seed in range(repeats(12)):
        table = small_table(seed, 40 + 5 * seed, widths=(5, 4, 2), missing=(0.0, 0.2, 0.7)[seed % 3])
        safety = Safety([0.5, 0.6, 0.75, Fraction(2, 3), 0.9, 1][seed % 6], seed % 4)
        options = {"mode": mode, "split": split}
        try:
            made = mondrian(table, [safety], **options)  # type: ignore[arg-type]
        except InfeasibleError:
            continue
        whole = table.frequencies.counts(np.zeros(table.frequencies.combinations, dtype=np.int64), 1)
        slow = mondrian(table, [safety], judge=AskedAnew(safety, whole), **options)  # type: ignore[arg-type]
        for one, other in ((made.group, slow.group), (made.row_group, slow.row_group)):
            assert (one is None and other is None) or np.array_equal(one, other)


@numba.njit  # type: ignore[untyped-decorator]
def _verdicts(matrix, k, ratio, verdict):  # type: ignore[no-untyped-def]
    seen = np.arange(matrix.shape[1])
    for i in range(len(matrix)):
        verdict[i] = safe_alone(matrix[i], seen, -1, matrix[i].sum(), k, ratio[0] / ratio[1], ratio[0], ratio[1])


@pytest.mark.slow
@pytest.mark.parametrize("c", [0.5, 0.6, Fraction(2, 3), 0.75, Fraction(6, 7), 1])
def test_compiled_code_judges_single_groups_as_the_principle_does(c: float | Fraction) -> None:
    """Also where c is met exactly, which small counts often do."""
    random = np.random.default_rng(5)
    matrix = np.concatenate([random.integers(0, top, (700, 5)) for top in (2, 3, 5, 12, 1000)])
    matrix = matrix[matrix.sum(axis=1) > 0]
    for k in range(5):
        safety, verdict = Safety(c, k), np.empty(len(matrix), dtype=np.bool_)
        _verdicts(matrix, k, safety.ratio.as_integer_ratio(), verdict)
        assert verdict.tolist() == safety.alone(dense(matrix)).tolist()


def test_a_split_that_reaches_c_exactly_together_is_refused() -> None:
    """(6, 5, 1, 1) and (6, 3, 2, 1) disclose 13/15 together and 6/7 each: only fractions can tell."""
    data = {"q": [0] * 13 + [1] * 12, "s": list("a" * 6 + "b" * 5 + "cd" + "a" * 6 + "b" * 3 + "cc" + "d")}
    table = jali.table(pa.table(data), quasi={"q": jali.bands(2)}, sensitive=["s"])
    whole = table.frequencies.counts(np.zeros(2, dtype=np.int64), 1)
    for c, groups in ((Fraction(13, 15), 1), (Fraction(13, 15) + Fraction(1, 10**9 * 2), 2)):
        judge = partitioning.judge_of([Safety(c, 2)], whole)
        assert mondrian(table, [Safety(c, 2)]).groups == mondrian(table, [Safety(c, 2)], judge=judge).groups == groups


def random_case(seed: int) -> tuple[Table, list[jali.principles.Principle], dict[str, str]]:
    """A small table with a requirement and options; bounds are such that they are often met exactly."""
    random = np.random.default_rng(seed)
    widths = [int(w) for w in random.integers(2, 7, int(random.integers(1, 4)))]
    values, missing = int(random.integers(1, 7)), (0.0, 0.1, 0.5, 0.95)[seed % 4]
    table = small_table(seed, int(random.integers(5, 90)), values=values, widths=widths, missing=missing)
    bounds: list[Fraction | float] = [0.5, Fraction(2, 3), 0.75, Fraction(3, 5), 0.8, Fraction(6, 7), 1, 0.95]
    principles: list[jali.principles.Principle] = [Safety(bounds[random.integers(8)], int(random.integers(0, 5)))]
    if random.random() < 0.3:
        principles.append(jali.KAnonymity(int(random.integers(1, 5))))
    options = {
        "mode": ["strict", "relaxed"][random.integers(2)],
        "split": ["range", "entropy", "kl"][random.integers(3)],
    }
    if options["split"] == "kl" and random.random() < 0.5:
        options["similarity"] = "pdf"
    return table, principles, options


def test_compiled_partitions_are_those_of_the_judge_in_python(repeats: Callable[[int], int]) -> None:
    """Hundreds of small tables, all modes and splits: the same groups."""
    met = 0
    for seed in range(repeats(300)):
        table, principles, options = random_case(seed)
        whole = table.frequencies.counts(np.zeros(table.frequencies.combinations, dtype=np.int64), 1)
        judge = partitioning.judge_of(principles, whole)
        try:
            made = mondrian(table, principles, **options)  # type: ignore[arg-type]
        except InfeasibleError:
            continue
        slow = mondrian(table, principles, judge=judge, **options)  # type: ignore[arg-type]
        for one, other in ((made.group, slow.group), (made.row_group, slow.row_group)):
            assert (one is None and other is None) or np.array_equal(one, other), seed
        met += made.groups > 1
    assert met > repeats(300) // 6


def test_a_partition_is_the_same_however_many_threads_look_ahead(
    repeats: Callable[[int], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where splits are refused, and what was found below them is forgotten: same groups, as many judged."""
    cases = partitionable(repeats(60))
    whole = [mondrian(*case[:2], **case[2]) for case in cases]  # type: ignore[arg-type]
    monkeypatch.setattr(partitioning, "SMALL", 4)  # so that small tables are shared among threads
    for threads in (1, 2, 3):
        for (table, principles, options), one in zip(cases, whole, strict=True):
            made = mondrian(table, principles, threads=threads, **options)  # type: ignore[arg-type]
            assert np.array_equal(groups_of(made), groups_of(one))
            assert made.checked == one.checked


def groups_of(boxes: Boxes) -> NDArray[np.int64]:
    found = boxes.group if boxes.row_group is None else boxes.row_group
    assert found is not None
    return found


def partitionable(cases: int) -> list[tuple[Table, list[jali.principles.Principle], dict[str, str]]]:
    """Random cases whose whole table is safe."""
    made = [random_case(seed) for seed in range(cases)]
    return [
        (t, p, o)
        for t, p, o in made
        if bool(hold(p, t.frequencies.counts(np.zeros(t.frequencies.combinations, dtype=np.int64), 1)).all())
    ]


def test_a_partition_is_safe_and_no_group_could_be_split_further_alone() -> None:
    """Also beside other principles, and for several columns."""
    table = jali.datasets.census(rows=1500, seed=1)
    made = jali.partition(table, [Safety(0.6, 2), jali.KAnonymity(8)])
    assert disclosure.maximum(made, 2) < 0.6
    assert made.counts().size.min() >= 8
    looser = jali.partition(table, [Safety(0.8, 2), jali.KAnonymity(8)])
    assert len(looser.groups) > len(made.groups)


def test_the_tree_of_groups_is_the_fold_of_its_leaves() -> None:
    """As leaves are set, set again and the tree grows."""
    from jali.kernels.mondrian_safety import empty_tree, grown, put, ratio_if
    from jali.principles.worst_case import folded, least_false, of_matrix, targeted

    random, k = np.random.default_rng(2), 3
    tree, leaves = empty_tree(1, k), {}
    for step in range(200):
        buckets = of_matrix(random.integers(1, 9, (2, 5)), k + 1)
        free = least_false(buckets, k + 1)
        vectors = np.ascontiguousarray(np.stack([free[:-1].T, targeted(free, buckets).T], axis=1))
        leaf = int(random.integers(0, step + 1)) if step else 0
        while leaf >= len(tree) // 2:
            tree = grown(tree)
        others = [v for other, v in leaves.items() if other != leaf]
        both = np.stack([*others, *vectors])
        assert ratio_if(tree, leaf, vectors) == pytest.approx(folded(both[:, 0].T, both[:, 1].T)[1][k], rel=1e-12)
        put(tree, leaf, vectors[0])
        leaves[leaf] = vectors[0]
        every = np.stack(list(leaves.values()))
        assert np.allclose(tree[1], folded(every[:, 0].T, every[:, 1].T), rtol=1e-12)


def test_several_columns_are_judged_in_the_lattice_and_refused_in_partitions() -> None:
    """MultiAttribute takes Safety where all groups are judged; partitioning says what to write instead."""
    random = np.random.default_rng(0)
    data = {
        "q": random.integers(0, 6, 200),
        "s": random.integers(0, 4, 200).astype(str),
        "t": random.integers(0, 2, 200).astype(str),
    }
    table = jali.table(pa.table(data), quasi={"q": jali.bands(2)}, sensitive=["s", "t"])
    principle = jali.MultiAttribute(Safety(0.9, 0))
    made = jali.generalize(table, [principle])
    assert principle.worst(made.counts()) < 0.9
    with pytest.raises(InputError, match=r"Safety\(c, k, sensitive=…\)"):
        jali.partition(table, [principle])
    both = jali.partition(table, [Safety(0.6, 1, sensitive="s"), Safety(0.9, 0, sensitive="t")])
    assert disclosure.maximum(both, 1, sensitive="s") < 0.6
    assert disclosure.maximum(both, 0, sensitive="t") < 0.9


def test_the_judge_is_made_only_where_it_is_needed() -> None:
    """Principles about single groups keep their own way."""
    table = small_table(0, 30)
    whole = table.frequencies.counts(np.zeros(table.frequencies.combinations, dtype=np.int64), 1)
    assert partitioning.judge_of([jali.KAnonymity(2)], whole) is None
