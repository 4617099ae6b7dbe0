"""Measures: what an analyst keeps and loses, computed from what is published against the original table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from jali.encoding.table import Column, Domain, Table
from jali.errors import InputError
from jali.estimates.boxes import BoxColumn, BoxEstimate
from jali.estimates.cover import Cover
from jali.releases.base import Release, load
from jali.releases.generalized import Generalized
from jali.releases.original import node_numbers
from jali.releases.published import Published
from jali.show import lines_of

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Measures:
    """The cost of a release; all but granularity are better when lower."""

    kl: float  # nats, over quasi-identifiers × sensitive columns
    height: int
    average: float
    discernibility: float
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

    def __repr__(self) -> str:
        rows = [
            ("rows", f"{self.rows:,}"),
            ("groups", f"{self.groups:,}"),
            ("suppressed rows", f"{self.suppressed:,}"),
            ("KL-divergence (nats)", f"{self.kl:.6f}"),
            ("generalization height", f"{self.height}"),
            ("average group size", f"{self.average:,.2f}"),
            ("discernibility", f"{self.discernibility:,.0f}"),
            ("loss", f"{self.loss:.6f}"),
            ("granularity", f"{self.granularity:.6f}"),
        ]
        for name, share in self.columns.items():
            rows.append((f"  loss of {name} ({self.domain[name]} domain)", f"{share:.6f}"))
        return "\n".join(lines_of(rows))


def measure(release: Release | str | Path, original: Table, *, domain: Domain | None = None) -> Measures:
    """What the release costs an analyst, against the table it was made from.

    `domain` says which values a generalized cell is spread over: those declared for its column, or those that occur in
    the table; by default as the table says.
    """
    found = load(release) if isinstance(release, (str, Path)) else release
    if not isinstance(found, Generalized):
        raise InputError(f"a {found.kind} release cannot be measured")
    if not isinstance(original, Table):
        raise InputError("measure needs the original as a jali table", do="use jali.read or jali.table")
    if domain not in (None, "declared", "present"):
        raise InputError('domain must be "declared" or "present"', got=repr(domain))
    if found.rows != original.rows:
        got = f"{found.rows:,} rows in the release, {original.rows:,} in the table"
        raise InputError("this is not the table that was published", got=got, do="measure against the original")
    over = domain or original.domain
    covers = {c.name: holder_cover(c, original[c.name], over) for c in found.of_role("quasi")}
    hidden = found.hidden_rows
    shares = {name: _share(found[name], covers[name], original[name].mask(over)) for name in covers}
    sizes = np.bincount(found.group_of_rows[~hidden]).astype(np.float64)
    groups = int((sizes > 0).sum()) + bool(hidden.any())
    return Measures(
        kl=kl_divergence(found, original, covers),
        height=sum(found.levels.values()),
        average=found.rows / groups,
        discernibility=float(sizes @ sizes) + float(hidden.sum()) * found.rows,
        loss=float(np.prod([1 + s for s in shares.values()]) ** (1 / len(shares)) - 1),
        granularity=1 - float(np.mean(list(shares.values()))),
        groups=groups,
        rows=found.rows,
        suppressed=int(hidden.sum()),
        columns=shares,
        domain={n: "declared" if original[n].declared and over == "declared" else "present" for n in covers},
    )


def holder_cover(published: Published, column: Column, domain: Domain) -> Cover:
    """What each shown cell covers, for the holder of the table, who knows every value and its hierarchy."""
    mask = column.mask(domain)
    values = column.values.filter(pa.array(mask))
    nodes = node_numbers(published, column)
    nodes = np.where(nodes == published.cover_root, -1, nodes) if published.cover_root is not None else nodes
    return Cover.grouped(values, nodes[mask], len(published.labels), root=published.cover_root)


def _share(published: Published, cover: Cover, mask: NDArray[np.bool_]) -> float:
    """The mean over rows of (values covered − 1) / (values − 1)."""
    covered = np.diff(cover.start)[published.codes].astype(np.float64)
    return float(np.mean((covered - 1) / max(int(mask.sum()) - 1, 1)))


def kl_divergence(release: Generalized, original: Table, covers: Mapping[str, Cover]) -> float:
    """Σ F log(F / F*) in nats: F the table's shares, F* each published row spread evenly over its box.

    The sensitive columns are not spread.
    """
    estimate = holder_estimate(release, covers)
    frequencies = original.frequencies
    cell = frequencies.combination * len(frequencies.joint) + frequencies.value
    _, first, index = np.unique(cell, return_index=True, return_inverse=True)
    weight = np.bincount(index, weights=frequencies.weight)
    cells = {
        column.name: column.values.take(pa.array(frequencies.codes[frequencies.combination[first], i]))
        for i, column in enumerate(original.quasi)
    }
    for i, column in enumerate(original.sensitive):
        cells[column.name] = column.values.take(pa.array(frequencies.joint[frequencies.value[first], i]))
    inferred = estimate.probability(pa.table(cells))
    if bool((inferred[weight > 0] <= 0).any()):
        raise InputError(
            "the release does not cover every row of this table", do="measure against the table that it was made from"
        )
    share = weight / weight.sum()
    present = share > 0
    return max(0.0, float(np.sum(share[present] * np.log(share[present] / inferred[present]))))


def holder_estimate(release: Generalized, covers: Mapping[str, Cover]) -> BoxEstimate:
    """The estimate of a release over the domain of whoever holds the table."""
    told = [column for column in release.columns if column.role != "other"]
    columns = tuple(BoxColumn(c.name, c.kind, c.role, covers.get(c.name, c.cover), c.codes) for c in told)
    return BoxEstimate.from_rows(columns, release.weight)
