"""Models and their neighbours: edges and nodes added to and removed from a decomposable graph of induced attributes.

Kifer & Gehrke 2006, Section 6.2. Every move keeps the graph decomposable and every clique a set of prefixes of chains,
so that the cliques are generalized marginals; what does not change is carried over, not computed again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

from jali.graphical.graph import Mask, Neighbours, bits, interaction, largest, separates


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
        if u == v:
            return self._adds_node(u) if kind == "add" else self._removes_node(u)
        return self._adds_edge(u, v) if kind == "add" else self._removes_edge(u, v)

    def _adds_node(self, u: int) -> bool:
        return not self.neighbours[u] and all(self.neighbours[i] for i in bits(self.above(u)))

    def _removes_node(self, u: int) -> bool:
        return bool(self.neighbours[u]) and not any(self.neighbours[i] for i in bits(self.deeper(u)))

    def _adds_edge(self, u: int, v: int) -> bool:
        """Deshpande et al.: what both are joined to separates them; and all above them on their chains is among it."""
        near = self.neighbours
        if not near[u] or not near[v] or near[u] >> v & 1:
            return False
        shared, above = near[u] & near[v], self.above(u) | self.above(v)
        return above & shared == above and separates(near, shared, u, v)

    def _removes_edge(self, u: int, v: int) -> bool:
        """Wermuth: the two stand in one clique only; and nothing below either is joined to the other."""
        near = self.neighbours
        if self.attribute_of[u] == self.attribute_of[v] or not near[u] >> v & 1:
            return False
        if near[v] & self.deeper(u) or near[u] & self.deeper(v):
            return False
        both = 1 << u | 1 << v
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
