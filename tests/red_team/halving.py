"""An attacker who replays equal halves over all worlds.

*Bits known*: the members of the samples and the order of ties are given to the attacker, which is more than anybody
has. Then the tree of all possible cuts is fixed, and worlds differ in verdicts only. Everybody's belief must be the
share of the group. *Bits unknown*: all draws and all orders of ties are weighed, and the attacker sees the published
groups only. Everybody's belief must keep the promise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from jali.core.arrays import Bools, Ints
from jali.principles.base import Principle
from jali.search.halves import People, Sample, _draw, _plain_cut, halve, samples_of
from red_team.cases import Case, Values
from red_team.worlds import Outcome, World, arrangements, believed, divisions, excess, numbered, orders


class Level(NamedTuple):
    """The nodes of one depth, if all above them are cut."""

    nodes: Ints  # (nodes, people of a node)
    alike: Bools  # (nodes,) whether all of its people are alike, so that it is never cut


class Leaves(NamedTuple):
    """Who is together in each world: for each possible node, whether it is a group, and its values."""

    node: list[Ints]  # members of each
    is_leaf: Bools  # (worlds, nodes)
    histogram: Ints  # (worlds, nodes, values)


def samples(case: Case) -> list[Sample]:
    """How the people are drawn: as the publisher does."""
    return _samples(case.values, case.histogram, case.principles)


@cache
def _samples(values: Values, histogram: tuple[int, ...], principles: tuple[Principle, ...]) -> list[Sample]:
    people = np.array(histogram)
    least = max(1, *(p.least_size() for p in principles))
    return samples_of(people, least, principles, values.counts(people[None, :]))


def bits_known(case: Case, rng: np.random.Generator) -> Outcome:
    """Belief against share in every release that these random bits can lead to."""
    n, values = case.people, case.values.joint
    plan = samples(case)
    members = _draw(case.value, plan, rng.permutation(n))
    ties = rng.permutation(n)
    in_turn = [ties[np.isin(ties, people)] for people in members]
    worlds = fitting(plan, in_turn)
    leaves = [leaves_of(case, tree(case, turn, s.depth), worlds) for turn, s in zip(in_turn, plan, strict=True)]
    node = [people for sample in leaves for people in sample.node]
    is_leaf = np.concatenate([sample.is_leaf for sample in leaves], axis=1)
    histogram = np.concatenate([sample.histogram for sample in leaves], axis=1)
    code = (histogram @ ((n + 1) ** np.arange(values)) + 1) * is_leaf  # (worlds, nodes)
    key, first = numbered([*code.T])
    belief, total = believed(key, worlds, values)
    share = np.zeros((len(first), n, values), dtype=np.int64)
    size = np.zeros((len(first), n), dtype=np.int64)
    for at, people in enumerate(node):
        here = is_leaf[first, at]
        share[np.ix_(here, people)] = histogram[first[here], at][:, None, :]
        size[np.ix_(here, people)] = len(people)
    kept = case.verdicts(histogram[first][is_leaf[first]])
    worst = excess(belief, total[:, None, None], share, size[:, :, None])
    return Outcome(len(worlds), len(first), worst, int((~kept).sum()))


def tree(case: Case, in_turn: Ints, depth: int) -> list[Level]:
    """All cuts that can happen, whatever the values are."""
    cut = _plain_cut(case.columns, np.arange(case.people), case.by, case.sorting)
    nodes, levels = in_turn[None, :].astype(np.int32), []
    for _ in range(depth):
        halves, alike = cut(nodes)
        levels.append(Level(nodes, alike))
        nodes = halves
    return [*levels, Level(nodes, np.ones(len(nodes), dtype=bool))]


def leaves_of(case: Case, levels: Sequence[Level], worlds: World) -> Leaves:
    """The groups in each world."""
    values = np.arange(case.values.joint)
    active = np.ones((len(worlds), 1), dtype=bool)
    counted = [(worlds[:, level.nodes][..., None] == values).sum(axis=2) for level in levels]  # (worlds, nodes, values)
    is_leaf = []
    for depth, level in enumerate(levels):
        cut = np.zeros_like(active)
        if depth + 1 < len(levels):
            held = case.verdicts(counted[depth + 1]).reshape(len(worlds), -1, 2).all(axis=2)
            cut = active & held & ~level.alike
        is_leaf.append(active & ~cut)
        active = np.repeat(cut, 2, axis=1)
    node = [people for level in levels for people in level.nodes]
    return Leaves(node, np.concatenate(is_leaf, axis=1), np.concatenate(counted, axis=1))


def fitting(plan: Sequence[Sample], members: Sequence[Ints]) -> World:
    """All worlds in which each sample has its histogram: (worlds, people)."""
    arranged = [arrangements(tuple(sample.histogram.tolist())) for sample in plan]
    index = np.indices([len(a) for a in arranged]).reshape(len(plan), -1)
    worlds = np.empty((index.shape[1], sum(len(m) for m in members)), dtype=np.int8)
    for at, people, own in zip(index, members, arranged, strict=True):
        worlds[:, people] = own[at]
    return worlds


# -- bits that nobody knows ----------------------------------------------------------------------------------------


class Rows(NamedTuple):
    """What one sample shows, for every world of its people and every order of ties."""

    shown: Ints  # (rows, leaves) the code of each published group, 0 for none; sorted
    world: World  # (rows, people of the sample)
    weight: Ints  # (rows,) orders of ties that lead to it


def bits_unknown(case: Case, alike: Ints) -> Outcome:
    """Everybody's belief from the published groups, each shown by its members' number in `alike` and its values.

    `alike` says what a group tells of a person's quasi-identifiers: the combination, or a bucket of ANGEL.
    """
    plan = samples(case)
    codes: dict[object, int] = {}
    rows = {(at, people): rows_of(case, sample, np.array(people), alike, codes)
            for at, sample in enumerate(plan)
            for people in {d[at] for d in divisions(case.people, sizes_of(plan))}}  # fmt: skip
    joined = [_joined([(people, rows[at, people]) for at, people in enumerate(division)], case.people)
              for division in divisions(case.people, sizes_of(plan))]  # fmt: skip
    widest = max(row.shown.shape[1] for row in joined)
    shown = np.concatenate([np.pad(row.shown, ((0, 0), (widest - row.shown.shape[1], 0))) for row in joined])
    worlds, weight = (np.concatenate([row[at] for row in joined]) for at in (1, 2))
    key, first = numbered([*shown.T])
    belief, total = believed(key, worlds, case.values.joint, weight)
    kept = case.hold(belief.reshape(-1, belief.shape[2]) * 1000, case.promises).reshape(belief.shape[:2]).all(axis=1)
    largest = _largest_shares(shown[first], codes, case.values.joint)
    worst = excess(belief, total[:, None, None], largest[:, None, :, 0], largest[:, None, :, 1])
    return Outcome(len(arrangements(case.histogram)), len(first), worst, int((~kept).sum()))


def sizes_of(plan: Sequence[Sample]) -> tuple[int, ...]:
    return tuple(int(sample.histogram.sum()) for sample in plan)


def rows_of(case: Case, sample: Sample, members: Ints, alike: Ints, codes: dict[object, int]) -> Rows:
    """Everything that a sample of these members can show; `codes` numbers what groups show."""
    worlds = arrangements(tuple(sample.histogram.tolist()))
    wide = np.zeros((len(worlds), case.people), dtype=np.int8)
    wide[:, members] = worlds
    shown, weights = [], []
    for levels, weight in trees(case, members, sample.depth):
        leaves = leaves_of(case, levels, wide)
        code = np.zeros(leaves.is_leaf.shape, dtype=np.int64)
        for at, people in enumerate(leaves.node):
            who = tuple(sorted(alike[people].tolist()))
            for w in np.flatnonzero(leaves.is_leaf[:, at]):
                group = (who, tuple(leaves.histogram[w, at].tolist()))
                code[w, at] = codes.setdefault(group, len(codes) + 1)
        code.sort(axis=1)
        shown.append(code[:, -(1 << sample.depth) :])
        weights.append(np.full(len(worlds), weight))
    many = len(shown)
    return Rows(np.concatenate(shown), np.tile(worlds, (many, 1)), np.concatenate(weights))


def trees(case: Case, members: Ints, depth: int) -> list[tuple[list[Level], int]]:
    """The different trees of cuts over all orders of ties, and how many orders lead to each."""
    turns = members[orders(len(members))] if depth else members[None, :]
    cut = _plain_cut(case.columns, np.arange(case.people), case.by, case.sorting)
    nodes, levels = turns.astype(np.int32), []
    for _ in range(depth):
        halves, alike = cut(nodes)
        levels.append((nodes, alike))
        nodes = halves
    levels.append((nodes, np.ones(len(nodes), dtype=bool)))
    sorted_nodes = [np.sort(n, axis=1).reshape(len(turns), -1) for n, _ in levels]
    number, first = numbered([*np.concatenate(sorted_nodes, axis=1).T.astype(np.int64)])
    often = np.bincount(number)
    return [
        ([Level(n.reshape(len(turns), -1, n.shape[1])[at], a.reshape(len(turns), -1)[at]) for n, a in levels], int(w))
        for at, w in zip(first, often, strict=True)
    ]


def _joined(parts: Sequence[tuple[tuple[int, ...], Rows]], people: int) -> Rows:
    """All samples together: every row of each with every row of the others."""
    index = np.indices([len(rows.weight) for _, rows in parts]).reshape(len(parts), -1)
    world = np.empty((index.shape[1], people), dtype=np.int8)
    weight = np.ones(index.shape[1], dtype=np.int64)
    for at, (members, rows) in zip(index, parts, strict=True):
        world[:, list(members)] = rows.world[at]
        weight *= rows.weight[at]
    shown = np.concatenate([rows.shown[at] for at, (_, rows) in zip(index, parts, strict=True)], axis=1)
    return Rows(np.sort(shown, axis=1), world, weight)


def _largest_shares(shown: Ints, codes: dict[object, int], values: int) -> Ints:
    """For each release and value, the largest share of any of its groups: (releases, values, 2), count and size."""
    count = np.zeros((len(codes) + 1, values), dtype=np.int64)
    size = np.ones(len(codes) + 1, dtype=np.int64)
    for (_, histogram), at in codes.items():  # type: ignore[misc]
        count[at], size[at] = histogram, sum(histogram)
    share = count[shown] / size[shown][..., None]  # (releases, leaves, values)
    best = share.argmax(axis=1)
    there = np.take_along_axis(shown, best, axis=1)
    return np.stack([count[there, np.arange(values)], size[there]], axis=2)


# -- the publisher itself ------------------------------------------------------------------------------------------

Publisher = Callable[[Case, World], Ints]
"""The group of each person that the publisher makes of a world."""


def replayed(case: Case, rng: np.random.Generator, *, compiled: bool = False) -> Outcome:
    """The same as `bits_known`, with the search itself run in every world."""
    plan = samples(case)
    members = _draw(case.value, plan, rng.permutation(case.people))
    ties, drawn = rng.permutation(case.people), np.concatenate(members)

    whole = case.whole

    def publish(case: Case, world: World) -> Ints:
        people = People(np.arange(case.people), world.astype(np.int64), whole)
        how: Any = {"drawn": drawn, "ties": ties, "by": case.by, "sorting": case.sorting}
        return halve(case.columns, people, case.principles, **how, compiled=compiled).group

    return run_in_all(case, publish, fitting(plan, members))


def run_in_all(case: Case, publisher: Publisher, worlds: World) -> Outcome:
    """Belief against share when the publisher is run in each of these worlds, which are equally likely."""
    seen: dict[object, list[World]] = {}
    for world in worlds:
        group = publisher(case, world)
        people = [np.flatnonzero(group == g).tolist() for g in np.unique(group)]
        seen.setdefault(frozenset((*p, -1, *sorted(world[p].tolist())) for p in people), []).append(world)
    worst = [_worst(release, np.array(fit), case.values.joint) for release, fit in seen.items()]
    return Outcome(len(worlds), len(seen), max(worst))


def _worst(release: Any, fit: World, values: int) -> Fraction:
    belief, total = believed(np.zeros(len(fit), dtype=np.int64), fit, values)
    share, size = np.zeros_like(belief), np.ones((1, belief.shape[1], 1), dtype=np.int64)
    for group in release:
        half = len(group) // 2
        people, own = list(group[:half]), list(group[half + 1 :])
        share[0, people], size[0, people] = np.bincount(own, minlength=values), half
    return excess(belief, total[:, None, None], share, size)
