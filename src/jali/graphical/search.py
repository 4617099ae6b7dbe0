"""The search for a collection: which are safe, what each costs, and the best (Kifer & Gehrke 2006, Section 6.2)."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from jali.core.progress import Step
from jali.errors import InfeasibleError, InputError
from jali.graphical.graph import Mask, Model, largest
from jali.graphical.marginal import Marginal
from jali.graphical.maxent import Divergence
from jali.graphical.privacy.privacy import Checker, Verdict

Collection = tuple[Mask, ...]
"""Marginals that do not contain each other, as sets of induced attributes."""


@dataclass(frozen=True, eq=False)
class Problem:
    """What a search is given: the table's marginals, the promises, and what the collection must contain."""

    divergence: Divergence
    checker: Checker
    base: Mask = 0  # a marginal that every collection has, or a finer one
    max_sensitive: int | None = None  # the largest number of marginals with a sensitive column
    deadline: float | None = None  # when to stop, by time.monotonic()
    on_step: Step = field(default=lambda done, total: None)
    _safe: dict[frozenset[Mask], bool] = field(default_factory=dict, init=False, repr=False)
    _cut: list[bool] = field(default_factory=list, init=False, repr=False)
    _best: list[tuple[float, Collection]] = field(default_factory=list, init=False, repr=False)

    def __post_init__(self) -> None:
        least = self.max_sensitive
        if least is not None and (isinstance(least, bool) or not isinstance(least, int) or least < 0):
            raise InputError("max_sensitive must be a whole number of at least 0", got=repr(least))

    @property
    def chains(self) -> tuple[int, ...]:
        """The length of each attribute's chain of induced attributes."""
        return tuple(attribute.depth for attribute in self.divergence.cache.domain.attributes)

    @property
    def checked(self) -> int:
        """How many collections were judged."""
        return len(self._safe)

    @property
    def late(self) -> bool:
        """Whether the time is over."""
        return self.deadline is not None and time.monotonic() >= self.deadline

    def until(self, parts: int) -> float:
        """When one of these equal parts of the time that is left is over, by time.monotonic()."""
        now = time.monotonic()
        return math.inf if self.deadline is None else now + (self.deadline - now) / parts

    @property
    def complete(self) -> bool:
        """Whether nothing was left out for want of time."""
        return not self.late and not self._cut

    def cut(self) -> None:
        """Remember that something was left out for want of time."""
        self._cut.append(True)

    def marginals(self, masks: Iterable[Mask]) -> tuple[Marginal, ...]:
        """The marginals of sets of induced attributes."""
        return tuple(self.divergence.cache.domain.of_mask(mask) for mask in masks)

    def kl(self, masks: Sequence[Mask]) -> float | None:
        """The divergence of a collection; None where it is not decomposable."""
        return self.divergence.kl(masks)

    def cost(self, masks: Sequence[Mask]) -> float:
        """The divergence of a collection; infinite where it is not decomposable."""
        kl = self.kl(masks or (0,))
        return math.inf if kl is None else kl

    def allowed(self, masks: Sequence[Mask]) -> bool:
        """Whether a collection has the base, and not too many marginals with sensitive columns."""
        if self.base and not any(mask & self.base == self.base for mask in masks):
            return False
        return self.max_sensitive is None or sum(bool(m & self.sensitive) for m in masks) <= self.max_sensitive

    @property
    def sensitive(self) -> Mask:
        """The induced attributes of sensitive columns."""
        domain = self.divergence.cache.domain
        return sum(1 << domain.offsets[i] for i in domain.sensitive)

    def safe(self, masks: Sequence[Mask]) -> bool:
        """Whether a collection keeps every promise."""
        key = frozenset(masks)
        safe = self._safe.get(key)
        if safe is None:
            safe = self._safe[key] = self.verdict(masks).holds
            if safe and self.allowed(masks):
                self._keep(tuple(masks))
        return safe

    def _keep(self, masks: Collection) -> None:
        """Remember the best of the safe collections: at any time a search can be stopped with it."""
        kl = self.cost(masks)
        if kl < (self._best[0][0] if self._best else math.inf):
            self._best[:] = [(kl, masks)]

    @property
    def best(self) -> Collection:
        """The best collection that was found safe so far; nothing where none was."""
        return self._best[0][1] if self._best else ()

    def verdict(self, masks: Sequence[Mask]) -> Verdict:
        """What the check says of a collection; with a deadline it has an eighth of the time that is left."""
        return self.checker.check(self.marginals(masks), deadline=self.until(8))

    def start(self) -> Collection:
        """What the search starts from: the base, which must be safe, or nothing."""
        if not self.base:
            return ()
        if not self.safe((self.base,)):
            raise InfeasibleError(f"the base release does not keep the promises: {self.verdict((self.base,)).reason}")
        return (self.base,)

    def candidates(self) -> tuple[Mask, ...]:
        """Every marginal that is safe by itself, from coarse to fine; as many as there was time for.

        Where all promises are monotone, a marginal is judged only if all that are one step coarser are safe. With a
        deadline this takes half of the time that is left, so that the other half is there to combine them.
        """
        until = self.until(2)
        prune = all(principle.monotone for principle in self.checker.principles)
        layer: list[Mask] = [0]
        found: dict[Mask, bool] = {0: True}
        while layer and time.monotonic() < until:
            further: dict[Mask, None] = {}
            for finer in (finer for mask in layer for finer in self._next(mask)[0] if finer not in found):
                if not prune or all(found.get(coarser, False) for coarser in self._next(finer)[1]):
                    further[finer] = None
            for done, mask in enumerate(further):
                allowed = self.max_sensitive != 0 or not mask & self.sensitive  # in some collection
                found[mask] = time.monotonic() < until and allowed and self.safe((mask,))
                self.on_step(done + 1, len(further))
            layer = [mask for mask in further if found[mask] or not prune]
        if time.monotonic() >= until:
            self.cut()
        return tuple(mask for mask, safe in found.items() if safe and mask)

    def _next(self, mask: Mask) -> tuple[list[Mask], list[Mask]]:
        """The marginals that are one step finer, and those that are one step coarser."""
        finer, coarser, offset = [], [], 0
        for length in self.chains:
            own = (mask >> offset & (1 << length) - 1).bit_count()
            if own < length:
                finer.append(mask | 1 << offset + own)
            if own:
                coarser.append(mask ^ 1 << offset + own - 1)
            offset += length
        return finer, coarser


