"""Compiled local recoding: boxes of groups, what joining them costs, peeling, and pairing up."""

from __future__ import annotations

from math import log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jali.core.arrays import Bools, Floats, Ints
from jali.kernels import JOINT, NODES, OFFSET, SIZE, SPREAD, WORD, WORDS, Layout
from jali.kernels.jit import inner, outer
from jali.kernels.judge import SEEN, WHOLE, holds
from jali.principles.rules import Rules

# mypy: disable-error-code="untyped-decorator,no-any-return"
# numba's decorator has no types, and so what a kernel calls returns Any.


LESS = 1e-9
"""A cost is lower only if it is lower by this much, so that rounding decides nothing."""

LEVEL, CODE, NUMBER = range(3)


class Boxes(NamedTuple):
    """The box of each slot: the level and a code of each column, or the bits of its sets; its rows and its price."""

    box: Ints  # (3, columns, slots): level, code, number of the node
    bits: NDArray[np.uint64]  # (slots, words), without words where boxes are not sets
    rows: Ints  # (slots,)
    price: Floats  # (slots,) what all its rows cost


class Entries(NamedTuple):
    """What stands under each combination: people by judged value, and the counts of the group that is looked at."""

    start: Ints  # (combinations + 1,)
    n: Ints  # (entries,)
    value: Ints  # (judged columns, entries)
    counts: Ints  # (4, judged columns, values) as `kernels.Desk` has them
    kinds: Ints  # (judged columns,)


@inner
def price(logs: bool, cost: float, rows: int) -> float:
    """The cost of a group of `rows` rows, in a box that costs each row `cost`."""
    return rows * (cost - log(rows)) if logs else rows * cost


@inner
def joint_costs(layout: Layout, boxes: Boxes, i: int, others: Ints, out: Floats) -> None:
    """What the smallest box around a box and each of some others costs a row.

    All others at once: numba counts references whenever arrays are handed on, which takes longer than one box.
    """
    joint, cost, node, number, column = layout.joint, layout.cost, layout.node, boxes.box[NUMBER], layout.column
    level, code, bits = boxes.box[LEVEL], boxes.box[CODE], boxes.bits
    count = len(others)
    for x in range(count):
        out[x] = 0.0
    for a in range(column.shape[1]):
        size, offset, spread = column[SIZE, a], column[OFFSET, a], column[SPREAD, a]
        row = column[JOINT, a] + number[a, i] * column[NODES, a]
        one, here = code[a, i], level[a, i]
        if len(joint):
            for x in range(count):
                out[x] += joint[row + number[a, others[x]]]
        elif layout.words:
            for x in range(count):
                for w in range(column[WORD, a], column[WORD, a] + column[WORDS, a]):
                    word = bits[i, w] | bits[others[x], w]
                    while word:
                        word &= word - np.uint64(1)
                        spread += 1
                out[x] += cost[spread]
                spread = column[SPREAD, a]
        else:
            for x in range(count):
                j = others[x]
                at = offset + max(here, level[a, j]) * size
                while node[at + one] != node[at + code[a, j]]:
                    at += size
                out[x] += cost[at + one]


