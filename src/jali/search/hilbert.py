"""The Hilbert curve: an order of points in which neighbours in the order are neighbours in space."""

from __future__ import annotations

import numpy as np

from jali.principles.counts import Ints

MOST_BITS = 62  # of a place on the curve


def hilbert(point: Ints, bits: int) -> Ints:
    """The place on the curve of each point with coordinates below 2^bits: (points,) from (points, dimensions).

    Gray code and the rotations of the curve undone from the coarsest bit to the finest (Skilling 2004).

    >>> square = np.array([[0, 0], [0, 1], [1, 1], [1, 0]])
    >>> hilbert(square, 1)
    array([0, 1, 2, 3])
    """
    x = point.T.astype(np.int64).copy()  # (dimensions, points)
    for bit in range(bits - 1, 0, -1):
        one = np.int64(1) << bit
        low = one - 1
        for d in range(len(x)):
            turned = (x[d] & one) != 0
            swap = np.where(turned, 0, (x[0] ^ x[d]) & low)
            x[0] ^= np.where(turned, low, swap)
            x[d] ^= swap
    for d in range(1, len(x)):
        x[d] ^= x[d - 1]
    gray = np.zeros_like(x[0])
    for bit in range(bits - 1, 0, -1):
        one = np.int64(1) << bit
        gray ^= np.where((x[-1] & one) != 0, one - 1, 0)
    x ^= gray
    place = np.zeros(x.shape[1], dtype=np.int64)
    for bit in range(bits - 1, -1, -1):
        for d in range(len(x)):
            place = (place << 1) | ((x[d] >> bit) & 1)
    return place
