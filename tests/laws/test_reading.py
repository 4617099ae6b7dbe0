"""Cells are read as a file writes them: markers, decimal marks, dates; each format gives the same table."""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jali
from jali.encoding import values as v
from jali.errors import InputError
from jali.sources import programs
from jali.sources.tables import detected
from jali.sources.writing import MARKERS, Cells, Writing, parsed
from oracles import reading as slow
from oracles.often import examples
from oracles.reading import column_of as of

NOTHING = dict.fromkeys(("separator", "encoding", "sheet", "missing_markers", "decimal", "thousands", "date_format"))


def cells_of(texts: list[str | None], **options: Any) -> Cells:
    """The cells of a column, each text once."""
    said = {name: options.get(name) for name in ("missing_markers", "decimal", "thousands", "date_format")}
    writing = Writing.of(**said)
    array = pa.array(texts, pa.string())
    return Cells("x", writing.without_markers(array), writing, lambda: np.ones(len(texts), dtype=np.int64))


# --- numbers -------------------------------------------------------------------------------------------------------

part = st.sampled_from(["1", "12", "234", "500", "0", "00", "5", "-", ",", ".", "'", " ", "e2", "000", "\u202f"])
loose = st.lists(part, min_size=1, max_size=5).map("".join)
shaped = st.builds(
    lambda whole, rest, decimal, group, width: (f"{whole:,}".replace(",", group) if group != "none" else str(whole))
    + (f"{decimal}{rest:0{width}}" if width else ""),
    st.integers(-9_999_999, 9_999_999), st.integers(0, 9), st.sampled_from(",."),
    st.sampled_from([*slow.GROUPS, "none"]), st.integers(0, 4),
)  # fmt: skip


@examples(20)
@given(st.one_of(st.lists(shaped, min_size=1, max_size=4), st.lists(loose, min_size=1, max_size=3)))
def test_numbers_are_decided_only_where_every_convention_that_fits_says_the_same(texts: list[str]) -> None:
    """The obvious reader tries them all; grouped digits without a decimal part stay text."""
    texts = [text.strip() for text in texts]
    if "" in texts or any(text in slow.MARKERS for text in texts):
        return
    expected = slow.numbers(texts)
    cells = cells_of(list(texts))
    typed = cells.read()
    if expected is None or (v.kind_of(typed) == "text" and max(map(abs, expected)) > 2**53):
        assert v.kind_of(typed) != "number"
    else:
        assert [float(x) for x in typed.to_pylist()] == pytest.approx(expected, rel=1e-15)
        decided = cells.options.get("decimal")
        assert (decided is None) == (slow.plain(texts) is not None)
        assert bool(cells.notes) == (decided is not None)


@examples(10)
@given(st.lists(shaped, min_size=1, max_size=4), st.sampled_from(",."), st.sampled_from(["", *slow.GROUPS[1:]]))
def test_the_options_decide_without_proof(texts: list[str], decimal: str, group: str) -> None:
    """Said is said: no other convention is tried, and nothing is noted."""
    if decimal == group:
        return
    cells = cells_of(list(texts), decimal=decimal, thousands=group)
    typed = cells.read()
    expected = [slow.number(text.strip(), decimal, group) for text in texts]
    if None in expected:
        assert v.kind_of(typed) != "number"
    else:
        assert [float(x) for x in typed.to_pylist()] == pytest.approx(expected, rel=1e-15)
    assert not cells.options


@pytest.mark.parametrize(
    "texts", [["01234", "1,5"], ["12.345.678"], ["1,500"], ["1 234 567"], ["3,5", "1,2,3"], ["00,5"], ["123-45-6789"]]
)
def test_codes_stay_text(texts: list[str]) -> None:
    """Leading zeros, identity numbers, lists of codes, and what could be 1.5 or 1500."""
    assert cells_of(list(texts)).read().to_pylist() == texts


