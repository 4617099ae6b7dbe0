"""Postgres: counted there, published there, no row in Python; a server of our own is started for this."""

from __future__ import annotations

import threading
from collections import Counter
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import jali
from jali.encoding.large import LargeTable
from jali.errors import InputError
from jali.sources.engines.base import Recoding
from jali.sources.engines.datasets import engine_at
from jali.sources.engines.locations import located
from oracles import engines as oracle
from oracles.engines import COLUMNS, PERSON, arrow, counted, persons_of
from oracles.servers import Server

pytestmark = pytest.mark.slow
K = jali.KAnonymity(5)


def census(server: Server, name: str, rows: int) -> None:
    """A table of invented people that only Postgres has ever seen."""
    server.run(f'DROP TABLE IF EXISTS "{name}"')
    server.run(f"""CREATE TABLE "{name}" AS SELECT i AS id, 20 + (i * 7919) % 60 AS age,
      (ARRAY['f', 'm'])[1 + i % 2] AS sex, lpad(((i * 104729) % 50)::text, 5, '0') AS zip,
      (ARRAY['flu', 'cold', 'gout', NULL])[1 + (i / 3) % 4] AS disease FROM generate_series(1::bigint, {rows}) AS i""")


def table_at(server: Server, name: str, **roles: Any) -> jali.Table:
    given = {"quasi": ["age", "sex", "zip"], "sensitive": ["disease"]} | roles
    return jali.read(server.url(name), **given)


def test_postgres_counts_combinations_and_people(postgres: Server) -> None:
    """As counting row by row does, by values and by nodes; empty texts are not missing ones."""
    random = np.random.default_rng(5)
    texts = [None, "a", "b", "", "'", "%s", '"']
    rows = [(None if n == 3 else int(n), texts[t], bool(b), int(p)) for n, t, b, p in random.integers(0, 7, (300, 4))]
    table = arrow(rows)
    told = table.to_pylist()
    postgres.run("DROP TABLE IF EXISTS odd")
    postgres.run('CREATE TABLE odd (n int, "odd ""name""" text, d boolean, "rows" bigint)')
    import psycopg

    with psycopg.connect(postgres.url()) as connection, connection.cursor() as cursor:
        cursor.executemany("INSERT INTO odd VALUES (%s, %s, %s, %s)", rows)
    location = located(postgres.url("odd"))
    assert location is not None
    nodes = {"a": 0, "b": 0, "": 1, "'": 2, "%s": 3}
    recoding = Recoding(pa.array(list(nodes)), np.array(list(nodes.values()), dtype=np.int64))
    with engine_at(location) as engine:
        assert counted(engine.count(COLUMNS)) == oracle.combinations(told, COLUMNS)
        assert persons_of(engine.count(COLUMNS, person=PERSON)) == oracle.people(told, COLUMNS, PERSON)
        found = engine.count(COLUMNS, recoded={COLUMNS[1]: recoding})
        assert counted(found) == oracle.combinations(told, COLUMNS, {COLUMNS[1]: nodes})


