"""Forms that tables have elsewhere: frames of other libraries, and CSV files that a spreadsheet opens."""

from __future__ import annotations

import csv
import importlib
import mmap
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

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


def in_blocks(read: Callable[[int], pa.Table], size: int, source: Path | bytes | None = None) -> pa.Table:
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
