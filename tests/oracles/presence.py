"""Presence by listing every way in which so many of a group can be present, in exact fractions."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

Row = tuple[str, ...]
Tree = Mapping[str, tuple[str, ...]]  # the values under each label


def existence(likelihoods: Sequence[Fraction], present: int) -> list[Fraction]:
    """Equation 4 as it is printed: sums over all subsets."""
    members = range(len(likelihoods))
    ways = {
        s: math.prod((likelihoods[i] for i in s), start=Fraction(1)) for s in itertools.combinations(members, present)
    }
    whole = sum(ways.values(), Fraction(0))
    return [sum((p for s, p in ways.items() if k in s), Fraction(0)) / whole for k in members]


def precise(likelihoods: Sequence[float], present: int, asked: Sequence[int], digits: int = 60) -> list[Decimal]:
    """The same for some members of a large group: elementary symmetric polynomials with many digits."""
    with localcontext() as context:
        context.prec = digits
        odds = [Decimal(float(p)) for p in likelihoods]
        whole = _symmetric(odds, present)
        return [odds[k] * _symmetric(odds[:k] + odds[k + 1 :], present - 1) / whole for k in asked]


def one_by_one(likelihoods: NDArray[np.float64], present: int, k: int) -> np.longdouble:
    """The same for one member of a very large group: q g[n-1] / (q g[n-1] + r g[n]), g of how many others succeed.

    Whatever factor the odds have, the result is the same: it only keeps numbers within reach. All terms are positive,
    so that the relative error stays below (members × the precision).
    """
    low, high = -100.0, 100.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        odds = likelihoods * math.exp(middle)
        low, high = (low, middle) if (odds / (1 + odds)).sum() > present else (middle, high)
    odds = np.asarray(likelihoods, dtype=np.longdouble) * np.exp(np.longdouble(low))
    q, r = odds / (1 + odds), 1 / (1 + odds)
    mass = np.zeros(present + 1, dtype=np.longdouble)
    mass[0] = 1
    for i in range(len(odds)):
        if i != k:
            mass[1:] = mass[1:] * r[i] + mass[:-1] * q[i]
            mass[0] *= r[i]
    with_it, without = q[k] * mass[present - 1], r[k] * mass[present]
    return with_it / (with_it + without)


def _symmetric(odds: Sequence[Decimal], degree: int) -> Decimal:
    sums = [Decimal(1)] + [Decimal(0)] * degree
    for seen, x in enumerate(odds):
        for j in range(min(degree, seen + 1), 0, -1):
            sums[j] += x * sums[j - 1]
    return sums[degree]


def shares(cell: str, tree: Tree) -> dict[str, Fraction]:
    """The distribution that a cell shows: {a: 0.75, b: 1/4}, {a, b}, a label of the tree, or a value."""
    if cell in tree:
        return {value: Fraction(1, len(tree[cell])) for value in tree[cell]}
    if not cell.startswith("{"):
        return {cell: Fraction(1)}
    parts = [part.split(": ") for part in cell[1:-1].split(", ")]
    return {part[0]: Fraction(part[1]) if len(part) == 2 else Fraction(1, len(parts)) for part in parts}


def presence(published: Sequence[Row], public: Sequence[Row], trees: Sequence[Tree]) -> list[Fraction]:
    """The probability of each public person, from the texts of the published quasi-identifiers."""
    found = [Fraction(0)] * len(public)
    for cells, rows in Counter(published).items():
        spread = [shares(cell, tree) for cell, tree in zip(cells, trees, strict=True)]
        likely = [
            math.prod((s.get(v, Fraction(0)) for s, v in zip(spread, person, strict=True)), start=Fraction(1))
            for person in public
        ]
        inside = [i for i, p in enumerate(likely) if p]
        for i, probability in zip(inside, existence([likely[i] for i in inside], rows), strict=True):
            assert not found[i], "two groups cover one person"
            found[i] = probability
    return found


def cost(published: Sequence[Row], private: Sequence[Row], trees: Sequence[Tree]) -> float:
    """The KL cost, Equation 1: each private person in the one group that covers it."""
    total = 0.0
    for person in private:
        for cells in set(published):
            spread = [shares(cell, tree) for cell, tree in zip(cells, trees, strict=True)]
            probabilities = [s.get(v, Fraction(0)) for s, v in zip(spread, person, strict=True)]
            if all(probabilities):
                total -= sum(math.log(p) for p in probabilities)
    return total


def best_levels(public: Sequence[Row], private: Sequence[Row], levels: Sequence[Sequence[Tree]], *,
                low: Fraction, high: Fraction) -> float | None:  # fmt: skip
    """The least KL cost of any full-domain generalization within the bounds, each cell spread evenly; None for none.

    levels[column][level] says which values are under each label of a level.
    """
    best = None
    for node in itertools.product(*(range(len(column)) for column in levels)):
        trees = [column[level] for column, level in zip(levels, node, strict=True)]
        shown = {v: label for tree in trees for label, under in tree.items() for v in under}
        groups = Counter(tuple(shown[v] for v in person) for person in public)
        present = Counter(tuple(shown[v] for v in person) for person in private)
        if all(low <= Fraction(present[group], size) <= high for group, size in groups.items()):
            price = sum(
                math.log(len(tree[shown[v]])) for person in private for tree, v in zip(trees, person, strict=True)
            )
            best = price if best is None else min(best, price)
    return best


def decoded(
    published: Sequence[Row], public: Sequence[Row], trees: Sequence[Tree], whole: int
) -> tuple[set[int], set[int], int]:
    """Who of the public table is in every private one that shows these fractions, who in none, and how many groups
    allow one set of private counts only.

    Lists every choice of people for each group and every shift in parts of `whole`, and keeps those whose cells,
    shifted from even shares towards the frequencies of the chosen, are the published ones.
    """
    always, never, alone = set[int](), set(range(len(public))), 0
    for cells, rows in Counter(published).items():
        spread = [shares(cell, tree) for cell, tree in zip(cells, trees, strict=True)]
        inside = [
            i for i, person in enumerate(public) if all(v in s for s, v in zip(spread, person, strict=True))
        ]  # fmt: skip
        worlds, counts = [], set()
        for chosen in itertools.combinations(inside, rows):
            if any(_shows(spread, [public[i] for i in chosen], Fraction(step, whole)) for step in range(whole + 1)):
                worlds.append(set(chosen))
                counts.add(
                    tuple(tuple(sorted(Counter(public[i][j] for i in chosen).items())) for j in range(len(cells)))
                )
        assert worlds, "the truth is a world"
        always |= set.intersection(*worlds)
        never -= set.union(*worlds)
        even = all(len(set(s.values())) == 1 for s in spread)
        alone += len(counts) == 1 and not even
    return always, never, alone


def _shows(spread: Sequence[Mapping[str, Fraction]], chosen: Sequence[Row], shift: Fraction) -> bool:
    """Whether cells over the same values show this, when the chosen are the private rows and it is shifted so far."""
    for j, shown in enumerate(spread):
        often = Counter(row[j] for row in chosen)
        for value, share in shown.items():
            if (1 - shift) / len(shown) + shift * Fraction(often[value], len(chosen)) != share:
                return False
    return True
