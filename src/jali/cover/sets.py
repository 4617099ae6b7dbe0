"""Known values of a column, made comparable, sets of them, and intervals: which part of each satisfies which tests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from fractions import Fraction
from functools import cached_property
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from jali.core.arrays import Bools, Floats, Ints, added, owners, runs_of, sorted_by
from jali.encoding import values as v
from jali.errors import InputError
from jali.query.match import COMPARE, Part, folded, holds, numbered
from jali.query.tree import Scalar, Test, number_from

_SMALL = 1 << 16  # cells of a table that is quicker to multiply with than to look up
_DAY = timedelta(days=1)
_EPOCH = datetime(1970, 1, 1)


def require(truth: bool, what: str) -> None:
    """Refuse a cover that is not well formed."""
    if not truth:
        raise InputError(f"cover: {what} is not what a cover needs", do="see the fields of Cover")


def clean(values: pa.Array) -> pa.Array:
    """Known values: plain, distinct, at most one missing (NaN is missing)."""
    values = plain(values)
    if len(pc.unique(values)) != len(values):
        raise InputError("cover: a known value stands twice", do="give each value once, and the missing one as null")
    return values


def plain(values: pa.Array) -> pa.Array:
    """Values without the encodings that frames use: no dictionary, one kind of text, missing instead of NaN."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if pa.types.is_dictionary(values.type):
        return plain(plain(values.dictionary).take(values.indices))
    if pa.types.is_null(values.type) or pa.types.is_large_string(values.type) or pa.types.is_string_view(values.type):
        return values.cast(pa.string())
    if pa.types.is_floating(values.type):
        return pc.if_else(pc.is_nan(values), pa.scalar(None, values.type), values)
    return values


def as_kind(column: str, values: pa.Array, kind: v.Kind | None) -> pa.Array:
    """Exact values that somebody asks about, as the kind that the column has."""
    values = plain(values)
    if kind is None or v.kind_of(values) == kind:
        return values
    if values.null_count == len(values):
        return pa.nulls(len(values), type_of(kind, whole=True))
    try:
        return v.as_kind(column, values, kind)
    except InputError:
        raise InputError(f'column "{column}" holds values of kind {kind}', got=v.kind_of(values)) from None


def index_among(known: pa.Array, asked: pa.Array) -> Ints:
    """Where each asked value stands among the known ones, both as one type; -1 where it does not."""
    kind = joint_type([known.type, asked.type])
    found = pc.index_in(asked.cast(kind, safe=False), value_set=known.cast(kind, safe=False))
    return cast(Ints, found.fill_null(-1).to_numpy(zero_copy_only=False))


def joint_type(types: Sequence[pa.DataType]) -> pa.DataType:
    """The type that holds values of all these types of one kind."""
    if all(one == types[0] for one in types):
        return types[0]
    if all(pa.types.is_integer(one) for one in types):
        return pa.int64()
    if any(pa.types.is_timestamp(one) or pa.types.is_date(one) for one in types):
        return pa.timestamp("us", next((one.tz for one in types if pa.types.is_timestamp(one)), None))
    if any(pa.types.is_floating(one) or pa.types.is_decimal(one) for one in types):
        return pa.float64()
    return pa.string()


def type_of(kind: v.Kind | None, *, whole: bool) -> pa.DataType:
    """How values of a kind are held when no known value says it."""
    if kind == "number":
        return pa.int64() if whole else pa.float64()
    if kind == "date":
        return pa.date32() if whole else pa.timestamp("us")
    return pa.bool_() if kind == "boolean" else pa.string()


