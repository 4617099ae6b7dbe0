"""Collections that are not decomposable, judged cell by cell where their domain is small enough, and refused elsewhere.

Maximum entropy comes from iterative fitting, and is used only where it has settled, also in the cells that it may be
driving to zero. Bounds on the people of a cell have no closed form (they are NP-hard in general); they are found by a
search over whole tables, with a limit on its steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from jali.graphical.fit import cells_of, fit
from jali.graphical.marginal import Cache, Marginal, upward
from jali.graphical.maxent import finest
from jali.graphical.privacy_bounds import Cell, cell_of, quasi_of
from jali.graphical.privacy_diversity import Rule
from jali.graphical.privacy_maxent import Finding, worst_row
from jali.graphical.privacy_tables import STEPS, Tables, TooManyStepsError
from jali.principles.counts import Floats, Ints

FITTED_LIMIT = 1 << 18
"""Cells of the finest levels shown up to which a collection that is not decomposable is judged."""

FITTED_TIE = 1e-7
"""Two shares of a fitted distribution that differ by less, relatively, are the same."""


class UnclearError(Exception):
    """A collection that cannot be judged within the limits; the text says why and what to do."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """A collection that is not decomposable, over all cells of the finest levels that it shows."""

    cache: Cache
    marginals: tuple[Marginal, ...]

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
    def _people(self) -> Floats:
        """How many people maximum entropy expects in each cell: (cells,)."""
        early = fit(self.cache, self.marginals, tolerance=1e-9)
        late = fit(self.cache, self.marginals)
        at = tuple(self.cells.T)
        if not late.converged or bool((late.p[at] < 0.9 * early.p[at]).any()):
            raise UnclearError(
                "the marginals are not decomposable, and fitting them does not settle; publish decomposable ones"
            )
        return np.asarray(late.p[at] * self.cache.total)

    def finding(self, rule: Rule, sensitive: tuple[int, ...], joint: NDArray[np.int32]) -> Finding:
        """What a rule finds in the cells: `joint` numbers the joint values of the sensitive columns, in order."""
        people, (row, codes) = self._people, self._rows
        own = self.cells[:, [self.shown.attributes.index(i) for i in sensitive]]
        numbers = {tuple(value): at for at, value in enumerate(joint.tolist())}
        value = np.array([numbers[tuple(one)] for one in own.tolist()], dtype=np.int64)
        vectors = np.zeros((len(codes), len(joint)))
        np.add.at(vectors, (row, value), people)
        levels = rule.level(vectors)
        holds = rule.enough(levels, FITTED_TIE)
        at = worst_row(rule, levels, holds)
        return Finding(rule, bool(holds[at]), float(levels[at]), self._cell(at))

    def _cell(self, row: int) -> Cell:
        return cell_of(quasi_of(self.cache, self.shown), self._rows[1][row])

    def smallest_bound(self, k: int) -> tuple[int, Cell]:
        """The smallest positive number of people, below k, that a cell has at most, and the cell; else k.

        Cells with k people in the table itself, where it is at hand, need no search.
        """
        row, codes = self._rows
        lines = [self._seen(marginal, self.cells) for marginal in self.marginals]
        tables = Tables(np.stack([place for place, _ in lines], axis=1), tuple(n for _, n in lines))
        hint = self._table()
        order = np.argsort(row, kind="stable")
        start = np.searchsorted(row[order], np.arange(len(codes) + 1))
        steps, best, where = STEPS, k, -1
        for at in np.flatnonzero(np.bincount(row, weights=hint, minlength=len(codes)) < k).tolist():
            inside = order[start[at] : start[at + 1]]
            try:
                most, steps = tables.most(inside, best, hint, steps)
            except TooManyStepsError:
                raise UnclearError(
                    "the marginals are not decomposable, and how many people a cell can have is too hard to tell; "
                    "publish a decomposable collection"
                ) from None
            if 0 < most < best:
                best, where = most, at
        return best, {} if where < 0 else self._cell(where)

    def _table(self) -> Ints:
        """The table's own people of each cell where it is at hand, else nobody: (cells,)."""
        if not self.shown.within(self.cache.sources[0].marginal):
            return np.zeros(len(self.cells), dtype=np.int64)
        place, n = self._seen(self.shown, self.cells)
        return n[place]
