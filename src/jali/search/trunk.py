"""The trunk of a partitioning: groups of a table beyond memory are cut by its engine until what is left of them fits.

A cut of a group depends on one column at a time: on how many people have each value of it, with each sensitive value.
So the engine counts these histograms for all groups that are still too large, level by level of the tree, as for
decision trees of tables that are spread over machines. Groups that fit come here whole and are finished by the search
in memory. The groups are those that it would have found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import count
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from jali.core.arrays import Ints, added, combine, counted, narrowed, starts, steps
from jali.core.progress import Step
from jali.encoding.large import MORE, Counted, Cut, LargeTable, Nobody, TooManyError, with_codes
from jali.encoding.table import Column, Table
from jali.errors import InputError
from jali.principles.base import Principle
from jali.principles.counts import Counts, distinct_pairs
from jali.search.common import require_feasible
from jali.search.grown import Ended, Finished, Grown, Kept, ends_of
from jali.search.items import Similarity, Split, columns_of, items_of, places_of
from jali.search.mondrian import cut
from jali.search.splits import Histograms, gain_of, together
from jali.search.splits import Parts as Cuts


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

    def leaves(self) -> Iterator[Branch]:
        """The branches that are not cut, in the order of the tree."""
        if not self.parts:
            yield self
        for part in self.parts:
            yield from part.leaves()

    def _within(self, number: Mapping[int, int]) -> Cut | int:
        if id(self) in number:
            return number[id(self)]
        parts = tuple(part._within(number) for part in self.parts)
        return -1 if all(part == -1 for part in parts) else Cut(self.column, self.bounds, parts)


class Trunk:
    """The partitioning of one table beyond memory."""

    def __init__(
        self, table: LargeTable, principles: tuple[Principle, ...], *, split: Split, importance: Ints | None,
        on_step: Step, similarity: Similarity = "box", ends: Mapping[str, Ints] = MappingProxyType({}),
    ) -> None:  # fmt: skip
        """`ends` has the order of the codes of columns of which a group shows the lowest and the highest value only."""
        self.table, self.principles, self.split, self.importance = table, principles, split, importance
        self.on_step, self.similarity, self.ends = on_step, similarity, ends
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
            parts = self._proposed(splitter, branches)
        except TooManyError:
            if len(branches) == 1:
                raise self.refused("the histogram of a group") from None
            half = len(branches) // 2
            return self._cut(branches[:half]) + self._cut(branches[half:])
        self.checked += splitter.checked
        made: list[Branch] = []
        for branch, own in zip(branches, parts, strict=True):
            if own is None:
                raise self.refused("a group that cannot be cut any further")
            made += self._divided(branch, splitter, own)
        return made

    def _divided(self, branch: Branch, splitter: Histograms, parts: Cuts) -> list[Branch]:
        """A branch cut into these parts, which are its parts from now on."""
        places = [splitter.place[part] for part in parts]
        branch.column = self.table.quasi[int(splitter.column[parts[0][0]])].name
        branch.bounds = tuple(int(each.min()) for each in places[1:])
        branch.parts = [Branch(size, size) for size in (int(splitter.items.n[part].sum()) for part in parts)]
        return branch.parts

    def _proposed(self, splitter: Histograms, branches: list[Branch]) -> list[Cuts | None]:
        """The split of each branch; where splits are compared by KL, the engine says what their parts span."""
        numbers = [np.array([at]) for at in range(len(branches))]
        if self.split != "kl":
            return together(splitter, [splitter.propose(number) for number in numbers])
        best: list[tuple[int, Cuts] | None] = [None for _ in branches]
        ranked = together(splitter, [splitter.by_information(number) for number in numbers])
        for a in range(len(self.table.quasi)):
            cuts = {at: parts for at, found in enumerate(ranked) for _, b, parts in found if b == a}
            for (at, parts), after in zip(cuts.items(), self._information(splitter, branches, cuts, a), strict=True):
                own = splitter.own(numbers[at], a)
                gain = gain_of(splitter.information(numbers[at]), after, int(splitter.items.n[own].sum()))
                known = best[at]
                if known is None or gain > known[0]:
                    best[at] = gain, parts
        return [None if found is None else found[1] for found in best]

    def _information(
        self, splitter: Histograms, branches: list[Branch], cuts: Mapping[int, Cuts], a: int
    ) -> Iterator[float]:
        """The information of the parts of these cuts of a column, added up for each cut."""
        if not cuts:
            return
        tried = [part for at, parts in cuts.items() for part in self._divided(branches[at], splitter, parts)]
        within, items = self.root.within(tried), splitter.items
        for at in cuts:
            branches[at].parts = []
        asked = {b: column.name for b, column in enumerate(self.table.quasi) if b != a}
        spread = {
            b: self.table.elsewhere.count(self.nodes, of=[name], within=within, most=self.table.room)
            for b, name in asked.items()
        }
        number = count()
        for parts in cuts.values():
            after = 0.0
            for part, own in zip(parts, number, strict=False):
                places = {b: _of_group(found, asked[b], own) for b, found in spread.items()}
                places[a] = splitter.place[part], items.n[part]
                people = added(items.value[part], items.n[part])
                after += splitter.informed(people, [places[b] for b in range(len(self.table.quasi))])
            yield after

    def refused(self, what: str) -> InputError:
        """The error for `what` does not fit into memory."""
        return InputError(f"{what} takes more than memory holds", do=MORE)

    def _histograms(self, branches: list[Branch]) -> Histograms:
        """How many people of each branch have each value of each column, with each sensitive value."""
        within, names = self.root.within(branches), [column.name for column in self.table.sensitive]
        found = []
        for column in self.table.quasi:
            cells = self.table.elsewhere.count(
                self.nodes, of=[column.name, *names], within=within, most=self.table.room
            )  # fmt: skip
            value = self.joint([cells.nodes[name] for name in names], len(cells.rows))
            found.append((cells.groups, cells.nodes[column.name], value, cells.rows))
        columns = columns_of(self.table, self.importance, np.zeros((0, len(self.table.quasi)), dtype=np.int64))
        return Histograms(columns, found, self.whole, self.principles, split=self.split, similarity=self.similarity)

    # -- portions: parts of the table that fit, whatever is in them -------------------------------------------------

    def portions(self) -> list[Branch]:
        """The whole table cut into parts that fit: between values of a column, and within a frequent value by the next.

        No promise is asked, and no sensitive value unless all quasi-identifiers of a part are the same.
        """
        return self._portions(sorted(self.table.columns, key=lambda c: (c.role != "quasi", _most_rows(c))))

    def in_order(self, columns: Sequence[Column]) -> list[Branch]:
        """The same parts, cut so that they follow each other in the order of the codes of `columns`, which are all."""
        self.nodes = {column.name: np.arange(len(column.values)) for column in columns}
        self._portions(columns)
        return [*self.root.leaves()]

    def _portions(self, columns: Sequence[Column]) -> list[Branch]:
        room, ready, large = self.table.room, [], [self.root]
        for column in columns:
            parts: list[Branch] = []
            for some in steps(len(large), len(column.values), max(room, len(column.values))):
                parts += self._portioned(large[some], column.name)
            ready += [part for part in parts if part.rows <= room]
            large = [part for part in parts if part.rows > room]
        for branch in large:
            branch.combinations = 1
        self._measure(ready)
        return ready + large

    def _portioned(self, branches: Sequence[Branch], name: str) -> list[Branch]:
        """These branches cut between values of a column, so that each part fits or has one value of it."""
        values = self.table.elsewhere.count(self.nodes, of=[name], within=self.root.within(branches))
        group, made = values.groups, list[Branch]()
        for number, branch in enumerate(branches):
            here = group == number
            sizes, begin = [0], []
            for place, rows in zip(values.nodes[name][here].tolist(), values.rows[here].tolist(), strict=True):
                if sizes[-1] and sizes[-1] + rows > self.table.room:
                    sizes.append(0)
                    begin.append(place)
                sizes[-1] += rows
            if begin:
                branch.column, branch.bounds, branch.parts = name, tuple(begin), [Branch(size, size) for size in sizes]
            made += branch.parts or [branch]
        return made

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
        edges = np.searchsorted(found.groups, np.arange(len(branches) + 1))
        for low, high in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            yield self._piece(found, columns, slice(low, high))

    def _piece(self, found: Counted, columns: Sequence[Column], some: slice) -> Table:
        """The table of some of the combinations that were counted."""
        made = [with_codes(c, np.argsort(self.nodes[c.name])[found.nodes[c.name][some]]) for c in columns]
        return self.table.made(made, found.rows[some], None)

    def branch_of(self, branches: Sequence[Branch], codes: Mapping[str, NDArray[np.integer]]) -> Ints:
        """The number of the branch of each row, given by the codes of each column; all rows are in one of these."""
        number = {id(branch): at for at, branch in enumerate(branches)}
        waiting = [(self.root, np.arange(len(next(iter(codes.values())))))]
        found = np.empty(len(waiting[0][1]), dtype=np.int64)
        while waiting:
            branch, rows = waiting.pop()
            if id(branch) in number:
                found[rows] = number[id(branch)]
                continue
            place = self.nodes[branch.column][codes[branch.column][rows]]
            part = np.searchsorted(np.array(branch.bounds), place, side="right")
            waiting += [(own, rows[part == at]) for at, own in enumerate(branch.parts)]
        return found

    def finish(self, branches: Sequence[Branch], threads: int | None) -> Grown:
        """Cut every branch to the end, and keep of each group what is published of it."""
        ended: list[Ended] = []
        for one in self._ended(branches, threads):
            ended.append(one)
            self.on_step(sum(each.rows for each in ended), self.table.rows)
        codes = np.concatenate([one.first for one in ended])
        rank = np.argsort(np.lexsort(codes.T[::-1]))  # groups are numbered by their first combination
        self.checked += sum(one.checked for one in ended)
        return replace(self.grown([one.kept for one in ended], rank), first=codes[np.argsort(rank)])

    def _ended(self, branches: Sequence[Branch], threads: int | None) -> Iterator[Ended]:
        """Every branch, cut to the end: by workers of the engine where it has some, else here."""
        within, names = self.root.within(branches), [column.name for column in self.table.columns]
        made = None
        if within is not None:
            made = self.table.elsewhere.each(self._posted()._worked, self.nodes, of=names, within=within)
        if made is None:
            yield from (self._cut_piece(piece, threads) for piece in self.pieces(branches, other=True))
        else:
            yield from made

    def _posted(self) -> Trunk:
        """This trunk as a worker of the engine gets it: it asks the engine nothing and reports no progress."""
        posted = copy(self)
        posted.table, posted.ends = replace(self.table, elsewhere=Nobody()), dict(self.ends)
        del posted.on_step
        return posted

    def _worked(self, found: Counted) -> Ended:
        """A branch cut to the end by a worker of the engine, from its counted combinations."""
        return self._cut_piece(self._piece(found, self.table.columns, slice(0, len(found.rows))), 1)

    def _cut_piece(self, piece: Table, threads: int | None) -> Ended:
        """The groups of a piece, and what is kept of them."""
        f, (group, checked) = piece.frequencies, self.cut_of(piece, threads)
        first = f.codes[np.unique(group, return_index=True)[1]].astype(np.int64)
        codes = {column.name: column.codes for column in piece.columns}
        return Ended(self.finished(codes, group[f.row_combination], piece.multiplicity), first, checked, piece.rows)

    def cut_of(self, piece: Table, threads: int | None) -> tuple[Ints, int]:
        """The group of each combination of a piece, and how many cuts were judged."""
        f = piece.frequencies
        own = items_of(piece, "strict")
        value = self.joint(list(f.joint.T), len(f.joint)) if len(self.table.sensitive) else np.zeros(1, dtype=np.int64)
        items = replace(own, value=value[own.value], whole=self.whole)
        number, _, checked = cut(
            piece, items, self.principles, mode="strict", split=self.split, similarity=self.similarity,
            threads=threads, importance=self.importance,
        )  # fmt: skip
        group = np.empty(f.combinations, dtype=np.int64)
        group[items.combination] = number
        return group, checked

    def finished(self, codes: Mapping[str, NDArray[np.integer]], group: Ints, rows: Ints | None) -> Finished:
        """What is kept of rows whose groups are found; `codes` are by column, and `group` is that of each row."""
        members = []
        for column in self.table.quasi:
            order = self.ends.get(column.name)
            code = codes[column.name].astype(np.int64)
            owner, each, many = distinct_pairs(group, code if order is None else order[code], rows)
            if order is not None:
                told = ends_of(owner, each, int(order[-1]))
                owner, each, many = owner[told], np.argsort(order)[each[told]], many[told]
            members.append(Kept(*(narrowed(array) for array in (each, owner, many))))
        exact = [column for column in self.table.columns if column.role != "quasi"]
        groups = int(group.max()) + 1
        keys = [(group, groups), *((codes[c.name], len(c.values)) for c in exact)]
        record, one = combine(keys, len(group))
        return Finished(
            groups, tuple(members), {name: own[one] for name, own in codes.items()}, counted(record, rows),
            narrowed(group[one]),
        )  # fmt: skip

    def grown(self, kept: Sequence[Finished], number: Ints | None = None) -> Grown:
        """The groups of all parts of the table, one part after the other, or as they are numbered."""
        begin = starts([each.groups for each in kept])
        rank, placed = np.arange(begin[-1]) if number is None else number, [*zip(kept, begin, strict=False)]
        members = tuple(
            Kept(
                np.concatenate([each.members[a].codes for each in kept]),
                narrowed(
                    rank[np.concatenate([each.members[a].group + at for each, at in zip(kept, begin, strict=False)])]
                ),
                np.concatenate([each.members[a].rows for each in kept]),
            )
            for a in range(len(self.table.quasi))
        )
        made = [with_codes(c, np.concatenate([each.codes[c.name] for each in kept])) for c in self.table.columns]
        table = self.table.made(made, np.concatenate([each.rows for each in kept]), None)
        group = np.concatenate([each.group + at for each, at in placed])
        return Grown(table, rank[group], len(rank), members, self.checked)


def _of_group(found: Counted, name: str, group: int) -> tuple[Ints, Ints]:
    """The nodes of a column in a group, and their rows."""
    assert found.group is not None
    low, high = np.searchsorted(found.group, [group, group + 1])
    return found.nodes[name][low:high], found.rows[low:high]


def _most_rows(column: Column) -> int:
    """How many rows have the most frequent value of a column of a table beyond memory."""
    assert column.value_rows is not None
    return int(column.value_rows.max())
