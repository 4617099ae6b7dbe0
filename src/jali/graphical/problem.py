"""A search problem: which collections of marginals are safe, and what each costs; every answer is found once."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from jali.errors import InfeasibleError, InputError
from jali.graphical.graph import Mask
from jali.graphical.marginal import Marginal
from jali.graphical.maxent import Divergence
from jali.graphical.privacy import Checker, Verdict
from jali.progress import Step

Collection = tuple[Mask, ...]
"""Marginals that do not contain each other, as sets of induced attributes."""


@dataclass(frozen=True, eq=False)
class Problem:
    """What a search is given: the table's marginals, the promises, and what the collection must contain."""

    divergence: Divergence
    checker: Checker
    base: Mask = 0  # a marginal that every collection has, or a finer one
    max_sensitive: int | None = None  # so many marginals with a sensitive column at most
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

    @property
    def halfway(self) -> float:
        """When half of the time that is left is over, by time.monotonic()."""
        now = time.monotonic()
        return math.inf if self.deadline is None else now + (self.deadline - now) / 2

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
        found = self._safe.get(key)
        if found is None:
            found = self._safe[key] = self.verdict(masks).holds
            if found and self.allowed(masks):
                self._keep(tuple(masks))
        return found

    def _keep(self, masks: Collection) -> None:
        """Remember the best of the safe collections: at any time a search can be stopped with it."""
        kl = self.kl(masks)
        if kl is not None and (not self._best or kl < self._best[0][0]):
            self._best[:] = [(kl, masks)]

    @property
    def best(self) -> Collection:
        """The best collection that was found safe so far; nothing where none was."""
        return self._best[0][1] if self._best else ()

    def verdict(self, masks: Sequence[Mask]) -> Verdict:
        """What the check says of a collection."""
        return self.checker.check(self.marginals(masks), deadline=self._patience)

    @property
    def _patience(self) -> float:
        """When to give one collection up: with a deadline, after an eighth of the time that is left."""
        now = time.monotonic()
        return math.inf if self.deadline is None else now + (self.deadline - now) / 8

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
        until = self.halfway
        prune = all(principle.monotone for principle in self.checker.principles)
        layer: list[Mask] = [0]
        found: dict[Mask, bool] = {0: True}
        while layer and time.monotonic() < until:
            further: dict[Mask, None] = {}
            for finer in (finer for mask in layer for finer in self._finer(mask) if finer not in found):
                if not prune or all(found.get(coarser, False) for coarser in self._coarser(finer)):
                    further[finer] = None
            for done, mask in enumerate(further):
                found[mask] = time.monotonic() < until and self.allowed_alone(mask) and self.safe((mask,))
                self.on_step(done + 1, len(further))
            layer = [mask for mask in further if found[mask] or not prune]
        if time.monotonic() >= until:
            self.cut()
        return tuple(mask for mask, safe in found.items() if safe and mask)

    def allowed_alone(self, mask: Mask) -> bool:
        """Whether a collection with this marginal may be allowed at all."""
        return self.max_sensitive != 0 or not mask & self.sensitive

    def _finer(self, mask: Mask) -> Iterable[Mask]:
        offset = 0
        for length in self.chains:
            own = (mask >> offset & (1 << length) - 1).bit_count()
            if own < length:
                yield mask | 1 << offset + own
            offset += length

    def _coarser(self, mask: Mask) -> Iterable[Mask]:
        offset = 0
        for length in self.chains:
            own = (mask >> offset & (1 << length) - 1).bit_count()
            if own:
                yield mask ^ 1 << offset + own - 1
            offset += length


def with_marginal(collection: Sequence[Mask], mask: Mask) -> Collection | None:
    """The collection with one marginal more, and without those that it contains; None where it says nothing new."""
    if any(mask & own == mask for own in collection):
        return None
    return (*(own for own in collection if own & mask != own), mask)
