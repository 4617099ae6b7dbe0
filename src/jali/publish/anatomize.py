"""anatomize: a table as buckets, from the anatomy algorithm, a partition, or the groups of a lattice node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np

from jali.core.arrays import Ints, combine, counted, owners
from jali.core.formats import free_name
from jali.core.progress import Step, watched
from jali.core.rows import fresh_order
from jali.encoding.table import Column, Table
from jali.errors import InfeasibleError, InputError, nearest, one_of, told
from jali.measures.holder import bucket_costs
from jali.principles.base import Principle, principles_of
from jali.principles.base import show as show_level
from jali.publish.checks import failure, node_of, only_present, require_publishable, require_table
from jali.publish.generalize import manifest_of, mean_weight
from jali.publish.transparent import claim, is_asked
from jali.releases.column import Published, publish_exact, publish_quasi
from jali.releases.display import Members, Show, publish_groups, shows_of
from jali.releases.generalized import Requirement
from jali.releases.linked.buckets import Buckets, Contents, counts_on_size
from jali.search.batches import deal, dealing, kept_by
from jali.search.common import require_feasible
from jali.search.items import Mode, Split
from jali.search.lattice.costs import Node
from jali.search.lattice.lattice import Lattice
from jali.search.mondrian import mondrian, require_cuts

WAYS = ("anatomy", "partition")


class _Grouped(NamedTuple):
    """Buckets as a search found them."""

    bucket: Ints  # (rows,) of each row of the original
    levels: Mapping[str, int] | None = None  # of a lattice node
    checked: int = 0


def anatomize(
    table: Table,
    principles: Requirement,
    *,
    buckets: Literal["anatomy", "partition"] | Mapping[str, int] | Node = "anatomy",
    generalized: bool | Mapping[str, int] = False,
    mode: Mode = "strict",
    split: Split = "range",
    show: Show | Mapping[str, Show] | None = None,
    transparent: bool = False,
    threads: int | None = None,
    on_step: Step | None = None,
) -> Buckets:
    """Publish quasi-identifiers and sensitive values apart, tied only by the number of a bucket of people.

    `buckets` says how people are put together: "anatomy" deals them, by FrequencyDiversity(l), DistinctDiversity(l) or
    the least l that Safety(c, k) needs, into buckets of l or l + 1 people with different values; "partition" cuts the
    table as `jali.partition` does (with `mode`, `split`, `threads`); levels or a node of the lattice take its groups.
    Quasi-identifiers are shown as they are, or with `generalized=True` as the partition (with `show`) or the node shows
    them, or at the levels it names. `transparent=True` is for buckets that anatomy deals: they keep the promises also
    against an attacker who knows this algorithm, and the release says so.
    """
    require_table("anatomize", table)
    required = principles_of(principles)
    require_publishable(table, pseudonyms=False)
    table = only_present(table)
    if table.multiplicity is not None:  # rows of one record may go to different buckets
        table = table.take(owners(table.multiplicity), None)
    _check(table, required, buckets, generalized)
    _check_cuts(buckets, mode, split)
    if show is not None and not (generalized is True and buckets == "partition"):
        raise InputError("show is for the boxes of a partition", do='pass buckets="partition" and generalized=True')
    shows = shows_of(table.quasi, show)
    method: dict[str, Any] = {"name": "anatomize", "buckets": buckets if isinstance(buckets, str) else "levels"}
    method |= {"mode": mode, "split": split} if buckets == "partition" else {}
    method |= claim(method, required, one_row=table.person is None) if is_asked(transparent) else {}
    with watched("forming buckets", on_step) as step:
        if isinstance(buckets, (Node, Mapping)):
            found = _of_node(table, required, buckets.levels if isinstance(buckets, Node) else buckets, step)
        elif buckets == "partition":
            boxes = mondrian(table, required, mode=mode, split=split, threads=threads, on_step=step)
            group = boxes.row_group if boxes.group is None else boxes.group[table.frequencies.row_combination]
            assert group is not None
            found = _Grouped(group, checked=boxes.checked)
        else:
            found = _dealt(table, required, step)
    shown = [_shown(column, table, found, generalized, shows) for column in table.columns if column.role != "sensitive"]
    return _release(table, required, found, shown, method | {"generalized": bool(generalized)})


# -- what is asked ------------------------------------------------------------------------------------------------


def _check(table: Table, required: tuple[Principle, ...], buckets: object, generalized: object) -> None:
    """Raise InputError for what makes no sense, before anything is searched."""
    if not table.sensitive:
        raise InputError("buckets need a sensitive column", do='name one: sensitive=["…"] in read or table')
    if table.person is not None:
        raise InputError("buckets need one row per person", do="keep one row of each person, or generalize the table")
    if not isinstance(buckets, (Node, Mapping)) and not one_of(buckets, WAYS):
        do = nearest(buckets, WAYS) if isinstance(buckets, str) else 'use "anatomy", "partition" or levels by column'
        raise InputError("not a way to form buckets", got=repr(told(buckets)), do=do)
    if not isinstance(generalized, (bool, Mapping)):
        do = 'write generalized=True, or levels as in generalized={"age": 2}'
        raise InputError("generalized is true, false or levels by column", got=repr(told(generalized)), do=do)
    if generalized is True and buckets == "anatomy":
        do = 'name the levels to show, as in generalized={"age": 2}'
        raise InputError("buckets that anatomy deals have no generalization of their own", do=do)
    for principle in required:
        if generalized is not True and counts_on_size(principle):
            raise InputError(
                f"{principle!r} promises that people look alike in groups, and individuals are shown one by one",
                do='promise diversity instead, or pass buckets="partition" and generalized=True',
            )


def _check_cuts(buckets: object, mode: Mode, split: Split) -> None:
    """Raise InputError for a way to cut where nothing is cut, or that is not known."""
    for name, value, default in (("mode", mode, "strict"), ("split", split, "range")):
        if not one_of(value, (default,)) and buckets != "partition":
            do = f'pass buckets="partition", or leave {name} out'
            raise InputError(f"{name} says how a partition is cut", got=repr(told(value)), do=do)
    require_cuts(mode, split)


# -- how people are put together ----------------------------------------------------------------------------------


def _of_node(table: Table, required: tuple[Principle, ...], levels: Mapping[str, int], step: Step) -> _Grouped:
    """The groups of a lattice node, all of which must keep the promises."""
    lattice = Lattice(table, required, on_step=step)
    node = node_of(table, levels)
    hidden = lattice.suppression(lattice.tally(node), 0)
    if hidden is None or hidden.any():
        raise InfeasibleError(failure(lattice, node))
    partition = lattice.partition(node)
    return _Grouped(partition.group[table.frequencies.row_combination], partition.levels, lattice.checked)


def _dealt(table: Table, required: tuple[Principle, ...], step: Step) -> _Grouped:
    """Buckets from the anatomy algorithm; every other promise is judged afterwards."""
    frequencies = table.frequencies
    whole = frequencies.whole
    require_feasible(required, whole)
    drivers = [p for p in required if p.deals]
    name, l = dealing(drivers, whole, table.rows)
    column, judged = table[name].sensitive()
    values = judged[table[name].codes]
    bucket = deal(values, kept_by(drivers, column, values, l), fresh_order(table.rows), unknown=column.unknown)
    step(table.rows, table.rows)
    return _Grouped(bucket)


# -- what is published --------------------------------------------------------------------------------------------


def _shown(
    column: Column, table: Table, found: _Grouped, generalized: bool | Mapping[str, int], shows: Mapping[str, Show]
) -> Published:
    """A column of the individuals, in the order of the original."""
    if column.role != "quasi":
        return publish_exact(column)
    levels = node_of(table, generalized if isinstance(generalized, Mapping) else found.levels or {})
    if generalized is True and found.levels is None:
        members = Members(column.codes.astype(np.int64), found.bucket, int(found.bucket.max()) + 1, found.bucket)
        return publish_groups(column, members, shows[column.name])
    level = levels[[c.name for c in table.quasi].index(column.name)]
    return publish_quasi(column, level if generalized else 0, None)


def _release(
    table: Table, required: tuple[Principle, ...], found: _Grouped, shown: list[Published], method: Mapping[str, Any]
) -> Buckets:
    """The release: fresh numbers for the buckets, a fresh order for the individuals."""
    buckets = int(found.bucket.max()) + 1
    bucket = fresh_order(buckets)[found.bucket]
    order = fresh_order(table.rows)
    hidden = [publish_exact(column) for column in table.sensitive]
    entry, first = combine([(bucket, buckets), *((c.codes, len(c.labels)) for c in hidden)], table.rows)
    mean = mean_weight(table, bucket)
    weight = None
    if mean is not None:
        weight = np.zeros(buckets)
        weight[bucket] = mean
    taken = [column.name for column in (*shown, *hidden)] + [n for n in (table.weight_name,) if n]
    contents = Contents(
        tuple(column.with_codes(column.codes[order]) for column in shown),
        bucket[order],
        tuple(column.with_codes(column.codes[first]) for column in hidden),
        bucket[first],
        counted(entry),
        weight,
        (free_name("bucket", taken), free_name("count", taken), table.weight_name),
    )
    manifest = manifest_of(Buckets.kind, table, required, method, groups=buckets, suppressed=0)
    release = Buckets(contents, manifest, origin=table.origin)
    _require_kept(release)
    release.remember(bucket)
    costs = bucket_costs(release, table, table.domain)
    release.manifest = replace(manifest, metrics={"kl": costs.kl, "average": costs.average, "loss": costs.loss})
    release.search = {"checked": found.checked}
    release.verify()
    return release


def _require_kept(release: Buckets) -> None:
    """Raise InfeasibleError where buckets that were dealt do not keep another promise."""
    counts = release.counts()
    broken = [p for p in release.principles if not bool(p.holds(counts).all())]
    if broken:
        reached = ", ".join(f"{p.title} {p.bound} (reach {show_level(p.worst(counts))})" for p in broken)
        raise InfeasibleError(f'the buckets that anatomy deals do not keep {reached}; use buckets="partition"')
