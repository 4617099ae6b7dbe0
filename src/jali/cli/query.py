"""jali query: what an analyst can ask."""

from __future__ import annotations

from pathlib import Path

import click

from jali.cli.shared import emit, json_option, quiet_option, release_argument


@click.command()
@release_argument
@click.argument("condition", metavar="CONDITION")
@json_option
@quiet_option
def query(*, release: Path, condition: str, as_json: bool) -> None:
    """Estimate how many rows of RELEASE meet a condition.

    CONDITION is a text such as "age BETWEEN 35 AND 45 AND disease IN ('flu', 'cold')", with AND, OR, NOT and
    comparisons; a column whose name is no plain word stands in double quotes.
    """
    import jali
    from jali.show import lines_of

    count = jali.load(release).estimate().count(condition)
    if as_json:
        figures = {"count": float(count), "low": count.low, "high": count.high, "assumes": list(count.assumes)}
        emit({"condition": condition} | figures)
        return
    figures_shown = (("estimate", float(count)), ("at least", count.low), ("at most", count.high))
    click.echo("\n".join(lines_of([(name, f"{figure:,.6g}") for name, figure in figures_shown])))
    for assumed in count.assumes:
        click.echo(f"assuming: {assumed}")
