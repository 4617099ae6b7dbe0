"""Boxes grouped by all of their columns but one: a conjunction judges these columns once for all boxes of a group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jali.core.arrays import Bools, Floats, Ints, added, combine, runs_of
from jali.estimates.base import keep
from jali.estimates.conditions import BoxColumn, Fits, Truth, fitting_boxes, rests_on, truth_of
from jali.query.tree import Condition

_TRUTHS = 4096  # of columns, each a few numbers a node, that are kept for the next question
_NESTS = 32  # of boxes as some columns show them, kept too
_SUMS = 1 << 21  # parts of all sums that are kept too, of one of those
_RARE = 4  # where fewer than one in four parts are wanted, only these are added up
_FEW = 64  # parts whose boxes often tell what all rest on


class Sums(NamedTuple):
    """How many people of each part match the conditions on the last column: each (parts,)."""

    value: Floats  # expected number; nan where nothing is known of a node
    maybe: Floats  # the largest possible number
    sure: Floats  # the least possible number


@dataclass(frozen=True, eq=False)
class Nested:
    """Boxes of some columns, those that show the same in one link made one, sorted by stem and link.

    A stem is what every column shows but the last, which has the most nodes; the boxes of one stem and link are a part.
    """

    order: tuple[int, ...]  # the columns that were given, the last one last
    columns: tuple[BoxColumn, ...]  # in that order, of the boxes
    people: Floats  # (boxes,) or their mass
    begin: Ints  # (parts + 1,) where the boxes of each begin
    link: Ints  # (parts,)
    stems: tuple[BoxColumn, ...]  # all columns but the last, of the stems
    start: Ints  # (stems + 1,) where the parts of each begin
    _sums: dict[tuple[Condition, ...], Sums] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(cls, columns: Sequence[BoxColumn], link: Ints, people: Floats) -> Nested:
        """From columns, links and people of boxes."""
        order = sorted(range(len(columns)), key=lambda at: columns[at].cover.nodes)
        ordered = [columns[at] for at in order]
        stem, stem_first = combine([(c.codes, c.cover.nodes) for c in ordered[:-1]], len(link))
        links = int(link.max(initial=0)) + 1
        part, part_first = combine([(stem, len(stem_first)), (link, links)], len(link))
        last = (ordered[-1].codes, ordered[-1].cover.nodes)
        number, first = combine([(part, len(part_first)), last], len(link))
        return cls(
            tuple(order),
            tuple(replace(c, codes=c.codes[first]) for c in ordered),
            added(number, people, len(first)),
            np.searchsorted(part[first], np.arange(len(part_first) + 1)).astype(np.int64),
            link[part_first],
            tuple(replace(c, codes=c.codes[stem_first]) for c in ordered[:-1]),
            np.searchsorted(stem[part_first], np.arange(len(stem_first) + 1)).astype(np.int64),
        )

    def sums(self, last: Truth, asked: tuple[Condition, ...], part: Ints) -> Sums:
        """How many people of some parts match the conditions on the last column; few parts are added up alone."""
        node, found = self.columns[-1].codes, self._sums.get(asked)
        if found is None and len(part) * _RARE < len(self.link):
            size, box = runs_of(self.begin, part)
            return _summed(last, node.take(box), self.people.take(box), np.cumsum(size) - size)
        if found is None:
            found = _summed(last, node, self.people, self.begin[:-1])
            keep(self._sums, asked, found, 1 + _SUMS // len(self.link))
        maybe = found.maybe.take(part)
        return Sums(found.value.take(part), maybe, found.sure.take(part)) if not last.plain else Sums(*(maybe,) * 3)

    def fitting(self, truths: Sequence[Truth]) -> Fits:
        """The parts whose stems may match the conditions on their columns."""
        if not self.stems:
            every = np.arange(len(self.link))
            return Fits(every, np.ones(len(every)), np.ones(len(every), dtype=np.bool_))
        stem, share, surely = fitting_boxes(self.stems, truths)
        if len(self.link) == len(self.start) - 1:  # one part a stem
            return Fits(self.start.take(stem), share, surely)
        size, part = runs_of(self.start, stem)
        return Fits(part, np.repeat(share, size), np.repeat(surely, size))


def _summed(last: Truth, node: NDArray[np.integer], people: Floats, begin: Ints) -> Sums:
    """By what the last column of each box shows, and where the boxes of each part begin."""
    maybe = np.add.reduceat(last.maybe.take(node) * people, begin)
    if last.plain:
        return Sums(maybe, maybe, maybe)
    likely = np.where(last.sure, 1.0, np.where(last.maybe, last.share, 0.0)).take(node) * people
    return Sums(np.add.reduceat(likely, begin), maybe, np.add.reduceat(last.sure.take(node) * people, begin))


class Asked(NamedTuple):
    """A conjunction of conditions on single columns, and the parts that may match it."""

    boxes: Nested
    truths: list[Truth]  # in the order of their columns
    part: Ints  # (parts,)
    surely: Bools  # (parts,) whether the stem matches for certain
    value: Floats  # (parts,) expected number of matching people
    maybe: Floats  # (parts,) the largest possible number
    sure: Floats  # (parts,) the least possible number

    @property
    def link(self) -> Ints:
        """The link of each part: (parts,)."""
        return self.boxes.link.take(self.part)

    def rests_on(self, some: Ints) -> tuple[str, ...]:
        """What the answer rests on in those of these parts that hold boxes neither surely in nor surely out."""
        told = sorted(range(len(self.truths)), key=self.boxes.order.__getitem__)  # as the release names them
        columns, truths = [self.boxes.columns[at] for at in told], [self.truths[at] for at in told]
        found, every = rests_on(columns, truths, self._doubted(some[:: 1 + len(some) // _FEW]))
        return found if every or len(some) <= _FEW else rests_on(columns, truths, self._doubted(some))[0]

    def _doubted(self, some: Ints) -> Ints:
        """The boxes of some parts that may satisfy everything, but not surely do."""
        part, last = self.part[some], self.truths[-1]
        size, box = runs_of(self.boxes.begin, part)
        node = self.boxes.columns[-1].codes.take(box)
        return box[last.maybe.take(node) & ~(np.repeat(self.surely[some], size) & last.sure.take(node))]


@dataclass(frozen=True, eq=False)
class Separate:
    """Boxes that are asked column by column; what is found is kept for the next question."""

    columns: tuple[BoxColumn, ...]
    link: Ints  # (boxes,)
    people: Floats  # (boxes,) or their mass
    _truths: dict[Any, Truth] = field(default_factory=dict, init=False, repr=False)
    _nests: dict[tuple[int, ...], Nested] = field(default_factory=dict, init=False, repr=False)

    def truth(self, at: int, parts: tuple[Condition, ...]) -> Truth:
        """Which share of each node of a column matches these conditions."""
        found = self._truths.get((at, parts))
        if found is None:
            found = truth_of(self.columns[at], parts)
            keep(self._truths, (at, parts), found, _TRUTHS)
        return found

    def ask(self, separate: Mapping[str, tuple[Condition, ...]]) -> Asked:
        """The parts that may match the conditions, given by column name; other columns are free."""
        chosen = tuple(at for at, column in enumerate(self.columns) if column.name in separate)
        boxes = self._nests.get(chosen)
        if boxes is None:
            boxes = Nested.of([self.columns[at] for at in chosen], self.link, self.people)
            keep(self._nests, chosen, boxes, _NESTS)
        asked = [separate[self.columns[chosen[at]].name] for at in boxes.order]
        truths = [self.truth(chosen[at], parts) for at, parts in zip(boxes.order, asked, strict=True)]
        part, share, surely = boxes.fitting(truths[:-1])
        value, maybe, sure = boxes.sums(truths[-1], asked[-1], part)
        if not maybe.all():  # nothing is to be known of stems whose boxes do not satisfy the rest
            there = np.flatnonzero(maybe)
            part, share, surely = part.take(there), share.take(there), surely.take(there)
            value, maybe, sure = value.take(there), maybe.take(there), sure.take(there)
        return Asked(boxes, truths, part, surely, share * value, maybe, surely * sure)
