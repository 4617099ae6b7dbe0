"""Two linked tables written out: every person with every value of the link, and every way to deal the values out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import permutations
from typing import Any, NamedTuple

from jali.query import tree as q
from oracles.estimates import Box, Node, cells, satisfies


class Link(NamedTuple):
    """A bucket: what each of its people shows, the sensitive values of as many people, and everybody's weight."""

    people: Sequence[tuple[Node, ...]]
    values: Sequence[tuple[Any, ...]]
    weight: Fraction = Fraction(1)


def boxes(links: Sequence[Link]) -> list[Box]:
    """Everybody has each value of the link with the same probability."""
    return [
        Box(link.weight / len(link.people), (*shown, *({value: Fraction(1)} for value in values)))
        for link in links
        for shown in link.people
        for values in link.values
    ]


def bounds(links: Sequence[Link], names: Sequence[str], condition: q.Condition) -> tuple[Fraction, Fraction]:
    """The fewest and the most that can satisfy the condition, however values are dealt out, and cells read."""
    low = high = Fraction(0)
    for link in links:
        found = [
            [_verdict(shown, values, names, condition) for values in link.values] for shown in link.people
        ]  # [person][value] → (surely, maybe)
        dealt = list(permutations(range(len(link.values))))
        low += link.weight * min(sum(found[p][v][0] for p, v in enumerate(deal)) for deal in dealt)
        high += link.weight * max(sum(found[p][v][1] for p, v in enumerate(deal)) for deal in dealt)
    return low, high


def _verdict(
    shown: Sequence[Node], values: Sequence[Any], names: Sequence[str], condition: q.Condition
) -> tuple[bool, bool]:
    found = [satisfies(condition, _record(names, cell, values)) for cell, _ in cells(shown)]
    return all(found), any(found)


def _record(names: Sequence[str], cell: Sequence[Any], values: Sequence[Any]) -> Mapping[str, Any]:
    return dict(zip(names, (*cell, *values), strict=True))
