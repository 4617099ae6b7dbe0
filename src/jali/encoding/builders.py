"""Hierarchies as people write them: bands, mask, dates, suppress; each is bound to a column's values later."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from jali.encoding import values as v
from jali.encoding.hierarchy import ROOT, Hierarchy, from_labels
from jali.errors import HierarchyError, InputError

Number = int | float | Fraction


@dataclass(frozen=True)
class Builder(ABC):
    """A hierarchy that waits for its column: says which values there are, then what they become."""

    reads_text: ClassVar[bool] = False  # whether a file's column is read as text, so that 01234 keeps its zero
    judges_groups: ClassVar[bool] = False  # whether a sensitive column is judged by the first level's groups

    def domain(self, column: str, present: pa.Array) -> tuple[pa.Array, bool]:
        """The values of the column in order (the missing one last), and whether they were declared."""
        return v.ordered(present), False

    @abstractmethod
    def build(self, column: str, values: pa.Array, *, declared: bool = False) -> Hierarchy:
        """The hierarchy over these values."""


def _root(values: pa.Array) -> pa.Array:
    return pa.array([ROOT] * len(values), pa.string())


@dataclass(frozen=True)
class Suppress(Builder):
    """Keep the value or show `*`."""

    chosen: bool = False

    def build(self, column: str, values: pa.Array, *, declared: bool = False) -> Hierarchy:
        """Two levels: the values and the root."""
        labels = [v.texts(values), _root(values)]
        return from_labels(column, labels, declared=declared, chosen=self.chosen, made_by="suppress()")


@dataclass(frozen=True)
class Mask(Builder):
    """Hide characters from the right: 13053, 1305*, 130**, …, `*`."""

    reads_text: ClassVar[bool] = True

    def domain(self, column: str, present: pa.Array) -> tuple[pa.Array, bool]:
        """The values as text."""
        return v.ordered(v.texts(present)), False

    def build(self, column: str, values: pa.Array, *, declared: bool = False) -> Hierarchy:
        """One level per character of the longest value, then the root."""
        found = v.texts(values).to_pylist()
        longest = max((len(text) for text in found if text is not None), default=0)
        labels = [v.texts(values)]
        for hidden in range(1, longest):
            labels.append(pa.array([None if t is None else _masked(t, hidden) for t in found], pa.string()))
        return from_labels(column, [*labels, _root(values)], declared=declared, made_by="mask()")


def _masked(text: str, hidden: int) -> str:
    kept = max(len(text) - hidden, 0)
    return text[:kept] + ROOT * (len(text) - kept)


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
        exact = [_exact("a width of bands()", w) for w in self.widths]
        _exact("origin of bands()", self.origin)
        if min(exact) <= 0:
            raise HierarchyError("the widths of bands() must be positive", got=self._args())
        for finer, coarser in zip(exact, exact[1:], strict=False):
            if coarser <= finer or (coarser / finer).denominator != 1:
                raise HierarchyError(
                    "each width of bands() must be a multiple of the one before",
                    got=self._args(),
                    do=f"change {float(coarser):g} to {float(finer * 2):g} or another multiple of {float(finer):g}",
                )
        if self.low is not None and self.high is not None and self.low > self.high:
            raise HierarchyError("bands(): low is above high", got=f"low={self.low}, high={self.high}")

    def _args(self) -> str:
        return ", ".join(_text(Fraction(str(w))) for w in self.widths)

    def _call(self) -> str:
        named = (("origin", self.origin or None), ("low", self.low), ("high", self.high))
        return f"bands({self._args()}{''.join(f', {n}={_text(Fraction(str(x)))}' for n, x in named if x is not None)})"

    def domain(self, column: str, present: pa.Array) -> tuple[pa.Array, bool]:
        """All whole numbers between `low` and `high` where both are given, else the numbers that occur."""
        if v.kind_of(present) != "number":
            if len(present.drop_null()) == 0:
                present = pa.nulls(len(present), pa.int64())
            elif pa.types.is_string(present.type) and v.kind_of(v.inferred(present)) == "number":
                present = v.inferred(present)
            else:
                raise HierarchyError(f'bands() of column "{column}" needs numbers', do="use mask(), suppress() or a taxonomy")
        occurring = v.ordered(present)
        found = v.numbers(occurring)
        assert found is not None
        outside = ((found < self.low) if self.low is not None else False) | ((found > self.high) if self.high is not None else False)
        if bool(np.any(outside)):
            raise HierarchyError(
                f'column "{column}" has values outside the declared bounds',
                got=f"low={self.low}, high={self.high}",
                do="widen the bounds of bands() or correct the values",
                value=occurring[int(np.argmax(outside))].as_py(),
            )
        if self.low is None or self.high is None or not v.is_whole(occurring):
            return occurring, False
        low, high = int(np.ceil(float(self.low))), int(np.floor(float(self.high)))
        if high - low > 10_000_000:
            raise HierarchyError(f'bands() of column "{column}": more than ten million declared values', do="leave out low and high")
        declared = pa.array(np.arange(low, high + 1), pa.int64())
        missing = [pa.nulls(1, pa.int64())] if occurring.null_count else []
        return pa.concat_arrays([declared, *missing]), True

    def build(self, column: str, values: pa.Array, *, declared: bool = False) -> Hierarchy:
        """One level per width, then the root."""
        found = v.numbers(values)
        assert found is not None
        origin, widths = _exact("origin", self.origin), [_exact("width", w) for w in self.widths]
        whole = v.is_whole(values) and origin.denominator == 1 and all(w.denominator == 1 for w in widths)
        labels, intervals = [v.texts(values)], {}
        for level, width in enumerate(widths, start=1):
            number = _band(found, values, origin, width)
            lows = [None if np.isnan(i) else origin + int(i) * width for i in number]
            highs = [None if low is None else low + width - (1 if whole else 0) for low in lows]
            close = "]" if whole else ")"
            labels.append(
                pa.array(
                    [None if a is None or b is None else f"[{_text(a)}, {_text(b)}{close}" for a, b in zip(lows, highs, strict=True)],
                    pa.string(),
                )
            )
            intervals[level] = (_floats(lows), _floats(highs))
        return from_labels(
            column, [*labels, _root(values)], intervals=intervals, declared=declared, chosen=self.chosen,
            made_by=self._call(), whole=whole,
        )  # fmt: skip


def _band(numbers: NDArray[np.float64], values: pa.Array, origin: Fraction, width: Fraction) -> NDArray[np.float64]:
    """The number of each value's band, exact at the edges: near one, the decimal that was written decides."""
    quotient = (numbers - float(origin)) / float(width)
    band = np.floor(quotient)
    near = np.flatnonzero(np.abs(quotient - np.round(quotient)) < 1e-6)
    written = v.texts(values.take(pa.array(near)))
    for index, text in zip(near, written.to_pylist(), strict=True):
        band[index] = (Fraction(text) - origin) // width
    return band


