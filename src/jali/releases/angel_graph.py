"""The synthesization graph of an ANGEL release: buckets and batches, and how many people tie each two (Figure 2)."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa

from jali.errors import InputError
from jali.releases.angel_tables import Contents, GroupTable

LARGEST = 60
"""Buckets, and batches, up to which a graph can be read."""


def draw(table: GroupTable, contents: Contents, path: str | Path) -> Path:
    """Draw buckets on the left, batches on the right; a line is as wide as people are in both."""
    if find_spec("matplotlib") is None:
        raise InputError("plots need matplotlib, which is not installed", do='pip install "jali[plots]"')
    import matplotlib as mpl
    from matplotlib.figure import Figure

    target = Path(path)
    if target.suffix.lstrip(".") not in Figure().canvas.get_supported_filetypes():
        raise InputError("a plot needs a file whose ending says its form", got=target.name, do="write e.g. graph.svg")
    buckets, batches = len(table.sizes), len(contents.size)
    if max(buckets, batches) > LARGEST:
        got = f"{buckets:,} buckets and {batches:,} batches"
        do = "draw a smaller release, or look at release.tables"
        raise InputError(f"a graph of more than {LARGEST} buckets or batches cannot be read", got=got, do=do)
    high = max(buckets, batches)
    left = [(i + 0.5) * high / buckets for i in range(buckets)]
    right = [(i + 0.5) * high / batches for i in range(batches)]
    # Text stays text, and the same figures give the same file.
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "jali", "font.size": 8}):
        canvas = Figure(figsize=(8, max(2.0, 0.32 * high)), layout="constrained")
        axes = canvas.subplots()
        pairs = (amounts.tolist() for amounts in table.shares)
        for bucket, batch, people in zip(*pairs, strict=True):
            width = 0.6 + 3.0 * people / int(table.sizes[bucket])
            axes.plot([0, 1], [left[bucket], right[batch]], color="#0072b2", linewidth=width, alpha=0.5, zorder=1)
        axes.scatter([0] * buckets, left, color="#333333", zorder=2, s=16)
        axes.scatter([1] * batches, right, color="#e69f00", zorder=2, s=16)
        for bucket in range(buckets):
            shown = ", ".join(str(text) for text in table.label(bucket).values())
            axes.annotate(shown, (0, left[bucket]), (-6, 0), textcoords="offset points", ha="right", va="center")
        for batch, text in enumerate(_values(contents)):
            axes.annotate(text, (1, right[batch]), (6, 0), textcoords="offset points", ha="left", va="center")
        axes.set(xlim=(-1.1, 2.1), ylim=(high, 0))
        axes.set_axis_off()
        canvas.savefig(target, metadata={"Date": None} if target.suffix == ".svg" else None, dpi=120)
    return target


def _values(contents: Contents) -> list[str]:
    """What each batch holds: `1: flu 2, cold 1`."""
    texts = [column.labels.take(pa.array(column.codes)).to_pylist() for column in contents.hidden]
    told: list[list[str]] = [[] for _ in range(len(contents.size))]
    for batch, people, *values in zip(contents.entry_batch.tolist(), contents.people.tolist(), *texts, strict=True):
        told[batch].append(f"{' and '.join('missing' if v is None else str(v) for v in values)} {people}")
    return [f"{number}: {', '.join(values)}" for number, values in enumerate(told, 1)]
