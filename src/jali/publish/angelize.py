"""angelize: batches from the promises about sensitive values, buckets from k-anonymity, published apart."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from jali.core.arrays import Ints, added
from jali.core.progress import Step, watched
from jali.encoding.ends import Grid
from jali.encoding.large import LargeTable
from jali.encoding.table import Table
from jali.errors import InputError, nearest, told
from jali.estimates.boxes import BoxEstimate
from jali.estimates.conditions import BoxColumn
from jali.measures.holder import bucket_costs, column_losses, divergence
from jali.principles import KAnonymity
from jali.principles.base import Principle, principles_of
from jali.publish.angel_large import Beyond, ways_of
from jali.publish.checks import Marginal, marginals_of, prepared, promises_of, require_table
from jali.publish.drafts import (
    Draft,
    Found,
    How,
    best,
    bucketed,
    draft,
    kl_of,
    marginal,
    method_of,
    of_drafts,
    promised,
    published,
    seated_at_random,
)
from jali.releases.column import holder_cover
from jali.releases.display import Show, naming_values, shown_again, shows_of
from jali.releases.generalized import Requirement
from jali.releases.linked.angel import Angel
from jali.releases.linked.decide import JOINT_TIME, decide
from jali.releases.linked.linked import Assignment
from jali.releases.linked.private import Assigned, batches_of, keys_of, read_keys
from jali.releases.linked.tables import GroupTable
from jali.search.halves import Seats, require_seats, seats_of
from jali.search.nested import nested_groups

Batches = Literal["best", "partition", "curve", "anatomy", "halves"]
Buckets = Literal["best", "recode", "partition", "partition-kl"]
BATCHES: tuple[Batches, ...] = ("best", "partition", "curve", "anatomy", "halves")
TRIED: tuple[Batches, ...] = ("partition", "curve", "anatomy")  # by "best"
BUCKETS: tuple[Buckets, ...] = ("best", "recode", "partition", "partition-kl")


def angelize(
    table: Table,
    principles: Requirement,
    *,
    k: int | None = None,
    joint_k: bool = False,
    joint_time: float = JOINT_TIME,
    marginals: Iterable[Sequence[str]] | None = None,
    batches: Batches = "best",
    buckets: Buckets = "best",
    transparent: bool = False,
    show: Show | Mapping[str, Show] | None = None,
    grid: Grid | None = None,
    on_step: Step | None = None,
) -> Angel:
    """Publish batches that keep the principles, and quasi-identifiers that are only k-anonymous, tied by batch numbers.

    `k` may also be said by a `KAnonymity` or `AlphaAnonymity` among the principles. `marginals` are lists of columns,
    each published as a table of its own beside `data`, which has every quasi-identifier; one without a sensitive column
    has no batches. `batches` come from a "partition", a "curve" or equal "halves", or are dealt as "anatomy" does,
    `buckets` from local recoding ("recode"), a "partition", or one that is split where the KL falls most
    ("partition-kl"); "best" tries them, halves excepted, and takes those with the lowest KL, with the buckets shown as
    `show` and `grid` say, which are those of `partition`. If the groups of a plain generalization give a lower one
    still, those are published.

    With `transparent=True` the promises about sensitive values hold also against an attacker who knows how batches and
    buckets were chosen: batches are dealt or halved, as the principles say, and buckets are formed and compared by
    quasi-identifiers alone. With `joint_k=True` no cells of several tables certainly hold somebody and fewer than k
    people: marginals and buckets are coarsened until that holds, those that lose least first, and the release says
    which. `joint_time` is how many seconds that may take.
    """
    require_table("angelize", table, large=True)
    table = prepared(table)
    whole = table.at_roots() if isinstance(table, LargeTable) else table
    least, required = promises_of(whole, principles_of(principles), k)
    for name, value, known in (("batches", batches, BATCHES), ("buckets", buckets, BUCKETS)):
        if value not in known:
            raise InputError(f'no way "{value}" to form {name}', do=nearest(str(value), known))
    _check_joint(joint_k, joint_time)
    seats = _seats(transparent, batches, required)
    tried = None
    if isinstance(table, LargeTable):
        tried = ways_of(table, (batches, buckets), required, seats, joint_k=joint_k)
    elif seats is None or table.weight is not None or joint_k:
        table = table.one_by_one()
    shows = shows_of(table.quasi, show)
    table, named = naming_values(table, shows, grid, least)
    how = How(least, BUCKETS[1:] if buckets == "best" else (buckets,), shows, blind=transparent)
    wanted = marginals_of(table, () if marginals is None else marginals)
    told = {**({"transparent": True} if transparent else {}), **named}
    with watched("forming batches and buckets", on_step) as step:
        if isinstance(table, LargeTable) and tried is not None:
            return Beyond(table, required, tried, how, wanted=wanted, step=step).release(told)
        if seats is None:
            found = best(table, required, TRIED if batches == "best" else (batches,), how, step)
        else:
            found = of_seats(table, required, seats, how, step)
        batch = None if how.blind else found.assigned.of_record
        drafts = _marginals(found.assigned.table, wanted, how, batch=batch, at=1, step=step)
        settled = Settled((found.data, *drafts(how.k)), {})
        if joint_k and wanted:
            asked = Wanted(wanted, least, how.shows, drafts)
            settled = settle(table, found.assigned.of_record, settled.drafts, asked, seconds=joint_time)
    kl = found.kl if settled.drafts[0] is found.data else kl_of(found.assigned, settled.drafts[0])
    method = method_of(found, how) | _joint_method(joint_k, joint_time, settled) | told
    return of_drafts(found.assigned, settled.drafts, promised(required, least), method, kl=kl)


def _seats(transparent: object, batches: Batches, required: tuple[Principle, ...]) -> Seats | None:
    """How batches are made that tell an attacker who knows the algorithm nothing more; None where that is not asked.

    A rule of the principles alone: which way is better for a table is never tried.
    """
    if not isinstance(transparent, bool):
        raise InputError("transparent is true or false", got=repr(told(transparent)))
    if batches == "halves":
        require_seats("halves", required)
    if not transparent:
        return None
    if batches in {"partition", "curve"}:
        what = f'batches="{batches}" follow from whose values broke a promise, which transparent=True must not tell'
        raise InputError(what, do='leave batches out, or pass "anatomy" or "halves"')
    return seats_of(required) if batches == "best" else "anatomy" if batches == "anatomy" else "halves"


def _check_joint(joint_k: object, joint_time: object) -> None:
    if not isinstance(joint_k, bool):
        raise InputError("joint_k is true or false", got=repr(joint_k))
    if isinstance(joint_time, bool) or not isinstance(joint_time, (int, float)) or not 0 < joint_time < math.inf:
        raise InputError("joint_time is a number of seconds above 0", got=repr(joint_time))


def _joint_method(joint_k: bool, joint_time: float, settled: Settled) -> dict[str, Any]:
    """What the manifest says of all tables together."""
    return {"joint_k": joint_k} | ({"joint_time": joint_time, "coarsened": settled.coarsened} if joint_k else {})


def _marginals(
    table: Table, wanted: Sequence[Marginal], how: How, *, batch: Ints | None, at: int, step: Step
) -> Callable[[int], list[Draft]]:
    """The tables of marginals with buckets of at least k people, by k; they are numbered from `at` on.

    `batch` is that of each record, which is not asked for where buckets are formed without the sensitive values.
    """
    make = partial(blind_marginal, table, step=step)
    if batch is not None and not how.blind:
        make = partial(marginal, table, batch=batch, step=step)
    return lambda k: [make(each, f"marginal-{n}", how._replace(k=k)) for n, each in enumerate(wanted, at)]


def extended(
    release: Angel,
    table: Table,
    marginals: Iterable[Sequence[str]],
    private: str | Path | None,
    *,
    joint_k: bool | None,
    joint_time: float,
    on_step: Step | None,
) -> Angel:
    """The release with more marginals over the same batches; see `Angel.extend`."""
    if isinstance(table, LargeTable):
        raise table.refused("extend", "publish all marginals at once, with angelize")
    if not isinstance(table, Table):
        raise InputError("extend needs the original as a jali table", do="use jali.read or jali.table")
    known = release._keys if private is None else partial(read_keys, private)
    if known is None:
        do = 'pass private="keys.parquet", the file that was saved with it'
        raise InputError("a release that was read from its folder does not know who is in which batch", do=do)
    keys = known()
    method = release.manifest.method
    joint = bool(method.get("joint_k")) if joint_k is None else joint_k
    _check_joint(joint, joint_time)
    table = _ordered(prepared(table).one_by_one(), release)
    batch = _same_batches(keys, table, release, given=private is not None)
    ways = (method["buckets"],) if method.get("buckets") in BUCKETS[1:] else BUCKETS[1:]
    again = shown_again(method)
    shows = shows_of(table.quasi, again["show"])
    table, _ = naming_values(table, shows, again.get("grid"), release.k)
    how = How(release.k, ways, shows, blind=bool(method.get("transparent")))
    there = {(tuple(c.name for c in each.columns), each.linked) for each in release.contents.tables}
    wanted = [each for each in marginals_of(table, marginals) if tuple(each) not in there]
    if not wanted:
        raise InputError("no marginal to add: none was named that the release lacks", do="name other columns")
    at = len(release.contents.tables)
    with watched("forming buckets", on_step) as step:
        drafts = _marginals(table, wanted, how, batch=batch, at=at, step=step)
        settled = Settled(tuple(drafts(how.k)), {})
        if joint:
            asked = Wanted(wanted, how.k, how.shows, drafts)
            there_before = release.contents.tables
            settled = settle(table, batch, settled.drafts, asked, seconds=joint_time, fixed=there_before)
    tables = (*release.contents.tables, *(published(table, each, batch) for each in settled.drafts))
    coarsened = {**method.get("coarsened", {}), **settled.coarsened}
    said = {**method, **_joint_method(joint, joint_time, settled._replace(coarsened=coarsened))}
    made = Angel(release.contents._replace(tables=tables), replace(release.manifest, method=said), origin=table.origin)
    made.remember(lambda: keys_of(Assigned.of_records(table, batch)), Assignment(table.rows, lambda: batch))
    costs = bucket_costs(made, table, table.domain)  # more tables say more
    metrics = {"kl": costs.kl, "average": costs.average, "loss": costs.loss}
    made.manifest = replace(made.manifest, metrics=metrics)
    made.verify()
    return made


def _ordered(table: Table, release: Angel) -> Table:
    """The table with its columns in the order of the release's; an InputError where it has others."""
    for role, named in (("quasi", "quasi-identifiers"), ("sensitive", "sensitive columns")):
        if {c.name for c in table.columns if c.role == role} != {c.name for c in release.of_role(role)}:
            do = "read it with the same columns, in the same roles"
            raise InputError(f"the table has other {named} than the release", do=do)
    return replace(table, columns=tuple(table[column.name] for column in release.columns))


