"""Columns that count for more than others, slow and obvious: what a search compares, straight from decision 54."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction

from jali.encoding.table import Table
from oracles.lattice import BruteForce
from oracles.mondrian import Reference, Rows
from oracles.recode import boxes


def relative(table: Table, importance: Mapping[str, float]) -> list[float]:
    """How many times as important as the least important one each quasi-identifier is, to six decimals."""
    given = [Fraction(str(importance.get(column.name, 1))) for column in table.quasi]
    return [round(one / min(given) * 10**6) / 10**6 for one in given]


class Weighed(BruteForce):
    """All nodes of a small table, and what they cost whoever finds some columns more important than others."""

    def __init__(self, table: Table, principles: Sequence, importance: Mapping[str, float]) -> None:  # type: ignore[type-arg]
        super().__init__(table, principles)
        self.times = relative(table, importance)

    def cost(self, metric: str, node: tuple[int, ...], hidden: list[tuple[int, ...]]) -> float:
        if metric == "height":
            return sum(level * times for level, times in zip(node, self.times, strict=True))
        if metric == "loss":
            shares = [self._share(i, node, hidden) for i in range(len(node))]
            logs = [times * math.log(1 + share) for share, times in zip(shares, self.times, strict=True)]
            return math.exp(math.fsum(logs) / sum(self.times)) - 1
        return super().cost(metric, node, hidden)

    def _kl(self, node: tuple[int, ...], hidden: list[tuple[int, ...]]) -> float:
        """A cell over m values of a column takes m to the power of its importance from each value."""
        groups = self.groups(node)
        gone = [row for key in hidden for row in groups[key]]
        total, own = sum(self.weight), defaultdict(float)
        where = {row: key for key, rows in groups.items() for row in rows}
        for row in self.rows:
            own[where[row], tuple(int(c.codes[row]) for c in self.quasi), self._value(row)] += self.weight[row] / total
        cost = 0.0
        for (key, _, value), share in own.items():
            logs = [self._given(gone, value, self.top, [0] * len(node))]
            logs += [] if key in hidden else [self._given(groups[key], value, node, key)]
            inferred = max(logs) + math.log(sum(math.exp(one - max(logs)) for one in logs)) - math.log(total)
            cost += share * (math.log(share) - inferred) if share else 0.0
        return cost

    def _given(self, rows: list[int], value: tuple[int, ...], node: Sequence[int], key: Sequence[int]) -> float:
        """The logarithm of what these rows give to each point of their box with this sensitive value."""
        many = sum(self._value(row) == value for row in rows)
        if not many:
            return -math.inf
        mean = sum(self.weight[row] for row in rows) / len(rows)
        sides = [len(self._covered(i, level, code)) for i, (level, code) in enumerate(zip(node, key, strict=True))]
        area = math.fsum(times * math.log(side) for side, times in zip(sides, self.times, strict=True))
        return math.log(mean * many) - area


class WeighedReference(Reference):
    """Splits the records of a small table, important columns first."""

    times: list[float]

    def rank(self, group: Rows, a: int) -> Fraction | int:
        if self.split_by == "range":
            part = (self.span(group, a) - 1) / (sum(self.masks[a]) - 1)
            return math.floor(self.times[a] * part * 1e9 + 0.5)
        return math.floor(self.times[a] * self.entropy(group, a) * 1e9 + 0.5)

    def information(self, group: Rows) -> float:
        n: dict[tuple[int, ...], int] = defaultdict(int)
        for row in group:
            n[self.value[row]] += self.weight[row]
        size = (
            (lambda a: self.entropy(group, a)) if self.similarity == "pdf" else lambda a: math.log(self.span(group, a))
        )
        area = math.fsum(self.times[a] * size(a) for a in self.columns)
        return math.fsum(people * (math.log(people) - area) for people in n.values())


def weighed_granularity(table: Table, group: Sequence[int], show: str, times: Sequence[float]) -> float:
    """One minus the weighted mean over columns of the mean share of other values that rows cover."""
    box = boxes(table, group, show)
    lost = 0.0
    for combination in table.frequencies.row_combination.tolist():
        for a, values in enumerate(box[int(group[combination])]):
            whole = int(table.quasi[a].mask(table.domain).sum())
            lost += times[a] * (len(values) - 1) / (whole - 1) if whole > 1 else 0.0
    return 1 - lost / table.records / sum(times)


def weighed_kl(table: Table, group: Sequence[int], show: str, times: Sequence[float]) -> float:
    """As if no box overlapped another: each cell takes what its own group gives it, weighed."""
    box, rows = boxes(table, group, show), table.frequencies.row_combination.tolist()
    sensitive = list(zip(*(c.codes.tolist() for c in table.sensitive), strict=True)) or [()] * len(rows)
    own = Counter(zip(rows, sensitive, strict=True))
    of_group = Counter((int(group[c]), value) for c, value in zip(rows, sensitive, strict=True))
    cost = 0.0
    for (combination, value), n in own.items():
        number = int(group[combination])
        area = math.fsum(t * math.log(len(side)) for side, t in zip(box[number], times, strict=True))
        cost += n / len(rows) * (math.log(n / of_group[number, value]) + area)
    return cost
