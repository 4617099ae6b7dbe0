"""Worked examples that need no data: those of the l-diversity paper and of the paper on pdf generalization."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from jali.encoding.builders import suppress
from jali.encoding.hierarchy import taxonomy
from jali.encoding.table import Table
from jali.measures.measure import measure
from jali.measures.rules import Rule, mine, rule_probability
from jali.principles import DistinctDiversity, EntropyDiversity, KAnonymity
from jali.principles.counts import dense
from jali.publish.generalize import generalize, minimal
from jali.releases.generalized import Generalized
from jali.releases.pdf import read_cell
from jali.reproduce.report import Cell, Figure
from jali.risk.audit.audit import audit
from jali.risk.beliefs import Beliefs, beliefs
from jali.sources.tables import table

# -- l-diversity: inpatients, changes of belief, adjusted entropy ------------------------------------------------------

HEART, VIRAL, CANCER = "Heart Disease", "Viral Infection", "Cancer"
INPATIENTS = (  # Figure 1
    ("13053", 28, "Russian", HEART),
    ("13068", 29, "American", HEART),
    ("13068", 21, "Japanese", VIRAL),
    ("13053", 23, "American", VIRAL),
    ("14853", 50, "Indian", CANCER),
    ("14853", 55, "Russian", HEART),
    ("14850", 47, "American", VIRAL),
    ("14850", 49, "American", VIRAL),
    ("13053", 31, "American", CANCER),
    ("13053", 37, "Indian", CANCER),
    ("13068", 36, "Japanese", CANCER),
    ("13068", 35, "American", CANCER),
)
# Figure 2 shows zip 2, age 1 and Figure 4 zip 1, age 2. Nobody is 40, so that "≤ 40" lies above "< 30" and "3*".
ZIPS = (
    ("13053", "1305*", "130**", "*"),
    ("13068", "1306*", "130**", "*"),
    ("14850", "1485*", "1485*", "*"),
    ("14853", "1485*", "1485*", "*"),
)
FIGURE_2 = {"zip": 2, "age": 1, "nationality": 1}
FIGURE_4 = {"zip": 1, "age": 2, "nationality": 1}

JOINT = {("q1", "s1"): (0.15, 1), ("q1", "s2"): (0.35, 1), ("q2", "s1"): (0.25, 35), ("q2", "s2"): (0.25, 15)}
"""Figure 5: the share of the population and the number of people in the table, for each q and s."""
BREACH = (0.31, 0.58)

DONT_CARE, SENSITIVE = (11, 10, 3, 2), (3, 4)
"""The counts of Section 4.2's run through Algorithm 1."""


def of_l_diversity() -> list[Figure]:
    """All examples of the l-diversity paper."""
    return [inpatient_figure(), belief_figure(), entropy_figure()]


def _age(age: int) -> tuple[str, ...]:
    decade = "< 30" if age < 30 else "3*" if age < 40 else "≥ 40"
    return str(age), decade, "≤ 40" if age <= 40 else "> 40", "*"


def frame_of(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> pa.Table:
    """Printed rows as a frame."""
    return pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))


def inpatients() -> Table:
    """Figure 1, with hierarchies that lead to Figures 2 and 4."""
    frame = frame_of(("zip", "age", "nationality", "condition"), INPATIENTS)
    ages = sorted({age for _, age, _, _ in INPATIENTS})
    quasi = {"zip": taxonomy(ZIPS), "age": taxonomy([_age(age) for age in ages]), "nationality": suppress()}
    return table(frame, quasi=quasi, sensitive=["condition"])


def inpatient_figure() -> Figure:
    """Figures 2 and 4: published from Figure 1, and what they give away."""
    patients = inpatients()
    anonymous = generalize(patients, KAnonymity(4), levels=FIGURE_2)
    diverse = generalize(patients, DistinctDiversity(3))
    audits = audit(anonymous), audit(diverse)
    found = [
        "; ".join(_levels(node.levels) for node in minimal(patients, promise))
        for promise in (KAnonymity(4), DistinctDiversity(3))
    ]
    return Figure(
        "figure-2-and-4",
        "Figures 1, 2 and 4: inpatients",
        ("", "Figure 2: 4-anonymous", "Figure 4: 3-diverse"),
        (
            ("levels", _levels(FIGURE_2), _levels(diverse.levels)),
            ("groups", *(a.groups for a in audits)),
            ("k", *(a.k for a in audits)),
            ("different conditions in a group", *(a.distinct_l for a in audits)),
            ("entropy diversity", *(a.entropy_l for a in audits)),
            ("groups with one condition", *(a.homogeneous.groups for a in audits)),
            ("people in them", *(a.homogeneous.people for a in audits)),
            ("that condition", *(", ".join(same_condition(r)) or "–" for r in (anonymous, diverse))),
        ),
        (
            f"All minimal 4-anonymous tables: {found[0]}. All minimal 3-diverse tables: {found[1]}.",
            "The paper says that Figure 4 is 2.8-diverse by entropy.",
        ),
        digits=4,
    )


