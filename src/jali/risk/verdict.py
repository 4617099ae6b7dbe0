"""Verdict: whether a release may be published under a policy, from what its audit and the attacks found."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from jali.core.text import element, html_table, joined, lines_of, listed, percent, percent_up
from jali.encoding import values as v
from jali.encoding.identifiers import suspicion
from jali.principles.base import Principle, exact, show
from jali.principles.column import ColumnPrinciple
from jali.releases.base import Release
from jali.releases.summary import many
from jali.risk.attacks.scene import Attack
from jali.risk.audit.figures import NEARLY, Audit, SensitiveAudit
from jali.risk.policy import ALGORITHM, EXPOSING, Policy, Share

Outcome = Literal["met", "not judged", "missed", "grave"]
"""How a threshold was found: met, not evaluated, missed, or missed so far that somebody is exposed."""
Decision = Literal["safe", "change", "stop"]
SENTENCES: dict[Decision, str] = {
    "safe": "Safe to publish under these assumptions",
    "change": "Publish after these changes",
    "stop": "Do not publish",
}
UNDEFINED = "leave disclosure out of the policy, or publish groups of people: generalize or partition"
"""What can be done where facts more have no meaning."""
TOLERANCE = 1e-12
"""Figures are floats: one meets a threshold up to this much of it, far less than one person makes."""


@dataclass(frozen=True)
class Judged:
    """One threshold: what was asked, what was found, and what can be done where they do not agree."""

    threshold: str  # its key in the policy; "kept" for the promises themselves
    name: str  # in words
    limit: str
    found: str
    outcome: Outcome
    do: str = ""  # what would make it met, or have it judged
    excess: float = 0.0  # what was found, in times the limit: which of several drives the verdict

    @property
    def told(self) -> str:
        """The threshold in one line."""
        if self.outcome == "not judged":
            return f"{self.name}: not judged, {self.found}"
        return f"{self.name}: {self.found}, at most {self.limit} is allowed" if self.limit else (
            f"{self.name}: {self.found}")  # fmt: skip


@dataclass(frozen=True, repr=False)
class Verdict:
    """Whether a release may be published under a policy, and what drives that."""

    policy: Policy
    judged: tuple[Judged, ...]

    @property
    def decision(self) -> Decision:
        """The worst outcome decides; what was not judged is never safe."""
        found = {one.outcome for one in self.judged}
        return "stop" if "grave" in found else "change" if found & {"missed", "not judged"} or not found else "safe"

    @property
    def safe(self) -> bool:
        """Whether every threshold was judged and met."""
        return self.decision == "safe"

    @property
    def sentence(self) -> str:
        """The decision in words."""
        return SENTENCES[self.decision]

    @property
    def drivers(self) -> tuple[Judged, ...]:
        """The thresholds that are not met, the gravest first."""
        order = {"grave": 0, "missed": 1, "not judged": 2}
        found = [one for one in self.judged if one.outcome != "met"]
        return tuple(sorted(found, key=lambda one: (order[one.outcome], -one.excess)))

    def to_dict(self) -> dict[str, Any]:
        """Plain nested values."""
        keys = ("threshold", "name", "limit", "found", "outcome", "do")
        rows = [{key: getattr(one, key) for key in keys} for one in self.judged]
        return {"decision": self.decision, "sentence": self.sentence, "safe": self.safe,
                "policy": self.policy.to_dict(), "judged": rows}  # fmt: skip

    def __repr__(self) -> str:
        lines = [f"{self.sentence} (policy {self.policy.preset})"]
        lines += lines_of((f"  {one.name}", self._short(one)) for one in self.judged)
        lines += [f"to do: {one.do}" for one in self.drivers if one.do]
        return "\n".join(dict.fromkeys(lines))

    @staticmethod
    def _short(one: Judged) -> str:
        limit = f" of {one.limit}" if one.limit and one.outcome != "not judged" else ""
        return f"{one.outcome}: {one.found}{limit}".replace("\u00a0", " ")

    def _repr_html_(self) -> str:
        rows = [(one.name, one.limit, one.found, one.outcome) for one in self.judged]
        table = html_table(("Threshold", "At most", "Found", "Judged"), rows, caption=self.sentence, named=True)
        return joined([table, *(element("p", f"To do: {one.do}") for one in self.drivers if one.do)])


def verdict(
    policy: Policy, audit: Audit | None, release: Release | None = None, attacks: Iterable[Attack] = ()
) -> Verdict:
    """The verdict on a release (or on a table, without one) from its audit and the attacks that were tried.

    Without an audit nothing is judged. Of several attacks of one name, one for each sensitive column, the worst counts.
    """
    tried = list(attacks)
    if audit is None:
        why = "what an attacker learns is not defined for this release"
        return Verdict(policy, (Judged("kept", "What an attacker can learn", "", why, "not judged"),))
    every: list[Judged] = [*_promises(audit, release), *_risks(policy, audit)]
    for column in audit.sensitive:
        every += _beliefs(policy, column)
    limits = {name: limit for name, limit in policy.limits.items() if name != ALGORITHM}
    every += [_exposed(name, limit, audit, release, tried) for name, limit in limits.items()]
    every += [*_columns(policy, audit, release), *_needed(policy, audit, release)]
    if policy.algorithm or ALGORITHM in policy.limits:
        every.append(_replayed(policy, release, tried))
    return Verdict(policy, tuple(every))


def _limited(
    key: str, name: str, limit: Share | None, found: float | None, *, why: str = "", do: str = "", grave: float = 2.0,
    told: str = "", bound: bool = False,
) -> Iterator[Judged]:  # fmt: skip
    """A share against its limit; from `grave` on somebody is as good as exposed. A `bound` may lie above the truth."""
    if limit is None:
        return
    most = exact(key, limit)
    allowed = percent(float(most))
    if found is None:
        yield Judged(key, name, allowed, why, "not judged", do)
        return
    met = found <= float(most) + TOLERANCE
    close = not met and percent(found) == allowed  # never shown as if it were met
    shown = told or (percent_up(found) if close else percent(found))
    shown = f"at most {shown}" if bound else shown
    outcome: Outcome = "met" if met else "grave" if found >= grave else "missed"
    yield Judged(key, name, allowed, shown, outcome, "" if met else do, found / max(float(most), 0.001))


def _promises(audit: Audit, release: Release | None) -> Iterator[Judged]:
    """Whether what the release promises is kept; a promise that the files alone cannot show is not judged."""
    broken = [name for name, kept in audit.kept.items() if not kept]
    unseen = [] if release is None else [repr(p) for p in release.principles if repr(p) not in audit.kept]
    if broken:
        do = "publish it again, or repair it: jali repair"
        yield Judged("kept", "Promises of the release", "", f"{listed(broken)} BROKEN", "grave", do, math.inf)
    elif unseen:
        do = "judge it against the public table: --public-table FILE"
        yield Judged(
            "kept", "Promises of the release", "", f"{listed(unseen)} needs the public table", "not judged", do
        )
    elif audit.kept:
        yield Judged("kept", "Promises of the release", "", "kept as stated", "met")


def _risks(policy: Policy, audit: Audit) -> Iterator[Judged]:
    """Re-identification; of marginals, which have no groups, by how many people each marginal links somebody to."""
    highest = 1 / audit.k if audit.highest_risk is None else audit.highest_risk
    bound = audit.highest_risk is None
    if policy.highest_risk is not None:
        asked = exact("highest_risk", policy.highest_risk)
        need = math.ceil(1 / asked) if asked else audit.people
        do = f"ask for KAnonymity({need}); now the smallest group has {many(audit.k, 'person', 'people')}"
        yield from _limited("highest_risk", "Highest risk of re-identification", asked, highest, do=do, grave=1.0,
                            bound=bound)  # fmt: skip
    average = audit.average_risk
    if average is None and policy.average_risk is not None and highest <= float(exact("", policy.average_risk)):
        average = highest
    why = "marginals have no groups to average over"
    do = "make groups larger: raise k"
    yield from _limited("average_risk", "Average risk of re-identification", policy.average_risk, average, why=why,
                        do=do, bound=bound)  # fmt: skip


def _beliefs(policy: Policy, column: SensitiveAudit) -> Iterator[Judged]:
    """How sure an attacker is of a value, from the quasi-identifiers and with a few facts more."""
    name = f"Largest belief in one value of {column.column}"
    if policy.largest_belief is not None:
        most = exact("largest_belief", policy.largest_belief)
        do = _ask("FrequencyDiversity", show(float(1 / most)), column.column) if most else "leave the column out"
        yield from _limited("largest_belief", name, most, column.largest_share, do=do, grave=NEARLY)
    if policy.disclosure is None:
        return
    curve, facts = column.disclosure, policy.facts
    known = dict(zip(curve.k, curve.implications, strict=True)) if curve is not None else {}
    told = f"{name} with {many(facts, 'fact')} more"
    do = _ask("Safety", f"{show(float(exact('', policy.disclosure)))}, {facts}", column.column)
    why = "it is not defined for this release" if curve is None else f"at most {max(known)} facts are audited"
    least = curve is not None and curve.kind == "at most"
    yield from _limited("disclosure", told, policy.disclosure, known.get(facts), why=why,
                        do=do if curve is not None else UNDEFINED, bound=least)  # fmt: skip


def _ask(principle: str, parameters: str, column: str) -> str:
    return f'ask for {principle}({parameters}, sensitive="{column}")'


# -- attacks ---------------------------------------------------------------------------------------------------------


REMEDIES = {
    "homogeneity": "ask for a diversity of the sensitive values, e.g. EntropyDiversity or FrequencyDiversity",
    "background knowledge": "ask for DistinctDiversity(3) or more, or for Safety",
    "linkage": "ask for a diversity of the sensitive values, or show fewer quasi-identifiers",
    "presence": "publish it with conceal, or publish fewer details",
}
"""What can be done about people whom an attack exposes."""


def _exposed(name: str, limit: Fraction, audit: Audit, release: Release | None, tried: Sequence[Attack]) -> Judged:
    """The share of people whom an attack exposes, as it was tried, else as far as the published groups tell it."""
    own = [attack for attack in tried if attack.name == name]
    shares = _shares(tried, name)
    found = max(shares) if shares else None if own else _from_groups(name, audit, release)
    why = next((note for attack in own for note in attack.notes), "it was not tried")
    absent = "a public table with everybody: --public-table FILE" if name == "presence" else "the original: --job FILE"
    do = f"compare with {absent}" if found is None else REMEDIES[name]
    told = f"People exposed by {name}"
    (judged,) = _limited(f"exposed.{name}", told, limit, found, why=why, do=do, grave=0.0)
    return judged


def _shares(tried: Sequence[Attack], name: str) -> list[float] | None:
    """The shares of people exposed by all attacks of this name; None where one of them was not computed."""
    own = [attack for attack in tried if attack.name == name]
    if not own or any(attack.exposed is None for attack in own):
        return None
    return [(attack.exposed or 0) / max(attack.people, 1) for attack in own]


def _from_groups(name: str, audit: Audit, release: Release | None) -> float | None:
    """What the published groups alone tell of an attack; None where they do not.

    In groups of which no value has nearly all people nobody is exposed, neither by the group nor by a mixture of
    several, which is no purer than its parts.
    """
    grouped = release is None or release.grouped_rows is not None
    if not audit.sensitive:
        return 0.0 if name in EXPOSING and not (release is not None and release.hides_presence) else None
    if not grouped or any(s.nearly_homogeneous is None for s in audit.sensitive):
        return None
    if name == "homogeneity":
        people = [s.nearly_homogeneous.people for s in audit.sensitive if s.nearly_homogeneous is not None]
        return max(people) / max(audit.people, 1)
    if name == "linkage":
        return 0.0 if all(s.largest_share < NEARLY for s in audit.sensitive) else None
    if name == "background knowledge":
        curves = [s.disclosure for s in audit.sensitive]
        return 0.0 if all(c is not None and len(c.k) > 1 and c.negations[1] < NEARLY for c in curves) else None
    return None


def _replayed(policy: Policy, release: Release | None, tried: Sequence[Attack]) -> Judged:
    """Whether an attacker who knows the algorithm learns more: by what the method proves, else by the attack."""
    name = "An attacker who knows the algorithm"
    if release is not None and release.transparent:
        return Judged(ALGORITHM, name, "", "learns no more, as the method of the release proves", "met")
    shares = _shares(tried, ALGORITHM)
    if shares is None:
        do = "publish it with transparent = true, or have the attack tried: --attacks"
        told = (
            "the attack was not tried" if not any(a.name == ALGORITHM for a in tried) else "the attack was not computed"
        )
        return Judged(ALGORITHM, name, "", told, "not judged", do)
    limit = policy.limits.get(ALGORITHM, max(policy.limits.values(), default=Fraction(0)))
    (judged,) = _limited(ALGORITHM, name, limit, max(shares), do="publish it with transparent = true", grave=0.0,
                         told=f"exposes {percent(max(shares))} of the people")  # fmt: skip
    return judged


# -- columns ---------------------------------------------------------------------------------------------------------


def _columns(policy: Policy, audit: Audit, release: Release | None) -> Iterator[Judged]:
    """Columns that name people, and columns that are published as they are and single people out."""
    named = [] if release is None else naming(release)
    if not policy.identifiers and release is not None:
        name, do = "Columns that look like identifiers", f"leave out {listed(named)}, or publish pseudonyms"
        found = listed(named) if named else "none"
        yield Judged("identifiers", name, "", found, "grave" if named else "met", do if named else "",
                     math.inf if named else 0.0)  # fmt: skip
    if audit.other is not None:
        columns = listed(audit.other.columns)
        do = f"make {columns} quasi-identifiers, or leave them out"
        yield from _limited("singled_out", f"Rows that {columns} single out", policy.singled_out,
                            audit.other.alone_share, do=do, grave=0.0)  # fmt: skip


def naming(release: Release) -> list[str]:
    """The columns that are published as they are and look like identifiers, as declared or by their own values."""
    found = []
    for column in release.columns:
        if column.role not in ("other", "sensitive"):
            continue
        if column.name in release.manifest.allowed or (column.role == "other" and (
            suspicion(column.name, v.as_kind(column.name, column.labels, column.kind), release.rows) is not None
        )):  # fmt: skip
            found.append(column.name)
    return found


def _needed(policy: Policy, audit: Audit, release: Release | None) -> Iterator[Judged]:
    """Whether every sensitive column has a promise about its values."""
    if not policy.promise:
        return
    columns = [s.column for s in audit.sensitive]
    promised = {name for p in (() if release is None else release.principles) for name in _about(p, columns)}
    for column in columns:
        kept = column in promised
        do = f'add a principle about it, e.g. EntropyDiversity(2, sensitive="{column}")'
        found = "there is one" if kept else "there is none"
        yield Judged("promise", f"A promise about {column}", "", found, "met" if kept else "missed", "" if kept else do)


def _about(principle: Principle, columns: Sequence[str]) -> Iterable[str]:
    """The sensitive columns that a principle speaks of."""
    if principle.every_column:
        return columns
    inner = principle.inner
    if not isinstance(inner, ColumnPrinciple):
        return ()
    return columns if inner.sensitive is None else (inner.sensitive,)
