"""What importance changes: levels and figures of the table that ARX ships as its example, and of the census."""

from __future__ import annotations

from typing import Any

from benchmarks.adult import arx_example
from benchmarks.table import show

IMPORTANCE: tuple[dict[str, float] | None, ...] = (
    None,
    {"education": 3, "native-country": 0.5},
    {"education": 3, "sex": 3, "native-country": 0.5},
)


def run() -> None:
    """Print the levels of each column, with and without importance."""
    import jali

    columns = ["age", "sex", "race", "education", "native-country"]
    census = jali.datasets.census(rows=5_000, seed=0, quasi=columns)
    for name, table in (("the invented census, 5,000 rows", census), ("Adult with ARX's hierarchies", arx_example())):
        if table is not None:
            _levels(name, table)


def _levels(name: str, table: Any) -> None:
    import jali

    names = [column.name for column in table.quasi]
    for metric in ("kl", "loss"):
        rows: list[list[Any]] = []
        for importance in IMPORTANCE:
            made = jali.generalize(table, jali.KAnonymity(5), metric=metric, suppress=0.05, importance=importance)
            figures = jali.measure(made, table)
            told = ", ".join(f"{column} {weight:g}" for column, weight in (importance or {}).items()) or "none"
            levels = [f"{made.levels[column]} of {table.hierarchy(column).height}" for column in names]
            rows.append([told, *levels, figures.kl, figures.loss])
        show(
            f'Levels for k = 5, 5 % suppressed, metric="{metric}": {name}',
            ["importance", *names, "KL", "loss"],
            rows,
        )
