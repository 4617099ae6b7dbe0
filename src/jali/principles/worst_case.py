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
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jali.core.arrays import Bools, Floats, Ints, exactly_added, steps
from jali.principles.counts import Cells

AT_ONCE = 1 << 18
"""Numbers worked on at a time: they stay in the processor's cache."""

NEVER = 1e300
"""The ratio of a target that is not there: times a probability of zero it is zero, unlike infinity."""


@dataclass(frozen=True, eq=False)
class Buckets:
    """Groups as the worst case sees them: how many people, and how often their most frequent values occur."""

    size: Ints  # (groups,)
    top: Ints  # (ranks, groups) the largest counts in descending order, 0 where a group has fewer values

    def __len__(self) -> int:
        return len(self.size)

    def take(self, which: NDArray[Any] | slice) -> Buckets:
        """Some of the groups."""
        return Buckets(self.size[which], self.top[:, which])


def of_cells(cells: Cells, ranks: int) -> Buckets:
    """Groups of sparse counts."""
    return of_sparse(cells.group, cells.n, cells.groups, ranks)


def of_sparse(group: Ints, n: Ints, groups: int, ranks: int) -> Buckets:
    """Groups of counts above 0, sorted by group."""
    order = np.lexsort((-n, group))
    start = np.searchsorted(group, np.arange(groups))
    rank = np.arange(len(group)) - start[group]
    inside = rank < ranks
    top = np.zeros((ranks, groups), dtype=np.int64)
    top[rank[inside], group[inside]] = n[order][inside]
    return Buckets(exactly_added(group, n, groups), top)


def of_matrix(counts: NDArray[np.integer], ranks: int) -> Buckets:
    """Groups of a matrix of counts, groups × values."""
    groups, values = counts.shape
    top = np.zeros((ranks, groups), dtype=np.int64)
    kept = min(ranks, values)
    for block in steps(groups, values, AT_ONCE):
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
    vectors = np.empty((most + 1, len(buckets)))
    for block in steps(len(buckets), (most + 1) ** 2, AT_ONCE):
        vectors[:, block] = _least_false(buckets.take(block), most)
    return vectors


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
    """The vectors with the target: f(1 … k + 1) · n / n(s₀), from f(0 … k + 1): (k + 1, groups).

    A group in which nobody's value is known has no target.
    """
    often = np.divide(buckets.size, buckets.top[0], out=np.full(len(buckets), NEVER), where=buckets.top[0] > 0)
    return np.asarray(free[1:] * often, dtype=np.float64)


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
    with j other atoms is among the k - j + 1 with the least vector at j. `margin` adds those that are larger by at most
    this share. free: (k + 1, groups), f(0 … k); target: (k + 1, groups).
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
    which = np.flatnonzero(values == values.min())[:wanted]
    if len(which) < wanted:  # else many groups are alike, of which a partition would take long
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


MARGIN = 1e-9
"""Floats are this much apart, relatively, where they decide; those that are nearer are compared as fractions."""

Key = tuple[int, ...]  # people of a group, then its largest counts
Vector = tuple[Fraction, ...]


@dataclass(frozen=True)
class Share:
    """What an attack says of one group: person i is said to have one of the `atoms[i]` most frequent values."""

    group: int
    atoms: tuple[int, ...]  # in descending order
    target: bool  # whether the first atom of the first person is the target itself


def keys_of(buckets: Buckets) -> list[Key]:
    """Each group as a value: groups with equal keys have equal vectors."""
    rows: list[list[int]] = np.vstack([buckets.size, buckets.top]).T.tolist()
    return [tuple(row) for row in rows]


