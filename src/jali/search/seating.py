"""Who sits in which batch, so that an attacker who knows this algorithm learns nothing more than the batches show.

Two ways: people are dealt out at random to the most batches that keep every promise, or they are cut into equal halves
(`halves.py`). The promises say which, before anybody's value is looked at. Decision 44 has the proof.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from jali.core.arrays import Ints, combine, counted, owners, runs
from jali.core.progress import Step
from jali.encoding.table import Table
from jali.errors import InputError
from jali.principles import AlphaAnonymity, FrequencyDiversity, Safety, TCloseness
from jali.principles.base import Principle, hold
from jali.principles.column import ColumnPrinciple
from jali.principles.counts import Counts
from jali.search.batches import dealt_into
from jali.search.common import require_feasible
from jali.search.halves import By, People, halve
from jali.search.mondrian.plan import columns_of

Seats = Literal["anatomy", "halves"]
BOUNDING = (FrequencyDiversity, AlphaAnonymity, TCloseness)
"""Promises that bound single shares: their batches are few and large, and analysts learn more from small boxes.

Batches under the others are many and small, and those that are cut where they are widest tell more (measured on Adult).
"""


def seats_of(principles: Sequence[Principle]) -> Seats:
    """How people are put into batches under these promises: a rule that looks at no table.

    Halves follow the quasi-identifiers, and so tell analysts more; Safety, which is about all batches at once, is kept
    by dealing alone.
    """
    return "anatomy" if any(p.scope == "table" for p in principles) else "halves"


def cut_by(principles: Sequence[Principle]) -> By:
    """Along which columns halves are cut under these promises: a rule that looks at no table."""
    return "area" if all(isinstance(p.inner, BOUNDING) for p in principles) else "range"


def require_seats(way: Seats, principles: Sequence[Principle]) -> None:
    """Raise InputError where batches by equal halves would not keep a promise about all batches at once."""
    broken = [p for p in principles if p.scope == "table"]
    if way == "halves" and broken:
        what = f"equal halves judge batches one by one, and {broken[0]!r} is about all of them at once"
        raise InputError(what, do='pass batches="anatomy", which deals people at random')


class Orders(NamedTuple):
    """Two independent random orders of everybody, which nobody can repeat."""

    first: Ints  # (people,) who is dealt, or drawn into a sample, before whom
    ties: Ints  # (people,) who of those with equal quasi-identifiers comes first


def seated(
    table: Table, principles: tuple[Principle, ...], way: Seats, orders: Orders, *, on_step: Step | None = None
) -> Ints:
    """The batch of each record of a table with one record a person: (records,)."""
    f = table.frequencies
    whole = f.counts(np.zeros(f.combinations, dtype=np.int64), 1)
    require_feasible(principles, whole)
    require_seats(way, principles)
    joint, _ = combine([(column.codes, len(column.values)) for column in table.sensitive], table.records)
    value = joint.astype(np.int64)
    if way == "anatomy":
        return dealt(value, principles, whole, orders.first)
    people = People(f.row_combination.astype(np.int64), value, whole)
    halves = halve(
        columns_of(table), people, principles, drawn=orders.first, ties=orders.ties, by=cut_by(principles),
        sorting=True, on_step=on_step,
    )  # fmt: skip
    return halves.group


def dealt(value: Ints, principles: tuple[Principle, ...], whole: Counts, order: Ints) -> Ints:
    """The batch of everybody, dealt at random into as many batches as keep every promise: (people,).

    Everybody stands in a row, value by value, and is dealt out to the batches in turn. So which values meet in a batch
    follows from how many people have each value, and the number of batches is chosen before anybody is dealt.
    """
    place, batches = dealing_of(counted(value, length=len(whole.joint)), principles, whole)
    return dealt_into(place[value], batches, order)


def dealing_of(people: Ints, principles: tuple[Principle, ...], whole: Counts) -> tuple[Ints, int]:
    """Where each joint value stands in the row, (values,), and how many batches are dealt to.

    Both follow from how many people have each value: (values,).
    """
    line = _line(people, principles, whole)
    place = np.empty(len(line), dtype=np.int64)
    place[line] = np.arange(len(line))
    return place, most_batches(people[line], line, principles, whole)


def _line(people: Ints, principles: tuple[Principle, ...], whole: Counts) -> Ints:
    """The joint values in the order in which they are dealt: by the column with the largest need, frequent ones first.

    With one sensitive column this is anatomy's own row.
    """
    need = max(principles, key=lambda p: p.least_size())
    column = whole.column(need.sensitive) if isinstance(need, ColumnPrinciple) else whole.sensitive[0]
    own = whole.joint[:, [c.name for c in whole.sensitive].index(column.name)]
    often = counted(own, people)
    return np.lexsort((np.arange(len(people)), own, -often[own]))


def most_batches(
    people: Ints, value: Ints, principles: tuple[Principle, ...], whole: Counts
) -> int:  # fmt: skip
    """The most batches found that keep every promise when everybody is dealt out in turn, `people` of each `value`.

    Batches are made larger, twofold, until they hold; then the least size is bisected. Everybody in one batch holds.
    """
    total = int(people.sum())
    size, failed = max(1, *(p.least_size() for p in principles)), 0
    while size < total and not _hold_dealt(people, value, total // size, principles, whole):
        size, failed = min(2 * size, total), size
    while size - failed > 1 and failed:
        middle = (size + failed) // 2
        if _hold_dealt(people, value, total // middle, principles, whole):
            size = middle
        else:
            failed = middle
    return max(1, total // size)


def _hold_dealt(
    people: Ints, value: Ints, batches: int, principles: tuple[Principle, ...], whole: Counts
) -> bool:  # fmt: skip
    """Whether the batches keep every promise. Those between two neighbouring beginnings of values are all alike.

    Of batches that are alike one is judged, or as many as k facts can be about, and one more.
    """
    ends = np.cumsum(people)
    total = int(ends[-1])
    alike = np.unique(np.concatenate([[0, batches], ends % batches]))
    copies = max((p.k + 2 for p in principles if isinstance(p, Safety)), default=1)
    many = np.minimum(np.diff(alike), copies)
    batch = runs(alike[:-1], many)
    size = (total - batch + batches - 1) // batches
    group = owners(size)
    found = value[np.searchsorted(ends, batch[group] + batches * runs(0, size), side="right")]
    counts = Counts(
        len(batch), group, found, np.ones(len(group), dtype=np.int64), whole.sensitive, whole.joint, None, whole
    )
    return bool(hold(principles, counts).all())
