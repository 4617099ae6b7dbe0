"""Whether a release's promises still hold for whoever is in a pair of groups of two releases."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import lcm

import numpy as np

from jali.principles.base import Principle
from jali.principles.counts import Counts
from jali.releases.generalized import Generalized

Label = str | None
FEWEST, MOST = 1 << 20, 1 << 31
"""Shares are judged as counts of that many people: more than any k asks for, and products with parameters fit."""


def kept_by(
    release: Generalized, keys: Sequence[str], pairs: Sequence[Mapping[tuple[Label, ...], Fraction]], *, all_known: bool
) -> tuple[dict[str, bool | None], list[str]]:
    """Each promise on the distribution of values in every pair of groups, None where not decided; and notes.

    `pairs` are the expected counts by the values of `keys`, of those pairs whose counts are known.
    """
    on_values = [p for p in release.principles if p.scope == "group" and not p.judges_size_alone]
    notes = [
        f"{promise!r} was not judged for both releases together: it is not about the values in one group"
        for promise in release.principles
        if promise not in on_values
    ]
    if any(column.name not in keys for column in release.of_role("sensitive")):
        return {repr(promise): None for promise in on_values}, notes
    if not on_values:
        return {}, notes
    counts = _counts(release, keys, pairs)
    return {repr(promise): _verdict(promise, counts, all_known=all_known) for promise in on_values}, notes


def _verdict(promise: Principle, counts: Counts, *, all_known: bool) -> bool | None:
    if not bool(promise.holds(counts).all()):
        return False
    return True if all_known else None


def _counts(release: Generalized, keys: Sequence[str], pairs: Sequence[Mapping[tuple[Label, ...], Fraction]]) -> Counts:
    """The pairs as groups of many people with the same shares of values, compared with the release's own table."""
    own = release.counts()
    number = {tuple(values): n for n, values in enumerate(own.joint.tolist())}
    judged = []
    for column in release.of_role("sensitive"):
        assert column.judged is not None
        place = dict(zip(column.labels.to_pylist(), column.judged[1].tolist(), strict=True))
        judged.append((keys.index(column.name), place))
    group, value, n = [], [], []
    for at, by_key in enumerate(pairs):
        shares = defaultdict[int, Fraction](Fraction)
        for key, mean in by_key.items():
            shares[number[tuple(place[key[index]] for index, place in judged)]] += mean
        for joint, people in _people(shares).items():
            group.append(at)
            value.append(joint)
            n.append(people)
    at_group, at_value, people_of = (np.array(part, dtype=np.int64) for part in (group, value, n))
    return Counts(len(pairs), at_group, at_value, people_of, own.sensitive, own.joint, whole=own)


def _people(shares: Mapping[int, Fraction]) -> dict[int, int]:
    """Whole numbers in the same proportions; rounded where no fewer than MOST people have them exactly."""
    scale = Fraction(lcm(*(share.denominator for share in shares.values())))
    total = sum(shares.values(), Fraction(0))
    if total * scale > MOST:
        scale = MOST / total
    elif total * scale < FEWEST:
        scale *= -(-FEWEST // int(total * scale))
    return {joint: max(1, round(share * scale)) for joint, share in shares.items()}
