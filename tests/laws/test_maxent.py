"""Laws of maximum entropy: the closed form, the fit and the network agree with scaling every cell of a tiny domain."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

import jali
from jali.cover.cover import Cover
from jali.encoding.table import Table
from jali.errors import InputError
from jali.estimates.base import Estimate
from jali.graphical import inference as networks
from jali.graphical import maxent as fitting
from jali.graphical.estimate import BEYOND, Fitted, MarginalColumn, MaxEntropyEstimate
from jali.graphical.graph import Model, decomposable
from jali.graphical.inference import Network, Reading
from jali.graphical.marginal import ABSENT, Cache, Marginal, MarginalCounts, maximal
from jali.graphical.maxent import Divergence, finest, log_probability, tree_of
from jali.query.match import holds
from jali.query.parse import parse
from jali.query.tree import And, Condition, Constant, Not, Test
from jali.query.tree import tests as every_test
from oracles.maxent import Dense
from oracles.often import examples, seeds

TREE = [("a", "x", "*"), ("b", "x", "*"), ("c", "y", "*"), ("d", "y", "*"), ("e", "z", "*")]


def tables(seed: int) -> Table:
    """A small table with three quasi-identifiers, one or two sensitive columns, and either domain."""
    random = np.random.default_rng(seed)
    rows = int(random.integers(1, 40))
    pick = lambda values: [values[i] for i in random.integers(0, len(values), rows)]  # noqa: E731
    data = {
        "age": pick([20, 21, 24, 26, 31][: random.integers(1, 6)]),
        "tree": pick([row[0] for row in TREE][: random.integers(1, 6)]),
        "sex": pick(["f", "m"][: random.integers(1, 3)]),
        "ill": pick(["flu", "cold", "cancer"][: random.integers(1, 4)]),
        "pay": pick([1, 2]),
    }
    sensitive = ["ill", "pay"] if seed % 3 == 0 else ["ill"]
    quasi = {"age": jali.bands(2, 6, low=20, high=31), "tree": jali.taxonomy(TREE), "sex": jali.suppress()}
    domain = "declared" if seed % 2 else "present"
    return jali.table(pa.table(data), quasi=quasi, sensitive=sensitive, domain=domain)


def walked(cache: Cache, seed: int) -> tuple[Marginal, ...]:
    """A random decomposable collection, with at least one marginal."""
    random = np.random.default_rng(seed)
    model = Model.of(tuple(attribute.depth for attribute in cache.domain.attributes), [])
    for _ in range(int(random.integers(1, 30))):
        moves = sorted(model.moves(), key=lambda move: (move.kind, move.u, move.v))
        growing = [move for move in moves if move.kind == "add"]
        some = growing if growing and random.random() < 0.8 else moves
        model = model.after(some[random.integers(len(some))])
    if not model.cliques:
        return walked(cache, seed + 10_000)
    return tuple(cache.domain.of_mask(mask) for mask in model.cliques)


def anything(cache: Cache, seed: int) -> tuple[Marginal, ...]:
    """A random collection of marginals, decomposable or not."""
    random = np.random.default_rng(seed)
    levels = [[ABSENT, *range(attribute.depth)] for attribute in cache.domain.attributes]
    found = [Marginal(tuple(int(random.choice(own)) for own in levels)) for _ in range(random.integers(2, 5))]
    return tuple(m for m in found if m.attributes) or anything(cache, seed + 10_000)


def leaves(dense: Dense) -> np.ndarray:
    return np.array([cell for cell in product(*map(range, dense.shape)) if dense.allowed[cell]])


def estimate_of(table: Table, marginals: tuple[Marginal, ...]) -> MaxEntropyEstimate:
    """The estimate of somebody who knows the domains."""
    cache = Cache.of(table)
    tree = tree_of(cache.domain, marginals)
    found = Network(cache, tree) if tree is not None else Fitted(fitting.fit(cache, marginals))
    columns = []
    for i, attribute in enumerate(cache.domain.attributes):
        column, level = table[attribute.name], found.shown.levels[i]
        mask = column.mask(table.domain)
        values = column.values.filter(pa.array(mask))
        node = np.zeros(len(values), dtype=np.int64) if level == ABSENT else attribute.maps[level][mask]
        cover = Cover.grouped(values, node, 1 if level == ABSENT else attribute.nodes[level])
        columns.append(MarginalColumn(column.name, column.kind, column.role, cover))
    return MaxEntropyEstimate(tuple(columns), cache, maximal(marginals), found)


@examples(1.5)
@given(seeds)
def test_the_closed_form_is_the_maximum_entropy_distribution(seed: int) -> None:
    """At every leaf cell of random decomposable collections, spreading included; and so is its divergence."""
    table = tables(seed)
    cache, dense = Cache.of(table), Dense(table)
    marginals = walked(cache, seed)
    tree = tree_of(cache.domain, marginals)
    assert tree is not None
    wanted = dense.fitted(marginals)
    cells = leaves(dense)
    found = np.exp(log_probability(cache, tree, cells))
    assert found == pytest.approx(wanted[tuple(cells.T)], abs=1e-9)
    assert found.sum() == pytest.approx(1, abs=1e-9)
    kl = Divergence(cache).kl([cache.domain.mask(marginal) for marginal in marginals])
    assert kl == pytest.approx(dense.kl(wanted), abs=1e-9)


@given(seeds)
def test_fitting_agrees_with_the_closed_form_and_with_scaling_every_cell(seed: int) -> None:
    """Any collection; one that is decomposable is met after two rounds."""
    table = tables(seed)
    cache, dense = Cache.of(table), Dense(table)
    for marginals in (walked(cache, seed), anything(cache, seed)):
        found = fitting.fit(cache, marginals)
        wanted = dense.fitted(marginals, rounds=5000)
        close = 1e-9 if found.converged and dense.settled else 1e-3
        assert fitting.divergence(cache, found) == pytest.approx(dense.kl(wanted), abs=close)
        for marginal in marginals:
            summed: dict[tuple[int, ...], float] = {}
            for at, share in np.ndenumerate(found.p):
                shown = dict(zip(found.marginal.attributes, at, strict=True))
                key = []
                for i in marginal.attributes:
                    attribute = cache.domain.attributes[i]
                    leaf = int(np.flatnonzero(attribute.maps[found.marginal.levels[i]] == shown[i])[0])
                    key.append(int(attribute.maps[marginal.levels[i]][leaf]))
                summed[tuple(key)] = summed.get(tuple(key), 0.0) + share
            counts = cache.counts(marginal)
            for cell, n in zip(counts.cells.tolist(), counts.n.tolist(), strict=True):
                assert summed[tuple(cell)] == pytest.approx(n / cache.total, abs=max(found.gap, 1e-12))


def test_a_collection_that_is_not_decomposable_has_no_tree_and_fits() -> None:
    """All pairs of three columns: no closed form; the fit says how far it is."""
    table = tables(7)
    cache = Cache.of(table)
    pairs = [
        cache.domain.marginal(dict.fromkeys(pair, 0)) for pair in (("age", "tree"), ("tree", "ill"), ("age", "ill"))
    ]
    assert tree_of(cache.domain, pairs) is None
    assert Divergence(cache).kl([cache.domain.mask(pair) for pair in pairs]) is None
    found = fitting.fit(cache, pairs, rounds=3)
    assert found.rounds == 6  # three, and three more without the cells that must be empty
    assert not found.converged
    assert found.gap > 0
    assert fitting.fit(cache, pairs).gap < found.gap


def test_more_cells_than_fit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """One clear line, before anything is allocated; the closed form does not mind."""
    cache = Cache.of(tables(7))
    whole = cache.domain.marginal({"age": 0, "tree": 0, "ill": 0})
    monkeypatch.setattr(fitting, "LARGEST", 10)
    with pytest.raises(InputError, match="fitted over at most 10 cells"):
        fitting.fit(cache, [whole])


@given(seeds)
def test_a_joint_of_the_network_is_the_sum_over_all_other_cells(seed: int) -> None:
    """Any columns, in any order, of any decomposable collection."""
    table = tables(seed)
    cache, dense = Cache.of(table), Dense(table)
    marginals = walked(cache, seed)
    network = Network(cache, tree_of(cache.domain, marginals))  # type: ignore[arg-type]
    wanted = dense.fitted(marginals)
    random = np.random.default_rng(seed)
    shown = list(finest(marginals).attributes)
    asked = [int(i) for i in random.permutation(shown)[: random.integers(1, len(shown) + 1)]]
    levels = [network.shown.levels[i] for i in asked]
    nodes = [cache.domain.attributes[i].nodes[level] for i, level in zip(asked, levels, strict=True)]
    found = network.joint({i: Reading.node(n) for i, n in zip(asked, nodes, strict=True)})
    array = np.zeros(nodes)
    array[tuple(found.codes)] = found.mass
    expected = np.zeros(nodes)
    for cell in product(*map(range, dense.shape)):
        maps = [cache.domain.attributes[i].maps[level] for i, level in zip(asked, levels, strict=True)]
        expected[tuple(int(m[cell[i]]) for m, i in zip(maps, asked, strict=True))] += wanted[cell]
    assert array == pytest.approx(expected, abs=1e-9)


CONDITIONS = [
    "age < 25",
    "age < 25 AND tree = 'a'",
    "age BETWEEN 21 AND 26 AND sex = 'f' AND ill = 'flu'",
    "(age > 22 OR tree IN ('b', 'c')) AND NOT ill = 'cold'",
    "sex = 'm' OR ill = 'flu' OR age = 20",
    "tree = 'd' AND NOT (age < 24 AND ill IN ('flu', 'cancer'))",
]


def satisfied(condition: Condition, truth: dict[Test, np.ndarray]) -> np.ndarray:
    """Where the condition holds, from where each of its tests does."""
    if isinstance(condition, Test):
        return truth[condition]
    if isinstance(condition, Constant):
        return np.full(next(iter(truth.values())).shape, condition.value)
    if isinstance(condition, Not):
        return ~satisfied(condition.part, truth)
    parts = [satisfied(part, truth) for part in condition.parts]
    return np.all(parts, axis=0) if isinstance(condition, And) else np.any(parts, axis=0)


@given(seeds)
def test_counts_are_sums_over_the_maximum_entropy_distribution(seed: int) -> None:
    """Any condition, decomposable or fitted; within bounds that the table itself keeps."""
    table = tables(seed)
    dense = Dense(table)
    cache = Cache.of(table)
    for marginals in (walked(cache, seed), anything(cache, seed)):
        if not decomposable([cache.domain.mask(m) for m in marginals]) and not fitting.fit(cache, marginals).converged:
            continue
        estimate = estimate_of(table, marginals)
        wanted = dense.fitted(marginals, rounds=5000)
        for text in CONDITIONS:
            condition = parse(text)
            truth = {}
            for test in every_test(condition):
                axis = [column.name for column in dense.columns].index(test.column)
                own = holds(test, dense.columns[axis].values.to_pylist())
                shape = [-1 if i == axis else 1 for i in range(len(dense.shape))]
                truth[test] = np.broadcast_to(own.reshape(shape), dense.shape)
            where = satisfied(condition, truth)
            found = estimate.count(text)
            close = 1e-6 if dense.settled else 1e-3 * table.rows
            assert found == pytest.approx(float(wanted[where].sum()) * table.rows, abs=close)
            real = float(dense.n[where].sum())
            assert found.low <= real <= found.high
            assert found.exact or found.assumes
            assert estimate.expected(condition) == pytest.approx(float(found), abs=1e-6 * table.rows)


def test_what_is_published_together_is_counted_exactly_and_the_rest_says_what_it_assumes() -> None:
    """A count within one marginal at exact values leaves no doubt."""
    table = tables(9)
    cache = Cache.of(table)
    estimate = estimate_of(table, (cache.domain.marginal({"tree": 0, "sex": 0}), cache.domain.marginal({"ill": 0})))
    assert isinstance(estimate, Estimate)
    assert estimate.count("tree = 'a' AND sex = 'f'").exact
    assert estimate.count() == table.rows
    assert BEYOND in estimate.count("tree = 'a' AND ill = 'flu'").assumes
    with pytest.raises(InputError, match='did you mean "tree"'):
        estimate.count("tre = 'a'")


@given(seeds)
def test_cells_frames_and_samples_follow_the_distribution(seed: int) -> None:
    """Probabilities of all columns and of some, the joint frame, and the values that people drawn can have."""
    table = tables(seed)
    dense = Dense(table)
    cache = Cache.of(table)
    estimate = estimate_of(table, walked(cache, seed))
    wanted = dense.fitted(estimate.marginals)
    cells = leaves(dense)
    asked = {c.name: c.values.take(pa.array(cells[:, i])) for i, c in enumerate(dense.columns)}
    assert estimate.probability(asked) == pytest.approx(wanted[tuple(cells.T)], abs=1e-9)
    some = [column.name for column in dense.columns][:2]
    frame = estimate.frame(some, "arrow")
    assert sum(frame["count"].to_pylist()) == pytest.approx(table.rows)
    others = tuple(range(2, len(dense.shape)))
    for row in frame.to_pylist():
        at = tuple(dense.columns[i].values.to_pylist().index(row[name]) for i, name in enumerate(some))
        assert row["count"] == pytest.approx(wanted.sum(axis=others)[at] * table.rows, abs=1e-6)
    drawn = estimate.sample(50, seed=seed)
    assert drawn.num_rows == 50
    assert (estimate.probability(drawn) > 0).all()
    assert estimate.sample(seed=1).num_rows == table.rows


def test_people_are_drawn_as_often_as_the_distribution_says() -> None:
    """Every cell's share of 200,000 people is within five standard deviations."""
    table = tables(21)
    dense = Dense(table)
    estimate = estimate_of(table, walked(Cache.of(table), 22))
    wanted = dense.fitted(estimate.marginals)
    drawn = estimate.sample(200_000, seed=0)
    seen = np.zeros(dense.shape)
    codes = [[c.values.to_pylist().index(x) for x in drawn[c.name].to_pylist()] for c in dense.columns]
    np.add.at(seen, tuple(np.array(own) for own in codes), 1 / 200_000)
    off = 5 * np.sqrt(wanted * (1 - wanted) / 200_000)
    assert (abs(seen - wanted) <= off).all()


