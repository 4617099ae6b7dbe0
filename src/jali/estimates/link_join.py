"""Two tables that share a link: joined, drawn from, and dealt out within each link."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from jali.core.arrays import (
    Bools,
    Floats,
    Ints,
    added,
    added_by_key,
    combine,
    counted,
    is_dense,
    owners,
    portions,
    runs_of,
)
from jali.core.programs import largest_flow
from jali.errors import InputError
from jali.estimates.boxes import BoxEstimate, encoded
from jali.estimates.cells import LARGEST
from jali.estimates.conditions import BoxColumn
from jali.estimates.hits import Density, hits_of, summed_at

Side = tuple[Sequence[BoxColumn], Ints, Floats]  # columns, link and amount of each row of one of the two tables


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


def joined(first: Side, second: Side, links: int) -> Joined:
    """Σ over links of the product of the two amounts, for each distinct pair of what the two sides show."""
    (left, left_link, left_amount), (right, right_link, right_amount) = (
        _reduced(side, links) for side in (first, second)
    )
    left_key, left_first = combine([(c.codes, c.cover.nodes) for c in left], len(left_link))
    right_key, right_first = combine([(c.codes, c.cover.nodes) for c in right], len(right_link))
    width = len(right_first)
    begin = np.searchsorted(right_link, np.arange(links + 1))
    pairs = np.diff(begin)[left_link]
    found = _Sums(len(left_first) * width, int(pairs.sum()))
    for some in portions(pairs):
        size, at = runs_of(begin, left_link[some])
        here = np.repeat(left_key[some].astype(np.int64) * width, size) + right_key[at]
        found.add(here, np.repeat(left_amount[some], size) * right_amount[at])
    boxes, values = (
        tuple(replace(c, codes=c.codes[distinct]) for c in columns)
        for columns, distinct in ((left, left_first), (right, right_first))
    )
    return Joined(boxes, values, *found.result())


class _Sums:
    """Amounts added up by key: in a table of all keys where most of them occur, else key by key."""

    def __init__(self, keys: int, entries: int) -> None:
        self.table = np.zeros(keys) if keys <= LARGEST and is_dense(keys, entries) else None
        self.key, self.amount = np.zeros(0, dtype=np.int64), np.zeros(0)

    def add(self, key: Ints, amount: Floats) -> None:
        """Add some amounts."""
        if self.table is not None:
            self.table += added(key, amount, len(self.table))
            return
        self.key, self.amount = added_by_key(np.concatenate([self.key, key]), np.concatenate([self.amount, amount]))
        if len(self.key) > LARGEST:
            raise InputError(f"the joint table has more than {LARGEST:,} cells", do="name fewer columns")

    def result(self) -> tuple[Ints, Floats]:
        """The keys that occur, in order, and the sum of each."""
        if self.table is None:
            return self.key, self.amount
        key = np.flatnonzero(self.table)
        return key, self.table[key]


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
        order = np.argsort(number, kind="stable")
        start = np.searchsorted(number[order], np.arange(len(first) + 1))
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
    many, known = len(columns[0].codes), np.flatnonzero(np.logical_and.reduce([nodes >= 0 for nodes in wanted]))
    together = [
        (np.concatenate([c.codes.astype(np.int64), nodes[known]]), c.cover.nodes)
        for c, nodes in zip(columns, wanted, strict=True)
    ]
    number, first = combine(together, many + len(known))
    place = np.full(len(first), -1)
    place[number[:many]] = np.arange(many)
    result = np.full(len(wanted[0]), -1)
    result[known] = place[number[many:]]
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
