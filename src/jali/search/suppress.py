"""Which groups join the suppressed ones until they keep every promise together."""

from __future__ import annotations

from bisect import bisect_left

import numpy as np

from jali.principles.base import Principle, hold
from jali.principles.counts import Bools, Counts, Ints

_CELLS = 1 << 20  # unions judged at once, times values


def breaking(principles: tuple[Principle, ...], counts: Counts) -> Bools:
    """Which groups are suppressed first: those that break a promise, none where all is well: (groups,).

    Where a promise is about all groups at once, one bad group lets others break it too; so these are the groups that
    would break it by themselves, and if there are none the one that is worst off.
    """
    if not any(p.scope == "table" for p in principles):
        return ~hold(principles, counts)
    failing = np.zeros(counts.groups, dtype=bool)
    for principle in principles:
        failing |= ~principle.alone(counts)
    for principle in principles:
        if not failing.any() and not principle.holds(counts).all():
            level = principle.level(counts)
            failing[np.argmax(level if principle.better == "lower" else -level)] = True
    return failing


def first_union_that_holds(
    principles: tuple[Principle, ...], counts: Counts, hidden: Ints, joining: Ints
) -> int | None:
    """The least j for which the hidden groups and the first j joining ones hold as one group; None if there is none.

    A principle about all groups at once must hold for the whole table that this leaves.
    """
    if any(p.scope == "table" for p in principles):
        return _first_table_that_holds(principles, counts, hidden, joining)
    done, block = 0, 1
    while done <= len(joining):
        block = min(block, len(joining) + 1 - done)
        unions = _unions(counts, hidden, joining, range(done, done + block))
        holding = np.flatnonzero(hold(principles, unions))
        if len(holding):
            return done + int(holding[0])
        done += block
        block = max(1, min(block * 4, _CELLS // max(len(counts.joint), 1)))
    return None


def _first_table_that_holds(
    principles: tuple[Principle, ...], counts: Counts, hidden: Ints, joining: Ints
) -> int | None:
    """The same where all groups are judged together: more joining never breaks a monotone principle, so bisect."""

    def holds(j: int) -> bool:
        stays = np.ones(counts.groups, dtype=bool)
        stays[hidden] = stays[joining[:j]] = False
        into = np.where(stays, np.cumsum(stays), 0)
        return bool(hold(principles, counts.merged(into)).all())

    lengths = range(len(joining) + 1)
    if all(p.monotone for p in principles):
        found = bisect_left(lengths, True, key=holds)
        return found if found < len(lengths) else None
    return next((j for j in lengths if holds(j)), None)


def _unions(counts: Counts, hidden: Ints, joining: Ints, lengths: range) -> Counts:
    """One group for each length: the hidden groups with so many of the joining ones."""
    first = np.full(counts.groups, len(joining) + 1, dtype=np.int64)  # the least length that takes a group in
    first[hidden] = 0
    first[joining] = np.arange(1, len(joining) + 1)
    enters = np.maximum(first[counts.group], lengths.start)
    inside = enters < lengths.stop
    entry = np.flatnonzero(inside)
    repeat = lengths.stop - enters[entry]
    index = np.repeat(entry, repeat)
    offset = np.arange(len(index)) - np.repeat(np.cumsum(repeat) - repeat, repeat)
    group = np.repeat(enters[entry] - lengths.start, repeat) + offset
    person = None if counts.person is None else counts.person[index]
    return Counts(
        len(lengths), group, counts.value[index], counts.n[index], counts.sensitive, counts.joint, person,
        counts.whole or counts,
    )  # fmt: skip
