"""Fields of any length: readers of CSV files have limits of their own, which are lifted here."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pyarrow as pa

LARGEST = 2**31 - 1
"""Bytes that a row of a CSV file may have: Arrow numbers them with 32 bits."""


def in_blocks(read: Callable[[int], pa.Table], size: int) -> pa.Table:
    """Read a CSV file in blocks of so many bytes, or of as many more as its longest row needs."""
    while True:
        try:
            return read(size)
        except pa.ArrowInvalid as problem:
            if "straddling" not in str(problem) or size >= LARGEST:
                raise
            size = min(size * 8, LARGEST)


@contextmanager
def any_length() -> Iterator[None]:
    """Let Python's own CSV reader take fields of any length."""
    before = csv.field_size_limit(LARGEST)
    try:
        yield
    finally:
        csv.field_size_limit(before)