def test_a_million_million_cells_are_no_trouble() -> None:
    """Eight columns of 32 values each: divergence, counts and cells of a chain of pairs, and people drawn."""
    random = np.random.default_rng(0)
    names = [f"c{i}" for i in range(8)]
    first = random.integers(0, 32, 5000)
    data = {name: (first + random.integers(0, 3, 5000) * i) % 32 for i, name in enumerate(names)}
    table = jali.table(pa.table(data), quasi={name: jali.suppress() for name in names[:-1]}, sensitive=names[-1:])
    cache = Cache.of(table)
    marginals = tuple(cache.domain.marginal({a: 0, b: 0}) for a, b in pairwise(names))
    estimate = estimate_of(table, marginals)
    kl = Divergence(cache).kl([cache.domain.mask(m) for m in marginals])
    source = cache.sources[0]
    cells = {n: table[n].values.take(pa.array(source.cells[:, i])) for i, n in enumerate(names)}
    share = source.n / cache.total
    assert kl == pytest.approx(float(share @ np.log(share / estimate.probability(cells))), abs=1e-9)
    found = estimate.count("c0 < 10 AND c7 < 10 AND c3 != 4")
    drawn = estimate.sample(100_000, seed=0).to_pydict()
    near = np.mean((np.array(drawn["c0"]) < 10) & (np.array(drawn["c7"]) < 10) & (np.array(drawn["c3"]) != 4))
    assert found / cache.total == pytest.approx(near, abs=0.01)


