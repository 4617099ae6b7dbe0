"""The few buckets that a worst attack can be about, from sparse counts or from a matrix of very many rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jali.principles.counts import Cells, Ints
from jali.principles.worst_case import Buckets, of_cells, of_matrix
from jali.risk.disclosure.buckets import MOST, Plain, require_people

MANY = 50_000
"""From so many rows of a matrix on, compiled code looks for the few that matter."""


class WorstBuckets(NamedTuple):
    """Groups among which are those that matter for up to `most` facts; more facts than these disclose no more."""

    buckets: Buckets
    most: int
    number: Ints  # of each group among all


def worst_buckets(found: Cells | Plain, k: int, *, exact: bool = False) -> WorstBuckets:
    """The groups that matter for up to k facts, and up to which k these differ.

    Where a group has V values, V - 1 facts tell all: beyond the least of these numbers the disclosure stays 1. Of very
    many groups those that matter are told by floats, unless `exact`.
    """
    if isinstance(found, Cells):
        most = min(k, int(np.bincount(found.group).min()) - 1)
        return WorstBuckets(of_cells(found, most + 1), most, np.arange(found.groups))
    matrix = found.matrix
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
