"""Numbers into intervals: bands of given widths, and quantiles of the rows."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from jali.core.arrays import EXACT, Floats, Ints, counted
from jali.core.forms import is_finite
from jali.encoding import values as v
from jali.encoding.hierarchy import Builder, Hierarchy, Level, Recipe, Step, from_steps, plain
from jali.errors import HierarchyError, told

Number = int | float | Fraction

MOST_DECLARED = 10_000_000


def multiples(name: str, numbers: Sequence[Number], example: str) -> tuple[Fraction, ...]:
    """The widths of a builder as exact numbers; HierarchyError where one is no multiple of the one before."""
    if not numbers:
        raise HierarchyError(f"{name}() needs at least one width", do=f"e.g. {name}({example})")
    widths = [exact_number(f"a width of {name}()", w) for w in numbers]
    given = ", ".join(map(plain, widths))
    if min(widths) <= 0:
        raise HierarchyError(f"the widths of {name}() must be positive", got=given)
    for finer, coarser in itertools.pairwise(widths):
        if coarser <= finer or (coarser / finer).denominator != 1:
            multiple = finer * max(round(coarser / finer), 2)
            raise HierarchyError(
                f"each width of {name}() must be a multiple of the one before",
                got=given,
                do=f"change {plain(coarser)} to {plain(multiple)} or another multiple of {plain(finer)}",
            )
    return tuple(widths)


@dataclass(frozen=True)
class Bands(Builder):
    """Numbers into bands of the given widths, each a multiple of the one before; the tails may be one band each."""

    judges_groups: ClassVar[bool] = True

    widths: tuple[Number, ...]
    origin: Number = 0
    low: Number | None = None
    high: Number | None = None
    bottom: Number | None = None
    top: Number | None = None

    def __post_init__(self) -> None:
        if self.widths or (self.bottom is None and self.top is None):
            multiples("bands", self.widths, "5, 10, 20")
        names = ("origin", "low", "bottom", "top", "high")
        for name in names:
            if getattr(self, name) is not None:
                exact_number(f"{name} of bands()", getattr(self, name))
        limits = [(name, getattr(self, name)) for name in names[1:] if getattr(self, name) is not None]
        for (one, lower), (other, upper) in itertools.pairwise(limits):
            if lower > upper or (lower == upper and one == "bottom" and other == "top"):
                got = f"{one}={lower}, {other}={upper}"
                raise HierarchyError(f"bands(): {one} is {'above' if lower > upper else 'at'} {other}", got=got)

    @property
    def _recipe(self) -> Recipe:
        low, high, bottom, top = (
            None if x is None else exact_number("a bound of bands()", x)
            for x in (self.low, self.high, self.bottom, self.top)
        )
        widths = tuple(exact_number("width", width) for width in self.widths)
        return Recipe("bands", widths, exact_number("origin", self.origin), low, high, bottom=bottom, top=top)

    @classmethod
    def of(cls, recipe: Recipe) -> Bands:
        """The builder of this recipe."""
        widths = tuple(as_number(width) for width in recipe.widths)
        named = (recipe.low, recipe.high, recipe.bottom, recipe.top)
        low, high, bottom, top = (None if x is None else as_number(x) for x in named)
        return cls(widths, as_number(recipe.origin), low, high, bottom, top)

    def typed(self, column: str, present: pa.Array) -> pa.Array:
        """The values as numbers."""
        return typed_numbers("bands", column, present)

    def domain(self, column: str, present: pa.Array) -> tuple[pa.Array, bool]:
        """All whole numbers between `low` and `high` where both are given, else the numbers that occur."""
        occurring = v.ordered(present)
        within("bands", column, occurring, self.low, self.high)
        if self.low is None or self.high is None or not v.is_whole(occurring):
            return occurring, False
        first, last = math.ceil(exact_number("low", self.low)), math.floor(exact_number("high", self.high))
        if last - first >= MOST_DECLARED:
            raise HierarchyError(
                f'bands() of column "{column}": more than {MOST_DECLARED:,} declared values',
                do="leave out low and high",
            )
        declared = pa.array(np.arange(first, last + 1), pa.int64())
        missing = [pa.nulls(1, pa.int64())] if occurring.null_count else []
        return pa.concat_arrays([declared, *missing]), True

    def build(self, column: str, values: pa.Array, *, declared: bool = False) -> Hierarchy:
        """One level per width, or one for the tails alone, then the root."""
        recipe = self._recipe
        edges = [x for x in (recipe.origin, *recipe.widths, recipe.bottom, recipe.top) if x is not None]
        whole = v.is_whole(values) and all(x.denominator == 1 for x in edges)
        widths = recipe.widths or (None,)
        steps = [band_step(column, values, recipe, width, whole=whole) for width in widths]
        return from_steps(column, v.texts(values), steps, declared=declared, recipe=recipe, whole=whole)


def typed_numbers(name: str, column: str, present: pa.Array) -> pa.Array:
    """The values as numbers, for a builder of this name."""
    present = spelt(present, pa.int64())
    if v.kind_of(present) != "number":
        raise HierarchyError(
            f'{name}() of column "{column}" needs numbers',
            got=f"{v.kind_of(present)} values",
            do="use dates(), mask(), suppress() or a taxonomy",
        )
    return present


def within(name: str, column: str, occurring: pa.Array, low: Number | None, high: Number | None) -> None:
    """Raise HierarchyError where a value lies outside the declared bounds."""
    found = _numbers(occurring)
    outside = (found < (-math.inf if low is None else float(low))) | (
        found > (math.inf if high is None else float(high))
    )
    if outside.any():
        raise HierarchyError(
            f'column "{column}" has a value outside the declared bounds',
            got=f"low={low}, high={high}",
            do=f"widen the bounds of {name}() or correct the value",
            value=occurring[int(np.argmax(outside))].as_py(),
        )


def band_step(column: str, values: pa.Array, recipe: Recipe, width: Fraction | None, *, whole: bool) -> Step:
    """One level of bands: below the bottom one node, bands, from the top one node, the missing value one node."""
    missing = values.is_null().to_numpy(zero_copy_only=False)
    known = values.filter(pa.array(~missing))
    found = _numbers(known)
    tails = [None if x is None else float(x) for x in (recipe.bottom, recipe.top)]
    under = np.zeros(len(found), dtype=bool) if tails[0] is None else found < tails[0]
    over = np.zeros(len(found), dtype=bool) if tails[1] is None else found >= tails[1]
    middle = known.filter(pa.array(~(under | over)))
    of, labels, low, high = _singles(middle) if width is None else _bands(column, middle, recipe, width, whole=whole)
    first = int(under.any())
    node = np.zeros(len(found), dtype=np.int32)
    node[~(under | over)] = of + first
    node[over] = len(labels) + first
    parts = [(labels, low, high)]
    gap = 1 if whole else 0
    if under.any():
        least = math.nan if recipe.low is None else float(recipe.low)
        parts.insert(0, _tail(f"below {plain(recipe.bottom or Fraction(0))}", least, float(tails[0] or 0) - gap))
    if over.any():
        most = math.nan if recipe.high is None else float(recipe.high)
        parts.append(_tail(f"{plain(recipe.top or Fraction(0))}+", float(tails[1] or 0), most))
    if missing.any():
        parts.append((pa.nulls(1, pa.string()), *np.full((2, 1), math.nan)))
    nodes = np.full(len(values), sum(len(part) for part, _, _ in parts) - 1, dtype=np.int32)
    nodes[~missing] = node
    texts, lows, highs = zip(*parts, strict=True)
    return nodes, Level(pa.concat_arrays(texts), np.concatenate(lows), np.concatenate(highs))


def _tail(label: str, low: float, high: float) -> tuple[pa.Array, Floats, Floats]:
    """The node of a tail; nothing is known of where it ends unless a bound was declared."""
    open_end = math.isnan(low) or math.isnan(high)
    return pa.array([label]), *(np.array([math.nan if open_end else bound]) for bound in (low, high))


def _singles(values: pa.Array) -> tuple[Ints, pa.Array, Floats, Floats]:
    """Each value as a node of its own."""
    found = _numbers(values)
    return np.arange(len(found)), v.texts(values), found, found


def _bands(
    column: str, values: pa.Array, recipe: Recipe, width: Fraction, *, whole: bool
) -> tuple[Ints, pa.Array, Floats, Floats]:
    """The band of each value; labels and bounds of the bands, which end where a tail begins."""
    edges = [x for x in (recipe.origin, width, recipe.bottom, recipe.top) if x is not None]
    scale = math.lcm(*(x.denominator for x in edges))
    begin, wide = int(recipe.origin * scale), int(width * scale)
    bands, of = np.unique(_band(column, values, begin, wide, scale), return_inverse=True)
    if len(bands) and (max(-int(bands[0]), int(bands[-1])) + 2) * wide + abs(begin) >= 2**62:
        bands = bands.astype(object)
    gap = 1 if whole else 0
    low = begin + bands * wide
    high = low + wide - gap
    if recipe.bottom is not None:
        low = np.maximum(low, int(recipe.bottom * scale))
    if recipe.top is not None:
        high = np.minimum(high, int(recipe.top * scale) - gap)
    close = "]" if whole else ")"
    labels = pc.binary_join_element_wise("[", _texts(low, scale), ", ", _texts(high, scale), close, "")
    if whole and not (recipe.bottom is None and recipe.top is None):  # beside "90+" people write 89, not [89, 89]
        labels = pc.if_else(pa.array(np.asarray(low == high, dtype=bool)), _texts(low, scale), labels)
    lows, highs = (np.asarray(bound / scale, dtype=np.float64) for bound in (low, high))
    return of.reshape(-1), labels, lows, highs


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
    if largest * scale + wide + abs(begin) >= EXACT:
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


def exact_number(name: str, number: Number) -> Fraction:
    if isinstance(number, np.generic):
        number = number.item()
    if isinstance(number, bool) or not isinstance(number, (int, float, Fraction)) or not is_finite(number):
        raise HierarchyError(f"{name} must be a finite number", got=repr(told(number)))
    return number if isinstance(number, Fraction) else Fraction(str(number))


def as_number(exact: Fraction) -> Number:
    return int(exact) if exact.denominator == 1 else float(exact)


def spelt(present: pa.Array, empty: pa.DataType) -> pa.Array:
    """Texts as what they spell; where all are missing, missing values of a type."""
    if v.kind_of(present) != "text":
        return present
    return v.inferred(present) if len(present.drop_null()) else pa.nulls(len(present), empty)


@dataclass(frozen=True, eq=False)
class Counted(Builder):
    """Levels that are known already, because they follow from how many rows have each value."""

    recipe: Recipe
    steps: tuple[Step, ...]
    whole: bool = True

    def build(self, column: str, values: pa.Array, *, declared: bool = False) -> Hierarchy:
        """The levels, then the root."""
        return from_steps(column, v.texts(values), self.steps, declared=declared, recipe=self.recipe, whole=self.whole)


@dataclass(frozen=True)
class Quantiles(Builder):
    """Numbers into intervals with about equally many rows each, cut at multiples of a step."""

    counts_rows: ClassVar[bool] = True

    parts: tuple[int, ...]
    step: Number | None = None
    low: Number | None = None
    high: Number | None = None

    def __post_init__(self) -> None:
        if not self.parts or any(
            isinstance(n, bool) or not isinstance(n, int) or not 2 <= n < 2**31 for n in self.parts
        ):
            raise HierarchyError(
                "quantiles() needs whole numbers from 2 to 2,147,483,647", do="e.g. quantiles(20, 10, 5)"
            )
        for finer, coarser in itertools.pairwise(self.parts):
            if coarser >= finer or finer % coarser:
                do = "begin with the most, e.g. quantiles(20, 10, 5)"
                raise HierarchyError(
                    "each number of quantiles() must divide the one before", got=str(self.parts), do=do
                )
        if self.step is not None and exact_number("step of quantiles()", self.step) <= 0:
            raise HierarchyError("step of quantiles() must be positive", got=repr(self.step))
        for name in ("low", "high"):
            if getattr(self, name) is not None:
                exact_number(f"{name} of quantiles()", getattr(self, name))

    @property
    def recipe(self) -> Recipe:
        """As the caller gave it: cuts that follow from the rows are not in it."""
        low, high, step = (None if x is None else exact_number("", x) for x in (self.low, self.high, self.step))
        return Recipe("quantiles", tuple(map(Fraction, self.parts)), low=low, high=high, step=step)

    def typed(self, column: str, present: pa.Array) -> pa.Array:
        """The values as numbers."""
        return typed_numbers("quantiles", column, present)

    def domain(self, column: str, present: pa.Array) -> tuple[pa.Array, bool]:
        """The numbers that occur."""
        occurring = v.ordered(present)
        within("quantiles", column, occurring, self.low, self.high)
        return occurring, False

    def counted(self, column: str, values: pa.Array, rows: Ints) -> Builder:
        """The intervals: each cut is the multiple of the step that comes nearest to its share of the rows."""
        known = values.drop_null()  # the missing value is the last one
        step, low, high, whole = self._frame(known)
        scale, wide = step.denominator, step.numerator
        cell = _band(column, known, 0, wide, scale)
        cells, of = np.unique(cell, return_inverse=True)
        below = np.cumsum(counted(of.reshape(-1), rows[: len(known)], len(cells)))  # rows below the end of each cell
        steps = []
        for parts in self.parts:
            cuts = _cuts(cells, below, parts)
            edges = [low, *(Fraction(int(cut) * wide, scale) for cut in cuts), high]
            steps.append(_between(np.searchsorted(cuts, cell, side="right"), edges, len(values), whole=whole))
        return Counted(self.recipe, tuple(steps), whole)

    def _frame(self, known: pa.Array) -> tuple[Fraction, Fraction, Fraction, bool]:
        """The step of the cuts, where the first interval begins and the last ends, and whether all are whole numbers.

        Ends are declared, or rounded outward.
        """
        found, given = _numbers(known), self.recipe
        least, most = (float(found.min()), float(found.max())) if len(found) else (0.0, 1.0)
        span = most - least or 1.0
        limits = [x for x in (given.step, given.low, given.high) if x is not None]
        whole = v.is_whole(known) and all(x.denominator == 1 for x in limits)
        step, outward = (max(nice(span / parts), Fraction(whole)) for parts in (100, 10))
        step = step if given.step is None else given.step
        low = math.floor(Fraction(least) / outward) * outward if given.low is None else given.low
        if given.high is None:
            return step, low, math.floor(Fraction(most) / outward + 1) * outward - Fraction(whole), whole
        return step, low, given.high if whole or most < given.high else given.high + step, whole  # [a, b) must hold b

    def build(self, column: str, values: pa.Array, *, declared: bool = False) -> Hierarchy:
        """As if every value were in one row."""
        return self.counted(column, values, np.ones(len(values), dtype=np.int64)).build(column, values)


def _cuts(cells: Ints, below: Ints, parts: int) -> Ints:
    """The cells before which the intervals begin, without the first; the lower of two that come equally near."""
    ends = below[:-1]
    if not len(ends):
        return np.zeros(0, dtype=np.int64)
    total = int(below[-1])
    at = [int(np.argmin(np.abs(ends * parts - total * part))) for part in range(1, parts)]
    return cells[np.unique(at)] + 1


def _between(of: Ints, edges: list[Fraction], values: int, *, whole: bool) -> Step:
    """The level of intervals between edges; values beyond those that are known are missing."""
    ends = [high - 1 if whole and place < len(edges) - 2 else high for place, high in enumerate(edges[1:])]
    close = "]" if whole else ")"
    pairs = zip(edges[:-1], ends, strict=True)
    labels: list[str | None] = [f"[{plain(low)}, {plain(high)}{close}" for low, high in pairs]
    low, high = [float(x) for x in edges[:-1]], [float(x) for x in ends]
    if len(of) < values:
        labels, low, high = [*labels, None], [*low, math.nan], [*high, math.nan]
    nodes = np.full(values, len(labels) - 1, dtype=np.int32)
    nodes[: len(of)] = of
    used, number = np.unique(nodes, return_inverse=True)  # no interval is empty, unless all values are missing
    level = Level(pa.array([labels[i] for i in used], pa.string()), np.array(low)[used], np.array(high)[used])
    return number.reshape(-1).astype(np.int32), level


def nice(width: float) -> Fraction:
    """The least of 1, 2 or 5 times a power of ten that is not below the given width."""
    power = Fraction(10) ** math.floor(math.log10(width))
    return next(m * power for m in (1, 2, 5, 10) if float(m * power) >= width * (1 - 1e-12))
