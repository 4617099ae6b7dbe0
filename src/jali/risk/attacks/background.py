"""Background knowledge: people whose value is told once others are ruled out for them (l-diversity, Section 2.2)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jali.core.arrays import Floats, Ints
from jali.releases.summary import many
from jali.risk.attacks.scene import Attack, Scene, different, percent
from jali.risk.attacks.seen import Seen

RULED_OUT = 3
"""Up to how many values the attacker rules out for a person."""
_NOTHING = 1e-12  # what is left of a belief that rounding alone makes


@dataclass(frozen=True, eq=False)
class Ruled:
    """The cells of each group by their belief, and what is left of it once the likeliest other values are ruled out."""

    seen: Seen

    @cached_property
    def begin(self) -> Ints:
        """Where the group of each place begins: (cells,)."""
        return self.seen.start[self.seen.group[self.seen.ranked]]

    @cached_property
    def end(self) -> Ints:
        """Where it ends: (cells,)."""
        return self.seen.start[self.seen.group[self.seen.ranked] + 1]

    @cached_property
    def rank(self) -> Ints:
        """How many values of the group are likelier: (cells,)."""
        return np.arange(len(self.begin)) - self.begin

    def last(self, ruled_out: int) -> Ints:
        """Up to which place values are ruled out, the person's own left aside: (cells,)."""
        return np.minimum(self.begin + ruled_out + (self.rank < ruled_out), self.end)

    def beliefs(self, ruled_out: int) -> Floats:
        """The belief in each value once so many others are ruled out: (cells,).

        n_s / (n − Σ of those ruled out). Where people have several values it is at least
        1 − (Σ of all further values) / (n − Σ of those ruled out): who has neither s nor a further value has nothing.
        """
        share = self.seen.share[self.seen.ranked]
        upto = np.concatenate([[0.0], np.cumsum(share)])
        total = upto[self.end] - upto[self.begin]
        others = upto[self.last(ruled_out)] - upto[self.begin] - np.where(self.rank < ruled_out, share, 0.0)
        further = total - others - share
        left = (total if self.seen.holders is None else 1.0) - others
        belief = 1 - further / np.maximum(left, 1e-300)
        return np.where(further <= _NOTHING, 1.0, np.where(belief > 1 - _NOTHING, 1.0, np.maximum(belief, 0.0)))

    def people(self, places: Ints, ruled_out: int) -> int:
        """How many people have the value of one of the places and none of those that are ruled out beside it."""
        order = self.seen.ranked
        if self.seen.holders is None:
            return self.seen.having(order[places])
        last = self.last(ruled_out)
        without = [np.setdiff1d(np.arange(self.begin[i], last[i]), [i]) for i in places.tolist()]
        return self.seen.having(order[places], [order[others] for others in without])


def background(scene: Scene) -> Attack:
    """People whose true value reaches the threshold once the most frequent other values are ruled out for them."""
    seen, ruled = scene.seen, Ruled(scene.seen)
    already = scene.sure(seen.share[seen.ranked])
    figures: dict[str, int | float] = {}
    for number in range(1, RULED_OUT + 1):
        reached = np.flatnonzero(already | scene.sure(ruled.beliefs(number)))
        figures[f"exposed once {many(number, 'value is', 'values are')} ruled out"] = ruled.people(reached, number)
    fresh = np.flatnonzero(scene.sure(ruled.beliefs(1)) & ~already).tolist()
    fresh.sort(key=lambda i: (-int(seen.people[seen.ranked[i]]), int(ruled.begin[i]), int(ruled.rank[i])))
    where = "knows which group somebody is in" if seen.called == "groups" else "knows somebody's quasi-identifiers"
    return Attack(
        "background knowledge",
        f"{where}, and one value that they do not have",
        int(next(iter(figures.values()))),
        seen.everybody,
        int(next(iter(figures.values()))),
        figures,
        different((_case(scene, ruled, i) for i in fresh), scene.cases),
        scene.assumed,
    )


def _case(scene: Scene, ruled: Ruled, i: int) -> str:
    """A person of whom one more fact tells the value."""
    seen = scene.seen
    out, own = seen.ranked[ruled.begin[i] + (1 if ruled.rank[i] == 0 else 0)], seen.ranked[i]
    return (
        f"an attacker who knows that somebody in {seen.place(int(seen.group[own]))} does not have "
        f"{scene.label(int(seen.value[out]))} is {percent(float(ruled.beliefs(1)[i]))} of "
        f"{scene.label(int(seen.value[own]))}"
    )
