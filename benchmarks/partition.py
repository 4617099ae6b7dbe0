"""Partition the census table at 45 thousand, 500 thousand and five million rows, and beside a plain reference."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from typing import Any

from benchmarks.table import show, timed

SIZES = (45_222, 500_000, 5_000_000)


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def one(rows: int) -> dict[str, Any]:
    """All figures for one size, in a process of its own so that peak memory is its own."""
    import jali
    from jali.search.mondrian import mondrian

    table = jali.datasets.census(rows=rows, seed=0)
    found: dict[str, Any] = {"combinations": table.frequencies.combinations, "encoded": _peak()}
    small = jali.datasets.census(rows=500, seed=1)
    for name, more in (("k", []), ("entropy", [jali.EntropyDiversity(3)])):
        promises = [jali.KAnonymity(10), *more]
        mondrian(small, promises)  # compiled before the clock starts
        seconds, boxes = timed(lambda p=promises: mondrian(table, p), repeat=3)
        found[name] = {"seconds": seconds, "groups": boxes.groups, "memory": _peak() - found["encoded"]}
    release = timed(lambda: jali.partition(table, [jali.KAnonymity(10)]))
    found["release"] = {"seconds": release[0], "kl": release[1].manifest.metrics["kl"]}
    return found


def reference() -> tuple[float, float, int]:
    """30,000 rows, k = 5: jali and the plain Python twin of the tests, same groups."""
    sys.path.insert(0, "tests")
    import jali
    from jali.search.mondrian import mondrian
    from oracles.mondrian import Reference

    table = jali.datasets.census(rows=30_000, seed=0)
    promises = [jali.KAnonymity(5)]
    ours, boxes = timed(lambda: mondrian(table, promises), repeat=5)
    theirs, groups = timed(lambda: Reference(table, promises, "strict", "range").groups())
    assert len(groups) == boxes.groups
    return ours, theirs, boxes.groups


def run() -> None:
    """Print the tables."""
    found = {}
    for rows in SIZES:
        command = [sys.executable, "-m", "benchmarks.partition", str(rows)]
        found[rows] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    show(
        "Seconds to partition the encoded census (7 quasi-identifiers, strict, range); MB beyond the encoded table",
        ["rows", "combinations", "k = 10", "groups", "MB", "k = 10, entropy 3", "groups ", "MB "],
        [
            [f"{n:,}", f["combinations"]] + [f[q][w] for q in ("k", "entropy") for w in ("seconds", "groups", "memory")]
            for n, f in found.items()
        ],
    )
    growth = found[SIZES[2]]["k"]["seconds"] / found[SIZES[1]]["k"]["seconds"]
    show("Growth from 500,000 to 5,000,000 rows, k = 10", ["ratio"], [[growth]])
    show(
        "Seconds for the whole release: partition, show, measure, check (k = 10)",
        ["rows", "seconds", "KL"],
        [[f"{n:,}", f["release"]["seconds"], f["release"]["kl"]] for n, f in found.items()],
    )
    ours, theirs, groups = reference()
    show(
        "Beside the plain Python reference, 30,000 rows, k = 5",
        ["jali s", "reference s", "ratio", "groups"],
        [[ours, theirs, theirs / ours, groups]],
    )


if __name__ == "__main__":
    print(json.dumps(one(int(sys.argv[1]))))
