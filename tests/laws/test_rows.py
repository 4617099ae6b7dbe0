"""Distinct rows with numbers stand for the table: in memory, in files, and in an order that nobody can foresee."""

from __future__ import annotations

import datetime
import json
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import permutations
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import jali
from jali.core import formats as csv_text
from jali.core import rows as counting
from jali.core.formats import csv_parts, distinct_lines
from jali.core.rows import Order, Paired, Rows, cells, distinct_rows, drawn, ordered, tallied
from jali.encoding.table import Table
from jali.errors import InputError, InternalError
from oracles import rows as oracle
from oracles.often import seeds
from oracles.published import tables

texts = st.text(st.sampled_from('ab,"\n\r é'), max_size=3)
days = st.dates(datetime.date(1900, 1, 1), datetime.date(2100, 1, 1))
kinds: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.string(), texts), (pa.int64(), st.integers(-9, 9)), (pa.float64(), st.floats(allow_nan=False)),
    (pa.date32(), days), (pa.bool_(), st.booleans()),
]  # fmt: skip


@st.composite
def arrow_tables(draw: st.DrawFn) -> pa.Table:
    """Small tables of every type that is published, with missing values, some columns as dictionaries."""
    rows = draw(st.integers(1, 6))
    columns = []
    for kind, values in draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=3)):
        some = draw(st.lists(st.none() | values, min_size=rows, max_size=rows))
        column = pa.array(some, kind)
        columns.append(column.dictionary_encode() if draw(st.booleans()) else column)
    return pa.table(columns, names=[f'c"{i}' for i in range(len(columns))])


# -- files ------------------------------------------------------------------------------------------------------------


@given(arrow_tables(), st.data())
def test_ready_made_lines_are_the_file_that_arrow_writes_of_the_rows(table: pa.Table, data: st.DataObject) -> None:
    """Whether each line is made once or when it is written."""
    of = np.array(data.draw(st.lists(st.integers(0, table.num_rows - 1), max_size=8)), dtype=np.int32)
    rows = ordered(table, of)
    for ready in (0, csv_text.READY):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(csv_text, "READY", ready)
            patch.setattr(csv_text, "AT_ONCE", 3)
            assert b"".join(map(bytes, csv_parts(rows))) == oracle.csv_file(rows.plain())


@given(
    st.lists(st.sampled_from([b"a", b"b", b'"', b"", b"long line", b"\r"]), max_size=12), st.booleans(),
    st.sampled_from([1, 4, 30]), st.sampled_from([1, 10**6]),
)  # fmt: skip
def test_distinct_lines_are_those_that_python_counts(lines: list[bytes], ends: bool, block: int, folded: int) -> None:
    """However the file falls into blocks; a carriage return and a last line without an end are left to others."""
    content = b"\n".join([b"head", *lines]) + b"\n" * ends
    with tempfile.TemporaryFile() as file, pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_text, "_BLOCK", block)
        patch.setattr(csv_text, "_FOLDED", folded)
        file.write(content)
        file.seek(0)
        found, wanted = distinct_lines(file, most=1), oracle.lines(content)
        file.seek(0)
        numbered = distinct_lines(file, most=1, in_order=False)
        if wanted is None:
            assert found is numbered is None
            return
        assert found is not None
        assert numbered is not None
    distinct, of = found.distinct.to_pylist(), found.order.of
    assert (found.first, Counter(distinct[i] for i in of)) == wanted
    assert [distinct[i] for i in of] == content.splitlines(keepends=True)[1:]  # in their order
    assert len(set(distinct)) == len(distinct)
    for each in (found, numbered):
        assert (each.first, dict(zip(each.distinct.to_pylist(), each.order.numbers, strict=True))) == wanted