def test_every_decision_is_said_with_the_cells_that_decided_it(write: Any) -> None:
    """Cells are counted, not distinct values; and a point before three digits beside decimal commas is doubted."""
    rows = "".join(["1,5;NA;2.500\n"] * 3 + ["2;7;1.200\n"] * 2 + ["1,500;8;1.100\n"])
    found = jali.read(write("a;b;c\n" + rows), quasi=["a", "b", "c"])
    assert of(found, "a") == [1.5] * 3 + [2] * 2 + [1.5]
    assert of(found, "b") == [None] * 3 + [7, 7, 8]
    assert found.notes[:2] == (
        'column "a": decimal = ",", which 3 of 6 cells show',
        'column "b": "NA" in 3 cells is taken as missing, since the others (3 cells) are numbers',
    )
    assert 'column "c": "." before three digits is read as a decimal point' in found.notes[2]
    assert all(f"note: {note}" in repr(found) for note in found.notes)
    said = {"decimal": ",", "thousands": ".", "missing_markers": ["NA"]}
    again = jali.read(write("a;b;c\n" + rows), quasi=["a", "b", "c"], **said)
    assert of(again, "c") == [2500] * 3 + [1200] * 2 + [1100]
    assert again.notes == ()


def test_a_note_is_one_line_whatever_the_names(write: Any) -> None:
    """Line ends and signs that steer a terminal stay out of it, and so does the end of a long name."""
    name = "a\x1b[31m\nb" + "c" * 1000
    (note,) = jali.read(write(f'"{name}";k\n1,5;1\n'), quasi=[name]).notes
    assert note.startswith('column "a')
    assert note.isprintable()
    assert len(note) < 600


# --- missing values ------------------------------------------------------------------------------------------------


@given(st.lists(st.one_of(st.sampled_from(sorted(slow.MARKERS)), st.integers(0, 99).map(str)), min_size=1, max_size=6))
def test_usual_markers_are_missing_beside_numbers_and_texts_otherwise(texts: list[str]) -> None:
    """One number is enough, and it is said; a column of markers alone stays text."""
    cells = cells_of(list(texts))
    typed = cells.read().to_pylist()
    if any(text not in slow.MARKERS for text in texts):
        assert typed == [None if text in slow.MARKERS else int(text) for text in texts]
    else:
        assert typed == texts
    assert bool(cells.notes) == any(text in slow.MARKERS for text in texts)
    assert cells_of(list(texts), missing_markers=[]).notes == []


@pytest.mark.parametrize("name", MARKERS)
def test_sets_of_markers_go_by_name_and_go_into_lists(name: str) -> None:
    """Whatever the kind of the column; a name beside other markers is a set still."""
    texts = [*MARKERS[name], "k. A.", "x", "7"]
    for given_as in (name, [name]):
        read = cells_of(list(texts), missing_markers=given_as).read().to_pylist()
        assert read == [None] * len(MARKERS[name]) + ["k. A.", "x", "7"]
    assert cells_of(list(texts), missing_markers=[name, "k. A."]).read().to_pylist()[-3:] == [None, "x", "7"]


def test_markers_count_in_every_kind_of_column(write: Any) -> None:
    """Persons, weights, taxonomies, numbers that stand for missing, columns of Parquet files."""
    path = write("p,w,z,n\n1,2,12,5\n2,1,NA,-9\n")
    found = jali.read(path, quasi={"z": jali.mask()}, sensitive=["n"], weights="w", missing_markers=["NA", "-9"])
    assert (of(found, "z"), of(found, "n")) == (["12", None], [5, None])
    with pytest.raises(InputError, match=r"person column .* is empty, row 2"):
        jali.read(path, quasi=["n"], person="z", missing_markers="r")
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"n": [5, -9], "t": ["NA", "a"]}), path.with_suffix(".parquet"))
    found = jali.read(path.with_suffix(".parquet"), quasi=["n", "t"], missing_markers=["NA", "-9"])
    assert (of(found, "n"), of(found, "t")) == ([5, None], [None, "a"])
    weighted = jali.read(write("w;n\n1,5;1\n2;2\n"), quasi=["n"], weights="w")
    assert weighted.weight is not None
    assert weighted.weight.tolist() == [1.5, 2]


# --- dates ---------------------------------------------------------------------------------------------------------

ORDERS = ("%d.%m.%Y", "%m/%d/%Y", "%d-%m-%Y", "%Y/%m/%d", "%d.%m.%y", "%d.%m.%Y %H:%M", "%d%b%Y", "%d %B %Y", "%Y%m%d",
          "%d%m%y", "%m.%d.%Y %H:%M:%S")  # fmt: skip
