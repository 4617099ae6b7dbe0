"""Conditions as values: tests of one column, joined by AND, OR and NOT; their algebra, and the text they read as.

Truth is two-valued. A missing value satisfies `IS NULL` and no other test, and NOT is plain negation, so that
the people who satisfy a condition and those who satisfy its negation always add up to everybody; unlike in
SQL, NOT (age > 30) and age != 30 therefore include missing ages.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Context, Decimal, InvalidOperation
from typing import Any, ClassVar, Literal, cast, get_args

import numpy as np

from jali.errors import InputError

Scalar = str | bool | int | Decimal
Op = Literal["=", "<", "<=", ">", ">=", "in", "like", "null"]

_EXACT = Context(prec=1000)


@dataclass(frozen=True)
class Test:
    """One yes-or-no question about one column: `in` holds a frozenset, `null` None, the others one literal.

    Numbers are kept exactly, as int or Decimal (a float as its shortest decimal); dates are kept as ISO text.
    """

    __test__: ClassVar[bool] = False  # pytest collects classes of this name

    column: str
    op: Op
    value: object
    boolean: bool = field(init=False, repr=False)  # 1 == True in Python, but `a = 1` is not `a = TRUE`

    def __post_init__(self) -> None:
        if not isinstance(self.column, str) or not self.column:
            raise InputError("condition: a column is named by a text", got=shown_value(self.column), do="give its name")
        if self.op not in get_args(Op):
            raise InputError(
                f"column {shown(self.column)}: unknown operator", got=shown_value(self.op), do=f"use {get_args(Op)}"
            )
        value = _checked(self.column, self.op, self.value)
        members = value if isinstance(value, frozenset) else (value,)
        object.__setattr__(self, "value", value)
        object.__setattr__(self, "boolean", any(isinstance(v, bool) for v in members))


@dataclass(frozen=True)
class And:
    """True where every part is true; without parts, everywhere."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True)
class Or:
    """True where some part is true; without parts, nowhere."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True)
class Not:
    """True exactly where its part is false: NOT (age > 30) includes the missing ages."""

    part: Condition


@dataclass(frozen=True)
class Constant:
    """True everywhere or nowhere."""

    value: bool


Condition = Test | And | Or | Not | Constant


def _checked(column: str, op: Op, value: object) -> object:
    def refused(what: str, do: str) -> InputError:
        return InputError(f"column {shown(column)}: {what}", got=shown_value(value), do=do)

    if op == "null":
        if value is not None:
            raise refused("the null test has no value", "give None")
        return None
    if op == "in":
        if not isinstance(value, (frozenset, set, list, tuple)) or not value:
            raise refused("IN needs some values", "give a set of them")
        members = [scalar(column, v) for v in value]
        if mixed(members):
            raise InputError(f"column {shown(column)}: IN mixes numbers with TRUE or FALSE", do="use one kind of value")
        return frozenset(members)
    plain = scalar(column, value)
    if op == "like" and not isinstance(plain, str):
        raise refused("LIKE needs a pattern", "give a text such as 'a%'")
    if op != "=" and isinstance(plain, bool):
        raise refused("TRUE and FALSE have no order", "compare with =")
    return plain


def scalar(column: str, value: object) -> Scalar:
    """The value as a literal of the language: a text, a truth value or an exact number."""
    plain: object = value.item() if isinstance(value, np.generic) else value
    number: int | Decimal | None = None
    if isinstance(plain, bool):
        return plain
    if isinstance(plain, str):
        return str(plain)
    if isinstance(plain, date) and operator.eq(plain, plain):  # pandas' NaT is a date that differs from itself
        return plain.isoformat()
    if isinstance(plain, float):
        number = _exact(Decimal(float.__repr__(plain)))
    elif isinstance(plain, (int, Decimal)):
        number = _exact(Decimal(plain))
    if number is None:
        do = "give a text, a date, True, False or a number below 1e300, and None for missing values"
        raise InputError(f"column {shown(column)}: not a value to compare with", got=shown_value(plain), do=do)
    return number


def mixed(literals: list[Scalar]) -> bool:
    """Whether there are both numbers and truth values: 1 == True, so a set would silently lose one of them."""
    return len({isinstance(v, bool) for v in literals if not isinstance(v, str)}) > 1


def _exact(number: Decimal) -> int | Decimal | None:
    if not number.is_finite() or len(number.as_tuple().digits) > 400:
        return None
    if number and not -400 < number.adjusted() < 300:  # so that every literal has a nearest float
        return None
    whole = int(number)
    return whole if whole == number else _EXACT.normalize(number)


_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


def number_from(text: str) -> int | Decimal | None:
    """The exact number that the text spells, or None when it spells none below 1e300."""
    try:
        return _exact(Decimal(text)) if _NUMBER.fullmatch(text) else None
    except InvalidOperation:  # an exponent beyond what Decimal can hold
        return None


def shown(text: str) -> str:
    """The text on one line, cut where it is long."""
    line = " ".join(text.split())
    return line if len(line) <= 60 else line[:57] + "..."


def shown_value(value: object) -> str:
    return type(value).__name__ if isinstance(value, int) and abs(value) > 10**300 else shown(repr(value))


# The tree to text.

KEYWORDS = frozenset({"AND", "OR", "NOT", "BETWEEN", "IN", "IS", "NULL", "LIKE", "TRUE", "FALSE"})


def column_text(column: str) -> str:
    """The column as a condition names it, in double quotes where it must be."""
    bare = column.isidentifier() and column.upper() not in KEYWORDS
    return column if bare else '"' + column.replace('"', '""') + '"'


def literal_text(value: object) -> str:
    """The literal as a condition spells it."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)


