"""Tables come in as they are: files with any separator, encoding and quotes, frames of any kind, engines that count."""

from __future__ import annotations

import csv
import datetime as dt
import decimal
import gzip
import io
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any
from unittest.mock import patch

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jali
from jali.encoding.table import Table
from jali.errors import InputError
from jali.sources import files
from jali.sources.tables import opened, whole
from oracles.often import examples
from oracles.reading import column_of as of

PLAIN = "zip,age,name,sick\n01234,39,Ann,flu\n13053,40,Bob,cold\n"


# --- CSV -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_separator_encoding_and_line_ends_are_detected(write: Any, separator: str, end: str, encoding: str) -> None:
    """All combinations say the same."""
    text = "\n\nnäme;age\nÄnn;39\n\nBob;40".replace(";", separator).replace("\n", end)
    found = jali.read(write(text.encode(encoding)), quasi=["age"], sensitive=["näme"])
    assert (of(found, "age"), of(found, "näme")) == ([39, 40], ["Änn", "Bob"])


def test_a_named_separator_and_encoding_go_first(write: Any) -> None:
    """latin-1 has no mark; a strange separator cannot be guessed."""
    path = write("n:age\nÄ:1\n".encode("latin-1"))
    assert of(jali.read(path, quasi=["n"], separator=":", encoding="latin-1"), "n") == ["Ä"]
    path = write("\ufeffn,age\nÄ,1\n")
    assert of(jali.read(path, quasi=["n"], encoding="UTF8"), "n") == ["Ä"]


def test_leading_zeros_survive_with_and_without_a_hierarchy(write: Any) -> None:
    """A zip code is no number; one that happens to have no zero is text under mask and taxonomy too."""
    path = write(PLAIN)
    for builder in (jali.mask(), jali.taxonomy([("01234", "*"), ("13053", "*")]), None):
        assert of(jali.read(path, quasi={"zip": builder}), "zip") == ["01234", "13053"]
    assert of(jali.read(path, quasi={"age": jali.mask()}), "age") == ["39", "40"]
    assert of(jali.read(path, quasi=["age"], types={"age": "text"}), "age") == ["39", "40"]
    assert of(jali.read(path, quasi=["zip"], types={"zip": "number"}), "zip") == [1234, 13053]


def test_what_is_not_named_is_not_read_and_said_so(write: Any) -> None:
    """Not even decoded: what is broken in it does not matter."""
    path = write(PLAIN.encode().replace(b"Ann", b"\xff\xff"))
    found = jali.read(path, quasi=["age"])
    assert found.unnamed == ("zip", "name", "sick")
    assert "not named and not published: zip, name, sick" in repr(found)
    assert [column.name for column in found.columns] == ["age"]


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["39", "40", ""], [39, 40, None]),
        (["39 ", " 40", '""', "39"], [39, 40, None, 39]),
        (["1", "1.0", "1.00", "2.5"], [1, 1, 1, 2.5]),
        (["-0", "0", "-7"], [0, 0, -7]),
        (["-0.0", "0.5", "0"], [0, 0.5, 0]),
        (["007", "8"], ["007", "8"]),
        (["1e5", ".5", "5."], [100000, 0.5, 5]),
        (["e5", "1"], ["e5", "1"]),
        (["1e999", "1"], ["1e999", "1"]),
        (["nan", "1"], [None, 1]),
        (["12345678901234567890", "12345678901234567891"], ["12345678901234567890", "12345678901234567891"]),
        (["9223372036854775807", "9223372036854775806"], [2**63 - 1, 2**63 - 2]),
        (["2020-05-17", ""], [dt.date(2020, 5, 17), None]),
        (["2020-02-30", "2020-02-28"], ["2020-02-30", "2020-02-28"]),
        (["2020-05-17 10:30", "2020-05-17T10:30:00"], [dt.datetime(2020, 5, 17, 10, 30)] * 2),
        (["True", "false", "TRUE"], [True, False, True]),
        (["flu", "flu ", ""], ["flu", "flu ", None]),
        (["a", '""', ""], ["a", "", None]),
        (["1", "x"], ["1", "x"]),
        (['"a,b"', '"c\nd"', '"e ""f"""'], ["a,b", "c\nd", 'e "f"']),
        (["", ""], [None, None]),
        (["1_000", "2"], ["1_000", "2"]),
    ],
)
def test_cells_are_read_as_what_they_are(write: Any, cells: list[str], values: list[Any]) -> None:
    """Equal numbers are one value however they are written; what cannot be kept as a number stays text."""
    found = jali.read(write("k,x\n" + "".join(f"1,{cell}\n" for cell in cells)), quasi=["x"])
    assert of(found, "x") == values
    assert len(set(found["x"].values.to_pylist())) == len(found["x"].values)
    assert len(set(found["x"].labels.to_pylist())) == len(found["x"].values)
    assert found.frequencies.combinations == len(set(values))


