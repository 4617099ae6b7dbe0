"""The compiled lattice search: thin tallies for bounds, values of groups only for nodes that the bounds let through.

A thin tally has for each group its key, its rows, and the set of its values as bits; a fat one also has the entries of
each group. A key is the node of each column, in bits of its own. Tallies lie one behind the other in pools, and a node
is rolled up from the smallest finer tally at hand. The hash that finds equal keys carries the number of its use, so it
is never cleared.
"""
# mypy: disable-error-code="untyped-decorator,no-any-return"
# numba's decorator has no types, and so what a kernel calls returns Any.
# ruff: noqa: PLR0917
# Kernels call each other by position.

from __future__ import annotations

from math import exp, log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jali.core.arrays import Floats, Ints
from jali.kernels.jit import inner, outer
from jali.kernels.judge import LEFT, SEEN, Desk, Work, holds

LOSS, DISCERNIBILITY, KL, AVERAGE, HEIGHT = range(5)
"""The metrics."""

LEAST, DISTINCT, BUDGET, METRIC, ROWS, SIZES_ALONE, GUARDS = range(7)
"""The places of `Ground.option`: the least rows and different values of a group that can hold, the rows that may be
suppressed, the metric, all rows, whether sizes say it all, and the bit above each packed level."""

OWN, AREA = range(2)
"""The places of `Ground.term`: Σ F log F of the table's own cells, and the logarithm of the domain's points."""

NODE, GROUPS, BEGIN, ENTRIES, LENGTH, PACKED = range(6)
"""The rows of `Room.kept`: node, groups, where they begin, where its entries begin (-1 if it is thin), how many, and
its levels packed into one number."""

KEY, SIZE, SET, FROM = range(4)
"""The rows of `Room.group`: key, rows, bits of values, where a fat group's entries begin."""

TOP, STEP, BITS, SHIFT, MASK, RANK = range(6)
"""The rows of `Ground.lattice`: the highest level of each column, the step to the next level in a node's number, where
its level begins in a packed node, where its node begins in a key and the bits that it has there, and the columns by how
many values they have."""

MANY = 512
"""Groups of a tally from which nodes are rolled up without ado; from larger ones a finer node is made first."""

VALUE, PEOPLE = range(2)
"""The rows of `Room.entry`."""

KEPT, USED, HELD, STAMP, CHECKED, WAITING, FOUND, AT, WORKED = range(9)
"""The places of `Room.count`: tallies, groups and entries at hand, uses of the hash, nodes judged, questions in the
heap, candidates, where the search stands, and how many groups were visited since it last returned."""

STATE, SEEN_NODE, PLACE = range(3)
"""The rows of `Room.node`: whether a node holds, whether it was in the heap, and its tally."""

HOLDS, FAILS = 1, 2
NEW, LOOK, ASK = range(3)
DONE, MORE = -1, -2
TIE = 1e-10
"""Costs that differ by less are priced again, exactly as everywhere else."""


class Ground(NamedTuple):
    """The table, its hierarchies and the requirement: what a search never changes."""

    judged: Ints  # (judged columns, joint values)
    maps: NDArray[np.int32]  # level l of code v of column c is at offset[c, l] + v
    offset: Ints  # (columns, levels)
    width: Ints  # (columns, levels): nodes
    spot: Ints  # (columns, levels): where `covered` begins
    covered: Floats  # (2, nodes of all levels): values of the domain under each, and the logarithm of that
    mean: Floats  # (3, columns, levels): the mean share of values covered, and of the logarithm of their number; and
    #               the KL-divergence of the column and the values alone
    first: NDArray[np.int32]  # (nodes of all levels): a code under each
    lattice: Ints  # (6, columns)
    option: Ints
    term: Floats


class Room(NamedTuple):
    """What a search changes."""

    kept: Ints  # (6, tallies)
    group: Ints  # (4, groups of all tallies)
    entry: NDArray[np.int32]  # (2, entries of all fat tallies)
    slot: Ints  # (slots, 2): a key, and the use in which it was taken, above the 32 bits of its group
    fresh: Ints  # (combinations,): keys at the node
    step: Ints  # (values of all columns): the coarser node of each node, where a key has it
    number: NDArray[np.int32]  # (3, combinations + 1): the group of each finer one, them in order, where each begins
    joint: Ints  # (3, joint values): people of a group, of the suppressed groups, the values it has
    union: NDArray[np.int32]  # (2, joint values): the entries of the suppressed groups as one
    node: NDArray[np.int32]  # (3, nodes)
    path: Ints  # (2, nodes): a chain, nodes that are to be decided
    column: Ints  # (3, columns): of those that change, where their node begins, its bits, and its steps
    heap: Floats  # (bounds of nodes)
    heap_node: Ints  # three times the node, and what is to be done
    least: Floats  # (nodes): what the values of a node add to its KL-divergence at the least
    found: Ints  # (2, candidates): node, suppressed rows
    cost: Floats  # (candidates + 1): the last is the least
    count: Ints