moments = st.datetimes(dt.datetime(1970, 1, 1), dt.datetime(2068, 12, 31)).map(lambda time: time.replace(microsecond=0))
accidents = st.tuples(st.integers(0, 20), st.sampled_from(["", "0", "9", ".", "/", " ", "x"]))


def damaged(text: str, accident: tuple[int, str] | None) -> str:
    if accident is None:
        return text
    at, letter = accident
    return text[:at] + letter + text[at + 1 :]


@examples(10)
@given(st.lists(st.tuples(moments, st.none() | accidents), min_size=1, max_size=5), st.sampled_from(ORDERS))
def test_dates_of_a_format_are_what_python_reads(times: list[tuple[dt.datetime, Any]], order: str) -> None:
    """And missing where Python reads none; without a mark between digits each part has all of its digits."""
    texts = [damaged(time.strftime(order), accident) for time, accident in times]
    found = parsed(pa.array(texts), order).cast(pa.timestamp("us")).to_pylist()
    packed = order in ("%Y%m%d", "%d%m%y", "%d%b%Y")
    for text, date, (time, _) in zip(texts, found, times, strict=True):
        if packed and len(text) != len(time.strftime(order)):
            continue  # Python guesses where the day ends
        assert date == slow.date(text, order), text


@examples(10)
@given(
    st.lists(st.dates(dt.date(1900, 1, 1), dt.date(2030, 1, 1)), min_size=1, max_size=4),
    st.sampled_from(["%d.%m.%Y", "%m/%d/%Y", "%d-%m-%Y", "%Y/%m/%d", "%m.%d.%Y"]),
    st.sampled_from(["", " %H:%M"]),
)
def test_dates_are_decided_only_where_one_order_makes_dates_of_all(days: list[dt.date], order: str, time: str) -> None:
    """17.05.1970 decides; 01.02.1970 alone is text, with the option that settles it."""
    texts = [day.strftime(order + time.replace("%H:%M", "10:30")) for day in days]
    expected = slow.dates(texts)
    cells = cells_of(list(texts))
    typed = cells.read()
    if expected is None:
        assert v.kind_of(typed) == "text"
        assert "date_format" in cells.notes[-1]
        typed = cells_of(list(texts), date_format=order + time).read()
        expected = [slow.date(text, order + time) for text in texts]  # type: ignore[misc]
    else:
        assert cells.options == {"date_format": order + time}
    assert typed.cast(pa.timestamp("us")).to_pylist() == expected


@pytest.mark.parametrize(
    ("cells", "note"),
    [
        (["01.02.1970", "03.04.1971"], "none shows which is the day and which the month"),
        (["17.05.70"], "none shows the century"),
        (["17.05.1970", "05.17.1970"], None),
        (["31.02.1970", "17.05.1970"], None),
    ],
)
def test_what_the_cells_leave_open_stays_text(cells: list[str], note: str | None) -> None:
    """Two-digit years, days up to twelve, cells that disagree, days that no month has."""
    column = cells_of(list(cells))
    assert column.read().to_pylist() == cells
    assert (note in column.notes[0]) if note else not column.notes


@pytest.mark.parametrize(
    ("kind", "cells", "options", "message"),
    [
        ("number", ["1", "x", "2", "x", "y"], {}, "cannot be read as number, row 2 and 2 other cells"),
        ("number", ["1,500"], {}, 'write thousands = "," or decimal = ","'),
        ("date", ["01.02.1970"], {}, 'cannot be read as date, row 1; write e.g. date_format = "%d.%m.%Y"'),
        ("date", ["17.05.1970", "x"], {"date_format": "%d.%m.%Y"}, "cannot be read as date, row 2"),
        ("boolean", ["true", "maybe"], {}, "cannot be read as boolean, row 2"),
    ],
)
def test_a_kind_that_cells_do_not_have_is_refused_with_row_and_count(
    write: Any, kind: Any, cells: list[str], options: Any, message: str
) -> None:
    """And with the option that would settle it; never with the cell."""
    path = write("x;k\n" + "".join(f"{cell};1\n" for cell in cells))
    with pytest.raises(InputError) as caught:
        jali.read(path, quasi=["x"], types={"x": kind}, separator=";", **options)
    assert message in str(caught.value)


