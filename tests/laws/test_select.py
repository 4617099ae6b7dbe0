"""Laws of the search for a collection: it finds what judging every collection finds, and keeps what it was given."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import chain, combinations, count, product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

import jali
from jali.encoding.table import Table
from jali.errors import InfeasibleError, InputError
from jali.graphical import search as selecting
from jali.graphical.graph import decomposable, largest
from jali.graphical.marginal import Cache
from jali.graphical.maxent import Divergence
from jali.graphical.privacy.privacy import Checker, check, columns_of
from jali.graphical.search import SEARCHES, Problem, select, walk
from jali.principles.base import Principle
from oracles.often import seeds

TREE = [("a", "x", "*"), ("b", "x", "*"), ("c", "y", "*")]
PROMISES: list[tuple[Principle, ...]] = [
    (jali.KAnonymity(2),),
    (jali.KAnonymity(3), jali.DistinctDiversity(2)),
    (jali.KAnonymity(2), jali.EntropyDiversity(1.6)),
    (jali.RecursiveDiversity(2, 2),),
    (jali.KAnonymity(2), jali.TCloseness(0.4)),
]


def tables(seed: int) -> Table:
    """Two quasi-identifiers and a sensitive column that depend on each other."""
    random = np.random.default_rng(seed)
    rows = int(random.integers(8, 60))
    tree = random.integers(0, 3, rows)
    sex = (tree + random.integers(0, 2, rows)) % 2
    ill = (sex + random.integers(0, 3, rows)) % 3
    data = {
        "tree": [TREE[i][0] for i in tree],
        "sex": [["f", "m"][i] for i in sex],
        "ill": [["flu", "cold", "cancer"][i] for i in ill],
    }
    quasi = {"tree": jali.taxonomy(TREE), "sex": jali.suppress()}
    return jali.table(pa.table(data), quasi=quasi, sensitive=["ill"])


def problem_of(table: Table, promises: tuple[Principle, ...], **given: object) -> Problem:
    cache = Cache.of(table)
    return Problem(Divergence(cache), Checker(cache, promises, columns_of(table)), **given)  # type: ignore[arg-type]


def every_collection(problem: Problem) -> list[tuple[int, ...]]:
    """All decomposable collections of marginals that do not contain each other, by trying every set."""
    offsets = np.cumsum([0, *problem.chains])
    prefixes = [
        [0, *(((1 << r) - 1) << int(o) for r in range(1, c + 1))] for c, o in zip(problem.chains, offsets, strict=False)
    ]
    masks = [sum(parts) for parts in product(*prefixes)]
    masks = [mask for mask in masks if mask]
    sets = chain.from_iterable(combinations(masks, size) for size in range(1, 5))
    return [some for some in sets if len(largest(some)) == len(some) and decomposable(some)]


@given(seeds)
def test_exhaustive_is_the_best_of_all_safe_decomposable_collections(seed: int) -> None:
    """Against every set of up to four marginals (there are no larger ones here that do not contain each other)."""
    table, promises = tables(seed), PROMISES[seed % len(PROMISES)]
    problem = problem_of(table, promises)
    safe = []
    for some in every_collection(problem):
        verdict = check(problem.marginals(some), problem.divergence.cache, promises, columns=columns_of(table))
        if verdict.holds:
            safe.append(problem.kl(some))
    if not safe:
        with pytest.raises(InfeasibleError):
            select(problem, "exhaustive")
        return
    found = select(problem, "exhaustive")
    assert found.kl == pytest.approx(min(one for one in safe if one is not None), abs=1e-12)
    assert found.verdict.holds


def test_greedy_comes_within_five_per_cent_of_exhaustive(repeats: Callable[[int], int]) -> None:
    """On small tables; and what greedy and a short walk return is safe, decomposable and no better than the best."""
    for seed in range(repeats(100)):
        greedy_is_near_the_best(seed)


def greedy_is_near_the_best(seed: int) -> None:
    table, promises = tables(seed + 100), PROMISES[seed % len(PROMISES)]
    try:
        best = select(problem_of(table, promises), "exhaustive")
    except InfeasibleError:
        with pytest.raises(InfeasibleError):
            select(problem_of(table, promises))
        return
    found = select(problem_of(table, promises))
    assert best.kl - 1e-12 <= found.kl <= best.kl * 1.05 + 1e-9
    walked = problem_of(table, promises)
    way = walked.marginals(walk(walked, seed, steps=100))
    for marginals in (found.marginals, way):
        assert check(marginals, Cache.of(table), promises, columns=columns_of(table)).holds
    kl = walked.kl([walked.divergence.cache.domain.mask(marginal) for marginal in way])
    assert kl is not None
    assert kl >= best.kl - 1e-12


@pytest.mark.slow
def test_a_longer_walk_finds_the_best_of_small_problems() -> None:
    """Within five per cent, on each of ten tables."""
    for seed in range(10):
        best = select(problem_of(tables(seed), PROMISES[2]), "exhaustive")
        problem = problem_of(tables(seed), PROMISES[2])
        kl = problem.kl(walk(problem, seed, steps=1500))
        assert kl is not None
        assert kl <= best.kl * 1.05 + 1e-9


@pytest.mark.parametrize("search", SEARCHES)
def test_the_base_is_kept_and_sensitive_marginals_are_limited(
    search: selecting.Search, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A base stays among the marginals (or a finer one does); `max_sensitive` is never exceeded."""
    monkeypatch.setattr(selecting, "WALK_STEPS", 200)
    for seed in range(12):
        table = tables(seed)
        promises = (jali.KAnonymity(2),)
        cache = Cache.of(table)
        base = cache.domain.mask(cache.domain.marginal({"tree": 1, "ill": 0}))
        problem = problem_of(table, promises, base=base)
        if problem.safe((base,)):
            found = select(problem, search)
            assert any(cache.domain.of_mask(base).within(marginal) for marginal in found.marginals)
            assert found.kl <= (problem.kl((base,)) or 0) + 1e-12
        else:
            with pytest.raises(InfeasibleError, match="base"):
                select(problem, search)
        for most in (0, 1):
            few = select(problem_of(table, promises, max_sensitive=most), search)
            assert sum(marginal.levels[2] == 0 for marginal in few.marginals) <= most


