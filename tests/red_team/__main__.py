"""`make red-team`: attackers who know the algorithm, on thousands of small tables for each method and principle."""

from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import Executor, ProcessPoolExecutor
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path

from red_team.others import CLASSIFIED, LINKED, SEVERAL, classified, several
from red_team.page import HEAD, between, cells, markdown, text
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
    with ProcessPoolExecutor(given.processes, mp_context=get_context("spawn")) as pool:
        results = replays(pool, [p for p in PAIRS if given.method in ("", p[0])], given.seed, given.tables)
        two = list(pool.map(several, LINKED, repeat(given.seed), repeat(max(given.tables // 5, 1))))
        learnt = pool.submit(classified).result()
    blocks = {"red team": (HEAD, cells(results)), "two releases": (SEVERAL, two), "classifier": (CLASSIFIED, learnt)}
    for name, (head, rows) in blocks.items():
        print(f"{name}\n\n{text(head, rows)}\n")
        if given.page is not None:
            page = given.page.read_text(encoding="utf-8")
            given.page.write_text(between(page, name, markdown(head, rows)), encoding="utf-8")
    print(f"{time.perf_counter() - started:.0f} s; seed {given.seed}")
    return 0 if all(result.is_clean for result in results) else 1


def replays(pool: Executor, pairs: list[tuple[str, str]], seed: int, tables: int) -> list[Result]:
    """What became of so many tables of each pair."""
    results = {pair: Result(*pair) for pair in pairs}
    chunks = [range(first, min(first + CHUNK, tables)) for first in range(0, tables, CHUNK)]
    tasks = [(pair, seed, chunk) for pair in pairs for chunk in chunks]
    for result in pool.map(attack, *zip(*tasks, strict=True)):
        results[result[:2]] += result
        print(".", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return list(results.values())


if __name__ == "__main__":
    sys.exit(main())
