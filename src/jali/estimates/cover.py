"""Cover: what a published cell may stand for, as far as an analyst knows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Cover:
    """What each node of a column covers, as far as it was published.

    Where the values are known (`values`), `node_of[value]` is their node and -1 stands for no node but the root.
    Otherwise a node may be an interval, a masked text, or nothing that is known.
    """

    values: pa.Array | None = None  # the known domain
    node_of: Ints | None = None  # (values,)
    low: NDArray[np.float64] | None = None  # (nodes,) nan where a node is no interval
    high: NDArray[np.float64] | None = None  # (nodes,)
    whole: bool = True  # whether the intervals hold whole numbers
    masked: bool = False  # whether labels are masks: 130**
    root: int | None = None  # the node that covers everything, if it occurs
