"""The maximum disclosure is the largest over all worlds and all knowledge, and its witness attains it."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jali
from jali import disclosure
from jali.errors import InfeasibleError, InputError
from jali.kernels.worst_case import few_that_matter
from jali.principles import Counts, dense
from jali.principles import worst_case as exact
from jali.principles import worst_case as w
from jali.risk.disclosure.buckets import MANY, plain_counts
from jali.risk.disclosure.knowledge import Atom, Implication, knowledge_from
from oracles import disclosure as oracle
from oracles.often import examples

Rows = list[list[int]]


@st.composite
def buckets(draw: st.DrawFn, *, most: int = 4, people: int = 6, values: int = 4) -> Rows:
    """Rows of counts of different lengths, each with somebody in it: one value, ties, few people."""
    row = st.lists(st.integers(0, people), min_size=1, max_size=values).filter(any)
    return draw(st.lists(row, min_size=1, max_size=most))


@st.composite
def tiny(draw: st.DrawFn) -> Rows:
    """At most five people in at most three buckets: all their worlds can be listed."""
    left, rows = draw(st.integers(1, 5)), []
    while left:
        people = draw(st.integers(1, left))
        cuts = [draw(st.integers(0, 2)) for _ in range(people)]
        rows.append([cuts.count(value) for value in range(3)])
        left -= people
    return rows


# -- against all worlds -------------------------------------------------------------------------------------------


@examples(4)
@given(tiny(), st.integers(0, 2))
def test_it_is_the_largest_over_all_worlds_and_all_sets_of_simple_implications(rows: Rows, k: int) -> None:
    """Definition 6, literally."""
    assert disclosure.maximum(rows, k, exact=True) == oracle.Worlds(rows).by_implications(k)


@examples(0.25)
@given(tiny().filter(lambda rows: sum(map(sum, rows)) <= 4))
def test_three_implications_are_no_exception(rows: Rows) -> None:
    """Definition 6 for k = 3."""
    assert disclosure.maximum(rows, 3, exact=True) == oracle.Worlds(rows).by_implications(3)


@examples(4)
@given(tiny(), st.integers(0, 3))
def test_negations_about_whomever_disclose_no_more_than_those_about_one_person(rows: Rows, k: int) -> None:
    """What `knowledge="negations"` computes is the largest over all sets of k negations."""
    found = disclosure.maximum(rows, k, knowledge="negations", exact=True)
    assert found == oracle.Worlds(rows).by_negations(k) == oracle.by_negations(rows, k)


@examples(3)
@given(tiny(), st.integers(1, 3), st.randoms(use_true_random=False))
def test_no_basic_implications_disclose_more(rows: Rows, k: int, random: object) -> None:
    """Theorem 9: conjunctions in the premise and disjunctions in the conclusion do not help."""
    found, all_worlds = disclosure.maximum(rows, k, exact=True), oracle.Worlds(rows)
    atoms = list(all_worlds.atoms)
    for _ in range(20):
        known = all_worlds.everywhere
        for _ in range(k):
            sides = [[random.choice(atoms) for _ in range(random.randint(1, 3))] for _ in range(2)]  # type: ignore[attr-defined]
            known &= all_worlds.implication(*sides)
        assert all_worlds.disclosed(known) <= found


# -- against every spread of atoms ---------------------------------------------------------------------------------


@examples(5)
@given(buckets(), st.integers(0, 4))
def test_it_is_the_least_over_every_spread_of_atoms(rows: Rows, k: int) -> None:
    """MINIMIZE1 and MINIMIZE2, enumerated."""
    assert disclosure.maximum(rows, k, exact=True) == oracle.maximum(rows, k)


@examples(3)
@given(buckets(people=40, values=8, most=8), st.integers(0, 13))
def test_floats_agree_with_fractions(rows: Rows, k: int) -> None:
    """To 1e-12, for implications and negations."""
    for knowledge in ("implications", "negations"):
        found = disclosure.maximum(rows, k, knowledge=knowledge)  # type: ignore[call-overload]
        fraction = disclosure.maximum(rows, k, knowledge=knowledge, exact=True)  # type: ignore[call-overload]
        assert abs(found - fraction) < 1e-12
        assert (found == 1) == (fraction == 1)


@examples(2)
@given(buckets(people=300, values=20, most=12), st.integers(1, 9))
def test_few_buckets_matter_and_are_found(rows: Rows, k: int) -> None:
    """The ratio over the candidates is that over all buckets, for every k up to theirs; compiled code finds it too."""
    matrix = np.array([[*row, *[0] * (20 - len(row))] for row in rows] * 3)
    found = w.of_matrix(matrix, k + 1)
    free = w.least_false(found, k + 1)
    everything = w.folded(free[:-1], w.targeted(free, found))[1]
    assert np.allclose(w.least_ratios(found, k), everything, rtol=1e-13, atol=0)
    seen = few_that_matter(matrix, k)
    few = seen.groups
    assert np.allclose(w.least_ratios(found.take(few), k), everything, rtol=1e-13, atol=0)
    negated = [[max(h / n for h, n in zip(*w.by_negations(b, m), strict=True)) for m in range(k + 1)]
               for b in (found, found.take(few))]  # fmt: skip
    assert negated[0] == negated[1]
    assert (seen.lowest, seen.highest) == (matrix.min(), matrix.max())
    assert seen.fewest == min(sum(n > 0 for n in row) for row in rows)


def test_the_bound_on_how_many_buckets_matter_holds_for_vectors_of_any_shape(repeats: Callable[[int], int]) -> None:
    """The exchange argument needs nothing but falling vectors: random ones find what it forgets."""
    random = np.random.default_rng(4)
    for _ in range(repeats(3000)):
        k, groups = int(random.integers(1, 6)), int(random.integers(1, 9))
        free = np.minimum.accumulate(random.integers(1, 6, (k + 1, groups)) / 6, axis=0)
        free[0] = 1.0
        target = np.minimum.accumulate(random.integers(1, 9, (k + 1, groups)) / 3, axis=0)
        few = w.candidates(free, target)
        assert np.allclose(w.folded(free[:, few], target[:, few])[1], w.folded(free, target)[1])


# -- the paper ----------------------------------------------------------------------------------------------------


def test_figure_3_of_the_paper() -> None:
    """One fact makes 2/3 and not 10/19, which the paper prints; two facts tell all."""
    rows = [[2, 2, 1], [2, 1, 1, 1]]
    assert [disclosure.maximum(rows, k, exact=True) for k in range(3)] == [Fraction(2, 5), Fraction(2, 3), 1]


def test_the_worst_attack_may_span_two_buckets() -> None:
    """(6, 5, 1, 1) and (6, 3, 2, 1), two facts: worse than either bucket alone."""
    rows = [[6, 5, 1, 1], [6, 3, 2, 1]]
    assert disclosure.maximum(rows, 2, exact=True) == oracle.maximum(rows, 2) == Fraction(13, 15)
    assert max(disclosure.maximum([row], 2) for row in rows) < 13 / 15
    assert {atom.person.bucket for one in disclosure.witness(rows, 2).knowledge for atom in one.atoms} == {0, 1}


# -- edges --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "k", "fraction"),
    [
        ([[1]], 0, Fraction(1)),  # one person
        ([[7]], 5, Fraction(1)),  # one value
        ([[3, 1]], 0, Fraction(3, 4)),
        ([[1, 1]], 1, Fraction(1)),  # fewer people than atoms
        ([[1, 1, 1]], 100, Fraction(1)),  # more facts than values
        ([[1, 1, 1]], 1, Fraction(1, 2)),
        ([[5, 4, 1], [1, 1]], 1, Fraction(1)),  # a probability that reaches zero
    ],
)
def test_edges(rows: Rows, k: int, fraction: Fraction) -> None:
    """Worked by hand."""
    assert disclosure.maximum(rows, k, exact=True) == fraction
    assert disclosure.maximum(rows, k) == pytest.approx(float(fraction), abs=1e-15)


@examples(2)
@given(buckets(people=12), st.integers(0, 8))
def test_more_knowledge_never_discloses_less(rows: Rows, k: int) -> None:
    """Knowledge may be wasted; and implications can say what negations do."""
    found = disclosure.curve(rows, range(k + 1))
    assert bool((np.diff(found.implications) >= -1e-12).all())
    assert all(more >= less - 1e-12 for more, less in zip(found.implications, found.negations, strict=True))
    assert found.implications[0] == pytest.approx(max(max(row) / sum(row) for row in rows), abs=1e-12)
    assert found.negations[0] == max(max(row) / sum(row) for row in rows)


@given(buckets(), st.integers(0, 5))
def test_all_forms_of_the_same_buckets_agree(rows: Rows, k: int) -> None:
    """A list, a matrix, counts: the same number."""
    width = max(map(len, rows))
    matrix = np.array([[*row, *[0] * (width - len(row))] for row in rows])
    assert disclosure.maximum(rows, k) == disclosure.maximum(matrix, k) == disclosure.maximum(dense(matrix), k)


def test_a_large_matrix_gives_what_its_rows_give() -> None:
    """Compiled code looks at the rows of a large one."""
    matrix = np.random.default_rng(1).integers(0, 9, (60_000, 12)) + 1
    matrix[::7] = matrix[3]
    found = disclosure.curve(matrix, range(9))
    buckets = w.of_matrix(matrix, 9)
    assert np.allclose(found.implications, w.disclosed(w.least_ratios(buckets, 8)), rtol=1e-13)
    assert found == disclosure.curve(matrix.astype(np.int32), range(9))


FRAMES: dict[str, Callable[[Any], Any]] = {
    "pandas": pd.DataFrame,
    "pandas with an index": lambda columns: pd.DataFrame(columns).rename(index="ward {}".format),
    "pandas with missing values": lambda columns: pd.DataFrame(columns, dtype="Int64"),
    "polars": pl.DataFrame,
    "arrow": pa.table,
    "a batch": pa.RecordBatch.from_pydict,
}


@pytest.mark.parametrize("kind", FRAMES)
@given(buckets(), st.integers(0, 3))
def test_a_frame_is_read_row_by_row_and_names_the_values(kind: str, rows: Rows, k: int) -> None:
    """Its rows are buckets, whatever library it comes from, and its columns the values."""
    width = max(map(len, rows))
    columns = {f"v{i}": [row[i] if i < len(row) else 0 for row in rows] for i in range(width)}
    frame = FRAMES[kind](columns)
    right = oracle.maximum(rows, k)
    assert disclosure.maximum(frame, k, exact=True) == right
    assert disclosure.curve(frame, [k]).implications[0] == pytest.approx(float(right), abs=1e-12)
    assert disclosure.Tracker(frame, most=k).maximum(k) == pytest.approx(float(right), abs=1e-12)
    worst = disclosure.witness(frame, k)
    assert worst.fraction == right
    for atom in (worst.target, *(one.given[0] for one in worst.knowledge)):
        assert rows[atom.person.bucket][int(str(atom.value)[1:])] > 0  # type: ignore[union-attr]


def test_a_crosstab_is_counts() -> None:
    people = pd.DataFrame({"ward": list("AAAAAAAAAABBBB"), "disease": ["flu"] * 9 + ["HIV"] * 3 + ["flu", "cold"]})
    counts = pd.crosstab(people.ward, people.disease)
    assert disclosure.maximum(counts, 0, exact=True) == Fraction(9, 10)
    assert disclosure.witness(counts, 0).target.value == "flu"


@pytest.mark.parametrize(("frame", "what"), [
    (pl.DataFrame({"ward": ["A"], "flu": [1]}), 'column "ward" of the counts holds no numbers'),
    (pl.DataFrame({"flu": [1, None]}), 'column "flu" of the counts has empty cells'),
    (pl.DataFrame({"flu": [1]}).lazy(), "collect it first"),
    (pd.DataFrame([[1, 2]], columns=["flu", "flu"]), "two columns of the counts have the same name"),
    (pd.DataFrame(), "counts must be rows of numbers"),
    (pa.table({"flu": [1.5]}), "count people, not shares"),
    (pd.Series([1, 2]), "no buckets"),
])  # fmt: skip
def test_a_frame_that_is_no_counts_is_refused(frame: object, what: str) -> None:
    for ask in (disclosure.maximum, disclosure.witness):
        with pytest.raises(InputError, match=what):
            ask(frame, 1)


@pytest.mark.parametrize("kind", [np.int8, np.int16, np.int32, np.uint8, np.uint64, np.float64])
def test_counts_of_any_type_are_judged_and_those_with_a_sign_are_not_copied(kind: type) -> None:
    matrix = np.array([[9, 1, 0], [3, 3, 1]], dtype=kind)
    assert disclosure.maximum(matrix, 1, exact=True) == oracle.maximum(matrix.astype(int).tolist(), 1)
    assert np.shares_memory(plain_counts(matrix).matrix, matrix) == (matrix.dtype.kind == "i")


# -- the witness --------------------------------------------------------------------------------------------------


def test_a_witness_of_very_many_buckets_attains_the_maximum() -> None:
    """Only the buckets that matter are looked at; counting worlds under its knowledge gives the same number."""
    matrix = np.random.default_rng(2).integers(1, 9, (MANY, 6)).astype(np.int32)
    for knowledge in ("implications", "negations"):
        found = disclosure.witness(matrix, 3, knowledge=knowledge)  # type: ignore[arg-type]
        people = sorted({atom.person.bucket for one in found.knowledge for atom in one.atoms})  # type: ignore[union-attr]
        rows, place = matrix[people].tolist(), {bucket: i for i, bucket in enumerate(people)}
        known = [Implication(*(moved_to(side, place) for side in (one.given, one.then))) for one in found.knowledge]
        target = moved_to((found.target,), place)[0]
        assert disclosure.risk(rows, known, target).fraction == found.fraction
        assert found.probability == pytest.approx(disclosure.maximum(matrix, 3, knowledge=knowledge), rel=1e-12)  # type: ignore[call-overload]


def moved_to(atoms: tuple[Atom, ...], place: dict[int, int]) -> tuple[Atom, ...]:
    return tuple(Atom((place[atom.person.bucket], atom.person.index), atom.value) for atom in atoms)  # type: ignore[union-attr]


@given(buckets(people=4), st.integers(0, 3), st.sampled_from(["implications", "negations"]))
def test_the_json_of_a_witness_is_knowledge(rows: Rows, k: int, knowledge: str) -> None:
    """By itself, and within all that the command writes."""
    found = disclosure.witness(rows, k, knowledge=knowledge)  # type: ignore[arg-type]
    written = json.loads(json.dumps(found.to_dict()))
    for data in (written, {"k": [k], "witness": written}, written["knowledge"]):
        assert knowledge_from(data) == found.knowledge
    (who, value) = written["target"]
    assert Atom(tuple(who), value) == found.target


@given(buckets(people=4, values=5), st.integers(0, 4))
def test_a_negation_says_what_somebody_does_not_have(rows: Rows, k: int) -> None:
    """Every fact about the target's own person is one, and no sentence has the same person on both sides."""
    found = disclosure.witness(rows, k, knowledge="negations")
    *facts, _ = found.sentences()
    assert len(facts) == len(found.knowledge)
    for one, said in zip(found.knowledge, facts, strict=True):
        assert said == f"Person 1 of bucket {found.target.person.bucket + 1} does not have {one.given[0].value}."  # type: ignore[union-attr]


