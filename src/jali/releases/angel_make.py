"""An ANGEL release from batches and buckets, however they were found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from jali.encoding.frequencies import combine
from jali.encoding.native import free_name
from jali.encoding.table import Table
from jali.errors import InputError
from jali.estimates.boxes import BoxColumn
from jali.estimates.linked import LinkedEstimate
from jali.principles import KAnonymity
from jali.principles.base import Principle
from jali.principles.base import show as show_level
from jali.principles.counts import Ints
from jali.releases.angel import Angel, require_joint
from jali.releases.angel_keys import keys_of
from jali.releases.angel_tables import Contents, GroupTable
from jali.releases.base import fresh_order
from jali.releases.display import Members, Show, publish_groups
from jali.releases.generalized import manifest_of, mean_weight
from jali.releases.original import bucket_costs, divergence, holder_cover
from jali.releases.published import Published, publish_exact


class Draft(NamedTuple):
    """A table of quasi-identifiers before it is published: in the order of the original's records."""

    name: str
    columns: tuple[Published, ...]
    linked: bool = True  # whether it will show batches


def draft(table: Table, name: str, bucket: Ints, shows: Mapping[str, Show], *, linked: bool = True) -> Draft:
    """The quasi-identifiers that `shows` names, shown bucket by bucket; `bucket` is that of each record."""
    buckets = int(bucket.max()) + 1
    shown = [
        publish_groups(c, Members(c.codes.astype(np.int64), bucket, buckets, bucket, table.multiplicity), shows[c.name])
        for c in table.quasi
        if c.name in shows
    ]
    return Draft(name, tuple(shown), linked)


def kl_of(table: Table, batch: Ints, data: Draft) -> float:
    """The KL-divergence of a release with these batches and buckets, over the domain of the table's holder."""
    hidden, entry_batch, people = _entries(table, batch)
    shown = [
        BoxColumn(c.name, c.kind, c.role, holder_cover(c, table[c.name], table.domain), c.codes) for c in data.columns
    ]
    values = [BoxColumn(c.name, c.kind, c.role, c.cover, c.codes) for c in hidden]
    weight = _mean_of_batches(table, batch)
    return divergence(LinkedEstimate.from_rows(shown, batch, values, entry_batch, people, weight=weight), table)


def _entries(table: Table, batch: Ints) -> tuple[tuple[Published, ...], Ints, Ints]:
    """The table of batches: its sensitive columns, the batch of each entry (sorted), and its people."""
    hidden = [publish_exact(column) for column in table.sensitive]
    keys = [(batch, int(batch.max()) + 1), *((c.codes, len(c.labels)) for c in hidden)]
    entry, first = combine(keys, table.records)
    columns = tuple(replace(column, codes=column.codes[first]) for column in hidden)
    return columns, batch[first], np.bincount(entry).astype(np.int64)


def _mean_of_batches(table: Table, batch: Ints) -> np.ndarray[Any, np.dtype[np.float64]] | None:
    mean = mean_weight(table, batch)
    if mean is None:
        return None
    weight = np.zeros(int(batch.max()) + 1)
    weight[batch] = mean
    return weight


def of_drafts(
    table: Table, batch: Ints, drafts: Sequence[Draft], principles: tuple[Principle, ...], method: Mapping[str, Any], *,
    kl: float | None = None,
) -> Angel:  # fmt: skip
    """The release of these batches (`batch` is that of each record, from 0 without gaps) and tables.

    Batches get fresh numbers, and each table a fresh order. The principles must hold, and k in every table.
    """
    batches = int(batch.max()) + 1
    numbered = fresh_order(batches)[batch]
    hidden, entry_batch, people = _entries(table, numbered)
    taken = [column.name for column in table.columns] + [n for n in (table.weight_name,) if n]
    number = free_name("batch", taken)
    names = (number, free_name("count", [*taken, number]), table.weight_name)
    tables = tuple(published(table, each, numbered) for each in drafts)
    contents = Contents(tables, hidden, entry_batch, people, _mean_of_batches(table, numbered), names)
    told = {"groups": len(tables[0].sizes), "suppressed": 0}
    manifest = manifest_of(Angel.kind, table, principles, method, **told)
    manifest = replace(manifest, counts={**manifest.counts, "batches": batches})
    release = Angel(contents, manifest, origin=table.origin)
    _require_kept(release)
    release.remember(keys_of(table, numbered), numbered)
    costs = bucket_costs(release, table, table.domain, kl=kl)
    release.manifest = replace(manifest, metrics={"kl": costs.kl, "average": costs.average, "loss": costs.loss})
    release.verify()
    return release


def published(table: Table, drawn: Draft, batch: Ints) -> GroupTable:
    """The table in a fresh order, with its batches or, without them, the mean weights of its buckets."""
    order = fresh_order(table.records)
    columns = tuple(replace(column, codes=column.codes[order]) for column in drawn.columns)
    if drawn.linked:
        return GroupTable(drawn.name, columns, batch[order])
    cells, _ = combine([(c.codes, len(c.labels)) for c in drawn.columns], table.records)
    weight = mean_weight(table, cells.astype(np.int64))
    return GroupTable(drawn.name, columns, None, None if weight is None else weight[order])


def _require_kept(release: Angel) -> None:
    """Raise InputError where given batches or buckets do not keep what is promised."""
    counts = release.counts()
    broken = [p for p in release.batch_principles if not bool(p.holds(counts).all())]
    if broken:
        reached = ", ".join(f"{p.title} {p.bound} (reach {show_level(p.worst(counts))})" for p in broken)
        raise InputError(f"the batches do not keep {reached}")
    for table in release.contents.tables:
        if int(table.sizes.min()) < release.k:
            got = f"{int(table.sizes.min())} in the smallest"
            raise InputError(f'the buckets of "{table.name}" do not have k = {release.k} people each', got=got)
    if release.manifest.method.get("joint_k"):
        require_joint(release.contents, release.k)


def of_groups(
    table: Table, batch: Ints, buckets: Mapping[tuple[str, ...], Ints], principles: tuple[Principle, ...], *,
    k: int, shows: Mapping[str, Show], joint_k: bool = False,
) -> Angel:  # fmt: skip
    """The release of given batches and buckets: for each table, `data` first, its columns and each record's bucket.

    A table whose columns include a sensitive one shows batches.
    """
    sensitive = {column.name for column in table.sensitive}
    drafts = []
    for at, (columns, bucket) in enumerate(buckets.items()):
        own = {name: shows[name] for name in columns if name not in sensitive}
        linked = at == 0 or not sensitive.isdisjoint(columns)
        drafts.append(draft(table, "data" if at == 0 else f"marginal-{at}", bucket, own, linked=linked))
    promised = (KAnonymity(k),) if k > 1 else ()
    method = {"name": "given", "show": dict(shows), "joint_k": joint_k}
    return of_drafts(table, batch, drafts, (*principles, *promised), method)
