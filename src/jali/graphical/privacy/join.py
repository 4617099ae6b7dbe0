"""Joins along a junction tree, pruned at every step (Kifer & Gehrke 2006, Algorithm 1)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from jali.core.arrays import Floats, Ints, combine, found_among
from jali.errors import InputError
from jali.estimates.base import kept
from jali.graphical.marginal import Cache, Levels, Marginal, coarsened
from jali.graphical.maxent import Tree

Cell = dict[int, tuple[int, int]]
"""A cell of the quasi-identifiers: attribute → level and node."""

INSIDE = 1e-12
"""A point is dropped only if it lies deeper than this within the hull of the others, in shares."""

HULL_VALUES = 3
"""Hulls are computed for up to this number of sensitive values, in the line or the plane of their shares.

With more, almost every vector is a corner of the hull, and finding out costs more than the join that it would avoid.
"""


def hull(rows: Floats, block: Ints) -> Ints:
    """Keep the corners of each block's convex hull of shares; (rows, at most HULL_VALUES)."""
    shares = rows / rows.sum(axis=1, keepdims=True)
    if rows.shape[1] == 1:
        return np.unique(block, return_index=True)[1].astype(np.int64)
    x, y = shares[:, 0], shares[:, -1] if rows.shape[1] == 3 else np.zeros(len(rows))
    order = np.lexsort((y, x, block))
    starts = np.flatnonzero(np.diff(block[order], prepend=-1))
    kept: list[int] = []
    for one in np.split(order, starts[1:]):
        kept.extend(_corners(one.tolist(), x, y) if len(one) > 2 else one.tolist())
    return np.array(sorted(kept), dtype=np.int64)


def _corners(order: list[int], x: Floats, y: Floats) -> set[int]:
    """Andrew's monotone chains over points in ascending order, both ways; the ends are always kept."""
    corners: set[int] = set()
    for points in (order, order[::-1]):
        chain: list[int] = []
        for c in points:
            while len(chain) >= 2:
                a, b = chain[-2], chain[-1]
                turn = (x[b] - x[a]) * (y[c] - y[a]) - (y[b] - y[a]) * (x[c] - x[a])
                if turn > -INSIDE and turn != 0.0:  # in ascending order, b on the line through a and c lies between
                    break
                chain.pop()
            chain.append(c)
        corners.update(chain)
    return corners


def ratio(rows: Floats, block: Ints) -> Ints:
    """Keep, in each block and for each ordered pair of values, a row with the largest ratio of the two.

    Enough for recursive (c, l)-diversity when l is the number of values: a cell breaks it through one pair, and joining
    multiplies all ratios of the pair by the same number. A row without the second value has an infinite ratio.
    """
    kept: list[Ints] = []
    with np.errstate(divide="ignore"):
        logs = np.log(rows)
    for s in range(rows.shape[1]):
        has = np.flatnonzero(rows[:, s] > 0)
        for other in range(rows.shape[1]):
            if other != s:
                apart = logs[has, s] - logs[has, other]
                order = has[np.lexsort((-apart, block[has]))]
                kept.append(order[np.flatnonzero(np.diff(block[order], prepend=-1))])
    return np.unique(np.concatenate(kept)) if kept else np.arange(len(rows))


def proportional(rows: Floats, block: Ints) -> Ints:
    """Keep one of the rows of a block that are multiples of each other, digit by digit: for any number of values."""
    return distinct(rows / rows.sum(axis=1, keepdims=True), block)


def support(rows: Floats, block: Ints) -> Ints:
    """Keep one of the rows of a block that have the same values: all that distinct diversity looks at."""
    return distinct((rows > 0).astype(np.float64), block)


def distinct(rows: Floats, block: Ints) -> Ints:
    """Keep the first of the equal rows of each block."""
    keyed = np.ascontiguousarray(np.column_stack([block.astype(np.float64), rows + 0.0]))
    raw = keyed.view(np.dtype((np.void, keyed.dtype.itemsize * keyed.shape[1]))).reshape(-1)
    return np.sort(np.unique(raw, return_index=True)[1]).astype(np.int64)


def capped(k: int, *, dominance_from: int = 64) -> Callable[[Floats, Ints], Ints]:
    """For bounds capped at k: keep one of equal rows, and none that is nowhere smaller than one with the same values.

    Rows with other values do not compare: (1, 0) ≤ (1, 2), but joined with (0, 3) they bound by 0, which is fine, and
    by 2, which is a breach.
    """

    def keep(rows: Floats, block: Ints) -> Ints:
        first = distinct(np.minimum(rows, k), block)
        return first if len(first) < dominance_from else _smallest(first, np.minimum(rows, k), block, equal=True)

    return keep


def smallest(rows: Floats, block: Ints) -> Ints:
    """Keep the rows that are nowhere larger than any other of their block: for relaxed checks, where 0 is a breach."""
    return _smallest(distinct(rows, block), rows, block, equal=False)


