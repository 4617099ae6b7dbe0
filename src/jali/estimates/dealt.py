"""How many people of a link can be dealt a sensitive value that fits what they show: one largest flow."""

from __future__ import annotations

import numpy as np

from jali.encoding.frequencies import combine
from jali.estimates.patterns import Bools, Ints
from jali.programs import largest_flow


def most_dealt(having: Ints, link: Ints, people: Ints, fits: Bools) -> Ints:
    """The most people of each link who can have a value that fits their box, over all ways to deal: (links,).

    Values are of some classes: `having[c, link]` people of the link have one of class c, (classes, links), and it fits
    the people of a box where `fits[c, box]`, (classes, boxes). Boxes of one link that fit the same classes are one. The
    values that flow from the classes to the boxes, no more than each has, are the people who can be served at once.
    """
    classes, links = having.shape
    number, first = combine([(link, links), *((row.astype(np.int8), 2) for row in fits)], len(link))
    demand = np.bincount(number, people, minlength=len(first)).astype(np.int64)
    kind, sink = np.nonzero(fits[:, first])
    source = kind * links + link[first][sink]
    flow = largest_flow(having.ravel(), demand, source, sink)
    return np.asarray(flow.reshape(classes, links).sum(axis=0), dtype=np.int64)
