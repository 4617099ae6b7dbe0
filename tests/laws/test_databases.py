"""Tables in databases and folders: counted where they lie, published where they should go, read back as they were."""

from __future__ import annotations

import json
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
        ("duckdb:////nowhere/x.duckdb?table=t", "cannot be used"),
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
