"""One block of sensitive columns that are published together: what was found in each set of marginals that has them.

Anonymity of a collection: k-link anonymity of each marginal, k-combinatorial anonymity of all together.

k-link (Definition 4.1): every cell of every marginal's quasi-identifiers has nobody or at least k people.
k-combinatorial (Definition 4.2): for every cell t of the quasi-identifiers, either no table with these marginals has
anybody in t, or one has at least k people there. For a decomposable collection the most people that t can have are

    min( Σ_s min over marginals E with the sensitive columns of n_E(t, s),  min over the others of n_E(t) ),

each marginal read at its own levels. The second part needs no look: a marginal that is k-link anonymous has 0 or at
least k there, and a cell with Σ_s … > 0 has an extension that every marginal allows (the maximum-entropy distribution
puts people there). What holds for every t at the finest levels holds for every set of cells: a coarser node, fewer
attributes, or what one published number leaves of another.

Not promised: that nobody learns that t has at least one person, nor exactly how many, where they are at least k.

`Profiles` is what somebody who knows everybody's quasi-identifiers believes about each of them.

He knows how many people have each combination of quasi-identifiers, and the published marginals. People whose
combinations fall into the same cells of all marginals with the sensitive columns look alike to him: they are one
profile. Unknown is how many people of each profile have each sensitive value. For a person of a profile

- a value is possible where some whole table with these profiles and marginals gives it to somebody of the profile;
- the belief is what maximum entropy expects of the profile under the same sums, over the values that are possible.

A promise must be kept by the belief about every profile. So nobody's value is certain, nor are fewer values possible
than the promise needs. With a single marginal the belief is the share of its cell: nothing new is to be judged.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from jali.core.arrays import Bools, Floats, Ints, combine
from jali.estimates.base import kept
from jali.graphical.marginal import Cache, Levels, Marginal
from jali.graphical.maxent import Tree, finest, tree_of
from jali.graphical.privacy import join, maxent
from jali.graphical.privacy.join import Cell, Factors, Rows, TooLargeError, Walk, cell_of, origin_cell, quasi_of
from jali.graphical.privacy.maxent import Finding, Rule, relaxable, rule, worse, worst
from jali.graphical.privacy.tables import FITTED_TIE, Tables, UnclearError
from jali.principles import Principle, Sensitive
from jali.principles.counts import Counts

Columns = tuple[tuple[Sensitive, Ints], ...]
"""Each sensitive column as principles see it, and the value as judged of each code."""

Key = frozenset[Levels]
Result = TypeVar("Result")


class Findings(NamedTuple):
    """What each principle found, and which of them were only judged relaxed."""

    by_principle: dict[Principle, Finding]
    relaxed: frozenset[Principle] = frozenset()


@dataclass(frozen=True, eq=False)
class Block:
    """Judges the marginals that have these sensitive columns; each set of them once."""

    cache: Cache
    sensitive: tuple[int, ...]  # attributes of the domain
    columns: Columns  # of these attributes
    principles: tuple[Principle, ...]
    limit: int
    epsilon: float | None = None
    _alone: dict[Levels, list[Finding]] = field(default_factory=dict, init=False, repr=False)
    _bounds: dict[tuple[int, Key], tuple[int, Cell]] = field(default_factory=dict, init=False, repr=False)
    _found: dict[Key, Findings] = field(default_factory=dict, init=False, repr=False)
    _known: dict[Key, dict[Principle, Finding]] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def factors(self) -> Factors:
        """The marginals as cells × joint values."""
        return Factors(self.cache, self.sensitive, self.limit)

    @cached_property
    def joint(self) -> Ints:
        """The joint values as judged: (joint values, columns)."""
        codes = self.factors.joint
        return np.stack([judged[codes[:, at]] for at, (_, judged) in enumerate(self.columns)], axis=1).astype(np.int64)

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """How each principle that concerns these columns judges them, its parameters checked."""
        names = tuple(column for column, _ in self.columns)
        people, value = self.factors.people, np.arange(len(self.joint))
        everybody = Counts(1, np.zeros(len(value), dtype=np.int64), value, people, names, self.joint)
        rules = []
        for principle in self.principles:
            if self.concerned_by(principle):
                principle.check(everybody)
                rules.append(rule(principle, names, self.joint, people))
        return tuple(rules)

    def concerned_by(self, principle: Principle) -> bool:
        """Whether the principle judges one of these columns."""
        if principle.judges_size_alone:
            return False
        names = [column.name for column, _ in self.columns]
        return principle.every_column or getattr(principle, "sensitive", None) in (None, *names)

    def bound(self, marginals: Sequence[Marginal], k: int) -> tuple[int, Cell]:
        """The smallest positive bound on the people of a cell, up to k, and the cell."""

        def bound() -> tuple[int, Cell]:
            return self._within_limits(lambda: smallest_bound(self._tree(marginals), self.factors, k))

        return kept(self._bounds, (k, _key(marginals)), bound, math.inf)

    def findings(self, marginals: Sequence[Marginal]) -> Findings:
        """What each principle finds in these marginals: in each alone, in neighbours, in all (Proposition 7.2)."""
        return kept(self._found, _key(marginals), lambda: self._judged(marginals), math.inf)

    def known(self, marginals: Sequence[Marginal], deadline: float) -> dict[Principle, Finding]:
        """What each principle finds for somebody who knows everybody's quasi-identifiers and these marginals.

        With one marginal he believes what its cells show, which is judged already.
        """
        key = _key(marginals)
        if key not in self._known and len(marginals) > 1:
            order = tuple(sorted(marginals, key=lambda one: one.levels))
            findings = Profiles(self.cache, self.sensitive, order).findings(self.rules, deadline)
            self._known[key] = {finding.rule.principle: finding for finding in findings}
        return self._known.get(key, {})

    def _judged(self, marginals: Sequence[Marginal]) -> Findings:
        findings: dict[Principle, Finding] = {}
        for marginal in marginals:
            _keep_worst(findings, self._by_itself(marginal))
        if len(marginals) == 1 or not any(finding.holds for finding in findings.values()):
            return Findings(findings)
        tree = self._tree(marginals)
        if len(marginals) > 2:
            for parent, child in zip(tree.parent[1:], tree.marginals[1:], strict=True):
                _keep_worst(findings, self.findings((tree.marginals[parent], child)).by_principle.values())
        left = [one for one in self.rules if findings[one.principle].holds]
        try:
            together, relaxed = maxent.judged_together(left, self.factors, tree), frozenset[Principle]()
        except TooLargeError:
            together, relaxed = self._relaxed(left, tree), frozenset(one.principle for one in left)
        findings.update({finding.rule.principle: finding for finding in together})
        return Findings(findings, relaxed)

    def _by_itself(self, marginal: Marginal) -> list[Finding]:
        if marginal.levels not in self._alone:
            names = tuple(column for column, _ in self.columns)
            self._alone[marginal.levels] = self._within_limits(
                lambda: maxent.judged_alone(self.rules, self.factors.made(marginal), names, self.joint)
            )
        return self._alone[marginal.levels]

    def _relaxed(self, rules: Sequence[Rule], tree: Tree) -> list[Finding]:
        if self.epsilon is None:
            raise UnclearError(_too_large(self.limit) + ", or allow the relaxed check: epsilon=0.1")
        for one in rules:
            if relaxable(one) is None:
                raise UnclearError(_too_large(self.limit) + f"; the relaxed check does not know {one.principle!r}")
        epsilon = self.epsilon
        return self._within_limits(lambda: maxent.judged_relaxed(rules, self.factors, tree, epsilon))

    def _tree(self, marginals: Sequence[Marginal]) -> Tree:
        """The junction tree of the marginals, the largest at the root: a root's rows are joined in pieces."""
        order = sorted(marginals, key=lambda one: (-len(self.cache.counts(one).n), one.levels))
        tree = tree_of(self.cache.domain, order)
        assert tree is not None, "marginals with the sensitive columns of a decomposable collection are decomposable"
        return tree

    def _within_limits(self, made: Callable[[], Result]) -> Result:
        try:
            return made()
        except TooLargeError:
            raise UnclearError(_too_large(self.limit)) from None


