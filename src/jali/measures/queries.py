"""Query error: how far counts from a release are from those of the table, over a workload of random questions.

The workload is that of the ANGEL paper (Tao et al., Section 6): each question asks for some values of every column, as
many of each column's n values as ⌈n · s^(1/d)⌉ for volume s and d columns; a run of neighbours where the column has
numbers or dates, any values otherwise. The error is |estimate − truth| / truth.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jali.core.arrays import Bools, Floats, Ints, steps
from jali.encoding.large import pieces_of
from jali.encoding.table import Column, Domain, Table
from jali.errors import InputError
from jali.estimates.base import Estimate, condition_of, generator, likely, short
from jali.principles.base import exact, whole_number
from jali.query.match import holds
from jali.query.tree import And, Condition, Constant, Not, Or, Test

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
        found = np.array([likely(estimate, condition) for condition in self.conditions])
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
    """The condition of each question on a column, and which of its codes satisfy it: (questions, codes)."""
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
    packed = [np.packbits(own.T, axis=1) for own in holds]  # (codes, questions / 8)
    truth = np.zeros(len(holds[0]))
    for piece in pieces_of(table):
        weight = piece.frequencies.weight
        codes = [codes_of(piece, column) for column in columns]
        for some in steps(len(weight), len(truth), _AT_ONCE):
            both = packed[0][codes[0][some]]
            for own, code in zip(packed[1:], codes[1:], strict=True):
                both &= own[code[some]]
            truth += weight[some] @ np.unpackbits(both, axis=1, count=len(truth))
    return truth


def true_count(table: Table, condition: str | Condition) -> float:
    """How many rows of the table satisfy a condition, or the sum of their weights: for its holder."""
    asked = condition_of(condition, None)
    rows = np.ones(table.records) if table.weight is None else table.weight
    rows = rows if table.multiplicity is None else rows * table.multiplicity
    return float(rows[_satisfied(table, asked)].sum())


def _satisfied(table: Table, asked: Condition) -> Bools:
    """Which records satisfy a condition: (records,)."""
    match asked:
        case Test():
            column = table[asked.column]
            found: Bools = holds(asked, column.values.to_pylist())[column.codes]
            return found
        case Not():
            return ~_satisfied(table, asked.part)
        case And() | Or():
            every = isinstance(asked, And)
            both = np.full(table.records, every, dtype=np.bool_)
            for part in asked.parts:
                both = both & _satisfied(table, part) if every else both | _satisfied(table, part)
            return both
        case Constant():
            return np.full(table.records, asked.value, dtype=np.bool_)


def codes_of(table: Table, column: Column) -> NDArray[np.integer]:
    """The code of a column in each entry of the table's frequencies."""
    f = table.frequencies
    for columns, codes, entry in ((table.quasi, f.codes, f.combination), (table.sensitive, f.joint, f.value)):
        for at, other in enumerate(columns):
            if other.name == column.name:
                found: NDArray[np.integer] = codes[entry, at]
                return found
    raise InputError(f'column "{column.name}" is neither a quasi-identifier nor sensitive')


# -- each column and each pair of columns, estimated from a release and compared with the original if given ------------
#
# Columns with many values are compared by classes: intervals of equal width between the first and the last hundredth of
# the people, or the most frequent values and all others together.

CLASSES = 12
"""The most classes that a column is divided into."""
LARGEST_PAIR = 1_000_000
"""Pairs of columns whose values have more combinations than this are not compared."""


@dataclass(frozen=True)
class Classes:
    """The classes of a column: what each is called, and where each value belongs."""

    column: str
    labels: tuple[str, ...]
    of_value: dict[Any, int]

    def of(self, values: Iterable[Any]) -> Ints:
        """The class of each value: (values,)."""
        return np.array([self.of_value[_key(value)] for value in values], dtype=np.int64)


