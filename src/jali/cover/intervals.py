"""Intervals of numbers and days: which part of each satisfies which tests, found at the tests' literals alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from jali.core.arrays import Bools, Floats, Ints
from jali.query.match import COMPARE, Part, folded, holds, numbered
from jali.query.tree import Scalar, Test, number_from

_DAY = timedelta(days=1)
_EPOCH = datetime(1970, 1, 1)


def parts(tests: Sequence[Test], nodes: Ints, low: Floats, high: Floats, *, whole: bool, kind: str) -> Part:
    """The patterns on intervals: closed sets of whole numbers, or [low, high) where values are fractions.

    A literal b cuts the line into what is below it, b itself, and what is above: with G(x) the share of an
    interval up to x, these have G(b-), G(b) - G(b-) and 1 - G(b). A single fraction has no share of an
    interval that is not a point, but is possible. An interval with low = high is that value.
    """
    points, truth = _pieces(tests, kind)
    number, first = numbered(truth)
    before = [_float(math.ceil(point) - 1 if whole else point) for point in points]
    upto = [_float(math.floor(point)) for point in points] if whole else before
    found = []
    step = max(1, 2**21 // len(truth))  # many literals on many intervals: some intervals at a time
    for at in range(0, max(len(nodes), 1), step):
        share, possible = _shares(before, upto, low[at : at + step], high[at : at + step], whole=whole)
        found.append(folded(number, share, possible))
    shares, possibles = zip(*found, strict=True)
    return Part(nodes, truth[first], np.concatenate(shares, axis=1), np.concatenate(possibles, axis=1))


def _shares(before: list[float], upto: list[float], low: Floats, high: Floats, *, whole: bool) -> tuple[Floats, Bools]:
    """The share of each interval in each piece, and whether it has any of it: (pieces, intervals)."""
    ends = np.stack([np.array(before), np.array(upto)], axis=1).reshape(-1, 1)
    edges = np.zeros((len(ends) + 2, len(low)))  # G before and at each point, between 0 and 1
    edges[-1] = 1.0
    size = high - low + 1 if whole else high - low
    with np.errstate(divide="ignore", invalid="ignore"):
        edges[1:-1] = np.clip((ends - low + whole) / size, 0.0, 1.0)
    if not whole:
        edges[1:-1:2] = np.where(size > 0, edges[1:-1:2], ends[::2] > low)
        edges[2:-1:2] = np.where(size > 0, edges[2:-1:2], ends[1::2] >= low)
    share = np.diff(edges, axis=0)
    possible = share > 0
    if not whole:
        possible[1::2] |= (low <= ends[::2]) & (ends[::2] < high)
    return share, possible


def universe(tests: Sequence[Test], kind: str) -> Bools:
    """The patterns that some number (or day) has: (patterns, tests)."""
    return _pieces(tests, kind)[1]


def _pieces(tests: Sequence[Test], kind: str) -> tuple[list[Fraction], Bools]:
    """The literals in order, and the truth on what lies below the first, at it, above it, at the second, and so on."""
    literals = [_literals(test, kind) for test in tests]
    points = sorted({point for found in literals for point in found})
    number = {point: 2 * i + 1 for i, point in enumerate(points)}
    piece = np.arange(2 * len(points) + 1)
    truth = np.zeros((len(piece), len(tests)), dtype=np.bool_)
    for column, (test, found) in enumerate(zip(tests, literals, strict=True)):
        at = [number[point] for point in found]
        if test.op in ("=", "in"):
            truth[at, column] = True
        elif test.op in COMPARE:
            truth[:, column] = COMPARE[test.op](piece, at[0])
    return points, truth


def _literals(test: Test, kind: str) -> list[Fraction]:
    """A test's literals as numbers or days; what cannot be compared is refused as for known values."""
    holds(test, [date(2000, 1, 1)] if kind == "date" else [0])
    if test.op == "null":
        return []
    found = cast(frozenset[Scalar], test.value) if test.op == "in" else [cast(Scalar, test.value)]
    if kind == "date":
        moments = [(datetime.fromisoformat(str(one)) - _EPOCH) // timedelta.resolution for one in found]
        return [Fraction(moment, _DAY // timedelta.resolution) for moment in moments]
    return [Fraction(number_from(one.strip()) or 0) if isinstance(one, str) else Fraction(one) for one in found]


def _float(number: Fraction | int) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def density(found: Floats, low: Floats, high: Floats, *, whole: bool) -> tuple[Ints, Ints, Floats]:
    """Which intervals hold which numbers, and how likely each is: 1 / size, a density for fractions."""
    size = np.where(high > low, high - low + 1 if whole else high - low, 1.0)
    step = max(1, 2**22 // max(len(low), 1))
    values, spans = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for at in range(0, len(found), step):
        some = found[at : at + step, None]
        inside = (low <= some) & ((some <= high) if whole else (some < high) | ((some == high) & (low == high)))
        if whole:
            inside &= np.floor(some) == some
        value, span = np.nonzero(inside)
        values.append(value + at)
        spans.append(span)
    span = np.concatenate(spans)
    return np.concatenate(values), span, 1.0 / size[span]


def draw(low: Floats, high: Floats, random: np.random.Generator, *, whole: bool) -> Floats:
    """One number of each interval, each equally likely."""
    if whole:
        return low + np.floor(random.random(len(low)) * (high - low + 1))
    drawn = low + random.random(len(low)) * (high - low)
    return np.where(high > low, np.minimum(drawn, np.nextafter(high, low)), low)  # rounding may have reached the end


def typed(found: Floats, kind: str | None, *, whole: bool) -> pa.Array:
    """Numbers as integers or fractions, days as dates or times."""
    if kind == "date":
        if whole:
            return pa.array(found.astype(np.int32), pa.int32()).cast(pa.date32())
        micros: NDArray[np.int64] = np.round(found * 86_400_000_000).astype(np.int64)
        return pa.array(micros, pa.int64()).cast(pa.timestamp("us"))
    return pa.array(found.astype(np.int64)) if whole else pa.array(found)
