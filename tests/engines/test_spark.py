"""Spark: counts in Spark, search here, output written by Spark's tasks and counted by Spark again."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import jali
from jali.encoding.large import LargeTable, TooManyError
from jali.errors import InputError
from jali.search.trunk import Trunk
from jali.sources.engines import frames
from jali.sources.engines import spark as spark_module
from jali.sources.engines.base import Recoding
from jali.sources.engines.frames import LazyFrame
from oracles import engines as oracle
from oracles.engines import COLUMNS, PERSON, arrow, counted, persons_of

pytestmark = pytest.mark.slow
K = jali.KAnonymity(5)


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Invented people in Parquet files."""
    folder, random = tmp_path_factory.mktemp("people"), np.random.default_rng(3)
    places, diseases = pa.array([f"{at:05d}" for at in range(30)]), pa.array(["flu", "cold", "gout", None])
    for at in range(2):
        age, place, disease = (random.integers(low, high, 20_000) for low, high in ((20, 80), (0, 30), (0, 4)))
        columns = {"age": age, "zip": places.take(pa.array(place)), "disease": diseases.take(pa.array(disease))}
        pq.write_table(pa.table(columns), folder / f"{at}.parquet")
    return folder


def published(spark: Any, people: Path) -> Any:
    frame = spark.read.parquet(people.as_uri())
    return jali.generalize(jali.table(frame, quasi=["age", "zip"], sensitive=["disease"]), K)


def test_spark_counts_combinations_and_people(spark: Any, tmp_path: Path) -> None:
    """As counting row by row does, by values and by nodes."""
    random = np.random.default_rng(5)
    texts = [None, "a", "b", "", "'", "`", '"']
    rows = [(None if n == 3 else int(n), texts[t], bool(b), int(p)) for n, t, b, p in random.integers(0, 7, (300, 4))]
    table = arrow(rows)
    told = table.to_pylist()
    pq.write_table(table, tmp_path / "x.parquet")
    engine = LazyFrame(nw.from_native(spark.read.parquet((tmp_path / "x.parquet").as_uri())))
    assert engine.header == table.column_names
    assert counted(engine.count(COLUMNS)) == oracle.combinations(told, COLUMNS)
    assert persons_of(engine.count(COLUMNS, person=PERSON)) == oracle.people(told, COLUMNS, PERSON)
    nodes = {"a": 0, "b": 0, "": 1, "'": 2}
    recoding = Recoding(pa.array(list(nodes)), np.array(list(nodes.values()), dtype=np.int64))
    found = engine.count(COLUMNS, recoded={COLUMNS[1]: recoding})
    assert counted(found) == oracle.combinations(told, COLUMNS, {COLUMNS[1]: nodes})


