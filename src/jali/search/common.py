"""What searches share: groups, whether a requirement can be met at all, and which groups or tuples are suppressed."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log, prod
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from jali.core.arrays import Bools, Ints, counted, owners, runs
from jali.encoding.frequencies import Frequencies
from jali.encoding.table import Table
from jali.errors import InfeasibleError, InputError
from jali.principles.base import Principle
from jali.principles.counts import Counts
from jali.search.gate import judged, judged_alone


@dataclass(frozen=True, eq=False)
class Partition:
    """Groups of a table's combinations; suppressed combinations are one more group, the last."""

    group: Ints  # (combinations,)
    groups: int
    levels: Mapping[str, int]  # the level of each quasi-identifier
    suppressed: bool = False  # whether the last group holds suppressed combinations
    checked: int = 0  # how many nodes the search judged

    def counts(self, table: Table) -> Counts:
        """People by group and sensitive value."""
        return table.frequencies.counts(self.group, self.groups)

    @property
    def hidden(self) -> NDArray[np.bool_]:
        """Which combinations are suppressed: (combinations,)."""
        last = self.group == self.groups - 1
        return last if self.suppressed else np.zeros_like(last)


def levels_of(table: Table, levels: tuple[int, ...]) -> Mapping[str, int]:
    """Levels by column name."""
    return MappingProxyType({c.name: level for c, level in zip(table.quasi, levels, strict=True)})


def require_feasible(principles: Iterable[Principle], whole: Counts, of: Frequencies | None = None) -> None:
    """Raise InputError when a principle makes no sense for the table, InfeasibleError when no grouping can keep it.

    That the whole table fails as one group is a proof of it only where merging groups never breaks the principle; `of`
    are the frequencies of a table in which a person can have several rows, which tell.
    """
    required = tuple(principles)
    for principle in required:
        principle.check(whole)
    failing = [p for p in required if not bool(judged((p,), whole).all())]
    proofs = [p for p in failing if of is None or merging_never_breaks(p, of)]
    if proofs:
        raise InfeasibleError("; ".join(p.shortfall(whole) for p in proofs))


def merging_never_breaks(principle: Principle, frequencies: Frequencies) -> bool:
    """Whether groups of this table that keep the principle always keep it as one group.

    Where somebody's rows are in several groups, people do not add up; where somebody has several values, the worst
    choice among them is not the sum of the groups' worst choices. Decision 21 has the proofs and the counterexamples.
    """
    if not principle.monotone or frequencies.person is None:
        return principle.monotone
    spread, several = frequencies.spread_people, frequencies.several_values
    if spread and several:
        return principle.judges_size_alone
    one_group, one_value = not spread, not several
    return (one_group or principle.monotone_for_spread_people) and (one_value or principle.monotone_for_several_values)


_CELLS = 1 << 20  # groups or unions judged at once, times values


def breaking(principles: tuple[Principle, ...], counts: Counts) -> Bools:
    """Which groups are suppressed first: those that break a promise, none where all is well: (groups,).

    Where a promise is about all groups at once, one bad group lets others break it too; so these are the groups that
    would break it by themselves, and if there are none the one that is worst off.
    """
    if not any(p.scope == "table" for p in principles):
        return ~judged(principles, counts)
    failing = np.zeros(counts.groups, dtype=bool)
    for principle in principles:
        failing |= ~judged_alone((principle,), counts)
    for principle in principles:
        if not failing.any() and not judged((principle,), counts).all():
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
        holding = np.flatnonzero(judged(principles, unions))
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
        return bool(judged(principles, counts.merged(into)).all())

    lengths = range(len(joining) + 1)
    if all(p.monotone for p in principles):
        found = bisect_left(lengths, True, key=holds)
        return found if found < len(lengths) else None
    return next((j for j in lengths if holds(j)), None)


def _unions(counts: Counts, hidden: Ints, joining: Ints, lengths: range) -> Counts:
    """One group for each length: the hidden groups, and that number of the joining ones."""
    first = np.full(counts.groups, len(joining) + 1, dtype=np.int64)  # the least length that takes a group in
    first[hidden] = 0
    first[joining] = np.arange(1, len(joining) + 1)
    enters = np.maximum(first[counts.group], lengths.start)
    inside = enters < lengths.stop
    entry = np.flatnonzero(inside)
    repeat = lengths.stop - enters[entry]
    index = np.repeat(entry, repeat)
    group = runs(enters[entry] - lengths.start, repeat)
    person = None if counts.person is None else counts.person[index]
    return Counts(
        len(lengths), group, counts.value[index], counts.n[index], counts.sensitive, counts.joint, person,
        counts.whole or counts,
    )  # fmt: skip


# -- single tuples: what is left and what was taken out keep every promise -------------------------------------------
#
# Within a group the tuples of the most frequent value go first. Of all ways to take out as many tuples, that leaves the
# most even counts (every other result majorizes it), so for promises that only size and evenness matter to it needs the
# fewest tuples: decision 31. For other promises each tuple is also chosen by the level that it leaves, and the way with
# fewer tuples is taken.

GIVERS = 256
"""How many groups, the largest, are asked for single tuples where those taken out do not keep a promise together."""


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
    return Counts(len(n), group, value[at], n[group, at], counts.sensitive, counts.joint, None, counts.whole or counts)


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


# -- a lattice that is too large ---------------------------------------------------------------------------------------


def levels_that_could_go(table: Table, largest: int) -> dict[str, list[int]] | None:
    """Levels without which the lattice has at most `largest` nodes; None where values and roots alone have more.

    Those go first that differ least from the level below or above them, by the logarithm of how many nodes each has.
    """
    nodes = {c.name: [len(level) for level in table.hierarchy(c.name).levels] for c in table.quasi}
    kept = {name: list(range(len(sizes))) for name, sizes in nodes.items()}
    gone: dict[str, list[int]] = {}
    while prod(map(len, kept.values())) > largest:
        found = []
        for place, (name, levels) in enumerate(kept.items()):
            for below, here, above in zip(levels, levels[1:], levels[2:], strict=False):
                steps = [log(nodes[name][a] / nodes[name][b]) for a, b in ((below, here), (here, above))]
                found.append((round(min(steps), 9), -len(levels), place, here, name))
        if not found:
            return None
        *_, level, name = min(found)
        kept[name].remove(level)
        gone.setdefault(name, []).append(level)
    return {name: sorted(gone[name]) for name in kept if name in gone}


def too_large(table: Table, nodes: int, largest: int) -> InputError:
    """What is said of a lattice that is too large to search: which levels could go, and that tables can be cut."""
    gone = levels_that_could_go(table, largest)
    fewer = "leave out columns"
    if gone is not None:
        fewer = "these levels could go: " + "; ".join(f"{c} {', '.join(map(str, n))}" for c, n in gone.items())
    return InputError(
        f"the lattice has {nodes:,} nodes, too many to search",
        do=f"{fewer} (at most {largest:,} nodes are searched), or partition the table instead",
    )
