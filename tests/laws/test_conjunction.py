"""Laws of conjunctions that are asked column by column: the short ways say what the long way says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from jali.core.arrays import combine, counted
from jali.cover import sets
from jali.cover.cover import Cover
from jali.estimates import conditions as conjunction
from jali.estimates.conditions import BoxColumn, Separate, by_column, fitting_boxes, of_nodes, truth_of
from jali.estimates.linked import LinkedEstimate
from jali.query import tree as q

TEXTS = ["a", "b", "c", "d", "e", ""]


def random_sets(random: np.random.Generator, *, texts: bool) -> Cover:
    """Overlapping sets of texts or numbers, now and then with the missing value, or with shares of their own."""
    some = TEXTS[: int(random.integers(1, 7))] if texts else list(range(int(random.integers(1, 7))))
    values = pa.array(some + [None] * int(random.random() < 0.4), pa.string() if texts else pa.int64())
    members = [
        random.choice(len(values), int(random.integers(1, len(values) + 1)), replace=False)
        for _ in range(int(random.integers(1, 9)))
    ]
    share = None
    if random.random() < 0.5:
        weights = [random.integers(1, 5, len(own)).astype(float) for own in members]
        share = np.concatenate([own / own.sum() for own in weights])
    return Cover.sets(values, np.cumsum([0, *map(len, members)]), np.concatenate(members), share)


def random_test(random: np.random.Generator, name: str, *, texts: bool) -> q.Test:
    """A test that fits the column; some of its literals are nobody's."""
    literals = [*TEXTS, "z"] if texts else list(range(-1, 8))
    op = str(random.choice(["in", "=", "null", "<", ">=", *(["like"] if texts else [])]))
    if op == "null":
        return q.Test(name, "null", None)
    if op == "in":
        chosen = random.choice(len(literals), int(random.integers(1, 4)), replace=False)
        return q.Test(name, "in", [literals[i] for i in chosen])
    return q.Test(name, op, literals[int(random.integers(len(literals)))])  # type: ignore[arg-type]


def long_way(column: BoxColumn, parts: tuple[q.Condition, ...]) -> tuple[Any, ...]:
    """Share, sure, maybe and doubtful of each node by the patterns that all tests have together."""
    asked = q.simplify(q.And(parts))
    own = tuple(dict.fromkeys(q.tests(asked)))
    patterns = column.cover.patterns(own)
    return (*of_nodes(asked, own, patterns), patterns.possible.sum(axis=0) > 1)


