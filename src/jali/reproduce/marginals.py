"""Injecting Utility into Anonymized Datasets (Kifer and Gehrke; SIGMOD 2006)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from jali.core.progress import Step
from jali.datasets import adult as adult_table
from jali.encoding.hierarchy import taxonomy
from jali.encoding.table import Table
from jali.graphical.marginal import Cache
from jali.graphical.maxent import Divergence
from jali.graphical.privacy.privacy import Checker, columns_of
from jali.graphical.search import Found, Problem, select
from jali.principles import DistinctDiversity, EntropyDiversity, KAnonymity
from jali.principles.base import Principle
from jali.publish.generalize import minimal
from jali.publish.marginals import check_marginals
from jali.reproduce.examples import frame_of
from jali.reproduce.report import Cell, Figure, Panel, Report, computed, quiet
from jali.sources.tables import table as table_of

__all__ = ["report"]

QUASI = ("race", "sex", "age", "marital-status")
PROMISES: tuple[Principle, ...] = (KAnonymity(6), EntropyDiversity(6))
TABLES = {"A": (1, 1, 4, 0), "B": (0, 0, 4, 1), "C": (1, 1, 2, 1)}
"""The minimal tables. C is known by Figure 9, B as the one whose best collection is the best of all."""
NOTES = (
    "Adult: 45,222 people; race, sex, age and marital-status, sensitive occupation; 6-anonymous, entropy 6-diverse.",
    "The paper's figures are plots without numbers, and it does not print which diversity it used; the numbers here "
    "are jali's own. Levels are those of race, sex, age, marital-status.",
)

# Figure 1 (a): zip, condition, age.
PATIENTS = (
    ("14850", "Measles", 33), ("14853", "Allergy", 26), ("14853", "Gout", 22), ("14853", "Cancer", 32),
    ("14850", "Flu", 48), ("14850", "Heart", 47), ("14850", "Flu", 46), ("14853", "Cancer", 53),
    ("14853", "Heart", 51), ("13063", "Flu", 24), ("13063", "Cancer", 38), ("13068", "Cancer", 38),
    ("13068", "Heart", 30),
)  # fmt: skip
PARTS: dict[str, Mapping[str, int]] = {
    "1(b)": {"zip": 1, "age": 3, "condition": 0},
    "1(c)": {"age": 1},
    "1(d)": {"zip": 0, "condition": 0},
    "1(e)": {"zip": 0, "age": 2},
}


def report(adult: str | Path | None, *, quick: bool, on_step: Step) -> Report:
    """Figures 1, 7, 8 and 9; the real Adult table must be at hand. Nothing here takes long enough to be left out."""
    del quick
    people = adult_table(adult, quasi=QUASI)
    searched = Searched(people)
    parts = (figure_1, searched.figure_7, searched.figure_8, searched.figure_9)
    title = "Injecting Utility into Anonymized Datasets, computed again from the Adult table"
    return Report("marginals", title, computed(parts, on_step), NOTES)


def patients() -> Table:
    """Figure 1 (a), with hierarchies that have the levels of the figure's other parts."""
    bands = [[f"[{(a - 1) // w * w + 1}-{(a - 1) // w * w + w}]" for w in (5, 10)] for a in range(61)]
    ages = [(str(a), *bands[a], "< 40" if a <= 40 else "> 40", "*") for a in range(21, 61)]
    zips = [(code, f"{code[:4]}*", "*") for code in ("14850", "14853", "13063", "13068")]
    frame = frame_of(("zip", "age", "condition"), [(code, str(age), condition) for code, condition, age in PATIENTS])
    quasi = {"zip": taxonomy(zips), "age": taxonomy(ages)}
    return table_of(frame, quasi=quasi, sensitive=["condition"], types={"age": "text", "zip": "text"})


def figure_1() -> Figure:
    """Which of the marginals of Figure 1 may be published together with 1 (b), and why not."""
    table = patients()
    promises = [KAnonymity(2), DistinctDiversity(2)]
    rows: list[tuple[Cell, ...]] = []
    for names in (("1(b)",), ("1(b)", "1(c)"), ("1(b)", "1(d)"), ("1(b)", "1(e)"), ("1(b)", "1(c)", "1(d)")):
        collection = [PARTS[name] for name in names]
        # the diversity first, so that it is the measles that are named
        found = min(
            (check_marginals(table, collection, one, attacker="marginals") for one in reversed(promises)), key=bool
        )
        where = ", ".join(f"{name} {value}" for name, value in (found.cell or {}).items())
        rows.append((", ".join(names), "yes" if found.holds else "no", "" if found.holds else where, found.reason))
    return Figure(
        "figure-1",
        "Figure 1: which marginals may be published together (2-anonymous, 2 distinct conditions)",
        ("published", "safe", "the cell that breaks it", "reason"),
        tuple(rows),
        ("Whoever is under 40 and lives in 14850 has measles, once 1(b) and 1(d) are joined.",),
    )


