"""Tables as files: CSV and Parquet, written in one pass with their digest, and read back."""

from __future__ import annotations

import csv
import hashlib
import io
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from jali.core.arrays import steps
from jali.core.files import SPILLED, reason, sync
from jali.core.formats import (
    AT_ONCE,
    NEARLY,
    Lines,
    as_text,
    csv_parts,
    distinct_lines,
    in_blocks,
    joined_lines,
    line_breaks,
    parsed,
)
from jali.core.progress import watched
from jali.core.rows import Paired, Rows, distinct_rows, pairs_of, together
from jali.core.spill import Portioned, drawn_on_disk
from jali.encoding import values as v
from jali.errors import InputError

Format = Literal["csv", "parquet"]
PART = 1 << 23
"""Rows of a Parquet file: a table of more has several, which are written side by side."""


def files_of(building: Path, name: str, rows: Rows | Portioned, form: Format) -> dict[str, dict[str, Any]]:
    """Write a table into one file or, where it is large, into several; what the manifest says of them.

    Rows that are not held have their order drawn on disk, beside the folder of the files.
    """
    some = list(steps(rows.count, 1, PART)) if form == "parquet" and rows.count > PART else [slice(0, rows.count)]
    numbers = [f"-{at}" for at in range(1, len(some) + 1)] if len(some) > 1 else [""]
    paths = [building / f"{name}{number}.{form}" for number in numbers]
    if isinstance(rows, Portioned):
        digests = _write_drawn(rows, building.parent / SPILLED, paths, form, some)
    elif len(some) == 1:
        digests = [_write_table(rows, paths[0], form, some[0])]
    else:
        with ThreadPoolExecutor(os.cpu_count()) as workers:
            digests = list(workers.map(lambda path, own: _write_table(rows, path, form, own), paths, some))
    told = zip(paths, some, digests, strict=True)
    return {path.name: {"table": name, "rows": own.stop - own.start, "sha256": digest} for path, own, digest in told}


def _write_table(rows: Rows, path: Path, form: Format, some: slice) -> str:
    """Write a slice of a table in one pass; its digest."""
    with path.open("wb") as file:
        digest = _write_csv(rows, file) if form == "csv" else _write_parquet(rows, file, some)
    sync(path)
    return digest


def _write_drawn(
    table: Portioned, buckets: Path, paths: Sequence[Path], form: Format, some: Sequence[slice]
) -> list[str]:  # fmt: skip
    """Write files of a table whose order is drawn on disk, one after the other; the digest of each."""
    digests, drawn = [], table.changed(_as_read) if form == "csv" else table
    with watched("writing rows in random order", None) as step:
        stream = _Stream(drawn_on_disk(drawn, buckets, step))
        for path, own in zip(paths, some, strict=True):
            rows = stream.next(own.stop - own.start)
            with path.open("wb") as file:
                if form == "csv":
                    parts = (part for each in rows for part in [*csv_parts(Rows(each))][1:])
                    digests.append(_write_parts(chain([next(csv_parts(Rows(drawn.first(0))))], parts), file))
                else:
                    first = drawn.first(0)
                    repeated = [field.name for field in first.schema if pa.types.is_dictionary(field.type)]
                    digests.append(_write_groups(rows, file, first.schema, repeated))
            sync(path)
        assert next(stream.tables, None) is None  # which removes the folder of the buckets
    return digests


class _Stream:
    """A table that comes in parts of any size, read on from where one stopped."""

    def __init__(self, tables: Iterator[pa.Table]) -> None:
        self.tables, self.left = tables, None

    def next(self, rows: int) -> Iterator[pa.Table]:
        """The next rows, as long as there are some."""
        while rows:
            part = next(self.tables) if self.left is None else self.left
            self.left = part.slice(rows) if part.num_rows > rows else None
            part = part.slice(0, rows)
            rows -= part.num_rows
            yield part


def _write_csv(rows: Rows, file: IO[bytes]) -> str:
    return _write_parts(csv_parts(replace(rows, distinct=_as_read(rows.distinct))), file)


