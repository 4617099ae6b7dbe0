"""Who is unique by how few columns: distinction, separation, the smallest sets of columns that single people out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jali.core.arrays import Bools, Ints, combine, counted
from jali.core.text import listed, percent
from jali.encoding.identifiers import tells_apart

LARGEST = 4
"""Sets of up to this number of columns are searched."""
WORK = 150_000_000
"""Records that the sets of three and four columns may have together; more columns than that allows are not in them."""
SHOWN = 10
"""Sets of columns that a text names; `sets` has them all."""
_WIDEST = 2**62  # a key must fit into 64 bits
_ODD = 0x9E3779B97F4A7C15  # Knuth's multiplier: its products are spread evenly over the high bits
_EACH = 20_000  # records that a set costs besides its own


class Coded(NamedTuple):
    """A column as numbers: the code of each record, and the number of codes."""

    codes: NDArray[np.integer]  # (records,)
    width: int


class Everybody(NamedTuple):
    """Whom the records are about: persons with several of them, or one row a person, where a record may be several."""

    records: int
    person: Ints | None = None  # (records,)
    multiplicity: Ints | None = None  # (records,) rows of each record

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.records if self.multiplicity is None else int(self.multiplicity.sum())

    def alone(self, columns: Sequence[Coded], records: Ints | None = None) -> Bools:
        """Which records (all, or some) have a combination of codes that only one person has: (records,)."""
        of = [Coded(codes if records is None else codes[records], width) for codes, width in columns]
        person, rows = (x if x is None or records is None else x[records] for x in (self.person, self.multiplicity))
        length = self.records if records is None else len(records)
        if person is None and math.prod(column.width for column in of) < _WIDEST:
            once = _once(_key(of, length), math.prod(column.width for column in of))
            return once if rows is None else once & (rows == 1)
        number, first = combine(list(of), length)
        if person is not None:
            shared = counted(number, person != person[first][number], len(first)) > 0
            return np.asarray(~shared[number])
        return np.asarray((counted(number, rows, len(first)) == 1)[number])

    def people(self, records: Bools | Ints) -> int:
        """How many people these records, each of one person alone, are about."""
        if self.person is not None:
            return len(np.unique(self.person[records]))
        return int(records.sum()) if records.dtype == bool else len(records)

    def count(self, records: Ints) -> int:
        """How many people any records are about."""
        rows = self.multiplicity
        return self.people(records) if self.person is not None or rows is None else int(rows[records].sum())


def _key(columns: Sequence[Coded], records: int) -> Ints:
    """A number for each combination of codes."""
    key = np.zeros(records, dtype=np.int64)
    for codes, width in columns:
        key *= width
        key += codes
    return key


def _once(key: Ints, width: int) -> Bools:
    """Which keys, all below the width, occur once; a table of hashes decides it where there are too many.

    Of the records at one place of the table the last one stands in it, and all others are compared with it. Equal ones
    occur twice; if none is equal, its key occurs once. Only those with another key than that go on to the next round.
    """
    size = max(len(key), 1).bit_length() + 2
    if width <= 1 << size:
        return np.asarray(np.bincount(key)[key] == 1)
    once, left, factor = np.zeros(len(key), dtype=bool), np.arange(len(key)), _ODD
    table = np.zeros(1 << size, dtype=np.int32)
    while len(left):
        own = key[left]
        place = ((own.view(np.uint64) * np.uint64(factor)) >> np.uint64(64 - size)).view(np.int64)
        here = np.arange(len(left), dtype=np.int32)
        table[place] = here
        last = table[place]
        is_last = last == here
        equal = (own[last] == own) & ~is_last
        alone = is_last.copy()
        alone[last[equal]] = False
        once[left[alone]] = True
        left = left[~is_last & ~equal]
        factor = factor * _ODD % 2**64  # odd again, and another one
    return once


class Spread(NamedTuple):
    """How far columns tell rows apart (Motwani and Xu 2007)."""

    distinct: int  # values, or combinations of them
    unique: int  # people who are the only ones with theirs
    distinction: float  # distinct values / rows
    separation: float  # the share of pairs of rows that differ


def spread(columns: Sequence[Coded], everybody: Everybody) -> Spread:
    """How far these columns together tell rows apart; a missing value is a value here."""
    number, first = combine(list(columns), everybody.records)
    size, rows = counted(number, everybody.multiplicity, len(first)), everybody.rows
    alike = sum(
        int(n) * (int(n) - 1) * int(times) for n, times in zip(*np.unique(size, return_counts=True), strict=True)
    )
    separation = 1 - alike / (rows * (rows - 1)) if rows > 1 else 0.0
    return Spread(len(first), everybody.people(everybody.alone(columns)), len(first) / rows, separation)


def certainty(quasi: Sequence[Coded], sensitive: Coded, missing: bool, everybody: Everybody) -> float:
    """The share of the people with a known value in whose group, by the quasi-identifiers, all known values are equal.

    `missing` says whether the last code is the missing value.
    """
    known = np.flatnonzero(sensitive.codes < sensitive.width - missing)
    number, first = combine([(column.codes[known], column.width) for column in quasi], len(known))
    codes = sensitive.codes[known].astype(np.int64)
    alike = counted(number, codes != codes[first][number], len(first)) == 0
    return everybody.count(known[alike[number]]) / max(everybody.count(known), 1)


@dataclass(frozen=True)
class UniqueSet:
    """Columns that make people unique none of which can be left out, and the number of people whom they do so."""

    columns: tuple[str, ...]
    people: int


@dataclass(frozen=True)
class Uniques:
    """Minimal sample uniques: for each person the smallest sets of columns by which nobody else is like them."""

    searched: tuple[str, ...]  # all their sets of up to `LARGEST` columns were looked at
    paired: tuple[str, ...]  # of these the pairs alone, since there are too many sets of more
    sets: tuple[UniqueSet, ...]  # those that make somebody unique, the most telling first
    by_size: tuple[int, ...]  # people who are unique by at most 1, 2, … of the searched columns

    def score(self, size: int) -> int:
        """What a set of this size counts, ∏ (columns − i) for i from its size to `LARGEST` (SUDA)."""
        every = len(self.searched)
        return math.prod(every - i for i in range(size, min(LARGEST, every - 1) + 1))

    def contributions(self) -> dict[str, float]:
        """The share of all scores that the sets with a column have; 0 for all where nobody is unique."""
        own = [(one.columns, self.score(len(one.columns)) * one.people) for one in self.sets]
        within = [(columns, score) for columns, score in own if {*columns} <= {*self.searched}]
        total = sum(score for _, score in within)
        return {
            name: sum(score for columns, score in within if name in columns) / total if total else 0.0
            for name in self.searched
        }

    def lines(self, people: int, *, sets: bool = True) -> list[str]:
        """The figures in words, with the first sets unless they are shown elsewhere; `people` is everybody."""
        many = len(self.searched)
        told = [
            f"by at most {size} of {many} columns: {share_of(n, people)} people"
            for size, n in enumerate(self.by_size, 1)
        ]
        if sets:
            told += [f"{' + '.join(one.columns)}: {one.people:,}" for one in self.sets[:SHOWN]]
            told += [f"and {len(self.sets) - SHOWN:,} further sets of columns"] if len(self.sets) > SHOWN else []
        if self.paired:
            told.append(f"of {listed(self.paired)} pairs alone were searched: there are too many larger sets")
        return told


def share_of(people: int, everybody: int) -> str:
    """A number of people with its share of all."""
    return f"{people:,} ({percent(people / everybody)})"


def minimal_uniques(columns: dict[str, Coded], everybody: Everybody, *, work: int = WORK) -> Uniques:
    """The minimal sets of up to four columns that make somebody unique; of the last columns only pairs, if there are
    too many for all sets: columns come in the order of their importance.

    Who is unique by a part of a set is left out before the set is looked at. That is exact: a record that equals
    another one in the set equals it in every part, so that neither was left out.
    """
    names = list(columns)
    many = _affordable(len(names), everybody.records, work)
    searched, sets, by_size = names[:many], [], []
    found = np.zeros(everybody.records, dtype=bool)
    below: dict[tuple[str, ...], Bools] = {(): found.copy()}
    for size in range(1, min(LARGEST, many) + 1):
        here: dict[tuple[str, ...], Bools] = {}
        for chosen in combinations(searched, size):
            known, records = _new(chosen, columns, everybody, (below[part] for part in combinations(chosen, size - 1)))
            sets += [UniqueSet(chosen, everybody.people(records))] if len(records) else []
            known[records] = True
            found[records] = True
            here[chosen] = known
        below = here
        by_size.append(everybody.people(found))
        if size == 1 and many < len(names):
            sets += _pairs(names, many, columns, everybody, {name: known for (name,), known in here.items()})
    ranked = sorted(sets, key=lambda one: (len(one.columns), -one.people, one.columns))
    return Uniques(tuple(searched), tuple(names[many:]), tuple(ranked), tuple(by_size))


def _affordable(columns: int, records: int, work: int) -> int:
    """How many columns all sets of up to four can be looked at of; never fewer than four."""
    sets = [math.comb(many, 3) + math.comb(many, 4) for many in range(columns + 1)]
    return max(many for many in range(columns + 1) if many <= LARGEST or sets[many] * (records + _EACH) <= work)


def _new(
    chosen: Sequence[str], columns: dict[str, Coded], everybody: Everybody, parts: Iterable[Bools]
) -> tuple[Bools, Ints]:
    """Which records are unique by a part of the set already, and those that the set itself makes unique."""
    known = np.zeros(everybody.records, dtype=bool)
    for part in parts:
        known |= part
    records = np.flatnonzero(~known)
    if len(records) == 0:
        return known, records
    return known, records[everybody.alone([columns[name] for name in chosen], records)]


def _pairs(
    names: list[str], many: int, columns: dict[str, Coded], everybody: Everybody, known: dict[str, Bools]
) -> list[UniqueSet]:
    """The columns beyond those that are searched, alone and in all pairs; `known` is who is unique by one column."""
    sets = []
    for name in names[many:]:
        known[name], records = _new([name], columns, everybody, ())
        known[name][records] = True
        sets.append(UniqueSet((name,), everybody.people(records)))
    for pair in combinations(names, 2):
        if pair[1] in names[many:]:
            _, records = _new(pair, columns, everybody, (known[name] for name in pair))
            sets.append(UniqueSet(pair, everybody.people(records)))
    return [one for one in sets if one.people]


def too_telling(columns: Mapping[str, Coded], everybody: Everybody) -> list[str]:
    """The columns to leave out, the most telling ones, so that the others together tell not nearly everybody apart."""
    people = everybody.count(np.arange(everybody.records))
    left = dict(columns)
    while len(left) > 1 and tells_apart(spread(list(left.values()), everybody).distinct, people):
        del left[max(left, key=lambda name: spread([left[name]], everybody).distinct)]
    return [name for name in columns if name not in left]
