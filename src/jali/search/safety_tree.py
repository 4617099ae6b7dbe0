"""Compiled tree of groups: the worst case of all of them together, kept up to date as groups come and go.

Each group is a leaf with two vectors, without and with the target of an attack; each inner node is the (min, ×)
convolution of its two children (see `principles.worst_case`). One change costs O(k² log groups).
"""
# mypy: disable-error-code="untyped-decorator,no-any-return"
# numba's decorator has no types, and so what a kernel calls returns Any.

from __future__ import annotations

import numpy as np

from jali.principles.counts import Floats
from jali.search.disclosure_kernels import FAR
from jali.search.jit import inner, outer

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
