"""The worlds that agree with all tables of an ANGEL release, as unknown counts whose sums are published.

A world says of everybody which cell of every table is theirs. Whoever is in some cells is in one batch in all tables
that show batches, and has values that all of the cells cover. An unknown is how many people are in one such choice of
cells (and batch); known are the people of each cell of each table, batch by batch where several tables show batches.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from jali.encoding.frequencies import combine
from jali.estimates.holding import runs
from jali.estimates.overlap import in_all
from jali.principles.counts import Bools, Ints
from jali.programs import Sums
from jali.releases.angel_shared import LARGEST, in_common, meeting
from jali.releases.angel_tables import GroupTable

MOST = 1_000_000
"""Of so many unknowns at most a program is made."""


class Entries(NamedTuple):
    """The cells of a table, batch by batch where batches count; sorted by batch."""

    batch: Ints  # (entries,)
    cell: Ints  # (entries,)
    people: Ints  # (entries,)

    @classmethod
    def of(cls, table: GroupTable, *, batches: bool) -> Entries:
        if not batches or table.batch is None:
            cells = np.arange(len(table.sizes))
            return cls(np.zeros_like(cells), cells, table.sizes)
        cell, batch, people = table.shares
        order = np.lexsort((cell, batch))
        return cls(batch[order], cell[order], people[order])


class Worlds(NamedTuple):
    """The unknowns of all worlds: each is the people of one cell of every table."""

    cells: Ints  # (unknowns, tables)
    entries: Ints  # (unknowns, tables) the cells, batch by batch where batches count
    people: list[Ints]  # of each table's entries
    sums: Sums
    only: Ints | None  # (unknowns,) the one world that there is, where it is known without any program

    def groups(self, subset: Sequence[int], width: Sequence[int]) -> tuple[Ints, Ints]:
        """The combination of cells of some tables that each unknown is in, and an unknown of each combination."""
        number, first = combine([(self.cells[:, i], width[i]) for i in subset], len(self.cells))
        return number.astype(np.int64), first


def linked(tables: Sequence[GroupTable]) -> bool:
    """Whether batches tie some of the tables: where one alone shows them they tell nothing."""
    return sum(table.batch is not None for table in tables) > 1


def worlds_of(tables: Sequence[GroupTable], *, batches: bool, deadline: float) -> Worlds | None:
    """The worlds of some tables, of which the first has the columns of all others; None where they are too many.

    `batches` says whether batches count; see `linked`. `deadline` is a time of `time.monotonic`.
    """
    if any(_too_wide(one, two) for one, two in combinations(tables, 2)):
        return None
    entries = [Entries.of(table, batches=batches) for table in tables]
    unknowns = np.arange(len(entries[0].cell))[:, None]  # (unknowns, tables so far): entries
    for at in range(1, len(tables)):
        found = _partners(tables, entries, at, deadline)
        if found is None:
            return None
        begin, partner = found
        many = np.diff(begin)[unknowns[:, 0]]
        if int(many.sum()) > MOST:
            return None
        place = runs(begin[unknowns[:, 0]], many)
        unknowns = np.column_stack([np.repeat(unknowns, many, axis=0), partner[place]])
        unknowns = unknowns[_meet(tables[: at + 1], entries, unknowns)]
    return _worlds(entries, unknowns)


def _too_wide(one: GroupTable, two: GroupTable) -> bool:
    """Whether a column is shown in so many ways that it is not asked which of them meet."""
    return any(a.name == b.name and a.cover.nodes * b.cover.nodes > LARGEST for a in one.columns for b in two.columns)


def _partners(
    tables: Sequence[GroupTable], entries: list[Entries], at: int, deadline: float
) -> tuple[Ints, Ints] | None:  # fmt: skip
    """The entries of a table that can hold people of each entry of the first, as runs; None where they are too many."""
    first, own = entries[0], entries[at]
    linked = bool(first.batch.any()) and tables[at].batch is not None
    batch = first.batch if linked else np.zeros_like(first.batch)
    batches = int(batch.max()) + 1
    one, two, many = [], [], 0
    for a, b in meeting((batch, first.cell), own[:2], in_common(tables[0], tables[at]), batches):
        one.append(a)
        two.append(b)
        many += len(a)
        if many > 4 * MOST or time.monotonic() > deadline:
            return None
    return np.searchsorted(np.concatenate(one), np.arange(len(batch) + 1)), np.concatenate(two)


def _meet(tables: Sequence[GroupTable], entries: list[Entries], unknowns: Ints) -> Bools:
    """Which unknowns' cells, of the tables so far, have a value in common in every column: (unknowns,)."""
    meet = np.ones(len(unknowns), dtype=bool)
    last = len(tables) - 1
    for column in tables[last].columns:
        places = [(i, c) for i, table in enumerate(tables) for c in table.columns if c.name == column.name]
        if len(places) < 3:  # the first table's cells were looked at alone
            continue
        shown = [c.codes[tables[i].cells[1]][entries[i].cell[unknowns[:, i]]].astype(np.int64) for i, c in places]
        number, first = combine([(n, c.cover.nodes) for n, (_, c) in zip(shown, places, strict=True)], len(unknowns))
        nodes = np.stack([n[first] for n in shown], axis=1)
        meet &= in_all([c.cover for _, c in places], nodes)[number]
    return meet


def _worlds(entries: list[Entries], unknowns: Ints) -> Worlds:
    """The unknowns with their sums: every entry of every table is the sum of the unknowns that it is part of."""
    at = np.cumsum([0, *(len(each.people) for each in entries)])
    row = np.concatenate([unknowns[:, i] + at[i] for i in range(len(entries))])
    many = len(unknowns)
    people = np.concatenate([each.people for each in entries]).astype(np.float64)
    sums = Sums(many, row, np.tile(np.arange(many), len(entries)), people, people)
    cells = np.stack([each.cell[unknowns[:, i]] for i, each in enumerate(entries)], axis=1)
    only = next((each.people[unknowns[:, i]] for i, each in enumerate(entries) if len(each.people) == many), None)
    return Worlds(
        cells,
        unknowns,
        [each.people for each in entries],
        sums,
        only if only is not None and agrees(sums, only) else None,
    )


def agrees(sums: Sums, people: Ints) -> bool:
    """Whether whole numbers have exactly the sums that are known."""
    found = np.bincount(sums.row, people[sums.unknown], minlength=len(sums.low))
    return bool((people >= 0).all() and np.array_equal(found, sums.low))