def test_a_joint_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """With what to do instead."""
    table = tables(9)
    cache = Cache.of(table)
    estimate = estimate_of(table, tuple(cache.domain.marginal({name: 0}) for name in ("age", "tree", "ill")))
    monkeypatch.setattr(networks, "LARGEST", 5)
    with pytest.raises(InputError, match="ask for fewer columns"):
        estimate.frame(["age", "tree", "ill"])


# -- marginals -------------------------------------------------------------------------------------------------------


@given(seeds)
def test_counts_of_a_marginal_are_those_of_the_rows(seed: int) -> None:
    """Cells in order, each with somebody, whatever the source they are added up from."""
    table = tables(seed)
    cache, dense = Cache.of(table), Dense(table)
    for marginal in anything(cache, seed):
        found = cache.counts(marginal)
        expected: dict[tuple[int, ...], int] = {}
        for cell in np.argwhere(dense.n > 0):
            key = dense.key(marginal, cell.tolist())
            own = tuple(key[i] for i in marginal.attributes)
            expected[own] = expected.get(own, 0) + int(dense.n[tuple(cell)])
        assert [tuple(cell) for cell in found.cells.tolist()] == sorted(expected)
        assert found.n.tolist() == [expected[own] for own in sorted(expected)]
        published = Cache(cache.domain, (found,))
        coarser = Marginal(tuple(ABSENT if i == marginal.attributes[0] else x for i, x in enumerate(marginal.levels)))
        again, own = published.counts(coarser), cache.counts(coarser)
        assert np.array_equal(again.cells, own.cells)
        assert np.array_equal(again.n, own.n)


