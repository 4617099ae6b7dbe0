"""jali repair: a stronger promise for an existing release."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from jali.cli.shared import (
    PATH,
    format_option,
    job_argument,
    json_option,
    note,
    overwrite_option,
    quiet_option,
    release_argument,
    reserve_release,
    save_new,
    spreadsheet_option,
)


@click.command()
@release_argument
@job_argument
@click.option("-o", "--output", type=PATH, required=True, metavar="FOLDER", help="Where the new release goes.")
@click.option(
    "--suppress", type=float, default=1.0, show_default=True, help="The largest share of rows that may be suppressed."
)
@click.option(
    "--by", type=click.Choice(["groups", "tuples"]), default="groups", show_default=True,
    help="Suppress whole groups that break a promise, or single tuples of them.",
)  # fmt: skip
@overwrite_option
@format_option
@spreadsheet_option
@json_option
@quiet_option
def repair(
    *, release: Path, job: Path, output: Path, suppress: float, by: Any, overwrite: bool, form: Any,
    spreadsheet_safe: bool, as_json: bool,
) -> None:  # fmt: skip
    """Suppress what keeps RELEASE from the principles of a job.

    Of JOB.toml only [[principles]] is read. The original table is not needed.
    """
    import jali
    from jali.job import requirement

    principles = requirement(job)
    reserve_release(output, overwrite=overwrite)
    repaired = jali.repair(release, principles, suppress=suppress, by=by)
    save_new(repaired, output, overwrite=overwrite, form=form, as_json=as_json, spreadsheet_safe=spreadsheet_safe)
    if by == "tuples":
        note("whoever knows the algorithm can learn from this release who was taken out")
    note(f"publish it instead of {release}, never beside it: the difference would give groups away")
