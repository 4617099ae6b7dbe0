"""The paper on worst-case background knowledge. What needs the real Adult table is marked `paper`."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import pytest

import jali
from jali.reproduce import Report, run


def test_the_maximum_of_figure_3_is_two_thirds() -> None:
    """The paper's 10/19 is right for the implication it quotes, which is not the worst."""
    figure_3 = [[2, 2, 1], [2, 1, 1, 1]]
    assert jali.disclosure.maximum(figure_3, 1, exact=True) == Fraction(2, 3)
    assert jali.disclosure.maximum(figure_3, 2, exact=True) == 1


@pytest.fixture(scope="module")
def report(adult_path: Path) -> Report:
    """All figures, once."""
    return run("background-knowledge", adult=adult_path)


@pytest.mark.paper
def test_figure_5_reaches_certainty_at_twelve_facts(report: Report) -> None:
    """Three buckets hold 13 of the 14 occupations, so twelve facts are enough, not thirteen."""
    rows = {row[0]: row[1:] for row in report["figure-5"].rows}
    assert rows[11][0] < 1
    assert rows[11][1] < 1
    assert rows[12] == (1.0, 1.0)
    assert all(implied >= negated for implied, negated in rows.values())
    assert all(low[1] <= high[1] and low[2] <= high[2] for low, high in pairwise(report["figure-5"].rows))


@pytest.mark.paper
def test_figure_5_begins_with_the_largest_share(report: Report, adult_path: Path) -> None:
    """Without any fact the disclosure is the largest share of one occupation among the ages of a band of twenty."""
    table = jali.datasets.adult(adult_path, quasi=["age"])
    bands: dict[int, dict[str, int]] = {}
    frame = table.frame("arrow").to_pydict()
    for age, occupation in zip(frame["age"], frame["occupation"], strict=True):
        held = bands.setdefault(age // 20, {})
        held[occupation] = held.get(occupation, 0) + 1
    largest = max(max(held.values()) / sum(held.values()) for held in bands.values())
    assert report["figure-5"].rows[0][1] == pytest.approx(largest, abs=1e-12)


@pytest.mark.paper
def test_figure_6_falls_with_entropy_but_not_strictly(report: Report) -> None:
    """From the table with the least entropy to the one with the most; for negations never above implications."""
    implied, negated = report["figure-6"], report["figure-6-negations"]
    assert "72 tables" in implied.title
    for column in range(1, len(implied.header)):
        values = [row[column] for row in implied.rows]
        assert values[0] == 1.0
        assert values[-1] == min(values)
        assert any(b > a for a, b in pairwise(values))
    for ours, theirs in zip(implied.rows, negated.rows, strict=True):
        assert ours[0] == theirs[0]
        assert all(n <= i + 1e-12 for i, n in zip(ours[1:], theirs[1:], strict=True))


@pytest.mark.paper
def test_the_report_is_written_with_its_plots(adult_path: Path, tmp_path: Path) -> None:
    """Tables and pictures of every figure that has one."""
    run("background-knowledge", adult=adult_path, out=tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert {"report.md", "figure-5.csv", "figure-5.svg", "figure-6.png", "figure-6-negations.svg"} <= names
