"""jali reproduce: a paper's figures, computed again."""

from __future__ import annotations

from pathlib import Path

import click

from jali.cli.shared import PATH, on_step, quiet_option


@click.command()
@click.argument("name", metavar="NAME")
@click.option("--adult", type=PATH, metavar="FILE", help="The Adult table, instead of the environment's JALI_ADULT.")
@click.option("-o", "--output", type=PATH, metavar="FOLDER", help="Where tables and plots go; by default nowhere.")
@click.option("--quick", is_flag=True, help="Leave out the larger settings.")
@quiet_option
def reproduce(*, name: str, adult: Path | None, output: Path | None, quick: bool) -> None:
    """Compute the figures of a paper again.

    NAME is the paper: l-diversity, background-knowledge, marginals, pdf or angel.
    """
    from jali.reproduce import run

    report = run(name, adult=adult, out=output, quick=quick, on_step=on_step())
    click.echo(repr(report))
    if output is not None:
        click.echo(f"Saved in {output}")