@examples(2)
@given(buckets(people=4), st.integers(0, 3), st.sampled_from(["implications", "negations"]))
def test_a_witness_attains_the_maximum(rows: Rows, k: int, knowledge: str) -> None:
    """Counting worlds under its knowledge gives the same fraction."""
    found = disclosure.witness(rows, k, knowledge=knowledge)  # type: ignore[arg-type]
    assert found.fraction == disclosure.maximum(rows, k, knowledge=knowledge, exact=True)  # type: ignore[call-overload]
    assert len(found.knowledge) <= k
    assert disclosure.risk(rows, found).fraction == found.fraction


def release(principle: object = None, **options: object) -> object:
    table = jali.datasets.census(rows=400, seed=3)
    return jali.partition(table, [principle or jali.KAnonymity(5)], **options)  # type: ignore[arg-type, list-item]


def test_a_witness_speaks_of_published_rows_and_names_are_for_reading_only() -> None:
    """Person 7 is the seventh published row, with its quasi-identifiers; a pickled witness has no names."""
    made = release(jali.KAnonymity(20))
    found = disclosure.witness(made, 2, names=[f"Somebody {row}" for row in range(400)])
    person = found.target.person
    row = np.flatnonzero(made.group_of_rows == person.bucket)[person.index]  # type: ignore[attr-defined]
    cells = ", ".join(made.individuals.slice(int(row), 1).to_pylist()[0].values())  # type: ignore[attr-defined]
    assert f"Somebody {row}, person {row + 1} (bucket {person.bucket + 1}: {cells})" in found.sentences()[-1]
    assert len(found.sentences()) == len(found.knowledge) + 1
    assert "Somebody" not in repr(pickle.loads(pickle.dumps(found)))
    assert "Somebody" not in str(found.to_dict())
    assert disclosure.risk(made, found) == pytest.approx(disclosure.maximum(made, 2), abs=1e-12)


