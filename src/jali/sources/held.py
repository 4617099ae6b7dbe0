"""Tables that an engine holds: their distinct combinations come here, or, where they are too many, only answers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar
from weakref import finalize

import numpy as np
import pyarrow as pa

from jali.core.arrays import Ints, combine, counted, steps
from jali.encoding.large import MORE, Counted, Cut, LargeTable, Sizes, TooManyError, room_of
from jali.encoding.table import Column, Table
from jali.errors import ChangedError, InputError
from jali.sources.assemble import Encoder, Roles, assemble
from jali.sources.distinct import Tally
from jali.sources.engines.base import GROUP, ROWS, Combinations, Engine, Recoding, require_free
from jali.sources.engines.embedded import NoRoomError, interruptible, kept
from jali.sources.engines.locations import Location, is_dataset, located
from jali.sources.writing import Writing, as_line

if TYPE_CHECKING:
    from pyarrow.dataset import Dataset

    from jali.sources.engines.frames import LazyFrame

T = TypeVar("T")

_AT_ONCE = 1 << 20  # records that are counted together
Opening = Callable[[], AbstractContextManager[Engine]]
"""Opens a table that counts its own rows, again and again."""


def opening_of(place: object, table: str | None = None, memory: int | None = None) -> Opening | None:
    """What opens a table that counts its own rows; None for a file or frame to be read.

    A DuckDB that is started for it may use `memory` bytes.
    """
    if is_dataset(place):
        return partial(_dataset, place, memory)
    location = located(place, table)
    return None if location is None else partial(_located, location, memory)


@contextmanager
def _dataset(dataset: Dataset, memory: int | None) -> Iterator[Engine]:
    from jali.sources.engines.datasets import engine_of

    with engine_of(dataset, memory=memory) as engine:
        yield engine


@contextmanager
def _located(location: Location, memory: int | None) -> Iterator[Engine]:
    from jali.sources.engines.datasets import engine_at

    with engine_at(location, memory) as engine:
        yield engine


@contextmanager
def file_engine(path: Path, memory: int | None = None) -> Iterator[Engine]:
    """What counts the rows of a Parquet file."""
    from jali.sources.engines.datasets import dataset_at, engine_of

    with engine_of(dataset_at(str(path)), str(path), memory) as engine:
        yield engine


def from_engine(
    opening: Opening, roles: Roles, *, memory: int, origin: str = "arrow", writing: Writing | None = None
) -> Table:
    """The table of what an engine counts: its distinct combinations, and people where they are named.

    Where there are more combinations than `memory` holds, the table stays with the engine.
    """
    wanted = [name for name, role in roles.named() if role != "person"]
    require_free(wanted)
    room = None if roles.person is not None else room_of(memory, len(wanted))
    with opening() as engine:
        known = engine.header
        roles.check(known)
        try:
            found = engine.count(wanted, person=roles.person, most=room)
        except TooManyError:
            return large_table(engine, opening, roles, memory=memory, origin=origin, writing=writing)
    columns = {name: found.table[name] for name in found.table.column_names}
    return assemble(
        columns, roles, known=known, origin=origin, multiplicity=found.rows, person=found.person, writing=writing
    )


# -- more combinations than memory holds ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Keys:
    """The values of a column as its engine has them, and the code of each."""

    values: pa.Array  # (values,) none missing
    codes: Ints  # (values,)
    missing: int  # the code of the missing value; 0 where none is missing

    @classmethod
    def of(cls, found: Combinations, column: Column) -> Keys:
        """Those of a column that was counted by itself."""
        own = found.table[column.name]
        own = own.combine_chunks() if isinstance(own, pa.ChunkedArray) else own
        own = own.dictionary_decode() if pa.types.is_dictionary(own.type) else own
        filled = own.is_valid().to_numpy(zero_copy_only=False)
        codes = column.codes.astype(np.int64)
        return cls(own.filter(pa.array(filled)), codes[filled], int(codes[~filled][0]) if not filled.all() else 0)

    def recoding(self, nodes: Ints) -> Recoding:
        """What takes the place of each value; `nodes` is by code."""
        return Recoding(self.values, nodes[self.codes], int(nodes[self.missing]))


@dataclass(frozen=True, eq=False)
class Asked:
    """An engine that is asked by codes: of the rows themselves, or of a copy that has codes already."""

    opening: Opening
    keys: Mapping[str, Keys] | None  # None: columns hold codes
    rows: int
    _one: RLock = field(default_factory=RLock)  # whoever asks; an engine hears one question at a time

    def count(
        self, nodes: Mapping[str, Ints], *, of: Sequence[str] | None = None, within: Cut | None = None,
        most: int | None = None,
    ) -> Counted:  # fmt: skip
        """The distinct combinations of these columns by their nodes."""
        names = list(nodes) if of is None else list(of)
        asked = _varying(names, nodes)
        with self._one, self.opening() as engine:
            found = engine.count(asked, recoded=self._recoded(nodes), within=within, most=most)
        if within is None:
            self._require_same(int(found.rows.sum()))
        return _as_counted(found, {name: int(nodes[name][0]) for name in names if name not in asked}, names)

    def sizes(self, nodes: Mapping[str, Ints], *, within: Cut | None = None) -> Sizes:
        """How many combinations of these columns have how many rows."""
        with self._one, self.opening() as engine:
            found = engine.sizes(_varying(list(nodes), nodes), recoded=self._recoded(nodes), within=within)
        if within is None:
            self._require_same(int((found.size * found.many).sum()))
        return found

    def each(
        self, work: Callable[[Counted], T], nodes: Mapping[str, Ints], *, of: Sequence[str], within: Cut
    ) -> Sequence[T] | None:
        """What Spark's workers make of each group; None for other engines, and where its workers cannot."""
        names, asked = list(of), _varying(list(of), nodes)
        same = {name: int(nodes[name][0]) for name in names if name not in asked}
        with self._one, self.opening() as engine:
            if not is_spark(engine):
                return None
            return engine.each(lambda found: work(_as_counted(found, same, names)), asked, self._recoded(nodes), within)

    def _recoded(self, nodes: Mapping[str, Ints]) -> dict[str, Recoding]:
        if self.keys is not None:
            return {name: self.keys[name].recoding(own) for name, own in nodes.items()}
        codes = {name: np.arange(len(own)) for name, own in nodes.items()}
        return {
            name: Recoding(pa.array(codes[name]), own, 0)
            for name, own in nodes.items()
            if not np.array_equal(own, codes[name])
        }

    def _require_same(self, rows: int) -> None:
        """Raise InputError where the table is no longer what it was."""
        if rows != self.rows:
            raise ChangedError()


