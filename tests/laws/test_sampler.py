"""Laws of the demo census: what its file may give away, and that the sampler reproduces what the file says."""

from __future__ import annotations

import csv
import dataclasses
import importlib.util
import itertools
import json
import math
import os
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from jali.datasets import columns
from jali.errors import InputError, InternalError

ROWS = 200_000
ROOT = Path(__file__).parents[2]
NET = columns.network()
needs_adult = pytest.mark.skipif("JALI_ADULT" not in os.environ, reason="JALI_ADULT does not name the Adult table")


@pytest.fixture(scope="module")
def drawn() -> dict[str, NDArray[np.uint8]]:
    return {column: codes for column, (_, codes) in columns.sample(ROWS, seed=20).items()}


def script() -> ModuleType:
    """The script that made the file; it is no part of the package."""
    spec = importlib.util.spec_from_file_location("census_frequencies", ROOT / "tools" / "census_frequencies.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SCRIPT = script()


def stored() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(columns.__file__).with_name("frequencies.json").read_text("utf-8"))
    return found


def mixed(column: str) -> NDArray[np.float64]:
    """The chance of each value (second axis) once rare values have replaced some of the value drawn (first axis)."""
    rare = NET.replacement(column)
    chances: NDArray[np.float64] = (1 - rare.sum()) * np.eye(len(rare)) + rare[None, :]
    return chances


def assert_within_chance(observed: NDArray[np.int64], chances: NDArray[np.float64]) -> None:
    """Each count lies within six standard errors and all together within six of chi-square; nothing impossible."""
    expected = chances * observed.sum()
    assert not observed[expected == 0].any()
    likely = expected >= 5
    assert (abs(observed - expected) <= 6 * np.sqrt(expected) + 6).all()
    squares = ((observed - expected)[likely] ** 2 / expected[likely]).sum()
    assert squares <= likely.sum() + 6 * math.sqrt(2 * likely.sum())


def pair_counts(a: NDArray[Any], b: NDArray[Any], shape: tuple[int, int]) -> NDArray[np.int64]:
    flat = np.ravel_multi_index((a.astype(np.intp), b.astype(np.intp)), shape)
    return np.bincount(flat, minlength=shape[0] * shape[1]).reshape(shape)


def test_a_seed_gives_the_same_table_and_another_seed_another() -> None:
    """The table is a function of rows and seed; a generator seeded alike gives it too."""
    first, again, other = (
        columns.sample(5000, 1),
        columns.sample(5000, np.random.default_rng(1)),
        columns.sample(5000, 2),
    )
    for column in columns.COLUMNS:
        assert np.array_equal(first[column][1], again[column][1])
        assert not np.array_equal(first[column][1], other[column][1])


@pytest.mark.parametrize("rows", [0, 1, columns.CHUNK, columns.CHUNK + 1])
def test_any_number_of_rows_is_drawn_in_the_smallest_type(rows: int) -> None:
    """Every column has as many codes as rows asked for, each a place in its domain, one byte each."""
    table = columns.sample(rows, seed=3)
    assert tuple(table) == columns.COLUMNS
    for domain, codes in table.values():
        assert codes.shape == (rows,)
        assert codes.dtype == np.uint8
        assert rows == 0 or codes.max() < len(domain)


def test_fewer_than_no_rows_are_refused() -> None:
    """The error says what was given and what to do."""
    with pytest.raises(InputError, match=r"rows=-1; give rows >= 0"):
        columns.sample(-1, seed=0)


def test_the_caller_may_change_what_it_gets() -> None:
    """The domains that are handed out are copies."""
    columns.sample(1, seed=0)["sex"][0].clear()
    assert columns.sample(1, seed=0)["sex"][0] == ["Male", "Female"]


@pytest.mark.parametrize("column", columns.QUASI)
def test_the_values_of_a_hierarchy_are_the_domain_of_its_column(column: str) -> None:
    """Each value of the domain is a leaf, in the same order, whether the sample holds it or not."""
    domain, _ = columns.sample(0, seed=0)[column]
    assert [row[0] for row in columns.rows(column)] == [str(value) for value in domain]
    assert all(isinstance(value, int if column == "age" else str) for value in domain)


