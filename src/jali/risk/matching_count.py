"""Counting matchings exactly: worlds pair by pair, those that leave the same people to be matched counted together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb

from jali.risk.matching_flow import Impossible

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
