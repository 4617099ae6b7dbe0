"""Distributions of groups, rules and reconstructions by enumeration: obvious and slow."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

Row = Mapping[str, Any]
Rules = dict[tuple[frozenset[tuple[str, Any]], tuple[str, Any]], Fraction]


def distribution(values: Sequence[Any], base: Sequence[Any], towards: Fraction) -> dict[Any, Fraction]:
    """(1 − towards) / |base| for each value of the base, and towards × its frequency; without what is 0."""
    found = {v: (1 - towards) * Fraction(1, len(base)) + towards * Fraction(values.count(v), len(values)) for v in base}
    return {value: share for value, share in found.items() if share}


def kl_cost(groups: Sequence[Sequence[Row]], cells: Sequence[Mapping[str, Mapping[Any, Fraction]]]) -> float:
    """− Σ ln of the probability of each value in its cell."""
    total = 0.0
    for rows, shown in zip(groups, cells, strict=True):
        for row in rows:
            total -= sum(math.log(share[row[name]]) for name, share in shown.items())
    return total


def match(
    groups: Sequence[Sequence[Row]], cells: Sequence[Mapping[str, Mapping[Any, Fraction]]], exact: Sequence[str]
) -> Fraction:
    """The probability that values drawn for every cell give the rows of each group again, in whatever order."""
    result = Fraction(1)
    for rows, shown in zip(groups, cells, strict=True):
        names = list(shown)
        wanted = Counter(tuple(row[n] for n in (*exact, *names)) for row in rows)
        boxes = list(itertools.product(*(shown[n].items() for n in names)))
        chance = Fraction(0)
        for drawn in itertools.product(boxes, repeat=len(rows)):
            got = Counter(
                (*(row[n] for n in exact), *(value for value, _ in box)) for row, box in zip(rows, drawn, strict=True)
            )
            if got == wanted:
                chance += math.prod(share for box in drawn for _, share in box)
        result *= chance
    return result


def rules(rows: Sequence[Row], support: Fraction, confidence: Fraction, longest: int, then: str | None = None) -> Rules:
    """Every rule, by looking at every set of values that stands in some row."""
    found: Rules = {}
    items = {item for row in rows for item in row.items()}
    for size in range(2, longest + 1):
        for some in itertools.combinations(sorted(items, key=repr), size):
            if len({name for name, _ in some}) < size:
                continue
            both = sum(all(row[n] == v for n, v in some) for row in rows)
            if both == 0 or Fraction(both, len(rows)) < support:
                continue
            for last in some:
                left = [item for item in some if item != last]
                one = sum(all(row[n] == v for n, v in left) for row in rows)
                if Fraction(both, one) >= confidence and then in (None, last[0]):
                    found[frozenset(left), last] = Fraction(both, one)
    return found


def rule_probability(
    rows: Sequence[Mapping[str, Mapping[Any, Fraction]]],
    when: Sequence[tuple[str, Any]],
    then: tuple[str, Any],
    support: Fraction,
    confidence: Fraction,
) -> Fraction:
    """The share of all reconstructions, each as likely as its values, in which the rule holds."""
    total = Fraction(0)
    names = list(rows[0])
    boxes = [list(itertools.product(*(row[n].items() for n in names))) for row in rows]
    for drawn in itertools.product(*boxes):
        made = [dict(zip(names, (value for value, _ in box), strict=True)) for box in drawn]
        left = [row for row in made if all(row[n] == v for n, v in when)]
        both = sum(row[then[0]] == then[1] for row in left)
        if both and Fraction(both, len(rows)) >= support and Fraction(both, len(left)) >= confidence:
            total += math.prod(share for box in drawn for _, share in box)
    return total
