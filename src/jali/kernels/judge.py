"""Compiled parts of Mondrian: what the kernels work on, judging a group by its counts, and sorting its items.

Groups are segments of one index array. Kernels release the GIL, so that two threads work on different segments.
Arrays of one shape are rows of one array, with a name for each row: compiling takes time for every array passed on.
"""
# mypy: disable-error-code="untyped-decorator,no-any-return"
# numba's decorator has no types, and so what a kernel calls returns Any.
# ruff: noqa: PLR0917
# Kernels call each other by position.

from __future__ import annotations

from math import log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jali.core.arrays import Bools, Ints
from jali.kernels.jit import inner
from jali.kernels.worst_case import safe_alone
from jali.principles.rules import (
    CLOSENESS,
    COLUMN,
    DISTINCT,
    ENTROPY,
    KIND,
    LARGEST,
    RECURSIVE,
    SAFETY,
    SIZE,
    UNKNOWN,
    L,
    P,
    Q,
)

__all__ = [
    "Desk",
    "Work",
    "heapsort",
    "holds",
    "level_of",
    "sort",
    "span",
    "tally",
    "tally_bucket",
    "untally_bucket",
]

COMBINATION, WEIGHT, START = range(3)
TREE, WIDTH, VALUES, OFFSET, IMPORTANCE = range(5)
NODE, LEAVES = range(2)
LEAST, RELAXED, SPLIT, WEIGHED = range(4)
WHOLE, LEFT, RIGHT, SEEN = range(4)
KEY, BY_KEY, EDGE, HEFT, PART, ROOM = range(6)
LOW, HIGH = range(2)


class Work(NamedTuple):
    """What all threads share: the items, the rules, and the index array in which groups are segments."""

    item: Ints  # (3, items + 1): combination, people, where the item's entries begin
    entry: Ints  # (1 + judged columns, entries): people, then the value in each judged column
    place: NDArray[np.int32]  # (columns, combinations)
    column: Ints  # (5, columns): whether it has a tree, its width, its values, where its nodes begin, its importance
    node: Ints  # (2, …): nodes, and the leaves under them; see Columns
    rule: Ints  # (6, rules), bound, counted, reference: see Rules
    bound: NDArray[np.float64]
    counted: Bools
    reference: Ints
    option: Ints  # (4,): the least people of a group, whether relaxed, which split, whether columns are weighed
    order: Ints  # (items,) items, group by group
    level: Ints  # (items,) where a group begins, one more than the cuts that made it; elsewhere 0


class Desk(NamedTuple):
    """What one thread needs to look at one group: counts of values, and room for sorting its items."""

    counts: Ints  # (4, judged columns, values): people of the group, of a part, of the rest; the values that it has
    kinds: Ints  # (judged columns,) how many values it has
    room: Ints  # (6, items + 1): sort key; positions by key; where each bucket of equal keys begins; people of each
    #             bucket; the part of each position; spare
    bounds: Ints  # (2, columns): lowest and highest place
    checked: Ints  # (1,) candidate splits judged


@inner
def holds(work: Work, desk: Desk, n: Ints, size: int) -> bool:  # noqa: PLR0912  # one branch a kind of rule
    """Whether a group with these counts (judged columns, values) keeps every rule, exactly as principles judge it."""
    seen, kinds = desk.counts[SEEN], desk.kinds
    for r in range(work.rule.shape[1]):
        kind, c, p, q = work.rule[KIND, r], work.rule[COLUMN, r], work.rule[P, r], work.rule[Q, r]
        if kind == SIZE:
            if size < p:
                return False
            continue
        unknown, known = work.rule[UNKNOWN, r], size
        if unknown >= 0:
            for i in range(kinds[c]):  # what was not seen in this group may still be there from another
                known -= n[c, unknown] if seen[c, i] == unknown else 0
        if known == 0:
            continue
        if kind == SAFETY:
            if not safe_alone(n[c], seen[c, : kinds[c]], unknown, known, work.rule[L, r], work.bound[r], p, q):
                return False
            continue
        distinct, largest, moved, surprise = 0, 0, 0, 0.0
        table = work.reference[c].sum() if kind == CLOSENESS else 0
        for i in range(kinds[c]):
            v = seen[c, i]
            people = n[c, v]
            if people == 0 or v == unknown:
                continue
            distinct += 1
            if work.counted[r, v]:
                largest = max(largest, people)
            if kind == ENTROPY:
                surprise -= people / known * log(people / known)
            elif kind == CLOSENESS:
                moved += max(people * table - known * work.reference[c, v], 0)
        if kind == DISTINCT and distinct < p:
            return False
        if kind == LARGEST and largest * q > known * p:
            return False
        if kind == ENTROPY and surprise < work.bound[r]:
            return False
        if kind == CLOSENESS and moved * q > known * table * p:
            return False
        if kind == RECURSIVE and largest * q >= _tail(n[c], seen[c, : kinds[c]], known, work.rule[L, r], unknown) * p:
            return False
    return True


