"""Laws of reach: what a table keeps of a promise before anything is done, and how far one can go."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jali
from jali.risk.reach import presence, reach

people = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xyz")), min_size=1, max_size=12)


def table(rows: list[tuple[str, str]]) -> Any:
    frame = pa.table({"zip": [zip_ for zip_, _ in rows], "disease": [disease for _, disease in rows]})
    return jali.table(frame, quasi=["zip"], sensitive=["disease"])


def groups(rows: list[tuple[str, str]]) -> list[Counter[str]]:
    return [Counter(disease for zip_, disease in rows if zip_ == one) for one in {zip_ for zip_, _ in rows}]


@given(people, st.integers(1, 4))
def test_people_outside_are_those_of_groups_that_break_the_promise(rows: list[tuple[str, str]], bound: int) -> None:
    """Counted group by group, as one would by hand."""
    asked = [jali.KAnonymity(bound), jali.DistinctDiversity(bound), jali.FrequencyDiversity(bound)]
    k, distinct, frequency = reach(table(rows), asked)
    by_hand = groups(rows)
    assert k.outside == sum(n.total() for n in by_hand if n.total() < bound)
    assert distinct.outside == sum(n.total() for n in by_hand if len(n) < bound)
    assert frequency.outside == sum(n.total() for n in by_hand if max(n.values()) * bound > n.total())
    assert k.raw == min(n.total() for n in by_hand)
    assert distinct.raw == min(map(len, by_hand))


@given(people, st.integers(1, 9), st.integers(1, 9))
def test_what_stands_against_a_promise_is_a_proof(rows: list[tuple[str, str]], k: int, l: int) -> None:
    """The whole table as one group fails exactly where reach says so, and then every method refuses."""
    found = reach(table(rows), [jali.KAnonymity(k), jali.FrequencyDiversity(l)])
    whole = Counter(disease for _, disease in rows)
    assert bool(found[0].against) == (len(rows) < k)
    assert bool(found[1].against) == (Fraction(whole.total(), max(whole.values())) < l)
    assert found[0].most == len(rows)
    assert math.isclose(found[1].most, whole.total() / max(whole.values()))
    for one in found:
        if one.against:
            with pytest.raises((jali.InfeasibleError, jali.InputError)):
                jali.generalize(table(rows), [one.promise])


@given(people, st.lists(st.sampled_from("abc"), max_size=6), st.integers(0, 10), st.integers(0, 10))
def test_bounds_of_presence_can_be_kept_where_everybody_as_one_group_keeps_them(
    rows: list[tuple[str, str]], others: list[str], one: int, other: int
) -> None:
    """The share of the public people who are in the table is within the bounds; else conceal refuses too."""
    low, high = Fraction(min(one, other), 10), Fraction(max(one, other), 10)
    public = jali.table(pa.table({"zip": [zip_ for zip_, _ in rows] + others}), quasi=["zip"])
    found = presence(table(rows), public, low=float(low), high=float(high))
    assert (found.people, found.present) == (len(rows) + len(others), len(rows))
    assert bool(found.against) == (not low <= Fraction(found.present, found.people) <= high)
    if found.against:
        with pytest.raises((jali.InfeasibleError, jali.InputError)):
            jali.conceal(table(rows), public, low=float(low), high=float(high))


def test_a_row_that_the_population_does_not_have_is_refused() -> None:
    """It says which row, and no value of it."""
    public = jali.table(pa.table({"zip": ["a", "a"]}), quasi=["zip"])
    with pytest.raises(jali.InputError, match="row 2 of the private table is not in the public table"):
        presence(table([("a", "x"), ("b", "y")]), public, low=0, high=1)


def test_a_promise_about_no_column_has_no_figures() -> None:
    """One line says what is missing."""
    found = reach(table([("a", "x"), ("b", "y")]), [jali.DistinctDiversity(2, sensitive="blood")])[0]
    assert "blood" in found.against
    assert math.isnan(found.raw)
