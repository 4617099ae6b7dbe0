"""conceal: the rows of a private table, shown so that nobody can tell who of a public one is in it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from jali.core.arrays import Ints, owners, starts
from jali.core.progress import Step, watched
from jali.core.rows import fresh_order, open_order
from jali.encoding.ends import Ends, every_value
from jali.encoding.table import Column, Table
from jali.errors import InputError, nearest
from jali.measures.holder import holder_costs
from jali.principles.anonymity import DeltaPresence
from jali.publish.checks import note_of_stars, only_present, require_publishable
from jali.publish.generalize import manifest_of
from jali.releases.column import Published, publish_exact, publish_quasi
from jali.releases.concealed import KNOWN_ALGORITHM, Concealed, _in_public_domain
from jali.releases.display import Members as Shown
from jali.releases.display import Show, publish_groups, publish_weights, shows_of
from jali.releases.generalized import require_jali_table
from jali.releases.pdf import Shift as Towards
from jali.releases.presence import Parts
from jali.search.items import under_taxonomy
from jali.search.screen import Framed, Screen, framed, halved_screen, lattice_screen, partition_screen
from jali.search.shift import SHIFTS, Members, Moved, Shift, Spread, members_of, moved, weights

Search = Literal["lattice", "partition"]
PUBLIC = Towards(start="set")
"""Distributions are the frequencies of a group's public people."""
SEARCHES: tuple[Search, ...] = ("lattice", "partition")


def conceal(
    private: Table,
    public: Table,
    *,
    low: float,
    high: float,
    search: Search | None = None,
    shift: Shift = "none",
    show: Show | Mapping[str, Show] | None = None,
    steps: int | None = None,
    transparent: bool = False,
    on_step: Step | None = None,
) -> Concealed:
    """The private rows, shown so that each person of the public table is in them with probability `low` to `high`.

    δ-presence: the attacker holds the public table, which has everybody of the private one. `search` is "lattice" (the
    best full-domain generalization, SPALM; the default) or "partition" (boxes, which tell more). `shift` moves the
    distributions of the cells towards those of the private rows as far as the bounds allow: "bounds" judges by Theorem
    5 (PPALM), "exact" by the exact probabilities (WPALM), "none" not at all. `steps` is the number of even
    shifts that are tried; by default the furthest is found to 1/1024. Distributions are shown with show="pdf", which a
    shift implies. `transparent` keeps the bounds also against an attacker who knows how the groups were chosen: they
    are equal halves of the public people (decision 45), without a search or a shift.
    """
    bounds = DeltaPresence(low, high)
    _require_ways(search, shift, steps, transparent=transparent)
    require_publishable(require_jali_table("private", private))
    require_jali_table("public", public)
    shows = _shows(public, search, shift, show, transparent=transparent)
    private = only_present(private)
    frame = framed(private, public)
    if transparent:
        return _in_halves(private, public, bounds, shows=shows, frame=frame, on_step=on_step)
    with watched("searching for groups that conceal", on_step) as step:
        screen = (partition_screen if search == "partition" else lattice_screen)(frame, bounds, step)
    members = members_of(frame.codes, screen.group, frame.public, frame.private)
    with watched("shifting distributions", on_step) as step:
        far = moved(members, bounds, shift, steps=steps, on_step=step)
    method: dict[str, Any] = {
        "name": "conceal", "search": search or "lattice", "shift": shift, "show": shows,
        "known_algorithm": KNOWN_ALGORITHM[shift != "none"],
    }  # fmt: skip
    method |= {} if shift == "none" else {"resolution": f"1/{far.whole}"}
    cells = _cells(frame, screen, shows, members, far, rows=_combinations(private, frame))
    release = _publish(private, public, bounds, method, cells=cells, frame=frame)
    release.search = {"checked": screen.checked, "nodes": screen.nodes}
    return release


def _in_halves(
    private: Table, public: Table, bounds: DeltaPresence, *, shows: Mapping[str, Show], frame: Framed,
    on_step: Step | None,
) -> Concealed:  # fmt: skip
    """The release whose groups are equal halves of the public people.

    What a group shows is read from its public people alone: never from those of them who are present.
    """
    rows, people = _combinations(private, frame), public.people
    with watched("halving the public people", on_step) as step:
        drawn, ties = fresh_order(people), open_order(people)
        halved = halved_screen(frame, rows, public, bounds, drawn=drawn, ties=ties, on_step=step)
    cells = {}
    for index, column in enumerate(frame.table.quasi):
        codes = frame.codes[halved.combination, index]
        held = Shown(codes.astype(np.int64), halved.group, len(halved.size), halved.rows, halved.people)
        known = replace(column, codes=codes, ends=_named(column, shows))
        cells[column.name] = publish_groups(known, held, shows[column.name], shift=PUBLIC)
    _, first = np.unique(halved.rows, return_index=True)
    nodes = [cells[column.name].codes[first].astype(np.int64) for column in private.quasi]
    order = np.lexsort((halved.present, halved.size, *nodes[::-1]))
    parts = Parts([node[order] for node in nodes], halved.size[order], halved.present[order])
    method = {"name": "conceal", "shift": "none", "show": shows, "transparent": True}
    release = _publish(private, public, bounds, method, cells=cells, frame=frame, parts=parts)
    release.search = {"checked": halved.checked}
    return release


def _combinations(private: Table, frame: Framed) -> Ints:
    """The public combination of each private row."""
    return frame.place if private.multiplicity is None else np.repeat(frame.place, private.multiplicity)


