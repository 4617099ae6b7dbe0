"""Figures 9 and 11: whom the homogeneity attack reaches in k-anonymous tables; and single numbers of the text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from jali.datasets import adult
from jali.encoding.builders import bands
from jali.encoding.table import Column, Table
from jali.principles import KAnonymity, RecursiveDiversity
from jali.principles.base import Principle
from jali.publish.generalize import generalize, minimal
from jali.releases.generalized import Generalized
from jali.reproduce.report import Figure
from jali.risk.audit.audit import Homogeneity, audit

QUASI = ("age", "sex", "race", "marital-status", "education")
KS = (2, 5, 10, 15, 20, 30, 50)

# As printed: affected / all minimal tables, average groups and average people affected.
FIGURE_9 = {
    2: ("8/8", "7.38", "558.00"),
    5: ("11/12", "3.58", "381.58"),
    10: ("10/12", "1.75", "300.42"),
    15: ("7/8", "2.12", "317.25"),
    20: ("8/10", "1.20", "228.20"),
    30: ("7/10", "0.90", "215.40"),
    50: ("5/5", "1.00", "202.80"),
}
FIGURE_11 = {
    2: ("8/8", "20.50", "13574.5"),
    5: ("12/12", "12.67", "13328.3"),
    10: ("12/12", "7.83", "10796.5"),
    15: ("8/8", "8.88", "12009.4"),
    20: ("10/10", "7.10", "11041.0"),
    30: ("10/10", "5.50", "11177.0"),
    50: ("5/5", "5.80", "8002.0"),
}


@dataclass(frozen=True)
class Affected:
    """What the attack reaches in the minimal k-anonymous tables."""

    tables: int
    of: int
    groups: Fraction  # the average of a table
    people: Fraction

    def shown(self, digits: int) -> tuple[str, str, str]:
        """As the paper prints it."""
        return f"{self.tables}/{self.of}", f"{float(self.groups):.2f}", f"{float(self.people):.{digits}f}"


def homogeneity(table: Table, k: int) -> tuple[Affected, Affected]:
    """The attack on all minimal k-anonymous tables: groups with one value only, and with one value at 95 % or more."""
    promise = KAnonymity(k)
    nodes = minimal(table, promise, on_step=quiet)
    audits = [audit(generalize(table, promise, levels=node.levels, on_step=quiet)) for node in nodes]
    return _average([a.homogeneous for a in audits]), _average([a.nearly_homogeneous for a in audits])


def _average(found: Sequence[Homogeneity]) -> Affected:
    return Affected(
        sum(one.groups > 0 for one in found),
        len(found),
        Fraction(sum(one.groups for one in found), len(found)),
        Fraction(sum(one.people for one in found), len(found)),
    )


def quiet(done: int, total: int) -> None:
    """No bar of its own: the whole report has one."""


def figures(path: str | Path | None) -> list[Figure]:
    """Figures 9 and 11 with both readings of the labels, and what the text says of the table."""
    tables = [adult(path, quasi=QUASI, sensitive=["salary-class"], labels=labels) for labels in ("paper", "right")]
    found = {k: [homogeneity(table, k) for table in tables] for k in KS}
    return [
        _figure("figure-9", "homogeneity attack", found, which=0, digits=2, printed=FIGURE_9),
        _figure("figure-11", "95 % homogeneity attack", found, which=1, digits=1, printed=FIGURE_11),
        said_of_the_table(path),
    ]


def _figure(
    name: str,
    what: str,
    found: dict[int, list[tuple[Affected, Affected]]],
    *,
    which: int,
    digits: int,
    printed: dict[int, tuple[str, str, str]],
) -> Figure:
    shown = {k: [both[which].shown(digits) for both in readings] for k, readings in found.items()}
    wrong = [str(k) for k, (paper, _) in shown.items() if paper != printed[k]]
    return Figure(
        name,
        f"{name.replace('-', ' ').capitalize()}: {what} on the Adult table",
        ("k", "tables", "groups", "people", "right: tables", "right: groups", "right: people"),
        tuple((k, *paper, *right) for k, (paper, right) in shown.items()),
        (
            "tables: minimal k-anonymous tables affected / all; groups, people: affected in a table, on average.",
            "First three columns: the labels >50K. of the second file read as <=50K, as in the paper; "
            + (f"differs from what is printed for k = {', '.join(wrong)}." if wrong else "every digit is as printed."),
            "Last three columns: the labels read right, which the paper does not have; the attack is weaker.",
        ),
    )


def said_of_the_table(path: str | Path | None) -> Figure:
    """Numbers in the text of Section 6: the diversity of Occupation alone, and two counts of people by age."""
    whole = suppressed(adult(path, quasi=["sex"]))
    ages = by_age(path)
    return Figure(
        "section-6",
        "Section 6: what the text says of the Adult table",
        ("", "printed", "computed"),
        (
            ("entropy diversity of Occupation", "10.57", f"{audit(whole).entropy_l:.4f}"),
            ("recursive (3, 11) of Occupation", "", _holds(whole, RecursiveDiversity(3, 11))),
            ("recursive (3, 12) of Occupation", "cannot be met", _holds(whole, RecursiveDiversity(3, 12))),
            ("people aged 81 to 90", "114", f"{ages['[81, 90]']:,}"),
            ("people aged 31 to 40", "12,291", f"{ages['[31, 40]']:,}"),
        ),
        (
            "The two counts are in tens that begin at 1, 11, 21 …; the figures use tens that begin at 0, 10, 20 …",
            "Recursive (3, 11) is not in the paper.",
        ),
    )


def suppressed(table: Table) -> Generalized:
    """The table in which every quasi-identifier shows *."""
    top = {column.name: table.hierarchy(column.name).height for column in table.quasi}
    return generalize(table, KAnonymity(2), levels=top, on_step=quiet)


def _holds(release: Generalized, principle: Principle) -> str:
    return "holds" if bool(principle.holds(release.counts()).all()) else "cannot be met"


def by_age(path: str | Path | None) -> dict[str, int]:
    """People by age in tens that begin at 1, 11, 21 …, as published."""
    table = adult(path, quasi=["age"])
    age = table["age"]
    builder = bands(5, 10, 20, origin=1, low=17, high=90)
    shifted = Column(age.name, age.role, age.values, age.codes, builder.build(age.name, age.values, declared=True))
    people = Table((shifted, *table.sensitive), table.records)
    release = generalize(people, KAnonymity(2), levels={"age": 2}, on_step=quiet)
    return dict(zip(release.groups["age"].to_pylist(), release.groups["rows"].to_pylist(), strict=True))