def _same_batches(keys: pa.Table, table: Table, release: Angel, *, given: bool) -> Ints:
    """The batch of each record; `given` keys come from a private file, others from the release that was just made."""
    try:
        return batches_of(keys, table, release.contents)
    except InputError:
        if given:
            raise
        raise InputError("this is not the table that the release was made from", do="give the original") from None


# -- tables that follow from quasi-identifiers and random bits alone, whatever the values in batches -------------------
#
# Buckets are formed and compared without sensitive columns, so that nothing about them can be read off which buckets
# were taken. Decision 44 has the proof.


def of_seats(table: Table, required: tuple[Principle, ...], seats: Seats, how: How, step: Step) -> Found:
    """Batches that are seated in one way, and the buckets that show the quasi-identifiers best."""
    assigned = seated_at_random(table, required, seats, step)
    buckets, data = _sharpest(assigned.table, "data", how, linked=True, step=step)
    return Found(kl_of(assigned, data), seats, buckets, assigned, data)


def blind_marginal(table: Table, asked: Marginal, name: str, how: How, *, step: Step) -> Draft:
    """The table of a marginal, from the k-anonymous buckets that show its own columns best."""
    shows = {column: how.shows[column] for column in asked.columns}
    return _sharpest(table.with_quasi(shows), name, how._replace(shows=shows), linked=asked.linked, step=step)[1]


