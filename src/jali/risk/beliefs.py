"""Beliefs before and after (l-diversity, Section 3), and of whom an attacker can be surest."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from jali.core.arrays import Floats, Ints, combine, counted
from jali.core.formats import to_native
from jali.core.text import lines_of
from jali.encoding.large import LargeTable
from jali.encoding.table import Table
from jali.errors import InputError
from jali.principles.counts import Cells, Counts
from jali.releases.base import Release
from jali.releases.column import node_numbers
from jali.releases.generalized import Generalized
from jali.releases.load import release_of
from jali.releases.summary import an
from jali.risk.attacks.links import links
from jali.risk.audit.figures import NEARLY, AngelAudit, Audit
from jali.risk.policy import EXPOSING

if TYPE_CHECKING:
    from jali.releases.base import Release


@dataclass(frozen=True, eq=False)
class Beliefs:
    """Prior and posterior belief of each sensitive value, for each quasi-identifier combination in the population."""

    quasi: pa.Table  # (combinations) whose group was published
    column: str
    values: tuple[str | None, ...]
    prior: Floats  # (combinations, values) f(s | q)
    posterior: Floats  # (combinations, values) β of Theorem 3.1
    possible: NDArray[np.bool_]  # (combinations, values) whether somebody of the population has q and s
    outside: int  # combinations of the population whose group the release does not have

    @cached_property
    def largest_change(self) -> float:
        """The largest |posterior − prior|."""
        return float(np.abs(self.posterior - self.prior).max(initial=0.0))

    def positive(self, delta: float = 0.05) -> pa.Table:
        """Positive disclosures: posterior above 1 − δ for a value that somebody there has (Definition 3.1)."""
        return self._rows((self.posterior > 1 - delta) & self.possible)

    def negative(self, epsilon: float = 0.05) -> pa.Table:
        """Negative disclosures: posterior below ε where somebody there has another value (Definition 3.2)."""
        others = self.possible.sum(axis=1, keepdims=True) - self.possible > 0
        return self._rows((self.posterior < epsilon) & others)

    def breaches(self, rho1: float, rho2: float) -> pa.Table:
        """(ρ1, ρ2)-breaches: from below ρ1 to above ρ2, or from above 1 − ρ1 to below 1 − ρ2 (Definition 3.3)."""
        if not 0 <= rho1 <= rho2 <= 1:
            raise InputError("(ρ1, ρ2): 0 ≤ ρ1 ≤ ρ2 ≤ 1", got=f"({rho1}, {rho2})")
        up = (self.prior < rho1) & (self.posterior > rho2)
        down = (self.prior > 1 - rho1) & (self.posterior < 1 - rho2)
        return self._rows(up | down)

    def frame(self, kind: str = "arrow") -> Any:
        """Every combination and value with both beliefs."""
        return to_native(self._rows(np.ones(self.prior.shape, dtype=bool)), kind)

    def _rows(self, which: NDArray[np.bool_]) -> pa.Table:
        row, value = np.nonzero(which)
        columns = {name: self.quasi[name].take(pa.array(row)) for name in self.quasi.column_names}
        labels = pa.array(self.values, pa.string()).take(pa.array(value))
        return pa.table(columns | {self.column: labels, "prior": self.prior[which], "posterior": self.posterior[which]})

    def to_dict(self) -> dict[str, Any]:
        """The figures, without single combinations."""
        return {
            "column": self.column,
            "combinations": self.quasi.num_rows,
            "outside": self.outside,
            "largest_change": self.largest_change,
            "positive_disclosures": self.positive().num_rows,
            "negative_disclosures": self.negative().num_rows,
        }

    def __repr__(self) -> str:
        rows = [
            ("sensitive column", self.column),
            ("combinations of quasi-identifiers", f"{self.quasi.num_rows:,}"),
            ("of the population, outside the release", f"{self.outside:,}"),
            ("largest change of belief", f"{self.largest_change:.4f}"),
            ("positive disclosures (above 95 %)", f"{self.positive().num_rows:,}"),
            ("negative disclosures (below 5 %)", f"{self.negative().num_rows:,}"),
        ]
        return "\n".join(lines_of(rows))


def beliefs(
    release: Release | str | Path,
    population: Table | Any,
    *,
    sensitive: str | None = None,
    frequency: str = "frequency",
) -> Beliefs:
    """Prior and posterior beliefs of an attacker who knows the population's joint frequencies (Theorem 3.1).

    Where groups overlap, as boxes of local recoding do, a person can be in any of those that cover them.
    `population` is a table (with weights, if they are its frequencies), or a frame of quasi-identifiers, the sensitive
    column and a column of joint frequencies.
    """
    given = release_of("beliefs", release)
    if isinstance(population, LargeTable):
        raise population.refused("beliefs")
    rows = given.grouped_rows
    if rows is None:
        raise InputError(f"beliefs are not defined for {an(given.kind)} release")
    if any(column.distributions is not None for column in rows.of_role("quasi")):
        what = "beliefs are not defined where cells show distributions, which say more than the boxes they cover"
        raise InputError(what, do='show intervals, sets or a taxonomy: show="set"')
    counts = rows.counts()
    column = counts.column(sensitive, asked_by="beliefs").name
    if not isinstance(population, Table):
        population = _population(rows, population, column, frequency)
    codes, joint = _joint(population, column)
    there = joint.sum(axis=1) > 0  # a combination of frequency 0 is nobody's
    codes, joint = codes[there], joint[there]
    owner, group = _groups(rows, population, codes, there)
    known = np.bincount(owner, minlength=len(codes)) > 0
    place = np.cumsum(known) - 1  # of each combination among those that are known
    labels, n = _published(rows, population, column)
    prior, posterior = _theorem(joint[known], place[owner], group, n)
    quasi = {c.name: c.labels.take(pa.array(codes[known, i])) for i, c in enumerate(population.quasi)}
    return Beliefs(pa.table(quasi), column, labels, prior, posterior, joint[known] > 0, int((~known).sum()))


def _population(release: Generalized, frame: Any, column: str, frequency: str) -> Table:
    from jali.measures.holder import builders
    from jali.sources.tables import table

    return table(frame, quasi=builders(release), sensitive=[column], weights=frequency)


def _joint(population: Table, column: str) -> tuple[NDArray[np.int32], Floats]:
    """The population's combinations and f(q, s): (combinations, values)."""
    frequencies = population.frequencies
    names = [c.name for c in population.sensitive]
    if column not in names:
        raise InputError(f'the population has no sensitive column "{column}"', do="name it: sensitive=[…]")
    index = names.index(column)
    value = frequencies.joint[frequencies.value, index]
    width = len(population[column].values)
    joint = np.bincount(
        frequencies.combination * width + value, weights=frequencies.weight, minlength=frequencies.combinations * width
    )
    return frequencies.codes, joint.astype(np.float64).reshape(frequencies.combinations, width)


