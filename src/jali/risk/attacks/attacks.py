"""Attack gallery: what known attacks learn from a release, for the holder of the original.

Homogeneity, background knowledge and linkage are here; the attacks on presence and by the algorithm have files of
their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from jali.core.arrays import Bools, Floats, Ints, runs_of
from jali.encoding.large import LargeTable
from jali.encoding.table import Table
from jali.errors import InputError, told
from jali.principles.base import exact, whole_number
from jali.releases.base import Release
from jali.releases.linked.angel import Angel
from jali.releases.load import release_of
from jali.releases.marginals import Marginals
from jali.releases.summary import many
from jali.risk.attacks.algorithm import algorithm
from jali.risk.attacks.decoding import presence
from jali.risk.attacks.links import (
    Chances,
    Links,
    collected_chances,
    collected_place,
    links,
    links_to,
    public_table,
    surely_valued,
)  # fmt: skip
from jali.risk.attacks.scene import Attack, Gallery, Scene, Seen, different, percent

HOW = "knows how the groups were chosen"
NO_VALUES = "no sensitive column was published: there is no value to learn about anybody"
RULED_OUT = 3
"""Up to how many values the attacker rules out for a person."""


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
    given = release_of("attacks", release)
    if isinstance(original, LargeTable):
        raise original.refused("attacks", "audit the release")
    if not isinstance(original, Table):
        raise InputError("the original must be a table", got=type(original).__name__, do="make one: jali.table(…)")
    least = exact("threshold", threshold)
    if not 0 < least <= 1:
        raise InputError("the threshold must be above 0 and at most 1", got=str(threshold))
    scene = Scene(given, original, sensitive, least, whole_number("cases", cases, least=0))
    looked_up = None if public is None else public_table(given, public)
    hidden = presence(scene, looked_up)
    if looked_up is not None and hidden.exposed is not None:
        scene = replace(scene, release=given.beside(looked_up))
    replayed = partial(algorithm, scene, scene.release.public_table, _seconds(time_limit))
    if not given.of_role("sensitive"):  # nothing but presence can be learnt
        nothing = Attack("algorithm", HOW, 0, original.people, 0, {}, (), (NO_VALUES,))
        return Gallery(None, float(least), (hidden,), replayed if given.hides_presence else lambda: nothing)
    tried = (homogeneity(scene), background(scene), linkage(scene, looked_up), hidden)
    return Gallery(scene.column.name, float(least), tried, replayed)


def _seconds(time_limit: object) -> float:
    if isinstance(time_limit, bool) or not isinstance(time_limit, (int, float)) or not 0 < time_limit < math.inf:
        raise InputError("time_limit is a number of seconds above 0", got=repr(told(time_limit)))
    return float(time_limit)


# -- homogeneity ---------------------------------------------------------------------------------------------------


def homogeneity(scene: Scene) -> Attack:
    """Groups whose people all, or nearly all, have the same value (l-diversity, Section 2.1)."""
    seen = scene.homogeneous
    first = seen.likeliest
    sure, same = scene.sure(seen.share[first]), seen.share[first] >= 1 - 1e-12
    exposed, alike = _groups(seen, first[sure]), _groups(seen, first[same])
    order = sorted(first[sure].tolist(), key=lambda i: (-seen.share[i], -int(seen.size[seen.group[i]]), seen.group[i]))
    told = (
        f"an attacker who knows that somebody is in {seen.place(int(seen.group[i]))} is "
        f"{percent(float(seen.share[i]))} of "
        f"{scene.label(int(seen.value[i]))}"
        for i in order
    )
    figures = {f"{seen.called} with one value": int(same.sum()), "people in them": seen.within(alike)}
    return Attack(
        "homogeneity",
        _known_of(scene.release),
        seen.within(exposed),
        seen.everybody,
        seen.having(first[sure]),
        figures,
        different(told, scene.cases),
        scene.assumed,
    )


def _known_of(release: Release) -> str:
    """What the attacker on groups with one value knows, in words."""
    if release.batched is not None:
        return "knows somebody's quasi-identifiers, hence the bucket, whose batches mix"
    if release.collected is not None:
        return "knows somebody's quasi-identifiers, and looks at one marginal at a time"
    return "knows which group somebody is in, and nothing else"


def _groups(seen: Seen, cells: Ints) -> Bools:
    """The groups of some cells: (groups,)."""
    chosen = np.zeros(len(seen.size), dtype=bool)
    chosen[seen.group[cells]] = True
    return chosen


# -- background knowledge ------------------------------------------------------------------------------------------


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
        """The belief in each value once this number of others is ruled out: (cells,).

        n_s / (n − Σ of those ruled out). Where people have several values it is at least
        1 − (Σ of all further values) / (n − Σ of those ruled out): a person with neither s nor a further value has
        none.
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
        """How many people have the value of one of the places and none of those that are ruled out for it."""
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
        different((_ruled_case(scene, ruled, i) for i in fresh), scene.cases),
        scene.assumed,
    )