def same_condition(release: Generalized) -> list[str]:
    """The condition that everybody has, for each group in which everybody has the same."""
    rows = release.frame("arrow")
    group, conditions = release.group_of_rows, rows["condition"].to_pylist()
    by_group: dict[int, set[str]] = {}
    for number, condition in zip(group.tolist(), conditions, strict=True):
        by_group.setdefault(number, set()).add(condition)
    return sorted(next(iter(found)) for found in by_group.values() if len(found) == 1)


def _levels(levels: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {level}" for name, level in levels.items())


def theorem_5_1() -> tuple[Beliefs, Beliefs]:
    """Beliefs of who knows Figure 5's population, after the table itself and after its generalization, Figure 6."""
    pairs = [pair for pair, (_, people) in JOINT.items() for _ in range(people)]
    people = table(frame_of(("q", "s"), pairs), quasi={"q": suppress()}, sensitive=["s"])
    population = frame_of(("q", "s", "frequency"), [(*pair, share) for pair, (share, _) in JOINT.items()])
    itself, merged = (generalize(people, KAnonymity(2), levels={"q": level}) for level in (0, 1))
    return beliefs(itself, population), beliefs(merged, population)


def belief_figure() -> Figure:
    """Figures 5 and 6: the table breaches nothing, its generalization does."""
    itself, merged = theorem_5_1()
    rows: list[tuple[Cell, ...]] = []
    for first, second in zip(itself.frame().to_pylist(), merged.frame().to_pylist(), strict=True):
        assert (first["q"], first["s"]) == (second["q"], second["s"])
        rows.append((f"{first['q']}, {first['s']}", first["prior"], first["posterior"], second["posterior"]))
    breaches = [found.breaches(*BREACH).num_rows for found in (itself, merged)]
    return Figure(
        "theorem-5-1",
        "Theorem 5.1, Figures 5 and 6: Bayes-optimal privacy is not monotone",
        ("", "prior", "after T", "after T*"),
        tuple(rows),
        (
            f"{BREACH}-breaches: {breaches[0]} after T, {breaches[1]} after its generalization T* "
            "(s1 becomes too likely for q1, and so s2 too unlikely).",
        ),
        digits=4,
    )


def log_entropic_mean(counts: Sequence[int]) -> float:
    """M(c) = Σ c log c / Σ c."""
    return sum(c * math.log(c) for c in counts) / sum(counts)


def adjusted_entropy() -> float:
    """The adjusted entropy of the example in nats, from the level of entropy diversity with a don't-care set."""
    dont_care = tuple(str(number) for number in range(len(DONT_CARE)))
    level = EntropyDiversity(1, dont_care=dont_care).level(dense(np.array([DONT_CARE + SENSITIVE])))
    return math.log(level[0])


def entropy_figure() -> Figure:
    """The run through Algorithm 1: which don't-care counts stay, and what comes out."""
    sets = [SENSITIVE, (2, *SENSITIVE), (2, 3, *SENSITIVE)]
    means: list[tuple[Cell, ...]] = [
        (f"log-entropic mean of {', '.join(map(str, counts))}", printed, f"{log_entropic_mean(counts):.6f}")
        for counts, printed in zip(sets, ("1.263", "1.136", "1.127"), strict=True)
    ]
    return Figure(
        "algorithm-1",
        "Section 4.2: adjusted entropy of don't-care counts 11, 10, 3, 2 and sensitive counts 3, 4",
        ("", "printed", "computed"),
        (*means, ("adjusted entropy (nats)", "", f"{adjusted_entropy():.12f}")),
        ("The paper stops before the last number.",),
    )


# -- pdf generalization: eight people, displays, cost, rules that hold -------------------------------------------------

LOW, HIGH = "<=50K", ">50K"
PEOPLE = (  # Table I
    ("M", "Professor", "USA", LOW),
    ("M", "Student", "USA", LOW),
    ("M", "Student", "USA", LOW),
    ("M", "Student", "Canada", LOW),
    ("F", "Showman", "Italy", HIGH),
    ("F", "Singer", "Italy", HIGH),
    ("F", "Teacher", "Italy", HIGH),
    ("F", "Teacher", "Britain", LOW),
)
COLUMNS = ("sex", "job", "nation", "salary")
NATIONS = (
    *((nation, "America", "*") for nation in ("Canada", "Peru", "USA")),
    *((nation, "Europe", "*") for nation in ("Britain", "France", "Italy")),
)
JOBS = tuple((job, "*") for job in ("Professor", "Student", "Teacher", "Showman", "Singer"))
LEVELS = {"sex": 0, "job": 1, "nation": 1}
SUPPORT, CONFIDENCE = 0.25, 0.75  # of Table VI
UNREAD = (
    "Tables are lost in the text at hand. Table I is put together from what the text says of it; that the third woman "
    "from Italy is a teacher, and which woman earns less, are ours: the printed probabilities do not depend on them."
)
Shown = Literal["taxonomy", "set-exact", "pdf"]


def of_pdf() -> list[Figure]:
    """All examples of the paper on pdf generalization."""
    return [displays(), shift(), rules_held(), one_rule()]


def people() -> Table:
    """Table I."""
    frame = frame_of(COLUMNS, PEOPLE)
    quasi = {"sex": taxonomy([("M", "*"), ("F", "*")]), "job": taxonomy(JOBS), "nation": taxonomy(NATIONS)}
    return table(frame, quasi=quasi, sensitive=["salary"])


def shown(how: Shown, towards: Fraction | None = None) -> Generalized:
    """Tables II and V: four men and four women, shown in one way or another."""
    return generalize(people(), KAnonymity(4), levels=LEVELS, show=how, towards=towards,
                      start="set" if towards is not None else "taxonomy")  # fmt: skip


def releases() -> dict[str, Generalized]:
    """By the names that the paper gives them; T_p2 is 0.4 of the way: f(Professor) = 0.4."""
    return {
        "T_d": shown("taxonomy"),
        "T_n": shown("set-exact"),
        "T_p2": shown("pdf", Fraction("0.4")),
        "T_p": shown("pdf"),
    }


def displays() -> Figure:
    """Tables II and V, with KL cost and matching probability."""
    own = people()
    rows: list[tuple[Cell, ...]] = []
    for name, release in releases().items():
        found = measure(release, own)
        assert found.kl_cost is not None
        assert found.log_match is not None
        for group in sorted(release.groups.to_pylist(), key=lambda one: str(one["sex"]), reverse=True):
            match = 1e6 * math.exp(found.log_match)
            rows.append((name, group["sex"], group["job"], group["nation"], found.kl_cost, match))
    return Figure(
        "table-2",
        "Tables II and V: the same two groups in four displays",
        ("release", "sex", "job", "nation", "KL cost", "matching probability in millionths"),
        tuple(rows),
        (UNREAD, "Interval displays of words (T_i) are not made: these words have no order.",
         "The matching probability is a multinomial; Appendix I leaves out a factor, which does not depend on how "
         "the groups are shown."),
        digits=4,
    )  # fmt: skip


def shift() -> Figure:
    """Figure 2: Europe, shifted to the frequencies of the group in three steps."""
    rows: list[tuple[Cell, ...]] = []
    for step in range(4):
        release = generalize(people(), KAnonymity(4), levels=LEVELS, show="pdf", towards=Fraction(step, 3))
        cell = next(group["nation"] for group in release.groups.to_pylist() if "Italy" in group["nation"])
        share = read_cell(cell)
        rows.append((step, *(float(share.get(name, 0)) for name in ("Italy", "Britain", "France"))))
    notes = ("Printed, cut after two digits: step 1 is 0.47, 0.30, 0.22 and step 2 is 0.61, 0.27, 0.11.",)
    return Figure("figure-2", "Figure 2: Europe in three steps (Equation 3)", ("step", "Italy", "Britain", "France"),
                  tuple(rows), notes, digits=4)  # fmt: skip


def rules_held() -> Figure:
    """Table VI: rules of the original, and how likely a reconstruction has them."""
    own = people().frame("arrow").select(["sex", "job", "nation"])
    held = mine(own, support=SUPPORT, confidence=CONFIDENCE)
    false = Rule((("nation", "Canada"),), ("sex", "M"))
    made = releases()
    rows: list[tuple[Cell, ...]] = [
        (str(rule), "yes" if rule in held else "no", *_chances(made, rule, SUPPORT, CONFIDENCE))
        for rule in [*sorted(held, key=lambda one: (len(one.when), str(one))), false]
    ]
    return Figure(
        "table-6",
        f"Table VI: rules with support {SUPPORT} and confidence {CONFIDENCE}, and the probability that they are found",
        ("rule", "in the original", "T_n", "T_p"),
        tuple(rows),
        ("The text prints USA ⇒ M as 0.68 and 0.95, Canada ⇒ M as 0.68 and 0.26.", UNREAD),
        digits=4,
    )


def _chances(made: Mapping[str, Generalized], rule: Rule, support: float, confidence: float) -> list[float]:
    """The probability that a reconstruction of T_n, and one of T_p, has the rule."""
    least = {"support": support, "confidence": confidence}
    return [rule_probability(made[name].estimate(), rule, **least) for name in ("T_n", "T_p")]


def one_rule() -> Figure:
    """Table VII: Italy ⇒ >50K for different least supports and confidences."""
    rule = Rule((("nation", "Italy"),), ("salary", HIGH))
    made = releases()
    rows: list[tuple[Cell, ...]] = [
        (str(support), str(confidence), *_chances(made, rule, support, confidence))
        for support in (0.125, 0.25, 0.375)
        for confidence in (0.6, 0.75, 0.9)
    ]
    return Figure(
        "table-7",
        "Table VII: the probability that a reconstruction has the class rule Italy ⇒ >50K",
        ("support", "confidence", "T_n", "T_p"),
        tuple(rows),
        (
            "Which supports and confidences the paper took is lost; these are ours. It says that T_p is likelier at "
            "each of its levels. At confidence 0.9 it is not: the woman who earns less must then be drawn from "
            "Britain, which T_n does more often.",
        ),
        digits=4,
    )
