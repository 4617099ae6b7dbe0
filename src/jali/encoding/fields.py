"""Fields of any length: readers of CSV files have limits of their own, which are lifted here."""

from __future__ import annotations

import csv
import mmap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

LARGEST = 2**31 - 1
"""Bytes that a row of a CSV file may have: Arrow numbers them with 32 bits."""


def in_blocks(read: Callable[[int], pa.Table], size: int, source: Path | bytes | None = None) -> pa.Table:
    """Read a CSV file in blocks of so many bytes, or of as many more as its longest row needs.

    `source` is what is read, where it is read as it stands: then no block ends within a line break.
    """
    while True:
        try:
            return read(size if source is None else between_lines(source, size))
        except pa.ArrowInvalid as problem:
            if "straddling" not in str(problem) or size >= LARGEST:
                raise
            size = min(size * 8, LARGEST)


def between_lines(source: Path | bytes, size: int) -> int:
    """At least so many bytes, so that no block ends after the first letter of CR LF: Arrow drops the second there."""
    if isinstance(source, bytes):
        return _between_lines(source, size)
    if source.stat().st_size == 0:  # nothing to map
        return size
    with source.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return _between_lines(data, size)


def _between_lines(data: bytes | mmap.mmap, size: int) -> int:
    while any(data[end - 1 : end + 1] == b"\r\n" for end in range(size, len(data), size)):
        size += 1
    return size


@contextmanager
def any_length() -> Iterator[None]:
    """Let Python's own CSV reader take fields of any length."""
    before = csv.field_size_limit(LARGEST)
    try:
        yield
    finally:
        csv.field_size_limit(before)
