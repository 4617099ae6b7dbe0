"""What goes wrong in other tools (PITFALLS) does not go wrong here: frames, hierarchies, reading."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import jali
from jali.errors import HierarchyError, InputError

# --- frames as people have them ------------------------------------------------------------------------------------


def published(frame: Any, **options: Any) -> list[tuple[Any, ...]]:
    """The rows of a release in which nothing is generalized, sorted."""
    table = jali.table(frame, **options)
    levels = {column.name: 0 for column in table.quasi}
    release = jali.generalize(table, [jali.KAnonymity(1)], levels=levels)
    shown = release.frame("arrow")
    assert shown.column_names == [column.name for column in table.columns], "nothing but the named columns"
    return sorted(zip(*(c.to_pylist() for c in shown.columns), strict=True), key=repr)


def test_a_filtered_frame_has_the_rows_it_shows() -> None:
    """An index with gaps is no position, and no column of the release."""
    frame = pd.DataFrame({"age": [1, 2, 3, 4], "s": ["a", "b", "c", "d"]})
    frame = frame[frame.age > 2]
    assert published(frame, quasi=["age"], sensitive=["s"]) == [(3, "c"), (4, "d")]


def test_a_duplicated_index_multiplies_nothing() -> None:
    """1,000 rows stay 1,000 rows."""
    frame = pd.DataFrame({"age": np.arange(1000) % 50, "s": ["a", "b"] * 500}, index=[0] * 1000)
    assert len(published(frame, quasi=["age"], sensitive=["s"])) == 1000


def test_unused_categories_are_nobody() -> None:
    """k is not 0 because a category could occur."""
    frame = pd.DataFrame({"sex": pd.Categorical(["F", "F", "M", "M"], ["F", "M", "X"]), "s": [1, 2, 1, 2]})
    assert jali.audit(frame, quasi=["sex"], sensitive=["s"]).k == 2


@pytest.mark.parametrize("column", ["sex", "s"])
def test_missing_values_are_values(column: str) -> None:
    """No row is dropped for one, nor does one break the sensitive column."""
    frame = pd.DataFrame({"sex": ["F", "F", "M", "M"], "s": ["a", "b", "a", "b"]})
    frame.loc[0, column] = np.nan
    assert len(published(frame, quasi=["sex"], sensitive=["s"])) == 4


@pytest.mark.parametrize(
    "values",
    [
        pd.array([True, False, True, True]),
        pd.array([1, None, 1, 2], dtype="Int64"),
        pd.Series(["a", None, "a", "b"], dtype=object),
        pd.to_datetime(["2020-01-01", None, "2020-01-01", "2021-01-01"]),
        [1.5, np.nan, 1.5, 2.0],
        ["01", "1", "1 ", ""],
        [7, 7, 7, 7],
    ],
)
def test_every_kind_of_column_in_every_role(values: Any) -> None:
    """Booleans, whole numbers with nulls, objects, dates, blanks, leading zeros, constants."""
    frame = pd.DataFrame({"k": [1, 1, 2, 2], "x": values})
    for quasi, sensitive in (({"k": None, "x": None}, []), ({"k": None}, ["x"])):
        assert len(published(frame, quasi=quasi, sensitive=sensitive)) == 4


def test_a_constant_or_single_valued_sensitive_column_is_measured() -> None:
    """A division by its range or its entropy is no division by zero."""
    frame = pd.DataFrame({"k": [1, 1, 2, 2], "x": [7, 7, 7, 7]})
    audit = jali.audit(frame, quasi=["k"], sensitive=["x"])
    assert (audit.distinct_l, audit.t, audit.entropy_l) == (1, 0, 1)


def test_mixed_types_are_named_and_can_be_text() -> None:
    """One line says which column and what to write."""
    frame = pd.DataFrame({"x": pd.Series([1, "1", None], dtype=object)})
    with pytest.raises(InputError, match=r'column "x" mixes kinds of values.*types={"x": "text"}'):
        jali.table(frame, quasi=["x"])
    assert jali.table(frame, quasi=["x"], types={"x": "text"}).frequencies.rows.tolist() == [2, 1]


def test_the_empty_text_stands_beside_the_missing_value(tmp_path: Path) -> None:
    """And trailing spaces make another value: nothing is tidied behind the steward's back."""
    (tmp_path / "t.csv").write_text('zip,s\n"",1\n,2\n0123 ,3\n0123,4\n')
    found = jali.read(tmp_path / "t.csv", quasi={"zip": jali.mask()})
    assert found["zip"].values.to_pylist() == ["", "0123", "0123 ", None]