class Searched:
    """Collections of the Adult table, found once for all figures."""

    def __init__(self, people: Table) -> None:
        self.people = people
        self.divergence = Divergence(Cache.of(people))
        self.checker = Checker(self.divergence.cache, PROMISES, columns_of(people))
        self.domain = self.divergence.cache.domain

    def mask(self, levels: Mapping[str, int]) -> int:
        """The marginal with these levels."""
        return self.domain.mask(self.domain.marginal(levels))

    def table(self, name: str) -> int:
        """One of the minimal tables."""
        return self.mask(dict(zip(QUASI, TABLES[name], strict=True)) | {"occupation": 0})

    def kl(self, masks: Sequence[int]) -> float:
        """The divergence of a decomposable collection."""
        found = self.divergence.kl(masks)
        assert found is not None
        return found

    def best(self, base: str | None) -> Found:
        """The best of all decomposable collections, or of those with a table."""
        given = 0 if base is None else self.table(base)
        return select(Problem(self.divergence, self.checker, base=given), "exhaustive")

    def figure_7(self) -> Figure:
        """Figure 7: the minimal tables, everything suppressed, and the best collection."""
        found = {tuple(node.levels[name] for name in QUASI) for node in minimal(self.people, PROMISES, on_step=quiet)}
        rows: list[tuple[Cell, ...]] = [("0", "everything suppressed", self.kl([self.mask({"occupation": 0})]))]
        rows += [(name, str(levels), self.kl([self.table(name)])) for name, levels in TABLES.items()]
        rows.append(("opt", "the best collection of all", self.best(None).kl))
        same = "These are all minimal tables." if found == set(TABLES.values()) else "Other tables are minimal too."
        return _bars("figure-7", "Figure 7: anonymized tables, KL-divergence in nats", rows, (same,))

    def figure_8(self) -> Figure:
        """Figure 8: the best collections with each table, and overall."""
        rows: list[tuple[Cell, ...]] = []
        for base in (*TABLES, None):
            best = self.best(base)
            text = "; ".join(
                " ".join(f"{n}:{level}" for n, level in self.domain.named(m).items()) for m in best.marginals
            )
            rows.append((f"{base}+" if base else "opt", text, best.kl))
        notes = ("Every decomposable collection was looked at; the greedy search finds these too.",)
        return _bars("figure-8", "Figure 8: anonymized marginals, KL-divergence in nats", rows, notes)

    def figure_9(self) -> Figure:
        """Figure 9: single-attribute marginals beside C, in the order of greatest gain."""
        collection = [self.table("C")]
        problem = Problem(self.divergence, self.checker, base=collection[0])
        rows: list[tuple[Cell, ...]] = [("C", str(TABLES["C"]), self.kl(collection))]
        single = [self.mask({a.name: level}) for a in self.domain.attributes for level in range(a.depth)]
        while True:
            options = {}
            for one in single:
                kl = self.divergence.kl([*collection, one])
                if kl is not None and problem.safe([*collection, one]):
                    options[one] = kl
            best = min(options, key=lambda one: (options[one], one.bit_count()), default=0)
            if not best or options[best] >= self.kl(collection) - 1e-12:
                break
            collection.append(best)
            (name, level), *_ = self.domain.named(self.domain.of_mask(best)).items()
            rows.append((f"C{len(collection) - 1}", f"{name} at level {level}", options[best]))
        return _bars("figure-9", "Figure 9: incremental utility, KL-divergence in nats", rows, ())


def _bars(name: str, title: str, rows: Sequence[tuple[Cell, ...]], notes: tuple[str, ...]) -> Figure:
    values = tuple(float(row[-1]) for row in rows if isinstance(row[-1], (int, float)))
    panel = Panel("", tuple(str(row[0]) for row in rows), {"KL-divergence": values}, "", "nats")
    return Figure(name, title, ("bar", "what", "KL"), tuple(rows), notes, (panel,), digits=6)
