"""Two tables that share a link: joined, drawn from, and dealt out within each link.

Which boxes hold which cells is found column by column over what cells and boxes begin with: boxes may overlap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from jali.core import arrays
from jali.core.arrays import Bools, Floats, Ints, added, added_by_key, combine, counted, is_dense, owners
from jali.core.programs import largest_flow
from jali.errors import InputError
from jali.estimates.boxes import BoxEstimate, encoded
from jali.estimates.cells import LARGEST, Density, Keyed
from jali.estimates.conditions import BoxColumn

TABLED = 1 << 25  # values × nodes of a column, or keys of masses, up to which they are held as a table
Side = tuple[Sequence[BoxColumn], Ints, Floats]  # columns, link and amount of each row of one of the two tables
FEW = 8
"""Up to how many rows of a side a link has on average for these to be paired as they are: few of them are alike."""
Known = tuple[Sequence[BoxColumn], NDArray[np.integer]]
"""What the rows of a side show, each thing once, and which of them each row does."""


class Joined(NamedTuple):
    """Pairs of what two sides show, which some link has: the distinct ones of each side, and the mass of each pair."""

    left: tuple[BoxColumn, ...]
    right: tuple[BoxColumn, ...]
    key: Ints  # (pairs,) left · width + right, sorted
    mass: Floats  # (pairs,)

    @property
    def width(self) -> int:
        """How many distinct ones the right side has."""
        return len(self.right[0].codes)

    def boxes(self) -> BoxEstimate:
        """The pairs as boxes of all columns."""
        sides = (self.left, self.key // self.width), (self.right, self.key % self.width)
        return BoxEstimate(tuple(replace(c, codes=c.codes[at]) for own, at in sides for c in own), self.mass)


def joined(first: Side, second: Side, links: int, *, known: Known | None = None) -> Joined:
    """Σ over links of the product of the two amounts, for each distinct pair of what the two sides show.

    `known` says what the rows of the first side show, where that is known and they are distinct and sorted by link.
    """
    right, right_link, right_amount = _reduced(second, links)
    left_key: NDArray[np.integer]
    if known is None:
        left, left_link, left_amount = _reduced(first, links)
        left_key, left_first = combine([(c.codes, c.cover.nodes) for c in left], len(left_link))
    else:
        (left, left_key), (_, left_link, left_amount) = known, first
        left_first = np.arange(len(left[0].codes))
    right_key, right_first = combine([(c.codes, c.cover.nodes) for c in right], len(right_link))
    width = len(right_first)
    begin = np.searchsorted(right_link, np.arange(links + 1))
    pairs = np.diff(begin)[left_link]

    def piece(some: slice) -> tuple[Ints, Floats]:
        size, at = arrays.runs_of(begin, left_link[some])
        key = np.repeat(left_key[some].astype(np.int64) * width, size) + right_key[at]
        return key, np.repeat(left_amount[some], size) * right_amount[at]

    key, mass = _summed(map(piece, arrays.portions(pairs)), len(left_first) * width, int(pairs.sum()))
    boxes, values = (
        tuple(replace(c, codes=c.codes[distinct]) for c in columns)
        for columns, distinct in ((left, left_first), (right, right_first))
    )
    return Joined(boxes, values, key, mass)


class Pairs(NamedTuple):
    """Every row of one side with every row of the other that has its link: for small links, and any columns."""

    left: Ints  # (pairs,) the row of the one
    right: Ints  # (pairs,) of the other
    mass: Floats  # (pairs,)

    @classmethod
    def of(cls, left: tuple[Ints, Floats], right: tuple[Ints, Floats], links: int) -> Pairs | None:
        """From link and amount of the rows of both sides; None where pairs would be far more than rows."""
        order, start = arrays.sorted_by(right[0], links)
        few = max(len(left[0]), len(right[0])) <= FEW * links
        if not few or int(np.diff(start)[left[0]].sum()) > 2 * arrays.AT_ONCE:
            return None
        row, at = arrays.pairs_of(start, left[0])
        return cls(row, order[at], left[1][row] * right[1][order[at]])

    def joined(self, left: Sequence[BoxColumn], right: Sequence[BoxColumn]) -> Joined:
        """What `joined` finds for some columns of both sides."""
        keys, shown = [], []
        for columns, rows in ((left, self.left), (right, self.right)):
            number, first = combine([(c.codes, c.cover.nodes) for c in columns], len(columns[0].codes))
            keys.append(number.take(rows))
            shown.append(tuple(replace(c, codes=c.codes[first]) for c in columns))
        width, cells = len(shown[1][0].codes), len(shown[0][0].codes)
        key = keys[0].astype(np.int64) * width + keys[1]
        return Joined(shown[0], shown[1], *_summed([(key, self.mass)], cells * width, len(key)))


class Shown(NamedTuple):
    """The first of two linked tables: distinct cells, and pairs of them with links, sorted by link."""

    columns: Sequence[BoxColumn]  # of the cells
    cell: NDArray[np.integer]  # (pairs,)
    link: NDArray[np.integer]  # (pairs,)
    numbers: NDArray[np.integer]  # (pairs,)


class Hidden(NamedTuple):
    """The second: how often each link has each value, sorted by link."""

    columns: Sequence[BoxColumn]  # of the entries
    link: NDArray[np.integer]  # (entries,)
    people: NDArray[np.integer]  # (entries,)


@dataclass(frozen=True, eq=False)
class Mass:
    """How much mass exact cells of all columns of two linked tables have: an estimate that is asked nothing else."""

    pairs: Joined

    @classmethod
    def of(cls, shown: Shown, hidden: Hidden, scale: Floats | None) -> Mass:
        """Links are gone through some at a time; `scale` is the weight of a person of each link, by default 1."""
        number, first = combine([(c.codes, c.cover.nodes) for c in hidden.columns], len(hidden.link))
        value, width, cells = arrays.narrowed(number), len(first), len(shown.columns[0].codes)
        del number  # as long as the entries are
        sums = arrays.SumsByKey(cells * width, dense=TABLED)
        most = max(1, arrays.AT_ONCE // 4 * (int(hidden.link[-1]) + 1) // max(len(hidden.link), len(shown.link)))
        for some in arrays.steps(int(hidden.link[-1]) + 1, 1, most):
            here, there = (
                slice(*each.searchsorted(np.array([some.start, some.stop], dtype=each.dtype)).tolist())  # not widened
                for each in (shown.link, hidden.link)
            )
            own, theirs = (each.astype(np.int64) - some.start for each in (shown.link[here], hidden.link[there]))
            count = hidden.people[there].astype(np.float64)
            start = np.searchsorted(theirs, np.arange(some.stop - some.start + 1))
            size, at = arrays.runs_of(start, own)
            amount = shown.numbers[here] / added(theirs, count, some.stop - some.start)[own]
            amount = amount if scale is None else amount * scale[some][own]
            key = np.repeat(shown.cell[here].astype(np.int64) * width, size) + value[there][at]
            sums.add(key, np.repeat(amount, size) * count[at])
        values = tuple(replace(c, codes=c.codes[first]) for c in hidden.columns)
        return cls(Joined(tuple(shown.columns), values, *sums.all()))

    def probability(self, cells: pa.Table) -> Floats:
        """The probability of each cell, given by exact values of all columns: (cells,)."""
        return mixed_probability(self.pairs, cells)


def _summed(pieces: Iterable[tuple[Ints, Floats]], keys: int, entries: int) -> tuple[Ints, Floats]:
    """Amounts added up by key: the keys that occur, in order, and the sum of each."""
    if keys <= LARGEST and is_dense(keys, entries):
        table = np.zeros(keys)
        for some, amounts in pieces:
            table += added(some, amounts, keys)
        key = np.flatnonzero(table)
        return key, table[key]
    key, amount = np.zeros(0, dtype=np.int64), np.zeros(0)
    for some, amounts in pieces:
        key, amount = added_by_key(np.concatenate([key, some]), np.concatenate([amount, amounts]))
        if len(key) > LARGEST:
            raise InputError(f"the joint table has more than {LARGEST:,} cells", do="name fewer columns")
    return key, amount


def _reduced(side: Side, links: int) -> Side:
    """Rows that show the same in one link made one, sorted by link."""
    columns, link, amount = side
    number, first = combine([(link, links), *((c.codes, c.cover.nodes) for c in columns)], len(link))
    kept = [replace(column, codes=column.codes[first]) for column in columns]
    return kept, link[first], added(number, amount, len(first))


@dataclass(frozen=True, eq=False)
class ByValue:
    """The entries of a link table in the order of their joint values, to be added up for some of these."""

    first: Ints  # (joint values,) an entry of each
    start: Ints  # (joint values + 1,) where those of each begin
    link: Ints  # (entries,)
    people: Floats  # (entries,)
    links: int

    @classmethod
    def of(cls, keys: Sequence[tuple[NDArray[np.integer], int]], link: Ints, people: Ints, links: int) -> ByValue:
        """From codes of some columns, and how many values each has."""
        number, first = combine(keys, len(link))
        order, start = arrays.sorted_by(number, len(first))
        return cls(first, start, link[order], people[order].astype(np.float64), links)

    @cached_property
    def _matrix(self) -> Floats | None:
        """People by joint value and link, where many of these occur together: (joint values, links)."""
        if not is_dense(len(self.first) * self.links, len(self.link)):
            return None
        value = owners(np.diff(self.start))
        shape = (len(self.first), self.links)
        return added(value * self.links + self.link, self.people, shape[0] * shape[1]).reshape(shape)

    def having(self, values: Bools) -> Floats:
        """How many people of each link have one of these joint values: (links,)."""
        if self._matrix is not None:
            added_by_key: Floats = values.astype(np.float64) @ self._matrix
            return added_by_key
        edges = np.flatnonzero(np.diff(values, prepend=False, append=False))  # values that follow each other are a run
        runs = [slice(self.start[a], self.start[b]) for a, b in edges.reshape(-1, 2)]
        if not runs:
            return np.zeros(self.links)
        link, people = (np.concatenate([amount[run] for run in runs]) for amount in (self.link, self.people))
        return added(link, people, self.links)


def draw_within(value_link: Ints, count: Ints, link: Ints, random: np.random.Generator) -> Ints:
    """An entry of the link of each person, each as likely as people of the link have it: (people,)."""
    order = np.argsort(value_link, kind="stable")
    upto = np.cumsum(count[order])
    size = counted(value_link, count)
    before = np.cumsum(size) - size
    wanted = before[link] + (random.random(len(link)) * size[link]).astype(np.int64)
    return order[np.searchsorted(upto, wanted, side="right")]


def shuffled_within(value_link: Ints, count: Ints, link: NDArray[np.integer], order: Ints) -> Ints:
    """Every entry dealt to as many people of its link as have it; who gets which follows a random order: (people,)."""
    entries = owners(count)
    entries = entries[np.argsort(value_link[entries], kind="stable")]
    result = np.empty(len(link), dtype=np.int64)
    result[order[np.argsort(link[order], kind="stable")]] = entries
    return result


_Ways = Callable[[Ints, Ints], tuple[Ints, Ints, Floats]]
"""For beginnings of boxes, each with a value: which pair, how it goes on there, and the value's share; sorted."""


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
    size, at = arrays.runs_of(start, ours)
    first = np.zeros(int(theirs.max(initial=-1)) + 1, dtype=np.int64)
    first[theirs] = np.arange(boxes)
    return Hits(arrays.starts(size), first[box[at]], share[at])


