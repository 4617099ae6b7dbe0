"""Generalizations with Probability Distributions for Data Anonymization (Nergiz, Cetintas, Akova; Purdue, 2008)."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from jali.core.progress import Step
from jali.datasets import adult
from jali.datasets.columns import AGES, rows
from jali.encoding.builders import suppress
from jali.encoding.hierarchy import Builder, Taxonomy, taxonomy
from jali.encoding.table import Table
from jali.measures.measure import measure, reconstructions
from jali.measures.rules import CONFIDENCE, SUPPORT, distance, mine
from jali.principles import KAnonymity
from jali.publish.conceal import conceal
from jali.publish.generalize import generalize
from jali.publish.partition import partition
from jali.releases.column import holder_cover
from jali.releases.concealed import Concealed
from jali.releases.generalized import Generalized
from jali.reproduce import examples
from jali.reproduce.report import Cell, Figure, Panel, Report, computed, quiet
from jali.sources.tables import table

__all__ = ["report"]

Rules: TypeAlias = tuple[Any, Any]
NOTES = ("Tables and plots are lost in the text at hand: what is called printed here stands in its sentences.",)
QUICK = "Computed with quick: Figure 3 for two values of k, Figure 4 for two intervals."


def report(path: str | Path | None, *, quick: bool, on_step: Step) -> Report:
    """Every table and figure that can be computed again; the real Adult table must be at hand."""
    parts: list[Callable[[], Figure | Sequence[Figure]]] = [
        examples.of_pdf,
        partial(figure_3, path, KS[1::2] if quick else KS),
        partial(figure_4, path, INTERVALS[2::3] if quick else INTERVALS),
        partial(screens, path),
    ]
    title = "Generalizations with Probability Distributions for Data Anonymization, computed again"
    return Report("pdf", title, computed(parts, on_step), NOTES + (QUICK,) * quick)


# -- Figure 3: rules that reconstructions of k-anonymous tables keep, by how the same groups are shown -----------------

QUASI = ("age", "workclass", "education", "marital-status", "occupation", "race", "sex", "native-country")
CLASS = "salary-class"
MINED = tuple(name for name in QUASI if name not in ("workclass", "race", "native-country"))
"""Section VI-A removes three columns in which most people have the same value."""
WIDTH = 8  # years: gives ten values of age
KS = (5, 10, 25, 50, 100)
SEEDS = 5
SHOWN: dict[str, dict[str, Any]] = {
    "PDF": {"show": "pdf"},
    "INTER1": {"show": "pdf", "towards": Fraction(2, 3), "start": "set"},
    "INTER2": {"show": "pdf", "towards": Fraction(1, 3), "start": "set"},
    "NDGH": {"show": "set-exact"},
}
ANONYMOUS_TITLES = {"rules": "rules", "class_rules": "class rules", "kl_cost": "KL cost", "kl": "KL"}
GROUPINGS = ("lattice", "Mondrian")


class AnonymousPoint(NamedTuple):
    """What came out for one release."""

    rules: float
    class_rules: float
    kl_cost: float
    kl: float


def people(path: str | Path | None) -> Table:
    """Adult with eight quasi-identifiers, age in ten values (equally wide: the paper does not say which)."""
    frame = adult(path, quasi=QUASI, sensitive=[CLASS]).frame("arrow")
    ages = [_band(age) for age in frame["age"].to_pylist()]
    frame = frame.set_column(frame.column_names.index("age"), "age", pa.array(ages))
    named = [name for name in QUASI if name not in ("age", "occupation")]
    quasi: dict[str, Builder] = {name: Taxonomy(tuple(rows(name)), name) for name in named}
    bands = dict.fromkeys((_band(age), _band(age, 2 * WIDTH), "*") for age in AGES)
    quasi |= {"age": taxonomy(list(bands)), "occupation": suppress()}
    return table(frame, quasi={name: quasi[name] for name in QUASI}, sensitive=[CLASS])


def _band(age: int, width: int = WIDTH) -> str:
    low = age - (age - AGES[0]) % width
    return f"{low}-{low + width - 1}"


def figure_3(path: str | Path | None, ks: Sequence[int] = KS) -> Figure:
    """Absolute error of association and class rules, for PDF, INTER1, INTER2 and NDGH, against k."""
    own = people(path)
    found = anonymous_points(own, ks)
    series = {
        (method, which): {name: tuple(float(getattr(found[method, name, k], field)) for k in ks) for name in SHOWN}
        for method in GROUPINGS
        for field, which in ANONYMOUS_TITLES.items()
    }
    lines: list[tuple[Cell, ...]] = [
        (method, name, which, *own[name]) for (method, which), own in series.items() for name in SHOWN
    ]
    panels = tuple(
        Panel(f"{which}, {method}", tuple(map(str, ks)), series[method, which], "k", "absolute error")
        for which in list(ANONYMOUS_TITLES.values())[:2]
        for method in GROUPINGS
    )
    return Figure(
        "figure-3",
        "Figure 3: rules kept by k-anonymous tables of Adult, by display of the same groups",
        ("groups", "display", "error or cost", *(f"k = {k}" for k in ks)),
        tuple(lines),
        (
            f"Absolute error: Equation 5 of Section VI, the mean over {SEEDS} reconstructions, seeds 0 to {SEEDS - 1}; "
            f"confidence {CONFIDENCE}, and support {SUPPORT}, which the paper does not print.",
            "lattice: the full-domain generalization of least height; Mondrian: strict, split by range. "
            "INTER1 and INTER2 are two thirds and one third of the way from the set (NDGH) to the frequencies (PDF).",
            "The paper's figure is a plot; these numbers are jali's own. KL cost and KL are in nats.",
        ),
        panels,
        kind="lines",
    )


def _rules(frame: pa.Table) -> Rules:
    """The association rules of a table, and its class rules."""
    return mine(frame.select(MINED)), mine(frame.select([*MINED, CLASS]), then=CLASS)


def _rule_errors(truth: Rules, drawn: Iterable[pa.Table]) -> tuple[float, float]:
    """The absolute errors of association and class rules, summed over reconstructions."""
    errors, class_errors = 0.0, 0.0
    for frame in drawn:
        rules, class_rules = _rules(frame)
        errors += distance(truth[0], rules)
        class_errors += distance(truth[1], class_rules)
    return errors, class_errors


def anonymous_points(own: Table, ks: Sequence[int]) -> Mapping[tuple[str, str, int], AnonymousPoint]:
    """Every release of the figure."""
    truth = _rules(own.frame("arrow"))
    found = {}
    for k in ks:
        levels = generalize(own, KAnonymity(k), metric="height", on_step=quiet).levels
        for name, how in SHOWN.items():
            full = generalize(own, KAnonymity(k), levels=levels, on_step=quiet, **how)
            boxes = partition(own, KAnonymity(k), on_step=quiet, **how)
            found["lattice", name, k] = _anonymous_point(full, own, truth)
            found["Mondrian", name, k] = _anonymous_point(boxes, own, truth)
    return found


def _anonymous_point(release: Generalized, own: Table, truth: Rules) -> AnonymousPoint:
    covers = {column.name: column.cover for column in release.columns}
    errors, class_errors = _rule_errors(truth, reconstructions(release, own, covers, seeds=SEEDS))
    costs = measure(release, own)
    assert costs.kl_cost is not None
    return AnonymousPoint(errors / SEEDS, class_errors / SEEDS, costs.kl_cost, costs.kl)


# -- Figure 4 and Table VIII: what concealed tables keep and cost, over intervals of presence --------------------------

PRIVATE = 1_957
INTERVALS = ((0.00001, 0.8), (0.001, 0.8), (0.01, 0.8), (0.01, 0.7), (0.01, 0.6), (0.01, 0.5))
WIDER, NARROWER = ((0.0, 0.8), (0.0, 0.5), (0.0, 0.3)), ((0.01, 0.3), (0.03, 0.08), (0.04, 0.06), (0.04, 0.045))
"""Our intervals, which the paper has not, from no lower bound to nearly one value."""
ALGORITHMS: dict[str, dict[str, Any]] = {
    "SPALM": {"shift": "none"},
    "SPALM, sets": {"shift": "none", "show": "set-exact"},
    "PPALM": {"shift": "bounds", "steps": 10},
    "WPALM": {"shift": "exact", "steps": 10},
    "WPALM, 1/1024": {"shift": "exact"},
    "WPALM, boxes": {"shift": "exact", "search": "partition"},
}
CONCEALED_TITLES = {"kl_cost": "KL cost", "rules": "rules", "class_rules": "class rules", "seconds": "seconds"}
COMBINATIONS = 5_000_000
"""The most that the paper's WPALM went through for one group."""
PREVALENCE = {"Amer-Indian-Eskimo": 2.0, "Black": 1.6, "Other": 1.3, "Asian-Pac-Islander": 1.1, "White": 1.0}
"""How much more frequent it is for people of a race; it also doubles every sixteen years of age."""


