"""What public ends cost: Adult without declared limits, partitioned with ends as in the rows and with public ones."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from benchmarks.table import show

NUMBERS = ("age", "fnlwgt", "hours-per-week", "capital-gain")
WORDS = ("sex", "race", "education", "native-country")
STRENGTHS = (5, 10, 50)
SIZES = (45_222, 5_000)
"""Rows with four columns, and with eight, one of which has almost as many values as rows."""


def run() -> None:
    """Print KL and loss of both displays, and how many ends fewer than k people share; the steps that were chosen."""
    import jali

    path = Path(os.environ.get("JALI_ADULT", ""))
    if not path.is_file():
        print("skipped: JALI_ADULT does not name the Adult table\n")
        return
    quasi: dict[str, Any] = dict.fromkeys(NUMBERS) | {name: jali.suppress() for name in WORDS}
    rows: list[list[Any]] = []
    steps: list[list[Any]] = []
    for columns, size in zip((("age", "hours-per-week", "sex", "race"), (*NUMBERS, *WORDS)), SIZES, strict=True):
        chosen = {name: quasi[name] for name in columns}
        table = jali.read(path, quasi=chosen, sensitive=["occupation"]).head(size)
        for k in STRENGTHS:
            figures = [_figures(table, k, exactly=exactly) for exactly in (True, False)]
            (before, was, alone), (after, now, left) = figures
            rows.append(
                [
                    f"{table.rows:,}",
                    len(columns),
                    k,
                    before.kl,
                    after.kl,
                    before.loss,
                    after.loss,
                    alone,
                    left,
                    was,
                    now,
                ]
            )
            steps.append([f"{table.rows:,}", len(columns), k, *_steps(table, k)])
    title = "Adult without declared limits, partition by range: ends and words as in the rows, and public ones"
    head = [
        "rows",
        "columns",
        "k",
        "KL",
        "KL public",
        "loss",
        "loss public",
        "rare named",
        "public",
        "groups",
        "groups ",
    ]
    show(title, head, rows)
    show("The steps that the rows gave", ["rows", "columns", "k", *NUMBERS], steps)


def _figures(table: Any, k: int, *, exactly: bool) -> tuple[Any, int, int]:
    """What the release costs, its groups, and how many values it names that fewer than k people share."""
    import jali

    shows = {c.name: "interval-exact" if c.kind == "number" else "set-exact" for c in table.quasi} if exactly else None
    release = jali.partition(table, [jali.KAnonymity(k)], show=shows)
    named = sum(_rare(release[column.name], column, table, k) for column in table.quasi)
    return jali.measure(release, table), len(release.sizes), named


def _rare(published: Any, column: Any, table: Any, k: int) -> int:
    """The values of the rows that a column names though fewer than k people share them, ends on a grid left out."""
    from jali.encoding.ends import people_by_value

    rare = {text for text, n in zip(column.labels.to_pylist(), people_by_value(table, column), strict=True) if n < k}
    naming = published.facts.naming
    if naming is not None and naming.step is not None:
        rare = {text for text in rare if int(text) % int(naming.step)}
    words = {word for cell in published.labels.to_pylist() for word in str(cell).strip("[]{}").split(", ")}
    return len(rare & words)


def _steps(table: Any, k: int) -> list[str]:
    import jali

    release = jali.partition(table, [jali.KAnonymity(k)])
    names = {column.name for column in table.quasi}
    return [(release[name].facts.naming.step or "none") if name in names else "" for name in NUMBERS]
