"""Large searches: a lattice of fifteen columns, and recoding over many distinct masked texts."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import jali
from benchmarks.table import show, timed
from jali.encoding.table import Table

COLUMNS, ROWS = 15, 50_000
TEXTS = (4_000, 8_000, 16_000, 100_000)


def _columns() -> Table:
    random = np.random.default_rng(0)
    drawn = {f"q{i}": random.choice(["a", "b", "c"], ROWS) for i in range(COLUMNS)}
    names, values = list(drawn), random.choice(list("vwxyz"), ROWS)
    return jali.table(pa.table(drawn | {"s": values}), quasi=dict.fromkeys(names, jali.suppress()), sensitive=["s"])


def _texts(distinct: int) -> Table:
    random = np.random.default_rng(0)
    texts = np.array([f"{number:06d}" for number in random.choice(1_000_000, distinct, replace=False)])
    frame = pa.table({
        "zip": np.concatenate([texts, random.choice(texts, distinct)]),
        "sex": random.choice(["f", "m"], 2 * distinct),
        "s": random.choice(list("vwxyz"), 2 * distinct),
    })  # fmt: skip
    return jali.table(frame, quasi={"zip": jali.mask(), "sex": jali.suppress()}, sensitive=["s"])


def run() -> None:
    """Print the tables."""
    rows = []
    for principle, options in (
        (jali.KAnonymity(10), {}), (jali.KAnonymity(3), {}), (jali.EntropyDiversity(2.5), {}),
        (jali.KAnonymity(10), {"suppress": 0.01}),
    ):  # fmt: skip
        table = _columns()
        seconds, release = timed(lambda p=principle, o=options, t=table: jali.generalize(t, p, **o))
        rows.append([repr(principle), options.get("suppress", 0), seconds, release.search["checked"]])
    title = f"Seconds of generalize: {COLUMNS} columns of three values, {ROWS:,} rows"
    show(title, ["principle", "suppress", "seconds", "nodes judged"], rows)
    jali.recode(_texts(50), jali.KAnonymity(5))  # compiled before the clock starts
    found = []
    for distinct in TEXTS:
        table = _texts(distinct)
        seconds, _ = timed(lambda t=table: jali.recode(t, jali.KAnonymity(5)))
        found.append([distinct, seconds, 1e6 * seconds / distinct])
    show("Seconds of recode over distinct masked texts, k = 5", ["texts", "seconds", "µs a text"], found)
