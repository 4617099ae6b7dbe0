"""Diversity and closeness under maximum entropy for decomposable collections (Kifer & Gehrke 2006, Section 7).

Proposition 7.1: only levels that some marginal shows matter. Proposition 7.3: only marginals with the sensitive columns
matter. Proposition 7.2: a marginal, or a few neighbours in the junction tree, that break the promise by themselves
break it together with all others, because their cells are sums of finer ones; so single marginals are judged first,
exactly, as counts; then pairs; then all (Algorithm 1, where I_v takes the place of Tmp at leaves).

Principles count people. A row here is what Equation 2 expects of a cell of the quasi-identifiers: a vector of real
numbers, one for each joint sensitive value, on any scale. A principle judges rows by its `expected` form, or, where it
has none and looks at shares alone, as the counts of very many people who have these shares.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from jali.core.arrays import Bools, Floats, Ints, added
from jali.errors import InputError
from jali.graphical.maxent import Tree
from jali.graphical.privacy import join
from jali.graphical.privacy.join import Cell, Factor, Factors, Prune, Rows, Walk, cell_of, origin_cell
from jali.principles.base import TIE, Expected, Principle, known_principles
from jali.principles.column import ColumnPrinciple
from jali.principles.counts import Counts, Sensitive

MANY = math.lcm(*range(1, 31))
"""How many people a row is taken for where it is judged as counts: shares with small denominators stay exact."""

FEWER = math.lcm(*range(1, 15))
"""The same for rows that are right to a few digits only."""


class Judged(NamedTuple):
    """What each row reaches, and whether that is enough: (rows,) each."""

    levels: Floats
    holds: Bools


@dataclass(frozen=True, eq=False)
class Part:
    """One sensitive column within a joint distribution: which joint values it looks at, and the value of each."""

    column: Sensitive
    joint: Ints  # (chosen,) positions among the joint values
    value: Ints  # (chosen,) the column's value of each
    reference: Floats  # (values,) people of the whole table
    principle: ColumnPrinciple

    @cached_property
    def expected(self) -> Expected | None:
        """The principle's form for distributions of this column, if it has one."""
        return self.principle.expected(self.column, self.reference)

    @cached_property
    def whole(self) -> bool:
        """Whether the joint values are just the column's values, in order."""
        every = np.arange(len(self.column))
        return np.array_equal(self.joint, every) and np.array_equal(self.value, every)

    def of(self, rows: Floats) -> Floats:
        """The column's own distributions: (rows, values)."""
        if self.whole:
            return rows
        own = np.zeros((len(self.column), len(rows)))
        np.add.at(own, self.value, rows[:, self.joint].T)
        return own.T

    def level(self, rows: Floats, tie: float) -> Floats:
        """The principle's level of each row; a row of zeros is nobody and reaches everything: (rows,)."""
        own = self.of(rows)
        somebody = own.sum(axis=1) > 0
        if self.expected is None:
            levels = self.principle.level(self.people(own, tie))
        else:
            levels = self.expected.level(np.where(somebody[:, None], own, 1.0))
        return np.where(somebody, levels, np.inf if self.principle.better == "higher" else 0.0)

    def people(self, own: Floats, tie: float) -> Counts:
        """Very many people with the shares of each row, a group a row; a value that is possible has somebody."""
        total = own.sum(axis=1, keepdims=True)
        n = np.rint(own / np.where(total > 0, total, 1.0) * (MANY if tie <= TIE else FEWER)).astype(np.int64)
        n = np.where(own > 0, np.maximum(n, 1), 0)
        group, value = (at.astype(np.int64) for at in np.nonzero(n))
        every, zero = np.arange(len(self.column)), np.zeros(len(self.column), dtype=np.int64)
        table = Counts(1, zero, every, self.reference.astype(np.int64), (self.column,), every[:, None])
        return Counts(len(n), group, value, n[group, value], (self.column,), every[:, None], whole=table)


