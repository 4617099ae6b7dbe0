"""Columns as their distinct values, and where each record's stands; rows of a large file, counted while it is read."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from jali.core.arrays import Ints, counted, narrowed
from jali.encoding import values as v
from jali.errors import InputError
from jali.sources.engines.base import ROWS, Combinations, in_order

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
        """How many rows have each distinct value: (values,)."""
        counts, at = np.zeros(len(self.distinct), dtype=np.int64), 0
        for indices, value in self.parts:
            rows = None if self.multiplicity is None else self.multiplicity[at : at + len(indices)]
            np.add.at(counts, value, counted(indices, rows, len(value)))
            at += len(indices)
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
    """Distinct values and codes of an Arrow column; NaN counts as missing, infinity is refused, also of dates."""
    dictionaries, chunks = [], []
    for chunk in column.chunks or [pa.array([], column.type)]:
        encoded = chunk if pa.types.is_dictionary(chunk.type) else encodable(name, chunk, kind).dictionary_encode()
        dictionary = _plain(name, encoded.dictionary, kind)
        _refuse_broken_text(name, dictionary)
        indices = encoded.indices
        _refuse_outside(name, indices, len(dictionary))
        if indices.null_count:
            indices = indices.cast(pa.int32()).fill_null(len(dictionary))
        codes = indices.to_numpy()
        occurs = counted(codes, length=len(dictionary) + 1) > 0
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
    _refuse_no_day(name, found)
    return found


def _refuse_outside(name: str, indices: pa.Array, values: int) -> None:
    """Raise InputError where an index of a dictionary has no value, as in a damaged file; Arrow does not look."""
    ends = pc.min_max(indices).as_py()
    if ends["min"] is not None and not 0 <= ends["min"] <= ends["max"] < values:
        raise InputError(f'column "{name}" is damaged', do="get the table again")


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


def _refuse_no_day(name: str, found: Raw) -> None:
    """Raise InputError for a date of a database that no calendar shows, such as its infinity."""
    at = v.beyond_calendar(found.distinct)
    if at is not None:
        what = f'column "{name}" holds a date outside the years 1 to 9999{found.where(at)}'
        raise InputError(what, do="replace it or leave it empty")


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


# -- distinct rows of a large file, counted while it is read: row groups side by side --------------------------------

MANY = 1 << 21
"""Rows of a file from which on they are counted while it is read."""
NEARLY = 0.7
"""The share of distinct ones among the first rows from which on counting is no help."""
_WORKERS = 2
_BITS = 62  # of a word
_FIRST = 1 << 16  # entries of a new table

Indices = tuple[NDArray[np.int32], Ints]
"""Where each row's value stands in a dictionary, and the code of each entry of the dictionary."""


class Values:
    """The values of a column that occurred so far, each with a code; threads may share it."""

    def __init__(self, name: str) -> None:
        self.name, self.known = name, dict[pa.DataType, pa.Array]()
        self._lock = threading.Lock()

    def codes(self, column: pa.ChunkedArray) -> Indices:
        """The indices of some rows, and the codes that they stand for; the missing value has code 0."""
        whole = column.combine_chunks()
        whole = whole.chunk(0) if isinstance(whole, pa.ChunkedArray) and whole.num_chunks == 1 else whole
        if not pa.types.is_dictionary(whole.type):
            whole = encodable(self.name, whole, None).dictionary_encode()
        if isinstance(whole, pa.ChunkedArray):
            whole = pa.concat_arrays(whole.unify_dictionaries().chunks)
        indices = whole.indices.cast(pa.int32())
        if indices.null_count:
            indices = indices.fill_null(len(whole.dictionary))
        return indices.to_numpy(zero_copy_only=False), np.append(self._numbered(whole.dictionary), 0)

    def _numbered(self, values: pa.Array) -> Ints:
        with self._lock:
            known = self.known.get(values.type, pa.array([], values.type))
            place = pc.index_in(values, known)
            if place.null_count:
                fresh = values.filter(place.is_null()).drop_null().unique()
                known = self.known[values.type] = pa.concat_arrays([known, fresh])
                place = pc.index_in(values, known)
        code: Ints = place.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64) + 1
        return code

    def column(self, codes: NDArray[np.integer]) -> pa.Array:
        """The values of some codes, as a dictionary."""
        (known,) = self.known.values() or [pa.array([], pa.string())]
        return pa.DictionaryArray.from_arrays(pa.array(codes - 1, mask=codes == 0), known)


