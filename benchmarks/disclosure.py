"""The worst case for a million buckets beside sorting them, a tracker of them, and partitioning under Safety."""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import time

import numpy as np

from benchmarks.table import show, timed

BUCKETS, VALUES, K = 1_000_000, 50, 13


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def many_buckets() -> None:
    """All figures about one large matrix, in a process of its own so that peak memory is its own."""
    import jali

    counts = np.random.default_rng(0).poisson(5, (BUCKETS, VALUES))
    counts[:, 0] += 1
    jali.disclosure.maximum(counts[:60_000], K)  # compiled before the clock starts
    before = _peak()
    one, _ = timed(lambda: jali.disclosure.maximum(counts, K), repeat=3)
    every, _ = timed(lambda: jali.disclosure.curve(counts, range(K + 1)), repeat=3)
    memory = _peak() - before
    worst, _ = timed(lambda: jali.disclosure.witness(counts, K), repeat=3)
    knowing = _peak() - before
    narrow = counts.astype(np.int32)
    less, _ = timed(lambda: jali.disclosure.maximum(narrow, K), repeat=3)
    sort, _ = timed(lambda: np.sort(counts, axis=1), repeat=3)
    show(
        f"Seconds for {BUCKETS:,} buckets x {VALUES} values, k = {K}; MB beyond the counts",
        ["np.sort", "maximum", "ratio", "all k", "to maximum", "MB"],
        [[sort, one, one / sort, every, every / one, memory]],
    )
    show(
        "The witness of them, and the maximum of the same counts as int32: seconds, MB beyond the counts",
        ["maximum", "witness", "ratio", "MB", "int32"],
        [[one, worst, worst / one, knowing, less]],
    )
    build, tracker = timed(lambda: jali.disclosure.Tracker(counts))
    times = []
    for row in counts[:50]:
        start = time.perf_counter()
        tracker.add(row)
        tracker.maximum(K)
        times.append(1000 * (time.perf_counter() - start))
    show(
        "A tracker of them: seconds to build, milliseconds for one more bucket and the answer",
        ["build", "median", "slowest"],
        [[build, statistics.median(times), max(times)]],
    )


def partitions() -> None:
    """The census of a million rows under frequency diversity and under Safety."""
    import jali
    from jali.search.mondrian import mondrian

    table, small = (jali.datasets.census(rows=rows, seed=0) for rows in (1_000_000, 500))
    rows = []
    for principle in (jali.FrequencyDiversity(3), jali.Safety(0.7, 3), jali.Safety(0.5, 1)):
        mondrian(small, [principle])  # compiled before the clock starts
        seconds, boxes = timed(lambda p=principle: mondrian(table, [p]), repeat=3)
        rows.append([repr(principle), seconds, seconds / (rows[0][1] if rows else seconds), boxes.groups])
    show("Seconds to partition the census of 1,000,000 rows", ["principle", "seconds", "ratio", "groups"], rows)


def run() -> None:
    """Print the tables."""
    for what in ("many_buckets", "partitions"):
        subprocess.run([sys.executable, "-m", "benchmarks.disclosure", what], check=True)


if __name__ == "__main__":
    {"many_buckets": many_buckets, "partitions": partitions}[sys.argv[1]]()