def _varying(names: list[str], nodes: Mapping[str, Ints]) -> list[str]:
    """The columns with more than one node: the others tell no combinations apart. At least one, which SQL wants."""
    return [name for name in names if (nodes[name] != nodes[name][0]).any()] or names[:1]


def _as_counted(found: Combinations, same: Mapping[str, int], names: Sequence[str]) -> Counted:
    """What was counted, by nodes; columns that have the `same` node everywhere were not asked for."""
    own = {
        name: np.full(len(found.rows), same[name], dtype=np.int64) if name in same else _ints(found.table[name])
        for name in names
    }  # fmt: skip
    return Counted(own, found.rows, _ints(found.table[GROUP]) if GROUP in found.table.column_names else None)


def _too_many_values(name: str) -> InputError:
    return InputError(f'column "{name}" alone has more values than memory holds', do=MORE)


def _ints(column: pa.ChunkedArray) -> Ints:
    return np.asarray(column.cast(pa.int64()).to_numpy(), dtype=np.int64)


def large_table(
    engine: Engine, opening: Opening, roles: Roles, *, memory: int, origin: str, writing: Writing | None
) -> LargeTable:
    """The table of an engine whose distinct combinations are more than memory holds."""
    if roles.weights is not None:
        raise InputError("a table with weights has more distinct rows than memory holds", do=MORE)
    if roles.missing == "drop":
        do = f'use missing = "keep", or leave out incomplete rows in a view, or {MORE}'
        raise InputError("incomplete rows cannot be dropped from a table beyond memory", do=do)
    encoder, known, named = Encoder(roles, writing), engine.header, {name for name, _ in roles.every()}
    made: dict[str, Column] = {}
    keys: dict[str, Keys] = {}
    for name, _ in roles.published():
        try:
            found = engine.count([name], most=room_of(memory, 1))
        except TooManyError:
            raise _too_many_values(name) from None
        column = encoder.column(name, {name: found.table[name]}, found.rows)
        keys[name] = Keys.of(found, column)
        rows = counted(column.codes, found.rows, len(column.values))
        made[name] = replace(column, codes=column.codes[:0], value_rows=rows)
    columns = tuple(made[name] for name in known if name in made)
    elsewhere, notes = _condensed(engine, opening, keys, columns, memory)
    return LargeTable(
        columns=columns,
        records=0,
        origin=origin,
        domain=roles.domain,
        unnamed=tuple(name for name in known if name not in named),
        dropped=roles.identifiers.dropped,
        allowed=roles.identifiers.allow,
        notes=(*map(as_line, encoder.notes(columns, known)), *notes),
        elsewhere=elsewhere,
        memory=memory,
    )


# -- each combination of codes once, where questions are answered faster than from the rows ---------------------------


