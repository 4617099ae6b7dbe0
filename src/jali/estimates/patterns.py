"""Patterns: which truth values several tests of one column can have together, and how likely each is in a node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


class Patterns(NamedTuple):
    """The distinct truth patterns of some tests, and what of each node's cover has each of them."""

    truth: Bools  # (patterns, tests)
    share: Floats  # (patterns, nodes) each node's sum is 1; nan where nothing is known of a node but what is possible
    possible: Bools  # (patterns, nodes)


class Part(NamedTuple):
    """The same for some nodes."""

    nodes: Ints  # (some nodes,)
    truth: Bools  # (patterns, tests)
    share: Floats  # (patterns, some nodes)
    possible: Bools  # (patterns, some nodes)


def added(number: NDArray[np.integer], weight: Floats, size: int) -> Floats:
    """The sum of the weights of each number: (size,)."""
    return np.bincount(number, weight, minlength=size).astype(np.float64, copy=False)


def numbered(truth: Bools) -> tuple[Ints, Ints]:
    """Number the distinct rows of a truth table: the number of each row, and one row of each number."""
    rows, width = len(truth), (truth.shape[1] + 7) // 8 or 1
    if rows <= 64:  # the pieces between a few literals: quicker one by one
        found: dict[bytes, int] = {}
        short = [found.setdefault(row.tobytes(), len(found)) for row in truth]
        return np.array(short, dtype=np.int64), np.array([short.index(i) for i in range(len(found))], dtype=np.int64)
    packed = np.zeros((rows, width), dtype=np.uint8)
    if truth.shape[1]:
        packed[:] = np.packbits(truth, axis=1)
    kind = pa.binary(width)
    keys = pa.Array.from_buffers(kind, rows, [None, pa.py_buffer(packed.tobytes())])
    number = keys.dictionary_encode().indices.to_numpy(zero_copy_only=False).astype(np.int64)
    first = np.zeros(int(number.max(initial=-1)) + 1, dtype=np.int64)
    first[number[::-1]] = np.arange(rows - 1, -1, -1)
    return number, first


def merged(parts: Sequence[Part], nodes: int) -> Patterns:
    """The patterns of all nodes, from those of some each; a node with one pattern has it surely."""
    if len(parts) == 1:
        _, truth, share, possible = parts[0]
    else:
        every = np.concatenate([part.truth for part in parts])
        number, first = numbered(every)
        truth, shape, at = every[first], (len(first), nodes), 0
        share, possible = np.zeros(shape), np.zeros(shape, dtype=np.bool_)
        for part in parts:
            where = np.ix_(number[at : at + len(part.truth)], part.nodes)
            share[where] += part.share
            possible[where] |= part.possible
            at += len(part.truth)
    sure = possible.sum(axis=0) == 1
    return Patterns(truth, np.where(sure | ~possible, possible, share), possible)


def folded(number: Ints, share: Floats, possible: Bools) -> tuple[Floats, Bools]:
    """Rows of the same number made one, in the order of the numbers: their summed shares, and if any is possible."""
    order = np.argsort(number, kind="stable")
    first = np.flatnonzero(np.diff(number[order], prepend=-1))
    if len(first) == len(number):
        return share[order], possible[order]
    return np.add.reduceat(share[order], first, axis=0), np.logical_or.reduceat(possible[order], first, axis=0)
