"""Conditions on boxes: which share of each box satisfies a condition, and what is certain of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jali.core.arrays import Bools, Floats, Ints
from jali.cover.cover import Cover
from jali.cover.sets import Sets
from jali.encoding.values import Kind
from jali.errors import InputError
from jali.estimates.base import INDEPENDENT
from jali.query.match import Patterns
from jali.query.tree import And, Condition, Constant, Test, assign, columns, simplify, tests

Codes = NDArray[np.integer]  # (boxes,)
Role = Literal["quasi", "sensitive", "other"]


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


def unknown(columns: Sequence[BoxColumn], judged: Sequence[Patterns], codes: Sequence[Codes], rows: Bools) -> list[str]:
    """The columns whose cells in these rows may be anything."""
    return [
        column.name
        for column, found, code in zip(columns, judged, codes, strict=True)
        if np.isnan(found.share[:, code[rows]]).any()
    ]


def assumed(
    columns: Sequence[BoxColumn], judged: Sequence[Patterns], codes: Sequence[Codes], rows: Bools
) -> tuple[str, ...]:
    """What the answer rests on in rows that are neither surely in nor surely out."""
    found: dict[str, None] = {}
    several = np.zeros(int(rows.sum()), dtype=np.int64)
    for column, patterns, code in zip(columns, judged, codes, strict=True):
        here = code[rows]
        doubtful = (patterns.possible.sum(axis=0) > 1).take(here)
        several += doubtful
        if doubtful.any():
            nodes = np.flatnonzero(np.bincount(here[doubtful]))
            found |= dict.fromkeys(column.cover.assumes(nodes, column.name))
    return (*found, INDEPENDENT) if (several > 1).any() else tuple(found)


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


def rests_on(
    columns: Sequence[BoxColumn], truths: Sequence[Truth], box: Ints
) -> tuple[tuple[str, ...], bool]:  # fmt: skip
    """What the answer rests on in boxes that are neither surely in nor surely out; and if no other could add to it.

    Often a few boxes rest on all that any could: columns that are doubtful, the same for each node, and independent.
    """
    doubts = [(column, truth) for column, truth in zip(columns, truths, strict=True) if truth.doubts]
    found: dict[str, None] = {}
    several = np.zeros(len(box), dtype=np.int8)
    every = len(doubts) > 1
    for column, truth in doubts:
        here = column.codes.take(box)
        doubtful = truth.doubtful.take(here)
        if not doubtful.any():
            every = False
            continue
        several += doubtful
        every = every and column.cover.alike
        nodes = (here[:1] if column.cover.alike else np.unique(here[doubtful])).astype(np.int64)
        found |= dict.fromkeys(column.cover.assumes(nodes, column.name))
    together = int(several.max(initial=0)) > 1
    return (*found, INDEPENDENT) if together else tuple(found), every and together