@dataclass(frozen=True)
class Distribution:
    """The shares of a column's classes, as published and in the original."""

    classes: Classes
    published: Floats  # (classes,)
    original: Floats | None = None  # (classes,)

    @property
    def distance(self) -> float | None:
        """The total variation distance: the share of people that would have to move from class to class."""
        return None if self.original is None else float(np.abs(self.published - self.original).sum()) / 2


@dataclass(frozen=True)
class Association:
    """How far two columns go together, as published and in the original: Cramér's V of their classes, 0 to 1."""

    columns: tuple[str, str]
    published: float
    original: float | None = None


def distribution(estimate: Estimate, column: str, original: Table | None = None) -> Distribution:
    """How a column is distributed; an InputError where its values cannot be listed."""
    values, count = _listed(estimate, column)
    theirs = None if original is None else _own(original, column)
    known = values + ([] if theirs is None else [v for v in theirs[0] if v not in set(values)])
    mass = np.zeros(len(known))
    mass[: len(count)] = count
    if theirs is not None:
        place = {value: i for i, value in enumerate(known)}
        np.add.at(mass, [place[v] for v in theirs[0]], theirs[1])
    classes = _classes(column, known, mass)
    shares = _shares(classes, values, count)
    return Distribution(classes, shares, None if theirs is None else _shares(classes, *theirs))


def association(estimate: Estimate, one: Classes, other: Classes, original: Table | None = None) -> Association | None:
    """How far two columns go together; None where their values have too many combinations to be listed."""
    if len(one.of_value) * len(other.of_value) > LARGEST_PAIR:
        return None
    names = (one.column, other.column)
    frame = estimate.frame(list(names))
    count = np.asarray(frame[frame.column_names[-1]], dtype=np.float64)
    one, other = (_covering(c, frame[c.column].to_pylist(), count) for c in (one, other))
    shape = (len(one.labels), len(other.labels))
    table = np.zeros(shape)
    at = [c.of(frame[c.column].to_pylist()) for c in (one, other)]
    np.add.at(table, (at[0], at[1]), count)
    if original is None:
        return Association(names, cramers_v(table))
    theirs = np.zeros(shape)
    at = [c.of(original[c.column].values.to_pylist())[codes_of(original, original[c.column])] for c in (one, other)]
    np.add.at(theirs, (at[0], at[1]), original.frequencies.weight)
    return Association(names, cramers_v(table), cramers_v(theirs))


def _covering(classes: Classes, values: Sequence[Any], count: Floats) -> Classes:
    """These classes, or where they lack a value new ones: of several tables one can show values that another does not.

    A release with marginals answers a pair of columns from another table than each of them alone.
    """
    mass = dict.fromkeys(classes.of_value, 0.0)
    for value, own in zip(map(_key, values), count.tolist(), strict=True):
        mass[value] = mass.get(value, 0.0) + own
    if len(mass) == len(classes.of_value):
        return classes
    return _classes(classes.column, list(mass), np.array(list(mass.values())))


def cramers_v(table: Floats) -> float:
    """Cramér's V of a table of counts: √(χ² / n / (min(rows, columns) − 1)); 0 where a column has a single value.

    >>> round(cramers_v(np.array([[5.0, 0.0], [0.0, 5.0]])), 6), cramers_v(np.ones((2, 3)))
    (1.0, 0.0)
    """
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    if min(table.shape) < 2:
        return 0.0
    share = table / table.sum()
    expected = share.sum(axis=1, keepdims=True) * share.sum(axis=0, keepdims=True)
    squared = float((share**2 / expected).sum()) - 1
    v = math.sqrt(max(squared, 0.0) / (min(table.shape) - 1))
    return min(1.0, v) if v > 1e-7 else 0.0  # what is left of sums that cancel


def _listed(estimate: Estimate, column: str) -> tuple[list[Any], Floats]:
    frame = estimate.frame([column])
    return list(map(_key, frame[column].to_pylist())), np.asarray(frame[frame.column_names[-1]], dtype=np.float64)


