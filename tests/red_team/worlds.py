"""Every world of a few people: all arrangements of a multiset of values, all at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from itertools import combinations, permutations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jali.core.arrays import Ints

World = NDArray[np.int8]


def number_of_worlds(histogram: Sequence[int] | Ints) -> int:
    """n! / Π n_v!"""
    counts = [int(n) for n in histogram]
    return math.factorial(sum(counts)) // math.prod(math.factorial(n) for n in counts)


@cache
def arrangements(histogram: tuple[int, ...]) -> World:
    """All assignments of these values to as many people, each once: (worlds, people)."""
    n = sum(histogram)
    worlds = np.full((1, n), -1, dtype=np.int8)
    for value, many in enumerate(histogram):
        free = [np.flatnonzero(world < 0) for world in worlds]
        chosen = [np.array(c, dtype=np.int64) for c in combinations(range(len(free[0])), many)]
        worlds = np.repeat(worlds, len(chosen), axis=0)
        for at, (left, places) in enumerate((left, places) for left in free for places in chosen):
            worlds[at, left[places]] = value
    worlds.setflags(write=False)
    return worlds


@cache
def orders(n: int) -> World:
    """All orders of n people: (n!, n)."""
    return np.array(list(permutations(range(n))), dtype=np.int8).reshape(math.factorial(n), n)


@cache
def divisions(n: int, sizes: tuple[int, ...]) -> list[tuple[tuple[int, ...], ...]]:
    """All ways to divide n people into parts of these sizes."""

    def of(people: tuple[int, ...], sizes: tuple[int, ...]) -> list[tuple[tuple[int, ...], ...]]:
        if not sizes:
            return [()]
        return [
            (chosen, *rest)
            for chosen in combinations(people, sizes[0])
            for rest in of(tuple(p for p in people if p not in chosen), sizes[1:])
        ]

    return of(tuple(range(n)), sizes)


def numbered(columns: Sequence[Ints]) -> tuple[Ints, Ints]:
    """Equal rows of several columns get equal numbers from 0 on: the number of each row, and a row of each number."""
    key = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        width = int(column.max(initial=0)) + 1
        if (int(key.max(initial=0)) + 1) * width >= 2**62:
            key = np.unique(key, return_inverse=True)[1].reshape(-1)
        key = key * width + column
    _, first, number = np.unique(key, return_index=True, return_inverse=True)
    return number.reshape(-1), first


def believed(key: Ints, worlds: World, values: int, weight: Ints | None = None) -> tuple[Ints, Ints]:
    """What an attacker believes who sees release `key`: weights of (releases, people, values), and (releases,)."""
    people = worlds.shape[1]
    cell = (key[:, None] * people + np.arange(people)) * values + worlds
    heft = None if weight is None else np.repeat(weight, people)
    releases = int(key.max()) + 1
    belief = np.bincount(cell.ravel(), heft, releases * people * values).astype(np.int64)
    return belief.reshape(releases, people, values), np.bincount(key, weight, releases).astype(np.int64)


class Outcome(NamedTuple):
    """What became of one table."""

    worlds: int
    releases: int
    excess: Fraction  # the most by which a belief is above what is published
    broken: int = 0  # releases in which somebody's belief breaks a promise


def excess(belief: Ints, total: Ints, share: Ints, size: Ints) -> Fraction:
    """The most by which belief / total is above share / size, exactly."""
    above = belief * size - share * total
    if not (above > 0).any():
        return Fraction(0)
    at = np.unravel_index(np.argmax(above / (size * total)), above.shape)
    bottom = np.broadcast_to(size * total, above.shape)
    return Fraction(int(above[at]), int(bottom[at]))
