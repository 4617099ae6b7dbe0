"""Databases: DuckDB and SQLite files and Postgres, asked in SQL of our own; names are quoted, values are parameters."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import pyarrow as pa

from jali.core.formats import csv_lines, joined_lines
from jali.encoding.large import Cut, Sizes
from jali.errors import InputError, nearest
from jali.sources.engines.base import (
    GROUP,
    NO_RECODING,
    PEOPLE,
    PROFILE,
    ROWS,
    Combinations,
    Recoding,
    in_order,
    profiles_in,
    quoted,
    refuse_nobody,
    sizes_in,
)
from jali.sources.engines.locations import NO_PASSWORD, Location

Kind = Literal["text", "integer", "real", "boolean", "date", "timestamp", "decimal", "other"]
"""What a column of a database holds."""
Names = tuple[str, ...]  # of a table: its schema, where it has one, and its own
ARROW: dict[Kind, pa.DataType] = {
    "text": pa.string(), "integer": pa.int64(), "real": pa.float64(), "boolean": pa.bool_(), "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
}  # fmt: skip


@dataclass(frozen=True)
class Of:
    """The column whose values are recoded: its table, its name, what it holds, and the place where it is asked for."""

    names: Names
    name: str
    kind: Kind
    at: int


def of_table(names: Names) -> str:
    """A table's name as SQL takes it."""
    return ".".join(map(quoted, names))


@dataclass(frozen=True)
class Database(ABC):
    """An open connection, in one transaction. Subclasses know what their database calls things."""

    connection: Any
    shown: str
    types: ClassVar[Mapping[Kind, str]]
    joined: ClassVar[str]  # the texts of a group as one
    document: ClassVar[str]  # the type of a JSON text
    longest: ClassVar[int] = 1 << 30  # bytes of a name
    default: ClassVar[str] = "main"  # the schema of tables that are named without one

    def ask(self, question: str, values: Sequence[Any] = (), kinds: Sequence[Kind] = ()) -> pa.Table:
        """The answer to a query, column by column, as values of these kinds; columns are called 0, 1, 2 …"""
        try:
            return self.answer(question, values, kinds)
        except MemoryError:
            raise
        except pa.ArrowException:  # its words hold values
            do = "leave the column out, or make a view that shows it as text"
            raise InputError(f"{self.shown} holds values that jali cannot publish", do=do) from None

    @abstractmethod
    def answer(self, question: str, values: Sequence[Any], kinds: Sequence[Kind]) -> pa.Table:
        """What `ask` gives."""

    @abstractmethod
    def stream(self, question: str, values: Sequence[Any], columns: int) -> Iterator[pa.RecordBatch]:
        """The answer to a query for integers, some rows at a time; columns are called 0, 1, 2 …"""

    @abstractmethod
    def tables(self) -> list[Names]:
        """The schema and the name of every table and view."""

    @abstractmethod
    def columns(self, names: Names) -> dict[str, Kind]:
        """The columns of a table, and what each holds."""

    @abstractmethod
    def nodes(self, recoding: Recoding, of: Of, before: int) -> tuple[str, list[Any]]:
        """Values and nodes as a table `value`, `node`, and its parameters; so many others stand before them."""

    @abstractmethod
    def put(self, names: Names, table: pa.Table, kinds: Sequence[Kind]) -> None:
        """Insert rows into a table."""

    @abstractmethod
    def repeat(self, source: Names, target: Names, columns: int) -> None:
        """Insert each row of a table c0, c1, …, n into another n times, all in a random order."""

    def run(self, command: str, values: Sequence[Any] = ()) -> None:
        """Run a statement."""
        self.connection.execute(command, list(values))

    def expression(self, name: str, kind: Kind) -> str:
        """A column as it is asked for."""
        return f"t.{quoted(name)}"

    def named(self, name: str) -> Names | None:
        """The table or view of a name, "patients" or "clinic.patients"; None where there is none."""
        every = self.tables()
        schema, _, own = name.partition(".")
        for wanted in ((self.default, name), (schema, own)):
            if wanted in every:
                return wanted
        return None

    def chosen(self, name: str | None) -> Names:
        """The table that is named, or the only one."""
        known = [own if schema == self.default else f"{schema}.{own}" for schema, own in self.tables()]
        if name is None and len(known) == 1:
            name = known[0]
        if name is None:
            do = f"name one of them: {', '.join(known[:20])}" if known else "name another database"
            raise InputError(f"{self.shown} has {len(known)} tables", do=do)
        found = self.named(name)
        if found is None:
            do = nearest(name, known) if known else "name another database"
            raise InputError(f'no table "{name}" in {self.shown}', do=do)
        return found

    def target(self, name: str) -> Names:
        """Where a new table of a name goes."""
        schema, _, own = name.partition(".")
        known = {schema for schema, _ in self.tables()} | self.schemas()
        return (schema, own) if own and schema in known else (self.default, name)

    def schemas(self) -> set[str]:
        """The schemas that tables can be made in."""
        return set()


