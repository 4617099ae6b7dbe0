"""Distributions instead of plain cells, moved towards those of the private rows as far as presence allows.

Each group begins with every value of its public members equally likely and is moved towards the frequencies of its
private members, which tell most (Equation 3 of the pdf-generalization paper): f = u + t (o − u) for t from 0 to 1, the
same t for all columns. Whether the bounds hold is not monotone in t, so t = 1 is tried first, then a scan downwards,
and the last bracket is bisected. "bounds" asks Theorem 5 whether a t will do (PPALM), "exact" computes Equation 4
(WPALM) and so never does worse.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from jali.core.arrays import Bools, Floats, Ints, added, counted, owners, runs_of
from jali.core.progress import Step
from jali.kernels import TOLERANCE
from jali.principles.anonymity import DeltaPresence
from jali.principles.base import at_most
from jali.search.existence import Kernels, alike, logs_of

Shift = Literal["none", "bounds", "exact"]
SHIFTS: tuple[Shift, ...] = ("none", "bounds", "exact")

SCAN = 32
"""How many steps the scan downwards has."""
HALVINGS = 5
"""How often the last bracket is halved: t is found to 1 / (SCAN · 2**HALVINGS)."""


@dataclass(frozen=True, eq=False)
class Spread:
    """The values of one column in each group, and how likely each is: an entry for each group and value.

    Entries are sorted by group, then code.
    """

    group: Ints  # (entries,)
    code: Ints  # (entries,)
    private: Ints  # (entries,) private people who have the value
    values: Ints  # (entries,) how many values the group has
    present: Ints  # (entries,) how many private people the group has
    entry: Ints  # (combinations,) the entry of each member combination


@dataclass(frozen=True, eq=False)
class Members:
    """The groups that have somebody present: their member combinations, sorted by group."""

    groups: int
    start: Ints  # (groups + 1,) where each group's combinations begin
    group: Ints  # (combinations,)
    combination: Ints  # (combinations,) in the public table's numbering
    people: Ints  # (combinations,) of the public table
    size: Ints  # (groups,) people of the public table
    present: Ints  # (groups,) of the private one
    spreads: tuple[Spread, ...]


def members_of(codes: NDArray[np.int32], group: Ints, public: Ints, private: Ints) -> Members:
    """The groups of public combinations in which somebody is present, numbered in their order."""
    present = counted(group, private)
    kept = np.flatnonzero(present)
    number = np.full(len(present), -1, dtype=np.int64)
    number[kept] = np.arange(len(kept))
    own = number[group]
    order = np.argsort(own, kind="stable")
    order = order[own[order] >= 0]
    own = own[order]
    size = counted(own, public[order], len(kept))
    spreads = tuple(
        _spread(own, codes[order, i].astype(np.int64), private[order], present[kept]) for i in range(codes.shape[1])
    )
    start = np.searchsorted(own, np.arange(len(kept) + 1)).astype(np.int64)
    return Members(len(kept), start, own, order, public[order], size, present[kept], spreads)


def _spread(group: Ints, code: Ints, private: Ints, present: Ints) -> Spread:
    width = int(code.max(initial=0)) + 1
    keys, entry = np.unique(group * width + code, return_inverse=True)
    owner = keys // width
    many = np.bincount(owner, minlength=len(present))
    rows = counted(entry, private)
    return Spread(owner, keys % width, rows, many[owner], present[owner], entry.astype(np.int64))


def weights(spread: Spread, t: Ints, whole: int) -> Ints:
    """Whole numbers in the proportions of each group's distribution when it is moved by `t / whole`: (entries,)."""
    moved = t[spread.group]
    return (whole - moved) * spread.present + moved * spread.values * spread.private


def costs(members: Members, t: Ints, whole: int) -> Floats:
    """The KL cost of each group (Equation 1): −Σ over columns and values of private people · log(share): (groups,)."""
    result = np.zeros(members.groups)
    for spread in members.spreads:
        held = spread.private > 0
        share = weights(spread, t, whole)[held] / (whole * (spread.values * spread.present)[held])
        loss = -spread.private[held] * np.log(share)
        result += added(spread.group[held], loss, members.groups)
    return result


def log_likelihoods(members: Members, t: Ints, whole: int) -> Floats:
    """The logarithm of how likely a published row of its group stands for somebody of each combination.

    The product over columns of the share of its value, Definition 10, up to a factor of the group; -inf where it is 0.
    """
    result = np.zeros(len(members.group))
    for spread in members.spreads:
        weight = weights(spread, t, whole)
        result += logs_of(weight / (spread.values * spread.present))[spread.entry]
    return result


