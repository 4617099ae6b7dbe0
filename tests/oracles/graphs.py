"""Small graphs by brute force: edges as a set of pairs, every definition as it is written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

Edges = frozenset[frozenset[int]]


def edges_of(masks: Iterable[int]) -> Edges:
    """Every pair of vertices that stand together in a set."""
    found = set()
    for mask in masks:
        members = [v for v in range(mask.bit_length()) if mask >> v & 1]
        found |= {frozenset(pair) for pair in combinations(members, 2)}
    return frozenset(found)


def members(mask: int) -> frozenset[int]:
    """The vertices of a set."""
    return frozenset(v for v in range(mask.bit_length()) if mask >> v & 1)


def triangulated(vertices: Iterable[int], edges: Edges) -> bool:
    """Taking away a vertex whose neighbours are all joined, as often as there is one, leaves nothing."""
    left = set(vertices)
    while left:
        for v in sorted(left):
            near = [u for u in left if u != v and frozenset((u, v)) in edges]
            if all(frozenset(pair) in edges for pair in combinations(near, 2)):
                left.remove(v)
                break
        else:
            return False
    return True


def maximal_cliques(vertices: Iterable[int], edges: Edges) -> set[frozenset[int]]:
    """Every set of vertices that is complete and in no larger one that is."""
    every = sorted(vertices)
    complete = [
        frozenset(some)
        for size in range(1, len(every) + 1)
        for some in combinations(every, size)
        if all(frozenset(pair) in edges for pair in combinations(some, 2))
    ]
    return {one for one in complete if not any(one < other for other in complete)}


def connected(vertices: set[int], edges: Edges, u: int, v: int) -> bool:
    """Whether a path leads from u to v within these vertices."""
    reached, border = {u}, [u]
    while border:
        here = border.pop()
        for other in vertices - reached:
            if frozenset((here, other)) in edges:
                reached.add(other)
                border.append(other)
    return v in reached


def minimal_separators(vertices: Iterable[int], edges: Edges) -> set[frozenset[int]]:
    """Every set that separates two connected vertices, and no part of which does."""
    every = set(vertices)
    found = set()
    for u, v in combinations(sorted(every), 2):
        if frozenset((u, v)) in edges or not connected(every, edges, u, v):
            continue
        rest = sorted(every - {u, v})
        cuts = [
            frozenset(some)
            for size in range(len(rest) + 1)
            for some in combinations(rest, size)
            if not connected(every - set(some), edges, u, v)
        ]
        found |= {cut for cut in cuts if not any(other < cut for other in cuts)}
    return found


def perfect(sequence: Sequence[int]) -> bool:
    """Whether what each set shares with all before it lies within one of them (Definition 5.7)."""
    covered = 0
    for at, clique in enumerate(sequence):
        shared = clique & covered
        if at and not any(shared & before == shared for before in sequence[:at]):
            return False
        covered |= clique
    return True
