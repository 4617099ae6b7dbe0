"""Counts say how many people of each group have each value, whatever shape the entries come in."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jali.errors import InputError
from jali.principles.counts import Counts, GivenCounts, Sensitive, dense
from oracles.principles import counts_by_group, people_by_group

S = ("s1", "s2", "s3", None)
V = ("v1", "v2", "v3")
COLUMNS = (Sensitive("S", S), Sensitive("V", V))
JOINT = np.array([(s, v) for s in range(len(S)) for v in range(len(V))])

cases = st.tuples(st.integers(0, 3), st.integers(0, len(S) - 1), st.integers(0, len(V) - 1))
tables = st.lists(cases, min_size=1, max_size=40)
people = st.lists(st.tuples(st.integers(0, 6), cases), min_size=1, max_size=40)


def counted(rows: Sequence[tuple[int, int, int]], person: Sequence[int] | None = None) -> Counts:
    """Counts with one entry a row, in the rows' own order."""
    group, s, v = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    who = None if person is None else np.array(person, dtype=np.int64)
    return Counts(4, group, s * len(V) + v, np.ones_like(group), COLUMNS, JOINT, who)


def laid_out(counts: Counts, name: str) -> list[list[int]]:
    """The cells as a plain matrix."""
    cells = counts.cells(name)
    matrix = np.zeros((cells.groups, len(cells.column)), dtype=np.int64)
    matrix[cells.group, cells.value] = cells.n
    return matrix.tolist()


@given(tables, st.integers(0, 1))
def test_cells_count_the_rows(rows: list[tuple[int, int, int]], column: int) -> None:
    """Each cell is the number of rows of the group with the value; reference is the number in the table."""
    counts = counted(rows)
    expected = counts_by_group(rows, column)
    values = len(COLUMNS[column])
    matrix = [[expected.get(g, {}).get(v, 0) for v in range(values)] for g in range(4)]
    assert laid_out(counts, COLUMNS[column].name) == matrix
    assert counts.size.tolist() == [sum(row) for row in matrix]
    assert counts.reference(COLUMNS[column].name).tolist() == [sum(column) for column in zip(*matrix, strict=True)]


@given(people, st.integers(0, 1))
def test_a_person_counts_once_in_a_group_and_once_with_a_value(rows: list, column: int) -> None:
    """However many rows somebody has; the same in the reference."""
    counts = counted([case for _, case in rows], [person for person, _ in rows])
    found = people_by_group(rows, column)
    values = range(len(COLUMNS[column]))
    assert laid_out(counts, COLUMNS[column].name) == [
        [len(found.get(g, {}).get(v, ())) for v in values] for g in range(4)
    ]
    assert counts.size.tolist() == [len(set().union(*found.get(g, {}).values())) for g in range(4)]
    anybody = people_by_group([(person, (0, *case[1:])) for person, case in rows], column)[0]
    assert counts.reference(COLUMNS[column].name).tolist() == [len(anybody.get(v, ())) for v in values]


@given(people, st.booleans(), st.lists(st.integers(0, 2), min_size=4, max_size=4))
def test_merged_counts_are_the_counts_of_the_merged_rows(rows: list, named: bool, into: list[int]) -> None:
    """Joining groups gives what counting the joined rows gives; the reference stays the whole table's."""
    cases, person = [case for _, case in rows], [person for person, _ in rows] if named else None
    merged = counted(cases, person).merged(np.array(into))
    again = counted([(into[g], s, v) for g, s, v in cases], person)
    assert merged.groups == max(into) + 1
    assert merged.size.tolist() == again.size.tolist()[: merged.groups]
    assert laid_out(merged, "S") == laid_out(again, "S")[: merged.groups]
    assert merged.reference("S").tolist() == counted(cases, person).reference("S").tolist()


@given(people, st.booleans(), st.sampled_from(["S", "V"]))
def test_split_makes_the_other_columns_quasi_identifiers(rows: list, named: bool, name: str) -> None:
    """The finer groups are the distinct (group, other value) of the rows, each counted by itself."""
    person = [person for person, _ in rows] if named else None
    counts = counted([case for _, case in rows], person)
    finer, parent = counts.split(name)
    column = ["S", "V"].index(name)
    wider = [(who if named else i, ((c[0], c[2 - column]), c[1 + column])) for i, (who, c) in enumerate(rows)]
    found = people_by_group(wider, 0)
    cells = finer.cells(name)
    seen: list[tuple[int, dict[int, int]]] = [(int(g), {}) for g in parent]
    for g, v, n in zip(cells.group.tolist(), cells.value.tolist(), cells.n.tolist(), strict=True):
        seen[g][1][v] = n
    expected = [(key[0], {v: len(who) for v, who in values.items()}) for key, values in found.items()]
    assert sorted(seen, key=repr) == sorted(((g, dict(sorted(c.items()))) for g, c in expected), key=repr)
    assert finer.reference(name).tolist() == counts.reference(name).tolist()


