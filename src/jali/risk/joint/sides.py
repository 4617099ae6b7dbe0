"""Two releases compared: columns they share, groups that can hold a common point, promises of both."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm, prod

import numpy as np

from jali.core.arrays import Floats, Ints, combine, steps
from jali.errors import InputError
from jali.principles.base import Principle
from jali.principles.counts import Counts
from jali.releases.column import Published
from jali.releases.generalized import Generalized
from jali.risk.joint.figures import Shown
from jali.risk.joint.matching import Pair

Label = str | None
Key = tuple[Label, ...]
"""The values that two rows must share to be one person's: sensitive ones, and others that both releases show."""


@dataclass(frozen=True)
class Side:
    """One of the two releases: its groups, and how many rows of each have each key."""

    release: Generalized
    columns: tuple[Published, ...]  # that tell groups apart
    first: Ints  # (groups,) one row of each
    people: dict[Key, dict[int, int]]  # key → group → rows

    def shown(self, group: int) -> Shown:
        row = int(self.first[group])
        return {c.name: c.labels[int(c.codes[row])].as_py() for c in self.columns}


@dataclass(frozen=True)
class Plan:
    """What two releases share."""

    cells: tuple[str, ...]  # columns whose cells must be able to hold a common value
    keys: tuple[str, ...]  # columns whose values must be the same
    sensitive: tuple[str, ...]  # the keys that nobody should learn


def plan_of(one: Generalized, two: Generalized) -> Plan:
    """Which columns of the two releases say something of each other."""
    cells: list[str] = []
    keys: list[str] = []
    sensitive: list[str] = []
    other = {column.name: column for column in two.columns}
    for column in one.columns:
        if column.name not in other:
            continue
        roles = {column.role, other[column.name].role}
        if roles == {"quasi", "sensitive"}:
            raise InputError(
                f'column "{column.name}" is sensitive in one release and a quasi-identifier in the other',
                do="give it the same role in both",
            )
        if column.kind != other[column.name].kind:
            got = f"{column.kind} and {other[column.name].kind}"
            raise InputError(f'column "{column.name}" has different kinds of values in the releases', got=got)
        (cells if "quasi" in roles else keys).append(column.name)
        sensitive += [column.name] if "sensitive" in roles else []
    if not sensitive:
        raise InputError("the releases have no sensitive column in common, so they say nothing of each other's values")
    return Plan(tuple(cells), tuple(keys), tuple(sensitive))


def side_of(release: Generalized, plan: Plan) -> Side:
    columns = tuple(c for c in release.columns if c.role == "quasi" or c.name in plan.cells)
    group, first = combine([(c.codes, len(c.labels)) for c in columns], release.rows)
    keys = [release[name] for name in plan.keys]
    value, example = combine([(c.codes, len(c.labels)) for c in keys], release.rows)
    labels = [c.labels.to_pylist() for c in keys]
    names = [tuple(texts[c.codes[row]] for c, texts in zip(keys, labels, strict=True)) for row in example.tolist()]
    people: dict[Key, dict[int, int]] = defaultdict(dict)
    both, rows = np.unique(value.astype(np.int64) * len(first) + group, return_counts=True)
    for number, n in zip(both.tolist(), rows.tolist(), strict=True):
        people[names[number // len(first)]][number % len(first)] = n
    return Side(release, columns, first, dict(people))


def weights_of(
    sides: tuple[Side, Side], cells: Sequence[str], common: Sequence[Floats], rows: list[int], columns: list[int]
) -> Iterator[tuple[Pair, Fraction]]:
    """The pairs of these groups that can hold a common point, and how many points they can."""
    nodes = [
        [side.release[name].codes[side.first[groups]].astype(np.int64) for name in cells]
        for side, groups in zip(sides, (rows, columns), strict=True)
    ]
    for part in steps(len(rows), len(columns)):
        some = [codes[part] for codes in nodes[0]]
        fits = np.ones((len(rows[part]), len(columns)), dtype=bool)
        for a, b, both in zip(some, nodes[1], common, strict=True):
            fits &= both[np.ix_(a, b)] > 0
        i, j = np.nonzero(fits)
        factors = [both[a[i], b[j]].tolist() for a, b, both in zip(some, nodes[1], common, strict=True)]
        for n, (row, column) in enumerate(zip(i.tolist(), j.tolist(), strict=True)):
            yield (rows[part.start + row], columns[column]), Fraction(prod(Fraction(factor[n]) for factor in factors))


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
