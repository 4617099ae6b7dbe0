"""Buckets: how many people of each group have each value of one sensitive column, whatever they were read from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jali.core.arrays import Ints, starts
from jali.errors import InputError, nearest
from jali.principles.counts import Cells, Counts
from jali.principles.knowledge import require_single
from jali.principles.worst_case import Buckets as Worst
from jali.principles.worst_case import of_cells, of_matrix
from jali.releases.base import Release
from jali.releases.load import load
from jali.risk.disclosure.knowledge import Atom, Person
from jali.sources.matrices import counted

MOST = 1 << 48
"""The most people of a bucket with one value; sums of such counts are exact."""

FROM_0 = "Python and JSON count from 0"
"""Where a message names a number, which like the published ones counts from 1."""

What = Release | Counts | str | Path | NDArray[Any] | Sequence[Sequence[int]] | Any
"""What an attacker's chances can be computed from: a release, its folder, counts, or rows of plain counts.

Plain counts are a matrix, a list of rows, or a pandas, Polars or Arrow table whose columns are the values.
"""


@dataclass(frozen=True, eq=False)
class Plain:
    """Plain counts, as wide as they came: a matrix, and what its values are called."""

    matrix: NDArray[np.integer]  # (buckets, values)
    labels: tuple[str, ...]  # (values,)

    def counts(self, bucket: int) -> dict[int, int]:
        """How many people of a bucket have each of its values, by the value's number."""
        row = self.matrix[bucket]
        return {int(value): int(row[value]) for value in np.flatnonzero(row)}


@dataclass(frozen=True, eq=False)
class Buckets:
    """The published groups as the random worlds model sees them: in each, every arrangement of its values is as likely.

    The counts are sparse: cells start[b] to start[b + 1] are those of bucket b.
    """

    column: str
    labels: tuple[str | None, ...]  # (values,)
    start: Ints  # (buckets + 1,)
    value: Ints  # (cells,) rising within a bucket
    n: Ints  # (cells,) at least 1
    release: Release | None = None

    def __len__(self) -> int:
        return len(self.start) - 1

    @cached_property
    def size(self) -> Ints:
        """People of each bucket: (buckets,)."""
        return np.add.reduceat(self.n, self.start[:-1]).astype(np.int64)

    def counts(self, bucket: int) -> dict[int, int]:
        """How many people of a bucket have each of its values, by the value's number."""
        cells = slice(int(self.start[bucket]), int(self.start[bucket + 1]))
        return dict(zip(self.value[cells].tolist(), self.n[cells].tolist(), strict=True))

    @cached_property
    def _number(self) -> dict[str | None, int]:
        return {label: number for number, label in enumerate(self.labels)}

    @cached_property
    def _bucket_of_rows(self) -> Ints:
        """The bucket of each published row: (rows,)."""
        bucket = None if self.release is None else self.release.group_of_rows
        if bucket is None:
            raise InputError("plain counts have no rows", do="name people as Person(bucket, index)")
        return bucket.astype(np.int64)

    @cached_property
    def _rows(self) -> tuple[Ints, Ints]:
        """The published rows sorted by bucket, and where each bucket's begin."""
        group = self._bucket_of_rows
        order = np.argsort(group, kind="stable").astype(np.int64)
        return order, starts(np.bincount(group, minlength=len(self)))

    def row(self, person: Person) -> int:
        """The published row of a person."""
        order, start = self._rows
        return int(order[start[person.bucket] + person.index])

    def person(self, who: Person | int) -> Person:
        """A person of the buckets, also by published row; an error for somebody who is not there."""
        if isinstance(who, int):
            order, start = self._rows
            if who >= len(order):
                raise InputError(f"the release has no row {who + 1}", do=f"the last is row {len(order)}; {FROM_0}")
            group = int(self._bucket_of_rows[who])
            return Person(group, int(np.searchsorted(order[start[group] : start[group + 1]], who)))
        if who.bucket >= len(self):
            raise InputError(f"there is no bucket {who.bucket + 1}", do=f"the last is bucket {len(self)}; {FROM_0}")
        if who.index >= self.size[who.bucket]:
            do = f"its last is person {int(self.size[who.bucket])}; {FROM_0}"
            raise InputError(f"bucket {who.bucket + 1} has no person {who.index + 1}", do=do)
        return who

    def atom(self, atom: Atom) -> tuple[Person, int]:
        """An atom as a person of the buckets and the number of a value; an error for a value that nobody has."""
        person = self.person(atom.person)
        if atom.value not in self._number:
            known = [label for label in self.labels if label is not None]
            what = f'no value "{atom.value}" of {self.column} in the release'
            raise InputError(what, do=nearest(str(atom.value), known))
        return person, self._number[atom.value]


def buckets_of(what: What, *, sensitive: str | None = None) -> Buckets:
    """The buckets of a release, of its folder, of counts, or of plain counts.

    Values of plain counts are called as the columns of their frame, else "0", "1", ….
    """
    if isinstance(what, Buckets):
        return what
    if isinstance(what, (str, Path)):
        what = load(what)
    counts = counts_of(what, sensitive)
    if isinstance(counts, Cells):
        release = what if isinstance(what, Release) else None
        return Buckets(counts.column.name, counts.column.labels, counts.start, counts.value, counts.n, release)
    matrix = require_people(counts.matrix)
    bucket, value = np.nonzero(matrix)
    start = np.searchsorted(bucket, np.arange(len(matrix) + 1)).astype(np.int64)
    return Buckets("value", counts.labels, start, value.astype(np.int64), matrix[bucket, value].astype(np.int64))


