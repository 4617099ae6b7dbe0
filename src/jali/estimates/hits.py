"""Which boxes hold which cells, column by column over what cells and boxes begin with: for boxes that overlap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from jali.core.arrays import Floats, Ints, added, counted, is_dense, owners, portions, runs, runs_of, starts

Density = tuple[Ints, Ints, Floats]  # (value, node, share) of one column

TABLED = 1 << 25  # values × nodes of a column, or keys of masses, up to which they are held as a table


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
        start, box, share = _next(Hits(start, box, share), cell, kind, dense[column], (values, nodes[column]))
        ours, theirs = cell.number, kind.number
    size, at = runs_of(start, ours)
    first = np.zeros(int(theirs.max(initial=-1)) + 1, dtype=np.int64)
    first[theirs] = np.arange(boxes)
    return Hits(starts(size), first[box[at]], share[at])


def _next(before: Hits, cell: _Begun, kind: _Begun, found: Density, width: tuple[int, int]) -> Hits:
    """The beginnings of boxes that hold each beginning of cells, one column on: `width` values and nodes.

    How each beginning of a box goes on is laid out by value, or, where that is more than there is to look at, all ways
    are tried.
    """
    goes_on = np.searchsorted(kind.parent, np.arange(int(kind.parent.max(initial=-1)) + 2))  # they are sorted
    many = np.diff(goes_on)  # (beginnings of boxes,) ways in which each goes on
    upto = starts(many[before.box])
    work = upto[before.start[cell.parent + 1]] - upto[before.start[cell.parent]]  # (beginnings of cells,)
    held = np.bincount(found[1], minlength=width[1])[kind.code]  # (kinds,) values that each holds
    if int(held.sum()) <= int(work.sum()) and len(many) * width[0] <= TABLED:
        ways: _Ways = _ByValue.of(kind, found, held, (len(many), width[0]))
        work = np.diff(before.start)[cell.parent]
    else:
        ways = _AllWays(goes_on, kind.code, _Shares.of(found, *width))
    parts = [_some(some, before, cell, ways) for some in portions(work)]
    counts, boxes, shares = (np.concatenate(part) for part in zip(*parts, strict=True))
    return Hits(starts(counts), boxes, shares)


def _some(some: slice, before: Hits, cell: _Begun, ways: _Ways) -> tuple[Ints, Ints, Floats]:
    """For some beginnings of cells: how many boxes' beginnings hold each, which, and the share of each."""
    size, hit = runs_of(before.start, cell.parent[some])
    which = owners(size)
    pair, on, part = ways.on(before.box[hit], cell.code[some][which])
    return counted(which[pair], length=len(size)), on, before.share[hit[pair]] * part


class _Ways(Protocol):
    """How beginnings of boxes go on."""

    def on(self, box: Ints, value: Ints) -> tuple[Ints, Ints, Floats]:
        """For pairs of a beginning and a value: the pair, how it goes on there, and the value's share, sorted."""


class _AllWays(NamedTuple):
    """Every way is tried."""

    start: Ints  # (beginnings + 1,)
    node: Ints  # (kinds,)
    table: _Shares

    def on(self, box: Ints, value: Ints) -> tuple[Ints, Ints, Floats]:
        size, on = runs_of(self.start, box)
        pair = owners(size)
        share = self.table.share(value[pair], self.node[on])
        kept = np.flatnonzero(share)
        return pair[kept], on[kept], share[kept]


class _ByValue(NamedTuple):
    """The ways that hold a value, for each beginning and value."""

    start: Ints  # (beginnings · values + 1,)
    kind: Ints  # (ways,)
    share: Floats  # (ways,)
    values: int

    @classmethod
    def of(cls, kind: _Begun, found: Density, held: Ints, shape: tuple[int, int]) -> _ByValue:
        value, node, share = found
        order = np.argsort(node, kind="stable")
        first = np.searchsorted(node[order], kind.code)
        at, child = order[runs(first, held)], owners(held)
        key = kind.parent[child] * shape[1] + value[at]
        by_key = np.argsort(key, kind="stable")  # so that the ways of one beginning and value keep their order
        start = starts(np.bincount(key, minlength=shape[0] * shape[1]))
        return cls(start, child[by_key], share[at][by_key], shape[1])

    def on(self, box: Ints, value: Ints) -> tuple[Ints, Ints, Floats]:
        size, at = runs_of(self.start, box * self.values + value)
        return owners(size), self.kind[at], self.share[at]


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
    """Σ over the boxes that hold a cell of share · mass(box, value), for pairs of a cell and a value.

    `masses` are the pairs box · values + value that have one, sorted, and theirs.
    """
    result, massed = np.zeros(len(cell)), _Masses.of(*masses, (int(hits.box.max(initial=-1)) + 1) * values)
    for some in portions(np.diff(hits.start)[cell]):
        size, at = runs_of(hits.start, cell[some])
        which = owners(size)
        part = massed.at(hits.box[at] * values + value[some][which]) * hits.share[at]
        result[some] = added(which, part, len(size))
    return result


class _Masses(NamedTuple):
    """Masses by key, 0 for any other: in a table of all keys where many of them occur."""

    key: Ints | None  # (masses,) sorted
    mass: Floats

    @classmethod
    def of(cls, key: Ints, mass: Floats, keys: int) -> _Masses:
        """From sorted keys, of which only those below a number are asked for."""
        if keys > TABLED or not is_dense(keys, len(key)):
            return cls(key, mass)
        table, below = np.zeros(keys), int(np.searchsorted(key, keys))
        table[key[:below]] = mass[:below]
        return cls(None, table)

    def at(self, wanted: Ints) -> Floats:
        if self.key is None:
            return self.mass[wanted]
        place = np.minimum(np.searchsorted(self.key, wanted), len(self.key) - 1)
        return np.where(self.key[place] == wanted, self.mass[place], 0.0)
