"""Compiled Mondrian under Safety: the worst case of all groups, kept up to date as groups are split."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jali.core.arrays import Floats, Ints
from jali.kernels import judge as k
from jali.kernels.jit import inner, outer
from jali.kernels.judge import Desk, Work, heapsort
from jali.kernels.mondrian import bounds_of, close_group, desk_of, open_group, place, ranked, try_column
from jali.kernels.worst_case import FAR, free_vector, rank_seen
from jali.principles.rules import KIND, SAFETY
from jali.principles.rules import UNKNOWN as MISSING
from jali.principles.worst_case import MARGIN

# mypy: disable-error-code="untyped-decorator,no-any-return"
# numba's decorator has no types, and so what a kernel calls returns Any.


FREE, TARGET = range(2)
"""The two vectors of a node."""


@inner
def join(first: Floats, second: Floats, result: Floats) -> None:
    """The vectors of two nodes together: (2, k + 1) each."""
    atoms = first.shape[1]
    for m in range(atoms):
        result[FREE, m] = result[TARGET, m] = FAR
    for i in range(atoms):
        for j in range(atoms - i):
            result[FREE, i + j] = min(result[FREE, i + j], first[FREE, i] * second[FREE, j])
            aimed = min(first[TARGET, i] * second[FREE, j], first[FREE, i] * second[TARGET, j])
            result[TARGET, i + j] = min(result[TARGET, i + j], aimed)


@inner
def put_leaf(tree: Floats, leaf: int, vectors: Floats) -> None:
    """Set the vectors of a leaf; tree: (2 · leaves, 2, k + 1), the root at 1, the leaves in the upper half."""
    at = len(tree) // 2 + leaf
    for m in range(tree.shape[2]):
        tree[at, FREE, m], tree[at, TARGET, m] = vectors[FREE, m], vectors[TARGET, m]
    while at > 1:
        at //= 2
        join(tree[2 * at], tree[2 * at + 1], tree[at])


@inner
def ratio_with(tree: Floats, leaf: int, vectors: Floats, room: Floats) -> float:
    """The least ratio of all groups if a leaf had these vectors; room: (2, 2, k + 1)."""
    at, turn, k = len(tree) // 2 + leaf, 0, tree.shape[2] - 1
    for m in range(k + 1):
        room[0, FREE, m], room[0, TARGET, m] = vectors[FREE, m], vectors[TARGET, m]
    while at > 1:
        join(room[turn], tree[at ^ 1], room[1 - turn])
        at, turn = at // 2, 1 - turn
    return room[turn, TARGET, k]


def empty_tree(leaves: int, k: int) -> Floats:
    """A tree of absent groups; `leaves` is a power of two."""
    tree = np.ones((2 * leaves, 2, k + 1))
    tree[:, TARGET] = FAR
    return tree


def grown(tree: Floats) -> Floats:
    """The same groups in a tree of twice the size: what was the root is the root's first child."""
    leaves, k = len(tree) // 2, tree.shape[2] - 1
    larger = empty_tree(2 * leaves, k)
    at = 1
    while at <= leaves:
        larger[2 * at : 3 * at] = tree[at : 2 * at]
        at *= 2
    larger[1] = tree[1]
    return larger


@outer
def put(tree: Floats, leaf: int, vectors: Floats) -> None:
    """`put_leaf`, for Python."""
    put_leaf(tree, leaf, vectors)


@outer
def ratio_if(tree: Floats, leaf: int, parts: Floats) -> float:
    """The least ratio of all groups if a leaf were replaced by these parts: (parts, 2, k + 1)."""
    together, room = parts[0].copy(), np.empty((2, 2, parts.shape[2]))
    for p in range(1, len(parts)):
        join(together, parts[p], room[0])
        together[:] = room[0]
    return ratio_with(tree, leaf, together, room)


# mypy: disable-error-code="untyped-decorator,no-any-return"
# numba's decorator has no types, and so what a kernel calls returns Any.
# ruff: noqa: PLR0917
# Kernels call each other by position.


DONE, PAUSE, ENLARGE, NEAR = range(4)
"""Why the kernel returns: nothing is left, time to be heard, the tree is full, or floats cannot decide."""

BEGIN, END, FIRST_ITEM, CUT, TRIED, GAIN, SCALE, JUDGED, LEAF = range(9)
"""The columns of `Queue.node`."""

UNKNOWN, NOWHERE = -1, 0
"""Instead of where a node is cut first: not looked at yet, or no column allows a split."""

GROUPS, WAITING, PEOPLE, VERDICT, CHECKED = range(5)
"""The cells of `Queue.state`; a verdict is 1 allowed, 0 refused, -1 none."""

OFTEN = 1 << 18
"""Items looked at between two reports."""


