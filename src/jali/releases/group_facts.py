"""What a release says of a quasi-identifier that each group shows in its own way: nodes, intervals, sets."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from jali.core.arrays import EXACT, Bools, Ints, starts
from jali.cover.cover import Cover
from jali.encoding import values as v
from jali.encoding.builders import Mask, Suppress
from jali.encoding.ends import Naming
from jali.encoding.hierarchy import FAMILIES, ROOT, Builder, Family, Taxonomy
from jali.encoding.table import Column
from jali.errors import InputError
from jali.releases.facts import Bounds, Facts, Floats, Labels, masks, places_of, texts_of, typed

LISTED = 100_000
"""Up to which width intervals that may also be missing are listed number by number."""


@dataclass(frozen=True, kw_only=True)
class GroupFacts(Facts):
    """A column that each group shows in its own way: one node for each different text."""

    display: ClassVar[str]
    words: ClassVar[str]  # what a cell is, for people
    names: ClassVar[str] = "values"  # what of a cell can be a value of the rows

    labels: Labels
    hidden: bool = False  # whether suppressed rows show *, which is no label of these
    naming: Naming | None = None  # which values of the rows are named; None where all are declared, or nothing is said

    @property
    def overlapping(self) -> bool:
        """Whether cells of different groups can cover the same values though no value is in both groups."""
        return False

    @property
    def cells(self) -> Labels:
        """The labels."""
        return self.labels

    def root(self, texts: Sequence[str | None]) -> int | None:
        """The place of `*` where rows are suppressed."""
        return texts.index(ROOT) if self.hidden and ROOT in texts else None

    def nodes_of(self, texts: Sequence[str | None]) -> list[int]:
        """The node that each published text is; -1 for suppressed rows."""
        position = {label: i for i, label in enumerate(self.labels)}
        if self.hidden:
            position.setdefault(ROOT, -1)
        return [position[text] for text in texts]

    @abstractmethod
    def covered(self, column: Column) -> Callable[[int], Ints]:
        """For a node, by its number: the values of the holder's column that it covers, in their order."""

    def in_words(self, level: int, example: str | None) -> str:
        """What a cell is, an example, and which values of the rows it names."""
        named = "" if self.naming is None else f"; {self.names} {self.naming.in_words}"
        return f"{self.words}, like {example or ROOT}{named}"

    def builder(self, name: str) -> Builder:
        """Values are enough, and which of them a label covers."""
        return Suppress()

    def _told(self, **own: Any) -> dict[str, Any]:
        named = {} if self.naming is None else {"named": self.naming.to_dict()}
        return {"display": self.display, **own} | ({"hidden": True} if self.hidden else {}) | named


