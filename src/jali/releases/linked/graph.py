"""The synthesization graph of an ANGEL release: buckets and batches, and how many people tie each two (Figure 2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from jali.core.charts import COLOURS, Picture, clipped
from jali.errors import InputError
from jali.releases.linked.tables import Contents, GroupTable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LARGEST = 60
"""Buckets, and batches, up to which a graph can be read."""
WIDE = 44
"""Letters of a bucket or batch that are shown."""


def graph(table: GroupTable, contents: Contents) -> Picture:
    """Buckets on the left, batches on the right; a line is as wide as people are in both."""
    buckets, batches = len(table.sizes), len(contents.size)
    if max(buckets, batches) > LARGEST:
        got = f"{buckets:,} buckets and {batches:,} batches"
        do = "draw a smaller release, or look at release.tables"
        raise InputError(f"a graph of more than {LARGEST} buckets or batches cannot be read", got=got, do=do)
    shown = [", ".join(str(text) for text in table.label(bucket).values()) for bucket in range(buckets)]
    held = _values(contents)
    ties = list(zip(*(amounts.tolist() for amounts in table.shares), strict=True))  # bucket, batch, people

    def draw(canvas: Figure) -> None:
        high = max(buckets, batches)
        left = [(i + 0.5) * high / buckets for i in range(buckets)]
        right = [(i + 0.5) * high / batches for i in range(batches)]
        axes = canvas.subplots()
        for bucket, batch, people in ties:
            width = 0.6 + 3.0 * people / int(table.sizes[bucket])
            axes.plot([0, 1], [left[bucket], right[batch]], color=COLOURS[0], linewidth=width, alpha=0.5, zorder=1)
        axes.scatter([0] * buckets, left, color=COLOURS[6], marker="s", zorder=2, s=16)
        axes.scatter([1] * batches, right, color=COLOURS[1], marker="o", zorder=2, s=16)
        for x, places, texts, side, away in ((0, left, shown, "right", -6), (1, right, held, "left", 6)):
            for y, text in zip(places, texts, strict=True):
                axes.annotate(clipped(text, WIDE), (x, y), (away, 0), textcoords="offset points", ha=side, va="center")
        axes.set(xlim=(-1.1, 2.1), ylim=(high, 0))
        axes.set_axis_off()

    said = "; ".join(f"{shown[bucket]}: {people} in batch {batch + 1}" for bucket, batch, people in ties)
    return Picture("Which batches each bucket is a mixture of", said, draw, 8, max(2.0, 0.32 * max(buckets, batches)))


def _values(contents: Contents) -> list[str]:
    """What each batch holds: `1: flu 2, cold 1`."""
    texts = [column.labels.take(pa.array(column.codes)).to_pylist() for column in contents.hidden]
    told: list[list[str]] = [[] for _ in range(len(contents.size))]
    for batch, people, *values in zip(contents.entry_batch.tolist(), contents.people.tolist(), *texts, strict=True):
        told[batch].append(f"{' and '.join('missing' if v is None else str(v) for v in values)} {people}")
    return [f"{number}: {', '.join(values)}" for number, values in enumerate(told, 1)]
