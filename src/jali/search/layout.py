"""What local recoding works on: combinations, what their boxes cost, and the lattice nodes in order of their loss."""

from __future__ import annotations

import itertools
import math
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jali.core.arrays import ONE, Floats, Ints, counted, owners
from jali.encoding.table import Column, Table
from jali.kernels import OFFSET, SIZE, Layout

Objective = Literal["kl", "granularity"]
RecodeShow = Literal["taxonomy", "set"]
Peel = Literal["size", "principle"]
OBJECTIVES: tuple[Objective, ...] = ("kl", "granularity")
SHOWS: tuple[RecodeShow, ...] = ("taxonomy", "set")
PEELS: tuple[Peel, ...] = ("size", "principle")

WALKED = 4096
"""The most lattice nodes that are walked; of a larger lattice some levels are left out."""
JOINED = 1 << 20
"""The most pairs of taxonomy nodes whose joint cost is kept in a table; with more, each is looked for in the tree."""


def layout_of(table: Table, objective: Objective, show: RecodeShow, importance: Ints | None = None) -> Layout:
    """The table as local recoding sees it; `importance` is that of each column, in millionths of the least one's."""
    quasi, frequencies = table.quasi, table.frequencies
    stacks = [np.stack(table.hierarchy(column.name).maps) for column in quasi]
    weights = np.full(len(quasi), ONE) if importance is None else importance
    spreads = [
        _spread(column, table, objective, int(weight), int(weights.sum()))
        for column, weight in zip(quasi, weights, strict=True)
    ]
    costs = [_costs(c, table, s) for c, s in zip(quasi, spreads, strict=True)]
    size = np.array([len(column.values) for column in quasi], dtype=np.int64)
    offset = _starts([stack.size for stack in stacks])
    words = -(-size // 64)
    spread = _starts([len(one) for one in spreads]) + sum(len(one) for one in costs)
    below = [np.cumsum([0, *stack.max(axis=1) + 1]) for stack in stacks]  # nodes of the levels below each
    nodes = np.array([each[-1] for each in below], dtype=np.int64)
    numbers = [(stack + each[:-1, None]).ravel() for stack, each in zip(stacks, below, strict=True)]
    pairs = nodes * nodes
    small = int(pairs.sum()) <= JOINED and show != "set"
    joint = [_joint(s, b, c) for s, b, c in zip(stacks, below, costs, strict=True)] if small else [np.zeros(0)]
    return Layout(
        codes=np.ascontiguousarray(frequencies.codes, dtype=np.int32),
        rows=_by_combination(table, frequencies.rows),
        people=_by_combination(table, frequencies.people),
        column=np.stack([size, offset, spread, _starts(words.tolist()), words, nodes, _starts(pairs.tolist())]),
        node=np.concatenate([stack.ravel() for stack in stacks]).astype(np.int32),
        number=np.concatenate(numbers).astype(np.int32),
        joint=np.concatenate(joint),
        mark=_marks(stacks),
        cost=np.concatenate([*costs, *spreads]),
        words=int(words.sum()) if show == "set" else 0,
        logs=objective == "kl",
    )


def _by_combination(table: Table, amount: Ints) -> Ints:
    f = table.frequencies
    return counted(f.combination, amount, f.combinations)


def _starts(lengths: list[int]) -> Ints:
    return np.cumsum([0, *lengths[:-1]], dtype=np.int64)


def _spread(column: Column, table: Table, objective: Objective, weight: int, total: int) -> Floats:
    """What covering 0, 1, 2, … values costs a row, when a column has this weight of the total, in millionths."""
    covered = np.maximum(np.arange(len(column.values) + 1), 1).astype(np.float64)
    if objective == "kl":
        return weight / ONE * np.log(covered)
    whole = max(int(column.mask(table.domain).sum()) - 1, 1)
    return (covered - 1) / whole / (total / weight)


def _costs(column: Column, table: Table, spread: Floats) -> Floats:
    """The cost of each level and code: (levels · values,)."""
    hierarchy, mask = table.hierarchy(column.name), column.mask(table.domain)
    sizes = [hierarchy.node_sizes(level, mask)[nodes] for level, nodes in enumerate(hierarchy.maps)]
    return spread[np.concatenate(sizes)]


def _joint(stack: NDArray[np.int32], below: Ints, cost: Floats) -> Floats:
    """The cost of the smallest node that covers two nodes, for all pairs of a column's nodes: (nodes · nodes,)."""
    costs = cost.reshape(stack.shape)
    level = owners(np.diff(below))
    code = np.zeros(below[-1], dtype=np.int64)
    for here, nodes in enumerate(stack):
        code[below[here] + nodes] = np.arange(len(nodes))
    joint = np.full((len(code), len(code)), costs[-1, 0])
    for here in range(len(stack) - 1, -1, -1):
        at = np.where(level <= here, stack[here, code], -1 - np.arange(len(code)))  # nodes above meet nothing down here
        rows, columns = np.nonzero(at[:, None] == at[None, :])
        meet = (level[rows] <= here) & (level[columns] <= here)
        joint[rows[meet], columns[meet]] = costs[here, code[rows[meet]]]
    return joint.ravel()


def _marks(stacks: list[NDArray[np.int32]]) -> Ints:
    random = np.random.default_rng(0)  # any numbers do, but the same ones every time
    marks = [random.integers(-(2**62), 2**62, size=int(nodes.max()) + 1)[nodes] for stack in stacks for nodes in stack]
    return np.concatenate(marks).astype(np.int64)


# -- the lattice nodes ----------------------------------------------------------------------------------------------


class Walk(NamedTuple):
    """Lattice nodes, the one that costs rows least on average first."""

    levels: Ints  # (nodes, columns)
    cost: Floats  # (nodes,) mean cost of a row


def walk_of(layout: Layout) -> Walk:
    """The nodes that are walked: finer nodes always before coarser ones, the root last."""
    means = [_means(layout, a) for a in range(layout.column.shape[1])]
    nodes = _nodes([len(mean) for mean in means])
    cost = np.zeros(len(nodes))
    for a, mean in enumerate(means):
        cost += mean[nodes[:, a]]
    order = np.lexsort((*nodes.T[::-1], nodes.sum(axis=1), np.round(cost, 9)))
    return Walk(np.ascontiguousarray(nodes[order]), cost[order])


def _means(layout: Layout, a: int) -> Floats:
    """The mean cost of a row in column a at each level."""
    ends = [*layout.column[OFFSET, 1:].tolist(), len(layout.node)]
    by_level = layout.cost[layout.column[OFFSET, a] : ends[a]].reshape(-1, layout.column[SIZE, a])
    return by_level[:, layout.codes[:, a]] @ layout.rows / float(layout.rows.sum())


def _nodes(levels: list[int]) -> Ints:
    """All nodes of the lattice; where they are too many, fewer levels of the tallest columns, then columns in step."""
    axes: list[list[tuple[int, ...]]] = [[(level,) for level in range(count)] for count in levels]
    while math.prod(len(axis) for axis in axes) > WALKED:
        tallest = max(range(len(axes)), key=lambda i: len(axes[i]))
        if len(axes[tallest]) > 2:
            del axes[tallest][len(axes[tallest]) // 2]
        else:  # the last two move together
            *axes, one, other = axes
            axes.append([one[0] + other[0], one[-1] + other[-1]])
    nodes = [tuple(itertools.chain.from_iterable(node)) for node in itertools.product(*axes)]
    return np.array(nodes, dtype=np.int64).reshape(len(nodes), len(levels))