@pytest.mark.parametrize("many", [1, 399, 401])
def test_a_list_of_names_has_one_for_each_published_row(many: int) -> None:
    """A mapping may name some of the rows only."""
    made = release(jali.KAnonymity(20))
    with pytest.raises(InputError, match="400 published rows"):
        disclosure.witness(made, 1, names=["Somebody"] * many)
    assert "Somebody" in repr(disclosure.witness(made, 1, names=dict.fromkeys(range(400), "Somebody")))


@pytest.mark.parametrize("row", [400, -1, "0", True, 0.5])
def test_a_name_is_of_a_published_row(row: object) -> None:
    """A name that would never be read is refused, not passed over."""
    with pytest.raises(InputError, match="row"):
        disclosure.witness(release(jali.KAnonymity(20)), 1, names={row: "Somebody"})  # type: ignore[dict-item]


def test_a_saved_release_gives_the_same_as_the_release(tmp_path: Path) -> None:
    """From the folder alone."""
    made = release()
    made.save(tmp_path / "out")  # type: ignore[attr-defined]
    assert disclosure.curve(tmp_path / "out", range(4)) == disclosure.curve(made, range(4))


# -- the curve ----------------------------------------------------------------------------------------------------


def test_a_curve_shows_itself(tmp_path: Path) -> None:
    """As a table of text, a frame, plain lists and a plot."""
    found = disclosure.curve([[2, 2, 1], [2, 1, 1, 1]], [0, 2])
    assert repr(found).splitlines()[1].split() == ["0", "0.4000", "0.4000"]
    assert isinstance(found.frame(), pa.Table)
    assert found.frame().to_pydict() == {"k": [0, 2], "implications": [0.4, 1.0], "negations": [0.4, 1.0]}
    assert found.to_dict() == found.frame().to_pydict() | {"kind": "exact"}
    pytest.importorskip("matplotlib")
    assert "<svg" in found.plot(tmp_path / "curve.svg").read_text("utf-8")
    with pytest.raises(InputError, match="ending"):
        found.plot(tmp_path / "curve")


