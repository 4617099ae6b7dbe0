"""What a collection of marginals claims: sentences about independence, and its junction tree as a picture."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element, SubElement, tostring

from jali.charts import Picture
from jali.graphical.marginal import ABSENT, Marginal
from jali.graphical.maxent import Tree, finest
from jali.releases.chains import Chain
from jali.show import printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LETTER, ROW, PAD, STEP = 7, 20, 12, 36
"""Sizes in the picture: of a letter, of a line, within and around boxes, and from a box to those that hang on it."""


def sentences(chains: Sequence[Chain], marginals: Sequence[Marginal], tree: Tree | None) -> tuple[str, ...]:
    """What the estimate takes for granted: independence across each separator, evenness below what is shown."""
    found: list[str] = []
    if tree is None:
        found.append(
            "the marginals are not decomposable: beyond what they show together, nothing else is taken to hold"
        )
    else:
        for at in range(1, len(tree.marginals)):
            below = finest([tree.marginals[i] for i in _subtree(tree, at)])
            others = finest([m for i, m in enumerate(tree.marginals) if i not in _subtree(tree, at)])
            given = tree.separators[at]
            one, two = (_named(chains, _beyond(side, given)) for side in (others, below))
            shared = _named(chains, given)
            verb = "are" if " and " in one else "is"
            found.append(f"{f'given {shared}: ' if shared else ''}{one} {verb} taken as independent of {two}")
    shown = finest(marginals)
    for chain, level in zip(chains, shown.levels, strict=True):
        if level == ABSENT:
            found.append(f"{chain.name} is in no marginal: each of its values is taken as equally likely")
        elif chain.levels[level] > 0:
            found.append(
                f"within {chain.like(chain.levels[level])}, each value of {chain.name} is taken as equally likely"
            )
    return tuple(found)


def _subtree(tree: Tree, at: int) -> set[int]:
    found = {at}
    for i in range(at + 1, len(tree.marginals)):
        if tree.parent[i] in found:
            found.add(i)
    return found


def _beyond(side: Marginal, given: Marginal) -> Marginal:
    """What one side shows more finely than what is given."""
    pairs = zip(side.levels, given.levels, strict=True)
    return Marginal(tuple(ABSENT if own == shared else own for own, shared in pairs))


def _named(chains: Sequence[Chain], marginal: Marginal) -> str:
    names = _lines(chains, marginal)
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _lines(chains: Sequence[Chain], marginal: Marginal) -> list[str]:
    return [chains[i].like(chains[i].levels[marginal.levels[i]]) for i in marginal.attributes]


# -- the picture -------------------------------------------------------------------------------------------------

INK = "#222222"
LINE = {"fill": "none", "stroke": "#8a857a", "shape-rendering": "crispEdges"}
FRAME = {"fill": "#f7f5ef", "stroke": "#8a857a"}
WORDS = {  # sensitive columns stand out by their weight too
    "name": {"font-weight": "600"},
    "shared": {"font-style": "italic", "fill": "#666666"},
    "sensitive": {"font-weight": "600", "fill": "#a3341f"},
}
TITLE = "Junction tree of the published marginals"


def drawn(chains: Sequence[Chain], marginals: Sequence[Marginal], tree: Tree | None) -> Picture:
    """The junction tree: a box for each marginal, below the one that it hangs on, and what the two share.

    Boxes stand below each other and further to the right the deeper they hang, so that nothing crosses; they are
    numbered as the published tables are, and sensitive columns stand out. No matplotlib is needed for it as SVG.
    """
    if tree is None:
        tree = Tree(tuple(marginals), (-1,) * len(marginals), (marginals[0],) * len(marginals))
    sheet = Element("svg")
    corner: dict[int, tuple[int, int]] = {}  # of each box, below on the left
    wide, y = 0, PAD
    told: list[str] = []
    for at, depth in _downward(tree):
        x = PAD + STEP * depth
        named = f"marginal {list(marginals).index(tree.marginals[at]) + 1}"
        lines = _lines(chains, tree.marginals[at])
        told.append(f"{named}: {', '.join(lines)}")
        if depth:
            shared = f"shares {', '.join(_lines(chains, tree.separators[at])) or 'nothing'}"
            told[-1] += f"; {shared} with what it hangs on"
            _write(sheet, shared, x, y + ROW - 7, "shared")
            wide, y = max(wide, x + LETTER * len(shared)), y + ROW
            above = corner[tree.parent[at]]
            SubElement(sheet, "path", {"d": f"M{above[0] + PAD} {above[1]}V{y + ROW}H{x}", **LINE})
        width = 2 * PAD + LETTER * max(map(len, [named, *lines]))
        tall = ROW * (len(lines) + 1) + PAD
        place = {"x": str(x), "y": str(y), "width": str(width), "height": str(tall), "rx": "6"}
        SubElement(sheet, "rect", {**place, **FRAME})
        _write(sheet, named, x + PAD, y + ROW, "name")
        for row, (i, line) in enumerate(zip(tree.marginals[at].attributes, lines, strict=True), start=2):
            _write(sheet, line, x + PAD, y + ROW * row, chains[i].role)
        wide, y = max(wide, x + width), y + tall
        corner[at] = (x, y)
        y += PAD
    sheet.set("viewBox", f"0 0 {wide + PAD} {y}")
    size = (wide + PAD) / 96, y / 96
    return Picture(TITLE, "; ".join(told), partial(_trace, sheet), *size, ready=tostring(sheet, encoding="unicode"))


def _write(sheet: Element, line: str, x: int, y: int, kind: str) -> None:
    look = {"class": kind, "font-family": "sans-serif", "font-size": "13", "fill": INK} | WORDS.get(kind, {})
    SubElement(sheet, "text", {"x": str(x), "y": str(y), **look}).text = printable(line)


def _trace(sheet: Element, canvas: Figure) -> None:
    """The same with matplotlib, for forms other than SVG."""
    from matplotlib.patches import FancyBboxPatch

    _, _, wide, tall = map(float, sheet.get("viewBox", "").split())
    axes = canvas.subplots()
    axes.set_axis_off()
    axes.set(xlim=(0, wide), ylim=(tall, 0))
    for part in sheet:
        look = {key: part.get(key, "") for key in ("fill", "stroke")}
        if part.tag == "rect":
            x, y, w, h = (float(part.get(key, "0")) for key in ("x", "y", "width", "height"))
            box = FancyBboxPatch((x, y), w, h, boxstyle="round,pad=0,rounding_size=6", facecolor=look["fill"],
                                 edgecolor=look["stroke"])  # fmt: skip
            axes.add_patch(box)
        elif part.tag == "path":
            left, top, bottom, right = map(float, re.findall(r"\d+", part.get("d", "")))
            axes.plot([left, left, right], [top, bottom, bottom], color=look["stroke"], linewidth=1)
        else:
            axes.text(float(part.get("x", "0")), float(part.get("y", "0")), part.text or "", color=look["fill"],
                      fontsize=8, weight=part.get("font-weight", "normal"),
                      style=part.get("font-style", "normal"))  # fmt: skip


def _downward(tree: Tree) -> Iterator[tuple[int, int]]:
    """Each marginal and its depth, right after the one that it hangs on and what hangs on its elder siblings."""
    waiting = [(root, 0) for root, parent in enumerate(tree.parent) if parent < 0][::-1]
    while waiting:
        at, depth = waiting.pop()
        yield at, depth
        waiting += [(child, depth + 1) for child in reversed(tree.children(at))]
