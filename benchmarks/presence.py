"""Conceal 50,000 people of a public table of a million, and the exact probabilities of one large group."""

from __future__ import annotations

import time
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
    small = tables(2_000, 200)
    jali.conceal(*small, low=0, high=1, search="partition", shift="exact")  # compiled before the clock starts
    jali.conceal(*small, low=0, high=1, transparent=True)
    plain = [
        {"search": search, "shift": shift}
        for search in ("lattice", "partition")
        for shift in ("none", "bounds", "exact")
    ]
    halves: list[dict[str, Any]] = [{"transparent": True}, {"transparent": True, "show": "pdf"}]
    lines = []
    for options in (*plain, *halves):
        started = time.process_time()
        seconds, release = timed(lambda o=options: jali.conceal(private, public, low=LOW, high=HIGH, **o))
        used = time.process_time() - started
        measured = jali.measure(release, private)
        told, presence = timed(release.presence)
        named = " ".join(str(option) for option in options.values()) if "search" in options else "halves"
        named += " pdf" if options.get("show") == "pdf" else ""
        groups = presence.groups.num_rows
        lines.append([named, seconds, used, groups, measured.kl, measured.kl_cost, presence.low, presence.high, told])
    show(
        f"Seconds to conceal {PRIVATE:,} of {ROWS:,} people (7 quasi-identifiers, presence {LOW} to {HIGH}), checked",
        ["how", "seconds", "processor s", "groups", "KL", "KL cost", "least", "greatest", "presence s"],
        lines,
    )