def test_a_curve_says_where_it_is_a_bound() -> None:
    """Groups that overlap hide who is in them: they disclose at most what their counts say."""
    table = jali.datasets.census(rows=300, quasi=["age", "sex"])
    for mode, kind in (("strict", "exact"), ("relaxed", "at most")):
        found = disclosure.curve(jali.partition(table, [jali.KAnonymity(5)], mode=mode), [1])  # type: ignore[arg-type]
        assert found.kind == found.to_dict()["kind"] == kind
        assert ("Upper bounds" in repr(found)) == (kind == "at most")


# -- buckets that come and go --------------------------------------------------------------------------------------


def test_a_tracker_answers_as_if_it_were_asked_anew() -> None:
    """After any additions and removals, across blocks and growth."""
    random = np.random.default_rng(7)
    kept: dict[int, list[int]] = {}
    for start in (0, 3, 1100):
        rows = (random.integers(0, 6, (start, 5)) + (np.arange(5) == 0)).tolist()
        tracker = disclosure.Tracker(rows or None, most=4)
        kept = dict(enumerate(rows))
        for step in range(60 if start > 100 else 700):
            if kept and random.random() < 0.4:
                number = int(random.choice(list(kept)))
                tracker.remove(number)
                del kept[number]
            else:
                row = (random.integers(0, 9, int(random.integers(1, 7))) + 1).tolist()
                number = tracker.add(row)
                assert number not in kept
                kept[number] = row
            if kept and (step % 20 == 0 or len(kept) < 5):
                assert len(tracker) == len(kept)
                expected = disclosure.curve(list(kept.values()), range(5))
                found = tracker.curve()
                assert np.allclose(found.implications, expected.implications, rtol=1e-12)
                assert np.allclose(found.negations, expected.negations, rtol=1e-12)
                assert tracker.maximum(3) == pytest.approx(expected.implications[3], rel=1e-12)
                assert tracker.maximum(2, knowledge="negations") == pytest.approx(expected.negations[2], rel=1e-12)


