"""Laws of equal halves: what decision 41 says, on tables with ties, trees, one combination and wide codes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from fractions import Fraction
from itertools import permutations

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

import jali
from jali.core.arrays import Ints
from jali.encoding.table import Table
from jali.principles.base import Principle, hold
from jali.principles.counts import Counts
from jali.search.halves import (
    Halves,
    People,
    Sample,
    _compiled_cut,
    _draw,
    _plain_cut,
    dealing_of,
    dealt,
    halve,
    halve_counted,
    samples_of,
    seated_counted,
)
from jali.search.halves import people_of as searched_people
from jali.search.items import columns_of, items_of, under_taxonomy
from oracles import halves as oracle
from oracles.often import examples, seeds

TREE = [
    ("a", "x", "r", "*"), ("b", "y", "r", "*"), ("c", "x", "r", "*"),
    ("d", "z", "s", "*"), ("e", "z", "s", "*"), ("f", "w", "s", "*"),
]  # fmt: skip
PRINCIPLES = [
    jali.KAnonymity(1), jali.KAnonymity(2), jali.KAnonymity(3), jali.DistinctDiversity(2), jali.EntropyDiversity(1.5),
    jali.FrequencyDiversity(1.5), jali.FrequencyDiversity("5/3"), jali.RecursiveDiversity(2, 2),
    jali.TCloseness(0.2), jali.TCloseness(0.4, distance="ordered"), jali.AlphaAnonymity(0.6, 2),
    jali.AlphaAnonymity(0.5, 2, values=["v0"]), jali.Safety(0.7, 0),
]  # fmt: skip
requirements = st.lists(st.sampled_from(PRINCIPLES), min_size=1, max_size=2, unique=True).map(tuple)
ways = st.sampled_from(["area", "range"])


def drawn_table(rng: np.random.Generator, most: int, values: int = 4) -> Table:
    """A table of at most so many people: ordered columns, narrow and wide, and a taxonomy, all with ties."""
    n, wide = int(rng.integers(1, most + 1)), int(rng.choice([1, 3, 7, 100_000]))
    frame = {
        "age": rng.integers(0, wide, n) * int(rng.choice([1, 3])),
        "tree": [TREE[code][0] for code in rng.integers(0, rng.integers(1, 7), n)],
        "zip": [str(code) for code in rng.integers(0, 3, n)],
        "ill": [f"v{code}" for code in rng.integers(0, rng.integers(1, values + 1), n)],
    }
    builders = {"age": jali.bands(5, 10), "tree": jali.taxonomy(TREE), "zip": jali.suppress()}
    names = rng.permutation(sorted(builders))[: rng.integers(1, 4)].tolist()
    return jali.table(
        pa.table(frame), quasi={name: builders[name] for name in names}, sensitive=["ill"],
        domain=str(rng.choice(["declared", "present"])),
    )  # fmt: skip


def people_of(table: Table) -> People:
    """Everybody, in the order of the table's records."""
    items = items_of(table, "relaxed")
    order = np.argsort(items.record)
    return People(items.combination[order], items.value[order], items.whole)


def judge_of(principles: tuple[Principle, ...], whole: Counts) -> oracle.Judge:
    """A verdict on one histogram."""

    def judge(histogram: oracle.Histogram) -> bool:
        value = np.array([v for v, n in histogram.items() if n], dtype=np.int64)
        n = np.array([histogram[v] for v in value], dtype=np.int64)
        counts = Counts(1, np.zeros_like(value), value, n, whole.sensitive, whole.joint, None, whole)
        return bool(hold(principles, counts)[0])

    return judge


def quasi_of(table: Table) -> list[oracle.Quasi]:
    """The quasi-identifiers as the oracle reads them."""
    return [
        oracle.Quasi(
            column.codes.tolist(), column.mask(table.domain).tolist(),
            [m.tolist() for m in column.hierarchy.maps] if under_taxonomy(column) and column.hierarchy else None,
        )
        for column in table.quasi
    ]  # fmt: skip


def least_of(principles: tuple[Principle, ...]) -> int:
    return max(1, *(p.least_size() for p in principles))


