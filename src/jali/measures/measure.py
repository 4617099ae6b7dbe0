"""Measures: what an analyst keeps and loses, computed from what is published against the original table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jali.core.text import lines_of
from jali.cover.cover import Cover
from jali.encoding.table import Domain, Table
from jali.errors import InputError
from jali.estimates.base import Estimate
from jali.measures.holder import bucket_costs, divergence, holder_costs, holder_covers, holder_estimate
from jali.measures.queries import QueryErrors, workload
from jali.measures.reconstruction import Asked, matching
from jali.measures.rules import CONFIDENCE, SUPPORT, Classified, RuleErrors
from jali.principles.base import whole_number
from jali.releases.base import Release
from jali.releases.load import release_of
from jali.releases.summary import an


@dataclass(frozen=True)
class Measures:
    """The cost of a release; all but granularity, the matching probability and rules kept are better when lower."""

    kl: float  # nats, over quasi-identifiers × sensitive columns
    height: int | None  # of a lattice node; None where each group is shown in its own way
    average: float | None  # None for marginals, which have no groups
    discernibility: float | None  # None for buckets and marginals, where no rows are made alike
    loss: float | None  # None for marginals, which show a column in several ways
    granularity: float | None
    groups: int | None
    rows: int
    suppressed: int
    columns: Mapping[str, float]  # the mean share of values that a cell covers, by quasi-identifier
    domain: Mapping[str, str]
    kl_cost: float | None = None  # nats; None where the group of a row is not known
    log_match: float | None = None  # the natural logarithm of the matching probability
    rules: RuleErrors | None = None  # where they were asked for
    class_rules: RuleErrors | None = None
    classified: Classified | None = None
    queries: QueryErrors | None = None  # of a workload of random counts, where one was asked for

    def to_dict(self) -> dict[str, Any]:
        """Plain nested dicts."""
        asked = ("rules", "class_rules", "classified", "queries")
        found = {name: value for name, value in vars(self).items() if name not in asked}
        parts = {name: getattr(self, name).to_dict() for name in asked if getattr(self, name) is not None}
        return found | {"columns": dict(self.columns), "domain": dict(self.domain)} | parts

    def lines(self) -> list[tuple[str, str]]:
        """Each measure's name and its figure, as text."""
        rows = [
            ("rows", f"{self.rows:,}"),
            ("groups", _shown(self.groups, ",")),
            ("suppressed rows", f"{self.suppressed:,}"),
            ("KL-divergence (nats)", f"{self.kl:.6f}"),
            ("KL cost (nats)", _shown(self.kl_cost, ",.4f", "not known")),
            ("matching probability (ln)", _shown(self.log_match, ",.4f", "not known")),
            ("generalization height", _shown(self.height, "")),
            ("average group size", _shown(self.average, ",.2f")),
            ("discernibility", _shown(self.discernibility, ",.0f")),
            ("loss", _shown(self.loss, ".6f")),
            ("granularity", _shown(self.granularity, ".6f")),
        ]
        for name, share in self.columns.items():
            rows.append((f"  loss of {name} ({self.domain[name]} domain)", f"{share:.6f}"))
        for title, errors in (("rules", self.rules), ("class rules", self.class_rules)):
            if errors is not None:
                rows.append((f"{title}: error", f"{errors.error:.4f}"))
                rows.append((f"  kept of {errors.found:,}", f"{errors.kept:,.1f}"))
                rows.append(("  false", f"{errors.false:,.1f}"))
        if self.classified is not None:
            rows.append((f"{self.classified.column} predicted", f"{self.classified.accuracy:.4f}"))
            rows.append(("  from the original", f"{self.classified.original:.4f}"))
            rows.append(("  the most frequent class", f"{self.classified.majority:.4f}"))
        if self.queries is not None:
            asked = self.queries
            rows += [
                (f"{asked.queries:,} counts of volume {asked.volume:g}: average error", f"{asked.average:.6f}"),
                ("  median error", f"{asked.median:.6f}"),
                ("  counts whose true answer is 0", f"{asked.empty:,}"),
                ("  what is estimated for those, on average", f"{asked.empty_average:.6f}"),
            ]
        return rows

    def __repr__(self) -> str:
        return "\n".join(lines_of(self.lines()))


