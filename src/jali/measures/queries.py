"""Query error: how far counts from a release are from those of the table, over a workload of random questions.

The workload is that of the ANGEL paper (Tao et al., Section 6): each question asks for some values of every column, as
many of each column's n values as ⌈n · s^(1/d)⌉ for volume s and d columns; a run of neighbours where the column has
numbers or dates, any values otherwise. The error is |estimate − truth| / truth.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jali.core.arrays import Bools, Floats, steps
from jali.encoding.table import Column, Domain, Table
from jali.errors import InputError
from jali.estimates.base import Estimate, generator
from jali.principles.base import exact, whole_number
from jali.query.tree import And, Condition, Test

_AT_ONCE = 1 << 24  # truth values held at a time


@dataclass(frozen=True)
class QueryErrors:
    """How well a workload of counts is answered."""

    queries: int
    volume: float
    average: float  # mean relative error of the questions that somebody in the table satisfies
    median: float
    empty: int  # questions that nobody satisfies, which have no relative error
    empty_average: float  # the mean estimate for those, which should be 0

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return dict(vars(self))


@dataclass(frozen=True)
class Workload:
    """Random questions about a table, and their true answers."""

    conditions: tuple[Condition, ...]
    truth: Floats  # (questions,) rows, or the sum of their weights
    volume: float

    def errors(self, estimate: Estimate) -> QueryErrors:
        """How far an estimate is from the truth."""
        found = np.array([float(estimate.count(condition)) for condition in self.conditions])
        some = self.truth > 0
        relative = np.abs(found[some] - self.truth[some]) / self.truth[some]
        return QueryErrors(
            queries=len(found),
            volume=self.volume,
            average=float(relative.mean()) if some.any() else float("nan"),
            median=float(np.median(relative)) if some.any() else float("nan"),
            empty=int((~some).sum()),
            empty_average=float(found[~some].mean()) if not some.all() else 0.0,
        )


def workload(
    table: Table,
    queries: int = 1000,
    *,
    volume: float = 0.05,
    seed: int | np.random.Generator = 0,
    columns: Iterable[str] | None = None,
    domain: Domain | None = None,
) -> Workload:
    """Random questions about the given columns of a table.

    By default about all quasi-identifiers and sensitive columns, but for those of which every value is missing.
    """
    number = whole_number("queries", queries)
    share = float(exact("volume", volume))
    if not 0 < share <= 1:
        raise InputError("volume must be above 0 and at most 1", got=str(volume))
    over = domain or table.domain
    every = [*table.quasi, *table.sensitive]
    if columns is None:
        named = [column for column in every if len(_known(column, over))] or every
    else:
        named = [table[name] for name in columns]
    random = generator(seed)
    asked = [_asked(column, over, number, share ** (1 / len(named)), random) for column in named]
    conditions = tuple(And(tuple(parts)) for parts in zip(*(tests for tests, _ in asked), strict=True))
    return Workload(conditions, _truth(table, named, [holds for _, holds in asked]), share)


def _known(column: Column, domain: Domain) -> NDArray[np.intp]:
    """The codes of the values that can be asked for: (values,)."""
    return np.flatnonzero(column.mask(domain) & ~column.values.is_null().to_numpy(zero_copy_only=False))


def _asked(
    column: Column, domain: Domain, queries: int, share: float, random: np.random.Generator
) -> tuple[list[Condition], Bools]:
    """What is asked of a column, question by question, and which of its codes satisfy it: (questions, codes)."""
    known = _known(column, domain)
    if len(known) == 0:
        do = "leave the column out: every value of it is missing"
        raise InputError(f'column "{column.name}" has no value to ask for', do=do)
    many = min(len(known), int(np.ceil(len(known) * share - 1e-9)))
    ordered = column.kind in ("number", "date")
    holds = np.zeros((queries, len(column.values)), dtype=np.bool_)
    tests: list[Condition] = []
    values = column.values.to_pylist()
    for question in range(queries):
        if ordered:
            start = int(random.integers(len(known) - many + 1))
            chosen = known[start : start + many]
            ends = Test(column.name, ">=", values[chosen[0]]), Test(column.name, "<=", values[chosen[-1]])
            tests.append(And(ends))
        else:
            chosen = random.choice(known, many, replace=False)
            tests.append(Test(column.name, "in", frozenset(values[code] for code in chosen)))
        holds[question, chosen] = True
    return tests, holds


def _truth(table: Table, columns: list[Column], holds: list[Bools]) -> Floats:
    """How many satisfy each question, from the distinct combinations, eight questions to a byte: (questions,)."""
    weight = table.frequencies.weight
    codes = [codes_of(table, column) for column in columns]
    packed = [np.packbits(own.T, axis=1) for own in holds]  # (codes, questions / 8)
    truth = np.zeros(len(holds[0]))
    for some in steps(len(weight), len(truth), _AT_ONCE):
        both = packed[0][codes[0][some]]
        for own, code in zip(packed[1:], codes[1:], strict=True):
            both &= own[code[some]]
        truth += weight[some] @ np.unpackbits(both, axis=1, count=len(truth))
    return truth


def codes_of(table: Table, column: Column) -> NDArray[np.integer]:
    """The code of a column in each entry of the table's frequencies."""
    f = table.frequencies
    for columns, codes, entry in ((table.quasi, f.codes, f.combination), (table.sensitive, f.joint, f.value)):
        for at, other in enumerate(columns):
            if other.name == column.name:
                found: NDArray[np.integer] = codes[entry, at]
                return found
    raise InputError(f'column "{column.name}" is neither a quasi-identifier nor sensitive')
