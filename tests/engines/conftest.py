"""A Postgres server and a Spark session for tests, started here and gone with them."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from oracles.debian import need
from oracles.servers import Server

PASSWORD = "only for these tests"


def _programs() -> Path | None:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: float(path.parts[4]))
    named = shutil.which("postgres")
    return found[-1].parent if found else Path(named).parent if named else None


def _java() -> bool:
    return shutil.which("java") is not None or "JAVA_HOME" in os.environ


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """The server. Its password is where its own clients look for it."""
    why = need(["postgresql"], _programs)
    programs = _programs()
    if why or programs is None:
        pytest.skip(f"Postgres is not installed; {why}")
    pytest.importorskip("psycopg", exc_type=ImportError)  # it needs libpq, which comes with the server
    user = "postgres" if os.geteuid() == 0 else None
    if user is not None and user not in {each.pw_name for each in pwd.getpwall()}:
        pytest.skip("Postgres does not run as root, and there is no user postgres")
    folder = Path(tempfile.mkdtemp(prefix="jali-pg-"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    secret = folder / "password"
    secret.write_text(PASSWORD)
    if user is not None:
        shutil.chown(folder, user)
        shutil.chown(secret, user)
    made = [programs / "initdb", "-D", folder / "data", "-U", "jali", "-A", "scram-sha-256", f"--pwfile={secret}", "-E",
            "UTF8", "--no-sync"]  # fmt: skip
    subprocess.run(made, user=user, check=True, capture_output=True)
    server = Server(programs, folder, port, user)
    before = os.environ.get("PGPASSWORD")
    os.environ["PGPASSWORD"] = PASSWORD
    try:
        server.start()
        yield server
    finally:
        server.kill()
        shutil.rmtree(folder, ignore_errors=True)
        os.environ.pop("PGPASSWORD", None)
        if before is not None:
            os.environ["PGPASSWORD"] = before


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A local Spark session with two workers, which have this interpreter."""
    sql = pytest.importorskip("pyspark.sql")
    why = need(["openjdk-17-jre-headless"], _java)
    if why:
        pytest.skip(f"Spark needs Java; {why}")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    built = sql.SparkSession.builder.master("local[2,4]").appName("jali tests")
    for key, value in {
        "spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2", "spark.driver.memory": "1g",
        "spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1", "spark.log.level": "OFF",
    }.items():  # fmt: skip
        built = built.config(key, value)
    session = built.getOrCreate()
    yield session
    session.stop()
