"""Joint audit: what an attacker learns who holds two releases of one table (Tao et al., ANGEL, Section 4.2.1).

A world says of every row of the one release which row of the other is the same person's: one with the same sensitive
value, whose cells can hold a common point of the quasi-identifiers. All worlds, with all such points, are equally
likely; so people with a value x are matched apart from all others, and a person known to be in groups i and j has x
with probability f(x) ∝ E[m_ij(x)], m_ij(x) being how many people of both groups have x.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import lcm, prod
from pathlib import Path

import numpy as np

from jali.core.arrays import Floats, Ints, combine, steps
from jali.cover.overlap import overlap
from jali.errors import InputError
from jali.principles.counts import Counts
from jali.releases.base import Release
from jali.releases.column import Published
from jali.releases.generalized import Generalized
from jali.releases.load import load
from jali.releases.summary import an
from jali.risk.audit.joint_figures import Certain, JointAudit, JointAudits, JointBelief, Shown
from jali.risk.audit.matching import Budget, Expected, Impossible, Pair, expected

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
    unbroken = True if all_known else None
    return {repr(p): unbroken if bool(p.holds(counts).all()) else False for p in on_values}, notes


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


MOST_PAIRS = 2_000_000
"""How many pairs of groups with a value in common are looked at."""
SAME = "these releases cannot be of the same table"
ATTACKER = "the figures are for an attacker who knows somebody's quasi-identifiers and holds both releases"
STRONGER = "an attacker who knows everybody's quasi-identifiers, or how the releases were made, can learn more"


def joint(releases: Sequence[Release | str | Path]) -> JointAudit | JointAudits:
    """What an attacker who holds several releases of one table can learn, for every two of them."""
    given = [load(one) if isinstance(one, (str, Path)) else one for one in releases]
    if len(given) < 2:
        raise InputError("a joint audit needs two releases", got=f"{len(given)}", do="audit(release) is for one")
    known = [_plain(one) for one in given]
    if len(known) == 2:
        return _two(known[0], known[1], (1, 2))
    pairs = {(a + 1, b + 1): _two(known[a], known[b], (a + 1, b + 1)) for a, b in combinations(range(len(known)), 2)}
    return JointAudits(pairs, ("every two releases were joined; an attacker who joins all of them can learn more",))


def _plain(release: Release) -> Generalized:
    if not isinstance(release, Release):
        do = "pass releases or their folders"
        raise InputError("a joint audit is of releases", got=type(release).__name__, do=do)
    rows = release.grouped_rows
    if rows is None or release.hides_presence:
        why = "its promise is judged against the public table, not against a release"
        if rows is None:
            why = "its values are not tied to rows, so worlds cannot be counted value by value"
        what = f"{an(release.kind)} release cannot be audited together with another"
        raise InputError(what, do=f"{why}; audit it alone")
    if rows.people is not None:
        raise InputError("a joint audit is not defined where a person can have several rows", do="audit them alone")
    return rows


def _two(one: Generalized, two: Generalized, numbers: tuple[int, int]) -> JointAudit:
    plan = plan_of(one, two)
    sides = side_of(one, plan), side_of(two, plan)
    people = {key: sum(groups.values()) for key, groups in sides[0].people.items()}
    if people != {key: sum(groups.values()) for key, groups in sides[1].people.items()}:
        raise InputError(SAME, got="different numbers of people with a value", do="audit each alone")
    people_of: dict[Pair, dict[Key, Expected]] = defaultdict(dict)
    sure: dict[Pair, int] = defaultdict(int)
    budget, common = Budget(), [overlap(one[name].cover, two[name].cover) for name in plan.cells]
    edges = 0
    for key in sides[0].people:
        rows, columns = (side.people[key] for side in sides)
        weights = dict(weights_of(sides, plan.cells, common, list(rows), list(columns)))
        edges += len(weights)
        if edges > MOST_PAIRS:
            raise InputError(
                f"more than {MOST_PAIRS:,} pairs of groups overlap, too many to count worlds",
                do="audit releases with fewer groups",
            )
        try:
            means = expected(rows, columns, weights, budget)
        except Impossible:
            raise InputError(SAME, got="cells that do not fit each other", do="audit each alone") from None
        for pair, mean in means.items():
            if mean.high > 0:
                people_of[pair][key] = mean
        for pair, least in _at_least(rows, columns, weights):
            sure[pair] += least
    return figures_of(sides, plan, people_of, sure, numbers)


def _at_least(
    rows: dict[int, int], columns: dict[int, int], weights: dict[Pair, Fraction]
) -> Iterator[tuple[Pair, int]]:
    """How many people are in a pair of groups in every world: all but those that the group's other partners hold."""
    beside_row, beside_column = dict.fromkeys(rows, 0), dict.fromkeys(columns, 0)
    for i, j in weights:
        beside_row[i] += columns[j]
        beside_column[j] += rows[i]
    for i, j in weights:
        r, c = rows[i], columns[j]
        yield (i, j), max(0, r - (beside_row[i] - c), c - (beside_column[j] - r))


