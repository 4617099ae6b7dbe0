"""Figures as plots, SVG and PNG. matplotlib is an extra and is imported only here, only when something is drawn."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from jali.errors import InputError
from jali.reproduce.report import NONE, Figure, Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#000000", "#999933")
"""Told apart by colour-blind readers too; lines also differ in their markers."""
MARKERS = "osD^vPX*"
GREY = "#999999"


def require_plots() -> None:
    """Raise InputError where matplotlib is not installed."""
    if find_spec("matplotlib") is None:
        raise InputError("plots need matplotlib, which is not installed", do='pip install "jali[plots]"')


def draw(figure: Figure, folder: Path) -> None:
    """Write the figure's panels side by side as NAME.svg and NAME.png."""
    require_plots()
    import matplotlib as mpl
    from matplotlib.figure import Figure as Canvas

    # Text stays text, and the same figures give the same file.
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "jali", "font.size": 9}):
        canvas = Canvas(figsize=(max(5.6, 4.2 * len(figure.panels)), 3.6), layout="constrained")
        canvas.suptitle(figure.title, wrap=True)
        for axes, panel in zip(canvas.subplots(1, len(figure.panels), squeeze=False)[0], figure.panels, strict=True):
            _lines(axes, panel) if figure.kind == "lines" else _bars(axes, panel)
            axes.set(title=panel.title, xlabel=panel.x_label, ylabel=panel.y_label)
            axes.set_ylim(bottom=0)
            axes.spines[["top", "right"]].set_visible(False)
        handles, labels = canvas.axes[0].get_legend_handles_labels()
        canvas.legend(
            handles, labels, loc="outside lower center", ncols=min(len(labels), 4 * len(figure.panels)), frameon=False
        )
        canvas.savefig(folder / f"{figure.name}.svg", metadata={"Date": None})
        canvas.savefig(folder / f"{figure.name}.png", dpi=120)


def _lines(axes: Axes, panel: Panel) -> None:
    for colour, marker, (name, values) in zip(COLOURS, MARKERS, panel.series.items(), strict=False):
        shown = [float("nan") if value is None else value for value in values]
        axes.plot(panel.x, shown, marker=marker, markersize=4, color=colour, label=name)


def _bars(axes: Axes, panel: Panel) -> None:
    width = 0.8 / len(panel.series)
    first = 0 if panel.base is None else 1
    for number, (colour, (name, values)) in enumerate(zip(COLOURS, panel.series.items(), strict=False)):
        at = [first + i + (number - (len(panel.series) - 1) / 2) * width for i in range(len(values))]
        axes.bar(at, [value or 0 for value in values], width, color=colour, label=name)
        for x, value in zip(at, values, strict=True):
            if value is None:
                axes.text(x, 0, NONE, rotation=90, ha="center", va="bottom", color=colour)
    if panel.base is not None:
        axes.bar([0], [panel.base], 0.5, color=GREY)
    ticks = [*("Base",) * first, *map(str, panel.x)]
    axes.set_xticks(range(len(ticks)), ticks)