def _exact(name: str, number: Number) -> Fraction:
    if isinstance(number, bool) or not isinstance(number, (int, float, Fraction)) or not np.isfinite(float(number)):
        raise HierarchyError(f"{name} must be a finite number", got=repr(number))
    return number if isinstance(number, Fraction) else Fraction(str(number))


def _text(number: Fraction) -> str:
    return str(number.numerator) if number.denominator == 1 else repr(float(number))


def _floats(numbers: list[Fraction | None]) -> NDArray[np.float64]:
    return np.array([np.nan if n is None else float(n) for n in numbers])


_CALENDAR = ("%Y-%m-%d", "%Y-%m", "quarter", "%Y", "decade")


@dataclass(frozen=True)
class Dates(Builder):
    """Days into months, quarters, years and decades."""

    def domain(self, column: str, present: pa.Array) -> tuple[pa.Array, bool]:
        """The dates that occur."""
        if v.kind_of(present) == "text":
            typed = v.inferred(present) if len(present.drop_null()) else pa.nulls(len(present), pa.date32())
            present = typed
        if v.kind_of(present) != "date":
            raise HierarchyError(f'dates() of column "{column}" needs dates', do='write them as 2020-05-17, or use mask()')
        return v.ordered(present), False

    def build(self, column: str, values: pa.Array, *, declared: bool = False) -> Hierarchy:
        """Day (where values have a time of day), month, quarter, year, decade, then the root."""
        day = values.cast(pa.timestamp("us")).cast(pa.date32(), safe=False)
        has_time = not v.is_whole(values)
        labels, intervals = [v.texts(values) if has_time else v.texts(day)], {}
        for unit in ("day", "month", "quarter", "year", "decade")[0 if has_time else 1 :]:
            first = pc.floor_temporal(day, multiple=10 if unit == "decade" else 1, unit="year" if unit == "decade" else unit)
            labels.append(_calendar(first.cast(pa.date32()), unit))
            low = v.days(first)
            intervals[len(labels) - 1] = (low, _end(first, unit))
        return from_labels(column, [*labels, _root(values)], intervals=intervals, declared=declared, made_by="dates()")


