"""Forms that tables have elsewhere: frames of other libraries, CSV files of distinct rows, CSV for spreadsheets."""

from __future__ import annotations

import csv
import importlib
import io
import mmap
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
from numpy.typing import NDArray

from jali.core.arrays import Ints, counted, steps
from jali.core.rows import Order, Paired, Places, Rows, flat, known_or_zero
from jali.errors import InputError, nearest, one_of, told

FRAMES = ("arrow", "pandas", "polars")


def free_name(wanted: str, taken: Iterable[str]) -> str:
    """A column name that is not taken.

    >>> free_name("rows", ["age", "rows"])
    'rows_'
    """
    names = set(taken)
    while wanted in names:
        wanted += "_"
    return wanted


def to_native(table: pa.Table, kind: str) -> Any:
    """The table as an Arrow table, a pandas frame or a Polars frame."""
    if not one_of(kind, FRAMES):
        raise InputError(f'no kind of frame "{told(kind)}"', do=nearest(kind, FRAMES))
    if kind == "arrow":
        return table
    try:
        library = importlib.import_module(kind)
    except ModuleNotFoundError:
        raise InputError(f"{kind} is not installed", do='install it, or ask for frame("arrow")') from None
    if kind == "polars":
        return library.from_arrow(table)
    nullable = {pa.int64(): library.Int64Dtype(), pa.bool_(): library.BooleanDtype()}
    columns = {
        name: column.to_pandas(date_as_object=False, types_mapper=nullable.get if column.null_count else None)
        for name, column in zip(table.column_names, table.columns, strict=True)
    }  # a missing number makes whole numbers floats unless their type knows missing values
    return library.DataFrame(columns)


LARGEST = 2**31 - 1
"""Bytes that a row of a CSV file may have: Arrow numbers them with 32 bits."""
Read = TypeVar("Read")


def in_blocks(read: Callable[[int], Read], size: int, source: Path | bytes | None = None) -> Read:
    """Read a CSV file in blocks of `size` bytes, or larger ones where its longest row needs them.

    `source` is what is read, where it is read as it stands: then no block ends within a line break.
    """
    while True:
        try:
            return read(size if source is None else between_lines(source, size))
        except pa.ArrowInvalid as problem:
            if "straddling" not in str(problem) or size >= LARGEST:
                raise
            size = min(size * 8, LARGEST)


def between_lines(source: Path | bytes, size: int) -> int:
    """A block size of at least `size` bytes: no block ends between CR and LF, where Arrow drops the LF."""
    if isinstance(source, bytes):
        return _between_lines(source, size)
    if source.stat().st_size == 0:  # nothing to map
        return size
    with source.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return _between_lines(data, size)


def _between_lines(data: bytes | mmap.mmap, size: int) -> int:
    while any(data[end - 1 : end + 1] == b"\r\n" for end in range(size, len(data), size)):
        size += 1
    return size


@contextmanager
def any_length() -> Iterator[None]:
    """Let Python's own CSV reader take fields of any length."""
    before = csv.field_size_limit(LARGEST)
    try:
        yield
    finally:
        csv.field_size_limit(before)


QUOTE = "'"
_BEGINS = r"^[=+\-@\t\r\n＝＋－＠]"
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"


def runs(texts: pa.Array, *, numbers: bool = False) -> pa.Array:
    """Whether each text is one that a spreadsheet runs; with `numbers` a plain number such as -5 is none."""
    found = pc.match_substring_regex(texts, _BEGINS)
    if numbers:
        found = pc.and_not(found, pc.match_substring_regex(texts, _NUMBER))
    return pc.fill_null(found, False)


def formula_columns(table: pa.Table, kinds: Mapping[str, str]) -> list[str]:
    """The columns with such a cell or name; `kinds` says of which kind the values are, where that is known.

    >>> formula_columns(pa.table({"a": ["=1+1", "x"], "b": ["-5", "*"], "c": [-5, 1]}), {"b": "number"})
    ['a']
    """
    return [
        name
        for name, column in zip(table.column_names, table.columns, strict=True)
        if has_formula([name]) or _any_runs(column, numbers=kinds.get(name, "text") != "text")
    ]


def has_formula(texts: Iterable[str]) -> bool:
    """Whether a spreadsheet would run one of these texts."""
    return bool(pc.any(runs(pa.array(texts, pa.string()))).as_py())


def _any_runs(column: pa.ChunkedArray, *, numbers: bool) -> bool:
    if not _is_text(column.type):
        return False
    return bool(pc.any(runs(pc.unique(column.cast(pa.string())), numbers=numbers)).as_py())


def quoted(table: pa.Table, kinds: Mapping[str, str]) -> pa.Table:
    """The table with an apostrophe before each cell and name that a spreadsheet would run, or that begins with one."""
    return _changed(table, lambda texts, name: _with_quote(texts, numbers=kinds.get(name or "", "text") != "text"))


