"""Compiled tallies of lattice nodes: the groups of a node, rolled up from a finer one.

A thin tally has for each group its key, its rows, and the set of its values as bits; a fat one also has the entries of
each group. A key is the node of each column, in bits of its own. Tallies lie one behind the other in pools, and a node
is rolled up from the smallest finer tally at hand. The hash that finds equal keys carries the number of its use, so it
is never cleared. Loops over groups call nothing that takes a Ground or a Room: passing these on takes longer than such
a loop.
"""
# mypy: disable-error-code="untyped-decorator,no-any-return"
# numba's decorator has no types, and so what a kernel calls returns Any.
# ruff: noqa: PLR0917
# Kernels call each other by position.

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jali.core.arrays import Floats, Ints
from jali.kernels.jit import inner

LOSS, DISCERNIBILITY, KL, AVERAGE, HEIGHT = range(5)
"""The metrics."""

LEAST, DISTINCT, BUDGET, METRIC, ROWS, SIZES_ALONE, GUARDS, MISSING = range(8)
"""The places of `Ground.option`: the least rows and different values of a group that can hold, the rows that may be
suppressed, the metric, all rows, whether sizes say it all, the bit above each packed level, and whether the values of
some rows are not known."""

OWN, AREA, SLACK = range(3)
"""The places of `Ground.term`: Σ F log F of the table's own cells, the logarithm of the domain's points, and by how
much costs may differ that are priced again, exactly as everywhere else."""

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

KEPT, USED, HELD, STAMP, CHECKED, WAITING, FOUND, AT, WORKED, TAKEN, LEFT_OVER = range(11)
"""The places of `Room.counter`: tallies, groups and entries at hand, uses of the hash, nodes judged, questions in the
heap, candidates, where the search stands, groups visited since it last returned; and of the nodes between, the groups
that they were made from and those that they have."""

STATE, SEEN_NODE, PLACE = range(3)
"""The rows of `Room.node`: whether a node holds, whether it was in the heap, and its tally."""


class Ground(NamedTuple):
    """The table, its hierarchies and the requirement: what a search never changes."""

    judged: Ints  # (judged columns, joint values)
    maps: NDArray[np.int32]  # level l of code v of column c is at offset[c, l] + v
    offset: Ints  # (columns, levels)
    width: Ints  # (columns, levels): nodes
    spot: Ints  # (columns, levels): where `covered` begins
    covered: Floats  # (2, nodes of all levels): values of the domain under each, and the logarithm of that
    mean: Floats  # (3, columns, levels): the mean share of values covered; what it adds to the logarithm of the loss,
    #               or the mean logarithm of their number; the KL-divergence of the column and the values alone
    weight: Floats  # (columns,): what a step of generalization counts, or the share of the loss
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
    counter: Ints


# -- tallies ------------------------------------------------------------------------------------------------------


@inner
def level_of(lattice: Ints, node: int, c: int) -> int:
    return node // lattice[STEP, c] % (lattice[TOP, c] + 1)


@inner
def _packed(ground: Ground, node: int) -> int:
    packed = 0
    for c in range(ground.lattice.shape[1]):
        packed += level_of(ground.lattice, node, c) << ground.lattice[BITS, c]
    return packed


@inner
def _nearest(ground: Ground, room: Room, node: int, fat: bool) -> int:
    """The smallest tally at hand that is nowhere coarser: no guard bit is borrowed."""
    guards = ground.option[GUARDS]
    levels = _packed(ground, node) | guards
    best = 0
    for i in range(1, room.counter[KEPT]):
        smaller = room.kept[GROUPS, i] < room.kept[GROUPS, best] and (not fat or room.kept[ENTRIES, i] >= 0)
        if smaller and (levels - room.kept[PACKED, i]) & guards == guards:
            best = i
    return best


@inner
def _make_room(room: Room, groups: int, entries: int) -> None:
    """Forget the older half of the tallies, again and again until there is room; the finest stays."""
    while (
        room.counter[USED] + groups > room.group.shape[1]
        or room.counter[HELD] + entries > room.entry.shape[1]
        or (room.counter[KEPT] == room.kept.shape[1])
    ):
        first = 1 + room.counter[KEPT] // 2
        used, held, kept = room.kept[GROUPS, 0], room.kept[LENGTH, 0], 1
        for i in range(1, room.counter[KEPT]):
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
        room.counter[USED], room.counter[HELD], room.counter[KEPT] = used, held, kept


