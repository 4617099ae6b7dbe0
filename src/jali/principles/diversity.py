"""Diversity: every group has several well represented values of a sensitive column."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from jali.core.arrays import Bools, Floats
from jali.principles.base import ENTROPY_TOLERANCE, Expected, at_least_bound, at_most, exact
from jali.principles.column import (
    ColumnPrinciple,
    Label,
    Number,
    check_values,
    concentrated,
    count,
    labels,
    listed,
    mask,
    number,
    short_of,
    worst_choices,
)
from jali.principles.counts import Cells, Counts, Sensitive
from jali.principles.rules import DISTINCT, ENTROPY, LARGEST, Rule


def perplexity(cells: Cells, keep: Bools | None = None) -> Floats:
    """exp(entropy) of each group's values, or only of the cells to keep: how many equally frequent values they equal.

    exp(-Σ p log p) with p = n / Σ n. A group without such cells has 1.  (groups,)
    """
    n = cells.n if keep is None else np.where(keep, cells.n, 0)
    total = cells.add(n)
    share = n / np.maximum(total, 1)[cells.group]
    surprise = -np.log(share, out=np.zeros_like(share), where=share > 0)
    return np.exp(cells.sum(share * surprise))


def adjusted_perplexity(cells: Cells, dont_care: Bools) -> Floats:
    """exp(adjusted entropy): the largest that lowering the don't-care counts can reach (Definition 4.5).  (groups,)

    Theorem 4.1: the don't-care counts whose logarithm is below the log-entropic mean M of the sensitive counts and the
    smaller don't-care counts stay as they are (fixed), all others are lowered to e^M. With F people in fixed cells and
    K lowered values, the entropy is log(F + K e^M) - M, so that its exponential is F e^-M + K: the perplexity of the
    fixed cells, plus one for each lowered value. A group without sensitive values has nothing to protect: infinite.
    """
    careless = dont_care[cells.value]
    lowered = _lowered(cells, careless)
    extra = cells.add(lowered.astype(np.int64))
    guarded = cells.add((~careless).astype(np.int64)) > 0
    return np.where(guarded, perplexity(cells, ~lowered) + extra, np.inf)


def _lowered(cells: Cells, careless: Bools) -> Bools:
    """Which don't-care cells are lowered: Algorithm 1 in all groups side by side, a round a rank.  (cells,)"""
    log = np.log(cells.n)
    weighted = cells.sum(np.where(careless, 0.0, cells.n * log))  # (groups,) Σ n log n of the fixed cells
    people = cells.add(np.where(careless, 0, cells.n))  # (groups,) Σ n of the fixed cells
    changeable = np.flatnonzero(careless)
    changeable = changeable[np.lexsort((cells.n[changeable], cells.group[changeable]))]  # ascending in each group
    at, end = (np.searchsorted(cells.group[changeable], np.arange(cells.groups), side) for side in ("left", "right"))
    lowered = careless.copy()
    active = np.flatnonzero(at < end)
    while len(active):
        cell = changeable[at[active]]
        stays = log[cell] * people[active] < weighted[active]  # log n < M, the log-entropic mean of the fixed cells
        active, cell = active[stays], cell[stays]
        lowered[cell] = False
        people[active] += cells.n[cell]
        weighted[active] += cells.n[cell] * log[cell]
        at[active] += 1
        active = active[at[active] < end[active]]
    return lowered


def perplexity_of_rows(shares: Floats) -> Floats:
    """exp(-Σ p log p) of each row of shares: (rows,)."""
    surprise = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
    return np.asarray(np.exp(-np.einsum("ij,ij->i", shares, surprise)))


def adjusted_perplexity_of_rows(rows: Floats, careless: Bools) -> Floats:
    """exp(adjusted entropy) of each row: what `adjusted_perplexity` is for counts (Theorem 4.1).  (rows,)

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
    return np.where(guarded, perplexity_of_rows(shares) + lowered, np.inf)


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
        cells = self.cells(counts)
        return np.where(cells.size > 0, np.diff(concentrated(cells).start), np.inf)

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

    def closed_under_mixing(self) -> bool:
        return True

    def evenness_alone(self) -> bool:
        return True

    def rules(self, whole: Counts) -> Sequence[Rule]:
        return [Rule(DISTINCT, Fraction(self.l))]

    def expected(self, column: Sensitive, reference: Floats) -> Expected:
        return Expected(
            lambda rows: np.count_nonzero(rows, axis=1).astype(np.float64), at_least_bound(self.l), "values", self.l
        )


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
        return np.where(cells.size > 0, cells.size / np.maximum(largest, 1), np.inf)

    def judge(self, counts: Counts) -> Bools:
        cells = self.cells(counts)
        return at_most(cells.largest(cells.n), 1 / self._l, cells.size)

    @property
    def bound(self) -> str:
        return str(self.l)

    def promise(self) -> str:
        return f"in every group no {self.subject()} is held by more than {1 / self._l} of the people"

    def check_column(self, column: Sensitive, whole: Counts) -> None:
        check_values(column, "l", self.l, self._l)

    def least_size(self) -> int:
        return math.ceil(self._l)

    def closed_under_mixing(self) -> bool:
        return True

    def evenness_alone(self) -> bool:
        return True

    def rules(self, whole: Counts) -> Sequence[Rule]:
        return [Rule(LARGEST, 1 / self._l)]

    def expected(self, column: Sensitive, reference: Floats) -> Expected:
        return Expected(
            lambda rows: np.asarray(rows.sum(axis=1) / rows.max(axis=1)),
            at_least_bound(self.l),
            frequent=math.ceil(self.l),
        )

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
    deals: ClassVar[bool] = False
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
        return np.where(cells.size > 0, level, np.inf)

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

    def closed_under_mixing(self) -> bool:
        return not self.dont_care

    def evenness_alone(self) -> bool:
        return not self.dont_care

    def rules(self, whole: Counts) -> Sequence[Rule] | None:
        return None if self.dont_care else [Rule(ENTROPY, Fraction(1), math.log(self.l) - ENTROPY_TOLERANCE)]

    def expected(self, column: Sensitive, reference: Floats) -> Expected:
        careless = mask(column, self.dont_care)

        def level(rows: Floats) -> Floats:
            if careless.any():
                return adjusted_perplexity_of_rows(rows, careless)
            return perplexity_of_rows(rows / rows.sum(axis=1)[:, None])

        def enough(levels: Floats, tie: float) -> Bools:
            return np.asarray(np.log(levels) >= math.log(self.l) - max(ENTROPY_TOLERANCE, tie))

        return Expected(level, enough, frequent=None if self.dont_care else math.ceil(self.l))

    def shortfall(self, whole: Counts) -> str:
        reached = short_of(self.worst(whole), float(self.l))
        return f"{self.title} {self.bound} cannot be met: the whole table reaches {reached}"


def _at_least_one(l: Number) -> Number:
    return number("l", l, "a number of at least 1", lambda amount: amount >= 1, example="3")


__all__ = ["DistinctDiversity", "EntropyDiversity", "FrequencyDiversity"]
