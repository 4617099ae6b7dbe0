"""Tables from files of any form and from frames: pandas, Polars, PyArrow, lazy frames whose engine counts."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import narwhals as nw
import pyarrow as pa
import pyarrow.compute as pc

from jali.core.arrays import Ints
from jali.core.files import content, drained, is_regular
from jali.encoding import values as v
from jali.encoding.builders import suppress
from jali.encoding.large import memory_of, room_of
from jali.encoding.table import Domain, Table
from jali.errors import InputError, path_of
from jali.sources.assemble import Missing, Roles, assemble, roles_of
from jali.sources.distinct import raw
from jali.sources.engines.locations import is_dataset
from jali.sources.files import SEPARATORS, Columnar, Delimited, EncodingError
from jali.sources.programs import SHEET, Foreign, is_archive, program_of, unpacked
from jali.sources.writing import Cells, Writing, as_line

if TYPE_CHECKING:
    from pyarrow.dataset import Dataset


def read(
    path: str | Path | Dataset,
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
    sheet: str | None = None,
    table: str | None = None,
    missing_markers: str | Iterable[str] | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    date_format: str | None = None,
    identifier: Mapping[str, object] | Iterable[str] = (),
    allow: Mapping[str, str] | None = None,
    pseudonym_key: str | Path | None = None,
    missing_is_value: Iterable[str] = (),
    memory: str | int | None = None,
) -> Table:
    """Read a table about people from a file ("-" reads CSV from standard input).

    CSV, also packed or the one file of a ZIP archive, Parquet, Excel, ODS, Stata, SPSS and SAS. Columns that are not
    named, and identifiers that are dropped, are not even decoded. What the file does not say is detected, each in its
    own column, and noted. Databases ("postgresql://host/db?table=patients", SQLite and DuckDB files with `table=`),
    folders and globs of Parquet files, "s3://…" and Arrow datasets count their own distinct rows. `memory` bounds how
    many of those are held here: "4GB", say, by default half of what the machine has. Where there are more, the table
    stays where it is.
    """
    from jali.sources.held import bounded, file_engine, from_engine, opening_of

    named: Any = {"identifier": identifier, "allow": allow, "pseudonym_key": pseudonym_key}
    named |= {"missing_is_value": missing_is_value}
    roles = roles_of(quasi, sensitive, other, person, weights, types, missing, domain, **named)
    writing = Writing.of(missing_markers, decimal, thousands, date_format)
    wanted = [name for name, _ in roles.named()]
    allowed = memory_of(memory)
    if (own := opening_of(path, table, allowed)) is not None:
        return from_engine(own, roles, writing=writing, memory=allowed)
    with _readable(path):
        file = opened(path, separator=separator, encoding=encoding, sheet=sheet, wanted=wanted, types=roles.types)
        roles.check(file.header)
        columns, rows = _loaded(file, wanted, count=roles.person is None)
        if isinstance(file, Columnar) and isinstance(file.source, Path) and roles.person is None:
            held = file.rows if rows is None else len(rows)
            if held > room_of(allowed, len(wanted)):
                return from_engine(partial(file_engine, file.source, allowed), roles, writing=writing, memory=allowed)
    made: Any = {"known": file.header, "origin": "arrow", "infer": file.infer, "writing": writing, "notes": file.notes}
    try:
        found = assemble(columns, roles, multiplicity=rows, **made)
    except InputError:
        if rows is None or isinstance(file, Columnar):
            raise
        with _readable(path):
            columns = file.columns(wanted)
        return assemble(columns, roles, **made)  # whose error names a row
    del columns
    return bounded(found, allowed)


def _loaded(file: Source, wanted: list[str], *, count: bool) -> tuple[Mapping[str, pa.ChunkedArray], Ints | None]:
    """The wanted columns and, where many rows were counted, how many rows each record stands for."""
    if isinstance(file, (Delimited, Columnar)):
        return file.loaded(wanted, count=count)
    return file.columns(wanted), None


READING = ("separator", "encoding", "sheet", "missing_markers", "decimal", "thousands", "date_format")
"""The options of `read` that say how a file is written; jobs and commands have options of the same names."""


class Source(Protocol):
    """A file that is open: the names of its columns, and their values."""

    @property
    def header(self) -> list[str]:
        """The names of the columns, in their order."""

    @property
    def infer(self) -> bool:
        """Whether its texts may be numbers, dates and truth values."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What opening it decided."""

    def columns(self, wanted: list[str]) -> Mapping[str, pa.ChunkedArray]:
        """The values of the columns of these names."""


