"""Disclosure: the most that an attacker who knows k more facts can learn from a release (Martin et al. 2007).

`jali.disclosure` is this module. `maximum` and `curve` say how much, `witness` which knowledge that takes, `risk` what
a particular attacker learns; `chain` finds the lowest safe node of a chain, `Tracker` follows buckets that come and go.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, get_args, overload

import numpy as np

from jali.errors import InputError, nearest
from jali.principles.base import whole_number
from jali.principles.counts import Cells, Counts, Ints
from jali.principles.safety import require_single
from jali.principles.worst_case import Buckets, by_negations, disclosed, least_ratios, of_cells, of_matrix
from jali.principles.worst_case_exact import least_ratio
from jali.releases.base import Release, load
from jali.risk.buckets import What, _checked
from jali.risk.chain import chain
from jali.risk.curve import Curve
from jali.risk.knowledge import Atom, Implication, Person, read_knowledge
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

Knowledge = Literal["implications", "negations"]

MANY = 50_000
"""From so many rows of a matrix on, compiled code looks for the few that matter."""


@overload
def maximum(
    what: What, k: int, *, knowledge: Knowledge = ..., exact: Literal[False] = ..., sensitive: str | None = ...
) -> float: ...
@overload
def maximum(
    what: What, k: int, *, knowledge: Knowledge = ..., exact: Literal[True], sensitive: str | None = ...
) -> Fraction: ...
def maximum(
    what: What, k: int, *, knowledge: Knowledge = "implications", exact: bool = False, sensitive: str | None = None
) -> float | Fraction:
    """The maximum disclosure: how sure an attacker who knows the worst k facts is of somebody's value (Definition 6).

    `what` is a release, the folder of one, counts, a matrix of them or rows of any length. The facts are implications
    between people's values, or only negations, "this person does not have that value". `exact` gives a fraction.

    >>> maximum([[2, 2, 1], [2, 1, 1, 1]], 1, exact=True)
    Fraction(2, 3)
    """
    k = whole_number("k", k, least=0)
    if knowledge not in get_args(Knowledge):
        raise InputError(f'no knowledge "{knowledge}"', do=nearest(str(knowledge), get_args(Knowledge)))
    if not exact:
        return float(getattr(curve(what, [k], sensitive=sensitive), knowledge)[0])
    buckets, most = _worst_buckets(what, k, sensitive, exact=True)
    if knowledge == "implications":
        return 1 / (1 + least_ratio(buckets, most))
    held, left = by_negations(buckets, most)
    return max(Fraction(h, n) for h, n in zip(held.tolist(), left.tolist(), strict=True))


def curve(what: What, ks: Iterable[int] = range(14), *, sensitive: str | None = None) -> Curve:
    """The maximum disclosure for several numbers of facts, by implications and by negations, in one pass.

    >>> curve([[2, 2, 1], [2, 1, 1, 1]], range(3)).negations
    (0.4, 0.6666666666666666, 1.0)
    """
    asked = tuple(whole_number("k", k, least=0) for k in ks)
    if not asked:
        raise InputError("no k was given", do="write e.g. range(14)")
    buckets, most = _worst_buckets(what, max(asked), sensitive)
    implied = disclosed(least_ratios(buckets, most))
    negated = [float((held / left).max()) for held, left in (by_negations(buckets, k) for k in range(most + 1))]
    return Curve(asked, *(tuple(float(v[min(k, most)]) for k in asked) for v in (implied, negated)))


def _worst_buckets(what: Any, k: int, sensitive: str | None, *, exact: bool = False) -> tuple[Buckets, int]:
    """Groups among which are those that matter for up to k facts, and up to which k these differ.

    Where a group has V values, V - 1 facts tell all: beyond the least of these numbers the disclosure stays 1.
    """
    if isinstance(what, (str, Path)):
        what = load(what)
    counts = what.counts() if isinstance(what, Release) else what
    if isinstance(counts, Counts):
        cells = _cells(counts, sensitive)
        most = min(k, int(np.bincount(cells.group).min()) - 1)
        return of_cells(cells, most + 1), most
    if sensitive is not None:
        raise InputError("plain counts have no sensitive column to choose", do="leave sensitive= out")
    matrix = _matrix(counts)
    fewest = min(int(np.count_nonzero(matrix[i : i + MANY], axis=1).min()) for i in range(0, len(matrix), MANY))
    most = min(k, fewest - 1)
    if len(matrix) >= MANY and not exact:
        from jali.search.disclosure import few_that_matter

        matrix = matrix[few_that_matter(matrix, most)]
    return of_matrix(matrix, most + 1), most


def _cells(counts: Counts, sensitive: str | None) -> Cells:
    require_single(counts, "disclosure")
    cells = counts.cells(sensitive, asked_by="disclosure")
    if not cells.groups or not bool((cells.size > 0).all()):
        raise InputError("a bucket is empty", do="leave empty buckets out")
    return cells


def _matrix(rows: Any) -> Ints:
    """Counts as a matrix, rows of different lengths filled up with zeros: (buckets, values)."""
    if isinstance(rows, np.ndarray):
        return _checked(rows)
    try:
        lengths = [len(row) for row in rows]
        matrix = np.array([[*row, *[0] * (max(lengths) - len(row))] for row in rows])
    except (TypeError, ValueError):
        do = "pass a release, its folder, or rows of counts: [[2, 2, 1], [2, 1, 1, 1]]"
        raise InputError("no buckets", got=type(rows).__name__, do=do) from None
    return _checked(matrix)
