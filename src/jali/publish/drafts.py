"""Drafts of an ANGEL release: batches and buckets formed in several ways, compared by the KL of what is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jali.core.arrays import Ints, Runs, combine, counted, narrowed
from jali.core.formats import free_name
from jali.core.progress import Step
from jali.core.rows import fresh_order, open_order
from jali.encoding.table import Column, Table
from jali.errors import InfeasibleError, InputError
from jali.estimates.conditions import BoxColumn
from jali.estimates.link_join import Mass
from jali.estimates.linked import LinkedEstimate
from jali.measures.holder import bucket_costs, divergence
from jali.principles import KAnonymity
from jali.principles.base import Principle
from jali.publish.checks import Marginal, reached
from jali.publish.generalize import manifest_of, mean_weight
from jali.releases.column import Published, holder_cover, publish_exact
from jali.releases.display import Members, Show, publish_groups
from jali.releases.linked.angel import Angel
from jali.releases.linked.linked import mass_of, paired, pairs_of
from jali.releases.linked.private import Assigned, Seated, keys_of
from jali.releases.linked.tables import Contents, GroupTable
from jali.search.batches import batches_along, deal, dealing
from jali.search.halves import Orders, Seats, seated, seated_counted
from jali.search.items import Split
from jali.search.layout import RecodeShow
from jali.search.mondrian import mondrian
from jali.search.recode import recode_groups

_WORKERS = 4  # tables that are put into order at a time


class Draft(NamedTuple):
    """A table of quasi-identifiers before it is published: what each bucket shows, and the bucket of each record."""

    name: str
    columns: tuple[Published, ...]  # their codes are (buckets,)
    bucket: NDArray[np.int32]  # (records,) of the table that it was made from
    linked: bool = True  # whether it will show batches


def draft(table: Table, name: str, bucket: Ints, shows: Mapping[str, Show], *, linked: bool = True) -> Draft:
    """The quasi-identifiers that `shows` names, shown bucket by bucket; `bucket` is that of each combination."""
    f = table.frequencies
    rows = counted(f.combination, f.rows, f.combinations)
    codes = [(column, f.codes[:, i]) for i, column in enumerate(table.quasi)]
    return Draft(name, _shown(codes, bucket, rows, shows), bucket.astype(np.int32)[f.row_combination], linked)


def _shown(
    columns: Iterable[tuple[Column, NDArray[np.integer]]], bucket: Ints, rows: Ints | None, shows: Mapping[str, Show]
) -> tuple[Published, ...]:
    """The published column of each quasi-identifier; each column comes with the codes of its members."""
    each = np.arange(int(bucket.max()) + 1)
    return tuple(
        publish_groups(c, Members(codes.astype(np.int64), bucket, len(each), each, rows), shows[c.name])
        for c, codes in columns
        if c.name in shows
    )


def kl_of(assigned: Assigned | Seated, data: Draft) -> float:
    """The KL-divergence of a release with these batches and buckets, over the domain of the table's holder.

    All records of a combination are in one bucket.
    """
    table = assigned.table
    if isinstance(assigned, Seated):
        return divergence(mass_between(assigned, data), table)
    hidden, entries, people = entries_of(assigned)
    f, buckets = table.frequencies, int(data.bucket.max()) + 1
    bucket = np.zeros(f.combinations, dtype=np.int64)
    bucket[f.row_combination] = data.bucket
    both = [(bucket[assigned.combination], buckets), (assigned.batch, assigned.batches)]
    number, first = combine(both, len(assigned.batch))
    at = both[0][0][first]
    shown = tuple(
        BoxColumn(c.name, c.kind, c.role, holder_cover(c, table[c.name], table.domain), c.codes[at])
        for c in data.columns
    )
    values = tuple(BoxColumn(c.name, c.kind, c.role, c.cover, c.codes) for c in hidden)
    there = counted(number, assigned.people)
    weight = _mean_of_batches(table, assigned.of_record)
    own = entries.each.astype(np.int64), people.astype(np.int64)
    return divergence(LinkedEstimate(shown, assigned.batch[first], there, values, *own, weight), table)


def mass_between(assigned: Seated, data: Draft) -> Mass:
    """How much mass exact cells have in these batches and buckets, over the domain of the table's holder."""
    table, contents = assigned.table, Contents((), *entries_of(assigned))
    link = assigned.seating.in_group.each
    member, people = data.bucket[assigned.seating.member], assigned.seating.people
    columns, pairs = paired(data.columns, link, member=member, numbers=people)
    del link
    return mass_of(columns, pairs, contents, lambda column: holder_cover(column, table[column.name], table.domain))