def test_a_kind_is_read_as_the_cells_are_written(write: Any) -> None:
    """types= goes together with detection and with the options; digits alone are dates only where types say so."""
    path = write("a;b;c\n1,5;17.05.1970;19700517\nNA;01.02.1970;19710102\n")
    found = jali.read(path, quasi=["a", "b"], types={"a": "number", "b": "date"})
    assert (of(found, "a"), of(found, "b")) == ([1.5, None], [dt.date(1970, 5, 17), dt.date(1970, 2, 1)])
    found = jali.read(path, quasi=["c"], types={"c": "date"}, date_format="%Y%m%d")
    assert of(found, "c") == [dt.date(1970, 5, 17), dt.date(1971, 1, 2)]
    assert of(jali.read(path, quasi=["c"], date_format="%Y%m%d"), "c") == [19700517, 19710102]
    assert of(jali.read(path, quasi=["a"], types={"a": "text"}), "a") == ["1,5", "NA"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"decimal": ";"}, 'decimal must be "," or "."'),
        ({"decimal": 5}, 'decimal must be "," or "."'),
        ({"thousands": "ab"}, "thousands is what groups digits"),
        ({"decimal": ",", "thousands": ","}, "the same character"),
        ({"date_format": "%d.%m"}, "must say day, month and year"),
        ({"date_format": "%q"}, '"%q" is not known'),
        ({"date_format": 5}, "date_format must be text"),
        ({"missing_markers": "NA"}, 'no set of missing markers "NA"'),
        ({"missing_markers": [1]}, "must be a list of texts"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused(write: Any, options: Any, message: str) -> None:
    """Before anything is read."""
    with pytest.raises(InputError) as caught:
        jali.read(write("x\n1\n"), quasi=["x"], **options)
    assert message in str(caught.value)


# --- encodings -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ("n;x\nMüller;1\n".encode("cp1252"), "cp1252"),
        ("n;x\n„Müller“;1\n".encode("cp1252"), "cp1252"),
        (b"n;x\n\x81\xe4;1\n", "latin-1"),
        ("größe;n\n1;a\n".encode("cp1252"), "cp1252"),
        ("n;x\nMüller;1\n".encode("utf-16-le"), "utf-16-le"),
        ("n;x\nMüller;1\n".encode("utf-16-be"), "utf-16-be"),
    ],
)
def test_an_encoding_is_named_that_the_bytes_fit_and_init_takes_it(write: Any, content: bytes, named: str) -> None:
    """Not decided by `read`; `detected` finds the same, and with it the file is read."""
    path = write(content)
    with pytest.raises(InputError):
        jali.read(path, quasi=["n"])
    found = detected(path, **NOTHING)
    if "16" not in named:
        with pytest.raises(InputError, match=f'pass encoding="{named}"'):
            jali.read(path, quasi=["n"])
    assert found.options["encoding"] == named
    assert jali.read(path, quasi=["n"], encoding=named).rows == 1


def test_broken_rows_are_counted(write: Any) -> None:
    """The first, and how many more."""
    path = write(b"a,b\n1,\xff\n2,b\n3,\xff\n4,\xff\n")
    with pytest.raises(InputError, match="row 1 is not valid utf-8, nor are 2 more"):
        jali.read(path, quasi=["b"])
    with pytest.raises(InputError, match="row 2 has 3 fields, and 1 more do not fit either"):
        jali.read(write("a,b\n1,2\n1,2,3\n4\n"), quasi=["b"])


# --- what init finds -----------------------------------------------------------------------------------------------


