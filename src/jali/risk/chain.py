"""The lowest safe node of one chain of the lattice, found by bisection (Section 3.4 of Martin et al. 2007)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from itertools import pairwise

from jali.encoding.table import Table
from jali.errors import InfeasibleError, InputError, listed
from jali.principles.base import principles_of
from jali.releases.asked import failure, node_of, require_table, require_two
from jali.releases.generalized import Generalized, Requirement, generalize
from jali.releases.present import only_present
from jali.search.lattice import Lattice

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
        raise InfeasibleError(f"no node of the chain will do: at the last one, {failure(lattice, nodes[-1])}")
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