class ConcealedPoint(NamedTuple):
    """What came out for one release."""

    kl_cost: float
    rules: float
    class_rules: float
    seconds: float
    groups: int
    enumerable: float  # the share of the public table in groups that the paper's WPALM could process


def tables(path: str | Path | None, *, private: int = PRIVATE, seed: int = 0) -> tuple[Table, Table]:
    """A private table drawn from Adult, more often from the old and from some races, and Adult as the public one.

    Without replacement: the people with the least exponential times, at rates that are the prevalences, are drawn.
    """
    own = people(path)
    age, race = own["age"], own["race"]
    starts = np.array([int(text.split("-")[0]) for text in age.labels.to_pylist()])
    by_race = np.array([PREVALENCE[text] for text in race.labels.to_pylist()])
    rate = 2 ** (starts[age.codes] / 16) * by_race[race.codes]
    drawn = np.argsort(np.random.default_rng(seed).exponential(size=own.records) / rate)[:private]
    return own.take(np.sort(drawn), None), replace(own, columns=own.quasi)


def figure_4(path: str | Path | None, intervals: Sequence[tuple[float, float]] = INTERVALS) -> Figure:
    """KL cost, rule and class-rule error and time, for the three algorithms over intervals of presence."""
    private, public = tables(path)
    found = concealed_points(private, public, intervals)
    names = tuple(f"{low:g} to {high:g}" for low, high in intervals)
    series = {
        which: {name: tuple(float(getattr(found[name, i], field)) for i in intervals) for name in ALGORITHMS}
        for field, which in CONCEALED_TITLES.items()
    }
    lines: list[tuple[Cell, ...]] = [
        (which, name, *values) for which, own in series.items() for name, values in own.items()
    ]
    lines.append(("% processed", "the paper's WPALM", *(100 * found["WPALM", i].enumerable for i in intervals)))
    lines.append(("% processed", "WPALM", *(100.0 for _ in intervals)))
    panels = tuple(Panel(which, names, own, "presence", which) for which, own in series.items())
    return Figure(
        "figure-4",
        "Figure 4 and Table VIII: concealed tables of Adult over intervals of presence",
        ("error or cost", "algorithm", *names),
        tuple(lines),
        (
            f"Public: Adult, {public.rows:,} people. Private: {private.rows:,} of them, drawn with seed 0 and a "
            "prevalence that grows with age and differs by race; the paper's own private table is not to be had, so "
            "that all figures are ours.",
            "SPALM, PPALM and WPALM share one full-domain generalization; ten steps, as in the paper, and steps of "
            "1/1024. Boxes are the groups of a strict partitioning, which the paper does not have. Distributions begin "
            "with the values of the public group, evenly, which is what 'SPALM, sets' shows of the same groups.",
            f"% processed: the share of the public table in groups with at most {COMBINATIONS:,} combinations, which "
            "is what the paper's WPALM goes through; jali's goes through all, since its check is not exponential.",
            f"Errors as in Figure 3, the mean of {SEEDS} reconstructions. Seconds are those of one run.",
        ),
        panels,
        kind="lines",
    )


