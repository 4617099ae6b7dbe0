"""Compiled existence: the least and the greatest probability of many groups, fast enough to try many shifts.

The same way as `existence`, which says it for every member. Likelihoods are products over columns and can lie any
number of decades apart, so all of them are logarithms here.
"""
# mypy: disable-error-code="untyped-decorator,no-any-return"
# numba's decorator has no types, and so what a kernel calls returns Any.
# ruff: noqa: PLR0917
# Kernels call each other by position.

from __future__ import annotations

from math import ceil, exp, log, sqrt

import numpy as np

from jali.core.arrays import Floats, Ints
from jali.kernels import TOLERANCE
from jali.kernels.jit import inner, outer

UNSURE = 1e-9
"""How near to a bound means decide nothing."""
FAILS, HOLDS, UNDECIDED = range(3)
"""What the means of a group tell."""
_TINY = 1e-24  # ends of a distribution below this are cut off
_TAIL = 50.0
_FARTHEST = 700.0  # logarithm of the largest odds: beyond it a member is as good as certain


@inner
def _tilted(logs: Floats, many: Ints, present: int) -> Floats:
    """The odds at which `present` successes are expected, from the logarithms of likelihoods, the largest of them 0."""
    total, least = 0, 0.0
    for i in range(len(logs)):
        total += many[i]
        least = min(least, logs[i])
    low, high = log(present / total) - 1.0, -least + log(present / (total - present)) + 1.0
    shift = 0.5 * (low + high)
    for _ in range(200):
        excess, slope = -float(present), 0.0
        for i in range(len(logs)):
            small = exp(-abs(logs[i] + shift))
            q = (1.0 if logs[i] + shift > 0.0 else small) / (1.0 + small)
            excess += many[i] * q
            slope += many[i] * q * (1.0 - q)
        if abs(excess) < 1e-3 * max(1.0, sqrt(slope)):
            break
        if excess > 0:
            high = shift
        else:
            low = shift
        step = shift - excess / slope if slope > 0 else low
        shift = step if low < step < high else 0.5 * (low + high)
    odds = np.empty(len(logs))
    for i in range(len(logs)):
        odds[i] = exp(min(max(logs[i] + shift, -_FARTHEST), _FARTHEST))
    return odds


@inner
def _binomial(x: float, trials: int, part: Floats) -> tuple[int, int]:
    """The mass of equal trials around its mode, and the numbers of successes it begins and ends with."""
    q = x / (1.0 + x)
    mode = min(int((trials + 1) * q), trials)
    reach = ceil(_TAIL / 3 + sqrt(_TAIL * _TAIL / 9 + 2 * _TAIL * trials * q * (1.0 - q))) + 2
    first, last = max(0, mode - reach), min(trials, mode + reach)
    part[mode - first] = 1.0
    whole = 1.0
    for j in range(mode, last):
        part[j + 1 - first] = part[j - first] * ((trials - j) / (j + 1)) * x
        whole += part[j + 1 - first]
    for j in range(mode, first, -1):
        part[j - 1 - first] = part[j - first] * (j / (trials - j + 1)) / x
        whole += part[j - 1 - first]
    while last > first and part[last - first] < _TINY * whole:
        last -= 1
    for j in range(last - first + 1):
        part[j] /= whole
    return first, last


@inner
def _add_one(mass: Floats, low: int, high: int, x: float) -> int:
    q, r = x / (1.0 + x), 1.0 / (1.0 + x)  # 1 − q would lose what a sure member leaves over
    for j in range(high + 1, low, -1):
        mass[j] = mass[j] * r + mass[j - 1] * q
    mass[low] *= r
    return high + 1


@inner
def _successes(odds: Floats, many: Ints, mass: Floats, room: Floats, part: Floats) -> tuple[int, int]:
    """The mass of the number of successes, and between which numbers it lies."""
    low = high = 0
    mass[0] = 1.0
    for i in range(len(odds)):
        q = odds[i] / (1.0 + odds[i])
        if many[i] * q * (1.0 - q) * 4.0 + 60.0 > many[i]:
            for _ in range(many[i]):
                high = _add_one(mass, low, high, odds[i])
                while mass[high] < _TINY:
                    mass[high] = 0.0
                    high -= 1
                while mass[low] < _TINY:
                    mass[low] = 0.0
                    low += 1
            continue
        first, last = _binomial(odds[i], many[i], part)
        for j in range(low + first, high + last + 1):
            room[j] = 0.0
        for a in range(first, last + 1):
            share = part[a - first]
            for j in range(low, high + 1):
                room[a + j] += share * mass[j]
        for j in range(low, high + 1):
            mass[j] = 0.0
        low, high = low + first, high + last
        while room[high] < _TINY:
            high -= 1
        while room[low] < _TINY:
            low += 1
        for j in range(low, high + 1):
            mass[j] = room[j]
    return low, high


@inner
def _one(mass: Floats, low: int, high: int, odds: float, present: int) -> float:
    """The probability of one member whose odds these are."""
    q, r, g = odds / (1.0 + odds), 1.0 / (1.0 + odds), 0.0
    if q <= 0.5:
        for j in range(low, present):
            g = (mass[j] - q * g) / r
        return q * g / mass[present]
    for j in range(high, present, -1):
        g = (mass[j] - r * g) / q
    return 1.0 - r * g / mass[present]


