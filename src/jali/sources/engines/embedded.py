"""DuckDB and SQLite files, and what opens a database of any kind."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from itertools import compress
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from jali.core.arrays import Ints
from jali.core.scratch import private_folder
from jali.errors import InputError
from jali.sources.engines.base import ROWS, Recoding, quoted
from jali.sources.engines.databases import (
    ARROW,
    Database,
    DatabaseTable,
    Kind,
    Names,
    Of,
    as_text,
    in_batches,
    missing,
    of_table,
    refused,
)
from jali.sources.engines.locations import Location, no_file

# -- DuckDB ---------------------------------------------------------------------------------------------------------


class DuckDB(Database):
    """A DuckDB file."""

    types: ClassVar = {
        "text": "VARCHAR", "integer": "BIGINT", "real": "DOUBLE", "boolean": "BOOLEAN", "date": "DATE",
        "timestamp": "TIMESTAMP",
    }  # fmt: skip
    joined: ClassVar = "string_agg"
    document: ClassVar = "JSON"

    def answer(self, question: str, values: Sequence[Any], kinds: Sequence[Kind]) -> pa.Table:
        """DuckDB answers in Arrow."""
        answer = self.connection.sql(question, params=list(values)).to_arrow_table()
        pairs = zip(answer.columns, kinds, strict=True)
        made = [column.cast(ARROW[kind]) if kind == "integer" else _wide(column) for column, kind in pairs]
        return pa.table(made, names=[str(at) for at in range(len(made))])

    def stream(self, question: str, values: Sequence[Any], columns: int) -> Iterator[pa.RecordBatch]:
        """DuckDB streams Arrow."""
        for batch in reader_of(self.connection.sql(question, params=list(values))):
            yield batch.rename_columns([str(at) for at in range(columns)])

    def tables(self) -> list[Names]:
        """Tables and views."""
        asked = (
            "SELECT table_schema, table_name FROM information_schema.tables WHERE table_catalog = current_database()"
        )
        return [tuple(row) for row in self.connection.execute(f"{asked} ORDER BY 1, 2").fetchall()]

    def schemas(self) -> set[str]:
        """The schemas of this file."""
        asked = "SELECT schema_name FROM information_schema.schemata WHERE catalog_name = current_database()"
        return {row[0] for row in self.connection.execute(asked).fetchall()}

    def columns(self, names: Names) -> dict[str, Kind]:
        """By the types that DuckDB tells; UUIDs are texts."""
        told = self.connection.execute(f"DESCRIBE SELECT * FROM {of_table(names)}").fetchall()
        return {row[0]: _duckdb_kind(str(row[1]).upper()) for row in told}

    def expression(self, name: str, kind: Kind) -> str:
        """Texts of any type as such, each apart from all others, whatever order the column was declared with."""
        return f"{as_text(self, f't.{quoted(name)}')} COLLATE C" if kind == "text" else f"t.{quoted(name)}"

    def nodes(self, recoding: Recoding, of: Of, before: int) -> tuple[str, list[Any]]:
        """An Arrow table that DuckDB reads where it is."""
        table = pa.table({"value": recoding.values, "node": pa.array(recoding.nodes)})
        self.connection.register(f"jali_nodes_{of.at}", table)
        return f"jali_nodes_{of.at}", []

    def put(self, names: Names, table: pa.Table, kinds: Sequence[Kind]) -> None:
        """From Arrow, without a copy."""
        self.connection.register("jali_rows", table)
        self.connection.execute(f"INSERT INTO {of_table(names)} SELECT * FROM jali_rows")
        self.connection.unregister("jali_rows")

    def repeat(self, source: Names, target: Names, columns: int) -> None:
        """Each row as often as a range is long."""
        keys = ", ".join(f"c{at}" for at in range(columns))
        repeated = f"SELECT {keys}, unnest(range(n)) FROM {of_table(source)}"
        self.run(f"INSERT INTO {of_table(target)} SELECT {keys} FROM ({repeated}) ORDER BY random()")


def reader_of(relation: Any) -> pa.RecordBatchReader:
    """The rows of a relation, some at a time; older versions have another name for it."""
    read = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
    return read(1 << 16)


def _wide(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Numbers that may be too large for 64 bits with a sign as decimals."""
    return column.cast(pa.decimal128(20)) if column.type == pa.uint64() else column


