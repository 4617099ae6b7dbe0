"""What can go wrong, in one line each: what was wrong, what was given, what to do."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable
from numbers import Number
from pathlib import Path
from typing import Any

LONGEST = 500
"""Characters of what was given that a message repeats: it stays one line, whatever was passed."""


class JaliError(Exception):
    """Anything that jali reports on purpose; the command line prints it as one line."""


class InputError(JaliError):
    """The caller's data or parameters are wrong.

    `got` and `do` are printed; `value` (an original value of the table) is kept apart and printed
    only by `with_value()`, so that no message gives away what stands in the table.
    """

    def __init__(self, what: str, *, got: str | None = None, do: str | None = None, value: object = None) -> None:
        self.what, self.got, self.do, self.value = what, got, do, value
        super().__init__(self._line(None))

    def _line(self, value: object) -> str:
        text = _one_line(self.what)
        if value is not None:
            text += f" ({value!r})"
        if self.got is not None:
            text += f": got {_one_line(self.got)}"
        return text + (f"; {self.do}" if self.do else "")

    def with_value(self) -> str:
        """The same line with the original value in it, for whoever holds the table."""
        return self._line(self.value)


class ChangedError(InputError):
    """A table is no longer the one whose rows were counted."""

    def __init__(self) -> None:
        super().__init__("the table changed while it was read", do="run it again when nobody writes to it")


class UndeterminedError(InputError):
    """A count depends on `columns` that were not published: there is no estimate, but bounds, `low` and `high`."""

    def __init__(self, what: str, *, columns: Iterable[str], low: float, high: float, do: str | None = None) -> None:
        self.columns, self.low, self.high = tuple(columns), low, high
        super().__init__(what, do=do)


class HierarchyError(InputError):
    """A hierarchy does not cover its column, is no tree, or has no single root."""


class InfeasibleError(JaliError):
    """No release satisfies the requirement; says which principle fails and the best that can be reached."""


class InternalError(JaliError):
    """A promise of jali's own code was broken: a bug, please report it. Nothing was written."""


def _one_line(text: str) -> str:
    line = " ".join(text.splitlines())
    return line if len(line) <= LONGEST else line[:LONGEST] + "…"


def told(given: object) -> object:
    """What a message may repeat of what was given: of a frame or an array only what it is, for it may hold people.

    >>> told(5), told(10**5000)
    (5, 'a number of more than 300 digits')
    """
    if isinstance(given, int) and given.bit_length() > 1000:
        return "a number of more than 300 digits"
    holds_rows = hasattr(given, "__array__") or hasattr(given, "__dataframe__")
    return type(given).__name__ if holds_rows and not isinstance(given, (str, Number)) else given


def one_of(given: object, known: Iterable[str]) -> bool:
    """Whether something is one of the known names; an array or a frame is not, and does not compare item by item."""
    return isinstance(given, str) and given in known


def listed(given: object) -> tuple[Any, ...] | None:
    """What something that can be gone through holds; None for text and for what cannot.

    >>> listed(range(3)), listed("abc"), listed(3)
    ((0, 1, 2), None, None)
    """
    if isinstance(given, (str, bytes)):
        return None
    try:
        items = iter(given)  # type: ignore[call-overload]
    except TypeError:
        return None
    return tuple(items)


def path_of(given: object) -> Path:
    """The path that is given; InputError for what cannot be one.

    >>> path_of("a/b").name
    'b'
    """
    do = "name a file or a folder"
    if not isinstance(given, (str, os.PathLike)) or not isinstance(path := os.fspath(given), str):
        raise InputError("a path is text", got=type(given).__name__, do=do)
    try:
        possible = b"\0" not in os.fsencode(path)
    except UnicodeError:
        possible = False
    if not path or not possible:
        raise InputError("no path", got=ascii(path), do=do)
    return Path(path)


def nearest(name: object, known: Iterable[str]) -> str:
    """A hint that offers the nearest known name, or lists what there is.

    >>> nearest("zpi", ["zip", "age"])
    'did you mean "zip"?'
    """
    names = list(known)
    close = difflib.get_close_matches(name[:LONGEST], names, n=1) if isinstance(name, str) else []
    if close:
        return f'did you mean "{close[0]}"?'
    return "known: " + ", ".join(names[:12]) + (" …" if len(names) > 12 else "")


def nearest_hidden(name: str, known: Iterable[str]) -> str:
    """A hint that offers the nearest known name but lists none: a file without a header has a person in their place.

    >>> nearest_hidden("zpi", ["zip", "age"])
    'did you mean "zip"?'
    """
    close = difflib.get_close_matches(name, list(known), n=1)
    return f'did you mean "{close[0]}"?' if close else "check its spelling, and that a text file begins with names"
