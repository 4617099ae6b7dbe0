"""Diversity: every group has several well represented values of a sensitive column."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np

from jali.core.arrays import Bools, Floats, Ints
from jali.errors import InputError
from jali.principles.base import ENTROPY_TOLERANCE, at_most, exact, less_than, show
from jali.principles.choices import concentrated, worst_choices
from jali.principles.column import (
    ColumnPrinciple,
    Label,
    Number,
    check_values,
    count,
    labels,
    listed,
    mask,
    number,
    part,
    short_of,
)
from jali.principles.counts import Cells, Counts, Sensitive


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


@dataclass(frozen=True)
class RecursiveDiversity(ColumnPrinciple):
    """Recursive (c, l)-diversity: r_1 < c (r_l + r_l+1 + … + r_m), counts in descending order (Definition 4.2).

    With `dont_care` values, which may be disclosed, r_y of the most frequent other value takes the place of r_1, and
    the l - 2 most frequent values besides it are ruled out (Definition 4.3). Each `protected` value, which must not be
    ruled out, is held by at least `share` of every group's people (Definition 4.4). l = 1 asks for nothing else.
    Level: the number that c must exceed; infinite where no c is enough or a protected value is too rare.

    >>> from jali.principles.counts import dense
    >>> RecursiveDiversity(18, 3).level(dense(np.array([[90, 5, 5]]))).tolist()
    [18.0]
    """

    title: ClassVar[str] = "recursive diversity"
    better: ClassVar[Literal["higher", "lower"]] = "lower"
    label_fields: ClassVar[tuple[str, ...]] = ("dont_care", "protected")
    c: Number
    l: int
    _: KW_ONLY
    dont_care: tuple[Label, ...] = ()
    protected: tuple[Label, ...] = ()
    share: Number = 0
    sensitive: str | None = None

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "c", number("c", self.c, "a number above 0", lambda c: c > 0, example="3"))
        put(self, "l", count("l", self.l, example="3"))
        put(self, "dont_care", labels("dont_care", self.dont_care))
        put(self, "protected", labels("protected", self.protected))
        put(self, "share", number("share", self.share, "a share from 0 to 1", lambda s: 0 <= s <= 1, example="0.05"))
        put(self, "monotone_for_several_values", not self.dont_care)
        if bool(self.protected) != (self.share > 0):
            raise InputError(
                "protected values and their share of each group go together",
                got=f"protected={self.protected!r}, share={self.share!r}",
                do='write e.g. protected=["HIV"], share=0.01, or leave out both',
            )

    def level(self, counts: Counts) -> Floats:
        cells = self.cells(counts)
        top, tail = self._top_and_tail(cells)
        needed = np.divide(top, tail, out=np.where(top > 0, np.inf, 0.0), where=tail > 0)
        return np.where(self._shares_hold(cells) | (cells.size == 0), needed, np.inf)

    def judge(self, counts: Counts) -> Bools:
        cells = self.cells(counts)
        top, tail = self._top_and_tail(cells)
        verdict: Bools = (less_than(top, exact("c", self.c), tail) | (top == 0)) & self._shares_hold(cells)
        return verdict

    def _top_and_tail(self, cells: Cells) -> tuple[Ints, Ints]:
        """r_y and the sum that it is compared with: (groups,) each.

        tail = (r_l-1 + r_l + …) - min(r_y, r_l-1) says both cases of Definition 4.3 at once: for y ≤ l - 1 the smaller
        is r_l-1, and r_l + … is left; for y > l - 1 it is r_y. Equal counts give the same sum in whatever order.

        Where people have several values, all who can choose the value y or one that is ruled out do: the tail are the
        others, if there are any. No other choice of one value for each person is worse (decision 21).
        """
        if self.l == 1:
            return np.zeros(cells.groups, dtype=np.int64), np.zeros(cells.groups, dtype=np.int64)
        open_to_all = mask(cells.column, self.dont_care)
        top = cells.largest(np.where(open_to_all[cells.value], 0, cells.n) if open_to_all.any() else cells.n)
        r = descending(cells)
        rank = np.minimum(cells.start[:-1] + self.l - 2, cells.start[1:])  # where r_l-1 stands, or the group's end
        upto = np.concatenate(([0], np.cumsum(r)))
        ruled_out = upto[rank] - upto[cells.start[:-1]]
        at_rank = np.where(rank < cells.start[1:], np.append(r, 0)[rank], 0)
        return top, np.maximum(cells.size - ruled_out - np.minimum(top, at_rank), 0)

    def _shares_hold(self, cells: Cells) -> Bools:
        """Whether each protected value is held by its share of the group's people: (groups,).

        Where people have several values, all who can choose another one do: N - Σ of the other counts are left.
        """
        verdict = np.ones(cells.groups, dtype=bool)
        for value in np.flatnonzero(mask(cells.column, self.protected)):
            people = cells.add(np.where(cells.value == value, cells.n, 0))
            without = np.maximum(cells.size - (cells.total - people), 0)
            verdict &= at_most(cells.size, 1 / exact("share", self.share), without)
        return verdict

    @property
    def bound(self) -> str:
        return f"({self.c}, {self.share}, {self.l})" if self.protected else f"({self.c}, {self.l})"

    def promise(self) -> str:
        besides = f" besides {listed(self.dont_care)}" if self.dont_care else ""
        held = f"the most frequent {self.subject()}{besides} is held by fewer people than {self.c} times all others"
        if self.l > 2:
            held += f", even when the {self.l - 2} most frequent of them are ruled out"
        if self.l == 1:
            held = f"nothing is promised about the most frequent {self.subject()}"
        if self.protected:
            each = "each of " if len(self.protected) > 1 else ""
            held += (
                f", and {each}{listed(self.protected)} is held by at least {part(exact('share', self.share))} of them"
            )
        return f"in every group {held}"

    def check_column(self, column: Sensitive, whole: Counts) -> None:
        if not mask(column, self.dont_care).any():  # with them, groups may have nothing to protect
            check_values(column, "l", self.l, Fraction(self.l))

    def least_size(self) -> int:
        """r_1 < c (d - l + 1) r_1 for d different values, so that d > l - 1 + 1/c."""
        return 1 if self.l == 1 or self.dont_care else self.l + int(1 / exact("c", self.c))

    def shortfall(self, whole: Counts) -> str:
        text = f"recursive {self.bound}-diversity cannot be met: "
        if not self._shares_hold(self.cells(whole)).all():
            return text + f"a protected value is held by less than {self.share} of the people of the whole table"
        needed = self.worst(whole)
        if needed == np.inf:
            return text + f"the whole table has too few values to rule out {self.l - 1}, whatever c is"
        return text + f"the whole table needs c above {show(needed)}"


def descending(cells: Cells) -> Ints:
    """The counts of each group from the largest to the smallest, in the places of its cells: (cells,)."""
    width = int(cells.n.max(initial=0)) + 1
    if cells.groups * width < 2**62:
        return width - 1 - np.sort(cells.group * width + (width - 1 - cells.n)) % width
    return cells.n[np.lexsort((-cells.n, cells.group))]


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
