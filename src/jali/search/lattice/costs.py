"""What a lattice node costs the analyst, from its tally; the suppressed group counts as published."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from typing import Literal

import numpy as np

from jali.core.arrays import (
    ONE,
    Bools,
    Floats,
    Ints,
    added,
    average_size,
    covered_share,
    discernibility,
    dot,
    loss,
)
from jali.core.text import html_table, notebook
from jali.encoding.hierarchy import Hierarchy
from jali.encoding.table import Table
from jali.search.lattice.tally import Levels, Tally, below

Metric = Literal["kl", "discernibility", "average", "height", "loss"]
METRICS: tuple[Metric, ...] = ("kl", "discernibility", "average", "height", "loss")


@dataclass(frozen=True)
class Costs:
    """The five measures of a node; lower is better in each."""

    kl: float
    discernibility: float
    average: float
    height: float
    loss: float


class Costing:
    """Prices the nodes of one table.

    `importance`, (columns,) in millionths of the least one's, weighs columns: KL's logarithms of cell sizes, the losses
    and the levels. Weights are at least 1, so costs still grow upwards and suppression still costs (decision 54).
    """

    def __init__(
        self, table: Table, hierarchies: Sequence[Hierarchy] | None = None, *, importance: Ints | None = None
    ) -> None:
        self.table = table
        self.weights = None if importance is None else [int(weight) / ONE for weight in importance]
        self._hierarchies = hierarchies or [table.hierarchy(column.name) for column in table.quasi]
        self.total = float(table.frequencies.weight.sum())
        self.rows = int(table.frequencies.rows.sum())
        self._masks = [column.mask(table.domain) for column in table.quasi]  # (column): the values of the domain
        self._maps = [hierarchy.maps for hierarchy in self._hierarchies]

    @property
    def entropy_term(self) -> float:
        """Σ F log F over the table's own cells."""
        return self.table.frequencies.entropy_term

    @cached_property
    def sizes(self) -> list[list[Floats]]:
        """The values under each node: (column, level)."""
        return [column.under(self.table.domain).sizes for column in self.table.quasi]

    @cached_property
    def log_areas(self) -> list[list[Floats]]:
        """The logarithm of the values under each node, weighed: (column, level); nodes without values have no group."""
        logs = [column.under(self.table.domain).logs for column in self.table.quasi]
        if self.weights is None:
            return logs
        return [[weight * own for own in levels] for weight, levels in zip(self.weights, logs, strict=True)]

    @cached_property
    def mean_log_areas(self) -> list[list[float]]:
        """The mean over the rows of the logarithm of the values under their nodes: (column, level)."""
        return [
            [float((weight / self.total) @ logs[nodes]) for logs, nodes in zip(own, maps, strict=True)]
            for weight, own, maps in zip(self._by_code(weights=True), self.log_areas, self._maps, strict=True)
        ]

    @cached_property
    def mean_shares(self) -> list[list[float]]:
        """The mean share of values covered: (column, level)."""
        return [
            [covered_share(rows, size[nodes], int(mask.sum())) for size, nodes in zip(sizes, maps, strict=True)]
            for rows, sizes, maps, mask in zip(
                self._by_code(weights=False), self.sizes, self._maps, self._masks, strict=True
            )
        ]

    @property
    def log_domain(self) -> float:
        """The logarithm of the number of points of the domain."""
        return sum(float(logs[-1][0]) for logs in self.log_areas)

    def _by_code(self, *, weights: bool) -> list[Floats]:
        """The weight, or the rows, of each value of each column."""
        frequencies, codes = self.table.frequencies, self.table.frequencies.codes
        if not weights or self.table.weight is None:
            every = [np.zeros(len(mask)) for mask in self._masks]
            for amount, rows in zip(every, frequencies.rows_by_code, strict=True):
                amount[: len(rows)] = rows
            return every
        by_combination = added(frequencies.combination, frequencies.weight, len(codes))
        return [added(codes[:, at], by_combination, len(mask)) for at, mask in enumerate(self._masks)]

    def log_area(self, tally: Tally) -> Floats:
        """The logarithm of how many quasi-identifier points each group covers: (groups,)."""
        result = np.zeros(tally.groups)
        for column, level in enumerate(tally.levels):
            if level:
                result += self.log_areas[column][level][tally.codes[column]]
        return result

    def prices(self, tally: Tally, hidden: Bools) -> Costs:
        """All costs of a node when the groups in `hidden` are suppressed."""
        return Costs(**{metric: self.price(tally, hidden, metric) for metric in METRICS})

    def price(self, tally: Tally, hidden: Bools, metric: Metric) -> float:
        """One cost of a node when the groups in `hidden` are suppressed."""
        return float(getattr(self, metric)(tally, hidden))

    def unsuppressed(self, metric: Metric, levels: Levels, amounts: Floats) -> float:
        """One cost of a node when nothing is suppressed, from its groups' rows or, for KL, its cells' weights.

        Where rows are published with the mean weight of their group, this is a lower bound of KL.
        """
        if metric == "kl":
            return self._kl_at_least(levels, amounts)
        if metric == "height":
            return self._steps(levels)
        if metric == "loss":
            shares = [shares[level] for shares, level in zip(self.mean_shares, levels, strict=True)]
            return loss(shares, self.weights)
        if metric == "discernibility":
            return discernibility(amounts)
        return average_size(self.rows, int(np.count_nonzero(amounts)))

    def _kl_at_least(self, levels: Levels, cells: Floats) -> float:
        """The least KL-divergence of a node, from the weights of its cells; never less further up the lattice.

        Whatever is inferred is constant over each box and value, and among such distributions the table's own shares of
        boxes and values, spread evenly, come closest (Gibbs).
        """
        area = sum(self.mean_log_areas[column][level] for column, level in enumerate(levels))
        return self.entropy_term + float(np.log(self.total)) - dot(cells, np.log(cells)) / self.total + area

    def _by_cell(self, tally: Tally, amount: Floats) -> Floats:
        """For each entry the sum of its cell: several people of a group may have the same value."""
        if tally.person is None:
            return amount
        cell = tally.group * (int(tally.value.max(initial=0)) + 1) + tally.value
        _, index = np.unique(cell, return_inverse=True)
        return added(index, amount)[index]

    def discernibility(self, tally: Tally, hidden: Bools) -> float:
        """The sum over rows of their group's rows; a suppressed row costs the whole table."""
        sizes = tally.rows[~hidden].astype(np.float64)
        return discernibility(sizes, int(tally.rows[hidden].sum()), self.rows)

    def average(self, tally: Tally, hidden: Bools) -> float:
        """Rows per group; the suppressed rows are one group."""
        return average_size(self.rows, int((~hidden).sum()) + bool(hidden.any()))

    def height(self, tally: Tally, hidden: Bools) -> float:
        """Steps of generalization."""
        return self._steps(tally.levels)

    def _steps(self, levels: Levels) -> float:
        return math.fsum(level * weight for level, weight in zip(levels, self.weights or repeat(1.0), strict=False))

    def kl(self, tally: Tally, hidden: Bools) -> float:
        """The KL-divergence in nats between the table and what the node lets an analyst infer.

        Each row is spread evenly over its box; suppressed rows over everything, so they add to every box.
        """
        return self.entropy_term - self.log_likelihood(tally, hidden) / self.total

    def log_likelihood(self, tally: Tally, hidden: Bools, everywhere: Floats | None = None) -> float:
        """Σ weight · log F* over the entries of a node, or of a portion of its groups.

        `everywhere` is what all suppressed rows weigh, by sensitive value, where they are not all in the tally.
        """
        mass = self._mass(tally, hidden)
        everywhere = self._everywhere(tally, hidden[tally.group], mass) if everywhere is None else everywhere
        if self.weights is not None:
            logs = self._log_density(tally, hidden, mass, everywhere)
            logs[tally.weight == 0] = 0.0
        else:
            inferred = self._density(tally, hidden, mass, everywhere)
            inferred[tally.weight == 0] = 1.0  # rows of weight 0 say nothing
            logs = np.log(inferred)
        return dot(tally.weight, logs)

    def _mass(self, tally: Tally, hidden: Bools) -> Floats:
        """What the rows of each entry's group with its value weigh, as they are published: (entries,)."""
        entry_mass = tally.entry_rows.astype(np.float64)
        if self.table.weight is not None:  # rows are published with the mean weight of their group
            mean = added(tally.group, tally.weight, tally.groups) / tally.rows
            if hidden.any():
                held = tally.rows[hidden]
                mean[hidden] = float(mean[hidden] @ held) / float(held.sum())
            entry_mass = entry_mass * mean[tally.group]
        return self._by_cell(tally, entry_mass)

    def _density(self, tally: Tally, hidden: Bools, entry_mass: Floats, everywhere: Floats) -> Floats:
        """F* at each entry: the mass that a point of the entry's group and value receives."""
        density = entry_mass * np.exp(-self.log_area(tally))[tally.group] / self.total
        if everywhere.any():
            spread = everywhere * (math.exp(-self.log_domain) / self.total)
            density = np.where(hidden[tally.group], 0.0, density) + spread[tally.value]
        return density

    def _log_density(self, tally: Tally, hidden: Bools, entry_mass: Floats, everywhere: Floats) -> Floats:
        """The logarithm of the same: areas to the power of a large importance are beyond what floats hold."""
        with np.errstate(divide="ignore"):  # no mass, or none with this value
            own = np.where(hidden[tally.group], -np.inf, np.log(entry_mass) - self.log_area(tally)[tally.group])
            spread = np.log(everywhere) - self.log_domain
        return np.logaddexp(own, spread[tally.value]) - math.log(self.total)

    def _everywhere(self, tally: Tally, covered: Bools, entry_mass: Floats) -> Floats:
        """What the suppressed rows weigh, by sensitive value."""
        group, value = tally.group[covered], tally.value[covered]
        mass = entry_mass[covered]
        if tally.person is not None:
            _, first = np.unique(group * (int(tally.value.max(initial=0)) + 1) + value, return_index=True)
            value, mass = value[first], mass[first]
        return added(value, mass, int(tally.value.max(initial=0)) + 1)

    def loss(self, tally: Tally, hidden: Bools) -> float:
        """ARX's loss."""
        return loss(self.column_losses(tally, hidden), self.weights)

    def column_losses(self, tally: Tally, hidden: Bools) -> list[float]:
        """For each quasi-identifier the mean share of its values that a row covers."""
        result = []
        for column, level in enumerate(tally.levels):
            sizes = self.sizes[column]
            covered = np.where(hidden, sizes[-1][0], sizes[level][tally.codes[column]])
            result.append(covered_share(tally.rows, covered, int(sizes[-1][0])))
        return result


