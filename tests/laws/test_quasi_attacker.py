"""Marginals against somebody who knows everybody's quasi-identifiers: what `check` says is what every world says."""

from __future__ import annotations

import time
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

import jali
from jali.errors import InputError
from jali.graphical.marginal import Cache, Marginal
from jali.graphical.privacy.block import Profiles
from jali.graphical.privacy.privacy import Checker, check, unnamed_columns
from jali.graphical.privacy.tables import LateError, eliminated, reached
from jali.principles import DistinctDiversity, EntropyDiversity, FrequencyDiversity, KAnonymity, Principle, TCloseness
from laws.test_collection_privacy import bound_of, cache_of, expect
from oracles import collections as oracle
from oracles import quasi as by_worlds

Rows = list[tuple[int, ...]]

COLLECTIONS = {
    3: [[(0, -1, 0), (-1, 0, 0)], [(0, -1, 0), (-1, 0, 0), (0, 0, -1)]],
    4: [
        [(0, -1, -1, 0), (-1, 0, 0, 0)],
        [(0, 0, -1, 0), (-1, 0, 0, 0)],
        [(0, -1, -1, 0), (-1, 0, -1, 0), (-1, -1, 0, 0)],
    ],
}


@st.composite
def cases(draw: st.DrawFn, *, people: int = 6) -> tuple[Rows, list[list[list[int]]], list[tuple[int, ...]]]:
    """A few people, two or three quasi-identifiers and a sensitive column, and marginals that share that column."""
    columns = draw(st.sampled_from([3, 4]))
    sizes = [2 if columns == 4 else 3] * (columns - 1) + [draw(st.integers(1, 3))]
    row = st.tuples(*(st.integers(0, size - 1) for size in sizes))
    rows = draw(st.lists(row, min_size=1, max_size=people))
    return rows, [[list(range(size))] for size in sizes], draw(st.sampled_from(COLLECTIONS[columns]))


def expected(rows: Rows, maps: Any, collection: Any, name: str, principle: Principle) -> list[float] | None:
    """The level of each person by the oracle; None where its scaling has not settled."""
    found = by_worlds.beliefs(rows, collection, maps)
    reference = [sum(row[-1] == v for row in rows) for v in range(len(maps[-1][0]))]
    return None if found is None else [oracle.level(name, row, reference=reference) for row in found]


PRINCIPLES: list[tuple[str, Principle]] = [
    ("distinct", DistinctDiversity(2)),
    ("frequency", FrequencyDiversity("1.45")),
    ("entropy", EntropyDiversity("1.7")),
    ("closeness", TCloseness("0.31")),
]


@given(cases(), st.sampled_from(PRINCIPLES))
def test_a_promise_is_kept_where_the_belief_about_everybody_keeps_it(case: Any, asked: tuple[str, Principle]) -> None:
    """Maximum entropy over the values that worlds give a person, for everybody; and what files show holds too."""
    (rows, maps, collection), (name, principle) = case, asked
    if name != "closeness" and len(maps[-1][0]) < 2:
        return  # refused as a request
    cache, marginals = cache_of(rows, maps), [Marginal(levels) for levels in collection]
    files = check(marginals, cache, principle)
    verdict = check(marginals, cache, principle, attacker="quasi")
    if not files.holds:
        assert not verdict.holds
        return
    levels = expected(rows, maps, collection, name, principle)
    if levels is not None:
        worst = (min if principle.better == "higher" else max)([*levels, files.reached])
        if name == "distinct" and verdict.holds:
            assert 2 <= verdict.reached <= worst  # values are followed as far as the promise needs them
            return
        expect(verdict, principle, [worst], bound_of(principle), close=1e-6)


@given(cases(people=5))
def test_the_values_a_belief_counts_on_are_those_that_some_world_gives(case: Any) -> None:
    """Exactly those, profile by profile: exchanges and programs against the enumeration of worlds."""
    rows, maps, collection = case
    cache = cache_of(rows, maps)
    some = tuple(Marginal(levels) for levels in collection if levels[-1] == 0)
    profiles = Profiles(cache, cache.domain.sensitive, some)
    here = profiles._open
    known = profiles.exchanged(profiles.people[here])
    possible = profiles.tables.possible(
        profiles.people[here], whole=True, deadline=float("inf"), near=profiles.exchanged
    )
    assert not (known & ~possible).any()
    values = cache.counts(Marginal((*[-1] * (len(maps) - 1), 0))).cells[:, 0]
    found = {
        (int(profile), int(values[value])) for profile, value in zip(*(part[possible] for part in here), strict=True)
    }
    source = cache.sources[0].cells.tolist()
    truth = set()
    for row, some_values in zip(rows, by_worlds.possible(rows, collection, maps), strict=True):
        truth |= {(int(profiles._profile[0][source.index(list(row))]), value) for value in some_values}
    assert found == truth


