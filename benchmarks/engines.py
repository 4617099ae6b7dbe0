"""Tables that stay where they are: a million rows through databases, and Spark beside its own group-by and copy.

`JALI_POSTGRES` is the address of a database that may be written to, e.g. postgresql://user@host/db; without it Postgres
is left out. Seconds of the processor are those of this process and everything that it started. Spark alone, with files
that were made before: python -m benchmarks.engines spark ROWS FOLDER
"""

from __future__ import annotations

import os
import resource
import shutil
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks.rows import _file, large_file
from benchmarks.table import show

ROWS = 1_000_000  # in databases
SPARK_ROWS = int(os.environ.get("JALI_SPARK_ROWS", "20000000"))
NAMES = ("age", "sex", "race", "marital-status", "education", "native-country", "workclass")


def roles() -> dict[str, Any]:
    """The columns of the census."""
    import jali
    from jali.datasets.columns import rows

    return {"quasi": {name: jali.taxonomy(rows(name)) for name in NAMES}, "sensitive": ["occupation"]}


def tree_seconds() -> float:
    """Processor seconds of this process and of all below it, ended ones included."""
    parents: dict[int, int] = {}
    used: dict[int, int] = {}
    for each in Path("/proc").iterdir():
        if each.name.isdigit():
            try:
                told = (each / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(each.name)], used[int(each.name)] = int(told[1]), sum(map(int, told[11:15]))
    total = 0
    for pid, ticks in used.items():
        above = pid
        while above in parents and above != os.getpid():
            above = parents[above]
        total += ticks if above == os.getpid() else 0
    return total / os.sysconf("SC_CLK_TCK")


def clocked(work: Callable[[], Any]) -> tuple[float, float, Any]:
    """Seconds of the clock and of the processor, and what the work gave."""
    processor, wall = tree_seconds(), time.perf_counter()
    made = work()
    return time.perf_counter() - wall, tree_seconds() - processor, made


# -- databases ------------------------------------------------------------------------------------------------------


def through(place: str, target: str) -> list[float]:
    """Seconds of the clock of reading, searching, and writing with its checks."""
    import jali

    read, _, table = clocked(lambda: jali.read(place, **roles()))
    search, _, release = clocked(lambda: jali.generalize(table, jali.KAnonymity(5)))
    write, _, path = clocked(lambda: release.write(target, overwrite=True))
    assert jali.load(path).rows == table.rows
    return [read, search, write]


def databases(folder: Path) -> None:
    """A table of a database becomes another of the same database."""
    import duckdb

    source = _file(folder, ROWS, "parquet")
    table = pq.read_table(source)
    places = {"DuckDB": f"{folder / 'x.duckdb'}", "SQLite": f"{folder / 'x.sqlite'}"}
    with duckdb.connect(places["DuckDB"]) as connection:
        connection.execute("CREATE TABLE census AS SELECT * FROM read_parquet(?)", [str(source)])
    with closing(sqlite3.connect(places["SQLite"])) as lite, lite:
        kinds = ", ".join(f'"{name}" {"INTEGER" if name == "age" else "TEXT"}' for name in table.column_names)
        lite.execute(f"CREATE TABLE census ({kinds})")
        marks = ", ".join("?" * table.num_columns)
        for batch in table.to_batches(max_chunksize=1 << 16):
            columns = [column.to_pylist() for column in batch.columns]
            lite.executemany(f"INSERT INTO census VALUES ({marks})", zip(*columns, strict=True))
    rows = [[name, *through(f"{at}?table=census", f"{at}?table=public")] for name, at in places.items()]
    server = os.environ.get("JALI_POSTGRES")
    if server:
        _fill_postgres(server, table)
        rows.append(["Postgres", *through(f"{server}?table=census", f"{server}?table=public")])
    show(f"{ROWS:,} rows, k 5: seconds of the clock", ["database", "read", "search", "write and verify"], rows)


def _fill_postgres(server: str, table: Any) -> None:
    import psycopg

    from jali.core.formats import csv_lines, joined_lines

    with psycopg.connect(server) as connection, connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS census")
        kinds = ", ".join(f'"{name}" {"INTEGER" if name == "age" else "TEXT"}' for name in table.column_names)
        cursor.execute(f"CREATE TABLE census ({kinds})")
        with cursor.copy("COPY census FROM STDIN (FORMAT csv)") as copy:
            copy.write(joined_lines(csv_lines(table)).to_pybytes())


# -- Spark ----------------------------------------------------------------------------------------------------------


def spark(folder: Path, rows_of_file: int = SPARK_ROWS) -> None:
    """Count, search, write and verify beside Spark's own group-by and copy, in one session, after a warm-up."""
    import jali

    session = _session()
    source = made_elsewhere(folder, rows_of_file).absolute().as_uri()
    columns = [*NAMES, "occupation"]

    def frame() -> Any:
        return session.read.parquet(source)

    def publish() -> Any:
        steps = {}
        *steps["count"], table = clocked(lambda: jali.table(frame(), **roles()))
        *steps["search"], release = clocked(lambda: jali.generalize(table, jali.KAnonymity(5)))
        *steps["write and verify"], _ = clocked(lambda: release.write(folder / "out", engine=session, overwrite=True))
        return steps

    frame().limit(1000).groupBy(*columns).count().collect()
    session.sparkContext.parallelize(range(2), 2).map(lambda at: at).collect()  # starts the Python workers
    rows: list[list[Any]] = []
    *group, _ = clocked(lambda: frame().groupBy(*columns).count().write.format("noop").mode("overwrite").save())
    *copy, _ = clocked(lambda: frame().write.mode("overwrite").parquet((folder / "copy").as_uri()))
    shutil.rmtree(folder / "copy")
    own = publish()
    rows += [["Spark: group-by", *group], ["Spark: copy", *copy]]
    rows += [[f"jali: {name}", *seconds] for name, seconds in own.items()]
    floor = [group[0] + copy[0], group[1] + copy[1]]
    total = [sum(seconds[at] for seconds in own.values()) for at in (0, 1)]
    rows += [
        ["Spark: both", *floor],
        ["jali: all", *total],
        ["jali : Spark", *(a / b for a, b in zip(total, floor, strict=True))],
    ]
    show(f"Spark local[2], {rows_of_file:,} rows, k 5: seconds", ["step", "wall", "processor"], rows)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"The driver's Python: at most {peak:.2f} GB.\n")
    session.stop()


def made_elsewhere(folder: Path, rows: int) -> Path:
    """The census of so many rows, made by a process of its own, so that its memory does not count here."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(large_file, folder, rows).result()


def _session() -> Any:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    built = SparkSession.builder.master("local[2]").appName("jali benchmark")
    for key, value in {
        "spark.ui.enabled": "false", "spark.driver.memory": "2g", "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1", "spark.log.level": "OFF", "spark.sql.shuffle.partitions": "8",
    }.items():  # fmt: skip
        built = built.config(key, value)
    return built.getOrCreate()


def small() -> None:
    """Print the table of databases."""
    with tempfile.TemporaryDirectory() as folder:
        databases(Path(folder))


def run() -> None:
    """Print both tables."""
    small()
    with tempfile.TemporaryDirectory() as folder:
        spark(Path(folder))


if __name__ == "__main__" and sys.argv[1:2] == ["spark"]:
    spark(Path(sys.argv[3]), int(sys.argv[2]))