@dataclass(frozen=True, eq=False)
class Rule:
    """A principle and the parts of the joint distribution that it judges, one by one."""

    principle: Principle  # as it was asked for
    judged: ColumnPrinciple  # itself, or what a MultiAttribute wraps
    parts: tuple[Part, ...]

    @property
    def expected(self) -> Expected | None:
        """The principle's form for distributions, in the first of its parts: bounds are the same in all."""
        return self.parts[0].expected

    def level(self, rows: Floats, tie: float = TIE) -> Floats:
        """What each row reaches, the worst of its parts: (rows,)."""
        levels = [part.level(rows, tie) for part in self.parts]
        weaker = np.minimum if self.judged.better == "higher" else np.maximum
        return np.asarray(weaker.reduce(levels), dtype=np.float64)

    def judge(self, rows: Floats, tie: float = TIE) -> Judged:
        """What each row reaches, and whether that keeps the promise up to a relative `tie`."""
        levels = self.level(rows, tie)
        if self.expected is not None:
            return Judged(levels, self.expected.enough(levels, tie))
        verdicts = [self.judged.holds(part.people(part.of(rows), tie)) for part in self.parts]
        return Judged(levels, np.logical_and.reduce(verdicts))

    def clearly_broken(self, rows: Floats, clear: float, tie: float) -> bool:
        """Whether some row misses the bound even if its level is better by the share `clear`.

        False for a principle whose levels do not say how far they are from its bound.
        """
        if self.expected is None:
            return False
        better = 1 + clear if self.judged.better == "higher" else 1 - clear
        return not bool(self.expected.enough(self.level(rows, tie) * better, tie).all())


def rule(principle: Principle, columns: tuple[Sensitive, ...], joint: Ints, people: Ints) -> Rule:
    """How a principle judges distributions over joint values of the columns.

    `joint` (joint values, columns) has the values of each, `people` how many people of the whole table have it.
    """
    inner = principle.inner
    if not isinstance(inner, ColumnPrinciple) or not _has_form(type(inner)):
        known = ", ".join(sorted(name for name, kind in known_principles().items() if _has_form(kind)))
        raise InputError(
            f"marginals cannot be judged by {type(inner).__name__}", do=f"choose among KAnonymity, {known}"
        )
    parts: list[Part] = []
    for at, column in enumerate(columns):
        if not principle.every_column and inner.sensitive not in (None, column.name):
            continue
        if column.unknown is not None:
            what = f'collections of marginals cannot leave out the people whose "{column.name}" is missing'
            raise InputError(what, do=f'read the table with missing="drop" or missing_is_value=["{column.name}"]')
        people_of = added(joint[:, at], people, len(column))
        others = np.delete(joint, at, axis=1)
        _, rest = np.unique(others, axis=0, return_inverse=True)
        rest = rest.reshape(-1) if principle.every_column else np.zeros(len(joint), dtype=np.int64)
        for one in range(int(rest.max(initial=-1)) + 1):
            chosen = np.flatnonzero(rest == one)
            parts.append(Part(column, chosen, joint[chosen, at], people_of, inner))
    return Rule(principle, inner, tuple(parts))


def _has_form(kind: type[Principle]) -> bool:
    """Whether principles of this class can judge distributions: by a form of their own, or by shares alone."""
    return kind.shares_alone or kind.expected is not Principle.expected


@dataclass(frozen=True)
class Finding:
    """The worst cell that a rule met, what it reaches there, and whether that is enough."""

    rule: Rule
    holds: bool
    reached: float
    cell: Cell


def worse(one: Finding, other: Finding) -> bool:
    """Whether a finding of the same rule is worse than another: it fails, or comes nearer to that."""
    return _rank(one.rule, one.reached, one.holds) < _rank(other.rule, other.reached, other.holds)


def judged_alone(rules: Iterable[Rule], factor: Factor, columns: tuple[Sensitive, ...], joint: Ints) -> list[Finding]:
    """Each rule on one marginal alone, exactly: its cells are groups of whole people."""
    group, value = np.nonzero(factor.n)
    counts = Counts(len(factor.n), group, value, factor.n[group, value], columns, joint)
    findings = []
    for rule in rules:
        judged = Judged(rule.principle.level(counts), rule.principle.holds(counts))
        findings.append(worst(rule, judged, lambda at: cell_of(factor.quasi, factor.cells[at])))
    return findings


def worst(rule: Rule, judged: Judged, cell: Callable[[int], Cell]) -> Finding:
    """The worst of the rows that a rule has judged; `cell` says where a row stands."""
    at = worst_row(rule, *judged)
    return Finding(rule, bool(judged.holds[at]), float(judged.levels[at]), cell(at))


