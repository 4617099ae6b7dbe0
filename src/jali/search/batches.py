"""Batches of people by their sensitive values: dealt at random as anatomy does, or cut from a Hilbert curve.

Anatomy deals records into the most buckets of at least l people in which no sensitive value occurs twice. Lay the
records in a row, value by value, the largest value groups first, and deal the row out to b = ⌊n / l⌋ buckets in turn.
Two records of a value stand less than b places apart, so they never meet: a value that at most n / l people have has at
most b records. Every bucket gets ⌊n / b⌋ or one more: l or l + 1, where there are at least as many buckets as the
n mod l leftovers. (Xiao and Tao 2006 build the same buckets one by one, from a heap of value groups.)

Along the curve, records that are neighbours over the quasi-identifiers stand together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from jali.core.arrays import Bools, Ints, Runs, combine, counted, narrowed, owners, runs, sorted_by, steps
from jali.core.progress import Step
from jali.encoding.table import Table
from jali.errors import InfeasibleError, InputError
from jali.principles import Safety
from jali.principles.base import Combined, Principle, hold, principles_of
from jali.principles.column import ColumnPrinciple
from jali.principles.counts import Counts, Sensitive
from jali.search.common import require_feasible
from jali.search.gate import judged, judged_alone
from jali.search.items import columns_of


def reach(people: Ints, unknown: int | None = None) -> int:
    """The largest l for which people can be dealt: all of them over those who have the most frequent value, whole.

    How many have each value is given: (values,). People of the value `unknown` have none: they do not count.

    >>> reach(np.array([2, 2, 1])), reach(np.array([2, 2, 1]), unknown=2)
    (2, 2)
    """
    known = people if unknown is None else np.delete(people, unknown) if unknown < len(people) else people
    return int(known.sum()) // int(known.max()) if known.any() else int(people.sum())


def dealing(drivers: Sequence[Principle], whole: Counts, people: int) -> tuple[str, int]:
    """The one sensitive column that these principles name, and how many different values of it a bucket needs."""
    judged = {whole.column(getattr(p, "sensitive", None)).name for p in drivers}
    if len(judged) != 1:
        what = "no promise says by which values" if not judged else f"promises name {len(judged)} columns by which"
        do = 'give one FrequencyDiversity(l) or Safety(c, k), or pass "partition"'
        raise InputError(f"{what} anatomy is to deal people into buckets", do=do)
    return judged.pop(), max(p.dealt_by(people) for p in drivers)


def kept_by(drivers: Sequence[Principle], column: Sensitive, people: Ints, l: int) -> int:
    """The least l, from this one on, for which the buckets keep the principles that they are dealt by.

    Which values a bucket has follows from how many people have each value, (values,), so that the buckets of each l are
    judged before anybody is dealt. An l beyond reach is returned as it is.
    """
    every = np.arange(len(column))
    whole = Counts(1, np.zeros_like(every), every, people, (column,), every[:, None])
    most = reach(people, column.unknown)
    for tried in range(l, most + 1):
        line, buckets = row_of(people, tried, column.unknown)
        if hold_dealt(people[line], line, buckets, tuple(drivers), whole):
            return tried
    if l > most:
        return l
    raise InfeasibleError(
        f"buckets of up to {most} people with different values do not keep {', '.join(map(repr, drivers))}, "
        'and this table has none of more; pass buckets="partition"'
    )


def hold_dealt(people: Ints, value: Ints, batches: int, principles: tuple[Principle, ...], whole: Counts) -> bool:
    """Whether batches keep every promise when everybody is dealt out in turn, `people` of each `value`.

    Batches between two neighbouring beginnings of values are all alike. Of these one is judged, or as many as k facts
    can be about, and one more.
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


