"""Small tools that every room may use: arrays, files, forms, text, charts, progress, programs.

In this file: the door to verbs that a value offers as a method, though they live in a room above it. `release.extend()`
is a method of a release, but it publishes. A value asks for the verb by its name, and imports nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as in `jali/__init__.py`: this is imported with it
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_doors: list[Callable[[str], Any]] = []


def open_door(find: Callable[[str], Any]) -> None:
    """Say how a verb is found by its name; `jali/__init__.py` does so when it is imported."""
    _doors[:] = [find]


def verb(name: str) -> Callable[..., Any]:
    """The verb of that name."""
    found: Callable[..., Any] = _doors[0](name)
    return found
