"""Tables that agree with any marginals, from decomposable ones that are finer: a first answer without a program.

Every elimination of the columns, one after the other, gives a decomposable collection that is finer than the published
one. All tables with its marginals agree with the published ones, and how many people they can put into a cell is known
in closed form (see `privacy_bounds`). What one such collection allows is possible; several are tried.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from jali.principles.counts import Ints

ORDERS = 24
"""Orders of elimination that are tried."""


def reached(world: NDArray[np.int64], scopes: Sequence[frozenset[int]]) -> Ints:
    """At least how many people a table with the same marginals can have in each cell of all axes but the last.

    `world` is one table, the sensitive values on its last axis; `scopes` are the axes of each marginal.
    """
    axes, random = world.ndim, np.random.default_rng(0)
    best: Ints = world.sum(axis=-1)
    for _ in range(ORDERS if axes > 2 else 0):
        best = np.maximum(best, _most(world, eliminated(scopes, random.permutation(axes).tolist())))
    return best


def eliminated(scopes: Iterable[frozenset[int]], order: Sequence[int]) -> set[frozenset[int]]:
    """The cliques of a decomposable graph in which every scope stands within a clique."""
    near: dict[int, set[int]] = {axis: set() for axis in order}
    for scope in scopes:
        for axis in scope:
            near[axis] |= scope - {axis}
    cliques = set()
    for axis in order:
        around = near.pop(axis)
        cliques.add(frozenset(around | {axis}))
        for other in around:
            near[other] = (near[other] | around) - {axis, other}
    return {clique for clique in cliques if not any(clique < other for other in cliques)}


def _most(world: NDArray[np.int64], cliques: Iterable[frozenset[int]]) -> Ints:
    """min(Σ_s min over cliques with the last axis of n(t, s), min over the others of n(t))."""
    last = world.ndim - 1
    valued: NDArray[np.int64] | None = None
    plain = np.full(world.shape[:-1], int(world.sum()))
    for clique in cliques:
        n = world.sum(axis=tuple(i for i in range(world.ndim) if i not in clique), keepdims=True)
        if last in clique:
            valued = n if valued is None else np.minimum(valued, n)
        else:
            plain = np.minimum(plain, n[..., 0])
    return plain if valued is None else np.minimum(plain, valued.sum(axis=-1))
