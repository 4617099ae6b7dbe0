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

from jali.encoding.table import Table
from jali.errors import InputError
from jali.principles import Safety
from jali.principles.counts import Bools, Floats, Ints
from jali.releases.concealed import Concealed
from jali.releases.generalized import Generalized
from jali.releases.linked.angel import Angel
from jali.releases.linked.buckets import Buckets
from jali.releases.marginals import Marginals
from jali.releases.summary import an, many
from jali.risk.attacks.broken import as_people, breaks, breaks_given_facts, shrunk
from jali.risk.attacks.enumerated import Belief, enumerate_worlds, ways_of
from jali.risk.attacks.replay import People, Replay, people_of, presences_of, replays_of
from jali.risk.attacks.scene import Attack, Scene

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
    figures: dict[str, int | float]
    notes: tuple[str, ...] = ()
    decided: Bools | None = None  # (slots,) of whom the beliefs are known; of everybody where it is None


def algorithm(scene: Scene, public: Table | None, time_limit: float) -> Attack:
    """What follows from how the release was chosen, exactly or from a sample of worlds."""
    until = monotonic() + time_limit
    everybody = scene.original.people if public is None or not isinstance(scene.release, Concealed) else public.people
    method = scene.release.manifest.method
    if method.get("transparent") or (method.get("name"), method.get("buckets")) == ("anatomize", "anatomy"):
        published = {} if scene.sensitive_column is None else {"largest belief": _published(scene)}
        return Attack("algorithm", PROVED, 0, everybody, 0, published)
    why = _why_not(scene)
    replays = why or replays_of(scene.release, scene.original, None if _unlinked(scene) else scene.links, public)
    if isinstance(replays, str):
        return Attack("algorithm", ATTACKER, None, everybody, notes=(replays,))
    found = _search(scene, public, replays, until)
    if isinstance(found, str):
        return Attack("algorithm", ATTACKER, None, everybody, notes=(found,))
    return _told(scene, found, everybody)
