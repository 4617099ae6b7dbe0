"""`make bench`: every benchmark, printed as tables; ratios are between figures of the same run."""

from __future__ import annotations

import sys

from benchmarks import (
    adult,
    angel,
    attackers,
    decoding,
    disclosure,
    ends,
    engines,
    foundation,
    halves,
    importance,
    lattice,
    marginals,
    memory,
    partition,
    presence,
    profile,
    quality,
    report,
    roles,
    rows,
    search,
    studio,
    transparency,
)

BENCHMARKS = {
    "foundation": foundation.run,
    "engines": engines.run,
    "partition": partition.run,
    "halves": halves.run,
    "profile": profile.run,
    "quality": quality.run,
    "disclosure": disclosure.run,
    "report": report.run,
    "rows": rows.run,
    "memory": memory.run,
    "adult": adult.run,
    "ends": ends.run,
    "importance": importance.run,
    "angel": angel.run,
    "marginals": marginals.run,
    "attackers": attackers.run,
    "presence": presence.run,
    "decoding": decoding.run,
    "search": search.run,
    "lattice": lattice.run,
    "roles": roles.run,
    "studio": studio.run,
    "transparency": transparency.run,
}


def main(names: list[str]) -> None:
    """Run the named benchmarks, or all of them."""
    for name in names or list(BENCHMARKS):
        print(f"# {name}\n", flush=True)
        BENCHMARKS[name]()


main(sys.argv[1:])
