"""What the tables of an ANGEL release show when they are joined: cells that certainly have somebody in common."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jali.core.arrays import Bools, Ints, combine, counted, owners, portions, runs_of
from jali.cover.overlap import overlap
from jali.releases.linked.tables import GroupTable

LARGEST = 1 << 22  # pairs of what two tables show of a column; beyond that it is not asked which of them meet


class Common(NamedTuple):
    """A column that two tables share: what the cells of each show of it, and which of that can be one value."""

    meets: Bools  # (nodes of the first, nodes of the second)
    first: NDArray[np.integer]  # (cells of the first,)
    second: NDArray[np.integer]  # (cells of the second,)


def in_common(one: GroupTable, two: GroupTable) -> list[Common]:
    """The columns that both tables show, as far as some cells of one cannot be what some of the other are."""
    found = []
    for column in one.columns:
        for other in two.columns:
            if column.name == other.name and column.cover.nodes * other.cover.nodes <= LARGEST:
                meets = overlap(column.cover, other.cover) > 0
                if not meets.all():
                    found.append(Common(meets, column.held, other.held))
    return found


def meeting(
    one: tuple[Ints, Ints], two: tuple[Ints, Ints], common: Sequence[Common], batches: int
) -> Iterator[tuple[Ints, Ints]]:
    """Pairs of entries, one of each table, of one batch whose cells can hold the same person, some at a time.

    An entry is a batch and a cell: `one` and `two` are the batches (sorted) and the cells of all entries.
    """
    begin = np.searchsorted(two[0], np.arange(batches + 1))
    for some in portions(np.diff(begin)[one[0]]):
        size, second = runs_of(begin, one[0][some])
        first = some.start + owners(size)
        for column in common:
            fits = column.meets[column.first[one[1][first]], column.second[two[1][second]]]
            first, second = first[fits], second[fits]
        yield first, second


MOST_PAIRS = 20_000_000
"""The most pairs of cells for which the bounds of a table without batches are computed."""


@dataclass(frozen=True)
class JointCell:
    """Cells, one of each table, that somebody is certainly in: at least `low` and at most `high` people."""

    low: int
    high: int
    cells: dict[str, dict[str, str | None]]  # by table, what its cell shows, by column

    def to_dict(self) -> dict[str, Any]:
        """Plain nested dicts."""
        return {"low": self.low, "high": self.high, "cells": self.cells}

    def __str__(self) -> str:
        told = "; ".join(
            f"{table}: {', '.join(f'{name} {shown}' for name, shown in cell.items())}"
            for table, cell in self.cells.items()
        )
        many = str(self.low) if self.low == self.high else f"{self.low} to {self.high}"
        return f"{many} in {told}"


class _Joined(NamedTuple):
    """A table's pairs of batch and cell."""

    batch: Ints  # (pairs,)
    cell: Ints  # (pairs,)
    n: Ints  # (pairs,)
    key: Ints  # (pairs,) sorted: batch · cells + cell
    cells: int
    by_cell: Ints  # (pairs,) the pairs in the order of their cells
    start: Ints  # (cells + 1,) where those of each cell begin
    main: Ints  # (batches,) the cell that more than half of the batch is in; -1 where there is none
    outside: Ints  # (batches,) how many of the batch are not in it

    @classmethod
    def of_everybody(cls, table: GroupTable) -> _Joined:
        """As if everybody were in one batch."""
        cell = np.arange(len(table.sizes))
        return cls._of(cell, np.zeros_like(cell), table.sizes, np.array([table.rows]), len(table.sizes))

    @classmethod
    def of(cls, table: GroupTable, size: Ints) -> _Joined:
        return cls._of(*table.shares, size, len(table.sizes))

    @classmethod
    def _of(cls, cell: Ints, batch: Ints, n: Ints, size: Ints, cells: int) -> _Joined:
        order = np.argsort(batch * cells + cell)
        cell, batch, n = cell[order], batch[order], n[order]
        by_cell = np.argsort(cell, kind="stable")
        main, outside = np.full(len(size), -1), size.copy()
        most = 2 * n > size[batch]
        main[batch[most]] = cell[most]
        outside[batch[most]] -= n[most]
        start = np.searchsorted(cell[by_cell], np.arange(cells + 1))
        return cls(batch, cell, n, batch * cells + cell, cells, by_cell, start, main, outside)

    def people(self, batch: Ints, cell: Ints) -> Ints:
        """How many people of each batch are in the cell at the same place: (pairs,)."""
        wanted = batch * self.cells + cell
        at = np.minimum(np.searchsorted(self.key, wanted), len(self.key) - 1)
        return np.where(self.key[at] == wanted, self.n[at], 0)


class _Best(NamedTuple):
    """The most and the least people of some cells, one of each of some tables."""

    high: int
    low: int
    tables: list[GroupTable]
    cells: Ints  # (tables,)


def smallest_certain(tables: Sequence[GroupTable], size: Ints) -> JointCell | None:
    """Of all cells of a join that somebody is certainly in, the one that the fewest can be in; `size` is the batches'.

    Some tables with batches are joined at a time: every two of them, then three, as long as something is certain. A
    table without batches is joined with each other one.
    """
    linked = [table for table in tables if table.linked]
    best = _all_linked(linked, size)
    for one, two in combinations(tables, 2):
        if one.linked and two.linked:
            continue
        if best is not None and best.high == 1:  # fewer than 1 is nobody
            break
        if len(one.sizes) * len(two.sizes) <= MOST_PAIRS:
            everybody = np.array([one.rows])
            found = _pair([one, two], [_Joined.of_everybody(table) for table in (one, two)], everybody, best)
            best = found if found is not None and (best is None or found[:2] < best[:2]) else best
    if best is None:
        return None
    shown = {table.name: table.label(int(c)) for table, c in zip(best.tables, best.cells, strict=True)}
    return JointCell(best.low, best.high, shown)


