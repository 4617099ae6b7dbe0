"""Maximum entropy of any collection by iterative proportional fitting, where the domain of its levels fits.

Starts from the uniform distribution over the declared values and scales to each marginal in turn (Deming & Stephan
1940; the limit is the maximum-entropy distribution, Csiszár 1975). Scaling alone takes for ever to empty a cell that no
table with these marginals fills but that no marginal rules out; where it does not settle, one linear program finds
these cells, and the others are fitted.
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
from jali.programs import Sums

LARGEST = 1 << 24
"""Cells that are fitted at most: 128 MB; a larger domain is refused."""

EMPTIED = 1 << 14
"""Cells up to which a program looks for those that must be empty."""

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
    even = _uniform(cache.domain, shown)
    constraints = [_Constraint(cache, marginal, shown) for marginal in largest]
    p, done, gap = _scaled(even.copy(), constraints, tolerance, rounds)
    if gap > tolerance and even.size <= EMPTIED:
        filled = _can_be_filled(cache, largest, shown, even.shape)
        p, more, gap = _scaled(even * filled, constraints, tolerance, rounds)
        done += more
    return Fit(shown, p, done, gap, gap <= tolerance)


def _scaled(p: Floats, constraints: Sequence[_Constraint], tolerance: float, rounds: int) -> tuple[Floats, int, float]:
    """The distribution scaled to each marginal in turn, how many rounds that took, and how far off it is."""
    done, gap = 0, math.inf
    while done < rounds and gap > tolerance:
        gap = 0.0
        for constraint in constraints:
            ratio, off = constraint.reach(p)
            gap = max(gap, off)
            p *= ratio
        done += 1
    return p, done, gap


def _can_be_filled(
    cache: Cache, marginals: Sequence[Marginal], shown: Marginal, shape: tuple[int, ...]
) -> NDArray[np.bool_]:
    """Which cells some table with these marginals fills, tables of fractions of people among them.

    One program: x, t ≥ 1 and y ≤ min(x, 1) with A x = t n; the largest Σ y has y = 1 just where a cell can be filled,
    since sums of such tables, and multiples of them, are such tables.
    """
    cells = math.prod(shape)
    codes, each = np.indices(shape).reshape(len(shape), -1), np.arange(cells)
    row, unknown, weight, sums = [each, each], [each, cells + each], [np.ones(cells), -np.ones(cells)], cells
    for marginal in marginals:
        counts = cache.counts(marginal)
        table = np.zeros([cache.domain.attributes[i].nodes[marginal.levels[i]] for i in marginal.attributes])
        table[tuple(counts.cells.T)] = counts.n
        maps = [upward(cache.domain.attributes[i], shown.levels[i], marginal.levels[i]) for i in marginal.attributes]
        axes = [shown.attributes.index(i) for i in marginal.attributes]
        place = np.ravel_multi_index(tuple(m[codes[at]] for m, at in zip(maps, axes, strict=True)), table.shape)
        row += [sums + place, sums + np.arange(table.size)]
        unknown += [each, np.full(table.size, 2 * cells)]
        weight += [np.ones(cells), -table.ravel()]
        sums += table.size
    low = np.zeros(sums)
    high = np.concatenate([np.full(cells, np.inf), np.zeros(sums - cells)])
    most = np.concatenate([np.full(cells, np.inf), np.ones(cells), [np.inf]])
    known = Sums(
        2 * cells + 1, np.concatenate(row), np.concatenate(unknown), low, high, np.concatenate(weight), most, False
    )
    found = known.best(np.concatenate([np.zeros(cells), np.ones(cells), [0.0]]))
    if found is None or found.x is None:
        return np.ones(shape, dtype=bool)
    filled: NDArray[np.bool_] = (found.x[cells : 2 * cells] > 0.5).reshape(shape)
    return filled


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
