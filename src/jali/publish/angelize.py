"""angelize: batches from the promises about sensitive values, buckets from k-anonymity, published apart."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from jali.core.arrays import Ints
from jali.core.progress import Step, watched
from jali.encoding.table import Table
from jali.errors import InputError, nearest, told
from jali.measures.holder import bucket_costs
from jali.principles import KAnonymity
from jali.principles.base import Principle, principles_of
from jali.publish.blind import blind_marginal, of_seats
from jali.publish.checks import Marginal, marginals_of, prepared, promises_of, require_table
from jali.publish.coarsen import Settled, Wanted, settle
from jali.publish.drafts import Draft, How, best, kl_of, marginal, of_drafts, published
from jali.releases.display import Show, shows_of
from jali.releases.generalized import Requirement
from jali.releases.linked.angel import Angel
from jali.releases.linked.decide import JOINT_TIME
from jali.releases.linked.private import Assigned, batches_of, keys_of, read_keys
from jali.search.seating import Seats, require_seats, seats_of

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
    on_step: Step | None = None,
) -> Angel:
    """Publish batches that keep the principles, and quasi-identifiers that are only k-anonymous, tied by batch numbers.

    `k` may also be said by a `KAnonymity` or `AlphaAnonymity` among the principles. `marginals` are lists of columns,
    each published as a table of its own beside `data`, which has every quasi-identifier; one without a sensitive column
    has no batches. `batches` come from a "partition", a "curve" or equal "halves", or are dealt as "anatomy" does,
    `buckets` from local recoding ("recode"), a "partition", or one that is split where the KL falls most
    ("partition-kl"); "best" tries them, halves excepted, and takes those with the lowest KL, with the buckets shown as
    `show` says. If the groups of a plain generalization give a lower one still, those are published.

    With `transparent=True` the promises about sensitive values hold also against an attacker who knows how batches and
    buckets were chosen: batches are dealt or halved, as the principles say, and buckets are formed and compared by
    quasi-identifiers alone. With `joint_k=True` no cells of several tables certainly hold somebody and fewer than k
    people: marginals and buckets are coarsened until that holds, those that lose least first, and the release says
    which. `joint_time` is how many seconds that may take.
    """
    require_table("angelize", table)
    table = prepared(table)
    least, required = promises_of(table, principles_of(principles), k)
    for name, value, known in (("batches", batches, BATCHES), ("buckets", buckets, BUCKETS)):
        if value not in known:
            raise InputError(f'no way "{value}" to form {name}', do=nearest(str(value), known))
    _check_joint(joint_k, joint_time)
    seats = _seats(transparent, batches, required)
    how = How(least, BUCKETS[1:] if buckets == "best" else (buckets,), shows_of(table.quasi, show), blind=transparent)
    wanted = marginals_of(table, () if marginals is None else marginals)
    with watched("forming batches and buckets", on_step) as step:
        if seats is None:
            found = best(table, required, TRIED if batches == "best" else (batches,), how, step)
        else:
            found = of_seats(table, required, seats, how, step)
        batch = found.assigned.of_record
        drafts = _marginals(table, wanted, how, batch=batch, at=1, step=step)
        settled = Settled((found.data, *drafts(how.k)), {})
        if joint_k and wanted:
            asked = Wanted(wanted, least, how.shows, drafts)
            settled = settle(table, batch, settled.drafts, asked, seconds=joint_time)
    kl = found.kl if settled.drafts[0] is found.data else kl_of(found.assigned, settled.drafts[0])
    method = {
        "name": "angelize", "batches": found.batches, "buckets": found.buckets, "show": dict(how.shows),
        **_joint_method(joint_k, joint_time, settled), **({"transparent": True} if transparent else {}),
    }  # fmt: skip
    promised = (KAnonymity(least),) if least > 1 else ()
    return of_drafts(found.assigned, settled.drafts, (*required, *promised), method, kl=kl)


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
    table: Table, wanted: Sequence[Marginal], how: How, *, batch: Ints, at: int, step: Step
) -> Callable[[int], list[Draft]]:
    """The tables of marginals with buckets of at least k people, by k; they are numbered from `at` on."""
    make = partial(blind_marginal, table, step=step) if how.blind else partial(marginal, table, batch=batch, step=step)
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
    ways = (method["buckets"],) if method.get("buckets") in BUCKETS[1:] else BUCKETS[1:]
    how = How(release.k, ways, shows_of(table.quasi, dict(method["show"])), blind=bool(method.get("transparent")))
    there = {(tuple(c.name for c in each.columns), each.batch is not None) for each in release.contents.tables}
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
    made.remember(keys_of(Assigned.of_records(table, batch)), batch)
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
