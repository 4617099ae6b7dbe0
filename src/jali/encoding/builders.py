"""Hierarchies as people write them: bands, mask, dates, suppress; and what a column gets that has none."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from jali.core.arrays import Floats
from jali.encoding import values as v
from jali.encoding.hierarchy import ROOT, Builder, Hierarchy, Level, Recipe, Step, by_label, from_steps, plain
from jali.errors import HierarchyError, InputError

Number = int | float | Fraction

MOST_DECLARED = 10_000_000
_EXACT = 2**53  # whole numbers up to here are exact as floats


@dataclass(frozen=True)
class Bands(Builder):
    """Numbers into bands of the given widths, each a multiple of the one before."""

    judges_groups: ClassVar[bool] = True

    widths: tuple[Number, ...]
    origin: Number = 0
    low: Number | None = None
    high: Number | None = None
    chosen: bool = False

    def __post_init__(self) -> None:
        if not self.widths:
            raise HierarchyError("bands() needs at least one width", do="e.g. bands(5, 10, 20)")
        widths = [_exact("a width of bands()", w) for w in self.widths]
        for name in ("origin", "low", "high"):
            if getattr(self, name) is not None:
                _exact(f"{name} of bands()", getattr(self, name))
        if min(widths) <= 0:
            raise HierarchyError("the widths of bands() must be positive", got=self._args())
        for finer, coarser in itertools.pairwise(widths):
            if coarser <= finer or (coarser / finer).denominator != 1:
                multiple = finer * max(round(coarser / finer), 2)
                raise HierarchyError(
                    "each width of bands() must be a multiple of the one before",
                    got=self._args(),
                    do=f"change {plain(coarser)} to {plain(multiple)} or another multiple of {plain(finer)}",
                )
        if self.low is not None and self.high is not None and self.low > self.high:
            raise HierarchyError("bands(): low is above high", got=f"low={self.low}, high={self.high}")

    def _args(self) -> str:
        return ", ".join(plain(_exact("width", w)) for w in self.widths)

    @property
    def _recipe(self) -> Recipe:
        low, high = (None if x is None else _exact("a bound of bands()", x) for x in (self.low, self.high))
        widths = tuple(_exact("width", width) for width in self.widths)
        return Recipe("bands", widths, _exact("origin", self.origin), low, high)

    @classmethod
    def of(cls, recipe: Recipe) -> Bands:
        """The builder of this recipe."""
        widths = tuple(_number(width) for width in recipe.widths)
        low, high = (None if x is None else _number(x) for x in (recipe.low, recipe.high))
        return cls(widths, _number(recipe.origin), low, high)

    def typed(self, column: str, present: pa.Array) -> pa.Array:
        """The values as numbers."""
        present = _spelt(present, pa.int64())
        if v.kind_of(present) != "number":
            raise HierarchyError(
                f'bands() of column "{column}" needs numbers',
                got=f"{v.kind_of(present)} values",
                do="use dates(), mask(), suppress() or a taxonomy",
            )
        return present

    def domain(self, column: str, present: pa.Array) -> tuple[pa.Array, bool]:
        """All whole numbers between `low` and `high` where both are given, else the numbers that occur."""
        occurring = v.ordered(present)
        found = _numbers(occurring)
        low = -math.inf if self.low is None else float(self.low)
        high = math.inf if self.high is None else float(self.high)
        outside = (found < low) | (found > high)
        if outside.any():
            raise HierarchyError(
                f'column "{column}" has a value outside the declared bounds',
                got=f"low={self.low}, high={self.high}",
                do="widen the bounds of bands() or correct the value",
                value=occurring[int(np.argmax(outside))].as_py(),
            )
        if self.low is None or self.high is None or not v.is_whole(occurring):
            return occurring, False
        first, last = math.ceil(_exact("low", self.low)), math.floor(_exact("high", self.high))
        if last - first >= MOST_DECLARED:
            raise HierarchyError(
                f'bands() of column "{column}": more than {MOST_DECLARED:,} declared values',
                do="leave out low and high",
            )
        declared = pa.array(np.arange(first, last + 1), pa.int64())
        missing = [pa.nulls(1, pa.int64())] if occurring.null_count else []
        return pa.concat_arrays([declared, *missing]), True

    def build(self, column: str, values: pa.Array, *, declared: bool = False) -> Hierarchy:
        """One level per width, then the root."""
        recipe = self._recipe
        whole = v.is_whole(values) and all(x.denominator == 1 for x in (recipe.origin, *recipe.widths))
        steps = [_step(column, values, recipe.origin, width, whole=whole) for width in recipe.widths]
        return from_steps(
            column, v.texts(values), steps, declared=declared, chosen=self.chosen, recipe=recipe, whole=whole
        )


def _spelt(present: pa.Array, empty: pa.DataType) -> pa.Array:
    """Texts as what they spell; where all are missing, missing values of a type."""
    if v.kind_of(present) != "text":
        return present
    return v.inferred(present) if len(present.drop_null()) else pa.nulls(len(present), empty)


def _step(column: str, values: pa.Array, origin: Fraction, width: Fraction, *, whole: bool) -> Step:
    """One level of bands; the missing value is a node of its own."""
    missing = values.is_null().to_numpy(zero_copy_only=False)
    scale = math.lcm(origin.denominator, width.denominator)
    begin, wide = int(origin * scale), int(width * scale)
    bands, of = np.unique(_band(column, values.drop_null(), begin, wide, scale), return_inverse=True)
    if len(bands) and (max(-int(bands[0]), int(bands[-1])) + 2) * wide + abs(begin) >= 2**62:
        bands = bands.astype(object)
    low = begin + bands * wide
    high = low + wide - (1 if whole else 0)
    nodes = np.full(len(values), len(bands), dtype=np.int32)
    nodes[~missing] = of.reshape(-1)
    close = "]" if whole else ")"
    labels = pc.binary_join_element_wise("[", _texts(low, scale), ", ", _texts(high, scale), close, "")
    lows, highs = (np.asarray(bound / scale, dtype=np.float64) for bound in (low, high))
    if missing.any():
        labels = pa.concat_arrays([labels, pa.nulls(1, pa.string())])
        lows, highs = np.append(lows, np.nan), np.append(highs, np.nan)
    return nodes, Level(labels, lows, highs)


def _band(column: str, numbers: pa.Array, begin: int, wide: int, scale: int) -> NDArray[Any]:
    """The number of each value's band, exact at the edges: 0.3 lies in [0.3, 0.4) whatever floats make of 3 · 0.1.

    Where a value equals the float nearest to an edge, its decimal form is the edge (up to 15 digits), so comparing
    with that float decides as comparing the decimals would.
    """
    found = _numbers(numbers)
    largest = float(np.abs(found).max(initial=0))
    if v.is_whole(numbers):
        if (largest + 1) * scale + abs(begin) + wide < 2**62:
            exact: NDArray[Any] = numbers.cast(pa.int64()).to_numpy()
        else:
            exact = np.array([int(x) for x in numbers.to_pylist()], dtype=object)
        return np.asarray((exact * scale - begin) // wide)
    band = np.floor((found * scale - begin) / wide)
    if largest * scale + wide + abs(begin) >= _EXACT:
        raise HierarchyError(
            f'bands() of column "{column}": bands this narrow cannot be told apart so far from 0',
            do="choose wider bands or round the numbers",
        )
    for _ in range(2):  # the division may be off by one band either way
        band += found >= (begin + (band + 1) * wide) / scale
        band -= found < (begin + band * wide) / scale
    return band.astype(np.int64)


def _texts(numerators: NDArray[Any], scale: int) -> pa.Array:
    if scale == 1:
        return pa.array([str(n) for n in numerators]) if numerators.dtype == object else v.texts(pa.array(numerators))
    return pa.array(np.asarray(numerators / scale, dtype=np.float64)).cast(pa.string())


def _numbers(values: pa.Array) -> Floats:
    found = v.numbers(values)
    assert found is not None  # typed() saw to it
    return found


def _exact(name: str, number: Number) -> Fraction:
    if isinstance(number, np.generic):
        number = number.item()
    if isinstance(number, bool) or not isinstance(number, (int, float, Fraction)) or not math.isfinite(number):
        raise HierarchyError(f"{name} must be a finite number", got=repr(number))
    return number if isinstance(number, Fraction) else Fraction(str(number))


def _number(exact: Fraction) -> Number:
    return int(exact) if exact.denominator == 1 else float(exact)


LONGEST_MASKED = 100
"""Characters of the longest value that mask() takes: each is a level."""


@dataclass(frozen=True)
class Suppress(Builder):
    """Keep the value or show `*`."""

    chosen: bool = False

    def build(self, column: str, values: pa.Array, *, declared: bool = False) -> Hierarchy:
        """Two levels: the values and the root."""
        return from_steps(column, v.texts(values), [], declared=declared, chosen=self.chosen, recipe=Recipe("suppress"))


@dataclass(frozen=True)
class Mask(Builder):
    """Hide characters from the right, the first one last: 13053, 1305*, 130**, …, `*`."""

    reads_text: ClassVar[bool] = True

    def typed(self, column: str, present: pa.Array) -> pa.Array:
        """The values as text."""
        return v.texts(present)

    def build(self, column: str, values: pa.Array, *, declared: bool = False) -> Hierarchy:
        """One level per character of the longest value, then the root."""
        texts = v.texts(values)
        lengths = pc.utf8_length(texts).fill_null(0).to_numpy(zero_copy_only=False)
        longest = int(lengths.max(initial=0))
        if longest > LONGEST_MASKED:
            raise HierarchyError(
                f'mask() of column "{column}": the longest value has {longest} characters',
                do=f"mask() takes up to {LONGEST_MASKED}; use suppress() or a taxonomy",
            )
        steps = [by_label(_masked(texts, lengths, hidden)) for hidden in range(1, longest)]
        return from_steps(column, texts, steps, declared=declared, recipe=Recipe("mask"))


def _masked(texts: pa.Array, lengths: NDArray[np.int32], hidden: int) -> pa.Array:
    """The texts without their last characters; one always stays, so that no label reads as the root."""
    parts, order = [], []
    for length in np.unique(lengths):
        rows = np.flatnonzero(lengths == length)
        some = texts.take(pa.array(rows))
        kept = int(max(length - hidden, min(length, 1)))
        cut = pc.utf8_slice_codeunits(some, 0, kept) if kept else some
        parts.append(pc.binary_join_element_wise(cut, ROOT * (int(length) - kept), ""))
        order.append(rows)
    return v.put_back(parts, order)


@dataclass(frozen=True)
class Dates(Builder):
    """Days into months, quarters, years and decades."""

    chosen: bool = False

    def typed(self, column: str, present: pa.Array) -> pa.Array:
        """The values as dates."""
        present = _spelt(present, pa.date32())
        if v.kind_of(present) != "date":
            raise HierarchyError(
                f'dates() of column "{column}" needs dates', do="write them as 2020-05-17, or use mask()"
            )
        return present

    def build(self, column: str, values: pa.Array, *, declared: bool = False) -> Hierarchy:
        """Day (where values have a time of day), month, quarter, year, decade, then the root."""
        timed = not v.is_whole(values)
        day = values.cast(pa.timestamp("us")).cast(pa.date32(), safe=False)
        units = ("day", "month", "quarter", "year", "decade")[0 if timed else 1 :]
        steps = [_calendar(day, unit, timed=timed) for unit in units]
        return from_steps(
            column,
            v.texts(values),
            steps,
            declared=declared,
            chosen=self.chosen,
            recipe=Recipe("dates"),
            whole=not timed,
        )


_MONTHS = {"month": 1, "quarter": 3, "year": 12, "decade": 120}


def _calendar(day: pa.Array, unit: str, *, timed: bool) -> Step:
    """The level of a calendar unit: its last day ends it, or the next day's beginning where values have a time."""
    days = day.to_numpy(zero_copy_only=False).astype("datetime64[D]")
    if unit == "day":
        first, after = days, days + np.timedelta64(1, "D")
    else:
        width = _MONTHS[unit]
        month = days.astype("datetime64[M]")
        count = month.astype(np.int64)  # months since 1970, the first of a decade
        start = (month - (count % width).astype("timedelta64[M]")).astype("datetime64[M]")
        first, after = (d.astype("datetime64[D]") for d in (start, start + np.timedelta64(width, "M")))
    nodes, level = by_label(_calendar_label(pa.array(first).cast(pa.date32()), unit))
    at = np.zeros(len(level), dtype=np.int64)
    at[nodes] = np.arange(len(nodes))
    low, high = (np.where(np.isnat(d), np.nan, d.astype(np.float64))[at] for d in (first, after))
    return nodes, Level(level.labels, low, high if timed else high - 1)


