"""What a lattice node costs, compiled: from its tally, or where nothing is suppressed straight from the table."""
# mypy: disable-error-code="untyped-decorator,no-any-return"
# numba's decorator has no types, and so what a kernel calls returns Any.
# Kernels call each other by position.

from __future__ import annotations

from math import exp, expm1, log, log1p

import numpy as np

from jali.core.arrays import Floats, Ints
from jali.kernels.jit import inner

# isort: off
from jali.kernels.tallies import (
    AREA, AVERAGE, BEGIN, DISCERNIBILITY, ENTRIES, FROM, GROUPS, HEIGHT, KEY, KL, LENGTH, LOSS, MASK, METRIC, NODE,
    OWN, PEOPLE, PLACE, ROWS, SHIFT, SIZE, SLACK, TOP, VALUE, Ground, Room, cells_of, count_gone, level_of, roll_up,
    rolled, source_of, tally_of,
)  # fmt: skip
# isort: on

FEW_CELLS = 1 << 16
"""Groups and values of which all that might occur are counted in a table."""


@inner
def log_area(ground: Ground, node: int, key: int) -> float:
    """The logarithm of how many points of the domain a group covers."""
    lattice, spot, logs, area = ground.lattice, ground.spot, ground.covered[1], 0.0
    for c in range(lattice.shape[1]):
        area += logs[spot[c, level_of(lattice, node, c)] + (key >> lattice[SHIFT, c] & lattice[MASK, c])]
    return area


@inner
def kl_alone(ground: Ground, node: int) -> float:
    """The KL-divergences of the columns alone, which add up to no more than that of the node."""
    total = 0.0
    for c in range(ground.lattice.shape[1]):
        total += ground.mean[2, c, level_of(ground.lattice, node, c)]
    return total


@inner
def mean_log_area(ground: Ground, node: int) -> float:
    area = 0.0
    for c in range(ground.lattice.shape[1]):
        area += ground.mean[1, c, level_of(ground.lattice, node, c)]
    return area


@inner
def at_least(ground: Ground, room: Room, node: int) -> float:
    """What a node costs at the least; by KL-divergence what its values add is that of a finer node."""
    metric = ground.option[METRIC]
    columns, rows = ground.lattice.shape[1], float(ground.option[ROWS])
    if metric in (HEIGHT, LOSS):
        height, logs = 0.0, 0.0
        for c in range(columns):
            level = level_of(ground.lattice, node, c)
            height += ground.weight[c] * level
            logs += ground.mean[1, c, level]
        return height if metric == HEIGHT else expm1(logs)
    tally = tally_of(ground, room, node, False)
    begin, groups, total = room.kept[BEGIN, tally], room.kept[GROUPS, tally], 0.0
    if metric == AVERAGE:
        return rows / groups
    if metric == DISCERNIBILITY:
        for at in range(begin, begin + groups):
            total += float(room.group[SIZE, at]) * float(room.group[SIZE, at])
        return total
    for at in range(begin, begin + groups):
        total += room.group[SIZE, at] * log(float(room.group[SIZE, at]))
    return mean_log_area(ground, node) - total / rows


@inner
def least_kl(ground: Ground, room: Room, tally: int) -> float:
    """The KL-divergence of a node when nothing is suppressed, which is the least."""
    rows, total, begin = float(ground.option[ROWS]), 0.0, room.kept[ENTRIES, tally]
    for e in range(begin, begin + room.kept[LENGTH, tally]):
        total += room.entry[PEOPLE, e] * log(float(room.entry[PEOPLE, e]))
    return ground.term[OWN] + log(rows) - total / rows + mean_log_area(ground, room.kept[NODE, tally])


@inner
def price(ground: Ground, room: Room, tally: int, gone: int) -> float:
    """What a node costs when the groups that are flagged in `room.number[1]` are suppressed, `gone` rows in all."""
    metric, node = ground.option[METRIC], room.kept[NODE, tally]
    if gone == 0 or metric == HEIGHT:
        return least_kl(ground, room, tally) if metric == KL else at_least(ground, room, node)
    begin, groups, hidden = room.kept[BEGIN, tally], room.kept[GROUPS, tally], room.number[1]
    if metric == KL:
        return _price_kl(ground, room, tally)
    if metric == LOSS:
        return _price_loss(ground, room, tally)
    total, shown = float(gone) * float(ground.option[ROWS]), 0
    for g in range(groups):
        if not hidden[g]:
            shown += 1
            total += float(room.group[SIZE, begin + g]) * float(room.group[SIZE, begin + g])
    return total if metric == DISCERNIBILITY else ground.option[ROWS] / (shown + 1)


