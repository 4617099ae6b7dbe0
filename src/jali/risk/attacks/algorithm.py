"""The attack by somebody who knows the algorithm: every assignment of values that leads to the release counts.

The attacker knows everybody's quasi-identifiers, who is in the table, the published folder, the job and the code, but
not the random bits. Beforehand all assignments of the published values to the people are equally likely. The belief is
the share of the assignments, each weighted with the probability that the publisher publishes this release from it.
"""

from __future__ import annotations

from fractions import Fraction
from time import monotonic
from typing import NamedTuple

import numpy as np

from jali.core.arrays import Bools, Floats, Ints
from jali.encoding.table import Table
from jali.principles import Safety
from jali.principles.presence import PRESENT
from jali.releases.summary import an, many
from jali.risk.attacks.broken import as_people, breaks, breaks_given_facts, shrunk
from jali.risk.attacks.enumerated import Belief, enumerate_worlds, ways_of
from jali.risk.attacks.known import known_of
from jali.risk.attacks.learnt import beliefs_of
from jali.risk.attacks.replay import People, Replay, people_of, presences_of, replays_of
from jali.risk.attacks.scene import Attack, Scene, different, value_name

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
    found = _search(scene, public, replays, until)
    if isinstance(found, str):
        return Attack("algorithm", ATTACKER, None, everybody, notes=(found,))
    return _told(scene, found, everybody)


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
    found = _exact(scene, people, of_slot, replays, until)
    if found is not None or curve:
        return found or TOO_MANY
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
    whole = f.counts(np.zeros(f.combinations, dtype=np.int64), 1)
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
