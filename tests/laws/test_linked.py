"""Laws of estimates from two linked tables, against every person with every value written out."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

from jali.core import arrays
from jali.cover.cover import Cover
from jali.errors import InputError
from jali.estimates import link_join as within
from jali.estimates.base import Estimate
from jali.estimates.conditions import BoxColumn
from jali.estimates.linked import EVENLY, LinkedEstimate
from jali.query import tree as q
from jali.releases.linked.linked import pairs_of
from oracles import estimates as plain
from oracles import linked as oracle

VALUES = 4  # numbers 0 … 3 in every column


class Case(NamedTuple):
    """An estimate, and the same written out."""

    estimate: LinkedEstimate
    links: list[oracle.Link]
    names: list[str]


def case(seed: int) -> Case:
    """A few small links; one or two columns of exact or generalized cells, one or two sensitive ones; some weights."""
    random = np.random.default_rng(seed)
    shown, hidden, links = int(random.integers(1, 3)), int(random.integers(1, 3)), int(random.integers(1, 4))
    names = [*"ab"[:shown], *"st"[:hidden]]
    covers = [_cover(random) for _ in range(shown)]
    sizes = random.integers(1, 5, links)
    link = np.repeat(np.arange(links), sizes)
    codes = [random.integers(0, len(nodes), len(link)) for _, nodes in covers]
    values = random.integers(0, VALUES - int(random.integers(0, VALUES)), (len(link), hidden))
    entries, count_of = np.unique(np.column_stack([link, values]), axis=0, return_counts=True)
    mixed = random.permutation(len(entries))
    entries, count_of = entries[mixed], count_of[mixed]
    weight = None if random.random() < 0.5 else random.integers(1, 4, links).astype(np.float64)
    order = random.permutation(len(link))
    exact = Cover.exact(pa.array(range(VALUES), pa.int64()))
    drawn = zip(names[:shown], covers, codes, strict=True)
    widths = [len(nodes) for _, nodes in covers]
    cell, first = arrays.combine([(code[order], width) for code, width in zip(codes, widths, strict=True)], len(link))
    pairs = pairs_of(cell, len(first), link[order], given=True)
    estimate = LinkedEstimate.of_pairs(
        [BoxColumn(n, "number", "quasi", cover, code[order][first]) for n, (cover, _), code in drawn],
        pairs.cell, pairs.link, pairs.order,
        [BoxColumn(n, "number", "sensitive", exact, entries[:, i + 1]) for i, n in enumerate(names[shown:])],
        entries[:, 0], count_of, weight=weight,
    )  # fmt: skip
    written = [
        oracle.Link(
            [tuple(nodes[code[row]] for (_, nodes), code in zip(covers, codes, strict=True)) for row in rows],
            [tuple(values[row].tolist()) for row in rows],
            Fraction(1) if weight is None else Fraction(int(weight[number])),
        )
        for number in range(links)
        for rows in [np.flatnonzero(link == number)]
    ]
    return Case(estimate, written, names)


def _cover(random: np.random.Generator) -> tuple[Cover, list[plain.Node]]:
    """Exact numbers, sets that may overlap, or intervals."""
    numbers = pa.array(range(VALUES), pa.int64())
    kind = random.integers(3)
    if kind == 0:
        return Cover.exact(numbers), [plain.even([n]) for n in range(VALUES)]
    if kind == 1:
        members = [np.flatnonzero(random.random(VALUES) < 0.5) for _ in range(3)]
        members = [m if len(m) else np.array([0]) for m in members]
        start = np.cumsum([0, *map(len, members)])
        return Cover.sets(numbers, start, np.concatenate(members)), [plain.even(m.tolist()) for m in members]
    ends = np.sort(random.integers(0, VALUES, (3, 2)), axis=1)
    nodes = [plain.even(list(range(low, high + 1))) for low, high in ends.tolist()]
    return Cover.intervals(ends[:, 0], ends[:, 1], True), nodes


def atom(random: np.random.Generator, names: list[str]) -> q.Condition:
    name = names[random.integers(len(names))]
    if random.random() < 0.3:
        return q.Test(name, "in", random.choice(VALUES, int(random.integers(1, 3)), replace=False).tolist())
    return q.Test(name, str(random.choice(["=", "<", "<=", ">", ">="])), int(random.integers(0, VALUES)))  # type: ignore[arg-type]


def asked(random: np.random.Generator, names: list[str], depth: int = 3) -> q.Condition:
    """Any condition over these columns."""
    kind = random.integers(4) if depth else 0
    if kind == 0:
        return atom(random, names)
    if kind == 1:
        return q.Not(asked(random, names, depth - 1))
    parts = tuple(asked(random, names, depth - 1) for _ in range(2))
    return q.And(parts) if kind == 2 else q.Or(parts)


def test_a_count_is_what_writing_out_everybody_with_every_value_gives_and_its_bounds_are_reached(
    repeats: Callable[[int], int],
) -> None:
    """The bounds are the fewest and the most over every way to deal the values out, whatever the condition."""
    for seed in range(repeats(400)):
        random = np.random.default_rng(10_000 + seed)
        estimate, links, names = case(seed)
        shown, hidden = [n for n in names if n in "ab"], [n for n in names if n in "st"]
        for condition in (
            asked(random, names),
            q.Or((atom(random, shown), q.And((atom(random, shown), atom(random, hidden))))),
            q.And((asked(random, shown, 1), asked(random, hidden, 1))),
        ):
            found = estimate.count(condition)
            value, _, _ = plain.count(oracle.boxes(links), names, condition)
            low, high = oracle.bounds(links, names, condition)
            assert float(found) == pytest.approx(float(value), abs=1e-9), (seed, condition)
            assert (found.low, found.high) == pytest.approx((float(low), float(high))), (seed, condition)
            assert found.exact or found.assumes, (seed, condition)
            assert estimate.expected(condition) == pytest.approx(float(value), abs=1e-9), (seed, condition)


def test_a_condition_and_its_negation_add_up_to_everybody(repeats: Callable[[int], int]) -> None:
    for seed in range(repeats(300)):
        random = np.random.default_rng(20_000 + seed)
        estimate, _, names = case(seed)
        condition = asked(random, names)
        one, other = estimate.count(condition), estimate.count(q.Not(condition))
        assert one + other == pytest.approx(estimate.total)
        assert one.low + other.high == pytest.approx(estimate.total)


@pytest.mark.parametrize("few", [0, 8])
def test_probabilities_and_joint_tables_are_those_of_writing_everything_out(
    few: int, repeats: Callable[[int], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether equal rows of a link are made one first, or all rows are paired, where links are small."""
    monkeypatch.setattr(within, "FEW", few)
    for seed in range(repeats(250)):
        random = np.random.default_rng(30_000 + seed)
        estimate, links, names = case(seed)
        chosen = [names[i] for i in random.permutation(len(names))[: int(random.integers(1, len(names) + 1))]]
        places = [names.index(name) for name in chosen]
        expected = plain.frame(oracle.boxes(links), places)
        table = estimate.frame(chosen)
        found = {tuple(row[name] for name in chosen): row["count"] for row in table.to_pylist()}
        assert found == pytest.approx({cell: float(mass) for cell, mass in expected.items()}), seed
        cells = random.integers(0, VALUES, (6, len(chosen)))
        probability = estimate.probability({name: cells[:, i] for i, name in enumerate(chosen)})
        total = float(sum(expected.values()))
        assert probability == pytest.approx([float(expected.get(tuple(c), 0)) / total for c in cells.tolist()]), seed


