"""Local recoding: groups of combinations whose boxes are no wider than the group needs, and may overlap.

Classes of equal records that are large enough are peeled off first. Then the nodes of the lattice are walked in the
order of what they cost, and at each the classes *of what is left* that are large enough become groups. What happens to
the diversity then depends on `peel`; see `recode_groups`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from jali.encoding.table import Table
from jali.errors import InputError, InternalError, nearest
from jali.principles.base import Combined, Principle, exact, hold, principles_of
from jali.principles.counts import Counts, Ints
from jali.progress import Step
from jali.search.lattice import Lattice
from jali.search.recode_plan import OBJECTIVES, PEELS, SHOWS, Objective, Peel, RecodeShow
from jali.search.recode_search import Search, first_numbers, full_domain

__all__ = ["Objective", "Peel", "RecodeShow", "Recoding", "recode_groups"]


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
    suppress: float | Fraction = 0.0,
    on_step: Step | None = None,
) -> Recoding:
    """Put every combination into one group that keeps every promise, at as little cost to the objective as is found.

    With `peel="size"` the classes and a binary tree above them are made from quasi-identifiers and sizes alone, and the
    two halves of a node are published apart exactly when both keep every promise: that two classes stand together says
    that one of them failed, never which, since the same groups would be published had it been the other one. It does
    not hide that one of them failed, so where one half cannot fail (because it is large, or from what an attacker knows
    otherwise) the other one did; nor are the few choices about the whole table hidden: how large the first classes are,
    and whether a full-domain generalization was better. With `peel="principle"` a class is peeled when it keeps the
    promises, and combinations move while groups do, so whoever knows the algorithm learns which classes failed.

    The result is never worse than the best full-domain generalization without suppression. A suppressed row costs as
    much as one shown as * in every column, so the budget changes no group: if the rows of a group that is shown as *
    everywhere are within it, that group is marked as suppressed. `on_step` hears how far the search is.
    """
    required = principles_of(principles)
    for name, value, known in (("objective", objective, OBJECTIVES), ("show", show, SHOWS), ("peel", peel, PEELS)):
        if value not in known:
            raise InputError(f'no {name} "{value}"', do=nearest(str(value), known))
    share = exact("suppress", suppress)
    if not 0 <= share < 1:
        raise InputError("suppress must be at least 0 and below 1", got=str(suppress))
    if any(p.scope == "table" for p in required):
        raise InputError("local recoding judges groups one by one", do="leave out principles about all groups at once")
    step = on_step or (lambda done, total: None)
    lattice = Lattice(table, required, on_step=lambda done, total: None, largest=2**62)  # raises where nothing holds
    search = Search(table, required, objective, show, step)
    group, groups = search.by_size() if peel == "size" else search.by_principle()
    reached = search.reached(group, groups)
    better = full_domain(lattice, search, reached)
    if better is not None:
        group, groups = better
        reached = search.reached(group, groups)
    group, groups, suppressed = _suppressed(search, group, groups, int(share * table.rows))
    if not bool(hold(required, table.frequencies.counts(group, groups)).all()):
        raise InternalError("local recoding made a group that breaks a promise: please report it")
    return Recoding(
        group, groups, search.checked, objective, show, peel, reached, suppressed, full_domain=better is not None
    )


def _suppressed(search: Search, group: Ints, groups: int, budget: int) -> tuple[Ints, int, bool]:
    """Groups numbered by their first combination, the suppressed one last where there is one."""
    group = first_numbers(group)
    widest = search.widest(group, groups)
    rows = np.bincount(group, weights=search.layout.rows, minlength=groups)
    if widest.sum() != 1 or rows[widest].sum() > budget:
        return group, groups, False
    last = int(np.flatnonzero(widest)[0])
    moved = np.where(group == last, groups - 1, group - (group > last))
    return moved.astype(np.int64), groups, True
