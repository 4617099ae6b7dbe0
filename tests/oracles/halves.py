"""Equal halves, one person at a time: decision 41 written out, slowly."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations

Person = int
Histogram = Counter[int]
Judge = Callable[[Histogram], bool]
Plan = Sequence[tuple[Counter[int], int]]  # the histogram of each sample, and how often it may be halved
Draw = tuple[tuple[Person, ...], ...]  # the members of each sample


class Quasi:
    """A quasi-identifier: the code of each person, and for a taxonomy the node of each code at each level."""

    def __init__(self, codes: Sequence[int], inside: Sequence[bool], maps: Sequence[Sequence[int]] | None) -> None:
        self.codes, self.inside, self.maps = list(codes), list(inside), maps

    def key(self, person: Person) -> tuple[int, ...]:
        """Where a person stands: along the order, or along the tree, where children follow their lowest codes."""
        code = self.codes[person]
        if self.maps is None:
            return (code,)
        return tuple([*nodes].index(nodes[code]) for nodes in reversed(self.maps))

    def span(self, people: Sequence[Person]) -> int:
        """How many values of the domain lie between these people, or under the smallest node that covers them."""
        codes = [self.codes[p] for p in people]
        if self.maps is None:
            return sum(self.inside[min(codes) : max(codes) + 1])
        for nodes in self.maps:
            if len({nodes[code] for code in codes}) == 1:
                return sum(i for i, node in zip(self.inside, nodes, strict=True) if node == nodes[codes[0]])
        raise AssertionError("the root covers everybody")


def samples(values: Histogram, least: int, judge: Judge) -> list[tuple[Histogram, int]]:
    """The histogram of each sample and how often it may be halved: each takes as many people as it can."""
    left, found = Counter(values), []
    while left.total():
        taken, depth = next(
            ((one, j) for one, j in _sized(left, least) if judge(one) and (one == left or judge(left - one))), (left, 0)
        )
        found.append((+taken, depth))
        left = left - taken
    return found


def _sized(left: Histogram, least: int) -> Iterator[tuple[Histogram, int]]:
    """Histograms in proportion for all sizes q · 2^j, least <= q < 2 · least, the largest first; and j."""
    n = left.total()
    sizes = {q * 2**j: j for j in range(n.bit_length()) for q in range(least, 2 * least) if q * 2**j <= n}
    for size in sorted(sizes, reverse=True):
        yield +proportional(left, size), sizes[size]


def proportional(values: Histogram, size: int) -> Histogram:
    """Each value's share of `size` rounded down; the largest remainders, the lowest values first, get one more."""
    share = {v: Fraction(m * size, values.total()) for v, m in values.items()}
    taken = Counter({v: math.floor(s) for v, s in share.items()})
    by_rest = sorted(share, key=lambda v: (math.floor(share[v]) - share[v], v))
    for v in by_rest[: size - taken.total()]:
        taken[v] += 1
    return taken


def members(values: Sequence[int], plan: Plan, drawn: Sequence[Person]) -> list[list[Person]]:
    """Of each value the first people drawn go to the first sample, the next to the second."""
    found: list[list[Person]] = [[] for _ in plan]
    for v in sorted(set(values)):
        waiting = [p for p in drawn if values[p] == v]
        for sample, (histogram, _) in zip(found, plan, strict=True):
            sample.extend(waiting[: histogram[v]])
            waiting = waiting[histogram[v] :]
    return found


def cut(columns: Sequence[Quasi], node: Sequence[Person], by: str) -> tuple[list[Person], list[Person]] | None:
    """The two halves of a node in which people stand in the order of ties; None where they are all alike.

    The column is the first one for which the boxes of both halves are smallest ("area"), or of which the node spans the
    largest part ("range"); both are compared to nine digits.
    """
    best, halves = -1, None
    for column in columns:
        ordered = sorted(node, key=column.key)  # stable
        low, high = ordered[: len(node) // 2], ordered[len(node) // 2 :]
        if column.key(ordered[0]) == column.key(ordered[-1]):
            continue
        logs = [math.log(column.span(part)) for part in (node, low, high)]
        gained = 2 * logs[0] - (logs[1] + logs[2])
        if by == "range":
            gained = (column.span(node) - 1) / max(sum(column.inside) - 1, 1)
        gain = math.floor(gained * 1e9 + 0.5)
        if gain > best:
            best, halves = gain, ([p for p in node if p in low], [p for p in node if p in high])
    return halves


def leaves(
    columns: Sequence[Quasi], values: Sequence[int], node: list[Person], depth: int, *, judge: Judge, by: str
) -> Iterator[frozenset[Person]]:
    """The groups that a node ends in."""
    halves = cut(columns, node, by) if depth else None
    if halves is None or not all(judge(Counter(values[p] for p in half)) for half in halves):
        yield frozenset(node)
        return
    for half in halves:
        yield from leaves(columns, values, half, depth - 1, judge=judge, by=by)


def halve(
    columns: Sequence[Quasi], values: Sequence[int], judge: Judge, *, least: int, drawn: Sequence[Person],
    ties: Sequence[Person], by: str,
) -> set[frozenset[Person]]:  # fmt: skip
    """Who is together."""
    plan = samples(Counter(values), least, judge)
    together: set[frozenset[Person]] = set()
    for sample, (_, depth) in zip(members(values, plan, drawn), plan, strict=True):
        node = [p for p in ties if p in sample]
        together |= set(leaves(columns, values, node, depth, judge=judge, by=by))
    return together


def draws(values: Sequence[int], plan: Plan) -> Iterator[Draw]:
    """All ways to draw the samples; each is as likely as any other."""

    def divided(people: tuple[Person, ...], sizes: Sequence[int]) -> Iterator[Draw]:
        if not sizes:
            yield ()
            return
        for chosen in combinations(people, sizes[0]):
            for rest in divided(tuple(p for p in people if p not in chosen), sizes[1:]):
                yield (chosen, *rest)

    def by_value(kinds: Sequence[int]) -> Iterator[Draw]:
        if not kinds:
            yield tuple(() for _ in plan)
            return
        having = tuple(p for p, v in enumerate(values) if v == kinds[0])
        for one in divided(having, [histogram[kinds[0]] for histogram, _ in plan]):
            for rest in by_value(kinds[1:]):
                yield tuple(a + b for a, b in zip(one, rest, strict=True))

    return by_value(sorted(set(values)))
