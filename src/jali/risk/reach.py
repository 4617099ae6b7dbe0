"""Reach: what the table as it is keeps of a promise, and how far any grouping of its people could go."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from jali.encoding.table import Table
from jali.errors import InfeasibleError, InputError
from jali.principles import DeltaPresence
from jali.principles.base import Principle
from jali.principles.counts import Counts
from jali.publish.checks import only_present
from jali.search.common import merging_never_breaks, require_feasible
from jali.search.screen import framed


@dataclass(frozen=True)
class Reach:
    """How near a table is to a promise before anything is done to it.

    Where merging groups never breaks a promise, nothing keeps more of it than everybody as one group: then `most` is as
    far as one can go. `against` says why even that is not enough.
    """

    promise: Principle
    raw: float  # the weakest level of a group of people who look alike in the original; nan where there is none
    outside: int  # people in groups of the original that do not keep it
    most: float  # the level of everybody as one group
    against: str = ""  # why no grouping can keep it, in one line; empty where one may
    final: bool = True  # whether no grouping reaches more than everybody as one group


def reach(table: Table, principles: Iterable[Principle]) -> tuple[Reach, ...]:
    """For each promise, what the original keeps of it and how far one could go; from counts alone, without a search."""
    frequencies = table.frequencies
    groups = frequencies.counts(np.arange(frequencies.combinations, dtype=np.int64), frequencies.combinations)
    return tuple(_reach(table, groups, promise) for promise in principles)


def _reach(table: Table, groups: Counts, promise: Principle) -> Reach:
    whole = table.frequencies.whole
    against = ""
    try:
        promise.require_column(whole)
        require_feasible([promise], whole, table.frequencies)
    except (InfeasibleError, InputError) as problem:
        against = str(problem)
    try:
        raw, most = promise.worst(groups), promise.worst(whole)
        outside = int(groups.size[~promise.holds(groups)].sum())
    except InputError as problem:  # the column that it judges is not there, or cannot be judged by it
        return Reach(promise, math.nan, 0, math.nan, against or str(problem))
    return Reach(promise, raw, outside, most, against, merging_never_breaks(promise, table.frequencies))


@dataclass(frozen=True)
class Present:
    """How many people of a public table are in a private one."""

    people: int  # of the public table
    present: int  # of the private one
    against: str = ""  # why no release keeps the bounds, in one line; empty where one may


def presence(private: Table, public: Table, *, low: float, high: float) -> Present:
    """Whether bounds on presence can be kept at all; an InputError where a private row is not in the public table."""
    framed_ = framed(only_present(private), public)
    people, present = int(framed_.public.sum()), int(framed_.private.sum())
    whole = framed_.table.frequencies.whole
    try:
        require_feasible([DeltaPresence(low, high)], whole, framed_.table.frequencies)
    except InfeasibleError as problem:
        return Present(people, present, str(problem))
    return Present(people, present)
