"""Transparent ANGEL: who runs the publisher on every possible table believes what the batches show, and no more."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction
from itertools import islice, permutations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jali
from jali.errors import InfeasibleError, InputError
from jali.principles.base import hold
from jali.principles.counts import Counts, Sensitive
from jali.publish import drafts
from jali.search.batches import batches_along, dealt_into, hold_dealt
from jali.search.halves import Orders, People, cut_by, dealing_of, halve, seated, seats_of
from jali.search.items import columns_of
from oracles import anatomy
from oracles import angel as oracle
from oracles import transparent as attacker

PRINCIPLES = (
    jali.FrequencyDiversity(2), jali.DistinctDiversity(2), jali.EntropyDiversity(2), jali.RecursiveDiversity(2, 2),
    jali.AlphaAnonymity(0.5, 1), jali.TCloseness(0.25), jali.Safety(0.8, 0), jali.Safety(0.9, 1),
)  # fmt: skip
World = tuple[Any, ...]


def table(values: Sequence[Any], ages: Sequence[int] | None = None, **more: Sequence[Any]) -> Any:
    """People of different ages with these values."""
    columns = {"age": list(range(len(values))) if ages is None else list(ages), "ill": list(values), **more}
    return jali.table(
        pa.table(columns), quasi={"age": jali.bands(2, 4, 8)}, sensitive=["ill", *more], domain="present"
    )  # fmt: skip


def everybody(given_table: Any) -> Counts:
    """All people as one group."""
    f = given_table.frequencies
    whole: Counts = f.counts(np.zeros(f.combinations, dtype=np.int64), 1)
    return whole


def keeps(principle: Any, belief: dict[Any, Fraction], values: Sequence[Any]) -> bool:
    """Whether a belief keeps the promise, judged exactly; Safety by the largest belief, where no fact is known."""
    if isinstance(principle, jali.Safety):
        return max(belief.values()) < Fraction(str(principle.c))
    reference = Counter(values)
    return oracle.keeps(principle, belief, Sensitive("ill", tuple(sorted(reference)), False), reference)


# -- dealt batches --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("principle", PRINCIPLES, ids=repr)
@pytest.mark.parametrize("values", ["xxyy", "xyzz", "xxyyz", "xyxyx"])
def test_all_tables_that_fit_dealt_batches_are_equally_likely(values: str, principle: Any) -> None:
    """Also where everybody's batch is told: so Safety holds too, and every belief is the share of a batch."""
    given_table = table(values)
    whole = everybody(given_table)
    if not principle.holds(whole).all():
        with pytest.raises(InfeasibleError):
            jali.angelize(given_table, principle, k=1, transparent=True, batches="anatomy")
        return
    code = {label: i for i, label in enumerate(sorted(set(values)))}
    place, batches = dealing_of(np.bincount([code[v] for v in values]), (principle,), whole)
    orders = [np.array(order) for order in permutations(range(len(values)))]

    def publish(world: World, order: Any) -> Hashable:
        numbers = [code[v] for v in world]
        return anatomy.published(numbers, dealt_into(place[np.array(numbers)], batches, order).tolist())

    worlds = sorted(set(permutations(values)))
    for seen, possible in attacker.ways(worlds, orders, publish).items():
        assert len(set(possible.values())) == 1
        fits = [w for w in worlds if all(tuple(sorted(code[w[i]] for i in held)) == has for held, has in seen)]  # type: ignore[attr-defined]
        assert set(possible) == set(fits)
        for belief in attacker.beliefs(possible):
            assert keeps(principle, belief, values)


@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=5),
    st.integers(1, 12),
    st.sampled_from([*PRINCIPLES, jali.Safety(0.7, 2), jali.Safety(0.5, 0)]),
)
def test_batches_that_are_alike_are_judged_once(people: list[int], batches: int, principle: Any) -> None:
    """The verdict from a few of the batches is that of all of them, for promises about all batches at once too."""
    batches = min(batches, sum(people))
    column, n = Sensitive("ill", tuple("abcde"[: len(people)]), False), np.array(people, dtype=np.int64)
    line, joint = np.arange(len(people)), np.arange(len(people))[:, None]
    whole = Counts(1, np.zeros(len(people), dtype=np.int64), line, n, (column,), joint)
    rows = [
        (batch, value, many)
        for batch, held in enumerate(attacker.dealt(dict(enumerate(people)), range(len(people)), batches))
        for value, many in held.items()
    ]
    group, value, many = (np.array(each, dtype=np.int64) for each in zip(*rows, strict=True))
    every = Counts(batches, group, value, many, (column,), joint, None, whole)
    assert hold_dealt(n, line, batches, (principle,), whole) == bool(hold((principle,), every).all())


