"""Tables from CSV and Parquet files."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from jali.encoding import values as v
from jali.encoding.table import Domain, Table
from jali.errors import InputError
from jali.sources.assemble import Missing, Roles, assemble, roles_of

_SEPARATORS = (",", ";", "\t", "|")
_MARKS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))


def read(
    path: str | Path,
    *,
    quasi: Mapping[str, object] | Iterable[str],
    sensitive: Mapping[str, object] | Iterable[str] = (),
    other: Iterable[str] = (),
    person: str | None = None,
    weights: str | None = None,
    types: Mapping[str, v.Kind] | None = None,
    missing: Missing = "keep",
    domain: Domain = "declared",
    separator: str | None = None,
    encoding: str | None = None,
) -> Table:
    """Read a table about people from a CSV or Parquet file ("-" reads CSV from standard input).

    Columns that are not named are not even decoded. Separator and encoding (by its mark) of a CSV are detected.
    """
    roles = roles_of(quasi, sensitive, other, person, weights, types, missing, domain)
    if str(path) == "-":
        return _read_csv("standard input", sys.stdin.buffer.read(), roles, separator, encoding)
    path = Path(path)
    if not path.exists():
        raise InputError(f"no file {path}", do="check the path")
    if path.is_dir():
        raise InputError(f"{path} is a folder", do="name a CSV or Parquet file")
    try:
        if _is_parquet(path):
            return _read_parquet(path, roles)
        return _read_csv(str(path), path, roles, separator, encoding)
    except PermissionError:
        raise InputError(f"no permission to read {path}") from None


def _is_parquet(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"PAR1"


def _read_parquet(path: Path, roles: Roles) -> Table:
    try:
        known = pq.read_schema(path).names
        roles.check(list(known))
        table = pq.read_table(path, columns=[name for name, _ in roles.named()])
    except pa.ArrowInvalid:
        raise InputError(f"{path} is not a readable Parquet file", do="write it again") from None
    columns = {name: table[name] for name in table.column_names}
    return assemble(columns, roles, known=list(known), from_text=False, origin="arrow")


def _read_csv(name: str, source: Path | bytes, roles: Roles, separator: str | None, encoding: str | None) -> Table:
    head = _open(source).read(1 << 20)
    if not head.strip():
        raise InputError(f"{name} is empty", do="give a CSV file with a header and at least one row")
    encoding = encoding or next((e for mark, e in _MARKS if head.startswith(mark)), "utf-8")
    text = _decoded(name, head, encoding)
    separator = separator or detect_separator(text)
    if len(separator) != 1:
        raise InputError("the separator of a CSV file is one character", got=repr(separator))
    header = next(csv.reader(io.StringIO(text), delimiter=separator))
    roles.check(header)
    wanted = [column for column, _ in roles.named()]
    table = _arrow(name, source, wanted, separator, encoding)
    columns = {column: table[column] for column in wanted}
    return assemble(columns, roles, known=header, from_text=True, origin="arrow")


def _open(source: Path | bytes) -> pa.NativeFile:
    if isinstance(source, bytes):
        return pa.BufferReader(source)
    return pa.input_stream(str(source), compression="detect")


def _decoded(name: str, head: bytes, encoding: str) -> str:
    try:
        return head.decode(encoding, errors="ignore")
    except LookupError:
        raise InputError(f'{name}: no encoding "{encoding}"', do='e.g. encoding="utf-8" or "latin-1"') from None


def detect_separator(text: str) -> str:
    """The separator under which the first lines have the same, and the most, fields.

    >>> detect_separator("a;b\\n1,5;2\\n")
    ';'
    """
    lines = text.splitlines(keepends=True)
    sample = "".join(lines[:50] if len(lines) <= 50 else lines[:50])
    best, most = ",", 1
    for separator in _SEPARATORS:
        widths = [len(row) for row in csv.reader(io.StringIO(sample), delimiter=separator) if row]
        if widths and widths[0] > most and widths.count(widths[0]) >= 0.9 * len(widths):
            best, most = separator, widths[0]
    return best


def _arrow(name: str, source: Path | bytes, wanted: list[str], separator: str, encoding: str) -> pa.Table:
    """The wanted columns as dictionaries of text: every value keeps the form it has in the file."""
    text = pa.dictionary(pa.int32(), pa.string())
    convert = pacsv.ConvertOptions(
        include_columns=wanted, column_types=dict.fromkeys(wanted, text), null_values=[""],
        strings_can_be_null=True, quoted_strings_can_be_null=False,
    )  # fmt: skip
    codec = "utf-8" if encoding == "utf-8-sig" else encoding
    problem: Exception | None = None
    for newlines in (False, True):
        parse = pacsv.ParseOptions(delimiter=separator, newlines_in_values=newlines)
        options = pacsv.ReadOptions(block_size=1 << 24, encoding=codec)
        try:
            return pacsv.read_csv(_open(source), options, parse, convert)
        except (pa.ArrowInvalid, UnicodeDecodeError, pa.ArrowKeyError) as failure:
            problem = failure
    raise _why(name, source, separator, codec, str(problem))


def _why(name: str, source: Path | bytes, separator: str, codec: str, problem: str) -> InputError:
    """Which row of the file is broken, without showing what stands in it."""
    raw = _open(source).read()
    rows = raw.split(b"\n")
    for number, line in enumerate(rows):
        try:
            line.decode(codec if codec != "utf-16" else "latin-1")
        except UnicodeDecodeError:
            return InputError(f"{name}: row {number} is not valid {codec}", do='pass encoding=, e.g. "latin-1"')
    reader = csv.reader(io.StringIO(raw.decode(codec, errors="replace")), delimiter=separator)
    width = len(next(reader))
    for number, row in enumerate(reader, 1):
        if row and len(row) != width:
            return InputError(
                f"{name}: row {number} has {len(row)} fields", got=f"{width} in the header", do="correct the row or pass separator="
            )
    return InputError(f"{name} cannot be read as CSV", do="check separator= and encoding=")
