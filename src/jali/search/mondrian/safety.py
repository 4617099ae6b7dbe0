"""Mondrian under Safety: each split judged against all other groups at once, generic and compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from jali.core.arrays import Floats, Ints
from jali.core.progress import Step
from jali.errors import InputError
from jali.kernels.jit import chosen, ready
from jali.principles.base import Principle
from jali.principles.counts import Counts
from jali.principles.rules import COLUMN, KIND, SAFETY, Rules
from jali.principles.safety import Safety
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
from jali.search.mondrian.generic import Judge
from jali.search.mondrian.plan import SMALL, Columns, Items, Mode, Similarity, Split, numbered, run_tasks, work_of

if TYPE_CHECKING:
    from jali.kernels.judge import Work
    from jali.kernels.mondrian_safety import Queue


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
    column = int(rules.rule[COLUMN, rules.rule[KIND] == SAFETY][0])
    total, half = int(work.item[1].sum()), 0

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
    vectors = tree[len(tree) // 2 + others]  # (others, 2, k + 1)
    few = others[candidates(vectors[:, FREE].T, vectors[:, TARGET].T, margin=MARGIN)]
    return exceeds(queue.row[np.append(queue.group[few], parts)], safety.k, safety.ratio)


def exceeds(rows: Ints, k: int, bound: Fraction) -> bool:
    """Whether the least ratio of groups, people and largest counts in a row each, exceeds the bound, exactly."""
    return least_ratio(Buckets(rows[:, 0], np.ascontiguousarray(rows[:, 1:].T)), k) > bound
