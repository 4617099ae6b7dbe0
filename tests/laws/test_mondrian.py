"""Laws of the multidimensional partitioning: whatever the table, its groups keep every promise and its own rules."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import hypothesis.strategies as st
import numba
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

import jali
from jali.encoding.table import Table
from jali.errors import InfeasibleError, InputError
from jali.kernels import judge as kernels
from jali.principles.base import Principle, hold
from jali.principles.counts import Counts, dense
from jali.principles.rules import rules_of
from jali.search import splits as mondrian_splits
from jali.search.items import MODES, SPLITS
from jali.search.lattice.lattice import Lattice
from jali.search.mondrian import Boxes, mondrian
from oracles.mondrian import Reference
from oracles.often import examples

TREE = [
    ("a", "x", "r", "*"), ("b", "y", "r", "*"), ("c", "x", "r", "*"),
    ("d", "z", "s", "*"), ("e", "z", "s", "*"), ("f", "w", "s", "*"),
]  # fmt: skip
BUILDERS = {"age": jali.bands(5, 10), "tree": jali.taxonomy(TREE), "zip": jali.suppress()}
COMPILED = [
    jali.KAnonymity(1), jali.KAnonymity(2), jali.KAnonymity(3), jali.DistinctDiversity(2), jali.EntropyDiversity(1.5),
    jali.EntropyDiversity(2), jali.FrequencyDiversity(1.5), jali.FrequencyDiversity("5/3"),
    jali.RecursiveDiversity(2, 2), jali.RecursiveDiversity(1, 3), jali.RecursiveDiversity(1, 1), jali.TCloseness(0.3),
    jali.AlphaAnonymity(0.6, 2), jali.AlphaAnonymity(0.5, 2, values=["flu"]),
]  # fmt: skip
OTHERS = [
    jali.TCloseness(0.3, distance="ordered"), jali.MultiAttribute(jali.DistinctDiversity(2)),
    jali.EntropyDiversity(2, dont_care=["flu"]),
]  # fmt: skip
modes, splits = st.sampled_from(MODES), st.sampled_from(SPLITS)
requirements = st.lists(st.sampled_from(COMPILED + OTHERS), min_size=1, max_size=2, unique=True)


@st.composite
def tables(draw: st.DrawFn, *, persons: bool = False) -> Table:
    """Small tables with ties, single values, one attribute, and domains of size one."""
    rows = draw(st.integers(1, 40))
    column = lambda values: draw(st.lists(st.sampled_from(values), min_size=rows, max_size=rows))  # noqa: E731
    frame = {
        "age": column(draw(st.sampled_from([[30], [20, 21, 29, 30], [1, 2, 3, 18, 35, None], list(range(30))]))),
        "tree": column([row[0] for row in TREE][: draw(st.integers(1, 6))]),
        "zip": column(["13053", "13068", "14850", "14853"][: draw(st.integers(1, 4))]),
        "ill": column(["flu", "cold", "cancer", None][: draw(st.integers(1, 4))]),
    }
    if persons:
        frame["who"] = draw(st.lists(st.integers(0, rows // 2), min_size=rows, max_size=rows))
    names = draw(st.lists(st.sampled_from(sorted(BUILDERS)), min_size=1, unique=True))
    return jali.table(
        pa.table(frame), quasi={name: BUILDERS[name] for name in names}, sensitive=["ill"],
        person="who" if persons else None, domain=draw(st.sampled_from(["declared", "present"])),
    )  # fmt: skip


def partition(table: Table, principles: list[Principle], **options: object) -> Boxes | None:
    """The boxes, or None where the whole table fails already."""
    try:
        return mondrian(table, principles, **options)  # type: ignore[arg-type]
    except (InfeasibleError, InputError):
        return None


def group_of_records(table: Table, boxes: Boxes) -> np.ndarray:  # type: ignore[type-arg]
    """The group of each record."""
    return boxes.row_group if boxes.group is None else boxes.group[table.frequencies.row_combination]


def same_as_reference(
    table: Table, principles: list[Principle], mode: str, split: str, similarity: str = "box"
) -> None:
    boxes = partition(table, principles, mode=mode, split=split, similarity=similarity)
    if boxes is None:
        return
    expected = np.empty(table.records, dtype=np.int64)
    for number, rows in enumerate(Reference(table, principles, mode, split, similarity).groups()):
        expected[rows] = number
    assert group_of_records(table, boxes).tolist() == expected.tolist()


@given(tables(), requirements, modes, splits)
def test_it_finds_what_the_rules_say(table, principles, mode, split):  # type: ignore[no-untyped-def]
    same_as_reference(table, principles, mode, split)


@given(tables(), requirements, modes)
def test_it_finds_what_the_rules_say_where_groups_are_compared_by_distributions(table, principles, mode):  # type: ignore[no-untyped-def]
    same_as_reference(table, principles, mode, "kl", "pdf")


@given(tables(), st.lists(st.sampled_from(COMPILED), min_size=1, max_size=2, unique=True), modes)
def test_the_generic_path_compares_distributions_as_the_kernels_do(table, principles, mode):  # type: ignore[no-untyped-def]
    boxes = partition(table, principles, mode=mode, split="kl", similarity="pdf")
    again = partition(table, principles, mode=mode, split="kl", similarity="pdf", judge=Anything())
    assert (boxes is None) == (again is None)
    if boxes is not None and again is not None:
        assert group_of_records(table, boxes).tolist() == group_of_records(table, again).tolist()


@given(tables(persons=True), requirements, modes, splits)
def test_promises_count_people_where_persons_are_named(table, principles, mode, split):  # type: ignore[no-untyped-def]
    same_as_reference(table, principles, mode, split)


@given(tables(), requirements, modes, splits, st.randoms(use_true_random=False))
def test_hidden_combinations_are_left_out(table, principles, mode, split, random):  # type: ignore[no-untyped-def]
    hidden = np.array([random.random() < 0.3 for _ in range(table.frequencies.combinations)])
    boxes = None if hidden.all() else partition(table, principles, mode=mode, split=split, hidden=hidden)
    if boxes is None:
        return
    reference = Reference(table, principles, mode, split)
    gone = hidden[table.frequencies.row_combination]
    reference.rows = [row for row in reference.rows if not gone[row]]
    expected = np.full(table.records, -1)
    for number, rows in enumerate(reference.groups()):
        expected[rows] = number
    assert group_of_records(table, boxes).tolist() == expected.tolist()


@pytest.mark.slow
@examples(40)
@given(tables(), requirements, modes, splits)
def test_thousands_of_tables_agree_with_the_reference(table, principles, mode, split):  # type: ignore[no-untyped-def]
    same_as_reference(table, principles, mode, split)


@given(tables(), st.lists(st.sampled_from(COMPILED), min_size=1, max_size=2, unique=True), modes, splits)
def test_the_generic_path_does_what_the_kernels_do(table, principles, mode, split):  # type: ignore[no-untyped-def]
    boxes = partition(table, principles, mode=mode, split=split)
    again = partition(table, principles, mode=mode, split=split, judge=Anything())
    assert (boxes is None) == (again is None)
    if boxes is not None and again is not None:
        assert group_of_records(table, boxes).tolist() == group_of_records(table, again).tolist()


@given(tables(), requirements, modes, splits)
def test_every_record_is_in_one_group_and_every_group_keeps_every_promise(table, principles, mode, split):  # type: ignore[no-untyped-def]
    boxes = partition(table, principles, mode=mode, split=split)
    if boxes is None:
        return
    group = group_of_records(table, boxes)
    assert sorted(set(group.tolist())) == list(range(boxes.groups))
    f = table.frequencies
    codes = f.codes[f.row_combination]
    values = table["ill"].codes.astype(np.int64)
    sensitive, judged = table["ill"].sensitive()
    n = np.ones(table.records, dtype=np.int64)
    whole = Counts(1, np.zeros_like(n), values, n, (sensitive,), judged[:, None])
    counts = Counts(boxes.groups, group, values, n, (sensitive,), judged[:, None], whole=whole)
    assert hold(principles, counts).all()
    assert counts.size.tolist() == boxes.people.tolist()
    for number in range(boxes.groups):
        assert codes[group == number].min(axis=0).tolist() == boxes.low[number].tolist()
        assert codes[group == number].max(axis=0).tolist() == boxes.high[number].tolist()


def covered(table: Table, column: int, codes: set[int]) -> set[int]:
    """What a group's values span: an interval, or all under the smallest node."""
    hierarchy = table.hierarchy(table.quasi[column].name)
    if not hierarchy.made_by.startswith("taxonomy("):
        return set(range(min(codes), max(codes) + 1))
    nodes = next(m.tolist() for m in hierarchy.maps if len({int(m[code]) for code in codes}) == 1)
    return {code for code, node in enumerate(nodes) if node == nodes[min(codes)]}