def _shown(number: float | None, form: str, absent: str = "not defined") -> str:
    return absent if number is None else format(number, form)


def measure(
    release: Release | str | Path,
    original: Table,
    *,
    domain: Domain | None = None,
    rules: bool | Sequence[str] = False,
    classify: str | None = None,
    holdout: Table | None = None,
    support: float = SUPPORT,
    confidence: float = CONFIDENCE,
    seeds: int = 5,
    queries: int = 0,
    volume: float = 0.05,
    seed: int | np.random.Generator = 0,
) -> Measures:
    """What the release costs an analyst, against the table it was made from.

    `domain` says which values a generalized cell is spread over: those declared for its column, or those that occur in
    the table; by default as the table says. `rules` compares the association rules of reconstructions with those of the
    original, over all columns or those listed; `classify` the class rules of a column, and how well a classifier
    predicts it for the people of `holdout`, or else fold by fold. Reconstructions are drawn with seeds 0, 1, …. The
    `queries` are that many random counts over all columns, each about the share `volume` of the space of values; the
    release and the table both answer them.
    """
    found = release_of("measure", release)
    if domain not in (None, "declared", "present"):
        raise InputError('domain must be "declared" or "present"', got=repr(domain))
    require_original(found, original)
    queries = whole_number("queries", queries, least=0)
    original = found.widened(original)
    over = domain or original.domain
    levels, rows = found.levels, found.grouped_rows
    asked = Asked.of(original, rules, classify, holdout, support=support, confidence=confidence, seeds=seeds)
    covers = holder_covers(found, original, over)
    costs = _costs(found, original, over, covers)
    match = None if rows is None else matching(rows, original, covers)
    if asked is not None and rows is None:
        raise InputError(f"rules and classes are not measured for {an(found.kind)} release", do="leave them out")
    kept = asked.answers(rows, original, covers) if asked is not None and rows is not None else {}
    errors = None
    if queries != 0:
        wanted = workload(original, queries, volume=volume, seed=seed, domain=over)
        errors = wanted.errors(holder_estimate(found, original, over))
    return Measures(
        height=sum(levels.values()) if levels else None,
        rows=found.rows,
        domain={n: "declared" if original[n].declared and over == "declared" else "present" for n in covers},
        kl_cost=None if match is None else match.kl_cost,
        log_match=None if match is None else match.log_match,
        **costs,
        **kept,
        queries=errors,
    )


def _costs(release: Release, original: Table, domain: Domain, covers: Mapping[str, Cover]) -> dict[str, Any]:
    """The costs by name; marginals have no groups, and show a column in several ways."""
    rows, collection = release.grouped_rows, release.collected
    if collection is not None:
        undefined = dict.fromkeys(("average", "discernibility", "loss", "granularity", "groups"))
        kl = divergence(holder_estimate(collection, original, domain), original)
        return undefined | {"kl": kl, "suppressed": 0, "columns": {}}
    if rows is None:
        return vars(bucket_costs(release, original, domain))
    return vars(holder_costs(rows, original, domain, covers))


def inferred_beside(release: Release, original: Table, domain: Domain | None = None) -> tuple[Table, Estimate]:
    """The table to ask, and what is inferred from its release over the holder's domain: both as `measure` has them.

    A cell that has no declared domain covers what the holder's table says. With that, and a workload of the table,
    `workload.errors(estimate)` is the query error of `measure`.
    """
    require_original(release, original)
    table = release.widened(original)
    return table, holder_estimate(release, table, domain or table.domain)


def require_original(release: Release, original: Table) -> None:
    """Raise InputError unless the table can be the one that was published."""
    if not isinstance(original, Table):
        raise InputError("the original must be a jali table", do="use jali.read or jali.table")
    rows = release.manifest.counts["rows"]
    if rows != original.rows:
        got = f"{rows:,} rows in the release, {original.rows:,} in the table"
        raise InputError("this is not the table that was published", got=got, do="compare with the original")
    for facts in release.columns_facts():
        if facts["role"] in ("quasi", "sensitive"):
            original[facts["name"]]  # says which column it lacks
