"""One node of the lattice of a table beyond memory: its groups are counted, judged and priced a portion at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jali.core.arrays import Bools, Ints, average_size, combine, counted, covered_share, discernibility, loss
from jali.encoding.large import MORE, Box, LargeTable
from jali.errors import InputError
from jali.principles.base import Principle
from jali.principles.counts import Counts
from jali.principles.rules import DISTINCT, ENTROPY, LARGEST, RECURSIVE
from jali.search.common import breaking, first_union_that_holds, levels_of
from jali.search.gate import judged
from jali.search.lattice.costs import METRICS, Costing, Metric, Node
from jali.search.lattice.tally import Levels, Roller, Tally


@dataclass(eq=False)
class Hidden:
    """The suppressed groups of a node."""

    groups: list[Bools]  # of each portion: (groups,)
    rows: int
    by_value: Ints  # (joint values,) rows


class Portions:
    """The groups of a node, of which as many as fit are here at a time; `top` has the table's roots and its values."""

    def __init__(self, table: LargeTable, top: Roller, node: Levels) -> None:
        self.table, self.top, self.node = table, top, node
        self.nodes = table.nodes_at(node)
        self.values = len(top.frequencies.joint)

    # -- portions ----------------------------------------------------------------------------------------------

    @cached_property
    def boxes(self) -> list[Box]:
        """Parts of the groups that fit, divided by nodes of quasi-identifiers; InputError where a group does not."""
        boxes = list(self.table.boxes(self.nodes, [column.name for column in self.table.quasi]))
        if not all(fits for _, fits in boxes):
            raise InputError("a single group has more combinations than memory holds", do=MORE)
        return [box for box, _ in boxes]

    def tallies(self) -> Iterator[Tally]:
        """The counts of each portion; groups are in the order of their codes."""
        for box in self.boxes:
            found = self.table.elsewhere.count(self.nodes, within=box)
            codes = [found.nodes[column.name].astype(np.int32) for column in self.table.quasi]
            begins = np.zeros(len(found.rows), dtype=bool)
            begins[0] = True
            for code in codes:
                begins[1:] |= code[1:] != code[:-1]
            group = np.cumsum(begins) - 1
            value = self._joint([found.nodes[column.name] for column in self.table.sensitive], len(group))
            rows = counted(group, found.rows)
            order = np.lexsort((value, group))
            group, value, people = group[order], value[order], found.rows[order]
            own = tuple(code[begins] for code in codes)
            yield Tally(self.node, own, rows, group, value, people, people, people.astype(np.float64))

    def _joint(self, codes: Sequence[Ints], many: int) -> Ints:
        """The number of the joint value of the sensitive columns with these codes: (many,)."""
        known = self.top.frequencies.joint
        pairs = zip(codes, known.T, self.table.sensitive, strict=True)
        keys = [(np.concatenate((own, code)), len(column.values)) for code, own, column in pairs]
        number, _ = combine(keys, len(known) + many)
        place = np.empty(len(known), dtype=np.int64)
        place[number[: len(known)]] = np.arange(len(known))
        return place[number[len(known) :]]

    # -- judging -----------------------------------------------------------------------------------------------

    def lost(self, principles: tuple[Principle, ...], budget: int) -> bool:
        """Whether this node and every one below must suppress more rows than that."""
        total = 0
        for tally in self.tallies():
            total += rows_lost(principles, self.top.counts(tally))
            if total > budget:
                return True
        return False

    def suppression(self, principles: tuple[Principle, ...], budget: int) -> Hidden | None:
        """Which groups are suppressed, as `Lattice.suppression` finds them; None if too many."""
        found = Hidden([], 0, np.zeros(self.values, dtype=np.int64))
        small: list[Ints] = []  # of each portion: (2 + columns + 1, groups) portion, group, codes and rows
        for at, tally in enumerate(self.tallies()):
            failing = breaking(principles, self.top.counts(tally))
            found.groups.append(failing)
            found.rows += int(tally.rows[failing].sum())
            if found.rows > budget:
                return None
            inside = failing[tally.group]
            found.by_value += counted(tally.value[inside], tally.people[inside], self.values)
            stays = np.flatnonzero(~failing)
            codes = [code[stays].astype(np.int64) for code in tally.codes]
            small.append(_smallest(np.stack((np.full(len(stays), at), stays, *codes, tally.rows[stays])), budget))
        if found.rows == 0:
            return found
        return self._joined(principles, found, _smallest(np.concatenate(small, axis=1), budget - found.rows))

    def _joined(self, principles: tuple[Principle, ...], found: Hidden, joining: Ints) -> Hidden | None:
        """With further groups, smallest first, until those that are suppressed keep every promise together."""
        places, entries = np.arange(1, joining.shape[1] + 1), [(np.zeros(self.values, dtype=np.int64), found.by_value)]
        value = [np.arange(self.values)]
        for at, tally in enumerate(self.tallies()):
            rank = np.zeros(tally.groups, dtype=np.int64)
            own = joining[0] == at
            rank[joining[1, own]] = places[own]
            inside = rank[tally.group] > 0
            entries.append((rank[tally.group][inside], tally.people[inside]))
            value.append(tally.value[inside])
        group, people = (np.concatenate(each) for each in zip(*entries, strict=True))
        values, some, whole = np.concatenate(value), people > 0, self.top.whole
        counts = Counts(
            len(places) + 1, group[some], values[some], people[some], whole.sensitive, whole.joint, None, whole
        )
        enough = first_union_that_holds(principles, counts, np.zeros(1, dtype=np.int64), places)
        if enough is None:
            return None
        for at, place, *_, rows in joining[:, :enough].T.tolist():
            found.groups[at][place] = True
            found.rows += rows
        inside = (group > 0) & (group <= enough)
        found.by_value += counted(values[inside], people[inside], self.values)
        return found

    # -- pricing -----------------------------------------------------------------------------------------------

    def priced(self, costing: Costing, hidden: Hidden, metrics: Sequence[Metric] = METRICS) -> Node:
        """The node with its costs; those that are not asked for are 0."""
        rows = [np.zeros(int(self.nodes[column.name].max()) + 1) for column in self.table.quasi]
        groups = smallest = 0
        square = likelihood = 0.0
        for tally, own in zip(self.tallies(), hidden.groups, strict=True):
            sizes = tally.rows[~own]
            groups, square = groups + len(sizes), square + discernibility(sizes.astype(np.float64))
            smallest = min([int(sizes.min())] + [smallest] * bool(smallest)) if len(sizes) else smallest
            rows = [
                amount + counted(code[~own], sizes, len(amount)) for amount, code in zip(rows, tally.codes, strict=True)
            ]
            if "kl" in metrics:
                likelihood += costing.log_likelihood(tally, own, hidden.by_value.astype(np.float64))
        found = {
            "kl": costing.entropy_term - likelihood / costing.total,
            "discernibility": square + discernibility(np.empty(0), hidden.rows, costing.rows),
            "average": average_size(costing.rows, groups + bool(hidden.rows)),
            "height": costing.unsuppressed("height", self.node, np.empty(0)),
            "loss": loss(
                [
                    covered_share(np.append(amount, hidden.rows), np.append(size[level][: len(amount)], size[-1][0]),
                                  int(size[-1][0]))
                    for amount, size, level in zip(rows, costing.sizes, self.node, strict=True)
                ],
                costing.weights,
            ),
        }  # fmt: skip
        costs = {metric: float(found[metric]) if metric in metrics else 0.0 for metric in METRICS}
        return Node(levels_of(self.top.table, self.node), groups, smallest, hidden.rows, **costs)


