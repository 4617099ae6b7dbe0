"""jali hierarchy: a column's hierarchy as a file to look at and to edit."""

from __future__ import annotations

from pathlib import Path

import click

from jali.cli.shared import (
    PATH,
    job_argument,
    note,
    overwrite_option,
    quiet_option,
    reserve_file,
    show_values_option,
)
from jali.writing import put_content


@click.command()
@job_argument
@click.argument("column", metavar="COLUMN")
@click.option("-o", "--output", type=PATH, metavar="FILE", help="Where to; by default stdout.")
@overwrite_option
@quiet_option
@show_values_option
def hierarchy(*, job: Path, column: str, output: Path | None, overwrite: bool) -> None:
    """Write the hierarchy of a column as CSV.

    COLUMN is a quasi-identifier of the job. The form is that of ARX: a row per value, a column per level, no header.
    Edit it and name it in the job: { taxonomy = "FILE" }.
    """
    from jali.encoding.spreadsheet import has_formula
    from jali.encoding.taxonomy import hierarchy_text
    from jali.job import Job

    loaded = Job.load(job)
    if output is not None:
        reserve_file(output, overwrite=overwrite)
    found = loaded.table().hierarchy(column)
    if not found.declared:
        note(f"it lists the values of {column} that occur in the table: keep it as safe as the table")
    text = hierarchy_text(found)
    if output is not None:
        put_content(output, text, overwrite=overwrite)
    else:
        click.echo(text, nl=False)
    labels = (label for level in found.levels for label in level.texts() if label is not None)
    if has_formula(labels):
        note(f"labels of {column} begin with =, +, - or @, which spreadsheets run; edit the file as text")