def unquoted(table: pa.Table) -> pa.Table:
    """The table that was quoted."""
    return _changed(table, lambda texts, _: pc.replace_substring_regex(texts, f"^{QUOTE}", ""))


def _with_quote(texts: pa.Array, *, numbers: bool) -> pa.Array:
    wanted = pc.or_(runs(texts, numbers=numbers), pc.fill_null(pc.starts_with(texts, QUOTE), False))
    return pc.if_else(wanted, pc.binary_join_element_wise(QUOTE, texts, ""), texts)


def _changed(table: pa.Table, change: Callable[[pa.Array, str | None], pa.Array]) -> pa.Table:
    """The table with its texts changed column by column, each distinct one once, and its names (None: of no column)."""
    columns = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        chunks = column.chunks
        if _is_text(column.type):
            chunks = [_texts_changed(chunk, change, name) for chunk in chunks]
        columns.append(pa.chunked_array(chunks, chunks[0].type if chunks else column.type))
    return pa.table(columns, names=change(pa.array(table.column_names, pa.string()), None).to_pylist())


def _texts_changed(chunk: pa.Array, change: Callable[[pa.Array, str | None], pa.Array], name: str) -> pa.Array:
    coded = chunk if pa.types.is_dictionary(chunk.type) else chunk.dictionary_encode()
    made = pa.DictionaryArray.from_arrays(coded.indices, change(coded.dictionary.cast(pa.string()), name))
    return made if pa.types.is_dictionary(chunk.type) else made.cast(chunk.type)


def _is_text(kind: pa.DataType) -> bool:
    own = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(own) or pa.types.is_large_string(own))


# -- CSV files of distinct rows --------------------------------------------------------------------------------------

AT_ONCE = 1 << 16
"""Rows that are turned into text together: what is written then stays in the processor's cache."""
READY = 1 << 20
"""Distinct rows up to which every line of a CSV file is made once and held."""
NEARLY = 0.9
"""Of the first rows of a file, the share of distinct ones from which counting them is no help."""
_BLOCK = 1 << 22  # small enough to stay near the processor
_FOLDED = 1 << 26  # bytes of lines that wait until they are compared with those of earlier blocks


def csv_lines(table: pa.Table) -> pa.Array:
    """The line of each row with its line break: texts in quotes, so that an empty one stays apart from a missing value.

    Every distinct cell is written once.
    """
    columns = [flat(column) for column in table.columns]
    last = len(columns) - 1
    texts = [_csv_cells(column, "\n" if at == last else "") for at, column in enumerate(columns)]
    return (texts[0] if last == 0 else pc.binary_join_element_wise(*texts, pa.scalar(",", pa.large_string()))).cast(
        pa.large_binary()
    )


def _csv_cells(column: pa.Array, end: str) -> pa.Array:
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    known = coded.dictionary
    texts, quote = known.cast(pa.large_string()), ""
    if pa.types.is_string(known.type) or pa.types.is_large_string(known.type):
        texts, quote = pc.replace_substring(texts, '"', '""'), '"'
    around = (pa.scalar(text, pa.large_string()) for text in (quote, quote + end, ""))
    cells = pc.binary_join_element_wise(next(around), texts, *around) if quote or end else texts
    taken = cells.take(coded.indices)
    return taken.fill_null(end) if taken.null_count else taken


def csv_parts(rows: Rows) -> Iterator[pa.Buffer]:
    """The bytes of a CSV file, part by part: the names, then the rows in their order."""
    names = pa.table({name: pa.array([], pa.string()) for name in rows.names})
    yield _csv(names, header=True)
    if rows.order is None or rows.held > min(READY, rows.count / 2):
        for part in rows.parts(AT_ONCE):
            yield _csv(Rows(part).plain(), header=False)
        return
    lines = csv_lines(replace(rows, order=None).coded())
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
    """A file of lines: its first line, the distinct ones among the others, and their order, with their numbers."""

    first: bytes
    distinct: pa.Array  # (distinct lines,) with their line breaks
    order: Order  # of the lines but the first


