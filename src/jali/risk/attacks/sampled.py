"""Beliefs from a sample of worlds: random walks by exchanges of values that keep every recorded verdict."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from jali.core.arrays import Bools, Floats, Ints
from jali.kernels.jit import prepare
from jali.principles.base import Principle
from jali.principles.rules import Rules, rules_of
from jali.risk.attacks.known import Known
from jali.risk.attacks.replay import People
from jali.search.lattice.compiled import work_of_rules

if TYPE_CHECKING:
    from jali.kernels.judge import Desk, Work
    from jali.kernels.swaps import Ground, State

CHAINS = 4
ROUNDS = 2_000
"""So many rounds are made in each half of each walk, fewer where the time does not do."""
TRIED = 2
"""Rounds that are made before, to see how long one takes."""
FEWEST = 40
"""With fewer rounds in each half nothing is said of anybody."""
STANDARD_ERRORS = 5.0
"""How many standard errors the interval of a belief has on each side."""
CONVERGED = 1.1
"""The largest split R-hat of walks that are said to have converged."""


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
    whole = f.counts(np.zeros(f.combinations, dtype=np.int64), 1)
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
    own: list[list[int]] = [[] for _ in known.group]
    number = 0
    for clause in known.clauses:
        for part in clause:
            for slot in part.tolist():
                own[slot].append(number)
            number += 1
    keys = sorted({(int(known.group[slot]), tuple(own[slot])) for slot in slots.tolist()})
    place = {key: at for at, key in enumerate(keys)}
    atoms = np.full(len(known.group), -1, dtype=np.int64)
    atoms[slots] = [place[int(known.group[slot]), tuple(own[slot])] for slot in slots.tolist()]
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
    states = [
        State(value.copy(), n.copy(), fails.copy(), failing.copy(), np.zeros(1, dtype=np.int64)) for _ in range(CHAINS)
    ]
    return ground, states, work_of_rules(rules), [_desk(rules) for _ in range(CHAINS)]


def _desk(rules: Rules) -> Desk:
    """Counts of which every value may be seen."""
    from jali.kernels.judge import SEEN, Desk

    columns, values = rules.reference.shape
    counts = np.zeros((4, columns, values), dtype=np.int64)
    counts[SEEN] = np.arange(values)
    kinds = np.full(columns, values, dtype=np.int64)
    none = np.zeros((1, 1), dtype=np.int64)
    return Desk(counts, kinds, none, none, np.zeros(1, dtype=np.int64))
