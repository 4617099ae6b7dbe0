"""Closeness: every group's values are distributed much as in the whole published table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from jali.core.arrays import Bools, Floats, Ints, counted
from jali.errors import InputError, nearest
from jali.principles.base import Expected, at_most, at_most_bound, exact
from jali.principles.column import ColumnPrinciple, Number, number, short_of
from jali.principles.counts import Cells, Counts, Sensitive, distinct_pairs
from jali.principles.rules import CLOSENESS, Rule

Distance = Literal["equal", "ordered", "hierarchical"]
_APART: dict[Distance, str] = {
    "equal": "all values equally far apart",
    "ordered": "values apart by their ranks",
    "hierarchical": "values apart by the height of their common ancestor",
}


@dataclass(frozen=True)
class TCloseness(ColumnPrinciple):
    """The earth mover's distance of each group's values from those of the whole published table is at most t.

    `distance` says how far apart two values are, the farthest 1: all the same ("equal"), by rank ("ordered"), or by the
    height of their lowest common ancestor ("hierarchical"). Values that a group lacks count. Li et al. 2007.
    Where somebody has several values it is refused: the whole table has no one distribution then (decision 21).
    Level: the distance. It is compared as a fraction of whole numbers, exactly.

    >>> from jali.principles.counts import dense
    >>> TCloseness(0.25).level(dense(np.array([[3, 1], [1, 3]]))).tolist()
    [0.25, 0.25]
    """

    needs_reference: ClassVar[bool] = True
    title: ClassVar[str] = "t-closeness"
    better: ClassVar[Literal["higher", "lower"]] = "lower"
    deals: ClassVar[bool] = False
    t: Number
    _: KW_ONLY
    distance: Distance = "equal"
    sensitive: str | None = None

    def __post_init__(self) -> None:
        t = number("t", self.t, "a number from 0 to 1", lambda t: 0 <= t <= 1, example="0.2")
        object.__setattr__(self, "t", t)
        if self.distance not in _APART:
            do = nearest(str(self.distance), get_args(Distance))
            raise InputError("distance must be one that TCloseness knows", got=repr(self.distance), do=do)

    def level(self, counts: Counts) -> Floats:
        moved, scale, unit = self._moved(counts)
        return np.asarray(moved / np.maximum(unit * scale, 1), dtype=np.float64)

    def judge(self, counts: Counts) -> Bools:
        moved, scale, unit = self._moved(counts)
        return np.asarray(at_most(moved, exact("t", self.t) * scale, unit), dtype=bool)

    def _moved(self, counts: Counts) -> tuple[Any, int, Any]:
        cells = self.cells(counts)
        _require_one_value(counts, cells.column)
        return earth_moved(cells, self.distance)

    @property
    def bound(self) -> str:
        return str(self.t)

    def promise(self) -> str:
        column = self.subject("the sensitive column")
        return (
            f"in every group the distribution of {column} is within {self.t} of that of the whole published table "
            f"(earth mover's distance, {_APART[self.distance]})"
        )

    def check_column(self, column: Sensitive, whole: Counts) -> None:
        _require_one_value(whole, column)
        if self.distance == "ordered" and not column.ordered:
            raise InputError(
                f'distance="ordered" needs values that have an order, and "{column.name}" has none',
                do='declare the order of its values, or choose distance="equal"',
            )
        if self.distance == "hierarchical" and not column.tree:
            raise InputError(
                f'distance="hierarchical" needs a hierarchy, and "{column.name}" has none',
                do='give the column a hierarchy, or choose distance="equal"',
            )

    def closed_under_mixing(self) -> bool:
        return True

    def rules(self, whole: Counts) -> Sequence[Rule] | None:
        return [Rule(CLOSENESS, exact("t", self.t))] if self.distance == "equal" else None

    def expected(self, column: Sensitive, reference: Floats) -> Expected:
        def moved(rows: Floats) -> Floats:
            apart = rows / rows.sum(axis=1)[:, None] - reference / reference.sum()
            return _moved_shares(apart, column, self.distance)

        return Expected(moved, at_most_bound(self.t))

    def shortfall(self, whole: Counts) -> str:
        return f"{self.t}-closeness cannot be met: the whole table is at {short_of(self.worst(whole), float(self.t))}"


def _require_one_value(counts: Counts, column: Sensitive) -> None:
    if not counts.one_value(column.name):
        raise InputError(
            f'TCloseness needs one value of "{column.name}" per person: where people have several, '
            "the whole table has no one distribution that groups could be close to",
            do="promise a diversity, or keep one value per person",
        )


def earth_moved(cells: Cells, distance: Distance) -> tuple[Any, int, Any]:
    """The earth mover's distance of each group from the reference as moved / (scale · unit), in whole numbers.

    The unit is people of the group × people of the table, so that p - q = (n · table - reference · group) / unit.
    Python integers take over where 64 bits might not be enough. (groups,), scalar, (groups,).
    """
    table = int(cells.reference.sum())
    scale = {"equal": 1, "ordered": cells.column.judged - 1, "hierarchical": len(cells.column.tree) - 1}[distance]
    wide = int(cells.total.max(initial=0)) * table * (scale + 1) >= 2**62
    total = cells.total.astype(object) if wide else cells.total
    if distance == "ordered":
        moved = _by_rank(cells, total, table)
    else:
        moved = np.zeros_like(total)
        for group, node, n, reference in _levels(cells) if distance == "hierarchical" else _values(cells):
            surplus = n.astype(total.dtype) * table - total[group] * reference[node]
            moved += _add(group, np.maximum(surplus, 0), total)
    return moved, max(scale, 1), total * table


def _values(cells: Cells) -> Iterator[tuple[Ints, Ints, Ints, Ints]]:
    """The values themselves, for the equal distance: ½ Σ |p - q| = Σ max(p - q, 0), to which absent values add 0."""
    yield cells.group, cells.value, cells.n, cells.reference


def _levels(cells: Cells) -> Iterator[tuple[Ints, Ints, Ints, Ints]]:
    """Groups × nodes at each level of the tree below its root, and the reference of the nodes.

    Two values whose lowest common ancestor stands at height h are 2 h edges apart; with edges of length 1 / 2H their
    distance is h / H. Over each edge moves the difference between what both distributions have below it, so that the
    distance of the distributions is Σ over levels 0 … H-1 of 1/H · ½ Σ over nodes |p - q|.
    """
    tree = cells.column.tree
    group, node, n, reference = cells.group, tree[0][cells.value], cells.n, cells.reference
    for level, above in pairwise(tree):
        yield group, node, n, counted(level, reference)
        parent = np.zeros(int(level.max(initial=-1)) + 1, dtype=np.int64)
        parent[level] = above
        group, node, n = distinct_pairs(group, parent[node], n)


def _by_rank(cells: Cells, total: Any, table: int) -> Any:
    """Σ over ranks of |P - Q|, P and Q cumulative: (groups,), times the unit.

    From one value that a group has to the next, P stays and Q only grows, so that they cross at most once: prefix sums
    of Q give both sides of the crossing. Nothing is ever laid out as groups × values.
    """
    values = len(cells.column)
    Q = np.cumsum(cells.reference)  # (values,)
    sum_Q = np.concatenate(([0], np.cumsum(Q)))  # (values + 1,) Σ of Q before each rank
    begin = cells.start[cells.group]  # (cells,) the first cell of each cell's group
    upto = np.cumsum(cells.n)
    P = (upto - (upto - cells.n)[begin]).astype(total.dtype)  # (cells,) people of the group up to and with this value
    is_last = np.append(cells.group[1:] != cells.group[:-1], True)[: len(P)]
    here, there = cells.value, np.where(is_last, values, np.append(cells.value[1:], values)[: len(P)])
    N = total[cells.group]
    cross = np.searchsorted(Q, (P * table // N).astype(np.int64), side="right")  # the first rank with Q/table > P/N
    cross = np.clip(cross, here, there)
    apart = P * table * (2 * cross - here - there) + N * (sum_Q[here] + sum_Q[there] - 2 * sum_Q[cross])
    before_first = np.where(begin == np.arange(len(P)), N * sum_Q[here], 0)  # P is 0 there
    return _add(cells.group, apart + before_first, total)


def _add(group: Ints, amount: Any, like: Any) -> Any:
    """The exact sum of an amount per cell over each group, in the integers of `like`: (groups,)."""
    result = np.zeros_like(like)
    np.add.at(result, group, amount)
    return result


def _moved_shares(apart: Floats, column: Sensitive, distance: Distance) -> Floats:
    """The earth mover's distance of each row of shares from the whole table; `apart` is their difference: (rows,)."""
    if distance == "ordered":
        return np.asarray(np.abs(np.cumsum(apart, axis=1)).sum(axis=1) / max(column.judged - 1, 1))
    if distance == "equal":
        return np.asarray(np.abs(apart).sum(axis=1) / 2)
    moved = np.zeros(len(apart))
    for nodes in column.tree[:-1]:
        below = np.zeros((int(nodes.max(initial=0)) + 1, len(apart)))
        np.add.at(below, nodes, apart.T)
        moved += np.abs(below).sum(axis=0) / 2 / max(len(column.tree) - 1, 1)
    return moved
