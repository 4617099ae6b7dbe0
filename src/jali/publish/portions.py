"""Rows of a table beyond memory as they are published: in portions that its engine counts, when they are written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from jali.core.arrays import Bools, Ints, combine, counted, found_among
from jali.core.rows import Order
from jali.core.spill import Portion
from jali.encoding.large import Counted, LargeTable
from jali.encoding.table import Column, Table
from jali.releases.column import Published, publish_exact
from jali.releases.unheld import Unheld, among
from jali.search.trunk import Branch, Grown, Trunk, with_codes


def as_values(column: Column) -> Published:
    """A column that is published as it is, held as its values with the rows of each."""
    assert column.value_rows is not None
    used = np.flatnonzero(column.value_rows)
    return replace(publish_exact(replace(column, codes=used)), order=Order(column.value_rows[used]))


def ranks(column: Column) -> NDArray[np.int32]:
    """The label of each code of such a column."""
    return np.cumsum(column.present, dtype=np.int32) - np.int32(1)


def of_node(
    large: LargeTable, levels: Mapping[str, int], held: Table, made: Sequence[Published], hidden: Bools | None
) -> Unheld:
    """The rows of a table at a lattice node with all their columns.

    `made` are the columns that are held, as published of the records of a table, of which some are `hidden`.
    """
    nodes = large.nodes_at(levels)
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
    """The rows of the groups of a strict partition with all their columns, branch by branch of its trunk."""

    def __init__(
        self, large: LargeTable, trunk: Trunk, branches: Sequence[Branch], grown: Grown, threads: int | None
    ) -> None:
        self.large, self.trunk, self.branches, self.grown, self.threads = large, trunk, branches, grown, threads

    def _each(self) -> Iterator[tuple[dict[str, Ints], Ints, Ints]]:
        """Codes of each column, the group, and the rows, of distinct combinations; those of a group are in a branch."""
        large, quasi = self.large, [column.name for column in self.large.quasi]
        nodes = self.trunk.nodes | {column.name: np.arange(len(column.values)) for column in large.others}
        code_at = {name: np.argsort(own) for name, own in nodes.items()}
        widths = [len(large[name].values) for name in quasi]
        by = [column.name for column in large.others]
        for branch, piece in zip(self.branches, self.trunk.pieces(self.branches, other=False), strict=True):
            own, known = self.trunk.cut_of(piece, self.threads)[0], list(piece.frequencies.codes.T)
            one = np.unique(own, return_index=True)[1]
            first = [codes[one] for codes in known]
            number = found_among(list(self.grown.first.T), first, widths, self.grown.groups + len(one))
            for found in large.portions(nodes, by, self.trunk.root.within([branch])):
                codes = {name: code_at[name][found.nodes[name]] for name in nodes}
                asked = [codes[name] for name in quasi]
                at = found_among(known, asked, widths, len(own) + len(found.rows))
                yield codes, number[own[at]], found.rows

    def whole(self) -> Grown | None:
        """The groups with all columns, if their distinct rows fit, or are no more than without these columns."""
        room = max(self.large.room, self.grown.table.records)
        exact = [column for column in self.large.columns if column.role != "quasi"]
        kept: list[tuple[dict[str, Ints], Ints, Ints]] = []
        for codes, group, rows in self._each():
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
            for codes, of, rows in self._each():
                yield Portion([shown[name][of if name in quasi else codes[name]] for name in names], rows)

        return Unheld(others, names, portions, self.large.room, _twice([shown[column.name] for column in held.quasi]))


def _twice(cells: Sequence[NDArray[np.int32]]) -> list[NDArray[np.int32]]:
    """What several groups show; cells are by column, each (groups,)."""
    number, _ = combine([(own, int(own.max()) + 1) for own in cells], len(cells[0]))
    several = counted(number)[number] > 1
    return [own[several] for own in cells]
