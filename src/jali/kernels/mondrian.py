"""Compiled Mondrian: which column to split, where, and splitting until nothing more is allowed."""

from __future__ import annotations

from math import floor, log

import numpy as np

from jali.core.arrays import ONE, Bools, Ints
from jali.kernels import CUTS, DIGITS
from jali.kernels import judge as k
from jali.kernels.jit import inner, outer
from jali.kernels.judge import Desk, Work, heapsort, holds, level_of, sort, span, tally, tally_bucket, untally_bucket

# mypy: disable-error-code="untyped-decorator,no-any-return"
# numba's decorator has no types, and so what a kernel calls returns Any.
# ruff: noqa: PLR0917
# Kernels call each other by position.


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


# mypy: disable-error-code="untyped-decorator,no-any-return"
# numba's decorator has no types, and so what a kernel calls returns Any.
# ruff: noqa: PLR0917
# Kernels call each other by position.


NONE = -(1 << 62)
"""The gain of a column that has no allowable split."""

RANGE, BY_ENTROPY, BY_KL, BY_PDF = range(4)
"""The numbers of `mondrian_plan.SPLITS`, and of "kl" where groups are compared by their distributions."""


@inner
def desk_of(work: Work, items: int) -> Desk:
    """Working arrays for groups of at most this number of items."""
    judged, values = work.reference.shape
    return Desk(
        np.zeros((4, judged, values), np.int64),
        np.zeros(judged, np.int64),
        np.empty((6, items + 1), np.int64),
        np.empty((2, len(work.place)), np.int64),
        np.zeros(1, np.int64),
    )


@inner
def bounds_of(work: Work, lo: int, hi: int, low: Ints, high: Ints) -> int:
    """The lowest and highest place of a group in each column, and its people."""
    for a in range(len(low)):
        place = work.place[a]
        least = most = place[work.item[k.COMBINATION, work.order[lo]]]
        for i in range(lo + 1, hi):
            here = place[work.item[k.COMBINATION, work.order[i]]]
            least, most = min(least, here), max(most, here)
        low[a], high[a] = least, most
    size = 0
    for i in range(lo, hi):
        size += work.item[k.WEIGHT, work.order[i]]
    return size


@inner
def open_group(work: Work, desk: Desk, lo: int, hi: int) -> None:
    """Count the values of a group."""
    for i in range(lo, hi):
        item = work.order[i]
        for e in range(work.item[k.START, item], work.item[k.START, item + 1]):
            for c in range(len(work.entry) - 1):
                v = work.entry[1 + c, e]
                if desk.counts[k.WHOLE, c, v] == 0:
                    desk.counts[k.SEEN, c, desk.kinds[c]] = v
                    desk.kinds[c] += 1
                desk.counts[k.WHOLE, c, v] += work.entry[0, e]


@inner
def close_group(work: Work, desk: Desk) -> None:
    """Forget the counts again, in as many steps as the group has values."""
    for c in range(len(work.entry) - 1):
        for i in range(desk.kinds[c]):
            desk.counts[k.WHOLE, c, desk.counts[k.SEEN, c, i]] = 0
        desk.kinds[c] = 0


@inner
def _rounded(amount: float) -> int:
    return floor(amount * DIGITS + 0.5)  # an integer, also here


@inner
def _entropy(work: Work, desk: Desk, a: int, lo: int, hi: int, size: int) -> float:
    """The entropy of a group's values in one column."""
    surprise = 0.0
    for b in range(sort(work, desk, a, work.column[k.OFFSET, a], lo, hi)):
        share = desk.room[k.HEFT, b] / size
        surprise -= share * log(share)
    return surprise


@inner
def place(work: Work, desk: Desk, lo: int, hi: int, parts: int, edges: Ints) -> None:
    """Move a group's items part by part, in their order; `edges` are where the parts begin and the last ends."""
    for p in range(parts + 1):
        edges[p] = 0
    for i in range(hi - lo):
        desk.room[k.ROOM, i] = work.order[lo + i]
        edges[desk.room[k.PART, i] + 1] += 1
    for p in range(parts):
        edges[p + 1] += edges[p]
    for i in range(hi - lo):
        work.order[lo + edges[desk.room[k.PART, i]]] = desk.room[k.ROOM, i]
        edges[desk.room[k.PART, i]] += 1
    for p in range(parts, 0, -1):
        edges[p] = lo + edges[p - 1]
    edges[0] = lo


@inner
def _information(work: Work, desk: Desk, lo: int, hi: int) -> float:
    """Σ n log(n / area) over the joint values of a group, which are the last of the judged columns.

    Compared by distributions, the logarithm of the area is the sum of the columns' entropies.
    """
    low, high = np.empty(len(work.place), np.int64), np.empty(len(work.place), np.int64)
    size = bounds_of(work, lo, hi, low, high)
    c, total = len(work.entry) - 2, 0.0
    for i in range(lo, hi):
        item = work.order[i]
        for e in range(work.item[k.START, item], work.item[k.START, item + 1]):
            desk.counts[k.LEFT, c, work.entry[1 + c, e]] += work.entry[0, e]
    for i in range(desk.kinds[c]):
        people = desk.counts[k.LEFT, c, desk.counts[k.SEEN, c, i]]
        total += people * log(people) if people > 0 else 0.0
        desk.counts[k.LEFT, c, desk.counts[k.SEEN, c, i]] = 0
    for a in range(len(low)):
        if low[a] == high[a]:
            continue
        weight = work.column[k.IMPORTANCE, a] / ONE
        if work.option[k.SPLIT] == BY_PDF:
            total -= size * weight * _entropy(work, desk, a, lo, hi, size)
        else:
            total -= size * weight * log(span(work, a, low[a], high[a]))
    return total


