"""Beliefs in a large table: each group is counted by itself where that can be done, the others are sampled together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jali.principles.base import Principle
from jali.principles.counts import Bools, Floats, Ints
from jali.releases.summary import many
from jali.risk.attacks.broken import as_people
from jali.risk.attacks.counted import counted
from jali.risk.attacks.known import Known
from jali.risk.attacks.replay import People
from jali.risk.attacks.sampled import CHAINS, CONVERGED, Sampled, sample

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
    coupled = _count(people, known, principles, made, shown)
    figures: dict[str, int | float] = {"verdicts that were kept": len(known.clauses)}
    notes = [f"{one}, so that at least this is learnt" for one in known.least]
    if coupled.any():
        where = coupled[known.group]
        found = sample(people, known, where, principles, seed=SEED, until=until)
        if found is None:
            return "what follows where a promise has no compiled form, in a large table"
        figures |= _merge(made, found, size)
        notes += _warn(found, made, size)
    return Learnt(**(vars(made) | {"figures": figures, "notes": tuple(notes)}))


def _count(people: People, known: Known, principles: tuple[Principle, ...], made: Learnt, shown: Ints) -> Bools:
    """Fill in what can be counted group by group, with the clauses about this group alone; the groups that cannot be.

    Where clauses also tie a group to others, what was counted proves what is impossible, and the walks tell the rest.
    """
    size = people.size
    own: dict[int, list[tuple[Ints, ...]]] = {}
    coupled = np.zeros(len(shown), dtype=bool)
    for clause in known.clauses:
        of = np.unique(known.group[np.concatenate(clause)])
        coupled[of] |= len(of) > 1
        if len(of) == 1:
            own.setdefault(int(of[0]), []).append(clause)
    order = np.argsort(known.group, kind="stable")
    start = np.searchsorted(known.group[order], np.arange(len(shown) + 1))
    for group, clauses in own.items():
        slots = order[start[group] : start[group + 1]]
        marks = [[np.isin(slots, part) for part in clause] for clause in clauses]
        chance = counted(people, size[slots], tuple(shown[group].tolist()), marks, principles)
        if chance is None:
            coupled[group] = True
            continue
        made.chance[slots] = np.array(chance, dtype=np.float64)
        made.exact[slots] = as_people(chance)
    made.counted[:] = ~coupled[known.group]
    return coupled


def _merge(made: Learnt, found: Sampled, size: Ints) -> dict[str, int | float]:
    """Put sampled beliefs in their places; the figures that say how good they are."""
    proved = (made.exact[found.slots] > 0).sum(axis=1) == 1
    stays = proved & ~found.moved
    kept = found.slots[~stays]
    made.chance[kept], made.margin[kept] = found.chance[~stays], found.margin[~stays]
    made.decided[found.slots] = found.moved | proved
    made.counted[found.slots[stays]] = True
    top = np.argmax(found.chance.max(axis=1) * found.moved)
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
    undecided = int(size[~made.decided].sum())
    if undecided:
        who = many(undecided, "person", "people")
        notes.append(f"{who}, whose value no exchange could change: whether it is certain was not decided")
    bad = int(size[found.slots[found.moved & (found.rhat > CONVERGED)]].sum())
    if bad:
        notes.append(f"the walks have not converged for {many(bad, 'person', 'people')} (R-hat above {CONVERGED})")
    return notes
