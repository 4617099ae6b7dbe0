"""Full-domain generalization: the lattice of levels, all minimal nodes, and the best node under a budget."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import prod

import numpy as np

from jali import kernels
from jali.core.arrays import Bools, Ints
from jali.core.progress import Step
from jali.encoding.table import Table
from jali.errors import InfeasibleError, InputError, nearest
from jali.principles.base import Principle, least_people, show
from jali.search.common import (
    Partition,
    breaking,
    first_union_that_holds,
    levels_of,
    merging_never_breaks,
    require_feasible,
    too_large,
)
from jali.search.gate import compare, judged, note, recording
from jali.search.lattice.compiled import CompiledLattice, compiled
from jali.search.lattice.costs import METRICS, Costing, Metric, Node, Nodes
from jali.search.lattice.tally import Levels, Roller, Tallies, Tally, below

Ranked = tuple[tuple[float, int, Levels], Levels, Bools]

LARGEST = 200_000
"""The largest lattice that is searched; a larger one wants partitioning, or fewer levels."""


class Lattice:
    """The generalization lattice of one table under one requirement."""

    def __init__(
        self, table: Table, principles: tuple[Principle, ...], *, on_step: Step, largest: int = LARGEST
    ) -> None:
        self.table, self.principles, self.on_step = table, principles, on_step
        self.roller = Roller(table)
        self.tallies = Tallies(self.roller)
        self.top, self.floor = self.roller.top, table.floor
        self.nodes = int(np.prod([height + 1 for height in self.top], dtype=object))
        if self.nodes > largest:
            raise too_large(table, self.nodes, largest)
        self.checked = 0
        self.monotone = all(merging_never_breaks(p, table.frequencies) for p in principles)
        one_row = table.frequencies.person is None
        require_feasible(principles, self.roller.whole, table.frequencies)
        self.least = least_people(principles, self.roller.whole) if one_row else 1

    @cached_property
    def costing(self) -> Costing:
        """What nodes of this table cost."""
        return Costing(self.table, self.roller.hierarchies)

    @cached_property
    def _compiled(self) -> CompiledLattice | None:
        """The same search by kernels, where they can do it and it is worth their while; they keep no record."""
        small = self.nodes * (self.table.frequencies.combinations + 1_000) <= kernels.LOOKS
        if recording() or small or self.nodes > LARGEST:
            return None
        return compiled(self.roller, self.principles, self.least)

    def _heard(self, checked: int) -> None:
        """Say how many nodes the kernels have judged."""
        self.checked = checked
        self.on_step(min(checked, self.nodes), self.nodes)

    # -- the nodes around a node ------------------------------------------------------------------------------

    def coarser(self, node: Levels) -> list[Levels]:
        """The nodes one step above."""
        return [(*node[:i], n + 1, *node[i + 1 :]) for i, n in enumerate(node) if n < self.top[i]]

    def all_nodes(self) -> list[Levels]:
        """Every node that the table tells, lowest first."""
        levels = (range(low, high + 1) for low, high in zip(self.floor, self.top, strict=True))
        return sorted(itertools.product(*levels), key=lambda node: (sum(node), node))

    # -- judging a node ---------------------------------------------------------------------------------------

    def _step(self) -> None:
        self.checked += 1
        self.on_step(self.checked, self.nodes)

    def failing(self, tally: Tally) -> Bools:
        """Which groups of a node break a promise."""
        return ~judged(self.principles, self.roller.counts(tally))

    def tally(self, node: Levels) -> Tally:
        """The counts of a node, rolled up from the nearest finer node that is still at hand."""
        return self.tallies.get(node)

    def large_enough(self, node: Levels, budget: int = 0) -> bool:
        """Whether at most `budget` rows of a node lie in groups too small for any of the principles to hold."""
        if self.least <= 1:
            return True
        sizes = self.roller.sizes(self.roller.bottom, node)
        return int(sizes[sizes < self.least].sum()) <= budget

    def satisfied(self, node: Levels) -> bool:
        """Whether every group of the node keeps every promise."""
        self._step()
        if not self.large_enough(node):
            return False
        if self.table.frequencies.person is None and all(p.judges_size_alone for p in self.principles):
            return True
        tally = self.tallies.rolled(node)
        holds = not bool(self.failing(tally).any())
        bottom = self.roller.bottom
        note("node", lambda: (np.arange(bottom.groups), self.roller.numbers(bottom, node)[0]), holds)
        if not holds or not self.monotone:
            self.tallies.keep(tally)
        return holds

    # -- the minimal nodes ------------------------------------------------------------------------------------

    def minimal(self) -> list[Levels]:
        """All nodes that satisfy the requirement while no finer one does."""
        if not self.monotone:
            return lowest(self.all_satisfied())
        kernels = self._compiled
        if kernels is not None:
            return kernels.minimal(self._heard)
        return frontier(self.top, self.satisfied, self.floor)

    def all_satisfied(self) -> list[Levels]:
        """All nodes that satisfy the requirement, each looked at; InfeasibleError where there is none."""
        held = [node for node in self.all_nodes() if self.satisfied(node)]
        if not held:
            raise self.none_holds()
        return held

    def none_holds(self, budget: int = 0) -> InfeasibleError:
        """What is said once every node was judged; the whole table as one group proves it only for some principles."""
        promises = ", ".join(map(repr, self.principles))
        within = f" with at most {budget:,} rows suppressed" if budget else ""
        reached = ", ".join(f"{p.title} {show(p.worst(self.roller.whole))}" for p in self.principles)
        return InfeasibleError(
            f"no full-domain generalization keeps {promises}{within}: all {self.nodes:,} were judged, "
            f"and as one group the whole table reaches {reached}"
        )

    def minimal_nodes(self) -> Nodes:
        """The minimal nodes with their costs, and what is known of the others."""
        costing = self.costing
        held = None if self.monotone else self.all_satisfied()
        found = self.minimal() if held is None else lowest(held)
        top = {c.name: height for c, height in zip(self.table.quasi, self.top, strict=True)}
        return Nodes([self.node(levels, costing) for levels in found], top, None if held is None else frozenset(held))

    # -- the best node under a budget of suppressed rows -------------------------------------------------------

    def best(self, metric: Metric, suppress: Fraction, importance: Ints | None = None) -> tuple[Levels, Bools]:
        """The node with the least cost, and its suppressed groups; ties go to fewer suppressed rows, then lower levels.

        `importance`, (columns,) in millionths of the least one's, weighs the costs of columns.

        Without suppression the best node is minimal, since costs grow upwards; KL does not where rows are published
        with the mean weight of their group.
        """
        if metric not in METRICS:
            raise InputError(f'no metric "{metric}"', do=nearest(metric, METRICS))
        if metric == "kl" or suppress:
            compare(f"lattice nodes by {metric}")
        budget = int(suppress * self.table.rows)
        weighted = metric == "kl" and self.table.weight is not None
        costing, kernels = self.costing, self._compiled
        if importance is not None:
            costing = Costing(self.table, self.roller.hierarchies, importance=importance)
        if budget == 0 and self.monotone and not weighted:
            nodes = self.minimal()
            if kernels is not None:
                nodes = kernels.cheapest(costing, metric, nodes)
            if len(nodes) > 1:
                nodes = [min((round(self.cost(costing, metric, node), 12), node) for node in nodes)[1]]
            node = nodes[0]
            groups = self.tally(node).groups if kernels is None else kernels.groups(node)
            return node, np.zeros(groups, dtype=bool)
        if kernels is None or weighted:
            return self._best_first(costing, metric, budget)
        return self._best_compiled(kernels, costing, metric, budget)

    def _best_compiled(
        self, kernels: CompiledLattice, costing: Costing, metric: Metric, budget: int
    ) -> tuple[Levels, Bools]:
        """The same as `_best_first`; kernels find the nodes that may be the best, which are priced again here."""

        def ask(node: Levels) -> tuple[float, int] | None:
            found = self._ranked(costing, metric, node, budget)
            return None if found is None else found[0][:2]

        nodes = kernels.best(costing, metric, budget, ask, self._heard)
        ranked = [self._ranked(costing, metric, node, budget) for node in nodes]
        best = min((found for found in ranked if found is not None), key=lambda found: found[0], default=None)
        if best is None:
            raise self.none_holds(budget)
        return best[1], best[2]

    def rank(self, metric: Metric, node: Levels, hidden: Bools, importance: Ints | None) -> tuple[float, int, Levels]:
        """What nodes are compared by, the lowest being the best."""
        costing, tally = Costing(self.table, self.roller.hierarchies, importance=importance), self.tally(node)
        return round(costing.price(tally, hidden, metric), 12), int(tally.rows[hidden].sum()), node

    def _ranked(self, costing: Costing, metric: Metric, node: Levels, budget: int) -> Ranked | None:
        tally = self.tally(node)
        hidden = self.suppression(tally, budget)
        if hidden is None:
            return None
        cost = round(costing.price(tally, hidden, metric), 12)
        return (cost, int(tally.rows[hidden].sum()), node), node, hidden

    def _best_first(self, costing: Costing, metric: Metric, budget: int) -> tuple[Levels, Bools]:
        """Nodes in the order of what they cost at the least, until the least exceeds the best found.

        Feasibility under suppression is not monotone, so no node is skipped for what its neighbours do. Two things
        are: rows in groups too small for any principle only become more further down, so everything below
        the frontier of too many of them is out; and what a node costs at the least only grows upwards.
        """
        heap: list[tuple[float, Levels, bool]] = [(0.0, node, False) for node in self._finest(budget)]
        heapq.heapify(heap)
        seen = {node for _, node, _ in heap}
        best: Ranked | None = None
        while heap:
            bound, node, known = heapq.heappop(heap)
            if best is not None and bound > best[0][0]:
                break
            if not known:
                own = max(bound, round(self._unsuppressed(costing, metric, node), 12) - 1e-12)
                heapq.heappush(heap, (own, node, True))
                continue
            self._step()
            found = self._ranked(costing, metric, node, budget)
            if found is not None and (best is None or found[0] < best[0]):
                best = found
            for above in self.coarser(node):
                if above not in seen:
                    seen.add(above)
                    heapq.heappush(heap, (bound, above, False))
        if best is None:
            raise self.none_holds(budget)
        return best[1], best[2]

    def cost(self, costing: Costing, metric: Metric, node: Levels) -> float:
        """What a node costs when nothing is suppressed."""
        if metric == "kl" and self.table.weight is not None:
            tally = self.tally(node)
            return costing.price(tally, np.zeros(tally.groups, dtype=bool), metric)
        return self._unsuppressed(costing, metric, node)

    def _unsuppressed(self, costing: Costing, metric: Metric, node: Levels) -> float:
        """What a node costs at the least, whatever is suppressed: suppression only raises every cost but KL."""
        if metric in {"loss", "height"}:  # no need to count
            return costing.unsuppressed(metric, node, np.empty(0))
        count = self.roller.cell_weights if metric == "kl" else self.roller.sizes
        return costing.unsuppressed(metric, node, count(self.tallies.nearest(node), node))

    def _finest(self, budget: int) -> list[Levels]:
        """The finest nodes in which at most `budget` rows lie in groups too small for any of the principles."""
        if self.least <= 1:
            return [self.floor]
        return frontier(self.top, lambda node: self.large_enough(node, budget), self.floor)

    def suppression(self, tally: Tally, budget: int) -> Bools | None:
        """Which groups must be suppressed so that all groups hold, the suppressed one too; None if too many.

        Further groups join the suppressed one, smallest first, until it keeps every promise itself.
        """
        counts = self.roller.counts(tally)
        hidden = breaking(self.principles, counts)
        rows = int(tally.rows[hidden].sum())
        if rows == 0:
            return hidden
        if rows > budget:
            return None
        order = np.lexsort((np.arange(tally.groups), tally.rows))
        order = order[~hidden[order]]
        joining = order[np.cumsum(tally.rows[order]) + rows <= budget]
        enough = first_union_that_holds(self.principles, counts, np.flatnonzero(hidden), joining)
        if enough is None:
            return None
        hidden[joining[:enough]] = True
        return hidden

    # -- results ----------------------------------------------------------------------------------------------

    def partition(self, node: Levels, hidden: Bools | None = None) -> Partition:
        """The groups of a node, with its suppressed groups as the last one."""
        bottom = self.roller.bottom
        number, groups = self.roller.numbers(bottom, node)
        if hidden is None or not hidden.any():
            return Partition(number, groups, levels_of(self.table, node), False, self.checked)
        renumber = np.cumsum(~hidden) - 1
        renumber[hidden] = groups - int(hidden.sum())
        group = renumber[number].astype(np.int64)
        return Partition(group, int(group.max()) + 1, levels_of(self.table, node), True, self.checked)

    def node(self, levels: Levels, costing: Costing) -> Node:
        """A node with its costs."""
        rows = self.roller.sizes(self.roller.bottom, levels)
        rows = rows[rows > 0].astype(np.int64)
        costs = {metric: self.cost(costing, metric, levels) for metric in METRICS}
        return Node(levels_of(self.table, levels), len(rows), int(rows.min()), 0, **costs)


def lowest(nodes: list[Levels]) -> list[Levels]:
    """Those with no other below them."""
    return sorted(node for node in nodes if not any(other != node and below(other, node) for other in nodes))


def frontier(top: Levels, holds: Callable[[Levels], bool], floor: Levels | None = None) -> list[Levels]:
    """All minimal nodes up to `top` that hold, when whatever lies above a node that holds does too.

    Each chain from an undecided node to the top is bisected; a node that holds decides everything above it and one
    that does not everything below it, so most nodes are never asked.

    >>> frontier((2, 2), lambda node: sum(node) >= 3)
    [(1, 2), (2, 1)]

    Nodes below `floor`, zero by default, are not looked at.
    """
    if floor is not None and any(floor):
        found = frontier(_minus(top, floor), lambda node: holds(_plus(node, floor)))
        return [_plus(node, floor) for node in found]
    verdicts = _Verdicts(top)
    for node in verdicts.lowest_first():
        if not verdicts.state[node]:
            verdicts.bisect(verdicts.chain(node), holds)
    return [verdicts.levels[node] for node in verdicts.minimal()]


def _plus(one: Levels, other: Levels) -> Levels:
    return tuple(a + b for a, b in zip(one, other, strict=True))


def _minus(one: Levels, other: Levels) -> Levels:
    return tuple(a - b for a, b in zip(one, other, strict=True))


_HOLDS, _FAILS = 1, 2


class _Verdicts:
    """What is known of each node, by its number in the order of the levels: nothing yet, that it holds or fails."""

    def __init__(self, top: Levels) -> None:
        self.top = top
        self.levels = list(product(*(range(t + 1) for t in top)))
        self.steps = [prod(t + 1 for t in top[i + 1 :]) for i in range(len(top))]  # to the next level of each column
        self.state = bytearray(len(self.levels))

    def lowest_first(self) -> list[int]:
        return sorted(range(len(self.levels)), key=lambda node: sum(self.levels[node]))

    def above(self, node: int) -> list[int]:
        return [
            node + step
            for level, most, step in zip(self.levels[node], self.top, self.steps, strict=True)
            if level < most
        ]

    def below(self, node: int) -> list[int]:
        return [node - step for level, step in zip(self.levels[node], self.steps, strict=True) if level]

    def chain(self, node: int) -> list[int]:
        """From a node upwards through undecided nodes."""
        chain = [node]
        while (after := next((n for n in self.above(chain[-1]) if not self.state[n]), None)) is not None:
            chain.append(after)
        return chain

    def bisect(self, chain: list[int], holds: Callable[[Levels], bool]) -> None:
        low, high = 0, len(chain)
        while low < high:
            middle = (low + high) // 2
            if holds(self.levels[chain[middle]]):
                self._decide(chain[middle], _HOLDS, self.above)
                high = middle
            else:
                self._decide(chain[middle], _FAILS, self.below)
                low = middle + 1

    def _decide(self, node: int, verdict: int, onwards: Callable[[int], list[int]]) -> None:
        """Tag the node and all that follows from it, stopping where that is known already."""
        pending = [node]
        while pending:
            current = pending.pop()
            if not self.state[current]:
                self.state[current] = verdict
                pending.extend(onwards(current))

    def minimal(self) -> list[int]:
        holding = (node for node, state in enumerate(self.state) if state == _HOLDS)
        return [node for node in holding if all(self.state[n] == _FAILS for n in self.below(node))]
