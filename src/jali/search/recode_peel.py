"""Compiled peeling: at each node of the lattice, the classes of what is left that hold become groups."""
# mypy: disable-error-code="untyped-decorator,no-any-return"
# numba's decorator has no types, and so what a kernel calls returns Any.
# ruff: noqa: PLR0917
# Kernels are called by position.

from __future__ import annotations

import numpy as np

from jali.principles.counts import Ints
from jali.search.kernels import inner
from jali.search.mondrian_rules import Rules
from jali.search.recode_boxes import Entries, outer, tally, verdict
from jali.search.recode_plan import OFFSET, SIZE, Layout

KEY, TURN, PEOPLE, NUMBER, HEAD = range(5)


@outer
def peel(  # noqa: PLR0912  # one loop, since numba counts references whenever arrays are handed on
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
    columns, last, row = column.shape[1], slot.shape[1] - 1, np.empty(column.shape[1], np.int64)
    for turn in range(begin, end):
        large = False
        for a in range(columns):
            row[a] = column[OFFSET, a] + levels[turn, a] * column[SIZE, a]
        for i in range(remaining):
            c = left[i]
            key = np.int64(0)
            for a in range(columns):
                key += mark[row[a] + codes[c, a]]
            h = (key ^ (key >> 29)) & last
            while slot[TURN, h] == turn and slot[KEY, h] != key:
                h = (h + 1) & last
            if slot[TURN, h] != turn:
                slot[TURN, h], slot[KEY, h], slot[PEOPLE, h], slot[NUMBER, h], slot[HEAD, h] = turn, key, 0, -1, -1
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
def _class_holds(entries: Entries, rules: Rules, left: Ints, following: Ints, head: int, people: int) -> bool:
    if rules.rule.shape[1] == 0:
        return True
    while head >= 0:
        tally(entries, left[head])
        head = following[head]
    return verdict(entries, rules, people)
