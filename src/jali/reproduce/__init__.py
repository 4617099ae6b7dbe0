"""Published figures, computed again: one module a paper."""

from __future__ import annotations

import importlib
from contextlib import nullcontext
from pathlib import Path

from jali.core.charts import require_plots
from jali.core.files import hold_folder
from jali.core.progress import Step, watched
from jali.errors import InputError, nearest
from jali.reproduce.report import Report

__all__ = ["PAPERS", "Report", "run"]

PAPERS: dict[str, str] = {
    "l-diversity": "jali.reproduce.l_diversity",
    "background-knowledge": "jali.reproduce.background_knowledge",
    "marginals": "jali.reproduce.marginals",
    "pdf": "jali.reproduce.pdf",
    "angel": "jali.reproduce.angel",
}
"""The papers that can be reproduced, and the module of each."""


def run(
    name: str,
    *,
    adult: str | Path | None = None,
    out: str | Path | None = None,
    quick: bool = False,
    on_step: Step | None = None,
) -> Report:
    """Compute a paper's figures again, from the real Adult table (`adult`, or the environment variable JALI_ADULT).

    With `out`, tables (CSV, Markdown) and plots (SVG, PNG) are written into that folder; files of the same names are
    replaced. `quick` leaves out the larger settings and says so.
    """
    if name not in PAPERS:
        raise InputError(f'no paper "{name}" to reproduce', do=nearest(name, PAPERS))
    if out is not None:
        require_plots()
    with nullcontext() if out is None else hold_folder(out):
        module = importlib.import_module(PAPERS[name])
        with watched(f"reproducing {name}", on_step) as step:
            report: Report = module.report(adult, quick=quick, on_step=step)
        if out is not None:
            report.write(out)
    return report
