"""Inference on a junction tree of marginals: joint distributions of some columns, and people drawn from it.

Messages go from the leaves to the root (Lauritzen & Spiegelhalter 1988) over the cells that have somebody, never over
the domain; a part of the tree that holds nothing that is asked for sends 1 and is not visited.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jali.core.arrays import Floats, Ints, added, combine, owners, runs_of
from jali.errors import InputError, InternalError
from jali.graphical.marginal import ABSENT, Cache, Marginal, aggregated
from jali.graphical.maxent import Tree, finest

LARGEST = 1 << 24
"""Rows of a joint distribution that are held at most; more are refused."""


class Reading(NamedTuple):
    """What is read off a node: code `code[j]` with this share, for j from start[node] to start[node + 1]."""

    start: Ints  # (nodes + 1,)
    code: Ints  # (readings,)
    share: Floats  # (readings,)
    codes: int  # how many codes there are

    @classmethod
    def node(cls, nodes: int) -> Reading:
        """The node itself."""
        return cls(np.arange(nodes + 1), np.arange(nodes), np.ones(nodes), nodes)

    @classmethod
    def pattern(cls, share: Floats) -> Reading:
        """One of several patterns, with each node's share of them: (patterns, nodes)."""
        node, code = np.nonzero(share.T)
        start = np.searchsorted(node, np.arange(share.shape[1] + 1))
        return cls(start.astype(np.int64), code.astype(np.int64), share[code, node], len(share))


class Joint(NamedTuple):
    """The joint distribution of what was read: distinct combinations of codes and their mass, which sums to 1."""

    codes: tuple[Ints, ...]  # each (combinations,)
    mass: Floats  # (combinations,)


class Network:
    """A junction tree with its counts; attributes are read at the finest level that a marginal shows."""

    def __init__(self, cache: Cache, tree: Tree) -> None:
        self.cache, self.tree = cache, tree
        self.shown: Marginal = finest(tree.marginals)
        self.counts = [cache.counts(marginal) for marginal in tree.marginals]
        self._below: list[NDArray[np.int32]] = []  # of each marginal: the separator's cell of each of its cells
        self._above: list[NDArray[np.int32]] = []  # the separator's cell of each cell of the marginal it hangs on
        self._shared: list[Ints] = []  # how many people stand in each cell of the separator
        for i, (parent, separator) in enumerate(zip(tree.parent, tree.separators, strict=True)):
            here = aggregated(cache.domain, self.counts[i], separator)
            there = aggregated(cache.domain, self.counts[max(parent, 0)], separator)
            if not np.array_equal(here.cells, there.cells) or not np.array_equal(here.n, there.n):
                raise InputError("the marginals contradict each other: they count different people")
            self._below.append(here.cell_of_combination)
            self._above.append(there.cell_of_combination)
            self._shared.append(here.n)

    @cached_property
    def owner(self) -> tuple[int, ...]:
        """The first marginal that shows each attribute at its finest level; -1 where none has it."""
        found = []
        for i, level in enumerate(self.shown.levels):
            levels = [marginal.levels[i] for marginal in self.tree.marginals]
            found.append(-1 if level == ABSENT else levels.index(level))
        return tuple(found)

    def joint(self, asked: Mapping[int, Reading]) -> Joint:
        """The joint distribution of what is read of these attributes, each shown by some marginal, in their order."""
        if any(self.owner[i] < 0 for i in asked):
            raise InternalError("an attribute that no marginal shows cannot be read")
        wanted = {self.owner[i] for i in asked} | {0}
        for at in range(len(self.counts) - 1, 0, -1):  # parents come first in the sequence
            if at in wanted:
                wanted.add(self.tree.parent[at])
        _, order, codes, mass = self._collected(0, asked, wanted)
        return Joint(tuple(codes[order.index(i)] for i in asked), mass / self.cache.total)

    def _collected(
        self, at: int, asked: Mapping[int, Reading], wanted: set[int]
    ) -> tuple[NDArray[np.integer], list[int], list[Ints], Floats]:
        """The message of a marginal to its parent: separator cells, attributes read, their codes, weights."""
        counts = self.counts[at]
        cell = np.arange(len(counts.n))
        mass = counts.n.astype(np.float64)
        if at > 0:
            mass /= self._shared[at][self._below[at]]
        order: list[int] = []
        codes: list[Ints] = []
        for child in self.tree.children(at):
            if child in wanted:
                key, read, theirs, weight = self._collected(child, asked, wanted)
                start = np.searchsorted(key, np.arange(len(self._shared[child]) + 1))
                row, j = _spread(start, self._above[child][cell])
                cell, mass = cell[row], mass[row] * weight[j]
                codes = [one[row] for one in codes] + [one[j] for one in theirs]
                order += read
        for i, reading in asked.items():
            if self.owner[i] == at:
                row, j = _spread(reading.start, counts.column(i)[cell])
                cell, mass = cell[row], mass[row] * reading.share[j]
                codes = [one[row] for one in codes] + [reading.code[j]]
                order.append(i)
        widths = [asked[i].codes for i in order]
        return self._folded(at, cell, order, list(zip(codes, widths, strict=True)), mass)

    def _folded(
        self, at: int, cell: Ints, order: list[int], codes: list[tuple[Ints, int]], mass: Floats
    ) -> tuple[NDArray[np.integer], list[int], list[Ints], Floats]:
        """Rows of the same separator cell and the same codes made one, sorted by separator cell."""
        key = self._below[at][cell]
        number, first = combine([(key, len(self._shared[at])), *codes], len(mass))
        folded = added(number, mass, len(first))
        return key[first], order, [one[first] for one, _ in codes], folded

    def draw(self, people: int, random: np.random.Generator) -> NDArray[np.int32]:
        """People drawn by walking the tree from its root: node codes at the finest levels, (people, attributes)."""
        found = np.zeros((people, len(self.shown.levels)), dtype=np.int32)
        chosen: list[Ints] = []
        for at, counts in enumerate(self.counts):
            key = self._below[at]
            order = np.argsort(key, kind="stable")
            upto = np.cumsum(counts.n[order])
            shared = self._shared[at]
            before = np.cumsum(shared) - shared
            parent = self.tree.parent[at]
            given = self._above[at][chosen[parent]] if at else np.zeros(people, dtype=np.int32)
            place = before[given] + random.integers(0, shared[given])  # the number of a person among those of the cell
            chosen.append(order[np.searchsorted(upto, place, side="right")])
            for i in counts.marginal.attributes:
                if self.owner[i] == at:
                    found[:, i] = counts.column(i)[chosen[-1]]
        return found


def _spread(start: Ints, node: NDArray[np.integer]) -> tuple[Ints, Ints]:
    """Each row once for each entry of its node: the row, and the entry."""
    total = int(np.diff(start)[node].sum())
    if total > LARGEST:
        do = "ask for fewer columns together, or coarser conditions"
        raise InputError(f"a joint of these columns has more than {LARGEST:,} cells", got=f"{total:,}", do=do)
    size, entry = runs_of(start, node)
    return owners(size), entry