@pytest.mark.parametrize("column", columns.QUASI)
def test_a_hierarchy_merges_and_never_splits(column: str) -> None:
    """Levels are equally many for each value, a label has one label above it, and the last is the root."""
    rows = columns.rows(column)
    assert len({len(row) for row in rows}) == 1
    assert {row[-1] for row in rows} == {columns.TOP}
    for level in range(len(rows[0]) - 1):
        above = {(row[level], row[level + 1]) for row in rows}
        assert len(above) == len({label for label, _ in above})


def test_the_hierarchies_span_2160_nodes() -> None:
    """The product of the numbers of levels is that of the lattice over all seven columns."""
    assert math.prod(len(columns.rows(column)[0]) for column in columns.QUASI) == 2160


def test_age_bands_start_at_multiples_of_their_width() -> None:
    """Ages fall into [0-4], [5-9], ... then into tens and twenties, as in the paper."""
    for age, *bands, _ in columns.rows("age"):
        for band, width in zip(bands, (5, 10, 20), strict=True):
            low, high = map(int, band.split("-"))
            assert low % width == 0
            assert high == low + width - 1
            assert low <= int(age) <= high


def test_a_misspelt_column_is_told_the_nearest_name() -> None:
    """An unknown column is an error that helps."""
    with pytest.raises(InputError, match='did you mean "education"'):
        columns.rows("eduction")


def test_no_count_in_the_file_is_under_five() -> None:
    """Neither a pair nor a rare value shows fewer than five people, and rare counts are round."""
    file = stored()
    assert min(n for table in file["pairs"] for row in table["cells"].values() for n in row.values()) >= 5
    rare = [n for row in file["rare"].values() for n in row.values()]
    assert min(rare) >= 5
    assert all(n % 5 == 0 for n in rare)


def test_rare_values_stand_in_no_pair_and_all_others_in_some() -> None:
    """A value has either a public round count or people in the tables, so one is never subtracted from the other."""
    for column, domain in NET.domains.items():
        rare = NET.rare.get(column, np.zeros(len(domain), dtype=np.int64))
        assert ((NET.single(column) > 0) ^ (rare > 0)).all()


def test_a_network_refuses_small_cells_and_tables_of_other_people() -> None:
    """The value checks itself: a small cell, a table that disagrees with another, a parent that comes too late."""
    edge = ("marital-status", "age")
    small, other = NET.pairs[edge].copy(), NET.pairs[edge].copy()
    small[tuple(np.argwhere(small)[0])] = 4
    other[tuple(np.argwhere(other)[0])] += 1
    with pytest.raises(InternalError, match="a cell under 5"):
        dataclasses.replace(NET, pairs={**NET.pairs, edge: small})
    with pytest.raises(InternalError, match="counts other people"):
        dataclasses.replace(NET, pairs={**NET.pairs, edge: other})
    with pytest.raises(InternalError, match="drawn before it"):
        dataclasses.replace(NET, parents=dict(reversed(NET.parents.items())))


@pytest.mark.parametrize("column", columns.COLUMNS)
def test_single_frequencies_are_reproduced(column: str, drawn: dict[str, NDArray[np.uint8]]) -> None:
    """Each value has its share of the published counts, a rare one its public count; every value can occur."""
    counts = NET.single(column) + NET.rare.get(column, np.int64(0))
    assert (counts > 0).all()
    assert_within_chance(np.bincount(drawn[column], minlength=len(counts)), counts / counts.sum())


@pytest.mark.parametrize("edge", NET.pairs, ids="-".join)
def test_pair_frequencies_of_the_edges_are_reproduced(
    edge: tuple[str, str], drawn: dict[str, NDArray[np.uint8]]
) -> None:
    """Each published pair table comes back, but for the rows in which a rare value replaced another."""
    a, b = edge
    n = NET.pairs[edge]
    chances = mixed(a).T @ (n / n.sum()) @ mixed(b)
    assert_within_chance(pair_counts(drawn[a], drawn[b], n.shape), chances)


