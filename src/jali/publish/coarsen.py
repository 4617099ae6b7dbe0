"""Coarser tables of an ANGEL release, so that all of them together keep k: those that lose least first.

Two kinds of tables are tried if those that were asked for break k. The marginals get buckets of more people, and `data`
stays as it is. Or `data` and all marginals are cut so that every bucket of `data` lies within one bucket of each
marginal: then the tables together show nothing but unions of buckets, whatever the batches. The losses that decide
which comes first, and the verdicts, look at quasi-identifiers and at batches, never at sensitive values.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from jali.core.arrays import Ints
from jali.encoding.table import Table
from jali.errors import InputError
from jali.measures.holder import column_losses
from jali.publish.checks import Marginal
from jali.publish.drafts import Draft, draft
from jali.releases.display import Show
from jali.releases.linked.decide import decide
from jali.releases.linked.tables import GroupTable
from jali.search.nested import nested_groups

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
    columns = tuple(column.with_codes(column.codes[drawn.bucket]) for column in drawn.columns)
    return GroupTable(drawn.name, columns, batch if drawn.linked else None)


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
        for group, marginal, before in zip(groups, wanted.marginals, asked[1:], strict=True):
            shows = {name: wanted.shows[name] for name in marginal.columns}
            some = table.with_quasi(shows)
            bucket = np.zeros(some.frequencies.combinations, dtype=np.int64)
            bucket[some.frequencies.row_combination] = group[table.frequencies.row_combination]
            drafts.append(draft(some, before.name, bucket, shows, linked=marginal.linked))
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
