"""Sensitive values that occur: those of rows that were dropped or not sampled leave no trace in a release."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from jali.encoding.hierarchy import Hierarchy, Level
from jali.encoding.table import Column, Table
from jali.principles.counts import Ints


def only_present(table: Table) -> Table:
    """The same table; sensitive columns whose domain was not declared know only the values that occur."""
    columns = tuple(_only_present(column) if column.role == "sensitive" else column for column in table.columns)
    unchanged = all(new is old for new, old in zip(columns, table.columns, strict=True))
    return table if unchanged else replace(table, columns=columns)


def _only_present(column: Column) -> Column:
    if column.declared or bool(column.present.all()):
        return column
    kept = np.flatnonzero(column.present)
    rank = np.zeros(len(column.values), dtype=column.codes.dtype)
    rank[kept] = np.arange(len(kept))
    hierarchy = None if column.hierarchy is None else _restricted(column.hierarchy, kept)
    return replace(column, values=column.values.take(pa.array(kept)), codes=rank[column.codes], hierarchy=hierarchy)


def _restricted(hierarchy: Hierarchy, kept: Ints) -> Hierarchy:
    """The hierarchy over some of its values; nodes without a value go."""
    maps, levels = [], []
    for nodes, level in zip(hierarchy.maps, hierarchy.levels, strict=True):
        used, number = np.unique(nodes[kept], return_inverse=True)
        low, high = (None if bound is None else bound[used] for bound in (level.low, level.high))
        maps.append(number.reshape(-1).astype(np.int32))
        levels.append(Level(level.labels.take(pa.array(used)), low, high))
    return replace(hierarchy, maps=tuple(maps), levels=tuple(levels))
