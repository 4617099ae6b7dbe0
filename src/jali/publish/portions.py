"""Rows of a table beyond memory as they are published: in portions that its engine counts, when they are written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from jali.core.arrays import Bools, Ints, found_among
from jali.core.rows import Order
from jali.core.spill import Portion
from jali.encoding.large import Counted, LargeTable
from jali.encoding.table import Column, Table
from jali.releases.column import Published, publish_exact
from jali.releases.unheld import Unheld


def as_values(column: Column) -> Published:
    """A column that is published as it is, held as its values with the rows of each."""
    assert column.value_rows is not None
    used = np.flatnonzero(column.value_rows)
    return replace(publish_exact(replace(column, codes=used)), order=Order(column.value_rows[used]))


def ranks(column: Column) -> NDArray[np.int32]:
    """The label of each code of such a column."""
    return np.cumsum(column.present, dtype=np.int32) - np.int32(1)


def of_node(
    large: LargeTable, levels: Mapping[str, int], held: Table, made: Sequence[Published], hidden: Bools | None
) -> Unheld:
    """The rows of a table at a lattice node with all their columns.

    `made` are the columns that are held, as published of the records of a table, of which some are `hidden`.
    """
    nodes = large.nodes_at(levels)
    others = tuple(map(as_values, large.others))
    shown = {column.name: ranks(column) for column in large.others}
    visible = np.ones(held.records, dtype=bool) if hidden is None else ~hidden
    for column, own in zip(held.columns, made, strict=True):
        at, some = nodes[column.name][column.codes], visible if column.role == "quasi" else slice(None)
        shown[column.name] = np.zeros(int(nodes[column.name].max()) + 1, dtype=np.int32)
        shown[column.name][at[some]] = own.held[some]
    quasi = {column.name: own.cover_root for column, own in zip(held.columns, made, strict=True) if own.role == "quasi"}
    stars = [nodes[name][held[name].codes[~visible]] for name in quasi]
    names = tuple(column.name for column in large.columns)

    def portion(found: Counted) -> Portion:
        codes = {name: shown[name][found.nodes[name]] for name in names}
        if len(stars[0]):
            suppressed = _among(stars, [found.nodes[name] for name in quasi])
            for name, root in quasi.items():
                codes[name][suppressed] = 0 if root is None else root
        return Portion([codes[name] for name in names], found.rows)

    by = [column.name for column in large.columns if column.role != "sensitive"]
    return Unheld(others, names, lambda: map(portion, large.portions(nodes, by)), large.room)


def _among(known: Sequence[Ints], asked: Sequence[Ints]) -> Bools:
    """Which of these rows of nodes are among those that are known."""
    distinct = np.unique(np.stack(known), axis=1)
    widths = [1 + max(int(a.max(initial=0)), int(b.max(initial=0))) for a, b in zip(distinct, asked, strict=True)]
    return found_among(list(distinct), list(asked), widths, distinct.shape[1] + len(asked[0])) >= 0
