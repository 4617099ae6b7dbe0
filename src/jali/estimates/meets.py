"""What the cells of two tables have in common: each pair of nodes of one column as a node of a finer cover."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow.compute as pc

from jali.encoding.frequencies import combine
from jali.estimates.cover import Cover
from jali.estimates.domain import comparable
from jali.estimates.patterns import Bools, Floats, Ints, numbered

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
    return cover.whole and cover.guessed is None and bool((~np.isnan(cover.low) | missing).all())


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
    assert two.values is not None
    known, asked = comparable(one.values, two.values)
    index = pc.index_in(asked, value_set=known).fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    first = _held(one, np.arange(len(one.values)), len(one.values))
    second = _held(two, index, len(one.values))
    there = np.nonzero(first.astype(np.float32) @ second.astype(np.float32).T)
    if len(there[0]) * len(one.values) > LARGEST:
        return None
    number, example = numbered(first[there[0]] & second[there[1]])
    node = np.full((one.nodes, two.nodes), -1, dtype=np.int64)
    node[there] = number
    held = (first[there[0]] & second[there[1]])[example]
    return Met(Cover.sets(one.values, np.concatenate([[0], np.cumsum(held.sum(axis=1))]), np.nonzero(held)[1]), node)


def _held(cover: Cover, index: Ints, values: int) -> Bools:
    """Whether each node holds each value; `index` says where the cover's values stand, -1 for nowhere."""
    held = np.zeros((cover.nodes, values), dtype=np.bool_)
    at = index[cover.member]
    node = np.repeat(np.arange(cover.nodes), np.diff(cover.start))
    held[node[at >= 0], at[at >= 0]] = True
    return held
