"""Ends of intervals and members of sets that a release may name: public values, else multiples of a public step."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from jali.core.arrays import Bools, Floats, Ints
from jali.encoding import values as v
from jali.encoding.calendar import UNITS, spans
from jali.encoding.hierarchy import Recipe, plain
from jali.encoding.intervals import exact_number
from jali.errors import HierarchyError, InputError, nearest, one_of, told

if TYPE_CHECKING:
    from jali.encoding.table import Column, Table

Step = Fraction | str
"""Multiples of a number, or units of the calendar."""
Source = Literal["grid", "limits", "rows", "public"]
Grid = Mapping[str, float | str] | float | str
"""Steps by column, or one for all columns that it fits: a number, or a unit of the calendar."""
WHERE: dict[Source, str] = {
    "grid": "",
    "limits": ", a step from the declared limits",
    "rows": ", a step from the rows",
    "public": "",
}
CELLS = 100
"""About how many steps the declared limits are divided into."""
SHARED = Fraction(9, 10)
"""A step from the rows is the finest at which this share of those with a rare value share their cell with enough."""
NO_GRID = "leave grid out: it is for ends that would not be public"
_COARSE_UNITS = UNITS[2:]  # from months on: weeks are in no month
_DAY = np.timedelta64(1, "D")


@dataclass(frozen=True)
class Naming:
    """Which values of the rows a column names, as the release says it; `people` is 1 where it names any."""

    people: int
    step: str | None = None  # None where nothing was rounded
    source: Source | None = None

    @property
    def in_words(self) -> str:
        """For people: which values are named, and what becomes of the others."""
        if self.people == 1:
            return "as in the public table" if self.source == "public" else "as in the rows"
        shared = f"shared by at least {self.people} people"
        if self.step is None or self.source is None:
            return shared
        to = f"{self.step}s" if self.step in UNITS else f"multiples of {self.step}"
        return f"{shared}, else rounded to {to}{WHERE[self.source]}"

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        told = {"people": self.people, "step": self.step, "source": self.source}
        return {name: value for name, value in told.items() if value is not None}

    @classmethod
    def from_dict(cls, told: Mapping[str, Any] | None) -> Naming | None:
        """From JSON; None where nothing is said."""
        if told is None:
            return None
        people, step, source = told["people"], told.get("step"), told.get("source")
        known = (step is None or isinstance(step, str)) and source in (None, *get_args(Source))
        if not isinstance(people, int) or people < 1 or not known:
            raise ValueError("not a way to name values")
        return cls(people, step, source)


class Span(NamedTuple):
    """An interval as it is shown."""

    low: float
    high: float
    text: str
    rounded: bool


@dataclass(frozen=True, eq=False)
class Ends:
    """Which values of a column may be named, and what the others are rounded outward to."""

    public: Bools  # (values,)
    people: int  # how many share each of these
    whole: bool = True
    step: Step | None = None  # None for words, which cannot be rounded
    source: Source | None = None
    low: Fraction | None = None  # declared limits, which no end passes
    high: Fraction | None = None

    def naming(self, *, rounded: bool) -> Naming:
        """What the release says of it; nothing of a step that was not needed."""
        if not rounded or self.step is None:
            return Naming(self.people, source="public" if self.source == "public" else None)
        return Naming(self.people, self.step if isinstance(self.step, str) else plain(self.step), self.source)

    def span(self, column: Column, low: int, high: int) -> Span:
        """The interval from one value to another, by their codes, each end rounded outward unless it is public."""
        numbers = column.numbers
        texts = [column.labels[code].as_py() for code in (low, high)]
        ends = [(float(numbers[code]), text) for code, text in zip((low, high), texts, strict=True)]
        if self.public[low] and self.public[high]:
            return _span(*ends, rounded=False)
        if isinstance(self.step, str):
            first, last = self._units(numbers[[low, high]])
        else:
            first, last = self._multiples(*texts)
        return _span(
            ends[0] if self.public[low] else first, ends[1] if self.public[high] else last, rounded=True
        )  # fmt: skip

    def _multiples(self, low: str, high: str) -> tuple[tuple[float, str], tuple[float, str]]:
        """The multiple of the step below one number and that above another, within the limits.

        Where both are one number they are moved apart: alone it would be named.
        """
        step = self.step
        assert isinstance(step, Fraction)
        first, last = self._within(math.floor(Fraction(low) / step) * step, math.ceil(Fraction(high) / step) * step)
        if first == last:
            first, last = self._within(first, last + step)
        if first == last:  # at the upper limit
            first, last = self._within(first - step, last)
        return (float(first), plain(first)), (float(last), plain(last))

    def _within(self, first: Fraction, last: Fraction) -> tuple[Fraction, Fraction]:
        """The part of an interval that lies within the limits, whole where all values are."""
        if self.low is not None and first < self.low:
            first = Fraction(math.ceil(self.low)) if self.whole else self.low
        if self.high is not None and last > self.high:
            last = Fraction(math.floor(self.high)) if self.whole else self.high
        return first, last

    def _units(self, days: Floats) -> tuple[tuple[float, str], tuple[float, str]]:
        """The first day of the unit that one day lies in, and the last of that of another, or the moment after it.

        A single day is shown with the next one: alone it would be named.
        """
        unit = str(self.step)
        first, after = spans(np.floor(days).astype(np.int64).astype("datetime64[D]"), unit)
        last = after[1] - _DAY if self.whole and after[1] - _DAY > first[0] else after[1]
        time = "" if self.whole else " 00:00:00"
        return (float(first[0].astype(np.int64)), f"{first[0]}{time}"), (float(last.astype(np.int64)), f"{last}{time}")


def _span(low: tuple[float, str], high: tuple[float, str], *, rounded: bool) -> Span:
    text = low[1] if low == high else f"[{low[1]}, {high[1]}]"
    return Span(low[0], high[0], text, rounded)


# Which values people share.


def every_value(column: Column, source: Source | None = None) -> Ends:
    """A column that may name any of its values; "public" where they are those of a public table."""
    return Ends(np.ones(len(column.values), dtype=bool), 1, bool(v.is_whole(column.values)), source=source)


def people_by_value(table: Table, column: Column) -> Ints:
    """How many people have each value of a column, each person once for each value: (values,)."""
    if column.value_rows is not None:
        return column.value_rows
    if table.person is None:
        found = np.bincount(column.codes, weights=table.multiplicity, minlength=len(column.values))
        return found.astype(np.int64)
    return np.bincount(_once(table, column)[1], minlength=len(column.values)).astype(np.int64)


def _once(table: Table, column: Column) -> tuple[Ints, Ints]:
    """The different pairs of a person and a value."""
    assert table.person is not None
    keys = np.unique(table.person.astype(np.int64) * len(column.values) + column.codes)
    return keys // len(column.values), keys % len(column.values)


def ends_of(table: Table, column: Column, people: int, asked: Step | None) -> Ends:
    """What a column whose domain is not declared may name; `asked` is the caller's step."""
    shared = people_by_value(table, column)
    public = shared >= people
    if column.values.null_count:
        public[-1] = True  # that a value is missing names nobody's
    if column.kind not in ("number", "date"):
        return Ends(public, people)
    hierarchy = column.hierarchy
    recipe = None if hierarchy is None or hierarchy.chosen else hierarchy.recipe
    low, high = (None, None) if recipe is None else (recipe.low, recipe.high)
    step, source = _declared_step(recipe, asked)
    if step is None and not public.all():
        step, source = step_of_rows(table, column, shared, people), "rows"
    whole = bool(v.is_whole(column.values))
    if whole and isinstance(step, Fraction):
        step = Fraction(step.numerator)  # the smallest multiple that is whole
    return Ends(public, people, whole, step, source, low, high)


