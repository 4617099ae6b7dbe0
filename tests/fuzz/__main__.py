"""`make fuzz`: kill -9 while releases are saved, then mutated inputs. The seed is printed and can be given."""

from __future__ import annotations

import argparse
import secrets
import sys
import time

from fuzz import inputs, kills


def main() -> int:
    """Run both, and end with 1 if anything went wrong."""
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--seed", type=int, default=None, help="by default a new one")
    parser.add_argument("--kills", type=int, default=240, help="points of kill -9")
    parser.add_argument("--inputs", type=int, default=10_000, help="mutated inputs")
    parser.add_argument("--first", type=int, default=0, help="the number of the first input, to run one again")
    parser.add_argument("--kinds", default="", help="some of csv,parquet,toml,manifest,hierarchy,query")
    given = parser.parse_args()
    seed = secrets.randbits(32) if given.seed is None else given.seed
    print(f"seed {seed}", flush=True)
    started, wrong = time.perf_counter(), 0
    if given.kills:
        killed = kills.run(seed, given.kills)
        wrong += len(killed.wrong)
        print(
            f"{killed.points} points of kill -9 while saving ({killed.counted}): {len(killed.wrong)} wrong", flush=True
        )
    if given.inputs:
        kinds = tuple(kind for kind in given.kinds.split(",") if kind)
        found = inputs.run(seed, given.inputs, first=given.first, kinds=kinds)
        wrong += len(found)
        print(f"{given.inputs:,} mutated inputs: {len(found)} wrong", flush=True)
    print(f"{time.perf_counter() - started:.0f} s; run it again with --seed {seed}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