def small_table(rows: Rows) -> jali.Table:
    names = ["a", "b", "c"][: len(rows[0]) - 1]
    data = {name: [f"{name}{row[i]}" for row in rows] for i, name in enumerate(names)}
    data["s"] = ["xyz"[row[-1]] for row in rows]
    return jali.table(pa.table(data), quasi={name: jali.suppress() for name in names}, sensitive=["s"])


@given(cases(), st.sampled_from([DistinctDiversity(2), EntropyDiversity("1.7"), FrequencyDiversity("1.3")]))
def test_nobody_is_certain_in_what_is_published(case: Any, principle: Principle) -> None:
    """In a release made by default everybody has a second value in some world."""
    rows, maps, _ = case
    if len(maps[-1][0]) < 2 or len({row[-1] for row in rows}) < 2:
        return
    table = small_table(rows)
    try:
        release = jali.marginals(table, [KAnonymity(min(2, len(rows))), principle])
    except jali.InfeasibleError:
        return
    collection = [
        tuple(levels.get(name, -1) for name in [*"abc"[: len(maps) - 1], "s"]) for levels, _ in release.marginals
    ]
    if any(levels[-1] == 0 for levels in collection):
        assert min(map(len, by_worlds.possible(rows, collection, maps))) >= 2
    assert release.manifest.method["attacker"] == "quasi"


ROWS = [(0, 1, 0), (0, 1, 1), (1, 0, 0), (1, 0, 1), (1, 1, 0)]


def test_two_marginals_that_leave_one_value_are_not_published() -> None:
    """The last person is x for certain beside everybody's quasi-identifiers; the marginals alone expect 1.79 values."""
    table, pair, promises = (
        small_table(ROWS),
        [{"a": 0, "s": 0}, {"b": 0, "s": 0}],
        [KAnonymity(2), EntropyDiversity(1.7)],
    )
    verdict = jali.check_marginals(table, pair, promises)
    assert not verdict
    assert verdict.reached == 1
    assert verdict.cell == {"a": "a1", "b": "b1"}
    assert jali.check_marginals(table, pair, promises, attacker="marginals")
    release = jali.marginals(table, promises)
    assert sum("s" in levels for levels, _ in release.marginals) == 1
    weak = jali.marginals(table, promises, attacker="marginals")
    assert sum("s" in levels for levels, _ in weak.marginals) == 2


def test_the_release_says_who_the_attacker_is(tmp_path: Any) -> None:
    """In words and in the manifest; one that says nothing was judged for the weaker."""
    table, promises = small_table(ROWS * 4), [KAnonymity(2), EntropyDiversity(1.5)]
    strong, weak = jali.marginals(table, promises), jali.marginals(table, promises, attacker="marginals")
    assert "knows everybody's quasi-identifiers and" in repr(strong)
    assert "from these files alone" in repr(strong)
    assert "not one who knows the table of everybody's quasi-identifiers" in repr(weak)
    for release, name in ((strong, "quasi"), (weak, "marginals")):
        release.save(tmp_path / name)
        loaded = jali.load(tmp_path / name)
        assert isinstance(loaded, type(release))
        assert loaded.attacker == name
        notes = " ".join(jali.audit(loaded).notes)
        assert ("promised against" in notes) == (name == "quasi")
    plain = {key: value for key, value in strong.manifest.method.items() if key != "attacker"}
    object.__setattr__(strong.manifest, "method", plain)
    assert strong.attacker == "marginals"


