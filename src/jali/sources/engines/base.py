"""The door to engines: they count distinct combinations, and people; nothing else of a table comes to Python."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from jali.core.arrays import Ints, combine, counted, narrowed, owners, runs_of, starts
from jali.core.rows import Order, Rows
from jali.encoding.large import Cut, Sizes, TooManyError
from jali.errors import InputError

ROWS, PERSON, PROFILE, PEOPLE, GROUP = (
    f"{name} counted by jali" for name in ("rows", "person", "profile", "people", "group")
)
"""Names in what an engine answers. They are no names that a column has: see `require_free`."""


@dataclass(frozen=True, eq=False)
class Combinations:
    """What an engine counted: distinct combinations of values, and how many rows have each.

    Where somebody has several rows, a combination stands once for each person who has it. Persons are numbered here:
    no engine gives away who they are.
    """

    table: pa.Table  # (records, columns)
    rows: Ints  # (records,)
    person: Ints | None = None  # (records,) None where nobody has two rows, or persons were not asked for


@dataclass(frozen=True, eq=False)
class Recoding:
    """What takes the place of each value of a column: its node at a level of a hierarchy, say.

    The missing value stays missing, and so does a value that is none of these.
    """

    values: pa.Array  # (values,) each once, none missing
    nodes: Ints  # (values,)
    missing: int | None = None  # the node of the missing value, and of a value that is none of these


NO_RECODING: Mapping[str, Recoding] = MappingProxyType({})


class Engine(Protocol):
    """A table that stays where it is."""

    @property
    def header(self) -> list[str]:
        """The names of its columns, in their order."""

    def count(
        self, columns: Sequence[str], *, person: str | None = None, recoded: Mapping[str, Recoding] = NO_RECODING,
        within: Cut | None = None, most: int | None = None,
    ) -> Combinations:  # fmt: skip
        """The distinct combinations of some columns, those in `recoded` by their nodes, with their rows.

        With `person`, the column that says whose row it is, they are counted person by person. `within` divides rows
        into groups; the group of a combination is then its first column, called GROUP. TooManyError says that there are
        more than `most`, before they come here.
        """

    def sizes(
        self, columns: Sequence[str], *, recoded: Mapping[str, Recoding] = NO_RECODING, within: Cut | None = None
    ) -> Sizes:
        """How many of these combinations have how many rows, in each group."""

    def batches(self, columns: Sequence[str], recoded: Mapping[str, Recoding]) -> Iterator[pa.RecordBatch]:
        """The distinct combinations of recoded columns with their rows, the column ROWS: some at a time, unsorted."""


def require_free(columns: Sequence[str]) -> None:
    """Raise InputError where a column has a name that an engine uses in its answers."""
    for name in columns:
        if "counted by jali" in name.casefold():
            raise InputError(f'a column cannot be called "{name}": jali uses that name itself', do="rename it")


def quoted(name: str) -> str:
    """A name as SQL takes it.

    >>> quoted('a"b')
    '"a""b"'
    """
    if "\0" in name:
        raise InputError("a name in a database has no zero byte", do="rename it")
    return '"' + name.replace('"', '""') + '"'


# -- people -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Profiles:
    """People who are alike: the combinations that each of them has, and with how many rows; profile by profile."""

    table: pa.Table  # (entries, columns)
    rows: Ints  # (entries,) of one person
    size: Ints  # (profiles,) entries of each, one profile after the other
    people: Ints  # (profiles,)

    def each(self) -> Combinations:
        """The combinations of each person, one person after the other."""
        profile = owners(self.people)  # of each person
        size, place = runs_of(starts(self.size), profile)
        return Combinations(self.table.take(pa.array(place)), self.rows[place], owners(size))


def profiles_of(answer: pa.Table, columns: Sequence[str]) -> Profiles:
    """Profiles that an engine gives as lists of structures: c0, c1, … for the columns, and the number of rows."""
    lists = _whole(answer[PROFILE])
    entries = lists.flatten()
    fields = dict(zip([f"c{at}" for at in range(len(columns))], columns, strict=True))
    table = pa.table({name: entries.field(field) for field, name in fields.items()})
    size = np.asarray(pc.list_value_length(lists).cast(pa.int64()))
    return _in_order(Profiles(table, _ints(entries.field("n")), size, _ints(answer[PEOPLE])))


def profiles_in(places: pa.Table, columns: Sequence[str], answer: pa.Table) -> Profiles:
    """Profiles that an engine gives as texts, "17:1,23:2": the place of a combination and its number of rows.

    The places of the combinations stand beside them in a table of their own.
    """
    number = np.asarray(_ints(places[PROFILE]))
    row = np.zeros(int(number.max(initial=0)) + 1, dtype=np.int64)
    row[number] = np.arange(len(number))
    texts = pc.split_pattern(_whole(answer[PROFILE]), ",")
    pair = pc.split_pattern(texts.flatten(), ":")
    both = pair.flatten().cast(pa.int64()).to_numpy().reshape(-1, 2)
    size = np.asarray(pc.list_value_length(texts).cast(pa.int64()))
    table = places.select(list(columns)).take(pa.array(row[both[:, 0]]))
    return _in_order(Profiles(table, both[:, 1].copy(), size, _ints(answer[PEOPLE])))


def refuse_nobody(name: str, rows: int) -> None:
    """Raise InputError where rows are nobody's."""
    if rows:
        raise InputError(f'person column "{name}" is empty in {rows:,} rows', do="give every row a person")


