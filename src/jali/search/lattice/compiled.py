"""The lattice search as its kernels take it: the table and the requirement laid out, and what they found."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from jali.core.arrays import Bools, Floats, Ints, starts
from jali.core.costs import dot
from jali.principles.rules import DISTINCT, ENTROPY, KIND, LARGEST, RECURSIVE, L, P, Q, Rules, rules_of
from jali.search.lattice.costs import Costing, Metric
from jali.search.lattice.tally import Levels, Roller

if TYPE_CHECKING:
    from jali.kernels.judge import Desk, Work
    from jali.kernels.lattice import Ground, Room
    from jali.principles.base import Principle

BITS = 62
"""Keys of groups, and packed levels, have at most so many."""

VISITS = 2_000_000
"""Groups that a kernel visits before it says how far it is."""

GROUPS = 1_000_000
"""Groups of tallies that are at hand, or four times those of the table: 32 MB, which the allocator keeps for the next
search; larger arrays go back to the system, and touching new pages takes longer than the search."""


class CompiledLattice:
    """One table and one requirement as the kernels take them, with the tallies that they keep."""

    def __init__(self, roller: Roller, rules: Rules, judged: Ints, *, least: int, sizes_alone: bool) -> None:
        self.roller, self.top = roller, roller.top
        self.shape = tuple(level + 1 for level in self.top)
        self.nodes = math.prod(self.shape)
        self.rules, self.judged, self.least, self.sizes_alone = rules, judged, least, sizes_alone
        self.column, self.distinct = _needed(rules, judged)
        self.room = self._room()
        self.work, self.desk = _work(rules), _desk(rules)
        self.checked = 0

    # -- what the kernels work on ------------------------------------------------------------------------------

    def ground(self, costing: Costing, metric: Metric = "height", budget: int = 0) -> Ground:
        """The table and the requirement."""
        from jali.kernels import lattice as kernel

        hierarchies, columns = self.roller.hierarchies, len(self.top)
        levels = max(self.shape)
        offset, width, spot = np.zeros((3, columns, levels), dtype=np.int64)
        mean = np.zeros((2, columns, levels))
        maps, covered, first, at, begin = [], [], [], 0, 0
        for c, hierarchy in enumerate(hierarchies):
            for level, nodes in enumerate(hierarchy.maps):
                offset[c, level], width[c, level], spot[c, level] = at, len(hierarchy.levels[level]), begin
                maps.append(nodes)
                covered.append(costing.sizes[c][level])
                first.append(np.zeros(len(covered[-1]), dtype=np.int32))
                first[-1][nodes] = np.arange(len(nodes))
                at, begin = at + len(nodes), begin + len(covered[-1])
            mean[:, c, : self.shape[c]] = costing.mean_shares[c], costing.mean_log_areas[c]
        under = np.concatenate(covered)
        packed, guards = _packing(self.top)
        field = np.array([(len(hierarchy.levels[0]) - 1).bit_length() for hierarchy in hierarchies])
        shift = np.cumsum(field) - field
        rank = np.argsort([-len(hierarchy.levels[0]) for hierarchy in hierarchies], kind="stable")
        steps = [math.prod(self.shape[c + 1 :]) for c in range(columns)]
        named = (kernel.LOSS, kernel.DISCERNIBILITY, kernel.KL, kernel.AVERAGE, kernel.HEIGHT)
        code = named[("loss", "discernibility", "kl", "average", "height").index(metric)]
        option = (self.least, self.distinct, budget, code, costing.rows, self.sizes_alone, guards)
        return kernel.Ground(
            judged=self.judged,
            maps=np.concatenate(maps).astype(np.int32, copy=False),
            offset=offset,
            width=width,
            spot=spot,
            covered=np.stack((under, np.log(np.maximum(under, 1.0)))),
            mean=mean,
            first=np.concatenate(first),
            lattice=np.array((self.top, steps, packed, shift, (1 << field) - 1, rank), dtype=np.int64),
            option=np.array(option, dtype=np.int64),
            term=np.array((costing.entropy_term, costing.log_domain)),
        )

    def _room(self) -> Room:
        from jali.kernels import lattice as kernel

        f, bottom = self.roller.frequencies, self.roller.bottom
        combinations, entries, nodes = f.combinations, len(f.value), self.nodes
        groups, many = max(4 * combinations, GROUPS), max(4 * entries, GROUPS)
        slots = 1 << max(6, (2 * combinations).bit_length())
        room = kernel.Room(
            kept=np.empty((6, 1 << 13), dtype=np.int64),
            group=np.empty((4, groups), dtype=np.int64),
            entry=np.empty((2, many), dtype=np.int32),
            slot=np.zeros((slots, 2), dtype=np.int64),
            number=np.empty((3, combinations + 1), dtype=np.int32),
            joint=np.zeros((3, len(f.joint)), dtype=np.int64),
            union=np.empty((2, len(f.joint)), dtype=np.int32),
            node=np.zeros((3, nodes), dtype=np.int32),
            path=np.empty((2, nodes), dtype=np.int64),
            fresh=np.empty(combinations, dtype=np.int64),
            step=np.empty(sum(len(hierarchy.levels[0]) for hierarchy in self.roller.hierarchies), dtype=np.int64),
            column=np.empty((3, len(self.top)), dtype=np.int64),
            heap=np.empty(3 * nodes + 1),
            heap_node=np.empty(3 * nodes + 1, dtype=np.int64),
            least=np.empty(nodes),
            found=np.empty((2, nodes), dtype=np.int64),
            cost=np.empty(nodes + 1),
            count=np.zeros(9, dtype=np.int64),
        )
        begin = starts(np.bincount(f.combination, minlength=combinations))[:-1]
        key, shift = np.zeros(combinations, dtype=np.int64), 0
        for c, hierarchy in enumerate(self.roller.hierarchies):
            key += f.codes[:, c].astype(np.int64) << shift
            shift += (len(hierarchy.levels[0]) - 1).bit_length()
        room.group[kernel.KEY, :combinations], room.group[kernel.SIZE, :combinations] = key, bottom.rows
        room.group[kernel.SET, :combinations], room.group[kernel.FROM, :combinations] = -1, begin
        if self.distinct > 1:
            bits = np.left_shift(1, self.judged[self.column])[f.value]
            room.group[kernel.SET, :combinations] = np.bitwise_or.reduceat(bits, begin)
        room.entry[0, :entries], room.entry[1, :entries] = f.value, f.people
        room.kept[:, 0] = 0, combinations, 0, 0, entries, 0
        room.count[:3] = 1, combinations, entries
        room.node[kernel.PLACE, 1:] = -1
        return room

    # -- what they find ----------------------------------------------------------------------------------------

    def levels(self, node: int) -> Levels:
        """The levels of the node of this number."""
        return tuple(int(level) for level in np.unravel_index(node, self.shape))

    def minimal(self, costing: Costing, on_checked: Callable[[int], None]) -> Ints:
        """The numbers of all minimal nodes that hold, in order."""
        from jali.kernels import lattice as kernel

        room, ground = self.room, self.ground(costing)
        height = np.zeros(self.shape, dtype=np.int64)
        for c, size in enumerate(self.shape):
            height += np.arange(size).reshape([-1 if i == c else 1 for i in range(len(self.shape))])
        order = np.argsort(height.reshape(-1), kind="stable")
        room.node[kernel.STATE] = room.count[kernel.AT] = 0
        self._run(lambda: kernel.decide_all(ground, room, self.work, self.desk, order, VISITS), on_checked)
        holds = (room.node[kernel.STATE] == kernel.HOLDS).reshape(self.shape)
        lowest = holds.copy()
        for c in range(len(self.shape)):
            below = np.moveaxis(lowest, c, 0)
            below[1:] &= ~np.moveaxis(holds, c, 0)[:-1]
        return np.flatnonzero(lowest)

    def costs(self, costing: Costing, metric: Metric, nodes: Ints) -> Floats:
        """What the nodes cost when nothing is suppressed, right to about twelve digits."""
        from jali.kernels import lattice as kernel

        return np.asarray(kernel.costs(self.ground(costing, metric), self.room, nodes))

    def best(
        self, costing: Costing, metric: Metric, budget: int, ask: Callable[[Levels], tuple[float, int] | None],
        on_checked: Callable[[int], None],
    ) -> list[Levels]:  # fmt: skip
        """The nodes that may be the best: those whose cost is the least, up to rounding.

        `ask` judges and prices a node in which further groups must join the suppressed ones.
        """
        from jali.kernels import lattice as kernel

        room, ground = self.room, self.ground(costing, metric, budget)
        room.node[[kernel.STATE, kernel.SEEN_NODE]] = 0
        room.count[[kernel.FOUND, kernel.WAITING]] = 0, 1
        room.least[:], room.cost[-1] = -np.inf, np.inf
        rows = self.roller.bottom.row_weights
        room.least[0] = dot(rows, np.log(rows)) / costing.rows  # with no level, KL is 0
        room.heap[0], room.heap_node[0], room.node[kernel.SEEN_NODE, 0] = 0.0, kernel.NEW, 1
        while (node := self._run(lambda: kernel.search(ground, room, self.work, self.desk, VISITS), on_checked)) >= 0:
            found = ask(self.levels(node))
            if found is not None:
                kernel.propose(ground, room, node, *found)
        many = int(room.count[kernel.FOUND])
        near = room.cost[:many] <= room.cost[-1] + kernel.TIE
        return [self.levels(int(node)) for node in room.found[0, :many][near]]

    def _run(self, kernel: Callable[[], Any], on_checked: Callable[[int], None]) -> int:
        """Run a kernel again and again until it is done or asks."""
        from jali.kernels.lattice import CHECKED, MORE

        while True:
            answer = int(kernel())
            on_checked(int(self.room.count[CHECKED]))
            if answer != MORE:
                return answer


def compiled(roller: Roller, principles: tuple[Principle, ...], least: int) -> CompiledLattice | None:
    """The search as kernels take it; None where a principle has no rules, or where numbers might not fit."""
    frequencies = roller.frequencies
    if frequencies.person is not None or any(p.scope == "table" for p in principles):
        return None
    bits = sum((len(hierarchy.levels[0]) - 1).bit_length() for hierarchy in roller.hierarchies)
    if bits > BITS or int(frequencies.rows.sum()) >= 1 << 31:
        return None
    found = rules_of(principles, roller.whole)
    if found is None:
        return None
    rules, judged = found
    return CompiledLattice(
        roller, rules, judged, least=least, sizes_alone=all(p.judges_size_alone for p in principles)
    )


def _packing(top: Levels) -> tuple[list[int], int]:
    """Where the bits of each level begin in a packed node, and the bit above each of them."""
    shift, guards, at = [], 0, 0
    for level in top:
        shift.append(at)
        if level:
            at += level.bit_length()
            guards |= 1 << at
            at += 1
    return shift, guards


def _needed(rules: Rules, judged: Ints) -> tuple[int, int]:
    """The judged column of which every group needs the most different values, and how many; 1 where nothing is known.

    Sets of values are 63 bits, so columns with more values are passed over.
    """
    best = (0, 1)
    for r in range(rules.rule.shape[1]):
        kind, column, p, q, l = (int(rules.rule[row, r]) for row in (KIND, 1, P, Q, L))
        if kind not in (DISTINCT, ENTROPY, LARGEST, RECURSIVE) or int(judged[column].max()) >= 63:
            continue
        need = 1
        if kind == DISTINCT:
            need = p
        elif kind == ENTROPY:
            need = math.ceil(math.exp(float(rules.bound[r])) - 1e-6)
        elif kind == LARGEST and bool(rules.counted[r].all()):
            need = -(-q // p)
        elif kind == RECURSIVE:
            need = l
        best = max(best, (column, need), key=lambda found: found[1])
    return best


def _work(rules: Rules) -> Work:
    """The rules as the kernel that judges takes them; it looks at nothing else."""
    from jali.kernels.judge import Work

    none, empty = np.zeros((1, 1), dtype=np.int64), np.zeros(0, dtype=np.int64)
    place = np.zeros((1, 1), dtype=np.int32)
    return Work(
        none, none, place, none, none, rules.rule, rules.bound, rules.counted, rules.reference, empty, empty, empty
    )


def _desk(rules: Rules) -> Desk:
    """Counts of no group yet."""
    from jali.kernels.judge import Desk

    columns, values = rules.reference.shape
    none = np.zeros((1, 1), dtype=np.int64)
    return Desk(
        np.zeros((4, columns, values), dtype=np.int64), np.zeros(columns, dtype=np.int64), none, none,
        np.zeros(1, dtype=np.int64),
    )  # fmt: skip
