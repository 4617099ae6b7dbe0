"""Maximum entropy the slow way: every leaf cell of a tiny domain, scaled to each marginal in turn."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from jali.core.arrays import Floats
from jali.encoding.table import Table
from jali.graphical.marginal import Marginal


class Dense:
    """A table as a full array over all values of its quasi-identifiers and sensitive columns."""

    def __init__(self, table: Table) -> None:
        self.columns = (*table.quasi, *table.sensitive)
        self.shape = tuple(len(column.values) for column in self.columns)
        self.n = np.zeros(self.shape)
        for row in range(table.records):
            self.n[tuple(int(column.codes[row]) for column in self.columns)] += 1
        masks = [column.mask(table.domain) for column in self.columns]
        self.allowed = np.ones(self.shape, dtype=bool)
        self.moves = 0.0  # of the last round of scaling
        for cell in product(*map(range, self.shape)):
            self.allowed[cell] = all(mask[code] for mask, code in zip(masks, cell, strict=True))

    def key(self, marginal: Marginal, cell: Sequence[int]) -> tuple[int, ...]:
        """The marginal's cell that a leaf cell falls into."""
        found = []
        for column, level, code in zip(self.columns, marginal.levels, cell, strict=True):
            if level < 0:
                found.append(0)
            else:
                found.append(int(column.hierarchy.maps[level][code]) if column.hierarchy else code)
        return tuple(found)

    @property
    def settled(self) -> bool:
        """Whether the last scaling had ended where it was going."""
        return self.moves < 1e-13

    def fitted(self, marginals: Sequence[Marginal], rounds: int = 400) -> Floats:
        """The maximum-entropy distribution over all leaf cells, by scaling until nothing moves, or so many rounds.

        Where cells must be empty that no marginal rules out, it gets there only as one over the rounds; `settled` says
        whether it did.
        """
        cells = [cell for cell in product(*map(range, self.shape)) if self.allowed[cell]]
        n = np.array([self.n[cell] for cell in cells])
        p = np.full(len(cells), 1 / len(cells))
        groups = []
        for marginal in marginals:
            keys = {key: i for i, key in enumerate(dict.fromkeys(self.key(marginal, cell) for cell in cells))}
            groups.append(np.array([keys[self.key(marginal, cell)] for cell in cells]))
        for _ in range(rounds):
            before = p
            for group in groups:
                want, have = np.bincount(group, n) / n.sum(), np.bincount(group, p)
                p = p * np.divide(want, have, out=np.zeros_like(have), where=have > 0)[group]
            self.moves = float(abs(p - before).max())
            if self.moves < 1e-15:
                break
        found = np.zeros(self.shape)
        for cell, share in zip(cells, p, strict=True):
            found[cell] = share
        return found

    def kl(self, q: Floats) -> float:
        """Σ p log(p / q) over the cells that have somebody."""
        p = self.n / self.n.sum()
        some = p > 0
        return float((p[some] * np.log(p[some] / q[some])).sum())
