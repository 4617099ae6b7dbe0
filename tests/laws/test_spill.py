"""Releases whose rows are not held: they are written in a random order that is drawn on disk, and judged from there."""

from __future__ import annotations

import datetime
import pickle
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from fractions import Fraction
from itertools import permutations, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jali
from jali.core import rows as counting
from jali.core import spill
from jali.core.files import SPILLED
from jali.core.spill import Portion, Portioned, drawn_on_disk
from jali.encoding.large import BYTES, EACH, LargeTable
from jali.errors import InputError
from oracles import rows as oracle
from oracles.often import examples, first_often

# -- the order ------------------------------------------------------------------------------------------------------


def quiet(done: int, total: int) -> None:
    """Nobody looks."""


def in_portions(portions: list[tuple[list[int], list[int]]], most: int) -> Portioned:
    """A table of one column, whose rows come in these portions of codes and numbers."""

    def again() -> Iterator[Portion]:
        return (Portion([np.array(codes)], np.array(numbers)) for codes, numbers in portions)

    rows = sum(sum(numbers) for _, numbers in portions)
    return Portioned({"c": pa.array(list("abcd"))}, rows, {}, again, most)


class Every:
    """A generator whose draws are all possible ones in turn: of buckets, and of an order for each bucket."""

    def __init__(self, buckets: list[int], orders: Iterator[int]) -> None:
        self.buckets, self.orders, self.chance = iter(buckets), orders, Fraction(1)

    def integers(self, high: int, size: int) -> Any:
        """As numpy's."""
        self.chance /= high**size
        return np.array([next(self.buckets) for _ in range(size)], dtype=np.int64)

    def shuffle(self, part: Any) -> None:
        """As numpy's."""
        orders = list(permutations(part.tolist()))
        self.chance /= len(orders)
        part[:] = orders[next(self.orders) % len(orders)]


@pytest.mark.parametrize(
    ("portions", "most"),
    [([([0, 1], [2, 1])], 2), ([([0], [1]), ([1], [2])], 1), ([([0, 1, 2], [1, 1, 1])], 2), ([([3], [1])], 1),
     ([([0, 1], [2, 2])], 2)],
)  # fmt: skip
def test_every_order_on_disk_is_exactly_as_likely_as_any_other(
    portions: list[tuple[list[int], list[int]]], most: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """All draws, enumerated: which bucket each row goes into, and how each bucket is shuffled."""
    monkeypatch.setattr(spill, "AT_ONCE", 2)
    table = in_portions(portions, most)
    seen: dict[tuple[str, ...], Fraction] = defaultdict(Fraction)
    for buckets in product(range(table.buckets), repeat=table.count):
        sizes = [buckets.count(bucket) for bucket in range(table.buckets) if bucket in buckets]
        for orders in product(*(range(len(list(permutations(range(size))))) for size in sizes)):
            random = Every(list(buckets), iter(orders))
            monkeypatch.setattr(counting, "fresh_random", lambda random=random: random)
            drawn = [cell for part in drawn_on_disk(table, tmp_path / "b", quiet) for cell in part["c"].to_pylist()]
            seen[tuple(drawn)] += random.chance
            assert not (tmp_path / "b").exists()
    totals: Counter[int] = Counter()
    for codes, numbers in portions:
        totals.update(dict(zip(codes, numbers, strict=True)))
    wanted = {tuple("abcd"[i] for i in order) for order in oracle.arrangements([totals[code] for code in range(4)])}
    assert dict(seen) == dict.fromkeys(wanted, Fraction(1, len(wanted)))


@given(
    st.lists(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 9)), max_size=5), min_size=1, max_size=4).filter(any),
    st.integers(1, 12), st.integers(1, 7),
)  # fmt: skip
def test_rows_on_disk_are_those_that_came(portions: list[Any], most: int, at_once: int) -> None:
    """However portions, pieces and buckets fall; a table that has changed meanwhile is noticed."""
    given_rows = [([code for code, _ in each], [number for _, number in each]) for each in portions]
    table = in_portions(given_rows, most)
    wanted: Counter[str] = Counter()
    for codes, numbers in given_rows:
        for code, number in zip(codes, numbers, strict=True):
            wanted["abcd"[code]] += number
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(spill, "AT_ONCE", at_once)
        heard: list[tuple[int, int]] = []
        parts = list(drawn_on_disk(table, Path(folder) / "b", lambda *step: heard.append(step)))
        assert Counter(cell for part in parts for cell in part["c"].to_pylist()) == wanted
        assert heard[-1] == (2 * table.count, 2 * table.count)
        assert heard == sorted(heard)
        changed = Portioned(table.shown, table.count + 1, {}, table.portions, most)
        with pytest.raises(InputError, match="changed while it was read"):
            list(drawn_on_disk(changed, Path(folder) / "b", quiet))