def test_a_tracker_notices_when_the_worst_bucket_comes_and_goes() -> None:
    """What it kept of earlier answers is never used beyond its time, also where a place is taken again."""
    rows = np.random.default_rng(1).integers(2, 9, (700, 6)).tolist()
    tracker = disclosure.Tracker(rows, most=3)
    before = disclosure.curve(rows, range(4))
    for bad in ([9, 1, 1], [5, 5], [3], [40, 1, 1, 1, 1], [9, 1, 1]):
        number = tracker.add(bad)
        assert np.allclose(tracker.curve().implications, disclosure.curve([*rows, bad], range(4)).implications)
        harmless = tracker.add([1] * 40)
        tracker.remove(number)
        assert np.allclose(tracker.curve().implications, before.implications)
        tracker.remove(harmless)
        assert np.allclose(tracker.curve().implications, before.implications)


def test_a_tracker_says_what_it_cannot_do() -> None:
    """A number that is not there, more facts than it was made for, no buckets at all."""
    tracker = disclosure.Tracker([[1, 2]], most=2)
    with pytest.raises(InputError, match="up to k = 2"):
        tracker.maximum(3)
    tracker.remove(0)
    for number in (0, 5, -1):
        with pytest.raises(InputError, match="no bucket"):
            tracker.remove(number)
    with pytest.raises(InputError, match="add one first"):
        tracker.maximum(1)
    with pytest.raises(InputError, match="negative"):
        tracker.add([1, -1])


