"""MaxEntropyEstimate: what an analyst can infer from a collection of marginals, through maximum entropy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from jali.core.arrays import Bools, Floats, Ints, added, combine, pairs_of
from jali.cover.cover import DECLARE, Cover
from jali.encoding.values import Kind
from jali.errors import InputError
from jali.estimates import base
from jali.estimates.base import Count, condition_of, generator, names_of, table_of, undetermined
from jali.estimates.boxes import BoxEstimate, encoded
from jali.estimates.conditions import BoxColumn, Role, expanded
from jali.graphical.inference import Joint, Network, Reading, joint_bounds
from jali.graphical.marginal import ABSENT, Cache, Marginal, upward
from jali.graphical.maxent import Fit, log_shown
from jali.query.match import Patterns
from jali.query.tree import Condition, Constant, Test, columns, simplify, tests_of

BEYOND = "columns are independent beyond what the published marginals show together"


class Distribution(Protocol):
    """A distribution over nodes at the finest levels that a collection shows."""

    shown: Marginal

    def joint(self, asked: Mapping[int, Reading]) -> Joint:
        """The joint distribution of what is read of these attributes."""
        ...

    def draw(self, people: int, random: np.random.Generator) -> NDArray[np.int32]:
        """Node codes of people drawn from it: (people, attributes)."""
        ...


class Fitted:
    """A fitted distribution, by its cells that are not empty."""

    def __init__(self, fit: Fit) -> None:
        self.shown = fit.marginal
        self._at = np.nonzero(fit.p)
        self._mass = fit.p[self._at]

    def joint(self, asked: Mapping[int, Reading]) -> Joint:
        """The joint distribution of what is read of these attributes."""
        place = {i: axis for axis, i in enumerate(self.shown.attributes)}
        number, first = combine([(self._at[place[i]], len(asked[i].start) - 1) for i in asked], len(self._mass))
        mass = added(number, self._mass, len(first))
        codes: list[Ints] = []
        row = first
        for i, reading in asked.items():
            again, entry = pairs_of(reading.start, self._at[place[i]][row])
            row, mass = row[again], mass[again] * reading.share[entry]
            codes = [one[again] for one in codes] + [reading.code[entry]]
        widths = [reading.codes for reading in asked.values()]
        folded, kept = combine(list(zip(codes, widths, strict=True)), len(mass))
        return Joint(tuple(one[kept] for one in codes), added(folded, mass, len(kept)))

    def draw(self, people: int, random: np.random.Generator) -> NDArray[np.int32]:
        """Node codes of people drawn from it: (people, attributes)."""
        codes = np.zeros((people, len(self.shown.levels)), dtype=np.int32)
        cell = random.choice(len(self._mass), size=people, p=self._mass / self._mass.sum())
        for axis, i in enumerate(self.shown.attributes):
            codes[:, i] = self._at[axis][cell]
        return codes


@dataclass(frozen=True, eq=False)
class MarginalColumn:
    """A column of the collection; the cover says what each node of its finest published level stands for.

    A column that no marginal has is one node, which may be anything.
    """

    name: str
    kind: Kind
    role: Role
    cover: Cover  # of the nodes at the finest level shown


@dataclass(frozen=True, eq=False)
class MaxEntropyEstimate:
    """The distribution of highest entropy that agrees with every marginal of a collection."""

    columns: tuple[MarginalColumn, ...]  # as the attributes of the domain
    cache: Cache  # of the published marginals
    marginals: tuple[Marginal, ...]
    distribution: Distribution
    joint: bool = True  # whether counts are bounded by all marginals together; each of them alone is quicker

    @property
    def total(self) -> int:
        """How many people the marginals are about."""
        return self.cache.total

    def __repr__(self) -> str:
        names = ", ".join(column.name for column in self.columns)
        return f"MaxEntropyEstimate({len(self.marginals)} marginals of {self.total:,} people: {names})"

    def _index(self, name: object) -> int:
        return base.place_of(name, [column.name for column in self.columns])

    def _has(self, i: int) -> bool:
        return self.distribution.shown.levels[i] != ABSENT

    def _joint(self, chosen: Sequence[int], readings: Mapping[int, Reading]) -> Joint:
        """The joint distribution, with columns that no marginal has as independent of all."""
        shown = self.distribution.joint({i: readings[i] for i in chosen if self._has(i)})
        codes = dict(zip([i for i in chosen if self._has(i)], shown.codes, strict=True))
        mass = shown.mass
        for i in chosen:
            if not self._has(i):
                some = readings[i]
                codes = {at: np.repeat(one, len(some.code)) for at, one in codes.items()}
                codes[i] = np.tile(some.code, len(mass))
                mass = np.repeat(mass, len(some.code)) * np.tile(some.share, len(mass))
        return Joint(tuple(codes[i] for i in chosen), mass)

    def _boxes(self, chosen: Sequence[int]) -> BoxEstimate:
        """The joint of some columns as boxes, each with its expected number of people."""
        joint = self._joint(chosen, {i: Reading.node(self.columns[i].cover.nodes) for i in chosen})
        some = [self.columns[i] for i in chosen]
        parts = zip(some, joint.codes, strict=True)
        return BoxEstimate(
            tuple(BoxColumn(c.name, c.kind, c.role, c.cover, own) for c, own in parts), joint.mass * self.total
        )

    # Counting.

    def count(self, condition: str | Condition | None = None, *, where: Mapping[str, object] | None = None) -> Count:
        """How many people satisfy the condition, with what is certain and possible of it.

        Each column is read as one of the truth patterns that its tests can have, so that messages over the junction
        tree stay small; the answer is exact for the maximum-entropy distribution, whatever the condition.
        """
        asked = condition_of(condition, where)
        for name in sorted(columns(asked)):
            self._index(name)
        asked = simplify(asked)
        chosen = sorted(self._index(name) for name in columns(asked))
        if not chosen:
            return Count(float(self.total) if asked == Constant(True) else 0.0)
        own = {i: tests_of(asked, self.columns[i].name) for i in chosen}
        judged = {i: self.columns[i].cover.patterns(own[i]) for i in chosen}
        low, high = self._bounds(asked, own, judged)
        if low == high:
            return Count(low)
        shares = self._shares(judged)
        for i in chosen:
            if np.isnan(shares[i]).any():
                raise undetermined([self.columns[i].name], low, high, do=DECLARE)
        value = self._value(asked, own, judged, shares)
        return Count(min(max(value, low), high), low=low, high=high, assumes=self._assumed(chosen, judged))

    def expected(self, asked: Condition) -> float:
        """How many people are likely to satisfy the condition: the number that `count` has, without its bounds."""
        asked = simplify(asked)
        own = {i: tests_of(asked, self.columns[i].name) for i in sorted(map(self._index, columns(asked)))}
        judged = {i: self.columns[i].cover.patterns(own[i]) for i in own}
        shares = self._shares(judged)
        known = bool(own) and not any(np.isnan(share).any() for share in shares.values())
        return self._value(asked, own, judged, shares) if known else float(self.count(asked))

    def _shares(self, judged: Mapping[int, Patterns]) -> dict[int, Floats]:
        """Which share of each node that somebody has shows each pattern, by column: each (patterns, nodes)."""
        return {i: np.where(self._occurs(i), patterns.share, 0.0) for i, patterns in judged.items()}

    def _value(
        self, asked: Condition, own: Mapping[int, tuple[Test, ...]], judged: Mapping[int, Patterns],
        shares: Mapping[int, Floats],
    ) -> float:  # fmt: skip
        joint = self._joint([*own], {i: Reading.pattern(shares[i]) for i in own})
        itself = {i: np.eye(len(patterns.truth), dtype=np.bool_) for i, patterns in judged.items()}
        return float(joint.mass @ _expanded(asked, own, judged, itself, joint.codes)[0]) * self.total

    def _bounds(
        self, asked: Condition, own: Mapping[int, tuple[Test, ...]], judged: Mapping[int, Patterns]
    ) -> tuple[float, float]:
        """What every table that agrees with the marginals has at least and at most: by each of them, then by all."""
        low, high = 0.0, float(self.total)
        for marginal in self.marginals:
            counts = self.cache.counts(marginal)
            possible = {i: self._possible(judged[i], i, marginal) for i in own}
            nowhere = np.zeros(len(counts.n), dtype=np.int32)
            codes = [nowhere if marginal.levels[i] == ABSENT else counts.column(i) for i in own]
            _, surely, maybe = _expanded(asked, own, judged, possible, codes)
            low, high = max(low, float(counts.n[surely].sum())), min(high, float(counts.n[maybe].sum()))
        if not self.joint or low == high or sum(self._has(i) for i in own) < 2:
            return low, high
        least, most = self._together(asked, own, judged)
        return max(low, least), min(high, most)

    def _together(
        self, asked: Condition, own: Mapping[int, tuple[Test, ...]], judged: Mapping[int, Patterns]
    ) -> tuple[float, float]:
        """What all marginals together say of it."""
        possible = {i: judged[i].possible & self._occurs(i) for i in own}

        def judge(groups: Mapping[int, Ints], codes: Mapping[int, Ints]) -> tuple[Bools, ...]:
            nowhere = np.zeros(len(next(iter(codes.values()))), dtype=np.int64)
            one = {i: np.unique(groups[i], return_index=True)[1] if i in groups else [0] for i in own}
            some = {i: possible[i][:, one[i]] for i in own}
            return _expanded(asked, own, judged, some, [codes[i] if i in groups else nowhere for i in own])[1:]

        alike = {i: some.T for i, some in possible.items() if self._has(i)}
        return joint_bounds(self.cache, self.marginals, alike, judge)

    def _possible(self, patterns: Patterns, i: int, marginal: Marginal) -> Bools:
        """Which patterns a column's nodes, one if it is absent, can have at the marginal's level: (patterns, nodes)."""
        shown = self.distribution.shown.levels[i]
        if shown == ABSENT:
            return patterns.possible
        occurs = self._occurs(i)
        possible = patterns.possible & occurs
        level = marginal.levels[i]
        if level == ABSENT:
            return np.asarray(possible.any(axis=1, keepdims=True))
        attribute = self.cache.domain.attributes[i]
        into = upward(attribute, shown, level)
        coarse = np.zeros((len(possible), attribute.nodes[level]), dtype=bool)
        for node in np.flatnonzero(occurs):
            coarse[:, into[node]] |= possible[:, node]
        return coarse

    def _occurs(self, i: int) -> Bools:
        """Which nodes of a column's finest level somebody has: (nodes,)."""
        occurs = np.zeros(self.columns[i].cover.nodes, dtype=bool)
        own = self.distribution.shown.only((i,))
        occurs[self.cache.counts(own).cells[:, 0] if self._has(i) else 0] = True
        return occurs

    def _assumed(self, chosen: Sequence[int], judged: Mapping[int, Patterns]) -> tuple[str, ...]:
        said: dict[str, None] = {}
        for i in chosen:
            doubtful = np.flatnonzero((judged[i].possible.sum(axis=0) > 1) & self._occurs(i))
            if len(doubtful):
                said |= dict.fromkeys(self.columns[i].cover.assumes(doubtful, self.columns[i].name))
        return (*said, BEYOND) if len(chosen) > 1 else tuple(said)

    # Cells.

    def probability(self, cells: Any) -> Floats:
        """The probability of each cell, given by exact values of some columns: (cells,).

        Where all columns that the collection shows are given, it is the closed form at these cells alone.
        """
        table = table_of(cells)
        chosen = [self._index(name) for name in table.column_names]
        if not chosen:
            raise InputError("the cells have no column", do="give the values of at least one published column")
        network = self.distribution
        if not isinstance(network, Network) or not set(network.shown.attributes) <= set(chosen):
            return self._boxes(chosen).probability(table)
        codes = np.zeros((table.num_rows, len(self.columns)), dtype=np.int64)
        share = np.ones(table.num_rows)
        for i, column in zip(chosen, table.columns, strict=True):
            node, own = self._placed(i, column)
            share *= own
            if self._has(i):  # any value of the node stands for it
                leaf = self.cache.domain.attributes[i].maps[network.shown.levels[i]]
                codes[:, i] = np.unique(leaf, return_index=True)[1][node]
        return np.exp(log_shown(self.cache, network.tree, codes)) * share

    def _placed(self, i: int, column: pa.ChunkedArray) -> tuple[Ints, Floats]:
        """The node of each value, and its share there; 0 for a value that is in none."""
        values = encoded(column)
        some = np.flatnonzero(self._occurs(i))
        value, node, share = self.columns[i].cover.density(values.dictionary, self.columns[i].name, some)
        nodes, shares = np.zeros(len(values.dictionary), dtype=np.int64), np.zeros(len(values.dictionary))
        nodes[value], shares[value] = node, share
        at = values.indices.to_numpy(zero_copy_only=False)
        return nodes[at], shares[at]

    def frame(self, columns: Sequence[str], kind: str | None = None) -> Any:
        """The joint table of some columns at exact values, with a `count`; sums to the total."""
        names = names_of(columns)
        chosen = [self._index(name) for name in names]
        base.require_once(chosen, names)
        return self._boxes(chosen).frame(names, kind)

    def sample(self, n: int | None = None, *, seed: int | np.random.Generator) -> pa.Table:
        """People drawn by walking the junction tree, with exact values in every column; as many as were counted."""
        random = generator(seed)
        base.require_rows(0 if n is None else n)
        codes = self.distribution.draw(self.total if n is None else int(n), random)
        drawn = {c.name: c.cover.draw(codes[:, i], random, c.name) for i, c in enumerate(self.columns)}
        return pa.table(drawn)


def _expanded(
    asked: Condition,
    own: Mapping[int, tuple[Test, ...]],
    judged: Mapping[int, Patterns],
    possible: Mapping[int, Bools],
    codes: Sequence[NDArray[np.integer]],
) -> tuple[Floats, Bools, Bools]:
    """`expanded` for cells of which each has a code in each column, and a code the patterns that are possible."""
    seen = [Patterns(judged[i].truth, possible[i].astype(np.float64), possible[i]) for i in own]
    return expanded(asked, list(own.values()), seen, codes)
