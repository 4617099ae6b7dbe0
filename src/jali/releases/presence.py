"""Presence: how sure the holder of a public table can be that each person of it is in a release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from jali.core.arrays import EXACT, Bools, Floats, Ints, counted
from jali.core.formats import free_name
from jali.cover.cover import Cover
from jali.encoding.table import Table
from jali.errors import InputError
from jali.estimates.cells import first_and_last, summed
from jali.kernels import TOLERANCE
from jali.principles.anonymity import DeltaPresence
from jali.principles.base import at_most
from jali.releases.column import Published, holder_cover
from jali.releases.summary import many
from jali.search.existence import Kernels, alike, existence, logs_of

if TYPE_CHECKING:
    from jali.releases.generalized import Generalized

__all__ = ["Covered", "Parts", "Presence", "covered_by", "existence", "presence_in_parts", "presence_of"]

Density = tuple[Ints, Ints, Floats]
_FAR = 2.0**40  # more than all group numbers together where a cell has one group


@dataclass(frozen=True, eq=False)
class Presence:
    """For each person of the public table the probability of being in the private one, and the same by group.

    Equation 4 of the pdf-generalization paper, from the published cells alone. A person whom no published
    cell covers is certainly not in it. Where groups overlap, as in a transparent release, each probability is an upper
    bound, and `at_least` has the lower ones.
    """

    probabilities: Floats  # (people of the public table,) in its order
    low: float  # the least of them
    high: float  # the greatest
    groups: pa.Table  # what each group shows, its public people, its published rows, its least and greatest probability
    outside: int  # people of the public table whom no published cell covers
    at_least: Floats | None = None  # (people of the public table,) where the probabilities are upper bounds

    def holds(self, bounds: DeltaPresence) -> bool:
        """Whether every probability is within the bounds; where a group's are equal they are compared exactly."""
        return bool(self.judged(bounds).all()) and (self.low > 0 or bounds.exact_low == 0)

    def judged(self, bounds: DeltaPresence) -> Bools:
        """Whether each group is within the bounds: (groups,)."""
        people, rows, low, high = (self.groups[-4 + i].to_numpy() for i in range(4))
        even = at_most(rows, bounds.exact_high, people) & at_most(people - rows, 1 - bounds.exact_low, people)
        inside = (low >= float(bounds.low) * (1 - 2 * TOLERANCE)) & (high <= float(bounds.high) * (1 + 2 * TOLERANCE))
        return np.where(high - low <= TOLERANCE * high, even, inside).astype(bool)

    def to_dict(self) -> dict[str, Any]:
        """The figures, without single people."""
        return {
            "people": len(self.probabilities),
            "groups": self.groups.num_rows,
            "low": self.low,
            "high": self.high,
            "outside": self.outside,
        }

    def __repr__(self) -> str:
        of, groups = f"{len(self.probabilities):,} people of the public table", many(self.groups.num_rows, "group")
        overlap = "" if self.at_least is None else ", which overlap"
        lines = [
            f"Presence: {of}, {groups}{overlap}",
            f"  each is in the private table with a probability of {self.low:.4g} to {self.high:.4g}",
        ]
        if self.outside:
            are = "is" if self.outside == 1 else "are"
            lines.append(f"  {self.outside:,} of them {are} certainly not in it: no published cell covers them")
        return "\n".join(lines)


@dataclass(frozen=True, eq=False)
class Covered:
    """The combinations of a public table, each in the published group that covers it."""

    group: Ints  # (combinations,) -1 where no group covers it
    logs: Floats  # (combinations,) of the product of the shares of its values; -inf where no group covers it
    people: Ints  # (combinations,) of the public table
    rows: Ints  # (groups,) published


