"""A hierarchy begins with the values, coarsens level by level, and ends in one root; whatever builds it."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import jali
from jali.encoding.builders import Automatic
from jali.encoding.hierarchy import Builder, Hierarchy, Level, Taxonomy
from jali.encoding.intervals import Bands
from jali.errors import HierarchyError, InputError
from oracles.encoding import band_of, masked
from oracles.hierarchies import column, hierarchy, is_hierarchy, labels, refused_in_one_line

numbers = st.one_of(st.integers(-(10**6), 10**6), st.decimals(-1000, 1000, places=2).map(float), st.none())
wholes = st.one_of(st.integers(-(2**63), 2**63 - 1), st.none())
days = st.one_of(st.dates(dt.date(1, 1, 1), dt.date(9999, 1, 1)), st.none())
times = st.one_of(st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2200, 1, 1)), st.none())
words = st.one_of(st.text(max_size=8).filter(lambda t: t != "*"), st.none())


@given(
    st.lists(numbers, min_size=1),
    st.sampled_from([(1,), (5, 10, 20), (0.1, 0.5), (0.25, 100), (7, 14)]),
    st.integers(-9, 9),
)
def test_bands_are_a_hierarchy(values: list[Any], widths: tuple[float, ...], origin: int) -> None:
    """Of whole numbers, fractions and missing values, wherever the bands begin."""
    is_hierarchy(hierarchy([None if x is None else float(x) for x in values], jali.bands(*widths, origin=origin)))


@given(st.lists(wholes, min_size=1))
def test_bands_reach_to_the_ends_of_64_bits(values: list[int | None]) -> None:
    """No sum overflows on the way."""
    assume(any(x is not None for x in values))
    found = hierarchy(pa.array(values, pa.int64()), jali.bands(10, 1000))
    is_hierarchy(found)
    for text, label in labels(found, 1).items():
        if text is not None:
            low = int(text) // 10 * 10
            assert label == f"[{low}, {low + 9}]"


@given(st.lists(st.text(max_size=8).filter(lambda t: t != "*"), min_size=1))
def test_masks_are_a_hierarchy(values: list[str]) -> None:
    """Of any texts, of whatever length."""
    found = hierarchy(values, jali.mask())
    is_hierarchy(found)
    for level in range(1, found.height):
        assert labels(found, level) == {text: masked(text, level) for text in set(values)}


@given(st.lists(days, min_size=1))
def test_dates_are_a_hierarchy(values: list[dt.date | None]) -> None:
    """Of days."""
    is_hierarchy(hierarchy(pa.array(values, pa.date32()), jali.dates()))


@given(st.lists(times, min_size=1))
def test_times_are_a_hierarchy_and_lie_in_their_intervals(values: list[dt.datetime | None]) -> None:
    """Of times of day, each of which lies in [low, high) of its day, month, quarter, year and decade."""
    made = column(pa.array(values, pa.timestamp("us")), jali.dates())
    found = made.hierarchy
    is_hierarchy(found)
    from jali.encoding import values as v

    number = v.numbers(made.values)
    for nodes, level in zip(found.maps, found.levels, strict=True):
        if level.low is not None:
            known = ~np.isnan(number)
            assert (level.low[nodes] <= number)[known].all()
            ends = number < level.high[nodes] if not found.whole else number <= level.high[nodes]
            assert ends[known].all()


@given(st.lists(words, min_size=1))
def test_suppress_is_a_hierarchy(values: list[str | None]) -> None:
    """Of anything."""
    is_hierarchy(hierarchy(pa.array(values, pa.string()), jali.suppress()))


@given(
    st.one_of(
        st.lists(numbers, min_size=1),
        st.lists(words, min_size=1),
        st.lists(days, min_size=1),
        st.lists(st.booleans(), min_size=1),
    )
)
def test_the_chosen_one_is_a_hierarchy(values: list[Any]) -> None:
    """Whatever the column holds, and it says that it was chosen."""
    if any(isinstance(x, float) for x in values):
        values = [None if x is None else float(x) for x in values]
    found = hierarchy(values, None)
    is_hierarchy(found)
    assert found.chosen


@given(st.data())
def test_a_taxonomy_is_a_hierarchy(data: st.DataObject) -> None:
    """From any rows that are a tree; its leaves are the domain, in the order of the rows."""
    leaves = data.draw(st.lists(st.text("abc", min_size=1, max_size=4), min_size=1, unique=True))
    group = {leaf: data.draw(st.sampled_from(["P", "Q", "R"])) for leaf in leaves}
    rows = [(leaf, group[leaf], "PQ" if group[leaf] in "PQ" else "R", "*") for leaf in leaves]
    values = data.draw(st.lists(st.one_of(st.sampled_from(leaves), st.none()), min_size=1))
    found = hierarchy(pa.array(values, pa.string()), jali.taxonomy(rows))
    is_hierarchy(found)
    assert found.declared
    assert found.levels[0].texts()[: len(leaves)] == leaves


@given(st.lists(st.decimals(-50, 50, places=3), min_size=1), st.sampled_from(["0.1", "0.3", "0.05", "2.5", "0.007"]))
def test_bands_are_exact_where_floats_are_not(values: list[Any], width: str) -> None:
    """0.3 lies in [0.3, 0.4), though 0.3 // 0.1 is 2 in floats; the written decimals decide."""
    assume(any(x % 1 for x in values))
    found = hierarchy([float(x) for x in values], jali.bands(float(width)))
    for text, node in zip(found.levels[0].texts(), found.maps[1], strict=True):
        low, high = band_of(str(text), Fraction(width))
        level = found.levels[1]
        assert (level.low[node], level.high[node]) == (float(low), float(high))


