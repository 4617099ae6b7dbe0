"""Linkage: people are looked up by their quasi-identifiers, in whatever tables a release has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from jali.core.arrays import Bools, Ints, runs_of
from jali.encoding.table import Table
from jali.releases.linked.angel import Angel
from jali.releases.marginals import Marginals
from jali.releases.summary import many
from jali.risk.attacks.links import Chances, Links, collected_chances, collected_place, links, links_to, surely_valued
from jali.risk.attacks.scene import Attack, Scene, different, percent

SECONDS = 20.0
"""How long certainty is looked for in marginals; what is not decided by then becomes a note."""
CERTAIN = "certain from the marginals and everybody's quasi-identifiers"
IN_THE_RELEASE = "whether the people of the public table are in the release at all"


@dataclass(frozen=True, eq=False)
class LookedUp:
    """What looking up each combination of a table finds."""

    chances: Chances
    figures: Callable[[Callable[[Bools], int]], dict[str, int]]  # from how many people some combinations have
    place: Callable[[int], str]  # where a combination was found, in words
    matched: Ints  # (combinations,) rows that match; fewer come first among cases
    notes: tuple[str, ...] = ()


def linkage(scene: Scene, public: Table | None) -> Attack:
    """People of a public table, or of the original, who are looked up by their quasi-identifiers."""
    table = scene.original if public is None else public
    match = _looked_up(scene, table, public is not None)
    value, chance = match.chances.most_likely()
    exposed = scene.sure(chance)
    figures = match.figures(lambda which: people_of(table, which))
    right = _right(scene, value, exposed) if public is None else None
    if public is not None:
        figures |= _shared(scene, public, value, exposed)
    order = sorted(np.flatnonzero(exposed).tolist(), key=lambda c: (-chance[c], int(match.matched[c]), c))
    alike = _by_combination(table)
    cases = (
        f"{many(int(alike[c]), 'person matches', 'people match')} {match.place(c)}: "
        f"{percent(float(chance[c]))} of {scene.label(int(value[c]))}"
        for c in order
    )
    who = "everybody's quasi-identifiers" if public is None else "a public table of quasi-identifiers"
    counting = "counts the values of the rows that match"
    how = counting if scene.release.collected is None else "combines the marginals by maximum entropy"
    notes = (*(() if public is None else (IN_THE_RELEASE,)), *match.notes, *scene.assumed)
    everybody = people_of(table, np.ones(len(value), dtype=bool))
    told = different(cases, scene.cases)
    return Attack(
        "linkage", f"looks up {who} and {how}", people_of(table, exposed), everybody, right, figures, told, notes
    )


def people_of(table: Table, which: Bools) -> int:
    """How many people some combinations of a table have, each person counted once."""
    frequencies = table.frequencies
    there = which[frequencies.combination]
    if frequencies.person is not None:
        return len(np.unique(frequencies.person[there]))
    return int(frequencies.rows[there].sum())


def _by_combination(table: Table) -> Ints:
    """How many people each combination of a table has: (combinations,)."""
    frequencies = table.frequencies
    return frequencies.counts(np.arange(frequencies.combinations, dtype=np.int64), frequencies.combinations).size


def _looked_up(scene: Scene, table: Table, elsewhere: bool) -> LookedUp:
    if scene.release.collected is not None:
        return _in_marginals(scene, scene.release.collected, table, elsewhere)
    holder = scene.own if elsewhere else None
    if scene.release.batched is not None:
        return _in_batches(scene, scene.release.batched, table, holder)
    covering = scene.links if holder is None else links(scene.release, table, holder)

    def place(c: int) -> str:
        one = int(covering.groups[c]) == 1
        where = scene.names(int(covering.group[covering.start[c]])) if one else f"{covering.groups[c]} groups together"
        return f"{where} ({many(int(covering.matched[c]), 'row')})"

    return LookedUp(
        covering.chances(scene.cells), lambda people: _matches(covering, people, "group"), place, covering.matched
    )


def _matches(covering: Links, people: Callable[[Bools], int], what: str) -> dict[str, int]:
    return {
        f"match no {what}": people(covering.groups == 0),
        f"match exactly one {what}": people(covering.groups == 1),
        "match exactly one row": people(covering.matched == 1),
    }


# -- ANGEL ---------------------------------------------------------------------------------------------------------


def _in_batches(scene: Scene, release: Angel, table: Table, holder: Table | None) -> LookedUp:
    """Of each combination the strongest belief that any table with batches gives, or what all of them leave."""
    tables = [one for one in release.contents.tables if one.batch is not None]
    covering = [
        links_to(one.columns, np.asarray(one.batch), np.zeros(one.rows, dtype=bool), table, holder) for one in tables
    ]
    width = len(scene.column)
    share = np.zeros((len(covering[0].start) - 1, width))
    batches = len(release.contents.size)
    pairs = covering[0].owner * batches + covering[0].group  # combinations and the batches that every table leaves them
    for one in covering:
        chances = one.chances(scene.cells)
        known = np.zeros_like(share)
        known[chances.combination, chances.value] = chances.share
        share = np.maximum(share, known)
        pairs = np.intersect1d(pairs, one.owner * batches + one.group)
    n, at = runs_of(scene.cells.start, pairs % batches)
    values = np.zeros_like(share, dtype=bool)
    values[np.repeat(pairs // batches, n), scene.cells.value[at]] = True
    share = np.where(values, np.where(values.sum(axis=1, keepdims=True) == 1, 1.0, share), 0.0)
    combination, value = np.nonzero(share)
    left = np.bincount(pairs // batches, minlength=len(share))

    def place(c: int) -> str:
        return f"{many(int(left[c]), 'batch', 'batches')} in {many(len(tables), 'table')}"

    def figures(people: Callable[[Bools], int]) -> dict[str, int]:
        return {"match no batch": people(left == 0), "match exactly one batch": people(left == 1)}

    notes = ("what the numbers of people in several tables say together",) if len(tables) > 1 else ()
    chances = Chances(len(share), combination.astype(np.int64), value.astype(np.int64), share[combination, value])
    return LookedUp(chances, figures, place, left.astype(np.int64), notes)


# -- marginals -----------------------------------------------------------------------------------------------------


def _in_marginals(scene: Scene, release: Marginals, table: Table, elsewhere: bool) -> LookedUp:
    """The belief by maximum entropy; an attacker who looks up everybody of the original also knows certain values."""
    chances = collected_chances(release, table, scene.column.name)
    there = np.bincount(chances.combination, minlength=chances.combinations) > 0
    sure = None if elsewhere else surely_valued(release, table, scene.truth, seconds=SECONDS)
    certain = np.zeros(chances.combinations, dtype=bool) if sure is None else sure[0]
    notes: tuple[str, ...] = ()
    what = "what is certain to an attacker who knows everybody's quasi-identifiers"
    if sure is None and not elsewhere:
        notes = (f"{what}: there are too many counts to decide",)
    elif sure is not None and not sure[1]:
        notes = (f"{what}: {SECONDS:g} seconds were not enough",)
    if bool(certain.any()):
        chances = _made_certain(chances, certain, scene)

    def figures(people: Callable[[Bools], int]) -> dict[str, int]:
        known = {} if sure is None else {CERTAIN: people(certain)}
        return {"match no cell": people(~there), **known}

    return LookedUp(
        chances, figures, collected_place(release, table), np.zeros(chances.combinations, dtype=np.int64), notes
    )


def _made_certain(chances: Chances, certain: Bools, scene: Scene) -> Chances:
    """The chances with 1 for the one value of those of whom it is certain, which is the true one."""
    truth = scene.truth
    own = certain[truth.group]
    kept = ~certain[chances.combination]
    combination = np.concatenate([chances.combination[kept], truth.group[own]])
    value = np.concatenate([chances.value[kept], truth.value[own]])
    share = np.concatenate([chances.share[kept], np.ones(int(own.sum()))])
    order = np.lexsort((value, combination))
    return Chances(chances.combinations, combination[order], value[order], share[order])


# -- whether it is right -------------------------------------------------------------------------------------------


def _right(scene: Scene, value: Ints, exposed: Bools) -> int:
    """How many people of the exposed combinations have the value that is believed of them."""
    combination, own, people, person = scene.entries
    right = exposed[combination] & (own == value[combination])
    return int(people[right].sum()) if person is None else len(np.unique(person[right]))


def _shared(scene: Scene, public: Table, value: Ints, exposed: Bools) -> dict[str, int]:
    """How often the beliefs are right for people of the original who have the quasi-identifiers of somebody public."""
    place = {key: c for c, key in enumerate(_keys(public, scene.original)) if exposed[c]}
    match = np.array([place.get(key, -1) for key in _keys(scene.original, scene.original)], dtype=np.int64)
    there = match >= 0
    believed = np.where(there, value[match], -1)
    return {
        "people of the original who look like an exposed one": people_of(scene.original, there),
        "of them the belief is right for": _right(scene, believed, there),
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