# -- chains -------------------------------------------------------------------------------------------------------


def test_a_chain_gives_its_lowest_safe_node() -> None:
    """The node before it is not safe, and few are judged."""
    table = jali.datasets.census(rows=500, seed=2)
    safety = jali.Safety(0.7, 1)
    made = disclosure.chain(table, safety)
    names = [column.name for column in table.quasi]
    chain = [dict.fromkeys(names, 0)]
    heights = {name: table.hierarchy(name).height for name in names}
    while chain[-1] != heights:
        up = min((n for n in names if chain[-1][n] < heights[n]), key=lambda n: (chain[-1][n] + 1) / heights[n])
        chain.append(chain[-1] | {up: chain[-1][up] + 1})
    at = chain.index(made.levels)
    assert disclosure.maximum(made, 1) < 0.7
    with pytest.raises(InfeasibleError):
        jali.generalize(table, [safety], levels=chain[at - 1])
    assert made.search["checked"] <= len(chain).bit_length()
    assert disclosure.chain(table, [safety], chain).levels == made.levels
    assert disclosure.chain(table, [safety], chain[at:]).levels == made.levels


def test_a_chain_that_does_not_rise_or_is_nowhere_safe_is_refused() -> None:
    """With the reason."""
    table = jali.datasets.census(rows=300, seed=2)
    with pytest.raises(InputError, match="finer than the one before"):
        disclosure.chain(table, jali.Safety(0.9, 1), [{"age": 1}, {"sex": 1}])
    with pytest.raises(InputError, match="a list of nodes, at least one"):
        disclosure.chain(table, jali.Safety(0.9, 1), [])
    with pytest.raises(InfeasibleError, match="no node of the chain"):
        disclosure.chain(table, jali.Safety(0.9, 1), [{}, {"age": 1}])