def _calendar_label(first: pa.Array, unit: str) -> pa.Array:
    year = pc.year(first).cast(pa.string())
    if unit == "quarter":
        return pc.binary_join_element_wise(year, pc.quarter(first).cast(pa.string()), "-Q")
    if unit == "decade":
        return pc.binary_join_element_wise(year, "s", "")
    return pc.strftime(first, {"day": "%Y-%m-%d", "month": "%Y-%m", "year": "%Y"}[unit])


@dataclass(frozen=True)
class Automatic(Builder):
    """What a column gets that has no hierarchy: bands that double for numbers, dates for dates, else suppress."""

    def build(self, column: str, values: pa.Array, *, declared: bool = False) -> Hierarchy:
        """Whatever fits the values; the release says that it was chosen."""
        return _choice(values).build(column, values, declared=declared)


FEWEST_BANDED = 6
"""Distinct numbers from which on a column gets bands rather than keep-or-hide."""


def _choice(values: pa.Array) -> Builder:
    kind = v.kind_of(values)
    if kind == "date" and len(values.drop_null()):
        return Dates(chosen=True)
    if kind != "number" or len(values.drop_null()) < FEWEST_BANDED:
        return Suppress(chosen=True)
    found = v.numbers(values)
    assert found is not None  # the kind says so
    width = _round_width((float(np.nanmax(found)) - float(np.nanmin(found))) / 32, whole=v.is_whole(values))
    return Bands(tuple(width * 2**step for step in range(5)), chosen=True)