# -- tallies ------------------------------------------------------------------------------------------------------


@inner
def _level(lattice: Ints, node: int, c: int) -> int:
    return node // lattice[STEP, c] % (lattice[TOP, c] + 1)


@inner
def _packed(ground: Ground, node: int) -> int:
    packed = 0
    for c in range(ground.lattice.shape[1]):
        packed += _level(ground.lattice, node, c) << ground.lattice[BITS, c]
    return packed


@inner
def _nearest(ground: Ground, room: Room, node: int, fat: bool) -> int:
    """The smallest tally at hand that is nowhere coarser: no guard bit is borrowed."""
    guards = ground.option[GUARDS]
    levels = _packed(ground, node) | guards
    best = 0
    for i in range(1, room.count[KEPT]):
        if room.kept[GROUPS, i] < room.kept[GROUPS, best] and (not fat or room.kept[ENTRIES, i] >= 0):
            if (levels - room.kept[PACKED, i]) & guards == guards:
                best = i
    return best


@inner
def _make_room(room: Room, groups: int, entries: int) -> None:
    """Forget the older half of the tallies, again and again until there is room; the finest stays."""
    while room.count[USED] + groups > room.group.shape[1] or room.count[HELD] + entries > room.entry.shape[1] or (
        room.count[KEPT] == room.kept.shape[1]
    ):
        first = 1 + room.count[KEPT] // 2
        used, held, kept = room.kept[GROUPS, 0], room.kept[LENGTH, 0], 1
        for i in range(1, room.count[KEPT]):
            at, node = room.kept[BEGIN, i], room.kept[NODE, i]
            alive = room.node[PLACE, node] == i
            if i < first or not alive:
                if alive:
                    room.node[PLACE, node] = -1
                continue
            begin, length = room.kept[ENTRIES, i], room.kept[LENGTH, i]
            many = room.kept[GROUPS, i]
            for g in range(many):
                for r in range(3):
                    room.group[r, used + g] = room.group[r, at + g]
                room.group[FROM, used + g] = room.group[FROM, at + g] - begin + held
            if begin >= 0:
                for e in range(length):
                    for r in range(2):
                        room.entry[r, held + e] = room.entry[r, begin + e]
                room.kept[ENTRIES, kept] = held
                held += length
            else:
                room.kept[ENTRIES, kept] = -1
            room.kept[NODE, kept], room.kept[GROUPS, kept], room.kept[BEGIN, kept] = node, many, used
            room.kept[LENGTH, kept], room.kept[PACKED, kept] = length, room.kept[PACKED, i]
            room.node[PLACE, node] = kept
            used += many
            kept += 1
        room.count[USED], room.count[HELD], room.count[KEPT] = used, held, kept


@inner
def _steps(ground: Ground, room: Room, finer: int, node: int) -> tuple[int, int]:
    """Lay out how keys of a finer node change; how many columns do, and the bits that stay."""
    stay, changed, at = 0, 0, 0
    for c in range(ground.lattice.shape[1]):
        low, high = _level(ground.lattice, finer, c), _level(ground.lattice, node, c)
        shift, mask = ground.lattice[SHIFT, c], ground.lattice[MASK, c]
        if low == high:
            stay |= mask << shift
        elif ground.width[c, high] > 1:
            room.column[0, changed], room.column[1, changed], room.column[2, changed] = shift, mask, at
            maps, first = ground.offset[c, high], ground.spot[c, low]
            for n in range(ground.width[c, low]):
                room.step[at + n] = np.int64(ground.maps[maps + ground.first[first + n]]) << shift
            at += ground.width[c, low]
            changed += 1
    return changed, stay


