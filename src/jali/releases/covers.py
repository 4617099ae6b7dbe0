"""What the cells of a saved column cover, from the manifest's words alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from jali.core.arrays import starts
from jali.cover.cover import Cover
from jali.encoding import values as v
from jali.encoding.hierarchy import ROOT

LISTED = 100_000
"""Up to which width intervals that may also be missing are listed number by number."""


def cover_of(facts: Mapping[str, Any], labels: pa.Array, root: int | None, kind: v.Kind) -> Cover:
    """What the published nodes cover, from the manifest's words alone."""
    lowest = facts["levels"][0]
    nodes = [i for i in range(len(labels)) if i != root]
    number = {label: position for position, label in enumerate(lowest["labels"])}
    texts = labels.to_pylist()
    positions = [number[texts[i]] for i in nodes]  # of each node among the hierarchy's
    missing = texts.index(None) if None in texts else None
    if facts["declared"]:
        node = np.full(len(lowest["labels"]), -1, dtype=np.int64)
        node[positions] = nodes
        leaves = node[np.asarray(facts["leaf_nodes"], dtype=np.int64)]
        return Cover.grouped(_typed(facts["leaves"], kind), leaves, len(labels), root=root)
    if lowest["level"] == 0 and len(facts["levels"]) > 1:
        known = _typed([texts[i] for i in nodes], kind)
        return Cover.grouped(known, np.array(nodes, dtype=np.int64), len(labels), root=root, declared=False)
    if "low" in lowest:
        low, high = (_bounds(lowest[side], nodes, positions, len(texts)) for side in ("low", "high"))
        if root is not None and not np.isnan(low).all():
            low[root], high[root] = np.nanmin(low), np.nanmax(high)
        return Cover.intervals(low, high, bool(facts["whole"]), kind, missing=missing, guessed=root)
    if facts["made_by"] == "mask()" and len(facts["levels"]) > 1:
        return Cover.masked(labels, missing=missing)
    return Cover.unknown(len(labels), missing=missing)


def _typed(texts: list[str | None], kind: v.Kind) -> pa.Array:
    return v.as_kind("", pa.array(texts, pa.string()), kind)


def _bounds(given: list[float | None], nodes: list[int], positions: list[int], count: int) -> NDArray[np.float64]:
    result = np.full(count, np.nan)
    for node, position in zip(nodes, positions, strict=True):
        bound = given[position]
        result[node] = np.nan if bound is None else bound
    return result


def display_cover(facts: Mapping[str, Any], labels: pa.Array, kind: v.Kind) -> Cover:
    """What the shown nodes cover, from the manifest's words alone; `labels` may be in another order than the facts'."""
    position = {label: i for i, label in enumerate(facts["labels"])}
    texts = labels.to_pylist()
    if facts.get("hidden"):
        position.setdefault(ROOT, -1)  # suppressed rows: anything
    nodes = [position[label] for label in texts]
    missing = texts.index(None) if None in texts else None
    if "members" in facts:
        return _members(facts, nodes, kind)
    if "low" not in facts:
        return _words(facts["made_by"], labels, missing, kind)
    low, high = (
        np.array([np.nan if n < 0 or facts[s][n] is None else facts[s][n] for n in nodes]) for s in ("low", "high")
    )
    if -1 in nodes and not np.isnan(low).all():
        low[nodes.index(-1)], high[nodes.index(-1)] = np.nanmin(low), np.nanmax(high)
    if facts["display"] == "interval" and not facts["whole"]:
        high = np.where(low < high, np.nextafter(high, np.inf), high)  # the interval of a group holds its largest value
    mixed = np.array([bool(facts.get("missing") and n >= 0 and facts["missing"][n]) for n in nodes]) & ~np.isnan(low)
    root = texts.index(ROOT) if ROOT in texts else None
    guessed = None if root is None or np.isnan(low[root]) else root
    if mixed.any():
        made = _spans_with_missing(low, high, mixed, missing, kind, whole=bool(facts["whole"]))
        return replace(made, guessed=guessed)
    return Cover.intervals(low, high, bool(facts["whole"]), kind, missing=missing, guessed=guessed)


def _words(made_by: str, labels: pa.Array, missing: int | None, kind: v.Kind) -> Cover:
    """Words without a declared domain: masked ones, or kept ones, each of which is itself; * may be anything."""
    if made_by == "mask":
        return Cover.masked(labels, missing=missing)
    if made_by != "suppress":
        return Cover.unknown(len(labels), missing=missing)
    nodes = np.flatnonzero(np.arange(len(labels)) != pc.index(labels, ROOT).as_py())
    return Cover.grouped(v.as_kind("", labels.take(pa.array(nodes)), kind), nodes, len(labels))


def _members(facts: Mapping[str, Any], nodes: list[int], kind: v.Kind) -> Cover:
    """Sets and distributions; what is suppressed (-1) may be any value, and others where none were declared."""
    every = list(range(len(facts["leaves"])))
    members = [every if n < 0 else facts["members"][n] for n in nodes]
    start = starts([len(m) for m in members])
    flat = np.array([i for m in members for i in m], dtype=np.int64)
    share = None
    if "weights" in facts:
        shares = [[1 / len(every)] * len(every) if n < 0 else shares_of(facts, [n])[0] for n in nodes]
        share = [one for some in shares for one in some]
    made = Cover.sets(v.as_kind("", pa.array(facts["leaves"], pa.string()), kind), start, flat, share)
    declared = facts.get("declared", facts["display"] == "taxonomy")
    return made if -1 not in nodes or declared else replace(made, guessed=nodes.index(-1))


def shares_of(facts: Mapping[str, Any], nodes: Sequence[int]) -> list[list[float]]:
    """The probabilities of the members of these nodes of a column that shows distributions."""
    found = []
    for node in nodes:
        weights = facts["weights"][node]
        total = sum(weights)
        found.append([weight / total for weight in weights])
    return found


def _spans_with_missing(
    low: NDArray[np.float64], high: NDArray[np.float64], mixed: NDArray[np.bool_], missing: int | None, kind: v.Kind,
    *, whole: bool,
) -> Cover:  # fmt: skip
    """Intervals of which some may also be missing: sets of whole numbers or days, unknown where none can be listed."""
    if not whole or np.nanmax(high) - np.nanmin(low) > LISTED:
        low, high = np.where(mixed, np.nan, low), np.where(mixed, np.nan, high)
        return Cover.intervals(low, high, whole, kind, missing=missing)
    first, last = int(np.nanmin(low)), int(np.nanmax(high))
    numbers = pa.array(np.arange(first, last + 1), pa.int64())
    typed = numbers.cast(pa.int32()).cast(pa.date32()) if kind == "date" else numbers
    values = pa.concat_arrays([typed, pa.nulls(1, typed.type)])
    members = []
    for a, b, hole in zip(low, high, mixed, strict=True):
        inside = [] if np.isnan(a) else list(range(int(a) - first, int(b) - first + 1))
        members.append(inside + ([len(values) - 1] if hole or not inside else []))
    start = starts([len(m) for m in members])
    return Cover.sets(values, start, np.array([i for m in members for i in m], dtype=np.int64))
