"""Tables as distinct rows with their numbers, and an order that is drawn from the numbers."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from jali.core.arrays import Ints, combine, counted, narrowed, steps

Places = NDArray[np.int32]
"""The distinct row of each row: (rows,)."""

CHUNK = 1 << 18
"""Rows that are shuffled together."""
RESTING = 1 << 24
"""Rows beyond which an order is drawn again rather than kept."""
_drawing = threading.RLock()  # an order may follow from another


# -- the order ----------------------------------------------------------------------------------------------------


def fresh_random() -> np.random.Generator:
    """A generator seeded by the system's own randomness: nobody can repeat what it draws."""
    return np.random.Generator(np.random.PCG64DXSM(secrets.randbits(256)))


def fresh_order(rows: int) -> NDArray[np.int64]:
    """A random order from the system's own randomness: nobody can repeat it, so the order gives nothing away.

    Rows are sorted by random digits. Each number that is sorted has the digits above and its row below, so that an
    order takes eight bytes a row. Rows with the same digits, which are very few, are put into a random order in turn.
    """
    key = np.empty(rows, dtype=np.uint64)
    row = np.uint64((1 << max(rows - 1, 0).bit_length()) - 1)
    for some in steps(rows, 1, CHUNK):
        key[some] = np.frombuffer(secrets.token_bytes(8 * (some.stop - some.start)), dtype=np.uint64) & ~row
        key[some] |= np.arange(some.start, some.stop, dtype=np.uint64)
    key.sort()
    tied = [np.flatnonzero((key[s] ^ key[s.start + 1 : s.stop + 1]) <= row) + s.start for s in steps(rows - 1, 1)]
    key &= row
    order = key.view(np.int64)
    for first, last in _stretches(np.concatenate(tied) if tied else np.zeros(0, dtype=np.int64)):
        order[first : last + 1] = order[first : last + 1][fresh_order(last + 1 - first)]
    return order


def _stretches(tied: Ints) -> list[tuple[int, int]]:
    """The first and the last place of each run of rows in which every one but the last is tied with the next."""
    cut = np.flatnonzero(np.diff(tied) > 1)
    first, last = np.append(tied[:1], tied[cut + 1]), np.append(tied[cut], tied[-1:]) + 1
    return list(zip(first.tolist(), last.tolist(), strict=True))


def open_order(rows: int) -> NDArray[np.int64]:
    """A random order by a fast generator, where a proof lets the attacker know it, as the order of ties in halves."""
    return np.random.default_rng(secrets.randbits(256)).permutation(rows)


