"""Which single tuples leave their groups, so that what is left and what was taken out keep every promise.

Within a group the tuples of the most frequent value go first. Of all ways to take out as many tuples, that leaves the
most even counts (every other result majorizes it), so for promises that only size and evenness matter to it needs the
fewest tuples: decision 31. For other promises each tuple is also chosen by the level that it leaves, and the way with
fewer tuples is taken.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jali.core.arrays import Bools, Ints, counted, owners
from jali.principles.base import Principle
from jali.principles.counts import Counts
from jali.search.common import first_union_that_holds
from jali.search.gate import judged

GIVERS = 256
"""How many groups, the largest, are asked for single tuples where those taken out do not keep a promise together."""
_CELLS = 1 << 20  # groups judged at once, times values


def evenness_decides(principles: Sequence[Principle], columns: int) -> bool:
    """Whether the promises look at nothing but the size of a group and how even the counts of one column are."""
    return columns <= 1 and all(principle.evenness_alone() for principle in principles)


def tuples_taken(principles: tuple[Principle, ...], counts: Counts, hidden: Ints) -> Ints:
    """How many tuples of each group and value are suppressed: (entries,), those of the `hidden` groups among them.

    What is left of each group keeps every promise, or nothing is left; so do all that are suppressed, as one group.
    The whole table keeps them, and none is about all groups at once; entries are sorted by group.
    """
    left = counts.n.copy()
    left[np.isin(counts.group, hidden)] = 0
    broken = ~judged(principles, counts)
    broken[hidden] = False
    start = np.searchsorted(counts.group, np.arange(counts.groups + 1))
    for group in np.flatnonzero(broken).tolist():
        here = slice(start[group], start[group + 1])
        left[here] = what_stays(principles, counts, counts.value[here], left[here])
    if bool((left == counts.n).all()) or _together(principles, counts, left):
        return counts.n - left
    filled = _given(principles, counts, left)
    joined = _joined(principles, counts, left)
    return counts.n - (joined if filled is None or filled.sum() < joined.sum() else filled)


def what_stays(principles: tuple[Principle, ...], counts: Counts, value: Ints, n: Ints) -> Ints:
    """What is left of a group that breaks a promise, with as few tuples taken out as is found: (values,)."""
    left = _evened(principles, counts, value, n)
    if evenness_decides(principles, len(counts.sensitive)):
        return left
    other = _steered(principles, counts, value, n, int(n.sum() - left.sum()) - 1)
    return left if other is None else other


def _evened(principles: tuple[Principle, ...], counts: Counts, value: Ints, n: Ints) -> Ints:
    """The counts once enough tuples of the most frequent values are gone, one after the other."""
    height = np.concatenate([np.arange(many) for many in n])
    owner = owners(n)
    order = owner[np.lexsort((owner, -height))]  # the value of each tuple, in the order in which they go
    left: Ints = n.copy()
    done, block = 0, 1
    while done < len(order):
        here = order[done : done + block]
        gone = np.cumsum(here[:, None] == np.arange(len(n)), axis=0)
        holding = np.flatnonzero(judged(principles, _as_groups(counts, value, left - gone)))
        if len(holding):
            left = left - gone[holding[0]]
            return left
        left, done = left - gone[-1], done + len(here)
        block = max(1, min(block * 4, _CELLS // max(len(n), 1)))
    return left


def _steered(principles: tuple[Principle, ...], counts: Counts, value: Ints, n: Ints, most: int) -> Ints | None:
    """The same where each tuple is the one that brings the group closest to its promises; None for more than `most`."""
    left: Ints = n.copy()
    for _ in range(most):
        at = np.flatnonzero(left)
        tried = np.repeat(left[None], len(at), axis=0)
        tried[np.arange(len(at)), at] -= 1
        best, holds = _best(principles, _as_groups(counts, value, tried))
        left = tried[best]
        if holds:
            return left
    return None


def _best(principles: tuple[Principle, ...], counts: Counts) -> tuple[int, bool]:
    """The group that keeps most promises, and among equals comes closest to the others; whether it keeps all."""
    kept, level = np.zeros(counts.groups), np.zeros(counts.groups)
    for principle in principles:
        holds = judged((principle,), counts)
        reached = np.nan_to_num(principle.level(counts), nan=0.0, posinf=1e12, neginf=-1e12)
        kept += holds
        level += np.where(holds, 0.0, reached if principle.better == "higher" else -reached)
    best = int(np.lexsort((-level, -kept))[0])
    return best, bool(kept[best] == len(principles))


def _as_groups(counts: Counts, value: Ints, n: Ints) -> Counts:
    """Rows of counts of the same values, each a group of its own: n is (groups, values)."""
    group, at = np.nonzero(n)
    return Counts(
        len(n), group, value[at], n[group, at], counts.sensitive, counts.joint, None, counts.whole or counts
    )  # fmt: skip


def _together(principles: tuple[Principle, ...], counts: Counts, left: Ints) -> bool:
    """Whether all that is taken out keeps every promise, as one group."""
    value, out = _out(counts, left)
    return bool(judged(principles, _as_groups(counts, value, out[None])).all())


def _out(counts: Counts, left: Ints) -> tuple[Ints, Ints]:
    """The joint values, and how many tuples of each are taken out."""
    out = np.zeros(len(counts.joint), dtype=np.int64)
    np.add.at(out, counts.value, counts.n - left)
    return np.arange(len(out)), out


# -- where those taken out do not keep a promise together ---------------------------------------------------------


def _given(principles: tuple[Principle, ...], counts: Counts, left: Ints) -> Ints | None:
    """What is left when large groups give single tuples that they can spare; None where they have none that helps."""
    size = counted(counts.group, left, counts.groups)
    start = np.searchsorted(counts.group, np.arange(counts.groups + 1))
    left, spare = left.copy(), np.zeros(len(left), dtype=bool)
    for group in np.argsort(-size, kind="stable")[:GIVERS].tolist():
        here = slice(start[group], start[group + 1])
        spare[here] = _spared(principles, counts, counts.value[here], left[here])
    value, out = _out(counts, left)
    while spare.any():
        offered = np.unique(counts.value[spare])
        tried = np.repeat(out[None], len(offered), axis=0)
        tried[np.arange(len(offered)), offered] += 1
        best, holds = _best(principles, _as_groups(counts, value, tried))
        out = tried[best]
        entry = np.flatnonzero(spare & (counts.value == offered[best]))
        chosen = int(entry[np.argmax(size[counts.group[entry]])])
        group = int(counts.group[chosen])
        left[chosen] -= 1
        size[group] -= 1
        if holds:
            return left
        here = slice(start[group], start[group + 1])
        spare[here] = _spared(principles, counts, counts.value[here], left[here])
    return None


def _spared(principles: tuple[Principle, ...], counts: Counts, value: Ints, n: Ints) -> Bools:
    """Of which values of a group one tuple can go while the group keeps its promises: (values,)."""
    tried = np.maximum(n - np.eye(len(n), dtype=np.int64), 0)
    return (n > 0) & judged(principles, _as_groups(counts, value, tried))


def _joined(principles: tuple[Principle, ...], counts: Counts, left: Ints) -> Ints:
    """What is left when whole groups join those taken out, the smallest first."""
    value, out = _out(counts, left)
    whole = counts.whole or counts
    last = counts.groups
    now = Counts(
        last + 1, np.append(counts.group, np.full(len(value), last)), np.append(counts.value, value),
        np.append(left, out), counts.sensitive, counts.joint, None, whole,
    )  # fmt: skip
    joining = np.argsort(now.size[:last], kind="stable")
    joining = joining[now.size[joining] > 0]
    enough = first_union_that_holds(principles, now, np.array([last]), joining)
    assert enough is not None, "all groups together were found to hold"
    return np.where(np.isin(counts.group, joining[:enough]), 0, left)
