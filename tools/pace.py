"""How long ordinary work takes in two checkouts: run in turn, medians of processor seconds and their ratio.

    python tools/pace.py BEFORE AFTER [--runs 5] [--rows 200000]

Each run is a process of its own that works through all tasks once to compile and import, and once on the clock. The
first time is on 40,000 rows: of fewer some tasks would not load the compiled kernels yet.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

WORK = """
import json, sys, tempfile, time
from dataclasses import replace
from pathlib import Path
import numpy as np
import jali

K, L = jali.KAnonymity(10), jali.EntropyDiversity(6)
RELEASES = {
    "generalize, k 10": lambda t: jali.generalize(t, [K]),
    "generalize, entropy 6, 5 %": lambda t: jali.generalize(t, [K, L], suppress=0.05),
    "generalize, discernibility": lambda t: jali.generalize(t, [K], metric="discernibility"),
    "partition, k 10": lambda t: jali.partition(t, [K]),
    "partition, entropy 6": lambda t: jali.partition(t, [K, L]),
    "partition, safety": lambda t: jali.partition(t, jali.Safety(0.7, 2)),
    "anatomize": lambda t: jali.anatomize(t, jali.FrequencyDiversity(4)),
    "angelize": lambda t: jali.angelize(t, jali.FrequencyDiversity(4), k=10, batches="partition", buckets="partition"),
}

def work(rows, folder):
    clock = time.process_time
    took = {}
    def run(name, call):
        begun = clock()
        result = call()
        took[name] = clock() - begun
        return result
    new = lambda n=rows: jali.datasets.census(rows=n, seed=1)
    made = {name: run(name, lambda: make(new())) for name, make in RELEASES.items()}
    table = new()
    node, cut, buckets = made["generalize, entropy 6, 5 %"], made["partition, k 10"], made["anatomize"]
    run("save", lambda: node.save(folder / "node"))
    run("load", lambda: jali.load(folder / "node"))
    run("audit", lambda: jali.audit(cut))
    run("measure", lambda: jali.measure(cut, table))
    estimate = cut.estimate()
    run("400 counts", lambda: [estimate.count(f"age >= {20 + i % 60} and sex = 'Female'") for i in range(400)])
    run("sample", lambda: estimate.sample(rows // 4, seed=0))
    small = jali.datasets.census(rows=max(rows // 10, 500), seed=1)
    run("recode", lambda: jali.recode(small, [K, L]))
    few = jali.datasets.census(rows=max(rows // 10, 500), seed=1, quasi=["age", "education", "marital-status", "sex"])
    run("marginals", lambda: jali.marginals(few, [K, L], attacker="marginals"))
    run("attacks", lambda: jali.attacks(node, table)["homogeneity"].exposed)
    run("report", lambda: jali.report(node, table))
    counts = np.random.default_rng(0).integers(0, 9, (rows // 4, 14))
    run("disclosure, 13 facts", lambda: jali.disclosure.maximum(counts, 13))
    public = replace(new(), columns=new().quasi)
    private = public.take(np.arange(0, public.records, 9), None)
    run("conceal", lambda: jali.conceal(private, public, low=0, high=0.9, search="partition"))
    return took

with tempfile.TemporaryDirectory() as folder:
    for part, rows in (("warm", 40_000), ("on the clock", int(sys.argv[1]))):
        (Path(folder) / part).mkdir()
        took = work(rows, Path(folder) / part)
print(json.dumps(took))
"""


def once(tree: Path, rows: int) -> dict[str, float]:
    """The seconds of every task in one process of a checkout."""
    environment = os.environ | {"PYTHONPATH": str(tree / "src")}
    command = [sys.executable, "-c", WORK, str(rows)]
    done = subprocess.run(command, env=environment, cwd=tree, capture_output=True, text=True, check=True)
    seconds: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return seconds


def main() -> None:
    """Print a line for each task."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--rows", type=int, default=200_000)
    given = parser.parse_args()
    trees = (given.before.resolve(), given.after.resolve())
    runs = [[once(tree, given.rows) for tree in trees] for _ in range(given.runs)]
    print(f"processor seconds, medians of {given.runs} runs in turn, {given.rows:,} rows\n")
    print(f"{'task':<28}{'before':>9}{'after':>9}{'ratio':>8}")
    for name in runs[0][0]:
        before, after = (statistics.median(run[side][name] for run in runs) for side in (0, 1))
        print(f"{name:<28}{before:>9.3f}{after:>9.3f}{after / before:>8.2f}")


if __name__ == "__main__":
    main()
