"""Tables that agree with given marginals: whether somebody can be in some cells, how many at most, how many to expect.

`Fitted` judges collections that are not decomposable by them, cell by cell, where their domain is small enough;
elsewhere they are refused. Maximum entropy comes from iterative fitting over the cells that can have anybody, which
linear programs find first: scaling alone would take for ever to empty the others. Bounds on the people of a cell have
no closed form (they are NP-hard in general) and come from integer programs. A deadline ends both.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jali.core.arrays import Bools, Floats, Ints, counted, starts
from jali.core.programs import TOLERANCE, Sums
from jali.errors import InputError, InternalError
from jali.graphical.marginal import Cache, Marginal, coarsened
from jali.graphical.maxent import cells_of, finest
from jali.graphical.privacy.join import Cell, cell_of, quasi_of
from jali.graphical.privacy.maxent import Finding, Rule, worst

ORDERS = 24
"""Orders of elimination that are tried."""


def reached(world: NDArray[np.int64], scopes: Sequence[frozenset[int]]) -> Ints:
    """At least how many people a table with the same marginals can have in each cell of all axes but the last.

    `world` is one table, the sensitive values on its last axis; `scopes` are the axes of each marginal.
    """
    axes, random = world.ndim, np.random.default_rng(0)
    best: Ints = world.sum(axis=-1)
    for _ in range(ORDERS if axes > 2 else 0):
        best = np.maximum(best, _most(world, eliminated(scopes, random.permutation(axes).tolist())))
    return best


def eliminated(scopes: Iterable[frozenset[int]], order: Sequence[int]) -> set[frozenset[int]]:
    """The cliques of a decomposable graph in which every scope stands within a clique."""
    near: dict[int, set[int]] = {axis: set() for axis in order}
    for scope in scopes:
        for axis in scope:
            near[axis] |= scope - {axis}
    cliques = set()
    for axis in order:
        around = near.pop(axis)
        cliques.add(frozenset(around | {axis}))
        for other in around:
            near[other] = (near[other] | around) - {axis, other}
    return {clique for clique in cliques if not any(clique < other for other in cliques)}


def _most(world: NDArray[np.int64], cliques: Iterable[frozenset[int]]) -> Ints:
    """min(Σ_s min over cliques with the last axis of n(t, s), min over the others of n(t))."""
    last = world.ndim - 1
    valued: NDArray[np.int64] | None = None
    plain = np.full(world.shape[:-1], int(world.sum()))
    for clique in cliques:
        n = world.sum(axis=tuple(i for i in range(world.ndim) if i not in clique), keepdims=True)
        if last in clique:
            valued = n if valued is None else np.minimum(valued, n)
        else:
            plain = np.minimum(plain, n[..., 0])
    return plain if valued is None else np.minimum(plain, valued.sum(axis=-1))


SETTLED = 1e-9
"""A fit has settled when no cell will move by more than this share."""

CORNERS = 6
"""Linear programs that are tried, at different costs, before an integer program."""

ANY = 1e6
"""The gap at which an integer program may stop: any table will do."""


Near = Callable[[NDArray[Any]], Bools]
"""From a table to the cells that are known to have anybody in some other table: (cells,) both."""


def nothing(world: NDArray[Any]) -> Bools:
    """Nothing is known of other tables."""
    return np.zeros(len(world), dtype=bool)


class UnclearError(Exception):
    """A collection that cannot be judged within the limits; the text says why and what to do."""


class LateError(UnclearError):
    """Time ran out before a collection was judged."""

    def __init__(self) -> None:
        super().__init__(
            "the marginals could not be judged in the time allowed; publish fewer or coarser ones, or allow more time"
        )


@dataclass(frozen=True, eq=False)
class Tables:
    """All tables with these marginals: cell c stands in place `places[c, m]` of marginal m, which has n[m][place]."""

    places: NDArray[np.int64]  # (cells, marginals)
    n: tuple[Ints, ...]  # people at each place of each marginal

    @cached_property
    def limits(self) -> tuple[Ints, Ints]:
        """The least and the most people of each cell that single sums imply, one after the other: (cells,) twice."""
        high = np.min([n[self.places[:, m]] for m, n in enumerate(self.n)], axis=0)
        low = np.zeros_like(high)
        for _ in range(20):  # each round holds; more of them would only narrow further
            before = int((high - low).sum())
            for m, n in enumerate(self.n):
                place = self.places[:, m]
                room = n - counted(place, low, len(n))
                need = n - counted(place, high, len(n))
                low, high = np.maximum(low, high + need[place]), np.minimum(high, low + room[place])
            if int((high - low).sum()) == before:
                break
        return low, high

    @cached_property
    def _entries(self) -> tuple[Ints, Ints]:
        """The place of each cell in each marginal, the marginals' places numbered one after the other; and the cell."""
        place = (self.places + starts([len(n) for n in self.n])[:-1]).T.reshape(-1)
        return place, np.tile(np.arange(len(self.places)), len(self.n))

    def world(self, deadline: float) -> Ints:
        """One table of whole people: (cells,)."""
        sums = np.concatenate(self.n).astype(np.float64)
        known = Sums(len(self.places), *self._entries, sums, sums)
        best = known.best(np.zeros(len(self.places)), deadline=deadline)
        if best is None:
            raise InputError("the marginals contradict each other", do="give marginals of one table, all of them whole")
        if best.x is None:
            raise LateError
        return np.rint(best.x).astype(np.int64)

    def possible(self, world: Ints, *, whole: bool, deadline: float, near: Near = nothing) -> Bools:
        """Which cells have anybody in some table: (cells,). `world` is a table.

        `whole`: tables of whole people. Otherwise of any shares: the cells where maximum entropy puts anybody. `near`
        tells of cells that have anybody in tables near a given one; it is asked before a program is.
        """
        low, high = self.limits
        seen = (low > 0) | (world > 0) | near(world)
        for at in np.flatnonzero((high > 0) & ~seen).tolist():
            if not seen[at]:
                people = self._changed(world, np.array([at]), 1, whole=whole, deadline=deadline)
                if people is not None:
                    seen |= people > TOLERANCE
                    seen |= near(people)
        return seen

    def fewest(self, row: Ints, k: int, world: Ints, reached: Ints, deadline: float) -> tuple[int, int]:
        """The smallest positive number of people, below k, that a row of cells has at most, and the row; else k, -1.

        `world` is a table, and `reached` what each row is known to have in some table: (rows,).
        """
        best, where = k, -1
        for at in np.flatnonzero(reached < k).tolist():
            try:
                most = self._most(np.flatnonzero(row == at), int(reached[at]), best, world, deadline)
            except LateError:
                if where < 0:
                    raise
                break
            best, where = (most, at) if 0 < most < best else (best, where)
        return best, where

    def _most(self, inside: Ints, reached: int, enough: int, world: Ints, deadline: float) -> int:
        """The most people that some cells have in any table, followed up to `enough`; in some they have `reached`."""
        if reached == 0 and self._changed(world, inside, 1, whole=True, deadline=deadline) is None:
            return 0
        for wanted in range(enough, max(reached, 1), -1):
            if self._changed(world, inside, wanted, whole=True, deadline=deadline) is not None:
                return wanted
        return max(reached, 1)

    def _changed(self, world: Ints, inside: Ints, wanted: int, *, whole: bool, deadline: float) -> Floats | None:
        """The smallest change of a table by which some cells have `wanted` people; None where no table has them.

        Without `whole` people move in shares, and any share of `wanted` is enough: what counts is the direction.
        LateError where time runs out.
        """
        (place, here), cells, sums = self._entries, len(self.places), sum(map(len, self.n))
        more = wanted - int(world[inside].sum())
        row = np.concatenate([place, place, np.full(2 * len(inside), sums)])
        unknown = np.concatenate([here, cells + here, inside, cells + inside])
        weight = np.repeat([1.0, -1.0, 1.0, -1.0], [len(here), len(here), len(inside), len(inside)])
        low, high = np.zeros(sums + 1), np.zeros(sums + 1)
        low[-1], high[-1] = more, np.inf
        gone = world.astype(np.float64) if whole else np.where(world > 0, np.inf, 0.0)
        come = np.where(self.limits[1] > 0, np.inf, 0.0) if not whole else (self.limits[1] - world).astype(np.float64)
        most = np.concatenate([come, gone])
        random = np.random.default_rng(0)  # other costs lead to other corners, most of which are whole
        for attempt in range(CORNERS + 1 if whole else 1):
            exact = attempt == CORNERS
            known = Sums(2 * cells, row, unknown, low, high, weight, most, exact)
            cost = 1 + (random.random(2 * cells) if 0 < attempt < CORNERS else np.zeros(2 * cells))
            best = known.best(-cost, deadline=deadline, gap=ANY if exact else 0.0)
            if best is None:
                return None
            if best.x is None or not (best.exact or exact):  # a linear program that was stopped may show anything
                raise LateError
            change = best.x[:cells] - best.x[cells:]
            if not whole or abs(change - np.rint(change)).max() < TOLERANCE:
                return np.asarray(world + (np.rint(change) if whole else change))
        raise InternalError("an integer program answered with parts of people")

    def expected(self, possible: Bools, deadline: float, *, rounds: float = math.inf) -> Floats:
        """How many people maximum entropy expects in each cell, nobody where it is not possible: (cells,).

        Iterative scaling, the last marginal last. Every cell that is `possible` must have somebody in some table, so
        that scaling goes towards a positive number there; it ends when what is left to go is SETTLED, or after this
        number of `rounds`.
        """
        places, x = self.places[possible], np.ones(int(possible.sum()))
        moved, done = math.inf, 0
        while done < rounds:
            start, before, done = x, moved, done + 1
            for m, n in enumerate(self.n):
                now = np.bincount(places[:, m], weights=x, minlength=len(n))
                x = x * np.divide(n, now, out=np.zeros(len(n)), where=now > 0)[places[:, m]]
            moved = float(abs(x / start - 1).max(initial=0.0))
            rate = min(moved / before, 1.0) if before > 0 else 0.0
            if moved < 1e-13 or (math.isfinite(before) and moved * rate <= SETTLED * (1 - rate)):
                break
            if time.monotonic() > deadline:
                raise LateError
        people = np.zeros(len(possible))
        people[possible] = x
        return people


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
        shape = self.cache.domain.shape(self.shown)
        possible = np.ones(shape, dtype=bool)
        for marginal in self.marginals:
            place, n = self._seen(marginal, np.indices(shape).reshape(len(shape), -1).T)
            possible &= (n[place] > 0).reshape(shape)
        return np.argwhere(possible)

    def _seen(self, marginal: Marginal, cells: NDArray[np.int64]) -> tuple[Ints, Ints]:
        """The place of each cell among all nodes of a marginal, and the people of every place."""
        table = self.cache.table(marginal)
        codes = coarsened(self.cache.domain, cells, self.shown, marginal)
        return np.ravel_multi_index(tuple(codes), table.shape).astype(np.int64), table.ravel()

    @cached_property
    def _rows(self) -> tuple[Ints, NDArray[np.int64]]:
        """The quasi-identifier cell of each cell, and the codes of these: (cells,), (rows, attributes)."""
        return self._told_apart(quasi_of(self.cache, self.shown).attributes)

    def _told_apart(self, attributes: Sequence[int]) -> tuple[Ints, NDArray[np.int64]]:
        """The number of each cell among those that differ in some attributes, and the codes of these."""
        own = [self.shown.attributes.index(i) for i in attributes]
        codes, number = np.unique(self.cells[:, own], axis=0, return_inverse=True)
        return number.reshape(-1).astype(np.int64), codes

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
        return worst(rule, rule.judge(vectors, FITTED_TIE), self._cell)

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
        hidden, quasi = self.cache.domain.sensitive, quasi_of(self.cache, self.shown)
        row, codes = self._rows
        value, _ = self._told_apart([i for i in self.shown.attributes if i in hidden])
        world = np.zeros((*self.cache.domain.shape(quasi), int(value.max(initial=0)) + 1), dtype=np.int64)
        world[(*codes[row].T, value)] = self._world
        axis = {i: at for at, i in enumerate(quasi.attributes)} | dict.fromkeys(hidden, len(quasi.attributes))
        scopes = [frozenset(axis[i] for i in marginal.attributes) for marginal in self.marginals]
        people: Ints = reached(world, scopes)[tuple(codes.T)]
        return people
