"""CSV files as people have them: any usual separator, marked encodings, quotes, compression."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

from jali.core.formats import any_length, in_blocks
from jali.errors import InputError

_SEPARATORS = (",", ";", "\t", "|")
_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
_PACKED = ((b"\x1f\x8b", "gzip"), (b"BZh", "bz2"), (b"\x28\xb5\x2f\xfd", "zstd"))
_BLOCK = 1 << 22  # what is parsed together stays near the processor
_HEAD = 1 << 20
_ENCODING = 'pass encoding= (--encoding in a shell, encoding = in a job), e.g. "latin-1"'


@dataclass(frozen=True)
class Delimited:
    """A CSV file: where it is, how it is written, and the names in its first row."""

    name: str
    source: Path | bytes
    packed: str | None
    encoding: str
    separator: str
    header: list[str]

    @classmethod
    def opened(cls, name: str, source: Path | bytes, separator: str | None, encoding: str | None) -> Delimited:
        """What the beginning of the file tells; what the caller says goes first."""
        with _open(source, None) as file:
            start = file.read(4)
        packed = next((p for mark, p in _PACKED if start.startswith(mark)), None)
        with _open(source, packed) as file:
            head = file.read(_HEAD)
        if head.startswith(b"PK\x03\x04"):
            raise InputError(f"{name} is a ZIP archive or a spreadsheet", do="save it as CSV or unpack it first")
        encoding = _encoding(name, encoding or next((e for mark, e in _MARKS if head.startswith(mark)), "utf-8"))
        text = head.decode(encoding, errors="ignore").removeprefix("\ufeff")
        if not text.strip():
            raise InputError(f"{name} is empty", do="give a CSV file with a header and at least one row")
        separator = detect_separator(text) if separator is None else separator
        if len(separator) != 1 or separator in '"\r\n':
            raise InputError("the separator of a CSV file is one character", got=repr(separator))
        with any_length():
            header = next(row for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator) if row)
        return cls(name, source, packed, encoding, separator, header)

    def columns(self, wanted: list[str]) -> dict[str, pa.ChunkedArray]:
        """The wanted columns as dictionaries of text: every value keeps the form it has in the file."""
        try:
            by_line = not self.packed and self.encoding == "utf-8" and self._each_line_is_a_row()
            table = self._read(wanted, newlines=not by_line)  # line by line is faster
            if not by_line:
                self._refuse_open_quote()
        except (pa.ArrowInvalid, pa.ArrowKeyError, UnicodeError) as problem:
            raise self._why(wanted) from problem
        return {name: table[name] for name in wanted}

    def _read(self, wanted: list[str], *, newlines: bool) -> pa.Table:
        text = pa.dictionary(pa.int32(), pa.string())
        parse = pacsv.ParseOptions(delimiter=self.separator, newlines_in_values=newlines)
        convert = pacsv.ConvertOptions(
            include_columns=wanted, column_types=dict.fromkeys(wanted, text), null_values=[""],
            strings_can_be_null=True, quoted_strings_can_be_null=False,
        )  # fmt: skip

        def read(size: int) -> pa.Table:
            with _open(self.source, self.packed) as file:
                return pacsv.read_csv(file, pacsv.ReadOptions(block_size=size, encoding=self.encoding), parse, convert)

        as_it_stands = self.encoding == "utf-8" and not self.packed
        return in_blocks(read, _BLOCK, self.source if as_it_stands else None)

    def _bytes(self) -> Iterator[bytes]:
        with _open(self.source, self.packed) as file:
            while block := file.read(_HEAD):  # small enough to stay in the cache
                yield block

    def _each_line_is_a_row(self) -> bool:
        """Whether no line break stands within quotes: an even number of quotes stands before each."""
        before = 0
        for block in self._bytes():
            if b'"' in block or before % 2:
                letters = np.frombuffer(block, dtype=np.uint8)
                quote, end = letters == ord('"'), letters == ord("\n")
                if b"\r" in block:
                    end |= letters == ord("\r")
                is_quote = quote[np.flatnonzero(quote | end)]
                quotes = np.cumsum(is_quote, dtype=np.int64)
                if ((before + quotes[~is_quote]) % 2).any():
                    return False
                before += int(quotes[-1]) if len(quotes) else 0
        return before % 2 == 0

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
        """Which row of the file is broken, without showing what stands in it."""
        places = [self.header.index(name) for name in wanted]
        try:
            with any_length():
                for number, row in enumerate(self._rows(strict=False)):
                    where = f"row {number}" if number else "the header"
                    if len(row) != len(self.header):
                        return InputError(
                            f"{self.name}: {where} has {len(row)} fields",
                            got=f"{len(self.header)} in the header",
                            do="correct the row or pass separator= (--separator)",
                        )
                    if any("\udc80" <= letter <= "\udcff" for at in places for letter in row[at]):
                        return InputError(f"{self.name}: {where} is not valid {self.encoding}", do=_ENCODING)
        except (csv.Error, UnicodeError):
            pass
        do = "check separator= and encoding= (--separator and --encoding)"
        return InputError(f"{self.name} cannot be read as CSV", do=do)


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
    for separator in _SEPARATORS:
        try:
            rows = csv.reader(io.StringIO(lines, newline=""), delimiter=separator)
            with any_length():
                widths = [len(row) for row in rows if row]
        except csv.Error:
            continue
        if widths and widths[0] > most and widths.count(widths[0]) >= 0.9 * len(widths):
            best, most = separator, widths[0]
    return best
