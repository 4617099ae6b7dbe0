"""Laws of presence: how surely somebody of a public table can be told to be in a private one."""

from __future__ import annotations

import json
import math
import pickle
from collections import Counter
from collections.abc import Callable, Iterable
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

import jali
from jali.encoding.table import Table
from jali.errors import InfeasibleError, InputError, InternalError
from jali.kernels.existence import FAILS, HOLDS, UNDECIDED, by_means, existences, within_bounds
from jali.principles.anonymity import PRESENCE, DeltaPresence
from jali.principles.counts import Sensitive, dense
from jali.search.existence import existence, logs_of
from jali.search.shift import members_of, moved
from oracles import presence as oracle
from oracles.often import examples

COLOUR = [("red", "warm", "*"), ("pink", "warm", "*"), ("blue", "cold", "*"), ("teal", "cold", "*")]
SHAPE = [("dot", "*"), ("bar", "*"), ("cross", "*")]
TREES = (
    {"warm": ("red", "pink"), "cold": ("blue", "teal"), "*": ("red", "pink", "blue", "teal")},
    {"*": ("dot", "bar", "cross")},
)
LEVELS = (
    [{v: (v,) for v in TREES[0]["*"]}, {k: TREES[0][k] for k in ("warm", "cold")}, {"* colour": TREES[0]["*"]}],
    [{v: (v,) for v in TREES[1]["*"]}, {"* shape": TREES[1]["*"]}],
)
PEOPLE = [(colour, shape) for colour, *_ in COLOUR for shape, _ in SHAPE]

publics = st.lists(st.sampled_from(PEOPLE), min_size=3, max_size=9)
bounds = st.tuples(st.integers(0, 20), st.integers(0, 20)).map(lambda two: (min(two) / 20, max(two) / 20))


def table(rows: list[tuple[str, str]], **more: list[str]) -> Table:
    frame = pa.table({"colour": [c for c, _ in rows], "shape": [s for _, s in rows], **more})
    return jali.table(frame, quasi={"colour": jali.taxonomy(COLOUR), "shape": jali.taxonomy(SHAPE)}, sensitive=[*more])


def cells(release: jali.releases.concealed.Concealed) -> list[tuple[str, ...]]:
    frame = release.frame("arrow")
    return list(zip(frame["colour"].to_pylist(), frame["shape"].to_pylist(), strict=True))


# -- existence ------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(-40, 0), min_size=1, max_size=9), st.data())
def test_existence_is_what_listing_all_subsets_finds(powers: list[int], data: st.DataObject) -> None:
    likelihoods = [2.0**power for power in powers]  # twelve decades, exact in binary
    present = data.draw(st.integers(0, len(powers)))
    found = existence(likelihoods, present)
    told = oracle.existence([Fraction(p) for p in likelihoods], present)
    assert all(abs(Fraction(float(x)) - y) <= y * Fraction(1, 10**12) for x, y in zip(found, told, strict=True))