@dataclass(frozen=True)
class DatabaseTable:
    """One table of a database that counts its own rows."""

    database: Database
    names: Names
    number: str | None = None  # the column that says how many rows each stands for

    @property
    def _sum(self) -> str:
        """How rows are counted."""
        return "count(*)" if self.number is None else "CAST(sum(k) AS BIGINT)"

    @property
    def header(self) -> list[str]:
        """The names of its columns."""
        return list(self.database.columns(self.names))

    def count(
        self, columns: Sequence[str], *, person: str | None = None, recoded: Mapping[str, Recoding] = NO_RECODING,
        within: Cut | None = None, most: int | None = None,
    ) -> Combinations:  # fmt: skip
        """The distinct combinations with their rows, person by person where somebody has several."""
        db = self.database
        rows, values, kinds = self._rows(columns, person, recoded, within)
        keys = ", ".join(_keys(columns, within))
        if person is None or not self._has_repeated(rows, values, person):
            few = "" if most is None else f" LIMIT {most + 1}"
            question = f"{rows} SELECT {keys}, {self._sum} FROM r GROUP BY {keys}{few}"
            answer = db.ask(question, values, [*kinds, "integer"])
            names = [*([] if within is None else [GROUP]), *columns]
            return in_order(answer.rename_columns([*names, ROWS]), names, most=most)
        return self._by_person(rows, values, kinds, columns)

    def _by_person(
        self, rows: str, values: list[Any], kinds: Sequence[Kind], columns: Sequence[str]
    ) -> Combinations:  # fmt: skip
        """The combinations of each person: the database gives profiles, "17:1,23:2", and how many people have each."""
        db, keys = self.database, ", ".join(_keys(columns, None))
        placed = f"{rows}, placed AS (SELECT dense_rank() OVER (ORDER BY {keys}) AS place, r.* FROM r)"
        places = db.ask(f"{placed} SELECT DISTINCT place, {keys} FROM placed", values, ["integer", *kinds])
        entry = f"{as_text(db, 'place')} || ':' || {as_text(db, 'n')}"
        profiles = f"""{placed},
          sums AS (SELECT p, place, count(*) AS n FROM placed GROUP BY p, place),
          entries AS (SELECT p, {entry} AS entry FROM sums ORDER BY p, place),
          people AS (SELECT p, {db.joined}(entry, ',') AS profile FROM entries GROUP BY p)
          SELECT profile, count(*) FROM people GROUP BY profile"""
        answer = db.ask(profiles, values, ["text", "integer"]).rename_columns([PROFILE, PEOPLE])
        return profiles_in(places.rename_columns([PROFILE, *columns]), columns, answer).each()

    def sizes(
        self, columns: Sequence[str], *, recoded: Mapping[str, Recoding] = NO_RECODING, within: Cut | None = None
    ) -> Sizes:
        """How many combinations have how many rows: counted twice over."""
        rows, values, _ = self._rows(columns, None, recoded, within)
        keys, own = ", ".join(_keys(columns, within)), [] if within is None else ["g"]
        each = f"e AS (SELECT {', '.join([*own, f'{self._sum} AS n'])} FROM r GROUP BY {keys})"
        again = ", ".join([*own, "n"])
        question = f"{rows}, {each} SELECT {again}, count(*) FROM e GROUP BY {again}"
        answer = self.database.ask(question, values, ["integer"] * (2 + len(own)))
        return sizes_in(answer.rename_columns([*([] if within is None else [GROUP]), ROWS, PEOPLE]), within)

    def batches(self, columns: Sequence[str], recoded: Mapping[str, Recoding]) -> Iterator[pa.RecordBatch]:
        """The distinct combinations, as the database sends them."""
        rows, values, _ = self._rows(columns, None, recoded, None)
        keys = ", ".join(_keys(columns, None))
        question = f"{rows} SELECT {keys}, {self._sum} FROM r GROUP BY {keys}"
        for batch in self.database.stream(question, values, len(columns) + 1):
            yield batch.rename_columns([*columns, ROWS])

    def _rows(
        self, columns: Sequence[str], person: str | None, recoded: Mapping[str, Recoding], within: Cut | None
    ) -> tuple[str, list[Any], list[Kind]]:
        """WITH r AS (…): the rows that are counted; its parameters, and the kind of each column of a combination.

        In r, columns are c0, c1, …; p is the person, g the group, and k the number of rows that one stands for.
        """
        known = self._known([*columns, *([] if person is None else [person])])
        read = [*columns, *sorted(set() if within is None else within.columns - {*columns})]
        asked: list[str] = []
        joins: list[str] = []
        values: list[Any] = []
        for at, name in enumerate(read):
            own_value = self.database.expression(name, known[name])
            node = f"m{at}.node"
            if name in recoded:
                nodes, own = self.database.nodes(recoded[name], Of(self.names, name, known[name], at), len(values))
                joins.append(f"LEFT JOIN {nodes} AS m{at} ON {own_value} = m{at}.value")
                values += own
                missing = recoded[name].missing
                node = node if missing is None else f"coalesce({node}, {missing:d})"
            asked.append(f"{node if name in recoded else own_value} AS c{at}")
        asked += [] if person is None else [f"{self.database.expression(person, known[person])} AS p"]
        asked += [] if self.number is None else [f"t.{quoted(self.number)} AS k"]
        rows = f"SELECT {', '.join(asked)} FROM {of_table(self.names)} AS t {' '.join(joins)}"
        kinds: list[Kind] = ["integer" if name in recoded else known[name] for name in columns]
        if within is None:
            return f"WITH r AS ({rows})", values, kinds
        group = _group(within, {name: f"c{at}" for at, name in enumerate(read)})
        divided = f"d AS ({rows}), s AS (SELECT {group} AS g, d.* FROM d), r AS (SELECT * FROM s WHERE g >= 0)"
        return f"WITH {divided}", values, ["integer", *kinds]

    def _known(self, columns: Sequence[str]) -> dict[str, Kind]:
        """What the columns of the table hold; InputError where one of these cannot be published."""
        known, db = self.database.columns(self.names), self.database
        for name in columns:
            if known[name] == "other":
                do = "leave it out, or make a view that shows it as text"
                raise InputError(f'column "{name}" of {db.shown} holds values that jali cannot publish', do=do)
        return known

    def _has_repeated(self, rows: str, values: list[Any], person: str) -> bool:
        """Whether somebody has several rows; an InputError where a row is nobody's."""
        nobody = f"p IS NULL OR {as_text(self.database, 'p')} = ''"
        question = f"""{rows}, e AS (SELECT p, count(*) AS n FROM r GROUP BY p)
          SELECT coalesce(sum(CASE WHEN {nobody} THEN n ELSE 0 END), 0), coalesce(max(n), 0) FROM e"""
        nobodys, most = (
            column[0].as_py() for column in self.database.ask(question, values, ["integer", "integer"]).columns
        )
        refuse_nobody(person, nobodys)
        return bool(most > 1)