def covered_by(release: Generalized, public: Table) -> Covered:
    """The one published group that covers each combination of the public table; InputError where two do."""
    frequencies, quasi = public.frequencies, release.of_role("quasi")
    asked, shares, covers = _compared(release, public)
    first = release.grouping[1]
    nodes = [column.held[first].astype(np.int64) for column in quasi]
    group = _groups(asked, shares, covers, nodes)
    logs = np.where(group < 0, -np.inf, 0.0)  # of likelihoods, which are products
    for codes, density, cover, node in zip(asked, shares, covers, nodes, strict=True):
        logs += logs_of(_share(codes, density, cover, node[group]))
    people = counted(frequencies.combination, frequencies.people, len(group))
    return Covered(group, logs, people, release.sizes)


def _compared(release: Generalized, public: Table) -> tuple[list[Ints], list[Density], list[Cover]]:
    """For each quasi-identifier the public combinations' values, how likely these are in its cells, and the cells."""
    quasi = release.of_role("quasi")
    _require_quasi([column.name for column in quasi], public)
    covers = [holder_cover(column, public[column.name], public.domain) for column in quasi]
    at = [[c.name for c in public.quasi].index(column.name) for column in quasi]
    asked = [public.frequencies.codes[:, i].astype(np.int64) for i in at]
    shares = [
        cover.density(public[column.name].values, column.name) for cover, column in zip(covers, quasi, strict=True)
    ]
    return asked, shares, covers


def presence_of(release: Generalized, public: Table) -> Presence:
    """The presence of everybody in the public table, from what the release shows."""
    covered = covered_by(release, public)
    probability, low, high, size = _by_group(covered.group, covered.logs, covered.people, covered.rows)
    each = _of_everybody(probability, public)
    shown = release.groups.select([column.name for column in release.of_role("quasi")])
    shown = _with_columns(shown, people=size, present=covered.rows, low=low, high=high)
    outside = int(covered.people[covered.logs == -np.inf].sum())
    return Presence(each, float(each.min()), float(each.max()), shown, outside)


def _of_everybody(of_combination: Floats, public: Table) -> Floats:
    each = of_combination[public.frequencies.row_combination]
    return each if public.multiplicity is None else np.repeat(each, public.multiplicity)


def _with_columns(shown: pa.Table, **more: Ints | Floats) -> pa.Table:
    for name, found in more.items():
        shown = shown.append_column(free_name(name, shown.column_names), pa.array(found))
    return shown


@dataclass(frozen=True, eq=False)
class Parts:
    """The groups of a transparent release, which can overlap and show the same: a part of the public table each."""

    cells: Sequence[Ints]  # for each quasi-identifier the published node of each group: (groups,)
    people: Ints  # (groups,) of the public table
    present: Ints  # (groups,) published rows

    def table(self, quasi: Sequence[Published]) -> pa.Table:
        """What each group shows, its public people and its rows: as it is published."""
        shown = {c.name: c.labels.take(pa.array(nodes)) for c, nodes in zip(quasi, self.cells, strict=True)}
        return _with_columns(pa.table(shown), people=self.people, present=self.present)

    @classmethod
    def of(cls, table: pa.Table, quasi: Sequence[Published]) -> Parts:
        """The groups that were published as this table; a ValueError or KeyError for nonsense."""
        names = table.column_names
        if names[:-2] != [column.name for column in quasi]:
            raise ValueError("the groups have other columns than the table")
        nodes = [{label: node for node, label in enumerate(c.labels.to_pylist())} for c in quasi]
        cells = [
            np.array([of[label] for label in table[name].cast(pa.string()).to_pylist()], dtype=np.int64)
            for name, of in zip(names[:-2], nodes, strict=True)
        ]
        people, present = (table[name].cast(pa.string()).cast(pa.int64()).to_numpy() for name in names[-2:])
        if not len(people) or bool((present < 1).any()) or bool((present > people).any()):
            raise ValueError("a group has nobody, or more rows than people")
        if people.sum(dtype=np.float64) >= EXACT:
            raise ValueError("the groups have more people than can be added up")
        return cls(cells, people, present)


