"""Recursive diversity: the most frequent value is not too frequent, even when attackers rule out others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np

from jali.core.arrays import Bools, Floats, Ints
from jali.errors import InputError
from jali.principles.base import TIE, Expected, at_most, exact, less_than, show
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
)
from jali.principles.counts import Cells, Counts, Sensitive
from jali.principles.rules import RECURSIVE, Rule


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
    deals: ClassVar[bool] = False
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

    def closed_under_mixing(self) -> bool:
        return not self.dont_care

    def evenness_alone(self) -> bool:
        return not self.names_values

    def rules(self, whole: Counts) -> Sequence[Rule] | None:
        if self.names_values:
            return None
        return [Rule(RECURSIVE, exact("c", self.c), l=self.l)] if self.l > 1 else []

    def expected(self, column: Sensitive, reference: Floats) -> Expected:
        return Expected(
            lambda rows: self._needed_c(rows, column),
            lambda levels, tie: np.asarray(levels < float(self.c) * (1 - tie)),
            "ratios" if self.l == column.judged > 1 and not self.protected else "shares",
            None if self.names_values else self.l,
        )

    def _needed_c(self, rows: Floats, column: Sensitive) -> Floats:
        """The number that c must exceed, for distributions; infinite where a protected value is too rare: (rows,)."""
        needed = np.zeros(len(rows))
        if self.l > 1:
            top = np.where(mask(column, self.dont_care), 0.0, rows).max(axis=1)
            r = -np.sort(-rows, axis=1)  # descending
            rest = r[:, max(self.l - 2, 0) :]  # r_l-1, r_l, …
            at_rank = rest[:, 0] if rest.shape[1] else np.zeros(len(rows))
            # Not Σ rest - min(top, r_l-1): a difference of nearly equal numbers would lose the digits of a small tail.
            tail = np.where(top >= at_rank, rest[:, 1:].sum(axis=1), _without(rest, top))
            needed = np.divide(top, tail, out=np.where(top > 0, np.inf, 0.0), where=tail > 0)
        for value in np.flatnonzero(mask(column, self.protected)):
            enough = rows[:, value] >= float(self.share) * rows.sum(axis=1) * (1 - TIE)
            needed = np.where(enough, needed, np.inf)
        return needed

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


def _without(rest: Floats, top: Floats) -> Floats:
    """The sum of each row without one entry that equals `top`, where the row has one: (rows,)."""
    if rest.shape[1] == 0:
        return np.zeros(len(rest))
    drop = np.abs(rest - top[:, None]).argmin(axis=1)
    kept = rest.copy()
    kept[np.arange(len(rest)), drop] = 0.0
    return np.asarray(kept.sum(axis=1))
