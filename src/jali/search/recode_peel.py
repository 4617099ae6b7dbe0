"""Compiled peeling: at each node of the lattice, the classes of what is left that hold become groups."""
# mypy: disable-error-code="untyped-decorator,no-any-return"
# numba's decorator has no types, and so what a kernel calls returns Any.
# ruff: noqa: PLR0917
# Kernels are called by position.

from __future__ import annotations

import numpy as np

from jali.principles.counts import Ints
from jali.search.jit import inner, outer
from jali.search.mondrian_rules import Rules
from jali.search.recode_boxes import Entries, tally, verdict
from jali.search.recode_plan import OFFSET, SIZE, Layout

KEY, TURN, PEOPLE, NUMBER, HEAD = range(5)


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
                slot[h, TURN], slot[h, KEY], slot[h, PEOPLE], slot[h, NUMBER], slot[h, HEAD] = turn, key, 0, -1, -1
            slot[h, PEOPLE] += people[c]
            following[i], slot[h, HEAD], where[i] = slot[h, HEAD], i, h
            large = large or slot[h, PEOPLE] >= least
        if not large:
            continue
        kept = 0
        for i in range(remaining):
            h = where[i]
            if slot[h, NUMBER] == -1:
                slot[h, NUMBER] = -2
                if slot[h, PEOPLE] >= least:
                    checked += 1
                    if _class_holds(entries, rules, left, following, slot[h, HEAD], slot[h, PEOPLE]):
                        slot[h, NUMBER] = groups
                        groups += 1
            if slot[h, NUMBER] >= 0:
                group[left[i]] = slot[h, NUMBER]
            where[kept] = left[i]  # read before it is written: kept never passes i
            kept += slot[h, NUMBER] < 0
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