def _declared_step(recipe: Recipe | None, asked: Step | None) -> tuple[Step | None, Source | None]:
    """The step that the caller gave, or that follows from what was declared."""
    if asked is not None:
        return asked, "grid"
    if recipe is None:
        return None, None
    if recipe.low is None or recipe.high is None or recipe.low == recipe.high:
        return None, None
    return next(step for step in ladder((recipe.high - recipe.low) / CELLS)), "limits"


def ladder(least: Fraction) -> Iterator[Fraction]:
    """1, 2 and 5 times powers of ten, from the first that is at least as large.

    >>> [str(step) for step, _ in zip(ladder(Fraction(3, 10)), range(4))]
    ['1/2', '1', '2', '5']
    """
    power = math.floor(math.log10(least.numerator) - math.log10(least.denominator)) - 1
    while True:
        for factor in (1, 2, 5):
            if (step := factor * Fraction(10) ** power) >= least:
                yield step
        power += 1


def step_of_rows(table: Table, column: Column, shared: Ints, people: int) -> Step:
    """The finest step at which nine in ten of those with a rare value share their cell with enough people.

    Where none is coarse enough it is the coarsest: the decade, or a step that exceeds every number.
    """
    numbers = column.numbers
    known = np.flatnonzero(~np.isnan(numbers))
    rare = known[(shared[known] < people) & (shared[known] > 0)]
    if column.kind == "date":
        units = ("day", *_COARSE_UNITS) if not v.is_whole(column.values) else _COARSE_UNITS
        days = np.floor(numbers[known]).astype(np.int64).astype("datetime64[D]")
        steps: Iterator[tuple[Step, Ints]] = ((unit, _ranked(spans(days, unit)[0])) for unit in units)
    else:
        steps = _numbered(numbers[known], whole=bool(v.is_whole(column.values)))
    coarsest: Step = Fraction(1)
    for step, cell in steps:
        of = np.full(len(numbers), -1, dtype=np.int64)
        of[known] = cell
        alike = _people_alike(table, column, of, shared, people)
        if int(shared[rare][alike[rare]].sum()) >= SHARED * int(shared[rare].sum()):
            return step
        coarsest = step
    return coarsest


