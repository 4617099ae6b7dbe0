"""What is kept of the groups of a table beyond memory: a group is published from this alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jali.core.arrays import Bools, Ints
from jali.encoding.table import Table


@dataclass(frozen=True, eq=False)
class Grown:
    """The groups of a table beyond memory, as far as they are published."""

    table: Table  # a record for each group and combination of the columns that are published as they are
    group: Ints  # (records,)
    groups: int
    members: tuple[Kept, ...]  # of each quasi-identifier
    checked: int
    first: Ints | None = None  # (groups, columns) codes of the first combination of each group, where they were cut


class Kept(NamedTuple):
    """Values that the groups have in a column, in narrow arrays."""

    codes: NDArray[np.integer]  # (members,)
    group: NDArray[np.integer]  # (members,)
    rows: NDArray[np.integer]  # (members,)


class Finished(NamedTuple):
    """A part of the table whose groups are found, as far as they are published."""

    groups: int
    members: tuple[Kept, ...]  # of each quasi-identifier
    codes: Mapping[str, NDArray[np.integer]]  # (records,) of each column
    rows: Ints  # (records,)
    group: NDArray[np.integer]  # (records,)


class Ended(NamedTuple):
    """A branch that was cut to the end."""

    kept: Finished
    first: Ints  # (groups, columns) codes of the first combination of each group
    checked: int
    rows: int


def joined(parts: Sequence[Finished]) -> Finished:
    """Several parts of the table that have the same groups, as one."""
    members = tuple(
        Kept(*map(np.concatenate, zip(*each, strict=True))) for each in zip(*(p.members for p in parts), strict=True)
    )
    codes = {name: np.concatenate([part.codes[name] for part in parts]) for name in parts[0].codes}
    rows, group = (np.concatenate([getattr(part, name) for part in parts]) for name in ("rows", "group"))
    return Finished(parts[0].groups, members, codes, rows, group)


def ends_of(owner: Ints, place: Ints, missing: int) -> Bools:
    """Which of these sorted pairs are the lowest and the highest of their owner, or the last before a missing value."""
    fresh = owner[1:] != owner[:-1]
    last = np.append(fresh, True)
    before = np.append(last[1:] & ~fresh & (place[1:] == missing), False)
    ends: Bools = np.append(True, fresh) | last | before
    return ends
