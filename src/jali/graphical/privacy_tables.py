"""Tables of whole people with given marginals: how many can stand in some of the cells at most.

Cells have a least and a largest number of people; each published number narrows those of its cells, and where that
ends, a cell is split in two. Exact, and slow in the worst case: the number of steps is limited.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jali.principles.counts import Ints

STEPS = 20_000
"""Narrowings that the search for one collection may take."""


class TooManyStepsError(Exception):
    """The search did not end within its steps."""


@dataclass(frozen=True, eq=False)
class Tables:
    """All tables with these marginals: cell c stands in place `places[c, m]` of marginal m, which has n[m][place]."""

    places: NDArray[np.int64]  # (cells, marginals)
    n: tuple[Ints, ...]  # people at each place of each marginal

    def most(self, inside: Ints, enough: int, hint: Ints, steps: int) -> tuple[int, int]:
        """The largest number of people that some cells have in any table, followed up to `enough`; and steps left.

        `hint` is a table to try first (or zeros).
        """
        for wanted in range(enough, 0, -1):
            if int(hint[inside].sum()) >= wanted:
                return wanted, steps
            found, steps = self._exists(inside, wanted, hint, steps)
            if found:
                return wanted, steps
        return 0, steps

    def _exists(self, inside: Ints, wanted: int, hint: Ints, steps: int) -> tuple[bool, int]:
        """Whether a table has `wanted` people or more in these cells."""
        high = np.min([n[self.places[:, m]] for m, n in enumerate(self.n)], axis=0)
        stack = [(np.zeros_like(high), high)]
        while stack:
            low, high = stack.pop()
            steps -= 1
            if steps < 0:
                raise TooManyStepsError
            narrowed = self._narrowed(low, high, inside, wanted)
            if narrowed is None:
                continue
            low, high = narrowed
            if bool((low == high).all()):
                return True, steps
            free = np.flatnonzero(low < high)
            cell = int(free[np.argmin(high[free] - low[free])])
            value = int(np.clip(high[cell] if cell in inside else hint[cell], low[cell], high[cell]))
            for a, b in ((low[cell], value - 1), (value + 1, high[cell]), (value, value)):  # the last is tried first
                if a <= b:
                    lower, upper = low.copy(), high.copy()
                    lower[cell], upper[cell] = a, b
                    stack.append((lower, upper))
        return False, steps

    def _narrowed(self, low: Ints, high: Ints, inside: Ints, wanted: int) -> tuple[Ints, Ints] | None:
        """The narrowest limits that single sums imply; None where they contradict each other."""
        while True:
            before = int((high - low).sum())
            for m, n in enumerate(self.n):
                place = self.places[:, m]
                room = n - np.bincount(place, weights=low, minlength=len(n)).astype(np.int64)
                need = n - np.bincount(place, weights=high, minlength=len(n)).astype(np.int64)
                if (room < 0).any() or (need > 0).any():
                    return None
                low, high = np.maximum(low, high + need[place]), np.minimum(high, low + room[place])
            missing = wanted - int(high[inside].sum())
            if missing > 0:
                return None
            low = low.copy()
            low[inside] = np.maximum(low[inside], high[inside] + missing)
            if (low > high).any():
                return None
            if int((high - low).sum()) == before:
                return low, high
