"""Tables as distinct rows with their numbers: an order drawn from the numbers, and files written and read that way."""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import IO, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
from numpy.typing import NDArray

from jali.core.arrays import Ints, combine, counted, steps

Places = NDArray[np.int32]
"""The distinct row of each row: (rows,)."""

AT_ONCE = 1 << 16
"""Rows that are turned into text together: what is written then stays in the processor's cache."""
CHUNK = 1 << 18
"""Rows that are shuffled together."""
READY = 1 << 20
"""Distinct rows up to which every line of a CSV file is made once and held."""
NEARLY = 0.9
"""Of the first rows of a file, the share of distinct ones from which counting them is no help."""
_BLOCK = 1 << 22  # small enough to stay near the processor
_FOLDED = 1 << 26  # bytes of lines that wait until they are compared with those of earlier blocks
_drawing = threading.Lock()


# -- the order ----------------------------------------------------------------------------------------------------


def fresh_random() -> np.random.Generator:
    """A generator seeded by the system's own randomness: nobody can repeat what it draws."""
    return np.random.Generator(np.random.PCG64DXSM(secrets.randbits(256)))


def fresh_order(rows: int) -> NDArray[np.int64]:
    """A random order from the system's own randomness: nobody can repeat it, so the order gives nothing away."""
    return np.argsort(np.frombuffer(secrets.token_bytes(8 * rows), dtype=np.uint64)).astype(np.int64)


def open_order(rows: int) -> NDArray[np.int64]:
    """A random order by a fast generator, where a proof lets the attacker know it, as the order of ties in halves."""
    return np.random.default_rng(secrets.randbits(256)).permutation(rows)