def _condensed(
    engine: Engine, opening: Opening, keys: Mapping[str, Keys], columns: Sequence[Column], memory: int
) -> tuple[Asked, tuple[str, ...]]:
    """What answers questions about the table: a copy of its combinations, else the engine itself; and what to say.

    The copy is that of one moment, and is gone when nobody has the table any more.
    """
    rows = {column.name: column.value_rows for column in columns if column.value_rows is not None}
    widths = {name: len(own) for name, own in rows.items()}
    total = int(next(iter(rows.values())).sum())
    recoded = {name: own.recoding(np.arange(widths[name])) for name, own in keys.items()}
    try:
        asked = _lasting(_copy(engine, recoded, widths, memory), total)
    except NoRoomError as problem:
        note = f"each question reads all rows again, since no copy of their combinations can be kept: {problem}"
        return Asked(opening, keys, total), (note,)
    for name, own in rows.items():
        found = asked.count({name: np.arange(widths[name])})
        if not np.array_equal(counted(found.nodes[name], found.rows, widths[name]), own):
            raise ChangedError()
    return asked, ()


def _lasting(copy: AbstractContextManager[Engine], rows: int) -> Asked:
    """What asks a copy, which is gone when nobody asks any more."""
    with ExitStack() as stack:
        engine = stack.enter_context(copy)
        asked = Asked(lambda: _asked(engine), None, rows)
        finalize(asked, _close, stack.pop_all(), os.getpid())
    return asked


def _copy(
    engine: Engine, recoded: Mapping[str, Recoding], widths: Mapping[str, int], memory: int
) -> AbstractContextManager[Engine]:
    """Spark keeps its combinations itself, on all its machines; those of every other engine come here."""
    if is_spark(engine):
        return engine.kept(list(widths), recoded)
    return kept(widths, engine.batches(list(widths), recoded), memory)


def is_spark(engine: Engine) -> TypeGuard[LazyFrame]:
    """Whether an engine is a frame of Spark, which has workers of its own."""
    from jali.sources.engines.frames import LazyFrame

    return isinstance(engine, LazyFrame) and engine.library == "pyspark"


@contextmanager
def _asked(copy: Engine) -> Iterator[Engine]:
    """The copy; where DuckDB has too little memory or disk for a question, that is said as such."""
    try:
        with interruptible():
            yield copy
    except Exception as problem:
        if type(problem).__module__.split(".")[0] not in ("duckdb", "_duckdb"):
            raise
        if type(problem).__name__ == "OutOfMemoryException":
            raise MemoryError("there is not enough memory to count the combinations of the table") from None
        do = "make room in the temporary folder (TMPDIR), and try again"
        what = "the copy of the table's combinations cannot be used"
        raise InputError(what, got=type(problem).__name__, do=do) from None


def _close(stack: ExitStack, process: int) -> None:
    """Remove a copy; a process that was forked meanwhile leaves it to the one that made it."""
    if os.getpid() == process:
        stack.close()


# -- tables that were read here -------------------------------------------------------------------------------------


def bounded(table: Table, memory: int) -> Table:
    """A table that was read as codes: as it is or, where it has more combinations than memory holds, a copy on disk.

    People with several rows, and weights, stay here.
    """
    if (
        table.person is not None
        or table.weight is not None
        or not _has_more(table, room_of(memory, len(table.columns)))
    ):
        return table
    made = [_by_value(column, table.multiplicity) for column in table.columns]
    for column in made:
        if len(column.values) > room_of(memory, 1):
            raise _too_many_values(column.name)
    widths = {column.name: len(column.values) for column in made}
    try:
        elsewhere = _lasting(kept(widths, _batches(table), memory), table.rows)
    except NoRoomError as problem:
        note = f"all rows are held, more than memory allows, since no copy of their combinations can be kept: {problem}"
        return replace(table, notes=(*table.notes, note))
    given = ("origin", "domain", "unnamed", "incomplete", "dropped", "allowed", "notes")
    told: Any = {name: getattr(table, name) for name in given}
    return LargeTable(columns=tuple(made), records=0, elsewhere=elsewhere, memory=memory, **told)


def _has_more(table: Table, room: int) -> bool:
    """Whether a table has more distinct rows than that."""
    if table.records <= room:
        return False
    tally = Tally(len(table.columns))
    every = [np.arange(len(column.values)) for column in table.columns]
    for some in steps(table.records, 1, _AT_ONCE):
        tally.add([(c.codes[some].astype(np.int32), own) for c, own in zip(table.columns, every, strict=True)])
        if tally.used > room:
            return True
    return False


def _by_value(column: Column, rows: Ints | None) -> Column:
    """A column without codes, which knows the rows of each value."""
    return replace(column, codes=column.codes[:0], value_rows=counted(column.codes, rows, len(column.values)))


def _batches(table: Table) -> Iterator[pa.RecordBatch]:
    """The distinct rows of a table, as codes with their numbers, some at a time; a row may be in several of them."""
    for some in steps(table.records, 1, _AT_ONCE):
        codes = [(column.codes[some], len(column.values)) for column in table.columns]
        number, first = combine(codes, len(codes[0][0]))
        rows = counted(number, None if table.multiplicity is None else table.multiplicity[some], len(first))
        own = {c.name: pa.array(each[first]) for c, (each, _) in zip(table.columns, codes, strict=True)}
        yield pa.RecordBatch.from_pydict(own | {ROWS: pa.array(rows)})