@given(st.lists(st.tuples(st.text(max_size=5), st.text(max_size=5)), min_size=1, max_size=20))
def test_any_text_comes_back_from_a_csv_file(rows: list[tuple[str, str]]) -> None:
    """Quoted as Python quotes it, line ends and separators within values included."""
    import csv
    import tempfile

    rows = [(a.replace("\x00", ""), b.replace("\x00", "")) for a, b in rows]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        with path.open("w", encoding="utf-8", newline="", errors="ignore") as file:
            csv.writer(file, quoting=csv.QUOTE_ALL).writerows([("a", "b"), *rows])
        found = jali.read(path, quasi=["a", "b"], types={"a": "text", "b": "text"}, separator=",")
    assert list(zip(of(found, "a"), of(found, "b"), strict=True)) == rows


def test_line_ends_within_quotes_survive_block_boundaries(write: Any) -> None:
    """A file of several blocks whose values hold line ends, in one column, where no count of fields would show it."""
    value = "x" * 1000 + "\n" + "y" * 1000
    rows = 20_000  # 40 MB
    found = jali.read(write("a\n" + f'"{value}"\n' * rows), quasi=["a"])
    assert (found.rows, found["a"].values.to_pylist()) == (rows, [value])


def test_gzip_pipes_and_standard_input_are_files_too(
    write: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Compression is seen from the content, whatever the name."""
    for name in ("t.csv.gz", "t.csv"):
        path = write(gzip.compress(PLAIN.encode()), name)
        assert of(jali.read(path, quasi=["age"]), "age") == [39, 40]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(PLAIN.encode())))
    assert of(jali.read("-", quasi=["age"]), "age") == [39, 40]
    pipe, end = os.pipe()
    os.write(end, PLAIN.encode())
    os.close(end)
    assert of(jali.read(f"/dev/fd/{pipe}", quasi=["age"]), "age") == [39, 40]
    os.close(pipe)


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("", {}, "is empty"),
        ("\n \n", {}, "is empty"),
        ("age\n", {}, "the table is empty"),
        ("age,b\n1,2\n3\n", {}, "row 2 has 1 fields: got 2 in the header"),
        ("age,b\n\n1,2\n\n3,4,5\n", {}, "row 2 has 3 fields"),
        (b"age,b\n1,2\n\xff,4\n", {}, "row 2 is not valid utf-8; pass encoding="),
        (b"age,b\n1,\xff\n\xff,4\n", {}, "row 2 is not valid utf-8"),
        ("age,age\n1,2\n", {}, 'column name "age" occurs more than once'),
        ('age,b\n1,2\n3,"4\n5,6\n', {}, "a quote that opens in row 2 is never closed"),
        ("agee,b\n1,2\n", {}, 'no column "age" in the table; did you mean "agee"?'),
        ("age,b\n1,2\n", {"separator": "ab"}, "one character"),
        ("age,b\n1,2\n", {"separator": ""}, "one character"),
        ("age,b\n1,2\n", {"encoding": "klingon"}, 'no encoding "klingon"'),
        ("age,b\n1,2\nx,2\n", {"types": {"age": "number"}}, 'column "age" cannot be read as number, row 2'),
        ("age,b\n1,2\ninf,2\n", {"types": {"age": "number"}}, 'column "age" holds an infinite number, row 2'),
        ("age,b\n1,2\n", {"types": {"age": "numbr"}}, 'no kind "numbr" for column "age"; did you mean "number"?'),
        ("age,b\n1,2\n", {"types": {"aeg": "number"}}, 'types: no column "aeg"'),
        (b"PK\x03\x04abc", {}, "a damaged or unusual archive"),
        (b"\x1f\x8b\x08broken", {}, "cannot be read"),
        (gzip.compress(PLAIN.encode() * 1000)[:-20], {}, "cannot be read"),
    ],
)  # fmt: skip
def test_a_broken_file_is_refused_in_one_line(write: Any, content: Any, options: Any, message: str) -> None:
    """With the row and without what stands in it."""
    with pytest.raises(InputError) as caught:
        jali.read(write(content), quasi=["age"], **options)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    """A folder, a missing file, a file without permission."""
    with pytest.raises(InputError, match="is a folder"):
        jali.read(tmp_path, quasi=["age"])
    with pytest.raises(InputError, match="no file"):
        jali.read(tmp_path / "none.csv", quasi=["age"])


def test_a_stray_quote_within_a_value_is_part_of_it(write: Any) -> None:
    """Only a quote at the beginning of a value opens anything."""
    assert of(jali.read(write('a,b\n5" pipe,1\n\n6,2\n'), quasi=["a"]), "a") == ['5" pipe', "6"]


def test_columns_without_a_name_are_only_not_published(write: Any) -> None:
    """Spreadsheets leave them behind."""
    assert jali.read(write("age,,\n1,,\n"), quasi=["age"]).unnamed == ("", "")


# --- Parquet -------------------------------------------------------------------------------------------------------


def test_parquet_keeps_its_types(tmp_path: Path) -> None:
    """And reads only what is named; a dot in a name and folders that look like partitions are harmless."""
    table = pa.table(
        {"a.b": ["01", None, "01"], "n": [1, 2, None], "d": [dt.date(2020, 1, 1)] * 3, "x": [[1], [2], [3]]}
    )
    (tmp_path / "sex=F").mkdir()
    pq.write_table(table, tmp_path / "sex=F" / "t.parquet")
    found = jali.read(tmp_path / "sex=F" / "t.parquet", quasi=["a.b", "n"], sensitive=["d"])
    assert [of(found, name) for name in ("a.b", "n", "d")] == [table[n].to_pylist() for n in ("a.b", "n", "d")]
    assert found.unnamed == ("x",)
    with pytest.raises(InputError, match='column "x" holds values that jali cannot publish: got list'):
        jali.read(tmp_path / "sex=F" / "t.parquet", quasi=["x"])


def test_a_parquet_file_with_a_name_that_is_no_text_is_refused(tmp_path: Path) -> None:
    """Found by mutated inputs: Arrow reads the schema, and fails where the name is asked for."""
    path = tmp_path / "table.parquet"
    pq.write_table(pa.table({"abcdefgh": [1, 2]}), path, store_schema=False)
    path.write_bytes(path.read_bytes().replace(b"abcdefgh", b"abcd\xff\xfegh"))
    for call in (lambda: jali.read(path, quasi=["abcdefgh"]), lambda: opened(path), lambda: whole(path)):
        with pytest.raises(InputError, match="is not a readable Parquet file"):
            call()


@pytest.mark.parametrize("content", [b"PAR1", b"PAR1" + b"\x00" * 100, b"not parquet at all"])
def test_broken_parquet_is_refused(write: Any, content: bytes) -> None:
    """By its beginning or by its name."""
    with pytest.raises(InputError, match="not a readable Parquet file"):
        jali.read(write(content, "t.parquet"), quasi=["age"])


# --- frames --------------------------------------------------------------------------------------------------------


def dictionary(indices: list[int], values: list[Any]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(indices), pa.array(values))


MIXED = pd.Series([1, "a", None], dtype=object)
COLUMNS: dict[str, tuple[Any, list[Any]]] = {
    "filtered index": (pd.Series([3, 1, 2, 1])[[3, 0]], [1, 3]),
    "duplicated index": (pd.Series([3, 1, 3], index=[0, 0, 0]), [3, 1, 3]),
    "unused categories": (pd.Series(pd.Categorical(["b", "a"], ["z", "b", "a"])), ["b", "a"]),
    "categories with missing": (pd.Series(pd.Categorical(["b", None, "a"])), ["b", None, "a"]),
    "128 categories with missing": (pd.Series(pd.Categorical([*range(128), None])), [*range(128), None]),
    "number categories": (pd.Series(pd.Categorical([2, 1, 2])), [2, 1, 2]),
    "nan": (pd.Series([1.5, np.nan, 2]), [1.5, None, 2]),
    "nullable": (pd.Series([1, None, 2**60], dtype="Int64"), [1, None, 2**60]),
    "booleans": (pd.Series([True, False]), [True, False]),
    "nullable booleans": (pd.Series([True, None], dtype="boolean"), [True, None]),
    "objects": (pd.Series(["a", None, np.nan], dtype=object), ["a", None, None]),
    "object numbers": (pd.Series([1, None, 2], dtype=object), [1, None, 2]),
    "object dates": (pd.Series([dt.date(2020, 1, 1), None], dtype=object), [dt.date(2020, 1, 1), None]),
    "strings": (pd.Series(["a", None], dtype="str"), ["a", None]),
    "python strings": (pd.Series(["a", None], dtype="string"), ["a", None]),
    "arrow strings": (pd.Series(["a", None], dtype="string[pyarrow]"), ["a", None]),
    "datetimes": (pd.Series(pd.to_datetime(["2020-05-17 10:30", None])), [dt.datetime(2020, 5, 17, 10, 30), None]),
    "nanoseconds": (pd.Series(pd.to_datetime(["2020-05-17"])).astype("datetime64[ns]"), [dt.datetime(2020, 5, 17)]),
    "zones": (pd.Series([pd.Timestamp("2020-05-17 00:30", tz="Europe/Berlin")]), [dt.datetime(2020, 5, 17, 0, 30)]),
    "int8": (pd.Series([-5, 5], dtype="int8"), [-5, 5]),
    "signs of zero": (pd.Series([0.0, -0.0, 0.5]), [0, 0, 0.5]),
    "polars categorical": (pl.Series(["b", None, "a"], dtype=pl.Categorical), ["b", None, "a"]),
    "polars enum": (pl.Series(["b", "a"], dtype=pl.Enum(["z", "b", "a"])), ["b", "a"]),
    "polars nan and null": (pl.Series([1.5, float("nan"), None]), [1.5, None, None]),
    "polars dates": (pl.Series([dt.date(2020, 1, 1), None]), [dt.date(2020, 1, 1), None]),
    "polars decimal": (pl.Series([decimal.Decimal("1.10")]), [decimal.Decimal("1.10")]),
    "all missing": (pl.Series([None, None]), [None, None]),
    "dictionary": (pa.array(["b", "a", None, "b"]).dictionary_encode(), ["b", "a", None, "b"]),
    "null in the dictionary": (dictionary([0, 1, 0], ["a", None]), ["a", None, "a"]),
    "doubled dictionary": (dictionary([0, 1, 2], ["a", "b", "a"]), ["a", "b", "a"]),
    "chunks": (pa.chunked_array([["b"], [], ["a", None]]), ["b", "a", None]),
    "chunked dictionaries": (
        pa.chunked_array([pa.array(["b", "a"]).dictionary_encode(), pa.array(["a", "c"]).dictionary_encode()]),
        ["b", "a", "a", "c"],
    ),
    "large strings": (pa.array(["b", None], pa.large_string()), ["b", None]),
    "string views": (pa.array(["b", None], pa.string_view()), ["b", None]),
    "half floats": (pa.array([1.5, None], pa.float16()), [1.5, None]),
    "unsigned": (pa.array([2**63 - 1], pa.uint64()), [2**63 - 1]),
}  # fmt: skip


def frame_of(column: Any) -> Any:
    if isinstance(column, pd.Series):
        return pd.DataFrame({"x": column})
    return pl.DataFrame({"x": column}) if isinstance(column, pl.Series) else pa.table({"x": column})


@pytest.mark.parametrize("name", COLUMNS)
def test_frames_as_people_have_them(name: str) -> None:
    """Row by row the same values, with no value that does not occur; as quasi, sensitive and other column alike."""
    column, values = COLUMNS[name]
    found = jali.table(frame_of(column), quasi=["x"])
    assert of(found, "x") == values
    assert len(found["x"].values) == len(set(values))
    assert found["x"].present.all()
    assert found.frequencies.combinations == len(set(values))
    assert len(set(found["x"].labels.to_pylist())) == len(set(values)), "labels tell values apart"
    keyed = pa.table({"k": [0] * len(values), "x": pa.table(frame_of(column))["x"]})
    assert of(jali.table(keyed, quasi=["k"], sensitive=["x"]), "x") == values
    assert of(jali.table(keyed, quasi=["k"], other=["x"]), "x") == values


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (MIXED, 'column "x" mixes kinds of values; make it one kind, or read it as text: types={"x": "text"}'),
        (pd.Series(pd.to_timedelta(["1D"])), 'column "x" holds values that jali cannot publish: got duration'),
        (pa.array([[1]]), "got list"),
        (pa.array([b"x"]), "got binary"),
        (pa.array([2**64 - 1], pa.uint64()), "whole numbers beyond 64 bits: got uint64"),
        (pd.Series([1.0, 2.0, np.inf]), 'column "x" holds an infinite number, row 3'),
        (pd.Series([2.0, 2.0, 1.0, -np.inf, 1.0]), 'column "x" holds an infinite number, row 4'),
        (pa.chunked_array([[2.0, 2.0], [1.0, float("inf")]]), "row 4"),
        (pd.Series(pd.cut([1, 5], [0, 3, 6])), 'column "x" holds values that jali cannot publish'),
    ],
)
def test_what_cannot_be_published_is_refused(column: Any, message: str) -> None:
    """With the column, the row where there is one, and what to do."""
    with pytest.raises(InputError) as caught:
        jali.table(frame_of(column), quasi=["x"])
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("column", "texts"),
    [
        (MIXED, ["1", "a", None]),
        (pd.Series(pd.cut([1, 5], [0, 3, 6])), ["(0, 3]", "(3, 6]"]),
        (pa.array([2**64 - 1], pa.uint64()), ["18446744073709551615"]),
        (pd.Series([1.0, np.nan]), ["1", None]),
        (pd.Series([1.5, 1.0]), ["1.5", "1"]),
        (pa.array([True, None]), ["true", None]),
        (pa.array([dt.datetime(2020, 5, 17)]), ["2020-05-17"]),
        (pa.array([dt.time(10, 30)]), ["10:30:00.000000"]),
    ],
)
def test_anything_that_reads_as_text_can_be_text(column: Any, texts: list[str | None]) -> None:
    """types= makes it so."""
    assert of(jali.table(frame_of(column), quasi=["x"], types={"x": "text"}), "x") == texts


def test_the_callers_frame_is_not_changed() -> None:
    """Nor looked at where nothing was named."""
    frame = pd.DataFrame({"x": [1.0, np.nan], "y": pd.Categorical(["a", None])}, index=[7, 7])
    before = frame.copy(deep=True)
    jali.table(frame, quasi=["x", "y"])
    pd.testing.assert_frame_equal(frame, before)


def test_doubled_and_strange_column_names() -> None:
    """Doubled names are refused in our own words, in pandas and Arrow."""
    doubled = pd.DataFrame([[1, 2]], columns=["x", "x"])
    for frame in (doubled, pa.table([pa.array([1]), pa.array([2])], names=["x", "x"])):
        with pytest.raises(InputError, match='column name "x" occurs more than once'):
            jali.table(frame, quasi=["x"])
    with pytest.raises(InputError, match="column names are texts: got 0"):
        jali.table(pd.DataFrame([[1, 2]]), quasi=[0])


@pytest.mark.parametrize("thing", ["t.csv", {"x": [1]}, None, 5, pd.Series([1], name="x")])
def test_what_is_no_frame_is_refused(thing: Any) -> None:
    """With a hint at read."""
    with pytest.raises(InputError, match=r"not a frame: got \w+; .*jali.read"):
        jali.table(thing, quasi=["x"])


# --- engines -------------------------------------------------------------------------------------------------------

values = st.tuples(
    st.sampled_from([1, 2, 3, None]),
    st.sampled_from(["a", "b", "", None]),
    st.sampled_from([0.5, float("nan"), None, -0.0]),
    st.integers(0, 3),
    st.sampled_from([0.5, 2.0]),
)


def combinations(table: Table) -> Counter[Any]:
    """Rows, people and weight of every combination of values."""
    f = table.frequencies
    quasi = [[c.values[int(code)].as_py() for code in f.codes[:, i]] for i, c in enumerate(table.quasi)]
    sensitive = [[c.values[int(code)].as_py() for code in f.joint[:, i]] for i, c in enumerate(table.sensitive)]
    found: Counter[Any] = Counter()
    for c, s, rows, people, weight in zip(f.combination, f.value, f.rows, f.people, f.weight, strict=True):
        key = (*(column[c] for column in quasi), *(column[s] for column in sensitive))
        found[key, "rows"] += rows
        found[key, "people"] += people
        found[key, "weight"] += weight
    return found


@given(st.lists(values, min_size=1, max_size=30), st.booleans())
def test_an_engine_counts_as_the_rows_do(rows: list[Any], persons: bool) -> None:
    """A DuckDB relation and a Polars lazy frame give the eager table's frequencies, people and weights included."""
    frame = pl.DataFrame(
        rows, schema={"n": pl.Int64, "t": pl.Utf8, "f": pl.Float64, "p": pl.Int64, "w": pl.Float64}, orient="row"
    )
    options: Any = {"quasi": ["n", "f"], "sensitive": ["t"], "weights": "w", "person": "p" if persons else None}
    eager = jali.table(frame, **options)
    arrow = frame.to_arrow()  # noqa: F841 - DuckDB finds it by name
    for lazy in (frame.lazy(), duckdb.sql("select * from arrow")):
        found = jali.table(lazy, **options)
        assert (found.rows, found.people) == (eager.rows, eager.people)
        assert combinations(found) == combinations(eager)
        assert found.frame("arrow").num_rows == len(rows)
        assert found.sample(0.9999, seed=1).rows <= len(rows)


def test_an_engine_does_not_decide_the_order() -> None:
    """The same seed gives the same sample, whatever order the engine's threads answered in."""
    frame = pl.DataFrame({"x": [i % 1000 for i in range(20_000)], "c": ["a", "b"] * 10_000}).cast({"c": pl.Categorical})
    first, second = (jali.table(frame.lazy(), quasi=["x", "c"]).sample(0.5, seed=0).frame("arrow") for _ in range(2))
    assert first.equals(second)


def test_an_engines_errors_name_no_row() -> None:
    """There are none that the caller would know."""
    with pytest.raises(InputError) as caught:
        jali.table(pl.LazyFrame({"x": [1.0, float("inf")]}), quasi=["x"])
    assert "row" not in str(caught.value)
    with pytest.raises(InputError, match="the table is empty"):
        jali.table(pl.LazyFrame({"x": []}, schema={"x": pl.Int64}), quasi=["x"])
    assert jali.table(pl.LazyFrame({"x": [1, 1]}), quasi=["x"]).frame().to_dict(as_series=False) == {"x": [1, 1]}


@examples(2)
@given(
    st.lists(st.tuples(*[st.text(alphabet='ab",\n', max_size=6)] * 2), min_size=1, max_size=12),
    st.sampled_from(["\n", "\r\n"]), st.integers(0, 3), st.integers(8, 64),
)  # fmt: skip
def test_rows_with_breaks_and_quotes_are_what_python_reads(
    rows: list[tuple[str, str]], end: str, empty: int, block: int
) -> None:
    text = io.StringIO(newline="")
    for at, row in enumerate([("x", "y"), *rows]):
        csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator=end).writerow(row)
        text.write(end * (empty if at % 3 == 1 else 0))
    with patch.object(files, "_BLOCK", block), patch.object(files, "_SMALL", block):
        found = files.Delimited.opened("it", text.getvalue().encode(), ",", None).columns(["x", "y"])
    assert list(zip(*(found[name].to_pylist() for name in "xy"), strict=True)) == rows
