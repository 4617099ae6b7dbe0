"""Anatomy: deal records into the most buckets of at least l people in which no sensitive value occurs twice.

Lay the records in a row, value by value, the largest value groups first, and deal the row out to b = ⌊n / l⌋ buckets in
turn. Two records of a value stand less than b places apart, so they never meet: a value that at most n / l people have
has at most b records. Every bucket gets ⌊n / b⌋ or one more: l or l + 1, where there are at least as many buckets as
the n mod l leftovers. (Xiao and Tao 2006 build the same buckets one by one, from a heap of value groups.)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from jali.errors import InfeasibleError, InputError
from jali.principles.base import Principle, hold
from jali.principles.counts import Counts, Ints, Sensitive


def reach(values: NDArray[np.integer]) -> int:
    """The largest l for which the records can be dealt: n over the people who have the most frequent value, whole.

    >>> reach(np.array([0, 0, 1, 1, 2]))
    2
    """
    return len(values) // int(np.bincount(values).max())


def dealing(drivers: Sequence[Principle], whole: Counts, people: int) -> tuple[str, int]:
    """The one sensitive column that these principles name, and how many different values of it a bucket needs."""
    judged = {whole.column(getattr(p, "sensitive", None)).name for p in drivers}
    if len(judged) != 1:
        what = "no promise says by which values" if not judged else f"promises name {len(judged)} columns by which"
        do = 'give one FrequencyDiversity(l) or Safety(c, k), or pass "partition"'
        raise InputError(f"{what} anatomy is to deal people into buckets", do=do)
    return judged.pop(), max(p.dealt_by(people) for p in drivers)


def kept_by(drivers: Sequence[Principle], column: Sensitive, values: NDArray[np.integer], l: int) -> int:
    """The least l, from this one on, for which the buckets keep the principles that they are dealt by.

    Which values a bucket has follows from how many people have each value, so that the buckets of each l are judged
    before anybody is dealt. An l beyond reach is returned as it is.
    """
    every = np.arange(len(column))
    order, people = np.arange(len(values)), np.ones(len(values), dtype=np.int64)
    most = reach(values)
    for tried in range(l, most + 1):
        bucket = deal(values, tried, order)
        counts = Counts(int(bucket.max()) + 1, bucket, values.astype(np.int64), people, (column,), every[:, None])
        if bool(hold(drivers, counts).all()):
            return tried
    if l > most:
        return l
    raise InfeasibleError(
        f"buckets of up to {most} people with different values do not keep {', '.join(map(repr, drivers))}, "
        'and this table has none of more; pass buckets="partition"'
    )


def deal(values: NDArray[np.integer], l: int, order: Ints) -> Ints:
    """The bucket of each record; which records of a value meet which others follows `order`, a random permutation.

    Whoever knows this algorithm learns nothing from it: all tables that fit the buckets give rise to them equally
    often, since each record of a value is as likely as any other of it to be dealt to each of its places.

    >>> deal(np.array([0, 1, 0, 1, 2]), 2, np.arange(5)).tolist()
    [0, 0, 1, 1, 0]
    """
    if l < 1:
        raise InputError("a bucket needs at least one record", got=f"l = {l}")
    if len(order) != len(values):
        raise InputError("the order must have one place for each record", got=f"{len(order)} and {len(values)}")
    most = reach(values)
    if l > most:
        raise InfeasibleError(
            f"buckets of at least {l} people with different values cannot be made: a value is too frequent; "
            f"the largest l that this table can reach is {most}"
        )
    frequency = np.bincount(values)
    rank = np.empty(len(frequency), dtype=_smallest(len(frequency)))
    rank[np.argsort(-frequency, kind="stable")] = np.arange(len(frequency), dtype=rank.dtype)
    row = order[np.argsort(rank[values[order]], kind="stable")]
    bucket = np.empty(len(values), dtype=np.int64)
    bucket[row] = np.arange(len(values)) % (len(values) // l)
    return bucket


def _smallest(count: int) -> type[np.unsignedinteger]:
    """The narrowest type for so many ranks: numpy sorts narrow integers by counting."""
    return np.uint8 if count <= 2**8 else np.uint16 if count <= 2**16 else np.uint32
