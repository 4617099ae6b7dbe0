"""What a set of jobs publishes, a line each: run it on two commits and compare, e.g. before and after moving code.

    python tools/same.py > before.txt

A line has the job, a digest of its manifest and of its sorted tables, and its KL-divergence. Methods that draw at
random have their measures only, from several draws.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa

import jali

K, L, T = jali.KAnonymity(5), jali.EntropyDiversity(3), jali.TCloseness(0.3)

FIXED: dict[str, Callable[[Any], Any]] = {
    "generalize k": lambda t: jali.generalize(t, K),
    "generalize k, loss": lambda t: jali.generalize(t, K, metric="loss"),
    "generalize entropy, 5 %": lambda t: jali.generalize(t, [K, L], suppress=0.05),
    "generalize t, discernibility": lambda t: jali.generalize(t, [K, T], metric="discernibility"),
    "generalize safety": lambda t: jali.generalize(t, jali.Safety(0.9, 1)),
    "generalize sets": lambda t: jali.generalize(t, K, show="set"),
    "partition k": lambda t: jali.partition(t, K),
    "partition recursive, kl": lambda t: jali.partition(t, jali.RecursiveDiversity(3, 3), split="kl"),
    "partition safety": lambda t: jali.partition(t, jali.Safety(0.9, 1)),
    "partition pdf": lambda t: jali.partition(t, K, show="pdf"),
    "recode": lambda t: jali.recode(t, [K, jali.DistinctDiversity(3)]),
    "recode by principle": lambda t: jali.recode(t, [K, L], peel="principle"),
    "marginals": lambda t: jali.marginals(t, [K, L], attacker="marginals"),
}
DRAWN: dict[str, Callable[[Any], Any]] = {
    "anatomize": lambda t: jali.anatomize(t, jali.FrequencyDiversity(3)),
    "angelize": lambda t: jali.angelize(t, jali.FrequencyDiversity(3), k=5, batches="partition", buckets="partition"),
}


def digest(table: pa.Table) -> str:
    """Of the rows, whatever their order."""
    rows = sorted(json.dumps(row, default=str, sort_keys=True) for row in table.to_pylist())
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()[:16]


def main() -> None:
    """Print every job's line."""
    table = jali.datasets.census(rows=3000, seed=5, quasi=["age", "education", "marital-status", "sex"])
    for name, publish in FIXED.items():
        release = publish(table)
        told = json.dumps(release.told() | {"columns": release.columns_facts()}, default=str, sort_keys=True)
        tables = " ".join(digest(one) for one in release.tables.values())
        manifest = hashlib.sha256(told.encode()).hexdigest()[:16]
        print(f"{name}: manifest {manifest}, tables {tables}, KL {jali.measure(release, table).kl:.10f}")
    for name, publish in DRAWN.items():
        kl = [jali.measure(publish(table), table).kl for _ in range(5)]
        print(f"{name}: KL {min(kl):.4f} to {max(kl):.4f} in five draws")


if __name__ == "__main__":
    main()
