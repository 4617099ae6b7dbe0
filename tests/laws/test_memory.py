"""Tables beyond memory: engines count by groups and levels, and what is published is what memory would have given."""

from __future__ import annotations

import copy
import gc
import math
import os
import pickle
import sqlite3
import stat
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from fractions import Fraction
from itertools import islice, permutations, product
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import duckdb
import narwhals as nw
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.dataset as ds
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jali
from jali import kernels
from jali.core.spill import Portioned
from jali.encoding.large import BYTES, EACH, Counted, Cut, LargeTable, TooManyError, installed
from jali.errors import InputError
from jali.estimates import cells
from jali.principles.base import principles_of
from jali.principles.counts import Counts, Sensitive
from jali.publish import partition as publishing
from jali.search.lattice.costs import METRICS, Costing
from jali.search.lattice.lattice import Lattice
from jali.search.lattice.portions import Portions, rows_lost
from jali.search.spilled import Bits, Halving, Parts, Spill
from jali.search.trunk import Branch, Trunk
from jali.sources import distinct, files
from jali.sources.engines.base import ROWS, Combinations, Engine, Recoding
from jali.sources.engines.databases import DatabaseTable
from jali.sources.engines.datasets import ArrowDataset
from jali.sources.engines.embedded import DuckDB, SQLite, kept
from jali.sources.engines.frames import LazyFrame
from jali.sources.held import Asked
from oracles.engines import COLUMNS, TABLES, arrow, counted
from oracles.often import examples, first_often


def engines(table: pa.Table) -> Iterator[Engine]:
    """The same rows in the hands of every engine that needs no server."""
    yield LazyFrame(nw.from_native(pl.from_arrow(table).lazy()))
    yield LazyFrame(nw.from_native(duckdb.from_arrow(table)))
    yield ArrowDataset(ds.dataset(table))
    names = ", ".join('"' + name.replace('"', '""') + '"' for name in table.column_names)
    rows = [tuple(row.values()) for row in table.to_pylist()]
    with closing(sqlite3.connect(":memory:")) as lite, closing(duckdb.connect()) as duck:
        lite.execute(f"CREATE TABLE people ({names})")
        lite.executemany(f"INSERT INTO people VALUES ({', '.join('?' * table.num_columns)})", rows)
        yield DatabaseTable(SQLite(lite, "a database"), ("main", "people"))
        duck.register("arrow_people", table)
        duck.execute("CREATE TABLE people AS SELECT * FROM arrow_people")
        yield DatabaseTable(DuckDB(duck, "a database"), ("main", "people"))


# -- the door -------------------------------------------------------------------------------------------------------

NODES = {"n": {0: 0, 1: 1, 2: 2}, COLUMNS[1]: {"a": 0, "b": 1, "": 2, "*": 3}}
MISSING = 4
CUT = Cut("n", (1, 3), (0, Cut(COLUMNS[1], (2,), (1, -1)), 2))


def group_of(row: dict[str, Any]) -> int:
    """The group of a row by CUT, in words."""
    number, word = (NODES[name].get(row[name], MISSING) for name in ("n", COLUMNS[1]))
    if number < 1:
        return 0
    if number >= 3:
        return 2
    return 1 if word < 2 else -1


@given(TABLES, st.booleans())
def test_an_engine_counts_within_groups_and_says_how_many_have_how_many_rows(
    rows: list[Any], all_columns: bool
) -> None:
    """Rows are divided by the nodes of columns that need not be counted; the missing value has a node of its own."""
    table = arrow(rows)
    recoded = {
        name: Recoding(pa.array(list(nodes)), np.array(list(nodes.values())), MISSING) for name, nodes in NODES.items()
    }
    names = COLUMNS[:2] if all_columns else ("d",)
    told = [row for row in table.to_pylist() if group_of(row) >= 0]
    expected = Counter(
        (group_of(row), *(NODES[n].get(row[n], MISSING) if n in NODES else row[n] for n in names)) for row in told
    )
    sizes = Counter((key[0], number) for key, number in expected.items())
    for engine in engines(table):
        assert counted(engine.count(names, recoded=recoded, within=CUT)) == expected
        found = engine.sizes(names, recoded=recoded, within=CUT)
        assert Counter(dict(zip(zip(found.group.tolist(), found.size.tolist(), strict=True), found.many.tolist(),
                                strict=True))) == sizes  # fmt: skip
        plain = engine.count(names, recoded=recoded)
        whole = engine.sizes(names, recoded=recoded)
        assert int(whole.many.sum()) == len(plain.rows)
        assert int((whole.many * whole.size).sum()) == len(rows)
        assert counted(engine.count(names, recoded=recoded, most=len(plain.rows))) == counted(plain)
        with pytest.raises(TooManyError):
            engine.count(names, recoded=recoded, most=len(plain.rows) - 1)
        came = pa.Table.from_batches(engine.batches(COLUMNS[:2], recoded))
        assert counted(Combinations(came.drop([ROWS]), came[ROWS].to_numpy())) == Counter(
            tuple(NODES[name].get(row[name], MISSING) for name in COLUMNS[:2]) for row in table.to_pylist()
        )


@given(TABLES)
def test_a_copy_of_combinations_answers_as_the_rows_do(rows: list[Any]) -> None:
    """Each of its rows stands for several; Spark's copy is a frame, every other one a table of DuckDB."""
    table = arrow(rows)
    recoded = {
        name: Recoding(pa.array(list(nodes)), np.array(list(nodes.values())), MISSING) for name, nodes in NODES.items()
    }
    names = COLUMNS[:2]
    engine = LazyFrame(nw.from_native(pl.from_arrow(table).lazy()))
    half = {name: Recoding(pa.array(np.arange(5)), np.array([0, 0, 1, 1, 2])) for name in names}
    in_halves = {
        name: Recoding(own.values, half[name].nodes[own.nodes], int(half[name].nodes[MISSING]))
        for name, own in recoded.items()
    }
    with kept(dict.fromkeys(names, 5), engine.batches(names, recoded), 1) as copy:
        came = pa.Table.from_batches(engine.batches(names, recoded))
        for own in (copy, LazyFrame(nw.from_native(pl.from_arrow(came).lazy()), ROWS)):
            assert counted(own.count(names)) == counted(engine.count(names, recoded=recoded))
            found = counted(own.count(names[:1], recoded=half, within=CUT))
            assert found == counted(engine.count(names[:1], recoded=in_halves, within=CUT))
            sizes = [Counter(dict(zip(zip(each.group.tolist(), each.size.tolist(), strict=True), each.many.tolist(),
                                      strict=True)))
                     for each in (own.sizes(names, recoded=half, within=CUT),
                                  engine.sizes(names, recoded=in_halves, within=CUT))]  # fmt: skip
            assert sizes[0] == sizes[1]


# -- sizes of memory ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", ["", "many", "-4GB", "4 XB", "0", 0, -1, True, 2.5, "4GB5"])
def test_memory_that_is_no_size_is_refused_before_anything_is_read(given: Any) -> None:
    """In one line, with what to write instead."""
    with pytest.raises(InputError, match=r'memory is no size.*write memory = "4GB"'):
        jali.read("nowhere.duckdb", quasi=["a"], memory=given)


