"""All tables of an ANGEL release together, with or without batches, against every world that agrees with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from jali.estimates.cover import Cover
from jali.releases.angel_decide import decide
from jali.releases.angel_tables import GroupTable
from jali.releases.published import Published
from tests.oracles import angel as oracle

VALUES = "abc"


def published(name: str, rows: list[Any], columns: list[str]) -> GroupTable:
    """A table of sets of letters, as it would be published."""
    shown = []
    for column in columns:
        sets = ["".join(sorted(cell[column])) for _, cell, _ in rows]
        nodes = sorted({*sets})
        start = np.cumsum([0, *map(len, nodes)])
        cover = Cover.sets(pa.array(list(VALUES)), start, [VALUES.index(letter) for node in nodes for letter in node])
        codes = np.array([nodes.index(text) for text in sets])
        shown.append(Published(column, "quasi", "text", pa.array(nodes), codes, cover))
    batch = None if rows[0][2] is None else np.array([batch for _, _, batch in rows], dtype=np.int64)
    return GroupTable(name, tuple(shown), batch)


@st.composite
def releases(draw: st.DrawFn) -> tuple[list[list[Any]], list[list[str]]]:
    """Rows of `data` and of one or two further tables about the same people, and the columns of each."""
    many = draw(st.integers(1, 5))
    people = [(draw(st.sampled_from(VALUES)), draw(st.sampled_from(VALUES))) for _ in range(many)]
    batch = np.unique(draw(st.lists(st.integers(0, 1), min_size=many, max_size=many)), return_inverse=True)[1].tolist()
    columns = [["p", "q"], *draw(st.lists(st.sampled_from([["p"], ["q"], ["p", "q"]]), min_size=1, max_size=2))]
    tables: list[list[Any]] = []
    for at, names in enumerate(columns):
        linked = at == 0 or draw(st.booleans())
        rows = []
        shown: dict[Any, Any] = {}  # who is alike shows the same
        for person, number in zip(people, batch, strict=True):
            own = {name: person["pq".index(name)] for name in names}
            key = tuple(own.values())
            if key not in shown:
                shown[key] = {
                    name: frozenset(draw(st.sets(st.sampled_from(VALUES), max_size=2))) | {value}
                    for name, value in own.items()
                }
            cell = shown[key]
            named = tuple("".join(sorted(cell[name])) for name in names)
            rows.append((named, cell, number if linked else None))
        tables.append(rows)
    return tables, columns


@given(releases(), st.integers(1, 4))
def test_together_tables_keep_k_exactly_where_no_combination_of_cells_breaks_it(
    release: tuple[list[list[Any]], list[list[str]]], k: int
) -> None:
    """Of every table, with or without batches; and the combination that is named has the people that are said."""
    rows, columns = release
    made = [published(f"t{i}", table, names) for i, (table, names) in enumerate(zip(rows, columns, strict=True))]
    size = np.bincount([batch for _, _, batch in rows[0]])
    found = decide(made, size, k)
    ranges = oracle.joint_ranges(rows)
    assert found.kept is not oracle.breaks_k(rows, k)
    if found.kept is False:
        assert found.cell is not None
        at = [int(name[1:]) for name in found.cell.cells]
        cells = [tuple(str(text) for text in found.cell.cells[f"t{i}"].values()) for i in at]
        low, high = ranges[tuple(zip(at, cells, strict=True))]
        assert 1 <= found.cell.low <= low <= high <= found.cell.high < k
