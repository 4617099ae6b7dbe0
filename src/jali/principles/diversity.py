"""Diversity: every group has several well represented values of a sensitive column."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from jali.principles.base import ENTROPY_TOLERANCE, at_most, exact
from jali.principles.choices import concentrated, worst_choices
from jali.principles.column import ColumnPrinciple, check_values, mask, short_of
from jali.principles.counts import Bools, Counts, Floats, Sensitive
from jali.principles.entropy import adjusted_perplexity, perplexity
from jali.principles.parameters import Label, Number, count, labels, listed, number
from jali.principles.recursive import RecursiveDiversity


@dataclass(frozen=True)
class DistinctDiversity(ColumnPrinciple):
    """Every group has at least l different values. Level: how many it has.

    >>> from jali.principles.counts import dense
    >>> DistinctDiversity(2).holds(dense(np.array([[2, 0], [1, 3]]))).tolist()
    [False, True]
    """

    monotone_for_spread_people: ClassVar[bool] = True
    monotone_for_several_values: ClassVar[bool] = True
    title: ClassVar[str] = "distinct diversity"
    l: int
    _: KW_ONLY
    sensitive: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "l", count("l", self.l, example="3"))

    def level(self, counts: Counts) -> Floats:
        distinct = np.diff(concentrated(self.cells(counts)).start)
        return np.where(counts.size > 0, distinct, np.inf)

    def judge(self, counts: Counts) -> Bools:
        return np.diff(concentrated(self.cells(counts)).start) >= self.l

    @property
    def bound(self) -> str:
        return str(self.l)

    def promise(self) -> str:
        return f"in every group at least {self.l} different values of {self.subject('the sensitive column')} occur"

    def check_column(self, column: Sensitive, whole: Counts) -> None:
        check_values(column, "l", self.l, Fraction(self.l))

    def least_size(self) -> int:
        return self.l


@dataclass(frozen=True)
class FrequencyDiversity(ColumnPrinciple):
    """The most frequent value is held by at most 1/l of each group's people; l need not be whole.

    l · max n ≤ size. Level: size / max n. Xiao and Tao 2006; what anatomy and ANGEL promise.
    """

    monotone_for_several_values: ClassVar[bool] = True
    title: ClassVar[str] = "frequency diversity"
    l: Number
    _: KW_ONLY
    sensitive: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "l", _at_least_one(self.l))

    @property
    def _l(self) -> Fraction:
        return exact("l", self.l)

    def level(self, counts: Counts) -> Floats:
        cells = self.cells(counts)
        largest = cells.largest(cells.n)
        return np.where(counts.size > 0, counts.size / np.maximum(largest, 1), np.inf)

    def judge(self, counts: Counts) -> Bools:
        cells = self.cells(counts)
        return at_most(cells.largest(cells.n), 1 / self._l, counts.size)

    @property
    def bound(self) -> str:
        return str(self.l)

    def promise(self) -> str:
        return f"in every group no {self.subject()} is held by more than {1 / self._l} of the people"

    def check_column(self, column: Sensitive, whole: Counts) -> None:
        check_values(column, "l", self.l, self._l)

    def least_size(self) -> int:
        return math.ceil(self._l)

    def shortfall(self, whole: Counts) -> str:
        reached = short_of(self.worst(whole), float(self.l))
        return f"{self.title} {self.bound} cannot be met: the whole table reaches {reached}"


@dataclass(frozen=True)
class EntropyDiversity(ColumnPrinciple):
    """Each group's values are as uncertain as l equally frequent ones: entropy ≥ log l (Definition 4.1).

    Values in `dont_care` may be disclosed; the entropy is then the adjusted one (Definition 4.5), and a group with
    don't-care values only has nothing to protect. Level: exp(entropy). l need not be whole.

    >>> from jali.principles.counts import dense
    >>> EntropyDiversity(10).holds(dense(np.full((1, 10), 7))).tolist()
    [True]
    """

    title: ClassVar[str] = "entropy diversity"
    label_fields: ClassVar[tuple[str, ...]] = ("dont_care",)
    l: Number
    _: KW_ONLY
    dont_care: tuple[Label, ...] = ()
    sensitive: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "l", _at_least_one(self.l))
        object.__setattr__(self, "dont_care", labels("dont_care", self.dont_care))

    def level(self, counts: Counts) -> Floats:
        cells = self.cells(counts)
        dont_care = mask(cells.column, self.dont_care)
        level = np.full(counts.groups, np.inf)
        for chosen, of in worst_choices(cells, dont_care):
            reached = adjusted_perplexity(chosen, dont_care) if dont_care.any() else perplexity(chosen)
            np.minimum.at(level, of, reached)
        return np.where(counts.size > 0, level, np.inf)

    def judge(self, counts: Counts) -> Bools:
        return np.log(self.level(counts)) >= math.log(self.l) - ENTROPY_TOLERANCE

    @property
    def bound(self) -> str:
        return str(self.l)

    def promise(self) -> str:
        column = self.subject("the sensitive column")
        text = f"in every group the values of {column} are at least as uncertain as {self.l} equally frequent ones"
        return text + (f", but {listed(self.dont_care)} may be disclosed" if self.dont_care else "")

    def check_column(self, column: Sensitive, whole: Counts) -> None:
        if not mask(column, self.dont_care).any():  # with them, groups may have nothing to protect
            check_values(column, "l", self.l, exact("l", self.l))

    def least_size(self) -> int:
        return 1 if self.dont_care else math.ceil(float(self.l) * math.exp(-2 * ENTROPY_TOLERANCE))

    def shortfall(self, whole: Counts) -> str:
        reached = short_of(self.worst(whole), float(self.l))
        return f"{self.title} {self.bound} cannot be met: the whole table reaches {reached}"


def _at_least_one(l: Number) -> Number:
    return number("l", l, "a number of at least 1", lambda amount: amount >= 1, example="3")


__all__ = ["DistinctDiversity", "EntropyDiversity", "FrequencyDiversity", "RecursiveDiversity"]
