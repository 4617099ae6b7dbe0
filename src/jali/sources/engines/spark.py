"""Spark writes a release: its tasks draw rows from counts and write Parquet files; an aggregate counts them again."""

from __future__ import annotations

import hashlib
import os
import secrets
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from jali.core.arrays import steps
from jali.core.files import sync
from jali.core.rows import Rows, drawn, fresh_random
from jali.errors import InputError
from jali.sources.engines.base import ROWS, in_order, rows_of
from jali.sources.engines.databases import missing
from jali.sources.engines.frames import sent_by_spark

PART = 1 << 22
"""Rows that one task writes, into one file."""
GROUP = 1 << 20  # rows of a row group
_BUILDING = ".building"  # how the name of a file ends that a task is writing


@dataclass(frozen=True)
class Spark:
    """A Spark session whose workers see the same folders as this process."""

    session: Any

    @classmethod
    def of(cls, engine: Any) -> Spark | None:
        """The session that is given, or for "spark" the one that is active; None for what is none."""
        try:
            from pyspark.sql import SparkSession
        except ModuleNotFoundError:
            if engine == "spark":
                raise missing("pyspark", "spark") from None
            return None
        if isinstance(engine, str) and engine == "spark":
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
            return cls(SparkSession.getActiveSession() or SparkSession.builder.appName("jali").getOrCreate())
        return cls(engine) if isinstance(engine, SparkSession) else None

    def write(self, folder: Path, name: str, rows: Rows) -> dict[str, dict[str, Any]]:
        """Write a table into a folder, task by task; what the manifest says of each file.

        How many of each distinct row go into each file is drawn here, from which each task draws the order. A task that
        is tried again writes the same file.
        """
        parts = max(1, -(-rows.count // PART))
        table = self.session.sparkContext.broadcast(_packed(rows.distinct))
        paths = [str(folder / f"{name}{'' if parts == 1 else f'-{at + 1}'}.parquet") for at in range(parts)]
        tasks = [_Task(path, own, secrets.randbits(256)) for path, own in zip(paths, _shares(rows, parts), strict=True)]
        try:
            done = (
                self.session.sparkContext.parallelize(tasks, len(tasks))
                .map(lambda task: task.run(table.value))
                .collect()
            )
        except Exception as problem:
            if type(problem).__module__.split(".")[0] not in ("py4j", "pyspark"):
                raise
            do = "look at Spark's own log; the folder must be one that its workers can write to"
            raise InputError("a task of Spark failed; nothing was written", do=do) from None
        finally:
            table.destroy()
        for left in folder.glob(f"*{_BUILDING}"):  # by workers that died
            left.unlink()
        found = {Path(path).name: {"table": name, "rows": n, "sha256": digest} for path, n, digest in done}
        if len(found) != parts or not all(Path(path).is_file() for path in paths):
            do = "name a folder that they and this process share"
            raise InputError("the files of Spark's workers are not in the folder", do=do)
        return found

    def counted(self, paths: Sequence[Path]) -> Rows:
        """The distinct rows of these files with their numbers, as Spark counts them."""
        frame = self.session.read.parquet(*(Path(path).absolute().as_uri() for path in paths))
        columns = list(frame.columns)
        renamed = frame.toDF(*(f"c{at}" for at in range(len(columns))))
        answer = sent_by_spark(renamed.groupBy(*renamed.columns).count())
        return rows_of(in_order(answer.rename_columns([*columns, ROWS]), columns))


@dataclass(frozen=True)
class _Task:
    """One file: how many of each distinct row it has, and what its order is drawn with."""

    path: str
    numbers: NDArray[np.integer]  # (distinct rows,) as small as they can be: they travel
    seed: int

    def run(self, packed: bytes) -> tuple[str, int, str]:
        """Write the file; its path, its rows, its digest. It takes its place when it is whole."""
        table = pa.ipc.open_stream(packed).read_all()
        of = drawn(self.numbers.astype(np.int64), np.random.Generator(np.random.PCG64DXSM(self.seed)))
        building = f"{self.path}.{secrets.token_hex(4)}{_BUILDING}"
        schema = table.schema
        with pq.ParquetWriter(building, schema, write_statistics=False, store_schema=False) as writer:
            for some in steps(len(of), 1, GROUP):
                writer.write_table(table.take(pa.array(of[some])))
        sync(Path(building))
        with open(building, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        os.replace(building, self.path)
        return self.path, len(of), digest


def _packed(table: pa.Table) -> bytes:
    stream = pa.BufferOutputStream()
    whole = table.unify_dictionaries().combine_chunks()
    with pa.ipc.new_stream(stream, whole.schema) as writer:
        writer.write_table(whole)
    return bytes(stream.getvalue())


def _shares(rows: Rows, parts: int) -> Iterator[NDArray[np.integer]]:
    """How many of each distinct row go into each part: each row into each with the same probability, by itself."""
    random, left = fresh_random(), rows.numbers
    for more in range(parts, 0, -1):
        here = left if more == 1 else random.binomial(left, 1 / more)
        left = left - here
        yield here.astype(np.min_scalar_type(int(here.max(initial=0))))
