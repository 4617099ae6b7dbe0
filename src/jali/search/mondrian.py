"""Mondrian: multidimensional partitioning of a table into groups that keep every promise.

A group is split as long as every part keeps every promise (LeFevre, DeWitt and Ramakrishnan 2006). The rules, which
`tests/oracles/mondrian.py` spells out:

* Columns in which a group has several values are tried in the order of `split`, equal ones in the order of the table;
  the first that allows a split is split.
* An **ordered** column (everything without a taxonomy; a missing value comes last) is cut between two values: at the
  cut that makes both halves most equal in people, of two such the lower. Where a principle forbids it, the next most
  equal cuts are tried, `CUTS` in all; k-anonymity alone never needs them.
* A column **under a taxonomy** is split into the children of the smallest node that covers the group's values;
  children without people are left out. In strict mode all of them must hold, since the box of two children joined is
  their parent, which would overlap the boxes of the others. In relaxed mode the children that fail are one part, and
  while it fails the smallest other child joins it.
* **Relaxed** partitioning first tries to halve an ordered column among the records that share a value, in the order
  of combinations, values and records. Boxes may then overlap.

Where persons are named, halves are made equal in entries, since people who have several do not add up; the promises
count people all the same.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from jali import kernels
from jali.core.arrays import Bools, Floats, Ints
from jali.core.progress import Step
from jali.encoding.table import Table
from jali.errors import InfeasibleError, InputError, nearest, one_of, told
from jali.kernels.jit import chosen, ready
from jali.principles.base import Combined, Principle, principles_of
from jali.principles.counts import Counts
from jali.principles.knowledge import Safety
from jali.principles.rules import COLUMN, KIND, SAFETY, UNKNOWN, Rules, rules_of
from jali.principles.worst_case import (
    MARGIN,
    Buckets,
    Key,
    candidates,
    keys_of,
    least_false,
    least_ratio,
    of_cells,
    targeted,
)
from jali.search.common import require_feasible
from jali.search.gate import recording
from jali.search.items import (
    MODES,
    SIMILARITIES,
    SMALL,
    SPLITS,
    Columns,
    Items,
    Mode,
    Similarity,
    Split,
    columns_of,
    grow_compiled,
    items_of,
    kernels_of_cuts,
    numbered,
    run_tasks,
    work_of,
)
from jali.search.splits import Judge, Splitter, grow, grow_in_order

if TYPE_CHECKING:
    from jali.kernels.judge import Work
    from jali.kernels.mondrian_safety import Queue


__all__ = ["Boxes", "Judge", "Mode", "Similarity", "Split", "mondrian"]


@dataclass(frozen=True, eq=False)
class Boxes:
    """Groups of a table's combinations, or of its records when they are relaxed, and the box that each fills."""

    groups: int
    group: Ints | None  # (combinations,) strict; -1 for one that was hidden
    row_group: Ints | None  # (records,) relaxed; -1 likewise
    people: Ints  # (groups,)
    low: NDArray[np.int32]  # (groups, columns) the lowest code of its members in each quasi-identifier
    high: NDArray[np.int32]  # (groups, columns) the highest
    checked: int  # candidate splits that were judged

    @property
    def mode(self) -> Mode:
        """Whether equal combinations are always together."""
        return "strict" if self.row_group is None else "relaxed"


def mondrian(
    table: Table,
    principles: Principle | Combined | Iterable[Principle | Combined],
    *,
    mode: Mode = "strict",
    split: Split = "range",
    similarity: Similarity = "box",
    threads: int | None = None,
    on_step: Step | None = None,
    judge: Judge | None = None,
    hidden: Bools | None = None,
    importance: Ints | None = None,
) -> Boxes:
    """Partition a table into groups that keep every promise, as small as the rules above make them.

    `split` says which column of a group is tried first: "range" the one that spans the largest part of its domain,
    "entropy" the one whose values are most uncertain, "kl" the one whose split lowers Σ n log(area / n), and so the
    KL-divergence of the release, most. There `similarity` says what the area of a group is: that of its box, or, with
    "pdf", exp of the sum of its columns' entropies, which is what a release that shows distributions loses. A `judge`
    looks at all groups at once and may forbid splits, as Safety does; groups are then split one at a time. The result
    is the same whatever the number of threads. Groups are numbered by their first combination; those that are `hidden`,
    (combinations,), are in none. `on_step` hears how many people are in finished groups, and of how many. `importance`,
    (columns,) in millionths of the least one's, multiplies what a cut of each column gains.
    """
    required = principles_of(principles)
    require_cuts(mode, split, similarity)
    if similarity == "pdf" and split != "kl":
        raise InputError(
            'similarity is what split="kl" compares groups by', got=f'split="{split}"', do='add split="kl"'
        )
    items = items_of(table, mode)
    require_feasible(required, items.whole, table.frequencies)
    if hidden is not None:
        items = items.where(~hidden[items.combination])
    shaped: Any = {"mode": mode, "split": split, "similarity": similarity, "threads": threads, "importance": importance}
    return _boxes(table, items, *cut(table, items, required, **shaped, on_step=on_step, judge=judge))


