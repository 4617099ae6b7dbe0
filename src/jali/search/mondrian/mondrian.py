"""Mondrian: multidimensional partitioning of a table into groups that keep every promise.

A group is split as long as every part keeps every promise (LeFevre, DeWitt and Ramakrishnan 2006). The rules, which
`tests/oracles/mondrian.py` spells out:

* Columns in which a group has several values are tried in the order of `split`, equal ones in the order of the table;
  the first that allows a split is split.
* An **ordered** column (everything without a taxonomy; a missing value comes last) is cut between two values: at the
  cut that makes both halves most equal in people, of two such the lower. Where a principle forbids it, the next most
  equal cuts are tried, `CUTS` in all; k-anonymity alone never needs them.
* A column **under a taxonomy** is split into the children of the smallest node that covers the group's values;
  children without people are left out. In strict mode all of them must hold, since the box of two children joined is
  their parent, which would overlap the boxes of the others. In relaxed mode the children that fail are one part, and
  while it fails the smallest other child joins it.
* **Relaxed** partitioning first tries to halve an ordered column among the records that share a value, in the order
  of combinations, values and records. Boxes may then overlap.

Where persons are named, halves are made equal in entries, since people who have several do not add up; the promises
count people all the same.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jali import kernels
from jali.core.arrays import Bools, Ints
from jali.core.progress import Step
from jali.encoding.table import Table
from jali.errors import InfeasibleError, InputError, nearest, one_of, told
from jali.principles.base import Combined, Principle, principles_of
from jali.principles.rules import rules_of
from jali.search.common import require_feasible
from jali.search.gate import recording
from jali.search.mondrian.generic import Judge, Splitter, grow, grow_in_order
from jali.search.mondrian.plan import (
    MODES,
    SIMILARITIES,
    SPLITS,
    Items,
    Mode,
    Similarity,
    Split,
    columns_of,
    grow_compiled,
    items_of,
    kernels_of_cuts,
)
from jali.search.mondrian.safety import grow_safe_compiled, judge_of, kernels_of_safety, safeties_of

__all__ = ["Boxes", "Judge", "Mode", "Similarity", "Split", "mondrian"]


@dataclass(frozen=True, eq=False)
class Boxes:
    """Groups of a table's combinations, or of its records when they are relaxed, and the box that each fills."""

    groups: int
    group: Ints | None  # (combinations,) strict; -1 for one that was hidden
    row_group: Ints | None  # (records,) relaxed; -1 likewise
    people: Ints  # (groups,)
    low: NDArray[np.int32]  # (groups, columns) the lowest code of its members in each quasi-identifier
    high: NDArray[np.int32]  # (groups, columns) the highest
    checked: int  # candidate splits that were judged

    @property
    def mode(self) -> Mode:
        """Whether equal combinations are always together."""
        return "strict" if self.row_group is None else "relaxed"


