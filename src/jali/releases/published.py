"""A published column: what its cells say, and what an analyst may know that they cover."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from jali.encoding import values as v
from jali.encoding.hierarchy import ROOT, Hierarchy
from jali.encoding.table import Column, Role
from jali.estimates.cover import Cover
from jali.principles.counts import Ints, Sensitive


@dataclass(frozen=True, eq=False)
class Published:
    """One column of a published table: only nodes that occur in it have a label here."""

    name: str
    role: Role
    kind: v.Kind  # of the values before generalization
    labels: pa.Array  # (nodes,) what is shown; null is the missing value
    codes: NDArray[np.integer]  # (rows,) nodes
    cover: Cover
    level: int = 0
    facts: dict[str, Any] | None = None  # the hierarchy's part in the manifest
    judged: tuple[Sensitive, Ints] | None = None  # a sensitive column as judged: its values, and that of each node
    cover_root: int | None = None  # the node that stands for everything: *

    def shown(self, order: slice | None = None) -> pa.Array:
        """The cells: numbers and dates where every cell is an exact value, otherwise text."""
        texts = self.labels
        if self.level == 0 and self.kind != "text" and self.cover_root is None:
            texts = v.as_kind(self.name, self.labels, self.kind)
        return texts.take(pa.array(self.codes if order is None else self.codes[order]))


def compact(codes: NDArray[np.integer], nodes: int) -> tuple[NDArray[np.integer], Ints]:
    """Codes renumbered over the nodes that occur, and those nodes: what does not occur leaves no trace."""
    used = np.flatnonzero(np.bincount(codes, minlength=nodes))
    renumber = np.zeros(nodes, dtype=np.int32)
    renumber[used] = np.arange(len(used), dtype=np.int32)
    small = np.uint8 if len(used) <= 2**8 else np.uint16 if len(used) <= 2**16 else np.int32
    return renumber[codes].astype(small), used


def publish_quasi(column: Column, level: int, hidden: NDArray[np.bool_] | None) -> Published:
    """A quasi-identifier at a level of its hierarchy; hidden records show the root."""
    hierarchy = column.hierarchy
    assert hierarchy is not None
    nodes = hierarchy.maps[level][column.codes]
    count = len(hierarchy.levels[level])
    if hidden is not None and hidden.any() and level < hierarchy.height:
        nodes = np.where(hidden, count, nodes)
        count += 1
    codes, used = compact(nodes, count)
    own = used[used < len(hierarchy.levels[level])]
    labels = hierarchy.levels[level].labels.take(pa.array(own))
    root = None
    if len(own) < len(used):
        labels = pa.concat_arrays([labels, pa.array([ROOT], pa.string())])
        root = len(own)
    elif level == hierarchy.height:
        root = 0
        labels = pa.array([ROOT], pa.string())
    facts = hierarchy_facts(hierarchy, level, own)
    cover = cover_of(facts, labels, root, column.kind)
    return Published(column.name, "quasi", column.kind, labels, codes, cover, level, facts, None, root)


def publish_exact(column: Column) -> Published:
    """A sensitive or other column, as it is."""
    codes, used = compact(column.codes, len(column.values))
    labels = column.labels.take(pa.array(used))
    judged = None
    if column.role == "sensitive":
        sensitive, mapping = column.sensitive()
        judged = (sensitive, mapping[used])
    values = column.values.take(pa.array(used))
    cover = Cover.exact(values)
    return Published(column.name, column.role, column.kind, labels, codes, cover, 0, None, judged)


def hierarchy_facts(hierarchy: Hierarchy, level: int, used: Ints) -> dict[str, Any]:
    """What the manifest says of a hierarchy: nodes at or above the published level, leaves only where declared.

    Of a domain that was not declared only nodes that were published, and those above them, are named.
    """
    nodes = np.arange(len(hierarchy.levels[level]), dtype=np.int64) if hierarchy.declared else used
    levels = []
    at = nodes
    for number in range(level, hierarchy.height + 1):
        here = hierarchy.levels[number]
        labels = here.labels.take(pa.array(at)).to_pylist()
        facts: dict[str, Any] = {"level": number, "labels": labels if number < hierarchy.height else [ROOT]}
        if here.low is not None and here.high is not None:
            facts["low"] = [None if np.isnan(x) else x for x in here.low[at].tolist()]
            facts["high"] = [None if np.isnan(x) else x for x in here.high[at].tolist()]
        if number < hierarchy.height:
            above, parent = np.unique(hierarchy.parents[number][at], return_inverse=True)
            facts["parents"] = parent.tolist()
            at = above
        levels.append(facts)
    made_by = hierarchy.made_by.split("(")[0] if hierarchy.made_by.startswith("taxonomy") else hierarchy.made_by
    if hierarchy.chosen and level == hierarchy.height:
        made_by = ""  # widths that jali chose follow the values, and here nothing is shown of them
    result: dict[str, Any] = {
        "made_by": made_by,
        "declared": hierarchy.declared, "chosen": hierarchy.chosen, "whole": hierarchy.whole, "levels": levels,
    }  # fmt: skip
    if hierarchy.declared:
        result["leaves"] = hierarchy.levels[0].labels.to_pylist()
        result["leaf_nodes"] = hierarchy.maps[level].tolist()
    return result


def cover_of(facts: dict[str, Any], labels: pa.Array, root: int | None, kind: v.Kind) -> Cover:
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
        if len(lowest["labels"]) == 1:
            leaves = np.full(len(leaves), -1, dtype=np.int64)
        return Cover.grouped(_typed(facts["leaves"], kind), leaves, len(labels), root=root)
    if lowest["level"] == 0 and len(facts["levels"]) > 1:
        known = _typed([texts[i] for i in nodes], kind)
        return Cover.grouped(known, np.array(nodes, dtype=np.int64), len(labels), root=root)
    if "low" in lowest:
        low, high = (_bounds(lowest[side], nodes, positions, len(texts)) for side in ("low", "high"))
        if root is not None and not np.isnan(low).all():
            low[root], high[root] = np.nanmin(low), np.nanmax(high)
        return Cover.intervals(low, high, bool(facts["whole"]), kind, missing=missing)
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