def _keys(columns: Sequence[str], within: Cut | None) -> list[str]:
    return [*([] if within is None else ["g"]), *(f"c{at}" for at in range(len(columns)))]


def _group(cut: Cut | int, named: Mapping[str, str]) -> str:
    """The number of the group of a row."""
    if isinstance(cut, int):
        return f"{cut:d}"
    cases = (
        f"WHEN {named[cut.column]} < {bound:d} THEN {_group(part, named)}"
        for bound, part in zip(cut.bounds, cut.parts, strict=False)
    )
    return f"CASE {' '.join(cases)} ELSE {_group(cut.parts[-1], named)} END"


_BATCH = 1 << 16  # rows


def in_batches(fetch: Callable[[int], list[tuple[Any, ...]]], columns: int) -> Iterator[pa.RecordBatch]:
    """Rows of integers as a cursor fetches them, in batches of Arrow."""
    names = [str(at) for at in range(columns)]
    while rows := fetch(_BATCH):
        arrays = [pa.array(own, pa.int64()) for own in zip(*rows, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, names=names)


def as_text(database: Database, expression: str) -> str:
    return f"CAST({expression} AS {database.types['text']})"


def refused(location: Location, why: str, do: str = "look at the database, and try again") -> InputError:
    """What a database says, without its words: they could hold values."""
    return InputError(f"{location.shown} cannot be used", got=why, do=do)


def missing(package: str, extra: str) -> InputError:
    """What to say where a package is not installed."""
    return InputError(f"{package} is not installed", do=f"pip install 'jali[{extra}]'")


# -- Postgres, through psycopg ---------------------------------------------------------------------------------------

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
