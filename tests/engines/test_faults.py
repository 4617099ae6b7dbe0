"""kill -9 in the middle of a write: the old release or the new one, nothing half-written in place."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import jali
from jali.errors import InputError
from jali.sources.engines.postgres import Postgres
from oracles.servers import Server

pytestmark = pytest.mark.slow
ROLES: Any = {"quasi": ["age"], "sensitive": ["disease"]}
WRITER = """
import pathlib, sys, time
import pyarrow as pa
import jali
from jali.sources.engines import stored

place, point, marker = sys.argv[1:]
rows = pa.table({"age": [i % 40 for i in range(2000)], "disease": ["flu", "cold"] * 1000})
release = jali.generalize(jali.table(rows, quasi=["age"], sensitive=["disease"]), jali.KAnonymity(5))
real = getattr(stored, point)

def slow(*given, **named):
    made = real(*given, **named)
    pathlib.Path(marker).touch()
    time.sleep(120)
    return made

setattr(stored, point, slow)
release.write(place, overwrite=True)
"""


def release(rows: int) -> Any:
    table = pa.table({"age": [i % 40 for i in range(rows)], "disease": ["flu", "cold"] * (rows // 2)})
    return jali.generalize(jali.table(table, **ROLES), jali.KAnonymity(5))


def killed(place: str, point: str, folder: Path) -> None:
    """Write in another process, and kill it with -9 right after a step."""
    with running(WRITER, place, point, folder):
        pass


@contextmanager
def running(script: str, place: str, point: str, folder: Path, **environment: str) -> Iterator[None]:
    """A process that has come to a step, and is killed with -9 when the block ends."""
    marker = folder / "marker"
    process = subprocess.Popen(
        [sys.executable, "-c", script, place, point, str(marker)], env={**os.environ, **environment}
    )
    try:
        until = time.monotonic() + 120
        while not marker.exists() and time.monotonic() < until and process.poll() is None:
            time.sleep(0.05)
        assert marker.exists(), "the process never came to this step"
        yield
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    marker.unlink()


@pytest.mark.parametrize("point", ["_make_room", "_write_table", "_write_manifest"])
@pytest.mark.parametrize("suffix", ["duckdb", "sqlite"])
def test_a_killed_process_leaves_a_file_as_it_was(suffix: str, point: str, tmp_path: Path) -> None:
    """One that holds an old release, and one that is not there yet; the next write clears away what is left."""
    old = tmp_path / f"old.{suffix}"
    release(800).write(f"{old}?table=t")
    killed(f"{old}?table=t", point, tmp_path)
    assert jali.load(f"{old}?table=t").rows == 800
    release(1200).write(f"{old}?table=t", overwrite=True)
    assert jali.load(f"{old}?table=t").rows == 1200
    if point == "_write_manifest":
        new = tmp_path / f"new.{suffix}"
        killed(f"{new}?table=t", point, tmp_path)
        assert not new.exists()
        release(400).write(f"{new}?table=t")
        assert jali.load(f"{new}?table=t").rows == 400
    assert {each.name for each in tmp_path.iterdir() if "old" not in each.name} <= {f"new.{suffix}"}
    assert not [each.name for each in tmp_path.iterdir() if each.name.endswith(("wal", "journal"))]


@pytest.mark.parametrize("point", ["_make_room", "_write_manifest"])
def test_a_killed_process_leaves_postgres_as_it_was(point: str, postgres: Server, tmp_path: Path) -> None:
    """The server notices that its client is gone, and rolls back."""
    release(800).write(postgres.url("killed"), overwrite=True)
    killed(postgres.url("killed"), point, tmp_path)
    assert jali.load(postgres.url("killed")).rows == 800
    release(1200).write(postgres.url("killed"), overwrite=True)
    assert jali.load(postgres.url("killed")).rows == 1200


@pytest.mark.parametrize("moment", ["before", "during", "after"])
def test_a_killed_server_comes_back_as_it_was(moment: str, postgres: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """kill -9 of Postgres and its workers before, while and after it inserts, and before it commits."""
    release(800).write(postgres.url("server"), overwrite=True)
    larger = release(400_000)
    real = Postgres.repeat

    def dying(self: Any, *given: Any) -> None:
        if moment == "before":
            postgres.kill()
        timer = threading.Timer(0.3, postgres.kill)
        if moment == "during":
            timer.start()
        try:
            real(self, *given)
        finally:
            timer.join() if moment == "during" else None
        if moment == "after":
            postgres.kill()

    monkeypatch.setattr(Postgres, "repeat", dying)
    failure = ""
    try:
        larger.write(postgres.url("server"), overwrite=True)
    except InputError as problem:
        failure = problem.what
    # A worker of a server that is gone may end its transaction before it notices.
    assert "cannot be used" in failure or (moment == "during" and not failure)
    rows = 800 if failure else 400_000
    monkeypatch.undo()
    os.environ["PGPASSWORD"] = "only for these tests"
    postgres.start()
    assert jali.load(postgres.url("server")).rows == rows
    tables = postgres.run("SELECT tablename FROM pg_tables WHERE tablename LIKE 'server%' ORDER BY 1")
    assert tables == [("server",), ("server_manifest",)]
    larger.write(postgres.url("server"), overwrite=True)
    assert jali.load(postgres.url("server")).rows == 400_000


HOLDER = """
import pathlib, sys, time
import polars as pl
import jali
from jali.sources.engines import frames

place, point, marker = sys.argv[1:]

def wait(*given, **named):
    pathlib.Path(marker).touch()
    time.sleep(120)

if point == "while batches come":
    frames.pq.ParquetFile = wait
rows = pl.DataFrame({"age": list(range(45)) * 4, "disease": ["flu", "cold"] * 90}).lazy()
table = jali.table(rows, quasi=["age"], sensitive=["disease"], memory=8_000)
wait(table)
"""


@pytest.mark.parametrize("point", ["while batches come", "while the copy is used"])
def test_folders_of_a_killed_process_are_cleared_away_by_the_next(point: str, tmp_path: Path) -> None:
    """As long as it lives they stay; once it is killed, the next use removes them and nothing else."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    (folder / "jali-notes").mkdir()

    def use() -> set[str]:
        script = "from jali.core.scratch import private_folder\nwith private_folder(): pass"
        subprocess.run([sys.executable, "-c", script], env={**os.environ, "TMPDIR": str(folder)}, check=True)
        return {each.name for each in folder.iterdir()}

    with running(HOLDER, "", point, tmp_path, TMPDIR=str(folder)):
        alive = {each.name for each in folder.iterdir()}
        assert len(alive) > 1
        assert use() == alive
    assert any((folder / name / "lock").exists() for name in alive)
    assert use() == {"jali-notes"}
