"""A table beyond a small memory: the same groups as in memory, and what that costs in time and peak memory.

Equal halves are drawn anew in each run, so their KL-divergences are compared.
"""

from __future__ import annotations

import hashlib
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.rows import _file
from benchmarks.table import show

ROWS = 5_000_000
SMALL = "50MB"
JOBS = (
    "lattice, k 5", "lattice, k 6, entropy 6", "lattice, k 6, entropy 6, 5 %", "partition, k 10",
    "partition, k 10, entropy 4", "transparent, k 10, entropy 4",
)  # fmt: skip


def one(folder: str, job: str, memory: str | None) -> dict[str, Any]:
    """A release of the census in a folder of Parquet files: seconds, peak memory, and a digest of its groups."""
    import jali
    from jali.datasets.columns import rows
    from jali.encoding.large import LargeTable

    names = ("age", "sex", "race", "marital-status", "education", "native-country", "workclass")
    quasi = {name: jali.taxonomy(rows(name)) for name in names}
    start = time.perf_counter()
    table = jali.read(folder, quasi=quasi, sensitive=["occupation"], memory=memory)
    read = time.perf_counter() - start
    promises: dict[str, Any] = {
        "lattice, k 5": [jali.KAnonymity(5)],
        "lattice, k 6, entropy 6": [jali.KAnonymity(6), jali.EntropyDiversity(6)],
        "lattice, k 6, entropy 6, 5 %": [jali.KAnonymity(6), jali.EntropyDiversity(6)],
        "partition, k 10": [jali.KAnonymity(10)],
        "partition, k 10, entropy 4": [jali.KAnonymity(10), jali.EntropyDiversity(4)],
        "transparent, k 10, entropy 4": [jali.KAnonymity(10), jali.EntropyDiversity(4)],
    }
    publish: Any = jali.generalize if job.startswith("lattice") else jali.partition
    options: dict[str, Any] = {"suppress": 0.05} if job.endswith("5 %") else {}
    made = publish(table, promises[job], transparent=job.startswith("transparent"), **options)
    done = time.perf_counter() - start
    groups = made.groups.sort_by([(name, "ascending") for name in made.groups.column_names])
    digest = hashlib.sha256("\n".join(map(str, groups.to_pylist())).encode()).hexdigest()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    held = None if isinstance(table, LargeTable) else table.frequencies.combinations
    kl = made.manifest.metrics["kl"]
    return {
        "read": read, "publish": done - read, "peak": peak, "digest": digest, "groups": len(groups), "held": held,
        "kl": kl,
    }  # fmt: skip


def _run(*arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.memory", *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def run(jobs: tuple[str, ...] = JOBS) -> None:
    """Print the table; stop where groups differ."""
    figures: list[list[Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        _file(Path(folder), ROWS, "parquet")
        for job in jobs:
            whole, small = _run(folder, job), _run(folder, job, SMALL)
            drawn = job.startswith("transparent")  # groups differ from run to run
            same = drawn or (whole["digest"] == small["digest"] and abs(whole["kl"] - small["kl"]) < 1e-9)
            for what, found in ((job, whole), (f"  memory = {SMALL}", small)):
                held = "beyond memory" if found["held"] is None else f"{found['held']:,}"
                figures.append([what, held, f"{found['groups']:,}", found["read"], found["publish"], found["peak"]])
            alike = f"other draws: KL {small['kl'] / whole['kl']:.3f} ×" if drawn else "the same"
            figures[-1].append(alike if same else "DIFFERENT")
            figures[-2].append("")
            if not same:
                break
    show(
        f"{ROWS:,} rows in Parquet files, each job in a new process: seconds, and peak memory in GB",
        ["job", "combinations", "groups", "read", "publish", "peak GB", "groups and KL"],
        figures,
    )


if __name__ == "__main__":
    print(json.dumps(one(sys.argv[1], sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else None)))
