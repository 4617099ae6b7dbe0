"""What follows from a collection of marginals: joint distributions, people drawn from them, and bounds of counts.

`Network` sends messages from the leaves of a junction tree to its root (Lauritzen & Spiegelhalter 1988) over the cells
that have somebody, never over the domain; a part of the tree that holds nothing that is asked for sends 1 and is not
visited. `joint_bounds` solves two linear programs. Their unknowns are the people in each joint cell of the columns that
matter: those asked for, and those that tie the marginals to each other. A column, or a finer level of one, that a
single marginal shows and nobody asks for is summed away first; so are values of an asked column that the condition
cannot tell apart. For a decomposable collection nothing is lost by that: what was summed away can be put back, marginal
by marginal.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jali.core.arrays import Bools, Floats, Ints, added, combine, counted, pairs_of
from jali.core.programs import TOLERANCE, Sums
from jali.errors import InputError, InternalError
from jali.graphical.graph import Mask, largest
from jali.graphical.marginal import ABSENT, Cache, Marginal, aggregated, upward
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
        owners = []
        for i, level in enumerate(self.shown.levels):
            levels = [marginal.levels[i] for marginal in self.tree.marginals]
            owners.append(-1 if level == ABSENT else levels.index(level))
        return tuple(owners)

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
        """The message of a marginal to its parent: separator cells in order, attributes read, their codes, weights."""
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
        key, widths = self._below[at][cell], [asked[i].codes for i in order]  # what is the same to the parent is one
        number, first = combine([(key, len(self._shared[at])), *zip(codes, widths, strict=True)], len(mass))
        return key[first], order, [one[first] for one in codes], added(number, mass, len(first))

    def draw(self, people: int, random: np.random.Generator) -> NDArray[np.int32]:
        """People drawn by walking the tree from its root: node codes at the finest levels, (people, attributes)."""
        codes = np.zeros((people, len(self.shown.levels)), dtype=np.int32)
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
                    codes[:, i] = counts.column(i)[chosen[-1]]
        return codes


def _spread(start: Ints, node: NDArray[np.integer]) -> tuple[Ints, Ints]:
    """Each row once for each entry of its node: the row, and the entry."""
    total = int(np.diff(start)[node].sum())
    if total > LARGEST:
        do = "ask for fewer columns together, or coarser conditions"
        raise InputError(f"a joint of these columns has more than {LARGEST:,} cells", got=f"{total:,}", do=do)
    return pairs_of(start, node)


CELLS = 1 << 14
"""JointCells cells up to which the programs are solved; beyond, each marginal bounds alone."""

SECONDS = 10.0
"""How long one question may take; then each marginal bounds alone."""

Groups = Mapping[int, Ints]
"""For an attribute, the group of each node at its finest level."""


class JointCells(NamedTuple):
    """The joint cells: the group of each attribute that each stands in, and the sums that are known of them."""

    codes: dict[int, Ints]  # attribute → (cells,)
    places: list[Ints]  # for each marginal (cells,)
    n: list[Ints]  # for each marginal (places,)


def reduced(cache: Cache, marginals: Sequence[Marginal], asked: Mask) -> tuple[Marginal, ...]:
    """The marginals without what a single one of them shows and nobody asks for; contained ones are left out."""
    masks = largest(cache.domain.mask(marginal) for marginal in marginals)
    while True:
        shared = 0
        for at, mask in enumerate(masks):
            for other in masks[at + 1 :]:
                shared |= mask & other
        kept = tuple(mask for mask in largest(mask & (shared | asked) for mask in masks) if mask)
        if kept == masks:
            return tuple(cache.domain.of_mask(mask) for mask in masks)
        masks = kept


def grouped(cache: Cache, marginals: Sequence[Marginal], alike: Mapping[int, NDArray[np.generic]]) -> Groups:
    """The groups of each attribute's nodes that neither two marginals nor the question tell apart.

    `alike` gives each node of an asked attribute, at its finest level, a row: (nodes, …).
    """
    groups: dict[int, Ints] = {}
    shown = finest(marginals)
    for i in shown.attributes:
        attribute = cache.domain.attributes[i]
        levels = sorted(marginal.levels[i] for marginal in marginals if marginal.levels[i] != ABSENT)
        nodes = np.arange(attribute.nodes[shown.levels[i]])
        tied = upward(attribute, levels[0], levels[1])[nodes] if len(levels) > 1 else np.zeros(len(nodes), np.int64)
        rows = alike[i] if i in alike else np.zeros((len(nodes), 0))
        key = np.column_stack([tied, rows.astype(np.int64)])
        groups[i] = np.unique(key, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return groups


def joint_cells(cache: Cache, marginals: Sequence[Marginal], groups: Groups) -> JointCells | None:
    """The joint cells that no marginal rules out; None where there are too many to be looked at."""
    sizes = [int(group.max()) + 1 for group in groups.values()]
    if math.prod(sizes) > CELLS:
        return None
    codes = dict(zip(groups, np.indices(sizes).reshape(len(sizes), -1).astype(np.int64), strict=True))
    shown = finest(marginals)
    places: list[Ints] = []
    sums: list[Ints] = []
    possible = np.ones(math.prod(sizes), dtype=bool)
    for marginal in marginals:
        counts = cache.counts(marginal)
        place, own, size = np.zeros(math.prod(sizes), np.int64), np.zeros(len(counts.n), np.int64), 1
        for i in marginal.attributes:
            attribute, level, group = cache.domain.attributes[i], marginal.levels[i], groups[i]
            if level == shown.levels[i]:
                width, here, mine = int(group.max()) + 1, codes[i], group[counts.column(i)]
            else:
                into = np.zeros(int(group.max()) + 1, dtype=np.int64)
                into[group] = upward(attribute, shown.levels[i], level)
                width, here, mine = attribute.nodes[level], into[codes[i]], counts.column(i).astype(np.int64)
            place, own, size = place * width + here, own * width + mine, size * width
        n = counted(own, counts.n, size)
        possible &= n[place] > 0
        places.append(place)
        sums.append(n)
    return JointCells({i: code[possible] for i, code in codes.items()}, [place[possible] for place in places], sums)


def bounds(joint: JointCells, sure: Bools, maybe: Bools) -> tuple[float, float]:
    """The least of the people who surely satisfy a condition, and the most of those who may."""
    start = np.cumsum([0, *map(len, joint.n)])
    cells = len(sure)
    row = np.concatenate([place + first for place, first in zip(joint.places, start, strict=False)])
    sums = np.concatenate(joint.n).astype(np.float64)
    known = Sums(cells, row, np.tile(np.arange(cells), len(joint.n)), sums, sums, whole=False)
    deadline = time.monotonic() + SECONDS
    least = known.best(-sure.astype(np.float64), deadline=deadline)
    most = known.best(maybe.astype(np.float64), deadline=deadline)
    low, high = 0.0, math.inf
    if least is not None and least.exact:
        low = float(math.ceil(-least.limit - TOLERANCE))
    if most is not None and most.exact:
        high = float(math.floor(most.limit + TOLERANCE))
    return max(low, 0.0), high


def joint_bounds(
    cache: Cache,
    marginals: Sequence[Marginal],
    alike: Mapping[int, NDArray[np.generic]],
    judge: Callable[[Groups, Mapping[int, Ints]], tuple[Bools, ...]],
) -> tuple[float, float]:
    """Bounds of a count from all marginals together; 0 and infinity where they say no more than each alone.

    `judge` says of joint cells, given by the group of each asked attribute, whether the condition holds for all and for
    any of their people.
    """
    some = reduced(cache, marginals, cache.domain.mask(finest(marginals).only(alike)))
    if len(some) < 2:
        return 0.0, math.inf
    groups = grouped(cache, some, alike)
    joint = joint_cells(cache, some, groups)
    if joint is None:
        return 0.0, math.inf
    sure, maybe = judge(groups, joint.codes)
    return bounds(joint, sure, maybe)