@inner
def judge_entries(
    judged: Ints, work: Work, desk: Desk, values: NDArray[np.int32], people: NDArray[np.int32], size: int
) -> bool:
    """Whether a group with these people of these joint values keeps every promise."""
    counts, seen, kinds = desk.counts[LEFT], desk.counts[SEEN], desk.kinds
    for c in range(len(judged)):
        kinds[c] = 0
        for e in range(len(values)):
            v = judged[c, values[e]]
            if counts[c, v] == 0:
                seen[c, kinds[c]] = v
                kinds[c] += 1
            counts[c, v] += people[e]
    kept = holds(work, desk, counts, size)
    for c in range(len(judged)):
        for s in range(kinds[c]):
            counts[c, seen[c, s]] = 0
    return kept


@inner
def _tail(n: Ints, seen: Ints, size: int, l: int, unknown: int) -> int:
    """r_l + r_l+1 + …, counts in descending order: everybody who is known without the l - 1 largest counts."""
    above, out = size + 1, 0  # counts of at least `above` are out already
    while out < l - 1:
        largest = equal = 0
        for v in seen:
            if v == unknown:
                continue
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
def tally(work: Work, desk: Desk, lo: int, begin: int, end: int) -> None:
    """Add the sorted positions from begin to end to the counts of the part; take them away if end comes first."""
    sign = 1 if end > begin else -1
    for i in range(min(begin, end), max(begin, end)):
        item = work.order[lo + desk.room[BY_KEY, i]]
        for e in range(work.item[START, item], work.item[START, item + 1]):
            for c in range(len(work.entry) - 1):
                desk.counts[LEFT, c, work.entry[1 + c, e]] += sign * work.entry[0, e]


@inner
def tally_bucket(work: Work, desk: Desk, lo: int, b: int) -> None:
    """Add one bucket to the counts of the part."""
    tally(work, desk, lo, desk.room[EDGE, b], desk.room[EDGE, b + 1])


@inner
def untally_bucket(work: Work, desk: Desk, lo: int, b: int) -> None:
    """Take one bucket away from the counts of the part."""
    tally(work, desk, lo, desk.room[EDGE, b + 1], desk.room[EDGE, b])


@inner
def level_of(work: Work, a: int, low: int, high: int) -> int:
    """The lowest level at which two places of a tree lie under one node."""
    level, at = 0, work.column[OFFSET, a]
    while work.node[NODE, at + low] != work.node[NODE, at + high]:
        level += 1
        at += work.column[VALUES, a]
    return level


@inner
def span(work: Work, a: int, low: int, high: int) -> int:
    """How many values of the domain lie between two places, or under the smallest node that covers them."""
    at = work.column[OFFSET, a]
    if not work.column[TREE, a]:
        return work.node[NODE, at + high] - work.node[NODE, at + low] + 1
    return work.node[LEAVES, at + level_of(work, a, low, high) * work.column[VALUES, a] + low]


@inner
def sort(work: Work, desk: Desk, a: int, at: int, lo: int, hi: int) -> int:
    """Sort a group's items by the nodes of their places, in the row at `at`, into buckets; how many that makes."""
    items = hi - lo
    first, last = work.node[NODE, at + desk.bounds[LOW, a]], work.node[NODE, at + desk.bounds[HIGH, a]]
    if last - first < 4 * items + 64:  # counting beats sorting where most keys occur
        begin = np.zeros(last - first + 2, dtype=np.int64)
        for i in range(items):
            key = work.node[NODE, at + work.place[a, work.item[COMBINATION, work.order[lo + i]]]]
            desk.room[KEY, i] = key
            begin[key - first + 1] += 1
        for k in range(last - first):
            begin[k + 1] += begin[k]
        for i in range(items):
            desk.room[BY_KEY, begin[desk.room[KEY, i] - first]] = i
            begin[desk.room[KEY, i] - first] += 1
    else:
        both = desk.room[BY_KEY]
        for i in range(items):
            desk.room[KEY, i] = work.node[NODE, at + work.place[a, work.item[COMBINATION, work.order[lo + i]]]]
            both[i] = desk.room[KEY, i] * items + i
        heapsort(both, items)
        for i in range(items):
            both[i] %= items
    return _buckets(work, desk, lo, items)


@inner
def _buckets(work: Work, desk: Desk, lo: int, items: int) -> int:
    buckets = 0
    for i in range(items):
        if i == 0 or desk.room[KEY, desk.room[BY_KEY, i]] != desk.room[KEY, desk.room[BY_KEY, i - 1]]:
            desk.room[EDGE, buckets], desk.room[HEFT, buckets] = i, 0
            buckets += 1
        desk.room[HEFT, buckets - 1] += work.item[WEIGHT, work.order[lo + desk.room[BY_KEY, i]]]
    desk.room[EDGE, buckets] = items
    return buckets


@inner
def heapsort(a: Ints, length: int) -> None:
    """Sort in place, ascending; numba's own sorts take seconds to compile."""
    for end in range(2 * length - 1, 0, -1):  # first every parent sinks, then the largest goes to the end each time
        root, size = end - length, length
        if end < length:
            a[0], a[end] = a[end], a[0]
            root, size = 0, end
        while 2 * root + 1 < size:
            child = 2 * root + 1
            if child + 1 < size and a[child] < a[child + 1]:
                child += 1
            if a[root] >= a[child]:
                break
            a[root], a[child] = a[child], a[root]
            root = child
