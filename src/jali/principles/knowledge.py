"""Attackers who know more: k facts about anybody (Safety), or a person's other sensitive values (MultiAttribute)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np

from jali.core.arrays import Bools, Floats, Ints
from jali.errors import InputError
from jali.principles import worst_case
from jali.principles.anonymity import DeltaPresence
from jali.principles.base import Principle, exact, show
from jali.principles.column import ColumnPrinciple, Number, number, part, short_of
from jali.principles.counts import Cells, Counts, Sensitive, unlinked
from jali.principles.rules import SAFETY, Rule
from jali.principles.worst_case import MARGIN, Buckets, GroupRatios, Key, disclosed, keys_of, of_cells, vectors

Exactly = Callable[[Buckets, int], Callable[[Key], Fraction]]
"""The exact ratio of a bucket by its key, from all buckets and the number of facts."""


@dataclass(frozen=True)
class Safety(ColumnPrinciple):
    """(c, k)-safety: an attacker who knows any k implications is sure of nobody's value to c or more.

    The maximum disclosure over all groups at once is strictly below c (Definition 13 of Martin et al. 2007). Level: the
    largest disclosure of an attack on somebody of the group, all other groups being there. Joining groups never raises
    it (Theorem 14). Floats decide far from c, fractions near it.

    >>> from jali.principles.counts import dense
    >>> Safety(0.7, 1).level(dense(np.array([[2, 2, 1, 0], [2, 1, 1, 1]]))).round(4).tolist()
    [0.6667, 0.5714]
    """

    title: ClassVar[str] = "(c, k)-safety"
    scope: ClassVar[Literal["group", "table"]] = "table"
    better: ClassVar[Literal["higher", "lower"]] = "lower"
    c: Number
    k: int
    _: KW_ONLY
    sensitive: str | None = None

    def __post_init__(self) -> None:
        c = number("c", self.c, "a probability above 0 and at most 1", lambda c: 0 < c <= 1, example="0.7")
        object.__setattr__(self, "c", c)
        whole = "a whole number of at least 0"
        k = number("k", self.k, whole, lambda k: k >= 0 and k.denominator == 1, example="3")
        object.__setattr__(self, "k", int(k))

    @property
    def ratio(self) -> Fraction:
        """What the least ratio must exceed: 1 / (1 + r) < c where r > 1 / c - 1."""
        return 1 / exact("c", self.c) - 1

    def level(self, counts: Counts) -> Floats:
        found, filled, facts = self._buckets(counts)
        result = np.zeros(counts.groups)
        if len(found):
            result[filled] = disclosed(worst_case.group_ratios(found, facts))
        return result

    def judge(self, counts: Counts) -> Bools:
        return self._safe(counts, worst_case.group_ratios, lambda found, facts: GroupRatios(found, facts).of)

    def alone(self, counts: Counts) -> Bools:
        """Whether each group would be safe if it were the only one, which it must be for the table to be safe."""
        return self._safe(counts, worst_case.alone_ratios, lambda _, facts: lambda key: vectors(key, facts)[1][facts])

    def _safe(self, counts: Counts, ratios: Callable[[Buckets, int], Floats], exactly: Exactly) -> Bools:
        """Whether each group is safe by these ratios; the exact ones are made only where they are needed."""
        found, filled, facts = self._buckets(counts)
        result = np.ones(counts.groups, dtype=bool)
        if len(found):
            result[filled] = self.above(ratios(found, facts), found, lambda: exactly(found, facts))
        return result

    def above(self, ratios: Floats, buckets: Buckets, exactly: Callable[[], Callable[[Key], Fraction]]) -> Bools:
        """Which ratios exceed the bound: (groups,). Those near it are computed again by `exactly`, as fractions."""
        bound = self.ratio
        verdict: Bools = ratios > float(bound)
        near = np.flatnonzero(np.abs(ratios - float(bound)) <= MARGIN * float(bound))
        if len(near):
            compute, known = exactly(), dict[Key, bool]()
            for index, key in zip(near.tolist(), keys_of(buckets.take(near)), strict=True):
                if key not in known:
                    known[key] = compute(key) > bound
                verdict[index] = known[key]
        return verdict

    def _buckets(self, counts: Counts) -> tuple[Buckets, Ints, int]:
        """The groups that have people in them, which these are, and how many facts to reckon with.

        Where no group has more than V values, V - 1 facts tell all, and more tell no more.
        """
        require_single(counts, repr(self))
        cells = self.cells(counts)
        filled = np.flatnonzero(cells.size > 0)
        if len(filled) < cells.groups:
            renumber = np.cumsum(cells.size > 0) - 1
            cells = Cells(
                len(filled), renumber[cells.group], cells.value, cells.n, cells.size[filled], cells.column,
                cells.reference,
            )  # fmt: skip
        facts = min(self.k, int(np.bincount(cells.group, minlength=1).max()))
        return of_cells(cells, facts + 1), filled, facts

    @property
    def bound(self) -> str:
        return f"({self.c}, {self.k})"

    def promise(self) -> str:
        sure = (
            f"the {self.subject('sensitive value')} of no one with a probability of {part(exact('c', self.c))} or more"
        )
        if self.k == 0:
            return f"an attacker who knows who is in which group, and nothing else, learns {sure}"
        facts = "one more fact" if self.k == 1 else f"any {self.k} more facts"
        return (
            f"an attacker who knows who is in which group and {facts} of the form "
            f'"if these people have these values, then one of those has one of those" learns {sure}'
        )

    def check_column(self, column: Sensitive, whole: Counts) -> None:
        require_single(whole, repr(self))

    def least_size(self) -> int:
        """A group of n people is at best n different values, and the larger it is the safer that is."""
        low, high = 0, self.k + 2
        while not self._best_of(high):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._best_of(middle) else (middle, high)
        return high

    def closed_under_mixing(self) -> bool:
        return self.k == 0

    def rules(self, whole: Counts) -> Sequence[Rule]:
        """Of a group by itself: what all groups together disclose is judged elsewhere."""
        return [Rule(SAFETY, self.ratio, float(self.ratio), l=self.k)]

    def dealt_by(self, people: int) -> int:
        """The least l for which the buckets that `people` are dealt into are safe together.

        Dealt by l, `people` make ⌊n / l⌋ buckets of different values. A larger l makes fewer and larger ones, and a
        bucket of n different values is the safer the larger n is: each factor (n - i - k_i) / (n - i) of Equation 2
        rises with n. So the least l is found by bisection. It depends on how many people there are, and on nobody's
        value.
        """
        return 1 + bisect_left(range(1, people + 1), True, key=lambda l: self._safe_dealt(people, l))

    def _safe_dealt(self, people: int, l: int) -> bool:
        """Whether buckets of different values are safe that `people` are dealt into by l."""
        buckets = people // l
        size, larger = divmod(people, buckets)
        sizes = [size] * min(buckets - larger, self.k + 2) + [size + 1] * min(larger, self.k + 2)  # more change nothing
        ranks = np.arange(min(self.k, size + 1) + 1)[:, None]
        top = (ranks < np.array(sizes)).astype(np.int64)
        return worst_case.least_ratio(Buckets(np.array(sizes, dtype=np.int64), top), self.k) > self.ratio

    def _best_of(self, people: int) -> bool:
        key = (people, *(1 if rank < people else 0 for rank in range(self.k + 1)))
        return vectors(key, self.k)[1][self.k] > self.ratio

    def shortfall(self, whole: Counts) -> str:
        reached = short_of(self.worst(whole), float(self.c))
        return (
            f"{self.title} {self.bound} cannot be met: the whole table reaches {reached}, which is not below {self.c}"
        )


def require_single(counts: Counts, asked_by: str) -> None:
    """Raise InputError where a person can have several rows: the worst case is about one value a person."""
    if counts.several_rows:
        raise InputError(
            f"{asked_by} is not defined where a person can have several rows: it is about one value a person",
            do="keep one row per person",
        )


_SAME = ("monotone", "monotone_for_spread_people", "monotone_for_several_values", "needs_reference", "scope", "better")
"""In these it is what its principle is."""


@dataclass(frozen=True)
class MultiAttribute(Principle):
    """A principle for each sensitive column in turn, with all the others as quasi-identifiers (Definition 4.6).

    A group holds when each part of it that agrees on the other columns holds, for every column. Level: the worst of
    these parts. With one sensitive column it is the principle itself.
    """

    title: ClassVar[str] = "multi-attribute"
    every_column: ClassVar[bool] = True
    principle: Principle

    def __post_init__(self) -> None:
        inner = self.principle
        if not isinstance(inner, Principle) or isinstance(inner, MultiAttribute):
            do = "write e.g. MultiAttribute(EntropyDiversity(3)); wrap each part of a combination by itself"
            raise InputError("principle must be a single principle", got=repr(inner), do=do)
        if isinstance(inner, DeltaPresence):
            raise InputError(
                "DeltaPresence is about who is in a table, so it cannot be required of each sensitive column",
                do="use jali.conceal(private, public, low=…, high=…)",
            )
        named = getattr(inner, "sensitive", None)
        if named is not None:
            raise InputError(
                "principle of MultiAttribute judges every sensitive column, so it must not name one",
                got=f"sensitive={named!r}",
                do=f"leave sensitive out, or use {inner!r} alone",
            )
        for name in _SAME:
            object.__setattr__(self, name, getattr(inner, name))
        object.__setattr__(self, "title", f"{type(self).title} {inner.title}")

    def level(self, counts: Counts) -> Floats:
        weaker = np.minimum if self.better == "higher" else np.maximum
        worst = np.full(counts.groups, np.inf if self.better == "higher" else 0.0)
        for split, parent in _parts(counts):
            weaker.at(worst, parent, self.principle.level(split))
        return worst

    def judge(self, counts: Counts) -> Bools:
        verdict = np.ones(counts.groups, dtype=bool)
        for split, parent in _parts(counts):
            verdict[parent[~self.principle.holds(split)]] = False
        return verdict

    def alone(self, counts: Counts) -> Bools:
        if self.scope == "group":
            return self.holds(counts)
        single = (self.judge(_only(counts, group))[0] for group in range(counts.groups))
        return np.fromiter(single, dtype=bool, count=counts.groups)

    @property
    def inner(self) -> Principle:
        return self.principle

    @property
    def bound(self) -> str:
        return self.principle.bound

    def promise(self) -> str:
        known = "for each sensitive column, even when a person's other sensitive values are known"
        return f"{known}: {self.principle.promise()}"

    def check(self, whole: Counts) -> None:
        inner = self.principle
        if not whole.sensitive:
            whole.column(None, asked_by=repr(self))  # says what is missing
        if isinstance(inner, ColumnPrinciple):
            inner.check_labels(whole.sensitive)  # a value that is named need not be one of every column
        if whole.several_rows and len(whole.sensitive) > 1:
            raise unlinked()
        for index, column in enumerate(whole.sensitive):
            if isinstance(inner, ColumnPrinciple):
                inner.check_column(column, whole)
            else:
                inner.check(_alone(whole, index))

    def least_size(self) -> int:
        return self.principle.least_size()

    def closed_under_mixing(self) -> bool:
        return self.principle.closed_under_mixing()

    def shortfall(self, whole: Counts) -> str:
        reached = show(self.worst(whole))
        return f"{self.title} {self.bound} cannot be met: the weakest part of the whole table reaches {reached}"


def _only(counts: Counts, group: int) -> Counts:
    """One group as if it were the whole table."""
    inside = counts.group == group
    person = None if counts.person is None else counts.person[inside]
    return replace(
        counts, groups=1, group=np.zeros(int(inside.sum()), dtype=np.int64), value=counts.value[inside],
        n=counts.n[inside], person=person, whole=counts.whole or counts,
    )  # fmt: skip


def _alone(counts: Counts, index: int) -> Counts:
    """The same people with one sensitive column."""
    if len(counts.sensitive) == 1:
        return counts
    return replace(
        counts,
        sensitive=(counts.sensitive[index],),
        joint=counts.joint[:, [index]],
        whole=counts.whole or counts,
    )


def _parts(counts: Counts) -> Iterator[tuple[Counts, Ints]]:
    """For each sensitive column, the groups cut by all the others, and the group that each part came from."""
    if len(counts.sensitive) <= 1:
        yield counts, np.arange(counts.groups)
        return
    for index, column in enumerate(counts.sensitive):
        split, parent = counts.split(column.name)
        yield _alone(split, index), parent
