"""Charts: the one way in which anything is drawn, as vector graphics that also speak to a screen reader.

Bars and lines are sketches of our own; what else is drawn, and every file that is no SVG, needs matplotlib, an extra
that is imported only then. Series differ in marker or hatching, not in colour alone; text stays text; the same figures
give the same file, without a date.
"""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.etree import ElementTree

from jali.core.files import hold_file, put_content
from jali.core.sketch import (
    COLOURS,
    HATCHINGS,
    INCH,
    RULE,
    SIGNS,
    Box,
    Letters,
    Mark,
    Part,
    Sketch,
    Stroke,
    adapt,
    breadth,
    marked,
    plain_svg,
    steps,
)
from jali.core.text import Html, printable
from jali.errors import InputError, path_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MARKERS = "osD^vPX*"
HATCHES = ("", "////", "....", "xx", "\\\\\\\\", "++", "oo", "--")
"""Signs and hatchings of matplotlib, for figures that it draws."""
DASHES = ((), (4.0, 2.0), (5.0, 2.0, 1.0, 2.0), (1.0, 1.5))
WIDTH = 4.8 * INCH
_LEGEND = 18.0
"""The height of the names of series, in points."""
GREY = "#999999"
LONGEST = 26
"""A label of more letters is cut; the table of the picture shows all of it."""
LETTERS = 14
"""Letters of a note per inch."""
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "jali",  # the same figures give the same file
    "font.size": 9,
    "text.parse_math": False,  # a dollar in the data is a dollar
    "axes.spines.top": False,
    "axes.spines.right": False,
    "hatch.linewidth": 0.6,
}
_SVG = "http://www.w3.org/2000/svg"


def require_plots() -> None:
    """Raise InputError where matplotlib is not installed."""
    if find_spec("matplotlib") is None:
        raise InputError("plots need matplotlib, which is not installed", do='pip install "jali[plots]"')


def clipped(text: object, longest: int = LONGEST) -> str:
    """A label that fits: its first letters where it is long, "missing" for no value, and one for an empty text.

    >>> clipped("abcdef", 4), clipped(None), clipped("")
    ('abc…', 'missing', '(empty)')
    """
    shown = "missing" if text is None else " ".join(printable(text).split()) or "(empty)"
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


def share(part: float) -> str:
    """A share as a whole percentage; a little is not nothing.

    >>> share(0.416), share(0.001), share(0.0)
    ('42%', '<1%', '0%')
    """
    return "<1%" if 0 < part < 0.005 else f"{part:.0%}"


def tick(part: float) -> str:
    """A share at a tick, with every digit it has: ticks at equal steps read as equal steps.

    >>> tick(0.025), tick(0.3), tick(0.0), tick(3.5)
    ('2.5%', '30%', '0%', '350%')
    """
    return f"{part * 100:.6g}%"