# -- what the number means ------------------------------------------------------------------------------------------


def test_it_is_exact_where_groups_are_disjoint_and_a_bound_where_they_overlap() -> None:
    """Suppressed rows, relaxed partitions and recoding overlap."""
    table = jali.datasets.census(rows=400, seed=3)
    promise = [jali.KAnonymity(5)]
    assert jali.generalize(table, promise).disclosure_bound == "exact"
    suppressed = jali.generalize(table, promise, suppress=0.2)
    assert suppressed.disclosure_bound == ("at most" if suppressed.manifest.counts["suppressed"] else "exact")
    assert jali.partition(table, promise).disclosure_bound == "exact"
    assert jali.partition(table, promise, show={"age": "taxonomy"}).disclosure_bound == "at most"
    assert jali.partition(table, promise, mode="relaxed").disclosure_bound == "at most"
    assert jali.recode(table, promise).disclosure_bound == "at most"


def test_intervals_across_the_nodes_of_a_taxonomy_overlap_and_are_a_bound(tmp_path: Path) -> None:
    """Odd and even numbers are apart as nodes, which is how they are shown, and not as intervals."""
    rows = [f"{number};{'odd' if number % 2 else 'even'};*" for number in range(20)]
    (tmp_path / "parity.csv").write_text("\n".join(rows), encoding="utf-8")
    frame = pa.table({"number": [*range(20)] * 4, "ill": [*"aabbc"] * 16})
    table = jali.table(frame, quasi={"number": jali.taxonomy(tmp_path / "parity.csv")}, sensitive=["ill"])
    promise = [jali.KAnonymity(30)]
    for make in (jali.partition, jali.generalize):
        shown = make(table, promise)
        assert sorted(set(shown.individuals["number"].to_pylist())) == ["even", "odd"]
        assert shown.disclosure_bound == "exact"
        across = make(table, promise, show="interval")
        assert sorted(set(across.individuals["number"].to_pylist())) == ["[0, 18]", "[1, 19]"]
        assert across.disclosure_bound == "at most"
        across.save(tmp_path / make.__name__)
        assert disclosure.curve(tmp_path / make.__name__).kind == "at most"


def test_intervals_along_a_taxonomy_stay_apart_and_are_exact(tmp_path: Path) -> None:
    """Where every node is a run of numbers, the missing one aside, intervals are the default."""
    rows = [f"{number};{'low' if number < 10 else 'high'};*" for number in range(20)]
    (tmp_path / "halves.csv").write_text("\n".join([*rows, ";low;*"]), encoding="utf-8")
    frame = pa.table({"number": [*range(20), None] * 4, "ill": [*"aabbc"] * 16 + [*"aabb"]})
    table = jali.table(frame, quasi={"number": jali.taxonomy(tmp_path / "halves.csv")}, sensitive=["ill"])
    made = jali.partition(table, [jali.KAnonymity(30)])
    assert sorted(set(made.individuals["number"].to_pylist())) == ["[0, 9] or missing", "[10, 19]"]
    assert made.disclosure_bound == "exact"


@pytest.mark.parametrize("search", ["lattice", "partition"])
@pytest.mark.parametrize("shift", ["none", "exact"])
def test_of_a_concealed_table_it_is_exact_because_everybody_is_in_one_group(search: str, shift: str) -> None:
    """Of whoever is present the published cells that fit are those of one group."""
    random = np.random.default_rng(5)
    town = pa.table({"age": random.integers(20, 40, 90), "sex": random.choice(["f", "m"], 90)})
    quasi = {"age": jali.bands(5, 10), "sex": jali.suppress()}
    ill = pa.array(random.choice(["flu", "cold", "asthma"], 45))
    private = jali.table(town.slice(0, 45).append_column("ill", ill), quasi=quasi, sensitive=["ill"])
    public = jali.table(town, quasi=quasi)
    hidden = jali.conceal(private, public, low=0.1, high=0.9, search=search, shift=shift)  # type: ignore[arg-type]
    presence = hidden.presence()  # refuses cells of two groups that fit one person
    assert sum(presence.groups["people"].to_pylist()) + presence.outside == 90
    assert hidden.disclosure_bound == "exact"
    assert "Upper bounds" not in repr(disclosure.curve(hidden, [0, 1]))


