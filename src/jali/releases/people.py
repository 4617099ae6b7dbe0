"""The table of people: where a person can have several rows, what was promised is counted in people.

The rows of a person are not linked in what is published. So that the promises can be checked from the publication
alone, a small table says how many people each group has; for a column that a promise judges, how many of them have each
value; and only for t-closeness how many people of the whole table have it. Decision 22 says what that gives away.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from jali.core.arrays import Ints, counted
from jali.encoding.table import Table
from jali.errors import InputError
from jali.principles.base import Principle
from jali.principles.counts import Counts, GivenCounts, Sensitive
from jali.releases.column import Published
from jali.search.common import Partition

SCOPE, COLUMN, VALUE, PEOPLE = "scope", "sensitive column", "value", "people"


def people_table(
    table: Table, partition: Partition, columns: Sequence[Published], principles: Sequence[Principle]
) -> pa.Table:
    """People of each group, and of each group or the whole table and sensitive value where a promise needs them.

    `columns` are the published columns, their codes still in the order of the table's records.
    """
    counts = partition.counts(table)
    group = partition.group[table.frequencies.row_combination]
    first = np.zeros(counts.groups, dtype=np.int64)
    first[group] = np.arange(table.records)
    parts: list[tuple[str, Ints, str | None, Sequence[str | None], Ints]] = [
        ("group", np.arange(counts.groups), None, [None] * counts.groups, counts.size)
    ]
    needed = _needed(principles, counts.sensitive)
    for sensitive in (s for s in counts.sensitive if s.name in needed):
        cells, reference = counts.cells(sensitive.name), counts.reference(sensitive.name)
        parts.append(("group", cells.group, sensitive.name, [sensitive.labels[v] for v in cells.value], cells.n))
        present = np.flatnonzero(reference if needed[sensitive.name] else 0)
        whole = np.full(len(present), -1, dtype=np.int64)
        parts.append(("table", whole, sensitive.name, [sensitive.labels[v] for v in present], reference[present]))
    number = np.concatenate([part[1] for part in parts])
    quasi = [column for column in columns if column.role == "quasi"]
    _require_names(quasi)
    data = {column.name: column.labels.take(pa.array(column.codes[first[number]], mask=number < 0)) for column in quasi}
    lengths = [len(part[1]) for part in parts]
    return pa.table(
        {
            SCOPE: pa.array(np.repeat([part[0] for part in parts], lengths).tolist(), pa.string()),
            **data,
            COLUMN: pa.array([part[2] for part, n in zip(parts, lengths, strict=True) for _ in range(n)], pa.string()),
            VALUE: pa.array([text for part in parts for text in part[3]], pa.string()),
            PEOPLE: np.concatenate([part[4] for part in parts]),
        }
    )


def _needed(principles: Sequence[Principle], sensitive: Sequence[Sensitive]) -> dict[str, bool]:
    """The columns whose people the promises count by value, and whether those of the whole table too."""
    needed: dict[str, bool] = {}
    for principle in principles:
        named = getattr(principle, "sensitive", None)
        for name in [] if principle.judges_size_alone else [s.name for s in sensitive] if named is None else [named]:
            needed[name] = needed.get(name, False) or principle.needs_reference
    return needed


def _require_names(quasi: Sequence[Published]) -> None:
    for column in quasi:
        if column.name in (SCOPE, COLUMN, VALUE, PEOPLE):
            raise InputError(
                f'a quasi-identifier cannot be called "{column.name}" where a person can have several rows',
                do="rename it: the published table of people has a column of that name",
            )


def people_counts(
    people: pa.Table,
    columns: Sequence[Published],
    group: tuple[NDArray[np.int32], Ints],
    principles: Sequence[Principle],
    *,
    numbers: Ints,
    everyone: int,
) -> Counts:
    """People by published group and sensitive value, read back from the table of people.

    `group` is that of each distinct row, and a distinct row of each; `numbers` how many rows a distinct row stands for.
    Of a column that no promise judges they are at most its rows, and at most the people of the group: that is given.
    """
    sensitive = tuple(c.judged[0] for c in columns if c.judged is not None)
    needed, bounded = _needed(principles, sensitive), []
    try:
        size, given, reference = _read(people, columns, sensitive, group[1])
        _require(bool((size >= 1).all()) and bool((size <= counted(group[0], numbers)).all()))
        for column in (c for c in columns if c.judged is not None):
            name, rows = column.name, _rows_by_value(column, group[0], numbers, len(size))
            if name not in needed and not len(given[name]):
                bounded.append(name)
                given[name] = _at_most(rows, size)
            _require_fit(rows, size, given[name])
            if name in reference:
                _require_reference(given[name], reference[name])
        one_value = {name: found for name, found in reference.items() if int(found.sum()) == everyone}
        _require(all(name in one_value for name, whole in needed.items() if whole))
    except (KeyError, TypeError, ValueError):
        raise InputError("the table of people does not fit the published table", do="get the release again") from None
    none = np.zeros(0, dtype=np.int64)
    return GivenCounts(
        len(size), none, none, none, sensitive, sizes=size, given=given, references=one_value, bounded=tuple(bounded)
    )


def _read(
    people: pa.Table, columns: Sequence[Published], sensitive: Sequence[Sensitive], first: Ints
) -> tuple[Ints, dict[str, Ints], dict[str, Ints]]:
    """People of each group; by column those of each group and value, and of the whole table and value, if given.

    `first` is a distinct row of each group.
    """
    quasi = [column for column in columns if column.role == "quasi"]
    _require(sorted(people.column_names) == sorted([SCOPE, COLUMN, VALUE, PEOPLE, *(column.name for column in quasi)]))
    shown = [column.labels.take(pa.array(column.held[first])).to_pylist() for column in quasi]
    number = {key: index for index, key in enumerate(zip(*shown, strict=True))}
    size = np.zeros(len(first), dtype=np.int64)
    cells: dict[str, list[tuple[int, int, int]]] = {s.name: [] for s in sensitive}
    reference: dict[str, Ints] = {}
    value_of = {s.name: {label: v for v, label in enumerate(s.labels)} for s in sensitive}
    for row in people.to_pylist():
        name, amount = row[COLUMN], int(row[PEOPLE])
        if row[SCOPE] == "table":
            reference.setdefault(name, np.zeros(len(value_of[name]), dtype=np.int64))
            _put_once(reference[name], value_of[name][row[VALUE]], amount)
            continue
        index = number[tuple(row[column.name] for column in quasi)]
        if name is None:
            _put_once(size, index, amount)
        else:
            cells[name].append((index, value_of[name][row[VALUE]], amount))
    given = {name: np.array(sorted(found), dtype=np.int64).reshape(-1, 3) for name, found in cells.items()}
    return size, given, reference


def _put_once(people: Ints, at: int, amount: int) -> None:
    """Note how many people there are; a ValueError where that was said before."""
    _require(people[at] == 0)
    people[at] = amount


def _require(truth: bool) -> None:
    if not truth:
        raise ValueError


def _rows_by_value(column: Published, group: NDArray[np.int32], numbers: Ints, groups: int) -> Ints:
    """Rows of each group and value: (groups, values)."""
    assert column.judged is not None
    width = len(column.judged[0])
    key = group.astype(np.int64) * width + column.judged[1][column.held]
    return counted(key, numbers, groups * width).reshape(groups, width)


def _at_most(rows: Ints, size: Ints) -> Ints:
    """Group, value, and the most people who can have it there: (cells, 3)."""
    group, value = np.nonzero(rows)
    return np.stack((group, value, np.minimum(rows[group, value], size[group])), axis=1)


def _require_fit(rows: Ints, size: Ints, cells: Ints) -> None:
    """People can be fewer than rows, but only where there are rows; and every row is somebody's."""
    group, value, people = cells.T
    _require(np.array_equal(cells[:, :2], np.argwhere(rows)) and bool((people >= 1).all()))
    _require(bool((people <= rows[group, value]).all()) and bool((people <= size[group]).all()))
    _require(bool((np.bincount(group, weights=people, minlength=len(size)) >= size).all()))


def _require_reference(cells: Ints, reference: Ints) -> None:
    """Of the whole table at most as many have a value as in all groups, and at least as many as in one."""
    summed = np.bincount(cells[:, 1], weights=cells[:, 2], minlength=len(reference))
    largest = np.zeros(len(reference), dtype=np.int64)
    np.maximum.at(largest, cells[:, 1], cells[:, 2])
    _require(bool((reference <= summed).all()) and bool((reference >= largest).all()))
