"""Principles as plain numbers, for the kernels that judge groups without leaving compiled code."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jali.core.arrays import Bools, Ints
from jali.principles.base import Principle, least_people
from jali.principles.column import ColumnPrinciple, mask
from jali.principles.counts import Counts

SIZE, DISTINCT, LARGEST, ENTROPY, RECURSIVE, CLOSENESS, SAFETY = range(7)
"""What a rule compares: see `kernels.holds`."""

KIND, COLUMN, P, Q, L, UNKNOWN = range(6)
"""The rows of `Rules.rule`."""

_WIDEST = 2**62


class Rules(NamedTuple):
    """Rules side by side; each compares whole numbers, p and q being numerator and denominator of its parameter."""

    rule: Ints  # (6, rules): what it compares, the judged column, p, q, the l of recursive diversity or k, and the
    #             missing value of the column where that is no value, else -1
    bound: NDArray[np.float64]  # (rules,) the least entropy or ratio
    counted: Bools  # (rules, values) which values matter for the largest
    reference: Ints  # (columns, values) people of the whole table who have each value
    least: int  # no group of fewer people can hold


class Rule(NamedTuple):
    """One comparison that a compiled loop makes for each group; a principle gives one or several that must all hold."""

    kind: int  # what it compares: SIZE, DISTINCT, …
    ratio: Fraction  # its parameter, e.g. k, or the largest share that a value may have
    bound: float = 0.0
    named: tuple[str | None, ...] = ()  # the values that LARGEST looks at; none: all
    l: int = 0


def rules_of(principles: Sequence[Principle], whole: Counts, *, joint: bool = False) -> tuple[Rules, Ints] | None:
    """All rules, and the judged value of each joint value in each column they need: (columns, joint values).

    None where a principle has no rules, or where its numbers might not fit into 64 bits. With `joint`, the last column
    is the joint value itself: what the KL-divergence is measured over.
    """
    names: list[str] = []  # sensitive columns that some rule judges
    rows: list[tuple[Rule, int]] = []
    for principle in principles:
        rules = principle.rules(whole)
        if rules is None:
            return None
        column = 0
        if isinstance(principle, ColumnPrinciple):
            name = whole.column(principle.sensitive).name
            names += [] if name in names else [name]
            column = names.index(name)
        rows += [(rule, column) for rule in rules]
    if not all(_fits(rule, int(whole.n.sum())) for rule, _ in rows):
        return None
    return _laid_out(rows, names, whole, least_people(principles, whole), joint=joint)


def _fits(rule: Rule, people: int) -> bool:
    """Whether the products that the rule compares fit into 64 bits, however the people are grouped."""
    if rule.kind == SAFETY:  # compared digit by digit
        return max(people, rule.ratio.numerator, rule.ratio.denominator) < 2**31
    factor = {SIZE: 1, DISTINCT: 1, CLOSENESS: people**2}.get(rule.kind, people)
    return factor * max(rule.ratio.numerator, rule.ratio.denominator) < _WIDEST


def _laid_out(
    rows: list[tuple[Rule, int]], names: list[str], whole: Counts, least: int, *, joint: bool
) -> tuple[Rules, Ints]:
    known = [column.name for column in whole.sensitive]
    columns = [whole.sensitive[known.index(name)] for name in names]
    values = max([1, *map(len, columns), len(whole.joint) if joint else 1])
    judged = [whole.joint[:, known.index(name)] for name in names]
    judged += [np.arange(len(whole.joint))] if joint else []
    reference = np.zeros((max(len(judged), 1), values), dtype=np.int64)
    for index, name in enumerate(names):
        reference[index, : len(columns[index])] = whole.known(name).reference
    counted = np.ones((len(rows), values), dtype=bool)
    for index, (rule, column) in enumerate(rows):
        if rule.named:
            counted[index, : len(columns[column])] = mask(columns[column], rule.named)
    missing = [-1 if column.unknown is None else column.unknown for column in columns] or [-1]
    terms = [
        (rule.kind, column, rule.ratio.numerator, rule.ratio.denominator, rule.l, missing[column])
        for rule, column in rows
    ]
    rules = Rules(
        rule=np.ascontiguousarray(np.array(terms, dtype=np.int64).reshape(-1, 6).T),
        bound=np.array([rule.bound for rule, _ in rows], dtype=np.float64),
        counted=counted,
        reference=reference,
        least=least,
    )
    stacked = np.stack(judged) if judged else np.zeros((0, len(whole.joint)), dtype=np.int64)
    return rules, np.ascontiguousarray(stacked.astype(np.int64))