def test_spark_sends_combinations_in_parts_and_keeps_nothing(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same combinations in the same order; too many are refused before they come, and lost ones are noticed."""
    random = np.random.default_rng(6)
    texts = [None, "a", "b", "", "'", "`", '"']
    table = arrow([(int(n), texts[t], None, 0) for n, t in random.integers(0, 7, (300, 2))])
    pq.write_table(table, tmp_path / "x.parquet")
    engine = LazyFrame(nw.from_native(spark.read.parquet((tmp_path / "x.parquet").as_uri())))
    whole = engine.count(COLUMNS)
    monkeypatch.setattr(frames, "SENT", 4)
    found, many = engine.count(COLUMNS, most=len(whole.rows)), len(whole.rows)
    assert found.table.to_pylist() == whole.table.to_pylist()
    assert found.rows.tolist() == whole.rows.tolist()
    assert counted(found) == oracle.combinations(table.to_pylist(), COLUMNS)
    with pytest.raises(TooManyError):
        engine.count(COLUMNS, most=many - 1)
    of_frame = type(engine.frame.to_native())
    send = of_frame.toArrow
    monkeypatch.setattr(of_frame, "toArrow", lambda frame: send(frame).slice(1))
    with pytest.raises(InputError, match="the table changed while it was read"):
        engine.count(COLUMNS)
    assert spark.sparkContext._jsc.getPersistentRDDs().size() == 0


def test_spark_writes_a_folder_that_needs_no_spark(
    spark: Any, people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Part files from several tasks; loaded here they say what the release says, in an order that was drawn."""
    monkeypatch.setattr(spark_module, "PART", 15_000)
    release = published(spark, people)
    folder = tmp_path / "out"
    assert release.write(folder, engine=spark) == folder
    names = sorted(each.name for each in folder.iterdir())
    assert names == [
        "data-1.parquet",
        "data-2.parquet",
        "data-3.parquet",
        "manifest.json",
    ]
    back = jali.load(folder)
    assert jali.audit(back).to_dict() == jali.audit(release).to_dict()
    rows = back.frame("arrow").to_pylist()
    assert Counter(map(str, rows)) == Counter(map(str, release.frame("arrow").to_pylist()))
    assert rows != sorted(rows, key=str)
    with pytest.raises(InputError, match="is not empty"):
        release.write(folder, engine="spark")
    small = jali.angelize(
        jali.table(back.frame("arrow").slice(0, 300), quasi=["age", "zip"], sensitive=["disease"]),
        [K, jali.DistinctDiversity(2)],
    )
    small.write(folder, engine="spark", overwrite=True)
    assert jali.audit(jali.load(folder)).to_dict() == jali.audit(small).to_dict()


def test_a_wrong_file_of_a_task_is_found_by_the_count(
    spark: Any, people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What Spark counts in the files is judged, not what it was asked to write."""
    real = spark_module._shares
    monkeypatch.setattr(spark_module, "_shares", lambda rows, parts: [own * (own > 1) for own in real(rows, parts)])
    release = published(spark, people)
    with pytest.raises(jali.errors.InternalError, match="nothing"):
        release.write(tmp_path / "out", engine=spark)
    assert not list(tmp_path.iterdir())


def workers() -> list[int]:
    """The processes of Spark's Python workers below this process."""
    parents: dict[int, int] = {}
    python: set[int] = set()
    for each in Path("/proc").iterdir():
        if not each.name.isdigit():
            continue
        try:
            parents[int(each.name)] = int((each / "stat").read_text().rpartition(")")[2].split()[1])
            if b"pyspark" in (each / "cmdline").read_bytes() and b"daemon" in (each / "cmdline").read_bytes():
                python.add(int(each.name))
        except (OSError, ValueError):
            continue

    def below(pid: int) -> bool:
        while pid in parents and pid != os.getpid():
            pid = parents[pid]
        return pid == os.getpid()

    return [pid for pid in python if parents.get(pid) in python and below(pid)]  # children of the daemon


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="workers are found in /proc")
def test_a_killed_worker_leaves_the_old_release_or_the_new_one(
    spark: Any, people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """kill -9 while its task writes: Spark tries again, or gives up and nothing has changed."""
    release = published(spark, people)
    folder = tmp_path / "out"
    release.write(folder, engine=spark)
    before = {each.name: each.read_bytes() for each in folder.iterdir()}
    monkeypatch.setattr(spark_module, "PART", 2_000)  # so many tasks that some are under way
    killed: list[int] = []
    hidden = tmp_path / ".out.jali-new" / "new"

    def kill() -> None:
        until = time.monotonic() + 60
        while time.monotonic() < until and len(killed) < 2:
            if hidden.is_dir() and any(hidden.iterdir()):
                for pid in workers():
                    os.kill(pid, signal.SIGKILL)
                    killed.append(pid)
            time.sleep(0.05)

    killer = threading.Thread(target=kill)
    killer.start()
    gave_up = False
    try:
        release.write(folder, engine=spark, overwrite=True)
    except InputError as problem:
        gave_up = "a task of Spark failed; nothing was written" in str(problem)
    finally:
        killer.join()
    now = {each.name: each.read_bytes() for each in folder.iterdir()}
    if gave_up:
        assert now == before
    else:
        assert sorted(now) == sorted(["manifest.json", *(f"data-{at}.parquet" for at in range(1, 21))])
    assert killed, "no worker was found"
    assert jali.load(folder).rows == 40_000
    assert [each.name for each in tmp_path.iterdir()] == ["out"]


def test_groups_that_fit_are_cut_by_workers(spark: Any, people: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are the groups that this process cuts where workers cannot: then it is said, and done here."""
    roles: Any = {"quasi": {"age": jali.bands(5, 20), "zip": jali.mask()}, "sensitive": ["disease"]}
    large = jali.table(spark.read.parquet(people.as_uri()), **roles, memory="500KB")
    required = [jali.KAnonymity(20), jali.DistinctDiversity(2)]
    here, real = os.getpid(), Trunk.cut_of
    cut_here: list[int] = []

    def cut_of(self: Trunk, piece: Any, threads: int | None) -> Any:
        cut_here.append(1)
        return real(self, piece, threads)

    with monkeypatch.context() as patch:
        patch.setattr(Trunk, "cut_of", cut_of)
        by_workers = jali.partition(large, required)
        assert not cut_here
        patch.setattr(Trunk, "_worked", lambda self, found: 1 // (os.getpid() == here))  # which only this process can
        by_this = jali.partition(large, required)
        assert cut_here
    assert by_workers.search == by_this.search
    assert by_workers.manifest == by_this.manifest
    shown = [Counter(map(str, each.frame("arrow").to_pylist())) for each in (by_workers, by_this)]
    assert shown[0] == shown[1]


def test_a_table_beyond_memory_gives_the_release_of_memory(spark: Any, people: Path) -> None:
    """Spark counts at levels, and cuts groups by histograms."""
    frame = spark.read.parquet(people.as_uri())
    roles: Any = {"quasi": {"age": jali.bands(5, 20), "zip": jali.mask()}, "sensitive": ["disease"]}
    held, large = (jali.table(frame, **roles, memory=size) for size in (None, "500KB"))
    assert type(large) is LargeTable
    for publish in (jali.generalize, jali.partition):
        made = [publish(table, [jali.KAnonymity(200), jali.DistinctDiversity(2)]) for table in (held, large)]
        shown = [Counter(map(str, each.frame("arrow").to_pylist())) for each in made]
        assert shown[0] == shown[1]
        assert made[0].manifest.counts == made[1].manifest.counts
