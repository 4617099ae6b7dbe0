"""Privacy of a collection of generalized marginals, judged as a whole (Kifer & Gehrke 2006, Sections 4 and 7).

What is promised of a collection that `check` lets pass:
- KAnonymity(k): each marginal alone links a person to at least k people or to nobody (k-link), and no cell of the
  quasi-identifiers can be shown, from the marginals together, to hold from 1 to k - 1 people (k-combinatorial).
- diversities and TCloseness, against the attacker "marginals", who knows one person's quasi-identifiers and the
  marginals: in every cell that is possible, the sensitive values expected by maximum entropy keep the promise. Someone
  who takes the marginals for independent where they say nothing more believes just that.
- the same against the attacker "quasi" too, who knows everybody's quasi-identifiers: his belief about each person keeps
  the promise, and counts on no value that no whole table gives that person (see `block`).
Not promised: anything against someone who knows more than that, such as which tables are likely for other reasons; the
diversity of every single table that agrees with the marginals; or that the presence of a person stays hidden.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal, get_args

import numpy as np

from jali.encoding.table import Table
from jali.errors import InputError, nearest
from jali.estimates.base import kept
from jali.graphical.graph import decomposable
from jali.graphical.marginal import Cache, Levels, Marginal, maximal
from jali.graphical.privacy.block import Block, Columns, smallest_group
from jali.graphical.privacy.join import JOIN_LIMIT, Cell
from jali.graphical.privacy.maxent import relaxable, worse
from jali.graphical.privacy.tables import Fitted, UnclearError
from jali.principles import Combined, Principle, Sensitive, principles_of
from jali.principles.base import show
from jali.principles.counts import Counts

Attacker = Literal["quasi", "marginals"]
"""Who combines the marginals: somebody who knows everybody's quasi-identifiers, or one person's only."""

KNOWING = " for somebody who knows everybody's quasi-identifiers"

SECONDS = 60.0
"""How long one collection may be judged by default; what is not judged by then is not published."""


@dataclass(frozen=True)
class Verdict:
    """Whether a collection keeps its promises, why, and the cell that breaks one or comes nearest to it."""

    holds: bool
    reason: str  # one sentence without values of the table
    worst: Mapping[str, tuple[int, int]] | None  # attribute → level and node; only for the holder of the table
    principle: Principle | None  # the one that fails, or that the worst cell belongs to
    reached: float  # what the worst combination reaches; counts of people are followed up to k
    relaxed: bool = False  # whether only the weaker promise that the reason states was checked
    parts: tuple[Verdict, ...] = ()  # one for each principle that was judged, in their order

    def __bool__(self) -> bool:
        return self.holds


def check(
    collection: Iterable[Marginal],
    cache: Cache,
    principles: Principle | Combined | Iterable[Principle | Combined],
    *,
    epsilon: float | None = None,
    columns: Columns | None = None,
    attacker: Attacker = "marginals",
    seconds: float = SECONDS,
) -> Verdict:
    """Whether the collection may be published: every principle, for all marginals together.

    The `attacker` "quasi" needs a cache of the table itself. `epsilon` allows the relaxed check where the exact one is
    too large. `columns` (see `columns_of`) names the values of the sensitive columns, for principles that name some or
    need their order or tree. To judge many collections, make one `Checker`, which keeps what it found.
    """
    names = columns or unnamed_columns(cache)
    return Checker(cache, principles_of(principles), names, epsilon, attacker, seconds).check(collection)


def columns_of(table: Table) -> Columns:
    """The sensitive columns of a table as principles see them."""
    return tuple(column.sensitive() for column in table.sensitive)


def unnamed_columns(cache: Cache) -> Columns:
    """The sensitive columns of a domain, their values known by number only."""
    chains = [(cache.domain.names[i], cache.domain.attributes[i].nodes[0]) for i in cache.domain.sensitive]
    return tuple((Sensitive(name, tuple(map(str, range(many)))), np.arange(many)) for name, many in chains)


@dataclass(frozen=True, eq=False)
class Checker:
    """Judges many collections of one table by the same principles; what does not change is judged once.

    Marginals without sensitive columns only need k-link anonymity, marginal by marginal; all else depends on the
    marginals with them, and is kept for each set of these (Proposition 7.3).
    """

    cache: Cache
    principles: tuple[Principle, ...]
    columns: Columns
    epsilon: float | None = None
    attacker: Attacker = "marginals"
    seconds: float = SECONDS  # for one collection
    limit: int = JOIN_LIMIT
    _groups: dict[Levels, tuple[int, Cell]] = field(default_factory=dict, init=False, repr=False)
    _blocks: dict[tuple[int, ...], Block] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        number = isinstance(self.epsilon, (int, float)) and not isinstance(self.epsilon, bool)
        if self.epsilon is not None and not (number and 0 <= self.epsilon < 1):
            raise InputError("epsilon must be a number from 0 to below 1", got=repr(self.epsilon))
        if self.attacker not in get_args(Attacker):
            do = nearest(str(self.attacker), get_args(Attacker))
            raise InputError("no such attacker", got=repr(self.attacker), do=do)
        if self.attacker == "quasi" and any(self.cache.sources[0].marginal.levels):
            raise InputError("the attacker who knows the quasi-identifiers is judged with the table itself")
        names = tuple(column for column, _ in self.columns)
        zero = np.zeros(1, dtype=np.int64)
        everybody = Counts(1, zero, zero, zero + self.cache.total, names, np.zeros((1, len(names)), dtype=np.int64))
        for principle in self.principles:
            if principle.judges_size_alone:
                principle.check(everybody)
            else:
                principle.require_column(everybody)

    def check(self, collection: Iterable[Marginal], *, deadline: float = math.inf) -> Verdict:
        """The verdict on a collection; the first principle that fails ends it, or the deadline (of time.monotonic)."""
        deadline = min(deadline, time.monotonic() + self.seconds)
        marginals = maximal(collection)
        if not marginals:
            raise InputError("a collection needs at least one marginal")
        parts: list[Verdict] = []
        try:
            judge = self._prepared(marginals, deadline)
            for principle in self.principles:
                parts += judge.verdicts(principle)
                if not parts[-1].holds:
                    break
        except UnclearError as unclear:
            parts.append(Verdict(False, str(unclear), None, None, math.nan))
        if not parts[-1].holds:
            return replace(parts[-1], parts=tuple(parts))
        chosen = next((part for part in parts if part.worst), parts[0])
        reason = "; ".join(part.reason for part in parts)
        return replace(chosen, reason=reason, relaxed=any(part.relaxed for part in parts), parts=tuple(parts))

    def _prepared(self, marginals: tuple[Marginal, ...], deadline: float) -> _Collection:
        """The collection, its marginals sorted by the sensitive columns that they have."""
        hidden = self.cache.domain.sensitive
        blocks: dict[tuple[int, ...], list[Marginal]] = {}
        for marginal in marginals:
            block = tuple(i for i in marginal.attributes if i in hidden)
            if block:
                blocks.setdefault(block, []).append(marginal)
        if sum(map(len, blocks)) > len({i for block in blocks for i in block}):
            raise UnclearError(
                "sensitive columns that stand together in one marginal must do so in every marginal that has one of "
                "them; publish them together or apart"
            )
        masks = [self.cache.domain.mask(marginal) for marginal in marginals]
        fitted = None if decomposable(masks) else Fitted(self.cache, marginals, deadline)
        return _Collection(self, marginals, {self.block(key): some for key, some in blocks.items()}, fitted, deadline)

    def block(self, sensitive: tuple[int, ...]) -> Block:
        """What is known of the marginals with these sensitive columns."""
        if sensitive not in self._blocks:
            hidden = self.cache.domain.sensitive
            columns = tuple(self.columns[hidden.index(i)] for i in sensitive)
            self._blocks[sensitive] = Block(self.cache, sensitive, columns, self.principles, self.limit, self.epsilon)
        return self._blocks[sensitive]

    def group(self, marginal: Marginal) -> tuple[int, Cell]:
        """The smallest cell of a marginal's quasi-identifiers."""
        return kept(self._groups, marginal.levels, lambda: smallest_group(self.cache, marginal), math.inf)

    def named(self, cell: Cell) -> Mapping[str, tuple[int, int]]:
        """A cell by the names of its attributes."""
        return MappingProxyType({self.cache.domain.names[i]: place for i, place in cell.items()})


