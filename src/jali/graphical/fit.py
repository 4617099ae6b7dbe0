"""Maximum entropy of any collection by iterative proportional fitting, where the domain of its levels fits.

Starts from the uniform distribution over the declared values and scales to each marginal in turn (Deming & Stephan
1940; the limit is the maximum-entropy distribution, Csiszár 1975).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jali.errors import InputError
from jali.graphical.marginal import ABSENT, Cache, Domain, Marginal, maximal, upward
from jali.graphical.maxent import finest

LARGEST = 1 << 24
"""Cells that are fitted at most: 128 MB; a larger domain is refused."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Fit:
    """The fitted distribution over nodes at the finest levels shown, and how well it meets the marginals."""

    marginal: Marginal  # the finest level of each attribute that some marginal has
    p: Floats  # (nodes, nodes, …) one axis for each attribute that it has
    rounds: int  # how often each marginal was fitted
    gap: float  # the largest difference of a fitted from a published share
    converged: bool


class _Constraint:
    """One marginal as a tensor over its own axes, and the way down to it and back."""

    def __init__(self, cache: Cache, marginal: Marginal, shown: Marginal) -> None:
        domain, counts = cache.domain, cache.counts(marginal)
        own = [i for i in shown.attributes if i in marginal.attributes]
        self.summed = tuple(at for at, i in enumerate(shown.attributes) if i not in own)
        self.maps = [upward(domain.attributes[i], shown.levels[i], marginal.levels[i]) for i in own]
        self.equal = [shown.levels[i] == marginal.levels[i] for i in own]
        shape = [domain.attributes[i].nodes[marginal.levels[i]] for i in own]
        self.share = np.zeros(shape)
        self.share[tuple(counts.cells.T)] = counts.n / cache.total

    def reach(self, p: Floats) -> tuple[Floats, float]:
        """What p must be multiplied by to meet the marginal, and how far from it p is."""
        found = p.sum(axis=self.summed)
        for axis, (step, equal) in enumerate(zip(self.maps, self.equal, strict=True)):
            if not equal:
                into = np.equal.outer(np.arange(self.share.shape[axis]), step).astype(np.float64)
                found = np.moveaxis(np.tensordot(into, found, axes=(1, axis)), 0, axis)
        gap = float(abs(found - self.share).max())
        ratio = np.divide(self.share, found, out=np.zeros_like(found), where=found > 0)
        for axis, (step, equal) in enumerate(zip(self.maps, self.equal, strict=True)):
            if not equal:
                ratio = ratio.take(step, axis=axis)
        return np.expand_dims(ratio, self.summed), gap


def fit(cache: Cache, marginals: Sequence[Marginal], *, tolerance: float = 1e-12, rounds: int = 2000) -> Fit:
    """The maximum-entropy distribution that meets every marginal, to a largest gap in shares of `tolerance`."""
    largest = maximal(marginals)
    if not largest:
        raise InputError("no marginal to fit", do="give at least one")
    shown = finest(largest)
    p = _uniform(cache.domain, shown)
    constraints = [_Constraint(cache, marginal, shown) for marginal in largest]
    done, gap = 0, math.inf
    while done < rounds and gap > tolerance:
        gap = 0.0
        for constraint in constraints:
            ratio, off = constraint.reach(p)
            gap = max(gap, off)
            p *= ratio
        done += 1
    return Fit(shown, p, done, gap, gap <= tolerance)


def cells_of(domain: Domain, marginals: Sequence[Marginal]) -> int:
    """How many cells the finest levels of a collection span."""
    shown = finest(marginals)
    return math.prod(domain.attributes[i].nodes[shown.levels[i]] for i in shown.attributes)


def _uniform(domain: Domain, shown: Marginal) -> Floats:
    shape = [domain.attributes[i].nodes[shown.levels[i]] for i in shown.attributes]
    if math.prod(shape) > LARGEST:
        do = "publish a decomposable collection, or coarser levels"
        raise InputError(
            f"a collection that is not decomposable is fitted over at most {LARGEST:,} cells",
            got=f"{math.prod(shape):,}",
            do=do,
        )
    p = np.ones(shape)
    for axis, i in enumerate(shown.attributes):
        attribute = domain.attributes[i]
        share = attribute.node_sizes(shown.levels[i]) / attribute.leaves
        p *= share.reshape([-1 if at == axis else 1 for at in range(len(shape))])
    return p


def divergence(cache: Cache, found: Fit) -> float:
    """KL(table ‖ fit) in nats, each node spread evenly over its values; the cache must hold the table itself."""
    source, domain = cache.sources[0], cache.domain
    shown, share = found.marginal, source.n / cache.total
    at = tuple(domain.attributes[i].maps[shown.levels[i]][source.cells[:, i]] for i in shown.attributes)
    log = np.log(found.p[at])
    for i, attribute in enumerate(domain.attributes):
        level = shown.levels[i]
        node = np.zeros(len(share), dtype=np.int64) if level == ABSENT else attribute.maps[level][source.cells[:, i]]
        log = log - np.log(np.maximum(attribute.node_sizes(level), 1))[node]
    return float(share @ (np.log(share) - log))
