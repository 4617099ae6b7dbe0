"""Local recoding: groups of combinations whose boxes are no wider than the group needs, and who is suppressed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from jali.core.arrays import Bools, Ints, combine
from jali.core.progress import Step
from jali.encoding.frequencies import Frequencies
from jali.encoding.table import Table
from jali.errors import InfeasibleError, InputError, InternalError, nearest, one_of, told
from jali.principles.base import Combined, Principle, principles_of
from jali.principles.counts import Counts
from jali.search.common import first_union_that_holds
from jali.search.gate import compare, judged
from jali.search.lattice.lattice import Lattice
from jali.search.layout import OBJECTIVES, PEELS, SHOWS, Objective, Peel, RecodeShow
from jali.search.peeling import Search, first_numbers, full_domain


def standouts(search: Search, budget: int) -> Iterator[Bools]:
    """Combinations to suppress together, within a budget of rows: a few candidates, each of which keeps every promise.

    Classes are made from quasi-identifiers and sizes alone, and ranked by what their boxes cost a row: the dearest
    first, of equal ones the smallest. Suppressed are the first of them, up to a half, a quarter, an eighth … of all
    rows; where they break a promise together the next ones join, as long as the budget lasts, until they keep it. So
    the promises decide how many are suppressed, never who comes before whom. Fewer come first, and a larger budget only
    adds candidates.
    """
    if budget < 1:
        return
    group, groups = search.classes(search.least)
    rows, cost = search.row_costs(group, groups)
    order = np.lexsort((np.arange(groups), rows, -np.round(cost, 9)))
    order = order[cost[order] > 0]
    upto = np.cumsum(rows[order])
    last = int(np.searchsorted(upto, budget, side="right"))
    counts, done = search.counts(group, groups), 0
    for halvings in range(int(rows.sum()).bit_length(), 0, -1):
        most = int(rows.sum()) >> halvings
        first = int(np.searchsorted(upto, most, side="right"))
        if most > budget:
            return
        if first <= done:
            continue
        more = first_union_that_holds(search.principles, counts, order[:first], order[first:last])
        if more is None:
            return
        done = first + more
        hidden: Bools = np.isin(group, order[:done])
        if not hidden.all() and bool(search.without(hidden).together().all()):
            yield hidden


LESS = 1e-12
"""What is reached is better only by more than this, so that rounding decides nothing."""


@dataclass(frozen=True, eq=False)
class Recoding:
    """Groups of a table's combinations, numbered by their first one; a suppressed group is the last."""

    group: Ints  # (combinations,)
    groups: int
    checked: int  # classes, groups and moves that were judged
    objective: Objective
    show: RecodeShow
    peel: Peel
    reached: float  # granularity; or KL as if no other box overlapped a group's own, which is never too low
    suppressed: bool = False  # whether the last group, shown as * in every column, is within the budget of suppression
    full_domain: bool = False  # whether a full-domain generalization was better than what the search found

    def counts(self, table: Table) -> Counts:
        """People by group and sensitive value."""
        return table.frequencies.counts(self.group, self.groups)


