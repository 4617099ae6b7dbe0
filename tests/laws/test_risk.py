"""Laws of a particular attacker: what is counted is what every world, looked at one by one, says."""

from __future__ import annotations

import copy
import json
import math
import pickle
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import jali
from jali.encoding.table import Table
from jali.errors import InfeasibleError, InputError
from jali.risk.disclosure import count as count_worlds
from jali.risk.disclosure import worlds
from jali.risk.disclosure.buckets import buckets_of
from jali.risk.disclosure.count import Budget, TooManyError, chance, clauses_of
from jali.risk.disclosure.knowledge import Atom, Implication, Person, knowledge_from, read_knowledge, to_json
from jali.risk.disclosure.worlds import Risk, interval, risk, sample
from oracles.worlds import atoms, probability, satisfying

# Figure 3 of the paper: flu, lung cancer, mumps, breast cancer, heart disease, ovarian cancer.
FIGURE_3 = [[2, 2, 1, 0, 0, 0], [2, 0, 0, 1, 1, 1]]
CHARLIE, ED, HANNAH = (0, 1), (0, 3), (1, 1)
FLU, LUNG_CANCER, MUMPS = "0", "1", "2"


def random_buckets(random: np.random.Generator) -> list[list[int]]:
    """One to three buckets of one to four people with up to four values."""
    made = []
    for _ in range(int(random.integers(1, 4))):
        counts = np.bincount(random.integers(0, random.integers(1, 5), random.integers(1, 5)), minlength=4)
        made.append(counts.tolist())
    return made


def random_knowledge(random: np.random.Generator, buckets: list[list[int]], most: int = 6) -> list[Implication]:
    """Implications of all shapes: negations, known facts, repeated atoms, values that a bucket lacks."""
    known = atoms(buckets)
    draw = lambda most: tuple(known[i] for i in random.integers(0, len(known), random.integers(0, most)))  # noqa: E731
    sides = [(draw(3), draw(3)) for _ in range(int(random.integers(0, most)))]
    return [Implication(given, then) for given, then in sides if given or then]


def test_counting_agrees_with_looking_at_every_world(repeats: Callable[[int], int]) -> None:
    """Over thousands of random cases: each atom's chance, the largest one, and when there is no world at all."""
    random = np.random.default_rng(0)
    contradictions = 0
    for _ in range(repeats(2000)):
        buckets = random_buckets(random)
        knowledge = random_knowledge(random, buckets)
        left = satisfying(buckets, knowledge)
        every = atoms(buckets)
        if not left:
            contradictions += 1
            with pytest.raises(InputError, match="contradicts the release"):
                risk(buckets, knowledge)
            with pytest.raises(InputError, match="contradicts the release"):
                risk(buckets, knowledge, every[0])
            continue
        for i in random.integers(0, len(every), 3):
            assert risk(buckets, knowledge, every[i]).fraction == probability(left, every[i])
        found = risk(buckets, knowledge)
        assert found.exact
        assert found.target is not None
        assert found.fraction == probability(left, found.target) == max(probability(left, atom) for atom in every)
    assert contradictions  # the random knowledge reaches that case too


def test_the_chance_of_the_knowledge_itself_is_its_share_of_all_worlds(repeats: Callable[[int], int]) -> None:
    random = np.random.default_rng(11)
    for _ in range(repeats(300)):
        plain = random_buckets(random)
        knowledge = random_knowledge(random, plain, most=8)
        buckets = buckets_of(plain)
        found = chance(buckets, clauses_of(buckets, knowledge), Budget())
        assert found == Fraction(len(satisfying(plain, knowledge)), len(satisfying(plain, [])))


