"""Safety of batches bounds what any k facts disclose of an ANGEL release, and anatomy finds the l that Safety needs."""

from __future__ import annotations

from collections import Counter, defaultdict
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jali
from jali.errors import InfeasibleError, InputError
from jali.search.batches import batches_along
from oracles import angel as oracle
from oracles import disclosure as worst_case

PEOPLE = st.lists(st.tuples(st.sampled_from("AB"), st.integers(0, 1), st.sampled_from("xyz")), min_size=2, max_size=4)


def in_batches(people: list[tuple[Any, int, Any]]) -> dict[int, Counter[Any]]:
    """The values of each batch."""
    found: dict[int, Counter[Any]] = defaultdict(Counter)
    for _, batch, value in people:
        found[batch][value] += 1
    return found


def bound(batches: dict[int, Counter[Any]], k: int) -> Fraction:
    """The maximum disclosure of the batches as buckets, where everybody's batch is known."""
    values = sorted({value for counts in batches.values() for value in counts})
    return worst_case.maximum([[counts[value] for value in values] for counts in batches.values()], k)


@given(PEOPLE, st.sampled_from([(0, 1), (1, 1), (1, 2), (2, 1)]), st.integers(0, 1000))
def test_no_k_facts_disclose_more_than_if_everybodys_batch_were_known(
    people: list[tuple[Any, int, Any]], facts: tuple[int, int], seed: int
) -> None:
    """Over all worlds and sets of implications, whatever the attacker believes about who is in which batch."""
    (k, most), batches = facts, in_batches(people)
    drawn: dict[tuple[int, ...], int] = {}
    random = np.random.default_rng(seed)

    def prior(seated: tuple[int, ...]) -> int:
        return drawn.setdefault(seated, 1 if seed % 3 == 0 else int(random.integers(1, 6)))

    cells, rows = [cell for cell, _, _ in people], [(cell, batch) for cell, batch, _ in people]
    assert oracle.MixedWorlds(cells, rows, batches, prior).worst(k, most) <= bound(batches, k)


def test_one_cell_hides_the_batches_and_the_bound_is_not_reached() -> None:
    """(x, x, y) and (z, z, w), everybody in one cell: 2/6 is believed of x, 2/3 where the batch is known."""
    people = [("A", 0, "x"), ("A", 0, "x"), ("A", 0, "y"), ("A", 1, "z"), ("A", 1, "z"), ("A", 1, "w")]
    cells, rows = [cell for cell, _, _ in people], [(cell, batch) for cell, batch, _ in people]
    assert oracle.MixedWorlds(cells, rows, in_batches(people)).worst(0) == Fraction(1, 3)
    assert bound(in_batches(people), 0) == Fraction(2, 3)


def table(values: str, ages: list[int] | None = None) -> Any:
    """People of different ages with these values."""
    return jali.table(
        pa.table({"age": list(range(len(values))) if ages is None else ages, "ill": list(values)}),
        quasi={"age": jali.bands(2, 4, 8, low=0, high=99)}, sensitive=["ill"],
    )  # fmt: skip


@pytest.mark.parametrize("way", ["best", "partition", "curve", "anatomy"])
def test_what_is_published_keeps_safety_against_every_set_of_facts(way: Any) -> None:
    """From the published tables alone; also where several batches had to be made safe together."""
    several = 0
    for values, c, k in (("xyxyxy", 0.9, 0), ("xyzxyz", 0.8, 1), ("xyzzyx", 0.55, 0), ("xyzxyw", 0.9, 1)):
        release = jali.angelize(table(values), jali.Safety(c, k), k=2, batches=way, buckets="partition")
        assert jali.audit(release).holds
        batches: dict[int, Counter[Any]] = defaultdict(Counter)
        for row in release.batches.to_pylist():
            batches[row["batch"]][row["ill"]] += row["count"]
        rows = [(row["age"], row["batch"]) for row in release.tables["data"].to_pylist()]
        shown = {cell: [int(end) for end in cell.strip("[]").split(", ")] for cell, _ in rows}
        cells = [next(cell for cell, ends in shown.items() if ends[0] <= age <= ends[-1]) for age in range(len(values))]
        assert bound(batches, k) < Fraction(str(c))
        assert oracle.MixedWorlds(cells, rows, batches).worst(k) < Fraction(str(c))
        several += len(batches) > 1
    assert several > 1