@inner
def _price_loss(ground: Ground, room: Room, tally: int) -> float:
    node, begin, logs = room.kept[NODE, tally], room.kept[BEGIN, tally], 0.0
    for c in range(ground.lattice.shape[1]):
        level = level_of(ground.lattice, node, c)
        shift, mask, spot = ground.lattice[SHIFT, c], ground.lattice[MASK, c], ground.spot[c, level]
        every, more = ground.covered[0, ground.spot[c, ground.lattice[TOP, c]]], 0.0
        for g in range(room.kept[GROUPS, tally]):
            if room.number[1, g]:
                code = room.group[KEY, begin + g] >> shift & mask
                more += room.group[SIZE, begin + g] * (every - ground.covered[0, spot + code])
        share = ground.mean[0, c, level] + more / ground.option[ROWS] / max(every - 1.0, 1.0)
        logs += ground.weight[c] * log1p(share)
    return expm1(logs)


@inner
def _price_kl(ground: Ground, room: Room, tally: int) -> float:
    """Each row is spread evenly over its box; suppressed rows over everything, so they add to every box."""
    begin, groups, hidden, gone = room.kept[BEGIN, tally], room.kept[GROUPS, tally], room.number[1], room.joint[1]
    count_gone(room, tally)
    everywhere, total, rows = ground.term[AREA], 0.0, float(ground.option[ROWS])
    start, values, people = room.group[FROM, begin : begin + groups], room.entry[VALUE], room.entry[PEOPLE]
    last = room.kept[ENTRIES, tally] + room.kept[LENGTH, tally]
    for g in range(groups):
        area, inside, outside = everywhere, 0.0, 1.0  # of the same: important columns have areas beyond all floats
        if not hidden[g]:
            area, inside = log_area(ground, room.kept[NODE, tally], room.group[KEY, begin + g]), 1.0
            outside = exp(area - everywhere)
        for e in range(start[g], start[g + 1] if g + 1 < groups else last):
            total += people[e] * (log(people[e] * inside + gone[values[e]] * outside) - area)
    return ground.term[OWN] + log(rows) - total / rows


# -- nodes of which nothing is suppressed, one after the other --------------------------------------------------------


@inner
def _places(ground: Ground, room: Room, node: int) -> int:
    """Number the group of each combination in `room.number[0]` among all that a node might have; how many, or 0."""
    lattice, width, every, finer = ground.lattice, ground.width, 1, room.kept[GROUPS, 0]
    for c in range(lattice.shape[1]):
        every *= width[c, level_of(lattice, node, c)]
        if every * room.joint.shape[1] > FEW_CELLS:
            return 0
    keys, number, step = room.group[KEY, :finer], room.number[0], 1
    number[:finer] = 0
    for c in range(lattice.shape[1]):
        level = level_of(lattice, node, c)
        if width[c, level] > 1:
            shift, mask = np.uint64(lattice[SHIFT, c]), np.uint64(lattice[MASK, c])
            to = ground.maps[ground.offset[c, level] :]
            for i in range(finer):
                number[i] += to[np.uint64(keys[i]) >> shift & mask] * step
            step *= width[c, level]
    return every


@inner
def _kl_of(ground: Ground, room: Room, node: int) -> float:
    """The KL-divergence of a node when nothing is suppressed, straight from the entries of the table."""
    groups, rows, total = _places(ground, room, node), float(ground.option[ROWS]), 0.0
    if not groups:
        source_of(ground, room, 0, False)
        groups = roll_up(ground, room, 0, node)
    if groups * room.joint.shape[1] > room.entry.shape[1]:
        return least_kl(ground, room, rolled(ground, room, node, True))
    for n in cells_of(room, 0, groups):
        if n > 1:
            total += n * log(float(n))
    return ground.term[OWN] + log(rows) - total / rows + mean_log_area(ground, node)


@inner
def costs(ground: Ground, room: Room, nodes: Ints, result: Floats) -> None:
    """What these nodes cost when nothing is suppressed, infinite where by KL another surely costs less: (nodes,)."""
    by_kl = ground.option[METRIC] == KL
    for i in range(len(nodes)):
        known = not by_kl or room.node[PLACE, nodes[i]] >= 0  # without a tally a bound takes as long as the divergence
        result[i] = at_least(ground, room, nodes[i]) if known else -np.inf
    if not by_kl:
        return
    bounds, best = result + room.least[0], np.inf
    for i in range(len(nodes)):
        bounds[i] = max(bounds[i], kl_alone(ground, nodes[i]))
    result[:] = np.inf
    while True:
        i = int(np.argmin(bounds))
        if bounds[i] > best + ground.term[SLACK] or bounds[i] == np.inf:
            return
        result[i] = _kl_of(ground, room, nodes[i])
        best, bounds[i] = min(best, result[i]), np.inf
