"""Several tables about the same people as one estimate: in each link as even as all of the tables allow."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from jali.core.arrays import Floats, Ints, added, combine, pairs_of, portions, sorted_by, starts
from jali.cover.cover import DECLARE, Cover
from jali.cover.overlap import fits, members
from jali.errors import InputError, UndeterminedError
from jali.estimates.base import Count, condition_of, names_of, place_of, table_of, undetermined
from jali.estimates.boxes import BoxEstimate
from jali.estimates.conditions import BoxColumn
from jali.estimates.linked import LinkedEstimate
from jali.query.match import numbered
from jali.query.tree import Condition, columns

LARGEST = 1 << 26  # pairs of nodes, and their members


class Met(NamedTuple):
    """The common parts of the nodes of two covers of one column."""

    cover: Cover
    node: Ints  # (nodes of the first, nodes of the second) the node that is their common part; -1 where it is empty


def meet(one: Cover, two: Cover) -> Met | None:
    """The common parts of sets of known values, or of intervals of whole numbers; None for other covers.

    Values of a node must be equally likely: nothing is said here of cells that are masked, unknown or distributions.
    """
    if one.nodes * two.nodes > LARGEST:
        return None
    if one.listed is not None and two.listed is not None and one.listed.even and two.listed.even:
        return _of_sets(one, two)
    return _of_intervals(one, two) if _spanned(one) and _spanned(two) else None


def sizes(cover: Cover) -> Floats:
    """How many values each node of such a cover has: (nodes,)."""
    span = np.where(np.isnan(cover.low), 1.0, cover.high - cover.low + 1)
    return span if cover.listed is None else np.diff(cover.start).astype(np.float64)


def _spanned(cover: Cover) -> bool:
    """Whether every node is an interval of whole numbers, or the missing value."""
    missing = np.arange(cover.nodes) == (-1 if cover.missing is None else cover.missing)
    return cover.whole and cover.guessed is None and not cover.open and bool((~np.isnan(cover.low) | missing).all())


def _of_intervals(one: Cover, two: Cover) -> Met:
    low, high = np.fmax.outer(one.low, two.low), np.fmin.outer(one.high, two.high)
    both = ~(np.isnan(one.low)[:, None] | np.isnan(two.low))
    node = np.full(low.shape, -1, dtype=np.int64)
    there = np.nonzero(both & (low <= high))
    first, last = low[there], high[there]
    ends = np.unique(np.concatenate([first, last]))
    number, example = combine([(np.searchsorted(ends, end), len(ends)) for end in (first, last)], len(first))
    node[there] = number
    lows, highs, missing = first[example], last[example], None
    if one.missing is not None and two.missing is not None:
        node[one.missing, two.missing] = missing = len(example)
        lows, highs = (np.concatenate([each, [np.nan]]) for each in (lows, highs))
    return Met(Cover.intervals(lows, highs, True, one.kind or "number", missing), node)


def _of_sets(one: Cover, two: Cover) -> Met | None:
    assert one.values is not None
    first, second = members(one) > 0, fits(two, one.values).T > 0  # (nodes, values of the first)
    there = np.nonzero(first.astype(np.float32) @ second.astype(np.float32).T)
    if len(there[0]) * len(one.values) > LARGEST:
        return None
    both = first[there[0]] & second[there[1]]
    number, example = numbered(both)
    node = np.full((one.nodes, two.nodes), -1, dtype=np.int64)
    node[there] = number
    held = both[example]
    return Met(Cover.sets(one.values, starts(held.sum(axis=1)), np.nonzero(held)[1]), node)


EVENLY = "within a batch people are spread as evenly as all tables together allow (maximum entropy)"


@dataclass(frozen=True, eq=False)
class SeveralEstimate:
    """Estimates of tables about the same people, of which the first has every column.

    All tables that `together` can join are one estimate of maximum entropy. A question is asked of it if it uses the
    table that has all columns of the question and the fewest others, else of that table (ANGEL paper, end of Section
    5). Bounds are those that every table with these columns leaves open.
    """

    parts: tuple[LinkedEstimate | BoxEstimate, ...]

    def __post_init__(self) -> None:
        every = {column.name for part in self.parts for column in part.columns}
        if not self.parts or {column.name for column in self.parts[0].columns} != every:
            raise InputError("several tables: the first must have every column")

    @property
    def total(self) -> float:
        """The mass of all people."""
        return self.parts[0].total

    @cached_property
    def joined(self) -> Together | None:
        """The tables as one estimate, and which of them it uses; None where each is asked by itself."""
        return together(self.parts)

    def part(self, names: Sequence[str]) -> LinkedEstimate | BoxEstimate:
        """The table with the fewest columns that has all of these."""
        return self.parts[self._fitting(names)[0]]

    def _fitting(self, names: Sequence[str]) -> list[int]:
        """The tables that have all of these columns, that with the fewest first."""
        for name in names:
            place_of(name, [column.name for column in self.parts[0].columns])
        asked = {*names}
        fitting = [at for at, own in enumerate(self._names) if asked <= own]
        return sorted(fitting, key=lambda at: _quasi(self.parts[at]))

    def _best(self, names: Sequence[str]) -> LinkedEstimate | BoxEstimate:
        """The estimate that a question about these columns is asked of."""
        at = self._fitting(names)[0]
        joined = self.joined
        return joined.estimate if joined is not None and at in joined.used else self.parts[at]

    @cached_property
    def _names(self) -> tuple[frozenset[str], ...]:
        """The columns of each table."""
        return tuple(frozenset(column.name for column in part.columns) for part in self.parts)

    def count(self, condition: str | Condition | None = None, *, where: Mapping[str, object] | None = None) -> Count:
        """How many people satisfy the condition, with what is certain and possible of it."""
        asked = condition_of(condition, where)
        names = sorted(columns(asked))
        answers = [_answered(self.parts[at], asked) for at in self._fitting(names)]
        low, high = max(each.low for each in answers), min(each.high for each in answers)
        low = min(low, high)  # up to rounding
        alone, best = answers[0], self._best(names)
        if isinstance(alone, UndeterminedError):
            raise undetermined(alone.columns, low, high, do=DECLARE)
        if low == high or best is self.part(names):
            return Count(min(max(alone, low), high), low=low, high=high, assumes=alone.assumes if low < high else ())
        assert isinstance(best, LinkedEstimate)  # the joined one
        value = best.expected(asked)
        return Count(min(max(value, low), high), low=low, high=high, assumes=(EVENLY, *alone.assumes))

    def expected(self, asked: Condition) -> float:
        """The number that `count` has; the bounds of several tables can change it, those of a single one cannot."""
        value = self.parts[0].expected(asked) if len(self.parts) == 1 else math.nan
        return float(self.count(asked)) if math.isnan(value) else value

    def probability(self, cells: Any) -> Floats:
        """The probability of each cell, given by exact values of some columns (None is the missing value): (cells,)."""
        table = table_of(cells)
        return self._best(table.column_names).probability(table)

    def frame(self, columns: Sequence[str], kind: str | None = None) -> Any:
        """The joint table of some columns at exact values, with a `count`; sums to the total."""
        names = names_of(columns)
        return self._best(names).frame(names, kind)

    def sample(self, n: int | None = None, *, seed: int | np.random.Generator) -> pa.Table:
        """People drawn from the estimate; without n the rows of the first table, a value for each cell."""
        every = [column.name for column in self.parts[0].columns]
        return (self.parts[0] if n is None else self._best(every)).sample(n, seed=seed)

    def __repr__(self) -> str:
        used = (0,) if self.joined is None else self.joined.used
        told = ["" if at in used else ", asked by itself" for at in range(len(self.parts))]
        lines = [f"  {part!r}{alone}" for part, alone in zip(self.parts, told, strict=True)]
        return "\n".join([f"SeveralEstimate({len(self.parts)} tables)", *lines])


def _answered(part: LinkedEstimate | BoxEstimate, asked: Condition) -> Count | UndeterminedError:
    """The count of one table, or its bounds where there is none."""
    try:
        return part.count(asked)
    except UndeterminedError as problem:
        return problem


def _quasi(part: LinkedEstimate | BoxEstimate) -> int:
    """How many columns the boxes of a table have."""
    return len(part.shown if isinstance(part, LinkedEstimate) else part.columns)


Part = LinkedEstimate | BoxEstimate

TUPLES = 1 << 20
"""The most tuples of boxes: a table that would make more of them is asked by itself."""
PAIRS = 1 << 24
"""The most pairs of a tuple and a box that are looked at when a table is added."""
SWEEPS = 200
"""How often each table is fitted at the most."""
CLOSE = 1e-9
"""Fitting ends when no box has more or fewer people than were published by more than this part."""


class Together(NamedTuple):
    """The estimate of several tables, and which of them it uses."""

    estimate: LinkedEstimate
    used: tuple[int, ...]


class _Tuples(NamedTuple):
    """Tuples of boxes that can hold the same person."""

    link: Ints  # (tuples,)
    columns: dict[str, tuple[Cover, Ints]]  # what the boxes have in common, and its node for each tuple: (tuples,)
    box: dict[int, Ints]  # by table, the box of each tuple: (tuples,)


def together(parts: Sequence[Part]) -> Together | None:
    """The tables as one estimate, as many of them as can be joined; None where it is none but the first.

    The first has every column. A table is left out if its cells are not sets of equally likely values or intervals of
    whole numbers, if it shows weights, or if joining it would take more than TUPLES tuples or PAIRS pairs.
    """
    first = parts[0]
    if not isinstance(first, LinkedEstimate):
        return None
    columns = {c.name: (c.cover, c.codes.astype(np.int64)) for c in first.shown}
    tuples = _Tuples(first.link, columns, {0: np.arange(len(first.link))})
    for at, part in enumerate(parts[1:], 1):
        weighted = isinstance(part, BoxEstimate) and first.weight is not None
        tuples = (None if weighted else _joined(tuples, at, part, len(first.size))) or tuples
    if len(tuples.box) == 1:
        return None
    mass = _fitted(tuples, parts)
    return None if mass is None else Together(_estimate(first, tuples, mass), tuple(tuples.box))


def _joined(tuples: _Tuples, at: int, part: Part, links: int) -> _Tuples | None:
    """The tuples with a box of one more table each; None where that cannot be done."""
    shown = part.shown if isinstance(part, LinkedEstimate) else part.columns
    met: dict[str, Met] = {}
    for column in shown:
        common = meet(tuples.columns[column.name][0], column.cover)
        if common is None:
            return None
        met[column.name] = common
    pairs = _fitting(tuples, part, met, links)
    if pairs is None:
        return None
    left, right = pairs
    columns = {name: (cover, node[left]) for name, (cover, node) in tuples.columns.items()}
    for column in shown:
        node = met[column.name].node[columns[column.name][1], column.codes[right]]
        columns[column.name] = (met[column.name].cover, node)
    boxes = {table: box[left] for table, box in tuples.box.items()}
    return _Tuples(tuples.link[left], columns, boxes | {at: right})


def _fitting(tuples: _Tuples, part: Part, met: Mapping[str, Met], links: int) -> tuple[Ints, Ints] | None:
    """Pairs of a tuple and a box of the table, of one link, that have values in common; None if too many."""
    if isinstance(part, LinkedEstimate):
        (order, begin), link = sorted_by(part.link, links), tuples.link
    else:  # a table without links: any of its boxes may be that of anybody
        order, begin, link = np.arange(len(part.mass)), np.array([0, len(part.mass)]), np.zeros_like(tuples.link)
    pairs = np.diff(begin)[link]
    if int(pairs.sum()) > PAIRS:
        return None
    codes = {column.name: column.codes for column in part.columns}
    kept: list[tuple[Ints, Ints]] = []
    for some in portions(pairs):
        left, right = pairs_of(begin, link[some])
        left, right = some.start + left, order[right]
        for name, common in met.items():
            fits = common.node[tuples.columns[name][1][left], codes[name][right]] >= 0
            left, right = left[fits], right[fits]
        kept.append((left, right))
        if sum(len(each) for each, _ in kept) > TUPLES:
            return None
    return np.concatenate([left for left, _ in kept]), np.concatenate([right for _, right in kept])


def _fitted(tuples: _Tuples, parts: Sequence[Part]) -> Floats | None:
    """How many people each tuple has at maximum entropy: (tuples,). None where the tables contradict each other.

    The first table is fitted first and last, so that every link has its people whenever the fitting ends.
    """
    mass = np.ones(len(tuples.link))
    for cover, node in tuples.columns.values():
        mass *= sizes(cover)[node]
    people = {at: _people(parts[at]) for at in tuples.box}
    order = [*list(tuples.box)[1:], 0]
    for at in [0, *(SWEEPS * order)]:
        there = added(tuples.box[at], mass, len(people[at]))
        if (there <= 0).any():
            return None
        factor = people[at] / there
        mass = mass * factor[tuples.box[at]]
        if at == 0 and _close(tuples, mass, people):
            break
    return mass


def _close(tuples: _Tuples, mass: Floats, people: dict[int, Floats]) -> bool:
    """Whether every box of every table has the people that were published."""
    return all(
        bool((np.abs(added(box, mass, len(people[at])) - people[at]) <= CLOSE * people[at]).all())
        for at, box in tuples.box.items()
    )


def _people(part: Part) -> Floats:
    return part.people.astype(np.float64) if isinstance(part, LinkedEstimate) else part.mass


def _estimate(first: LinkedEstimate, tuples: _Tuples, mass: Floats) -> LinkedEstimate:
    """The tuples as the boxes of one table; those that show the same in one link are one."""
    covers = [tuples.columns[column.name] for column in first.shown]
    keys = [(node, cover.nodes) for cover, node in covers]
    number, example = combine([*keys, (tuples.link, len(first.size))], len(mass))
    shown = tuple(
        BoxColumn(column.name, column.kind, column.role, cover, node[example])
        for column, (cover, node) in zip(first.shown, covers, strict=True)
    )
    people = added(number, mass, len(example))
    kept = people > 0  # fitting may bring a tuple that nobody can be in down to nothing
    shown = tuple(replace(column, codes=column.codes[kept]) for column in shown)
    return replace(first, shown=shown, link=tuples.link[example][kept], people=people[kept], order=None, cells=None)