def _duckdb_kind(told: str) -> Kind:
    nested = ("STRUCT", "MAP", "UNION", "BLOB", "BIT", "INTERVAL", "TIME WITH", "JSON")
    if told.endswith("]") or told.startswith((*nested, "UHUGEINT")):  # whose largest numbers no decimal of Arrow holds
        return "other"
    if told.startswith(("DECIMAL", "HUGEINT", "UBIGINT", "TIMESTAMP")):
        return "timestamp" if told.startswith("TIMESTAMP") else "decimal"
    known: dict[str, Kind] = {"DATE": "date", "BOOLEAN": "boolean", "DOUBLE": "real", "FLOAT": "real", "TIME": "other"}
    return known.get(told, "integer" if told.endswith("INT") or told == "INTEGER" else "text")


# -- SQLite ---------------------------------------------------------------------------------------------------------


class SQLite(Database):
    """An SQLite file, whose columns hold what was put into them, whatever they were declared as."""

    types: ClassVar = {
        "text": "TEXT", "integer": "INTEGER", "real": "REAL", "boolean": "BOOLEAN", "date": "DATE",
        "timestamp": "TIMESTAMP",
    }  # fmt: skip
    joined: ClassVar = "group_concat"
    document: ClassVar = "TEXT"

    def answer(self, question: str, values: Sequence[Any], kinds: Sequence[Kind]) -> pa.Table:
        """Values as what the column was declared, where they fit that, else as Arrow finds them, else as texts."""
        rows = self.connection.execute(question, list(values)).fetchall()
        columns = [_sqlite_column([row[at] for row in rows], kind) for at, kind in enumerate(kinds)]
        return pa.table(columns, names=[str(at) for at in range(len(columns))])

    def stream(self, question: str, values: Sequence[Any], columns: int) -> Iterator[pa.RecordBatch]:
        """As a cursor fetches them."""
        with contextlib.closing(self.connection.execute(question, list(values))) as cursor:
            yield from in_batches(cursor.fetchmany, columns)

    def tables(self) -> list[Names]:
        """Tables and views."""
        asked = (
            "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite~_%' ESCAPE '~'"
        )
        return [(self.default, row[0]) for row in self.connection.execute(f"{asked} ORDER BY 1").fetchall()]

    def columns(self, names: Names) -> dict[str, Kind]:
        """By what they were declared as."""
        asked = "SELECT name, type FROM pragma_table_xinfo(?) WHERE hidden <> 1"  # those that are computed too
        told = self.connection.execute(asked, [names[-1]]).fetchall()
        return {name: _sqlite_kind(str(declared).upper()) for name, declared in told}

    def expression(self, name: str, kind: Kind) -> str:
        """Each text apart from all others, whatever order the column was declared with."""
        return f"t.{quoted(name)} COLLATE BINARY"

    def nodes(self, recoding: Recoding, of: Of, before: int) -> tuple[str, list[Any]]:
        """Two lists in JSON, side by side."""
        known, nodes = [_as_sqlite(value) for value in recoding.values.to_pylist()], recoding.nodes
        if of.kind != "text" and recoding.values.type in (pa.string(), ARROW["date"], ARROW["timestamp"]):
            known, nodes = self._held(recoding, of)
        both = "json_each(?) AS v JOIN json_each(?) AS n ON v.key = n.key"
        lists = [json.dumps(known), json.dumps(nodes.tolist())]
        return f"(SELECT v.value AS value, n.value AS node FROM {both})", lists

    def _held(self, recoding: Recoding, of: Of) -> tuple[list[Any], Ints]:
        """What a column holds, where that is read as something else: dates in any form, numbers among texts."""
        column = self.expression(of.name, of.kind)
        asked = f"SELECT DISTINCT {column} FROM {of_table(of.names)} AS t WHERE {column} IS NOT NULL"
        held = [value for (value,) in self.connection.execute(asked).fetchall()]
        values = _sqlite_column(held, of.kind)
        if values.type != recoding.values.type:  # all are missing, or rows have changed, which is noticed later
            return [], recoding.nodes[:0]
        place = pc.index_in(values, recoding.values)
        kept = place.is_valid().to_pylist()
        return list(compress(held, kept)), recoding.nodes[place.drop_null().to_numpy()]

    def put(self, names: Names, table: pa.Table, kinds: Sequence[Kind]) -> None:
        """Batch by batch."""
        marks = ", ".join("?" * table.num_columns)
        for batch in table.to_batches(max_chunksize=1 << 14):
            columns = [[_as_sqlite(value) for value in column.to_pylist()] for column in batch.columns]
            self.connection.executemany(f"INSERT INTO {of_table(names)} VALUES ({marks})", zip(*columns, strict=True))

    def repeat(self, source: Names, target: Names, columns: int) -> None:
        """Count each row down; what is sorted is numbers of rows, which is much faster than rows."""
        keys, order = ", ".join(f"c{at}" for at in range(columns)), of_table((f"{source[-1]}_order",))
        more = f"""WITH RECURSIVE more(i, n) AS (
          SELECT rowid, n FROM {of_table(source)} WHERE n > 0 UNION ALL SELECT i, n - 1 FROM more WHERE n > 1)"""
        self.run(f"CREATE TEMPORARY TABLE {order} AS {more} SELECT i FROM more ORDER BY random()")
        drawn = f"SELECT {keys} FROM {order} AS o CROSS JOIN {of_table(source)} AS s ON s.rowid = o.i ORDER BY o.rowid"
        self.run(f"INSERT INTO {of_table(target)} {drawn}")
        self.run(f"DROP TABLE {order}")


