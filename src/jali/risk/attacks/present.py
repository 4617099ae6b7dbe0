"""The attack on presence: who of a public table is surely in the private one, or surely not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from jali.core.arrays import Bools, Ints, combine
from jali.encoding.table import Table
from jali.errors import InputError
from jali.releases.base import Release
from jali.releases.concealed import Concealed
from jali.releases.linked.angel import Angel
from jali.releases.marginals import Marginals
from jali.risk.attacks.collected import placed
from jali.risk.attacks.decoding import surely
from jali.risk.attacks.links import hidden_groups, links_to, quasi_of
from jali.risk.attacks.scene import Attack, Scene
from jali.search.presence.screen import Framed, framed

SECONDS = 120.0
"""How long groups are decoded in all; of groups that are not done by then nobody is counted."""
DECODES = (
    "holds the public table, which has everybody, and knows the algorithm: reads the private counts off the fractions"
)
COUNTS = "holds a public table that has everybody, and compares its people with those of each published cell"


def presence(scene: Scene, public: Table | None) -> Attack:
    """People of the public table who are in the private one in every world that is published the same, or in none."""
    release = scene.release
    if public is None and isinstance(release, Concealed):
        public = release._public
    attacker = DECODES if isinstance(release, Concealed) else COUNTS
    if public is None:
        return Attack("presence", attacker, None, 0, notes=("who is in the table: no public table was given",))
    try:
        frame = framed(scene.original, public)
    except InputError as problem:
        why = f"who is in the table: the public table must hold everybody of the original, and {problem.what}"
        return Attack("presence", attacker, None, 0, notes=(why,))
    if isinstance(release, Concealed):
        return _decoded(release, public, frame)
    present, absent = np.zeros(len(frame.public), dtype=bool), np.zeros(len(frame.public), dtype=bool)
    for cell, rows in _cells(release, public, scene):
        people = np.bincount(cell[cell >= 0], weights=frame.public[cell >= 0], minlength=len(rows))
        present |= (cell >= 0) & (people == rows)[np.maximum(cell, 0)]
        absent |= cell == NOWHERE
    notes = ("what several tables or overlapping groups say together of who is in the table",)
    return replace(_told(frame, present, absent), attacker=COUNTS, notes=notes)


NOWHERE, SOMEWHERE = -1, -2  # covered by no cell; by several, or by one that others share


def _cells(release: Release, public: Table, scene: Scene) -> Iterator[tuple[Ints, Ints]]:
    """For each published table the one cell of each public combination, and the rows of each cell."""
    if isinstance(release, Marginals):
        for one in placed(release, public):
            rows = np.bincount(one.cell, weights=one.people, minlength=int(max(one.own.max(), one.cell.max())) + 1)
            yield np.where((one.own >= 0) & (rows[one.own] > 0), one.own, NOWHERE), rows.astype(np.int64)
        return
    if isinstance(release, Angel):
        found = [
            links_to(t.columns, t.cells[0].astype(np.int64), np.zeros(t.rows, dtype=bool), public, scene.own)
            for t in release.contents.tables
        ]
    else:
        quasi, hidden = quasi_of(release), hidden_groups(release)
        shown, _ = combine([(c.codes, len(c.labels)) for c in quasi], len(hidden))
        found = [links_to(quasi, shown.astype(np.int64), hidden, public, scene.own)]
    for each in found:
        groups = int(each.group.max(initial=0)) + 1
        rows = np.zeros(groups, dtype=np.int64)
        np.maximum.at(rows, each.group, each.rows)
        shared = np.bincount(each.group, weights=each.groups[each.owner] > 1, minlength=groups) > 0
        cell = np.where(each.groups == 0, NOWHERE, np.where(each.only >= 0, each.only, SOMEWHERE))
        yield np.where((cell >= 0) & shared[np.maximum(cell, 0)], SOMEWHERE, cell), rows


def _decoded(release: Concealed, public: Table, frame: Framed) -> Attack:
    """What the fractions of a concealed release give away."""
    try:
        found = surely(release, public, frame.private, seconds=SECONDS)
    except InputError as problem:
        return Attack("presence", DECODES, None, int(frame.public.sum()), notes=(f"who is in it: {problem.what}",))
    told = _told(frame, found.present, found.absent)
    groups = {"groups": found.groups, "groups whose private counts can be decoded": found.decoded}
    late = f"{found.undecided:,} large groups, for which {SECONDS:g} seconds did not decide who is surely present"
    return replace(told, figures={**groups, **told.figures}, notes=(late,) if found.undecided else ())


def _told(frame: Framed, present: Bools, absent: Bools) -> Attack:
    """The attack, from who is certainly present and who absent, by combination of the public table."""
    people = frame.public
    figures: dict[str, int | float] = {
        "people certainly present": int(people[present].sum()), "people certainly absent": int(people[absent].sum()),
    }  # fmt: skip
    right = int(people[present & (frame.private == people)].sum() + people[absent & (frame.private == 0)].sum())
    exposed = int(people[present | absent].sum())
    return Attack("presence", DECODES, exposed, int(people.sum()), right, figures)
