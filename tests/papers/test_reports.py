"""Laws of reproduction reports: how they print and are written, and what they refuse."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

import jali
from jali.core import charts
from jali.errors import InternalError
from jali.reproduce import PAPERS, run
from jali.reproduce.report import Figure, Panel, Report

PANEL = Panel("cost", ("2", "4"), {"k-anonymity": (1.0, 2.0), "entropy": (1.5, None)}, "k = l", base=3.0)
FIGURE = Figure(
    "figure-1", "Figure 1: costs", ("k", "people", "cost"), ((2, 1234, 1.0), (4, 9, None)), ("made up",), (PANEL,)
)
REPORT = Report("made-up", "A made-up paper", (FIGURE,), ("no such paper",))


def test_a_report_prints_as_aligned_tables() -> None:
    """Columns are aligned, numbers grouped, and what nothing satisfies is said in words."""
    assert repr(REPORT).splitlines() == [
        *("A made-up paper", "", ""),
        *("Figure 1: costs", ""),
        "k  people  cost",
        "─  ──────  ────",
        "2   1,234  1.00",
        "4       9  none",
        *("", "note: made up", "", ""),
        "note: no such paper",
    ]


@pytest.mark.parametrize("kind", ["bars", "lines"])
def test_a_report_is_written_as_tables_and_plots(tmp_path: Path, kind: str) -> None:
    """Markdown for all, CSV with every digit for each figure, SVG and PNG where there is something to plot."""
    figure = Figure(**(vars(FIGURE) | {"kind": kind}))
    Report("made-up", "A made-up paper", (figure,)).write(tmp_path / "new" / "folder")
    folder = tmp_path / "new" / "folder"
    assert sorted(path.name for path in folder.iterdir()) == [
        "figure-1.csv", "figure-1.png", "figure-1.svg", "report.md",
    ]  # fmt: skip
    with open(folder / "figure-1.csv", newline="", encoding="utf-8") as file:
        assert list(csv.reader(file)) == [["k", "people", "cost"], ["2", "1234", "1.0"], ["4", "9", ""]]
    assert "| 2 | 1,234 | 1.00 |" in (folder / "report.md").read_text("utf-8")
    assert "k-anonymity" in (folder / "figure-1.svg").read_text("utf-8")
    assert (folder / "figure-1.png").read_bytes().startswith(b"\x89PNG")


def test_the_same_figures_give_the_same_plot(tmp_path: Path) -> None:
    """Nothing of the day or the machine is in a plot, so that a change in it is a change of the figures."""
    for name in ("a", "b"):
        REPORT.write(tmp_path / name)
    assert (tmp_path / "a" / "figure-1.svg").read_bytes() == (tmp_path / "b" / "figure-1.svg").read_bytes()


def test_figures_and_panels_check_themselves() -> None:
    """Rows as wide as the header, columns with names of their own, series as long as the axis."""
    with pytest.raises(InternalError, match="as many cells"):
        Figure("f", "F", ("a", "b"), ((1,),))
    with pytest.raises(InternalError, match="same name"):
        Figure("f", "F", ("a", "a"), ((1, 2),))
    with pytest.raises(InternalError, match="as many values"):
        Panel("p", ("1", "2"), {"s": (1.0,)})


def test_a_figure_is_found_by_its_name() -> None:
    """A misspelt one is told the nearest."""
    assert REPORT["figure-1"] is FIGURE
    with pytest.raises(jali.InputError, match='did you mean "figure-1"'):
        REPORT["figure-2"]


def test_an_unknown_paper_is_told_the_nearest() -> None:
    """Only what PAPERS lists can be reproduced."""
    assert "l-diversity" in PAPERS
    with pytest.raises(jali.InputError, match='did you mean "l-diversity"'):
        run("l-diversty")


def test_without_the_adult_table_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is computed from another table instead."""
    monkeypatch.delenv("JALI_ADULT", raising=False)
    with pytest.raises(jali.InputError, match="UCI Machine Learning Repository"):
        run("l-diversity")


def test_without_matplotlib_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The message comes before the work, and nothing is written."""
    monkeypatch.setattr(charts, "find_spec", lambda name: None)
    with pytest.raises(jali.InputError, match=r'pip install "jali\[plots\]"'):
        run("l-diversity", out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_file_is_no_folder_to_write_into(tmp_path: Path) -> None:
    """The message comes before the work."""
    (tmp_path / "out").write_text("")
    with pytest.raises(jali.InputError, match="is a file"):
        run("l-diversity", out=tmp_path / "out")