# -- what an attacker believes -----------------------------------------------------------------------------------


def figures_of(
    sides: tuple[Side, Side], plan: Plan, people_of: Mapping[Pair, Mapping[Key, Expected]], sure: Mapping[Pair, int],
    numbers: tuple[int, int],
) -> JointAudit:  # fmt: skip
    """All figures of a joint audit.

    `people_of` has the expected number of people of each key, by pair of groups that somebody can be in; `sure` how
    many are there at least; `numbers` says how the two releases are called.
    """
    worst: tuple[float, float, Pair, str, Label] | None = None
    highest, certain = 0.0, []
    for pair, by_key in people_of.items():
        for column in plan.sensitive:
            beliefs = _beliefs(by_key, plan.keys.index(column))
            for value, (low, high) in beliefs.items():
                highest = max(highest, high)
                if worst is None or low > worst[0]:
                    worst = low, high, pair, column, value
            if len(beliefs) == 1:
                certain.append((pair, column, next(iter(beliefs))))
    assert worst is not None  # a release has rows
    low, high, pair, column, value = worst
    given = [Certain(_shown(sides, p), name, v, sure[p], _mean(people_of[p])) for p, name, v in certain]
    known = {pair: {key: m.high for key, m in keys.items()} for pair, keys in people_of.items() if _known(keys)}
    kept: dict[str, bool | None] = {}
    notes = [ATTACKER, STRONGER, *_notes(sides, plan)]
    for number, side in zip(numbers, sides, strict=True):
        promises, more = kept_by(side.release, plan.keys, list(known.values()), all_known=len(known) == len(people_of))
        kept |= {f"{promise} of release {number}": verdict for promise, verdict in promises.items()}
        notes += [note for note in more if note not in notes]
    return JointAudit(
        people=sides[0].release.rows,
        cells=len(people_of),
        exact_cells=len(known),
        alone=tuple(_alone(side.release, plan.sensitive) for side in sides),
        worst=JointBelief(_shown(sides, pair), column, value, low, high),
        largest_possible=highest,
        certain=tuple(sorted(given, key=lambda one: (-one.people, -one.expected, str(one.groups)))),
        kept=kept,
        notes=tuple(notes),
        numbers=numbers,
    )


def _beliefs(by_key: Mapping[Key, Expected], place: int) -> dict[Label, tuple[float, float]]:
    """How likely each value of one column is for somebody in a pair of groups, at least and at most."""
    low, high = defaultdict[Label, Fraction](Fraction), defaultdict[Label, Fraction](Fraction)
    for key, mean in by_key.items():
        low[key[place]] += mean.low
        high[key[place]] += mean.high
    least, most = sum(low.values(), Fraction(0)), sum(high.values(), Fraction(0))
    return {value: (_share(low[value], most - high[value]), _share(high[value], least - low[value])) for value in high}


def _share(own: Fraction, others: Fraction) -> float:
    return float(own / (own + others)) if others else 1.0


def _known(by_key: Mapping[Key, Expected]) -> bool:
    return len(by_key) == 1 or all(mean.exact for mean in by_key.values())


def _mean(by_key: Mapping[Key, Expected]) -> float:
    return float(sum((mean.low for mean in by_key.values()), Fraction(0)))


def _shown(sides: tuple[Side, Side], pair: Pair) -> tuple[Shown, Shown]:
    return sides[0].shown(pair[0]), sides[1].shown(pair[1])


def _alone(release: Generalized, sensitive: Sequence[str]) -> float:
    """The largest share of a value in a group of one release."""
    largest = 0.0
    group, first = combine([(c.codes, len(c.labels)) for c in release.of_role("quasi")], release.rows)
    size = np.bincount(group, minlength=len(first))
    for name in sensitive:
        column = release[name]
        cell, example = combine([(group, len(first)), (column.codes, len(column.labels))], release.rows)
        largest = max(largest, float((np.bincount(cell) / size[group[example]]).max()))
    return largest


def _notes(sides: tuple[Side, Side], plan: Plan) -> Iterator[str]:
    """What was assumed of these two releases."""
    both = [name for name in plan.keys if name not in plan.sensitive]
    if both:
        yield f"both releases show {', '.join(both)} as it is, so only rows that agree on it can be one person's"
    for name in plan.cells:
        covers = [side.release[name].cover for side in sides]
        if any(len(cover.anything) for cover in covers):
            yield f'a cell of "{name}" whose values are not declared was taken to fit everything'
    if any(bool(side.release.hidden_rows.any()) for side in sides):
        yield "not covered: suppressed rows fit everything here, though none of them is in a published group"
    for side in sides:
        own = [c.name for c in side.release.of_role("sensitive") if c.name not in plan.sensitive]
        if own:
            yield f"not covered: {', '.join(own)}, which one release alone has"
