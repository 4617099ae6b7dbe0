"""Figures 13 and 15 to 20: the time to find minimal tables, and what they cost the analyst."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal

from jali.datasets import adult
from jali.encoding.table import Table
from jali.errors import InfeasibleError
from jali.measures.measure import measure
from jali.principles import EntropyDiversity, KAnonymity, RecursiveDiversity
from jali.principles.base import Principle
from jali.publish.generalize import minimal
from jali.reproduce.l_diversity.attack import quiet, suppressed
from jali.reproduce.report import NONE, Cell, Figure, Panel
from jali.search.lattice.lattice import Node

ORDER = ("age", "sex", "race", "marital-status", "education", "native-country", "workclass", "salary-class")
"""The attributes of Figure 7 in its order; Occupation, the ninth, is sensitive."""
TIMED: dict[str, Principle] = {"6-anonymity": KAnonymity(6), "entropy 6-diversity": EntropyDiversity(6)}
REPEAT = 3


def figure_13(path: str | Path | None, *, most: int = len(ORDER)) -> Figure:
    """Seconds by number of quasi-identifiers, from 3 to `most`."""
    sizes = range(3, most + 1)
    tables = [adult(path, quasi=ORDER[:size]) for size in sizes]
    measured = [[_timed(table, principle) for principle in TIMED.values()] for table in tables]
    rows = []
    for size, table, timed in zip(sizes, tables, measured, strict=True):
        nodes = math.prod(table.hierarchy(column.name).height + 1 for column in table.quasi)
        rows.append((str(size), ORDER[size - 1], nodes, *(figure for pair in timed for figure in pair)))
    header = ["quasi-identifiers", "the last", "nodes"]
    for name in TIMED:
        header += [f"{name}, s", f"{name}, minimal"]
    return Figure(
        "figure-13",
        "Figure 13: time to find all minimal tables, Adult",
        tuple(header),
        tuple(rows),
        (
            "The first j attributes of Figure 7 are the quasi-identifiers; salary-class, which is sensitive elsewhere, "
            "is the eighth, with * above its two values. Occupation is sensitive.",
            f"Seconds: the best of {REPEAT} runs on this machine, counting the distinct combinations included, "
            "reading the file not. All tables above a minimal one keep the promise too.",
        ),
        (_panel(sizes, measured),),
        kind="lines",
        digits=3,
    )


def _timed(table: Table, principle: Principle) -> tuple[float, int]:
    """The least time of a few runs, each from rows that were never counted, and how many minimal tables there are."""
    best, found = math.inf, 0
    for _ in range(REPEAT):
        fresh = replace(table)
        start = time.perf_counter()
        found = len(minimal(fresh, principle, on_step=quiet))
        best = min(best, time.perf_counter() - start)
    return best, found


def _panel(sizes: Sequence[int], measured: Sequence[Sequence[tuple[float, int]]]) -> Panel:
    series = {name: tuple(row[i][0] for row in measured) for i, name in enumerate(TIMED)}
    return Panel("", tuple(str(size) for size in sizes), series, "quasi-identifiers", "seconds")


Measure = Literal["height", "average", "discernibility", "kl"]

QUASI = {
    "figure-15": ("age", "sex", "race"),
    "figure-16": ("age", "sex", "race", "marital-status"),
    "figure-17": ("age", "sex", "race", "marital-status", "education"),
    "figure-18": ("age", "sex", "race", "marital-status", "education", "workclass", "native-country"),
}
KL_QUASI = tuple(QUASI.values())[:3]
PRINCIPLES: dict[str, Callable[[int], Principle]] = {
    "k-anonymity": KAnonymity,
    "entropy": EntropyDiversity,
    "recursive (3, l)": lambda l: RecursiveDiversity(3, l),
}
KS = (2, 4, 6, 8, 10)
MEASURES: dict[Measure, str] = {
    "height": "generalization height",
    "average": "average group size",
    "discernibility": "discernibility",
}
SHARE, SEED = 0.05, 0
"""The Bernoulli sample; the paper does not say how its own was drawn."""
UNSATISFIED = f'"{NONE}": no table satisfies it, not even the one in which everything is suppressed.'

BASE = "Base: every quasi-identifier suppressed. Published values are spread over the declared domains."


def parts(path: str | Path | None, *, quick: bool) -> list[Callable[[], Figure]]:
    """The figures, each as something to compute."""
    ks = (2, 6, 10) if quick else KS
    names = list(QUASI)[:2] if quick else list(QUASI)
    return [
        *(partial(cost, path, name, ks) for name in names),
        partial(divergence, path, "figure-19", ks, sampled=True),
        partial(divergence, path, "figure-20", ks, sampled=False),
    ]


def cost(path: str | Path | None, name: str, ks: Sequence[int] = KS) -> Figure:
    """Figures 15 to 18: the least height, average group size and discernibility of any table, on the sample."""
    table = sample(adult(path, quasi=QUASI[name]))
    best = {p: [best_tables(table, make(k)) for k in ks] for p, make in PRINCIPLES.items()}
    rows: list[tuple[Cell, ...]] = [
        (title, principle, *(least(nodes, which) for nodes in found))
        for which, title in MEASURES.items()
        for principle, found in best.items()
    ]
    panels = tuple(
        Panel(f"least {title}", _texts(ks), {p: _series(found, which) for p, found in best.items()}, "k = l")
        for which, title in MEASURES.items()
    )
    return Figure(
        name,
        f"{name.replace('-', ' ').capitalize()}: {', '.join(QUASI[name])}; a {100 * SHARE:g} % sample of Adult",
        ("least", "k = l =", *_texts(ks)),
        tuple(rows),
        (_drawn(table), "Each entry is the least over all tables that satisfy the requirement.", *_unsatisfied(rows)),
        panels,
    )


def divergence(path: str | Path | None, name: str, ks: Sequence[int] = KS, *, sampled: bool) -> Figure:
    """Figures 19 and 20: the least KL-divergence of any table from quasi-identifiers × Occupation."""
    rows: list[tuple[Cell, ...]] = []
    panels = []
    for quasi in KL_QUASI:
        table = adult(path, quasi=quasi)
        table = sample(table) if sampled else table
        base = measure(suppressed(table), table).kl
        best = {p: [best_tables(table, make(k)) for k in ks] for p, make in PRINCIPLES.items()}
        rows += [(", ".join(quasi), p, base, *(least(nodes, "kl") for nodes in found)) for p, found in best.items()]
        series = {p: _series(found, "kl") for p, found in best.items()}
        panels.append(Panel(", ".join(quasi), _texts(ks), series, "k = l", "KL-divergence (nats)", base))
    where = f"a {100 * SHARE:g} % sample of Adult" if sampled else "all of Adult"
    return Figure(
        name,
        f"{name.replace('-', ' ').capitalize()}: least KL-divergence in nats, {where}",
        ("quasi-identifiers", "k = l =", "Base", *_texts(ks)),
        tuple(rows),
        (*((_drawn(table),) if sampled else ()), BASE, *_unsatisfied(rows)),
        tuple(panels),
        digits=4,
    )


def sample(table: Table) -> Table:
    """The sample that all figures but 20 are computed on: the same people for each set of quasi-identifiers."""
    return table.sample(SHARE, seed=SEED)


def best_tables(table: Table, principle: Principle) -> list[Node]:
    """All minimal tables: every measure here only grows upwards, so that its least value is among them."""
    try:
        return minimal(table, principle, on_step=quiet)
    except InfeasibleError:
        return []


def least(nodes: Sequence[Node], which: Measure) -> int | float | None:
    """The least value of a measure, None where no table satisfies the requirement."""
    found = min((float(getattr(node, which)) for node in nodes), default=None)
    return int(found) if found is not None and which in ("height", "discernibility") else found


def _series(found: Sequence[Sequence[Node]], which: Measure) -> tuple[float | None, ...]:
    return tuple(least(nodes, which) for nodes in found)


def _texts(ks: Sequence[int]) -> tuple[str, ...]:
    return tuple(str(k) for k in ks)


def _drawn(table: Table) -> str:
    return f"Bernoulli sample: {table.rows:,} people, Table.sample({SHARE}, seed={SEED})."


def _unsatisfied(rows: Sequence[Sequence[Cell]]) -> tuple[str, ...]:
    return (UNSATISFIED,) if any(None in row for row in rows) else ()