def test_the_paper_s_attackers_learn_what_the_paper_says() -> None:
    """Section 1: two fifths, one half once mumps is ruled out, certainty once flu is too; ten nineteenths."""
    no_mumps, no_flu = Implication.unless(ED, MUMPS), Implication.unless(ED, FLU)
    assert risk(FIGURE_3, [], Atom(ED, LUNG_CANCER)).fraction == Fraction(2, 5)
    assert risk(FIGURE_3, [no_mumps], Atom(ED, LUNG_CANCER)).fraction == Fraction(1, 2)
    assert risk(FIGURE_3, [no_mumps, no_flu], Atom(ED, LUNG_CANCER)).fraction == 1
    couple = Implication((Atom(HANNAH, FLU),), (Atom(CHARLIE, FLU),))
    assert risk(FIGURE_3, [couple], Atom(CHARLIE, FLU)).fraction == Fraction(10, 19)
    assert risk(FIGURE_3, [couple]).fraction == Fraction(10, 19)
    # but ruling out a frequent value for one person tells more than the paper's example
    assert risk(FIGURE_3, [no_flu]).fraction == Fraction(2, 3)


def test_a_negation_is_an_implication_to_any_other_value_of_the_person() -> None:
    """As Section 2.2 writes it, with a value that the bucket does not even have."""
    written = Implication((Atom(ED, FLU),), (Atom(ED, "5"),))
    for atom in atoms(FIGURE_3):
        assert risk(FIGURE_3, [written], atom) == risk(FIGURE_3, [Implication.unless(ED, FLU)], atom)


def test_whoever_is_not_mentioned_in_a_mentioned_bucket_is_looked_at_too() -> None:
    """Two people who are known to have the rare values leave the rest certain."""
    known = [Implication((), (Atom((0, 0), "1"),)), Implication((), (Atom((0, 1), "2"),))]
    found = risk([[3, 1, 1]], known, Atom((0, 4), "0"))
    assert found.fraction == 1


def test_counting_works_on_big_buckets_without_big_effort() -> None:
    """Exact with a million people: in a hypergeometric closed form, and with long chains of implications."""
    big = [[400_000, 350_000, 250_000], [500_000, 500_000, 0]]
    n = 1_000_000
    not_0 = [Implication.unless((0, i), "0") for i in range(3)]
    nobody = Fraction(math.perm(600_000, 3), math.perm(n, 3))
    with_one = Fraction(350_000 * math.perm(599_999, 2), math.perm(n, 3))
    assert risk(big, not_0, Atom((0, 0), "1")).fraction == with_one / nobody
    chain = [Implication((Atom((0, i), "0"),), (Atom((0, i + 1), "0"),)) for i in range(60)]
    found = risk(big, chain, Atom((0, 60), "0"))
    assert found.exact
    assert found > 0.4


def test_an_estimate_says_so_and_its_interval_covers_as_often_as_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """With no steps allowed everything is sampled; 200 intervals of 90 % may miss 20 ± 4.3 times."""
    known = [Implication((Atom(HANNAH, FLU),), (Atom(CHARLIE, FLU),)), Implication.unless((0, 0), FLU)]
    target = Atom(CHARLIE, FLU)
    truth = risk(FIGURE_3, known, target)
    assert truth.exact
    assert truth.low == truth.high == truth
    monkeypatch.setattr(worlds, "Budget", lambda: Budget(0))
    found = [risk(FIGURE_3, known, target, seed=seed, samples=400, confidence=0.9) for seed in range(200)]
    assert not any(one.exact or one.fraction is not None for one in found)
    assert all("estimated" in one.how and "only" in one.how for one in found)
    missed = sum(not one.low <= truth <= one.high for one in found)
    assert missed <= 20 + 3 * 4.3
    assert len({float(one) for one in found}) > 50
    assert risk(FIGURE_3, known, target, seed=5) == risk(FIGURE_3, known, target, seed=5)