def test_the_memory_of_a_machine_is_that_of_its_container(tmp_path: Path) -> None:
    """The smallest limit counts; "max" is none."""
    whole = installed(())
    small, none = tmp_path / "limit", tmp_path / "none"
    small.write_text("123456789\n")
    none.write_text("max\n")
    assert installed((str(small), str(none))) == 123_456_789
    assert installed((str(none), str(tmp_path / "nothing"))) == whole


# -- the lattice ----------------------------------------------------------------------------------------------------

PEOPLE = st.tuples(
    st.none() | st.integers(20, 35), st.sampled_from(["13050", "13051", "13120", "14850", "", "9"]),
    st.none() | st.sampled_from("abcde"), st.sampled_from(["flu", "cold", "gout", None]), st.integers(0, 2),
)  # fmt: skip
ROLES: Any = {
    "quasi": {"age": jali.bands(2, 6), "zip": jali.mask(), "sex": jali.suppress()},
    "sensitive": ["disease"],
}
PROMISES = [
    [jali.KAnonymity(2)], [jali.KAnonymity(3)], [jali.KAnonymity(5)], [jali.KAnonymity(2), jali.DistinctDiversity(2)],
    [jali.EntropyDiversity(1.5)], [jali.KAnonymity(3), jali.TCloseness(0.5)], [jali.RecursiveDiversity(3, 2)],
    [jali.Safety(0.9, 1), jali.KAnonymity(2)],
]  # fmt: skip


def people(rows: list[Any]) -> pa.Table:
    """Rows as a table."""
    types = (pa.int64(), pa.string(), pa.string(), pa.string(), pa.int64())
    names = ("age", "zip", "sex", "disease", "ward")
    return pa.table(
        {name: pa.array([r[i] for r in rows], of) for i, (name, of) in enumerate(zip(names, types, strict=True))}
    )


def for_combinations(room: int, columns: int) -> int:
    """The bytes in which so many combinations fit."""
    return room * (BYTES + EACH * columns)


def both(rows: list[Any], room: int, roles: Any) -> tuple[jali.Table, jali.Table]:
    """The same rows as one table in memory, and as one that may have to stay with its engine."""
    frame = pl.from_arrow(people(rows)).lazy()
    columns = sum(len(names) for names in roles.values())
    return jali.table(frame, **roles), jali.table(frame, **roles, memory=for_combinations(room, columns))


def shown(release: Any) -> Counter[Any]:
    """The rows of a release, from its files where they are not held."""
    if isinstance(release.counted_tables["data"], Portioned):
        with tempfile.TemporaryDirectory() as folder:
            release = jali.load(release.save(Path(folder) / "out"))
    return Counter(map(tuple, (row.values() for row in release.frame("arrow").to_pylist())))


def same_release(found: Any, expected: Any, *, numbered: bool = True) -> None:
    """Two releases show the same rows, and say the same of them; groups are `numbered` alike, and so their labels."""
    assert shown(found) == shown(expected)
    first, second = found.manifest, expected.manifest
    assert (first.counts, first.method, first.domain, first.notes) == (
        second.counts, second.method, second.domain, second.notes
    )  # fmt: skip
    assert first.metrics == pytest.approx(second.metrics, abs=1e-9)
    for own, other in zip(found.columns, expected.columns, strict=True):
        assert own.to_dict() == other.to_dict() or not numbered
        assert sorted(map(str, own.labels.to_pylist())) == sorted(map(str, other.labels.to_pylist()))


def outcome(work: Callable[[], Any], table: jali.Table) -> Any:
    """What a function gives; a text where it cannot be done, None where memory does not suffice for it."""
    try:
        return work()
    except jali.InfeasibleError as problem:
        return str(problem)
    except InputError as problem:
        beyond = isinstance(table, LargeTable) and "memory" in problem.what and "memory" in (problem.do or "")
        return None if beyond else str(problem)


@examples(3)
@given(
    st.lists(PEOPLE, min_size=8, max_size=40), st.integers(14, 30), st.sampled_from(PROMISES),
    st.fixed_dictionaries({
        "metric": st.sampled_from(["kl", "discernibility", "average", "height", "loss"]),
        "suppress": st.sampled_from([0.0, 0.1, 0.3]), "importance": st.sampled_from([None, {"zip": 3}]),
        "show": st.sampled_from(["taxonomy", "taxonomy", "interval", "set", "pdf", {"zip": "set-exact"}]),
    }), st.tuples(st.booleans(), st.sampled_from(["declared", "present"]), st.booleans()),
)  # fmt: skip
def test_the_best_node_beyond_memory_is_that_in_memory(
    rows: list[Any], room: int, promises: Any, options: Any, read_as: tuple[bool, Any, bool]
) -> None:
    """The same node, suppressed rows, figures and file; or one line that says what to change."""
    other, domain, compiled = read_as
    held, large = both(rows, room, ROLES | ({"other": ["ward"]} if other else {}))
    with patch.object(kernels, "LOOKS", -1 if compiled else kernels.LOOKS):
        expected, found = (
            outcome(lambda table=table: jali.generalize(table.with_domain(domain), promises, **options), table)
            for table in (held, large)
        )
    if isinstance(found, str) or isinstance(expected, str):
        assert found in (expected, None)
    elif found is not None:
        same_release(found, expected)


@given(st.lists(PEOPLE, min_size=8, max_size=40), st.integers(14, 30), st.sampled_from(PROMISES))
def test_the_minimal_nodes_beyond_memory_are_those_in_memory(rows: list[Any], room: int, promises: Any) -> None:
    """With their groups and costs; each of them can be published, if it fits."""
    held, large = both(rows, room, ROLES)
    expected, found = (outcome(lambda table=table: jali.minimal(table, promises), table) for table in (held, large))
    if isinstance(expected, str) or found is None:
        assert found in (expected, None)
        return
    assert [(node.levels, node.groups, node.smallest) for node in found] == [
        (node.levels, node.groups, node.smallest) for node in expected
    ]
    assert [node.kl for node in found] == pytest.approx([node.kl for node in expected], abs=1e-9)
    assert found.satisfied == expected.satisfied
    levels = dict(found[0].levels)
    release = outcome(lambda: jali.generalize(large, promises, levels=levels), large)
    if release is not None:
        same_release(release, jali.generalize(held, promises, levels=levels))


def many(number: int = 400) -> list[Any]:
    """Rows that are nearly all different, of which a few hundred can be made alike."""
    random = np.random.default_rng(7)
    words = ["13050", "13051", "13120", "14850", "9"]
    return [
        (int(random.integers(20, 36)), words[random.integers(5)], "abcde"[random.integers(5)],
         ("flu", "cold", "gout")[random.integers(3)], int(random.integers(3)))
        for _ in range(number)
    ]  # fmt: skip


@pytest.mark.parametrize("options", [
    {"show": "pdf"}, {"show": "pdf", "towards": 0.5}, {"show": "set-exact", "suppress": 0.05}, {"show": "interval"},
])  # fmt: skip
@pytest.mark.parametrize("room", first_often([120, 200]))
def test_a_small_budget_shows_groups_by_their_own_values(room: int, options: Any) -> None:
    """The engine says which values each group has, and the release is the one of memory."""
    held, large = both(many(), room, ROLES)
    assert isinstance(large, LargeTable)
    promises = [jali.KAnonymity(40), jali.EntropyDiversity(1.5)]
    same_release(jali.generalize(large, promises, **options), jali.generalize(held, promises, **options))


