"""Boxes by what all of their columns but one show, so that what is asked of those is judged once for many boxes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from jali.encoding.frequencies import combine
from jali.estimates.base import keep
from jali.estimates.condition import Condition
from jali.estimates.conjunction import Truth, fitting_boxes, rests_on, truth_of
from jali.estimates.expand import BoxColumn, Fits
from jali.estimates.patterns import Floats, Ints, added

_TRUTHS = 4096  # of columns, each a few numbers a node, that are kept for the next question
_NESTS = 32  # of boxes as some columns show them, kept too


@dataclass(frozen=True, eq=False)
class Nested:
    """Boxes of some columns, those that show the same in one link made one; the boxes of one stem stand together.

    A stem is what every column shows but the last, which has the most nodes.
    """

    order: tuple[int, ...]  # the columns that were given, the last one last
    columns: tuple[BoxColumn, ...]  # in that order, of the boxes
    link: Ints  # (boxes,)
    people: Floats  # (boxes,) or their mass
    stems: tuple[BoxColumn, ...]  # all columns but the last, of the stems
    start: Ints  # (stems + 1,) where the boxes of each begin

    @classmethod
    def of(cls, columns: Sequence[BoxColumn], link: Ints, people: Floats) -> Nested:
        """From columns, links and people of boxes."""
        order = sorted(range(len(columns)), key=lambda at: columns[at].cover.nodes)
        ordered = [columns[at] for at in order]
        stem, stem_first = combine([(c.codes, c.cover.nodes) for c in ordered[:-1]], len(link))
        links = int(link.max(initial=0)) + 1
        last = (ordered[-1].codes, ordered[-1].cover.nodes)
        number, first = combine([(stem, len(stem_first)), last, (link, links)], len(link))
        first = first[by_stem := np.argsort(stem[first], kind="stable")]
        start = np.searchsorted(stem[first], np.arange(len(stem_first) + 1))
        return cls(
            tuple(order),
            tuple(replace(c, codes=c.codes[first]) for c in ordered),
            link[first],
            added(number, people, len(by_stem))[by_stem],
            tuple(replace(c, codes=c.codes[stem_first]) for c in ordered[:-1]),
            start.astype(np.int64),
        )

    def fitting(self, truths: Sequence[Truth]) -> Fits:
        """The boxes that may satisfy what is asked of each column; the truths are in the order of the columns."""
        if not self.stems:
            return fitting_boxes(self.columns, truths)
        stem, share, surely = fitting_boxes(self.stems, truths[:-1])
        begin = self.start.take(stem)
        size = self.start.take(stem + 1) - begin
        box = np.repeat(begin - (np.cumsum(size) - size), size) + np.arange(size.sum())
        node, last = self.columns[-1].codes.take(box), truths[-1]
        which = np.repeat(np.arange(len(stem)), size)
        kept = np.flatnonzero(last.maybe.take(node))
        if len(kept) < len(box):
            box, node, which = box.take(kept), node.take(kept), which.take(kept)
        share, surely = share.take(which), surely.take(which)
        if not last.plain:
            share, surely = share * last.share.take(node), surely & last.sure.take(node)
        return Fits(box, share, surely)


class Asked(NamedTuple):
    """What was asked of single columns, and the boxes that fit."""

    boxes: Nested
    fits: Fits  # into these boxes
    truths: list[Truth]  # in the order of their columns

    def rests_on(self, box: Ints) -> tuple[str, ...]:
        """What the answer rests on in these boxes, which are neither surely in nor surely out."""
        told = np.argsort(self.boxes.order)  # columns in the order in which the release names them
        return rests_on([self.boxes.columns[at] for at in told], [self.truths[at] for at in told], box)


@dataclass(frozen=True, eq=False)
class Separate:
    """Boxes that are asked column by column; what is found is kept for the next question."""

    columns: tuple[BoxColumn, ...]
    link: Ints  # (boxes,)
    people: Floats  # (boxes,) or their mass
    _truths: dict[Any, Truth] = field(default_factory=dict, init=False, repr=False)
    _nests: dict[tuple[int, ...], Nested] = field(default_factory=dict, init=False, repr=False)

    def truth(self, at: int, parts: tuple[Condition, ...]) -> Truth:
        """What of a column satisfies what is asked of it."""
        found = self._truths.get((at, parts))
        if found is None:
            found = truth_of(self.columns[at], parts)
            keep(self._truths, (at, parts), found, _TRUTHS)
        return found

    def ask(self, separate: Mapping[str, tuple[Condition, ...]]) -> Asked:
        """The boxes that may satisfy all that is asked of their columns, by name; of other columns nothing is."""
        chosen = tuple(at for at, column in enumerate(self.columns) if column.name in separate)
        boxes = self._nests.get(chosen)
        if boxes is None:
            boxes = Nested.of([self.columns[at] for at in chosen], self.link, self.people)
            keep(self._nests, chosen, boxes, _NESTS)
        truths = [self.truth(chosen[at], separate[self.columns[chosen[at]].name]) for at in boxes.order]
        return Asked(boxes, boxes.fitting(truths), truths)
