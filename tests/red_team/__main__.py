"""`make red-team`: attackers who know the algorithm, on thousands of small tables for each method and principle."""

from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from red_team.page import between, markdown, text
from red_team.pairs import PAIRS, Result, attack

CHUNK = 250  # tables that a process tries at a time


def main() -> int:
    """Print the table, and end with 1 if anybody learnt more than was published."""
    parser = argparse.ArgumentParser(prog="red_team", description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tables", type=int, default=5000, help="for each method and principle")
    parser.add_argument("--method", default="", help="only this one")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--page", type=Path, help="a page in which the table is replaced")
    given = parser.parse_args()
    started = time.perf_counter()
    pairs = [pair for pair in PAIRS if given.method in ("", pair[0])]
    results = {pair: Result(*pair) for pair in pairs}
    chunks = [range(first, min(first + CHUNK, given.tables)) for first in range(0, given.tables, CHUNK)]
    tasks = [(pair, given.seed, chunk) for pair in pairs for chunk in chunks]
    with ProcessPoolExecutor(given.processes, mp_context=get_context("spawn")) as pool:
        for result in pool.map(attack, *zip(*tasks, strict=True)):
            results[result[:2]] += result
            print(".", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    print(text(list(results.values())))
    print(f"{time.perf_counter() - started:.0f} s; seed {given.seed}")
    if given.page is not None:
        page = given.page.read_text(encoding="utf-8")
        given.page.write_text(between(page, "red team", markdown(list(results.values()))), encoding="utf-8")
    return 0 if all(result.is_clean for result in results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