def _numbered(numbers: Floats, *, whole: bool) -> Iterator[tuple[Step, Ints]]:
    """Steps for numbers, the finest first, and the cell of each number; the last exceeds all of them.

    Whole numbers have whole steps, the last of them above 1: under a step of 1 no two numbers are alike.
    """
    spread, largest = float(np.ptp(numbers)), float(np.abs(numbers).max(initial=0))
    least = max((spread or largest or 1.0) * 1e-6, largest * 1e-12, 1.0 if whole else 1e-300)
    for step in ladder(Fraction(least)):
        yield step, _ranked(np.floor(numbers / float(step)))
        if step > (max(largest, 1.0) if whole else largest):
            return


def _ranked(cell: NDArray[Any]) -> Ints:
    """The cells as numbers from 0 on."""
    return np.unique(cell, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _people_alike(table: Table, column: Column, of: Ints, shared: Ints, people: int) -> Bools:
    """Whether enough people have a value of the same cell, for each value; `of` is its cell, -1 for none."""
    people = min(people, 2**53)  # which no table has, and a float can be
    cells, known = int(of.max(initial=-1)) + 1, of >= 0
    inside = np.bincount(of[known], weights=shared[known], minlength=cells)
    if table.person is not None and bool((inside >= people).any()):  # each person counts once in a cell
        person, code = _once(table, column)
        person, cell = person[known[code]], of[code[known[code]]]
        inside = np.bincount(np.unique(person * cells + cell) % cells, minlength=cells).astype(np.float64)
    alike = np.zeros(len(of), dtype=bool)
    alike[known] = inside[of[known]] >= people
    return alike


# What the caller asks.


def steps_of(columns: tuple[Column, ...], grid: Grid | None) -> dict[str, Step]:
    """The step of each of these columns that the caller gave one, of the kind that the column needs."""
    if grid is None:
        return {}
    if not isinstance(grid, Mapping):
        kind = "date" if isinstance(grid, str) else "number"
        fitting = [column for column in columns if column.kind == kind]
        if not fitting:
            raise InputError(f"grid: no {kind}s without declared values are shown as intervals or sets", do=NO_GRID)
        return {column.name: _step(column, grid) for column in fitting}
    names = [column.name for column in columns]
    for name in grid:
        if not one_of(name, names):
            do = nearest(name, names) if names else NO_GRID
            raise InputError(
                f'grid: "{told(name)}" is not shown as intervals or sets, or its values are declared', do=do
            )
    return {column.name: _step(column, grid[column.name]) for column in columns if column.name in grid}


def _step(column: Column, given: object) -> Step:
    """A step for a column; InputError where it does not fit."""
    if column.kind == "date":
        if not isinstance(given, str) or given not in UNITS:
            do = nearest(given, UNITS) if isinstance(given, str) else "one of " + ", ".join(UNITS)
            raise InputError(f'grid: dates of "{column.name}" need a unit', got=repr(told(given)), do=do)
        return given
    if column.kind != "number":
        raise InputError(f'grid: column "{column.name}" has no numbers or dates', do="leave it out of grid")
    try:
        step = exact_number("grid", given)  # type: ignore[arg-type]  # it says what is no number
    except (HierarchyError, OverflowError):
        step = Fraction(0)
    if step <= 0:
        raise InputError(
            f'grid: numbers of "{column.name}" need a number above 0', got=repr(told(given)), do="e.g. 0.1"
        )
    return step


def written(steps: Mapping[str, Step]) -> dict[str, float | int | str]:
    """Steps as a manifest has them and as they can be given again."""
    return {
        name: step if isinstance(step, str) else int(step) if step.denominator == 1 else float(step)
        for name, step in steps.items()
    }