def _sharpest(table: Table, name: str, how: How, *, linked: bool, step: Step) -> tuple[str, Draft]:
    """Of the buckets that are asked for, those with the lowest KL of the quasi-identifiers alone; and their way."""
    blind = table.without_sensitive()
    tables = [
        (way, draft(blind, name, bucket, how.shows, linked=linked))
        for way, bucket in bucketed(blind, (KAnonymity(how.k),), how, step)
    ]
    return tables[0] if len(tables) == 1 else min(tables, key=lambda each: _kl_of_boxes(blind, each[1]))


def _kl_of_boxes(blind: Table, data: Draft) -> float:
    """The KL-divergence of the quasi-identifiers alone, over the domain of the table's holder."""
    shown = tuple(
        BoxColumn(c.name, c.kind, c.role, holder_cover(c, blind[c.name], blind.domain), c.codes) for c in data.columns
    )
    return divergence(BoxEstimate(shown, added(data.bucket, blind.weight)), blind)


# -- coarser tables, so that all of them together keep k: those that lose least first ----------------------------------
#
# Two kinds of tables are tried if those that were asked for break k. The marginals get buckets of more people, and
# `data` stays as it is. Or `data` and all marginals are cut so that every bucket of `data` lies within one bucket of
# each marginal: then the tables together show nothing but unions of buckets, whatever the batches. The losses that
# decide which comes first, and the verdicts, look at quasi-identifiers and at batches, never at sensitive values.

