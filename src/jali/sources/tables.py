"""Tables from CSV and Parquet files and from frames: pandas, Polars, PyArrow, lazy frames whose engine counts."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from jali.core.files import content, drained, is_regular
from jali.encoding import values as v
from jali.encoding.builders import suppress
from jali.encoding.table import Domain, Table
from jali.errors import InputError, path_of
from jali.sources.assemble import Missing, Roles, assemble, roles_of
from jali.sources.delimited import Delimited


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
    identifier: Mapping[str, object] | Iterable[str] = (),
    allow: Mapping[str, str] | None = None,
    pseudonym_key: str | Path | None = None,
) -> Table:
    """Read a table about people from a CSV or Parquet file ("-" reads CSV from standard input).

    Columns that are not named, and identifiers that are dropped, are not even decoded. Separator, compression and
    encoding (by its mark) are detected.
    """
    named: Any = {"identifier": identifier, "allow": allow, "pseudonym_key": pseudonym_key}
    roles = roles_of(quasi, sensitive, other, person, weights, types, missing, domain, **named)
    if str(path) == "-":
        data = drained("standard input", lambda: sys.stdin.buffer.read(1 << 20))
        return _read_csv("standard input", data, roles, separator, encoding)
    path = path_of(path)
    try:
        if path.is_dir():
            raise InputError(f"{path} is a folder", do="name a CSV or Parquet file")
        if not is_regular(path):  # a pipe can be read only once; a missing file says so here
            return _read_csv(str(path), content(path), roles, separator, encoding)
        with path.open("rb") as file:
            head = file.read(4)
        if head == b"PAR1" or (head and path.suffix.lower() in (".parquet", ".pq")):
            return _read_parquet(path, roles)
        return _read_csv(str(path), path, roles, separator, encoding)
    except FileNotFoundError:
        raise InputError(f"no file {path}", do="check the path") from None
    except PermissionError:
        raise InputError(f"no permission to read {path}", do="ask for it, or copy the file") from None
    except OSError as problem:
        raise InputError(
            f"{path} cannot be read", got=problem.strerror or "a damaged file", do="get it again"
        ) from None


def _read_parquet(path: Path, roles: Roles) -> Table:
    with _readable_parquet(path):
        schema = pq.read_schema(path)
        roles.check(list(schema.names))
        wanted = [name for name, _ in roles.named()]
        texts = [name for name in wanted if pa.types.is_string(schema.field(name).type)]
        with pq.ParquetFile(path, read_dictionary=texts) as file:
            table = file.read(columns=wanted)
    columns = {name: table[name] for name in wanted}
    return assemble(columns, roles, known=list(schema.names), origin="arrow")


@contextmanager
def _readable_parquet(path: Path) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError):  # the last for a name that is no text
        raise InputError(f"{path} is not a readable Parquet file", do="write it again") from None


def _read_csv(name: str, source: Path | bytes, roles: Roles, separator: str | None, encoding: str | None) -> Table:
    file = Delimited.opened(name, source, separator, encoding)
    roles.check(file.header)
    table = file.columns([column for column, _ in roles.named()])
    return assemble(table, roles, known=file.header, origin="arrow", infer=True)


def whole(
    source: Any, *, types: Mapping[str, v.Kind] | None = None, separator: str | None = None, encoding: str | None = None
) -> tuple[Table, dict[str, Any]]:
    """A file or frame with all its columns that can be read, before anybody has said what they are for.

    Each is a quasi-identifier that is kept or hidden. Columns without a name, and lists and bytes, are not read. With
    it come the options with which `read` reads the file in the same way.
    """
    if isinstance(source, (str, Path)):
        given = {"separator": separator, "encoding": encoding}
        every = dict.fromkeys(_header(path_of(source), separator, encoding), suppress())
        found = read(source, quasi=every, types=types, separator=separator, encoding=encoding)
        if not _is_parquet(path_of(source)):
            _refuse_values_as_names(source, found)
        return found, {name: value for name, value in given.items() if value is not None}
    known = _names(source)
    names = list(_known_frame(source).collect_schema().names()) if known is None else known
    names = _publishable(source.schema) if isinstance(source, pa.Table) else [name for name in names if name]
    return table(source, quasi=dict.fromkeys(names, suppress()), types=types), {}


def _publishable(schema: pa.Schema) -> list[str]:
    """The names of the columns whose types hold single values."""

    def single(of: pa.DataType) -> bool:
        if pa.types.is_dictionary(of):
            return single(of.value_type)
        span = pa.types.is_time(of) or pa.types.is_duration(of) or pa.types.is_interval(of)
        return not (span or pa.types.is_nested(of) or pa.types.is_binary(of) or pa.types.is_large_binary(of))

    return [one.name for one in schema if one.name and single(one.type)]


_LIKE_DATA = re.compile(r"\s*[-+]?[\d.,:/-]+\s*")  # numbers and dates


def _header(path: Path, separator: str | None, encoding: str | None) -> list[str]:
    """The column names of a file, from its schema or its first line; an InputError where that looks like a row."""
    if not path.is_file():  # a pipe cannot be read again
        raise InputError(f"no file {path}", do="name a CSV or Parquet file")
    if _is_parquet(path):
        with _readable_parquet(path):
            return _publishable(pq.read_schema(path))
    names = [name for name in Delimited.opened(str(path), path, separator, encoding).header if name]
    if len(set(names)) < len(names) or any(_LIKE_DATA.fullmatch(name) for name in names):
        raise _nameless(path)
    return names


def _refuse_values_as_names(path: object, read: Table) -> None:
    """Raise InputError where a name is also a value of its column: then the first line is a person's row."""
    if any(pc.index(column.labels, column.name).as_py() >= 0 for column in read.columns):
        raise _nameless(path)


