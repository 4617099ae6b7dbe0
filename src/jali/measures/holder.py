"""What a release costs its analysts, computed by the holder of the original; and how the original is read again."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from jali.core.arrays import (
    Ints,
    added,
    average_size,
    covered_share,
    discernibility,
    granularity,
    kl_of_shares,
    loss,
    starts,
)
from jali.cover.cover import Cover
from jali.encoding.hierarchy import Builder
from jali.encoding.large import LargeTable
from jali.encoding.table import Column, Domain, Table
from jali.errors import InputError
from jali.estimates.base import Estimate
from jali.estimates.link_join import Mass
from jali.releases.base import Release
from jali.releases.column import Published, holder_cover
from jali.releases.generalized import Generalized


@dataclass(frozen=True)
class HolderCosts:
    """What a release costs, for the holder of its original."""

    kl: float
    average: float
    discernibility: float | None  # None where nobody's rows are made alike
    loss: float
    granularity: float
    groups: int
    suppressed: int
    columns: dict[str, float]  # the mean share of values that a cell covers, by quasi-identifier


def holder_costs(
    release: Generalized, original: Table, domain: Domain, covers: Mapping[str, Cover] | None = None,
    *, pieces: Iterable[Table] | None = None,
) -> HolderCosts:  # fmt: skip
    """All costs, from what is published against the table it was made from; `covers` where they are known already.

    `pieces` are the rows of an original that cannot be held as a whole.
    """
    known = holder_covers(release, original, domain) if covers is None else covers
    hidden, suppressed = release.hidden, release.suppressed
    sizes = added(release.grouping[0][~hidden], release.numbers[~hidden])
    groups = int((sizes > 0).sum()) + bool(suppressed)
    inferred = release.inferred(lambda column: known.get(column.name, column.cover))
    kl = divergence(inferred, original) if pieces is None else divergence_of_pieces(inferred, pieces, original.rows)
    alike = discernibility(sizes, suppressed, release.rows)
    return _costs(release, original, domain, known, kl=kl, alike=alike, groups=groups, suppressed=suppressed)


def bucket_costs(
    release: Release, original: Table, domain: Domain, *, kl: float | None = None,
    pieces: Iterable[Table] | None = None,
) -> HolderCosts:  # fmt: skip
    """The costs of tables that share bucket or batch numbers: how far values are spread and columns generalized.

    `kl` where it is known already; `pieces` are the rows of an original that cannot be held as a whole.
    """
    covers = holder_covers(release, original, domain)
    groups, batched = int(release.manifest.counts["groups"]), release.batched
    alike = None if batched is None else discernibility(batched.contents.tables[0].sizes.astype(np.float64))
    if kl is None:
        inferred = holder_estimate(release, original, domain)
        kl = divergence(inferred, original) if pieces is None else divergence_of_pieces(inferred, pieces, release.rows)
    return _costs(release, original, domain, covers, kl=kl, alike=alike, groups=groups)


def _costs(
    release: Release, original: Table, domain: Domain, covers: Mapping[str, Cover],
    *, kl: float, alike: float | None, groups: int, suppressed: int = 0,
) -> HolderCosts:  # fmt: skip
    shares = {n: _share(release[n].rows_by_node, covers[n], original[n].mask(domain)) for n in covers}
    average, lost, kept = average_size(release.rows, groups), loss(shares.values()), granularity(shares.values())
    return HolderCosts(kl, average, alike, lost, kept, groups, suppressed, shares)


def holder_covers(release: Release, original: Table, domain: Domain) -> dict[str, Cover]:
    """What the cells of each quasi-identifier cover for the holder of the original."""
    return {c.name: holder_cover(c, original[c.name], domain) for c in release.of_role("quasi")}


def column_losses(original: Table, columns: Sequence[Published], bucket: NDArray[np.integer]) -> dict[str, float]:
    """How far each column is generalized where everybody shows what their bucket does: 0 as it is, 1 for `*`."""
    people = np.bincount(bucket)
    losses = {}
    for column in columns:
        mask = original[column.name].mask(original.domain)
        rows = added(column.codes, people, len(column.labels))
        losses[column.name] = _share(rows, holder_cover(column, original[column.name], original.domain), mask)
    return losses


def holder_estimate(release: Release, original: Table, domain: Domain) -> Estimate:
    """What is inferred from a release over the domain of the original."""

    def cover_of(column: Published) -> Cover:
        several = release.collected is not None and column.role != "quasi"
        return (_sensitive_cover if several else holder_cover)(column, original[column.name], domain)

    return release.inferred(cover_of)


def _sensitive_cover(published: Published, column: Column, domain: Domain) -> Cover:
    """What a sensitive column of marginals covers for the holder: a value each, or all where no marginal has it."""
    if published.judged is not None:
        return published.cover
    values = column.values.filter(pa.array(column.mask(domain)))
    return Cover.grouped(values, np.zeros(len(values), dtype=np.int64), 1)


def _share(rows: NDArray[np.floating], cover: Cover, mask: NDArray[np.bool_]) -> float:
    """The mean over rows of (values covered − 1) / (values − 1), `rows` being how many show each node: (nodes,).

    A distribution may name values outside the domain.
    """
    inside = mask[cover.member] if cover.values is not None and len(cover.values) == len(mask) else cover.member >= 0
    covered: Ints = np.diff(starts(inside)[cover.start])
    return covered_share(rows, covered, int(mask.sum()))


def divergence(estimate: Estimate | Mass, original: Table) -> float:
    """Σ F log(F / F*) in nats: F the table's shares, F* those of an estimate, over quasi × sensitive columns."""
    if isinstance(original, LargeTable):
        return divergence_of_pieces(estimate, original.pieces(), original.rows)
    return max(0.0, _divergence(estimate, original, float(original.frequencies.weight.sum())))


def divergence_of_pieces(estimate: Estimate | Mass, pieces: Iterable[Table], rows: int) -> float:
    """The divergence from a table of `rows` rows that comes in pieces, no cell in two of them."""
    return max(0.0, math.fsum(_divergence(estimate, piece, float(rows)) for piece in pieces))


def _divergence(estimate: Estimate | Mass, original: Table, total: float) -> float:
    frequencies = original.frequencies
    cell = frequencies.combination * len(frequencies.joint) + frequencies.value
    fresh = np.diff(cell, prepend=-1) > 0  # entries are sorted; people of one cell follow each other
    first, weight = np.flatnonzero(fresh), np.bincount(np.cumsum(fresh) - 1, weights=frequencies.weight)
    codes = [frequencies.codes[frequencies.combination[first], i] for i in range(len(original.quasi))]
    codes += [frequencies.joint[frequencies.value[first], i] for i in range(len(original.sensitive))]
    cells = {
        column.name: pa.DictionaryArray.from_arrays(pa.array(code.astype(np.int32)), column.values)
        for column, code in zip((*original.quasi, *original.sensitive), codes, strict=True)
    }
    inferred = estimate.probability(pa.table(cells))
    if bool((inferred[weight > 0] <= 0).any()):
        raise other_table()
    share = weight / total
    present = share > 0
    return kl_of_shares(share[present], inferred[present])


def other_table() -> InputError:
    """What to raise where a row of the table is in no cell of the release."""
    do = "measure against the table that it was made from"
    return InputError("the release does not cover every row of this table", do=do)


def builders(release: Release) -> dict[str, Builder]:
    """A hierarchy for each quasi-identifier, from the manifest, with which the original can be read again."""
    return {column.name: column.facts.builder(column.name) for column in release.of_role("quasi") if column.facts}
