"""Compiled parts of local recoding: boxes of groups, what joining two of them costs, and whether groups hold."""
# mypy: disable-error-code="untyped-decorator,no-any-return"
# numba's decorator has no types, and so what a kernel calls returns Any.

from __future__ import annotations

from math import log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jali.principles.counts import Floats, Ints
from jali.search.kernels import SEEN, WHOLE, holds, inner
from jali.search.mondrian_rules import Rules
from jali.search.recode_plan import Layout


class Boxes(NamedTuple):
    """The box of each slot: the level and a code of each column, or the bits of its sets; its rows and its price."""

    level: Ints  # (slots, columns)
    code: Ints  # (slots, columns)
    bits: NDArray[np.uint64]  # (slots, words)
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
def price(layout: Layout, cost: float, rows: int) -> float:
    """What so many rows cost in a box that costs each of them so much."""
    return rows * (cost - log(rows)) if layout.logs else rows * cost


@inner
def joint_cost(layout: Layout, boxes: Boxes, i: int, j: int, most: float) -> float:
    """What the smallest box around two boxes costs a row, or anything above `most` where it is more than that."""
    cost = 0.0
    for a in range(len(layout.size)):
        if layout.sets:
            covered = 0
            for w in range(layout.word[a], layout.word[a + 1]):
                covered += values_in(boxes.bits[i, w] | boxes.bits[j, w])
            cost += layout.spread[layout.first[a] + covered]
        else:
            level = max(boxes.level[i, a], boxes.level[j, a])
            at = layout.offset[a] + level * layout.size[a]
            one, other = boxes.code[i, a], boxes.code[j, a]
            while layout.node[at + one] != layout.node[at + other]:
                at += layout.size[a]
            cost += layout.cost[at + one]
        if cost > most:
            break
    return cost


@inner
def most_cost(layout: Layout, total: float, rows: int) -> float:
    """The most that a row may cost for so many rows to cost this much together."""
    return total / rows + (log(rows) if layout.logs else 0.0)


@inner
def place(layout: Layout, boxes: Boxes, slot: int, c: int) -> None:
    """Make a slot the box of one combination."""
    for a in range(len(layout.size)):
        boxes.level[slot, a] = 0
        boxes.code[slot, a] = layout.codes[c, a]
    if layout.sets:
        for w in range(layout.word[-1]):
            boxes.bits[slot, w] = 0
        for a in range(len(layout.size)):
            v = layout.codes[c, a]
            boxes.bits[slot, layout.word[a] + v // 64] |= np.uint64(1) << np.uint64(v % 64)
    boxes.rows[slot] = layout.rows[c]
    boxes.price[slot] = price(layout, joint_cost(layout, boxes, slot, slot, np.inf), boxes.rows[slot])


@inner
def join(layout: Layout, boxes: Boxes, i: int, j: int, slot: int) -> None:
    """Make a slot (it may be i) the smallest box around two boxes, with the rows of both."""
    for a in range(len(layout.size)):
        level = max(boxes.level[i, a], boxes.level[j, a])
        at = layout.offset[a] + level * layout.size[a]
        while layout.node[at + boxes.code[i, a]] != layout.node[at + boxes.code[j, a]]:
            at += layout.size[a]
            level += 1
        boxes.level[slot, a] = level
        boxes.code[slot, a] = boxes.code[i, a]
    if layout.sets:
        for w in range(layout.word[-1]):
            boxes.bits[slot, w] = boxes.bits[i, w] | boxes.bits[j, w]
    boxes.rows[slot] = boxes.rows[i] + boxes.rows[j]
    boxes.price[slot] = price(layout, joint_cost(layout, boxes, slot, slot, np.inf), boxes.rows[slot])


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
