"""Audit: what an attacker can learn from a release, a saved release or any frame, from its published tables alone."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jali.errors import InputError
from jali.principles import EntropyDiversity, TCloseness
from jali.principles.base import Principle
from jali.principles.counts import Cells, Counts
from jali.releases.base import Release, load
from jali.releases.generalized import Generalized
from jali.show import lines_of

NEARLY = 0.95
"""From which share of one value on a group counts as nearly homogeneous."""
MOST_L = 20
"""Up to which l the recursive diversity is reported."""
SMALL = (2, 3, 5, 10, 20)
"""Group sizes below which the share of people is reported."""


@dataclass(frozen=True)
class Homogeneity:
    """Groups in which (nearly) everybody has the same value, and the people in them."""

    groups: int
    people: int


@dataclass(frozen=True)
class SensitiveAudit:
    """What groups give away of one sensitive column."""

    column: str
    distinct_l: int
    entropy_l: float
    recursive_c: Mapping[int, float]  # the c that recursive (c, l)-diversity must exceed, for each l
    t: float
    t_ordered: float | None
    largest_share: float
    homogeneous: Homogeneity
    nearly_homogeneous: Homogeneity

    def to_dict(self) -> dict[str, Any]:
        """Plain nested dicts; a c that no finite number exceeds is None."""
        finite = {str(k): (c if math.isfinite(c) else None) for k, c in self.recursive_c.items()}
        return {
            "distinct_l": self.distinct_l, "entropy_l": self.entropy_l, "recursive_c": finite, "t": self.t,
            "t_ordered": self.t_ordered, "largest_share": self.largest_share,
            "homogeneous": vars(self.homogeneous), "nearly_homogeneous": vars(self.nearly_homogeneous),
        }  # fmt: skip


@dataclass(frozen=True)
class OtherAudit:
    """Whether columns that were published untouched single people out within their groups."""

    columns: tuple[str, ...]
    smallest: int  # rows that share quasi-identifiers and these columns, at the least
    alone: int  # rows that share them with nobody
    alone_share: float


@dataclass(frozen=True)
class Audit:
    """The figures of an audit; attributes of a single sensitive column stand at the top."""

    k: int
    groups: int
    people: int
    average_size: float
    highest_risk: float
    average_risk: float
    below: Mapping[int, float]  # share of people in groups smaller than each size
    sensitive: tuple[SensitiveAudit, ...] = ()
    kept: Mapping[str, bool] = field(default_factory=dict)  # each promise of a release, judged again
    other: OtherAudit | None = None
    notes: tuple[str, ...] = ()

    def __getattr__(self, name: str) -> Any:
        """A sensitive column's figure, or a mapping by column where there are several."""
        if name.startswith("_") or name not in SensitiveAudit.__dataclass_fields__ or name == "column":
            raise AttributeError(name)
        if len(self.sensitive) == 1:
            return getattr(self.sensitive[0], name)
        if not self.sensitive:
            raise InputError(f"no sensitive column was audited, so there is no {name}", do='name one: sensitive=["…"]')
        return {s.column: getattr(s, name) for s in self.sensitive}

    @property
    def holds(self) -> bool:
        """Whether every promise of the release was found kept."""
        return all(self.kept.values())

    def to_dict(self) -> dict[str, Any]:
        """Plain nested dicts with the attributes' names at the top."""
        result: dict[str, Any] = {
            "k": self.k, "groups": self.groups, "people": self.people, "average_size": self.average_size,
            "highest_risk": self.highest_risk, "average_risk": self.average_risk,
            "below": {str(size): share for size, share in self.below.items()},
        }  # fmt: skip
        columns = {s.column: s.to_dict() for s in self.sensitive}
        for name in next(iter(columns.values()), {}):
            by_column = {column: figures[name] for column, figures in columns.items()}
            result[name] = next(iter(by_column.values())) if len(by_column) == 1 else by_column
        if self.other is not None:
            result["other"] = vars(self.other) | {"columns": list(self.other.columns)}
        return result | {"kept": dict(self.kept), "holds": self.holds, "notes": list(self.notes)}

    def __repr__(self) -> str:
        return "\n".join(lines_of(_rows(self)) + [f"note: {note}" for note in self.notes])


def _rows(audit: Audit) -> list[tuple[str, str]]:
    rows = [
        ("people", f"{audit.people:,}"),
        ("groups", f"{audit.groups:,}"),
        ("k (smallest group)", f"{audit.k:,}"),
        ("average group", f"{audit.average_size:,.1f}"),
        ("re-identification risk, highest", f"{audit.highest_risk:.4f}"),
        ("re-identification risk, average", f"{audit.average_risk:.4f}"),
    ]
    rows += [(f"people in groups below {size}", f"{share:.2%}") for size, share in audit.below.items()]
    for s in audit.sensitive:
        rows.append((f"— {s.column}", ""))
        rows += [
            ("distinct values, at least", str(s.distinct_l)),
            ("entropy diversity", f"{s.entropy_l:.4f}"),
            ("largest share of a value", f"{s.largest_share:.4f}"),
            ("t (equal distance)", f"{s.t:.4f}"),
        ]
        rows += [] if s.t_ordered is None else [("t (ordered distance)", f"{s.t_ordered:.4f}")]
        rows += [(f"recursive diversity, l = {k}", _c(c)) for k, c in list(s.recursive_c.items())[:6]]
        rows += [
            ("homogeneous groups, people in them", f"{s.homogeneous.groups:,}, {s.homogeneous.people:,}"),
            (f"{NEARLY:.0%} homogeneous, people in them", f"{s.nearly_homogeneous.groups:,}, {s.nearly_homogeneous.people:,}"),
        ]
    if audit.other is not None:
        rows.append(("rows alone with " + ", ".join(audit.other.columns), f"{audit.other.alone:,} ({audit.other.alone_share:.2%})"))
    rows += [(f"promise {name}", "kept" if kept else "BROKEN") for name, kept in audit.kept.items()]
    return rows


