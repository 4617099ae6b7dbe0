"""Laws of the estimate that uses all tables of an ANGEL release at once: maximum entropy within each batch."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jali
from jali.encoding.table import Table
from jali.estimates import together
from jali.estimates.linked import LinkedEstimate
from jali.publish.checks import prepared
from jali.publish.drafts import of_groups
from jali.query.parse import parse
from jali.releases.linked.angel import Angel

AGES, TOWNS, ILL = range(4), ("u", "v", "w"), ("p", "q")
CELLS = list(product(AGES, TOWNS))
PEOPLE = st.lists(
    st.tuples(st.sampled_from(AGES), st.sampled_from(TOWNS), st.sampled_from(ILL), st.integers(0, 1)),
    min_size=2, max_size=12,
)  # fmt: skip
Person = tuple[int, str, str, int]


def read(people: list[Person]) -> Table:
    """Both columns have declared domains, so that analysts and the holder infer the same."""
    ages, towns, ill, _ = (list(each) for each in zip(*people, strict=True))
    quasi = {"age": jali.bands(2, low=0, high=3), "town": jali.taxonomy([[town, "*"] for town in TOWNS])}
    return prepared(jali.table(pa.table({"age": ages, "town": towns, "ill": ill}), quasi=quasi, sensitive=["ill"]))


def release_of(people: list[Person], seed: int, *, overlapping: bool) -> Angel:
    """Batches as drawn; data, a marginal of each column with batches, and one without; cells that may overlap."""
    random, table = np.random.default_rng(seed), read(people)
    first = people[0][3]
    batch = np.array([abs(b - first) for *_, b in people])
    shows: dict[str, Any] = {"age": "interval", "town": "set"}

    def grouped(keys: list[Any]) -> Any:
        """Groups that are unions of some keys; single people in any group where cells may overlap."""
        into = {key: int(random.integers(3)) for key in sorted(set(keys))}
        group = [int(random.integers(3)) if overlapping else into[key] for key in keys]
        return np.unique(group, return_inverse=True)[1].reshape(-1)

    cut = [age // 2 for age, *_ in people] if not overlapping else [age for age, *_ in people]
    buckets = {
        ("age", "town"): grouped([(a, town) for a, (_, town, *_) in zip(cut, people, strict=True)])
        if overlapping else np.unique(cut, return_inverse=True)[1].reshape(-1),
        ("age", "ill"): grouped([age for age, *_ in people]) if overlapping
        else np.unique([age > 2 for age, *_ in people], return_inverse=True)[1].reshape(-1),
        ("town", "ill"): grouped([town for _, town, *_ in people]) if overlapping
        else np.unique([town == "u" for _, town, *_ in people], return_inverse=True)[1].reshape(-1),
        ("town",): np.unique([town for _, town, *_ in people], return_inverse=True)[1].reshape(-1),
    }  # fmt: skip
    return of_groups(table, batch, buckets, (jali.DistinctDiversity(1),), k=1, shows=shows)


def spread(estimate: LinkedEstimate) -> dict[int, dict[tuple[int, str], float]]:
    """How many people of each batch the estimate expects to have each pair of values."""
    found: dict[int, dict[tuple[int, str], float]] = defaultdict(lambda: dict.fromkeys(CELLS, 0.0))
    age, town = estimate.shown
    for link, many, a, t in zip(estimate.link, estimate.people, age.codes, town.codes, strict=True):
        ages = range(int(age.cover.low[a]), int(age.cover.high[a]) + 1)
        assert town.cover.values is not None
        towns = [town.cover.values[int(i)].as_py() for i in town.cover.member[slice(*town.cover.start[[t, t + 1]])]]
        for cell in product(ages, towns):
            found[int(link)][cell] += float(many) / len(ages) / len(towns)
    return found


def held(name: str, shown: str) -> list[Any]:
    """The values that a published cell stands for."""
    if name == "age":
        low, high = (int(end) for end in (shown.strip("[]").split(", ") * 2)[:2])
        return list(range(low, high + 1))
    return shown.strip("{}").split(", ") if shown != "*" else list(TOWNS)


def constraints(release: Angel) -> list[tuple[set[tuple[int, int, str]], int]]:
    """What was published of each batch: the cells (batch, age, town) of each box, and its people."""
    found = []
    for name, table in release.tables.items():
        if name == "batches":
            continue
        rows = Counter(tuple(sorted(row.items())) for row in table.to_pylist())
        for row, n in rows.items():
            shown = dict(row)
            batches = [shown.pop("batch") - 1] if "batch" in shown else range(2)
            ages = held("age", str(shown["age"])) if "age" in shown else AGES
            towns = held("town", shown["town"]) if "town" in shown else TOWNS
            found.append(({*product(batches, ages, towns)}, n))
    return found


@given(PEOPLE, st.integers(0, 1000))
def test_it_is_the_distribution_of_maximum_entropy_that_every_table_agrees_with(
    people: list[Person], seed: int
) -> None:
    """Every box has its people; where people may be, the logarithm is a sum of one number for each box (Lagrange)."""
    release = release_of(people, seed, overlapping=False)
    joined = release.estimate().joined
    assert joined is not None
    assert joined.used == (0, 1, 2, 3)
    found = {(b, *cell): n for b, cells in spread(joined.estimate).items() for cell, n in cells.items()}
    boxes = constraints(release)
    inside = min(n for n in found.values() if n > 0) > 0.02  # no cell is on its way to nobody, which takes for ever
    for cells, n in boxes:
        assert sum(found.get(cell, 0.0) for cell in cells) == pytest.approx(n, abs=1e-6 if inside else 0.05)
    if inside:
        there = [cell for cell, n in found.items() if n > 0]
        design = np.array([[cell in cells for cells, _ in boxes] for cell in there], dtype=float)
        logs = np.log([found[cell] for cell in there])
        assert design @ np.linalg.lstsq(design, logs, rcond=None)[0] == pytest.approx(logs, abs=1e-6)


def likelihood(people: list[Person], estimate: LinkedEstimate, batch: np.ndarray) -> float:
    """Σ over people of the logarithm of what is expected of their batch and values, per person."""
    found = spread(estimate)
    return sum(math.log(found[int(b)][age, town]) for (age, town, *_), b in zip(people, batch, strict=True)) / len(
        people
    )


@given(PEOPLE, st.integers(0, 1000), st.sampled_from([1, 2, 200]))
def test_it_is_never_farther_from_the_truth_than_the_first_table_however_soon_fitting_ends(
    people: list[Person], seed: int, sweeps: int
) -> None:
    """Within batches, for cells that do not overlap: the KL of who has what, batch by batch, only falls."""
    release = release_of(people, seed, overlapping=False)
    estimate = release.estimate()
    before = together.SWEEPS
    together.SWEEPS = sweeps
    try:
        joined = estimate.joined
    finally:
        together.SWEEPS = before
    assert joined is not None
    first = estimate.parts[0]
    assert isinstance(first, LinkedEstimate)
    batch = release.assignment(read(people))
    assert likelihood(people, joined.estimate, batch) >= likelihood(people, first, batch) - 1e-9


@given(PEOPLE, st.integers(0, 1000), st.booleans(), st.data())
def test_the_truth_is_within_the_bounds_and_everything_adds_up(
    people: list[Person], seed: int, overlapping: bool, data: Any
) -> None:
    """Also where cells overlap: bounds hold, counts of a condition and its negation add up, so do joint tables."""
    estimate = release_of(people, seed, overlapping=overlapping).estimate()
    age, town, ill = (
        data.draw(st.sampled_from(AGES)),
        data.draw(st.sampled_from(TOWNS)),
        data.draw(st.sampled_from(ILL)),
    )
    join = data.draw(st.sampled_from(["AND", "OR"]))
    asked = data.draw(st.sampled_from([
        f"age >= {age} {join} (town = '{town}' {join} ill = '{ill}')", f"town = '{town}'",
        f"age = {age} AND ill = '{ill}'",
        f"age = {age} OR (town = '{town}' AND ill = '{ill}')",
    ]))  # fmt: skip
    found, other = estimate.count(asked), estimate.count(f"NOT ({asked})")
    python = asked.replace("=", "==").replace(">==", ">=").replace("AND", "and").replace("OR", "or")
    truth = sum(eval(python, {"age": a, "town": t, "ill": i}) for a, t, i, _ in people)
    assert found.low - 1e-9 <= truth <= found.high + 1e-9
    assert found.low <= found <= found.high
    assert estimate.expected(parse(asked)) == pytest.approx(float(found), abs=1e-9)
    assert found.low + other.high == pytest.approx(len(people))
    assert sum(estimate.frame(["age", "ill"])["count"].to_pylist()) == pytest.approx(len(people))
    assert estimate.probability({"age": [a for a, _ in CELLS], "town": [t for _, t in CELLS]}).sum() == pytest.approx(1)


def test_marginals_tell_what_the_table_of_all_columns_blurs() -> None:
    """Two boxes of two ages by two towns; the marginals say that ages and towns are uneven."""
    people: list[Person] = [(0, "u", "p", 0)] * 6 + [(1, "v", "q", 0)] * 2
    table = read(people)
    zeros = np.zeros(len(people), dtype=np.int64)
    buckets = {
        ("age", "town"): zeros,
        ("age", "ill"): np.array([age for age, *_ in people]),
        ("town", "ill"): np.array([town == "v" for _, town, *_ in people]).astype(np.int64),
    }
    shows: dict[str, Any] = {"age": "interval", "town": "set"}
    release = of_groups(table, zeros, buckets, (jali.DistinctDiversity(1),), k=2, shows=shows)
    found = release.estimate().count("age = 0 AND town = 'u'")
    assert found == pytest.approx(8 * (6 / 8) * (6 / 8))  # independent within the batch, as far as was published
    assert found.assumes[0].startswith("within a batch people are spread as evenly as all tables")
    assert release.linked({}).count("age = 0 AND town = 'u'") == pytest.approx(2)
    assert release.manifest.metrics["kl"] == pytest.approx(jali.measure(release, table).kl)
    assert release.estimate().sample(100, seed=0).num_rows == 100


def test_a_table_that_would_make_too_many_tuples_is_asked_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the estimate says which are."""
    people: list[Person] = [(age, town, "pq"[age % 2], 0) for age, town in CELLS]
    monkeypatch.setattr(together, "TUPLES", 0)
    estimate = release_of(people, 0, overlapping=False).estimate()
    assert estimate.joined is None
    assert repr(estimate).count("asked by itself") == 3
    assert estimate.count("age = 3 AND ill = 'q'") == estimate.part(["age", "ill"]).count("age = 3 AND ill = 'q'")