def drawn(numbers: Ints, random: np.random.Generator) -> Places:
    """The rows that distinct rows with these numbers stand for, in a uniformly random order.

    Each row is in each of some chunks with the same probability, by itself, and a chunk is shuffled: that is sorting by
    independent uniform numbers whose first digit is the chunk. How many of a distinct row are in a chunk is binomial.
    """
    if bool((numbers == 1).all()):
        of = np.arange(len(numbers), dtype=np.int32)
        random.shuffle(of)
        return of
    of, left = np.empty(int(numbers.sum()), dtype=np.int32), numbers
    chunks = max(1, -(-len(of) // CHUNK))
    chunks = chunks if chunks * len(numbers) <= len(of) else 1  # else drawing numbers takes longer than one shuffle
    at = 0
    for more in range(chunks, 0, -1):
        here = left if more == 1 else random.binomial(left, 1 / more)
        end = at + int(here.sum())
        _shuffled(here, random, of[at:end])
        at, left = end, left if more == 1 else left - here
    return of


def _shuffled(numbers: Ints, random: np.random.Generator, of: Places) -> None:
    """Put the rows that distinct rows with these numbers stand for into `of`, in a random order."""
    few = len(of) <= 2 * CHUNK  # then as eight bytes each, which numpy moves twice as fast as any other number of bytes
    mixed, at = np.empty(len(of), dtype=np.int64) if few else of, 0
    for some in steps(len(numbers), 1):
        own = np.repeat(np.arange(some.start, some.stop), numbers[some])
        mixed[at : at + len(own)] = own
        at += len(own)
    random.shuffle(mixed)
    of[:] = mixed


class Order:
    """The order of the rows that distinct rows stand for: as given, or drawn once, when it is first asked for."""

    def __init__(self, numbers: NDArray[np.integer], of: Places | Callable[[], Places] | None = None) -> None:
        """`of` is the distinct row of each row, or computes it where that takes long and nobody may ask."""
        self.numbers = cast(Ints, numbers)  # narrower where there are many
        self._of, self._made = (None, of) if callable(of) else (of, self._drawn)
        self._random: np.random.Generator | None = None

    @cached_property
    def rows(self) -> int:
        """How many rows there are."""
        total: int = self.numbers.sum().item()
        return total

    @property
    def of(self) -> Places:
        """The distinct row of each row: (rows,)."""
        if self._of is None:
            with _drawing:  # two threads that ask at once get the same order: else cells of two rows would mix
                self._of = self._made() if self._of is None else self._of
        return self._of

    @property
    def known(self) -> bool:
        """Whether there is an order already: one that was read, or has been drawn."""
        return self._of is not None

    def _drawn(self) -> Places:
        """The order, the same at each call."""
        self._random = self._random or fresh_random()
        state = self._random.bit_generator.state
        of = drawn(self.numbers, self._random)
        self._random.bit_generator.state = state
        return of

    def rest(self) -> None:
        """Let go of an order of many rows that was drawn here; when it is asked for again, the same one is drawn."""
        if self._random is not None and self.rows > RESTING:
            self._of = None

    def through(self, place: NDArray[np.integer], width: int) -> Order:
        """The order of what the distinct rows are parts of: `place` is the place of each among that."""
        return Order(counted(place, self.numbers, width), lambda: place[self.of].astype(np.int32, copy=False))

    def __getstate__(self) -> dict[str, Any]:
        """A copy in another process has the same order."""
        return {"numbers": self.numbers, "of": self.of}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]


# -- tables -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Rows:
    """A table as its distinct rows, and their order; without one they are the rows themselves."""

    distinct: pa.Table
    order: Order | None = None

    @property
    def names(self) -> list[str]:
        """The names of all columns."""
        return list(self.distinct.column_names)

    @property
    def held(self) -> int:
        """How many distinct rows are held."""
        return int(self.distinct.num_rows)

    @property
    def count(self) -> int:
        """How many rows the table has."""
        return self.held if self.order is None else self.order.rows

    @property
    def of(self) -> Places:
        """The distinct row of each row."""
        return np.arange(self.count, dtype=np.int32) if self.order is None else self.order.of

    @property
    def numbers(self) -> Ints:
        """How many rows each distinct row stands for."""
        return np.ones(self.count, dtype=np.int64) if self.order is None else self.order.numbers

    def _taken(self, rows: NDArray[np.integer] | slice) -> pa.Table:
        """Some of the distinct rows."""
        if isinstance(rows, slice):
            return self.distinct.slice(rows.start, rows.stop - rows.start)
        return self.distinct.take(pa.array(rows))

    def plain(self) -> pa.Table:
        """The table row by row, without dictionaries."""
        table = self.coded()
        return pa.table([_plain(flat(column)) for column in table.columns], names=table.column_names)

    def coded(self) -> pa.Table:
        """The table row by row; columns that are dictionaries still are."""
        return self._taken(slice(0, self.held) if self.order is None else self.order.of)

    def first(self, most: int) -> pa.Table:
        """The first rows of the table; columns that are dictionaries still are."""
        some = slice(0, min(most, self.count))
        return self._taken(some if self.order is None else self.order.of[some])

    def parts(self, at_once: int, of: slice | None = None) -> Iterator[pa.Table]:
        """The table in its order, or a slice of it, some rows at a time."""
        begin, end = (0, self.count) if of is None else (of.start, of.stop)
        for part in steps(end - begin, 1, at_once):
            some = slice(begin + part.start, begin + part.stop)
            yield self._taken(some if self.order is None else self.order.of[some])

    def whole(self) -> Rows:
        """The table with every distinct row as a row of one Arrow table, as engines take it."""
        return Rows(self._taken(slice(0, self.held)), self.order)

    @property
    def schema(self) -> pa.Schema:
        """Of the table, its dictionaries included."""
        return self._taken(slice(0, 0)).schema


@dataclass(frozen=True, eq=False)
class Paired(Rows):
    """A table whose distinct rows are pairs of cells, of which there are few, and of numbers, of which there are many.

    `distinct` are the cells; the order is that of the pairs, which without one are the rows themselves.
    """

    cell: NDArray[np.integer] = field(default_factory=lambda: np.zeros(0, dtype=np.int32))  # (pairs,)
    apart: Mapping[str, NumbersOf] = field(default_factory=dict)
    leading: bool = False  # whether the numbers are the first columns, not the last
    in_order: bool = True  # whether somebody will ask for the order of pairs that are the rows

    @property
    def names(self) -> list[str]:
        """The names of all columns."""
        own = self.distinct.column_names
        return [*self.apart, *own] if self.leading else [*own, *self.apart]

    @property
    def held(self) -> int:
        """How many pairs there are."""
        return len(self.cell)

    def _taken(self, pairs: NDArray[np.integer] | slice) -> pa.Table:
        table = self.distinct.take(pa.array(self.cell[pairs]))
        for name, numbers in self.apart.items():
            table = table.append_column(name, numbers(pairs))
        return table.select(self.names) if self.leading else table


NumbersOf = Callable[[NDArray[np.integer] | slice], pa.Array]
"""The numbers of some pairs."""


def ordered(distinct: pa.Table, of: Places) -> Rows:
    """The table whose rows are these distinct rows."""
    return Rows(distinct, Order(counted(of, length=distinct.num_rows), of))


def flat(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array."""
    if column.num_chunks == 1:
        return column.chunk(0)
    if pa.types.is_dictionary(column.type):
        column = column.unify_dictionaries()
    whole = column.combine_chunks()
    return pa.concat_arrays(whole.chunks) if isinstance(whole, pa.ChunkedArray) else whole


def _plain(column: pa.Array) -> pa.Array:
    return column.dictionary.take(column.indices) if pa.types.is_dictionary(column.type) else column


def cells(labels: pa.Array, codes: NDArray[np.integer]) -> pa.DictionaryArray:
    """What stands in each row, as a dictionary; a missing value is a missing index, as files have it."""
    if labels.null_count == 0:
        return pa.DictionaryArray.from_arrays(pa.array(codes), labels)
    filled = labels.is_valid().to_numpy(zero_copy_only=False)
    place = (np.cumsum(filled) - 1).astype(np.int32)
    return pa.DictionaryArray.from_arrays(pa.array(place[codes], mask=~filled[codes]), labels.drop_null())


# -- columns ------------------------------------------------------------------------------------------------------


def distinct_rows(parts: Iterable[pa.Table], *, in_order: bool = True) -> Rows:
    """The distinct rows of a table that comes part by part; `in_order`: with the order in which they came."""

    def of_part(part: pa.Table) -> Rows:
        distinct, of = _distinct(part)
        return ordered(distinct, of) if in_order else Rows(distinct, Order(counted(of, length=distinct.num_rows)))

    return together([of_part(part) for part in parts], in_order=in_order)


def folded(parts: Iterable[Rows]) -> Rows:
    """How many there are of each distinct row of tables that come one after the other; no more is held than needed."""
    held: list[Rows] = []
    for part in parts:
        held.append(distinct_rows([part.distinct], in_order=False) if part.order is None else part)
        if len(held) > 1 and sum(rows.held for rows in held[1:]) > held[0].held:
            held = [together(held, in_order=False)]
    return together(held, in_order=False)


def tallied(parts: Iterable[Rows], name: str, most: int) -> Rows:
    """How many rows have each number of a column, from tables in parts: counted by place, not by slower hashing.

    A ValueError for a number that is missing, or not between 0 and `most`.
    """
    total = np.zeros(0, dtype=np.int32)
    for part in parts:
        column = flat(part.distinct[name])
        numbers = known_or_zero(column)
        largest = int(numbers.max(initial=0))
        if column.null_count or int(numbers.min(initial=0)) < 0 or largest > most:
            raise ValueError(f"{name} has a number that is none of those that there can be")
        if largest >= len(total):
            total = np.append(total, np.zeros(largest + 1 - len(total), dtype=np.int32))
        own = np.int32(1) if part.order is None else part.numbers.astype(np.int32)
        np.add.at(total, numbers, own)  # of one type: with another it takes twenty times as long
    known = np.flatnonzero(total)
    return Rows(pa.table({name: pa.array(known)}), Order(total[known]))


def pairs_of(table: pa.Table, apart: Sequence[str], *, in_order: bool = True) -> Rows:
    """A table as its distinct cells, and row by row the numbers of some columns; those must be there and whole.

    Without `in_order` the order of the rows means nothing.
    """
    distinct, cell = _distinct(table.drop_columns(list(apart)))
    if any(table[name].null_count for name in apart):
        return Rows(table)  # which is then found to be wrong
    numbers = {name: _numbers(_narrow(table[name].to_numpy())) for name in apart}
    return Paired(distinct, None, narrowed(cell), numbers, in_order=in_order)


def _narrow(numbers: NDArray[np.integer]) -> NDArray[np.integer]:
    fits = len(numbers) == 0 or (int(numbers.min()) >= 0 and int(numbers.max()) < 2**31)
    return numbers.astype(np.int32, copy=False) if fits else numbers.astype(np.int64, copy=False)


def _numbers(numbers: NDArray[np.integer]) -> NumbersOf:
    return lambda some: pa.array(numbers[some])


def together(parts: list[Rows], *, in_order: bool = True) -> Rows:
    """The table that several make one after the other; else only how many there are of each distinct row.

    Long parts are taken out of the list as they are copied, so that nothing is held twice.
    """
    if len(parts) == 1:
        return parts[0]
    paired = [part for part in parts if isinstance(part, Paired)]
    if 0 < len(paired) < len(parts):
        return together([Rows(part.coded()) for part in parts])
    whole, number = _distinct(pa.concat_tables([part.distinct for part in parts]))
    own = np.split(number, np.cumsum([part.distinct.num_rows for part in parts])[:-1])
    if paired:
        del paired
        return _pairs_together(whole, [narrowed(numbers) for numbers in own], parts)
    if not in_order:
        total = np.zeros(whole.num_rows, dtype=np.int64)
        for number, part in zip(own, parts, strict=True):
            total += counted(number, part.numbers, whole.num_rows)
        return Rows(whole, Order(total))
    return ordered(whole, np.concatenate([numbers[part.of] for numbers, part in zip(own, parts, strict=True)]))


def _pairs_together(whole: pa.Table, own: Sequence[NDArray[np.integer]], parts: list[Rows]) -> Paired:
    """Pairs of several parts, whose cells have `own` numbers among all; the parts are taken out of their list."""
    rows, names = sum(part.held for part in parts), [*cast(Paired, parts[0]).apart]
    cell = np.empty(rows, dtype=np.result_type(*own))
    apart = {name: np.empty(rows, dtype=np.int32) for name in names}
    in_order, at = cast(Paired, parts[0]).in_order, 0
    for numbers in own:
        part = cast(Paired, parts.pop(0))
        here = slice(at, at + part.held)
        cell[here] = numbers[part.cell]
        for name in names:
            some = part.apart[name](slice(None)).to_numpy()
            apart[name] = apart[name].astype(np.result_type(apart[name], some), copy=False)
            apart[name][here] = some
        at = here.stop
    return Paired(whole, None, cell, {name: _numbers(each) for name, each in apart.items()}, in_order=in_order)


def _distinct(table: pa.Table) -> tuple[pa.Table, Places]:
    """The distinct rows of a table, and which of them each row is; columns that were dictionaries still are."""
    coded = [_coded(column) for column in table.columns]
    number, first = combine([(codes, len(labels)) for labels, codes in coded], table.num_rows)
    columns = []
    for (labels, codes), column in zip(coded, table.columns, strict=True):
        own = codes[first]
        columns.append(cells(labels, own) if pa.types.is_dictionary(column.type) else labels.take(pa.array(own)))
    return pa.table(columns, names=table.column_names), number


def _coded(column: pa.ChunkedArray) -> tuple[pa.Array, NDArray[np.integer]]:
    """The distinct values of a column, a missing one last, and the code of each row."""
    whole = flat(column)
    coded = whole if pa.types.is_dictionary(whole.type) else whole.dictionary_encode()
    labels, indices = coded.dictionary, coded.indices
    if indices.null_count:
        labels = pa.concat_arrays([labels, pa.nulls(1, labels.type)])
        indices = indices.cast(pa.int32()).fill_null(len(labels) - 1)
    return labels, indices.to_numpy(zero_copy_only=False)


def known_or_zero(numbers: pa.Array) -> NDArray[np.integer]:
    """Numbers, with 0 for a missing one."""
    filled = numbers.fill_null(0) if numbers.null_count else numbers
    known: NDArray[np.integer] = filled.to_numpy(zero_copy_only=False)
    return known
