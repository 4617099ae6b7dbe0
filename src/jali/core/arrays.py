"""Arrays of codes and counts: the names of their types, the idioms that many rooms need, the formula of each cost."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

AT_ONCE = 4_000_000
"""Pairs (of a box and a value, of two cells, …) that are held in memory together."""

EXACT = 2**53  # whole numbers up to here are exact as floats
_WIDEST = 2**62  # a key must fit into 64 bits
_PIECE = 1 << 18  # members of a long array that are worked on together, so that copies of them stay in the cache
_TABLED = 1 << 22  # possible keys up to which a table of them beats hashing many rows (measured)


# -- sums ---------------------------------------------------------------------------------------------------------


def added(index: NDArray[np.integer], amount: NDArray[Any] | None = None, length: int = 0) -> Floats:
    """The sum of the amounts (1 each by default) at each index: (length,), or as many as the largest index needs."""
    return np.bincount(index, amount, minlength=length).astype(np.float64, copy=False)


def counted(index: NDArray[np.integer], people: NDArray[Any] | None = None, length: int = 0) -> Ints:
    """How often each index occurs, or the sum of its people, which is below 2**53: (length,) or more.

    A ValueError where an index is negative.
    """
    if len(index) <= _PIECE:
        return np.bincount(index, people, minlength=length).astype(np.int64, copy=False)
    if int(index.min()) < 0:
        raise ValueError("an index is negative")
    total, one = np.zeros(max(length, int(index.max()) + 1), dtype=np.int64), np.int64(1)
    for some in steps(len(index), 1, _PIECE):  # bincount would widen all of it to floats
        np.add.at(total, index[some], one if people is None else people[some].astype(np.int64, copy=False))
    return total


def exactly_added(index: Ints, amount: Ints, length: int) -> Ints:
    """Sums of integers of any size: floats are exact below 2**53, beyond that integers are added one by one."""
    if len(amount) == 0 or max(int(amount.max()), -int(amount.min())) * len(amount) < EXACT:
        return counted(index, amount, length)
    result = np.zeros(length, dtype=np.int64)
    np.add.at(result, index, amount)
    return result


def is_dense(keys: int, entries: int) -> bool:
    """Whether a table of all possible keys beats sorting the entries: it does where many of the keys occur."""
    return keys <= 4 * entries + 1024


def added_by_key(key: Ints, amount: NDArray[Any] | None) -> tuple[Ints, Floats]:
    """The keys that occur, in order, and the sum of the amounts of each, which are not negative."""
    width = int(key.max(initial=-1)) + 1
    if is_dense(width, len(key)):
        sums = added(key, amount, width)
        keys = np.flatnonzero(sums if amount is None or amount.all() else np.bincount(key))
        return keys, sums[keys]
    number, first = combine([(key, width)], len(key))
    return key[first], added(number, amount, len(first))


class SumsByKey:
    """Amounts that come part by part, added up by key, where there are at most `keys` keys."""

    def __init__(self, keys: int, *, dense: int = AT_ONCE) -> None:
        """Up to so many keys as `dense` says there is a table of all of them."""
        self._table = np.zeros(keys) if keys <= dense else None
        self._known: tuple[Ints, Floats] = np.zeros(0, dtype=np.int64), np.zeros(0)

    def add(self, key: Ints, amount: Floats) -> None:
        """Add these amounts, which are above 0."""
        if self._table is not None:
            np.add.at(self._table, key, amount)
            return
        own = added_by_key(key, amount)
        both = (np.concatenate(each) for each in zip(self._known, own, strict=True))
        self._known = added_by_key(*both)

    def all(self) -> tuple[Ints, Floats]:
        """The keys that occur, in order, and the sum of each."""
        if self._table is None:
            return self._known
        keys = np.flatnonzero(self._table)
        return keys, self._table[keys]


def narrowed(numbers: NDArray[np.integer]) -> NDArray[np.integer]:
    """Whole numbers, none below 0, in the narrowest type: for long arrays that are only kept, gathered or added up."""
    most = int(numbers.max(initial=0))
    kinds = (np.uint8, np.uint16, np.int32, np.int64)
    return numbers.astype(next(kind for kind in kinds if most <= np.iinfo(kind).max), copy=False)


def run_lengths(key: Ints) -> tuple[Ints, NDArray[np.integer]]:
    """The distinct keys, in order, and how often each occurs; the array is sorted in its place."""
    key.sort()
    fresh = np.empty(len(key), dtype=bool)
    fresh[:1] = True
    np.not_equal(key[1:], key[:-1], out=fresh[1:])
    if fresh.all():
        return key, np.ones(len(key), dtype=np.uint8)
    begin = np.flatnonzero(fresh)
    return key[begin], narrowed(np.diff(begin, append=len(key)))


# -- runs: parts of an array that follow each other, of different lengths ---------------------------------------------


@dataclass(frozen=True, eq=False)
class Runs:
    """Whole numbers that never fall, 0, 0, 0, 1, 1, 2, …, held as how often each of them occurs."""

    sizes: NDArray[np.integer]  # (numbers,)

    @classmethod
    def of(cls, numbers: NDArray[np.integer], *, begin: int = 0) -> Runs:
        """From the numbers themselves, counted from `begin`; a ValueError where they are not, or not in order."""
        for some in steps(len(numbers) - 1, 1):
            if bool((numbers[some] > numbers[some.start + 1 : some.stop + 1]).any()):
                raise ValueError("the numbers are not in order")
        if len(numbers) and int(numbers[0]) < begin:
            raise ValueError(f"the numbers do not begin with {begin}")
        return cls(narrowed(counted(numbers)[begin:]) if len(numbers) else np.zeros(0, dtype=np.uint8))

    @property
    def each(self) -> NDArray[np.int32]:
        """The numbers one by one, made whenever somebody asks."""
        return np.repeat(np.arange(len(self.sizes), dtype=np.int32), self.sizes)


def starts(size: NDArray[np.integer] | Bools | Sequence[int]) -> Ints:
    """Where runs of these sizes begin, and where the last one ends: (runs + 1,)."""
    upto = np.zeros(len(size) + 1, dtype=np.int64)
    np.cumsum(size, out=upto[1:])
    return upto


def owners(size: NDArray[np.integer] | Sequence[int]) -> Ints:
    """The number of its run for each member, where run i has size[i] members: 0, 0, 0, 1, 1, 2, …"""
    return np.repeat(np.arange(len(size)), size)


def runs(begin: NDArray[np.integer] | int, size: NDArray[np.integer]) -> Ints:
    """The numbers begin[i], begin[i] + 1, …, size[i] of them, one run after the other."""
    return np.repeat(begin - (np.cumsum(size) - size), size) + np.arange(size.sum())


def runs_of(start: Ints, which: NDArray[np.integer]) -> tuple[Ints, Ints]:
    """The sizes of these runs, and the places of their members; run i is at start[i], …, start[i + 1] − 1."""
    begin = start.take(which)
    size = start.take(which + 1) - begin
    return size, runs(begin, size)


def pairs_of(start: Ints, which: NDArray[np.integer]) -> tuple[Ints, Ints]:
    """Each of these runs with each of its members: which of the runs given it is, and the place of the member."""
    size, place = runs_of(start, which)
    return owners(size), place


def sorted_by(code: NDArray[np.integer], codes: int) -> tuple[Ints, Ints]:
    """The members in the order of their codes, and where the run of each code begins: (members,), (codes + 1,)."""
    return np.argsort(code, kind="stable"), starts(np.bincount(code, minlength=codes))


# -- parts, so that what is held together fits into memory ------------------------------------------------------------


def portions(work: NDArray[np.integer], at_once: int | None = None) -> list[slice]:
    """The rows cut so that each part has about `at_once` pairs; `work` is the pairs of each row."""
    most = at_once or AT_ONCE
    cuts = np.searchsorted(np.cumsum(work), np.arange(most, int(work.sum()), most)).tolist()
    return [slice(a, b) for a, b in pairwise([*sorted({0, *cuts}), len(work)])]


def steps(rows: int, width: int, at_once: int | None = None) -> Iterator[slice]:
    """The rows cut into equal parts, each of at most `at_once` pairs of a row with one of `width` things."""
    step = max(1, (at_once or AT_ONCE) // width)
    return (slice(begin, min(begin + step, rows)) for begin in range(0, rows, step))


# -- numbers for distinct rows ----------------------------------------------------------------------------------------


def combine(columns: Sequence[tuple[NDArray[np.integer], int]], rows: int) -> tuple[NDArray[np.int32], Ints]:
    """Number the distinct rows of several code columns (codes, how many values), in the order of their codes.

    Returns the number of each row and, for each number, the first row that has it.
    """
    space = math.prod(max(values, 1) for _, values in columns)
    key: NDArray[Any] = np.zeros(rows, dtype=np.int32 if space < 2**31 else np.int64)
    width = 1
    for codes, values in columns:
        wider = width * max(values, 1)
        if wider >= _WIDEST or 1 < width <= _tabled(rows) < wider:  # what occurs so far may well fit into a table
            number, width = _numbered(key, width)
            key = number.astype(key.dtype)
        key *= max(values, 1)
        np.add(key, codes, out=key, casting="unsafe")  # a sum is below the width, whatever type the codes have
        width *= max(values, 1)
    number, count = _numbered(key, width)
    first = np.zeros(count, dtype=np.int64)
    for some in [*steps(rows, 1, _PIECE)][::-1]:
        first[number[some][::-1]] = np.arange(some.stop - 1, some.start - 1, -1)
    return number, first


def found_among(
    known: Sequence[NDArray[np.integer]], asked: Sequence[NDArray[np.integer]], widths: Sequence[int], rows: int
) -> Ints:
    """The place of each asked row of codes among the known ones, which are distinct; -1 where it is none of them.

    Both are given by column, `rows` is the number of both together.
    """
    number, first = combine(
        [(np.concatenate(both), width) for *both, width in zip(known, asked, widths, strict=True)], rows
    )
    place = np.full(len(first), -1)
    many = len(known[0]) if known else 1
    place[number[:many]] = np.arange(many)
    return place[number[many:]]


def _tabled(rows: int) -> int:
    """The largest key space that is looked up in a table, for this number of rows."""
    return min(_TABLED, 8 * rows + 1024)


def _numbered(key: NDArray[np.integer], width: int) -> tuple[NDArray[np.int32], int]:
    """Number the distinct keys, all below the width, in their order, in their place if it is wide enough; how many."""
    if width <= _tabled(len(key)):
        present = np.zeros(width, dtype=bool)
        present[key] = True
        rank = np.cumsum(present, dtype=np.int32)
        rank -= 1
        return _ranked(rank, key, key), int(rank[-1]) + 1
    import pyarrow as pa  # here: principles need none

    encoded = pa.array(key).dictionary_encode()  # hashing the rows, then sorting only what is distinct
    keys = encoded.dictionary.to_numpy()
    rank = np.empty(len(keys), dtype=np.int32)
    rank[np.argsort(keys, kind="stable")] = np.arange(len(keys), dtype=np.int32)
    return _ranked(rank, encoded.indices.to_numpy(), key), len(keys)


def _ranked(rank: NDArray[np.int32], of: NDArray[np.integer], place: NDArray[np.integer]) -> NDArray[np.int32]:
    """The rank of each, written over `place` where its type allows."""
    number: NDArray[Any] = place if place.dtype == np.int32 else np.empty(len(of), dtype=np.int32)
    for some in steps(len(of), 1, _PIECE):
        number[some] = rank[of[some]]
    return number


# -- what a release costs the analyst: the formula of each figure, from the shares, rows or sizes that callers have ---
#
# Compiled searches (`kernels/`) add up the parts of KL-divergence and granularity themselves, group by group.


ONE = 1_000_000
"""The importance of the least important column; that of the others is at least this."""


def kl_of_shares(share: Floats, inferred: Floats) -> float:
    """KL(F ‖ F*) = Σ F log(F / F*) in nats, over the cells where the table has a share F > 0."""
    return float(np.sum(share * np.log(share / inferred)))


def kl_given(own: float, weight: Floats, inferred: Floats, total: float) -> float:
    """The same for cells of several combinations, where own = Σ F log F is known: own − Σ (weight / total) log F*."""
    return kl_given_logs(own, weight, np.log(inferred), total)


def kl_given_logs(own: float, weight: Floats, log_inferred: Floats, total: float) -> float:
    """The same from the logarithms of F*, which may be too small to be a float."""
    return own - dot(weight, log_inferred) / total


def average_size(rows: int, groups: int) -> float:
    """Rows per group; suppressed rows are one group."""
    return rows / groups


def discernibility(sizes: Floats, suppressed: int = 0, rows: int = 0) -> float:
    """Σ over rows of the rows in their group; a suppressed row counts the rows of the whole table."""
    return dot(sizes, sizes) + float(suppressed) * rows


def covered_share(rows: NDArray[Any], covered: NDArray[Any], values: int) -> float:
    """The mean over rows of (values covered − 1) / (values − 1): 0 for a single value, 1 for `*`."""
    return float(rows @ (covered - 1)) / float(rows.sum()) / max(values - 1, 1)


def loss(shares: Collection[float], weights: Sequence[float] | None = None) -> float:
    """ARX's loss: the geometric mean over columns of 1 + the share of values covered, minus 1; it may be weighted."""
    if weights is not None:
        logs = [weight * math.log1p(share) for weight, share in zip(weights, shares, strict=True)]
        return math.expm1(math.fsum(logs) / math.fsum(weights))
    return float(math.prod(1.0 + share for share in shares) ** (1.0 / len(shares)) - 1.0)


def granularity(shares: Collection[float]) -> float:
    """1 minus the mean over columns of the share of values covered."""
    return 1 - float(np.mean(list(shares)))


def dot(one: Floats, other: Floats) -> float:
    """The sum of products, added up here: sharing a short sum among threads, as `@` does, takes longer than the sum."""
    return float((one * other).sum())
