"""Columns that two tables of an ANGEL release share: cells without a common value have nobody in common."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jali.estimates.overlap import overlap
from jali.principles.counts import Bools, Ints
from jali.releases.angel_tables import GroupTable

AT_ONCE = 4_000_000  # pairs of cells
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
                    found.append(Common(meets, column.codes[one.cells[1]], other.codes[two.cells[1]]))
    return found


def meeting(
    one: tuple[Ints, Ints], two: tuple[Ints, Ints], common: Sequence[Common], batches: int
) -> Iterator[tuple[Ints, Ints]]:
    """Pairs of entries, one of each table, of one batch whose cells can hold the same person, some at a time.

    An entry is a batch and a cell: `one` and `two` are the batches (sorted) and the cells of all entries.
    """
    begin = np.searchsorted(two[0], np.arange(batches + 1))
    size = np.diff(begin)[one[0]]
    upto = np.concatenate([[0], np.cumsum(size)])
    cuts = np.searchsorted(upto, np.arange(AT_ONCE, int(upto[-1]), AT_ONCE))
    for a, b in pairwise(np.unique([0, *cuts.tolist(), len(size)]).tolist()):
        first = np.repeat(np.arange(a, b), size[a:b])
        second = np.repeat(begin[one[0][a:b]] - upto[a:b], size[a:b]) + np.arange(upto[a], upto[b])
        for column in common:
            fits = column.meets[column.first[one[1][first]], column.second[two[1][second]]]
            first, second = first[fits], second[fits]
        yield first, second
