"""The red team finds nothing in transparent releases, and does find what others give away."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import jali
from jali import disclosure
from jali.core.arrays import Ints
from jali.principles.counts import Sensitive
from jali.search.items import Columns
from oracles.often import repeated
from red_team import attackers, cases, dealing, halving
from red_team.cases import Case, Values, drawn
from red_team.page import between
from red_team.pairs import DEALT, HALVED, PAIRS, attack
from red_team.worlds import World, arrangements, number_of_worlds

ODD = (0, 0, 2, 2, 6, 6, 7)


@pytest.mark.parametrize("pair", PAIRS, ids=" ".join)
def test_nobody_learns_more_than_is_published(pair: tuple[str, str]) -> None:
    """A few tables of each pair, with the bits known, unknown and replayed."""
    assert attack(pair, 1, range(3)).is_clean


@pytest.fixture
def forgotten() -> Iterator[None]:
    """Verdicts that were remembered of the same values are about none that is missing, and the other way round."""
    memories = (cases._verdicts, cases._whole_holds, halving._samples)
    for memory in memories:
        memory.cache_clear()
    yield
    for memory in memories:
        memory.cache_clear()


@pytest.mark.usefixtures("forgotten")
@pytest.mark.parametrize("principle", [*HALVED, *DEALT[:2]])
def test_nobody_learns_more_of_a_known_value_where_others_are_missing(
    principle: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Halves keep the promises about those whose value is known: the last value of each table is the missing one."""
    plain = Values.sensitive.fget

    def with_missing(values: Values) -> tuple[Sensitive, ...]:
        (column,) = plain(values)
        return (replace(column, labels=(*column.labels[:-1], None), unknown=values.joint - 1),)

    monkeypatch.setattr(Values, "sensitive", property(with_missing))
    for method in ("partition", "angelize, halves"):
        assert attack((method, principle), 1, range(3)).is_clean


@pytest.mark.slow
@pytest.mark.parametrize("pair", PAIRS, ids=" ".join)
def test_nobody_learns_more_than_is_published_from_a_hundred_tables(pair: tuple[str, str]) -> None:
    """What `make red-team` does on 5,000."""
    result = attack(pair, 2, range(100))
    assert result.is_clean
    assert result.tables == 100
    assert result.releases >= 100


def one_column(x: tuple[int, ...], value: list[int], *principles: jali.Principle) -> Case:
    """A case with one ordered quasi-identifier."""
    width = max(x) + 1
    rank = np.arange(width)
    column = Columns(
        place=np.array([x], dtype=np.int32), tree=np.array([False]), width=np.array([width]), size=np.array([width]),
        offset=np.array([0]), node=rank, leaves=np.ones_like(rank),
    )  # fmt: skip
    return Case(column, np.array(value), Values("one", max(value) + 1), principles)


def unequal_halves(case: Case, world: World) -> Ints:
    """Halves of n // 2 people and the others: what an odd size leads to."""
    group = np.zeros(case.people, dtype=np.int64)

    def cut(people: Ints) -> None:
        middle = len(people) // 2
        parts = [people[:middle], people[middle:]]
        counts = np.stack([np.bincount(world[part], minlength=case.values.joint) for part in parts])
        if middle and case.hold(counts, case.principles).all():
            group[parts[1]] = group.max() + 1
            for part in parts:
                cut(part)

    cut(np.argsort(case.columns.place[0], kind="stable"))
    return group