@inner
def _roll(ground: Ground, room: Room, source: int, node: int) -> int:
    """The thin tally of a node, rolled up from a finer one; `room.number` says where each finer group went."""
    changed, stay = _steps(ground, room, room.kept[NODE, source], node)
    start, finer, begin = room.kept[BEGIN, source], room.kept[GROUPS, source], room.count[USED]
    room.count[STAMP] += 1
    now, most, groups = room.count[STAMP] << 32, 63, 0
    while most < 2 * finer:
        most = 2 * most + 1
    keys, sizes, sets = room.group[KEY, begin:], room.group[SIZE, begin:], room.group[SET, begin:]
    old_keys, old_sizes = room.group[KEY, start : start + finer], room.group[SIZE, start : start + finer]
    old_sets, slot, step, number = room.group[SET, start : start + finer], room.slot, room.step, room.number[0]
    column, places, fresh = room.column, np.uint64(most), room.fresh
    for i in range(finer):
        fresh[i] = old_keys[i] & stay
    for a in range(changed):  # column by column: such short loops run several times as fast as one of all columns
        shift, mask, to = np.uint64(column[0, a]), np.uint64(column[1, a]), step[column[2, a] :]
        for i in range(finer):
            fresh[i] |= to[np.uint64(old_keys[i]) >> shift & mask]
    for i in range(finer):
        key = fresh[i]
        at = np.uint64(key * 0x9E3779B97F4A7C1 >> 24) & places
        while slot[at, 1] >= now and slot[at, 0] != key:
            at = (at + np.uint64(1)) & places
        if slot[at, 1] < now:
            slot[at, 0], slot[at, 1] = key, now | groups
            keys[groups], sizes[groups], sets[groups] = key, old_sizes[i], old_sets[i]
            number[i] = groups
            groups += 1
        else:
            g = np.uint64(slot[at, 1] & 0xFFFFFFFF)
            number[i] = g
            sizes[g] += old_sizes[i]
            sets[g] |= old_sets[i]
    room.count[WORKED] += finer
    return groups


@inner
def _keep(ground: Ground, room: Room, node: int, groups: int, begin: int, entries: int) -> int:
    """Have the tally that was just rolled at hand; a thin one of the same node is not looked at any more."""
    old, place = room.node[PLACE, node], room.count[KEPT]
    if old >= 0:
        room.kept[GROUPS, old] = 1 << 62
    room.kept[NODE, place], room.kept[GROUPS, place], room.kept[BEGIN, place] = node, groups, room.count[USED]
    room.kept[ENTRIES, place], room.kept[LENGTH, place] = begin, entries
    room.kept[PACKED, place] = _packed(ground, node)
    room.node[PLACE, node] = place
    room.count[KEPT] += 1
    room.count[USED] += groups
    room.count[HELD] += entries
    return place


@inner
def _source(ground: Ground, room: Room, node: int, fat: bool) -> int:
    """The tally from which a node is rolled up; there is room for as many groups and entries as it has."""
    source = _nearest(ground, room, node, fat)
    groups, entries = room.kept[GROUPS, source], room.kept[LENGTH, source] if fat else 0
    if (
        room.count[USED] + groups > room.group.shape[1]
        or room.count[HELD] + entries > room.entry.shape[1]
        or room.count[KEPT] == room.kept.shape[1]
    ):
        _make_room(room, groups, entries)
        source = _nearest(ground, room, node, fat)
    return source


@inner
def _rolled(ground: Ground, room: Room, node: int, fat: bool) -> int:
    """Roll a node up, and have its tally at hand."""
    source, held = _source(ground, room, node, fat), room.count[HELD]
    groups = _roll(ground, room, source, node)
    if not fat:
        return _keep(ground, room, node, groups, -1, 0)
    return _keep(ground, room, node, groups, held, _gather(room, source, groups) - held)


@inner
def _tally(ground: Ground, room: Room, node: int, fat: bool) -> int:
    """The tally of a node; a thin one may be fat.

    Where only large ones are finer, nodes between are made first, column by column, since many nodes share them.
    """
    place = room.node[PLACE, node]
    if place >= 0 and (not fat or room.kept[ENTRIES, place] >= 0):
        return place
    between, source = 0, _nearest(ground, room, node, fat)
    for i in range(ground.lattice.shape[1] - 1):
        if room.kept[GROUPS, source] <= MANY:
            break
        c = ground.lattice[RANK, i]
        level = _level(ground.lattice, node, c)
        between += level * ground.lattice[STEP, c]
        if not level or between == node:
            continue
        place = room.node[PLACE, between]
        if place < 0 or (fat and room.kept[ENTRIES, place] < 0):
            place = _rolled(ground, room, between, fat)
        if room.kept[GROUPS, place] < room.kept[GROUPS, source]:
            source = place
    return _rolled(ground, room, node, fat)


