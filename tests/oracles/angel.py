"""ANGEL releases written out: mixtures as fractions, joins as every way to seat the people of a batch."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import permutations, product
from typing import Any

import numpy as np

from jali.principles.base import Principle
from jali.principles.counts import Counts, Sensitive

Row = tuple[Hashable, int]  # what somebody shows in a table, and the batch


def mixture(weights: Mapping[int, Fraction], batches: Mapping[int, Counter[Any]]) -> dict[Any, Fraction]:
    """Σ weight · the distribution of the batch's values (Equations 2 and 6)."""
    found: dict[Any, Fraction] = {}
    for batch, weight in weights.items():
        for value, n in batches[batch].items():
            found[value] = found.get(value, Fraction(0)) + weight * Fraction(n, batches[batch].total())
    return found


def bucket_mixture(rows: Iterable[Row], shown: Hashable, batches: Mapping[int, Counter[Any]]) -> dict[Any, Fraction]:
    """What is believed of somebody who shows this."""
    own = Counter(batch for cell, batch in rows if cell == shown)
    return mixture({batch: Fraction(n, own.total()) for batch, n in own.items()}, batches)


def keeps(
    principle: Principle, found: Mapping[Any, Fraction], sensitive: Sensitive, reference: Mapping[Any, int]
) -> bool:
    """Whether a distribution keeps a principle, judged exactly as the people of a group that has it."""
    scale = math.lcm(*(share.denominator for share in found.values()))
    number = {label: i for i, label in enumerate(sensitive.labels)}
    joint = np.arange(len(sensitive), dtype=np.int64)[:, None]

    def one(amounts: Mapping[Any, int], whole: Counts | None) -> Counts:
        items = sorted((number[value], n) for value, n in amounts.items() if n)
        value, n = (np.array(column, dtype=np.int64) for column in zip(*items, strict=True))
        return Counts(1, np.zeros(len(n), dtype=np.int64), value, n, (sensitive,), joint, None, whole)

    whole = one(reference, None)
    return bool(principle.holds(one({v: int(share * scale) for v, share in found.items()}, whole))[0])


def certain_cells(
    tables: Sequence[Sequence[Row]], fits: Callable[..., bool] = lambda *_: True
) -> dict[tuple[Hashable, ...], tuple[int, int]]:
    """Cells of the join that somebody is in however people are seated, with the fewest and the most who can be.

    The rows of a batch in the first table are people; those of the others are dealt to them in every way that `fits`.
    """
    found: dict[tuple[Hashable, ...], list[int]] = {}
    cells = list(product(*({cell for cell, _ in table} for table in tables)))
    low, high = Counter[Any](), Counter[Any]()
    for batch in {batch for _, batch in tables[0]}:
        rows = [[cell for cell, number in table if number == batch] for table in tables]
        worlds = [
            Counter(zip(rows[0], *seats, strict=True)) for seats in product(*(set(permutations(r)) for r in rows[1:]))
        ]
        worlds = [world for world in worlds if all(fits(*cell) for cell in world)]
        for cell in cells:
            low[cell] += min(world[cell] for world in worlds)
            high[cell] += max(world[cell] for world in worlds)
    for cell in cells:
        if low[cell] > 0:
            found[cell] = [low[cell], high[cell]]
    return {cell: (a, b) for cell, (a, b) in found.items()}


def pairs_with_room(
    one: Sequence[Row], two: Sequence[Row], fits: Callable[..., bool]
) -> dict[tuple[Hashable, Hashable], tuple[int, int]]:
    """Pairs of cells that somebody is in since a cell has more people than the others that fit it have room for.

    With how many at least, and at most: whoever is certainly in another cell of the other table is not in this one.
    """
    least, most = Counter[Any](), Counter[Any]()
    for batch in {number for _, number in one}:
        mine, theirs = (Counter(cell for cell, number in table if number == batch) for table in (one, two))
        low = {}
        for a, b in product(mine, theirs):
            if fits(a, b):
                elsewhere = sum(n for other, n in theirs.items() if other != b and fits(a, other))
                others = sum(n for other, n in mine.items() if other != a and fits(other, b))
                low[a, b] = max(0, mine[a] - elsewhere, theirs[b] - others)
        for (a, b), n in low.items():
            left = mine[a] - sum(m for (x, y), m in low.items() if x == a and y != b)
            free = theirs[b] - sum(m for (x, y), m in low.items() if y == b and x != a)
            least[a, b] += n
            most[a, b] += min(left, free)
    return {pair: (n, most[pair]) for pair, n in least.items() if n > 0}