def _smallest(first: Ints, rows: Floats, block: Ints, *, equal: bool) -> Ints:
    """Of different rows, those that no other one of their block (and support, if `equal`) is at most everywhere."""
    key = np.column_stack([block[first], *((rows[first] > 0).T if equal else ())])
    _, family = np.unique(key, axis=0, return_inverse=True)
    order = np.lexsort((rows[first].sum(axis=1), family.reshape(-1)))
    starts = np.flatnonzero(np.diff(family.reshape(-1)[order], prepend=-1))
    kept: list[int] = []
    for one in np.split(first[order], starts[1:]):
        left = one
        while len(left):
            kept.append(int(left[0]))
            left = left[(rows[left] < rows[left[0]]).any(axis=1)]
    return np.array(sorted(kept), dtype=np.int64)


JOIN_LIMIT = 1 << 24
"""Numbers (rows × sensitive values) that a join may have: 128 MB. A larger one is refused, or relaxed if asked for."""

CHUNK = 1 << 20  # numbers of the last join that are looked at at a time

Prune = Callable[[Floats, Ints], Ints]
"""Rows and the block of each → the rows to keep, ascending."""

Combine = Callable[[Floats, Floats, Ints], Floats]
"""Rows of the parent, rows of the child, and rows of what both share → joined rows."""


class TooLargeError(Exception):
    """A join has more numbers than the limit allows."""


@dataclass(frozen=True, eq=False)
class Factor:
    """A marginal with the sensitive columns, as quasi-identifier cells × joint sensitive values."""

    quasi: Marginal
    cells: NDArray[np.int32]  # (rows, quasi attributes that it has)
    n: Ints  # (rows, joint values)


@dataclass(frozen=True, eq=False)
class Factors:
    """The factors of the marginals with certain sensitive columns, each made once."""

    cache: Cache
    sensitive: tuple[int, ...]  # attributes that always stand together
    limit: int = JOIN_LIMIT
    _kept: dict[Levels, Factor] = field(default_factory=dict, init=False, repr=False)
    _links: dict[tuple[Levels, Levels], Ints] = field(default_factory=dict, init=False, repr=False)

    @property
    def joint(self) -> NDArray[np.int32]:
        """The joint sensitive values that occur: (joint values, sensitive columns) codes, in order."""
        return self.cache.counts(self._alone()).cells

    @property
    def people(self) -> Ints:
        """How many people have each joint value: (joint values,)."""
        return self.cache.counts(self._alone()).n

    def _alone(self) -> Marginal:
        return Marginal((0,) * len(self.cache.domain.attributes)).only(self.sensitive)

    def of(self, marginal: Marginal) -> Factor:
        """The marginal, which must have the sensitive columns, as cells × joint values."""
        return kept(self._kept, marginal.levels, lambda: self.made(marginal), math.inf)

    def made(self, marginal: Marginal) -> Factor:
        """The same, not kept: for marginals that may never be joined."""
        counts, domain = self.cache.counts(marginal), self.cache.domain
        sizes, values = domain.shape(self._alone()), [counts.column(i) for i in self.sensitive]
        value = found_among([*self.joint.T], values, sizes, len(self.joint) + len(counts.n))
        quasi = marginal.only({*marginal.attributes} - {*self.sensitive})
        columns = [counts.column(i) for i in quasi.attributes]
        row, first = combine(list(zip(columns, domain.shape(quasi), strict=True)), len(counts.n))
        if len(first) * len(self.joint) > self.limit:
            raise TooLargeError
        n = np.zeros((len(first), len(self.joint)), dtype=np.int64)
        n[row, value] = counts.n
        cells = np.stack([codes[first] for codes in columns], axis=1) if columns else np.zeros((1, 0), np.int32)
        return Factor(quasi, cells, n)

    def link(self, marginal: Marginal, shared: Marginal) -> Ints:
        """The row of the shared marginal that each row of a finer one falls into: (rows,)."""
        key = (marginal.levels, shared.levels)
        if key not in self._links:
            fine, coarse, domain = self.of(marginal), self.of(shared), self.cache.domain
            up, rows = coarsened(domain, fine.cells, fine.quasi, coarse.quasi), len(coarse.cells) + len(fine.cells)
            link = found_among([*coarse.cells.T], up, domain.shape(coarse.quasi), rows)
            again = np.zeros_like(coarse.n)
            np.add.at(again, link, fine.n)
            if not np.array_equal(again, coarse.n):
                raise InputError(
                    "the marginals contradict each other", do="give marginals of one table, all of them whole"
                )
            self._links[key] = link
        return self._links[key]


