"""What a spreadsheet would run is found, is quoted on request, and comes back as it was."""

from __future__ import annotations

import csv
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jali
from jali.core.formats import formula_columns, quoted, unquoted
from oracles.spreadsheet import STARTS, run_by_a_spreadsheet

CELLS = st.one_of(
    st.none(),
    st.text(alphabet="=+-@' \t\nab1.", max_size=6),
    st.sampled_from(["=1+1", "'=1", "''", "-5", "+5.0", "@x", '=cmd|"/c calc"!A1', "＝1", "", "\n=1"]),
)


@given(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=8), st.sampled_from(["text", "number", None]))
def test_what_is_quoted_comes_back_and_runs_nothing(rows: list[tuple[Any, Any]], kind: str | None) -> None:
    """Taking the quotes away is the inverse of setting them, names and missing cells too."""
    first, second = zip(*rows, strict=True)
    table = pa.table({"=a": pa.array(first, pa.string()), "b": pa.array(second, pa.string()).dictionary_encode()})
    safe = quoted(table, {} if kind is None else {"=a": "text", "b": kind})
    assert unquoted(safe).equals(table)
    number = {None: (), "text": (), "number": ("b",)}[kind]
    for name, column in zip(safe.column_names, safe.columns, strict=True):
        cells = [cell for cell in [name, *column.to_pylist()] if cell is not None]
        running = [cell for cell in cells if cell.startswith(STARTS)]
        assert not running or (name in number and all(_is_number(cell) for cell in running))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


@given(st.lists(CELLS, min_size=1, max_size=8))
def test_a_column_is_noted_if_and_only_if_a_cell_begins_like_a_formula(cells: list[Any]) -> None:
    """Of a text column every such cell counts, a plain number too."""
    table = pa.table({"a": pa.array(cells, pa.string())})
    plainly = any(cell is not None and cell.startswith((*STARTS, "\t", "\n", "\r", "＝")) for cell in cells)
    assert formula_columns(table, {"a": "text"}) == (["a"] if plainly else [])


WORDS = ["=SUM(A1)", "+1", "-x", "@me", "'quoted", "plain", "a,b\nc"]


def made(kind: str) -> Any:
    """A release of a kind whose every text begins like a formula somewhere."""
    rows = 28
    data = {
        "=zip": [WORDS[row % 7] for row in range(rows)],
        "age": [-row % 4 - 3 for row in range(rows)],
        "ill": [WORDS[(row * 3) % 7] for row in range(rows)],
        "who": [row // 2 for row in range(rows)],
    }
    several = {"person": "who"} if kind == "people" else {}
    quasi = {"=zip": jali.suppress(), "age": jali.suppress()}
    table = jali.table(pa.table(data), quasi=quasi, sensitive=["ill"], **several)
    match kind:
        case "angel":
            return jali.angelize(table, jali.DistinctDiversity(2), k=2)
        case "buckets":
            return jali.anatomize(table, [jali.DistinctDiversity(2)])
        case "marginals":
            return jali.marginals(table, [jali.KAnonymity(2)], time_limit=5)
        case "partitioned":
            return jali.partition(table, [jali.KAnonymity(2)])
    return jali.generalize(table, [jali.KAnonymity(2)], levels={"=zip": 0, "age": 1})


@pytest.mark.parametrize("kind", ["generalized", "people", "partitioned", "buckets", "angel", "marginals"])
def test_a_safe_release_is_the_same_release(kind: str, tmp_path: Path) -> None:
    """Loaded, it has the tables of the plain one and keeps its promises; in the files nothing is run."""
    release = made(kind)
    safe, plain = (release.save(tmp_path / str(mode), spreadsheet_safe=mode) for mode in (True, False))
    assert {"=zip", "ill"} <= set(release.formula_columns())
    numbers = [c.name for c in release.columns if c.kind == "number"]
    for path in safe.glob("*.csv"):
        for cell in run_by_a_spreadsheet(path):
            assert _is_number(cell), (path.name, cell)
    assert any(run_by_a_spreadsheet(path) for path in plain.glob("*.csv"))
    loaded, other = jali.load(safe), jali.load(plain)
    assert numbers == ["age"] if kind != "marginals" else True
    assert {n: t.to_pylist() for n, t in loaded.tables.items()} == {n: t.to_pylist() for n, t in other.tables.items()}
    assert jali.audit(safe).to_dict() == jali.audit(plain).to_dict()
    assert release.save(tmp_path / "parquet", format="parquet", spreadsheet_safe=True)


def test_only_csv_cells_are_changed() -> None:
    """A reader that knows nothing of jali finds the apostrophe in the cell and nowhere else."""
    release = made("generalized")
    with TemporaryDirectory() as folder:
        path = release.save(Path(folder) / "out", spreadsheet_safe=True)
        with (path / "data.csv").open(encoding="utf-8", newline="") as file:
            header, *rows = csv.reader(file)
    assert header[0] == "'=zip"
    shown = sorted(row[0] for row in rows)
    assert shown == sorted(("'" + w if w[0] in "=+-@'" else w) for w in release.tables["data"]["=zip"].to_pylist())
