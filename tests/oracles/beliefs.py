"""Beliefs by counting worlds, as the proof of Theorem 3.1 does: every table that could have been drawn."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from fractions import Fraction

Joint = Mapping[tuple[str, str], Fraction]  # f(q, s)


def prior(joint: Joint, q: str, s: str) -> Fraction:
    """f(s | q)."""
    return joint.get((q, s), Fraction(0)) / sum(f for (other, _), f in joint.items() if other == q)


def posterior(
    joint: Joint, published: Counter[tuple[str, str]], shown: Callable[[str], str], q: str
) -> dict[str, Fraction]:
    """What is believed of somebody with q who is in the table, by sensitive value.

    A world draws each row of the table from the population; the first row is Alice's. Only worlds in which she has q
    and which, generalized, are what was published, are possible.
    """
    believed: dict[str, Fraction] = defaultdict(Fraction)
    rows = sum(published.values())
    for world in itertools.product(joint, repeat=rows):
        if world[0][0] != q or Counter((shown(own), s) for own, s in world) != published:
            continue
        mass = Fraction(1)
        for row in world:
            mass *= joint[row]
        believed[world[0][1]] += mass
    total = sum(believed.values())
    return {s: mass / total for s, mass in believed.items()} if total else {}


def in_boxes(joint: Joint, published: list[tuple[frozenset[str], str]], q: str) -> dict[str, Fraction]:
    """The same where each published row says only that its person lies in a box: boxes may overlap.

    A world gives every row somebody of the population with its value and inside its box; Alice, who has q, is any of
    the rows that have q, equally likely.
    """
    believed: dict[str, Fraction] = defaultdict(Fraction)
    people = [[(own, s) for own, s in joint if own in box and s == value] for box, value in published]
    for world in itertools.product(*people):
        mass = Fraction(1)
        for row in world:
            mass *= joint[row]
        for own, s in world:
            if own == q:
                believed[s] += mass
    total = sum(believed.values())
    return {s: mass / total for s, mass in believed.items()} if total else {}
