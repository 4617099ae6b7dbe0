"""From file to verified release in a new process, and writing alone; beside another commit where one is named.

`JALI_BEFORE` is the `src` folder of the other commit; then both are run in turn, and ratios are of the same run.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks.table import show

SMALL = 45_222
JOBS = (  # rows, requirement, format of input and output
    (1_000_000, "k 6, entropy 6, 5 %", "csv"),
    (5_000_000, "k 5", "csv"),
    (5_000_000, "k 6, entropy 6, 5 %", "csv"),
    (5_000_000, "k 5", "parquet"),
    (20_000_000, "k 5", "parquet"),
)
TIMES = 12  # of the small table
LARGEST = 5_000_000  # rows that the other commit is asked to publish: beyond that it needs too much memory


def clocked(call: Callable[[], Any]) -> tuple[dict[str, float], Any]:
    """Seconds of the clock and of the processor, and what the call returns."""
    wall, processor = time.perf_counter(), time.process_time()
    result = call()
    return {"wall": time.perf_counter() - wall, "cpu": time.process_time() - processor}, result


def reading(path: Path) -> Any:
    """The census table in a file."""
    import jali

    try:
        from jali.datasets.columns import rows
    except ImportError:  # as earlier commits have it
        from jali.datasets.hierarchies import rows  # type: ignore[import-not-found,no-redef]
    names = ("age", "sex", "race", "marital-status", "education", "native-country", "workclass")
    quasi = {name: jali.taxonomy(rows(name)) for name in names}
    table = jali.read(path, quasi=quasi, sensitive=["occupation"])
    table.frequencies  # noqa: B018  # what every search begins with
    return table


def whole(path: Path, required: str) -> dict[str, Any]:
    """One job from file to file: seconds of its steps, and peak memory."""
    import jali

    entropy = [jali.KAnonymity(6), jali.EntropyDiversity(6)]
    promises, suppress = ([jali.KAnonymity(5)], 0.0) if required == "k 5" else (entropy, 0.05)
    found: dict[str, Any] = {}
    found["read"], table = clocked(lambda: reading(path))
    found["publish"], release = clocked(lambda: jali.generalize(table, promises, suppress=suppress))
    with tempfile.TemporaryDirectory() as folder:
        form: Any = path.suffix.removeprefix(".")
        found["save"], _ = clocked(lambda: release.save(Path(folder) / "out", format=form))
    found["all"] = {"cpu": time.process_time()}
    return found | {"peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6}


def small(path: Path) -> dict[str, Any]:
    """The best of several warm runs of the small table: reading, writing alone, and saving with all its checks."""
    import jali
    from jali.releases.base import Release

    best: dict[str, Any] = {}
    for _ in range(TIMES + 1):
        found: dict[str, Any] = {}
        found["read"], table = clocked(lambda: reading(path))
        with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
            release = jali.generalize(table, [jali.KAnonymity(5)])
            found["save"], _ = clocked(lambda r=release, f=folder: r.save(Path(f) / "all"))
            release = jali.generalize(table, [jali.KAnonymity(5)])
            for module in ("jali.releases.store", "jali.releases.written", "jali.core.files"):
                if find_spec(module):  # earlier commits have fewer modules
                    stack.enter_context(patch(f"{module}.sync", lambda path: None))
            check = "check_written" if hasattr(Release, "check_written") else "_check_files"  # the latter earlier
            stack.enter_context(patch.object(Release, check, lambda *_: None))
            stack.enter_context(patch.object(Release, "verify", lambda self: None))
            found["write"], _ = clocked(lambda r=release, f=folder: r.save(Path(f) / "alone"))
        best = {n: min(found[n], best.get(n, found[n]), key=lambda one: float(one["cpu"])) for n in found}
    return best


def _run(source: str | None, *arguments: str) -> dict[str, Any]:
    """The figures of one process, which imports jali from a folder, or as it is installed."""
    here = str(Path(__file__).resolve().parents[1])
    paths = [*([source] if source else []), here, *filter(None, [os.environ.get("PYTHONPATH")])]
    start = time.perf_counter()
    command = [sys.executable, "-m", "benchmarks.rows", *arguments]
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    )
    found: dict[str, Any] = json.loads(done.stdout)
    found.setdefault("all", {})["wall"] = time.perf_counter() - start
    return found


def _ratio(now: dict[str, Any], before: dict[str, Any] | None, step: str, beside: str | None = None) -> list[Any]:
    """Seconds of wall and processor of a step, and their ratios to the same or another step before."""
    own, beside = [now[step]["wall"], now[step]["cpu"]] if step in now else ["", ""], beside or step
    if before is None or beside not in before or not own[0]:
        return [*own, "", ""]
    return [*own, own[0] / before[beside]["wall"], own[1] / before[beside]["cpu"]]


def run(jobs: tuple[tuple[int, str, str], ...] = JOBS) -> None:
    """Print the tables."""
    earlier = os.environ.get("JALI_BEFORE")
    with tempfile.TemporaryDirectory() as folder:
        files = {job: _file(Path(folder), job[0], job[2]) for job in [(SMALL, "", "csv"), *jobs]}
        first = files[SMALL, "", "csv"]
        before = _run(earlier, "small", str(first)) if earlier else None
        now = _run(None, "small", str(first))
        show(
            f"{SMALL:,} rows, warm, k 5: seconds, and their ratio to before",
            ["step", "wall", "processor", "wall : before", "processor : before"],
            [
                ["read and encode CSV", *_ratio(now, before, "read")],
                ["write CSV, without sync and checks", *_ratio(now, before, "write")],
                ["save CSV with both", *_ratio(now, before, "save")],
                ["write alone, beside saving with both before", *_ratio(now, before, "write", "save")],
            ],
        )
        rows: list[list[Any]] = []
        for job in jobs:
            before = _run(earlier, "whole", str(files[job]), job[1]) if earlier and job[0] <= LARGEST else None
            now = _run(None, "whole", str(files[job]), job[1])
            what = f"{job[0]:,} rows, {job[1]}, {job[2]}"
            rows += [
                [what if s == "all" else f"  {s}", *_ratio(now, before, s), ""]
                for s in ("all", "read", "publish", "save")
            ]
            rows[-4][-1] = f"{now['peak']:.2f}" + (f" ({before['peak']:.2f})" if before else "")
        show(
            "In a new process from file to verified release: seconds, ratio to before, peak memory in GB (before)",
            ["job", "wall", "processor", "wall : before", "processor : before", "peak GB"],
            rows,
        )


def _file(folder: Path, rows: int, form: str) -> Path:
    """The census in a file of its own."""
    import pyarrow as pa
    import pyarrow.csv as pacsv
    import pyarrow.parquet as pq

    import jali

    path = folder / f"census-{rows}.{form}"
    if path.exists():
        return path
    table = jali.datasets.census(rows=rows, seed=0)
    schema = pa.schema([(column.name, column.values.type) for column in table.columns])
    with pacsv.CSVWriter(path, schema) if form == "csv" else pq.ParquetWriter(path, schema) as writer:
        for begin in range(0, rows, 1 << 20):  # so that the largest table needs little memory
            codes = [pa.array(column.codes[begin : begin + (1 << 20)]) for column in table.columns]
            columns = [column.values.take(own) for column, own in zip(table.columns, codes, strict=True)]
            writer.write_table(pa.table(columns, schema=schema))
    return path


# -- large files, beside what any program that reads and writes them takes ---------------------------------------------
#
# python -m benchmarks.rows large ROWS FOLDER [JOB …]

MEANS = ("floor", "k 5", "k 5, CSV", "k 6, entropy 6, 5 %", "partition", "anatomy", "transparent ANGEL")


def floor(path: Path) -> dict[str, Any]:
    """DuckDB's group-by of all columns, and a copy of the file by row group with dictionaries."""
    import duckdb
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        names = list(file.schema_arrow.names)
        texts = [field.name for field in file.schema_arrow if str(field.type) == "string"]

    def group() -> None:
        listed = ", ".join(f'"{name}"' for name in names)
        duckdb.sql(f"SELECT {listed}, count(*) AS n FROM '{path}' GROUP BY {listed}").to_arrow_table()

    def copy() -> None:
        with (
            tempfile.TemporaryDirectory(dir=path.parent) as folder,
            pq.ParquetFile(path, read_dictionary=texts) as file,
            pq.ParquetWriter(Path(folder) / "copy.parquet", file.schema_arrow, store_schema=False) as writer,
        ):
            for at in range(file.num_row_groups):
                writer.write_table(file.read_row_group(at))

    found = {"group-by": clocked(group)[0], "copy": clocked(copy)[0]}
    return found | _ended()


