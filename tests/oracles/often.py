"""How often laws are tried: a few times by `make test`, often by `make test-slow`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st

T = TypeVar("T")

FEW, MANY = 5, 100
"""Examples of a law that asks for nothing else: in `make test`, in `make test-slow`."""

seeds = st.integers(0, 2**31)
"""Where a law draws its table with numpy: the seed of the generator."""


def examples(times: float) -> Callable[[Any], Any]:
    """Try a law on this many times as many examples as the run gives every law."""
    return settings(max_examples=max(1, round(times * settings().max_examples)))


def repeated(most: int) -> int:
    """How often a law repeats a loop of its own: `most` times in `make test-slow`, else a fifth of that."""
    return most if settings().max_examples >= MANY else max(1, most // 5)


def first_often(values: Sequence[T]) -> list[Any]:
    """Parameters of which the fast tests try the first, and the slow ones all."""
    return [values[0], *(pytest.param(value, marks=pytest.mark.slow) for value in values[1:])]
