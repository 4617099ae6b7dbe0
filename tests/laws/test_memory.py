"""Tables beyond memory: engines count by groups and levels, and what is published is what memory would have given."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import duckdb
import narwhals as nw
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jali.sources.engines.base import Cut, Engine, Recoding, TooMany
from jali.sources.engines.databases import DatabaseTable
from jali.sources.engines.datasets import ArrowDataset
from jali.sources.engines.embedded import DuckDB, SQLite
from jali.sources.engines.frames import LazyFrame
from oracles.engines import COLUMNS, TABLES, arrow, counted


def engines(table: pa.Table) -> Iterator[Engine]:
    """The same rows in the hands of every engine that needs no server."""
    yield LazyFrame(nw.from_native(pl.from_arrow(table).lazy()))
    yield LazyFrame(nw.from_native(duckdb.from_arrow(table)))
    yield ArrowDataset(ds.dataset(table))
    names = ", ".join('"' + name.replace('"', '""') + '"' for name in table.column_names)
    rows = [tuple(row.values()) for row in table.to_pylist()]
    with closing(sqlite3.connect(":memory:")) as lite, closing(duckdb.connect()) as duck:
        lite.execute(f"CREATE TABLE people ({names})")
        lite.executemany(f"INSERT INTO people VALUES ({', '.join('?' * table.num_columns)})", rows)
        yield DatabaseTable(SQLite(lite, "a database"), ("main", "people"))
        duck.register("arrow_people", table)
        duck.execute("CREATE TABLE people AS SELECT * FROM arrow_people")
        yield DatabaseTable(DuckDB(duck, "a database"), ("main", "people"))


# -- the door -------------------------------------------------------------------------------------------------------

NODES = {"n": {0: 0, 1: 1, 2: 2}, COLUMNS[1]: {"a": 0, "b": 1, "": 2, "*": 3}}
MISSING = 4
CUT = Cut("n", (1, 3), (0, Cut(COLUMNS[1], (2,), (1, -1)), 2))


def group_of(row: dict[str, Any]) -> int:
    """The group of a row by CUT, in words."""
    number, word = (NODES[name].get(row[name], MISSING) for name in ("n", COLUMNS[1]))
    if number < 1:
        return 0
    if number >= 3:
        return 2
    return 1 if word < 2 else -1


@given(TABLES, st.booleans())
def test_an_engine_counts_within_groups_and_says_how_many_have_how_many_rows(
    rows: list[Any], all_columns: bool
) -> None:
    """Rows are divided by the nodes of columns that need not be counted; the missing value has a node of its own."""
    table = arrow(rows)
    recoded = {
        name: Recoding(pa.array(list(nodes)), np.array(list(nodes.values())), MISSING) for name, nodes in NODES.items()
    }
    names = COLUMNS[:2] if all_columns else ("d",)
    told = [row for row in table.to_pylist() if group_of(row) >= 0]
    expected = Counter(
        (group_of(row), *(NODES[n].get(row[n], MISSING) if n in NODES else row[n] for n in names)) for row in told
    )
    sizes = Counter((key[0], number) for key, number in expected.items())
    for engine in engines(table):
        assert counted(engine.count(names, recoded=recoded, within=CUT)) == expected
        found = engine.sizes(names, recoded=recoded, within=CUT)
        assert Counter(dict(zip(zip(found.group.tolist(), found.size.tolist(), strict=True), found.many.tolist(),
                                strict=True))) == sizes  # fmt: skip
        plain = engine.count(names, recoded=recoded)
        whole = engine.sizes(names, recoded=recoded)
        assert int(whole.many.sum()) == len(plain.rows)
        assert int((whole.many * whole.size).sum()) == len(rows)
        assert counted(engine.count(names, recoded=recoded, most=len(plain.rows))) == counted(plain)
        with pytest.raises(TooMany):
            engine.count(names, recoded=recoded, most=len(plain.rows) - 1)
