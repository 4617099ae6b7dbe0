"""Compiled Mondrian under Safety: groups are split one at a time, the largest gain first, as all together allow.

The rules are those of `mondrian_generic.grow_in_order`. A group waits with the first split that its columns allow when
it is judged by itself: its items stand part by part already. Where that split is refused, its items are sorted again
and its next column is tried.
"""
# mypy: disable-error-code="untyped-decorator,no-any-return"
# numba's decorator has no types, and so what a kernel calls returns Any.
# ruff: noqa: PLR0917
# Kernels call each other by position.

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jali.principles.counts import Bools, Floats, Ints
from jali.principles.worst_case_exact import MARGIN
from jali.search import kernels as k
from jali.search.disclosure_kernels import free_vector, rank_seen
from jali.search.jit import inner, njit
from jali.search.kernels import Desk, Work, heapsort
from jali.search.mondrian_kernels import bounds_of, close_group, open_group, place, ranked
from jali.search.mondrian_splits import try_column
from jali.search.safety_tree import FREE, TARGET, join, put_leaf, ratio_with

DONE, PAUSE, ENLARGE, NEAR = range(4)
"""Why the kernel returns: nothing is left, time to be heard, the tree is full, or floats cannot decide."""

FIRST_ITEM, COLUMN, TRIED, GAIN, SCALE, BEGIN, END = range(7)
"""The rows of `Queue.group`."""

GROUPS, WAITING, PEOPLE, VERDICT = range(4)
"""The cells of `Queue.state`; a verdict is 1 allowed, 0 refused, -1 none."""

OFTEN = 1 << 18
"""Items looked at between two reports."""


class Queue(NamedTuple):
    """The groups, and those of them that wait to be split."""

    group: Ints  # (7, items): its first item, the column of its split and how many were tried, the gain, its segment
    heap: Ints  # (items,) groups that wait
    part: Bools  # (items + 1,) where a part of a waiting split begins
    row: Ints  # (items, k + 2) people of each group and its largest counts
    state: Ints  # (4,)


@inner
def _before(queue: Queue, a: int, b: int) -> bool:
    """Whether a group is split before another: by gain, then its first item."""
    g = queue.group
    left, right = g[GAIN, a] * g[SCALE, b], g[GAIN, b] * g[SCALE, a]
    if left != right:
        return left > right
    return g[FIRST_ITEM, a] < g[FIRST_ITEM, b]


