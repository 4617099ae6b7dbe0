"""Laws of the workloads of random questions, and of the errors they find."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import jali
from jali.encoding.table import Table
from jali.estimates.base import Count
from jali.measures.queries import Workload, true_count, workload
from jali.query.tree import And, Condition, Test
from oracles.often import examples


def people(rows: list[tuple[int | None, str, str]]) -> Table:
    """A table of a number, a text and a sensitive value."""
    age, town, disease = zip(*rows, strict=True)
    frame = pa.table({"age": pa.array(age, pa.int64()), "town": town, "disease": disease})
    quasi = {"age": jali.bands(5, low=0, high=9), "town": jali.suppress()}
    return jali.table(frame, quasi=quasi, sensitive=["disease"])


tables = st.lists(
    st.tuples(st.integers(0, 9), st.sampled_from("xyz"), st.sampled_from("abcd")), min_size=1, max_size=40
).map(people)


def satisfies(row: dict[str, object], condition: Condition) -> bool:
    """Whether a row satisfies a condition of a workload, word by word."""
    if isinstance(condition, And):
        return all(satisfies(row, part) for part in condition.parts)
    assert isinstance(condition, Test)
    value = row[condition.column]
    if condition.op == "in":
        return value in condition.value
    return value >= condition.value if condition.op == ">=" else value <= condition.value


@examples(2)
@given(table=tables, volume=st.floats(0.01, 1), seed=st.integers(0, 99))
def test_the_truth_is_the_number_of_rows_that_satisfy_the_question(table: Table, volume: float, seed: int) -> None:
    """Counted row by row."""
    found = workload(table, 10, volume=volume, seed=seed)
    rows = table.frame("arrow").to_pylist()
    wanted = [sum(satisfies(row, condition) for row in rows) for condition in found.conditions]
    assert found.truth.tolist() == wanted


@given(
    rows=st.lists(st.tuples(st.none() | st.integers(0, 9), st.sampled_from("xyz"), st.sampled_from("abcd")),
                  min_size=1, max_size=20),
    low=st.integers(0, 9), town=st.sampled_from("xyz"),
)  # fmt: skip
def test_a_true_count_is_that_of_the_rows_whatever_the_condition(
    rows: list[tuple[int | None, str, str]], low: int, town: str
) -> None:
    """AND, OR, NOT, a missing value, everybody and nobody, counted row by row; NOT is true where its part is false."""
    table = people(rows)
    above = [age is not None and age >= low for age, _, _ in rows]
    there = [where == town for _, where, _ in rows]
    wanted = {
        f"age >= {low} AND town = '{town}'": [a and b for a, b in zip(above, there, strict=True)],
        f"NOT (age >= {low}) OR town = '{town}'": [not a or b for a, b in zip(above, there, strict=True)],
        "age IS NULL": [age is None for age, _, _ in rows],
        "TRUE": [True for _ in rows],
        "FALSE": [False for _ in rows],
    }
    assert {text: true_count(table, text) for text in wanted} == {text: sum(own) for text, own in wanted.items()}


@given(table=tables, volume=st.floats(0.01, 1), seed=st.integers(0, 99))
def test_a_question_asks_for_so_many_values_of_every_column(table: Table, volume: float, seed: int) -> None:
    """⌈n · s^(1/d)⌉ of them; neighbours where they are numbers."""
    for question in workload(table, 5, volume=volume, seed=seed).conditions:
        assert isinstance(question, And)
        (low, high), *sets = [getattr(part, "parts", part) for part in question.parts]
        domains = {"age": 10, "town": len(table["town"].values), "disease": len(table["disease"].values)}
        many = {name: math.ceil(n * volume ** (1 / 3) - 1e-9) for name, n in domains.items()}
        assert high.value - low.value + 1 == many["age"]
        assert [len(test.value) for test in sets] == [many["town"], many["disease"]]


@given(table=tables)
def test_a_table_published_as_it_is_answers_without_error(table: Table) -> None:
    """And whatever the estimate, a question that nobody satisfies is counted apart."""
    assume(table.people > 1)
    exact = jali.generalize(table, [jali.KAnonymity(1)], levels={})
    errors = workload(table, 20, volume=0.2).errors(exact.estimate())
    assert errors.empty_average == 0
    assert errors.empty == 20 or (errors.average == pytest.approx(0, abs=1e-12) and errors.median < 1e-12)


def test_the_error_is_relative_to_the_truth() -> None:
    """|12 − 10| / 10 and |9 − 4| / 4, their mean and their median; 3 for nobody is counted apart."""

    class Guess:
        answers = iter([12.0, 9.0, 3.0])

        def count(self, condition: Condition) -> Count:
            return Count(next(self.answers))

    asked = Workload((And(()),) * 3, np.array([10.0, 4.0, 0.0]), 0.05)
    errors = asked.errors(Guess())  # type: ignore[arg-type]  # only asked for counts
    assert (errors.average, errors.median) == pytest.approx((0.725, 0.725))
    assert (errors.empty, errors.empty_average) == (1, 3.0)


def test_the_same_seed_asks_the_same_questions() -> None:
    """And another seed asks others."""
    table = jali.datasets.census(rows=500)
    first, again, other = (workload(table, 20, seed=seed).conditions for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_missing_values_are_not_asked_for() -> None:
    """They satisfy no question."""
    table = people([(None, "x", "a"), (3, "y", "b")])
    found = workload(table, 5, volume=1)
    assert found.truth.tolist() == [1.0] * 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"queries": 0}, "queries must be a whole number of at least 1"),
        ({"volume": 0}, "volume must be above 0"),
        ({"volume": 1.5}, "volume must be above 0"),
        ({"volume": "much"}, "volume must be a number"),
        ({"columns": ["agge"]}, 'no column "agge"'),
    ],
)
def test_a_workload_that_makes_no_sense_is_refused(options: dict[str, object], message: str) -> None:
    """One clear line."""
    with pytest.raises(jali.InputError, match=message):
        workload(people([(1, "x", "a")]), **options)