def opened(
    path: str | Path, *, separator: str | None = None, encoding: str | None = None, sheet: str | None = None,
    wanted: Iterable[str] | None = None, types: Mapping[str, v.Kind] | None = None,
) -> Source:  # fmt: skip
    """The file at a path, whatever its form; only the wanted columns can be read then, by default all."""

    def by_content(name: str, source: Path | bytes, suffix: str, notes: tuple[str, ...]) -> Source:
        head = source[:_HEAD] if isinstance(source, bytes) else _head(source)
        archive = is_archive(head)
        member = unpacked(name, source) if archive else None
        if member is not None and is_archive(member.content) and unpacked(name, member.content) is not None:
            raise InputError(f"{name} is an archive of an archive", do="unpack it first")
        if member is not None:
            return by_content(name, member.content, Path(member.name).suffix, member.notes)
        program = SHEET if archive else program_of(head, suffix)
        if program is not None:
            found = Foreign.opened(name, source, program, wanted=wanted, types=types, sheet=sheet, encoding=encoding)
            return replace(found, notes=(*notes, *found.notes))
        if head.startswith(b"PAR1") or (head and suffix.lower() in (".parquet", ".pq")):
            return Columnar.opened(name, source, notes)
        return Delimited.opened(name, source, separator, encoding, notes)

    if str(path) == "-":
        data = drained("standard input", lambda: sys.stdin.buffer.read(1 << 20))
        return by_content("standard input", data, "", ())
    path = path_of(path)
    with _readable(path):
        if path.is_dir():
            raise InputError(f"{path} is a folder", do="name a file")
        source = path if is_regular(path) else content(path)  # a pipe can be read only once
        return by_content(str(path), source, path.suffix, ())


_HEAD = 64  # bytes that tell a form


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_HEAD)


@contextmanager
def _readable(path: str | Path) -> Iterator[None]:
    """Turn what the system says of a file into an InputError."""
    try:
        yield
    except FileNotFoundError:
        raise InputError(f"no file {path}", do="check the path") from None
    except PermissionError:
        raise InputError(f"no permission to read {path}", do="ask for it, or copy the file") from None
    except OSError as problem:
        raise InputError(
            f"{path} cannot be read", got=problem.strerror or "a damaged file", do="get it again"
        ) from None


@dataclass(frozen=True)
class Detected:
    """What a file shows of itself: its columns, how it is written, and what is to be said about that."""

    header: list[str]
    options: dict[str, Any]  # of READING, as given, else as every column agrees
    notes: tuple[str, ...] = ()
    cells: bool = True  # whether the names are cells, as in CSV files and spreadsheets
    repeats: bool = False  # whether a name stands twice, or is a value of its column too: then it may be a person's
    labelled: tuple[tuple[str, bool], ...] = ()  # columns with value labels, and whether these stand for all codes


def detected(path: str | Path, **reading: Any) -> Detected:
    """How a file is written, from all its rows; what is given is not looked for."""
    place = {name: reading[name] for name in ("separator", "encoding", "sheet")}
    with _readable(path):
        try:
            return _detected(opened(path, **place, wanted=None), reading)
        except EncodingError as problem:
            if problem.encoding is None or reading["encoding"] is not None:
                raise
            fits = {"encoding": problem.encoding}
        found = _detected(opened(path, **place | fits), reading)
        said = f'encoding = "{fits["encoding"]}", which the bytes of the file fit'
        return replace(found, options=found.options | fits, notes=(said, *found.notes))


def _detected(file: Source, reading: dict[str, Any]) -> Detected:
    names = [name for name in file.header if name]
    if isinstance(file, Foreign) and file.sheet is not None:
        reading = reading | {"sheet": file.sheet}
    if not file.infer:
        header = _publishable(file.schema) if isinstance(file, Columnar) else file.header
        return Detected(header, reading, file.notes, cells=False, labelled=getattr(file, "labelled", ()))
    if len(set(names)) < len(names):
        return Detected(file.header, reading, file.notes, repeats=True)
    said = {name: reading[name] for name in READING[3:]}
    raws = {name: raw(name, column) for name, column in file.columns(names).items()}
    texts = {name: found for name, found in raws.items() if v.kind_of(found.distinct) == "text"}

    def read_as(options: dict[str, Any]) -> tuple[list[Cells], list[pa.Array]]:
        writing = Writing.of(**options)
        cells = [Cells(n, writing.without_markers(found.distinct), writing, found.cells) for n, found in texts.items()]
        return cells, [each.read() for each in cells]

    columns, values = read_as(said)
    options = said | _agreed(columns, said)
    again, changed = read_as(options)
    if not all(one.type == other.type for one, other in zip(values, changed, strict=True)):
        options, again = said, columns  # what one column shows is wrong for another: each shows it by itself
    repeats = any(pc.index(found.distinct, name).as_py() >= 0 for name, found in texts.items())
    pairs = zip(columns, again, strict=True)  # a column that decided nothing may be settled by the others
    last = (first if first.options or first.markers else second for first, second in pairs)
    notes = [as_line(note) for each in last for note in each.notes]
    if again is not columns and said["missing_markers"] is None:
        notes += [as_line(each.taken) for each in columns if each.suspects]
    return Detected(file.header, reading | options, (*map(as_line, file.notes), *notes), repeats=repeats)


