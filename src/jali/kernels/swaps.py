"""Compiled random walk over the worlds that fulfil clauses: people of one group exchange their values.

A clause names parts of which at least one breaks a promise. A world is a state of the walk if every clause is
fulfilled. Two people of a group exchange their values, or all people of a part that have one value exchange it with as
many others who have another one; an exchange that leaves a clause unfulfilled is undone. All worlds that are reached
are equally likely in the long run.
"""
# mypy: disable-error-code="untyped-decorator,no-any-return"
# numba's decorator has no types, and so what a kernel calls returns Any.
# ruff: noqa: PLR0917, NPY002
# Kernels call each other by position; numba seeds only numpy's own generator inside a kernel.

from __future__ import annotations

from math import exp, lgamma
from typing import NamedTuple

import numpy as np

from jali.core.arrays import Bools, Ints
from jali.kernels.jit import inner, outer
from jali.kernels.judge import Desk, Work, holds


class Ground(NamedTuple):
    """Who is where; people are sorted by group, then slot."""

    slot: Ints  # (people,)
    begin: Ints  # (people,) where the group of each begins
    end: Ints  # (people,)
    first: Ints  # (slots + 1,) the people of each slot
    start: Ints  # (slots + 1,) where the parts of each slot begin
    part: Ints  # parts by slot, sorted within each
    clause: Ints  # (parts,)
    size: Ints  # (parts,)
    judged: Ints  # (columns, values) the judged value of each value
    members: Ints  # slots by part
    where: Ints  # (parts + 1,) where the slots of each part begin
    blocks: Ints  # parts within one group


class State(NamedTuple):
    """A world, and what follows from it."""

    value: Ints  # (people,)
    n: Ints  # (parts, columns, values)
    fails: Bools  # (parts,)
    failing: Ints  # (clauses,) parts that fail
    open: Ints  # (1,) clauses that are not fulfilled


@inner
def _put(ground: Ground, work: Work, desk: Desk, state: State, part: int, old: int, new: int) -> None:
    """Somebody of a part has another value; judge the part again."""
    for c in range(ground.judged.shape[0]):
        state.n[part, c, ground.judged[c, old]] -= 1
        state.n[part, c, ground.judged[c, new]] += 1
    fails = not holds(work, desk, state.n[part], ground.size[part])
    if fails == state.fails[part]:
        return
    clause = ground.clause[part]
    before = state.failing[clause]
    state.fails[part] = fails
    state.failing[clause] += 1 if fails else -1
    if before == 0:
        state.open[0] -= 1
    elif state.failing[clause] == 0:
        state.open[0] += 1


@inner
def _swap(ground: Ground, work: Work, desk: Desk, state: State, one: int, other: int) -> None:
    """Two people exchange their values; a part with both of them stays as it is."""
    x, y = state.value[one], state.value[other]
    state.value[one], state.value[other] = y, x
    i, end = ground.start[ground.slot[one]], ground.start[ground.slot[one] + 1]
    j, last = ground.start[ground.slot[other]], ground.start[ground.slot[other] + 1]
    while i < end or j < last:
        if j >= last or (i < end and ground.part[i] < ground.part[j]):
            _put(ground, work, desk, state, ground.part[i], x, y)
            i += 1
        elif i >= end or ground.part[j] < ground.part[i]:
            _put(ground, work, desk, state, ground.part[j], y, x)
            j += 1
        else:
            i, j = i + 1, j + 1


@inner
def _choose(n: int, k: int) -> float:
    return lgamma(n + 1.0) - lgamma(k + 1.0) - lgamma(n - k + 1.0)


@inner
def _block(ground: Ground, state: State, part: int, inside: Bools) -> int:
    """Mark the people of a part in their group, and count them; 0 where they do not all have one value."""
    at, size = ground.where[part], 0
    head = ground.first[ground.members[at]]
    for m in range(at, ground.where[part + 1]):
        for person in range(ground.first[ground.members[m]], ground.first[ground.members[m] + 1]):
            if state.value[person] != state.value[head]:
                return 0
            inside[person - ground.begin[head]] = True
            size += 1
    return size


@inner
def _exchange(ground: Ground, work: Work, desk: Desk, state: State, part: int, room: Ints, values: int) -> bool:
    """All people of a part that have one value exchange it for another, by the rule of Metropolis and Hastings."""
    head = ground.first[ground.members[ground.where[part]]]
    old, begin, end = state.value[head], ground.begin[head], ground.end[head]
    inside = np.zeros(end - begin, dtype=np.bool_)
    size = _block(ground, state, part, inside)
    new = np.random.randint(values)
    have = same = 0
    for person in range(begin, end):
        if not inside[person - begin]:
            same += state.value[person] == old
            if state.value[person] == new:
                room[have] = person
                have += 1
    if size == 0 or new == old or have < size:
        return False
    if np.random.random() >= exp(min(_choose(have, size) - _choose(same + size, size), 0.0)):
        return False
    done = 0
    for person in range(begin, end):
        if inside[person - begin]:
            j = done + np.random.randint(have - done)  # draw one of them
            room[done], room[j] = room[j], room[done]
            _swap(ground, work, desk, state, person, room[done])
            room[have + done] = person
            done += 1
    if state.open[0] == 0:
        return True
    for i in range(size):
        _swap(ground, work, desk, state, room[have + i], room[i])
    return False


@outer
def walk(
    ground: Ground, work: Work, desk: Desk, state: State, seed: int, rounds: int, sums: Ints, squares: Ints
) -> tuple[int, int]:
    """So many rounds, in each of which everybody is asked once; how often values were exchanged, also by whole parts.

    After each round the people of each slot who have each value, and their squares, are added: (slots, values).
    """
    np.random.seed(seed)
    people, (slots, values) = len(ground.slot), sums.shape
    room = np.empty(2 * people + 1, dtype=np.int64)
    n = np.zeros(values, dtype=np.int64)
    moved = blocks = 0
    for _ in range(rounds):
        for _ in range(people):
            one = np.random.randint(people)
            other = ground.begin[one] + np.random.randint(ground.end[one] - ground.begin[one])
            if ground.slot[one] == ground.slot[other] or state.value[one] == state.value[other]:
                continue
            _swap(ground, work, desk, state, one, other)
            if state.open[0] == 0:
                moved += 1
            else:
                _swap(ground, work, desk, state, one, other)
        for _ in range(len(ground.blocks)):
            part = ground.blocks[np.random.randint(len(ground.blocks))]
            blocks += _exchange(ground, work, desk, state, part, room, values)
        for slot in range(slots):
            n[:] = 0
            for person in range(ground.first[slot], ground.first[slot + 1]):
                n[state.value[person]] += 1
            for v in range(values):
                sums[slot, v] += n[v]
                squares[slot, v] += n[v] * n[v]
    return moved, blocks


@outer
def judge_all(ground: Ground, work: Work, desk: Desk, state: State) -> None:
    """Judge every part of the world as it is, and count the clauses that are not fulfilled."""
    state.failing[:] = 0
    for part in range(len(state.fails)):
        state.fails[part] = not holds(work, desk, state.n[part], ground.size[part])
        state.failing[ground.clause[part]] += state.fails[part]
    state.open[0] = np.sum(state.failing == 0)
