"""Report: figures as values that print themselves and are written as CSV, Markdown and plots."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from jali.core.charts import GREY, HATCHES, MARKERS, Picture
from jali.core.files import put_content
from jali.core.progress import Step
from jali.core.sketch import COLOURS
from jali.errors import InputError, InternalError, nearest

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

Cell: TypeAlias = str | int | float | None
"""A text or a number; None where nothing satisfies the requirement."""

NONE = "none"
"""How it is shown that no table satisfies a requirement."""


@dataclass(frozen=True)
class Panel:
    """One plot of a figure: the values of each series at each x."""

    title: str
    x: tuple[str, ...] | tuple[float, ...]  # texts stand at equal distances, numbers where they belong
    series: Mapping[str, tuple[float | None, ...]]  # each (x,)
    x_label: str = ""
    y_label: str = ""
    base: float | None = None  # a single value to compare the series with

    def __post_init__(self) -> None:
        if any(len(values) != len(self.x) for values in self.series.values()):
            raise InternalError(f'plot "{self.title}": a series has not as many values as the x-axis')


@dataclass(frozen=True)
class Figure:
    """A table of figures with its notes and, where there are panels, a plot."""

    name: str  # "figure-9": also the name of its files
    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    panels: tuple[Panel, ...] = ()
    kind: Literal["bars", "lines"] = "bars"
    digits: int = 2  # of the numbers that are not whole, where they are shown

    def __post_init__(self) -> None:
        if any(len(row) != len(self.header) for row in self.rows):
            raise InternalError(f'figure "{self.name}": a row has not as many cells as the header')
        if len(set(self.header)) < len(self.header):
            raise InternalError(f'figure "{self.name}": two columns have the same name')

    def shown(self) -> list[tuple[str, ...]]:
        """The cells as people read them, without the header."""
        return [tuple(_text(cell, self.digits) for cell in row) for row in self.rows]

    def __repr__(self) -> str:
        lines = [self.title, "", *aligned(self.header, self.shown())]
        return "\n".join(lines + [""] * bool(self.notes) + [f"note: {note}" for note in self.notes])

    def csv(self) -> str:
        """The figure as the text of a CSV file."""
        out = io.StringIO(newline="")
        csv.writer(out, lineterminator="\n").writerows([self.header, *self.rows])
        return out.getvalue()

    def markdown(self, *, plot: bool) -> str:
        """The figure as a section of Markdown, with its plot if that was drawn."""
        rows = [self.header, ("---",) * len(self.header), *self.shown()]
        parts = [f"## {self.title}", "\n".join(f"| {' | '.join(row)} |" for row in rows)]
        parts += [f"![{self.title}]({self.name}.svg)"] if plot and self.panels else []
        return "\n\n".join([*parts, *self.notes]) + "\n"


@dataclass(frozen=True)
class Report:
    """What came out for one paper."""

    name: str
    title: str
    figures: tuple[Figure, ...]
    notes: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> Figure:
        for figure in self.figures:
            if figure.name == name:
                return figure
        raise InputError(f'no figure "{name}" in the report', do=nearest(name, [f.name for f in self.figures]))

    def __repr__(self) -> str:
        notes = "\n".join(f"note: {note}" for note in self.notes)
        return "\n\n\n".join([self.title, *(repr(figure) for figure in self.figures), notes]).rstrip()

    def markdown(self, *, plots: bool = True) -> str:
        """The whole report as Markdown."""
        notes = "".join(f"- {note}\n" for note in self.notes)
        return "\n".join([f"# {self.title}\n", notes, *(figure.markdown(plot=plots) for figure in self.figures)])

    def write(self, folder: str | Path) -> Path:
        """Write report.md and, for each figure, a CSV file and its plot as SVG and PNG."""
        folder = Path(folder)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise InputError(f"cannot write into {folder}", got=problem.strerror, do="name another folder") from None
        put_content(folder / "report.md", self.markdown(), overwrite=True)
        for figure in self.figures:
            put_content(folder / f"{figure.name}.csv", figure.csv(), overwrite=True)
            if figure.panels:
                draw(figure, folder)
        return folder


def computed(parts: Sequence[Callable[[], Figure | Sequence[Figure]]], on_step: Step) -> tuple[Figure, ...]:
    """The figures of each part, one part after the other."""
    figures: list[Figure] = []
    for done, part in enumerate(parts):
        on_step(done, len(parts))
        made = part()
        figures += [made] if isinstance(made, Figure) else made
    on_step(len(parts), len(parts))
    return tuple(figures)


def quiet(done: int, total: int) -> None:
    """No progress bar for a single release: the whole report has one."""


def aligned(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A header, a rule and rows of text in columns: the first to the left, the others to the right.

    >>> print(*aligned(["k", "tables"], [["2", "8/8"], ["50", "5/5"]]), sep=chr(10))
    k   tables
    ──  ──────
    2      8/8
    50     5/5
    """
    table = [tuple(header), *(tuple(row) for row in rows)]
    widths = [max(len(row[column]) for row in table) for column in range(len(header))]
    table.insert(1, tuple("─" * width for width in widths))
    sides = ["<", *">" * (len(widths) - 1)]
    padded = ([f"{cell:{side}{w}}" for cell, side, w in zip(row, sides, widths, strict=True)] for row in table)
    return ["  ".join(row).rstrip() for row in padded]