def _next(before: Hits, cell: _Begun, kind: _Begun, found: Density, width: tuple[int, int]) -> Hits:
    """The beginnings of boxes that hold each beginning of cells, one column on: `width` values and nodes.

    How each beginning of a box goes on is laid out by value, or, where that is more than there is to look at, all ways
    are tried.
    """
    goes_on = np.searchsorted(kind.parent, np.arange(int(kind.parent.max(initial=-1)) + 2))  # they are sorted
    many = np.diff(goes_on)  # (beginnings of boxes,) ways in which each goes on
    upto = arrays.starts(many[before.box])
    work = upto[before.start[cell.parent + 1]] - upto[before.start[cell.parent]]  # (beginnings of cells,)
    held = np.bincount(found[1], minlength=width[1])[kind.code]  # (kinds,) values that each holds
    if int(held.sum()) <= int(work.sum()) and len(many) * width[0] <= TABLED:
        ways = _ways_by_value(kind, found, held, (len(many), width[0]))
        work = np.diff(before.start)[cell.parent]
    else:
        space = width[0] * width[1]
        known = Keyed.of(found[0] * width[1] + found[1], found[2], space, tabled=space <= TABLED)
        ways = _all_ways(goes_on, kind.code, known, width[1])
    parts = [_some(some, before, cell, ways) for some in arrays.portions(work)]
    counts, boxes, shares = (np.concatenate(part) for part in zip(*parts, strict=True))
    return Hits(arrays.starts(counts), boxes, shares)