@inner
def _steps(ground: Ground, room: Room, finer: int, node: int) -> tuple[int, int]:
    """Lay out how keys of a finer node change; how many columns do, and the bits that stay."""
    stay, changed, at = 0, 0, 0
    for c in range(ground.lattice.shape[1]):
        low, high = level_of(ground.lattice, finer, c), level_of(ground.lattice, node, c)
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
def roll_up(ground: Ground, room: Room, source: int, node: int) -> int:
    """The thin tally of a node, rolled up from a finer one; `room.number` says where each finer group went."""
    changed, stay = _steps(ground, room, room.kept[NODE, source], node)
    start, finer, begin = room.kept[BEGIN, source], room.kept[GROUPS, source], room.counter[USED]
    room.counter[STAMP] += 1
    now, most, groups, few = room.counter[STAMP] << 32, 63, 0, 1
    for c in range(ground.lattice.shape[1]):  # no more groups than this: few slots stay near the processor
        few = min(few * ground.width[c, level_of(ground.lattice, node, c)], finer)
    while most < 2 * few:
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
            keys[groups], sizes[groups] = key, old_sizes[i]
            number[i] = groups
            groups += 1
        else:
            g = np.uint64(slot[at, 1] & 0xFFFFFFFF)
            number[i] = g
            sizes[g] += old_sizes[i]
    if ground.option[DISTINCT] > 1:
        sets[:groups] = 0
        for i in range(finer):
            sets[np.uint64(number[i])] |= old_sets[i]
    room.counter[WORKED] += finer
    return groups


@inner
def keep(ground: Ground, room: Room, node: int, groups: int, begin: int, entries: int) -> int:
    """Have the tally that was just rolled at hand; a thin one of the same node is not looked at any more."""
    old, place = room.node[PLACE, node], room.counter[KEPT]
    if old >= 0:
        room.kept[GROUPS, old] = 1 << 62
    room.kept[NODE, place], room.kept[GROUPS, place], room.kept[BEGIN, place] = node, groups, room.counter[USED]
    room.kept[ENTRIES, place], room.kept[LENGTH, place] = begin, entries
    room.kept[PACKED, place] = _packed(ground, node)
    room.node[PLACE, node] = place
    room.counter[KEPT] += 1
    room.counter[USED] += groups
    room.counter[HELD] += entries
    return place


@inner
def source_of(ground: Ground, room: Room, node: int, fat: bool) -> int:
    """The tally from which a node is rolled up; there is room for as many groups and entries as it has."""
    source = _nearest(ground, room, node, fat)
    groups, entries = room.kept[GROUPS, source], room.kept[LENGTH, source] if fat else 0
    if (
        room.counter[USED] + groups > room.group.shape[1]
        or room.counter[HELD] + entries > room.entry.shape[1]
        or room.counter[KEPT] == room.kept.shape[1]
    ):
        _make_room(room, groups, entries)
        source = _nearest(ground, room, node, fat)
    return source


@inner
def rolled(ground: Ground, room: Room, node: int, fat: bool) -> int:
    """Roll a node up, and have its tally at hand."""
    source, held = source_of(ground, room, node, fat), room.counter[HELD]
    groups = roll_up(ground, room, source, node)
    if not fat:
        return keep(ground, room, node, groups, -1, 0)
    return keep(ground, room, node, groups, held, _gather(room, source, groups) - held)


@inner
def tally_of(ground: Ground, room: Room, node: int, fat: bool) -> int:
    """The tally of a node; a thin one may be fat.

    Where only large ones are finer, nodes between are made first, column by column, since many nodes share them; but
    not in tables where these hardly have fewer groups.
    """
    place = room.node[PLACE, node]
    if place >= 0 and (not fat or room.kept[ENTRIES, place] >= 0):
        return place
    between, source = 0, _nearest(ground, room, node, fat)
    for i in range(ground.lattice.shape[1] - 1):
        if room.kept[GROUPS, source] <= MANY or 4 * room.counter[LEFT_OVER] > 3 * room.counter[TAKEN]:
            break
        c = ground.lattice[RANK, i]
        level = level_of(ground.lattice, node, c)
        between += level * ground.lattice[STEP, c]
        if not level or between == node:
            continue
        place = room.node[PLACE, between]
        if place < 0 or (fat and room.kept[ENTRIES, place] < 0):
            room.counter[TAKEN] += room.kept[GROUPS, source]
            place = rolled(ground, room, between, fat)
            room.counter[LEFT_OVER] += room.kept[GROUPS, place]
        if room.kept[GROUPS, place] < room.kept[GROUPS, source]:
            source = place
    return rolled(ground, room, node, fat)


