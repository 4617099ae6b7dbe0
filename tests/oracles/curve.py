"""Halving a line of records, one piece at a time, as it is said in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

Record = TypeVar("Record")


def halved(line: Sequence[Record], holds: Callable[[Sequence[Record]], bool]) -> list[Sequence[Record]]:
    """The pieces of a line that is cut in the middle (the first half the shorter one) while both halves hold."""
    middle = len(line) // 2
    left, right = line[:middle], line[middle:]
    if middle and holds(left) and holds(right):
        return halved(left, holds) + halved(right, holds)
    return [line]
