"""Attack gallery: what known attacks learn from a release, for whoever holds the original."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from jali.encoding.table import Table
from jali.errors import InputError, told
from jali.principles.base import exact, whole_number
from jali.principles.counts import Bools, Ints
from jali.releases.base import Release
from jali.releases.concealed import Concealed
from jali.releases.load import release_of
from jali.risk.attacks.algorithm import algorithm
from jali.risk.attacks.background import background
from jali.risk.attacks.linkage import linkage
from jali.risk.attacks.links import public_table
from jali.risk.attacks.present import presence
from jali.risk.attacks.scene import Attack, Gallery, Scene, different, percent
from jali.risk.attacks.seen import Seen


def attacks(
    release: Release | str | Path,
    original: Table,
    *,
    public: Table | Any = None,
    sensitive: str | None = None,
    threshold: float | Fraction = 0.95,
    cases: int = 3,
    time_limit: float = 60,
) -> Gallery:
    """Try the known attacks on a release: how many people are exposed by each, and a few cases in words.

    Somebody is exposed when the attacker's belief in one value reaches the `threshold`. `public` is a table, frame or
    file with the same quasi-identifiers, in which the attacker looks people up: by default everybody of the original
    for linkage, and for presence the public table of a concealed release that was just made.
    The attack by somebody who knows the algorithm takes up to `time_limit` seconds, once somebody looks at it.
    The result says which beliefs are right, so it is for the holder of the original alone.
    """
    found = release_of("attacks", release)
    if not isinstance(original, Table):
        raise InputError("the original must be a table", got=type(original).__name__, do="make one: jali.table(…)")
    least = exact("threshold", threshold)
    if not 0 < least <= 1:
        raise InputError("the threshold must be above 0 and at most 1", got=str(threshold))
    scene = Scene(found, original, sensitive, least, whole_number("cases", cases, least=0))
    looked_up = None if public is None else public_table(found, public)
    hidden = presence(scene, looked_up)
    if isinstance(found, Concealed) and looked_up is not None and hidden.exposed is not None:
        scene = replace(scene, release=found.beside(looked_up))
    seconds = _seconds(time_limit)
    known = scene.release._public if isinstance(scene.release, Concealed) else None
    replayed = partial(algorithm, scene, known, seconds)
    if isinstance(found, Concealed) and not found.of_role("sensitive"):
        return Gallery(None, float(least), (hidden,), replayed)
    tried = (homogeneity(scene), background(scene), linkage(scene, looked_up), hidden)
    return Gallery(scene.column.name, float(least), tried, replayed)


def _seconds(time_limit: object) -> float:
    if isinstance(time_limit, bool) or not isinstance(time_limit, (int, float)) or not 0 < time_limit < math.inf:
        raise InputError("time_limit is a number of seconds above 0", got=repr(told(time_limit)))
    return float(time_limit)


WHERE = {
    "angel": "knows somebody's quasi-identifiers, hence the bucket, whose batches mix",
    "marginals": "knows somebody's quasi-identifiers, and looks at one marginal at a time",
}
"""What the attacker knows of a release whose groups of values nobody is seen in directly."""


def homogeneity(scene: Scene) -> Attack:
    """Groups whose people all, or nearly all, have the same value (l-diversity, Section 2.1)."""
    seen = scene.homogeneous
    first = seen.likeliest
    sure, same = scene.sure(seen.share[first]), seen.share[first] >= 1 - 1e-12
    exposed, alike = _groups(seen, first[sure]), _groups(seen, first[same])
    order = sorted(first[sure].tolist(), key=lambda i: (-seen.share[i], -int(seen.size[seen.group[i]]), seen.group[i]))
    told = (
        f"whoever knows that somebody is in {seen.place(int(seen.group[i]))} is {percent(float(seen.share[i]))} of "
        f"{scene.label(int(seen.value[i]))}"
        for i in order
    )
    figures = {f"{seen.called} with one value": int(same.sum()), "people in them": seen.within(alike)}
    return Attack(
        "homogeneity",
        WHERE.get(scene.release.kind, "knows which group somebody is in, and nothing else"),
        seen.within(exposed),
        seen.everybody,
        seen.having(first[sure]),
        figures,
        different(told, scene.cases),
        scene.assumed,
    )


def _groups(seen: Seen, cells: Ints) -> Bools:
    """The groups of some cells: (groups,)."""
    found = np.zeros(len(seen.size), dtype=bool)
    found[seen.group[cells]] = True
    return found
