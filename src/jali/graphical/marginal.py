"""Generalized marginals: each attribute absent or at one level of its hierarchy, counted over distinct combinations.

Every hierarchy is a chain of induced attributes (Kifer & Gehrke 2006, Section 6.1): an attribute at a level is a prefix
of its chain, and its root is the same as its absence. Marginals are compared, joined and intersected attribute by
attribute; `mask` shows one as a set of induced attributes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from jali.core.arrays import Ints, combine, counted
from jali.encoding.table import Column, Table
from jali.errors import InputError, nearest

ABSENT = -1
"""The level of an attribute that a marginal does not have: the same as its root."""

Levels = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Attribute:
    """A column as a chain: `maps[level][code]` is the node of a value; the root is left out, it is ABSENT."""

    name: str
    role: Literal["quasi", "sensitive"]
    maps: tuple[NDArray[np.int32], ...]  # each (values,), level 0 the identity
    nodes: tuple[int, ...]  # (levels,) how many nodes a level has
    sizes: tuple[Ints, ...]  # each (nodes,): values of the domain under each node; child(t, L) in the paper
    leaves: int  # values of the whole domain
    height: int = 1  # the level of the root, as people number them; levels of one node are the root too

    @property
    def depth(self) -> int:
        """How many levels there are below the root: the length of the chain of induced attributes."""
        return len(self.maps)

    def resolution(self, level: int) -> int:
        """How many induced attributes of the chain the level shows: none where it is absent."""
        return 0 if level == ABSENT else self.depth - level

    def level(self, resolution: int) -> int:
        """The level that shows this number of induced attributes."""
        return self.depth - resolution if resolution else ABSENT

    def node_sizes(self, level: int) -> Ints:
        """How many values of the domain each node covers; one node, the root, where it is absent."""
        return np.array([self.leaves], dtype=np.int64) if level == ABSENT else self.sizes[level]


@dataclass(frozen=True)
class Marginal:
    """A generalized marginal: the level of each attribute of the domain, or ABSENT."""

    levels: Levels

    @property
    def attributes(self) -> tuple[int, ...]:
        """The attributes that it has."""
        return tuple(i for i, level in enumerate(self.levels) if level != ABSENT)

    def only(self, attributes: Collection[int]) -> Marginal:
        """The same without all other attributes."""
        return Marginal(tuple(level if i in attributes else ABSENT for i, level in enumerate(self.levels)))

    def within(self, other: Marginal) -> bool:
        """Whether it can be computed from the other one: every attribute it has stands there as finely or finer."""
        return all(a == ABSENT or a >= b != ABSENT for a, b in zip(self.levels, other.levels, strict=True))

    def __and__(self, other: Marginal) -> Marginal:
        """What two marginals share: each attribute at the coarser of its two levels."""
        pairs = zip(self.levels, other.levels, strict=True)
        return Marginal(tuple(ABSENT if ABSENT in pair else max(pair) for pair in pairs))

    def __or__(self, other: Marginal) -> Marginal:
        """What two marginals say of each attribute at most: each at the finer of its two levels."""
        pairs = zip(self.levels, other.levels, strict=True)
        return Marginal(tuple(max(pair) if ABSENT in pair else min(pair) for pair in pairs))


@dataclass(frozen=True, eq=False)
class Domain:
    """The attributes of a table: its quasi-identifiers, then its sensitive columns."""

    attributes: tuple[Attribute, ...]

    @classmethod
    def of(cls, table: Table) -> Domain:
        """The attributes of a table, with areas over its declared domains (or as its `domain` says)."""
        quasi = [_chain(table, column) for column in table.quasi]
        return cls((*quasi, *(_chain(table, column) for column in table.sensitive)))

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes' names, in order."""
        return tuple(attribute.name for attribute in self.attributes)

    @property
    def sensitive(self) -> tuple[int, ...]:
        """Which attributes are sensitive."""
        return tuple(i for i, attribute in enumerate(self.attributes) if attribute.role == "sensitive")

    @property
    def offsets(self) -> tuple[int, ...]:
        """The bit at which each attribute's chain of induced attributes begins."""
        depths = [attribute.depth for attribute in self.attributes]
        return tuple(sum(depths[:i]) for i in range(len(depths)))

    def marginal(self, levels: Mapping[str, int]) -> Marginal:
        """The marginal that has these attributes at these levels; a level that is the root counts as absent."""
        chosen = [ABSENT] * len(self.attributes)
        for name, level in levels.items():
            if name not in self.names:
                raise InputError(f'no quasi-identifier or sensitive column "{name}"', do=nearest(str(name), self.names))
            at = self.names.index(name)
            chosen[at] = _checked(self.attributes[at], level)
        if all(level == ABSENT for level in chosen):
            raise InputError("a marginal needs at least one column below its root", got=str(dict(levels)))
        return Marginal(tuple(chosen))

    def shape(self, marginal: Marginal) -> tuple[int, ...]:
        """How many nodes each attribute of a marginal has at its level."""
        return tuple(self.attributes[i].nodes[marginal.levels[i]] for i in marginal.attributes)

    def named(self, marginal: Marginal) -> dict[str, int]:
        """The attributes of a marginal and their levels."""
        return {self.names[i]: marginal.levels[i] for i in marginal.attributes}

    def mask(self, marginal: Marginal) -> int:
        """The marginal as a set of induced attributes: bit offset + r of an attribute whose resolution is above r."""
        mask = 0
        for attribute, level, offset in zip(self.attributes, marginal.levels, self.offsets, strict=True):
            mask |= ((1 << attribute.resolution(level)) - 1) << offset
        return mask

    def of_mask(self, mask: int) -> Marginal:
        """The marginal of a set of induced attributes that holds prefixes of chains only."""
        levels = []
        for attribute, offset in zip(self.attributes, self.offsets, strict=True):
            own = (mask >> offset) & ((1 << attribute.depth) - 1)
            if own & (own + 1):
                raise InputError(f'"{attribute.name}": a level without the ones above it is no marginal')
            levels.append(attribute.level(own.bit_count()))
        return Marginal(tuple(levels))


