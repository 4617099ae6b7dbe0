"""ANGEL: Enhancing the Utility of Generalization for Privacy Preserving Publication (Tao, Chen, Xiao, Zhou, Zhang;
TKDE 2009).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from jali.core.arrays import combine
from jali.core.progress import Step
from jali.datasets import adult as adult_table
from jali.datasets import occupations
from jali.encoding.table import Table
from jali.errors import InfeasibleError
from jali.measures.holder import divergence
from jali.measures.measure import measure
from jali.measures.queries import Workload, workload
from jali.principles import FrequencyDiversity, KAnonymity, TCloseness
from jali.principles.base import Principle
from jali.publish.anatomize import anatomize
from jali.publish.angelize import angelize
from jali.publish.partition import partition
from jali.releases.base import Release
from jali.releases.display import Show
from jali.releases.linked.angel import Angel
from jali.reproduce.report import Cell, Figure, Panel, Report

__all__ = ["report"]

K = 10
WAYS: dict[str, dict[str, Any]] = {
    "angelization": {"batches": "partition", "buckets": "partition"},
    "angelization (best)": {},
}
METHODS = ("generalization", "anatomy", *WAYS)
VOLUME = 0.05
T = 0.2

NOTES = (
    "The paper's OCC table (300,000 Americans, IPUMS) is not to be had. occupations() is an invented census with its "
    "domains, so the numbers are not the paper's; which method is better, and where, can be compared.",
    "Figures 4 and 5 are plots, and the paper prints no numbers for them.",
    f"k = {K} for generalization and angelization; numbers are shown as intervals and words as sets. Anatomy shows "
    "quasi-identifiers as they are, so it protects nobody from being found in the table; the paper does not plot it.",
    '"angelization" forms batches and buckets by Mondrian, as the paper does; "angelization (best)" is what '
    "jali.angelize does by default.",
    "Anatomy is defined for l-diversity; for t-closeness its buckets are the groups of the generalization.",
)
ADULT_ABSENT = "The Adult table is not at hand, so its figures are left out: name it, or set JALI_ADULT."

Releases: TypeAlias = Mapping[str, Release]


@dataclass(frozen=True)
class _Scope:
    """How much is computed."""

    ls: tuple[int, ...] = tuple(range(2, 11))
    ts: tuple[float, ...] = (0.1, 0.2, 0.3, 0.4, 0.5)
    volumes: tuple[float, ...] = tuple(n / 100 for n in range(3, 11))
    queries: int = 1000
    rows: int = 300_000

    @property
    def steps(self) -> int:
        """How many requirements are met for a table, and twice with marginals."""
        return len(self.ls) + len(self.ts) + 2

    def note(self) -> str:
        """What was left out."""
        ls, ts = (", ".join(map(str, some)) for some in (self.ls, self.ts))
        volumes = ", ".join(f"{v:.0%}" for v in self.volumes)
        return (
            f"Quick: {self.rows:,} rows of occupations, {self.queries} questions a workload, l = {ls}, t = {ts}, "
            f"volumes {volumes} only."
        )


QUICK = _Scope(ls=(2, 5, 10), ts=(0.1, 0.3, 0.5), volumes=(0.03, 0.05, 0.1), queries=200, rows=30_000)


@dataclass(frozen=True)
class _Case:
    """One of the tables, and the marginals that are published of it."""

    name: str
    table: Table
    added: tuple[str, ...]  # G1 has the first of these and the sensitive column, G2 the first two, and so on

    @property
    def shows(self) -> dict[str, Show]:
        return {c.name: "interval-exact" if c.kind == "number" else "set-exact" for c in self.table.quasi}

    @property
    def marginals(self) -> list[list[str]]:
        sensitive = self.table.sensitive[0].name
        return [[*self.added[: n + 1], sensitive] for n in range(len(self.added))]


def report(adult: str | Path | None, *, quick: bool, on_step: Step) -> Report:
    """Figures 4 and 5 and Table 9 for the invented census, and for the real Adult table if it is at hand."""
    scope = QUICK if quick else _Scope()
    cases = [
        _Case("occupations", occupations(scope.rows), ("marital-status", "work-class", "education", "gender")),
    ]
    absent = adult is None and not os.environ.get("JALI_ADULT")
    if not absent:
        table = adult_table(adult, quasi=("age", "sex", "race", "marital-status", "education"))
        cases.append(_Case("adult", table, ("marital-status", "race", "education", "sex")))
    total = len(cases) * scope.steps
    figures: list[Figure] = []
    for number, case in enumerate(cases):

        def step(done: int, before: int = number * scope.steps) -> None:
            on_step(before + done, total)

        figures += _figures(case, scope, step)
    on_step(total, total)
    notes = NOTES + ((ADULT_ABSENT,) if absent else ()) + ((scope.note(),) if quick else ())
    return Report(
        "angel",
        "ANGEL, computed again" + (" on an invented census" if absent else " on an invented census and on Adult"),
        tuple(figures),
        notes,
    )


def _figures(case: _Case, scope: _Scope, step: Callable[[int], None]) -> Iterator[Figure]:
    """Figures 4 and 5 and Table 9 for one table; each requirement is met once."""
    asked = {volume: workload(case.table, scope.queries, volume=volume) for volume in {VOLUME, *scope.volumes}}
    principles: dict[str, Principle] = {f"l = {l}": FrequencyDiversity(l) for l in scope.ls}
    principles |= {f"t = {t}": TCloseness(t) for t in scope.ts}
    kl: dict[str, list[float | None]] = {}
    error: dict[str, list[float | None]] = {}
    hardest: tuple[str, Principle, Releases] | None = None
    for done, (name, principle) in enumerate(principles.items()):
        step(done)
        made = _released(case, principle)
        kl[name] = [None if made is None else measure(made[m], case.table).kl for m in METHODS]
        error[name] = [None if made is None else _error(made[m], asked[VOLUME]) for m in METHODS]
        if made is not None and name.startswith("l"):
            hardest = name, principle, made
    assert hardest is not None  # two values are enough for l = 2
    close = TCloseness(T)
    by_volume = {hardest[0]: hardest[2], f"t = {T}": _released(case, close) or {}}
    yield _figure_4(case, kl)
    yield _figure_5(case, error, _volumes(by_volume, asked, scope.volumes))
    yield _table_9(case, {hardest[0]: hardest[1], f"t = {T}": close}, lambda n: step(len(principles) + n))


def _released(case: _Case, principle: Principle) -> Releases | None:
    """The table as each method publishes it; None where nothing keeps the promise."""
    table, shows = case.table, case.shows
    plain = isinstance(principle, FrequencyDiversity)
    try:
        return {
            "generalization": partition(table, [principle, KAnonymity(K)], show=shows),
            "anatomy": anatomize(table, principle, buckets="anatomy" if plain else "partition"),
        } | {method: angelize(table, principle, k=K, show=shows, **ways) for method, ways in WAYS.items()}
    except InfeasibleError:
        return None


def _error(release: Release, asked: Workload) -> float:
    """The average relative error of the questions that somebody satisfies."""
    return asked.errors(release.estimate()).average


def _volumes(
    made: Mapping[str, Releases], asked: Mapping[float, Workload], volumes: Sequence[float]
) -> dict[str, dict[float, list[float | None]]]:
    """For each requirement and volume the error of each method."""
    return {
        name: {v: [_error(releases[m], asked[v]) if m in releases else None for m in METHODS] for v in volumes}
        for name, releases in made.items()
    }


def _panel(title: str, x: Sequence[float], rows: Sequence[Sequence[float | None]], x_label: str, y: str) -> Panel:
    series = {method: tuple(row[i] for row in rows) for i, method in enumerate(METHODS)}
    return Panel(title, tuple(float(v) for v in x), series, x_label, y)


def _by_requirement(found: Mapping[str, list[float | None]], y: str) -> tuple[Panel, ...]:
    """One plot against l and one against t."""
    panels = []
    for letter, title in (("l", "l-diversity"), ("t", "t-closeness")):
        names = [name for name in found if name.startswith(letter)]
        x = [float(name.removeprefix(f"{letter} = ")) for name in names]
        panels.append(_panel(title, x, [found[name] for name in names], letter, y))
    return tuple(panels)


def _figure_4(case: _Case, kl: Mapping[str, list[float | None]]) -> Figure:
    rows: tuple[tuple[Cell, ...], ...] = tuple((name, *values) for name, values in kl.items())
    title = f"Figure 4: KL-divergence in nats, {case.name} ({case.table.rows:,} people)"
    panels = _by_requirement(kl, "KL-divergence (nats)")
    return Figure(f"figure-4-{case.name}", title, ("requirement", *METHODS), rows, (), panels, kind="lines", digits=4)


def _figure_5(
    case: _Case, error: Mapping[str, list[float | None]], by_volume: Mapping[str, dict[float, list[float | None]]]
) -> Figure:
    rows: list[tuple[Cell, ...]] = [(name, f"{VOLUME:.0%}", *values) for name, values in error.items()]
    panels = list(_by_requirement(error, "average relative error"))
    for name, found in by_volume.items():
        rows += [(name, f"{volume:.0%}", *values) for volume, values in found.items()]
        percent = [100 * volume for volume in found]
        panels.append(_panel(name, percent, list(found.values()), "volume (%)", "average relative error"))
    title = f"Figure 5: average relative error of random counts, {case.name} ({case.table.rows:,} people)"
    header = ("requirement", "volume", *METHODS)
    return Figure(f"figure-5-{case.name}", title, header, tuple(rows), (), tuple(panels), kind="lines", digits=4)


def _table_9(case: _Case, principles: Mapping[str, Principle], step: Callable[[int], None]) -> Figure:
    """How far each marginal is from the truth, from the table with every column and from one of its own."""
    rows: list[tuple[Cell, ...]] = []
    worse: dict[str, tuple[int, int]] = {}
    for done, (name, principle) in enumerate(principles.items()):
        step(done)
        for method, ways in WAYS.items():
            made = angelize(case.table, principle, k=K, marginals=case.marginals, show=case.shows, **ways)
            whole, own = zip(*(_divergences(case, made, columns) for columns in case.marginals), strict=True)
            rows += [(name, method, "GT", *whole), (name, method, "GT_i", *own)]
            for n, columns in enumerate(case.marginals, 1):
                if own[n - 1] > whole[n - 1]:
                    worse[f"G{n}"] = _cells(made, columns)
    header = ("requirement", "batches and buckets", "using", *(f"G{n}" for n in range(1, len(case.marginals) + 1)))
    notes = ["; ".join(f"G{n}: {', '.join(columns)}" for n, columns in enumerate(case.marginals, 1)) + "."]
    if worse:
        which = "; ".join(f"{name} ({seen:,} and {own:,} cells)" for name, (seen, own) in sorted(worse.items()))
        notes.append(
            "The paper finds that a marginal's own table always reduces the error; here not always. The table of all "
            "columns is cut along the other columns too, so its cells, seen through a marginal's columns, overlap, "
            "and a mixture of them can follow the truth more closely than the fewer cells of the marginal's own table. "
            f"So for {which}."
        )
    title = f"Table 9: KL-divergence of marginals in hundredths of a nat, {case.name} ({case.table.rows:,} people)"
    return Figure(f"table-9-{case.name}", title, header, tuple(rows), tuple(notes))


def _cells(release: Angel, columns: Sequence[str]) -> tuple[int, int]:
    """How many different cells the table of all columns shows in those of a marginal, and how many its own does."""
    rows = []
    for table in release.contents.tables:
        some = [(c.held, len(c.labels)) for c in table.columns if c.name in columns]
        if table is release.contents.tables[0] or len(some) == len(table.columns) == len(columns) - 1:
            rows.append(len(combine(some, len(table.sizes))[1]))
    return rows[0], rows[-1]


def _divergences(case: _Case, release: Angel, columns: Sequence[str]) -> tuple[float, float]:
    """How far a marginal is from the truth, from the table with all columns and from the one that has fewest."""
    table = replace(case.table, columns=tuple(c for c in case.table.columns if c.name in columns))
    return 100 * divergence(release.linked({}), table), 100 * divergence(release.estimate().part(columns), table)
