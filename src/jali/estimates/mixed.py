"""Probabilities of cells whose first columns are boxes, and whose others are exact values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from jali.encoding.frequencies import combine
from jali.estimates.boxes import encoded
from jali.estimates.expand import BoxColumn
from jali.estimates.holding import Density, hits_of, summed_at
from jali.estimates.patterns import Floats, Ints
from jali.estimates.within import Joined


def mixed_probability(pairs: Joined, table: pa.Table) -> Floats:
    """The probability of each cell; the boxes of the pairs hold sets of values, what stands beside them one each.

    What holds a cell's boxes is looked for once for all of the values beside them: (cells,).
    """
    boxes, values = pairs.left, pairs.right
    asked, dense = zip(*(_asked(column, table) for column in boxes), strict=True)
    wanted = [_exact(column, *_asked(column, table)) for column in values]
    cell, cell_first = combine([(codes, int(codes.max(initial=0)) + 1) for codes in asked], table.num_rows)
    codes = [c.codes.astype(np.int64) for c in boxes]
    hits = hits_of([own[cell_first] for own in asked], dense, [c.cover.nodes for c in boxes], codes)
    value = _numbers(values, wanted)
    known = np.flatnonzero(value >= 0)
    result = np.zeros(table.num_rows)
    result[known] = summed_at(hits, cell[known].astype(np.int64), value[known], (pairs.key, pairs.mass), pairs.width)
    return result / float(pairs.mass.sum())


def _numbers(columns: Sequence[BoxColumn], wanted: Sequence[Ints]) -> Ints:
    """Which of some distinct values each cell asks for, by its nodes; -1 for one that nobody has: (cells,)."""
    many, known = len(columns[0].codes), np.flatnonzero(np.logical_and.reduce([nodes >= 0 for nodes in wanted]))
    together = [
        (np.concatenate([c.codes.astype(np.int64), nodes[known]]), c.cover.nodes)
        for c, nodes in zip(columns, wanted, strict=True)
    ]
    number, first = combine(together, many + len(known))
    place = np.full(len(first), -1)
    place[number[:many]] = np.arange(many)
    result = np.full(len(wanted[0]), -1)
    result[known] = place[number[many:]]
    return result


def _asked(column: BoxColumn, table: pa.Table) -> tuple[Ints, Density]:
    """The value of each cell, and the nodes that each value lies in."""
    values = encoded(table[column.name])
    codes: Ints = values.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes, column.cover.density(values.dictionary, column.name, np.unique(column.codes).astype(np.int64))


def _exact(column: BoxColumn, codes: Ints, dense: Density) -> Ints:
    """The node of each cell of a column of exact values; -1 for a value that nobody has: (cells,)."""
    node = np.full(int(codes.max(initial=-1)) + 1, -1, dtype=np.int64)
    node[dense[0]] = dense[1]
    return node[codes]