class Queue(NamedTuple):
    """The groups that there are, those that they may be split into, and those that wait to be split.

    All of them are nodes. The first part of a split, and the whole table, has the number 2 · end, another part
    2 · begin + 1: no two splits cut at the same place.
    """

    node: Ints  # (2 · items + 1, 9): its segment, its first item, where it is cut first, how many columns were tried,
    #             the gain of the split, how many candidates were judged for it, its group
    row: Ints  # (2 · items + 1, k + 2) people of each node whose value is known, and its largest counts
    group: Ints  # (items,) the node of each group
    heap: Ints  # (items,) nodes that wait
    state: Ints  # (5,)


@inner
def _before(queue: Queue, a: int, b: int) -> bool:
    """Whether a node is split before another: by gain, then its first item."""
    n = queue.node
    left, right = n[a, GAIN] * n[b, SCALE], n[b, GAIN] * n[a, SCALE]
    if left != right:
        return left > right
    return n[a, FIRST_ITEM] < n[b, FIRST_ITEM]


@inner
def _push(queue: Queue, key: int) -> None:
    heap, at = queue.heap, queue.state[WAITING]
    queue.state[WAITING] += 1
    while at > 0 and _before(queue, key, heap[(at - 1) // 2]):
        heap[at] = heap[(at - 1) // 2]
        at = (at - 1) // 2
    heap[at] = key


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
def _describe(work: Work, desk: Desk, column: int, lo: int, hi: int, row: Ints) -> None:
    """People whose value is known and largest counts of a segment."""
    counts, seen, kinds, size = desk.counts[k.LEFT, column], desk.counts[k.SEEN, column], 0, 0
    unknown = -1
    for r in range(work.rule.shape[1]):
        if work.rule[KIND, r] == SAFETY:
            unknown = work.rule[MISSING, r]
    for i in range(lo, hi):
        item = work.order[i]
        for e in range(work.item[k.START, item], work.item[k.START, item + 1]):
            v, n = work.entry[1 + column, e], work.entry[0, e]
            if n == 0 or v == unknown:
                continue
            if counts[v] == 0:
                seen[kinds] = v
                kinds += 1
            counts[v] += n
            size += n
    upto = np.empty(len(row), np.int64)
    rank_seen(counts, seen[:kinds], upto, unknown)
    for i in range(kinds):
        counts[seen[i]] = 0
    row[0] = size
    for m in range(1, len(row)):
        row[m] = upto[m] - upto[m - 1]


@inner
def _vectors(row: Ints, vectors: Floats) -> None:
    """The vectors of a node without and with the target; of one in which nobody is known, those of no group."""
    atoms = vectors.shape[1]
    if row[0] == 0:
        vectors[FREE], vectors[TARGET] = 1.0, FAR
        return
    upto, free, best = np.zeros(atoms + 1, np.int64), np.empty(atoms + 1), np.empty((atoms + 1, atoms + 1))
    for m in range(1, atoms + 1):
        upto[m] = upto[m - 1] + row[m]
    free_vector(row[0], upto, best, free)
    for m in range(atoms):
        vectors[FREE, m], vectors[TARGET, m] = free[m], free[m + 1] * (row[0] / upto[1])


@inner
def _split(work: Work, desk: Desk, queue: Queue, column: int, key: int, edges: Ints) -> int:
    """Find the next split that a node allows by itself, and describe its parts; how many it has, 1 if there is none."""
    node, parts, before = queue.node, 1, desk.checked[0]
    lo, hi = node[key, BEGIN], node[key, END]
    size = bounds_of(work, lo, hi, desk.bounds[k.LOW], desk.bounds[k.HIGH])
    if hi - lo > 1 and size >= 2 * work.option[k.LEAST]:
        gain, scale = np.empty(len(work.place), np.int64), np.empty(len(work.place), np.int64)
        open_group(work, desk, lo, hi)
        order = ranked(work, desk, lo, hi, size, gain, scale, edges)
        while parts == 1 and node[key, TRIED] < len(order):
            a = order[node[key, TRIED]]
            node[key, TRIED] += 1
            parts = try_column(work, desk, a, lo, hi, size)
            node[key, GAIN], node[key, SCALE] = gain[a], scale[a]
        close_group(work, desk)
    node[key, JUDGED], node[key, CUT] = desk.checked[0] - before, NOWHERE
    if parts == 1:
        return parts
    node[key, FIRST_ITEM] = work.order[lo]
    place(work, desk, lo, hi, parts, edges)
    node[key, CUT] = edges[1]
    for p in range(parts):
        part = 2 * edges[p] + 1 if p else 2 * edges[1]
        node[part, BEGIN], node[part, END] = edges[p], edges[p + 1]
        node[part, CUT], node[part, TRIED] = UNKNOWN, 0
        _describe(work, desk, column, edges[p], edges[p + 1], queue.row[part])
    return parts


@inner
def _parts(queue: Queue, key: int, parts: Ints) -> int:
    """The nodes into which a node is split, and how many they are."""
    node, many = queue.node, 1
    parts[0] = 2 * node[key, CUT]
    while node[parts[many - 1], END] < node[key, END]:
        parts[many] = 2 * node[parts[many - 1], END] + 1
        many += 1
    return many


@outer
def look_ahead(work: Work, queue: Queue, column: int, lo: int, hi: int, small: int) -> tuple[Ints, int, int]:
    """Split the node of a segment as often as each part allows, or once only if it has more items than `small`.

    Returns what `mondrian_kernels.grow` does: the edges of what is left to be split, the candidate splits judged, and
    the people in nodes that allow none.
    """
    desk, node = desk_of(work, hi - lo), queue.node
    edges, stack = np.empty(hi - lo + 2, np.int64), np.empty(hi - lo + 1, np.int64)
    stack[0] = 2 * hi if node[2 * hi, BEGIN] == lo and node[2 * hi, END] == hi else 2 * lo + 1
    waiting, finished = 1, 0
    while waiting:
        waiting -= 1
        key = stack[waiting]
        begin, end = node[key, BEGIN], node[key, END]
        parts = _split(work, desk, queue, column, key, edges)
        if parts == 1:
            finished += queue.row[key, 0]
        elif end - begin > small:
            return edges[: parts + 1].copy(), desk.checked[0], finished
        else:
            waiting += _parts(queue, key, stack[waiting:])
    return edges[:0].copy(), desk.checked[0], finished


@inner
def _enter(work: Work, desk: Desk, queue: Queue, column: int, key: int, edges: Ints) -> None:
    """Let a node wait with the next split that it allows by itself, or finish it."""
    if queue.node[key, CUT] == UNKNOWN:
        _split(work, desk, queue, column, key, edges)
    queue.state[CHECKED] += queue.node[key, JUDGED]
    if queue.node[key, CUT] == NOWHERE:
        work.level[queue.node[key, BEGIN]] = 1
        queue.state[PEOPLE] += queue.row[key, 0]
    else:
        _push(queue, key)


@outer
def describe_all(work: Work, queue: Queue, column: int) -> None:
    """Make the whole table the first node."""
    items = len(work.order)
    queue.node[2 * items, END], queue.node[2 * items, CUT] = items, UNKNOWN
    _describe(work, desk_of(work, items), column, 0, items, queue.row[2 * items])


@outer
def grow_safely(work: Work, queue: Queue, tree: Floats, column: int, bound: float, parts: Ints) -> tuple[int, int]:
    """Split groups until nothing more is allowed, or there is something to say: why, and how many parts it is about.

    column: the judged column of Safety; bound: what the least ratio of all groups must exceed. The nodes of the parts
    that are judged are written into `parts`: (items + 1,).
    """
    node, atoms, looked = queue.node, tree.shape[2], 0
    desk, edges = desk_of(work, len(work.order)), np.empty(len(work.order) + 2, np.int64)
    room = np.empty((3, 2, atoms))
    if queue.state[GROUPS] == 0:
        queue.state[GROUPS], queue.group[0] = 1, 2 * len(work.order)
        _vectors(queue.row[queue.group[0]], room[2])
        put_leaf(tree, 0, room[2])
        _enter(work, desk, queue, column, queue.group[0], edges)
    while queue.state[WAITING]:
        if looked > OFTEN:
            return PAUSE, 0
        key = queue.heap[0]
        lo, hi, leaf = node[key, BEGIN], node[key, END], node[key, LEAF]
        looked += hi - lo
        many = _parts(queue, key, parts)
        vectors = np.empty((many, 2, atoms))
        for p in range(many):
            _vectors(queue.row[parts[p]], vectors[p])
        allowed = queue.state[VERDICT] == 1
        if queue.state[VERDICT] == -1:
            room[2, :, :] = vectors[0]
            for p in range(1, many):
                join(room[2], vectors[p], room[0])
                room[2, :, :] = room[0]
            ratio = ratio_with(tree, leaf, room[2], room)
            if abs(ratio - bound) <= MARGIN * bound:
                return NEAR, many
            allowed = ratio > bound
        if allowed and queue.state[GROUPS] + many - 1 > len(tree) // 2:
            queue.state[VERDICT] = 1
            return ENLARGE, 0
        queue.state[VERDICT] = -1
        _pop(queue)
        if not allowed:
            heapsort(work.order[lo:hi], hi - lo)
            node[key, CUT] = UNKNOWN
            _enter(work, desk, queue, column, key, edges)
            continue
        for p in range(many):
            number = leaf if p == 0 else queue.state[GROUPS]
            queue.state[GROUPS] += p > 0
            node[parts[p], LEAF], queue.group[number] = number, parts[p]
            put_leaf(tree, number, vectors[p])
            _enter(work, desk, queue, column, parts[p], edges)
    return DONE, 0
