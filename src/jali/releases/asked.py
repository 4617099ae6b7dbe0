"""What a caller of `generalize` asks for, checked."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path

import numpy as np

from jali.encoding.table import Table
from jali.errors import InputError, nearest, told
from jali.principles.base import exact, show
from jali.releases.base import Release, load
from jali.search.lattice import Lattice


def budget_of(suppress: float) -> Fraction:
    """The share of rows that may be suppressed."""
    budget = exact("suppress", suppress)
    if not 0 <= budget < 1:
        raise InputError("suppress is a share of the rows, at least 0 and below 1", got=repr(suppress))
    return budget


def require_table(asked_by: str, given: object) -> None:
    """Raise InputError for anything but a jali table."""
    if not isinstance(given, Table):
        raise InputError(f"{asked_by} needs a jali table", got=type(given).__name__, do="use jali.read or jali.table")


def release_of(asked_by: str, given: object) -> Release:
    """The release that is given, or that is saved in the folder that is given."""
    found = load(given) if isinstance(given, (str, Path)) else given
    if not isinstance(found, Release):
        do = "pass what jali.generalize and its like return, or the folder it was saved in"
        raise InputError(f"{asked_by} needs a release", got=type(found).__name__, do=do)
    return found


def require_two(table: Table) -> None:
    """Raise InputError where a release would be about one person."""
    if table.people < 2:
        raise InputError("a table about one person cannot be published", do="audit it instead: jali.audit(…)")


def node_of(table: Table, levels: Mapping[str, int]) -> tuple[int, ...]:
    """The lattice node of levels by column; a column that is not named stays as it is."""
    names = [column.name for column in table.quasi]
    for name in levels:
        if name not in names:
            raise InputError(f'levels: no quasi-identifier "{name}"', do=nearest(name, names))
    result = []
    for name in names:
        height = table.hierarchy(name).height
        level = levels.get(name, 0)
        if isinstance(level, bool) or not isinstance(level, (int, np.integer)) or not 0 <= level <= height:
            raise InputError(f'levels: column "{name}" has levels 0 to {height}', got=repr(told(level)))
        result.append(int(level))
    return tuple(result)


def failure(lattice: Lattice, node: tuple[int, ...]) -> str:
    """Why a node cannot be published."""
    counts = lattice.roller.counts(lattice.tally(node))
    broken = [p for p in lattice.principles if not bool(p.holds(counts).all())]
    if not broken:
        return "the suppressed rows would not keep the promises as a group of their own"
    reached = ", ".join(f"{p.title} {p.bound} (reaches {show(p.worst(counts))})" for p in broken)
    return f"these levels do not keep {reached} within the budget of suppressed rows"
