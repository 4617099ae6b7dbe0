"""Slow and obvious twins of the encoding: counting rows one by one, bands by fractions, masks by hand."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from fractions import Fraction
from typing import Any


def band_of(text: str, width: Fraction, origin: Fraction = Fraction(0)) -> tuple[Fraction, Fraction]:
    """The half-open band [low, high) that the written number lies in."""
    number = Fraction(text)
    low = origin + (number - origin) // width * width
    return low, low + width


def masked(text: str, hidden: int) -> str:
    """The text with so many characters hidden from the right; the first one stays."""
    letters = list(text)
    for place in range(len(letters) - 1, 0, -1):
        if len(letters) - place <= hidden:
            letters[place] = "*"
    return "".join(letters)


def rows_by_combination(quasi: Iterable[tuple[Any, ...]], sensitive: Iterable[tuple[Any, ...]]) -> Counter[Any]:
    """How many rows have each pair of quasi combination and sensitive combination."""
    return Counter(zip(quasi, sensitive, strict=True))


def people_by_combination(
    quasi: Iterable[tuple[Any, ...]], sensitive: Iterable[tuple[Any, ...]], person: Sequence[Hashable]
) -> dict[Any, int]:
    """How many different people have a row with each pair of quasi combination and sensitive combination."""
    found: dict[Any, set[Hashable]] = defaultdict(set)
    for q, s, who in zip(quasi, sensitive, person, strict=True):
        found[q, s].add(who)
    return {key: len(people) for key, people in found.items()}


def breaks_of(maps: Sequence[Sequence[int]]) -> list[str]:
    """Why these levels are no hierarchy: each value's node at each level, the finest first."""
    found = []
    if list(maps[0]) != list(range(len(maps[0]))):
        found.append("level 0 is not the identity")
    for level in range(1, len(maps)):
        above: dict[int, int] = {}
        for below, node in zip(maps[level - 1], maps[level], strict=True):
            if above.setdefault(below, node) != node:
                found.append(f"level {level} cuts a node of level {level - 1}")
    if len(set(maps[-1])) != 1:
        found.append("the top is not one node")
    return found