def test_bands_of_whole_numbers_are_closed_and_of_fractions_half_open() -> None:
    """10 is not in [0, 10)."""
    assert labels(hierarchy([0, 4, 5, 9, 10, -1], jali.bands(5, 10)), 1) == {
        "-1": "[-5, -1]", "0": "[0, 4]", "4": "[0, 4]", "5": "[5, 9]", "9": "[5, 9]", "10": "[10, 14]",
    }  # fmt: skip
    assert labels(hierarchy([9.5, 10.0], jali.bands(10)), 1) == {"9.5": "[0, 10)", "10": "[10, 20)"}
    assert labels(hierarchy([1, 2, 3], jali.bands(2, origin=1)), 1) == {"1": "[1, 2]", "2": "[1, 2]", "3": "[3, 4]"}
    assert labels(hierarchy([0.1, 0.3, 0.7], jali.bands(0.1)), 1) == {
        "0.1": "[0.1, 0.2)", "0.3": "[0.3, 0.4)", "0.7": "[0.7, 0.8)",
    }  # fmt: skip


def test_bands_of_decimals_floats_and_texts_are_those_of_the_numbers() -> None:
    """39, 39.00, 39.0 and "39" are one number, inside declared bounds too."""
    decimals = pa.array(["39.00", "41.00"]).cast(pa.decimal128(6, 2))
    for values in ([39, 41], [39.0, 41.0], ["39", " 41"], decimals):
        made = column(values, jali.bands(5, low=35, high=44))
        assert made.declared
        assert made.values.to_pylist() == list(range(35, 45))
        assert made.codes.tolist() == [4, 6]
        assert made.hierarchy.levels[1].texts() == ["[35, 39]", "[40, 44]"]


def test_declared_bounds_keep_a_place_for_the_missing_value() -> None:
    """Which is last, and alone below the root."""
    made = column([3, None], jali.bands(2, low=0, high=3))
    assert made.values.to_pylist() == [0, 1, 2, 3, None]
    assert labels(made.hierarchy, 1)[None] is None
    assert column(pa.nulls(2), jali.bands(2, low=0, high=3)).values.to_pylist() == [0, 1, 2, 3, None]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (jali.bands, "at least one width"),
        (lambda: jali.bands(5, 12), "got 5, 12; change 12 to 10 or another multiple of 5"),
        (lambda: jali.bands(5, 5), "change 5 to 10"),
        (lambda: jali.bands(10, 5), "change 5 to 20"),
        (lambda: jali.bands(0), "must be positive"),
        (lambda: jali.bands(-5), "must be positive"),
        (lambda: jali.bands("5"), "must be a finite number"),
        (lambda: jali.bands(True), "must be a finite number"),
        (lambda: jali.bands(float("nan")), "must be a finite number"),
        (lambda: jali.bands(10**400), "must be a finite number: got 'a number of more than 300 digits'"),
        (lambda: jali.bands(5, low=0, high=10**5000), "high of bands() must be a finite number"),
        (lambda: jali.grid(10**400), "must be a finite number"),
        (lambda: jali.quantiles(10**400), "whole numbers from 2 to 2,147,483,647"),
        (lambda: jali.bands(5, origin="0"), "origin of bands"),
        (lambda: jali.bands(5, low="a"), "low of bands"),
        (lambda: jali.bands(5, low=9, high=3), "low is above high"),
        (lambda: column([1, 2], jali.bands(5, low=0, high=10**9)), "declared values"),
        (lambda: column(["a"], jali.bands(5)), 'bands() of column "x" needs numbers'),
        (lambda: column([dt.date(2020, 1, 1)], jali.bands(5)), "needs numbers: got date values; use dates()"),
        (lambda: column([True], jali.bands(5)), "needs numbers"),
        (lambda: column([1e300, 0.5], jali.bands(5)), "cannot be told apart"),
        (lambda: column(["01", "2"], jali.dates()), "needs dates"),
        (lambda: column([5], jali.dates()), "needs dates"),
        (lambda: column(["x" * 200], jali.mask()), "200 characters"),
        (lambda: column(["x"], jali.mask), "mask without ()"),
        (lambda: column(["x"], {"a": "b"}), 'column "x": not a hierarchy'),
        (lambda: jali.taxonomy([]), "is empty"),
        (lambda: jali.taxonomy(["a;b"]), "row 1 is a text"),
        (lambda: jali.taxonomy([("a", "*"), ("a", "*")]), "row 2 repeats a value"),
        (lambda: jali.taxonomy([("a", "*"), ("b", "c", "*")]), "row 2 has 3 levels: got 2 in the first row"),
        (lambda: jali.taxonomy([("a", "A"), ("b", "B")]), 'add a last column "*"'),
        (lambda: column(["a"], jali.taxonomy([("a", "*", "*"), ("b", "B", "*")])), "means everything"),
        (lambda: column(["a"], jali.taxonomy([("a", "X", "1", "*"), ("b", "X", "2", "*")])), "not a tree"),
        (lambda: column([39], jali.taxonomy([("39", "*"), ("39.0", "*")])), "two rows are the same number"),
        (lambda: jali.taxonomy("/nowhere.csv"), "no taxonomy file"),
        (lambda: jali.taxonomy("/tmp"), "cannot be read"),
    ],
)  # fmt: skip
def test_a_wrong_hierarchy_is_refused_in_one_line(make: Any, message: str) -> None:
    """That says what was wrong and what to do."""
    refused_in_one_line(make, message)


