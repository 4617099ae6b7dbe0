"""Figure 3: rules that reconstructions of k-anonymous tables keep, by how the same groups are shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from jali.datasets import adult
from jali.datasets.hierarchies import AGES, rows
from jali.encoding.builders import suppress
from jali.encoding.hierarchy import Builder, Taxonomy, taxonomy
from jali.encoding.table import Table
from jali.measures.measure import measure
from jali.measures.reconstruction import reconstructions
from jali.measures.rules import CONFIDENCE, SUPPORT, distance, mine
from jali.principles import KAnonymity
from jali.publish.generalize import generalize
from jali.publish.partition import partition
from jali.releases.generalized import Generalized
from jali.reproduce.l_diversity.attack import quiet
from jali.reproduce.report import Cell, Figure, Panel
from jali.sources.tables import table

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
    "NDGH": {"show": "set"},
}
TITLES = {"rules": "rules", "class_rules": "class rules", "kl_cost": "KL cost", "kl": "KL"}
METHODS = ("lattice", "Mondrian")


class Point(NamedTuple):
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


def parts(path: str | Path | None, *, quick: bool) -> list[Callable[[], Figure]]:
    """The figure, as something to compute."""
    return [partial(figure_3, path, KS[1::2] if quick else KS)]


def figure_3(path: str | Path | None, ks: Sequence[int] = KS) -> Figure:
    """Absolute error of association and class rules, for PDF, INTER1, INTER2 and NDGH, against k."""
    own = people(path)
    found = points(own, ks)
    lines: list[tuple[Cell, ...]] = [
        (method, name, which, *(float(getattr(found[method, name, k], field)) for k in ks))
        for method in METHODS
        for field, which in TITLES.items()
        for name in SHOWN
    ]
    panels = tuple(
        Panel(
            f"{which}, {method}", tuple(map(str, ks)),
            {name: tuple(getattr(found[method, name, k], field) for k in ks) for name in SHOWN}, "k", "absolute error",
        )
        for field, which in list(TITLES.items())[:2]
        for method in METHODS
    )  # fmt: skip
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


def points(own: Table, ks: Sequence[int]) -> Mapping[tuple[str, str, int], Point]:
    """Every release of the figure."""
    frame = own.frame("arrow")
    truth = mine(frame.select(MINED)), mine(frame.select([*MINED, CLASS]), then=CLASS)
    found = {}
    for k in ks:
        levels = generalize(own, KAnonymity(k), metric="height", on_step=quiet).levels
        for name, how in SHOWN.items():
            full = generalize(own, KAnonymity(k), levels=levels, on_step=quiet, **how)
            boxes = partition(own, KAnonymity(k), on_step=quiet, **how)
            found["lattice", name, k] = _point(full, own, truth)
            found["Mondrian", name, k] = _point(boxes, own, truth)
    return found


def _point(release: Generalized, own: Table, truth: tuple[Any, Any]) -> Point:
    errors, class_errors = 0.0, 0.0
    covers = {column.name: column.cover for column in release.columns}
    for drawn in reconstructions(release, own, covers, seeds=SEEDS):
        errors += distance(truth[0], mine(drawn.select(MINED)))
        class_errors += distance(truth[1], mine(drawn.select([*MINED, CLASS]), then=CLASS))
    costs = measure(release, own)
    assert costs.kl_cost is not None
    return Point(errors / SEEDS, class_errors / SEEDS, costs.kl_cost, costs.kl)
