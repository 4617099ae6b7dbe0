"""The compiled lattice search: bounds from thin tallies, values only for the nodes that the bounds let through."""
# mypy: disable-error-code="untyped-decorator,no-any-return"
# numba's decorator has no types, and so what a kernel calls returns Any.
# ruff: noqa: PLR0917
# Kernels call each other by position.

from __future__ import annotations

from jali.core.arrays import Floats, Ints
from jali.kernels.jit import inner, outer
from jali.kernels.judge import Desk, Work, judge_entries
from jali.kernels.prices import FEW_CELLS, at_least, costs, kl_alone, least_kl, price

# isort: off
from jali.kernels.tallies import (
    AT, BEGIN, BUDGET, CHECKED, DISTINCT, ENTRIES, FOUND, FROM, GROUPS, HEIGHT, KL, LEAST, LEFT_OVER, LENGTH, LOSS,
    METRIC, PEOPLE, SEEN_NODE, SET, SIZE, SIZES_ALONE, SLACK, STATE, STEP, TAKEN, TOP, USED, VALUE, WAITING, WORKED,
    Ground, Room, cells_of, count_gone, level_of, roll_up, rows_lost, source_of, tally_of, too_few,
)  # fmt: skip
# isort: on

HOLDS, FAILS = 1, 2
NEW, LOOK, ASK = range(3)
DONE, MORE = -1, -2


# -- judging ------------------------------------------------------------------------------------------------------


@inner
def _flag(ground: Ground, room: Room, work: Work, desk: Desk, tally: int, exactly: bool, most: int) -> int:
    """Flag the groups that break a promise, or surely do; how many rows they have, counted until it is over `most`."""
    begin, end, gone = room.kept[BEGIN, tally], room.kept[BEGIN, tally] + room.kept[GROUPS, tally], 0
    sizes, sets, start = room.group[SIZE, begin:end], room.group[SET, begin:end], room.group[FROM, begin:end]
    least, distinct, hidden, judged = ground.option[LEAST], ground.option[DISTINCT], room.number[1], ground.judged
    values, people, last = room.entry[VALUE], room.entry[PEOPLE], room.kept[ENTRIES, tally] + room.kept[LENGTH, tally]
    exactly = exactly and not ground.option[SIZES_ALONE]
    for g in range(end - begin):
        fails = too_few(sizes[g], sets[g], least, distinct)
        if exactly and not fails:
            a, b = start[g], start[g + 1] if g + 1 < end - begin else last
            fails = not judge_entries(judged, work, desk, values[a:b], people[a:b], sizes[g])
        hidden[g] = fails
        if fails:
            gone += sizes[g]
            if gone > most:
                break
    return gone


@inner
def _holds_everywhere(ground: Ground, room: Room, work: Work, desk: Desk, node: int) -> bool:
    """Whether every group of a node keeps every promise."""
    room.counter[CHECKED] += 1
    if rows_lost(ground, room, tally_of(ground, room, node, False)) > 0:
        return False
    if ground.option[SIZES_ALONE]:
        return True
    if 4 * room.counter[LEFT_OVER] > 3 * room.counter[TAKEN]:  # values of finer nodes that are hardly fewer are no help
        source = source_of(ground, room, node, True)
        groups = roll_up(ground, room, source, node)
        if groups * room.joint.shape[1] <= FEW_CELLS:
            return _hold(ground, room, work, desk, cells_of(room, source, groups), groups)
    return _flag(ground, room, work, desk, tally_of(ground, room, node, True), True, 0) == 0


@inner
def _hold(ground: Ground, room: Room, work: Work, desk: Desk, cells: Ints, groups: int) -> bool:
    """Whether the groups that were just rolled up, with these people of each value, keep every promise."""
    values, people, every, begin = room.union[VALUE], room.union[PEOPLE], room.joint.shape[1], room.counter[USED]
    for g in range(groups):
        kinds = 0
        for v in range(every):
            if cells[g * every + v]:
                values[kinds], people[kinds] = v, cells[g * every + v]
                kinds += 1
        if not judge_entries(ground.judged, work, desk, values[:kinds], people[:kinds], room.group[SIZE, begin + g]):
            return False
    return True


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
            level, step = level_of(ground.lattice, now, c), ground.lattice[STEP, c]
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
            if level_of(ground.lattice, chain[many - 1], c) < ground.lattice[TOP, c]:
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
            kept = rows_lost(ground, room, tally_of(ground, room, asked, False)) <= ground.option[BUDGET]
        if kept:
            _decide(ground, room, asked, HOLDS)
            high = middle
        else:
            _decide(ground, room, asked, FAILS)
            low = middle + 1


@outer
def decide_all(ground: Ground, room: Room, work: Work, desk: Desk, nodes: Ints, most: int, cost: Floats) -> int:
    """Decide nodes in this order, lowest first, for about `most` visits of groups: DONE, or MORE remain.

    Where `cost` has room for the nodes they are priced instead: the machine code of a second kernel would take longer
    to load than most searches take.
    """
    if len(cost):
        costs(ground, room, nodes, cost)
        return DONE
    room.counter[WORKED] = 0
    while room.counter[AT] < len(nodes):
        node = nodes[room.counter[AT]]
        if not room.node[STATE, node]:
            if room.counter[WORKED] > most:
                return MORE
            _bisect(ground, room, work, desk, node, True)
        room.counter[AT] += 1
    return DONE