def _require_ways(search: object, shift: Shift, steps: object, *, transparent: object) -> None:
    """Raise InputError for a way that is not known, or that reads who is present where nothing may."""
    if search is not None:
        _require_choice("search", str(search), SEARCHES)
    _require_choice("shift", shift, SHIFTS)
    if not isinstance(transparent, bool):
        raise InputError("transparent must be True or False", got=repr(transparent))
    if transparent and shift != "none":
        raise InputError(
            "a shift is computed from who is present, which a transparent release must not show",
            do='leave shift out; show="pdf" shows the distributions of the public people',
        )
    if transparent and search is not None:
        raise InputError(
            "a search looks for the best groups of those who are present; transparent groups are equal halves",
            do="leave search out",
        )
    _require_steps(steps, shift)


def _require_choice(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise InputError(f'no {name} "{value}"', do=nearest(str(value), known))


def _require_steps(steps: object, shift: Shift) -> None:
    if steps is None:
        return
    if isinstance(steps, bool) or not isinstance(steps, (int, np.integer)) or not 1 <= steps <= 10**6:
        raise InputError("steps must be a whole number from 1 to 1,000,000", got=repr(steps), do="write e.g. steps=10")
    if shift == "none":
        raise InputError("steps are steps of a shift, and there is none", do='add shift="exact"')


def _shows(
    public: Table, search: Search | None, shift: Shift, show: Show | Mapping[str, Show] | None, *, transparent: bool
) -> dict[str, Show]:
    """How each column is shown: with a shift as a distribution, else so that groups stay apart if they do."""
    if shift != "none":
        shows = shows_of(public.quasi, "pdf" if show is None else show)
        if set(shows.values()) != {"pdf"}:
            raise InputError("a shift is a shift of distributions", do='show="pdf", or shift="none"')
        return shows
    if transparent:
        return shows_of(public.quasi, show)
    if search != "partition":
        return shows_of(public.quasi, show, default="taxonomy")
    found = shows_of(public.quasi, show)
    asked = show if isinstance(show, Mapping) else {} if show is None else dict.fromkeys(found, show)
    return {c.name: found[c.name] if c.name in asked else _apart(c) for c in public.quasi}


def _apart(column: Column) -> Show:
    """A display whose cells do not overlap where the partitioner cuts."""
    if under_taxonomy(column):
        return "taxonomy"
    return "interval" if column.kind in ("number", "date") else "set"


def _publish(
    private: Table, public: Table, bounds: DeltaPresence, method: Mapping[str, Any],
    *, cells: Mapping[str, Published], frame: Framed, parts: Parts | None = None,
) -> Concealed:  # fmt: skip
    """The release of the private rows, each with the cells of its public group; `cells` are those of each row."""
    many = np.ones(private.records, dtype=np.int64) if private.multiplicity is None else private.multiplicity
    record = owners(many)
    shown = [
        cells[c.name] if c.role == "quasi" else (exact := publish_exact(c)).with_codes(exact.codes[record])
        for c in private.columns
    ]
    seen = _in_public_domain(private, frame)
    manifest = manifest_of(Concealed.kind, seen, (bounds,), method, groups=0, suppressed=0)
    release = Concealed(tuple(shown), manifest, origin=private.origin)
    if parts is None or bool((many == 1).all()):  # else the rows of a record can be in several groups
        release.remember(starts(many)[:-1], private.records, by_combination=False)
    release._public, release.parts = public, parts
    costs = vars(holder_costs(release, seen, seen.domain))
    metrics = {name: costs[name] for name in ("kl", "average", "discernibility", "loss")}
    counts = {**release.manifest.counts, "groups": len(release.sizes)}  # boxes that show the same are one group
    release.manifest = replace(release.manifest, metrics=metrics, counts=counts)
    release.verify()
    return release.with_notes(note_of_stars(release))


def _cells(
    frame: Framed, screen: Screen, shows: Mapping[str, Show], members: Members, far: Moved, *, rows: Ints
) -> dict[str, Published]:
    """What each private row shows, from the public members of the groups that have private rows."""
    place = np.full(len(frame.codes), -1, dtype=np.int64)
    place[members.combination] = np.arange(len(members.combination))
    result = {}
    for index, column in enumerate(frame.table.quasi):
        inside = replace(column, codes=frame.codes[members.combination, index], ends=_named(column, shows))
        show = shows[column.name]
        if show == "pdf":
            shown = publish_weights(inside, members.group, _weights(members.spreads[index], members.groups, far))
        elif show == "taxonomy" and screen.levels is not None:
            shown = publish_quasi(inside, screen.levels[column.name], None)
        else:
            held = Shown(inside.codes.astype(np.int64), members.group, members.groups, members.group)
            shown = publish_groups(inside, held, show)
        result[column.name] = shown.with_codes(shown.codes[place[rows]])
    return result


def _named(column: Column, shows: Mapping[str, Show]) -> Ends | None:
    """What a column names: values of the public table, which everybody may know."""
    return None if shows[column.name].endswith("-exact") else every_value(column, "public")


def _weights(spread: Spread, groups: int, far: Moved) -> list[dict[int, int]]:
    """The distribution of each group as whole numbers by code, without a common divisor."""
    amount = weights(spread, far.t, far.whole)
    start = np.searchsorted(spread.group, np.arange(groups + 1)).tolist()
    code, weight = spread.code.tolist(), amount.tolist()
    found: list[dict[int, int]] = []
    for a, b in pairwise(start):
        divisor = math.gcd(*weight[a:b])
        found.append({c: w // divisor for c, w in zip(code[a:b], weight[a:b], strict=True) if w})
    return found