@dataclass(frozen=True)
class Node:
    """A full-domain generalization: a level for each quasi-identifier, and what it costs."""

    levels: Mapping[str, int]
    groups: int
    smallest: int  # rows of its smallest group
    suppressed: int  # rows
    kl: float
    discernibility: float
    average: float
    height: float
    loss: float

    def __repr__(self) -> str:
        levels = ", ".join(f"{name} {level}" for name, level in self.levels.items())
        return f"Node({levels}: {self.groups} groups, KL {self.kl:.4f})"


class Nodes(list[Node]):
    """The minimal nodes of a lattice, which also know how high it is and which nodes keep the promises.

    Above a minimal node every node keeps them where the principles are monotone; otherwise `satisfied` lists them.
    """

    def __init__(
        self, nodes: Iterable[Node], top: Mapping[str, int], satisfied: frozenset[Levels] | None = None
    ) -> None:
        super().__init__(nodes)
        self.top, self.satisfied = dict(top), satisfied

    def keeps(self, levels: Levels) -> bool:
        """Whether the node at these levels, in the order of `top`, keeps the promises."""
        if self.satisfied is not None:
            return levels in self.satisfied
        return any(below(tuple(node.levels[name] for name in self.top), levels) for node in self)

    def _repr_html_(self) -> str:
        figures = ("Groups", "Smallest", "KL", "Discernibility", "Loss")
        rows = [
            (*node.levels.values(), f"{node.groups:,}", f"{node.smallest:,}", f"{node.kl:.4f}",
             f"{node.discernibility:,.0f}", f"{node.loss:.4f}")
            for node in self
        ]  # fmt: skip
        caption = f"{len(self):,} minimal generalizations: the level of each column"
        numbers = range(len(self.top) + len(figures))
        return notebook(html_table((*self.top, *figures), rows, caption=caption, numbers=numbers))