@pytest.mark.parametrize("metric", ["loss", "kl"])
@pytest.mark.parametrize("suppress", [0.0, 0.05])
@pytest.mark.parametrize("room", first_often([85, 110, 150]))
def test_a_small_budget_is_enough_for_a_table_that_does_not_fit(
    room: int, suppress: float, metric: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stays with its engine, and the release is the one of memory: from one base, or from several."""
    held, large = both(many(), room, ROLES)
    assert isinstance(large, LargeTable)
    assert held.frequencies.combinations > room
    monkeypatch.setattr(kernels, "LOOKS", -1)  # small as it is, kernels search it
    options: Any = {"suppress": suppress, "metric": metric}
    promises = [jali.KAnonymity(8), jali.EntropyDiversity(1.5)]
    same_release(jali.generalize(large, promises, **options), jali.generalize(held, promises, **options))


@examples(2)
@given(
    st.lists(PEOPLE, min_size=8, max_size=40), st.integers(14, 20), st.sampled_from(PROMISES[:-1]), st.data(),
    st.sampled_from([None, np.array([1_000_000, 3_000_000, 1_000_000])]),
)  # fmt: skip
def test_a_node_in_portions_is_judged_and_priced_as_in_memory(
    rows: list[Any], room: int, promises: Any, data: st.DataObject, importance: Any
) -> None:
    """The same groups are suppressed, those that join them too, and each cost is the same."""
    held, large = both(rows, room, ROLES)
    if not isinstance(large, LargeTable):
        return
    principles = principles_of(promises)
    try:
        whole, top = (
            Lattice(each, principles, on_step=lambda *_: None) for each in (held, large.at_roots())
        )  # fmt: skip
    except (jali.InfeasibleError, InputError):
        return
    node = tuple(data.draw(st.integers(0, height)) for height in top.top)
    budget = data.draw(st.integers(0, len(rows)))
    portions = Portions(large, top.roller, node)
    try:
        found = portions.suppression(principles, budget)
    except InputError:  # a single group is too large
        assert max(np.bincount(whole.tally(node).group)) > large.room
        return
    tally = whole.tally(node)
    expected = whole.suppression(tally, budget)
    assert (found is None) == (expected is None)
    lost = rows_lost(principles, whole.roller.counts(tally))
    assert lost == 0 or portions.lost(principles, lost - 1)
    assert not portions.lost(principles, lost)
    if found is None or expected is None:
        return
    assert found.rows == int(tally.rows[expected].sum()) >= lost
    codes = [
        {tuple(int(code[at]) for code in own.codes) for at in np.flatnonzero(out)}
        for own, out in [*zip(portions.tallies(), found.groups, strict=True), (tally, expected)]
    ]
    assert set().union(*codes[:-1]) == codes[-1]
    costing = Costing(held, whole.roller.hierarchies, importance=importance)
    priced = portions.priced(Costing(top.table, top.roller.hierarchies, importance=importance), found)
    costs = costing.prices(tally, expected)
    assert [getattr(priced, m) for m in METRICS] == pytest.approx([getattr(costs, m) for m in METRICS], abs=1e-9)
    assert (priced.groups, priced.suppressed) == (int((~expected).sum()), found.rows)


@given(
    st.lists(st.integers(0, 5), min_size=2, max_size=4).filter(any),
    st.sampled_from([jali.KAnonymity(4), jali.DistinctDiversity(2), jali.FrequencyDiversity(2.5),
                     jali.EntropyDiversity(1.9), jali.RecursiveDiversity(2, 2), jali.TCloseness(0.2)]),
)  # fmt: skip
def test_no_way_to_divide_a_group_keeps_more_rows_than_its_bound(n: list[int], principle: Any) -> None:
    """Tried with every part of the group; nothing is lost by a principle that looks at more than evenness."""
    column = Sensitive("disease", tuple("abcd"[: len(n)]))

    def counts(groups: list[tuple[int, ...]], whole: Counts | None = None) -> Counts:
        group, value = np.nonzero(groups)
        joint = np.arange(len(n))[:, None]
        return Counts(len(groups), group, value, np.array(groups)[group, value], (column,), joint, None, whole)

    parts = list(product(*(range(many + 1) for many in n)))
    whole = counts([tuple(n)])
    most = max(sum(part) for part, good in zip(parts, principle.holds(counts(parts, whole)), strict=True) if good)
    lost = rows_lost((principle,), whole)
    assert lost <= sum(n) - most
    if not isinstance(principle, jali.TCloseness):
        assert (lost == sum(n)) == (most == 0)
        assert sum(n) - lost - most < len(n)


# -- the copy -------------------------------------------------------------------------------------------------------


def left_in(folder: Path) -> list[Path]:
    """What is in the temporary folder, once everything that nobody has any more is gone."""
    gc.collect()
    return [each for each in folder.iterdir() if each.name.startswith("jali-")]


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty temporary folder."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_the_copy_is_private_and_gone_with_the_table(temporary: Path) -> None:
    """One folder that only its owner may look into; releases do not need it."""
    _, large = both(many(), 85, ROLES)
    (folder,) = left_in(temporary)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    other = large.with_domain("present")
    del large
    assert left_in(temporary) == [folder]
    release = jali.generalize(other, jali.KAnonymity(8))
    del other
    assert left_in(temporary) == []
    release.verify()


def test_a_table_that_changes_before_it_is_copied_is_refused(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it has as many rows as before; nothing is left behind."""
    batches = LazyFrame.batches

    def later(self: Any, columns: Any, recoded: Any) -> Any:
        other = pl.from_arrow(people([*many()[1:], many()[1]])).lazy()
        return batches(LazyFrame(nw.from_native(other)), columns, recoded)

    monkeypatch.setattr(LazyFrame, "batches", later)
    with pytest.raises(InputError, match="the table changed while it was read"):
        both(many(), 85, ROLES)
    assert left_in(temporary) == []


def test_without_a_copy_the_rows_are_asked(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where DuckDB is not installed, a note says so, and the release is the same."""
    _, copied = both(many(), 85, ROLES)
    monkeypatch.setitem(sys.modules, "duckdb", None)
    held, large = both(many(), 85, ROLES)
    assert isinstance(large, LargeTable)
    assert len(left_in(temporary)) == 1
    assert any("each question reads all rows again" in note and "DuckDB" in note for note in large.notes)
    assert not any("each question" in note for note in (*held.notes, *copied.notes))
    promises = [jali.KAnonymity(8), jali.EntropyDiversity(1.5)]
    same_release(jali.generalize(large, promises, suppress=0.05), jali.generalize(held, promises, suppress=0.05))


def lazy_frames(table: pa.Table, folder: Path) -> Iterator[Any]:
    """The same rows as frames that count themselves."""
    yield pl.from_arrow(table).lazy()
    with closing(duckdb.connect()) as connection:
        yield connection.from_arrow(table)
        assert connection.sql("SHOW TABLES").fetchall() == []  # the caller's connection is as it was
    yield ds.dataset(table)
    with closing(sqlite3.connect(folder / "ibis.sqlite")) as lite:
        lite.execute("CREATE TABLE people (age INTEGER, zip TEXT, sex TEXT, disease TEXT)")
        lite.executemany("INSERT INTO people VALUES (?, ?, ?, ?)", [tuple(row.values()) for row in table.to_pylist()])
        lite.commit()
    yield pytest.importorskip("ibis").sqlite.connect(folder / "ibis.sqlite").table("people")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The 'future.infer_string'")  # of pandas, which Ibis asks for it
def test_frames_of_every_library_are_copied(tmp_path: Path) -> None:
    """The release is that of memory, and of the library's own answers where names do not allow a copy."""
    table = people(many()).select(["age", "zip", "sex", "disease"])
    expected = jali.generalize(jali.table(table, **ROLES), jali.KAnonymity(8), suppress=0.05)
    for frame in lazy_frames(table, tmp_path):
        large = jali.table(frame, **ROLES, memory=for_combinations(85, 4))
        assert isinstance(large, LargeTable)
        assert not any("each question" in note for note in large.notes)
        same_release(jali.generalize(large, jali.KAnonymity(8), suppress=0.05), expected)
    named = table.rename_columns(["age", "Age", "sex", "disease"])
    roles = {"quasi": dict(zip(("age", "Age", "sex"), ROLES["quasi"].values(), strict=True)), "sensitive": ["disease"]}
    large = jali.table(pl.from_arrow(named).lazy(), **roles, memory=for_combinations(85, 4))
    assert any("differ in capitals only" in note for note in large.notes)
    held = jali.generalize(jali.table(named, **roles), jali.KAnonymity(8))
    same_release(jali.generalize(large, jali.KAnonymity(8)), held)


def test_a_copy_that_breaks_is_one_line(temporary: Path) -> None:
    """Lack of memory is said as such; of anything else the kind of error, never its words."""
    _, large = both(many(), 85, ROLES)
    assert isinstance(large, LargeTable)
    for problem, raised in ((duckdb.OutOfMemoryException, MemoryError), (duckdb.IOException, InputError)):
        with patch.object(DuckDB, "answer", side_effect=problem("13050")), pytest.raises(raised) as caught:
            jali.generalize(large, jali.KAnonymity(8))
        assert "13050" not in str(caught.value)


@pytest.mark.parametrize(
    "problem",
    [
        RuntimeError("Query interrupted"), duckdb.InterruptException("Interrupted!"),
        duckdb.InvalidInputException("Python exception occurred while executing the UDF: KeyboardInterrupt:"),
    ],
)  # fmt: skip
def test_ctrl_c_in_a_query_of_duckdb_is_ctrl_c(problem: Exception, temporary: Path) -> None:
    """While a table is read, while its copy is made, and while that is asked; nothing is left behind."""
    frame = duckdb.from_arrow(people(many()))
    size = for_combinations(85, 4)
    for place in ((LazyFrame, "count"), (LazyFrame, "batches"), (DuckDB, "put")):
        with patch.object(*place, side_effect=problem), pytest.raises(KeyboardInterrupt):
            jali.table(frame, **ROLES, memory=size)
        assert not list(temporary.iterdir())
    large = jali.table(frame, **ROLES, memory=size)
    with patch.object(DuckDB, "answer", side_effect=problem), pytest.raises(KeyboardInterrupt):
        jali.generalize(large, jali.KAnonymity(8))


@pytest.mark.parametrize("kind", ["duckdb", "sqlite"])
def test_a_database_is_free_while_its_table_is_used(kind: str, tmp_path: Path) -> None:
    """The copy stands elsewhere: others may write, and the release, of the rows as they were, goes into that file."""
    path = tmp_path / f"people.{kind}"
    rows = many()
    frame = people(rows).select(["age", "zip", "sex", "disease"])
    connect: Any = duckdb.connect if kind == "duckdb" else sqlite3.connect
    with closing(connect(str(path))) as connection:
        connection.execute("CREATE TABLE people (age INTEGER, zip VARCHAR, sex VARCHAR, disease VARCHAR)")
        connection.executemany("INSERT INTO people VALUES (?, ?, ?, ?)", [row[:4] for row in rows])
        connection.commit()
    large = jali.read(path, table="people", **ROLES, memory=for_combinations(85, 4))
    assert isinstance(large, LargeTable)
    with closing(connect(str(path))) as connection:
        connection.execute("DELETE FROM people WHERE age < 30")
        connection.commit()
    release = jali.generalize(large, jali.KAnonymity(8))
    same_release(release, jali.generalize(jali.table(frame, **ROLES), jali.KAnonymity(8)))
    release.write(f"{path}?table=shared")
    assert jali.load(f"{path}?table=shared").rows == large.rows == 400


# -- partitions -----------------------------------------------------------------------------------------------------

_TREE = [
    ["13050", "130", "1", "*"], ["13051", "130", "1", "*"], ["13120", "131", "1", "*"], ["14850", "148", "1", "*"],
    ["9", "9", "9", "*"], ["", "", "", "*"],
]  # fmt: skip
CUT_BY: Any = {
    "quasi": {"age": jali.bands(2, 6), "zip": jali.taxonomy(_TREE), "sex": jali.suppress()},
    "sensitive": ["disease"],
}


CUTS: list[dict[str, Any]] = [
    {"split": "range"}, {"split": "entropy"}, {"split": "kl"}, {"split": "kl", "similarity": "pdf"},
]  # fmt: skip


@examples(4)
@given(
    st.lists(PEOPLE, min_size=8, max_size=60), st.integers(14, 40), st.sampled_from(PROMISES[:-1]),
    st.fixed_dictionaries({
        "importance": st.sampled_from([None, {"zip": 3}]),
        "show": st.sampled_from([None, "taxonomy", "interval", "set", "pdf", "set-exact"]),
    }).flatmap(lambda own: st.sampled_from([own | each for each in CUTS])),
    st.tuples(st.booleans(), st.sampled_from([ROLES, CUT_BY]), st.sampled_from(["declared", "present"])),
)  # fmt: skip
def test_the_partition_beyond_memory_is_that_in_memory(
    rows: list[Any], room: int, promises: Any, options: Any, read_as: tuple[bool, Any, Any]
) -> None:
    """The same groups, shown in the same way, with the same figures; or one line that says what to change."""
    other, roles, domain = read_as
    held, large = both(rows, room, roles | ({"other": ["ward"]} if other else {}))
    expected, found = (
        outcome(lambda table=table: jali.partition(table.with_domain(domain), promises, **options), table)
        for table in (held, large)
    )
    if isinstance(found, str) or isinstance(expected, str):
        assert found in (expected, None)
    elif found is not None:
        same_release(found, expected)
        assert found.groups.sort_by([(n, "ascending") for n in found.groups.column_names]).equals(
            expected.groups.sort_by([(n, "ascending") for n in expected.groups.column_names])
        )


@pytest.mark.parametrize("how", CUTS)
@pytest.mark.parametrize("roles", first_often([ROLES, CUT_BY]))
@pytest.mark.parametrize("room", first_often([90, 60, 150]))
def test_a_small_budget_cuts_a_table_that_does_not_fit(room: int, roles: Any, how: Any) -> None:
    """The engine cuts it until groups fit, and the release is the one of memory."""
    held, large = both(many(), room, roles)
    assert isinstance(large, LargeTable)
    promises = [jali.KAnonymity(4), jali.EntropyDiversity(1.5)]
    same_release(jali.partition(large, promises, **how), jali.partition(held, promises, **how))


def posted(
    self: Asked, work: Callable[[Counted], Any], nodes: Any, *, of: list[str], within: Cut
) -> list[Any]:  # fmt: skip
    """What workers in other processes make of each group: everything goes and comes as bytes, in any order."""
    found, sent = self.count(nodes, of=of, within=within), pickle.dumps(work)
    assert found.group is not None
    made = []
    for number in np.unique(found.group)[::-1]:
        own = found.group == number
        group = Counted({name: codes[own] for name, codes in found.nodes.items()}, found.rows[own], found.group[own])
        made.append(pickle.dumps(pickle.loads(sent)(pickle.loads(pickle.dumps(group)))))
    return [pickle.loads(each) for each in made]


@pytest.mark.parametrize("how", [CUTS[0], CUTS[3] | {"importance": {"zip": 3}}])
def test_groups_that_workers_of_an_engine_cut_are_those_of_memory(how: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each group that fits is cut from its own combinations and what all groups share; no worker asks for more."""
    held, large = both(many(), 90, CUT_BY)
    promises, cut_here, real = [jali.KAnonymity(4), jali.EntropyDiversity(1.5)], [], Trunk.pieces
    monkeypatch.setattr(Asked, "each", posted)
    monkeypatch.setattr(Trunk, "pieces", lambda *given, other: cut_here.append(other) or real(*given, other=other))
    found, expected = (jali.partition(table, promises, **how) for table in (large, held))
    same_release(found, expected)
    assert cut_here == [False]  # once more, for the KL-divergence
    monkeypatch.setattr(Asked, "each", lambda *given, **named: None)
    alone = jali.partition(large, promises, **how)
    assert found.search == alone.search
    assert cut_here == [False, True, False]


# -- relaxed partitions ---------------------------------------------------------------------------------------------


@examples(2)
@given(
    st.lists(PEOPLE, min_size=8, max_size=60), st.integers(14, 40), st.sampled_from(PROMISES[:-1]),
    st.fixed_dictionaries({
        "importance": st.sampled_from([None, {"zip": 3}]),
        "show": st.sampled_from([None, "taxonomy", "interval", "set", "pdf", "set-exact"]),
    }).flatmap(lambda own: st.sampled_from([own | each for each in CUTS])),
    st.tuples(st.booleans(), st.sampled_from(["ROLES", "CUT_BY"]), st.sampled_from(["declared", "present"])),
)  # fmt: skip
def test_the_relaxed_partition_beyond_memory_is_that_in_memory(
    rows: list[Any], room: int, promises: Any, options: Any, read_as: tuple[bool, str, Any]
) -> None:
    """The same groups, shown in the same way, with the same figures; or one line that says what to change."""
    other, roles, domain = read_as
    held, large = both(rows, room, {"ROLES": ROLES, "CUT_BY": CUT_BY}[roles] | ({"other": ["ward"]} if other else {}))
    same_relaxed(held.with_domain(domain), large.with_domain(domain), promises, **options)


def same_relaxed(held: jali.Table, large: jali.Table, promises: Any, **options: Any) -> None:
    """Relaxed partitions of both tables are the same, or one line says what to change."""
    expected, found = (
        outcome(lambda table=table: jali.partition(table, promises, mode="relaxed", **options), table)
        for table in (held, large)
    )
    if isinstance(found, str) or isinstance(expected, str):
        assert found in (expected, None)
    elif found is not None:
        same_release(found, expected, numbered=False)
        assert found.groups.sort_by([(n, "ascending") for n in found.groups.column_names]).equals(
            expected.groups.sort_by([(n, "ascending") for n in expected.groups.column_names])
        )


@pytest.mark.parametrize("promise", first_often([jali.EntropyDiversity(1.5), jali.TCloseness(0.05)]))
@pytest.mark.parametrize("how", CUTS)
@pytest.mark.parametrize("roles", first_often([CUT_BY | {"other": ["ward"]}, ROLES]))
def test_a_small_budget_divides_people_of_a_table_that_does_not_fit(roles: Any, how: Any, promise: Any) -> None:
    """Groups beyond memory are cut, or stay whole, as they are in memory; half of the people stand there twice."""
    held, large = both([*many(), *many()[:200]], 60, roles)
    assert isinstance(large, LargeTable)
    promises = [jali.KAnonymity(3), promise]
    found = jali.partition(large, promises, mode="relaxed", **how)
    same_release(found, jali.partition(held, promises, mode="relaxed", **how), numbered=False)
    rows = jali.table(people([*many(), *many()[:200]]), **roles)  # one record a row
    same_release(found, jali.partition(rows, promises, mode="relaxed", **how), numbered=False)


# -- equal halves ---------------------------------------------------------------------------------------------------


def listed(spilled: Halving, parts: Parts) -> list[tuple[int, ...]]:
    """The codes of everybody in a part of the private file, in order."""
    return [tuple(entry)[: len(spilled.table.columns)] for part in parts for entry in part.read().tolist()]


@contextmanager
def watched_draws() -> Iterator[list[list[tuple[int, ...]]]]:
    """The people of each sample, by their codes, in the order of ties, as they are drawn meanwhile."""
    found: list[list[tuple[int, ...]]] = []
    turned = Halving.turned

    def watched(own: Halving, portions: Any) -> Iterator[tuple[Parts, int]]:
        for parts, depth in turned(own, portions):
            found.append(listed(own, parts))
            yield parts, depth

    with patch.object(Halving, "turned", watched):
        yield found


def order_of(table: jali.Table, drawn: list[list[tuple[int, ...]]]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The people of a table in memory in the order of people who were drawn, sample by sample."""
    waiting: dict[tuple[int, ...], list[int]] = {}
    for person, codes in enumerate(zip(*(c.codes.tolist() for c in table.one_by_one().columns), strict=True)):
        waiting.setdefault(codes, []).append(person)
    return np.array([waiting[codes].pop() for sample in drawn for codes in sample])


@examples(4)
@given(
    st.lists(PEOPLE, min_size=8, max_size=60), st.integers(14, 40), st.sampled_from(PROMISES[3:-1]),
    st.fixed_dictionaries({
        "split": st.sampled_from(["area", "range"]), "importance": st.sampled_from([None, {"zip": 3}]),
        "show": st.sampled_from([None, "taxonomy", "interval", "set", "pdf", "set-exact", "interval-exact"]),
    }), st.tuples(st.booleans(), st.sampled_from(["ROLES", "CUT_BY"]), st.sampled_from(["declared", "present"])),
)  # fmt: skip
def test_equal_halves_beyond_memory_are_those_of_the_same_draws_in_memory(
    rows: list[Any], room: int, promises: Any, options: Any, read_as: tuple[bool, str, Any]
) -> None:
    """Whoever is drawn, in whatever order: the same groups, shown in the same way, with the same figures and claim."""
    other, roles, domain = read_as
    held, large = both(rows, room, {"ROLES": ROLES, "CUT_BY": CUT_BY}[roles] | ({"other": ["ward"]} if other else {}))
    if isinstance(large, LargeTable):
        same_halves(held.with_domain(domain), large.with_domain(domain), promises, **options)


def same_halves(held: jali.Table, large: jali.Table, promises: Any, **options: Any) -> None:
    """Equal halves beyond memory are what memory makes of the same draws; or one line says what to change."""
    with watched_draws() as drawn:
        found = outcome(lambda: jali.partition(large, promises, transparent=True, **options), large)
    if found is None:
        return
    order = order_of(held, drawn)
    forced: Any = {"fresh_order": lambda rows: order, "open_order": lambda rows: order} if drawn else {}
    with patch.multiple(publishing, **forced) if forced else nullcontext():
        expected = outcome(lambda: jali.partition(held, promises, transparent=True, **options), held)
    if isinstance(expected, str):
        assert found == expected
        return
    same_release(found, expected, numbered=False)
    assert found.transparent
    assert found.search == expected.search


@pytest.mark.parametrize(
    "promise", first_often([jali.EntropyDiversity(1.5), jali.FrequencyDiversity(2.5), jali.TCloseness(0.05)])
)
@pytest.mark.parametrize("roles", [ROLES, CUT_BY, ROLES | {"other": ["ward"]}])
@pytest.mark.parametrize("room", first_often([20, 60, 150]))
def test_a_small_budget_halves_a_table_that_does_not_fit(room: int, roles: Any, promise: Any) -> None:
    """Nodes beyond memory are cut, or are groups, as they are in memory."""
    held, large = both(many(), room, roles)
    assert isinstance(large, LargeTable)
    same_halves(held, large, [jali.KAnonymity(3), promise])


def test_a_cell_of_more_people_than_fit_is_one_cell_of_the_figures() -> None:
    """People who differ in other columns alone come in several portions; the KL-divergence counts them together."""
    same = [(20, "13050", "a", "flu", ward % 3) for ward in range(300)]
    held, large = both([*many(), *same], 60, ROLES | {"other": ["ward"]})
    assert isinstance(large, LargeTable)
    same_halves(held, large, [jali.KAnonymity(3), jali.EntropyDiversity(1.2)])
    relaxed = [jali.partition(table, jali.KAnonymity(3), mode="relaxed") for table in (large, held)]
    same_release(*relaxed, numbered=False)


class Enumerated:
    """Every outcome of random choices, each with its probability: `each` runs a function once for each of them."""

    def __init__(self) -> None:
        self.chosen: list[int] = []
        self.of: list[int] = []
        self.at = 0

    def choose(self, many: int) -> int:
        """One of so many, all equally likely."""
        if self.at == len(self.chosen):
            self.chosen.append(0)
            self.of.append(many)
        self.at += 1
        return self.chosen[self.at - 1]

    def order(self, many: int) -> Any:
        """An order, all equally likely."""
        left = list(range(many))
        return np.array([left.pop(self.choose(len(left))) for _ in range(many)], dtype=np.int64)

    def digits(self, many: int, bits: int) -> Any:
        """Numbers of so many bits."""
        return np.array([self.choose(1 << bits) for _ in range(many)], dtype=np.int64)

    def each(self, work: Callable[[], Any]) -> Iterator[tuple[Any, Fraction]]:
        """What the function gives, and with which probability, for every sequence of choices."""
        while True:
            self.at = 0
            yield work(), Fraction(1, math.prod(self.of))
            while self.chosen and self.chosen[-1] == self.of[-1] - 1:
                self.chosen.pop()
                self.of.pop()
            if not self.chosen:
                return
            self.chosen[-1] += 1


def three(values: str, promise: jali.KAnonymity, bits: Enumerated) -> tuple[Halving, list[Branch]]:
    """The halving of three people, of whom two fit into memory."""
    frame = pl.DataFrame({"id": [0, 1, 2], "ill": list(values)}).lazy()
    large = jali.table(frame, quasi={"id": jali.bands(2)}, sensitive=["ill"], memory=3 * (BYTES + EACH))
    assert isinstance(large, LargeTable)
    assert large.room == 2
    trunk = Trunk(large, (promise,), split="range", importance=None, on_step=lambda done, total: None)
    return Halving(trunk, "area", Bits(bits.order, bits.order, bits.digits)), trunk.portions()


def test_a_group_beyond_memory_is_whole_wherever_its_people_were_written() -> None:
    """Three people who are one group, all in one bucket or in two."""
    bits = Enumerated()
    halving, portions = three("aab", jali.KAnonymity(2), bits)
    for grown, _ in islice(bits.each(lambda: halving.grown(portions)), 50):
        assert (grown.groups, grown.table.rows) == (1, 3)


@pytest.mark.parametrize("values", first_often(["aab", "aaa", "aba", "bab"]))
def test_every_draw_beyond_memory_is_exactly_as_likely_as_in_memory(values: str) -> None:
    """Counted out: given the samples' histograms, members of samples and orders of ties are uniform and independent."""
    bits = Enumerated()
    halving, portions = three(values, jali.KAnonymity(1), bits)
    likely: Counter[Any] = Counter()
    for found, share in bits.each(
        lambda: tuple(tuple(listed(halving, p)) for p, _ in halving.turned(halving.fetched(portions)))
    ):
        likely[found] += share
    assert [int(sample.histogram.sum()) for sample in halving.samples] == [2, 1]
    plan = [Counter({v: n for v, n in enumerate(sample.histogram.tolist()) if n}) for sample in halving.samples]
    codes = [(i, sorted(set(values)).index(value)) for i, value in enumerate(values)]
    possible = [
        (order[:2], order[2:]) for order in permutations(codes)
        if [Counter(v for _, v in part) for part in (order[:2], order[2:])] == plan
    ]  # fmt: skip
    assert likely == {each: Fraction(1, len(possible)) for each in possible}


@pytest.mark.parametrize("how", [{"transparent": True}, {"mode": "relaxed"}])
def test_people_beyond_memory_lie_in_a_file_that_nobody_else_can_open(
    how: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has no name while it is there, not even for its owner, and it is closed when the work fails."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    made: list[Spill] = []
    start = Spill.__init__

    def watched(own: Spill, kind: Any) -> None:
        start(own, kind)
        made.append(own)

    monkeypatch.setattr(Spill, "__init__", watched)
    _, large = both(many(), 60, ROLES)
    seen: list[Any] = []

    def step(done: int, total: int) -> None:
        seen.extend((os.fstat(each._file.fileno()), os.listdir(tmp_path)) for each in made if not each._file.closed)
        if done > total // 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        jali.partition(large, jali.EntropyDiversity(1.5), **how, on_step=step)
    assert seen
    for status, names in seen:
        assert status.st_nlink == 0
        assert not status.st_mode & 0o077
        assert not [
            name for name in names if not name.startswith("jali-")
        ]  # the copy of the table, a folder of its own
    assert all(each._file.closed for each in made)


@pytest.mark.parametrize("added", [True, False])
def test_rows_that_are_added_or_gone_while_people_are_drawn_are_noticed(
    added: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Samples were planned for the people who were counted first."""
    _, large = both(many(), 60, ROLES)
    pieces = Trunk.pieces

    def changed(own: Trunk, branches: Any, *, other: bool) -> Iterator[jali.Table]:
        found = [*pieces(own, branches, other=other)]
        yield from [*found, found[0]] if added else found[1:]

    monkeypatch.setattr(Trunk, "pieces", changed)
    with pytest.raises(InputError, match="the table changed while it was read"):
        jali.partition(large, jali.EntropyDiversity(1.5), transparent=True)
    with pytest.raises(InputError, match="the table changed while it was read"):
        jali.partition(large, jali.EntropyDiversity(1.5), mode="relaxed")


def test_a_disk_without_room_is_said_before_people_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """In one line."""
    monkeypatch.setattr("jali.core.files.shutil.disk_usage", lambda place: SimpleNamespace(free=10))
    _, large = both(many(), 60, ROLES)
    how: Any
    for how in ({"transparent": True}, {"mode": "relaxed"}):
        with pytest.raises(InputError, match="not enough room"):
            jali.partition(large, jali.EntropyDiversity(1.5), **how)


# -- files that are read here ---------------------------------------------------------------------------------------


@examples(2)
@given(
    st.lists(PEOPLE, min_size=8, max_size=40), st.integers(14, 24), st.sampled_from(["keep", "drop"]),
    st.sampled_from([{}, {"other": ["ward"]}]), st.booleans(),
)  # fmt: skip
def test_a_csv_file_beyond_memory_is_the_table_that_is_held(
    rows: list[Any], room: int, missing: Any, other: Any, counted_first: bool
) -> None:
    """The same values, kinds, notes and numbers of rows, and the same release, whether rows were counted or not."""
    roles = ROLES | {"missing": missing} | other
    own = people([row if row[1] else (*row[:1], "7", *row[2:]) for row in rows])
    with tempfile.TemporaryDirectory() as folder, kernels_read(counted_first):
        path = Path(folder) / "people.csv"
        pacsv.write_csv(own, path)
        held = outcome(lambda: jali.read(path, **roles), own)  # type: ignore[arg-type]
        size = for_combinations(room, 4 + len(other))
        found = outcome(lambda: jali.read(path, **roles, memory=size), own)  # type: ignore[arg-type]
    if isinstance(held, str):
        assert found == held
        return
    many = len({tuple(row.values()) for row in held.frame("arrow").to_pylist()})
    assert isinstance(found, LargeTable) == (many > room)
    assert (found.rows, found.notes, found.incomplete) == (held.rows, held.notes, held.incomplete)
    assert str(found) == str(held)
    for one, two in zip(found.columns, held.columns, strict=True):
        assert (one.values.to_pylist(), one.kind, one.role) == (two.values.to_pylist(), two.kind, two.role)
        assert one.present.tolist() == two.present.tolist()
        if one.hierarchy is not None and two.hierarchy is not None:
            assert all(np.array_equal(a, b) for a, b in zip(one.hierarchy.maps, two.hierarchy.maps, strict=True))
    promise = jali.KAnonymity(2)
    expected, made = (outcome(lambda t=t: jali.generalize(t, promise), t) for t in (held, found))
    if isinstance(made, str) or isinstance(expected, str) or made is None:
        assert made in (expected, None)
    else:
        same_release(made, expected)


@contextmanager
def kernels_read(counted_first: bool) -> Iterator[None]:
    """Small files are read by kernels, which count rows from the first one on; or by Arrow, as ever."""
    if not counted_first:
        yield
        return
    with patch.object(files, "SMALL", 0), patch.object(files, "LARGE", 0), patch.object(distinct, "MANY", 2), \
            patch.object(distinct, "NEARLY", 2.0):  # fmt: skip
        yield


def test_what_cannot_be_bounded_is_held_or_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A column of more values than memory holds; weights and people; no DuckDB, with a note."""
    path, size = tmp_path / "people.csv", for_combinations(85, 4)
    numbered = people(many()).append_column("visit", pa.array(range(400)))
    pacsv.write_csv(numbered, path)
    with pytest.raises(InputError, match='column "visit" alone has more values than memory holds'):
        jali.read(path, **ROLES, other=["visit"], memory=size)
    for more in ({"weights": "ward"}, {"person": "ward"}):
        assert not isinstance(jali.read(path, **ROLES, **more, memory=size), LargeTable)
    assert isinstance(jali.read(path, **ROLES, memory=size), LargeTable)
    monkeypatch.setitem(sys.modules, "duckdb", None)
    held = jali.read(path, **ROLES, memory=size)
    assert not isinstance(held, LargeTable)
    assert "all rows are held, more than memory allows" in held.notes[-1]


# -- measures -------------------------------------------------------------------------------------------------------

WAYS: dict[str, Callable[[Any], Any]] = {
    "lattice": lambda t: jali.generalize(t, jali.KAnonymity(3), suppress=0.3),
    "lattice, sets": lambda t: jali.generalize(t, jali.KAnonymity(3), show="set-exact"),
    "partition": lambda t: jali.partition(t, jali.KAnonymity(2), show="taxonomy"),
    "partition, pdf": lambda t: jali.partition(t, jali.KAnonymity(2), show="pdf"),
    "halves": lambda t: jali.partition(t, jali.DistinctDiversity(2), transparent=True),
    "recode": lambda t: jali.recode(t, jali.KAnonymity(3), suppress=0.2),
    "anatomy": lambda t: jali.anatomize(t, jali.FrequencyDiversity(2)),
    "angel": lambda t: jali.angelize(t, jali.FrequencyDiversity(2), k=3, batches="anatomy", buckets="partition",
                                     transparent=True),
    "marginals": lambda t: jali.marginals(t, [jali.KAnonymity(3)]),
}  # fmt: skip


def close(found: Any, expected: Any) -> bool:
    """Whole numbers and words are the same, other numbers nearly."""
    if isinstance(expected, dict):
        return found.keys() == expected.keys() and all(close(found[key], expected[key]) for key in expected)
    return bool(
        found == (pytest.approx(expected, rel=1e-9, abs=1e-9, nan_ok=True) if isinstance(expected, float) else expected)
    )


@examples(3)
@given(
    st.lists(PEOPLE, min_size=2, max_size=40), st.integers(14, 24), st.sampled_from([*WAYS]),
    st.sampled_from([{"sensitive": ["disease"]}, {"sensitive": ["disease", "ward"]}, {"sensitive": ["disease"],
                     "other": ["ward"]}, {"sensitive": []}]), st.sampled_from([None, "present", "declared"]),
)  # fmt: skip
def test_figures_beyond_memory_are_those_in_memory(
    rows: list[Any], room: int, way: str, roles: Any, domain: Any
) -> None:  # fmt: skip
    """Of a release that was loaded, whatever made it; and of one that was made of the table beyond memory."""
    held, large = both(rows, room, {"quasi": ROLES["quasi"]} | roles)
    options: Any = {"domain": domain, "queries": 9, "volume": 0.4}
    made = outcome(lambda: WAYS[way](held), held)
    if isinstance(made, str):
        return
    with tempfile.TemporaryDirectory() as folder:
        loaded = jali.load(made.save(Path(folder) / "out"))
    expected = jali.measure(loaded, held, **options).to_dict()
    assert close(jali.measure(loaded, large, **options).to_dict(), expected)
    own = outcome(lambda: WAYS[way](large), large) if isinstance(large, LargeTable) else None
    if own is None or isinstance(own, str) or way == "anatomy":
        return
    with tempfile.TemporaryDirectory() as folder:
        again = jali.measure(jali.load(own.save(Path(folder) / "out")), held, **options).to_dict()
    assert close(jali.measure(own, large, **options).to_dict(), again)


def test_figures_of_boxes_that_overlap_are_those_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where so many boxes hold a value that they are sets of bits; a piece need not have every value of a column."""
    held, large = both(many(), 60, ROLES)
    made = jali.partition(held, jali.DistinctDiversity(2), transparent=True, show="interval")
    release, figures = jali.load(made.save(tmp_path / "out")), jali.measure(made, held).to_dict()
    monkeypatch.setattr(cells, "FEW", 0)
    for table in (held, large):
        assert close(jali.measure(release, table).to_dict(), figures | {"kl_cost": None, "log_match": None})


def test_pieces_of_a_table_have_each_cell_once() -> None:
    """All of them together are the table, and none has more cells than memory holds."""
    held, large = both(many(), 60, ROLES | {"other": ["ward"]})
    assert isinstance(large, LargeTable)
    pieces = [piece.frame("arrow").to_pylist() for piece in large.pieces()]
    assert len(pieces) > 3
    assert all(len({tuple(row.values()) for row in piece}) <= 70 for piece in pieces)
    names = ["age", "zip", "sex", "disease"]
    every = Counter(tuple(row[name] for name in names) for piece in pieces for row in piece)
    assert every == Counter(tuple(row[name] for name in names) for row in held.frame("arrow").to_pylist())
    assert all(sum(cell in {tuple(r[n] for n in names) for r in piece} for piece in pieces) == 1 for cell in every)


def test_figures_that_need_every_row_are_refused_beyond_memory(tmp_path: Path) -> None:
    """Rules and classes; buckets whose individuals are not held, until they are loaded; another table."""
    held, large = both(many(), 100, ROLES)
    release = jali.generalize(held, jali.KAnonymity(4))
    for asked in ({"rules": True}, {"classify": "disease"}):
        with pytest.raises(InputError, match="measure with rules or classify needs every distinct combination at once"):
            jali.measure(release, large, **asked)  # type: ignore[arg-type]
    _, other = both([(last[0], *row[1:]) for row, last in zip(many(), many()[::-1], strict=True)], 60, ROLES)
    exact = jali.generalize(held, jali.KAnonymity(1), levels={"age": 0, "zip": 0, "sex": 0})
    with pytest.raises(InputError, match="does not cover every row"):
        jali.measure(exact, other)
    dealt = jali.anatomize(large, jali.FrequencyDiversity(2))
    with pytest.raises(InputError, match="more than memory holds; save it"):
        jali.measure(dealt, large)
    loaded = jali.load(dealt.save(tmp_path / "out"))
    assert jali.measure(loaded, large).kl == pytest.approx(dealt.manifest.metrics["kl"], abs=1e-9)


@pytest.mark.parametrize("transparent", first_often(["prefer", False]))
def test_points_of_a_frontier_beyond_memory_are_those_in_memory(transparent: Any) -> None:
    """Of every method that works there and draws nothing at random; each of the others says why not, in one line."""
    held, large = both(many(200), 100, ROLES)
    asked: Any = {"strengths": [], "queries": 9, "transparent": transparent}
    promises = [jali.KAnonymity(6), jali.FrequencyDiversity(2)]
    expected, found = ({p.name: p for p in jali.frontier(t, promises, **asked).points} for t in (held, large))
    for name in ("lattice:6", "partition:6", "pdf:6"):
        figures = [vars(each[name]) | {"seconds": 0, "reaches": {}} for each in (found, expected)]
        assert close(*figures)
        assert dict(found[name].reaches) == pytest.approx(expected[name].reaches)
    drawn = [found["anatomy:6:transparent"]] + ([found["partition:6:transparent"]] if transparent else [])
    assert all(point.kl is not None and point.reason is None for point in drawn)
    assert drawn[0].undefined == "an estimate needs all individuals, which are more than memory holds"
    assert found["angel:6"].kl is not None
    for method in ("recode", "marginals"):
        reason = found[f"{method}:6"].reason
        assert reason is not None
        assert "needs every distinct combination at once" in reason
        assert "\n" not in reason


@pytest.mark.slow
def test_a_frontier_beyond_memory_goes_on_with_any_memory(tmp_path: Path) -> None:
    """The file to resume from knows the table by its rows, and refuses one that differs in who has what."""
    asked: Any = {"strengths": [], "queries": 5, "methods": ["lattice"], "resume": tmp_path / "private.json"}
    large = {room: both(many(), room, ROLES)[1] for room in (60, 110)}
    first, again, more = (jali.frontier(large[room], jali.KAnonymity(6), **asked) for room in (60, 60, 110))
    assert first.points == again.points  # with the seconds of the first
    assert "more combinations than memory holds" in str(first.points[0].reason)
    assert more.points[0].reason is None
    _, other = both([(last[0], *row[1:]) for row, last in zip(many(), many()[::-1], strict=True)], 60, ROLES)
    with pytest.raises(InputError, match="about another table"):
        jali.frontier(other, jali.KAnonymity(6), **asked)
    held, _ = both(many(), 60, ROLES)
    same_release(more.release(large[110]), jali.generalize(held, jali.KAnonymity(6)))


def test_what_needs_every_combination_says_so_in_one_line() -> None:
    """It names what to change; nothing of the table is in it."""
    held, large = both(many(), 60, ROLES)
    k, e = jali.KAnonymity(4), jali.EntropyDiversity(1.5)
    refused: list[Callable[[Any], Any]] = [
        lambda t: jali.recode(t, k), lambda t: jali.angelize(t, e, k=4, batches="curve"),
        lambda t: jali.angelize(t, e, k=4, buckets="recode", transparent=True),
        lambda t: jali.angelize(t, jali.Safety(0.9, 1), k=4, batches="partition"),
        lambda t: jali.angelize(t, e, k=4, marginals=[["age", "disease"]], joint_k=True),
        lambda t: jali.angelize(held, e, k=4).extend(t, [["age", "disease"]]),
        lambda t: jali.anatomize(t, e, buckets="partition", mode="relaxed"),
        lambda t: jali.anatomize(t, jali.Safety(0.9, 1), buckets="partition"),
        lambda t: jali.marginals(t, [k, e]),
        lambda t: jali.partition(t, k, suppress=0.1),
        lambda t: jali.partition(t, [jali.Safety(0.9, 1), k]), lambda t: t.frame(), lambda t: t.sample(0.5, seed=1),
        lambda t: t.frequencies, lambda t: jali.measure(jali.generalize(held, k), t, rules=True),
        jali.audit, jali.profile, lambda t: jali.attacks(jali.generalize(held, k), t),
        lambda t: jali.beliefs(jali.generalize(held, k), t), lambda t: jali.conceal(t, held, low=0, high=1),
        lambda t: jali.conceal(held, t, low=0, high=1),
    ]  # fmt: skip
    for ask in refused:
        with pytest.raises(InputError, match=r'memory = "11.*KB".*give more memory') as caught:
            ask(large)
        assert "\n" not in str(caught.value)
        assert not any(word in str(caught.value) for word in ("13050", "flu", "gout"))
    for copied in (pickle.dumps, copy.deepcopy):
        with pytest.raises(InputError, match="a table beyond memory stays in its process; read it again"):
            copied(large)