def _agreed(cells: list[Cells], said: Mapping[str, object]) -> dict[str, object]:
    """The options that the columns decided, where nobody has said them and no two columns decided otherwise."""
    found: dict[str, object] = {}
    for name in ("decimal", "thousands", "date_format"):
        shown = {each.options[name] for each in cells if name in each.options}
        if len(shown) == 1 and said[name] is None:
            found[name] = shown.pop()
    markers = list(dict.fromkeys(marker for each in cells for marker in (*each.markers, *each.suspects)))
    return found | ({"missing_markers": markers} if markers and said["missing_markers"] is None else {})


class Whole(NamedTuple):
    """A table with all its columns, how its file is written, and what detecting that has said."""

    table: Table
    reading: dict[str, Any]  # of READING, as given, else as it was detected
    notes: tuple[str, ...] = ()
    labelled: tuple[tuple[str, bool], ...] = ()  # columns with value labels, and whether these stand for all codes


def whole(source: Any, *, types: Mapping[str, v.Kind] | None = None, **reading: Any) -> Whole:
    """A file or frame with all its columns that can be read, before anybody has said what they are for.

    Each is a quasi-identifier that is kept or hidden. Columns without a name, and lists and bytes, are not read. With
    it come the options with which `read` reads the file in the same way.
    """
    from jali.sources.held import opening_of

    names = []
    if (own := opening_of(source, None)) is not None:
        with own() as engine:
            names = [name for name in engine.header if name]
    if names:
        return Whole(read(source, quasi=dict.fromkeys(names, suppress()), types=types), {})
    if isinstance(source, (str, Path)):
        path = path_of(source)
        if not path.is_file():  # a pipe cannot be read again
            raise InputError(f"no file {path}", do="name a file with a table")
        found = detected(path, **dict.fromkeys(READING) | reading)
        names = [name for name in found.header if name]
        if found.repeats or (found.cells and any(_LIKE_DATA.fullmatch(name) for name in names)):
            do = "add a first line with a name of its own for each column"
            raise InputError(f"the first line of {path} does not look like column names", do=do)
        options = {name: value for name, value in found.options.items() if value is not None}
        every = _ALL if found.cells else None  # a profile looks at every row
        read_as = read(path, quasi=dict.fromkeys(names, suppress()), types=types, memory=every, **options)
        fields = max(len(found.header), _fields(read_as.columns[0].values) if len(names) == 1 else 1)
        if found.cells and names == found.header[:1] and fields > 1:
            what = f"the first line of {path} names 1 of {fields} columns"
            raise InputError(what, do="delete the title above the line with the names")
        return Whole(read_as, options, found.notes, found.labelled)
    known = _names(source)
    names = list(_known_frame(source).collect_schema().names()) if known is None else known
    names = _publishable(source.schema) if isinstance(source, pa.Table) else [name for name in names if name]
    return Whole(table(source, quasi=dict.fromkeys(names, suppress()), types=types), {})


_ALL = 1 << 60  # bytes: more than any table takes


def _fields(lines: pa.Array) -> int:
    """The number of fields that nearly all these texts have by the same separator: three or more, else one."""
    texts = [] if v.kind_of(lines) != "text" else [str(line) for line in lines.drop_null().to_pylist()]
    for separator in SEPARATORS if texts else "":
        often, lines_with = Counter(text.count(separator) for text in texts).most_common(1)[0]
        if often > 1 and lines_with > 0.9 * len(texts):
            return often + 1
    return 1


