"""Whose promise a belief breaks: a person's beliefs are put in the place of the shares of the group."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import lcm

import numpy as np

from jali.core.arrays import Bools, Floats, Ints
from jali.principles import Safety
from jali.principles.base import Principle, exact
from jali.risk.attacks.enumerated import Belief, given_facts
from jali.risk.attacks.replay import People

SHARES = 2**40
"""Beliefs are judged as so many people; where fractions fit they are exact."""
LEAST = 2**20
"""So many at least, so that no promise about sizes is in the way."""


def as_people(chance: Sequence[Sequence[Fraction]]) -> Ints:
    """Beliefs as numbers of people, row by row: (rows, values)."""
    rows = np.zeros((len(chance), len(chance[0])), dtype=np.int64)
    for row, shares in enumerate(chance):
        whole = lcm(*(share.denominator for share in shares))
        whole = whole * -(-LEAST // whole) if whole <= SHARES else 0
        if whole:
            rows[row] = [int(share * whole) for share in shares]
        else:  # rounded so that what is possible stays possible
            rows[row] = [-(-share.numerator * SHARES // share.denominator) for share in shares]
    return rows


def shrunk(chance: Floats, published: Floats, margin: Floats) -> Ints:
    """Estimated beliefs moved towards the published ones by their margins, as numbers of people: (rows, values)."""
    moved = np.where(chance > published, np.maximum(chance - margin, published), np.minimum(chance + margin, published))
    moved = moved / np.maximum(moved.sum(axis=1, keepdims=True), 1e-300)
    return np.asarray(np.ceil(moved * SHARES), dtype=np.int64)


def breaks(people: People, rows: Ints, principles: Sequence[Principle]) -> Bools:
    """Whose beliefs, as numbers of people, break a promise: (rows,). Safety is judged without facts."""
    counts = people.judge(rows)
    broken = np.zeros(len(rows), dtype=bool)
    for principle in principles:
        plain = Safety(principle.c, 0, sensitive=principle.sensitive) if isinstance(principle, Safety) else principle
        broken |= ~plain.alone(counts)
    return broken


def breaks_given_facts(people: People, belief: Belief, principles: Sequence[Principle]) -> Bools:
    """Of whom somebody who knows k more facts is too sure, as Safety(c, k) promises: (slots,), each one person."""
    f = people.table.frequencies
    joint = f.counts(np.zeros(f.combinations, dtype=np.int64), 1)
    broken = np.zeros(people.slots, dtype=bool)
    for principle in principles:
        if not isinstance(principle, Safety) or principle.k == 0:
            continue
        at = joint.sensitive.index(joint.column(principle.sensitive))
        column = joint.joint[people.judged, at]
        for slot in range(people.slots):
            chances = (given_facts(belief, column, slot, value, principle.k) for value in set(column.tolist()))
            broken[slot] |= max(chances) >= exact("c", principle.c)
    return broken
