"""Compiled parts of Mondrian: judging a group by its counts, and the first allowable split of one column.

Groups are segments of one index array. Kernels release the GIL, so that two threads work on different segments.
"""
# mypy: disable-error-code="untyped-decorator"
# numba's decorator has no types; the arguments of the functions below do.

from __future__ import annotations

from math import log
from typing import NamedTuple

import numba
import numpy as np

from jali.principles.counts import Bools, Ints
from jali.search.mondrian_plan import CUTS, Columns
from jali.search.mondrian_rules import CLOSENESS, DISTINCT, ENTROPY, LARGEST, RECURSIVE, SIZE, Rules

inner = numba.njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
"""For kernels that only kernels call: without a wrapper for Python they compile in a fraction of the time."""


class Work(NamedTuple):
    """What all threads share: the items, the rules, and the index array in which groups are segments."""

    combination: Ints  # (items,)
    weight: Ints  # (items,) people
    start: Ints  # (items + 1,) where each item's entries begin
    value: Ints  # (judged columns, entries)
    n: Ints  # (entries,) people
    columns: Columns
    rules: Rules
    order: Ints  # (items,) items, group by group
    begins: Bools  # (items,) where a finished group begins
    relaxed: bool
    split: int


class Desk(NamedTuple):
    """What one thread needs to look at one group: counts of values, and room for sorting its items."""

    whole: Ints  # (judged columns, values) people of the group
    left: Ints  # (judged columns, values) people of a part of it
    right: Ints  # (judged columns, values) people of the rest
    seen: Ints  # (judged columns, values) the values that the group has
    kinds: Ints  # (judged columns,) how many they are
    key: Ints  # (items,) what the items are sorted by
    by_key: Ints  # (items,) positions in the group, sorted
    edge: Ints  # (items + 1,) where each bucket of equal keys begins in by_key
    heft: Ints  # (items,) people of each bucket
    part: Ints  # (items,) the part that each position goes to
    room: Ints  # (items,)
    low: Ints  # (columns,)
    high: Ints  # (columns,)
    stats: Ints  # (1,) candidate splits judged


@inner
def holds(rules: Rules, n: Ints, seen: Ints, kinds: Ints, size: int) -> bool:
    """Whether a group with these counts keeps every rule, exactly as the principles judge it."""
    for r in range(len(rules.kind)):
        kind, c, p, q = rules.kind[r], rules.column[r], rules.p[r], rules.q[r]
        if kind == SIZE:
            if size < p:
                return False
            continue
        distinct, largest, moved, surprise = 0, 0, 0, 0.0
        table = rules.reference[c].sum() if kind == CLOSENESS else 0
        for i in range(kinds[c]):
            v = seen[c, i]
            people = n[c, v]
            if people == 0:
                continue
            distinct += 1
            if rules.counted[r, v]:
                largest = max(largest, people)
            if kind == ENTROPY:
                surprise -= people / size * log(people / size)
            elif kind == CLOSENESS:
                moved += max(people * table - size * rules.reference[c, v], 0)
        if kind == DISTINCT and distinct < p:
            return False
        if kind == LARGEST and largest * q > size * p:
            return False
        if kind == ENTROPY and surprise < rules.bound[r]:
            return False
        if kind == CLOSENESS and moved * q > size * table * p:
            return False
        if kind == RECURSIVE and largest * q >= _tail(n[c], seen[c, : kinds[c]], int(rules.bound[r])) * p:
            return False
    return True


@inner
def _tail(n: Ints, seen: Ints, l: int) -> int:
    """r_l + r_l+1 + …, counts in descending order."""
    r = np.sort(n[seen])
    return r[: max(len(r) - l + 1, 0)].sum()  # type: ignore[no-any-return]


@inner
def _tally(work: Work, desk: Desk, lo: int, begin: int, end: int, sign: int) -> None:
    """Add (or take away) the sorted positions from begin to end to the counts of the part."""
    for i in range(begin, end):
        item = work.order[lo + desk.by_key[i]]
        for e in range(work.start[item], work.start[item + 1]):
            for c in range(len(work.value)):
                desk.left[c, work.value[c, e]] += sign * work.n[e]


