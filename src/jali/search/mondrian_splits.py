"""Compiled parts of Mondrian: the first allowable split of one column."""
# mypy: disable-error-code="untyped-decorator,no-any-return"
# numba's decorator has no types, and so what a kernel calls returns Any.
# ruff: noqa: PLR0917
# Kernels call each other by position.

from __future__ import annotations

import numpy as np

from jali.principles.counts import Bools
from jali.search import kernels as k
from jali.search.jit import inner
from jali.search.kernels import (
    Desk,
    Work,
    heapsort,
    holds,
    level_of,
    sort,
    tally,
    tally_bucket,
    untally_bucket,
)
from jali.search.mondrian_plan import CUTS


@inner
def _both_hold(work: Work, desk: Desk, left: int, size: int) -> bool:
    """Whether the part that was tallied and the rest of the group hold."""
    if min(left, size - left) < work.option[k.LEAST]:
        return False
    for c in range(len(work.entry) - 1):
        for i in range(desk.kinds[c]):
            v = desk.counts[k.SEEN, c, i]
            desk.counts[k.RIGHT, c, v] = desk.counts[k.WHOLE, c, v] - desk.counts[k.LEFT, c, v]
    return holds(work, desk, desk.counts[k.LEFT], left) and holds(work, desk, desk.counts[k.RIGHT], size - left)


@inner
def _halves(work: Work, desk: Desk, lo: int, hi: int, buckets: int, size: int) -> int:
    """Cut an ordered column near the median; 2 and the parts where a cut is allowed, else 1."""
    below, left = 0, desk.room[k.HEFT, 0]  # the median cut lies after bucket `below`
    while below + 2 < buckets and abs(2 * (left + desk.room[k.HEFT, below + 1]) - size) < abs(2 * left - size):
        below += 1
        left += desk.room[k.HEFT, below]
    above, upto = below + 1, left + desk.room[k.HEFT, below + 1]
    zero = desk.room[k.EDGE, 0]  # where the first bucket begins
    at, found = zero, False
    if work.option[k.RELAXED]:
        at, part = _middle(work, desk, lo, hi, size)
        tally(work, desk, lo, zero, at)
        desk.checked[0] += 1
        found = _both_hold(work, desk, part, size)
    tries = 0
    while not found and tries < CUTS and (below >= 0 or above + 1 < buckets):
        lower = above + 1 >= buckets or (below >= 0 and abs(2 * left - size) <= abs(2 * upto - size))
        cut, part = (below, left) if lower else (above, upto)
        if min(part, size - part) < work.option[k.LEAST]:
            break  # further cuts are less even still
        to = desk.room[k.EDGE, cut + 1]
        tally(work, desk, lo, at, to)
        at, tries = to, tries + 1
        desk.checked[0] += 1
        found = _both_hold(work, desk, part, size)
        if lower:
            left -= desk.room[k.HEFT, below]
            below -= 1
        else:
            above += 1
            upto += desk.room[k.HEFT, above] if above < buckets else 0
    tally(work, desk, lo, at, zero)
    for i in range(hi - lo):
        desk.room[k.PART, desk.room[k.BY_KEY, i]] = 0 if i < at else 1
    return 2 if found else 1


@inner
def _middle(work: Work, desk: Desk, lo: int, hi: int, size: int) -> tuple[int, int]:
    """Where the sorted items are best halved whatever their values, and the people before that point."""
    at, left = 1, work.item[k.WEIGHT, work.order[lo + desk.room[k.BY_KEY, 0]]]
    while at + 1 < hi - lo:
        more = left + work.item[k.WEIGHT, work.order[lo + desk.room[k.BY_KEY, at]]]
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
    desk.checked[0] += 1
    for b in range(buckets):
        if not work.option[k.RELAXED] and desk.room[k.HEFT, b] < work.option[k.LEAST]:
            return 1
    for b in range(buckets):
        tally_bucket(work, desk, lo, b)
        keeps = desk.room[k.HEFT, b] >= work.option[k.LEAST] and holds(
            work, desk, desk.counts[k.LEFT], desk.room[k.HEFT, b]
        )
        untally_bucket(work, desk, lo, b)
        if not keeps:
            if not work.option[k.RELAXED]:
                return 1
            rest[b] = True
    if rest.any():
        _join(work, desk, lo, buckets, rest)
    parts, shared = 0, -1
    for b in range(buckets):
        number = shared if rest[b] and shared >= 0 else parts
        if number == parts:
            parts += 1
        if rest[b]:
            shared = number
        for i in range(desk.room[k.EDGE, b], desk.room[k.EDGE, b + 1]):
            desk.room[k.PART, desk.room[k.BY_KEY, i]] = number
    return parts


@inner
def _join(work: Work, desk: Desk, lo: int, buckets: int, rest: Bools) -> None:
    """Let the smallest other children join the failing ones until these hold together."""
    size, by_heft = desk.room[k.EDGE, 0], desk.room[k.ROOM]  # the first bucket begins at 0
    for b in range(buckets):
        by_heft[b] = desk.room[k.HEFT, b] * buckets + b
        if rest[b]:
            size += desk.room[k.HEFT, b]
            tally_bucket(work, desk, lo, b)
    heapsort(by_heft, buckets)
    for i in range(buckets):
        b = by_heft[i] % buckets
        if rest[b]:
            continue
        if size >= work.option[k.LEAST] and holds(work, desk, desk.counts[k.LEFT], size):
            break
        rest[b] = True
        size += desk.room[k.HEFT, b]
        tally_bucket(work, desk, lo, b)
    for b in range(buckets):
        if rest[b]:
            untally_bucket(work, desk, lo, b)


@inner
def try_column(work: Work, desk: Desk, a: int, lo: int, hi: int, size: int) -> int:
    """The first allowable split of a column in which a group has several values: how many parts, 1 where none is."""
    at = work.column[k.OFFSET, a]
    if not work.column[k.TREE, a]:
        return _halves(work, desk, lo, hi, sort(work, desk, a, at, lo, hi), size)
    at += (level_of(work, a, desk.bounds[k.LOW, a], desk.bounds[k.HIGH, a]) - 1) * work.column[k.VALUES, a]
    return _children(work, desk, lo, sort(work, desk, a, at, lo, hi))
