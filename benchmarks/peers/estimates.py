"""mbi's estimate of a distribution from exact marginals beside jali's: the same marginals, the same table."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

import jali
from benchmarks.table import show, timed
from jali.graphical.marginal import Cache, Marginal
from jali.graphical.maxent import fit, log_probability, tree_of

COLUMNS = ("race", "sex", "age", "marital-status")
SENSITIVE = "occupation"
DECOMPOSABLE = (
    ("age", "occupation"),
    ("age", "marital-status"),
    ("marital-status", "sex"),
    ("race", "sex"),
)
CLOSE = 1e-3
"""mbi runs on, its iterations doubled each time, until its KL comes so near to jali's, in nats, or up to MOST."""
MOST = 64_000


def marginals(frame: Any) -> None:
    """A decomposable collection and all pairs of five columns: seconds and KL-divergence of both estimates.

    The seconds of both are for the estimate and the probability of every cell of the table, from which the KL comes.
    """
    table = jali.table(frame, quasi=dict.fromkeys(COLUMNS, jali.suppress()), sensitive=[SENSITIVE])
    cache = Cache.of(table)
    work = {
        "decomposable": (DECOMPOSABLE, MOST),
        "all pairs": (tuple(combinations((*COLUMNS, SENSITIVE), 2)), 1000),
    }
    rows = []
    for name, (cliques, most) in work.items():
        collection = [cache.domain.marginal(dict.fromkeys(clique, 0)) for clique in cliques]
        seconds, log = timed(lambda c=collection: _ours(cache, c), repeat=3)
        own = _divergence(cache, log)
        for iterations, first, again, theirs in _theirs(cache, collection, own, most):
            ratio = "" if first is None else f"{first / seconds:,.0f}"
            rows.append([name, iterations, "" if first is None else f"{first:.3f}", again, theirs])
            rows[-1] += [f"{seconds:.4f}", own, ratio, f"{again / seconds:,.0f}"]
    show(
        f"mbi's estimate and jali's, {table.rows:,} rows, five columns",
        ["marginals", "iterations", "mbi first s", "again s", "KL", "jali s", "KL ", "ratio first", "ratio again"],
        rows,
    )


def _ours(cache: Cache, collection: list[Marginal]) -> Any:
    """The log-probability of every cell of the table, from the marginals alone."""
    own = Cache(cache.domain, tuple(cache.counts(marginal) for marginal in collection))
    cells = cache.sources[0].cells
    tree = tree_of(own.domain, collection)
    if tree is not None:
        return log_probability(own, tree, cells)
    return np.log(fit(own, collection, tolerance=1e-9).p[tuple(cells.T)])


def _theirs(cache: Cache, collection: list[Marginal], own: float, most: int) -> Any:
    """Iterations, seconds of the first call (which compiles) and of another one, and the KL."""
    import jax

    jax.config.update("jax_enable_x64", True)
    from mbi import Domain, LinearMeasurement, estimation

    names, sizes = cache.domain.names, [attribute.nodes[0] for attribute in cache.domain.attributes]
    given = []
    for marginal in collection:
        counts = cache.counts(marginal)
        people = np.zeros([sizes[i] for i in marginal.attributes])
        people[tuple(counts.cells.T)] = counts.n
        given.append(LinearMeasurement(people.ravel(), tuple(names[i] for i in marginal.attributes)))
    domain, iterations, theirs = Domain(names, sizes), 1000, np.inf
    while iterations <= most and theirs > own + CLOSE:

        def work(iters: int = iterations) -> Any:
            model = estimation.MirrorDescent().estimate(domain, given, iters=iters)
            p = np.asarray(jax.block_until_ready(model.project(names).datavector(flatten=False)))
            with np.errstate(divide="ignore"):
                return np.log(p[tuple(cache.sources[0].cells.T)] / p.sum())

        first = timed(work)[0] if iterations == 1000 else None
        again, log = timed(work, repeat=3)
        theirs = _divergence(cache, log)
        yield iterations, first, again, theirs
        iterations *= 2


def _divergence(cache: Cache, log: Any) -> float:
    """KL(table ‖ estimate) in nats."""
    share = cache.sources[0].n / cache.total
    return float(share @ (np.log(share) - log))