def entries_of(assigned: Assigned | Seated) -> tuple[tuple[Published, ...], Runs, NDArray[np.integer]]:
    """The table of batches: its sensitive columns, the batch of each entry, and its people."""
    table, joint = assigned.table, assigned.table.frequencies.joint
    if isinstance(assigned, Seated):
        hidden = [publish_exact(column) for column in table.sensitive]
        number, example = combine([(c.held, len(c.labels)) for c in hidden], table.records)
        member, link, people = assigned.seating.member, assigned.seating.in_group.each, assigned.seating.people
        pairs = pairs_of(number, len(example), link, member=member, numbers=people)
        own = tuple(column.with_codes(narrowed(column.held[example])[pairs.cell]) for column in hidden)
        return own, pairs.links, pairs.numbers
    keys = [(assigned.batch, assigned.batches), (assigned.value, len(joint))]
    entry, first = combine(keys, len(assigned.batch))
    value = assigned.value[first]
    hidden = [publish_exact(replace(column, codes=joint[value, i])) for i, column in enumerate(table.sensitive)]
    return tuple(hidden), Runs.of(assigned.batch[first]), narrowed(counted(entry, assigned.people))


def _mean_of_batches(table: Table, batch: Ints) -> np.ndarray[Any, np.dtype[np.float64]] | None:
    mean = mean_weight(table, batch)
    if mean is None:
        return None
    weight = np.zeros(int(batch.max()) + 1)
    weight[batch] = mean
    return weight


def of_drafts(
    assigned: Assigned | Seated, drafts: Sequence[Draft], principles: tuple[Principle, ...],
    method: Mapping[str, Any], *, kl: float | None = None, pieces: Callable[[], Iterable[Table]] | None = None,
) -> Angel:  # fmt: skip
    """The release of these batches and tables.

    Batches get fresh numbers, and each table a fresh order. The principles must hold, and k in every table. `kl` is
    that of the first table alone, where it is known already. `pieces` are the rows of a table beyond memory.
    """
    table = assigned.table
    assigned = assigned.renumbered(fresh_order(assigned.batches))
    taken = [column.name for column in table.columns] + [n for n in (table.weight_name,) if n]
    number = free_name("batch", taken)
    names = (number, free_name("count", [*taken, number]), table.weight_name)
    with ThreadPoolExecutor(_WORKERS) as pool:  # drawing and sorting an order lets other threads work
        tables = tuple(pool.map(lambda each: _published(assigned, each), drafts))
    weight = None if isinstance(assigned, Seated) else _mean_of_batches(table, assigned.of_record)
    contents = Contents(tables, *entries_of(assigned), weight, names)
    told: Any = {"groups": len(tables[0].sizes), "suppressed": 0}
    manifest = manifest_of(Angel.kind, table, principles, method, **told)
    manifest = replace(manifest, counts={**manifest.counts, "batches": assigned.batches})
    release = Angel(contents, manifest, origin=table.origin)
    _require_kept(release)
    if isinstance(assigned, Assigned) or assigned.of_rows is not None:
        release.remember(partial(keys_of, assigned), assigned.assignment())
    rows = None if pieces is None else pieces()
    costs = bucket_costs(release, table, table.domain, kl=kl if len(tables) == 1 else None, pieces=rows)
    release.manifest = replace(manifest, metrics={"kl": costs.kl, "average": costs.average, "loss": costs.loss})
    release.verify()
    return release


def _published(assigned: Assigned | Seated, drawn: Draft) -> GroupTable:
    """The table of these batches."""
    if not isinstance(assigned, Seated):
        return published(assigned.table, drawn, assigned.of_record)
    if not drawn.linked:
        return GroupTable(
            drawn.name, drawn.columns, None, member=drawn.bucket, numbers=assigned.table.multiplicity
        )  # fmt: skip
    seating = assigned.seating
    own = drawn.bucket[seating.member]
    return GroupTable(drawn.name, drawn.columns, seating.in_group.each, member=own, numbers=seating.people)


