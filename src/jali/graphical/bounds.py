"""What all marginals of a collection together make certain and possible of a count: two linear programs.

Unknown is how many people stand in each joint cell of the columns that matter: those asked for, and those that tie the
marginals to each other. A column, or a finer level of one, that a single marginal shows and nobody asks for is summed
away first; so are values of an asked column that the condition cannot tell apart. For a decomposable collection nothing
is lost by that: what was summed away can be put back, marginal by marginal.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jali.core.arrays import Bools, Ints, counted
from jali.core.programs import TOLERANCE, Sums
from jali.graphical.graph import Mask, largest
from jali.graphical.marginal import ABSENT, Cache, Marginal, upward
from jali.graphical.maxent import finest

CELLS = 1 << 14
"""Joint cells up to which the programs are solved; beyond, each marginal bounds alone."""

SECONDS = 10.0
"""How long one question may take; then each marginal bounds alone."""

Groups = Mapping[int, Ints]
"""For an attribute, the group of each node at its finest level."""


class Joint(NamedTuple):
    """The joint cells: the group of each attribute that each stands in, and the sums that are known of them."""

    codes: dict[int, Ints]  # attribute → (cells,)
    places: list[Ints]  # for each marginal (cells,)
    n: list[Ints]  # for each marginal (places,)


def reduced(cache: Cache, marginals: Sequence[Marginal], asked: Mask) -> tuple[Marginal, ...]:
    """The marginals without what a single one of them shows and nobody asks for; contained ones are left out."""
    masks = largest(cache.domain.mask(marginal) for marginal in marginals)
    while True:
        shared = 0
        for at, mask in enumerate(masks):
            for other in masks[at + 1 :]:
                shared |= mask & other
        kept = tuple(mask for mask in largest(mask & (shared | asked) for mask in masks) if mask)
        if kept == masks:
            return tuple(cache.domain.of_mask(mask) for mask in masks)
        masks = kept


def grouped(cache: Cache, marginals: Sequence[Marginal], alike: Mapping[int, NDArray[np.generic]]) -> Groups:
    """The groups of each attribute's nodes that neither two marginals nor the question tell apart.

    `alike` gives each node of an asked attribute, at its finest level, a row: (nodes, …).
    """
    found: dict[int, Ints] = {}
    shown = finest(marginals)
    for i in shown.attributes:
        attribute = cache.domain.attributes[i]
        levels = sorted(marginal.levels[i] for marginal in marginals if marginal.levels[i] != ABSENT)
        nodes = np.arange(attribute.nodes[shown.levels[i]])
        tied = upward(attribute, levels[0], levels[1])[nodes] if len(levels) > 1 else np.zeros(len(nodes), np.int64)
        rows = alike[i] if i in alike else np.zeros((len(nodes), 0))
        key = np.column_stack([tied, rows.astype(np.int64)])
        found[i] = np.unique(key, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return found


def joined(cache: Cache, marginals: Sequence[Marginal], groups: Groups) -> Joint | None:
    """The joint cells that no marginal rules out; None where there are too many to be looked at."""
    sizes = [int(group.max()) + 1 for group in groups.values()]
    if math.prod(sizes) > CELLS:
        return None
    codes = dict(zip(groups, np.indices(sizes).reshape(len(sizes), -1).astype(np.int64), strict=True))
    shown = finest(marginals)
    places: list[Ints] = []
    sums: list[Ints] = []
    possible = np.ones(math.prod(sizes), dtype=bool)
    for marginal in marginals:
        counts = cache.counts(marginal)
        place, own, size = np.zeros(math.prod(sizes), np.int64), np.zeros(len(counts.n), np.int64), 1
        for i in marginal.attributes:
            attribute, level, group = cache.domain.attributes[i], marginal.levels[i], groups[i]
            if level == shown.levels[i]:
                width, here, mine = int(group.max()) + 1, codes[i], group[counts.column(i)]
            else:
                into = np.zeros(int(group.max()) + 1, dtype=np.int64)
                into[group] = upward(attribute, shown.levels[i], level)
                width, here, mine = attribute.nodes[level], into[codes[i]], counts.column(i).astype(np.int64)
            place, own, size = place * width + here, own * width + mine, size * width
        n = counted(own, counts.n, size)
        possible &= n[place] > 0
        places.append(place)
        sums.append(n)
    return Joint({i: code[possible] for i, code in codes.items()}, [place[possible] for place in places], sums)


def bounds(joint: Joint, sure: Bools, maybe: Bools) -> tuple[float, float]:
    """The least of the people who surely satisfy a condition, and the most of those who may."""
    start = np.cumsum([0, *map(len, joint.n)])
    cells = len(sure)
    row = np.concatenate([place + first for place, first in zip(joint.places, start, strict=False)])
    sums = np.concatenate(joint.n).astype(np.float64)
    known = Sums(cells, row, np.tile(np.arange(cells), len(joint.n)), sums, sums, whole=False)
    deadline = time.monotonic() + SECONDS
    least = known.best(-sure.astype(np.float64), deadline=deadline)
    most = known.best(maybe.astype(np.float64), deadline=deadline)
    low, high = 0.0, math.inf
    if least is not None and least.exact:
        low = float(math.ceil(-least.limit - TOLERANCE))
    if most is not None and most.exact:
        high = float(math.floor(most.limit + TOLERANCE))
    return max(low, 0.0), high


def joint_bounds(
    cache: Cache,
    marginals: Sequence[Marginal],
    alike: Mapping[int, NDArray[np.generic]],
    judge: Callable[[Groups, Mapping[int, Ints]], tuple[Bools, ...]],
) -> tuple[float, float]:
    """Bounds of a count from all marginals together; 0 and infinity where they say no more than each alone.

    `judge` says of joint cells, given by the group of each asked attribute, whether the condition holds for all and for
    any of their people.
    """
    shown = finest(marginals)
    asked = 0
    for i in alike:
        asked |= cache.domain.mask(Marginal(tuple(v if at == i else ABSENT for at, v in enumerate(shown.levels))))
    some = reduced(cache, marginals, asked)
    if len(some) < 2:
        return 0.0, math.inf
    groups = grouped(cache, some, alike)
    joint = joined(cache, some, groups)
    if joint is None:
        return 0.0, math.inf
    sure, maybe = judge(groups, joint.codes)
    return bounds(joint, sure, maybe)
