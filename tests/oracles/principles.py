"""Principles as their definitions say them: one group at a time, in fractions, slow and obvious.

A group is a list of counts, one for each value of the column, zeros included. A level is a Fraction where the
definition compares counts, a float where it takes logarithms, and infinity where the definition has no number.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from fractions import Fraction
from itertools import combinations

import numpy as np

Group = Sequence[int]
Row = tuple[Hashable, ...]  # (group, value of each sensitive column …)


# Anonymity


def largest_share(group: Group, size: int, values: Iterable[int] | None = None) -> Fraction:
    """The share of the people who have the most frequent of the values."""
    watched = range(len(group)) if values is None else values
    return max((Fraction(group[v], size) for v in watched), default=Fraction(0))


# Diversity


def distinct_values(group: Group) -> int:
    """How many values occur."""
    return len([n for n in group if n > 0])


def entropy(amounts: Iterable[float]) -> float:
    """The normalized entropy of Equation 9, in nats; 0 log 0 is 0."""
    kept = [x for x in amounts if x > 0]
    total = math.fsum(kept)
    return -math.fsum(x / total * math.log(x / total) for x in kept)


def adjusted_entropy(dont_care: Group, sensitive: Group) -> float:
    """Algorithm 1, with what it leaves open: no sensitive value, and `changeable` running empty."""
    fixed = [float(p) for p in sensitive if p > 0]
    changeable = sorted(float(x) for x in dont_care if x > 0)
    if not fixed:
        return math.inf
    while changeable and math.log(changeable[0]) < log_entropic_mean(fixed):
        fixed.append(changeable.pop(0))
    lowered = [math.exp(log_entropic_mean(fixed))] * len(changeable)
    return entropy(fixed + lowered)


def log_entropic_mean(amounts: Sequence[float]) -> float:
    """M(c_1, …, c_k), the weighted average of the logarithms."""
    return math.fsum(c * math.log(c) for c in amounts) / math.fsum(amounts)


def highest_entropy(dont_care: Group, sensitive: Group) -> float:
    """Definition 4.5 taken at its word: climb to the don't-care counts that make the entropy largest.

    It knows nothing of Theorem 4.1. It climbs in the logarithms of the counts, from several places.
    """
    from scipy.optimize import minimize

    p = np.array([n for n in sensitive if n > 0], dtype=float)
    top = np.log([n for n in dont_care if n > 0])
    if len(p) == 0:
        return math.inf
    if len(top) == 0:
        return entropy(p)

    def downhill(logs: np.ndarray) -> tuple[float, np.ndarray]:
        x = np.exp(logs)
        total = x.sum() + p.sum()
        height = entropy([*x, *p])
        return -height, x / total * (logs - math.log(total) + height)

    bounds = [(min(0.0, t) - 1, t) for t in top]
    starts = [top, top / 2, np.zeros_like(top), np.minimum(top, np.log(p).mean())]
    options = {"ftol": 1e-16, "gtol": 1e-12, "maxiter": 2000}
    found = [minimize(downhill, s, jac=True, method="L-BFGS-B", bounds=bounds, options=options) for s in starts]
    return max(-float(one.fun) for one in found)


def needed_c(group: Group, l: int, dont_care: Iterable[int] = ()) -> Fraction | float:
    """Definitions 4.2 and 4.3: r_y / tail, the number that c must exceed; 0 where nothing is asked."""
    careless = set(dont_care)
    order = sorted(range(len(group)), key=lambda v: -group[v])
    r = {rank: group[value] for rank, value in enumerate(order, 1)}
    m = len(group)
    y = next((rank for rank, value in enumerate(order, 1) if value not in careless), None)
    if l == 1 or y is None or r[y] == 0:
        return Fraction(0)
    if y <= l - 1:
        tail = sum(r[j] for j in range(l, m + 1))
    else:
        tail = sum(r[j] for j in range(l - 1, y)) + sum(r[j] for j in range(y + 1, m + 1))
    return Fraction(r[y], tail) if tail else math.inf


def needed_c_by_attack(group: Group, l: int, dont_care: Iterable[int] = ()) -> Fraction | float:
    """The same from its meaning: for each value to protect, an attacker rules out the l - 2 others that hurt most."""
    careless = set(dont_care)
    if l == 1:
        return Fraction(0)
    worst: Fraction | float = Fraction(0)
    for value, n in enumerate(group):
        if value in careless or n == 0:
            continue
        others = [x for v, x in enumerate(group) if v != value]
        ruled_out = max(sum(chosen) for chosen in combinations(others, min(l - 2, len(others))))
        tail = sum(others) - ruled_out
        worst = max(worst, Fraction(n, tail) if tail else math.inf)
    return worst


def rarest_share(group: Group, size: int, protected: Iterable[int]) -> Fraction:
    """The smallest share that a protected value has (Definition 4.4)."""
    return min((Fraction(group[v], size) for v in protected), default=Fraction(1))


# Closeness


def equal_distance(values: int) -> list[list[Fraction]]:
    """All values equally far apart."""
    return [[Fraction(int(i != j)) for j in range(values)] for i in range(values)]


def ordered_distance(values: int) -> list[list[Fraction]]:
    """As far apart as their ranks, the farthest 1."""
    return [[Fraction(abs(i - j), max(values - 1, 1)) for j in range(values)] for i in range(values)]


def tree_distance(tree: Sequence[Sequence[int]]) -> list[list[Fraction]]:
    """The height of the lowest common ancestor over the height of the tree."""
    height = max(len(tree) - 1, 1)
    values = range(len(tree[0]))
    meet = [[next(h for h, level in enumerate(tree) if level[i] == level[j]) for j in values] for i in values]
    return [[Fraction(h, height) for h in row] for row in meet]


def shares(group: Group) -> list[Fraction]:
    """A group's distribution."""
    return [Fraction(n, sum(group)) for n in group]


