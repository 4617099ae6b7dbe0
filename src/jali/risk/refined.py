"""Refinements that were rejected: what it says about people that one part of their group must break a promise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import factorial, prod

import numpy as np

from jali.principles.base import Principle, hold
from jali.principles.counts import Bools, Cells, Counts, Ints
from jali.risk.count_worlds import Budget

Row = tuple[int, ...]


@dataclass(frozen=True)
class Failure:
    """How likely it is that some part of a group breaks a promise, when its values are in random order."""

    chance: Fraction
    joint: tuple[tuple[Fraction, ...], ...]  # (parts, values) Pr(a person of the part has the value, and a part fails)


def failure(counts: Row, sizes: Row, principles: tuple[Principle, ...], cells: Cells, budget: Budget) -> Failure:
    """Look at every way to spread a group's values (`counts`, of all values) over parts of these sizes.

    A way stands for Π_part size! / Π_value n! of the equally likely worlds. Each way takes a step.
    """
    used = [value for value, n in enumerate(counts) if n]
    ways = []
    for way in spreads(tuple(counts[value] for value in used), sizes):
        budget.spend(1)
        ways.append(way)
    fails = _fails(np.array(ways, dtype=np.int64), np.array(used, dtype=np.int64), principles, cells)
    weights = [prod(factorial(sum(row)) // prod(map(factorial, row)) for row in way) for way in ways]
    total = sum(weights)
    broken = [(way, weight) for way, weight, fail in zip(ways, weights, fails.tolist(), strict=True) if fail]
    joint = [[Fraction(0)] * len(counts) for _ in sizes]
    for part, size in enumerate(sizes):
        for place, value in enumerate(used):
            joint[part][value] = Fraction(sum(weight * way[part][place] for way, weight in broken), size * total)
    return Failure(Fraction(sum(weight for _, weight in broken), total), tuple(tuple(row) for row in joint))


def spreads(counts: Row, sizes: Row) -> Iterator[tuple[Row, ...]]:
    """Every way to spread values over parts: tables with these column and row sums.

    >>> list(spreads((1, 1), (1, 1)))
    [((0, 1), (1, 0)), ((1, 0), (0, 1))]
    """
    if len(sizes) == 1:
        yield (counts,)
        return
    for row in _takes(counts, sizes[0]):
        left = tuple(n - taken for n, taken in zip(counts, row, strict=True))
        for rest in spreads(left, sizes[1:]):
            yield (row, *rest)


def _takes(counts: Row, size: int) -> Iterator[Row]:
    """Every way to take so many of these."""
    if not counts:
        yield ()
        return
    rest = sum(counts[1:])
    for first in range(max(0, size - rest), min(counts[0], size) + 1):
        for others in _takes(counts[1:], size - first):
            yield (first, *others)


def _fails(ways: Ints, used: Ints, principles: tuple[Principle, ...], cells: Cells) -> Bools:
    """Whether some part breaks a promise: (ways,), all judged together. `ways` is (ways, parts, values)."""
    number, parts, width = ways.shape
    flat = ways.reshape(number * parts, width)
    group, place = np.nonzero(flat)
    values = len(cells.column)
    joint = np.arange(values, dtype=np.int64)[:, None]
    whole = Counts(1, np.zeros(values, dtype=np.int64), joint[:, 0], cells.reference, (cells.column,), joint)
    counts = Counts(
        len(flat), group.astype(np.int64), used[place], flat[group, place], (cells.column,), joint, None, whole
    )
    return np.asarray(~hold(principles, counts).reshape(number, parts).all(axis=1))
