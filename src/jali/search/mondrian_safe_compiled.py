"""Runs the compiled Mondrian under Safety: threads look ahead, and fractions answer where floats cannot decide."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from jali.principles.counts import Floats, Ints
from jali.principles.safety import Safety
from jali.principles.worst_case import Buckets, candidates
from jali.principles.worst_case_exact import MARGIN, least_ratio
from jali.progress import Step
from jali.search.compiled import prepare
from jali.search.mondrian_compiled import SMALL, numbered, run_tasks, work_of
from jali.search.mondrian_plan import Columns, Items, Mode, Similarity, Split
from jali.search.mondrian_rules import COLUMN, KIND, SAFETY, Rules

if TYPE_CHECKING:
    from jali.search.kernels import Work
    from jali.search.safety_kernels import Queue


def grow_safe_compiled(
    columns: Columns, items: Items, rules: Rules, judged: Ints, safety: Safety, *, mode: Mode, split: Split,
    threads: int, on_step: Step, similarity: Similarity = "box",
) -> tuple[Ints, int, int]:  # fmt: skip
    """The group of each item, how many groups there are, and how many candidate splits were judged."""
    from jali.search.safety_kernels import CHECKED, DONE, ENLARGE, NEAR, PEOPLE, VERDICT, grow_safely
    from jali.search.safety_tree import empty_tree, grown

    prepare(grow_safely, "the partitioning by safety")
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
    from jali.search.safety_kernels import LEAF, Queue, describe_all, look_ahead

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
    from jali.search.safety_kernels import GROUPS, LEAF
    from jali.search.safety_tree import FREE, TARGET

    others = np.delete(np.arange(queue.state[GROUPS]), queue.node[queue.heap[0], LEAF])
    vectors = tree[len(tree) // 2 + others]  # (others, 2, k + 1)
    few = others[candidates(vectors[:, FREE].T, vectors[:, TARGET].T, margin=MARGIN)]
    return exceeds(queue.row[np.append(queue.group[few], parts)], safety.k, safety.ratio)


def exceeds(rows: Ints, k: int, bound: Fraction) -> bool:
    """Whether the least ratio of groups, people and largest counts in a row each, exceeds the bound, exactly."""
    return least_ratio(Buckets(rows[:, 0], np.ascontiguousarray(rows[:, 1:].T)), k) > bound
