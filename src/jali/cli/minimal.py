"""jali minimal: every minimal generalization."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from jali.cli.shared import (
    columns_of_text,
    emit,
    job_argument,
    json_option,
    note,
    on_step,
    quiet_option,
    show_values_option,
)

if TYPE_CHECKING:
    from jali.search.lattice import Node


@click.command()
@job_argument
@json_option
@quiet_option
@show_values_option
def minimal(*, job: Path, as_json: bool) -> None:
    """List every minimal generalization.

    Each keeps the promises of the job.
    In a minimal one no column can be shown more finely. To publish one of them, write its levels into the job:
    [generalize] levels = { zip = 2 }.
    """
    import jali
    from jali.job import Job

    loaded = Job.load(job)
    nodes = jali.minimal(loaded.table(), loaded.requirement, on_step=on_step())
    if as_json:
        emit([vars(node) for node in nodes])
    else:
        header = [*nodes[0].levels, "groups", "smallest", "height", "KL", "discernibility", "average", "loss"]
        click.echo(columns_of_text(header, [_row(node) for node in nodes]))
    if loaded.options.get("suppress"):
        note("the job's suppress is left out: minimal generalizations are those without suppression")


def _row(node: Node) -> list[str]:
    return [
        *(str(level) for level in node.levels.values()), f"{node.groups:,}", f"{node.smallest:,}", f"{node.height:g}",
        f"{node.kl:.4f}", f"{node.discernibility:,.0f}", f"{node.average:,.2f}", f"{node.loss:.4f}",
    ]  # fmt: skip
