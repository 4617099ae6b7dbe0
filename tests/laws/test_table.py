"""A table gives back the rows that came in, and its frequencies are those of a patient person with a pencil."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jali
from jali.core import arrays
from jali.core.arrays import combine
from jali.encoding.table import Table
from jali.errors import InputError
from oracles.encoding import people_by_combination, rows_by_combination

KINDS: dict[str, tuple[pa.DataType, Any]] = {
    "whole": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "float": (pa.float64(), st.floats(allow_nan=False, allow_infinity=False)),
    "decimal": (pa.decimal128(8, 2), st.decimals(-9999, 9999, places=2)),
    "text": (pa.string(), st.text(max_size=6)),
    "day": (pa.date32(), st.dates(dt.date(1, 1, 1), dt.date(9999, 12, 31))),
    "time": (pa.timestamp("us"), st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2200, 1, 1))),
    "truth": (pa.bool_(), st.booleans()),
}


def columns_of(kinds: dict[str, tuple[pa.DataType, Any]]) -> Any:
    """Tables with a column of each kind, some cells missing, values repeated."""
    cells = {name: st.one_of(st.none(), values) for name, (_, values) in kinds.items()}
    return st.lists(st.fixed_dictionaries(cells), min_size=1, max_size=12).flatmap(
        lambda rows: st.lists(st.sampled_from(rows), min_size=1, max_size=20)
    )


@given(columns_of(KINDS))
def test_a_table_gives_its_own_rows_back(rows: list[dict[str, Any]]) -> None:
    """Every kind of column, missing values and order included, in every kind of frame and in every role."""
    arrow = pa.table({n: pa.array([row[n] for row in rows], of) for n, (of, _) in KINDS.items()})
    want = arrow.to_pylist()
    builders = {name: jali.suppress() for name in KINDS}
    for role in ({"quasi": builders}, {"quasi": {"whole": None}, "sensitive": [n for n in KINDS if n != "whole"]}):
        table = jali.table(arrow, **role)
        assert table.frame().to_pylist() == want
        assert table.frame("polars").to_dicts() == want
        assert pa.Table.from_pandas(table.frame("pandas"), schema=arrow.schema, safe=False).to_pylist() == want
    assert jali.table(pl.from_arrow(arrow), quasi=builders).frame().to_dicts() == want
    for column in table.columns:
        assert len(set(column.labels.to_pylist())) == len(column.values), "values that read the same"


rows_of_people = st.lists(
    st.tuples(
        st.sampled_from([1, 2, 3, None]), st.sampled_from(["x", "y", None]), st.sampled_from(["flu", "cold", None]),
        st.sampled_from([True, False]), st.integers(0, 4), st.sampled_from([0.5, 1.0, 2.5]),
    ),
    min_size=1, max_size=30,
)  # fmt: skip


@given(rows_of_people, st.booleans(), st.booleans())
def test_frequencies_are_what_counting_gives(rows: list[Any], persons: bool, one_sensitive: bool) -> None:
    """Combinations, rows, people and weights, sorted by combination, joint value and person."""
    names = ["a", "b", "s", "t", "p", "w"]
    frame = pa.table({n: pa.array(list(column)) for n, column in zip(names, zip(*rows, strict=True), strict=True)})
    sensitive = ["s"] if one_sensitive else ["s", "t"]
    table = jali.table(frame, quasi=["b", "a"], sensitive=sensitive, person="p" if persons else None, weights="w")
    f = table.frequencies
    quasi = [tuple(int(table[n].codes[i]) for n in ("a", "b")) for i in range(len(rows))]
    values = [tuple(int(table[n].codes[i]) for n in sensitive) for i in range(len(rows))]
    assert [tuple(c) for c in f.codes.tolist()] == sorted(set(quasi))
    assert [tuple(j) for j in f.joint.tolist()] == sorted(set(values))
    keys = [
        (tuple(f.codes[c].tolist()), tuple(f.joint[j].tolist())) for c, j in zip(f.combination, f.value, strict=True)
    ]
    found: Counter[Any] = Counter()
    people: Counter[Any] = Counter()
    for key, n, who in zip(keys, f.rows, f.people, strict=True):
        found[key] += int(n)
        people[key] += int(who)
    assert found == rows_by_combination(quasi, values)
    if persons:
        assert people == people_by_combination(quasi, values, [row[4] for row in rows])
        assert table.people == len({row[4] for row in rows})
    else:
        assert people == found
    assert f.weight.sum() == sum(row[5] for row in rows)
    order = list(zip(f.combination, f.value, [0] * len(keys) if f.person is None else f.person, strict=True))
    assert order == sorted(order)
    assert f.codes[f.row_combination].tolist() == [list(q) for q in quasi]


@given(rows_of_people, st.booleans(), st.sampled_from([["a"], ["b"], ["a", "b"]]))
def test_frequencies_of_some_columns_follow_from_those_of_all(rows: list[Any], persons: bool, some: list[str]) -> None:
    """The same, field by field, as counting the rows again without the other columns."""
    names = ["a", "b", "s", "t", "p", "w"]
    frame = pa.table({n: pa.array(list(column)) for n, column in zip(names, zip(*rows, strict=True), strict=True)})
    table = jali.table(frame, quasi=["b", "a"], sensitive=["s", "t"], person="p" if persons else None, weights="w")
    again = replace(table, columns=tuple(c for c in table.columns if c.role != "quasi" or c.name in some))
    found, wanted = table.with_quasi(some).frequencies, again.frequencies
    for name in ("codes", "combination", "value", "people", "rows", "weight", "joint", "row_combination"):
        assert getattr(found, name).tolist() == getattr(wanted, name).tolist(), name
        assert getattr(found, name).dtype == getattr(wanted, name).dtype, name
    assert (found.person is None) == (wanted.person is None)
    assert found.person is None or found.person.tolist() == wanted.person.tolist()
    assert [column.name for column in table.with_quasi(some).columns] == [column.name for column in again.columns]


def test_one_row_each_means_that_people_are_rows() -> None:
    """A person column in which nobody has two rows changes nothing but what the table says of itself."""
    frame = pa.table({"x": [1, 1, 2], "p": ["a", "b", "c"]})
    once = jali.table(frame, quasi=["x"], person="p")
    assert (once.person, once.person_name, once.people) == (None, "p", 3)
    several = jali.table(pa.table({"x": [1, 1, 2], "p": ["a", "a", "c"]}), quasi=["x"], person="p")
    assert (several.rows, several.people) == (3, 2)
    assert several.frequencies.counts(np.array([0, 0])).size.tolist() == [2]
    assert "not published" in repr(several)
    counted = jali.table(pl.LazyFrame({"x": [1, 1], "p": ["a", "a"]}), quasi=["x"], person="p")
    assert (counted.rows, counted.people) == (2, 1)


codes = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5), st.integers(0, 2)), min_size=1, max_size=50)


@given(codes, st.sampled_from([1, 10**4, 2**40]))
def test_combine_numbers_rows_in_the_order_of_their_codes(rows: list[tuple[int, ...]], stretch: int) -> None:
    """By table, by hashing, and where the key space leaves 64 bits; with the first row of each number."""
    columns = [(np.array(c) * (stretch - 1 or 1), 6 * stretch) for c in zip(*rows, strict=True)]
    number, first = combine(columns, len(rows))
    distinct = sorted(set(rows))
    assert number.tolist() == [distinct.index(row) for row in rows]
    assert first.tolist() == [rows.index(row) for row in distinct]


@given(codes, st.integers(1, 80))
def test_combine_says_the_same_however_few_keys_fit_into_a_table(rows: list[tuple[int, ...]], tabled: int) -> None:
    """What occurs is numbered before the next column would outgrow the table, once or several times, or hashed."""
    columns = [(np.array(c), width) for c, width in zip(zip(*rows, strict=True), (4, 6, 3), strict=True)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrays, "_TABLED", tabled)
        number, first = combine(columns, len(rows))
    distinct = sorted(set(rows))
    assert number.tolist() == [distinct.index(row) for row in rows]
    assert first.tolist() == [rows.index(row) for row in distinct]


def test_combine_at_its_edges() -> None:
    """No column: all rows are alike. One row. A column with a single value."""
    assert [part.tolist() for part in combine([], 3)] == [[0, 0, 0], [0]]
    assert [part.tolist() for part in combine([(np.array([7]), 2**62)], 1)] == [[0], [0]]
    assert [part.tolist() for part in combine([(np.array([0, 0], np.uint8), 1)] * 80, 2)] == [[0, 0], [0]]


def test_5m_times_800_cells_do_not_overflow() -> None:
    """Codes are small integers; keys are not."""
    wide = [(np.array([250, 255, 250], np.uint8), 256)] * 12
    assert combine(wide, 3)[0].tolist() == [0, 1, 0]


def people_table(lazy: bool = False) -> Table:
    frame = pl.DataFrame({"x": [i % 7 for i in range(400)], "p": [i // 4 for i in range(400)]})
    return jali.table(frame.lazy() if lazy else frame, quasi=["x"], person="p")


@pytest.mark.parametrize("lazy", [False, True])
def test_a_sample_keeps_persons_whole(lazy: bool) -> None:
    """All of somebody's rows or none, also where an engine counted them."""
    table = people_table(lazy)
    sample = table.sample(0.5, seed=0)
    assert 20 < sample.people < 80
    assert sample.rows == 4 * sample.people


