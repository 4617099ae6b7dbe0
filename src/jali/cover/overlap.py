"""Overlap: how many values the cells of two releases may both stand for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np
import pyarrow as pa

from jali.core.arrays import Bools, Floats, Ints, owners, steps
from jali.cover.cover import Cover
from jali.cover.masks import HIDDEN, alphabet
from jali.cover.sets import Spans, index_among
from jali.encoding import values as v


def overlap(one: Cover, two: Cover) -> Floats:
    """How many values each node of one column and each node of another may both stand for: (nodes, nodes).

    Intervals of fractions have their length in common (a single fraction counts as one value), masked texts every text
    that fits both. A node that may be anything has in common with another all that the other may be. It is 0 only
    where no value at all fits both.
    """
    letters = alphabet([*(one.masks or ()), *(two.masks or ())])
    common = np.zeros((one.nodes, two.nodes))
    held_by_one, held_by_two = _listed(one), _listed(two)
    if held_by_two.any():
        assert two.values is not None
        common[:, held_by_two] = (members(two)[held_by_two] @ fits(one, two.values)).T
    if held_by_one.any():
        assert one.values is not None
        common[held_by_one] = members(one)[held_by_one] @ fits(two, one.values)
    common += _spans(one, two)
    _put_masks(common, one, two, letters)
    if one.missing is not None and two.missing is not None:
        common[one.missing, two.missing] = 1
    size_one, size_two = _sizes(one, letters), _sizes(two, letters)
    any_one, any_two = one.anything, two.anything
    common[any_one] = size_two
    common[:, any_two] = size_one[:, None]
    common[np.ix_(any_one, any_two)] = max(1.0, _all(one, size_one), _all(two, size_two))
    return common


def in_all(covers: Sequence[Cover], nodes: Ints) -> Bools:
    """Whether some value is covered by all of these nodes at once, one of each cover: (tuples,).

    `nodes` is (tuples, covers).
    Intervals that meet two by two have a value in common, and so have masks. Sets need not: {a, b}, {b, c}, {a, c}.
    """
    meet = np.ones(len(nodes), dtype=bool)
    for i, j in combinations(range(len(covers)), 2):
        meet &= overlap(covers[i], covers[j])[nodes[:, i], nodes[:, j]] > 0
    left = meet.copy() if len(covers) > 2 else np.zeros_like(meet)  # to be looked at value by value
    for i, cover in enumerate(covers):
        here = np.flatnonzero(left & _listed(cover)[nodes[:, i]])
        if len(here) == 0:
            continue
        assert cover.values is not None
        may = [_may_be(other, cover.values) for other in covers]
        may[i] = members(cover).T > 0
        for some in (here[part] for part in steps(len(here), len(cover.values) or 1)):
            meet[some] = np.logical_and.reduce([m[:, nodes[some, at]] for at, m in enumerate(may)]).any(axis=0)
        left[here] = False
    return meet


def _may_be(cover: Cover, values: pa.Array) -> Bools:
    """Whether each value may be what each node stands for: (values, nodes)."""
    may: Bools = fits(cover, values) > 0
    may[:, cover.anything] = True
    return may


def _listed(cover: Cover) -> Bools:
    """Which nodes are sets of known values: (nodes,)."""
    listed: Bools = np.diff(cover.start) > 0
    return listed


def members(cover: Cover) -> Floats:
    """Whether each node lists each known value: (nodes, values)."""
    assert cover.values is not None
    listed = np.zeros((cover.nodes, len(cover.values)))
    listed[owners(np.diff(cover.start)), cover.member] = 1
    return listed


def fits(cover: Cover, values: pa.Array) -> Floats:
    """Whether each value may be what each node, unless it may be anything, stands for: (values, nodes)."""
    fitting = np.zeros((len(values), cover.nodes))
    if cover.values is not None and len(cover.member):
        index = index_among(cover.values, values)
        fitting[index >= 0] = members(cover)[:, index[index >= 0]].T
    spanned, numbers = np.flatnonzero(~np.isnan(cover.low)), v.numbers(values)
    if len(spanned) and numbers is not None:
        value, node, _ = Spans(cover.low[spanned], cover.high[spanned], cover.whole).density(numbers)
        fitting[value, spanned[node]] = 1
    if cover.masks is not None:
        texts = values.cast(pa.string()).to_pylist()
        for masked, mask in _masked(cover):
            fitting[:, masked] = [text is not None and _agree(text, mask) for text in texts]
    if cover.missing is not None:
        fitting[:, cover.missing] = values.is_null().to_numpy(zero_copy_only=False)
    return fitting


def _agree(one: str, two: str) -> bool:
    """Whether two masked texts can be the same: a hidden character can be any."""
    return len(one) == len(two) and all(a == b or HIDDEN in (a, b) for a, b in zip(one, two, strict=True))


def _masked(cover: Cover) -> Iterable[tuple[int, str]]:
    return ((node, mask) for node, mask in enumerate(cover.masks or ()) if mask is not None)


def _put_masks(found: Floats, one: Cover, two: Cover, letters: str) -> None:
    for a, mask in _masked(one):
        for b, other in _masked(two):
            if _agree(mask, other):
                hidden = sum(x == y == HIDDEN for x, y in zip(mask, other, strict=True))
                found[a, b] = float(len(letters)) ** hidden


def _spans(one: Cover, two: Cover) -> Floats:
    """What intervals have in common; 0 for other nodes: (nodes, nodes)."""
    low = np.fmax.outer(one.low, two.low)
    high = np.fmin.outer(one.high, two.high)
    either = np.isnan(one.low)[:, None] | np.isnan(two.low)
    if one.whole and two.whole:
        size = high - low + 1
    elif one.whole or two.whole:  # whole numbers in [low, high), or at a single point
        whole, part = (one, two) if one.whole else (two, one)
        last = np.where(part.high > part.low, np.ceil(part.high) - 1, part.high)
        first = np.fmax.outer(whole.low, np.ceil(part.low))
        size = np.fmin.outer(whole.high, last) - first + 1
        size = size if one.whole else size.T
    else:
        point = (one.low == one.high)[:, None] | (two.low == two.high)
        inside = _holds_point(one, low) & _holds_point(two, low.T).T
        size = np.where(point, inside, high - low)
    return np.where(either, 0.0, np.maximum(size, 0.0))


def _holds_point(cover: Cover, point: Floats) -> Bools:
    """Whether intervals of fractions hold the points of their row: (nodes, others)."""
    low, high = cover.low[:, None], cover.high[:, None]
    holds: Bools = (low <= point) & ((point < high) | ((low == high) & (point == low)))
    return holds


def _sizes(cover: Cover, letters: str) -> Floats:
    """How many values each known node may stand for, 0 for the others: (nodes,)."""
    length = cover.high - cover.low
    spanned = length + 1 if cover.whole else np.where(length > 0, length, 1.0)
    size = np.where(np.isnan(cover.low), np.diff(cover.start), spanned)
    for node, mask in _masked(cover):
        size[node] = float(len(letters)) ** mask.count(HIDDEN)
    if cover.missing is not None:
        size[cover.missing] = 1
    return size


def _all(cover: Cover, size: Floats) -> float:
    """How many values all nodes together may stand for, as far as it is known."""
    spanned = ~np.isnan(cover.low)
    span = 0.0
    if spanned.any():
        span = float(cover.high[spanned].max() - cover.low[spanned].min()) + cover.whole
    other = float(size[~spanned & ~_listed(cover)].sum())
    return len(np.unique(cover.member)) + span + other
