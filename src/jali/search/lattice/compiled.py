"""The lattice search as its kernels take it: the table and the requirement laid out, and what they found."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from jali.core.arrays import AT_ONCE, Floats, Ints, added, dot, starts
from jali.principles.rules import DISTINCT, ENTROPY, KIND, LARGEST, RECURSIVE, UNKNOWN, L, P, Q, Rules, rules_of
from jali.search.lattice.costs import Costing, Metric
from jali.search.lattice.tally import Levels, Roller

if TYPE_CHECKING:
    from jali.kernels.judge import Desk, Work
    from jali.kernels.tallies import Ground, Room
    from jali.principles.base import Principle

BITS = 62
"""The most bits that a key of a group, or packed levels, may have."""

VISITS = 2_000_000
"""Groups that a kernel visits before it says how far it is."""

GROUPS = 1_000_000
"""Groups of tallies that are at hand, or four times those of the table: 32 MB, which the allocator keeps for the next
search; larger arrays go back to the system, and touching new pages takes longer than the search."""

TIE = 1e-10
"""Costs that differ by less are priced again; for KL-divergence it is multiplied by the weight of a column."""


class CompiledLattice:
    """One table and one requirement as the kernels take them, with the tallies that they keep."""

    def __init__(self, roller: Roller, rules: Rules, judged: Ints, *, least: int, sizes_alone: bool) -> None:
        self.roller, self.top = roller, roller.top
        self.bits = np.array([(own.widths[0] - 1).bit_length() for own in roller.nodes])
        self.rows = int(roller.frequencies.rows.sum())
        self.shape = tuple(level + 1 for level in self.top)
        self.nodes = math.prod(self.shape)
        self.rules, self.judged, self.least, self.sizes_alone = rules, judged, least, sizes_alone
        self.column, self.distinct, unknown = _needed(rules, judged)
        self.unknown, self.missing = unknown, unknown >= 0
        self.room = self._room()
        self.work, self.desk = work_of_rules(rules), _desk(rules)

    # -- what the kernels work on ------------------------------------------------------------------------------

    @cached_property
    def _layout(self) -> dict[str, Any]:
        """The part of the ground that is about hierarchies."""
        columns, shape = self.roller.nodes, (len(self.top), max(self.shape))
        offset, width, spot = np.zeros((3, *shape), dtype=np.int64)
        at = begin = 0
        for c, own in enumerate(columns):
            for level, many in enumerate(own.widths):
                offset[c, level], width[c, level], spot[c, level] = at, many, begin
                at, begin = at + own.widths[0], begin + many
        packed, self.guards = _packing(self.top)
        steps = [math.prod(self.shape[c + 1 :]) for c in range(len(self.top))]
        shift = np.cumsum(self.bits) - self.bits
        rank = np.argsort([-own.widths[0] for own in columns], kind="stable")
        return {
            "judged": self.judged,
            "maps": np.concatenate([own.maps for own in columns]),
            "offset": offset,
            "width": width,
            "spot": spot,
            "first": np.concatenate([own.examples for own in columns]),
            "lattice": np.array((self.top, steps, packed, shift, (1 << self.bits) - 1, rank), dtype=np.int64),
        }

    def ground(self, metric: Metric = "height", budget: int = 0, costing: Costing | None = None) -> Ground:
        """The table and the requirement; what a metric needs is taken from the costing."""
        from jali.kernels import tallies

        layout, mean, columns = self._layout, np.zeros((3, len(self.top), max(self.shape))), len(self.top)
        weights = np.array(costing.weights if costing and costing.weights else [1.0] * columns)
        under, logs, slack = np.ones(1), np.zeros(1), TIE
        if costing is not None and metric == "loss":
            under = np.concatenate([size for sizes in costing.sizes for size in sizes])
            logs, weights = np.zeros(len(under)), weights / weights.sum()
            for c, levels in enumerate(self.shape):
                mean[0, c, :levels] = costing.mean_shares[c]
                mean[1, c, :levels] = weights[c] * np.log1p(mean[0, c, :levels])
        elif costing is not None and metric == "kl":
            logs, slack = np.concatenate([area for areas in costing.log_areas for area in areas]), TIE * weights.max()
            under = np.ones(len(logs))
            for c, levels in enumerate(self.shape):
                mean[1, c, :levels] = costing.mean_log_areas[c]
                mean[2, c, :levels] = self._alone(c, costing) if budget else 0.0  # not worth it for a few nodes
        by_kl = costing is not None and metric == "kl"
        named = (tallies.LOSS, tallies.DISCERNIBILITY, tallies.KL, tallies.AVERAGE, tallies.HEIGHT)
        code = named[("loss", "discernibility", "kl", "average", "height").index(metric)]
        option = (self.least, self.distinct, budget, code, self.rows, self.sizes_alone, self.guards, self.missing)
        return tallies.Ground(
            **layout,
            covered=np.stack((under, logs)),
            mean=mean,
            weight=weights,
            option=np.array(option, dtype=np.int64),
            term=np.array((*((costing.entropy_term, costing.log_domain) if costing and by_kl else (0.0, 0.0)), slack)),
        )

    def _alone(self, c: int, costing: Costing) -> Floats:
        """The KL-divergence of each level of a column, if it and the sensitive values were all there is.

        With all columns it is never less than the sum over them: KL is the mean of the logarithm of the area minus
        H(X | G, V), and the entropy of all columns is at most the sum of theirs, each given its own node and V.
        """
        f, hierarchy = self.roller.frequencies, self.roller.hierarchies[c]
        codes, values = len(hierarchy.levels[0]), len(f.joint)
        if codes * values > AT_ONCE or self.roller.table.coarse is not None:  # no bound is as good as none
            return np.zeros(len(hierarchy.levels))
        cells = added(f.codes[f.combination, c] * values + f.value, f.people, codes * values).reshape(codes, values)
        result = []
        for nodes, width, area in zip(
            hierarchy.maps, map(len, hierarchy.levels), costing.mean_log_areas[c], strict=True
        ):
            at = nodes[:, None].astype(np.int64) * values + np.arange(values)
            result.append(area - _n_log_n(added(at.reshape(-1), cells.reshape(-1), width * values)) / costing.rows)
        return np.array(result) - result[0]

    def _room(self) -> Room:
        from jali.kernels import tallies

        f, bottom = self.roller.frequencies, self.roller.bottom
        combinations, entries, nodes = f.combinations, len(f.value), self.nodes
        groups, many = max(4 * combinations, GROUPS), max(4 * entries, GROUPS)
        slots = 1 << max(6, (2 * combinations).bit_length())
        room = tallies.Room(
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
            step=np.empty(sum(own.widths[0] for own in self.roller.nodes), dtype=np.int64),
            column=np.empty((3, len(self.top)), dtype=np.int64),
            heap=np.empty(3 * nodes + 1),
            heap_node=np.empty(3 * nodes + 1, dtype=np.int64),
            least=np.empty(nodes),
            found=np.empty((2, nodes), dtype=np.int64),
            cost=np.empty(nodes + 1),
            counter=np.zeros(11, dtype=np.int64),
        )
        begin = starts(np.bincount(f.combination, minlength=combinations))[:-1]
        key, shift = np.zeros(combinations, dtype=np.int64), 0
        for c in range(len(self.top)):
            key += f.columns[c].astype(np.int64) << shift
            shift += int(self.bits[c])
        room.group[tallies.KEY, :combinations], room.group[tallies.SIZE, :combinations] = key, bottom.rows
        room.group[tallies.SET, :combinations], room.group[tallies.FROM, :combinations] = -1, begin
        if self.distinct > 1:
            own = self.judged[self.column]
            bits = np.where(own == self.unknown, 0, np.left_shift(1, own))[f.value]
            room.group[tallies.SET, :combinations] = np.bitwise_or.reduceat(bits, begin)
        room.entry[0, :entries], room.entry[1, :entries] = f.value, f.people
        room.kept[:, 0] = 0, combinations, 0, 0, entries, 0
        room.counter[:3] = 1, combinations, entries
        room.node[tallies.PLACE, 1:] = -1
        return room

    # -- what they find ----------------------------------------------------------------------------------------

    def levels(self, node: int) -> Levels:
        """The levels of the node of this number."""
        levels = []
        for width in reversed(self.shape):
            node, level = divmod(node, width)
            levels.append(level)
        return tuple(reversed(levels))

    def minimal(self, on_checked: Callable[[int], None]) -> list[Levels]:
        """All minimal nodes that hold, in order."""
        from jali.kernels import lattice as kernel
        from jali.kernels import tallies

        room, ground = self.room, self.ground()
        order = _by_height(self.shape)
        room.node[tallies.STATE] = room.counter[tallies.AT] = 0
        room.node[tallies.STATE, ~self._told] = kernel.FAILS
        none = np.empty(0)
        self._run(lambda: kernel.decide_all(ground, room, self.work, self.desk, order, VISITS, none), on_checked)
        holds = (room.node[tallies.STATE] == kernel.HOLDS).reshape(self.shape)
        lowest = holds.copy()
        before: tuple[slice, ...] = ()
        for _ in self.shape:
            lowest[*before, 1:] &= ~holds[*before, :-1]
            before = (*before, slice(None))
        return [self.levels(int(node)) for node in np.flatnonzero(lowest)]

    @property
    def _told(self) -> NDArray[np.bool_]:
        """The nodes that the table tells, which are all unless its records are coarser than values: (nodes,)."""
        told = np.zeros(self.shape, dtype=bool)
        told[tuple(slice(level, None) for level in self.roller.table.floor)] = True
        return told.reshape(-1)

    def groups(self, levels: Levels) -> int:
        """How many groups a node has."""
        place = int(self.room.node[2, np.ravel_multi_index(levels, self.shape)])
        return int(self.room.kept[1, place]) if place >= 0 else self.roller.numbers(self.roller.bottom, levels)[1]

    def cheapest(self, costing: Costing, metric: Metric, nodes: list[Levels]) -> list[Levels]:
        """Those of the nodes whose cost, when nothing is suppressed, is the least up to rounding."""
        from jali.kernels import lattice as kernel
        from jali.kernels import tallies

        if metric in {"loss", "height"}:  # a table look-up
            return nodes
        self.room.least[0] = self._least_kl()
        number = np.ravel_multi_index(tuple(np.array(nodes, dtype=np.int64).T), self.shape)
        ground, cost = self.ground(metric, 0, costing), np.empty(len(number))
        kernel.decide_all(ground, self.room, self.work, self.desk, number, VISITS, cost)
        return [nodes[i] for i in np.flatnonzero(cost <= cost.min() + ground.term[tallies.SLACK])]

    def _least_kl(self) -> float:
        """What values add to the KL-divergence of the finest node, which is 0, beyond what its sizes say."""
        if self.roller.table.coarse is not None:  # whose finest node is not known; no bound is as good as none
            return -np.inf
        rows = self.roller.bottom.row_weights
        return dot(rows, np.log(rows)) / self.rows

    def best(
        self, costing: Costing, metric: Metric, budget: int, ask: Callable[[Levels], tuple[float, int] | None],
        on_checked: Callable[[int], None],
    ) -> list[Levels]:  # fmt: skip
        """The nodes that may be the best: those whose cost is the least, up to rounding.

        `ask` judges and prices a node in which further groups must join the suppressed ones.
        """
        from jali.kernels import lattice as kernel
        from jali.kernels import tallies

        room, ground = self.room, self.ground(metric, budget, costing)
        room.node[[tallies.STATE, tallies.SEEN_NODE]] = 0
        room.counter[[tallies.FOUND, tallies.WAITING]] = 0, 1
        first = int(np.ravel_multi_index(self.roller.table.floor, self.shape))
        room.least[:], room.cost[-1] = -np.inf, np.inf
        room.least[first] = self._least_kl()
        room.heap[0], room.heap_node[0], room.node[tallies.SEEN_NODE, first] = 0.0, 3 * first + kernel.NEW, 1
        while (node := self._run(lambda: kernel.search(ground, room, self.work, self.desk, VISITS), on_checked)) >= 0:
            found = ask(self.levels(node))
            if found is not None:
                kernel.propose.py_func(ground, room, node, *found)  # once in a while: not worth compiling
        many = int(room.counter[tallies.FOUND])
        near = room.cost[:many] <= room.cost[-1] + ground.term[tallies.SLACK]
        return [self.levels(int(node)) for node in room.found[0, :many][near]]

    def _run(self, kernel: Callable[[], Any], on_checked: Callable[[int], None]) -> int:
        """Run a kernel again and again until it is done or asks."""
        from jali.kernels.lattice import MORE
        from jali.kernels.tallies import CHECKED

        while True:
            answer = int(kernel())
            on_checked(int(self.room.counter[CHECKED]))
            if answer != MORE:
                return answer


def compiled(roller: Roller, principles: tuple[Principle, ...], least: int) -> CompiledLattice | None:
    """The search as kernels take it; None where a principle has no rules, or where numbers might not fit."""
    frequencies = roller.frequencies
    if frequencies.person is not None or any(p.scope == "table" for p in principles):
        return None
    bits = sum((own.widths[0] - 1).bit_length() for own in roller.nodes)
    if bits > BITS or int(frequencies.rows.sum()) >= 1 << 31:
        return None
    found = rules_of(principles, roller.whole)
    if found is None:
        return None
    rules, judged = found
    from jali.kernels.jit import prepare
    from jali.kernels.lattice import decide_all

    prepare(decide_all, "the lattice search")
    return CompiledLattice(roller, rules, judged, least=least, sizes_alone=all(p.judges_size_alone for p in principles))


@lru_cache(4)
def _by_height(shape: tuple[int, ...]) -> NDArray[np.int64]:
    """The nodes in the order of their steps of generalization: (nodes,)."""
    height = np.zeros(1, dtype=np.int16)
    for levels in shape:
        height = np.add.outer(height, np.arange(levels, dtype=np.int16)).reshape(-1)
    return np.argsort(height, kind="stable")


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


def _needed(rules: Rules, judged: Ints) -> tuple[int, int, int]:
    """The judged column of which every group needs the most different values, how many, and its missing value.

    1 where nothing is known, and -1 where nothing is missing. Sets of values are 63 bits, so columns with more values
    are passed over.
    """
    best = (0, 1, -1)
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
        best = max(best, (column, need, int(rules.rule[UNKNOWN, r])), key=lambda found: found[1])
    return best


def _n_log_n(amount: Floats) -> float:
    return dot(amount, np.log(np.maximum(amount, 1.0)))


def work_of_rules(rules: Rules) -> Work:
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
