"""The lattice of a table beyond memory: the engine finds the levels at which groups are large enough, and counts there.

Group sizes only grow upwards. A node in which more rows than may be suppressed lie in groups that are too small for
the principles rules out every node below it, whatever the sensitive values are. The lattice is divided, level by level
of a column, until each part is ruled out by its highest node, or counted at its lowest one, from which everything above
is searched. So the result is that of the search in memory.
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
from jali.search.lattice.costs import Metric, Node, Nodes
from jali.search.lattice.lattice import Lattice, lowest
from jali.search.lattice.tally import Levels, Roller, below


def best_beyond(
    table: LargeTable, principles: tuple[Principle, ...], metric: Metric, suppress: Fraction,
    importance: Ints | None = None, *, on_step: Step,
) -> tuple[Lattice, Levels, Bools]:  # fmt: skip
    """The best node as `Lattice.best` finds it, its suppressed groups, and a lattice whose table has that node."""
    top = Lattice(table.at_roots(), principles, on_step=on_step)
    budget = int(suppress * table.rows)
    best: tuple[tuple[float, int, Levels], Lattice, Bools] | None = None
    checked = 0
    for base in bases(table, top.least, budget):
        lattice = Lattice(base, principles, on_step=on_step)
        try:
            node, hidden = lattice.best(metric, suppress, importance)
        except InfeasibleError:
            continue
        finally:
            checked += lattice.checked
        rank = lattice.rank(metric, node, hidden, importance)
        if best is None or rank < best[0]:
            best = rank, lattice, hidden
    if best is None:
        raise top.none_holds(budget)
    (_, _, node), lattice, hidden = best
    if table.of_role("other") or table.of_role("identifier"):
        lattice = given_beyond(table, principles, node, on_step=on_step)
    lattice.checked = checked
    return lattice, node, hidden


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
    for base in bases(table, top.least, 0):
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


# -- from which levels on groups are large enough --------------------------------------------------------------------


def bases(table: LargeTable, least: int, budget: int) -> Iterator[Table]:
    """The table at levels such that every node in which groups are large enough lies above some of them."""
    floor = lowest_levels(table, least, budget)
    top = tuple(table.hierarchy(column.name).height for column in table.quasi)
    if least <= 1:
        try:
            yield table.at(floor, other=False)
        except TooManyError:
            what = "the promises ask for no group size, so no level can be ruled out from sizes"
            do = f"promise KAnonymity as well, or {MORE}"
            raise InputError(f"{what}, and the table has more combinations than memory holds", do=do) from None
        return
    yield from _covered(_Sizes(table, least, budget), floor, top)


def _covered(sizes: _Sizes, low: Levels, high: Levels, cells: int | None = None) -> Iterator[Table]:
    """The same for the nodes between two: none where even the highest is ruled out, else at the lowest if that fits.

    Where it does not, the nodes are divided by the level of a column. `cells` is how many combinations the lowest has,
    where that is known.
    """
    if not sizes.large_enough(high):
        return
    table = sizes.table
    many = table.cells_at(low) if cells is None else cells
    if many <= table.room:
        yield table.at(low, other=False)
        return
    if low == high:
        raise InputError("groups that are large enough still have more combinations than memory holds", do=MORE)
    column, level = sizes.division(low, high, many / table.room)
    yield from _covered(sizes, (*low[:column], level, *low[column + 1 :]), high)
    yield from _covered(sizes, low, (*high[:column], level - 1, *high[column + 1 :]), many)


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


class _Sizes:
    """Says of nodes whether groups are large enough: from counts that are held, else by asking the engine."""

    def __init__(self, table: LargeTable, least: int, budget: int) -> None:
        self.table, self.least, self.budget = table, least, budget
        self.held: list[tuple[Levels, Roller]] = []

    def large_enough(self, node: Levels) -> bool:
        """Whether at most `budget` rows lie in groups of fewer than `least`."""
        for levels, roller in self.held:
            if below(levels, node):
                return self._few(roller, node)
        try:
            found = self.table.at(node, sensitive=False, other=False)
        except TooManyError:
            if self.table.room >= self.table.rows // self.least + self.budget:
                return False  # so many groups cannot be large enough
            sizes = self.table.sizes_at(node)
            small = sizes.size < self.least
            return int((sizes.size * sizes.many)[small].sum()) <= self.budget
        self.held.append((node, Roller(found)))
        while len(self.held) > 1 and sum(roller.table.records for _, roller in self.held) > self.table.room:
            self.held.pop(0)
        return self._few(self.held[-1][1], node)

    def division(self, low: Levels, high: Levels, needed: float) -> tuple[int, int]:
        """The column whose next level makes combinations fewest, and its level that makes them so many times fewer.

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

    def _few(self, roller: Roller, node: Levels) -> bool:
        sizes = roller.sizes(roller.bottom, node)
        return int(sizes[sizes < self.least].sum()) <= self.budget


def _even(rows: Ints) -> float:
    """How many nodes of equal size would be as uncertain as nodes with these rows."""
    share = rows[rows > 0] / rows.sum()
    return float(np.exp(-share @ np.log(share)))
