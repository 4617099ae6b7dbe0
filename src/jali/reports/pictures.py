"""Pictures of single things: a lattice, a hierarchy, the boxes of a release, a graph."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, NamedTuple

from jali.core.charts import Picture, bars, clipped
from jali.core.text import printable
from jali.encoding.hierarchy import Hierarchy
from jali.errors import InputError
from jali.releases.base import Release
from jali.releases.summary import an, many
from jali.reports.boxes import boxes
from jali.search.lattice.lattice import Nodes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LETTERS = 14
"""Letters of a note per inch."""


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


MOST_NODES = 400
"""A larger lattice is summarized by height."""
MOST_NAMED = 24
"""The most minimal nodes that are named above a lattice."""
LETTER = 0.055
"""Inches that a letter of a node's name takes; nodes that stand closer are not all named."""
MOST_LEAVES = 60
"""A hierarchy with more leaves is drawn with the first children of each node."""

UNMET, MET, MINIMAL, CHOSEN = "promise broken", "promise kept", "minimal", "chosen"
LOOKS = {
    UNMET: Look("o", "white", "#999999", 4),
    MET: Look("o", "#56b4e9", "#0072b2", 5),
    MINIMAL: Look("s", "#0072b2", "#0072b2", 6.5),
    CHOSEN: Look("*", "#d55e00", "black", 12),
}


def picture(
    what: Hierarchy | Nodes | Release,
    path: str | Path | None = None,
    *,
    chosen: Release | Mapping[str, int] | None = None,
    columns: Sequence[str] | None = None,
) -> Picture:
    """A picture of a hierarchy (a tree), of `minimal`'s result (its lattice), or of a release.

    Of marginals it is the junction tree, of every other release its boxes.

    `chosen` marks a node of the lattice: a release, or a level for each column. `columns` are the two quasi-identifiers
    that boxes are drawn over. With `path` it is also saved: .svg, .png or .pdf.
    """
    if isinstance(what, Hierarchy):
        made = tree(what)
    elif isinstance(what, Nodes):
        made = lattice(what, _levels(chosen))
    elif isinstance(what, Release):
        made = boxes(what, columns) if what.collected is None else what.collected.picture()
    else:
        do = "pass a hierarchy, what jali.minimal found, or a release"
        raise InputError("there is no picture of this", got=type(what).__name__, do=do)
    if path is not None:
        made.save(path)
    return made


def _levels(chosen: Any) -> Mapping[str, int]:
    if isinstance(chosen, Release):
        if not chosen.levels:
            raise InputError(f"{an(chosen.kind)} release is no node of a lattice", do="leave chosen= out")
        return chosen.levels
    return chosen or {}


def lattice(nodes: Nodes, chosen: Mapping[str, int]) -> Picture:
    """The lattice from the finest node below to the coarsest above; one that is too large by height."""
    names = list(nodes.top)
    if chosen and set(chosen) != set(names):
        raise InputError("the chosen node is of another lattice", got=", ".join(chosen), do=f"name {', '.join(names)}")
    every = list(itertools.product(*(range(height + 1) for height in nodes.top.values())))
    lowest = {tuple(node.levels[name] for name in names) for node in nodes}
    marked = tuple(chosen[name] for name in names) if chosen else None
    sorts = {
        levels: CHOSEN if levels == marked else MINIMAL if levels in lowest else MET if nodes.keeps(levels) else UNMET
        for levels in every
    }
    kept = sum(map(nodes.keeps, every))
    title = f"{many(len(every), 'generalization')}: {kept:,} keep the promise, {len(lowest):,} of them minimal"
    order = f"Levels in the order {', '.join(names)}."
    where = f" Chosen: {_name(marked)}." if marked else ""
    description = f"{order} Minimal: {'; '.join(map(_name, sorted(lowest)))}.{where}"
    if len(every) > MOST_NODES:
        return _by_height(sorts, title, description)
    return _every_node(sorts, title, description, f"{order} {_some(sorted(lowest))}")


def _some(minimal: Sequence[tuple[int, ...]]) -> str:
    """The minimal nodes by name, for not all of them may have room for theirs."""
    more = f"; … {len(minimal) - MOST_NAMED:,} more" if len(minimal) > MOST_NAMED else ""
    names = "; ".join(_name(levels).replace(" ", "\u00a0") for levels in minimal[:MOST_NAMED])  # no name is broken
    return f"Minimal: {names or 'none'}{more}."


def _name(levels: Sequence[int]) -> str:
    return " ".join(map(str, levels))


