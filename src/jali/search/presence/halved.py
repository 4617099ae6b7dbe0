"""Groups of public people by equal halves: nobody can tell who is present, not even with this algorithm at hand.

The value of a public person is to be present or absent. How many people are drawn into each sample, and how many of
them are present, follows from the numbers of public and of private people and from the bounds. Columns are chosen by
the public people's quasi-identifiers. Decision 45 has the theorem.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jali.core.arrays import Ints, counted, owners, starts
from jali.core.progress import Step
from jali.encoding.table import Table
from jali.principles.anonymity import KAnonymity
from jali.principles.base import Principle
from jali.principles.counts import Counts, Sensitive, dense
from jali.principles.presence import ABSENT, PRESENCE, PRESENT, DeltaPresence
from jali.search.common import require_feasible
from jali.search.halves import Halves, People, halve
from jali.search.mondrian.plan import columns_of
from jali.search.presence.screen import Framed


@dataclass(frozen=True, eq=False)
class Halved:
    """The groups in which somebody is present; people with one combination can be in several of them."""

    size: Ints  # (groups,) people of the public table
    present: Ints  # (groups,) of the private one
    group: Ints  # (entries,) sorted by group, then combination
    combination: Ints  # (entries,) in the public table's numbering
    people: Ints  # (entries,) of the public table
    rows: Ints  # (private rows,) the group of each
    checked: int  # cuts that were judged


def halved_screen(
    frame: Framed, rows: Ints, public: Table, bounds: DeltaPresence, *, drawn: Ints, ties: Ints,
    on_step: Step | None = None,
) -> Halved:  # fmt: skip
    """The public people in groups within the bounds; `drawn` and `ties` are two random permutations of them.

    People are numbered by combination, and of each combination those who are present come first. `rows` is the
    combination of each private row.
    """
    people, halves = halve_people(frame, public, bounds, drawn=drawn, ties=ties, on_step=on_step)
    at, combination, is_present = starts(frame.public), people.combination, people.value
    present = counted(halves.group, is_present, halves.groups)
    number = np.cumsum(present > 0) - 1
    kept = np.flatnonzero(present[halves.group])
    group = number[halves.group[kept]]
    keys, many = np.unique(group * len(frame.public) + combination[kept], return_counts=True)
    entry_group, entry_combination = np.divmod(keys, len(frame.public))
    placed = number[halves.group[at[rows] + _turn(rows)]]
    return Halved(
        counted(group, length=int(number[-1]) + 1), present[present > 0], entry_group, entry_combination,
        many.astype(np.int64), placed, halves.checked,
    )  # fmt: skip


def halve_people(
    frame: Framed, public: Table, bounds: DeltaPresence, *, drawn: Ints, ties: Ints, on_step: Step | None = None
) -> tuple[People, Halves]:
    """Everybody of the public table, and who is together."""
    combination = owners(frame.public)
    before = np.arange(len(combination)) - starts(frame.public)[combination]
    is_present = (before < frame.private[combination]).astype(np.int64)
    people = People(combination, is_present, _whole(len(combination), int(is_present.sum())))
    require_feasible((bounds,), people.whole)
    halves = halve(columns_of(public), people, _judged(bounds), drawn=drawn, ties=ties, on_step=on_step)
    return people, halves


def _whole(public: int, private: int) -> Counts:
    """All public people as one group: their number and how many are present, and nothing else."""
    return dense(np.array([[public - private, private]]), (Sensitive(PRESENCE, (ABSENT, PRESENT)),))


def _judged(bounds: DeltaPresence) -> tuple[Principle, ...]:
    """The bounds, and the least size of a group with somebody present: smaller groups show nobody, so none is cut."""
    if bounds.exact_high == 0:
        return (bounds,)
    return bounds, KAnonymity(-(-bounds.exact_high.denominator // bounds.exact_high.numerator))


def _turn(rows: Ints) -> Ints:
    """How many rows with the same combination come before each."""
    order = np.argsort(rows, kind="stable")
    turn = np.empty(len(rows), dtype=np.int64)
    turn[order] = np.arange(len(rows)) - np.searchsorted(rows[order], rows[order])
    return turn