@given(st.lists(st.integers(1, 9), min_size=2, max_size=5), st.sampled_from(PRINCIPLES))
def test_dealing_ends_with_batches_that_hold_and_doubling_misses_none_of_the_least_size(
    people: list[int], principle: Any
) -> None:
    """Whatever is required; where batches of the least size hold, they are taken."""
    values = [v for v, n in zip("abcde", people, strict=False) for _ in range(n)]
    whole = everybody(table(values))
    if not principle.holds(whole).all():
        return
    place, batches = dealing_of(np.array(people), (principle,), whole)
    line = np.argsort(place)
    assert hold_dealt(np.array(people)[line], line, batches, (principle,), whole)
    finest = len(values) // max(1, principle.least_size())
    if finest and hold_dealt(np.array(people)[line], line, finest, (principle,), whole):
        assert batches == finest


# -- equal halves ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("principle", [p for p in PRINCIPLES if p.scope == "group"], ids=repr)
@pytest.mark.parametrize(
    ("values", "ages"),
    [("xxyy", [1, 2, 3, 4]), ("xxyy", [1, 1, 2, 2]), ("xxyyzz", [1, 2, 2, 2, 3, 9]), ("xxxyyy", [1, 2, 3, 4, 5, 6])],
)
def test_everybody_in_a_half_is_believed_to_have_its_shares(values: str, ages: list[int], principle: Any) -> None:
    """Given the order of ties, and everybody's batch."""
    if not principle.holds(everybody(table(values, ages))).all():
        return
    ties = np.random.default_rng(len(values)).permutation(len(values))
    orders = Orders(np.arange(len(values)), ties)

    def publish(world: World, _: Any) -> Hashable:
        batch = seated(table(world, ages), (principle,), "halves", orders)
        return anatomy.published(world, batch.tolist())  # type: ignore[arg-type]

    for seen, possible in attacker.ways(sorted(set(permutations(values))), [None], publish).items():
        found = attacker.beliefs(possible)
        for people, held in seen:  # type: ignore[attr-defined]
            for person in people:
                assert found[person] == attacker.shares(held)
                assert keeps(principle, found[person], values)


@given(st.lists(st.tuples(st.integers(0, 300), st.integers(0, 3)), min_size=2, max_size=24), st.integers(0, 999))
def test_compiled_cuts_leave_the_order_that_plain_ones_leave(people: list[tuple[int, int]], seed: int) -> None:
    """For both ways to choose a column, with few values and with values far apart."""
    ages, zips = (list(each) for each in zip(*people, strict=True))
    columns = {"age": ages, "zip": zips, "ill": ["xy"[i % 2] for i in range(len(people))]}
    given_table = jali.table(pa.table(columns), quasi=["age", "zip"], sensitive=["ill"])
    random, f = np.random.default_rng(seed), given_table.frequencies
    value = given_table.sensitive[0].codes.astype(np.int64)
    held = People(f.row_combination.astype(np.int64), value, everybody(given_table))
    orders = {"drawn": random.permutation(len(people)), "ties": random.permutation(len(people))}
    promise = (jali.FrequencyDiversity(1),)
    for by in ("area", "range"):
        one, other = (
            halve(columns_of(given_table), held, promise, by=by, sorting=True, compiled=compiled, **orders)  # type: ignore[arg-type]
            for compiled in (True, False)
        )
        assert one.group.tolist() == other.group.tolist()


def test_halves_of_several_samples_are_believed_to_have_their_shares() -> None:
    """Three people, two of whom are halved: over all ways to draw them."""
    orders = [Orders(np.array(order), np.arange(3)) for order in permutations(range(3))]

    def publish(world: World, bits: Any) -> Hashable:
        batch = seated(table(world), (jali.FrequencyDiversity(1),), "halves", bits)
        return anatomy.published(world, batch.tolist())  # type: ignore[arg-type]

    for seen, possible in attacker.ways(sorted(set(permutations("xxy"))), orders, publish).items():
        found = attacker.beliefs(possible)
        assert all(found[person] == attacker.shares(held) for people, held in seen for person in people)  # type: ignore[attr-defined]


def test_halves_along_the_curve_do_not_pass_this_law() -> None:
    """Seven people, two different values: a half of three and a half of four are no equal halves."""

    def publish(world: World, _: Any) -> Hashable:
        batch = batches_along(table(world), jali.DistinctDiversity(2), np.arange(7)).batch
        return anatomy.published(world, batch.tolist())  # type: ignore[arg-type]

    worst = max(
        max(belief.values()) - max(attacker.shares(held).values())
        for seen, possible in attacker.ways(sorted(set(permutations("xxxxxyy"))), [None], publish).items()
        for people, held in seen  # type: ignore[attr-defined]
        for belief in (attacker.beliefs(possible)[person] for person in people)
    )
    assert worst > 0


