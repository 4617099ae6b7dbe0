"""Laws that are tried a few times in every run, and often by `make test-slow`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import settings

MANY = 150


def often(few: int) -> Callable[[Any], Any]:
    """Try a law on `few` examples; under the profile of the slow tests on many, as one of them."""
    if settings().max_examples < MANY:
        return settings(max_examples=few)
    return lambda law: pytest.mark.slow(settings(max_examples=MANY)(law))