def _round_width(width: float, *, whole: bool) -> Number:
    """A width people would choose: 1, 2 or 5 times a power of ten, not below the given one."""
    power = Fraction(10) ** math.floor(math.log10(width))
    nice = next(m * power for m in (1, 2, 5, 10) if float(m * power) >= width * (1 - 1e-12))
    if whole:
        nice = max(nice, Fraction(2))
    return int(nice) if nice.denominator == 1 else nice


def bands(*widths: Number, origin: Number = 0, low: Number | None = None, high: Number | None = None) -> Builder:
    """Numbers into [0, 4], [5, 9], …: one level per width, each a multiple of the one before.

    `origin` is where a band begins; `low` and `high` declare the domain of whole numbers.
    """
    return Bands(widths, origin, low, high)


def mask() -> Builder:
    """Characters hidden from the right, one more at each level and the first one last: 13053, 1305*, 130**, …, `*`."""
    return Mask()


def dates() -> Builder:
    """Days into months, quarters, years, decades, `*`."""
    return Dates()


def suppress() -> Builder:
    """The value itself, or `*`."""
    return Suppress()


def builder_of(column: str, given: object) -> Builder:
    """What the caller gave for a column as a builder."""
    if given is None:
        return Automatic()
    if isinstance(given, Builder):
        return given
    raise InputError(
        f'column "{column}": not a hierarchy',
        got=f"{given.__name__} without ()" if callable(given) and hasattr(given, "__name__") else type(given).__name__,
        do="use jali.bands(…), mask(), dates(), suppress() or taxonomy(…), or None for one that jali chooses",
    )
