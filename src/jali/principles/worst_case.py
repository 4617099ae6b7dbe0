"""Worst-case background knowledge: the most that an attacker who knows k more facts can learn from groups of people.

The worst k implications all point to one atom A, "person p has value s" (Theorem 9 of Martin et al. 2007). Then the
disclosure is 1 / (1 + r), where r is the least of Pr(A and its premises are all false) / Pr(A). People of different
groups are independent, so with f(m) the least probability that m atoms about one group are all false (MINIMIZE1),

    r = min over the group of A, j and the m_i with j + Σ m_i = k of  f(j + 1) · n / n(s₀) · Π over other groups f(m_i).

Products under a minimum are a semiring: each group is a vector without the target, f(0 … k), and one with it,
f(1 … k + 1) · n / n(s₀), and all groups together are their (min, ×) convolution. Both vectors fall as m grows, so that
knowledge may also be wasted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jali.principles.counts import Bools, Cells, Floats, Ints

AT_ONCE = 1 << 18
"""Numbers worked on at a time: they stay in the processor's cache."""

NEVER = 1e300
"""The ratio of a target that is not there: times a probability of zero it is zero, unlike infinity."""


@dataclass(frozen=True, eq=False)
class Buckets:
    """Groups as the worst case sees them: how many people, and how often their most frequent values occur."""

    size: Ints  # (groups,) at least 1
    top: Ints  # (ranks, groups) the largest counts in descending order, 0 where a group has fewer values

    def __len__(self) -> int:
        return len(self.size)

    def take(self, which: NDArray[Any] | slice) -> Buckets:
        """Some of the groups."""
        return Buckets(self.size[which], self.top[:, which])


def of_cells(cells: Cells, ranks: int) -> Buckets:
    """Groups of sparse counts; every group must have people in it."""
    return of_sparse(cells.group, cells.n, cells.groups, ranks)


def of_sparse(group: Ints, n: Ints, groups: int, ranks: int) -> Buckets:
    """Groups of counts above 0, sorted by group, every group with at least one."""
    order = np.lexsort((-n, group))
    start = np.searchsorted(group, np.arange(groups))
    rank = np.arange(len(group)) - start[group]
    inside = rank < ranks
    top = np.zeros((ranks, groups), dtype=np.int64)
    top[rank[inside], group[inside]] = n[order][inside]
    return Buckets(np.add.reduceat(n, start), top)


def of_matrix(counts: NDArray[np.integer], ranks: int) -> Buckets:
    """Groups of a matrix of counts, groups × values."""
    groups, values = counts.shape
    top = np.zeros((ranks, groups), dtype=np.int64)
    kept = min(ranks, values)
    rows = 1 + AT_ONCE // values
    for begin in range(0, groups, rows):
        block = slice(begin, begin + rows)
        part = counts[block]
        if kept < values:
            part = np.partition(part, values - kept, axis=1)[:, values - kept :]
        top[:kept, block] = np.sort(part, axis=1)[:, ::-1].T
    return Buckets(counts.sum(axis=1, dtype=np.int64), top)


def least_false(buckets: Buckets, most: int) -> Floats:
    """MINIMIZE1 for 0 … `most` atoms: the least probability that all of them are false: (most + 1, groups).

    Person i is said to have one of the k_i most frequent values, k_0 ≥ k_1 ≥ …, which is false with probability
    (n - i - n(s₀) - … - n(s_{k_i - 1})) / (n - i) once it is false for those before (Lemma 12, Equation 2).
    """
    found = np.empty((most + 1, len(buckets)))
    groups = 1 + AT_ONCE // (most + 1) ** 2
    for begin in range(0, len(buckets), groups):
        block = slice(begin, begin + groups)
        found[:, block] = _least_false(buckets.take(block), most)
    return found