def test_an_uncovered_value_is_located_but_not_shown() -> None:
    """The message has the column and the row; the value only for whoever holds the table."""
    with pytest.raises(HierarchyError) as caught:
        column(["a", "a", "secret ", "b"], jali.taxonomy([("a", "*"), ("b", "*")]))
    assert 'column "x" (it has spaces around it), row 3' in str(caught.value)
    assert "secret" not in str(caught.value)
    assert "secret" in caught.value.with_value()
    with pytest.raises(HierarchyError) as caught:
        column([1.0, 2.0, 77.0], jali.bands(5, low=0, high=50))
    assert "row 3" in str(caught.value)
    assert "77" not in str(caught.value)
    with pytest.raises(HierarchyError, match="row 2"):
        column(["1", " 77"], jali.bands(5, low=0, high=50))


def test_numbers_and_texts_meet_in_a_taxonomy() -> None:
    """39, 39.0 and "39" are the same leaf of a number column; leaves that are words make the column text."""
    rows = [("39", "*"), ("40", "*")]
    for values in ([39, 40], [39.0, 40.0], ["39", "40"], pa.array([39, 40], pa.int8())):
        assert column(values, jali.taxonomy(rows)).codes.tolist() == [0, 1]
    assert column([39, 40], jali.taxonomy([(39.0, "*"), (40, "*")])).codes.tolist() == [0, 1]
    assert column(["39"], jali.taxonomy([(39.0, "*")])).codes.tolist() == [0]
    mixed = column([1, 2], jali.taxonomy([("unknown", "*"), ("1", "*"), ("2", "*")]))
    assert (mixed.kind, mixed.codes.tolist()) == ("text", [1, 2])
    assert column([1, 2], jali.taxonomy([("1", "*"), ("2", "*"), ("2.5", "*")])).codes.tolist() == [0, 1]
    assert column([True, False], jali.taxonomy([("False", "*"), ("True", "*")])).codes.tolist() == [1, 0]
    dates = jali.taxonomy([("2020-05-17", "*"), ("2020-05-18", "*")])
    assert column([dt.datetime(2020, 5, 18)], dates).codes.tolist() == [1]


def test_a_row_for_the_empty_value_says_what_a_missing_one_becomes() -> None:
    """Without it, a missing value stays itself below the root."""
    rows = [("a", "letter", "*"), ("", "none", "*")]
    assert labels(hierarchy(["a", None], jali.taxonomy(rows)), 1) == {"a": "letter", None: "none"}
    assert labels(hierarchy(["a", None], jali.taxonomy(rows[:1])), 1) == {"a": "letter", None: None}
    assert labels(hierarchy(["a", None, ""], jali.taxonomy(rows)), 0) == {"a": "a", "": "", None: None}


@pytest.mark.parametrize(
    "values", [[17, 18, 35, None], ["13053", "1306", None, ""], [0.1, 0.25], ["a,b", 'c"d', "e;f", "g\nh"]]
)
@pytest.mark.parametrize("separator", [";", ","])
def test_a_written_hierarchy_reads_as_the_same(values: list[Any], separator: str, tmp_path: Path) -> None:
    """Labels and tree, with a place for the missing value, commas and quotes."""
    builder = {"13053": jali.mask(), "a,b": None}.get(values[0], jali.bands(5, 10))
    made = hierarchy(values, builder)
    jali.write_hierarchy(made, tmp_path / "h.csv", separator=separator)
    again = hierarchy(values, jali.taxonomy(tmp_path / "h.csv"))
    assert again.height == made.height
    for level in range(made.height + 1):
        assert labels(again, level) == labels(made, level)


