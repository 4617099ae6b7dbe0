"""The studio with large files: seconds to its first page, seconds of a click, memory beside the command line's."""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.table import show

SIZES = tuple(int(size) for size in os.environ.get("JALI_STUDIO_ROWS", "1000000,5000000").split(","))
CLICKS = {
    "columns": ("GET", "/api/views/data", None),
    "a page of rows": ("GET", "/api/views/data?start=500000", None),
    "another role": ("POST", "/api/act/data/role", {"column": "sex", "value": "sensitive"}),
    "undo": ("POST", "/api/act/data/step", {"by": -1}),
    "history": ("GET", "/api/state", None),
    "compare all methods": ("POST", "/api/act/explore/compare", {}),
    "explore, while it runs": ("GET", "/api/views/explore", None),
    "columns, while it runs": ("GET", "/api/views/data", None),
}
"""What a person does, and what the page asks for then; work that takes longer goes on behind it."""


class Page:
    """A page of a studio, as a browser has it."""

    def __init__(self, address: str) -> None:
        found = re.fullmatch(r"http://([\d.]+):(\d+)(/\S*)", address)
        assert found is not None
        self.host, self.port = f"{found[1]}:{found[2]}", int(found[2])
        self.headers: dict[str, str] = {}
        answer, _ = self._send("GET", found[3], None)
        self.headers = {
            "Cookie": answer.headers["set-cookie"].split(";")[0],
            "X-Jali-Tab": answer.headers["location"].partition("#")[2],
        }

    def _send(self, method: str, path: str, body: Any) -> tuple[Any, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        own = {"Origin": f"http://{self.host}"} if method == "POST" else {}
        connection.request(method, path, None if body is None else json.dumps(body), self.headers | own)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer, text

    def ask(self, method: str, path: str, body: Any = None) -> str:
        """What the page gets."""
        return self._send(method, path, body)[1]

    def until(self, path: str, said: str) -> None:
        """Wait until a view says something."""
        while said not in self.ask("GET", path):
            time.sleep(0.02)


@contextmanager
def started(folder: Path, table: str) -> Iterator[tuple[Any, Page]]:
    """A studio of a table, its process and a page of it."""
    process = subprocess.Popen([sys.executable, "-u", "-m", "jali", "studio", table, "--no-browser"], cwd=folder,
                               stdout=subprocess.PIPE, text=True)  # fmt: skip
    try:
        assert process.stdout is not None
        yield process, Page(process.stdout.readline().strip().rpartition(" ")[2])
    finally:
        process.terminate()
        process.wait()


def family(process: int) -> list[int]:
    """A process and those below it."""
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return [process, *(one for child in children for one in family(int(child)))]


def peak(process: int) -> float:
    """Megabytes that a process and those below it have held at most, each at its own peak."""
    told = [Path(f"/proc/{one}/status").read_text() for one in family(process)]
    return sum(int(found[1]) for text in told if (found := re.search(r"VmHWM:\s+(\d+)", text))) / 1024


def spent(process: int) -> float:
    """Processor seconds of a process and those below it."""
    ticks = [Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()[11:13] for one in family(process)]
    return sum(int(tick) for own in ticks for tick in own) / os.sysconf("SC_CLK_TCK")


def command(folder: Path, *words: str) -> tuple[float, float]:
    """Seconds and megabytes of a command."""
    script = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, capture_output=True); " \
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)"  # fmt: skip
    begin = time.perf_counter()
    told = subprocess.run([sys.executable, "-c", script, sys.executable, "-m", "jali", *words], cwd=folder, check=True,
                          capture_output=True, text=True)  # fmt: skip
    return time.perf_counter() - begin, float(told.stdout)


def timed(call: Callable[[], object]) -> float:
    """Seconds of one call."""
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def measured(rows: int, folder: Path) -> None:
    """Print the figures of a table of this size."""
    import pyarrow.parquet as pq

    import jali

    pq.write_table(jali.datasets.census(rows=rows, seed=0).frame("arrow"), folder / "people.parquet")
    begin = time.perf_counter()
    with started(folder, "people.parquet") as (process, page):
        page.until("/api/views/data", 'class="columns"')
        first, worked = time.perf_counter() - begin, spent(process.pid)
        page.until("/api/views/data", 'id="role-0"')
        roles = time.perf_counter() - begin
        page.until("/api/views/data", "Rows 1 to")
        for method in ("partition", "recode", "anatomy", "angel", "marginals", "pdf"):
            page.ask("POST", "/api/act/explore/method", {"method": method, "value": False})
        clicks = {name: timed(lambda asked=asked: page.ask(*asked)) for name, asked in CLICKS.items()}  # type: ignore[misc]
        page.until("/api/views/explore", "data-marks=")
        point = time.perf_counter() - begin
        held = peak(process.pid)
        running = json.loads(page.ask("GET", "/api/state"))["running"]
        stop = timed(lambda: [page.ask("POST", "/api/act/explore/stop", {"number": run["number"]}) for run in running])
        history = json.loads((folder / "people.parquet.studio.json").read_text())
    from jali.core.forms import toml_text

    (folder / "job.toml").write_text(toml_text(history["history"][0]["job"]))
    commands = {
        "jali profile": command(folder, "profile", "people.parquet"),
        "jali publish": command(folder, "publish", "job.toml", "-o", "out"),
        "jali frontier --methods lattice": command(
            folder, "frontier", "job.toml", "--methods", "lattice", "-o", "frontier.html"
        ),
    }
    show(f"The first page, {rows:,} rows of Parquet; load {os.getloadavg()[0]:.1f}",
         ["what", "seconds"],
         [["columns are shown", first], ["processor seconds until then", worked], ["roles are suggested", roles],
          ["first point of a comparison", point], ["stopping it", stop]])  # fmt: skip
    show("Clicks, in milliseconds", ["what", "ms"], [[name, 1000 * taken] for name, taken in clicks.items()])
    most = max(memory for _, memory in commands.values())
    show("Memory, megabytes at the peak; that of the studio is the sum of its two processes", ["what", "MB", "ratio"],
         [["studio: profile, and the first points of the lattice", held, held / most],
          *([name, memory, memory / most] for name, (_, memory) in commands.items())])  # fmt: skip


def run() -> None:
    """Print the tables."""
    for rows in SIZES:
        with tempfile.TemporaryDirectory() as place:
            measured(rows, Path(place))