@dataclass(frozen=True, kw_only=True)
class NodeFacts(GroupFacts):
    """Nodes of the hierarchy, each the smallest that covers its group.

    A node is known by its members where the domain is declared, else by its bounds where it is a band or a date.
    """

    display: ClassVar[str] = "taxonomy"
    words: ClassVar[str] = "the smallest node that covers each group"

    family: Family | None
    leaves: Labels | None = None  # the declared domain
    members: tuple[tuple[int, ...], ...] | None = None  # (nodes,) places in the leaves
    bounds: Bounds | None = None
    whole: bool = True

    @property
    def named(self) -> Labels | None:
        """The declared domain."""
        return self.leaves

    def root(self, texts: Sequence[str | None]) -> int | None:
        """The place of `*`, which is the root of the hierarchy."""
        return texts.index(ROOT) if ROOT in texts else None

    def cover(self, labels: pa.Array, root: int | None, kind: v.Kind) -> Cover:
        """Members, intervals, or what the words alone say."""
        texts = labels.to_pylist()
        nodes = self.nodes_of(texts)
        if self.leaves is not None and self.members is not None:
            return listed(self.leaves, self.members, nodes, kind, declared=True)
        missing = texts.index(None) if None in texts else None
        if self.bounds is None:
            return self._words(labels, missing, kind)
        low, high = _spans(self.bounds, nodes)
        return Cover.intervals(low, high, self.whole, kind, missing=missing, guessed=_guessed(root, low))

    def _words(self, labels: pa.Array, missing: int | None, kind: v.Kind) -> Cover:
        """Words without a declared domain: masked ones, or kept ones, each of which is itself; * may be anything."""
        if masks(self.family, labels.to_pylist()):
            return Cover.masked(labels, missing=missing)
        if self.family != "suppress":
            return Cover.unknown(len(labels), missing=missing)
        nodes = np.flatnonzero(np.arange(len(labels)) != pc.index(labels, ROOT).as_py())
        return Cover.grouped(v.as_kind("", labels.take(pa.array(nodes)), kind), nodes, len(labels))

    def covered(self, column: Column) -> Callable[[int], Ints]:
        """By the members, else by the hierarchy: a label means the lowest node that has it, or the numbers it names."""
        if self.leaves is not None and self.members is not None:
            return _by_name(column, self.leaves, self.members)
        hierarchy = column.hierarchy
        assert hierarchy is not None
        place: dict[str | None, tuple[int, int]] = {ROOT: (hierarchy.height, 0)}
        for level in range(hierarchy.height, -1, -1):
            place.update((text, (level, node)) for node, text in enumerate(hierarchy.levels[level].texts()))
        members = [hierarchy.members(level) for level in range(hierarchy.height + 1)]

        def covered(node: int) -> Ints:
            level, found = place.get(self.labels[node], (-1, -1))
            if level >= 0:
                return members[level][found]
            low, high = (None, None) if self.bounds is None else (self.bounds.low[node], self.bounds.high[node])
            if low is None or high is None:
                raise InputError(
                    f'the values of column "{column.name}" in the release are not those of this table',
                    do="use the table that the release was made from, with the same hierarchies",
                )
            return _between(column, low, high, whole=self.whole)

        return covered

    def builder(self, name: str) -> Builder:
        """A declared domain with its root; masks as masks."""
        if self.leaves is not None:
            return flat(self.leaves, name)
        return Mask() if self.family == "mask" else Suppress()

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        own: dict[str, Any] = {"made_by": self.family or "", "labels": list(self.labels)}
        if self.leaves is not None and self.members is not None:
            own |= {"leaves": list(self.leaves), "members": [list(m) for m in self.members]}
        elif self.bounds is not None:
            own |= self.bounds.to_dict() | {"whole": self.whole}
        return self._told(**own)

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> NodeFacts:
        """From JSON."""
        labels, family = texts_of(told["labels"]), next((one for one in FAMILIES if one == told["made_by"]), None)
        if family is None and told["made_by"] != "":
            raise ValueError("no hierarchy is made like this")
        leaves, members = members_of(told, len(labels)) if "members" in told else (None, None)
        bounds = Bounds.from_dict(told, len(labels))
        whole = True if bounds is None else bool(told["whole"])
        return cls(
            labels=labels, hidden=bool(told.get("hidden")), family=family, leaves=leaves, members=members,
            bounds=bounds, whole=whole,
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class IntervalFacts(GroupFacts):
    """From the least to the greatest number or day of the group; a group may also have missing values.

    Ends that the rows do not make public are rounded outward.
    """

    display: ClassVar[str] = "interval"
    words: ClassVar[str] = "the interval of each group"
    names: ClassVar[str] = "ends"

    bounds: Bounds
    missing: tuple[bool, ...]  # (nodes,)
    whole: bool
    crossing: bool = False  # whether intervals of different groups can overlap

    @property
    def overlapping(self) -> bool:
        """As it was found when the intervals were made."""
        return self.crossing

    def cover(self, labels: pa.Array, root: int | None, kind: v.Kind) -> Cover:
        """The numbers between both ends, each of which is in it."""
        texts = labels.to_pylist()
        nodes = self.nodes_of(texts)
        low, high = _spans(self.bounds, nodes)
        if not self.whole:
            high = closed(low, high)
        mixed = np.array([n >= 0 and self.missing[n] for n in nodes]) & ~np.isnan(low)
        missing, guessed = texts.index(None) if None in texts else None, _guessed(root, low)
        if mixed.any():
            return replace(_with_missing(low, high, mixed, missing, kind, whole=self.whole), guessed=guessed)
        return Cover.intervals(low, high, self.whole, kind, missing=missing, guessed=guessed)

    def covered(self, column: Column) -> Callable[[int], Ints]:
        """By the numbers."""
        numbers = v.numbers(column.values)
        assert numbers is not None
        missing = np.flatnonzero(np.isnan(numbers))
        order = np.argsort(numbers, kind="stable")
        known = numbers[order[: len(order) - len(missing)]]  # missing ones are sorted last

        def covered(node: int) -> Ints:
            low, high = self.bounds.low[node], self.bounds.high[node]
            some = slice(0, 0)
            if low is not None and high is not None:
                some = slice(int(np.searchsorted(known, low)), int(np.searchsorted(known, high, side="right")))
            return np.sort(np.concatenate([order[some], missing if self.missing[node] else missing[:0]]))

        return covered

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        crossing = {"crossing": True} if self.crossing else {}
        own = self.bounds.to_dict() | {"missing": list(self.missing), "whole": self.whole} | crossing
        return self._told(labels=list(self.labels), **own)

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> IntervalFacts:
        """From JSON."""
        labels, missing = texts_of(told["labels"]), told["missing"]
        bounds = Bounds.from_dict(told, len(labels))
        if bounds is None or not isinstance(missing, list) or len(missing) != len(labels):
            raise ValueError("the nodes do not have a bound each")
        return cls(
            labels=labels, hidden=bool(told.get("hidden")), bounds=bounds, missing=tuple(map(bool, missing)),
            whole=bool(told["whole"]), crossing=bool(told.get("crossing")), naming=Naming.from_dict(told.get("named")),
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class SetFacts(GroupFacts):
    """The values of the group, one by one.

    A group with words that are not public shows these as other values; one with such numbers or days shows an interval.
    """

    display: ClassVar[str] = "set"
    words: ClassVar[str] = "the set of each group's values"

    leaves: Labels  # the values that groups name
    members: tuple[tuple[int, ...], ...]  # (nodes,) places in the leaves; none for an interval
    others: frozenset[int] = frozenset()  # the nodes with values that are named nowhere
    intervals: IntervalFacts | None = None  # of groups that are shown so

    @property
    def overlapping(self) -> bool:
        """Whether some value is not named: which group it is in does not follow from the cells."""
        return bool(self.others) or self.intervals is not None

    @property
    def named(self) -> Labels | None:
        """The values that groups name."""
        return self.leaves

    def cover(self, labels: pa.Array, root: int | None, kind: v.Kind) -> Cover:
        """The members of each set, evenly; beside other values these are a guess."""
        texts = labels.to_pylist()
        nodes = self.nodes_of(texts)
        made = listed(self.leaves, self._guesses(), nodes, kind, declared=False)
        made = replace(made, open=tuple(i for i, n in enumerate(nodes) if n in self.others))
        if self.intervals is None:
            return made
        place = {text: node for node, text in enumerate(self.intervals.labels)}
        low, high = self.intervals.bounds.numbers([place.get(text, -1) for text in texts])
        holes = [text in place and self.intervals.missing[place[text]] for text in texts]
        low, high = (np.where(holes, np.nan, side) for side in (low, high))  # an interval or missing: nothing is known
        spans: Any = {
            "low": low,
            "high": high if self.intervals.whole else closed(low, high),
            "whole": self.intervals.whole,
        }
        return replace(made, **spans) if self.leaves else replace(made, kind=kind, values=None, **spans)

    def _guesses(self) -> tuple[tuple[int, ...], ...]:
        """The members of each node; where only others are shown, all that any group names."""
        every = tuple(range(len(self.leaves)))
        return tuple(own or (every if node in self.others else ()) for node, own in enumerate(self.members))

    def covered(self, column: Column) -> Callable[[int], Ints]:
        """By the names of the values: other values are those that no group names."""
        by_name = _by_name(column, self.leaves, self.members)
        named = {*self.leaves, None}
        other = np.array([i for i, text in enumerate(column.labels.to_pylist()) if text not in named], dtype=np.int64)
        spans = None if self.intervals is None else self.intervals.covered(column)
        place = {} if self.intervals is None else {text: node for node, text in enumerate(self.intervals.labels)}

        def covered(node: int) -> Ints:
            if spans is not None and self.labels[node] in place:
                return spans(place[self.labels[node]])
            return by_name(node) if node not in self.others else np.sort(np.concatenate([by_name(node), other]))

        return covered

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        members = [list(m) for m in self.members]
        own: dict[str, Any] = {"others": sorted(self.others)} if self.others else {}
        own |= {} if self.intervals is None else {"intervals": self.intervals.to_dict()}
        return self._told(labels=list(self.labels), leaves=list(self.leaves), members=members, **own)

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> SetFacts:
        """From JSON."""
        labels = texts_of(told["labels"])
        leaves, members = members_of(told, len(labels))
        others = frozenset(places_of(told.get("others", []), len(labels)))
        spans = IntervalFacts.from_dict(told["intervals"]) if "intervals" in told else None
        if any(not own and text not in (() if spans is None else spans.labels) and node not in others
               for node, (own, text) in enumerate(zip(members, labels, strict=True))):  # fmt: skip
            raise ValueError("a set has no members")
        return cls(
            labels=labels, hidden=bool(told.get("hidden")), leaves=leaves, members=members, others=others,
            intervals=spans, naming=Naming.from_dict(told.get("named")),
        )  # fmt: skip


def closed(low: Floats, high: Floats) -> Floats:
    """Upper ends of intervals of fractions that hold their largest value."""
    return np.where(low < high, np.nextafter(high, np.inf), high)


def members_of(told: Mapping[str, Any], nodes: int) -> tuple[Labels, tuple[tuple[int, ...], ...]]:
    """The leaves, and which of them each node has, from JSON."""
    leaves = texts_of(told["leaves"])
    members = tuple(places_of(own, len(leaves)) for own in told["members"])
    if len(members) != nodes:
        raise ValueError("the nodes do not have members each")
    return leaves, members


def flat(leaves: Labels, name: str) -> Taxonomy:
    """The taxonomy of a declared domain that has nothing but its root above it."""
    return Taxonomy(tuple((leaf, ROOT) for leaf in leaves if leaf is not None), name)


def listed(
    leaves: Labels, members: Sequence[Sequence[int]], nodes: Sequence[int], kind: v.Kind, *, declared: bool,
    share: list[float] | None = None,
) -> Cover:  # fmt: skip
    """Values one by one; what is suppressed (-1) may be any value, and others where none were declared."""
    every = range(len(leaves))
    covered = [every if n < 0 else members[n] for n in nodes]
    start = starts([len(m) for m in covered])
    flat = np.array([i for m in covered for i in m], dtype=np.int64)
    made = Cover.sets(typed(leaves, kind), start, flat, share)
    return made if -1 not in nodes or declared else replace(made, guessed=nodes.index(-1))


def _by_name(column: Column, leaves: Labels, members: Sequence[Sequence[int]]) -> Callable[[int], Ints]:
    codes = {text: code for code, text in enumerate(column.labels.to_pylist())}
    code = [codes.get(leaf, -1) for leaf in leaves]
    return lambda node: np.array(sorted(code[i] for i in members[node] if code[i] >= 0), dtype=np.int64)


def _spans(bounds: Bounds, nodes: list[int]) -> tuple[Floats, Floats]:
    """The bounds of these nodes; those of suppressed rows (-1) span all others."""
    low, high = bounds.numbers(nodes)
    if -1 in nodes and not np.isnan(low).all():
        low[nodes.index(-1)], high[nodes.index(-1)] = np.nanmin(low), np.nanmax(high)
    return low, high


def _guessed(root: int | None, low: Floats) -> int | None:
    return None if root is None or np.isnan(low[root]) else root


def _with_missing(low: Floats, high: Floats, mixed: Bools, missing: int | None, kind: v.Kind, *, whole: bool) -> Cover:
    """Intervals of which some may also be missing: sets of whole numbers or days, unknown where none can be listed."""
    listed_exactly = np.nanmax(high) - np.nanmin(low) <= LISTED and max(-np.nanmin(low), np.nanmax(high)) < EXACT
    if not whole or not listed_exactly:
        low, high = np.where(mixed, np.nan, low), np.where(mixed, np.nan, high)
        return Cover.intervals(low, high, whole, kind, missing=missing)
    first, last = int(np.nanmin(low)), int(np.nanmax(high))
    numbers = pa.array(np.arange(first, last + 1), pa.int64())
    values = numbers.cast(pa.int32()).cast(pa.date32()) if kind == "date" else numbers
    values = pa.concat_arrays([values, pa.nulls(1, values.type)])
    members = []
    for a, b, hole in zip(low, high, mixed, strict=True):
        inside = [] if np.isnan(a) else list(range(int(a) - first, int(b) - first + 1))
        members.append(inside + ([len(values) - 1] if hole or not inside else []))
    start = starts([len(m) for m in members])
    return Cover.sets(values, start, np.array([i for m in members for i in m], dtype=np.int64))


def _between(column: Column, low: float, high: float, *, whole: bool) -> Ints:
    """The values of a band: both ends of whole numbers, of fractions the lower one."""
    numbers = v.numbers(column.values)
    if numbers is None:
        return np.zeros(0, dtype=np.int64)
    below = numbers <= high if whole or low == high else numbers < high
    return np.flatnonzero((numbers >= low) & below).astype(np.int64)