def _ruled_case(scene: Scene, ruled: Ruled, i: int) -> str:
    """A person of whom one more fact tells the value."""
    seen = scene.seen
    out, own = seen.ranked[ruled.begin[i] + (1 if ruled.rank[i] == 0 else 0)], seen.ranked[i]
    return (
        f"an attacker who knows that somebody in {seen.place(int(seen.group[own]))} does not have "
        f"{scene.label(int(seen.value[out]))} is {percent(float(ruled.beliefs(1)[i]))} of "
        f"{scene.label(int(seen.value[own]))}"
    )


# -- linkage -------------------------------------------------------------------------------------------------------

SURE_SECONDS = 20.0
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
    tables = [one for one in release.contents.tables if one.linked]
    covering = [
        links_to(one.columns, np.asarray(one.batch), np.zeros(one.rows, dtype=bool), table, holder) for one in tables
    ]
    width = len(scene.column)
    share = np.zeros((len(covering[0].start) - 1, width))
    batches = len(release.contents.size)
    pairs = covering[0].owner * batches + covering[0].group  # combinations and the batches that every table leaves them
    for one in covering:
        share = np.maximum(share, one.chances(scene.cells).dense(width))
        pairs = np.intersect1d(pairs, one.owner * batches + one.group)
    n, at = runs_of(scene.cells.start, pairs % batches)
    values = np.zeros_like(share, dtype=bool)
    values[np.repeat(pairs // batches, n), scene.cells.value[at]] = True
    share = np.where(values, np.where(values.sum(axis=1, keepdims=True) == 1, 1.0, share), 0.0)
    left = np.bincount(pairs // batches, minlength=len(share))

    def place(c: int) -> str:
        return f"{many(int(left[c]), 'batch', 'batches')} in {many(len(tables), 'table')}"

    def figures(people: Callable[[Bools], int]) -> dict[str, int]:
        return {"match no batch": people(left == 0), "match exactly one batch": people(left == 1)}

    notes = ("what the numbers of people in several tables say together",) if len(tables) > 1 else ()
    return LookedUp(Chances.of(share), figures, place, left.astype(np.int64), notes)


# -- marginals -----------------------------------------------------------------------------------------------------


def _in_marginals(scene: Scene, release: Marginals, table: Table, elsewhere: bool) -> LookedUp:
    """The belief by maximum entropy; an attacker who looks up everybody of the original also knows certain values."""
    chances = collected_chances(release, table, scene.column.name)
    there = np.bincount(chances.combination, minlength=chances.combinations) > 0
    sure = None if elsewhere else surely_valued(release, table, scene.truth, seconds=SURE_SECONDS)
    certain = np.zeros(chances.combinations, dtype=bool) if sure is None else sure[0]
    notes: tuple[str, ...] = ()
    what = "what is certain to an attacker who knows everybody's quasi-identifiers"
    if sure is None and not elsewhere:
        notes = (f"{what}: there are too many counts to decide",)
    elif sure is not None and not sure[1]:
        notes = (f"{what}: {SURE_SECONDS:g} seconds were not enough",)
    if bool(certain.any()):  # of one value, which is the true one
        share, own = chances.dense(len(scene.column)), certain[scene.truth.group]
        share[certain] = 0.0
        share[scene.truth.group[own], scene.truth.value[own]] = 1.0
        chances = Chances.of(share)

    def figures(people: Callable[[Bools], int]) -> dict[str, int]:
        known = {} if sure is None else {CERTAIN: people(certain)}
        return {"match no cell": people(~there), **known}

    return LookedUp(
        chances, figures, collected_place(release, table), np.zeros(chances.combinations, dtype=np.int64), notes
    )


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
