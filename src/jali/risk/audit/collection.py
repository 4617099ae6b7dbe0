"""What an attacker can learn from marginals: how many people he links anybody to, and what maximum entropy tells him.

Marginals have no groups. k is the largest for which they are k-link and k-combinatorially anonymous together; of the
sensitive values the figures are those of the worst cell under maximum entropy for an attacker who knows one person's
quasi-identifiers; an attacker who knows everybody's is judged when the release is made, since that needs the table.
"""

from __future__ import annotations

import math

from jali.principles import (
    DistinctDiversity,
    EntropyDiversity,
    FrequencyDiversity,
    KAnonymity,
    Principle,
    RecursiveDiversity,
    TCloseness,
)
from jali.releases.marginals import ATTACKERS, FROM_FILES, Marginals
from jali.risk.audit.figures import Audit, SensitiveAudit

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
