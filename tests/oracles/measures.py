"""Measures as their definitions say them, for a table and a node of its lattice."""

from __future__ import annotations

from jali.encoding.table import Table
from jali.releases.generalized import Generalized
from oracles.lattice import BruteForce

METRICS = ("kl", "discernibility", "average", "height", "loss")


def measures(table: Table, release: Generalized) -> dict[str, float]:
    """Every cost of the release's node, and of the groups that its promises make it suppress."""
    oracle = BruteForce(table, release.principles)
    node = tuple(release.levels[column.name] for column in table.quasi)
    hidden = oracle.suppressed(node, table.rows)
    assert hidden is not None
    result = {metric: oracle.cost(metric, node, hidden) for metric in METRICS}
    shares = [oracle._share(i, node, hidden) for i in range(len(node))]
    return result | {"granularity": 1 - sum(shares) / len(shares)}