def cut(
    table: Table, items: Items, required: tuple[Principle, ...], *, mode: Mode, split: Split, similarity: Similarity,
    threads: int | None, importance: Ints | None, on_step: Step | None = None, judge: Judge | None = None,
) -> tuple[Ints, int, int]:  # fmt: skip
    """The group of each item of a table, how many groups there are, and how many candidate splits were judged."""
    workers, step = _threads(threads), on_step or (lambda done, total: None)
    compiled = None
    if judge is None and items.person is None and not (recording() and mode == "strict"):
        compiled = rules_of(required, items.whole, joint=split == "kl")
    safeties = safeties_of(required) if judge is None else []
    columns = columns_of(table, importance)
    few = len(items) <= kernels.FEW
    if compiled is None or len(safeties) > 1 or not (kernels_of_safety(few) if safeties else kernels_of_cuts(few)):
        splitter = Splitter(columns, items, required, mode=mode, split=split, similarity=similarity)
        return _generic(splitter, judge or judge_of(safeties, items.whole), step)
    shaped: Any = {"mode": mode, "split": split, "similarity": similarity, "on_step": step, "threads": workers}
    if safeties:
        return grow_safe_compiled(columns, items, *compiled, safeties[0], **shaped)
    return grow_compiled(columns, items, *compiled, **shaped)


def require_cuts(mode: Mode, split: Split, similarity: Similarity = "box") -> None:
    """Raise InputError for a way to cut that is not known."""
    _check("mode", mode, MODES)
    _check("split", split, SPLITS)
    _check("similarity", similarity, SIMILARITIES)


def _check(name: str, value: str, known: tuple[str, ...]) -> None:
    if not one_of(value, known):
        raise InputError(f'no {name} "{told(value)}"', do=nearest(value, known))


def _threads(threads: int | None) -> int:
    if threads is not None and (isinstance(threads, bool) or not isinstance(threads, int) or threads < 1):
        raise InputError("threads must be a whole number of at least 1", got=repr(told(threads)))
    if threads is not None:
        return threads
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# -- any principle ------------------------------------------------------------------------------------------------


def _generic(splitter: Splitter, judge: Judge | None, step: Step) -> tuple[Ints, int, int]:
    items = splitter.items
    found: list[Ints] = []
    done = 0

    def finished(group: Ints) -> None:
        nonlocal done
        found.append(group)
        done += int(items.n[group].sum())
        step(done, int(items.n.sum()))

    if judge is None:
        grow(splitter, np.arange(len(items)), finished)
    else:
        grow_in_order(splitter, judge, np.arange(len(items)), finished)
    if items.person is not None and len(found) == 1 and not bool(splitter.judged(found).all()):
        raise InfeasibleError(
            f"the rows as one group do not keep {', '.join(map(repr, splitter.principles))}, "
            "and no cut was found whose parts do; use generalize, which judges every node"
        )
    found.sort(key=lambda group: int(group[0]))
    number = np.empty(len(items), dtype=np.int64)
    for index, group in enumerate(found):
        number[group] = index
    return number, len(found), splitter.checked


def _boxes(table: Table, items: Items, number: Ints, groups: int, checked: int) -> Boxes:
    """The result, when each item is in the group of its number."""
    order = np.argsort(number, kind="stable")
    begins = np.searchsorted(number[order], np.arange(groups))
    codes = table.frequencies.codes[items.combination[order]]
    group = row_group = None
    if items.record is None:
        group = np.full(table.frequencies.combinations, -1)
        group[items.combination] = number
    else:
        row_group = np.full(table.records, -1)
        row_group[items.record] = number
    return Boxes(
        groups=groups,
        group=group,
        row_group=row_group,
        people=items.counts(np.arange(len(items)), number, groups).size,
        low=np.minimum.reduceat(codes, begins, axis=0),
        high=np.maximum.reduceat(codes, begins, axis=0),
        checked=checked,
    )


