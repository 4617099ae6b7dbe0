"""Columns as their distinct values, and where each record's stands: what is read of a file or a frame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from jali.core.arrays import Ints
from jali.encoding import values as v
from jali.errors import InputError

T = TypeVar("T", bound=np.number)


@dataclass(frozen=True, eq=False)
class Raw:
    """Distinct values (each occurs; the missing one is null) and, chunk by chunk, where each record's stands."""

    distinct: pa.Array  # (values,)
    parts: tuple[tuple[NDArray[np.integer], Ints], ...]  # indices of records, and the value of each index
    has_rows: bool = True  # whether a record's number is a row's number; not so where an engine counted rows
    multiplicity: Ints | None = None  # (records,) rows of each record, where an engine counted them

    def codes(self, of: NDArray[T]) -> NDArray[T]:
        """For each record the entry of an array over the distinct values: (records,)."""
        return np.concatenate([of[value][indices] for indices, value in self.parts])

    def cells(self) -> Ints:
        """How many records have each distinct value: (values,)."""
        counts = np.zeros(len(self.distinct), dtype=np.int64)
        for indices, value in self.parts:
            np.add.at(counts, value, np.bincount(indices, minlength=len(value)))
        return counts

    def where(self, value: int) -> str:
        """', row 17' for the row in which a distinct value first stands."""
        before = 0
        for indices, number in self.parts:
            found = np.flatnonzero(number[indices] == value)
            if len(found) and self.has_rows:
                return f", row {before + int(found[0]) + 1}"
            before += len(indices)
        return ""


def raw(name: str, column: pa.ChunkedArray, kind: v.Kind | None = None, *, has_rows: bool = True) -> Raw:
    """Distinct values and codes of an Arrow column; NaN counts as missing, infinity is refused."""
    dictionaries, chunks = [], []
    for chunk in column.chunks or [pa.array([], column.type)]:
        encoded = chunk if pa.types.is_dictionary(chunk.type) else encodable(name, chunk, kind).dictionary_encode()
        dictionary = _plain(name, encoded.dictionary, kind)
        _refuse_broken_text(name, dictionary)
        indices = encoded.indices
        if indices.null_count:
            indices = indices.cast(pa.int32()).fill_null(len(dictionary))
        codes = indices.to_numpy()
        occurs = np.bincount(codes, minlength=len(dictionary) + 1) > 0
        dictionaries.append(pa.concat_arrays([dictionary, pa.nulls(1, dictionary.type)]).filter(pa.array(occurs)))
        chunks.append((codes, occurs))
    # Categories that never occur are gone; those that repeat, within a chunk or over chunks, become one.
    every = pa.concat_arrays(dictionaries).dictionary_encode(null_encoding="encode")
    numbers = every.indices.to_numpy().astype(np.int64)
    parts, at = [], 0
    for codes, occurs in chunks:
        value = np.zeros(len(occurs), dtype=np.int64)
        value[occurs] = numbers[at : at + int(occurs.sum())]
        at += int(occurs.sum())
        parts.append((codes, value))
    distinct = every.dictionary
    if pa.types.is_decimal(distinct.type) and kind != "text":
        distinct = _told_apart(name, distinct)
    found = Raw(distinct, tuple(parts), has_rows)
    refuse_infinite(name, found, found.distinct)
    return found


def _told_apart(name: str, values: pa.Array) -> pa.Array:
    """Decimals, which are compared as floats; whole ones that floats do not hold as integers of 64 bits."""
    most = pc.max(pc.abs(values)).as_py()
    distinct = len(pc.unique(values.cast(pa.float64()))) == len(values)
    if distinct and (most is None or most <= 2**53):
        return values
    if pc.all(pc.equal(pc.round(values), values)).as_py() and most < 2**63:
        return values.cast(pa.int64())
    if distinct:
        return values
    do = f'write types={{"{name}": "text"}}, or round them'
    raise InputError(f'column "{name}" holds numbers of more digits than can be told apart', do=do)


def refuse_infinite(name: str, found: Raw, values: pa.Array) -> None:
    """Raise InputError when one of the values, each in the place of a distinct one, is infinite."""
    at = v.infinite(values)
    if at is not None:
        raise InputError(
            f'column "{name}" holds an infinite number{found.where(at)}', do="replace it or leave it empty"
        )


def _refuse_broken_text(name: str, values: pa.Array) -> None:
    """Raise InputError for bytes that a file calls text and that are none."""
    try:
        values.validate(full=True)
    except pa.ArrowInvalid:
        raise InputError(f'column "{name}" holds text that is not valid UTF-8', do="write it again as UTF-8") from None


def encodable(name: str, values: pa.Array, kind: v.Kind | None) -> pa.Array:
    """The values in a type that Arrow can number."""
    of = values.type
    if pa.types.is_string_view(of):
        return values.cast(pa.large_string())
    if pa.types.is_null(of):
        return values.cast(pa.string())
    known = (
        pa.types.is_floating(of), pa.types.is_integer(of), pa.types.is_decimal(of), pa.types.is_boolean(of),
        pa.types.is_string(of), pa.types.is_large_string(of), pa.types.is_date(of), pa.types.is_timestamp(of),
    )  # fmt: skip
    return values if any(known) else _plain(name, values, kind)


def _plain(name: str, values: pa.Array, kind: v.Kind | None) -> pa.Array:
    """Values of one of the few types that jali works with; others are refused with the reason."""
    of = values.type
    if pa.types.is_floating(of):
        return v.without_signs_of_zero(values.cast(pa.float64()))
    if pa.types.is_string(of) or pa.types.is_boolean(of) or pa.types.is_decimal(of):
        return values
    if pa.types.is_large_string(of) or pa.types.is_string_view(of) or pa.types.is_null(of):
        return values.cast(pa.string())
    if pa.types.is_date(of):
        return values.cast(pa.date32())
    if pa.types.is_timestamp(of):  # times are told as the clock of their own zone showed them
        local = values if of.tz is None else pc.local_timestamp(values)
        return local.cast(pa.timestamp("us"), safe=False)
    try:
        if pa.types.is_integer(of):
            return values.cast(pa.string() if kind == "text" else pa.int64())
        if kind == "text":
            return values.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        pass
    what = "whole numbers beyond 64 bits" if pa.types.is_integer(of) else "values that jali cannot publish"
    do = f'turn it into texts or numbers first, or write types={{"{name}": "text"}}'
    raise InputError(f'column "{name}" holds {what}', got=str(of), do=do)
