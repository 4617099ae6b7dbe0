"""What an engine has to count, row by row: combinations with their rows, and what each person has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from jali.sources.engines.base import Combinations

Row = Mapping[str, Any]


def combinations(
    rows: Sequence[Row], columns: Sequence[str], recoded: Mapping[str, Mapping[Any, int]] | None = None
) -> Counter[tuple[Any, ...]]:
    """How many rows have each combination; `recoded` says what stands in the place of a value."""
    nodes = recoded or {}
    return Counter(
        tuple(nodes[name].get(row[name]) if name in nodes else row[name] for name in columns) for row in rows
    )


def people(rows: Sequence[Row], columns: Sequence[str], person: str) -> Counter[frozenset[tuple[Any, int]]]:
    """How many people have each set of combinations with the numbers of their rows."""
    own: dict[Any, Counter[tuple[Any, ...]]] = {}
    for row in rows:
        own.setdefault(row[person], Counter())[tuple(row[name] for name in columns)] += 1
    return Counter(frozenset(each.items()) for each in own.values())


# -- tables to try engines on, and their answers in the oracle's form -----------------------------------------------

COLUMNS = ("n", 'odd "name"', "d")
ROW = st.tuples(
    st.none() | st.integers(0, 2), st.none() | st.sampled_from(["a", "b", "", "*", "'"]), st.none() | st.booleans(),
    st.integers(0, 4),
)  # fmt: skip
TABLES = st.lists(ROW, min_size=1, max_size=25)
PERSON = "rows"  # a name that SQL knows, and engines too


def arrow(rows: list[Any]) -> pa.Table:
    """Rows as a table, with a column of persons."""
    types = (pa.int64(), pa.string(), pa.bool_(), pa.int64())
    names = (*COLUMNS, PERSON)
    return pa.table(
        {name: pa.array([r[i] for r in rows], of) for i, (name, of) in enumerate(zip(names, types, strict=True))}
    )


def counted(found: Combinations) -> Counter[tuple[Any, ...]]:
    """What an engine answered, as `combinations` gives it."""
    rows = zip(*(column.to_pylist() for column in found.table.columns), strict=True)
    return Counter(_added(rows, found.rows.tolist()))


def _added(keys: Any, amounts: list[int]) -> dict[Any, int]:
    found: dict[Any, int] = {}
    for key, amount in zip(keys, amounts, strict=True):
        found[key] = found.get(key, 0) + amount
    return found


def persons_of(found: Combinations) -> Counter[frozenset[tuple[Any, int]]]:
    """What an engine answered, as `people` gives it."""
    keys = list(zip(*(column.to_pylist() for column in found.table.columns), strict=True))
    if found.person is None:
        return _one_row_each(found)
    own: dict[int, dict[Any, int]] = {}
    for person, key, rows in zip(found.person.tolist(), keys, found.rows.tolist(), strict=True):
        own.setdefault(person, {})[key] = rows
    return Counter(frozenset(each.items()) for each in own.values())


def _one_row_each(found: Combinations) -> Counter[frozenset[tuple[Any, int]]]:
    return Counter({frozenset([(key, 1)]): n for key, n in counted(found).items()})
