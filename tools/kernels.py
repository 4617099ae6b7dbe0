"""Compile all kernels once, into the cache that every later process reads.

    python tools/kernels.py

`make test` and `make test-slow` run it when a source of the kernels has changed. Without it each worker, and each
process that a test starts, compiles for itself what it meets first. numba keeps its cache in `__pycache__` beside the
sources (or where NUMBA_CACHE_DIR says), so a clean clone pays once. Kernels that are older than what they call are
forgotten here as well; a test run cannot do that, since collecting doctests imports the kernels before anybody asks.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa

import jali
from jali import kernels
from jali.kernels import existence as compiled
from jali.kernels import worst_case as disclosure
from jali.sources import blocks
from jali.sources.distinct import counted_rows


def people(*sensitive: str, **roles: Any) -> Any:
    """A small invented table, two rows a person."""
    random = np.random.default_rng(0)
    data = {"who": np.arange(60) // 2, "age": random.integers(0, 9, 60), "sex": random.integers(0, 2, 60)}
    data |= {name: random.integers(0, 4, 60) for name in sensitive}
    quasi = {"age": jali.bands(3, low=0, high=8), "sex": jali.suppress()}
    return jali.table(pa.table(data), quasi=quasi, sensitive=list(sensitive), **roles)


def lattice() -> None:
    """The lattice search, without and with suppression."""
    table, required = people("ill"), [jali.KAnonymity(3), jali.DistinctDiversity(2)]
    jali.generalize(table, required, metric="kl")
    jali.generalize(table, required, suppress=0.2)


def partitioning() -> None:
    """Mondrian."""
    jali.partition(people("ill"), jali.KAnonymity(3))


def safety() -> None:
    """Mondrian under safety, compiled throughout."""
    jali.partition(people("ill"), jali.Safety(0.9, 1))


def safeties() -> None:
    """Mondrian under two safeties, whose trees are compiled; and the worst case of many groups."""
    both = [jali.Safety(0.95, 1, sensitive=name) for name in ("ill", "pay")]
    jali.partition(people("ill", "pay"), both)
    disclosure.few_that_matter(np.ones((3, 4), dtype=np.int64), 1)


def recoding() -> None:
    """Local recoding: paired; peeled and moved; merged, as where persons are named."""
    jali.recode(people("ill"), [jali.KAnonymity(3), jali.DistinctDiversity(2)])
    jali.recode(people("ill"), jali.KAnonymity(3), peel="principle")
    jali.recode(people("ill", person="who"), [jali.KAnonymity(3), jali.EntropyDiversity(3)], peel="principle")


def presence() -> None:
    """Verdicts on δ-presence."""
    likely, many, start = np.array([0.2, 0.5]), np.array([2, 3]), np.array([0, 2])
    groups, present, bounds = np.array([0]), np.array([2]), np.array([0.1, 0.9])
    compiled.by_means(likely, many, start, groups, present, bounds)
    compiled.within_bounds(likely, many, start, present, bounds)
    compiled.existences(likely, many, start, present)


def halves() -> None:
    """Equal halves."""
    jali.partition(people("ill"), [jali.KAnonymity(3), jali.DistinctDiversity(2)], transparent=True)


def walks() -> None:
    """Random walks among the worlds that keep every verdict of a search."""
    table = people("ill")
    release = jali.partition(table, [jali.KAnonymity(3), jali.EntropyDiversity(3)])
    jali.attacks(release, table, time_limit=2)["algorithm"]


def counting() -> None:
    """Distinct rows of a file that comes in parts, and cells of a CSV file, more than its tables have room for."""
    part = pa.table({"a": ["x", "y", "x"], "b": [1, 2, 1]})
    counted_rows(["a", "b"], [lambda: part, lambda: part])
    text = pa.BufferReader("".join(f"{at},{at % 7}\n" for at in range(4000)).encode())
    blocks.rows_by_line(blocks.Blocks(text, 1 << 10, ","), ["a", "b"], ["a", "b"], count=False)


LONGEST_FIRST = (safety, recoding, walks, partitioning, safeties, presence, halves, lattice, counting)
FAMILIES: dict[str, Callable[[], None]] = {family.__name__: family for family in LONGEST_FIRST}


def cached_kernels() -> dict[str, Any]:
    """The kernels that numba keeps on disk, by name, of all modules of `kernels`."""
    kept = {}
    for module in pkgutil.iter_modules(kernels.__path__, "jali.kernels."):
        for name, value in vars(importlib.import_module(module.name)).items():
            if getattr(getattr(value, "stats", None), "cache_path", None):
                kept[f"{value.py_func.__module__}.{name}"] = value
    return kept


def compile_family(name: str) -> None:
    """Run one of the above in this process; print which kernels it compiled or read, and which there are."""
    kernels.LITTLE = kernels.FEW = kernels.LOOKS = -1  # even the smallest table is worth it
    FAMILIES[name]()
    known = cached_kernels()
    print(json.dumps([[name for name, kernel in known.items() if kernel.signatures], list(known)]))


def in_a_process(name: str) -> list[list[str]]:
    """The same in a process of its own: one that dies ends the run instead of leaving it to wait."""
    done = subprocess.run([sys.executable, __file__, name], check=True, stdout=subprocess.PIPE, text=True)
    answer: list[list[str]] = json.loads(done.stdout.splitlines()[-1])
    return answer


def main() -> None:
    """Compile on two cores; say which kernels nobody called."""
    print("Compiling the kernels (once; a minute or so) ...", flush=True)
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(in_a_process, FAMILIES))
    called = {name for some, _ in results for name in some}
    left = sorted({name for _, every in results for name in every} - called)
    for name in left:
        print(f"tools/kernels.py compiles no {name}: add a call of it, or each worker will compile it for itself")


if __name__ == "__main__":
    if sys.argv[1:]:
        compile_family(sys.argv[1])
    else:
        main()