# -- what is published ----------------------------------------------------------------------------------------------


def seen_in(release: Any) -> Hashable:
    """Everything that the tables show: for each batch its values, and what its people show in each table."""
    number = release.contents.names[0]
    batches: dict[int, Counter[Any]] = defaultdict(Counter)
    for name, rows in release.tables.items():
        for row in rows.to_pylist():
            batch, times = row.pop(number, 0), row.pop("count", 1) if name == "batches" else 1
            batches[batch][(name, *row.values())] += times
    none = batches.pop(0, Counter())
    return (*sorted(tuple(sorted(held.items())) for held in batches.values()), tuple(sorted(none.items())))


def replayed(
    values: str, ages: list[int], monkeypatch: pytest.MonkeyPatch, make: Callable[[Any], Any], orders: int | None = None
) -> dict[Hashable, Counter[World]]:
    """The releases of all worlds under all orders in which people can be drawn, or the first; ties are fixed."""

    def publish(world: World, order: tuple[int, ...]) -> Hashable:
        turns = iter([np.array(order)])
        for name in ("fresh_order", "open_order"):
            monkeypatch.setattr(drafts, name, lambda rows: next(turns, np.arange(rows)))
        return seen_in(make(table(world, ages)))

    return attacker.ways(sorted(set(permutations(values))), islice(permutations(range(len(values))), orders), publish)


ASKED = {"k": 2, "transparent": True, "marginals": [["age"]]}


