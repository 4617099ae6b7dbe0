"""jali hierarchy: a column's hierarchy as a file to look at and to edit."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click

from jali.cli.shared import PATH, job_argument, note, overwrite_option, quiet_option, show_values_option
from jali.writing import put_file


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
    import jali
    from jali.job import Job

    found = Job.load(job).table().hierarchy(column)
    if not found.declared:
        note(f"it lists the values of {column} that occur in the table: keep it as safe as the table")
    if output is not None:
        put_file(output, lambda path: jali.write_hierarchy(found, path), overwrite=overwrite)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "hierarchy.csv"
        jali.write_hierarchy(found, path)
        click.echo(path.read_text(encoding="utf-8"), nl=False)
