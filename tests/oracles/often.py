"""How often laws are tried: a few times by `make test`, often by `make test-slow`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

FEW, MANY = 20, 100
"""Examples of a law that asks for nothing else: in `make test`, in `make test-slow`."""

seeds = st.integers(0, 2**31)
"""Where a law draws its table with numpy: the seed of the generator."""


def examples(times: float) -> Callable[[Any], Any]:
    """Try a law on so many times the examples of the profile; hypothesis takes no such share by itself."""
    return settings(max_examples=max(1, round(times * settings().max_examples)))


def repeated(most: int) -> int:
    """How often a law repeats a loop of its own: `most` times in `make test-slow`, else in proportion."""
    share = min(1.0, settings().max_examples / MANY)
    return max(1, round(share * most))
