"""What searches share: groups, whether a requirement can be met at all, and who joins the suppressed."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import log, prod
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from jali.core.arrays import Bools, Ints, combine, runs
from jali.encoding.table import Frequencies, Table
from jali.errors import InfeasibleError, InputError
from jali.principles.base import Principle
from jali.principles.counts import Counts
from jali.search.gate import judged, judged_alone
from jali.search.recode.plan import RecodeShow


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


_CELLS = 1 << 20  # unions judged at once, times values


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


def shown_alike(
    table: Table, frequencies: Frequencies, group: Ints, groups: int, show: RecodeShow, *, hidden: bool = False
) -> tuple[Ints, int]:
    """The published group of each combination, and how many there are: groups that show the same are one.

    Where the last group is `hidden`, it is shown as * and stays by itself.
    """
    keys: list[tuple[Ints, int]] = []
    for column, codes in zip(table.quasi, frequencies.codes.T.astype(np.int64), strict=True):
        key = _sets(codes, group, groups) if show == "set" else _nodes(table, column.name, codes, group, groups)
        keys.append((key, int(key.max(initial=0)) + 1))
    if hidden:
        keys.append(((np.arange(groups) == groups - 1).astype(np.int64), 2))
    number, first = combine(keys, groups)
    return number[group].astype(np.int64), len(first)


def _nodes(table: Table, name: str, codes: Ints, group: Ints, groups: int) -> Ints:
    """A number for the smallest node that covers each group: (groups,)."""
    key, begin = np.full(groups, -1, dtype=np.int64), 0
    for nodes in table.hierarchy(name).maps:
        low, high = np.full(groups, len(nodes), dtype=np.int64), np.full(groups, -1, dtype=np.int64)
        np.minimum.at(low, group, nodes[codes])
        np.maximum.at(high, group, nodes[codes])
        key = np.where((key < 0) & (low == high), begin + low, key)
        begin += int(nodes.max(initial=0)) + 1
    return key


def _sets(codes: Ints, group: Ints, groups: int) -> Ints:
    """A number for the set of values of each group: (groups,)."""
    width = int(codes.max(initial=0)) + 1
    pairs = np.unique(group * width + codes)
    begin = np.searchsorted(pairs, np.arange(groups + 1) * width)
    known: dict[bytes, int] = {}
    values = (pairs % width).astype(np.int64)
    found = [known.setdefault(values[a:b].tobytes(), len(known)) for a, b in pairwise(begin)]
    return np.array(found, dtype=np.int64)


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