def earth_mover(group: Group, reference: Group, distance: Sequence[Sequence[Fraction]]) -> float:
    """The earth mover's distance as it is defined: the cheapest way to move one distribution onto the other."""
    from scipy.optimize import linprog

    m = len(group)
    leaves = np.kron(np.eye(m), np.ones(m))
    arrives = np.kron(np.ones(m), np.eye(m))
    p, q = ([float(x) for x in shares(side)] for side in (group, reference))
    cost = [float(d) for row in distance for d in row]
    found = linprog(cost, A_eq=np.vstack([leaves, arrives]), b_eq=[*p, *q], bounds=(0, None), method="highs")
    assert found.status == 0, found.message
    return float(found.fun)


def equal_closeness(group: Group, reference: Group) -> Fraction:
    """½ Σ |p - q|, absent values among them."""
    return sum((abs(p - q) for p, q in zip(shares(group), shares(reference), strict=True)), Fraction(0)) / 2


def ordered_closeness(group: Group, reference: Group) -> Fraction:
    """1/(m-1) Σ_i |Σ_j≤i (p_j - q_j)|."""
    p, q, m = shares(group), shares(reference), len(group)
    partial = [abs(sum(p[: i + 1]) - sum(q[: i + 1])) for i in range(m)]
    return sum(partial, Fraction(0)) / (m - 1) if m > 1 else Fraction(0)


def hierarchical_closeness(group: Group, reference: Group, tree: Sequence[Sequence[int]]) -> Fraction:
    """Li et al. 2007: at each inner node, height/H times what its children can settle among themselves."""
    extra = [p - q for p, q in zip(shares(group), shares(reference), strict=True)]
    height = len(tree) - 1
    cost = Fraction(0)
    for h in range(1, height + 1):
        for node in set(tree[h]):
            children = {tree[h - 1][v] for v in range(len(extra)) if tree[h][v] == node}
            below = [sum(extra[v] for v in range(len(extra)) if tree[h - 1][v] == child) for child in children]
            surplus, lack = sum(x for x in below if x > 0), -sum(x for x in below if x < 0)
            cost += Fraction(h, height) * min(surplus, lack)
    return cost


# From literal rows


def counts_by_group(rows: Iterable[Row], column: int) -> dict[Hashable, Counter[Hashable]]:
    """How often each value of a sensitive column stands in each group."""
    found: dict[Hashable, Counter[Hashable]] = {}
    for group, *values in rows:
        found.setdefault(group, Counter())[values[column]] += 1
    return found


def multi_attribute(rows: Sequence[Row], columns: int, holds: Callable[[list[int]], bool]) -> dict[Hashable, bool]:
    """Definition 4.6: each sensitive column in turn the only one, all the others part of the quasi-identifier."""
    verdict = {row[0]: True for row in rows}
    for column in range(columns):
        wider = [((group, *values[:column], *values[column + 1 :]), values[column]) for group, *values in rows]
        for block, counter in counts_by_group(wider, 0).items():
            verdict[block[0]] &= holds(list(counter.values()))  # type: ignore[index]
    return verdict


def people_by_group(rows: Iterable[tuple[Hashable, Row]], column: int) -> dict[Hashable, dict[Hashable, set[Hashable]]]:
    """Who has each value of a column in each group; rows are (person, (group, values …))."""
    found: dict[Hashable, dict[Hashable, set[Hashable]]] = {}
    for person, (group, *values) in rows:
        found.setdefault(group, {}).setdefault(values[column], set()).add(person)
    return found
