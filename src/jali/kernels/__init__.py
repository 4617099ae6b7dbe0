"""Compiled loops, the only room that knows numba.

This file has what they work on and needs no numba: plain tuples of arrays, and the numbers that name their rows.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jali.core.arrays import Floats, Ints

LITTLE = 2_000_000
"""Steps of a compiled loop that plain Python takes within a second or so. Each caller says roughly how many it has."""

FEW = 1_500
"""Combinations that the searches without kernels group within a second or so."""

LOOKS = 10_000_000
"""Nodes of a lattice, times its combinations and a thousand, that are searched without kernels in about as long."""


def are_loaded() -> bool:
    """Whether this process has loaded numba, which takes longer than little work without it."""
    return "numba" in sys.modules


CUTS = 8
"""How many cuts of an ordered column are judged before the next column's turn: those nearest to the median."""


DIGITS = 1e9
"""Entropies and KL-divergences are compared to nine decimals, so that those which are equal count as equal."""


SIZE, OFFSET, SPREAD, WORD, WORDS, NODES, JOINT = range(7)
"""The rows of `Layout.column`."""


class Layout(NamedTuple):
    """Combinations, the taxonomy above each of their codes, and what a box costs each of its rows.

    Level l of code v of a column stands at its offset + l · size + v of `node`, `number`, `mark` and `cost`. A set of m
    values costs `cost[spread + m]`; `column[WORDS]` is the number of words of its bits.
    """

    codes: NDArray[np.int32]  # (combinations, columns)
    rows: Ints  # (combinations,) what costs are multiplied by
    people: Ints  # (combinations,) what promises are about; persons who are in several combinations count in each
    column: Ints  # (7, columns): values, offset, where the costs of sets begin, first word of its bits, how many
    #               words, nodes of all levels, where their joint costs begin
    node: NDArray[np.int32]
    mark: Ints  # a random number of each node: the sum over columns tells the classes of a lattice node apart
    cost: Floats  # of the smallest node that covers a group, then of sets, for each of its rows
    number: NDArray[np.int32]  # of each node among those of all levels of its column
    joint: Floats  # what the smallest node that covers two nodes costs; empty where there are too many
    words: int  # of all columns; 0 where boxes are products of taxonomy nodes, not of sets
    logs: bool  # whether a group of n rows costs n (cost − log n), as KL has it, or n · cost


TOLERANCE = 1e-12
"""What `existence` may be off by, relatively; a bound met exactly counts as met."""
