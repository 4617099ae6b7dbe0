"""Which published node each value of a table has, and what the cells cover for whoever holds it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from jali.cover.cover import Cover
from jali.encoding.hierarchy import Hierarchy
from jali.encoding.table import Column, Domain
from jali.errors import InputError
from jali.principles.counts import Ints
from jali.releases.column import Published
from jali.releases.facts import LevelFacts
from jali.releases.group_facts import GroupFacts


def holder_sets(published: Published, column: Column) -> tuple[Ints, Ints]:
    """Which values of the holder's column each shown node covers: (nodes + 1,) starts and members."""
    facts = published.facts
    assert isinstance(facts, GroupFacts)
    covered, every = facts.covered(column), np.arange(len(column.values))
    members = [every if node < 0 else covered(node) for node in facts.nodes_of(published.labels.to_pylist())]
    start = np.concatenate([[0], np.cumsum([len(m) for m in members])]).astype(np.int64)
    return start, np.concatenate(members).astype(np.int64)


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
    if not labels and isinstance(published.facts, LevelFacts) and published.facts.always_root:
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
    if published.distributions is not None:
        return published.distributions.holder_cover(published.labels, column, np.flatnonzero(mask))
    if published.generalized_by_group:
        start, member = holder_sets(published, column)
        rank = np.cumsum(mask) - 1
        kept = mask[member]
        before = np.concatenate([[0], np.cumsum(kept)])
        return Cover.sets(values, before[start].astype(np.int64), rank[member[kept]].astype(np.int64))
    nodes = node_numbers(published, column)
    nodes = np.where(nodes == published.cover_root, -1, nodes) if published.cover_root is not None else nodes
    return Cover.grouped(values, nodes[mask], len(published.labels), root=published.cover_root)
