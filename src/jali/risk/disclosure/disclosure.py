"""Disclosure: the most that an attacker who knows k more facts can learn from a release (Martin et al. 2007)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Literal, overload

from jali.encoding.table import Table
from jali.errors import InfeasibleError, InputError, listed
from jali.principles.base import principles_of, whole_number
from jali.principles.worst_case import by_negations, disclosed, least_ratio, least_ratios
from jali.publish.checks import failure, node_of, only_present, require_table, require_two
from jali.publish.generalize import generalize
from jali.releases.base import Release
from jali.releases.generalized import Generalized, Requirement
from jali.releases.load import load
from jali.risk.disclosure.buckets import What, counts_of, worst_buckets
from jali.risk.disclosure.curve import Curve, several
from jali.risk.disclosure.knowledge import Atom, Facts, Implication, Person, read_knowledge, require_facts
from jali.risk.disclosure.tracker import Tracker
from jali.risk.disclosure.witness import Witness, witness
from jali.risk.worlds.worlds import Risk, risk
from jali.search.lattice.lattice import Lattice

Levels = tuple[int, ...]


def chain(table: Table, principles: Requirement, chain: Iterable[Mapping[str, int]] | None = None) -> Generalized:
    """The release of the lowest node of a chain that keeps the principles, e.g. Safety: about log₂ nodes are judged.

    `chain` lists levels by column (a column that is not named is at level 0), each node nowhere finer than the one
    before. By default it leads from the table as it is to the table fully generalized, and at each step raises the
    column that is the least way up its hierarchy, the first of equal ones, so that all columns lose detail alike.
    """
    require_table("chain", table)
    required = principles_of(principles)
    require_two(table)
    present = only_present(table)
    lattice = Lattice(present, required, on_step=lambda done, total: None, largest=2**62)
    nodes = _even(lattice.top) if chain is None else _given(present, chain)
    if lattice.monotone:
        found = bisect_left(nodes, True, key=lattice.satisfied)
    else:
        found = next((i for i, node in enumerate(nodes) if lattice.satisfied(node)), len(nodes))
    if found == len(nodes):
        raise InfeasibleError(
            f"no node of the chain keeps the promises: at the last one, {failure(lattice, nodes[-1])}"
        )
    levels = {column.name: level for column, level in zip(present.quasi, nodes[found], strict=True)}
    release = generalize(table, required, levels=levels)
    release.search = {"nodes": len(nodes), "checked": lattice.checked}
    return release


def _even(top: Levels) -> list[Levels]:
    """From the bottom to the top, all columns rising alike."""
    nodes: list[Levels] = [tuple(0 for _ in top)]
    while nodes[-1] != top:
        node = nodes[-1]
        rising = min((i for i, most in enumerate(top) if node[i] < most), key=lambda i: ((node[i] + 1) / top[i], i))
        nodes.append((*node[:rising], node[rising] + 1, *node[rising + 1 :]))
    return nodes


def _given(table: Table, chain: Iterable[Mapping[str, int]]) -> list[Levels]:
    given = listed(chain)
    if not given or not all(isinstance(levels, Mapping) for levels in given):
        do = 'list levels by column, finest first, e.g. [{"age": 0}, {"age": 1}]'
        raise InputError("a chain is a list of nodes, at least one", do=do)
    nodes = [node_of(table, levels) for levels in given]
    for number, (low, high) in enumerate(pairwise(nodes), 2):
        if any(a > b for a, b in zip(low, high, strict=True)):
            raise InputError(f"node {number} of the chain is finer than the one before", do="list coarser nodes later")
    return nodes


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
    kind = (what.disclosure_bound or "at most") if isinstance(what, Release) else "exact"
    buckets, most, _ = worst_buckets(counts_of(what, sensitive), max(asked))
    implied = disclosed(least_ratios(buckets, most))
    negated = [float((held / left).max()) for held, left in (by_negations(buckets, k) for k in range(most + 1))]
    by_implications, by_ruling_out = (tuple(float(v[min(k, most)]) for k in asked) for v in (implied, negated))
    return Curve(asked, by_implications, by_ruling_out, kind)


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
