"""What scipy computes for us: linear and integer programs (HiGHS), flows, and quantiles.

An attacker, or an analyst, knows sums of unknown counts. What follows for another sum is a pair of programs. A pair
that is not solved in time still gives proved bounds, and says that they are not exact.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from jali.core.arrays import Bools, Floats, Ints
from jali.errors import InputError

TOLERANCE = 1e-6
"""What HiGHS may miss a whole number or a bound by; ranges are widened by this much before they are rounded inwards."""

_OPTIMAL, _STOPPED, _INFEASIBLE, _UNBOUNDED = 0, 1, 2, 3


GAP = 0.2
"""A world that is nearly as far away as any will do where it is only asked what differs there."""


class Best(NamedTuple):
    """The largest that a sum can be: a proved limit, whether it is reached, and unknowns that reach or come near it."""

    limit: float  # no x passes it
    exact: bool
    x: Floats | None  # (unknowns,) the best that was found; None where time ran out before there was one


@dataclass(frozen=True, eq=False)
class Sums:
    """What is known of unknown amounts x ≥ 0: low ≤ A·x ≤ high for each row of the sparse matrix A."""

    unknowns: int
    row: Ints  # (entries,) which known sum
    unknown: Ints  # (entries,) which unknown it counts
    low: Floats  # (sums,)
    high: Floats  # (sums,)
    weight: Floats | None = None  # (entries,) how often it counts it; once by default
    most: Floats | None = None  # (unknowns,) the largest each unknown can be; no limit by default
    whole: bool = True  # whether the unknowns are whole numbers (and the sums asked for have whole weights)

    def feasible(self, *, deadline: float = math.inf) -> bool | None:
        """Whether any x fits; None where time ran out before that was known."""
        best = self.best(np.zeros(self.unknowns), deadline=deadline)
        return None if best is not None and not best.exact else best is not None

    def best(self, objective: Floats, *, deadline: float = math.inf, gap: float = 0.0) -> Best | None:
        """A proved upper bound of objective·x, and an x that reaches it or comes near it; None where no x fits.

        With `gap` the search ends at an x within that share of the largest.
        """
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import csr_array

        seconds = deadline - time.monotonic()
        if seconds <= 0:
            return Best(math.inf, exact=False, x=None)
        weight = np.ones(len(self.row)) if self.weight is None else self.weight
        matrix = csr_array((weight, (self.row, self.unknown)), shape=(len(self.low), self.unknowns))
        limits = {} if math.isinf(seconds) else {"time_limit": seconds}
        result = milp(
            -np.asarray(objective, dtype=np.float64),
            integrality=np.full(self.unknowns, int(self.whole)),
            bounds=Bounds(0, np.inf if self.most is None else self.most),
            constraints=[LinearConstraint(matrix, self.low, self.high)] if len(self.low) else [],
            options={"mip_rel_gap": gap, **limits},
        )
        if result.status == _INFEASIBLE:
            return None
        if result.status == _UNBOUNDED:
            return Best(math.inf, exact=True, x=None)
        done = result.status == _OPTIMAL
        x = None if result.x is None else np.asarray(result.x, dtype=np.float64)
        bound = result.fun if done and (gap == 0 or not self.whole) else result.mip_dual_bound
        unproved = not done and not self.whole  # a linear program that was stopped has proved nothing
        if unproved or bound is None or math.isnan(bound):
            return Best(math.inf, exact=False, x=x)
        rounded = float(math.ceil(bound - TOLERANCE) if self.whole and math.isfinite(bound) else bound)
        return Best(-rounded, done and (gap == 0 or rounded == result.fun), x)

    def certain(self, at: Ints, asked: Bools, *, deadline: float) -> tuple[Bools, bool]:
        """Which of the unknowns asked for are what `at` says in every x; each of them is there 0 or the most it can be.

        Each program looks for an x that is as far as possible from `at`; what differs there is not certain, and once
        nothing can differ the rest is proved. The flag says that time was enough: otherwise what is left is not proved,
        and nothing is called certain. Where no x fits at all, everything stays as it was asked.
        """
        assert self.most is not None
        still, gap = asked.copy(), GAP
        while still.any():
            away = np.where(at > 0, -1.0, 1.0) * still
            best = self.best(away, deadline=deadline, gap=gap)
            if best is None or best.limit - float(away @ at) < 1 - TOLERANCE:
                return still, True
            differs = still & (False if best.x is None else np.abs(best.x - at) > 0.5)
            if differs.any():
                still &= ~differs
            elif gap == 0:  # time ran out
                return np.zeros_like(asked), False
            else:
                gap = 0.0
        return still, True

    def parts(self) -> Ints:
        """The part of each unknown: unknowns of different parts have no sum in common, nor any chain of sums."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import connected_components

        sums = len(self.low)
        ties = csr_array((np.ones(len(self.row)), (self.row, self.unknown + sums)), shape=(sums + self.unknowns,) * 2)
        part: Ints = connected_components(ties, directed=False)[1][sums:].astype(np.int64)
        return part

    def where(self, kept: Bools) -> Sums:
        """The same of some unknowns alone, which must be whole parts of them."""
        entries = kept[self.unknown]
        sums, row = np.unique(self.row[entries], return_inverse=True)
        unknown = np.cumsum(kept)[self.unknown[entries]] - 1
        weight = None if self.weight is None else self.weight[entries]
        most = None if self.most is None else self.most[kept]
        return Sums(
            int(kept.sum()), row.reshape(-1), unknown, self.low[sums], self.high[sums], weight, most, self.whole
        )


