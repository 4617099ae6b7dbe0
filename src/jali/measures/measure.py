"""Measures: what an analyst keeps and loses, computed from what is published against the original table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from jali.core.arrays import Ints
from jali.core.text import html_table, lines_of, notebook
from jali.cover.cover import Cover
from jali.encoding import values as v
from jali.encoding.large import LargeTable
from jali.encoding.table import Domain, Table
from jali.errors import InputError, nearest
from jali.estimates.base import Estimate
from jali.estimates.boxes import BoxEstimate
from jali.estimates.conditions import BoxColumn
from jali.measures.holder import bucket_costs, divergence, holder_costs, holder_covers, holder_estimate
from jali.measures.matching import matching
from jali.measures.queries import QueryErrors, workload
from jali.measures.rules import (
    CONFIDENCE,
    SUPPORT,
    Classified,
    RuleErrors,
    classified,
    require_classifier,
    rule_errors,
    share_of,
)
from jali.principles.base import whole_number
from jali.releases.base import Release
from jali.releases.column import Published
from jali.releases.generalized import Generalized
from jali.releases.load import release_of
from jali.releases.summary import an

MEANS = {
    "groups": "sets of people who look alike",
    "suppressed rows": "rows that show nothing but *",
    "KL-divergence (nats)": "how far off an analyst is about an average person; 0 is nothing lost",
    "KL cost (nats)": "what the cells leave open, added up over all rows and quasi-identifiers",
    "matching probability (ln)": "how likely a guess of every cell is right, as a logarithm: nearer to 0 is better",
    "generalization height": "how many levels the columns were raised, added up",
    "average group size": "rows of a group, on average",
    "discernibility": "for each row the number of rows that look like it, added up; lower is better",
    "loss": "how much of a column's domain a cell covers, over all columns: 0 a single value, 1 all values",
    "granularity": "what is left of the detail, over all columns: 1 is everything",
}
"""What each measure is, in words."""


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

    def _repr_html_(self) -> str:
        rows = [(name.strip(), text, MEANS.get(name.strip(), "")) for name, text in self.lines()]
        caption = "What an analyst keeps and loses"
        return notebook(html_table(("Measure", "Value", "What it is"), rows, caption=caption, numbers=(1,), named=True))


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
    if asked is not None and isinstance(original, LargeTable):
        raise original.refused("measure with rules or classify")
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


# -- reconstructions: rules and predictions from them, and how likely one is the original ------------------------------


@dataclass(frozen=True, eq=False)
class Asked:
    """What a caller of `measure` wants to know about rules and classes, checked."""

    columns: tuple[str, ...]  # among which rules are mined
    rules: bool
    classify: str | None
    holdout: Table | None
    support: float
    confidence: float
    seeds: int

    @classmethod
    def of(
        cls, original: Table, rules: bool | Sequence[str], classify: str | None, holdout: Table | None,
        *, support: float, confidence: float, seeds: int,
    ) -> Asked | None:  # fmt: skip
        """None where nothing of the sort is asked."""
        published = [column.name for column in original.columns if column.role in ("quasi", "sensitive")]
        if isinstance(rules, str) or not isinstance(rules, (bool, Iterable)):
            do = f'write rules=["{rules}"]' if isinstance(rules, str) else "write rules=True for all columns"
            raise InputError("rules must be True, False or a list of column names", got=repr(rules), do=do)
        listed = published if isinstance(rules, bool) else list(rules)
        if not listed:
            raise InputError("rules names no column", do="write rules=True for all columns")
        for what, name in [("rules", name) for name in listed] + [("classify", classify)] * (classify is not None):
            if name not in published:
                raise InputError(f'{what}: no column "{name}" was published', do=nearest(str(name), published))
        if holdout is not None and classify is None:
            raise InputError("holdout is for classify", do='name the column: classify="…"')
        if rules is False and classify is None:
            return None
        share_of("support", support), share_of("confidence", confidence)
        if isinstance(seeds, bool) or not isinstance(seeds, int) or seeds < 1 + (classify is not None):
            least = 1 + (classify is not None)
            raise InputError(f"seeds must be a whole number, at least {least}", got=repr(seeds))
        if holdout is not None and not isinstance(holdout, Table):
            raise InputError("holdout must be a jali table", do="use jali.read or jali.table")
        if classify is not None:
            require_classifier()
        columns = tuple(name for name in published if name in listed)
        return cls(columns, rules is not False, classify, holdout, support, confidence, seeds)

    def answers(self, release: Generalized, original: Table, covers: Mapping[str, Cover]) -> dict[str, Any]:
        """The fields of Measures that were asked for."""
        own = original.frame("arrow")
        drawn = reconstructions(release, original, covers, seeds=self.seeds)
        least: dict[str, Any] = {"support": self.support, "confidence": self.confidence}
        found: dict[str, Any] = {}
        if self.rules:
            some = [one.select(self.columns) for one in (own, *drawn)]
            found["rules"] = rule_errors(some[0], some[1:], **least)
        if self.classify is not None:
            names = list(dict.fromkeys([*self.columns, self.classify]))
            some = [one.select(names) for one in (own, *drawn)]
            found["class_rules"] = rule_errors(some[0], some[1:], **least, then=self.classify)
            found["classified"] = classified(
                drawn, original, self.classify,
                names=[c.name for c in (*original.quasi, *original.sensitive) if c.name != self.classify],
                holdout=self.holdout, in_order=_groups_in_order(release, original) is not None,
            )  # fmt: skip
        return found


def reconstructions(
    release: Generalized, original: Table, covers: Mapping[str, Cover], *, seeds: int
) -> list[pa.Table]:
    """One value for every published cell, with seeds 0, 1, …: the same whenever it is asked.

    The rows stand in the order of the original's where a fresh release knows it, else sorted by what they show: not as
    they were published, since that order is different each time.
    """
    told = [column for column in release.columns if column.role in ("quasi", "sensitive")]
    group = _groups_in_order(release, original)
    if group is None:
        order = np.lexsort([column.codes for column in told])
        codes = [column.codes[order] for column in told]
    else:
        codes = [_codes_in_order(column, original, release.grouping[1][group]) for column in told]
    columns = [
        BoxColumn(c.name, c.kind, c.role, covers.get(c.name, c.cover), own) for c, own in zip(told, codes, strict=True)
    ]
    estimate = BoxEstimate.from_rows(columns)
    return [estimate.sample(None, seed=seed) for seed in range(seeds)]


def _groups_in_order(release: Generalized, original: Table) -> Ints | None:
    """The published group of each row of the original, where that is known one by one."""
    return release.group_of_records(original) if original.multiplicity is None else None


def _codes_in_order(column: Published, original: Table, shown: Ints) -> NDArray[np.integer]:
    """The published node of each row of the original; `shown` is a distinct row that shows its group."""
    if column.role == "quasi":
        return column.held[shown]
    own = original[column.name]
    found: Ints = v.places(column.labels, own.labels)[own.codes]
    return found
