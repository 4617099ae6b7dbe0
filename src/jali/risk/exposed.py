"""Exposed: of whom an attacker can be surest, how many people that is in all, and what a guess would be without."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jali.core.arrays import Ints, counted
from jali.principles.counts import Cells, Counts


@dataclass(frozen=True)
class Surest:
    """The group in which one value of a sensitive column is most frequent, and that value."""

    column: str
    value: str
    share: float  # of the group's people have it: what an attacker believes
    everybody: float | None  # of all published people have it; None where people can have several values
    group: int
    people: int  # of the group


@dataclass(frozen=True)
class Exposed:
    """Groups of which nearly everybody has one value: whoever finds somebody's group knows it."""

    column: str
    people: int
    groups: tuple[int, ...]  # the largest first
    sizes: tuple[int, ...]
    values: tuple[str, ...]  # that are known of them, the most people first
    certain: bool  # whether everybody in these groups has the value, not only nearly


def worst_of(cells: Cells, most: int) -> Ints:
    """The groups in which one value has the largest share; among equals the larger, then the earlier published."""
    share = cells.largest(cells.n) / np.maximum(cells.size, 1)
    order = np.lexsort((np.arange(cells.groups), -cells.size, -np.round(share, 12)))
    return order[cells.size[order] > 0][:most]


def surest(counts: Counts, column: str) -> Surest | None:
    """Of whom an attacker who finds the group can be surest; None where nobody's value is known."""
    cells = counts.known(column)
    if not (chosen := worst_of(cells, 1)).size:
        return None
    at = int(chosen[0])
    own = slice(int(cells.start[at]), int(cells.start[at + 1]))
    best = int(cells.n[own].argmax())
    value, all_people = int(cells.value[own][best]), max(int(cells.reference.sum()), 1)
    size = int(cells.size[at])
    return Surest(column, _text(cells, value), int(cells.n[own][best]) / max(size, 1),
                  None if cells.several else int(cells.reference[value]) / all_people, at, size)  # fmt: skip


def exposed(counts: Counts, column: str) -> Exposed:
    """The people whose group has (nearly) one value, by the share from which an audit calls it so."""
    cells = counts.known(column)
    largest = cells.largest(cells.n)
    which = np.flatnonzero((cells.size > 0) & (largest * 20 >= cells.size * 19))
    which = which[np.lexsort((which, -cells.size[which]))]
    order = np.lexsort((-cells.n, cells.group))  # each group's cells, its most frequent value first
    value = cells.value[order][cells.start[which]]
    people = counted(value, cells.size[which], len(cells.column))
    known = sorted(np.unique(value).tolist(), key=lambda at: (-int(people[at]), _text(cells, at)))
    values = tuple(_text(cells, at) for at in known)
    size = cells.size[which]
    return Exposed(column, int(size.sum()), tuple(which.tolist()), tuple(size.tolist()), values,
                   bool((largest[which] == size).all()))  # fmt: skip


def _text(cells: Cells, value: int) -> str:
    label = cells.column.labels[value]
    return "missing" if label is None else str(label)
