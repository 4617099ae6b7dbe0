"""Marginals beside a table: where its combinations of quasi-identifiers lie in each of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from jali.encoding.frequencies import combine
from jali.encoding.table import Table
from jali.errors import InputError, nearest
from jali.graphical.estimate import MarginalColumn, MaxEntropyEstimate
from jali.graphical.marginal import ABSENT, MarginalCounts, upward
from jali.principles.counts import Ints
from jali.releases.marginals import Marginals
from jali.releases.original import holder_cover, node_numbers


class Placed(NamedTuple):
    """One marginal: its cells by their quasi-identifiers, and the cell that each combination of a table lies in."""

    own: Ints  # (combinations,) the number of the cell's quasi-identifiers; -1 where none is known
    cell: Ints  # (cells,) the same number of each published cell
    people: Ints  # (cells,)
    values: Mapping[str, Ints]  # (cells,) the node of each sensitive column that it shows, by name


def placed(release: Marginals, table: Table) -> tuple[Placed, ...]:
    """Every marginal, beside a table with the same quasi-identifiers."""
    return tuple(_placed(release, source, table) for source in release.cache.sources)


def _placed(release: Marginals, source: MarginalCounts, table: Table) -> Placed:
    codes, names = table.frequencies.codes, [column.name for column in table.quasi]
    known, both, values = np.ones(len(codes), dtype=bool), [], {}
    for i, level in enumerate(source.marginal.levels):
        chain = release.chains[i]
        if level == ABSENT:
            continue
        if chain.role == "sensitive":
            values[chain.name] = source.column(i).astype(np.int64)
            continue
        if chain.name not in names:
            raise InputError(f'the table has no quasi-identifier "{chain.name}"', do=nearest(chain.name, names))
        node = node_numbers(chain.published, table[chain.name])[codes[:, names.index(chain.name)]]
        known &= node >= 0
        own = upward(chain.attribute, 0, level)[np.maximum(node, 0)]
        both.append((np.concatenate([own, source.column(i)]), len(chain.labels[level])))
    number, _ = combine(both, len(codes) + len(source.n))
    numbers = number.astype(np.int64)
    return Placed(np.where(known, numbers[: len(codes)], -1), numbers[len(codes) :], source.n, values)


def table_estimate(release: Marginals, table: Table) -> MaxEntropyEstimate:
    """The estimate of marginals, over the quasi-identifiers of a table that need not have the sensitive columns."""
    own = {column.name for column in table.quasi}
    columns = tuple(
        MarginalColumn(c.name, c.kind, c.role, holder_cover(c.published, table[c.name], table.domain))
        if c.role == "quasi" and c.name in own
        else c.column
        for c in release.chains
    )
    return MaxEntropyEstimate(columns, release.cache, release.collection, release.estimate_parts())
