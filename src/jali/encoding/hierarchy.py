"""Hierarchy: a chain of coarsenings of a column's values, from the values themselves to one root."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from jali.errors import HierarchyError
from jali.show import html_table

ROOT = "*"
"""How everything-at-once is shown."""
SHOWN = 8
"""So many labels of a level are shown in a notebook."""


@dataclass(frozen=True, eq=False)
class Level:
    """One level's nodes: what they are called and, for bands and dates, which interval each covers."""

    labels: pa.Array  # (nodes,) text, each once; null is the missing value
    low: NDArray[np.float64] | None = None  # (nodes,) nan for a node that is no interval
    high: NDArray[np.float64] | None = None  # (nodes,) the last value of it, or its end where values are fractions

    def __len__(self) -> int:
        return len(self.labels)

    def texts(self) -> list[str | None]:
        """The labels as Python strings."""
        return list(self.labels.to_pylist())


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """`maps[level][code]` is the node of a value; level 0 is the identity, the last level has a single root."""

    column: str
    maps: tuple[NDArray[np.int32], ...]  # each (values,)
    levels: tuple[Level, ...]
    declared: bool = False  # whether the values are a declared domain, not only those that occur
    chosen: bool = False  # whether jali chose it because none was given
    made_by: str = ""  # "bands(5, 10, 20)"
    whole: bool = True  # whether intervals hold whole numbers (or days): [20, 29]; otherwise [20, 30)
    parents: tuple[NDArray[np.int32], ...] = field(init=False)  # parents[level][node] → node one level up

    def __post_init__(self) -> None:
        values = len(self.maps[0]) if self.maps else 0
        if not self.maps or not np.array_equal(self.maps[0], np.arange(values)) or len(self.levels[0]) != values:
            raise HierarchyError(f'hierarchy of "{self.column}": level 0 must be the values themselves')
        if len(self.levels[-1]) != 1:
            raise HierarchyError(
                f'hierarchy of "{self.column}": the top level must be one value that covers all',
                got=f"{len(self.levels[-1])} values",
                do='add a last column "*"',
            )
        object.__setattr__(self, "parents", tuple(self._parents(level) for level in range(1, len(self.maps))))

    def _parents(self, level: int) -> NDArray[np.int32]:
        """The node at this level of each node one level below."""
        here = self.levels[level].labels
        if len(here) > 1 and int(pc.index(here, ROOT).as_py()) >= 0:
            raise HierarchyError(
                f'hierarchy of "{self.column}": "{ROOT}" means everything, but at level {level} not all are it',
                do=f'use "{ROOT}" only where a whole level is "{ROOT}"',
            )
        below, above = self.maps[level - 1], self.maps[level]
        parent = np.zeros(len(self.levels[level - 1]), dtype=np.int32)
        parent[below] = above
        split = np.flatnonzero(parent[below] != above)
        if len(split):
            raise HierarchyError(
                f'hierarchy of "{self.column}" is not a tree: '
                f"one value of level {level - 1} lies under two of level {level}",
                do=f"give each value of level {level - 1} one value in level {level}",
                value=self.levels[level - 1].labels[int(below[split[0]])].as_py(),
            )
        return parent

    @property
    def height(self) -> int:
        """The number of steps from the values to the root."""
        return len(self.maps) - 1

    def node_sizes(self, level: int, mask: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
        """How many values each node of a level covers (only those in the mask, if given): (nodes,)."""
        nodes = self.maps[level] if mask is None else self.maps[level][mask]
        return np.bincount(nodes, minlength=len(self.levels[level])).astype(np.int64)

    def members(self, level: int) -> list[NDArray[np.int64]]:
        """The codes of the values that each node of a level covers, ascending."""
        order = np.argsort(self.maps[level], kind="stable").astype(np.int64)
        return np.split(order, np.cumsum(self.node_sizes(level))[:-1])

    def rows(self) -> list[tuple[str, ...]]:
        """One row per value, one text per level: the CSV form that ARX users have.

        There the missing value and the empty text look the same; where a column has both, they share a row.
        """
        columns = [self.levels[i].labels.take(pa.array(m)).to_pylist() for i, m in enumerate(self.maps)]
        rows = [tuple("" if text is None else text for text in row) for row in zip(*columns, strict=True)]
        return [row for row, value in zip(rows, columns[0], strict=True) if value is not None or "" not in columns[0]]

    def _repr_html_(self) -> str:
        rows = [(level, f"{len(nodes):,}", ", ".join(map(_shown, nodes.texts()[:SHOWN])) + _more(len(nodes)))
                for level, nodes in enumerate(self.levels)]  # fmt: skip
        return html_table(("Level", "Values", "Labels"), rows, caption=repr(self), numbers=(0, 1))

    def __repr__(self) -> str:
        sizes = " → ".join(f"{len(level):,}" for level in self.levels)
        return f"Hierarchy({self.column!r}, {self.made_by or 'levels'}: {sizes} values)"


def _shown(label: str | None) -> str:
    return "missing" if label is None else label


def _more(nodes: int) -> str:
    return f" and {nodes - SHOWN:,} more" if nodes > SHOWN else ""


Step = tuple[NDArray[np.int32], Level]
"""A level, and the node of each value at it."""


def from_steps(column: str, values: pa.Array, steps: Iterable[Step], **facts: Any) -> Hierarchy:
    """The hierarchy of the values' texts and these levels above them; a last level with the root is added."""
    own = (np.arange(len(values), dtype=np.int32), Level(values))
    root = (np.zeros(len(values), dtype=np.int32), Level(pa.array([ROOT], pa.string())))
    maps, levels = zip(own, *steps, root, strict=True)
    return Hierarchy(column, maps, levels, **facts)


def by_label(labels: pa.Array) -> Step:
    """The level at which each value has this label: nodes in the order in which they first occur."""
    encoded = labels.dictionary_encode(null_encoding="encode")
    return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int32), Level(encoded.dictionary)