@dataclass(frozen=True, eq=False)
class MarginalCounts:
    """The cells of a marginal that are not empty, in the order of their codes, and how many people stand in each."""

    marginal: Marginal
    cells: NDArray[np.int32]  # (cells, attributes that it has) node codes at its levels
    n: Ints  # (cells,)
    cell_of_combination: NDArray[np.int32]  # (combinations of the source,) the cell that each falls into

    @property
    def total(self) -> int:
        """How many people there are."""
        return int(self.n.sum())

    def column(self, attribute: int) -> NDArray[np.int32]:
        """The node codes of one attribute of the domain, which the marginal must have: (cells,)."""
        return self.cells[:, self.marginal.attributes.index(attribute)]


@dataclass(frozen=True, eq=False)
class Cache:
    """Counts of marginals, each made once, from the first source that is fine enough: a table, or published marginals.

    `cell_of_combination` refers to the cells of that source; with a table they are its distinct combinations.
    """

    domain: Domain
    sources: tuple[MarginalCounts, ...]
    _kept: dict[Levels, MarginalCounts] = field(default_factory=dict, init=False, repr=False)
    _entropies: dict[Levels, float] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        totals = {source.total for source in self.sources}
        if len(totals) != 1:
            got = ", ".join(f"{total:,}" for total in sorted(totals)) or "none"
            raise InputError("marginals of one table must have the same number of people", got=got)

    @classmethod
    def of(cls, table: Table) -> Cache:
        """Counts of the marginals of a table, from its distinct combinations of all columns."""
        if table.person is not None:
            do = "keep one row of each person and read that without persons, or generalize the table"
            raise InputError("marginals count rows: the table names persons", do=do)
        if table.weight is not None:
            raise InputError("marginals count rows: the table names weights", do="read it without weights")
        f = table.frequencies
        codes = np.hstack([f.codes[f.combination], f.joint[f.value]]).astype(np.int32)
        every = Marginal((0,) * codes.shape[1])
        return cls(Domain.of(table), (MarginalCounts(every, codes, f.rows, np.arange(len(codes), dtype=np.int32)),))

    @property
    def total(self) -> int:
        """How many people the marginals are about."""
        return self.sources[0].total

    def counts(self, marginal: Marginal) -> MarginalCounts:
        """The marginal's cells and counts."""
        counts = self._kept.get(marginal.levels)
        if counts is None:
            source = next((one for one in self.sources if marginal.within(one.marginal)), None)
            if source is None:
                raise InputError("no published marginal has these columns together at these levels")
            every = np.arange(len(source.n), dtype=np.int32)
            same = source.marginal == marginal  # then its cells stand in their order already
            counts = replace(source, cell_of_combination=every) if same else aggregated(self.domain, source, marginal)
            self._kept[marginal.levels] = counts
        return counts

    def table(self, marginal: Marginal) -> Ints:
        """The marginal's counts with its empty cells: (nodes, nodes, …), an axis for each attribute that it has."""
        counts, found = self.counts(marginal), np.zeros(self.domain.shape(marginal), dtype=np.int64)
        found[tuple(counts.cells.T)] = counts.n
        return found

    def entropy(self, marginal: Marginal) -> float:
        """The entropy of the marginal in nats: H = log N − Σ n log n / N."""
        entropy = self._entropies.get(marginal.levels)
        if entropy is None:
            n = self.counts(marginal).n
            entropy = float(np.log(self.total) - n @ np.log(n) / self.total)
            self._entropies[marginal.levels] = entropy
        return entropy


