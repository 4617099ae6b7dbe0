"""Figure 4 and Table VIII: what concealed tables keep and cost, over intervals of presence."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jali.encoding.table import Table
from jali.measures.measure import measure
from jali.measures.reconstruction import reconstructions
from jali.measures.rules import distance, mine
from jali.publish.conceal import conceal
from jali.releases.column import holder_cover
from jali.releases.concealed import Concealed
from jali.reproduce.l_diversity.attack import quiet
from jali.reproduce.pdf.anonymity import CLASS, MINED, SEEDS, people
from jali.reproduce.report import Cell, Figure, Panel

PRIVATE = 1_957
INTERVALS = ((0.00001, 0.8), (0.001, 0.8), (0.01, 0.8), (0.01, 0.7), (0.01, 0.6), (0.01, 0.5))
WIDER, NARROWER = ((0.0, 0.8), (0.0, 0.5), (0.0, 0.3)), ((0.01, 0.3), (0.03, 0.08), (0.04, 0.06), (0.04, 0.045))
"""Intervals of ours beside the paper's, from no lower bound to nearly one value."""
METHODS: dict[str, dict[str, Any]] = {
    "SPALM": {"shift": "none"},
    "SPALM, sets": {"shift": "none", "show": "set"},
    "PPALM": {"shift": "bounds", "steps": 10},
    "WPALM": {"shift": "exact", "steps": 10},
    "WPALM, 1/1024": {"shift": "exact"},
    "WPALM, boxes": {"shift": "exact", "search": "partition"},
}
TITLES = {"kl_cost": "KL cost", "rules": "rules", "class_rules": "class rules", "seconds": "seconds"}
COMBINATIONS = 5_000_000
"""The most that the paper's WPALM went through for one group."""
PREVALENCE = {"Amer-Indian-Eskimo": 2.0, "Black": 1.6, "Other": 1.3, "Asian-Pac-Islander": 1.1, "White": 1.0}
"""How much more frequent it is for people of a race; it also doubles every sixteen years of age."""


class Point(NamedTuple):
    """What came out for one release."""

    kl_cost: float
    rules: float
    class_rules: float
    seconds: float
    groups: int
    enumerable: float  # the share of the public table in groups that the paper's WPALM could process


def parts(path: str | Path | None, *, quick: bool) -> list[Callable[[], Figure]]:
    """The figure and what explains it, as something to compute."""
    return [partial(figure_4, path, INTERVALS[2::3] if quick else INTERVALS), partial(screens, path)]


def tables(path: str | Path | None, *, private: int = PRIVATE, seed: int = 0) -> tuple[Table, Table]:
    """A private table drawn from Adult, more often from the old and from some races, and Adult as the public one.

    Without replacement: whoever has the least exponential time, at a rate that is the prevalence, is drawn.
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
    found = points(private, public, intervals)
    names = tuple(f"{low:g} to {high:g}" for low, high in intervals)
    lines: list[tuple[Cell, ...]] = [
        (which, name, *(float(getattr(found[name, interval], field)) for interval in intervals))
        for field, which in TITLES.items()
        for name in METHODS
    ]
    lines.append(("% processed", "the paper's WPALM", *(100 * found["WPALM", i].enumerable for i in intervals)))
    lines.append(("% processed", "WPALM", *(100.0 for _ in intervals)))
    panels = tuple(
        Panel(which, names, {name: tuple(getattr(found[name, i], field) for i in intervals) for name in METHODS},
              "presence", which)
        for field, which in TITLES.items()
    )  # fmt: skip
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


def points(
    private: Table, public: Table, intervals: Sequence[tuple[float, float]]
) -> Mapping[tuple[str, tuple[float, float]], Point]:
    """Every release of the figure."""
    frame = private.frame("arrow")
    truth = mine(frame.select(MINED)), mine(frame.select([*MINED, CLASS]), then=CLASS)
    conceal(private, public, low=0, high=1, shift="exact", search="partition", on_step=quiet)  # compiles kernels
    found = {}
    for interval in intervals:
        for name, how in METHODS.items():
            began = time.perf_counter()
            release = conceal(private, public, low=interval[0], high=interval[1], on_step=quiet, **how)
            seconds = time.perf_counter() - began
            found[name, interval] = _point(release, private, public, truth, seconds)
    return found


def _point(release: Concealed, private: Table, public: Table, truth: tuple[Any, Any], seconds: float) -> Point:
    errors, class_errors = 0.0, 0.0
    covers = {c.name: holder_cover(c, public[c.name], public.domain) for c in release.of_role("quasi")}
    for drawn in reconstructions(release, private, covers, seeds=SEEDS):
        errors += distance(truth[0], mine(drawn.select(MINED)))
        class_errors += distance(truth[1], mine(drawn.select([*MINED, CLASS]), then=CLASS))
    cost = measure(release, private).kl_cost
    assert cost is not None
    groups = release.presence().groups
    sizes, present = groups["people"].to_pylist(), groups["present"].to_pylist()
    few = sum(m for m, n in zip(sizes, present, strict=True) if math.comb(m, n) <= COMBINATIONS)
    return Point(cost, errors / SEEDS, class_errors / SEEDS, seconds, len(sizes), few / public.rows)
