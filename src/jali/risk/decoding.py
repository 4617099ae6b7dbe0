"""Decoding: what exact fractions in cells say of the private rows behind them, and who is then surely present or not.

A cell shows f = u + t (o − u): u even shares over the values of the group, o the shares of its n private rows, t how
far the group was shifted, the same for all its columns and a whole number of parts of the published resolution. So the
differences of shares are t (oᵥ − o_w), and the private counts n·o are whole numbers: only those t remain of which all
differences are whole multiples, mostly one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from jali.encoding.table import Table
from jali.principles.counts import Bools, Ints
from jali.programs import Sums
from jali.releases.generalized import Generalized
from jali.releases.presence import Covered, covered_by
from jali.releases.published import Published
from jali.risk.certainty import certain
from jali.risk.swaps import swapped

Shares = Mapping[int, Fraction]  # of the public table's values, by code
Way = tuple[Mapping[int, int], ...]
"""Private rows by column with distributions and value, as the fractions allow; empty where they say nothing."""

MANY = 100
"""From how many members of a group on swaps are tried before programs are solved."""


@dataclass(frozen=True, eq=False)
class Decoder:
    """A release beside the public table: its groups, and what their fractions allow."""

    release: Generalized
    public: Table

    @cached_property
    def covered(self) -> Covered:
        """The group of each combination of the public table."""
        return covered_by(self.release, self.public)

    @cached_property
    def spread(self) -> tuple[Published, ...]:
        """The quasi-identifiers that show distributions."""
        return tuple(c for c in self.release.of_role("quasi") if c.facts and c.facts.get("display") == "pdf")

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
        row = self.release._group[1][group]
        shown = [_shares(column, int(column.codes[row]), self.public) for column in self.spread]
        shares = [one for one in shown if one is not None]
        if len(shares) < len(shown):  # suppressed: * says nothing
            return [()]
        rows = int(self.covered.rows[group])
        steps, whole = self.shifts
        allowed = _steps(shares, rows * whole, steps)
        if allowed is None:
            return [()]
        people = self.covered.people[members]
        room = [np.bincount(codes, weights=people).astype(np.int64) for codes in self.codes(members)]
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
    facts, label = column.facts, column.labels[node].as_py()
    assert facts is not None
    if node == column.cover_root or label not in facts["labels"]:
        return None
    at = facts["labels"].index(label)
    place = {text: code for code, text in enumerate(public[column.name].labels.to_pylist())}
    names = [facts["leaves"][member] for member in facts["members"][at]]
    total = sum(facts["weights"][at])
    return {
        place.get(name, -1 - i): Fraction(weight, total)
        for i, (name, weight) in enumerate(zip(names, facts["weights"][at], strict=True))
    }


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
    """Whether counts are counts, and the public table has so many people of each value."""
    return all(0 <= n <= (int(room[value]) if 0 <= value < len(room) else 0) for value, n in counts.items())


@dataclass(frozen=True, eq=False)
class Surely:
    """Who of a public table is surely in the private one, or surely not, for who decodes the fractions."""

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
