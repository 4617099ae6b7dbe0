"""The report of a release of a million rows, beside the search that made the release."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from benchmarks.table import show, timed

ROWS = 1_000_000


def run() -> None:
    """Print seconds and sizes of both editions, for a lattice node, a partition and buckets."""
    import jali

    small, table = (jali.datasets.census(rows=rows, seed=0) for rows in (2_000, ROWS))
    jali.report(jali.generalize(small, [jali.KAnonymity(5)]), small)  # compiled and imported before the clock starts
    rows = []
    for name, make in {
        "generalized": lambda t: jali.generalize(t, [jali.KAnonymity(10)], suppress=0.05),
        "partitioned": lambda t: jali.partition(t, [jali.KAnonymity(10)]),
        "buckets": lambda t: jali.anatomize(t, [jali.FrequencyDiversity(3)]),
    }.items():
        search, release = timed(lambda make=make: make(table))  # type: ignore[misc]
        public, page = _both(lambda release=release: jali.report(release))  # type: ignore[misc]
        private, _ = _both(lambda release=release: jali.report(release, table))  # type: ignore[misc]
        rows.append([name, search, *public, *private, len(page.html) / 1e6])
    head = ["release", "search", "public", "processor", "private", "processor", "MB"]
    show(f"Seconds for the census of {ROWS:,} rows; MB of the public page", head, rows)


def _both(call: Callable[[], Any]) -> tuple[tuple[float, float], Any]:
    """Seconds by the clock and of the processor, which a busy machine does not lengthen; and the result."""
    start = time.process_time()
    clock, result = timed(call)
    return (clock, time.process_time() - start), result
