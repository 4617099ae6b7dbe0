"""Arrow tables as the frames people use."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from jali.errors import InputError, nearest, one_of, told

FRAMES = ("arrow", "pandas", "polars")


def free_name(wanted: str, taken: Iterable[str]) -> str:
    """A column name that is not taken.

    >>> free_name("rows", ["age", "rows"])
    'rows_'
    """
    names = set(taken)
    while wanted in names:
        wanted += "_"
    return wanted


def to_native(table: pa.Table, kind: str) -> Any:
    """The table as an Arrow table, a pandas frame or a Polars frame."""
    if not one_of(kind, FRAMES):
        raise InputError(f'no kind of frame "{told(kind)}"', do=nearest(kind, FRAMES))
    if kind == "arrow":
        return table
    try:
        library = importlib.import_module(kind)
    except ModuleNotFoundError:
        raise InputError(f"{kind} is not installed", do='install it, or ask for frame("arrow")') from None
    if kind == "polars":
        return library.from_arrow(table)
    nullable = {pa.int64(): library.Int64Dtype(), pa.bool_(): library.BooleanDtype()}
    columns = {
        name: column.to_pandas(date_as_object=False, types_mapper=nullable.get if column.null_count else None)
        for name, column in zip(table.column_names, table.columns, strict=True)
    }  # a missing number makes whole numbers floats unless their type knows missing values
    return library.DataFrame(columns)
