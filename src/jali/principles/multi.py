"""Several sensitive columns: someone who knows a person's other sensitive values must learn no more about this one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from jali.core.arrays import Bools, Floats, Ints
from jali.errors import InputError
from jali.principles.base import Principle, show
from jali.principles.column import ColumnPrinciple
from jali.principles.counts import Counts, unlinked
from jali.principles.presence import DeltaPresence

_SAME = (
    "monotone", "monotone_for_spread_people", "monotone_for_several_values", "needs_reference", "scope", "better",
)  # fmt: skip
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
        for part, parent in _parts(counts):
            weaker.at(worst, parent, self.principle.level(part))
        return worst

    def judge(self, counts: Counts) -> Bools:
        verdict = np.ones(counts.groups, dtype=bool)
        for part, parent in _parts(counts):
            verdict[parent[~self.principle.holds(part)]] = False
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
        part, parent = counts.split(column.name)
        yield _alone(part, index), parent
