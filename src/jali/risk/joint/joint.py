"""Joint audit: what an attacker learns who holds two releases of one table (Tao et al., ANGEL, Section 4.2.1).

A world says of every row of the one release which row of the other is the same person's: one with the same sensitive
value, whose cells can hold a common point of the quasi-identifiers. All worlds, with all such points, are equally
likely; so people with a value x are matched apart from all others, and whoever is known to be in groups i and j has x
with probability f(x) ∝ E[m_ij(x)], m_ij(x) being how many people of both groups have x.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations
from pathlib import Path

from jali.cover.overlap import overlap
from jali.errors import InputError
from jali.releases.base import Release
from jali.releases.concealed import Concealed
from jali.releases.generalized import Generalized
from jali.releases.load import load
from jali.releases.summary import an
from jali.risk.joint.beliefs import figures_of
from jali.risk.joint.figures import JointAudit, JointAudits
from jali.risk.joint.matching import Budget, Expected, Impossible, Pair, expected
from jali.risk.joint.sides import Key, plan_of, side_of, weights_of

MOST_PAIRS = 2_000_000
"""How many pairs of groups with a value in common are looked at."""
SAME = "these releases cannot be of the same table"


def joint(releases: Sequence[Release | str | Path]) -> JointAudit | JointAudits:
    """What an attacker who holds several releases of one table can learn, for every two of them."""
    found = [load(one) if isinstance(one, (str, Path)) else one for one in releases]
    if len(found) < 2:
        raise InputError("a joint audit needs two releases", got=f"{len(found)}", do="audit(release) is for one")
    known = [_plain(one) for one in found]
    if len(known) == 2:
        return _two(known[0], known[1], (1, 2))
    pairs = {(a + 1, b + 1): _two(known[a], known[b], (a + 1, b + 1)) for a, b in combinations(range(len(known)), 2)}
    return JointAudits(pairs, ("every two releases were joined; an attacker who joins all of them can learn more",))


def _plain(release: Release) -> Generalized:
    if not isinstance(release, Release):
        raise InputError(
            "a joint audit is of releases", got=type(release).__name__, do="pass releases or their folders"
        )
    if not isinstance(release, Generalized):
        raise InputError(
            f"{an(release.kind)} release cannot be audited together with another",
            do="its values are not tied to rows, so worlds cannot be counted value by value; audit it alone",
        )
    if isinstance(release, Concealed):
        raise InputError(
            "a concealed release cannot be audited together with another",
            do="its promise is judged against the public table, not against a release; audit it alone",
        )
    if release.people is not None:
        raise InputError("a joint audit is not defined where a person can have several rows", do="audit them alone")
    return release


def _two(one: Generalized, two: Generalized, numbers: tuple[int, int]) -> JointAudit:
    plan = plan_of(one, two)
    sides = side_of(one, plan), side_of(two, plan)
    people = {key: sum(groups.values()) for key, groups in sides[0].people.items()}
    if people != {key: sum(groups.values()) for key, groups in sides[1].people.items()}:
        raise InputError(SAME, got="different numbers of people with a value", do="audit each alone")
    found: dict[Pair, dict[Key, Expected]] = defaultdict(dict)
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
                found[pair][key] = mean
        for pair, least in _at_least(rows, columns, weights):
            sure[pair] += least
    return figures_of(sides, plan, found, sure, numbers)


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