def test_what_is_detected_and_then_said_reads_the_same(write: Any) -> None:
    """The job that init writes needs no detection: no notes, the same values."""
    text = "name;born;income;sick\nMüller;17.05.1970;1.234,50;k. A.\nMaß;01.02.1971;12,5;3\nLang;NA;7;4\n"
    path = write(text.encode("cp1252"))
    found = detected(path, **NOTHING)
    assert {name: value for name, value in found.options.items() if value is not None} == {
        "encoding": "cp1252", "decimal": ",", "thousands": ".", "date_format": "%d.%m.%Y",
        "missing_markers": ["NA", "k. A."],
    }  # fmt: skip
    table = jali.read(path, quasi=["born", "income"], sensitive=["sick"], **found.options)
    assert table.notes == ()
    assert of(table, "born") == [dt.date(1970, 5, 17), dt.date(1971, 2, 1), None]
    assert (of(table, "income"), of(table, "sick")) == ([1234.5, 12.5, 7], [None, 3, 4])


def test_what_columns_disagree_about_is_left_to_each(write: Any) -> None:
    """A decimal comma here and a point there: neither is an option of the whole file."""
    path = write("a;b;c\n1,5;2.5;17.05.1970\n2,5;3.5;18.05.1970\n")
    options = detected(path, **NOTHING).options
    assert options["decimal"] is None
    found = jali.read(path, quasi=["a", "b"])
    assert (of(found, "a"), of(found, "b")) == ([1.5, 2.5], [2.5, 3.5])


# --- one table, every format ---------------------------------------------------------------------------------------

words = st.text(st.characters(codec="cp1252", exclude_categories=("C", "Z")), min_size=1, max_size=8).filter(
    lambda text: text not in slow.MARKERS and not text[0].isdigit() and text[0] not in "-.,"
)
records = st.fixed_dictionaries(
    {
        "n": st.none() | st.integers(-(10**6), 10**6),
        "f": st.none() | st.integers(-(10**8), 10**8).map(lambda x: x / 16 + 0.5),
        "d": st.none() | st.dates(dt.date(1901, 1, 1), dt.date(2099, 1, 1)),
        "t": st.none() | words,
    }
)
tables = st.lists(records, min_size=1, max_size=8)
NAMES = ["n", "f", "d", "t"]


def grid(rows: list[dict[str, Any]]) -> list[list[Any]]:
    return [list(NAMES), *([row[name] for name in NAMES] for row in rows)]


def assert_same(columns: dict[str, pa.Array], rows: list[dict[str, Any]]) -> None:
    """The values of each column are those of the rows, whatever their type."""
    for name in NAMES:
        assert columns[name].to_pylist() == [row[name] for row in rows], name


@given(
    tables, st.sampled_from(";\t|,"), st.sampled_from(["utf-8", "cp1252", "utf-16"]), st.sampled_from(",."),
    st.sampled_from(["", "'", " "]), st.sampled_from(["%d.%m.%Y", "%m/%d/%Y", "%d%b%Y"]),
    st.sampled_from(["", "NA", "."]), st.booleans(),
)  # fmt: skip
def test_a_csv_file_comes_back_however_it_is_written(  # noqa: PLR0917 - a law draws each of them
    tmp_path_factory: Any, rows: list[dict[str, Any]], separator: str, encoding: str, decimal: str, group: str,
    order: str, marker: str, packed: bool,
) -> None:  # fmt: skip
    """With every option said, by itself or as the one file of an archive."""

    def written(value: Any) -> str:
        if value is None:
            return marker
        if isinstance(value, dt.date):
            return value.strftime(order)
        if isinstance(value, (int, float)):
            whole, _, rest = f"{value:,}".partition(".")
            return whole.replace(",", group) + (decimal + rest if rest else "")
        return str(value)

    text = io.StringIO()
    csv.writer(text, delimiter=separator).writerows([[written(cell) for cell in row] for row in grid(rows)])
    data = text.getvalue().encode(encoding)
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    path.write_bytes(slow.zipped({"folder/": b"", "folder/t.csv": data}) if packed else data)
    table = jali.read(
        path, quasi=["n", "f", "d"], sensitive=["t"], types={"t": "text"}, separator=separator, encoding=encoding,
        decimal=decimal, thousands=group, date_format=order, missing_markers=[marker],
    )  # fmt: skip
    for name in NAMES:
        assert of(table, name) == [row[name] for row in rows], name
    assert table.notes == ()


