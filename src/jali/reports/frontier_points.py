"""Points of a frontier: what a method costs at a strength, and what it keeps of the requirement."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from jali.principles.base import plain
from jali.principles.parameters import Number
from jali.reports.frontier_methods import Met

Verdict = Literal["all", "otherwise", "part", "none"]
"""All is kept as it reads; all, but some of it in another sense; not all; there is no release."""


class Part(NamedTuple):
    """A principle of the requirement, whether it is met, and in which sense."""

    principle: str
    met: Met
    sense: str


@dataclass(frozen=True)
class Point:
    """A method at a strength; without a release there is a reason, and no figures."""

    method: str
    strength: Number
    kl: float | None = None  # nats
    error: float | None = None  # the mean relative error of the workload; None where it is not defined
    parts: tuple[Part, ...] = ()
    seconds: float = 0.0
    reason: str | None = None
    undefined: str | None = None  # why there is a release and yet no query error

    @property
    def verdict(self) -> Verdict:
        """How much of the requirement it meets."""
        if self.reason is not None:
            return "none"
        met = {part.met for part in self.parts}
        return "part" if "no" in met else "otherwise" if "otherwise" in met else "all"

    @property
    def meets(self) -> str:
        """The same in words."""
        broken = ", ".join(part.principle for part in self.parts if part.met == "no")
        words = {"all": "all", "otherwise": "all, in a sense of its own", "part": f"not {broken}", "none": "no release"}
        return words[self.verdict]

    @property
    def sense(self) -> str:
        """In which sense each principle is met, or why not."""
        return "; ".join(f"{part.principle}: {part.sense}" for part in self.parts)

    @property
    def rank(self) -> tuple[float, float]:
        """The lower the better: KL-divergence (as good as equal in nine decimals is equal), then query error."""
        kl = math.inf if self.kl is None else round(self.kl, 9)
        return kl, math.inf if self.error is None else self.error

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "method": self.method,
            "strength": plain(self.strength),
            "kl": self.kl,
            "error": self.error,
            "meets": self.meets,
            "verdict": self.verdict,
            "parts": [part._asdict() for part in self.parts],
            "seconds": self.seconds,
            "reason": self.reason,
            "undefined": self.undefined,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], strength: Number) -> Point:
        """From plain values; the strength is the one that was asked for, as it was written."""
        parts = tuple(Part(**part) for part in data["parts"])
        figures = (data["kl"], data["error"], parts, data["seconds"], data["reason"], data["undefined"])
        return cls(data["method"], strength, *figures)
