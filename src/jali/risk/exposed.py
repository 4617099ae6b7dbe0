"""Exposed: of whom an attacker can be surest, how many people that is in all, and what a guess would be without."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from jali.core.arrays import Ints, counted
from jali.principles.counts import Cells, Counts
from jali.risk.audit.figures import NEARLY, AngelAudit, Audit
from jali.risk.policy import EXPOSING

if TYPE_CHECKING:
    from jali.releases.base import Release

MIXED = 1e-5
"""Beliefs of mixtures and of maximum entropy are rounded: only those that are below by this much surely are."""


@dataclass(frozen=True)
class Surest:
    """The group in which one value of a sensitive column is most frequent, and that value."""

    column: str
    value: str
    share: float  # of the group's people have it: what an attacker believes
    everybody: float | None  # of all published people have it; None where people can have several values
    group: int
    people: int  # of the group
    as_sure: int  # people of all groups in which some value has this share


@dataclass(frozen=True)
class Exposed:
    """Groups of which nearly everybody has one value: whoever finds somebody's group knows it."""

    column: str
    people: int
    groups: tuple[int, ...]  # the largest first
    sizes: tuple[int, ...]
    values: tuple[str, ...]  # that are known of them, the most people first
    certain: bool  # whether everybody in these groups has the value, not only nearly


def worst_of(cells: Cells, most: int) -> Ints:
    """The groups in which one value has the largest share; among equals the larger, then the earlier published."""
    share = cells.largest(cells.n) / np.maximum(cells.size, 1)
    order = np.lexsort((np.arange(cells.groups), -cells.size, -np.round(share, 12)))
    return order[cells.size[order] > 0][:most]


def surest(counts: Counts, column: str) -> Surest | None:
    """Of whom an attacker who finds the group can be surest; None where nobody's value is known."""
    cells = counts.known(column)
    if not (chosen := worst_of(cells, 1)).size:
        return None
    at = int(chosen[0])
    own = slice(int(cells.start[at]), int(cells.start[at + 1]))
    best = int(cells.n[own].argmax())
    value, all_people = int(cells.value[own][best]), max(int(cells.reference.sum()), 1)
    size, most = int(cells.size[at]), int(cells.n[own][best])
    as_sure = int(cells.size[cells.largest(cells.n) * size == cells.size * most].sum())
    return Surest(column, _text(cells, value), most / max(size, 1),
                  None if cells.several else int(cells.reference[value]) / all_people, at, size, as_sure)  # fmt: skip


def exposed(counts: Counts, column: str) -> Exposed:
    """The people whose group has (nearly) one value, by the share from which an audit calls it so."""
    cells = counts.known(column)
    largest = cells.largest(cells.n)
    which = np.flatnonzero((cells.size > 0) & (largest * 20 >= cells.size * 19))
    which = which[np.lexsort((which, -cells.size[which]))]
    order = np.lexsort((-cells.n, cells.group))  # each group's cells, its most frequent value first
    value = cells.value[order][cells.start[which]]
    people = counted(value, cells.size[which], len(cells.column))
    known = sorted(np.unique(value).tolist(), key=lambda at: (-int(people[at]), _text(cells, at)))
    values = tuple(_text(cells, at) for at in known)
    size = cells.size[which]
    return Exposed(column, int(size.sum()), tuple(which.tolist()), tuple(size.tolist()), values,
                   bool((largest[which] == size).all()))  # fmt: skip


def once_ruled_out(cells: Cells) -> Ints:
    """Of how many people of its group each value may be, once the likeliest other one is ruled out: (cells,).

    The belief in a value is then its people by these. Everybody must have one value.
    """
    order = np.lexsort((-cells.n, cells.group))
    ranked = cells.n[order]
    begin = cells.start[cells.group]  # cells of a group stand together, so that their places are those of its ranks
    second = np.where(cells.start[cells.group + 1] - begin > 1, ranked[np.minimum(begin + 1, len(ranked) - 1)], 0)
    first = np.zeros(len(order), dtype=bool)
    first[order[begin]] = True
    return cells.size[cells.group] - np.where(first, second, ranked[begin])


def _text(cells: Cells, value: int) -> str:
    label = cells.column.labels[value]
    return "missing" if label is None else str(label)


# -- what published tables tell of each attack -----------------------------------------------------------------------


def exposed_by_groups(name: str, audit: Audit, release: Release | None) -> float | None:
    """What the published tables alone tell of an attack; None where they do not (decision 110).

    In groups of which no value has nearly all people nobody is exposed, neither by the group nor by a mixture of
    several, which is no purer than its parts. So it is with batches, and with cells of marginals.
    """
    if name not in EXPOSING:
        return None
    if not audit.sensitive:
        return 0.0 if not (release is not None and release.hides_presence) else None
    if release is not None and release.collected is not None:
        return _by_marginals(name, audit)
    if audit.angel is not None:
        return _by_batches(name, audit, audit.angel)
    if name == "linkage" and all(s.largest_share < NEARLY for s in audit.sensitive):
        return 0.0
    if name == "linkage" and not (release is None or _one_group_each(release)):
        return None
    exposed = [s.ruled_out if name == "background knowledge" else s.nearly_homogeneous for s in audit.sensitive]
    people = [one.people for one in exposed if one is not None]
    if len(people) < len(exposed):
        return None
    return min(1.0, max(people) / max(audit.people, 1))  # who is in several such groups counts in each


def _one_group_each(release: Release) -> bool:
    """Whether everybody can be in one group only, so that looking people up finds it: each column is at one level."""
    levels = {column.name for column in release.of_role("quasi")} <= {*release.levels}
    return levels and release.grouped_rows is not None and release.manifest.method.get("by") != "tuples"


def _by_batches(name: str, audit: Audit, angel: AngelAudit) -> float | None:
    """Nobody, where the mixture of batches that any bucket shows gives no value nearly all of the belief.

    In several tables the batches that are left for somebody may be fewer: each of them must have two values.
    """
    columns = [s.column for s in audit.sensitive]
    beliefs = angel.ruled_out if name == "background knowledge" else angel.largest_share
    left = name != "linkage" or angel.tables == 1 or all(s.distinct_l > 1 for s in audit.sensitive)
    return 0.0 if left and all(beliefs.get(column, 1.0) < NEARLY - MIXED for column in columns) else None


def _by_marginals(name: str, audit: Audit) -> float | None:
    """Nobody, where no cell gives a value nearly all of the belief; r₁ / (r₃ + …) tells it once one is ruled out.

    Who knows everybody's quasi-identifiers may combine the marginals further: linkage needs the original.
    """
    if name == "homogeneity":
        return 0.0 if all(s.largest_share < NEARLY - MIXED for s in audit.sensitive) else None
    if name == "background knowledge":
        rest = [s.recursive_c.get(3, math.inf) for s in audit.sensitive]
        return 0.0 if all(c < (NEARLY - MIXED) / (1 - NEARLY + MIXED) for c in rest) else None
    return None
