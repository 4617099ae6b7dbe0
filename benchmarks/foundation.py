"""Read, encode, search, publish and audit the census table at 45 thousand, one and five million rows."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.table import show, timed

SIZES = (45_222, 1_000_000, 5_000_000)
REQUIREMENTS = ("k", "entropy")


def requirement(name: str) -> list[Any]:
    """k = 10, alone or with entropy 6."""
    import jali

    return [jali.KAnonymity(10)] + ([jali.EntropyDiversity(6)] if name == "entropy" else [])


def _hierarchies() -> dict[str, Any]:
    import jali
    from jali.datasets.columns import rows

    names = ("age", "sex", "race", "marital-status", "education", "native-country", "workclass")
    return {name: jali.taxonomy(rows(name)) for name in names}


def one(csv: str, rows: int) -> dict[str, Any]:
    """All figures for one file, in a process of its own so that peak memory is its own."""
    import jali

    small = rows < 100_000
    times: dict[str, Any] = {}
    quasi = _hierarchies()
    read = lambda: jali.read(csv, quasi=quasi, sensitive=["occupation"])  # noqa: E731
    if small:
        read()  # a warm interpreter
    times["read"], table = timed(read)
    times["encode"], frequencies = timed(lambda: table.frequencies)
    times["combinations"] = frequencies.combinations
    times["memory"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    for name in REQUIREMENTS:
        for budget in (0.0, 0.05):
            times[f"{name} {budget}"], lattice = timed(lambda n=name, b=budget: _search(table, n, b), repeat=3)
            times[f"{name} {budget} checked"] = lattice.checked
    times["search memory"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    release = jali.generalize(table, requirement("entropy"), suppress=0.05)
    with tempfile.TemporaryDirectory() as folder:
        times["publish"], release = timed(lambda: jali.generalize(table, requirement("entropy"), suppress=0.05))
        times["save"], _ = timed(lambda: release.save(Path(folder) / "out"))
    times["audit release"], _ = timed(lambda: jali.audit(release), repeat=3 if small else 1)
    times["audit raw"], _ = timed(lambda: jali.audit(table), repeat=3 if small else 1)
    times["measure"], _ = timed(lambda: jali.measure(release, table), repeat=3 if small else 1)
    if small:
        times["all"], _ = timed(lambda: _all(csv, quasi), repeat=3)
    return times


def _search(table: Any, name: str, budget: float) -> Any:
    from fractions import Fraction

    from jali.search.lattice.lattice import Lattice

    lattice = Lattice(table, tuple(requirement(name)), on_step=lambda done, total: None)
    lattice.best("kl", Fraction(str(budget)))
    return lattice


def _all(csv: str, quasi: dict[str, Any]) -> None:
    import jali

    with tempfile.TemporaryDirectory() as folder:
        table = jali.read(csv, quasi=quasi, sensitive=["occupation"])
        jali.generalize(table, [jali.KAnonymity(10)]).save(Path(folder) / "out")


def run() -> None:
    """Print the tables."""
    import pyarrow.csv as pacsv

    import jali

    found = {}
    for rows in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "census.csv"
            pacsv.write_csv(jali.datasets.census(rows=rows, seed=0).frame("arrow"), path)
            megabytes = path.stat().st_size / 1e6
            command = [sys.executable, "-m", "benchmarks.foundation", str(path), str(rows)]
            found[rows] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            found[rows]["megabytes"] = megabytes
    show(
        "Seconds to read a CSV of the census (7 quasi-identifiers, occupation) and to reduce it; peak memory in MB",
        ["rows", "CSV MB", "read", "encode", "combinations", "peak MB"],
        [[f"{n:,}", f["megabytes"], f["read"], f["encode"], f["combinations"], f["memory"]] for n, f in found.items()],
    )
    show(
        "Seconds to find the best of 2,160 nodes by KL (nodes judged in brackets); ratio of the last to the first",
        ["rows", "k = 10", "with 5 % suppressed", "k = 10, entropy 6", "with 5 % suppressed ", "ratio", "peak MB"],
        [
            [f"{n:,}"]
            + [f"{f[f'{q} {b}']:.3f} ({f[f'{q} {b} checked']})" for q in REQUIREMENTS for b in (0.0, 0.05)]
            + [f["entropy 0.05"] / f["k 0.0"], f["search memory"]]
            for n, f in found.items()
        ],
    )
    show(
        "Seconds to publish (search, build, check), save, audit and measure: k = 10, entropy 6, 5 % suppressed",
        ["rows", "publish", "save", "audit release", "audit raw table", "measure"],
        [
            [f"{n:,}", f["publish"], f["save"], f["audit release"], f["audit raw"], f["measure"]]
            for n, f in found.items()
        ],
    )
    first = found[SIZES[0]]
    show(
        "One warm run of everything: read, search (k = 10), write",
        ["rows", "seconds"],
        [[f"{SIZES[0]:,}", first["all"]]],
    )
    show("jali --help in a fresh process", ["seconds"], [[_help()]])


def _help() -> float:
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        subprocess.run([str(Path(sys.executable).parent / "jali"), "--help"], check=True, capture_output=True)
        best = min(best, time.perf_counter() - start)
    return best


if __name__ == "__main__":
    print(json.dumps(one(sys.argv[1], int(sys.argv[2]))))
