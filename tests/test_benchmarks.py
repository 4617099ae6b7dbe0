"""The benchmarks run: on few rows, so that a name they patch or call cannot go away unnoticed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SMALL = {
    "profile": "profile.ROWS = 3000; profile.run()",
    "engines": "engines.ROWS = 3000; engines.small()",
    "report": "report.ROWS = 3000; report.run()",
    "rows": "rows.SMALL, rows.JOBS = 500, ((1000, 'k 5', 'csv'), (1000, 'k 5', 'parquet')); rows.run(rows.JOBS)",
    "memory": "memory.ROWS, memory.SMALL = 3000, '200KB'; memory.run(memory.JOBS[2:])",
    "halves": "halves.ROWS = 3000; halves.run()",
    "partition": "partition.SIZES = (500, 1000, 2000); partition.run()",
    "angel": "angel.ROWS = 3000; angel.speed(); angel.many_batches(); angel.transparent_speed()",
    "marginals": "marginals.run()",
    "search": "search.COLUMNS, search.ROWS, search.TEXTS = 5, 500, (50, 100); search.run()",
    "lattice": "lattice.RUNS = lattice.TIMES = 1; lattice.run()",
    "studio": "studio.SIZES = (3000,); studio.run()",
    "attackers": "attackers.ROWS = 3000; attackers.LIMIT = 2.0; attackers.run()",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_a_benchmark_prints_its_tables(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"from benchmarks import {name}; {SMALL[name]}"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "---" in done.stdout


@pytest.mark.slow
def test_identifiers_are_found_in_tables_that_nobody_looked_at() -> None:
    """At least 0.98 of them, and of those named at least 0.9 are: in each half of more than 40 tables."""
    script = (
        "import json; from benchmarks.roles import SEEN, HELD_OUT, scored; "
        "print(json.dumps([(s.tables, s.recall, s.precision) for s in map(scored, (SEEN, HELD_OUT))]))"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    halves = json.loads(done.stdout)
    assert sum(tables for tables, _, _ in halves) >= 40
    assert all(recall >= 0.98 and precision >= 0.9 for _, recall, precision in halves)
