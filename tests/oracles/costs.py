"""Costs of a release as their definitions say them, row by row, with exact shares."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction


def kl(people: Sequence[int], inferred: Sequence[Fraction]) -> float:
    """Σ F log(F / F*) over the cells that somebody has, F the share of people."""
    total = sum(people)
    return math.fsum(
        n / total * math.log(Fraction(n, total) / own) for n, own in zip(people, inferred, strict=True) if n
    )


def discernibility(sizes: Sequence[int], suppressed: int) -> int:
    """Each row counts the rows that look like it; a suppressed one all rows."""
    rows = sum(sizes) + suppressed
    return sum(size for size in sizes for _ in range(size)) + sum(rows for _ in range(suppressed))


def covered_share(covered: Sequence[int], values: int) -> float:
    """The mean over rows of the share of the other values that a row also covers; `covered` has a number a row."""
    shares = [Fraction(n - 1, values - 1) if values > 1 else Fraction(0) for n in covered]
    return float(sum(shares) / len(shares))


def loss(shares: Sequence[float]) -> float:
    """The geometric mean of 1 + share, minus 1."""
    return math.exp(math.fsum(math.log(1 + share) for share in shares) / len(shares)) - 1
