"""Swaps: two private rows exchange some of their values, which no published sum notices; so neither row is certain."""

from __future__ import annotations

import numpy as np

from jali.encoding.frequencies import combine
from jali.principles.counts import Bools, Ints

LOOKED_UP = 2_000_000
"""How many rows that a swap would give are looked up, at most; which of more pairs are tried is drawn, repeatably."""


def swapped(codes: Ints, people: Ints, private: Ints) -> Bools:
    """Members of a group whose private count is another one in some world that differs from the truth by one swap.

    `codes` are the members' values (members, columns), `people` the public count of each, `private` the true one.
    """
    members, columns = codes.shape
    changes = np.zeros(members, dtype=bool)
    present = np.flatnonzero(private)
    masks = [np.array([bool(mask >> i & 1) for i in range(columns)]) for mask in range(1, 1 << (min(columns, 12) - 1))]
    pairs = max(1, LOOKED_UP // max(len(masks), 1))
    one, other = _pairs(present, pairs)
    widths = (codes.max(axis=0, initial=0) + 1).tolist()
    for mask in masks:
        first, second = np.where(mask, codes[one], codes[other]), np.where(mask, codes[other], codes[one])
        both = np.concatenate([codes, first, second])
        number, place = combine([(both[:, i], width) for i, width in enumerate(widths)], len(both))
        at = place[number[members:]]  # the member that shows the same; beyond them where there is none
        c, d = at[: len(one)], at[len(one) :]
        known = (c < members) & (d < members)
        c, d, p, q = c[known], d[known], one[known], other[known]
        apart = (c != p) & (c != q)  # else nothing changes
        room = (private[c] + 1 + (c == d) <= people[c]) & (private[d] + 1 + (c == d) <= people[d])
        for which in (c, d, p, q):
            changes[which[apart & room]] = True
    return changes


def _pairs(present: Ints, most: int) -> tuple[Ints, Ints]:
    """Pairs of present members: all of them, or as many as are drawn."""
    if len(present) * (len(present) - 1) // 2 <= most:
        one, other = np.triu_indices(len(present), 1)
    else:
        random = np.random.default_rng(0)
        one, other = random.integers(0, len(present), (2, most))
        one, other = one[one != other], other[one != other]
    return present[one], present[other]
