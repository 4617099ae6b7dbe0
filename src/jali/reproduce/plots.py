"""Figures of a reproduction as plots, SVG and PNG."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from jali.charts import COLOURS, GREY, HATCHES, Picture, plot_lines
from jali.reproduce.report import NONE, Figure, Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas


def draw(figure: Figure, folder: Path) -> None:
    """Write the figure's panels side by side as NAME.svg and NAME.png."""
    wide = max(5.6, 4.2 * len(figure.panels))
    picture = Picture(figure.title, f"The figures stand in {figure.name}.csv.", _panels(figure), wide, 3.6)
    for form in ("svg", "png"):
        picture.save(folder / f"{figure.name}.{form}")


def _panels(figure: Figure) -> Callable[[Canvas], None]:
    def panels(canvas: Canvas) -> None:
        canvas.suptitle(figure.title, wrap=True)
        for axes, panel in zip(canvas.subplots(1, len(figure.panels), squeeze=False)[0], figure.panels, strict=True):
            plot_lines(axes, panel.x, panel.series) if figure.kind == "lines" else _bars(axes, panel)
            axes.set(title=panel.title, xlabel=panel.x_label, ylabel=panel.y_label)
            axes.set_ylim(bottom=0)
        handles, labels = canvas.axes[0].get_legend_handles_labels()
        canvas.legend(
            handles, labels, loc="outside lower center", ncols=min(len(labels), 4 * len(figure.panels)), frameon=False
        )

    return panels


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
