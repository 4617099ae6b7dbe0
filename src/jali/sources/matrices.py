"""Frames of counts: a row for each bucket, a column for each value."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from jali.errors import InputError


class Counted(NamedTuple):
    """The counts of a frame, and what its columns are called."""

    matrix: NDArray[Any]  # (buckets, values)
    names: tuple[str, ...]  # (values,)


def counted(given: Any) -> Counted | None:
    """The counts of a pandas, Polars or Arrow table, row by row; None for what is no frame.

    The index of a pandas frame, as `pd.crosstab` has it, is no value.
    """
    if isinstance(given, pa.RecordBatch):
        given = pa.Table.from_batches([given])
    if isinstance(given, (list, tuple, np.ndarray)):
        return None
    if hasattr(type(given), "collect"):
        raise InputError("a lazy frame has no rows yet", got=type(given).__name__, do="collect it first")
    columns: Any = given.column_names if isinstance(given, pa.Table) else getattr(given, "columns", None)
    names = tuple(map(_named, columns)) if isinstance(columns, list) or _is_index(columns) else ()
    if len(set(names)) < len(names):
        raise InputError("two columns of the counts have the same name", do="give each value one column")
    import narwhals as nw

    frame = nw.from_native(given, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return None
    series = [frame[:, at] for at in range(len(frame.columns))]
    for name, column in zip(names, series, strict=True):
        if not column.dtype.is_numeric():
            do = "leave it out, and pass one row for each bucket and one column for each value"
            raise InputError(f'column "{name}" of the counts holds no numbers', got=str(column.dtype), do=do)
        if column.null_count():
            raise InputError(f'column "{name}" of the counts has empty cells', do="write 0 where nobody has the value")
    if not series or not len(frame):
        return Counted(np.zeros((len(frame), len(series)), dtype=np.int64), names)
    return Counted(_matrix(frame, series), names)


def _matrix(frame: Any, series: list[Any]) -> NDArray[Any]:
    """The numbers of all columns in one type; of one type already they are not copied where the library need not."""
    parts = [column.to_numpy() for column in series]
    kinds = {part.dtype for part in parts}
    if len(kinds) == 1 and parts[0].dtype.kind in "iuf":
        whole = frame.to_numpy()
        if whole.dtype == parts[0].dtype:
            return np.asarray(whole)
    return np.stack([part if part.dtype.kind in "iuf" else part.astype(np.float64) for part in parts], axis=1)


def _is_index(columns: Any) -> bool:
    """Whether these are the column names of a pandas frame, which are an index."""
    return hasattr(columns, "tolist") and hasattr(columns, "nlevels")


def _named(name: Any) -> str:
    return ", ".join(map(str, name)) if isinstance(name, tuple) else str(name)