def drawn(numbers: Ints, random: np.random.Generator) -> Places:
    """The rows that distinct rows with these numbers stand for, in a uniformly random order.

    Each row is in each of some chunks with the same probability, by itself, and a chunk is shuffled: that is sorting by
    independent uniform numbers whose first digit is the chunk. How many of a distinct row are in a chunk is binomial.
    """
    which, left = np.arange(len(numbers), dtype=np.int32), numbers
    of = np.empty(int(numbers.sum()), dtype=np.int32)
    chunks = max(1, -(-len(of) // CHUNK))
    chunks = chunks if chunks * len(numbers) <= len(of) else 1  # else drawing numbers takes longer than one shuffle
    at = 0
    for more in range(chunks, 0, -1):
        here = left if more == 1 else random.binomial(left, 1 / more)
        part = of[at : at + int(here.sum())]
        part[:] = np.repeat(which, here)
        random.shuffle(part)
        at, left = at + len(part), left - here
    return of


class Order:
    """The order of the rows that distinct rows stand for: as given, or drawn once, when it is first asked for."""

    def __init__(self, numbers: Ints, of: Places | None = None) -> None:
        self.numbers, self._of = numbers, of

    @cached_property
    def rows(self) -> int:
        """How many rows there are."""
        return int(self.numbers.sum())

    @property
    def of(self) -> Places:
        """The distinct row of each row: (rows,)."""
        if self._of is None:
            with _drawing:  # two threads that ask at once get the same order: else cells of two rows would mix
                self._of = drawn(self.numbers, fresh_random()) if self._of is None else self._of
        return self._of


# -- tables -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Rows:
    """A table as its distinct rows, and their order; without one they are the rows themselves."""

    distinct: pa.Table
    order: Order | None = None

    @property
    def count(self) -> int:
        """How many rows the table has."""
        return self.distinct.num_rows if self.order is None else self.order.rows

    @property
    def of(self) -> Places:
        """The distinct row of each row."""
        return np.arange(self.count, dtype=np.int32) if self.order is None else self.order.of

    @property
    def numbers(self) -> Ints:
        """How many rows each distinct row stands for."""
        return np.ones(self.count, dtype=np.int64) if self.order is None else self.order.numbers

    def plain(self) -> pa.Table:
        """The table row by row, without dictionaries."""
        of = None if self.order is None else pa.array(self.order.of)
        columns = (_flat(column) for column in self.distinct.columns)
        return pa.table([_plain(column, of) for column in columns], names=self.distinct.column_names)

    def coded(self) -> pa.Table:
        """The table row by row; columns that are dictionaries still are."""
        return self.distinct if self.order is None else self.distinct.take(pa.array(self.order.of))

    def parts(self, at_once: int, of: slice | None = None) -> Iterator[pa.Table]:
        """The table in its order, or a slice of it, some rows at a time."""
        begin, end = (0, self.count) if of is None else (of.start, of.stop)
        for part in steps(end - begin, 1, at_once):
            some = slice(begin + part.start, begin + part.stop)
            own = self.distinct.slice(some.start, some.stop - some.start)
            yield own if self.order is None else self.distinct.take(pa.array(self.order.of[some]))


def ordered(distinct: pa.Table, of: Places) -> Rows:
    """The table whose rows are these distinct rows."""
    return Rows(distinct, Order(counted(of, length=distinct.num_rows), of))


def _flat(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array."""
    if pa.types.is_dictionary(column.type):
        column = column.unify_dictionaries()
    whole = column.combine_chunks()
    return pa.concat_arrays(whole.chunks) if isinstance(whole, pa.ChunkedArray) else whole


def _plain(column: pa.Array, of: pa.Array | None) -> pa.Array:
    if not pa.types.is_dictionary(column.type):
        return column if of is None else column.take(of)
    return column.dictionary.take(column.indices if of is None else column.indices.take(of))


def cells(labels: pa.Array, codes: NDArray[np.integer]) -> pa.DictionaryArray:
    """What stands in each row, as a dictionary; a missing value is a missing index, as files have it."""
    if labels.null_count == 0:
        return pa.DictionaryArray.from_arrays(pa.array(codes), labels)
    filled = labels.is_valid().to_numpy(zero_copy_only=False)
    place = (np.cumsum(filled) - 1).astype(np.int32)
    return pa.DictionaryArray.from_arrays(pa.array(place[codes], mask=~filled[codes]), labels.drop_null())


# -- CSV ----------------------------------------------------------------------------------------------------------


def csv_lines(table: pa.Table) -> pa.Array:
    """The line of each row with its line break: texts in quotes, so that an empty one stays apart from a missing value.

    Every distinct cell is written once.
    """
    columns = [_flat(column) for column in table.columns]
    last = len(columns) - 1
    texts = [_csv_cells(column, "\n" if at == last else "") for at, column in enumerate(columns)]
    return (texts[0] if last == 0 else pc.binary_join_element_wise(*texts, pa.scalar(",", pa.large_string()))).cast(
        pa.large_binary()
    )


def _csv_cells(column: pa.Array, end: str) -> pa.Array:
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    known = coded.dictionary
    texts = known.cast(pa.large_string())
    if pa.types.is_string(known.type) or pa.types.is_large_string(known.type):
        texts = _joined('"', pc.replace_substring(texts, '"', '""'), '"')
    return _joined("", texts.fill_null(""), end).take(coded.indices).fill_null(end)


def _joined(before: str, texts: pa.Array, after: str) -> pa.Array:
    around = (pa.scalar(text, pa.large_string()) for text in (before, after, ""))
    return pc.binary_join_element_wise(next(around), texts, *around)


def csv_parts(rows: Rows) -> Iterator[pa.Buffer]:
    """The bytes of a CSV file, part by part: the names, then the rows in their order."""
    names = pa.table({name: pa.array([], pa.string()) for name in rows.distinct.column_names})
    yield _csv(names, header=True)
    if rows.order is None or rows.distinct.num_rows > min(READY, rows.count / 2):
        for part in rows.parts(AT_ONCE):
            yield _csv(Rows(part).plain(), header=False)
        return
    lines = csv_lines(rows.distinct)
    for some in steps(rows.count, 1, AT_ONCE):
        yield joined_lines(lines.take(pa.array(rows.order.of[some])))


def _csv(table: pa.Table, *, header: bool) -> pa.Buffer:
    """The rows as Arrow writes them, which are the same lines."""
    made = pa.BufferOutputStream()
    pacsv.write_csv(table, made, pacsv.WriteOptions(quoting_style="needed", include_header=header))
    return made.getvalue()


def joined_lines(lines: pa.Array) -> pa.Buffer:
    """The lines one after the other."""
    _, offsets, data = lines.buffers()
    ends = np.frombuffer(offsets, dtype=np.int64)
    begin, end = int(ends[lines.offset]), int(ends[lines.offset + len(lines)])
    return data.slice(begin, end - begin) if data is not None else pa.py_buffer(b"")


class Lines(NamedTuple):
    """A file of lines: its first line, the distinct ones among the others, and which of them each is."""

    first: bytes
    distinct: pa.Array  # (distinct lines,) with their line breaks
    of: Places  # (lines but the first,)


def distinct_lines(file: IO[bytes], *, most: float = 0.5) -> Lines | None:
    """The distinct lines of a file.

    None where lines are no way to read it: a carriage return stands in it, its last line does not end, more than the
    share `most` of its lines are distinct, or nearly all of its first ones.
    """
    first = file.readline()
    found, buffer, kept = _Found(), bytearray(min(_BLOCK, _left(file) + 1)), 0
    if not first.endswith(b"\n") or b"\r" in first:
        return None
    while read := file.readinto(memoryview(buffer)[kept:]):  # type: ignore[attr-defined]
        if buffer.find(b"\r", kept, kept + read) >= 0:
            return None
        data = np.frombuffer(buffer, np.uint8, kept + read)
        ends = np.flatnonzero(data == ord("\n"))
        if len(ends) and found.add(data, ends) > most:
            return None
        left = data[ends[-1] + 1 :].tobytes() if len(ends) else data.tobytes()
        del data
        if len(left) == len(buffer):  # a line that is longer than all this
            buffer = bytearray(2 * len(buffer))
        buffer[: len(left)] = left
        kept = len(left)
    return None if kept else Lines(first, *found.all())


def _left(file: IO[bytes]) -> int:
    """How many bytes of a file are still to be read."""
    return max(os.fstat(file.fileno()).st_size - file.tell(), 1)


class _Found:
    """The distinct lines of the blocks so far. Blocks wait until there is enough of them to compare with the rest."""

    def __init__(self) -> None:
        self.known = pa.array([], pa.large_binary())
        self.parts: list[Places] = []
        self.waiting: list[pa.DictionaryArray] = []

    def add(self, data: NDArray[np.uint8], ends: Ints) -> float:
        """Number the lines that end at these places; the share of distinct lines, where it has become known, or 0."""
        offsets = np.zeros(len(ends) + 1, dtype=np.int64)
        np.add(ends, 1, out=offsets[1:])
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
        self.waiting.append(pa.Array.from_buffers(pa.large_binary(), len(ends), buffers).dictionary_encode())
        if sum(each.dictionary.nbytes for each in self.waiting) > max(_FOLDED, 2 * self.known.nbytes):
            self._fold()
            return len(self.known) / sum(map(len, self.parts))
        first = self.waiting[0]
        return 0.0 if self.parts or len(first.dictionary) < NEARLY * len(first) else 1.0

    def _fold(self) -> None:
        """Number the waiting lines among all; those that are known keep their numbers."""
        every = pa.concat_arrays([self.known, *(each.dictionary for each in self.waiting)]).dictionary_encode()
        number, at = every.indices.to_numpy(), len(self.known)
        for each in self.waiting:
            self.parts.append(number[at : at + len(each.dictionary)][each.indices.to_numpy()])
            at += len(each.dictionary)
        self.known, self.waiting = every.dictionary, []

    def all(self) -> tuple[pa.Array, Places]:
        """The distinct lines, and which of them each line is."""
        if not self.parts and len(self.waiting) == 1:
            return self.waiting[0].dictionary, self.waiting[0].indices.to_numpy()
        self._fold()
        return self.known, np.concatenate(self.parts) if self.parts else np.zeros(0, dtype=np.int32)


# -- columns ------------------------------------------------------------------------------------------------------


def distinct_rows(parts: Iterable[pa.Table]) -> Rows:
    """The distinct rows of a table that comes part by part."""
    return together([ordered(*_distinct(part)) for part in parts])


def together(parts: Sequence[Rows]) -> Rows:
    """The table that several make one after the other."""
    if len(parts) == 1:
        return parts[0]
    whole, number = _distinct(pa.concat_tables([part.distinct for part in parts]))
    own = np.split(number, np.cumsum([part.distinct.num_rows for part in parts])[:-1])
    return ordered(whole, np.concatenate([numbers[part.of] for numbers, part in zip(own, parts, strict=True)]))


def _distinct(table: pa.Table) -> tuple[pa.Table, Places]:
    """The distinct rows of a table, and which of them each row is; columns that were dictionaries still are."""
    coded = [_coded(column) for column in table.columns]
    number, first = combine([(codes, len(labels)) for labels, codes in coded], table.num_rows)
    columns = []
    for (labels, codes), column in zip(coded, table.columns, strict=True):
        own = codes[first]
        columns.append(cells(labels, own) if pa.types.is_dictionary(column.type) else labels.take(pa.array(own)))
    return pa.table(columns, names=table.column_names), number


def _coded(column: pa.ChunkedArray) -> tuple[pa.Array, NDArray[np.integer]]:
    """The distinct values of a column, a missing one last, and the code of each row."""
    whole = _flat(column)
    coded = whole if pa.types.is_dictionary(whole.type) else whole.dictionary_encode()
    labels, indices = coded.dictionary, coded.indices
    if indices.null_count:
        labels = pa.concat_arrays([labels, pa.nulls(1, labels.type)])
        indices = indices.cast(pa.int32()).fill_null(len(labels) - 1)
    return labels, indices.to_numpy(zero_copy_only=False)