def _text(cell: Cell, digits: int) -> str:
    if cell is None:
        return NONE
    if isinstance(cell, str):
        return cell
    return f"{cell:,}" if isinstance(cell, int) else f"{cell:,.{digits}f}"


def draw(figure: Figure, folder: Path) -> None:
    """Write the figure's panels side by side as NAME.svg and NAME.png."""
    wide = max(5.6, 4.2 * len(figure.panels))
    picture = Picture(figure.title, f"The figures stand in {figure.name}.csv.", partial(_panels, figure), wide, 3.6)
    for form in ("svg", "png"):
        picture.save(folder / f"{figure.name}.{form}")


def _panels(figure: Figure, canvas: Canvas) -> None:
    canvas.suptitle(figure.title, wrap=True)
    for axes, panel in zip(canvas.subplots(1, len(figure.panels), squeeze=False)[0], figure.panels, strict=True):
        plot_lines(axes, panel.x, panel.series) if figure.kind == "lines" else _bars(axes, panel)
        axes.set(title=panel.title, xlabel=panel.x_label, ylabel=panel.y_label)
        axes.set_ylim(bottom=0)
    handles, labels = canvas.axes[0].get_legend_handles_labels()
    many = min(len(labels), 4 * len(figure.panels))
    canvas.legend(handles, labels, loc="outside lower center", ncols=many, frameon=False)


def _bars(axes: Axes, panel: Panel) -> None:
    width = 0.8 / len(panel.series)
    first = 0 if panel.base is None else 1
    looks = zip(COLOURS, HATCHES, panel.series.items(), strict=False)
    for number, (colour, hatch, (name, values)) in enumerate(looks):
        at = [first + i + (number - (len(panel.series) - 1) / 2) * width for i in range(len(values))]
        axes.bar(at, [value or 0 for value in values], width, color=colour, hatch=hatch, edgecolor="white", label=name)
        for x, value in zip(at, values, strict=True):
            if value is None:
                axes.text(x, 0, NONE, rotation=90, ha="center", va="bottom", color=colour)
    if panel.base is not None:
        axes.bar([0], [panel.base], 0.5, color=GREY)
    ticks = [*("Base",) * first, *map(str, panel.x)]
    axes.set_xticks(range(len(ticks)), ticks)


def plot_lines(axes: Axes, x: Sequence[float] | Sequence[str], series: Mapping[str, Sequence[float | None]]) -> None:
    """Lines by name, each with a marker of its own; None is a gap.

    From the second on they are broken and their markers hollow and larger, so that one does not hide another that it
    coincides with.
    """
    for number, (name, values) in enumerate(series.items()):
        shown = [float("nan") if value is None else value for value in values]
        axes.plot(
            x, shown, label=name, clip_on=False, color=COLOURS[number % len(COLOURS)],
            marker=MARKERS[number % len(MARKERS)], markersize=4.5 + 2.5 * min(number, 2),
            fillstyle="none" if number else "full", linestyle=("-", "--", "-.", ":")[number % 4],
        )  # fmt: skip
