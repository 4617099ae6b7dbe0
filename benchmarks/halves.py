"""Transparent partitions (equal halves) beside plain strict ones: KL-divergence on Adult, time on a million rows."""

from __future__ import annotations

import os
import time
from statistics import mean
from typing import Any

from benchmarks.table import show

RUNS = 3  # equal halves are random
ROWS = 1_000_000
FIVE = ("age", "workclass", "education", "marital-status", "race")
COLUMNS = {5: FIVE, 7: (*FIVE, "sex", "native-country")}


def settings() -> dict[str, list[Any]]:
    """The requirements, by name."""
    import jali

    return {
        "k 5, t 0.2": [jali.KAnonymity(5), jali.TCloseness(0.2)],
        "k 6, entropy 6": [jali.KAnonymity(6), jali.EntropyDiversity(6)],
        "k 10, frequency 4": [jali.KAnonymity(10), jali.FrequencyDiversity(4)],
    }


def kl() -> list[list[object]]:
    """KL-divergence on Adult, plain strict and transparent: rows of the table."""
    import jali

    rows: list[list[object]] = []
    for number, quasi in COLUMNS.items():
        table = jali.datasets.adult(os.environ["JALI_ADULT"], quasi=quasi)
        for name, required in settings().items():
            plain = jali.partition(table, required).manifest.metrics["kl"]
            runs = [jali.partition(table, required, transparent=True) for _ in range(RUNS)]
            ours = [release.manifest.metrics["kl"] for release in runs]
            groups = round(mean(release.manifest.counts["groups"] for release in runs))
            rows.append([number, name, plain, min(ours), max(ours), groups, mean(ours) / plain])
    return rows


def seconds(required: list[Any], quasi: tuple[str, ...], **options: Any) -> float:
    """Processor seconds of a release from a fresh table, the least of three."""
    import jali

    found = []
    for _ in range(RUNS):
        table = jali.datasets.census(ROWS, quasi=quasi)
        begin = time.process_time()
        jali.partition(table, required, **options)
        found.append(time.process_time() - begin)
    return min(found)


def run() -> None:
    """Print the tables."""
    import jali

    small = jali.datasets.census(2000)
    for required in settings().values():  # compiled before the clock starts
        jali.partition(small, required)
        jali.partition(small, required, transparent=True)
    show(
        f"KL-divergence on Adult, default display; transparent: lowest and highest of {RUNS} runs",
        ["columns", "requirement", "plain strict", "transparent", "to", "groups", "ratio of means"],
        kl() if "JALI_ADULT" in os.environ else [],
    )
    rows: list[list[object]] = []
    for number, quasi in COLUMNS.items():
        for name, required in settings().items():
            plain, ours = seconds(required, quasi), seconds(required, quasi, transparent=True)
            rows.append([number, name, plain, ours, ours / plain])
    show(
        f"Processor seconds of a whole release of {ROWS:,} census rows, combinations counted anew",
        ["columns", "requirement", "plain strict", "transparent", "ratio"],
        rows,
    )
