"""jali.presence: whether somebody of a public table can be told to be in a private one."""

from __future__ import annotations

from jali.releases.presence import Presence
from jali.search.presence.existence import existence

__all__ = ["Presence", "existence"]
