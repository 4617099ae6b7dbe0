"""Laws of the invented census of fifty occupations: its domains, its skew, and what an occupation depends on."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import jali
from jali.encoding.table import Table

ROWS = 20_000


@pytest.fixture(scope="module")
def census() -> Table:
    return jali.datasets.occupations(ROWS)


def column(table: Table, name: str) -> list[Any]:
    found: list[Any] = table.frame("arrow")[name].to_pylist()
    return found


def test_the_domains_are_those_of_the_paper(census: Table) -> None:
    """Marital status 6, work class 10, education 17, gender 2, age 78, occupation 50; the last is sensitive."""
    sizes = {c.name: len(c.values) for c in census.columns}
    paper = {"marital-status": 6, "work-class": 10, "education": 17, "gender": 2, "age": 78, "occupation": 50}
    assert sizes == paper
    assert [c.name for c in census.sensitive] == ["occupation"]
    assert census.rows == ROWS


def test_values_are_skewed_as_such_columns_are(census: Table) -> None:
    """The most frequent value is much more so than the median one, and nearly every value occurs."""
    for name, least in (("marital-status", 5), ("work-class", 10), ("education", 2), ("occupation", 1.5)):
        counts = sorted(Counter(column(census, name)).values(), reverse=True)
        assert counts[0] >= least * counts[len(counts) // 2], name
    assert len(set(column(census, "occupation"))) == 50


def dependence(first: list[Any], second: list[Any]) -> float:
    """χ² of the contingency table over its degrees of freedom: about 1 where two columns are independent."""
    one, two = (np.unique(np.array(values, dtype=str), return_inverse=True)[1] for values in (first, second))
    table = np.zeros((one.max() + 1, two.max() + 1))
    np.add.at(table, (one, two), 1)
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0, keepdims=True) / table.sum()
    freedom = (table.shape[0] - 1) * (table.shape[1] - 1)
    return float(((table - expected) ** 2 / expected).sum() / freedom)


@pytest.mark.parametrize("name", ["education", "gender", "work-class"])
def test_occupation_depends_on_education_gender_and_work_class(census: Table, name: str) -> None:
    """And would not, were its values dealt out at random."""
    occupation = column(census, "occupation")
    dealt = np.random.default_rng(0).permutation(np.array(occupation, dtype=str)).tolist()
    assert dependence(column(census, name), occupation) > 4
    assert dependence(column(census, name), dealt) < 1.5


def test_the_same_seed_gives_the_same_people() -> None:
    """Whether it is a number or a generator; another seed gives others."""
    first = jali.datasets.occupations(500, 7).frame("arrow")
    assert first.equals(jali.datasets.occupations(500, np.random.default_rng(7)).frame("arrow"))
    assert not first.equals(jali.datasets.occupations(500, 8).frame("arrow"))


@pytest.mark.parametrize(("rows", "seed"), [(0, 0), (-5, 0), (2.5, 0), (True, 0), (10, -1), (10, "x")])
def test_bad_input_is_refused(rows: Any, seed: Any) -> None:
    with pytest.raises(jali.InputError):
        jali.datasets.occupations(rows, seed)