@dataclass(frozen=True)
class Picture:
    """Something that can be drawn, what it is called, and what it says in words; sizes are in inches."""

    title: str
    description: str
    draw: Callable[[Figure], None]
    width: float = 4.8
    height: float = 3.0
    ready: str | None = None  # an SVG that needs no drawing, and no matplotlib

    def svg(self, name: str = "picture") -> Html:
        """The picture as an element for a page, as wide as its place; `name` begins each of its ids.

        Its colours are those of the page where it has any of its own, so that it is legible on a dark one too.
        """
        root = self._element(name)
        adapt(root)
        return Html(ElementTree.tostring(root, encoding="unicode", short_empty_elements=False))

    def _repr_html_(self) -> str:
        return self.svg()

    def _element(self, name: str) -> ElementTree.Element:
        out = io.BytesIO(b"" if self.ready is None else self.ready.encode())
        if self.ready is None:
            with self._canvas() as canvas:
                canvas.savefig(out, format="svg", metadata={"Date": None})
        return plain_svg(out.getvalue(), name, printable(self.title), printable(self.description))

    def save(self, path: str | Path) -> Path:
        """Write the picture into a file; its ending says in which form, e.g. .svg, .png or .pdf."""
        target = path_of(path)
        form = target.suffix.lstrip(".").lower()
        if self.ready is None or form != "svg":
            require_form(target)
        with hold_file(target, overwrite=True):  # before it is drawn
            put_content(target, self.svg_file() if form == "svg" else self._bytes(form), overwrite=True)
        return target

    def svg_file(self) -> str:
        """The picture as the text of an SVG file of its own."""
        root = self._element("picture")
        root.set("xmlns", _SVG)
        return ElementTree.tostring(root, encoding="unicode") + "\n"

    def _bytes(self, form: str) -> bytes:
        out = io.BytesIO()
        with self._canvas() as canvas:
            undated: dict[str, Any] = {"metadata": {"CreationDate": None}} if form in ("pdf", "ps", "eps") else {}
            canvas.savefig(out, format=form, dpi=120, **undated)
        return out.getvalue()

    @contextlib.contextmanager
    def _canvas(self) -> Iterator[Figure]:
        require_plots()
        import matplotlib as mpl
        from matplotlib.figure import Figure

        with mpl.rc_context(_STYLE), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Glyph .* missing")  # the reader's own fonts have it
            canvas = Figure(figsize=(self.width, self.height), layout="constrained")
            self.draw(canvas)
            layout = canvas.get_layout_engine()
            if layout is not None:  # laid out once: saving would draw everything twice for it
                layout.execute(canvas)
                canvas.set_layout_engine("none")
            yield canvas


def require_form(target: Path) -> None:
    """Raise InputError unless the ending of a file says a form in which a picture can be drawn."""
    require_plots()
    from matplotlib.backend_bases import FigureCanvasBase

    if target.suffix.lstrip(".").lower() not in FigureCanvasBase.get_supported_filetypes():
        raise InputError("a plot needs a file whose ending says its form", got=target.name, do="write e.g. curve.svg")