def recode_groups(
    table: Table,
    principles: Principle | Combined | Iterable[Principle | Combined],
    *,
    objective: Objective = "kl",
    show: RecodeShow = "taxonomy",
    peel: Peel = "size",
    budget: int = 0,
    on_step: Step | None = None,
    importance: Ints | None = None,
) -> Recoding:
    """Put every combination into one group that keeps every promise, at as little cost to the objective as is found.

    With `peel="size"` the classes and a binary tree above them are made from quasi-identifiers and sizes alone, and the
    two halves of a node are published apart exactly when both keep every promise: that two classes stand together says
    that one of them failed. The same groups would be published had it been the other one, but the published values can
    rule that out: where one half cannot have failed (because it is large, from the group's values, or from what an
    attacker knows otherwise) the other one did. Nor are the few choices about the whole table hidden: how large the
    first classes are, and whether a full-domain generalization was better. With `peel="principle"` a class is peeled
    when it keeps the promises, and combinations move while groups do, so that classes which failed are told apart more
    often.

    The result is never worse than the best full-domain generalization without suppression. Up to `budget`
    rows may be suppressed: the combinations that stand out most, told by sizes alone, are one group that is shown as *
    in every column, where that makes the objective better; see `standouts`. `on_step` hears how far the search is.
    `importance`, (columns,) in millionths of the least one's, multiplies what each column costs.
    """
    required = principles_of(principles)
    for name, value, known in (("objective", objective, OBJECTIVES), ("show", show, SHOWS), ("peel", peel, PEELS)):
        if not one_of(value, known):
            raise InputError(f'no {name} "{told(value)}"', do=nearest(value, known))
    if any(p.scope == "table" for p in required):
        raise InputError("local recoding judges groups one by one", do="leave out principles about all groups at once")
    step = on_step or (lambda done, total: None)
    lattice = Lattice(table, required, on_step=lambda done, total: None, largest=2**62)  # raises where nothing holds
    search = Search(table, required, objective, show, step, importance=importance)
    judge = _Judge(lattice, search, show)
    found = _without_suppression(judge, peel)
    found = None if found is None else _marked(search, found, budget)
    for hidden in standouts(search, budget):
        other = _marked(search, _suppressing(search, peel, hidden), budget)
        if other.suppressed and (found is None or _better(objective, other.reached, found.reached)):
            found = other if judge.keeps(other) else found
    if found is None:
        promises = ", ".join(map(repr, required))
        raise InfeasibleError(f"local recoding found no groups that keep {promises}, nor did a full-domain node")
    group = first_numbers(found.group, last=found.groups - 1 if found.suppressed else None)
    if not bool(judged(required, table.frequencies.counts(group, found.groups)).all()):
        raise InternalError("local recoding made a group that breaks a promise: please report it")
    return Recoding(
        group, found.groups, search.checked, objective, show, peel, found.reached, found.suppressed, found.full_domain
    )


class _Found(NamedTuple):
    group: Ints
    groups: int
    reached: float
    full_domain: bool = False
    suppressed: bool = False  # whether the last group is


def _better(objective: Objective, one: float, other: float) -> bool:
    return one < other - LESS if objective == "kl" else one > other + LESS


class _Judge(NamedTuple):
    """What is published of groups: those that are shown alike are one, which may break a promise that both keep."""

    lattice: Lattice
    search: Search
    show: RecodeShow

    def keeps(self, found: _Found) -> bool:
        """Whether the groups keep every promise, and also as they are published."""
        if self.lattice.monotone:
            return True
        search, group, groups = self.search, found.group, found.groups
        shown = shown_alike(search.table, search.frequencies, group, groups, self.show, hidden=found.suppressed)
        return all(bool(judged(search.principles, search.counts(*each)).all()) for each in ((group, groups), shown))


def _without_suppression(judge: _Judge, peel: Peel) -> _Found | None:
    """What the search finds, or the best full-domain generalization where that is better; None where neither holds."""
    search = judge.search
    if search.objective == "kl":
        compare("groups of local recoding and lattice nodes by kl")
    group, groups = search.groups(peel)
    found = _Found(group, groups, search.reached(group, groups))
    sound = judge.keeps(found)
    worst = math.inf if search.objective == "kl" else -math.inf
    better = full_domain(judge.lattice, search, found.reached if sound else worst)
    if better is None:
        return found if sound else None
    return _Found(*better, search.reached(*better), full_domain=True)


def _suppressing(search: Search, peel: Peel, hidden: Bools) -> _Found:
    """What the search finds among the other combinations; these are the last group."""
    rest = search.without(hidden)
    some, groups = rest.groups(peel)
    search.checked = rest.checked
    group = np.full(len(hidden), groups)
    group[~hidden] = some
    return _Found(group, groups + 1, search.reached(group, groups + 1, suppressed=True), suppressed=True)


def _marked(search: Search, found: _Found, budget: int) -> _Found:
    """With every group that is shown as * in every column in the suppressed one, if that is within the budget.

    Boxes that show the same are one published group, and nobody could tell such rows from suppressed ones.
    """
    wide = np.zeros(found.groups, dtype=bool) if search.layout.words else search.widest(found.group, found.groups)
    wide[-1] |= found.suppressed
    shown = wide[found.group]
    if not wide.any() or wide.all() or search.layout.rows[shown].sum() > budget:
        return found._replace(suppressed=False)
    group = np.where(shown, found.groups, found.group)
    group = first_numbers(group, last=found.groups)
    groups = int(group.max()) + 1
    if not bool(judged(search.principles, search.counts(group, groups)).all()):
        return found._replace(suppressed=False)
    return _Found(group, groups, search.reached(group, groups, suppressed=True), found.full_domain, suppressed=True)


__all__ = ["Objective", "Peel", "RecodeShow", "Recoding", "recode_groups"]


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
