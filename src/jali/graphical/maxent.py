"""The maximum-entropy distribution of a decomposable collection, in closed form, only where it is asked for.

q(t) = 1/N · Π n(t_C) / Π n(t_S) · Π 1/child(t, L): cliques over separators of a junction tree, spread evenly over the
detail that no marginal shows (Kifer & Gehrke 2006, Equations 1, 2 and 6, Theorem 6.1).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce

import numpy as np
from numpy.typing import NDArray

from jali.encoding.frequencies import combine
from jali.errors import InputError
from jali.graphical.graph import JunctionTree, Mask, junction_tree
from jali.graphical.marginal import ABSENT, Cache, Domain, Marginal, upward

Floats = NDArray[np.float64]

DENSE = 1 << 14
"""Up to about so many cells of a marginal are held as a table of all of them, whether or not somebody is there."""


@dataclass(frozen=True)
class Tree:
    """A junction tree of marginals: marginal i hangs on marginal `parent[i]` < i and shares `separators[i]` with it."""

    marginals: tuple[Marginal, ...]
    parent: tuple[int, ...]  # -1 for the first
    separators: tuple[Marginal, ...]  # nothing for the first

    def children(self, at: int) -> tuple[int, ...]:
        """The marginals that hang on this one."""
        return tuple(i for i, parent in enumerate(self.parent) if parent == at)


def tree_of(domain: Domain, marginals: Iterable[Marginal]) -> Tree | None:
    """The junction tree of the largest of these marginals, or None where they are not decomposable."""
    found = junction_tree([domain.mask(marginal) for marginal in marginals])
    return None if found is None else named_tree(domain, found)


def named_tree(domain: Domain, tree: JunctionTree) -> Tree:
    """The junction tree with its sets of induced attributes as marginals."""
    cliques = tuple(domain.of_mask(mask) for mask in tree.cliques)
    return Tree(cliques, tree.parent, tuple(domain.of_mask(mask) for mask in tree.separator))


def finest(marginals: Sequence[Marginal]) -> Marginal:
    """Each attribute at the finest level that some marginal shows: its L_max."""
    return reduce(Marginal.__or__, marginals)


def log_probability(cache: Cache, tree: Tree, cells: NDArray[np.integer]) -> Floats:
    """log q at cells given by the codes of exact values: (cells,); −∞ where a marginal has nobody."""
    found = log_shown(cache, tree, cells)
    for i, level in enumerate(finest(tree.marginals).levels):
        if (cache.domain.attributes[i].node_sizes(level) > 1).any():  # else nothing is spread
            found -= np.log(_size(cache.domain, i, level, cells))
    return found


def log_shown(cache: Cache, tree: Tree, cells: NDArray[np.integer]) -> Floats:
    """The log-probability of what the marginals show of each cell, before it is spread over its values: (cells,)."""
    found = np.full(len(cells), -np.log(cache.total))
    columns = np.ascontiguousarray(cells.T)
    for marginal in tree.marginals:
        found += _log_at(cache, marginal, columns, empty=-np.inf)
    for separator in tree.separators[1:]:
        found -= _log_at(cache, separator, columns, empty=0.0)  # nobody there: the clique is empty too
    return found


def _log_at(cache: Cache, marginal: Marginal, columns: NDArray[np.integer], *, empty: float) -> Floats:
    """The log of how many people stand in the marginal's cell of each of these cells; `empty` for nobody: (cells,).

    columns: (attributes, cells).
    """
    counts, known, asked = cache.counts(marginal), len(cache.counts(marginal).n), columns.shape[1]
    nodes = [cache.domain.attributes[i].nodes[marginal.levels[i]] for i in marginal.attributes]
    here = [cache.domain.attributes[i].maps[marginal.levels[i]].take(columns[i]) for i in marginal.attributes]
    space = math.prod(nodes)
    own: NDArray[np.int64] = np.zeros(known, dtype=np.int64)
    at: NDArray[np.int64] = np.zeros(asked, dtype=np.int64)
    if space <= DENSE + 4 * (known + asked):
        for width, mine, theirs in zip(nodes, counts.cells.T, here, strict=True):
            own, at = own * width + mine, at * width + theirs
    else:
        both = [(np.concatenate([c, a]), n) for c, a, n in zip(counts.cells.T, here, nodes, strict=True)]
        number, first = combine(both, known + asked)
        own[:], at[:], space = number[:known], number[known:], len(first)
    found = np.full(space, empty)
    found[own] = np.log(counts.n)
    return found.take(at)


def _size(domain: Domain, i: int, level: int, cells: NDArray[np.integer]) -> Floats:
    attribute = domain.attributes[i]
    node = np.zeros(len(cells), dtype=np.int64) if level == ABSENT else attribute.maps[level][cells[:, i]]
    found: Floats = np.maximum(attribute.node_sizes(level), 1).astype(np.float64)[node]
    return found


@dataclass(frozen=True, eq=False)
class Divergence:
    """KL(table ‖ collection) in nats, from entropies of marginals, each computed once.

    With q in closed form, Σ p log(p/q) = Σ H(cliques) − Σ H(separators) + Σ E[log child] − H(table): no cell of the
    table is visited again once the entropies are there.
    """

    cache: Cache  # of the table itself
    _entropies: dict[Mask, float] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        if any(level != 0 for level in self.cache.sources[0].marginal.levels):
            raise InputError("the divergence is measured against the table itself", do="use Cache.of(table)")

    @cached_property
    def own(self) -> float:
        """The entropy of the table."""
        return self.cache.entropy(self.cache.sources[0].marginal)

    @cached_property
    def spreads(self) -> tuple[tuple[float, ...], ...]:
        """The mean log of the values under people's nodes, by attribute and resolution (0: absent)."""
        domain, source = self.cache.domain, self.cache.sources[0]
        return tuple(
            tuple(
                float(source.n @ np.log(_size(domain, i, attribute.level(r), source.cells))) / self.cache.total
                for r in range(attribute.depth + 1)
            )
            for i, attribute in enumerate(domain.attributes)
        )

    @cached_property
    def _chains(self) -> tuple[tuple[int, Mask], ...]:
        domain = self.cache.domain
        return tuple((o, (1 << a.depth) - 1) for o, a in zip(domain.offsets, domain.attributes, strict=True))

    def entropy(self, mask: Mask) -> float:
        """The entropy of the marginal with these induced attributes."""
        found = self._entropies.get(mask)
        if found is None:
            found = self._entropies[mask] = self.cache.entropy(self.cache.domain.of_mask(mask)) if mask else 0.0
        return found

    def kl(self, masks: Sequence[Mask]) -> float | None:
        """The divergence of a collection of sets of induced attributes; None where it is not decomposable."""
        tree = junction_tree(masks or [0])
        return None if tree is None else self.of_tree(tree)

    def of_tree(self, tree: JunctionTree) -> float:
        """The divergence of the collection with this junction tree."""
        shown = 0
        found = -self.own
        for clique, separator in zip(tree.cliques, tree.separator, strict=True):
            shown |= clique
            found += self.entropy(clique) - self.entropy(separator)
        for (offset, chain), means in zip(self._chains, self.spreads, strict=True):
            found += means[(shown >> offset & chain).bit_count()]
        return max(found, 0.0)


def coarsened(domain: Domain, cells: NDArray[np.integer], have: Marginal, want: Marginal) -> list[NDArray[np.int32]]:
    """Columns of node codes at the wanted levels, from cells at finer ones (a column for each attribute had)."""
    place = {i: at for at, i in enumerate(have.attributes)}
    return [upward(domain.attributes[i], have.levels[i], want.levels[i])[cells[:, place[i]]] for i in want.attributes]
