"""What buckets and batches share: tables that only numbers tie together, held as distinct pairs of cell and number."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from jali.core.arrays import (
    AT_ONCE,
    Floats,
    Ints,
    Runs,
    combine,
    counted,
    narrowed,
    run_lengths,
    steps,
)
from jali.core.rows import NumbersOf, Order, Paired, Places, Rows, cells
from jali.encoding.table import Table
from jali.errors import InputError
from jali.estimates.conditions import BoxColumn
from jali.estimates.link_join import Hidden, Mass, Shown
from jali.principles.base import Principle
from jali.principles.counts import Counts
from jali.releases.base import Manifest, Release
from jali.releases.column import Published, shown_alike, whole_numbers

if TYPE_CHECKING:
    from jali.cover.cover import Cover


class Assignment(NamedTuple):
    """Where the rows of the original went: how many there are, and the bucket or batch of each, when asked for."""

    rows: int
    numbers: Callable[[], Ints]

    @classmethod
    def of_members(
        cls, table: Table, record: NDArray[np.int32], in_group: NDArray[np.integer] | Runs,
        member: NDArray[np.int32] | None,
    ) -> Assignment:  # fmt: skip
        """From the distinct row of each record of a table, and the group of each distinct row, or of each member.

        It keeps numbers and no values; who of equal rows is where does not matter.
        """
        multiplicity = table.multiplicity

        def numbers() -> Ints:
            rows = record if multiplicity is None else np.repeat(record, multiplicity)
            group = in_group.each if isinstance(in_group, Runs) else in_group
            if member is None:
                return group[rows].astype(np.int64)
            result = np.empty(len(rows), dtype=np.int64)
            result[np.argsort(rows, kind="stable")] = group[np.argsort(member, kind="stable")]
            return result

        return cls(table.rows, numbers)


def entries_of(contents: Any, names: tuple[str, str]) -> Paired:
    """The table of buckets or batches: their numbers, the sensitive values of each, and how many people have them."""
    number, count = names
    hidden, people, link = contents.hidden, contents.people, contents.entries.each
    keys = [(column.held, len(column.labels)) for column in hidden]
    entry, first = combine([*keys, (people, int(people.max()) + 1)], len(people))
    values = {column.name: cells(column.texts, column.held[first]) for column in hidden}
    values[count] = pa.array(people[first].astype(np.int64))
    of_entry: NumbersOf = lambda some: pa.array(link[some].astype(np.int64) + 1)  # noqa: E731
    return Paired(pa.table(values), None, narrowed(entry), {number: of_entry}, leading=True)


def totals_of(contents: Any) -> list[Ints]:
    """The sizes of buckets or batches, largest first, and the people of each sensitive value."""
    link, people = contents.entries.each, contents.people
    judged = ((c.judged[0], c.judged[1], c.held) for c in contents.hidden if c.judged is not None)
    own = [counted(narrowed(of_node)[held], people, len(values)) for values, of_node, held in judged]
    return [np.sort(counted(link, people))[::-1], *own]


def mass_of(
    shown: Sequence[Published], pairs: Pairs, contents: Any, cover_of: Callable[[Published], Cover]
) -> Mass:  # fmt: skip
    """The mass of exact cells of shown quasi-identifiers and sensitive columns, where cells cover what `cover_of` says.

    It says what an estimate of the two tables does, and holds neither boxes nor pairs of theirs with values.
    """
    quasi = [column for column in shown if column.role == "quasi"]
    cell, first = combine([(column.held, len(column.labels)) for column in quasi], len(quasi[0].held))
    columns = [BoxColumn(c.name, c.kind, c.role, cover_of(c), c.held[first]) for c in quasi]
    hidden = [BoxColumn(c.name, c.kind, c.role, c.cover, c.held) for c in contents.hidden]
    own = pairs.cell if np.array_equal(cell, np.arange(len(cell))) else cell[pairs.cell]
    told = Shown(columns, own, pairs.link, pairs.numbers)
    return Mass.of(told, Hidden(hidden, contents.entries.each, contents.people), contents.weight)


class Linked(Release):
    """Tables that share nothing but numbers, which tie people to counts of sensitive values: buckets, or batches."""

    contents: Any  # each kind has its own
    _keys: Callable[[], pa.Table] | None = None  # the batches of the original's combinations, for the holder

    def __init__(self, contents: Any, manifest: Manifest, *, origin: str = "arrow") -> None:
        self.contents, self.manifest, self.origin = contents, manifest, origin
        self.search: Mapping[str, int] = {}
        self._assigned: Assignment | None = None  # for the holder

    @property
    def weight_name(self) -> str | None:
        """The published column of weights, if there is one."""
        name: str | None = self.contents.names[2]
        return name

    @property
    def individuals(self) -> pa.Table:
        """The published quasi-identifiers of each individual, in published order."""
        shown, *_ = self.tables.values()
        return shown.select([column.name for column in self.of_role("quasi")])

    def assignment(self, table: Table) -> Ints:
        """The bucket or batch of each row of the original, counted from 0: for its holder.

        It is never saved, but in the private file of an ANGEL release.
        """
        if self._assigned is None or not isinstance(table, Table) or self._assigned.rows != table.rows:
            raise InputError(
                "only a release that was just made from this table knows where its rows went",
                do="make it again: what is saved cannot be traced back",
            )
        return self._assigned.numbers()

    def __getstate__(self) -> dict[str, Any]:
        """A pickled release does not know where the original's rows went; its tables are made again."""
        kept = {name: value for name, value in self.__dict__.items() if name != "tables"}
        return kept | {"_keys": None, "_assigned": None}