def by(path: Path, means: str) -> dict[str, Any]:
    """A job of any method from file to verified files."""
    import jali

    entropy, frequency = [jali.KAnonymity(6), jali.EntropyDiversity(6)], jali.FrequencyDiversity(3)
    found: dict[str, Any] = {}
    found["read"], table = clocked(lambda: reading(path))
    publish: dict[str, Callable[[], Any]] = {
        "k 5": lambda: jali.generalize(table, [jali.KAnonymity(5)]),
        "k 5, CSV": lambda: jali.generalize(table, [jali.KAnonymity(5)]),
        "k 6, entropy 6, 5 %": lambda: jali.generalize(table, entropy, suppress=0.05),
        "partition": lambda: jali.partition(table, [jali.KAnonymity(10), jali.EntropyDiversity(3)]),
        "anatomy": lambda: jali.anatomize(table, frequency, transparent=True),
        "transparent ANGEL": lambda: jali.angelize(table, frequency, k=10, buckets="partition", transparent=True),
    }
    found["publish"], release = clocked(publish[means])
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        form: Any = path.suffix.removeprefix(".")
        found["save"], _ = clocked(lambda: release.save(Path(folder) / "out", format=form))
    return found | _ended()


def _ended() -> dict[str, Any]:
    return {"all": {"cpu": time.process_time()}, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6}


