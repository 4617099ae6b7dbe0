"""Which of very many groups matter for the worst case: found in one compiled pass, shared among threads."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jali.core.arrays import Ints
from jali.kernels.jit import prepare

AT_ONCE = 1 << 13
"""Rows that are sorted and looked at together: few enough to stay in the processor's cache."""


@dataclass(frozen=True, eq=False)
class Few:
    """The groups of many that matter for the worst case, and what was seen on the way."""

    groups: Ints
    lowest: int  # of all counts
    highest: int
    fewest: int  # values that somebody has, in any group


def few_that_matter(counts: NDArray[np.integer], k: int) -> Few:
    """Rows among which are those of a worst attack with up to k implications, and with up to k negations.

    counts: (groups, values). The same rows as `worst_case.candidates` where no two groups are equal in what they are
    chosen for. They mean something only if no count is negative and no group empty, which the result says.
    """
    from jali.kernels.worst_case import FAR, choose

    prepare(choose, "the worst case")

    def look(begins: list[int]) -> tuple[Ints, list[tuple[int, int, int]]]:
        values = np.full((2, k + 1, k + 2), FAR)
        groups = np.full((2, k + 1, k + 2), -1, dtype=np.int64)
        share, barest = np.zeros(k + 1), np.full(k + 1, -1, dtype=np.int64)
        seen = []
        for begin in begins:
            block = np.sort(counts[begin : begin + AT_ONCE], axis=1).astype(np.int64, copy=False)
            seen.append(choose(block, begin, values, groups, share, barest))
        return np.concatenate([groups.ravel(), barest]), seen

    workers = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    begins = list(range(0, len(counts), AT_ONCE))
    with ThreadPoolExecutor(workers) as pool:
        found = list(pool.map(look, [begins[w::workers] for w in range(min(workers, len(begins)))]))
    groups = np.unique(np.concatenate([one for one, _ in found]))
    lowest, highest, fewest = zip(*(block for _, seen in found for block in seen), strict=True)
    return Few(groups[groups >= 0], min(lowest), max(highest), min(fewest))
