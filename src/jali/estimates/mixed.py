"""Probabilities of cells whose first columns are boxes, and whose others are exact values."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from jali.encoding.frequencies import combine
from jali.estimates.boxes import BoxEstimate, encoded
from jali.estimates.expand import BoxColumn
from jali.estimates.holding import Density, hits_of, summed_at
from jali.estimates.patterns import Floats, Ints


def mixed_probability(both: BoxEstimate, shown: int, table: pa.Table) -> Floats:
    """The probability of each cell; the first `shown` columns of the boxes hold sets of values, the others one each.

    What holds a cell's boxes is looked for once for all of the values beside them: (cells,).
    """
    first, second = both.columns[:shown], both.columns[shown:]
    asked, dense = zip(*(_asked(column, table) for column in first), strict=True)
    wanted = [_exact(column, *_asked(column, table)) for column in second]
    box, box_first = combine([(c.codes, c.cover.nodes) for c in first], len(both.mass))
    cell, cell_first = combine([(codes, int(codes.max(initial=0)) + 1) for codes in asked], table.num_rows)
    codes = [c.codes[box_first].astype(np.int64) for c in first]
    hits = hits_of([own[cell_first] for own in asked], dense, [c.cover.nodes for c in first], codes)
    known = np.logical_and.reduce([nodes >= 0 for nodes in wanted])
    together = [
        (np.concatenate([c.codes.astype(np.int64), nodes[known]]), c.cover.nodes)
        for c, nodes in zip(second, wanted, strict=True)
    ]
    number, value_first = combine(together, len(both.mass) + int(known.sum()))
    value, values = number.astype(np.int64), len(value_first)
    key = box.astype(np.int64) * values + value[: len(both.mass)]
    order = np.argsort(key)
    result = np.zeros(table.num_rows)
    result[known] = summed_at(
        hits, cell[known].astype(np.int64), value[len(both.mass) :], (key[order], both.mass[order]), values
    )
    return result / both.total


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