def with_marginal(collection: Sequence[Mask], mask: Mask) -> Collection | None:
    """The collection with one marginal more, and without those that it contains; None where it says nothing new."""
    if any(mask & own == mask for own in collection):
        return None
    return (*(own for own in collection if own & mask != own), mask)


Search = Literal["greedy", "walk", "exhaustive"]
SEARCHES: tuple[Search, ...] = ("greedy", "walk", "exhaustive")
MOST_MODELS = 200_000
"""Models that an exhaustive search looks at; more are refused."""
WALK_STEPS = 3000
"""Steps of a random walk where no time is given."""
PATIENCE = 300
"""Steps without a better collection after which a walk starts again."""


@dataclass(frozen=True)
class Found:
    """The best collection that a search found."""

    marginals: tuple[Marginal, ...]
    kl: float  # nats, against the table
    verdict: Verdict
    checked: int  # collections that were judged
    complete: bool  # whether the search ended by itself, not because the time was over


def select(problem: Problem, search: Search = "greedy", *, seed: int | np.random.Generator = 0) -> Found:
    """The best collection that the search finds; InfeasibleError where not even one marginal is safe."""
    if search not in SEARCHES:
        raise InputError("no such search", got=repr(search), do=f"choose one of {', '.join(SEARCHES)}")
    best = walk(problem, seed) if search == "walk" else greedy(problem) if search == "greedy" else exhaustive(problem)
    if best or not problem.complete:
        best = _better(problem, best, problem.best)
    if not best and problem.complete:  # nothing lowers the divergence: where all is alike, no level tells more
        alone = [mask for mask in problem.candidates() if problem.allowed((mask,))]
        best = (max(alone, key=lambda mask: (mask.bit_count(), -mask)),) if alone else ()
    if not best and problem.late:
        raise InfeasibleError("the time was over before a safe marginal was found: allow more of it")
    if not best:
        raise InfeasibleError("no marginal keeps the promises, not even a single column at its coarsest level")
    return Found(problem.marginals(best), problem.cost(best), problem.verdict(best), problem.checked, problem.complete)


# -- greedy ------------------------------------------------------------------------------------------------------


def greedy(problem: Problem) -> Collection:
    """Add the marginal that lowers the divergence most and stays safe, as long as there is one; then exchange.

    Replacing a marginal by a finer one counts as adding it. A collection that cannot be added to is taken apart
    again: without each of its marginals in turn, and from each other safe marginal that is as fine as can be; whatever
    is better stays.
    """
    start = problem.start()
    candidates = problem.candidates()
    best = completed(problem, start, candidates)
    best = exchanged(problem, best, candidates)
    if not problem.base:
        for seed in largest(candidates):
            if problem.late:
                break
            if problem.allowed((seed,)):
                best = _better(problem, best, completed(problem, (seed,), candidates))
        best = exchanged(problem, best, candidates)
    return best