@lru_cache(maxsize=1 << 14)
def spread(key: Key, most: int) -> tuple[tuple[Fraction, tuple[int, ...]], ...]:
    """For 0 … `most` atoms about one group: the least probability that all are false, and atoms of each person."""
    size, upto = key[0], [0]
    for rank in range(most):
        upto.append(upto[-1] + (key[1 + rank] if 1 + rank < len(key) else 0))
    best: dict[tuple[int, int], tuple[Fraction, tuple[int, ...]]] = {(0, 0): (Fraction(1), ())}
    for atoms in range(most, 0, -1):
        for person in range(min(most // atoms, size)):
            false = Fraction(max(size - person - upto[atoms], 0), size - person)
            for said in range(person * atoms, most + 1 - atoms):
                before, now = best.get((person, said)), (person + 1, said + atoms)
                if before is not None and (now not in best or before[0] * false < best[now][0]):
                    best[now] = (before[0] * false, (*before[1], atoms))
    return tuple(
        min((found for (_, said), found in best.items() if said == m), key=lambda f: f[0]) for m in range(most + 1)
    )


def vectors(key: Key, k: int) -> tuple[Vector, Vector]:
    """The vectors of a group without and with the target, for 0 … k further atoms."""
    free = [probability for probability, _ in spread(key, k + 1)]
    return tuple(free[:-1]), tuple(probability * Fraction(key[0], key[1]) for probability in free[1:])


def combined_exact(first: Vector, second: Vector) -> Vector:
    """The (min, ×) convolution."""
    return tuple(min(first[i] * second[m - i] for i in range(m + 1)) for m in range(len(first)))


def near_candidates(buckets: Buckets, k: int) -> Ints:
    """Groups that matter, no more than k + 2 of those with equal keys; rounding leaves none out."""
    free = least_false(buckets, k + 1)
    some = candidates(free[:-1], targeted(free, buckets), margin=MARGIN)
    seen: dict[Key, int] = {}
    kept = []
    for index, key in zip(some.tolist(), keys_of(buckets.take(some)), strict=True):
        seen[key] = seen.get(key, 0) + 1
        if seen[key] <= k + 2:
            kept.append(index)
    return np.array(kept, dtype=np.int64)


def least_ratio(buckets: Buckets, k: int) -> Fraction:
    """The least ratio r for k implications, exactly."""
    if bool((least_false(buckets, k + 1)[-1] == 0).any()):
        return Fraction(0)  # floats are zero where fractions are, and nothing is worse than certainty
    few = buckets.take(near_candidates(buckets, k))
    free: Vector = (Fraction(1),) * (k + 1)
    target: Vector | None = None
    for key in keys_of(few):
        alone, aimed = vectors(key, k)
        before = combined_exact(free, aimed)
        target = before if target is None else tuple(map(min, before, combined_exact(target, alone)))
        free = combined_exact(free, alone)
    assert target is not None, "there is at least one group"
    return target[k]


class GroupRatios:
    """The least ratio of attacks on single groups, exactly: the others are combined_exact once."""

    def __init__(self, buckets: Buckets, k: int) -> None:
        self.k, self.keys = k, keys_of(buckets.take(near_candidates(buckets, k)))
        self._others: dict[Key | None, Vector] = {}

    def of(self, key: Key) -> Fraction:
        """The least ratio of a group, one of those that the table has."""
        others = self._without(key if key in self.keys else None)
        _, aimed = vectors(key, self.k)
        return min(aimed[j] * others[self.k - j] for j in range(self.k + 1))

    def _without(self, key: Key | None) -> Vector:
        if key not in self._others:
            rest = list(self.keys)
            if key is not None:
                rest.remove(key)
            free: Vector = (Fraction(1),) * (self.k + 1)
            for one in rest:
                free = combined_exact(free, vectors(one, self.k)[0])
            self._others[key] = free
        return self._others[key]


def worst_attack(buckets: Buckets, k: int) -> tuple[Fraction, tuple[Share, ...]]:
    """The least ratio for k implications, and what an attack that attains it says of each group."""
    few = near_candidates(buckets, k)
    keys = keys_of(buckets.take(few))
    State = tuple[int, bool]  # atoms said so far, and whether the target is among them
    best: dict[State, tuple[Fraction, tuple[Share, ...]]] = {(0, False): (Fraction(1), ())}
    for group, key in zip(few.tolist(), keys, strict=True):
        after = dict(best)
        for (said, aimed), (ratio, shares) in best.items():
            for target in (False,) if aimed else (False, True):
                for more in range(0 if target else 1, k - said + 1):
                    probability, atoms = spread(key, k + 1)[more + target]
                    now = probability * (Fraction(key[0], key[1]) if target else 1) * ratio
                    state = (said + more, aimed or target)
                    if state not in after or now < after[state][0]:
                        after[state] = (now, (*shares, Share(int(group), atoms, target)))
        best = after
    found = [best[state] for state in sorted(best) if state[1]]
    return min(found, key=lambda attack: attack[0])  # the first of equal ones says least