def test_a_table_becomes_another_and_no_row_comes_to_python(postgres: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """200,000 rows in, 200,000 out; what Python receives and sends is as many rows as there are distinct ones."""
    census(postgres, "patients", 200_000)
    most: list[int] = []
    from jali.sources.engines.postgres import Postgres

    ask, put = Postgres.ask, Postgres.put

    def asked(self: Any, *given: Any) -> pa.Table:
        answer = ask(self, *given)
        most.append(answer.num_rows)
        return answer

    def sent(self: Any, names: Any, table: pa.Table, kinds: Any) -> None:
        most.append(table.num_rows)
        put(self, names, table, kinds)

    monkeypatch.setattr(Postgres, "ask", asked)
    monkeypatch.setattr(Postgres, "put", sent)
    table = table_at(postgres, "patients", person="id")
    release = jali.generalize(table, [K, jali.DistinctDiversity(2)])
    path = release.write(postgres.url("published"))
    assert max(most) <= table.records < 30_000
    assert postgres.run("SELECT count(*) FROM published") == [(200_000,)]
    smallest = postgres.run("SELECT min(n) FROM (SELECT count(*) AS n FROM published GROUP BY age, sex, zip) AS g")
    assert smallest[0][0] >= 5
    assert jali.audit(str(path)).to_dict() == jali.audit(release).to_dict()
    assert jali.load(path).manifest.kind == "generalized"
    own = Counter(postgres.run("SELECT disease FROM published"))
    assert own == Counter(postgres.run("SELECT disease FROM patients"))
    order = postgres.run("SELECT age, sex, zip FROM published LIMIT 1000")
    assert order != sorted(order), "the rows stand in the order of what they show"


def test_types_of_postgres_are_read(postgres: Server) -> None:
    """Enumerations and UUIDs are texts, numerics exact; what cannot be published is said."""
    postgres.run("DROP TABLE IF EXISTS typed; DROP TYPE IF EXISTS mood")
    postgres.run("CREATE TYPE mood AS ENUM ('sad', 'glad')")
    postgres.run("""CREATE TABLE typed AS SELECT 1::smallint AS a, 1.50::numeric AS b, 'sad'::mood AS c,
      DATE '2024-02-03' AS d, TIMESTAMP '2024-02-03 04:05' AS e, TIMESTAMPTZ '2024-02-03 04:05+00' AS f, TRUE AS g,
      0.5::real AS h, 'x '::char(3) AS i, gen_random_uuid() AS j, ARRAY[1] AS k, '\\x01'::bytea AS l""")
    found = jali.read(postgres.url("typed"), quasi=list("abcdefghij"))
    values = {c.name: c.values.to_pylist()[0] for c in found.columns}
    assert values["a"] == 1
    assert values["b"] in (Decimal("1.50"), 1.5)
    assert (values["c"], values["d"], values["g"], values["h"]) == ("sad", date(2024, 2, 3), True, 0.5)
    assert values["e"] == datetime(2024, 2, 3, 4, 5)
    assert len(values["j"]) == 36
    for name in "kl":
        with pytest.raises(InputError, match=f'column "{name}" of .* holds values that jali cannot publish'):
            jali.read(postgres.url("typed"), quasi=[name])


def test_what_postgres_refuses_is_one_line_without_values(postgres: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong password, no server, no table, no rights; names that are too long."""
    census(postgres, "patients", 2_000)
    release = jali.generalize(table_at(postgres, "patients"), K)
    with pytest.raises(InputError, match=r'no table "patient" in postgresql://127\.0\.0\.1/postgres'):
        table_at(postgres, "patient")
    with pytest.raises(InputError, match="is too long a name"):
        release.write(postgres.url("x" * 60))
    with pytest.raises(InputError, match="is not one of a release"):
        release.write(postgres.url("patients"), overwrite=True)
    location = located(postgres.url("patients"))
    assert location is not None
    from jali.sources.engines.embedded import opened

    with pytest.raises(InputError, match="ReadOnlySqlTransaction"), opened(location) as database:
        database.run("DROP TABLE patients")
    monkeypatch.setenv("PGPASSWORD", "wrong secret")
    with pytest.raises(InputError, match="PGPASSWORD") as caught:
        table_at(postgres, "patients")
    assert "wrong secret" not in str(caught.value)
    with pytest.raises(InputError, match="cannot be used"):
        jali.read(
            f"postgresql://jali@127.0.0.1:{postgres.port + 1 if postgres.port < 65535 else 1}/x?table=t", quasi=["a"]
        )


def test_schemas_and_replacement(postgres: Server) -> None:
    """clinic.patients is the table of a schema; a release is replaced with all its tables."""
    census(postgres, "patients", 5_000)
    postgres.run("CREATE SCHEMA IF NOT EXISTS clinic")
    table = table_at(postgres, "patients")
    angel = jali.angelize(table, [K, jali.DistinctDiversity(2)])
    path = angel.write(postgres.url("clinic.open"), overwrite=True)
    assert jali.load(path).rows == 5_000
    jali.generalize(table, K).write(path, overwrite=True)
    names = postgres.run("SELECT table_name FROM information_schema.tables WHERE table_schema = 'clinic' ORDER BY 1")
    assert names == [("open",), ("open_manifest",)]
    with pytest.raises(InputError, match=r'has a table "clinic\.open" already'):
        angel.write(path)


def test_a_job_and_the_commands_take_databases(postgres: Server, tmp_path: Any) -> None:
    """jali publish from Postgres into Postgres, jali audit of what it wrote."""
    from click.testing import CliRunner

    from jali.cli.app import app

    census(postgres, "patients", 5_000)
    job = tmp_path / "job.toml"
    database = f'database = "{postgres.url()}"'
    job.write_text(
        f'input = {{ {database}, table = "patients" }}\noutput = {{ {database}, table = "by_job" }}\n'
        'quasi = ["age", "sex", "zip"]\nsensitive = ["disease"]\n[[principles]]\nname = "KAnonymity"\nk = 5\n'
    )
    done = CliRunner().invoke(app, ["publish", str(job)])
    assert done.exit_code == 0, done.output
    assert f"Saved in postgresql://jali@127.0.0.1:{postgres.port}/postgres?table=by_job" in done.output
    assert CliRunner().invoke(app, ["publish", str(job)]).exit_code == 2
    assert CliRunner().invoke(app, ["publish", str(job), "--overwrite"]).exit_code == 0
    done = CliRunner().invoke(app, ["audit", postgres.url("by_job")])
    assert done.exit_code == 0, done.output
    done = CliRunner().invoke(app, ["audit", postgres.url("patients"), "--quasi", "age,sex", "--sensitive", "disease"])
    assert done.exit_code == 0, done.output


@pytest.mark.filterwarnings("ignore:The 'future.infer_string'")  # of pandas, which Ibis asks for it
def test_an_ibis_table_of_postgres_is_counted_there(postgres: Server) -> None:
    """Through narwhals, people included."""
    ibis = pytest.importorskip("ibis")
    census(postgres, "patients", 3_000)
    connection = ibis.postgres.connect(
        host="127.0.0.1", port=postgres.port, user="jali", password="only for these tests", database="postgres"
    )
    frame = connection.table("patients")
    own = jali.table(frame, quasi=["age", "sex", "zip"], sensitive=["disease"], person="id")
    read = table_at(postgres, "patients", person="id")
    assert (own.rows, own.people, own.records) == (read.rows, read.people, read.records)
    connection.disconnect()


def test_a_table_beyond_memory_gives_the_release_of_memory(postgres: Server) -> None:
    """Postgres counts at levels, and cuts groups by histograms; SQLite does the same in tests/laws."""
    census(postgres, "large", 20_000)
    hierarchies = {"age": jali.bands(5, 20), "sex": jali.suppress(), "zip": jali.mask()}
    held, large = (table_at(postgres, "large", quasi=hierarchies, memory=size) for size in (None, "40KB"))
    assert type(large) is LargeTable
    for publish in (jali.generalize, jali.partition):
        made = [publish(table, [jali.KAnonymity(450), jali.DistinctDiversity(2)]) for table in (held, large)]
        shown = [Counter(map(str, each.frame("arrow").to_pylist())) for each in made]
        assert shown[0] == shown[1]
        assert made[0].manifest.counts == made[1].manifest.counts


def test_values_of_postgres_are_found_again_beyond_memory(postgres: Server) -> None:
    """Numbers of 32 bits, exact ones that are none, words that their order takes for the same."""
    postgres.run("CREATE COLLATION IF NOT EXISTS same (provider=icu, locale='und-u-ks-level2', deterministic=false)")
    columns = {
        "dose": "((i % 6) / 10.0)::real",
        "height": "CASE WHEN i % 6 = 0 THEN 'NaN'::numeric ELSE i % 6 END",
        "name": "(ARRAY['A', 'a', 'B', 'b', 'C', 'c'])[1 + i % 6] COLLATE same",
    }
    for name, made in columns.items():
        postgres.run("DROP TABLE IF EXISTS kept")
        postgres.run(f"CREATE TABLE kept AS SELECT {made} AS x, (i / 6) % 6 AS y FROM generate_series(0, 143) AS i")
        roles: Any = {"quasi": {"x": jali.suppress(), "y": jali.bands(3)}}
        held, large = (jali.read(postgres.url("kept"), **roles, memory=memory) for memory in (None, "2KB"))
        assert type(large) is LargeTable
        assert held.columns[0].values.null_count == (name == "height")
        assert len(held.columns[0].values) == 6
        made_of = [jali.generalize(table, jali.KAnonymity(10)).frame("arrow").to_pylist() for table in (held, large)]
        assert Counter(map(str, made_of[0])) == Counter(map(str, made_of[1]))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("'Infinity'::numeric", 'column "x" holds an infinite number; replace it'),
        ("'infinity'::date", "holds a date outside the years 1 to 9999; replace it"),
        ("'0044-03-15 BC'::timestamp", "holds a date outside the years 1 to 9999; replace it"),
    ],
)
def test_values_that_only_postgres_knows_are_refused_in_one_line(value: str, message: str, postgres: Server) -> None:
    """With what is wrong, whatever its client calls it."""
    postgres.run("DROP TABLE IF EXISTS odd_values")
    postgres.run(f"CREATE TABLE odd_values AS SELECT {value} AS x")
    with pytest.raises(InputError) as caught:
        jali.read(postgres.url("odd_values"), quasi=["x"])
    assert message in str(caught.value)


def test_a_server_that_does_not_answer_is_said_with_its_port(postgres: Server) -> None:
    """Not with the question that its client asks."""
    port = postgres.port + 1 if postgres.port < 65535 else 1
    with pytest.raises(InputError, match=rf"port {port} failed: Connection refused"):
        jali.read(f"postgresql://jali@127.0.0.1:{port}/x?table=t", quasi=["a"])


def test_a_private_report_of_a_release_in_postgres(postgres: Server, tmp_path: Any) -> None:
    """There is no manifest beside an address, so the page has no digest of one."""
    from click.testing import CliRunner

    from jali.cli.app import app

    census(postgres, "patients", 2_000)
    jali.generalize(table_at(postgres, "patients"), K).write(postgres.url("reported"), overwrite=True)
    page, original = tmp_path / "page.html", postgres.url("patients")
    done = CliRunner().invoke(app, ["report", postgres.url("reported"), "--original", original, "-o", str(page)])
    assert done.exit_code == 0, done.output
    assert page.is_file()


def test_two_who_make_the_same_table_are_told_so(postgres: Server) -> None:
    """Whatever Postgres calls it: here the second waits for the first, and then the name is taken."""
    import psycopg

    census(postgres, "patients", 2_000)
    release = jali.generalize(table_at(postgres, "patients"), K)
    postgres.run("DROP TABLE IF EXISTS met, met_manifest")
    with psycopg.connect(postgres.url()) as first:
        first.execute("CREATE TABLE met (a INTEGER)")
        timer = threading.Timer(1, first.commit)
        timer.start()
        with pytest.raises(InputError, match="another process writes to the same tables"):
            release.write(postgres.url("met"))
        timer.join()
    assert postgres.run("SELECT count(*) FROM met") == [(0,)]
