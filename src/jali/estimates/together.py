"""Several tables about the same people as one estimate: in each link as even as all of the tables allow.

Everybody is in one box of each table. A tuple of boxes, one of each table, that have values in common is a finer box.
How many people are in which tuple is not published, only how many of each link are in each box of a table. Of all
numbers that agree with that, those of maximum entropy, spread evenly over the values of each tuple, are found by
iterative proportional fitting, from what the first table says alone. Every step brings them nearer to the truth,
whatever that is (docs/decisions/0028).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from jali.encoding.frequencies import combine
from jali.estimates.boxes import BoxEstimate
from jali.estimates.cover import Cover
from jali.estimates.expand import BoxColumn
from jali.estimates.holding import runs
from jali.estimates.linked import LinkedEstimate
from jali.estimates.meets import Met, meet, sizes
from jali.estimates.patterns import Floats, Ints, added
from jali.estimates.within import portions

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
    found = _Tuples(first.link, columns, {0: np.arange(len(first.link))})
    for at, part in enumerate(parts[1:], 1):
        weighted = isinstance(part, BoxEstimate) and first.weight is not None
        found = (None if weighted else _joined(found, at, part, len(first.size))) or found
    if len(found.box) == 1:
        return None
    mass = _fitted(found, parts)
    return None if mass is None else Together(_estimate(first, found, mass), tuple(found.box))


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
        order = np.argsort(part.link, kind="stable")
        begin, link = np.searchsorted(part.link[order], np.arange(links + 1)), tuples.link
    else:  # a table without links: any of its boxes may be that of anybody
        order, begin, link = np.arange(len(part.mass)), np.array([0, len(part.mass)]), np.zeros_like(tuples.link)
    pairs = np.diff(begin)[link]
    if int(pairs.sum()) > PAIRS:
        return None
    codes = {column.name: column.codes for column in part.columns}
    kept: list[tuple[Ints, Ints]] = []
    for some in portions(pairs):
        left = np.repeat(np.arange(len(link))[some], pairs[some])
        right = order[runs(begin[link[some]], pairs[some])]
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
    return replace(first, shown=shown, link=tuples.link[example][kept], people=people[kept], rows=None)
