"""Compiled parts of Mondrian: judging a group by its counts, and the first allowable split of one column.

Groups are segments of one index array. Kernels release the GIL, so that two threads work on different segments.
Arrays of one shape are rows of one array, with a name for each row: compiling takes time for every array passed on.
"""
# mypy: disable-error-code="untyped-decorator"
# numba's decorator has no types; the arguments of the functions below do.

from __future__ import annotations

from math import log
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from jali.principles.counts import Bools, Ints
from jali.search.mondrian_plan import CUTS
from jali.search.mondrian_rules import CLOSENESS, COLUMN, DISTINCT, ENTROPY, KIND, LARGEST, RECURSIVE, SIZE, L, P, Q

inner = numba.njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
"""For kernels that only kernels call: without wrappers for Python and C they compile faster."""

COMBINATION, WEIGHT, START = range(3)
TREE, WIDTH, VALUES, OFFSET = range(4)
NODE, LEAVES = range(2)
LEAST, RELAXED, SPLIT = range(3)
WHOLE, LEFT, RIGHT, SEEN = range(4)
KEY, BY_KEY, EDGE, HEFT, PART, ROOM = range(6)
LOW, HIGH = range(2)


class Work(NamedTuple):
    """What all threads share: the items, the rules, and the index array in which groups are segments."""

    item: Ints  # (3, items + 1): combination, people, where the item's entries begin
    entry: Ints  # (1 + judged columns, entries): people, then the value in each judged column
    place: NDArray[np.int32]  # (columns, combinations)
    column: Ints  # (4, columns): whether it has a tree, its width, its values, where its nodes begin; see Columns
    node: Ints  # (2, …): nodes, and the leaves under them; see Columns
    rule: Ints  # (5, rules), bound, counted, reference: see Rules
    bound: NDArray[np.float64]
    counted: Bools
    reference: Ints
    option: Ints  # (3,): the least people of a group, whether relaxed, which split
    order: Ints  # (items,) items, group by group
    begins: Bools  # (items,) where a finished group begins


class Desk(NamedTuple):
    """What one thread needs to look at one group: counts of values, and room for sorting its items."""

    counts: Ints  # (4, judged columns, values): people of the group, of a part, of the rest; the values that it has
    kinds: Ints  # (judged columns,) how many values it has
    room: Ints  # (6, items + 1): sort key; positions by key; where each bucket of equal keys begins; people of each
    #             bucket; the part of each position; spare
    bounds: Ints  # (2, columns): lowest and highest place
    checked: Ints  # (1,) candidate splits judged


@inner
def holds(work: Work, desk: Desk, which: int, size: int) -> bool:
    """Whether the group, the part or the rest keeps every rule, exactly as the principles judge it."""
    n, seen, kinds = desk.counts[which], desk.counts[SEEN], desk.kinds
    for r in range(work.rule.shape[1]):
        kind, c, p, q = work.rule[KIND, r], work.rule[COLUMN, r], work.rule[P, r], work.rule[Q, r]
        if kind == SIZE:
            if size < p:
                return False
            continue
        distinct, largest, moved, surprise = 0, 0, 0, 0.0
        table = work.reference[c].sum() if kind == CLOSENESS else 0
        for i in range(kinds[c]):
            v = seen[c, i]
            people = n[c, v]
            if people == 0:
                continue
            distinct += 1
            if work.counted[r, v]:
                largest = max(largest, people)
            if kind == ENTROPY:
                surprise -= people / size * log(people / size)
            elif kind == CLOSENESS:
                moved += max(people * table - size * work.reference[c, v], 0)
        if kind == DISTINCT and distinct < p:
            return False
        if kind == LARGEST and largest * q > size * p:
            return False
        if kind == ENTROPY and surprise < work.bound[r]:
            return False
        if kind == CLOSENESS and moved * q > size * table * p:
            return False
        if kind == RECURSIVE and largest * q >= _tail(n[c], seen[c, : kinds[c]], size, work.rule[L, r]) * p:
            return False
    return True


@inner
def _tail(n: Ints, seen: Ints, size: int, l: int) -> int:
    """r_l + r_l+1 + …, counts in descending order: everybody without the l - 1 largest counts."""
    above, out = size + 1, 0  # counts of at least `above` are out already
    while out < l - 1:
        largest = equal = 0
        for v in seen:
            if largest < n[v] < above:
                largest, equal = n[v], 0
            equal += n[v] == largest
        if largest == 0:
            break
        equal = min(equal, l - 1 - out)
        size -= equal * largest
        above, out = largest, out + equal
    return size