def _sqlite_kind(declared: str) -> Kind:
    if "BOOL" in declared:
        return "boolean"
    if "TIMESTAMP" in declared or "DATETIME" in declared:
        return "timestamp"
    return "date" if declared == "DATE" else "text" if "CHAR" in declared or "TEXT" in declared else "real"


def _sqlite_column(values: list[Any], kind: Kind) -> pa.Array:
    """The values in the type that the column was declared with, else in one that holds them all, else as texts."""
    for own in (kind, "other"):
        with contextlib.suppress(pa.ArrowException, ValueError, TypeError, OverflowError):
            return _sqlite_declared(values, own)
    if any(isinstance(value, bytes) for value in values):
        raise InputError("a column holds bytes, which jali cannot publish", do="leave it out")
    return pa.array([None if value is None else str(value) for value in values], pa.string())


def _sqlite_declared(values: list[Any], kind: Kind) -> pa.Array:
    """The values in the type that a column was declared with, and of another column as Arrow finds them."""
    if kind == "boolean" and {*values} <= {0, 1, None}:
        return pa.array([None if value is None else bool(value) for value in values], pa.bool_())
    if kind in ("date", "timestamp"):
        read = date.fromisoformat if kind == "date" else datetime.fromisoformat
        return pa.array([None if value is None else read(value) for value in values], ARROW[kind])
    return pa.array(values, ARROW[kind] if kind in ("text", "integer") else None)


def _as_sqlite(value: Any) -> Any:
    """A value as SQLite keeps it: dates are texts."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    return value.isoformat() if isinstance(value, date) else value


# -- opening --------------------------------------------------------------------------------------------------------

LEAST = 256_000_000
"""Bytes that DuckDB is allowed at the least; with less it would rather fail than use the disk."""
A_THREAD = 125_000_000  # bytes that each of its threads needs
HELD, FULL = "in use by another process", "the disk is full"
JOURNALS = (".wal", "-journal", "-wal", "-shm")
"""How the names end of what DuckDB and SQLite keep beside a file while they write."""


@contextlib.contextmanager
def bounded(memory: int | None) -> Iterator[dict[str, Any]]:
    """Settings of a DuckDB that may use `memory` bytes, and beyond them a folder that nobody else may look into."""
    with private_folder() as folder:
        own: dict[str, Any] = {"temp_directory": str(folder)}
        if memory is not None:
            allowed = max(memory, LEAST)
            threads = max(1, min(os.cpu_count() or 1, allowed // A_THREAD))
            own |= {"memory_limit": f"{allowed // 10**6}MB", "threads": threads}
        with interruptible():
            yield own


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Ctrl-C as such: DuckDB stops a question for it, and says so in words of its own."""
    try:
        yield
    except Exception as problem:
        if _is_interrupt(problem):
            raise KeyboardInterrupt from None
        raise


def _is_interrupt(problem: Exception) -> bool:
    """Whether this is what DuckDB makes of Ctrl-C: in a query, or while it reads what Python holds."""
    if type(problem).__name__ == "InterruptException" or str(problem) == "Query interrupted":
        return True
    return type(problem).__name__ == "InvalidInputException" and "KeyboardInterrupt" in str(problem)


@contextlib.contextmanager
def opened(location: Location, *, writes: bool = False, memory: int | None = None) -> Iterator[Database]:
    """A connection in one transaction, which is kept only if it `writes` and the block ends well."""
    if location.scheme != "postgresql":
        _require_file(location.place, writes=writes)
    match location.scheme:
        case "duckdb":
            own = _duckdb(location, writes, memory)
        case "sqlite":
            own = _sqlite(location, writes)
        case _:
            from jali.sources.engines.postgres import postgres

            own = postgres(location, writes)
    with own as database:
        yield database


