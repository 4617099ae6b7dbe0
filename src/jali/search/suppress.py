"""Which groups join the suppressed ones until they keep every promise together."""

from __future__ import annotations

import numpy as np

from jali.principles.base import Principle, hold
from jali.principles.counts import Counts, Ints

_CELLS = 1 << 20  # unions judged at once, times values


def first_union_that_holds(
    principles: tuple[Principle, ...], counts: Counts, hidden: Ints, joining: Ints
) -> int | None:
    """The least j for which the hidden groups and the first j joining ones hold as one group; None if there is none."""
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
