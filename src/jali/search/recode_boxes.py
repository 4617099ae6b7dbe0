"""Compiled parts of local recoding: boxes of groups, what joining two of them costs, and whether groups hold."""
# mypy: disable-error-code="untyped-decorator,no-any-return"
# numba's decorator has no types, and so what a kernel calls returns Any.

from __future__ import annotations

from math import log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jali.principles.counts import Floats, Ints
from jali.search.jit import inner
from jali.search.kernels import SEEN, WHOLE, holds
from jali.search.mondrian_rules import Rules
from jali.search.recode_plan import JOINT, NODES, OFFSET, SIZE, SPREAD, WORD, WORDS, Layout

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
    """What so many rows cost in a box that costs each of them so much."""
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
    """Room for so many boxes."""
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