@inner
def _tally(work: Work, desk: Desk, lo: int, begin: int, end: int, sign: int) -> None:
    """Add (or take away) the sorted positions from begin to end to the counts of the part."""
    for i in range(begin, end):
        item = work.order[lo + desk.room[BY_KEY, i]]
        for e in range(work.item[START, item], work.item[START, item + 1]):
            for c in range(len(work.entry) - 1):
                desk.counts[LEFT, c, work.entry[1 + c, e]] += sign * work.entry[0, e]


@inner
def _both_hold(work: Work, desk: Desk, left: int, size: int) -> bool:
    """Whether the part that was tallied and the rest of the group hold."""
    if min(left, size - left) < work.option[LEAST]:
        return False
    for c in range(len(work.entry) - 1):
        for i in range(desk.kinds[c]):
            v = desk.counts[SEEN, c, i]
            desk.counts[RIGHT, c, v] = desk.counts[WHOLE, c, v] - desk.counts[LEFT, c, v]
    return holds(work, desk, LEFT, left) and holds(work, desk, RIGHT, size - left)


@inner
def _level(work: Work, a: int, low: int, high: int) -> int:
    """The lowest level at which two places of a tree lie under one node."""
    level = 0
    while work.node[NODE, work.column[OFFSET, a] + level * work.column[VALUES, a] + low] != (
        work.node[NODE, work.column[OFFSET, a] + level * work.column[VALUES, a] + high]
    ):
        level += 1
    return level


@inner
def span(work: Work, a: int, low: int, high: int) -> int:
    """How many values of the domain lie between two places, or under the smallest node that covers them."""
    at = work.column[OFFSET, a]
    if not work.column[TREE, a]:
        return work.node[NODE, at + high] - work.node[NODE, at + low] + 1  # type: ignore[no-any-return]
    return work.node[LEAVES, at + _level(work, a, low, high) * work.column[VALUES, a] + low]  # type: ignore[no-any-return]


@inner
def _sort(work: Work, desk: Desk, a: int, lo: int, hi: int) -> int:
    """Sort a group's items by place, or by child node under a taxonomy, into buckets; how many there are."""
    items = hi - lo
    at = work.column[OFFSET, a]
    if work.column[TREE, a] and desk.bounds[LOW, a] != desk.bounds[HIGH, a]:
        at += (_level(work, a, desk.bounds[LOW, a], desk.bounds[HIGH, a]) - 1) * work.column[VALUES, a]
    for i in range(items):
        place = work.place[a, work.item[COMBINATION, work.order[lo + i]]]
        desk.room[KEY, i] = work.node[NODE, at + place] if work.column[TREE, a] else place
    first, last = desk.room[KEY, :items].min(), desk.room[KEY, :items].max()
    if last - first < 4 * items + 64:  # counting beats sorting where most keys occur
        place_of = np.zeros(last - first + 2, dtype=np.int64)
        for i in range(items):
            place_of[desk.room[KEY, i] - first + 1] += 1
        place_of = np.cumsum(place_of)
        for i in range(items):
            desk.room[BY_KEY, place_of[desk.room[KEY, i] - first]] = i
            place_of[desk.room[KEY, i] - first] += 1
    else:
        desk.room[BY_KEY, :items] = np.argsort(desk.room[KEY, :items], kind="mergesort")
    buckets = 0
    for i in range(items):
        if i == 0 or desk.room[KEY, desk.room[BY_KEY, i]] != desk.room[KEY, desk.room[BY_KEY, i - 1]]:
            desk.room[EDGE, buckets], desk.room[HEFT, buckets] = i, 0
            buckets += 1
        desk.room[HEFT, buckets - 1] += work.item[WEIGHT, work.order[lo + desk.room[BY_KEY, i]]]
    desk.room[EDGE, buckets] = items
    return buckets


