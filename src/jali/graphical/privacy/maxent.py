"""Diversity and closeness under maximum entropy for decomposable collections (Kifer & Gehrke 2006, Section 7).

Proposition 7.1: only levels that some marginal shows matter. Proposition 7.3: only marginals with the sensitive columns
matter. Proposition 7.2: a marginal, or a few neighbours in the junction tree, that break the promise by themselves
break it together with all others, because their cells are sums of finer ones; so single marginals are judged first,
exactly, as counts; then pairs; then all (Algorithm 1, where I_v takes the place of Tmp at leaves).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from jali.core.arrays import Bools, Floats, Ints
from jali.graphical.maxent import Tree
from jali.graphical.privacy.anonymity import Cell, cell_of, origin_cell
from jali.graphical.privacy.diversity import Rule
from jali.graphical.privacy.join import (
    HULL_VALUES,
    Factor,
    Factors,
    Prune,
    Rows,
    Walk,
    expected,
    hull,
    least,
    proportional,
    ratio,
    smallest,
    support,
)
from jali.principles import DistinctDiversity, EntropyDiversity, FrequencyDiversity, RecursiveDiversity
from jali.principles.counts import Counts, Sensitive


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
    found = []
    for rule in rules:
        levels, holds = rule.principle.level(counts), rule.principle.holds(counts)
        at = worst_row(rule, levels, holds)
        found.append(Finding(rule, bool(holds.all()), float(levels[at]), cell_of(factor.quasi, factor.cells[at])))
    return found


def judged_together(rules: Iterable[Rule], factors: Factors, tree: Tree) -> list[Finding]:
    """Each rule on all cells that the marginals' maximum-entropy distribution allows."""
    by_prune: dict[Prune, list[Rule]] = {}
    for rule in rules:
        by_prune.setdefault(pruning(rule, len(factors.joint)), []).append(rule)
    found = []
    for prune, some in by_prune.items():
        walk = Walk(tree, factors, lambda at: factors.of(tree.marginals[at]).n.astype(np.float64), expected, prune)
        found += _walked(walk, some, lambda rule, rows: (levels := rule.level(rows), rule.enough(levels)))
    return found


def _walked(walk: Walk, rules: list[Rule], judge: Callable[[Rule, Floats], tuple[Floats, Bools]]) -> list[Finding]:
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
    found = []
    for number, rule in enumerate(rules):
        level, holds_, rows, at = best[number]
        cell = origin_cell(walk.tree, walk.factors, rows.origin[at].astype(np.int64))
        found.append(Finding(rule, holds_, level, cell))
    return found


def _rank(rule: Rule, level: float, holds: bool) -> tuple[bool, float]:
    return holds, level if rule.judged.better == "higher" else -level


def worst_row(rule: Rule, levels: Floats, holds: Bools) -> int:
    """The row that breaks the promise furthest, or comes nearest to it."""
    worse = levels if rule.judged.better == "higher" else -levels
    return int(np.lexsort((worse, holds))[0])


def pruning(rule: Rule, values: int) -> Prune:
    """The pruning that fits a rule: by support, by ratios where l is all values, by hulls where values are few.

    With more values hardly anything but multiples can be told to be superfluous.
    """
    one, part = rule.judged, rule.parts[0]
    plain = len(rule.parts) == 1 and part.whole
    if isinstance(one, DistinctDiversity):
        return support
    if isinstance(one, RecursiveDiversity) and one.l == values > 1 and plain and not one.protected:
        return ratio
    return hull if values <= HULL_VALUES else proportional


def relaxable(rule: Rule) -> int | None:
    """How many frequent values the relaxed check asks for; None for a rule that it says nothing about."""
    kinds = (DistinctDiversity, EntropyDiversity, FrequencyDiversity, RecursiveDiversity)
    inner = rule.judged
    if not isinstance(inner, kinds) or any(getattr(inner, name) for name in inner.label_fields):
        return None
    several = len(rule.parts) > 1 or len(np.unique(rule.parts[0].value)) < len(rule.parts[0].value)
    return None if several else math.ceil(inner.l)


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

    def judge(rule: Rule, rows: Floats) -> tuple[Floats, Bools]:
        frequent = rule.parts[0].of(rows).sum(axis=1)
        return frequent, frequent >= (relaxable(rule) or 0)

    walk = Walk(tree, factors, start, least, smallest, keeps_zeros=True)
    return [_lowest(walk, rule, judge) for rule in rules]


def _lowest(walk: Walk, rule: Rule, judge: Callable[[Rule, Floats], tuple[Floats, Bools]]) -> Finding:
    """The cell with the fewest frequent values."""
    best: tuple[float, bool, Rows | None, int] = (math.inf, True, None, 0)
    for rows in walk.chunks():
        levels, holds = judge(rule, rows.vectors)
        at = int(levels.argmin())
        if levels[at] < best[0]:
            best = (float(levels[at]), bool(holds[at]), rows, at)
    level, kept, rows_, at = best
    cell = {} if rows_ is None else origin_cell(walk.tree, walk.factors, rows_.origin[at].astype(np.int64))
    return Finding(rule, kept, level, cell)