# -- an order that does not depend on the threads of an engine ------------------------------------------------------


def in_order(
    answer: pa.Table, columns: Sequence[str], person: str | None = None, *, most: int | None = None
) -> Combinations:
    """The combinations of an answer, sorted by what they are; TooManyError where there are more than `most`."""
    if most is not None and answer.num_rows > most:
        raise TooManyError
    require_free([name for name in columns if name != GROUP])
    answer = _coded(answer, columns)
    place, _ = combine(_ranks(answer.select([*columns, *([] if person is None else [person])])), answer.num_rows)
    order = np.argsort(place, kind="stable")
    sorted_answer = answer.take(pa.array(order))
    persons = None
    if person is not None:
        persons = np.asarray(_whole(sorted_answer[person]).dictionary_encode().indices).astype(np.int64)
    return Combinations(sorted_answer.select(list(columns)), _ints(sorted_answer[ROWS]), persons)


def _coded(answer: pa.Table, columns: Sequence[str]) -> pa.Table:
    """The answer with the texts of these columns as dictionary codes, which take a fraction of the memory."""
    for at, field in enumerate(answer.schema):
        if field.name in columns and pa.types.is_string(field.type):
            answer = answer.set_column(at, field.name, answer.column(at).dictionary_encode())
    return answer


def _in_order(given: Profiles) -> Profiles:
    """Entries sorted within their profile, and profiles by their entries."""
    if len(given.rows) == 0:
        return given
    place, _ = combine(_ranks(given.table), len(given.rows))
    profile, start = owners(given.size), starts(given.size)
    entries = np.lexsort((given.rows, place, profile))
    keys = np.stack((place[entries], given.rows[entries]), axis=1).astype(">i8")
    texts = [keys[start[at] : start[at + 1]].tobytes() for at in range(len(given.size))]
    order = np.array(sorted(range(len(texts)), key=texts.__getitem__), dtype=np.int64)
    taken = entries[runs_of(start, order)[1]]
    return Profiles(given.table.take(pa.array(taken)), given.rows[taken], given.size[order], given.people[order])


def _ranks(table: pa.Table) -> list[tuple[NDArray[np.integer], int]]:
    """The rank of each value of each column, missing ones last; columns whose values have no order are left out."""
    found = []
    for column in table.columns:
        whole = _whole(column)
        try:
            coded = whole if pa.types.is_dictionary(whole.type) else whole.dictionary_encode()
            order = pc.array_sort_indices(coded.dictionary).to_numpy()
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid, pa.ArrowTypeError):
            continue
        rank = np.empty(len(order) + 1, dtype=np.int32)
        rank[order] = np.arange(len(order))
        rank[len(order)] = len(order)
        codes = coded.indices.cast(pa.int32()).fill_null(len(order)).to_numpy(zero_copy_only=False)
        found.append((narrowed(rank)[codes], len(rank)))
    return found


def _whole(column: pa.ChunkedArray) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        column = column.unify_dictionaries()
    whole = column.combine_chunks()
    return pa.concat_arrays(whole.chunks) if isinstance(whole, pa.ChunkedArray) else whole


def _ints(column: pa.ChunkedArray | pa.Array) -> Ints:
    return np.asarray(column.cast(pa.int64()).to_numpy(), dtype=np.int64)


def sizes_in(answer: pa.Table, within: Cut | None) -> Sizes:
    """The sizes of an answer, which has the columns GROUP, where rows are divided, ROWS and PEOPLE."""
    size = _ints(answer[ROWS])
    return Sizes(np.zeros(len(size), dtype=np.int64) if within is None else _ints(answer[GROUP]), size,
                 _ints(answer[PEOPLE]))  # fmt: skip


def rows_of(found: Combinations) -> Rows:
    """A table that was counted; where no row stands twice, in the order of what its rows say."""
    return Rows(found.table) if (found.rows == 1).all() else Rows(found.table, Order(found.rows))


def people_of(found: Combinations) -> int:
    """How many people there are."""
    return int(found.rows.sum()) if found.person is None else len(counted(found.person))