def _all_linked(linked: list[GroupTable], size: Ints) -> _Best | None:
    """The same for tables that all show batches."""
    joined = [_Joined.of(table, size) for table in linked]
    best: _Best | None = None
    alive: set[tuple[int, ...]] = {(i,) for i in range(len(joined))}
    for many in range(2, len(joined) + 1):
        wanted = [
            subset
            for subset in combinations(range(len(joined)), many)
            if all((*subset[:i], *subset[i + 1 :]) in alive for i in range(many))
        ]
        alive = set()
        for subset in wanted:
            some = [linked[i] for i in subset]
            if many == 2:
                found = _pair(some, [joined[i] for i in subset], size, best)
            else:
                certain = _certain([joined[i] for i in subset], size)
                found = None if certain is None else _Best(certain[0], certain[1], some, certain[2])
            if found is None:
                continue
            alive.add(subset)
            if best is None or found[:2] < best[:2]:
                best = found
            if best[:2] == (1, 1):  # nothing that somebody is certainly in can have fewer
                return best
    return best


def _pair(some: list[GroupTable], joined: list[_Joined], size: Ints, best: _Best | None) -> _Best | None:
    """The same for two tables; the columns that they share are looked at unless one person is alone without that."""
    found = _certain(joined, size)
    if 1 not in [each[0] for each in (found, best) if each is not None]:  # fewer than 1 is nobody
        common = in_common(some[0], some[1])
        found = _certain_pair(joined[0], joined[1], common, len(size)) if common else found
    return None if found is None else _Best(found[0], found[1], some, found[2])


def _certain(tables: list[_Joined], size: Ints) -> tuple[int, int, Ints] | None:
    """The fewest that can be in cells which somebody certainly is in, how many certainly are, and the cells: (tables,).

    Σ ni > (m - 1) n leaves room for one table at most whose cell does not have more than half of the batch.
    """
    cells, batches, lows = [], [], []
    for free, table in enumerate(tables):
        others = [other for other in tables if other is not table]
        outside = sum((other.outside for other in others), np.zeros_like(size))
        low = table.n - outside[table.batch]
        for other in others:
            low = np.where(other.main[table.batch] < 0, 0, low)
        here = np.flatnonzero(low > 0)
        batch = table.batch[here]
        cells.append(np.stack([t.cell[here] if i == free else t.main[batch] for i, t in enumerate(tables)], axis=1))
        batches.append(batch)
        lows.append(low[here])
    cell, batch, low = np.concatenate(cells), np.concatenate(batches), np.concatenate(lows)
    if len(batch) == 0:
        return None
    widths = [table.cells for table in tables]
    _, once = combine([*zip(cell.T, widths, strict=True), (batch, len(size))], len(batch))
    cell, low = cell[once], low[once]
    number, first = combine(list(zip(cell.T, widths, strict=True)), len(low))
    least = counted(number, low)
    high = _most(tables, cell[first])
    at = int(np.lexsort((least, high))[0])
    return int(high[at]), int(least[at]), cell[first[at]]


def _certain_pair(one: _Joined, two: _Joined, common: list[Common], batches: int) -> tuple[int, int, Ints] | None:
    """The same for two tables that share columns.

    Of a cell's n1 people of a batch at most N1 - n2 can be in others than this one of the other table, if N1 people of
    it are in cells that can hold the same person: at least n1 + n2 - N1 are in both. Who is certainly in one cell of
    the other table is in no other one.
    """
    entries = [(table.batch, table.cell) for table in (one, two)]
    rooms = np.zeros(len(one.n)), np.zeros(len(two.n))
    for first, second in meeting(entries[0], entries[1], common, batches):
        rooms[0][:] += np.bincount(first, two.n[second], len(one.n))
        rooms[1][:] += np.bincount(second, one.n[first], len(two.n))
    sure: list[tuple[Ints, Ints, Ints]] = []
    for first, second in meeting(entries[0], entries[1], common, batches):
        low = one.n[first] + two.n[second] - np.minimum(rooms[0][first], rooms[1][second]).astype(np.int64)
        here = np.flatnonzero(low > 0)
        sure.append((first[here], second[here], low[here]))
    first, second, low = (np.concatenate(part) for part in zip(*sure, strict=True))
    if len(low) == 0:
        return None
    pairs = np.stack([one.cell[first], two.cell[second]], axis=1)
    number, example = combine([(pairs[:, 0], one.cells), (pairs[:, 1], two.cells)], len(low))
    least = counted(number, low)
    free = [
        table._replace(n=table.n - counted(entry, low, len(table.n))) for table, entry in ((one, first), (two, second))
    ]
    high = least + _most(free, pairs[example])  # who certainly is in both, and of the others those who can be
    at = int(np.lexsort((least, high))[0])
    return int(high[at]), int(least[at]), pairs[example[at]]


def _most(tables: list[_Joined], cells: Ints) -> Ints:
    """How many people at most are in all of these cells at once, over all batches: (tuples,)."""
    base = int(np.argmax([table.cells for table in tables]))
    table = tables[base]
    result = np.zeros(len(cells), dtype=np.int64)
    for some in portions(np.diff(table.start)[cells[:, base]]):
        count, place = runs_of(table.start, cells[some, base])
        at, which = table.by_cell[place], some.start + owners(count)
        least = table.n[at]
        for i, other in enumerate(tables):
            if i != base:
                least = np.minimum(least, other.people(table.batch[at], cells[which, i]))
        result += counted(which, least, len(cells))
    return result
