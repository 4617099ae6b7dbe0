"""Conjunctions whose parts name one column each: asked column by column, and what is found for a column is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jali.estimates.base import INDEPENDENT
from jali.estimates.condition import And, Condition, Test, columns, simplify, tests
from jali.estimates.expand import BoxColumn, Fits, of_nodes
from jali.estimates.patterns import Bools, Floats, Ints
from jali.estimates.sets import Sets


@dataclass(frozen=True, eq=False)
class Truth:
    """How much of each node of a column satisfies what is asked of it: each (nodes,)."""

    share: Floats  # nan where nothing is known of the node
    sure: Bools  # whether all of it does
    maybe: Bools  # whether any of it may
    doubtful: Bools  # whether some of its values satisfy other tests than the rest

    @cached_property
    def often(self) -> float:
        """In how many of the nodes some of it may."""
        return float(np.count_nonzero(self.maybe)) / max(len(self.maybe), 1)

    @cached_property
    def plain(self) -> bool:
        """Whether all of a node does where any of it may."""
        return bool(self.sure[self.maybe].all())

    @cached_property
    def doubts(self) -> bool:
        """Whether any node is doubtful."""
        return bool(self.doubtful.any())


def by_column(asked: Condition) -> dict[str, tuple[Condition, ...]] | None:
    """The parts of a conjunction by the one column that each names; None where a part names several."""
    found: dict[str, tuple[Condition, ...]] = {}
    for part in asked.parts if isinstance(asked, And) else (asked,):
        names = columns(part)
        if len(names) != 1:
            return None
        (name,) = names
        found[name] = (*found.get(name, ()), part)
    return found


def truth_of(column: BoxColumn, parts: tuple[Condition, ...]) -> Truth:
    """What of the column's nodes satisfies all of these parts."""
    sets = column.cover.listed
    if sets is not None and all(isinstance(part, Test) for part in parts):
        return _of_sets(sets, [part for part in parts if isinstance(part, Test)])
    asked = simplify(And(parts))
    own = tuple(dict.fromkeys(tests(asked)))
    patterns = column.cover.patterns(own)
    return Truth(*of_nodes(asked, own, patterns), patterns.possible.sum(axis=0) > 1)


def _of_sets(sets: Sets, asked: Sequence[Test]) -> Truth:
    """The same for nodes that are sets of known values: how many members of each satisfy every test.

    A node is doubtful where a test holds for some of its members only.
    """
    each = [sets.truth(test) for test in asked]
    both = each[0] if len(each) == 1 else np.logical_and.reduce(each)
    found = sets.counts(both)
    maybe, sure = found > 0, found == sets.size
    mixed = maybe ^ sure  # nodes have members
    if len(each) > 1:
        counted = [sets.counts(truth) for truth in each]
        mixed = np.logical_or.reduce([(count > 0) & (count < sets.size) for count in counted])
    share = found / sets.size if sets.even else np.where(sure, 1.0, sets.shares(both))
    return Truth(share, sure, maybe, mixed)


def fitting_boxes(columns: Sequence[BoxColumn], truths: Sequence[Truth]) -> Fits:
    """The boxes that may satisfy all that is asked of their columns: first where the fewest do."""
    order = sorted(range(len(columns)), key=lambda at: truths[at].often)
    box = np.flatnonzero(truths[order[0]].maybe.take(columns[order[0]].codes))  # take is quick for narrow codes
    for at in order[1:]:
        box = box[truths[at].maybe.take(columns[at].codes.take(box))]
    share, surely = np.ones(len(box)), np.ones(len(box), dtype=np.bool_)
    for column, truth in zip(columns, truths, strict=True):
        if not truth.plain:
            node = column.codes.take(box)
            share, surely = share * truth.share.take(node), surely & truth.sure.take(node)
    return Fits(box, share, surely)


def rests_on(
    columns: Sequence[BoxColumn], truths: Sequence[Truth], box: Ints
) -> tuple[tuple[str, ...], bool]:  # fmt: skip
    """What the answer rests on in boxes that are neither surely in nor surely out; and if no other could add to it.

    Often a few boxes rest on all that any could: columns that are doubtful, the same for each node, and independent.
    """
    doubts = [(column, truth) for column, truth in zip(columns, truths, strict=True) if truth.doubts]
    found: dict[str, None] = {}
    several = np.zeros(len(box), dtype=np.int8)
    every = len(doubts) > 1
    for column, truth in doubts:
        here = column.codes.take(box)
        doubtful = truth.doubtful.take(here)
        if not doubtful.any():
            every = False
            continue
        several += doubtful
        every = every and column.cover.alike
        nodes = (here[:1] if column.cover.alike else np.unique(here[doubtful])).astype(np.int64)
        found |= dict.fromkeys(column.cover.assumes(nodes, column.name))
    together = int(several.max(initial=0)) > 1
    return (*found, INDEPENDENT) if together else tuple(found), every and together