@dataclass(frozen=True, eq=False)
class _Collection:
    """One collection being judged."""

    checker: Checker
    marginals: tuple[Marginal, ...]
    blocks: Mapping[Block, Sequence[Marginal]]
    fitted: Fitted | None  # its maximum-entropy distribution, where it is not decomposable
    deadline: float

    def verdicts(self, principle: Principle) -> list[Verdict]:
        """The verdicts of one principle, up to the first that fails."""
        verdicts: list[Verdict] = []
        if principle.judges_size_alone or principle.company() > 1:
            verdicts.append(self._anonymous(principle, principle.company()))
        for block, some in self.blocks.items():
            if block.concerned_by(principle) and (not verdicts or verdicts[-1].holds):
                verdicts.append(self._diverse(principle, block, some))
        if not verdicts:
            reason = f"{principle.title} {principle.bound}: no marginal has the sensitive column"
            verdicts.append(Verdict(True, reason, None, principle, math.nan))
        return verdicts

    def _anonymous(self, principle: Principle, k: int) -> Verdict:
        if k == 1:
            return Verdict(True, "1-anonymity asks for nothing", None, principle, 1.0)
        named, groups = self.checker.named, [self.checker.group(marginal) for marginal in self.marginals]
        least, cell = min(groups, key=lambda group: group[0])
        if least < k:
            reason = f"not {k}-link anonymous: a marginal has a combination with fewer than {k} people"
            return Verdict(False, reason, named(cell), principle, float(least))
        if self.fitted is not None:
            bounds = [self.fitted.smallest_bound(k)]
        else:
            bounds = [block.bound(some, k) for block, some in self.blocks.items() if len(some) > 1]
        bound, place = min(bounds, key=lambda one: one[0], default=(k, {}))
        if bound < k:
            reason = (
                f"not {k}-combinatorially anonymous: the marginals together show that a combination of "
                f"quasi-identifiers has fewer than {k} people, and it may have some"
            )
            return Verdict(False, reason, named(place), principle, float(bound))
        worst, reached = (named(cell), least) if least <= bound or not bounds else (None, bound)
        return Verdict(True, f"{k}-link and {k}-combinatorially anonymous", worst, principle, float(reached))

    def _diverse(self, principle: Principle, block: Block, some: Sequence[Marginal]) -> Verdict:
        relaxed = False
        if self.fitted is not None:
            rule = next(rule for rule in block.rules if rule.principle == principle)
            finding = self.fitted.finding(rule, block.sensitive, block.factors.joint)
        else:
            findings = block.findings(some)
            finding, relaxed = findings.by_principle[principle], principle in findings.relaxed
        who = ""
        if finding.holds and self.checker.attacker == "quasi":
            known = block.known(some, self.deadline).get(principle)
            if known is not None and (not known.holds or (not relaxed and worse(known, finding))):
                finding, who, relaxed = known, KNOWING, False
        asked = f"{principle.title} {principle.bound}"
        told = f"the worst combination reaches {show(finding.reached)}{who}"
        if relaxed:
            share = (1 - (self.checker.epsilon or 0)) ** len(some)
            asked = (
                f"instead of {asked}, {relaxable(finding.rule)} values in each cell that are at least {share:.3g} "
                "times as frequent as its most frequent one"
            )
            told = f"the worst cell has {show(finding.reached)}"
        reason = f"{asked}: {told}" if finding.holds else f"not kept: {asked}; {told}"
        return Verdict(finding.holds, reason, self.checker.named(finding.cell), principle, finding.reached, relaxed)
