"""The search behind local recoding: peel, then pair classes up by size alone or move combinations by the principles."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from fractions import Fraction
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from jali.core.arrays import Bools, Floats, Ints, added, combine, kl_given, kl_given_logs
from jali.core.progress import Step
from jali.encoding.frequencies import Frequencies
from jali.encoding.table import Table
from jali.errors import InfeasibleError
from jali.kernels import OFFSET, SIZE
from jali.kernels.jit import chosen
from jali.principles.base import Principle, least_people
from jali.principles.counts import Counts
from jali.principles.rules import Rules, rules_of
from jali.search.gate import judged, note, recording
from jali.search.lattice.costs import Costing
from jali.search.lattice.lattice import LARGEST, Lattice, frontier
from jali.search.layout import Objective, Peel, RecodeShow, layout_of, walk_of

if TYPE_CHECKING:
    from jali.kernels.recode import Entries

Groups = tuple[Ints, int]

THRESHOLDS: dict[Objective, tuple[Fraction, ...]] = {
    "kl": (Fraction(4),),
    "granularity": (Fraction(5, 3), Fraction(7, 3), Fraction(10, 3)),
}
"""People of the first classes, as multiples of the least that any group can have, when diversity is judged later.

Each is tried and the best is taken; measured on Adult, where neighbours differ by some hundredths without a pattern.
"""
LEAVES = 2500
"""The most classes that are paired up, since each looks at all others; with more, classes are made larger."""
MOVES = 1 << 30
"""The most pairs of a combination and a group that moving looks at; with more, nothing is moved."""
MOVES_AT_ONCE = 1 << 25  # of them between two steps that are heard
AT_ONCE = 256  # nodes walked between two steps that are heard


class Search:
    """One search: the table laid out, its lattice nodes in order, and what has been judged."""

    def __init__(
        self, table: Table, principles: tuple[Principle, ...], objective: Objective, show: RecodeShow, step: Step,
        *, importance: Ints | None = None,
    ) -> None:  # fmt: skip
        self.table, self.principles, self.objective, self.step = table, principles, objective, step
        self.frequencies, self.importance = table.frequencies, importance
        self.whole = self.frequencies.whole
        self.layout = layout_of(table, objective, show, importance)
        self.walk = walk_of(self.layout)
        self.least = least_people(principles, self.whole)  # where persons are named, no more than a good start
        self.checked = 0
        combinations, columns = self.layout.codes.shape
        self._work = combinations**2 * columns

    def _kernel(self, kernel: Any) -> Any:
        """The kernel, as it is worth it for this table."""
        return chosen(kernel, "local recoding", self._work)

    def without(self, hidden: Bools) -> Search:
        """The same search among the other combinations; promises still know the whole table."""
        other, layout, kept = copy(self), self.layout, ~hidden
        codes = np.ascontiguousarray(layout.codes[kept])
        other.layout = layout._replace(codes=codes, rows=layout.rows[kept], people=layout.people[kept])
        other.walk = walk_of(other.layout)
        other.frequencies = _those(self.frequencies, kept)
        return other

    def groups(self, peel: Peel) -> Groups:
        """Groups that hold, peeled by size or by the principles."""
        return self.by_size() if peel == "size" else self.by_principle()

    def counts(self, group: Ints, groups: int) -> Counts:
        """People by group and sensitive value, with those of the whole table for reference."""
        return replace(self.frequencies.counts(group, groups), whole=self.whole)

    def together(self) -> Bools:
        """Whether all combinations hold as one group: (1,)."""
        return self._hold_some(np.zeros(self.frequencies.combinations, dtype=np.int64), 1)

    # -- what groups cost -----------------------------------------------------------------------------------------

    def reached(self, group: Ints, groups: int, *, suppressed: bool = False) -> float:
        """Granularity, or the KL-divergence in nats as if no other box overlapped the own box of a group.

        The last group may be suppressed, and so shown as everything.
        """
        rows, cost = self.row_costs(group, groups)
        if suppressed:
            cost[-1] = sum(float(self.layout.cost[end - 1]) for end in self._ends())
        if self.objective == "granularity":
            return 1.0 - float(rows @ cost) / float(rows.sum())
        f = self.frequencies
        values, total = len(f.joint), float(f.weight.sum())
        mean = added(group[f.combination], f.weight, groups) / rows
        index, first = combine([(group[f.combination], groups), (f.value, values)], len(f.value))
        of = group[f.combination[first]]
        mass = added(index, f.rows) * mean[of] / total
        weight = added(index, f.weight)
        if self.importance is not None:
            return kl_given_logs(self.costing.entropy_term, weight, np.log(mass) - cost[of], total)
        return kl_given(self.costing.entropy_term, weight, mass * np.exp(-cost)[of], total)

    @cached_property
    def costing(self) -> Costing:
        """What nodes cost, for the whole table."""
        return Costing(self.table, importance=self.importance)

    def _ends(self) -> list[int]:
        """Where the levels of each column end in the layout: just before, everything is under one node."""
        return [*self.layout.column[OFFSET, 1:].tolist(), len(self.layout.node)]

    def row_costs(self, group: Ints, groups: int) -> tuple[Floats, Floats]:
        """The rows of each group, and what its box costs each of them."""
        from jali.kernels.recode import prices

        rows = added(group, self.layout.rows, groups)
        cost: Floats = self._kernel(prices)(self.layout, group, groups) / rows
        return rows, cost + np.log(rows) if self.layout.logs else cost

    def widest(self, group: Ints, groups: int) -> Bools:
        """Which groups only * covers in every column of the taxonomy: (groups,)."""
        wide = np.ones(groups, dtype=bool)
        for a, end in enumerate(self._ends()):
            below = end - 2 * self.layout.column[SIZE, a]  # where the level below the root begins
            begin = max(below, self.layout.column[OFFSET, a])
            node = self.layout.node[begin + self.layout.codes[:, a]]
            one = np.zeros(groups, dtype=node.dtype)
            one[group] = node
            several = np.zeros(groups, dtype=bool)
            several[group[node != one[group]]] = True
            wide &= several
        return wide

    # -- peeling --------------------------------------------------------------------------------------------------

    def _peel(self, rules: Rules, entries: Entries, most: int = 2**62) -> Groups:
        """The classes that hold at the first node where they do; -1 for what never does, or once there are too many."""
        from jali.kernels.recode import peel

        peeled = self._kernel(peel)
        group, groups, nodes = np.full(self.frequencies.combinations, -1, dtype=np.int64), 0, len(self.walk.levels)
        for begin in range(0, nodes, AT_ONCE):
            self.step(begin, nodes)
            end = min(begin + AT_ONCE, nodes)
            groups, left, checked = peeled(
                self.layout, entries, rules, self.walk.levels, begin, end, group, groups, most
            )
            self.checked += checked
            if left == 0 or groups > most:
                break
        return group, groups

    def classes(self, least: int, most: int = 2**62) -> Groups:
        """Classes of at least this number of people, by sizes alone; the rest is one more, which may be smaller.

        Where there are more than `most`, they are only begun.
        """
        none = Rules(np.zeros((6, 0), np.int64), np.zeros(0), np.zeros((0, 1), bool), np.zeros((1, 1), np.int64), least)
        return _rest_together(*self._peel(none, self._entries(none, np.zeros((0, 1), np.int64)), most))

    def _entries(self, rules: Rules, judged: Ints) -> Entries:
        from jali.kernels.recode import Entries

        f = self.frequencies
        start = np.searchsorted(f.combination, np.arange(f.combinations + 1)).astype(np.int64)
        value = np.ascontiguousarray(judged[:, f.value] if len(judged) else np.zeros((0, len(f.value)), np.int64))
        counts = np.zeros((4, *rules.reference.shape), dtype=np.int64)
        return Entries(start, f.people.astype(np.int64), value, counts, np.zeros(len(rules.reference), np.int64))

    # -- by size --------------------------------------------------------------------------------------------------

    def by_size(self) -> Groups:
        """Classes by size alone, paired up in a tree by size alone; its nodes are split where both halves hold."""
        if self.frequencies.person is None and all(p.judges_size_alone for p in self.principles):
            return self._merged(*self.classes(self.least))
        found: list[tuple[float, Groups]] = []
        for times in THRESHOLDS[self.objective]:
            threshold = int(self.least * times)
            group, groups = self.classes(threshold, LEAVES)
            while groups > LEAVES:
                threshold *= 2
                group, groups = self.classes(threshold, LEAVES)
            group, groups = self._split_down(group, groups)
            worth = self.reached(group, groups)
            found.append((worth if self.objective == "kl" else -worth, (group, groups)))
        return min(found, key=lambda one: round(one[0], 12))[1]

    def _split_down(self, leaf: Ints, leaves: int) -> Groups:
        """Split the tree's nodes from the root down, wherever both halves keep every promise."""
        from jali.kernels.recode import pair_up

        left, right = self._kernel(pair_up)(self.layout, leaf, leaves)
        begin, end, position = _intervals(left, right, leaves)
        node = np.full(leaves, len(left) - 1)  # the published node of each leaf, by position
        open_nodes = np.array([len(left) - 1])
        while len(open_nodes := open_nodes[left[open_nodes] >= 0]):
            self.step(leaves - len(open_nodes), leaves)
            halves = np.concatenate([left[open_nodes], right[open_nodes]])
            of = np.full(leaves, -1)  # the half that each leaf is in, by position
            for index, half in enumerate(halves):
                of[begin[half] : end[half]] = index
            good = self._hold_some(of[position[leaf]], len(halves))
            both = np.tile(good[: len(open_nodes)] & good[len(open_nodes) :], 2)
            for index in range(len(open_nodes) if recording() else 0):
                note("cut", partial(_two, of[position[leaf]], index, index + len(open_nodes)), bool(both[index]))
            apart = (of >= 0) & both[of]
            node[apart] = halves[of[apart]]
            open_nodes = halves[both]
        return first_numbers(node[position[leaf]]), len(np.unique(node))

    def _hold_some(self, group: Ints, groups: int) -> Bools:
        """Which of these groups hold, where combinations that are in none of them have -1."""
        self.checked += groups
        verdict = judged(self.principles, self.counts(np.where(group < 0, groups, group), groups + 1))
        return verdict[:groups]

    # -- by the principles ----------------------------------------------------------------------------------------

    def by_principle(self) -> Groups:
        """Classes that hold, combinations moved to where they cost less; what never holds is merged with neighbours."""
        f = self.frequencies
        compiled = rules_of(self.principles, self.whole) if f.person is None else None
        if compiled is None:
            return self._merged(*self.classes(self.least))
        from jali.kernels.recode_moves import improve

        entries = self._entries(*compiled)
        group, groups = self._peel(compiled[0], entries)
        if groups and len(group) * groups <= MOVES:
            order = np.lexsort((np.arange(len(group)), group >= 0))  # first what is left
            for part in np.array_split(order, -(-len(order) * groups // MOVES_AT_ONCE)):
                self.step(groups, groups)
                _, checked = self._kernel(improve)(self.layout, entries, compiled[0], group, groups, part)
                self.checked += checked
        group, groups = _rest_together(group, groups)
        return self._merged(first_numbers(group), len(np.unique(group)))

    def _merged(self, group: Ints, groups: int) -> Groups:
        """Groups that fail are merged with their cheapest neighbour, round after round, until all hold."""
        from jali.kernels.recode import nearest

        while groups > 1:
            failing = ~self._hold_some(group, groups)
            if not failing.any():
                break
            self.step(groups - int(failing.sum()), groups)
            partner = self._kernel(nearest)(self.layout, group, groups, failing)
            into = np.arange(groups)
            for i in np.flatnonzero(failing):
                a, b = into[i], into[partner[i]]
                into[into == max(a, b)] = min(a, b)
            group = first_numbers(into[group])
            groups = int(group.max()) + 1
        return first_numbers(group), groups


def _those(f: Frequencies, kept: Bools) -> Frequencies:
    """The combinations that are kept, with their entries; rows do not know them."""
    entry, number = kept[f.combination], np.cumsum(kept) - 1
    return replace(
        f,
        codes=f.codes[kept],
        combination=number[f.combination[entry]],
        value=f.value[entry],
        people=f.people[entry],
        rows=f.rows[entry],
        weight=f.weight[entry],
        person=None if f.person is None else f.person[entry],
        row_combination=f.row_combination[:0],
    )


def first_numbers(group: Ints, last: int | None = None) -> Ints:
    """Groups numbered by their first combination; one of them may have to be the last."""
    known, first, number = np.unique(group, return_index=True, return_inverse=True)
    first = np.where(known == last, len(group), first) if last is not None else first
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[number.reshape(-1)]


def _two(group: Ints, one: int, other: int) -> tuple[Ints, Ints]:
    """The combinations of two groups, and which of the two each is in: (members,) each."""
    members = np.flatnonzero((group == one) | (group == other))
    return members, (group[members] == other).astype(np.int64)


def _rest_together(group: Ints, groups: int) -> Groups:
    """What has no group yet is one more."""
    rest = group < 0
    return np.where(rest, groups, group), groups + int(rest.any())


def _intervals(left: Ints, right: Ints, leaves: int) -> tuple[Ints, Ints, Ints]:
    """Leaves laid out so that each node's are one run: where each node's run begins and ends; each leaf's position."""
    size = np.ones(len(left), dtype=np.int64)
    for node in range(leaves, len(left)):
        size[node] = size[left[node]] + size[right[node]]
    begin = np.zeros(len(left), dtype=np.int64)
    for node in range(len(left) - 1, leaves - 1, -1):
        begin[left[node]] = begin[node]
        begin[right[node]] = begin[node] + size[left[node]]
    return begin, begin + size, begin[:leaves]


def full_domain(lattice: Lattice, search: Search, reached: float) -> Groups | None:
    """The best full-domain generalization if there is one and it is better than what was reached.

    Costs only grow upwards, so the finest nodes whose groups are all large enough tell in most cases that none is.
    """
    if lattice.nodes > LARGEST:
        return None
    costing = search.costing
    most = (reached if search.objective == "kl" else 1.0 - reached) - 1e-9

    def cost(node: tuple[int, ...]) -> float:
        if search.objective == "kl":
            return lattice.cost(costing, "kl", node)
        tally = lattice.tally(node)
        losses = costing.column_losses(tally, np.zeros(tally.groups, dtype=bool))
        return float(np.mean(losses) if costing.weights is None else np.average(losses, weights=costing.weights))

    if all(cost(node) >= most for node in frontier(lattice.top, lattice.large_enough)):
        return None
    try:
        if search.objective == "kl":
            node, _ = lattice.best("kl", Fraction(0), search.importance)
        else:
            node = min(lattice.minimal(), key=lambda node: (round(cost(node), 12), node))
    except InfeasibleError:  # where merging can break a promise, only looking at all nodes tells
        return None
    if cost(node) >= most:
        return None
    found = lattice.partition(node)
    return found.group, found.groups