# -- Safety: each split judged against all other groups at once, generic and compiled -------------------------------


class SafetyJudge:
    """Allows a split as long as all groups together are safe; equal groups are judged once."""

    def __init__(self, safety: Safety, whole: Counts) -> None:
        from jali.kernels.mondrian_safety import empty_tree, grown, put, ratio_if

        worth = partial(chosen, what="the partitioning by safety", work=len(whole.group) * (safety.k + 1) ** 2)
        self._put, self._ratio_if, self._grown = worth(put), worth(ratio_if), grown
        self.safety, self.k, self.bound = safety, safety.k, safety.ratio
        self.tree = empty_tree(1, self.k)
        self.rows: list[Ints] = []  # people and largest counts of each leaf
        self.leaves: dict[Key, list[int]] = {}  # of the groups that are there now
        self._enter(*self._seen(whole))

    def _seen(self, counts: Counts) -> tuple[Buckets, Floats]:
        """Groups, and their vectors: (groups, 2, k + 1)."""
        buckets = of_cells(self.safety.cells(counts), self.k + 1)
        free = least_false(buckets, self.k + 1)
        return buckets, np.ascontiguousarray(np.stack([free[:-1].T, targeted(free, buckets).T], axis=1))

    def allows(self, group: Counts, parts: Counts) -> bool:
        """Whether all groups are safe once the group is split."""
        leaf = self.leaves[keys_of(self._seen(group)[0])[0]][-1]
        buckets, vectors = self._seen(parts)
        ratio, bound = self._ratio_if(self.tree, leaf, vectors), float(self.bound)
        if abs(ratio - bound) > MARGIN * bound:
            return bool(ratio > bound)
        others = [self.rows[other] for there in self.leaves.values() for other in there if other != leaf]
        together = np.array([*others, *np.vstack([buckets.size, buckets.top]).T], dtype=np.int64)
        together = together[together[:, 0] > 0]  # where nobody's value is known there is nothing to learn
        return least_ratio(Buckets(together[:, 0], together[:, 1:].T), self.k) > self.bound

    def commit(self, group: Counts, parts: Counts) -> None:
        """The group is gone and its parts are there."""
        key = keys_of(self._seen(group)[0])[0]
        leaf = self.leaves[key].pop()
        if not self.leaves[key]:
            del self.leaves[key]
        self._enter(*self._seen(parts), reuse=leaf)

    def _enter(self, buckets: Buckets, vectors: Floats, *, reuse: int | None = None) -> None:
        for index, key in enumerate(keys_of(buckets)):
            leaf = reuse if index == 0 and reuse is not None else len(self.rows)
            row = np.array(key, dtype=np.int64)
            if leaf == len(self.rows):
                self.rows.append(row)
            self.rows[leaf] = row
            if leaf >= len(self.tree) // 2:
                self.tree = self._grown(self.tree)
            self.leaves.setdefault(key, []).append(leaf)
            self._put(self.tree, leaf, vectors[index])


class Judges:
    """Several judges, all of whom must allow a split."""

    def __init__(self, judges: Sequence[Judge]) -> None:
        self.judges = judges

    def allows(self, group: Counts, parts: Counts) -> bool:
        """Whether every judge allows it."""
        return all(judge.allows(group, parts) for judge in self.judges)

    def commit(self, group: Counts, parts: Counts) -> None:
        """Tell every judge."""
        for judge in self.judges:
            judge.commit(group, parts)


def safeties_of(principles: Sequence[Principle]) -> list[Safety]:
    """The principles about all groups at once; partitioning knows how to judge Safety alone."""
    found = [p for p in principles if p.scope == "table"]
    for principle in found:
        if not isinstance(principle, Safety):
            raise InputError(
                f"{principle!r} cannot be partitioned: partitioning judges one sensitive column at a time",
                do="write Safety(c, k, sensitive=…) for each column, or generalize",
            )
    return [p for p in found if isinstance(p, Safety)]