@inner
def _extremes(logs: Floats, many: Ints, present: int) -> tuple[float, float]:
    """The probabilities of the least and the most likely member of a group."""
    total = 0
    for i in range(len(logs)):
        total += many[i]
    if present == total:
        return 1.0, 1.0
    odds = _tilted(logs - logs.max(), many, present)
    mass, room, part = np.zeros(total + 2), np.zeros(total + 2), np.zeros(total + 2)
    low, high = _successes(odds, many, mass, room, part)
    return _one(mass, low, high, odds.min(), present), _one(mass, low, high, odds.max(), present)


@inner
def _others(logs: Floats, people: Ints, own: float, share: float) -> float:
    """How many others are expected where a member of log-likelihood `own` is present with probability `share`."""
    factor, mean = log(share / (1.0 - share)) - own, 0.0
    for i in range(len(logs)):
        small = exp(-abs(logs[i] + factor))
        mean += people[i] * ((1.0 if logs[i] + factor > 0.0 else small) / (1.0 + small))
    return mean - share


@inner
def _exceeds(logs: Floats, people: Ints, own: float, share: float, present: int) -> bool:
    """Whether a member of log-likelihood `own` is surely present with more than this probability; see `by_means`."""
    if share <= 0.0 or share >= 1.0:
        return share <= 0.0
    return _others(logs, people, own, share) <= present - 1


@inner
def _stays_below(logs: Floats, people: Ints, own: float, share: float, present: int) -> bool:
    """Whether a member of log-likelihood `own` is surely present with less than this probability; see `by_means`."""
    if share <= 0.0 or share >= 1.0:
        return share >= 1.0
    return _others(logs, people, own, share) >= present


@inner
def _by_means(logs: Floats, people: Ints, present: int, low: float, high: float) -> int:
    """Whether a group holds, fails or is undecided, from the others of its least and of its most likely member."""
    most, least = -np.inf, np.inf
    for one in logs:
        most = max(most, one)
        least = min(least, one)
    if least == -np.inf:
        return FAILS if low > 0.0 else UNDECIDED
    more, less = 1.0 + UNSURE, 1.0 - UNSURE
    if _exceeds(logs, people, most, high * more, present):
        return FAILS
    if _stays_below(logs, people, least, low * less, present):
        return FAILS
    below = _stays_below(logs, people, most, high * less, present)
    if below and _exceeds(logs, people, least, low * more, present):
        return HOLDS
    return UNDECIDED


@outer
def by_means(
    logs: Floats, people: Ints, start: Ints, groups: Ints, present: Ints, bounds: Floats
) -> np.ndarray[tuple[int], np.dtype[np.int8]]:
    """What the means say about whether everybody of some groups is within the bounds: (groups asked for,).

    `logs` are logarithms of likelihoods, -inf of 0.

    Let R be e_{n-1} / e_n of the others of a group, whose odds of presence are then R times its likelihood. Tilt all
    odds by a factor. If the expected number of others present is n - 1, that is also the likeliest number (Darroch
    1964: a whole mean is the mode), so e_{n-1} · factor^(n-1) ≥ e_n · factor^n and the factor is at most R; if it is n,
    the factor is at least R. So one mean tells whether a member is above or below a bound, but for bounds between the
    two, which are as near as one person: in large groups few are.
    """
    verdict = np.empty(len(groups), np.int8)
    for i in range(len(groups)):
        inside = slice(start[groups[i]], start[groups[i] + 1])
        verdict[i] = _by_means(logs[inside], people[inside], present[groups[i]], bounds[0], bounds[1])
    return verdict


@inner
def _within(logs: Floats, people: Ints, present: int, low: float, high: float) -> bool:
    """Whether everybody of a group is within the bounds."""
    possible = logs > -np.inf
    if low > 0 and not possible.all():
        return False
    least, most = _extremes(logs[possible], people[possible], present)
    return least >= low * (1 - TOLERANCE) and most <= high * (1 + TOLERANCE)


@outer
def within_bounds(
    logs: Floats, people: Ints, start: Ints, present: Ints, bounds: Floats
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Whether everybody of each group is within the bounds; not all of a group are equally likely.

    Members are sorted by group: `start` (groups + 1,).
    """
    verdict = np.zeros(len(present), np.bool_)
    for g in range(len(present)):
        inside = slice(start[g], start[g + 1])
        verdict[g] = _within(logs[inside], people[inside], present[g], bounds[0], bounds[1])
    return verdict


@outer
def existences(logs: Floats, many: Ints, start: Ints, present: Ints) -> Floats:
    """`existence` for many groups: entries are sorted by group, and each stands for `many` members: (entries,).

    `logs` are logarithms of likelihoods above 0, and no group has more present than members.
    """
    result = np.empty(len(logs))
    for g in range(len(present)):
        a, b, n = start[g], start[g + 1], present[g]
        total = many[a:b].sum()
        if b - a == 1 or n in (0, total):
            result[a:b] = n / total
            continue
        odds = _tilted(logs[a:b] - logs[a:b].max(), many[a:b], n)
        mass, room, part = np.zeros(total + 2), np.zeros(total + 2), np.zeros(total + 2)
        low, high = _successes(odds, many[a:b], mass, room, part)
        for i in range(a, b):
            result[i] = _one(mass, low, high, odds[i - a], n)
    return result