def _keep_worst(found: dict[Principle, Finding], more: Iterable[Finding]) -> None:
    for finding in more:
        before = found.get(finding.rule.principle)
        if before is None or worse(finding, before):
            found[finding.rule.principle] = finding


def _key(marginals: Sequence[Marginal]) -> Key:
    return frozenset(marginal.levels for marginal in marginals)


def _too_large(limit: int) -> str:
    return (
        f"the join of the marginals with the sensitive column has more than {limit:,} numbers; "
        "publish fewer or coarser marginals with it"
    )


def smallest_group(cache: Cache, marginal: Marginal) -> tuple[int, Cell]:
    """How many people the smallest cell of the marginal's quasi-identifiers has, and which it is (Definition 4.1)."""
    quasi = quasi_of(cache, marginal)
    if not quasi.attributes:
        return cache.total, {}
    counts = cache.counts(quasi)
    at = int(counts.n.argmin())
    return int(counts.n[at]), cell_of(quasi, counts.cells[at])


def smallest_bound(tree: Tree, factors: Factors, k: int) -> tuple[int, Cell]:
    """The smallest positive bound on the people of a cell, counted up to k for each value, and the cell.

    Vectors are capped at k and joined by the minimum; within a block only the smallest ones of equal support are kept.
    """
    walk = Walk(tree, factors, lambda at: factors.of(tree.marginals[at]).n.clip(max=k), join.least, join.capped(k))
    best: tuple[int, Rows | None, int] = (k, None, 0)
    for rows in walk.chunks():
        bound = rows.vectors.sum(axis=1)
        at = int(bound.argmin()) if len(bound) else 0
        if len(bound) and bound[at] < best[0]:
            best = (int(bound[at]), rows, at)
    found, rows_, at = best
    return (found, {}) if rows_ is None else (found, origin_cell(tree, factors, rows_.origin[at].astype(np.int64)))


