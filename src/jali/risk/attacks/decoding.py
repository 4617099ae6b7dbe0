"""The attack on presence: who is surely in the private table, or surely not.

Exact fractions in the cells of a concealed release say something of the private rows behind them: they are decoded.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from jali.core.arrays import Bools, Ints, combine, counted
from jali.core.programs import Sums
from jali.encoding.table import Table
from jali.errors import InputError
from jali.releases.base import Release
from jali.releases.column import Published
from jali.releases.generalized import Generalized
from jali.releases.presence import Covered, covered_by
from jali.risk.attacks.links import hidden_groups, links_to, placed, quasi_of
from jali.risk.attacks.scene import Attack, Scene
from jali.search.screen import Framed, framed

SECONDS = 120.0
"""How long groups are decoded in all; of groups that are not done by then nobody is counted."""
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
        asked, in_time = world.certain(at, asked, deadline=deadline)
        if not in_time:
            return asked, False
    return asked, True


# -- presence ------------------------------------------------------------------------------------------------------

DECODES = (
    "holds the public table, which has everybody, and knows the algorithm: reads the private counts off the fractions"
)
COUNTS = "holds a public table that has everybody, and compares its people with those of each published cell"


def presence(scene: Scene, public: Table | None) -> Attack:
    """People of the public table who are in the private one in every world that is published the same, or in none."""
    release = scene.release
    public = release.public_table if public is None else public
    attacker = DECODES if release.hides_presence else COUNTS
    if public is None:
        return Attack("presence", attacker, None, 0, notes=("who is in the table: no public table was given",))
    try:
        frame = framed(scene.original, public)
    except InputError as problem:
        why = f"who is in the table: the public table must hold everybody of the original, and {problem.what}"
        return Attack("presence", attacker, None, 0, notes=(why,))
    if release.hides_presence and release.grouped_rows is not None:
        return _decoded(release.grouped_rows, public, frame)
    present, absent = np.zeros(len(frame.public), dtype=bool), np.zeros(len(frame.public), dtype=bool)
    for cell, rows in _cells(release, public, scene):
        people = np.bincount(cell[cell >= 0], weights=frame.public[cell >= 0], minlength=len(rows))
        present |= (cell >= 0) & (people == rows)[np.maximum(cell, 0)]
        absent |= cell == NOWHERE
    notes = ("what several tables or overlapping groups say together of who is in the table",)
    return replace(_presence_told(frame, present, absent), attacker=COUNTS, notes=notes)


NOWHERE, SOMEWHERE = -1, -2  # covered by no cell; by several, or by one that others share


def _cells(release: Release, public: Table, scene: Scene) -> Iterator[tuple[Ints, Ints]]:
    """For each published table the one cell of each public combination, and the rows of each cell."""
    if release.collected is not None:
        for one in placed(release.collected, public):
            rows = np.bincount(one.cell, weights=one.people, minlength=int(max(one.own.max(), one.cell.max())) + 1)
            yield np.where((one.own >= 0) & (rows[one.own] > 0), one.own, NOWHERE), rows.astype(np.int64)
        return
    if release.batched is not None:
        linked = [
            links_to(t.columns, t.bucket, np.zeros(t.rows, dtype=bool), public, scene.own)
            for t in release.batched.contents.tables
        ]
    else:
        quasi, hidden = quasi_of(release), hidden_groups(release)
        shown, _ = combine([(c.codes, len(c.labels)) for c in quasi], len(hidden))
        linked = [links_to(quasi, shown.astype(np.int64), hidden, public, scene.own)]
    for each in linked:
        groups = int(each.group.max(initial=0)) + 1
        rows = np.zeros(groups, dtype=np.int64)
        np.maximum.at(rows, each.group, each.rows)
        shared = np.bincount(each.group, weights=each.groups[each.owner] > 1, minlength=groups) > 0
        cell = np.where(each.groups == 0, NOWHERE, np.where(each.only >= 0, each.only, SOMEWHERE))
        yield np.where((cell >= 0) & shared[np.maximum(cell, 0)], SOMEWHERE, cell), rows


def _decoded(release: Generalized, public: Table, frame: Framed) -> Attack:
    """What the fractions of a concealed release give away."""
    try:
        sure = surely(release, public, frame.private, seconds=SECONDS)
    except InputError as problem:
        return Attack("presence", DECODES, None, int(frame.public.sum()), notes=(f"who is in it: {problem.what}",))
    told = _presence_told(frame, sure.present, sure.absent)
    groups = {"groups": sure.groups, "groups whose private counts can be decoded": sure.decoded}
    late = f"{sure.undecided:,} large groups, for which {SECONDS:g} seconds did not decide who is surely present"
    return replace(told, figures={**groups, **told.figures}, notes=(late,) if sure.undecided else ())


def _presence_told(frame: Framed, present: Bools, absent: Bools) -> Attack:
    """The attack, from the combinations of the public table that are certainly present or absent."""
    people = frame.public
    figures: dict[str, int | float] = {
        "people certainly present": int(people[present].sum()), "people certainly absent": int(people[absent].sum()),
    }  # fmt: skip
    right = int(people[present & (frame.private == people)].sum() + people[absent & (frame.private == 0)].sum())
    exposed = int(people[present | absent].sum())
    return Attack("presence", DECODES, exposed, int(people.sum()), right, figures)
