"""The boxes of a release over two of its quasi-identifiers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jali.core.arrays import Ints, combine, counted
from jali.core.charts import Picture, clipped
from jali.errors import InputError, nearest
from jali.estimates.cells import listed
from jali.releases.base import Release
from jali.releases.column import Published
from jali.releases.summary import many

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
