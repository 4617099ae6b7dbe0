"""Which rows a join may drop: rows that cannot become the worst cell whatever they are joined with.

Every principle that is judged here is closed under adding groups, and unmoved by their scale: the vectors that keep it
are a convex cone. Joining multiplies vectors value by value, which keeps sums, so that a vector that is a sum of
multiples of others in its block can go: if it leads to a breach, so does one of them (Theorem 7.1).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from jali.principles.counts import Floats, Ints

INSIDE = 1e-12
"""A point is dropped only if it lies deeper than this within the hull of the others, in shares."""

HULL_VALUES = 3
"""Hulls are computed for up to so many sensitive values, in the line or the plane of their shares.

With more, almost every vector is a corner of the hull, and finding out costs more than the join that it would avoid.
"""


def hull(rows: Floats, block: Ints) -> Ints:
    """Keep the corners of each block's convex hull of shares; (rows, at most HULL_VALUES)."""
    shares = rows / rows.sum(axis=1, keepdims=True)
    if rows.shape[1] == 1:
        return np.unique(block, return_index=True)[1].astype(np.int64)
    x, y = shares[:, 0], shares[:, -1] if rows.shape[1] == 3 else np.zeros(len(rows))
    order = np.lexsort((y, x, block))
    starts = np.flatnonzero(np.diff(block[order], prepend=-1))
    kept: list[int] = []
    for one in np.split(order, starts[1:]):
        kept.extend(_corners(one.tolist(), x, y) if len(one) > 2 else one.tolist())
    return np.array(sorted(kept), dtype=np.int64)


def _corners(order: list[int], x: Floats, y: Floats) -> set[int]:
    """Andrew's monotone chains over points in ascending order, both ways; the ends are always kept."""
    found: set[int] = set()
    for points in (order, order[::-1]):
        chain: list[int] = []
        for c in points:
            while len(chain) >= 2:
                a, b = chain[-2], chain[-1]
                turn = (x[b] - x[a]) * (y[c] - y[a]) - (y[b] - y[a]) * (x[c] - x[a])
                if turn > -INSIDE and turn != 0.0:  # in ascending order, b on the line through a and c lies between
                    break
                chain.pop()
            chain.append(c)
        found.update(chain)
    return found


def ratio(rows: Floats, block: Ints) -> Ints:
    """Keep, in each block and for each ordered pair of values, a row with the largest ratio of the two.

    Enough for recursive (c, l)-diversity when l is the number of values: a cell breaks it through one pair, and joining
    multiplies all ratios of the pair by the same number. A row without the second value has an infinite ratio.
    """
    kept: list[Ints] = []
    with np.errstate(divide="ignore"):
        logs = np.log(rows)
    for s in range(rows.shape[1]):
        has = np.flatnonzero(rows[:, s] > 0)
        for other in range(rows.shape[1]):
            if other != s:
                apart = logs[has, s] - logs[has, other]
                order = has[np.lexsort((-apart, block[has]))]
                kept.append(order[np.flatnonzero(np.diff(block[order], prepend=-1))])
    return np.unique(np.concatenate(kept)) if kept else np.arange(len(rows))


def proportional(rows: Floats, block: Ints) -> Ints:
    """Keep one of the rows of a block that are multiples of each other, digit by digit: for any number of values."""
    return distinct(rows / rows.sum(axis=1, keepdims=True), block)


def support(rows: Floats, block: Ints) -> Ints:
    """Keep one of the rows of a block that have the same values: all that distinct diversity looks at."""
    return distinct((rows > 0).astype(np.float64), block)


def distinct(rows: Floats, block: Ints) -> Ints:
    """Keep the first of the equal rows of each block."""
    keyed = np.ascontiguousarray(np.column_stack([block.astype(np.float64), rows + 0.0]))
    raw = keyed.view(np.dtype((np.void, keyed.dtype.itemsize * keyed.shape[1]))).reshape(-1)
    return np.sort(np.unique(raw, return_index=True)[1]).astype(np.int64)


def capped(k: int, *, dominance_from: int = 64) -> Callable[[Floats, Ints], Ints]:
    """For bounds capped at k: keep one of equal rows, and none that is nowhere smaller than one with the same values.

    Rows with other values do not compare: (1, 0) ≤ (1, 2), but joined with (0, 3) they bound by 0, which is fine, and
    by 2, which is a breach.
    """

    def keep(rows: Floats, block: Ints) -> Ints:
        first = distinct(np.minimum(rows, k), block)
        return first if len(first) < dominance_from else _smallest(first, np.minimum(rows, k), block, equal=True)

    return keep


def smallest(rows: Floats, block: Ints) -> Ints:
    """Keep the rows that are nowhere larger than any other of their block: for relaxed checks, where 0 is a breach."""
    return _smallest(distinct(rows, block), rows, block, equal=False)


def _smallest(first: Ints, rows: Floats, block: Ints, *, equal: bool) -> Ints:
    """Of different rows, those that no other one of their block (and support, if `equal`) is at most everywhere."""
    key = np.column_stack([block[first], *((rows[first] > 0).T if equal else ())])
    _, family = np.unique(key, axis=0, return_inverse=True)
    order = np.lexsort((rows[first].sum(axis=1), family.reshape(-1)))
    starts = np.flatnonzero(np.diff(family.reshape(-1)[order], prepend=-1))
    kept: list[int] = []
    for one in np.split(first[order], starts[1:]):
        left = one
        while len(left):
            kept.append(int(left[0]))
            left = left[(rows[left] < rows[left[0]]).any(axis=1)]
    return np.array(sorted(kept), dtype=np.int64)
