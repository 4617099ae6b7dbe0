"""Every world of a small bucketization, one by one: slow and obvious."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import permutations, product

from jali.risk.disclosure.knowledge import Atom, Implication

World = tuple[tuple[int, ...], ...]  # the value of each person, bucket by bucket


def worlds(buckets: Sequence[Sequence[int]]) -> Iterator[World]:
    """All assignments of a bucket's values to its people, each once: they are equally likely."""
    arranged = [set(permutations([v for v, n in enumerate(counts) for _ in range(n)])) for counts in buckets]
    return product(*arranged)


def true(atom: Atom, world: World) -> bool:
    """Whether the person has the value."""
    assert not isinstance(atom.person, int)
    return str(world[atom.person.bucket][atom.person.index]) == atom.value


def holds(one: Implication, world: World) -> bool:
    """Whether an implication holds."""
    return not all(true(a, world) for a in one.given) or any(true(a, world) for a in one.then)


def satisfying(buckets: Sequence[Sequence[int]], knowledge: Iterable[Implication]) -> list[World]:
    """The worlds in which all of the knowledge holds."""
    known = list(knowledge)
    return [world for world in worlds(buckets) if all(holds(one, world) for one in known)]


def probability(left: Sequence[World], atom: Atom) -> Fraction:
    """The share of the worlds in which an atom holds."""
    return Fraction(sum(true(atom, world) for world in left), len(left))


def atoms(buckets: Sequence[Sequence[int]]) -> list[Atom]:
    """Every person with every value that occurs anywhere."""
    values = range(max(len(counts) for counts in buckets))
    return [Atom((b, i), str(v)) for b, counts in enumerate(buckets) for i in range(sum(counts)) for v in values]
