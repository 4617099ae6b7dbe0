"""Which of very many groups matter for the worst case: found in one compiled pass, shared among threads."""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from jali.principles.counts import Ints
from jali.search.compiled import prepare

AT_ONCE = 1 << 15
"""Rows that one task looks at: few enough to be converted and interrupted, many enough to be worth it."""


def few_that_matter(counts: NDArray[np.integer], k: int) -> Ints:
    """Rows among which are those of a worst attack with up to k implications, and with up to k negations.

    counts: (groups, values), every row with people in it. The same rows as `worst_case.candidates` where no two groups
    are equal in what they are chosen for.
    """
    _prepare_cache()
    from jali.search.disclosure_kernels import FAR, choose

    def look(begins: list[int]) -> Ints:
        values = np.full((2, k + 1, k + 2), FAR)
        groups = np.full((2, k + 1, k + 2), -1, dtype=np.int64)
        share, barest = np.zeros(k + 1), np.zeros(k + 1, dtype=np.int64)
        for begin in begins:
            block = np.ascontiguousarray(counts[begin : begin + AT_ONCE], dtype=np.int64)
            choose(block, begin, values, groups, share, barest)
        return np.concatenate([groups.ravel(), barest])

    workers = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    begins = list(range(0, len(counts), AT_ONCE))
    with ThreadPoolExecutor(workers) as pool:
        found = np.unique(np.concatenate(list(pool.map(look, [begins[w::workers] for w in range(workers)]))))
    return found[found >= 0]


def _prepare_cache() -> None:
    if "jali.search.disclosure_kernels" in sys.modules:
        return
    from jali.search.disclosure_kernels import choose

    here = Path(__file__).parent
    sources = [here / "jit.py", here / "disclosure_kernels.py"]
    prepare(choose.stats.cache_path, "disclosure_kernels.choose-*.nbi", sources, "the worst case")