def _require_file(place: str, *, writes: bool) -> None:
    """Raise InputError where a database would wait for a pipe, or say no more than that it cannot open a file."""
    if os.path.exists(place) and not os.path.isfile(place):
        raise InputError(f"{place} is no file", do="name a database file")
    if not writes and not os.path.lexists(place):
        raise no_file(place)
    if writes and os.path.exists(place) and not os.access(place, os.W_OK):
        raise InputError(f"{place} may not be written", do="choose another place, or allow it")


@contextlib.contextmanager
def _duckdb(location: Location, writes: bool, memory: int | None) -> Iterator[Database]:
    try:
        import duckdb
    except ModuleNotFoundError:
        raise missing("duckdb", "duckdb") from None
    try:
        with bounded(memory) as own, duckdb.connect(location.place, read_only=not writes, config=own) as connection:
            if not writes:  # a view of an input may name any file of this machine: only the database itself is read
                connection.execute("SET enable_external_access = false")
            connection.execute("BEGIN")
            yield DuckDB(connection, location.shown)
            connection.execute("COMMIT" if writes else "ROLLBACK")
    except duckdb.OutOfMemoryException:
        raise MemoryError(f"there is not enough memory for {location.shown}") from None
    except duckdb.Error as problem:
        if isinstance(problem, duckdb.ConnectionException):
            do = "close that connection, or pass its table to jali.table"
            raise refused(location, "a connection of this process", do) from None
        held = "lock" in str(problem) and isinstance(problem, duckdb.IOException)
        why = HELD if held else FULL if "No space left" in str(problem) else type(problem).__name__
        raise refused(location, why) from None


@contextlib.contextmanager
def _sqlite(location: Location, writes: bool) -> Iterator[Database]:
    address = f"{Path(location.place).absolute().as_uri()}?mode={'rwc' if writes else 'ro'}"
    connection = None
    try:
        connection = sqlite3.connect(address, uri=True, isolation_level=None)
        connection.execute("PRAGMA synchronous = FULL" if writes else "PRAGMA query_only = 1")
        connection.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
        yield SQLite(connection, location.shown)
        connection.execute("COMMIT" if writes else "ROLLBACK")
    except sqlite3.Error as problem:
        if str(problem).startswith("Could not decode"):  # by Python: SQLite itself never looks
            do = "write it again as UTF-8"
            raise InputError(f"{location.shown} holds text that is not valid UTF-8", do=do) from None
        name = str(getattr(problem, "sqlite_errorname", type(problem).__name__))
        held = name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))
        raise refused(location, HELD if held else FULL if name == "SQLITE_FULL" else name) from None
    finally:
        if connection is not None:
            connection.close()  # what was not committed is gone


# -- combinations of our own -----------------------------------------------------------------------------------------


class NoRoomError(Exception):
    """The combinations cannot be kept here; says why."""


@contextlib.contextmanager
def kept(widths: Mapping[str, int], batches: Iterable[pa.RecordBatch], memory: int) -> Iterator[DatabaseTable]:
    """Combinations of codes with their rows in a DuckDB of our own, below a folder that is gone in the end.

    `widths` are the numbers of codes. NoRoomError where DuckDB is not installed, or the disk is full.
    """
    try:
        import duckdb
    except ModuleNotFoundError:
        raise NoRoomError("DuckDB is not installed (pip install 'jali[duckdb]')") from None
    if len({name.casefold() for name in widths}) < len(widths):
        raise NoRoomError("names of columns differ in capitals only, which DuckDB takes for the same")
    names = ("main", "combinations")
    with bounded(memory) as own:
        path = str(Path(own["temp_directory"]) / "combinations.duckdb")
        with duckdb.connect(path, config=own) as connection:
            database = DuckDB(connection, "the copy of the table")
            columns = [f"{quoted(name)} {_smallest(many)}" for name, many in widths.items()]
            connection.execute(f"CREATE TABLE {of_table(names)} ({', '.join(columns)}, {quoted(ROWS)} BIGINT)")
            for some in _gathered(batches, [*widths, ROWS]):
                try:
                    with interruptible():
                        database.put(names, some, ())
                except duckdb.Error as problem:
                    raise NoRoomError(f"the temporary folder does not take it ({type(problem).__name__})") from None
            yield DatabaseTable(database, names, ROWS)


def _smallest(codes: int) -> str:
    return "UTINYINT" if codes <= 1 << 8 else "USMALLINT" if codes <= 1 << 16 else "UINTEGER"


def _gathered(batches: Iterable[pa.RecordBatch], columns: list[str], rows: int = 1 << 20) -> Iterator[pa.Table]:
    """The batches put together into tables of about this many rows."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch.select(columns))
        if sum(one.num_rows for one in waiting) >= rows:
            yield pa.Table.from_batches(waiting)
            waiting = []
    if waiting:
        yield pa.Table.from_batches(waiting)
