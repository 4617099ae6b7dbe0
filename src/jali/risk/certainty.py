"""Certainty: which unknown counts are the same in every world that fits what an attacker knows."""

from __future__ import annotations

import numpy as np

from jali.principles.counts import Bools, Ints
from jali.programs import TOLERANCE, Sums

GAP = 0.2
"""A world that is nearly as far away as any will do: it is only asked what differs there."""


def certain(worlds: Sums, at: Ints, asked: Bools, *, deadline: float) -> tuple[Bools, bool]:
    """Which of the unknowns asked for are what `at` says in every world, each of them 0 or the most that it can be.

    Each program looks for a world that is as far as possible from `at`; what differs there is not certain, and once
    nothing can differ the rest is proved. The flag says that time was enough: otherwise what is left is not proved,
    and nothing is called certain. Where no world fits at all, everything stays as it was asked.
    """
    assert worlds.most is not None
    still = asked.copy()
    gap = GAP
    while still.any():
        away = np.where(at > 0, -1.0, 1.0) * still
        found = worlds.best(away, deadline=deadline, gap=gap)
        if found is None or found.limit - float(away @ at) < 1 - TOLERANCE:
            return still, True
        differs = still & (False if found.x is None else np.abs(found.x - at) > 0.5)
        if differs.any():
            still &= ~differs
        elif gap == 0:  # time ran out
            return np.zeros_like(asked), False
        else:
            gap = 0.0
    return still, True
