"""Exact beliefs in one group, when what is known speaks of this group alone."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import islice
from math import factorial, prod

import numpy as np

from jali.core.arrays import Bools, Ints
from jali.principles.base import Principle
from jali.risk.attacks.enumerated import Row, arrangements, spreads
from jali.risk.attacks.replay import People
from jali.search.gate import judged_alone

WAYS = 1_000
"""How many ways to spread the values of a group over its parts are looked at."""
CELLS = 2_000
"""The largest table of counts that is filled where parts fail independently of each other."""
STEPS = 20_000_000
"""The most products of numbers that are summed up for it."""

Clauses = Sequence[Sequence[Bools]]
"""In each clause parts, (slots,), of which at least one breaks a promise."""


def counted(
    people: People, sizes: Ints, histogram: Row, clauses: Clauses, principles: tuple[Principle, ...]
) -> list[list[Fraction]] | None:
    """The beliefs of each slot of a group, (slots, values); None where there is too much to count."""
    if not clauses or sum(n > 0 for n in histogram) == 1:
        whole = sum(histogram)
        return [[Fraction(n, whole) for n in histogram]] * len(sizes)
    atom, atoms = _atoms(len(sizes), clauses)
    of = tuple(np.bincount(atom, sizes).astype(int).tolist())
    parts = [[np.unique(atom[part]) for part in clause] for clause in clauses]
    alone = all(len(clause) == 1 and len(clause[0]) == 1 for clause in parts)
    found = _spread(people, histogram, of, parts, principles) if atoms <= 200 else None
    if found is None and alone:
        found = _independent(people, histogram, of, {int(clause[0][0]) for clause in parts}, principles)
    return None if found is None else [found[one] for one in atom.tolist()]


def _atoms(slots: int, clauses: Clauses) -> tuple[Ints, int]:
    """Slots that are in the same parts are one atom: the atom of each, and how many there are."""
    marks = np.array([part for clause in clauses for part in clause], dtype=bool).reshape(-1, slots)
    packed = np.packbits(marks, axis=0)
    _, atom = np.unique(packed, axis=1, return_inverse=True)
    return atom.reshape(-1).astype(np.int64), int(atom.max()) + 1


def _spread(
    people: People, histogram: Row, sizes: Row, parts: list[list[Ints]], principles: tuple[Principle, ...]
) -> list[list[Fraction]] | None:
    """Every way to spread the values over the atoms, those left out in which a clause is not fulfilled."""
    used = [value for value, n in enumerate(histogram) if n]
    ways = list(islice(spreads(tuple(histogram[value] for value in used), sizes), WAYS + 1))
    if len(ways) > WAYS:
        return None
    held = np.zeros((len(ways), len(sizes), len(histogram)), dtype=np.int64)
    held[:, :, used] = np.array(ways, dtype=np.int64)
    possible = np.ones(len(ways), dtype=bool)
    for clause in parts:
        fails = np.zeros(len(ways), dtype=bool)
        for part in clause:
            fails |= ~judged_alone(principles, people.judge(held[:, part].sum(axis=1)))
        possible &= fails
    sums, total = np.zeros(held.shape[1:], dtype=object), 0
    for at in np.flatnonzero(possible).tolist():
        weight = arrangements(ways[at])
        sums, total = sums + held[at].astype(object) * weight, total + weight
    return [[Fraction(int(n), total * size) for n in row] for row, size in zip(sums, sizes, strict=True)]


def _independent(
    people: People, histogram: Row, sizes: Row, failing: set[int], principles: tuple[Principle, ...]
) -> list[list[Fraction]] | None:
    """Each failing atom fails by itself, and the rest is free: products of generating functions.

    An atom of s people gives Σ s! / Π n! x^n over its histograms n that fail; the number of worlds is the coefficient
    of the group's histogram in the product. For the belief in one atom the product of all others is needed: those
    before it times those after it.
    """
    used = [value for value, n in enumerate(histogram) if n]
    last = max(used, key=lambda value: histogram[value])
    axes = [value for value in used if value != last]  # the last count follows from the size
    shape = tuple(histogram[value] + 1 for value in axes)
    if prod(shape) > CELLS:
        return None
    terms = [
        _terms(people, size, (axes, last), shape, principles if one in failing else ())
        for one, size in enumerate(sizes)
    ]
    if any(term is None for term in terms):
        return None
    known = [term for term in terms if term is not None]
    if sum(map(len, known)) * 3 * prod(shape) > STEPS:
        return None
    before, after = [_unit(shape)], [_unit(shape)]
    for term in known[:-1]:
        before.append(_times(before[-1], term, shape))
    for term in reversed(known[1:]):
        after.append(_times(after[-1], term, shape))
    goal = tuple(histogram[value] for value in axes)
    return [
        _belief(term, (one, other), goal, (axes, last), (size, len(histogram)))
        for term, one, other, size in zip(known, before, reversed(after), sizes, strict=True)
    ]


Term = dict[Row, int]
"""Coefficients by the exponents of all values but one."""


def _unit(shape: Row) -> Term:
    return {(0,) * len(shape): 1}


def _times(one: Term, other: Term, shape: Row) -> Term:
    made: Term = {}
    for a, x in one.items():
        for b, y in other.items():
            key = tuple(i + j for i, j in zip(a, b, strict=True))
            if all(i < n for i, n in zip(key, shape, strict=True)):
                made[key] = made.get(key, 0) + x * y
    return made


def _terms(
    people: People, size: int, values: tuple[list[int], int], shape: Row, must_break: tuple[Principle, ...]
) -> Term | None:
    """The histograms that so many people can have and that break one of the promises, if any, and their weights."""
    axes, last = values
    limits = tuple(min(size, n - 1) for n in shape)
    if prod(n + 1 for n in limits) > CELLS:
        return None
    grid = np.stack(np.meshgrid(*(np.arange(n + 1) for n in limits), indexing="ij"), axis=-1).reshape(-1, len(axes))
    grid = grid[grid.sum(axis=1) <= size]
    rows = np.zeros((len(grid), len(people.judged)), dtype=np.int64)
    rows[:, axes] = grid
    rows[:, last] = size - grid.sum(axis=1)
    if must_break:
        broken = ~judged_alone(must_break, people.judge(rows))
        grid, rows = grid[broken], rows[broken]
    made = (factorial(size) // prod(map(factorial, row)) for row in rows.tolist())
    return {tuple(key): weight for key, weight in zip(grid.tolist(), made, strict=True)}


def _coefficient(one: Term, other: Term, at: Row) -> int:
    """The coefficient of a product."""
    few, many = (one, other) if len(one) < len(other) else (other, one)
    return sum(x * many.get(tuple(g - n for g, n in zip(at, key, strict=True)), 0) for key, x in few.items())


def _belief(
    term: Term, rest: tuple[Term, Term], goal: Row, values: tuple[list[int], int], of: Row
) -> list[Fraction]:  # fmt: skip
    """How likely somebody of an atom has each value, from its own histograms and those of the atoms around it."""
    (axes, last), (size, width) = values, of
    sums, total = [0] * width, 0
    for key, weight in term.items():
        many = weight * _coefficient(*rest, tuple(g - n for g, n in zip(goal, key, strict=True)))
        total += many
        for value, n in zip(axes, key, strict=True):
            sums[value] += many * n
        sums[last] += many * (size - sum(key))
    return [Fraction(n, total * size) for n in sums]