@dataclass(frozen=True, eq=False)
class Sets:
    """Sets of known values, each value judged once for all nodes.

    Node i is one of the values `member[start[i]:start[i + 1]]`, with the probabilities `share`.
    """

    values: pa.Array
    start: Ints  # (nodes + 1,)
    member: Ints  # (members,)
    share: Floats  # (members,)

    @cached_property
    def size(self) -> Ints:
        """How many members each node has: (nodes,)."""
        return cast(Ints, np.diff(self.start))

    @cached_property
    def node(self) -> Ints:
        """The node of each member: (members,)."""
        return owners(self.size)

    @cached_property
    def even(self) -> bool:
        """Whether the members of each node are equally likely."""
        return bool(np.allclose(self.share, (1 / np.maximum(self.size, 1))[self.node], rtol=1e-12, atol=0))

    @cached_property
    def _by_value(self) -> tuple[Ints, Ints]:
        """The members in the order of their values, and where each value's begin."""
        return sorted_by(self.member, len(self.values))

    @cached_property
    def _present(self) -> tuple[Ints, Any]:
        """Where the values are not missing, and these as what `holds` reads fastest."""
        present = self.values.drop_null()
        plain = pa.types.is_integer(present.type) or pa.types.is_floating(present.type)
        where = np.flatnonzero(self.values.is_valid().to_numpy(zero_copy_only=False))
        return where, present.to_numpy(zero_copy_only=False) if plain else present.to_pylist()

    @cached_property
    def _texts(self) -> dict[str, int] | None:
        """Where each text stands, if the values are texts."""
        if not pa.types.is_string(self.values.type) or self.values.null_count == len(self.values):
            return None
        return {text: at for at, text in enumerate(self.values.to_pylist()) if text is not None}

    def truth(self, test: Test) -> Bools:
        """Which of the values satisfy the test: (values,)."""
        truth = np.full(len(self.values), test.op == "null")
        wanted = (test.value,) if test.op == "=" else test.value if test.op == "in" else None
        if self._texts is not None and isinstance(wanted, (tuple, frozenset)) and {*map(type, wanted)} == {str}:
            truth[[self._texts[text] for text in wanted if text in self._texts]] = True  # as `holds` says, but quicker
            return truth
        where, present = self._present
        truth[where] = holds(test, present)
        return truth

    @cached_property
    def _counted(self) -> Floats | None:
        """Whether each value is in each node, where that table is small: (values, nodes)."""
        if len(self.size) * len(self.values) > _SMALL:
            return None
        counted = np.zeros((len(self.values), len(self.size)))
        counted[self.member, self.node] = 1
        return counted

    def counts(self, truth: Bools) -> Floats:
        """How many members of each node are among the given values: (nodes,)."""
        if self._counted is not None:
            found: Floats = truth.astype(np.float64) @ self._counted
            return found
        return added(self.node, truth[self.member].astype(np.float64), len(self.size))

    def shares(self, truth: Bools) -> Floats:
        """The share of each node that the given values have: (nodes,)."""
        return added(self.node, self.share * truth[self.member], len(self.size))

    def part(self, tests: Sequence[Test], nodes: Ints) -> Part:
        """The patterns on these nodes: each value is judged once, then counted in the nodes that hold it."""
        truth = np.zeros((len(self.values), len(tests)), dtype=np.bool_)
        for column, test in enumerate(tests):
            truth[:, column] = self.truth(test)
        number, first = numbered(truth)
        key = self.node * len(first) + number[self.member]
        shape = (len(self.size), len(first))
        counts = np.bincount(key, minlength=shape[0] * shape[1]).reshape(shape)
        share = counts / np.maximum(self.size, 1)[:, None]
        if not self.even:
            share = added(key, self.share, shape[0] * shape[1]).reshape(shape)
        return Part(nodes, truth[first], share[nodes].T, counts[nodes].T > 0)

    def density(self, values: pa.Array) -> tuple[Ints, Ints, Floats]:
        """Which nodes hold which values, and how likely each is there."""
        index = index_among(self.values, values)
        value = np.flatnonzero(index >= 0)
        order, begin = self._by_value
        size, at = runs_of(begin, index[value])
        at = order[at]
        return np.repeat(value, size), self.node[at], self.share[at]

    def draw(self, nodes: NDArray[np.integer], random: np.random.Generator) -> pa.Array:
        """One member of each given node."""
        begin, size = self.start[nodes], self.size[nodes]
        if self.even:
            at = begin + (random.random(len(nodes)) * size).astype(np.int64)
        else:
            upto = np.concatenate([[0.0], np.cumsum(self.share)])
            wanted = upto[begin] + random.random(len(nodes)) * (upto[begin + size] - upto[begin])
            at = np.clip(np.searchsorted(upto, wanted, side="right") - 1, begin, begin + size - 1)
        return self.values.take(pa.array(self.member[at]))


