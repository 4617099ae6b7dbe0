"""Diversity and closeness of real-valued distributions: what maximum entropy makes of a cell, judged by the principles.

The foundation's principles count people. Here a row is what Equation 2 expects of a cell of the quasi-identifiers, a
vector of real numbers, one for each sensitive value, on any scale. Levels are those of the principles. Rows are
products and quotients of counts, right to about 15 digits, so that comparisons have a tolerance: TIE relative to the
bound, in favour of a bound that may be met (≤), against one that must be beaten (<); entropies have the foundation's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jali.core.arrays import Bools, Floats, Ints, added
from jali.errors import InputError
from jali.principles import (
    AlphaAnonymity,
    DistinctDiversity,
    EntropyDiversity,
    FrequencyDiversity,
    MultiAttribute,
    Principle,
    RecursiveDiversity,
    Sensitive,
    TCloseness,
)
from jali.principles.base import ENTROPY_TOLERANCE
from jali.principles.column import ColumnPrinciple, mask

TIE = 1e-12
"""Two shares that differ by less, relatively, are the same."""

JUDGED = (
    AlphaAnonymity,
    DistinctDiversity,
    EntropyDiversity,
    FrequencyDiversity,
    RecursiveDiversity,
    TCloseness,
)


@dataclass(frozen=True, eq=False)
class Part:
    """One sensitive column within a joint distribution: which joint values it looks at, and the value of each."""

    column: Sensitive
    joint: Ints  # (chosen,) positions among the joint values
    value: Ints  # (chosen,) the column's value of each
    reference: Floats  # (values,) people of the whole table

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


@dataclass(frozen=True, eq=False)
class Rule:
    """A principle and the parts of the joint distribution that it judges, one by one."""

    principle: Principle  # as it was asked for
    judged: ColumnPrinciple  # itself, or what a MultiAttribute wraps
    parts: tuple[Part, ...]

    def level(self, rows: Floats) -> Floats:
        """What each row reaches, the worst of its parts: (rows,)."""
        found = [level(self.judged, part.of(rows), part) for part in self.parts]
        weaker = np.minimum if self.judged.better == "higher" else np.maximum
        return np.asarray(weaker.reduce(found), dtype=np.float64)

    def enough(self, levels: Floats, tie: float = TIE) -> Bools:
        """Whether each level keeps the promise, up to a relative `tie`: (rows,)."""
        return enough(self.judged, levels, tie)


def rule(principle: Principle, columns: tuple[Sensitive, ...], joint: Ints, people: Ints) -> Rule:
    """How a principle judges distributions over these joint values, `joint` (values, columns), of so many people."""
    many = isinstance(principle, MultiAttribute)
    inner = principle.principle if isinstance(principle, MultiAttribute) else principle
    if not isinstance(inner, JUDGED):
        known = ", ".join(kind.__name__ for kind in JUDGED)
        raise InputError(
            f"marginals cannot be judged by {type(inner).__name__}", do=f"choose among KAnonymity, {known}"
        )
    parts: list[Part] = []
    for at, column in enumerate(columns):
        if not many and inner.sensitive not in (None, column.name):
            continue
        people_of = added(joint[:, at], people, len(column))
        others = np.delete(joint, at, axis=1)
        _, rest = np.unique(others, axis=0, return_inverse=True)
        rest = rest.reshape(-1) if many else np.zeros(len(joint), dtype=np.int64)
        for one in range(int(rest.max(initial=-1)) + 1):
            chosen = np.flatnonzero(rest == one)
            parts.append(Part(column, chosen, joint[chosen, at], people_of))
    return Rule(principle, inner, tuple(parts))


def level(principle: ColumnPrinciple, rows: Floats, part: Part) -> Floats:
    """The level of each row as the principle defines it; a row of zeros is nobody and reaches everything: (rows,)."""
    total = rows.sum(axis=1)
    safe = np.where(total > 0, total, 1.0)
    best = np.inf if principle.better == "higher" else 0.0
    if isinstance(principle, DistinctDiversity):
        found: Floats = np.count_nonzero(rows, axis=1).astype(np.float64)
    elif isinstance(principle, FrequencyDiversity):
        found = safe / np.where(total > 0, rows.max(axis=1), 1.0)
    elif isinstance(principle, AlphaAnonymity):
        watched = mask(part.column, principle.values) if principle.values else np.ones(len(part.column), dtype=bool)
        found = rows[:, watched].max(axis=1, initial=0.0) / safe
    elif isinstance(principle, EntropyDiversity):
        careless = mask(part.column, principle.dont_care)
        found = adjusted_perplexity(rows, careless) if careless.any() else perplexity(rows / safe[:, None])
    elif isinstance(principle, RecursiveDiversity):
        found = _needed_c(principle, rows, total, part.column)
    else:
        assert isinstance(principle, TCloseness)
        found = _moved(principle, rows / safe[:, None], part)
    return np.where(total > 0, found, best)


def enough(principle: ColumnPrinciple, levels: Floats, tie: float = TIE) -> Bools:
    """Whether each level keeps the promise: (rows,)."""
    if isinstance(principle, (DistinctDiversity, FrequencyDiversity)):
        return np.asarray(levels >= float(principle.l) * (1 - tie))
    if isinstance(principle, EntropyDiversity):
        return np.asarray(np.log(levels) >= math.log(principle.l) - max(ENTROPY_TOLERANCE, tie))
    if isinstance(principle, RecursiveDiversity):
        return np.asarray(levels < float(principle.c) * (1 - tie))
    assert isinstance(principle, (AlphaAnonymity, TCloseness))
    bound = principle.alpha if isinstance(principle, AlphaAnonymity) else principle.t
    return np.asarray(levels <= float(bound) + tie)


def perplexity(shares: Floats) -> Floats:
    """exp(-Σ p log p) of each row of shares: (rows,)."""
    surprise = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
    return np.asarray(np.exp(-np.einsum("ij,ij->i", shares, surprise)))


def adjusted_perplexity(rows: Floats, careless: Bools) -> Floats:
    """exp(adjusted entropy), by Theorem 4.1 of the l-diversity paper; the twin of principles.entropy.

    The log-entropic mean moves with the scale of a row as the logarithms do, so that real numbers serve like counts.
    """
    fixed = np.where(careless, 0.0, rows)
    logs = np.log(rows, out=np.zeros_like(rows), where=rows > 0)
    guarded = fixed.sum(axis=1) > 0
    people, weighted = fixed.sum(axis=1), (fixed * logs).sum(axis=1)
    order = np.argsort(np.where(careless & (rows > 0), rows, np.inf), axis=1)[:, : int(careless.sum())]
    at, active = np.arange(len(rows)), guarded.copy()
    for rank in range(order.shape[1]):
        column = order[:, rank]
        here = rows[at, column]
        active = active & careless[column] & (here > 0) & (logs[at, column] * people < weighted)
        fixed[at[active], column[active]] = here[active]
        people = people + np.where(active, here, 0.0)
        weighted = weighted + np.where(active, here * logs[at, column], 0.0)
    lowered = np.count_nonzero((rows > 0) & (fixed == 0), axis=1)
    shares = fixed / np.where(people > 0, people, 1.0)[:, None]
    return np.where(guarded, perplexity(shares) + lowered, np.inf)


def _needed_c(principle: RecursiveDiversity, rows: Floats, total: Floats, column: Sensitive) -> Floats:
    """r_y / tail, the number that c must exceed; infinite where a protected value is too rare (Definitions 4.2-4.4)."""
    needed = np.zeros(len(rows))
    if principle.l > 1:
        top = np.where(mask(column, principle.dont_care), 0.0, rows).max(axis=1)
        r = -np.sort(-rows, axis=1)  # descending
        rest = r[:, max(principle.l - 2, 0) :]  # r_l-1, r_l, …
        at_rank = rest[:, 0] if rest.shape[1] else np.zeros(len(rows))
        # Not Σ rest - min(top, r_l-1): a difference of nearly equal numbers would lose the digits of a small tail.
        tail = np.where(top >= at_rank, rest[:, 1:].sum(axis=1), _without(rest, top))
        needed = np.divide(top, tail, out=np.where(top > 0, np.inf, 0.0), where=tail > 0)
    for value in np.flatnonzero(mask(column, principle.protected)):
        needed = np.where(rows[:, value] >= float(principle.share) * total * (1 - TIE), needed, np.inf)
    return needed


def _without(rest: Floats, top: Floats) -> Floats:
    """The sum of each row without one entry equal to `top`, which stands in it where it is asked for: (rows,)."""
    if rest.shape[1] == 0:
        return np.zeros(len(rest))
    drop = np.abs(rest - top[:, None]).argmin(axis=1)
    kept = rest.copy()
    kept[np.arange(len(rest)), drop] = 0.0
    return np.asarray(kept.sum(axis=1))


def _moved(principle: TCloseness, shares: Floats, part: Part) -> Floats:
    """The earth mover's distance of each row from the whole table: (rows,)."""
    apart = shares - part.reference / part.reference.sum()
    if principle.distance == "ordered":
        return np.asarray(np.abs(np.cumsum(apart, axis=1)).sum(axis=1) / max(len(part.column) - 1, 1))
    if principle.distance == "equal":
        return np.asarray(np.abs(apart).sum(axis=1) / 2)
    tree = part.column.tree
    found = np.zeros(len(shares))
    for nodes in tree[:-1]:
        below = np.zeros((int(nodes.max(initial=0)) + 1, len(shares)))
        np.add.at(below, nodes, apart.T)
        found += np.abs(below).sum(axis=0) / 2 / max(len(tree) - 1, 1)
    return found
