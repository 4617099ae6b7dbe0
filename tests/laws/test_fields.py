"""Fields of any length, in rows of any length, whatever the blocks that a file is read in."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jali
from jali.sources import assemble, files

TEXTS = st.text(alphabet='ab",\n\r;é', min_size=1, max_size=12)


@given(
    st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=6), st.integers(1, 40), st.sampled_from([16, 50, 1 << 20])
)
def test_a_file_reads_the_same_in_blocks_of_any_size(rows: list[tuple[str, str]], longer: int, size: int) -> None:
    """Line breaks within quotes and rows longer than a block do not matter: Python's own reader is the oracle."""
    out = io.StringIO(newline="")
    written = [("a", "b"), *[(x * longer, y) for x, y in rows]]
    csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(written)
    expected = list(csv.reader(io.StringIO(out.getvalue(), newline="")))[1:]
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "_BLOCK", size)
        path = Path(folder) / "table.csv"
        path.write_bytes(out.getvalue().encode())
        table = jali.read(path, quasi=["a"], sensitive=["b"], types={"a": "text", "b": "text"}, separator=",")
    found = [[c.values[int(code)].as_py() for code in c.codes] for c in table.columns]
    assert list(map(list, zip(*found, strict=True))) == expected


def test_a_quote_that_is_never_closed_is_found_behind_a_long_field(tmp_path: Path) -> None:
    """More than the 131,072 letters that Python's reader takes by default."""
    path = tmp_path / "t.csv"
    path.write_text('a,b\n1,x\n2,"open ' + "long\n" * 40_000)
    with pytest.raises(jali.InputError, match="row 2 is never closed"):
        jali.read(path, quasi=["a"], sensitive=["b"])


@pytest.mark.slow
@pytest.mark.parametrize("role", ["sensitive", "quasi", "other"])
def test_a_field_of_20_mb_is_published(tmp_path: Path, role: str) -> None:
    """Read from CSV, saved as CSV, loaded again; as a quasi-identifier under suppress()."""
    field = "A" * 20_000_000
    path = tmp_path / "t.csv"
    path.write_text("a,b,c\n" + f"{field},{field},1\n" * 2 + "x,y,2\n" * 2)
    roles = {"quasi": {"a": jali.suppress()}, "sensitive": ["b"], "other": ["c"]}
    if role != "quasi":
        roles = {"quasi": ["c"], role: ["b"]}
    release = jali.generalize(jali.read(path, **roles), [jali.KAnonymity(2)])
    loaded = jali.load(release.save(tmp_path / "out"))
    assert loaded.tables["data"].equals(release.tables["data"])
    assert max(len(str(cell)) for row in loaded.tables["data"].to_pylist() for cell in row.values()) == len(field)


def test_more_long_text_than_a_column_holds_is_refused_before_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """A value of 20 MB in 200 rows of a Parquet file is 4 GB as a column, though it stands in the file once."""
    monkeypatch.setattr(assemble, "LARGEST", 1000)
    monkeypatch.setattr(assemble, "LONG", 100)
    column = pa.array(["x" * 101] * 9 + ["y"]).dictionary_encode()
    for rows, refused in ((9, False), (10, True)):
        data = pa.table({"a": column.take(pa.array([0] * rows)), "q": range(rows)})
        if refused:
            with pytest.raises(jali.InputError, match='column "a" holds values of more than 100 bytes'):
                jali.table(data, quasi=["q"], sensitive=["a"])
        else:
            jali.table(data, quasi=["q"], sensitive=["a"])
