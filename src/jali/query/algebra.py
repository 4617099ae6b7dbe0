"""The small language for counting people: conditions as values, from text or mappings, judged value by value.

    >>> to_text(parse("age between 20 and 30 or not smoker = true"))
    'age BETWEEN 20 AND 30 OR smoker != TRUE'

Truth is two-valued. A missing value satisfies `IS NULL` and no other test, and NOT is plain negation, so that
the people who satisfy a condition and those who satisfy its negation always add up to everybody; unlike in
SQL, NOT (age > 30) and age != 30 therefore include missing ages.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from jali.errors import InputError
from jali.query.match import holds
from jali.query.parse import parse
from jali.query.tree import And, Condition, Constant, Not, Op, Or, Scalar, Test, number_from, shown, to_text

__all__ = [
    "And",
    "Condition",
    "Constant",
    "Not",
    "Op",
    "Or",
    "Scalar",
    "Test",
    "assign",
    "columns",
    "from_mapping",
    "holds",
    "parse",
    "simplify",
    "tests",
    "to_text",
]


# The algebra.


def tests(condition: Condition) -> tuple[Test, ...]:
    """The distinct tests of a condition, in the order in which they first appear."""
    found: dict[Test, None] = {}
    waiting = [condition]
    while waiting:
        match waiting.pop():
            case Test() as test:
                found[test] = None
            case Not(part):
                waiting.append(part)
            case And(parts) | Or(parts):
                waiting.extend(reversed(parts))
    return tuple(found)


def columns(condition: Condition) -> frozenset[str]:
    """The columns that a condition asks about."""
    found: set[str] = set()
    waiting = [condition]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Test):
            found.add(part.column)
        elif isinstance(part, Not):
            waiting.append(part.part)
        elif isinstance(part, (And, Or)):
            waiting.extend(part.parts)
    return frozenset(found)


def simplify(condition: Condition) -> Condition:
    """The same condition without constants, double negations, repeated parts, or ANDs in ANDs and ORs in ORs."""
    match condition:
        case Not(part):
            inner = simplify(part)
            if isinstance(inner, Constant):
                return Constant(not inner.value)
            return inner.part if isinstance(inner, Not) else Not(inner)
        case And(parts):
            return _joined(And, parts, neutral=True)
        case Or(parts):
            return _joined(Or, parts, neutral=False)
    return condition


def _joined(kind: type[And] | type[Or], parts: Iterable[Condition], *, neutral: bool) -> Condition:
    flat: dict[Condition, None] = {}
    for part in map(simplify, parts):
        if isinstance(part, Constant):
            if part.value is not neutral:
                return part
        elif isinstance(part, (And, Or)) and isinstance(part, kind):
            flat.update(dict.fromkeys(part.parts))
        else:
            flat[part] = None
    if len(flat) > 1:
        return kind(tuple(flat))
    return next(iter(flat), Constant(neutral))


def assign(condition: Condition, truth: Mapping[Test, bool]) -> Condition:
    """The condition that is left, simplified, when the truth of some tests is known.

    Shannon's expansion: c = (t AND assign(c, {t: True})) OR (NOT t AND assign(c, {t: False})).
    """
    return simplify(_replaced(condition, truth))


def _replaced(condition: Condition, truth: Mapping[Test, bool]) -> Condition:
    match condition:
        case Test():
            return Constant(truth[condition]) if condition in truth else condition
        case Not(part):
            return Not(_replaced(part, truth))
        case And(parts):
            return And(tuple([_replaced(part, truth) for part in parts]))
        case Or(parts):
            return Or(tuple([_replaced(part, truth) for part in parts]))
    return condition


# From a mapping.


def from_mapping(where: Mapping[str, object]) -> Condition:
    """The condition that every column has the value, one of the values, or a value in the range given for it.

    >>> to_text(from_mapping({"age": (35, 45), "disease": {"flu", None}, "smoker": True}))
    "age BETWEEN 35 AND 45 AND (disease IN ('flu') OR disease IS NULL) AND smoker = TRUE"
    """
    if not isinstance(where, Mapping):
        raise InputError("condition: not a mapping", got=type(where).__name__, do='write it as in {"age": (35, 45)}')
    parts = tuple(_wanted(column, value) for column, value in where.items())
    return parts[0] if len(parts) == 1 else And(parts) if parts else Constant(True)


def _wanted(column: str, value: object) -> Condition:
    if value is None:
        return Test(column, "null", None)
    if isinstance(value, tuple):
        return _range(column, value)
    if isinstance(value, (set, frozenset, list)):
        null, present = Test(column, "null", None), [v for v in value if v is not None]
        if value and not present:
            return null
        found = Test(column, "in", present)
        return found if len(present) == len(value) else Or((found, null))
    return Test(column, "=", value)


def _range(column: str, ends: tuple[object, ...]) -> Condition:
    if len(ends) != 2 or all(end is None for end in ends):
        do = "give (low, high), with None for one open end, or a set for any of several values"
        got = "(None, None)" if len(ends) == 2 else f"a tuple of {len(ends)}"
        raise InputError(f"column {shown(column)}: not a range", got=got, do=do)
    if ends[0] is None:
        return Test(column, "<=", ends[1])
    low = Test(column, ">=", ends[0])
    if ends[1] is None:
        return low
    both = And((low, high := Test(column, "<=", ends[1])))
    problem = _disorder(low.value, high.value)
    if problem:
        raise InputError(
            f"column {shown(column)}: {problem}", got=shown(to_text(both)), do="give (low, high), two of a kind"
        )
    return both


def _disorder(low: Any, high: Any) -> str | None:
    if isinstance(low, str) is not isinstance(high, str):
        return "a range between a text and a number"
    numbers = [number_from(end) if isinstance(end, str) else end for end in (low, high)]
    if None not in numbers:  # "9" and "10" are in order for a column of numbers
        low, high = numbers
    return "the range ends before it begins" if low > high else None