def counts_of(hidden: Sequence[Published], group: NDArray[np.integer], people: NDArray[np.integer]) -> Counts:
    """People by group and value, from the sensitive columns of entries that are sorted by group."""
    judged = [(c.judged[0], c.judged[1][c.held]) for c in hidden if c.judged is not None]
    value, first = combine([(codes, len(values)) for values, codes in judged], len(people))
    joint = np.stack([codes[first] for _, codes in judged], axis=1).astype(np.int64)
    own = tuple(values for values, _ in judged)
    many, of = people.astype(np.int64, copy=False), group.astype(np.int64, copy=False)
    return Counts(int(group[-1]) + 1, of, value.astype(np.int64), many, own, joint)


def counts_by_part(
    hidden: Sequence[Published], group: NDArray[np.integer], people: NDArray[np.integer]
) -> Iterator[Counts]:
    """The same, some groups at a time: each part knows the whole that it is a part of."""
    value, whole = values_of(hidden, people)
    own, joint = whole.sensitive, whole.joint
    for some in steps(int(group[-1]) + 1, 1, AT_ONCE // 4):
        begin, end = group.searchsorted(np.array([some.start, some.stop], dtype=group.dtype))  # else it is widened
        here = slice(int(begin), int(end))
        at = group[here].astype(np.int64) - some.start
        n = people[here].astype(np.int64)
        yield Counts(some.stop - some.start, at, value[here].astype(np.int64), n, own, joint, None, whole)


def values_of(hidden: Sequence[Published], people: NDArray[np.integer]) -> tuple[NDArray[np.integer], Counts]:
    """The joint value of each entry as it is judged, in the narrowest type, and everybody as one group."""
    judged = [(c.judged[0], narrowed(c.judged[1])[c.held]) for c in hidden if c.judged is not None]
    used = [(codes, len(values)) for values, codes in judged]
    number, first = combine(used, len(people))
    joint = np.stack([codes[first] for codes, _ in used], axis=1).astype(np.int64)
    value, every, zero = narrowed(number), np.arange(len(first)), np.zeros(len(first), dtype=np.int64)
    own = tuple(column for column, _ in judged)
    return value, Counts(1, zero, every, counted(value, people, len(first)), own, joint)


def broken_by(
    principles: Sequence[Principle],
    hidden: Sequence[Published],
    group: NDArray[np.integer],
    people: NDArray[np.integer],
) -> list[Principle]:
    """The promises that some group does not keep; those about one group at a time are judged part by part."""
    alone = [p for p in principles if p.scope == "group"]
    counts = [counts_of(hidden, group, people)] if [p for p in principles if p.scope != "group"] else []
    broken = {p for counts in counts for p in principles if p.scope != "group" and not bool(p.holds(counts).all())}
    for part in counts_by_part(hidden, group, people) if alone else ():
        broken |= {p for p in alone if p not in broken and not bool(p.holds(part).all())}
    return [p for p in principles if p in broken]


def worst_of(
    principle: Principle, hidden: Sequence[Published], group: NDArray[np.integer], people: NDArray[np.integer]
) -> float:
    """The weakest level of any group, where groups are judged part by part."""
    levels = [principle.worst(part) for part in counts_by_part(hidden, group, people)]
    known = [level for level in levels if not math.isnan(level)]
    return (min if principle.better == "higher" else max)(known, default=math.nan)


def require_people(people: NDArray[np.integer], rows: int) -> None:
    """Raise ValueError where an entry has no people, or more than there are: those might add up to few, in 64 bits."""
    if bool((people < 1).any()) or int(people.max(initial=0)) > rows:
        raise ValueError("an entry has no people, or more than there are")


def require_once(what: str, hidden: Sequence[Published], group: NDArray[np.integer]) -> None:
    """Raise ValueError where entries, sorted by group, name a value of a group twice."""
    value, first = combine([(c.held, len(c.labels)) for c in hidden], len(group))
    for some in steps(int(group.max(initial=0)) + 1, 1, AT_ONCE // 4):
        begin, end = group.searchsorted(np.array([some.start, some.stop], dtype=group.dtype))
        key = group[begin:end].astype(np.int64) * len(first) + value[begin:end]
        key.sort()
        if bool((key[1:] == key[:-1]).any()):
            raise ValueError(f"a {what} names a value twice")


def weight_of(what: str, shown: Floats, group: NDArray[np.integer]) -> Floats:
    """The weight of each group, which all rows of it must show; a ValueError where they do not."""
    weight = np.zeros(int(group.max(initial=-1)) + 1)
    weight[group] = shown
    if not np.array_equal(weight[group], shown):
        raise ValueError(f"a {what} shows two weights")
    return weight


class Pairs(NamedTuple):
    """The distinct rows of a table whose rows show cells and a number that links them; sorted by number, then cells."""

    cell: NDArray[np.integer]  # (pairs,)
    links: Runs  # the number of each pair, counted from 0
    order: Order  # how many rows each pair stands for, and the order of the rows

    @property
    def link(self) -> NDArray[np.int32]:
        """The number of each pair: (pairs,)."""
        return self.links.each

    @property
    def numbers(self) -> NDArray[np.integer]:
        """How many rows each pair stands for: (pairs,)."""
        return self.order.numbers


def paired(
    columns: Sequence[Published], link: NDArray[np.integer], *, member: NDArray[np.integer] | None = None,
    numbers: NDArray[np.integer] | None = None, of: Places | None = None, given: bool = False,
) -> tuple[tuple[Published, ...], Pairs]:  # fmt: skip
    """Records that show cells and have a number, reduced to distinct cells and to distinct pairs of both.

    `columns` hold what each member shows, and `member` is that of each record, by default the record itself. A record
    stands for one row or for so many `numbers`. The order of the rows is drawn when somebody asks for it, unless `of`
    says the record of each row, or the records are the rows as they were `given`.
    """
    cell_of, first = shown_alike(columns, [column.held for column in columns])
    width = len(first)
    pairs = pairs_of(cell_of, width, link, member=member, numbers=numbers, of=of, given=given)
    through = pairs.order.through(pairs.cell, width)
    return tuple(replace(column, held=column.held[first], order=through) for column in columns), pairs


def sized(read: Members) -> Pairs:
    """How many rows each number has, where nobody asks which cells have which number: one pair of each number."""
    if read.numbers is None:
        raise ValueError("the table has no numbers")
    every = counted(read.numbers, read.how.get("numbers"), 1)
    if every[0]:
        raise ValueError("the numbers do not begin with 1")
    many = narrowed(every[1:])
    return Pairs(np.zeros(len(many), dtype=np.uint8), Runs(np.ones(len(many), dtype=np.uint8)), Order(many))


def pairs_of(
    cell: NDArray[np.integer], cells: int, link: NDArray[np.integer], *, member: NDArray[np.integer] | None = None,
    numbers: NDArray[np.integer] | None = None, of: Places | None = None, given: bool = False,
) -> Pairs:  # fmt: skip
    """The distinct pairs of records that have a cell and a number; see `paired`."""

    def keys(some: slice | Ints = slice(None)) -> Ints:
        key = link[some].astype(np.int64)
        key *= cells
        key += cell[some] if member is None else cell[member[some]]
        return key

    if numbers is None and of is None:
        own, several, many = _counted_pairs(keys, cells, link)
        order = Order(many, partial(_places, own, several, cells, keys) if given else None)
        return Pairs(own, Runs.of(several), order)
    key = keys()
    number, example = combine([(key, int(key.max()) + 1)], len(key))
    known = key[example]
    order = Order(counted(number, numbers, len(known)), None if of is None else number[of])
    return Pairs(narrowed(known % cells), Runs.of(narrowed(known // cells)), order)


def _counted_pairs(
    keys: Callable[[slice | Ints], Ints], cells: int, link: NDArray[np.integer]
) -> tuple[NDArray[np.integer], NDArray[np.integer], NDArray[np.integer]]:
    """The cell and the link of each distinct pair, sorted by link, then cell, and how many records are that pair.

    Many records are gone through some links at a time: to sort all of them at once takes a key for each.
    """
    size = [len(link), len(link), len(link)]
    own, several, many = (np.empty(n, dtype=kind) for n, kind in zip(size, (np.int32, np.int32, np.uint8), strict=True))
    at = 0
    for some in _by_link(link):
        known, often = run_lengths(keys(some))
        here = slice(at, at + len(known))
        np.remainder(known, cells, out=own[here], casting="unsafe")
        np.floor_divide(known, cells, out=several[here], casting="unsafe")
        many = many if np.can_cast(often.dtype, many.dtype) else many.astype(often.dtype)
        many[here] = often
        at = here.stop
    return narrowed(own[:at]), several[:at], many[:at]


def _by_link(link: NDArray[np.integer]) -> Iterator[slice | Ints]:
    """Parts of the records, by link: slices where they are sorted by link, else which records are in each part."""
    at = [*range(AT_ONCE, len(link), AT_ONCE)]
    if not at:
        yield slice(0, len(link))
    elif any(bool((link[s] > link[s.start + 1 : s.stop + 1]).any()) for s in steps(len(link) - 1, 1)):
        low, high = int(link.min()), int(link.max()) + 1
        for some in steps(high - low, 1, max(1, (high - low) // len(at))):
            yield np.flatnonzero((link >= low + some.start) & (link < low + some.stop))
    else:
        cuts = [0, *(int(link.searchsorted(link[place])) for place in at), len(link)]
        yield from (slice(a, b) for a, b in pairwise(cuts) if a < b)


def _places(
    own: NDArray[np.integer], several: NDArray[np.integer], cells: int, keys: Callable[[], Ints]
) -> Places:  # fmt: skip
    known = several.astype(np.int64) * cells + own
    return np.searchsorted(known, keys()).astype(np.int32)


class Members(NamedTuple):
    """A published table as it was read: what members show, and which of them and which number each record has."""

    shown: pa.Table
    numbers: NDArray[np.integer] | None  # counted from 1
    how: dict[str, Any]  # for `paired`

    @classmethod
    def of(cls, rows: Rows, number: str, *, as_rows: bool = False) -> Members:
        """From the rows of a file; the column of that name, if there is one, has the numbers, which begin with 1.

        With `as_rows` records are the rows in their order. A ValueError for a number beyond those that there can be.
        """
        if isinstance(rows, Paired) and number in rows.apart:
            numbers = _within(rows.apart[number](slice(None)).to_numpy())
            return cls(rows.distinct, numbers, {"member": rows.cell, "given": rows.in_order})
        order = None if as_rows or isinstance(rows, Paired) else rows.order
        shown = rows.coded() if order is None else rows.distinct
        own = _within(whole_numbers(shown[number])) if number in shown.column_names else None
        known: dict[str, Any] = {"given": True}
        if order is not None:
            known = {"numbers": order.numbers, "of": order.of if order.known else None}
        return cls(shown, own, known)

    @property
    def link(self) -> NDArray[np.integer]:
        """The number of each record, counted from 0; a ValueError where there are none."""
        if self.numbers is None:
            raise ValueError("the table has no numbers")
        return self.numbers - 1

    def entries(
        self, hidden: Sequence[Published], count: str
    ) -> tuple[tuple[Published, ...], Runs, NDArray[np.integer]]:  # fmt: skip
        """Of each record its sensitive values, its number, and how many people it stands for, by the column `count`."""
        people = whole_numbers(self.shown[count])
        if self.numbers is None or bool((people < 1).any()):
            raise ValueError("an entry has no number, or no people")
        values = tuple(column.with_codes(self.each(narrowed(column.held))) for column in hidden)
        return values, Runs.of(self.numbers, begin=1), self.each(narrowed(people))

    @property
    def in_order(self) -> bool:
        """Whether somebody may ask for the rows; else only promises are judged."""
        return self.how.get("given") is not False

    def each(self, of_member: NDArray[Any]) -> NDArray[Any]:
        """Of each record what its member has."""
        member = self.how.get("member")
        return of_member if member is None else of_member[member]


def _within(numbers: NDArray[np.integer]) -> NDArray[np.integer]:
    """The numbers of records; a ValueError where one is none of theirs, before a table of all numbers is made.

    Each number has a record, so that none is larger than there are records.
    """
    if len(numbers) and not 1 <= int(numbers.min()) <= int(numbers.max()) <= len(numbers):
        raise ValueError("a number is none of those that there can be")
    return numbers
