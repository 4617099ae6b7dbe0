"""Collections of marginals on the census table: pricing, judging, searching, fitting, publishing."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from benchmarks.table import show, timed

FOUR = ("race", "sex", "age", "marital-status")
SEVEN = (*FOUR, "education", "workclass", "native-country")


def _problem(table: Any, promises: tuple[Any, ...]) -> Any:
    from jali.graphical.marginal import Cache
    from jali.graphical.maxent import Divergence
    from jali.graphical.privacy.privacy import Checker, columns_of
    from jali.graphical.search import Problem

    cache = Cache.of(table)
    return Problem(Divergence(cache), Checker(cache, promises, columns_of(table)))


def _walked(problem: Any, wanted: int) -> list[tuple[int, ...]]:
    """Different decomposable collections, met on a random walk over cliques that are safe by themselves."""
    from jali.graphical.graph import Model

    random = np.random.default_rng(0)
    alone = set(problem.candidates())
    found: dict[frozenset[int], tuple[int, ...]] = {}
    model = Model.of(problem.chains, ())
    while len(found) < wanted:
        moves = list(model.moves())
        after = model.after(moves[random.integers(len(moves))])
        if set(after.cliques) <= alone:
            model = after
            if model.cliques:
                found.setdefault(frozenset(model.cliques), model.cliques)
    return list(found.values())


def run() -> None:
    """Print the tables."""
    import jali
    from jali.graphical.maxent import fit

    promises = (jali.KAnonymity(6), jali.EntropyDiversity(6))
    table = jali.datasets.census(quasi=FOUR)
    problem = _problem(table, promises)
    collections = _walked(problem, 1000)
    timed(lambda: [problem.kl(one) for one in collections])
    price, _ = timed(lambda: [problem.kl(one) for one in collections], repeat=3)
    fresh = _problem(table, promises)
    judge, safe = timed(lambda: sum(fresh.safe(one) and fresh.kl(one) is not None for one in collections))
    show(
        f"1,000 decomposable collections of {table.rows:,} people, four quasi-identifiers, k = 6 and entropy 6",
        ["KL of one, marginals kept (ms)", "all judged and priced, nothing kept (s)", "safe"],
        [[price, judge, safe]],
    )
    rows = []
    for names in (FOUR, SEVEN):
        census = jali.datasets.census(quasi=names)
        base = jali.generalize(census, promises)
        seconds, release = timed(lambda c=census, b=base: jali.inject(c, b, promises))
        free, scratch = timed(lambda c=census: jali.marginals(c, promises))
        kls = [float(one.manifest.metrics["kl"]) for one in (base, release, scratch)]
        rows.append([len(names), seconds, free, *kls])
    show("Seconds", ["columns", "inject", "marginals", "KL of the base", "injected", "from scratch"], rows)
    pairs = [
        problem.divergence.cache.domain.marginal(dict.fromkeys(p, 0)) for p in combinations((*FOUR, "occupation"), 2)
    ]
    seconds, found = timed(lambda: fit(problem.divergence.cache, pairs, tolerance=1e-9))
    show(
        "All two-way marginals of five columns, fitted to a largest gap of 1e-9",
        ["cells", "rounds", "gap", "seconds"],
        [[f"{found.p.size:,}", found.rounds, f"{found.gap:.1e}", seconds]],
    )
