"""Sampling worlds: where counting them all would take too long, how often facts hold among random ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jali.errors import InputError
from jali.risk.buckets import Buckets
from jali.risk.count_worlds import Clause, Fact
from jali.risk.knowledge import Person

Bools = NDArray[np.bool_]

AT_ONCE = 1 << 20
"""How many numbers a batch of worlds may hold."""


@dataclass(frozen=True)
class Sampled:
    """How many of the drawn worlds satisfied the clauses, and each fact in them."""

    worlds: int
    kept: int
    hits: tuple[int, ...]  # (facts,)


def sample(
    buckets: Buckets, clauses: Sequence[Clause], facts: Sequence[Fact], worlds: int, random: np.random.Generator
) -> Sampled:
    """Draw worlds of the buckets that the clauses speak of, and count those that satisfy them (rejection)."""
    wanted = set(facts).union(*(clause.given | clause.then for clause in clauses))
    asked: dict[int, tuple[list[Person], list[int]]] = {}
    for bucket in sorted({person.bucket for person, _ in wanted}):
        mine = [(person, value) for person, value in wanted if person.bucket == bucket]
        asked[bucket] = (sorted({person for person, _ in mine}), sorted({value for _, value in mine}))
    width = max(len(values) + len(people) for people, values in asked.values())
    batch = max(1, min(worlds, AT_ONCE // (width + 1)))
    kept, hits, drawn = 0, np.zeros(len(facts), dtype=np.int64), 0
    while drawn < worlds:
        size = min(batch, worlds - drawn)
        has: dict[Person, NDArray[np.int64]] = {}
        for bucket, (people, values) in asked.items():
            has |= _draw(buckets, bucket, people, values, (size, random))
        right = np.ones(size, dtype=bool)
        for clause in clauses:
            right &= ~_all(has, clause.given, size) | ~_none(has, clause.then, size)
        kept += int(right.sum())
        hits += np.array([int((right & (has[person] == value)).sum()) for person, value in facts], dtype=np.int64)
        drawn += size
    return Sampled(worlds, kept, tuple(hits.tolist()))


def _draw(
    buckets: Buckets, bucket: int, people: list[Person], values: list[int], how: tuple[int, np.random.Generator]
) -> dict[Person, NDArray[np.int64]]:
    """A value of each person in each world, drawn without replacement; -1 is any value that is not asked about."""
    worlds, random = how
    size, counts = int(buckets.size[bucket]), buckets.counts(bucket)
    have = [counts.get(value, 0) for value in values]
    left = np.tile(np.array([*have, size - sum(have)], dtype=np.int64), (worlds, 1))  # (worlds, values + 1)
    name = np.array([*values, -1], dtype=np.int64)
    drawn = {}
    for done, person in enumerate(people):
        ticket = random.integers(0, size - done, worlds)
        pick = (ticket[:, None] >= np.cumsum(left, axis=1)).sum(axis=1)
        left[np.arange(worlds), pick] -= 1
        drawn[person] = name[pick]
    return drawn


def _all(has: dict[Person, NDArray[np.int64]], facts: frozenset[Fact], worlds: int) -> Bools:
    result = np.ones(worlds, dtype=bool)
    for person, value in facts:
        result &= has[person] == value
    return result


def _none(has: dict[Person, NDArray[np.int64]], facts: frozenset[Fact], worlds: int) -> Bools:
    result = np.ones(worlds, dtype=bool)
    for person, value in facts:
        result &= has[person] != value
    return result


def interval(hits: int, of: int, confidence: float) -> tuple[float, float]:
    """The interval of Clopper and Pearson: it covers the true share at least as often as `confidence` says.

    >>> [round(end, 4) for end in interval(0, 10, 0.95)]
    [0.0, 0.3085]
    """
    if not 0 < confidence < 1:
        raise InputError("the confidence must lie between 0 and 1", got=f"{confidence:g}")
    tail = (1 - confidence) / 2
    if not of:
        return 0.0, 1.0
    log_choose = _log_choose(of)
    low = 0.0 if hits == 0 else _where(lambda p: _share(log_choose, p, hits, of + 1) > tail)
    high = 1.0 if hits == of else _where(lambda p: _share(log_choose, p, 0, hits + 1) < tail)
    return low, high


def _log_choose(of: int) -> NDArray[np.float64]:
    """ln of `of` over h, for every h: (of + 1,)."""
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, of + 1)))])
    return np.asarray(logs[-1] - logs - logs[::-1])


def _share(log_choose: NDArray[np.float64], p: float, first: int, end: int) -> float:
    """Pr(first ≤ hits < end) when each of len(log_choose) − 1 trials hits with probability p."""
    hits = np.arange(first, end)
    logs = log_choose[first:end] + hits * np.log(p) + (len(log_choose) - 1 - hits) * np.log1p(-p)
    return float(np.exp(logs).sum())


def _where(beyond: Callable[[float], bool]) -> float:
    """Where a test on (0, 1) turns from false to true."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if beyond(middle) else (middle, high)
    return (low + high) / 2
