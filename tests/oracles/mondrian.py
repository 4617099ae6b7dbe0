"""Mondrian, slow and obvious: one record at a time, one group at a time, straight from the rules of the search."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np

from jali.encoding.table import Table
from jali.principles.base import Principle, hold
from jali.principles.counts import Counts

CUTS = 8
Rows = list[int]


class Reference:
    """Splits the records of a small table."""

    def __init__(
        self, table: Table, principles: Sequence[Principle], mode: str, split: str, similarity: str = "box"
    ) -> None:
        self.similarity = similarity
        self.table, self.principles, self.relaxed, self.split_by = table, tuple(principles), mode == "relaxed", split
        self.columns = range(len(table.quasi))
        self.codes = list(zip(*(c.codes.tolist() for c in table.quasi), strict=True))
        self.value = [tuple(int(c.codes[row]) for c in table.sensitive) for row in range(table.records)]
        self.masks = [column.mask(table.domain).tolist() for column in table.quasi]
        trees = [table.hierarchy(column.name) for column in table.quasi]
        self.maps = [[m.tolist() for m in t.maps] if t.made_by.startswith("taxonomy(") else None for t in trees]
        self.rows = sorted(range(table.records), key=lambda row: (self.codes[row], self.value[row], row))
        self.weight = self._weights()
        numbers = {value: number for number, value in enumerate(sorted(set(self.value)))}
        self.number = np.array([numbers[value] for value in self.value], dtype=np.int64)
        judged = [column.sensitive() for column in table.sensitive]
        self.sensitive = tuple(s for s, _ in judged)
        joint = [[m[code] for (_, m), code in zip(judged, value, strict=True)] for value in numbers]
        self.joint = np.array(joint, dtype=np.int64).reshape(len(numbers), -1)
        self.whole = self.counts([self.rows], None)

    def _weights(self) -> list[int]:
        """People of each record; where persons are named and rows stay together, their equal rows count once."""
        if self.table.person is None:
            return [1] * self.table.records if self.table.multiplicity is None else self.table.multiplicity.tolist()
        seen: Counter[tuple[object, ...]] = Counter()
        weight = []
        for row, person in enumerate(self.table.person.tolist()):
            seen[self.codes[row], self.value[row], person] += 1
            weight.append(1 if self.relaxed or seen[self.codes[row], self.value[row], person] == 1 else 0)
        return weight

    def counts(self, parts: list[Rows], whole: Counts | None) -> Counts:
        rows = [row for part in parts for row in part]
        group = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
        n = np.array([self.weight[row] for row in rows], dtype=np.int64)
        person = None if self.table.person is None else self.table.person[rows]
        return Counts(len(parts), group, self.number[rows], n, self.sensitive, self.joint, person, whole)

    def holds(self, parts: list[Rows]) -> list[bool]:
        return hold(self.principles, self.counts(parts, self.whole)).tolist()

    def people(self, rows: Rows) -> int:
        return sum(self.weight[row] for row in rows)

    def groups(self) -> list[Rows]:
        """The records of each group, groups in the order of their first record."""
        finished, waiting = [], [self.rows]
        while waiting:
            group = waiting.pop()
            parts = self.split(group)
            (waiting if parts else finished).extend(parts or [group])
        place = {row: at for at, row in enumerate(self.rows)}
        return sorted(finished, key=lambda group: place[group[0]])

    def split(self, group: Rows) -> list[Rows] | None:
        several = [a for a in self.columns if self.span(group, a) > 1]
        if self.split_by == "kl":
            found = [(self.gain(group, parts), -a, parts) for a in several if (parts := self.by_column(group, a))]
            return max(found)[2] if found else None
        several.sort(key=lambda a: (-self.rank(group, a), a))
        return next((parts for a in several if (parts := self.by_column(group, a))), None)

    def rank(self, group: Rows, a: int) -> Fraction | int:
        if self.split_by == "range":
            return Fraction(self.span(group, a) - 1, sum(self.masks[a]) - 1)
        return math.floor(self.entropy(group, a) * 1e9 + 0.5)

    def entropy(self, group: Rows, a: int) -> float:
        heft: dict[int, int] = defaultdict(int)
        for row in group:
            heft[self.codes[row][a]] += self.weight[row]
        total = sum(heft.values())
        return -math.fsum(w / total * math.log(w / total) for w in heft.values() if w)

    def cover(self, group: Rows, a: int) -> int:
        """The level of the smallest node that covers a group's values."""
        return next(i for i, m in enumerate(self.maps[a] or []) if len({m[self.codes[row][a]] for row in group}) == 1)

    def span(self, group: Rows, a: int) -> int:
        codes = [self.codes[row][a] for row in group]
        maps = self.maps[a]
        if maps is None:
            return sum(self.masks[a][min(codes) : max(codes) + 1])
        nodes = maps[self.cover(group, a)]
        return sum(inside for inside, node in zip(self.masks[a], nodes, strict=True) if node == nodes[codes[0]])

    def gain(self, group: Rows, parts: list[Rows]) -> int:
        gained = math.fsum([*(self.information(part) for part in parts), -self.information(group)])
        return math.floor(gained / self.people(group) * 1e9 + 0.5)

    def information(self, group: Rows) -> float:
        n: dict[tuple[int, ...], int] = defaultdict(int)
        for row in group:
            n[self.value[row]] += self.weight[row]
        area: float = math.prod(self.span(group, a) for a in self.columns)
        if self.similarity == "pdf":
            area = math.exp(math.fsum(self.entropy(group, a) for a in self.columns))
        return math.fsum(people * math.log(people / area) for people in n.values())

    def by_column(self, group: Rows, a: int) -> list[Rows] | None:
        if self.maps[a] is not None:
            return self.children(group, a)
        ordered = sorted(group, key=lambda row: self.codes[row][a])  # stable: equal values keep their order
        for cut in self.cuts(ordered, a):
            lower = set(ordered[:cut])
            parts = [[row for row in group if row in lower], [row for row in group if row not in lower]]
            if all(self.holds(parts)):
                return parts
        return None

    def cuts(self, ordered: Rows, a: int) -> Iterator[int]:
        total, upto, uneven = self.people(ordered), 0, {}
        for at, row in enumerate(ordered[:-1], 1):
            upto += self.weight[row]
            uneven[at] = (abs(2 * upto - total), at)
        if self.relaxed:
            yield min(uneven, key=lambda at: uneven[at])
        between = [at for at in uneven if self.codes[ordered[at]][a] != self.codes[ordered[at - 1]][a]]
        yield from sorted(between, key=lambda at: uneven[at])[:CUTS]

    def children(self, group: Rows, a: int) -> list[Rows] | None:
        nodes = (self.maps[a] or [])[self.cover(group, a) - 1]
        by_node: dict[int, Rows] = defaultdict(list)
        for row in group:
            by_node[nodes[self.codes[row][a]]].append(row)
        parts = [by_node[node] for node in sorted(by_node, key=nodes.index)]  # by the lowest code below each
        failing = [part for part, holds in zip(parts, self.holds(parts), strict=True) if not holds]
        if not failing or not self.relaxed:
            return None if failing else parts
        others = sorted((part for part in parts if part not in failing), key=self.people)
        while others and not all(self.holds([[row for part in failing for row in part]])):
            failing.append(others.pop(0))
        rest = {row for part in failing for row in part}
        return [[row for row in group if row in rest], *others] if others else None