def counts_of(people: People, halves: Halves) -> Counts:
    """People by group and value."""
    whole, n = people.whole, np.ones(len(people.value), dtype=np.int64)
    return Counts(halves.groups, halves.group, people.value, n, whole.sensitive, whole.joint, None, whole)


def together(group: np.ndarray) -> set[frozenset[int]]:  # type: ignore[type-arg]
    """The members of each group."""
    return {frozenset(np.flatnonzero(group == g).tolist()) for g in set(group.tolist())}


@given(seeds, ways, st.booleans())
@examples(5)
def test_compiled_cuts_are_plain_cuts(seed, by, sorting):  # type: ignore[no-untyped-def]
    """The same halves in the same order, and the same nodes uncut, at every depth."""
    rng = np.random.default_rng(seed)
    table = drawn_table(rng, 70)
    columns, people = columns_of(table), people_of(table)
    plain, compiled = (make(columns, people.combination, by, sorting) for make in (_plain_cut, _compiled_cut))
    size = 2 ** int(rng.integers(1, 5))
    nodes = rng.integers(0, table.records, (3, size)).astype(np.int32)
    while nodes.shape[1] > 1:
        (halves, uncut), (others, alike) = plain(nodes), compiled(nodes)
        assert halves.tolist() == others.tolist()
        assert uncut.tolist() == alike.tolist()
        nodes = halves


@given(seeds, requirements, ways)
@examples(3)
def test_halves_are_what_the_decision_says(seed, principles, by):  # type: ignore[no-untyped-def]
    """Samples, draws, columns, ties and verdicts, as the oracle reads decision 41; compiled or not."""
    rng = np.random.default_rng(seed)
    table = drawn_table(rng, 24)
    people = people_of(table)
    if not hold(principles, people.whole).all():
        return
    bits = {"drawn": rng.permutation(table.records), "ties": rng.permutation(table.records)}
    expected = oracle.halve(
        quasi_of(table), people.value.tolist(), judge_of(principles, people.whole), least=least_of(principles),
        drawn=bits["drawn"].tolist(), ties=bits["ties"].tolist(), by=by,
    )  # fmt: skip
    for compiled in (True, False):
        halves = halve(columns_of(table), people, principles, **bits, by=by, compiled=compiled)
        assert together(halves.group) == expected
        assert halves.groups == len(expected)


class Tape:
    """The draws of `halve` for people who are listed, as the draws of `halve_counted` for the records they are one of.

    People are listed record by record. Of each value the tape says who of them comes first, then of each sample.
    """

    def __init__(self, people: People, line: list[int], drawn: Ints, ties: Ints) -> None:
        self.by_value = {v: drawn[people.value[drawn] == v] for v in line}
        self.orders = iter([np.searchsorted(np.sort(own), own) for own in self.by_value.values()])
        self.rank = np.argsort(ties)

    def order_of(self, many: int) -> Ints:
        order = next(self.orders, np.arange(many))
        assert len(order) == many
        return order

    def turns(self, samples: list[Sample]) -> Iterator[Ints]:
        """The order of ties in each sample, in which people stand value by value."""
        begin = np.zeros(len(self.by_value), dtype=np.int64)
        for sample in samples:
            own = zip(begin, sample.histogram, self.by_value.values(), strict=True)
            yield np.argsort(self.rank[np.concatenate([drawn[b : b + n] for b, n, drawn in own])])
            begin += sample.histogram


def records_of(table: Table) -> tuple[Table, Table, Ints]:
    """The distinct rows of a table, the same people listed record by record, and the record of each."""
    distinct, _ = table.merged(None)
    assert distinct.multiplicity is not None
    return distinct, distinct.one_by_one(), np.repeat(np.arange(distinct.records), distinct.multiplicity)