def _publishable(schema: pa.Schema) -> list[str]:
    """The names of the columns whose types hold single values."""

    def single(of: pa.DataType) -> bool:
        if pa.types.is_dictionary(of):
            return single(of.value_type)
        span = pa.types.is_time(of) or pa.types.is_duration(of) or pa.types.is_interval(of)
        return not (span or pa.types.is_nested(of) or pa.types.is_binary(of) or pa.types.is_large_binary(of))

    return [one.name for one in schema if one.name and single(one.type)]


_LIKE_DATA = re.compile(r"\s*[-+]?[\d.,:/-]+\s*")  # numbers and dates


def table(
    frame: Any,
    *,
    quasi: Mapping[str, object] | Iterable[str],
    sensitive: Mapping[str, object] | Iterable[str] = (),
    other: Iterable[str] = (),
    person: str | None = None,
    weights: str | None = None,
    types: Mapping[str, v.Kind] | None = None,
    missing: Missing = "keep",
    domain: Domain = "declared",
    identifier: Mapping[str, object] | Iterable[str] = (),
    allow: Mapping[str, str] | None = None,
    pseudonym_key: str | Path | None = None,
    missing_is_value: Iterable[str] = (),
    memory: str | int | None = None,
) -> Table:
    """A table about people from a pandas, Polars or PyArrow frame, or any lazy frame that narwhals understands.

    A lazy frame (DuckDB, Polars, Ibis, Spark) or an Arrow dataset counts its distinct rows itself; only those come
    here, and of people who are alike only how many they are. `memory` is as in `read`.
    """
    named: Any = {"identifier": identifier, "allow": allow, "pseudonym_key": pseudonym_key}
    named |= {"missing_is_value": missing_is_value}
    roles = roles_of(quasi, sensitive, other, person, weights, types, missing, domain, **named)
    allowed = memory_of(memory)
    if is_dataset(frame):
        return _from_lazy(frame, roles, "arrow", allowed)
    known = _names(frame)
    if known is not None:  # before narwhals sees the frame: it would refuse doubled names in its own words
        roles.check(known)
    found = _known_frame(frame)
    if known is None:
        known = list(found.collect_schema().names())
        roles.check(known)
    origin = {"pandas": "pandas", "polars": "polars"}.get(str(found.implementation.name).lower(), "arrow")
    if isinstance(found, nw.LazyFrame):
        return _from_lazy(found, roles, origin, allowed)
    columns = {name: _column(found, name, roles) for name, _ in roles.named()}
    return assemble(columns, roles, known=known, origin=origin)


def _from_lazy(frame: Any, roles: Roles, origin: str, memory: int) -> Table:
    """The table of a dataset or lazy frame, whose engine counts."""
    from jali.sources.engines.frames import LazyFrame
    from jali.sources.held import from_engine, opening_of

    opening = opening_of(frame, memory=memory) or (lambda: nullcontext(LazyFrame(frame)))
    return from_engine(opening, roles, origin=origin, memory=memory)


def _known_frame(frame: Any) -> Any:
    """The frame as narwhals sees it."""
    try:
        return nw.from_native(frame)
    except TypeError:
        do = "give a pandas, Polars or PyArrow frame, or use jali.read"
        raise InputError("not a frame", got=type(frame).__name__, do=do) from None


def _names(frame: Any) -> list[str] | None:
    """Column names of an eager frame, doubled ones included; None where only narwhals knows them."""
    if hasattr(frame, "collect_schema"):
        return None
    names = frame.column_names if isinstance(frame, pa.Table) else getattr(frame, "columns", None)
    return [str(name) for name in names] if isinstance(names, Iterable) else None


def _column(found: Any, name: str, roles: Roles) -> pa.ChunkedArray:
    series = found.get_column(name)
    as_text = roles.types.get(name) == "text"
    try:
        arrow = series.to_arrow()
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, TypeError, OverflowError):
        if not as_text:
            do = f'make it one kind, or read it as text: types={{"{name}": "text"}}'
            raise InputError(f'column "{name}" mixes kinds of values', do=do) from None
        arrow = None
    if arrow is None or (as_text and isinstance(_value_type(arrow.type), pa.BaseExtensionType)):
        empty = series.is_null().to_list()
        arrow = pa.array([None if e else str(x) for x, e in zip(series.to_list(), empty, strict=True)], pa.string())
    return arrow if isinstance(arrow, pa.ChunkedArray) else pa.chunked_array([arrow])


def _value_type(of: pa.DataType) -> pa.DataType:
    return of.value_type if pa.types.is_dictionary(of) else of
