"""Disclosure: the most that an attacker who knows k more facts can learn from a release (Martin et al. 2007)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np

from jali.encoding.table import Table
from jali.errors import InfeasibleError, InputError, listed
from jali.principles.base import principles_of, whole_number
from jali.principles.worst_case import Buckets as Worst
from jali.principles.worst_case import Share, by_negations, disclosed, least_ratio, least_ratios, worst_attack
from jali.publish.checks import failure, node_of, only_present, require_publishable, require_table
from jali.publish.generalize import generalize
from jali.releases.base import Release
from jali.releases.generalized import Generalized, Requirement
from jali.releases.load import load
from jali.releases.summary import many
from jali.risk.disclosure.buckets import Buckets, Plain, What, buckets_of, counts_of, worst_buckets
from jali.risk.disclosure.knowledge import (
    Atom,
    Facts,
    Implication,
    Person,
    has,
    lacks,
    pair,
    read_knowledge,
    require_facts,
    row_number,
    to_json,
)
from jali.risk.disclosure.tracker import Curve, Tracker, several
from jali.risk.disclosure.worlds import Risk, risk
from jali.search.lattice.lattice import Lattice

__all__ = [
    "Atom",
    "Curve",
    "Implication",
    "Person",
    "Risk",
    "Tracker",
    "Witness",
    "chain",
    "curve",
    "maximum",
    "read_knowledge",
    "risk",
    "witness",
]

Levels = tuple[int, ...]


def chain(table: Table, principles: Requirement, chain: Iterable[Mapping[str, int]] | None = None) -> Generalized:
    """The release of the lowest node of a chain that keeps the principles, e.g. Safety: about log₂ nodes are judged.

    `chain` lists levels by column (a column that is not named is at level 0), each node nowhere finer than the one
    before. By default it leads from the table as it is to the table fully generalized, and at each step raises the
    column that is the least way up its hierarchy, the first of equal ones, so that all columns lose detail alike.
    """
    require_table("chain", table)
    required = principles_of(principles)
    require_publishable(table)
    present = only_present(table)
    lattice = Lattice(present, required, on_step=lambda done, total: None, largest=2**62)
    nodes = _even(lattice.top) if chain is None else _given(present, chain)
    if lattice.monotone:
        found = bisect_left(nodes, True, key=lattice.satisfied)
    else:
        found = next((i for i, node in enumerate(nodes) if lattice.satisfied(node)), len(nodes))
    if found == len(nodes):
        raise InfeasibleError(
            f"no node of the chain keeps the promises: at the last one, {failure(lattice, nodes[-1])}"
        )
    levels = {column.name: level for column, level in zip(present.quasi, nodes[found], strict=True)}
    release = generalize(table, required, levels=levels)
    release.search = {"nodes": len(nodes), "checked": lattice.checked}
    return release


def _even(top: Levels) -> list[Levels]:
    """From the bottom to the top, all columns rising alike."""
    nodes: list[Levels] = [tuple(0 for _ in top)]
    while nodes[-1] != top:
        node = nodes[-1]
        rising = min((i for i, most in enumerate(top) if node[i] < most), key=lambda i: ((node[i] + 1) / top[i], i))
        nodes.append((*node[:rising], node[rising] + 1, *node[rising + 1 :]))
    return nodes


def _given(table: Table, chain: Iterable[Mapping[str, int]]) -> list[Levels]:
    given = listed(chain)
    if not given or not all(isinstance(levels, Mapping) for levels in given):
        do = 'list levels by column, finest first, e.g. [{"age": 0}, {"age": 1}]'
        raise InputError("a chain is a list of nodes, at least one", do=do)
    nodes = [node_of(table, levels) for levels in given]
    for number, (low, high) in enumerate(pairwise(nodes), 2):
        if any(a > b for a, b in zip(low, high, strict=True)):
            raise InputError(f"node {number} of the chain is finer than the one before", do="list coarser nodes later")
    return nodes


@overload
def maximum(
    what: What, k: int, *, knowledge: Facts = ..., exact: Literal[False] = ..., sensitive: str | None = ...
) -> float: ...
@overload
def maximum(
    what: What, k: int, *, knowledge: Facts = ..., exact: Literal[True], sensitive: str | None = ...
) -> Fraction: ...
def maximum(
    what: What, k: int, *, knowledge: Facts = "implications", exact: bool = False, sensitive: str | None = None
) -> float | Fraction:
    """The maximum disclosure: how sure an attacker who knows the worst k facts is of somebody's value (Definition 6).

    `what` is a release, the folder of one, counts, a matrix of them, rows of any length, or a pandas, Polars or Arrow
    table with a row for each bucket and a column for each value. The facts are implications between people's values, or
    only negations, "this person does not have that value". `exact` gives a fraction.

    >>> maximum([[2, 2, 1], [2, 1, 1, 1]], 1, exact=True)
    Fraction(2, 3)
    """
    k = whole_number("k", k, least=0)
    require_facts(knowledge)
    if not exact:
        return float(getattr(curve(what, [k], sensitive=sensitive), knowledge)[0])
    buckets, most, _ = worst_buckets(counts_of(what, sensitive), k, exact=True)
    if knowledge == "implications":
        return 1 / (1 + least_ratio(buckets, most))
    held, left = by_negations(buckets, most)
    return max(Fraction(h, n) for h, n in zip(held.tolist(), left.tolist(), strict=True))


def curve(what: What, ks: Iterable[int] = range(14), *, sensitive: str | None = None) -> Curve:
    """The maximum disclosure for several numbers of facts, by implications and by negations, in one pass.

    Its `kind` is "at most" for a release whose groups overlap, where it is an upper bound.

    >>> curve([[2, 2, 1], [2, 1, 1, 1]], range(3)).negations
    (0.4, 0.6666666666666666, 1.0)
    """
    asked = tuple(whole_number("k", k, least=0) for k in several(ks))
    if isinstance(what, (str, Path)):
        what = load(what)
    kind = (what.disclosure_bound or "at most") if isinstance(what, Release) else "exact"
    buckets, most, _ = worst_buckets(counts_of(what, sensitive), max(asked))
    implied = disclosed(least_ratios(buckets, most))
    negated = [float((held / left).max()) for held, left in (by_negations(buckets, k) for k in range(most + 1))]
    by_implications, by_ruling_out = (tuple(float(v[min(k, most)]) for k in asked) for v in (implied, negated))
    return Curve(asked, by_implications, by_ruling_out, kind)


Names = Mapping[int, str] | Sequence[str]


@dataclass(frozen=True, repr=False)
class Witness:
    """What an attacker would have to know, and whose value it then gives away.

    `probability` is that of the `target` given the release and the `knowledge`, which are at most k implications.
    """

    probability: float
    fraction: Fraction  # the same, exactly
    target: Atom
    knowledge: tuple[Implication, ...]
    _shown: Mapping[Person, str] = field(default_factory=dict, compare=False)  # people as the release shows them
    _names: Mapping[Person, str] = field(default_factory=dict, compare=False)  # for reading, and never stored

    def sentences(self) -> list[str]:
        """The knowledge in words, a sentence each, and what follows from it."""
        known = [self._known(one.given[0]) for one in self.knowledge]
        then = "An attacker who knows this is" if known else "An attacker who sees the release is"
        sure = (
            f"{self.probability:.4f} ({self.fraction})"
            if self.fraction.denominator < 10_000
            else f"{self.probability:.6f}"
        )
        return [*known, f"{then} sure to {sure} that {self._said(self.target)}."]

    def _known(self, given: Atom) -> str:
        """That an atom implies the target; of the same person it is that she does not have the value."""
        if given.person == self.target.person:
            who = self._who(given)
            return f"{who[0].upper()}{who[1:]} {lacks(given.value)}."
        return f"If {self._said(given)}, then {self._said(self.target)}."

    def _said(self, atom: Atom) -> str:
        return f"{self._who(atom)} {has(atom.value)}"

    def _who(self, atom: Atom) -> str:
        assert isinstance(atom.person, Person)
        who = self._shown.get(atom.person, str(atom.person))
        return f"{self._names[atom.person]}, {who}," if atom.person in self._names else who

    def to_dict(self) -> dict[str, Any]:
        """Plain values, without names; `read_knowledge` and `jali disclosure --knowledge` read the knowledge back."""
        plain = Witness(self.probability, self.fraction, self.target, self.knowledge, self._shown)
        return {
            "probability": self.probability, "sentences": plain.sentences(), "target": pair(self.target),
            "knowledge": to_json(self.knowledge),
        }  # fmt: skip

    def __getstate__(self) -> dict[str, Any]:
        """A pickled witness knows no names."""
        return self.__dict__ | {"_names": {}}

    def __repr__(self) -> str:
        return "\n".join(self.sentences())


def witness(
    what: What,
    k: int,
    *,
    knowledge: Facts = "implications",
    names: Names | None = None,
    sensitive: str | None = None,
) -> Witness:
    """The worst that an attacker who knows k facts can know, and what it discloses: as much as `maximum` says.

    A person is the `index`-th of a bucket, in published order; in sentences the number of the published row, from 1,
    with its quasi-identifiers. `names` gives all rows, or as a mapping some of them (from 0), names for the holder
    of the original; they are not stored. A negation is the implication that the paper writes it as, "if she has mumps,
    then she has flu"; in sentences she does not have mumps. Of very many rows of plain counts, floats tell the buckets
    that matter: the witness is exact for what it says, and within rounding of the worst.
    """
    k = whole_number("k", k, least=0)
    require_facts(knowledge)
    if isinstance(what, (str, Path)):
        what = load(what)
    counted = counts_of(what, sensitive)
    worst, most, number = worst_buckets(counted, k)  # more facts than `most` add nothing
    buckets = counted if isinstance(counted, Plain) else buckets_of(what, sensitive=sensitive)
    if knowledge == "implications":
        ratio, shares = worst_attack(worst, most)
        probability = 1 / (1 + ratio)
    else:
        probability, shares = _worst_negations(worst, most)
    ordered = sorted(shares, key=lambda share: not share.target)
    target, *others = [atom for share in ordered for atom in _atoms(buckets, int(number[share.group]), share.atoms)]
    implied = tuple(Implication((atom,), (target,)) for atom in others)
    people = {atom.person for atom in (target, *others) if isinstance(atom.person, Person)}
    if isinstance(buckets, Plain):
        if names is not None:
            raise InputError("plain counts have no rows to name", do="leave names= out")
        return Witness(float(probability), probability, target, implied)
    shown = {person: _show(buckets, person) for person in people}
    return Witness(float(probability), probability, target, implied, shown, _named(buckets, people, names))


def _worst_negations(worst: Worst, k: int) -> tuple[Fraction, tuple[Share, ...]]:
    held, left = by_negations(worst, k)
    group = int(np.argmax(held / left))
    return Fraction(int(held[group]), int(left[group])), (Share(group, (k + 1,), True),)


def _atoms(buckets: Buckets | Plain, bucket: int, atoms: tuple[int, ...]) -> list[Atom]:
    """The atoms of an attack about one bucket: each person with the most frequent values, of equal ones the first."""
    counts = buckets.counts(bucket)
    values = sorted(counts, key=lambda value: (-counts[value], value))
    return [
        Atom(Person(bucket, index), buckets.labels[value])
        for index, many in enumerate(atoms)
        for value in values[:many]
    ]


def _show(buckets: Buckets, person: Person) -> str:
    """A person as the release shows them, numbers from 1."""
    individuals = None if buckets.release is None else buckets.release.individuals
    if individuals is None:
        return str(person)
    row = buckets.row(person)
    cells = ", ".join(
        "no value" if cell is None else str(cell) for cell in individuals.slice(row, 1).to_pylist()[0].values()
    )
    return f"person {row + 1} (bucket {person.bucket + 1}: {cells})"


def _named(buckets: Buckets, people: set[Person], names: Names | None) -> dict[Person, str]:
    if names is None:
        return {}
    if buckets.release is None:
        raise InputError("plain counts have no rows to name", do="leave names= out")
    if isinstance(names, str) or not isinstance(names, (Mapping, Sequence)):
        raise InputError("names must be a list, or a mapping from published rows", got=type(names).__name__)
    if isinstance(names, Sequence) and len(names) != int(buckets.size.sum()):
        do = "give one for each published row, or a mapping from the rows (from 0) that have one"
        raise InputError(f"there are {int(buckets.size.sum()):,} published rows", got=many(len(names), "name"), do=do)
    rows = {person: buckets.row(person) for person in people}
    for row in names if isinstance(names, Mapping) else ():
        buckets.person(row_number(row, "the row of a name"))
    known = names if isinstance(names, Mapping) else dict(enumerate(names))
    return {person: str(known[row]) for person, row in rows.items() if row in known}
