"""Curve: the maximum disclosure against the number of facts that an attacker knows."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa

from jali.encoding.native import to_native
from jali.errors import InputError
from jali.risk.disclosure_kind import Kind


@dataclass(frozen=True, repr=False)
class Curve:
    """The maximum disclosure for each number of facts k, by implications and by negations alone.

    `kind` says whether it is "exact", or "at most" so much because an attacker cannot always tell who is in a group.
    """

    k: tuple[int, ...]
    implications: tuple[float, ...]  # (ks,)
    negations: tuple[float, ...]  # (ks,)
    kind: Kind = "exact"

    def to_dict(self) -> dict[str, Any]:
        """Plain lists by name, and the kind."""
        return self._columns() | {"kind": self.kind}

    def _columns(self) -> dict[str, Any]:
        return {"k": list(self.k), "implications": list(self.implications), "negations": list(self.negations)}

    def frame(self, kind: str = "arrow") -> Any:
        """A frame with a row for each k: "arrow", "pandas" or "polars"."""
        return to_native(pa.table(self._columns()), kind)

    def plot(self, path: str | Path) -> Path:
        """Draw both curves into a file; its ending says in which form, .svg or .png."""
        if find_spec("matplotlib") is None:
            raise InputError("plots need matplotlib, which is not installed", do='pip install "jali[plots]"')
        import matplotlib as mpl
        from matplotlib.figure import Figure

        target = Path(path)
        known = Figure().canvas.get_supported_filetypes()
        if target.suffix.lstrip(".") not in known:
            raise InputError(
                "a plot needs a file whose ending says its form", got=target.name, do="write e.g. curve.svg"
            )
        # Text stays text, and the same figures give the same file.
        with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "jali", "font.size": 9}):
            canvas = Figure(figsize=(4.8, 3.4), layout="constrained")
            axes = canvas.subplots()
            axes.plot(self.k, self.implications, marker="o", color="#0072b2", label="implications")
            axes.plot(self.k, self.negations, marker="s", color="#e69f00", label="negations")
            axes.set(
                xlabel="facts that the attacker knows",
                ylabel="maximum disclosure" if self.kind == "exact" else "maximum disclosure, at most",
                ylim=(0, 1.03),
            )
            axes.spines[["top", "right"]].set_visible(False)
            axes.legend(frameon=False)
            canvas.savefig(target, metadata={"Date": None} if target.suffix == ".svg" else None, dpi=120)
        return target

    def __repr__(self) -> str:
        lines = [" k  implications  negations"]
        rows = zip(self.k, self.implications, self.negations, strict=True)
        lines += [f"{k:>2}  {implied:12.4f}  {negated:9.4f}" for k, implied, negated in rows]
        if self.kind == "at most":
            lines.append("At most so much: groups overlap, so that an attacker cannot always tell who is in which.")
        return "\n".join(lines)
