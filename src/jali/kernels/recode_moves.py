"""Compiled moves: combinations go to the group where they cost less, while the principles hold."""
# mypy: disable-error-code="untyped-decorator,no-any-return"
# numba's decorator has no types, and so what a kernel calls returns Any.
# ruff: noqa: PLR0917
# Kernels are called by position.

from __future__ import annotations

from math import log
from typing import NamedTuple

import numpy as np

from jali.core.arrays import Floats, Ints
from jali.kernels import Layout
from jali.kernels.jit import inner, outer
from jali.kernels.recode import (  # fmt: skip
    LESS,
    Boxes,
    Entries,
    fill,
    join,
    joint_costs,
    new_boxes,
    place,
    tally,
    verdict,
)
from jali.principles.rules import Rules

NEAREST = 6
"""How many of the cheapest groups a combination tries to join."""


class Near(NamedTuple):
    """The groups that a combination may join: all of them with what joining costs a row, and the cheapest few."""

    everyone: Ints  # (groups,)
    joint: Floats  # (groups,)
    logs: Floats  # (groups,) of their rows
    near: Ints  # (NEAREST,)
    cost: Floats  # (NEAREST,)


class Members(NamedTuple):
    """Who is in each group, as chains of combinations."""

    group: Ints  # (combinations,) -1 for none
    head: Ints  # (groups,) the first of its combinations
    after: Ints  # (combinations,) the next one of the same group, -1 for the last
    people: Ints  # (groups,)


@outer
def improve(layout: Layout, entries: Entries, rules: Rules, group: Ints, groups: int, order: Ints) -> tuple[int, int]:
    """Move combinations to where they cost less while both groups hold; those without a group join one that holds then.

    Combinations are taken in the order given. Returns how many moved, and how many groups were judged.
    """
    boxes = new_boxes(layout, groups + 2)
    own, rest = groups, groups + 1  # spare slots: the combination, its group without it
    fill(layout, boxes, group, own)
    members = Members(
        group, np.full(groups, -1, np.int64), np.full(len(group), -1, np.int64), np.zeros(groups, np.int64)
    )
    for c in range(len(group)):
        if group[c] >= 0:
            _link(layout, members, group[c], c)
    desk = Near(
        np.arange(groups), np.empty(groups), np.log(boxes.rows[:groups]), np.empty(NEAREST, np.int64), np.empty(NEAREST)
    )
    moved = checked = 0
    for c in order:
        g, gain = group[c], np.inf
        if g >= 0:
            if members.people[g] - layout.people[c] < rules.least:
                continue
            if not _without(layout, boxes, members.head[g], members.after, c, own, rest):
                continue
            gain = boxes.price[g] - boxes.price[rest]
        place(layout, boxes, own, c)
        found = _cheapest(layout, boxes, own, g, gain, desk)
        if found and g >= 0:
            checked += 1
            if not _members_hold(entries, rules, members, g, c, members.people[g] - layout.people[c]):
                continue
        for x in range(found):
            h = desk.near[x]
            checked += 1
            tally(entries, c)
            if _members_hold(entries, rules, members, h, -1, members.people[h] + layout.people[c]):
                if g >= 0:
                    _unlink(layout, members, g, c)
                    _copy(layout, boxes, rest, g)
                    desk.logs[g] = log(boxes.rows[g])
                _link(layout, members, h, c)
                join(layout, boxes, h, own, h)
                desk.logs[h] = log(boxes.rows[h])
                moved += 1
                break
    return moved, checked


@inner
def _without(layout: Layout, boxes: Boxes, member: int, after: Ints, c: int, spare: int, slot: int) -> bool:
    """Make a slot the box of a group without one of its combinations; False where nothing is left."""
    boxes.rows[slot] = 0
    while member >= 0:
        if member != c and boxes.rows[slot] == 0:
            place(layout, boxes, slot, member)
        elif member != c:
            place(layout, boxes, spare, member)
            join(layout, boxes, slot, spare, slot)
        member = after[member]
    return boxes.rows[slot] > 0


@inner
def _copy(layout: Layout, boxes: Boxes, source: int, target: int) -> None:
    boxes.rows[target] = 0
    for a in range(layout.column.shape[1]):
        for part in range(len(boxes.box)):
            boxes.box[part, a, target] = boxes.box[part, a, source]
    for w in range(layout.words):
        boxes.bits[target, w] = boxes.bits[source, w]
    boxes.rows[target], boxes.price[target] = boxes.rows[source], boxes.price[source]


@inner
def _cheapest(layout: Layout, boxes: Boxes, own: int, g: int, gain: float, desk: Near) -> int:
    """The groups that become dearer by less than the gain when the combination joins them, the cheapest first."""
    joint_costs(layout, boxes, own, desk.everyone, desk.joint)
    rows, priced, joint, logs, found = boxes.rows, boxes.price, desk.joint, layout.logs, 0
    near, cost, log_rows = desk.near, desk.cost, desk.logs
    for h in range(len(desk.everyone)):
        limit = gain if found < NEAREST else min(gain, cost[found - 1])
        n = rows[h] + rows[own]
        if h == g or (logs and n * (joint[h] - log_rows[h] - rows[own] / rows[h]) - priced[h] >= limit):
            continue  # log(n + m) ≤ log n + m / n: most are too dear whatever the logarithm
        more = (n * (joint[h] - log(n)) if logs else n * joint[h]) - priced[h]
        if more >= limit - LESS:
            continue
        at = min(found, NEAREST - 1)
        while at > 0 and cost[at - 1] > more:
            near[at], cost[at] = near[at - 1], cost[at - 1]
            at -= 1
        near[at], cost[at] = h, more
        found = min(found + 1, NEAREST)
    return found


@inner
def _members_hold(entries: Entries, rules: Rules, members: Members, g: int, c: int, people: int) -> bool:
    """Whether a group without one of its combinations, and with what is tallied already, keeps every rule."""
    member = members.head[g]
    while member >= 0:
        if member != c:
            tally(entries, member)
        member = members.after[member]
    return verdict(entries, rules, people)


@inner
def _link(layout: Layout, members: Members, g: int, c: int) -> None:
    members.after[c], members.head[g], members.group[c] = members.head[g], c, g
    members.people[g] += layout.people[c]


@inner
def _unlink(layout: Layout, members: Members, g: int, c: int) -> None:
    members.people[g] -= layout.people[c]
    if members.head[g] == c:
        members.head[g] = members.after[c]
        return
    member = members.head[g]
    while members.after[member] != c:
        member = members.after[member]
    members.after[member] = members.after[c]