def presence_in_parts(release: Generalized, parts: Parts, public: Table) -> Presence:
    """The least and the greatest share of people present, over all groups whose cells cover somebody.

    In a transparent release everybody of a group is present with the probability of its share (decision 45). Who is in
    which group is not published, so the belief about somebody is a mean of the shares of the groups that may be theirs.
    People who are in no published group are certainly absent; where there are some, everybody may be one of them.
    """
    asked, shares, covers = _compared(release, public)
    everybody, inside = public.people, int(parts.people.sum())
    order = np.argsort(-parts.present / parts.people, kind="stable")
    nodes = [cell[order] for cell in parts.cells]
    first, last = first_and_last(asked, shares, [cover.nodes for cover in covers], nodes)
    frequencies = public.frequencies
    people = counted(frequencies.combination, frequencies.people, len(first))
    outside = int(people[first < 0].sum())
    if inside + outside > everybody:
        raise InputError(
            "the groups of the release have more people than the public table has for them",
            do="give the public table that the release was made with",
        )
    share = np.append((parts.present / parts.people)[order], 0.0)  # the last one is of those whom no group covers
    high = _of_everybody(share[first], public)
    low = np.zeros_like(high) if inside < everybody else _of_everybody(share[last], public)
    found = parts.present / parts.people
    shown = _with_columns(parts.table(release.of_role("quasi")), low=found, high=found)
    return Presence(high, float(low.min()), float(high.max()), shown, outside, low)


def _require_quasi(names: list[str], public: Table) -> None:
    known = [column.name for column in public.quasi]
    if sorted(names) != sorted(known):
        raise InputError(
            "the public table has other quasi-identifiers than the release",
            got=", ".join(known),
            do=f"read it with quasi={names}",
        )


def _groups(asked: list[Ints], shares: list[Density], covers: list[Cover], nodes: list[Ints]) -> Ints:
    """The published group that covers each combination, -1 for none; InputError where two do."""
    dense = [(value, node, np.ones(len(value))) for value, node, _ in shares]
    mass = np.arange(len(nodes[0]), dtype=np.float64) + 1.0 + _FAR
    covering = summed(asked, dense, [cover.nodes for cover in covers], nodes, mass)
    if bool((covering >= 2 * _FAR).any()):
        raise InputError(
            "cells of two groups overlap, so that presence cannot be judged",
            do='show sets, intervals or distributions: show="pdf"',
        )
    group: Ints = np.where(covering > 0, covering - _FAR - 1.0, -1.0).astype(np.int64)
    return group


def _share(codes: Ints, density: Density, cover: Cover, nodes: Ints) -> Floats:
    """How likely each value is in its node, 0 where it cannot be."""
    value, node, share = density
    key = value * cover.nodes + node
    order = np.argsort(key)
    key, share = key[order], share[order]
    wanted = codes * cover.nodes + nodes
    at = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
    return np.where(key[at] == wanted, share[at], 0.0)


def _by_group(group: Ints, logs: Floats, people: Ints, rows: Ints) -> tuple[Floats, Floats, Floats, Ints]:
    """The probability of each combination, the least and greatest of each group, and the people of each."""
    groups = len(rows)
    held = logs > -np.inf
    possible = np.bincount(group[held], weights=people[held], minlength=groups)
    if bool((possible < rows).any()):
        raise InputError(
            "a group of the release has more rows than the public table has people for it",
            do="give the public table that the release was made with",
        )
    inside = np.flatnonzero(group >= 0)
    members = alike(logs[inside], people[inside], group[inside], groups)
    each = Kernels(len(members.many)).existences(members.logs, members.many, members.start, rows.astype(np.int64))
    probability = np.zeros(len(group))
    probability[inside] = each[members.entry]
    low, high = np.minimum.reduceat(each, members.start[:-1]), np.maximum.reduceat(each, members.start[:-1])
    return probability, low, high, np.add.reduceat(members.many, members.start[:-1])