def row_of(people: Ints, l: int, unknown: int | None = None) -> tuple[Ints, int]:
    """The values in the order in which people stand in the row, and how many buckets they are dealt to.

    Both follow from how many people have each value: (values,). Who has the value `unknown` comes last.
    """
    if l < 1:
        raise InputError("a bucket needs at least one record", got=f"l = {l}")
    most = reach(people, unknown)
    if l > most:
        raise InfeasibleError(
            f"buckets of at least {l} people with different values cannot be made: a value is too frequent; "
            f"the largest l that this table can reach is {most}"
        )
    frequency = people.copy()
    without = 0 if unknown is None or unknown >= len(people) else int(people[unknown])
    if without:
        frequency[unknown] = -1  # the last in the row
    return np.argsort(-frequency, kind="stable"), max((int(people.sum()) - without) // l, 1)


def deal(values: NDArray[np.integer], l: int, order: Ints, *, unknown: int | None = None) -> Ints:
    """The bucket of each record; which records of a value meet which others follows `order`, a random permutation.

    An attacker who knows this algorithm learns nothing from it: all tables that fit the buckets lead to them equally
    often, since each record of a value is as likely as any other of it to be dealt to each of its places. Records of
    the value `unknown`, who have none, are dealt out in turn once all others are.

    >>> deal(np.array([0, 1, 0, 1, 2]), 2, np.arange(5)).tolist()
    [0, 0, 1, 1, 0]
    """
    if len(order) != len(values):
        raise InputError("the order must have one place for each record", got=f"{len(order)} and {len(values)}")
    line, buckets = row_of(counted(values), l, unknown)
    rank = np.empty(len(line), dtype=smallest(len(line)))
    rank[line] = np.arange(len(line), dtype=rank.dtype)
    return dealt_into(rank[values], buckets, order)


def seated_row(value: Ints, people: Ints, line: Ints, order_of: Callable[[int], Ints]) -> NDArray[np.int32]:
    """The row that is dealt out, from counts: the record of everybody in it, where record i has people[i] of value[i].

    The people of a value stand in a random order that `order_of` draws from their number: all arrangements of the
    copies of records are equally likely, as when everybody is listed and the list is shuffled.
    """
    row = np.empty(int(people.sum()), dtype=np.int32)
    member, start = sorted_by(value, len(line))
    at = 0
    for own in line.tolist():
        some = member[start[own] : start[own + 1]]
        here = np.repeat(some.astype(np.int32), people[some])
        row[at : at + len(here)] = here[order_of(len(here))]
        at += len(here)
    return row


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


def most_batches(people: Ints, value: Ints, principles: tuple[Principle, ...], whole: Counts) -> int:
    """The most batches found that keep every promise when everybody is dealt out in turn, `people` of each `value`.

    Batches are made larger, twofold, until they hold; then the least size is bisected. Everybody in one batch holds.
    """
    total = int(people.sum())
    size, failed = max(1, *(p.least_size() for p in principles)), 0
    while size < total and not hold_dealt(people, value, total // size, principles, whole):
        size, failed = min(2 * size, total), size
    while size - failed > 1 and failed:
        middle = (size + failed) // 2
        if hold_dealt(people, value, total // middle, principles, whole):
            size = middle
        else:
            failed = middle
    return max(1, total // size)


def dealt_out(row: NDArray[np.int32], order: Ints) -> tuple[NDArray[np.int32], Runs]:
    """The row dealt out in turn to as many buckets as there are in `order`: its members bucket by bucket, and whose.

    Bucket `order[i]` of those that are dealt to gets the number i, which says nothing where the order is random.
    """
    buckets, at = len(order), 0
    size = narrowed((len(row) - order + buckets - 1) // buckets)
    member = np.empty_like(row)
    for some in steps(buckets, max(1, len(row) // buckets)):
        own = size[some].astype(np.int64)
        here = row[np.repeat(order[some], own) + buckets * runs(0, own)]
        member[at : at + len(here)] = here
        at += len(here)
    return member, Runs(size)


def dealt_into(place: NDArray[np.integer], buckets: int, order: Ints) -> Ints:
    """The bucket of each record when the row is dealt out in turn; `place` says where a record's value stands in it."""
    row = order[np.argsort(place[order], kind="stable")]
    bucket = np.empty(len(place), dtype=np.int64)
    bucket[row] = np.arange(len(place)) % buckets
    return bucket


def smallest(count: int) -> type[np.unsignedinteger]:
    """The narrowest type for this number of ranks: numpy sorts narrow integers by counting."""
    return np.uint8 if count <= 2**8 else np.uint16 if count <= 2**16 else np.uint32


MOST_BITS = 62  # of a place on the curve


def hilbert(point: Ints, bits: int) -> Ints:
    """The place on the curve of each point with coordinates below 2^bits: (points,) from (points, dimensions).

    Gray code and the rotations of the curve undone from the coarsest bit to the finest (Skilling 2004).

    >>> square = np.array([[0, 0], [0, 1], [1, 1], [1, 0]])
    >>> hilbert(square, 1)
    array([0, 1, 2, 3])
    """
    x = point.T.astype(np.int64).copy()  # (dimensions, points)
    for bit in range(bits - 1, 0, -1):
        one = np.int64(1) << bit
        low = one - 1
        for d in range(len(x)):
            turned = (x[d] & one) != 0
            swap = np.where(turned, 0, (x[0] ^ x[d]) & low)
            x[0] ^= np.where(turned, low, swap)
            x[d] ^= swap
    for d in range(1, len(x)):
        x[d] ^= x[d - 1]
    gray = np.zeros_like(x[0])
    for bit in range(bits - 1, 0, -1):
        one = np.int64(1) << bit
        gray ^= np.where((x[-1] & one) != 0, one - 1, 0)
    x ^= gray
    place = np.zeros(x.shape[1], dtype=np.int64)
    for bit in range(bits - 1, -1, -1):
        for d in range(len(x)):
            place = (place << 1) | ((x[d] >> bit) & 1)
    return place


_FINEST = 20  # bits of a coordinate: more than a column has values in practice


@dataclass(frozen=True, eq=False)
class Batches:
    """Which batch each record is in; every batch keeps every promise."""

    batch: Ints  # (records,) numbered along the curve
    batches: int


def batches_along(
    table: Table,
    principles: Principle | Combined | Iterable[Principle | Combined],
    turns: Ints,
    *,
    on_step: Step | None = None,
) -> Batches:
    """Halve the table's records, in the order of a Hilbert curve, as long as both halves keep every promise.

    Records of one combination follow each other by their `turns`, (records,): an order that nobody can repeat.
    `on_step` hears how many records are in finished batches, and of how many.
    """
    required = principles_of(principles)
    f = table.frequencies
    whole = f.whole
    require_feasible(required, whole)
    line = along_curve(table, turns)
    number = _halved(_along(table, line, whole), required, on_step or (lambda done, total: None))
    batch = np.empty(table.records, dtype=np.int64)
    batch[line] = number
    return Batches(batch, int(number[-1]) + 1)


def along_curve(table: Table, turns: Ints) -> Ints:
    """The records in the order of the curve; which of one combination comes first depends on nobody's value."""
    columns, f = columns_of(table), table.frequencies
    bits = max(1, min(MOST_BITS // len(columns.size), _FINEST))
    point = (columns.place.T.astype(np.int64) << bits) // columns.size
    rank = np.empty(f.combinations, dtype=np.int64)
    rank[np.argsort(hilbert(point, bits), kind="stable")] = np.arange(f.combinations)
    return np.argsort(rank[f.row_combination] * table.records + turns).astype(np.int64)  # no two have the same turn


def _along(table: Table, line: Ints, whole: Counts) -> Counts:
    """The people of the line, each record a group of its own."""
    joint, _ = combine([(column.codes, len(column.values)) for column in table.sensitive], table.records)
    counted = table.person is None and table.multiplicity is not None
    n = table.multiplicity[line] if counted and table.multiplicity is not None else np.ones(len(line), dtype=np.int64)
    person = None if table.person is None else table.person[line]
    each = np.arange(len(line))
    return Counts(len(line), each, joint[line].astype(np.int64), n, whole.sensitive, whole.joint, person, whole)


def _halved(people: Counts, principles: tuple[Principle, ...], step: Step) -> Ints:
    """The piece of everybody along the line: (people,). All pieces of a generation are judged together."""
    starts = np.array([0, people.groups], dtype=np.int64)  # (pieces + 1,)
    whole = np.zeros(1, dtype=bool)  # (pieces,) which are not to be cut any more
    together = tuple(p for p in principles if p.scope == "table")
    while not whole.all():
        cut = np.flatnonzero(~whole & (np.diff(starts) > 1))
        edges = np.stack([starts[cut], (starts[cut] + starts[cut + 1]) // 2, starts[cut + 1]], axis=1)  # (pieces, 3)
        may = _both_hold(people, principles, edges)
        cut, middle = cut[may], edges[may, 1]
        if together:
            kept = _safe_together(people, together, starts, cut, middle)
            cut, middle = cut[kept], middle[kept]
        fresh = np.zeros(len(whole), dtype=bool)
        fresh[cut] = True
        starts = np.insert(starts, cut + 1, middle)
        whole = ~np.repeat(fresh, 1 + fresh)
        step(int(np.diff(starts)[whole].sum()), people.groups)
    return owners(np.diff(starts))


def _both_hold(people: Counts, principles: tuple[Principle, ...], edges: Ints) -> Bools:
    """Whether both halves of each piece, between its edges, keep every promise by themselves: (pieces,)."""
    length = np.diff(edges, axis=1).ravel()
    half = owners(length)
    place = runs(edges[:, :2].ravel(), length)
    there = replace(
        people, groups=len(length), group=half, value=people.value[place], n=people.n[place],
        person=None if people.person is None else people.person[place],
    )  # fmt: skip
    return np.asarray(judged_alone(principles, there).reshape(-1, 2).all(axis=1))


def _safe_together(people: Counts, principles: tuple[Principle, ...], starts: Ints, cut: Ints, middle: Ints) -> Bools:
    """Which of a generation's cuts are kept so that all pieces together hold: (cuts,).

    A cut one of whose halves fails is taken back, then the others are judged again; where only older pieces fail, all
    cuts are taken back. Joining pieces never breaks a promise, so what was there before holds.
    """
    kept = np.ones(len(cut), dtype=bool)
    while kept.any():
        fresh = np.zeros(len(starts) - 1, dtype=bool)
        fresh[cut[kept]] = True
        edges: Ints = np.insert(starts, cut[kept] + 1, middle[kept])
        length = edges[1:] - edges[:-1]
        pieces = replace(people, groups=len(length), group=owners(length))
        held = judged(principles, pieces)
        if held.all():
            break
        failed = np.add.reduceat(~held, np.concatenate([[0], np.cumsum(1 + fresh)[:-1]])) > 0  # by older piece
        taken = kept & failed[cut]
        kept &= ~taken if taken.any() else False
    return kept