def published(table: Table, drawn: Draft, batch: Ints) -> GroupTable:
    """The table with its batches or, without them, the mean weights of its buckets; `batch` is that of each record."""
    if drawn.linked:
        return GroupTable(drawn.name, drawn.columns, batch, member=drawn.bucket)
    cells, _ = combine([(c.held, len(c.labels)) for c in drawn.columns], len(drawn.columns[0].held))
    weight = mean_weight(table, cells.astype(np.int64)[drawn.bucket])
    return GroupTable(drawn.name, drawn.columns, None, weight, member=drawn.bucket)


def _require_kept(release: Angel) -> None:
    """Raise InputError where given batches or buckets do not keep what is promised."""
    broken = release.broken()
    if broken:
        raise InputError(f"the batches do not keep {reached(broken, release.counts())}")
    for table in release.contents.tables:
        if int(table.sizes.min()) < release.k:
            got = f"{int(table.sizes.min())} in the smallest"
            raise InputError(f'the buckets of "{table.name}" do not have k = {release.k} people each', got=got)


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
        shown = _shown([(c, c.codes) for c in table.quasi], bucket, table.multiplicity, own)
        drafts.append(Draft("data" if at == 0 else f"marginal-{at}", shown, bucket.astype(np.int32), linked))
    method = {"name": "given", "show": dict(shows), "joint_k": joint_k}
    return of_drafts(Assigned.of_records(table, batch), drafts, promised(principles, k), method)


class Found(NamedTuple):
    """A way to publish: batches, buckets, and what they cost."""

    kl: float
    batches: str  # how they were found; "own" where batches and buckets are the groups of a plain generalization
    buckets: str
    assigned: Assigned | Seated
    data: Draft
    beside: tuple[Draft, ...] = ()  # marginals, where they were formed together with `data`


def method_of(found: Found, how: How) -> dict[str, Any]:
    """What a manifest says of how a release was found."""
    return {"name": "angelize", "batches": found.batches, "buckets": found.buckets, "show": dict(how.shows)}


def promised(required: tuple[Principle, ...], k: int) -> tuple[Principle, ...]:
    """What a release promises: of its batches, and that k people look alike in each table."""
    return (*required, *((KAnonymity(k),) if k > 1 else ()))


class How(NamedTuple):
    """How buckets are made and shown."""

    k: int
    ways: Sequence[str]  # that are tried
    shows: Mapping[str, Show]
    blind: bool = False  # whether they are made and compared without the sensitive values


def best(table: Table, required: tuple[Principle, ...], ways: Sequence[str], how: How, step: Step) -> Found:
    """Of the batches and buckets that are asked for, and plain generalizations, those with the lowest KL."""
    alike = (KAnonymity(how.k),)
    tables = [(way, draft(table, "data", bucket, how.shows)) for way, bucket in bucketed(table, alike, how, step)]
    lowest: Found | None = None
    for batches, assigned in _batched(table, required, ways, step):
        for buckets, data in tables:
            lowest = lower(lowest, Found(kl_of(assigned, data), batches, buckets, assigned, data))
    own = how._replace(ways=tuple(dict.fromkeys((*how.ways, "partition"))))
    for buckets, group in bucketed(table, (*required, *alike), own, step):
        assigned, data = Assigned.of_combinations(table, group), draft(table, "data", group, how.shows)
        lowest = lower(lowest, Found(kl_of(assigned, data), "own", buckets, assigned, data))
    assert lowest is not None  # a partition is always among them
    return lowest


def lower(one: Found | None, other: Found) -> Found:
    """The one with the lower KL-divergence; of equal ones the first."""
    return other if one is None or other.kl < one.kl else one


def marginal(table: Table, asked: Marginal, name: str, how: How, *, batch: Ints, step: Step) -> Draft:
    """The table of a marginal, from a k-anonymous partition of its own columns; `batch` is that of each record.

    One that shows no batches is compared as if it showed them: what is judged is how well its boxes fit.
    """
    shows = {column: how.shows[column] for column in asked.columns}
    some = table.with_quasi(shows)
    found = [
        draft(some, name, bucket, shows, linked=asked.linked)
        for _, bucket in bucketed(some, (KAnonymity(how.k),), how._replace(shows=shows), step)
    ]
    if len(found) == 1:
        return found[0]
    assigned = Assigned.of_records(some, batch)
    return min(found, key=lambda each: kl_of(assigned, each))


