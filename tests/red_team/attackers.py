"""Other attackers: one links two releases of a table, one learns from a release, one composes facts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import NamedTuple

import numpy as np

from jali.core.arrays import Bools, Floats, Ints
from jali.search.halves import _draw
from red_team.cases import Case
from red_team.dealing import dealt
from red_team.halving import fitting, leaves_of, samples, tree
from red_team.worlds import World, arrangements, believed, numbered


class Shown(NamedTuple):
    """A release by halves: what was published, and all worlds that lead to it when the bits are known."""

    group: Ints  # (people,)
    histogram: Ints  # (groups, values)
    worlds: World  # (worlds, people)


def released(case: Case, rng: np.random.Generator) -> Shown:
    """Publish the case's own world with fresh bits."""
    plan = samples(case)
    members = _draw(case.value, plan, rng.permutation(case.people))
    ties = rng.permutation(case.people)
    in_turn = [ties[np.isin(ties, people)] for people in members]
    true = case.value.astype(np.int8)
    worlds = np.concatenate([true[None, :], fitting(plan, in_turn)])
    leaves = [leaves_of(case, tree(case, turn, s.depth), worlds) for turn, s in zip(in_turn, plan, strict=True)]
    is_leaf = np.concatenate([sample.is_leaf for sample in leaves], axis=1)
    histogram = np.concatenate([sample.histogram for sample in leaves], axis=1)
    own = np.flatnonzero(is_leaf[0])
    same = (is_leaf == is_leaf[0]).all(axis=1) & (histogram[:, own] == histogram[0, own]).all(axis=(1, 2))
    node = [people for sample in leaves for people in sample.node]
    group = np.empty(case.people, dtype=np.int64)
    for number, at in enumerate(own):
        group[node[at]] = number
    return Shown(group, histogram[0, own], worlds[1:][same[1:]])


# -- several releases ----------------------------------------------------------------------------------------------


class Linked(NamedTuple):
    """What two releases of one table tell together."""

    is_broken: bool  # whether somebody's belief breaks the promise
    published: Fraction  # the largest share of any group
    belief: Fraction  # the largest belief


def linked(case: Case, rng: np.random.Generator) -> Linked:
    """Two releases of the same table by halves, with independent bits, both known to the attacker."""
    shown = [released(case, rng) for _ in range(2)]
    everything = arrangements(case.histogram)
    possible = np.ones(len(everything), dtype=bool)
    for one in shown:
        possible &= _among(everything, one.worlds)
    worlds = everything[possible]
    belief, total = believed(np.zeros(len(worlds), dtype=np.int64), worlds, case.values.joint)
    kept = case.hold(belief[0] * 1000, case.promises).all()
    shares = [Fraction(int(h.max()), int(h.sum())) for one in shown for h in one.histogram]
    return Linked(not kept, max(shares), Fraction(int(belief.max()), int(total[0])))


def _among(worlds: World, some: World) -> Bools:
    """Which of the worlds are among some."""
    number, _ = numbered([*np.concatenate([worlds, some]).T.astype(np.int64)])
    return np.isin(number[: len(worlds)], number[len(worlds) :])


# -- a classifier --------------------------------------------------------------------------------------------------

Learner = Callable[[Ints, Ints, Floats], Ints]
"""The guess for each person, from places (columns, people), groups, and the shares of groups, (groups, values)."""


def naive_bayes(place: Ints, group: Ints, share: Floats) -> Ints:
    """Trained on the release, in which everybody has the values of the group, each with its share."""
    soft = share[group]  # (people, values)
    score = np.log(soft.sum(axis=0) + 1)
    for column in place:
        likely = np.stack([soft[column == x].sum(axis=0) + 0.1 for x in range(int(column.max()) + 1)])
        score = score + np.log(likely / likely.sum(axis=0))[column]
    return np.asarray(score.argmax(axis=-1).reshape(-1))


def logistic(place: Ints, group: Ints, share: Floats, *, rounds: int = 60) -> Ints:
    """Softmax regression on indicators of the quasi-identifiers, by gradient descent."""
    columns = [column[:, None] == np.arange(int(column.max()) + 1) for column in place]
    x = np.concatenate([*columns, np.ones((len(group), 1), dtype=bool)], axis=1).astype(np.float64)
    weight = np.zeros((x.shape[1], share.shape[1]))
    for _ in range(rounds):
        likely = np.exp(x @ weight)
        likely /= likely.sum(axis=1, keepdims=True)
        weight += x.T @ (share[group] - likely) / len(group)
    return np.asarray((x @ weight).argmax(axis=1))


def learnt(case: Case, shown: Shown, learner: Learner) -> tuple[Fraction, Fraction]:
    """How many people a classifier gets right on average over the worlds that lead to the release, and the most that
    the groups allow: the people with the most frequent value of their group."""
    share = shown.histogram / shown.histogram.sum(axis=1, keepdims=True)
    guess = learner(case.columns.place.astype(np.int64), shown.group, share)
    right = Fraction(int((shown.worlds == guess).sum()), len(shown.worlds))
    return right, Fraction(int(shown.histogram.max(axis=1).sum()))


# -- facts ---------------------------------------------------------------------------------------------------------


def worst_of_facts(histogram: tuple[int, ...], l: int, k: int) -> tuple[Fraction, Ints]:
    """The largest belief given any k simple implications, from the worlds that lead to one release of dealt buckets.

    A simple implication says: if this person has this value, then that person has that one. Also returns what the
    buckets hold, (buckets, values).
    """
    worlds, buckets, contents = dealt(histogram, l)
    worlds = worlds[(buckets == buckets[0]).all(axis=1)]  # each as often as it can have led to this release
    people, values = worlds.shape[1], len(histogram)
    atoms = np.stack([worlds[:, p] == v for p in range(people) for v in range(values)])  # (atoms, worlds)
    worst = Fraction(0)
    for known in _implied(atoms, k):
        true = (atoms & known).sum(axis=1)
        if known.any():
            worst = max(worst, Fraction(int(true.max()), int(known.sum())))
    return worst, contents


def _implied(atoms: Bools, k: int) -> Iterator[Bools]:
    """The worlds in which k implications hold, for all choices of them."""
    single = [~given | then for given in atoms for then in atoms]
    distinct = list({one.tobytes(): one for one in single}.values())
    for chosen in combinations_with_replacement(distinct, k):
        yield np.logical_and.reduce([np.ones(atoms.shape[1], dtype=bool), *chosen])
