"""Compiled cuts into equal halves: which column of a node is cut, and who comes into which half.

Nodes of one size follow each other in one array of people. A kernel reads quasi-identifiers alone.
"""
# mypy: disable-error-code="untyped-decorator,no-any-return"
# numba's decorator has no types, and so what a kernel calls returns Any.
# ruff: noqa: PLR0917
# Kernels call each other by position.

from __future__ import annotations

from math import floor, log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jali.core.arrays import ONE, Ints
from jali.kernels import DIGITS
from jali.kernels.jit import inner, outer
from jali.kernels.judge import heapsort

TREE, VALUES, OFFSET, WIDTH, IMPORTANCE = range(5)
NODE, LEAVES = range(2)


class Ground(NamedTuple):
    """The quasi-identifiers of everybody; see `Columns`."""

    combination: NDArray[np.int32]  # (people,)
    place: NDArray[np.int32]  # (columns, combinations)
    column: Ints  # (5, columns): whether it has a tree, its values, where its nodes begin, values of the domain, weight
    node: Ints  # (2, …): nodes, and the leaves under them


@outer
def cut_equally(
    ground: Ground, order: NDArray[np.int32], size: int, by_range: bool, sorting: bool, uncut: NDArray[np.bool_]
) -> None:
    """Put the lower half of each node of that size first; say which nodes have one combination only.

    With `sorting` a node is left in the order of the column that was cut, so that the next cut of it divides people
    with the same value as this one has put them.
    """
    key, best, room = np.empty(size, dtype=np.int32), np.empty(size, dtype=np.int32), np.empty(size, dtype=np.int32)
    own = room  # combinations, until people are put into order
    for i in range(len(uncut)):
        node = order[i * size : (i + 1) * size]
        most, middle = -1, 0
        for j in range(size):
            own[j] = ground.combination[node[j]]
        for a in range(ground.place.shape[0]):
            low = high = ground.place[a, own[0]]
            for j in range(size):
                key[j] = ground.place[a, own[j]]
                low, high = min(low, key[j]), max(high, key[j])
            if low == high:
                continue
            last, first = _middle(key, size, low, high)
            gain = _part(ground, a, low, high) if by_range else _gain(ground, a, low, last, first, high)
            if gain > most:
                most, middle = gain, last
                key, best = best, key
        uncut[i] = most < 0
        if most >= 0 and sorting:
            _sort(node, best, room, size)
        elif most >= 0:
            _divide(node, best, room, middle, size)


@inner
def _middle(key: NDArray[np.int32], size: int, low: int, high: int) -> tuple[int, int]:
    """The last key of the lower half and the first of the upper one."""
    if high - low < 4 * size + 64:  # counting beats sorting where most keys occur
        many = np.zeros(high - low + 1, dtype=np.int64)
        for j in range(size):
            many[key[j] - low] += 1
        at, upto = 0, many[0]
        while upto < size // 2:
            at += 1
            upto += many[at]
        last = at
        while upto < size // 2 + 1:
            at += 1
            upto += many[at]
        return low + last, low + at
    ranked = key[:size].copy()
    heapsort(ranked, size)
    return ranked[size // 2 - 1], ranked[size // 2]


@inner
def _sort(node: NDArray[np.int32], key: NDArray[np.int32], room: NDArray[np.int32], size: int) -> None:
    """Put people into the order of their keys; those with the same key keep theirs."""
    low, high = key[:size].min(), key[:size].max()
    if high - low < 4 * size + 64:
        begin = np.zeros(high - low + 2, dtype=np.int64)
        for j in range(size):
            begin[key[j] - low + 1] += 1
        for at in range(1, len(begin)):
            begin[at] += begin[at - 1]
        for j in range(size):
            room[begin[key[j] - low]] = node[j]
            begin[key[j] - low] += 1
    else:
        turn = np.argsort(key[:size], kind="mergesort")
        for j in range(size):
            room[j] = node[turn[j]]
    for j in range(size):
        node[j] = room[j]


@inner
def _gain(ground: Ground, a: int, low: int, last: int, first: int, high: int) -> int:
    """By how much the logarithm of both halves' spans in a column is smaller than that of the node, to nine digits."""
    whole = _span(ground, a, low, high)
    halves = log(_span(ground, a, low, last)) + log(_span(ground, a, first, high))
    return floor((2 * log(whole) - halves) * (ground.column[IMPORTANCE, a] / ONE) * DIGITS + 0.5)


@inner
def _part(ground: Ground, a: int, low: int, high: int) -> int:
    """The part of a column's domain that a node spans, to nine digits."""
    part = (_span(ground, a, low, high) - 1) / max(ground.column[WIDTH, a] - 1, 1)
    return floor(part * (ground.column[IMPORTANCE, a] / ONE) * DIGITS + 0.5)


@inner
def _span(ground: Ground, a: int, low: int, high: int) -> int:
    """How many values of the domain lie between two places, or under the smallest node that covers them."""
    at = ground.column[OFFSET, a]
    if not ground.column[TREE, a]:
        return ground.node[NODE, at + high] - ground.node[NODE, at + low] + 1
    while ground.node[NODE, at + low] != ground.node[NODE, at + high]:
        at += ground.column[VALUES, a]
    return ground.node[LEAVES, at + low]


@inner
def _divide(node: NDArray[np.int32], key: NDArray[np.int32], room: NDArray[np.int32], middle: int, size: int) -> None:
    """Those below the middle key go to the lower half, and of those who have it the first ones until it is full."""
    below = 0
    for j in range(size):
        below += key[j] < middle
    equal, lower, upper = size // 2 - below, 0, size // 2
    for j in range(size):
        if key[j] < middle or (key[j] == middle and equal > 0):
            equal -= key[j] == middle
            room[lower] = node[j]
            lower += 1
        else:
            room[upper] = node[j]
            upper += 1
    for j in range(size):
        node[j] = room[j]
