"""Cover: what a published cell may stand for, as far as an analyst knows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from jali.core.arrays import Bools, Floats, Ints, owners, sorted_by
from jali.cover import masks as texts
from jali.cover.sets import Sets, Spans, as_kind, clean, joint_type, patterns_of_numbers, require, type_of, typed
from jali.encoding import values as v
from jali.errors import InputError
from jali.query.match import Part, Patterns, holds, merged, numbered
from jali.query.tree import Scalar, Test

_UNKNOWN, _MEMBERS, _SPAN, _MASK, _MISSING = range(5)
DECLARE = "publish it with a declared domain: bands(low=, high=) or a taxonomy"


def _nothing() -> Any:
    return np.zeros(0)


def _within(codes: Ints, size: int) -> bool:
    return bool(((codes >= 0) & (codes < size)).all())


@dataclass(frozen=True, eq=False)
class Cover:
    """What each node (distinct shown cell) of a column covers: known values, an interval, a masked text, the missing
    value, or, where it has none of these, nothing that is known.

    Node i has the members `member[start[i]:start[i + 1]]` with probabilities `share`. Intervals are closed sets of
    whole numbers (days since 1970-01-01 for dates), or [low, high) where `whole` is False; low = high is one value.
    """

    nodes: int
    kind: v.Kind | None = None  # of the values; None where nothing is known
    values: pa.Array | None = None  # the known values, at most one of them missing
    start: Ints = field(default_factory=_nothing)  # (nodes + 1,)
    member: Ints = field(default_factory=_nothing)  # (members,) indices of values
    share: Floats = field(default_factory=_nothing)  # (members,) sums to 1 in each node that has members
    low: Floats = field(default_factory=_nothing)  # (nodes,) nan for a node that is no interval
    high: Floats = field(default_factory=_nothing)  # (nodes,)
    whole: bool = True
    masks: tuple[str | None, ...] | None = None  # (nodes,) 130**, None for a node that is no mask
    missing: int | None = None  # the node that is exactly the missing value
    guessed: int | None = None  # the node that may be anything, and what it covers here is a guess: an undeclared root
    open: tuple[int, ...] = ()  # nodes that may also be values which are named nowhere: what they cover is a guess too

    def __post_init__(self) -> None:
        def put(name: str, value: object, kind: type, size: int, default: float) -> Any:
            array: NDArray[Any] = np.asarray(value, dtype=kind)
            array = np.full(size, default, dtype=kind) if len(array) == 0 else array
            object.__setattr__(self, name, array)
            return array

        require(self.nodes >= 0, "nodes")
        start = put("start", self.start, np.int64, self.nodes + 1, 0)
        member = put("member", self.member, np.int64, 0, 0)
        share = put("share", self.share, np.float64, 0, 0)
        low = put("low", self.low, np.float64, self.nodes, np.nan)
        high = put("high", self.high, np.float64, self.nodes, np.nan)
        if self.values is not None:
            object.__setattr__(self, "values", clean(self.values))
            object.__setattr__(self, "kind", v.kind_of(self.values))
        known = 0 if self.values is None else len(self.values)
        require(len(start) == self.nodes + 1 and start[0] == 0 and bool((np.diff(start) >= 0).all()), "start")
        require(start[-1] == len(member) == len(share) and _within(member, known), "member")
        if len(share):
            filled = np.flatnonzero(np.diff(start))
            sums = np.add.reduceat(share, start[filled])
            pairs = owners(np.diff(start)) * known + member
            require(len(np.unique(pairs)) == len(pairs), "member, where a value stands twice in a node,")
            require(bool((share > 0).all()) and bool((abs(sums - 1) < 1e-9).all()), "share")
        require(len(low) == len(high) == self.nodes, "low and high")
        spanned = ~np.isnan(low)
        ends = np.stack([low, high])[:, spanned]
        require(bool(np.isfinite(ends).all()) and bool((ends[0] <= ends[1]).all()), "low and high")
        require(bool(np.isnan(high[~spanned]).all()), "low and high")
        require(not self.whole or bool((ends == np.floor(ends)).all()), "low and high, which are not whole,")
        require(not spanned.any() or self.kind in ("number", "date"), "kind of the intervals")
        require(self.masks is None or len(self.masks) == self.nodes, "masks")
        require(self.missing is None or 0 <= self.missing < self.nodes, "missing")
        require(self.guessed is None or 0 <= self.guessed < self.nodes, "guessed")
        require(_within(np.array(self.open, dtype=np.int64), self.nodes), "open")
        require(self._of is not None, "nodes")

    @classmethod
    def exact(cls, values: pa.Array) -> Cover:
        """Node i is value i."""
        return cls.sets(values, np.arange(len(values) + 1), np.arange(len(values)))

    @classmethod
    def grouped(
        cls, values: pa.Array, node_of: ArrayLike, nodes: int, root: int | None = None, *, declared: bool = True
    ) -> Cover:
        """Value i lies in node `node_of[i]` (-1: in none but the root), each equally likely; the root holds all.

        Where the values are no declared domain but those that were published, the root may hold others too.
        """
        node = np.asarray(node_of, dtype=np.int64)
        require(node.shape == (len(values),) and _within(node + 1, nodes + 1), "node_of")
        require(root is None or 0 <= root < nodes, "root")
        value = np.arange(len(values))
        if root is not None:
            kept = node != root
            node = np.concatenate([node[kept], np.full(len(values), root)])
            value = np.concatenate([value[kept], value])
        value, node = value[node >= 0], node[node >= 0]
        order, start = sorted_by(node, nodes)
        made = cls.sets(values, start, value[order])
        return made if declared or root is None else replace(made, guessed=root)

    @classmethod
    def sets(cls, values: pa.Array, start: ArrayLike, member: ArrayLike, share: ArrayLike | None = None) -> Cover:
        """Node i is one of the values `member[start[i]:start[i + 1]]`, equally likely unless shares are given."""
        starts = np.asarray(start, dtype=np.int64)
        if share is None:
            size = np.diff(starts)
            share = np.repeat(1 / np.maximum(size, 1), np.maximum(size, 0))
        members = np.asarray(member, dtype=np.int64)
        return cls(len(starts) - 1, None, values, starts, members, np.asarray(share, dtype=np.float64))

    @classmethod
    def intervals(
        cls, low: ArrayLike, high: ArrayLike, whole: bool, kind: v.Kind = "number", missing: int | None = None,
        *, guessed: int | None = None,
    ) -> Cover:  # fmt: skip
        """Node i is between low[i] and high[i]; nan where nothing is known of it. A guessed node may be elsewhere."""
        lows = np.asarray(low, dtype=np.float64)
        highs = np.asarray(high, dtype=np.float64)
        return cls(len(lows), kind, low=lows, high=highs, whole=whole, missing=missing, guessed=guessed)

    @classmethod
    def masked(cls, labels: Sequence[str | None] | pa.Array, missing: int | None = None) -> Cover:
        """Node i is a text as long as its label that agrees with it but for each `*`; a bare `*` may be anything."""
        shown = labels.to_pylist() if isinstance(labels, pa.Array) else labels
        masks = tuple(None if i == missing or mask == texts.HIDDEN else mask for i, mask in enumerate(shown))
        return cls(len(masks), "text", masks=masks, missing=missing)

    @classmethod
    def unknown(cls, nodes: int, missing: int | None = None, kind: v.Kind | None = None) -> Cover:
        """Nothing is known of any node, unless one is the missing value."""
        return cls(nodes, kind, missing=missing)

    @cached_property
    def _of(self) -> NDArray[np.int8]:
        """What each node is: (nodes,)."""
        of = np.zeros(self.nodes, dtype=np.int8)
        masked = np.zeros(self.nodes, dtype=np.bool_)
        if self.masks is not None:
            masked[:] = [mask is not None for mask in self.masks]
        missing = np.arange(self.nodes) == (-1 if self.missing is None else self.missing)
        for what, where in enumerate([np.diff(self.start) > 0, ~np.isnan(self.low), masked, missing], start=1):
            require(not (of[where] != _UNKNOWN).any(), "nodes that are two things at once:")
            of[where] = what
        return of

    @property
    def anything(self) -> Ints:
        """The nodes that may be anything: those of which nothing is known, and those whose cover is a guess."""
        free = self._of == _UNKNOWN
        free[list(self.open) + ([] if self.guessed is None else [self.guessed])] = True
        return np.flatnonzero(free)

    def _are(self, what: int) -> Ints:
        return np.flatnonzero(self._of == what)

    @property
    def known(self) -> Bools:
        """Of which nodes it is known what they cover: (nodes,)."""
        return cast(Bools, self._of != _UNKNOWN)

    @cached_property
    def letters(self) -> str:
        """What a hidden character of a mask is taken to be."""
        return texts.alphabet(self.masks or ())

    @cached_property
    def _masks(self) -> list[str]:
        return [mask for mask in self.masks or () if mask is not None]

    @cached_property
    def type(self) -> pa.DataType:
        """How values of the column are held."""
        spanned = [type_of(self.kind, whole=self.whole)] if len(self._are(_SPAN)) else []
        known = [] if self.values is None else [self.values.type]
        return joint_type(known + spanned or [type_of(self.kind, whole=self.whole)])

    def require_known(self, nodes: Ints, column: str, what: str) -> None:
        """Refuse when it is not known what one of these nodes covers."""
        if not self.known[nodes].all():
            why = "some cells show * or other values, and its domain is not declared"
            raise InputError(f'column "{column}" {what}: {why}', do=DECLARE)

    @cached_property
    def _sets(self) -> Sets:
        return Sets(cast(pa.Array, self.values), self.start, self.member, self.share)

    def _spans(self, nodes: NDArray[np.integer]) -> Spans:
        return Spans(self.low[nodes], self.high[nodes], self.whole)

    @cached_property
    def listed(self) -> Sets | None:
        """All nodes as sets of known values, if each is one, and none a guess."""
        return self._sets if self.nodes and self.alike and self._of[0] == _MEMBERS else None

    @cached_property
    def alike(self) -> bool:
        """Whether all nodes are things of one sort, so that the same is assumed of each."""
        return self.guessed is None and not self.open and not np.ptp(self._of)

    def assumes(self, nodes: Ints, column: str) -> tuple[str, ...]:
        """What is assumed of these nodes when they are judged by more than what is certain."""
        uneven = (self._of[nodes] == _MEMBERS).any() and not self._sets.even
        found = [f"values within a published cell are {'distributed as published' if uneven else 'equally likely'}"]
        if (self._of[nodes] == _MASK).any():
            what = "10 digits" if len(self.letters) == 10 else "36 digits and letters"
            found.append(f'each hidden character of "{column}" is one of the {what}')
        if self.guessed is not None and self.guessed in nodes:
            found.append(f'where "{column}" shows *, it has no other values than those published elsewhere')
        if np.isin(nodes, self.open).any():
            found.append(f'where "{column}" shows other values, it has those that are named beside them')
        return tuple(found)

    # What tests say.

    def patterns(self, tests: tuple[Test, ...]) -> Patterns:
        """The truth patterns that the tests can have on a value, and the share of each node's cover with each."""
        parts = []
        if len(nodes := self._are(_MEMBERS)):
            parts.append(self._sets.part(tests, nodes))
        if len(nodes := self._are(_SPAN)):
            parts.append(self._spans(nodes).part(tests, nodes, str(self.kind)))
        if len(nodes := self._are(_MASK)):
            parts += texts.parts(tests, nodes, self._masks, self.letters)
        if len(nodes := self._are(_MISSING)):
            null = np.array([[test.op == "null" for test in tests]], dtype=np.bool_)
            parts.append(Part(nodes, null, np.ones((1, 1)), np.ones((1, 1), dtype=np.bool_)))
        if len(nodes := self._are(_UNKNOWN)):
            parts.append(self._anything(tests, nodes, np.nan))
        guesses = self.anything
        if len(guesses := guesses[self._of[guesses] != _UNKNOWN]):
            parts.append(self._anything(tests, guesses, 0.0))
        return merged(parts, self.nodes)

    def _anything(self, tests: tuple[Test, ...], nodes: Ints, share: float) -> Part:
        """All patterns that some value has, or the missing one: each possible, with this share."""
        null = np.array([[test.op == "null" for test in tests]], dtype=np.bool_)
        truth = np.concatenate([null, universe(tests, self.kind)])
        truth = truth[numbered(truth)[1]]
        shape = (len(truth), len(nodes))
        return Part(nodes, truth, np.full(shape, share), np.ones(shape, dtype=np.bool_))

    # Values.

    def density(self, values: pa.Array, column: str = "", nodes: Ints | None = None) -> tuple[Ints, Ints, Floats]:
        """In which nodes each exact value lies, and how likely it is there: (value, node, share), one of each a pair.

        In an interval of fractions the share is a density, 1 / (high - low); shares are positive. What is not
        known of the given nodes (by default of any) is refused.
        """
        self.require_known(
            np.arange(self.nodes) if nodes is None else nodes, column, "has no probability for exact values"
        )
        values = as_kind(column, values, self.kind)
        found: list[tuple[Ints, Ints, Floats]] = []
        if len(self._are(_MEMBERS)):
            found.append(self._sets.density(values))
        null = np.flatnonzero(values.is_null().to_numpy(zero_copy_only=False))
        if self.missing is not None:
            found.append((null, np.full(len(null), self.missing), np.ones(len(null))))
        if len(some := self._are(_SPAN)):
            numbers = v.numbers(values)
            assert numbers is not None
            value, span, share = self._spans(some).density(numbers)
            found.append((value, some[span], share))
        if len(some := self._are(_MASK)):
            value, mask, share = texts.density(values.to_pylist(), self._masks, self.letters)
            found.append((value, some[mask], share))
        value, node, share = (np.concatenate(part) for part in zip(*found, strict=True))
        return value, node, share

    def draw(self, nodes: NDArray[np.integer], random: np.random.Generator, column: str = "") -> pa.Array:
        """One value for each given node, as likely as its share there."""
        self.require_known(np.unique(nodes), column, "cannot be drawn")
        of = self._of[nodes]
        drawn, places = [pa.array([], self.type)], [np.zeros(0, dtype=np.int64)]
        for what in range(1, 5):
            place = np.flatnonzero(of == what)
            if len(place):
                drawn.append(self._drawn(what, nodes[place], random).cast(self.type))
                places.append(place)
        return drawn[-1] if len(drawn) <= 2 else v.put_back(drawn, places)

    def _drawn(self, what: int, nodes: NDArray[np.integer], random: np.random.Generator) -> pa.Array:
        """One value for each of these nodes, which are all of a sort."""
        if what == _MEMBERS:
            return self._sets.draw(nodes, random)
        if what == _SPAN:
            return typed(self._spans(nodes).draw(random), self.kind, whole=self.whole)
        if what == _MASK:
            which = np.searchsorted(self._are(_MASK), nodes)
            return texts.draw(self._masks, which, self.letters, random)
        return pa.nulls(len(nodes), self.type)