def distinct_lines(file: IO[bytes], *, most: float = 0.5, in_order: bool = True) -> Lines | None:
    """The distinct lines of a file; without `in_order` their numbers only, for which any order will do.

    None where lines are no way to read it: a carriage return stands in it, its last line does not end, more than the
    share `most` of its lines are distinct, or nearly all of its first ones.
    """
    first = file.readline()
    found, buffer, kept = _Found(in_order=in_order), bytearray(min(_BLOCK, _left(file) + 1)), 0
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

    def __init__(self, *, in_order: bool) -> None:
        self.known, self.in_order, self.lines = pa.array([], pa.large_binary()), in_order, 0
        self.parts: list[Places] = []  # which distinct line each line is
        self.numbers = np.zeros(0, dtype=np.int64)  # (distinct lines,) where nobody asks for their order
        self.waiting: list[tuple[pa.Array, NDArray[Any]]] = []  # of each block: its lines, and one of the two

    def add(self, data: NDArray[np.uint8], ends: Ints) -> float:
        """Number the lines that end at these places; the share of distinct lines, where it has become known, or 0."""
        offsets = np.zeros(len(ends) + 1, dtype=np.int64)
        np.add(ends, 1, out=offsets[1:])
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
        block = pa.Array.from_buffers(pa.large_binary(), len(ends), buffers).dictionary_encode()
        distinct, of = block.dictionary, block.indices.to_numpy()
        self.waiting.append((distinct, of if self.in_order else counted(of, length=len(distinct))))
        first, self.lines = self.lines == 0, self.lines + len(of)
        if sum(each.nbytes for each, _ in self.waiting) > max(_FOLDED, 2 * self.known.nbytes):
            self._fold()
            return len(self.known) / self.lines
        return 1.0 if first and len(distinct) >= NEARLY * len(of) else 0.0

    def _fold(self) -> None:
        """Number the waiting lines among all; those that are known keep their numbers."""
        every = pa.concat_arrays([self.known, *(distinct for distinct, _ in self.waiting)]).dictionary_encode()
        number, at = every.indices.to_numpy(), len(self.known)
        self.numbers = np.append(self.numbers, np.zeros(len(every.dictionary) - len(self.numbers), dtype=np.int64))
        for distinct, of in self.waiting:
            own = number[at : at + len(distinct)]
            if self.in_order:
                self.parts.append(own[of])
            else:
                self.numbers[own] += of
            at += len(distinct)
        self.known, self.waiting = every.dictionary, []

    def all(self) -> tuple[pa.Array, Order]:
        """The distinct lines, and the order of all."""
        if self.in_order and not self.parts and len(self.waiting) == 1:
            self.known, of = self.waiting[0]
        else:
            self._fold()
            of = np.concatenate(self.parts) if self.parts else np.zeros(0, dtype=np.int32)
        return self.known, Order(counted(of, length=len(self.known)), of) if self.in_order else Order(self.numbers)


def bytes_of(rows: Rows) -> int:
    """About how many bytes a table has as lines of text, which its files and databases seldom exceed."""
    total, numbers = 0, None if rows.order is None else rows.order.numbers
    if isinstance(rows, Paired):
        total, numbers = len(rows.apart) * _WIDTH * rows.count, counted(rows.cell, numbers, rows.distinct.num_rows)
    for column in rows.distinct.columns:
        whole = flat(column)
        labels = whole.dictionary if pa.types.is_dictionary(whole.type) else whole
        if pa.types.is_string(labels.type) or pa.types.is_large_string(labels.type):
            lengths = known_or_zero(pc.binary_length(labels)).astype(np.int64) + 3
        else:
            lengths = np.full(len(labels), _WIDTH, dtype=np.int64)
        if pa.types.is_dictionary(whole.type) and len(lengths):
            lengths = lengths[known_or_zero(whole.indices)]
        if len(lengths):
            total += int(lengths.sum() if numbers is None else lengths @ numbers)
        else:
            total += rows.count
    return total


_WIDTH = 12  # bytes of a number or date and its comma, most of which are shorter


# -- CSV files of ours, read back -------------------------------------------------------------------------------------


def line_breaks(path: Path) -> int:
    """How many line breaks of any sort a file has."""
    with path.open("rb") as file:
        return sum(part.count(b"\n") + part.count(b"\r") for part in iter(lambda: file.read(1 << 20), b""))


def as_text(
    file: IO[bytes], kind: pa.DataType, numbers: tuple[str, ...], *, broken: bool
) -> tuple[pacsv.ParseOptions, pacsv.ConvertOptions]:  # fmt: skip
    """How the columns of a CSV file, which is then closed, are read: as texts of a kind, but for numbers."""
    with file, io.TextIOWrapper(file, encoding="utf-8", newline="") as text, any_length():
        types = dict.fromkeys(next(csv.reader(text), []), kind)
    convert = pacsv.ConvertOptions(
        column_types=types | {name: pa.int64() for name in numbers if name in types}, null_values=[""],
        strings_can_be_null=True, quoted_strings_can_be_null=False,
    )  # fmt: skip
    return pacsv.ParseOptions(newlines_in_values=broken, ignore_empty_lines=False), convert  # an empty line is missing


def parsed(source: Path | bytes, file: IO[bytes], numbers: tuple[str, ...], *, broken: bool) -> pa.Table:
    """A table as text but for numbers; `broken`: a value may hold a line break, so lines are not read side by side."""
    parse, convert = as_text(file, pa.dictionary(pa.int32(), pa.string()), numbers, broken=broken)

    def read(size: int) -> pa.Table:
        opened = pa.BufferReader(source) if isinstance(source, bytes) else source
        return pacsv.read_csv(opened, pacsv.ReadOptions(block_size=size), parse, convert)

    return in_blocks(read, 1 << 24 if broken else 1 << 20, source)
