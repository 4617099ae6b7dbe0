"""What an attacker believes who has run the publisher on every table that could be the original."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from fractions import Fraction
from typing import Any

World = tuple[Any, ...]  # the value of each person


def ways(
    worlds: Iterable[World], bits: Iterable[Any], publish: Callable[[World, Any], Hashable]
) -> dict[Hashable, Counter[World]]:
    """For each release, from which worlds it can come, and with how many of the random bits."""
    drawn = list(bits)
    found: dict[Hashable, Counter[World]] = {}
    for world in worlds:
        for bit in drawn:
            found.setdefault(publish(world, bit), Counter())[world] += 1
    return found


def beliefs(possible: Counter[World]) -> list[dict[Any, Fraction]]:
    """The belief in each value of each person: the share of the worlds, weighted by how often they are published so."""
    people = len(next(iter(possible)))
    found: list[dict[Any, Fraction]] = [{} for _ in range(people)]
    for world, times in possible.items():
        for person, value in enumerate(world):
            found[person][value] = found[person].get(value, Fraction(0)) + Fraction(times, possible.total())
    return found


def shares(values: Iterable[Any]) -> dict[Any, Fraction]:
    """The share of each value."""
    counts = Counter(values)
    return {value: Fraction(n, counts.total()) for value, n in counts.items()}


def dealt(people: Mapping[Any, int], line: Iterable[Any], batches: int) -> list[Counter[Any]]:
    """What each batch holds when people are dealt out in turn, value by value along the line."""
    row = [value for value in line for _ in range(people[value])]
    return [Counter(row[first::batches]) for first in range(batches)]
