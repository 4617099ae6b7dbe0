"""Charts: the one way in which anything is drawn, as vector graphics that also speak to a screen reader.

matplotlib is an extra, imported only when something is drawn. Series differ in marker or hatching, not in colour alone;
text stays text; the same figures give the same file, without a date.
"""

from __future__ import annotations

import contextlib
import io
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.etree import ElementTree

from jali.core.files import hold_file, put_content
from jali.core.text import Html, printable
from jali.errors import InputError, path_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#000000", "#999933")
"""Told apart by colour-blind readers too (Okabe and Ito)."""
MARKERS = "osD^vPX*"
BROKEN = ("-", "--", "-.", ":")
HATCHES = ("", "////", "....", "xx", "\\\\\\\\", "++", "oo", "--")
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
        _adapt(root)
        return Html(ElementTree.tostring(root, encoding="unicode", short_empty_elements=False))

    def _repr_html_(self) -> str:
        return self.svg()

    def _element(self, name: str) -> ElementTree.Element:
        out = io.BytesIO(b"" if self.ready is None else self.ready.encode())
        if self.ready is None:
            with self._canvas() as canvas:
                canvas.savefig(out, format="svg", metadata={"Date": None})
        return _plain_svg(out.getvalue(), name, printable(self.title), printable(self.description))

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


def _plain_svg(data: bytes, name: str, title: str, description: str) -> ElementTree.Element:
    """An SVG that can stand in a page: no namespaces, no metadata, ids of its own, a title and a description."""
    root = ElementTree.fromstring(data)
    for child in [*root.iter()]:
        child.tag = child.tag.rpartition("}")[2]
        child.attrib = {key.rpartition("}")[2]: value for key, value in child.attrib.items()}
        child.text, child.tail = (t if t and t.strip() else None for t in (child.text, child.tail))
    for parent in [*root.iter()]:
        for child in [*parent]:
            if child.tag in ("metadata", "style", "title"):  # a style would hold for the whole page
                parent.remove(child)
    _rename(root, name)
    width = float(root.get("viewBox", "0 0 346 216").split()[2])
    root.attrib = {
        "role": "img",
        "aria-labelledby": f"{name}-title {name}-description",
        "viewBox": root.get("viewBox", ""),
        "style": f"width:100%;max-width:{width * 1.4:.0f}px;height:auto;stroke-linejoin:round;stroke-linecap:butt",
    }
    for place, (tag, text) in enumerate((("title", title), ("desc", description))):
        told = ElementTree.Element(tag, id=f"{name}-{'title' if tag == 'title' else 'description'}")
        told.text = text
        root.insert(place, told)
    return root


_COLOUR = re.compile(r"#(?:[0-9a-f]{6})\b")
_NAMES = {colour: f"var(--chart-{at}, {colour})" for at, colour in enumerate(COLOURS) if colour != "#000000"}
_NAMES |= {
    "#000000": "currentColor", "#333333": "currentColor", "#ffffff": "var(--paper, #ffffff)",
    **{grey: f"var(--grid, {grey})" for grey in ("#cccccc", "#b0b0b0", "#b5bcc4", "#cccccc80")},
}  # fmt: skip
"""The colours of a drawing as a page names them, each with what it is where there is no such page."""


def _adapt(root: ElementTree.Element) -> None:
    """Let a page choose the colours: black is its ink, white its paper."""
    for part in root.iter():
        for key in ("style", "fill", "stroke"):
            value = part.get(key)
            if value is not None and part is not root:
                part.set(key, _COLOUR.sub(lambda found: _NAMES.get(found[0], found[0]), value))
    root.set("style", f"{root.get('style', '')};fill:currentColor")


def _rename(root: ElementTree.Element, name: str) -> None:
    """Ids that something refers to are numbered under the picture's name; the others go."""
    used: dict[str, str] = {}

    def renamed(reference: str) -> str:
        return used.setdefault(reference, f"{name}-{len(used)}")

    for part in root.iter():
        for key, value in part.attrib.items():
            if key == "href" and value.startswith("#"):
                part.set(key, "#" + renamed(value[1:]))
            elif "url(#" in value:
                before, _, rest = value.partition("url(#")
                reference, _, after = rest.partition(")")
                part.set(key, f"{before}url(#{renamed(reference)}){after}")
    for part in root.iter():
        own = part.attrib.pop("id", None)
        if own in used:
            part.set("id", used[own])


def plot_lines(axes: Axes, x: Sequence[Any], series: Mapping[str, Sequence[float | None]]) -> None:
    """Lines by name, each with a marker of its own; None is a gap.

    From the second on they are broken and their markers hollow and larger, so that one does not hide another that it
    coincides with.
    """
    for number, (name, values) in enumerate(series.items()):
        shown = [float("nan") if value is None else value for value in values]
        axes.plot(
            x, shown, label=name, clip_on=False, color=COLOURS[number % len(COLOURS)],
            marker=MARKERS[number % len(MARKERS)], markersize=4.5 + 2.5 * min(number, 2),
            fillstyle="none" if number else "full", linestyle=BROKEN[number % len(BROKEN)],
        )  # fmt: skip


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
    """Lines over the same x; `labels` are those of the two axes, `most` is where the upright one ends."""

    def draw(canvas: Figure) -> None:
        axes = canvas.subplots()
        plot_lines(axes, x, series)
        axes.set(xlabel=labels[0], ylabel=labels[1])
        axes.set_ylim(0, most if most is None else most * 1.02)
        axes.grid(axis="y", linewidth=0.4, color="#cccccc")
        axes.set_axisbelow(True)
        if len(x) <= 14:
            axes.set_xticks(x, [f"{value:g}" for value in x])
        if percent:
            axes.yaxis.set_major_formatter(lambda value, _: tick(value))
        if len(series) > 1:
            canvas.legend(loc="outside upper center", ncols=len(series), frameon=False)

    return Picture(title, description, draw)


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
    many, thick = len(series), 0.8 / max(len(series), 1)

    def draw(canvas: Figure) -> None:
        from matplotlib.ticker import MaxNLocator

        axes = canvas.subplots()
        for number, (name, values) in enumerate(series.items()):
            at = [row + (number - (many - 1) / 2) * thick for row in range(len(values))]
            colour = COLOURS[number % len(COLOURS)]
            axes.barh(at, values, thick * 0.92, label=name, facecolor=colour if number == 0 else "white",
                      edgecolor=colour, hatch=HATCHES[number % len(HATCHES)], linewidth=0.8)  # fmt: skip
            for y, value in zip(at, values, strict=True):
                axes.annotate(form(value), (value, y), xytext=(3, 0), textcoords="offset points", va="center",
                              fontsize=7.5 if many > 1 else 8.5)  # fmt: skip
        axes.set_yticks(range(len(labels)), [clipped(label) for label in labels])
        axes.set_ylim(len(labels) - 0.4, -0.6)
        axes.set_xlabel(axis)
        axes.xaxis.set_major_formatter(lambda value, _: tick(value) if form is share else form(value))
        axes.xaxis.set_major_locator(MaxNLocator(5))
        axes.margins(x=0.17)
        axes.set_xlim(left=0)
        axes.tick_params(axis="y", length=0)
        if many > 1:
            canvas.legend(loc="outside upper center", ncols=many, frameon=False)

    rows = len(labels) * (0.2 if many == 1 else 0.16 * many)
    return Picture(title, description, draw, height=0.65 + rows + (0.25 if many > 1 else 0))


# -- graphs -----------------------------------------------------------------------------------------------------


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
