"""Compiled counting of distinct rows: codes packed into words, and a hash table of words with their numbers.

An entry of the table is one row of an array: the words of a key, then how many rows have it; 0 is a free place. Keys
and numbers stand side by side, so that counting a row touches one place in memory.
"""
# mypy: disable-error-code="untyped-decorator,no-any-return"
# numba's decorator has no types, and so what a kernel calls returns Any.

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jali.core.arrays import Ints
from jali.kernels.jit import inner, outer


@outer
def pack(keys: Ints, word: int, indices: NDArray[np.int32], code: Ints, shift: int) -> None:
    """Add the code of each index, moved left, to a word of each key: keys (rows, words), code (indices that occur,)."""
    for i in range(len(indices)):
        keys[i, word] += code[indices[i]] << shift


@outer
def count_keys(keys: Ints, numbers: Ints, table: Ints, begin: int, used: int) -> tuple[int, int]:
    """Count the keys from `begin` on; stops where the table is half full. How far it came, and the entries in use.

    `numbers` is how many rows each key stands for; empty: one each.
    """
    words, most = keys.shape[1], len(table) // 2
    for i in range(begin, len(keys)):
        at = _place(keys, i, table, words)
        if table[at, words] == 0:
            if used >= most:
                return i, used
            used += 1
            for w in range(words):
                table[at, w] = keys[i, w]
        table[at, words] += numbers[i] if len(numbers) else 1
    return len(keys), used


@inner
def _place(keys: Ints, i: int, table: Ints, words: int) -> np.int64:
    """The entry of a key: its own, or the free one that it gets."""
    mixed = np.uint64(0)
    for w in range(words):
        mixed = (mixed ^ np.uint64(keys[i, w])) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    mask = np.uint64(len(table) - 1)
    at = np.int64((mixed * np.uint64(0xBF58476D1CE4E5B9) >> np.uint64(20)) & mask)
    while table[at, words] != 0:
        same = True
        for w in range(words):
            same &= table[at, w] == keys[i, w]
        if same:
            break
        at = (at + 1) & np.int64(mask)
    return at