def universe(tests: Sequence[Test], kind: v.Kind | None) -> Bools:
    """The truth patterns that some value of this kind has, known or not: (patterns, tests)."""
    if kind in ("number", "date"):
        return patterns_of_numbers(tests, kind)
    if kind == "boolean":
        return np.stack([holds(test, [False, True]) for test in tests], axis=1)
    sorts: dict[str, Callable[[Sequence[Test]], Bools]] = {
        "text": texts.universe,
        "number": lambda some: patterns_of_numbers(some, "number"),
        "boolean": lambda some: np.eye(len(some) + 1, len(some), dtype=np.bool_),
    }
    found = np.zeros((1, len(tests)), dtype=np.bool_)
    for sort, of in sorts.items():  # texts that spell numbers or truth values may be judged as these
        some = [i for i, test in enumerate(tests) if _literal_kind(test) == sort]
        if some:
            added = of([tests[i] for i in some])
            found = np.repeat(found, len(added), axis=0)
            found[:, some] = np.tile(added, (len(found) // len(added), 1))
    return found


def _literal_kind(test: Test) -> str:
    value = test.value
    one = next(iter(cast(frozenset[Scalar], value))) if isinstance(value, frozenset) else value
    if isinstance(one, bool):
        return "boolean"
    return "text" if one is None or isinstance(one, str) else "number"
