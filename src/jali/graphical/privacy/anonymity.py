"""Anonymity of a collection: k-link anonymity of each marginal, k-combinatorial anonymity of all together.

k-link (Definition 4.1): every cell of every marginal's quasi-identifiers has nobody or at least k people.
k-combinatorial (Definition 4.2): for every cell t of the quasi-identifiers, either no table with these marginals has
anybody in t, or one has at least k people there. For a decomposable collection the most people that t can have are

    min( Σ_s min over marginals E with the sensitive columns of n_E(t, s),  min over the others of n_E(t) ),

each marginal read at its own levels. The second part needs no look: a marginal that is k-link anonymous has 0 or at
least k there, and a cell with Σ_s … > 0 has an extension that every marginal allows (the maximum-entropy distribution
puts people there). What holds for every t at the finest levels holds for every set of cells: a coarser node, fewer
attributes, or what one published number leaves of another.

Not promised: that nobody learns that t has at least one person, nor that t has exactly so many (at least k).
"""

from __future__ import annotations

import numpy as np

from jali.core.arrays import Ints
from jali.graphical.marginal import ABSENT, Cache, Marginal
from jali.graphical.maxent import Tree
from jali.graphical.privacy.join import Factors, Rows, Walk, capped, least

Cell = dict[int, tuple[int, int]]
"""A cell of the quasi-identifiers: attribute → level and node."""


def quasi_of(cache: Cache, marginal: Marginal) -> Marginal:
    """The marginal without its sensitive columns."""
    hidden = cache.domain.sensitive
    return Marginal(tuple(ABSENT if i in hidden else level for i, level in enumerate(marginal.levels)))


def smallest_group(cache: Cache, marginal: Marginal) -> tuple[int, Cell]:
    """How many people the smallest cell of the marginal's quasi-identifiers has, and which it is (Definition 4.1)."""
    quasi = quasi_of(cache, marginal)
    if not quasi.attributes:
        return cache.total, {}
    counts = cache.counts(quasi)
    at = int(counts.n.argmin())
    return int(counts.n[at]), cell_of(quasi, counts.cells[at])


def cell_of(quasi: Marginal, codes: Ints) -> Cell:
    """A row of node codes as a cell."""
    return {i: (quasi.levels[i], int(code)) for i, code in zip(quasi.attributes, codes, strict=True)}


def origin_cell(tree: Tree, factors: Factors, origin: Ints) -> Cell:
    """The cell that a joined row stands for: each attribute at the finest level that one of its marginals shows."""
    found: Cell = {}
    for marginal, row in zip(tree.marginals, origin, strict=True):
        factor = factors.of(marginal)
        for i, (level, node) in cell_of(factor.quasi, factor.cells[row]).items():
            if i not in found or level < found[i][0]:
                found[i] = (level, node)
    return dict(sorted(found.items()))


def smallest_bound(tree: Tree, factors: Factors, k: int) -> tuple[int, Cell]:
    """The smallest positive bound on the people of a cell, counted up to k for each value, and the cell.

    Vectors are capped at k and joined by the minimum; within a block only the smallest ones of equal support are kept.
    """
    walk = Walk(tree, factors, lambda at: factors.of(tree.marginals[at]).n.clip(max=k), least, capped(k))
    best: tuple[int, Rows | None, int] = (k, None, 0)
    for rows in walk.chunks():
        bound = rows.vectors.sum(axis=1)
        at = int(bound.argmin()) if len(bound) else 0
        if len(bound) and bound[at] < best[0]:
            best = (int(bound[at]), rows, at)
    found, rows_, at = best
    return (found, {}) if rows_ is None else (found, origin_cell(tree, factors, rows_.origin[at].astype(np.int64)))
