"""Two releases of one table, by brute force: every way to say which row of the one is which row of the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import permutations
from math import prod
from typing import Any

Row = tuple[Any, Any]
"""A group and a sensitive value."""


def worlds(one: Sequence[Row], two: Sequence[Row], common: Mapping[tuple[Any, Any], Any]) -> Iterator[tuple[Any, ...]]:
    """Which row of the second release each row of the first is, and how many quasi-identifiers fit that: all ways."""
    for chosen in permutations(range(len(two))):
        if all(one[a][1] == two[b][1] for a, b in enumerate(chosen)):
            ways = prod(Fraction(common.get((one[a][0], two[b][0]), 0)) for a, b in enumerate(chosen))
            if ways:
                yield chosen, ways


def means(
    one: Sequence[Row], two: Sequence[Row], common: Mapping[tuple[Any, Any], Any]
) -> dict[tuple[Any, Any, Any], Fraction]:
    """How many people are in a group of each and have a value, on average over the worlds; none where there is none."""
    total, people = Fraction(0), Counter[tuple[Any, Any, Any]]()
    for chosen, ways in worlds(one, two, common):
        total += ways
        for a, b in enumerate(chosen):
            people[one[a][0], two[b][0], one[a][1]] += ways  # type: ignore[assignment]  # fractions count too
    return {key: Fraction(n) / total for key, n in people.items()}


def in_common(one: set[Any], two: set[Any]) -> int:
    """How many values two cells may both stand for."""
    return len(one & two)
