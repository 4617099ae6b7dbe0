"""Links: which published groups a person with known quasi-identifiers can be in."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from jali.core.arrays import Bools, Floats, Ints, added_by_key, combine, counted, owners, runs_of, steps
from jali.core.programs import Sums
from jali.encoding import values as v
from jali.encoding.builders import Suppress
from jali.encoding.hierarchy import Builder
from jali.encoding.table import Column, Table
from jali.errors import InputError, nearest
from jali.graphical.estimate import MarginalColumn, MaxEntropyEstimate
from jali.graphical.marginal import ABSENT, MarginalCounts, upward
from jali.measures.holder import builders
from jali.principles.counts import Cells, Sensitive
from jali.releases.base import Release
from jali.releases.column import Published, holder_cover, holder_sets, node_numbers
from jali.releases.marginals import Marginals
from jali.releases.summary import an

UNKNOWNS = 20_000
"""Up to how many unknown counts, combinations times values, certainty is looked for by programs."""
AT_ONCE = 1 << 27
"""How many pairs of combinations and groups are looked at together."""


@dataclass(frozen=True, eq=False)
class Links:
    """The groups that cover each combination of a table's quasi-identifiers: group[start[c] : start[c + 1]]."""

    start: Ints  # (combinations + 1,)
    group: Ints  # (links,)
    rows: Ints  # (links,) published rows of the group that show cells which cover the combination

    @property
    def groups(self) -> Ints:
        """How many groups each combination can be in: (combinations,)."""
        return np.diff(self.start)

    @property
    def owner(self) -> Ints:
        """The combination of each link: (links,)."""
        return owners(self.groups)

    @property
    def matched(self) -> Ints:
        """How many published rows match each combination: (combinations,)."""
        return counted(self.owner, self.rows, len(self.start) - 1)

    @property
    def only(self) -> Ints:
        """The one group that a combination can be in, -1 for none or several: (combinations,)."""
        group = np.full(len(self.start) - 1, -1, dtype=np.int64)
        alone = self.groups == 1
        group[alone] = self.group[self.start[:-1][alone]]
        return group

    def chances(self, cells: Cells) -> Chances:
        """How likely each combination has each value, by combination and value.

        Pr(s) = Σ_group rows(group) / rows · n(group, s) / n(group): each row that matches may be the person's, and
        within a group each value may be the row's.
        """
        n, place = runs_of(cells.start, self.group)
        share = np.repeat(self.rows / cells.size[self.group], n) * cells.n[place]
        width = len(cells.column)
        keys, share = added_by_key(np.repeat(self.owner, n) * width + cells.value[place], share)
        owner = keys // width
        return Chances(len(self.start) - 1, owner, keys % width, share / self.matched[owner])


class Chances(NamedTuple):
    """How likely each combination of quasi-identifiers has each value; sorted by both, only what is possible."""

    combinations: int
    combination: Ints  # (entries,)
    value: Ints  # (entries,)
    share: Floats  # (entries,)

    @classmethod
    def of(cls, share: Floats) -> Chances:
        """From the chance of every value: (combinations, values)."""
        combination, value = np.nonzero(share)
        return cls(len(share), combination.astype(np.int64), value.astype(np.int64), share[combination, value])

    def dense(self, values: int) -> Floats:
        """The chance of every value: (combinations, values)."""
        share = np.zeros((self.combinations, values))
        share[self.combination, self.value] = self.share
        return share

    def most_likely(self) -> tuple[Ints, Floats]:
        """The most likely value of each combination and its chance, -1 and 0 for one that has none: (combinations,)."""
        order = np.lexsort((self.value, -self.share, self.combination))
        first = order[np.flatnonzero(np.diff(self.combination[order], prepend=-1))]
        value, chance = np.full(self.combinations, -1, dtype=np.int64), np.zeros(self.combinations)
        value[self.combination[first]], chance[self.combination[first]] = self.value[first], self.share[first]
        return value, chance


def links(release: Release, table: Table, holder: Table | None = None, *, told: bool = False) -> Links:
    """The published groups whose cells cover each combination of the original, or of another table.

    The holder knows what every cell covers. For another table `holder` is the original: what it does not tell of a
    value follows from the published cells alone, and a cell of which nothing is known may cover anything. With `told`
    everything follows from the published cells.
    """
    quasi, group = quasi_of(release), np.asarray(release.group_of_rows, dtype=np.int64)
    return links_to(quasi, group, hidden_groups(release), table, holder, told=told)


def hidden_groups(release: Release) -> Bools:
    """Which published rows are suppressed with their whole group, so that nobody who has a group is among them.

    Where single tuples were suppressed, everybody can be among them, and those rows are a group like any other.
    """
    single = release.manifest.method.get("by") == "tuples"
    return np.zeros(release.rows, dtype=bool) if single else release.hidden_rows


