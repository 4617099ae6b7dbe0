"""Measures: what an analyst keeps and loses, computed from what is published against the original table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jali.encoding.table import Domain, Table
from jali.errors import InputError
from jali.releases.base import Release, load
from jali.releases.buckets import Buckets
from jali.releases.generalized import Generalized
from jali.releases.original import bucket_costs, holder_costs
from jali.show import lines_of


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

    def to_dict(self) -> dict[str, Any]:
        """Plain nested dicts."""
        return vars(self) | {"columns": dict(self.columns), "domain": dict(self.domain)}

    def lines(self) -> list[tuple[str, str]]:
        """Each measure's name and its figure, as text."""
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
        return rows

    def __repr__(self) -> str:
        return "\n".join(lines_of(self.lines()))


def measure(release: Release | str | Path, original: Table, *, domain: Domain | None = None) -> Measures:
    """What the release costs an analyst, against the table it was made from.

    `domain` says which values a generalized cell is spread over: those declared for its column, or those that occur in
    the table; by default as the table says.
    """
    found = load(release) if isinstance(release, (str, Path)) else release
    if not isinstance(found, (Generalized, Buckets)):
        raise InputError(f"a {found.kind} release cannot be measured")
    if domain not in (None, "declared", "present"):
        raise InputError('domain must be "declared" or "present"', got=repr(domain))
    require_original(found, original)
    over = domain or original.domain
    levels = found.levels if isinstance(found, Generalized) else {}
    costs = bucket_costs(found, original, over) if isinstance(found, Buckets) else holder_costs(found, original, over)
    return Measures(
        height=sum(levels.values()) if levels else None,
        rows=found.rows,
        domain={n: "declared" if original[n].declared and over == "declared" else "present" for n in costs.columns},
        **vars(costs),
    )


def require_original(release: Release, original: Table) -> None:
    """Raise InputError unless the table can be the one that was published."""
    if not isinstance(original, Table):
        raise InputError("the original must be a jali table", do="use jali.read or jali.table")
    rows = release.manifest.counts["rows"]
    if rows != original.rows:
        got = f"{rows:,} rows in the release, {original.rows:,} in the table"
        raise InputError("this is not the table that was published", got=got, do="compare with the original")
