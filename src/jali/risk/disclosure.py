"""Disclosure: the most that an attacker who knows k more facts can learn from a release (Martin et al. 2007).

`jali.disclosure` is this module. `maximum` and `curve` say how much, `witness` which knowledge that takes, `risk` what
a particular attacker learns; `chain` finds the lowest safe node of a chain, `Tracker` follows buckets that come and go.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import Literal, overload

import numpy as np

from jali.principles.base import whole_number
from jali.principles.counts import Cells, Ints
from jali.principles.worst_case import Buckets, by_negations, disclosed, least_ratios, of_cells, of_matrix
from jali.principles.worst_case_exact import least_ratio
from jali.releases.base import Release, load
from jali.risk.buckets import MOST, What, counts_of, require_people
from jali.risk.chain import chain
from jali.risk.curve import Curve, several
from jali.risk.disclosure_kind import bound_kind
from jali.risk.knowledge import Atom, Facts, Implication, Person, read_knowledge, require_facts
from jali.risk.tracker import Tracker
from jali.risk.witness import Witness, witness
from jali.risk.worlds import Risk, risk

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

MANY = 50_000
"""From so many rows of a matrix on, compiled code looks for the few that matter."""


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

    `what` is a release, the folder of one, counts, a matrix of them or rows of any length. The facts are implications
    between people's values, or only negations, "this person does not have that value". `exact` gives a fraction.

    >>> maximum([[2, 2, 1], [2, 1, 1, 1]], 1, exact=True)
    Fraction(2, 3)
    """
    k = whole_number("k", k, least=0)
    require_facts(knowledge)
    if not exact:
        return float(getattr(curve(what, [k], sensitive=sensitive), knowledge)[0])
    buckets, most = _worst_buckets(what, k, sensitive, exact=True)
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
    buckets, most = _worst_buckets(what, max(asked), sensitive)
    implied = disclosed(least_ratios(buckets, most))
    negated = [float((held / left).max()) for held, left in (by_negations(buckets, k) for k in range(most + 1))]
    by_implications, by_ruling_out = (tuple(float(v[min(k, most)]) for k in asked) for v in (implied, negated))
    return Curve(asked, by_implications, by_ruling_out, kind)


def _worst_buckets(what: What, k: int, sensitive: str | None, *, exact: bool = False) -> tuple[Buckets, int]:
    """Groups among which are those that matter for up to k facts, and up to which k these differ.

    Where a group has V values, V - 1 facts tell all: beyond the least of these numbers the disclosure stays 1.
    """
    found = counts_of(what, sensitive)
    if isinstance(found, Cells):
        most = min(k, int(np.bincount(found.group).min()) - 1)
        return of_cells(found, most + 1), most
    if len(found) >= MANY and not exact:
        return _of_many(found, k)
    most = min(k, _fewest(require_people(found)) - 1)
    return of_matrix(found, most + 1), most


def _of_many(matrix: Ints, k: int) -> tuple[Buckets, int]:
    """The same for very many rows, which are looked at once, also for whether they are counts of people."""
    from jali.search.disclosure import few_that_matter

    few = few_that_matter(matrix, max(min(k, _fewest(matrix[: MANY // 10]) - 1), 0))
    if few.lowest < 0 or few.highest > MOST or few.fewest == 0:
        require_people(matrix)  # says what is wrong
    most = min(k, few.fewest - 1)
    return of_matrix(matrix[few.groups], most + 1), most


def _fewest(matrix: Ints) -> int:
    """The least number of values that somebody has in a bucket."""
    return int(np.count_nonzero(matrix, axis=1).min())