# -- whether a shift will do ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Judge:
    """Judges shifts of groups against the bounds, by Theorem 5 alone, or exactly where that does not decide."""

    members: Members
    bounds: DeltaPresence
    whole: int  # shifts are counted in parts of this
    exact: bool

    def holds(self, t: Ints, asked: Bools) -> Bools:
        """Whether the bounds hold in each of the groups asked for, moved by t: (groups,)."""
        m = self.members
        logs = log_likelihoods(m, t, self.whole)
        least = np.minimum.reduceat(logs, m.start[:-1])
        most = np.maximum.reduceat(logs, m.start[:-1])
        holds = asked & self._by_bounds(least, most)
        if self.exact:
            rest = np.flatnonzero(asked & ~holds & (least < most))
            holds[rest] = self._exactly(logs, rest)
        return holds

    def _by_bounds(self, least: Floats, most: Floats) -> Bools:
        """Theorem 5: all others as likely as the likeliest bound the least presence, and the other way round."""
        m = self.members
        n, rest = m.present.astype(np.float64), (m.size - m.present).astype(np.float64)
        ratio = np.exp(least - most)
        low = np.where(rest > 0, n * ratio / (n * ratio + np.maximum(rest, 1.0)), 1.0)  # the ratio may be too small
        high = n / (n + rest * ratio)
        verdict: Bools = np.where(least == most, self._even, inside_bounds(self.bounds, low, high))
        return verdict

    @cached_property
    def _even(self) -> Bools:
        """Whether the bounds hold where everybody of a group is equally likely, exactly."""
        m, bounds = self.members, self.bounds
        return at_most(m.present, bounds.exact_high, m.size) & at_most(m.size - m.present, 1 - bounds.exact_low, m.size)

    def _exactly(self, logs: Floats, groups: Ints) -> Bools:
        """Equation 4 for some groups; where means do not decide, equal likelihoods of a group are put together."""
        m = self.members
        k = Kernels(len(m.people))
        bounds = np.array([float(self.bounds.low), float(self.bounds.high)])
        told = k.by_means(logs, m.people, m.start, groups, m.present, bounds)
        verdict: Bools = told == k.HOLDS
        rest = np.flatnonzero(told == k.UNDECIDED)
        groups = groups[rest]
        length, at = runs_of(m.start, groups)
        found = alike(logs[at], m.people[at], owners(length), len(groups))
        verdict[rest] = k.within_bounds(found.logs, found.many, found.start, m.present[groups], bounds)
        return verdict


def inside_bounds(bounds: DeltaPresence, low: Floats, high: Floats) -> Bools:
    """Whether probabilities are within the bounds, which they may meet: (groups,)."""
    above, below = low >= float(bounds.low) * (1 - TOLERANCE), high <= float(bounds.high) * (1 + TOLERANCE)
    return np.asarray(above & below, dtype=bool)


# -- as far as it goes ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Moved:
    """How far each group is moved towards its optimum: t / whole of the way."""

    t: Ints  # (groups,)
    whole: int

    @property
    def resolution(self) -> float:
        """How finely shifts are found."""
        return 1.0 / self.whole


def moved(
    members: Members, bounds: DeltaPresence, shift: Shift, *, steps: int | None = None, on_step: Step | None = None
) -> Moved:
    """The furthest shift of each group that the bounds allow; with `steps` only that many are tried, evenly."""
    whole = SCAN * 2**HALVINGS if steps is None else steps
    found = np.zeros(members.groups, dtype=np.int64)
    step = on_step or (lambda done, total: None)
    for exact in {"none": [], "bounds": [False], "exact": [False, True]}[shift]:
        further = _furthest(Judge(members, bounds, whole, exact), steps, found, step)
        found = _better(members, found, further, whole)
    return Moved(found, whole)


def _better(members: Members, one: Ints, other: Ints, whole: int) -> Ints:
    """Of two shifts of each group, the one that costs less; of equals the further."""
    here, there = costs(members, one, whole), costs(members, other, whole)
    return np.where((there < here) | ((there == here) & (other > one)), other, one)


def _furthest(judge: Judge, steps: int | None, known: Ints, on_step: Step) -> Ints:
    """The furthest shift beyond the known ones that a scan from the optimum downwards finds to hold.

    Without given steps the bracket above it is halved a few times.
    """
    t, whole = known.copy(), judge.whole
    stride, rounds = (1, whole) if steps is not None else (whole // SCAN, SCAN + HALVINGS)
    waiting = t < whole
    for done, tried in enumerate(range(whole, 0, -stride)):
        on_step(done, rounds)
        waiting &= t < tried
        if not waiting.any():
            break
        held = judge.holds(np.full_like(t, tried), waiting)
        t[held] = tried
        waiting &= ~held
    while stride > 1:
        stride //= 2
        on_step(rounds - stride.bit_length(), rounds)
        tried_here = np.minimum(t + stride, whole)
        held = judge.holds(tried_here, t < whole)
        t[held] = tried_here[held]
    return t
