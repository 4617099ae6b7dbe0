"""Verdict: whether a release may be published under a policy, from what its audit and the attacks found."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from jali.core.text import listed, percent, percent_up
from jali.encoding import values as v
from jali.encoding.identifiers import suspicion
from jali.principles import KAnonymity
from jali.principles.base import Principle, exact
from jali.principles.column import ColumnPrinciple
from jali.releases.base import Release
from jali.releases.summary import many
from jali.risk.audit.figures import NEARLY, Audit, SensitiveAudit
from jali.risk.beliefs import exposed_by_groups
from jali.risk.policy import (
    ALGORITHM,
    EXPOSING,
    SENTENCES,
    TOLERANCE,
    Decision,
    Flag,
    Judged,
    Outcome,
    Policy,
    Share,
    Verdict,
)

if TYPE_CHECKING:
    from jali.risk.attacks.scene import Attack

__all__ = [
    "PROVED", "SENTENCES", "TOLERANCE", "Decision", "Flag", "Judged", "Outcome", "Verdict", "exposed_by_groups",
    "naming", "reaches", "tested", "verdict", "voiding",
]  # fmt: skip

UNDEFINED = "publish groups of people instead, by generalize or partition, or leave disclosure out of the policy"
ALONE = "no column is declared sensitive: only the sizes of groups were judged, not what the columns tell about people"
"""What can be done where facts more have no meaning."""
FACTS = 5
"""The most facts of which `reaches` tells the disclosure."""
CONCEALS = "publish it with partition, since conceal hides only who is in the table"
PROVED = "proved for this method, not tested here"
"""What is said of an attacker who knows the algorithm where a proof stands for the attack."""
REMAKE = "remake it so that knowing the method does not help an attacker"
AS_THEY_ARE = (
    "publish it by a method that makes people look alike; buckets do not, since they show quasi-identifiers exactly"
)
PSEUDONYMS = (
    "pseudonyms only for researchers under contract: the data remain personal data, GDPR Art. 4(5) and recital 26, and "
    "the key stays with you"
)
VOIDED = ("kept", "promise", "highest_risk", "average_risk", "largest_belief", "disclosure", "exposed", ALGORITHM)
"""Thresholds that say nothing where rows name their people."""


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
    in_halves = release is not None and release.transparent and audit.angel is None and audit.smallest_bucket is None
    for column in audit.sensitive:
        every += _beliefs(policy, column, in_halves=in_halves)
    limits = {name: limit for name, limit in policy.limits.items() if name != ALGORITHM}
    every += [_exposed(name, limit, audit, release, tried) for name, limit in limits.items()]
    alone = not audit.sensitive and not (release is not None and release.hides_presence)
    every += [*_columns(policy, audit, release), *_needed(policy, audit, release)]
    if policy.algorithm or ALGORITHM in policy.limits:
        every.append(_replayed(policy, release, tried))
    if release is not None and release.hides_presence:
        asked = [flag.first for flag in Verdict(policy, tuple(every)).needed]
        needed = [one for one in asked if one.do.startswith(("rebuild", "promise"))]
        every = [replace(one, do=f"{CONCEALS}, and {one.do}") if one in needed[:1] else one for one in every]
    return Verdict(policy, tuple(_voided(every, release)), (ALONE,) if alone else ())


def _limited(
    key: str, name: str, limit: Share | None, found: float | None, *, why: str = "", do: str = "", grave: float = 2.0,
    told: str = "", bound: bool = False, column: str = "", how: str = "",
) -> Iterator[Judged]:  # fmt: skip
    """A share against its limit; from `grave` on somebody is as good as exposed. A `bound` may lie above the truth."""
    if limit is None:
        return
    most = exact(key, limit)
    allowed = _limit(most)
    if found is None:
        yield Judged(key, name, allowed, why, "not judged", do, column=column, most=most, how=how)
        return
    met = found <= float(most) + TOLERANCE
    close = not met and percent(found) == percent(float(most))  # never shown as if it were met
    shown = told or (percent_up(found) if close else percent(found))
    shown = f"up to {shown}" if bound else shown
    outcome: Outcome = "met" if met else "grave" if found >= grave else "missed"
    yield Judged(key, name, allowed, shown, outcome, "" if met else do, found / max(float(most), 0.001), column, most,
                 "" if met else how)  # fmt: skip


def _limit(most: Fraction) -> str:
    """A limit in per cent, without a digit that says nothing."""
    return percent(float(most)).replace(".0\u00a0", "\u00a0")


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
        how = f"KAnonymity({need})"
        do = f"rebuild it with groups of at least {need} people, now the smallest has {audit.k}: {how}"
        if audit.smallest_bucket is not None:
            how = _alike(policy, audit)
            do = f"{AS_THEY_ARE}: {how}"
        yield from _limited("highest_risk", "Highest risk of re-identification", asked, highest, do=do, grave=1.0,
                            bound=bound, how=how)  # fmt: skip
    average = audit.average_risk
    if average is None and policy.average_risk is not None and highest <= float(exact("", policy.average_risk)):
        average = highest
    why = "marginals have no groups to average over"
    limit = policy.average_risk
    enough = f"{math.ceil(1 / exact('', limit))} people" if limit else "everybody"
    do = f"make groups larger, by a larger k: groups of {enough} on average are enough"
    do += f", now they have {1 / average:.1f}" if average else ""
    how = "" if audit.smallest_bucket is None else _alike(policy, audit)
    do = f"{AS_THEY_ARE}: {how}" if how else do
    yield from _limited("average_risk", "Average risk of re-identification", policy.average_risk, average, why=why,
                        do=do, bound=bound, how=how)  # fmt: skip


def _alike(policy: Policy, audit: Audit) -> str:
    """How people of buckets can be made alike, in groups that are enough for both risks."""
    limits = [exact("", one) for one in (policy.highest_risk, policy.average_risk) if one is not None]
    need = max(math.ceil(1 / most) if most else audit.people for most in limits)
    return f"publish it with angelize and k = {need}, or with partition and KAnonymity({need})"


def _beliefs(policy: Policy, column: SensitiveAudit, *, in_halves: bool) -> Iterator[Judged]:
    """How sure an attacker is of a value, from the quasi-identifiers and with a few facts more.

    Where groups withstand who knows the algorithm, only ANGEL can keep a promise about facts beside that.
    """
    own, whole = column.column, column.commonest or 0.0
    name = f"How sure an attacker can be of somebody's {own}"
    if policy.largest_belief is not None:
        most = exact("largest_belief", policy.largest_belief)
        asked = f'FrequencyDiversity({_number(1 / most) if most else ""}, sensitive="{own}")'
        means = f"rebuild it so that no value of {own} is shared by more than {_limit(most)} of any group"
        possible = _possible(most, whole)
        do = f"{means}: {asked}" if possible else _too_common(own, whole)
        yield from _limited("largest_belief", name, most, column.largest_share, do=do, grave=NEARLY, column=own,
                            how=asked if possible else "")  # fmt: skip
    if policy.disclosure is None:
        return
    curve, facts = column.disclosure, policy.facts
    known = dict(zip(curve.k, curve.implications, strict=True)) if curve is not None else {}
    told = f"How sure an attacker with {many(facts, 'fact')} more can be of somebody's {own}"
    bounded = exact("disclosure", policy.disclosure)
    asked = f'Safety({_number(bounded)}, {facts}, sensitive="{own}")' + (" with angelize" if in_halves else "")
    means = f"rebuild it so that an attacker with {many(facts, 'fact')} more is at most {_limit(bounded)} sure of {own}"
    possible = curve is not None and _possible(bounded, whole)
    do = f"{means}: {asked}" if possible else _too_common(own, whole)
    why = "it is not defined for this release" if curve is None else f"at most {max(known)} facts are audited"
    least = curve is not None and curve.kind == "at most"
    yield from _limited("disclosure", told, policy.disclosure, known.get(facts), why=why,
                        do=do if curve is not None else UNDEFINED, bound=least, column=own,
                        how=asked if possible else "")  # fmt: skip


def _number(value: Fraction) -> str:
    """A parameter as it is written: a text where no decimal number is exact."""
    return str(value) if value.denominator == 1 else (
        f"{float(value):g}" if Fraction(f"{float(value):g}") == value else f'"{value}"'
    )  # fmt: skip


def _possible(most: Fraction, whole: float) -> bool:
    """Whether groups can meet a limit: where one value is commoner than that, some group has no less of it."""
    return bool(most) and whole <= float(most) + TOLERANCE


def _too_common(column: str, whole: float) -> str:
    return (f"leave {column} out, or allow more in the policy: {percent(whole)} of all people have one value of "
            f"{column}, and no grouping gets below that")  # fmt: skip


# -- attacks ---------------------------------------------------------------------------------------------------------


REMEDIES = {
    "homogeneity": ("rebuild it with several values in every group", "FrequencyDiversity or EntropyDiversity"),
    "background knowledge": ("rebuild it with more values in every group", "DistinctDiversity(3) or Safety"),
    "linkage": ("rebuild it with several values in every group, or with fewer quasi-identifiers", "FrequencyDiversity"),
    "presence": ("publish it with conceal, or publish fewer details", ""),
}
"""What can be done about people whom an attack exposes, in words and by which promise."""
HOW = {
    "homogeneity": "nearly all of their group have one value",
    "background knowledge": "the attacker can rule out one value for them",
    "linkage": "the attacker looks them up by their quasi-identifiers",
    "presence": "that they are in the table is as good as known",
}
"""By what each attack exposes people, in words."""


def _exposed(name: str, limit: Fraction, audit: Audit, release: Release | None, tried: Sequence[Attack]) -> Judged:
    """The share of people whom an attack exposes, as it was tried, else as far as the published groups tell it."""
    own = [attack for attack in tried if attack.name == name]
    shares = _shares(tried, name)
    found = max(shares) if shares else None if own else exposed_by_groups(name, audit, release)
    why = next((note for attack in own for note in attack.notes), "it was not tried")
    absent = "a public table with everybody: --public-table FILE" if name == "presence" else "the original: --job FILE"
    means, how = (f"compare with {absent}", "") if found is None else REMEDIES[name]
    do = f"{means}: {how}" if how else means
    told = f"People exposed by {name} ({HOW[name]})"
    nothing = "0\u00a0%, since no column is sensitive" if found == 0 and not audit.sensitive and not own else ""
    (judged,) = _limited(f"exposed.{name}", told, limit, found, why=why, do=do, grave=0.0, told=nothing, how=how)
    return judged


def _shares(tried: Sequence[Attack], name: str) -> list[float] | None:
    """The shares of people exposed by all attacks of this name; None where one of them was not computed."""
    own = [attack for attack in tried if attack.name == name]
    if not own or any(attack.exposed is None for attack in own):
        return None
    return [(attack.exposed or 0) / max(attack.people, 1) for attack in own]


def reaches(audit: Audit, release: Release | None) -> dict[str, float]:
    """What a release reaches of each threshold that its method can change; left out where it is not defined.

    "disclosure.2" is that with two facts more; of several sensitive columns the worst counts.
    """
    found: dict[str, float | None] = {
        "highest_risk": 1 / audit.k if audit.highest_risk is None else audit.highest_risk,
        "average_risk": audit.average_risk,
        "largest_belief": max((s.largest_share for s in audit.sensitive), default=0.0),
    }
    curves = [None if s.disclosure is None else dict(zip(s.disclosure.k, s.disclosure.implications, strict=True))
              for s in audit.sensitive]  # fmt: skip
    for facts in range(FACTS + 1):
        known = [None if curve is None else curve.get(facts) for curve in curves]
        sure = [share for share in known if share is not None]
        found[f"disclosure.{facts}"] = max(sure, default=0.0) if len(sure) == len(known) else None
    found |= {f"exposed.{name}": exposed_by_groups(name, audit, release) for name in EXPOSING}
    return {name: share for name, share in found.items() if share is not None}


def _replayed(policy: Policy, release: Release | None, tried: Sequence[Attack]) -> Judged:
    """Whether an attacker who knows the algorithm learns more: by what the method proves, else by the attack."""
    name = "An attacker who knows how jali chose the groups"
    if release is not None and release.transparent:
        told = PROVED if not tested(tried) else "proved for this method"
        return Judged(ALGORITHM, name, "", f"learns no more: {told}", "met")
    shares = _shares(tried, ALGORITHM)
    if shares is None:
        how = f"{_provable(release)}, or have the attack tried: --attacks"
        told = (
            "the attack was not tried" if not any(a.name == ALGORITHM for a in tried) else "the attack was not computed"
        )
        return Judged(ALGORITHM, name, "", told, "not judged", f"{REMAKE}, or test that attack: {how}", how=how)
    limit = policy.limits.get(ALGORITHM, max(policy.limits.values(), default=Fraction(0)))
    how = _provable(release)
    (judged,) = _limited(ALGORITHM, name, limit, max(shares), do=f"{REMAKE}: {how}", grave=0.0, how=how,
                         told=f"exposes {percent(max(shares))} of the people")  # fmt: skip
    return judged


def tested(tried: Sequence[Attack]) -> bool:
    """Whether the attack of somebody who knows the algorithm was tried, and computed for every column."""
    return _shares(tried, ALGORITHM) is not None


def _provable(release: Release | None) -> str:
    """How a release can be had that withstands who knows the algorithm."""
    method = "" if release is None else str(release.manifest.method.get("name", ""))
    sizes = release is not None and all(isinstance(principle, KAnonymity) for principle in release.principles)
    if method in ("partition", "anatomize", "angelize", "conceal") or (method == "recode" and sizes):
        return "publish it again with transparent = true"
    if method == "generalize" and sizes:
        return 'publish it again with transparent = true and metric = "loss"'
    return "publish it with partition and transparent = true"


# -- columns ---------------------------------------------------------------------------------------------------------


def _columns(policy: Policy, audit: Audit, release: Release | None) -> Iterator[Judged]:
    """Columns that name people, and columns that are published as they are and single people out."""
    named = [] if release is None else naming(release)
    if not policy.identifiers and release is not None:
        name, do = "Columns that look like identifiers", _without(policy, named)
        found = listed(named) if named else "none"
        yield Judged("identifiers", name, "", found, "grave" if named else "met", do if named else "",
                     math.inf if named else 0.0)  # fmt: skip
    if audit.other is not None:
        columns = listed(audit.other.columns)
        away = _without(policy, named) if set(audit.other.columns) <= {*named} else ""
        if not policy.others:
            do = away or (f"declare {columns} sensitive or quasi-identifiers, or leave out; others = true in the "
                          "policy accepts that")  # fmt: skip
            found = f"{columns} may tell something about people"
            yield Judged("others", "Columns that are published as they are", "", found, "not judged", do)
        do = away or f"make {columns} quasi-identifiers, or leave out"
        yield from _limited("singled_out", f"Rows told from all others by {columns}", policy.singled_out,
                            audit.other.alone_share, do=do, grave=0.0)  # fmt: skip


def _without(policy: Policy, named: Sequence[str]) -> str:
    """What to do about columns that name people; of pseudonyms only where the readers are known."""
    return f"leave out {listed(named)}{'' if policy.base == 'public' else f' ({PSEUDONYMS})'}"


def _voided(judged: Iterable[Judged], release: Release | None) -> Iterator[Judged]:
    """A threshold that is met is void where rows name their people: whoever knows a name needs nothing else."""
    named = [] if release is None else naming(release)
    for one in judged:
        void = named and one.outcome == "met" and one.threshold.partition(".")[0] in VOIDED
        yield replace(one, void=voiding(named)) if void else one


def voiding(named: Sequence[str]) -> str:
    """What is said of a figure that holds for nobody who is named."""
    return f"void while {listed(named)} {'is' if len(named) == 1 else 'are'} published"


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
        how = f'EntropyDiversity(2, sensitive="{column}")'
        do = f"rebuild it with a promise about {column}, for example that every group has several values of it: {how}"
        found = "there is one" if kept else "there is none"
        outcome: Outcome = "met" if kept else "missed"
        yield Judged("promise", f"A promise about {column}", "", found, outcome, "" if kept else do, column=column,
                     how="" if kept else how)  # fmt: skip


def _about(principle: Principle, columns: Sequence[str]) -> Iterable[str]:
    """The sensitive columns that a principle speaks of."""
    if principle.every_column:
        return columns
    inner = principle.inner
    if not isinstance(inner, ColumnPrinciple):
        return ()
    return columns if inner.sensitive is None else (inner.sensitive,)
