"""What can go wrong, in one line each: what was wrong, what was given, what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


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
        text = self.what
        if value is not None:
            text += f" ({value!r})"
        if self.got is not None:
            text += f": got {self.got}"
        return text + (f"; {self.do}" if self.do else "")

    def with_value(self) -> str:
        """The same line with the original value in it, for whoever holds the table."""
        return self._line(self.value)


class HierarchyError(InputError):
    """A hierarchy does not cover its column, is no tree, or has no single root."""


class InfeasibleError(JaliError):
    """No release satisfies the requirement; says which principle fails and the best that can be reached."""


class InternalError(JaliError):
    """A promise of jali's own code was broken: a bug, please report it. Nothing was written."""


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint that offers the nearest known name, or lists what there is.

    >>> nearest("zpi", ["zip", "age"])
    'did you mean "zip"?'
    """
    names = list(known)
    close = difflib.get_close_matches(name, names, n=1)
    if close:
        return f'did you mean "{close[0]}"?'
    return "known: " + ", ".join(names[:12]) + (" …" if len(names) > 12 else "")


def nearest_hidden(name: str, known: Iterable[str]) -> str:
    """A hint that offers the nearest known name but lists none: a file without a header has a person in their place.

    >>> nearest_hidden("zpi", ["zip", "age"])
    'did you mean "zip"?'
    """
    close = difflib.get_close_matches(name, list(known), n=1)
    return f'did you mean "{close[0]}"?' if close else "check its spelling, and that the first line names the columns"
