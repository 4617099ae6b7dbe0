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
    """The same for some nodes; patterns may stand here twice."""

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
    truth = np.concatenate([part.truth for part in parts])
    number, first = numbered(truth)
    share, possible = np.zeros((len(first), nodes)), np.zeros((len(first), nodes), dtype=np.bool_)
    at = 0
    for part in parts:
        for row in range(len(part.truth)):
            share[number[at], part.nodes] += part.share[row]
            possible[number[at], part.nodes] |= part.possible[row]
            at += 1
    share[~possible] = 0.0
    sure = possible.sum(axis=0) == 1
    share[:, sure] = possible[:, sure]
    return Patterns(truth[first], share, possible)
