"""Compiled parts of local recoding: peeling classes node by node, a tree of neighbours, and moving combinations."""
# mypy: disable-error-code="untyped-decorator,no-any-return"
# numba's decorator has no types, and so what a kernel calls returns Any.
# ruff: noqa: PLR0917
# Kernels are called by position.

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jali.principles.counts import Bools, Floats, Ints
from jali.search.kernels import inner, njit
from jali.search.mondrian_rules import Rules
from jali.search.recode_boxes import (
    Boxes, Entries, fill, join, joint_cost, most_cost, new_boxes, place, price, tally, verdict,
)  # fmt: skip
from jali.search.recode_plan import OFFSET, SIZE, Layout

outer = njit(cache=True, nogil=True, error_model="numpy", no_cfunc_wrapper=True)

NEAREST = 6
"""How many of the cheapest groups a combination tries to join."""
LESS = 1e-9
"""A cost is lower only if it is lower by this much, so that rounding decides nothing."""

KEY, TURN, PEOPLE, NUMBER, HEAD = range(5)


@outer
def peel(
    layout: Layout, entries: Entries, rules: Rules, levels: Ints, begin: int, end: int, group: Ints, groups: int
) -> tuple[int, int, int]:
    """Walk the nodes from begin to end; at each, the classes of what is left that hold become groups.

    `group` is -1 for what is left. Returns how many groups there are, how many combinations are left, and how many
    classes were judged.
    """
    left = np.flatnonzero(group < 0)
    remaining, checked = len(left), 0
    bits = 4
    while 1 << bits < 2 * remaining:
        bits += 1
    slot = np.full((5, 1 << bits), -1, np.int64)
    where, following = np.empty(remaining, np.int64), np.empty(remaining, np.int64)
    mark, column, codes, people, least = layout.mark, layout.column, layout.codes, layout.people, rules.least
    for turn in range(begin, end):
        large, here = False, levels[turn]
        for i in range(remaining):
            c = left[i]
            h = _slot(mark, column, codes, slot, here, c, turn)
            slot[PEOPLE, h] += people[c]
            following[i], slot[HEAD, h], where[i] = slot[HEAD, h], i, h
            large = large or slot[PEOPLE, h] >= least
        if not large:
            continue
        kept = 0
        for i in range(remaining):
            h = where[i]
            if slot[NUMBER, h] == -1:
                slot[NUMBER, h] = -2
                if slot[PEOPLE, h] >= least:
                    checked += 1
                    if _class_holds(entries, rules, left, following, slot[HEAD, h], slot[PEOPLE, h]):
                        slot[NUMBER, h] = groups
                        groups += 1
            if slot[NUMBER, h] >= 0:
                group[left[i]] = slot[NUMBER, h]
            where[kept] = left[i]  # read before it is written: kept never passes i
            kept += slot[NUMBER, h] < 0
        for i in range(kept):
            left[i] = where[i]
        remaining = kept
        if remaining == 0:
            break
    return groups, remaining, checked


@inner
def _slot(mark: Ints, column: Ints, codes: NDArray[np.int32], slot: Ints, levels: Ints, c: int, turn: int) -> int:
    """Where the class of a combination at these levels is counted."""
    key = np.int64(0)
    for a in range(len(levels)):
        key += mark[column[OFFSET, a] + levels[a] * column[SIZE, a] + codes[c, a]]
    h = (key ^ (key >> 29)) & (slot.shape[1] - 1)
    while slot[TURN, h] == turn and slot[KEY, h] != key:
        h = (h + 1) & (slot.shape[1] - 1)
    if slot[TURN, h] != turn:
        slot[TURN, h], slot[KEY, h], slot[PEOPLE, h], slot[NUMBER, h], slot[HEAD, h] = turn, key, 0, -1, -1
    return h


@inner
def _class_holds(entries: Entries, rules: Rules, left: Ints, following: Ints, head: int, people: int) -> bool:
    if rules.rule.shape[1] == 0:
        return True
    while head >= 0:
        tally(entries, left[head])
        head = following[head]
    return verdict(entries, rules, people)