@inner
def _both_hold(work: Work, desk: Desk, left: int, size: int) -> bool:
    """Whether the part that was tallied and the rest of the group hold."""
    if min(left, size - left) < work.rules.least:
        return False
    for c in range(len(work.value)):
        for i in range(desk.kinds[c]):
            v = desk.seen[c, i]
            desk.right[c, v] = desk.whole[c, v] - desk.left[c, v]
    return holds(work.rules, desk.left, desk.seen, desk.kinds, left) and holds(
        work.rules, desk.right, desk.seen, desk.kinds, size - left
    )


@inner
def _level(columns: Columns, a: int, low: int, high: int) -> int:
    """The lowest level at which two places of a tree lie under one node."""
    level = 0
    while columns.node[columns.offset[a] + level * columns.size[a] + low] != (
        columns.node[columns.offset[a] + level * columns.size[a] + high]
    ):
        level += 1
    return level


@inner
def span(columns: Columns, a: int, low: int, high: int) -> int:
    """How many values of the domain lie between two places, or under the smallest node that covers them."""
    at = columns.offset[a]
    if not columns.tree[a]:
        return columns.node[at + high] - columns.node[at + low] + 1  # type: ignore[no-any-return]
    return columns.leaves[at + _level(columns, a, low, high) * columns.size[a] + low]  # type: ignore[no-any-return]


@inner
def _sort(work: Work, desk: Desk, a: int, lo: int, hi: int) -> int:
    """Sort a group's items by place, or by child node under a taxonomy, into buckets; how many there are."""
    columns, items = work.columns, hi - lo
    at = columns.offset[a]
    if columns.tree[a] and desk.low[a] != desk.high[a]:
        at += (_level(columns, a, desk.low[a], desk.high[a]) - 1) * columns.size[a]
    for i in range(items):
        place = columns.place[a, work.combination[work.order[lo + i]]]
        desk.key[i] = columns.node[at + place] if columns.tree[a] else place
    first, last = desk.key[:items].min(), desk.key[:items].max()
    if last - first < 4 * items + 64:  # counting beats sorting where most keys occur
        place_of = np.zeros(last - first + 2, dtype=np.int64)
        for i in range(items):
            place_of[desk.key[i] - first + 1] += 1
        place_of = np.cumsum(place_of)
        for i in range(items):
            desk.by_key[place_of[desk.key[i] - first]] = i
            place_of[desk.key[i] - first] += 1
    else:
        desk.by_key[:items] = np.argsort(desk.key[:items], kind="mergesort")
    buckets = 0
    for i in range(items):
        if i == 0 or desk.key[desk.by_key[i]] != desk.key[desk.by_key[i - 1]]:
            desk.edge[buckets], desk.heft[buckets] = i, 0
            buckets += 1
        desk.heft[buckets - 1] += work.weight[work.order[lo + desk.by_key[i]]]
    desk.edge[buckets] = items
    return buckets


@inner
def _halves(work: Work, desk: Desk, lo: int, hi: int, buckets: int, size: int) -> int:
    """Cut an ordered column near the median; 2 and the parts where a cut is allowed, else 1."""
    below, left = 0, desk.heft[0]  # the median cut lies after bucket `below`
    while below + 2 < buckets and abs(2 * (left + desk.heft[below + 1]) - size) < abs(2 * left - size):
        below += 1
        left += desk.heft[below]
    above, upto = below + 1, left + desk.heft[below + 1]
    at, found = 0, False
    if work.relaxed:
        at, part = _middle(work, desk, lo, hi, size)
        _tally(work, desk, lo, 0, at, 1)
        desk.stats[0] += 1
        found = _both_hold(work, desk, part, size)
    tries = 0
    while not found and tries < CUTS and (below >= 0 or above + 1 < buckets):
        lower = above + 1 >= buckets or (below >= 0 and abs(2 * left - size) <= abs(2 * upto - size))
        cut, part = (below, left) if lower else (above, upto)
        if min(part, size - part) < work.rules.least:
            break  # further cuts are less even still
        to = desk.edge[cut + 1]
        _tally(work, desk, lo, min(at, to), max(at, to), 1 if to > at else -1)
        at, tries = to, tries + 1
        desk.stats[0] += 1
        found = _both_hold(work, desk, part, size)
        if lower:
            left -= desk.heft[below]
            below -= 1
        else:
            above += 1
            upto += desk.heft[above] if above < buckets else 0
    _tally(work, desk, lo, 0, at, -1)
    for i in range(hi - lo):
        desk.part[desk.by_key[i]] = 0 if i < at else 1
    return 2 if found else 1


