"""Sketches: boxes, lines, marks and letters at fixed places, written as SVG by ourselves or painted by matplotlib.

A page has many small charts, and loading and running matplotlib for them took most of its time. Layout happens once,
in points, from estimated widths of letters; what an SVG shows and what a PNG shows are the same places.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple
from xml.etree import ElementTree

from jali.core.text import Html, element, joined, printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INCH = 72.0
"""Points of an inch."""
FONT = "DejaVu Sans, Verdana, Segoe UI, sans-serif"
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#000000", "#999933")
"""Told apart by colour-blind readers too (Okabe and Ito)."""
INK, RULE, PAPER = "#000000", "#cccccc", "#ffffff"
_NARROW, _WIDE = frozenset("iljI|.,:;'!()[]{}/ ftr"), frozenset("mwMW@%—…")
_SVG = "http://www.w3.org/2000/svg"
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
Anchor = Literal["start", "middle", "end"]
Sign = Literal["circle", "square", "diamond", "triangle"]
SIGNS: tuple[Sign, ...] = ("circle", "square", "diamond", "triangle")
Hatch = Literal["", "/", ".", "x"]
HATCHINGS: tuple[Hatch, ...] = ("", "/", ".", "x")
_HATCHED = {"/": "M-1,1 l2,-2 M0,4 l4,-4 M3,5 l2,-2", ".": "M1.5,2 h1", "x": "M0,0 l4,4 M0,4 l4,-4"}
_PAINTED = {"": "", "/": "////", ".": "....", "x": "xxx"}


class Box(NamedTuple):
    """A filled rectangle, or a hatched one on paper."""

    x: float
    y: float
    wide: float
    high: float
    colour: str
    hatch: Hatch = ""


class Stroke(NamedTuple):
    """A line through points."""

    points: tuple[tuple[float, float], ...]
    colour: str = INK
    thick: float = 0.8
    dash: tuple[float, ...] = ()


class Mark(NamedTuple):
    """A sign at a place: full, or hollow so that one below it is seen."""

    x: float
    y: float
    sign: Sign
    colour: str
    radius: float
    hollow: bool = False


class Letters(NamedTuple):
    """A text; `turned` ones are read from below."""

    x: float
    y: float
    text: str
    size: float = 9.0
    anchor: Anchor = "start"
    turned: bool = False


Part = Box | Stroke | Mark | Letters


def breadth(text: str, size: float = 9.0) -> float:
    """About how wide a text is, in points: a little more than in the fonts that pages use.

    >>> breadth("") < breadth("il") < breadth("ab") < breadth("MW")
    True
    """
    ems = (
        0.4 if c in _NARROW else 1.0 if c in _WIDE or ord(c) > 0x2E7F else 0.7 if c.isupper() else 0.63 for c in text
    )
    return sum(ems) * size


def steps(most: float, about: int = 5) -> list[float]:
    """Round places from 0 to `most` or just beyond it, at equal steps: at most about as many as wanted.

    >>> steps(0.19), steps(1)
    ([0.0, 0.05, 0.1, 0.15, 0.2], [0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
    """
    if not most > 0 or not math.isfinite(most):
        return [0.0, 1.0]
    power = 10.0 ** math.floor(math.log10(most / about))
    step = next(s * power for s in _STEPS if s * power * about >= most * (1 - 1e-9))
    number = math.ceil(most / step - 1e-9)
    return [float(f"{i * step:.12g}") for i in range(number + 1)]


@dataclass(frozen=True)
class Sketch:
    """A drawing of a size, in points, from its upper left corner."""

    wide: float
    high: float
    parts: tuple[Part, ...]

    def svg(self) -> str:
        """The drawing as an SVG, in plain colours."""
        used: dict[Hatch, str] = {
            part.hatch: part.colour for part in self.parts if isinstance(part, Box) and part.hatch
        }
        patterns = [
            element("pattern", element("path", d=_HATCHED[hatch], stroke=colour, stroke_width="0.7"),
                    id=f"hatch{at}", patternUnits="userSpaceOnUse", width="4", height="4")
            for at, (hatch, colour) in enumerate(used.items())
        ]  # fmt: skip
        names = {hatch: f"url(#hatch{at})" for at, hatch in enumerate(used)}
        paper = element("g", element("path", d=f"M0,0 H{self.wide:.1f} V{self.high:.1f} H0 Z", fill=PAPER))
        drawn = [shape for part in self.parts for shape in _svg(part, names)]
        defined = [element("defs", *patterns)] if patterns else []
        inside = joined([*defined, paper, element("g", joined(drawn), font_family=FONT)])
        return element(
            "svg", inside, xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {self.wide:.1f} {self.high:.1f}"
        )

    def paint(self, canvas: Figure) -> None:
        """The same drawing on a canvas of matplotlib, for files that are no SVG."""
        canvas.set_layout_engine("none")
        axes = canvas.add_axes((0.0, 0.0, 1.0, 1.0))
        axes.set_axis_off()
        axes.set(xlim=(0, self.wide), ylim=(self.high, 0))
        for part in self.parts:
            _paint(axes, part)


def _svg(part: Part, hatches: dict[Hatch, str]) -> Iterator[Html]:
    if isinstance(part, Box):
        placed = {"x": f"{part.x:.1f}", "y": f"{part.y:.1f}", "width": f"{part.wide:.1f}", "height": f"{part.high:.1f}"}
        if part.hatch:
            yield element("rect", **placed, fill=hatches[part.hatch], stroke=part.colour, stroke_width="0.8")
        else:
            yield element("rect", **placed, fill=part.colour)
    elif isinstance(part, Stroke):
        places = " ".join(f"{x:.1f},{y:.1f}" for x, y in part.points)
        dash = " ".join(f"{d:g}" for d in part.dash) or None
        yield element("polyline", points=places, fill="none", stroke=part.colour, stroke_width=f"{part.thick:g}",
                      stroke_dasharray=dash)  # fmt: skip
    elif isinstance(part, Mark):
        outline = " ".join(f"{x:.1f},{y:.1f}" for x, y in _outline(part))
        fill = "none" if part.hollow else part.colour
        look = {"fill": fill, "stroke": part.colour, "stroke_width": "1"}
        if part.sign == "circle":
            yield element("circle", cx=f"{part.x:.1f}", cy=f"{part.y:.1f}", r=f"{part.radius:g}", **look)
        else:
            yield element("polygon", points=outline, **look)
    else:
        turn = f"rotate(-90 {part.x:.1f} {part.y:.1f})" if part.turned else None
        yield element("text", printable(part.text), x=f"{part.x:.1f}", y=f"{part.y:.1f}", transform=turn,
                      text_anchor=part.anchor, font_size=f"{part.size:g}", fill=INK)  # fmt: skip


def _outline(mark: Mark) -> Sequence[tuple[float, float]]:
    r = mark.radius
    corners = {
        "circle": (), "square": ((-r, -r), (r, -r), (r, r), (-r, r)),
        "diamond": ((0, -1.3 * r), (1.3 * r, 0), (0, 1.3 * r), (-1.3 * r, 0)),
        "triangle": ((0, -1.2 * r), (1.1 * r, r), (-1.1 * r, r)),
    }  # fmt: skip
    return [(mark.x + x, mark.y + y) for x, y in corners[mark.sign]]


def _paint(axes: Axes, part: Part) -> None:
    from matplotlib.patches import Circle, Polygon, Rectangle

    if isinstance(part, Box):
        axes.add_patch(Rectangle((part.x, part.y), part.wide, part.high, facecolor=PAPER if part.hatch else part.colour,
                                 edgecolor=part.colour, linewidth=0.8, hatch=_PAINTED[part.hatch] or None))  # fmt: skip
    elif isinstance(part, Stroke):
        style = (0, part.dash) if part.dash else "-"
        axes.plot([x for x, _ in part.points], [y for _, y in part.points], color=part.colour, linewidth=part.thick,
                  linestyle=style, clip_on=False)  # fmt: skip
    elif isinstance(part, Mark):
        shape = Circle((part.x, part.y), part.radius) if part.sign == "circle" else Polygon(_outline(part))
        shape.set(facecolor="none" if part.hollow else part.colour, edgecolor=part.colour, clip_on=False)
        axes.add_patch(shape)
    else:
        across: dict[Anchor, Literal["left", "center", "right"]] = {"start": "left", "middle": "center", "end": "right"}
        axes.text(part.x, part.y, printable(part.text), fontsize=part.size, ha=across[part.anchor], va="baseline",
                  rotation=90 if part.turned else 0, rotation_mode="anchor")  # fmt: skip


# -- in a page -----------------------------------------------------------------------------------------------


def plain_svg(data: bytes, name: str, title: str, description: str) -> ElementTree.Element:
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
    "#222222": "currentColor", "#f7f5ef": "var(--paper, #f7f5ef)", "#a3341f": "var(--mark, #a3341f)",
    **{soft: f"var(--soft, {soft})" for soft in ("#8a857a", "#666666")},
    **{grey: f"var(--grid, {grey})" for grey in ("#cccccc", "#b0b0b0", "#b5bcc4", "#cccccc80")},
}  # fmt: skip
"""The colours of a drawing as a page names them, each with what it is where there is no such page."""


def adapt(root: ElementTree.Element) -> None:
    """Let a page choose the colours: black is its ink, white its paper."""
    for part in root.iter():
        for key in ("style", "fill", "stroke"):
            value = part.get(key)
            if value is not None and part is not root:
                part.set(key, _COLOUR.sub(lambda found: _NAMES.get(found[0], found[0]), value))
    root.set("style", f"{root.get('style', '')};fill:currentColor")


MARK = "marks:"


def marked(names: Sequence[str]) -> str:
    """The id of signs that a page can find: `data-marks` of their group in the SVG has their names, in their order."""
    return MARK + " ".join(name.replace(" ", "_") for name in names)


def _rename(root: ElementTree.Element, name: str) -> None:
    """Ids that something refers to are numbered under the picture's name; of the others only marks stay."""
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
        elif own is not None and own.startswith(MARK):
            part.set("data-marks", own.removeprefix(MARK))