@pytest.mark.parametrize("form", [lambda rows: slow.xlsx({"Data": rows}), slow.ods], ids=["xlsx", "ods"])
@given(rows=tables)
def test_a_spreadsheet_comes_back(form: Any, rows: list[dict[str, Any]]) -> None:
    """Empty rows are no people; numbers, dates and texts keep their kind."""
    filled = [row for row in rows if any(value is not None for value in row.values())]
    if not filled:
        return
    content = form(grid(rows))
    told, columns = read_here(content, "")
    assert told == {"header": NAMES, "notes": [], "sheet": None}
    assert_same(columns, filled)


def read_here(content: bytes, reader: str, **request: Any) -> Any:
    """What the process that reads would give, in this one."""
    from unittest import mock

    asked = {
        "path": None,
        "reader": reader,
        "wanted": None,
        "codes": [],
        "texts": [],
        "sheet": None,
        "encoding": None,
    } | request
    stdin = io.TextIOWrapper(io.BytesIO(content))
    with mock.patch.object(sys, "stdin", stdin):
        return (programs._statistical if reader else programs._spreadsheet)(asked)


STATISTICAL = {"dta": "read_dta", "sav": "read_sav", "xpt": "read_xport"}


def statistical(form: str, frame: pd.DataFrame, path: Path, **about: Any) -> bytes:
    """The file that pyreadstat writes."""
    import pyreadstat

    name = {"dta": "write_dta", "sav": "write_sav", "xpt": "write_xport"}[form]
    getattr(pyreadstat, name)(frame, str(path), **about)
    return path.read_bytes()


@pytest.mark.parametrize("form", STATISTICAL)
@given(rows=tables)
def test_a_statistical_file_comes_back(tmp_path_factory: Any, form: str, rows: list[dict[str, Any]]) -> None:
    """An empty text is missing; whole numbers are whole."""
    frame = pd.DataFrame(
        {
            "n": pd.array([row["n"] for row in rows], "Float64").to_numpy(np.float64, na_value=np.nan),
            "f": pd.array([row["f"] for row in rows], "Float64").to_numpy(np.float64, na_value=np.nan),
            "d": pd.Series([row["d"] for row in rows], dtype=object),
            "t": pd.Series([row["t"] for row in rows], dtype=object),
        }
    )
    if frame["t"].isna().all() or frame["d"].isna().all():
        return  # pyreadstat has no type for it
    content = statistical(form, frame, tmp_path_factory.mktemp("stat") / f"t.{form}")
    told, columns = read_here(content, STATISTICAL[form])
    assert told == {"header": NAMES, "notes": [], "labelled": []}
    assert_same(columns, rows)


@pytest.mark.parametrize("form", ["dta", "sav"])
def test_value_labels_are_the_values_and_the_labels_of_hierarchies(tmp_path: Path, form: str) -> None:
    """Where every code that occurs has one; `types` keeps the codes; two codes of one label stay two values."""
    frame = pd.DataFrame({"sex": [1.0, 2.0, 1.0, np.nan], "age": [30.0, 98.0, 31.0, 32.0], "who": [1.0, 2.0, 3.0, 3.0]})
    labels = {"sex": {1: "male", 2: "female", 3: "other"}, "age": {98: "refused"}, "who": {1: "a", 2: "a", 3: "b"}}
    path = tmp_path / f"t.{form}"
    statistical(form, frame, path, variable_value_labels=labels)
    found = jali.read(path, quasi=["sex", "age", "who"])
    assert of(found, "sex") == ["male", "female", "male", None]
    assert found.hierarchy("sex").levels[0].texts() == ["female", "male", None]
    assert of(found, "age") == [30, 98, 31, 32]
    assert of(found, "who") == ["a (1)", "a (2)", "b", "b"] or of(found, "who") == ["a (1.0)", "a (2.0)", "b", "b"]
    assert found.notes == (
        'value labels stand for the codes of sex, who; types = { sex = "number" } keeps codes, "text" says that labels '
        "are meant",
        "codes are kept where some have no label: age (3 of 4 values)",
    )
    assert of(jali.read(path, quasi=["sex"], types={"sex": "number"}), "sex") == [1, 2, 1, None]
    said = jali.read(path, quasi=["sex"], types={"sex": "text"})
    assert (of(said, "sex"), said.notes) == (["male", "female", "male", None], ())


