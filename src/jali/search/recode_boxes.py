"""Compiled parts of local recoding: boxes of groups, what joining two of them costs, and whether groups hold."""
# mypy: disable-error-code="untyped-decorator,no-any-return"
# numba's decorator has no types, and so what a kernel calls returns Any.
# ruff: noqa: PLR0917
# Kernels are called by position.

from __future__ import annotations

from math import log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jali.principles.counts import Floats, Ints
from jali.search.kernels import SEEN, WHOLE, holds, inner
from jali.search.mondrian_rules import Rules
from jali.search.recode_plan import JOINT, NODES, OFFSET, SIZE, SPREAD, WORD, WORDS, Layout


LEVEL, CODE, NUMBER = range(3)


class Boxes(NamedTuple):
    """The box of each slot: the level and a code of each column, or the bits of its sets; its rows and its price."""

    box: Ints  # (slots, 3, columns): level, code, number of the node
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
def values_in(word: np.uint64) -> int:
    """How many bits are set."""
    count = 0
    while word:
        word &= word - np.uint64(1)
        count += 1
    return count


@inner
def price(logs: bool, cost: float, rows: int) -> float:
    """What so many rows cost in a box that costs each of them so much."""
    return rows * (cost - log(rows)) if logs else rows * cost


@inner
def joint_cost(
    joint: Floats, cost: Floats, node: NDArray[np.int32], column: Ints, box: Ints, bits: NDArray[np.uint64],
    i: int, j: int, most: float,
) -> float:  # fmt: skip
    """What the smallest box around two boxes costs a row, or anything above `most` where it is more than that.

    It takes arrays, not tuples of them: numba counts references whenever it takes one out of a tuple.
    """
    total = 0.0
    for a in range(column.shape[1]):
        if len(joint):
            total += joint[column[JOINT, a] + box[i, NUMBER, a] * column[NODES, a] + box[j, NUMBER, a]]
        elif bits.shape[1]:
            covered = 0
            for w in range(column[WORD, a], column[WORD, a] + column[WORDS, a]):
                covered += values_in(bits[i, w] | bits[j, w])
            total += cost[column[SPREAD, a] + covered]
        else:
            at = column[OFFSET, a] + max(box[i, LEVEL, a], box[j, LEVEL, a]) * column[SIZE, a]
            one, other = box[i, CODE, a], box[j, CODE, a]
            while node[at + one] != node[at + other]:
                at += column[SIZE, a]
            total += cost[at + one]
        if total > most:
            break
    return total


@inner
def most_cost(logs: bool, total: float, rows: int) -> float:
    """The most that a row may cost for so many rows to cost this much together."""
    return total / rows + (log(rows) if logs else 0.0)


@inner
def place(layout: Layout, boxes: Boxes, slot: int, c: int) -> None:
    """Make a slot the box of one combination."""
    for w in range(layout.words):
        boxes.bits[slot, w] = 0
    for a in range(layout.column.shape[1]):
        v = layout.codes[c, a]
        boxes.box[slot, LEVEL, a], boxes.box[slot, CODE, a] = 0, v
        boxes.box[slot, NUMBER, a] = layout.number[layout.column[OFFSET, a] + v]
        if layout.words:
            boxes.bits[slot, layout.column[WORD, a] + v // 64] |= np.uint64(1) << np.uint64(v % 64)
    boxes.rows[slot] = layout.rows[c]
    _set_price(layout, boxes, slot)


@inner
def join(layout: Layout, boxes: Boxes, i: int, j: int, slot: int) -> None:
    """Make a slot (it may be i) the smallest box around two boxes, with the rows of both."""
    node, number, column, box = layout.node, layout.number, layout.column, boxes.box
    for a in range(column.shape[1]):
        level = max(box[i, LEVEL, a], box[j, LEVEL, a])
        at = column[OFFSET, a] + level * column[SIZE, a]
        while node[at + box[i, CODE, a]] != node[at + box[j, CODE, a]]:
            at += column[SIZE, a]
            level += 1
        box[slot, LEVEL, a], box[slot, CODE, a] = level, box[i, CODE, a]
        box[slot, NUMBER, a] = number[at + box[i, CODE, a]]
    for w in range(layout.words):
        boxes.bits[slot, w] = boxes.bits[i, w] | boxes.bits[j, w]
    boxes.rows[slot] = boxes.rows[i] + boxes.rows[j]
    _set_price(layout, boxes, slot)


@inner
def _set_price(layout: Layout, boxes: Boxes, slot: int) -> None:
    costs, column = layout.cost, layout.column
    cost = joint_cost(layout.joint, costs, layout.node, column, boxes.box, boxes.bits, slot, slot, np.inf)
    boxes.price[slot] = price(layout.logs, cost, boxes.rows[slot])


@inner
def new_boxes(layout: Layout, slots: int) -> Boxes:
    """Room for so many boxes."""
    return Boxes(
        np.zeros((slots, 3, layout.column.shape[1]), np.int64),
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
