"""Concealed releases: the rows of a private table, shown so that nobody can tell too surely who of a public one it has.

Groups are groups of the public table: every cell follows from the public table and, where distributions are shown,
from the private frequencies of its group. Nothing is drawn tight around the private rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from jali.encoding import values as v
from jali.encoding.table import Column, Table
from jali.errors import InputError, InternalError, nearest
from jali.principles.counts import Bools
from jali.principles.presence import DeltaPresence
from jali.progress import Step, watched
from jali.releases.asked import require_two
from jali.releases.base import fresh_order, load
from jali.releases.display import Members as Shown
from jali.releases.display import Show, publish_groups, publish_weights, shows_of
from jali.releases.generalized import Generalized, manifest_of
from jali.releases.original import holder_costs
from jali.releases.presence import Presence, presence_of
from jali.releases.present import only_present
from jali.releases.published import Published, publish_exact, publish_quasi
from jali.search.conceal import Framed, Screen, framed, lattice_screen, partition_screen
from jali.search.conceal_shift import SHIFTS, Members, Moved, Shift, Spread, members_of, moved, weights
from jali.search.mondrian_plan import under_taxonomy

Search = Literal["lattice", "partition"]
SEARCHES: tuple[Search, ...] = ("lattice", "partition")

KNOWN_ALGORITHM: dict[bool, str] = {
    False: "whoever knows the algorithm learns that no finer groups kept the bounds, and of a lattice that no other "
    "such groups tell more of the private rows",
    True: "whoever knows the algorithm can often work out how far a group was shifted, and from that the frequencies "
    "of its private rows, which say more than the distributions (reversibility)",
}
"""What the algorithm gives away, without and with shifted distributions; saved with the release."""


@dataclass(frozen=True, eq=False)
class Widened(Column):
    """A private column in a larger domain: what counts as occurring are the values that the cells may be about."""

    occurring: Bools = field(kw_only=True)  # (values,)

    @cached_property
    def present(self) -> Bools:
        return self.occurring


class Concealed(Generalized):
    """A table of private rows whose groups are groups of a public table."""

    kind: ClassVar[str] = "concealed"
    _public: Table | None = None  # in memory only

    def beside(self, public: Table) -> Concealed:
        """The same release, with the public table to judge it by at hand; that is never saved."""
        made = type(self)(self.columns, self.manifest, origin=self.origin)
        made.search, made._places, made._public = self.search, self._places, _table("public", public)
        return made

    def presence(self, public: Table | None = None) -> Presence:
        """For each person of the public table the probability of being in this one, from the published cells alone."""
        known = self._public if public is None else _table("public", public)
        if known is None:
            raise InputError("presence can only be told beside the public table", do="use release.beside(public)")
        return presence_of(self, known)

    def verify(self, public: Table | None = None) -> None:
        """Judge the bounds again from the published cells and the public table.

        A broken one is an InternalError, or an InputError where it is judged beside a table that the caller gives.
        """
        presence = self.presence(public)
        if not self.principles:
            raise InputError("the release promises no bounds of presence", do="get the release again")
        for principle in self.principles:
            if isinstance(principle, DeltaPresence) and presence.holds(principle):
                continue
            if public is not None:
                raise InputError(
                    f"beside this public table the release does not keep {principle!r}",
                    got=f"{presence.low:.4g} to {presence.high:.4g}",
                    do="give the public table that it was made beside; if it is that, do not use the release",
                )
            raise InternalError(f"the release does not keep {principle!r}; nothing was written: please report this bug")

    def kept(self) -> dict[str, bool]:
        """Whether each promise is kept, where the public table is at hand to judge it."""
        if self._public is None:
            return {}
        presence = self.presence()
        return {repr(p): isinstance(p, DeltaPresence) and presence.holds(p) for p in self.principles}

    def widened(self, original: Table) -> Table:
        """The private table over the domain that the cells are about: values that only public people have are in it."""
        if self._public is not None:
            return _in_public_domain(original, framed(original, self._public))
        return replace(original, columns=tuple(self._with_leaves(column) for column in original.columns))

    def _with_leaves(self, column: Column) -> Column:
        """The column with all values that the cells of a saved release name."""
        shown = next((c for c in self.of_role("quasi") if c.name == column.name), None)
        named = [] if shown is None or shown.facts is None else shown.facts.get("leaves", [])
        known = set(column.labels.to_pylist())
        more = [text for text in named if text not in known]
        if not more or column.declared:  # a declared domain is the same for both tables
            return column
        both = [
            column.values,
            v.as_kind(column.name, pa.array(more, pa.string()), column.kind).cast(column.values.type),
        ]
        values = v.ordered(pa.concat_arrays(both))
        codes = v.places(values, column.values)[column.codes]
        return _widened(replace(column, values=values, hierarchy=None), codes, np.ones(len(values), dtype=bool))

    def _read_back(self, folder: Path) -> Generalized:
        written = load(folder)
        if not isinstance(written, Concealed) or self._public is None:
            raise InternalError("the files are not a concealed release; nothing was written: please report this bug")
        return written.beside(self._public)

    def __getstate__(self) -> dict[str, Any]:
        """A pickled release knows neither where the original's rows went nor the public table."""
        return super().__getstate__() | {"_public": None}


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
    "exact" by the exact probabilities (WPALM), "none" not at all. `steps` tries so many shifts, evenly; by default the
    furthest is found to 1/1024. Distributions are shown with show="pdf", which a shift implies.
    """
    bounds = DeltaPresence(low, high)
    _require_choice("search", search, SEARCHES)
    _require_choice("shift", shift, SHIFTS)
    _require_steps(steps, shift)
    require_two(_table("private", private))
    _table("public", public)
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


def _table(which: str, given: object) -> Table:
    if not isinstance(given, Table):
        raise InputError(f"the {which} table must be a jali table", do="use jali.read or jali.table")
    return given


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


# -- what is published ----------------------------------------------------------------------------------------------


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


def _widened(column: Column, codes: NDArray[np.integer], occurring: Bools) -> Column:
    return Widened(
        column.name, column.role, column.values, codes, column.hierarchy, column.judges_groups, occurring=occurring
    )


def _in_public_domain(private: Table, frame: Framed) -> Table:
    """The private table with the public table's domains and hierarchies."""
    codes = frame.codes[frame.place]
    known = {c.name: _widened(c, codes[:, i], c.present) for i, c in enumerate(frame.table.quasi)}
    columns = tuple(known.get(column.name, column) for column in private.columns)
    return replace(private, columns=columns, domain=frame.table.domain)


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