def test_samples_follow_their_seed_and_share() -> None:
    """A Bernoulli sample of rows, of counted rows, all of them with share 1."""
    frame = pl.DataFrame({"x": [i % 3 for i in range(10_000)]})
    for table in (jali.table(frame, quasi=["x"]), jali.table(frame.lazy(), quasi=["x"])):
        sample = table.sample(0.3, seed=1)
        assert 2700 < sample.rows < 3300
        assert sample.frame("arrow").equals(table.sample(0.3, seed=1).frame("arrow"))
        assert table.sample(1, seed=0).rows == 10_000
        for share in (0, -1, 1.5, float("nan")):
            with pytest.raises(InputError, match="the share of a sample"):
                table.sample(share, seed=0)
        with pytest.raises(InputError, match="the sample is empty"):
            table.sample(1e-12, seed=0)


def test_head_takes_rows_even_where_they_are_counted() -> None:
    """Not records."""
    frame = pl.DataFrame({"x": [1, 1, 1, 2, 2]})
    for table in (jali.table(frame, quasi=["x"]), jali.table(frame.lazy(), quasi=["x"])):
        assert table.head(4).frame("arrow")["x"].to_pylist() == [1, 1, 1, 2]
        assert table.head(99).rows == 5
        with pytest.raises(InputError, match="at least one row"):
            table.head(0)


