"""Laws of hierarchies edited by hand: every edit leaves a tree over the same values, and moves nobody else."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jali.encoding.builders import Rows, merged, moved, renamed, with_level, without_level
from jali.encoding.hierarchy import rows_in, rows_text, taxonomy
from jali.errors import HierarchyError

ROWS: Rows = (
    ("fig", "fruit", "food", "*"),
    ("plum", "fruit", "food", "*"),
    ("salt", "mineral", "food", "*"),
    ("iron", "metal", "thing", "*"),
)


@st.composite
def trees(draw: st.DrawFn) -> Rows:
    """A tree of up to eight values with two levels between them and the root; nodes of a level have their own names."""
    values = draw(st.integers(1, 8))
    low = [draw(st.integers(0, values - 1)) for _ in range(values)]
    high = [draw(st.integers(0, 3)) for _ in range(values)]
    return tuple((f"v{i}", f"a{low[i]}", f"b{high[low[i]]}", "*") for i in range(values))


def is_tree(rows: Rows) -> bool:
    """The obvious check: at no level does a name stand under two others; the root is one."""
    width = len(rows[0])
    one_parent = all(
        len({row[level + 1] for row in rows if row[level] == name}) == 1
        for level in range(width - 1)
        for name in {row[level] for row in rows}
    )
    return one_parent and {len(row) for row in rows} == {width} and {row[-1] for row in rows} == {"*"}


@given(trees(), st.data())
def test_every_edit_leaves_a_tree_over_the_same_values(rows: Rows, data: st.DataObject) -> None:
    """Whatever is done in whatever order; and jali builds a hierarchy from it."""
    for _ in range(4):
        level = data.draw(st.integers(0, len(rows[0]) - 1))
        names = sorted({row[level] for row in rows})
        node, other = data.draw(st.sampled_from(names)), data.draw(st.sampled_from(names))
        edits: list[tuple[Callable[..., Rows], tuple[object, ...]]] = [
            (renamed, (level, node, "new")),
            (merged, (level, node, other)),
            (moved, (level, {node, other}, "b1")),
            (moved, (level, {node}, "apart")),
            (with_level, (level,)),
            (without_level, (level,)),
        ]
        edit, arguments = data.draw(st.sampled_from(edits))
        try:
            edited = edit(rows, *arguments)
        except HierarchyError:
            continue
        assert is_tree(edited)
        assert [row[0] for row in edited] == [row[0] for row in rows]
        rows = edited
    taxonomy(rows).build("x", pa.array([row[0] for row in rows]))


def test_a_node_is_renamed_where_it_stands() -> None:
    """Its values and what is above it stay; a name that is taken is refused."""
    made = renamed(ROWS, 1, "fruit", "sweet")
    assert made[:2] == (("fig", "sweet", "food", "*"), ("plum", "sweet", "food", "*"))
    assert made[2:] == ROWS[2:]
    for level, node, to in ((1, "fruit", "metal"), (1, "fruit", "*"), (1, "fruit", " "), (0, "fig", "x"), (3, "*", "x"),
                            (1, "nothing", "x"), (9, "fig", "x")):  # fmt: skip
        with pytest.raises(HierarchyError):
            renamed(ROWS, level, node, to)


def test_merging_brings_values_to_the_first_node_and_below_its_parent() -> None:
    """The other node is gone, and its parent where nothing is left of it."""
    assert merged(ROWS, 1, "fruit", "metal")[3] == ("iron", "fruit", "food", "*")
    assert {row[2] for row in merged(ROWS, 1, "fruit", "metal")} == {"food"}
    with pytest.raises(HierarchyError, match="itself"):
        merged(ROWS, 1, "fruit", "fruit")


def test_moving_under_a_known_name_joins_and_under_a_new_one_splits() -> None:
    """A new node stands beside the one that its first child came from."""
    assert moved(ROWS, 0, ["iron"], "mineral")[3] == ("iron", "mineral", "food", "*")
    assert moved(ROWS, 0, ["plum"], "stone fruit")[1] == ("plum", "stone fruit", "food", "*")
    assert moved(ROWS, 1, ["mineral"], "thing")[2] == ("salt", "mineral", "thing", "*")
    for level, nodes in ((0, []), (2, ["food"]), (0, ["nothing"])):
        with pytest.raises(HierarchyError):
            moved(ROWS, level, nodes, "x")


@given(trees(), st.integers(0, 2))
def test_a_level_that_is_added_can_be_removed_again(rows: Rows, level: int) -> None:
    """Which gives the hierarchy that was there."""
    assert without_level(with_level(rows, level), level + 1) == rows


@given(trees(), st.sampled_from(";,\t"))
def test_rows_that_are_written_are_read_again(rows: Rows, separator: str) -> None:
    """In the form that ARX has, whichever sign separates the levels."""
    assert rows_in(rows_text(rows, separator=separator)) == rows
