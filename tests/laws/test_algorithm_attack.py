"""Laws of the attack by somebody who knows the algorithm: it says what every world says, or that it did not look."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import jali
from jali.encoding.table import Table
from jali.risk.attacks.attacks import attacks
from oracles import algorithm as oracle

BANDS = jali.bands(2, 4, low=0, high=7)


def table_of(x: list[int], d: list[str], b: list[str] | None = None) -> Table:
    columns: dict[str, Any] = {"x": x} | ({} if b is None else {"b": b}) | {"d": d}
    quasi = {"x": BANDS} | ({} if b is None else {"b": jali.suppress()})
    return jali.table(pa.table(columns), quasi=quasi, sensitive=["d"])


# -- the audit equals the enumeration ------------------------------------------------------------------------------

METHODS: dict[str, Callable[[Table, list[Any]], Any]] = {
    "lattice": jali.generalize,
    "lattice by loss": lambda t, p: jali.generalize(t, p, metric="loss"),
    "suppression": lambda t, p: jali.generalize(t, p, metric="loss", suppress=0.4),
    "partition": jali.partition,
    "relaxed": lambda t, p: jali.partition(t, p, mode="relaxed"),
    "recode": jali.recode,
    "sets": lambda t, p: jali.generalize(t, p, show="set"),
}
PROMISES: dict[str, tuple[list[Any], Callable[[Any], bool]]] = {
    "distinct": ([jali.DistinctDiversity(2)], oracle.distinct(2)),
    "frequency": ([jali.KAnonymity(2), jali.FrequencyDiversity(1.5)], oracle.frequency(Fraction(3, 2))),
    "safety": ([jali.Safety(0.8, 0)], oracle.below(Fraction(4, 5))),
}


def compare(table: Callable[[list[str]], Table], values: list[str], make: Callable[[Table], Any], keeps: Any) -> Any:
    """The attack on a release, against the oracle; None where nothing can be published."""
    try:
        release = make(table(values))
    except jali.InfeasibleError:
        return None
    found = jali.attacks(release, table(values))["algorithm"]

    def publish(world: list[str]) -> Any:
        made = make(table(world))
        return oracle.rows_of(made.tables["data"]), dict(getattr(made, "levels", {}))

    expected, same = oracle.beliefs(values, publish)
    assert found.exposed == sum(not keeps(believed) for believed in expected)
    assert found.figures["largest belief"] == pytest.approx(float(max(max(b.values()) for b in expected)))
    assert found.figures["people certain"] == sum(len(b) == 1 for b in expected)
    assert same > 0
    return found


REFUSED = ("recode", "safety")  # local recoding judges groups one by one


@pytest.mark.slow
@pytest.mark.parametrize(("method", "promise"), [p for p in itertools.product(METHODS, PROMISES) if p != REFUSED])
@pytest.mark.parametrize("seed", range(4))
def test_the_attack_says_what_every_world_says(method: str, promise: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    principles, keeps = PROMISES[promise]
    rows = int(random.integers(4, 7))
    x, values = random.integers(0, 8, rows).tolist(), random.choice(list("pq"), rows).tolist()
    compare(lambda d: table_of(x, d), values, lambda t: METHODS[method](t, principles), keeps)


@pytest.mark.parametrize("method", METHODS)
def test_the_attack_says_what_every_world_of_five_people_says(method: str) -> None:
    """Somebody is certain, or not, as every assignment says that is published again."""
    x, values = [0, 0, 2, 6, 7], list("ppqqp")
    compare(
        lambda d: table_of(x, d), values, lambda t: METHODS[method](t, [jali.DistinctDiversity(2)]), oracle.distinct(2)
    )


def test_safety_with_facts_is_judged_from_joint_beliefs() -> None:
    """The largest belief given one fact, over all facts, decides who is exposed."""
    x, values = [0, 0, 2, 6, 7], list("pqrpq")
    for c in ("0.67", "0.7", "0.9"):
        make = lambda d, c=c: jali.generalize(table_of(x, d), [jali.Safety(float(c), 1)])  # noqa: E731
        try:
            release = make(values)
        except jali.InfeasibleError:
            continue
        worst = oracle.given_facts(values, lambda d, make=make: oracle.rows_of(make(d).tables["data"]), 1)
        found = jali.attacks(release, table_of(x, values))["algorithm"]
        assert (found.exposed or 0) > 0 if worst >= Fraction(c) else found.exposed == 0


# -- five known cases ----------------------------------------------------------------------------------------------


def test_who_replays_the_search_is_certain_of_three_people() -> None:
    """The published maximum is 3/7; the three people of the highest values have H in every world that fits."""
    x, values = [0, 0, 2, 2, 6, 6, 7], list("cbdaHHH")
    table = jali.table(pa.table({"x": x, "d": values}), quasi={"x": jali.bands(2, 4)}, sensitive=["d"])
    gallery = jali.attacks(jali.generalize(table, [jali.Safety(0.8, 0)]), table)
    found = gallery["algorithm"]
    assert (found.exposed, found.right, found.people) == (3, 3, 7)
    assert found.figures["largest belief"] == 1
    assert gallery["minimality"] is found
    assert found.cases[0] == "for 2 people of the 7 in the group x *, the belief in H rises from 43% to 100%"


def test_who_replays_conceal_is_certain_that_two_people_are_present() -> None:
    public = jali.table(pa.table({"x": list("AABBBBBBBB")}), quasi={"x": jali.suppress()})
    private = jali.table(pa.table({"x": list("AAB")}), quasi={"x": jali.suppress()})
    release = jali.conceal(private, public, low=0, high=0.6)
    assert release.presence().high == pytest.approx(0.3)
    found = jali.attacks(release, private)["algorithm"]
    assert (found.exposed, found.right, found.people, found.figures["largest belief"]) == (2, 2, 10, 1)


@pytest.mark.parametrize("n", [5, pytest.param(7, marks=pytest.mark.slow)])
def test_halves_along_the_curve_make_somebody_certain(n: int) -> None:
    """Halves of n // 2 people and one more: only the smaller one can have one value only, so that it has."""
    few = n // 2
    values = ["a"] * few + list("bcdefg")[: n - few]
    table = table_of([0] * few + [7] * (n - few), values)
    release = jali.angelize(table, [jali.DistinctDiversity(2)], k=1, batches="curve", buckets="partition")
    assert release.manifest.method["batches"] == "curve"
    found = jali.attacks(release, table)["algorithm"]
    assert (found.exposed, found.right, found.figures["largest belief"]) == (few, few, 1)
    assert any("at least" in note for note in found.notes)


