"""SeveralEstimate: several tables about the same people, combined as far as that can be done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from jali.errors import InputError, UndeterminedError, nearest
from jali.estimates.base import Count, condition_of, names_of, table_of, undetermined
from jali.estimates.boxes import BoxEstimate
from jali.estimates.condition import Condition, columns
from jali.estimates.cover import DECLARE
from jali.estimates.linked import LinkedEstimate
from jali.estimates.patterns import Floats
from jali.estimates.together import Together, together

EVENLY = "within a batch people are spread as evenly as all tables together allow (maximum entropy)"


@dataclass(frozen=True, eq=False)
class SeveralEstimate:
    """Estimates of tables about the same people, of which the first has every column.

    All tables that `together` can join are one estimate of maximum entropy. A question is asked of it if it uses the
    table that has all columns of the question and the fewest others, else of that table (ANGEL paper, end of Section
    5). Bounds are those that every table with these columns leaves open.
    """

    parts: tuple[LinkedEstimate | BoxEstimate, ...]

    def __post_init__(self) -> None:
        every = {column.name for part in self.parts for column in part.columns}
        if not self.parts or {column.name for column in self.parts[0].columns} != every:
            raise InputError("several tables: the first must have every column")

    @property
    def total(self) -> float:
        """The mass of all people."""
        return self.parts[0].total

    @cached_property
    def joined(self) -> Together | None:
        """The tables as one estimate, and which of them it uses; None where each is asked by itself."""
        return together(self.parts)

    def part(self, names: Sequence[str]) -> LinkedEstimate | BoxEstimate:
        """The table with the fewest columns that has all of these."""
        return self.parts[self._fitting(names)[0]]

    def _fitting(self, names: Sequence[str]) -> list[int]:
        """The tables that have all of these columns, that with the fewest first."""
        known = [column.name for column in self.parts[0].columns]
        for name in names:
            if name not in known:
                raise InputError(f'no column "{name}" was published', do=nearest(str(name), known))
        asked = {*names}
        fitting = [at for at, own in enumerate(self._names) if asked <= own]
        return sorted(fitting, key=lambda at: _quasi(self.parts[at]))

    def _best(self, names: Sequence[str]) -> LinkedEstimate | BoxEstimate:
        """The estimate that a question about these columns is asked of."""
        at = self._fitting(names)[0]
        joined = self.joined
        return joined.estimate if joined is not None and at in joined.used else self.parts[at]

    @cached_property
    def _names(self) -> tuple[frozenset[str], ...]:
        """The columns of each table."""
        return tuple(frozenset(column.name for column in part.columns) for part in self.parts)

    def count(self, condition: str | Condition | None = None, *, where: Mapping[str, object] | None = None) -> Count:
        """How many people satisfy the condition, with what is certain and possible of it."""
        asked = condition_of(condition, where)
        names = sorted(columns(asked))
        answers = [_answered(self.parts[at], asked) for at in self._fitting(names)]
        low, high = max(each.low for each in answers), min(each.high for each in answers)
        low = min(low, high)  # up to rounding
        alone, best = answers[0], self._best(names)
        if isinstance(alone, UndeterminedError):
            raise undetermined(alone.columns, low, high, do=DECLARE)
        if low == high or best is self.part(names):
            return Count(min(max(alone, low), high), low=low, high=high, assumes=alone.assumes if low < high else ())
        assert isinstance(best, LinkedEstimate)  # the joined one
        value = best.expected(asked)
        return Count(min(max(value, low), high), low=low, high=high, assumes=(EVENLY, *alone.assumes))

    def probability(self, cells: Any) -> Floats:
        """The probability of each cell, given by exact values of some columns (None is the missing value): (cells,)."""
        table = table_of(cells)
        return self._best(table.column_names).probability(table)

    def frame(self, columns: Sequence[str], kind: str | None = None) -> Any:
        """The joint table of some columns at exact values, with a `count`; sums to the total."""
        names = names_of(columns)
        return self._best(names).frame(names, kind)

    def sample(self, n: int | None = None, *, seed: int | np.random.Generator) -> pa.Table:
        """People drawn from the estimate; without n the rows of the first table, a value for each cell."""
        every = [column.name for column in self.parts[0].columns]
        return (self.parts[0] if n is None else self._best(every)).sample(n, seed=seed)

    def __repr__(self) -> str:
        used = (0,) if self.joined is None else self.joined.used
        told = ["" if at in used else ", asked by itself" for at in range(len(self.parts))]
        lines = [f"  {part!r}{alone}" for part, alone in zip(self.parts, told, strict=True)]
        return "\n".join([f"SeveralEstimate({len(self.parts)} tables)", *lines])


def _answered(part: LinkedEstimate | BoxEstimate, asked: Condition) -> Count | UndeterminedError:
    """The count of one table, or its bounds where there is none."""
    try:
        return part.count(asked)
    except UndeterminedError as problem:
        return problem


def _quasi(part: LinkedEstimate | BoxEstimate) -> int:
    """How many columns the boxes of a table have."""
    return len(part.shown if isinstance(part, LinkedEstimate) else part.columns)