@inner
def _middle(work: Work, desk: Desk, lo: int, hi: int, size: int) -> tuple[int, int]:
    """Where the sorted items are best halved whatever their values, and the people before that point."""
    at, left = 1, work.weight[work.order[lo + desk.by_key[0]]]
    while at + 1 < hi - lo:
        more = left + work.weight[work.order[lo + desk.by_key[at]]]
        if abs(2 * more - size) >= abs(2 * left - size):
            break
        at, left = at + 1, more
    return at, left


@inner
def _children(work: Work, desk: Desk, lo: int, buckets: int) -> int:
    """Split into the children of a node; how many parts, 1 where that is not allowed.

    When relaxed, the children that fail form one part; while it fails, the smallest other child joins it.
    """
    rest = np.zeros(buckets, dtype=np.bool_)
    size, failing = 0, 0
    desk.stats[0] += 1
    for b in range(buckets):
        if not work.relaxed and desk.heft[b] < work.rules.least:
            return 1
    for b in range(buckets):
        _tally(work, desk, lo, desk.edge[b], desk.edge[b + 1], 1)
        keeps = desk.heft[b] >= work.rules.least and holds(
            work.rules, desk.left, desk.seen, desk.kinds, desk.heft[b]
        )
        _tally(work, desk, lo, desk.edge[b], desk.edge[b + 1], -1)
        if not keeps:
            if not work.relaxed:
                return 1
            rest[b] = True
            failing += 1
            size += desk.heft[b]
    if failing:
        failing = _join(work, desk, lo, buckets, rest, failing, size)
    parts, shared = 0, -1
    for b in range(buckets):
        number = shared if rest[b] and shared >= 0 else parts
        if number == parts:
            parts += 1
        if rest[b]:
            shared = number
        for i in range(desk.edge[b], desk.edge[b + 1]):
            desk.part[desk.by_key[i]] = number
    return parts


@inner
def _join(work: Work, desk: Desk, lo: int, buckets: int, rest: Bools, failing: int, size: int) -> int:
    """Let the smallest other children join the failing ones until these hold together."""
    for b in range(buckets):
        if rest[b]:
            _tally(work, desk, lo, desk.edge[b], desk.edge[b + 1], 1)
    for b in np.argsort(desk.heft[:buckets], kind="mergesort"):
        if size >= work.rules.least and holds(work.rules, desk.left, desk.seen, desk.kinds, size):
            break
        if not rest[b]:
            rest[b] = True
            failing += 1
            size += desk.heft[b]
            _tally(work, desk, lo, desk.edge[b], desk.edge[b + 1], 1)
    for b in range(buckets):
        if rest[b]:
            _tally(work, desk, lo, desk.edge[b], desk.edge[b + 1], -1)
    return failing


@inner
def try_column(work: Work, desk: Desk, a: int, lo: int, hi: int, size: int) -> int:
    """The first allowable split of one column: how many parts, 1 where there is none."""
    buckets = _sort(work, desk, a, lo, hi)
    if buckets < 2:
        return 1
    return _children(work, desk, lo, buckets) if work.columns.tree[a] else _halves(work, desk, lo, hi, buckets, size)
