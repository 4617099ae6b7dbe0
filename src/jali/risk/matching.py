"""Matchings: how many people of one group are also in a group of another release, over all worlds.

Groups i of one release have r_i people with a value, groups j of another c_j; a world m has m_ij of them in both, with
Σ_j m_ij = r_i and Σ_i m_ij = c_j, and there are Π w_ij^m_ij / m_ij! as many of it as of others (w_ij quasi-identifiers
fit both groups). What is asked is E[m_ij].
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import gcd, lcm

from jali.risk.matching_count import counted
from jali.risk.matching_flow import Impossible, possible

Pair = tuple[int, int]
Weights = dict[int, dict[int, Fraction]]

STEPS = 100_000
"""Up to how many steps the worlds of one component are counted; beyond, expectations have bounds."""
STEPS_TOGETHER = 2_000_000
"""The same for all components of an audit."""


@dataclass(frozen=True)
class Expected:
    """How many people are in a pair of groups on average over all worlds: between low and high."""

    low: Fraction
    high: Fraction

    @property
    def exact(self) -> bool:
        """Whether it is known, not only bounded."""
        return self.low == self.high


@dataclass
class Budget:
    """How many steps may still be taken."""

    steps: int = STEPS_TOGETHER
    each: int = STEPS


@dataclass
class _Graph:
    """What is still to be matched. Nodes of both sides are numbered together; a node can stand for several groups."""

    amount: dict[int, int]
    near: Weights
    row: set[int]  # the nodes of the first release
    members: dict[int, dict[int, Fraction]]  # the groups that a node stands for, and the share of each
    found: dict[Pair, Expected] = field(default_factory=dict)

    def settle(self, one: int, two: int, low: Fraction, high: Fraction) -> None:
        """What is expected of a pair of nodes, handed on to the groups that they stand for."""
        one, two = (one, two) if one in self.row else (two, one)
        for i, share in self.members[one].items():
            for j, part in self.members[two].items():
                self.found[i, j] = Expected(low * share * part, high * share * part)

    def drop(self, node: int) -> list[int]:
        """Remove a node and its edges; its neighbours."""
        near = list(self.near.pop(node))
        for other in near:
            del self.near[other][node]
        return near


def expected(
    rows: Mapping[int, int], columns: Mapping[int, int], weights: Mapping[Pair, Fraction], budget: Budget
) -> dict[Pair, Expected]:
    """E[m_ij] for every pair that has a weight; Impossible where there is no world at all.

    Exact for pairs that must be (a group with one partner), for groups that differ by a factor in all their weights
    (they share as r_i : r_i'), and by counting where a component is small; bounds elsewhere:
    max(0, r_i − Σ_{j' ≠ j} c_j', c_j − Σ_{i' ≠ i} r_i') ≤ E[m_ij] ≤ min(r_i, c_j).
    """
    place = {j: len(rows) + n for n, j in enumerate(columns)}
    number = {i: n for n, i in enumerate(rows)}
    near: Weights = {node: {} for node in [*number.values(), *place.values()]}
    for (i, j), weight in weights.items():
        near[number[i]][place[j]] = near[place[j]][number[i]] = weight
    amount = {number[i]: n for i, n in rows.items()} | {place[j]: n for j, n in columns.items()}
    members = {node: {group: Fraction(1)} for group, node in [*number.items(), *place.items()]}
    graph = _Graph(amount, near, set(number.values()), members)
    _peel(graph, list(near))
    while _merge(graph):
        _peel(graph, list(graph.near))
    for component in sorted(_components(graph), key=len):
        _solve(graph, component, budget)
    return graph.found


def _peel(graph: _Graph, waiting: list[int]) -> None:
    """A node with one partner gives it all its people; a node without people has none to give."""
    while waiting:
        node = waiting.pop()
        if node not in graph.near:
            continue
        near, people = graph.near[node], graph.amount[node]
        if people == 0:
            for other in near:
                graph.settle(node, other, Fraction(0), Fraction(0))
            waiting += graph.drop(node)
        elif not near:
            raise Impossible
        elif len(near) == 1:
            (other,) = near
            if people > graph.amount[other]:
                raise Impossible
            graph.settle(node, other, Fraction(people), Fraction(people))
            graph.amount[other] -= people
            graph.drop(node)
            waiting.append(other)


def _merge(graph: _Graph) -> bool:
    """Nodes whose weights differ by a factor only become one; whether there were any.

    Given how many people the two have in each partner together, each of them is as likely to be of either as of the
    other: the share of a node is its people over those of all.
    """
    alike = defaultdict(list)
    for node, near in graph.near.items():
        ordered = sorted(near.items())
        unit = ordered[0][1]
        alike[node in graph.row, tuple((other, weight / unit) for other, weight in ordered)].append(node)
    merged = False
    done: dict[bool, bool] = {}
    for (side, _), nodes in alike.items():
        if len(nodes) == 1 or done.get(not side):  # the other side's weights have changed: next time
            continue
        done[side] = merged = True
        first, *rest = nodes
        people = {node: graph.amount[node] for node in nodes}
        together = sum(people.values())
        graph.members[first] = {
            group: share * Fraction(people[node], together)
            for node in nodes
            for group, share in graph.members[node].items()
        }
        graph.amount[first] = together
        for node in rest:
            graph.drop(node)
    return merged


def _components(graph: _Graph) -> Iterator[list[int]]:
    seen: set[int] = set()
    for start in graph.near:
        if start in seen:
            continue
        seen.add(start)
        component, at = [start], 0
        while at < len(component):
            for other in graph.near[component[at]]:
                if other not in seen:
                    seen.add(other)
                    component.append(other)
            at += 1
        yield component


def _solve(graph: _Graph, component: list[int], budget: Budget) -> None:
    """Count the worlds of a component if that is feasible, else bound what is expected."""
    rows, columns = [n for n in component if n in graph.row], [n for n in component if n not in graph.row]
    rows, columns = (rows, columns) if len(columns) <= len(rows) else (columns, rows)
    if sum(graph.amount[n] for n in rows) != sum(graph.amount[n] for n in columns):
        raise Impossible
    edges = {i: _whole(graph.near[i]) for i in rows}
    steps, exact = counted(rows, columns, graph.amount, edges, limit=min(budget.each, budget.steps))
    budget.steps -= steps
    if exact is not None:
        for (i, j), mean in exact.items():
            graph.settle(i, j, mean, mean)
        return
    can = possible(rows, columns, graph.amount, {i: list(near) for i, near in edges.items()})
    within = {n: sum(graph.amount[other] for other in graph.near[n]) for n in component}
    for i in rows:
        for j in edges[i]:
            r, c = graph.amount[i], graph.amount[j]
            low = max(0, r - (within[i] - c), c - (within[j] - r))
            graph.settle(i, j, Fraction(low), Fraction(min(r, c) if (i, j) in can else 0))


def _whole(weights: Mapping[int, Fraction]) -> dict[int, int]:
    """Weights as the smallest whole numbers in the same proportions."""
    below = lcm(*(w.denominator for w in weights.values()))
    scaled = {other: int(w * below) for other, w in weights.items()}
    common = gcd(*scaled.values())
    return {other: w // common for other, w in scaled.items()}
