"""Anonymity: groups of at least k people, no value held by too many; nobody surely in a private table (δ-presence)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np

from jali.core.arrays import Bools, Floats, Ints
from jali.errors import InputError
from jali.principles.base import Expected, Principle, at_most, at_most_bound, exact, show
from jali.principles.column import (
    ColumnPrinciple,
    Label,
    Number,
    check_people,
    count,
    labels,
    listed,
    mask,
    number,
    part,
)
from jali.principles.counts import Cells, Counts, Sensitive
from jali.principles.rules import LARGEST, SIZE, Rule


@dataclass(frozen=True)
class KAnonymity(Principle):
    """Every group has at least k people. It needs no sensitive column, and says nothing about one.

    Level: the group's people. Samarati and Sweeney 1998; l-diversity paper, Section 2.

    >>> from jali.principles.counts import dense
    >>> KAnonymity(3).holds(dense(np.array([[2, 0], [1, 3]]))).tolist()
    [False, True]
    """

    monotone_for_spread_people: ClassVar[bool] = True
    monotone_for_several_values: ClassVar[bool] = True
    judges_size_alone: ClassVar[bool] = True
    title: ClassVar[str] = "k-anonymity"
    k: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", count("k", self.k, example="5"))

    def level(self, counts: Counts) -> Floats:
        return np.where(counts.size > 0, counts.size, np.inf)

    def judge(self, counts: Counts) -> Bools:
        return counts.size >= self.k

    @property
    def bound(self) -> str:
        return str(self.k)

    def promise(self) -> str:
        return _company(self.k)

    def check(self, whole: Counts) -> None:
        check_people("k", self.k, whole)

    def least_size(self) -> int:
        return self.k

    def rules(self, whole: Counts) -> Sequence[Rule]:
        return [Rule(SIZE, Fraction(self.k))]

    def closed_under_mixing(self) -> bool:
        return True

    def evenness_alone(self) -> bool:
        return True

    def shortfall(self, whole: Counts) -> str:
        return f"{self.k}-anonymity cannot be met: the whole table has {show(float(whole.size.sum()))} people"


@dataclass(frozen=True)
class AlphaAnonymity(ColumnPrinciple):
    """(α, k)-anonymity: at least k people, and no value held by more than the share α of them.

    n(value) / size ≤ α for every value, or only for the `values` that are named. Wong et al. 2006.
    Level: the largest such share, infinite for a group of fewer than k people.
    """

    monotone_for_several_values: ClassVar[bool] = True
    title: ClassVar[str] = "(alpha, k)-anonymity"
    better: ClassVar[Literal["higher", "lower"]] = "lower"
    deals: ClassVar[bool] = False
    label_fields: ClassVar[tuple[str, ...]] = ("values",)
    alpha: Number
    k: int
    _: KW_ONLY
    values: tuple[Label, ...] = ()
    sensitive: str | None = None

    def __post_init__(self) -> None:
        alpha = number("alpha", self.alpha, "a share above 0 and at most 1", lambda a: 0 < a <= 1, example="0.2")
        object.__setattr__(self, "alpha", alpha)
        object.__setattr__(self, "k", count("k", self.k, example="5"))
        object.__setattr__(self, "values", labels("values", self.values))

    @property
    def _alpha(self) -> Fraction:
        return exact("alpha", self.alpha)

    def level(self, counts: Counts) -> Floats:
        cells = self.cells(counts)
        share = self._largest(cells) / np.maximum(cells.size, 1)
        return np.where((counts.size < self.k) & (counts.size > 0), np.inf, share)

    def judge(self, counts: Counts) -> Bools:
        cells = self.cells(counts)
        return (counts.size >= self.k) & at_most(self._largest(cells), self._alpha, cells.size)

    def _largest(self, cells: Cells) -> Ints:
        """People of each group who have its most frequent value, among those that matter: (groups,)."""
        return cells.largest(cells.n * mask(cells.column, self.values)[cells.value] if self.values else cells.n)

    @property
    def bound(self) -> str:
        return f"({self.alpha}, {self.k})"

    def promise(self) -> str:
        share = part(self._alpha)
        held = f"no {self.subject()} is held by more than {share} of the people"
        if self.values:
            each = "each of " if len(self.values) > 1 else ""
            held = f"{each}{listed(self.values)} is held by at most {share} of the people"
        return f"{_company(self.k)}, and in every group {held}" if self.k > 1 else f"in every group {held}"

    def check_column(self, column: Sensitive, whole: Counts) -> None:
        check_people("k", self.k, whole)

    def least_size(self) -> int:
        return self.k if self.values else max(self.k, -(-self._alpha.denominator // self._alpha.numerator))

    def closed_under_mixing(self) -> bool:
        return True

    def company(self) -> int:
        return self.k

    def rules(self, whole: Counts) -> Sequence[Rule]:
        return [Rule(SIZE, Fraction(self.k)), Rule(LARGEST, self._alpha, named=self.values)]

    def expected(self, column: Sensitive, reference: Floats) -> Expected:
        watched = mask(column, self.values) if self.values else np.ones(len(column), dtype=bool)

        def share(rows: Floats) -> Floats:
            return np.asarray(rows[:, watched].max(axis=1, initial=0.0) / rows.sum(axis=1))

        return Expected(share, at_most_bound(self.alpha))

    def shortfall(self, whole: Counts) -> str:
        cells = self.cells(whole)
        share = show(float(self._largest(cells).max(initial=0)) / max(int(cells.size.sum()), 1))
        return f"({self.alpha}, {self.k})-anonymity cannot be met: in the whole table one value has a share of {share}"


def _company(k: int) -> str:
    if k == 1:
        return "a group may hold a single person"
    return f"every person shares the quasi-identifiers with at least {k - 1} other{'s' if k > 2 else ''}"


# -- presence: a public table does not show too surely who of it is in a private one, nor who is not -------------------

PRESENCE = "\x1fpresence"
"""The column of a public table that says who is in the private one: no file can have a column of this name."""
ABSENT, PRESENT = "absent", "present"


@dataclass(frozen=True)
class DeltaPresence(ColumnPrinciple):
    """In every group of the public table the share that is in the private one is from `low` to `high`, both included.

    low ≤ present / size ≤ high. Nergiz, Atzori and Clifton 2007; Definition 3 of the pdf-generalization paper.
    Level: that share. A group with nobody present reaches 0. `jali.conceal` keeps it.
    """

    title: ClassVar[str] = "delta-presence"
    deals: ClassVar[bool] = False
    low: Number
    high: Number
    _: KW_ONLY
    sensitive: str | None = PRESENCE

    def __post_init__(self) -> None:
        words = "a share from 0 to 1"
        for name, example in (("low", "0.01"), ("high", "0.6")):
            given = number(name, getattr(self, name), words, lambda share: 0 <= share <= 1, example=example)
            object.__setattr__(self, name, given)
        if self.exact_low > self.exact_high:
            raise InputError("low must not be above high", got=f"low={self.low}, high={self.high}", do="swap them")

    @property
    def exact_low(self) -> Fraction:
        """The lower bound as it was written."""
        return exact("low", self.low)

    @property
    def exact_high(self) -> Fraction:
        """The upper bound as it was written."""
        return exact("high", self.high)

    def present(self, counts: Counts) -> Ints:
        """How many of each group are in the private table: (groups,)."""
        cells = self.cells(counts)
        return cells.add(cells.n * (cells.value == cells.column.labels.index(PRESENT)))

    def level(self, counts: Counts) -> Floats:
        return np.where(counts.size > 0, self.present(counts) / np.maximum(counts.size, 1), np.nan)

    def judge(self, counts: Counts) -> Bools:
        present = self.present(counts)
        absent = counts.size - present
        return at_most(present, self.exact_high, counts.size) & at_most(absent, 1 - self.exact_low, counts.size)

    def worst(self, counts: Counts) -> float:
        """The share that is furthest outside the bounds; the largest where all are inside."""
        level = self.level(counts)[counts.size > 0]
        if len(level) == 0:
            return float("nan")
        low, high = float(level.min()), float(level.max())
        return low if float(self.low) - low > max(high - float(self.high), 0.0) else high

    @property
    def bound(self) -> str:
        return f"({self.low}, {self.high})"

    def promise(self) -> str:
        low, high = part(self.exact_low), part(self.exact_high)
        return (
            f"whoever holds the public table finds each person of it in this one with a probability of {low} to {high}"
        )

    def check(self, whole: Counts) -> None:
        self.require_column(whole)

    def require_column(self, whole: Counts) -> None:
        names = [column.name for column in whole.sensitive]
        if self.sensitive != PRESENCE or PRESENCE not in names:
            raise InputError(
                "DeltaPresence is about a private table and the public one around it",
                do="use jali.conceal(private, public, low=…, high=…)",
            )

    def rules(self, whole: Counts) -> Sequence[Rule]:
        return [
            Rule(LARGEST, self.exact_high, named=(PRESENT,)),
            Rule(LARGEST, 1 - self.exact_low, named=(ABSENT,)),
        ]

    def least_size(self) -> int:
        if self.exact_low == 0 or self.exact_high == 0:
            return 1
        return -(-self.exact_high.denominator // self.exact_high.numerator)

    def shortfall(self, whole: Counts) -> str:
        share = show(self.worst(whole))
        return f"delta-presence {self.bound} cannot be met: of the whole public table a share of {share} is present"
