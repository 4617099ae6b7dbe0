"""ANGEL releases written out: mixtures as fractions, joins as every way to seat the people of a batch."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations, permutations, product
from typing import Any

import numpy as np

from jali.principles.base import Principle
from jali.principles.counts import Counts, Sensitive

Row = tuple[Hashable, int]  # what somebody shows in a table, and the batch


def mixture(weights: Mapping[int, Fraction], batches: Mapping[int, Counter[Any]]) -> dict[Any, Fraction]:
    """Σ weight · the distribution of the batch's values (Equations 2 and 6)."""
    found: dict[Any, Fraction] = {}
    for batch, weight in weights.items():
        for value, n in batches[batch].items():
            found[value] = found.get(value, Fraction(0)) + weight * Fraction(n, batches[batch].total())
    return found


def bucket_mixture(rows: Iterable[Row], shown: Hashable, batches: Mapping[int, Counter[Any]]) -> dict[Any, Fraction]:
    """What is believed of somebody who shows this."""
    own = Counter(batch for cell, batch in rows if cell == shown)
    return mixture({batch: Fraction(n, own.total()) for batch, n in own.items()}, batches)


def keeps(
    principle: Principle, found: Mapping[Any, Fraction], sensitive: Sensitive, reference: Mapping[Any, int]
) -> bool:
    """Whether a distribution keeps a principle, judged exactly as the people of a group that has it."""
    scale = math.lcm(*(share.denominator for share in found.values()))
    number = {label: i for i, label in enumerate(sensitive.labels)}
    joint = np.arange(len(sensitive), dtype=np.int64)[:, None]

    def one(amounts: Mapping[Any, int], whole: Counts | None) -> Counts:
        items = sorted((number[value], n) for value, n in amounts.items() if n)
        value, n = (np.array(column, dtype=np.int64) for column in zip(*items, strict=True))
        return Counts(1, np.zeros(len(n), dtype=np.int64), value, n, (sensitive,), joint, None, whole)

    whole = one(reference, None)
    return bool(principle.holds(one({v: int(share * scale) for v, share in found.items()}, whole))[0])


def certain_cells(
    tables: Sequence[Sequence[Row]], fits: Callable[..., bool] = lambda *_: True
) -> dict[tuple[Hashable, ...], tuple[int, int]]:
    """Cells of the join that somebody is in however people are seated, with the fewest and the most who can be.

    The rows of a batch in the first table are people; those of the others are dealt to them in every way that `fits`.
    """
    found: dict[tuple[Hashable, ...], list[int]] = {}
    cells = list(product(*({cell for cell, _ in table} for table in tables)))
    low, high = Counter[Any](), Counter[Any]()
    for batch in {batch for _, batch in tables[0]}:
        rows = [[cell for cell, number in table if number == batch] for table in tables]
        worlds = [
            Counter(zip(rows[0], *seats, strict=True)) for seats in product(*(set(permutations(r)) for r in rows[1:]))
        ]
        worlds = [world for world in worlds if all(fits(*cell) for cell in world)]
        for cell in cells:
            low[cell] += min(world[cell] for world in worlds)
            high[cell] += max(world[cell] for world in worlds)
    for cell in cells:
        if low[cell] > 0:
            found[cell] = [low[cell], high[cell]]
    return {cell: (a, b) for cell, (a, b) in found.items()}


def pairs_with_room(
    one: Sequence[Row], two: Sequence[Row], fits: Callable[..., bool]
) -> dict[tuple[Hashable, Hashable], tuple[int, int]]:
    """Pairs of cells that somebody is in since a cell has more people than the others that fit it have room for.

    With how many at least, and at most: whoever is certainly in another cell of the other table is not in this one.
    """
    least, most = Counter[Any](), Counter[Any]()
    for batch in {number for _, number in one}:
        mine, theirs = (Counter(cell for cell, number in table if number == batch) for table in (one, two))
        low = {}
        for a, b in product(mine, theirs):
            if fits(a, b):
                elsewhere = sum(n for other, n in theirs.items() if other != b and fits(a, other))
                others = sum(n for other, n in mine.items() if other != a and fits(other, b))
                low[a, b] = max(0, mine[a] - elsewhere, theirs[b] - others)
        for (a, b), n in low.items():
            left = mine[a] - sum(m for (x, y), m in low.items() if x == a and y != b)
            free = theirs[b] - sum(m for (x, y), m in low.items() if y == b and x != a)
            least[a, b] += n
            most[a, b] += min(left, free)
    return {pair: (n, most[pair]) for pair, n in least.items() if n > 0}


Cell = Mapping[str, frozenset[Any]]  # by column, the values that a cell covers