def test_sets_of_induced_attributes_and_marginals_are_the_same_thing() -> None:
    """Intersections are coarser levels, unions finer ones, containment is being computable."""
    cache = Cache.of(tables(3))
    domain = cache.domain
    some = [m for seed in range(40) for m in anything(cache, seed)]
    for a, b in pairwise(some):
        assert domain.of_mask(domain.mask(a)) == a
        assert domain.mask(a & b) == domain.mask(a) & domain.mask(b)
        assert domain.mask(a | b) == domain.mask(a) | domain.mask(b)
        assert a.within(b) == (domain.mask(a) & domain.mask(b) == domain.mask(a))
    with pytest.raises(InputError, match="a level without the ones above it"):
        domain.of_mask(0b10)


def test_bad_marginals_are_refused_in_one_line() -> None:
    """Unknown columns, levels that do not exist, sensitive columns above level 0, nothing at all."""
    domain = Cache.of(tables(9)).domain
    cases = [
        ({"agee": 0}, 'did you mean "age"'),
        ({"age": 9}, "levels go from 0"),
        ({"age": -1}, "not a level"),
        ({"age": True}, "not a level"),
        ({"ill": 1}, "stays at level 0"),
        ({}, "at least one column"),
        ({"sex": 1}, "at least one column"),
    ]
    for levels, message in cases:
        with pytest.raises(InputError, match=message):
            domain.marginal(levels)
    assert domain.named(domain.marginal({"age": 1, "sex": 1})) == {"age": 1}