LARGER = (2, 8, 32)
"""By how much the people of a marginal's buckets are raised above k where `data` stays as it is."""
NESTED = (1, 4, 16, 64, 256, 1024)
"""By how much the people of the marginals' overlaps are raised above k where all tables are nested."""
SHARE = 4
"""A check of tables that are not nested may take this part of the time that is left."""

Losses = Mapping[str, Mapping[str, float]]  # of each column of each table, from 0 to 1


class Settled(NamedTuple):
    """Tables that keep k together, and the columns that had to be coarsened, table by table."""

    drafts: tuple[Draft, ...]
    coarsened: dict[str, list[str]]


class _Candidate(NamedTuple):
    loss: float
    nested: bool
    drafts: tuple[Draft, ...]
    losses: Losses


class Wanted(NamedTuple):
    """What was asked for: marginals over some columns, and how everything is shown."""

    marginals: Sequence[Marginal]
    k: int
    shows: Mapping[str, Show]
    larger: Callable[[int], Sequence[Draft]]  # the same marginals with buckets of this many people


def settle(
    table: Table, batch: Ints, asked: Sequence[Draft], wanted: Wanted, *, seconds: float,
    fixed: Sequence[GroupTable] = (),
) -> Settled:  # fmt: skip
    """The tables that were asked for if they keep k together, else those that lose least of the coarser ones that do.

    `asked` is `data` and its marginals; or new marginals alone, which join tables that are `fixed`.
    """
    clock = _Clock(seconds)
    size = np.bincount(batch)

    def keeps(drafts: Sequence[Draft], seconds: float) -> bool:
        with clock:
            tables = [*fixed, *(_table(each, batch) for each in drafts)]
            return decide(tables, size, wanted.k, seconds=seconds).kept is True

    if keeps(asked, clock.left / SHARE):
        return Settled(tuple(asked), {})
    before = _losses(table, asked)
    others = [*_larger(table, asked, wanted, alone=bool(fixed)), *([] if fixed else _nested(table, asked, wanted))]
    for each in sorted(others, key=lambda candidate: candidate.loss):
        time_for_it = max(clock.left, seconds / SHARE) if each.nested else clock.left / SHARE  # nested ones go fast
        if time_for_it > 0 and keeps(each.drafts, time_for_it):
            return Settled(each.drafts, _coarsened(before, each.losses))
    raise InputError(
        f"no coarser marginals were found that together keep k = {wanted.k}",
        got=None if clock.left > 0 else f"{seconds:g} seconds",
        do="publish fewer marginals, raise joint_time, or leave joint_k out if k need not hold for all tables together",
    )


