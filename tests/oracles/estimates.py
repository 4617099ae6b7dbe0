"""Estimates by writing out every cell of every box: obvious, slow, in exact fractions."""

from __future__ import annotations

import operator
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product
from math import prod
from typing import Any, NamedTuple

from jali.query import tree as q

Node = Mapping[Any, Fraction]  # the values that a published cell may be, and the probability of each (0: only possible)

ORDER = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq}


class Box(NamedTuple):
    """A published row: how many people it stands for and what each of its cells may be."""

    mass: Fraction
    nodes: tuple[Node, ...]


def even(values: Sequence[Any]) -> Node:
    """A cell that is each of these values equally likely."""
    return {value: Fraction(1, len(values)) for value in values}


def cells(nodes: Sequence[Node]) -> Iterator[tuple[tuple[Any, ...], Fraction]]:
    """The cells of a box and the probability of each."""
    for chosen in product(*(node.items() for node in nodes)):
        yield tuple(value for value, _ in chosen), prod((share for _, share in chosen), start=Fraction(1))


def satisfies(condition: q.Condition, record: Mapping[str, Any]) -> bool:
    """Whether one person, whose values are all known, satisfies the condition."""
    match condition:
        case q.Constant(value):
            return value
        case q.Not(part):
            return not satisfies(part, record)
        case q.And(parts):
            return all(satisfies(part, record) for part in parts)
        case q.Or(parts):
            return any(satisfies(part, record) for part in parts)
        case q.Test(column, op, literal):
            value = record[column]
            if op == "null" or value is None:
                return op == "null" and value is None
            if op == "in":
                return any(value == one for one in literal)  # type: ignore[union-attr]
            if op == "like":
                pattern = "".join({"%": ".*", "_": "."}.get(sign, re.escape(sign)) for sign in str(literal))
                return re.fullmatch(pattern, value, re.DOTALL) is not None
            return bool(ORDER[op](value, literal))


def count(boxes: Sequence[Box], names: Sequence[str], condition: q.Condition) -> tuple[Fraction, Fraction, Fraction]:
    """How many people satisfy the condition: the estimate, what is certain, what is possible."""
    value = low = high = Fraction(0)
    for box in boxes:
        found = [(satisfies(condition, dict(zip(names, cell, strict=True))), share) for cell, share in cells(box.nodes)]
        value += box.mass * sum(share for holds, share in found if holds)
        low += box.mass * all(holds for holds, _ in found)
        high += box.mass * any(holds for holds, _ in found)
    return value, low, high


def frame(boxes: Sequence[Box], chosen: Sequence[int]) -> dict[tuple[Any, ...], Fraction]:
    """How many people each cell of some columns has."""
    found: defaultdict[tuple[Any, ...], Fraction] = defaultdict(Fraction)
    for box in boxes:
        for cell, share in cells([box.nodes[i] for i in chosen]):
            found[cell] += box.mass * share
    return {cell: people for cell, people in found.items() if people}
