"""Who is unique by which columns, by comparing everybody with everybody."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

Row = tuple[int, ...]


def unique(rows: Sequence[Row], persons: Sequence[int], at: int, columns: Sequence[int]) -> bool:
    """Whether no other person has a row that equals this one in the columns."""
    return not any(
        persons[other] != persons[at] and all(rows[other][c] == rows[at][c] for c in columns)
        for other in range(len(rows))
    )


def minimal_sets(rows: Sequence[Row], persons: Sequence[int], largest: int) -> dict[tuple[int, ...], int]:
    """For each set of columns the number of people with a row that it makes unique, while no part of it does."""
    found: dict[tuple[int, ...], set[int]] = {}
    every = range(len(rows[0]))
    for at in range(len(rows)):
        for size in range(1, largest + 1):
            for chosen in combinations(every, size):
                parts = [part for less in range(1, size) for part in combinations(chosen, less)]
                if unique(rows, persons, at, chosen) and not any(unique(rows, persons, at, p) for p in parts):
                    found.setdefault(chosen, set()).add(persons[at])
    return {chosen: len(people) for chosen, people in found.items()}


def unique_by_at_most(rows: Sequence[Row], persons: Sequence[int], size: int) -> int:
    """People with a row that some set of this number of columns makes unique."""
    sets = list(combinations(range(len(rows[0])), size))
    return len({persons[at] for at in range(len(rows)) if any(unique(rows, persons, at, s) for s in sets)})


def distinction(values: Sequence[Row]) -> Fraction:
    """Distinct values for each row."""
    return Fraction(len(set(values)), len(values))


def separation(values: Sequence[Row]) -> Fraction:
    """The share of pairs of rows that differ; nothing differs in a single row."""
    pairs = list(combinations(values, 2))
    return Fraction(sum(a != b for a, b in pairs), len(pairs)) if pairs else Fraction(0)


def certain(groups: Sequence[Row], values: Sequence[int | None], persons: Sequence[int]) -> Fraction:
    """The share of the people with a known value who have one that everybody in their group with a known value has."""
    known = [at for at in range(len(values)) if values[at] is not None]
    alike = {persons[at] for at in known if len({values[other] for other in known if groups[other] == groups[at]}) == 1}
    everybody = {persons[at] for at in known}
    return Fraction(len(alike), len(everybody)) if everybody else Fraction(0)
