"""What a partitioning works on: the columns as it splits them, and the items that it puts into groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jali.core.arrays import Bools, Ints, combine, counted
from jali.encoding.hierarchy import Hierarchy
from jali.encoding.table import Column, Table
from jali.principles.counts import Counts

Mode = Literal["strict", "relaxed"]
Split = Literal["range", "entropy", "kl"]
MODES: tuple[Mode, ...] = ("strict", "relaxed")
SPLITS: tuple[Split, ...] = ("range", "entropy", "kl")
Similarity = Literal["box", "pdf"]
SIMILARITIES: tuple[Similarity, ...] = ("box", "pdf")


class Columns(NamedTuple):
    """The columns as they are split: places stand for codes, nodes for what covers them.

    In an ordered column the places are the codes. Under a taxonomy they follow the tree, the children of a node by
    their lowest code, so that whatever lies under a node is one run of places. `node[offset + level · size + place]`
    numbers the nodes of a level along the places, and `leaves` says how many values of the domain are under each; in
    an ordered column there is one row, in which node is the place's rank in the domain.
    """

    place: NDArray[np.int32]  # (columns, combinations)
    tree: Bools  # (columns,)
    width: Ints  # (columns,) values of the domain
    size: Ints  # (columns,) places
    offset: Ints  # (columns,)
    node: Ints  # (all rows of all columns,)
    leaves: Ints  # (all rows of all columns,)


def columns_of(table: Table) -> Columns:
    """The quasi-identifiers as they are split."""
    parts = [_layout(column, column.mask(table.domain)) for column in table.quasi]
    places = [place[codes] for (place, _, _), codes in zip(parts, table.frequencies.codes.T, strict=True)]
    return Columns(
        place=np.ascontiguousarray(np.stack(places).astype(np.int32)),
        tree=np.array([under_taxonomy(column) for column in table.quasi]),
        width=np.array([int(column.mask(table.domain).sum()) for column in table.quasi], dtype=np.int64),
        size=np.array([len(column.values) for column in table.quasi], dtype=np.int64),
        offset=np.cumsum([0, *(node.size for _, node, _ in parts[:-1])], dtype=np.int64),
        node=np.concatenate([node.ravel() for _, node, _ in parts]).astype(np.int64),
        leaves=np.concatenate([leaves.ravel() for _, _, leaves in parts]).astype(np.int64),
    )


def under_taxonomy(column: Column) -> bool:
    """Whether a column is split along a tree; every other one is split along the order of its values."""
    recipe = None if column.hierarchy is None else column.hierarchy.recipe
    return recipe is not None and recipe.family == "taxonomy"


def _layout(column: Column, mask: Bools) -> tuple[Ints, Ints, Ints]:
    """The place of each code, and nodes and leaves at each level of each place: (codes,), (levels, places) twice."""
    if column.hierarchy is None or not under_taxonomy(column):
        rank = np.cumsum(mask, dtype=np.int64)[None, :] - 1
        return np.arange(len(mask)), rank, np.ones_like(rank)
    return _along_the_tree(column.hierarchy, mask)


def _along_the_tree(hierarchy: Hierarchy, mask: Bools) -> tuple[Ints, Ints, Ints]:
    codes = np.arange(len(mask))
    lowest = []  # at each level, the lowest code under the node of each code
    for level, nodes in zip(hierarchy.levels, hierarchy.maps, strict=True):
        first = np.full(len(level), len(mask), dtype=np.int64)
        np.minimum.at(first, nodes, codes)
        lowest.append(first[nodes])
    order = np.lexsort(lowest)  # by the root, then the level below it, …, then the code
    place = np.empty_like(order)
    place[order] = codes
    node, leaves = [], []
    for first in lowest:
        along = first[order]
        number = np.cumsum(np.append(0, along[1:] != along[:-1]))
        node.append(number)
        leaves.append(counted(number, mask[order])[number])
    return place, np.stack(node), np.stack(leaves)


@dataclass(frozen=True, eq=False)
class Items:
    """What is put into groups: entries of combinations and values when strict, records when relaxed.

    They are sorted by combination, then value, then person or record, and keep that order in every group.
    """

    combination: Ints  # (items,)
    value: Ints  # (items,) joint value of the sensitive columns
    n: Ints  # (items,) people; 1 where persons are named, since they do not add up
    person: Ints | None  # (items,)
    whole: Counts  # everybody as one group
    record: Ints | None = None  # (items,) the record that each item is, when relaxed

    def __len__(self) -> int:
        return len(self.combination)

    def where(self, kept: Bools) -> Items:
        """Some of the items, in the same order."""
        person, record = (None if array is None else array[kept] for array in (self.person, self.record))
        return Items(self.combination[kept], self.value[kept], self.n[kept], person, self.whole, record)

    def counts(self, items: Ints, group: Ints, groups: int) -> Counts:
        """People by group and value, when each of these items is in the group beside it."""
        person = None if self.person is None else self.person[items]
        whole = self.whole
        return Counts(
            groups, group, self.value[items], self.n[items], whole.sensitive, whole.joint, person, whole
        )  # fmt: skip


def items_of(table: Table, mode: Mode) -> Items:
    """The items of a table: what a strict partitioning never divides, or what a relaxed one never does."""
    frequencies = table.frequencies
    whole = frequencies.counts(np.zeros(frequencies.combinations, dtype=np.int64), 1)
    if mode == "strict":
        return Items(frequencies.combination, frequencies.value, frequencies.people, frequencies.person, whole)
    joint, _ = combine([(c.codes, len(c.values)) for c in table.sensitive], table.records)
    combination = frequencies.row_combination.astype(np.int64)
    value = joint.astype(np.int64)
    record = np.argsort(combination * len(frequencies.joint) + value, kind="stable")
    alone = table.person is not None or table.multiplicity is None
    n = np.ones(table.records, dtype=np.int64) if alone else table.multiplicity
    assert n is not None  # told apart above
    person = None if table.person is None else table.person[record]
    return Items(combination[record], value[record], n[record], person, whole, record)