def large(rows: int, folder: Path, jobs: tuple[str, ...] = MEANS) -> None:
    """Print processor seconds and peak memory of each job, each in a process of its own."""
    path, lines = large_file(folder, rows), []
    least = None
    for job in jobs:
        own = as_csv(path) if job.endswith("CSV") else path
        found = _run(None, "one", str(own), job)
        least = found["all"]["cpu"] if job == "floor" else least
        steps = ", ".join(f"{name} {own['cpu']:.1f}" for name, own in found.items() if name not in ("all", "peak"))
        ratio = "" if least is None else found["all"]["cpu"] / least
        lines.append([job, found["all"]["cpu"], ratio, steps, found["peak"], found["all"]["wall"]])
        print(job, *lines[-1][1:], file=sys.stderr, flush=True)
    show(
        f"{rows:,} rows, Parquet to Parquet or CSV to CSV, each line a new process: processor seconds, peak memory",
        ["job", "processor", ": floor", "of that", "peak GB", "wall"],
        lines,
    )


def large_file(folder: Path, rows: int) -> Path:
    """The census of so many rows in row groups of a million, five million at a time; kept if it is there."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    import jali

    path, at_once = folder / f"census-{rows}.parquet", 5_000_000
    if path.exists():
        return path
    writer: Any = None
    for seed, begin in enumerate(range(0, rows, at_once)):
        table = jali.datasets.census(rows=min(at_once, rows - begin), seed=seed)
        schema = pa.schema([(column.name, column.values.type) for column in table.columns])
        writer = writer or pq.ParquetWriter(path, schema)
        for some in range(0, table.rows, 1 << 20):
            codes = [pa.array(column.codes[some : some + (1 << 20)]) for column in table.columns]
            columns = [column.values.take(own) for column, own in zip(table.columns, codes, strict=True)]
            writer.write_table(pa.table(columns, schema=schema))
    writer.close()
    return path


def as_csv(path: Path) -> Path:
    """The same rows as CSV, beside the Parquet file; kept if it is there."""
    import pyarrow.csv as pacsv
    import pyarrow.parquet as pq

    target = path.with_suffix(".csv")
    if not target.exists():
        with pq.ParquetFile(path) as file, pacsv.CSVWriter(target, file.schema_arrow) as writer:
            for at in range(file.num_row_groups):
                writer.write_table(file.read_row_group(at))
    return target


def _one(path: Path, job: str) -> dict[str, Any]:
    return floor(path) if job == "floor" else by(path, job)


if __name__ == "__main__":
    if sys.argv[1] == "large":
        large(int(sys.argv[2]), Path(sys.argv[3]), tuple(sys.argv[4:]) or MEANS)
    else:
        tasks: dict[str, Callable[[], Any]] = {
            "whole": lambda: whole(Path(sys.argv[2]), sys.argv[3]),
            "small": lambda: small(Path(sys.argv[2])),
            "one": lambda: _one(Path(sys.argv[2]), sys.argv[3]),
        }
        print(json.dumps(tasks[sys.argv[1]]()))
