"""Laws of transparent presence: who knows the algorithm learns nothing beyond the share of each group."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given

import jali
import jali.publish.conceal as publisher
from jali.encoding.table import Table
from jali.errors import InfeasibleError, InputError
from jali.estimates.cells import first_and_last
from jali.principles.anonymity import ABSENT, PRESENCE, PRESENT, DeltaPresence
from jali.principles.counts import Sensitive, dense
from jali.releases.concealed import Concealed
from jali.search.halves import samples_of
from jali.search.screen import framed, halve_people
from oracles import halved_presence as oracle
from oracles.halved_presence import Person, World
from oracles.often import first_often

people = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1)), min_size=2, max_size=8)
shares = st.tuples(st.integers(0, 10), st.integers(1, 10)).map(lambda two: (min(two) / 10, max(two) / 10))


def exact(bounds: tuple[float, float]) -> dict[str, Fraction]:
    return dict(zip(("low", "high"), (Fraction(str(bound)) for bound in bounds), strict=True))


def table(rows: Sequence[Person], **more: list[str]) -> Table:
    frame = pa.table({"x": [x for x, *_ in rows], "y": [y for _, y, *_ in rows], **more})
    return jali.table(frame, quasi=["x", "y"], sensitive=[*more])


def ranked(rows: Sequence[Person]) -> list[Person]:
    """Each value by its place among those that occur, as the domain counts them."""
    places = [sorted({row[c] for row in rows}) for c in range(2)]
    return [tuple(places[c].index(row[c]) for c in range(2)) for row in rows]


def conceal(rows: Sequence[Person], world: World, **options: Any) -> Concealed:
    chosen = [rows[i] for i in sorted(world)]
    return jali.conceal(table(chosen, s=["a"] * len(chosen)), table(rows), transparent=True, **options)


class Numbered:
    """How people of a world are numbered inside: by combination, and there those who are present first."""

    def __init__(self, rows: Sequence[Person], world: World) -> None:
        self.people = sorted(range(len(rows)), key=lambda i: (rows[i], i not in world, i))
        self.place = {person: place for place, person in enumerate(self.people)}

    def order(self, given: Sequence[int]) -> np.ndarray:
        return np.array([self.place[person] for person in given], dtype=np.int64)


def halved(rows: Sequence[Person], world: World, drawn: Sequence[Sequence[int]], ties: Sequence[int], *,
           low: Fraction, high: Fraction) -> set[oracle.Group]:  # fmt: skip
    """The groups that jali makes of this world."""
    public, number = table(rows), Numbered(rows, world)
    frame = framed(table([rows[i] for i in sorted(world)]), public)
    bounds = DeltaPresence(low, high)
    order = number.order(list(itertools.chain(*drawn)))
    found, halves = halve_people(frame, public, bounds, drawn=order, ties=number.order(ties))
    members: dict[int, set[int]] = {}
    for place, group in enumerate(halves.group.tolist()):
        members.setdefault(group, set()).add(number.people[place])
    assert {number.people[i] for i in np.flatnonzero(found.value)} == world
    return {(frozenset(some), len(world & some)) for some in members.values()}


def drawn_of(data: st.DataObject, sizes: Sequence[int], many: int) -> tuple[list[list[int]], list[int]]:
    order = data.draw(st.permutations(range(many)))
    edges = [0, *itertools.accumulate(sizes)]
    return [order[a:b] for a, b in itertools.pairwise(edges)], data.draw(st.permutations(range(many)))


@given(people, shares, st.data())
def test_everybody_of_a_group_is_present_with_its_share_for_who_knows_all_random_bits(
    rows: list[Person], bounds: tuple[float, float], data: st.DataObject
) -> None:
    """Every world that fits the draw is published; among those that show the same groups everybody is present as often
    as the share of the group says, exactly, and the share is within the bounds."""
    low, high = exact(bounds).values()
    present = data.draw(st.integers(1, len(rows)))
    assume(oracle.within(present, len(rows), low, high))
    sizes = oracle.samples(len(rows), present, low, high)
    drawn, ties = drawn_of(data, [size for size, _, _ in sizes], len(rows))
    seen = [
        (frozenset(halved(rows, world, drawn, ties, low=low, high=high)), world)
        for world in oracle.worlds(drawn, [some for _, some, _ in sizes])
    ]
    for groups, belief in oracle.beliefs(seen, len(rows)).items():
        assert isinstance(groups, frozenset)
        for some, count in groups:
            assert all(belief[person] == Fraction(count, len(some)) for person in some)
            assert low <= Fraction(count, len(some)) <= high


@given(st.integers(1, 60).flatmap(lambda many: st.tuples(st.just(many), st.integers(1, many))), shares)
def test_samples_follow_from_the_numbers_of_people_and_the_bounds(
    people: tuple[int, int], bounds: tuple[float, float]
) -> None:
    (many, present), (low, high) = people, exact(bounds).values()
    assume(oracle.within(present, many, low, high))
    whole = dense(np.array([[many - present, present]]), (Sensitive(PRESENCE, (ABSENT, PRESENT)),))
    judged = (DeltaPresence(low, high), jali.KAnonymity(oracle.least_size(high)))
    found = samples_of(np.array([many - present, present]), oracle.least_size(high), judged, whole)
    told = [(int(sample.histogram.sum()), int(sample.histogram[1]), sample.depth) for sample in found]
    assert told == oracle.samples(many, present, low, high)


@given(people, shares, st.data())
def test_groups_are_those_that_the_definition_cuts(
    rows: list[Person], bounds: tuple[float, float], data: st.DataObject
) -> None:
    low, high = exact(bounds).values()
    present = data.draw(st.integers(1, len(rows)))
    assume(oracle.within(present, len(rows), low, high))
    sizes = oracle.samples(len(rows), present, low, high)
    drawn, ties = drawn_of(data, [size for size, _, _ in sizes], len(rows))
    world = frozenset(person for some, (_, n, _) in zip(drawn, sizes, strict=True) for person in some[:n])
    turn = {person: i for i, person in enumerate(ties)}
    told = oracle.groups(ranked(rows), world, drawn, turn, low=low, high=high)
    assert halved(rows, world, drawn, ties, low=low, high=high) == set(told)


def shown(release: Concealed) -> tuple[tuple[tuple[frozenset[int], ...], int, int], ...]:
    """What a release with sets shows, as the oracle writes it."""
    assert release.parts is not None
    found = []
    for x, y, size, present in zip(*release.tables["groups"].to_pydict().values(), strict=True):
        cells = tuple(frozenset(map(int, cell.strip("{}").split(", "))) for cell in (x, y))
        found.append((cells, size, present))
    return tuple(sorted(found, key=lambda group: ([sorted(values) for values in group[0]], group[1:])))


@given(people, shares, st.data())
def test_presence_bounds_the_belief_of_who_does_not_know_the_random_bits(
    rows: list[Person], bounds: tuple[float, float], data: st.DataObject
) -> None:
    """All worlds and all draws of one order of ties; the attacker sees what is published, and the public table."""
    rows = rows[:5]
    low, high = exact(bounds).values()
    present = data.draw(st.integers(2, len(rows)))
    assume(oracle.within(present, len(rows), low, high))
    sizes = oracle.samples(len(rows), present, low, high)
    places, turn = ranked(rows), {person: person for person in range(len(rows))}
    seen = [
        (oracle.published(rows, oracle.groups(places, world, drawn, turn, low=low, high=high)), world)
        for drawn in oracle.draws(range(len(rows)), [size for size, _, _ in sizes])
        for world in oracle.worlds(drawn, [some for _, some, _ in sizes])
    ]
    for told, belief in oracle.beliefs(seen, len(rows)).items():
        for person, share in zip(rows, belief, strict=True):
            least, most = oracle.bounds(person, told, len(rows))  # type: ignore[arg-type]
            assert low <= least <= share <= most <= high
    release = conceal(rows, data.draw(st.sampled_from(seen))[1], low=low, high=high, show="set")
    found, told_bounds = release.presence(), [oracle.bounds(person, shown(release), len(rows)) for person in rows]
    assert found.at_least is not None
    assert found.at_least.tolist() == [float(least) for least, _ in told_bounds]
    assert found.probabilities.tolist() == [float(most) for _, most in told_bounds]


# -- two A and eight B, of whom A, A and B are present -----------------------------------------------------------------

TEN: list[Person] = [(0, 0)] * 2 + [(1, 0)] * 8
LOW, HIGH = Fraction(0), Fraction(3, 5)


def test_groups_that_look_for_the_finest_ones_give_both_a_away() -> None:
    """`presence` says 0.3 of everybody; of all worlds only the true one is published so."""
    public = table(TEN)
    releases = {
        frozenset(kind.items()): jali.conceal(table(sorted(kind.elements())), public, low=0, high=0.6)
        for kind in map(Counter, ([TEN[0], TEN[0], TEN[2]], [TEN[0], TEN[2], TEN[2]], [TEN[2]] * 3))
    }
    true = frozenset(Counter([TEN[0], TEN[0], TEN[2]]).items())
    assert releases[true].presence().high == pytest.approx(0.3)
    assert [kind for kind, one in releases.items() if one.groups.equals(releases[true].groups)] == [true]


def test_transparent_groups_of_the_same_table_leave_nobody_above_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """All 120 worlds and all draws: no belief is above 0.6 or above what `presence` says, whatever is published."""
    sizes = oracle.samples(10, 3, LOW, HIGH)
    turn = {person: person for person in range(10)}
    seen = [
        (oracle.published(TEN, oracle.groups(TEN, world, drawn, turn, low=LOW, high=HIGH)), world)
        for drawn in oracle.draws(range(10), [size for size, _, _ in sizes])
        for world in oracle.worlds(drawn, [some for _, some, _ in sizes])
    ]
    believed = oracle.beliefs(seen, 10)
    assert max(max(belief) for belief in believed.values()) <= HIGH
    world = frozenset({0, 1, 2})
    number = Numbered(TEN, world)
    for name in ("open_order", "fresh_order"):
        monkeypatch.setattr(publisher, name, lambda n: number.order(range(n)))
    release = conceal(TEN, world, low=0, high=0.6, show="set")
    assert all(p >= b for p, b in zip(release.presence().probabilities, believed[shown(release)], strict=True))


# -- edges -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("many", "present", "low", "high"), [
    (8, 8, 0, 1), (8, 8, 1, 1), (7, 3, 0, 1), (7, 3, 0.1, 0.9), (8, 4, 0.5, 0.5), (7, 2, 0, 0.5), (10, 3, 0.3, 0.3),
    (9, 4, 0.3, 0.6), (33, 16, 0.25, 0.75), (2, 2, 0, 1),
])  # fmt: skip
def test_numbers_at_the_edge_of_the_bounds_are_published_within_them(
    many: int, present: int, low: float, high: float
) -> None:
    """Everybody present, equal bounds, odd numbers: shares are within the bounds, and every row is published."""
    rows = [(i, i % 2) for i in range(many)]
    release = conceal(rows, frozenset(range(present)), low=low, high=high)
    assert release.parts is not None
    assert all(low <= m / n <= high for m, n in zip(release.parts.present, release.parts.people, strict=True))
    assert (release.rows, release.parts.present.sum()) == (present, present)
    assert release.parts.people.sum() == many if low else release.parts.people.sum() <= many


def test_people_with_one_combination_are_one_group_for_each_sample() -> None:
    release = conceal([(1, 1)] * 8, frozenset(range(4)), low=0.5, high=0.5)
    assert release.presence().probabilities.tolist() == [0.5] * 8
    assert release.groups.num_rows == 1


def test_one_person_more_than_a_power_of_two_does_not_end_all_cuts() -> None:
    """A rest of one person would break the bounds, so that a smaller sample is drawn."""
    sizes = oracle.samples(1025, 512, Fraction(1, 4), Fraction(3, 4))
    assert sizes[0][2] > 5
    release = conceal([(i, 0) for i in range(33)], frozenset(range(0, 32, 2)), low=0.25, high=0.75)
    assert release.parts is not None
    assert len(release.parts.people) > 3


def test_bounds_that_the_whole_table_breaks_are_refused() -> None:
    with pytest.raises(InfeasibleError, match=r"a share of 0\.5"):
        conceal([(i, 0) for i in range(8)], frozenset(range(4)), low=0, high=0.4)


@pytest.mark.parametrize(("options", "words"), [
    ({"shift": "exact"}, "a shift is computed from who is present"), ({"shift": "bounds"}, "a shift is computed"),
    ({"search": "lattice"}, "a search looks for"), ({"search": "partition"}, "a search looks for"),
    ({"steps": 3}, "steps are steps of a shift"), ({"show": "box"}, 'no display "box"'),
])  # fmt: skip
def test_what_reads_who_is_present_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        conceal([(i, 0) for i in range(8)], frozenset(range(4)), low=0, high=1, **options)


def test_transparent_is_yes_or_no() -> None:
    rows = table([(0, 0), (1, 0), (1, 1)])
    with pytest.raises(InputError, match="True or False"):
        jali.conceal(rows, rows, low=0, high=1, transparent="yes")  # type: ignore[arg-type]


# -- what is published -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("show", first_often(["pdf", "taxonomy", "interval", "set"]))
def test_cells_are_those_of_the_public_people_of_a_group_alone(show: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two worlds with the same groups and as many people present in each show the same cells."""
    rows = [(i // 2, i % 2) for i in range(8)]
    order = [0, 5, 1, 4, 2, 7, 3, 6]
    seen: dict[Any, set[str]] = {}
    for world in map(frozenset, itertools.combinations(range(8), 4)):
        number = Numbered(rows, world)
        for name in ("open_order", "fresh_order"):
            monkeypatch.setattr(publisher, name, lambda n, to=number: to.order(order))
        release = conceal(rows, world, low=0.25, high=0.75, show=show)
        in_turn = [i for i in order if i not in world] + [i for i in order if i in world]
        samples = oracle.samples(8, 4, Fraction(1, 4), Fraction(3, 4))
        assert [size for size, _, _ in samples] == [8]
        turn = {person: i for i, person in enumerate(order)}
        groups = oracle.groups(rows, world, [in_turn], turn, low=Fraction(1, 4), high=Fraction(3, 4))
        seen.setdefault(frozenset(groups), set()).add(str(release.tables["groups"].to_pydict()))
    assert all(len(told) == 1 for told in seen.values())
    assert len(seen) > 1


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_a_saved_release_says_the_same_presence_and_is_judged_from_its_files(tmp_path: Path, format: Any) -> None:
    rows = [(i % 11, i % 3) for i in range(60)]
    release = conceal(rows, frozenset(range(0, 60, 3)), low=0.1, high=0.6)
    assert release.manifest.method["transparent"] is True
    assert release.disclosure_bound == "at most"
    again = jali.load(release.save(tmp_path / "r", format=format))
    assert isinstance(again, Concealed)
    public = table(rows)
    again.verify(public)
    assert again.presence(public).probabilities.tolist() == release.presence().probabilities.tolist()
    with pytest.raises(InputError, match="does not keep"):
        again.verify(table([*rows, (0, 0)]))  # somebody is in no group
    with pytest.raises(InputError, match="more people than the public table has"):
        again.verify(table(rows[:-1]))


def test_public_people_that_add_up_to_few_in_64_bits_are_refused(tmp_path: Path) -> None:
    """Four times 2**62 are 0: everybody would be present with a probability of about 0."""
    release = conceal([(i % 11, i % 3) for i in range(60)], frozenset(range(0, 60, 3)), low=0, high=0.6)
    folder = release.save(tmp_path / "r", format="parquet")
    groups, manifest = pq.read_table(folder / "groups.parquet"), json.loads((folder / "manifest.json").read_text())
    people = [*[2**62] * 4, *groups["people"].to_pylist()[4:]]
    pq.write_table(
        groups.set_column(groups.column_names.index("people"), "people", pa.array(people)), folder / "groups.parquet"
    )
    manifest["files"]["groups.parquet"]["sha256"] = hashlib.sha256((folder / "groups.parquet").read_bytes()).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(InputError, match="does not describe its tables"):
        jali.load(folder)


def test_a_compact_table_is_concealed_like_its_rows() -> None:
    two = table([(0, 0), (1, 0)])
    public, private = (replace(two, multiplicity=np.array([many, many])) for many in (6, 3))
    release = jali.conceal(private, public, low=0.2, high=0.8, transparent=True)
    assert release.rows == 6
    assert release.presence().holds(DeltaPresence(0.2, 0.8))
    assert len(release.presence().probabilities) == 12


@given(st.lists(st.integers(1, 63), min_size=1, max_size=200), st.lists(st.integers(1, 3), min_size=1, max_size=200))
def test_the_first_and_the_last_box_of_a_cell_are_found_by_trying_all(xs: list[int], ys: list[int]) -> None:
    """A box is a set of six values of one column and two of the other, as bits."""
    boxes = [(x, ys[i % len(ys)]) for i, x in enumerate(xs)]
    dense = []
    for values, nodes in ((6, 64), (2, 4)):
        pairs = [(value, node) for value in range(values) for node in range(nodes) if node >> value & 1]
        value, node = np.array(pairs).T
        dense.append((value, node, np.ones(len(value))))
    cells = [(a, b) for a in range(6) for b in range(2)]
    asked = [np.array(side) for side in zip(*cells, strict=True)]
    first, last = first_and_last(asked, dense, [64, 4], [np.array(side) for side in zip(*boxes, strict=True)])
    for cell, one, other in zip(cells, first.tolist(), last.tolist(), strict=True):
        holding = [
            i for i, box in enumerate(boxes) if all(side >> value & 1 for side, value in zip(box, cell, strict=True))
        ]
        assert (one, other) == ((holding[0], holding[-1]) if holding else (-1, -1))
