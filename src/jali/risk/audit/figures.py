"""The figures of an audit, how they print, and how those of marginals are found."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from jali.core.text import element, html_table, lines_of, notebook
from jali.errors import InputError
from jali.principles import (
    DistinctDiversity,
    EntropyDiversity,
    FrequencyDiversity,
    KAnonymity,
    Principle,
    RecursiveDiversity,
    TCloseness,
)
from jali.releases.linked.join import JointCell
from jali.releases.marginals import ATTACKERS, FROM_FILES, Marginals
from jali.releases.summary import many
from jali.risk.disclosure.tracker import Curve

if TYPE_CHECKING:
    from jali.releases.presence import Presence

SHOWN_FACTS = 4
"""Fewer facts than this are shown when an audit prints itself."""
NEARLY = 0.95
"""From which share of one value on a group counts as nearly homogeneous."""


@dataclass(frozen=True)
class Homogeneity:
    """Groups in which (nearly) everybody has the same value, and the people in them."""

    groups: int
    people: int

    def __str__(self) -> str:
        return f"{many(self.groups, 'group')}, {many(self.people, 'person', 'people')}"


@dataclass(frozen=True)
class SensitiveAudit:
    """What groups give away of one sensitive column."""

    column: str
    distinct_l: int
    entropy_l: float
    recursive_c: Mapping[int, float]  # the c that recursive (c, l)-diversity must exceed, for each l
    t: float | None  # None where the whole table has no one distribution, or it was not published
    t_ordered: float | None
    largest_share: float
    homogeneous: Homogeneity | None  # None where there are no groups
    nearly_homogeneous: Homogeneity | None
    disclosure: Curve | None = None  # None where it is not defined
    ruled_out: Homogeneity | None = None  # whose value is (nearly) known once another is ruled out; None if not defined
    commonest: float | None = None  # the share of the commonest value of all: no group of everybody has less

    def to_dict(self) -> dict[str, Any]:
        """Plain nested dicts; a c that no finite number exceeds is None."""
        finite = {str(k): (c if math.isfinite(c) else None) for k, c in self.recursive_c.items()}
        return {
            "distinct_l": self.distinct_l, "entropy_l": self.entropy_l, "recursive_c": finite, "t": self.t,
            "t_ordered": self.t_ordered, "largest_share": self.largest_share,
            "homogeneous": _plain(self.homogeneous), "nearly_homogeneous": _plain(self.nearly_homogeneous),
            "ruled_out": _plain(self.ruled_out),
            "disclosure": None if self.disclosure is None else self.disclosure.to_dict(),
        }  # fmt: skip


@dataclass(frozen=True)
class OtherAudit:
    """Whether columns that were published untouched single people out within their groups."""

    columns: tuple[str, ...]
    smallest: int  # rows that share quasi-identifiers and these columns, at the least
    alone: int  # rows that share them with nobody
    alone_share: float


@dataclass(frozen=True)
class AngelAudit:
    """What batches and buckets give away together, and what the batch number joins."""

    smallest_batch: int  # people
    posterior: Mapping[str, float]  # the weakest level of any bucket's mixture of batches, by promise
    largest_share: Mapping[str, float]  # the most that an attacker believes in one value of a bucket, by column
    tables: int  # of quasi-identifiers, with or without batches
    joint: JointCell | None  # of the cells that some tables certainly share, those with the fewest people
    joint_keeps_k: bool | None  # whether no such cells have fewer than k people; None where it was not decided in time
    k: int  # what was promised for each table
    ruled_out: Mapping[str, float] = field(default_factory=dict)  # the same belief once another value is ruled out

    def to_dict(self) -> dict[str, Any]:
        """Plain nested dicts."""
        joint = None if self.joint is None else self.joint.to_dict()
        return vars(self) | {
            "posterior": dict(self.posterior), "largest_share": dict(self.largest_share), "joint": joint,
            "ruled_out": dict(self.ruled_out),
        }  # fmt: skip


@dataclass(frozen=True)
class Audit:
    """The figures of an audit; attributes of a single sensitive column stand at the top."""

    k: int
    groups: int | None  # None for marginals, which have no groups; sizes and risks likewise
    people: int
    average_size: float | None
    highest_risk: float | None
    average_risk: float | None
    below: Mapping[int, float]  # share of people in groups smaller than each size
    sensitive: tuple[SensitiveAudit, ...] = ()
    kept: Mapping[str, bool] = field(default_factory=dict)  # each promise of a release, judged again
    other: OtherAudit | None = None
    notes: tuple[str, ...] = ()
    smallest_bucket: int | None = None  # people; where groups are buckets, and k counts who shows the same
    angel: AngelAudit | None = None  # where groups are batches
    presence: Presence | None = None  # of the people of a public table, where there is one

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
        if self.smallest_bucket is not None:
            result["smallest_bucket"] = self.smallest_bucket
        if self.angel is not None:
            result["angel"] = self.angel.to_dict()
        if self.presence is not None:
            result["presence"] = self.presence.to_dict()
        if self.other is not None:
            result["other"] = vars(self.other) | {"columns": list(self.other.columns)}
        return result | {"kept": dict(self.kept), "holds": self.holds, "notes": list(self.notes)}

    def __repr__(self) -> str:
        return "\n".join(lines_of(_rows(self)) + [f"note: {note}" for note in self.notes])

    def _repr_html_(self) -> str:
        table = html_table(("Figure", "Value"), _rows(self), caption="Audit", numbers=(1,), named=True)
        return notebook(table, *(element("p", f"Note: {note}") for note in self.notes))


def _rows(audit: Audit) -> list[tuple[str, str]]:
    bucket, group = audit.smallest_bucket, "group" if audit.smallest_bucket is None else "bucket"
    if audit.angel is not None:
        bucket, group = audit.angel.smallest_batch, "batch"
    smallest = "of the marginals together" if audit.groups is None else "people in the smallest group"
    rows = [
        ("people", f"{audit.people:,}"),
        ("batches" if group == "batch" else f"{group}s", _defined(audit.groups, ",")),
        *([(f"k ({smallest})", f"{audit.k:,}")] if bucket is None else []),
        *([(f"people in the smallest {group}", f"{bucket:,}")] if bucket is not None else []),
        (f"people in a {group} on average", _defined(audit.average_size, ",.1f")),
        *([("k (people who show the same, at least)", f"{audit.k:,}")] if bucket is not None else []),
        ("re-identification risk, highest", _defined(audit.highest_risk, ".4f")),
        ("re-identification risk, average", _defined(audit.average_risk, ".4f")),
    ]
    few = "people in groups below" if bucket is None else "people who show the same as others, below"
    rows += [(f"{few} {size}", f"{share:.2%}") for size, share in audit.below.items()]
    for s in audit.sensitive:
        rows.append((f"— {s.column} —", ""))
        rows += [
            (f"distinct values in a {'cell' if audit.groups is None else group}, at least", str(s.distinct_l)),
            ("entropy diversity, at least", f"{s.entropy_l:.4f}"),
            ("largest share of one value", f"{s.largest_share:.4f}"),
            ("t (equal distance)", _defined(s.t, ".4f")),
        ]
        rows += [] if s.t_ordered is None else [("t (ordered distance)", f"{s.t_ordered:.4f}")]
        rows += [(f"recursive diversity, l = {k}", _c(c)) for k, c in list(s.recursive_c.items())[:6]]
        rows += [
            ("everybody has the same value in", _defined(s.homogeneous)),
            (f"at least {NEARLY:.0%} have the same value in", _defined(s.nearly_homogeneous)),
            *_disclosed(s.disclosure),
        ]
    if audit.other is not None:
        shown = f"{audit.other.alone:,} ({audit.other.alone_share:.2%})"
        rows.append((f"rows alone for who also knows {', '.join(audit.other.columns)}", shown))
    rows += [] if audit.angel is None else [("— batches and buckets together —", ""), *together(audit.angel)]
    rows += [] if audit.presence is None else [("— presence against the public table —", ""), *present(audit.presence)]
    rows += [(f"promise {name}", "kept" if kept else "BROKEN") for name, kept in audit.kept.items()]
    return rows


def present(presence: Presence) -> list[tuple[str, str]]:
    """How surely somebody of the public table is in the release, figure by figure in words."""
    return [
        ("people of the public table", f"{len(presence.probabilities):,}"),
        ("probability of being in the release, least", f"{presence.low:.4g}"),
        ("probability of being in the release, greatest", f"{presence.high:.4g}"),
        ("people certainly not in it, whom no cell covers", f"{presence.outside:,}"),
    ]


def _disclosed(disclosure: Curve | None) -> list[tuple[str, str]]:
    """How sure an attacker with few facts is, up to the number that tells all."""
    if disclosure is None:
        return [("sure of a value, with more facts", "not defined")]
    rows = []
    least = "at most " if disclosure.kind == "at most" else ""
    for k, sure in zip(disclosure.k[1:SHOWN_FACTS], disclosure.implications[1:], strict=False):
        rows.append((f"sure of a value, with {many(k, 'more fact')}", f"{least}{sure:.4f}"))
        if sure == 1:
            break
    return rows


def _defined(figure: object, form: str = "") -> str:
    return "not defined" if figure is None else format(figure, form)


def _plain(found: Homogeneity | None) -> dict[str, int] | None:
    return None if found is None else dict(vars(found))


def together(angel: AngelAudit) -> list[tuple[str, str]]:
    """What batches and buckets give away together, figure by figure in words."""
    rows = [(f"weakest mixture of batches, {name}", f"{level:.4f}") for name, level in angel.posterior.items()]
    rows += [
        (f"largest belief in one value of {name}, knowing the bucket", f"{share:.4f}")
        for name, share in angel.largest_share.items()
    ]
    if angel.tables > 1:
        joint = "nobody" if angel.joint is None else str(angel.joint)
        rows.append((f"smallest certain cell of {angel.tables} tables together", joint))
        broken = f"NO, k = {angel.k} holds in each table only"
        said = {True: "yes", False: broken, None: "not decided in time: take it as no"}
        rows.append(("all tables together keep k", said[angel.joint_keeps_k]))
    return rows


def _c(c: float) -> str:
    return "for no c" if math.isinf(c) else f"for c above {c:.4g}"


# -- marginals: how many people an attacker links anybody to, and what maximum entropy tells him -----------------------
#
# Marginals have no groups. k is the largest for which they are k-link and k-combinatorially anonymous together; of the
# sensitive values the figures are those of the worst cell under maximum entropy for an attacker who knows one person's
# quasi-identifiers; an attacker who knows everybody's is judged when the release is made, since that needs the table.

ANY = 10**9
"""A c that no ratio of people reaches: the recursive diversity is asked what it reaches, not whether it holds."""


def audit_collection(release: Marginals, most_l: int) -> Audit:
    """The figures of marginals, from their published tables alone; recursive diversity up to `most_l`."""
    release.estimate_parts()  # marginals that contradict each other are refused
    kept = release.kept()
    k, unclear = _anonymity(release)
    notes = [
        f"the figures, from the published tables alone, are for {ATTACKERS['marginals']}",
        *([f"promised against {ATTACKERS['quasi']}: {FROM_FILES}"] if release.attacker == "quasi" else []),
        "one row per person was assumed",
        "its k is that of k-link and k-combinatorial anonymity: no marginal links anybody to fewer people, and the "
        "marginals together never show that a cell has fewer but some; it is no group size",
    ]
    columns = []
    for column in release.of_role("sensitive"):
        if column.judged is None:
            notes.append(f"{column.name} is in no marginal: nothing of it was published")
            continue
        figures = _sensitive(release, column.name, most_l)
        if isinstance(figures, str):
            unclear.append(f"{column.name}: {figures}")
        else:
            columns.append(figures)
    if columns:
        notes.append("figures about sensitive values are what maximum entropy expects in the worst combination")
    notes += [f"not judged: {reason}" for reason in unclear]
    if "relaxed" in release.manifest.method:
        notes.append(f"weaker than promised: {release.manifest.method['relaxed']}")
    notes += [f"not covered: {text}" for text in release.not_covered]
    return Audit(
        k=k, groups=None, people=release.rows, average_size=None, highest_risk=None, average_risk=None, below={},
        sensitive=tuple(columns), kept=kept, notes=tuple(notes),
    )  # fmt: skip


def _anonymity(release: Marginals) -> tuple[int, list[str]]:
    """The largest k for which the marginals are k-link and k-combinatorially anonymous, and why it is not known."""
    verdict = release.verdict((KAnonymity(release.smallest_cell),))
    if verdict.principle is None:  # it could not be judged: that a cell has nobody or somebody is all that is known
        return 1, [verdict.reason]
    return int(verdict.reached), []


def _sensitive(release: Marginals, name: str, most_l: int) -> SensitiveAudit | str:
    """What maximum entropy tells of a column in its worst cell, or why that could not be judged."""
    asked: dict[str, Principle] = {
        "distinct": DistinctDiversity(1, sensitive=name),
        "entropy": EntropyDiversity(1, sensitive=name),
        "frequency": FrequencyDiversity(1, sensitive=name),
        "t": TCloseness(1, sensitive=name),
    }
    column = next(chain.judged[0] for chain in release.chains if chain.name == name)
    if column.ordered and len(column) > 1:
        asked["t_ordered"] = TCloseness(1, distance="ordered", sensitive=name)
    reached: dict[str, float] = {}
    for figure, principle in asked.items():
        verdict = release.verdict((principle,))
        if verdict.principle is None or verdict.relaxed:
            return "the marginals with it are too many to be joined" if verdict.relaxed else verdict.reason
        reached[figure] = verdict.reached
    distinct = int(reached["distinct"])
    recursive = {
        l: release.verdict((RecursiveDiversity(ANY, l, sensitive=name),)).reached if l <= len(column) else math.inf
        for l in range(2, min(distinct, most_l) + 2)
    }
    return SensitiveAudit(
        name, distinct, reached["entropy"], recursive, reached["t"], reached.get("t_ordered"),
        largest_share=1 / reached["frequency"], homogeneous=None, nearly_homogeneous=None, disclosure=None,
    )  # fmt: skip
