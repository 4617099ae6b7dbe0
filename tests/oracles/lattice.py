"""The lattice search, slow and obvious: every node, every group, every row, straight from the definitions."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from jali.encoding.table import Table
from jali.principles.base import Principle, hold
from jali.principles.counts import Counts


class BruteForce:
    """All nodes of a small table."""

    def __init__(self, table: Table, principles: Sequence[Principle]) -> None:
        self.table, self.principles = table, tuple(principles)
        self.quasi = table.quasi
        self.maps = [table.hierarchy(c.name).maps for c in self.quasi]
        self.top = tuple(len(m) - 1 for m in self.maps)
        self.rows = range(table.records)
        self.weight = [1.0] * table.records if table.weight is None else table.weight.tolist()

    def nodes(self) -> list[tuple[int, ...]]:
        return list(itertools.product(*(range(t + 1) for t in self.top)))

    def groups(self, node: tuple[int, ...]) -> dict[tuple[int, ...], list[int]]:
        """The rows of each group, groups in the order of their codes."""
        found: dict[tuple[int, ...], list[int]] = defaultdict(list)
        for row in self.rows:
            key = tuple(int(m[level][c.codes[row]]) for m, level, c in zip(self.maps, node, self.quasi, strict=True))
            found[key].append(row)
        return dict(sorted(found.items()))

    def judge(self, rows: list[int]) -> bool:
        """Whether these rows, as one group, keep every promise."""
        return bool(hold(self.principles, self._counts(rows)).all())

    def _counts(self, rows: list[int]) -> Counts:
        whole = self._entries(list(self.rows))
        entries = self._entries(rows)
        return Counts(1, *entries[:3], entries[3], entries[4], entries[5], Counts(1, *whole))

    def _entries(self, rows: list[int]) -> tuple:  # type: ignore[type-arg]
        judged = [column.sensitive() for column in self.table.sensitive]
        joint = list(itertools.product(*(range(len(s)) for s, _ in judged)))
        number = {key: i for i, key in enumerate(joint)}
        values = [
            number[tuple(int(m[c.codes[r]]) for (_, m), c in zip(judged, self.table.sensitive, strict=True))]
            for r in rows
        ]
        person = None if self.table.person is None else self.table.person[rows]
        return (
            np.zeros(len(rows), dtype=np.int64), np.array(values, dtype=np.int64), np.ones(len(rows), dtype=np.int64),
            tuple(s for s, _ in judged), np.array(joint, dtype=np.int64).reshape(len(joint), -1), person,
        )  # fmt: skip

    def satisfied(self, node: tuple[int, ...]) -> bool:
        return all(self.judge(rows) for rows in self.groups(node).values())

    def minimal(self) -> list[tuple[int, ...]]:
        good = [n for n in self.nodes() if self.satisfied(n)]
        return sorted(
            n for n in good if not any(m != n and all(a <= b for a, b in zip(m, n, strict=True)) for m in good)
        )

    def suppressed(self, node: tuple[int, ...], budget: int) -> list[tuple[int, ...]] | None:
        """The groups to suppress: those that fail, then the smallest others until their union holds."""
        groups = self.groups(node)
        hidden = [key for key, rows in groups.items() if not self.judge(rows)]
        rest = sorted((len(rows), key) for key, rows in groups.items() if key not in hidden)
        while hidden:
            union = [row for key in hidden for row in groups[key]]
            if len(union) > budget:
                return None
            if self.judge(union):
                return hidden
            if not rest:
                return None
            hidden.append(rest.pop(0)[1])
        return []

    def best(self, metric: str, suppress: Fraction) -> tuple[float, int, tuple[int, ...]] | None:
        budget = math.floor(suppress * len(self.rows))
        found = []
        for node in self.nodes():
            hidden = self.suppressed(node, budget)
            if hidden is not None:
                gone = sum(len(self.groups(node)[key]) for key in hidden)
                found.append((round(self.cost(metric, node, hidden), 9), gone, node))
        return min(found, default=None)

    def cost(self, metric: str, node: tuple[int, ...], hidden: list[tuple[int, ...]]) -> float:
        groups = self.groups(node)
        total = len(self.rows)
        gone = sum(len(groups[key]) for key in hidden)
        if metric == "height":
            return float(sum(node))
        if metric == "average":
            return total / (len(groups) - len(hidden) + bool(hidden))
        if metric == "discernibility":
            return float(sum(len(rows) ** 2 for key, rows in groups.items() if key not in hidden) + gone * total)
        if metric == "loss":
            shares = [self._share(i, node, hidden) for i in range(len(node))]
            return math.prod(1 + s for s in shares) ** (1 / len(shares)) - 1
        return self._kl(node, hidden)

    def _covered(self, column: int, level: int, code: int) -> list[int]:
        """The values of the domain under a node."""
        mask = self.quasi[column].mask(self.table.domain)
        nodes = self.maps[column][level]
        return [v for v in range(len(nodes)) if mask[v] and nodes[v] == code]

    def _share(self, column: int, node: tuple[int, ...], hidden: list[tuple[int, ...]]) -> float:
        domain = int(self.quasi[column].mask(self.table.domain).sum())
        lost = 0.0
        for key, rows in self.groups(node).items():
            covered = domain if key in hidden else len(self._covered(column, node[column], key[column]))
            lost += len(rows) * (covered - 1) / max(domain - 1, 1)
        return lost / len(self.rows)

    def _kl(self, node: tuple[int, ...], hidden: list[tuple[int, ...]]) -> float:
        """Every published row spreads its weight evenly over every point of its box."""
        groups = self.groups(node)
        boxes: list[tuple[list[list[int]], list[int]]] = []
        everything = [self._covered(i, self.top[i], 0) for i in range(len(node))]
        gone = [row for key in hidden for row in groups[key]]
        if gone:
            boxes.append((everything, gone))
        for key, rows in groups.items():
            if key not in hidden:
                boxes.append(([self._covered(i, node[i], code) for i, code in enumerate(key)], rows))
        inferred: dict[tuple[int, ...], float] = defaultdict(float)
        for box, rows in boxes:
            mean = sum(self.weight[row] for row in rows) / len(rows)
            values = Counter(self._value(row) for row in rows)
            area = math.prod(len(side) for side in box)
            for point in itertools.product(*box):
                for value, count in values.items():
                    inferred[point + value] += mean * count / area
        total = sum(self.weight)
        own: dict[tuple[int, ...], float] = defaultdict(float)
        for row in self.rows:
            own[tuple(int(c.codes[row]) for c in self.quasi) + self._value(row)] += self.weight[row] / total
        return sum(f * math.log(f / (inferred[cell] / total)) for cell, f in own.items() if f > 0)

    def _value(self, row: int) -> tuple[int, ...]:
        return tuple(int(c.codes[row]) for c in self.table.sensitive)