def largest_flow(supply: Ints, demand: Ints, source: Ints, sink: Ints) -> Ints:
    """How much leaves each source in a largest flow along the edges, (edges,) each, to sinks: (sources,).

    No source gives more than its supply, and no sink takes more than its demand.
    """
    if not len(source):
        return np.zeros(len(supply), dtype=np.int64)
    return np.asarray(_flow(supply, demand, source, sink)[[-2], :].toarray()[0, : len(supply)], dtype=np.int64)


def transport(have: Ints, need: Ints, source: Ints, target: Ints) -> Ints | None:
    """How much goes along each way from a source to a target so that all needs are met; None where that cannot be."""
    total = int(have.sum())
    if total != int(need.sum()):
        return None
    flow = _flow(have, need, source, target)
    if int(flow[[-2], :].sum()) < total:
        return None
    amounts: Ints = np.asarray(flow[source, target + len(have)], dtype=np.int64).reshape(-1)
    return amounts


def possible_ways(have: Ints, need: Ints, source: Ints, target: Ints) -> Bools | None:
    """Which ways carry something in at least one transport that meets all needs; None where there is no transport.

    A way that one transport does not use is used by another if and only if amounts can be moved around a circle through
    it: if both of its ends are in one strong component of the residual graph.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    amounts = transport(have, need, source, target)
    if amounts is None:
        return None
    used, there, nodes = amounts > 0, target + len(have), len(have) + len(need)
    tail, head = np.concatenate([source, there[used]]), np.concatenate([there, source[used]])
    ties = csr_array((np.ones(len(tail)), (tail, head)), shape=(nodes, nodes))
    part = connected_components(ties, directed=True, connection="strong")[1]
    found: Bools = used | (part[source] == part[there])
    return found


def _flow(supply: Ints, demand: Ints, source: Ints, sink: Ints) -> Any:
    """A largest flow from the last node but one, through sources and sinks, to the last: (nodes, nodes), sparse."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_flow

    if int(max(supply.sum(), demand.sum())) >= 2**31:
        raise InputError("flows of more than 2,147,483,647 people are not computed", do="ask of fewer columns")
    sources, nodes = len(supply), len(supply) + len(demand) + 2
    tail = np.concatenate([np.full(sources, nodes - 2), source, sources + np.arange(len(demand))])
    head = np.concatenate([np.arange(sources), sources + sink, np.full(len(demand), nodes - 1)])
    room = np.concatenate([supply, np.minimum(supply[source], demand[sink]), demand]).astype(np.int32)
    return maximum_flow(csr_array((room, (tail, head)), shape=(nodes, nodes)), nodes - 2, nodes - 1).flow


def beta_quantile(share: float, a: float, b: float) -> float:
    """Where the distribution function of Beta(a, b) reaches the share."""
    from scipy.special import betaincinv

    return float(betaincinv(a, b, share))
