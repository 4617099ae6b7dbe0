"""Nested groups: tables over some of the columns each, cut so that every group of the whole table lies within one group
of each of them.

Then a join of the tables shows nothing but unions of groups of the whole table. All tables are cut top down, the
largest group of any of them first. A cut is made where every *overlap* (the people who share a group in each of the
tables) that it divides has enough people on each side, or nobody. What is then left of the overlaps is cut by all
columns, as far as k allows; there children of a node that have few people are one part, since boxes within an overlap
may overlap each other.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from jali.core.arrays import Bools, Ints, counted
from jali.encoding.table import Table


class _Column(NamedTuple):
    """A column as it is cut: between two values that follow each other, or into the children of a node."""

    code: Ints  # (combinations,)
    maps: tuple[Ints, ...]  # node of each code, level by level; empty where it is cut along the order of the values
    values: int
    loose: bool = False  # whether children of few people may be one part, whose node then overlaps the others'

    def width(self, rows: Ints) -> float:
        """How much of the column's values a group spans."""
        code = self.code[rows]
        if not self.maps:
            return float(code.max() - code.min()) / max(1, self.values - 1)
        level = self._level(code)
        covered = (self.maps[level] == self.maps[level][code[0]]).sum()
        return float(covered - 1) / max(1, self.values - 1)

    def _level(self, code: Ints) -> int:
        return next(level for level, node in enumerate(self.maps) if (node[code] == node[code[0]]).all())

    def parts(self, rows: Ints, people: Ints, overlap: Ints, least: int) -> Ints | None:
        """The part of each row, counted from 0, if there is a cut that leaves no overlap fewer than `least` people."""
        code = self.code[rows]
        if self.maps:
            level = self._level(code)
            if level == 0:
                return None
            part = np.unique(self.maps[level - 1][code], return_inverse=True)[1].reshape(-1)
            if self.loose:
                return _with_rest(part, people, least)
            there = _people(overlap, part, people)
            return part if bool(((there == 0) | (there >= least)).all()) else None
        values, place = np.unique(code, return_inverse=True)
        place = place.reshape(-1)
        if len(values) < 2:
            return None
        below = np.cumsum(_people(overlap, place, people), axis=1)
        above = below[:, -1:] - below
        fits = (((below == 0) | (below >= least)) & ((above == 0) | (above >= least))).all(axis=0)[:-1]
        if not fits.any():
            return None
        uneven = np.abs(2 * below.sum(axis=0)[:-1] - int(people.sum()))
        cut = int(np.argmin(np.where(fits, uneven, np.iinfo(np.int64).max)))
        return (place > cut).astype(np.int64)


def _with_rest(part: Ints, people: Ints, least: int) -> Ints | None:
    """The parts with those of few people as one, which the smallest others join as long as it has few itself."""
    size = counted(part, people)
    order = np.argsort(size, kind="stable")
    rest = int((size < least).sum())
    while 0 < rest < len(size) and int(size[order[:rest]].sum()) < least:
        rest += 1
    if rest > len(size) - (rest > 0):
        return None
    number = np.empty(len(size), dtype=np.int64)
    number[order] = np.maximum(np.arange(len(size)) - max(rest - 1, 0), 0)
    return number[part]


def _people(overlap: Ints, place: Ints, people: Ints) -> Ints:
    """People by overlap and place: (overlaps, places)."""
    _, number = np.unique(overlap, return_inverse=True)
    number, width = number.reshape(-1), int(place.max()) + 1
    shape = (int(number.max()) + 1, width)
    return counted(number * width + place, people, shape[0] * width).reshape(shape)


def nested_groups(
    table: Table, tables: Sequence[Sequence[str]], *, k: int, least: int, trees: Bools
) -> tuple[Ints, list[Ints]]:
    """The groups of the whole table, of k people at the least, and those of tables over some columns: (combinations,).

    `least` people must be in every overlap of the tables. `trees` says which quasi-identifiers are cut along their
    hierarchies, since their groups are shown as nodes.
    """
    f = table.frequencies
    people = counted(f.combination, f.people, f.combinations)
    names = [column.name for column in table.quasi]
    columns = []
    for i, column in enumerate(table.quasi):
        maps = () if not trees[i] or column.hierarchy is None else column.hierarchy.maps
        columns.append(
            _Column(f.codes[:, i].astype(np.int64), tuple(m.astype(np.int64) for m in maps), len(column.values))
        )
    overlap = np.zeros(f.combinations, dtype=np.int64)
    some = [[columns[names.index(name)] for name in own] for own in tables]
    groups = [overlap.copy() for _ in tables]
    _cut(some, groups, overlap, people, least)
    data = overlap.copy()
    _cut([[column._replace(loose=True) for column in columns]], [data], data, people, k)
    return _renumbered(data), [_renumbered(group) for group in groups]


def _cut(columns: list[list[_Column]], groups: list[Ints], overlap: Ints, people: Ints, least: int) -> None:
    """Cut the groups of all tables, which change in place, and their overlaps with them."""
    heap: list[tuple[int, int, int, Ints]] = []
    order = 0

    def put(at: int, rows: Ints) -> None:
        nonlocal order
        order += 1
        if int(people[rows].sum()) >= 2 * least:
            heapq.heappush(heap, (-int(people[rows].sum()), order, at, rows))

    for at, group in enumerate(groups):
        by_group = np.argsort(group, kind="stable")
        for rows in np.split(by_group, np.flatnonzero(np.diff(group[by_group])) + 1):
            put(at, rows)
    while heap:
        _, _, at, rows = heapq.heappop(heap)
        part = _best_cut(columns[at], rows, people[rows], overlap[rows], least)
        if part is None:
            continue
        many = int(part.max()) + 1
        group = groups[at]
        if group is not overlap:
            group[rows] = int(group.max()) + 1 + part
        _, fresh = np.unique(overlap[rows] * many + part, return_inverse=True)
        overlap[rows] = int(overlap.max()) + 1 + fresh.reshape(-1)
        for number in range(many):
            put(at, rows[part == number])


def _best_cut(columns: list[_Column], rows: Ints, people: Ints, overlap: Ints, least: int) -> Ints | None:
    """The cut of the widest column that can be cut."""
    for column in sorted(columns, key=lambda each: -each.width(rows)):
        part = column.parts(rows, people, overlap, least)
        if part is not None:
            return part
    return None


def _renumbered(group: Ints) -> Ints:
    return np.unique(group, return_inverse=True)[1].reshape(-1).astype(np.int64)