def to_text(condition: Condition) -> str:
    r"""The canonical text of a condition; whatever `parse` returned is returned again by parsing it.

    >>> to_text(Or((Test("age", ">=", 65), Not(Test("marital-status", "in", {"Widowed", "Divorced"})))))
    'age >= 65 OR "marital-status" NOT IN (\'Divorced\', \'Widowed\')'
    """
    return _print(condition, 0)


def _print(condition: Condition, tightness: int) -> str:
    """Text that stands alone or between ORs (0), or needs parentheses as a part of OR (1) or of AND and NOT (2)."""
    match condition:
        case Constant(value):
            return literal_text(value)
        case Test():
            return _print_test(condition, "")
        case Not(Test(op="=" | "in" | "like" | "null") as test):
            return _print_test(test, "NOT ")
        case And((Test(column, ">=", low), Test(same, "<=", high))) if column == same:
            return f"{column_text(column)} BETWEEN {literal_text(low)} AND {literal_text(high)}"
        case Not(And((Test(column, ">=", low), Test(same, "<=", high)))) if column == same:
            return f"{column_text(column)} NOT BETWEEN {literal_text(low)} AND {literal_text(high)}"
        case Not(part):
            return "NOT " + _print(part, 2)
        case And((only,)) | Or((only,)):
            return _print(only, tightness)
        case And(()) | Or(()):
            return literal_text(isinstance(condition, And))
        case And(parts):
            text, loose = " AND ".join([_print(part, 2) for part in parts]), tightness > 1
        case Or(parts):
            text, loose = " OR ".join([_print(part, 1) for part in parts]), tightness > 0
    return f"({text})" if loose else text


def _print_test(test: Test, negation: str) -> str:
    name = column_text(test.column)
    if test.op == "null":
        return f"{name} IS {negation}NULL"
    if test.op == "in":
        members = sorted(cast(frozenset[Scalar], test.value), key=lambda v: (isinstance(v, str), v))
        return f"{name} {negation}IN ({', '.join(map(literal_text, members))})"
    if test.op == "like":
        return f"{name} {negation}LIKE {literal_text(test.value)}"
    return f"{name} {'!=' if negation else test.op} {literal_text(test.value)}"


# The algebra.


def _leaves(condition: Condition) -> Iterator[Test]:
    waiting = [condition]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Test):
            yield part
        elif isinstance(part, Not):
            waiting.append(part.part)
        elif isinstance(part, (And, Or)):
            waiting.extend(reversed(part.parts))


def tests(condition: Condition) -> tuple[Test, ...]:
    """The distinct tests of a condition, in the order in which they first appear."""
    return tuple(dict.fromkeys(_leaves(condition)))


def columns(condition: Condition) -> frozenset[str]:
    """The columns that a condition asks about."""
    return frozenset(test.column for test in _leaves(condition))


def tests_of(condition: Condition, column: str) -> tuple[Test, ...]:
    """The distinct tests of one column."""
    return tuple(test for test in tests(condition) if test.column == column)


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
