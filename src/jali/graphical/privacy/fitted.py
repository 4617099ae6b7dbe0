"""Collections that are not decomposable, judged cell by cell where their domain is small enough, and refused elsewhere.

Maximum entropy comes from iterative fitting over the cells that can have anybody, which linear programs find first:
scaling alone would take for ever to empty the others. Bounds on the people of a cell have no closed form (they are
NP-hard in general) and come from integer programs. A deadline ends both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from jali.graphical.marginal import Cache, Marginal, upward
from jali.graphical.maxent import cells_of, finest
from jali.graphical.privacy.anonymity import Cell, cell_of, quasi_of
from jali.graphical.privacy.maxent import Finding, Rule, worst_row
from jali.graphical.privacy.tables import Tables, UnclearError, reached
from jali.principles.counts import Floats, Ints

FITTED_LIMIT = 1 << 18
"""Cells of the finest levels shown up to which a collection that is not decomposable is judged."""

FITTED_TIE = 1e-7
"""Two shares of a fitted distribution that differ by less, relatively, are the same."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """A collection that is not decomposable, over all cells of the finest levels that it shows."""

    cache: Cache
    marginals: tuple[Marginal, ...]
    deadline: float = math.inf  # by time.monotonic

    @cached_property
    def shown(self) -> Marginal:
        """The finest level of each attribute."""
        cells = cells_of(self.cache.domain, self.marginals)
        if cells > FITTED_LIMIT:
            raise UnclearError(
                f"the marginals are not decomposable, and their {cells:,} cells are more than the {FITTED_LIMIT:,} "
                "that can be judged one by one; publish fewer or coarser ones"
            )
        return finest(self.marginals)

    @cached_property
    def cells(self) -> NDArray[np.int64]:
        """The codes of every cell that no marginal rules out: (cells, attributes shown)."""
        shape = [self.cache.domain.attributes[i].nodes[self.shown.levels[i]] for i in self.shown.attributes]
        possible = np.ones(shape, dtype=bool)
        for marginal in self.marginals:
            place, n = self._seen(marginal, np.indices(shape).reshape(len(shape), -1).T)
            possible &= (n[place] > 0).reshape(shape)
        return np.argwhere(possible)

    def _seen(self, marginal: Marginal, cells: NDArray[np.int64]) -> tuple[Ints, Ints]:
        """The place of each cell among all nodes of a marginal, and the people of every place."""
        counts = self.cache.counts(marginal)
        place, known, size = np.zeros(len(cells), np.int64), np.zeros(len(counts.n), np.int64), 1
        for at, i in enumerate(marginal.attributes):
            chain = self.cache.domain.attributes[i]
            up = upward(chain, self.shown.levels[i], marginal.levels[i])
            nodes = chain.nodes[marginal.levels[i]]
            place = place * nodes + up[cells[:, self.shown.attributes.index(i)]]
            known = known * nodes + counts.cells[:, at]
            size *= nodes
        n = np.zeros(size, dtype=np.int64)
        n[known] = counts.n
        return place, n

    @cached_property
    def _rows(self) -> tuple[Ints, NDArray[np.int64]]:
        """The quasi-identifier cell of each cell, and the codes of these: (cells,), (rows, attributes)."""
        hidden = self.cache.domain.sensitive
        own = [at for at, i in enumerate(self.shown.attributes) if i not in hidden]
        codes, row = np.unique(self.cells[:, own], axis=0, return_inverse=True)
        return row.reshape(-1).astype(np.int64), codes

    @cached_property
    def _tables(self) -> Tables:
        """All tables with these marginals."""
        lines = [self._seen(marginal, self.cells) for marginal in self.marginals]
        return Tables(np.stack([place for place, _ in lines], axis=1), tuple(n for _, n in lines))

    @cached_property
    def _people(self) -> Floats:
        """How many people maximum entropy expects in each cell: (cells,)."""
        possible = self._tables.possible(self._world, whole=False, deadline=self.deadline)
        return self._tables.expected(possible, self.deadline)

    def finding(self, rule: Rule, sensitive: tuple[int, ...], joint: NDArray[np.int32]) -> Finding:
        """What a rule finds in the cells: `joint` numbers the joint values of the sensitive columns, in order."""
        people, (row, codes) = self._people, self._rows
        own = self.cells[:, [self.shown.attributes.index(i) for i in sensitive]]
        numbers = {tuple(value): at for at, value in enumerate(joint.tolist())}
        value = np.array([numbers[tuple(one)] for one in own.tolist()], dtype=np.int64)
        vectors = np.zeros((len(codes), len(joint)))
        np.add.at(vectors, (row, value), people)
        levels, holds = rule.judge(vectors, FITTED_TIE)
        at = worst_row(rule, levels, holds)
        return Finding(rule, bool(holds[at]), float(levels[at]), self._cell(at))

    def _cell(self, row: int) -> Cell:
        return cell_of(quasi_of(self.cache, self.shown), self._rows[1][row])

    def smallest_bound(self, k: int) -> tuple[int, Cell]:
        """The smallest positive number of people, below k, that a cell has at most, and the cell; else k."""
        best, where = self._tables.fewest(self._rows[0], k, self._world, self._reached, self.deadline)
        return best, {} if where < 0 else self._cell(where)

    @cached_property
    def _world(self) -> Ints:
        """A table with these marginals: the one at hand, or any: (cells,)."""
        if not self.shown.within(self.cache.sources[0].marginal):
            return self._tables.world(self.deadline)
        place, n = self._seen(self.shown, self.cells)
        return n[place]

    @cached_property
    def _reached(self) -> Ints:
        """What each cell of the quasi-identifiers has at least in some table: (rows,)."""
        hidden, shown = self.cache.domain.sensitive, self.shown
        own = [at for at, i in enumerate(shown.attributes) if i not in hidden]
        nodes = [self.cache.domain.attributes[i].nodes[shown.levels[i]] for i in shown.attributes]
        sizes = [nodes[at] for at in own]
        codes, value = self._rows[1], self._value
        world = np.zeros((*sizes, int(value.max(initial=0)) + 1), dtype=np.int64)
        world[(*codes[self._rows[0]].T, value)] = self._world
        axis = {shown.attributes[at]: place for place, at in enumerate(own)} | dict.fromkeys(hidden, len(own))
        scopes = [frozenset(axis[i] for i in marginal.attributes) for marginal in self.marginals]
        found: Ints = reached(world, scopes)[tuple(codes.T)]
        return found

    @cached_property
    def _value(self) -> Ints:
        """The number of each cell's joint sensitive value: (cells,)."""
        hidden = self.cache.domain.sensitive
        own = [at for at, i in enumerate(self.shown.attributes) if i in hidden]
        return np.unique(self.cells[:, own], axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)
