"""Tables from frames: pandas, Polars, PyArrow, and lazy frames whose engine counts for us."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa

from jali.encoding import values as v
from jali.encoding.table import Domain, Table
from jali.errors import InputError
from jali.sources.assemble import Missing, Roles, assemble, roles_of


def table(
    frame: Any,
    *,
    quasi: Mapping[str, object] | Iterable[str],
    sensitive: Mapping[str, object] | Iterable[str] = (),
    other: Iterable[str] = (),
    person: str | None = None,
    weights: str | None = None,
    types: Mapping[str, v.Kind] | None = None,
    missing: Missing = "keep",
    domain: Domain = "declared",
) -> Table:
    """A table about people from a pandas, Polars or PyArrow frame, or any lazy frame that narwhals understands.

    A lazy frame (a DuckDB relation, a Spark frame) counts its distinct rows itself; only those come here.
    """
    roles = roles_of(quasi, sensitive, other, person, weights, types, missing, domain)
    try:
        found = nw.from_native(frame)
    except TypeError:
        raise InputError("not a frame", got=type(frame).__name__, do="give a pandas, Polars or PyArrow frame, or use jali.read") from None
    known = _names(frame, found)
    roles.check(known)
    if isinstance(found, nw.LazyFrame):
        return _lazy(found, roles, known)
    wanted = [name for name, _ in roles.named()]
    columns = {name: _column(found, name, roles) for name in wanted}
    origin = {"pandas": "pandas", "polars": "polars"}.get(str(found.implementation.name).lower(), "arrow")
    return assemble(columns, roles, known=known, from_text=False, origin=origin)


def _names(frame: Any, found: Any) -> list[str]:
    """Column names, doubled ones included where the frame allows them."""
    names = getattr(frame, "columns", None)
    if names is not None and all(isinstance(name, str) for name in names):
        return list(names)
    return list(found.collect_schema().names())


def _column(found: Any, name: str, roles: Roles) -> pa.ChunkedArray:
    series = found.get_column(name)
    try:
        arrow = series.to_arrow()
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError):
        if roles.types.get(name) != "text":
            raise InputError(f'column "{name}" mixes kinds of values', do=f'read it as text: types={{"{name}": "text"}}') from None
        missing = series.is_null().to_list()
        texts = [None if empty else str(value) for value, empty in zip(series.to_list(), missing, strict=True)]
        arrow = pa.array(texts, pa.string())
    return arrow if isinstance(arrow, pa.ChunkedArray) else pa.chunked_array([arrow])


def _lazy(found: Any, roles: Roles, known: list[str]) -> Table:
    wanted = [name for name, _ in roles.named()]
    count = "jali rows"
    counted = found.select(wanted).group_by(wanted, drop_null_keys=False).agg(nw.len().alias(count)).collect("pyarrow")
    arrow = counted.to_arrow()
    multiplicity = np.asarray(arrow[count].combine_chunks().cast(pa.int64()).to_numpy(zero_copy_only=False))
    columns = {name: arrow[name] for name in wanted}
    return assemble(columns, roles, known=known, from_text=False, origin="arrow", multiplicity=multiplicity)
