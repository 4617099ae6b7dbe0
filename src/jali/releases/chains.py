"""Columns of a marginals release as chains of levels, and what the collection claims of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal
from xml.etree.ElementTree import Element, SubElement, tostring

import numpy as np
import pyarrow as pa

from jali.core.arrays import counted
from jali.core.charts import Picture
from jali.core.text import printable
from jali.cover.cover import Cover
from jali.encoding import values as v
from jali.encoding.hierarchy import ROOT
from jali.encoding.table import Column
from jali.graphical.estimate import MarginalColumn
from jali.graphical.marginal import ABSENT, Attribute, Marginal
from jali.graphical.maxent import Tree, finest
from jali.principles.counts import Sensitive
from jali.releases.column import Judged, Published, judged_dict, judged_of
from jali.releases.facts import LevelFacts

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class Chain:
    """A column as the marginals show it: its published levels, finest first, and what the finest nodes stand for.

    Only nodes that occur have a number here. A column that no marginal has is a chain without levels.
    """

    name: str
    role: Literal["quasi", "sensitive"]
    kind: v.Kind
    levels: tuple[int, ...]  # as the table numbers them
    labels: tuple[tuple[str | None, ...], ...]  # (levels, nodes)
    parents: tuple[tuple[int, ...], ...]  # parents[i][node of level i] → node of level i + 1
    facts: LevelFacts | Judged  # from the finest published level upward, or what a sensitive column is judged by

    def __post_init__(self) -> None:
        if len(self.levels) != len(self.labels) or len(self.parents) != max(len(self.levels) - 1, 0):
            raise ValueError("the levels of a column do not fit each other")
        if self.role == "sensitive" and self.labels and len(self.judged[1]) != len(self.labels[0]):
            raise ValueError("the values are not judged one by one")

    @cached_property
    def cover(self) -> Cover:
        """What the finest nodes stand for."""
        labels = pa.array(self.labels[0] if self.labels else [ROOT], pa.string())
        if self.role == "quasi":
            return self.hierarchy.cover(labels, None if self.labels else 0, self.kind)
        if not self.labels:
            return Cover.unknown(1, kind=self.kind)
        return Cover.exact(v.as_kind(self.name, labels, self.kind))

    @property
    def attribute(self) -> Attribute:
        """The chain for counting. `cover` knows how many values a node covers; here each node counts as one value."""
        maps = [np.arange(len(self.labels[0]) if self.labels else 1, dtype=np.int32)]
        for step in self.parents:
            maps.append(np.asarray(step, dtype=np.int32)[maps[-1]])
        nodes = tuple(len(labels) for labels in self.labels)
        sizes = tuple(counted(m, length=n) for m, n in zip(maps, nodes, strict=False))
        return Attribute(self.name, self.role, tuple(maps[: len(nodes)]), nodes, sizes, max(1, *nodes, 1), len(nodes))

    @property
    def column(self) -> MarginalColumn:
        """The column as an estimate sees it."""
        return MarginalColumn(self.name, self.kind, self.role, self.cover)

    @property
    def published(self) -> Published:
        """The column at its finest published level, without rows; one that no marginal has is always *."""
        labels = pa.array(self.labels[0] if self.labels else [ROOT], pa.string())
        level = self.levels[0] if self.levels else 0
        none = np.zeros(0, dtype=np.int64)
        if self.role == "sensitive":
            judged = self.judged if self.labels else None
            return Published(self.name, "sensitive", self.kind, labels, none, self.cover, judged=judged)
        root = None if self.labels else 0
        return Published(self.name, "quasi", self.kind, labels, none, self.cover, level, self.hierarchy, None, root)

    @property
    def hierarchy(self) -> LevelFacts:
        """The facts of a quasi-identifier."""
        assert isinstance(self.facts, LevelFacts)
        return self.facts

    @property
    def judged(self) -> Judged:
        """A sensitive column as principles see it, and the judged value of each node."""
        assert not isinstance(self.facts, LevelFacts)
        return self.facts

    def like(self, level: int) -> str:
        """How the column is called at a published level: age; where it has several, exact age, age like [20, 29]."""
        if level == 0:
            return self.name if len(self.levels) == 1 else f"exact {self.name}"
        example = next((text for text in self.labels[self.levels.index(level)] if text), "an empty value")
        return f"{self.name} like {example}"

    def to_dict(self) -> dict[str, Any]:
        """What the manifest says of the column; `chain_of` reads it back."""
        if self.role == "sensitive":
            sensitive, of_node = self.judged
            facts = judged_dict(sensitive) | {"judged_as": of_node.tolist()}
        else:
            facts = self.hierarchy.to_dict()
        return {
            "name": self.name,
            "role": self.role,
            "kind": self.kind,
            "levels": list(self.levels),
            "labels": [list(labels) for labels in self.labels],
            "parents": [list(step) for step in self.parents],
            "facts": facts,
        }


def publish_chain(column: Column, levels: Sequence[int]) -> Chain:
    """The column at the levels that marginals show, from the table's own hierarchy."""
    if column.role == "sensitive":
        return _published_sensitive(column, shown=bool(levels))
    hierarchy = column.hierarchy
    assert hierarchy is not None
    shown = sorted(set(levels))
    used = [np.unique(hierarchy.maps[level][column.codes]) for level in shown]
    labels = [
        hierarchy.levels[n].labels.take(pa.array(nodes)).to_pylist() for n, nodes in zip(shown, used, strict=True)
    ]
    parents = []
    for below, above, nodes, over in zip(shown, shown[1:], used, used[1:], strict=False):
        step = np.zeros(len(hierarchy.levels[below]), dtype=np.int64)
        step[hierarchy.maps[below]] = hierarchy.maps[above]
        parents.append(np.searchsorted(over, step[nodes]).tolist())
    first = shown[0] if shown else hierarchy.height
    own = used[0] if shown else np.zeros(1, dtype=np.int64)
    facts = LevelFacts.of(hierarchy, first, own)
    named = tuple(map(tuple, labels)), tuple(map(tuple, parents))
    return Chain(column.name, "quasi", column.kind, tuple(shown), *named, facts)


