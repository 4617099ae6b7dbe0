"""Whether a requirement can be met at all: asked before any search."""

from __future__ import annotations

from collections.abc import Iterable

from jali.encoding.frequencies import Frequencies
from jali.errors import InfeasibleError
from jali.principles.base import Principle
from jali.principles.counts import Counts


def require_feasible(principles: Iterable[Principle], whole: Counts, of: Frequencies | None = None) -> None:
    """Raise InputError when a principle makes no sense for the table, InfeasibleError when no grouping can keep it.

    That the whole table fails as one group is a proof of it only where merging groups never breaks the principle; `of`
    are the frequencies of a table in which a person can have several rows, which tell.
    """
    required = tuple(principles)
    for principle in required:
        principle.check(whole)
    failing = [p for p in required if not bool(p.holds(whole).all())]
    proofs = [p for p in failing if of is None or merging_never_breaks(p, of)]
    if proofs:
        raise InfeasibleError("; ".join(p.shortfall(whole) for p in proofs))


def merging_never_breaks(principle: Principle, frequencies: Frequencies) -> bool:
    """Whether groups of this table that keep the principle always keep it as one group.

    Where somebody's rows are in several groups, people do not add up; where somebody has several values, the worst
    choice among them is not the sum of the groups' worst choices. Decision 21 has the proofs and the counterexamples.
    """
    if not principle.monotone or frequencies.person is None:
        return principle.monotone
    spread, several = frequencies.spread_people, frequencies.several_values
    if spread and several:
        return principle.judges_size_alone
    one_group, one_value = not spread, not several
    return (one_group or principle.monotone_for_spread_people) and (one_value or principle.monotone_for_several_values)
