"""People with several values, from the definition: a promise holds for every choice of one value for each person.

A group is a list of (person, value); values are whole numbers from 0. A choice is a list of counts, one for each value.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product

import jali
from oracles import principles as oracle

Rows = Sequence[tuple[int, int]]


def choices(rows: Rows, values: int) -> Iterator[list[int]]:
    """Every choice of one of their values for each person."""
    of = {person: sorted({v for p, v in rows if p == person}) for person, _ in rows}
    for chosen in product(*of.values()):
        yield [chosen.count(v) for v in range(values)]


def allowed(rows: Rows, values: int) -> Iterator[list[int]]:
    """Every choice that the published numbers allow: people of the group, and people of each value."""
    people = len({person for person, _ in rows})
    return fitting([len({p for p, v in rows if v == value}) for value in range(values)], people)


def fitting(having: Sequence[int], people: int) -> Iterator[list[int]]:
    """All counts that sum to the people and exceed the people of no value."""
    for counts in product(*(range(n + 1) for n in having)):
        if sum(counts) == people:
            yield list(counts)


def level(principle: jali.Principle, group: Sequence[int], labels: Sequence[str | None]) -> float:
    """What one choice reaches, from the definition; in which direction is better the principle says."""
    size = sum(group)
    named = lambda names: [labels.index(name) for name in names]  # noqa: E731
    match principle:
        case jali.KAnonymity():
            return size
        case jali.DistinctDiversity():
            return oracle.distinct_values(group)
        case jali.FrequencyDiversity():
            return float(1 / oracle.largest_share(group, size))
        case jali.AlphaAnonymity():
            share = oracle.largest_share(group, size, named(principle.values) if principle.values else None)
            return float(share) if size >= principle.k else math.inf
        case jali.EntropyDiversity():
            careless = named(principle.dont_care)
            rest = [n for v, n in enumerate(group) if v not in careless]
            if not careless:
                return math.exp(oracle.entropy(group))
            return math.exp(oracle.adjusted_entropy([group[v] for v in careless], rest))
        case jali.RecursiveDiversity():
            rare = oracle.rarest_share(group, size, named(principle.protected)) < Fraction(str(principle.share))
            return math.inf if rare else float(oracle.needed_c(group, principle.l, named(principle.dont_care)))
    raise AssertionError(f"no definition of {principle!r}")


def worst(principle: jali.Principle, found: Iterator[list[int]], labels: Sequence[str | None]) -> float:
    """The worst level of some choices."""
    levels = [level(principle, group, labels) for group in found]
    return min(levels) if principle.better == "higher" else max(levels)


def enough(principle: jali.Principle, reached: float) -> bool:
    """Whether a level is the one that was promised; floats decide, which no case here makes a close one."""
    match principle:
        case jali.KAnonymity():
            return reached >= principle.k
        case jali.AlphaAnonymity():
            return reached <= float(principle.alpha) + 1e-12
        case jali.RecursiveDiversity():
            return (principle.l == 1 and reached < math.inf) or reached == 0 or reached < float(principle.c) - 1e-12
        case jali.DistinctDiversity() | jali.FrequencyDiversity() | jali.EntropyDiversity():
            return reached >= float(principle.l) - 1e-8
    raise AssertionError(f"no definition of {principle!r}")


def keeps(principle: jali.Principle, rows: Rows, labels: Sequence[str | None]) -> bool:
    """Whether every choice keeps the promise."""
    return enough(principle, worst(principle, choices(rows, len(labels)), labels))


def numbers_keep(principle: jali.Principle, rows: Rows, labels: Sequence[str | None]) -> bool:
    """Whether every choice that the numbers allow keeps the promise."""
    return enough(principle, worst(principle, allowed(rows, len(labels)), labels))