def _c(c: float) -> str:
    return "for no c" if math.isinf(c) else f"for c above {c:.4g}"


def audit(
    what: Release | str | Path | Any,
    *,
    quasi: Iterable[str] | None = None,
    sensitive: Iterable[str] | Mapping[str, Any] = (),
    person: str | None = None,
) -> Audit:
    """What an attacker who knows the quasi-identifiers can learn from a release, a saved release or any frame.

    For a frame (or a jali Table) name `quasi=` and `sensitive=`; a release knows its own.
    """
    if isinstance(what, (str, Path)):
        what = load(what)
    if isinstance(what, Release):
        return _audit_release(what)
    table = _as_table(what, quasi, sensitive, person)
    frequencies = table.frequencies
    counts = frequencies.counts(np.arange(frequencies.combinations, dtype=np.int64), frequencies.combinations)
    notes = () if table.person_name else ("one row per person was assumed",)
    return figures(counts, notes=notes)


def _as_table(what: Any, quasi: Iterable[str] | None, sensitive: Any, person: str | None) -> Any:
    from jali.encoding.table import Table

    if isinstance(what, Table):
        return what
    if quasi is None:
        raise InputError("to audit a frame, name its columns", do='audit(frame, quasi=["age", "zip"], sensitive=["disease"])')
    from jali.sources.frames import table

    return table(what, quasi={name: _no_hierarchy() for name in quasi}, sensitive=sensitive, person=person)


def _no_hierarchy() -> Any:
    from jali.encoding.builders import suppress

    return suppress()


def _audit_release(release: Release) -> Audit:
    counts = release.counts()
    kept = {repr(p): bool(p.holds(counts).all()) for p in release.principles}
    notes = ["the attacker knows the quasi-identifiers and that the person is in the table"]
    if release.manifest.counts.get("one_row_per_person_assumed", True):
        notes.append("one row per person was assumed")
    other = _other(release) if isinstance(release, Generalized) else None
    return figures(counts, kept=kept, other=other, notes=tuple(notes))


def _other(release: Generalized) -> OtherAudit | None:
    columns = release.of_role("other")
    if not columns:
        return None
    shared = release.shared_by(release.of_role("quasi") + columns)
    alone = int((shared == 1).sum())
    return OtherAudit(tuple(c.name for c in columns), int(shared.min()), alone, alone / release.rows)


def figures(
    counts: Counts, *, kept: Mapping[str, bool] | None = None, other: OtherAudit | None = None, notes: tuple[str, ...] = ()
) -> Audit:
    """All figures of an audit, from counts."""
    size = counts.size[counts.size > 0]
    people = int(size.sum())
    return Audit(
        k=int(size.min()),
        groups=len(size),
        people=people,
        average_size=people / len(size),
        highest_risk=1.0 / int(size.min()),
        average_risk=len(size) / people,
        below={bound: float(size[size < bound].sum()) / people for bound in SMALL},
        sensitive=tuple(_sensitive(counts, column.name) for column in counts.sensitive),
        kept=kept or {},
        other=other,
        notes=notes,
    )


def _sensitive(counts: Counts, name: str) -> SensitiveAudit:
    cells = counts.cells(name)
    largest, size = cells.largest(cells.n), counts.size
    filled = size > 0
    largest, size = largest[filled], size[filled]
    distinct = np.bincount(cells.group, minlength=cells.groups)[filled]
    same = largest == size
    nearly = largest * 20 >= size * 19
    ordered = cells.column.ordered and len(cells.column) > 1
    return SensitiveAudit(
        column=name,
        distinct_l=int(distinct.min()),
        entropy_l=_worst(EntropyDiversity(1, sensitive=name), counts),
        recursive_c=_recursive(cells, int(distinct.min())),
        t=_worst(TCloseness(1, sensitive=name), counts),
        t_ordered=_worst(TCloseness(1, distance="ordered", sensitive=name), counts) if ordered else None,
        largest_share=float((largest / size).max()),
        homogeneous=_people(same, size),
        nearly_homogeneous=_people(nearly, size),
    )


def _worst(principle: Principle, counts: Counts) -> float:
    return principle.worst(counts)


def _people(which: NDArray[np.bool_], size: NDArray[np.int64]) -> Homogeneity:
    return Homogeneity(int(which.sum()), int(size[which].sum()))


def _recursive(cells: Cells, fewest: int) -> dict[int, float]:
    """What c must exceed for each l, up to one more than the fewest distinct values of a group: r₁ / (r_l + … + r_m)."""
    order = np.lexsort((-cells.n, cells.group))
    before = np.concatenate([[0], np.cumsum(cells.n[order])])  # people in the cells before each, groups in a row
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