@given(st.lists(st.tuples(st.integers(0, 9), st.sampled_from("wxyz")), min_size=2, max_size=14), st.integers(0, 2))
def test_batches_along_the_curve_are_safe_together_and_no_cut_of_the_whole_was_missed(
    people: list[tuple[int, str]], k: int
) -> None:
    """All batches are judged at once; where halving the whole line is safe, it is halved."""
    ages, values = [age for age, _ in people], "".join(value for _, value in people)
    given_table, safety = table(values, ages), jali.Safety(0.8, k)
    order = np.arange(len(people))
    if bound({0: Counter(values)}, k) >= Fraction(4, 5):
        with pytest.raises(InfeasibleError, match="cannot be met"):
            batches_along(given_table, safety, order)
        return
    found = batches_along(given_table, safety, order)
    batches: dict[int, Counter[Any]] = defaultdict(Counter)
    for batch, value in zip(found.batch.tolist(), values, strict=True):
        batches[batch][value] += 1
    assert bound(batches, k) < Fraction(4, 5)
    line = sorted(range(len(people)), key=lambda i: (ages[i], i))  # one column: the curve is its order
    half = len(line) // 2
    halves = {at: Counter(values[i] for i in some) for at, some in enumerate((line[:half], line[half:]))}
    assert (found.batches > 1) == (half > 0 and bound(halves, k) < Fraction(4, 5))


# -- anatomy --------------------------------------------------------------------------------------------------------


@given(st.integers(2, 14), st.integers(0, 3), st.sampled_from([Fraction(1, 2), Fraction(3, 5), Fraction(9, 10), 1]))
def test_anatomy_deals_by_the_least_l_that_safety_allows(people: int, k: int, c: Any) -> None:
    """Of buckets of different values, as people are dealt into them by each l from 1 on, the first that is safe."""

    def dealt(l: int) -> list[list[int]]:
        sizes = np.bincount(np.arange(people) % (people // l))
        return [[1] * int(size) for size in sizes]

    safe = [l for l in range(1, people + 1) if _worst(dealt(l), k) < c]
    assert jali.Safety(c, k).dealt_by(people) == (safe[0] if safe else people + 1)
    assert safe == list(range(people - len(safe) + 1, people + 1))  # once safe, always safe


def _worst(rows: list[list[int]], k: int) -> Fraction:
    """The maximum disclosure, where equal buckets beyond k + 2 are left out: the atoms do not reach them."""
    kept: list[list[int]] = []
    for row in rows:
        if kept.count(row) < k + 2:
            kept.append(row)
    return worst_case.maximum(kept, k)


def test_a_release_by_safety_alone_is_dealt_and_kept() -> None:
    """Below 1/2 with one fact needs four values in each bucket; a value that is too frequent is an error."""
    release = jali.anatomize(table("wxyz" * 5), jali.Safety(0.5, 1))
    sizes = Counter(row["bucket"] for row in release.tables["buckets"].to_pylist())
    assert jali.Safety(0.5, 1).dealt_by(20) == 4
    assert set(sizes.values()) == {4}
    assert jali.audit(release).holds
    with pytest.raises(InfeasibleError, match="the largest l"):
        jali.anatomize(table("w" * 9 + "xyz" * 3), jali.Safety(0.7, 1))


# -- what is refused ------------------------------------------------------------------------------------------------


def test_what_batches_cannot_be_formed_for_is_refused() -> None:
    """Safety of every column in turn, and anatomy where no promise says how many values a batch needs."""
    with pytest.raises(InputError, match="for each column"):
        jali.angelize(table("wxyz"), jali.MultiAttribute(jali.Safety(0.9, 1)), k=2)
    with pytest.raises(InputError, match="how many different values"):
        jali.angelize(table("wxyz"), jali.TCloseness(0.9), k=2, batches="anatomy")
    with pytest.raises(InputError, match="no way"):
        jali.angelize(table("wxyz"), jali.Safety(0.9, 1), k=2, batches="anatomi")  # type: ignore[arg-type]
