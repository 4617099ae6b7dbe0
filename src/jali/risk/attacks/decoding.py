"""Decoding: what exact fractions in cells say of the private rows behind them, and who is surely present or not."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from jali.core.arrays import Bools, Ints, combine, counted
from jali.core.programs import TOLERANCE, Sums
from jali.encoding.table import Table
from jali.releases.column import Published
from jali.releases.generalized import Generalized
from jali.releases.presence import Covered, covered_by

GAP = 0.2
"""A world that is nearly as far away as any will do: it is only asked what differs there."""


def certain(worlds: Sums, at: Ints, asked: Bools, *, deadline: float) -> tuple[Bools, bool]:
    """Which of the unknowns asked for are what `at` says in every world, each of them 0 or the most that it can be.

    Each program looks for a world that is as far as possible from `at`; what differs there is not certain, and once
    nothing can differ the rest is proved. The flag says that time was enough: otherwise what is left is not proved,
    and nothing is called certain. Where no world fits at all, everything stays as it was asked.
    """
    assert worlds.most is not None
    still = asked.copy()
    gap = GAP
    while still.any():
        away = np.where(at > 0, -1.0, 1.0) * still
        found = worlds.best(away, deadline=deadline, gap=gap)
        if found is None or found.limit - float(away @ at) < 1 - TOLERANCE:
            return still, True
        differs = still & (False if found.x is None else np.abs(found.x - at) > 0.5)
        if differs.any():
            still &= ~differs
        elif gap == 0:  # time ran out
            return np.zeros_like(asked), False
        else:
            gap = 0.0
    return still, True


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


Shares = Mapping[int, Fraction]  # of the public table's values, by code
Way = tuple[Mapping[int, int], ...]
"""Private rows by column with distributions and value, as the fractions allow; empty where they say nothing."""

MANY = 100
"""From how many members of a group on swaps are tried before programs are solved."""


@dataclass(frozen=True, eq=False)
class Decoder:
    """A release and the public table: the groups, and what their fractions allow."""

    release: Generalized
    public: Table

    @cached_property
    def covered(self) -> Covered:
        """The group of each combination of the public table."""
        return covered_by(self.release, self.public)

    @cached_property
    def spread(self) -> tuple[Published, ...]:
        """The quasi-identifiers that show distributions."""
        return tuple(c for c in self.release.of_role("quasi") if c.distributions is not None)

    @cached_property
    def shifts(self) -> tuple[Sequence[int], int]:
        """How far a group may have been shifted, in parts of the resolution: the steps, and how many parts there are.

        Known exactly where the manifest says it, as `towards=`.
        """
        method = self.release.manifest.method
        if "resolution" in method:
            whole = Fraction(str(method["resolution"])).denominator
            return range(1, whole + 1), whole
        towards = Fraction(str(method.get("towards", "0")))
        return ([towards.numerator] if towards else []), towards.denominator

    def members(self, group: int) -> Ints:
        """The combinations of the public table that a row of the group can be."""
        return np.flatnonzero((self.covered.group == group) & (self.covered.logs > -np.inf))

    def codes(self, members: Ints) -> list[Ints]:
        """The values of the members in each column that shows distributions."""
        names = [column.name for column in self.public.quasi]
        own = self.public.frequencies.codes[members]
        return [own[:, names.index(column.name)].astype(np.int64) for column in self.spread]

    def ways(self, group: int, members: Ints) -> list[Way]:
        """The private counts of a group that its fractions, its size and the public people of each value allow."""
        row = self.release.grouping[1][group]
        shown = [_shares(column, int(column.held[row]), self.public) for column in self.spread]
        shares = [one for one in shown if one is not None]
        if len(shares) < len(shown):  # suppressed: * says nothing
            return [()]
        rows = int(self.covered.rows[group])
        steps, whole = self.shifts
        allowed = _steps(shares, rows * whole, steps)
        if allowed is None:
            return [()]
        people = self.covered.people[members]
        room = [counted(codes, people) for codes in self.codes(members)]
        found = (tuple(_counts(one, rows, Fraction(step, whole)) for one in shares) for step in allowed)
        return [way for way in found if all(map(_fits, way, room))]

    def worlds(self, group: int, members: Ints, way: Way) -> Sums:
        """The private rows of a group as unknown counts of its members, with the sums that are known of them."""
        whole: Mapping[int, int] = {0: int(self.covered.rows[group])}
        known = [(np.zeros(len(members), dtype=np.int64), whole), *zip(self.codes(members), way, strict=False)]
        row, unknown = [], np.tile(np.arange(len(members)), len(known))
        low: list[float] = []
        for codes, counts in known:
            values = sorted(counts)
            row.append(len(low) + np.searchsorted(values, codes))
            low += [float(counts[value]) for value in values]
        most = self.covered.people[members].astype(np.float64)
        sums = np.array(low)
        return Sums(len(members), np.concatenate(row), unknown, sums, sums, most=most)


def _shares(column: Published, node: int, public: Table) -> Shares | None:
    """The distribution of a cell by the public table's codes; None for a suppressed one.

    A value that the public table does not have gets a code below 0.
    """
    facts, label = column.distributions, column.labels[node].as_py()
    assert facts is not None
    if node == column.cover_root or label not in facts.labels:
        return None
    place = {text: code for code, text in enumerate(public[column.name].labels.to_pylist())}
    shares = facts.shares(facts.labels.index(label))
    return {place.get(name, -1 - i): share for i, (name, share) in enumerate(shares.items())}


def _steps(shares: Sequence[Shares], parts: int, steps: Sequence[int]) -> list[int] | None:
    """The shifts that can give these shares; None where all shares are even, which a shift of 0 gives, whatever is so.

    n · whole · (fᵥ − f_w) = step · (private rows with v − those with w).
    """
    differences = [parts * (share - min(one.values())) for one in shares for share in one.values()]
    if not any(differences) or not steps:
        return None
    if any(difference.denominator > 1 for difference in differences):
        return []
    common = math.gcd(*(difference.numerator for difference in differences))
    return [step for step in steps if common % step == 0]


def _counts(shares: Shares, rows: int, shift: Fraction) -> dict[int, int]:
    """The private rows with each value, if the shares were shifted so far; -1 for what is no count."""
    even = (1 - shift) / len(shares)
    counts = {value: rows * (share - even) / shift for value, share in shares.items()}
    return {value: int(n) if n.denominator == 1 and n >= 0 else -1 for value, n in counts.items()}


def _fits(counts: Mapping[int, int], room: Ints) -> bool:
    """Whether counts are whole numbers, none above the people of the public table with that value."""
    return all(0 <= n <= (int(room[value]) if 0 <= value < len(room) else 0) for value, n in counts.items())


@dataclass(frozen=True, eq=False)
class Surely:
    """The people of a public table who are surely in the private one, or surely not, once fractions are decoded."""

    present: Bools  # (combinations of the public table,) everybody with it is in the private one in every world
    absent: Bools  # nobody with it is
    groups: int
    decoded: int  # groups with one way only to fill their fractions
    undecided: int  # groups that time was not enough for; nobody of them is counted


def surely(release: Generalized, public: Table, private: Ints, *, seconds: float) -> Surely:
    """Who is surely present or absent. `private` is the truth: people of the private table by public combination.

    Only what is true can be certain, so nothing else is asked. Small groups come first.
    """
    decoder = Decoder(release, public)
    covered, deadline = decoder.covered, time.monotonic() + seconds
    absent = (covered.group < 0) | (covered.logs == -np.inf)
    present = np.zeros(len(absent), dtype=bool)
    order = np.argsort(np.bincount(covered.group[covered.group >= 0], minlength=len(covered.rows)), kind="stable")
    decoded = undecided = 0
    for group in order.tolist():
        members = decoder.members(group)
        ways = decoder.ways(group, members)
        worlds = [decoder.worlds(group, members, way) for way in ways]
        if len(ways) > 1:
            worlds = [world for world in worlds if world.feasible(deadline=deadline) is not False]
        decoded += len(worlds) == 1 and ways != [()]
        asked = _asked(decoder, members, private) if ways else np.zeros(len(members), dtype=bool)
        sure, in_time = _sure(worlds, asked, private[members], deadline)
        undecided += not in_time
        present[members] = sure & (private[members] > 0)
        absent[members] = sure & (private[members] == 0)
    return Surely(present, absent, len(covered.rows), decoded, undecided)


def _asked(decoder: Decoder, members: Ints, private: Ints) -> Bools:
    """Members that are all present or all absent in truth, and of whom no swap says otherwise."""
    at, people = private[members], decoder.covered.people[members]
    sure: Bools = (at == 0) | (at == people)
    if len(members) < MANY:
        return sure
    return sure & ~swapped(decoder.public.frequencies.codes[members].astype(np.int64), people, at)


def _sure(worlds: list[Sums], asked: Bools, at: Ints, deadline: float) -> tuple[Bools, bool]:
    """Which of the members asked for are in every world what they are in truth."""
    for world in worlds:
        asked, in_time = certain(world, at, asked, deadline=deadline)
        if not in_time:
            return asked, False
    return asked, True