def _smallest(groups: Ints, budget: int) -> Ints:
    """The smallest groups, up to a number of rows in all, smallest first, among equals in the order of their codes."""
    ordered = groups[:, np.lexsort((*groups[-2:1:-1], groups[-1]))]
    return ordered[:, np.cumsum(ordered[-1]) <= budget]


# -- what every node below must suppress -----------------------------------------------------------------------------
#
# Groups below a node that are kept and lie in the same group of the node keep a monotone promise as one group too. That
# group has at most as many rows of each value. Of all groups with as many rows and no more of each value, the one whose
# largest counts are cut off at one height is the most even. So no more rows can be kept than such a group has.

_EVEN = (DISTINCT, LARGEST, ENTROPY, RECURSIVE)
"""Rules that a group keeps if a less even one does, whatever its size: cutting it off further never breaks them."""


def tells(principle: Principle, whole: Counts) -> bool:
    """Whether groups say how many of their rows can be kept below, by this principle."""
    if principle.scope != "group" or not principle.monotone:
        return False
    if principle.judges_size_alone:
        return True
    rules, column = principle.rules(whole), whole.sensitive
    if not rules or len(column) != 1 or column[0].unknown is not None:
        return False
    apart = len(np.unique(whole.joint[:, 0])) == len(whole.joint)  # each value is judged as itself
    return apart and all(rule.kind in _EVEN and not rule.named for rule in rules)


def rows_lost(principles: Sequence[Principle], counts: Counts) -> int:
    """How many rows every node below must suppress at the least, from the groups of a node."""
    kept = counts.size.astype(np.int64)
    for principle in principles:
        if tells(principle, counts.whole or counts):
            failing = np.flatnonzero(~judged((principle,), counts))
            kept[failing] = np.minimum(kept[failing], _most(principle, counts, failing))
    return int(counts.size.sum() - kept.sum())


def _most(principle: Principle, counts: Counts, failing: Ints) -> Ints:
    """The most rows of these groups, which fail, that could be kept: (failing,)."""
    if principle.judges_size_alone or len(failing) == 0:
        return np.zeros(len(failing), dtype=np.int64)
    number = np.full(counts.groups, -1)
    number[failing] = np.arange(len(failing))
    inside = number[counts.group] >= 0
    group, value, n = number[counts.group][inside], counts.value[inside], counts.n[inside]
    low, high = np.zeros((2, len(failing)), dtype=np.int64)
    np.maximum.at(high, group, n)
    high -= 1  # uncut they fail
    while (undecided := low < high).any():
        height = (low + high + 1) // 2
        part = undecided[group]
        cut = np.minimum(n[part], height[group[part]])
        holds = judged((principle,), Counts(len(failing), group[part], value[part], cut, counts.sensitive, counts.joint,
                                            None, counts.whole or counts))  # fmt: skip
        low, high = np.where(undecided & holds, height, low), np.where(undecided & ~holds, height - 1, high)
    above = counted(group, np.minimum(n, low[group] + 1), len(failing)) - 1  # cut off one higher it fails
    return np.where(low > 0, above, 0)
