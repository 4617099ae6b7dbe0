"""Which batches and buckets an ANGEL release has: several ways to form both, compared by the KL of what is shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from jali.encoding.table import Table
from jali.errors import InfeasibleError, InputError
from jali.principles import KAnonymity
from jali.principles.base import Principle
from jali.principles.counts import Ints
from jali.progress import Step
from jali.releases.angel_asked import Marginal
from jali.releases.angel_assigned import Assigned
from jali.releases.angel_make import Draft, draft, kl_of
from jali.releases.base import fresh_order
from jali.releases.display import Show
from jali.search.bucketize import deal, dealing
from jali.search.curve import batches_along
from jali.search.mondrian import Split, mondrian
from jali.search.recode import recode_groups
from jali.search.recode_plan import RecodeShow


class Found(NamedTuple):
    """A way to publish: batches, buckets, and what they cost."""

    kl: float
    batches: str  # how they were found; "own" where batches and buckets are the groups of a plain generalization
    buckets: str
    assigned: Assigned
    data: Draft


class How(NamedTuple):
    """How buckets are made and shown."""

    k: int
    ways: Sequence[str]  # that are tried
    shows: Mapping[str, Show]


def best(table: Table, required: tuple[Principle, ...], ways: Sequence[str], how: How, step: Step) -> Found:
    """Of the batches and buckets that are asked for, and plain generalizations, those with the lowest KL."""
    alike = (KAnonymity(how.k),)
    tables = [(way, draft(table, "data", bucket, how.shows)) for way, bucket in _bucketed(table, alike, how, step)]
    lowest: Found | None = None
    for batches, assigned in _batched(table, required, ways, step):
        for buckets, data in tables:
            lowest = _lower(lowest, Found(kl_of(assigned, data), batches, buckets, assigned, data))
    own = how._replace(ways=tuple(dict.fromkeys((*how.ways, "partition"))))
    for buckets, group in _bucketed(table, (*required, *alike), own, step):
        assigned, data = Assigned.of_combinations(table, group), draft(table, "data", group, how.shows)
        lowest = _lower(lowest, Found(kl_of(assigned, data), "own", buckets, assigned, data))
    assert lowest is not None  # a partition is always among them
    return lowest


def _lower(one: Found | None, other: Found) -> Found:
    return other if one is None or other.kl < one.kl else one


def marginal(table: Table, asked: Marginal, name: str, how: How, *, batch: Ints, step: Step) -> Draft:
    """The table of a marginal, from a k-anonymous partition of its own columns; `batch` is that of each record.

    One that shows no batches is compared as if it showed them: what is judged is how well its boxes fit.
    """
    shows = {column: how.shows[column] for column in asked.columns}
    some = table.with_quasi(shows)
    found = [
        draft(some, name, bucket, shows, linked=asked.linked)
        for _, bucket in _bucketed(some, (KAnonymity(how.k),), how._replace(shows=shows), step)
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
        elif way == "partition":
            yield way, Assigned.of_combinations(table, _cut(table, required, step))
        else:
            try:
                yield way, _dealt(table, required)
            except (InfeasibleError, InputError):
                if len(ways) == 1:
                    raise


def _dealt(table: Table, required: tuple[Principle, ...]) -> Assigned:
    """Batches of people with different values, dealt at random; an error where they do not keep every promise."""
    whole = table.frequencies.counts(np.zeros(table.frequencies.combinations, dtype=np.int64), 1)
    name, l = dealing(required, whole, table.records)
    if l < 2:
        raise InputError("no promise says how many different values a batch needs", do="give a FrequencyDiversity(l)")
    column = table[name]
    assigned = Assigned.of_records(table, deal(column.sensitive()[1][column.codes], l, fresh_order(table.records)))
    broken = [repr(p) for p in required if not bool(p.holds(assigned.counts()).all())]
    if broken:
        ways = 'use batches="partition" or "curve"'
        raise InfeasibleError(f"the batches that anatomy deals do not keep {', '.join(broken)}; {ways}")
    return assigned


# -- buckets ------------------------------------------------------------------------------------------------------


def _cut(table: Table, principles: tuple[Principle, ...], step: Step, *, split: Split = "range") -> Ints:
    """The groups of a strict partition: (combinations,)."""
    boxes = mondrian(table, principles, split=split, on_step=step)
    assert boxes.group is not None  # strict
    return boxes.group


def _bucketed(table: Table, principles: tuple[Principle, ...], how: How, step: Step) -> Iterator[tuple[str, Ints]]:
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
    return ("set",) if displays <= {"set", "pdf"} else ("taxonomy", "set")
