"""Equal halves of a table beyond memory: its people lie in a private file, which is read and written in order.

The engine sends the table once, in portions that fit. Everybody becomes an entry of the file: the codes of all columns.

1. Each entry goes to one of 2^b buckets, by b random bits, and a bucket is put into a random order when it is read.
   That is sorting by independent uniform numbers whose first digits are the bucket: every order of everybody is equally
   likely. Of each value those who come first are drawn into the first sample, as in memory.
2. The people of a sample are put into a second random order in the same way, which is that of ties.
3. A node that does not fit is read for the histogram of each column, and again to write its halves, each in the order
   in which it was read: so those who come first of people with the median value go to the lower half, as in memory. A
   node that fits is finished by the search in memory. Batches of ANGEL stand in the order of the cuts before: then a
   half is written value by value of the column that is cut.

So the groups are a function of two random orders, and it is that of `halve`; decision 103 has the details. The file has
no name: nobody else can open it, and it is gone when the process ends, however it ends.
"""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jali.core.arrays import Ints, counted, sorted_by, starts, steps
from jali.core.files import require_space
from jali.encoding.large import neighbours, with_codes
from jali.encoding.table import Column
from jali.errors import ChangedError
from jali.search.batches import smallest
from jali.search.grown import Grown, joined
from jali.search.halves import By, People, all_hold, cut_of, gains_of, leaves_of, samples_of
from jali.search.items import columns_of
from jali.search.trunk import Branch, Trunk

Entries = NDArray[np.void]
"""People, each with the codes of all columns: fields c0, c1, … in the order of the table, and labels l0, l1, …"""


class Listed(NamedTuple):
    """Distinct rows of a table, with numbers that go along with them."""

    codes: Mapping[str, NDArray[np.integer]]  # (rows,) of each column
    labels: Sequence[NDArray[np.integer]]  # (rows,) each, counted from 0
    people: Ints  # (rows,) whom each stands for


Leaves = Iterable[tuple[Entries, Ints]]
"""People of some groups, with the group of each, counted from 0: as many at a time as fit."""


def kind_of(columns: Sequence[Column], labels: Sequence[int]) -> np.dtype[Any]:
    """The type of an entry; `labels` says how many numbers each label has."""
    codes = [(f"c{at}", smallest(len(c.values))) for at, c in enumerate(columns)]
    return np.dtype([*codes, *((f"l{at}", smallest(many)) for at, many in enumerate(labels))])


def entries_of(kind: np.dtype[Any], columns: Sequence[Column], some: Listed, row: Ints) -> Entries:
    """The entries of these rows."""
    entries = np.empty(len(row), dtype=kind)
    for at, column in enumerate(columns):
        entries[f"c{at}"] = some.codes[column.name][row]
    for at, label in enumerate(some.labels):
        entries[f"l{at}"] = label[row]
    return entries


def fresh_digits(many: int, bits: int) -> Ints:
    """Numbers below 2^bits, at most 32 of these, from the system's own randomness: (many,)."""
    if bits == 0:
        return np.zeros(many, dtype=np.int64)
    drawn = np.frombuffer(secrets.token_bytes(4 * many), dtype=np.uint32)
    return (drawn & np.uint32((1 << bits) - 1)).astype(np.int64)


class Bits(NamedTuple):
    """Where random orders come from."""

    order_of: Callable[[int], Ints]  # of those who are drawn into samples: must stay unknown
    turn_of: Callable[[int], Ints]  # of ties, which an attacker may know
    digits_of: Callable[[int, int], Ints] = fresh_digits  # how many, and of how many bits


