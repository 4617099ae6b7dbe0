"""Attack gallery: what known attacks learn from a release, for the holder of the original."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from jali.core.arrays import Bools, Floats, Ints, combine
from jali.encoding.table import Table
from jali.errors import InputError, told
from jali.principles.base import exact, whole_number
from jali.releases.base import Release
from jali.releases.generalized import Generalized
from jali.releases.load import release_of
from jali.releases.summary import many
from jali.risk.attacks.algorithm import algorithm
from jali.risk.attacks.decoding import surely
from jali.risk.attacks.linkage import linkage
from jali.risk.attacks.links import hidden_groups, links_to, placed, public_table, quasi_of
from jali.risk.attacks.scene import Attack, Gallery, Scene, Seen, different, percent
from jali.search.screen import Framed, framed

RULED_OUT = 3
"""Up to how many values the attacker rules out for a person."""
SECONDS = 120.0
"""How long groups are decoded in all; of groups that are not done by then nobody is counted."""


def attacks(
    release: Release | str | Path,
    original: Table,
    *,
    public: Table | Any = None,
    sensitive: str | None = None,
    threshold: float | Fraction = 0.95,
    cases: int = 3,
    time_limit: float = 60,
) -> Gallery:
    """Try the known attacks on a release: how many people are exposed by each, and a few cases in words.

    Somebody is exposed when the attacker's belief in one value reaches the `threshold`. `public` is a table, frame or
    file with the same quasi-identifiers, in which the attacker looks people up: by default everybody of the original
    for linkage, and for presence the public table of a concealed release that was just made.
    The attack by somebody who knows the algorithm takes up to `time_limit` seconds, once somebody looks at it.
    The result says which beliefs are right, so it is for the holder of the original alone.
    """
    given = release_of("attacks", release)
    if not isinstance(original, Table):
        raise InputError("the original must be a table", got=type(original).__name__, do="make one: jali.table(…)")
    least = exact("threshold", threshold)
    if not 0 < least <= 1:
        raise InputError("the threshold must be above 0 and at most 1", got=str(threshold))
    scene = Scene(given, original, sensitive, least, whole_number("cases", cases, least=0))
    looked_up = None if public is None else public_table(given, public)
    hidden = presence(scene, looked_up)
    if looked_up is not None and hidden.exposed is not None:
        scene = replace(scene, release=given.beside(looked_up))
    replayed = partial(algorithm, scene, scene.release.public_table, _seconds(time_limit))
    if given.hides_presence and not given.of_role("sensitive"):
        return Gallery(None, float(least), (hidden,), replayed)
    tried = (homogeneity(scene), background(scene), linkage(scene, looked_up), hidden)
    return Gallery(scene.column.name, float(least), tried, replayed)


def _seconds(time_limit: object) -> float:
    if isinstance(time_limit, bool) or not isinstance(time_limit, (int, float)) or not 0 < time_limit < math.inf:
        raise InputError("time_limit is a number of seconds above 0", got=repr(told(time_limit)))
    return float(time_limit)


# -- homogeneity ---------------------------------------------------------------------------------------------------


def homogeneity(scene: Scene) -> Attack:
    """Groups whose people all, or nearly all, have the same value (l-diversity, Section 2.1)."""
    seen = scene.homogeneous
    first = seen.likeliest
    sure, same = scene.sure(seen.share[first]), seen.share[first] >= 1 - 1e-12
    exposed, alike = _groups(seen, first[sure]), _groups(seen, first[same])
    order = sorted(first[sure].tolist(), key=lambda i: (-seen.share[i], -int(seen.size[seen.group[i]]), seen.group[i]))
    told = (
        f"an attacker who knows that somebody is in {seen.place(int(seen.group[i]))} is "
        f"{percent(float(seen.share[i]))} of "
        f"{scene.label(int(seen.value[i]))}"
        for i in order
    )
    figures = {f"{seen.called} with one value": int(same.sum()), "people in them": seen.within(alike)}
    return Attack(
        "homogeneity",
        _known_of(scene.release),
        seen.within(exposed),
        seen.everybody,
        seen.having(first[sure]),
        figures,
        different(told, scene.cases),
        scene.assumed,
    )


def _known_of(release: Release) -> str:
    """What the attacker on groups with one value knows, in words."""
    if release.batched is not None:
        return "knows somebody's quasi-identifiers, hence the bucket, whose batches mix"
    if release.collected is not None:
        return "knows somebody's quasi-identifiers, and looks at one marginal at a time"
    return "knows which group somebody is in, and nothing else"


def _groups(seen: Seen, cells: Ints) -> Bools:
    """The groups of some cells: (groups,)."""
    chosen = np.zeros(len(seen.size), dtype=bool)
    chosen[seen.group[cells]] = True
    return chosen


# -- background knowledge ------------------------------------------------------------------------------------------


_NOTHING = 1e-12  # what is left of a belief that rounding alone makes


@dataclass(frozen=True, eq=False)
class Ruled:
    """The cells of each group by their belief, and what is left of it once the likeliest other values are ruled out."""

    seen: Seen

    @cached_property
    def begin(self) -> Ints:
        """Where the group of each place begins: (cells,)."""
        return self.seen.start[self.seen.group[self.seen.ranked]]

    @cached_property
    def end(self) -> Ints:
        """Where it ends: (cells,)."""
        return self.seen.start[self.seen.group[self.seen.ranked] + 1]

    @cached_property
    def rank(self) -> Ints:
        """How many values of the group are likelier: (cells,)."""
        return np.arange(len(self.begin)) - self.begin

    def last(self, ruled_out: int) -> Ints:
        """Up to which place values are ruled out, the person's own left aside: (cells,)."""
        return np.minimum(self.begin + ruled_out + (self.rank < ruled_out), self.end)

    def beliefs(self, ruled_out: int) -> Floats:
        """The belief in each value once this number of others is ruled out: (cells,).

        n_s / (n − Σ of those ruled out). Where people have several values it is at least
        1 − (Σ of all further values) / (n − Σ of those ruled out): a person with neither s nor a further value has
        none.
        """
        share = self.seen.share[self.seen.ranked]
        upto = np.concatenate([[0.0], np.cumsum(share)])
        total = upto[self.end] - upto[self.begin]
        others = upto[self.last(ruled_out)] - upto[self.begin] - np.where(self.rank < ruled_out, share, 0.0)
        further = total - others - share
        left = (total if self.seen.holders is None else 1.0) - others
        belief = 1 - further / np.maximum(left, 1e-300)
        return np.where(further <= _NOTHING, 1.0, np.where(belief > 1 - _NOTHING, 1.0, np.maximum(belief, 0.0)))

    def people(self, places: Ints, ruled_out: int) -> int:
        """How many people have the value of one of the places and none of those that are ruled out for it."""
        order = self.seen.ranked
        if self.seen.holders is None:
            return self.seen.having(order[places])
        last = self.last(ruled_out)
        without = [np.setdiff1d(np.arange(self.begin[i], last[i]), [i]) for i in places.tolist()]
        return self.seen.having(order[places], [order[others] for others in without])


