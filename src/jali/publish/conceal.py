"""conceal: the rows of a private table, shown so that nobody can tell who of a public one is in it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from jali.core.progress import Step, watched
from jali.encoding.table import Column, Table
from jali.errors import InputError, nearest
from jali.measures.holder import holder_costs
from jali.principles.presence import DeltaPresence
from jali.publish.checks import only_present, require_two
from jali.publish.generalize import manifest_of
from jali.releases.base import fresh_order
from jali.releases.column import Published, publish_exact, publish_quasi
from jali.releases.concealed import KNOWN_ALGORITHM, Concealed, _in_public_domain
from jali.releases.display import Members as Shown
from jali.releases.display import Show, publish_groups, publish_weights, shows_of
from jali.releases.generalized import require_jali_table
from jali.search.mondrian.plan import under_taxonomy
from jali.search.presence.screen import Framed, Screen, framed, lattice_screen, partition_screen
from jali.search.presence.shift import SHIFTS, Members, Moved, Shift, Spread, members_of, moved, weights

Search = Literal["lattice", "partition"]


SEARCHES: tuple[Search, ...] = ("lattice", "partition")


def conceal(
    private: Table,
    public: Table,
    *,
    low: float,
    high: float,
    search: Search = "lattice",
    shift: Shift = "none",
    show: Show | Mapping[str, Show] | None = None,
    steps: int | None = None,
    on_step: Step | None = None,
) -> Concealed:
    """The private rows, shown so that each person of the public table is in them with probability `low` to `high`.

    δ-presence: the attacker holds the public table, which has everybody of the private one. `search` is "lattice" (the
    best full-domain generalization, SPALM) or "partition" (boxes, which tell more). `shift` moves the distributions of
    the cells towards those of the private rows as far as the bounds allow: "bounds" judges by Theorem 5 (PPALM),
    "exact" by the exact probabilities (WPALM), "none" not at all. `steps` is the number of even
    shifts that are tried; by default the furthest is found to 1/1024. Distributions are shown with show="pdf", which a
    shift implies.
    """
    bounds = DeltaPresence(low, high)
    _require_choice("search", search, SEARCHES)
    _require_choice("shift", shift, SHIFTS)
    _require_steps(steps, shift)
    require_two(require_jali_table("private", private))
    require_jali_table("public", public)
    shows = _shows(public, search, shift, show)
    private = only_present(private)
    frame = framed(private, public)
    with watched("searching for groups that conceal", on_step) as step:
        screen = (lattice_screen if search == "lattice" else partition_screen)(frame, bounds, step)
    members = members_of(frame.codes, screen.group, frame.public, frame.private)
    with watched("shifting distributions", on_step) as step:
        far = moved(members, bounds, shift, steps=steps, on_step=step)
    method: dict[str, Any] = {
        "name": "conceal", "search": search, "shift": shift, "show": shows,
        "known_algorithm": KNOWN_ALGORITHM[shift != "none"],
    }  # fmt: skip
    method |= {} if shift == "none" else {"resolution": f"1/{far.whole}"}
    release = _publish(private, public, bounds, method, cells=_cells(frame, screen, shows, members, far), frame=frame)
    release.search = {"checked": screen.checked, "nodes": screen.nodes}
    return release


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


def _shows(public: Table, search: Search, shift: Shift, show: Show | Mapping[str, Show] | None) -> dict[str, Show]:
    """How each column is shown: with a shift as a distribution, else so that groups stay apart."""
    if shift != "none":
        shows = shows_of(public.quasi, "pdf" if show is None else show)
        if set(shows.values()) != {"pdf"}:
            raise InputError("a shift is a shift of distributions", do='show="pdf", or shift="none"')
        return shows
    if search == "lattice":
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
    *, cells: Mapping[str, Published], frame: Framed,
) -> Concealed:  # fmt: skip
    """The release of the private rows, each with the cells of its public group."""
    made = [cells[column.name] if column.role == "quasi" else publish_exact(column) for column in private.columns]
    records = np.arange(private.records)
    order = records if private.multiplicity is None else np.repeat(records, private.multiplicity)
    order = order[fresh_order(private.rows)]
    seen = _in_public_domain(private, frame)
    release = Concealed(
        tuple(replace(column, codes=column.codes[order]) for column in made),
        manifest_of(Concealed.kind, seen, (bounds,), method, groups=0, suppressed=0),
        origin=private.origin,
    )
    release.remember(order, private.records)
    release._public = public
    costs = vars(holder_costs(release, seen, seen.domain))
    metrics = {name: costs[name] for name in ("kl", "average", "discernibility", "loss")}
    counts = {**release.manifest.counts, "groups": len(release._group[1])}  # boxes that show the same are one group
    release.manifest = replace(release.manifest, metrics=metrics, counts=counts)
    release.verify()
    return release


def _cells(
    frame: Framed, screen: Screen, shows: Mapping[str, Show], members: Members, far: Moved
) -> dict[str, Published]:
    """What each private record shows, from the public members of the groups that have private rows."""
    place = np.full(len(frame.codes), -1, dtype=np.int64)
    place[members.combination] = np.arange(len(members.combination))
    result = {}
    for index, column in enumerate(frame.table.quasi):
        inside = replace(column, codes=frame.codes[members.combination, index])
        show = shows[column.name]
        if show == "pdf":
            shown = publish_weights(inside, members.group, _weights(members.spreads[index], members.groups, far))
        elif show == "taxonomy" and screen.levels is not None:
            shown = publish_quasi(inside, screen.levels[column.name], None)
        else:
            held = Shown(inside.codes.astype(np.int64), members.group, members.groups, members.group)
            shown = publish_groups(inside, held, show)
        result[column.name] = replace(shown, codes=shown.codes[place[frame.place]])
    return result


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
