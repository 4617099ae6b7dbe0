"""Measures: what an analyst keeps and loses, computed from what is published against the original table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jali.encoding.table import Domain, Table
from jali.errors import InputError
from jali.estimates.base import Estimate
from jali.releases.angel import Angel
from jali.releases.base import Release, load
from jali.releases.buckets import Buckets
from jali.releases.generalized import Generalized
from jali.releases.original import bucket_costs, holder_costs, holder_cover, holder_estimate
from jali.show import lines_of
from jali.utility.queries import QueryErrors, workload


@dataclass(frozen=True)
class Measures:
    """The cost of a release; all but granularity are better when lower."""

    kl: float  # nats, over quasi-identifiers × sensitive columns
    height: int | None  # of a lattice node; None where each group is shown in its own way
    average: float
    discernibility: float | None  # None for buckets, where no rows are made alike
    loss: float
    granularity: float
    groups: int
    rows: int
    suppressed: int
    columns: Mapping[str, float]  # the mean share of values that a cell covers, by quasi-identifier
    domain: Mapping[str, str]
    queries: QueryErrors | None = None  # of a workload of random counts, where one was asked for

    def to_dict(self) -> dict[str, Any]:
        """Plain nested dicts."""
        asked = None if self.queries is None else self.queries.to_dict()
        return vars(self) | {"columns": dict(self.columns), "domain": dict(self.domain), "queries": asked}

    def __repr__(self) -> str:
        rows = [
            ("rows", f"{self.rows:,}"),
            ("groups", f"{self.groups:,}"),
            ("suppressed rows", f"{self.suppressed:,}"),
            ("KL-divergence (nats)", f"{self.kl:.6f}"),
            ("generalization height", "not defined" if self.height is None else f"{self.height}"),
            ("average group size", f"{self.average:,.2f}"),
            ("discernibility", "not defined" if self.discernibility is None else f"{self.discernibility:,.0f}"),
            ("loss", f"{self.loss:.6f}"),
            ("granularity", f"{self.granularity:.6f}"),
        ]
        for name, share in self.columns.items():
            rows.append((f"  loss of {name} ({self.domain[name]} domain)", f"{share:.6f}"))
        if self.queries is not None:
            asked = self.queries
            rows += [
                (f"{asked.queries:,} counts of volume {asked.volume:g}: average error", f"{asked.average:.6f}"),
                ("  median error", f"{asked.median:.6f}"),
                ("  counts whose true answer is 0", f"{asked.empty:,}"),
                ("  what is estimated for those, on average", f"{asked.empty_average:.6f}"),
            ]
        return "\n".join(lines_of(rows))


def measure(
    release: Release | str | Path,
    original: Table,
    *,
    domain: Domain | None = None,
    queries: int = 0,
    volume: float = 0.05,
    seed: int | np.random.Generator = 0,
) -> Measures:
    """What the release costs an analyst, against the table it was made from.

    `domain` says which values a generalized cell is spread over: those declared for its column, or those that occur in
    the table; by default as the table says. With `queries` so many random counts over all columns, each of about the
    share `volume` of the space of values, are asked of the release and of the table.
    """
    found = load(release) if isinstance(release, (str, Path)) else release
    if not isinstance(found, (Generalized, Buckets, Angel)):
        raise InputError(f"a {found.kind} release cannot be measured")
    if not isinstance(original, Table):
        raise InputError("measure needs the original as a jali table", do="use jali.read or jali.table")
    if domain not in (None, "declared", "present"):
        raise InputError('domain must be "declared" or "present"', got=repr(domain))
    if found.rows != original.rows:
        got = f"{found.rows:,} rows in the release, {original.rows:,} in the table"
        raise InputError("this is not the table that was published", got=got, do="measure against the original")
    over = domain or original.domain
    levels = found.levels if isinstance(found, Generalized) else {}
    if isinstance(found, Generalized):
        costs = holder_costs(found, original, over)
    else:
        costs = bucket_costs(found, original, over)
    asked = None
    if queries != 0:
        wanted = workload(original, queries, volume=volume, seed=seed, domain=over)
        asked = wanted.errors(_estimate(found, original, over))
    return Measures(
        height=sum(levels.values()) if levels else None,
        rows=found.rows,
        domain={n: "declared" if original[n].declared and over == "declared" else "present" for n in costs.columns},
        queries=asked,
        **vars(costs),
    )


def _estimate(release: Generalized | Buckets | Angel, original: Table, domain: Domain) -> Estimate:
    """What is inferred from the release over the domain that it is measured in."""
    covers = {c.name: holder_cover(c, original[c.name], domain) for c in release.of_role("quasi")}
    return holder_estimate(release, covers) if isinstance(release, Generalized) else release.linked(covers)