def joint_ranges(
    tables: Sequence[Sequence[tuple[Hashable, Cell, int | None]]],
) -> dict[tuple[tuple[int, Hashable], ...], tuple[int, int]]:
    """How many people combinations of cells hold, at least and at most, over every world that agrees with all tables.

    A row is its name, what its cell covers, and its batch, None in a table without batches. The rows of the first table
    are people; those of the others are dealt to them in every way in which batches agree and every column has a value
    that all cells of a person cover. A combination names cells of two or more tables, each with the table's number.
    """
    low: dict[Any, int] = {}
    high: dict[Any, int] = {}
    worlds = 0
    for seats in _seatings(tables):
        worlds += 1
        count = Counter[Any]()
        for person in seats:
            named = [(i, row[0]) for i, row in enumerate(person)]
            for many in range(2, len(named) + 1):
                count.update(combinations(named, many))
        for cells in {*count, *low}:
            low[cells] = count[cells] if worlds == 1 else min(low.get(cells, 0), count[cells])
            high[cells] = max(high.get(cells, 0), count[cells])
    assert worlds
    return {cells: (low[cells], high[cells]) for cells in low}


def _seatings(tables: Sequence[Sequence[Any]]) -> Iterator[list[tuple[Any, ...]]]:
    """Every way to deal the rows of all tables to people, rows that look alike being alike."""
    people = [(row,) for row in tables[0]]

    def dealt(at: int, seats: list[tuple[Any, ...]]) -> Iterator[list[tuple[Any, ...]]]:
        if at == len(tables):
            yield seats
            return
        rows = [(row[0], row[2]) for row in tables[at]]
        whole = {(row[0], row[2]): row for row in tables[at]}
        for order in set(permutations(rows)):
            more = [(*seat, whole[key]) for seat, key in zip(seats, order, strict=True)]
            if all(_one_person(seat) for seat in more):
                yield from dealt(at + 1, more)

    yield from dealt(1, people)


def _one_person(rows: Sequence[tuple[Hashable, Cell, int | None]]) -> bool:
    """Whether these rows can be the same person's."""
    if len({batch for _, _, batch in rows if batch is not None}) > 1:
        return False
    names = {name for _, cell, _ in rows for name in cell}
    return all(frozenset.intersection(*(cell[name] for _, cell, _ in rows if name in cell)) for name in names)


def breaks_k(tables: Sequence[Sequence[tuple[Hashable, Cell, int | None]]], k: int) -> bool:
    """Whether some combination of cells certainly holds at least one and fewer than k people."""
    return any(low >= 1 and high < k for low, high in joint_ranges(tables).values())


# -- what k facts disclose -----------------------------------------------------------------------------------------


class MixedWorlds:
    """All worlds of an ANGEL release for an attacker who knows everybody's cell: who is in which batch, and has what.

    A world says the value of everybody. It weighs as much as all ways to put people into batches under which it is
    possible: each way as much as `prior` says (all alike by default), divided evenly among its arrangements.
    """

    def __init__(
        self, cells: Sequence[Hashable], rows: Sequence[Row], batches: Mapping[int, Counter[Any]],
        prior: Callable[[tuple[int, ...]], int] = lambda seated: 1,
    ) -> None:  # fmt: skip
        people, wanted = range(len(cells)), Counter(rows)
        self.weight: Counter[tuple[Any, ...]] = Counter()
        numbers = sorted(batches)
        for seated in product(numbers, repeat=len(cells)):
            if Counter(zip(cells, seated, strict=True)) != wanted:
                continue
            dealt = [sorted(set(permutations(sorted(batches[b].elements())))) for b in numbers]
            places = [[p for p in people if seated[p] == b] for b in numbers]
            for arranged in product(*dealt):  # as many for every way: each of them weighs the same
                value = {
                    p: v for at, values in zip(places, arranged, strict=True) for p, v in zip(at, values, strict=True)
                }
                self.weight[tuple(value[p] for p in people)] += prior(seated)
        self.worlds = list(self.weight)
        values = sorted({v for counts in batches.values() for v in counts})
        self.atoms = [
            sum(1 << i for i, world in enumerate(self.worlds) if world[p] == v) for p in people for v in values
        ]

    def chance(self, event: int) -> int:
        """The weight of the worlds whose bits are set."""
        return sum(self.weight[world] for i, world in enumerate(self.worlds) if event >> i & 1)

    def implications(self, most: int) -> set[int]:
        """Every basic implication with up to so many premises and conclusions, as the worlds in which it is true."""
        everywhere = (1 << len(self.worlds)) - 1
        premises, conclusions = {everywhere}, {0}
        for _ in range(most):
            premises |= {one & atom for one in premises for atom in self.atoms}
            conclusions |= {one | atom for one in conclusions for atom in self.atoms}
        premises.discard(everywhere)  # an implication has a premise and a conclusion
        conclusions.discard(0)
        return {(everywhere ^ given) | then for given in premises for then in conclusions}

    def worst(self, k: int, most: int = 1) -> Fraction:
        """How sure an attacker who knows any k such implications can be of anybody's value."""
        known, facts = {(1 << len(self.worlds)) - 1}, self.implications(most)
        for _ in range(k):
            known |= {one & fact for one in known for fact in facts}
        chances = ((max(self.chance(one & atom) for atom in self.atoms), self.chance(one)) for one in known if one)
        return max(Fraction(sure, all_) for sure, all_ in chances)