@inner
def _gather(room: Room, source: int, groups: int) -> int:
    """The entries of the groups that were just rolled up, one group after the other; where they end."""
    start, finer, begin = room.kept[BEGIN, source], room.kept[GROUPS, source], room.count[USED]
    number, order, first = room.number[0], room.number[1], room.number[2]
    for g in range(groups + 1):
        first[g] = 0
    for i in range(finer):
        first[number[i]] += 1
    upto = 0
    for g in range(groups):
        upto, first[g] = upto + first[g], upto
    for i in range(finer):
        order[first[number[i]]] = i
        first[number[i]] += 1
    end, at, people, seen = room.count[HELD], 0, room.joint[0], room.joint[2]
    for g in range(groups):
        kinds = 0
        for j in range(at, first[g]):
            i = order[j]
            last = room.group[FROM, start + i + 1] if i + 1 < finer else (
                room.kept[ENTRIES, source] + room.kept[LENGTH, source]
            )
            for e in range(room.group[FROM, start + i], last):
                v = room.entry[VALUE, e]
                if people[v] == 0:
                    seen[kinds] = v
                    kinds += 1
                people[v] += room.entry[PEOPLE, e]
        at = first[g]
        room.group[FROM, begin + g] = end
        for s in range(kinds):
            room.entry[VALUE, end], room.entry[PEOPLE, end] = seen[s], people[seen[s]]
            people[seen[s]] = 0
            end += 1
    room.count[WORKED] += finer
    return end


# -- judging ------------------------------------------------------------------------------------------------------


@inner
def _too_few(size: int, values: int, least: int, distinct: int) -> bool:
    """Whether the group has too few rows, or too few different values, for any promise to hold."""
    return size < least or (distinct > 1 and _bits(values) < distinct)


@inner
def _bits(word: int) -> int:
    """How many bits are set: in pairs, in fours, in bytes, and these added up by the product's highest byte."""
    word -= word >> 1 & 0x5555555555555555
    word = (word & 0x3333333333333333) + (word >> 2 & 0x3333333333333333)
    word = word + (word >> 4) & 0x0F0F0F0F0F0F0F0F
    return (word * 0x0101010101010101 >> 56) & 0x7F


@inner
def _lost(ground: Ground, room: Room, tally: int) -> int:
    """The rows in groups for which no promise can hold."""
    begin, end, lost = room.kept[BEGIN, tally], room.kept[BEGIN, tally] + room.kept[GROUPS, tally], 0
    sizes, sets = room.group[SIZE, begin:end], room.group[SET, begin:end]
    least, distinct = ground.option[LEAST], ground.option[DISTINCT]
    for g in range(end - begin):
        if _too_few(sizes[g], sets[g], least, distinct):
            lost += sizes[g]
    return lost


@inner
def _judge(
    judged: Ints, work: Work, desk: Desk, values: NDArray[np.int32], people: NDArray[np.int32], size: int
) -> bool:
    """Whether a group with these people of these joint values keeps every promise."""
    counts, seen, kinds = desk.counts[LEFT], desk.counts[SEEN], desk.kinds
    for c in range(len(judged)):
        kinds[c] = 0
        for e in range(len(values)):
            v = judged[c, values[e]]
            if counts[c, v] == 0:
                seen[c, kinds[c]] = v
                kinds[c] += 1
            counts[c, v] += people[e]
    kept = holds(work, desk, counts, size)
    for c in range(len(judged)):
        for s in range(kinds[c]):
            counts[c, seen[c, s]] = 0
    return kept


