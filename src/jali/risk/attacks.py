"""Attack gallery: what known attacks learn from a release, for whoever holds the original."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from jali.encoding.table import Table
from jali.errors import InputError
from jali.principles.base import exact, whole_number
from jali.principles.counts import Bools, Cells, Ints
from jali.releases.asked import release_of
from jali.releases.base import Release
from jali.releases.buckets import Buckets
from jali.releases.generalized import Generalized
from jali.releases.summary import an, many
from jali.risk.gallery import Attack, Gallery, percent
from jali.risk.links import Links, links, public_table
from jali.risk.minimality import minimality
from jali.risk.scene import Scene

TOLERANCE = 1e-12
"""The chance of a value over several groups is a sum of floats; it reaches the threshold up to this much."""
RULED_OUT = 3
"""Up to how many values the attacker with background knowledge rules out for a person."""


def attacks(
    release: Release | str | Path,
    original: Table,
    *,
    public: Table | Any = None,
    sensitive: str | None = None,
    threshold: float | Fraction = 0.95,
    cases: int = 3,
) -> Gallery:
    """Try the known attacks on a release: how many people are exposed by each, and a few cases in words.

    Somebody is exposed when the attacker's belief in one value reaches the `threshold`. `public` is a table, frame or
    file with the same quasi-identifiers, which the attacker looks up; by default he looks up everybody of the original.
    The result says which beliefs are right, so it is for the holder of the original alone.
    """
    found = attackable(release_of("attacks", release))
    if not isinstance(original, Table):
        raise InputError("the original must be a table", got=type(original).__name__, do="make one: jali.table(…)")
    least = exact("threshold", threshold)
    if not 0 < least <= 1:
        raise InputError("the threshold must be above 0 and at most 1", got=str(threshold))
    scene = Scene(found, original, sensitive, least, whole_number("cases", cases, least=0))
    looked_up = None if public is None else public_table(found, public)
    tried = (homogeneity(scene), background(scene), linkage(scene, looked_up), minimality(scene))
    return Gallery(scene.cells.column.name, float(least), tried)


def attackable(release: Release) -> Generalized | Buckets:
    """The release, or an InputError where people cannot be looked up in it."""
    if isinstance(release, (Generalized, Buckets)):
        return release
    why = "the attacks look people up in one table, row by row"
    do = "audit it instead: jali.audit, or jali audit in a shell"
    raise InputError(f"{an(release.kind)} release cannot be attacked: {why}", do=do)


def homogeneity(scene: Scene) -> Attack:
    """Groups whose people all, or nearly all, have the same value (l-diversity, Section 2.1)."""
    cells, size = scene.cells, scene.cells.size
    value, n, exposed = scene.believed(cells)
    same = n == size
    order = sorted(np.flatnonzero(exposed).tolist(), key=lambda g: (-n[g] / size[g], -size[g], g))
    cases = tuple(
        f"whoever knows that somebody is in {scene.names(g)} ({many(int(size[g]), 'person', 'people')}) is "
        f"{percent(n[g] / size[g])} of {scene.label(int(value[g]))}"
        for g in order[: scene.cases]
    )
    figures = {"groups with one value": int(same.sum()), "people in them": int(size[same].sum())}
    return Attack(
        "homogeneity",
        "knows which group somebody is in, and nothing else",
        int(size[exposed].sum()),
        int(size.sum()),
        int(n[exposed].sum()),
        figures,
        cases,
    )


def background(scene: Scene) -> Attack:
    """People whose value is told once others are ruled out for them (l-diversity, Section 2.2).

    The belief that somebody of a group has s is n_s / (n − Σ of the most frequent others that are ruled out).
    """
    cells = scene.cells
    order = np.lexsort((cells.value, -cells.n, cells.group))
    group, n = cells.group[order], cells.n[order]
    begin = cells.start[group]
    rank = np.arange(len(n)) - begin
    upto = np.concatenate([[0], np.cumsum(n)])
    figures: dict[str, int | float] = {}
    reached, already = [], scene.enough(n, cells.size[group])
    for ruled_out in range(1, RULED_OUT + 1):
        last = np.minimum(begin + ruled_out + (rank < ruled_out), cells.start[group + 1])
        others = upto[last] - upto[begin] - np.where(rank < ruled_out, n, 0)
        reached.append(scene.enough(n, cells.size[group] - others))
        figures[f"exposed once {many(ruled_out, 'value is', 'values are')} ruled out"] = int(n[reached[-1]].sum())
    fresh = np.flatnonzero(reached[0] & ~already)
    told = sorted(fresh.tolist(), key=lambda i: (-int(n[i]), int(group[i]), int(rank[i])))[: scene.cases]
    cases = []
    for i in told:
        at = begin[i] + (1 if rank[i] == 0 else 0)
        size, out = int(cells.size[group[i]]), order[at]
        cases.append(
            f"whoever knows that somebody in {scene.names(int(group[i]))} ({size} people) does not have "
            f"{scene.label(int(cells.value[out]))} is {percent(n[i] / (size - int(cells.n[out])))} of "
            f"{scene.label(int(cells.value[order[i]]))}"
        )
    exposed = int(n[reached[0]].sum())
    attacker = "knows which group somebody is in, and one value that they do not have"
    return Attack("background knowledge", attacker, exposed, int(cells.size.sum()), exposed, figures, tuple(cases))


def linkage(scene: Scene, public: Table | None) -> Attack:
    """People of a public table who are looked up by their quasi-identifiers."""
    table = scene.original if public is None else public
    found = scene.links if public is None else links(scene.release, public, scene.original)
    matched = found.matched
    value, chance = found.most_likely(scene.cells)
    exposed = chance >= float(scene.threshold) * (1 - TOLERANCE)
    frequencies = table.frequencies
    people = np.bincount(frequencies.combination, weights=frequencies.rows, minlength=frequencies.combinations)
    people = people.astype(np.int64)
    figures = {
        "match no group": int(people[found.groups == 0].sum()),
        "match exactly one group": int(people[found.groups == 1].sum()),
        "match exactly one row": int(people[matched == 1].sum()),
    }
    right = _right(scene.truth, value, exposed) if public is None else None
    if public is not None:
        figures |= _shared(scene, public, value, exposed)
    order = sorted(np.flatnonzero(exposed).tolist(), key=lambda c: (-chance[c], int(matched[c]), c))
    cases = []
    for c in _one_each(order, found, scene.cases):
        one = int(found.groups[c]) == 1
        where = scene.names(int(found.group[found.start[c]])) if one else f"{found.groups[c]} groups together"
        cases.append(
            f"{many(int(people[c]), 'person matches', 'people match')} {where} "
            f"({many(int(matched[c]), 'row')}): {percent(float(chance[c]))} of {scene.label(int(value[c]))}"
        )
    who = "everybody's quasi-identifiers" if public is None else "a public table of quasi-identifiers"
    return Attack(
        "linkage",
        f"looks up {who} and counts the values of the rows that match",
        int(people[exposed].sum()),
        int(people.sum()),
        right,
        figures,
        tuple(cases),
        () if public is None else ("whether the people of the public table are in the release at all",),
    )


def _one_each(order: list[int], found: Links, most: int) -> list[int]:
    """The first combinations that match different groups, so that the cases differ."""
    chosen: dict[bytes, int] = {}
    for c in order:
        if len(chosen) == most:
            break
        chosen.setdefault(found.group[found.start[c] : found.start[c + 1]].tobytes(), c)
    return list(chosen.values())


def _right(truth: Cells, value: Ints, exposed: Bools) -> int:
    """How many people of the exposed combinations have the value that is believed of them."""
    return int(truth.n[exposed[truth.group] & (truth.value == value[truth.group])].sum())


def _shared(scene: Scene, public: Table, value: Ints, exposed: Bools) -> dict[str, int]:
    """How often the beliefs are right for people of the original who have the quasi-identifiers of somebody public."""
    place = {key: c for c, key in enumerate(_keys(public, scene.original)) if exposed[c]}
    match = np.array([place.get(key, -1) for key in _keys(scene.original, scene.original)], dtype=np.int64)
    there = match >= 0
    believed = np.where(there, value[match], -1)
    return {
        "people of the original who look like an exposed one": int(scene.truth.size[there].sum()),
        "of them the belief is right for": _right(scene.truth, believed, there),
    }


def _keys(table: Table, like: Table) -> list[tuple[str | None, ...]]:
    """The quasi-identifiers of each combination as text, in the order of another table's columns."""
    names = [column.name for column in table.quasi]
    codes = table.frequencies.codes
    texts = [
        table[column.name].labels.take(pa.array(codes[:, names.index(column.name)])).to_pylist()
        for column in like.quasi
        if column.name in names
    ]
    return list(zip(*texts, strict=True))
