"""Attacks by looking at every person and every world: slow and obvious."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import permutations, product


def homogeneity(groups: Sequence[Sequence[str]], threshold: Fraction) -> tuple[int, int]:
    """People in groups where one value reaches the threshold, and those who have it."""
    exposed = right = 0
    for values in groups:
        most = max(Counter(values).values())
        if Fraction(most, len(values)) >= threshold:
            exposed, right = exposed + len(values), right + most
    return exposed, right


def background(groups: Sequence[Sequence[str]], threshold: Fraction, ruled_out: int) -> int:
    """People whose value reaches the threshold once the most frequent other values are ruled out for them."""
    exposed = 0
    for values in groups:
        for own in values:
            others = sorted((n for value, n in Counter(values).items() if value != own), reverse=True)
            left = len(values) - sum(others[:ruled_out])
            exposed += Fraction(values.count(own), left) >= threshold
    return exposed


def rejected(
    groups: Sequence[Sequence[Sequence[str]]], fails: Callable[[Sequence[str]], bool]
) -> dict[tuple[int, int, str], Fraction]:
    """Pr(a person of a part has a value | some part of some group fails), over every order of each group's values.

    `groups` has the values of the people of each part of each group.
    """
    orders = [set(permutations([value for part in group for value in part])) for group in groups]
    hits: Counter[tuple[int, int, str]] = Counter()
    kept = 0
    for world in product(*orders):
        dealt = [_dealt(order, [len(part) for part in group]) for order, group in zip(world, groups, strict=True)]
        if not any(fails(part) for group in dealt for part in group):
            continue
        kept += 1
        for g, group in enumerate(dealt):
            for p, part in enumerate(group):
                hits[g, p, part[0]] += 1  # the first person of the part stands for all
    return {key: Fraction(n, kept) for key, n in hits.items()}


def _dealt(order: Sequence[str], sizes: Sequence[int]) -> list[Sequence[str]]:
    found, at = [], 0
    for size in sizes:
        found.append(order[at : at + size])
        at += size
    return found
