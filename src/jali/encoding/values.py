"""Distinct values of a column: what kind they are, their order, and how they read as text."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from jali.errors import InputError

Kind = Literal["number", "text", "date", "boolean"]
KINDS: tuple[Kind, ...] = ("number", "text", "date", "boolean")



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
    """Distinct texts of a file as the narrowest kind that holds them all.

    Leading zeros are kept as text; one value that is no number keeps the column text.
    """
    filled = texts.drop_null()
    if len(filled) == 0:
        return texts
    stripped = pc.utf8_trim_whitespace(filled)
    if _all(stripped, r"^-?(0|[1-9][0-9]{0,17})$"):
        return pc.utf8_trim_whitespace(texts).cast(pa.int64())
    if _all(stripped, r"^-?(0|[1-9][0-9]*)?(\.[0-9]*)?([eE][+-]?[0-9]+)?$") and _all(stripped, "[0-9]"):
        return pc.utf8_trim_whitespace(texts).cast(pa.float64())
    if _all(filled, r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"):
        return _try(texts, pa.date32())
    if _all(filled, r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?$"):
        return _try(texts, pa.timestamp("us"))
    if _all(filled, r"^(?i:true|false)$"):
        return pc.equal(pc.utf8_lower(texts), "true")
    return texts


def as_kind(column: str, values: pa.Array, kind: Kind) -> pa.Array:
    """Distinct values turned into a kind the caller asked for."""
    if kind_of(values) == kind:
        return values
    if kind == "text":
        return texts(values)
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        typed = inferred(values)
        if kind == "number" and kind_of(typed) == "text":
            typed = _try(pc.utf8_trim_whitespace(values), pa.float64())
        if kind_of(typed) == kind or len(values.drop_null()) == 0:
            return typed
    raise InputError(f'column "{column}" cannot be read as {kind}', do=f'leave it out of types=, or write types={{"{column}": "text"}}')


def _all(values: pa.Array, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(values, pattern)).as_py())


def _try(values: pa.Array, kind: pa.DataType) -> pa.Array:
    try:
        return values.cast(kind)
    except pa.ArrowInvalid:
        return values


def texts(values: pa.Array) -> pa.Array:
    """Values as people read them: 39, 39.5, 2020-05-17, true."""
    if pa.types.is_floating(values.type):
        whole = pc.equal(pc.floor(values), values)
        if bool(pc.all(pc.or_kleene(whole, pc.is_null(values, nan_is_null=False))).as_py()) and _fits(values):
            return values.cast(pa.int64()).cast(pa.string())
    if pa.types.is_timestamp(values.type):
        return pc.strftime(values, "%Y-%m-%d %H:%M:%S")
    return values.cast(pa.string())


def _fits(values: pa.Array) -> bool:
    extremes = pc.min_max(values)
    low, high = extremes["min"].as_py(), extremes["max"].as_py()
    return low is None or (low > -(2**53) and high < 2**53)


def ordered(values: pa.Array) -> pa.Array:
    """Values in ascending order, the missing value last."""
    return values.take(pc.array_sort_indices(values, null_placement="at_end"))


def numbers(values: pa.Array) -> NDArray[np.float64] | None:
    """The numbers behind the values (days for dates), nan for the missing one; None where they are no numbers.

    Text that is all numbers without leading zeros counts: a taxonomy's 17, 18, … are in order.
    """
    kind = kind_of(values)
    if kind == "text":
        typed = inferred(values)
        if kind_of(typed) != "number" or len(values.drop_null()) == 0:
            return None
        values = typed
    elif kind == "boolean":
        return None
    elif kind == "date":
        return days(values)
    result: NDArray[np.float64] = values.cast(pa.float64()).fill_null(float("nan")).to_numpy(zero_copy_only=False)
    return result


def days(values: pa.Array) -> NDArray[np.float64]:
    """Days since 1970-01-01 (fractions for times of day), nan for the missing value."""
    if pa.types.is_timestamp(values.type):
        micros = values.cast(pa.timestamp("us")).cast(pa.int64()).cast(pa.float64(), safe=False)
        return micros.fill_null(float("nan")).to_numpy(zero_copy_only=False) / 86_400_000_000
    result: NDArray[np.float64] = (
        values.cast(pa.date32()).cast(pa.int32()).cast(pa.float64()).fill_null(float("nan")).to_numpy(zero_copy_only=False)
    )
    return result


def is_whole(values: pa.Array) -> bool:
    """Whether all numbers (or days) are whole."""
    found = numbers(values)
    if found is None:
        return False
    present = found[~np.isnan(found)]
    return bool(np.all(present == np.floor(present)))
