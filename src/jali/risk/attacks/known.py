"""What the verdicts of a search say of a large table: of some parts at least one breaks a promise.

A part is a set of slots. That all parts of a cut hold says nothing more, since they are unions of published groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from jali.core.arrays import Bools, Ints
from jali.encoding.table import Table
from jali.principles import DistinctDiversity, KAnonymity, Safety
from jali.principles.base import Principle, exact
from jali.releases.base import Release
from jali.releases.generalized import Generalized
from jali.search.gate import Trace, recorded
from jali.search.lattice.costs import Costing
from jali.search.lattice.lattice import Lattice, below
from jali.search.lattice.tally import Levels
from jali.search.mondrian.mondrian import mondrian
from jali.search.recode.recode import recode_groups

BY_COST = "what follows from comparisons of costs that read sensitive values"
OTHER_NODES = "what follows from other nodes of the lattice"
FACTS = "what follows from groups that were judged together"
JOINED = "whether small classes that were suppressed broke a promise or only joined the suppressed ones"
AT_MOST = "beliefs are at most these"
IN_GROUPS = f"that boxes overlap, so that it is not always known who is in which group, and {AT_MOST}"
IN_BATCHES = f"that it is not known who is in which batch, so that {AT_MOST}"
NODES = 2_000
"""The largest lattice whose nodes are all compared by cost."""


@dataclass(frozen=True, eq=False)
class Known:
    """Groups in which every order of the values is possible, but for the clauses."""

    group: Ints  # (slots,)
    clauses: tuple[tuple[Ints, ...], ...]  # in each, parts of which at least one breaks a promise
    least: tuple[str, ...] = ()  # what was left out


def known_of(release: Release, table: Table, only: Ints) -> Known | str:
    """What somebody who knows the algorithm concludes; or in words why that is not computed. Slots are combinations."""
    method = release.manifest.method
    makers: Mapping[Any, Callable[[Any, Table, Ints], Known | str]] = {
        "generalize": _of_lattice, "repair": _of_lattice, "partition": _of_cuts, "anatomize": _of_cuts,
        "recode": _of_recoding, "angelize": _of_batches,
    }  # fmt: skip
    found = makers[method["name"]](release, table, only)
    if isinstance(found, str):
        return found
    facts = (FACTS,) if any(isinstance(p, Safety) and p.k > 0 for p in release.principles) else ()
    return Known(found.group, found.clauses, (*found.least, *facts))


def _least(principles: Iterable[Principle]) -> int:
    return max(principle.least_size() for principle in principles)


def _parts(number: Ints, group: Ints, size: Ints, least: int) -> tuple[Ints, ...] | None:
    """The parts that can fail: those that are less than a group; None where one is too small, whatever its values."""
    order = np.argsort(number, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(number[order])) + 1)
    people, whole = np.bincount(number, size), np.bincount(group, size)
    if (people[people > 0] < least).any():
        return None
    return tuple(part for part in parts if people[number[part[0]]] < whole[group[part[0]]])


# -- the lattice --------------------------------------------------------------------------------------------------


def _of_lattice(release: Generalized, table: Table, only: Ints) -> Known | str:
    principles, method = release.principles, release.manifest.method
    lattice = Lattice(table, principles, on_step=lambda done, total: None)
    node = tuple(release.levels[column.name] for column in table.quasi)
    hidden = np.zeros(int(only.max()) + 1, dtype=bool)
    hidden[release.hidden_groups] = True
    if method["name"] == "repair" or exact("suppress", method["suppress"]) > 0:
        return _of_suppression(lattice, node, only, hidden[only], ties=method["name"] == "repair")
    if not lattice.monotone:
        return "what follows from finer releases, where a promise can break when groups are merged"
    f = table.frequencies
    size = np.bincount(f.combination, f.people, minlength=f.combinations).astype(np.int64)
    clauses = []
    finer, complete = _rejected(lattice, method["metric"], node)
    for one in finer:
        parts = _parts(lattice.roller.numbers(lattice.roller.bottom, one)[0], only, size, lattice.least)
        if parts is not None:
            clauses.append(parts)
    return Known(only, tuple(clauses), () if complete else (BY_COST,))


def _rejected(lattice: Lattice, metric: Any, node: Levels) -> tuple[list[Levels], bool]:
    """The coarsest nodes that must have failed, as they cost less; whether these are all that follows.

    A finer node never costs more, whatever the values are; by KL no other comparison is the same in every world.
    """
    children = [(*node[:i], n - 1, *node[i + 1 :]) for i, n in enumerate(node) if n > 0]
    if metric == "kl" or lattice.nodes > NODES:
        return children, False
    costing = Costing(lattice.table)
    own = (round(lattice.cost(costing, metric, node), 12), node)
    cheaper = [one for one in lattice.all_nodes() if (round(lattice.cost(costing, metric, one), 12), one) < own]
    return [one for one in cheaper if not any(other != one and below(one, other) for other in cheaper)], True


def _of_suppression(lattice: Lattice, node: Levels, only: Ints, hidden: Bools, *, ties: bool) -> Known:
    """A class that was suppressed though another one, which comes first, is shown, must have failed.

    Classes that fail are suppressed, then others join them, the smallest first, until they keep every promise as one
    group; so whoever comes after a class that is shown did not join. `ties`: equal classes are in an unknown order.
    """
    number, classes = lattice.roller.numbers(lattice.roller.bottom, node)
    f = lattice.table.frequencies
    rows = np.bincount(number[f.combination], f.rows, minlength=classes).astype(np.int64)
    gone = np.zeros(classes, dtype=bool)
    gone[number[hidden]] = True
    if not gone.any():
        return Known(only, (), (OTHER_NODES,))
    place = np.empty(classes, dtype=np.int64)
    place[np.lexsort((np.arange(classes), rows))] = np.arange(classes)
    first = int(place[~gone].min()) if (~gone).any() else classes
    after = gone & (rows > rows[~gone].min(initial=2**62) if ties else place > first)
    may_join = gone & ~after & (rows >= lattice.least)
    without = int(rows[gone & ~may_join].sum())
    enough = _surely_hold(lattice, hidden, without)
    failed = np.flatnonzero((after | may_join if enough else after) & (rows >= lattice.least))
    clauses = tuple((np.flatnonzero(number == one),) for one in failed)
    left_out = (JOINED,) if may_join.any() and not enough else ()
    return Known(only, clauses, (OTHER_NODES, *left_out))


def _surely_hold(lattice: Lattice, hidden: Bools, people: int) -> bool:
    """Whether any so many of the suppressed people keep every promise as one group, whoever they are."""
    counts = lattice.table.frequencies.counts(np.where(hidden, 0, 1).astype(np.int64), 2)
    for principle in lattice.principles:
        if isinstance(principle, KAnonymity) and people >= principle.k:
            continue
        if not isinstance(principle, DistinctDiversity):
            return False
        cells = principle.cells(counts)
        n = np.sort(cells.n[cells.group == 0])[::-1]
        if int(n[: principle.l - 1].sum()) >= people:
            return False
    return True


# -- cuts ---------------------------------------------------------------------------------------------------------


def _of_cuts(release: Release, table: Table, only: Ints) -> Known | str:
    method = release.manifest.method
    if method["mode"] != "strict" or exact("suppress", method.get("suppress", 0)) > 0:
        return "what follows from groups of records that were divided, or from who was suppressed"
    options: Any = {name: method[name] for name in ("split", "similarity") if name in method}
    with recorded() as trace:
        boxes = mondrian(table, release.principles, **options)
    assert boxes.group is not None  # strict
    return _from_trace(trace, boxes.group, only, release.principles, table)


def _of_recoding(release: Release, table: Table, only: Ints) -> Known | str:
    method = release.manifest.method
    shows = set(method["show"].values())
    if method["peel"] != "size" or exact("suppress", method["suppress"]) > 0:
        return str(method["known_algorithm"])
    with recorded() as trace:
        found = recode_groups(
            table, release.principles, objective=method["objective"], show="taxonomy" if "taxonomy" in shows else "set"
        )
    if found.full_domain:
        return "what follows from a full-domain generalization having been better than local recoding"
    made = _from_trace(trace, found.group, found.group, release.principles, table)
    hidden = (IN_GROUPS,) if (only < 0).any() else ()
    return made if isinstance(made, str) else Known(made.group, made.clauses, (*made.least, *hidden))


def _of_batches(release: Any, table: Table, only: Ints) -> Known | str:
    """As if it were known who is in which batch."""
    if release.manifest.method["batches"] != "partition":
        return "what batches along a curve, or those of a plain generalization, give away in a large table"
    with recorded() as trace:
        boxes = mondrian(table, release.batch_principles)
    assert boxes.group is not None  # strict
    found = _from_trace(trace, boxes.group, boxes.group, release.batch_principles, table)
    return found if isinstance(found, str) else Known(found.group, found.clauses, (*found.least, IN_BATCHES))


def _from_trace(
    trace: Trace, group: Ints, only: Ints, principles: tuple[Principle, ...], table: Table
) -> Known | str:  # fmt: skip
    """The cuts that failed; lattice nodes that local recoding looks at meanwhile are for its comparison by cost."""
    pairs = len(np.unique(group * (int(only.max()) + 2) + only))
    if (only < 0).any() or not pairs == int(group.max()) + 1 == int(only.max()) + 1:
        return "what follows where groups overlap or are shown alike, in a large table"
    f = table.frequencies
    size = np.bincount(f.combination, f.people, minlength=f.combinations).astype(np.int64)
    least, clauses = _least(principles), []
    for one in trace.verdicts:
        if one.held or one.of == "node":
            continue
        combination, first = np.unique(one.combination, return_index=True)
        part = one.part[first]
        people = np.bincount(part, size[combination])
        if (people >= least).all():
            clauses.append(tuple(combination[part == number] for number in range(len(people))))
    return Known(group, tuple(clauses), (BY_COST,) if trace.costs else ())