# -- the tree of neighbours -----------------------------------------------------------------------------------------


@outer
def prices(layout: Layout, group: Ints, groups: int) -> Floats:
    """What each group costs: (groups,)."""
    boxes = new_boxes(layout, groups + 1)
    fill(layout, boxes, group, groups)
    return boxes.price[:groups].copy()


@outer
def nearest(layout: Layout, group: Ints, groups: int, failing: Bools) -> Ints:
    """For each failing group the other group with which it is cheapest to merge, of equal ones the first; else -1."""
    boxes = new_boxes(layout, groups + 1)
    fill(layout, boxes, group, groups)
    found = np.full(groups, -1, np.int64)
    joint, cost, node, column, logs = layout.joint, layout.cost, layout.node, layout.column, layout.logs
    box, bits, rows, priced = boxes.box, boxes.bits, boxes.rows, boxes.price
    for i in range(groups):
        least = np.inf
        for j in range(groups if failing[i] else 0):
            if j != i:
                both, n = priced[i] + priced[j], rows[i] + rows[j]
                most = most_cost(logs, least + both, n)
                more = price(logs, joint_cost(joint, cost, node, column, box, bits, i, j, most), n) - both
                if more < least - LESS or found[i] < 0:
                    least, found[i] = more, j
    return found


@outer
def pair_up(layout: Layout, group: Ints, groups: int) -> tuple[Ints, Ints]:
    """A binary tree over the groups: those that are each other's cheapest partner are paired, round after round.

    Nodes from `groups` on are pairs, the last one is the root: left and right child of each node, -1 for a group.
    """
    nodes = 2 * groups - 1
    boxes = new_boxes(layout, nodes + 1)
    fill(layout, boxes, group, nodes)
    child = np.full((2, nodes), -1, np.int64)
    least, partner = np.full(nodes, np.inf), np.full(nodes, -1, np.int64)
    active, count, node = np.arange(nodes), groups, groups
    stale = np.ones(nodes, np.bool_)
    while count > 1:
        _partners(layout, boxes, active[:count], stale, least, partner)
        first = node
        for x in range(count):
            i = active[x]
            j = partner[i]
            if i < j and partner[j] == i:
                child[0, node], child[1, node] = i, j
                join(layout, boxes, i, j, node)
                node += 1
        if node == first:  # partners in a circle of equal costs: the first pair of least cost
            i = active[np.argmin(least[active[:count]])]
            child[0, node], child[1, node] = min(i, partner[i]), max(i, partner[i])
            join(layout, boxes, child[0, node], child[1, node], node)
            node += 1
        for pair in range(first, node):
            partner[child[0, pair]] = partner[child[1, pair]] = -2  # gone
        kept = 0
        for x in range(count):
            i = active[x]
            if partner[i] != -2:
                stale[i] = partner[partner[i]] == -2
                active[kept] = i
                kept += 1
        for pair in range(first, node):
            active[kept] = pair
            kept += 1
        count = kept
    return child[0], child[1]


@inner
def _partners(layout: Layout, boxes: Boxes, active: Ints, stale: Bools, least: Floats, partner: Ints) -> None:
    """The cheapest partner of every box that is stale, and of every other one for which such a box is cheaper."""
    joint, cost, node, column, logs = layout.joint, layout.cost, layout.node, layout.column, layout.logs
    box, bits, rows, priced = boxes.box, boxes.bits, boxes.rows, boxes.price
    for i in active:
        if stale[i]:
            least[i] = np.inf
    for x in range(len(active)):
        i = active[x]
        if not stale[i]:
            continue
        for y in range(len(active)):
            j = active[y]
            if j == i or (stale[j] and y < x):
                continue
            both, n = priced[i] + priced[j], rows[i] + rows[j]
            most = most_cost(logs, max(least[i], least[j]) + both, n)
            more = price(logs, joint_cost(joint, cost, node, column, box, bits, i, j, most), n) - both
            if more < least[i] - LESS:
                least[i], partner[i] = more, j
            if more < least[j] - LESS:
                least[j], partner[j] = more, i
    for i in active:
        stale[i] = False


