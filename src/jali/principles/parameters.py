"""Parameters of principles: checked once, kept as people wrote them, compared as exact numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction

from jali.errors import InputError, told
from jali.principles.base import exact

Number = int | float | Fraction
Label = str | None  # a value of a sensitive column as people read it; None is the missing value


def number(name: str, value: object, kind: str, fits: Callable[[Fraction], bool], *, example: str) -> Number:
    """A parameter as it was written, when it is a number that fits; text such as "1/3" becomes a fraction.

    >>> number("t", "1/3", "a number from 0 to 1", lambda t: 0 <= t <= 1, example="0.2")
    Fraction(1, 3)
    """
    try:
        amount = exact(name, value)
    except InputError:
        amount = None
    if amount is None or not fits(amount):
        raise InputError(f"{name} must be {kind}", got=repr(told(value)), do=f"write e.g. {name}={example}")
    if isinstance(value, float):
        return float(value)  # a numpy float becomes a plain one
    return int(amount) if amount.denominator == 1 else amount


def count(name: str, value: object, *, example: str) -> int:
    """A parameter that is a whole number of at least 1: 5.0 is 5."""
    return int(number(name, value, "a whole number of at least 1", _is_count, example=example))


def _is_count(amount: Fraction) -> bool:
    return amount >= 1 and amount.denominator == 1


def labels(name: str, values: Iterable[object]) -> tuple[Label, ...]:
    """Values of a column by their labels, each once: 39 is "39", None and NaN are the missing value."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise InputError(f"{name} must be a list of values", got=repr(values), do=f"write {name}=[{values!r}]")
    ordered = sorted(values, key=str) if isinstance(values, (set, frozenset)) else values
    return tuple(dict.fromkeys(_label(value) for value in ordered))


def _label(value: object) -> Label:
    missing = value is None or (isinstance(value, float) and math.isnan(value))
    return None if missing else str(value)


def listed(names: Iterable[Label]) -> str:
    """Values as a sentence names them.

    >>> listed(["flu", "cold", None])
    '"flu", "cold" and the missing value'
    """
    shown = ["the missing value" if name is None else f'"{name}"' for name in names]
    return shown[0] if len(shown) == 1 else ", ".join(shown[:-1]) + " and " + shown[-1]


def part(share: Fraction) -> str:
    """A share of people as a sentence names it: "20 %", or "1/3" where the percentage does not come out even.

    >>> part(Fraction(1, 5)), part(Fraction(1, 3)), part(Fraction("0.015"))
    ('20 %', '1/3', '1.5 %')
    """
    tenths = share * 1000
    return f"{float(share * 100):g} %" if tenths.denominator == 1 else str(share)