def test_the_fitted_triangles_have_the_published_pairs() -> None:
    """The distribution of largest entropy has the three tables as its marginals, and no three-way interaction."""
    p, q, c = "marital-status", "education", "salary-class"
    n = columns.fit(NET.pairs[p, q], NET.pairs[p, c], NET.pairs[q, c])
    for axis, edge in ((2, (p, q)), (1, (p, c)), (0, (q, c))):
        assert np.allclose(n.sum(axis), NET.pairs[edge], atol=0.01)
    odds = np.log(n[np.ix_([0, 4, 5], [8, 9, 12])])  # well-filled values: log odds are additive
    contrast = odds[..., 0] - odds[..., 1]
    assert np.allclose(contrast - contrast[:1] - contrast[:, :1] + contrast[:1, :1], 0, atol=1e-9)


@given(arrays(np.bool_, (3, 3, 3)), st.tuples(*[st.integers(0, 2)] * 3))
def test_an_exchange_is_found_exactly_if_there_is_one(held: NDArray[np.bool_], cell: tuple[int, int, int]) -> None:
    """The script's answer whether a cell can be lowered agrees with trying every exchange."""
    i, j, k = cell
    tried = any(
        u != i and v != j and w != k and held[i, v, w] and held[u, j, w] and held[u, v, k]
        for u, v, w in itertools.product(range(3), repeat=3)
    )
    assert SCRIPT.can_be_lowered(held, i, j, k) == tried


@given(arrays(np.int64, (3, 3, 3), elements=st.integers(1, 4)))
def test_an_exchange_keeps_all_pairs(n: NDArray[np.int64]) -> None:
    """Four people fewer and four more, as the script describes, lower the cell and leave the three pair tables."""
    after = n.copy()
    for u, v, w in itertools.product((0, 1), repeat=3):
        after[u, v, w] += 1 if (u + v + w) % 2 else -1
    assert after[0, 0, 0] == n[0, 0, 0] - 1
    assert after.min() >= 0
    assert all(np.array_equal(after.sum(axis), n.sum(axis)) for axis in range(3))


@needs_adult
def test_the_file_is_what_the_script_makes_of_the_real_table() -> None:
    """Made again it is the same; and, counted independently, no pair shows more people than there are."""
    path = Path(os.environ["JALI_ADULT"])
    file = stored()
    assert SCRIPT.frequencies(path) == file
    with path.open(newline="", encoding="utf-8") as lines:
        people = list(csv.DictReader(lines))
    assert 0.97 * len(people) < file["people"] < len(people)
    for table in file["pairs"]:
        a, b = table["columns"]
        real = Counter((person[a], person[b]) for person in people)
        shown = {(x, y): n for x, row in table["cells"].items() for y, n in row.items()}
        assert all(5 <= n <= real[pair] for pair, n in shown.items())


@needs_adult
def test_the_sample_resembles_the_real_table() -> None:
    """In total variation every pair is within 0.1 of the real one and an edge of the network within 0.06."""
    domains, codes = SCRIPT.read(Path(os.environ["JALI_ADULT"]))
    table = {column: found for column, (_, found) in columns.sample(len(codes["age"]), seed=0).items()}
    for a, b in itertools.combinations(columns.COLUMNS, 2):
        shape = len(domains[a]), len(domains[b])
        real, ours = pair_counts(codes[a], codes[b], shape), pair_counts(table[a], table[b], shape)
        variation = abs(real / real.sum() - ours / ours.sum()).sum() / 2
        edge = (a, b) in NET.pairs or (b, a) in NET.pairs
        print(f"{a} × {b}: total variation {variation:.3f}{', an edge' if edge else ''}")
        assert variation < (0.06 if edge else 0.1)