def test_a_taxonomy_file_is_read_as_people_save_it(tmp_path: Path) -> None:
    """With a mark, Windows line ends, empty lines, quotes, either separator; more leaves than values."""
    want = {"a": "1, 2", "b": "1, 2", "c;d": "3"}
    for text in (
        '\ufeffa;1, 2;*\r\nb;"1, 2";*\r\n"c;d";3;*\r\n\r\n',
        'a,"1, 2",*\nb,"1, 2",*\n\n"c;d",3,*',
    ):
        (tmp_path / "t.csv").write_bytes(text.encode())
        found = hierarchy(["a"], jali.taxonomy(tmp_path / "t.csv"))
        assert labels(found, 1) == want
    (tmp_path / "t.csv").write_bytes(b"\xff\xfe\x00;*\n")
    with pytest.raises(InputError, match="not valid UTF-8"):
        jali.taxonomy(tmp_path / "t.csv")


def test_dates_before_1970_fall_into_their_own_quarter_and_decade() -> None:
    """And a time of day lies in its day."""
    found = hierarchy([dt.date(1969, 12, 31), dt.date(1899, 1, 1)], jali.dates())
    assert [labels(found, level)["1969-12-31"] for level in range(6)] == [
        "1969-12-31",
        "1969-12",
        "1969-Q4",
        "1969",
        "1960s",
        "*",
    ]
    assert labels(found, 4)["1899-01-01"] == "1890s"
    timed = hierarchy([dt.datetime(2020, 5, 17, 23, 59), dt.datetime(2020, 5, 18)], jali.dates())
    assert [label["2020-05-17 23:59:00"] for label in (labels(timed, i) for i in range(3))] == [
        "2020-05-17 23:59:00",
        "2020-05-17",
        "2020-05",
    ]
    assert hierarchy(["2020-05-17", None], jali.dates()).height == 5


def test_a_value_that_reads_as_the_root_is_refused_before_a_search() -> None:
    """It may be audited, but a release could not tell it from everything."""
    table = jali.table(pa.table({"x": ["a", "*"]}), quasi=["x"])
    assert table.frequencies.combinations == 2
    with pytest.raises(InputError, match='column "x" holds the value "\\*" in row 2'):
        table.hierarchy("x")


def test_jali_chooses_what_fits() -> None:
    """Bands for many numbers, dates for dates, keep-or-hide for the rest."""
    assert hierarchy(list(range(17, 91)), None).made_by == "bands(5, 10, 20, 40, 80)"
    assert hierarchy([x / 100 for x in range(100)], None).made_by == "bands(0.05, 0.1, 0.2, 0.4, 0.8)"
    days = ["2000-01-01", "2000-01-02", "2000-02-01", "2000-05-01", "2001-05-01", "2010-05-01"]
    assert hierarchy([dt.date.fromisoformat(day) for day in days], None).made_by == "dates()"
    for values in ([1, 2, 3], [5], pa.nulls(3), ["a"], [True, None], [dt.date(2020, 1, 1)]):
        assert hierarchy(values, None).made_by == "suppress()"


def test_builders_are_values() -> None:
    """Using one does not change it, and the same words make the same builder."""
    builder = jali.bands(5, 10)
    assert builder == jali.bands(5, 10) != jali.bands(5)
    rows = [["a", "*"], ["b", "*"]]
    tree = jali.taxonomy(rows)
    column(["a"], tree), column([1, 2], builder)
    assert rows == [["a", "*"], ["b", "*"]]
    assert (builder, tree) == (jali.bands(5, 10), jali.taxonomy(rows))
    assert isinstance(builder, Bands)
    assert isinstance(tree, Taxonomy)
    assert issubclass(Automatic, Builder)


@pytest.mark.parametrize(
    ("maps", "sizes", "message"),
    [
        ([[1, 0], [0, 0]], (2, 1), "level 0"),
        ([[0, 1], [0, 1]], (2, 2), "the top level"),
        ([[0, 1, 2], [0, 0, 1], [0, 1, 1], [0, 0, 0]], (3, 2, 2, 1), "not a tree"),
    ],
)
def test_a_hierarchy_checks_itself(maps: list[list[int]], sizes: tuple[int, ...], message: str) -> None:
    """When it is made, by whoever makes it."""
    levels = tuple(Level(pa.array([f"{i}" for i in range(size)])) for size in sizes)
    with pytest.raises(HierarchyError, match=message):
        Hierarchy("x", tuple(np.array(m, dtype=np.int32) for m in maps), levels)