def _some(some: slice, before: Hits, cell: _Begun, ways: _Ways) -> tuple[Ints, Ints, Floats]:
    """For some beginnings of cells: how many boxes' beginnings hold each, which, and the share of each."""
    size, hit = arrays.runs_of(before.start, cell.parent[some])
    which = owners(size)
    pair, on, part = ways(before.box[hit], cell.code[some][which])
    return counted(which[pair], length=len(size)), on, before.share[hit[pair]] * part


def _all_ways(start: Ints, node: Ints, shares: Keyed, nodes: int) -> _Ways:
    """Every way in which a beginning goes on is tried."""

    def on(box: Ints, value: Ints) -> tuple[Ints, Ints, Floats]:
        pair, way = arrays.pairs_of(start, box)
        share = shares.at(value[pair] * nodes + node[way])
        kept = np.flatnonzero(share)
        return pair[kept], way[kept], share[kept]

    return on


def _ways_by_value(kind: _Begun, found: Density, held: Ints, shape: tuple[int, int]) -> _Ways:
    """The ways that hold a value, laid out by beginning and value."""
    order = np.argsort(found[1], kind="stable")
    first = np.searchsorted(found[1][order], kind.code)
    at, child = order[arrays.runs(first, held)], owners(held)
    by_key, start = arrays.sorted_by(kind.parent[child] * shape[1] + found[0][at], shape[0] * shape[1])
    child, share = child[by_key], found[2][at][by_key]  # the ways of one beginning and value keep their order

    def on(box: Ints, value: Ints) -> tuple[Ints, Ints, Floats]:
        pair, way = arrays.pairs_of(start, box * shape[1] + value)
        return pair, child[way], share[way]

    return on


