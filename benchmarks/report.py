"""The report of a release of a million rows, beside the search that made the release; here and from the shell."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.table import show, timed

ROWS = 1_000_000
ROOT = Path(__file__).parents[1]

METHODS: dict[str, tuple[str, dict[str, Any], list[tuple[str, str]]]] = {
    "generalized": ("generalize", {"suppress": 0.05}, [("KAnonymity", "k = 10")]),
    "partitioned": ("partition", {}, [("KAnonymity", "k = 10")]),
    "buckets": ("anatomize", {}, [("FrequencyDiversity", "l = 3")]),
    "ANGEL": ("angelize", {}, [("KAnonymity", "k = 10"), ("FrequencyDiversity", "l = 3")]),
    "marginals": ("marginals", {"attacker": "marginals"}, [("KAnonymity", "k = 10"), ("EntropyDiversity", "l = 2")]),
}
"""The verb, its options and its promises, as a job spells them."""
METHOD = {"angelize": "angel"}
FEWER = ("age", "sex", "education", "marital-status")
"""The quasi-identifiers of the marginals: the search for those of all seven takes minutes."""


def run() -> None:
    """Print seconds and sizes of both editions for every kind of release, in this process and in new ones."""
    import jali

    small = jali.datasets.census(rows=2_000, seed=0)
    jali.report(jali.generalize(small, [jali.KAnonymity(5)]), small)  # compiled and imported before the clock starts
    found, shell = [], []
    for name, (verb, options, promises) in METHODS.items():
        table = jali.datasets.census(rows=ROWS, seed=0, quasi=FEWER if verb == "marginals" else None)
        asked = [getattr(jali, kind)(int(parameter.split()[-1])) for kind, parameter in promises]
        search, release = timed(lambda: getattr(jali, verb)(table, asked, **options))  # noqa: B023 - called at once
        public, page = _both(lambda: jali.report(release))  # noqa: B023
        private, _ = _both(lambda: jali.report(release, table))  # noqa: B023
        found.append([name, search, *public, *private, len(page.html) / 1e6])
        shell.append([name, *_from_shell(table, name)])
    head = ["release", "search", "public", "processor", "private", "processor", "MB"]
    show(f"Seconds for the census of {ROWS:,} rows; MB of the public page", head, found)
    head = ["release", "publish", "processor", "public", "processor", "private", "processor"]
    show("The same by `jali publish` and `jali report` in new processes, reading and writing CSV", head, shell)


def _both(call: Callable[[], Any]) -> tuple[tuple[float, float], Any]:
    """Seconds by the clock and of the processor, which a busy machine does not lengthen; and the result."""
    start = time.process_time()
    clock, result = timed(call)
    return (clock, time.process_time() - start), result


def _from_shell(table: Any, name: str) -> list[float]:
    """Seconds by the clock and of the processor of `jali publish`, of a public report and of a private one."""
    from pyarrow import csv

    verb, options, promises = METHODS[name]
    asked = "".join(f'[[principles]]\nname = "{kind}"\n{parameter}\n' for kind, parameter in promises)
    quasi = "".join(f"{column.name} = {_builder(column.name)}\n" for column in table.quasi)
    job = 'input = "people.csv"\noutput = "out"\n'
    job += f'method = "{METHOD.get(verb, verb)}"\n[quasi]\n{quasi}[sensitive]\noccupation = true\n'
    with tempfile.TemporaryDirectory() as folder:
        csv.write_csv(table.frame("arrow"), Path(folder) / "people.csv")
        own = "".join(f"{key} = {json.dumps(value)}\n" for key, value in options.items())
        (Path(folder) / "job.toml").write_text(f"{job}{asked}" + (f"[{verb}]\n{own}" if own else ""))
        calls = ["publish job.toml", "report out --public -o a.html", "report out --job job.toml -o b.html"]
        return [seconds for call in calls for seconds in _spent(call.split(), folder)]


def _builder(name: str) -> str:
    return "{ bands = [5, 10, 20], low = 17, high = 90 }" if name == "age" else '"suppress"'


def _spent(arguments: list[str], folder: str) -> tuple[float, float]:
    before, start = os.times(), time.perf_counter()
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, "-m", "jali", *arguments, "-q"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in (0, 3):  # 3: a policy that is not met, which is no failure here
        raise RuntimeError(done.stderr)
    clock, after = time.perf_counter() - start, os.times()
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    return clock, spent