@pytest.fixture(scope="module")
def salaries() -> Table:
    try:
        quasi = ["age", "sex", "race", "marital-status", "education"]
        return jali.datasets.adult(quasi=quasi, sensitive=["salary-class"])
    except jali.InputError:
        pytest.skip("JALI_ADULT does not point to the Adult table")


@pytest.mark.slow
def test_a_class_that_was_suppressed_though_it_is_larger_than_a_shown_one_must_have_failed(salaries: Table) -> None:
    """188 people are in suppressed classes with one value that are larger than all who have the other value."""
    promises = [jali.KAnonymity(5), jali.DistinctDiversity(2)]
    found = jali.attacks(jali.generalize(salaries, promises, suppress=0.05), salaries)["algorithm"]
    assert (found.exposed, found.right, found.figures["people certain"]) == (188, 188, 188)
    plain = jali.generalize(salaries, [jali.KAnonymity(5)])
    found = jali.attacks(jali.repair(plain, [jali.DistinctDiversity(2)]), salaries)["algorithm"]
    assert (found.exposed, found.right) == (185, 185)


# -- large tables --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["cuts", "suppression"])
def test_what_is_counted_from_verdicts_is_what_the_worlds_say(way: str) -> None:
    """Clauses about single groups: counted group by group, and by looking at all worlds."""
    x = [0, 0, 0, 2, 2, 2, 6, 6, 7]
    values = list("pppqqrrqq") if way == "cuts" else list("pppqqpqqq")
    table = table_of(x, values)
    promise = [jali.KAnonymity(2), jali.DistinctDiversity(2)]
    options: Any = {} if way == "cuts" else {"metric": "loss", "suppress": 0.5}
    release = (jali.partition if way == "cuts" else jali.generalize)(table, promise, **options)
    exact = attacks(release, table)["algorithm"]
    from jali.risk.attacks.algorithm import _learnt
    from jali.risk.attacks.replay import people_of
    from jali.risk.attacks.scene import Scene

    scene = Scene(release, table, None, Fraction(1), 3)
    found = _learnt(scene, people_of(table), scene.links.only, float("inf"))
    assert not isinstance(found, str)
    assert int(found.people.size[found.broken].sum()) <= (exact.exposed or 0)
    assert int(found.people.size[found.certain].sum()) <= exact.figures["people certain"]


