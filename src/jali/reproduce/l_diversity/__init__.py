"""l-Diversity: Privacy Beyond k-Anonymity (Machanavajjhala, Kifer, Gehrke, Venkitasubramaniam; TKDD 2007)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from jali.core.progress import Step
from jali.reproduce.l_diversity import attack, examples, utility
from jali.reproduce.l_diversity import utility as timing
from jali.reproduce.report import Figure, Report

__all__ = ["report"]

NOTES = (
    "Figures 8, 10, 12 and 14 are about the Lands End table, for which there is no data: they cannot be had.",
    "Figures 13 and 15 to 20 are plots, and the paper prints no numbers for them; the numbers here are jali's own.",
    "The paper prints no hierarchies. Five were inferred from its Figures 9 and 11; native-country and workclass are "
    "ours, and matter in Figure 13 from six quasi-identifiers on, and in Figure 18.",
)
QUICK = "Computed with quick: Figures 17 and 18, k = l = 4 and 8, and more than five quasi-identifiers are left out."


def report(adult: str | Path | None, *, quick: bool, on_step: Step) -> Report:
    """Every figure that can be computed again; the real Adult table must be at hand."""
    parts: list[Callable[[], list[Figure]]] = [
        partial(attack.figures, adult),
        _single(partial(timing.figure_13, adult, most=5 if quick else 8)),
        *(_single(part) for part in utility.parts(adult, quick=quick)),
        examples.figures,
    ]
    found: list[Figure] = []
    for done, part in enumerate(parts):
        on_step(done, len(parts))
        found += part()
    on_step(len(parts), len(parts))
    title = "l-Diversity: Privacy Beyond k-Anonymity, computed again from the Adult table"
    return Report("l-diversity", title, tuple(found), NOTES + (QUICK,) * quick)


def _single(part: Callable[[], Figure]) -> Callable[[], list[Figure]]:
    return lambda: [part()]
