"""The costs of `core/arrays.py` against their definitions, and the rooms that use them against each other."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jali
from jali.core import arrays as costs
from oracles import costs as oracle
from oracles.often import seeds

shares = st.lists(st.floats(0, 1), min_size=1, max_size=6)


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=8))
def test_both_forms_of_kl_are_its_definition(cells: list[tuple[int, int]]) -> None:
    """From shares, and from weights where the table's own term is known; 0 where the two distributions are one."""
    people, other = [n for n, _ in cells], [m for _, m in cells]
    inferred = [Fraction(m, sum(other)) for m in other]
    n, own = np.array(people, dtype=np.float64), np.array([float(p) for p in inferred])
    share = n / n.sum()
    wanted = oracle.kl(people, inferred)
    assert costs.kl_of_shares(share, own) == pytest.approx(wanted, abs=1e-12)
    term = float(np.sum(share * np.log(share)))
    assert costs.kl_given(term, n, own, float(n.sum())) == pytest.approx(wanted, abs=1e-12)
    assert costs.kl_of_shares(share, share) == 0


@given(st.lists(st.integers(1, 9), min_size=1, max_size=8), st.integers(0, 5))
def test_sizes_of_groups_cost_what_their_rows_do(sizes: list[int], suppressed: int) -> None:
    """Discernibility and the average size, with suppressed rows and without."""
    rows = sum(sizes) + suppressed
    found = costs.discernibility(np.array(sizes, dtype=np.float64), suppressed, rows)
    assert found == oracle.discernibility(sizes, suppressed)
    groups = [*sizes, suppressed] if suppressed else sizes
    assert costs.average_size(rows, len(groups)) == pytest.approx(float(np.mean(groups)))


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 6)), min_size=1, max_size=6), st.integers(1, 6))
def test_the_share_of_values_covered_is_the_mean_over_rows(nodes: list[tuple[int, int]], values: int) -> None:
    """From nodes with the rows that show each: 0 where each covers one value, 1 where each covers all."""
    rows, covered = np.array([n for n, _ in nodes]), np.array([min(c, values) for _, c in nodes])
    each = [int(c) for n, c in zip(rows, covered, strict=True) for _ in range(n)]
    assert costs.covered_share(rows, covered, values) == pytest.approx(oracle.covered_share(each, values))


@given(shares)
def test_loss_is_a_geometric_mean(found: list[float]) -> None:
    """And granularity the arithmetic one, taken from 1."""
    assert costs.loss(found) == pytest.approx(oracle.loss(found), abs=1e-12)
    assert costs.granularity(found) == pytest.approx(1 - sum(found) / len(found))


@given(seeds)
def test_what_a_search_says_of_its_release_is_what_is_measured(seed: int) -> None:
    """The lattice's figures from codes, and the measured ones from what is published, are the same numbers."""
    table = jali.datasets.census(rows=60, seed=seed % 1000, quasi=["age", "sex"])
    release = jali.generalize(table, jali.KAnonymity(3), suppress=0.1)
    measured = jali.measure(release, table)
    for name in ("kl", "average", "discernibility", "loss"):
        assert release.manifest.metrics[name] == pytest.approx(getattr(measured, name), abs=1e-9), name
