"""Beliefs in a large table: what the verdicts of a search say of it, and a sample of worlds in which that is so.

Of some parts, which are sets of slots, at least one breaks a promise. That all parts of a cut hold says nothing more,
since they are unions of published groups. The sample is of random walks by exchanges of values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jali.core.arrays import Bools, Floats, Ints, counted
from jali.encoding.table import Table
from jali.kernels.jit import prepare
from jali.principles import DistinctDiversity, KAnonymity, Safety
from jali.principles.base import Principle, exact, least_people
from jali.principles.rules import Rules, rules_of
from jali.publish.checks import importance_of
from jali.releases.base import Release
from jali.releases.generalized import Generalized
from jali.risk.attacks.replay import People
from jali.search.gate import Trace, recorded
from jali.search.lattice.compiled import work_of_rules
from jali.search.lattice.costs import Costing
from jali.search.lattice.lattice import Lattice
from jali.search.lattice.tally import Levels, below
from jali.search.mondrian import mondrian
from jali.search.recode import recode_groups

if TYPE_CHECKING:
    from jali.kernels.judge import Desk, Work
    from jali.kernels.swaps import Ground, State


BY_COST = "what follows from comparisons of costs that read sensitive values"
OTHER_NODES = "what follows from other nodes of the lattice"
FACTS = "what follows from groups that were judged together"
JOINED = "whether small classes that were suppressed broke a promise or only joined the suppressed ones"
AT_MOST = "beliefs are at most these"
IN_GROUPS = f"that boxes overlap, so that it is not always known who is in which group, and {AT_MOST}"
IN_BATCHES = f"that it is not known who is in which batch, so that {AT_MOST}"
NODES = 2_000
"""The largest lattice whose nodes are all compared by cost."""
CHAINS = 4
ROUNDS = 2_000
"""The most rounds in each half of each walk; there are fewer where the time does not do."""
TRIED = 2
"""Rounds that are made before, to see how long one takes."""
FEWEST = 40
"""With fewer rounds in each half nothing is said of anybody."""
STANDARD_ERRORS = 5.0
"""How many standard errors the interval of a belief has on each side."""
CONVERGED = 1.1
"""The largest split R-hat of walks that are said to have converged."""


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
    known = makers[method["name"]](release, table, only)
    if isinstance(known, str):
        return known
    facts = (FACTS,) if any(isinstance(p, Safety) and p.k > 0 for p in release.principles) else ()
    return Known(known.group, known.clauses, (*known.least, *facts))


def _people(table: Table) -> Ints:
    """How many people have each combination: (combinations,)."""
    f = table.frequencies
    return counted(f.combination, f.people, f.combinations)


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
    size, roller = _people(table), lattice.roller
    finer, complete = _rejected(lattice, method, node)
    clauses = (_parts(roller.numbers(roller.bottom, one)[0], only, size, lattice.least) for one in finer)
    return Known(only, tuple(parts for parts in clauses if parts is not None), () if complete else (BY_COST,))


def _rejected(lattice: Lattice, method: Mapping[str, Any], node: Levels) -> tuple[list[Levels], bool]:
    """The coarsest nodes that must have failed, as they cost less; whether these are all that follows.

    A finer node never costs more, whatever the values are; by KL no other comparison is the same in every world.
    """
    metric: Any = method["metric"]
    children = [(*node[:i], n - 1, *node[i + 1 :]) for i, n in enumerate(node) if n > 0]
    if metric == "kl" or lattice.nodes > NODES:
        return children, False
    costing = Costing(lattice.table, importance=importance_of(lattice.table, method.get("importance")))
    own = (round(lattice.cost(costing, metric, node), 12), node)
    cheaper = [one for one in lattice.all_nodes() if (round(lattice.cost(costing, metric, one), 12), one) < own]
    return [one for one in cheaper if not any(other != one and below(one, other) for other in cheaper)], True


def _of_suppression(lattice: Lattice, node: Levels, only: Ints, hidden: Bools, *, ties: bool) -> Known:
    """A class that was suppressed though another one, which comes first, is shown, must have failed.

    Classes that fail are suppressed, then others join them, the smallest first, until they keep every promise as one
    group; so a class that comes after one that is shown did not join. `ties`: equal classes are in an unknown order.
    """
    number, classes = lattice.roller.numbers(lattice.roller.bottom, node)
    f = lattice.table.frequencies
    rows = counted(number[f.combination], f.rows, classes)
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
    """Whether this number of the suppressed people keep every promise as one group, whichever people they are."""
    counts = lattice.table.frequencies.counts(np.where(hidden, 0, 1).astype(np.int64), 2)
    for principle in lattice.principles:
        if isinstance(principle, KAnonymity) and people >= principle.k:
            continue
        if not isinstance(principle, DistinctDiversity):
            return False
        cells = principle.cells(counts)
        if cells.column.unknown is not None:  # some of them may have no value
            return False
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
    options["importance"] = importance_of(table, method.get("importance"))
    return _partitioned(table, release.principles, only, **options)


def _of_recoding(release: Release, table: Table, only: Ints) -> Known | str:
    method = release.manifest.method
    shows = set(method["show"].values())
    if method["peel"] != "size" or exact("suppress", method["suppress"]) > 0:
        return str(method["known_algorithm"])
    importance = importance_of(table, method.get("importance"))
    with recorded() as trace:
        recoded = recode_groups(
            table, release.principles, objective=method["objective"], importance=importance,
            show="taxonomy" if "taxonomy" in shows else "set",
        )  # fmt: skip
    if recoded.full_domain:
        return "what follows from a full-domain generalization having been better than local recoding"
    made = _from_trace(trace, recoded.group, recoded.group, release.principles, table)
    hidden = (IN_GROUPS,) if (only < 0).any() else ()
    return made if isinstance(made, str) else Known(made.group, made.clauses, (*made.least, *hidden))


def _of_batches(release: Any, table: Table, only: Ints) -> Known | str:
    """As if it were known who is in which batch."""
    if release.manifest.method["batches"] != "partition":
        return "what batches along a curve, or those of a plain generalization, give away in a large table"
    known = _partitioned(table, release.batch_principles)
    return known if isinstance(known, str) else Known(known.group, known.clauses, (*known.least, IN_BATCHES))


def _partitioned(
    table: Table, principles: tuple[Principle, ...], only: Ints | None = None, **options: Any
) -> Known | str:
    """What follows from cutting the table again; `only` is the group of each combination as it is published."""
    with recorded() as trace:
        group = mondrian(table, principles, **options).group
    assert group is not None  # strict
    return _from_trace(trace, group, group if only is None else only, principles, table)


def _from_trace(trace: Trace, group: Ints, only: Ints, principles: Iterable[Principle], table: Table) -> Known | str:
    """The cuts that failed; lattice nodes that local recoding looks at meanwhile are for its comparison by cost."""
    pairs = len(np.unique(group * (int(only.max()) + 2) + only))
    if (only < 0).any() or not pairs == int(group.max()) + 1 == int(only.max()) + 1:
        return "what follows where groups overlap or are shown alike, in a large table"
    f = table.frequencies
    least = least_people(principles, f.whole)
    size, clauses = _people(table), []
    for one in trace.verdicts:
        if one.held or one.of == "node":
            continue
        combination, first = np.unique(one.combination, return_index=True)
        part = one.part[first]
        people = np.bincount(part, size[combination])
        if (people >= least).all():
            clauses.append(tuple(combination[part == number] for number in range(len(people))))
    return Known(group, tuple(clauses), (BY_COST,) if trace.costs else ())


# -- walks among the worlds in which that is so ---------------------------------------------------------------------


class Sampled(NamedTuple):
    """Beliefs of the slots of some groups."""

    slots: Ints  # (some,) which slots
    chance: Floats  # (some, values)
    margin: Floats  # (some, values) half of the interval
    moved: Bools  # (some,) whether somebody of the slot ever had another value
    rhat: Floats  # (some,) the split R-hat of the most likely value
    rounds: int  # of each walk


def sample(
    people: People, known: Known, where: Bools, principles: tuple[Principle, ...], *, seed: int, until: float
) -> Sampled | None:  # fmt: skip
    """Walk among the worlds of the groups `where`, (slots,); None where a principle has no compiled form."""
    f = people.table.frequencies
    whole = f.whole
    compiled = rules_of(principles, whole)
    if compiled is None:
        return None
    from jali.kernels.swaps import judge_all, walk

    prepare(walk, "the walk among worlds")
    slots = np.flatnonzero(where)
    atoms = _atoms(known, slots)
    ground, states, work, desks = _laid_out(people, known, atoms, *compiled)
    for state, desk in zip(states, desks, strict=True):
        judge_all(ground, work, desk, state)
    size = np.diff(ground.first)
    walks = _Walks(ground, work, states, desks, (len(size), len(people.judged)), np.random.default_rng(seed))
    walks.run(1)  # compiled by now
    begin = monotonic()
    walks.run(TRIED)
    each = (monotonic() - begin) / TRIED
    length = int(min(ROUNDS, max(TRIED, 0.8 * (until - monotonic()) / (2.5 * max(each, 1e-9)))))
    walks.run(length // 2)  # forget where they began
    halves = [walks.run(length) for _ in range(2)]
    total, squares = (np.concatenate([half[which] for half in halves]) for which in (0, 1))
    return _estimated(size, slots, atoms[slots], (total, squares), length)


class _Walks(NamedTuple):
    """Several walks, each from the true world, each with random numbers of its own."""

    ground: Ground
    work: Work
    states: list[State]
    desks: list[Desk]
    shape: tuple[int, int]
    random: np.random.Generator

    def run(self, rounds: int) -> tuple[Ints, Ints]:
        """Some rounds of each: the sums of people by slot and value, and of their squares, (walks, slots, values)."""
        from jali.kernels.swaps import walk

        sums, squares = (np.zeros((CHAINS, *self.shape), dtype=np.int64) for _ in range(2))
        drawn = self.random.integers(0, 2**31, CHAINS).tolist()
        with ThreadPoolExecutor(CHAINS) as pool:
            asked = [
                pool.submit(walk, self.ground, self.work, desk, state, seed, rounds, sums[c], squares[c])
                for c, (state, desk, seed) in enumerate(zip(self.states, self.desks, drawn, strict=True))
            ]
            for one in asked:
                one.result()
        return sums, squares


def _atoms(known: Known, slots: Ints) -> Ints:
    """Slots of one group that are in the same parts are alike, and so one atom: that of each slot, -1 for others."""
    own: list[list[int]] = [[group] for group in known.group.tolist()]
    for number, part in enumerate(part for clause in known.clauses for part in clause):
        for slot in part.tolist():
            own[slot].append(number)
    keys = [tuple(own[slot]) for slot in slots.tolist()]
    place = {key: at for at, key in enumerate(sorted(set(keys)))}
    atoms = np.full(len(known.group), -1, dtype=np.int64)
    atoms[slots] = [place[key] for key in keys]
    return atoms


def _estimated(size: Ints, slots: Ints, atom: Ints, sums: tuple[Ints, Ints], length: int) -> Sampled:
    """Beliefs, their intervals and the split R-hat, from the halves of all walks: (halves, atoms, values) each."""
    total, squares = sums
    share = total / (length * size[None, :, None])
    within = np.maximum(squares / (length * size[None, :, None] ** 2) - share**2, 0).mean(axis=0)
    chance, between = share.mean(axis=0), share.var(axis=0, ddof=1)
    margin = STANDARD_ERRORS * np.sqrt(np.maximum(between, within / length) / len(share))
    with np.errstate(divide="ignore", invalid="ignore"):
        rhat = np.sqrt(((length - 1) / length * within + between) / within)
    rhat = np.where(within > 0, rhat, np.where(between > 0, np.inf, 1.0))
    rhat = rhat if length >= FEWEST else np.full_like(rhat, np.inf)
    top = np.argmax(chance, axis=1)[:, None]
    moved = (total > 0).any(axis=0).sum(axis=1) > 1
    highest = np.take_along_axis(rhat, top, 1)[:, 0]
    return Sampled(slots, chance[atom], margin[atom], moved[atom], highest[atom], 2 * length)


def _laid_out(
    people: People, known: Known, atoms: Ints, rules: Rules, judged: Ints
) -> tuple[Ground, list[State], Work, list[Desk]]:
    """The people of some atoms in their order, the parts that these are in, and the true world."""
    from jali.kernels.swaps import Ground, State

    atom = atoms[people.slot]
    order = np.argsort(atom, kind="stable")
    order = order[atom[order] >= 0]
    atom, group, value = atom[order], known.group[people.slot[order]], people.value[order]
    begin, end = (np.searchsorted(group, group, side=side) for side in ("left", "right"))
    first = np.searchsorted(atom, np.arange(int(atom[-1]) + 2))
    parts = [(number, np.unique(atoms[part])) for number, clause in enumerate(known.clauses) for part in clause]
    parts = [(number, own) for number, own in parts if own[0] >= 0]
    members, where = np.concatenate([own for _, own in parts]), np.cumsum([0, *(len(own) for _, own in parts)])
    part_of = np.repeat(np.arange(len(parts)), np.diff(where))
    by_atom = np.lexsort((part_of, members))
    held = np.zeros((len(first) - 1, len(people.judged)), dtype=np.int64)
    np.add.at(held, (atom, value), 1)
    column = judged[:, people.judged] if len(judged) else np.zeros((1, len(people.judged)), dtype=np.int64)
    n = np.zeros((len(parts), len(column), rules.reference.shape[1]), dtype=np.int64)
    row, v = np.nonzero(held[members])
    for c in range(len(column)):
        np.add.at(n[:, c], (part_of[row], column[c, v]), held[members[row], v])
    of = group[first[:-1]]
    one_group = [number for number, (_, own) in enumerate(parts) if len(np.unique(of[own])) == 1]
    clause = np.unique([number for number, _ in parts], return_inverse=True)[1].reshape(-1)
    ground = Ground(
        atom, begin, end, first, np.searchsorted(members[by_atom], np.arange(len(first))), part_of[by_atom], clause,
        np.add.reduceat(np.diff(first)[members], where[:-1]), column, members, where,
        np.array(one_group, dtype=np.int64),
    )  # fmt: skip
    fails, failing = np.zeros(len(parts), dtype=bool), np.zeros(int(clause.max()) + 1, dtype=np.int64)
    true = State(value, n, fails, failing, np.zeros(1, dtype=np.int64))
    return ground, [deepcopy(true) for _ in range(CHAINS)], work_of_rules(rules), [_desk(rules) for _ in range(CHAINS)]


def _desk(rules: Rules) -> Desk:
    """Counts of which every value may be seen."""
    from jali.kernels.judge import SEEN, Desk

    columns, values = rules.reference.shape
    counts = np.zeros((4, columns, values), dtype=np.int64)
    counts[SEEN] = np.arange(values)
    none = np.zeros((1, 1), dtype=np.int64)
    return Desk(counts, np.full(columns, values, dtype=np.int64), none, none, np.zeros(1, dtype=np.int64))
