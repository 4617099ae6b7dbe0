"""angelize: batches from the promises about sensitive values, buckets from k-anonymity, published apart."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pyarrow as pa

from jali.encoding.table import Table
from jali.errors import InputError, nearest
from jali.principles import KAnonymity
from jali.principles.base import Principle, principles_of
from jali.principles.counts import Ints
from jali.progress import Step, watched
from jali.releases.angel import Angel
from jali.releases.angel_asked import Marginal, marginals_of, prepared, promises_of
from jali.releases.angel_assigned import Assigned
from jali.releases.angel_coarsen import Settled, Wanted, settle
from jali.releases.angel_decide import JOINT_TIME
from jali.releases.angel_keys import batches_of, keys_of, read_keys
from jali.releases.angel_make import Draft, draft, kl_of, of_drafts, published
from jali.releases.asked import require_table
from jali.releases.base import fresh_order
from jali.releases.display import Show, shows_of
from jali.releases.generalized import Requirement
from jali.search.curve import batches_along
from jali.search.mondrian import mondrian
from jali.search.recode import recode_groups

Batches = Literal["best", "partition", "curve"]
Buckets = Literal["recode", "partition"]
BATCHES: tuple[Batches, ...] = ("best", "partition", "curve")
BUCKETS: tuple[Buckets, ...] = ("recode", "partition")


class _Found(NamedTuple):
    """A way to publish: batches, buckets, and what they cost."""

    kl: float
    batches: str  # how they were found; "own" where batches and buckets are the groups of a plain generalization
    assigned: Assigned
    data: Draft


class _How(NamedTuple):
    """How buckets are made and shown."""

    k: int
    buckets: Buckets
    shows: Mapping[str, Show]


def angelize(
    table: Table,
    principles: Requirement,
    *,
    k: int | None = None,
    joint_k: bool = False,
    joint_time: float = JOINT_TIME,
    marginals: Iterable[Sequence[str]] | None = None,
    batches: Batches = "best",
    buckets: Buckets = "recode",
    show: Show | Mapping[str, Show] | None = None,
    on_step: Step | None = None,
) -> Angel:
    """Publish batches that keep the principles, and quasi-identifiers that are only k-anonymous, tied by batch numbers.

    `k` may also be said by a `KAnonymity` or `AlphaAnonymity` among the principles. `marginals` are lists of columns,
    each published as a table of its own beside `data`, which has every quasi-identifier; one without a sensitive column
    has no batches. `batches` come from a "partition", a "curve" or whichever of both gives the lower KL; if the groups
    of a plain generalization give a lower one still, those are published. `buckets` come from local recoding ("recode")
    or a "partition", and are shown as `show` says. With `joint_k=True` no cells of several tables certainly hold
    somebody and fewer than k people: marginals and buckets are coarsened until that holds, those that lose least first,
    and the release says which. `joint_time` is how many seconds that may take.
    """
    require_table("angelize", table)
    table = prepared(table)
    least, required = promises_of(table, principles_of(principles), k)
    for name, value, known in (("batches", batches, BATCHES), ("buckets", buckets, BUCKETS)):
        if value not in known:
            raise InputError(f'no way "{value}" to form {name}', do=nearest(str(value), known))
    _check_joint(joint_k, joint_time)
    how = _How(least, buckets, shows_of(table.quasi, show))
    wanted = marginals_of(table, () if marginals is None else marginals)
    with watched("forming batches and buckets", on_step) as step:
        found = _best(table, required, [way for way in BATCHES[1:] if batches in (way, "best")], how, step)
        settled = Settled((found.data, *_marginals(table, wanted, 1, how, step)), {})
        if joint_k and wanted:
            asked = Wanted(wanted, least, how.shows, lambda k: _marginals(table, wanted, 1, how._replace(k=k), step))
            settled = settle(table, found.assigned.of_record, settled.drafts, asked, seconds=joint_time)
    kl = found.kl if settled.drafts[0] is found.data else kl_of(found.assigned, settled.drafts[0])
    method = {
        "name": "angelize", "batches": found.batches, "buckets": buckets, "show": dict(how.shows),
        **_joint_method(joint_k, joint_time, settled),
    }  # fmt: skip
    promised = (KAnonymity(least),) if least > 1 else ()
    return of_drafts(found.assigned, settled.drafts, (*required, *promised), method, kl=kl)


def _check_joint(joint_k: object, joint_time: object) -> None:
    if not isinstance(joint_k, bool):
        raise InputError("joint_k is true or false", got=repr(joint_k))
    if isinstance(joint_time, bool) or not isinstance(joint_time, (int, float)) or not 0 < joint_time < math.inf:
        raise InputError("joint_time is a number of seconds above 0", got=repr(joint_time))


def _joint_method(joint_k: bool, joint_time: float, settled: Settled) -> dict[str, Any]:
    """What the manifest says of all tables together."""
    return {"joint_k": joint_k} | ({"joint_time": joint_time, "coarsened": settled.coarsened} if joint_k else {})


def _best(table: Table, required: tuple[Principle, ...], ways: Sequence[str], how: _How, step: Step) -> _Found:
    """Of the batches that are asked for, and plain generalizations, whichever gives the lowest KL."""
    data = draft(table, "data", _bucketed(table, (KAnonymity(how.k),), how.buckets, how.shows, step), how.shows)
    found = []
    for way in ways:
        if way == "curve":
            batch = batches_along(table, required, fresh_order(table.records), on_step=step).batch
            assigned = Assigned.of_records(table, batch)
        else:
            assigned = Assigned.of_combinations(table, _cut(table, required, step))
        found.append(_Found(kl_of(assigned, data), way, assigned, data))
    for own in dict.fromkeys((how.buckets, "partition")):
        group = _bucketed(table, (*required, KAnonymity(how.k)), own, how.shows, step)
        assigned, plain = Assigned.of_combinations(table, group), draft(table, "data", group, how.shows)
        found.append(_Found(kl_of(assigned, plain), "own", assigned, plain))
    return min(found, key=lambda each: each.kl)


def _cut(table: Table, principles: tuple[Principle, ...], step: Step) -> Ints:
    """The groups of a strict partition: (combinations,)."""
    boxes = mondrian(table, principles, on_step=step)
    assert boxes.group is not None  # strict
    return boxes.group


def _bucketed(table: Table, principles: tuple[Principle, ...], way: str, shows: Mapping[str, Show], step: Step) -> Ints:
    """The bucket of each combination: (combinations,)."""
    if way == "partition":
        return _cut(table, principles, step)
    as_sets = {*shows.values()} == {"set"}
    return recode_groups(table, principles, show="set" if as_sets else "taxonomy", on_step=step).group


def _marginals(table: Table, wanted: Sequence[Marginal], at: int, how: _How, step: Step) -> list[Draft]:
    """The tables of marginals, numbered from `at` on."""
    return [_marginal(table, each, f"marginal-{n}", how, step) for n, each in enumerate(wanted, at)]


def _marginal(table: Table, marginal: Marginal, name: str, how: _How, step: Step) -> Draft:
    """The table of a marginal, from a k-anonymous partition of its own columns."""
    shows = {column: how.shows[column] for column in marginal.columns}
    some = table.with_quasi(shows)
    bucket = _bucketed(some, (KAnonymity(how.k),), how.buckets, shows, step)
    return draft(some, name, bucket, shows, linked=marginal.linked)


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
    if not isinstance(table, Table):
        raise InputError("extend needs the original as a jali table", do="use jali.read or jali.table")
    keys = release._keys if private is None else read_keys(private)
    if keys is None:
        do = 'pass private="keys.parquet", the file that was saved with it'
        raise InputError("a release that was read from its folder does not know who is in which batch", do=do)
    method = release.manifest.method
    joint = bool(method.get("joint_k")) if joint_k is None else joint_k
    _check_joint(joint, joint_time)
    table = _ordered(prepared(table), release)
    batch = _same_batches(keys, table, release, given=private is not None)
    how = _How(release.k, method.get("buckets", BUCKETS[0]), shows_of(table.quasi, dict(method["show"])))
    there = {(tuple(c.name for c in each.columns), each.batch is not None) for each in release.contents.tables}
    wanted = [each for each in marginals_of(table, marginals) if tuple(each) not in there]
    if not wanted:
        raise InputError("no marginal to add: none was named that the release lacks", do="name other columns")
    at = len(release.contents.tables)
    with watched("forming buckets", on_step) as step:
        settled = Settled(tuple(_marginals(table, wanted, at, how, step)), {})
        if joint:
            asked = Wanted(wanted, how.k, how.shows, lambda k: _marginals(table, wanted, at, how._replace(k=k), step))
            there_before = release.contents.tables
            settled = settle(table, batch, settled.drafts, asked, seconds=joint_time, fixed=there_before)
    tables = (*release.contents.tables, *(published(table, each, batch) for each in settled.drafts))
    coarsened = {**method.get("coarsened", {}), **settled.coarsened}
    told = {**method, **_joint_method(joint, joint_time, settled._replace(coarsened=coarsened))}
    made = Angel(release.contents._replace(tables=tables), replace(release.manifest, method=told), origin=table.origin)
    made.remember(keys_of(Assigned.of_records(table, batch)), batch)
    made.verify()
    return made


def _ordered(table: Table, release: Angel) -> Table:
    """The table with its columns in the order of the release's; an InputError where it has others."""
    for role, told in (("quasi", "quasi-identifiers"), ("sensitive", "sensitive columns")):
        if {c.name for c in table.columns if c.role == role} != {c.name for c in release.of_role(role)}:
            do = "read it with the same columns, in the same roles"
            raise InputError(f"the table has other {told} than the release", do=do)
    return replace(table, columns=tuple(table[column.name] for column in release.columns))


def _same_batches(keys: pa.Table, table: Table, release: Angel, *, given: bool) -> Ints:
    """The batch of each record; `given` keys come from a private file, others from the release that was just made."""
    try:
        return batches_of(keys, table, release.contents)
    except InputError:
        if given:
            raise
        raise InputError("this is not the table that the release was made from", do="give the original") from None