@inner
def _push(queue: Queue, group: int) -> None:
    heap, at = queue.heap, queue.state[WAITING]
    queue.state[WAITING] += 1
    while at > 0 and _before(queue, group, heap[(at - 1) // 2]):
        heap[at] = heap[(at - 1) // 2]
        at = (at - 1) // 2
    heap[at] = group


@inner
def _pop(queue: Queue) -> None:
    heap = queue.heap
    queue.state[WAITING] -= 1
    size = queue.state[WAITING]
    last, at = heap[size], 0
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and _before(queue, heap[child + 1], heap[child]):
            child += 1
        if not _before(queue, heap[child], last):
            break
        heap[at] = heap[child]
        at = child
    heap[at] = last


@inner
def _enter(work: Work, desk: Desk, queue: Queue, group: int, edges: Ints) -> None:
    """Let a group wait with the next split that it allows by itself, or finish it."""
    lo, hi = queue.group[BEGIN, group], queue.group[END, group]
    size = bounds_of(work, lo, hi, desk.bounds[k.LOW], desk.bounds[k.HIGH])
    parts = 1
    if hi - lo > 1 and size >= 2 * work.option[k.LEAST]:
        gain, scale = np.empty(len(work.place), np.int64), np.empty(len(work.place), np.int64)
        open_group(work, desk, lo, hi)
        order = ranked(work, desk, lo, hi, size, gain, scale, edges)
        while parts == 1 and queue.group[TRIED, group] < len(order):
            a = order[queue.group[TRIED, group]]
            queue.group[TRIED, group] += 1
            parts = try_column(work, desk, a, lo, hi, size)
            queue.group[COLUMN, group], queue.group[GAIN, group], queue.group[SCALE, group] = a, gain[a], scale[a]
        close_group(work, desk)
    if parts == 1:
        work.level[lo] = 1
        queue.state[PEOPLE] += size
        return
    queue.group[FIRST_ITEM, group] = work.order[lo]
    place(work, desk, lo, hi, parts, edges)
    for p in range(parts):
        queue.part[edges[p]] = True
    _push(queue, group)


@inner
def _describe(work: Work, desk: Desk, column: int, lo: int, hi: int, row: Ints, vectors: Floats) -> None:
    """People and largest counts of a segment, and its vectors without and with the target."""
    counts, seen, kinds, size = desk.counts[k.LEFT, column], desk.counts[k.SEEN, column], 0, 0
    for i in range(lo, hi):
        item = work.order[i]
        for e in range(work.item[k.START, item], work.item[k.START, item + 1]):
            v, n = work.entry[1 + column, e], work.entry[0, e]
            if n == 0:
                continue
            if counts[v] == 0:
                seen[kinds] = v
                kinds += 1
            counts[v] += n
            size += n
    atoms = vectors.shape[1]
    upto, free, best = np.empty(atoms + 1, np.int64), np.empty(atoms + 1), np.empty((atoms + 1, atoms + 1))
    rank_seen(counts, seen[:kinds], upto)
    for i in range(kinds):
        counts[seen[i]] = 0
    free_vector(size, upto, best, free)
    row[0] = size
    for m in range(atoms):
        row[1 + m] = upto[m + 1] - upto[m]
        vectors[FREE, m], vectors[TARGET, m] = free[m], free[m + 1] * (size / upto[1])


@njit(cache=True, nogil=True, error_model="numpy", no_cfunc_wrapper=True)
def grow_safely(  # noqa: PLR0912  # one branch a reason to return
    work: Work, desk: Desk, queue: Queue, tree: Floats, column: int, bound: float, near: Ints
) -> tuple[int, int]:
    """Split groups until nothing more is allowed, or there is something to say: why, and how many parts it is about.

    column: the judged column of Safety; bound: what the least ratio of all groups must exceed. Parts whose ratio is too
    near to it to decide are written into `near`: (items, k + 2).
    """
    atoms, looked = tree.shape[2], 0
    edges, room = np.empty(len(work.order) + 2, np.int64), np.empty((3, 2, atoms))
    if queue.state[GROUPS] == 0:
        queue.state[GROUPS] = 1
        _describe(work, desk, column, 0, len(work.order), queue.row[0], room[2])
        put_leaf(tree, 0, room[2])
        _enter(work, desk, queue, 0, edges)
    while queue.state[WAITING]:
        if looked > OFTEN:
            return PAUSE, 0
        group = queue.heap[0]
        lo, hi = queue.group[BEGIN, group], queue.group[END, group]
        looked += hi - lo
        parts = 0
        for i in range(lo, hi):
            if queue.part[i]:
                edges[parts] = i
                parts += 1
        edges[parts] = hi
        vectors = np.empty((parts, 2, atoms))
        for p in range(parts):
            _describe(work, desk, column, edges[p], edges[p + 1], near[p], vectors[p])
        allowed = queue.state[VERDICT] == 1
        if queue.state[VERDICT] == -1:
            room[2, :, :] = vectors[0]
            for p in range(1, parts):
                join(room[2], vectors[p], room[0])
                room[2, :, :] = room[0]
            ratio = ratio_with(tree, group, room[2], room)
            if abs(ratio - bound) <= MARGIN * bound:
                return NEAR, parts
            allowed = ratio > bound
        if allowed and queue.state[GROUPS] + parts - 1 > len(tree) // 2:
            queue.state[VERDICT] = 1
            return ENLARGE, 0
        queue.state[VERDICT] = -1
        _pop(queue)
        for p in range(parts):
            queue.part[edges[p]] = False
        if not allowed:
            heapsort(work.order[lo:hi], hi - lo)
            _enter(work, desk, queue, group, edges)
            continue
        bounds = edges[: parts + 1].copy()
        for p in range(parts):
            number = group if p == 0 else queue.state[GROUPS]
            queue.state[GROUPS] += p > 0
            queue.group[BEGIN, number], queue.group[END, number] = bounds[p], bounds[p + 1]
            queue.group[TRIED, number] = 0
            for m in range(atoms + 1):
                queue.row[number, m] = near[p, m]
            put_leaf(tree, number, vectors[p])
            _enter(work, desk, queue, number, edges)
    return DONE, 0
