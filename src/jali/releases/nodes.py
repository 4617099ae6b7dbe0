"""Which published node each value of a table has, and what the cells cover for whoever holds it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from jali.core.arrays import Ints, starts
from jali.cover.cover import Cover
from jali.encoding import values as v
from jali.encoding.hierarchy import ROOT, Hierarchy
from jali.encoding.table import Column, Domain
from jali.errors import InputError
from jali.releases.column import Published
from jali.releases.pdf import holder_pdf


def holder_sets(published: Published, column: Column) -> tuple[Ints, Ints]:
    """Which values of the holder's column each shown node covers: (nodes + 1,) starts and members."""
    facts = published.facts
    assert facts is not None
    covered = _covered(facts, column)
    position = {label: i for i, label in enumerate(facts["labels"])}
    every = np.arange(len(column.values))
    hidden = facts.get("hidden", False)
    members = [
        every if hidden and label == ROOT else covered(position[label]) for label in published.labels.to_pylist()
    ]
    start = starts([len(m) for m in members])
    return start, np.concatenate(members).astype(np.int64)


def _covered(facts: Mapping[str, Any], column: Column) -> Callable[[int], Ints]:
    """For a node of the display, by its number: the values of the holder's column that it covers, in their order."""
    if "members" in facts:
        codes = {text: code for code, text in enumerate(column.labels.to_pylist())}
        code = [codes.get(leaf, -1) for leaf in facts["leaves"]]
        return lambda node: np.array(sorted(code[i] for i in facts["members"][node] if code[i] >= 0), dtype=np.int64)
    if facts["display"] == "interval":
        return _covered_numbers(facts, column)
    return _covered_nodes(facts, column)


def _covered_numbers(facts: Mapping[str, Any], column: Column) -> Callable[[int], Ints]:
    numbers = v.numbers(column.values)
    assert numbers is not None
    missing = np.flatnonzero(np.isnan(numbers))
    order = np.argsort(numbers, kind="stable")
    known = numbers[order[: len(order) - len(missing)]]  # missing ones are sorted last

    def covered(node: int) -> Ints:
        low, high = facts["low"][node], facts["high"][node]
        some = slice(0, 0)
        if low is not None:
            some = slice(int(np.searchsorted(known, low)), int(np.searchsorted(known, high, side="right")))
        return np.sort(np.concatenate([order[some], missing if facts["missing"][node] else missing[:0]]))

    return covered


def _covered_nodes(facts: Mapping[str, Any], column: Column) -> Callable[[int], Ints]:
    """By the hierarchy: a label means the lowest node that has it, or the numbers that it tells of itself."""
    hierarchy = column.hierarchy
    assert hierarchy is not None
    place: dict[str | None, tuple[int, int]] = {ROOT: (hierarchy.height, 0)}
    for level in range(hierarchy.height, -1, -1):
        place.update((text, (level, node)) for node, text in enumerate(hierarchy.levels[level].texts()))
    members = [hierarchy.members(level) for level in range(hierarchy.height + 1)]

    def covered(node: int) -> Ints:
        level, found = place.get(facts["labels"][node], (-1, -1))
        if level < 0 and "low" in facts and facts["low"][node] is not None:
            return _between(column, facts["low"][node], facts["high"][node], whole=bool(facts["whole"]))
        if level < 0:
            raise InputError(
                f'the values of column "{column.name}" in the release are not those of this table',
                do="use the table that the release was made from, with the same hierarchies",
            )
        return members[level][found]

    return covered


def _between(column: Column, low: float, high: float, *, whole: bool) -> Ints:
    """The values of a band: both ends of whole numbers, of fractions the lower one."""
    numbers = v.numbers(column.values)
    if numbers is None:
        return np.zeros(0, dtype=np.int64)
    below = numbers <= high if whole or low == high else numbers < high
    return np.flatnonzero((numbers >= low) & below).astype(np.int64)


def node_numbers(published: Published, column: Column) -> Ints:
    """The published node of each value of the holder's column; -1 for a value that only * covers: (values,)."""
    hierarchy = column.hierarchy
    if hierarchy is None:
        raise InputError(f'column "{column.name}" is not a quasi-identifier of this table')
    labels = {label: node for node, label in enumerate(published.labels.to_pylist()) if node != published.cover_root}
    level = _level(hierarchy, published, labels)
    nodes = np.array([labels.get(label, -1) for label in hierarchy.levels[level].texts()], dtype=np.int64)
    if level == hierarchy.height and published.cover_root is not None:
        nodes[:] = published.cover_root
    return nodes[hierarchy.maps[level]]


def _level(hierarchy: Hierarchy, published: Published, labels: Mapping[str | None, int]) -> int:
    """The level whose nodes carry the published labels: the same number, unless finer levels were not kept."""
    if not labels and published.facts is not None and len(published.facts["levels"]) == 1:
        return hierarchy.height
    order = sorted(range(hierarchy.height + 1), key=lambda level: (level != published.level, level))
    for level in order:
        if set(labels) <= set(hierarchy.levels[level].texts()):
            return level
    raise InputError(
        f'the values of column "{hierarchy.column}" in the release are not those of this table',
        do="use the table that the release was made from, with the same hierarchies",
    )


def holder_cover(published: Published, column: Column, domain: Domain) -> Cover:
    """What each shown cell covers, for the holder of the table, who knows every value and its hierarchy."""
    mask = column.mask(domain)
    values = column.values.filter(pa.array(mask))
    if published.facts is not None and "weights" in published.facts:
        return holder_pdf(published.facts, published.labels, column, np.flatnonzero(mask))
    if published.generalized_by_group:
        start, member = holder_sets(published, column)
        rank = np.cumsum(mask) - 1
        kept = mask[member]
        before = starts(kept)
        return Cover.sets(values, before[start].astype(np.int64), rank[member[kept]].astype(np.int64))
    nodes = node_numbers(published, column)
    nodes = np.where(nodes == published.cover_root, -1, nodes) if published.cover_root is not None else nodes
    return Cover.grouped(values, nodes[mask], len(published.labels), root=published.cover_root)