@pytest.mark.parametrize("lazy", [False, True])
def test_dropping_missing_values_is_counted_and_leaves_no_trace(lazy: bool) -> None:
    """In any published column; the domain is then that of the rows that are left."""
    frame = pl.DataFrame(
        {"x": [1, None, 3, 3], "s": ["a", "b", None, "c"], "w": [1.0, 2.0, 3.0, 4.0], "p": [0, 1, 0, 0]}
    )
    table = jali.table(
        frame.lazy() if lazy else frame, quasi=["x"], sensitive=["s"], weights="w", person="p", missing="drop"
    )
    assert (table.incomplete, table.rows, table.people) == (2, 2, 1)
    assert table["x"].values.to_pylist() == [1, 3]
    assert table["s"].values.to_pylist() == ["a", "c"]
    assert table.frequencies.weight.tolist() == [1, 4]
    assert "2 rows with a missing value were dropped" in repr(table)
    assert jali.table(frame, quasi=["w"], missing="drop").incomplete == 0
    with pytest.raises(InputError, match="every row has a missing value"):
        jali.table(pa.table({"x": [1, None], "y": [None, 1]}), quasi=["x", "y"], missing="drop")


FRAME = pa.table({"age": [1, 2], "zip": ["a", "b"], "sick": ["x", "y"], "w": [1.0, -1.0], "z": [0, 0], "e": [None, 1]})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"quasi": []}, "no quasi-identifier was named; name what an attacker may know"),
        ({"quasi": "age"}, 'quasi must be a list of column names: got "age"; write quasi=["age"]'),
        ({"quasi": None}, "quasi must be a list of column names: got NoneType"),
        ({"quasi": ["aeg"]}, 'quasi: no column "aeg" in the table; did you mean "age"?'),
        ({"quasi": ["age", "age"]}, 'quasi names column "age" twice'),
        (
            {"quasi": ["age"], "sensitive": ["age"]},
            'column "age" is named as quasi and as sensitive; give each column one role',
        ),
        ({"quasi": ["age"], "sensitive": "sick"}, 'write sensitive=["sick"]'),
        ({"quasi": ["age"], "other": "zip"}, 'write other=["zip"]'),
        ({"quasi": ["age"], "person": "age"}, "is named as quasi and as person"),
        ({"quasi": ["age"], "person": ["zip"]}, "person must be the name of one column: got list"),
        ({"quasi": ["age"], "person": ""}, 'person: no column ""'),
        ({"quasi": ["age"], "person": "e"}, 'person column "e" is empty, row 1; give every row a person'),
        ({"quasi": ["age"], "weights": "w"}, 'weights column "w" is negative, row 2'),
        ({"quasi": ["age"], "weights": "e"}, 'weights column "e" is empty, row 1'),
        ({"quasi": ["age"], "weights": "z"}, 'weights column "z" sums to zero'),
        ({"quasi": ["age"], "weights": "sick"}, 'weights column "sick" must hold numbers'),
        ({"quasi": ["age"], "missing": "ignore"}, 'missing must be "keep" or "drop": got \'ignore\''),
        ({"quasi": ["age"], "domain": "all"}, 'domain must be "declared" or "present"'),
        ({"quasi": ["age"], "types": {"age": "date"}}, 'column "age" cannot be read as date'),
        ({"quasi": ["age"], "types": ["age"]}, "types must map columns to kinds"),
    ],
)
def test_wrong_roles_are_refused(options: Any, message: str) -> None:
    """In one line that names the column or the parameter and what to do."""
    with pytest.raises(InputError) as caught:
        jali.table(FRAME, **options)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_empty_table_is_refused() -> None:
    """Whatever it comes from."""
    for frame in (pa.table({"x": pa.array([], pa.int64())}), pd.DataFrame({"x": []}), pl.DataFrame({"x": []})):
        with pytest.raises(InputError, match="the table is empty"):
            jali.table(frame, quasi=["x"])


