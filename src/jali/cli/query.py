"""jali query: what an analyst can ask."""

from __future__ import annotations

from pathlib import Path

import click

from jali.cli.shared import emit, json_option, note, quiet_option, release_argument


@click.command()
@release_argument
@click.argument("condition", metavar="CONDITION")
@json_option
@quiet_option
def query(*, release: Path, condition: str, as_json: bool) -> None:
    """Estimate how many rows of RELEASE meet a condition.

    CONDITION is a text such as "age BETWEEN 35 AND 45 AND disease IN ('flu', 'cold')", with AND, OR, NOT and
    comparisons; a column whose name is no plain word stands in double quotes. Where the answer depends on a column
    that is shown as * with no declared domain, there are bounds and no estimate.
    """
    import jali
    from jali.errors import UndeterminedError
    from jali.show import lines_of

    estimate: float | None
    try:
        count = jali.load(release).estimate().count(condition)
        estimate, low, high, assumes = float(count), count.low, count.high, count.assumes
    except UndeterminedError as problem:
        estimate, low, high, assumes = None, problem.low, problem.high, ()
        note(str(problem))
    if as_json:
        emit({"condition": condition, "count": estimate, "low": low, "high": high, "assumes": list(assumes)})
        return
    figures_shown = (("estimate", estimate), ("at least", low), ("at most", high))
    told = [(name, "not known" if figure is None else f"{figure:,.6g}") for name, figure in figures_shown]
    click.echo("\n".join(lines_of(told)))
    for assumed in assumes:
        click.echo(f"assuming: {assumed}")