def _least_false(buckets: Buckets, most: int) -> Floats:
    upto = np.cumsum(buckets.top[:most], axis=0)  # (ranks, groups) people who have one of the most frequent values
    best = [np.full((most + 1, len(buckets)), NEVER) for _ in range(most + 1)]  # by people who are in it, and atoms
    best[0][0] = 1.0
    for atoms in range(most, 0, -1):
        for person in range(most // atoms):  # those before have at least as many atoms each
            left = buckets.size - person
            false = np.maximum(left - upto[min(atoms, len(upto)) - 1], 0) / np.maximum(left, 1)
            false[left <= 0] = 1.0  # nobody is left: the atoms are wasted
            before = best[person][person * atoms : most + 1 - atoms]
            after = best[person + 1][(person + 1) * atoms :]
            np.minimum(after, before * false, out=after)
    return np.asarray(np.minimum.reduce(best), dtype=np.float64)


def targeted(free: Floats, buckets: Buckets) -> Floats:
    """The vectors with the target: f(1 … k + 1) · n / n(s₀), from f(0 … k + 1): (k + 1, groups)."""
    return np.asarray(free[1:] * (buckets.size / buckets.top[0]), dtype=np.float64)


# -- the semiring -------------------------------------------------------------------------------------------------


def combined(first: Floats, second: Floats) -> Floats:
    """The (min, ×) convolution of vectors side by side: min over i of first[i] · second[m - i]: (k + 1, …)."""
    result = first[0] * second
    for i in range(1, len(first)):
        np.minimum(result[i:], first[i] * second[: len(second) - i], out=result[i:])
    return np.asarray(result, dtype=np.float64)


def folded(free: Floats, target: Floats) -> tuple[Floats, Floats]:
    """All groups together, without and with the target: (k + 1,) each, from (k + 1, groups)."""
    if free.shape[1] == 0:
        return np.ones(len(free)), np.full(len(free), NEVER)
    while free.shape[1] > 1:
        if free.shape[1] % 2:
            free = np.hstack([free, np.ones((len(free), 1))])
            target = np.hstack([target, np.full((len(free), 1), NEVER)])
        left, right = free[:, ::2], free[:, 1::2]
        target = np.minimum(combined(left, target[:, 1::2]), combined(right, target[:, ::2]))
        free = combined(left, right)
    return free[:, 0], target[:, 0]


def without_each(free: Floats) -> Floats:
    """For each group, all the others together, without a target: (k + 1, groups)."""
    atoms, groups = free.shape
    before, after = np.ones((atoms, groups)), np.ones((atoms, groups))
    for g in range(1, groups):
        before[:, g] = combined(before[:, g - 1], free[:, g - 1])
        after[:, -1 - g] = combined(after[:, -g], free[:, -g])
    return combined(before, after)


# -- few groups matter --------------------------------------------------------------------------------------------


def candidates(free: Floats, target: Floats, *, margin: float = 0.0) -> Ints:
    """Groups among which there are some that attain the least ratio for every number of atoms up to k, and its parts.

    Say a group with m ≥ 1 atoms is not among the k - m + 2 with the least f(m). At most k - m other groups and that of
    the target have atoms, so one of the k - m + 2 has none, and takes over the m atoms without loss. Likewise a target
    with j atoms beside it is among the k - j + 1 with the least vector at j. `margin` adds those that are within so
    much of these, relative to them. free: (k + 1, groups), f(0 … k); target: (k + 1, groups).
    """
    k, groups = len(free) - 1, free.shape[1]
    chosen = np.zeros(groups, dtype=bool)
    for m in range(1, k + 1):
        chosen |= _smallest(free[m], k - m + 2, margin)
    for j in range(k + 1):
        chosen |= _smallest(target[j], k - j + 1, margin)
    return np.flatnonzero(chosen)


def _smallest(values: Floats, wanted: int, margin: float) -> Bools:
    chosen = np.zeros(len(values), dtype=bool)
    if wanted >= len(values):
        chosen[:] = True
        return chosen
    which = np.argpartition(values, wanted - 1)[:wanted]
    most = values[which].max()
    if margin and most > 0:  # zeros are exact, and enough of them are enough
        return np.asarray(values <= most * (1 + margin), dtype=bool)
    chosen[which] = True
    return chosen


# -- answers ------------------------------------------------------------------------------------------------------


def least_ratios(buckets: Buckets, k: int) -> Floats:
    """The least ratio r for 0 … k implications: (k + 1,)."""
    free = least_false(buckets, k + 1)
    target, free = targeted(free, buckets), free[:-1]
    few = candidates(free, target)
    return folded(free[:, few], target[:, few])[1]


def group_ratios(buckets: Buckets, k: int) -> Floats:
    """The least ratio of an attack with k implications whose target is in each group: (groups,)."""
    free = least_false(buckets, k + 1)
    target, free = targeted(free, buckets), free[:-1]
    few = candidates(free, target)
    together, _ = folded(free[:, few], target[:, few])
    result = _with_others(target, together[:, None])
    result[few] = _with_others(target[:, few], without_each(free[:, few]))
    return result


def _with_others(target: Floats, others: Floats) -> Floats:
    """min over j of target[j] · others[k - j]: (groups,)."""
    return np.asarray((target * others[::-1]).min(axis=0), dtype=np.float64)


def alone_ratios(buckets: Buckets, k: int) -> Floats:
    """The least ratio of each group if it were the only one: (groups,)."""
    return np.asarray(targeted(least_false(buckets, k + 1), buckets)[k], dtype=np.float64)


def disclosed(ratio: Floats) -> Floats:
    """The disclosure that belongs to a least ratio: 1 / (1 + r)."""
    return np.asarray(1.0 / (1.0 + ratio), dtype=np.float64)


def by_negations(buckets: Buckets, k: int) -> tuple[Ints, Ints]:
    """The largest disclosure of ruling out k values of one person of each group, as n(s₀) and what is left: (groups,).

    n(s₀) / (n - n(s₁) - … - n(s_k)): what l-diversity guards against. Ruling out values of others helps no more, since
    each such fact leaves one place less for one person who lacks s₀, and so does ruling out a value of the target.
    """
    return buckets.top[0], buckets.size - buckets.top[1 : k + 1].sum(axis=0)
