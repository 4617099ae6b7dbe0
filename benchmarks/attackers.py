"""Marginals for the two attackers, rings and triangles of columns, and a search that is cut: processor seconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.marginals import FOUR, SEVEN
from benchmarks.table import show

ROWS = 45_222
LIMIT = 60.0
"""Seconds that each search has."""


def _processor(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def _ring(columns: int, people: int, seed: int = 0) -> tuple[Any, list[dict[str, int]]]:
    """A table whose columns of three values stand in a ring, and the marginals of all neighbours."""
    import pyarrow as pa

    import jali

    rng = np.random.default_rng(seed)
    codes = [rng.integers(0, 3, people)]
    for _ in range(columns - 1):
        codes.append((codes[-1] + rng.integers(0, 3, people) * (rng.random(people) < 0.6)) % 3)
    names = [f"c{i}" for i in range(columns)]
    data = {name: [f"v{code}" for code in own] for name, own in zip(names, codes, strict=True)}
    table = jali.table(pa.table(data), quasi={n: jali.suppress() for n in names[:-1]}, sensitive=names[-1:])
    return table, [{names[i]: 0, names[(i + 1) % columns]: 0} for i in range(columns)]


def searches() -> None:
    """Both attackers: seconds and KL-divergence of a greedy search."""
    import jali

    rows = []
    for names in (FOUR, SEVEN):
        table = jali.datasets.census(rows=ROWS, quasi=names)
        for l in (jali.EntropyDiversity(6), jali.DistinctDiversity(4), jali.EntropyDiversity(3)):
            for attacker in ("marginals", "quasi"):
                seconds, made = _processor(
                    lambda t=table, p=l, a=attacker: jali.marginals(
                        t, [jali.KAnonymity(6), p], attacker=a, time_limit=LIMIT
                    )
                )
                values = sum("occupation" in levels for levels, _ in made.marginals)
                kl = float(made.manifest.metrics["kl"])
                rows.append([len(names), repr(l), attacker, seconds, kl, values, made.manifest.method["complete"]])
    head = ["columns", "with KAnonymity(6)", "attacker", "processor s", "KL", "with occupation", "complete"]
    show(f"jali.marginals, {ROWS:,} people, at most {LIMIT:.0f} s", head, rows)


def rings() -> None:
    """Collections that are not decomposable: k-anonymity of rings, entropy of triangles."""
    import jali

    rows = []
    for columns, people, k in ((6, 400, 5), (6, 2000, 5), (9, 600, 5), (9, 2000, 5)):
        table, pairs = _ring(columns, people)
        seconds, verdict = _processor(lambda t=table, p=pairs, k=k: jali.check_marginals(t, p, jali.KAnonymity(k)))
        judged = "not judged" if verdict.principle is None else "holds" if verdict.holds else "broken"
        rows.append([columns, people, k, 3**columns, judged, seconds])
    show("Rings of columns of three values", ["columns", "people", "k", "cells", "verdict", "processor s"], rows)
    found = [jali.check_marginals(*_ring(3, 8 + seed % 50, seed), jali.EntropyDiversity(1.5)) for seed in range(64)]
    judged = sum(verdict.principle is not None for verdict in found)
    show("Triangles of three columns", ["of", "judged", "kept"], [[64, judged, sum(map(bool, found))]])


def run() -> None:
    """Print the tables."""
    searches()
    rings()
