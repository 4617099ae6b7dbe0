"""Conceal 50,000 people of a public table of a million, and the exact probabilities of one large group."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.table import show, timed

ROWS, PRIVATE = 1_000_000, 50_000
LOW, HIGH = 0.001, 0.5
GROUPS = ((45_000, 2_000), (100_000, 5_000), (100_000, 50_000))


def tables(rows: int, private: int) -> tuple[Any, Any]:
    """A private table drawn from the census, more often from the old, and the census as the public one."""
    import jali

    census = jali.datasets.census(rows=rows, seed=0)
    public = replace(census, columns=census.quasi)
    age = public["age"]
    rate = np.exp(3 * age.codes / len(age.values))
    many = np.ones(public.records) if public.multiplicity is None else public.multiplicity
    drawn = np.argsort(np.random.default_rng(0).exponential(size=public.records) / (rate * many))[:private]
    return public.take(
        np.sort(drawn), None if public.multiplicity is None else np.ones(private, dtype=np.int64)
    ), public


def run() -> None:
    """Print the tables."""
    import jali

    lines: list[list[Any]] = []
    for members, present in GROUPS:
        for decades in (1, 12):
            likelihoods = 10 ** np.random.default_rng(0).uniform(-decades, 0, members)
            seconds, found = timed(lambda p=likelihoods, n=present: jali.presence.existence(p, n), repeat=3)
            lines.append([f"{members:,}", f"{present:,}", decades, seconds, f"{abs(found.sum() / present - 1):.0e}"])
    show(
        "Seconds for the exact probabilities of every member of a group, and how far their sum is off",
        ["members", "present", "decades of likelihoods", "seconds", "relative error of the sum"],
        lines,
    )
    private, public = tables(ROWS, PRIVATE)
    jali.conceal(
        *tables(2_000, 200), low=0, high=1, search="partition", shift="exact"
    )  # compiled before the clock starts
    lines = []
    for search in ("lattice", "partition"):
        for shift in ("none", "bounds", "exact"):
            seconds, release = timed(
                lambda s=search, h=shift: jali.conceal(private, public, low=LOW, high=HIGH, search=s, shift=h)
            )
            cost = jali.measure(release, private).kl_cost
            told, presence = timed(release.presence)
            lines.append([search, shift, seconds, release.groups.num_rows, cost, presence.low, presence.high, told])
    show(
        f"Seconds to conceal {PRIVATE:,} of {ROWS:,} people (7 quasi-identifiers, presence {LOW} to {HIGH}), checked",
        ["search", "shift", "seconds", "groups", "KL cost", "least", "greatest", "presence s"],
        lines,
    )