@given(tables, st.randoms(use_true_random=False))
def test_the_order_of_entries_and_empty_entries_change_nothing(rows: list, random) -> None:
    """Entries may be shuffled, repeated with parts of the count, or count nobody."""
    shuffled = list(rows)
    random.shuffle(shuffled)
    counts = counted(shuffled)
    nobody = counted([(random.randrange(4), random.randrange(4), random.randrange(3)) for _ in range(5)])
    padded = Counts(
        4,
        np.concatenate([counts.group, nobody.group]),
        np.concatenate([counts.value, nobody.value]),
        np.concatenate([counts.n, np.zeros_like(nobody.n)]),
        COLUMNS,
        JOINT,
    )
    for name in ("S", "V"):
        cells = padded.cells(name)
        assert laid_out(padded, name) == laid_out(counted(rows), name)
        assert (cells.n > 0).all()
        assert (np.diff(cells.group * len(cells.column) + cells.value) > 0).all()


@pytest.mark.parametrize("groups", [3, 100_000])
def test_cells_are_the_same_whether_counted_or_sorted(groups: int) -> None:
    """Few possible pairs are counted in a table, many are sorted; both give sorted cells with the same sums."""
    random = np.random.default_rng(1)
    group, value = random.integers(0, groups, 500), random.integers(0, 7, 500)
    n = random.integers(0, 5, 500)
    column = (Sensitive("s", tuple("abcdefg")),)
    cells = Counts(groups, group, value, n, column, np.arange(7)[:, None]).cells()
    sums: dict[tuple[int, int], int] = {}
    for g, v, amount in zip(group.tolist(), value.tolist(), n.tolist(), strict=True):
        sums[g, v] = sums.get((g, v), 0) + amount
    expected = sorted((g, v, amount) for (g, v), amount in sums.items() if amount)
    assert list(zip(cells.group.tolist(), cells.value.tolist(), cells.n.tolist(), strict=True)) == expected


def test_sums_are_exact_beyond_what_floats_can_count() -> None:
    """2**60 + 1 people are one more than 2**60, and a large negative amount is not rounded either."""
    counts = dense(np.array([[2**60, 1]]))
    assert counts.size.tolist() == [2**60 + 1]
    assert counts.cells().add(np.array([-(2**60), 1])).tolist() == [1 - 2**60]


def test_a_column_that_is_not_there_is_named_with_its_nearest() -> None:
    """An unknown column, no column, and several columns are three different mistakes."""
    counts = counted([(0, 0, 0)])
    with pytest.raises(InputError, match='no sensitive column "W"'):
        counts.column("W")
    with pytest.raises(InputError, match="must say which sensitive column"):
        counts.column(None)
    with pytest.raises(InputError, match="needs a sensitive column"):
        Counts(1, np.array([0]), np.array([0]), np.array([1])).column(None)


def test_an_empty_table_counts_nobody() -> None:
    """No entries, no cells, no trouble."""
    nothing = np.zeros(0, dtype=np.int64)
    counts = Counts(2, nothing, nothing, nothing, COLUMNS, JOINT)
    assert counts.size.tolist() == [0, 0]
    assert counts.cells("S").n.tolist() == []
    assert counts.reference("V").tolist() == [0, 0, 0]


def test_published_counts_of_people_are_judged_as_they_are_and_never_added_up() -> None:
    """Nobody knows who is in two of the groups; an empty answer would pass for a group that holds."""
    none = np.zeros(0, dtype=np.int64)
    given = {"S": np.array([[0, 0, 2], [0, 1, 2]])}
    references = {"S": np.array([2, 2, 0, 0])}
    counts = GivenCounts(1, none, none, none, COLUMNS[:1], sizes=np.array([3]), given=given, references=references)
    assert laid_out(counts, "S") == [[2, 2, 0, 0]]
    assert counts.size.tolist() == [3]
    for refused in (counts.merged, lambda: counts.split("S")):
        with pytest.raises(InputError):
            refused()


@pytest.mark.parametrize("matrix", [np.zeros(3), np.array([[1, -1]])])
def test_a_matrix_that_cannot_be_counts_is_refused(matrix: np.ndarray) -> None:
    """Two dimensions, and nobody is counted negatively."""
    with pytest.raises(InputError):
        dense(matrix)