def test_a_large_file_of_different_lines_is_left_to_the_parser(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(csv_text, "_BLOCK", 64)
    monkeypatch.setattr(csv_text, "_FOLDED", 64)
    for lines, counted in ((range(99), False), ([1, 2] * 50, True)):
        path = tmp_path / "lines.csv"
        path.write_text("".join(f"{line}\n" for line in ["head", *lines]), encoding="utf-8")
        with path.open("rb") as file:
            assert (distinct_lines(file) is not None) is counted


@given(arrow_tables(), st.integers(1, 4))
def test_distinct_rows_of_parts_are_the_rows(table: pa.Table, size: int) -> None:
    parts = [table.slice(at, size) for at in range(0, table.num_rows, size)]
    found = distinct_rows(parts)
    wanted = Rows(table).plain().to_pylist()
    assert found.plain().to_pylist() == found.coded().to_pylist() == wanted
    assert found.distinct.num_rows == len(set(map(repr, wanted)))
    assert found.numbers.sum() == found.count == table.num_rows
    assert [row for part in found.parts(2) for row in part.to_pylist()] == wanted


@given(st.lists(st.lists(st.integers(0, 9), max_size=5), min_size=1, max_size=4), st.booleans())
def test_links_are_counted_whatever_parts_they_come_in(parts: list[list[int]], counted: bool) -> None:
    """As rows, or as numbers that were counted before; gaps and parts without a row included."""
    tables = [pa.table({"bucket": pa.array(part, pa.int64())}) for part in parts]
    given_parts = [
        distinct_rows([table], in_order=False) if counted and table.num_rows else Rows(table) for table in tables
    ]
    found = tallied(given_parts, "bucket", 9)
    wanted = Counter(number for part in parts for number in part)
    assert dict(zip(found.distinct["bucket"].to_pylist(), found.numbers.tolist(), strict=True)) == wanted
    assert found.count == wanted.total()


@pytest.mark.parametrize("wrong", [-1, 3, None])
def test_a_link_that_cannot_be_is_refused(wrong: int | None) -> None:
    """So that a wrong number of a file costs an error, not memory for all numbers below it."""
    with pytest.raises(ValueError, match="none of those that there can be"):
        tallied([Rows(pa.table({"bucket": pa.array([1, wrong], pa.int64())}))], "bucket", 2)


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("part", [4, 1 << 23])
def test_a_person_in_another_bucket_is_found_in_the_files(
    form: Any, part: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anatomy is judged by how many people each bucket has in the written files, part files included."""
    table = jali.datasets.census(rows=60, seed=1, quasi=["age", "sex"], sensitive=["occupation"])
    release = jali.anatomize(table, jali.FrequencyDiversity(3))
    monkeypatch.setattr("jali.releases.written.PART", part)
    assert jali.load(release.save(tmp_path / "right", format=form)).rows == 60
    honest = Paired.parts

    def moved(self: Paired, at_once: int, of: slice | None = None) -> Iterator[pa.Table]:
        for one in honest(self, at_once, of):
            other = pa.array([1] * one.num_rows)
            yield one.set_column(one.column_names.index("bucket"), "bucket", other)

    monkeypatch.setattr(Paired, "parts", moved)
    with pytest.raises(InternalError, match="nothing was written"):
        release.save(tmp_path / "wrong", format=form)
    assert not (tmp_path / "wrong").exists()


@given(st.lists(st.none() | texts, min_size=1, max_size=5, unique=True), st.data())
def test_a_missing_value_is_a_missing_index(labels: list[str | None], data: st.DataObject) -> None:
    codes = data.draw(st.lists(st.integers(0, len(labels) - 1), max_size=6))
    made = cells(pa.array(labels, pa.string()), np.array(codes, dtype=np.uint8))
    assert made.to_pylist() == [labels[code] for code in codes]
    assert made.dictionary.null_count == 0


@given(tables(persons=None), st.integers(1, 4), st.booleans())
def test_part_files_are_one_table(table: Table, size: int, damaged: bool) -> None:
    """In their order; a part that is missing or changed is noticed, and an older jali is told that it is older."""
    assume(table.people > 1)
    release = jali.generalize(table, [jali.KAnonymity(1)])
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr("jali.releases.written.PART", size)
        out = release.save(Path(folder) / "out", format="parquet")
        files = json.loads((out / "manifest.json").read_text("utf-8"))
        several = table.rows > size
        assert ((out / "data-2.parquet").exists(), (out / "data.parquet").exists()) == (several, not several)
        assert files["format_version"] == (2 if len(files["files"]) > len(release.tables) else 1)
        assert jali.load(out).frame("arrow").to_pylist() == release.frame("arrow").to_pylist()
        jali.load(out).save(out, format="parquet", overwrite=True)
        if damaged and several:
            (out / "data-2.parquet").write_bytes((out / "data-1.parquet").read_bytes() + b"x")
            with pytest.raises(InputError, match="was changed"):
                jali.load(out)
            (out / "data-2.parquet").unlink()
            with pytest.raises(InputError, match="lacks"):
                jali.load(out)


# -- the order --------------------------------------------------------------------------------------------------------


class Branches:
    """A generator that takes every possible decision in turn, and knows how likely the one it took is."""

    def __init__(self) -> None:
        self.plan: list[int] = []  # which of its possible outcomes each decision takes

    def everything(self, draw: Callable[[Any], Any]) -> Iterator[tuple[Any, Fraction]]:
        """What is drawn in each run, and its probability."""
        while True:
            self.at, self.open, self.chance = 0, [], Fraction(1)
            yield draw(self), self.chance
            while self.plan and self.plan[-1] + 1 == self.open[len(self.plan) - 1]:
                self.plan.pop()
            if not self.plan:
                return
            self.plan[-1] += 1

    def _decided(self, chances: list[Fraction]) -> int:
        if self.at == len(self.plan):
            self.plan.append(0)
        self.open.append(len(chances))
        self.at += 1
        taken = self.plan[self.at - 1]
        self.chance *= chances[taken]
        return taken

    def binomial(self, n: Any, p: float) -> Any:
        """As numpy's."""
        share = Fraction(p).limit_denominator(100)
        some = [[comb(int(m), k) * share**k * (1 - share) ** (int(m) - k) for k in range(int(m) + 1)] for m in n]
        return np.array([self._decided(chances) for chances in some])

    def shuffle(self, part: Any) -> None:
        """As numpy's."""
        orders = list(permutations(part.tolist()))
        part[:] = orders[self._decided([Fraction(1, len(orders))] * len(orders))]


@pytest.mark.parametrize(
    ("numbers", "chunk", "chunks"),
    [([2, 1], 9, 1), ([3, 1], 2, 2), ([2, 2], 2, 2), ([5, 1], 2, 3), ([1], 1, 1), ([4, 0], 2, 2), ([1, 1, 1], 1, 1)],
)
def test_every_order_is_exactly_as_likely_as_any_other(
    numbers: list[int], chunk: int, chunks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All draws of the chunk scheme, enumerated; one chunk where distinct rows are too many for several."""
    monkeypatch.setattr(counting, "CHUNK", chunk)
    random = Branches()
    seen: dict[tuple[int, ...], Fraction] = defaultdict(Fraction)
    for order, chance in random.everything(lambda random: drawn(np.array(numbers), random)):
        seen[tuple(order.tolist())] += chance
        assert len(random.open) == chunks + (chunks - 1) * len(numbers)  # shuffles, and binomials of all chunks but one
    orders = oracle.arrangements(numbers)
    assert dict(seen) == dict.fromkeys(orders, Fraction(1, len(orders)))


def test_numpy_draws_every_order_as_often_as_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chi-square over all arrangements, from a fixed seed: a bias of a tenth would be three times the bound."""
    monkeypatch.setattr(counting, "CHUNK", 2)
    random, orders = np.random.default_rng(15), oracle.arrangements([3, 2])
    seen = Counter(tuple(drawn(np.array([3, 2]), random).tolist()) for _ in range(1000 * len(orders)))
    assert set(seen) == orders
    assert sum((n - 1000) ** 2 / 1000 for n in seen.values()) < 3 * len(orders)


def _publish(frame: pa.Table, method: Callable[..., Any], folder: Path, form: str) -> list[bytes]:
    quasi: Any = {"age": jali.bands(5, 10), "zip": jali.mask()}
    table = jali.table(frame, quasi=quasi, sensitive=["ill"], other=["ward"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "fresh_random", lambda: np.random.default_rng(3))
        saved = method(table, [jali.KAnonymity(2)]).save(folder, format=form, overwrite=True)
    return [path.read_bytes() for path in sorted(saved.iterdir())]


@pytest.mark.parametrize("method", [jali.generalize, jali.partition, jali.recode])
@given(seed=seeds)
def test_the_order_of_the_original_leaves_no_trace(method: Callable[..., Any], seed: int) -> None:
    """The same rows in another order are the same files, byte by byte, when the generator draws the same."""
    random = np.random.default_rng(seed)
    rows = int(random.integers(4, 20))
    frame = pa.table({
        "age": random.integers(30, 45, rows), "zip": [f"13{n}" for n in random.integers(50, 60, rows)],
        "ill": random.choice(["flu", "cold", None], rows).tolist(), "ward": random.choice(["A", "B"], rows).tolist(),
    })  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        for form in ("csv", "parquet"):
            first = _publish(frame, method, Path(folder) / "out", form)
            moved = frame.take(pa.array(random.permutation(rows)))
            assert _publish(moved, method, Path(folder) / "out", form) == first


@given(tables(persons=False))
def test_everything_that_has_an_order_has_the_same_one(table: Table) -> None:
    """The frame, the individuals, groups and hidden rows; the files, and what is read back from them."""
    release = jali.generalize(table, [jali.KAnonymity(1)])
    shown = release.groups.select(release.individuals.column_names).take(pa.array(release.group_of_rows))
    assert shown.to_pylist() == [
        {name: None if cell is None else _text(cell) for name, cell in row.items()}
        for row in release.individuals.to_pylist()
    ]
    with tempfile.TemporaryDirectory() as folder:
        loaded = jali.load(release.save(Path(folder) / "out", format="parquet"))
        assert pq.read_table(Path(folder) / "out" / "data.parquet").to_pylist() == release.frame("arrow").to_pylist()
        assert loaded.frame("arrow").to_pylist() == release.frame("arrow").to_pylist()
        assert loaded.group_of_rows is not None
        assert np.array_equal(loaded.hidden_rows, release.hidden_rows)


def _text(cell: object) -> str:
    if isinstance(cell, bool):
        return str(cell).lower()
    return f"{cell:g}" if isinstance(cell, float) else str(cell)


def test_an_order_is_drawn_once_and_only_when_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    table = jali.datasets.census(rows=300, seed=1)
    asked: list[int] = []

    def random() -> np.random.Generator:
        asked.append(1)
        return np.random.default_rng(len(asked))

    monkeypatch.setattr(counting, "fresh_random", random)
    release = jali.generalize(table, [jali.KAnonymity(5)])
    release.verify()
    release.estimate().count()
    jali.measure(release, table)
    jali.audit(release)
    release.assignment(table)
    assert asked == []
    assert release.frame("arrow").equals(release.frame("arrow"))
    assert release.individuals.num_rows == 300
    assert asked == [1]


def test_an_order_that_is_given_is_kept() -> None:
    order = Order(np.array([1, 2]), np.array([1, 0, 1], dtype=np.int32))
    assert (order.rows, order.of.tolist()) == (3, [1, 0, 1])


# -- tables -----------------------------------------------------------------------------------------------------------


@given(tables(persons=None), st.booleans())
def test_a_table_of_distinct_records_has_the_same_rows(table: Table, divided: bool) -> None:
    """With the people, weights and combinations that it had."""
    group = np.arange(table.records) % 2 if divided else None
    found, number = table.merged(group)
    for one in (found, table.distinct()):
        assert one.rows == table.rows
        assert one.people == table.people
        assert _rows(one) == _rows(table)
        assert one.frequencies.combinations == table.frequencies.combinations
        codes = one.frequencies.codes[one.frequencies.row_combination]
        assert np.array_equal(codes, np.stack([column.codes for column in one.quasi], axis=1))
        if table.weight is not None:
            assert one.weight @ one.multiplicity == pytest.approx(table.weight.sum())  # type: ignore[operator]
    whole = np.zeros(found.records, dtype=np.int64)
    np.add.at(whole, number, 1 if table.multiplicity is None else table.multiplicity)
    assert np.array_equal(whole, found.multiplicity)


def _rows(table: Table) -> Counter[str]:
    return Counter(map(repr, table.frame("arrow").to_pylist()))


# -- memory -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "where", ["core.formats.pacsv.read_csv", "releases.written.distinct_lines", "releases.written._read_parquet"]
)
def test_lack_of_memory_is_said_as_such(where: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Arrow's error is one about data too: it must not be told as a file that is no table."""
    release = jali.generalize(jali.datasets.census(rows=100, seed=1), [jali.KAnonymity(5)])
    folder = release.save(tmp_path / "out", format="parquet" if "parquet" in where else "csv")

    def fail(*arguments: object, **options: object) -> None:
        raise pa.lib.ArrowMemoryError("malloc of size 1 failed")

    assert pacsv.read_csv is not fail
    monkeypatch.setattr(f"jali.{where}", fail)
    with pytest.raises(MemoryError, match="not enough memory to read"):
        jali.load(folder)
    with pytest.raises(MemoryError, match="not enough memory to read"):
        release.save(tmp_path / "again", format="parquet" if "parquet" in where else "csv")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_lack_of_memory_for_the_columns_is_said_as_such(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = jali.generalize(jali.datasets.census(rows=100, seed=1), [jali.KAnonymity(5)]).save(tmp_path / "out")

    def fail(*arguments: object) -> None:
        raise pa.lib.ArrowMemoryError("malloc of size 1 failed")

    monkeypatch.setattr("jali.releases.generalized.restored", fail)
    with pytest.raises(MemoryError, match="not enough memory to read"):
        jali.load(folder)


# -- orders from the system's randomness ------------------------------------------------------------------------------


@given(st.integers(0, 40))
def test_a_fresh_order_has_everybody_once(many: int) -> None:
    """Nobody is lost, also where there is nobody."""
    assert sorted(counting.fresh_order(many).tolist()) == list(range(many))


def test_rows_that_draw_the_same_digits_are_ordered_by_further_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one random digit a row most of four are tied: over all digits that can be drawn, each order comes as often.

    The digits of tied rows are drawn in turn from the same tape, so that the tape decides about everything.
    """
    found: Counter[tuple[int, ...]] = Counter()
    random = np.random.default_rng(4)

    def one_digit(size: int) -> bytes:
        return (random.integers(0, 2, size // 8).astype(np.uint64) << np.uint64(63)).tobytes()

    monkeypatch.setattr(counting.secrets, "token_bytes", one_digit)
    times = 4_800
    for _ in range(times):
        found[tuple(counting.fresh_order(4).tolist())] += 1
    expected = times / 24
    assert len(found) == 24
    assert sum((n - expected) ** 2 / expected for n in found.values()) < 60  # chi-square, 23 degrees: p < 0.0001
