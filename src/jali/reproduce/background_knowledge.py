"""Worst-Case Background Knowledge for Privacy-Preserving Data Publishing (Martin, Kifer, Machanavajjhala, Gehrke,
Halpern; ICDE 2007).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from math import log
from pathlib import Path

from jali import disclosure
from jali.core.progress import Step
from jali.datasets import adult as adult_table
from jali.encoding.builders import bands
from jali.encoding.table import Table
from jali.principles import EntropyDiversity, KAnonymity
from jali.reproduce.report import Figure, Panel, Report
from jali.search.lattice.lattice import Lattice

__all__ = ["report"]

QUASI = ("age", "marital-status", "race", "sex")
KS = tuple(range(14))
SHOWN = (1, 3, 5, 7, 9, 11)
"""The numbers of facts in Figure 6."""
FIGURE_3 = ((2, 2, 1), (2, 1, 1, 1))
"""The buckets of the paper's Figure 3: flu 2, lung cancer 2, mumps 1; flu 2, breast cancer, ovarian cancer, heart 1."""
DIGITS = 9  # to which two minimum entropies are the same

NOTES = (
    "Figures 5 and 6 are plots, and the paper prints no numbers for them; the numbers here are jali's own.",
    "The paper's hierarchies are not printed; marital status has the three levels that reproduce the l-diversity "
    "paper.",
    "The printed MINIMIZE2 always returns infinity, and MINIMIZE1 divides by zero when the atoms outnumber the people "
    "of a bucket; both are mended here and agree with brute force over all worlds.",
)


Curves = Mapping[float, Sequence[disclosure.Curve]]
"""How much the 72 tables disclose, by the entropy (nats) of the bucket that has least."""


def report(adult: str | Path | None, *, quick: bool, on_step: Step) -> Report:
    """Every figure that can be computed again; the real Adult table must be at hand."""
    table = _table(adult)
    lattice = Lattice(table, (KAnonymity(1),), on_step=lambda done, total: None)
    nodes = lattice.all_nodes()
    curves: dict[tuple[int, ...], disclosure.Curve] = {}
    by_entropy: dict[float, list[disclosure.Curve]] = {}
    for done, node in enumerate(nodes):
        on_step(done, len(nodes))
        counts = lattice.partition(node).counts(table)
        curves[node] = disclosure.curve(counts, KS)
        by_entropy.setdefault(round(log(EntropyDiversity(1).worst(counts)), DIGITS), []).append(curves[node])
    on_step(len(nodes), len(nodes))
    twenties = curves[3, *lattice.top[1:]]
    both = (_figure_6(by_entropy, knowledge) for knowledge in ("implications", "negations"))
    figures = (_figure_3(), _figure_5(twenties), *both)
    title = "Worst-case background knowledge, computed again from the Adult table"
    return Report("background-knowledge", title, figures, NOTES)


def _table(path: str | Path | None) -> Table:
    """The Adult table with ages in bands of 5, 10, 20 and 40."""
    table = adult_table(path, quasi=QUASI)
    age = table["age"]
    low, high = (int(age.values[end].as_py()) for end in (0, -1))
    hierarchy = bands(5, 10, 20, 40, low=low, high=high).build("age", age.values, declared=True)
    return replace(table, columns=(replace(age, hierarchy=hierarchy), *table.columns[1:]))


def _figure_3() -> Figure:
    """The paper's example: 10/19 is right for the implication that it quotes, and is not the maximum."""
    rows = [
        (k, str(disclosure.maximum(FIGURE_3, k, exact=True)),
         str(disclosure.maximum(FIGURE_3, k, knowledge="negations", exact=True)))
        for k in range(3)
    ]  # fmt: skip
    notes = (
        "The paper gives 10/19 for one implication; ruling out one value for a person of the first bucket is 2/3.",
    )
    title = "Figure 3: maximum disclosure of the two buckets"
    return Figure("figure-3", title, ("k", "implications", "negations"), tuple(rows), notes)


def _figure_5(curve: disclosure.Curve) -> Figure:
    rows = tuple(zip(curve.k, curve.implications, curve.negations, strict=True))
    panel = Panel(
        "age in intervals of 20, all else suppressed",
        tuple(map(str, curve.k)),
        {"implications": curve.implications, "negations": curve.negations},
        "facts that the attacker knows",
        "maximum disclosure",
    )
    first = next(k for k, disclosed in zip(curve.k, curve.implications, strict=True) if disclosed == 1)
    note = f"The disclosure reaches 1 at k = {first}; the paper expects it at 13, one less than there are occupations."
    title = "Figure 5: disclosure against pieces of background knowledge"
    header = ("k", "implications", "negations")
    return Figure("figure-5", title, header, rows, (note,), (panel,), kind="lines", digits=4)


def _figure_6(found: Curves, knowledge: str) -> Figure:
    """For each minimum entropy the least disclosure of the tables that have it."""
    rows = tuple(
        (entropy, *(min(getattr(curve, knowledge)[KS.index(k)] for curve in found[entropy]) for k in SHOWN))
        for entropy in sorted(found)
    )
    entropies = tuple(row[0] for row in rows)
    series = {f"k = {k}": tuple(row[1 + i] for row in rows) for i, k in enumerate(SHOWN)}
    panel = Panel(knowledge, entropies, series, "least entropy of a bucket (nats)", "least maximum disclosure")
    plain, tables = knowledge == "implications", sum(map(len, found.values()))
    rises = sum(b > a + 1e-12 for column in series.values() for a, b in pairwise(column))
    return Figure(
        "figure-6" if plain else "figure-6-negations",
        f"Figure 6{'' if plain else ' for negations'}: entropy against maximum disclosure, {tables} tables",
        ("entropy", *(f"k = {k}" for k in SHOWN)),
        rows,
        (f"From one entropy to the next it rises {rises} times: it is not strictly monotone.",),
        (panel,),
        kind="lines",
        digits=4,
    )
