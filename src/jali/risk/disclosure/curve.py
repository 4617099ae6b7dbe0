"""Curve: the maximum disclosure against the number of facts that an attacker knows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from jali.core.charts import Picture, lines
from jali.core.formats import to_native
from jali.errors import InputError, listed, told
from jali.releases.base import Bound


def several(ks: Iterable[int]) -> tuple[int, ...]:
    """The numbers of facts that a curve is asked for, at least one."""
    asked = listed(ks)
    if not asked or any(isinstance(k, str) for k in asked):
        raise InputError("a curve needs a list of numbers k", got=repr(told(ks)), do="write e.g. range(14)")
    return asked


@dataclass(frozen=True, repr=False)
class Curve:
    """The maximum disclosure for each number of facts k, by implications and by negations alone.

    `kind` says whether it is "exact", or "at most" because an attacker cannot always tell who is in a group.
    """

    k: tuple[int, ...]
    implications: tuple[float, ...]  # (ks,)
    negations: tuple[float, ...]  # (ks,)
    kind: Bound = "exact"

    def to_dict(self) -> dict[str, Any]:
        """Plain lists by name, and the kind."""
        return self._columns() | {"kind": self.kind}

    def _columns(self) -> dict[str, Any]:
        return {"k": list(self.k), "implications": list(self.implications), "negations": list(self.negations)}

    def frame(self, kind: str = "arrow") -> Any:
        """A frame with a row for each k: "arrow", "pandas" or "polars"."""
        return to_native(pa.table(self._columns()), kind)

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
            labels=("facts that the attacker knows", f"maximum disclosure{', at most' * (self.kind == 'at most')}"),
            most=1,
        )

    def plot(self, path: str | Path) -> Path:
        """Draw both curves into a file; its ending says in which form, .svg or .png."""
        return self.picture().save(path)

    def __repr__(self) -> str:
        lines = [" k  implications  negations"]
        rows = zip(self.k, self.implications, self.negations, strict=True)
        lines += [f"{k:>2}  {implied:12.4f}  {negated:9.4f}" for k, implied, negated in rows]
        if self.kind == "at most":
            lines.append("Upper bounds: groups overlap, so an attacker cannot always tell who is in which group.")
        return "\n".join(lines)
