"""Audit: what an attacker can learn from a release, a saved release or any frame, from its published tables alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from jali.core.arrays import average_size, starts
from jali.encoding.builders import suppress
from jali.encoding.large import LargeTable
from jali.encoding.table import Table
from jali.errors import InputError
from jali.principles import EntropyDiversity, TCloseness
from jali.principles.column import concentrated
from jali.principles.counts import Cells, Counts, GivenCounts
from jali.releases.base import Bound, Release
from jali.releases.linked.angel import RESTS, Angel
from jali.releases.linked.decide import JOINT_TIME
from jali.releases.load import load
from jali.releases.summary import ATTACKER, KNOWS_ALGORITHM, NOT_COVERED
from jali.risk.audit.figures import NEARLY, AngelAudit, Audit, Homogeneity, OtherAudit, SensitiveAudit, audit_collection
from jali.risk.audit.joint import joint
from jali.risk.audit.joint_figures import JointAudit, JointAudits
from jali.risk.beliefs import once_ruled_out
from jali.risk.disclosure.disclosure import curve
from jali.risk.disclosure.tracker import Curve

__all__ = [
    "NEARLY",
    "AngelAudit",
    "Audit",
    "Homogeneity",
    "OtherAudit",
    "SensitiveAudit",
    "audit",
    "figures",
]

MOST_L = 20
"""Up to which l the recursive diversity is reported."""
FACTS = range(14)
"""For how many facts that an attacker knows the maximum disclosure is reported."""
QUICK = 10.0
"""How many seconds an audit looks at all tables of an ANGEL release together, if k was not asked for all together."""
SMALL = (2, 3, 5, 10, 20)
"""Group sizes below which the share of people is reported."""
SPREAD = (
    "somebody's rows may be in several groups: figures of groups count a person in each of them, and shares of people "
    "are the most that this allows"
)
"""How people are counted where their rows are in several groups."""


@overload
def audit(what: list[Any] | tuple[Any, ...]) -> JointAudit | JointAudits: ...


@overload
def audit(
    what: Release | str | Path | Any,
    *,
    quasi: Iterable[str] | None = None,
    sensitive: Iterable[str] | Mapping[str, Any] = (),
    person: str | None = None,
    public_table: Table | Any = None,
) -> Audit: ...


def audit(
    what: Release | str | Path | Any,
    *,
    quasi: Iterable[str] | None = None,
    sensitive: Iterable[str] | Mapping[str, Any] = (),
    person: str | None = None,
    public_table: Table | Any = None,
) -> Audit | JointAudit | JointAudits:
    """What an attacker who knows the quasi-identifiers can learn from a release, a saved release or any frame.

    For a frame (or a jali Table) name `quasi=` and `sensitive=`; a release knows its own. Of a list of releases of one
    table it says what an attacker who holds them all can learn. Presence is judged against `public_table`,
    a table, frame or file with everybody.
    """
    if public_table is not None and (isinstance(what, (list, tuple)) or not isinstance(what, (str, Path, Release))):
        raise InputError("presence is judged for one release", do="leave public_table= out")
    if isinstance(what, (list, tuple)):
        if quasi is not None or sensitive or person is not None:
            raise InputError("releases know their columns", do="leave quasi=, sensitive= and person= out")
        return joint(what)
    if isinstance(what, (str, Path)):
        what = load(what)
    if isinstance(what, Release):
        return _audit_release(what) if public_table is None else _audit_beside(what, public_table)
    table = _as_table(what, quasi, sensitive, person)
    frequencies = table.frequencies
    counts = frequencies.counts(np.arange(frequencies.combinations, dtype=np.int64), frequencies.combinations)
    named = table.person_name is not None
    notes = _notes(person_named=named, spread=frequencies.spread_people, not_covered=NOT_COVERED[:1])
    return figures(counts, people=table.people, notes=notes + _assumed(counts))


def _as_table(what: Any, quasi: Iterable[str] | None, sensitive: Any, person: str | None) -> Table:
    if isinstance(what, LargeTable):
        raise what.refused("audit", "audit a release of the table")
    if isinstance(what, Table):
        return what
    if quasi is None and not hasattr(what, "columns"):
        takes = "audit takes a release, its folder, a list of releases, a jali table or a frame"
        raise InputError(takes, got=type(what).__name__)
    if quasi is None:
        do = 'audit(frame, quasi=["age", "zip"], sensitive=["disease"])'
        raise InputError("to audit a frame, name its columns", do=do)
    if isinstance(quasi, str):
        raise InputError("quasi must be a list of column names", got=f'"{quasi}"', do=f'write quasi=["{quasi}"]')
    from jali.sources.tables import table

    return table(what, quasi={name: suppress() for name in quasi}, sensitive=sensitive, person=person)


def _notes(
    *, person_named: bool, spread: bool, not_covered: tuple[str, ...], transparent: bool = False
) -> tuple[str, ...]:
    """What the figures assume, and what they do not speak of; `transparent` is what the manifest claims."""
    notes = [f"the figures are for {ATTACKER}"]
    if transparent:
        notes.append(f"the release says that its promises hold {KNOWS_ALGORITHM}")
    if not person_named:
        notes.append("one row per person was assumed")
    if spread:
        notes.append(SPREAD)
        notes.append(
            "not covered: an attacker who knows several groups of one person's rows can narrow that person down"
        )
    return (*notes, *(f"not covered: {text}" for text in not_covered))


def _audit_beside(release: Release, public: Table | Any) -> Audit:
    """The audit of a release, and the presence of everybody in the public table."""
    if release.grouped_rows is None:
        release.presence()  # says why it is not defined
    from jali.risk.attacks.links import public_table as as_public  # which loads kernels that no other audit needs

    table = as_public(release, public, judged=True)
    audited = _audit_release(release.beside(table))
    return audited if audited.presence is not None else replace(audited, presence=release.presence(table))


def _assumed(counts: Counts) -> tuple[str, ...]:
    """What the figures of sensitive values assume where people have several."""
    notes = [
        f'where a value of "{column.name}" is missing it is no value: judged are the people whose value is known'
        for column in counts.sensitive
        if column.unknown is not None
    ]
    if any(not counts.known(column.name).one_value for column in counts.sensitive):
        notes.append(
            "where people have several values, the figures are for the most concentrated choice of one value for each "
            "person that the counts allow"
        )
    if isinstance(counts, GivenCounts) and counts.bounded:
        names = ", ".join(counts.bounded)
        notes.append(f"no promise counts the people by value of {names}: as many as its rows allow were assumed")
    return tuple(notes)


def _audit_release(release: Release) -> Audit:
    if release.collected is not None:
        return audit_collection(release.collected, MOST_L)
    if release.batched is not None:
        return _audit_angel(release.batched)
    counts, kept = release.counts(), release.kept()
    named = not release.manifest.counts.get("one_row_per_person_assumed", True)
    spread = int(counts.size.sum()) > int(release.manifest.counts.get("people", 0))
    unjudged = [repr(p) for p in release.principles if repr(p) not in kept]
    limits = release.not_covered
    limits += tuple(
        f"{text}, which is judged against the public table: release.presence(public=…)" for text in unjudged
    )
    claimed = release.transparent
    notes = _notes(person_named=named, spread=spread, not_covered=limits, transparent=claimed) + _assumed(counts)
    audited = figures(
        counts, people=release.manifest.counts.get("people"), kept=kept, other=_other(release), notes=notes,
        disclosed=release.disclosure_bound,
    )  # fmt: skip
    if release.grouped_rows is None:
        return _told_apart(audited, release)
    return audited if release.public_table is None else replace(audited, presence=release.presence())


def _audit_angel(release: Angel) -> Audit:
    """The figures of batches, of the tables that they link, and of all of them together."""
    counts, tables = release.counts(), release.contents.tables
    kept, k = release.kept(), min(int(table.sizes.min()) for table in tables)
    asked = bool(release.manifest.method.get("joint_k"))
    check = release.joint_check(seconds=JOINT_TIME if asked else QUICK)
    kept |= {f"joint_k = {release.k}": check.kept is True} if asked else {}
    assumed = bool(release.manifest.counts["one_row_per_person_assumed"])
    limits, claimed = release.not_covered, release.transparent
    notes = _notes(person_named=not assumed, spread=False, not_covered=limits, transparent=claimed) + _assumed(counts)
    batches = figures(counts, kept=kept, notes=(notes[0], RESTS, *notes[1:]), disclosed=release.disclosure_bound)
    size = tables[0].sizes
    mixed = [release.posterior(table.name) for table in tables if table.linked]
    together = AngelAudit(
        smallest_batch=batches.k,
        posterior={
            repr(p): (min if p.better == "higher" else max)(p.worst(each) for each in mixed)
            for p in release.mixed_principles
        },
        largest_share={s.name: max(_largest(each, s.name) for each in mixed) for s in counts.sensitive},
        ruled_out={
            s.name: max(_left(each.known(s.name)) for each in mixed)
            for s in counts.sensitive
            if counts.known(s.name).one_value
        },
        tables=len(tables),
        joint=check.cell,
        joint_keeps_k=check.kept,
        k=release.k,
    )
    return replace(
        batches, k=k, highest_risk=1.0 / k, average_risk=len(size) / release.rows, angel=together,
        below={bound: float(size[size < bound].sum()) / release.rows for bound in SMALL},
    )  # fmt: skip


def _largest(counts: Counts, name: str) -> float:
    """The largest share of one value in any group."""
    cells = counts.known(name)
    return float((cells.largest(cells.n) / np.maximum(cells.size, 1)).max())


def _left(cells: Cells) -> float:
    """The most that an attacker believes of anybody once the likeliest other value is ruled out."""
    return float((cells.n / np.maximum(once_ruled_out(cells), 1)).max(initial=0.0))


def _told_apart(audit: Audit, release: Release) -> Audit:
    """The figures of buckets: people are told apart by the quasi-identifiers they show, not by their bucket."""
    shared = release.shared_by(release.of_role("quasi"))
    return replace(
        audit,
        k=int(shared.min()),
        highest_risk=1.0 / int(shared.min()),
        average_risk=len(shared) / release.rows,
        below={bound: float(shared[shared < bound].sum()) / release.rows for bound in SMALL},
        smallest_bucket=audit.k,
    )


def _other(release: Release) -> OtherAudit | None:
    """Whether columns that were published as they are single people out."""
    columns = release.of_role("other")
    if not columns:
        return None
    shared = release.shared_by(release.of_role("quasi") + columns)
    alone = int((shared == 1).sum())
    return OtherAudit(tuple(c.name for c in columns), int(shared.min()), alone, alone / release.rows)


def figures(
    counts: Counts,
    *,
    people: int | None = None,
    kept: Mapping[str, bool] | None = None,
    other: OtherAudit | None = None,
    notes: tuple[str, ...] = (),
    disclosed: Bound | None = "exact",
) -> Audit:
    """All figures of an audit, from counts; `disclosed` says what their maximum disclosure is of what was published.

    `people` is how many there are, where somebody can be in several groups. The counts do not say whose groups are
    small, so that the share of people in such groups is then the most it can be.
    """
    size = counts.size[counts.size > 0]
    members = int(size.sum())  # everybody, once in each group
    people = min(people or members, members)
    return Audit(
        k=int(size.min()),
        groups=len(size),
        people=people,
        average_size=average_size(members, len(size)),
        highest_risk=1.0 / int(size.min()),
        average_risk=len(size) / members,
        below={bound: min(1.0, float(size[size < bound].sum()) / people) for bound in SMALL},
        sensitive=tuple(_sensitive(counts, column.name, disclosed) for column in counts.sensitive),
        kept=kept or {},
        other=other,
        notes=notes,
    )


def _sensitive(counts: Counts, name: str, disclosed: Bound | None) -> SensitiveAudit:
    cells = counts.known(name)
    largest, size = cells.largest(cells.n), cells.size
    filled = size > 0
    if not filled.any():  # nobody's value is known: there is nothing to learn
        return SensitiveAudit(
            column=name, distinct_l=0, entropy_l=0.0, recursive_c={}, t=None, t_ordered=None, largest_share=0.0,
            homogeneous=Homogeneity(0, 0), nearly_homogeneous=Homogeneity(0, 0), disclosure=None,
            ruled_out=Homogeneity(0, 0),
        )  # fmt: skip
    largest, size = largest[filled], size[filled]
    chosen = concentrated(cells)
    distinct = np.diff(chosen.start)[filled]
    same = largest == size
    nearly = largest * 20 >= size * 19
    ordered, comparable = cells.column.ordered and cells.column.judged > 1, counts.one_value(name)
    return SensitiveAudit(
        column=name,
        distinct_l=int(distinct.min()),
        entropy_l=EntropyDiversity(1, sensitive=name).worst(counts),
        recursive_c=_recursive(chosen, int(distinct.min())),
        t=TCloseness(1, sensitive=name).worst(counts) if comparable else None,
        t_ordered=TCloseness(1, distance="ordered", sensitive=name).worst(counts) if ordered and comparable else None,
        largest_share=float((largest / size).max()),
        homogeneous=_people(same, size),
        nearly_homogeneous=_people(nearly, size),
        ruled_out=_ruled_out(cells) if cells.one_value else None,
        disclosure=_disclosure(counts, name, disclosed),
        commonest=float(cells.reference.max() / cells.reference.sum()),
    )


def _disclosure(counts: Counts, name: str, disclosed: Bound | None) -> Curve | None:
    """The maximum disclosure; none where people have several rows or there are no groups of people."""
    if disclosed is None or counts.several_rows:
        return None
    return replace(curve(counts, FACTS, sensitive=name), kind=disclosed)


def _ruled_out(cells: Cells) -> Homogeneity:
    """People whose own value is (nearly) known once the likeliest other one is ruled out, and their groups."""
    known = cells.n * 20 >= once_ruled_out(cells) * 19
    return Homogeneity(len(np.unique(cells.group[known])), int(cells.n[known].sum()))


def _people(which: NDArray[np.bool_], size: NDArray[np.int64]) -> Homogeneity:
    return Homogeneity(int(which.sum()), int(size[which].sum()))


def _recursive(cells: Cells, fewest: int) -> dict[int, float]:
    """What c must exceed for each l up to one more than a group has values at the least: r₁ / (r_l + … + r_m)."""
    order = np.lexsort((-cells.n, cells.group))
    before = starts(cells.n[order])  # people in the cells before each, groups in a row
    start, end = cells.start[:-1], cells.start[1:]
    filled = end > start
    start, end = start[filled], end[filled]
    most = cells.n[order][start]
    result = {}
    for l in range(2, min(fewest, MOST_L) + 2):
        tail = before[end] - before[np.minimum(start + l - 1, end)]
        with np.errstate(divide="ignore"):
            result[l] = float(np.max(most / tail))
    return result