@given(seeds, requirements, ways, st.booleans(), st.integers(1, 40))
@examples(3)
def test_halves_from_counts_are_those_of_everybody_listed(seed, principles, by, sorting, at_once):  # type: ignore[no-untyped-def]
    """With the same draws the same records are together, in one part or in many, compiled or not."""
    rng = np.random.default_rng(seed)
    distinct, listed, owner = records_of(drawn_table(rng, 40, 3))
    people, records = searched_people(listed), searched_people(distinct)
    if not hold(principles, people.whole).all():
        return
    bits = {"drawn": rng.permutation(listed.records), "ties": rng.permutation(listed.records)}
    made = halve(columns_of(listed), people, principles, **bits, by=by, sorting=sorting, compiled=False)
    histogram = np.bincount(people.value, minlength=len(people.whole.joint)).astype(np.int64)
    samples = samples_of(histogram, least_of(principles), principles, people.whole)
    for compiled in (True, False):
        tape = Tape(people, list(range(len(histogram))), **bits)
        turns = tape.turns(samples)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("jali.core.arrays.AT_ONCE", at_once)
            found = halve_counted(
                columns_of(distinct), records, distinct.multiplicity, principles, order_of=tape.order_of,
                turn_of=lambda many, turns=turns: next(turns), by=by, sorting=sorting, compiled=compiled,
            )  # fmt: skip
        group = found.in_group.each
        assert Counter(tuple(sorted(found.member[group == g])) for g in range(len(found.in_group.sizes))) == Counter(
            tuple(sorted(owner[made.group == g])) for g in range(made.groups)
        )


@given(seeds, st.sampled_from([jali.FrequencyDiversity(2), jali.EntropyDiversity(2), jali.TCloseness(0.4)]))
def test_batches_dealt_from_counts_are_those_of_everybody_listed(seed, principle):  # type: ignore[no-untyped-def]
    """With the same draws the same records meet."""
    rng = np.random.default_rng(seed)
    distinct, listed, owner = records_of(drawn_table(rng, 30, 3))
    people = searched_people(listed)
    if not hold((principle,), people.whole).all():
        return
    drawn = rng.permutation(listed.records)
    batch = dealt(people.value, (principle,), people.whole, drawn)
    many = np.bincount(people.value, minlength=len(people.whole.joint)).astype(np.int64)
    place, _ = dealing_of(many, (principle,), people.whole)
    tape = Tape(people, np.argsort(place).tolist(), drawn, drawn)
    found = seated_counted(distinct, (principle,), "anatomy", tape.order_of, np.arange)
    group = found.in_group.each
    assert [sorted(found.member[group == g]) for g in range(len(found.in_group.sizes))] == [
        sorted(owner[batch == g]) for g in range(int(batch.max()) + 1)
    ]


@given(seeds, requirements)
def test_samples_follow_from_values_and_promises_alone(seed, principles):  # type: ignore[no-untyped-def]
    """They add up to everybody, their sizes are multiples of 2^depth, each keeps every promise, and who has which
    value and stands where changes nothing."""
    rng = np.random.default_rng(seed)
    table = drawn_table(rng, 40)
    people, least = people_of(table), least_of(principles)
    if not hold(principles, people.whole).all():
        return
    histogram = np.bincount(people.value, minlength=len(people.whole.joint)).astype(np.int64)
    samples = samples_of(histogram, least, principles, people.whole)
    judge = judge_of(principles, people.whole)
    assert sum(s.histogram for s in samples).tolist() == histogram.tolist()
    for sample in samples:
        size = int(sample.histogram.sum())
        assert size % 2**sample.depth == 0
        assert sample.depth == 0 or size >> sample.depth >= least
        assert judge(Counter(dict(enumerate(sample.histogram.tolist()))))
    expected = oracle.samples(Counter(people.value.tolist()), least, judge)
    assert [(+Counter(dict(enumerate(s.histogram.tolist()))), s.depth) for s in samples] == [
        (+histogram, depth) for histogram, depth in expected
    ]


@given(seeds, requirements)
def test_every_group_keeps_every_promise(seed, principles):  # type: ignore[no-untyped-def]
    """And everybody is in one group."""
    rng = np.random.default_rng(seed)
    table = drawn_table(rng, 60)
    people = people_of(table)
    if not hold(principles, people.whole).all():
        return
    n = np.arange(table.records)
    halves = halve(columns_of(table), people, principles, drawn=rng.permutation(n), ties=rng.permutation(n))
    assert sorted(set(halves.group.tolist())) == list(range(halves.groups))
    assert hold(principles, counts_of(people, halves)).all()