# -- tables beyond memory -------------------------------------------------------------------------------------------

ROLES: Any = {
    "quasi": {"age": jali.bands(2, 6), "zip": jali.mask(), "sex": jali.suppress()}, "sensitive": ["ill"],
    "other": ["day", "note"],
}  # fmt: skip
DAYS = st.dates(datetime.date(2020, 1, 1), datetime.date(2020, 1, 9))
PEOPLE = st.tuples(
    st.none() | st.integers(20, 30), st.sampled_from(["13050", "13051", "14850", "9"]),
    st.none() | st.sampled_from("ab"), st.sampled_from(["flu", "cold", None]), st.none() | DAYS,
    st.sampled_from(["", "=1+1", 'a"b', "x\ny", "ä", None]),
)  # fmt: skip
NAMES = ("age", "zip", "sex", "ill", "day", "note")
TYPES = (pa.int64(), pa.string(), pa.string(), pa.string(), pa.date32(), pa.string())


def arrow(rows: list[Any]) -> pa.Table:
    """Rows as a table."""
    columns = zip(NAMES, TYPES, strict=True)
    return pa.table({name: pa.array([row[at] for row in rows], of) for at, (name, of) in enumerate(columns)})


def both(table: pa.Table, room: int, roles: Any = ROLES) -> tuple[jali.Table, jali.Table]:
    """The same rows as a table in memory, and as one of which so many combinations may be held."""
    frame = pl.from_arrow(table).lazy()
    columns = sum(len(names) for names in roles.values())
    return jali.table(frame, **roles), jali.table(frame, **roles, memory=room * (BYTES + EACH * columns))


def many(number: int = 300) -> pa.Table:
    """Rows that are nearly all different."""
    random = np.random.default_rng(11)
    day = np.datetime64("2020-01-01") + random.integers(0, 50, number)
    return pa.table({
        "age": random.integers(20, 36, number), "zip": random.choice(["13050", "13051", "13120", "14850", "9"], number),
        "sex": random.choice(list("abc"), number), "ill": random.choice(["flu", "cold", "gout"], number),
        "day": pa.array(day.astype("datetime64[D]")), "note": [f"note {n}" for n in random.integers(0, 40, number)],
    })  # fmt: skip


def shown(release: Any) -> Counter[str]:
    """The rows of a release."""
    return Counter(map(str, release.frame("arrow").to_pylist()))


def outcome(work: Any) -> Any:
    """What a function gives; a text where it cannot be done, None where memory does not suffice for it."""
    try:
        return work()
    except jali.InfeasibleError as problem:
        return str(problem)
    except InputError as problem:
        return None if "memory" in problem.what else str(problem)


def same_files(found: Any, expected: Any, folder: Path, form: Any, **how: Any) -> None:
    """What is saved of one release is what another one shows, and the manifests say the same."""
    saved = jali.load(found.save(folder / "out", format=form, overwrite=True, **how))
    assert shown(saved) == shown(expected)
    assert [path.name for path in folder.iterdir()] == ["out"]
    one, other = saved.manifest, jali.load(expected.save(folder / "out", overwrite=True, **how)).manifest
    assert (one.counts, one.method, one.notes, one.principles) == (
        other.counts,
        other.method,
        other.notes,
        other.principles,
    )
    assert one.metrics == pytest.approx(other.metrics, abs=1e-9)
    assert saved.columns_facts() == found.columns_facts()
    assert [c.name for c in found.columns] == [c.name for c in expected.columns]


PROMISES = [[jali.KAnonymity(2)], [jali.KAnonymity(4)], [jali.KAnonymity(2), jali.DistinctDiversity(2)]]