def judge_of(principles: Sequence[Principle], whole: Counts) -> Judge | None:
    """The judge of the principles about all groups at once; None where there are none."""
    judges = [SafetyJudge(safety, whole) for safety in safeties_of(principles)]
    return Judges(judges) if judges else None


def kernels_of_safety(few: bool) -> bool:
    """Whether the kernels split under safety; with few items only where they are compiled already."""
    from jali.kernels.mondrian_safety import grow_safely

    return ready(grow_safely, "the partitioning by safety", little=few)


def grow_safe_compiled(
    columns: Columns, items: Items, rules: Rules, judged: Ints, safety: Safety, *, mode: Mode, split: Split,
    threads: int, on_step: Step, similarity: Similarity = "box",
) -> tuple[Ints, int, int]:  # fmt: skip
    """The group of each item, how many groups there are, and how many candidate splits were judged."""
    from jali.kernels.mondrian_safety import (
        CHECKED,
        DONE,
        ENLARGE,
        NEAR,
        PEOPLE,
        VERDICT,
        empty_tree,
        grow_safely,
        grown,
    )

    work = work_of(columns, items, rules, judged, mode=mode, split=split, similarity=similarity)
    column, unknown = rules.rule[[COLUMN, UNKNOWN]][:, rules.rule[KIND] == SAFETY][:, 0].tolist()
    total, half = int(work.entry[0, work.entry[1 + column] != unknown].sum()), 0  # people whose value is known

    def ahead(checked: int, people: int) -> None:
        nonlocal half
        half += people
        on_step(half // 2, total)

    queue = _looked_ahead(work, column, safety.k, threads, ahead)
    tree, parts, why = empty_tree(1, safety.k), np.empty(len(work.order) + 1, dtype=np.int64), -1
    while why != DONE:
        why, many = grow_safely(work, queue, tree, column, float(safety.ratio), parts)
        if why == ENLARGE:
            tree = grown(tree)
        elif why == NEAR:
            queue.state[VERDICT] = _allowed(queue, tree, parts[:many], safety)
        on_step((total + int(queue.state[PEOPLE])) // 2, total)
    number, groups = numbered(work)
    return (number[items.combination] if mode == "strict" else number), groups, int(queue.state[CHECKED])


def _looked_ahead(work: Work, column: int, k: int, threads: int, heard: Callable[[int, int], None]) -> Queue:
    """Every split that groups allow by themselves, found by all threads; nothing waits yet."""
    from jali.kernels.mondrian_safety import LEAF, Queue, describe_all, look_ahead

    units = len(work.order)
    queue = Queue(
        node=np.zeros((2 * units + 1, LEAF + 1), dtype=np.int64),
        row=np.zeros((2 * units + 1, k + 2), dtype=np.int64),
        group=np.zeros(units, dtype=np.int64),
        heap=np.zeros(units, dtype=np.int64),
        state=np.array([0, 0, 0, -1, 0], dtype=np.int64),
    )
    describe_all(work, queue, column)
    small = max(SMALL, units // 64)
    run_tasks(
        lambda lo, hi: look_ahead(work, queue, column, lo, hi, small), units, threads if units > small else 1, heard
    )
    return queue


def _allowed(queue: Queue, tree: Floats, parts: Ints, safety: Safety) -> bool:
    """Whether the group that comes next may be split into these parts, exactly."""
    from jali.kernels.mondrian_safety import FREE, GROUPS, LEAF, TARGET

    others = np.delete(np.arange(queue.state[GROUPS]), queue.node[queue.heap[0], LEAF])
    others, parts = others[queue.row[queue.group[others], 0] > 0], parts[queue.row[parts, 0] > 0]  # somebody is known
    vectors = tree[len(tree) // 2 + others]  # (others, 2, k + 1)
    few = others[candidates(vectors[:, FREE].T, vectors[:, TARGET].T, margin=MARGIN)]
    return exceeds(queue.row[np.append(queue.group[few], parts)], safety.k, safety.ratio)


def exceeds(rows: Ints, k: int, bound: Fraction) -> bool:
    """Whether the least ratio of groups, people and largest counts in a row each, exceeds the bound, exactly."""
    return least_ratio(Buckets(rows[:, 0], np.ascontiguousarray(rows[:, 1:].T)), k) > bound