@given(seeds)
def test_samples_are_drawn_as_their_histograms_say(seed):  # type: ignore[no-untyped-def]
    """Whoever is drawn, each sample has its histogram, and all ways to draw it are reached equally often."""
    rng = np.random.default_rng(seed)
    value = rng.integers(0, 3, int(rng.integers(1, 6)))
    histogram = np.bincount(value, minlength=3).astype(np.int64)
    first = np.array([rng.integers(0, m + 1) for m in histogram])
    samples = [Sample(first, 0), Sample(histogram - first, 0)]
    often: Counter[oracle.Draw] = Counter()
    for drawn in permutations(range(len(value))):
        members = _draw(value, samples, np.array(drawn))
        often[tuple(tuple(sorted(m.tolist())) for m in members)] += 1
    plan = [(Counter(dict(enumerate(s.histogram.tolist()))), 0) for s in samples]
    expected = {tuple(tuple(sorted(m)) for m in draw) for draw in oracle.draws(value.tolist(), plan)}
    assert set(often) == expected
    assert len(set(often.values())) == 1


@given(seeds, st.sampled_from(PRINCIPLES), st.sampled_from([1, 2]))
def test_belief_is_the_share_of_the_group(seed, principle, k):  # type: ignore[no-untyped-def]
    """Over all worlds and all draws, with the order of ties known: exactly."""
    rng = np.random.default_rng(seed)
    table = drawn_table(rng, 5, 3)
    people, principles = people_of(table), (principle, jali.KAnonymity(k))
    if not hold(principles, people.whole).all():
        return
    judge = judge_of(principles, people.whole)
    plan = oracle.samples(Counter(people.value.tolist()), least_of(principles), judge)
    ties = rng.permutation(table.records).tolist()
    worlds = set(permutations(people.value.tolist()))
    weight: dict[object, Fraction] = defaultdict(Fraction)
    belief: dict[object, Fraction] = defaultdict(Fraction)
    for world in worlds:
        ways = list(oracle.draws(world, plan))
        for draw in ways:
            drawn = np.array([p for members in draw for p in members])
            made = halve(
                columns_of(table), people._replace(value=np.array(world)), principles, drawn=drawn,
                ties=np.array(ties), compiled=False,
            )  # fmt: skip
            shown = frozenset((g, tuple(sorted(world[p] for p in g))) for g in together(made.group))
            weight[shown] += Fraction(1, len(ways))
            for p, v in enumerate(world):
                belief[shown, p, v] += Fraction(1, len(ways))
    assert sum(weight.values()) == len(worlds)
    for shown, total in weight.items():
        for members, values in shown:  # type: ignore[attr-defined]
            for p in members:
                for v in set(values):
                    assert belief[shown, p, v] / total == Fraction(values.count(v), len(values))


def test_a_table_without_people_to_halve_is_one_group() -> None:
    """One person, and one value: there is nothing to cut."""
    for ill in (["flu"], ["flu"] * 8):
        table = jali.table(pa.table({"age": [30] * len(ill), "ill": ill}), quasi=["age"], sensitive=["ill"])
        n = np.arange(len(ill))
        assert halve(columns_of(table), people_of(table), (jali.KAnonymity(1),), drawn=n, ties=n).groups == 1


@pytest.mark.slow
@given(seeds, requirements)
@examples(5)
def test_large_tables_keep_every_promise(seed, principles):  # type: ignore[no-untyped-def]
    """Thousands of people: compiled and plain find the same groups."""
    rng = np.random.default_rng(seed)
    table = drawn_table(rng, 5000)
    people = people_of(table)
    if not hold(principles, people.whole).all():
        return
    bits = {"drawn": rng.permutation(table.records), "ties": rng.permutation(table.records)}
    made = [halve(columns_of(table), people, principles, **bits, compiled=compiled) for compiled in (True, False)]
    assert made[0].group.tolist() == made[1].group.tolist()
    assert hold(principles, counts_of(people, made[0])).all()
