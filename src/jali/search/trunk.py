"""The trunk of a partitioning: groups of a table beyond memory are cut by its engine until what is left of them fits.

A cut of a group depends on one column at a time: on how many people have each value of it, with each sensitive value.
So the engine counts these histograms for all groups that are still too large, level by level of the tree, as for
decision trees of tables that are spread over machines. Groups that fit come here whole and are finished by the search
in memory. The groups are those that it would have found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from jali.core.arrays import Ints, combine, counted
from jali.core.progress import Step
from jali.encoding.large import MORE, Cut, LargeTable, TooManyError
from jali.encoding.table import Column, Table
from jali.errors import InputError
from jali.principles.base import Principle
from jali.principles.counts import Counts, distinct_pairs
from jali.search.common import require_feasible
from jali.search.items import Columns, Items, Split, columns_of, items_of, places_of
from jali.search.mondrian import cut
from jali.search.splits import Parts as Cuts
from jali.search.splits import Proposal, Splitter, together


@dataclass(eq=False)
class Branch:
    """The rows of a box: cut into parts, or a group that is finished in memory."""

    rows: int
    combinations: int  # distinct ones, or more
    column: str = ""
    bounds: tuple[int, ...] = ()
    parts: list[Branch] = field(default_factory=list)

    def within(self, wanted: Sequence[Branch]) -> Cut | None:
        """How an engine divides rows into these branches; None for all rows."""
        found = self._within({id(branch): number for number, branch in enumerate(wanted)})
        return None if isinstance(found, int) else found

    def _within(self, number: Mapping[int, int]) -> Cut | int:
        if id(self) in number:
            return number[id(self)]
        parts = tuple(part._within(number) for part in self.parts)
        return -1 if all(part == -1 for part in parts) else Cut(self.column, self.bounds, parts)


@dataclass(frozen=True, eq=False)
class Grown:
    """The groups of a table beyond memory, as far as they are published."""

    table: Table  # a record for each group and combination of the columns that are published as they are
    group: Ints  # (records,)
    groups: int
    members: tuple[tuple[Ints, Ints, Ints], ...]  # of each quasi-identifier: codes, their group, and their rows
    checked: int
    first: Ints  # (groups, columns) codes of the first combination of each group


class Trunk:
    """The partitioning of one table beyond memory."""

    def __init__(
        self, table: LargeTable, principles: tuple[Principle, ...], *, split: Split, importance: Ints | None,
        on_step: Step,
    ) -> None:  # fmt: skip
        self.table, self.principles, self.split, self.importance = table, principles, split, importance
        self.on_step = on_step
        root = table.at_roots(other=False).frequencies
        self.whole: Counts = root.whole
        self._joint = {tuple(codes): number for number, codes in enumerate(root.joint.tolist())}
        require_feasible(principles, self.whole)
        self.places = places_of(table)
        self.nodes = {c.name: self.places.get(c.name, np.arange(len(c.values))) for c in table.columns}
        self.root = Branch(table.rows, table.rows)
        self.checked = 0

    def joint(self, codes: Sequence[Ints], many: int) -> Ints:
        """The joint value of the sensitive columns with these codes: (many,)."""
        pairs = zip(codes, self.table.sensitive, strict=True)
        number, first = combine([(code, len(column.values)) for code, column in pairs], many)
        known = [self._joint[tuple(int(code[at]) for code in codes)] for at in first.tolist()]
        return np.array(known, dtype=np.int64)[number]

    # -- the trunk --------------------------------------------------------------------------------------------

    def grow(self) -> list[Branch]:
        """Cut groups, a level of the tree at a time, until each fits; these, in the order of the tree."""
        waiting, ready = [self.root], []
        while waiting:
            self._measure([branch for branch in waiting if branch.combinations > self.table.room])
            ready += [branch for branch in waiting if branch.combinations <= self.table.room]
            large = [branch for branch in waiting if branch.combinations > self.table.room]
            waiting = self._cut(large) if large else []
        return ready

    def _measure(self, branches: list[Branch]) -> None:
        """Ask how many distinct combinations branches have that may have too many."""
        if not branches:
            return
        found = self.table.elsewhere.sizes(self.nodes, within=self.root.within(branches))
        many = counted(found.group, found.many, len(branches))
        for branch, combinations in zip(branches, many.tolist(), strict=True):
            branch.combinations = combinations

    def _cut(self, branches: list[Branch]) -> list[Branch]:
        """The parts of these branches; where their histograms do not fit, of some and then of the others."""
        try:
            splitter = self._histograms(branches)
        except TooManyError:
            if len(branches) == 1:
                raise self._refused("the histograms of a group") from None
            half = len(branches) // 2
            return self._cut(branches[:half]) + self._cut(branches[half:])
        parts = together(splitter, [splitter.propose(np.array([at])) for at in range(len(branches))])
        self.checked += splitter.checked
        made: list[Branch] = []
        for branch, own in zip(branches, parts, strict=True):
            if own is None:
                raise self._refused("a group that cannot be cut any further")
            places = [splitter.place[part] for part in own]
            branch.column = self.table.quasi[int(splitter.column[own[0][0]])].name
            branch.bounds = tuple(int(each.min()) for each in places[1:])
            sizes = [int(splitter.items.n[part].sum()) for part in own]
            branch.parts = [Branch(size, size) for size in sizes]
            made += branch.parts
        return made

    def _refused(self, what: str) -> InputError:
        return InputError(f"{what} takes more than memory holds", do=MORE)

    def _histograms(self, branches: list[Branch]) -> Histograms:
        """How many people of each branch have each value of each column, with each sensitive value."""
        within, names = self.root.within(branches), [column.name for column in self.table.sensitive]
        found = []
        for column in self.table.quasi:
            own = self.table.elsewhere.count(self.nodes, of=[column.name, *names], within=within, most=self.table.room)
            group = np.zeros(len(own.rows), dtype=np.int64) if own.group is None else own.group
            value = self.joint([own.nodes[name] for name in names], len(own.rows))
            found.append((group, own.nodes[column.name], value, own.rows))
        none = np.zeros((0, len(self.table.quasi)), dtype=np.int64)
        columns = columns_of(self.table, self.importance, none)
        return Histograms(columns, found, self.whole, self.principles, self.split)

    # -- groups that fit --------------------------------------------------------------------------------------

    def pieces(self, branches: Sequence[Branch], *, other: bool) -> Iterator[Table]:
        """The table of each branch, as many at a time as fit; without the `other` columns if they are not needed."""
        columns = [c for c in self.table.columns if other or c.role in ("quasi", "sensitive")]
        batch: list[Branch] = []
        for branch in branches:
            if batch and sum(each.combinations for each in (*batch, branch)) > self.table.room:
                yield from self._fetched(batch, columns)
                batch = []
            batch.append(branch)
        yield from self._fetched(batch, columns)

    def _fetched(self, branches: Sequence[Branch], columns: Sequence[Column]) -> Iterator[Table]:
        names = [column.name for column in columns]
        found = self.table.elsewhere.count(self.nodes, of=names, within=self.root.within(branches))
        group = np.zeros(len(found.rows), dtype=np.int64) if found.group is None else found.group
        edges = np.searchsorted(group, np.arange(len(branches) + 1))
        codes = {column.name: np.argsort(self.nodes[column.name])[found.nodes[column.name]] for column in columns}
        for low, high in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            made = [with_codes(column, codes[column.name][low:high]) for column in columns]
            yield self.table.made(made, found.rows[low:high], None)

    def finish(self, branches: Sequence[Branch], threads: int | None) -> Grown:
        """Cut every branch to the end, and keep of each group what is published of it."""
        kept: list[_Finished] = []
        done = 0
        for piece in self.pieces(branches, other=True):
            kept.append(self._finished(piece, threads, sum(each.groups for each in kept)))
            done += piece.rows
            self.on_step(done, self.table.rows)
        first = np.concatenate([each.first for each in kept])
        rank = np.empty(len(first), dtype=np.int64)
        rank[np.lexsort(first.T[::-1])] = np.arange(len(first))  # groups are numbered by their first combination
        members = tuple(
            (np.concatenate(codes), rank[np.concatenate(group)], np.concatenate(rows))
            for codes, group, rows in (
                zip(*(each.members[a] for each in kept), strict=True) for a in range(len(self.table.quasi))
            )
        )
        codes = {c.name: np.concatenate([each.codes[c.name] for each in kept]) for c in self.table.columns}
        made = [with_codes(column, codes[column.name]) for column in self.table.columns]
        table = self.table.made(made, np.concatenate([each.rows for each in kept]), None)
        group = rank[np.concatenate([each.group for each in kept])]
        return Grown(table, group, len(first), members, self.checked, first[np.argsort(rank)])

    def cut_of(self, piece: Table, threads: int | None) -> tuple[Ints, int]:
        """The group of each combination of a piece, and how many groups it is cut into."""
        f = piece.frequencies
        own = items_of(piece, "strict")
        value = self.joint(list(f.joint.T), len(f.joint)) if len(self.table.sensitive) else np.zeros(1, dtype=np.int64)
        items = replace(own, value=value[own.value], whole=self.whole)
        number, groups, checked = cut(
            piece, items, self.principles, mode="strict", split=self.split, similarity="box", threads=threads,
            importance=self.importance,
        )  # fmt: skip
        self.checked += checked
        group = np.empty(f.combinations, dtype=np.int64)
        group[items.combination] = number
        return group, groups

    def _finished(self, piece: Table, threads: int | None, before: int) -> _Finished:
        f = piece.frequencies
        group, groups = self.cut_of(piece, threads)
        members = []
        for code in f.codes.astype(np.int64).T:
            owner, each, rows = distinct_pairs(group, code, f.sizes)
            members.append((each, owner + before, rows))
        exact = [column for column in piece.columns if column.role != "quasi"]
        keys = [(group[f.row_combination], groups), *((c.codes, len(c.values)) for c in exact)]
        record, one = combine(keys, piece.records)
        first = np.unique(group, return_index=True)[1]
        return _Finished(
            groups, f.codes[first].astype(np.int64), tuple(members),
            {column.name: column.codes[one].astype(np.int64) for column in piece.columns},
            counted(record, piece.multiplicity), group[f.row_combination][one] + before,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Finished:
    """What is kept of a piece of the table whose groups were found."""

    groups: int
    first: Ints  # (groups, columns) codes of the first combination of each
    members: tuple[tuple[Ints, Ints, Ints], ...]
    codes: Mapping[str, Ints]  # (records,) of each column
    rows: Ints  # (records,)
    group: Ints  # (records,)


def with_codes(column: Column, codes: Ints) -> Column:
    """The column with these codes."""
    many = len(column.values)
    smallest: type[np.integer] = np.uint8 if many <= 2**8 else np.uint16 if many <= 2**16 else np.int32
    known = column.value_rows if column.role == "quasi" else None
    return replace(column, codes=codes.astype(smallest), value_rows=known)


class Histograms(Splitter):
    """Splits groups of which only the histogram of each column is known: an item is a value of a column."""

    def __init__(
        self, columns: Columns, found: Sequence[tuple[Ints, Ints, Ints, Ints]], whole: Counts,
        principles: tuple[Principle, ...], split: Split,
    ) -> None:  # fmt: skip
        _, self.place, value, rows = (np.concatenate(each) for each in zip(*found, strict=True))
        items = Items(np.arange(len(rows)), value, rows, None, whole)
        super().__init__(columns, items, principles, mode="strict", split=split)
        sizes = [len(own) for own, *_ in found]
        self.column = np.repeat(np.arange(len(found)), sizes)
        self.begin = np.concatenate(([0], np.cumsum(sizes)))
        self.groups = [own for own, *_ in found]  # sorted

    def own(self, group: Ints, a: int) -> Ints:
        """The items of a column that a group, given by its number, has."""
        low, high = np.searchsorted(self.groups[a], [int(group[0]), int(group[0]) + 1]) + self.begin[a]
        return np.arange(low, high)

    def places(self, group: Ints, a: int) -> Ints:
        """Where items stand in their column."""
        return self.place[group]

    def gains(self, group: Ints) -> list[tuple[Fraction | int, int]]:
        """The columns in which a group has several values, the one with the largest gain first."""
        gains: list[tuple[Fraction | int, int]] = []
        for a in range(len(self.columns.tree)):
            own = self.own(group, a)
            places = self.place[own]
            low, high = int(places.min()), int(places.max())
            if low < high:
                gains.append((self._gain(own, a, places, low, high), a))
        return sorted(gains, key=lambda gain: (-gain[0], gain[1]))

    def by_column(self, group: Ints, a: int) -> Proposal[Cuts | None]:
        """The parts of the first allowable split of one column."""
        return (yield from super().by_column(self.own(group, a), a))
