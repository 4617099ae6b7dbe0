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
from jali.sources.assemble import assemble
from jali.sources.roles import Missing, Roles, roles_of

_COUNT = "rows counted by jali"


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
    known = _names(frame)
    if known is not None:  # before narwhals sees the frame: it would refuse doubled names in its own words
        roles.check(known)
    try:
        found = nw.from_native(frame)
    except TypeError:
        do = "give a pandas, Polars or PyArrow frame, or use jali.read"
        raise InputError("not a frame", got=type(frame).__name__, do=do) from None
    if known is None:
        known = list(found.collect_schema().names())
        roles.check(known)
    wanted = [name for name, _ in roles.named()]
    origin = {"pandas": "pandas", "polars": "polars"}.get(str(found.implementation.name).lower(), "arrow")
    if isinstance(found, nw.LazyFrame):
        return _lazy(found, roles, known, wanted, origin)
    columns = {name: _column(found, name, roles) for name in wanted}
    return assemble(columns, roles, known=known, origin=origin)


def _names(frame: Any) -> list[str] | None:
    """Column names of an eager frame, doubled ones included; None where only narwhals knows them."""
    if hasattr(frame, "collect_schema"):
        return None
    names = frame.column_names if isinstance(frame, pa.Table) else getattr(frame, "columns", None)
    return [str(name) for name in names] if isinstance(names, Iterable) else None


def _column(found: Any, name: str, roles: Roles) -> pa.ChunkedArray:
    series = found.get_column(name)
    as_text = roles.types.get(name) == "text"
    try:
        arrow = series.to_arrow()
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, TypeError, OverflowError):
        if not as_text:
            do = f'make it one kind, or read it as text: types={{"{name}": "text"}}'
            raise InputError(f'column "{name}" mixes kinds of values', do=do) from None
        arrow = None
    if arrow is None or (as_text and isinstance(_value_type(arrow.type), pa.BaseExtensionType)):
        empty = series.is_null().to_list()
        arrow = pa.array([None if e else str(x) for x, e in zip(series.to_list(), empty, strict=True)], pa.string())
    return arrow if isinstance(arrow, pa.ChunkedArray) else pa.chunked_array([arrow])


def _value_type(of: pa.DataType) -> pa.DataType:
    return of.value_type if pa.types.is_dictionary(of) else of


def _lazy(found: Any, roles: Roles, known: list[str], wanted: list[str], origin: str) -> Table:
    """The distinct rows as the engine counts them, in an order that does not depend on its threads."""
    counted = found.select(wanted).group_by(wanted, drop_null_keys=False).agg(nw.len().alias(_COUNT))
    arrow = counted.sort(wanted, nulls_last=True).collect("pyarrow").to_arrow()
    multiplicity = np.asarray(arrow[_COUNT].cast(pa.int64()).to_numpy())
    columns = {name: arrow[name] for name in wanted}
    return assemble(columns, roles, known=known, origin=origin, multiplicity=multiplicity)
