"""Estimate: what an analyst can infer from what was published; one protocol for every kind of release."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any, Protocol, Self, TypeVar, runtime_checkable

import numpy as np
import pyarrow as pa

from jali.core.arrays import Floats
from jali.errors import InputError, UndeterminedError, nearest, told
from jali.query.parse import parse
from jali.query.tree import Condition, from_mapping

Key = TypeVar("Key")
Value = TypeVar("Value")
INDEPENDENT = "columns are independent within a row"
KEPT = 256  # projections and patterns that are kept for the next question


class Count(float):
    """An estimated number of people: a float that says what is certain, what is possible, and what was assumed.

    >>> Count(12.5, low=3, high=40)
    Count(12.5, low=3, high=40)
    """

    low: float  # the least number of people who satisfy it, whatever the published cells stand for
    high: float  # the largest number
    assumes: tuple[str, ...]  # what the number rests on beyond what was published; nothing where it is exact

    def __new__(
        cls, value: float, *, low: float | None = None, high: float | None = None, assumes: Sequence[str] = ()
    ) -> Self:
        """The number, exact unless bounds are given."""
        made = super().__new__(cls, value)
        made.low = float(made) if low is None else float(low)
        made.high = float(made) if high is None else float(high)
        made.assumes = tuple(assumes)
        if not made.low <= made <= made.high:
            raise InputError("a count lies outside its bounds", got=repr(made), do="give low <= count <= high")
        return made

    @property
    def exact(self) -> bool:
        """Whether what was published leaves no doubt."""
        return self.low == self.high

    def __repr__(self) -> str:
        return f"Count({short(self)}, low={_bound(self.low, ROUND_FLOOR)}, high={_bound(self.high, ROUND_CEILING)})"

    def __str__(self) -> str:
        return short(self)

    def __format__(self, spec: str) -> str:
        return format(float(self), spec) if spec else str(self)


def short(number: float) -> str:
    """A number as people write it: 3, 12.5, 0.333.

    >>> short(3.0), short(1 / 3), short(1e-7)
    ('3', '0.333', '1e-07')
    """
    if not math.isfinite(number):
        return str(float(number))
    rounded = round(float(number), 3)
    if number == int(number) or (abs(rounded) >= 1 and rounded == int(rounded)):
        return str(int(rounded))
    return f"{float(number):.3g}" if abs(rounded) < 1 else str(rounded)


def _bound(number: float, rounding: str) -> str:
    """A bound as people write it, rounded outward, so that it stays one; beyond 15 digits are errors of adding."""
    if not math.isfinite(number):
        return short(number)
    exact = Decimal(f"{number:.15g}")
    return short(float(exact.quantize(Decimal(1).scaleb(min(-3, exact.adjusted() - 2)), rounding)))


@runtime_checkable
class Estimate(Protocol):
    """What every kind of release lets an analyst ask."""

    def probability(self, cells: Any) -> Floats:
        """The probability of each cell (a value for each of some columns): (cells,)."""
        ...

    def count(self, condition: str | Condition | None = None, *, where: Mapping[str, object] | None = None) -> Count:
        """How many people satisfy the condition."""
        ...

    def frame(self, columns: Sequence[str], kind: str | None = None) -> Any:
        """The joint table of some columns: their values and a `count`."""
        ...

    def sample(self, n: int | None = None, *, seed: int | np.random.Generator) -> pa.Table:
        """People drawn from the estimate, with exact values in every column."""
        ...


def likely(estimate: Estimate, asked: Condition) -> float:
    """How many people are likely to satisfy the condition; without bounds where the estimate has a way to leave them.

    The number is that of `count`, up to rounding, and so is the error where it is not determined.
    """
    expected = getattr(estimate, "expected", None)
    value = math.nan if expected is None else float(expected(asked))
    return float(estimate.count(asked)) if math.isnan(value) else value


def condition_of(condition: str | Condition | None, where: Mapping[str, object] | None) -> Condition:
    """The condition, however it was given."""
    if condition is not None and where is not None:
        raise InputError("both a condition and where= were given", do="give one of them")
    if isinstance(condition, str):
        return parse(condition)
    if isinstance(condition, Mapping):
        return from_mapping(condition)
    if condition is None:
        return from_mapping({} if where is None else where)
    if not isinstance(condition, Condition):
        raise InputError("not a condition", got=type(condition).__name__, do='write it as in "age > 30"')
    return condition


def generator(seed: int | np.random.Generator) -> np.random.Generator:
    """The generator that the seed stands for."""
    if isinstance(seed, np.random.Generator):
        return seed
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise InputError("not a seed", got=repr(told(seed)), do="give a whole number or a numpy Generator")
    return np.random.default_rng(int(seed))


def table_of(cells: Any) -> pa.Table:
    """Cells as an Arrow table: from a mapping of columns, an Arrow table, or any frame that speaks Arrow."""
    try:
        if isinstance(cells, pa.Table):
            return cells
        if isinstance(cells, Mapping):
            return pa.table({name: column if isinstance(column, pa.Array | pa.ChunkedArray) else pa.array(column)
                             for name, column in cells.items()})  # fmt: skip
        if hasattr(cells, "__arrow_c_stream__"):
            table = pa.table(cells)
            return table.select([name for name in table.column_names if not name.startswith("__index_level_")])
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, ValueError) as problem:
        raise InputError("the cells are no table", got=str(problem).splitlines()[0][:80]) from None
    do = 'give {"age": [30, 31], "zip": ["13053", "13068"]} or a frame'
    raise InputError("the cells are no table", got=type(cells).__name__, do=do)


def names_of(columns: object) -> list[str]:
    """The names of the columns of a frame, however they were given."""
    if isinstance(columns, str):
        return [columns]
    if not isinstance(columns, Iterable):
        got = type(columns).__name__
        raise InputError("the columns of a frame are a list of names", got=got, do='write ["zip", "disease"]')
    return list(columns)


def undetermined(names: Iterable[str], low: float, high: float, *, do: str) -> UndeterminedError:
    """The error of a count that depends on columns whose cells may be anything."""
    unknown = tuple(names)
    told_names = " and ".join(f'"{name}"' for name in unknown)
    what = f"the count depends on column {told_names}, published as * with no declared domain"
    between = f"it lies between {short(low)} and {short(high)}"
    return UndeterminedError(f"{what}: {between}", columns=unknown, low=low, high=high, do=do)


def place_of(name: object, names: Sequence[str]) -> int:
    """The place of a column among those that were published; an InputError for any other."""
    if name not in names:
        raise InputError(f'no column "{name}" was published', do=nearest(str(name), names))
    return names.index(str(name))


def require_once(places: Sequence[int], names: Sequence[object]) -> None:
    """Refuse a frame of no columns, or of one column twice."""
    if not places or len(set(places)) < len(places):
        raise InputError("the columns of a frame must be some, each once", got=", ".join(map(str, names)) or "none")


def require_rows(n: object) -> None:
    """Refuse what is no number of rows to draw."""
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 0:
        raise InputError("not a number of rows", got=repr(n), do="give a whole number, or None for all rows")


def kept(store: dict[Key, Value], key: Key, make: Callable[[], Value], most: float = KEPT) -> Value:
    """What was made for a question before, or is made now and kept for the next, in place of the oldest of many."""
    value = store.get(key)
    if value is None:
        value = make()
        while len(store) >= most:
            store.pop(next(iter(store)))
        store[key] = value
    return value
