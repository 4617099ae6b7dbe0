"""`make bench`: every benchmark, printed as tables; ratios are between figures of the same run."""

from __future__ import annotations

import sys

from benchmarks import adult, angel, foundation, partition, quality

BENCHMARKS = {"foundation": foundation.run, "partition": partition.run, "quality": quality.run, "angel": angel.run,
              "adult": adult.run}  # fmt: skip


def main(names: list[str]) -> None:
    """Run the named benchmarks, or all of them."""
    for name in names or list(BENCHMARKS):
        print(f"# {name}\n", flush=True)
        BENCHMARKS[name]()


main(sys.argv[1:])