@inner
def _gather(room: Room, source: int, groups: int) -> int:
    """The entries of the groups that were just rolled up, one group after the other; where they end."""
    start, finer, begin = room.kept[BEGIN, source], room.kept[GROUPS, source], room.counter[USED]
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
    end, at, people, seen = room.counter[HELD], 0, room.joint[0], room.joint[2]
    for g in range(groups):
        kinds = 0
        for j in range(at, first[g]):
            i = order[j]
            last = (
                room.group[FROM, start + i + 1]
                if i + 1 < finer
                else (room.kept[ENTRIES, source] + room.kept[LENGTH, source])
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
    room.counter[WORKED] += finer
    return end


@inner
def cells_of(room: Room, source: int, groups: int) -> Ints:
    """People of each group and value, where `room.number` says to which of the groups those of the source belong."""
    values, finer, begin = room.joint.shape[1], room.kept[GROUPS, source], room.kept[BEGIN, source]
    cells, number, last = np.zeros(groups * values, np.int64), room.number[0], room.kept[ENTRIES, source]
    start, value, people = room.group[FROM, begin : begin + finer], room.entry[VALUE], room.entry[PEOPLE]
    last += room.kept[LENGTH, source]
    for i in range(finer):
        at = number[i] * values
        for e in range(start[i], start[i + 1] if i + 1 < finer else last):
            cells[np.uint64(at + value[e])] += people[e]
    return cells


# -- what sizes, sets and keys say ---------------------------------------------------------------------------------


@inner
def too_few(size: int, values: int, least: int, distinct: int) -> bool:
    """Whether the group has too few rows, or too few different values, for any promise to hold; no value is fine."""
    return size < least or (distinct > 1 and values != 0 and _bits(values) < distinct)


@inner
def _bits(word: int) -> int:
    """How many bits are set: in pairs, in fours, in bytes, and these added up by the product's highest byte."""
    word -= word >> 1 & 0x5555555555555555
    word = (word & 0x3333333333333333) + (word >> 2 & 0x3333333333333333)
    word = word + (word >> 4) & 0x0F0F0F0F0F0F0F0F
    return (word * 0x0101010101010101 >> 56) & 0x7F


@inner
def rows_lost(ground: Ground, room: Room, tally: int) -> int:
    """The rows in groups for which no promise can hold: only more further down.

    Where values are missing, a part of such a group may have none and hold. Of the others there is one row for each of
    its values at the least.
    """
    begin, end, lost = room.kept[BEGIN, tally], room.kept[BEGIN, tally] + room.kept[GROUPS, tally], 0
    sizes, sets = room.group[SIZE, begin:end], room.group[SET, begin:end]
    least, distinct, missing = ground.option[LEAST], ground.option[DISTINCT], ground.option[MISSING]
    for g in range(end - begin):
        if too_few(sizes[g], sets[g], least, distinct):
            lost += _bits(sets[g]) if missing and sizes[g] >= least else sizes[g]
    return lost


@inner
def count_gone(room: Room, tally: int) -> None:
    """Count the people of the flagged groups by value, in `room.joint[1]`."""
    begin, groups, gone = room.kept[BEGIN, tally], room.kept[GROUPS, tally], room.joint[1]
    start, hidden = room.group[FROM, begin : begin + groups], room.number[1]
    values, people = room.entry[VALUE], room.entry[PEOPLE]
    last = room.kept[ENTRIES, tally] + room.kept[LENGTH, tally]
    gone[:] = 0
    for g in range(groups):
        if hidden[g]:
            for e in range(start[g], start[g + 1] if g + 1 < groups else last):
                gone[values[e]] += people[e]
