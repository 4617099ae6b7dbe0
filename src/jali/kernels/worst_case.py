"""Compiled worst case: the vectors of a group, and the few groups of many that matter. See `principles.worst_case`."""
# mypy: disable-error-code="untyped-decorator,no-any-return"
# numba's decorator has no types, and so what a kernel calls returns Any.
# ruff: noqa: PLR0917
# Kernels call each other by position.

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jali.core.arrays import Floats, Ints
from jali.kernels.jit import inner, outer, prepare
from jali.principles.worst_case import MARGIN

FAR = 1e300
"""More than any ratio; `worst_case.NEVER`."""


BASE = 1 << 31
"""Large numbers are digits to this base: a digit times a factor below it fits into 64 bits."""


@inner
def ranked(counts: Ints, upto: Ints) -> tuple[int, int]:
    """People of a group and how many values they have, from its counts in ascending order.

    How many of them have one of its 1, 2, … most frequent values goes into `upto`.
    """
    values, size, filled = len(counts), 0, 0
    for n in counts:
        size += n
        filled += n != 0
    upto[0] = 0
    for m in range(1, len(upto)):
        upto[m] = upto[m - 1] + (counts[values - m] if m <= values else 0)
    return size, filled


@inner
def free_vector(size: int, upto: Ints, best: Floats, free: Floats) -> None:
    """MINIMIZE1 for 0 … most atoms, into `free`; `best` is room for (most + 1, most + 1)."""
    most = len(free) - 1
    for p in range(most + 1):
        for m in range(p, most + 1):
            best[p, m] = FAR
    best[0, 0] = 1.0
    for atoms in range(most, 0, -1):
        for person in range(most // atoms):
            left = size - person
            false = 1.0 if left <= 0 else max(left - upto[atoms], 0) / left
            for said in range(person * atoms, most + 1 - atoms):
                now = best[person, said] * false
                best[person + 1, said + atoms] = min(best[person + 1, said + atoms], now)
    for m in range(most + 1):
        free[m] = FAR
    for p in range(most + 1):
        for m in range(p, most + 1):
            free[m] = min(free[m], best[p, m])


@inner
def rank_seen(counts: Ints, seen: Ints, upto: Ints, unknown: int) -> None:
    """How many people of a group have one of its 1, 2, … most frequent values, into `upto`; it has those in `seen`.

    `unknown` stands for a missing value, which is none.
    """
    ranks = len(upto) - 1
    for m in range(ranks + 1):
        upto[m] = 0
    for v in seen:
        n, m = counts[v], ranks
        if n > upto[ranks] and v != unknown:
            while m > 1 and upto[m - 1] < n:
                upto[m] = upto[m - 1]
                m -= 1
            upto[m] = n
    for m in range(1, ranks + 1):
        upto[m] += upto[m - 1]


@inner
def safe_alone(counts: Ints, seen: Ints, unknown: int, size: int, k: int, bound: float, p: int, q: int) -> bool:
    """Whether the least ratio of a group by itself exceeds p / q (`bound` as a float), exactly; see `Safety.alone`.

    `size` is of the people whose value is known.
    """
    upto, free, best = np.empty(k + 2, np.int64), np.empty(k + 2), np.empty((k + 2, k + 2))
    rank_seen(counts, seen, upto, unknown)
    free_vector(size, upto, best, free)
    ratio = free[k + 1] * (size / upto[1])
    if abs(ratio - bound) > MARGIN * bound:
        return ratio > bound
    return _exactly_safe(size, upto, p, q)


@inner
def _exactly_safe(size: int, upto: Ints, p: int, q: int) -> bool:
    """The same in whole numbers: no way to spread the atoms over people reaches p / q or less."""
    most = len(upto) - 1
    parts, people = np.zeros(most + 1, np.int64), 1  # atoms of each person, in descending order
    parts[0] = most
    above, below = np.empty(most + 4, np.int64), np.empty(most + 4, np.int64)
    while True:
        if people <= size:
            above[:] = 0
            below[:] = 0
            above[0] = below[0] = 1
            _times(above, size)
            _times(above, q)
            _times(below, upto[1])
            _times(below, p)
            for i in range(people):
                _times(above, max(size - i - upto[parts[i]], 0))
                _times(below, size - i)
            if not _exceeds(above, below):
                return False
        ones = 0
        while people > 0 and parts[people - 1] == 1:  # the next way: take one from the last part above 1 …
            people -= 1
            ones += 1
        if people == 0:
            return True
        parts[people - 1] -= 1
        ones += 1
        while ones > 0:  # … and give all that is left in parts as large as that
            parts[people] = min(ones, parts[people - 1])
            ones -= parts[people]
            people += 1


@inner
def _times(digits: Ints, factor: int) -> None:
    carry = 0
    for i in range(len(digits)):
        amount = digits[i] * factor + carry
        digits[i], carry = amount % BASE, amount // BASE


@inner
def _exceeds(first: Ints, second: Ints) -> bool:
    for i in range(len(first) - 1, -1, -1):
        if first[i] != second[i]:
            return first[i] > second[i]
    return False


@inner
def _enter(value: float, group: int, values: Floats, groups: Ints, wanted: int) -> None:
    """Put a group into a list of the least values, which is full of far ones at first."""
    at = wanted - 1
    if value >= values[at]:
        return
    while at > 0 and value < values[at - 1]:
        values[at], groups[at] = values[at - 1], groups[at - 1]
        at -= 1
    values[at], groups[at] = value, group


@inner
def _may_matter(size: int, upto: Ints, values: Floats, least: Floats) -> bool:
    """Whether a group might enter one of the lists, by a lower bound of its vectors that is cheap to compute.

    Person i is at most the (most / atoms)-th where people before have as many atoms each, so that the atoms are all
    false at least with the probability that they are with so few people left; then the order of people is forgotten.
    """
    k = values.shape[1] - 1
    least[0] = 1.0
    for m in range(1, k + 2):
        least[m] = 2.0
    for atoms in range(1, k + 2):
        left = size - (k + 1) // atoms + 1
        false = max(left - upto[atoms], 0) / left if left > 0 else 0.0
        for m in range(atoms, k + 2):
            least[m] = min(least[m], least[m - atoms] * false)
    scale = size / upto[1]
    for m in range(k + 1):
        if least[m + 1] * scale < values[1, m, k - m] or (m > 0 and least[m] < values[0, m, k - m + 1]):
            return True
    return False


@outer
def choose(counts: Ints, first: int, values: Floats, groups: Ints, share: Floats, barest: Ints) -> tuple[int, int, int]:
    """Look at groups and keep those that matter for 0 … k implications; the least and largest count, fewest values.

    counts: rows of counts in ascending order, numbered from `first`; values, groups: (2, k + 1, k + 2), the groups with
    the least vector without and with the target for each number of atoms, see `worst_case.candidates`; share, barest:
    (k + 1,), the largest disclosure by negations and its group.
    """
    k, lowest, highest, fewest = values.shape[1] - 1, counts[0, 0], counts[0, -1], counts.shape[1]
    upto, free, best = np.empty(k + 2, np.int64), np.empty(k + 2), np.empty((k + 2, k + 2))
    for row in range(len(counts)):
        size, filled = ranked(counts[row], upto)
        lowest, highest, fewest = min(lowest, counts[row, 0]), max(highest, counts[row, -1]), min(fewest, filled)
        may, scale = _may_matter(size, upto, values, free), size / upto[1]
        if may:
            free_vector(size, upto, best, free)
        for m in range(k + 1):
            if may and m > 0:
                _enter(free[m], first + row, values[0, m], groups[0, m], k - m + 2)
            if may:
                _enter(free[m + 1] * scale, first + row, values[1, m], groups[1, m], k - m + 1)
            left = size - upto[m + 1] + upto[1]
            if upto[1] >= (1 - MARGIN) * share[m] * left and upto[1] / left > share[m]:  # few need the division
                share[m], barest[m] = upto[1] / left, first + row
    return lowest, highest, fewest


AT_ONCE = 1 << 13
"""Rows that are sorted and looked at together: few enough to stay in the processor's cache."""


@dataclass(frozen=True, eq=False)
class Few:
    """The groups of many that matter for the worst case, and what was seen on the way."""

    groups: Ints
    lowest: int  # of all counts
    highest: int
    fewest: int  # values that somebody has, in any group


def few_that_matter(counts: NDArray[np.integer], k: int) -> Few:
    """Rows among which are those of a worst attack with up to k implications, and with up to k negations.

    counts: (groups, values). The rows are those of `principles.worst_case.candidates` where no two groups are equal in
    what they are chosen for. They are right only if no count is negative and no group empty, which the result says.
    """
    prepare(choose, "the worst case")

    def look(begins: list[int]) -> tuple[Ints, list[tuple[int, int, int]]]:
        values = np.full((2, k + 1, k + 2), FAR)
        groups = np.full((2, k + 1, k + 2), -1, dtype=np.int64)
        share, barest = np.zeros(k + 1), np.full(k + 1, -1, dtype=np.int64)
        seen = []
        for begin in begins:
            block = np.sort(counts[begin : begin + AT_ONCE], axis=1).astype(np.int64, copy=False)
            seen.append(choose(block, begin, values, groups, share, barest))
        return np.concatenate([groups.ravel(), barest]), seen

    workers = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    begins = list(range(0, len(counts), AT_ONCE))
    with ThreadPoolExecutor(workers) as pool:
        found = list(pool.map(look, [begins[w::workers] for w in range(min(workers, len(begins)))]))
    groups = np.unique(np.concatenate([one for one, _ in found]))
    lowest, highest, fewest = zip(*(block for _, seen in found for block in seen), strict=True)
    return Few(groups[groups >= 0], min(lowest), max(highest), min(fewest))