EXCHANGES = 2 * 10**9
"""Products of numbers that the look for exchanges may take for one way to split the marginals."""

ROUGH = 200
"""Rounds of scaling of a first look."""

CLEAR = 0.01
"""What a first look must miss a bound by, relatively, to be believed."""


@dataclass(frozen=True, eq=False)
class Profiles:
    """People by profile and joint sensitive value, for the marginals with certain sensitive columns."""

    cache: Cache  # of the table itself
    sensitive: tuple[int, ...]
    marginals: tuple[Marginal, ...]

    @cached_property
    def _cells(self) -> list[tuple[NDArray[np.int32], int]]:
        """The cell of each combination in each marginal, and how many cells that has."""
        counts = [self.cache.counts(quasi_of(self.cache, marginal)) for marginal in self.marginals]
        return [(one.cell_of_combination, len(one.n)) for one in counts]

    @cached_property
    def _profile(self) -> tuple[Ints, Ints]:
        """The profile of each combination, and a combination of each profile."""
        source = self.cache.sources[0]
        number, first = combine(self._cells, len(source.n))
        return number.astype(np.int64), first.astype(np.int64)

    @cached_property
    def people(self) -> Ints:
        """How many people of each profile have each joint value in the table: (profiles, values)."""
        source = self.cache.sources[0]
        values = self.cache.counts(source.marginal.only(self.sensitive))
        people = np.zeros((len(self._profile[1]), len(values.n)), dtype=np.int64)
        np.add.at(people, (self._profile[0], values.cell_of_combination), source.n)
        return people

    @cached_property
    def _places(self) -> list[Ints]:
        """The cell of each profile in each marginal: (profiles,) each."""
        return [cell[self._profile[1]].astype(np.int64) for cell, _ in self._cells]

    @cached_property
    def _open(self) -> tuple[Ints, Ints]:
        """The profiles and values that no single marginal rules out."""
        possible = np.ones(self.people.shape, dtype=bool)
        for place, (_, size) in zip(self._places, self._cells, strict=True):
            possible &= _summed(self.people, place, size)[place] > 0
        profile, value = np.nonzero(possible)
        return profile.astype(np.int64), value.astype(np.int64)

    @cached_property
    def tables(self) -> Tables:
        """All tables with these marginals and as many people of each profile; the profiles come last."""
        (profile, value), values = self._open, self.people.shape[1]
        places = [place[profile] * values + value for place in self._places]
        n = [
            _summed(self.people, place, size).reshape(-1)
            for place, (_, size) in zip(self._places, self._cells, strict=True)
        ]
        return Tables(np.stack([*places, profile], axis=1), (*n, self.people.sum(axis=1)))

    def findings(self, rules: Sequence[Rule], deadline: float) -> list[Finding]:
        """What each rule finds. Where a first look shows a clear breach, it is a breach, and what follows is saved."""
        first = self._rows(self.tables.expected(self.tables.limits[1] > 0, deadline, rounds=ROUGH))
        if any(rule.clearly_broken(first, CLEAR, FITTED_TIE) for rule in rules):
            return [self._finding(rule, first) for rule in rules]
        world = self.people[self._open]
        near = partial(self.exchanged, deadline=deadline)
        known = self._rows(((world > 0) | near(world)).astype(np.float64))
        count_values = all(rule.expected is not None and rule.expected.looks_at == "values" for rule in rules)
        if count_values and all(self._finding(rule, known).holds for rule in rules):
            return [self._finding(rule, known) for rule in rules]  # more values could only be better
        possible = self.tables.possible(world, whole=True, deadline=deadline, near=near)
        belief = self._rows(self.tables.expected(possible, deadline))
        return [self._finding(rule, belief) for rule in rules]

    def _rows(self, people: Floats) -> Floats:
        """People expected in the open cells as rows: (profiles, values)."""
        rows = np.zeros(self.people.shape)
        rows[self._open] = people
        return rows

    def exchanged(self, world: NDArray[Any], deadline: float = math.inf) -> Bools:
        """The open cells that have anybody in a table that four people of this one make when they exchange two values.

        Somebody of (a, b) has t, of (a, b') and (a', b) has s, of (a', b') has t; a stands for the cells of some of the
        marginals, b for those of the others. If each of the four takes the other of s and t, all sums stay. At the
        deadline no further way to split the marginals is tried.
        """
        people = self._rows(world)
        found = np.zeros(people.shape, dtype=bool)
        every = range(len(self.marginals))
        for size in range(1, len(self.marginals) // 2 + 1):
            for some in itertools.combinations(every, size):
                others = [i for i in every if i not in some]
                if (len(others) > size or 0 in some) and time.monotonic() < deadline:  # halves stand twice
                    found |= self._exchanged_between(people, list(some), others)
        return found[self._open]

    def _exchanged_between(self, people: Floats, some: Sequence[int], others: Sequence[int]) -> Bools:
        (left, lefts), (right, rights) = (
            combine([(self._places[i], self._cells[i][1]) for i in part], len(people)) for part in (some, others)
        )
        if len(lefts) > len(rights):
            left, lefts, right, rights = right, rights, left, lefts
        values = people.shape[1]
        if len(lefts) ** 2 * len(rights) * values**2 > EXCHANGES:
            return np.zeros(people.shape, dtype=bool)
        has = np.zeros((values, len(lefts), len(rights)), dtype=np.float32)
        has[:, left, right] = (people > 0).T
        found = np.zeros(people.shape, dtype=bool)
        for s in range(values):
            lacks = np.flatnonzero(people[:, s] == 0)
            for t in range(values):
                if t != s and len(lacks):
                    some_have = (has[s] @ has[t].T > 0).astype(np.float32) @ has[s] > 0
                    found[lacks, s] |= (people[lacks, t] > 0) & some_have[left[lacks], right[lacks]]
        return found

    def _finding(self, rule: Rule, rows: Floats) -> Finding:
        """What a rule finds in the belief about the profiles."""
        return worst(rule, rule.judge(rows, FITTED_TIE), self._cell)

    def _cell(self, profile: int) -> Cell:
        """The cells that a profile falls into, each column at the finest level that a marginal shows."""
        shown, codes = quasi_of(self.cache, finest(self.marginals)), self.cache.sources[0].cells
        at = int(self._profile[1][profile])
        nodes = [self.cache.domain.attributes[i].maps[shown.levels[i]][codes[at, i]] for i in shown.attributes]
        return cell_of(shown, np.array(nodes, dtype=np.int64))


def _summed(people: Ints, place: Ints, size: int) -> Ints:
    """The rows of each place, added: (places, values)."""
    sums = np.zeros((size, people.shape[1]), dtype=np.int64)
    np.add.at(sums, place, people)
    return sums