def test_a_number_of_32_bits_is_the_shortest_that_is_stored_so() -> None:
    """3.2 in Stata's float is 3.2, not 3.200000048; in its double it stays what it is."""
    stored = [float(np.float32(x)) for x in (3.2, 1.1, 0.5)]
    assert programs._typed(stored, "float").to_pylist() == [3.2, 1.1, 0.5]
    assert programs._typed(stored, "double").to_pylist() == stored


def test_a_spreadsheet_is_read_as_people_see_it(write: Any) -> None:
    """Errors of formulas are empty, merged cells are said, mixed cells are texts; another sheet goes by its name."""
    rows = [
        [None, None], ["zip", "age", "born", "x"], ["01234", 39, dt.date(1970, 5, 17), ZeroDivisionError()],
        [1234, "NA", dt.date(1971, 1, 2), True], [None, None, None, None], ["0999", 40.5, None, False],
    ]  # fmt: skip
    path = write(slow.xlsx({"first": rows, "second": [["a"], [7]]}, merged=["B3:B4"]), "t.xlsx")
    found = jali.read(path, quasi=["zip", "age", "born"], sensitive=["x"])
    assert of(found, "zip") == ["01234", "1234", "0999"]
    assert of(found, "age") == [39, None, 40.5]
    assert of(found, "born") == [dt.date(1970, 5, 17), dt.date(1971, 1, 2), None]
    assert of(found, "x") == [None, True, False]
    assert 'sheet "first" was read, one of 2' in found.notes[0]
    assert "1 range of merged cells" in found.notes[1]
    assert of(jali.read(path, quasi=["a"], sheet="second"), "a") == [7]
    assert detected(path, **NOTHING).options["sheet"] == "first"
    with pytest.raises(InputError, match='no sheet "secnd"; did you mean "second"'):
        jali.read(path, quasi=["a"], sheet="secnd")


def test_a_stray_cell_ends_the_process_that_reads_and_not_this_one(write: Any) -> None:
    """Four cells of a spreadsheet can ask for half a terabyte."""
    stray = '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'
    with pytest.raises(InputError, match="damaged, or too large for the memory"):
        jali.read(write(slow.xlsx({"a": [["age"], [1]]}, raw=stray), "t.xlsx"), quasi=["age"])


@pytest.mark.parametrize(("name", "extra"), [("t.xlsx", "excel"), ("t.dta", "stats")])
def test_the_extra_that_is_missing_is_named(write: Any, monkeypatch: Any, name: str, extra: str) -> None:
    """Before anything is read."""
    monkeypatch.setattr(programs, "find_spec", lambda package: None)
    content = slow.xlsx({"a": [["age"], [1]]}) if extra == "excel" else b"<stata_dta><header>"
    with pytest.raises(InputError, match=rf'is not installed; pip install "jali\[{extra}\]"'):
        jali.read(write(content, name), quasi=["age"])


# --- archives ------------------------------------------------------------------------------------------------------

TEXT = b"age,b\n1,x\n2,y\n"


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"a.csv": TEXT, "b.csv": TEXT}, "an archive of 2 files"),
        ({}, "an archive without files"),
        ({"__MACOSX/a.csv": TEXT, ".DS_Store": b"x"}, "an archive without files"),
        ({"a.zip": slow.zipped({"a.csv": TEXT})}, "an archive of an archive"),
        ({"a.csv": b"0" * 100_000_001}, "times its size"),
    ],
)
def test_an_archive_of_anything_else_is_refused(write: Any, files: dict[str, bytes], message: str) -> None:
    """Two files, none, an archive, and one that unpacks to more than anybody packs."""
    with pytest.raises(InputError, match=message):
        jali.read(write(slow.zipped(files), "t.zip"), quasi=["age"])


def test_the_one_file_of_an_archive_is_read_by_its_content(write: Any) -> None:
    """A spreadsheet in an archive is one; notes of the archive stay."""
    found = jali.read(write(slow.zipped({"a.csv": TEXT, "README.txt": b"read me"}), "t.zip"), quasi=["age"])
    assert of(found, "age") == [1, 2]
    assert "the only CSV file of 2" in found.notes[0]
    inner = slow.xlsx({"a": [["age"], [1]]})
    assert of(jali.read(write(slow.zipped({"a.xlsx": inner}), "t.zip"), quasi=["age"]), "age") == [1]