def mondrian(
    table: Table,
    principles: Principle | Combined | Iterable[Principle | Combined],
    *,
    mode: Mode = "strict",
    split: Split = "range",
    similarity: Similarity = "box",
    threads: int | None = None,
    on_step: Step | None = None,
    judge: Judge | None = None,
    hidden: Bools | None = None,
) -> Boxes:
    """Partition a table into groups that keep every promise, as small as the rules above make them.

    `split` says which column of a group is tried first: "range" the one that spans the largest part of its domain,
    "entropy" the one whose values are most uncertain, "kl" the one whose split lowers Σ n log(area / n), and so the
    KL-divergence of the release, most. There `similarity` says what the area of a group is: that of its box, or, with
    "pdf", exp of the sum of its columns' entropies, which is what a release that shows distributions loses. A `judge`
    looks at all groups at once and may forbid splits, as Safety does; groups are then split one at a time. The result
    is the same whatever the number of threads. Groups are numbered by their first combination; those that are `hidden`,
    (combinations,), are in none. `on_step` hears how many people are in finished groups, and of how many.
    """
    required = principles_of(principles)
    require_cuts(mode, split, similarity)
    if similarity == "pdf" and split != "kl":
        raise InputError(
            'similarity is what split="kl" compares groups by', got=f'split="{split}"', do='add split="kl"'
        )
    workers = _threads(threads)
    items = items_of(table, mode)
    require_feasible(required, items.whole, table.frequencies)
    if hidden is not None:
        items = items.where(~hidden[items.combination])
    step = on_step or (lambda done, total: None)
    compiled = None
    if judge is None and items.person is None and not (recording() and mode == "strict"):
        compiled = rules_of(required, items.whole, joint=split == "kl")
    safeties = safeties_of(required) if judge is None else []
    columns = columns_of(table)
    few = len(items) <= kernels.FEW
    if compiled is None or len(safeties) > 1 or not (kernels_of_safety(few) if safeties else kernels_of_cuts(few)):
        splitter = Splitter(columns, items, required, mode=mode, split=split, similarity=similarity)
        return _generic(table, splitter, judge or judge_of(safeties, items.whole), step)
    shaped: Any = {"mode": mode, "split": split, "similarity": similarity, "on_step": step, "threads": workers}
    if safeties:
        return _boxes(table, items, *grow_safe_compiled(columns, items, *compiled, safeties[0], **shaped))
    found = grow_compiled(columns, items, *compiled, **shaped)
    return _boxes(table, items, *found)


def require_cuts(mode: Mode, split: Split, similarity: Similarity = "box") -> None:
    """Raise InputError for a way to cut that is not known."""
    _check("mode", mode, MODES)
    _check("split", split, SPLITS)
    _check("similarity", similarity, SIMILARITIES)


def _check(name: str, value: str, known: tuple[str, ...]) -> None:
    if not one_of(value, known):
        raise InputError(f'no {name} "{told(value)}"', do=nearest(value, known))


def _threads(threads: int | None) -> int:
    if threads is not None and (isinstance(threads, bool) or not isinstance(threads, int) or threads < 1):
        raise InputError("threads must be a whole number of at least 1", got=repr(told(threads)))
    if threads is not None:
        return threads
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# -- any principle ------------------------------------------------------------------------------------------------


def _generic(table: Table, splitter: Splitter, judge: Judge | None, step: Step) -> Boxes:
    items = splitter.items
    found: list[Ints] = []
    done = 0

    def finished(group: Ints) -> None:
        nonlocal done
        found.append(group)
        done += int(items.n[group].sum())
        step(done, int(items.n.sum()))

    if judge is None:
        grow(splitter, np.arange(len(items)), finished)
    else:
        grow_in_order(splitter, judge, np.arange(len(items)), finished)
    if items.person is not None and len(found) == 1 and not bool(splitter.judged(found).all()):
        raise InfeasibleError(
            f"the rows as one group do not keep {', '.join(map(repr, splitter.principles))}, "
            "and no cut was found whose parts do; use generalize, which judges every node"
        )
    found.sort(key=lambda group: int(group[0]))
    number = np.empty(len(items), dtype=np.int64)
    for index, group in enumerate(found):
        number[group] = index
    return _boxes(table, items, number, len(found), splitter.checked)


def _boxes(table: Table, items: Items, number: Ints, groups: int, checked: int) -> Boxes:
    """The result, when each item is in the group of its number."""
    order = np.argsort(number, kind="stable")
    begins = np.searchsorted(number[order], np.arange(groups))
    codes = table.frequencies.codes[items.combination[order]]
    group = row_group = None
    if items.record is None:
        group = np.full(table.frequencies.combinations, -1)
        group[items.combination] = number
    else:
        row_group = np.full(table.records, -1)
        row_group[items.record] = number
    return Boxes(
        groups=groups,
        group=group,
        row_group=row_group,
        people=items.counts(np.arange(len(items)), number, groups).size,
        low=np.minimum.reduceat(codes, begins, axis=0),
        high=np.maximum.reduceat(codes, begins, axis=0),
        checked=checked,
    )
