"""CSV files as people have them (any usual separator, marked encodings, quotes, compression), and Parquet files."""

from __future__ import annotations

import codecs
import contextlib
import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from jali import kernels
from jali.core.arrays import Ints
from jali.core.formats import any_length, in_blocks
from jali.errors import InputError
from jali.sources.engines.base import Combinations

SEPARATORS = (",", ";", "\t", "|")
_MARKS = (
    (b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe\0\0", "utf-32"), (b"\0\0\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"),
)  # fmt: skip
_PACKED = ((b"\x1f\x8b", "gzip"), (b"BZh", "bz2"), (b"\x28\xb5\x2f\xfd", "zstd"))
_BLOCK = 1 << 22  # what is parsed together stays near the processor
_BLOCKS, _SMALL = 2, 1 << 18  # a small file has several blocks too, for several processors
_HEAD = 1 << 20
LARGE, SMALL = 1 << 25, 1 << 18
"""Bytes of a file from which on kernels read it, where they must be loaded for that, and where they are there."""
_ALONE = 1 << 23  # bytes of a file up to which a second reader takes more than it gives
_UNPACKED = 4  # what a packed file has more, about
_NOT_IN_CP1252 = (0x81, 0x8D, 0x8F, 0x90, 0x9D)
_ENCODING = 'pass encoding= (--encoding in a shell, encoding = in a job), e.g. "latin-1"'


class EncodingError(InputError):
    """The bytes of a file are no text of its encoding; `encoding` is one that they fit, if any is known."""

    encoding: str | None = None


@dataclass(frozen=True)
class Delimited:
    """A CSV file: where it is, how it is written, and the names in its first row."""

    name: str
    source: Path | bytes
    packed: str | None
    encoding: str
    separator: str
    header: list[str]
    notes: tuple[str, ...] = ()
    infer: bool = True

    @classmethod
    def opened(
        cls, name: str, source: Path | bytes, separator: str | None, encoding: str | None, notes: tuple[str, ...] = ()
    ) -> Delimited:
        """What the beginning of the file tells; what the caller says goes first."""
        with _open(source, None) as file:
            start = file.read(4)
        packed = next((p for mark, p in _PACKED if start.startswith(mark)), None)
        with _open(source, packed) as file:
            head = file.read(_HEAD)
        encoding = _encoding(name, encoding or next((e for mark, e in _MARKS if head.startswith(mark)), "utf-8"))
        escape = "surrogateescape" if encoding in ("utf-8", "ascii") else "ignore"
        text = head.decode(encoding, errors=escape).removeprefix("\ufeff")
        if not text or text.isspace():
            raise InputError(f"{name} is empty", do="give a CSV file with a header and at least one row")
        separator = detect_separator(text) if separator is None else separator
        if len(separator) != 1 or separator in '"\r\n':
            raise InputError("the separator of a CSV file is one character", got=repr(separator))
        with any_length():
            header = next(row for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator) if row)
        made = cls(name, source, packed, encoding, separator, header, notes)
        if any(_broken(column) or "\0" in column for column in header):  # zeros: another encoding, or no text at all
            raise made._undecodable("the header", "")
        return made

    def _undecodable(self, where: str, more: str) -> EncodingError:
        """What is to be said of bytes that are no text; it names an encoding where the bytes of the file tell."""
        found = self.likely_encoding()
        do = _ENCODING
        if found is not None:
            do = f'pass encoding="{found}" (--encoding {found}; encoding = "{found}" in a job), which its bytes fit'
        what = f"{self.name}: {where} is not valid {self.encoding}{more}"
        if found is None and "\0" in "".join(self.header):
            what, do = f"{self.name} is no CSV file: its header holds bytes of zero", "save it as CSV"
        problem = EncodingError(what, do=do)
        problem.encoding = found
        return problem

    def likely_encoding(self) -> str | None:
        """An encoding that the bytes fit and Western files have; None where they are UTF-8 or fit none."""
        counts = np.zeros(256, dtype=np.int64)
        decoder, even, is_utf8 = codecs.getincrementaldecoder("utf-8")(), 0, True
        for block in self._bytes():
            letters = np.frombuffer(block, dtype=np.uint8)
            counts += np.bincount(letters, minlength=256)
            even += int(np.count_nonzero(letters[::2] == 0))  # blocks have an even number of bytes
            try:
                decoder.decode(block)
            except UnicodeDecodeError:
                is_utf8 = False
        zeros = int(counts[0])
        if zeros > counts.sum() // 4 and 10 * min(even, zeros - even) < zeros:
            return "utf-16-be" if 2 * even > zeros else "utf-16-le"  # every other byte of Latin letters is zero
        if is_utf8 or zeros:
            return None
        return "latin-1" if counts[list(_NOT_IN_CP1252)].any() else "cp1252"

    def columns(self, wanted: list[str]) -> Mapping[str, pa.ChunkedArray]:
        """The wanted columns as dictionaries of text: every value keeps the form it has in the file."""
        return self.loaded(wanted, count=False)[0]

    def loaded(self, wanted: list[str], *, count: bool) -> tuple[Mapping[str, pa.ChunkedArray], Ints | None]:
        """The same; where there are many rows and they are to be counted, how many rows each record stands for."""
        if self._for_kernels():
            from jali.sources.blocks import NearlyDistinct, NotByLine

            with contextlib.suppress(NotByLine, pa.ArrowInvalid, UnicodeError):  # if it is broken, Arrow says so too
                try:
                    return self._by_line(wanted, count=count)
                except NearlyDistinct:
                    return self._by_line(wanted, count=False)
        try:
            table = self._read(wanted)
            self._refuse_open_quote()
        except (pa.ArrowInvalid, pa.ArrowKeyError, UnicodeError):
            raise self._why(wanted) from None  # Arrow's error shows the row
        return {name: table[name] for name in wanted}, None

    def _for_kernels(self) -> bool:
        """Whether kernels read the file: their result is the same, but loading them takes as long as a small file."""
        size = self._size * (_UNPACKED if self.packed else 1)
        if size < (SMALL if kernels.are_loaded() else LARGE):
            return False
        from jali.kernels.counting import number_cells
        from jali.kernels.jit import ready

        return ready(number_cells, "reading CSV files", little=size < 8 * LARGE)

    def _by_line(self, wanted: list[str], *, count: bool) -> tuple[Mapping[str, pa.ChunkedArray], Ints | None]:
        """The columns as kernels read them, in blocks that end with any line."""
        from jali.sources.blocks import Blocks, rows_by_line

        with _open(self.source, self.packed) as file:
            text = file if self.encoding == "utf-8" else pa.transcoding_input_stream(file, self.encoding, "utf-8")
            workers = 1 if self._size < _ALONE and not self.packed else 2
            blocks = Blocks(text, min(_BLOCK, max(self._size, _SMALL)), self.separator, workers)
            return rows_by_line(blocks, self.header, wanted, count=count)

    @property
    def _size(self) -> int:
        return len(self.source) if isinstance(self.source, bytes) else self.source.stat().st_size

    @property
    def _block(self) -> int:
        return min(_BLOCK, max(self._size // _BLOCKS, _SMALL))

    def _read(self, wanted: list[str]) -> pa.Table:
        """The columns as Arrow reads them; also a line break within quotes."""
        text = pa.dictionary(pa.int32(), pa.string())
        parse = pacsv.ParseOptions(delimiter=self.separator, newlines_in_values=True)
        convert = pacsv.ConvertOptions(
            include_columns=wanted, column_types=dict.fromkeys(wanted, text), null_values=[""],
            strings_can_be_null=True, quoted_strings_can_be_null=False,
        )  # fmt: skip

        def read(size: int) -> pa.Table:
            with _open(self.source, self.packed) as file:
                return pacsv.read_csv(file, pacsv.ReadOptions(block_size=size, encoding=self.encoding), parse, convert)

        as_it_stands = self.encoding == "utf-8" and not self.packed
        return in_blocks(read, self._block, self.source if as_it_stands else None)

    def _bytes(self) -> Iterator[bytes]:
        with _open(self.source, self.packed) as file:
            while block := file.read(_HEAD):  # small enough to stay in the cache
                yield block

    def _rows(self, *, strict: bool) -> Iterator[list[str]]:
        """The rows as Python reads them, the header first, empty lines left out; slow, for explaining errors."""
        with _open(self.source, self.packed) as file:
            errors = "surrogateescape" if self.encoding in ("utf-8", "ascii") else "replace"
            text = io.TextIOWrapper(cast(IO[bytes], file), encoding=self.encoding, errors=errors, newline="")
            yield from (row for row in csv.reader(text, delimiter=self.separator, strict=strict) if row)

    def _refuse_open_quote(self) -> None:
        """Raise InputError when a quote is never closed: all that follows would be one value."""
        if self.encoding == "utf-8" and sum(block.count(b'"') for block in self._bytes()) % 2 == 0:
            return
        read = 0
        try:
            with any_length():
                for _ in self._rows(strict=True):
                    read += 1
        except csv.Error as problem:
            if "end of data" in str(problem):
                what = f"{self.name}: a quote that opens in row {read} is never closed"
                raise InputError(what, do="close it, or double it where it is part of the value") from None

    def _why(self, wanted: list[str]) -> InputError:
        """Which row of the file is broken, and how many are, without showing what stands in them."""
        places = [self.header.index(name) for name in wanted]
        ragged, broken, rows = [], [], 0
        with any_length(), contextlib.suppress(csv.Error, UnicodeError):
            for number, row in enumerate(self._rows(strict=False)):
                rows = number
                if len(row) != len(self.header):
                    ragged.append((number, len(row)))
                elif any(_broken(row[at]) for at in places):
                    broken.append(number)
        if ragged and (not broken or ragged[0][0] < broken[0]):
            number, fields = ragged[0]
            more = "" if len(ragged) == 1 else f", and {len(ragged) - 1:,} more do not fit either"
            what = f"{self.name}: {_row(number)} has {fields} fields{more}"
            do = "correct the row or pass separator= (--separator)"
            return InputError(what, got=f"{len(self.header)} in the header", do=do)
        if broken:
            more = "" if len(broken) == 1 else f", nor are {len(broken) - 1:,} more"
            return self._undecodable(_row(broken[0]), more)
        if not rows:
            return InputError("the table is empty", do="give a table with at least one row")
        do = "check separator= and encoding= (--separator and --encoding)"
        return InputError(f"{self.name} cannot be read as CSV", do=do)


def _row(number: int) -> str:
    return f"row {number}" if number else "the header"


def _broken(text: str) -> bool:
    """Whether a text holds bytes that are no letters of its encoding."""
    return any("\udc80" <= letter <= "\udcff" for letter in text)


def _open(source: Path | bytes, packed: str | None) -> Any:
    return pa.input_stream(pa.py_buffer(source) if isinstance(source, bytes) else str(source), compression=packed)


def _encoding(name: str, given: str) -> str:
    try:
        found = codecs.lookup(given).name
    except LookupError:
        raise InputError(f'{name}: no encoding "{given}"', do='e.g. encoding="utf-8" or "latin-1"') from None
    return "utf-8" if found == "utf-8-sig" else found


def detect_separator(text: str) -> str:
    """The separator under which the first lines have the same, and the most, fields.

    >>> detect_separator("a;b\\n1,5;2\\n")
    ';'
    """
    sample = io.StringIO(text, newline="")
    lines = "".join(line for _, line in zip(range(50), sample, strict=False))
    best, most = ",", 1
    for separator in SEPARATORS:
        try:
            rows = csv.reader(io.StringIO(lines, newline=""), delimiter=separator)
            with any_length():
                widths = [len(row) for row in rows if row]
        except csv.Error:
            continue
        if widths and widths[0] > most and widths.count(widths[0]) >= 0.9 * len(widths):
            best, most = separator, widths[0]
    return best


@dataclass(frozen=True)
class Columnar:
    """A Parquet file, whose columns have types."""

    name: str
    source: Path | pa.Buffer
    schema: pa.Schema
    header: list[str]
    notes: tuple[str, ...] = ()
    infer: bool = False

    @classmethod
    def opened(cls, name: str, source: Path | bytes, notes: tuple[str, ...] = ()) -> Columnar:
        """What the end of the file tells."""
        place = source if isinstance(source, Path) else pa.py_buffer(source)
        with _readable_parquet(name):
            schema = pq.read_schema(_stream(place))
            return cls(name, place, schema, list(schema.names), notes)  # a name that is no text is seen here

    @property
    def rows(self) -> int:
        """How many rows the file has."""
        with _readable_parquet(self.name), pq.ParquetFile(_stream(self.source)) as file:
            return int(file.metadata.num_rows)

    def columns(self, wanted: list[str]) -> Mapping[str, pa.ChunkedArray]:
        """The wanted columns; texts come as dictionaries."""
        return _ParquetColumns(self, wanted)

    def loaded(self, wanted: list[str], *, count: bool) -> tuple[Mapping[str, pa.ChunkedArray], Ints | None]:
        """The same; where there are many rows and they are to be counted, how many rows each record stands for."""
        found = self._counted(wanted) if count else None
        if found is None:
            return self.columns(wanted), None
        return {name: found.table[name] for name in wanted}, found.rows

    def _counted(self, wanted: list[str]) -> Combinations | None:
        """The distinct rows of a large file, counted while it is read; None where that is no help."""
        from jali.sources.distinct import MANY, counted_rows

        texts = [name for name in wanted if pa.types.is_string(self.schema.field(name).type)]
        with _readable_parquet(self.name), pq.ParquetFile(_stream(self.source)) as file:
            groups = file.num_row_groups
        if self.rows < MANY or any(pa.types.is_nested(self.schema.field(name).type) for name in wanted):
            return None

        def part(group: int) -> pa.Table:
            with _readable_parquet(self.name), pq.ParquetFile(_stream(self.source), read_dictionary=texts) as file:
                return file.read_row_group(group, columns=wanted, use_threads=False)

        return counted_rows(wanted, [partial(part, group) for group in range(groups)])


class _ParquetColumns(Mapping[str, pa.ChunkedArray]):
    """The columns of a Parquet file, each read when it is asked for, so that few are held at a time."""

    def __init__(self, file: Columnar, names: list[str]) -> None:
        self._file, self._names = file, names
        self._texts = [name for name in names if pa.types.is_string(file.schema.field(name).type)]

    def __getitem__(self, name: str) -> pa.ChunkedArray:
        file = self._file
        with _readable_parquet(file.name), pq.ParquetFile(_stream(file.source), read_dictionary=self._texts) as opened:
            return opened.read(columns=[name])[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _stream(source: Path | pa.Buffer) -> Any:
    return source if isinstance(source, Path) else pa.BufferReader(source)


@contextlib.contextmanager
def _readable_parquet(name: str) -> Iterator[None]:
    try:
        yield
    except MemoryError:  # Arrow's is an error about data too
        raise
    except (pa.ArrowException, OSError, UnicodeDecodeError):  # the last for a name that is no text
        raise InputError(f"{name} is not a readable Parquet file", do="write it again") from None