# -- the best node under a budget of suppressed rows --------------------------------------------------------------


@inner
def _push(room: Room, bound: float, node: int, what: int) -> None:
    at = room.counter[WAITING]
    room.counter[WAITING] += 1
    while at and bound < room.heap[(at - 1) // 2]:
        above = (at - 1) // 2
        room.heap[at], room.heap_node[at] = room.heap[above], room.heap_node[above]
        at = above
    room.heap[at], room.heap_node[at] = bound, 3 * node + what


@inner
def _pop(room: Room) -> int:
    """Take the question with the least bound out of the heap."""
    first, many = room.heap_node[0], room.counter[WAITING] - 1
    room.counter[WAITING] = many
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
        if level_of(ground.lattice, node, c) < ground.lattice[TOP, c]:
            above = node + ground.lattice[STEP, c]
            room.least[above] = max(room.least[above], room.least[node])
            if not room.node[SEEN_NODE, above]:
                room.node[SEEN_NODE, above] = 1
                metric, own = ground.option[METRIC], 0.0
                if metric in (HEIGHT, LOSS):
                    own = at_least(ground, room, above)
                elif metric == KL:
                    own = kl_alone(ground, above)
                _push(room, max(own, bound), above, NEW)


@inner
def propose(ground: Ground, room: Room, node: int, cost: float, gone: int) -> None:
    """Remember a node that costs no more than the best; where costs are exact, ties go to fewer suppressed rows."""
    best, found = room.cost[-1], room.counter[FOUND]
    if cost > best + ground.term[SLACK]:
        return
    exactly = ground.option[METRIC] != LOSS and ground.option[METRIC] != KL
    if found and exactly:
        tied = cost >= best - ground.term[SLACK]  # others price a node to twelve digits
        if tied and (gone, node) >= (room.found[1, 0], room.found[0, 0]):
            return
        found = 0
    room.found[0, found], room.found[1, found], room.cost[found] = node, gone, cost
    room.cost[-1] = min(best, cost)
    room.counter[FOUND] = found + 1


@inner
def _union_holds(ground: Ground, room: Room, work: Work, desk: Desk, tally: int, gone: int) -> bool:
    """Whether the flagged groups keep every promise as one group."""
    if ground.option[SIZES_ALONE]:
        return gone >= ground.option[LEAST]
    count_gone(room, tally)
    values, people, kinds = room.union[VALUE], room.union[PEOPLE], 0
    for v in range(len(room.joint[1])):
        if room.joint[1, v]:
            values[kinds], people[kinds] = v, room.joint[1, v]
            kinds += 1
    return judge_entries(ground.judged, work, desk, values[:kinds], people[:kinds], gone)


@inner
def _look(ground: Ground, room: Room, work: Work, desk: Desk, node: int) -> None:
    """Judge a node and price it; where more groups must join the suppressed ones, put it back for somebody else."""
    room.counter[CHECKED] += 1
    needs_values = ground.option[METRIC] == KL or not ground.option[SIZES_ALONE]
    tally = tally_of(ground, room, node, True) if needs_values else tally_of(ground, room, node, False)
    bound = 0.0
    if ground.option[METRIC] == KL:
        bound = least_kl(ground, room, tally)
        room.least[node] = max(room.least[node], bound - at_least(ground, room, node))
        _expand(ground, room, node, bound)
        if bound > room.cost[-1] + ground.term[SLACK]:
            return
    gone = _flag(ground, room, work, desk, tally, True, ground.option[BUDGET])
    if gone > ground.option[BUDGET]:
        return
    if gone == 0 or _union_holds(ground, room, work, desk, tally, gone):
        propose(ground, room, node, price(ground, room, tally, gone), gone)
    else:
        _push(room, bound if ground.option[METRIC] == KL else price(ground, room, tally, gone), node, ASK)


@inner
def _meet(ground: Ground, room: Room, work: Work, desk: Desk, node: int, bound: float) -> None:
    """A node met for the first time: bound its cost, and put it and the nodes above it into the heap."""
    if not room.node[STATE, node]:
        _bisect(ground, room, work, desk, node, False)
    if room.node[STATE, node] == FAILS:
        _expand(ground, room, node, bound)
        return
    own = at_least(ground, room, node)
    if ground.option[METRIC] == KL:  # what is above is met when the values of this one are known
        _push(room, max(bound, own + room.least[node]), node, LOOK)
        return
    bound = max(bound, own)
    _expand(ground, room, node, bound)
    if bound > room.cost[-1] + ground.term[SLACK]:
        return
    tally = tally_of(ground, room, node, False)
    gone = _flag(ground, room, work, desk, tally, False, ground.option[BUDGET])
    if gone <= ground.option[BUDGET]:
        _push(room, max(bound, price(ground, room, tally, gone)), node, LOOK)


@outer
def search(ground: Ground, room: Room, work: Work, desk: Desk, most: int) -> int:
    """Nodes in the order of what they cost at the least, for about `most` visits of groups.

    DONE; or MORE remain; or the number of a node that somebody else must judge and propose.
    """
    room.counter[WORKED] = 0
    while room.counter[WAITING] and room.heap[0] <= room.cost[-1] + ground.term[SLACK]:
        if room.counter[WORKED] > most:
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