@inner
def by_information(work: Work, desk: Desk, lo: int, hi: int, size: int, gain: Ints, edges: Ints) -> None:
    """What the split of each column gains in Σ n log(n / area) a person; `NONE` where it has none."""
    before, old = _information(work, desk, lo, hi), work.order[lo:hi].copy()
    for a in range(len(work.place)):
        gain[a] = NONE
        if desk.bounds[k.LOW, a] == desk.bounds[k.HIGH, a]:
            continue
        parts = try_column(work, desk, a, lo, hi, size)
        if parts == 1:
            continue
        place(work, desk, lo, hi, parts, edges)
        after = 0.0
        for p in range(parts):
            after += _information(work, desk, edges[p], edges[p + 1])
        _copy(old, work.order[lo:hi])
        gain[a] = _rounded((after - before) / size)


@inner
def ranked(work: Work, desk: Desk, lo: int, hi: int, size: int, gain: Ints, scale: Ints, edges: Ints) -> Ints:
    """The columns in the order in which their splits are tried: the largest gain / scale first, then the first.

    Columns in which the group has one value are left out, and those that are known to have no split.
    """
    columns = len(work.place)
    order, several = np.empty(columns, np.int64), 0
    if work.option[k.SPLIT] >= BY_KL:
        by_information(work, desk, lo, hi, size, gain, edges)
    for a in range(columns):
        scale[a] = 1
        if desk.bounds[k.LOW, a] == desk.bounds[k.HIGH, a]:
            continue
        if work.option[k.SPLIT] == RANGE:
            gain[a] = span(work, a, desk.bounds[k.LOW, a], desk.bounds[k.HIGH, a]) - 1
            scale[a] = work.column[k.WIDTH, a] - 1
            if work.option[k.WEIGHED]:
                gain[a] = _rounded(work.column[k.IMPORTANCE, a] / ONE * (gain[a] / scale[a]))
                scale[a] = 1
        elif work.option[k.SPLIT] == BY_ENTROPY:
            gain[a] = _rounded(work.column[k.IMPORTANCE, a] / ONE * _entropy(work, desk, a, lo, hi, size))
        elif gain[a] == NONE:
            continue
        at = several
        while at > 0 and gain[a] * scale[order[at - 1]] > gain[order[at - 1]] * scale[a]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = a
        several += 1
    return order[:several]


@inner
def _copy(source: Ints, target: Ints) -> None:
    for i in range(len(source)):  # an assignment of slices takes seconds to compile
        target[i] = source[i]


@inner
def _divide(work: Work, desk: Desk, lo: int, hi: int, edges: Ints) -> int:
    """Split a group once, if that is allowed; how many parts it has then, and where they begin."""
    size = bounds_of(work, lo, hi, desk.bounds[k.LOW], desk.bounds[k.HIGH])
    if hi - lo < 2 or size < 2 * work.option[k.LEAST]:
        return 1
    open_group(work, desk, lo, hi)
    parts = 1
    gain, scale = np.empty(len(work.place), np.int64), np.empty(len(work.place), np.int64)
    for a in ranked(work, desk, lo, hi, size, gain, scale, edges):
        parts = try_column(work, desk, a, lo, hi, size)
        if parts > 1:
            break
    close_group(work, desk)
    if parts > 1:
        place(work, desk, lo, hi, parts, edges)
    return parts


@outer
def grow(work: Work, lo: int, hi: int, small: int) -> tuple[Ints, int, int]:
    """Split a segment until nothing more is allowed, or once only if it has more items than `small`.

    Marks where groups begin. Returns the edges of what is left to be split, the candidate splits judged, and
    the people in finished groups.
    """
    desk = desk_of(work, hi - lo)
    edges = np.empty(hi - lo + 2, np.int64)
    stack = np.empty((hi - lo + 1, 2), np.int64)
    stack[0, 0], stack[0, 1] = lo, hi
    waiting, finished = 1, 0
    while waiting:
        waiting -= 1
        begin, end = stack[waiting, 0], stack[waiting, 1]
        parts = _divide(work, desk, begin, end, edges)
        for p in range(parts if parts > 1 else 0, 0, -1):
            work.level[edges[p - 1]] = work.level[begin] + 1  # the first part begins where the group did: it comes last
        if parts == 1:
            for i in range(begin, end):
                finished += work.item[k.WEIGHT, work.order[i]]
        elif end - begin > small:
            return edges[: parts + 1].copy(), desk.checked[0], finished
        for p in range(parts if parts > 1 else 0):
            stack[waiting, 0], stack[waiting, 1] = edges[p], edges[p + 1]
            waiting += 1
    return edges[:0].copy(), desk.checked[0], finished
