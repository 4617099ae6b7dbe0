"""Laws of CSV files that kernels read block by block: against Arrow, against Python's reader, counted against held."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import jali
from jali.encoding.table import Table
from jali.errors import InputError
from jali.sources import blocks, distinct, files
from jali.sources.blocks import NotByLine
from oracles.often import examples

NAMES = ["x", "y", "z"]


@contextmanager
def small(block: int, *, many: int = 1 << 21, kernels: bool = True) -> Iterator[None]:
    """Blocks of so many bytes, tables that must grow at once, and rows that are many; or no kernels at all."""
    least = 0 if kernels else 1 << 60
    with ExitStack() as stack:
        for module, name, value in (
            (files, "_BLOCK", block), (files, "_SMALL", block), (files, "LARGE", least), (files, "SMALL", least),
            (files, "_ALONE", block), (blocks, "_CELLS", 2), (blocks, "_WORDS", 1), (distinct, "MANY", many),
        ):  # fmt: skip
            stack.enter_context(patch.object(module, name, value))
        yield


def opened(data: bytes, separator: str = ",", encoding: str | None = None) -> files.Delimited:
    return files.Delimited.opened("it", data, separator, encoding)


def rows_of(columns: Any) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in columns.values()), strict=True))


@examples(20)
@given(st.text(alphabet='ab",\n\r', max_size=60), st.sampled_from(["\n", "\r\n"]), st.integers(1, 64), st.booleans())
def test_what_kernels_read_is_what_arrow_reads(text: str, end: str, block: int, one: bool) -> None:
    """Whatever stands in the file: where lines are not rows, or quotes are strange, kernels refuse it."""
    assume(text.strip())
    file = opened((f"x,y{end}{text}" if not one else f"x{end}{text}").encode())
    wanted = ["x"] if one else ["y", "x"]
    try:
        with small(block):
            found, _ = file._by_line(wanted, count=False)
    except NotByLine:
        return
    expected = file._read(wanted)
    assert rows_of(found) == rows_of({name: expected[name] for name in wanted})


cells = st.text(alphabet='abä", ;0', max_size=20)
PACKED = {"": bytes, "gzip": gzip.compress, "bz2": bz2.compress, "zstd": lambda data: pa.compress(data, "zstd", True)}


@st.composite
def written(draw: Any, cells: Any = cells) -> tuple[list[list[str]], bytes, dict[str, Any]]:
    """Rows of a file as programs write it, its bytes, and how it is opened."""
    rows = draw(st.lists(st.lists(cells, min_size=3, max_size=3), min_size=1, max_size=12))
    end, separator = draw(st.sampled_from(["\n", "\r\n"])), draw(st.sampled_from(",;\t"))
    quoting = draw(st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]))
    text = io.StringIO(newline="")
    for row in [NAMES, *rows]:
        csv.writer(text, quoting=quoting, lineterminator=end, delimiter=separator).writerow(row)
        text.write(end * draw(st.sampled_from([0, 0, 0, 1, 2])))
    whole = end * draw(st.integers(0, 2)) + text.getvalue()
    if draw(st.booleans()) and not whole.endswith(separator + end):  # then Arrow takes the last cell for a text
        whole = whole.removesuffix(end)
    encoding = draw(st.sampled_from(["utf-8", "utf-8-sig", "latin-1", "utf-16"]))
    data = PACKED[draw(st.sampled_from([*PACKED]))](whole.encode(encoding))
    said = encoding if encoding == "latin-1" else None
    return rows, data, {"separator": separator, "encoding": said}


@examples(20)
@given(written(), st.integers(1, 99), st.lists(st.sampled_from(NAMES), min_size=1, unique=True))
def test_kernels_read_what_programs_write(made: Any, block: int, wanted: list[str]) -> None:
    """Every separator, encoding, line end, quote and compression, empty lines, with and without a last line end."""
    rows, data, options = made
    file = opened(data, **options)
    with small(block):
        found, _ = file._by_line(wanted, count=False)
    expected = [tuple(row[NAMES.index(name)] for name in wanted) for row in rows]
    assert [tuple(cell or "" for cell in row) for row in rows_of(found)] == expected
    whole = file._read(wanted)
    assert rows_of(found) == rows_of({name: whole[name] for name in wanted})  # an empty text or a missing one
    for name in wanted:
        assert found[name].chunk(0).dictionary.equals(pa.concat_arrays(
            [c.dictionary_decode() for c in whole[name].chunks]).unique())  # in the order of the file  # fmt: skip


@examples(20)
@given(
    written(st.sampled_from(["", "a", '"', "1", "b c"])), st.integers(1, 99), st.integers(1, 12),
    st.sampled_from([0.5, 1]),
)  # fmt: skip
def test_rows_that_are_counted_are_those_of_the_file(made: Any, block: int, many: int, nearly: float) -> None:
    """And held in the order of the file where there are not many, or nearly all are distinct."""
    rows, data, options = made
    file = opened(data, **options)
    held = Counter(rows_of({name: file._read(NAMES)[name] for name in NAMES}))
    with small(block, many=many), patch.object(distinct, "NEARLY", nearly):
        found, numbers = file.loaded(NAMES, count=True)
    assert (numbers is not None) <= (len(rows) >= many)
    assert numbers is not None or nearly < 1 or len(rows) < many
    if numbers is None:
        assert [tuple(cell or "" for cell in row) for row in rows_of(found)] == [tuple(row) for row in rows]
    else:
        assert dict(zip(rows_of(found), numbers.tolist(), strict=True)) == dict(held)
        assert len(numbers) == len(held)


def facts(table: Table) -> Any:
    """All that a table says, but for the order of its rows."""
    f = table.frequencies
    columns = [(c.name, c.role, c.kind, c.values.to_pylist(), str(c.hierarchy), c.star) for c in table.columns]
    rows = Counter(zip(*(table.frame("arrow")[c.name].to_pylist() for c in table.columns), strict=True))
    counts = [each.tolist() for each in (f.codes, f.joint, f.combination, f.value, f.rows, f.weight)]
    more = (table.rows, table.people, table.incomplete, table.unnamed, table.notes, repr(table))
    return columns, rows, counts, more


VALUES = (
    ["1", "2", "-7", ""], ["1,5", "2,25", "3", "NA"], ["1.5", "2", ".", "?"], ["17.05.1970", "18.06.1980", "-"],
    ["1970-05-17", "1980-01-01", ""], ["true", "FALSE", "", "n/a"], ["01234", "a", " ", '"'], ["flu", "flu ", "NA"],
    ["1.500", "2.500"], ["1,500", "12,250", ""], ["03/04/2020", "05/06/2020"], ["inf", "1"], ["*", "a"],
)  # fmt: skip
ROLES: tuple[dict[str, Any], ...] = (
    {"quasi": ["x", "y"], "sensitive": ["z"]}, {"quasi": ["z"], "sensitive": ["x"], "missing": "drop"},
    {"quasi": ["x"], "other": ["y"], "types": {"x": "number"}}, {"quasi": ["y"], "weights": "x"},
    {"quasi": {"x": jali.bands(10)}, "sensitive": ["z"]}, {"quasi": ["x"], "missing_markers": ["1", "a"]},
    {"quasi": {"y": jali.taxonomy([("1", "*"), ("2", "*"), ("flu", "*"), ("a", "*")])}}, {"quasi": ["x", "none"]},
    {"quasi": ["x"], "types": {"x": "date"}}, {"quasi": ["x", "z"], "decimal": ","},
)  # fmt: skip


@examples(10)
@given(st.data(), st.integers(8, 99))
def test_a_table_that_is_counted_is_the_one_that_is_held(tmp_path_factory: Any, data: Any, block: int) -> None:
    """Kinds, domains, missing values, notes and counts are the same, and so are messages, which name the row."""
    kinds = [data.draw(st.sampled_from(VALUES)) for _ in NAMES]
    rows = data.draw(st.lists(st.tuples(*(st.sampled_from(kind) for kind in kinds)), min_size=1, max_size=30))
    bad = data.draw(st.sampled_from(["", "", "", "1;2\n", '"\n";;\n', '1;"2"3;4\n', '1;2;"3\n', "\udcff;;\n"]))
    lines = [
        "x;y;z\n",
        *(";".join(f'"{c}"' if '"' in c else c for c in row).replace('"""', '""""') + "\n" for row in rows),
    ]
    lines.insert(data.draw(st.integers(1, len(lines))), bad)
    path = tmp_path_factory.mktemp("rows") / "rows.csv"
    path.write_bytes("".join(lines).encode("utf-8", errors="surrogateescape"))
    options = data.draw(st.sampled_from(ROLES))

    def read(*, kernels: bool, many: int) -> Any:
        with small(block, many=many, kernels=kernels):
            try:
                table = jali.read(path, separator=";", **options)
                return facts(table), table.multiplicity is not None
            except InputError as problem:
                return str(problem), False

    held, _ = read(kernels=False, many=1)
    assert read(kernels=True, many=1 << 21) == (held, False)
    with patch.object(distinct, "NEARLY", 1.0):
        counted, is_counted = read(kernels=True, many=1)
    assert counted == held
    assert bad or is_counted == (not isinstance(held, str))


def test_persons_are_not_counted_and_keep_their_rows(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("who,x\n" + "a,1\na,1\nb,2\n" * 20)
    with small(64, many=2):
        table = jali.read(path, quasi=["x"], person="who")
    assert table.multiplicity is None
    assert (table.rows, table.people) == (60, 2)


def test_long_lines_and_many_values_find_room(tmp_path: Path) -> None:
    """Lines that are longer than a block, cells that are longer than all texts so far, thousands of values."""
    random = np.random.default_rng(7)
    rows = [(f"{at}" * int(random.integers(1, 400)), str(at % 1700)) for at in range(3000)]
    path = tmp_path / "rows.csv"
    path.write_text("x,y\n" + "".join(f"{a},{b}\n" for a, b in rows))
    with small(128):
        found = files.Delimited.opened("it", path, None, None)._by_line(["x", "y"], count=False)[0]
    assert rows_of(found) == rows


@pytest.mark.parametrize("separator", ["§", "a"])
def test_any_separator_is_read(separator: str, write: Any) -> None:
    """One of two bytes is refused as it ever was; a letter is one."""
    path = write(f"x{separator}y\n1{separator}2\n3{separator}4\n")
    if separator == "§":
        with small(8), pytest.raises(Exception) as one, patch.object(files, "LARGE", 0):  # noqa: PT011
            jali.read(path, quasi=["x"], separator=separator)
        with pytest.raises(type(one.value)):
            jali.read(path, quasi=["x"], separator=separator)
        return
    with small(8):
        assert jali.read(path, quasi=["x", "y"], separator=separator).frame("arrow").to_pydict() == {
            "x": [1, 3],
            "y": [2, 4],
        }
