"""Where the time of a partitioned release goes, and how far the cuts are from one pass over the codes per level."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.table import show, timed

ROWS = 5_000_000
PHASES = {  # what is timed, by the module that calls it; each without what is timed within it
    "lay out the items": [("jali.search.mondrian", name) for name in ("items_of", "columns_of", "rules_of")],
    "cut": [("jali.search.items", "run_tasks")],
    "number the groups, find their boxes": [("jali.publish.partition", "mondrian")],
    "show the groups": [("jali.publish.partition", "publish_groups")],
    "KL-divergence": [("jali.measures.holder", "divergence")],
    "the other measures": [("jali.publish.partition", "holder_costs")],
    "check every promise again": [("jali.publish.partition", "Partitioned.verify")],
}  # fmt: skip


@contextmanager
def clocked() -> Iterator[dict[str, float]]:
    """Seconds of each phase, of whatever runs inside."""
    seconds: dict[str, float] = defaultdict(float)
    running: list[float] = []  # of each call that is open, the seconds of calls within it
    patches = []

    def clock(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **options: Any) -> Any:
            running.append(0.0)
            start = time.perf_counter()
            try:
                return call(*args, **options)
            finally:
                taken = time.perf_counter() - start
                seconds[name] += taken - running.pop()
                if running:
                    running[-1] += taken

        return run

    for name, calls in PHASES.items():
        for module, attribute in calls:
            found = patch(f"{module}.{attribute}")
            call = found.get_original()[0]
            patches.append(patch(f"{module}.{attribute}", clock(name, call)))
    for one in patches:
        one.start()
    try:
        yield seconds
    finally:
        for one in patches:
            one.stop()


def levels(table: Any, promises: list[Any]) -> tuple[int, float]:
    """The level of the deepest group, and the mean level of a combination."""
    from jali.search import items
    from jali.search.mondrian import mondrian

    seen: list[Any] = []
    number = items.numbered

    def look(work: Any) -> Any:
        seen.append(work.level.copy())
        return number(work)

    with patch.object(items, "numbered", look):
        mondrian(table, promises)
    begins = np.flatnonzero(seen[0])
    sizes = np.diff(np.append(begins, len(seen[0])))
    return int(seen[0].max()), float(sizes @ seen[0][begins] / sizes.sum())


def one_pass(table: Any) -> float:
    """Seconds to count the people of every value of every column, once, in numpy."""
    frequencies = table.frequencies
    people = np.bincount(frequencies.combination, weights=frequencies.people)
    codes = np.ascontiguousarray(frequencies.codes.T)
    return timed(lambda: [np.bincount(code, weights=people) for code in codes], repeat=10)[0]


def run() -> None:
    """Print the tables."""
    import jali
    from jali.search.mondrian import mondrian

    table = jali.datasets.census(rows=ROWS, seed=0)
    promises = [jali.KAnonymity(10)]
    table.frequencies  # noqa: B018  # encoded before the clock starts
    jali.partition(jali.datasets.census(rows=500, seed=1), promises)  # compiled before the clock starts
    with clocked() as seconds:
        whole, _ = timed(lambda: jali.partition(table, promises))
    rest = whole - sum(seconds.values())
    show(
        f"Seconds of a partitioned release, {ROWS:,} rows, k = 10, strict, range",
        ["phase", "seconds", "share"],
        [[name, seconds[name], seconds[name] / whole] for name in PHASES]
        + [["everything else", rest, rest / whole], ["all", whole, 1.0]],
    )
    deepest, mean = levels(table, promises)
    once = one_pass(table)
    rows = []
    for split in ("range", "entropy", "kl"):
        mondrian(jali.datasets.census(rows=500, seed=1), promises, split=split)
        taken, _ = timed(lambda s=split: mondrian(table, promises, split=s, threads=1), repeat=2)
        both, _ = timed(lambda s=split: mondrian(table, promises, split=s), repeat=2)
        rows.append([split, taken, both, taken / (once * mean)])
    show(
        f"One pass over the codes of {table.frequencies.combinations:,} combinations, and as many as there are levels",
        ["one pass s", "levels of the deepest group", "mean level", "passes to the deepest s", "to the mean level s"],
        [[once, deepest, mean, once * deepest, once * mean]],
    )
    show(
        "Partitioning beside them",
        ["split", "one thread s", "all threads s", "one thread : passes to the mean level"],
        rows,
    )
