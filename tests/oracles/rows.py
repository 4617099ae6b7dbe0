"""Tables as rows in Python: what counting distinct rows and lines must agree with."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.csv as pacsv


def lines(data: bytes) -> tuple[bytes, Counter[bytes]] | None:
    """The first line, and how often each other one occurs; None where lines cannot be told apart that way."""
    first, *rest = data.split(b"\n")
    if b"\r" in data or not rest or rest[-1]:
        return None
    return first + b"\n", Counter(line + b"\n" for line in rest[:-1])


def csv_file(table: pa.Table) -> bytes:
    """The file that Arrow's own writer makes of the rows."""
    file = io.BytesIO()
    pacsv.write_csv(table, file, pacsv.WriteOptions(quoting_style="needed"))
    return file.getvalue()


def arrangements(numbers: Sequence[int]) -> set[tuple[int, ...]]:
    """Every order of the rows that distinct rows with these numbers stand for."""
    if not any(numbers):
        return {()}
    return {
        (i, *rest)
        for i, n in enumerate(numbers)
        if n
        for rest in arrangements([m - (j == i) for j, m in enumerate(numbers)])
    }
