"""Interaction graphs as bit masks: cliques, junction trees, and neighbouring models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

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
    distinct = list(dict.fromkeys(masks))
    return tuple(m for m in distinct if not any(m != other and m & other == m for other in distinct))


def interaction(masks: Iterable[Mask], width: int) -> Neighbours:
    """The interaction graph: an edge between any two vertices that stand together in some marginal."""
    neighbours = [0] * width
    for mask in masks:
        for vertex in bits(mask):
            neighbours[vertex] |= mask
    return tuple(neighbours)


def edge(graph: Neighbours, u: int, v: int) -> bool:
    """Whether two vertices are joined."""
    return bool(graph[u] >> v & 1)


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


@dataclass(frozen=True)
class JunctionTree:
    """Cliques in a perfect sequence: clique i hangs on clique `parent[i]` < i and shares `separator[i]` with it.

    Cliques that share nothing hang on an empty separator, so that there is one tree.
    """

    cliques: tuple[Mask, ...]
    parent: tuple[int, ...]  # -1 for the first
    separator: tuple[Mask, ...]  # 0 for the first


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


def decomposable(masks: Sequence[Mask]) -> bool:
    """Whether the collection is graphical and its interaction graph triangulated (Definition 5.6)."""
    return junction_tree(masks) is not None


class Move(NamedTuple):
    """One step: an edge between two vertices, or a vertex (both ends the same)."""

    kind: Literal["add", "remove"]
    u: int
    v: int


@dataclass(frozen=True)
class Model:
    """A decomposable graph over chains of induced attributes, by its maximal cliques."""

    chains: tuple[int, ...]  # the length of each attribute's chain
    cliques: tuple[Mask, ...]
    neighbours: Neighbours

    @classmethod
    def of(cls, chains: tuple[int, ...], marginals: Iterable[Mask]) -> Model:
        """The model whose cliques are the largest of these marginals."""
        cliques = largest(marginals)
        return cls(chains, cliques, interaction(cliques, sum(chains)))

    @cached_property
    def attribute_of(self) -> tuple[int, ...]:
        """The attribute of each vertex."""
        return tuple(a for a, length in enumerate(self.chains) for _ in range(length))

    @cached_property
    def start_of(self) -> tuple[int, ...]:
        """The vertex at which the chain of each vertex begins."""
        starts = [sum(self.chains[:a]) for a in range(len(self.chains))]
        return tuple(starts[a] for a in self.attribute_of)

    def deeper(self, vertex: int) -> Mask:
        """The vertices of the same chain below this one."""
        end = self.start_of[vertex] + self.chains[self.attribute_of[vertex]]
        return (1 << end) - (1 << (vertex + 1))

    def above(self, vertex: int) -> Mask:
        """The vertices of the same chain above this one."""
        return (1 << vertex) - (1 << self.start_of[vertex])

    def moves(self) -> Iterator[Move]:
        """Every move that is allowed here."""
        width = len(self.neighbours)
        for u in range(width):
            node = Move("remove" if self.neighbours[u] else "add", u, u)
            if self.allows(node):
                yield node
            for v in range(u + 1, width):
                if self.neighbours[u] and self.neighbours[v]:
                    joined = self.neighbours[u] >> v & 1
                    move = Move("remove" if joined else "add", u, v)
                    if self.allows(move):
                        yield move

    def allows(self, move: Move) -> bool:
        """Whether a move keeps the model decomposable and its cliques marginals."""
        kind, u, v = move
        near, adds = self.neighbours, kind == "add"
        if u == v and adds:
            return not near[u] and all(near[i] for i in bits(self.above(u)))
        if u == v:
            return bool(near[u]) and not any(near[i] for i in bits(self.deeper(u)))
        if not near[u] or not near[v] or edge(near, u, v) == adds:
            return False
        if adds:  # Deshpande et al.: what both are joined to separates them, and has all above them on their chains
            shared, above = near[u] & near[v], self.above(u) | self.above(v)
            return above & shared == above and separates(near, shared, u, v)
        if self.attribute_of[u] == self.attribute_of[v] or near[v] & self.deeper(u) or near[u] & self.deeper(v):
            return False
        both = 1 << u | 1 << v  # Wermuth: the two stand in one clique only, nothing below either is joined to the other
        return sum(clique & both == both for clique in self.cliques) == 1

    def after(self, move: Move) -> Model:
        """The model after an allowed move."""
        kind, u, v = move
        near = list(self.neighbours)
        if kind == "add":
            new = self.above(u) | 1 << u if u == v else near[u] & near[v] | 1 << u | 1 << v
            for vertex in bits(new):
                near[vertex] |= new
            cliques = (*(clique for clique in self.cliques if clique & new != clique), new)
        elif u == v:
            gone = ~(1 << u)
            near = [0 if i == u else n & gone for i, n in enumerate(near)]
            cliques = tuple(clique for clique in largest(clique & gone for clique in self.cliques) if clique)
        else:
            near[u] ^= 1 << v
            near[v] ^= 1 << u
            both = 1 << u | 1 << v
            whole = next(clique for clique in self.cliques if clique & both == both)
            others = [clique for clique in self.cliques if clique != whole]
            parts = [part for part in (whole ^ 1 << u, whole ^ 1 << v) if not any(part & o == part for o in others)]
            cliques = (*others, *parts)
        return Model(self.chains, cliques, tuple(near))
