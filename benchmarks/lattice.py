"""The lattice search alone, in processor time, beside another tree of jali; and the first use after installation.

python -m benchmarks lattice
JALI_BEFORE=/path/to/another/checkout python -m benchmarks lattice
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

from benchmarks.table import show

ROOT = Path(__file__).resolve().parents[1]
RUNS = 5
TIMES = 5  # searches of each run, of which the quickest counts
CASES = {
    "k 5": ([("KAnonymity", 5)], "0"),
    "k 10": ([("KAnonymity", 10)], "0"),
    "k 6, entropy 6": ([("KAnonymity", 6), ("EntropyDiversity", 6)], "0"),
    "k 5, 5 % suppressed": ([("KAnonymity", 5)], "0.05"),
    "k 6, entropy 6, 5 % suppressed": ([("KAnonymity", 6), ("EntropyDiversity", 6)], "0.05"),
}
METRICS = ("loss", "discernibility", "kl")


def one() -> dict[str, Any]:
    """The least processor milliseconds of each search, and the node that it found."""
    import jali
    from benchmarks.adult import arx_example
    from jali.search.lattice.lattice import Lattice

    table, found = arx_example(), {}
    table.frequencies  # noqa: B018  # encoded before the clock starts
    for name, (named, share) in CASES.items():
        promises = tuple(getattr(jali, kind)(bound) for kind, bound in named)
        for metric in METRICS:
            least, node = float("inf"), None
            for _ in range(TIMES + 1):
                start = time.process_time()
                node, _ = Lattice(table, promises, on_step=lambda done, total: None).best(metric, Fraction(share))
                least = min(least, time.process_time() - start)
            found[f"{name}: {metric}"] = (1000 * least, node)
    return found


def _run(tree: Path) -> dict[str, Any]:
    """The same in a process of its own, with the sources of a tree."""
    code = "import json; from benchmarks.lattice import one; print(json.dumps(one()))"
    path = os.pathsep.join([str(tree / "src"), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=os.environ | {"PYTHONPATH": path}, check=True, capture_output=True,
        text=True,
    )  # fmt: skip
    return dict(json.loads(done.stdout.splitlines()[-1]))


JOB = """
input = "people.csv"
output = "out"
[quasi]
age = { bands = [5, 10, 20] }
sex = "suppress"
workclass = "suppress"
[sensitive]
occupation = true
[[principles]]
name = "KAnonymity"
k = 3
"""


def first_use() -> list[list[Any]]:
    """Processor seconds of a first call on 63 rows, with no machine code on disk."""
    calls = {
        "generalize": "jali.generalize(table, jali.KAnonymity(3))",
        "partition": "jali.partition(table, jali.KAnonymity(3))",
        "recode": "jali.recode(table, jali.KAnonymity(3))",
    }
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, call in calls.items():
            code = f"import jali; jali.{name}; t = jali.datasets.census(rows=63, seed=0); {call.replace('table', 't')}"
            rows.append([name, *_spent([sys.executable, "-c", code], folder)])
        data = Path(folder) / "people.csv"
        code = f"import jali; jali.datasets.census(rows=63, seed=0).frame('pandas').to_csv({str(data)!r}, index=False)"
        subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, env=_environment(folder))
        job = Path(folder) / "job.toml"
        job.write_text(JOB)
        command = [sys.executable, "-m", "jali", "publish", str(job), "--auto", "-q"]
        rows.append(["jali publish --auto", *_spent(command, folder)])
    return rows


def _environment(folder: str) -> dict[str, str]:
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    return os.environ | {"PYTHONPATH": path, "NUMBA_CACHE_DIR": str(Path(folder) / "cache")}


def _spent(command: list[str], folder: str) -> tuple[float, int]:
    """Processor seconds of a process, the start of Python included; and the kernels that it compiled."""
    before = os.times()
    subprocess.run(command, check=True, cwd=folder, env=_environment(folder), capture_output=True)
    after = os.times()
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    return spent, len(list((Path(folder) / "cache").rglob("*.nbc")))


def run() -> None:
    """Print the tables."""
    head = ["call", "processor s", "kernels compiled so far"]
    show("First use on 63 rows, nothing compiled before, the start of Python included", head, first_use())
    path = Path(os.environ.get("JALI_ADULT", ""))
    if not (path.is_file() and (path.parent / "arx-hierarchies").is_dir()):
        print("skipped: JALI_ADULT does not name the Adult table with arx-hierarchies beside it\n")
        return
    before = os.environ.get("JALI_BEFORE")
    here: list[dict[str, Any]] = []
    there: list[dict[str, Any]] = []
    for _ in range(RUNS):
        if before:
            there.append(_run(Path(before)))
        here.append(_run(ROOT))
    rows = []
    for name in here[0]:
        now = statistics.median(found[name][0] for found in here)
        row: list[Any] = [name, now]
        if there:
            was = statistics.median(found[name][0] for found in there)
            row += [was, now / was, here[0][name][1] == there[0][name][1]]
        rows.append(row)
    title = f"Processor milliseconds to find the best of 2,160 nodes of Adult; medians of {RUNS} interleaved runs"
    show(title, ["search", "now", "before", "ratio", "same node"] if there else ["search", "now"], rows)