def lines(
    x: Sequence[float],
    series: Mapping[str, Sequence[float | None]],
    *,
    title: str,
    description: str,
    labels: tuple[str, str],
    most: float | None = None,
    percent: bool = False,
) -> Picture:
    """Lines over the same x; `labels` are those of the two axes, `most` is where the upright one ends.

    From the second on they are broken and their marks hollow and larger, so that one does not hide another that it
    coincides with; None is a gap.
    """
    wide, high = WIDTH, 3.0 * INCH
    reach = max((v for values in series.values() for v in values if v is not None), default=0.0)
    rows = steps(reach if most is None else most)
    texts = [tick(row) if percent else f"{row:g}" for row in rows]
    left, right = 20 + max(map(breadth, texts)), wide - 12
    top, low = 10 + _LEGEND * (len(series) > 1), high - 34
    span = (max(x) - min(x)) or 1.0

    def at(value: float) -> float:
        return left + 8 + (value - min(x)) / span * (right - left - 16)

    def up(value: float) -> float:
        return low - value / rows[-1] * (low - top)

    parts: list[Part] = [*_legend([*series], wide, marks=True)]
    for row, text in zip(rows, texts, strict=True):
        parts += [
            Stroke(((left, up(row)), (right, up(row))), RULE, 0.5),
            Letters(left - 4, up(row) + 3, text, anchor="end"),
        ]
    parts += [Stroke(((left, top), (left, low), (right, low)))]
    shown = x if len(x) <= 14 else [x[0], x[len(x) // 2], x[-1]]
    parts += [Letters(at(value), low + 12, f"{value:g}", anchor="middle") for value in shown]
    parts += [Letters((left + right) / 2, high - 6, labels[0], anchor="middle"),
              Letters(11, (top + low) / 2, labels[1], anchor="middle", turned=True)]  # fmt: skip
    for number, values in enumerate(series.values()):
        places = [None if v is None else (at(a), up(v)) for a, v in zip(x, values, strict=True)]
        parts += _line(places, number)
    return _sketched(title, description, Sketch(wide, high, tuple(parts)))


def _line(places: Sequence[tuple[float, float] | None], number: int) -> Iterator[Part]:
    """A line in pieces between its gaps, and a mark at each of its places."""
    colour, sign = COLOURS[number % len(COLOURS)], SIGNS[number % len(SIGNS)]
    for there, piece in groupby(places, key=lambda place: place is not None):
        run = tuple(place for place in piece if place is not None)
        if there and len(run) > 1:
            yield Stroke(run, colour, 1.5, DASHES[number % len(DASHES)])
        yield from (Mark(*place, sign, colour, 2.4 + 1.2 * min(number, 2), number > 0) for place in run)


def bars(
    labels: Sequence[object],
    series: Mapping[str, Sequence[float]],
    *,
    title: str,
    description: str,
    axis: str,
    form: Callable[[float], str] = share,
) -> Picture:
    """Horizontal bars with labels on the left and figures at their ends; series differ in hatching too."""
    many, size = len(series), 7.5 if len(series) > 1 else 8.5
    names = [clipped(label) for label in labels]
    ends = steps(max((v for values in series.values() for v in values), default=0.0))
    row = 14.4 if many == 1 else 11.5 * many
    thick = row * 0.8 / max(many, 1)
    room = max((breadth(form(v), size) for values in series.values() for v in values), default=0.0) + 6
    left, top = 6 + max(map(breadth, names), default=0.0), 4 + _LEGEND * (many > 1)
    low, wide = top + row * len(names), WIDTH
    long = wide - room - left

    def at(value: float) -> float:
        return left + value / ends[-1] * long

    parts: list[Part] = [*_legend([*series], wide, marks=False)]
    for number, values in enumerate(series.values()):
        colour, hatch = COLOURS[number % len(COLOURS)], HATCHINGS[number % len(HATCHINGS)]
        for place, value in enumerate(values):
            y = top + row * place + row * 0.1 + thick * number
            parts.append(Box(left, y, at(value) - left, thick * 0.9, colour, hatch))
            parts.append(Letters(at(value) + 3, y + thick / 2 + size * 0.33, form(value), size))
    parts += [Letters(left - 5, top + row * (i + 0.5) + 3, name, anchor="end") for i, name in enumerate(names)]
    parts += [Stroke(((left, top), (left, low), (left + long, low)))]
    for end in ends:
        parts += [Stroke(((at(end), low), (at(end), low + 3))),
                  Letters(at(end), low + 13, tick(end) if form is share else form(end), anchor="middle")]  # fmt: skip
    parts.append(Letters(left + long / 2, low + 26, axis, anchor="middle"))
    return _sketched(title, description, Sketch(wide, low + 32, tuple(parts)))


def _legend(names: Sequence[str], wide: float, *, marks: bool) -> Iterator[Part]:
    """What the series are called, above the drawing; nothing for a single one."""
    if len(names) < 2:
        return
    x = (wide - sum(breadth(name) + 44 for name in names) + 14) / 2
    for number, name in enumerate(names):
        if marks:
            yield from _line([(x, 9), (x + 10, 9), (x + 20, 9)], number)
        else:
            yield Box(x, 5, 18, 8, COLOURS[number % len(COLOURS)], HATCHINGS[number % len(HATCHINGS)])
        yield Letters(x + 28, 12, name)
        x += breadth(name) + 44


def _sketched(title: str, description: str, drawn: Sketch) -> Picture:
    return Picture(title, description, drawn.paint, drawn.wide / INCH, drawn.high / INCH, drawn.svg())


# -- graphs -----------------------------------------------------------------------------------------------------


class Spot(NamedTuple):
    """A node of a graph: where it stands, what sort it is of, what it is called (nothing where it is ""), its mark."""

    x: float
    y: float
    sort: str
    label: str = ""
    mark: str = ""  # the name under which a page finds it


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
                      markerfacecolor=look.face, markeredgecolor=look.edge, label=sort, zorder=2,
                      gid=marked([s.mark for s in own]) if any(s.mark for s in own) else None)  # fmt: skip
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