def _nameless(path: object) -> InputError:
    do = "add a first line with a name of its own for each column"
    return InputError(f"the first line of {path} does not look like column names", do=do)


def _is_parquet(path: Path) -> bool:
    with path.open("rb") as start:
        return start.read(4) == b"PAR1"


_COUNT = "rows counted by jali"


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
) -> Table:
    """A table about people from a pandas, Polars or PyArrow frame, or any lazy frame that narwhals understands.

    A lazy frame (a DuckDB relation, a Spark frame) counts its distinct rows itself; only those come here.
    """
    named: Any = {"identifier": identifier, "allow": allow, "pseudonym_key": pseudonym_key}
    roles = roles_of(quasi, sensitive, other, person, weights, types, missing, domain, **named)
    known = _names(frame)
    if known is not None:  # before narwhals sees the frame: it would refuse doubled names in its own words
        roles.check(known)
    found = _known_frame(frame)
    if known is None:
        known = list(found.collect_schema().names())
        roles.check(known)
    wanted = [name for name, _ in roles.named()]
    origin = {"pandas": "pandas", "polars": "polars"}.get(str(found.implementation.name).lower(), "arrow")
    if isinstance(found, nw.LazyFrame):
        return _lazy(found, roles, known, wanted, origin)
    columns = {name: _column(found, name, roles) for name in wanted}
    return assemble(columns, roles, known=known, origin=origin)


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


def _lazy(found: Any, roles: Roles, known: list[str], wanted: list[str], origin: str) -> Table:
    """The distinct rows as the engine counts them, in an order that does not depend on its threads."""
    counted = found.select(wanted).group_by(wanted, drop_null_keys=False).agg(nw.len().alias(_COUNT))
    arrow = counted.sort(wanted, nulls_last=True).collect("pyarrow").to_arrow()
    multiplicity = np.asarray(arrow[_COUNT].cast(pa.int64()).to_numpy())
    columns = {name: arrow[name] for name in wanted}
    return assemble(columns, roles, known=known, origin=origin, multiplicity=multiplicity)


class Counted(NamedTuple):
    """The counts of a frame, and what its columns are called."""

    matrix: NDArray[Any]  # (buckets, values)
    names: tuple[str, ...]  # (values,)


def counted(given: Any) -> Counted | None:
    """The counts of a pandas, Polars or Arrow table, row by row; None for what is no frame.

    The index of a pandas frame, as `pd.crosstab` has it, is no value.
    """
    if isinstance(given, pa.RecordBatch):
        given = pa.Table.from_batches([given])
    if isinstance(given, (list, tuple, np.ndarray)):
        return None
    if hasattr(type(given), "collect"):
        raise InputError("a lazy frame has no rows yet", got=type(given).__name__, do="collect it first")
    columns: Any = given.column_names if isinstance(given, pa.Table) else getattr(given, "columns", None)
    names = tuple(map(_named, columns)) if isinstance(columns, list) or _is_index(columns) else ()
    if len(set(names)) < len(names):
        raise InputError("two columns of the counts have the same name", do="give each value one column")
    frame = nw.from_native(given, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return None
    series = [frame[:, at] for at in range(len(frame.columns))]
    for name, column in zip(names, series, strict=True):
        if not column.dtype.is_numeric():
            do = "leave it out, and pass one row for each bucket and one column for each value"
            raise InputError(f'column "{name}" of the counts holds no numbers', got=str(column.dtype), do=do)
        if column.null_count():
            raise InputError(f'column "{name}" of the counts has empty cells', do="write 0 where nobody has the value")
    if not series or not len(frame):
        return Counted(np.zeros((len(frame), len(series)), dtype=np.int64), names)
    return Counted(_matrix(frame, series), names)


def _matrix(frame: Any, series: list[Any]) -> NDArray[Any]:
    """The numbers of all columns in one type; of one type already they are not copied where the library need not."""
    parts = [column.to_numpy() for column in series]
    kinds = {part.dtype for part in parts}
    if len(kinds) == 1 and parts[0].dtype.kind in "iuf":
        whole = frame.to_numpy()
        if whole.dtype == parts[0].dtype:
            return np.asarray(whole)
    return np.stack([part if part.dtype.kind in "iuf" else part.astype(np.float64) for part in parts], axis=1)


def _is_index(columns: Any) -> bool:
    """Whether these are the column names of a pandas frame, which are an index."""
    return hasattr(columns, "tolist") and hasattr(columns, "nlevels")


def _named(name: Any) -> str:
    return ", ".join(map(str, name)) if isinstance(name, tuple) else str(name)
