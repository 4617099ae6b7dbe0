"""A particular attacker: the chance that somebody has a value, given a release and what the attacker knows."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from jali.core.programs import beta_quantile
from jali.errors import InfeasibleError, InputError, listed, told
from jali.estimates.base import generator
from jali.principles.base import exact
from jali.risk.disclosure.buckets import Buckets, What, buckets_of
from jali.risk.disclosure.count import FEASIBLE, Budget, Clause, Fact, TooManyError, chance, clauses_of, components
from jali.risk.disclosure.knowledge import Atom, Implication, Person

AT_ONCE = 1 << 20
"""How many numbers a batch of worlds may hold."""


@dataclass(frozen=True)
class Sampled:
    """How many of the drawn worlds satisfied the clauses, and each fact in them."""

    worlds: int
    kept: int
    hits: tuple[int, ...]  # (facts,)


def sample(
    buckets: Buckets, clauses: Sequence[Clause], facts: Sequence[Fact], worlds: int, random: np.random.Generator
) -> Sampled:
    """Draw worlds of the buckets that the clauses speak of, and count those that satisfy them (rejection)."""
    wanted = set(facts).union(*(clause.given | clause.then for clause in clauses))
    asked: dict[int, tuple[list[Person], list[int]]] = {}
    for bucket in sorted({person.bucket for person, _ in wanted}):
        mine = [(person, value) for person, value in wanted if person.bucket == bucket]
        asked[bucket] = (sorted({person for person, _ in mine}), sorted({value for _, value in mine}))
    width = max(len(values) + len(people) for people, values in asked.values())
    batch = max(1, min(worlds, AT_ONCE // (width + 1)))
    kept, hits, drawn = 0, np.zeros(len(facts), dtype=np.int64), 0
    while drawn < worlds:
        size = min(batch, worlds - drawn)
        has: dict[Person, NDArray[np.int64]] = {}
        for bucket, (people, values) in asked.items():
            has |= _draw(buckets, bucket, people, values, (size, random))
        right = np.ones(size, dtype=bool)
        for clause in clauses:
            spared = [has[person] != value for person, value in clause.given]
            right &= np.logical_or.reduce([*spared, *(has[person] == value for person, value in clause.then)])
        kept += int(right.sum())
        hits += np.array([int((right & (has[person] == value)).sum()) for person, value in facts], dtype=np.int64)
        drawn += size
    return Sampled(worlds, kept, tuple(hits.tolist()))


def _draw(
    buckets: Buckets, bucket: int, people: list[Person], values: list[int], how: tuple[int, np.random.Generator]
) -> dict[Person, NDArray[np.int64]]:
    """A value of each person in each world, drawn without replacement; -1 is any value that is not asked about."""
    worlds, random = how
    size, counts = int(buckets.size[bucket]), buckets.counts(bucket)
    have = [counts.get(value, 0) for value in values]
    left = np.tile(np.array([*have, size - sum(have)], dtype=np.int64), (worlds, 1))  # (worlds, values + 1)
    name = np.array([*values, -1], dtype=np.int64)
    drawn = {}
    for done, person in enumerate(people):
        ticket = random.integers(0, size - done, worlds)
        pick = (ticket[:, None] >= np.cumsum(left, axis=1)).sum(axis=1)
        left[np.arange(worlds), pick] -= 1
        drawn[person] = name[pick]
    return drawn


def interval(hits: int, of: int, confidence: float) -> tuple[float, float]:
    """The interval of Clopper and Pearson: it covers the true share at least as often as `confidence` says.

    >>> [round(end, 4) for end in interval(0, 10, 0.95)]
    [0.0, 0.3085]
    """
    if not 0 < confidence < 1:
        raise InputError("the confidence must lie between 0 and 1", got=f"{confidence:g}")
    tail = (1 - confidence) / 2
    if not of:
        return 0.0, 1.0
    low = beta_quantile(tail, hits, of - hits + 1) if hits else 0.0
    high = beta_quantile(1 - tail, hits + 1, of - hits) if hits < of else 1.0
    return low, high


SAMPLES = 100_000
"""How many worlds are drawn where they cannot be counted."""
FEW = 1_000
"""With fewer worlds than this an estimate says so."""


@runtime_checkable
class Known(Protocol):
    """Knowledge with the atom that it points to, like a witness of the maximum disclosure."""

    @property
    def knowledge(self) -> tuple[Implication, ...]:
        """What is known."""

    @property
    def target(self) -> Atom:
        """What it makes likely."""


class Risk(float):
    """A probability that also says whose it is, and how it was found.

    `low` and `high` enclose it: they are equal where it was counted (`exact`, and then `fraction` is it), the ends of
    a confidence interval where it was estimated. `how` says so in words.
    """

    target: Atom | None
    low: float
    high: float
    exact: bool
    fraction: Fraction | None
    how: str

    def __new__(
        cls, value: float | Fraction, *, target: Atom | None = None, ends: tuple[float, float] | None = None,
        how: str = "",
    ) -> Self:  # fmt: skip
        """A probability; exact if it has no `ends`."""
        made = super().__new__(cls, value)
        made.target, made.how, made.exact = target, how, ends is None
        made.fraction = value if isinstance(value, Fraction) and ends is None else None
        made.low, made.high = (float(value), float(value)) if ends is None else ends
        return made

    def __str__(self) -> str:
        if self.exact:
            return f"{float(self):.6g}"
        return f"about {float(self):.4g}, between {self.low:.4g} and {self.high:.4g}"


def risk(
    what: What,
    knowledge: Iterable[Implication] | Known = (),
    target: Atom | None = None,
    *,
    sensitive: str | None = None,
    seed: int | np.random.Generator | None = None,
    samples: int = SAMPLES,
    confidence: float = 0.95,
) -> Risk:
    """Pr(person has value | release, knowledge) in the random worlds model (Definition 5).

    `knowledge` is a list of implications, or a witness with its own target. Without a `target` it is the most likely
    value of anybody. In each bucket every order of its values is as likely, independently of other buckets. The chance
    is counted exactly where that takes at most FEASIBLE steps (it is #P-hard in general, Theorem 8), otherwise
    estimated from `samples` random worlds: then `exact` is False, and [`low`, `high`] is a Clopper–Pearson interval.
    """
    buckets = buckets_of(what, sensitive=sensitive)
    if isinstance(knowledge, Known):
        target = knowledge.target if target is None else target
        knowledge = knowledge.knowledge
    known = _implications(knowledge)
    if isinstance(samples, bool) or not isinstance(samples, (int, np.integer)) or samples < 1:
        raise InputError("samples must be a whole number of at least 1", got=str(told(samples)))
    confidence = float(exact("confidence", confidence))
    interval(0, 1, confidence)  # refuse a bad confidence before any work
    random = generator(secrets.randbits(128) if seed is None else seed)
    clauses = clauses_of(buckets, known)
    about = Attacker(buckets, clauses, int(samples), random, confidence)
    if target is None:
        return about.most_likely()
    if not isinstance(target, Atom):
        raise InputError("the target must be an atom", got=type(target).__name__, do="write Atom(person, value)")
    return about.of(buckets.atom(target))


def _implications(knowledge: object) -> list[Implication]:
    if isinstance(knowledge, Implication):
        return [knowledge]
    known = listed(knowledge)
    if known is None:
        do = "write [Implication(…), …], or give a witness"
        raise InputError("knowledge must be a list of implications", got=type(knowledge).__name__, do=do)
    for one in known:
        if not isinstance(one, Implication):
            raise InputError("knowledge must be a list of implications", got=f"a list with {type(one).__name__}")
    return list(known)


class Attacker:
    """Somebody who knows clauses about the people of buckets; worlds are drawn where they cannot be counted."""

    def __init__(
        self, buckets: Buckets, clauses: list[Clause], worlds: int, random: np.random.Generator, confidence: float
    ) -> None:
        self.buckets, self.worlds, self.random, self.confidence = buckets, worlds, random, confidence
        self.parts = components(clauses)
        self.where = [{person.bucket for clause in part for person in clause.people} for part in self.parts]

    def of(self, fact: Fact) -> Risk:
        """The chance of one fact."""
        mine = [part for part, where in zip(self.parts, self.where, strict=True) if fact[0].bucket in where]
        for part in self.parts:
            if part not in mine:
                self._consistent(part)
        if not mine:
            return self._exactly(fact, self._alone(fact))
        return self._best(mine[0], [fact])

    def most_likely(self) -> Risk:
        """The largest chance of any fact."""
        found = [self._best(part, list(self._candidates(part))) for part in self.parts]
        touched = set().union(*self.where)
        alone = self._most_frequent(touched)
        if alone is not None:
            found.append(self._exactly(alone, self._alone(alone)))
        best = max(found, key=lambda one: (one.exact and one.fraction) or Fraction(float(one)))
        guessed = [one for one in found if not one.exact and one.high > best]
        if best.exact and guessed:  # an estimated chance may be larger
            ends = (float(best), max(one.high for one in guessed))
            return Risk(float(best), target=best.target, ends=ends, how=guessed[0].how)
        return best

    def _alone(self, fact: Fact) -> Fraction:
        person, value = fact
        return Fraction(self.buckets.counts(person.bucket).get(value, 0), int(self.buckets.size[person.bucket]))

    def _most_frequent(self, touched: set[int]) -> Fact | None:
        """The most frequent value of the buckets that no clause speaks of."""
        buckets = self.buckets
        share = buckets.n / np.repeat(buckets.size, np.diff(buckets.start))
        for bucket in touched:
            share[buckets.start[bucket] : buckets.start[bucket + 1]] = -1.0
        best = int(np.argmax(share))
        if share[best] < 0:
            return None
        bucket = int(np.searchsorted(buckets.start, best, side="right")) - 1
        return Person(bucket, 0), int(buckets.value[best])

    def _candidates(self, part: list[Clause]) -> Iterator[Fact]:
        """What may be most likely: in each bucket the people that are spoken of and one other, the values likewise.

        Of the values that no clause mentions the most frequent one is the most likely, for every person.
        """
        facts = {fact for clause in part for fact in clause.given | clause.then}
        for bucket in sorted({person.bucket for person, _ in facts}):
            counts = self.buckets.counts(bucket)
            people = {person.index for person, _ in facts if person.bucket == bucket}
            other = next((i for i in range(len(people) + 1) if i not in people), len(people))
            people |= {other} if other < self.buckets.size[bucket] else set()
            values = {value for person, value in facts if person.bucket == bucket}
            unnamed = max((value for value in counts if value not in values), key=counts.__getitem__, default=None)
            values |= set() if unnamed is None else {unnamed}
            yield from ((Person(bucket, index), value) for index in sorted(people) for value in sorted(values))

    def _best(self, part: list[Clause], facts: list[Fact]) -> Risk:
        """The most likely of the facts, in the buckets of one part of the knowledge."""
        budget = Budget()
        try:
            known = self._known(part, budget)
            chances = [self._joint(part, fact, budget) / known for fact in facts]
        except TooManyError:
            return self._estimated(part, facts)
        best = max(range(len(facts)), key=chances.__getitem__)
        return self._exactly(facts[best], chances[best])

    def _joint(self, part: list[Clause], fact: Fact, budget: Budget) -> Fraction:
        if not self._alone(fact):
            return Fraction(0)
        return chance(self.buckets, [*part, Clause(frozenset(), frozenset([fact]))], budget)

    def _known(self, part: list[Clause], budget: Budget) -> Fraction:
        """The chance of what is known; an error where that is 0."""
        known = chance(self.buckets, part, budget)
        if not known:
            do = "check who has what, or leave it out"
            raise InputError("the knowledge contradicts the release: no world satisfies it", do=do)
        return known

    def _consistent(self, part: list[Clause]) -> None:
        """See that a part of the knowledge can be true."""
        try:
            self._known(part, Budget())
        except TooManyError:
            self._sampled(part, [])

    def _sampled(self, part: list[Clause], facts: list[Fact]) -> Sampled:
        drawn = sample(self.buckets, part, facts, self.worlds, self.random)
        if not drawn.kept:
            raise InfeasibleError(
                f"counting takes more than {FEASIBLE:,} steps, and none of {drawn.worlds:,} random worlds satisfies "
                "the knowledge: it is rare or contradicts the release; pass more samples=, or less knowledge"
            )
        return drawn

    def _exactly(self, fact: Fact, chance: Fraction) -> Risk:
        return Risk(chance, target=self._named(fact), how="counted over all worlds")

    def _estimated(self, part: list[Clause], facts: list[Fact]) -> Risk:
        """The largest of several shares; each interval is widened so that all hold at once (Bonferroni)."""
        drawn = self._sampled(part, facts)
        best = max(range(len(facts)), key=drawn.hits.__getitem__)
        ends = interval(drawn.hits[best], drawn.kept, 1 - (1 - self.confidence) / len(facts))
        few = "only " if drawn.kept < FEW else ""
        how = (
            f"estimated from {few}{drawn.kept:,} of {drawn.worlds:,} random worlds, those that satisfy the knowledge "
            f"(counting takes more than {FEASIBLE:,} steps); the interval holds with {self.confidence:.4g} confidence"
        )
        return Risk(drawn.hits[best] / drawn.kept, target=self._named(facts[best]), ends=ends, how=how)

    def _named(self, fact: Fact) -> Atom:
        person, value = fact
        return Atom(person, self.buckets.labels[value])
