"""Whether a requirement can be met at all: asked before any search."""

from __future__ import annotations

from collections.abc import Iterable

from jali.errors import InfeasibleError, InputError
from jali.principles.base import Principle
from jali.principles.counts import Counts


def require_feasible(principles: Iterable[Principle], whole: Counts) -> None:
    """Raise InputError when a principle makes no sense for the table, InfeasibleError when even the whole fails."""
    required = tuple(principles)
    for principle in required:
        principle.check(whole)
    if whole.person is not None and not any(p.counts_people for p in required):
        raise InputError(
            "people can have several rows, so the values of one person alone could pass for diversity",
            do="add KAnonymity(k), which counts people",
        )
    failing = [p for p in required if not bool(p.holds(whole).all())]
    if failing:
        raise InfeasibleError("; ".join(p.shortfall(whole) for p in failing))