def test_an_attacker_that_does_not_exist_is_refused() -> None:
    """One line, with the names that do; and the stronger one needs the table."""
    table = small_table(ROWS)
    with pytest.raises(InputError, match='did you mean "quasi"'):
        jali.marginals(table, KAnonymity(2), attacker="quasy")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="attacker"):
        jali.check_marginals(table, [{"a": 0}], KAnonymity(2), attacker=None)  # type: ignore[arg-type]
    for limit in (0, -1, True, "1", None):
        with pytest.raises(InputError, match="time_limit"):
            jali.check_marginals(table, [{"a": 0}], KAnonymity(2), time_limit=limit)  # type: ignore[arg-type]
    cache = Cache.of(table)
    alone = Cache(cache.domain, (cache.counts(Marginal((0, -1, 0))),))
    with pytest.raises(InputError, match="with the table itself"):
        Checker(alone, (KAnonymity(2),), unnamed_columns(alone), attacker="quasi")


# Deadlines and cycles


def cycle(columns: int, people: int) -> tuple[Cache, list[Marginal]]:
    """Columns of three values in a ring, each pair of neighbours a marginal: not decomposable."""
    rng = np.random.default_rng(columns)
    codes = [rng.integers(0, 3, people)]
    for _ in range(columns - 1):
        codes.append((codes[-1] + rng.integers(0, 3, people) * (rng.random(people) < 0.6)) % 3)
    rows = [tuple(int(v) for v in row) for row in zip(*codes, rng.integers(0, 2, people), strict=True)]
    pairs = [[0 if i in (j, (j + 1) % columns) else -1 for i in range(columns + 1)] for j in range(columns)]
    return cache_of(rows, [*[[[0, 1, 2]]] * columns, [[0, 1]]]), [Marginal(tuple(pair)) for pair in pairs]


def test_rings_of_columns_are_judged_or_refused_in_time() -> None:
    """Nine columns in a ring, 19,683 cells: with many people at once, with few people the deadline ends it."""
    cache, pairs = cycle(9, 2000)
    assert check(pairs, cache, KAnonymity(5)).holds
    cache, pairs = cycle(9, 300)
    start = time.monotonic()
    verdict = check(pairs, cache, KAnonymity(3), seconds=0.2)
    assert not verdict
    assert verdict.principle is None
    assert "time allowed" in verdict.reason
    assert time.monotonic() - start < 20


def test_one_anonymity_is_vacuous() -> None:
    """k = 1 asks for nothing, whatever the marginals."""
    cache, pairs = cycle(9, 30)
    verdict = check(pairs, cache, KAnonymity(1), seconds=0.001)
    assert verdict.holds
    assert verdict.reached == 1


def test_without_time_nothing_is_published() -> None:
    """The deadline is an error of its own; a collection that was not judged does not hold."""
    rows = [(a, b, s) for a in range(3) for b in range(3) for s in range(2) for _ in range(1 + (a * b + s) % 4)]
    cache = cache_of(rows, [[[0, 1, 2]], [[0, 1, 2]], [[0, 1]]])
    profiles = Profiles(cache, cache.domain.sensitive, (Marginal((0, -1, 0)), Marginal((-1, 0, 0))))
    with pytest.raises(LateError, match="more time"):
        profiles.tables.expected(profiles.tables.limits[1] > 0, 0.0)


@given(st.lists(st.tuples(*[st.integers(0, 1)] * 4), min_size=1, max_size=14), st.integers(0, 5))
def test_what_a_finer_collection_reaches_some_table_reaches(rows: Rows, seed: int) -> None:
    """The closed form over eliminated columns is never more than the integer program over the published marginals."""
    maps = [[[0, 1]]] * 4
    collection = [(0, 0, -1, -1), (-1, 0, 0, -1), (0, -1, 0, -1), (0, -1, -1, 0)]
    world = np.zeros((2, 2, 2, 2), dtype=np.int64)
    np.add.at(world, tuple(np.array(rows).T), 1)
    found = reached(world, [frozenset(i for i, v in enumerate(levels) if v >= 0) for levels in collection])
    cell = tuple(int(i) for i in np.unravel_index(seed, (2, 2, 2)))
    assert found[cell] <= oracle.most_people(cell, rows, collection, maps)


def test_every_marginal_stands_within_a_clique() -> None:
    """A ring of five: three cliques of three columns."""
    scopes = [frozenset({i, (i + 1) % 5}) for i in range(5)]
    for order in ([0, 1, 2, 3, 4], [2, 0, 4, 1, 3]):
        cliques = eliminated(scopes, order)
        assert all(any(scope <= clique for clique in cliques) for scope in scopes)
        assert sorted(map(len, cliques)) == [3, 3, 3]