def _groups(
    release: Generalized, population: Table, codes: NDArray[np.int32], there: NDArray[np.bool_]
) -> tuple[Ints, Ints]:
    """The published groups that cover each combination, as pairs: of a lattice node at most one, of boxes several.

    A combination that no group covers is among the suppressed rows, if there are any.
    """
    if not any(column.generalized_by_group for column in release.of_role("quasi")):
        group = _nodes(release, population, codes)
        owner, hidden = np.flatnonzero(group >= 0), release.hidden_groups[:1]
        single = release.manifest.method.get("by") == "tuples"  # then everybody can be among the suppressed
        more = owner[group[owner] != hidden] if single and len(hidden) else owner[:0]
        return np.append(owner, more), np.append(
            group[owner], np.repeat(hidden.astype(np.int64), len(more))[: len(more)]
        )
    for column in release.of_role("quasi"):
        _index(population, column.name)
    covering = links(release, population, told=True)
    kept = there[covering.owner]
    return (np.cumsum(there) - 1)[covering.owner[kept]], covering.group[kept]


def _nodes(release: Generalized, population: Table, codes: NDArray[np.int32]) -> Ints:
    """The published group of each combination: its own, else the suppressed one, else -1."""
    quasi = release.of_role("quasi")
    first = release.grouping[1]
    nodes = [node_numbers(p, population[p.name])[codes[:, _index(population, p.name)]] for p in quasi]
    shown = [p.held[first].astype(np.int64) for p in quasi]
    outside = np.any([n < 0 for n in nodes], axis=0)
    both = [(np.concatenate([np.maximum(n, 0), s]), len(p.labels)) for n, s, p in zip(nodes, shown, quasi, strict=True)]
    number, _ = combine(both, len(codes) + len(first))
    of_number = np.full(int(number.max()) + 1, -1, dtype=np.int64)
    of_number[number[len(codes) :]] = np.arange(len(first))
    hidden = release.hidden_groups
    group = np.where(outside, -1, of_number[number[: len(codes)]])
    return np.where(group < 0, int(hidden[0]), group) if len(hidden) else group


def _index(population: Table, name: str) -> int:
    names = [c.name for c in population.quasi]
    if name not in names:
        raise InputError(f'the population has no quasi-identifier "{name}"')
    return names.index(name)


def _published(release: Generalized, population: Table, column: str) -> tuple[tuple[str | None, ...], Floats]:
    """The labels of the population's values and n(q*, s): (groups, values)."""
    published, labels = release[column], population[column].labels.to_pylist()
    position = {label: i for i, label in enumerate(labels)}
    shown = published.labels.to_pylist()
    if any(label not in position for label in shown):
        do = "give frequencies for every published value"
        raise InputError(f'the population lacks a published value of "{column}"', do=do)
    value = np.array([position[label] for label in shown])[published.held]
    groups = len(release.sizes)
    key = release.grouping[0].astype(np.int64) * len(labels) + value
    n = np.bincount(key, release.numbers, minlength=groups * len(labels))
    return tuple(labels), n.reshape(groups, len(labels)).astype(np.float64)


def _theorem(joint: Floats, owner: Ints, group: Ints, n: Floats) -> tuple[Floats, Floats]:
    """α = f(s | q), β ∝ f(q, s) · Σ over the groups that cover q of n(q*, s) / f(q*, s)  (Equation 1).

    `owner` and `group` are the pairs of combinations and groups that cover them.
    """
    block = np.zeros_like(n)
    np.add.at(block, group, joint[owner])
    if bool(((n > 0) & (block == 0))[np.unique(group)].any()):
        do = "use a population that contains the table"
        raise InputError("the population gives a published value no chance in its group", do=do)
    prior = joint / joint.sum(axis=1, keepdims=True)
    each = np.divide(n, block, out=np.zeros_like(n), where=block > 0)  # for each unit of f(q, s) in the group
    weighted = np.zeros_like(joint)
    np.add.at(weighted, owner, each[group])
    weighted *= joint
    total = weighted.sum(axis=1, keepdims=True)
    posterior = np.divide(weighted, total, out=np.full_like(weighted, np.nan), where=total > 0)
    return prior, np.where(np.isnan(posterior), prior, posterior)


# -- of whom an attacker can be surest, and how many people that is in all -------------------------------------------

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
