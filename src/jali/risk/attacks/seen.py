"""Seen: what an attacker believes of people who look alike to him, and what is true of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jali.core.arrays import Bools, Floats, Ints
from jali.principles.counts import Cells
from jali.risk.attacks.links import Chances

TOLERANCE = 1e-9
"""Beliefs are floats; one reaches the threshold up to this much of it, far less than one person in a release makes."""


@dataclass(frozen=True, eq=False)
class Seen:
    """Beliefs by group and value, sorted by both, beside how many people of the group do have the value.

    A group is whatever the attacker cannot see into: a published group, a bucket, or everybody with one combination of
    quasi-identifiers. Where people have several rows a belief is that the value is among theirs; they may sum to more
    than 1, and `holders` names the people, so that each counts once.
    """

    group: Ints  # (cells,)
    value: Ints  # (cells,)
    share: Floats  # (cells,) the belief that somebody of the group has the value
    people: Ints  # (cells,) who do
    size: Ints  # (groups,) people
    everybody: int  # people in all, each counted once
    called: str  # what the groups are, in the plural
    place: Callable[[int], str]  # a group in a sentence
    holders: tuple[Ints, ...] | None = None  # (cells,) the people who have the value, by number

    @cached_property
    def start(self) -> Ints:
        """Where each group's cells begin: (groups + 1,)."""
        return np.searchsorted(self.group, np.arange(len(self.size) + 1)).astype(np.int64)

    @cached_property
    def ranked(self) -> Ints:
        """The cells, those of each group by their belief: (cells,)."""
        return np.lexsort((self.value, -self.share, self.group))

    @property
    def likeliest(self) -> Ints:
        """The cell of the most likely value of each group that has one: (groups that have people,)."""
        filled = np.flatnonzero(np.diff(self.start) > 0)
        return self.ranked[self.start[filled]]

    def within(self, groups: Bools) -> int:
        """How many people the groups have."""
        if self.holders is None:
            return int(self.size[groups].sum())
        return self.having(np.flatnonzero(groups[self.group]))

    def having(self, cells: Ints, without: Sequence[Ints] | None = None) -> int:
        """How many people have the value of one of the cells, and none of the values of the cells beside it."""
        if self.holders is None:
            return int(self.people[cells].sum())
        named = []
        for at, cell in enumerate(cells.tolist()):
            own = self.holders[cell]
            for other in [] if without is None else without[at].tolist():
                own = np.setdiff1d(own, self.holders[other])
            named.append(own)
        return len(np.unique(np.concatenate(named))) if named else 0


def by_combination(chances: Chances, truth: Cells, place: Callable[[int], str]) -> Seen:
    """Everybody with the same quasi-identifiers looks alike: beliefs by combination, beside the true counts."""
    width = len(truth.column)
    true = dict(zip((truth.group * width + truth.value).tolist(), truth.n.tolist(), strict=True))
    keys = (chances.combination * width + chances.value).tolist()
    people = np.array([true.get(key, 0) for key in keys], dtype=np.int64)
    called = "combinations of quasi-identifiers"
    everybody = int(truth.size.sum())
    return Seen(
        chances.combination, chances.value, chances.share, people, truth.size, everybody, called, place
    )  # fmt: skip
