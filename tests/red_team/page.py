"""The red team's table, for a terminal and for a page."""

from __future__ import annotations

from collections.abc import Sequence

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


def text(results: Sequence[Result]) -> str:
    """Aligned columns."""
    rows = [list(HEAD), *cells(results)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEAD))]
    return "\n".join("  ".join(cell.ljust(w) if i < 2 else cell.rjust(w) for i, (cell, w) in
                               enumerate(zip(row, widths, strict=True))) for row in rows)  # fmt: skip


def markdown(results: Sequence[Result]) -> str:
    """A table of a page."""
    rows = [list(HEAD), ["---", "---", *["---:"] * (len(HEAD) - 2)], *cells(results)]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def between(page: str, name: str, content: str) -> str:
    """The page with other content between the two markers of that name."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, found, rest = page.partition(begin)
    _, ended, after = rest.partition(end)
    if not found or not ended:
        raise ValueError(f"the page has no markers {begin} and {end}")
    return f"{before}{begin}\n{content}\n{end}{after}"
