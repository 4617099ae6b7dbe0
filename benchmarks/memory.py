"""A table beyond a small memory: the same groups as in memory, and what that costs in time and peak memory.

Equal halves and batches are drawn anew in each run, so their KL-divergences are compared.
`python -m benchmarks.memory spilled` is for rows that are nearly all different.
"""

from __future__ import annotations

import hashlib
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.rows import _file
from benchmarks.table import show

ROWS = 5_000_000
SMALL = "50MB"
JOBS = (
    "lattice, k 5", "lattice, k 6, entropy 6", "lattice, k 6, entropy 6, 5 %", "partition, k 10",
    "partition, k 10, entropy 4", "relaxed, k 10, entropy 4", "transparent, k 10, entropy 4",
    "transparent ANGEL, k 10, frequency 3", "ANGEL, k 10, frequency 3",
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
        "relaxed, k 10, entropy 4": [jali.KAnonymity(10), jali.EntropyDiversity(4)],
        "transparent, k 10, entropy 4": [jali.KAnonymity(10), jali.EntropyDiversity(4)],
        "transparent ANGEL, k 10, frequency 3": [jali.KAnonymity(10), jali.FrequencyDiversity(3)],
        "ANGEL, k 10, frequency 3": [jali.KAnonymity(10), jali.FrequencyDiversity(3)],
    }
    cut = jali.angelize if "ANGEL" in job else jali.partition
    publish: Any = jali.generalize if job.startswith("lattice") else cut
    options: dict[str, Any] = {"suppress": 0.05} if job.endswith("5 %") else {}
    options |= {"mode": "relaxed"} if job.startswith("relaxed") else {}
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


def spilled(folder: str, job: str, form: str, memory: str | None) -> dict[str, Any]:
    """A release of the census with columns that make nearly every row different: seconds, and peak memory, of steps."""
    import jali
    from jali.datasets.columns import rows
    from jali.encoding.large import LargeTable

    names = ("age", "sex", "race", "marital-status", "education", "native-country", "workclass")
    quasi = {name: jali.taxonomy(rows(name)) for name in names}
    steps: dict[str, Any] = {}

    def step(name: str, work: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        made = work()
        steps[name] = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        return made

    read: Any = {"quasi": quasi, "sensitive": ["occupation"], "other": ["visit", "ward"], "memory": memory}
    table = step("read", lambda: jali.read(folder, **read))
    publish: dict[str, Callable[[], Any]] = {
        "lattice, k 5": lambda: jali.generalize(table, jali.KAnonymity(5)),
        "partition, k 10": lambda: jali.partition(table, jali.KAnonymity(10)),
        "anatomy, l = 3": lambda: jali.anatomize(table, jali.FrequencyDiversity(3), transparent=True),
    }
    made = step("publish", publish[job])
    with tempfile.TemporaryDirectory() as place:
        step("save", lambda: made.save(Path(place) / "out", format=form))
    return steps | {"held": not isinstance(table, LargeTable), "kl": made.manifest.metrics["kl"]}


def _with_others(folder: Path) -> None:
    """The census with a number of a visit and a ward, in one file."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    census, random = pq.read_table(_file(folder, ROWS, "parquet")), np.random.default_rng(1)
    census = census.append_column("visit", pa.array(random.integers(0, 1_000_000, ROWS)))
    others = folder / "others"
    others.mkdir()
    pq.write_table(census.append_column("ward", pa.array(random.integers(0, 50, ROWS))), others / "data.parquet")


SPILLED = "500MB"


def run_spilled() -> None:
    """Print what releases take whose rows are nearly all different, held and through buckets on disk."""
    figures: list[list[Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        _with_others(Path(folder))
        for job in ("lattice, k 5", "partition, k 10", "anatomy, l = 3"):
            for memory in (None, SPILLED):
                found = _run("spilled", f"{folder}/others/data.parquet", job, "parquet", *([memory] if memory else []))
                times = [found[name][0] for name in ("read", "publish", "save")]
                peaks = [found[name][1] for name in ("publish", "save")]
                figures.append([job, "held" if found["held"] else f"memory = {memory}", *times, *peaks, found["kl"]])
    show(
        f"{ROWS:,} rows of which nearly all are different, in Parquet, each job in a new process: seconds and peak GB",
        ["job", "rows", "read", "publish", "save", "GB until publish", "GB until save", "KL"],
        figures,
    )


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
            drawn = job.startswith("transparent") or "ANGEL" in job  # groups differ from run to run
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


if __name__ == "__main__" and sys.argv[1] == "spilled":
    if len(sys.argv) == 2:
        run_spilled()
    else:
        print(json.dumps(spilled(*sys.argv[2:5], sys.argv[5] if len(sys.argv) > 5 else None)))
elif __name__ == "__main__":
    print(json.dumps(one(sys.argv[1], sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else None)))
