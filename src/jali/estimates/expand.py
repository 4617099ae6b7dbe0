"""Conditions on boxes: which share of each box satisfies a condition, what is certain of it, and what that rests on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jali.encoding.values import Kind
from jali.errors import InputError
from jali.estimates.base import INDEPENDENT
from jali.estimates.condition import And, Condition, Constant, Not, Or, Test, simplify
from jali.estimates.cover import Cover
from jali.estimates.patterns import Bools, Floats, Ints, Patterns

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
        rest = simplify(_resolved(condition, dict(zip(some, truth, strict=True))))
        found.setdefault(rest, []).append(number)
    return found


def _together(patterns: Patterns, alike: list[int]) -> tuple[Floats, Bools]:
    """The share of each node that has one of these patterns, known where it can have no other: each (nodes,)."""
    allowed = np.logical_or.reduce(patterns.possible[alike], axis=0)
    others = patterns.possible.sum(axis=0) > patterns.possible[alike].sum(axis=0)
    return np.where(allowed & others, patterns.share[alike].sum(axis=0), allowed), allowed


def _resolved(condition: Condition, truth: Mapping[Test, bool]) -> Condition:
    """The condition with constants in place of the tests whose truth is known."""
    match condition:
        case Test():
            return Constant(truth[condition]) if condition in truth else condition
        case Not(part):
            return Not(_resolved(part, truth))
        case And(parts):
            return And(tuple([_resolved(part, truth) for part in parts]))
        case Or(parts):
            return Or(tuple([_resolved(part, truth) for part in parts]))
    return condition


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
