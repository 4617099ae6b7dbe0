"""Beliefs in small tables, exactly: each world is published again or counted, and whose promise a belief breaks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations, islice, product
from math import factorial, lcm, prod
from time import monotonic
from typing import NamedTuple

import numpy as np

from jali.core.arrays import Bools, Floats, Ints
from jali.principles import Safety
from jali.principles.base import Principle, exact
from jali.risk.attacks.replay import People, Replay
from jali.search.gate import judged_alone

Row = tuple[int, ...]
Way = tuple[Row, ...]
"""How the values of a group are spread over its slots: (slots, values)."""
Clauses = Sequence[Sequence[Bools]]
"""In each clause parts, (slots,), of which at least one breaks a promise."""
Term = dict[Row, int]
"""Coefficients by the exponents of all values but one."""

DEEPEST = 100
"""Groups of more slots than this have too many worlds in any case."""
WAYS = 1_000
"""How many ways to spread the values of a group over its parts are looked at."""
CELLS = 2_000
"""The largest table of counts that is filled where parts fail independently of each other."""
STEPS = 20_000_000
"""The most products of numbers that are summed up for it."""
SHARES = 2**40
"""Beliefs are judged as numbers of people, of this many; where fractions fit they are exact."""
LEAST = 2**20
"""The fewest people that beliefs are judged as, so that no promise about sizes is in the way."""


# -- every world of a small release ---------------------------------------------------------------------------------


class Belief(NamedTuple):
    """What the attacker believes of the people of each slot, and how it was found."""

    chance: list[list[Fraction]]  # (slots, values)
    worlds: int  # that were looked at
    same: int  # of them those that lead to the release
    survivors: tuple[tuple[Ints, int], ...] = ()  # worlds that lead to it, (slots, values) each, and their weights


def spreads(counts: Row, sizes: Row) -> Iterator[Way]:
    """Every way to spread values over parts: tables with these column and row sums.

    >>> list(spreads((1, 1), (1, 1)))
    [((0, 1), (1, 0)), ((1, 0), (0, 1))]
    """
    if len(sizes) == 1:
        yield (counts,)
        return
    for row in _takes(counts, sizes[0]):
        left = tuple(n - taken for n, taken in zip(counts, row, strict=True))
        for rest in spreads(left, sizes[1:]):
            yield (row, *rest)


def _takes(counts: Row, size: int) -> Iterator[Row]:
    """Every way to take `size` of these people, by value."""
    if not counts:
        yield ()
        return
    rest = sum(counts[1:])
    for first in range(max(0, size - rest), min(counts[0], size) + 1):
        for others in _takes(counts[1:], size - first):
            yield (first, *others)


def arrangements(way: Way) -> int:
    """How many assignments of values to single people a way stands for: Π_slot size! / Π_value n!."""
    return prod(factorial(sum(row)) // prod(map(factorial, row)) for row in way)


def ways_of(people: People, group: Ints, most: int) -> list[list[Way]] | None:
    """The ways of each group, when each slot is in a group; None where all of them together are more than `most`."""
    counts, size = people.counts, people.size
    found, total = [], 1
    for one in range(int(group.max()) + 1):
        own = np.flatnonzero(group == one)
        histogram, sizes = tuple(counts[own].sum(axis=0).tolist()), tuple(size[own].tolist())
        if len(own) > DEEPEST and sum(n > 0 for n in histogram) > 1:
            return None
        used = [value for value, n in enumerate(histogram) if n]
        some = islice(spreads(tuple(histogram[value] for value in used), sizes), most // total + 1)
        ways = [_widened(way, used, len(histogram)) for way in some] if len(used) > 1 else [_alone(histogram, sizes)]
        total *= len(ways)
        if total > most:
            return None
        found.append(ways)
    return found


def _widened(way: Way, used: list[int], width: int) -> Way:
    """A way over some of the values, over all of them."""
    place = {value: at for at, value in enumerate(used)}
    return tuple(tuple(row[place[v]] if v in place else 0 for v in range(width)) for row in way)


def _alone(histogram: Row, sizes: Row) -> Way:
    """The only way where everybody has the same value."""
    return tuple(tuple(size if n else 0 for n in histogram) for size in sizes)


def enumerate_worlds(people: People, group: Ints, replay: Replay, ways: list[list[Way]], until: float) -> Belief | None:
    """The share of the worlds that lead to the release; None where the time is up before all were looked at."""
    slots = [np.flatnonzero(group == one) for one in range(len(ways))]
    weight = [[arrangements(way) for way in own] for own in ways]
    sums = np.zeros(people.counts.shape, dtype=object)
    survivors: list[tuple[Ints, int]] = []
    looked_at = total = 0
    for chosen in product(*(range(len(own)) for own in ways)):
        if monotonic() > until:
            return None
        world = np.zeros(people.counts.shape, dtype=np.int64)
        for own, place, one in zip(ways, slots, chosen, strict=True):
            world[place] = own[one]
        looked_at += 1
        if replay.same(people.world(world)):
            many = prod(own[one] for own, one in zip(weight, chosen, strict=True))
            sums, total = sums + world.astype(object) * many, total + many
            survivors.append((world, many))
    size = people.size.tolist()
    if not total:
        return Belief([], looked_at, 0)
    chance = [[Fraction(int(n), total * size[slot]) for n in row] for slot, row in enumerate(sums)]
    return Belief(chance, looked_at, len(survivors), tuple(survivors))


def given_facts(belief: Belief, column: Ints, slot: int, value: int, facts: int) -> Fraction:
    """The largest belief that somebody of a slot has a value of a column, given `facts` facts about single people.

    Every slot must be one person, and `column` is the column's value of each value. The worst fact says that if
    somebody has some value, then this person has this one: it rules out the worlds in which only the first is true.
    The worst k of them are looked for among all sets of k.
    """
    worlds = np.stack([np.argmax(world, axis=1) for world, _ in belief.survivors])
    held, many = column[worlds], np.array([weight for _, weight in belief.survivors], dtype=object)
    yes = held[:, slot] == value
    has, rest = sum(many[yes], 0), held[~yes]
    others = many[~yes]
    if not has:
        return Fraction(0)
    ruled_out = {
        tuple(np.flatnonzero(rest[:, person] == one).tolist())
        for person in range(held.shape[1])
        for one in set(rest[:, person].tolist())
    }
    most = max(
        (sum(others[list(set().union(*some))], 0) for some in combinations(ruled_out, min(facts, len(ruled_out)))),
        default=0,
    )
    return Fraction(int(has), int(has + sum(others, 0) - most))


# -- one group, when what is known speaks of this group alone -------------------------------------------------------


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
    belief = _spread(people, histogram, of, parts, principles) if atoms <= 200 else None
    if belief is None and alone:
        belief = _independent(people, histogram, of, {int(clause[0][0]) for clause in parts}, principles)
    return None if belief is None else [belief[one] for one in atom.tolist()]


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
    """The histograms of `size` people, those that break one of the promises if any; None where there are too many."""
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


def _belief(term: Term, rest: tuple[Term, Term], goal: Row, values: tuple[list[int], int], of: Row) -> list[Fraction]:
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


# -- whose promise a belief breaks: it is put in the place of the shares of the group ------------------------------


def as_people(chance: Sequence[Sequence[Fraction]]) -> Ints:
    """Beliefs as numbers of people, row by row: (rows, values)."""
    rows = np.zeros((len(chance), len(chance[0])), dtype=np.int64)
    for row, shares in enumerate(chance):
        whole = lcm(*(share.denominator for share in shares))
        whole = whole * -(-LEAST // whole) if whole <= SHARES else 0
        if whole:
            rows[row] = [int(share * whole) for share in shares]
        else:  # rounded so that what is possible stays possible
            rows[row] = [-(-share.numerator * SHARES // share.denominator) for share in shares]
    return rows


def shrunk(chance: Floats, published: Floats, margin: Floats) -> Ints:
    """Estimated beliefs moved towards the published ones by their margins, as numbers of people: (rows, values)."""
    moved = np.where(chance > published, np.maximum(chance - margin, published), np.minimum(chance + margin, published))
    moved = moved / np.maximum(moved.sum(axis=1, keepdims=True), 1e-300)
    return np.asarray(np.ceil(moved * SHARES), dtype=np.int64)


def breaks(people: People, rows: Ints, principles: Sequence[Principle]) -> Bools:
    """Whose beliefs, as numbers of people, break a promise: (rows,). Safety is judged without facts."""
    counts = people.judge(rows)
    broken = np.zeros(len(rows), dtype=bool)
    for principle in principles:
        plain = Safety(principle.c, 0, sensitive=principle.sensitive) if isinstance(principle, Safety) else principle
        broken |= ~plain.alone(counts)
    return broken


def breaks_given_facts(people: People, belief: Belief, principles: Sequence[Principle]) -> Bools:
    """Of whom somebody who knows k more facts is too sure, as Safety(c, k) promises: (slots,), each one person."""
    f = people.table.frequencies
    joint = f.whole
    broken = np.zeros(people.slots, dtype=bool)
    for principle in principles:
        if not isinstance(principle, Safety) or principle.k == 0:
            continue
        at = joint.sensitive.index(joint.column(principle.sensitive))
        column = joint.joint[people.judged, at]
        for slot in range(people.slots):
            chances = (given_facts(belief, column, slot, value, principle.k) for value in set(column.tolist()))
            broken[slot] |= max(chances) >= exact("c", principle.c)
    return broken
