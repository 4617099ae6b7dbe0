"""The tree of a condition: tests of one column, joined by AND, OR and NOT; and the text it reads as."""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass, field
from datetime import date
from decimal import Context, Decimal, InvalidOperation
from typing import ClassVar, Literal, cast, get_args

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
    if op == "null":
        if value is not None:
            raise InputError(
                f"column {shown(column)}: the null test has no value", got=shown_value(value), do="give None"
            )
        return None
    if op == "in":
        if not isinstance(value, (frozenset, set, list, tuple)) or not value:
            raise InputError(
                f"column {shown(column)}: IN needs some values", got=shown_value(value), do="give a set of them"
            )
        members = [scalar(column, v) for v in value]
        if mixed(members):
            raise InputError(f"column {shown(column)}: IN mixes numbers with TRUE or FALSE", do="use one kind of value")
        return frozenset(members)
    plain = scalar(column, value)
    if op == "like" and not isinstance(plain, str):
        raise InputError(
            f"column {shown(column)}: LIKE needs a pattern", got=shown_value(value), do="give a text such as 'a%'"
        )
    if op != "=" and isinstance(plain, bool):
        raise InputError(
            f"column {shown(column)}: TRUE and FALSE have no order", got=shown_value(value), do="compare with ="
        )
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
