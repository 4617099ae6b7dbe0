"""Postgres, through psycopg."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import pyarrow as pa

from jali.core.formats import csv_lines, joined_lines
from jali.errors import InputError
from jali.sources.engines.base import Recoding, quoted
from jali.sources.engines.databases import ARROW, Database, Kind, Names, Of, in_batches, missing, of_table, refused
from jali.sources.engines.locations import NO_PASSWORD, Location

_KINDS: dict[int, Kind] = {
    16: "boolean", 20: "integer", 21: "integer", 23: "integer", 700: "real", 701: "real", 1700: "decimal",
    1082: "date", 1114: "timestamp", 1184: "timestamp",
}  # fmt: skip
"""The types of Postgres by their numbers, which are the same everywhere."""
_MET = ("40001", "40P01", "23505", "42P07")
"""What Postgres says where two make the same table: no order of the two, deadlock, a name that is taken by now."""


class Postgres(Database):
    """A database of a Postgres server."""

    types: ClassVar = {
        "text": "TEXT", "integer": "BIGINT", "real": "DOUBLE PRECISION", "boolean": "BOOLEAN", "date": "DATE",
        "timestamp": "TIMESTAMP",
    }  # fmt: skip
    joined: ClassVar = "string_agg"
    document: ClassVar = "JSON"
    longest: ClassVar = 63  # what is longer would be cut without a word

    @property
    def default(self) -> str:  # type: ignore[override]
        """The schema that names are looked up in first."""
        return str(self.connection.execute("SELECT coalesce(current_schema(), 'public')").fetchone()[0])

    def answer(self, question: str, values: Sequence[Any], kinds: Sequence[Kind]) -> pa.Table:
        """Row by row: there are as many as distinct combinations."""
        import psycopg

        try:
            rows = self.connection.execute(question, list(values)).fetchall()
        except psycopg.DataError as problem:
            if problem.sqlstate is not None:
                raise
            what = f"{self.shown} holds a date outside the years 1 to 9999"  # which only the server knows
            raise InputError(what, do="replace it or leave it empty, or leave its column out") from None
        columns = [_postgres_column([row[at] for row in rows], kind) for at, kind in enumerate(kinds)]
        return pa.table(columns, names=[str(at) for at in range(len(columns))])

    def stream(self, question: str, values: Sequence[Any], columns: int) -> Iterator[pa.RecordBatch]:
        """Through a cursor that stays with the server."""
        import psycopg

        with psycopg.RawServerCursor(self.connection, "jali_combinations") as cursor:
            cursor.execute(question, list(values))
            yield from in_batches(cursor.fetchmany, columns)

    def tables(self) -> list[Names]:
        """Tables and views that this user sees."""
        asked = """SELECT table_schema, table_name FROM information_schema.tables
          WHERE table_schema NOT IN ('pg_catalog', 'information_schema') ORDER BY 1, 2"""
        return [tuple(row) for row in self.connection.execute(asked).fetchall()]

    def schemas(self) -> set[str]:
        """The schemas that this user sees."""
        asked = "SELECT schema_name FROM information_schema.schemata"
        return {row[0] for row in self.connection.execute(asked).fetchall()}

    def columns(self, names: Names) -> dict[str, Kind]:
        """By the types that Postgres tells; words of any sort are texts."""
        told = self.connection.execute(f"SELECT * FROM {of_table(names)} LIMIT 0").description
        asked = "SELECT oid, typcategory FROM pg_type WHERE oid = ANY($1)"
        of = dict(self.connection.execute(asked, [[column.type_code for column in told]]).fetchall())
        return {c.name: _KINDS.get(c.type_code) or _other(c.type_code, of.get(c.type_code, b"")) for c in told}

    def expression(self, name: str, kind: Kind) -> str:
        """Words of any type and order as texts, times as the clock of the session shows them, numbers as they read."""
        own = f"t.{quoted(name)}"
        if kind == "real":  # of 32 bits: 0.1, which is another number among those of 64 bits
            return f"CASE WHEN pg_typeof({own}) = 'real'::regtype THEN {own}::text::float8 ELSE {own} END"
        casts: dict[Kind, str] = {"text": '::text COLLATE "C"', "timestamp": "::timestamp"}
        return f"{own}{casts.get(kind, '')}"

    def nodes(self, recoding: Recoding, of: Of, before: int) -> tuple[str, list[Any]]:
        """Two arrays, side by side."""
        kinds = {known: self.types[kind] for kind, known in ARROW.items()}
        number = before + 1
        arrays = f"unnest(${number}::{kinds.get(recoding.values.type, 'NUMERIC')}[], ${number + 1}::BIGINT[])"
        return f"(SELECT u.value, u.node FROM {arrays} AS u(value, node))", [
            recoding.values.to_pylist(),
            recoding.nodes.tolist(),
        ]

    def put(self, names: Names, table: pa.Table, kinds: Sequence[Kind]) -> None:
        """As lines of CSV, which hold a missing value apart from an empty text."""
        command = f"COPY {of_table(names)} FROM STDIN (FORMAT csv)"
        with self.connection.cursor() as cursor, cursor.copy(command) as copy:
            for batch in table.to_batches(max_chunksize=1 << 16):
                copy.write(joined_lines(csv_lines(pa.Table.from_batches([batch]))).to_pybytes())

    def repeat(self, source: Names, target: Names, columns: int) -> None:
        """Each row as often as a series is long."""
        keys = ", ".join(f"c{at}" for at in range(columns))
        drawn = f"SELECT {keys} FROM {of_table(source)}, generate_series(1, n) ORDER BY random()"
        self.run(f"INSERT INTO {of_table(target)} {drawn}")


def _postgres_column(values: list[Any], kind: Kind) -> pa.Array:
    """The values as Arrow has them; of exact numbers NaN is missing, and infinity is left to whoever refuses it."""
    if kind == "decimal" and not all(value is None or value.is_finite() for value in values):
        values = [None if value is None or value.is_nan() else value for value in values]
        if not all(value is None or value.is_finite() for value in values):
            return pa.array([None if value is None else float(value) for value in values], pa.float64())
    return pa.array(values, ARROW.get(kind))


def _other(oid: int, category: Any) -> Kind:
    """Texts (S), enumerations (E), addresses of machines (I) and UUIDs are words; the rest cannot be published."""
    told = category.decode() if isinstance(category, bytes) else str(category)
    return "text" if told in ("S", "E", "I") or oid == 2950 else "other"


@contextlib.contextmanager
def postgres(location: Location, writes: bool) -> Iterator[Database]:
    """A connection in one transaction, which only reads unless it `writes`; it sees one state of the tables."""
    try:
        import psycopg
    except ImportError:  # also where its C library is missing
        raise missing("psycopg", "databases") from None
    told: dict[str, Any] = {"dbname": location.place, "application_name": "jali"} | dict(location.client)
    try:
        connection = psycopg.connect(
            **{key: value for key, value in told.items() if value}, cursor_factory=psycopg.RawCursor
        )
    except psycopg.Error as problem:
        first = (str(problem).splitlines() or ["no connection"])[0].strip()
        raise refused(location, first, f"check the address and the server, and for a password {NO_PASSWORD}") from None
    try:
        with connection:  # committed where the block ends well, else rolled back
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            connection.read_only = not writes
            yield Postgres(connection, location.shown)
    except psycopg.Error as problem:
        both = problem.sqlstate in _MET
        raise refused(
            location, "another process writes to the same tables" if both else type(problem).__name__
        ) from None
