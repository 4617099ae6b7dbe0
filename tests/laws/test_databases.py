"""Tables in databases and folders: counted where they lie, published where they should go, read back as they were."""

from __future__ import annotations

import json
import os
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import date, datetime
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings

import jali
from jali.core import files as core_files
from jali.encoding.large import LargeTable
from jali.errors import InputError, InternalError
from jali.job import Job
from jali.sources.engines.base import Recoding
from jali.sources.engines.databases import DatabaseTable, Names
from jali.sources.engines.datasets import ArrowDataset, dataset_at, engine_at, engine_of
from jali.sources.engines.embedded import opened
from jali.sources.engines.locations import Location, located, of_job, place_of, target_of
from oracles import engines as oracle
from oracles.engines import COLUMNS, PERSON, TABLES, arrow, counted, persons_of

K = jali.KAnonymity(3)
ROWS = pa.table(
    {
        "age": [20 + i % 7 for i in range(60)],
        "zip": [f"{100 + i % 3}" for i in range(60)],
        "disease": [("flu", "cold", "gout")[i // 2 % 3] for i in range(60)],
        "day": [date(2024, 1, 1 + i % 4) for i in range(60)],
        "at": [datetime(2024, 1, 1, i % 4) for i in range(60)],
        "well": [i % 2 == 0 for i in range(60)],
        "dose": [i % 3 / 2 for i in range(60)],
        "who": [i // 2 for i in range(60)],
    }
)
ROLES: Any = {"quasi": ["age", "zip"], "sensitive": ["disease"]}
TYPES = {
    pa.int64(): "BIGINT", pa.string(): "TEXT", pa.bool_(): "BOOLEAN", pa.float64(): "DOUBLE", pa.date32(): "DATE",
    pa.timestamp("us"): "TIMESTAMP",
}  # fmt: skip


def filled(path: Path, table: pa.Table, name: str = "people") -> Path:
    """A database file with this table, made without jali."""
    quoted = '"' + name.replace('"', '""') + '"'
    columns = ", ".join('"' + f.name.replace('"', '""') + '" ' + TYPES[f.type] for f in table.schema)
    marks = ", ".join("?" * table.num_columns)
    rows = [tuple(str(v) if isinstance(v, (date, datetime)) else v for v in r.values()) for r in table.to_pylist()]
    connect: Any = duckdb.connect if path.suffix == ".duckdb" else sqlite3.connect
    with closing(connect(str(path))) as connection:
        connection.execute(f"CREATE TABLE {quoted} ({columns})")
        connection.executemany(f"INSERT INTO {quoted} VALUES ({marks})", rows)
        connection.commit()
    return path


def asked(path: Path, question: str) -> list[Any]:
    """What a database answers to somebody who knows nothing of jali."""
    connect: Any = duckdb.connect if path.suffix == ".duckdb" else sqlite3.connect
    with closing(connect(str(path))) as connection:
        return list(connection.execute(question).fetchall())


FILES = pytest.mark.parametrize("suffix", ["duckdb", "sqlite"])
MOSTLY_SQLITE = pytest.mark.parametrize("suffix", [pytest.param("duckdb", marks=pytest.mark.slow), "sqlite"])
"""DuckDB takes a tenth of a second to open a file."""


@contextmanager
def held(path: Path, names: Names = ("main", "people")) -> Iterator[DatabaseTable]:
    location = located(path)
    assert location is not None
    with opened(location) as database:
        yield DatabaseTable(database, names)


@MOSTLY_SQLITE
@given(rows=TABLES)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_database_counts_combinations_and_people(suffix: str, rows: list[Any], tmp_path: Path) -> None:
    """As counting row by row does, by values and by nodes."""
    path = tmp_path / f"x.{suffix}"
    path.unlink(missing_ok=True)
    table = arrow(rows)
    told = table.to_pylist()
    nodes = {"a": 0, "b": 0, "": 1, "'": 2}
    recoding = Recoding(pa.array(list(nodes)), np.array(list(nodes.values()), dtype=np.int64))
    with held(filled(path, table)) as engine:
        assert engine.header == table.column_names
        assert counted(engine.count(COLUMNS)) == oracle.combinations(told, COLUMNS)
        assert persons_of(engine.count(COLUMNS, person=PERSON)) == oracle.people(told, COLUMNS, PERSON)
        found = engine.count(COLUMNS, recoded={COLUMNS[1]: recoding})
        assert counted(found) == oracle.combinations(told, COLUMNS, {COLUMNS[1]: nodes})


@given(rows=TABLES)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_parquet_files_are_counted_by_arrow_and_by_duckdb(rows: list[Any], tmp_path: Path) -> None:
    """A folder of files is one table, whoever counts it."""
    table = arrow(rows)
    told = table.to_pylist()
    pq.write_table(table.slice(0, len(rows) // 2), tmp_path / "1.parquet")
    pq.write_table(table.slice(len(rows) // 2), tmp_path / "2.parquet")
    recoding = Recoding(pa.array(["a", "b"]), np.array([0, 1], dtype=np.int64))
    with engine_of(dataset_at(str(tmp_path))) as fast:
        for engine in (fast, ArrowDataset(dataset_at(str(tmp_path / "*.parquet")))):
            assert counted(engine.count(COLUMNS)) == oracle.combinations(told, COLUMNS)
            assert persons_of(engine.count(COLUMNS, person=PERSON)) == oracle.people(told, COLUMNS, PERSON)
            found = engine.count(COLUMNS, recoded={COLUMNS[1]: recoding})
            assert counted(found) == oracle.combinations(told, COLUMNS, {COLUMNS[1]: {"a": 0, "b": 1}})


def same(found: jali.Table, expected: jali.Table) -> None:
    assert (found.rows, found.people) == (expected.rows, expected.people)
    assert [(c.name, c.role, c.kind, c.values.to_pylist()) for c in found.columns] == [
        (c.name, c.role, c.kind, c.values.to_pylist()) for c in expected.columns
    ]
    rows = [Counter(map(tuple, (r.values() for r in t.frame("arrow").to_pylist()))) for t in (found, expected)]
    assert rows[0] == rows[1]


def test_every_place_gives_the_same_table(tmp_path: Path) -> None:
    """A DuckDB file, an SQLite file, a folder, a glob, a URL of a folder, a dataset, and one Parquet file."""
    roles: Any = ROLES | {"other": ["day", "at", "well", "dose"], "person": "who", "allow": {"at": "a clock"}}
    expected = jali.table(ROWS, **roles)
    folder = tmp_path / "parts"
    folder.mkdir()
    for at in range(3):
        pq.write_table(ROWS.slice(20 * at, 20), folder / f"{at}.parquet")
    (folder / "_SUCCESS").touch()
    duck, lite = filled(tmp_path / "x.duckdb", ROWS), filled(tmp_path / "x.sqlite", ROWS)
    for place in (duck, f"{lite}?table=people", f"duckdb:///{duck}?table=people", folder, folder / "*.parquet",
                  folder.as_uri(), ds.dataset(folder), folder / "0.parquet"):  # fmt: skip
        found = jali.read(place, **roles)
        if str(place).endswith("0.parquet"):
            assert found.rows == 20
        else:
            same(found, expected)
    same(jali.table(ds.dataset(folder), **roles), expected)
    assert jali.read(lite, table="people", **roles).rows == 60


def releases() -> dict[str, Any]:
    table, single = jali.table(ROWS, **ROLES, person="who"), jali.table(ROWS, **ROLES)
    typed = jali.table(ROWS, **ROLES, other=["day", "at", "well", "dose"], allow={"at": "a clock"})
    diverse = [K, jali.DistinctDiversity(2)]
    return {
        "generalized": jali.generalize(typed, diverse),
        "people": jali.generalize(table, K),
        "partitioned": jali.partition(single, diverse),
        "buckets": jali.anatomize(single, jali.DistinctDiversity(2)),
        "angel": jali.angelize(single, diverse),
        "marginals": jali.marginals(single, diverse),
    }


@pytest.mark.slow
@FILES
def test_every_kind_of_release_goes_into_a_database_and_comes_back(suffix: str, tmp_path: Path) -> None:
    """What `load` finds says the same, and the tables are those of the release."""
    path = tmp_path / f"x.{suffix}"
    for name, release in releases().items():
        written = release.write(f"{path}?table={name}")
        back = jali.load(written)
        assert jali.audit(back).to_dict() == jali.audit(release).to_dict() == jali.audit(str(written)).to_dict()
        assert type(back) is type(release)
        for table, rows in release.counted_tables.items():
            own = name if table == "data" else f"{name}_{table}"
            assert asked(path, f"SELECT count(*) FROM {own}") == [(rows.count,)]
        assert {"kind", "promises", "columns"} <= set(json.loads(asked(path, f"SELECT * FROM {name}_manifest")[0][0]))
    assert [each.name for each in tmp_path.iterdir()] == [path.name], "something was left behind"


@FILES
def test_published_rows_are_those_of_the_release_in_another_order(suffix: str, tmp_path: Path) -> None:
    """As many of each as the release has, drawn anew: the order is neither the original's nor sorted."""
    table = pa.table({"x": [i % 40 for i in range(400)], "s": ["a", "b"] * 200})
    release = jali.generalize(jali.table(table, quasi=["x"], sensitive=["s"]), K)
    path = tmp_path / f"x.{suffix}"
    release.write(f"{path}?table=out")
    rows = asked(path, 'SELECT CAST(x AS TEXT), s FROM "out"')
    assert Counter(rows) == Counter((str(r["x"]), r["s"]) for r in release.frame("arrow").to_pylist())
    assert rows != sorted(rows)
    release.write(f"{path}?table=again")
    assert asked(path, "SELECT CAST(x AS TEXT), s FROM again") != rows


@MOSTLY_SQLITE
def test_a_release_is_replaced_only_where_that_is_asked_for(suffix: str, tmp_path: Path) -> None:
    """And tables of others never are."""
    path = filled(tmp_path / f"x.{suffix}", ROWS)
    release = jali.generalize(jali.read(path, **ROLES), K)
    with pytest.raises(InputError, match='has a table "people" already'):
        release.write(f"{path}?table=people")
    with pytest.raises(InputError, match="is not one of a release"):
        release.write(f"{path}?table=people", overwrite=True)
    with pytest.raises(InputError, match=r"no table of .* was named"):
        release.write(path)
    release.write(f"{path}?table=out")
    with pytest.raises(InputError, match='has a table "out" already'):
        release.write(f"{path}?table=out")
    jali.angelize(jali.table(ROWS, **ROLES), [K, jali.DistinctDiversity(2)]).write(f"{path}?table=out", overwrite=True)
    release.write(f"{path}?table=out", overwrite=True)
    tables = asked(path, "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1")
    assert tables == [("out",), ("out_manifest",), ("people",)], "tables of the old release are left"
    assert asked(path, "SELECT count(*) FROM people") == [(60,)]


@MOSTLY_SQLITE
@pytest.mark.parametrize(
    "change",
    ["UPDATE out SET age = '*'", "DELETE FROM out WHERE disease = 'flu'", "INSERT INTO out SELECT * FROM out",
     "DROP TABLE out", "ALTER TABLE out ADD COLUMN more TEXT"],
)  # fmt: skip
def test_a_changed_release_is_not_loaded(suffix: str, change: str, tmp_path: Path) -> None:
    """A row more, a row less, another cell, another column, no table."""
    path = tmp_path / f"x.{suffix}"
    jali.generalize(jali.table(ROWS, **ROLES), K).write(f"{path}?table=out")
    connect: Any = duckdb.connect if suffix == "duckdb" else sqlite3.connect
    with closing(connect(str(path))) as connection:
        connection.execute(change)
        connection.commit()
    with pytest.raises(InputError, match=r"was changed after it was published|lacks the table"):
        jali.load(f"{path}?table=out")


@MOSTLY_SQLITE
def test_two_tables_that_are_called_the_same_are_no_release(suffix: str, tmp_path: Path) -> None:
    """Else only the second would be judged, beside one that holds anything."""
    path = tmp_path / f"x.{suffix}"
    for name, promise in (("out", jali.KAnonymity(1)), ("kept", K)):
        jali.generalize(jali.table(ROWS, **ROLES), promise).write(f"{path}?table={name}")
    connect: Any = duckdb.connect if suffix == "duckdb" else sqlite3.connect
    with closing(connect(str(path))) as connection:
        both = [json.loads(asked(path, f"SELECT manifest FROM {name}_manifest")[0][0]) for name in ("out", "kept")]
        forged = json.dumps(both[1] | {"tables": both[0]["tables"] | both[1]["tables"]})
        connection.execute("UPDATE out_manifest SET manifest = ?", [forged])
        connection.commit()
    with pytest.raises(InputError, match=r'"out_manifest" in .* is not a manifest'):
        jali.load(f"{path}?table=out")


@MOSTLY_SQLITE
def test_a_wrong_write_leaves_nothing(suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the database counts is judged before the transaction ends; a new file is not even there."""
    path = tmp_path / f"x.{suffix}"
    release = jali.generalize(jali.table(ROWS, **ROLES), K)
    kept = release.write(f"{path}?table=kept")
    before = path.read_bytes()
    from jali.sources.engines.embedded import DuckDB, SQLite

    for kind in (DuckDB, SQLite):
        real = kind.repeat

        def twice(self: Any, source: Any, target: Any, columns: int, real: Any = real) -> None:
            real(self, source, target, columns)
            self.run(f"DELETE FROM \"{target[-1]}\" WHERE disease = 'flu'")

        monkeypatch.setattr(kind, "repeat", twice)
    for place in (f"{path}?table=wrong", f"{path}?table=kept", f"{tmp_path / f'new.{suffix}'}?table=wrong"):
        with pytest.raises(InternalError, match="nothing"):
            release.write(place, overwrite=True)
    assert jali.load(kept).rows == 60
    assert asked(path, "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1") == [
        ("kept",),
        ("kept_manifest",),
    ]
    assert [each.name for each in tmp_path.iterdir()] == [path.name]
    assert suffix == "duckdb" or path.read_bytes() == before


@MOSTLY_SQLITE
@pytest.mark.parametrize("name", ['o"; DROP TABLE people; --', "ö'ut", "select", "a.b", "x y"])
def test_names_cannot_be_commands(suffix: str, name: str, tmp_path: Path) -> None:
    """Neither of tables nor of columns, in reading and in writing."""
    column = 'z"); DROP TABLE people; --'
    odd = ROWS.rename_columns([column if n == "zip" else n for n in ROWS.column_names])
    path = filled(tmp_path / f"x.{suffix}", odd, name)
    filled(path, ROWS)
    table = jali.read(path, table=name, quasi=["age", column], sensitive=["disease"])
    assert table.rows == 60
    release = jali.generalize(table, K)
    target = Location("duckdb" if suffix == "duckdb" else "sqlite", str(path), f"{name}2")
    assert jali.load(release.write(target.address)).rows == 60
    assert asked(path, "SELECT count(*) FROM people") == [(60,)]


def test_reading_cannot_write(tmp_path: Path) -> None:
    """Inputs are opened for reading only."""
    for path in (filled(tmp_path / "x.duckdb", ROWS), filled(tmp_path / "x.sqlite", ROWS)):
        location = located(path)
        assert location is not None
        with pytest.raises(InputError, match="cannot be used"), opened(location) as database:
            database.run("DROP TABLE people")
        assert asked(path, "SELECT count(*) FROM people") == [(60,)]


SECRET = "s3cr3t"


@pytest.mark.parametrize(
    "address",
    [f"postgresql://ann:{SECRET}@host/db?table=t", f"postgresql://host/db?table=t&password={SECRET}",
     f"postgres://host:x/db?PASSWORD={SECRET}", f"s3://ann:{SECRET}@bucket/x"],
)  # fmt: skip
def test_a_password_in_an_address_is_refused_and_not_repeated(address: str, tmp_path: Path) -> None:
    """In a call, in a job, and in a table of a job."""
    job = tmp_path / "job.toml"
    for text in (f"input = {json.dumps(address)}", f'input = {{ database = {json.dumps(address)}, table = "t" }}'):
        job.write_text(f'{text}\nquasi = ["age"]\n[[principles]]\nname = "KAnonymity"\nk = 2\n')
        with pytest.raises(InputError) as caught:
            Job.load(job).table()
        assert SECRET not in str(caught.value)
    with pytest.raises(InputError) as caught:
        jali.read(address, quasi=["age"])
    assert SECRET not in str(caught.value)
    job.write_text(f'input = {{ database = "x.duckdb", table = "t", password = "{SECRET}" }}\nquasi = ["age"]\n')
    with pytest.raises(InputError, match="a job must not hold a password") as caught:
        Job.load(job)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("mysql://host/db?table=t", 'no address of the kind "mysql://"'),
        ("postgresql://host/db?table=t&tabel=x", 'no option "tabel"'),
        ("postgresql://host:port/db", "is damaged"),
        ("sqlite://host/x.db", "the address of a sqlite file is"),
        ("duckdb:////nowhere/x.duckdb?table=t", "no file /nowhere/x.duckdb; check the path"),
    ],
)
def test_odd_addresses_are_refused_in_one_line(given: str, message: str) -> None:
    """With what is wrong."""
    with pytest.raises(InputError) as caught:
        jali.read(given, quasi=["age"])
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_location_is_found_again_by_its_address(tmp_path: Path) -> None:
    """Whatever its parts are called."""
    for location in (
        Location("postgresql", "my db", "a.b?c", {"host": "h", "port": "5", "user": "ü@x", "sslmode": "require"}),
        Location("postgresql", "db", None, {"host": "/var/run/x"}),
        Location("duckdb", str(tmp_path / "a b?.duckdb"), "t&u"),
        Location("sqlite", str(tmp_path / "x.db"), None),
    ):
        assert located(location.address) == location
        assert located(place_of(str(location.address))) == location
    assert (
        of_job({"database": "x.duckdb", "table": "t"}, tmp_path)
        == Location("duckdb", str(tmp_path / "x.duckdb"), "t").address
    )
    assert target_of(tmp_path / "folder") is None
    assert target_of("postgresql://h/d?table=t") == Location("postgresql", "d", "t", {"host": "h"})


def test_tables_that_are_missing_or_many_are_said(tmp_path: Path) -> None:
    """With the names that there are."""
    path = filled(filled(tmp_path / "x.duckdb", ROWS), ROWS, "patients")
    with pytest.raises(InputError, match="has 2 tables; name one of them: patients, people"):
        jali.read(path, **ROLES)
    with pytest.raises(InputError, match='no table "patient"'):
        jali.read(path, table="patient", **ROLES)
    with pytest.raises(InputError, match="table= is for databases"):
        jali.read(tmp_path / "x.csv", table="patient", **ROLES)
    with pytest.raises(InputError, match='no release "people"'):
        jali.load(f"{path}?table=people")
    pq.write_table(ROWS, tmp_path / "1.parquet")
    pq.write_table(ROWS.drop_columns(["zip"]), tmp_path / "2.parquet")
    with pytest.raises(InputError, match=r"2\.parquet has other columns"):
        jali.read(tmp_path / "*.parquet", **ROLES)
    with pytest.raises(InputError, match=r"no file|without Parquet"):
        jali.read(tmp_path / "9*.parquet", **ROLES)


def test_a_full_disk_is_said_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a folder and for a database file; nothing is left."""
    release = jali.generalize(jali.table(ROWS, **ROLES), K)
    usage = core_files.shutil.disk_usage(tmp_path)
    monkeypatch.setattr(core_files.shutil, "disk_usage", lambda path: usage._replace(free=100))
    for place in (tmp_path / "folder", f"{tmp_path / 'x.duckdb'}?table=t", f"{tmp_path / 'x.sqlite'}?table=t"):
        with pytest.raises(InputError, match="there is not enough room"):
            release.write(place)
    assert not list(tmp_path.iterdir())


def test_a_folder_is_written_as_save_does(tmp_path: Path) -> None:
    """In Parquet; other engines are refused by name."""
    release = jali.generalize(jali.table(ROWS, **ROLES), K)
    assert release.write(tmp_path / "a") == tmp_path / "a"
    assert jali.audit(tmp_path / "a").to_dict() == jali.audit(release).to_dict()
    assert {each.suffix for each in (tmp_path / "a").iterdir()} == {".json", ".parquet"}
    with pytest.raises(InputError, match='no engine that writes a folder: got sparc; did you mean "spark"'):
        release.write(tmp_path / "b", engine="sparc")
    with pytest.raises(InputError, match="writes for itself"):
        release.write(tmp_path / "b.duckdb?table=t", engine="spark")


def test_sqlite_columns_hold_what_was_put_into_them(tmp_path: Path) -> None:
    """Numbers among texts are texts; dates that are none are texts; bytes are refused."""
    path = tmp_path / "x.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE t (a, b DATE, c BLOB)")
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", [(1, "2024-01-01", b"x"), ("one", "soon", b"y")])
        connection.commit()
    table = jali.read(path, quasi=["a", "b"])
    found = [(c.kind, sorted(c.values.to_pylist())) for c in table.columns]
    assert found == [("text", ["1", "one"]), ("text", ["2024-01-01", "soon"])]
    with pytest.raises(InputError, match="values that jali cannot publish"):
        jali.read(path, quasi=["c"])


def test_engine_at_closes_what_it_opened(tmp_path: Path) -> None:
    """So that a DuckDB file can be written right after it was read."""
    path = filled(tmp_path / "x.duckdb", ROWS)
    location = located(path)
    assert location is not None
    with engine_at(location) as engine:
        assert len(engine.header) == 8
    assert asked(path, "SELECT count(*) FROM people") == [(60,)]


def test_large_whole_numbers_are_decimals_and_are_not_repeated(tmp_path: Path) -> None:
    """Those that Arrow's decimals cannot hold are refused."""
    path = tmp_path / "x.duckdb"
    with closing(duckdb.connect(str(path))) as connection:
        whole = "18446744073709551615::UBIGINT x, 5::HUGEINT h, 340282366920938463463374607431768211455::UHUGEINT u"
        connection.execute(f"CREATE TABLE t AS SELECT {whole} FROM range(8)")
    table = jali.read(path, quasi={"x": jali.suppress(), "h": jali.suppress()})
    assert [int(c.values[0].as_py()) for c in table.columns] == [18446744073709551615, 5]
    with pytest.raises(InputError, match="values that jali cannot publish"):
        jali.read(path, quasi={"u": jali.suppress()})
    with held(path, ("main", "t")) as engine, pytest.raises(InputError, match="cannot publish") as caught:
        engine.database.ask("SELECT x FROM t", (), ["integer"])  # whatever else Arrow finds too large
    assert "18446744073709551615" not in str(caught.value)
    assert caught.value.__suppress_context__


@FILES
def test_names_of_answers_are_no_names_of_columns(suffix: str, tmp_path: Path) -> None:
    """They are refused in one line."""
    odd = pa.table({"rows counted by jali": ["1"] * 8, "ill": ["u"] * 8})
    with pytest.raises(InputError, match="jali uses that name itself; rename it"):
        jali.read(filled(tmp_path / f"x.{suffix}", odd), quasi={"rows counted by jali": jali.suppress()})


@FILES
@pytest.mark.parametrize(
    ("victim", "table", "columns"),
    [
        ("patients", "data", False),
        ("patients", "who", False),
        ("out_people", "people", False),
        ("out_people", "people", True),
    ],
)
def test_a_forged_manifest_drops_no_table(
    suffix: str, victim: str, table: str, columns: bool, tmp_path: Path
) -> None:  # fmt: skip
    """Neither one of another name, nor one with other columns, nor one with the same columns and other rows."""
    path = filled(tmp_path / f"x.{suffix}", ROWS, victim)
    types = {one.name: "integer" if pa.types.is_integer(one.type) else "text" for one in ROWS.schema}
    told = {
        "table": table,
        "rows": ROWS.num_rows,
        "sha256": "0" * 64,
        "types": types if columns else {"age": "integer"},
    }
    forged = json.dumps({"format_version": 3, "kind": "x", "jali": "1", "tables": {victim: told}})
    connect: Any = duckdb.connect if suffix == "duckdb" else sqlite3.connect
    with closing(connect(str(path))) as connection:
        connection.execute("CREATE TABLE out_manifest (manifest JSON)")
        connection.execute("INSERT INTO out_manifest VALUES (?)", [forged])
        connection.commit()
    with pytest.raises(InputError, match="is not one of a release"):
        jali.generalize(jali.table(ROWS, **ROLES), K).write(f"{path}?table=out", overwrite=True)
    assert asked(path, f"SELECT count(*) FROM {victim}") == [(60,)]


@FILES
def test_a_release_that_was_changed_in_the_database_is_not_overwritten(suffix: str, tmp_path: Path) -> None:
    """Somebody may keep other rows in it by now; the message says what to do."""
    path = tmp_path / f"x.{suffix}"
    release = jali.generalize(jali.table(ROWS, **ROLES), K)
    release.write(f"{path}?table=out")
    release.write(f"{path}?table=out", overwrite=True)
    connect: Any = duckdb.connect if suffix == "duckdb" else sqlite3.connect
    with closing(connect(str(path))) as connection:
        connection.execute("CREATE TABLE more AS SELECT * FROM out LIMIT 1")
        connection.execute("INSERT INTO out SELECT * FROM more")
        connection.commit()
    with pytest.raises(InputError, match="or was changed since; choose another name, or drop it yourself"):
        release.write(f"{path}?table=out", overwrite=True)
    assert asked(path, "SELECT count(*) FROM out") == [(61,)]


def test_a_view_of_an_input_reads_no_other_file(tmp_path: Path) -> None:
    """Only the database that was named."""
    path, other = filled(tmp_path / "x.duckdb", ROWS), tmp_path / "other.csv"
    other.write_text("age\n99\n")
    with closing(duckdb.connect(str(path))) as connection:
        connection.execute(f"CREATE VIEW patients AS SELECT * FROM read_csv('{other}')")
        connection.execute("CREATE VIEW own AS SELECT age FROM people")
    assert jali.read(path, table="own", quasi=["age"]).rows == 60
    with pytest.raises(InputError, match="cannot be used"):
        jali.read(path, table="patients", quasi=["age"])


@pytest.mark.parametrize(
    "address",
    [f"postgresql://u:12/{SECRET}@127.0.0.1/db?table=t", f"postgresql://u:12?{SECRET}@h/db",
     f"postgresql://u:12#{SECRET}@h/db", f"s3://b/x?secret_key={SECRET}", f"s3://b:1/{SECRET}@b/x",
     f"postgresql:///host=h password={SECRET}?table=t", f"postgresql:///host=h%20password%3D{SECRET}?table=t",
     f"postgresql://h/u%3A{SECRET}%40h?table=t", f"postgresql://u%3A{SECRET}%40h/db?table=t",
     f"postgresql://h/db?table=t&host=u%3A{SECRET}%40h", Path(f"postgresql://u:{SECRET}@h/db"),
     Path(f"postgresql://{SECRET}@h/db"), Path(f"postgresql://h/db?password={SECRET}"), f"mysql://u:{SECRET}@h/db"],
)  # fmt: skip
def test_no_part_of_an_address_that_may_be_a_password_is_shown(address: str | Path) -> None:
    """Wherever it stands, in reading, writing and loading."""
    release = jali.generalize(jali.table(ROWS, **ROLES), K)
    for use in (lambda: jali.read(address, quasi=["age"]), lambda: release.write(address), lambda: jali.load(address)):
        with pytest.raises(InputError) as caught:
            use()
        assert SECRET not in str(caught.value).lower()


@FILES
def test_words_that_a_column_takes_for_the_same_are_counted_apart(suffix: str, tmp_path: Path) -> None:
    """Also by their nodes, and people likewise."""
    path = tmp_path / f"x.{suffix}"
    connect: Any = duckdb.connect if suffix == "duckdb" else sqlite3.connect
    with closing(connect(str(path))) as connection:
        connection.execute("CREATE TABLE people (ill VARCHAR COLLATE NOCASE, who VARCHAR COLLATE NOCASE)")
        connection.executemany("INSERT INTO people VALUES (?, ?)", [("Flu", "a"), ("flu", "A"), ("FLU", "b")])
        connection.commit()
    recoding = Recoding(pa.array(["Flu", "flu"]), np.array([0, 1], dtype=np.int64))
    with held(path) as engine:
        assert counted(engine.count(["ill"])) == {("Flu",): 1, ("flu",): 1, ("FLU",): 1}
        assert counted(engine.count(["ill"], recoded={"ill": recoding})) == {(0,): 1, (1,): 1, (None,): 1}
        assert engine.count(["ill"], person="who").person is None


def test_what_is_derived_from_an_address_is_a_mere_path() -> None:
    """It can be looked for, and is not there; so a command may ask for the manifest beside any release."""
    address = place_of("postgresql://host/db?table=t")
    for derived in (address / "manifest.json", address.parent, address.resolve()):
        assert not derived.is_file()
        assert "host" in str(derived)


@FILES
def test_what_is_no_database_is_said_as_such(suffix: str, tmp_path: Path) -> None:
    """A file that is not there, one of another kind, a pipe; nothing is made, and nobody waits."""
    there = tmp_path / f"notes.{suffix}"
    there.write_text("a,b\n1,2\n")
    pipe = tmp_path / f"pipe.{suffix}"
    os.mkfifo(pipe)
    release = jali.generalize(jali.table(ROWS, **ROLES), K)
    before = sorted(tmp_path.iterdir())
    for path in (there, pipe):
        for use in (lambda place: jali.read(place, **ROLES), jali.load, release.write):
            with pytest.raises(InputError, match="is no database; name an SQLite or DuckDB file"):
                use(f"{path}?table=t")
    with pytest.raises(InputError, match="is no file; name a database file"):
        jali.load(f"{suffix}://{pipe}?table=t")
    gone = tmp_path / f"gone.{suffix}"
    for use in (lambda: jali.read(gone, table="t", **ROLES), lambda: jali.read(f"{gone}?table=t", **ROLES),
                lambda: jali.load(f"{gone}?table=t"), lambda: jali.load(gone)):  # fmt: skip
        with pytest.raises(InputError, match=rf"no file .*gone\.{suffix}; check the path"):
            use()
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("suffix", ["duckdb", "sqlite"])
def test_a_database_that_may_not_be_written_is_said_so(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In words, not by a name of the database for it; it stays as it was. Root may write everything, so nobody may."""
    place = tmp_path / f"clinic.{suffix}"
    release = jali.generalize(jali.datasets.census(rows=40, seed=1, quasi=["sex"]), jali.KAnonymity(2))
    release.write(f"{place}?table=first")
    before = place.read_bytes()
    monkeypatch.setattr("jali.sources.engines.embedded.os.access", lambda path, mode: False)
    with pytest.raises(InputError, match="may not be written; choose another place, or allow it"):
        release.write(f"{place}?table=second")
    assert (place.read_bytes(), sorted(tmp_path.iterdir())) == (before, [place])


def test_a_table_that_is_not_there_is_answered_by_those_that_are(tmp_path: Path) -> None:
    """No first line of a file is blamed."""
    with pytest.raises(InputError, match=r'no table "PEOPLE" in .*; known: people'):
        jali.read(filled(tmp_path / "x.sqlite", ROWS), table="PEOPLE", **ROLES)


def lite(path: Path, kind: str, values: list[Any]) -> Path:
    """An SQLite file whose table has these values in the column x, each with every number of six in y."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"CREATE TABLE t (x {kind}, y INTEGER)")
        connection.executemany("INSERT INTO t VALUES (?, ?)", [(v, n) for v in values for n in range(6) for _ in "ab"])
        connection.commit()
    return path


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("DATETIME", [f"2024-01-01T1{at}:00:00" for at in range(6)]),
        ("TIMESTAMP", [f"2024-01-01 1{at}:00Z" for at in range(6)]),
        ("TIMESTAMP", [*(f"2024-01-0{at}" for at in range(1, 6)), None]),
        ("", [1, "1", 2, 3.5, "x", None]),
        ("REAL", [0.1, 1 / 3, 2, 1e300, -0.0, None]),
    ],
)
def test_what_sqlite_keeps_in_its_own_way_is_found_again_beyond_memory(
    kind: str, values: list[Any], tmp_path: Path
) -> None:
    """Dates in any form, and numbers among texts, are counted by their nodes as in memory."""
    path = lite(tmp_path / "x.sqlite", kind, values)
    roles: Any = {"quasi": {"x": jali.suppress(), "y": jali.bands(3)}}
    held, large = (jali.read(path, **roles, memory=memory) for memory in (None, "2KB"))
    assert type(large) is LargeTable
    rows = [Counter(map(str, jali.generalize(t, jali.KAnonymity(6)).frame("arrow").to_pylist())) for t in (held, large)]
    assert rows[0] == rows[1]


def test_sqlite_columns_that_are_computed_are_columns(tmp_path: Path) -> None:
    """Stored or not; those that a virtual table hides are none."""
    path = tmp_path / "x.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE t (a INTEGER, b INTEGER AS (a * 2) STORED, c INTEGER AS (a + 1))")
        connection.executemany("INSERT INTO t VALUES (?)", [(1,), (2,)])
        connection.commit()
    table = jali.read(path, quasi=["b", "c"])
    assert table.unnamed == ("a",)
    assert [c.values.to_pylist() for c in table.columns] == [[2, 4], [2, 3]]


def test_sqlite_numbers_in_columns_of_dates_are_numbers(tmp_path: Path) -> None:
    """Seconds since 1970, mostly."""
    (column, _) = jali.read(lite(tmp_path / "x.sqlite", "DATETIME", [17, 18]), quasi=["x", "y"]).columns
    assert (column.kind, column.values.to_pylist()) == ("number", [17, 18])


def test_sqlite_texts_that_are_no_texts_are_said_without_them(tmp_path: Path) -> None:
    """Words in Latin-1, say."""
    path = tmp_path / "x.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE t AS SELECT CAST(x'4de1fc' AS TEXT) AS a")
        connection.commit()
    with pytest.raises(InputError, match="holds text that is not valid UTF-8; write it again as UTF-8") as caught:
        jali.read(path, quasi=["a"])
    assert "M" not in str(caught.value).replace(str(path), "")


def test_json_of_a_database_cannot_be_published(tmp_path: Path) -> None:
    """Naming such a column is an error; leaving it out is none."""
    path = tmp_path / "x.duckdb"
    with closing(duckdb.connect(str(path))) as connection:
        connection.execute("CREATE TABLE t AS SELECT '[1]'::JSON AS a, 1 AS b")
    with pytest.raises(InputError, match=r'column "a" of .* holds values that jali cannot publish'):
        jali.read(path, quasi=["a"])
    assert jali.read(path, quasi=["b"]).rows == 1


@pytest.mark.parametrize("place", ["x.duckdb", "parts", "x.parquet"])
@pytest.mark.parametrize("day", ["'infinity'::DATE", "'0044-03-15 (BC)'::DATE", "'infinity'::TIMESTAMP"])
def test_dates_that_no_calendar_shows_are_refused_when_they_are_read(place: str, day: str, tmp_path: Path) -> None:
    """With their column, and not in the middle of publishing."""
    (tmp_path / "parts").mkdir()
    with closing(duckdb.connect(str(tmp_path / "x.duckdb"))) as connection:
        connection.execute(f"CREATE TABLE t AS SELECT {day} AS born UNION ALL SELECT DATE '2020-01-01'")
        for file in ("x.parquet", "parts/1.parquet"):
            connection.execute(f"COPY t TO '{tmp_path / file}' (FORMAT parquet)")
    with pytest.raises(InputError, match='column "born" holds a date outside the years 1 to 9999'):
        jali.read(tmp_path / place, quasi={"born": jali.dates()})


def test_a_column_of_lists_is_named_also_where_arrow_counts(tmp_path: Path) -> None:
    """Files that can be read are not blamed."""
    folder = tmp_path / "year=2024"
    folder.mkdir()
    pq.write_table(pa.table({"a": [[1]], "b": [1]}), folder / "1.parquet")
    with pytest.raises(InputError, match='column "a" holds values that jali cannot publish: got list'):
        jali.read(tmp_path, quasi=["a", "year"])
    assert jali.read(tmp_path, quasi=["b", "year"]).rows == 1


def test_a_database_that_another_connection_holds_says_who(tmp_path: Path) -> None:
    """This process itself, or another."""
    path = filled(tmp_path / "x.duckdb", ROWS)
    with closing(duckdb.connect(str(path))), pytest.raises(InputError, match="a connection of this process; close"):
        jali.read(path, **ROLES)
    path = filled(tmp_path / "x.sqlite", ROWS)
    location = located(path)
    assert location is not None
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        with pytest.raises(InputError, match="in use by another process"), opened(location) as database:
            database.tables()


@FILES
def test_journals_of_a_write_that_was_broken_off_are_cleared_away(suffix: str, tmp_path: Path) -> None:
    """The next write begins anew, and leaves none; one that cannot end leaves none either."""
    release = jali.generalize(jali.table(ROWS, **ROLES), K)
    place = tmp_path / f"x.{suffix}"
    left = [tmp_path / f".x.{suffix}.jali-new{end}" for end in (".wal", "-journal", "-wal")]
    for journal in left:
        journal.write_bytes(b"half a transaction")
    assert jali.load(release.write(f"{place}?table=t")).rows == 60
    assert list(tmp_path.iterdir()) == [place]


def test_a_new_file_whose_transaction_stays_in_a_journal_does_not_take_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the disk fills up at its end: nothing is left."""
    release = jali.generalize(jali.table(ROWS, **ROLES), K)
    from jali.sources.engines import stored

    monkeypatch.setattr(stored, "_write_manifest", lambda *given: None)
    monkeypatch.setattr(release, "check_written", lambda *given: (tmp_path / ".x.duckdb.jali-new-wal").touch())
    with pytest.raises(InputError, match="the disk is full; free some space"):
        release.write(f"{tmp_path / 'x.duckdb'}?table=t")
    assert not list(tmp_path.iterdir())


def test_a_question_to_duckdb_can_be_broken_off(tmp_path: Path) -> None:
    """What DuckDB makes of Ctrl-C is Ctrl-C again; what else fails is not."""
    location = located(filled(tmp_path / "x.duckdb", ROWS))
    assert location is not None
    with pytest.raises(KeyboardInterrupt), opened(location):
        raise RuntimeError("Query interrupted")
    with pytest.raises(RuntimeError, match="another"), opened(location):
        raise RuntimeError("another")
