"""The pdf paper's worked examples, and its Figure 3 on the real Adult table (marked `paper`)."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from jali.measures.measure import measure
from jali.releases.pdf import read_cell
from jali.reproduce import examples, pdf
from jali.reproduce.report import Figure


def cut(number: float, digits: int = 2) -> float:
    """The paper cuts decimals off."""
    return math.floor(number * 10**digits + 1e-9) / 10**digits


def row(figure: Figure, start: object) -> list[float]:
    return next([cell for cell in line if isinstance(cell, float)] for line in figure.rows if line[0] == start)


def test_table_v_is_as_printed() -> None:
    """T_p: {Pr: 0.25, St: 0.75} and {Ca: 0.25, US: 0.75} for the men; T_p2 has f(Pr) = 0.4."""
    men = {name: next(g for g in r.groups.to_pylist() if g["sex"] == "M") for name, r in examples.releases().items()}
    assert men["T_d"]["job"] == "*"
    assert men["T_d"]["nation"] == "America"
    assert men["T_n"]["job"] == "{Professor, Student}"
    assert men["T_p"]["job"] == "{Student: 0.75, Professor: 0.25}"
    assert men["T_p"]["nation"] == "{USA: 0.75, Canada: 0.25}"
    assert float(read_cell(men["T_p2"]["job"])["Professor"]) == 0.4


def test_figure_2_is_as_printed() -> None:
    """The steps from Europe to the frequencies of the group."""
    figure = examples.shift()
    assert [cut(x) for x in row(figure, 1)] == [0.47, 0.30, 0.22]
    assert [cut(x) for x in row(figure, 2)] == [0.61, 0.27, 0.11]
    assert row(figure, 3) == [0.75, 0.25, 0.0]


def test_the_rules_of_the_text_are_as_printed() -> None:
    """USA ⇒ M: 0.68 and 0.95; Canada ⇒ M: 0.68 and 0.26. 0.9492 is rounded up there."""
    figure = examples.rules_held()
    even, pdf = row(figure, "nation = USA ⇒ sex = M")
    assert (cut(even), round(pdf, 2)) == (0.68, 0.95)
    even, pdf = row(figure, "nation = Canada ⇒ sex = M")
    assert (cut(even), cut(pdf)) == (0.68, 0.26)
    assert all(line[3] >= line[2] for line in figure.rows if line[1] == "yes")


def test_costs_and_matching_probabilities_are_in_the_order_of_theorem_3() -> None:
    """T_p before T_p2 before T_n before T_d; the men of T_p have 4! / 2! · (1/4)² · (3/4)⁶ by hand."""
    found = [measure(release, examples.people()) for release in examples.releases().values()]
    assert sorted(found, key=lambda one: -(one.kl_cost or 0)) == found
    assert sorted(found, key=lambda one: one.log_match or 0) == found
    men = math.factorial(4) / 2 * (1 / 4) ** 2 * (3 / 4) ** 6
    women = math.factorial(3) * (1 / 2) ** 2 * (1 / 4) ** 2 * (3 / 4) ** 3 * (1 / 4)
    assert math.exp(found[-1].log_match or 0) == pytest.approx(men * women)


@pytest.mark.paper
def test_nearer_to_the_frequencies_is_nearer_to_the_table(adult_path: Path) -> None:
    """Figure 3, the partition: PDF below INTER1 below INTER2 below NDGH, for rules, class rules and cost."""
    own = pdf.people(adult_path)
    found = pdf.anonymous_points(own, (25,))
    assert len(set(own["age"].values.to_pylist())) == 10
    for field in ("rules", "class_rules", "kl_cost", "kl"):
        shown = [getattr(found["Mondrian", name, 25], field) for name in pdf.SHOWN]
        assert sorted(shown) == shown
    for field in ("kl_cost", "kl"):
        shown = [getattr(found["lattice", name, 25], field) for name in pdf.SHOWN]
        assert sorted(shown) == shown
