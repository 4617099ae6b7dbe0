"""Laws of rows that are counted while a file is read: against counting them one by one."""

from __future__ import annotations

import math
from collections import Counter
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jali
from jali.sources.distinct import Tally, counted_rows


def as_key(value: Any) -> Any:
    return "not a number" if isinstance(value, float) and math.isnan(value) else value


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    return [tuple(map(as_key, row)) for row in zip(*(column.to_pylist() for column in table.columns), strict=True)]


CELLS = {
    "text": (st.sampled_from(["", "a", "b", "ä", None]), pa.string()),
    "number": (st.sampled_from([0, 1, -7, 2**40, None]), pa.int64()),
    "share": (st.sampled_from([0.5, 1.0, math.nan, None]), pa.float64()),
    "day": (st.sampled_from([date(2020, 1, 1), date(1999, 12, 31), None]), pa.date32()),
    "truth": (st.sampled_from([True, False, None]), pa.bool_()),
}


@given(st.data())
def test_counted_rows_are_those_of_the_parts_together(data: Any) -> None:
    """Whatever the types, the parts and their order; missing values and empty texts are values of their own."""
    names = data.draw(st.lists(st.sampled_from([*CELLS]), min_size=1, unique=True))
    parts = []
    for _ in range(data.draw(st.integers(1, 4))):
        rows = data.draw(st.lists(st.tuples(*(CELLS[name][0] for name in names)), max_size=8))
        columns = {name: pa.array([row[at] for row in rows], CELLS[name][1]) for at, name in enumerate(names)}
        parts.append(pa.table(columns))
    found = counted_rows(names, [lambda part=part: part for part in parts])
    assert found is not None
    expected = Counter(row for part in parts for row in rows_of(part))
    assert dict(zip(rows_of(found.table), found.rows.tolist(), strict=True)) == dict(expected)
    again = counted_rows(names, [lambda part=part: part for part in parts[::-1]])
    assert again is not None
    assert rows_of(again.table) == rows_of(found.table)  # an order of their own, whatever the parts'


@pytest.mark.parametrize("columns", [1, 3, 40])
def test_a_tally_grows_in_rows_in_values_and_in_words(columns: int) -> None:
    """Codes that come to need more bits, and tables that come to need more entries, lose nothing."""
    random = np.random.default_rng(columns)
    tally, expected = Tally(columns), Counter[tuple[int, ...]]()
    for most in (1, 5, 300, 70_000):
        codes = [random.integers(0, most + 1, 40_000 if columns < 40 else 2_000) for _ in range(columns)]
        tally.add_codes(codes, np.ones(len(codes[0]), dtype=np.int64))
        expected.update(zip(*(own.tolist() for own in codes), strict=True))
    found, numbers = tally.all()
    assert dict(zip(zip(*(own.tolist() for own in found), strict=True), numbers.tolist(), strict=True)) == expected
    assert tally.used == len(expected)
    assert tally.rows == expected.total()


def file_of(path: Path, rows: int, *, distinct: bool = False) -> Path:
    random = np.random.default_rng(5)
    data = {
        "age": pa.array(np.arange(rows) if distinct else random.integers(0, 9, rows)),
        "zip": pa.array(random.choice(["a", "b", "c"], rows)),
        "ill": pa.array(random.choice(["flu", "cold", "ok"], rows)),
    }
    pq.write_table(pa.table(data), path, row_group_size=max(rows // 5, 1))
    return path


def test_a_file_that_is_counted_gives_the_release_of_one_that_is_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Groups, numbers and costs are the same; only who stands in which row of the file is not kept."""
    path = file_of(tmp_path / "rows.parquet", 600)
    roles: Any = {"quasi": ["age", "zip"], "sensitive": ["ill"]}
    held = jali.read(path, **roles)
    monkeypatch.setattr("jali.sources.distinct.MANY", 400)
    counted = jali.read(path, **roles)
    assert held.multiplicity is None
    assert counted.multiplicity is not None
    assert counted.rows == held.rows == 600
    assert counted.records <= 81
    for verb in (jali.generalize, jali.partition):
        one, other = (verb(table, [jali.KAnonymity(3), jali.DistinctDiversity(2)]) for table in (held, counted))
        assert one.groups.equals(other.groups)
        assert one.manifest.to_dict() == other.manifest.to_dict()


def test_rows_that_are_nearly_all_distinct_are_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counting them would take longer and more memory than they do."""
    monkeypatch.setattr("jali.sources.distinct.MANY", 64)
    table = jali.read(file_of(tmp_path / "rows.parquet", 400, distinct=True), quasi=["age", "zip"], sensitive=["ill"])
    assert table.multiplicity is None
    assert table.frame("pandas")["age"].tolist() == list(range(400))
