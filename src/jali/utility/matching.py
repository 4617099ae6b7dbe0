"""KL cost and matching probability: how likely a reconstruction of a release is to be the original."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jali.encoding.frequencies import combine
from jali.encoding.table import Column, Table
from jali.errors import InputError
from jali.estimates.cover import Cover
from jali.estimates.joint import summed
from jali.principles.counts import Ints
from jali.releases.generalized import Generalized

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Matching:
    """What one value drawn for every cell has to do with the original (Nergiz et al., Section IV-B)."""

    kl_cost: float  # Σ over groups of size × cross-entropy, nats
    log_match: float  # the natural logarithm of the probability to get the original's rows


def matching(release: Generalized, original: Table, covers: Mapping[str, Cover]) -> Matching | None:
    """KL cost − Σ c ln f(v) over groups, quasi-identifiers and values (Equation 1), and the matching probability.

    P = Π over groups and sensitive values of c! / Π c(cell)! · Π f, a multinomial: rows of a group with the same
    sensitive value can change places. None where it is not known which group a row is in: boxes overlap, and the
    release was loaded.
    """
    group = groups_of(release, original, covers)
    if group is None:
        return None
    combination = original.frequencies.row_combination.astype(np.int64)
    rows = np.ones(original.records) if original.multiplicity is None else original.multiplicity.astype(np.float64)
    together, first = combine(
        [(group, int(group.max()) + 1), (combination, original.frequencies.combinations)], original.records
    )
    count = np.bincount(together, weights=rows)
    log_share = np.zeros(len(first))
    place = release._group[1]  # a row of each group
    for column in release.of_role("quasi"):
        node = column.codes[place].astype(np.int64)[group[first]]
        log_share += _log_shares(covers[column.name], original[column.name], first, node)
    cost = -math.fsum((count * log_share).tolist())  # whatever the order in which groups were published
    value, _ = combine([(c.codes, len(c.values)) for c in original.sensitive], original.records)
    alike, _ = combine([(group, int(group.max()) + 1), (value, int(value.max()) + 1)], original.records)
    cells, _ = combine([(together, len(first)), (value, int(value.max()) + 1)], original.records)
    ways = _log_factorials(np.bincount(alike, weights=rows)) - _log_factorials(np.bincount(cells, weights=rows))
    return Matching(kl_cost=max(cost, 0.0), log_match=min(ways - cost, 0.0))


def groups_of(release: Generalized, original: Table, covers: Mapping[str, Cover]) -> Ints | None:
    """The published group of each record: the only box that covers it, else what a fresh release remembers.

    A record that no box covers is suppressed.
    """
    frequencies = original.frequencies
    quasi = [release[column.name] for column in original.quasi]
    place = release._group[1]
    hidden = release.hidden_rows[place]
    seen = np.flatnonzero(~hidden)
    asked = [frequencies.codes[:, i].astype(np.int64) for i in range(len(quasi))]
    dense = []
    for column in quasi:
        value, node, _ = covers[column.name].density(original[column.name].values, column.name)
        dense.append((value, node, np.ones(len(value))))
    nodes = [len(column.labels) for column in quasi]
    codes = [column.codes[place[seen]].astype(np.int64) for column in quasi]
    one = float(len(place) + 1)  # more than any number of a group: a sum tells how many boxes, and if one, which
    mass = one + seen.astype(np.float64)
    held = summed(asked, dense, nodes, codes, mass) if len(seen) else np.zeros(frequencies.combinations)
    if held.max() >= 2 * one:
        known = release._places is not None and len(release._places) == original.records
        return release.group_of_rows[release._places].astype(np.int64) if known else None
    found = np.where(held > 0, np.rint(held - one), -1).astype(np.int64)
    if (found < 0).any():
        if not hidden.any():
            do = "measure against the table that it was made from"
            raise InputError("the release does not cover every row of this table", do=do)
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
        do = "measure against the table that it was made from"
        raise InputError("the release does not cover every row of this table", do=do)
    return np.log(share[at])


def _log_factorials(counts: NDArray[Any]) -> float:
    """Σ ln c!."""
    whole = np.rint(counts).astype(np.int64)
    upto = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, int(whole.max(initial=0)) + 1)))])
    return float(np.bincount(whole, minlength=len(upto)) @ upto)
