"""Collections of generalized marginals over tiny domains, by definition: every cell, every table, every distribution.

A table is a list of rows of codes, the sensitive value last. `maps[attribute][level][code]` is a hierarchy without its
root. A marginal is a tuple of levels, -1 where the attribute is absent. Nothing here knows of graphs or junction trees.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from oracles import principles as by_definition

Cell = tuple[int, ...]
Levels = tuple[int, ...]
Maps = Sequence[Sequence[Sequence[int]]]


def domain(maps: Maps) -> list[Cell]:
    """Every cell of the whole domain."""
    return list(itertools.product(*(range(len(chain[0])) for chain in maps)))


def seen(cell: Cell, levels: Levels, maps: Maps) -> Cell:
    """The cell as a marginal shows it; -1 for what it leaves out."""
    return tuple(-1 if v < 0 else maps[i][v][cell[i]] for i, v in enumerate(levels))


def published(rows: Sequence[Cell], levels: Levels, maps: Maps) -> Counter[Cell]:
    """The counts of a marginal."""
    return Counter(seen(row, levels, maps) for row in rows)


def bound(t: Cell, rows: Sequence[Cell], collection: Sequence[Levels], maps: Maps) -> int:
    """The formula: min(Σ_s min over marginals with the sensitive attribute, min over those without)."""
    total, least = 0, math.inf
    counts = [(levels, published(rows, levels, maps)) for levels in collection]
    for s in range(len(maps[-1][0])):
        with_it = [n[seen((*t, s), levels, maps)] for levels, n in counts if levels[-1] >= 0]
        total += min(with_it, default=len(rows))
    for levels, n in counts:
        if levels[-1] < 0:
            least = min(least, n[seen((*t, 0), levels, maps)])
    return int(min(total, least, len(rows)))


def most_people(t: Cell, rows: Sequence[Cell], collection: Sequence[Levels], maps: Maps) -> int:
    """The most people that a cell of the quasi-identifiers has in any table with these marginals.

    The cell names its quasi-identifiers; all attributes after them are sensitive.
    """
    return most_within({cell for cell in domain(maps) if cell[: len(t)] == t}, rows, collection, maps)


def most_within(some: set[Cell], rows: Sequence[Cell], collection: Sequence[Levels], maps: Maps) -> int:
    """The most people that some cells of the domain have in any table with these marginals: an integer program."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    cells = domain(maps)
    lines: list[list[int]] = [[1] * len(cells)]
    sums = [len(rows)]
    for levels in collection:
        n = published(rows, levels, maps)
        shown = [seen(cell, levels, maps) for cell in cells]
        for node in sorted(set(shown)):
            lines.append([int(one == node) for one in shown])
            sums.append(n[node])
    aim = [-1.0 if cell in some else 0.0 for cell in cells]
    found = milp(
        aim,
        constraints=LinearConstraint(np.array(lines), sums, sums),
        bounds=Bounds(0, len(rows)),
        integrality=np.ones(len(cells)),
    )
    assert found.success, found.message
    return round(-found.fun)


def smallest_breach(
    k: int, rows: Sequence[Cell], collection: Sequence[Levels], maps: Maps, *, hidden: int = 1
) -> int | None:
    """Definition 4.2 by integer programs: the smallest largest count that lies from 1 to k - 1, or None."""
    cells = sorted({cell[:-hidden] for cell in domain(maps)})
    most = [most_people(t, rows, collection, maps) for t in cells]
    return min((n for n in most if 0 < n < k), default=None)


def smallest_group(rows: Sequence[Cell], collection: Sequence[Levels], maps: Maps) -> int:
    """Definition 4.1: the smallest group of any marginal, its quasi-identifiers alone."""
    quasi = [(*levels[:-1], -1) for levels in collection]
    return min(min(published(rows, levels, maps).values()) for levels in quasi)


def maximum_entropy(
    rows: Sequence[Cell], collection: Sequence[Levels], maps: Maps, *, rounds: int = 4000, close: float = 1e-13
) -> dict[Cell, float] | None:
    """Iterative proportional fitting over the whole domain; None where it has not settled."""
    cells = domain(maps)
    p = np.full(len(cells), len(rows) / len(cells))
    targets = []
    for levels in collection:
        n = published(rows, levels, maps)
        nodes, index = np.unique([seen(cell, levels, maps) for cell in cells], axis=0, return_inverse=True)
        targets.append((index.reshape(-1), np.array([n[tuple(int(x) for x in node)] for node in nodes], dtype=float)))
    for _ in range(rounds):
        off = 0.0
        for index, target in targets:
            now = np.bincount(index, weights=p, minlength=len(target))
            off = max(off, float(np.abs(now - target).max()))
            p = p * np.divide(target, now, out=np.zeros_like(target), where=now > 0)[index]
        if off < close * len(rows):
            return dict(zip(cells, p.tolist(), strict=True))
    return None


def conditionals(p: dict[Cell, float], values: int, *, least: float = 1e-9) -> dict[Cell, list[float]]:
    """For each cell of the quasi-identifiers that is possible, the expected number of each sensitive value."""
    found: dict[Cell, list[float]] = {}
    for cell, n in p.items():
        found.setdefault(cell[:-1], [0.0] * values)[cell[-1]] += n
    return {t: row for t, row in found.items() if sum(row) > least}


def level(name: str, row: Sequence[float], *, l: int = 2, reference: Sequence[float] = (), **extra: Any) -> float:
    """What a real-valued row reaches, by the principles' definitions."""
    total = sum(row)
    row = [0.0 if x < 1e-12 * total else x for x in row]
    if name == "distinct":
        return float(sum(x > 0 for x in row))
    if name == "frequency":
        return total / max(row)
    if name == "alpha":
        return max((row[v] for v in extra.get("values", range(len(row)))), default=0.0) / total
    if name == "entropy":
        return math.exp(by_definition.entropy(row))
    if name == "adjusted":
        careless = extra["dont_care"]
        apart = [x for v, x in enumerate(row) if v in careless], [x for v, x in enumerate(row) if v not in careless]
        return math.exp(by_definition.adjusted_entropy(*apart))  # type: ignore[arg-type]
    if name == "recursive":
        return _needed_c(row, l, extra.get("dont_care", ()))
    if name == "closeness":
        share = sum(reference)
        return sum(abs(x / total - q / share) for x, q in zip(row, reference, strict=True)) / 2
    raise ValueError(name)


def _needed_c(row: Sequence[float], l: int, careless: Sequence[int]) -> float:
    """For each value to protect, an attacker rules out the l - 2 others that hurt most."""
    worst = 0.0
    for value, n in enumerate(row):
        if l == 1 or value in careless or n == 0:
            continue
        others = sorted((x for v, x in enumerate(row) if v != value), reverse=True)[l - 2 :]
        worst = max(worst, n / sum(others) if sum(others) > 0 else math.inf)
    return worst
