"""Which boxes hold which cells, column by column over what cells and boxes begin with: for boxes that overlap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jali.estimates.patterns import Floats, Ints

Density = tuple[Ints, Ints, Floats]  # (value, node, share) of one column

AT_ONCE = 4_000_000  # pairs that are looked at together
TABLED = 1 << 25  # values × nodes of a column up to which shares are held as a table


class Hits(NamedTuple):
    """The boxes that hold each cell, sorted by cell, and the share of each box that is the cell."""

    start: Ints  # (cells + 1,) where those of each cell begin
    box: Ints  # (hits,)
    share: Floats  # (hits,)


class _Begun(NamedTuple):
    """What rows begin with, up to a column: rows with the same codes have the same number."""

    parent: Ints  # (numbers,) the number up to the column before
    code: Ints  # (numbers,) of the column
    number: Ints  # (rows,)

    @classmethod
    def of(cls, parent: Ints, code: NDArray[np.integer], width: int) -> _Begun:
        keys, number = np.unique(parent * width + code, return_inverse=True)
        return cls(keys // width, keys % width, number.reshape(-1))


def hits_of(asked: Sequence[Ints], dense: Sequence[Density], nodes: Sequence[int], codes: Sequence[Ints]) -> Hits:
    """Which of some boxes hold each cell; asked[column][cell] is a value, codes[column][box] a node.

    What several cells begin with is looked for once. A beginning of a box goes on in a few ways, of which those are
    kept whose node holds the cell's value.
    """
    cells, boxes = len(asked[0]), len(codes[0])
    order = sorted(range(len(asked)), key=lambda i: len(dense[i][0]) / max(len(np.unique(dense[i][0])), 1))
    ours, theirs = np.zeros(cells, dtype=np.int64), np.zeros(boxes, dtype=np.int64)
    start, box, share = np.array([0, 1]), np.zeros(1, dtype=np.int64), np.ones(1)
    for column in order:
        values = int(max(asked[column].max(initial=0), dense[column][0].max(initial=0))) + 1
        cell = _Begun.of(ours, asked[column], values)
        kind = _Begun.of(theirs, codes[column], nodes[column])
        table = _Shares.of(dense[column], values, nodes[column])
        start, box, share = _next(Hits(start, box, share), cell, kind, table)
        ours, theirs = cell.number, kind.number
    size = np.diff(start)[ours]
    at = np.repeat(start[ours] - (np.cumsum(size) - size), size) + np.arange(size.sum())
    first = np.zeros(int(theirs.max(initial=-1)) + 1, dtype=np.int64)
    first[theirs] = np.arange(boxes)
    return Hits(np.concatenate([[0], np.cumsum(size)]), first[box[at]], share[at])


def _next(before: Hits, cell: _Begun, kind: _Begun, table: _Shares) -> Hits:
    """The beginnings of boxes that hold each beginning of cells, one column on."""
    goes_on = np.searchsorted(kind.parent, np.arange(int(kind.parent.max(initial=-1)) + 2))  # they are sorted
    many = np.diff(goes_on)[before.box]  # (hits,) ways in which each goes on
    upto = np.concatenate([[0], np.cumsum(many)])
    work = upto[before.start[cell.parent + 1]] - upto[before.start[cell.parent]]  # (beginnings of cells,)
    cuts = np.unique(np.searchsorted(np.cumsum(work), np.arange(AT_ONCE, int(work.sum()), AT_ONCE)))
    counts, boxes, shares = [], [], []
    for some in np.split(np.arange(len(work)), cuts):
        begin = before.start[cell.parent[some]]
        size = before.start[cell.parent[some] + 1] - begin
        which = np.repeat(some, size)
        hit = np.repeat(begin - (np.cumsum(size) - size), size) + np.arange(size.sum())
        ways = many[hit]
        on = np.repeat(goes_on[before.box[hit]] - (np.cumsum(ways) - ways), ways) + np.arange(ways.sum())
        which, hit = np.repeat(which, ways), np.repeat(hit, ways)
        part = table.share(cell.code[which], kind.code[on])
        kept = np.flatnonzero(part)
        counts.append(np.bincount(which[kept] - (some[0] if len(some) else 0), minlength=len(some)))
        boxes.append(on[kept])
        shares.append(before.share[hit[kept]] * part[kept])
    start = np.concatenate([[0], np.cumsum(np.concatenate(counts))]).astype(np.int64)
    return Hits(start, np.concatenate(boxes), np.concatenate(shares))


class _Shares(NamedTuple):
    """The share of a value in a node, 0 where the node does not hold it."""

    table: Floats | None  # (values, nodes)
    key: Ints
    part: Floats
    nodes: int

    @classmethod
    def of(cls, found: Density, values: int, nodes: int) -> _Shares:
        value, node, share = found
        if values * nodes <= TABLED:
            table = np.zeros((values, nodes))
            table[value, node] = share
            return cls(table, value[:0], share[:0], nodes)
        key = value * nodes + node
        order = np.argsort(key)
        return cls(None, key[order], share[order], nodes)

    def share(self, value: Ints, node: Ints) -> Floats:
        if self.table is not None:
            found: Floats = self.table[value, node]
            return found
        if len(self.key) == 0:
            return np.zeros(len(value))
        wanted = value * self.nodes + node
        at = np.minimum(np.searchsorted(self.key, wanted), len(self.key) - 1)
        return np.where(self.key[at] == wanted, self.part[at], 0.0)


def summed_at(hits: Hits, cell: Ints, value: Ints, masses: tuple[Ints, Floats], values: int) -> Floats:
    """Σ over the boxes that hold a cell of share · mass(box, value), for cells and values that stand beside each other.

    `masses` are the pairs box · values + value that have one, sorted, and theirs.
    """
    key, mass = masses
    result = np.zeros(len(cell))
    size = np.diff(hits.start)[cell]
    cuts = np.unique(np.searchsorted(np.cumsum(size), np.arange(AT_ONCE, int(size.sum()), AT_ONCE)))
    for some in np.split(np.arange(len(cell)), cuts):
        many = size[some]
        at = np.repeat(hits.start[cell[some]] - (np.cumsum(many) - many), many) + np.arange(many.sum())
        which = np.repeat(some, many)
        wanted = hits.box[at] * values + value[which]
        place = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
        part = np.where(key[place] == wanted, mass[place], 0.0) * hits.share[at]
        result += np.bincount(which, part, minlength=len(cell))
    return result