@given(
    st.lists(PEOPLE, min_size=8, max_size=40), st.integers(9, 25), st.sampled_from(PROMISES),
    st.sampled_from([0.0, 0.2]), st.tuples(st.sampled_from(["csv", "parquet"]), st.booleans()),
)  # fmt: skip
def test_a_node_with_columns_that_are_not_held_is_written_as_in_memory(
    rows: list[Any], room: int, promises: Any, suppress: float, written_as: tuple[Any, bool]
) -> None:
    """The same rows and figures, whichever columns are as they are; and the same audit."""
    held, large = both(arrow(rows), room)
    expected, found = (
        outcome(lambda table=table: jali.generalize(table, promises, suppress=suppress)) for table in (held, large)
    )
    if isinstance(found, str) or isinstance(expected, str) or found is None:
        assert found in (expected, None)
        return
    with tempfile.TemporaryDirectory() as folder:
        same_files(found, expected, Path(folder), written_as[0], spreadsheet_safe=written_as[1])
    assert found.formula_columns() == expected.formula_columns()
    assert jali.audit(found).to_dict() == jali.audit(expected).to_dict()
    assert str(found.estimate().frame(["ill"])) == str(expected.estimate().frame(["ill"]))


@pytest.mark.parametrize("form", first_often(["csv", "parquet"]))
@pytest.mark.parametrize(("room", "suppress"), [(75, 0.0), (110, 0.05)])
def test_rows_beyond_the_budget_are_spilled(
    room: int, suppress: float, form: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nowhere are there more of them at once than the budget allows; large files are in several parts as ever."""
    held, large = both(many(), room)
    assert isinstance(large, LargeTable)
    promises = [jali.KAnonymity(8), jali.EntropyDiversity(1.5)]
    found, expected = (jali.generalize(table, promises, suppress=suppress) for table in (large, held))
    table = found.counted_tables["data"]
    assert isinstance(table, Portioned)
    assert table.buckets == -(-300 // room)
    assert max(len(portion.numbers) for portion in table.portions()) <= room
    assert len(list(table.portions())) > 1
    monkeypatch.setattr("jali.releases.written.PART", 128)
    same_files(found, expected, tmp_path, form)
    if form == "parquet":
        out = found.save(tmp_path / "parts", format="parquet")
        assert [pq.read_metadata(out / f"data-{at}.parquet").num_rows for at in (1, 2, 3)] == [128, 128, 44]


def test_the_order_of_the_original_leaves_no_trace_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same rows in another order are the same files, byte by byte, when the generator draws the same."""
    monkeypatch.setattr(counting, "fresh_random", lambda: np.random.default_rng(3))
    rows = many()
    written = []
    for at in range(2):
        moved = rows.take(pa.array(np.random.default_rng(at).permutation(rows.num_rows)))
        release = jali.generalize(both(moved, 75)[1], jali.KAnonymity(8), suppress=0.05)
        out = release.save(tmp_path / str(at))
        written.append([(path.name, path.read_bytes()) for path in sorted(out.iterdir())])
    assert written[0] == written[1]


def test_what_needs_all_rows_says_so_in_one_line(tmp_path: Path) -> None:
    """Nothing is left behind; groups, counts, promises and estimates of what is held are as ever."""
    held, large = both(many(), 75)
    found, expected = (jali.generalize(table, jali.KAnonymity(8)) for table in (large, held))
    for ask in (found.frame, lambda: found.tables, lambda: found.write(tmp_path / "a.duckdb?table=t")):
        with pytest.raises(InputError, match="more than memory holds; save it into a folder"):
            ask()
    with pytest.raises(InputError, match="stays in its process"):
        pickle.dumps(found)
    assert list(tmp_path.iterdir()) == []
    found.verify()
    assert found.groups.equals(expected.groups)
    assert found.individuals.num_rows == found.rows == 300
    assert "first rows" in found._repr_html_()
    assert "300" in jali.report(found).html


# -- failures -------------------------------------------------------------------------------------------------------


def test_a_failure_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither buckets nor half a file; nobody else could look into the folder meanwhile."""
    release = jali.generalize(both(many(), 75)[1], jali.KAnonymity(8))
    modes = []

    def fail(*arguments: Any) -> Any:
        (building,) = tmp_path.glob(".out.jali-new")
        modes.append((building.stat().st_mode & 0o777, sorted(path.name for path in building.iterdir())))
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(spill, "_put", fail)
    with pytest.raises(InputError, match=r"cannot write to .*No space left on device"):
        release.save(tmp_path / "out")
    assert modes == [(0o700, ["new", SPILLED])]
    assert list(tmp_path.iterdir()) == []


def test_there_must_be_room_for_buckets_and_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is looked at before anything is asked or written."""
    release = jali.generalize(both(many(), 75)[1], jali.KAnonymity(8))
    table = release.counted_tables["data"]
    assert isinstance(table, Portioned)
    out = release.save(tmp_path / "out")
    assert table.bytes >= (out / "data.csv").stat().st_size + 300 * table.kind.itemsize
    monkeypatch.setattr("jali.core.files.shutil.disk_usage", lambda place: _Free(10_000))
    monkeypatch.setattr(spill, "_put", None)
    with pytest.raises(InputError, match="not enough room"):
        release.save(tmp_path / "other")


class _Free(NamedTuple):
    free: int


KILLED = """
import os, sys
from pathlib import Path
sys.path[:0] = [{tests!r}, {laws!r}]
from test_spill import both, many
import jali
from jali.core import spill
put, calls = spill._put, []
def die(*arguments):
    put(*arguments)
    calls.append(1)
    if len(calls) == 3:
        os._exit(9)
spill._put = die
jali.generalize(both(many(), 75)[1], jali.KAnonymity(8)).save("out")
"""


@pytest.mark.slow
def test_what_a_killed_process_leaves_is_removed_by_the_next_save(tmp_path: Path) -> None:
    """Its buckets lie in the hidden folder of the release."""
    here = Path(__file__).resolve().parent
    code = KILLED.format(tests=str(here.parent), laws=str(here))
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 9, done.stderr
    assert any((tmp_path / ".out.jali-new" / SPILLED).iterdir())
    jali.generalize(both(many(), 75)[1], jali.KAnonymity(8)).save(tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


# -- partitions -----------------------------------------------------------------------------------------------------


@given(
    st.lists(PEOPLE, min_size=8, max_size=50), st.integers(9, 30), st.sampled_from(PROMISES),
    st.sampled_from([None, "set", "taxonomy", "interval"]), st.sampled_from(["csv", "parquet"]),
)  # fmt: skip
def test_a_partition_with_columns_that_are_not_held_is_written_as_in_memory(
    rows: list[Any], room: int, promises: Any, show: Any, form: Any
) -> None:
    """The same groups, rows and figures, and the same audit, groups that show the same included."""
    held, large = both(arrow(rows), room)
    expected, found = (
        outcome(lambda table=table: jali.partition(table, promises, show=show)) for table in (held, large)
    )
    if isinstance(found, str) or isinstance(expected, str) or found is None:
        assert found in (expected, None)
        return
    with tempfile.TemporaryDirectory() as folder:
        same_files(found, expected, Path(folder), form)
    assert jali.audit(found).to_dict() == jali.audit(expected).to_dict()


@pytest.mark.parametrize("room", first_often([75, 110]))
def test_rows_of_a_partition_beyond_the_budget_are_spilled(room: int, tmp_path: Path) -> None:
    """Portions fit; where distinct published rows fit, they are held as ever."""
    held, large = both(many(), room)
    promises = [jali.KAnonymity(4), jali.EntropyDiversity(1.5)]
    found, expected = (jali.partition(table, promises) for table in (large, held))
    table = found.counted_tables["data"]
    assert isinstance(table, Portioned)
    assert max(len(portion.numbers) for portion in table.portions()) <= room
    same_files(found, expected, tmp_path, "parquet")
    few = many().set_column(4, "day", pa.nulls(300, pa.date32())).set_column(5, "note", pa.array(["a"] * 300))
    held, large = both(few, room)
    assert isinstance(large, LargeTable)
    assert shown(jali.partition(large, promises)) == shown(jali.partition(held, promises))


# -- anatomy --------------------------------------------------------------------------------------------------------


def signatures(release: Any) -> Counter[str]:
    """How often buckets hold the values that people are dealt by, whichever numbers they have, and how many people."""
    held: dict[int, Counter[str]] = defaultdict(Counter)
    for row in release.tables["buckets"].to_pylist():
        held[row["bucket"]][str(row["ill"])] += row["count"]
    sizes = Counter(release.tables["individuals"]["bucket"].to_pylist())
    return Counter(f"{sizes[number]} {sorted(own.items())}" for number, own in held.items())


@examples(2)
@given(
    st.lists(PEOPLE, min_size=8, max_size=40), st.integers(9, 25), st.integers(2, 3),
    st.sampled_from([("csv", ["ill"]), ("parquet", ["ill"]), ("csv", ["ill", "sex"])]),
    st.fixed_dictionaries({"transparent": st.booleans(),
                           "generalized": st.sampled_from([False, False, {"age": 1}, {"age": 2, "zip": 1}])}),
)  # fmt: skip
def test_buckets_beyond_memory_are_those_that_memory_deals(
    rows: list[Any], room: int, l: int, read_as: Any, options: Any
) -> None:
    """The same individuals and the same buckets, who is in which being random; the cost is that of what was written."""
    form, sensitive = read_as
    quasi = {name: own for name, own in ROLES["quasi"].items() if name not in sensitive}
    held, large = both(arrow(rows), room, {**ROLES, "quasi": quasi, "sensitive": sensitive})
    promise = jali.FrequencyDiversity(l, sensitive="ill")
    expected, found = (
        outcome(lambda table=table: jali.anatomize(table, promise, **options)) for table in (held, large)
    )
    if isinstance(found, str) or isinstance(expected, str) or found is None:
        assert found in (expected, None)
        return
    with tempfile.TemporaryDirectory() as folder:
        saved = jali.load(found.save(Path(folder) / "out", format=form))
        assert [path.name for path in Path(folder).iterdir()] == ["out"]
    one, other = (
        Counter(map(str, each.tables["individuals"].drop_columns("bucket").to_pylist())) for each in (saved, expected)
    )
    assert one == other
    assert signatures(saved) == signatures(expected)
    assert saved.manifest.counts == expected.manifest.counts
    assert (found.manifest.method, found.notes) == (expected.manifest.method, expected.notes)
    assert saved.columns_facts() == found.columns_facts() == expected.columns_facts()
    assert found.manifest.metrics["loss"] == expected.manifest.metrics["loss"]
    assert found.manifest.metrics["kl"] == pytest.approx(jali.measure(saved, held).kl, abs=1e-9)
    if len(sensitive) == 1:  # else which other values meet in a bucket is random
        assert jali.audit(found).to_dict() == jali.audit(expected).to_dict()


def met(release: Any) -> Counter[str]:
    """How often buckets hold the same individuals and the same values, whichever numbers they have."""
    held: dict[int, list[list[str]]] = defaultdict(lambda: [[], []])
    for at, name in enumerate(("individuals", "buckets")):
        for row in release.tables[name].to_pylist():
            held[row.pop("bucket")][at].append(str(row))
    return Counter(str([sorted(own) for own in both]) for both in held.values())


GROUPED: list[dict[str, Any]] = [
    {"buckets": "partition"}, {"buckets": "partition", "split": "entropy"}, {"buckets": "partition", "split": "kl"},
    {"buckets": {"age": 2, "zip": 1, "sex": 1}}, {"buckets": {"age": 3, "zip": 1}},
]  # fmt: skip


def same_buckets(held: Any, large: Any, promise: Any, options: Any) -> bool:
    """Buckets that follow quasi-identifiers are the same beyond memory; no where one line says what to change."""
    expected, found = (
        outcome(lambda table=table: jali.anatomize(table, promise, **options)) for table in (held, large)
    )
    if isinstance(found, str) or isinstance(expected, str) or found is None:
        assert found in (expected, None)
        return False
    with tempfile.TemporaryDirectory() as folder:
        saved = jali.load(found.save(Path(folder) / "out"))
    assert met(saved) == met(expected)
    assert (saved.manifest.counts, saved.manifest.method) == (expected.manifest.counts, expected.manifest.method)
    assert (found.notes, saved.columns_facts()) == (expected.notes, expected.columns_facts())
    assert found.manifest.metrics == pytest.approx(expected.manifest.metrics, abs=1e-9)
    assert jali.audit(found).to_dict() == jali.audit(expected).to_dict()
    return True


@given(
    st.lists(PEOPLE, min_size=8, max_size=40), st.integers(9, 25), st.sampled_from(GROUPED),
    st.sampled_from([jali.DistinctDiversity(2), jali.EntropyDiversity(1.5), jali.TCloseness(0.5)]),
)  # fmt: skip
def test_buckets_of_groups_beyond_memory_are_those_of_memory(
    rows: list[Any], room: int, options: Any, promise: Any
) -> None:
    """The same people meet the same values in each bucket of a partition or a lattice node, at the same cost."""
    same_buckets(*both(arrow(rows), room), promise, options)


@pytest.mark.parametrize("options", first_often(GROUPED))
def test_a_small_budget_forms_buckets_of_groups(options: Any) -> None:
    """The table does not fit, and people who share their quasi-identifiers may be too many to be counted together."""
    rows = many()
    for table in (rows, rows.set_column(0, "age", pa.array([20] * 300)).set_column(1, "zip", pa.array(["9"] * 300))):
        held, large = both(table, 75)
        assert isinstance(large, LargeTable)
        assert same_buckets(held, large, jali.DistinctDiversity(2), options)


def test_everybody_of_a_value_is_as_likely_to_get_each_of_its_seats(monkeypatch: pytest.MonkeyPatch) -> None:
    """All draws of four people with two values, enumerated: each way to deal them is exactly as likely."""
    table = pa.table({"a": [0, 0, 1, 1], "b": [0, 1, 0, 1], "ill": ["flu", "flu", "cold", "cold"]})
    roles: Any = {"quasi": ["a", "b"], "sensitive": ["ill"]}
    large = jali.table(pl.from_arrow(table).lazy(), **roles, memory=3 * (BYTES + 3 * EACH))
    assert isinstance(large, LargeTable)
    seen: Counter[Any] = Counter()
    for orders in product(*[list(permutations(range(2)))] * 5):
        left = iter(orders)

        def drawn(rows: int, left: Any = left) -> Any:
            return np.array(next(left)[:rows])

        for place in ("anatomize", "portions"):
            monkeypatch.setattr(f"jali.publish.{place}.fresh_order", drawn)
        written = jali.anatomize(large, jali.FrequencyDiversity(2)).counted_tables["individuals"]
        assert isinstance(written, Portioned)
        codes = [np.concatenate(each) for each in zip(*(portion.codes for portion in written.portions()), strict=True)]
        seen[tuple(sorted(zip(*(own.tolist() for own in codes), strict=True)))] += 1
        assert next(left, None) is None
    assert len(seen) == 4
    assert set(seen.values()) == {8}


@pytest.mark.parametrize(("room", "generalized"), [(75, False), (110, False), (75, {"age": 2, "zip": 1})])
def test_individuals_beyond_the_budget_are_spilled(room: int, generalized: Any, tmp_path: Path) -> None:
    """What needs them all says so; people who share their quasi-identifiers beyond the budget are counted together."""
    rows = many()
    rows = rows.select(rows.column_names[::-1])  # columns that are published as they are come first
    age, zips = rows.column_names.index("age"), rows.column_names.index("zip")
    alike = rows.set_column(age, "age", pa.array([20] * 300)).set_column(zips, "zip", pa.array(["9"] * 300))
    for table in (rows, alike):
        held, large = both(table, room)
        assert isinstance(large, LargeTable)
        promise = jali.FrequencyDiversity(2)
        found, expected = (jali.anatomize(each, promise, generalized=generalized) for each in (large, held))
        saved = jali.load(found.save(tmp_path / "out", overwrite=True))
        assert signatures(saved) == signatures(expected)
        assert found.manifest.metrics["kl"] == pytest.approx(jali.measure(saved, held).kl, abs=1e-9)
        assert jali.audit(found).to_dict() == jali.audit(expected).to_dict()
        asked = ("frame", "permuted", "estimate", "group_of_rows", "individuals")
        for name in asked:
            with pytest.raises(InputError, match=r"more than memory holds; save it into a folder"):
                getattr(found, name)()
    more: list[Any] = [{"buckets": "partition", "mode": "relaxed"}, {"buckets": {"age": 2}, "generalized": True}]
    for options in more:
        with pytest.raises(InputError, match=r"needs every distinct combination.*give more memory"):
            jali.anatomize(large, promise, **options)