@inner
def _flag(ground: Ground, room: Room, work: Work, desk: Desk, tally: int, exactly: bool, most: int) -> int:
    """Flag the groups that break a promise, or surely do; how many rows they have, counted until it is over `most`."""
    begin, end, gone = room.kept[BEGIN, tally], room.kept[BEGIN, tally] + room.kept[GROUPS, tally], 0
    sizes, sets, start = room.group[SIZE, begin:end], room.group[SET, begin:end], room.group[FROM, begin:end]
    least, distinct, hidden, judged = ground.option[LEAST], ground.option[DISTINCT], room.number[1], ground.judged
    values, people, last = room.entry[VALUE], room.entry[PEOPLE], room.kept[ENTRIES, tally] + room.kept[LENGTH, tally]
    exactly = exactly and not ground.option[SIZES_ALONE]
    for g in range(end - begin):
        fails = _too_few(sizes[g], sets[g], least, distinct)
        if exactly and not fails:
            a, b = start[g], start[g + 1] if g + 1 < end - begin else last
            fails = not _judge(judged, work, desk, values[a:b], people[a:b], sizes[g])
        hidden[g] = fails
        if fails:
            gone += sizes[g]
            if gone > most:
                break
    return gone


@inner
def _holds_everywhere(ground: Ground, room: Room, work: Work, desk: Desk, node: int) -> bool:
    """Whether every group of a node keeps every promise."""
    room.count[CHECKED] += 1
    if _lost(ground, room, _tally(ground, room, node, False)) > 0:
        return False
    if ground.option[SIZES_ALONE]:
        return True
    return _flag(ground, room, work, desk, _tally(ground, room, node, True), True, 0) == 0


# -- the frontier -------------------------------------------------------------------------------------------------


@inner
def _decide(ground: Ground, room: Room, node: int, verdict: int) -> None:
    """Tag the node and everything above it that holds, or below it that fails, stopping where that is known."""
    state, pending, many = room.node[STATE], room.path[1], 1
    pending[0], state[node] = node, verdict
    while many:
        many -= 1
        now = pending[many]
        for c in range(ground.lattice.shape[1]):
            level, step = _level(ground.lattice, now, c), ground.lattice[STEP, c]
            after = -1
            if verdict == HOLDS and level < ground.lattice[TOP, c]:
                after = now + step
            elif verdict == FAILS and level:
                after = now - step
            if after >= 0 and not state[after]:
                state[after] = verdict
                pending[many] = after
                many += 1


@inner
def _chain(ground: Ground, room: Room, node: int) -> int:
    """From a node upwards through undecided nodes; how many they are."""
    chain, many, going = room.path[0], 1, True
    chain[0] = node
    while going:
        going = False
        for c in range(ground.lattice.shape[1]):
            if _level(ground.lattice, chain[many - 1], c) < ground.lattice[TOP, c]:
                after = chain[many - 1] + ground.lattice[STEP, c]
                if not room.node[STATE, after]:
                    chain[many] = after
                    many += 1
                    going = True
                    break
    return many


@inner
def _bisect(ground: Ground, room: Room, work: Work, desk: Desk, node: int, exactly: bool) -> None:
    """Decide a chain of nodes: whether they hold exactly, or might with no more suppressed rows than are allowed."""
    low, high = 0, _chain(ground, room, node)
    while low < high:
        middle = (low + high) // 2
        asked = room.path[0, middle]
        if exactly:
            kept = _holds_everywhere(ground, room, work, desk, asked)
        else:
            kept = _lost(ground, room, _tally(ground, room, asked, False)) <= ground.option[BUDGET]
        if kept:
            _decide(ground, room, asked, HOLDS)
            high = middle
        else:
            _decide(ground, room, asked, FAILS)
            low = middle + 1


@outer
def decide_all(ground: Ground, room: Room, work: Work, desk: Desk, order: Ints, most: int) -> int:
    """Decide nodes in this order, lowest first, for about `most` visits of groups: DONE, or MORE remain."""
    room.count[WORKED] = 0
    while room.count[AT] < len(order):
        node = order[room.count[AT]]
        if not room.node[STATE, node]:
            if room.count[WORKED] > most:
                return MORE
            _bisect(ground, room, work, desk, node, True)
        room.count[AT] += 1
    return DONE


# -- costs --------------------------------------------------------------------------------------------------------


