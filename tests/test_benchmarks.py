"""The benchmarks run: on few rows, so that a name they patch or call cannot go away unnoticed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SMALL = {
    "profile": "profile.ROWS = 3000; profile.run()",
    "report": "report.ROWS = 3000; report.run()",
    "rows": "rows.SMALL, rows.JOBS = 500, ((1000, 'k 5', 'csv'), (1000, 'k 5', 'parquet')); rows.run(rows.JOBS)",
    "halves": "halves.ROWS = 3000; halves.run()",
    "partition": "partition.SIZES = (500, 1000, 2000); partition.run()",
    "angel": "angel.ROWS = 3000; angel.speed(); angel.many_batches(); angel.transparent_speed()",
    "marginals": "marginals.run()",
    "search": "search.COLUMNS, search.ROWS, search.TEXTS = 5, 500, (50, 100); search.run()",
    "lattice": "lattice.RUNS = lattice.TIMES = 1; lattice.run()",
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
