"""An ANGEL release read back from its files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from jali.releases.angel_tables import Contents, GroupTable
from jali.releases.published import restored, whole_numbers


def contents_of(tables: Mapping[str, pa.Table], columns: Sequence[Mapping[str, Any]]) -> Contents:
    """What these tables hold, by what the manifest says of their columns; a ValueError where they do not fit."""
    names = {facts["role"]: facts["name"] for facts in columns if "table" not in facts}
    number, count, weights = names["batch"], names["count"], names.get("weights")
    told: dict[str, list[Mapping[str, Any]]] = {}
    for facts in columns:
        if "table" in facts:
            told.setdefault(facts["table"], []).append(facts)
    batches = tables["batches"]
    if {*tables} != {*told} or next(iter(told)) != "data":
        raise ValueError("the manifest names other tables")
    entry_batch = whole_numbers(batches[number]) - 1
    groups = []
    for name, own in told.items():
        if name == "batches":
            continue
        table = tables[name]
        linked = number in table.column_names
        groups.append(
            GroupTable(
                name,
                tuple(restored(each, table[each["name"]]) for each in own),
                whole_numbers(table[number]) - 1 if linked else None,
                None if linked or weights is None else _floats(table[weights]),
            )
        )
    weight = None
    if weights is not None:
        shown = _floats(batches[weights])
        weight = np.zeros(int(entry_batch.max(initial=-1)) + 1)
        weight[entry_batch] = shown
        if not np.array_equal(weight[entry_batch], shown):
            raise ValueError("a batch shows two weights")
    hidden = tuple(restored(facts, batches[facts["name"]]) for facts in told["batches"])
    if all(column.judged is None for column in hidden):
        raise ValueError("the batches have no sensitive column")
    return Contents(tuple(groups), hidden, entry_batch, whole_numbers(batches[count]), weight, (number, count, weights))


def _floats(column: pa.ChunkedArray) -> NDArray[np.float64]:
    found: NDArray[np.float64] = column.cast(pa.string()).cast(pa.float64()).to_numpy(zero_copy_only=False)
    return found