def test_a_walk_is_the_same_for_the_same_seed_and_takes_other_ways_for_others() -> None:
    """Anything random takes a seed."""
    table = tables(3)
    runs = [walk(problem_of(table, (jali.KAnonymity(2),)), seed, steps=60) for seed in (1, 1)]
    assert runs[0] == runs[1]


def test_a_search_stops_when_its_time_is_over_or_its_watcher_raises() -> None:
    """What is returned then is safe, and says that it is not complete."""
    table = tables(3)
    late = problem_of(table, (jali.KAnonymity(2),), deadline=time.monotonic() + 0.02)
    found = select(late, "walk")
    assert not found.complete
    assert found.verdict.holds

    for search in SEARCHES:
        with pytest.raises(InfeasibleError, match="time was over"):
            select(problem_of(table, (jali.KAnonymity(2),), deadline=time.monotonic() - 1), search)

    def stop(done: int, total: int) -> None:
        assert 0 <= done <= total
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        select(problem_of(table, (jali.KAnonymity(2),), on_step=stop))


@pytest.mark.parametrize("search", SEARCHES)
def test_whenever_the_time_is_over_the_best_safe_collection_so_far_is_returned(
    search: selecting.Search, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing that was judged safe is better than what is returned; the clock ticks with every look at it."""
    ticks = count()
    monkeypatch.setattr(time, "monotonic", lambda: float(next(ticks)))
    returned = 0
    for budget in (5, 40, 150, 600):
        problem = problem_of(tables(3), (jali.KAnonymity(3),), deadline=time.monotonic() + budget)
        try:
            found = select(problem, search)
        except InfeasibleError:
            assert not any(problem._safe.values())
            continue
        returned += 1
        assert found.verdict.holds
        assert not found.complete or not problem.late
        safe = [problem.kl(tuple(key)) for key, holds in problem._safe.items() if holds]
        assert found.kl == pytest.approx(min(kl for kl in safe if kl is not None))
    assert returned >= 2


def test_bad_requests_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that does not exist, too many models, a limit that is no number, promises nobody can keep."""
    table = tables(3)
    with pytest.raises(InputError, match="choose one of greedy"):
        select(problem_of(table, (jali.KAnonymity(2),)), "best")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="max_sensitive"):
        problem_of(table, (jali.KAnonymity(2),), max_sensitive=-1)
    with pytest.raises(InfeasibleError):
        select(problem_of(table, (jali.KAnonymity(table.rows),), max_sensitive=0))
    monkeypatch.setattr(selecting, "MOST_MODELS", 3)
    with pytest.raises(InputError, match="fewer columns"):
        select(problem_of(table, (jali.KAnonymity(2),)), "exhaustive")
