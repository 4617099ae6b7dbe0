"""What a partitioning works on: the columns as it splits them, the items that it puts into groups, and both as arrays.

Compiled loops take the arrays; segments of the items are shared among threads.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jali.core.arrays import ONE, Bools, Ints, combine, counted, starts
from jali.core.progress import Step
from jali.encoding.hierarchy import TREES, Hierarchy
from jali.encoding.table import Column, Table
from jali.principles.counts import Counts
from jali.principles.rules import Rules

if TYPE_CHECKING:
    from jali.kernels.judge import Work

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
    importance: Ints | None = None  # (columns,) millionths of the least one's; None where all are alike

    @property
    def weights(self) -> Ints:
        """The importance of each column, also where all are alike: (columns,)."""
        return np.full(len(self.tree), ONE) if self.importance is None else self.importance


def columns_of(table: Table, importance: Ints | None = None, codes: Ints | None = None) -> Columns:
    """The quasi-identifiers as they are split; `codes`, (combinations, columns), where not those of the table."""
    parts = [_layout(column, column.mask(table.domain)) for column in table.quasi]
    own = table.frequencies.codes if codes is None else codes
    places = [place[each] for (place, _, _), each in zip(parts, own.T, strict=True)]
    return Columns(
        place=np.ascontiguousarray(np.stack(places).astype(np.int32)),
        tree=np.array([under_taxonomy(column) for column in table.quasi]),
        width=np.array([int(column.mask(table.domain).sum()) for column in table.quasi], dtype=np.int64),
        size=np.array([len(column.values) for column in table.quasi], dtype=np.int64),
        offset=np.cumsum([0, *(node.size for _, node, _ in parts[:-1])], dtype=np.int64),
        node=np.concatenate([node.ravel() for _, node, _ in parts]).astype(np.int64),
        leaves=np.concatenate([leaves.ravel() for _, _, leaves in parts]).astype(np.int64),
        importance=importance,
    )


def places_of(table: Table) -> dict[str, Ints]:
    """The place of each code of each quasi-identifier, in whose order it is cut: (codes,) each."""
    return {column.name: _layout(column, column.mask(table.domain))[0] for column in table.quasi}


def under_taxonomy(column: Column) -> bool:
    """Whether a column is split along a tree; every other one is split along the order of its values."""
    recipe = None if column.hierarchy is None else column.hierarchy.recipe
    return recipe is not None and recipe.family in TREES


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

    They are sorted by combination, then value, then person, or other columns and record, and keep that order in every
    group.
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
        """People by group and value; `group` has the group of each of the items."""
        person = None if self.person is None else self.person[items]
        whole = self.whole
        return Counts(groups, group, self.value[items], self.n[items], whole.sensitive, whole.joint, person, whole)


def items_of(table: Table, mode: Mode) -> Items:
    """The items of a table: what a strict partitioning never divides, or what a relaxed one never does."""
    frequencies = table.frequencies
    whole = frequencies.whole
    if mode == "strict":
        return Items(frequencies.combination, frequencies.value, frequencies.people, frequencies.person, whole)
    joint, _ = combine([(c.codes, len(c.values)) for c in table.sensitive], table.records)
    combination = frequencies.row_combination.astype(np.int64)
    value = joint.astype(np.int64)
    others = [c.codes for role in ("identifier", "other") for c in reversed(table.of_role(role))]
    record = np.lexsort([*others, combination * len(frequencies.joint) + value])
    alone = table.person is not None or table.multiplicity is None
    n = np.ones(table.records, dtype=np.int64) if alone else table.multiplicity
    assert n is not None  # tested above
    person = None if table.person is None else table.person[record]
    return Items(combination[record], value[record], n[record], person, whole, record)


SMALL = 2048
"""Items of a segment that is split to the end in one task; in large tables a 64th of all."""

Task = Callable[[int, int], tuple[Ints, int, int]]  # a segment → edges left to split, candidates judged, people done


def kernels_of_cuts(few: bool) -> bool:
    """Whether the kernels split; with few items only where they are compiled already."""
    from jali.kernels.jit import ready
    from jali.kernels.mondrian import grow

    return ready(grow, "the partitioning", little=few)


def grow_compiled(
    columns: Columns, items: Items, rules: Rules, judged: Ints, *, mode: Mode, split: Split, threads: int,
    on_step: Step, similarity: Similarity = "box",
) -> tuple[Ints, int, int]:  # fmt: skip
    """The group of each item, how many groups there are, and how many candidate splits were judged."""
    from jali.kernels.mondrian import grow

    work = work_of(columns, items, rules, judged, mode=mode, split=split, similarity=similarity)
    units, total = len(work.order), int(work.item[1].sum())
    checked = done = 0
    small = max(SMALL, units // 64)

    def heard(now_checked: int, now_done: int) -> None:
        nonlocal checked, done
        checked, done = checked + now_checked, done + now_done
        on_step(done, total)

    run_tasks(lambda lo, hi: grow(work, lo, hi, small), units, threads if units > small else 1, heard)
    number, groups = numbered(work)
    return (number[items.combination] if mode == "strict" else number), groups, checked


def work_of(
    columns: Columns, items: Items, rules: Rules, judged: Ints, *, mode: Mode, split: Split, similarity: Similarity
) -> Work:
    """The items and rules as the kernels take them, everything in one group."""
    from jali.kernels.judge import Work

    strict = mode == "strict"  # then a combination's entries are moved together
    units = columns.place.shape[1] if strict else len(items)
    start = np.searchsorted(items.combination, np.arange(units + 1)) if strict else np.arange(units + 1)
    upto = starts(items.n)
    people = upto[start[1:]] - upto[start[:-1]]
    order = np.flatnonzero(np.diff(start))  # hidden combinations have no items
    work = Work(
        item=np.stack([np.append(np.arange(units) if strict else items.combination, 0), np.append(people, 0), start]),
        entry=np.ascontiguousarray(np.concatenate([items.n[None, :], judged[:, items.value]])),
        place=columns.place,
        column=np.stack([columns.tree, columns.width, columns.size, columns.offset, columns.weights]).astype(np.int64),
        node=np.stack([columns.node, columns.leaves]),
        rule=rules.rule,
        bound=rules.bound,
        counted=rules.counted,
        reference=rules.reference,
        option=np.array(
            [rules.least, not strict, SPLITS.index(split) + (similarity == "pdf"), columns.importance is not None],
            dtype=np.int64,
        ),
        order=order,
        level=np.zeros(len(order), dtype=np.int64),
    )
    work.level[0] = 1
    return work


def numbered(work: Work) -> tuple[Ints, int]:
    """The group of each item, groups numbered by their first item, which begins its segment; and how many."""
    begins = work.level > 0
    first = work.order[begins]
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    number = np.empty(work.item.shape[1] - 1, dtype=np.int64)
    number[work.order] = rank[np.cumsum(begins) - 1]
    return number, len(first)


def run_tasks(task: Task, units: int, threads: int, heard: Callable[[int, int], None]) -> None:
    """Run the task on the whole, then on every segment it leaves, whichever thread is free."""
    if threads == 1:
        waiting = [(0, units)]
        while waiting:
            edges, checked, done = task(*waiting.pop())
            waiting += pairwise(edges.tolist())
            heard(checked, done)
        return
    pool = ThreadPoolExecutor(threads)
    try:
        running: set[Future[tuple[Ints, int, int]]] = {pool.submit(task, 0, units)}
        while running:
            ready, running = wait(running, return_when=FIRST_COMPLETED)
            for future in ready:
                edges, checked, done = future.result()
                running |= {pool.submit(task, lo, hi) for lo, hi in pairwise(edges.tolist())}
                heard(checked, done)
    finally:
        pool.shutdown(cancel_futures=True)
