"""Equal halves of public people, person by person, and what an attacker who knows this algorithm believes.

Written from decisions 41 and 45: plain lists, exact fractions, every world listed.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction

Person = tuple[int, ...]  # a place in the order of each column
Group = tuple[frozenset[int], int]  # people by number, and how many of them are present
World = frozenset[int]  # who is present


def within(present: int, people: int, low: Fraction, high: Fraction) -> bool:
    return low <= Fraction(present, people) <= high


def least_size(high: Fraction) -> int:
    """Somebody who is present needs so many people in the group."""
    return math.ceil(1 / high) if high else 1


def samples(people: int, present: int, low: Fraction, high: Fraction) -> list[tuple[int, int, int]]:
    """People, people present and greatest number of cuts of each sample."""
    least, drawn = least_size(high), []
    while people:
        sizes = sorted(
            ((q * 2**depth, depth) for depth in range(people.bit_length()) for q in range(least, 2 * least)),
            reverse=True,
        )
        for size, depth in sizes:
            if size <= people:
                some = _in_proportion(people, present, size)
                rest, others = people - size, present - some
                if within(some, size, low, high) and (rest == 0 or (rest >= least and within(others, rest, low, high))):
                    drawn.append((size, some, depth))
                    people, present = rest, others
                    break
        else:
            return [*drawn, (people, present, 0)]
    return drawn


def _in_proportion(people: int, present: int, size: int) -> int:
    """Present people of a sample: rounded down, and one more if that remainder is larger than that of the absent."""
    exact, absent = Fraction(present * size, people), Fraction((people - present) * size, people)
    if math.floor(exact) + math.floor(absent) == size:
        return math.floor(exact)
    return math.floor(exact) + (exact % 1 > absent % 1)


def groups(
    public: Sequence[Person], world: World, drawn: Sequence[Sequence[int]], turn: Mapping[int, int], *,
    low: Fraction, high: Fraction,
) -> list[Group]:  # fmt: skip
    """The groups of this world, when these people are drawn into the samples and ties are divided by turn."""
    found = []
    sizes = samples(len(public), len(world), low, high)
    for people, (size, present, depth) in zip(drawn, sizes, strict=True):
        assert (len(people), len(world & set(people))) == (size, present)
        found += _leaves(public, world, list(people), turn, (low, high, depth))
    return [(frozenset(leaf), len(world & set(leaf))) for leaf in found]


def _leaves(
    public: Sequence[Person], world: World, node: list[int], turn: Mapping[int, int],
    how: tuple[Fraction, Fraction, int],
) -> list[list[int]]:  # fmt: skip
    low, high, depth = how
    column = _column(public, node)
    if depth == 0 or column is None:
        return [node]
    order = sorted(node, key=lambda i: (public[i][column], turn[i]))
    halves = order[: len(node) // 2], order[len(node) // 2 :]
    if not all(within(len(world & set(half)), len(half), low, high) for half in halves):
        return [node]
    return [leaf for half in halves for leaf in _leaves(public, world, half, turn, (low, high, depth - 1))]


def _column(public: Sequence[Person], node: Sequence[int]) -> int | None:
    """The column in which the halves are smallest beside the node, the first of equals; None if no column varies."""
    gains = {}
    for column in range(len(public[0])):
        places = sorted(public[i][column] for i in node)
        lower, upper = places[: len(places) // 2], places[len(places) // 2 :]
        if places[0] < places[-1]:
            spans = [run[-1] - run[0] + 1 for run in (places, lower, upper)]
            gains[column] = round(2 * math.log(spans[0]) - math.log(spans[1]) - math.log(spans[2]), 9)
    return min(gains, key=lambda column: (-gains[column], column)) if gains else None


def worlds(drawn: Sequence[Sequence[int]], present: Sequence[int]) -> Iterator[World]:
    """Every world in which these samples have so many people present."""
    for parts in itertools.product(*map(itertools.combinations, drawn, present)):
        yield frozenset(itertools.chain(*parts))


def draws(people: Iterable[int], sizes: Sequence[int]) -> Iterator[list[tuple[int, ...]]]:
    """Every way to draw people into samples of these sizes."""
    left = sorted(people)
    if not sizes:
        yield []
        return
    for some in itertools.combinations(left, sizes[0]):
        for others in draws(set(left) - set(some), sizes[1:]):
            yield [some, *others]


def beliefs(seen: Iterable[tuple[object, World]], people: int) -> dict[object, list[Fraction]]:
    """For each thing that an attacker may see, the share of the worlds that show it in which each person is present."""
    of = defaultdict(list)
    for shown, world in seen:
        of[shown].append(world)
    return {
        shown: [Fraction(sum(person in world for world in some), len(some)) for person in range(people)]
        for shown, some in of.items()
    }


def published(
    public: Sequence[Person], found: Iterable[Group]
) -> tuple[tuple[tuple[frozenset[int], ...], int, int], ...]:
    """What is shown of groups with somebody present: the sets of their values, their people, and how many of these."""
    shown = [
        (tuple(frozenset(public[i][c] for i in people) for c in range(len(public[0]))), len(people), present)
        for people, present in found
        if present
    ]
    return tuple(sorted(shown, key=lambda group: ([sorted(values) for values in group[0]], group[1:])))


def bounds(person: Person, shown: Iterable[tuple[Sequence[frozenset[int]], int, int]], people: int) -> tuple[
    Fraction, Fraction
]:  # fmt: skip
    """The least and the greatest share of the groups that may be this person's; 0 if some people are not shown."""
    listed = list(shown)
    shares = [
        Fraction(present, size)
        for cells, size, present in listed
        if all(value in cell for value, cell in zip(person, cells, strict=True))
    ]
    hidden = people > sum(size for _, size, _ in listed)
    shares += [Fraction(0)] * hidden
    return min(shares), max(shares)