def test_an_estimate_of_the_largest_chance_encloses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(2)
    missed, tried = 0, 0
    for seed in range(120):
        buckets = random_buckets(random)
        knowledge = random_knowledge(random, buckets)
        left = satisfying(buckets, knowledge)
        if not left:
            continue
        truth = max(probability(left, atom) for atom in atoms(buckets))
        with monkeypatch.context() as patched:
            patched.setattr(worlds, "Budget", lambda: Budget(0))
            found = risk(buckets, knowledge, seed=seed, samples=3000, confidence=0.99)
        tried += 1
        missed += not found.low - 1e-12 <= truth <= found.high + 1e-12
        assert abs(found - truth) < 0.1 or found.high - found.low > 0.1
    assert tried > 60
    assert missed <= 4


def test_knowledge_that_no_drawn_world_satisfies_is_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worlds, "Budget", lambda: Budget(0))
    known = [Implication((), (Atom((0, i), "1"),)) for i in range(4)]
    with pytest.raises(InfeasibleError, match="none of 1,000 random worlds"):
        risk([[1000, 4]], known, seed=0, samples=1000)


@pytest.mark.slow
def test_hard_knowledge_stops_counting_at_the_stated_bound() -> None:
    """A dense web of implications: more steps than are allowed, so an estimate, and never silently."""
    random = np.random.default_rng(3)
    draw = lambda: Atom((int(random.integers(10)), int(random.integers(15))), str(random.integers(5)))  # noqa: E731
    known = [Implication((draw(), draw()), (draw(), draw())) for _ in range(60)]
    buckets = buckets_of([[5, 4, 3, 2, 1]] * 10)
    with pytest.raises(TooManyError):
        chance(buckets, clauses_of(buckets, known), Budget(count_worlds.FEASIBLE // 10))
    found = risk(buckets, known, known[0].then[0], seed=1, samples=5000)
    assert not found.exact
    assert 0 <= found.low < found < found.high <= 1
    assert f"{count_worlds.FEASIBLE:,} steps" in found.how


def test_sampled_worlds_are_the_worlds() -> None:
    """Facts of one bucket are drawn without replacement: two people cannot share a single value."""
    buckets = buckets_of([[1, 2, 3]])
    both = clauses_of(buckets, [Implication((), (Atom((0, 0), "0"),)), Implication((), (Atom((0, 1), "0"),))])
    random = np.random.default_rng(0)
    assert sample(buckets, both, [], 2000, random).kept == 0
    facts = [(Person(0, i), v) for i in range(2) for v in range(3)]
    drawn = sample(buckets, [], facts, 30_000, random)
    assert drawn.kept == 30_000
    for (_, value), hits in zip(facts, drawn.hits, strict=True):
        assert hits / 30_000 == pytest.approx((value + 1) / 6, abs=0.015)


@pytest.mark.parametrize(("hits", "of"), [(0, 1), (1, 1), (0, 50), (3, 50), (25, 50), (50, 50), (777, 9001)])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_the_interval_is_clopper_and_pearson_s(hits: int, of: int, confidence: float) -> None:
    """At its ends as many hits or more, and as many or fewer, have the probability of a tail each."""
    low, high = interval(hits, of, confidence)
    tail = (1 - confidence) / 2
    assert low == 0 if hits == 0 else at_least(hits, of, low) == pytest.approx(tail, rel=1e-6)
    assert high == 1 if hits == of else 1 - at_least(hits + 1, of, high) == pytest.approx(tail, rel=1e-6)


def at_least(hits: int, of: int, p: float) -> float:
    """The probability of as many hits or more in independent trials, added up."""
    logs = (
        math.lgamma(of + 1) - math.lgamma(h + 1) - math.lgamma(of - h + 1) + h * math.log(p) + (of - h) * math.log1p(-p)
        for h in range(hits, of + 1)
    )
    return math.fsum(map(math.exp, logs))


def hospital() -> Table:
    """Figure 1 of the paper, without names."""
    frame = pa.table({
        "sex": list("MMMMMFFFFF"),
        "disease": ["Flu", "Flu", "Lung Cancer", "Lung Cancer", "Mumps", "Flu", "Flu", "Breast Cancer",
                    "Ovarian Cancer", "Heart Disease"],
    })  # fmt: skip
    return jali.table(frame, quasi={"sex": jali.suppress()}, sensitive=["disease"])


def test_people_can_be_named_by_published_row(tmp_path: Path) -> None:
    """In a release, and in the same release read back, a row is the person whom it shows."""
    release = jali.generalize(hospital(), [jali.KAnonymity(5)])
    shown = release.tables["data"]
    men = [i for i, sex in enumerate(shown["sex"].to_pylist()) if sex == "M"]
    women = [i for i, sex in enumerate(shown["sex"].to_pylist()) if sex == "F"]
    couple = [Implication((Atom(women[2], "Flu"),), (Atom(men[3], "Flu"),))]
    folder = release.save(tmp_path / "release")
    for what in (release, folder, str(folder)):
        assert risk(what, couple, Atom(men[3], "Flu")).fraction == Fraction(10, 19)
        assert risk(what, couple, Atom(men[0], "Flu")).fraction == risk(what, couple, Atom(men[1], "Flu")).fraction
    assert risk(release.counts(), [], Atom((0, 0), "Flu")).fraction == Fraction(2, 5)
    buckets = buckets_of(release)
    for row in range(10):
        assert buckets.row(buckets.person(row)) == row
    people = {buckets.person(row) for row in range(10)}
    assert people == {Person(b, i) for b in range(2) for i in range(5)}


def test_rows_of_buckets_are_people_too() -> None:
    """In an anatomized release a row is an individual; ruling out one of two values leaves the other one."""
    release = jali.anatomize(hospital(), [jali.DistinctDiversity(2)])
    bucket = release.tables["individuals"]["bucket"].to_pylist()
    entries = release.tables["buckets"].to_pylist()
    for row in range(10):
        held = {entry["disease"]: entry["count"] for entry in entries if entry["bucket"] == bucket[row]}
        size = sum(held.values())
        for value, n in held.items():
            assert risk(release, [], Atom(row, value)).fraction == Fraction(n, size)
            for other in set(held) - {value}:
                known = [Implication.unless(row, other)]
                assert risk(release, known, Atom(row, value)).fraction == Fraction(n, size - held[other])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: risk(FIGURE_3, [], Atom((2, 0), FLU)), "no bucket 3; the last is bucket 2"),
        (lambda: risk(FIGURE_3, [], Atom((0, 5), FLU)), "bucket 1 has no person 6; its last is person 5"),
        (lambda: risk(FIGURE_3, [Implication.unless((0, 0), "9")]), 'no value "9" of value in the release'),
        (lambda: risk(FIGURE_3, [], Atom(3, FLU)), "plain counts have no rows"),
        (lambda: risk(FIGURE_3, [Atom(ED, FLU)]), "list of implications: got a list with Atom"),
        (lambda: risk(FIGURE_3, 3), "list of implications: got int"),
        (lambda: risk(FIGURE_3, [], "flu"), "the target must be an atom"),
        (lambda: risk(FIGURE_3, [], samples=0), "samples must be"),
        (lambda: risk(FIGURE_3, [], confidence=1.0), "confidence must lie between 0 and 1"),
        (lambda: risk(FIGURE_3, [], seed="x"), "not a seed"),
        (lambda: risk(FIGURE_3, [], sensitive="disease"), "no sensitive column to choose"),
        (lambda: risk([[1, -1]]), "cannot be negative"),
        (lambda: risk([[1, 0.5]]), "whole numbers"),
        (lambda: risk([[1, float("nan")]]), "whole numbers"),
        (lambda: risk([[1, 2], [0, 0]]), "bucket 2 is empty"),
        (lambda: risk([[1], []]), "bucket 2 is empty"),
        (lambda: risk([]), "rows of numbers"),
        (lambda: risk([1, 2]), "no buckets"),
        (lambda: risk([["a"]]), "whole numbers"),
        (lambda: risk(3), "no buckets"),
        (lambda: Person(-1, 0), "the bucket of a person must be at least 0"),
        (lambda: Person(0, 1.5), "must be a whole number"),
        (lambda: Atom((0, 1, 2), "flu"), "3 parts"),
        (lambda: Atom("Bob", "flu"), "row of a person must be a whole number"),
        (lambda: Atom(0, ["flu"]), "value of an atom must be text"),
        (Implication, "without atoms"),
        (lambda: Implication(("flu",)), "needs atoms"),
    ],
)
def test_bad_input_is_one_clear_line(make: object, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        make()  # type: ignore[operator]
    assert "\n" not in str(caught.value)


def test_a_misspelt_value_is_met_with_the_nearest_one() -> None:
    with pytest.raises(InputError, match='did you mean "Lung Cancer"'):
        risk(jali.generalize(hospital(), [jali.KAnonymity(5)]), [], Atom(0, "Lung Canser"))
    with pytest.raises(InputError, match="the release has no row 11; the last is row 10; Python and JSON count from 0"):
        risk(jali.generalize(hospital(), [jali.KAnonymity(5)]), [], Atom(10, "Flu"))


def test_people_with_several_rows_have_no_random_worlds() -> None:
    frame = pa.table({"p": [1, 1, 2, 2], "q": list("aaaa"), "s": list("xyxx")})
    table = jali.table(frame, quasi={"q": jali.suppress()}, sensitive=["s"], person="p")
    with pytest.raises(InputError, match="several rows"):
        risk(jali.generalize(table, [jali.KAnonymity(2)]))


def test_knowledge_reads_back_from_json(tmp_path: Path) -> None:
    known = (
        Implication((Atom(7, "flu"), Atom((1, 2), None)), (Atom((0, 1), "flu"),)),
        Implication.unless(3, "mumps"),
        Implication((), (Atom(4, "flu"), Atom(4, "mumps"))),
    )
    path = tmp_path / "knowledge.json"
    path.write_text(json.dumps(to_json(known)), "utf-8")
    assert read_knowledge(path) == known
    assert str(known[2]) == "the person of row 5 has flu or the person of row 5 has mumps"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"if": []}, "must be a list"),
        ("if", "must be a list"),
        ([3], "piece 1 of the knowledge is no implication"),
        ([{"if": [[1, "a"]]}, {"iff": []}], 'piece 2 of the knowledge: no key "iff"; did you mean "if"'),
        ([{"if": [1, "a"]}], r"piece 1 of the knowledge: an atom is \[person, value\]"),
        ([{"if": 3}], "an atom is"),
        ([{"if": [[1, "a", "b"]]}], "an atom is"),
        ([{"if": [[[0, -1], "a"]]}], "piece 1 of the knowledge: the index of a person must be at least 0"),
        ([{}], "piece 1 of the knowledge: an implication without atoms"),
    ],
)
def test_knowledge_in_another_form_is_refused(data: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        knowledge_from(data)


def test_a_file_without_knowledge_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.json").write_bytes(b"\xff\xfe{")
    with pytest.raises(InputError, match="is no JSON"):
        read_knowledge(tmp_path / "text.json")
    with pytest.raises(InputError, match="cannot read"):
        read_knowledge(tmp_path / "nothing.json")


def test_a_risk_is_a_number_that_keeps_what_it_knows() -> None:
    found = risk(FIGURE_3, [Implication.unless(ED, MUMPS)], Atom(ED, LUNG_CANCER))
    assert found + 0.25 == 0.75
    for same in (pickle.loads(pickle.dumps(found)), copy.deepcopy(found)):
        assert isinstance(same, Risk)
        assert (same, same.target, same.fraction, same.how) == (found, found.target, found.fraction, found.how)
    assert "counted" in found.how
    assert str(found) == "0.5"
