"""Boxes by what all of their columns but one show, so that what is asked of those is judged once for many boxes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from jali.encoding.frequencies import combine
from jali.estimates.conjunction import Truth, fitting_boxes
from jali.estimates.expand import BoxColumn, Fits
from jali.estimates.patterns import Floats, Ints, added


@dataclass(frozen=True, eq=False)
class Nested:
    """Boxes of some columns, those that show the same in one link made one; the boxes of one stem stand together.

    A stem is what every column shows but the last, which has the most nodes.
    """

    order: tuple[int, ...]  # the columns that were given, the last one last
    columns: tuple[BoxColumn, ...]  # in that order, of the boxes
    link: Ints  # (boxes,)
    people: Floats  # (boxes,) whole numbers
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