def counts_of(what: What, sensitive: str | None) -> Cells | Plain:
    """The counts of one sensitive column, sparse; of plain counts a matrix, which `require_people` has yet to see."""
    if isinstance(what, (str, Path)):
        what = load(what)
    counts = what.counts() if isinstance(what, Release) else what
    if not isinstance(counts, Counts):
        if sensitive is not None:
            raise InputError("plain counts have no sensitive column to choose", do="leave sensitive= out")
        return plain_counts(counts)
    require_single(counts, "disclosure")
    cells = counts.known(sensitive, asked_by="disclosure")
    if not cells.groups:
        raise InputError("there is no bucket", do="give at least one")
    if cells.column.unknown is not None:
        cells = _of_somebody(cells)
    _require_filled(cells.size)
    return cells


def _of_somebody(cells: Cells) -> Cells:
    """The groups in which somebody's value is known: of the others nobody learns anything."""
    some = cells.size > 0
    if not some.any():
        raise InputError(f'nobody\'s value of "{cells.column.name}" is known', do="there is nothing to disclose")
    number = np.cumsum(some) - 1
    return replace(cells, groups=int(some.sum()), group=number[cells.group], size=cells.size[some])


def plain_counts(rows: Any) -> Plain:
    """Rows of plain counts as a matrix, filled up with zeros where they differ in length, and the names of values."""
    frame = counted(rows)
    if frame is not None:
        return Plain(whole_numbers(frame.matrix), frame.names)
    matrix = whole_numbers(rows if isinstance(rows, np.ndarray) else _filled_up(rows))
    return Plain(matrix, tuple(str(number) for number in range(matrix.shape[1])))


def whole_numbers(matrix: NDArray[Any]) -> NDArray[np.integer]:
    """A matrix of plain counts as whole numbers, in the type that they came in where it has a sign."""
    if matrix.ndim != 2 or 0 in matrix.shape:
        got = f"{matrix.ndim} dimensions" if matrix.ndim != 2 else "none"
        raise InputError("counts must be rows of numbers, one for each bucket", got=got, do="write [[2, 2, 1], [2, 1]]")
    if matrix.dtype.kind not in "iuf":
        raise InputError("counts must be whole numbers", got=str(matrix.dtype))
    if matrix.dtype.kind == "f" and not bool((np.isfinite(matrix) & (matrix == np.floor(matrix))).all()):
        raise InputError("counts must be whole numbers", do="count people, not shares")
    if matrix.dtype.kind in "uf" and matrix.max() > MOST:
        raise InputError(f"a count is above {MOST:,}", do="count people")
    return matrix if matrix.dtype.kind == "i" else matrix.astype(np.int64)


def require_people(counts: NDArray[np.integer]) -> NDArray[np.integer]:
    """The same counts; an error where they are not of people: negative ones, or a bucket with nobody in it."""
    if counts.min() < 0:
        raise InputError("counts of people cannot be negative")
    if counts.max() > MOST:
        raise InputError(f"a count is above {MOST:,}", do="count people")
    _require_filled(counts.sum(axis=1, dtype=np.int64))
    return counts


def _require_filled(size: Ints) -> None:
    empty = np.flatnonzero(size <= 0)
    if len(empty):
        raise InputError(f"bucket {int(empty[0]) + 1} is empty", do="leave empty buckets out")


def _filled_up(rows: Any) -> NDArray[Any]:
    try:
        lengths = [len(row) for row in rows]
    except TypeError:
        do = "pass a release, its folder, or rows of counts: [[2, 2, 1], [2, 1, 1, 1]]"
        raise InputError("no buckets", got=type(rows).__name__, do=do) from None
    try:
        return np.array([[*row, *[0] * (max(lengths) - len(row))] for row in rows])
    except ValueError:
        raise InputError("each count must be a single number") from None


# -- the buckets that matter -------------------------------------------------------------------------------------

MANY = 50_000
"""From this number of rows on, compiled code looks for the few rows of a matrix that matter."""


class WorstBuckets(NamedTuple):
    """Groups among which are those that matter for up to `most` facts; more facts than these disclose no more."""

    buckets: Worst
    most: int
    number: Ints  # of each group among all


def worst_buckets(counts: Cells | Plain, k: int, *, exact: bool = False) -> WorstBuckets:
    """The groups that matter for up to k facts, and up to which k these differ.

    Where a group has V values, V - 1 facts tell all: beyond the least of these numbers the disclosure stays 1. Of very
    many groups those that matter are found by floats, unless `exact`.
    """
    if isinstance(counts, Cells):
        most = min(k, int(np.bincount(counts.group).min()) - 1)
        return WorstBuckets(of_cells(counts, most + 1), most, np.arange(counts.groups))
    matrix = counts.matrix
    if len(matrix) >= MANY and not exact:
        return _of_many(matrix, k)
    most = min(k, _fewest(require_people(matrix)) - 1)
    return WorstBuckets(of_matrix(matrix, most + 1), most, np.arange(len(matrix)))


def _of_many(matrix: NDArray[np.integer], k: int) -> WorstBuckets:
    """The same for very many rows, which are looked at once, also for whether they are counts of people."""
    from jali.kernels.worst_case import few_that_matter

    few = few_that_matter(matrix, max(min(k, _fewest(matrix[: MANY // 10]) - 1), 0))
    if few.lowest < 0 or few.highest > MOST or few.fewest == 0:
        require_people(matrix)  # says what is wrong
    most = min(k, few.fewest - 1)
    return WorstBuckets(of_matrix(matrix[few.groups], most + 1), most, few.groups)


def _fewest(matrix: NDArray[np.integer]) -> int:
    """The least number of values that somebody has in a bucket."""
    return int(np.count_nonzero(matrix, axis=1).min())
