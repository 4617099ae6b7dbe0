"""What a release costs the analyst: the formula of each figure. Callers pass the shares, rows or sizes they have.

Compiled searches (`kernels/`) add up the parts of KL-divergence and granularity themselves, group by group.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jali.core.arrays import Floats

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