@pytest.mark.parametrize(
    ("principle", "values", "orders"),
    [(jali.Safety(0.9, 0), "xyz", 6), (jali.EntropyDiversity(2), "xxyy", 1)],  # of four people all are halved
)
def test_from_the_published_tables_nobody_is_believed_beyond_the_promise(
    principle: Any, values: str, orders: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over all worlds and orders, with buckets, a marginal and batch numbers: the belief keeps the promise."""
    make = lambda t: jali.angelize(t, principle, buckets="partition", **ASKED)  # noqa: E731
    found = replayed(values, [1, 2, 3, 9][: len(values)], monkeypatch, make, orders)
    for possible in found.values():
        assert all(keeps(principle, belief, values) for belief in attacker.beliefs(possible))


@pytest.mark.slow
@pytest.mark.parametrize("principle", PRINCIPLES, ids=repr)
@pytest.mark.parametrize(("values", "ages"), [("xyzz", [1, 1, 2, 7]), ("xxyz", [1, 2, 3, 4])])
def test_from_all_published_tables_nobody_is_believed_beyond_any_promise(
    values: str, ages: list[int], principle: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same with joint_k, for every promise that the table can keep."""
    if not principle.holds(everybody(table(values, ages))).all():
        return
    make = lambda t: jali.angelize(t, principle, joint_k=True, buckets="partition", **ASKED)  # noqa: E731
    found = replayed(values, ages, monkeypatch, make)
    for possible in found.values():
        assert all(keeps(principle, belief, values) for belief in attacker.beliefs(possible))


PEOPLE = st.lists(st.tuples(st.integers(0, 12), st.sampled_from("xyz")), min_size=4, max_size=14)


@given(PEOPLE, st.randoms(use_true_random=False))
def test_buckets_do_not_change_when_values_change_places(people: list[tuple[int, str]], random: Any) -> None:
    """Of `data`, of marginals with and without batches, and of those that are added later."""
    ages, values = (list(each) for each in zip(*people, strict=True))
    moved = random.sample(values, len(values))
    shown = []
    for held in (values, moved):
        release = jali.angelize(table(held, ages), jali.EntropyDiversity(1), k=2, transparent=True)
        later = release.extend(table(held, ages), [["age"]])
        assert later.manifest.method["transparent"] is True
        shown.append([sorted(map(str, later.tables[name].to_pydict()["age"])) for name in ("data", "marginal-1")])
    assert shown[0] == shown[1]


@given(PEOPLE, st.sampled_from([p for p in PRINCIPLES if not isinstance(p, jali.Safety)]), st.integers(1, 4))
def test_batches_and_buckets_hold(people: list[tuple[int, str]], principle: Any, k: int) -> None:
    """By the rule and by either way, from what is published; infeasible only where everybody together is."""
    ages, values = (list(each) for each in zip(*people, strict=True))
    given_table = table(values, ages)
    for batches in ("best", "anatomy", "halves"):
        if not principle.holds(everybody(given_table)).all():
            with pytest.raises((InfeasibleError, InputError)):
                jali.angelize(given_table, principle, k=k, transparent=True, batches=batches)  # type: ignore[arg-type]
            continue
        release = jali.angelize(given_table, principle, k=k, transparent=True, batches=batches)  # type: ignore[arg-type]
        assert jali.audit(release).holds
        assert release.manifest.method["batches"] == (seats_of((principle,)) if batches == "best" else batches)


# -- which way, and edges -------------------------------------------------------------------------------------------


def test_the_way_follows_from_the_promises() -> None:
    """Dealt where one of them is about all batches at once, halves otherwise."""
    safety, often, entropy = jali.Safety(0.8, 1), jali.FrequencyDiversity(2), jali.EntropyDiversity(2)
    ways = [seats_of(some) for some in ([often], [often, safety], [safety, entropy], [often, entropy], [entropy])]
    assert ways == ["halves", "anatomy", "anatomy", "halves", "halves"]
    assert seats_of([jali.MultiAttribute(often)]) == "halves"
    assert [cut_by(some) for some in ([often], [jali.MultiAttribute(often)], [entropy], [often, entropy])] == [
        "area", "area", "range", "range",
    ]  # fmt: skip


def test_safety_and_entropy_together_are_dealt() -> None:
    """Into batches that are larger than either needs in the best case, until both hold."""
    values = "aaaaaabbbbbcccddee"
    release = jali.angelize(
        table(values), [jali.Safety(0.9, 1), jali.EntropyDiversity(3.5)], k=2, transparent=True, marginals=[["age"]]
    )
    assert release.manifest.method["batches"] == "anatomy"
    assert 1 < release.manifest.counts["batches"] < len(values) // 4
    assert jali.audit(release).holds


@pytest.mark.parametrize("batches", ["best", "anatomy", "halves"])
def test_edges(batches: Any) -> None:
    """One batch, l = n, k = n, everybody alike, one value."""
    four = table("wxyz", [3, 3, 3, 3])
    asked = {"transparent": True, "batches": batches}
    one = jali.angelize(four, jali.FrequencyDiversity(4), k=4, **asked)
    assert one.manifest.counts["batches"] == one.manifest.counts["groups"] == 1
    alike = jali.angelize(table("xxxx"), jali.EntropyDiversity(1), k=1, **asked)
    assert jali.audit(alike).holds
    with pytest.raises(InfeasibleError, match="cannot be met"):
        jali.angelize(table("xxxy"), jali.FrequencyDiversity(2), k=2, **asked)


@pytest.mark.parametrize("batches", ["best", "anatomy", "halves"])
def test_several_sensitive_columns(batches: Any) -> None:
    """Promises about one column, about another, and about each given the other."""
    given_table = table("xxyyzzxy" * 2, job=list("abababcc" * 2))
    asked = {"k": 2, "transparent": True, "batches": batches}
    for promise in (
        [jali.FrequencyDiversity(2, sensitive="ill"), jali.FrequencyDiversity(2, sensitive="job")],
        [jali.EntropyDiversity(1.5, sensitive="job"), jali.DistinctDiversity(2, sensitive="ill")],
        jali.MultiAttribute(jali.DistinctDiversity(1)),
    ):
        release = jali.angelize(given_table, promise, **asked)
        assert jali.audit(release).holds
        assert release.batches.column_names == ["batch", "ill", "job", "count"]


def test_the_manifest_says_it_and_a_saved_release_still_does(tmp_path: Path) -> None:
    """Only where it was asked for; a marginal that is added later changes nothing."""
    given_table, promise = table("xyzxyzxyz"), jali.EntropyDiversity(2)
    assert "transparent" not in jali.angelize(given_table, promise, k=2, batches="halves").manifest.method
    release = jali.angelize(given_table, promise, k=2, transparent=True)
    release.save(tmp_path / "out", private=tmp_path / "keys.parquet")
    later = jali.load(tmp_path / "out").extend(given_table, [["age"]], tmp_path / "keys.parquet")
    assert later.manifest.method["transparent"] is True


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"batches": "curve"}, 'leave batches out, or pass "anatomy" or "halves"'),
        ({"batches": "partition"}, 'leave batches out, or pass "anatomy" or "halves"'),
        ({"transparent": 1}, "transparent is true or false"),
        ({"transparent": "yes"}, "transparent is true or false"),
    ],
)
def test_ways_that_read_values_are_refused(asked: dict[str, Any], message: str) -> None:
    """In one line that names what works."""
    with pytest.raises(InputError, match=message):
        jali.angelize(table("xyxy"), jali.DistinctDiversity(2), k=2, **{"transparent": True, **asked})


@pytest.mark.parametrize("transparent", [True, False])
def test_halves_refuse_promises_about_all_batches(transparent: bool) -> None:
    """They judge batches one by one."""
    with pytest.raises(InputError, match='pass batches="anatomy"'):
        jali.angelize(table("xyxy"), jali.Safety(0.9, 0), k=2, batches="halves", transparent=transparent)
