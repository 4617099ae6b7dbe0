"""Marginals compared with a table: where its combinations of quasi-identifiers lie in each of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from jali.core.arrays import Bools, Ints, combine
from jali.core.programs import Sums
from jali.encoding.table import Table
from jali.errors import InputError, nearest
from jali.graphical.estimate import MarginalColumn, MaxEntropyEstimate
from jali.graphical.marginal import ABSENT, MarginalCounts, upward
from jali.principles.counts import Cells, Sensitive
from jali.releases.column import holder_cover, node_numbers
from jali.releases.marginals import Marginals
from jali.risk.attacks.decoding import certain
from jali.risk.attacks.links import Chances


class Placed(NamedTuple):
    """One marginal: its cells by their quasi-identifiers, and the cell that each combination of a table lies in."""

    own: Ints  # (combinations,) the number of the cell's quasi-identifiers; -1 where none is known
    cell: Ints  # (cells,) the same number of each published cell
    people: Ints  # (cells,)
    values: Mapping[str, Ints]  # (cells,) the node of each sensitive column that it shows, by name


def placed(release: Marginals, table: Table) -> tuple[Placed, ...]:
    """Every marginal, with the cells that the combinations of a table lie in."""
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


UNKNOWNS = 20_000
"""Up to how many unknown counts, combinations times values, certainty is looked for by programs."""


def collected_column(release: Marginals, name: str | None) -> Sensitive:
    """The sensitive column that is attacked; InputError where no marginal shows it."""
    chains = [chain for chain in release.chains if chain.role == "sensitive"]
    names = [chain.name for chain in chains]
    if name is None and len(chains) != 1:
        do = f'write sensitive="{names[0]}"' if names else 'name one: sensitive=["…"] in read or table'
        raise InputError("attacks must say which sensitive column they are about", got=", ".join(names), do=do)
    if name is not None and name not in names:
        raise InputError(f'attacks: no sensitive column "{name}"', do=nearest(str(name), names))
    chain = chains[0] if name is None else chains[names.index(name)]
    if not chain.labels:
        raise InputError(f'no marginal shows "{chain.name}", so that nothing can be learnt of it')
    return chain.judged[0]


def collected_chances(release: Marginals, table: Table, name: str) -> Chances:
    """The belief in each value for each combination, by maximum entropy given the marginals."""
    chain = next(chain for chain in release.chains if chain.name == name)
    shown = [c for c in table.quasi if any(c.name == own.name and own.labels for own in release.chains)]
    codes = table.frequencies.codes
    names = [column.name for column in table.quasi]
    nodes = len(chain.labels[0])
    cells = {
        column.name: pa.DictionaryArray.from_arrays(
            pa.array(np.repeat(codes[:, names.index(column.name)], nodes).astype(np.int32)), column.values
        )
        for column in shown
    }
    values = chain.cover.values
    assert values is not None
    cells[name] = pa.DictionaryArray.from_arrays(
        pa.array(np.tile(np.arange(nodes, dtype=np.int32), len(codes))), values
    )
    mass = table_estimate(release, table).probability(pa.table(cells)).reshape(len(codes), nodes)
    judged, number = chain.judged
    added = np.zeros((len(codes), len(judged)))
    np.add.at(added.T, number, mass.T)
    total = added.sum(axis=1, keepdims=True)
    share = np.divide(added, total, out=np.zeros_like(added), where=total > 0)
    combination, value = np.nonzero(share)
    return Chances(len(codes), combination.astype(np.int64), value.astype(np.int64), share[combination, value])


def collected_place(release: Marginals, table: Table) -> Callable[[int], str]:
    """What the marginals show of each combination at their finest, in words."""
    codes, names = table.frequencies.codes, [column.name for column in table.quasi]
    shown = [chain for chain in release.chains if chain.role == "quasi" and chain.labels and chain.name in names]
    nodes = [node_numbers(c.published, table[c.name])[codes[:, names.index(c.name)]] for c in shown]

    def place(combination: int) -> str:
        cells = [
            f"{chain.name} {chain.labels[0][own[combination]] or 'missing'}"
            for chain, own in zip(shown, nodes, strict=True)
            if own[combination] >= 0
        ]
        return f"the cell {', '.join(cells)}"

    return place


def strongest(release: Marginals, table: Table, column: Sensitive) -> Chances:
    """The belief in each value by the one marginal that tells most of it: its share in the person's cell."""
    judged, number = next(chain for chain in release.chains if chain.name == column.name).judged
    best = np.zeros((table.frequencies.combinations, len(judged)))
    possible = np.ones_like(best, dtype=bool)
    for one in placed(release, table):
        if column.name not in one.values:
            continue
        counts = np.zeros((int(max(one.own.max(), one.cell.max())) + 2, len(judged)))  # the last is nobody's
        np.add.at(counts, (one.cell, number[one.values[column.name]]), one.people)
        row = counts[one.own]
        best = np.maximum(best, row / np.maximum(row.sum(axis=1, keepdims=True), 1))
        possible &= row > 0
    share = np.where(possible, np.where(possible.sum(axis=1, keepdims=True) == 1, 1.0, best), 0.0)
    combination, value = np.nonzero(share)
    return Chances(len(share), combination.astype(np.int64), value.astype(np.int64), share[combination, value])


def surely_valued(release: Marginals, table: Table, truth: Cells, *, seconds: float) -> tuple[Bools, bool] | None:
    """Combinations of which everybody has one value in every table that fits the marginals and has these people.

    For an attacker who knows everybody's quasi-identifiers. The flag says that time was enough; None where there
    are too many unknowns.
    """
    width, people = len(truth.column), truth.size
    if truth.groups * width > UNKNOWNS:
        return None
    number = next(chain for chain in release.chains if chain.name == truth.column.name).judged[1]
    unknown = np.arange(truth.groups * width)
    row, entry, sums = [unknown // width], [unknown], [people.astype(np.float64)]
    for one in placed(release, table):
        told = truth.column.name in one.values
        theirs = one.cell * width + (number[one.values[truth.column.name]] if told else 0)
        mine = one.own[unknown // width] * width + (unknown % width if told else 0)
        keys, at = np.unique(np.concatenate([theirs, mine]), return_inverse=True)
        counted = np.bincount(at.reshape(-1)[: len(theirs)], weights=one.people, minlength=len(keys))
        row.append(sum(len(one) for one in sums) + at.reshape(-1)[len(theirs) :])
        entry.append(unknown)
        sums.append(counted.astype(np.float64))
    known = np.concatenate(sums)
    most = np.repeat(people, width).astype(np.float64)
    worlds = Sums(len(unknown), np.concatenate(row), np.concatenate(entry), known, known, most=most)
    at = np.zeros(len(unknown), dtype=np.int64)
    at[truth.group * width + truth.value] = truth.n
    asked = (at > 0) & (at == np.repeat(people, width))
    sure, in_time = certain(worlds, at, asked, deadline=time.monotonic() + seconds)
    return np.asarray(sure.reshape(-1, width).any(axis=1)), in_time
