"""People beside rows: where a person can have several rows, what was promised is counted in people.

The rows of a person are not linked in what is published. So that the promises can be checked from the publication
alone, a small table says how many people each group has, and how many of them have each sensitive value.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from jali.encoding.table import Table
from jali.errors import InputError
from jali.principles.counts import Counts, GivenCounts, Ints
from jali.releases.published import Published
from jali.search.groups import Partition

SCOPE, COLUMN, VALUE, PEOPLE = "scope", "sensitive column", "value", "people"


def people_table(table: Table, partition: Partition, columns: Sequence[Published]) -> pa.Table:
    """People of each group, of each group and sensitive value, and of the whole table and each sensitive value.

    `columns` are the published columns, their codes still in the order of the table's records.
    """
    counts = partition.counts(table)
    group = partition.group[table.frequencies.row_combination]
    first = np.zeros(counts.groups, dtype=np.int64)
    first[group] = np.arange(table.records)
    parts: list[tuple[str, Ints, str | None, Sequence[str | None], Ints]] = [
        ("group", np.arange(counts.groups), None, [None] * counts.groups, counts.size)
    ]
    for sensitive in counts.sensitive:
        cells, reference = counts.cells(sensitive.name), counts.reference(sensitive.name)
        present = np.flatnonzero(reference)
        parts.append(("group", cells.group, sensitive.name, [sensitive.labels[v] for v in cells.value], cells.n))
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


def _require_names(quasi: Sequence[Published]) -> None:
    for column in quasi:
        if column.name in (SCOPE, COLUMN, VALUE, PEOPLE):
            raise InputError(
                f'a quasi-identifier cannot be called "{column.name}" where a person can have several rows',
                do="rename it: the published table of people has a column of that name",
            )


def people_counts(people: pa.Table, columns: Sequence[Published], group: tuple[NDArray[np.int32], Ints]) -> Counts:
    """People by published group and sensitive value, read back from the table of people."""
    quasi = [column for column in columns if column.role == "quasi"]
    _, first = group
    shown = [column.labels.take(pa.array(column.codes[first])).to_pylist() for column in quasi]
    number = {key: index for index, key in enumerate(zip(*shown, strict=True))}
    size = np.zeros(len(first), dtype=np.int64)
    sensitive = tuple(c.judged[0] for c in columns if c.judged is not None)
    cells: dict[str, list[tuple[int, int, int]]] = {s.name: [] for s in sensitive}
    reference = {s.name: np.zeros(len(s), dtype=np.int64) for s in sensitive}
    value_of = {s.name: {label: v for v, label in enumerate(s.labels)} for s in sensitive}
    try:
        for row in people.to_pylist():
            name, amount = row[COLUMN], int(row[PEOPLE])
            if row[SCOPE] == "table":
                reference[name][value_of[name][row[VALUE]]] = amount
                continue
            index = number[tuple(row[column.name] for column in quasi)]
            if name is None:
                size[index] = amount
            else:
                cells[name].append((index, value_of[name][row[VALUE]], amount))
        given = {name: np.array(sorted(found), dtype=np.int64).reshape(-1, 3) for name, found in cells.items()}
        for column in columns:
            if column.judged is not None:
                _require_fit(column, group, size, given[column.name], reference[column.name])
        _require(bool((size >= 1).all()) and bool((size <= np.bincount(group[0])).all()))
    except (KeyError, TypeError, ValueError):
        raise InputError("the table of people does not fit the published table", do="get the release again") from None
    none = np.zeros(0, dtype=np.int64)
    return GivenCounts(len(size), none, none, none, sensitive, sizes=size, given=given, references=reference)


def _require(truth: bool) -> None:
    if not truth:
        raise ValueError


def _require_fit(
    column: Published, group: tuple[NDArray[np.int32], Ints], size: Ints, cells: Ints, reference: Ints
) -> None:
    """People can be fewer than rows, but only where there are rows; and every row is somebody's."""
    assert column.judged is not None
    width = len(column.judged[0])
    rows = np.bincount(group[0].astype(np.int64) * width + column.judged[1][column.codes], minlength=len(size) * width)
    key, people = cells[:, 0] * width + cells[:, 1], cells[:, 2]
    _require(np.array_equal(key, np.flatnonzero(rows)) and bool((people >= 1).all()))
    _require(bool((people <= rows[key]).all()) and bool((people <= size[cells[:, 0]]).all()))
    _require(bool((np.bincount(cells[:, 0], weights=people, minlength=len(size)) >= size).all()))
    summed = np.bincount(cells[:, 1], weights=people, minlength=width)
    largest = np.zeros(width, dtype=np.int64)
    np.maximum.at(largest, cells[:, 1], people)
    _require(bool((reference <= summed).all()) and bool((reference >= largest).all()))
