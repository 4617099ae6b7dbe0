"""Distinct values of a column: what kind they are, their order, and how they read as text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from jali.core.arrays import Floats, Ints
from jali.errors import InputError

Kind = Literal["number", "text", "date", "boolean"]
KINDS: tuple[Kind, ...] = ("number", "text", "date", "boolean")

_WHOLE = r"^-?(0|[1-9][0-9]*)$"
_NUMBER = r"^-?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_DAY = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?$"
_TRUTH = r"^(?i:true|false)$"
_DAY_MICROS = 86_400_000_000
_CALENDAR = (-719_162, 2_932_896)  # the first day of the year 1 and the last of 9999, from 1970 on
_TRIED = 32


def kind_of(values: pa.Array) -> Kind:
    """The kind of a typed array: numbers, dates (times too), truth values, or text."""
    kind = values.type
    if pa.types.is_boolean(kind):
        return "boolean"
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "number"
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return "date"
    return "text"


def inferred(texts: pa.Array) -> pa.Array:
    """Texts as the narrowest kind that holds them all, each in its place; blanks are missing where it is not text.

    Leading zeros, whole numbers beyond 64 bits and one value that is no number keep the column text.
    """
    trimmed = pc.utf8_trim_whitespace(texts)
    trimmed = pc.if_else(pc.equal(trimmed, ""), None, trimmed)
    filled = trimmed.drop_null()
    if len(filled) == 0:
        return texts
    typed = texts
    if all_match(filled, _WHOLE):
        typed = _try(trimmed, pa.int64())
    elif all_match(filled, _NUMBER):
        typed = _try(trimmed, pa.float64())
        typed = texts if infinite(typed) is not None else without_signs_of_zero(typed)
    elif all_match(filled, _DAY):
        typed = _try(trimmed, pa.date32())
    elif all_match(filled, _TIME):
        typed = _try(trimmed, pa.timestamp("us"))
    elif all_match(filled, _TRUTH):
        typed = pc.equal(pc.utf8_lower(trimmed), "true")
    return texts if kind_of(typed) == "text" else typed


def as_kind(column: str, values: pa.Array, kind: Kind) -> pa.Array:
    """Values turned into a kind the caller asked for, each in its place."""
    if kind_of(values) == kind:
        return values
    if kind == "text":
        return texts(values)
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        typed = inferred(values)
        if kind == "number" and kind_of(typed) == "text":
            floats = _try(pc.utf8_trim_whitespace(values), pa.float64())  # leading zeros and all; "nan" is missing
            typed = without_signs_of_zero(floats) if pa.types.is_floating(floats.type) else values
        if kind_of(typed) == kind or len(values.drop_null()) == 0:
            return typed
    raise InputError(
        f'column "{column}" cannot be read as {kind}',
        do=f'leave it out of types=, or write types={{"{column}": "text"}}',
    )


def without_signs_of_zero(values: pa.Array) -> pa.Array:
    """Floats in which 0 has no sign and NaN is missing, so that equal numbers are one value."""
    return pc.if_else(pc.is_nan(values), None, pc.add(values, 0.0))


def infinite(values: pa.Array) -> int | None:
    """Where the first infinite number stands, if there is one."""
    if not pa.types.is_floating(values.type):
        return None
    at = int(pc.index(pc.is_inf(values), True).as_py())
    return None if at < 0 else at


def beyond_calendar(values: pa.Array) -> int | None:
    """Where the first day, or time in microseconds, stands that is not in the years 1 to 9999, if there is one."""
    if kind_of(values) != "date":
        return None
    whole = pa.types.is_date(values.type)
    count = values.cast(pa.int32()).cast(pa.int64()) if whole else values.cast(pa.int64())
    first, last = _CALENDAR if whole else (_CALENDAR[0] * _DAY_MICROS, (_CALENDAR[1] + 1) * _DAY_MICROS - 1)
    at = int(pc.index(pc.or_(pc.less(count, first), pc.greater(count, last)), True).as_py())
    return None if at < 0 else at


def all_match(texts: pa.Array, pattern: str) -> bool:
    """Whether every text matches a pattern, none of them missing; a few are tried first, since they mostly decide."""
    found = re.compile(pattern).search
    if not all(found(text) for text in texts.slice(0, _TRIED).to_pylist()):
        return False
    return bool(pc.all(pc.match_substring_regex(texts, pattern)).as_py())


def _try(values: pa.Array, kind: pa.DataType) -> pa.Array:
    try:
        return values.cast(kind)
    except pa.ArrowInvalid:
        return values


def texts(values: pa.Array) -> pa.Array:
    """Values as people read them: 39, 39.5, 2020-05-17, true; different values read differently."""
    if pa.types.is_floating(values.type) and is_whole(values) and _fits(values):
        return values.cast(pa.int64()).cast(pa.string())
    if pa.types.is_timestamp(values.type):
        if is_whole(values):
            return values.cast(pa.date32()).cast(pa.string())
        seconds = _try(values, pa.timestamp("s"))
        return pc.strftime(seconds, "%Y-%m-%d %H:%M:%S")
    return values.cast(pa.string())


def _fits(values: pa.Array) -> bool:
    extremes = pc.min_max(values)
    low, high = extremes["min"].as_py(), extremes["max"].as_py()
    return low is None or (low > -(2**53) and high < 2**53)


def ordered(values: pa.Array) -> pa.Array:
    """The distinct values in ascending order, the missing value last."""
    distinct = pc.unique(values)
    return distinct.take(pc.array_sort_indices(distinct, null_placement="at_end"))


def put_back(parts: Sequence[pa.Array], places: Sequence[Ints]) -> pa.Array:
    """The values of several parts, each at its own place."""
    place = np.concatenate(places)
    order = np.empty(len(place), dtype=np.int64)
    order[place] = np.arange(len(place))
    return pa.concat_arrays(parts).take(pa.array(order))


def places(values: pa.Array, found: pa.Array) -> Ints:
    """Where each found value stands among the distinct values, -1 where it does not.

    Values of one kind meet whatever their types: 39 is 39.0 and 39.00; of different kinds, as they read.
    """
    if values.type != found.type:
        if kind_of(values) == kind_of(found) == "number":
            values, found = values.cast(pa.float64(), safe=False), found.cast(pa.float64(), safe=False)
        elif kind_of(values) == kind_of(found) == "date":
            values, found = values.cast(pa.timestamp("us")), found.cast(pa.timestamp("us"))
        else:
            values, found = texts(values), texts(found)
    place: Ints = pc.index_in(found, values).fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return place


def numbers(values: pa.Array) -> Floats | None:
    """The numbers behind the values (days for dates), nan for the missing one; None where they are no numbers.

    Text that is all numbers without leading zeros counts: a taxonomy's 17, 18, … are in order.
    """
    if kind_of(values) == "date":
        return days(values)
    values = inferred(values) if kind_of(values) == "text" else values
    if kind_of(values) != "number":
        return None
    result: Floats = values.cast(pa.float64(), safe=False).fill_null(float("nan")).to_numpy(zero_copy_only=False)
    return result


def days(values: pa.Array) -> Floats:
    """Days since 1970-01-01 (fractions for times of day), nan for the missing value."""
    if pa.types.is_timestamp(values.type):
        micros = values.cast(pa.timestamp("us")).cast(pa.int64()).cast(pa.float64(), safe=False)
        times: Floats = micros.fill_null(float("nan")).to_numpy(zero_copy_only=False) / _DAY_MICROS
        return times
    count = values.cast(pa.date32()).cast(pa.int32()).cast(pa.float64())
    result: Floats = count.fill_null(float("nan")).to_numpy(zero_copy_only=False)
    return result


def is_whole(values: pa.Array) -> bool:
    """Whether all numbers (or days) are whole."""
    if pa.types.is_integer(values.type) or pa.types.is_date(values.type):
        return True
    if pa.types.is_timestamp(values.type):
        micros = values.drop_null().cast(pa.timestamp("us")).cast(pa.int64()).to_numpy()
        return bool(np.all(micros % _DAY_MICROS == 0))
    found = numbers(values)
    if found is None:
        return False
    present = found[~np.isnan(found)]
    return bool(np.all(present == np.floor(present)))


def needless_digits(values: pa.Array) -> bool:
    """Whether numbers have digits that only rounding can have made, as 3.20000004768372 has in place of 3.2.

    Of a thousand of them, those with at least 12 digits are mostly rounded to seven, and then to at most five.

    >>> needless_digits(pa.array([3.20000004768372, 0.30000000000000004, 1.5])), needless_digits(pa.array([0.1, 2 / 3]))
    (True, False)
    """
    if not pa.types.is_floating(values.type):
        return False
    known = values.drop_null()
    some = known.take(pa.array(np.linspace(0, len(known) - 1, min(len(known), 1000)).astype(np.int64))).to_pylist()
    long = [x for x in some if _digits(repr(x)) >= 12]
    return bool(long) and 2 * sum(_digits(f"{x:.7g}") <= 5 for x in long) > len(long)


def _digits(number: str) -> int:
    """The significant digits of a number as it is written."""
    return len(number.partition("e")[0].replace("-", "").replace(".", "").strip("0"))