def test_columns_are_found_by_name() -> None:
    """Whatever the order in which roles name them; unknown ones are told with the nearest."""
    table = jali.table(FRAME, quasi={"zip": None, "age": None}, sensitive=["sick"])
    assert [column.name for column in table.quasi] == ["age", "zip"]
    with pytest.raises(InputError, match='did you mean "zip"'):
        table["zp"]
    with pytest.raises(InputError, match="has no hierarchy"):
        table.hierarchy("sick")
    with pytest.raises(InputError, match='no kind of frame "panda"'):
        table.frame("panda")


def test_a_banded_sensitive_column_is_judged_by_band_and_published_as_it_is() -> None:
    """Bands in their order; the missing value is one more."""
    table = jali.table(
        pa.table({"q": [0] * 5, "salary": [2500, 900, None, 1100, 999]}),
        quasi=["q"],
        sensitive={"salary": jali.bands(1000)},
    )
    judged, mapping = table["salary"].sensitive()
    assert judged.labels == ("[0, 999]", "[1000, 1999]", "[2000, 2999]", None)
    assert judged.ordered
    assert mapping.tolist() == [0, 0, 1, 2, 3]
    assert [level.tolist() for level in judged.tree] == [[0, 1, 2, 3], [0, 0, 0, 0]]
    counts = table.frequencies.counts(np.zeros(1, dtype=np.int64))
    assert counts.cells("salary").n.tolist() == [2, 1, 1, 1]
    assert table.frame("arrow")["salary"].to_pylist() == [2500, 900, None, 1100, 999]


def test_a_sensitive_taxonomy_gives_order_and_tree() -> None:
    """The order of its rows; words under suppress or without a hierarchy have none."""
    rows = [("mild", "low", "*"), ("grave", "high", "*"), ("cured", "low", "*")]
    frame = pa.table({"q": [0, 0], "s": ["cured", "mild"], "n": [2, 1]})
    judged, mapping = jali.table(frame, quasi=["q"], sensitive={"s": jali.taxonomy(rows)})["s"].sensitive()
    assert (judged.labels, judged.ordered) == (("mild", "grave", "cured"), True)
    assert [level.tolist() for level in judged.tree] == [[0, 1, 2], [0, 1, 0], [0, 0, 0]]
    assert mapping.tolist() == [0, 1, 2]
    for given_hierarchy, ordered in ((jali.suppress(), False), (None, False), (jali.mask(), False)):
        assert jali.table(frame, quasi=["q"], sensitive={"s": given_hierarchy})["s"].sensitive()[0].ordered is ordered
    assert jali.table(frame, quasi=["q"], sensitive=["n"])["n"].sensitive()[0].ordered