def _calendar(first: pa.Array, unit: str) -> pa.Array:
    year = pc.year(first).cast(pa.string())
    if unit == "quarter":
        return pc.binary_join_element_wise(year, pc.quarter(first).cast(pa.string()), "-Q")
    if unit == "decade":
        return pc.binary_join_element_wise(year, "s", "")
    return pc.strftime(first, {"day": "%Y-%m-%d", "month": "%Y-%m", "year": "%Y"}[unit])


def _end(first: pa.Array, unit: str) -> NDArray[np.float64]:
    """The last day of the unit that begins there."""
    start = first.cast(pa.date32()).to_numpy(zero_copy_only=False).astype("datetime64[M]")
    months = {"month": 1, "quarter": 3, "year": 12, "decade": 120}
    if unit == "day":
        return v.days(first)
    last = (start + np.timedelta64(months[unit], "M")).astype("datetime64[D]") - np.timedelta64(1, "D")
    result = last.astype("float64")
    result[np.isnat(last)] = np.nan
    return result


@dataclass(frozen=True)
class Automatic(Builder):
    """What a column gets that has no hierarchy: bands that double for numbers, dates for dates, else suppress."""

    def _choice(self, values: pa.Array) -> Builder:
        kind = v.kind_of(values)
        if kind == "date":
            return Dates()
        found = v.numbers(values) if kind == "number" else None
        if found is None or len(found[~np.isnan(found)]) < 6:
            return Suppress(chosen=True)
        low, high = float(np.nanmin(found)), float(np.nanmax(found))
        width = _round_width((high - low) / 32, whole=v.is_whole(values))
        return Bands(tuple(width * 2**step for step in range(5)), chosen=True)

    def build(self, column: str, values: pa.Array, *, declared: bool = False) -> Hierarchy:
        """Whatever fits the values; the release says that it was chosen."""
        return self._choice(values).build(column, values, declared=declared)


def _round_width(width: float, *, whole: bool) -> Number:
    """A width people would choose: 1, 2 or 5 times a power of ten, not below the given one."""
    power = Fraction(10) ** int(np.floor(np.log10(width)))
    nice = next(m * power for m in (1, 2, 5, 10) if float(m * power) >= width * (1 - 1e-12))
    if whole:
        nice = max(nice, Fraction(1))
    return int(nice) if nice.denominator == 1 else nice


def bands(*widths: Number, origin: Number = 0, low: Number | None = None, high: Number | None = None) -> Builder:
    """Numbers into [0, 4], [5, 9], …: one level per width, each a multiple of the one before.

    `origin` is where a band begins; `low` and `high` declare the domain of whole numbers.
    """
    return Bands(widths, origin, low, high)


def mask() -> Builder:
    """Characters hidden from the right, one more at each level: 13053, 1305*, 130**, …, `*`."""
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
        got=type(given).__name__,
        do="use jali.bands, mask, dates, suppress or taxonomy, or None for one that jali chooses",
    )