class _Clock:
    """Counts the seconds that checks take; making the tables is not counted."""

    def __init__(self, seconds: float) -> None:
        self.left = seconds

    def __enter__(self) -> None:
        self._begun = time.monotonic()

    def __exit__(self, *_: object) -> None:
        self.left = max(0.0, self.left - (time.monotonic() - self._begun))


def _table(drawn: Draft, batch: Ints) -> GroupTable:
    """The table as it would be published, in the order of the original."""
    return GroupTable(drawn.name, drawn.columns, batch if drawn.linked else None, member=drawn.bucket)


def _larger(table: Table, asked: Sequence[Draft], wanted: Wanted, *, alone: bool) -> Iterator[_Candidate]:
    """Marginals with buckets of more people; `data` stays, and is left out where marginals are added `alone`."""
    for factor in LARGER:
        if factor * wanted.k <= table.rows // 2:
            drafts = (*([] if alone else asked[:1]), *wanted.larger(factor * wanted.k))
            yield _candidate(table, drafts, nested=False)


def _nested(table: Table, asked: Sequence[Draft], wanted: Wanted) -> Iterator[_Candidate]:
    """Tables whose buckets lie within each other, with more and more people in the overlaps of the marginals."""
    trees = np.array([wanted.shows[column.name] == "taxonomy" for column in table.quasi])
    columns = [marginal.columns for marginal in wanted.marginals]
    sizes = [factor * wanted.k for factor in NESTED if factor == 1 or factor * wanted.k <= table.rows // 2]
    for least in [*sizes, table.rows]:  # with everybody in one overlap the marginals show * alone
        data, groups = nested_groups(table, columns, k=wanted.k, least=least, trees=trees)
        drafts = [draft(table, asked[0].name, data, wanted.shows)]
        for group, one, before in zip(groups, wanted.marginals, asked[1:], strict=True):
            shows = {name: wanted.shows[name] for name in one.columns}
            some = table.with_quasi(shows)
            bucket = np.zeros(some.frequencies.combinations, dtype=np.int64)
            bucket[some.frequencies.row_combination] = group[table.frequencies.row_combination]
            drafts.append(draft(some, before.name, bucket, shows, linked=one.linked))
        yield _candidate(table, drafts, nested=True)


def _candidate(table: Table, drafts: Sequence[Draft], *, nested: bool) -> _Candidate:
    losses = _losses(table, drafts)
    return _Candidate(
        float(np.mean([np.mean([*own.values()]) for own in losses.values()])), nested, tuple(drafts), losses
    )


def _losses(table: Table, drafts: Sequence[Draft]) -> Losses:
    return {each.name: column_losses(table, each.columns, each.bucket) for each in drafts}


def _coarsened(before: Losses, after: Losses) -> dict[str, list[str]]:
    """The columns that show less than was asked for, of each table that has some."""
    found = {
        table: [name for name, loss in own.items() if loss > before[table][name] + 1e-12]
        for table, own in after.items()
    }  # fmt: skip
    return {table: names for table, names in found.items() if names}
