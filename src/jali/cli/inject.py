"""jali inject: more utility for an existing release."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from jali.cli.shared import (
    PATH,
    format_option,
    job_argument,
    json_option,
    note,
    on_step,
    overwrite_option,
    quiet_option,
    release_argument,
    reserve_release,
    save_new,
    show_values_option,
    spreadsheet_option,
)


@click.command()
@release_argument
@job_argument
@click.option("-o", "--output", type=PATH, required=True, metavar="FOLDER", help="Where the new release goes.")
@click.option(
    "--attacker", type=click.Choice(["quasi", "marginals"]), default=None,
    help="Who must not learn more: who knows everybody's quasi-identifiers (by default), or one person's only.",
)  # fmt: skip
@overwrite_option
@format_option
@spreadsheet_option
@json_option
@quiet_option
@show_values_option
def inject(
    *,
    release: Path,
    job: Path,
    output: Path,
    attacker: str | None,
    overwrite: bool,
    form: Any,
    spreadsheet_safe: bool,
    as_json: bool,
) -> None:
    """Add marginals to RELEASE that keep the promises of a job.

    JOB.toml is the job that RELEASE was published with; its [marginals] section, if any, says how to search. The new
    release holds RELEASE among its marginals.
    """
    from jali.job import Job

    loaded = Job.load(job)
    reserve_release(output, overwrite=overwrite)
    options = loaded.options if loaded.method == "marginals" else {}
    named = {} if attacker is None else {"attacker": attacker}
    loaded = replace(loaded, method="marginals", options={**options, **named, "base": release})
    injected = loaded.run(on_step=on_step())
    save_new(
        injected, output, overwrite=overwrite, form=form, as_json=as_json,
        spreadsheet_safe=spreadsheet_safe or loaded.spreadsheet_safe,
    )  # fmt: skip
    note(f"publish it instead of {release}: the first release is one of its marginals, or follows from one")
