"""Generalizations with Probability Distributions for Data Anonymization (Nergiz, Cetintas, Akova; Purdue, 2008)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from jali.core.progress import Step
from jali.reproduce.pdf import anonymity, examples, figure4
from jali.reproduce.report import Figure, Report

__all__ = ["report"]

NOTES = ("Tables and plots are lost in the text at hand: what is called printed here stands in its sentences.",)
QUICK = "Computed with quick: Figure 3 for two values of k, Figure 4 for two intervals."


def report(adult: str | Path | None, *, quick: bool, on_step: Step) -> Report:
    """Every table and figure that can be computed again; the real Adult table must be at hand."""
    parts: list[Callable[[], list[Figure]]] = [
        examples.figures,
        *(_single(part) for part in anonymity.parts(adult, quick=quick)),
        *(_single(part) for part in figure4.parts(adult, quick=quick)),
    ]
    found: list[Figure] = []
    for done, part in enumerate(parts):
        on_step(done, len(parts))
        found += part()
    on_step(len(parts), len(parts))
    title = "Generalizations with Probability Distributions for Data Anonymization, computed again"
    return Report("pdf", title, tuple(found), NOTES + (QUICK,) * quick)


def _single(part: Callable[[], Figure]) -> Callable[[], list[Figure]]:
    return lambda: [part()]