@pytest.mark.parametrize(("members", "present", "decades"), [
    (400, 1, 12), (400, 40, 12), (400, 200, 12), (400, 360, 12), (400, 399, 12), (400, 120, 1), (300, 150, 100),
])  # fmt: skip
def test_existence_is_precise_for_large_skewed_groups(members: int, present: int, decades: int) -> None:
    random = np.random.default_rng(members + present)
    likelihoods = 10 ** random.uniform(-decades, 0, members)
    likelihoods[: members // 4] = likelihoods[0]  # some alike
    asked = [*np.argsort(likelihoods)[[0, 1, members // 2, -2, -1]], 0]
    found = existence(likelihoods, present)[asked]
    told = oracle.precise(likelihoods.tolist(), present, asked)
    assert all(abs(Decimal(float(x)) / y - 1) < Decimal("1e-12") for x, y in zip(found, told, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("decades", [1, 12])
def test_existence_is_precise_for_two_thousand_of_forty_five_thousand(decades: int) -> None:
    """Against the distribution of the number of others present, grown one by one in extended precision."""
    if np.finfo(np.longdouble).eps > 2e-19:
        pytest.skip("numpy has no extended precision here")
    likelihoods = 10 ** np.random.default_rng(0).uniform(-decades, 0, 45_000)
    asked = np.argsort(likelihoods)[[0, 100, 22_500, 44_000, -1]]
    found = existence(likelihoods, 2_000)[asked]
    told = [oracle.one_by_one(likelihoods, 2_000, int(k)) for k in asked]
    assert all(abs(np.longdouble(x) / y - 1) < 1e-12 for x, y in zip(found, told, strict=True))


def test_extended_precision_agrees_with_many_digits() -> None:
    likelihoods = 10 ** np.random.default_rng(1).uniform(-12, 0, 200)
    for k in (0, int(likelihoods.argmin()), int(likelihoods.argmax())):
        told = oracle.precise(likelihoods.tolist(), 30, [k])[0]
        assert float(oracle.one_by_one(likelihoods, 30, k)) == pytest.approx(float(told), rel=1e-14)


def test_the_existence_of_thousands_among_a_hundred_thousand_adds_up() -> None:
    random = np.random.default_rng(0)
    likelihoods = np.concatenate([10 ** random.uniform(-12, 0, 60_000), np.repeat([0.2, 0.01, 1e-7], 20_000)])
    found = existence(likelihoods, 4_000)
    assert found.sum() == pytest.approx(4_000, rel=1e-12)
    order = np.argsort(likelihoods)
    assert bool((np.diff(found[order]) >= -1e-15).all())  # Theorem 4: the likelier, the more probable


@given(st.lists(st.sampled_from([0.0, 1.0, 0.25, 1e-9]), min_size=1, max_size=8), st.integers(-300, 200))
def test_only_the_ratios_of_likelihoods_matter(likelihoods: list[float], power: int) -> None:
    possible = sum(p > 0 for p in likelihoods)
    if possible:
        scaled = [p * 2.0**power for p in likelihoods]
        for present in range(possible + 1):
            found = existence(likelihoods, present)
            assert existence(scaled, present) == pytest.approx(found, rel=1e-12)
            assert found.sum() == pytest.approx(present)


def test_nobody_and_everybody_present_are_certain() -> None:
    assert existence([0.5, 0.1], 0).tolist() == [0, 0]
    assert existence([0.5, 0.1], 2).tolist() == [1, 1]
    assert existence([0.5, 0.0, 0.1], 2).tolist() == [1, 0, 1]
    assert existence([0.3] * 7, 3).tolist() == [3 / 7] * 7
    assert existence([], 0).tolist() == []


@pytest.mark.parametrize(("likelihoods", "present", "words"), [
    ([0.5, -0.1], 1, "negative"), ([0.0, 0.0], 1, "all likelihoods are zero"), ([0.5, 0.1], 3, "more are present"),
    ([0.5, 0.0], 2, "positive likelihood"), ([0.5], -1, "whole number"), ([0.5], 0.5, "whole number"),
    ([0.5], True, "whole number"), ([float("nan")], 1, "finite"), ([[0.5]], 1, "list"), (["a"], 1, "numbers"),
    ([10**400, 1], 1, "numbers"),
])  # fmt: skip
def test_likelihoods_that_make_no_sense_are_refused(likelihoods: list[float], present: int, words: str) -> None:
    with pytest.raises(InputError, match=words):
        jali.presence.existence(likelihoods, present)


@pytest.mark.parametrize("tries", [150, pytest.param(3000, marks=pytest.mark.slow)])
def test_compiled_verdicts_are_those_of_existence(tries: int) -> None:
    random = np.random.default_rng(tries)
    seen = set()
    for _ in range(tries):
        distinct = int(random.integers(2, 40))
        likely = np.unique(10 ** random.uniform(-random.choice([1, 4, 12]), 0, distinct))
        many = random.integers(1, random.choice([2, 5, 400]), len(likely))
        if random.random() < 0.2:
            likely[0] = 0.0
        present = int(random.integers(1, many[likely > 0].sum() + 1))
        found = existence(np.repeat(likely, many), present)
        low, high = sorted(
            random.choice(np.append(found, [0.0, 1.0, present / many.sum()]), 2)
            + random.choice([-1e-4, 1e-4, -0.2, 0.2], 2)
        )
        low, high = max(low, 0.0), min(high, 1.0)
        start = np.array([0, len(likely)])
        told = bool(found.min() >= low and found.max() <= high)
        verdict = within_bounds(logs_of(likely), many, start, np.array([present]), np.array([low, high]))
        assert bool(verdict[0]) == told
        means = by_means(logs_of(likely), many, start, np.array([0]), np.array([present]), np.array([low, high]))[0]
        assert means == UNDECIDED or (means == HOLDS) == told
        seen.add((told, means == UNDECIDED))
        held = likely > 0
        twin = existences(np.log(likely[held]), many[held], np.array([0, held.sum()]), np.array([present]))
        assert twin == pytest.approx(existence(np.repeat(likely, many), present)[np.cumsum(many) - 1][held], rel=1e-12)
    assert seen == {(told, undecided) for told in (True, False) for undecided in (True, False)}


def test_what_the_means_of_a_group_tell_is_so(repeats: Callable[[int], int]) -> None:
    """Small groups by listing all subsets, also bounds that are met exactly, at 0 and at 1: never the wrong verdict."""
    random = np.random.default_rng(7)
    seen = set()
    for _ in range(repeats(3000)):
        members = int(random.integers(1, 9))
        powers = random.integers(-random.choice([1, 3, 12]), 1, members)
        present = int(random.integers(1, members + 1))
        exact = oracle.existence([Fraction(2) ** int(p) for p in powers], present)
        told = sorted({*exact, Fraction(0), Fraction(1), Fraction(int(random.integers(0, 9)), 8)})
        low, high = sorted(told[int(i)] for i in random.integers(0, len(told), 2))
        holds = all(low <= share <= high for share in exact)
        groups = np.array([1])  # the second of three groups; the others are not asked for
        likely = np.concatenate([[0.5], 2.0**powers, [0.25, 1.0]])
        means = by_means(
            np.log(likely), np.ones(len(likely), dtype=np.int64), np.array([0, 1, members + 1, members + 3]), groups,
            np.array([1, present, 1]), np.array([float(low), float(high)]),
        )[0]  # fmt: skip
        assert means == UNDECIDED or (means == HOLDS) == holds
        seen.add(int(means))
    assert seen == {FAILS, HOLDS, UNDECIDED}


def test_compiled_probabilities_are_precise_for_members_who_are_all_but_certain() -> None:
    """Likelihoods thirty decades apart, against rationals: also the least of them has twelve digits."""
    random = np.random.default_rng(5)
    for _ in range(60):
        likely = np.unique(10 ** random.uniform(-30, 0, int(random.integers(2, 12))))
        present = int(random.integers(1, len(likely) + 1))
        told = existences(
            np.log(likely), np.ones(len(likely), np.int64), np.array([0, len(likely)]), np.array([present])
        )
        exact = oracle.existence([Fraction(x) for x in likely.tolist()], present)
        assert told == pytest.approx([float(x) for x in exact], rel=1e-12, abs=0)


@given(st.lists(st.integers(-9_000, 9_000), min_size=2, max_size=8), st.data())
def test_existence_has_no_range_of_likelihoods(powers: list[int], data: st.DataObject) -> None:
    """Likelihoods thousands of decades apart, against rationals."""
    powers = sorted(set(powers))
    present = data.draw(st.integers(1, len(powers)))
    logs = np.array(powers) * np.log(2.0)
    told = existences(logs, np.ones(len(logs), np.int64), np.array([0, len(logs)]), np.array([present]))
    exact = oracle.existence([Fraction(2) ** power for power in powers], present)
    assert told == pytest.approx([float(x) for x in exact], rel=1e-11, abs=1e-22)  # ends below 1e-24 are cut off


@given(st.lists(st.integers(-1, 1), min_size=2, max_size=8), st.data())
def test_the_existence_of_floats_at_the_ends_of_their_range_is_precise(ends: list[int], data: st.DataObject) -> None:
    """From 1e-300 to 1e300, against rationals."""
    present = data.draw(st.integers(0, len(ends)))
    likely = [10.0 ** (300 * end) for end in ends]
    exact = oracle.existence([Fraction(x) for x in likely], present)
    assert existence(likely, present) == pytest.approx([float(x) for x in exact], rel=1e-12, abs=1e-200)


@given(st.sampled_from([1, 2, 110, 400]), st.integers(2, 6), st.integers(1, 6), st.randoms(use_true_random=False))
def test_a_group_of_any_number_of_columns_goes_to_the_furthest_step_that_holds(
    columns: int, people: int, steps: int, random: Any
) -> None:
    """The steps are tried one by one, in fractions: products of hundreds of shares have no range either."""
    codes = [[random.randrange(3) for _ in range(columns)] for _ in range(people)]
    codes = [row for i, row in enumerate(codes) if row not in codes[:i]]
    private = [1, *(random.randrange(2) for _ in codes[1:])]
    n, m = sum(private), len(codes)
    low, high = Fraction(n, m) / 4, 1 - Fraction(m - n, m) / 4  # exact, since a step may meet them exactly
    bounds = DeltaPresence(low, high)  # type: ignore[arg-type]
    texts = [tuple(map(str, row)) for row in codes]
    present = [row for row, here in zip(texts, private, strict=True) if here]
    furthest = 0
    for step in range(1, steps + 1):
        told = [oracle.shares(cell, {}) for cell in _moved(texts, present, Fraction(step, steps))]
        likely = [math.prod(told[c].get(text, Fraction(0)) for c, text in enumerate(row)) for row in texts]
        exact = oracle.existence(likely, n)
        if all(low <= p <= high for p in exact):
            furthest = step
    members = members_of(
        np.array(codes, np.int32), np.zeros(m, np.int64), np.ones(m, np.int64), np.array(private, np.int64)
    )
    assert moved(members, bounds, "exact", steps=steps).t.tolist() == [furthest]


# -- DeltaPresence --------------------------------------------------------------------------------------------------


def judged(matrix: list[list[int]], low: float, high: float) -> list[bool]:
    column = Sensitive(PRESENCE, ("absent", "present"))
    return [bool(x) for x in DeltaPresence(low, high).holds(dense(np.array(matrix), (column,)))]


def test_the_bounds_are_included_exactly() -> None:
    assert judged([[7, 3], [9, 1], [6, 4], [93, 7]], 0.1, 0.3) == [True, True, False, False]
    assert judged([[93, 7]], 0.07, 0.07) == [True]


def test_a_group_with_nobody_present_fails_a_lower_bound_and_an_empty_one_holds() -> None:
    assert judged([[5, 0], [0, 0]], 0.01, 1) == [False, True]
    assert judged([[5, 0]], 0, 0.5) == [True]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=5), bounds)
def test_merging_groups_within_the_bounds_stays_within(
    groups: list[tuple[int, int]], within: tuple[float, float]
) -> None:
    if all(judged([list(group) for group in groups], *within)):
        assert judged([[sum(a for a, _ in groups), sum(p for _, p in groups)]], *within) == [True]


@pytest.mark.parametrize(("low", "high"), [(0.5, 0.1), (-0.1, 0.5), (0.1, 1.5), ("a", 0.5), (0.1, None)])
def test_bounds_that_make_no_sense_are_refused(low: float, high: float) -> None:
    with pytest.raises(InputError):
        DeltaPresence(low, high)


def test_delta_presence_without_a_public_table_points_to_conceal() -> None:
    for make in (jali.generalize, jali.partition, jali.recode):
        with pytest.raises(InputError, match=r"jali\.conceal"):
            make(table(PEOPLE), [DeltaPresence(0.1, 0.5)])
    release = jali.generalize(table(PEOPLE), [jali.KAnonymity(2)])
    with pytest.raises(InputError, match=r"jali\.conceal"):
        jali.repair(release, [DeltaPresence(0.1, 0.5)])


def test_no_message_names_the_column_that_says_who_is_present() -> None:
    ill = table(PEOPLE * 2, illness=["flu", "cold"] * len(PEOPLE))
    hidden = jali.conceal(ill, table(PEOPLE * 4), low=0.1, high=0.9)
    plain = jali.generalize(ill, [jali.KAnonymity(2)])
    bounds = DeltaPresence(0.1, 0.5)
    for make, words in (
        (lambda: jali.MultiAttribute(bounds), r"jali\.conceal"),
        (lambda: jali.angelize(ill, bounds, k=2), r"jali\.conceal"),
        (lambda: jali.anatomize(ill, bounds), r"jali\.conceal"),
        (lambda: jali.marginals(ill, bounds), r"jali\.conceal"),
        (lambda: jali.audit([plain, hidden]), "a concealed release cannot be audited together"),
        (lambda: jali.audit([hidden, plain]), "a concealed release cannot be audited together"),
    ):
        with pytest.raises(InputError, match=words) as caught:
            make()
        assert PRESENCE not in str(caught.value)
        assert "x1f" not in repr(str(caught.value))


# -- conceal --------------------------------------------------------------------------------------------------------


def drawn(data: st.DataObject, public: list[tuple[str, str]]) -> list[tuple[str, str]]:
    places = data.draw(st.lists(st.sampled_from(range(len(public))), min_size=2, max_size=len(public), unique=True))
    return [public[i] for i in places]


@examples(1.5)
@given(publics, st.data(), bounds, st.sampled_from(["lattice", "partition"]))
def test_shifts_stay_within_the_bounds_and_never_cost_more(
    public: list[tuple[str, str]], data: st.DataObject, within: tuple[float, float], search: str
) -> None:
    """SPALM, PPALM, WPALM: each within the bounds by enumeration of the published texts, each no dearer than before."""
    private = drawn(data, public)
    low, high = (Fraction(str(bound)) for bound in within)
    costs, held, known = [], table(private), table(public)
    for shift in ("none", "bounds", "exact"):
        try:
            release = jali.conceal(held, known, low=within[0], high=within[1], search=search, shift=shift)
        except InfeasibleError:
            assert not low <= Fraction(len(private), len(public)) <= high
            return
        told = oracle.presence(cells(release), public, TREES)
        assert all(low <= p <= high for p in told)
        found = release.presence()
        assert found.probabilities == pytest.approx([float(p) for p in told], rel=1e-12)
        assert (found.low, found.high) == pytest.approx((float(min(told)), float(max(told))))
        costs.append(oracle.cost(cells(release), private, TREES))
    assert costs[1] <= costs[0] + 1e-9
    assert costs[2] <= costs[1] + 1e-9


@examples(1.5)
@given(publics, st.data(), bounds)
def test_the_lattice_finds_the_cheapest_node_within_the_bounds(
    public: list[tuple[str, str]], data: st.DataObject, within: tuple[float, float]
) -> None:
    private = drawn(data, public)
    low, high = (Fraction(str(bound)) for bound in within)
    best = oracle.best_levels(public, private, LEVELS, low=low, high=high)
    if best is None:
        with pytest.raises(InfeasibleError, match="of the whole public table a share of"):
            jali.conceal(table(private), table(public), low=within[0], high=within[1])
        return
    release = jali.conceal(table(private), table(public), low=within[0], high=within[1])
    assert oracle.cost(cells(release), private, TREES) == pytest.approx(best)


@examples(1.5)
@given(st.lists(st.sampled_from(PEOPLE), min_size=3, max_size=8), st.data(), st.integers(1, 4))
def test_with_steps_every_group_goes_to_the_furthest_step_that_holds(
    public: list[tuple[str, str]], data: st.DataObject, steps: int
) -> None:
    """One group: the steps are tried one by one by enumeration, and feasibility need not be monotone."""
    private = drawn(data, public)
    share = Fraction(len(private), len(public))
    low, high = float(share * Fraction(1, 2)), float(share + (1 - share) * Fraction(1, 2))
    grouped = {"colour": jali.suppress(), "shape": jali.suppress()}

    def whole(rows: list[tuple[str, str]]) -> Table:
        return jali.table(pa.table({"colour": [c for c, _ in rows], "shape": [s for _, s in rows]}), quasi=grouped)

    release = jali.conceal(whole(private), whole(public), low=low, high=high, shift="exact", steps=steps)
    if len(set(cells(release))) > 1:
        return
    exact_low, exact_high = Fraction(str(low)), Fraction(str(high))
    furthest = 0
    for step in range(1, steps + 1):
        told = oracle.presence([_moved(public, private, Fraction(step, steps))] * len(private), public, ({}, {}))
        if all(exact_low <= p <= exact_high for p in told):
            furthest = step
    expected = _moved(public, private, Fraction(furthest, steps))
    for cell, wanted in zip(cells(release)[0], expected, strict=True):
        assert oracle.shares(cell, {}) == oracle.shares(wanted, {})


def _moved(public: list[tuple[str, ...]], private: list[tuple[str, ...]], t: Fraction) -> tuple[str, ...]:
    """The cells of the only group, moved by t (Equation 3)."""
    result = []
    for column in range(len(public[0])):
        values = sorted({person[column] for person in public})
        even = Fraction(1, len(values))
        best = {v: Fraction(sum(p[column] == v for p in private), len(private)) for v in values}
        share = {v: even + t * (best[v] - even) for v in values}
        result.append("{" + ", ".join(f"{v}: {s}" for v, s in share.items() if s) + "}")
    return tuple(result)


def test_a_group_that_holds_again_further_on_is_moved_further() -> None:
    """Feasibility is not monotone: holds at 0.5, fails at 0.8, holds at 0.94, fails at 1."""
    people = [("a", "n", "p", "y"), ("a", "n", "r", "z"), ("b", "o", "p", "y"), ("c", "m", "q", "z")]
    public = [person for person, many in zip(people, (4, 2, 2, 1), strict=True) for _ in range(many)]
    private = [person for person, many in zip(people, (4, 0, 2, 1), strict=True) for _ in range(many)]

    def whole(rows: list[tuple[str, ...]]) -> Table:
        frame = pa.table({name: list(column) for name, column in zip("abcd", zip(*rows, strict=True), strict=True)})
        return jali.table(frame, quasi=dict.fromkeys("abcd", jali.suppress()))

    held = {}
    for t in (Fraction(1, 2), Fraction(52, 64), Fraction(60, 64), Fraction(1)):
        told = oracle.presence([_moved(public, private, t)] * len(private), public, [{}] * 4)
        held[t] = min(told) >= Fraction(1, 5) and max(told) <= Fraction(999, 1000)
    assert list(held.values()) == [True, False, True, False]
    # below 1, since everybody of some smaller group is present: there is one group only
    release = jali.conceal(whole(private), whole(public), low=0.2, high=0.999, shift="exact")
    frame = release.frame("arrow")
    assert release.groups.num_rows == 1
    shown = tuple(frame[name][0].as_py() for name in "abcd")
    share = oracle.shares(shown[0], {})["a"]  # from 1/3 to 4/7
    assert (share - Fraction(1, 3)) / (Fraction(4, 7) - Fraction(1, 3)) >= Fraction(60, 64)


def test_cells_are_those_of_the_public_group_and_never_tight_to_the_private_rows() -> None:
    """2 of 10 in 20-29 is 0.2; drawn tight to 20-22 it would be 0.67."""
    ages = [*range(20, 30), *range(40, 50)]
    public = jali.table(pa.table({"age": ages}), quasi={"age": jali.bands(10, 100)})
    private = jali.table(pa.table({"age": [20, 22, 41, 43]}), quasi={"age": jali.bands(10, 100)})
    for search in ("lattice", "partition"):
        release = jali.conceal(private, public, low=0.1, high=0.25, search=search)
        assert release.presence().probabilities.tolist() == [0.2] * 20
        assert {text[:3] for text in release.frame("arrow")["age"].to_pylist()} <= {"[20", "[40", "20-", "40-"}


def test_a_group_without_private_rows_is_allowed_only_without_a_lower_bound() -> None:
    public, private = [PEOPLE[0]] * 4 + [PEOPLE[-1]] * 4, [PEOPLE[0]] * 2
    apart = jali.conceal(table(private), table(public), low=0, high=0.5)
    assert apart.presence().probabilities.tolist() == [0.5] * 4 + [0.0] * 4
    assert apart.presence().outside == 4
    together = jali.conceal(table(private), table(public), low=0.1, high=0.5)
    assert together.presence().probabilities.tolist() == [0.25] * 8


def test_a_saved_release_tells_the_same_presence_and_does_not_hold_the_public_table(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    public = [PEOPLE[i] for i in random.integers(0, len(PEOPLE), 60)]
    private = public[:20]
    for number, shift in enumerate(("none", "exact")):
        release = jali.conceal(
            table(private, illness=["flu", "cold"] * 10),
            table(public),
            low=0.05,
            high=0.8,
            search="partition",
            shift=shift,
        )
        folder = release.save(tmp_path / str(number))
        assert {path.name for path in folder.iterdir()} == {"data.csv", "manifest.json"}
        loaded = jali.load(folder)
        assert loaded.kind == "concealed"
        with pytest.raises(InputError, match="public"):
            loaded.presence()
        with pytest.raises(InputError, match=r"release\.beside\(public\)"):
            loaded.save(tmp_path / "again")
        found = loaded.presence(public=table(public))
        assert np.array_equal(found.probabilities, release.presence().probabilities)
        loaded.verify(public=table(public))
        loaded.beside(table(public)).save(tmp_path / f"again{number}")
        assert jali.audit(release).kept == {"DeltaPresence(0.05, 0.8)": True}
        assert jali.audit(loaded).kept == {}
        assert any("DeltaPresence" in note for note in jali.audit(loaded).notes)
        with pytest.raises(InputError, match="public"):
            pickle.loads(pickle.dumps(release)).presence()


def test_beside_the_public_table_the_files_do_not_tell_which_of_two_private_tables_it_was(tmp_path: Path) -> None:
    """Of A, A and B two are present. The KL-divergence would say which two: ln 2 for A and A, 0 for A and B."""
    public = jali.table(pa.table({"job": ["A", "A", "B"]}), quasi=["job"])
    files = []
    for number, present in enumerate((["A", "A"], ["A", "B"])):
        private = jali.table(pa.table({"job": present}), quasi=["job"])
        release = jali.conceal(private, public, low=0, high=0.7)
        folder = release.save(tmp_path / str(number))
        assert "KL-divergence: see jali.measure" in repr(jali.load(folder))
        files.append({path.name: path.read_bytes() for path in folder.iterdir()})
    assert files[0] == files[1]


def test_measures_are_the_same_whether_the_public_table_is_at_hand_or_not(tmp_path: Path) -> None:
    """Cells name values that nobody of the private table has; the KL cost is that of the published texts."""
    public = jali.table(pa.table({"job": ["a", "b", "c", "d", None] * 4}), quasi=["job"])
    private = jali.table(pa.table({"job": ["a", "b", "b", None]}), quasi=["job"])
    for number, shift in enumerate(("none", "exact")):
        release = jali.conceal(private, public, low=0.01, high=0.5, shift=shift, show="pdf")
        loaded = jali.load(release.save(tmp_path / str(number)))
        published = [(text,) for text in release.frame("arrow")["job"].to_pylist()]
        told = oracle.cost(published, [("a",), ("b",), ("b",), ("missing",)], [{}])
        assert jali.measure(release, private).kl_cost == pytest.approx(told)
        assert jali.measure(loaded, private).kl_cost == pytest.approx(told)


def test_a_release_beside_another_public_table_is_refused_or_found_out() -> None:
    public, private = PEOPLE * 3, PEOPLE[:4]
    release = jali.conceal(table(private), table(public), low=0, high=0.5)
    with pytest.raises(InputError, match="more rows than the public table has people"):
        release.presence(public=table([PEOPLE[-1]] * 3))
    with pytest.raises(InputError, match="against this public table the release does not keep"):
        release.verify(public=table(private))
    with pytest.raises(InternalError, match="does not keep"):
        release.beside(table(private)).verify()


def test_a_manifest_without_bounds_is_not_verified(tmp_path: Path) -> None:
    release = jali.conceal(table(PEOPLE[:4]), table(PEOPLE), low=0, high=0.9)
    path = release.save(tmp_path / "out") / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | {"principles": []}), encoding="utf-8")
    with pytest.raises(InputError, match="promises no bounds"):
        jali.load(path.parent).verify(public=table(PEOPLE))


def test_the_public_table_may_have_other_columns_in_another_order_and_rows_that_stand_for_several() -> None:
    """What is told is the same; a table that is none is refused."""
    random = np.random.default_rng(7)
    public = [PEOPLE[i] for i in random.integers(0, len(PEOPLE), 60)]
    held = table(public[:20], illness=["flu", "cold"] * 10)
    release = jali.conceal(held, table(public), low=0.05, high=0.8, shift="exact")
    told = release.presence().probabilities
    frame = pa.table({"id": list(range(60)), "shape": [s for _, s in public], "colour": [c for c, _ in public]})
    other = jali.table(frame, quasi={"shape": jali.taxonomy(SHAPE), "colour": jali.taxonomy(COLOUR)})
    assert release.presence(public=other).probabilities == pytest.approx(told, rel=1e-12)
    assert jali.conceal(held, other, low=0.05, high=0.8, shift="exact").presence().probabilities == pytest.approx(told)
    many = table(sorted(set(public)))
    many = many.take(np.arange(many.records), np.array([public.count(person) for person in sorted(set(public))]))
    counted = jali.conceal(held, many, low=0.05, high=0.8, shift="exact").presence()
    assert sorted(counted.probabilities) == pytest.approx(sorted(told), rel=1e-12)
    some = sorted(set(public[:20]))
    rows = table(some).take(np.arange(len(some)), np.array([public[:20].count(person) for person in some]))
    assert jali.conceal(rows, many, low=0.05, high=0.8, shift="exact").presence().high == pytest.approx(told.max())
    for call in (
        lambda: release.presence(public=frame), lambda: release.beside(frame), lambda: release.verify(public=frame),
        lambda: jali.conceal(held, frame, low=0, high=1), lambda: jali.conceal(frame, other, low=0, high=1),
    ):  # fmt: skip
        with pytest.raises(InputError, match="must be a jali table"):
            call()


@examples(1.5)
@given(st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("xyz")), min_size=3, max_size=9), st.data(), bounds)
def test_what_measure_tells_of_undeclared_columns_is_the_cost_of_the_published_texts(
    public: list[tuple[str, str]], data: st.DataObject, within: tuple[float, float]
) -> None:
    """Cells name values that nobody of the private table has; sets, even distributions, PPALM, WPALM: never dearer."""
    private = drawn(data, public)

    def plain(rows: list[tuple[str, str]]) -> Table:
        frame = pa.table({"colour": [a for a, _ in rows], "shape": [b for _, b in rows]})
        return jali.table(frame, quasi={"colour": jali.suppress(), "shape": jali.suppress()})

    own, known, costs = plain(private), plain(public), []
    everything = [{"*": tuple({person[i] for person in public})} for i in (0, 1)]
    for shift, show in (("none", None), ("none", "set"), ("none", "pdf"), ("bounds", None), ("exact", None)):
        try:
            release = jali.conceal(own, known, low=within[0], high=within[1], shift=shift, show=show)
        except InfeasibleError:
            return
        costs.append(jali.measure(release, own).kl_cost)
        assert costs[-1] == pytest.approx(oracle.cost(cells(release), private, everything), abs=1e-9)
    assert costs[1] == pytest.approx(costs[2], abs=1e-9)
    assert all(b <= a + 1e-9 for a, b in pairwise(costs))


def test_nobody_can_tell_from_a_release_what_the_algorithm_tells() -> None:
    release = jali.conceal(table(PEOPLE[:4]), table(PEOPLE), low=0, high=0.9, shift="exact")
    assert "reversibility" in repr(release)
    assert "holds the public table" in repr(release)
    assert release.manifest.method["resolution"] == "1/1024"


# -- what is refused ------------------------------------------------------------------------------------------------


def test_a_private_row_that_is_not_public_is_named_by_its_row_and_not_by_its_values() -> None:
    public = [PEOPLE[0]] * 3 + [PEOPLE[1]]
    for private, row in (([PEOPLE[0], PEOPLE[5]], 2), ([PEOPLE[1], PEOPLE[0], PEOPLE[1]], 3)):
        with pytest.raises(InputError, match=f"row {row} of the private table") as problem:
            jali.conceal(table(private), table(public), low=0, high=1)
        assert private[-1][0] not in str(problem.value)
        assert private[-1][0] in problem.value.with_value()


def test_numbers_meet_whatever_their_types() -> None:
    public = jali.table(pa.table({"age": pa.array([1.0, 2.0, 3.0, None])}), quasi=["age"])
    private = jali.table(pa.table({"age": pa.array([2, None], pa.int32())}), quasi=["age"])
    assert jali.conceal(private, public, low=0, high=1).presence().probabilities.tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize(("arguments", "words"), [
    ({"low": 0.5, "high": 0.1}, "low must not be above high"),
    ({"search": "latice"}, "lattice"),
    ({"shift": "exactly"}, "exact"),
    ({"show": "sets"}, "set"),
    ({"shift": "exact", "show": "set"}, "distributions"),
    ({"shift": "exact", "steps": 0}, "steps"),
    ({"shift": "exact", "steps": 1.5}, "steps"),
    ({"shift": "exact", "steps": 10**7}, "from 1 to 1,000,000"),
    ({"steps": 10}, "steps"),
])  # fmt: skip
def test_arguments_that_make_no_sense_are_refused(arguments: dict[str, object], words: str) -> None:
    given = {"low": 0.1, "high": 0.9} | arguments
    with pytest.raises(InputError, match=words):
        jali.conceal(table(PEOPLE[:6]), table(PEOPLE), **given)


def test_bounds_that_cannot_be_met_say_what_the_whole_table_reaches() -> None:
    with pytest.raises(InfeasibleError, match=r"0\.25"):
        jali.conceal(table(PEOPLE[:3]), table(PEOPLE), low=0.3, high=0.9)


def test_columns_that_do_not_fit_are_refused() -> None:
    public = table(PEOPLE)
    other = jali.table(pa.table({"colour": ["red", "red"]}), quasi=["colour"])
    with pytest.raises(InputError, match='no quasi-identifier "shape"'):
        jali.conceal(other, public, low=0, high=1)
    with pytest.raises(InputError, match='no quasi-identifier "shape"'):
        jali.conceal(table(PEOPLE[:2]), other, low=0, high=1)
    with pytest.raises(InputError, match="stands in the public table too"):
        jali.conceal(table(PEOPLE[:2], ward=["a", "b"]), table(PEOPLE, ward=["a"] * 12), low=0, high=1)
    unnamed = jali.table(pa.table({"colour": ["red"] * 2, "ward": ["a", "b"]}), quasi=["colour"])
    named = jali.table(pa.table({"colour": ["red"] * 2, "ward": ["a", "b"]}), quasi=["colour"], sensitive=["ward"])
    with pytest.raises(InputError, match="stands in the public table too"):
        jali.conceal(named, unnamed, low=0, high=1)
    person = jali.table(pa.table({"colour": ["red"] * 3, "id": [1, 1, 2]}), quasi=["colour"], person="id")
    for pair in ((person, unnamed), (unnamed, person)):
        with pytest.raises(InputError, match="one row per person"):
            jali.conceal(*pair, low=0, high=1)


@pytest.mark.parametrize("search", ["lattice", "partition"])
def test_a_public_value_that_looks_like_every_value_is_refused(search: str) -> None:
    public = jali.table(pa.table({"job": ["a", "b", "*"] * 6}), quasi=["job"])
    private = jali.table(pa.table({"job": ["a", "b"] * 3}), quasi=["job"])
    with pytest.raises(InputError, match="stands for every value"):
        jali.conceal(private, public, low=0.1, high=0.6, search=search, show="set")


def test_cells_that_overlap_are_refused_and_such_that_are_the_same_are_one_group(tmp_path: Path) -> None:
    def aged(ages: list[int]) -> Table:
        return jali.table(pa.table({"age": ages}), quasi={"age": jali.bands(10)})

    ages = [20, 21, 22, 23, 24] * 4 + [25] * 3 + [31] * 17  # cut between 24 and 25: 20-29, and *
    with pytest.raises(InputError, match="overlap"):
        jali.conceal(aged([20, 21, 31, 31]), aged(ages), low=0.05, high=0.2, search="partition", show="taxonomy")
    ages = [20, 21, 22, 23, 24] * 4 + [25, 26, 27, 28] * 5
    release = jali.conceal(aged([20, 21, 26, 28]), aged(ages), low=0.05, high=0.2, search="partition", show="taxonomy")
    assert jali.load(release.save(tmp_path / "one")).groups.num_rows == 1


def covers(cell: str, value: str, cells: Iterable[str]) -> bool:
    """Whether a published cell covers a value, both read as text: 3, [2, 3], {2, 3}, 1* or *.

    Other values are those that no cell names.
    """
    if cell.startswith("["):
        low, high = cell[1:-1].split(", ")
        return int(low) <= int(value) <= int(high)
    if cell.startswith("{"):
        named = {name for one in cells for name in one.strip("{}").split(", ")}
        return value in cell[1:-1].split(", ") or ("other values" in cell and value not in named)
    return cell == "*" or (len(cell) == len(value) and all(c in ("*", v) for c, v in zip(cell, value, strict=True)))


@given(st.lists(st.tuples(st.integers(20, 27), st.sampled_from(["x1", "x2", "y1"])), min_size=4, max_size=9), st.data())
def test_a_public_frame_is_looked_up_in_every_table_whose_groups_do_not_overlap(
    people: list[tuple[int, str]], data: st.DataObject
) -> None:
    """A frame or file brings no hierarchies; those that the manifest tells of, or the cells themselves, are enough."""
    inside = data.draw(st.lists(st.sampled_from(range(len(people))), unique=True, min_size=2, max_size=len(people)))
    town = pa.table({"age": [age for age, _ in people], "zip": [code for _, code in people]})
    quasi = {"age": data.draw(st.sampled_from([jali.bands(2, 4), jali.bands(2, 4, low=20, high=27), jali.suppress()]))}
    private = jali.table(town.take(sorted(inside)), quasi={**quasi, "zip": jali.mask()})
    show = data.draw(st.sampled_from([None, "set", "taxonomy", "lattice"]))
    if show == "lattice":
        release: Any = jali.generalize(private, [jali.KAnonymity(2)])
    else:
        release = jali.partition(private, [jali.KAnonymity(2)], show=show)
    shown = Counter((str(row["age"]), row["zip"]) for row in release.tables["data"].to_pylist())
    ages, codes = ({cell[side] for cell in shown} for side in (0, 1))
    within = {c: [covers(c[0], str(a), ages) and covers(c[1], z, codes) for a, z in people] for c in shown}
    if any(sum(own) > 1 for own in zip(*within.values(), strict=True)):
        with pytest.raises(InputError, match="overlap"):
            jali.audit(release, public_table=town)
        return
    expected = [
        sum(shown[cell] / sum(own) for cell, own in within.items() if own[person]) for person in range(len(people))
    ]
    found = jali.audit(release, public_table=town).presence
    assert found is not None
    assert found.probabilities == pytest.approx(expected)


def test_an_audit_beside_the_public_table_tells_the_presence_of_everybody() -> None:
    """Of a plain generalization too, which promises none; of other kinds the error says what to do."""
    rows = [PEOPLE[i] for i in (0, 1, 2, 3, 6, 7)]
    public, private = table([*PEOPLE, *PEOPLE]), table(rows, ill=["flu", "cold"] * 3)
    release = jali.generalize(private, [jali.KAnonymity(2)])
    found = jali.audit(release, public_table=public)
    assert found.presence is not None
    told = oracle.presence(
        list(zip(*(release.frame("arrow")[name].to_pylist() for name in ("colour", "shape")), strict=True)),
        [*PEOPLE, *PEOPLE], TREES,
    )  # fmt: skip
    assert found.presence.probabilities == pytest.approx([float(p) for p in told])
    assert found.to_dict()["presence"]["outside"] == sum(p == 0 for p in told)
    assert set(found.kept) == {"KAnonymity(2)"}
    assert jali.audit(release).presence is None
    with pytest.raises(InputError, match=r"not defined for an angel release; try the attack"):
        jali.audit(jali.angelize(private, [jali.FrequencyDiversity(1.5)], k=2), public_table=public)
    with pytest.raises(InputError, match="one release"):
        jali.audit(private, public_table=public)