class Tally:
    """Distinct rows of codes and how many there are of each, in a hash table that grows."""

    def __init__(self, columns: int) -> None:
        self.bits = np.zeros(columns, dtype=np.int64)
        self._fresh(self.bits)

    def _fresh(self, bits: Ints, entries: int = _FIRST) -> None:
        """An empty table whose keys have these bits for each column."""
        self.bits, self.used, self.rows = bits, 0, 0
        self.word, self.shift = np.zeros(len(bits), dtype=np.int64), np.zeros(len(bits), dtype=np.int64)
        word = at = 0
        for i, own in enumerate(bits.tolist()):
            if at + own > _BITS:
                word, at = word + 1, 0
            self.word[i], self.shift[i] = word, at
            at += own
        self.table = np.zeros((entries, word + 2), dtype=np.int64)

    def add(self, columns: Sequence[Indices], numbers: Ints | None = None) -> None:
        """Count some rows; `numbers` says how many each of them stands for, by default one."""
        from jali.kernels.counting import pack

        most = np.array([max(int(code.max(initial=0)), 1) for _, code in columns])
        need = np.array([int(value).bit_length() for value in most])
        if (need > self.bits).any():
            self._widen(np.maximum(self.bits, need + 1))
        keys = np.zeros((len(columns[0][0]), self.table.shape[1] - 1), dtype=np.int64)
        for (indices, code), word, shift in zip(columns, self.word.tolist(), self.shift.tolist(), strict=True):
            pack(keys, word, indices, code, shift)
        self._count(keys, np.zeros(0, dtype=np.int64) if numbers is None else numbers)
        self.rows += len(keys) if numbers is None else int(numbers.sum())

    def _count(self, keys: Ints, numbers: Ints) -> None:
        from jali.kernels.counting import count_keys

        done = 0
        while True:
            done, self.used = count_keys(keys, numbers, self.table, done, self.used)
            if done == len(keys):
                return
            old = self.table[self.table[:, -1] > 0]
            self.table, self.used = np.zeros((2 * len(self.table), self.table.shape[1]), dtype=np.int64), 0
            self._count(np.ascontiguousarray(old[:, :-1]), np.ascontiguousarray(old[:, -1]))

    def _widen(self, bits: Ints) -> None:
        """Move the rows that were counted to keys with these bits for each column."""
        codes, numbers = self.all()
        rows = self.rows
        self._fresh(bits, len(self.table))
        if len(numbers):
            self.add_codes(codes, numbers)
        self.rows = rows

    def add_codes(self, codes: Sequence[NDArray[np.integer]], numbers: Ints) -> None:
        """Count rows of codes, given column by column."""
        every = [np.arange(int(own.max(initial=0)) + 1) for own in codes]
        self.add([(own.astype(np.int32), some) for own, some in zip(codes, every, strict=True)], numbers)

    def all(self) -> tuple[list[NDArray[np.integer]], Ints]:
        """The distinct rows, column by column, and how many there are of each."""
        held = self.table[self.table[:, -1] > 0]
        parts = zip(self.word.tolist(), self.shift.tolist(), self.bits.tolist(), strict=True)
        return [narrowed(held[:, word] >> shift & ((1 << bits) - 1)) for word, shift, bits in parts], held[:, -1].copy()


def counted_rows(names: Sequence[str], parts: Iterable[Callable[[], pa.Table]]) -> Combinations | None:
    """The distinct rows of a table that comes in parts, each read when it is called for.

    None where nearly all of the first rows are distinct, so that counting them is no help, or where a column has
    several types.
    """
    values = {name: Values(name) for name in names}
    waiting, lock, failed = iter(parts), threading.Lock(), threading.Event()

    def work(_: int) -> Tally:
        tally = Tally(len(names))
        while not failed.is_set():
            with lock:
                read = next(waiting, None)
            if read is None:
                break
            part = read()
            for some in part.to_batches(max_chunksize=MANY // 2):
                own = pa.Table.from_batches([some])
                tally.add([values[name].codes(own[name]) for name in names])
            if tally.rows >= MANY // 2 and tally.used > NEARLY * tally.rows:
                failed.set()
        return tally

    with ThreadPoolExecutor(_WORKERS) as workers:
        tallies = list(workers.map(work, range(_WORKERS)))
    if failed.is_set() or any(len(each.known) > 1 for each in values.values()):
        return None
    tallies.sort(key=lambda each: each.used)
    whole = tallies.pop()
    while tallies:
        whole.add_codes(*tallies.pop().all())
    codes, numbers = whole.all()
    del whole
    columns: dict[str, Any] = {name: values[name].column(own) for name, own in zip(names, codes, strict=True)}
    return in_order(pa.table(columns | {ROWS: pa.array(numbers)}), list(names))


def gathered(parts: Iterable[pa.Table]) -> pa.Table:
    """The table that comes in these parts, with its texts as codes; of a part nothing else is held."""
    values: dict[str, Values] = {}
    held: dict[str, list[Any]] = {}
    for part in parts:
        for field in part.schema:
            column = part[field.name]
            if pa.types.is_string(field.type) or pa.types.is_large_string(field.type):
                indices, code = values.setdefault(field.name, Values(field.name)).codes(column)
                own: Any = narrowed(code)[indices]
            else:
                own = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], field.type)  # a copy
            held.setdefault(field.name, []).append(own)
    return pa.table({
        name: values[name].column(np.concatenate(own)) if name in values else pa.chunked_array(own)
        for name, own in held.items()
    })  # fmt: skip