def summed_at(hits: Hits, cell: Ints, value: Ints, masses: tuple[Ints, Floats], values: int) -> Floats:
    """Σ over the boxes that hold a cell of share · mass(box, value), for pairs of a cell and a value.

    `masses` are the pairs box · values + value that have one, sorted, and theirs.
    """
    result, keys = np.zeros(len(cell)), (int(hits.box.max(initial=-1)) + 1) * values
    massed = Keyed.of(*masses, keys, tabled=keys <= TABLED and is_dense(keys, len(masses[0])))
    for some in arrays.portions(np.diff(hits.start)[cell]):
        size, at = arrays.runs_of(hits.start, cell[some])
        which = owners(size)
        part = massed.at(hits.box[at] * values + value[some][which]) * hits.share[at]
        result[some] = added(which, part, len(size))
    return result


def mixed_probability(pairs: Joined, table: pa.Table) -> Floats:
    """The probability of each cell; the left columns of a pair show sets of values, the right ones single values.

    The boxes that hold the left part of a cell are looked up once for all right parts: (cells,).
    """
    boxes, values = pairs.left, pairs.right
    asked, dense = zip(*(_asked(column, table) for column in boxes), strict=True)
    wanted = [_exact(column, *_asked(column, table)) for column in values]
    cell, cell_first = combine([(codes, int(codes.max(initial=0)) + 1) for codes in asked], table.num_rows)
    codes = [c.codes.astype(np.int64) for c in boxes]
    hits = hits_of([own[cell_first] for own in asked], dense, [c.cover.nodes for c in boxes], codes)
    value = _numbers(values, wanted)
    known = np.flatnonzero(value >= 0)
    result = np.zeros(table.num_rows)
    result[known] = summed_at(hits, cell[known].astype(np.int64), value[known], (pairs.key, pairs.mass), pairs.width)
    return result / float(pairs.mass.sum())


def _numbers(columns: Sequence[BoxColumn], wanted: Sequence[Ints]) -> Ints:
    """Which of some distinct values each cell asks for, by its nodes; -1 for one that nobody has: (cells,)."""
    known = np.flatnonzero(np.logical_and.reduce([nodes >= 0 for nodes in wanted]))
    codes, asked = [c.codes.astype(np.int64) for c in columns], [nodes[known] for nodes in wanted]
    result = np.full(len(wanted[0]), -1)
    result[known] = arrays.found_among(codes, asked, [c.cover.nodes for c in columns], len(codes[0]) + len(known))
    return result


def _asked(column: BoxColumn, table: pa.Table) -> tuple[Ints, Density]:
    """The value of each cell, and the nodes that each value lies in."""
    values = encoded(table[column.name])
    codes: Ints = values.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes, column.cover.density(values.dictionary, column.name, np.unique(column.codes).astype(np.int64))


def _exact(column: BoxColumn, codes: Ints, dense: Density) -> Ints:
    """The node of each cell of a column of exact values; -1 for a value that nobody has: (cells,)."""
    node = np.full(int(codes.max(initial=-1)) + 1, -1, dtype=np.int64)
    node[dense[0]] = dense[1]
    return node[codes]


def most_dealt(having: Ints, link: Ints, people: Ints, fits: Bools) -> Ints:
    """The most people of each link who can have a value that fits their box, over all ways to deal: (links,).

    Values are of some classes: `having[c, link]` people of the link have one of class c, (classes, links), and it fits
    the people of a box where `fits[c, box]`, (classes, boxes). Boxes of one link that fit the same classes are one. The
    values that flow from the classes to the boxes, no more than each has, are the people who can be served at once.
    """
    classes, links = having.shape
    number, first = combine([(link, links), *((row.astype(np.int8), 2) for row in fits)], len(link))
    demand = counted(number, people, len(first))
    kind, sink = np.nonzero(fits[:, first])
    source = kind * links + link[first][sink]
    flow = largest_flow(having.ravel(), demand, source, sink)
    return np.asarray(flow.reshape(classes, links).sum(axis=0), dtype=np.int64)