def test_a_locked_archive_is_refused(write: Any) -> None:
    """The flag stands in both of its headers."""
    content = bytearray(slow.zipped({"a.csv": TEXT}))
    content[6] |= 1
    content[content.index(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(InputError, match="locked with a password"):
        jali.read(write(bytes(content), "t.zip"), quasi=["age"])


# --- the command line and the job ----------------------------------------------------------------------------------


def test_job_and_commands_have_the_options_of_read(write: Any, tmp_path: Path, monkeypatch: Any) -> None:
    """The same names, the same table, the same notes on stderr and in the JSON."""
    from click.testing import CliRunner

    from jali.cli.app import app

    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{20 + i},5;1{i}.05.1970;{'NA' if i == 3 else i}\n" for i in range(8))
    write("age;born;kids\n" + rows)
    job = 'input = "t.csv"\n{}[quasi]\nage = "auto"\nborn = "dates"\n[sensitive]\nkids = true\n'
    job += '[[principles]]\nname = "KAnonymity"\nk = 2\n'
    job += '[[principles]]\nname = "DistinctDiversity"\nl = 2\n'
    Path("job.toml").write_text(job.format(""))
    result = CliRunner().invoke(app, ["publish", "job.toml", "--dry-run", "--json"])
    assert result.exit_code == 0, result.output
    notes = json.loads(result.stdout)["notes"]
    assert len(notes) == 3
    assert all(f"note: {note}" in result.stderr for note in notes)
    said = 'decimal = ","\ndate_format = "%d.%m.%Y"\nmissing_markers = "r"\nthousands = ""\n'
    Path("job.toml").write_text(job.format(said))
    assert json.loads(CliRunner().invoke(app, ["publish", "job.toml", "--dry-run", "--json"]).stdout)["notes"] == []
    options = ["--decimal", ",", "--date-format", "%d.%m.%Y", "--missing-markers", "NA,k. A.", "--thousands", "."]
    audit = ["audit", "t.csv", "--quasi", "age,born", "--sensitive", "kids"]
    assert "note" not in CliRunner().invoke(app, [*audit, *options]).stderr
    assert CliRunner().invoke(app, audit).stderr.count("note: ") == 3
    assert set(notes) <= set(json.loads(CliRunner().invoke(app, [*audit, "--json"]).stdout)["notes"])
    written = CliRunner().invoke(app, ["init", "t.csv", "-o", "-"]).stdout
    assert all(line in written for line in ('decimal = ","', 'date_format = "%d.%m.%Y"', 'missing_markers = ["NA"]'))


@pytest.mark.slow
def test_import_of_jali_starts_no_reader() -> None:
    """Neither python-calamine nor pyreadstat is loaded by reading a CSV file."""
    code = (
        "import sys, jali, pathlib; pathlib.Path(sys.argv[1]).write_text('age\\n1\\n'); "
        "jali.read(sys.argv[1], quasi=['age']); "
        "sys.exit('pyreadstat' in sys.modules or 'python_calamine' in sys.modules)"
    )
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([sys.executable, "-c", code, f"{folder}/t.csv"], check=False)
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("numbers", "said"),
    [(["0.1", "0.10000000000000000001"], "more digits"), (["0.1", "0.2"], ""), (["1.5", "12345678901234567.25"], ""),
     (["18446744073709551615", "18446744073709551614"], "more digits"), (["9007199254740993", "9007199254740992"], "")],
)  # fmt: skip
def test_decimals_that_floats_take_for_the_same_are_refused_unless_they_are_whole(
    numbers: list[str], said: str
) -> None:
    """They are compared as floats; whole ones of 64 bits are integers, and texts are always told apart."""
    frame = pa.table({"x": pa.array([*map(Decimal, numbers)], pa.decimal128(38, 20 if "." in numbers[0] else 0))})
    assert len(jali.table(frame, quasi=["x"], types={"x": "text"})["x"].values) == 2
    if said:
        with pytest.raises(InputError, match=said):
            jali.table(frame, quasi=["x"])
    else:
        assert len(jali.table(frame, quasi=["x"])["x"].values) == 2
