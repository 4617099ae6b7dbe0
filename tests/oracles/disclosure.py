"""The worst case by brute force: every world, every set of implications, every way to spread atoms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations, permutations, product

Rows = Sequence[Sequence[int]]


def worlds(rows: Rows) -> list[tuple[int, ...]]:
    """Every way to give each bucket's values to its people, person after person, bucket after bucket."""
    values = [[value for value, n in enumerate(row) for _ in range(n)] for row in rows]
    return [sum(world, ()) for world in product(*(sorted(set(permutations(bucket))) for bucket in values))]


class Worlds:
    """All worlds of a bucketization; a statement is the set of worlds in which it is true, as the bits of a number."""

    def __init__(self, rows: Rows) -> None:
        self.worlds = worlds(rows)
        self.everywhere = (1 << len(self.worlds)) - 1
        people, values = len(self.worlds[0]), max(len(row) for row in rows)
        self.atoms = {
            (person, value): sum(1 << i for i, world in enumerate(self.worlds) if world[person] == value)
            for person in range(people)
            for value in range(values)
        }

    def implication(self, given: Sequence[tuple[int, int]], then: Sequence[tuple[int, int]]) -> int:
        """Where a basic implication is true."""
        premise, conclusion = self.everywhere, 0
        for atom in given:
            premise &= self.atoms[atom]
        for atom in then:
            conclusion |= self.atoms[atom]
        return (self.everywhere ^ premise) | conclusion

    def disclosed(self, known: int) -> Fraction:
        """How sure one is of the most likely atom, knowing this; 0 where it cannot be true."""
        if not known:
            return Fraction(0)
        most = max((known & atom).bit_count() for atom in self.atoms.values())
        return Fraction(most, known.bit_count())

    def by_implications(self, k: int) -> Fraction:
        """The most over all sets of k simple implications."""
        return self._most({self.implication([a], [b]) for a in self.atoms for b in self.atoms}, k)

    def by_negations(self, k: int) -> Fraction:
        """The most over all sets of k negations, about whomever."""
        return self._most({self.everywhere ^ atom for atom in self.atoms.values()}, k)

    def _most(self, facts: set[int], k: int) -> Fraction:
        known = {self.everywhere}
        for _ in range(k):
            known |= {one & fact for one in known for fact in facts}
        return max(self.disclosed(one) for one in known)


def partitions(atoms: int, largest: int) -> Iterator[tuple[int, ...]]:
    """Every way to write a number as a sum of parts in descending order."""
    if atoms == 0:
        yield ()
    for part in range(min(atoms, largest), 0, -1):
        for rest in partitions(atoms - part, part):
            yield (part, *rest)


def least_false(row: Sequence[int], atoms: int) -> Fraction:
    """Equation 2 over every way to spread so many atoms, or fewer, over the people of a bucket."""
    size, top = sum(row), sorted(row, reverse=True)
    best = Fraction(1)
    for used in range(atoms + 1):
        for parts in partitions(used, used):
            if len(parts) <= size:
                chance = Fraction(1)
                for person, part in enumerate(parts):
                    chance *= Fraction(max(size - person - sum(top[:part]), 0), size - person)
                best = min(best, chance)
    return best


def maximum(rows: Rows, k: int, *, group: int | None = None) -> Fraction:
    """The maximum disclosure by every way to spread k atoms over the buckets; `group` is where the target must be."""
    free = [[least_false(row, m) for m in range(k + 2)] for row in rows]
    best = None
    for spread in product(range(k + 1), repeat=len(rows)):
        if sum(spread) > k:
            continue
        for target in range(len(rows)) if group is None else [group]:
            ratio = Fraction(sum(rows[target]), max(rows[target]))
            for bucket, atoms in enumerate(spread):
                ratio *= free[bucket][atoms + (bucket == target)]
            best = ratio if best is None else min(best, ratio)
    assert best is not None
    return 1 / (1 + best)


def by_negations(rows: Rows, k: int) -> Fraction:
    """The most by ruling out k values of one person, whichever they are."""
    best = Fraction(0)
    for row in rows:
        there = [value for value, n in enumerate(row) if n]
        for out in combinations(there, min(k, len(there) - 1)):
            left = [row[value] for value in there if value not in out]
            best = max(best, Fraction(max(left), sum(left)))
    return best
