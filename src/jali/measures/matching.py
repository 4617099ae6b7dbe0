"""How likely a reconstruction is the original: the KL cost and the matching probability of Nergiz et al."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jali.core.arrays import Floats, Ints, added, combine
from jali.cover.cover import Cover
from jali.encoding.large import pieces_of
from jali.encoding.table import Column, Table
from jali.estimates.cells import summed
from jali.measures.holder import other_table
from jali.releases.generalized import Generalized


@dataclass(frozen=True)
class Matching:
    """What one value drawn for every cell has to do with the original (Nergiz et al., Section IV-B)."""

    kl_cost: float  # Σ over groups of size × cross-entropy, nats
    log_match: float  # the natural logarithm of the probability to get the original's rows


def matching(release: Generalized, original: Table, covers: Mapping[str, Cover]) -> Matching | None:
    """KL cost − Σ c ln f(v) over groups, quasi-identifiers and values (Equation 1), and the matching probability.

    P = Π over groups and sensitive values of c! / Π c(cell)! · Π f, a multinomial: rows of a group with the same
    sensitive value can change places. None where it is not known which group a row is in: boxes overlap, and the
    release was loaded or its table is beyond memory.
    """
    costs, cells, alike = [], [], None
    for piece in pieces_of(original):
        group = groups_of(release, piece, covers, whole=piece is original)
        if group is None:
            return None
        part = _matched(release, piece, covers, group)
        alike = part.alike if alike is None else alike.with_(part.alike)
        costs.append(part.cost)
        cells.append(part.cells)
    assert alike is not None  # a table has a row
    cost = math.fsum(costs)
    ways = _log_factorials(alike.rows) - math.fsum(cells)
    return Matching(kl_cost=max(cost, 0.0), log_match=min(ways - cost, 0.0))


class _Alike(NamedTuple):
    """The rows of each group that have the same sensitive values."""

    keys: tuple[NDArray[np.integer], ...]  # (entries,) the group, and the code of each sensitive column
    widths: tuple[int, ...]
    rows: Floats  # (entries,)

    def with_(self, other: _Alike) -> _Alike:
        """Both together."""
        keys = tuple(np.concatenate(both) for both in zip(self.keys, other.keys, strict=True))
        return self._replace(keys=keys, rows=np.concatenate([self.rows, other.rows])).added()

    def added(self) -> _Alike:
        """Each once, with all its rows."""
        number, first = combine(list(zip(self.keys, self.widths, strict=True)), len(self.rows))
        return self._replace(keys=tuple(key[first] for key in self.keys), rows=added(number, self.rows))


class _Matched(NamedTuple):
    """What some cells of the table add to it."""

    cost: float
    cells: float  # Σ ln c! over cells
    alike: _Alike


def _matched(release: Generalized, piece: Table, covers: Mapping[str, Cover], group: Ints) -> _Matched:
    """`group` is that of each record of the piece."""
    combination = piece.frequencies.row_combination.astype(np.int64)
    rows = np.ones(piece.records) if piece.multiplicity is None else piece.multiplicity.astype(np.float64)
    together, first = combine(
        [(group, int(group.max()) + 1), (combination, piece.frequencies.combinations)], piece.records
    )
    count = np.bincount(together, weights=rows)
    log_share = np.zeros(len(first))
    place = release.grouping[1]  # a distinct row of each group
    for column in release.of_role("quasi"):
        node = column.held[place].astype(np.int64)[group[first]]
        log_share += _log_shares(covers[column.name], piece[column.name], first, node)
    cost = -math.fsum((count * log_share).tolist())  # whatever the order in which groups were published
    values = tuple(column.codes for column in piece.sensitive)
    widths = tuple(len(column.values) for column in piece.sensitive)
    cells, _ = combine([(together, len(first)), *zip(values, widths, strict=True)], piece.records)
    alike = _Alike((group, *values), (len(place), *widths), rows).added()
    return _Matched(cost, _log_factorials(np.bincount(cells, weights=rows)), alike)


def groups_of(
    release: Generalized, original: Table, covers: Mapping[str, Cover], *, whole: bool = True
) -> Ints | None:  # fmt: skip
    """The published group of each record: the only box that covers it, else what a fresh release remembers.

    A record that no box covers is suppressed. Of a piece, which is not the `whole` original, nothing is remembered.
    """
    frequencies = original.frequencies
    quasi = [release[column.name] for column in original.quasi]
    place = release.grouping[1]
    hidden = release.hidden[place]
    seen = np.flatnonzero(~hidden)
    asked = [frequencies.codes[:, i].astype(np.int64) for i in range(len(quasi))]
    dense = []
    for column in quasi:
        value, node, _ = covers[column.name].density(original[column.name].values, column.name)
        dense.append((value, node, np.ones(len(value))))
    nodes = [len(column.labels) for column in quasi]
    codes = [column.held[place[seen]].astype(np.int64) for column in quasi]
    one = float(len(place) + 1)  # more than any number of a group: a sum tells how many boxes, and if one, which
    mass = one + seen.astype(np.float64)
    held = summed(asked, dense, nodes, codes, mass) if len(seen) else np.zeros(frequencies.combinations)
    if held.max() >= 2 * one:
        return release.group_of_records(original) if whole else None
    found = np.where(held > 0, np.rint(held - one), -1).astype(np.int64)
    if (found < 0).any():
        if not hidden.any():
            raise other_table()
        found[found < 0] = int(np.flatnonzero(hidden)[0])
    return found[frequencies.row_combination]


def _log_shares(cover: Cover, column: Column, records: Ints, nodes: Ints) -> Floats:
    """ln f(v) of what these records have in the column, in these nodes."""
    value, node, share = cover.density(column.values, column.name)
    key = value * cover.nodes + node
    order = np.argsort(key)
    key, share = key[order], share[order]
    wanted = column.codes[records].astype(np.int64) * cover.nodes + nodes
    at = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
    if (key[at] != wanted).any():
        raise other_table()
    return np.log(share[at])


def _log_factorials(counts: NDArray[Any]) -> float:
    """Σ ln c!."""
    whole = np.rint(counts).astype(np.int64)
    upto = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, int(whole.max(initial=0)) + 1)))])
    return float(np.bincount(whole, minlength=len(upto)) @ upto)