@inner
def _at_least(ground: Ground, room: Room, node: int) -> float:
    """What a node costs at the least; by KL-divergence what its values add is that of a finer node."""
    metric = ground.option[METRIC]
    columns, rows = ground.lattice.shape[1], float(ground.option[ROWS])
    if metric == HEIGHT or metric == LOSS:
        height, product = 0.0, 1.0
        for c in range(columns):
            height += _level(ground.lattice, node, c)
            product *= 1.0 + ground.mean[0, c, _level(ground.lattice, node, c)]
        return height if metric == HEIGHT else product ** (1.0 / columns) - 1.0
    tally = _tally(ground, room, node, False)
    begin, groups, total = room.kept[BEGIN, tally], room.kept[GROUPS, tally], 0.0
    if metric == AVERAGE:
        return rows / groups
    if metric == DISCERNIBILITY:
        for at in range(begin, begin + groups):
            total += float(room.group[SIZE, at]) * float(room.group[SIZE, at])
        return total
    for at in range(begin, begin + groups):
        total += room.group[SIZE, at] * log(float(room.group[SIZE, at]))
    return _mean_area(ground, node) - total / rows


@inner
def _alone(ground: Ground, node: int) -> float:
    """The KL-divergences of the columns alone, which add up to no more than that of the node."""
    total = 0.0
    for c in range(ground.lattice.shape[1]):
        total += ground.mean[2, c, _level(ground.lattice, node, c)]
    return total


@inner
def _mean_area(ground: Ground, node: int) -> float:
    area = 0.0
    for c in range(ground.lattice.shape[1]):
        area += ground.mean[1, c, _level(ground.lattice, node, c)]
    return area


@inner
def _least_kl(ground: Ground, room: Room, tally: int) -> float:
    """The KL-divergence of a node when nothing is suppressed, which is the least."""
    rows, total, begin = float(ground.option[ROWS]), 0.0, room.kept[ENTRIES, tally]
    for e in range(begin, begin + room.kept[LENGTH, tally]):
        total += room.entry[PEOPLE, e] * log(float(room.entry[PEOPLE, e]))
    return ground.term[OWN] + log(rows) - total / rows + _mean_area(ground, room.kept[NODE, tally])


@inner
def _price(ground: Ground, room: Room, tally: int, gone: int) -> float:
    """What a node costs when the groups that are flagged in `room.number[1]` are suppressed, `gone` rows in all."""
    metric, node = ground.option[METRIC], room.kept[NODE, tally]
    if gone == 0 or metric == HEIGHT:
        return _least_kl(ground, room, tally) if metric == KL else _at_least(ground, room, node)
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
    node, begin, product, columns = room.kept[NODE, tally], room.kept[BEGIN, tally], 1.0, ground.lattice.shape[1]
    for c in range(columns):
        level = _level(ground.lattice, node, c)
        shift, mask, spot = ground.lattice[SHIFT, c], ground.lattice[MASK, c], ground.spot[c, level]
        every, more = ground.covered[0, ground.spot[c, ground.lattice[TOP, c]]], 0.0
        for g in range(room.kept[GROUPS, tally]):
            if room.number[1, g]:
                code = room.group[KEY, begin + g] >> shift & mask
                more += room.group[SIZE, begin + g] * (every - ground.covered[0, spot + code])
        product *= 1.0 + ground.mean[0, c, level] + more / ground.option[ROWS] / max(every - 1.0, 1.0)
    return product ** (1.0 / columns) - 1.0


@inner
def _price_kl(ground: Ground, room: Room, tally: int) -> float:
    """Each row is spread evenly over its box; suppressed rows over everything, so they add to every box."""
    begin, groups, hidden, gone = room.kept[BEGIN, tally], room.kept[GROUPS, tally], room.number[1], room.joint[1]
    _gone(room, tally)
    everywhere, total, rows = exp(-ground.term[AREA]), 0.0, float(ground.option[ROWS])
    start, values, people = room.group[FROM, begin : begin + groups], room.entry[VALUE], room.entry[PEOPLE]
    last = room.kept[ENTRIES, tally] + room.kept[LENGTH, tally]
    for g in range(groups):
        inside = 0.0 if hidden[g] else exp(-_area(ground, room.kept[NODE, tally], room.group[KEY, begin + g]))
        for e in range(start[g], start[g + 1] if g + 1 < groups else last):
            total += people[e] * log(people[e] * inside + gone[values[e]] * everywhere)
    return ground.term[OWN] + log(rows) - total / rows


@inner
def _area(ground: Ground, node: int, key: int) -> float:
    """The logarithm of how many points of the domain a group covers."""
    lattice, spot, logs, area = ground.lattice, ground.spot, ground.covered[1], 0.0
    for c in range(lattice.shape[1]):
        area += logs[spot[c, _level(lattice, node, c)] + (key >> lattice[SHIFT, c] & lattice[MASK, c])]
    return area