@given(st.lists(st.integers(-20, 20), min_size=1), st.sampled_from([3, 5]))
def test_judged_values_follow_the_tree(values: list[int], width: int) -> None:
    """Each code is judged as the band it lies in, in ascending order, and the tree is the rest of the hierarchy."""
    frame = pa.table({"q": [0] * len(values), "s": values})
    column = jali.table(frame, quasi=["q"], sensitive={"s": jali.bands(width, width * 4)})["s"]
    judged, mapping = column.sensitive()
    assert (np.diff(mapping) >= 0).all()
    h = column.hierarchy
    assert [judged.labels[m] for m in mapping] == h.levels[1].labels.take(pa.array(h.maps[1])).to_pylist()
    for level, nodes in enumerate(judged.tree[1:], start=2):
        assert nodes[mapping].tolist() == h.maps[level].tolist()


@pytest.mark.parametrize(("rows", "line"), [(1, "Table: 1 row, 1 person"), (2, "Table: 2 rows, 2 people")])
def test_one_row_is_one_person(rows: int, line: str) -> None:
    frame = pa.table({"age": [*range(rows), None]})
    shown = repr(jali.table(frame, quasi=["age"], missing="drop"))
    assert shown.startswith(f"{line}\n")
    assert shown.endswith("  1 row with a missing value was dropped")


def test_decimals_and_domains() -> None:
    """A decimal is a number; the domain is what was declared, or what occurs."""
    frame = pa.table({"x": pa.array([Decimal("1.10"), Decimal("2.20")])})
    assert jali.table(frame, quasi=["x"])["x"].labels.to_pylist() == ["1.10", "2.20"]
    column = jali.table(pa.table({"x": [1, 3]}), quasi={"x": jali.bands(2, low=0, high=4)})["x"]
    assert column.mask("declared").tolist() == [True] * 5
    assert column.mask("present").tolist() == [False, True, False, True, False]


@given(st.lists(st.integers(0, 60), min_size=1, max_size=12), st.sampled_from(["declared", "present"]))
def test_the_nodes_of_a_column_are_those_of_its_hierarchy(ages: list[int], domain: Any) -> None:
    """Level after level: which node has each value, a value of each node, and how many of the domain are under it."""
    levels = {"age": jali.bands(5, 20)}
    column = jali.table(pa.table({"age": ages}), quasi=levels, domain=domain)["age"]
    hierarchy, nodes = column.hierarchy, column.nodes
    assert hierarchy is not None
    assert nodes.maps.tolist() == [node for own in hierarchy.maps for node in own.tolist()]
    assert nodes.widths == tuple(len(level.texts()) for level in hierarchy.levels)
    examples = iter(nodes.examples.tolist())
    known = column.mask(domain).tolist()
    for own, width, under in zip(hierarchy.maps, nodes.widths, column.under(domain).sizes, strict=True):
        for node in range(width):
            assert own[next(examples)] == node
            assert under[node] == sum(held for code, held in enumerate(known) if own[code] == node)
    for sizes, logs in zip(*column.under(domain), strict=True):
        assert logs.tolist() == [np.log(max(size, 1.0)) for size in sizes.tolist()]


@pytest.mark.parametrize("index", [1, 2, 5, 127, -1])
def test_an_index_without_a_value_is_a_damaged_column(index: int) -> None:
    """As damaged Parquet files have them; Arrow does not look. One beyond the last was a missing value."""
    wrong = pa.DictionaryArray.from_arrays(pa.array([0, index, None], pa.int8()), pa.array(["a"]), safe=False)
    with pytest.raises(InputError, match='column "q" is damaged'):
        jali.table(pa.table({"q": wrong, "s": ["x", "y", "z"]}), quasi=["q"], sensitive=["s"])