def test_marginals_that_contradict_each_other_are_refused() -> None:
    """Different totals, or different counts of what they share."""
    cache = Cache.of(tables(9))
    domain = cache.domain
    first, second = (cache.counts(domain.marginal(m)) for m in ({"age": 0, "ill": 0}, {"tree": 0, "ill": 0}))
    more = MarginalCounts(second.marginal, second.cells, second.n + 1, second.cell_of_combination)
    with pytest.raises(InputError, match="same number of people"):
        Cache(domain, (first, more))
    moved = second.n.copy()
    at = np.flatnonzero(second.column(3) != second.column(3)[0])[0]
    moved[0], moved[at] = moved[0] + 1, moved[at] - 1
    wrong = MarginalCounts(second.marginal, second.cells, moved, second.cell_of_combination)
    published = Cache(domain, (first, wrong))
    tree = tree_of(domain, [first.marginal, wrong.marginal])
    assert tree is not None
    with pytest.raises(InputError, match="contradict"):
        Network(published, tree)


def test_cells_that_must_be_empty_do_not_keep_a_fit_from_settling() -> None:
    """Three pairs of three rows: a table with these pairs has just these rows, though no pair rules out the rest."""
    rows = [(0, 0, 0), (0, 1, 1), (1, 0, 1)]
    frame = pa.table({name: [row[at] for row in rows] for at, name in enumerate("abs")})
    cache = Cache.of(jali.table(frame, quasi={"a": jali.suppress(), "b": jali.suppress()}, sensitive=["s"]))
    pairs = [cache.domain.marginal(dict.fromkeys(pair, 0)) for pair in ("ab", "bs", "as")]
    found = fitting.fit(cache, pairs)
    assert found.converged
    expected = np.zeros((2, 2, 2))
    expected[tuple(np.array(rows).T)] = 1 / 3
    np.testing.assert_allclose(found.p, expected, atol=1e-12)
