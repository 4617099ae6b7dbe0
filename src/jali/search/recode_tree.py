"""Compiled neighbours: what groups cost, the cheapest partner of each, and a tree that pairs them up."""
# mypy: disable-error-code="untyped-decorator,no-any-return"
# numba's decorator has no types, and so what a kernel calls returns Any.
# ruff: noqa: PLR0917
# Kernels are called by position.

from __future__ import annotations

from math import log

import numpy as np

from jali.principles.counts import Bools, Floats, Ints
from jali.search.jit import inner, outer
from jali.search.recode_boxes import LESS, Boxes, fill, join, joint_costs, new_boxes, price
from jali.search.recode_plan import Layout


@outer
def prices(layout: Layout, group: Ints, groups: int) -> Floats:
    """What each group costs: (groups,)."""
    boxes = new_boxes(layout, groups + 1)
    fill(layout, boxes, group, groups)
    return boxes.price[:groups].copy()


@outer
def nearest(layout: Layout, group: Ints, groups: int, failing: Bools) -> Ints:
    """For each failing group the other group with which it is cheapest to merge, of equal ones the first; else -1."""
    boxes = new_boxes(layout, groups + 1)
    fill(layout, boxes, group, groups)
    found, everyone, cost = np.full(groups, -1, np.int64), np.arange(groups), np.empty(groups)
    for i in range(groups):
        if not failing[i]:
            continue
        joint_costs(layout, boxes, i, everyone, cost)
        least = np.inf
        for j in range(groups):
            rows = boxes.rows[i] + boxes.rows[j]
            more = price(layout.logs, cost[j], rows) - boxes.price[j]
            if j != i and more < least - LESS:
                least, found[i] = more, j
    return found


@outer
def pair_up(layout: Layout, group: Ints, groups: int) -> tuple[Ints, Ints]:
    """A binary tree over the groups: those that are each other's cheapest partner are paired, round after round.

    Nodes from `groups` on are pairs, the last one is the root: left and right child of each node, -1 for a group.
    """
    nodes = 2 * groups - 1
    boxes = new_boxes(layout, nodes + 1)
    fill(layout, boxes, group, nodes)
    child = np.full((2, nodes), -1, np.int64)
    least, partner = np.full(nodes, np.inf), np.full(nodes, -1, np.int64)
    active, count, node = np.arange(nodes), groups, groups
    stale = np.ones(nodes, np.bool_)
    while count > 1:
        _partners(layout, boxes, active[:count], stale, least, partner)
        first = node
        for x in range(count):
            i = active[x]
            j = partner[i]
            if i < j and partner[j] == i:
                child[0, node], child[1, node] = i, j
                join(layout, boxes, i, j, node)
                node += 1
        if node == first:  # partners in a circle of equal costs: the first pair of least cost
            i = active[np.argmin(least[active[:count]])]
            child[0, node], child[1, node] = min(i, partner[i]), max(i, partner[i])
            join(layout, boxes, child[0, node], child[1, node], node)
            node += 1
        for pair in range(first, node):
            partner[child[0, pair]] = partner[child[1, pair]] = -2  # gone
        kept = 0
        for x in range(count):
            i = active[x]
            if partner[i] != -2:
                stale[i] = partner[partner[i]] == -2
                active[kept] = i
                kept += 1
        for pair in range(first, node):
            active[kept] = pair
            kept += 1
        count = kept
    return child[0], child[1]


@inner
def _partners(layout: Layout, boxes: Boxes, active: Ints, stale: Bools, least: Floats, partner: Ints) -> None:
    """The cheapest partner of every box that is stale, and of every other one for which such a box is cheaper."""
    rows, priced, logs, cost = boxes.rows, boxes.price, layout.logs, np.empty(len(active))
    for i in active:
        if stale[i]:
            least[i] = np.inf
    for x in range(len(active)):
        i = active[x]
        if not stale[i]:
            continue
        joint_costs(layout, boxes, i, active, cost)
        for y in range(len(active)):
            j, n = active[y], rows[i] + rows[active[y]]
            more = (n * (cost[y] - log(n)) if logs else n * cost[y]) - priced[i] - priced[j]
            if j != i and more < least[i] - LESS:
                least[i], partner[i] = more, j
            if j != i and more < least[j] - LESS:
                least[j], partner[j] = more, i
    for i in active:
        stale[i] = False
