"""Figure 1 of Kifer & Gehrke 2006: what may be published together with its table (b), what may not, and why."""

from __future__ import annotations

import pyarrow as pa
import pytest

import jali
from jali.encoding.table import Table
from jali.graphical.marginal import Cache
from jali.graphical.privacy.privacy import Verdict, check, columns_of
from jali.principles import Principle

PEOPLE = [
    ("14850", "Measles", 33), ("14853", "Allergy", 26), ("14853", "Gout", 22), ("14853", "Cancer", 32),
    ("14850", "Flu", 48), ("14850", "Heart", 47), ("14850", "Flu", 46), ("14853", "Cancer", 53),
    ("14853", "Heart", 51), ("13063", "Flu", 24), ("13063", "Cancer", 38), ("13068", "Cancer", 38),
    ("13068", "Heart", 30),
]  # fmt: skip
B = {"zip": 1, "age": 3, "condition": 0}  # 1485* | < 40 | condition
C = {"age": 1}  # [21 - 25]
D = {"zip": 0, "condition": 0}
E = {"zip": 0, "age": 2}  # 14850 | [41 - 50]


def figure() -> Table:
    """The original table (a); ages in bands of 5 and 10 that end in 5 and 0, then up to 40 and above."""
    zips = [(code, code[:4] + "*", "*") for code in ("14850", "14853", "13063", "13068")]
    ages = [(str(a), _band(a, 5), _band(a, 10), "up to 40" if a <= 40 else "above 40", "*") for a in range(21, 61)]
    columns = {"zip": [p[0] for p in PEOPLE], "condition": [p[1] for p in PEOPLE], "age": [p[2] for p in PEOPLE]}
    quasi = {"zip": jali.taxonomy(zips), "age": jali.taxonomy(ages)}
    return jali.table(pa.table(columns), quasi=quasi, sensitive=["condition"])


def _band(age: int, width: int) -> str:
    low = (age - 1) // width * width + 1
    return f"{low}-{low + width - 1}"


def judged(collection: list[dict[str, int]], *principles: Principle) -> Verdict:
    table = figure()
    cache = Cache.of(table)
    marginals = [cache.domain.marginal(levels) for levels in collection]
    return check(marginals, cache, principles, columns=columns_of(table))


def named(verdict: Verdict) -> dict[str, str]:
    """The verdict's worst cell in words."""
    table = figure()
    assert verdict.worst is not None
    return {name: str(table.hierarchy(name).levels[v].texts()[node]) for name, (v, node) in verdict.worst.items()}


def test_table_b_is_4_anonymous_and_2_3_diverse_only_where_equality_counts() -> None:
    """Definition 2.5 has ≤; jali is strict: two of 5 have the flu, one has the third most frequent condition."""
    assert judged([B], jali.KAnonymity(4))
    assert not judged([B], jali.KAnonymity(5))
    assert not judged([B], jali.RecursiveDiversity(2, 3))
    assert judged([B], jali.RecursiveDiversity(2, 3)).reached == 2
    assert judged([B], jali.RecursiveDiversity(2.01, 3))


def test_ages_in_fives_may_join_table_b_for_k_2_and_not_for_k_4() -> None:
    """(c) has no condition, so that only its own cells count: the smallest has 2 people."""
    assert judged([B, C], jali.KAnonymity(2), jali.RecursiveDiversity(2.01, 3))
    refused = judged([B, C], jali.KAnonymity(4), jali.RecursiveDiversity(2.01, 3))
    assert not refused
    assert "4-link" in refused.reason
    assert refused.reached == 2


def test_zip_and_condition_may_not_join_table_b_because_of_the_measles() -> None:
    """Each is diverse alone, but of the conditions of 14850 (d) only measles occurs under 40 in 1485* (b)."""
    two = jali.DistinctDiversity(2)
    assert judged([B], two)
    assert judged([D], two)
    verdict = judged([B, D], two)
    assert not verdict
    assert verdict.reached == 1
    assert named(verdict) == {"zip": "14850", "age": "up to 40"}


@pytest.mark.parametrize(
    "principle",
    [jali.EntropyDiversity(1.5), jali.RecursiveDiversity(100, 2), jali.FrequencyDiversity(1.2), jali.TCloseness(0.9)],
    ids=repr,
)
def test_every_diversity_finds_the_measles(principle: Principle) -> None:
    assert judged([B], principle)
    assert judged([D], principle)
    assert named(judged([B, D], principle)) == {"zip": "14850", "age": "up to 40"}
    assert not judged([B, D], principle)


def test_zip_and_condition_with_table_b_also_count_the_one_with_measles() -> None:
    """Both are 2-link anonymous, but at most one person can be under 40 in 14850: min(1, 1) with measles, else 0."""
    assert judged([B], jali.KAnonymity(2))
    assert judged([D], jali.KAnonymity(2))
    verdict = judged([B, D], jali.KAnonymity(2))
    assert not verdict
    assert "2-combinatorially" in verdict.reason
    assert verdict.reached == 1
    assert named(verdict) == {"zip": "14850", "age": "up to 40"}


def test_zip_and_condition_are_not_3_diverse_even_alone() -> None:
    """In 13063 and in 13068 only two conditions occur (Proposition 7.2)."""
    verdict = judged([B, D], jali.RecursiveDiversity(10, 3))
    assert not verdict
    assert named(verdict)["zip"] in {"13063", "13068"}


def test_zip_and_age_may_not_join_table_b_because_single_people_stand_in_it() -> None:
    """(e) tells no condition, but six of its nine cells have one person: whoever knows zip and age knows who it is."""
    verdict = judged([B, E], jali.KAnonymity(2))
    assert not verdict
    assert "2-link" in verdict.reason
    assert verdict.reached == 1
    assert judged([B, E], jali.DistinctDiversity(3))  # no condition, no harm to diversity (Proposition 7.3)


def test_all_of_them_together_may_not_be_published() -> None:
    """(b), (d) and (e) are not decomposable: they are judged cell by cell, and the measles are found again."""
    verdict = judged([B, C, D, E], jali.DistinctDiversity(2))
    assert not verdict
    assert not judged([B, D, E], jali.KAnonymity(2))
