"""Runs the compiled Mondrian: lays the items out for the kernels, and shares segments among threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from jali.core.arrays import Ints, starts
from jali.core.progress import Step
from jali.kernels.jit import prepare
from jali.principles.rules import Rules
from jali.search.mondrian.plan import SPLITS, Columns, Items, Mode, Similarity, Split

if TYPE_CHECKING:
    from jali.kernels.judge import Work

SMALL = 2048
"""Items of a segment that is split to the end in one task; in large tables a 64th of all."""

Task = Callable[[int, int], tuple[Ints, int, int]]  # a segment → edges left to split, candidates judged, people done


def grow_compiled(
    columns: Columns, items: Items, rules: Rules, judged: Ints, *, mode: Mode, split: Split, threads: int,
    on_step: Step, similarity: Similarity = "box",
) -> tuple[Ints, int, int]:  # fmt: skip
    """The group of each item, how many groups there are, and how many candidate splits were judged."""
    from jali.kernels.mondrian import grow

    prepare(grow, "the partitioning")
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
        column=np.stack([columns.tree, columns.width, columns.size, columns.offset]).astype(np.int64),
        node=np.stack([columns.node, columns.leaves]),
        rule=rules.rule,
        bound=rules.bound,
        counted=rules.counted,
        reference=rules.reference,
        option=np.array([rules.least, not strict, SPLITS.index(split) + (similarity == "pdf")], dtype=np.int64),
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
