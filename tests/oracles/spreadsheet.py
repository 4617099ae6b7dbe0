"""What a spreadsheet does with a CSV file that it opens: it reads fields and runs those that begin like a formula."""

from __future__ import annotations

import csv
from pathlib import Path

STARTS = ("=", "+", "-", "@")


def run_by_a_spreadsheet(path: Path, columns: list[str] | None = None) -> list[str]:
    """The fields that would be run: of these columns, or of all of them and the header."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    places = range(len(rows[0])) if columns is None else [rows[0].index(name) for name in columns]
    return [row[at] for row in rows for at in places if row and row[at].lstrip().startswith(STARTS)]