def links_to(
    quasi: tuple[Published, ...], group: Ints, hidden_rows: Bools, table: Table, holder: Table | None,
    *, told: bool = False,
) -> Links:  # fmt: skip
    """The same for rows that show these cells, each in a group; those of hidden rows have no group of their own."""
    shown, first = combine([(c.codes, len(c.labels)) for c in quasi], len(group))
    hidden = hidden_rows[first]
    width = int(group.max()) + 1
    pairs, rows = np.unique(shown.astype(np.int64) * width + group, return_counts=True)  # shown, and in which groups
    at = np.searchsorted(pairs // width, np.arange(len(first) + 1)).astype(np.int64)
    masks = []
    for column in quasi:
        theirs = None if holder is None else holder[column.name]
        covers = _told(column, table[column.name]) if told else _covers(column, table[column.name], theirs)
        masks.append(np.packbits(covers[:, column.codes[first]], axis=1))  # (values, shown / 8)
    codes = table.frequencies.codes[:, [_index(table, column.name) for column in quasi]]
    many, found, covering = [np.zeros(1, dtype=np.int64)], [], []
    for some in steps(len(codes), len(first), AT_ONCE):
        here = codes[some]
        owner, which = _covered(masks, here)
        own = np.bincount(owner[~hidden[which]], minlength=len(here)) > 0
        kept = ~(hidden[which] & own[owner])
        owner, which = owner[kept], which[kept]
        n, place = runs_of(at, which)
        both, people = added_by_key(np.repeat(owner, n) * width + pairs[place] % width, rows[place])
        many.append(counted(both // width, length=len(here)))
        found.append(both % width)
        covering.append(people.astype(np.int64))
    return Links(np.cumsum(np.concatenate(many)), np.concatenate(found), np.concatenate(covering))


def _covered(masks: list[NDArray[np.uint8]], codes: NDArray[np.integer]) -> tuple[Ints, Ints]:
    """What covers each of these combinations in every column, as pairs; of the bits only those that are set unpack."""
    covered = masks[0][codes[:, 0]]
    for column, mask in enumerate(masks[1:], 1):
        covered &= mask[codes[:, column]]
    row, byte = np.nonzero(covered)
    pair, bit = np.nonzero(np.unpackbits(covered[row, byte][:, None], axis=1))
    return row[pair], byte[pair] * 8 + bit


def quasi_of(release: Release) -> tuple[Published, ...]:
    """The published quasi-identifiers; an error for a kind of release that has none row by row."""
    if release.group_of_rows is None:
        raise InputError(f"rows cannot be looked up in {an(release.kind)} release")
    return release.of_role("quasi")


def _covers(published: Published, column: Column, holder: Column | None) -> Bools:
    """Which values of a column each published node covers: (values, nodes)."""
    if holder is None:
        return _held(published, column)
    covers = _told(published, column)
    place = {label: code for code, label in enumerate(holder.labels.to_pylist())}
    codes = np.array([place.get(label, -1) for label in column.labels.to_pylist()], dtype=np.int64)
    covers[codes >= 0] = _held(published, holder)[codes[codes >= 0]]
    return covers


def _held(published: Published, column: Column) -> Bools:
    """For the holder of the original, who knows every value and its hierarchy."""
    covers = np.zeros((len(column.values), len(published.labels)), dtype=bool)
    if published.generalized_by_group:
        start, member = holder_sets(published, column)
        covers[member, owners(np.diff(start))] = True
    else:
        node = node_numbers(published, column)
        covers[np.flatnonzero(node >= 0), node[node >= 0]] = True
    if published.cover_root is not None:
        covers[:, published.cover_root] = True
    return covers


def _told(published: Published, column: Column) -> Bools:
    """For everybody: what the published cells say of themselves."""
    cover = published.cover
    covers = np.zeros((len(column.values), len(published.labels)), dtype=bool)
    if bool(cover.known.any()):
        value, node, _ = cover.density(column.values, published.name, np.zeros(0, dtype=np.int64))
        covers[value, node] = True
    covers[:, np.setdiff1d(cover.anything, cover.open)] = True
    if cover.open:  # other values are those that no cell names
        known = column.values.is_valid().to_numpy(zero_copy_only=False)
        other = known if cover.values is None else known & (v.places(cover.values, column.values) < 0)
        covers[np.ix_(other, cover.open)] = True
    if published.cover_root is not None:
        covers[:, published.cover_root] = True
    return covers


def _index(table: Table, name: str) -> int:
    names = [column.name for column in table.quasi]
    if name not in names:
        raise InputError(f'the table has no quasi-identifier "{name}"', do=nearest(name, names))
    return names.index(name)


def public_table(release: Release, public: Table | Any, *, judged: bool = False, **reading: Any) -> Table:
    """A public table as it can be looked up in a release: a Table, or a file or frame with its quasi-identifiers.

    With `judged` it has the hierarchies that the manifest tells of, which the probability of presence follows; without
    them it may have values that no hierarchy knows. `reading` says how a file is read: its separator and encoding.
    """
    if isinstance(public, Table):
        return public
    from jali.sources.tables import read, table

    shown = release.of_role("quasi")
    quasi: dict[str, Builder] = {c.name: Suppress() for c in shown}
    if release.needs_hierarchies or (judged and release.grouped_rows is not None):
        quasi = builders(release)  # what their cells cover follows from hierarchies
    types = {c.name: c.kind for c in shown}
    if isinstance(public, (str, Path)):
        return read(public, quasi=quasi, types=types, **reading)
    return table(public, quasi=quasi, types=types)


# -- marginals: where the combinations of a table lie in each of them ------------------------------------------------


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
    codes = table.frequencies.codes
    known, both, values = np.ones(len(codes), dtype=bool), [], {}
    for i, level in enumerate(source.marginal.levels):
        chain = release.chains[i]
        if level == ABSENT:
            continue
        if chain.role == "sensitive":
            values[chain.name] = source.column(i).astype(np.int64)
            continue
        own = codes[:, _index(table, chain.name)]
        node = node_numbers(chain.published, table[chain.name])[own]
        known &= node >= 0
        cell = upward(chain.attribute, 0, level)[np.maximum(node, 0)]
        both.append((np.concatenate([cell, source.column(i)]), len(chain.labels[level])))
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
    return Chances.of(np.divide(added, total, out=np.zeros_like(added), where=total > 0))


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
    return Chances.of(np.where(possible, np.where(possible.sum(axis=1, keepdims=True) == 1, 1.0, best), 0.0))


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
    sure, in_time = worlds.certain(at, asked, deadline=time.monotonic() + seconds)
    return np.asarray(sure.reshape(-1, width).any(axis=1)), in_time
