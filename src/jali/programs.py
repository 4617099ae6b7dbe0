"""Linear and integer programs: the least and the most that a weighted sum of unknown counts can be (HiGHS, via scipy).

An attacker, or an analyst, knows sums of unknown counts. What follows for another sum is a pair of programs. A pair
that is not solved in time still gives proved bounds, and says that they are not exact.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jali.errors import InternalError

TOLERANCE = 1e-6
"""What HiGHS may miss a whole number or a bound by; ranges are widened by this much before they are rounded inwards."""

_OPTIMAL, _STOPPED, _INFEASIBLE, _UNBOUNDED = 0, 1, 2, 3


class Range(NamedTuple):
    """What a sum lies between. `exact`: both ends are reached; otherwise they are only proved not to be passed."""

    low: float
    high: float
    exact: bool


class Best(NamedTuple):
    """The largest value of a sum that was found: a proved limit, whether it is reached, and unknowns that come near."""

    limit: float  # no x passes it
    exact: bool
    x: NDArray[np.float64] | None  # (unknowns,) the best that was found; None where time ran out before there was one


@dataclass(frozen=True, eq=False)
class Sums:
    """What is known of unknown amounts x ≥ 0: low ≤ A·x ≤ high for each row of the sparse matrix A."""

    unknowns: int
    row: NDArray[np.int64]  # (entries,) which known sum
    unknown: NDArray[np.int64]  # (entries,) which unknown it counts
    low: NDArray[np.float64]  # (sums,)
    high: NDArray[np.float64]  # (sums,)
    weight: NDArray[np.float64] | None = None  # (entries,) how often it counts it; once by default
    most: NDArray[np.float64] | None = None  # (unknowns,) the largest each unknown can be; no limit by default
    whole: bool = True  # whether the unknowns are whole numbers (and the sums asked for have whole weights)

    def range_of(self, objective: NDArray[np.float64], *, deadline: float = math.inf) -> Range | None:
        """The range of objective·x, or None where no x fits. `deadline` is a time of `time.monotonic`."""
        least = self._least(np.asarray(objective, dtype=np.float64), deadline)
        if least is None:
            return None
        most = self._least(-np.asarray(objective, dtype=np.float64), deadline)
        if most is None:  # only where a solver contradicts itself within its tolerance
            raise InternalError("a program was feasible one way and infeasible the other")
        return Range(least[0], -most[0], least[1] and most[1])

    def feasible(self, *, deadline: float = math.inf) -> bool | None:
        """Whether any x fits; None where time ran out before that was known."""
        found = self._least(np.zeros(self.unknowns), deadline)
        return None if found is not None and not found[1] else found is not None

    def best(self, objective: NDArray[np.float64], *, deadline: float = math.inf, gap: float = 0.0) -> Best | None:
        """An x with the largest objective·x, or one within a share `gap` of it; None where no x fits."""
        found = self._least(-np.asarray(objective, dtype=np.float64), deadline, gap)
        return None if found is None else Best(-found[0], found[1], found[2])

    def _least(
        self, objective: NDArray[np.float64], deadline: float, gap: float = 0.0
    ) -> tuple[float, bool, NDArray[np.float64] | None] | None:
        """A proved lower bound of objective·x, whether it is reached, and the best x; None where no x fits."""
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import csr_array

        seconds = deadline - time.monotonic()
        if seconds <= 0:
            return -math.inf, False, None
        weight = np.ones(len(self.row)) if self.weight is None else self.weight
        matrix = csr_array((weight, (self.row, self.unknown)), shape=(len(self.low), self.unknowns))
        limits = {} if math.isinf(seconds) else {"time_limit": seconds}
        result = milp(
            objective,
            integrality=np.full(self.unknowns, int(self.whole)),
            bounds=Bounds(0, np.inf if self.most is None else self.most),
            constraints=[LinearConstraint(matrix, self.low, self.high)] if len(self.low) else [],
            options={"mip_rel_gap": gap, **limits},
        )
        if result.status == _INFEASIBLE:
            return None
        if result.status == _UNBOUNDED:
            return -math.inf, True, None
        done = result.status == _OPTIMAL
        x = None if result.x is None else np.asarray(result.x, dtype=np.float64)
        bound = result.fun if done and (gap == 0 or not self.whole) else result.mip_dual_bound
        if bound is None or math.isnan(bound):
            return -math.inf, False, x
        bound = float(math.ceil(bound - TOLERANCE)) if self.whole and math.isfinite(bound) else float(bound)
        return bound, done and (gap == 0 or bound == result.fun), x
