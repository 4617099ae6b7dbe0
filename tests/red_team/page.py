"""The red team's table, for a terminal and for a page.

As a command it puts what another command prints into a page, between the two markers of a name:
`python -m benchmarks transparency | PYTHONPATH=tests python -m red_team.page docs/transparency.md cost`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from red_team.pairs import Result

HEAD = (
    "method", "principle", "tables", "worlds", "releases", "worst excess", "tables, bits unknown", "releases",
    "promises broken",
)  # fmt: skip


def cells(results: Sequence[Result]) -> list[list[str]]:
    """A row for each method and principle."""
    return [
        [
            r.method, r.principle, *(f"{n:,}" for n in (r.tables, r.worlds, r.releases)), str(r.excess),
            *(f"{n:,}" for n in (r.unknown_tables, r.unknown_releases, r.broken)),
        ]
        for r in results
    ]  # fmt: skip


def text(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Aligned columns."""
    every = [head, *rows]
    widths = [max(len(row[i]) for row in every) for i in range(len(head))]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in every)


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of a page; figures stand to the right."""
    sides = ["---:" if rows[0][i][-1:].isdigit() or rows[0][i][-1:] in ("", "%") else "---" for i in range(len(head))]
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, sides, *rows))


def between(page: str, name: str, content: str) -> str:
    """The page with other content between the two markers of that name."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, found, rest = page.partition(begin)
    _, ended, after = rest.partition(end)
    if not found or not ended:
        raise ValueError(f"the page has no markers {begin} and {end}")
    return f"{before}{begin}\n{content}\n{end}{after}"


def main(page: str, name: str) -> None:
    """Replace a block of a page by what is read."""
    path = Path(page)
    block = f"```text\n{sys.stdin.read().rstrip()}\n```"
    path.write_text(between(path.read_text(encoding="utf-8"), name, block), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