def completed(problem: Problem, start: Collection, candidates: Sequence[Mask], without: Mask = 0) -> Collection:
    """The collection that steepest descent reaches; a candidate that was not safe once is not tried again."""
    current, left = start, [mask for mask in candidates if mask != without]
    while not problem.late:
        options = []
        for mask in left:
            more = with_marginal(current, mask)
            if more is not None and problem.allowed(more):
                options.append((problem.cost(more), mask, more))
        bound = problem.cost(current)
        options = sorted(option for option in options if option[0] < bound - 1e-12)
        unsafe = set()
        for done, (_, mask, more) in enumerate(options):
            problem.on_step(len(candidates) - len(options) + done, len(candidates))
            if problem.late or problem.safe(more):
                current = current if problem.late else more
                break
            unsafe.add(mask)
        else:
            return current
        left = [mask for mask in left if mask not in unsafe]
    return current


def exchanged(problem: Problem, best: Collection, candidates: Sequence[Mask]) -> Collection:
    """The best collection that dropping a marginal and completing again leads to, until that brings nothing."""
    improved = True
    while improved and not problem.late:
        improved = False
        for mask in best:
            rest = tuple(own for own in best if own != mask)
            if not rest or math.isinf(problem.cost(rest)) or not problem.allowed(rest) or not problem.safe(rest):
                continue
            other = _better(problem, best, completed(problem, rest, candidates, without=mask))
            if other != best:
                best, improved = other, True
                break
    return best


def _better(problem: Problem, best: Collection, other: Collection) -> Collection:
    if not best or not other:
        return best or other
    return other if problem.cost(other) < problem.cost(best) - 1e-12 else best


# -- walk --------------------------------------------------------------------------------------------------------


def walk(problem: Problem, seed: int | np.random.Generator = 0, steps: int | None = None) -> Collection:
    """The best collection on a random walk over edges and nodes added and removed; it starts again when stuck.

    Steps that raise the divergence by d are taken with probability exp(−d / t), t falling with the steps since the
    last start. The walk ends after `steps` steps, or when the time is over; its best collection is then completed.
    """
    random = np.random.default_rng(seed)
    most = steps or (WALK_STEPS if problem.deadline is None else 1 << 62)
    start = problem.start()
    model, best = Model.of(problem.chains, start), start
    idle = 0
    for step in range(most):
        if problem.late:
            break
        problem.on_step(step, step + 1 if most == 1 << 62 else most)
        moves = list(model.moves())
        after = model.after(moves[random.integers(len(moves))])
        if _takes(problem, model, after, idle, random):
            model = after
            if _better(problem, best, model.cliques) != best:
                best, idle = model.cliques, 0
        idle += 1
        if idle > PATIENCE:
            model, idle = Model.of(problem.chains, start if random.random() < 0.5 else best), 0
    return completed(problem, best, problem.candidates())


def _takes(problem: Problem, model: Model, after: Model, idle: int, random: np.random.Generator) -> bool:
    """Whether the walk takes a step."""
    if not problem.allowed(after.cliques):
        return False
    before, now = problem.cost(model.cliques), problem.cost(after.cliques)
    if now > before and random.random() >= math.exp((before - now) / (0.2 * (1 - idle / (PATIENCE + 1)) + 1e-3)):
        return False
    return not after.cliques or problem.safe(after.cliques)


# -- exhaustive --------------------------------------------------------------------------------------------------


def exhaustive(problem: Problem) -> Collection:
    """The best of all safe decomposable collections: every model whose cliques are all safe by themselves."""
    start, candidates = problem.start(), problem.candidates()
    seen = _models(problem, candidates)
    if not problem.complete:  # what steepest descent reaches is at hand before the best of all is looked for
        completed(problem, problem.best, candidates)
    for key in sorted(seen, key=lambda one: (seen[one], sorted(one))):
        masks = tuple(sorted(key))
        if problem.late:
            break
        if problem.allowed(masks) and problem.safe(masks):
            return masks
    return start


def _models(problem: Problem, candidates: Sequence[Mask]) -> dict[frozenset[Mask], float]:
    """Every collection that adding nodes and edges leads to, and its divergence.

    With a deadline as many as half of the time that is left allows, so that the other half is there to judge them.
    """
    until = problem.until(2)
    alone = set(candidates)
    seen: dict[frozenset[Mask], float] = {}
    waiting = [Model.of(problem.chains, ())]
    while waiting:
        if time.monotonic() >= until or (problem.deadline is not None and len(seen) > MOST_MODELS):
            problem.cut()
            break
        model = waiting.pop()
        for move in model.moves():
            after = model.after(move)
            key = frozenset(after.cliques)
            if move.kind == "remove" or key in seen or not key <= alone:
                continue
            seen[key] = problem.cost(after.cliques)
            waiting.append(after)
        problem.on_step(min(len(seen), MOST_MODELS), MOST_MODELS)
        if len(seen) > MOST_MODELS:
            do = 'use search="greedy", or fewer columns or levels'
            raise InputError(f"an exhaustive search looks at {MOST_MODELS:,} collections at most", do=do)
    return seen