@dataclass(frozen=True, eq=False)
class Spans:
    """Intervals of numbers and days: closed sets of whole numbers, or [low, high) where values are fractions.

    An interval with low = high is that value. Tests are judged at their literals alone.
    """

    low: Floats  # (intervals,)
    high: Floats  # (intervals,)
    whole: bool

    def part(self, tests: Sequence[Test], nodes: Ints, kind: str) -> Part:
        """The patterns of the tests on the intervals, which are the given nodes.

        A literal b cuts the line into what is below it, b itself, and what is above: with G(x) the share of an
        interval up to x, these have G(b-), G(b) - G(b-) and 1 - G(b). A single fraction has no share of an
        interval that is not a point, but is possible.
        """
        points, truth = _pieces(tests, kind)
        number, first = numbered(truth)
        before = [_float(math.ceil(point) - 1 if self.whole else point) for point in points]
        upto = [_float(math.floor(point)) for point in points] if self.whole else before
        ends = _whole_pieces(points) if self.whole else None
        found = []
        step = max(1, 2**21 // len(truth))  # many literals on many intervals: some intervals at a time
        for at in range(0, max(len(nodes), 1), step):
            share, possible = self._shares(before, upto, slice(at, at + step))
            if ends is not None:
                possible |= (self.low[at : at + step] <= ends[1]) & (ends[0] <= self.high[at : at + step])
            found.append(folded(number, share, possible))
        shares, possibles = zip(*found, strict=True)
        return Part(nodes, truth[first], np.concatenate(shares, axis=1), np.concatenate(possibles, axis=1))

    def _shares(self, before: list[float], upto: list[float], some: slice) -> tuple[Floats, Bools]:
        """The share of each of some intervals in each piece, and whether it has any of it: (pieces, intervals)."""
        low, high, whole = self.low[some], self.high[some], self.whole
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

    def density(self, found: Floats) -> tuple[Ints, Ints, Floats]:
        """Which intervals hold which numbers, and how likely each is: 1 / size, a density for fractions."""
        low, high, whole = self.low, self.high, self.whole
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

    def draw(self, random: np.random.Generator) -> Floats:
        """One number of each interval, each equally likely."""
        low, high = self.low, self.high
        if self.whole:
            return low + np.floor(random.random(len(low)) * (high - low + 1))
        drawn = low + random.random(len(low)) * (high - low)
        return np.where(high > low, np.minimum(drawn, np.nextafter(high, low)), low)  # rounding may reach the end


def _whole_pieces(points: Sequence[Fraction]) -> tuple[Floats, Floats]:
    """The first and the last whole number of each piece between literals: (pieces, 1); nan where it has none.

    Rounding to floats keeps their order, so that an interval which holds one of them meets its rounded piece: beyond
    2**53, where floats take one whole number for another, more is possible than is, and never less.
    """
    last = [end for point in points for end in (math.ceil(point) - 1, math.floor(point))]
    first = [end + 1 for end in last]
    found = np.array([[-math.inf, *map(_float, first)], [*map(_float, last), math.inf]])  # (2, pieces)
    found[:, 1:-1][:, [low > high for low, high in zip(first, last[1:], strict=False)]] = math.nan
    return found[0, :, None], found[1, :, None]


def patterns_of_numbers(tests: Sequence[Test], kind: str) -> Bools:
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


def typed(found: Floats, kind: str | None, *, whole: bool) -> pa.Array:
    """Numbers as integers or fractions, days as dates or times."""
    if kind == "date":
        if whole:
            return pa.array(found.astype(np.int32), pa.int32()).cast(pa.date32())
        micros: NDArray[np.int64] = np.round(found * 86_400_000_000).astype(np.int64)
        return pa.array(micros, pa.int64()).cast(pa.timestamp("us"))
    return pa.array(found.astype(np.int64)) if whole else pa.array(found)
