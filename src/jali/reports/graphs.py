"""Graphs: named spots and the lines between them, for lattices, trees and whatever else hangs together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, NamedTuple

from jali.charts import Picture, clipped
from jali.show import printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LETTERS = 14
"""So many letters of a note go into an inch."""


class Spot(NamedTuple):
    """A node of a graph: where it stands, what sort it is of, and what it is called (nothing where it is "")."""

    x: float
    y: float
    sort: str
    label: str = ""


class Look(NamedTuple):
    """How a sort of spots looks: sorts differ in form and filling, not in colour alone."""

    marker: str = "o"
    face: str = "white"
    edge: str = "#333333"
    size: float = 5.0


def graph(
    spots: Sequence[Spot],
    edges: Sequence[tuple[int, int]],
    looks: Mapping[str, Look],
    *,
    title: str,
    description: str,
    size: tuple[float, float],
    beside: bool = False,
    note: str = "",
) -> Picture:
    """Spots joined by lines; a label stands below its spot, or `beside` it. `edges` are pairs of places in `spots`.

    A `note` stands above all of it: what a reader needs to understand the labels.
    """

    def draw(canvas: Figure) -> None:
        from matplotlib.collections import LineCollection

        axes = canvas.subplots()
        axes.set_axis_off()
        joined = [[(spots[a].x, spots[a].y), (spots[b].x, spots[b].y)] for a, b in edges]
        axes.add_collection(
            LineCollection(joined, colors="#b5bcc4", linewidths=0.5 if len(edges) < 200 else 0.25, zorder=1)
        )
        for sort, look in looks.items():
            own = [spot for spot in spots if spot.sort == sort]
            axes.plot([s.x for s in own], [s.y for s in own], linestyle="", marker=look.marker, markersize=look.size,
                      markerfacecolor=look.face, markeredgecolor=look.edge, label=sort, zorder=2)  # fmt: skip
        for spot in spots:
            if spot.label:
                away = (
                    {"xytext": (5, 0), "va": "center"} if beside else {"xytext": (0, -5), "va": "top", "ha": "center"}
                )
                axes.annotate(clipped(spot.label), (spot.x, spot.y), textcoords="offset points", fontsize=7.5,
                              zorder=3, bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.4},
                              **away)  # type: ignore[arg-type]  # fmt: skip
        axes.margins(x=0.08, y=0.08)
        if beside:  # the outermost labels need as much room as a step
            axes.set_xlim(min(s.x for s in spots) - 0.1, max(s.x for s in spots) + 1)
        if note:
            axes.set_title(fill(printable(note), int(size[0] * LETTERS)), fontsize=8)
        if len(looks) > 1:
            canvas.legend(loc="outside lower center", ncols=2, frameon=False)

    return Picture(title, description, draw, *size)