@given(tables(), requirements, splits)
def test_strict_boxes_never_overlap(table, principles, split):  # type: ignore[no-untyped-def]
    boxes = partition(table, principles, split=split)
    if boxes is None:
        return
    assert boxes.group is not None
    codes = table.frequencies.codes
    sides = [
        [covered(table, a, set(codes[boxes.group == g, a].tolist())) for a in range(codes.shape[1])]
        for g in range(boxes.groups)
    ]
    for one, other in itertools.combinations(sides, 2):
        assert any(not (a & b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("split", SPLITS)
def test_the_number_of_threads_changes_nothing(mode: str, split: str) -> None:
    table = jali.datasets.census(rows=12_000, seed=4)
    found = [
        mondrian(table, [jali.KAnonymity(5), jali.EntropyDiversity(2)], mode=mode, split=split, threads=n)  # type: ignore[arg-type]
        for n in (1, 2, 3)
    ]
    for boxes in found[1:]:
        assert group_of_records(table, boxes).tolist() == group_of_records(table, found[0]).tolist()
        assert (boxes.checked, boxes.groups) == (found[0].checked, found[0].groups)


@numba.njit  # type: ignore[untyped-decorator]
def _verdicts(work, desk, matrix, verdict):  # type: ignore[no-untyped-def]
    for i in range(len(matrix)):
        for v in range(matrix.shape[1]):
            desk.counts[0, 0, v] = matrix[i, v]
        verdict[i] = kernels.holds(work, desk, desk.counts[0], matrix[i].sum())


@pytest.mark.slow
@pytest.mark.parametrize("principle", [p for p in COMPILED if not getattr(p, "values", ())], ids=repr)
def test_compiled_rules_judge_exactly_as_the_principle_does(principle: Principle) -> None:
    random = np.random.default_rng(5)
    matrix = np.concatenate([random.integers(0, top, (3000, 6)) for top in (2, 3, 5, 12, 1000)])
    matrix[:500, 1:] = matrix[:500, :1]  # equal counts meet bounds exactly
    matrix = matrix[matrix.sum(axis=1) > 0]
    counts = dense(matrix)
    laid_out = rules_of([principle], counts.merged())
    assert laid_out is not None
    rules, _ = laid_out
    shape = (max(len(rules.reference), 1), max(rules.reference.shape[1], 6))
    none, seen = np.zeros((1, 1), dtype=np.int64), np.zeros((4, *shape), dtype=np.int64)
    seen[3, :, :6] = np.arange(6)
    work = kernels.Work(
        none, none, none.astype(np.int32), none, none, rules.rule, rules.bound, rules.counted, rules.reference,
        none[0], none[0], np.zeros(1, dtype=np.bool_),
    )  # fmt: skip
    desk = kernels.Desk(seen, np.full(shape[0], 6), none, none, none[0])
    verdict = np.empty(len(matrix), dtype=np.bool_)
    _verdicts(work, desk, matrix, verdict)
    whole = replace(counts, whole=counts.merged())
    assert verdict.tolist() == principle.holds(whole).tolist()


class Anything:
    """A judge that allows everything."""

    def allows(self, group: Counts, parts: Counts) -> bool:
        return group.groups == 1 and parts.size.sum() == group.size.sum()

    def commit(self, group: Counts, parts: Counts) -> None:
        """Nothing to remember."""


@dataclass
class AtMost:
    """A judge that allows no more than so many groups in all."""

    most: int
    groups: int = 1

    def allows(self, group: Counts, parts: Counts) -> bool:
        return self.groups + parts.groups - 1 <= self.most

    def commit(self, group: Counts, parts: Counts) -> None:
        self.groups += parts.groups - 1


@given(tables(), modes, splits, st.integers(1, 5))
def test_a_judge_of_the_whole_table_can_forbid_splits(table, mode, split, most):  # type: ignore[no-untyped-def]
    judge = AtMost(most)
    boxes = mondrian(table, [jali.KAnonymity(1)], mode=mode, split=split, judge=judge)
    assert boxes.groups == judge.groups <= most


def test_candidates_are_offered_to_the_judge_in_one_order() -> None:
    """The widest first: ages span their domain wholly until they are halved, the zip codes once they are widest."""
    rows = list(itertools.product(range(8), ["a", "b"]))
    frame = pa.table({"age": [age for age, _ in rows], "zip": [code for _, code in rows]})
    table = jali.table(frame, quasi={"age": jali.bands(2), "zip": jali.suppress()})
    sizes: list[int] = []

    class Listening(Anything):
        def commit(self, group: Counts, parts: Counts) -> None:
            sizes.append(int(group.size.sum()))

    mondrian(table, [jali.KAnonymity(4)], judge=Listening())
    assert sizes == [16, 8, 8]


def test_a_column_of_ten_thousand_categories() -> None:
    random = np.random.default_rng(1)
    frame = pa.table({
        "job": [f"job {n}" for n in random.integers(0, 10_000, 30_000)],
        "town": [f"{n:05}" for n in random.integers(0, 10_000, 30_000)],
    })  # fmt: skip
    flat = jali.taxonomy([(f"job {n}", f"group {n % 10}", "*") for n in range(10_000)])
    table = jali.table(frame, quasi={"job": flat, "town": jali.suppress()})
    for mode, split in itertools.product(MODES, SPLITS):
        boxes = mondrian(table, [jali.KAnonymity(5)], mode=mode, split=split)
        assert boxes.groups > 1000
        assert boxes.people.min() >= 5
        assert boxes.people.sum() == 30_000


def test_k_equal_to_the_table_leaves_one_group() -> None:
    table = jali.datasets.census(rows=100, seed=1)
    boxes = mondrian(table, [jali.KAnonymity(100)])
    assert boxes.groups == 1
    assert boxes.people.tolist() == [100]


@pytest.mark.parametrize("principles", [[jali.EntropyDiversity(14)], [jali.KAnonymity(2), jali.FrequencyDiversity(9)]])
def test_an_impossible_requirement_says_what_the_lattice_says(principles: list[Principle]) -> None:
    table = jali.datasets.census(rows=300, seed=1)
    with pytest.raises(InfeasibleError) as expected:
        Lattice(table, tuple(principles), on_step=lambda done, total: None)
    with pytest.raises(InfeasibleError) as found:
        mondrian(table, principles)
    assert str(found.value) == str(expected.value)


@pytest.mark.parametrize("option", [{"mode": "strikt"}, {"split": "rnage"}])
def test_a_misspelt_option_is_answered_with_the_nearest(option: dict[str, str]) -> None:
    table = jali.datasets.census(rows=50, seed=1)
    with pytest.raises(InputError, match=r'did you mean "(strict|range)"\?'):
        mondrian(table, [jali.KAnonymity(2)], **option)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="threads"):
        mondrian(table, [jali.KAnonymity(2)], threads=0)


@pytest.mark.parametrize(
    "principle", [jali.KAnonymity(5), jali.EntropyDiversity(2, dont_care=["Sales"]), jali.Safety(0.7, 2)], ids=repr
)
@pytest.mark.parametrize("threads", [1, 2])
def test_it_can_be_interrupted_and_run_again(principle: Principle, threads: int) -> None:
    table = jali.datasets.census(rows=9_000, seed=1)

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        mondrian(table, principle, threads=threads, on_step=stop)
    steps: list[tuple[int, int]] = []
    boxes = mondrian(table, principle, threads=threads, on_step=lambda done, total: steps.append((done, total)))
    assert steps[-1] == (9_000, 9_000)
    assert boxes.people.sum() == 9_000


def test_many_groups_are_judged_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    table = jali.datasets.census(rows=2_000, seed=2)
    required = [jali.TCloseness(0.4, distance="equal"), jali.EntropyDiversity(2, dont_care=["Sales"])]
    whole = mondrian(table, required)
    monkeypatch.setattr(mondrian_splits, "_AT_ONCE", 50)
    assert group_of_records(table, mondrian(table, required)).tolist() == group_of_records(table, whole).tolist()
