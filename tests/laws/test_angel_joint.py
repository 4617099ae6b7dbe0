"""All tables of an ANGEL release together, with or without batches, against every world that agrees with them."""

from __future__ import annotations

from collections import Counter
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jali
from jali.cover.cover import Cover
from jali.errors import InputError
from jali.releases.column import Published
from jali.releases.linked.angel import Angel
from jali.releases.linked.decide import decide
from jali.releases.linked.tables import GroupTable
from jali.search.nested import nested_groups
from oracles import angel as oracle

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


@pytest.mark.parametrize("patience", [0, 40])
@given(releases(), st.integers(1, 4))
def test_together_tables_keep_k_exactly_where_no_combination_of_cells_breaks_it(
    patience: int, release: tuple[list[list[Any]], list[list[str]]], k: int
) -> None:
    """Of every table, with or without batches, by walks and by programs alone; and the combination that is named has
    the people that are said.
    """
    rows, columns = release
    made = [published(f"t{i}", table, names) for i, (table, names) in enumerate(zip(rows, columns, strict=True))]
    size = np.bincount([batch for _, _, batch in rows[0]])
    with patch("jali.releases.linked.decide.PATIENCE", patience):
        found = decide(made, size, k)
    ranges = oracle.joint_ranges(rows)
    assert found.kept is not oracle.breaks_k(rows, k)
    if found.kept is False:
        assert found.cell is not None
        at = [int(name[1:]) for name in found.cell.cells]
        cells = [tuple(str(text) for text in found.cell.cells[f"t{i}"].values()) for i in at]
        low, high = ranges[tuple(zip(at, cells, strict=True))]
        assert 1 <= found.cell.low <= low <= high <= found.cell.high < k


def seen(release: Angel) -> list[list[Any]]:
    """The published tables as an attacker reads them: sets of the values that cells of words and numbers show."""
    rows = []
    for table in release.contents.tables:
        shown = table.counted("batch", None).plain().to_pylist()
        names = [column.name for column in table.columns]
        rows.append(
            [(tuple(row[n] for n in names), {n: values(row[n]) for n in names}, row.get("batch")) for row in shown]
        )
    return rows


def values(cell: str) -> frozenset[str]:
    """What a cell such as z, {x, y}, {x, other values} or [0, 3] covers."""
    if cell.startswith("["):
        low, high = cell.strip("[]").split(", ")
        return frozenset(str(n) for n in range(int(low), int(high) + 1))
    named = frozenset(cell.strip("{}").split(", "))
    return frozenset("xyz") if "other values" in named else named


def small(people: list[tuple[int, str, str]]) -> jali.Table:
    frame = pa.table(dict(zip("abs", map(list, zip(*people, strict=True)), strict=True)))
    quasi = {"a": jali.bands(2, 4, low=0, high=7), "b": jali.suppress()}
    return jali.table(frame, quasi=quasi, sensitive=["s"])


CASE = list(zip([3, 0, 0, 2, 5, 3], "yzxxyz", "qppppq", strict=True))


def test_a_marginal_without_batches_singles_somebody_out_and_joint_k_sees_it() -> None:
    """One person is z and in [3, 5], from counts alone: what the audit says, and what joint_k does not publish."""
    asked: dict[str, Any] = {"k": 2, "marginals": [["a"]], "buckets": "partition"}
    plain = jali.angelize(small(CASE), jali.FrequencyDiversity(1.4), **asked)
    assert oracle.breaks_k(seen(plain), 2)
    audit = jali.audit(plain)
    assert audit.angel is not None
    assert audit.angel.joint_keeps_k is False
    assert any("all tables together" in note for note in audit.notes)
    release = jali.angelize(small(CASE), jali.FrequencyDiversity(1.4), joint_k=True, **asked)
    assert not oracle.breaks_k(seen(release), 2)
    assert "Coarsened" in repr(release)


people = st.tuples(st.integers(0, 7), st.sampled_from("xyz"), st.sampled_from("pq"))


@given(
    st.lists(people, min_size=2, max_size=6).filter(lambda all_of: len({s for _, _, s in all_of}) == 2),
    st.integers(2, 3),
    st.lists(st.sampled_from([["a"], ["b"], ["a", "s"], ["b", "s"]]), min_size=1, max_size=2),
    st.sampled_from(["partition", "recode"]),
)
def test_what_joint_k_publishes_keeps_k_in_every_world(
    everybody: list[tuple[int, str, str]], k: int, marginals: list[list[str]], buckets: Any
) -> None:
    """It delivers whenever the table has k people, and no combination of published cells certainly holds fewer."""
    original = small(everybody)
    asked: dict[str, Any] = {"k": min(k, len(everybody)), "marginals": marginals, "buckets": buckets}
    try:
        plain = jali.angelize(original, jali.FrequencyDiversity(1.1), batches="partition", **asked)
    except InputError:
        return  # the promise about values cannot be kept
    release = jali.angelize(original, jali.FrequencyDiversity(1.1), batches="partition", joint_k=True, **asked)
    assert not oracle.breaks_k(seen(release), asked["k"])
    audit = jali.audit(plain)
    assert audit.angel is not None
    assert audit.angel.joint_keeps_k is not oracle.breaks_k(seen(plain), asked["k"])


def test_what_is_not_decided_in_time_is_refused() -> None:
    """A release that was made is refused where its tables cannot be judged together in time, in one line."""
    release = jali.angelize(small(CASE), jali.FrequencyDiversity(1.4), k=2, marginals=[["a"]], joint_k=True)
    with patch("jali.releases.linked.worlds.MOST", 0), pytest.raises(InputError, match="not decided within 60 seconds"):
        release.verify()
    with patch("jali.releases.linked.worlds.MOST", 0):
        audit = jali.audit(release)
    assert audit.angel is not None
    assert audit.angel.joint_keeps_k is None
    assert not audit.holds
    assert "not decided in time" in repr(audit)


@given(
    st.lists(people, min_size=1, max_size=30),
    st.integers(1, 4),
    st.integers(1, 3),
    st.lists(st.sampled_from([["a"], ["b"], ["a", "b"]]), min_size=1, max_size=3),
    st.tuples(st.booleans(), st.booleans()),
)
def test_nested_groups_lie_within_each_other(
    everybody: list[tuple[int, str, str]], k: int, factor: int, tables: list[list[str]], trees: tuple[bool, bool]
) -> None:
    """A group of all columns lies in one group of each table; it has k people, and overlaps of the tables `least`."""
    original, k = small(everybody), min(k, len(everybody))
    least = min(factor * k, len(everybody))
    data, groups = nested_groups(original, tables, k=k, least=least, trees=np.array(trees))
    f = original.frequencies
    seats = [(int(data[c]), *(int(group[c]) for group in groups)) for c in f.row_combination]
    assert min(Counter(seat[0] for seat in seats).values()) >= k
    assert min(Counter(seat[1:] for seat in seats).values()) >= least
    assert len({seat[0] for seat in seats}) == len({*seats})
    for at, names in enumerate(tables, start=1):
        columns = [original[name].codes for name in names]
        alike = {tuple(int(c[row]) for c in columns): seats[row][at] for row in range(len(seats))}
        assert all(alike[tuple(int(c[row]) for c in columns)] == seats[row][at] for row in range(len(seats)))
