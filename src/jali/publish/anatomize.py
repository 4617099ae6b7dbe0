"""anatomize: a table as buckets, from the anatomy algorithm, a partition, or the groups of a lattice node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jali.core.arrays import Ints, Runs, combine, counted, narrowed, owners
from jali.core.formats import free_name
from jali.core.progress import Step, watched
from jali.core.rows import Order, fresh_order
from jali.encoding.ends import Grid
from jali.encoding.large import MORE, LargeTable, TooManyError
from jali.encoding.table import Column, Table
from jali.errors import InfeasibleError, InputError, nearest, one_of, told
from jali.measures.holder import bucket_costs, divergence
from jali.principles.base import Principle, principles_of
from jali.publish.checks import (
    failure,
    node_of,
    only_present,
    promised_people,
    reached,
    require_publishable,
    require_table,
)
from jali.publish.generalize import manifest_of, mean_weight
from jali.publish.portions import (
    BucketedRows,
    DealtRows,
    GroupedRows,
    Section,
    as_values,
    require_room,
    seats_of,
    sections_of_groups,
)
from jali.publish.transparent import claim, is_asked
from jali.releases.column import Published, holder_cover, publish_exact, publish_quasi
from jali.releases.display import Members, Show, naming_values, publish_groups, shows_of
from jali.releases.generalized import Requirement
from jali.releases.linked.buckets import Buckets, Contents, counts_on_size
from jali.releases.linked.linked import Assignment, Pairs, paired, pairs_of
from jali.search.batches import dealing, dealt_out, kept_by, row_of, seated_row
from jali.search.common import require_feasible
from jali.search.items import Mode, Split
from jali.search.lattice.costs import Node
from jali.search.lattice.lattice import Lattice
from jali.search.mondrian import mondrian, require_cuts
from jali.search.trunk import Trunk

WAYS = ("anatomy", "partition")
_WAY = {True: 'buckets = "partition"', False: "buckets of a node"}
_Entries = tuple[tuple[Published, ...], Runs, NDArray[np.integer]]


class _Grouped(NamedTuple):
    """Buckets as a search found them, over the distinct rows of a table."""

    table: Table  # one record for each distinct row
    in_bucket: NDArray[np.integer] | Runs  # which each record, or each member, is in
    member: NDArray[np.int32] | None = None  # the records that were dealt one by one, sorted by bucket
    levels: Mapping[str, int] | None = None  # of a lattice node
    checked: int = 0

    @property
    def bucket(self) -> NDArray[np.integer]:
        """The bucket of each record, or of each member."""
        return self.in_bucket.each if isinstance(self.in_bucket, Runs) else self.in_bucket

    @property
    def numbers(self) -> Ints | None:
        """The rows of each record; None where members stand for one each."""
        return self.table.multiplicity if self.member is None else None


def anatomize(
    table: Table,
    principles: Requirement,
    *,
    buckets: Literal["anatomy", "partition"] | Mapping[str, int] | Node = "anatomy",
    generalized: bool | Mapping[str, int] = False,
    mode: Mode = "strict",
    split: Split = "range",
    show: Show | Mapping[str, Show] | None = None,
    grid: Grid | None = None,
    transparent: bool = False,
    threads: int | None = None,
    on_step: Step | None = None,
) -> Buckets:
    """Publish quasi-identifiers and sensitive values apart, tied only by the number of a bucket of people.

    `buckets` says how people are put together: "anatomy" deals them, by FrequencyDiversity(l), DistinctDiversity(l) or
    the least l that Safety(c, k) needs, into buckets of l or l + 1 people with different values; "partition" cuts the
    table as `jali.partition` does (with `mode`, `split`, `threads`); levels or a node of the lattice take its groups.
    Quasi-identifiers are shown as they are, or with `generalized=True` as the partition (with `show` and `grid`) or the
    node shows them, or at the levels it names. `transparent=True` is for buckets that anatomy deals: they keep the
    promises also against an attacker who knows this algorithm, and the release says so.
    """
    require_table("anatomize", table, large=True)
    required = principles_of(principles)
    require_publishable(table, pseudonyms=False)
    table = only_present(table)
    _check(table, required, buckets, generalized)
    if isinstance(table, LargeTable):
        _check_large(table, required, buckets, generalized, mode)
    _check_cuts(buckets, mode, split)
    boxed = generalized is True and buckets == "partition"
    if not boxed and (show is not None or grid is not None):
        name = "grid" if show is None else "show"
        raise InputError(f"{name} is for the boxes of a partition", do='pass buckets="partition" and generalized=True')
    shows = shows_of(table.quasi, show)
    table, named = naming_values(table, shows, grid, promised_people(required)) if boxed else (table, {})
    method: dict[str, Any] = {"name": "anatomize", "buckets": buckets if isinstance(buckets, str) else "levels"}
    method |= {"mode": mode, "split": split} if buckets == "partition" else {}
    method |= claim(method, required, one_row=table.person is None) if is_asked(transparent) else {}
    if isinstance(table, LargeTable):
        with watched("forming buckets", on_step) as step:
            levels = generalized if isinstance(generalized, Mapping) else {}
            asked = _Beyond(table, required, method | {"generalized": bool(generalized)}, step, _named(table, levels))
            if isinstance(buckets, (Node, Mapping)):
                return _of_node_beyond(asked, buckets.levels if isinstance(buckets, Node) else buckets)
            return _cut_beyond(asked, split, threads) if buckets == "partition" else _dealt_beyond(asked)
    weights = None if table.weight is None else np.unique(table.weight, return_inverse=True)[1].reshape(-1)
    distinct, record = table.merged(weights)  # rows of different weights may go to different buckets
    with watched("forming buckets", on_step) as step:
        if isinstance(buckets, (Node, Mapping)):
            found = _of_node(distinct, required, buckets.levels if isinstance(buckets, Node) else buckets, step)
        elif buckets == "partition":
            found = _cut(distinct, required, mode, {"split": split, "threads": threads, "on_step": step})
        else:
            found = _dealt(distinct, required, step)
    if found.member is None:  # else they were dealt at random
        found = found._replace(in_bucket=fresh_order(int(found.bucket.max()) + 1).astype(np.int32)[found.bucket])
    others = [column for column in found.table.columns if column.role != "sensitive"]
    shown = [_shown(column, found, generalized, shows) for column in others]
    release = _release(found, required, shown, method | {"generalized": bool(generalized)} | named)
    release.remember(_assignment(table, record, distinct, found))
    mass = release.mass(lambda column: holder_cover(column, distinct[column.name], table.domain))
    return _measured(release, distinct, divergence(mass, distinct))


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


def _check_large(
    table: LargeTable, required: tuple[Principle, ...], buckets: object, generalized: object, mode: object
) -> None:  # fmt: skip
    """Raise InputError for buckets that look at every combination at once."""
    cut = buckets == "partition"
    under_safety = any(p.scope == "table" for p in required)
    for wrong, what, instead in (
        (generalized and buckets != "anatomy", f"anatomize with generalized and {_WAY[cut]}", "leave generalized out"),
        (cut and mode != "strict", 'anatomize with mode = "relaxed"', 'use mode = "strict"'),
        (cut and under_safety, f"anatomize with {_WAY[cut]} under Safety", 'use buckets = "anatomy"'),
    ):
        if wrong:
            raise table.refused(what, instead)
    if buckets == "anatomy":
        require_room(table, "anatomize")


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
    bucket = partition.group[table.frequencies.row_combination]
    return _Grouped(table, bucket, levels=partition.levels, checked=lattice.checked)


def _cut(table: Table, required: tuple[Principle, ...], mode: Mode, how: Mapping[str, Any]) -> _Grouped:
    """The groups of a partition; a relaxed one divides the rows of a record, which stand one by one then."""
    assert table.multiplicity is not None
    table = table if mode == "strict" else table.take(owners(table.multiplicity), None)
    boxes = mondrian(table, required, mode=mode, **how)
    group = boxes.row_group if boxes.group is None else boxes.group[table.frequencies.row_combination]
    assert group is not None
    return _Grouped(table, group, checked=boxes.checked)


def _dealt(table: Table, required: tuple[Principle, ...], step: Step) -> _Grouped:
    """Buckets from the anatomy algorithm, dealt from counts; every other promise is judged afterwards."""
    whole = table.frequencies.whole
    require_feasible(required, whole)
    drivers = [p for p in required if p.deals]
    name, l = dealing(drivers, whole, table.rows)
    column, judged = table[name].sensitive()
    values = judged[table[name].codes]
    assert table.multiplicity is not None
    people = counted(values, table.multiplicity, len(column))
    line, buckets = row_of(people, kept_by(drivers, column, people, l), column.unknown)
    row = seated_row(values, table.multiplicity, line, fresh_order)
    member, bucket = dealt_out(row, fresh_order(buckets))
    step(table.rows, table.rows)
    return _Grouped(table, bucket, member)


# -- tables beyond memory -------------------------------------------------------------------------------------------


class _Beyond(NamedTuple):
    """A request for buckets of a table beyond memory."""

    large: LargeTable
    required: tuple[Principle, ...]
    method: Mapping[str, Any]
    step: Step
    levels: Mapping[str, int]  # at which individuals are shown

    def release(self, found: _Grouped, entries: _Entries, rows: DealtRows | BucketedRows) -> Buckets:
        """The release of these entries, whose individuals come in portions, without its metrics."""
        large = self.large
        every = [column for column in large.columns if column.role != "sensitive"]
        shown = [as_values(column, self.levels.get(column.name, 0)) for column in every]
        taken = [column.name for column in large.columns]
        size = narrowed(counted(entries[1].each, entries[2]))
        pairs = Pairs(np.zeros(len(size), dtype=np.uint8), Runs(np.ones(len(size), dtype=np.uint8)), Order(size))
        names = (free_name("bucket", taken), free_name("count", taken), None)
        contents = Contents(tuple(shown), pairs, *entries, None, names)
        told: Any = {"groups": contents.buckets, "suppressed": 0, "others": large.of_role("other")}
        manifest = manifest_of(Buckets.kind, found.table, self.required, self.method, **told)
        release = Buckets(contents, manifest, origin=large.origin).without_rows(rows.unheld(shown))
        _require_kept(release)
        release.search = {"checked": found.checked}
        return release

    def grouped(self, found: _Grouped, rows: BucketedRows) -> Buckets:
        """The release of buckets that are groups of quasi-identifiers."""
        entries = _entries([publish_exact(column) for column in found.table.sensitive], found, found.bucket)
        return _measured(self.release(found, entries, rows), self.large, rows.divergence(*entries[1:]))


def _named(table: LargeTable, levels: Mapping[str, int]) -> dict[str, int]:
    """The level of every quasi-identifier; InputError for levels that a column does not have."""
    return dict(zip([column.name for column in table.quasi], map(int, node_of(table, levels)), strict=True))


def _dealt_beyond(asked: _Beyond) -> Buckets:
    """The release of dealt buckets: seats are dealt from the values of the table, and taken by its rows in portions."""
    values = asked.large.at_roots()
    found = _dealt(values, asked.required, asked.step)
    assert found.member is not None
    bucket = found.bucket.astype(np.int32, copy=False)
    entries = _entries([publish_exact(column) for column in values.sensitive], found, bucket)
    rows = DealtRows(asked.large, values, seats_of(found.member, bucket, values.records), asked.levels)
    del bucket
    release = asked.release(found, entries, rows)
    value, _ = combine([(c.held, len(c.labels)) for c in entries[0]], len(entries[2]))
    return _measured(release, asked.large, rows.divergence(entries[1], value, entries[2]))


def _of_node_beyond(asked: _Beyond, levels: Mapping[str, int]) -> Buckets:
    """The release of the groups of a lattice node, at which the table is counted."""
    large, node = asked.large, node_of(asked.large, levels)
    try:
        coarse = large.at(node, other=False)
    except TooManyError:
        raise InputError("these levels have more combinations than memory holds", do=MORE) from None
    found = _of_node(coarse, asked.required, levels, asked.step)
    bucket = fresh_order(int(found.bucket.max()) + 1)[found.bucket]
    maps = [large.hierarchy(c.name).maps[level].astype(np.int64) for c, level in zip(large.quasi, node, strict=True)]
    of = np.empty(coarse.frequencies.combinations, dtype=np.int64)
    of[coarse.frequencies.row_combination] = bucket
    known = [own[codes] for own, codes in zip(maps, coarse.frequencies.columns, strict=True)]
    rows = BucketedRows(large, large.all_nodes_at({}), maps, lambda: [Section(None, known, of)])
    return asked.grouped(found._replace(in_bucket=bucket), rows)


def _cut_beyond(asked: _Beyond, split: Split, threads: int | None) -> Buckets:
    """The release of the groups of a strict partition, which the engine cuts until they fit."""
    large = asked.large
    trunk = Trunk(large.without_others(), asked.required, split=split, importance=None, on_step=asked.step)
    branches = trunk.grow()
    grown = trunk.finish(branches, threads)
    bucket, groups = fresh_order(grown.groups), GroupedRows(large, trunk, branches, grown, threads)
    codes = [np.arange(len(column.values)) for column in large.quasi]
    rows = BucketedRows(large, groups.nodes, codes, lambda: sections_of_groups(groups, bucket))
    return asked.grouped(_Grouped(grown.table, bucket[grown.group], checked=grown.checked), rows)


def _measured(release: Buckets, original: Table, kl: float) -> Buckets:
    """The release with its metrics, verified."""
    costs = bucket_costs(release, original, original.domain, kl=kl)
    metrics = {"kl": costs.kl, "average": costs.average, "loss": costs.loss}
    release.manifest = replace(release.manifest, metrics=metrics)
    release.verify()
    return release


# -- what is published --------------------------------------------------------------------------------------------


def _shown(
    column: Column, found: _Grouped, generalized: bool | Mapping[str, int], shows: Mapping[str, Show]
) -> Published:
    """A column of the individuals, record by record."""
    if column.role != "quasi":
        return publish_exact(column)
    table = found.table
    levels = node_of(table, generalized if isinstance(generalized, Mapping) else found.levels or {})
    if generalized is True and found.levels is None:
        bucket = found.bucket.astype(np.int64)
        members = Members(column.codes.astype(np.int64), bucket, int(bucket.max()) + 1, bucket, table.multiplicity)
        return publish_groups(column, members, shows[column.name])
    level = levels[[c.name for c in table.quasi].index(column.name)]
    return publish_quasi(column, level if generalized else 0, None)


def _release(
    found: _Grouped, required: tuple[Principle, ...], shown: list[Published], method: Mapping[str, Any]
) -> Buckets:
    """The release of these buckets."""
    table, bucket = found.table, found.bucket
    hidden = [publish_exact(column) for column in table.sensitive]
    taken = [column.name for column in (*shown, *hidden)] + [n for n in (table.weight_name,) if n]
    columns, pairs = paired(shown, bucket, member=found.member, numbers=found.numbers)
    names = (free_name("bucket", taken), free_name("count", taken), table.weight_name)
    contents = Contents(columns, pairs, *_entries(hidden, found, bucket), _weight(found, bucket), names)
    manifest = manifest_of(Buckets.kind, table, required, method, groups=contents.buckets, suppressed=0)
    del bucket
    release = Buckets(contents, manifest, origin=table.origin)
    _require_kept(release)
    release.search = {"checked": found.checked}
    return release


def _entries(hidden: list[Published], found: _Grouped, bucket: NDArray[np.integer]) -> _Entries:
    """The table of buckets: its sensitive columns, the bucket of each entry, and its people."""
    value, first = combine([(c.held, len(c.labels)) for c in hidden], found.table.records)
    pairs = pairs_of(value, len(first), bucket, member=found.member, numbers=found.numbers)
    columns = tuple(column.with_codes(column.held[first][pairs.cell]) for column in hidden)
    return columns, pairs.links, pairs.numbers


def _weight(found: _Grouped, bucket: NDArray[np.integer]) -> NDArray[np.float64] | None:
    """The mean weight of each bucket, if there are weights."""
    if found.table.weight is None:
        return None
    table = found.table if found.member is None else found.table.take(found.member.astype(np.int64), None)
    mean = mean_weight(table, bucket.astype(np.int64))
    assert mean is not None
    weight = np.zeros(int(bucket.max()) + 1)
    weight[bucket] = mean
    return weight


def _assignment(table: Table, record: NDArray[np.int32], distinct: Table, found: _Grouped) -> Assignment:
    """Where each row of the original went, found when its holder asks."""
    member, own = found.member, found.in_bucket
    if member is None and found.table is not distinct and distinct.multiplicity is not None:
        member = owners(distinct.multiplicity).astype(np.int32)
    return Assignment.of_members(table, record, own if isinstance(own, Runs) else narrowed(own), member)


def _require_kept(release: Buckets) -> None:
    """Raise InfeasibleError where buckets that were dealt do not keep another promise."""
    broken = release.broken()
    if broken:
        kept = reached(broken, release.counts())
        raise InfeasibleError(f'the buckets that anatomy deals do not keep {kept}; use buckets="partition"')
