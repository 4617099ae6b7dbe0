"""Array idioms spelled out, one member at a time."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction


def sums(index: Sequence[int], amount: Sequence[int], length: int) -> list[int]:
    """The sum of the amounts of each index."""
    return [sum(a for i, a in zip(index, amount, strict=True) if i == at) for at in range(length)]


def by_key(key: Sequence[int], amount: Sequence[float]) -> dict[int, Fraction]:
    """The exact sum of each key, in the order of the keys."""
    found: dict[int, Fraction] = {}
    for k, a in zip(key, amount, strict=True):
        found[k] = found.get(k, Fraction(0)) + Fraction(a)
    return dict(sorted(found.items()))


def runs(begin: Sequence[int], size: Sequence[int]) -> list[int]:
    """Every run counted out."""
    return [b + i for b, n in zip(begin, size, strict=True) for i in range(n)]


def numbers(rows: Sequence[tuple[int, ...]]) -> tuple[list[int], list[int]]:
    """The rank of each row among the distinct ones, and the first row of each rank."""
    distinct = sorted(set(rows))
    return [distinct.index(row) for row in rows], [rows.index(row) for row in distinct]