def _write_parts(parts: Iterable[pa.Buffer], file: IO[bytes]) -> str:
    """The digest of a part is computed while the next one is made."""
    digest, last = hashlib.sha256(), None
    with ThreadPoolExecutor(1) as side:
        for part in parts:
            if last is not None:
                last.result()
            last = side.submit(digest.update, part)
            file.write(part)
    return digest.hexdigest()


class _Digested:
    """A file that keeps the digest of what is written to it."""

    closed = False  # asked by Arrow

    def __init__(self, file: IO[bytes]) -> None:
        self.file, self.digest = file, hashlib.sha256()

    def write(self, part: bytes) -> int:
        """Write some bytes."""
        self.digest.update(part)
        return self.file.write(part)

    def flush(self) -> None:
        """See that everything is written."""
        self.file.flush()


def _write_parquet(rows: Rows, file: IO[bytes], some: slice) -> str:
    many = not isinstance(rows, Paired) and rows.held > rows.count / 2  # then dictionaries are no help
    schema = Rows(rows.schema.empty_table()).plain().schema if many else rows.schema
    repeated: Any = rows.distinct.column_names if isinstance(rows, Paired) else True
    parts = (Rows(part).plain() if many else part for part in rows.parts(GROUP, some))
    return _write_groups(parts, file, schema, repeated)


def _write_groups(parts: Iterable[pa.Table], file: IO[bytes], schema: pa.Schema, repeated: Any) -> str:
    """Rows in random order have no statistics worth writing. A reader sees values, not that they were dictionaries."""
    written = _Digested(file)
    options: Any = {"write_statistics": False, "store_schema": False, "use_dictionary": repeated}
    with pq.ParquetWriter(written, schema, **options) as writer:
        for part in parts:
            writer.write_table(part)
    return written.digest.hexdigest()


GROUP = 1 << 20
"""Rows of a row group in Parquet."""


def _as_read(table: pa.Table) -> pa.Table:
    """Times as jali reads them, in a table for CSV."""
    return pa.table({name: _times(table[name]) for name in table.column_names})


def _times(column: pa.ChunkedArray) -> pa.ChunkedArray | pa.Array:
    of = column.type
    if not pa.types.is_timestamp(of.value_type if pa.types.is_dictionary(of) else of):
        return column
    whole = column.combine_chunks()
    if not pa.types.is_dictionary(of):
        return v.texts(whole)
    whole = whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole
    return pa.DictionaryArray.from_arrays(whole.indices, v.texts(whole.dictionary))


