"""Curve: the maximum disclosure against the number of facts that an attacker knows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from jali.charts import Picture, lines
from jali.encoding.native import to_native


@dataclass(frozen=True, repr=False)
class Curve:
    """The maximum disclosure for each number of facts k, by implications and by negations alone."""

    k: tuple[int, ...]
    implications: tuple[float, ...]  # (ks,)
    negations: tuple[float, ...]  # (ks,)

    def to_dict(self) -> dict[str, list[Any]]:
        """Plain lists by name."""
        return {"k": list(self.k), "implications": list(self.implications), "negations": list(self.negations)}

    def frame(self, kind: str = "arrow") -> Any:
        """A frame with a row for each k: "arrow", "pandas" or "polars"."""
        return to_native(pa.table(self.to_dict()), kind)

    def picture(self, *, about: str = "somebody's value") -> Picture:
        """Both curves as a picture."""
        return lines(
            self.k,
            {"any facts (implications)": self.implications, "values ruled out (negations)": self.negations},
            title=f"How sure of {about} an attacker with more facts can be",
            description="; ".join(
                f"{k} facts: {implied:.1%} by implications, {negated:.1%} by negations"
                for k, implied, negated in zip(self.k, self.implications, self.negations, strict=True)
            ),
            labels=("facts that the attacker knows", "maximum disclosure"),
            most=1,
        )

    def plot(self, path: str | Path) -> Path:
        """Draw both curves into a file; its ending says in which form, .svg or .png."""
        return self.picture().save(path)

    def __repr__(self) -> str:
        lines = [" k  implications  negations"]
        rows = zip(self.k, self.implications, self.negations, strict=True)
        return "\n".join(lines + [f"{k:>2}  {implied:12.4f}  {negated:9.4f}" for k, implied, negated in rows])
