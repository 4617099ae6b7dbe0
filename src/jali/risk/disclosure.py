"""Disclosure: the most that an attacker who knows k more facts can learn from a release (Martin et al. 2007).

`jali.disclosure` is this module. `maximum` and `curve` say how much, `witness` which knowledge that takes, `risk` what
a particular attacker learns; `chain` finds the lowest safe node of a chain, `Tracker` follows buckets that come and go.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import Literal, overload

from jali.principles.base import whole_number
from jali.principles.worst_case import by_negations, disclosed, least_ratios
from jali.principles.worst_case_exact import least_ratio
from jali.releases.base import Release, load
from jali.risk.buckets import What, counts_of
from jali.risk.chain import chain
from jali.risk.curve import Curve, several
from jali.risk.disclosure_kind import bound_kind
from jali.risk.knowledge import Atom, Facts, Implication, Person, read_knowledge, require_facts
from jali.risk.tracker import Tracker
from jali.risk.witness import Witness, witness
from jali.risk.worlds import Risk, risk
from jali.risk.worst_buckets import worst_buckets

__all__ = [
    "Atom",
    "Curve",
    "Implication",
    "Person",
    "Risk",
    "Tracker",
    "Witness",
    "chain",
    "curve",
    "maximum",
    "read_knowledge",
    "risk",
    "witness",
]


@overload
def maximum(
    what: What, k: int, *, knowledge: Facts = ..., exact: Literal[False] = ..., sensitive: str | None = ...
) -> float: ...
@overload
def maximum(
    what: What, k: int, *, knowledge: Facts = ..., exact: Literal[True], sensitive: str | None = ...
) -> Fraction: ...
def maximum(
    what: What, k: int, *, knowledge: Facts = "implications", exact: bool = False, sensitive: str | None = None
) -> float | Fraction:
    """The maximum disclosure: how sure an attacker who knows the worst k facts is of somebody's value (Definition 6).

    `what` is a release, the folder of one, counts, a matrix of them, rows of any length, or a pandas, Polars or Arrow
    table with a row for each bucket and a column for each value. The facts are implications between people's values, or
    only negations, "this person does not have that value". `exact` gives a fraction.

    >>> maximum([[2, 2, 1], [2, 1, 1, 1]], 1, exact=True)
    Fraction(2, 3)
    """
    k = whole_number("k", k, least=0)
    require_facts(knowledge)
    if not exact:
        return float(getattr(curve(what, [k], sensitive=sensitive), knowledge)[0])
    buckets, most, _ = worst_buckets(counts_of(what, sensitive), k, exact=True)
    if knowledge == "implications":
        return 1 / (1 + least_ratio(buckets, most))
    held, left = by_negations(buckets, most)
    return max(Fraction(h, n) for h, n in zip(held.tolist(), left.tolist(), strict=True))


def curve(what: What, ks: Iterable[int] = range(14), *, sensitive: str | None = None) -> Curve:
    """The maximum disclosure for several numbers of facts, by implications and by negations, in one pass.

    Its `kind` is "at most" for a release whose groups overlap, where it is an upper bound.

    >>> curve([[2, 2, 1], [2, 1, 1, 1]], range(3)).negations
    (0.4, 0.6666666666666666, 1.0)
    """
    asked = tuple(whole_number("k", k, least=0) for k in several(ks))
    if isinstance(what, (str, Path)):
        what = load(what)
    kind = (bound_kind(what) or "at most") if isinstance(what, Release) else "exact"
    buckets, most, _ = worst_buckets(counts_of(what, sensitive), max(asked))
    implied = disclosed(least_ratios(buckets, most))
    negated = [float((held / left).max()) for held, left in (by_negations(buckets, k) for k in range(most + 1))]
    by_implications, by_ruling_out = (tuple(float(v[min(k, most)]) for k in asked) for v in (implied, negated))
    return Curve(asked, by_implications, by_ruling_out, kind)
