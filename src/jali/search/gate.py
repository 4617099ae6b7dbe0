"""The gate: sensitive values reach a search as verdicts of principles, which can be recorded while it runs.

What somebody who knows the algorithm can conclude follows from the published tables, the quasi-identifiers, these
verdicts, and comparisons of costs that read sensitive values. A record stays in memory and is never saved. Nothing is
recorded unless somebody asks for it, so that a search is as fast as ever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np

from jali.core.arrays import Bools, Ints
from jali.principles.base import Principle, hold
from jali.principles.counts import Counts

Parts = Callable[[], "tuple[Ints, Ints]"]
"""The combinations that are judged, and the part that each of them is in; made only where somebody records them."""


Judged = Literal["node", "cut"]
"""A node of the lattice, or the parts of a group that might be cut."""


class Verdict(NamedTuple):
    """Parts that were judged together; the search goes on because all of them hold, or because not all do."""

    of: Judged
    combination: Ints  # (members,)
    part: Ints  # (members,)
    held: bool


@dataclass
class Trace:
    """What a search asked the gate, in its order."""

    verdicts: list[Verdict] = field(default_factory=list)
    costs: list[str] = field(default_factory=list)  # what was compared by a cost that reads sensitive values


_TRACE: ContextVar[Trace | None] = ContextVar("trace", default=None)


@contextmanager
def recorded() -> Iterator[Trace]:
    """Record what searches ask the gate meanwhile; they run without compiled kernels, which keep no record."""
    trace = Trace()
    token = _TRACE.set(trace)
    try:
        yield trace
    finally:
        _TRACE.reset(token)


def recording() -> bool:
    """Whether somebody records."""
    return _TRACE.get() is not None


def judged(principles: Iterable[Principle], counts: Counts) -> Bools:
    """Whether each group keeps every promise: (groups,)."""
    return hold(principles, counts)


def judged_alone(principles: Iterable[Principle], counts: Counts) -> Bools:
    """Whether each group keeps every promise as if it were the whole table: (groups,)."""
    verdict = np.ones(counts.groups, dtype=bool)
    for principle in principles:
        verdict &= principle.alone(counts)
    return verdict


def note(of: Judged, parts: Parts, held: bool) -> None:
    """Record that all of these parts hold, or that not all do, where somebody records."""
    trace = _TRACE.get()
    if trace is not None:
        combination, part = parts()
        trace.verdicts.append(Verdict(of, combination, part, held))


def compare(what: str) -> None:
    """Record that a cost that reads sensitive values chose among several results, where somebody records."""
    trace = _TRACE.get()
    if trace is not None:
        trace.costs.append(what)
