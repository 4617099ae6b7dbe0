"""The lattice of a table beyond memory: the engine finds the levels at which groups may hold, and counts there.

Rows that no principle lets a group keep only become more further down. A node with more of them than may be suppressed
rules out every node below it. The lattice is divided, level by level of a column, until each part is ruled out by its
highest node, or counted at its lowest one, from which everything above is searched. A single node that does not fit is
judged a portion at a time. So the result is that of the search in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from jali.core.arrays import Bools, Ints, counted
from jali.core.progress import Step
from jali.encoding.large import MORE, LargeTable, TooManyError
from jali.encoding.table import Table
from jali.errors import InfeasibleError, InputError
from jali.principles.base import Principle
from jali.search.lattice.costs import Costing, Metric, Node, Nodes
from jali.search.lattice.lattice import Lattice, lowest
from jali.search.lattice.portions import Portions, rows_lost, tells
from jali.search.lattice.tally import Levels, Roller, below

Rank = tuple[float, int, Levels]
"""By which nodes are compared: the cost, the rows that are suppressed, and the levels."""


def best_beyond(
    table: LargeTable, principles: tuple[Principle, ...], metric: Metric, suppress: Fraction,
    importance: Ints | None = None, *, on_step: Step,
) -> tuple[Lattice, Levels, Bools]:  # fmt: skip
    """The best node as `Lattice.best` finds it, its suppressed groups, and a lattice whose table has that node."""
    top = Lattice(table.at_roots(), principles, on_step=on_step)
    budget = int(suppress * table.rows)
    best: tuple[Rank, tuple[Lattice, Bools] | None] | None = None  # None where the best node does not fit
    checked, alone = 0, []
    for base in bases(table, top, budget):
        if isinstance(base, tuple):
            alone.append(base)
            continue
        lattice = Lattice(base, principles, on_step=on_step)
        try:
            node, hidden = lattice.best(metric, suppress, importance)
        except InfeasibleError:
            continue
        finally:
            checked += lattice.checked
        rank = lattice.rank(metric, node, hidden, importance)
        if best is None or rank < best[0]:
            best = rank, (lattice, hidden)
    costing = Costing(top.table, top.roller.hierarchies, importance=importance)
    for node in alone:
        checked += 1
        on_step(min(checked, top.nodes), top.nodes)
        if best is not None and metric in {"loss", "height"}:  # no need to count
            least = costing.unsuppressed(metric, node, np.empty(0))
            if round(least, 12) - 1e-12 > best[0][0]:
                continue
        own = _rank_in_portions(Portions(table, top.roller, node), principles, costing, metric, budget)
        if own is not None and (best is None or own < best[0]):
            best = own, None
    if best is None:
        raise top.none_holds(budget)
    (_, _, node), where = best
    if where is None:
        raise InputError("the best generalization has more combinations than memory holds", do=MORE)
    lattice, hidden = where
    if table.of_role("other") or table.of_role("identifier"):
        lattice = given_beyond(table, principles, node, on_step=on_step)
    lattice.checked = checked
    return lattice, node, hidden


def _rank_in_portions(
    portions: Portions, principles: tuple[Principle, ...], costing: Costing, metric: Metric, budget: int
) -> Rank | None:
    """The rank of a node that does not fit, as `Lattice.rank` has it; None where it does not keep the promises."""
    hidden = portions.suppression(principles, budget)
    if hidden is None:
        return None
    cost = getattr(portions.priced(costing, hidden, [metric]), metric)
    return round(cost, 12), hidden.rows, portions.node


def given_beyond(table: LargeTable, principles: tuple[Principle, ...], node: Levels, *, on_step: Step) -> Lattice:
    """A lattice whose table has a given node, with all columns that are published, or those that promises are about."""
    for other in (True, False):
        try:
            return Lattice(table.at(node, other=other), principles, on_step=on_step)
        except TooManyError:
            continue
    raise InputError("these levels have more combinations than memory holds", do=MORE)


def minimal_beyond(table: LargeTable, principles: tuple[Principle, ...], *, on_step: Step) -> Nodes:
    """The minimal nodes with their costs, as `Lattice.minimal_nodes` gives them."""
    top = Lattice(table.at_roots(), principles, on_step=on_step)
    nodes: dict[Levels, Node] = {}
    satisfied: set[Levels] = set()
    for base in bases(table, top, 0):
        if isinstance(base, tuple):
            portions = Portions(table, top.roller, base)
            hidden = portions.suppression(principles, 0)
            if hidden is not None:
                nodes[base] = portions.priced(top.costing, hidden)
                satisfied.add(base)
            continue
        lattice = Lattice(base, principles, on_step=on_step)
        try:
            found = lattice.minimal_nodes()
        except InfeasibleError:
            continue
        nodes |= {tuple(node.levels.values()): node for node in found}
        satisfied |= found.satisfied or set()
    if not nodes:
        raise top.none_holds()
    heights = {column.name: height for column, height in zip(table.quasi, top.top, strict=True)}
    return Nodes([nodes[n] for n in lowest(list(nodes))], heights, None if top.monotone else frozenset(satisfied))


# -- from which levels on groups may hold -----------------------------------------------------------------------------


def bases(table: LargeTable, top: Lattice, budget: int) -> Iterator[Table | Levels]:
    """The table at levels such that every node that may hold lies above some of them; else the node by itself."""
    yield from _covered(_Bounds(table, top, budget), lowest_levels(table, top.least, budget), top.top)


def _covered(bounds: _Bounds, low: Levels, high: Levels, cells: int | None = None) -> Iterator[Table | Levels]:
    """The bases of the nodes from `low` to `high`: none where `high` is ruled out, else the table at `low` if it fits.

    Where it does not fit, the nodes are divided by the level of a column. `cells` is how many combinations `low` has,
    where that is known.
    """
    if not bounds.may_hold(high):
        return
    table = bounds.table
    many = table.cells_at(low) if cells is None else cells
    if many <= table.room:
        yield table.at(low, other=False)
        return
    if low == high:
        if any(p.scope == "table" for p in bounds.principles):
            raise InputError("groups that are large enough still have more combinations than memory holds", do=MORE)
        yield low
        return
    column, level = bounds.division(low, high, many / table.room)
    yield from _covered(bounds, (*low[:column], level, *low[column + 1 :]), high)
    yield from _covered(bounds, low, (*high[:column], level - 1, *high[column + 1 :]), many)


def lowest_levels(table: LargeTable, least: int, budget: int) -> Levels:
    """For each column the lowest level that could hold if all others were at their roots, from its own counts."""
    found = []
    for column in table.quasi:
        hierarchy, rows = table.hierarchy(column.name), column.value_rows
        assert rows is not None
        for level, nodes in enumerate(hierarchy.maps):
            size = counted(nodes, rows, len(hierarchy.levels[level]))
            if level == hierarchy.height or int(size[size < least].sum()) <= budget:
                found.append(level)
                break
    return tuple(found)


class _Bounds:
    """Tells whether a node, or a node below it, may keep the promises: from counts at hand, else from the engine."""

    def __init__(self, table: LargeTable, top: Lattice, budget: int) -> None:
        self.table, self.top, self.principles, self.budget = table, top.roller, top.principles, budget
        self.least = top.least
        self.tell = tuple(p for p in top.principles if tells(p, top.roller.whole))
        self.values = not all(p.judges_size_alone for p in self.tell)  # whether these matter
        self.held: list[tuple[Levels, Roller]] = []
        self.known: dict[Levels, bool] = {}

    def may_hold(self, node: Levels) -> bool:
        """Whether at most `budget` rows are lost in every node from this one down."""
        if node not in self.known:
            self.known[node] = (self.least <= 1 and not self.tell) or self._may_hold(node)
        return self.known[node]

    def _may_hold(self, node: Levels) -> bool:
        for levels, roller in self.held:
            if below(levels, node):
                return self._few(roller, node)
        try:
            found = self.table.at(node, sensitive=self.values, other=False)
        except TooManyError:
            return self._large_enough(node) and not (
                self.values and Portions(self.table, self.top, node).lost(self.tell, self.budget)
            )
        self.held.append((node, Roller(found)))
        while len(self.held) > 1 and sum(roller.table.records for _, roller in self.held) > self.table.room:
            self.held.pop(0)
        return self._few(self.held[-1][1], node)

    def _large_enough(self, node: Levels) -> bool:
        """Whether at most `budget` rows lie in groups that are too small, by their sizes alone."""
        sizes = self.table.sizes_at(node)
        return int((sizes.size * sizes.many)[sizes.size < self.least].sum()) <= self.budget

    def _few(self, roller: Roller, node: Levels) -> bool:
        sizes = roller.sizes(roller.bottom, node)
        if int(sizes[sizes < self.least].sum()) > self.budget:
            return False
        if not self.values:
            return True
        return rows_lost(self.tell, roller.counts(roller.roll(roller.bottom, node))) <= self.budget

    def division(self, low: Levels, high: Levels, needed: float) -> tuple[int, int]:
        """The column whose next level makes combinations fewest, and the level at which they are `needed` times fewer.

        How many times is guessed from the entropy of the levels. Below that level such a column is soon ruled out.
        """
        best: tuple[float, int, int] | None = None
        for at, column in enumerate(self.table.quasi):
            if low[at] == high[at]:
                continue
            maps, rows = self.table.hierarchy(column.name).maps, column.value_rows
            assert rows is not None
            even = [_even(counted(maps[level], rows)) for level in range(low[at], high[at] + 1)]
            fewer = [even[0] / many for many in even]
            step = next((step for step in range(1, len(fewer)) if fewer[step] >= needed), len(fewer) - 1)
            if best is None or fewer[1] > best[0]:
                best = fewer[1], at, low[at] + step
        assert best is not None, "the nodes differ"
        return best[1:]


def _even(rows: Ints) -> float:
    """How many nodes of equal size would be as uncertain as nodes with these rows."""
    share = rows[rows > 0] / rows.sum()
    return float(np.exp(-share @ np.log(share)))
