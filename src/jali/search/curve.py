"""Batches along a curve: records that are neighbours on a Hilbert curve over the quasi-identifiers stand together.

A batch need not be a box, so it can be cut from one long line of records. The line is cut in the middle as long as both
halves keep every promise. Where the middle lies depends on nobody's sensitive value, so a piece that is left whole says
that one of its halves failed, never which (docs/decisions/0016).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from jali.encoding.table import Table
from jali.errors import InputError
from jali.principles.base import Combined, Principle, hold, principles_of
from jali.principles.counts import Bools, Ints
from jali.progress import Step
from jali.search.feasible import require_feasible
from jali.search.hilbert import MOST_BITS, hilbert
from jali.search.mondrian_plan import Columns, Items, columns_of, items_of

_FINEST = 20  # bits of a coordinate: more than a column has values in practice


@dataclass(frozen=True, eq=False)
class Batches:
    """Which batch each record is in; every batch keeps every promise."""

    batch: Ints  # (records,) numbered along the curve
    batches: int


def batches_along(
    table: Table,
    principles: Principle | Combined | Iterable[Principle | Combined],
    turns: Ints,
    *,
    on_step: Step | None = None,
) -> Batches:
    """Halve the table's records, in the order of a Hilbert curve, as long as both halves keep every promise.

    Records of one combination follow each other by their `turns`, (records,): an order that nobody can repeat.
    `on_step` hears how many records are in finished batches, and of how many.
    """
    required = principles_of(principles)
    if any(p.scope == "table" for p in required):
        raise InputError("batches are judged one by one", do="leave out principles about all groups at once")
    items = items_of(table, "relaxed")
    require_feasible(required, items.whole)
    order = along_curve(columns_of(table), items, turns)
    number = _halved(items, order, required, on_step or (lambda done, total: None))
    assert items.record is not None  # the items of a relaxed partitioning are records
    batch = np.empty(table.records, dtype=np.int64)
    batch[items.record[order]] = number
    return Batches(batch, int(number[-1]) + 1)


def along_curve(columns: Columns, items: Items, turns: Ints) -> Ints:
    """The items in the order of the curve; which of one combination comes first depends on nobody's value: (items,)."""
    bits = max(1, min(MOST_BITS // len(columns.size), _FINEST))
    point = (columns.place.T.astype(np.int64) << bits) // columns.size
    place = hilbert(point, bits)[items.combination]
    assert items.record is not None  # the items of a relaxed partitioning are records
    return np.lexsort((turns[items.record], items.combination, place)).astype(np.int64)


def _halved(items: Items, order: Ints, principles: tuple[Principle, ...], step: Step) -> Ints:
    """The piece of each item along the line: (items,). All pieces of a generation are judged together."""
    starts = np.array([0, len(order)], dtype=np.int64)  # (pieces + 1,)
    whole = np.zeros(1, dtype=bool)  # (pieces,) which are not to be cut any more
    while not whole.all():
        cut = np.flatnonzero(~whole & (np.diff(starts) > 1))
        edges = np.stack([starts[cut], (starts[cut] + starts[cut + 1]) // 2, starts[cut + 1]], axis=1)  # (pieces, 3)
        may = _both_hold(items, order, principles, edges)
        cut, middle = cut[may], edges[may, 1]
        fresh = np.zeros(len(whole), dtype=bool)
        fresh[cut] = True
        starts = np.insert(starts, cut + 1, middle)
        whole = ~np.repeat(fresh, 1 + fresh)
        step(int(np.diff(starts)[whole].sum()), len(order))
    return np.repeat(np.arange(len(whole)), np.diff(starts))


def _both_hold(items: Items, order: Ints, principles: tuple[Principle, ...], edges: Ints) -> Bools:
    """Whether both halves of each piece, between its edges, keep every promise: (pieces,)."""
    length = np.diff(edges, axis=1).ravel()
    half = np.repeat(np.arange(len(length)), length)
    place = np.arange(len(half)) + np.repeat(edges[:, :2].ravel() - np.cumsum(length) + length, length)
    holds = hold(principles, items.counts(order[place], half, len(length)))
    return np.asarray(holds.reshape(-1, 2).all(axis=1))