def test_column_order_is_nobodys_business() -> None:
    """Roles may name columns in any order."""
    frame = pd.DataFrame({"b": [1, 1], "a": [2, 3], "s": ["x", "y"]})
    one = jali.table(frame, quasi={"a": jali.bands(2), "b": jali.bands(5)}, sensitive=["s"])
    two = jali.table(frame, quasi={"b": jali.bands(5), "a": jali.bands(2)}, sensitive=["s"])
    assert one.frequencies.codes.tolist() == two.frequencies.codes.tolist()
    assert one.hierarchy("a").made_by == two.hierarchy("a").made_by == "bands(2)"


# --- hierarchies ---------------------------------------------------------------------------------------------------


def test_values_of_another_type_than_the_hierarchys_are_met() -> None:
    """39 and "39"."""
    rows = [(39, "30s", "*"), (41, "40s", "*")]
    texts = [tuple(map(str, row)) for row in rows]
    for values in ([39, 41], ["39", "41"], [39.0, 41.0], [39.0, None]):
        for taxonomy in (rows, texts):
            assert jali.table(pd.DataFrame({"x": values}), quasi={"x": jali.taxonomy(taxonomy)})["x"].codes[0] == 0


def test_an_uncovered_value_is_no_bare_key_error() -> None:
    """It names column, row and remedy, and hides the value."""
    with pytest.raises(HierarchyError) as caught:
        jali.table(pd.DataFrame({"job": ["cook", "spy"]}), quasi={"job": jali.taxonomy([("cook", "*")])})
    assert 'column "job", row 2' in str(caught.value)
    assert "spy" not in str(caught.value)


def test_ten_is_not_below_ten() -> None:
    """[0, 10) does not hold 10, and [0, 9] does not either."""
    for values in ([9, 10], [9.5, 10.0]):
        hierarchy = jali.table(pd.DataFrame({"x": values}), quasi={"x": jali.bands(10)}).hierarchy("x")
        assert len(hierarchy.levels[1]) == 2


def test_the_callers_own_objects_are_not_changed() -> None:
    """Frames, rows of a taxonomy, mappings."""
    frame = pd.DataFrame({"x": ["a", "b"]}, index=[5, 5])
    rows = [["a", "*"], ["b", "*"]]
    quasi = {"x": jali.taxonomy(rows)}
    before = frame.copy(), [list(row) for row in rows], dict(quasi)
    jali.generalize(jali.table(frame, quasi=quasi), [jali.KAnonymity(2)])
    pd.testing.assert_frame_equal(frame, before[0])
    assert (rows, quasi) == before[1:]


def test_levels_that_are_no_tree_are_refused() -> None:
    """With the level."""
    rows = [("a", "X", "P", "*"), ("b", "X", "Q", "*")]
    with pytest.raises(HierarchyError, match="not a tree: one value of level 1 lies under two of level 2"):
        jali.table(pd.DataFrame({"x": ["a"]}), quasi={"x": jali.taxonomy(rows)})


# --- reading -------------------------------------------------------------------------------------------------------


def test_a_zip_code_keeps_its_zero_from_file_to_release(tmp_path: Path) -> None:
    """Under mask, taxonomy, and without any hierarchy."""
    (tmp_path / "t.csv").write_text("zip,s\n01234,a\n01299,b\n")
    release = jali.generalize(
        jali.read(tmp_path / "t.csv", quasi={"zip": jali.mask()}, sensitive=["s"]), [jali.KAnonymity(2)]
    )
    assert release.frame("arrow")["zip"].to_pylist() == ["012**", "012**"]
    plain = jali.read(tmp_path / "t.csv", quasi=["zip"])
    assert plain.frame("arrow")["zip"].to_pylist() == ["01234", "01299"]


def test_row_order_and_engine_do_not_change_frequencies() -> None:
    """Shuffled rows and rows that an engine counted are the same people."""
    frame = pd.DataFrame({"x": np.arange(100) % 7, "d": [dt.date(2020, 1, 1 + i % 3) for i in range(100)]})
    shuffled = frame.sample(frac=1, random_state=0)
    tables = [jali.table(f, quasi=["x", "d"]) for f in (frame, shuffled, pa.table(frame))]
    for table in tables[1:]:
        assert table.frequencies.codes.tolist() == tables[0].frequencies.codes.tolist()
        assert table.frequencies.rows.tolist() == tables[0].frequencies.rows.tolist()
