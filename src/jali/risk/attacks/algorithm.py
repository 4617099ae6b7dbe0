"""The attack by somebody who knows the algorithm: every assignment of values that leads to the release counts.

The attacker knows everybody's quasi-identifiers, who is in the table, the published folder, the job and the code, but
not the random bits. Beforehand all assignments of the published values to the people are equally likely. The belief is
the share of the assignments, each weighted with the probability that the publisher publishes this release from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from time import monotonic
from typing import NamedTuple

import numpy as np

from jali.core.arrays import Bools, Floats, Ints
from jali.encoding.table import Table
from jali.principles import Safety
from jali.principles.anonymity import PRESENT
from jali.principles.base import Principle
from jali.releases.summary import an, many
from jali.risk.attacks.exact import (
    Belief,
    as_people,
    breaks,
    breaks_given_facts,
    counted,
    enumerate_worlds,
    shrunk,
    ways_of,
)
from jali.risk.attacks.replay import People, Replay, people_of, presences_of, replays_of
from jali.risk.attacks.sampled import AT_MOST, CHAINS, CONVERGED, Known, Sampled, known_of, sample
from jali.risk.attacks.scene import Attack, Scene, different, value_name
from jali.search.gate import judged_alone

ATTACKER = (
    "knows everybody's quasi-identifiers, who is in the table, the published folder, the job and the code, but not the "
    "random bits"
)
PROVED = f"{ATTACKER}: this is of no use, as the release's method is proved to give nothing away"
MOST = 50_000
"""How many worlds are looked at at the most; there are fewer where they do not fit into the time."""
LEFT_OUT = "so that at least this is learnt"


class Found(NamedTuple):
    """Beliefs of the people of each slot, and who of them is exposed."""

    people: People
    chance: Floats  # (slots, values)
    broken: Bools  # (slots,) whose promise is broken
    certain: Bools  # (slots,) of whom only one value is possible
    decided: Bools  # (slots,) of whom the beliefs are known
    figures: dict[str, int | float]
    notes: tuple[str, ...] = ()


def algorithm(scene: Scene, public: Table | None, time_limit: float) -> Attack:
    """What follows from how the release was chosen, exactly or from a sample of worlds."""
    until = monotonic() + time_limit
    everybody = scene.original.people if public is None or not scene.release.hides_presence else public.people
    method = scene.release.manifest.method
    if scene.release.transparent or (method.get("name"), method.get("buckets")) == ("anatomize", "anatomy"):
        return Attack("algorithm", PROVED, 0, everybody, 0, {"largest belief": _published(scene, public)})
    why = _why_not(scene)
    replays = why or replays_of(scene.release, scene.original, None if _unlinked(scene) else scene.links, public)
    if isinstance(replays, str):
        return Attack("algorithm", ATTACKER, None, everybody, notes=(replays,))
    beliefs = _search(scene, public, replays, until)
    if isinstance(beliefs, str):
        return Attack("algorithm", ATTACKER, None, everybody, notes=(beliefs,))
    return _told(scene, beliefs, everybody)


def _why_not(scene: Scene) -> str | None:
    """Why nothing can be computed for a release, whatever its method."""
    release, table = scene.release, scene.original
    if release.collected is not None:
        return f"what the algorithm of {an(release.kind)} release gives away"
    if scene.several:
        return "what the algorithm gives away where a person can have several rows"
    if table.weight is not None:
        return "what the algorithm gives away where people have weights"
    if release.grouped_rows is None and table.of_role("other"):
        return "what the algorithm gives away where other columns are shown beside the quasi-identifiers"
    return None


def _unlinked(scene: Scene) -> bool:
    return scene.release.hides_presence or scene.release.collected is not None


def _search(scene: Scene, public: Table | None, replays: list[Replay], until: float) -> Found | str:
    """The beliefs: over all worlds where they can be counted, else from clauses and a sample."""
    release = scene.release
    if release.hides_presence:
        assert public is not None
        people = presences_of(scene.original, public)
        return _exact(scene, people, np.zeros(people.slots, dtype=np.int64), replays, until) or TOO_MANY
    curve = release.manifest.method.get("batches") == "curve"
    facts = any(isinstance(p, Safety) and p.k > 0 for p in release.principles)
    people = people_of(scene.original, one_by_one=curve or facts)
    only = scene.links.only
    whole = release.batched is not None or bool((only < 0).any())
    group = np.zeros_like(only) if whole else only
    combination = people.table.frequencies.row_combination.astype(np.int64)
    of_slot = group[combination] if curve or facts else group
    beliefs = _exact(scene, people, of_slot, replays, until)
    if beliefs is not None or curve:
        return beliefs or TOO_MANY
    return _learnt(scene, people_of(scene.original), only, until)


TOO_MANY = "what follows in a release with too many worlds to look at"
NOT_REPRODUCED = "what the algorithm gives away: with the options of the manifest it publishes something else here"


def _exact(scene: Scene, people: People, group: Ints, replays: list[Replay], until: float) -> Found | str | None:
    """The beliefs over all worlds; in words why not where the release is not reproduced, None where they are many."""
    curve = scene.release.manifest.method.get("batches") == "curve"
    begin, replay = monotonic(), replays[0]
    if not curve:
        again = [one for one in replays if one.same(people.table)]
        if not again:
            return NOT_REPRODUCED
        begin, replay = monotonic(), again[0]
    replay.same(people.table)
    each = max(monotonic() - begin, 1e-6)
    ways = ways_of(people, group, min(MOST, int((until - monotonic()) / (2 * each))))
    belief = None if ways is None else enumerate_worlds(people, group, replay, ways, until)
    if belief is None:
        return None
    if not belief.same:
        return NOT_REPRODUCED
    left_out = (f"{replay.least}, {LEFT_OUT}",) if replay.least else ()
    figures: dict[str, int | float] = {"worlds": belief.worlds, "worlds that lead to the release": belief.same}
    return _judged(scene, people, belief, figures, left_out)


def _judged(
    scene: Scene, people: People, belief: Belief, figures: dict[str, int | float], notes: tuple[str, ...]
) -> Found:
    """Whose promise these beliefs break; where everybody is a slot, people of one combination are alike again."""
    chance, broken = belief.chance, np.zeros(people.slots, dtype=bool)
    if people.slots > people.table.frequencies.combinations:
        if scene.release.manifest.method.get("batches") != "curve":
            broken = breaks_given_facts(people, belief, scene.release.principles)
        chance = _averaged(people, chance)
    rows = as_people(chance)
    broken |= breaks(people, rows, scene.release.principles)
    certain, everybody = (rows > 0).sum(axis=1) == 1, np.ones(len(rows), dtype=bool)
    return Found(people, np.array(chance, dtype=np.float64), broken, certain, everybody, figures, notes)


def _averaged(people: People, chance: list[list[Fraction]]) -> list[list[Fraction]]:
    """Who of one combination is who is decided by random bits, so that all of them have the mean of their beliefs."""
    combination = people.table.frequencies.row_combination
    result = list(chance)
    for one in np.unique(combination):
        own = np.flatnonzero(combination == one).tolist()
        mean = [sum(column, Fraction(0)) / len(own) for column in zip(*(chance[i] for i in own), strict=True)]
        for i in own:
            result[i] = mean
    return result


# -- large tables -------------------------------------------------------------------------------------------------


def _learnt(scene: Scene, people: People, only: Ints, until: float) -> Found | str:
    """Beliefs from what the verdicts say: counted group by group where that can be done, else from random walks."""
    known = known_of(scene.release, people.table, only)
    if isinstance(known, str):
        return known
    principles = tuple(p for p in scene.release.principles if not isinstance(p, Safety) or p.k == 0)
    facts = tuple(Safety(p.c, 0, sensitive=p.sensitive) for p in scene.release.principles if isinstance(p, Safety))
    result = beliefs_of(people, known, (*principles, *facts), until)
    if isinstance(result, str):
        return result
    broken = breaks(people, shrunk(result.chance, result.published, result.margin), scene.release.principles)
    broken |= result.counted & breaks(people, result.exact, scene.release.principles)
    certain = result.counted & ((result.exact > 0).sum(axis=1) == 1)
    broken &= result.decided
    return Found(people, result.chance, broken, certain, result.decided, result.figures, result.notes)


def _told(scene: Scene, found: Found, everybody: int) -> Attack:
    """The attack in figures and words."""
    people, f = found.people, found.people.table.frequencies
    whole = f.whole
    name = None if scene.release.hides_presence else scene.column.name
    column = whole.column(name)
    own = whole.joint[people.judged, whole.sensitive.index(column)]
    chance = np.zeros((people.slots, len(column)))
    np.add.at(chance.T, own, found.chance.T)
    asked = chance[:, [column.labels.index(PRESENT)]] if scene.release.hides_presence else chance
    top, size = np.argmax(chance, axis=1), people.size
    truth = np.zeros((people.slots, len(column)), dtype=np.int64)
    np.add.at(truth, (people.slot, own[people.value]), 1)
    right = int(truth[np.arange(people.slots), top][found.broken].sum())
    largest, certain = float(asked[found.decided].max(initial=0.0)), int(size[found.certain].sum())
    figures: dict[str, int | float] = {"largest belief": largest, "people certain": certain}
    order = sorted(np.flatnonzero(found.broken).tolist(), key=lambda s: (-chance[s, top[s]], s))
    cases = (_case(scene, found, s, value_name(column.labels[top[s]]), float(chance[s, top[s]])) for s in order)
    exposed = int(size[found.broken].sum())
    return Attack(
        "algorithm", ATTACKER, exposed, everybody, right, figures | found.figures, different(cases, scene.cases),
        found.notes,
    )  # fmt: skip


def _case(scene: Scene, found: Found, slot: int, value: str, belief: float) -> str:
    """One case in words, by what is published of the people."""
    who = many(int(found.people.size[slot]), "person", "people")
    if scene.release.grouped_rows is not None and not scene.release.hides_presence:
        combination = int(found.people.table.frequencies.row_combination[np.argmax(found.people.slot == slot)])
        group = int(scene.links.only[combination])
        if group >= 0:
            size, n = int(scene.cells.size[group]), _held(scene, group, value)
            return (
                f"for {who} of the {size} in {scene.names(group)}, the belief in {value} rises from {n / size:.0%} to "
                f"{belief:.0%}"
            )
    return f"for {who} the belief in {value} is {belief:.0%}"


def _held(scene: Scene, group: int, value: str) -> int:
    """How many people of a published group have a value."""
    cells = scene.cells
    here = slice(int(cells.start[group]), int(cells.start[group + 1]))
    labels = [value_name(cells.column.labels[v]) for v in cells.value[here].tolist()]
    return int(cells.n[here][np.array(labels) == value].sum())


def _published(scene: Scene, public: Table | None) -> float:
    """The largest belief that the release shows."""
    if scene.release.hides_presence:
        return scene.release.presence(public).high
    return float(scene.seen.share.max(initial=0.0))


# -- beliefs in a large table: each group is counted by itself where that can be done, others are sampled together ---

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