@pytest.mark.parametrize("small", [0, 1 << 16])
def test_what_sets_hold_is_what_their_patterns_say(
    small: int, repeats: Callable[[int], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the last bit, with a table of members or without one, for several tests too."""
    monkeypatch.setattr(sets, "_SMALL", small)
    for seed in range(repeats(1500)):
        random = np.random.default_rng(seed)
        texts = bool(random.integers(2))
        cover = random_sets(random, texts=texts)
        column = BoxColumn("a", "text" if texts else "number", "quasi", cover, np.arange(cover.nodes))
        parts = tuple(random_test(random, "a", texts=texts) for _ in range(int(random.integers(1, 4))))
        if cover.values is not None and cover.values.null_count == len(cover.values):
            continue
        found = truth_of(column, parts)
        for name, one, other in zip(
            ("share", "sure", "maybe", "doubtful"), vars_of(found), long_way(column, parts), strict=True
        ):
            np.testing.assert_array_equal(one, other, err_msg=f"{name} {seed} {parts}")


def vars_of(truth: conjunction.Truth) -> tuple[Any, ...]:
    return truth.share, truth.sure, truth.maybe, truth.doubtful


def random_cover(random: np.random.Generator) -> Cover:
    """Numbers in cells of any sort; with a root that is a guess, or of which nothing is known."""
    kind = int(random.integers(4))
    if kind == 0:
        return random_sets(random, texts=False)
    if kind == 1:
        ends = np.sort(random.integers(0, 7, (6, 2)), axis=1)
        return Cover.intervals(ends[:, 0], ends[:, 1], True)
    if kind == 2:
        numbers = pa.array(range(6), pa.int64())
        return Cover.grouped(numbers, random.integers(0, 3, 6), 4, root=3, declared=bool(random.integers(2)))
    return Cover.intervals([0, 2, 4, np.nan], [1, 3, 9, np.nan], True)


def random_estimate(random: np.random.Generator) -> LinkedEstimate:
    """One to four columns of any sort, several links, two sensitive columns."""
    rows, links = int(random.integers(20, 200)), int(random.integers(1, 6))
    link = np.concatenate([np.arange(links), random.integers(0, links, rows - links)])
    covers = [random_cover(random) for _ in range(int(random.integers(1, 5)))]
    shown = [
        BoxColumn(name, "number", "quasi", cover, random.integers(0, cover.nodes, rows))
        for name, cover in zip("abcd", covers, strict=False)
    ]
    values = np.column_stack([random.integers(0, 4, rows), random.integers(0, 3, rows)])
    entries, count = np.unique(np.column_stack([link, values]), axis=0, return_counts=True)
    exact = Cover.exact(pa.array(range(4), pa.int64()))
    hidden = [BoxColumn(name, "number", "sensitive", exact, entries[:, 1 + i]) for i, name in enumerate("st")]
    weight = None if random.random() < 0.5 else random.integers(1, 4, links).astype(np.float64)
    number, first = combine([*((c.codes, c.cover.nodes) for c in shown), (link, int(link.max()) + 1)], len(link))
    boxes = tuple(replace(column, codes=column.codes[first]) for column in shown)
    return LinkedEstimate(boxes, link[first], counted(number), tuple(hidden), entries[:, 0], count, weight)


def random_conjunction(random: np.random.Generator, names: list[str]) -> q.Condition:
    parts = []
    for name in names:
        for _ in range(int(random.integers(1, 3))):
            test: q.Condition = random_test(random, name, texts=False)
            parts.append(q.Or((test, random_test(random, name, texts=False))) if random.random() < 0.2 else test)
    return q.And(tuple(parts))


def test_boxes_by_stems_are_those_that_fit_one_by_one(repeats: Callable[[int], int]) -> None:
    """The same people of the same links, with the same shares; those that show the same are made one."""
    for seed in range(repeats(400)):
        random = np.random.default_rng(30_000 + seed)
        estimate = random_estimate(random)
        names = [column.name for column in estimate.shown]
        separate = by_column(q.simplify(random_conjunction(random, names)))
        assert separate is not None
        truths = [truth_of(column, separate[column.name]) for column in estimate.shown]
        box, share, surely = fitting_boxes(estimate.shown, truths)
        separately = Separate(estimate.shown, estimate.link, estimate.people.astype(np.float64))
        for _ in range(2):  # the second time from what was kept
            short = separately.ask(separate)
            assert short.boxes.people.sum() == estimate.people.sum()
            people, likely = estimate.people[box], np.where(surely, 1.0, share) * estimate.people[box]
            for link in range(len(estimate.size)):
                here, there = estimate.link[box] == link, short.link == link
                assert people[here].sum() == short.maybe[there].sum()
                assert people[here & surely].sum() == short.sure[there].sum()
                np.testing.assert_allclose(short.value[there].sum(), likely[here].sum(), rtol=1e-12)


@pytest.mark.parametrize(("few", "rare"), [(2, 0), (64, 4), (64, 10**9)])
def test_a_conjunction_says_column_by_column_what_it_says_as_a_whole(
    few: int, rare: int, repeats: Callable[[int], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Estimate, bounds, and what they rest on, however few boxes are looked at first, and whether all sums are kept."""
    monkeypatch.setattr(conjunction, "_FEW", few)
    monkeypatch.setattr(conjunction, "_RARE", rare)
    several = 0
    for seed in range(repeats(300)):
        random = np.random.default_rng(40_000 + seed)
        estimate = random_estimate(random)
        names = [column.name for column in estimate.shown]
        asked = q.simplify(random_conjunction(random, [name for name in names if random.random() < 0.8] or names))
        separate = by_column(asked)
        assert separate is not None
        having = estimate._by_value.having(random.random(len(estimate._by_value.first)) < 0.5)
        short, long = estimate._of_columns(separate, having), estimate._both(asked, having)
        np.testing.assert_allclose(short[0], long[0], rtol=1e-9, atol=1e-12, err_msg=f"{seed}")
        assert short[1:3] == pytest.approx(long[1:3])
        assert short[3] == long[3], (seed, asked)
        several += len(short[3]) > 1
    assert several > repeats(300) / 10
