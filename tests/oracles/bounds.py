"""Bounds of a count by reading every published cell in every way that it can be read: one world for each reading."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any

from jali.query import tree as q
from oracles.estimates import satisfies


def over_worlds(rows: Sequence[Mapping[str, Iterable[Any]]], condition: q.Condition) -> tuple[int, int]:
    """The fewest and the most people who satisfy the condition; each row says what each of its cells may be."""
    people = [
        [dict(zip(row, reading, strict=True)) for reading in product(*row.values())]
        for row in rows
    ]  # fmt: skip
    # a world is one reading for each row; readings that satisfy the condition alike make alike worlds
    verdicts = [sorted({satisfies(condition, reading) for reading in readings}) for readings in people]
    counts = [sum(world) for world in product(*verdicts)]
    return min(counts), max(counts)
