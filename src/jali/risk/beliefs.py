"""Beliefs before and after: how a release changes what an attacker thinks of each person (l-diversity, Section 3)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from jali.core.arrays import Floats, Ints, combine
from jali.core.formats import to_native
from jali.core.text import lines_of
from jali.encoding.table import Table
from jali.errors import InputError
from jali.releases.base import Release
from jali.releases.column import node_numbers
from jali.releases.generalized import Generalized
from jali.releases.load import release_of
from jali.releases.summary import an
from jali.risk.attacks.links import links


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
