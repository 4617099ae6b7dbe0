"""The marginals paper on the real Adult table: the reference figures, and searched collections at least as good."""

from __future__ import annotations

from pathlib import Path

import pytest

import jali
from jali.datasets import adult
from jali.encoding.table import Table
from jali.graphical.marginal import Cache
from jali.graphical.maxent import Divergence
from jali.graphical.privacy.privacy import Checker, columns_of
from jali.graphical.search import Problem, select
from jali.principles.base import Principle
from jali.reproduce import run

pytestmark = pytest.mark.paper

PROMISES: tuple[Principle, ...] = (jali.KAnonymity(6), jali.EntropyDiversity(6))
# Computed independently: levels of race, sex, age, marital-status → KL in nats.
MINIMAL = {(0, 0, 4, 1): 1.586611, (1, 1, 4, 0): 2.219927, (1, 1, 2, 1): 2.426097}
SUPPRESSED = 2.954251
INCREMENTAL = [
    ({"race": 0}, 1.352459),
    ({"marital-status": 0}, 0.677523),
    ({"sex": 0}, 0.614923),
    ({"age": 1}, 0.607306),
]
NAMES = ("race", "sex", "age", "marital-status")


@pytest.fixture(scope="module")
def people(adult_path: Path) -> Table:
    return adult(adult_path, quasi=NAMES)


@pytest.fixture(scope="module")
def divergence(people: Table) -> Divergence:
    return Divergence(Cache.of(people))


def mask(divergence: Divergence, levels: dict[str, int]) -> int:
    return divergence.cache.domain.mask(divergence.cache.domain.marginal(levels))


def table_of(levels: tuple[int, ...]) -> dict[str, int]:
    return dict(zip(NAMES, levels, strict=True)) | {"occupation": 0}


def test_the_minimal_tables_and_their_divergence(people: Table, divergence: Divergence) -> None:
    """Figure 7: the three minimal tables, as `minimal` finds them, cost what was computed independently."""
    assert divergence.kl([mask(divergence, {"occupation": 0})]) == pytest.approx(SUPPRESSED, abs=1e-6)
    found = {tuple(node.levels[name] for name in NAMES): node.kl for node in jali.minimal(people, PROMISES)}
    assert set(found) == set(MINIMAL)
    for levels, kl in MINIMAL.items():
        assert divergence.kl([mask(divergence, table_of(levels))]) == pytest.approx(kl, abs=1e-6)
        assert found[levels] == pytest.approx(kl, abs=1e-6)


def test_single_attribute_marginals_in_the_order_of_greatest_gain(people: Table, divergence: Divergence) -> None:
    """Figure 9: race, marital status, sex and age in fives, each the best single column that is safe to add."""
    collection = [mask(divergence, table_of((1, 1, 2, 1)))]
    problem = Problem(divergence, Checker(divergence.cache, PROMISES, columns_of(people)), base=collection[0])
    single = [
        mask(divergence, {attribute.name: level})
        for attribute in divergence.cache.domain.attributes
        for level in range(attribute.depth)
    ]
    for levels, kl in INCREMENTAL:
        options = {}
        for one in single:
            more = [*collection, one]
            found = divergence.kl(more)
            if found is not None and problem.safe(more):
                options[one] = found
        best = min(options, key=lambda one: (options[one], one.bit_count()))
        assert best == mask(divergence, levels)
        assert options[best] == pytest.approx(kl, abs=1e-6)
        collection.append(best)


def test_searched_collections_are_at_least_as_good(people: Table, divergence: Divergence) -> None:
    """Figure 8: the best collection with each minimal table, and overall; greedy finds what exhaustive finds."""
    checker = Checker(divergence.cache, PROMISES, columns_of(people))
    best = select(Problem(divergence, checker), "exhaustive")
    assert select(Problem(divergence, checker)).kl == pytest.approx(best.kl, abs=1e-12)
    reached = {}
    for levels, alone in MINIMAL.items():
        base = mask(divergence, table_of(levels))
        found = select(Problem(divergence, checker, base=base))
        assert found.verdict.holds
        assert best.kl - 1e-12 <= found.kl < alone
        assert found.kl == pytest.approx(select(Problem(divergence, checker, base=base), "exhaustive").kl, abs=1e-12)
        reached[levels] = found.kl
    assert reached[1, 1, 2, 1] < INCREMENTAL[-1][1]
    assert min(reached.values()) == reached[0, 0, 4, 1] == pytest.approx(best.kl, abs=1e-12)


def test_the_report_has_the_reference_figures(adult_path: Path, tmp_path: Path) -> None:
    """`jali reproduce marginals`: tables and bar charts, with the figures that were computed independently."""
    report = run("marginals", adult=adult_path, out=tmp_path)
    bars = {str(row[0]): row[-1] for name in ("figure-7", "figure-9") for row in report[name].rows}
    expected = {"0": SUPPRESSED, "A": 2.219927, "B": 1.586611, "C": 2.426097}
    expected |= {f"C{i}": kl for i, (_, kl) in enumerate(INCREMENTAL, start=1)}
    assert {name: bars[name] for name in expected} == pytest.approx(expected, abs=1e-6)
    best = {str(row[0]): float(row[-1] or 0) for row in report["figure-8"].rows}
    assert best["opt"] == pytest.approx(best["B+"]) == pytest.approx(float(bars["opt"] or 0))
    assert [row[1] for row in report["figure-1"].rows] == ["yes", "yes", "no", "no", "no"]
    assert {"figure-7.svg", "figure-8.png", "figure-9.csv"} <= {path.name for path in tmp_path.iterdir()}