# -- batches ------------------------------------------------------------------------------------------------------


def _batched(
    table: Table, required: tuple[Principle, ...], ways: Sequence[str], step: Step
) -> Iterator[tuple[str, Assigned]]:
    """Batches that keep the promises, in each of these ways; of several, those that cannot are left out."""
    for way in ways:
        if way == "curve":
            batch = batches_along(table, required, fresh_order(table.records), on_step=step).batch
            yield way, Assigned.of_records(table, batch)
        elif way == "halves":
            yield way, _seated(table, required, "halves", step)
        elif way == "partition":
            yield way, Assigned.of_combinations(table, _cut(table, required, step))
        else:
            try:
                yield way, _dealt(table, required)
            except (InfeasibleError, InputError):
                if len(ways) == 1:
                    raise


def seated_at_random(table: Table, required: tuple[Principle, ...], way: Seats, step: Step) -> Assigned | Seated:
    """Batches that tell an attacker who knows the algorithm nothing more than they show.

    A table whose records stand for several people is seated from these counts.
    """
    if table.multiplicity is None:
        return _seated(table, required, way, step)
    distinct, record = table.merged(None)
    seating = seated_counted(distinct, required, way, fresh_order, open_order, on_step=step)
    return Seated(distinct, seating, table, record)


def _seated(table: Table, required: tuple[Principle, ...], way: Seats, step: Step) -> Assigned:
    """Batches as `seated_at_random` forms them, of a table that lists everybody."""
    orders = Orders(fresh_order(table.records), open_order(table.records))
    return Assigned.of_records(table, seated(table, required, way, orders, on_step=step))


def _dealt(table: Table, required: tuple[Principle, ...]) -> Assigned:
    """Batches of people with different values, dealt at random; an error where they do not keep every promise."""
    values, l, unknown = dealt_by(table, required)
    assigned = Assigned.of_records(table, deal(values, l, fresh_order(table.records), unknown=unknown))
    require_dealt([p for p in required if not bool(p.holds(assigned.counts()).all())])
    return assigned


def dealt_by(table: Table, required: tuple[Principle, ...]) -> tuple[Ints, int, int | None]:
    """The value of each record that batches are dealt by, how many a batch needs, and the value of those without."""
    name, l = dealing(required, table.frequencies.whole, table.rows)
    if l < 2:
        raise InputError("no promise says how many different values a batch needs", do="give a FrequencyDiversity(l)")
    column, judged = table[name].sensitive()
    return judged[table[name].codes], l, column.unknown


def require_dealt(broken: Sequence[Principle]) -> None:
    """Raise InfeasibleError where dealt batches break promises."""
    if broken:
        ways = 'use batches="partition" or "curve"'
        raise InfeasibleError(f"the batches that anatomy deals do not keep {', '.join(map(repr, broken))}; {ways}")


# -- buckets ------------------------------------------------------------------------------------------------------


def _cut(table: Table, principles: tuple[Principle, ...], step: Step, *, split: Split = "range") -> Ints:
    """The groups of a strict partition: (combinations,)."""
    boxes = mondrian(table, principles, split=split, on_step=step)
    assert boxes.group is not None  # strict
    return boxes.group


def bucketed(table: Table, principles: tuple[Principle, ...], how: How, step: Step) -> Iterator[tuple[str, Ints]]:
    """The way, and the bucket of each combination, (combinations,); local recoding judges groups one by one."""
    for way in how.ways:
        if way != "recode":
            yield way, _cut(table, principles, step, split="kl" if way == "partition-kl" else "range")
        elif all(p.scope == "group" for p in principles):
            for show in _sought(how.shows):
                yield way, recode_groups(table, principles, show=show, on_step=step).group


def _sought(shows: Mapping[str, Show]) -> tuple[RecodeShow, ...]:
    """The displays that recoding seeks groups for; intervals are neither nodes nor sets, so both are tried."""
    displays = {*shows.values()}
    if displays == {"taxonomy"}:
        return ("taxonomy",)
    return ("set",) if displays <= {"set", "set-exact", "pdf"} else ("taxonomy", "set")
