"""Matchings: how many people of one group are also in a group of another release, over all worlds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import comb, gcd, lcm

import numpy as np

from jali.core.programs import possible_ways


class Impossible(Exception):  # noqa: N818  # no error: the answer that there is no world
    """There is no world: nobody can be matched so."""


State = tuple[int, tuple[int, ...]]
"""How many people of the current row, and of each column, are still to be matched."""
Layer = dict[State, int]


@dataclass(frozen=True)
class _Edge:
    """A pair of groups, and what is to come after it."""

    row: int
    column: int
    place: int  # of the column in the state
    weight: int
    later: tuple[int, ...]  # places of the row's columns after this one
    below: int  # people of later rows who can be in the column
    after: int | None  # people of the next row, where this is the row's last pair

    def moves(self, state: State) -> Iterator[tuple[int, int, State]]:
        """How many people the pair can have, the ways to choose them among the column's, and what is left then."""
        rest, left = state
        here = left[self.place]
        fewest = max(0, rest - sum(left[p] for p in self.later), here - self.below)
        for people in range(fewest, min(rest, here) + 1):
            then = (*left[: self.place], here - people, *left[self.place + 1 :])
            ways = comb(here, people) * self.weight**people
            yield people, ways, (rest - people if self.after is None else self.after, then)


def counted(
    rows: Sequence[int], columns: Sequence[int], amount: Mapping[int, int], weights: Mapping[int, Mapping[int, int]],
    *, limit: int,
) -> tuple[int, dict[tuple[int, int], Fraction] | None]:  # fmt: skip
    """The steps taken, and the mean number of people of every pair; None where that takes more steps than `limit`.

    Rows that share columns should stand near each other: then few columns are open at a time.
    """
    edges = _edges(rows, columns, amount, weights)
    layers: list[Layer] = [{(amount[edges[0].row], tuple(amount[c] for c in columns)): 1}]
    steps = 0
    for edge in edges:
        after: Layer = {}
        for state, ways in layers[-1].items():
            for _, here, then in edge.moves(state):
                after[then] = after.get(then, 0) + ways * here
                steps += 1
            if steps > limit:
                return steps, None
        layers.append(after)
    ahead = dict.fromkeys(layers[-1], 1)
    worlds = sum(layers[-1].values())
    if not worlds:
        raise Impossible
    means = {}
    for edge, layer in zip(reversed(edges), reversed(layers[:-1]), strict=True):
        before: Layer = {}
        people_in_all = 0
        for state, ways in layer.items():
            total = 0
            for people, here, then in edge.moves(state):
                rest = here * ahead.get(then, 0)
                total += rest
                people_in_all += ways * rest * people
            before[state] = total
        ahead = before
        means[edge.row, edge.column] = Fraction(people_in_all, worlds)
    return steps, means


def _edges(
    rows: Sequence[int], columns: Sequence[int], amount: Mapping[int, int], weights: Mapping[int, Mapping[int, int]]
) -> list[_Edge]:
    """The pairs row by row, each with what is to come after it."""
    place = {column: p for p, column in enumerate(columns)}
    below = dict.fromkeys(columns, 0)
    for row in rows:
        for column in weights[row]:
            below[column] += amount[row]
    edges = []
    for number, row in enumerate(rows):
        next_row = amount[rows[number + 1]] if number + 1 < len(rows) else 0
        near = sorted(weights[row], key=place.__getitem__)
        for at, column in enumerate(near):
            below[column] -= amount[row]
            later, last = tuple(place[c] for c in near[at + 1 :]), at + 1 == len(near)
            after = next_row if last else None
            edges.append(_Edge(row, column, place[column], weights[row][column], later, below[column], after))
    return edges


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
    can = _possible(rows, columns, graph.amount, edges)
    within = {n: sum(graph.amount[other] for other in graph.near[n]) for n in component}
    for i in rows:
        for j in edges[i]:
            r, c = graph.amount[i], graph.amount[j]
            low = max(0, r - (within[i] - c), c - (within[j] - r))
            graph.settle(i, j, Fraction(low), Fraction(min(r, c) if (i, j) in can else 0))


def _possible(
    rows: Sequence[int], columns: Sequence[int], amount: Mapping[int, int], near: Mapping[int, Mapping[int, int]]
) -> set[tuple[int, int]]:
    """The pairs that have people in some world; Impossible where there is no world."""
    pairs = [(i, j) for i in rows for j in near[i]]
    have, need = (np.array([amount[n] for n in nodes], dtype=np.int64) for nodes in (rows, columns))
    row, column = ({n: at for at, n in enumerate(nodes)} for nodes in (rows, columns))
    ways = possible_ways(have, need, np.array([row[i] for i, _ in pairs]), np.array([column[j] for _, j in pairs]))
    if ways is None:
        raise Impossible
    return {pair for pair, used in zip(pairs, ways.tolist(), strict=True) if used}


def _whole(weights: Mapping[int, Fraction]) -> dict[int, int]:
    """Weights as the smallest whole numbers in the same proportions."""
    below = lcm(*(w.denominator for w in weights.values()))
    scaled = {other: int(w * below) for other, w in weights.items()}
    common = gcd(*scaled.values())
    return {other: w // common for other, w in scaled.items()}
