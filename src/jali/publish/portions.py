"""Rows of a table beyond memory as they are published: in portions that its engine counts, when they are written."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jali.core.arrays import (
    Bools,
    Floats,
    Ints,
    Runs,
    SumsByKey,
    combine,
    counted,
    found_among,
    narrowed,
    runs,
    runs_of,
    sorted_by,
    starts,
    steps,
)
from jali.core.rows import Order, fresh_order
from jali.core.spill import AT_ONCE, Portion
from jali.encoding.large import MORE, Box, Counted, LargeTable, with_codes
from jali.encoding.large import shown as shown_size
from jali.encoding.table import Column, Table
from jali.errors import ChangedError, InputError
from jali.releases.column import Published, publish_exact, publish_quasi
from jali.releases.unheld import Unheld, among
from jali.search.grown import Grown
from jali.search.trunk import Branch, Trunk


def as_values(column: Column, level: int = 0) -> Published:
    """A column that is published as it is, or at a level, held as its values with the rows of each."""
    assert column.value_rows is not None
    own = replace(column, codes=np.flatnonzero(column.value_rows))
    made = publish_quasi(own, level, None) if column.role == "quasi" else publish_exact(own)
    return replace(made, order=Order(column.value_rows[own.codes]))


def ranks(column: Column, made: Published | None = None, nodes: Ints | None = None) -> NDArray[np.int32]:
    """The label of each code of such a column, or of each node where codes have `nodes`."""
    if made is None or nodes is None or made.level == 0:
        return np.cumsum(column.present, dtype=np.int32) - np.int32(1)
    labels = np.zeros(int(nodes.max()) + 1, dtype=np.int32)
    labels[nodes[column.present]] = made.held
    return labels


def of_node(
    large: LargeTable, levels: Mapping[str, int], held: Table, made: Sequence[Published], hidden: Bools | None
) -> Unheld:
    """The rows of a table at a lattice node with all their columns.

    `made` are the columns that are held, as published of the records of a table, of which some are `hidden`.
    """
    nodes = large.all_nodes_at(levels)
    others = tuple(map(as_values, large.others))
    shown = {column.name: ranks(column) for column in large.others}
    visible = np.ones(held.records, dtype=bool) if hidden is None else ~hidden
    for column, own in zip(held.columns, made, strict=True):
        at, some = nodes[column.name][column.codes], visible if column.role == "quasi" else slice(None)
        shown[column.name] = np.zeros(int(nodes[column.name].max()) + 1, dtype=np.int32)
        shown[column.name][at[some]] = own.held[some]
    roots = {column.name: own.cover_root for column, own in zip(held.columns, made, strict=True) if own.role == "quasi"}
    stars = [nodes[name][held[name].codes[~visible]] for name in roots]
    names = tuple(column.name for column in large.columns)

    def portion(found: Counted) -> Portion:
        codes = {name: shown[name][found.nodes[name]] for name in names}
        suppressed = among(stars, [found.nodes[name] for name in roots])
        for name, root in roots.items():
            codes[name][suppressed] = 0 if root is None else root
        return Portion([codes[name] for name in names], found.rows)

    by = [column.name for column in large.columns if column.role != "sensitive"]
    split = [np.array([root for _ in range(not visible.all())], dtype=np.int64) for root in roots.values()]
    return Unheld(others, names, lambda: map(portion, large.portions(nodes, by)), large.room, split)


class GroupedRows:
    """The rows of the groups of a strict partition with all their columns, branch by branch of its trunk.

    The trunk need not have all of these columns.
    """

    def __init__(
        self, large: LargeTable, trunk: Trunk, branches: Sequence[Branch], grown: Grown, threads: int | None
    ) -> None:
        self.large, self.trunk, self.branches, self.grown, self.threads = large, trunk, branches, grown, threads

    @property
    def nodes(self) -> dict[str, Ints]:
        """What branches are cut by, and the codes of all other columns."""
        beside = [column for column in self.large.columns if column.name not in self.trunk.nodes]
        return self.trunk.nodes | {column.name: np.arange(len(column.values)) for column in beside}

    def numbered(self) -> Iterator[tuple[Branch, list[NDArray[np.int32]], Ints]]:
        """Each branch, its combinations by column, and the group of each combination."""
        quasi = self.large.quasi
        widths = [len(column.values) for column in quasi]
        assert self.grown.first is not None  # these groups were cut
        for branch, piece in zip(self.branches, self.trunk.pieces(self.branches, other=False), strict=True):
            (own, _), known = self.trunk.cut_of(piece, self.threads), list(piece.frequencies.codes.T)
            one = np.unique(own, return_index=True)[1]
            first = [codes[one] for codes in known]
            number = found_among(list(self.grown.first.T), first, widths, self.grown.groups + len(one))
            yield branch, known, number[own]

    def each(self) -> Iterator[tuple[dict[str, Ints], Ints, Ints]]:
        """Distinct combinations in portions: the codes of each column, the group and the rows of each.

        All combinations of a group are in one branch.
        """
        large, quasi, nodes = self.large, [column.name for column in self.large.quasi], self.nodes
        code_at = {name: np.argsort(own) for name, own in nodes.items()}
        widths = [len(large[name].values) for name in quasi]
        by = [name for name in nodes if name not in self.trunk.nodes]
        for branch, known, group in self.numbered():
            for found in large.portions(nodes, by, self.trunk.root.within([branch])):
                codes = {name: code_at[name][found.nodes[name]] for name in nodes}
                asked = [codes[name] for name in quasi]
                at = found_among(known, asked, widths, len(group) + len(found.rows))
                yield codes, group[at], found.rows

    def whole(self) -> Grown | None:
        """The groups with all columns, if their distinct rows fit, or are no more than without these columns."""
        room = max(self.large.room, self.grown.table.records)
        exact = [column for column in self.large.columns if column.role != "quasi"]
        kept: list[tuple[dict[str, Ints], Ints, Ints]] = []
        for codes, group, rows in self.each():
            keys = [(group, self.grown.groups), *((codes[c.name], len(c.values)) for c in exact)]
            record, one = combine(keys, len(rows))
            kept.append(({name: each[one] for name, each in codes.items()}, group[one], counted(record, rows)))
            if sum(len(rows) for _, _, rows in kept) > room:
                return None
        made = [with_codes(c, np.concatenate([codes[c.name] for codes, _, _ in kept])) for c in self.large.columns]
        group, rows = (np.concatenate([each[at] for each in kept]) for at in (1, 2))
        return replace(self.grown, table=self.large.made(made, rows, None), group=group)

    def unheld(self, held: Table, group: Ints, made: Sequence[Published]) -> Unheld:
        """The columns that are not held; `made` are those that are, of records that are in these groups."""
        others = tuple(map(as_values, self.large.others))
        names = tuple(column.name for column in self.large.columns)
        shown = {column.name: ranks(column) for column in self.large.others}
        for column, own in zip(held.columns, made, strict=True):
            grouped = column.role == "quasi"
            shown[column.name] = np.zeros(self.grown.groups if grouped else len(column.values), dtype=np.int32)
            shown[column.name][group if grouped else column.codes] = own.held
        quasi = {column.name for column in held.quasi}

        def portions() -> Iterator[Portion]:
            for codes, of, rows in self.each():
                yield Portion([shown[name][of if name in quasi else codes[name]] for name in names], rows)

        return Unheld(others, names, portions, self.large.room, _twice([shown[column.name] for column in held.quasi]))


def _twice(cells: Sequence[NDArray[np.int32]]) -> list[NDArray[np.int32]]:
    """The cells of groups that show the same as another group; `cells` are by column, (groups,) each."""
    number, _ = combine([(own, int(own.max()) + 1) for own in cells], len(cells[0]))
    several = counted(number)[number] > 1
    return [own[several] for own in cells]


class Section(NamedTuple):
    """Some of the rows of a table, and the bucket of each combination of their quasi-identifiers."""

    within: Box
    known: Sequence[NDArray[np.integer]]  # the distinct combinations, by column, in codes or in nodes
    bucket: Ints  # (combinations,)


def _parts_of(box: Box, large: LargeTable, nodes: Mapping[str, Ints], others: Sequence[str]) -> Iterator[Box]:
    """A box whose people have the same quasi-identifiers and are too many for one portion, divided by other columns."""
    return (part for part, _ in large.boxes(nodes, others, box))


def _labels_of(
    several: Sequence[Mapping[str, Ints]], labels: Mapping[str, NDArray[np.int32]], names: Sequence[str]
) -> list[NDArray[np.int32]]:
    """The labels of several lists of codes, one list after the other, by column."""
    none = [np.zeros(0, dtype=np.int32)]
    return [np.concatenate(none + [labels[name][codes[name]] for codes in several]) for name in names]


class BucketedRows:
    """The individuals of buckets that never divide people with the same quasi-identifiers, section by section."""

    def __init__(
        self, large: LargeTable, nodes: Mapping[str, Ints], places: Sequence[Ints],
        sections: Callable[[], Iterable[Section]],
    ) -> None:  # fmt: skip
        """Sections are cut by `nodes`; `places` has, by code, how sections know each quasi-identifier."""
        self.large, self.places, self.sections = large, places, sections
        self.quasi, self.others = [c.name for c in large.quasi], [c.name for c in large.others]
        self.nodes = {name: nodes[name] for name in (*self.quasi, *self.others)}
        self.code_at = {name: np.argsort(own) for name, own in self.nodes.items()}

    def _counted(self, box: Box, names: Sequence[str]) -> tuple[dict[str, Ints], Ints]:
        """The distinct codes of these columns in a box, and their rows."""
        found = self.large.elsewhere.count(self.nodes, of=names, within=box)
        return {name: self.code_at[name][found.nodes[name]] for name in names}, found.rows

    def _each(self) -> Iterator[tuple[dict[str, Ints], Ints, Ints]]:
        """Distinct individuals in portions: the codes of each column, the bucket and the rows of each."""
        widths = [int(own.max()) + 1 for own in self.places]
        for section in self.sections():
            for box, fits in self.large.boxes(self.nodes, self.quasi, section.within):
                for part in (box,) if fits else _parts_of(box, self.large, self.nodes, self.others):
                    codes, rows = self._counted(part, [*self.nodes])
                    asked = [own[codes[name]] for name, own in zip(self.quasi, self.places, strict=True)]
                    at = found_among(section.known, asked, widths, len(section.bucket) + len(rows))
                    if bool((at < 0).any()):
                        raise ChangedError()
                    yield codes, section.bucket[at], rows

    def unheld(self, shown: Sequence[Published]) -> Unheld:
        """The individuals, whose rows are not held: of each column only its values are."""
        labels = {column.name: ranks(self.large[column.name]) for column in shown}
        names = tuple(column.name for column in shown)

        def portions() -> Iterator[Portion]:
            for codes, bucket, rows in self._each():
                yield Portion([*(labels[name][codes[name]] for name in names), bucket + 1], rows)

        several = [
            self._counted(box, self.quasi)[0]
            for section in self.sections()
            for box, fits in self.large.boxes(self.nodes, self.quasi, section.within)
            if not fits
        ]
        split = _labels_of(several, labels, self.quasi)
        return Unheld(tuple(shown), names, portions, self.large.room, split)

    def divergence(self, entries: Runs, people: NDArray[np.integer]) -> float:
        """The KL-divergence of the buckets; `people` are those of each entry. See `holder.divergence`.

        A cell of quasi-identifiers and value has, of everybody with these quasi-identifiers, the share of the value in
        the bucket. So its logarithm is a sum of terms, and each is added up over all rows by itself.
        """
        large = self.large
        sizes = large.elsewhere.sizes({name: self.nodes[name] for name in self.quasi})
        alike, number = sizes.size / large.rows, people.astype(np.float64)
        size = np.add.reduceat(number, starts(entries.sizes)[:-1])[entries.each]
        told = float(np.sum(number * np.log(number / size))) / large.rows
        return max(0.0, large.entropy - float(np.sum(sizes.many * (alike * np.log(alike)))) - told)


def sections_of_groups(rows: GroupedRows, bucket: Ints) -> Iterator[Section]:
    """The branches of a strict partition, when its groups are in these buckets."""
    for branch, known, group in rows.numbered():
        yield Section(rows.trunk.root.within([branch]), known, bucket[group])


PERSON = 32
"""Bytes that are held for each row of a table whose individuals are dealt: of seats, and while these are drawn."""


def require_room(table: LargeTable, asked_by: str) -> None:
    """Raise InputError where the people of a table cannot be dealt within its memory."""
    if PERSON * table.rows > table.memory:
        what = f'{asked_by} holds {PERSON} bytes for each row, more than memory = "{shown_size(table.memory)}"'
        raise InputError(what, do=MORE)


class DealtRows:
    """The individuals of buckets that anatomy deals, each with a bucket.

    Which value has how many seats in which bucket follows from how many people have each value. `seats` are the buckets
    of the seats of each joint value, in a random order, one value after the other. People take them in the order of
    their combinations, so that everybody of a value is as likely as any other to get each of its seats.
    """

    def __init__(
        self, large: LargeTable, values: Table, seats: NDArray[np.int32], levels: Mapping[str, int]
    ) -> None:  # fmt: skip
        """`values` has a record for each joint value, which says how many people have it.

        Individuals are shown at `levels` of their quasi-identifiers. People who show the same are interchangeable.
        """
        assert values.multiplicity is not None
        self.large, self.seats, self.start = large, seats, starts(values.multiplicity)
        self.known = [column.codes.astype(np.int64) for column in values.sensitive]
        self.names = {
            role: [c.name for c in large.columns if c.role == role] for role in ("quasi", "sensitive", "other")
        }
        self.nodes, self.levels = large.all_nodes_at(levels), levels
        self.boxes = list(large.boxes(self.nodes, self.names["quasi"]))

    def _taken(self, *, other: bool) -> Iterator[tuple[Counted, Ints, NDArray[np.int32], NDArray[np.int32]]]:
        """Portions: combinations, the joint value of each, and for every person the combination and the bucket.

        Without `other` columns, people of the same quasi-identifiers are in one portion; with them, where they fit.
        """
        taken = self.start[:-1].copy()
        own = [*self.names["quasi"], *self.names["sensitive"], *(self.names["other"] if other else [])]
        for box, fits in self.boxes:
            whole = fits or not other
            for part in (box,) if whole else _parts_of(box, self.large, self.nodes, self.names["other"]):
                found = self.large.elsewhere.count(self.nodes, of=own, within=part)
                joint = self._joint(found)
                order, total = np.argsort(joint, kind="stable"), counted(joint, found.rows, len(taken))
                member = np.repeat(order.astype(np.int32), found.rows[order])
                if bool((taken + total > self.start[1:]).any()):
                    raise ChangedError()
                yield found, joint, member, self.seats[runs(taken, total)]
                taken += total

    def _joint(self, found: Counted) -> Ints:
        asked = [found.nodes[name] for name in self.names["sensitive"]]
        widths = [len(self.large[name].values) for name in self.names["sensitive"]]
        joint = found_among(self.known, asked, widths, len(self.known[0]) + len(found.rows))
        if bool((joint < 0).any()):
            raise ChangedError()
        return joint

    def unheld(self, shown: Sequence[Published]) -> Unheld:
        """The individuals, whose rows are not held: of each column only its values are."""
        labels = {made.name: ranks(self.large[made.name], made, self.nodes[made.name]) for made in shown}

        def portions() -> Iterator[Portion]:
            for found, _, member, bucket in self._taken(other=True):
                cells = [labels[column.name][found.nodes[column.name]] for column in shown]
                for some in steps(len(member), 1, AT_ONCE):
                    codes = [own[member[some]] for own in cells]
                    numbers = bucket[some].astype(np.int64) + 1
                    yield Portion([*codes, numbers], np.ones(len(numbers), dtype=np.int64))

        return Unheld(
            tuple(shown), tuple(column.name for column in shown), portions, self.large.room, self._split(labels)
        )

    def _split(self, labels: Mapping[str, NDArray[np.int32]]) -> list[NDArray[np.int32]]:
        """The quasi-identifiers of people who are too many for one portion."""
        names = self.names["quasi"]
        several = [self.large.elsewhere.count(self.nodes, of=names, within=box) for box, fits in self.boxes if not fits]
        return _labels_of([found.nodes for found in several], labels, names)

    def divergence(self, entries: Runs, value: NDArray[np.integer], people: NDArray[np.integer]) -> float:
        """The KL-divergence of the buckets; each entry has a joint value and people. See `holder.divergence`.

        A cell of quasi-identifiers and value has, of everybody who shows these quasi-identifiers, the share of the
        value in the bucket, divided by the combinations that show the same.
        """
        begin, values, parts = starts(entries.sizes), len(self.known[0]), []
        size = np.add.reduceat(people.astype(np.int64), begin[:-1])
        for found, joint, member, bucket in self._taken(other=False):
            quasi = [(found.nodes[name], len(self.large[name].values)) for name in self.names["quasi"]]
            cell, first = combine(quasi, len(found.rows))
            sums = SumsByKey(len(first) * values)
            for some in steps(len(member), max(1, int(entries.sizes.max()))):
                many, at = runs_of(begin, bucket[some])
                key = np.repeat(cell[member[some]].astype(np.int64) * values, many) + value[at]
                sums.add(key, people[at] / np.repeat(size[bucket[some]], many))
            keys, mass = sums.all()
            inferred = mass[np.searchsorted(keys, cell.astype(np.int64) * values + joint)]
            parts.append(float(np.sum(found.rows * np.log(inferred / self._area(found)))))
        return max(0.0, self.large.entropy + math.log(self.large.rows) - math.fsum(parts) / self.large.rows)

    def _area(self, found: Counted) -> Floats:
        """How many combinations of the domain show what each counted one does."""
        area = np.ones(len(found.rows))
        for column in self.large.quasi:
            level = self.levels.get(column.name, 0)
            if level:
                sizes = self.large.hierarchy(column.name).node_sizes(level, column.mask(self.large.domain))
                area *= sizes[found.nodes[column.name]]
        return area


def seats_of(member: NDArray[np.int32], bucket: NDArray[np.int32], values: int) -> NDArray[np.int32]:
    """The buckets of the seats of each value, (members,), value by value, those of a value in a random order."""
    order, start = sorted_by(narrowed(member), values)
    seats = bucket[order]
    del order
    for low, high in pairwise(start.tolist()):
        seats[low:high] = seats[low:high][fresh_order(high - low)]
    return seats