def bands(case: Case, world: World) -> Ints:
    """The finest of bands of 2, of 4 and everybody together that holds: a lattice of one column."""
    for width in (1, 2, 4):
        group = np.unique(case.columns.place[0] // width, return_inverse=True)[1].reshape(-1)
        counts = np.zeros((int(group.max()) + 1, case.values.joint), dtype=np.int64)
        np.add.at(counts, (group, world), 1)
        if case.hold(counts, case.principles).all():
            return group
    return np.zeros(case.people, dtype=np.int64)


def test_unequal_halves_give_somebody_away() -> None:
    """Seven people with two values: one who replays the search is certain of somebody."""
    case = one_column(tuple(range(7)), [0, 0, 0, 0, 1, 1, 1], jali.DistinctDiversity(2))
    worlds = arrangements((4, 3))
    assert halving.run_in_all(case, unequal_halves, worlds).excess > 0
    rng = np.random.default_rng(0)
    assert halving.bits_known(case, rng).excess == 0


def test_a_lattice_gives_three_people_away() -> None:
    """Published is 3/7, and who replays the search is certain: the group of 6, 6 and 7 must have failed."""
    case = one_column(ODD, [0, 1, 2, 3, 4, 4, 4], jali.Safety(0.8, 0))
    outcome = halving.run_in_all(case, bands, arrangements((1, 1, 1, 1, 3)))
    assert outcome.worlds == 840
    assert outcome.excess == 1 - Fraction(3, 7)
    assert halving.bits_known(case, np.random.default_rng(0)).excess == 0


def test_the_search_itself_is_what_was_replayed() -> None:
    """Halving in every world, compiled, finds the releases that the red team thinks of."""
    for number in range(repeated(25)):
        case = drawn(np.random.default_rng([3, number]), HALVED[number % len(HALVED)])
        by_hand = halving.bits_known(case, np.random.default_rng(number))
        assert halving.replayed(case, np.random.default_rng(number), compiled=True) == by_hand


@pytest.mark.parametrize(("value", "l"), [([0, 0, 1, 1], 2), ([0, 0, 1, 2], 2), ([0, 1, 2, 2, 1], 2), ([0, 1, 2], 3)])
def test_dealing_is_what_was_replayed(value: list[int], l: int) -> None:
    """`deal` called with every world and every order leads to the worlds and buckets that the red team lists."""
    histogram = tuple(np.bincount(value).tolist())
    worlds, buckets, _ = dealing.dealt(histogram, l)
    often = dealing.literal(np.array(value), l)
    listed: dict[object, int] = {}
    for world, bucket in zip(worlds.tolist(), buckets.tolist(), strict=True):
        listed[tuple(world), tuple(bucket)] = listed.get((tuple(world), tuple(bucket)), 0) + 1
    factor = sum(often.values()) // len(worlds)
    assert factor == number_of_worlds(histogram)
    assert {key: factor * n for key, n in listed.items()} == often


@pytest.mark.parametrize("k", [0, 1, 2])
@pytest.mark.parametrize(("histogram", "l"), [((2, 2), 2), ((1, 1, 1), 3), ((2, 1, 1), 2)])
def test_facts_tell_what_disclosure_says(histogram: tuple[int, ...], l: int, k: int) -> None:
    """From dealt buckets, an attacker who knows the algorithm and any k implications learns `disclosure.maximum`."""
    worst, contents = attackers.worst_of_facts(histogram, l, k)
    assert worst == disclosure.maximum(contents.tolist(), k, exact=True)


@pytest.mark.parametrize("learner", [attackers.naive_bayes, attackers.logistic])
def test_a_classifier_guesses_no_better_than_the_groups_allow(learner: attackers.Learner) -> None:
    """On average over the worlds that lead to the release, whatever it learns from it."""
    for number in range(repeated(100)):
        rng = np.random.default_rng([5, number])
        case = drawn(rng, HALVED[number % len(HALVED)])
        right, most = attackers.learnt(case, attackers.released(case, rng), learner)
        assert right <= most


def test_two_releases_together_can_break_a_promise() -> None:
    """No promise is made about several releases of one table: with other bits the groups cross."""
    broken = 0
    for number in range(40):
        rng = np.random.default_rng([7, number])
        found = attackers.linked(drawn(rng, "entropy diversity"), rng)
        broken += found.is_broken
    assert broken


def test_one_release_twice_tells_nothing_new() -> None:
    """The attacker of two releases finds the published shares where both are the same."""
    case = one_column((0, 1, 2, 3), [0, 1, 0, 1], jali.DistinctDiversity(2))
    shown = attackers.released(case, np.random.default_rng(0))
    again = attackers.released(case, np.random.default_rng(0))
    assert shown.group.tolist() == again.group.tolist()
    assert shown.worlds.tolist() == again.worlds.tolist()


def test_what_a_command_writes_stands_between_its_markers() -> None:
    """Everything else of the page stays."""
    page = "a\n<!-- x: begin -->\nold\n<!-- x: end -->\nb\n"
    assert between(page, "x", "new") == "a\n<!-- x: begin -->\nnew\n<!-- x: end -->\nb\n"
    with pytest.raises(ValueError, match="no markers"):
        between(page, "y", "new")