@dataclass(frozen=True, eq=False)
class Rows:
    """Joined rows, and the row of each marginal that they came from; -1 for marginals not yet joined."""

    vectors: Floats  # (rows, joint values)
    origin: NDArray[np.int32]  # (rows, marginals of the tree)

    def kept(self, rows: Ints) -> Rows:
        """Some of the rows."""
        return self if len(rows) == len(self.vectors) else Rows(self.vectors[rows], self.origin[rows])


@dataclass(frozen=True, eq=False)
class Walk:
    """One pass over a junction tree: what a marginal's rows are, how rows are joined, and which may be dropped."""

    tree: Tree
    factors: Factors
    start: Callable[[int], Floats]  # marginal of the tree → its rows
    combine: Combine
    prune: Prune
    keeps_zeros: bool = False  # otherwise rows of zeros, cells where nobody can be, are left out

    def chunks(self) -> Iterator[Rows]:
        """The joined rows at the root, never more than CHUNK numbers at a time."""
        rows = self._own(0)
        children = self.tree.children(0)
        for child in children[:-1]:
            rows = self._joined(rows, 0, child)
        if not children:
            yield rows
            return
        other = self._below(children[-1])
        yield from self._pairs(rows, 0, children[-1], other, CHUNK)

    def _own(self, at: int) -> Rows:
        vectors = self.start(at)
        origin = np.full((len(vectors), len(self.tree.marginals)), -1, dtype=np.int32)
        origin[:, at] = np.arange(len(vectors))
        return Rows(vectors, origin)

    def _below(self, at: int) -> Rows:
        """The subtree of a marginal, pruned to what its parent can tell apart."""
        rows = self._own(at)
        for child in self.tree.children(at):
            rows = self._joined(rows, at, child)
        link = self.factors.link(self.tree.marginals[at], self.tree.separators[at])
        return rows.kept(self.prune(rows.vectors, link[rows.origin[:, at]]))

    def _joined(self, rows: Rows, at: int, child: int) -> Rows:
        limit = self.factors.limit
        parts = list(self._pairs(rows, at, child, self._below(child), limit))
        if len(parts) != 1:
            raise TooLargeError
        return parts[0].kept(self.prune(parts[0].vectors, parts[0].origin[:, at].astype(np.int64)))

    def _pairs(self, rows: Rows, at: int, child: int, other: Rows, size: int) -> Iterator[Rows]:
        """All pairs of rows that agree on what the two marginals share, `size` numbers at a time."""
        shared = self.tree.separators[child]
        left = self.factors.link(self.tree.marginals[at], shared)[rows.origin[:, at]]
        right = self.factors.link(self.tree.marginals[child], shared)[other.origin[:, child]]
        order = np.argsort(right, kind="stable")
        right, other = right[order], Rows(other.vectors[order], other.origin[order])
        begin, end = np.searchsorted(right, left, "left"), np.searchsorted(right, left, "right")
        upto = np.cumsum(end - begin)
        width = max(rows.vectors.shape[1], 1)
        if len(upto) and int(upto[-1]) * width > self.factors.limit:
            raise TooLargeError
        weight = self.factors.of(shared).n
        step, total = max(size // width, 1), int(upto[-1]) if len(upto) else 0
        for low in range(0, total, step):
            pair = np.arange(low, min(low + step, total))
            first = np.searchsorted(upto, pair, "right")
            second = begin[first] + pair - (upto - end + begin)[first]
            vectors = self.combine(rows.vectors[first], other.vectors[second], weight[left[first]])
            origin = np.maximum(rows.origin[first], other.origin[second])
            joined = Rows(vectors, origin)
            yield joined if self.keeps_zeros else joined.kept(np.flatnonzero(vectors.any(axis=1)))


def expected(left: Floats, right: Floats, shared: Ints) -> Floats:
    """Equation 2: left · right / shared, 0 where nobody is."""
    return np.asarray(left * right / np.maximum(shared, 1))


def least(left: Floats, right: Floats, shared: Ints) -> Floats:
    """The smaller of the two, what bounds and relaxed checks join by."""
    return np.minimum(left, right)


def quasi_of(cache: Cache, marginal: Marginal) -> Marginal:
    """The marginal without its sensitive columns."""
    return marginal.only({*marginal.attributes} - {*cache.domain.sensitive})


def cell_of(quasi: Marginal, codes: Ints) -> Cell:
    """A row of node codes as a cell."""
    return {i: (quasi.levels[i], int(code)) for i, code in zip(quasi.attributes, codes, strict=True)}


def origin_cell(tree: Tree, factors: Factors, origin: Ints) -> Cell:
    """The cell that a joined row stands for: each attribute at the finest level that one of its marginals shows."""
    cell: Cell = {}
    for marginal, row in zip(tree.marginals, origin, strict=True):
        factor = factors.of(marginal)
        for i, (level, node) in cell_of(factor.quasi, factor.cells[row]).items():
            if i not in cell or level < cell[i][0]:
                cell[i] = (level, node)
    return dict(sorted(cell.items()))
