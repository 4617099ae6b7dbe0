"""Figures in columns."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def show(title: str, head: list[str], rows: list[list[Any]]) -> None:
    """Print an aligned table."""
    cells = [head] + [[f"{c:.3f}" if isinstance(c, float) else str(c) for c in row] for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    print(title)
    for number, row in enumerate(cells):
        print("  " + "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)))
        if number == 0:
            print("  " + "  ".join("-" * width for width in widths))
    print(flush=True)


def timed(work: Callable[[], Any], *, repeat: int = 1) -> tuple[float, Any]:
    """The least of a few times, and what the work gave."""
    best, result = float("inf"), None
    for _ in range(repeat):
        start = time.perf_counter()
        result = work()
        best = min(best, time.perf_counter() - start)
    return best, result
