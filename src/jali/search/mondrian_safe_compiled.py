"""Runs the compiled Mondrian under Safety: answers where floats cannot decide, and enlarges the tree of groups."""

from __future__ import annotations

import sys
from fractions import Fraction
from pathlib import Path

import numpy as np

from jali.principles.counts import Ints
from jali.principles.safety import Safety
from jali.principles.worst_case import Buckets
from jali.principles.worst_case_exact import least_ratio
from jali.progress import Step
from jali.search.compiled import prepare
from jali.search.mondrian_compiled import numbered, work_of
from jali.search.mondrian_plan import Columns, Items, Mode, Similarity, Split
from jali.search.mondrian_rules import COLUMN, KIND, SAFETY, Rules


def grow_safe_compiled(
    columns: Columns, items: Items, rules: Rules, judged: Ints, safety: Safety, *, mode: Mode, split: Split,
    on_step: Step, similarity: Similarity = "box",
) -> tuple[Ints, int, int]:  # fmt: skip
    """The group of each item, how many groups there are, and how many candidate splits were judged."""
    _prepare_cache()
    from jali.search.kernels import Desk
    from jali.search.safety_kernels import (
        BEGIN,
        DONE,
        END,
        ENLARGE,
        GROUPS,
        NEAR,
        PEOPLE,
        SCALE,
        VERDICT,
        Queue,
        grow_safely,
    )  # fmt: skip
    from jali.search.safety_tree import empty_tree, grown

    work = work_of(columns, items, rules, judged, mode=mode, split=split, similarity=similarity)
    units, (values, width) = len(work.order), rules.reference.shape
    desk = Desk(
        np.zeros((4, values, width), dtype=np.int64),
        np.zeros(values, dtype=np.int64),
        np.empty((6, units + 1), dtype=np.int64),
        np.empty((2, len(work.place)), dtype=np.int64),
        np.zeros(1, dtype=np.int64),
    )
    queue = Queue(
        group=np.zeros((SCALE + 3, units), dtype=np.int64),
        heap=np.zeros(units, dtype=np.int64),
        part=np.zeros(units + 1, dtype=np.bool_),
        row=np.zeros((units, safety.k + 2), dtype=np.int64),
        state=np.array([0, 0, 0, -1], dtype=np.int64),
    )
    queue.group[BEGIN, 0], queue.group[END, 0] = 0, units
    column = int(rules.rule[COLUMN, rules.rule[KIND] == SAFETY][0])
    tree, near = empty_tree(1, safety.k), np.zeros_like(queue.row)
    why, total = -1, int(work.item[1].sum())
    while why != DONE:
        why, parts = grow_safely(work, desk, queue, tree, column, float(safety.ratio), near)
        if why == ENLARGE:
            tree = grown(tree)
        elif why == NEAR:
            others = np.delete(queue.row[: queue.state[GROUPS]], queue.heap[0], axis=0)
            queue.state[VERDICT] = exceeds(np.vstack([others, near[:parts]]), safety.k, safety.ratio)
        on_step(int(queue.state[PEOPLE]), total)
    number, groups = numbered(work)
    return (number[items.combination] if mode == "strict" else number), groups, int(desk.checked[0])


def exceeds(rows: Ints, k: int, bound: Fraction) -> bool:
    """Whether the least ratio of groups, people and largest counts in a row each, exceeds the bound, exactly."""
    return least_ratio(Buckets(rows[:, 0], np.ascontiguousarray(rows[:, 1:].T)), k) > bound


def _prepare_cache() -> None:
    """Before the first call: see that the kernels on disk are those of this source."""
    if "jali.search.safety_kernels" in sys.modules:
        return
    from jali.search.safety_kernels import grow_safely

    here = Path(__file__).parent
    sources = [here / "jit.py", *here.glob("*kernels.py"), here / "safety_tree.py", *here.glob("mondrian*.py")]
    prepare(grow_safely.stats.cache_path, "safety_kernels.*.nbi", sources, "the partitioning by safety")
