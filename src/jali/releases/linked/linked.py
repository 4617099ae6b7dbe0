"""What buckets and batches share: tables that only numbers tie together, held as distinct pairs of cell and number."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

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
from jali.core.rows import Order, Paired, Places, Rows
from jali.encoding.table import Table
from jali.errors import InputError
from jali.principles.base import Principle
from jali.principles.counts import Counts
from jali.releases.base import Manifest, Release
from jali.releases.column import Published, shown_alike, whole_numbers


class Assignment(NamedTuple):
    """Where the rows of the original went: how many there are, and the bucket or batch of each, when asked for."""

    rows: int
    numbers: Callable[[], Ints]


class Linked(Release):
    """Tables that share nothing but numbers, which tie people to counts of sensitive values: buckets, or batches."""

    contents: Any  # each kind has its own
    _keys: pa.Table | None = None  # the batches of the original's combinations, for the holder

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
        kept = {name: value for name, value in self.__dict__.items() if name not in ("tables", "counted_tables")}
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
    judged = [(c.judged[0], narrowed(c.judged[1])) for c in hidden if c.judged is not None]
    used = [(of_node[c.held], len(v)) for c, (v, of_node) in zip(hidden, judged, strict=True)]
    number, first = combine(used, len(people))
    joint = np.stack([codes[first] for codes, _ in used], axis=1).astype(np.int64)
    value = narrowed(number)
    del used, number  # as long as the entries are
    values, zero = np.arange(len(first)), np.zeros(len(first), dtype=np.int64)
    own = tuple(column for column, _ in judged)
    whole = Counts(1, zero, values, counted(value, people, len(first)), own, joint)
    for some in steps(int(group[-1]) + 1, 1, AT_ONCE // 4):
        begin, end = group.searchsorted(np.array([some.start, some.stop], dtype=group.dtype))  # else it is widened
        here = slice(int(begin), int(end))
        at = group[here].astype(np.int64) - some.start
        n = people[here].astype(np.int64)
        yield Counts(some.stop - some.start, at, value[here].astype(np.int64), n, own, joint, None, whole)


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


def require_once(what: str, hidden: Sequence[Published], group: NDArray[np.integer]) -> None:
    """Raise ValueError where entries, sorted by group, name a value of a group twice."""
    value, first = combine([(c.held, len(c.labels)) for c in hidden], len(group))
    for some in steps(int(group.max(initial=0)) + 1, 1):
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
    numbers: Ints | None = None, of: Places | None = None, given: bool = False,
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


def sized(link: NDArray[np.integer], numbers: Ints | None = None) -> Pairs:
    """How many rows each number has, where nobody asks which cells have which number: one pair of each number."""
    many = narrowed(counted(link, numbers))
    return Pairs(np.zeros(len(many), dtype=np.uint8), Runs(np.ones(len(many), dtype=np.uint8)), Order(many))


def pairs_of(
    cell: NDArray[np.integer], cells: int, link: NDArray[np.integer], *, member: NDArray[np.integer] | None = None,
    numbers: Ints | None = None, of: Places | None = None, given: bool = False,
) -> Pairs:  # fmt: skip
    """The distinct pairs of records that have a cell and a number; see `paired`."""

    def keys(some: slice = slice(None)) -> Ints:
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
    keys: Callable[[slice], Ints], cells: int, link: NDArray[np.integer]
) -> tuple[NDArray[np.integer], NDArray[np.integer], NDArray[np.integer]]:
    """The cell and the link of each distinct pair, sorted by link, then cell, and how many records are that pair.

    Records that come sorted by link are gone through some at a time: sorting all of them at once takes their keys.
    """
    size = [len(link), len(link), len(link)]
    own, several, many = (np.empty(n, dtype=kind) for n, kind in zip(size, (np.int32, np.int32, np.uint8), strict=True))
    at = 0
    for some in _stretches(link):
        known, often = run_lengths(keys(some))
        here = slice(at, at + len(known))
        np.remainder(known, cells, out=own[here], casting="unsafe")
        np.floor_divide(known, cells, out=several[here], casting="unsafe")
        many = many if np.can_cast(often.dtype, many.dtype) else many.astype(often.dtype)
        many[here] = often
        at = here.stop
    return narrowed(own[:at]), several[:at], many[:at]


def _stretches(link: NDArray[np.integer]) -> list[slice]:
    """Parts of the records that share no link, where they are sorted by link; else all of them as one part."""
    at = [*range(AT_ONCE, len(link), AT_ONCE)]
    if not at or any(bool((link[s] > link[s.start + 1 : s.stop + 1]).any()) for s in steps(len(link) - 1, 1)):
        return [slice(0, len(link))]
    cuts = [0, *(int(link.searchsorted(link[place])) for place in at), len(link)]
    return [slice(a, b) for a, b in pairwise(cuts) if a < b]


def _places(
    own: NDArray[np.integer], several: NDArray[np.integer], cells: int, keys: Callable[[], Ints]
) -> Places:  # fmt: skip
    known = several.astype(np.int64) * cells + own
    return np.searchsorted(known, keys()).astype(np.int32)


class Members(NamedTuple):
    """A published table as it was read: what members show, and which of them and which number each record has."""

    shown: pa.Table
    link: NDArray[np.integer] | None
    how: dict[str, Any]  # for `paired`

    @classmethod
    def of(cls, rows: Rows, number: str, *, as_rows: bool = False) -> Members:
        """From the rows of a file; the column of that name, if there is one, has the numbers, which begin with 1.

        With `as_rows` records are the rows in their order.
        """
        if isinstance(rows, Paired) and number in rows.apart:
            link = rows.apart[number](slice(None)).to_numpy() - 1
            return cls(rows.distinct, link, {"member": rows.cell, "given": rows.in_order})
        order = None if as_rows or isinstance(rows, Paired) else rows.order
        shown = rows.coded() if order is None else rows.distinct
        own = whole_numbers(shown[number]) - 1 if number in shown.column_names else None
        known: dict[str, Any] = {"given": True}
        if order is not None:
            known = {"numbers": order.numbers, "of": order.of if order.known else None}
        return cls(shown, own, known)

    @property
    def in_order(self) -> bool:
        """Whether the rows have an order that is known."""
        return self.how.get("given") is True or self.how.get("of") is not None

    def each(self, of_member: NDArray[Any]) -> NDArray[Any]:
        """Of each record what its member has."""
        member = self.how.get("member")
        return of_member if member is None else of_member[member]