def screens(path: str | Path | None) -> Figure:
    """Which full-domain generalization SPALM takes in each interval, and which probabilities its groups reach."""
    private, public = tables(path)
    rows: list[tuple[Cell, ...]] = []
    for low, high in (*WIDER, *INTERVALS, *NARROWER):
        release = conceal(private, public, low=low, high=high, on_step=quiet)
        found, cost = release.presence(), measure(release, private).kl_cost
        levels = " ".join(str(release.levels[column.name]) for column in public.quasi)
        rows.append((f"{low:g} to {high:g}", levels, found.groups.num_rows, found.low, found.high, cost or 0.0))
    return Figure(
        "figure-4-bounds",
        "Where the bounds of Figure 4 bind: SPALM's generalization in each interval",
        ("presence", "levels", "groups with somebody", "least", "greatest", "KL cost"),
        tuple(rows),
        (
            "Levels of " + ", ".join(column.name for column in public.quasi) + ".",
            "In all of the paper's intervals the same generalization is best. Its groups reach far less than the upper "
            "bounds and more than the lower ones: a group of which nobody is present is what a lower bound above 0 "
            "forbids, and full-domain generalizations that avoid it are coarse. The paper, too, says that SPALM gains "
            "little from looser bounds, and that its groups do not change beyond 0.5.",
        ),
        digits=4,
    )


def concealed_points(
    private: Table, public: Table, intervals: Sequence[tuple[float, float]]
) -> Mapping[tuple[str, tuple[float, float]], ConcealedPoint]:
    """Every release of the figure."""
    truth = _rules(private.frame("arrow"))
    conceal(private, public, low=0, high=1, shift="exact", search="partition", on_step=quiet)  # compiles kernels
    found = {}
    for interval in intervals:
        for name, how in ALGORITHMS.items():
            began = time.perf_counter()
            release = conceal(private, public, low=interval[0], high=interval[1], on_step=quiet, **how)
            seconds = time.perf_counter() - began
            found[name, interval] = _concealed_point(release, private, public, truth, seconds)
    return found


def _concealed_point(release: Concealed, private: Table, public: Table, truth: Rules, seconds: float) -> ConcealedPoint:
    covers = {c.name: holder_cover(c, public[c.name], public.domain) for c in release.of_role("quasi")}
    errors, class_errors = _rule_errors(truth, reconstructions(release, private, covers, seeds=SEEDS))
    cost = measure(release, private).kl_cost
    assert cost is not None
    groups = release.presence().groups
    sizes, present = groups["people"].to_pylist(), groups["present"].to_pylist()
    few = sum(m for m, n in zip(sizes, present, strict=True) if math.comb(m, n) <= COMBINATIONS)
    return ConcealedPoint(cost, errors / SEEDS, class_errors / SEEDS, seconds, len(sizes), few / public.rows)