def digest_of(path: Path) -> str:
    """A file's digest."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_file(
    folder: Path, file: Path, facts: Mapping[str, Any], links: tuple[str, ...], *, in_order: bool,
    only: Kept | None = None,
) -> Rows | None:  # fmt: skip
    """The rows of a file of a release; None for a picture. An InputError where the file was changed.

    With `only` some columns are kept, as distinct rows, and no more than some rows of the file are held at a time.
    """
    is_csv = facts["table"] is not None and file.suffix != ".parquet"
    try:
        digest, lines = _lines(file, in_order=in_order) if is_csv and only is None else (digest_of(file), None)
        if digest != facts["sha256"]:
            raise InputError(f"{file.name} in {folder} was changed after it was published", do="get the release again")
        if facts["table"] is None:
            return None
        if only is not None and is_csv:
            broken = line_breaks(file) != facts["rows"] + 1
            return in_blocks(lambda size: only.reduce(_csv_batches(file, size, links, broken=broken)), 1 << 24, file)
        if only is not None:
            return only.reduce(_parquet_batches(file, only.columns))
        if is_csv:
            return _read_csv(file, lines, facts["rows"], links, in_order=in_order)
        return _read_parquet(file, links, in_order=in_order)
    except MemoryError:
        raise no_memory(folder) from None
    except (OSError, UnicodeError, csv.Error, LookupError, pa.ArrowException) as problem:
        got = reason(problem) if isinstance(problem, OSError) else "not a table"
        raise InputError(f"{file} cannot be read", got=got, do="get the release again") from None


class Kept(NamedTuple):
    """The columns that are kept of a table that comes in parts, and what is kept of them."""

    columns: Sequence[str]
    reduce: Callable[[Iterator[pa.Table]], Rows]


def _lines(path: Path, *, in_order: bool) -> tuple[str, Lines | None]:
    """The digest of a CSV file, and its distinct lines where that is a way to read it."""
    with ThreadPoolExecutor(1) as side, path.open("rb") as file:
        digest = side.submit(digest_of, path)
        lines = distinct_lines(file, in_order=in_order)
        return digest.result(), lines


def _read_csv(path: Path, lines: Lines | None, rows: int, links: tuple[str, ...], *, in_order: bool) -> Rows:
    """The rows of a CSV file: where every line is one, only the distinct ones are parsed."""
    if lines is None or lines.order.rows != rows:  # many are distinct, or a value holds a line break
        broken = line_breaks(path) != rows + 1
        try:
            table = parsed(path, path.open("rb"), links, broken=broken)
        except pa.ArrowInvalid:  # the links are no numbers, which is judged when the release is made
            table = parsed(path, path.open("rb"), (), broken=broken)
        apart = [f.name for f in table.schema if f.name in links and _is_whole(f)]
        return pairs_of(table, apart, in_order=in_order) if apart and table.num_rows else Rows(table)
    distinct = lines.first + joined_lines(lines.distinct).to_pybytes()
    return Rows(parsed(distinct, io.BytesIO(distinct), (), broken=False), lines.order)


def _csv_batches(path: Path, size: int, links: tuple[str, ...], *, broken: bool) -> Iterator[pa.Table]:
    """A CSV file as text but for the links, which are numbers, a block of it at a time."""
    parse, convert = as_text(path.open("rb"), pa.string(), links, broken=broken)
    with pacsv.open_csv(path, pacsv.ReadOptions(block_size=size), parse, convert) as reader:
        for batch in reader:
            yield pa.Table.from_batches([batch])


def _parquet_batches(path: Path, columns: Sequence[str]) -> Iterator[pa.Table]:
    """Columns of a Parquet file, some rows at a time."""
    with pq.ParquetFile(path, read_dictionary=_texts_in(path)) as file:
        for batch in file.iter_batches(GROUP, columns=list(columns)):
            yield pa.Table.from_batches([batch])


def _texts_in(path: Path) -> list[str]:
    """The columns of texts of a Parquet file."""
    with pq.ParquetFile(path) as file:
        return [f.name for f in file.schema_arrow if pa.types.is_string(f.type) or pa.types.is_large_string(f.type)]


def _read_parquet(path: Path, links: tuple[str, ...], *, in_order: bool) -> Rows:
    """The rows of a Parquet file, as distinct ones unless nearly all of the first are; numbers that link are apart."""
    with pq.ParquetFile(path, read_dictionary=_texts_in(path)) as file:
        if file.metadata.num_rows == 0:
            return Rows(file.read())
        batches = (pa.Table.from_batches([batch]) for batch in file.iter_batches(GROUP))
        apart = [name for name in file.schema_arrow.names if name in links]
        if apart and all(_is_whole(file.schema_arrow.field(name)) for name in apart):
            return together([pairs_of(batch, apart, in_order=in_order) for batch in batches])
        first = distinct_rows([next(batches)], in_order=in_order)
        if first.distinct.num_rows > NEARLY * first.count and first.count > AT_ONCE:
            return Rows(file.read())
        others = (distinct_rows([batch], in_order=in_order) for batch in batches)
        return together([first, *others], in_order=in_order)


def _is_whole(column: pa.Field) -> bool:
    return bool(pa.types.is_integer(column.type))


def no_memory(folder: str | Path) -> MemoryError:
    """What to raise where memory is what a release lacks: Arrow's error for that is one about data too."""
    return MemoryError(f"there is not enough memory to read {folder}")