# -- moving combinations --------------------------------------------------------------------------------------------


@outer
def improve(
    layout: Layout, entries: Entries, rules: Rules, group: Ints, groups: int, order: Ints, passes: int
) -> tuple[int, int]:
    """Move combinations to where they cost less while both groups hold; those without a group join one that holds then.

    Combinations are taken in the order given, pass after pass until nothing moves. Returns how many moved, and how
    many groups were judged.
    """
    boxes = new_boxes(layout, groups + 3)
    own, rest = groups, groups + 1  # spare slots: the combination, its group without it
    fill(layout, boxes, group, own)
    head, after, people = np.full(groups, -1, np.int64), np.full(len(group), -1, np.int64), np.zeros(groups, np.int64)
    for c in range(len(group)):
        if group[c] >= 0:
            after[c], head[group[c]] = head[group[c]], c
            people[group[c]] += layout.people[c]
    near, cost = np.empty(NEAREST, np.int64), np.empty(NEAREST)
    moved = checked = 0
    for _ in range(passes):
        before = moved
        for c in order:
            g = group[c]
            gain = np.inf
            place(layout, boxes, own, c)
            if g >= 0:
                if people[g] - layout.people[c] < rules.least:
                    continue
                if not _without(layout, boxes, head[g], after, c, own, rest):
                    continue
                place(layout, boxes, own, c)
                gain = boxes.price[g] - boxes.price[rest]
            found = _cheapest(layout, boxes, own, g, groups, gain, near, cost)
            if found == 0:
                continue
            if g >= 0 and not _members_hold(entries, rules, head[g], after, c, people[g] - layout.people[c]):
                checked += 1
                continue
            for x in range(found):
                h = near[x]
                tally(entries, c)
                checked += 1
                if not _members_hold(entries, rules, head[h], after, -1, people[h] + layout.people[c]):
                    continue
                if g >= 0:
                    _unlink(head, after, g, c)
                    people[g] -= layout.people[c]
                    _copy(layout, boxes, rest, g)
                after[c], head[h], group[c] = head[h], c, h
                people[h] += layout.people[c]
                join(layout, boxes, h, own, h)
                moved += 1
                break
        if moved == before:
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
        for part in range(boxes.box.shape[1]):
            boxes.box[target, part, a] = boxes.box[source, part, a]
    for w in range(layout.words):
        boxes.bits[target, w] = boxes.bits[source, w]
    boxes.rows[target], boxes.price[target] = boxes.rows[source], boxes.price[source]


@inner
def _cheapest(
    layout: Layout, boxes: Boxes, own: int, g: int, groups: int, gain: float, near: Ints, cost: Floats
) -> int:
    """The groups that become dearer by less than the gain when the combination joins them, the cheapest first."""
    joint, costs, node, column, logs = layout.joint, layout.cost, layout.node, layout.column, layout.logs
    box, bits, rows, priced = boxes.box, boxes.bits, boxes.rows, boxes.price
    found = 0
    for h in range(groups):
        limit = gain if found < NEAREST else min(gain, cost[found - 1])
        if h == g or rows[h] == 0:
            continue
        n = rows[h] + rows[own]
        most = most_cost(logs, limit + priced[h], n)
        more = price(logs, joint_cost(joint, costs, node, column, box, bits, h, own, most), n) - priced[h]
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
def _members_hold(entries: Entries, rules: Rules, member: int, after: Ints, c: int, people: int) -> bool:
    """Whether a group without one of its combinations, and with what is tallied already, keeps every rule."""
    if rules.rule.shape[1]:
        while member >= 0:
            if member != c:
                tally(entries, member)
            member = after[member]
    return verdict(entries, rules, people)


@inner
def _unlink(head: Ints, after: Ints, g: int, c: int) -> None:
    if head[g] == c:
        head[g] = after[c]
        return
    member = head[g]
    while after[member] != c:
        member = after[member]
    after[member] = after[c]
