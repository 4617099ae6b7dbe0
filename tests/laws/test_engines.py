"""Engines count as the rows do, whatever holds the rows; what comes back names nobody."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import narwhals as nw
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jali
from jali.encoding.large import LargeTable
from jali.errors import InputError
from jali.sources.distinct import gathered
from jali.sources.engines.base import ROWS, Engine, Recoding, in_order, people_of
from jali.sources.engines.frames import LazyFrame
from oracles import engines as oracle
from oracles.engines import COLUMNS, PERSON, TABLES, arrow, counted, persons_of


def holders(table: pa.Table) -> Iterator[Engine]:
    """The same rows in the hands of different engines."""
    yield LazyFrame(nw.from_native(pl.from_arrow(table).lazy()))
    yield LazyFrame(nw.from_native(duckdb.from_arrow(table)))


@given(TABLES)
def test_an_engine_counts_combinations_and_people(rows: list[Any]) -> None:
    """Every engine gives what counting row by row gives, in the same order as every other."""
    table = arrow(rows)
    told = table.to_pylist()
    expected = oracle.combinations(told, COLUMNS)
    persons = oracle.people(told, COLUMNS, PERSON)
    answers = []
    for engine in holders(table):
        assert engine.header == table.column_names
        plain, own = engine.count(COLUMNS), engine.count(COLUMNS, person=PERSON)
        assert counted(plain) == expected == counted(own)
        assert len(plain.rows) == len(expected), "a combination stands twice"
        assert persons_of(own) == persons
        assert people_of(own) == sum(persons.values())
        assert (own.person is None) == (len({row[3] for row in rows}) == len(rows))
        answers.append((plain.table.to_pylist(), plain.rows.tolist(), own.table.to_pylist(), own.rows.tolist()))
    assert all(answer == answers[0] for answer in answers)


NAMED = [("x.y", "x"), (" a", "a "), ('"q"', "q"), ("(x)", "x"), ("c1", "c0")]


@pytest.mark.parametrize("names", NAMED)
def test_columns_are_counted_whatever_they_are_called(names: tuple[str, ...]) -> None:
    """A point, a blank, quotes or brackets in a name make no other column of it."""
    table = pa.table([pa.array([1, 1, 2]), pa.array(["a", "b", "b"])], names=list(names))
    expected = oracle.combinations(table.to_pylist(), names)
    for engine in holders(table):
        assert counted(engine.count(names)) == expected
        assert engine.sizes(names).many.tolist() == [3]


@pytest.mark.parametrize("names", [*NAMED, ("a", "A"), ("*", "a")])
@pytest.mark.parametrize("memory", ["1GB", 1])
def test_a_folder_is_read_whatever_its_columns_are_called(names: tuple[str, ...], memory: Any, tmp_path: Path) -> None:
    """Also where DuckDB would call them otherwise: two that differ in capitals only, and one that is called "*"."""
    pq.write_table(pa.table([pa.array([1, 1, 2] * 4), pa.array(["a", "b", "b"] * 4)], names=list(names)),
                   tmp_path / "part.parquet")  # fmt: skip
    for place in (tmp_path, tmp_path / "part.parquet"):
        found = jali.read(place, quasi=names, memory=400 if memory == 1 else memory)
        assert isinstance(found, LargeTable) is (memory == 1)
        assert {column.name for column in found.columns} == {*names}
        assert jali.partition(found, jali.KAnonymity(4)).manifest.counts["groups"] == 3
    with pytest.raises(InputError, match='DuckDB cannot be called "\\*"'):
        LazyFrame(nw.from_native(duckdb.sql('SELECT 1 AS "*", 2 AS a'))).count(["*", "a"])


@given(TABLES, st.lists(st.integers(0, 25), max_size=4))
def test_a_table_that_comes_in_parts_is_the_whole_table(rows: list[Any], cuts: list[int]) -> None:
    """Texts become codes, the missing one included; an empty part, and a part with other texts, change nothing."""
    table = arrow(rows)
    bounds = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    found = gathered(table.slice(low, high - low) for low, high in pairwise(bounds))
    assert found.to_pylist() == table.to_pylist()
    assert pa.types.is_dictionary(found.schema.field(COLUMNS[1]).type)
    assert (
        in_order(found.append_column(ROWS, pa.array([1] * len(rows))), COLUMNS).table.to_pylist()
        == in_order(table.append_column(ROWS, pa.array([1] * len(rows))), COLUMNS).table.to_pylist()
    )


@given(TABLES, st.lists(st.integers(0, 1), min_size=5, max_size=5))
def test_an_engine_counts_at_the_level_of_a_hierarchy(rows: list[Any], nodes: list[int]) -> None:
    """A join puts nodes in the place of values; what is missing, or is none of the values, is missing."""
    table, name = arrow(rows), COLUMNS[1]
    known = ["a", "b", "", "'"]
    recoding = Recoding(pa.array(known), np.array(nodes[:4], dtype=np.int64))
    expected = oracle.combinations(table.to_pylist(), COLUMNS, {name: dict(zip(known, nodes, strict=False))})
    for engine in holders(table):
        assert counted(engine.count(COLUMNS, recoded={name: recoding})) == expected
        persons = engine.count(COLUMNS, person=PERSON, recoded={name: recoding})
        assert counted(persons) == expected


@pytest.mark.parametrize("blank", [None, ""])
def test_a_row_of_nobody_is_refused_by_every_engine(blank: str | None) -> None:
    """As in a file: and no value is named."""
    table = pa.table({"x": [1, 2, 3], "p": ["ann", blank, "ann"]})
    for frame in (pl.from_arrow(table).lazy(), duckdb.from_arrow(table)):
        with pytest.raises(InputError, match='person column "p" is empty in 1 rows') as caught:
            jali.table(frame, quasi=["x"], person="p")
        assert "ann" not in str(caught.value)


def test_people_do_not_leave_an_engine() -> None:
    """Neither the names of persons nor their number of rows one by one: only who is alike, and how many are."""
    names = [f"person {i}" for i in range(500) for _ in range(2)]
    table = pa.table({"x": [i // 2 % 5 for i in range(1000)], "p": names})
    found = jali.table(duckdb.from_arrow(table), quasi=["x"], person="p")
    assert (found.rows, found.people) == (1000, 500)
    assert found.unnamed == ()
    assert not any("person" in str(column.values.to_pylist()) for column in found.columns)


def sqlite_file(path: Path, table: pa.Table) -> Path:
    """The table as the table `people` of an SQLite file."""
    types = {pa.int64(): "INTEGER", pa.string(): "TEXT", pa.bool_(): "BOOLEAN"}
    columns = ", ".join('"' + f.name.replace('"', '""') + '" ' + types[f.type] for f in table.schema)
    with sqlite3.connect(path) as connection:
        connection.execute(f"CREATE TABLE people ({columns})")
        marks = ", ".join("?" * table.num_columns)
        connection.executemany(f"INSERT INTO people VALUES ({marks})", [tuple(r.values()) for r in table.to_pylist()])
    connection.close()
    return path


@pytest.mark.filterwarnings("ignore:The 'future.infer_string'")  # of pandas, which Ibis asks for it
def test_an_ibis_table_counts_as_the_others(tmp_path: Path) -> None:
    """Through narwhals, people included."""
    ibis = pytest.importorskip("ibis")
    table = arrow([(1, "a", True, 0), (1, "a", True, 0), (None, None, None, 1), (2, "*", False, 1), (1, "a", True, 2)])
    frame = ibis.sqlite.connect(sqlite_file(tmp_path / "x.sqlite", table)).table("people")
    engine, other = LazyFrame(nw.from_native(frame)), LazyFrame(nw.from_native(duckdb.from_arrow(table)))
    assert counted(engine.count(COLUMNS)) == counted(other.count(COLUMNS))
    assert persons_of(engine.count(COLUMNS, person=PERSON)) == oracle.people(table.to_pylist(), COLUMNS, PERSON)
    recoding = Recoding(pa.array(["a", "*"]), np.array([0, 1], dtype=np.int64))
    expected = oracle.combinations(table.to_pylist(), COLUMNS, {COLUMNS[1]: {"a": 0, "*": 1}})
    assert counted(engine.count(COLUMNS, recoded={COLUMNS[1]: recoding})) == expected