def _every_node(sorts: Mapping[tuple[int, ...], str], title: str, description: str, note: str) -> Picture:
    rows: dict[int, list[tuple[int, ...]]] = {}
    for levels in sorts:
        rows.setdefault(sum(levels), []).append(levels)
    widest = max(map(len, rows.values()))
    wide = min(max(4.8, 0.34 * widest + 0.6), 11.0)
    room = LETTER * (2 * len(next(iter(sorts))) + 1)  # inches that a name takes
    spots: list[Spot] = []
    place: dict[tuple[int, ...], int] = {}
    for height, row in rows.items():
        step, free = 0.9 * wide / len(row), -wide
        for at, levels in enumerate(row):
            place[levels] = len(spots)
            x, sort = (at - (len(row) - 1) / 2) * step, sorts[levels]
            named = x - free >= room and (step >= room or sort in (MINIMAL, CHOSEN))
            free = x if named else free
            spots.append(Spot(x, height, sort, _name(levels) if named else ""))
    edges = [
        (place[levels], place[above])
        for levels in sorts
        for i in range(len(levels))
        if (above := (*levels[:i], levels[i] + 1, *levels[i + 1 :])) in place
    ]
    size = (wide, max(2.4, 0.62 * len(rows) + 0.8) + 0.2 + 0.15 * (len(note) // (wide * LETTERS)))
    looks = {sort: look for sort, look in LOOKS.items() if sort in set(sorts.values())}
    return graph(spots, edges, looks, title=title, description=description, size=size, note=note)


def _by_height(sorts: Mapping[tuple[int, ...], str], title: str, description: str) -> Picture:
    """How many nodes of each height are of which sort."""
    heights = sorted({sum(levels) for levels in sorts})
    table = Counter((sum(levels), sort) for levels, sort in sorts.items())
    chosen = next((sum(levels) for levels, sort in sorts.items() if sort == CHOSEN), None)
    labels = [f"height {h}{' (chosen)' if h == chosen else ''}" for h in heights]
    series = {
        UNMET: [float(table[h, UNMET]) for h in heights],
        MET: [float(table[h, MET] + table[h, MINIMAL] + table[h, CHOSEN]) for h in heights],
        "of these minimal": [float(table[h, MINIMAL]) for h in heights],
    }
    return bars(
        labels, series, title=title, description=description, axis="nodes", form=lambda n: f"{n:,.0f}" if n else ""
    )


def tree(hierarchy: Hierarchy) -> Picture:
    """A hierarchy from its root at the left to its values at the right."""
    most = next((m for m in (10**9, 20, 12, 8, 5, 3) if _leaves(hierarchy, m) <= MOST_LEAVES), 2)
    spots: list[Spot] = []
    edges: list[tuple[int, int]] = []
    place = itertools.count()

    def put(level: int, node: int) -> int:
        """The spots of a node and what is shown below it; returns its place in `spots`."""
        children = _children(hierarchy, level, node)
        below = [put(level - 1, child) for child in children[:most]]
        if len(children) > most:
            spots.append(Spot(hierarchy.height - level + 1, -next(place), "value", f"… {len(children) - most:,} more"))
            below.append(len(spots) - 1)
        y = (spots[below[0]].y + spots[below[-1]].y) / 2 if below else -float(next(place))
        text = hierarchy.levels[level].labels[node].as_py()
        spots.append(Spot(hierarchy.height - level, y, "value", "missing" if text is None else text or "(empty)"))
        edges.extend((len(spots) - 1, child) for child in below)
        return len(spots) - 1

    put(hierarchy.height, 0)
    sizes = " → ".join(f"{len(level):,}" for level in hierarchy.levels)
    described = "; ".join(
        f"level {i}: {', '.join(str(t) for t in level.texts()[:6])}" for i, level in enumerate(hierarchy.levels)
    )
    rows = sum(1 for s in spots if s.x == hierarchy.height or s.label.startswith("…"))
    size = (max(4.8, 1.5 * (hierarchy.height + 1)), max(1.5, 0.17 * rows + 0.4))
    look = {"value": Look("o", "#0072b2", "#0072b2", 3)}
    title = f"{hierarchy.column}: {sizes} values"
    return graph(spots, edges, look, title=title, description=described, size=size, beside=True)


def _children(hierarchy: Hierarchy, level: int, node: int) -> list[int]:
    return [] if level == 0 else (hierarchy.parents[level - 1] == node).nonzero()[0].tolist()


def _leaves(hierarchy: Hierarchy, most: int) -> int:
    """The number of spots at the right if each node shows at most `most` children, and one spot for the others."""

    def below(level: int, node: int) -> int:
        children = _children(hierarchy, level, node)
        shown = sum(below(level - 1, child) for child in children[:most])
        return max(1, shown + (len(children) > most))

    return below(hierarchy.height, 0)