def test_a_join_in_many_portions_is_the_join_in_one(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = [case(seed).estimate.frame(case(seed).names).to_pylist() for seed in range(40)]
    monkeypatch.setattr(arrays, "AT_ONCE", 2)
    for most in (within.LARGEST, 100):  # in a table of all keys, and key by key
        monkeypatch.setattr(within, "LARGEST", most)
        for seed, expected in enumerate(whole):
            found = case(seed).estimate.frame(case(seed).names).to_pylist()
            assert [row | {"count": pytest.approx(row["count"])} for row in expected] == found


def test_a_joint_table_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(within, "LARGEST", 2)
    with pytest.raises(InputError, match="name fewer columns"):
        small().frame(["a", "ill"])


def test_a_reconstruction_gives_each_link_its_own_values_once(repeats: Callable[[int], int]) -> None:
    for seed in range(repeats(200)):
        estimate, links, names = case(seed)
        table = estimate.sample(seed=seed)
        assert table.num_rows == sum(len(link.people) for link in links)
        assert estimate.order is not None
        link = estimate.link[estimate.order.of]
        hidden = [name for name in names if name in "st"]
        for number, written in enumerate(links):
            rows = table.filter(pa.array(link == number)).select(hidden).to_pylist()
            assert sorted(tuple(row.values()) for row in rows) == sorted(written.values)


def test_samples_are_as_frequent_as_the_estimate_says() -> None:
    """Every cell within five standard deviations."""
    for seed in range(10):
        estimate, _, names = case(seed)
        n = 20_000
        drawn = estimate.sample(n, seed=seed).group_by(names).aggregate([([], "count_all")])
        share = estimate.probability(drawn.select(names))
        assert (share > 0).all()
        assert share.sum() > 1 - 50 / n
        off = np.abs(drawn["count_all"].to_numpy() - n * share)
        assert (off <= 5 * np.sqrt(n * share * (1 - share)) + 1).all()


def test_a_sample_is_repeatable() -> None:
    estimate = case(3).estimate
    assert estimate.sample(50, seed=1).equals(estimate.sample(50, seed=1))
    assert not estimate.sample(500, seed=1).equals(estimate.sample(500, seed=2))


def small(cover: Cover | None = None, **given: Any) -> LinkedEstimate:
    """Two links of two people, or what is given instead."""
    shown = BoxColumn("a", "text", "quasi", cover or Cover.exact(pa.array(["x", "y", "z"])), np.array([0, 1, 1, 2]))
    ill = BoxColumn("ill", "text", "sensitive", Cover.exact(pa.array(["flu", "cold"])), np.array([0, 1, 0]))
    arguments: dict[str, Any] = {
        "shown": (shown,), "hidden": (ill,), "link": np.array([0, 0, 1, 1]), "people": np.ones(4, dtype=np.int64),
        "value_link": np.array([0, 0, 1]), "count_of": np.array([1, 1, 2]),
    }  # fmt: skip
    return LinkedEstimate(**(arguments | given))


def test_it_speaks_the_protocol_and_says_what_it_assumes() -> None:
    estimate = small()
    assert isinstance(estimate, Estimate)
    found = estimate.count("a = 'y' AND ill = 'flu'")
    assert (float(found), found.low, found.high, found.assumes) == (1.5, 1, 2, (EVENLY,))
    sure = estimate.count("a = 'z' AND ill = 'flu'")  # everybody in the second link has it
    assert (float(sure), sure.exact, sure.assumes) == (1, True, ())
    assert repr(estimate) == "LinkedEstimate(4 boxes in 2 links of mass 4: a, ill)"
    assert estimate.count() == 4
    assert estimate.count(where={"ill": "flu"}) == 3
    assert estimate.count("a = 'x' AND a = 'y' AND ill = 'flu'") == 0


def test_what_depends_on_an_unknown_cell_is_refused_with_its_bounds() -> None:
    estimate = small(Cover.unknown(3))
    with pytest.raises(InputError, match="between 0 and 1"):
        estimate.count("a = 'x' AND ill = 'cold'")
    assert estimate.count("ill = 'cold'") == 1
    with pytest.raises(InputError, match="no probability"):
        estimate.probability({"a": ["x"], "ill": ["flu"]})


def test_a_misspelt_column_is_refused_wherever_it_stands() -> None:
    for ask in (
        lambda e: e.count("il = 'flu'"),
        lambda e: e.probability({"a": ["x"], "il": ["flu"]}),
        lambda e: e.frame(["a", "il"]),
    ):
        with pytest.raises(InputError, match='did you mean "ill"'):
            ask(small())
    for n in (-1, 1.5, True):
        with pytest.raises(InputError, match="number of rows"):
            small().sample(n, seed=0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wrong",
    [
        {"people": np.array([1, 1, 1, 2])},
        {"people": np.array([2, 0, 1, 1])},
        {"count_of": np.array([1, 1, 1])},
        {"link": np.array([0, 0, 2, 2]), "value_link": np.array([0, 0, 2])},
        {"link": np.array([0, 0, -1, 1])},
        {"value_link": np.array([0, 0])},
        {"shown": ()},
        {"hidden": ()},
    ],
)
def test_a_value_checks_itself_when_it_is_made(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="links"):
        small(**wrong)