# -- the best node under a budget of suppressed rows --------------------------------------------------------------


@inner
def _push(room: Room, bound: float, node: int, what: int) -> None:
    at = room.count[WAITING]
    room.count[WAITING] += 1
    while at and bound < room.heap[(at - 1) // 2]:
        above = (at - 1) // 2
        room.heap[at], room.heap_node[at] = room.heap[above], room.heap_node[above]
        at = above
    room.heap[at], room.heap_node[at] = bound, 3 * node + what


@inner
def _pop(room: Room) -> int:
    """Take the question with the least bound out of the heap."""
    first, many = room.heap_node[0], room.count[WAITING] - 1
    room.count[WAITING] = many
    bound, question, at = room.heap[many], room.heap_node[many], 0
    while 2 * at + 1 < many:
        under = 2 * at + 1
        if under + 1 < many and room.heap[under + 1] < room.heap[under]:
            under += 1
        if room.heap[under] >= bound:
            break
        room.heap[at], room.heap_node[at] = room.heap[under], room.heap_node[under]
        at = under
    room.heap[at], room.heap_node[at] = bound, question
    return first


@inner
def _expand(ground: Ground, room: Room, node: int, bound: float) -> None:
    """Put the nodes one step above into the heap."""
    for c in range(ground.lattice.shape[1]):
        if _level(ground.lattice, node, c) < ground.lattice[TOP, c]:
            above = node + ground.lattice[STEP, c]
            room.least[above] = max(room.least[above], room.least[node])
            if not room.node[SEEN_NODE, above]:
                room.node[SEEN_NODE, above] = 1
                metric, own = ground.option[METRIC], 0.0
                if metric == HEIGHT or metric == LOSS:
                    own = _at_least(ground, room, above)
                elif metric == KL:
                    own = _alone(ground, above)
                _push(room, max(own, bound), above, NEW)


@inner
def _propose(ground: Ground, room: Room, node: int, cost: float, gone: int) -> None:
    """Remember a node that costs no more than the best; where costs are exact, ties go to fewer suppressed rows."""
    best, found = room.cost[-1], room.count[FOUND]
    if cost > best + TIE:
        return
    exactly = ground.option[METRIC] != LOSS and ground.option[METRIC] != KL
    if found and exactly:
        if cost == best and (gone, node) >= (room.found[1, 0], room.found[0, 0]):
            return
        found = 0
    room.found[0, found], room.found[1, found], room.cost[found] = node, gone, cost
    room.cost[-1] = min(best, cost)
    room.count[FOUND] = found + 1


@inner
def _gone(room: Room, tally: int) -> None:
    """Count the people of the flagged groups by value, in `room.joint[1]`."""
    begin, groups, gone = room.kept[BEGIN, tally], room.kept[GROUPS, tally], room.joint[1]
    start, values, people, hidden = room.group[FROM, begin : begin + groups], room.entry[VALUE], room.entry[PEOPLE], room.number[1]
    last = room.kept[ENTRIES, tally] + room.kept[LENGTH, tally]
    gone[:] = 0
    for g in range(groups):
        if hidden[g]:
            for e in range(start[g], start[g + 1] if g + 1 < groups else last):
                gone[values[e]] += people[e]


@inner
def _union_holds(ground: Ground, room: Room, work: Work, desk: Desk, tally: int, gone: int) -> bool:
    """Whether the flagged groups keep every promise as one group."""
    if ground.option[SIZES_ALONE]:
        return gone >= ground.option[LEAST]
    _gone(room, tally)
    values, people, kinds = room.union[VALUE], room.union[PEOPLE], 0
    for v in range(len(room.joint[1])):
        if room.joint[1, v]:
            values[kinds], people[kinds] = v, room.joint[1, v]
            kinds += 1
    return _judge(ground.judged, work, desk, values[:kinds], people[:kinds], gone)


@inner
def _look(ground: Ground, room: Room, work: Work, desk: Desk, node: int) -> None:
    """Judge a node and price it; where more groups must join the suppressed ones, put it back for somebody else."""
    room.count[CHECKED] += 1
    needs_values = ground.option[METRIC] == KL or not ground.option[SIZES_ALONE]
    tally = _tally(ground, room, node, True) if needs_values else _tally(ground, room, node, False)
    bound = 0.0
    if ground.option[METRIC] == KL:
        bound = _least_kl(ground, room, tally)
        room.least[node] = max(room.least[node], bound - _at_least(ground, room, node))
        _expand(ground, room, node, bound)
        if bound > room.cost[-1] + TIE:
            return
    gone = _flag(ground, room, work, desk, tally, True, ground.option[BUDGET])
    if gone > ground.option[BUDGET]:
        return
    if gone == 0 or _union_holds(ground, room, work, desk, tally, gone):
        _propose(ground, room, node, _price(ground, room, tally, gone), gone)
    else:
        _push(room, bound if ground.option[METRIC] == KL else _price(ground, room, tally, gone), node, ASK)


@inner
def _meet(ground: Ground, room: Room, work: Work, desk: Desk, node: int, bound: float) -> None:
    """A node met for the first time: bound its cost, and put it and the nodes above it into the heap."""
    if not room.node[STATE, node]:
        _bisect(ground, room, work, desk, node, False)
    if room.node[STATE, node] == FAILS:
        _expand(ground, room, node, bound)
        return
    own = _at_least(ground, room, node)
    if ground.option[METRIC] == KL:  # what is above is met when the values of this one are known
        _push(room, max(bound, own + room.least[node]), node, LOOK)
        return
    bound = max(bound, own)
    _expand(ground, room, node, bound)
    if bound > room.cost[-1] + TIE:
        return
    tally = _tally(ground, room, node, False)
    gone = _flag(ground, room, work, desk, tally, False, ground.option[BUDGET])
    if gone <= ground.option[BUDGET]:
        _push(room, max(bound, _price(ground, room, tally, gone)), node, LOOK)


@outer
def search(ground: Ground, room: Room, work: Work, desk: Desk, most: int) -> int:
    """Nodes in the order of what they cost at the least, for about `most` visits of groups.

    DONE; or MORE remain; or the number of a node that somebody else must judge and propose.
    """
    room.count[WORKED] = 0
    while room.count[WAITING] and room.heap[0] <= room.cost[-1] + TIE:
        if room.count[WORKED] > most:
            return MORE
        bound = room.heap[0]
        node, what = divmod(_pop(room), 3)
        if what == ASK:
            return node
        if what == LOOK:
            _look(ground, room, work, desk, node)
        else:
            _meet(ground, room, work, desk, node, bound)
    return DONE


@inner
def _kl_of(ground: Ground, room: Room, node: int) -> float:
    """The KL-divergence of a node when nothing is suppressed, straight from the entries of the table."""
    _source(ground, room, 0, False)
    groups, values, finer = _roll(ground, room, 0, node), room.joint.shape[1], room.kept[GROUPS, 0]
    if groups * values > room.entry.shape[1]:
        return _least_kl(ground, room, _rolled(ground, room, node, True))
    cells, number, rows, total = np.zeros(groups * values, np.int64), room.number[0], float(ground.option[ROWS]), 0.0
    start, value, people = room.group[FROM, :finer], room.entry[VALUE], room.entry[PEOPLE]
    for i in range(finer):
        at = number[i] * values
        for e in range(start[i], start[i + 1] if i + 1 < finer else room.kept[LENGTH, 0]):
            cells[np.uint64(at + value[e])] += people[e]
    for n in cells:
        if n > 1:
            total += n * log(float(n))
    return ground.term[OWN] + log(rows) - total / rows + _mean_area(ground, node)


@outer
def costs(ground: Ground, room: Room, nodes: Ints) -> Floats:
    """What these nodes cost when nothing is suppressed, infinite where by KL another one surely costs less: (nodes,)."""
    result = np.empty(len(nodes))
    for i in range(len(nodes)):
        result[i] = _at_least(ground, room, nodes[i])
    if ground.option[METRIC] != KL:
        return result
    bounds, best = result + room.least[0], np.inf
    for i in range(len(nodes)):
        bounds[i] = max(bounds[i], _alone(ground, nodes[i]))
    result[:] = np.inf
    while True:
        i = np.argmin(bounds)
        if bounds[i] > best + TIE or bounds[i] == np.inf:
            return result
        result[i] = _kl_of(ground, room, nodes[i])
        best, bounds[i] = min(best, result[i]), np.inf


@outer
def propose(ground: Ground, room: Room, node: int, cost: float, gone: int) -> None:
    """Remember a node that somebody else judged and priced."""
    _propose(ground, room, node, cost, gone)