# -- bad input ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "what"),
    [
        ([[1, -1]], "negative"),
        (np.vstack([np.ones((MANY, 3), dtype=np.int64), [[2, -1, 1]]]), "negative"),
        (np.vstack([np.ones((MANY, 3), dtype=np.int64), [[0, 0, 0]]]), f"bucket {MANY + 1:d} is empty"),
        (np.vstack([[[0, 0]], np.ones((MANY, 2), dtype=np.int64)]), "bucket 1 is empty"),
        ([[1e300, 1]], "is above"),
        (np.full((MANY, 2), 1 << 60), "is above"),
        ([[1.5, 1]], "whole numbers"),
        ([[0, 0], [1, 1]], "empty"),
        ([[]], "rows of numbers"),
        ([], "no buckets|rows of numbers"),
        (np.zeros((2, 2, 2)), "rows of numbers"),
        ([["a", "b"]], "whole numbers"),
        (3, "no buckets"),
        (dense(np.array([[0, 0], [1, 1]])), "empty"),
    ],
)
def test_what_is_no_counts_is_refused(rows: object, what: str) -> None:
    """Negative, fractional, empty: one clear line."""
    with pytest.raises(InputError, match=what):
        disclosure.maximum(rows, 1)  # type: ignore[call-overload]


def test_bad_questions_are_refused() -> None:
    """k below 0, a misspelt kind of knowledge, no k at all, a column of plain counts."""
    for k in (-1, 1.5, "three"):
        with pytest.raises(InputError, match=r"k must be a (whole )?number"):
            disclosure.maximum([[1, 1]], k)  # type: ignore[call-overload]
    with pytest.raises(InputError, match='did you mean "negations"'):
        disclosure.maximum([[1, 1]], 1, knowledge="negation")  # type: ignore[call-overload]
    with pytest.raises(InputError, match="needs a list of numbers k"):
        disclosure.curve([[1, 1]], [])
    with pytest.raises(InputError, match="sensitive"):
        disclosure.maximum([[1, 1]], 1, sensitive="disease")


def test_people_with_several_rows_are_refused() -> None:
    """The worst case is about one value a person."""
    n = np.array([0, 0, 1])
    counts = dense(np.array([[1, 1]]))
    several = Counts(1, n * 0, np.array([0, 1, 1]), n * 0 + 1, counts.sensitive, counts.joint, person=n)
    with pytest.raises(InputError, match="several rows"):
        disclosure.maximum(several, 1)


def test_the_exact_attack_and_the_exact_ratio_agree() -> None:
    """Two ways through the same minimum."""
    random = np.random.default_rng(3)
    for _ in range(100):
        found = w.of_matrix(random.integers(1, 30, (int(random.integers(1, 7)), 6)), 5)
        assert exact.worst_attack(found, 4)[0] == exact.least_ratio(found, 4)


# -- more facts than values -----------------------------------------------------------------------------------------


@given(buckets(), st.integers(0, 3))
@examples(2)
def test_more_facts_than_values_disclose_no_more(rows: Rows, more: int) -> None:
    """V - 1 facts tell which of V values it is; however many more are asked for, it takes no longer."""
    counts = dense(np.array([row + [0] * (4 - len(row)) for row in rows]))
    told, beyond = jali.Safety(1, 4 + more), jali.Safety(1, 10**30)
    assert told.level(counts).tolist() == beyond.level(counts).tolist() == [1.0] * len(rows)
    assert not told.holds(counts).any()
    assert not beyond.holds(counts).any()
    assert not beyond.alone(counts).any()


@pytest.mark.parametrize("search", [jali.generalize, jali.partition, disclosure.chain, jali.minimal])
def test_safety_from_more_facts_than_values_is_refused_at_once(search: Any) -> None:
    table = jali.datasets.census(rows=200, seed=0, quasi=["age", "sex"])
    with pytest.raises(InfeasibleError, match="the whole table reaches 1, which is not below 1"):
        search(table, [jali.Safety(1, 10**30)])
