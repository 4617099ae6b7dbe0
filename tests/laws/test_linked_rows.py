"""Laws of buckets and batches that are held as distinct rows: dealt from counts, priced in parts, in one order."""

from __future__ import annotations

import pickle
from collections import Counter
from fractions import Fraction
from itertools import permutations
from math import factorial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jali
from jali.core import arrays, rows
from jali.core.arrays import SumsByKey, narrowed, run_lengths
from jali.releases.column import holder_cover
from jali.releases.linked.linked import broken_by, counts_of, pairs_of
from jali.search.batches import deal, dealt_out, row_of, seated_row


def people(seed: int = 0, many: int = 90, **more: Any) -> jali.Table:
    """Some people; a third of the columns' values are frequent."""
    random = np.random.default_rng(seed)
    data = {
        "age": pa.array(random.integers(20, 26, many)),
        "zip": pa.array(random.choice(["a", "b", "c"], many)),
        "ill": pa.array(random.permutation(np.resize(["flu", "cold", "gout", "ok", "cough"], many))),
        "w": pa.array(random.integers(1, 4, many).astype(float)),
    }
    return jali.table(pa.table(data), quasi=["age", "zip"], sensitive=["ill"], **more)


# -- dealt from counts ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("people_of", [[2, 1, 1], [1, 1, 2, 1], [3], [2, 2]])
def test_a_row_from_counts_is_that_of_everybody_listed_and_shuffled(people_of: list[int]) -> None:
    """Over all orders that can be drawn, each arrangement of the copies is exactly as likely."""
    value = np.array([0, 1, 0, 1][: len(people_of)])
    numbers = np.array(people_of)
    line = np.array([1, 0]) if len(people_of) > 1 else np.array([0])
    block = [int(numbers[value == v].sum()) for v in line.tolist()]
    found: Counter[tuple[int, ...]] = Counter()
    for one in permutations(range(block[0])):
        for other in permutations(range(block[1] if len(block) > 1 else 0)):
            drawn = iter([np.array(one), np.array(other, dtype=np.int64)])
            found[tuple(seated_row(value, numbers, line, lambda _, d=drawn: next(d)).tolist())] += 1
    listed = [[i for i in np.flatnonzero(value == v).tolist() for _ in range(numbers[i])] for v in line.tolist()]
    expected: Counter[tuple[int, ...]] = Counter()
    for one in permutations(listed[0]):
        for other in permutations(listed[1] if len(listed) > 1 else []):
            expected[*one, *other] += 1
    assert found == expected
    assert found.total() == factorial(block[0]) * (factorial(block[1]) if len(block) > 1 else 1)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=12), st.data())