def test_random_walks_find_the_shares_of_all_worlds() -> None:
    """Two groups tied by one clause, at least one of four parts has one value only: against every arrangement."""
    from itertools import permutations

    from jali.risk.attacks.replay import people_of
    from jali.risk.attacks.sampled import Known, sample

    values = list("ppqqpqpr")
    x = [0, 0, 1, 1, 4, 4, 5, 5]
    table = table_of(x, values)
    people = people_of(table)
    group = np.array([0, 0, 1, 1])
    known = Known(group, (tuple(np.array([slot]) for slot in range(4)),))
    found = sample(people, known, np.ones(4, dtype=bool), (jali.DistinctDiversity(2),), seed=1, until=float("inf"))
    assert found is not None
    worlds = {(a, b) for a in set(permutations(values[:4])) for b in set(permutations(values[4:]))}
    kept = [a + b for a, b in worlds if any((a + b)[i] == (a + b)[i + 1] for i in range(0, 8, 2))]
    for slot in range(4):
        for number, value in enumerate("pqr"):
            share = sum((world[2 * slot] == value) + (world[2 * slot + 1] == value) for world in kept) / 2 / len(kept)
            assert found.chance[slot, number] == pytest.approx(share, abs=max(0.03, float(found.margin[slot, number])))
    assert found.rhat.max() < 1.05


def test_whole_parts_exchange_their_value() -> None:
    """A part that must have one value only can have either: single exchanges would never find the other one."""
    from jali.risk.attacks.replay import people_of
    from jali.risk.attacks.sampled import Known, sample

    table = table_of([0, 0, 4, 4, 4, 4], list("ppqqqp"))
    known = Known(np.array([0, 0]), ((np.array([0]),),))
    found = sample(
        people_of(table), known, np.ones(2, dtype=bool), (jali.DistinctDiversity(2),), seed=3, until=float("inf")
    )
    assert found is not None
    assert found.chance[0] == pytest.approx([0.5, 0.5], abs=0.05)  # three people have each value
    assert found.moved.all()


# -- what it does not know -----------------------------------------------------------------------------------------


def test_what_was_not_looked_at_is_not_told_as_nobody(tmp_path: Path) -> None:
    table = table_of([0, 0, 2, 2, 6, 6, 7], list("cbdaHHH"))
    given = jali.generalize(table, [jali.KAnonymity(2)], levels={"x": 2})
    found = jali.attacks(given, table)["algorithm"]
    assert found.exposed is None
    assert found.notes
    assert "not computed" in "\n".join(found.lines())
    other = jali.table(
        pa.table({"x": [0, 0, 2, 2, 6, 6, 7], "d": list("cbdaHHH")}),
        quasi={"x": jali.bands(3, low=0, high=8)},
        sensitive=["d"],
    )
    release = jali.partition(table, [jali.DistinctDiversity(2)])
    again = jali.attacks(release.save(tmp_path / "r"), table)["algorithm"]
    assert again.to_dict() == jali.attacks(release, table)["algorithm"].to_dict()
    elsewhere = jali.attacks(jali.generalize(table, [jali.DistinctDiversity(4)]), other)["algorithm"]
    assert elsewhere.exposed is None
    assert "something else" in elsewhere.notes[0]


def test_proved_methods_give_nothing_away() -> None:
    table = table_of([0, 0, 2, 2, 6, 6], list("abcabc"))
    found = jali.attacks(jali.anatomize(table, [jali.DistinctDiversity(2)]), table)["algorithm"]
    assert found.exposed == 0
    assert found.figures["largest belief"] <= 0.5
    assert "of no use" in found.attacker


@pytest.mark.parametrize("limit", [0, -1, "1", True, float("inf"), float("nan")])
def test_a_time_limit_is_a_number_of_seconds(limit: Any) -> None:
    table = table_of([0, 0, 2, 2], list("abab"))
    with pytest.raises(jali.InputError, match="time_limit"):
        jali.attacks(jali.partition(table, [jali.KAnonymity(2)]), table, time_limit=limit)
