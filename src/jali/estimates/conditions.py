"""Conditions on boxes: which share of each box satisfies a condition, and what is certain of it.

Any condition is expanded column by column. A conjunction of conditions on single columns is asked of boxes that are
grouped by all of their columns but one: it judges these columns once for all boxes of a group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jali.core.arrays import Bools, Floats, Ints, added, combine, runs_of
from jali.cover.cover import Cover
from jali.cover.sets import Sets
from jali.encoding.values import Kind
from jali.errors import InputError
from jali.estimates.base import INDEPENDENT, kept
from jali.query.match import Patterns
from jali.query.tree import And, Condition, Constant, Test, assign, columns, simplify, tests

Codes = NDArray[np.integer]  # (boxes,)
Role = Literal["quasi", "sensitive", "other", "identifier"]
_TRUTHS = 4096  # of columns, each a few numbers a node, that are kept for the next question
_NESTS = 32  # of boxes as some columns show them, kept too
_SUMS = 1 << 21  # parts of all sums that are kept too, of one of those
_RARE = 4  # where fewer than one in four parts are wanted, only these are added up
_FEW = 64  # parts whose boxes often tell what all rest on


@dataclass(frozen=True, eq=False)
class BoxColumn:
    """A published column: `codes[row]` is the node that the row shows, and the cover says what that stands for."""

    name: str
    kind: Kind
    role: Role
    cover: Cover
    codes: NDArray[np.integer]  # (rows,)

    def __post_init__(self) -> None:
        codes = np.asarray(self.codes)
        if codes.dtype.kind not in "iu":
            raise InputError(f'column "{self.name}": codes must be whole numbers', got=str(codes.dtype))
        if len(codes) and not 0 <= int(codes.min()) <= int(codes.max()) < self.cover.nodes:
            raise InputError(f'column "{self.name}": a code that is no node', do=f"give codes below {self.cover.nodes}")
        if self.cover.kind is None:
            object.__setattr__(self, "cover", replace(self.cover, kind=self.kind))


def expanded(
    asked: Condition, own: list[tuple[Test, ...]], judged: Sequence[Patterns], codes: Sequence[Codes]
) -> tuple[Floats, Bools, Bools]:
    """The share of each box that satisfies the condition, and whether all of it and any of it may: each (boxes,).

    Column by column, what is left of the condition under each pattern, and the share of each box where it is left.
    """
    boxes = len(codes[0])
    left = {asked: (np.arange(boxes), np.ones(boxes))}  # the boxes where it may be left, and the share of each
    ends = {truth: (np.zeros(boxes), np.zeros(boxes, dtype=np.bool_)) for truth in (True, False)}
    for some, patterns, code in zip(own, judged, codes, strict=True):
        after: dict[Condition, list[tuple[Ints, Floats]]] = {}
        for condition, (box, share) in left.items():
            node = code[box]
            for rest, alike in split(condition, some, patterns).items():
                part, allowed = _together(patterns, alike)
                here = np.flatnonzero(allowed.take(node))
                if rest == Constant(False):  # of what fails only its being possible is asked
                    ends[False][1][box[here]] = True
                    continue
                piece = box[here], share[here] * part.take(node[here])
                if isinstance(rest, Constant):
                    ends[True][1][piece[0]] = True
                    ends[True][0][piece[0]] += piece[1]
                else:
                    after.setdefault(rest, []).append(piece)
        left = {rest: _merged(pieces, boxes) for rest, pieces in after.items()}
    return ends[True][0], ~ends[False][1], ends[True][1]


def _merged(pieces: list[tuple[Ints, Floats]], boxes: int) -> tuple[Ints, Floats]:
    """What is left of one condition after several others: each box once, with the sum of its shares."""
    if len(pieces) == 1:
        return pieces[0]
    share, there = np.zeros(boxes), np.zeros(boxes, dtype=np.bool_)
    for box, part in pieces:
        share[box] += part
        there[box] = True
    box = np.flatnonzero(there)
    return box, share[box]


def split(condition: Condition, some: tuple[Test, ...], patterns: Patterns) -> dict[Condition, list[int]]:
    """What is left of the condition, and the patterns that leave it so."""
    found: dict[Condition, list[int]] = {}
    for number, truth in enumerate(patterns.truth.tolist()):
        rest = assign(condition, dict(zip(some, truth, strict=True)))
        found.setdefault(rest, []).append(number)
    return found


def _together(patterns: Patterns, alike: list[int]) -> tuple[Floats, Bools]:
    """The share of each node that has one of these patterns, known where it can have no other: each (nodes,)."""
    allowed = np.logical_or.reduce(patterns.possible[alike], axis=0)
    others = patterns.possible.sum(axis=0) > patterns.possible[alike].sum(axis=0)
    return np.where(allowed & others, patterns.share[alike].sum(axis=0), allowed), allowed


class Fits(NamedTuple):
    """The boxes that may satisfy a condition."""

    box: Ints  # (fits,)
    share: Floats  # (fits,) of the box; nan where nothing is known of it
    surely: Bools  # (fits,)


def fitting(
    asked: Condition, some: Sequence[BoxColumn], own: list[tuple[Test, ...]], judged: Sequence[Patterns]
) -> Fits:
    """The boxes that may satisfy a condition on some of their columns, and the share of each that does."""
    share, surely, maybe = expanded(asked, own, judged, [column.codes for column in some])
    box = np.flatnonzero(maybe)
    return Fits(box, np.where(surely[box], 1.0, share[box]), surely[box])


def of_nodes(asked: Condition, own: tuple[Test, ...], patterns: Patterns) -> tuple[Floats, Bools, Bools]:
    """The share of each node that satisfies a condition on its column, whether all of it does, and any: (nodes,)."""
    alike = split(asked, own, patterns).get(Constant(True), [])
    part, allowed = _together(patterns, alike)
    return part, allowed & (patterns.possible.sum(axis=0) == patterns.possible[alike].sum(axis=0)), allowed


def unknown(columns: Sequence[BoxColumn], judged: Sequence[Patterns], codes: Sequence[Codes]) -> list[str]:
    """The columns whose cells in these rows may be anything."""
    found = zip(columns, judged, codes, strict=True)
    return [column.name for column, patterns, code in found if np.isnan(patterns.share[:, code]).any()]


def assumed(columns: Sequence[BoxColumn], judged: Sequence[Patterns], codes: Sequence[Codes]) -> tuple[str, ...]:
    """What the answer rests on in rows that are neither surely in nor surely out."""
    doubtful = [patterns.possible.sum(axis=0) > 1 for patterns in judged]
    return rests_on(list(zip(columns, doubtful, codes, strict=True)))[0]


@dataclass(frozen=True, eq=False)
class Truth:
    """Which share of each node of a column matches the conditions on the column: each (nodes,)."""

    share: Floats  # nan where nothing is known of the node
    sure: Bools  # whether every value of the node matches
    maybe: Bools  # whether some value may match
    doubtful: Bools  # whether some of its values satisfy other tests than the rest

    @cached_property
    def often(self) -> float:
        """The share of nodes in which some value may match."""
        return float(np.count_nonzero(self.maybe)) / max(len(self.maybe), 1)

    @cached_property
    def plain(self) -> bool:
        """Whether each node matches as a whole or not at all."""
        return bool(self.sure[self.maybe].all())

    @cached_property
    def doubts(self) -> bool:
        """Whether any node is doubtful."""
        return bool(self.doubtful.any())


def by_column(asked: Condition) -> dict[str, tuple[Condition, ...]] | None:
    """The parts of a conjunction by the one column that each names; None where a part names several."""
    found: dict[str, tuple[Condition, ...]] = {}
    for part in asked.parts if isinstance(asked, And) else (asked,):
        names = columns(part)
        if len(names) != 1:
            return None
        (name,) = names
        found[name] = (*found.get(name, ()), part)
    return found


def truth_of(column: BoxColumn, parts: tuple[Condition, ...]) -> Truth:
    """Which share of each node of the column matches all of these conditions."""
    sets = column.cover.listed
    if sets is not None and all(isinstance(part, Test) for part in parts):
        return _of_sets(sets, [part for part in parts if isinstance(part, Test)])
    asked = simplify(And(parts))
    own = tuple(dict.fromkeys(tests(asked)))
    patterns = column.cover.patterns(own)
    return Truth(*of_nodes(asked, own, patterns), patterns.possible.sum(axis=0) > 1)


def _of_sets(sets: Sets, asked: Sequence[Test]) -> Truth:
    """The same for nodes that are sets of known values: how many members of each satisfy every test.

    A node is doubtful where a test holds for some of its members only.
    """
    each = [sets.truth(test) for test in asked]
    both = each[0] if len(each) == 1 else np.logical_and.reduce(each)
    found = sets.counts(both)
    maybe, sure = found > 0, found == sets.size
    mixed = maybe ^ sure  # nodes have members
    if len(each) > 1:
        counted = [sets.counts(truth) for truth in each]
        mixed = np.logical_or.reduce([(count > 0) & (count < sets.size) for count in counted])
    share = found / sets.size if sets.even else np.where(sure, 1.0, sets.shares(both))
    return Truth(share, sure, maybe, mixed)


def fitting_boxes(columns: Sequence[BoxColumn], truths: Sequence[Truth]) -> Fits:
    """The boxes that may match the conditions on all columns; the most selective column is tried first."""
    order = sorted(range(len(columns)), key=lambda at: truths[at].often)
    box = np.flatnonzero(truths[order[0]].maybe.take(columns[order[0]].codes))  # take is quick for narrow codes
    for at in order[1:]:
        box = box[truths[at].maybe.take(columns[at].codes.take(box))]
    share, surely = np.ones(len(box)), np.ones(len(box), dtype=np.bool_)
    for column, truth in zip(columns, truths, strict=True):
        if not truth.plain:
            node = column.codes.take(box)
            share, surely = share * truth.share.take(node), surely & truth.sure.take(node)
    return Fits(box, share, surely)


def rests_on(doubts: Sequence[tuple[BoxColumn, Bools, Codes]]) -> tuple[tuple[str, ...], bool]:
    """What the answer rests on in boxes that are neither surely in nor surely out; and if no other could add to it.

    Of each column that may be doubtful: which of its nodes are, and the boxes' nodes. Often a few boxes rest on all
    that any could: columns that are doubtful, the same for each node, and independent.
    """
    said: dict[str, None] = {}
    several: Ints | int = 0
    every = len(doubts) > 1
    for column, nodes, here in doubts:
        doubtful = nodes.take(here)
        if not doubtful.any():
            every = False
            continue
        several = several + doubtful.astype(np.int64)
        every = every and column.cover.alike
        some = (here[:1] if column.cover.alike else np.unique(here[doubtful])).astype(np.int64)
        said |= dict.fromkeys(column.cover.assumes(some, column.name))
    together = int(np.max(several, initial=0)) > 1
    return (*said, INDEPENDENT) if together else tuple(said), every and together


class Sums(NamedTuple):
    """How many people of each part match the conditions on the last column: each (parts,)."""

    value: Floats  # expected number; nan where nothing is known of a node
    maybe: Floats  # the largest possible number
    sure: Floats  # the least possible number


@dataclass(frozen=True, eq=False)
class Nested:
    """Boxes of some columns, those that show the same in one link made one, sorted by stem and link.

    A stem is what every column shows but the last, which has the most nodes; the boxes of one stem and link are a part.
    """

    order: tuple[int, ...]  # the columns that were given, the last one last
    columns: tuple[BoxColumn, ...]  # in that order, of the boxes
    people: Floats  # (boxes,) or their mass
    begin: Ints  # (parts + 1,) where the boxes of each begin
    link: Ints  # (parts,)
    stems: tuple[BoxColumn, ...]  # all columns but the last, of the stems
    start: Ints  # (stems + 1,) where the parts of each begin
    _sums: dict[tuple[Condition, ...], Sums] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(cls, columns: Sequence[BoxColumn], link: Ints, people: Floats) -> Nested:
        """From columns, links and people of boxes."""
        order = sorted(range(len(columns)), key=lambda at: columns[at].cover.nodes)
        ordered = [columns[at] for at in order]
        stem, stem_first = combine([(c.codes, c.cover.nodes) for c in ordered[:-1]], len(link))
        links = int(link.max(initial=0)) + 1
        part, part_first = combine([(stem, len(stem_first)), (link, links)], len(link))
        last = (ordered[-1].codes, ordered[-1].cover.nodes)
        number, first = combine([(part, len(part_first)), last], len(link))
        return cls(
            tuple(order),
            tuple(replace(c, codes=c.codes[first]) for c in ordered),
            added(number, people, len(first)),
            np.searchsorted(part[first], np.arange(len(part_first) + 1)).astype(np.int64),
            link[part_first],
            tuple(replace(c, codes=c.codes[stem_first]) for c in ordered[:-1]),
            np.searchsorted(stem[part_first], np.arange(len(stem_first) + 1)).astype(np.int64),
        )

    def sums(self, last: Truth, asked: tuple[Condition, ...], part: Ints) -> Sums:
        """How many people of some parts match the conditions on the last column; few parts are added up alone."""
        node = self.columns[-1].codes
        if asked not in self._sums and len(part) * _RARE < len(self.link):
            size, box = runs_of(self.begin, part)
            return _summed(last, node.take(box), self.people.take(box), np.cumsum(size) - size)
        most = 1 + _SUMS // len(self.link)
        found = kept(self._sums, asked, lambda: _summed(last, node, self.people, self.begin[:-1]), most)
        maybe = found.maybe.take(part)
        return Sums(found.value.take(part), maybe, found.sure.take(part)) if not last.plain else Sums(*(maybe,) * 3)

    def fitting(self, truths: Sequence[Truth]) -> Fits:
        """The parts whose stems may match the conditions on their columns."""
        if not self.stems:
            every = np.arange(len(self.link))
            return Fits(every, np.ones(len(every)), np.ones(len(every), dtype=np.bool_))
        stem, share, surely = fitting_boxes(self.stems, truths)
        if len(self.link) == len(self.start) - 1:  # one part a stem
            return Fits(self.start.take(stem), share, surely)
        size, part = runs_of(self.start, stem)
        return Fits(part, np.repeat(share, size), np.repeat(surely, size))


def _summed(last: Truth, node: NDArray[np.integer], people: Floats, begin: Ints) -> Sums:
    """By what the last column of each box shows, and where the boxes of each part begin."""
    maybe = np.add.reduceat(last.maybe.take(node) * people, begin)
    if last.plain:
        return Sums(maybe, maybe, maybe)
    likely = np.where(last.sure, 1.0, np.where(last.maybe, last.share, 0.0)).take(node) * people
    return Sums(np.add.reduceat(likely, begin), maybe, np.add.reduceat(last.sure.take(node) * people, begin))


class Asked(NamedTuple):
    """A conjunction of conditions on single columns, and the parts that may match it."""

    boxes: Nested
    truths: list[Truth]  # in the order of their columns
    part: Ints  # (parts,)
    surely: Bools  # (parts,) whether the stem matches for certain
    value: Floats  # (parts,) expected number of matching people
    maybe: Floats  # (parts,) the largest possible number
    sure: Floats  # (parts,) the least possible number

    @property
    def link(self) -> Ints:
        """The link of each part: (parts,)."""
        return self.boxes.link.take(self.part)

    def rests_on(self, some: Ints) -> tuple[str, ...]:
        """What the answer rests on in those of these parts that hold boxes neither surely in nor surely out."""
        told = sorted(range(len(self.truths)), key=self.boxes.order.__getitem__)  # as the release names them
        doubts = [(self.boxes.columns[at], self.truths[at].doubtful) for at in told if self.truths[at].doubts]

        def based(parts: Ints) -> tuple[tuple[str, ...], bool]:
            box = self._doubted(parts)
            return rests_on([(column, doubtful, column.codes.take(box)) for column, doubtful in doubts])

        found, every = based(some[:: 1 + len(some) // _FEW])
        return found if every or len(some) <= _FEW else based(some)[0]

    def _doubted(self, some: Ints) -> Ints:
        """The boxes of some parts that may satisfy everything, but not surely do."""
        part, last = self.part[some], self.truths[-1]
        size, box = runs_of(self.boxes.begin, part)
        node = self.boxes.columns[-1].codes.take(box)
        return box[last.maybe.take(node) & ~(np.repeat(self.surely[some], size) & last.sure.take(node))]


@dataclass(frozen=True, eq=False)
class Separate:
    """Boxes that are asked column by column; what is found is kept for the next question."""

    columns: tuple[BoxColumn, ...]
    link: Ints  # (boxes,)
    people: Floats  # (boxes,) or their mass
    _truths: dict[Any, Truth] = field(default_factory=dict, init=False, repr=False)
    _nests: dict[tuple[int, ...], Nested] = field(default_factory=dict, init=False, repr=False)

    def truth(self, at: int, parts: tuple[Condition, ...]) -> Truth:
        """Which share of each node of a column matches these conditions."""
        return kept(self._truths, (at, parts), lambda: truth_of(self.columns[at], parts), _TRUTHS)

    def ask(self, separate: Mapping[str, tuple[Condition, ...]]) -> Asked:
        """The parts that may match the conditions, given by column name; other columns are free."""
        chosen = tuple(at for at, column in enumerate(self.columns) if column.name in separate)
        own = [self.columns[at] for at in chosen]
        boxes = kept(self._nests, chosen, lambda: Nested.of(own, self.link, self.people), _NESTS)
        asked = [separate[self.columns[chosen[at]].name] for at in boxes.order]
        truths = [self.truth(chosen[at], parts) for at, parts in zip(boxes.order, asked, strict=True)]
        part, share, surely = boxes.fitting(truths[:-1])
        value, maybe, sure = boxes.sums(truths[-1], asked[-1], part)
        if not maybe.all():  # nothing is to be known of stems whose boxes do not satisfy the rest
            there = np.flatnonzero(maybe)
            part, share, surely = part.take(there), share.take(there), surely.take(there)
            value, maybe, sure = value.take(there), maybe.take(there), sure.take(there)
        return Asked(boxes, truths, part, surely, share * value, maybe, surely * sure)