def test_the_values_of_the_buckets_are_those_of_dealing_everybody(values: list[int], data: Any) -> None:
    """Which values meet follows from how many people have each, whether they are listed or counted."""
    value = np.array(values)
    frequency = np.bincount(value)
    l = data.draw(st.integers(1, int(frequency.sum() // frequency.max())))
    listed = deal(value, l, np.arange(len(value)))
    line, buckets = row_of(frequency, l)
    held = np.flatnonzero(frequency)
    row = seated_row(held, frequency[held], line, np.arange)
    counted = [Counter[int]() for _ in range(buckets)]
    for place, member in enumerate(row.tolist()):
        counted[place % buckets][int(held[member])] += 1
    assert counted == [Counter(value[listed == bucket].tolist()) for bucket in range(buckets)]


def test_the_holder_finds_every_row_in_a_bucket_with_its_value() -> None:
    """`assignment` comes from counts too: each bucket has just the values of the rows that went there."""
    table = people()
    for release in (
        jali.anatomize(table, jali.FrequencyDiversity(3)),
        jali.anatomize(table, jali.DistinctDiversity(2), buckets="partition", mode="relaxed"),
        jali.anatomize(table, jali.DistinctDiversity(2), buckets="partition"),
    ):
        bucket = release.assignment(table)
        ill = table.frame("arrow")["ill"].to_pylist()
        own = Counter(zip((bucket + 1).tolist(), ill, strict=True))
        entries = release.tables["buckets"].to_pylist()
        assert own == {(row["bucket"], row["ill"]): row["count"] for row in entries}
        with pytest.raises(jali.InputError):
            pickle.loads(pickle.dumps(release)).assignment(table)


@pytest.mark.parametrize("batches", ["halves", "anatomy"])
def test_batches_of_counted_rows_hold_the_rows_that_went_there(batches: Any, tmp_path: Path) -> None:
    """A table that is counted is seated from its counts; rows, marginals, files and the private file still fit."""
    table = people(many=300).merged(None)[0]
    assert table.multiplicity is not None
    assert table.records < table.rows
    promise = jali.FrequencyDiversity(3)
    how: Any = {"k": 4, "transparent": True, "batches": batches, "marginals": [["age", "ill"], ["zip"]]}
    release = jali.angelize(table, promise, **how)
    batch = release.assignment(table)
    own = Counter(zip((batch + 1).tolist(), table.frame("arrow")["ill"].to_pylist(), strict=True))
    assert own == {(row["batch"], row["ill"]): row["count"] for row in release.batches.to_pylist()}
    loaded: Any = jali.load(release.save(tmp_path / "out", format="parquet", private=tmp_path / "keys.parquet"))
    more: Any = loaded.extend(table, [["zip", "ill"]], tmp_path / "keys.parquet", joint_k=False)
    assert len(more.contents.tables) == len(release.contents.tables) + 1
    assert jali.measure(release, table).kl >= 0
    listed = jali.angelize(table.one_by_one(), promise, **how)
    assert sorted(listed.contents.tables[0].sizes.tolist()) == sorted(release.contents.tables[0].sizes.tolist())
    assert sorted(listed.contents.tables[2].sizes.tolist()) == sorted(release.contents.tables[2].sizes.tolist())


# -- one order ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["buckets", "angel"])
def test_frame_individuals_and_files_have_one_order(kind: str, tmp_path: Path) -> None:
    """It is drawn when first asked for, and kept; a loaded release has the order of its files."""
    table = people()
    release: Any = jali.anatomize(table, jali.FrequencyDiversity(3))
    if kind == "angel":
        release = jali.angelize(table, jali.FrequencyDiversity(3), k=4)
    first = release.frame("arrow")
    number = "bucket" if kind == "buckets" else "batch"
    assert first.select(["age", "zip"]).equals(release.individuals)
    assert (np.asarray(release.group_of_rows) + 1).tolist() == first[number].to_pylist()
    for form in ("csv", "parquet"):
        loaded = jali.load(release.save(tmp_path / form, format=form))
        again = loaded.frame("arrow")
        assert [list(map(str, row.values())) for row in again.to_pylist()] == [
            list(map(str, row.values())) for row in first.to_pylist()
        ]
        assert np.array_equal(loaded.group_of_rows, release.group_of_rows)
    assert release.frame("arrow").equals(first)


def test_the_order_of_the_original_is_not_in_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same rows in another order, the same draws of the generator: byte by byte the same individuals."""
    made = []
    for step in (1, -1):
        frame = people().frame("arrow").take(pa.array(np.arange(90)[::step]))
        table = jali.table(frame, quasi=["age", "zip"], sensitive=["ill"])
        monkeypatch.setattr("jali.publish.anatomize.fresh_order", np.arange)
        monkeypatch.setattr(rows, "fresh_random", lambda: np.random.default_rng(7))
        release = jali.anatomize(table, jali.FrequencyDiversity(3))
        made.append((release.save(tmp_path / str(step)) / "individuals.csv").read_bytes())
    assert made[0] == made[1]


# -- priced and judged in parts -------------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", [None, "w"])
def test_masses_are_those_of_the_estimate(weights: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one part or in many, with and without weights."""
    table = people(3, weights=weights)
    release = jali.anatomize(table, jali.FrequencyDiversity(3), generalized={"age": 1})
    cells = table.frame("arrow").select(["age", "zip", "ill"])
    cover = {name: holder_cover(release[name], table[name], table.domain) for name in ("age", "zip")}
    expected = release.inferred(lambda column: cover[column.name]).probability(cells)
    for at_once in (arrays.AT_ONCE, 16):
        monkeypatch.setattr(arrays, "AT_ONCE", at_once)
        found = release.mass(lambda column: cover[column.name]).probability(cells)
        assert np.allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("principle", [jali.FrequencyDiversity(4), jali.TCloseness(0.3), jali.EntropyDiversity(3)])
def test_promises_are_judged_in_parts_as_in_one(principle: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those that compare a bucket with the whole table."""
    held = jali.anatomize(people(5), jali.FrequencyDiversity(3)).contents
    given = (held.hidden, held.entry_bucket, held.people)
    monkeypatch.setattr("jali.releases.linked.linked.AT_ONCE", 8)
    expected = [] if bool(principle.holds(counts_of(*given)).all()) else [principle]
    assert broken_by((principle,), *given) == expected


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3)), min_size=1, max_size=40), st.integers(1, 6),
    st.booleans(),
)  # fmt: skip
def test_pairs_found_some_links_at_a_time_are_those_found_at_once(
    given_rows: list[tuple[int, int]], at_once: int, in_turn: bool
) -> None:
    """Records that come sorted by link are counted in parts, others as one; members stand for their cells."""
    link, cell = np.array(sorted(given_rows, key=lambda row: row[0]) if in_turn else given_rows).T
    member = np.arange(len(link))[::-1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("jali.releases.linked.linked.AT_ONCE", at_once)
        pairs = pairs_of(cell[::-1], 4, link, member=member, given=True)
    rows_of = list(zip(link.tolist(), cell.tolist(), strict=True))
    expected = Counter(rows_of)
    found = list(zip(pairs.link.tolist(), pairs.cell.tolist(), strict=True))
    assert found == sorted(expected)
    assert pairs.numbers.tolist() == [expected[row] for row in found]
    assert [found[at] for at in pairs.order.of.tolist()] == rows_of


def test_a_pair_that_occurs_very_often_is_counted_whatever_came_before() -> None:
    """Numbers are narrow as long as they are small."""
    link = np.repeat([0, 1], [3, 300])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("jali.releases.linked.linked.AT_ONCE", 2)
        pairs = pairs_of(np.zeros(303, dtype=np.int64), 1, link)
    assert pairs.numbers.tolist() == [3, 300]


@given(st.integers(1, 30), st.data())
def test_a_row_that_is_dealt_out_is_dealt_in_turn(people: int, data: Any) -> None:
    """Bucket by bucket: who stands at i goes to bucket i mod b, and bucket order[j] is published as j."""
    buckets = data.draw(st.integers(1, people))
    order = np.array(data.draw(st.permutations(range(buckets))))
    row = np.arange(100, 100 + people, dtype=np.int32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrays, "AT_ONCE", data.draw(st.integers(1, 9)))
        member, bucket = dealt_out(row, order)
    found = list(zip(bucket.each.tolist(), member.tolist(), strict=True))
    number = {int(one): j for j, one in enumerate(order)}
    assert found == sorted((number[i % buckets], 100 + i) for i in range(people))


@pytest.mark.parametrize("kind", ["buckets", "angel"])
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_an_order_that_was_let_go_of_is_drawn_again(
    kind: str, form: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Large orders are forgotten while files are judged; the frame still has the order of the files."""
    monkeypatch.setattr(rows, "RESTING", 10)
    made = []
    monkeypatch.setattr(rows, "drawn", lambda *given, draw=rows.drawn: made.append(1) or draw(*given))
    table = people()
    release: Any = jali.anatomize(table, jali.FrequencyDiversity(3))
    if kind == "angel":
        release = jali.angelize(table, jali.FrequencyDiversity(3), k=4)
    folder = release.save(tmp_path / "out", format=form)
    before = len(made)
    again = release.frame("arrow")
    assert len(made) > before
    loaded = jali.load(folder).frame("arrow")
    assert [list(map(str, r.values())) for r in loaded.to_pylist()] == [
        list(map(str, r.values())) for r in again.to_pylist()
    ]


# -- small tools ----------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=30), st.booleans())
def test_pairs_are_the_distinct_rows_with_their_numbers(given_rows: list[tuple[int, int]], numbered: bool) -> None:
    """Sorted by number, then cell; the order of given rows is found again."""
    link, cell = np.array(given_rows).T
    numbers = np.arange(1, len(link) + 1) if numbered else None
    pairs = pairs_of(cell, 4, link, numbers=numbers, given=not numbered)
    expected: Counter[tuple[int, int]] = Counter()
    for at, row in enumerate(given_rows):
        expected[row] += at + 1 if numbered else 1
    found = list(zip(pairs.link.tolist(), pairs.cell.tolist(), strict=True))
    assert found == sorted(expected)
    assert pairs.numbers.tolist() == [expected[row] for row in found]
    if not numbered:
        assert [found[at] for at in pairs.order.of.tolist()] == given_rows


@given(st.lists(st.integers(0, 6), min_size=1, max_size=40), st.sampled_from([0, 100]))
def test_sums_by_key_come_in_any_parts(keys: list[int], dense: int) -> None:
    """A table of all keys, or sums of those that occur."""
    sums = SumsByKey(7, dense=dense)
    for at in range(0, len(keys), 3):
        some = np.array(keys[at : at + 3])
        sums.add(some, np.full(len(some), 0.5))
    found, amount = sums.all()
    expected = Counter(keys)
    assert dict(zip(found.tolist(), amount.tolist(), strict=True)) == {
        key: float(Fraction(n, 2)) for key, n in sorted(expected.items())
    }


@given(st.lists(st.integers(0, 5), min_size=1, max_size=400))
def test_run_lengths_are_how_often_each_occurs(keys: list[int]) -> None:
    """In the order of the keys."""
    found, many = run_lengths(np.array(keys))
    assert dict(zip(found.tolist(), many.tolist(), strict=True)) == dict(sorted(Counter(keys).items()))


@pytest.mark.parametrize("most", [0, 255, 256, 65_535, 65_536, 2**31 - 1, 2**31])
def test_narrowed_numbers_are_the_same(most: int) -> None:
    """At the edges of each type."""
    numbers = np.array([0, most])
    assert narrowed(numbers).tolist() == numbers.tolist()
