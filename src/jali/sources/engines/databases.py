"""What all databases share, asked in SQL of our own; names are quoted, values are parameters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import pyarrow as pa

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
from jali.sources.engines.locations import Location

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
