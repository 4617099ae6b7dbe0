"""Choices: where people have several values, a group is judged by the worst choice of one value for each person.

An attacker may look for any of a person's values, so a promise must hold for every choice f(i) of one of the values of
each person i. Known are N people and the c_v of them who have value v; a choice gives counts h with h_v ≤ c_v and
Σ h_v = N. The choice that fills the commonest value with all its people, then the next, until everybody has one, has
the largest sums of its j largest counts: it majorizes every other, and is the worst for every Schur-concave level.
Decision 21 has the proofs, also for don't-care values, where the number T of people who choose a value to protect is
tried where the worst can be.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from jali.core.arrays import Bools, Ints, owners, runs_of
from jali.principles.counts import Cells

_AT_ONCE = 1 << 20  # cells of choices judged together


def concentrated(cells: Cells) -> Cells:
    """The most concentrated choice of one value for each person that the counts allow, as cells.

    Where everybody has one value these are the cells themselves.
    """
    if cells.one_value:
        return cells
    return _kept(cells, np.clip(cells.size[cells.group] - _before(cells), 0, cells.n))


def worst_choices(cells: Cells, open_to_all: Bools) -> Iterator[tuple[Cells, Ints]]:
    """Choices among which is the worst one of each group, as cells, and the group of each; some at a time.

    `open_to_all`, (values,), are the don't-care values. Without any the most concentrated choice is the worst.
    """
    everyone = np.arange(cells.groups)
    if cells.one_value:
        yield cells, everyone
    elif not open_to_all.any():
        yield concentrated(cells), everyone
    else:
        yield from _with_dont_care(cells, open_to_all[cells.value])


def _with_dont_care(cells: Cells, careless: Bools) -> Iterator[tuple[Cells, Ints]]:
    """For T people who choose a value to protect, both sides are the most concentrated; T where a side fills a value.

    T is at least 1 where it can be: with 0 there is nothing to protect, and the promise holds.
    """
    before = np.where(careless, _before(cells, careless), _before(cells, ~careless))
    guarded, open_people = (cells.add(np.where(side, cells.n, 0)) for side in (~careless, careless))
    most = np.minimum(cells.size, guarded)
    least = np.minimum(np.maximum(cells.size - open_people, 1), most)
    filled = np.where(careless, cells.size[cells.group] - before - cells.n, before + cells.n)
    tried = np.clip(filled, least[cells.group], most[cells.group])
    group = np.concatenate((np.arange(cells.groups), np.arange(cells.groups), cells.group))
    pairs = np.unique(np.stack((group, np.concatenate((least, most, tried)))), axis=1)  # (2, choices)
    length = np.diff(cells.start)
    upto = np.cumsum(length[pairs[0]])
    begin = 0
    while begin < pairs.shape[1]:
        done = int(upto[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(upto, done + _AT_ONCE, side="right")))
        yield _chosen(cells, careless, before, *pairs[:, begin:end]), pairs[0, begin:end]
        begin = end


def _chosen(cells: Cells, careless: Bools, before: Ints, of: Ints, guarded: Ints) -> Cells:
    """The cells of some choices, each a group of its own: of which group it is, and T."""
    length, cell = runs_of(cells.start, of)
    choice = owners(length)
    people = np.where(careless[cell], (cells.size[of] - guarded)[choice], guarded[choice])
    n = np.clip(people - before[cell], 0, cells.n[cell])
    repeated = replace(
        cells, groups=len(of), group=choice, value=cells.value[cell], n=cells.n[cell], size=cells.size[of]
    )
    return _kept(repeated, n)


def _kept(cells: Cells, n: Ints) -> Cells:
    """The cells with other counts, those that have nobody left out."""
    some = n > 0
    return replace(cells, group=cells.group[some], value=cells.value[some], n=n[some], several=False)


def _before(cells: Cells, which: Bools | None = None) -> Ints:
    """The people in the cells of the same group that are filled before each: those with more people come first.

    With `which` only those cells count.  (cells,)
    """
    n = cells.n if which is None else np.where(which, cells.n, 0)
    order = np.lexsort((-n, cells.group))
    upto = np.cumsum(n[order]) - n[order]
    before = np.empty_like(n)
    before[order] = upto - upto[cells.start[cells.group[order]]]
    return before
