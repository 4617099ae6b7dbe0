"""Tables from CSV and Parquet files."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from jali.encoding import values as v
from jali.encoding.table import Domain, Table
from jali.errors import InputError, path_of
from jali.reading import content, drained, is_regular
from jali.sources.assemble import assemble
from jali.sources.delimited import Delimited, detect_separator
from jali.sources.roles import Missing, Roles, roles_of

__all__ = ["detect_separator", "read"]


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

    Columns that are not named are not even decoded. Separator, compression and encoding (by its mark) are detected.
    """
    roles = roles_of(quasi, sensitive, other, person, weights, types, missing, domain)
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


def parquet_columns(path: Path) -> list[str]:
    """The column names of a Parquet file."""
    with _readable_parquet(path):
        return list(pq.read_schema(path).names)


@contextmanager
def _readable_parquet(path: Path) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError):
        raise InputError(f"{path} is not a readable Parquet file", do="write it again") from None


def _read_csv(name: str, source: Path | bytes, roles: Roles, separator: str | None, encoding: str | None) -> Table:
    file = Delimited.opened(name, source, separator, encoding)
    roles.check(file.header)
    table = file.columns([column for column, _ in roles.named()])
    return assemble(table, roles, known=file.header, origin="arrow", infer=True)
