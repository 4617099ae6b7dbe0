"""Beliefs in a large table: each group is counted by itself where that can be done, the others are sampled together."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic
from typing import NamedTuple

import numpy as np

from jali.core.arrays import Bools, Floats, Ints
from jali.principles.base import Principle
from jali.releases.summary import many
from jali.risk.attacks.broken import as_people
from jali.risk.attacks.counted import counted
from jali.risk.attacks.known import AT_MOST, Known
from jali.risk.attacks.replay import People
from jali.risk.attacks.sampled import CHAINS, CONVERGED, Sampled, sample
from jali.search.gate import judged_alone

COUNTING = 0.2
"""The share of the time in which groups are counted before the others are sampled."""
SEED = 0
"""The walks are random, and the same each time: an audit that is repeated says the same."""


@dataclass(frozen=True, eq=False)
class Learnt:
    """Beliefs of all slots."""

    published: Floats  # (slots, values) the shares of the groups
    chance: Floats  # (slots, values)
    margin: Floats  # (slots, values) half of the interval; 0 where it was counted
    exact: Ints  # (slots, values) as numbers of people, where it was counted
    counted: Bools  # (slots,)
    decided: Bools  # (slots,) False where the walks never reached another value and nothing proves that there is none
    figures: dict[str, int | float]
    notes: tuple[str, ...]


def beliefs_of(people: People, known: Known, principles: tuple[Principle, ...], until: float) -> Learnt | str:
    """The beliefs of everybody; in words why they are not computed."""
    counts, size = people.counts, people.size
    groups = int(known.group.max()) + 1
    shown = np.zeros((groups, counts.shape[1]), dtype=np.int64)
    np.add.at(shown, known.group, counts)
    published = shown[known.group] / shown[known.group].sum(axis=1, keepdims=True)
    made = Learnt(
        published, published.copy(), np.zeros_like(published), shown[known.group], np.ones(len(size), dtype=bool),
        np.ones(len(size), dtype=bool), {}, (),
    )  # fmt: skip
    verdicts = len(known.clauses)
    known = _without_fixed(people, known, principles)
    own, coupled = _clauses(known, groups)
    soon = monotonic() + COUNTING * (until - monotonic())
    counting = _Counting(people, known, principles, made, shown, own)
    for group in own:
        coupled[group] = coupled[group] or monotonic() > soon or not counting.fill(group)
    made.counted[:] = ~coupled[known.group]
    figures: dict[str, int | float] = {"verdicts that were kept": verdicts}
    notes = [one if one.endswith(AT_MOST) else f"{one}, so that at least this is learnt" for one in known.least]
    if coupled.any():
        where = coupled[known.group]
        found = sample(people, known, where, principles, seed=SEED, until=until)
        if found is None:
            return "what follows where a promise has no compiled form, in a large table"
        stuck = np.unique(known.group[found.slots[~found.moved]]).tolist()
        proved = [group for group in stuck if group in own and monotonic() < until and counting.fill(group)]
        figures |= _merge(made, found, np.isin(known.group[found.slots], proved), size)
        notes += _warn(found, made, size)
    return Learnt(**(vars(made) | {"figures": figures, "notes": tuple(notes)}))


def _without_fixed(people: People, known: Known, principles: tuple[Principle, ...]) -> Known:
    """The clauses that say something: a part of whole groups has the same values in every world.

    A clause with such a part that fails is fulfilled in every world; one that holds says nothing in its clause.
    """
    slots = np.bincount(known.group)
    counts, kept = people.counts, []
    for clause in known.clauses:
        open_parts: list[Ints] = []
        fixed: list[Ints] = []
        for part in clause:
            group, n = np.unique(known.group[part], return_counts=True)
            (fixed if (n == slots[group]).all() else open_parts).append(part)
        rows = np.array([counts[part].sum(axis=0) for part in fixed]).reshape(len(fixed), counts.shape[1])
        if judged_alone(principles, people.judge(rows)).all():
            kept.append(tuple(open_parts))
    return Known(known.group, tuple(kept), known.least)


def _clauses(known: Known, groups: int) -> tuple[dict[int, list[tuple[Ints, ...]]], Bools]:
    """The clauses that speak of one group alone, by group, and which groups others tie together: (groups,)."""
    own: dict[int, list[tuple[Ints, ...]]] = {}
    coupled = np.zeros(groups, dtype=bool)
    for clause in known.clauses:
        of = np.unique(known.group[np.concatenate(clause)])
        coupled[of] |= len(of) > 1
        if len(of) == 1:
            own.setdefault(int(of[0]), []).append(clause)
    return own, coupled


class _Counting(NamedTuple):
    """Counts single groups, with the clauses about each alone; where others tie it to more groups, that is a proof of
    what is impossible and no more."""

    people: People
    known: Known
    principles: tuple[Principle, ...]
    made: Learnt
    shown: Ints  # (groups, values)
    own: dict[int, list[tuple[Ints, ...]]]

    def fill(self, group: int) -> bool:
        """Fill in the beliefs of a group; False where there is too much to count."""
        slots = np.flatnonzero(self.known.group == group)
        marks = [[np.isin(slots, part) for part in clause] for clause in self.own[group]]
        histogram = tuple(self.shown[group].tolist())
        chance = counted(self.people, self.people.size[slots], histogram, marks, self.principles)
        if chance is not None:
            self.made.chance[slots] = np.array(chance, dtype=np.float64)
            self.made.exact[slots] = as_people(chance)
        return chance is not None


def _merge(made: Learnt, found: Sampled, counted: Bools, size: Ints) -> dict[str, int | float]:
    """Put sampled beliefs in their places; the figures that say how good they are.

    `counted`, (some,), are slots whose groups were counted afterwards.
    """
    single = (made.published[found.slots] > 0).sum(axis=1) == 1
    proved = single | (counted & ((made.exact[found.slots] > 0).sum(axis=1) == 1))
    stays = proved & ~found.moved
    kept = found.slots[~stays]
    made.chance[kept], made.margin[kept] = found.chance[~stays], found.margin[~stays]
    made.decided[found.slots] = (found.moved & (found.rhat <= CONVERGED)) | proved
    made.counted[found.slots[stays]] = True
    top = np.argmax(found.chance.max(axis=1) * made.decided[found.slots])
    at = int(np.argmax(found.chance[top]))
    figures: dict[str, int | float] = {
        "people sampled": int(size[found.slots].sum()), "walks": CHAINS, "rounds of each walk": found.rounds,
        "largest sampled belief, from": float(max(found.chance[top, at] - found.margin[top, at], 0.0)),
        "largest sampled belief, to": float(min(found.chance[top, at] + found.margin[top, at], 1.0)),
        "R-hat, largest": float(found.rhat[found.moved].max(initial=1.0)),
    }  # fmt: skip
    return figures


def _warn(found: Sampled, made: Learnt, size: Ints) -> list[str]:
    """What the walks did not tell."""
    notes = []
    open_slots = found.slots[~made.decided[found.slots]]
    stuck = int(size[np.intersect1d(open_slots, found.slots[~found.moved])].sum())
    late = int(size[open_slots].sum()) - stuck
    if stuck:
        notes.append(f"{many(stuck, 'person', 'people')} whose value no exchange changed: whether it is certain")
    if late:
        who = many(late, "person", "people")
        notes.append(f"{who} of whom the walks have not converged (R-hat above {CONVERGED}); more time may do")
    return notes
