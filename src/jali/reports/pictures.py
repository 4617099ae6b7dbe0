"""Pictures of single things: a lattice, a hierarchy, the boxes of a release, a graph."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jali.core.arrays import Ints, combine, counted
from jali.core.charts import LETTERS, Look, Picture, Spot, bars, clipped, graph
from jali.encoding.hierarchy import Hierarchy
from jali.errors import InputError, nearest
from jali.estimates.cells import listed
from jali.releases.base import Release
from jali.releases.column import Published
from jali.releases.summary import an, many
from jali.search.lattice.costs import Nodes

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
            mark = "" if sort == UNMET else ",".join(map(str, levels))
            spots.append(Spot(x, height, sort, _name(levels) if named else "", mark))
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


# -- the boxes of a release over two of its quasi-identifiers ---------------------------------------------------------

MOST_BOXES = 1500
"""Only the boxes with the most rows are drawn, where there are more."""
MOST_TICKS = 24
SHADES = ("#f7fbff", "#c6dbef", "#6baed6", "#2171b5")
EDGE = "#1b1f24"

Span = tuple[float, float]


class Axis(NamedTuple):
    """A column as an axis: which spans of it each published node covers, and names for places on it."""

    spans: list[list[Span]]  # (nodes,)
    ticks: list[tuple[float, str]]


def boxes(release: Release, columns: Sequence[str] | None) -> Picture:
    """The boxes of the groups over two quasi-identifiers: the darker, the more rows a box has."""
    one, other = _chosen(release, columns)
    node, first = combine([(one.codes, len(one.labels)), (other.codes, len(other.labels))], len(one.codes))
    rows = counted(node)
    order = np.argsort(-rows, kind="stable")[:MOST_BOXES]
    across, up = _axis(one), _axis(other)
    drawn = [
        (x, y, int(rows[box]))
        for box in order
        for x in across.spans[int(one.codes[first[box]])]
        for y in up.spans[int(other.codes[first[box]])]
    ]
    more = len(rows) - len(order)
    left_out = f", of which the {many(len(order), 'largest', 'largest')} are drawn" if more else ""
    title = f"{many(len(rows), 'box', 'boxes')} over {one.name} and {other.name}{left_out}"
    largest, smallest = many(int(rows.max()), "row"), f"{int(rows.min()):,}"
    described = f"The largest box has {largest}, the smallest {smallest}. The darker, the more rows."
    return Picture(
        title, described, lambda canvas: _draw(canvas, drawn, (one.name, across), (other.name, up)), 4.8, 4.2
    )


def _chosen(release: Release, columns: Sequence[str] | None) -> tuple[Published, Published]:
    quasi: dict[str, Published] = {c.name: c for c in release.columns if c.role == "quasi"}
    wanted = list(columns) if columns is not None else sorted(quasi, key=lambda n: -len(quasi[n].labels))[:2]
    for name in wanted:
        if name not in quasi:
            raise InputError(f'no quasi-identifier "{name}" in the release', do=nearest(name, list(quasi)))
    if len(set(wanted)) != 2:
        raise InputError("boxes are drawn over two quasi-identifiers", got=", ".join(wanted), do="name two columns")
    one, other = (quasi[name] for name in wanted)
    return one, other


def _axis(column: Published) -> Axis:
    """Numbers and dates by their size, other values side by side in their order."""
    cover, nodes = column.cover, np.arange(len(column.labels))
    spanned = ~np.isnan(cover.low) if len(cover.low) else np.zeros(len(nodes), dtype=bool)
    if not spanned.any():
        return _discrete(column)
    wide = 0.5 if cover.whole else 0.0
    low, high = cover.low - wide, cover.high + wide
    ends = (float(np.nanmin(low)), float(np.nanmax(high)))
    spans = [[(float(low[n]), float(high[n]))] if spanned[n] else [ends] for n in nodes]
    return Axis(spans, _ticks_of_numbers(column, cover.low, cover.high))


def _ticks_of_numbers(column: Published, low: Any, high: Any) -> list[tuple[float, str]]:
    if column.kind == "number":
        return []  # the axis finds its own
    ends = np.unique(np.concatenate([low[~np.isnan(low)], high[~np.isnan(high)]]))
    few = ends[np.linspace(0, len(ends) - 1, min(6, len(ends))).astype(int)]
    return [(float(day), str(np.datetime64(int(day), "D"))) for day in few]


def _discrete(column: Published) -> Axis:
    used = np.unique(column.codes).astype(np.int64)
    try:
        sets = listed(column.cover, column.name, used)
        values, members = sets.values.to_pylist(), [sets.member[a:b] for a, b in pairwise(sets.start)]
    except InputError:  # what a cell covers is not known: each cell stands for itself
        values, members = column.labels.to_pylist(), [np.array([n]) for n in range(len(column.labels))]
    if column.kind == "number" and all(isinstance(v, (int, float)) for v in values if v is not None):
        order = np.argsort([float("inf") if v is None else v for v in values], kind="stable")
        rank = np.empty(len(values), dtype=np.int64)
        rank[order] = np.arange(len(values))
        values, members = [values[i] for i in order], [rank[m] for m in members]
    step = max(1, -(-len(values) // MOST_TICKS))
    ticks = [(float(i), clipped(values[i], 16)) for i in range(0, len(values), step)]
    return Axis([_runs(np.sort(m)) for m in members], ticks)


def _runs(places: Ints) -> list[Span]:
    """Neighbouring places as one span."""
    if len(places) == 0:
        return []
    cuts = np.flatnonzero(np.diff(places) > 1) + 1
    return [(float(run[0]) - 0.5, float(run[-1]) + 0.5) for run in np.split(places, cuts)]


def _draw(canvas: Figure, drawn: list[tuple[Span, Span, int]], across: tuple[str, Axis], up: tuple[str, Axis]) -> None:
    from matplotlib.patches import Rectangle

    axes = canvas.subplots()
    rows = np.array([n for _, _, n in drawn])
    starts = np.unique(np.quantile(rows, (0, 0.25, 0.5, 0.75), method="lower"))
    shade = np.searchsorted(starts, rows, side="right") - 1
    for x, y, at in sorted(
        ((x, y, int(s)) for (x, y, _), s in zip(drawn, shade, strict=True)), key=_area, reverse=True
    ):
        axes.add_patch(Rectangle((x[0], y[0]), x[1] - x[0], y[1] - y[0], facecolor=SHADES[at], edgecolor=EDGE,
                                 linewidth=0.5))  # fmt: skip
    ends = [*(int(s) - 1 for s in starts[1:]), int(rows.max())]
    for at, (low, high) in enumerate(zip(starts.tolist(), ends, strict=True)):
        label = f"{low:,}" if low == high else f"{low:,} – {high:,}"
        axes.add_patch(Rectangle((0, 0), 0, 0, facecolor=SHADES[at], edgecolor=EDGE, linewidth=0.5, label=label))
    canvas.legend(loc="outside upper center", ncols=len(ends), frameon=False, title="rows in the box", fontsize=8)
    axes.set_xlim(min(x[0] for x, _, _ in drawn), max(x[1] for x, _, _ in drawn))
    axes.set_ylim(min(y[0] for _, y, _ in drawn), max(y[1] for _, y, _ in drawn))
    axes.set(xlabel=clipped(across[0]), ylabel=clipped(up[0]))
    if across[1].ticks:
        places, texts = zip(*across[1].ticks, strict=True)
        axes.set_xticks(places, texts, rotation=90 if max(map(len, texts)) * len(texts) > 60 else 0, fontsize=7.5)
    if up[1].ticks:
        places, texts = zip(*up[1].ticks, strict=True)
        axes.set_yticks(places, texts, fontsize=7.5)


def _area(box: tuple[Span, Span, int]) -> float:
    x, y, _ = box
    return (x[1] - x[0]) * (y[1] - y[0])
