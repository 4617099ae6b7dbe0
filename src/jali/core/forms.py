"""Forms: what a value of a TOML file may look like, how it is written, and which form a Python type has."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin


@dataclass(frozen=True)
class Form:
    """A form that a value may have, and how a message calls it."""

    words: str
    fits: Callable[[Any], bool]


def any_of(words: str, *forms: Form) -> Form:
    """A value that has one of these forms."""
    return Form(words, lambda x: any(form.fits(x) for form in forms))


def list_of(words: str, item: Form) -> Form:
    """A list of values of a form."""
    return Form(words, lambda x: isinstance(x, list) and all(map(item.fits, x)))


def table_of(words: str, value: Form) -> Form:
    """A table whose values have a form."""
    return Form(words, lambda x: isinstance(x, dict) and all(map(value.fits, x.values())))


def is_finite(value: float | Fraction) -> bool:
    """Whether a number is finite as a float too: 10**400 is not.

    >>> is_finite(0.5), is_finite(10**400), is_finite(float("inf"))
    (True, False, False)
    """
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and is_finite(value)


TEXT = Form("text", lambda x: isinstance(x, str))
FILE = Form("text", lambda x: isinstance(x, str))  # its path is relative to the job
NUMBER = Form("a number", _is_number)
TRUE = Form("true", lambda x: x is True)
BOOL = Form("true or false", lambda x: isinstance(x, bool))
TABLE = Form("a table", lambda x: isinstance(x, dict))
TEXTS = table_of("a table of texts", TEXT)
DATABASE = Form('{ database = "…", table = "…" }', lambda x: isinstance(x, dict))  # a message repeats nothing of it

_FORMS: dict[Any, Form] = {
    **dict.fromkeys((str, Literal), TEXT),
    **dict.fromkeys((int, float, Fraction), NUMBER),
    **dict.fromkeys((Iterable, Sequence, list, tuple), Form("a list", lambda x: isinstance(x, list))),
    **{bool: BOOL, Path: FILE, Mapping: TABLE, dict: TABLE},
    date: Form("a day", lambda x: isinstance(x, date)),
}
_UNIONS: dict[tuple[Form, ...], Form] = {
    (TEXT, FILE): FILE,
    (TEXT, TEXTS): any_of("a text or a table of texts", TEXT, TEXTS),
    (BOOL, TABLE): any_of("true, false or a table of levels", BOOL, TABLE),
}


def form_of(hint: Any) -> Form | None:
    """The form of a value of this type; None where TOML has no such values."""
    parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    forms = tuple(dict.fromkeys(form for part in parts if (form := _of_type(part)) is not None))
    if len(forms) < 2:
        return forms[0] if forms else None
    if forms == (TEXT, TABLE):
        choices = ", ".join(shown(choice) for part in parts if get_origin(part) is Literal for choice in get_args(part))
        return Form(f"{choices or 'text'} or a table of levels", lambda x: x != {} and (TEXT.fits(x) or TABLE.fits(x)))
    return _UNIONS.get(forms) or any_of(" or ".join(form.words for form in forms), *forms)


def _of_type(hint: Any) -> Form | None:
    """The form of a type that is no union."""
    form = _FORMS.get(get_origin(hint) or hint)
    return TEXTS if form is TABLE and [*map(form_of, get_args(hint))] == [TEXT, TEXT] else form


def shown(value: object) -> str:
    """A value as the job file spells it, cut where it is long."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 40 else text[:39] + "…"


_BARE = re.compile(r"[A-Za-z0-9_-]+")


def toml_text(data: Mapping[str, Any]) -> str:
    r"""What a TOML file says, as the text of that file: plain keys, then its tables, then its lists of tables.

    >>> print(toml_text({"quasi": {"zip code": {"bands": [5, 10]}}, "input": "a.csv"}), end="")
    input = "a.csv"
    <BLANKLINE>
    [quasi]
    "zip code" = { bands = [5, 10] }
    """
    tables = {key: value for key, value in data.items() if isinstance(value, Mapping)}
    several = {key: value for key, value in data.items() if _are_tables(value)}
    plain = {key: value for key, value in data.items() if key not in tables and key not in several}
    parts = [_entries(plain)] if plain else []
    parts += [f"[{_key(key)}]\n{_entries(value)}" for key, value in tables.items()]
    parts += [f"[[{_key(key)}]]\n{_entries(one)}" for key, value in several.items() for one in value]
    return "\n".join(parts)


def _are_tables(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, Mapping) for one in value)


def _entries(data: Mapping[str, Any]) -> str:
    return "".join(f"{_key(key)} = {_spelled(value)}\n" for key, value in data.items())


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _spelled(name)


def _spelled(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case int() | date():
            return str(value)
        case float():
            return repr(value)  # as Python, TOML writes 1e-05, inf and nan
        case Mapping():
            return (
                f"{{ {', '.join(f'{_key(key)} = {_spelled(one)}' for key, one in value.items())} }}" if value else "{}"
            )
        case list() | tuple():
            return f"[{', '.join(map(_spelled, value))}]"
    raise TypeError(f"TOML has no {type(value).__name__}")
