"""Entropy of groups, with and without values that need no protection."""

from __future__ import annotations

import numpy as np

from jali.principles.counts import Bools, Cells, Floats


def perplexity(cells: Cells, keep: Bools | None = None) -> Floats:
    """exp(entropy) of each group's values, or only of the cells to keep: how many equally frequent values they equal.

    exp(-Σ p log p) with p = n / Σ n. A group without such cells has 1.  (groups,)
    """
    n = cells.n if keep is None else np.where(keep, cells.n, 0)
    total = cells.add(n)
    share = n / np.maximum(total, 1)[cells.group]
    surprise = -np.log(share, out=np.zeros_like(share), where=share > 0)
    return np.exp(cells.sum(share * surprise))


def adjusted_perplexity(cells: Cells, dont_care: Bools) -> Floats:
    """exp(adjusted entropy): the largest that lowering the don't-care counts can reach (Definition 4.5).  (groups,)

    Theorem 4.1: the don't-care counts whose logarithm is below the log-entropic mean M of the sensitive counts and the
    smaller don't-care counts stay as they are (fixed), all others are lowered to e^M. With F people in fixed cells and
    K lowered values, the entropy is log(F + K e^M) - M, so that its exponential is F e^-M + K: the perplexity of the
    fixed cells, plus one for each lowered value. A group without sensitive values has nothing to protect: infinite.
    """
    careless = dont_care[cells.value]
    lowered = _lowered(cells, careless)
    extra = cells.add(lowered.astype(np.int64))
    guarded = cells.add((~careless).astype(np.int64)) > 0
    return np.where(guarded, perplexity(cells, ~lowered) + extra, np.inf)


def _lowered(cells: Cells, careless: Bools) -> Bools:
    """Which don't-care cells are lowered: Algorithm 1 in all groups side by side, a round a rank.  (cells,)"""
    log = np.log(cells.n)
    weighted = cells.sum(np.where(careless, 0.0, cells.n * log))  # (groups,) Σ n log n of the fixed cells
    people = cells.add(np.where(careless, 0, cells.n))  # (groups,) Σ n of the fixed cells
    changeable = np.flatnonzero(careless)
    changeable = changeable[np.lexsort((cells.n[changeable], cells.group[changeable]))]  # ascending in each group
    at, end = (np.searchsorted(cells.group[changeable], np.arange(cells.groups), side) for side in ("left", "right"))
    lowered = careless.copy()
    active = np.flatnonzero(at < end)
    while len(active):
        cell = changeable[at[active]]
        stays = log[cell] * people[active] < weighted[active]  # log n < M, the log-entropic mean of the fixed cells
        active, cell = active[stays], cell[stays]
        lowered[cell] = False
        people[active] += cells.n[cell]
        weighted[active] += cells.n[cell] * log[cell]
        at[active] += 1
        active = active[at[active] < end[active]]
    return lowered