@inner
def _halves(work: Work, desk: Desk, lo: int, hi: int, buckets: int, size: int) -> int:
    """Cut an ordered column near the median; 2 and the parts where a cut is allowed, else 1."""
    below, left = 0, desk.room[HEFT, 0]  # the median cut lies after bucket `below`
    while below + 2 < buckets and abs(2 * (left + desk.room[HEFT, below + 1]) - size) < abs(2 * left - size):
        below += 1
        left += desk.room[HEFT, below]
    above, upto = below + 1, left + desk.room[HEFT, below + 1]
    at, found = 0, False
    if work.option[RELAXED]:
        at, part = _middle(work, desk, lo, hi, size)
        _tally(work, desk, lo, 0, at, 1)
        desk.checked[0] += 1
        found = _both_hold(work, desk, part, size)
    tries = 0
    while not found and tries < CUTS and (below >= 0 or above + 1 < buckets):
        lower = above + 1 >= buckets or (below >= 0 and abs(2 * left - size) <= abs(2 * upto - size))
        cut, part = (below, left) if lower else (above, upto)
        if min(part, size - part) < work.option[LEAST]:
            break  # further cuts are less even still
        to = desk.room[EDGE, cut + 1]
        _tally(work, desk, lo, min(at, to), max(at, to), 1 if to > at else -1)
        at, tries = to, tries + 1
        desk.checked[0] += 1
        found = _both_hold(work, desk, part, size)
        if lower:
            left -= desk.room[HEFT, below]
            below -= 1
        else:
            above += 1
            upto += desk.room[HEFT, above] if above < buckets else 0
    _tally(work, desk, lo, 0, at, -1)
    for i in range(hi - lo):
        desk.room[PART, desk.room[BY_KEY, i]] = 0 if i < at else 1
    return 2 if found else 1


@inner
def _middle(work: Work, desk: Desk, lo: int, hi: int, size: int) -> tuple[int, int]:
    """Where the sorted items are best halved whatever their values, and the people before that point."""
    at, left = 1, work.item[WEIGHT, work.order[lo + desk.room[BY_KEY, 0]]]
    while at + 1 < hi - lo:
        more = left + work.item[WEIGHT, work.order[lo + desk.room[BY_KEY, at]]]
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
    size = 0  # people of the children that fail
    desk.checked[0] += 1
    for b in range(buckets):
        if not work.option[RELAXED] and desk.room[HEFT, b] < work.option[LEAST]:
            return 1
    for b in range(buckets):
        _tally(work, desk, lo, desk.room[EDGE, b], desk.room[EDGE, b + 1], 1)
        keeps = desk.room[HEFT, b] >= work.option[LEAST] and holds(work, desk, LEFT, desk.room[HEFT, b])
        _tally(work, desk, lo, desk.room[EDGE, b], desk.room[EDGE, b + 1], -1)
        if not keeps:
            if not work.option[RELAXED]:
                return 1
            rest[b] = True
            size += desk.room[HEFT, b]
    if size:
        _join(work, desk, lo, buckets, rest, size)
    parts, shared = 0, -1
    for b in range(buckets):
        number = shared if rest[b] and shared >= 0 else parts
        if number == parts:
            parts += 1
        if rest[b]:
            shared = number
        for i in range(desk.room[EDGE, b], desk.room[EDGE, b + 1]):
            desk.room[PART, desk.room[BY_KEY, i]] = number
    return parts


@inner
def _join(work: Work, desk: Desk, lo: int, buckets: int, rest: Bools, size: int) -> None:
    """Let the smallest other children join the failing ones until these hold together."""
    for b in range(buckets):
        if rest[b]:
            _tally(work, desk, lo, desk.room[EDGE, b], desk.room[EDGE, b + 1], 1)
    for b in np.argsort(desk.room[HEFT, :buckets], kind="mergesort"):
        if size >= work.option[LEAST] and holds(work, desk, LEFT, size):
            break
        if not rest[b]:
            rest[b] = True
            size += desk.room[HEFT, b]
            _tally(work, desk, lo, desk.room[EDGE, b], desk.room[EDGE, b + 1], 1)
    for b in range(buckets):
        if rest[b]:
            _tally(work, desk, lo, desk.room[EDGE, b], desk.room[EDGE, b + 1], -1)


@inner
def try_column(work: Work, desk: Desk, a: int, lo: int, hi: int, size: int) -> int:
    """The first allowable split of one column: how many parts, 1 where there is none."""
    buckets = _sort(work, desk, a, lo, hi)
    if buckets < 2:
        return 1
    return _children(work, desk, lo, buckets) if work.column[TREE, a] else _halves(work, desk, lo, hi, buckets, size)