def _own(table: Table, column: str) -> tuple[list[Any], Floats]:
    """The original's values of a column, and how many people (or what weight) have each."""
    codes = codes_of(table, table[column])
    values = table[column].values.to_pylist()
    mass = np.bincount(codes, weights=table.frequencies.weight, minlength=len(values))
    return list(map(_key, values)), mass.astype(np.float64)


def _shares(classes: Classes, values: Sequence[Any], count: Floats) -> Floats:
    mass = np.bincount(classes.of(values), weights=count, minlength=len(classes.labels))
    return np.asarray(mass / max(float(mass.sum()), 1e-300), dtype=np.float64)


def _classes(column: str, values: list[Any], mass: Floats) -> Classes:
    if not values:
        raise InputError(f'column "{column}" has no values')
    filled = [v for v in values if v is not None]
    numbers = all(isinstance(v, (int, float, datetime.date)) and not isinstance(v, bool) for v in filled)
    if numbers and len(filled) > CLASSES:
        return _intervals(column, values, mass)
    if numbers or len(values) <= CLASSES:
        order = sorted(filled) if numbers else [values[i] for i in _by_mass(values, mass)]
        order += [None] if numbers and None in values else []
        return Classes(column, tuple(_text(v) for v in order), {v: i for i, v in enumerate(order)})
    ranked = [values[i] for i in _by_mass(values, mass)]
    top = ranked[: CLASSES - 1]
    rest = len(values) - len(top)
    of_value = {v: min(i, len(top)) for i, v in enumerate(ranked)}
    return Classes(column, (*map(_text, top), f"{rest:,} other values"), of_value)


def _by_mass(values: list[Any], mass: Floats) -> list[int]:
    """The most frequent first; equal ones by name, so that the order is nobody's secret."""
    return sorted(range(len(values)), key=lambda i: (-round(float(mass[i]), 6), _text(values[i])))


def _intervals(column: str, values: list[Any], mass: Floats) -> Classes:
    """Classes of equal width, the outer ones open to the side, where the outermost hundredths of the mass lie."""
    filled = sorted(v for v in values if v is not None)
    weight = dict(zip(values, mass.tolist(), strict=True))
    below = np.cumsum([weight[v] for v in filled])
    cuts = np.searchsorted(below, [0.01 * below[-1], 0.99 * below[-1]])
    low, high = filled[int(cuts[0])], filled[min(int(cuts[1]), len(filled) - 1)]
    width = (_number(high) - _number(low) + (1 if isinstance(low, (int, datetime.date)) else 0)) / (CLASSES - 2) or 1.0
    if isinstance(low, (int, datetime.date)):
        width = math.ceil(width)
    raw = [int((_number(v) - _number(low)) // width) for v in filled]
    last = int((_number(high) - _number(low)) // width)
    bounded = [min(max(r, 0), last) for r in raw]
    used = sorted(set(bounded))
    members = {r: [v for v, own in zip(filled, bounded, strict=True) if own == r] for r in used}
    labels = [_span(own[0], own[-1]) for own in members.values()]
    of_value: dict[Any, int] = {v: used.index(r) for v, r in zip(filled, bounded, strict=True)}
    if None in values:
        of_value[None] = len(labels)
        labels.append(_text(None))
    return Classes(column, tuple(labels), of_value)


def _key(value: Any) -> Any:
    """A value as both sides call it: a day is its midnight."""
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return datetime.datetime.combine(value, datetime.time())
    return value


def _number(value: Any) -> float:
    if isinstance(value, datetime.datetime):
        return (value.replace(tzinfo=None) - datetime.datetime(1970, 1, 1)).total_seconds() / 86400
    return float(value)


def _span(first: Any, last: Any) -> str:
    return _text(first) if first == last else f"{_text(first)} – {_text(last)}"


def _text(value: Any) -> str:
    if value is None:
        return "missing"
    if isinstance(value, datetime.datetime):
        return str(value.date() if value.time() == datetime.time() else value)
    return short(value) if isinstance(value, float) else str(value)
