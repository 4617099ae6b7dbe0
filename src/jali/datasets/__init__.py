"""Tables to try jali on: a synthetic census, and the real Adult table where you have it."""

from __future__ import annotations

from jali.datasets.occupations import occupations as occupations
from jali.datasets.tables import adult, census

__all__ = ["adult", "census", "occupations"]