def judged_together(rules: Iterable[Rule], factors: Factors, tree: Tree) -> list[Finding]:
    """Each rule on all cells that the marginals' maximum-entropy distribution allows."""
    by_prune: dict[Prune, list[Rule]] = {}
    for rule in rules:
        by_prune.setdefault(pruning(rule, len(factors.joint)), []).append(rule)
    findings = []
    for prune, some in by_prune.items():
        walk = Walk(tree, factors, lambda at: factors.of(tree.marginals[at]).n.astype(np.float64), join.expected, prune)
        findings += _walked(walk, some, Rule.judge)
    return findings


def _walked(walk: Walk, rules: list[Rule], judge: Callable[[Rule, Floats], Judged]) -> list[Finding]:
    """The worst cell of each rule over all rows at the root."""
    best: dict[int, tuple[float, bool, Rows, int]] = {}
    for rows in walk.chunks():
        for number, rule in enumerate(rules):
            if len(rows.vectors) == 0:
                continue
            levels, holds = judge(rule, rows.vectors)
            at = worst_row(rule, levels, holds)
            one = (float(levels[at]), bool(holds[at]), rows, at)
            before = best.get(number)
            if before is None or _rank(rule, one[0], one[1]) < _rank(rule, before[0], before[1]):
                best[number] = one
    findings = []
    for number, rule in enumerate(rules):
        level, holds_, rows, at = best[number]
        cell = origin_cell(walk.tree, walk.factors, rows.origin[at].astype(np.int64))
        findings.append(Finding(rule, holds_, level, cell))
    return findings


def _rank(rule: Rule, level: float, holds: bool) -> tuple[bool, float]:
    return holds, level if rule.judged.better == "higher" else -level


def worst_row(rule: Rule, levels: Floats, holds: Bools) -> int:
    """The row that breaks the promise furthest, or comes nearest to it."""
    worse = levels if rule.judged.better == "higher" else -levels
    return int(np.lexsort((worse, holds))[0])


def pruning(rule: Rule, values: int) -> Prune:
    """The pruning that fits a rule: by support, by ratios where l is all values, by hulls where values are few.

    With more values hardly any rows but multiples of others can be shown to be superfluous. A hull needs a principle
    that merging never breaks: the shares that keep it are then convex, and joining maps hulls onto hulls.
    """
    looks_at = "shares" if rule.expected is None else rule.expected.looks_at
    if looks_at == "values":
        return join.support
    if looks_at == "ratios" and len(rule.parts) == 1 and rule.parts[0].whole:
        return join.ratio
    return join.hull if values <= join.HULL_VALUES and rule.judged.monotone else join.proportional


def relaxable(rule: Rule) -> int | None:
    """How many frequent values the relaxed check asks for; None for a rule that it says nothing about."""
    several = len(rule.parts) > 1 or len(np.unique(rule.parts[0].value)) < len(rule.parts[0].value)
    return None if several or rule.expected is None else rule.expected.frequent


def judged_relaxed(rules: Iterable[Rule], factors: Factors, tree: Tree, epsilon: float) -> list[Finding]:
    """Each rule relaxed: every cell has l values at least (1 - ε)^p times as frequent as its most frequent one.

    A value counts for a marginal's row where n / separator is at least 1 - ε times the row's largest; it counts for a
    cell where it counts for all p marginals. A cell that has no such value fails, whether anybody can be there or not.
    """

    def start(at: int) -> Floats:
        rows = factors.of(tree.marginals[at]).n.astype(np.float64)
        if at:
            link = factors.link(tree.marginals[at], tree.separators[at])
            rows = rows / np.maximum(factors.of(tree.separators[at]).n[link], 1)
        return np.asarray(rows >= (1 - epsilon) * rows.max(axis=1, keepdims=True), dtype=np.float64)

    def judge(rule: Rule, rows: Floats) -> Judged:
        frequent = rule.parts[0].of(rows).sum(axis=1)
        return Judged(frequent, frequent >= (relaxable(rule) or 0))

    walk = Walk(tree, factors, start, join.least, join.smallest, keeps_zeros=True)
    return _walked(walk, list(rules), judge)
