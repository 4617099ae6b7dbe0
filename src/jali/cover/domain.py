"""Typed values of a column: made comparable, checked, and told apart by tests where nothing else is known of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from jali.core.arrays import Bools
from jali.cover import intervals as spans
from jali.cover import masks
from jali.encoding import values as v
from jali.errors import InputError
from jali.query.algebra import Scalar, Test, holds


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


def comparable(known: pa.Array, asked: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Both as one type."""
    kind = joint_type([known.type, asked.type])
    return known.cast(kind, safe=False), asked.cast(kind, safe=False)


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


def universe(tests: Sequence[Test], kind: v.Kind | None) -> Bools:
    """The truth patterns that some value of this kind has, known or not: (patterns, tests)."""
    if kind in ("number", "date"):
        return spans.universe(tests, kind)
    if kind == "boolean":
        return np.stack([holds(test, [False, True]) for test in tests], axis=1)
    found = np.zeros((1, len(tests)), dtype=np.bool_)
    for sort in ("text", "number", "boolean"):  # texts that spell numbers or truth values may be judged as these
        some = [i for i, test in enumerate(tests) if _literal_kind(test) == sort]
        if some:
            added = _of_sort([tests[i] for i in some], sort)
            found = np.repeat(found, len(added), axis=0)
            found[:, some] = np.tile(added, (len(found) // len(added), 1))
    return found


def _of_sort(tests: Sequence[Test], sort: str) -> Bools:
    if sort == "text":
        return masks.universe(tests)
    if sort == "number":
        return spans.universe(tests, "number")
    return np.eye(len(tests) + 1, len(tests), dtype=np.bool_)


def _literal_kind(test: Test) -> str:
    value = test.value
    one = next(iter(cast(frozenset[Scalar], value))) if isinstance(value, frozenset) else value
    if isinstance(one, bool):
        return "boolean"
    return "text" if one is None or isinstance(one, str) else "number"
