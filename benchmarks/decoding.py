"""Decode the fractions of concealed releases of Adult: who is certainly present or absent, and how long it takes."""

from __future__ import annotations

import time
from typing import Any

from benchmarks.table import show

LOW, HIGH = 0.01, 0.5
SECONDS = 1_200.0


def run() -> None:
    """Print the table; it needs JALI_ADULT."""
    import jali
    from jali.reproduce import pdf
    from jali.risk.attacks.decoding import surely
    from jali.search.screen import framed

    private, public = pdf.tables(None)
    frame = framed(private, public)
    lines: list[list[Any]] = []
    for search in ("lattice", "partition"):
        release = jali.conceal(private, public, low=LOW, high=HIGH, search=search, shift="exact")
        begin = time.process_time()
        found = surely(release, public, frame.private, seconds=SECONDS)
        seconds = time.process_time() - begin
        people = [int(frame.public[which].sum()) for which in (found.present, found.absent)]
        lines.append([search, found.groups, found.decoded, *people, found.undecided, seconds])
    show(
        "Groups whose private counts can be decoded, and people of the public table who are told by them",
        ["search", "groups", "decoded", "certainly present", "certainly absent", "groups undecided", "processor s"],
        lines,
    )