def aggregated(domain: Domain, source: MarginalCounts, marginal: Marginal) -> MarginalCounts:
    """The counts of a marginal from those of a finer one."""
    columns = coarsened(domain, source.cells, source.marginal, marginal)
    number, first = combine(list(zip(columns, domain.shape(marginal), strict=True)), len(source.n))
    cells = np.stack([codes[first] for codes in columns], axis=1) if columns else np.zeros((1, 0), dtype=np.int32)
    return MarginalCounts(marginal, cells, counted(number, source.n, len(first)), number)


def coarsened(domain: Domain, cells: NDArray[np.integer], have: Marginal, want: Marginal) -> list[NDArray[np.int32]]:
    """Columns of node codes at the wanted levels, from cells at finer ones (a column for each attribute had)."""
    place = {i: at for at, i in enumerate(have.attributes)}
    return [upward(domain.attributes[i], have.levels[i], want.levels[i])[cells[:, place[i]]] for i in want.attributes]


def upward(attribute: Attribute, below: int, above: int) -> NDArray[np.int32]:
    """The node at the upper level of each node at the lower one."""
    step = np.zeros(attribute.nodes[below], dtype=np.int32)
    step[attribute.maps[below]] = attribute.maps[above]
    return step


def maximal(marginals: Iterable[Marginal]) -> tuple[Marginal, ...]:
    """The marginals that no other one contains, each once, in their order."""
    distinct = list(dict.fromkeys(marginals))
    return tuple(m for m in distinct if not any(m != other and m.within(other) for other in distinct))


def _chain(table: Table, column: Column) -> Attribute:
    mask = column.mask(table.domain)
    values = len(column.values)
    if column.role == "sensitive":
        maps: list[NDArray[np.int32]] = [np.arange(values, dtype=np.int32)]
        nodes, height = [values], 1
    else:
        hierarchy = table.hierarchy(column.name)
        nodes = [len(level) for at, level in enumerate(hierarchy.levels) if len(level) > 1 or at == 0]
        maps = list(hierarchy.maps[: len(nodes)])  # levels only grow coarser: those of one node come last
        height = hierarchy.height
    sizes = [counted(m[mask], length=n) for m, n in zip(maps, nodes, strict=True)]
    role: Literal["quasi", "sensitive"] = "sensitive" if column.role == "sensitive" else "quasi"
    return Attribute(column.name, role, tuple(maps), tuple(nodes), tuple(sizes), int(mask.sum()), height)


def _checked(attribute: Attribute, level: object) -> int:
    if isinstance(level, bool) or not isinstance(level, (int, np.integer)) or level < 0:
        raise InputError(f'"{attribute.name}": not a level', got=repr(level), do="give a whole number from 0")
    if attribute.role == "sensitive" and level != 0:
        raise InputError(f'"{attribute.name}" is sensitive and stays at level 0', got=str(level))
    if level > attribute.height:
        do = f"levels go from 0, the values, to {attribute.height}, everything"
        raise InputError(f'"{attribute.name}" has no such level', got=str(level), do=do)
    return ABSENT if level >= attribute.depth else int(level)