class Spill:
    """Entries in a file without a name: a part that was written is read whole."""

    def __init__(self, kind: np.dtype[Any]) -> None:
        self.kind, self._end = kind, 0
        self._file = tempfile.TemporaryFile(prefix="jali-", buffering=0)  # noqa: SIM115  closed by close()

    def __enter__(self) -> Spill:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Give the disk back."""
        self._file.close()

    def put(self, entries: Entries) -> Part:
        """Write entries after those that are there."""
        part = Part(self, self._end, len(entries))
        self._file.seek(self._end)
        left = memoryview(np.ascontiguousarray(entries).view(np.uint8).data)
        while left:
            left = left[self._file.write(left) :]
        self._end += part.many * self.kind.itemsize
        return part

    def get(self, begin: int, many: int) -> Entries:
        """The entries that begin there."""
        found = np.empty(many, dtype=self.kind)
        left = memoryview(found.view(np.uint8).data)
        self._file.seek(begin)
        while left:
            read = self._file.readinto(left)
            assert read
            left = left[read:]
        return found


class Part(NamedTuple):
    """Entries that were written at once."""

    spill: Spill
    begin: int
    many: int

    def read(self) -> Entries:
        """The entries of this part, from the file."""
        return self.spill.get(self.begin, self.many)


Parts = list[Part]  # of a bucket, or of a node in the order of ties


class Buckets:
    """Entries of a file, sorted into buckets; within a bucket they keep the order in which they came."""

    def __init__(self, spill: Spill, many: int) -> None:
        self.spill = spill
        self.parts: list[Parts] = [[] for _ in range(many)]

    def add(self, entries: Entries, bucket: Ints) -> None:
        """Write entries, each into its bucket."""
        order, start = sorted_by(bucket.astype(smallest(len(self.parts))), len(self.parts))
        taken = entries[order]
        for at in np.flatnonzero(np.diff(start)).tolist():
            self.parts[at].append(self.spill.put(taken[start[at] : start[at + 1]]))

    def all(self, at: int) -> Entries:
        """A whole bucket."""
        none = np.empty(0, dtype=self.spill.kind)
        return np.concatenate([none, *(part.read() for part in self.parts[at])])


class Filed:
    """A table beyond memory whose people pass through private files."""

    def __init__(self, trunk: Trunk, labels: Sequence[int] = ()) -> None:
        """`labels` says how many numbers there are of each label that people bring along."""
        self.trunk, self.table = trunk, trunk.table
        self.room = self.table.room  # of people too
        self.kind = kind_of(self.table.columns, labels)
        self.columns = columns_of(self.table, trunk.importance, np.zeros((0, len(self.table.quasi)), dtype=np.int64))
        self.done = 0

    def require_space(self, times: int) -> None:
        """Raise InputError where the disk has no room for the entries of everybody, `times` over."""
        require_space(Path(tempfile.gettempdir()), times * self.table.rows * self.kind.itemsize)

    def codes(self, entries: Entries) -> dict[str, NDArray[np.integer]]:
        """The codes of each column."""
        return {column.name: entries[f"c{at}"] for at, column in enumerate(self.table.columns)}

    def values(self, entries: Entries) -> Ints:
        """The joint value of each entry."""
        codes = self.codes(entries)
        own = [codes[column.name].astype(np.int64) for column in self.table.sensitive]
        return self.trunk.joint(own, len(entries))

    def fetched(self, portions: Sequence[Branch], order: Sequence[Column] = ()) -> Iterator[Listed]:
        """The rows of these portions, each sorted by the columns of `order`."""
        for piece in self.trunk.pieces(portions, other=True):
            assert piece.multiplicity is not None
            rows = np.lexsort([piece[column.name].codes for column in reversed(order)]) if order else slice(None)
            yield Listed({column.name: column.codes[rows] for column in piece.columns}, (), piece.multiplicity[rows])

    def everybody(self, listed: Iterable[Listed]) -> Iterator[Entries]:
        """An entry for each person, as many at a time as fit."""
        for rows in listed:
            upto = np.cumsum(rows.people)
            for some in steps(int(upto[-1]), 1, self.room):
                row = np.searchsorted(upto, np.arange(some.start, some.stop), side="right")
                yield entries_of(self.kind, self.table.columns, rows, row)

    def read(self, node: Parts) -> Iterator[Entries]:
        """The people of a node in order, as many at a time as fit."""
        there = [part for part in node if part.many]  # nobody may be drawn into a bucket
        for first, last in neighbours([part.many for part in there], self.room):
            yield np.concatenate([part.read() for part in there[first : last + 1]])

    def leaf(self, node: Parts) -> Leaves:
        """A node that is one group."""
        return ((entries, np.zeros(len(entries), dtype=np.int64)) for entries in self.read(node))

    def kept(self, leaves: Iterable[Leaves]) -> Grown:
        """What is kept of the groups that leaves are, to publish them."""
        finished = self.trunk.finished
        return self.trunk.grown([joined([finished(self.codes(own), at, None) for own, at in some]) for some in leaves])

    def ended(self, many: int) -> None:
        """Report progress: this many more people are in their final groups."""
        self.done += many
        self.trunk.on_step(self.done, self.table.rows)


class Median(NamedTuple):
    """How a node is halved: between places of a column, and within the place of the median by who comes first."""

    column: str
    place: Ints  # (codes,) the place of each code of the column
    middle: int  # the place of the median
    first: int  # how many people of that place go to the lower half


class Halving(Filed):
    """The equal halves of one table beyond memory."""

    def __init__(
        self, trunk: Trunk, by: By, bits: Bits, *, sorting: bool = False, labels: Sequence[int] = ()
    ) -> None:  # fmt: skip
        """With `sorting` people stand in the order of the cuts before, as in `halve`."""
        super().__init__(trunk, labels)
        self.by, self.bits, self.sorting = by, bits, sorting
        whole, least = trunk.whole, max(1, *(p.least_size() for p in trunk.principles))
        self.histogram = counted(whole.value, whole.n, len(whole.joint))
        self.samples = samples_of(self.histogram, least, trunk.principles, whole)

    def grown(self, portions: Sequence[Branch]) -> Grown:
        """The groups of everybody; `portions` are the whole table."""
        return self.kept(self.leaves(self.fetched(portions)))

    def leaves(self, everybody: Iterable[Listed]) -> Iterator[Leaves]:
        """The groups of everybody, some at a time, each to be read before the next ones are asked for."""
        self.require_space(3)
        for node, left in self.turned(everybody):
            yield from self._halved([node], left)

    # -- who is drawn into which sample, and the order of ties ------------------------------------------------------

    def turned(self, everybody: Iterable[Listed]) -> Iterator[tuple[Parts, int]]:
        """The people of each sample in the order of ties, and how often a sample may be halved."""
        digits = np.array([self._digits(int(sample.histogram.sum())) for sample in self.samples])
        first = starts(1 << digits)
        with Spill(self.kind) as place:
            drawn = Buckets(place, int(first[-1]))
            for sample, entries in self._drawn(everybody):
                some = self.bits.digits_of(len(entries), int(digits.max()))
                drawn.add(entries, first[sample] + (some & ((1 << digits) - 1)[sample]))
            for at, own in enumerate(self.samples):
                with Spill(self.kind) as turned:
                    buckets = (drawn.all(bucket) for bucket in range(first[at], first[at + 1]))
                    yield [turned.put(each[self.bits.turn_of(len(each))]) for each in buckets], own.depth

    def _digits(self, many: int) -> int:
        """How many random bits divide this many people into buckets that fit."""
        return (max(many - 1, 0) // self.room).bit_length()

    def _drawn(self, listed: Iterable[Listed]) -> Iterator[tuple[Ints, Entries]]:
        """Everybody in a random order, some at a time, and the sample of each: of each value the first ones first."""
        many = np.stack([sample.histogram for sample in self.samples], axis=1)  # (values, samples)
        begin, end = starts(self.histogram)[:-1], starts(self.histogram)[1:]
        upto, seen = (begin[:, None] + np.cumsum(many, axis=1)).ravel(), begin.copy()
        bits = self._digits(self.table.rows)
        with Spill(self.kind) as place:
            everybody = Buckets(place, 1 << bits)
            for entries in self.everybody(listed):
                everybody.add(entries, self.bits.digits_of(len(entries), bits))
            for bucket in range(1 << bits):
                entries = everybody.all(bucket)
                entries = entries[self.bits.order_of(len(entries))]
                value = self.values(entries)
                order, start = sorted_by(value, len(begin))
                turn = np.empty(len(value), dtype=np.int64)
                turn[order] = np.arange(len(value)) - start[value[order]]
                turn += seen[value]
                seen += np.diff(start)
                if bool((seen > end).any()):
                    raise ChangedError()
                yield np.searchsorted(upto, turn, side="right") - value * len(self.samples), entries
        if bool((seen < end).any()):
            raise ChangedError()

    # -- the tree of a sample ---------------------------------------------------------------------------------------

    def _halved(self, nodes: list[Parts], left: int) -> Iterator[Leaves]:
        """The groups of these nodes, which have the same size and may be halved `left` more times."""
        following: list[Parts] = []
        with Spill(self.kind) as below:
            for node in nodes:
                many = sum(part.many for part in node)
                halves = self._cut(node, many, below) if left and many > self.room else None
                if halves is not None:
                    following += halves
                    continue
                yield self._finished(node, left) if many <= self.room else self.leaf(node)
                self.ended(many)
            nodes[0][0].spill.close()  # its people are in halves, or in groups
            if following:
                yield from self._halved(following, left - 1)

    def _cut(self, node: Parts, many: int, below: Spill) -> list[Parts] | None:
        """The halves of a node; None where they break a promise, or all people have one combination."""
        self.trunk.checked += 1
        median = self._median(node, many)
        if median is None:
            return None
        left = median.first
        halves = Buckets(below, 2 * len(median.place) if self.sorting else 2)  # of each place both halves
        people = np.zeros((2, len(self.histogram)), dtype=np.int64)
        for entries in self.read(node):
            place, value = median.place[self.codes(entries)[median.column]], self.values(entries)
            upper = place >= median.middle
            first = np.flatnonzero(place == median.middle)[:left]
            upper[first], left = False, left - len(first)
            halves.add(entries, upper + (2 * place if self.sorting else np.int64(0)))
            people += np.bincount(value + len(self.histogram) * upper, minlength=people.size).reshape(people.shape)
        if not all_hold(people, self.trunk.principles, self.trunk.whole):
            return None
        return [[part for parts in halves.parts[half::2] for part in parts] for half in (0, 1)]

    def _median(self, node: Parts, many: int) -> Median | None:
        """The column to halve a node by, and its median; None where all people have the same quasi-identifiers."""
        names = [column.name for column in self.table.quasi]
        places = [self.trunk.places[name] for name in names]
        people = [np.zeros(len(place), dtype=np.int64) for place in places]
        for entries in self.read(node):
            codes = self.codes(entries)
            for a, place in enumerate(places):
                people[a] += np.bincount(place[codes[names[a]]], minlength=len(place))
        best, median = -1, None
        for a, of_place in enumerate(people):
            upto, there = np.cumsum(of_place), np.flatnonzero(of_place)
            last, first = np.searchsorted(upto, [many // 2, many // 2 + 1])
            ends = [np.array([each]) for each in (there[0], last, first, there[-1])]
            gain = int(gains_of(self.columns, a, self.by, ends)[0])
            if gain > best:
                first_half = many // 2 - int(upto[last] - of_place[last])
                best, median = gain, Median(names[a], places[a], int(last), first_half)
        return median

    def _finished(self, node: Parts, depth: int) -> Leaves:
        """The groups of a node that fits."""
        entries = np.concatenate([part.read() for part in node])
        codes, many = self.codes(entries), np.arange(len(entries))
        own = np.stack([codes[column.name] for column in self.table.quasi], axis=1).astype(np.int64)
        columns = columns_of(self.table, self.trunk.importance, own)
        people = People(many, self.values(entries), self.trunk.whole)
        cut = cut_of(columns, many, self.by, sorting=self.sorting)
        group, groups = np.empty(len(entries), dtype=np.int64), 0
        for leaves, judged in leaves_of(people, self.trunk.principles, many.astype(np.int32), depth, cut):
            group[leaves] = np.arange(groups, groups + len(leaves))[:, None]
            groups, self.trunk.checked = groups + len(leaves), self.trunk.checked + judged
        return [(entries, group)]


def regrouped(
    trunk: Trunk, branches: Sequence[Branch], listed: Iterable[Listed], labels: Sequence[int]
) -> Iterator[tuple[Listed, Ints]]:
    """Distinct rows, in whatever order they come, with the groups of a strict partition, a branch of it at a time.

    Groups are numbered on from branch to branch. Meanwhile the rows lie in a private file.
    """
    columns = trunk.table.columns
    kind = np.dtype([*kind_of(columns, labels).descr, ("people", np.int64)])
    require_space(Path(tempfile.gettempdir()), trunk.table.rows * kind.itemsize)
    groups = 0
    with Spill(kind) as place:
        waiting = Buckets(place, len(branches))
        for some in listed:
            entries = entries_of(kind, columns, some, np.arange(len(some.people)))
            entries["people"] = some.people
            waiting.add(entries, trunk.branch_of(branches, some.codes))
        for at in range(len(branches)):
            entries = waiting.all(at)
            codes = {column.name: entries[f"c{a}"] for a, column in enumerate(columns)}
            made = [with_codes(column, codes[column.name]) for column in columns]
            piece = trunk.table.made(made, entries["people"], None)
            group = trunk.cut_of(piece, None)[0][piece.frequencies.row_combination]
            own = [entries[f"l{a}"] for a in range(len(labels))]
            yield Listed(codes, own, entries["people"]), group + groups
            groups += int(group.max()) + 1
