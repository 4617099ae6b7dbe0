"""Interaction graphs as bit masks: triangulated or not, maximal cliques, junction trees, minimal separators.

A vertex is a bit, a set of vertices an int, a graph the mask of neighbours of each vertex (Kifer & Gehrke 2006,
Section 5.1). A vertex is its own neighbour where it is in the graph at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

Mask = int
Neighbours = tuple[Mask, ...]


def bits(mask: Mask) -> Iterator[int]:
    """The vertices of a set, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def largest(masks: Iterable[Mask]) -> tuple[Mask, ...]:
    """The sets that no other one contains, each once, in their order; the empty set only where it is alone."""
    found = list(dict.fromkeys(masks))
    return tuple(m for m in found if not any(m != other and m & other == m for other in found))


def interaction(masks: Iterable[Mask], width: int) -> Neighbours:
    """The interaction graph: an edge between any two vertices that stand together in some marginal."""
    found = [0] * width
    for mask in masks:
        for vertex in bits(mask):
            found[vertex] |= mask
    return tuple(found)


def vertices(graph: Neighbours) -> Mask:
    """The vertices that the graph has."""
    return sum(1 << v for v, near in enumerate(graph) if near)


def edge(graph: Neighbours, u: int, v: int) -> bool:
    """Whether two vertices are joined."""
    return bool(graph[u] >> v & 1)


def complete(graph: Neighbours, some: Mask) -> bool:
    """Whether every two of these vertices are joined."""
    return all(graph[v] & some == some for v in bits(some))


def separates(graph: Neighbours, some: Mask, u: int, v: int) -> bool:
    """Whether every path from u to v goes through one of these vertices (which hold neither of the two)."""
    reached, border = 1 << u, 1 << u
    while border:
        further = 0
        for vertex in bits(border):
            further |= graph[vertex]
        border = further & ~reached & ~some
        reached |= border
        if reached >> v & 1:
            return False
    return True


def triangulated(graph: Neighbours) -> bool:
    """Whether every cycle of four or more has a chord: maximum cardinality search (Tarjan & Yannakakis 1984).

    Numbering always a vertex with most numbered neighbours, these must form a clique each time.
    """
    left, numbered = vertices(graph), 0
    while left:
        best = max(bits(left), key=lambda v: (graph[v] & numbered).bit_count())
        if not complete(graph, graph[best] & numbered):
            return False
        left ^= 1 << best
        numbered |= 1 << best
    return True


def maximal_cliques(graph: Neighbours) -> tuple[Mask, ...]:
    """Every maximal clique, ascending (Bron & Kerbosch 1973, with a pivot)."""
    found: list[Mask] = []

    def grow(clique: Mask, candidates: Mask, done: Mask) -> None:
        if not candidates and not done:
            found.append(clique)
            return
        pivot = max(bits(candidates | done), key=lambda v: (graph[v] & candidates).bit_count())
        for vertex in bits(candidates & ~(graph[pivot] & ~(1 << pivot))):
            bit = 1 << vertex
            near = graph[vertex] & ~bit
            grow(clique | bit, candidates & near, done & near)
            candidates ^= bit
            done |= bit

    every = vertices(graph)
    if every:
        grow(0, every, 0)
    return tuple(sorted(found))


@dataclass(frozen=True)
class JunctionTree:
    """Cliques in a perfect sequence: clique i hangs on clique `parent[i]` < i and shares `separator[i]` with it.

    Cliques that share nothing hang on an empty separator, so that there is one tree.
    """

    cliques: tuple[Mask, ...]
    parent: tuple[int, ...]  # -1 for the first
    separator: tuple[Mask, ...]  # 0 for the first

    def children(self, clique: int) -> tuple[int, ...]:
        """The cliques that hang on this one."""
        return tuple(i for i, parent in enumerate(self.parent) if parent == clique)


def junction_tree(masks: Sequence[Mask], *, root: int = 0) -> JunctionTree | None:
    """A junction tree of a collection that is decomposable, from the clique `root` of its largest; None of any other.

    A spanning tree of greatest total separator size is a junction tree if and only if Σ|S| = Σ|C| − |∪C|: then each
    vertex's cliques are connected in it (Maier 1983; Jensen & Jensen 1994).
    """
    cliques = largest(masks)
    order, parents, separators = [root], [-1], [0]
    near = {i: (root, cliques[i] & cliques[root]) for i in range(len(cliques)) if i != root}
    covered = cliques[root]
    while near:
        chosen = max(near, key=lambda i: (near[i][1].bit_count(), -i))
        parent, shared = near.pop(chosen)
        if cliques[chosen] & covered != shared:  # Definition 5.7: what it shares with all before it lies in one of them
            return None
        covered |= cliques[chosen]
        order.append(chosen)
        parents.append(order.index(parent))
        separators.append(shared)
        for i, (_, before) in near.items():
            common = cliques[i] & cliques[chosen]
            if common.bit_count() > before.bit_count():
                near[i] = (chosen, common)
    return JunctionTree(tuple(cliques[i] for i in order), tuple(parents), tuple(separators))


def minimal_separators(tree: JunctionTree) -> frozenset[Mask]:
    """The minimal separators of the tree's graph: what neighbouring cliques share (the empty one left out)."""
    return frozenset(tree.separator[1:]) - {0}


def graphical(masks: Sequence[Mask], width: int) -> bool:
    """Whether the collection contains every maximal clique of its interaction graph (Definition 5.5)."""
    return set(maximal_cliques(interaction(masks, width))) <= set(masks)


def decomposable(masks: Sequence[Mask]) -> bool:
    """Whether the collection is graphical and its interaction graph triangulated (Definition 5.6)."""
    return junction_tree(masks) is not None


def perfect(sequence: Sequence[Mask]) -> bool:
    """Whether what each set shares with all before it lies within one of them (Definition 5.7)."""
    covered = 0
    for at, clique in enumerate(sequence):
        shared = clique & covered
        if at and not any(shared & before == shared for before in sequence[:at]):
            return False
        covered |= clique
    return True
