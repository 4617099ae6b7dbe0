"""Which values a release may name, and what the other ends become: from the definitions, with exact fractions."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from fractions import Fraction
from typing import Any


def shared_values(values: Sequence[Any], people: Sequence[Hashable] | None, k: int) -> set[Any]:
    """The values that at least k different people have; without names each row is a person."""
    owners: dict[Any, set[Hashable]] = defaultdict(set)
    for row, value in enumerate(values):
        owners[value].add(row if people is None else people[row])
    return {value for value, some in owners.items() if len(some) >= k}


def outward(low: Fraction, high: Fraction, public: Iterable[Fraction], step: Fraction) -> tuple[Fraction, Fraction]:
    """The ends of whole numbers: a public one stays, another moves to the next whole number that the step divides."""
    known = set(public)
    first = low if low in known else _divided(low, step, -1)
    last = high if high in known else _divided(high, step, 1)
    if first == last and low not in known:  # a single value, which would be named
        last = _divided(last + 1, step, 1)
    return first, last


def _divided(number: Fraction, step: Fraction, way: int) -> Fraction:
    while (number / step).denominator != 1:
        number += way
    return number


def step_of_rows(values: Sequence[Fraction], people: Sequence[Hashable] | None, k: int) -> Fraction:
    """The first of 1, 2, 5, 10, … for which nine in ten with a rare value share their cell with k people.

    For whole numbers between -1,000 and 1,000: then no step up to 1 can do. Where none does it is the first that is
    above 1 and above the largest.
    """
    owner = list(range(len(values))) if people is None else list(people)
    public = shared_values(values, people, k)
    rare = {(person, value) for person, value in zip(owner, values, strict=True) if value not in public}
    largest = max(abs(value) for value in values)
    for power in range(12):
        for factor in (1, 2, 5):
            step = Fraction(factor * 10**power)
            cells: dict[int, set[Hashable]] = defaultdict(set)
            for person, value in zip(owner, values, strict=True):
                cells[math.floor(value / step)].add(person)
            good = sum(len(cells[math.floor(value / step)]) >= k for _, value in rare)
            if 10 * good >= 9 * len(rare) or step > max(largest, 1):
                return step
    raise AssertionError("a step above the largest number ends the loop")
