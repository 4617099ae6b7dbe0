"""An attacker who knows everybody's quasi-identifiers and some marginals, by definition: every world, person by person.

A table is a list of rows of codes, the sensitive value last; `maps` and marginals are those of `oracles.collections`.
A world gives each person one sensitive value so that every marginal comes out as it was published. Nothing here knows
of profiles, programs or exchanges.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from oracles.collections import Cell, Levels, Maps, published, seen


def worlds(rows: Sequence[Cell], collection: Sequence[Levels], maps: Maps) -> Iterator[tuple[int, ...]]:
    """Every way to give the people values that agrees with all marginals."""
    told = [published(rows, levels, maps) for levels in collection]
    for values in itertools.product(range(len(maps[-1][0])), repeat=len(rows)):
        table = [(*row[:-1], value) for row, value in zip(rows, values, strict=True)]
        if all(published(table, levels, maps) == n for levels, n in zip(collection, told, strict=True)):
            yield values


def possible(rows: Sequence[Cell], collection: Sequence[Levels], maps: Maps) -> list[set[int]]:
    """The values that each person has in some world."""
    return [set(values) for values in zip(*worlds(rows, collection, maps), strict=True)]


def beliefs(rows: Sequence[Cell], collection: Sequence[Levels], maps: Maps) -> list[list[float]] | None:
    """Maximum entropy over each person's possible values, all marginals met: by scaling; None where it has not settled.

    One row for each person, so that nothing is assumed of who can be told apart.
    """
    values = len(maps[-1][0])
    p = np.zeros((len(rows), values))
    for person, some in enumerate(possible(rows, collection, maps)):
        p[person, list(some)] = 1
    lines = []
    for levels in collection:
        if levels[-1] >= 0:
            n = published(rows, levels, maps)
            cells: dict[Cell, list[tuple[int, int]]] = {}
            for person, value in itertools.product(range(len(rows)), range(values)):
                cells.setdefault(seen((*rows[person][:-1], value), levels, maps), []).append((person, value))
            lines += [(tuple(zip(*at, strict=True)), n[cell]) for cell, at in cells.items()]
    for _ in range(20_000):
        before = p.copy()
        for at, target in lines:
            now = p[at].sum()
            p[at] *= target / now if now > 0 else 0
        p /= p.sum(axis=1, keepdims=True)
        if np.abs(p - before).max() < 1e-13:
            return [row.tolist() for row in p]
    return None
