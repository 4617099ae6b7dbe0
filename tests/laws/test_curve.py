"""Laws of the Hilbert curve and of the batches cut from it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jali
from jali.encoding.table import Table
from jali.principles.base import Principle, hold
from jali.principles.counts import Counts
from jali.search.batches import along_curve, batches_along, hilbert
from jali.search.items import columns_of
from oracles.curve import halved
from oracles.often import examples


@pytest.mark.parametrize(("dimensions", "bits"), [(1, 4), (2, 1), (2, 4), (3, 3), (4, 2), (5, 2), (7, 1)])
def test_the_curve_visits_every_point_once_and_always_steps_to_a_neighbour(dimensions: int, bits: int) -> None:
    """Consecutive points differ by one in one coordinate, and no point is left out."""
    grid = np.stack(np.meshgrid(*[np.arange(2**bits)] * dimensions, indexing="ij"), -1).reshape(-1, dimensions)
    place = hilbert(grid, bits)
    assert sorted(place) == list(range(len(grid)))
    assert (np.abs(np.diff(grid[np.argsort(place)], axis=0)).sum(axis=1) == 1).all()


def people(rows: list[tuple[int, str, str]]) -> Table:
    """A table of a number, a text and a sensitive value."""
    age, town, disease = zip(*rows, strict=True)
    frame = pa.table({"age": age, "town": town, "disease": disease})
    return jali.table(frame, quasi={"age": jali.bands(5), "town": jali.suppress()}, sensitive=["disease"])


def in_order(table: Table, turns: np.ndarray) -> list[int]:
    """Records by their place on the curve, combinations of one place by number, records of one by their turns."""
    columns, combination = columns_of(table), table.frequencies.row_combination
    point = (columns.place.T.astype(np.int64) << 20) // columns.size
    place = hilbert(point, 20)
    return sorted(range(table.records), key=lambda r: (place[combination[r]], combination[r], turns[r]))


tables = st.lists(
    st.tuples(st.integers(0, 9), st.sampled_from("xyz"), st.sampled_from("abcd")), min_size=1, max_size=40
).map(people)
promises = st.sampled_from(
    [
        [jali.KAnonymity(3)],
        [jali.DistinctDiversity(2)],
        [jali.FrequencyDiversity(2)],
        [jali.EntropyDiversity(1.8)],
        [jali.RecursiveDiversity(2, 2)],
        [jali.TCloseness(0.25)],
        [jali.KAnonymity(2), jali.TCloseness(0.4)],
    ]
)


@examples(4)
@given(table=tables, principles=promises)
def test_batches_are_the_line_halved_while_both_halves_hold(table: Table, principles: list[Principle]) -> None:
    """The same pieces as cutting one piece at a time, each judged by the definitions; every record is in one."""
    try:
        turns = np.random.default_rng(table.rows).permutation(table.records)
        found = batches_along(table, principles, turns)
    except (jali.InfeasibleError, jali.InputError):  # the whole table fails, or has fewer people than k
        return
    line = along_curve(table, turns).tolist()
    assert line == in_order(table, turns)
    disease, whole = table["disease"].codes, table.frequencies.counts(np.zeros(table.frequencies.combinations, int), 1)

    def holds(piece: list[int]) -> bool:
        value, n = np.unique(disease[piece], return_counts=True)
        joint = np.array([int(np.flatnonzero(whole.joint[:, 0] == v)[0]) for v in value])
        one = Counts(1, np.zeros_like(joint), joint, n, whole.sensitive, whole.joint, None, whole)
        return bool(hold(principles, one).all())

    expected = halved(line, holds)
    pieces = [[record for record in line if found.batch[record] == number] for number in range(found.batches)]
    assert pieces == [list(piece) for piece in expected]


@given(table=tables, seed=st.integers(0, 99))
def test_the_order_of_rows_is_no_matter(table: Table, seed: int) -> None:
    """The batches of a shuffled table hold the same people by combination and value, if their turns are the same."""
    random = np.random.default_rng(seed)
    order, turns = random.permutation(table.rows), random.permutation(table.rows)
    both = ((table, turns), (table.take(order, None), turns[order]))
    wanted, found = (_contents(one, batches_along(one, [jali.KAnonymity(1)], own).batch) for one, own in both)
    assert wanted == found


@given(table=tables, seed=st.integers(0, 99))
def test_who_comes_first_on_the_line_depends_on_nobodys_sensitive_value(table: Table, seed: int) -> None:
    """With other values the same records stand in the same places: the line tells whoever can draw it nothing."""
    random = np.random.default_rng(seed)
    turns = random.permutation(table.rows)
    rows = list(zip(*(column.values.take(pa.array(column.codes)).to_pylist() for column in table.columns), strict=True))
    other = people([(age, town, str(random.choice(list("abcd")))) for age, town, _ in rows])
    assert along_curve(table, turns).tolist() == along_curve(other, turns).tolist()


def _contents(table: Table, batch: np.ndarray) -> list[list[tuple[int, ...]]]:
    rows = np.stack([column.codes for column in table.columns], axis=1).tolist()
    return [sorted(tuple(rows[i]) for i in np.flatnonzero(batch == b)) for b in range(int(batch.max()) + 1)]
