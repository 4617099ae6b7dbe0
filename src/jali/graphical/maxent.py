"""Maximum entropy of a collection: in closed form where it is decomposable, by iterative fitting elsewhere."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce

import numpy as np
from numpy.typing import NDArray

from jali.core.arrays import Bools, Floats, Ints, combine, kl_of_shares
from jali.core.programs import Sums
from jali.errors import InputError
from jali.graphical.graph import JunctionTree, Mask, junction_tree
from jali.graphical.marginal import ABSENT, Cache, Domain, Marginal, coarsened, maximal, upward

DENSE = 1 << 14
"""Marginals of up to about this number of cells are held as a table of all cells, empty ones included."""


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
    tree = junction_tree([domain.mask(marginal) for marginal in marginals])
    if tree is None:
        return None
    cliques, separators = (tuple(map(domain.of_mask, masks)) for masks in (tree.cliques, tree.separator))
    return Tree(cliques, tree.parent, separators)


def finest(marginals: Sequence[Marginal]) -> Marginal:
    """Each attribute at the finest level that some marginal shows: its L_max."""
    return reduce(Marginal.__or__, marginals)


def log_probability(cache: Cache, tree: Tree, cells: NDArray[np.integer]) -> Floats:
    """log q at cells given by the codes of exact values: (cells,); −∞ where a marginal has nobody."""
    logs = log_shown(cache, tree, cells)
    for i, level in enumerate(finest(tree.marginals).levels):
        if (cache.domain.attributes[i].node_sizes(level) > 1).any():  # else nothing is spread
            logs -= np.log(_size(cache.domain, i, level, cells))
    return logs


def log_shown(cache: Cache, tree: Tree, cells: NDArray[np.integer]) -> Floats:
    """The log-probability of what the marginals show of each cell, before it is spread over its values: (cells,)."""
    logs = np.full(len(cells), -np.log(cache.total))
    columns = np.ascontiguousarray(cells.T)
    for marginal in tree.marginals:
        logs += _log_at(cache, marginal, columns, empty=-np.inf)
    for separator in tree.separators[1:]:
        logs -= _log_at(cache, separator, columns, empty=0.0)  # nobody there: the clique is empty too
    return logs


def _log_at(cache: Cache, marginal: Marginal, columns: NDArray[np.integer], *, empty: float) -> Floats:
    """The log of how many people stand in the marginal's cell of each of these cells; `empty` for nobody: (cells,).

    columns: (attributes, cells).
    """
    counts, known, asked = cache.counts(marginal), len(cache.counts(marginal).n), columns.shape[1]
    nodes = cache.domain.shape(marginal)
    here = [cache.domain.attributes[i].maps[marginal.levels[i]].take(columns[i]) for i in marginal.attributes]
    space = math.prod(nodes)
    own: Ints = np.zeros(known, dtype=np.int64)
    at: Ints = np.zeros(asked, dtype=np.int64)
    if space <= DENSE + 4 * (known + asked):
        for width, mine, theirs in zip(nodes, counts.cells.T, here, strict=True):
            own, at = own * width + mine, at * width + theirs
    else:
        both = [(np.concatenate([c, a]), n) for c, a, n in zip(counts.cells.T, here, nodes, strict=True)]
        number, first = combine(both, known + asked)
        own[:], at[:], space = number[:known], number[known:], len(first)
    logs = np.full(space, empty)
    logs[own] = np.log(counts.n)
    return logs.take(at)


def _size(domain: Domain, i: int, level: int, cells: NDArray[np.integer]) -> Floats:
    attribute = domain.attributes[i]
    node = np.zeros(len(cells), dtype=np.int64) if level == ABSENT else attribute.maps[level][cells[:, i]]
    sizes: Floats = np.maximum(attribute.node_sizes(level), 1).astype(np.float64)[node]
    return sizes


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
        entropy = self._entropies.get(mask)
        if entropy is None:
            entropy = self._entropies[mask] = self.cache.entropy(self.cache.domain.of_mask(mask)) if mask else 0.0
        return entropy

    def kl(self, masks: Sequence[Mask]) -> float | None:
        """The divergence of a collection of sets of induced attributes; None where it is not decomposable."""
        tree = junction_tree(masks or [0])
        return None if tree is None else self.of_tree(tree)

    def of_tree(self, tree: JunctionTree) -> float:
        """The divergence of the collection with this junction tree."""
        shown = 0
        kl = -self.own
        for clique, separator in zip(tree.cliques, tree.separator, strict=True):
            shown |= clique
            kl += self.entropy(clique) - self.entropy(separator)
        for (offset, chain), means in zip(self._chains, self.spreads, strict=True):
            kl += means[(shown >> offset & chain).bit_count()]
        return max(kl, 0.0)


LARGEST = 1 << 24
"""Cells that are fitted at most: 128 MB; a larger domain is refused."""

EMPTIED = 1 << 14
"""Cells up to which a program looks for those that must be empty."""


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
        have, want, chains = shown.levels, marginal.levels, cache.domain.attributes
        self.summed = tuple(at for at, i in enumerate(shown.attributes) if want[i] == ABSENT)
        coarser = [(axis, i) for axis, i in enumerate(marginal.attributes) if have[i] != want[i]]
        self.maps = [(axis, upward(chains[i], have[i], want[i])) for axis, i in coarser]
        self.share = cache.table(marginal) / cache.total

    def reach(self, p: Floats) -> tuple[Floats, float]:
        """What p must be multiplied by to meet the marginal, and how far from it p is."""
        sums = p.sum(axis=self.summed)
        for axis, step in self.maps:
            into = np.equal.outer(np.arange(self.share.shape[axis]), step).astype(np.float64)
            sums = np.moveaxis(np.tensordot(into, sums, axes=(1, axis)), 0, axis)
        gap = float(abs(sums - self.share).max())
        ratio = np.divide(self.share, sums, out=np.zeros_like(sums), where=sums > 0)
        for axis, step in self.maps:
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


def _can_be_filled(cache: Cache, marginals: Sequence[Marginal], shown: Marginal, shape: tuple[int, ...]) -> Bools:
    """Which cells some table with these marginals fills, tables of fractions of people among them.

    One program: x, t ≥ 1 and y ≤ min(x, 1) with A x = t n; the largest Σ y has y = 1 just where a cell can be filled,
    since sums of such tables, and multiples of them, are such tables.
    """
    cells = math.prod(shape)
    codes, each = np.indices(shape).reshape(len(shape), -1), np.arange(cells)
    row, unknown, weight, sums = [each, each], [each, cells + each], [np.ones(cells), -np.ones(cells)], cells
    for marginal in marginals:
        table = cache.table(marginal).astype(np.float64)
        place = np.ravel_multi_index(tuple(coarsened(cache.domain, codes.T, shown, marginal)), table.shape)
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
    best = known.best(np.concatenate([np.zeros(cells), np.ones(cells), [0.0]]))
    if best is None or best.x is None:
        return np.ones(shape, dtype=bool)
    filled: Bools = (best.x[cells : 2 * cells] > 0.5).reshape(shape)
    return filled


def cells_of(domain: Domain, marginals: Sequence[Marginal]) -> int:
    """How many cells the finest levels of a collection span."""
    return math.prod(domain.shape(finest(marginals)))


def _uniform(domain: Domain, shown: Marginal) -> Floats:
    shape = domain.shape(shown)
    if math.prod(shape) > LARGEST:
        what = f"a collection that is not decomposable is fitted over at most {LARGEST:,} cells"
        do = "publish a decomposable collection, or coarser levels"
        raise InputError(what, got=f"{math.prod(shape):,}", do=do)
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
    inferred = found.p[at]
    for i in range(len(domain.attributes)):
        inferred = inferred / _size(domain, i, shown.levels[i], source.cells)
    return kl_of_shares(share, inferred)