def _published_sensitive(column: Column, *, shown: bool) -> Chain:
    """A sensitive column with the values that occur; of a column in no marginal only the name is published."""
    used = np.flatnonzero(column.present) if shown else np.zeros(0, dtype=np.int64)
    judged, mapping = column.sensitive() if shown else (Sensitive(column.name, ()), used)
    labels = (tuple(column.labels.take(pa.array(used)).to_pylist()),) if shown else ()
    levels = (0,) if shown else ()
    return Chain(column.name, "sensitive", column.kind, levels, labels, (), (judged, mapping[used]))


def chain_of(told: Mapping[str, Any]) -> Chain:
    """The column that the manifest describes."""
    facts: LevelFacts | Judged
    if told["role"] == "sensitive":
        facts = judged_of(told["name"], told["facts"], told["facts"]["judged_as"])
    else:
        facts = LevelFacts.from_dict(told["facts"])
    labels, parents = (tuple(map(tuple, told[name])) for name in ("labels", "parents"))
    levels = tuple(int(level) for level in told["levels"])
    return Chain(told["name"], told["role"], told["kind"], levels, labels, parents, facts)


LETTER, ROW, PAD, STEP = 7, 20, 12, 36
"""Sizes in the picture: of a letter, of a line, within and around boxes, and from a box to those that hang on it."""


def sentences(chains: Sequence[Chain], marginals: Sequence[Marginal], tree: Tree | None) -> tuple[str, ...]:
    """What the estimate takes for granted: independence across each separator, evenness below what is shown."""
    said: list[str] = []
    if tree is None:
        said.append("the marginals are not decomposable: beyond what they show together, nothing else is taken to hold")
    else:
        for at in range(1, len(tree.marginals)):
            below = finest([tree.marginals[i] for i in _subtree(tree, at)])
            others = finest([m for i, m in enumerate(tree.marginals) if i not in _subtree(tree, at)])
            given = tree.separators[at]
            one, two = (_named(chains, _beyond(side, given)) for side in (others, below))
            shared = _named(chains, given)
            verb = "are" if " and " in one else "is"
            said.append(f"{f'given {shared}: ' if shared else ''}{one} {verb} taken as independent of {two}")
    shown = finest(marginals)
    for chain, level in zip(chains, shown.levels, strict=True):
        if level == ABSENT:
            said.append(f"{chain.name} is in no marginal: each of its values is taken as equally likely")
        elif chain.levels[level] > 0:
            said.append(
                f"within {chain.like(chain.levels[level])}, each value of {chain.name} is taken as equally likely"
            )
    return tuple(said)


def _subtree(tree: Tree, at: int) -> set[int]:
    nodes = {at}
    for i in range(at + 1, len(tree.marginals)):
        if tree.parent[i] in nodes:
            nodes.add(i)
    return nodes


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
