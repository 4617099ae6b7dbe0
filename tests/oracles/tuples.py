"""Suppressing tuples by trying every way: the fewest that leave a group which keeps its promises, or nothing."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable


def fewest(values: Counter[str], keeps: Callable[[Counter[str]], bool]) -> int:
    """How many tuples must go at the least, over every choice of tuples."""
    names = sorted(values)
    best = values.total()  # nobody is left
    for stay in itertools.product(*(range(values[name] + 1) for name in names)):
        left = Counter({name: n for name, n in zip(names, stay, strict=True) if n})
        if left and keeps(left):
            best = min(best, values.total() - left.total())
    return best
