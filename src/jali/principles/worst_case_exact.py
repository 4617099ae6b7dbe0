"""Worst-case background knowledge in exact fractions, and the attack that attains it. See `worst_case`."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from jali.principles.counts import Ints
from jali.principles.worst_case import Buckets, candidates, least_false, targeted

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
    """Each group as a value: groups with equal keys cannot be told apart."""
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


def combined(first: Vector, second: Vector) -> Vector:
    """The (min, ×) convolution."""
    return tuple(min(first[i] * second[m - i] for i in range(m + 1)) for m in range(len(first)))


def near_candidates(buckets: Buckets, k: int) -> Ints:
    """Groups that matter, no more than k + 2 of those that cannot be told apart: none is left out for its rounding."""
    free = least_false(buckets, k + 1)
    found = candidates(free[:-1], targeted(free, buckets), margin=MARGIN)
    seen: dict[Key, int] = {}
    kept = []
    for index, key in zip(found.tolist(), keys_of(buckets.take(found)), strict=True):
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
        before = combined(free, aimed)
        target = before if target is None else tuple(map(min, before, combined(target, alone)))
        free = combined(free, alone)
    assert target is not None, "there is at least one group"
    return target[k]


class GroupRatios:
    """The least ratio of attacks on single groups, exactly: the others are combined once."""

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
                free = combined(free, vectors(one, self.k)[0])
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