@inner
def place(layout: Layout, boxes: Boxes, slot: int, c: int) -> None:
    """Make a slot the box of one combination."""
    for w in range(layout.words):
        boxes.bits[slot, w] = 0
    for a in range(layout.column.shape[1]):
        v = layout.codes[c, a]
        boxes.box[LEVEL, a, slot], boxes.box[CODE, a, slot] = 0, v
        boxes.box[NUMBER, a, slot] = layout.number[layout.column[OFFSET, a] + v]
        if layout.words:
            boxes.bits[slot, layout.column[WORD, a] + v // 64] |= np.uint64(1) << np.uint64(v % 64)
    boxes.rows[slot] = layout.rows[c]
    _set_price(layout, boxes, slot)


@inner
def join(layout: Layout, boxes: Boxes, i: int, j: int, slot: int) -> None:
    """Make a slot (it may be i) the smallest box around two boxes, with the rows of both."""
    node, number, column, box = layout.node, layout.number, layout.column, boxes.box
    for a in range(column.shape[1]):
        level = max(box[LEVEL, a, i], box[LEVEL, a, j])
        at = column[OFFSET, a] + level * column[SIZE, a]
        while node[at + box[CODE, a, i]] != node[at + box[CODE, a, j]]:
            at += column[SIZE, a]
            level += 1
        box[LEVEL, a, slot], box[CODE, a, slot] = level, box[CODE, a, i]
        box[NUMBER, a, slot] = number[at + box[CODE, a, i]]
    for w in range(layout.words):
        boxes.bits[slot, w] = boxes.bits[i, w] | boxes.bits[j, w]
    boxes.rows[slot] = boxes.rows[i] + boxes.rows[j]
    _set_price(layout, boxes, slot)


@inner
def _set_price(layout: Layout, boxes: Boxes, slot: int) -> None:
    total = 0.0
    for a in range(layout.column.shape[1]):
        at = layout.column[OFFSET, a] + boxes.box[LEVEL, a, slot] * layout.column[SIZE, a] + boxes.box[CODE, a, slot]
        if layout.words:
            at = layout.column[SPREAD, a]
            for w in range(layout.column[WORD, a], layout.column[WORD, a] + layout.column[WORDS, a]):
                word = boxes.bits[slot, w]
                while word:
                    word &= word - np.uint64(1)
                    at += 1
        total += layout.cost[at]
    boxes.price[slot] = price(layout.logs, total, boxes.rows[slot])


@inner
def new_boxes(layout: Layout, slots: int) -> Boxes:
    """Empty arrays for a number of boxes."""
    return Boxes(
        np.zeros((3, layout.column.shape[1], slots), np.int64),
        np.zeros((slots, layout.words), np.uint64),
        np.zeros(slots, np.int64),
        np.zeros(slots),
    )


@inner
def fill(layout: Layout, boxes: Boxes, group: Ints, spare: int) -> None:
    """The boxes of groups of combinations; combinations without a group are left out."""
    for c in range(len(group)):
        g = group[c]
        if g >= 0 and boxes.rows[g] == 0:
            place(layout, boxes, g, c)
        elif g >= 0:
            place(layout, boxes, spare, c)
            join(layout, boxes, g, spare, g)


@inner
def tally(entries: Entries, c: int) -> None:
    """Add a combination to the counts of the group that is looked at."""
    for e in range(entries.start[c], entries.start[c + 1]):
        for q in range(len(entries.value)):
            v = entries.value[q, e]
            if entries.counts[WHOLE, q, v] == 0:
                entries.counts[SEEN, q, entries.kinds[q]] = v
                entries.kinds[q] += 1
            entries.counts[WHOLE, q, v] += entries.n[e]


@inner
def verdict(entries: Entries, rules: Rules, people: int) -> bool:
    """Whether the group that is looked at keeps every rule; its counts are forgotten."""
    good = people >= rules.least and holds(rules, entries, entries.counts[WHOLE], people)
    for q in range(len(entries.value)):
        for i in range(entries.kinds[q]):
            entries.counts[WHOLE, q, entries.counts[SEEN, q, i]] = 0
        entries.kinds[q] = 0
    return good


# mypy: disable-error-code="untyped-decorator,no-any-return"
# numba's decorator has no types, and so what a kernel calls returns Any.
# ruff: noqa: PLR0917
# Kernels are called by position.


KEY, TURN, PEOPLE, PLACE, HEAD = range(5)


@outer
def peel(  # noqa: PLR0912  # one loop, since numba counts references whenever arrays are handed on
    layout: Layout, entries: Entries, rules: Rules, levels: Ints, begin: int, end: int, group: Ints, groups: int,
    most: int,
) -> tuple[int, int, int]:  # fmt: skip
    """Walk the nodes from begin to end, or until there are more than `most` groups.

    At each node the classes of what is left that hold become groups.

    `group` is -1 for what is left. Returns how many groups there are, how many combinations are left, and how many
    classes were judged.
    """
    left = np.flatnonzero(group < 0)
    remaining, checked = len(left), 0
    bits = 4
    while 1 << bits < 2 * remaining:
        bits += 1
    slot = np.full((1 << bits, 5), -1, np.int64)  # what is read together lies together
    where, following = np.empty(remaining, np.int64), np.empty(remaining, np.int64)
    mark, column, codes, people, least = layout.mark, layout.column, layout.codes, layout.people, rules.least
    columns, last, row = column.shape[1], len(slot) - 1, np.empty(column.shape[1], np.int64)
    for turn in range(begin, end):
        large = False
        for a in range(columns):
            row[a] = column[OFFSET, a] + levels[turn, a] * column[SIZE, a]
        while last >= 4 * remaining and last > 15:
            last >>= 1  # what is left fits into fewer slots, which are still at hand
        for i in range(remaining):
            c = left[i]
            key = np.int64(0)
            for a in range(columns):
                key += mark[row[a] + codes[c, a]]
            h = (key ^ (key >> 29)) & last
            while slot[h, TURN] == turn and slot[h, KEY] != key:
                h = (h + 1) & last
            if slot[h, TURN] != turn:
                slot[h, TURN], slot[h, KEY], slot[h, PEOPLE], slot[h, PLACE], slot[h, HEAD] = turn, key, 0, -1, -1
            slot[h, PEOPLE] += people[c]
            following[i], slot[h, HEAD], where[i] = slot[h, HEAD], i, h
            large = large or slot[h, PEOPLE] >= least
        if not large:
            continue
        kept = 0
        for i in range(remaining):
            h = where[i]
            if slot[h, PLACE] == -1:
                slot[h, PLACE] = -2
                if slot[h, PEOPLE] >= least:
                    checked += 1
                    if _class_holds(entries, rules, left, following, slot[h, HEAD], slot[h, PEOPLE]):
                        slot[h, PLACE] = groups
                        groups += 1
            if slot[h, PLACE] >= 0:
                group[left[i]] = slot[h, PLACE]
            where[kept] = left[i]  # read before it is written: kept never passes i
            kept += slot[h, PLACE] < 0
        for i in range(kept):
            left[i] = where[i]
        remaining = kept
        if remaining == 0 or groups > most:
            break
    return groups, remaining, checked


@inner
def _class_holds(entries: Entries, rules: Rules, left: Ints, following: Ints, head: int, people: int) -> bool:
    if rules.rule.shape[1] == 0:
        return True
    while head >= 0:
        tally(entries, left[head])
        head = following[head]
    return verdict(entries, rules, people)


# mypy: disable-error-code="untyped-decorator,no-any-return"
# numba's decorator has no types, and so what a kernel calls returns Any.
# ruff: noqa: PLR0917
# Kernels are called by position.


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
    found, everyone, cost = np.full(groups, -1, np.int64), np.arange(groups), np.empty(groups)
    for i in range(groups):
        if not failing[i]:
            continue
        joint_costs(layout, boxes, i, everyone, cost)
        least = np.inf
        for j in range(groups):
            rows = boxes.rows[i] + boxes.rows[j]
            more = price(layout.logs, cost[j], rows) - boxes.price[j]
            if j != i and more < least - LESS:
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
    rows, priced, logs, cost = boxes.rows, boxes.price, layout.logs, np.empty(len(active))
    for i in active:
        if stale[i]:
            least[i] = np.inf
    for x in range(len(active)):
        i = active[x]
        if not stale[i]:
            continue
        joint_costs(layout, boxes, i, active, cost)
        for y in range(len(active)):
            j, n = active[y], rows[i] + rows[active[y]]
            more = (n * (cost[y] - log(n)) if logs else n * cost[y]) - priced[i] - priced[j]
            if j != i and more < least[i] - LESS:
                least[i], partner[i] = more, j
            if j != i and more < least[j] - LESS:
                least[j], partner[j] = more, i
    for i in active:
        stale[i] = False
