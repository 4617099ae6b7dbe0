"""Dates into units of the calendar, or into the ages of people who were born then."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from jali.core.arrays import Ints
from jali.encoding import values as v
from jali.encoding.hierarchy import Builder, Hierarchy, Level, Recipe, Step, by_label, from_steps
from jali.encoding.intervals import Number, multiples, spelt
from jali.errors import HierarchyError, nearest

UNITS = ("day", "week", "month", "quarter", "year", "decade")
"""The calendar, the finest first."""
_MONTHS = {"month": 1, "quarter": 3, "year": 12, "decade": 120}
AGES: tuple[Number, ...] = (1, 5, 10, 20)
OLDEST = 130
"""Nobody is this old."""


@dataclass(frozen=True)
class Dates(Builder):
    """Days into units of the calendar, or into the ages that people born then have on a day."""

    units: tuple[str, ...] = ()  # none: month, quarter, year, decade, and day where values have a time of day
    ages: tuple[Number, ...] = ()
    on: dt.date | None = None
    top: int | None = None  # the age from which on all are one band

    def __post_init__(self) -> None:
        for unit in self.units:
            if unit not in UNITS:
                raise HierarchyError(f'dates() knows no "{unit}"', do=nearest(unit, UNITS))
        places = [UNITS.index(unit) for unit in self.units]
        if places != sorted(set(places)):
            raise HierarchyError("the units of dates() must become longer", got=", ".join(self.units))
        if self.on is None:
            if self.ages:
                raise HierarchyError("ages need a day", do='say on which day people are this old: on="2025-12-31"')
            return
        if self.units:
            raise HierarchyError("dates() makes units of the calendar or ages, not both", do="leave out one of them")
        whole = all(width.denominator == 1 for width in multiples("dates", self.ages, 'on="2025-12-31", ages=[5, 10]'))
        if not whole or (self.top is not None and not 0 < self.top < OLDEST):
            raise HierarchyError("ages of dates() are whole years", got=f"ages={self.ages}, top={self.top}")

    @property
    def recipe(self) -> Recipe:
        """Its arguments."""
        if self.on is None:
            return Recipe("dates", words=self.units)
        top = None if self.top is None else Fraction(self.top)
        return Recipe("dates", tuple(Fraction(str(age)) for age in self.ages), top=top, on=self.on.isoformat())

    @classmethod
    def of(cls, recipe: Recipe) -> Dates:
        """The builder of this recipe."""
        top = None if recipe.top is None else int(recipe.top)
        return cls(recipe.words, tuple(map(int, recipe.widths)), day_of(recipe.on), top)

    def typed(self, column: str, present: pa.Array) -> pa.Array:
        """The values as dates."""
        present = spelt(present, pa.date32())
        if v.kind_of(present) != "date":
            raise HierarchyError(
                f'dates() of column "{column}" needs dates', do="write them as 2020-05-17, or use mask()"
            )
        return present

    def domain(self, column: str, present: pa.Array) -> tuple[pa.Array, bool]:
        """The dates that occur; where they become ages, none after the day and none too long before it."""
        occurring = v.ordered(present)
        if self.on is not None:
            age = _ages(_days(occurring.drop_null()), self.on)
            wrong = np.flatnonzero((age < 0) | (age >= OLDEST))
            if len(wrong):
                raise HierarchyError(
                    f'column "{column}" has a date of birth after {self.on}, or {OLDEST} years or more before it',
                    do="choose another day in dates(on=…) or correct the value",
                    value=occurring.drop_null()[int(wrong[0])].as_py(),
                )
        return occurring, False

    def build(self, column: str, values: pa.Array, *, declared: bool = False) -> Hierarchy:
        """A level per unit, or per width of ages, then the root."""
        timed = not v.is_whole(values)
        days = _days(values)
        if self.on is not None:
            steps = [_aged(days, int(width), self.on, self.top, timed=timed) for width in self.ages]
        else:
            units = self.units or ("day", *UNITS[2:])[0 if timed else 1 :]
            before = ["week" in units[:place] for place in range(len(units))]
            steps = [_calendar(days, unit, timed=timed, weeks=weeks) for unit, weeks in zip(units, before, strict=True)]
        return from_steps(column, v.texts(values), steps, declared=declared, recipe=self.recipe, whole=not timed)


Days = NDArray[np.datetime64]


def _days(values: pa.Array) -> Days:
    """The days of dates and times; NaT for the missing one."""
    day = values.cast(pa.timestamp("us")).cast(pa.date32(), safe=False)
    found: Days = day.to_numpy(zero_copy_only=False).astype("datetime64[D]")
    return found


def spans(days: Days, unit: str) -> tuple[Days, Days]:
    """The first day of the unit that each day lies in, and the first day after it."""
    if unit == "day":
        return days, days + np.timedelta64(1, "D")
    if unit == "week":
        monday = days - _weekday(days)
        return monday, monday + np.timedelta64(7, "D")
    width = _MONTHS[unit]
    month = days.astype("datetime64[M]")
    count = month.astype(np.int64)  # months since 1970, the first of a decade
    start = (month - (count % width).astype("timedelta64[M]")).astype("datetime64[M]")
    return start.astype("datetime64[D]"), (start + np.timedelta64(width, "M")).astype("datetime64[D]")


def _weekday(days: Days) -> NDArray[np.timedelta64]:
    """How many days each lies after its Monday; 1970-01-01 was a Thursday."""
    return ((days.astype(np.int64) + 3) % 7).astype("timedelta64[D]")


def _calendar(days: Days, unit: str, *, timed: bool, weeks: bool) -> Step:
    """The level of a calendar unit: its last day ends it, or the next day's beginning where values have a time.

    Above weeks, a week belongs to the month, quarter, year or decade of its Thursday, as ISO 8601 has it for years.
    """
    if not weeks:
        first, after = spans(days, unit)
        return _step(_calendar_label(pa.array(first).cast(pa.date32()), unit), first, after, timed=timed)
    starts = spans(days - _weekday(days) + np.timedelta64(3, "D"), unit)
    labels = pc.binary_join_element_wise("weeks of", _calendar_label(pa.array(starts[0]).cast(pa.date32()), unit), " ")
    thursday = [day + (np.timedelta64(3, "D") - _weekday(day)) % np.timedelta64(7, "D") for day in starts]
    first, after = (day - np.timedelta64(3, "D") for day in thursday)
    return _step(labels, first, after, timed=timed)


def _step(labels: pa.Array, first: Days, after: Days, *, timed: bool) -> Step:
    """The level with these labels, one of each a value, from a first day to the day before another."""
    nodes, level = by_label(labels)
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
    return pc.strftime(first, {"day": "%Y-%m-%d", "week": "%G-W%V", "month": "%Y-%m", "year": "%Y"}[unit])


def _ages(days: Days, on: dt.date) -> Ints:
    """Whole years from each day to a later one; nonsense for NaT."""
    month = days.astype("datetime64[M]")
    year = days.astype("datetime64[Y]").astype(np.int64) + 1970
    in_year = month.astype(np.int64) % 12 + 1
    day = (days - month.astype("datetime64[D]")).astype(np.int64) + 1
    later = (in_year > on.month) | ((in_year == on.month) & (day > on.day))
    return np.asarray(on.year - year - later, dtype=np.int64)


def _birthday(age: Ints, on: dt.date) -> Days:
    """The last day on which somebody was born who is at least this old."""
    month = (np.asarray((on.year - age - 1970) * 12 + on.month - 1)).astype("datetime64[M]")
    last = (month + np.timedelta64(1, "M")).astype("datetime64[D]") - np.timedelta64(1, "D")
    day = month.astype("datetime64[D]") + np.timedelta64(on.day - 1, "D")
    return np.minimum(day, last)  # 29 February


def _aged(days: Days, width: int, on: dt.date, top: int | None, *, timed: bool) -> Step:
    """The level of ages in bands of a width, all from the top age on in one."""
    known = ~np.isnat(days)
    age = np.where(known, _ages(days, on), 0)
    low = age // width * width
    high = low + width - 1
    old = np.zeros(len(age), dtype=bool)
    if top is not None:
        old = age >= top
        low, high = np.where(old, top, low), np.where(old, OLDEST - 1, np.minimum(high, top - 1))
    spans = pc.binary_join_element_wise("[", v.texts(pa.array(low)), ", ", v.texts(pa.array(high)), "]", "")
    labels = pc.if_else(pa.array(low == high), v.texts(pa.array(low)), spans)
    labels = pc.if_else(pa.array(old), f"{top}+", labels)
    first, after = _birthday(high + 1, on) + np.timedelta64(1, "D"), _birthday(low, on) + np.timedelta64(1, "D")
    nat = np.datetime64("NaT", "D")
    return _step(
        pc.if_else(pa.array(known), labels, None), np.where(known, first, nat), np.where(known, after, nat), timed=timed
    )


def day_of(given: object) -> dt.date | None:
    """A day that is given as a date or as 2025-12-31."""
    if given is None or (isinstance(given, dt.date) and not isinstance(given, dt.datetime)):
        return given
    try:
        return dt.date.fromisoformat(given)  # type: ignore[arg-type]  # a TypeError says so
    except (TypeError, ValueError):
        raise HierarchyError("on must be a day", got=repr(given)[:40], do='e.g. on="2025-12-31"') from None
