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
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, TypeVar

import numpy as np

from jali.core.arrays import Ints
from jali.graphical.marginal import Cache, Levels, Marginal
from jali.graphical.maxent import Tree, tree_of
from jali.graphical.privacy.join import (
    Cell,
    Factors,
    Rows,
    TooLargeError,
    Walk,
    capped,
    cell_of,
    least,
    origin_cell,
    quasi_of,
)
from jali.graphical.privacy.maxent import (
    Finding,
    Rule,
    judged_alone,
    judged_relaxed,
    judged_together,
    relaxable,
    rule,
    worse,
)
from jali.graphical.privacy.quasi import Profiles
from jali.graphical.privacy.tables import UnclearError
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
        found = []
        for principle in self.principles:
            if self.concerned_by(principle):
                principle.check(everybody)
                found.append(rule(principle, names, self.joint, people))
        return tuple(found)

    def concerned_by(self, principle: Principle) -> bool:
        """Whether the principle judges one of these columns."""
        if principle.judges_size_alone:
            return False
        names = [column.name for column, _ in self.columns]
        return principle.every_column or getattr(principle, "sensitive", None) in (None, *names)

    def bound(self, marginals: Sequence[Marginal], k: int) -> tuple[int, Cell]:
        """The smallest positive bound on the people of a cell, up to k, and the cell."""
        key = (k, _key(marginals))
        if key not in self._bounds:
            tree = self._tree(marginals)
            self._bounds[key] = self._within_limits(lambda: smallest_bound(tree, self.factors, k))
        return self._bounds[key]

    def findings(self, marginals: Sequence[Marginal]) -> Findings:
        """What each principle finds in these marginals: in each alone, in neighbours, in all (Proposition 7.2)."""
        key = _key(marginals)
        if key not in self._found:
            self._found[key] = self._judged(marginals)
        return self._found[key]

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
        found: dict[Principle, Finding] = {}
        for marginal in marginals:
            _keep_worst(found, self._by_itself(marginal))
        if len(marginals) == 1 or not any(finding.holds for finding in found.values()):
            return Findings(found)
        tree = self._tree(marginals)
        if len(marginals) > 2:
            for parent, child in zip(tree.parent[1:], tree.marginals[1:], strict=True):
                _keep_worst(found, self.findings((tree.marginals[parent], child)).by_principle.values())
        left = [one for one in self.rules if found[one.principle].holds]
        try:
            together, relaxed = judged_together(left, self.factors, tree), frozenset[Principle]()
        except TooLargeError:
            together, relaxed = self._relaxed(left, tree), frozenset(one.principle for one in left)
        found.update({finding.rule.principle: finding for finding in together})
        return Findings(found, relaxed)

    def _by_itself(self, marginal: Marginal) -> list[Finding]:
        if marginal.levels not in self._alone:
            names = tuple(column for column, _ in self.columns)
            self._alone[marginal.levels] = self._within_limits(
                lambda: judged_alone(self.rules, self.factors.made(marginal), names, self.joint)
            )
        return self._alone[marginal.levels]

    def _relaxed(self, rules: Sequence[Rule], tree: Tree) -> list[Finding]:
        if self.epsilon is None:
            raise UnclearError(_too_large(self.limit) + ", or allow the relaxed check: epsilon=0.1")
        for one in rules:
            if relaxable(one) is None:
                raise UnclearError(_too_large(self.limit) + f"; the relaxed check does not know {one.principle!r}")
        epsilon = self.epsilon
        return self._within_limits(lambda: judged_relaxed(rules, self.factors, tree, epsilon))

    def _tree(self, marginals: Sequence[Marginal]) -> Tree:
        """The junction tree of the marginals, the largest at the root: a root's rows are joined in pieces."""
        order = sorted(marginals, key=lambda one: (-len(self.cache.counts(one).n), one.levels))
        found = tree_of(self.cache.domain, order)
        assert found is not None, "marginals with the sensitive columns of a decomposable collection are decomposable"
        return found

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
    walk = Walk(tree, factors, lambda at: factors.of(tree.marginals[at]).n.clip(max=k), least, capped(k))
    best: tuple[int, Rows | None, int] = (k, None, 0)
    for rows in walk.chunks():
        bound = rows.vectors.sum(axis=1)
        at = int(bound.argmin()) if len(bound) else 0
        if len(bound) and bound[at] < best[0]:
            best = (int(bound[at]), rows, at)
    found, rows_, at = best
    return (found, {}) if rows_ is None else (found, origin_cell(tree, factors, rows_.origin[at].astype(np.int64)))