def background(scene: Scene) -> Attack:
    """People whose true value reaches the threshold once the most frequent other values are ruled out for them."""
    seen, ruled = scene.seen, Ruled(scene.seen)
    already = scene.sure(seen.share[seen.ranked])
    figures: dict[str, int | float] = {}
    for number in range(1, RULED_OUT + 1):
        reached = np.flatnonzero(already | scene.sure(ruled.beliefs(number)))
        figures[f"exposed once {many(number, 'value is', 'values are')} ruled out"] = ruled.people(reached, number)
    fresh = np.flatnonzero(scene.sure(ruled.beliefs(1)) & ~already).tolist()
    fresh.sort(key=lambda i: (-int(seen.people[seen.ranked[i]]), int(ruled.begin[i]), int(ruled.rank[i])))
    where = "knows which group somebody is in" if seen.called == "groups" else "knows somebody's quasi-identifiers"
    return Attack(
        "background knowledge",
        f"{where}, and one value that they do not have",
        int(next(iter(figures.values()))),
        seen.everybody,
        int(next(iter(figures.values()))),
        figures,
        different((_ruled_case(scene, ruled, i) for i in fresh), scene.cases),
        scene.assumed,
    )


def _ruled_case(scene: Scene, ruled: Ruled, i: int) -> str:
    """A person of whom one more fact tells the value."""
    seen = scene.seen
    out, own = seen.ranked[ruled.begin[i] + (1 if ruled.rank[i] == 0 else 0)], seen.ranked[i]
    return (
        f"an attacker who knows that somebody in {seen.place(int(seen.group[own]))} does not have "
        f"{scene.label(int(seen.value[out]))} is {percent(float(ruled.beliefs(1)[i]))} of "
        f"{scene.label(int(seen.value[own]))}"
    )


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
            links_to(t.columns, t.cells[0].astype(np.int64), np.zeros(t.rows, dtype=bool), public, scene.own)
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
