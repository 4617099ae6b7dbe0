"""jali extend: more marginals for an ANGEL release."""

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
    on_step,
    overwrite_option,
    quiet_option,
    release_argument,
    reserve_release,
    save_new,
    show_values_option,
    spreadsheet_option,
)
from jali.releases.summary import an


@click.command()
@release_argument
@job_argument
@click.option("--private", type=PATH, metavar="FILE", help="The private file that was saved with the release.")
@click.option("-o", "--output", type=PATH, required=True, metavar="FOLDER", help="Where the new release goes.")
@overwrite_option
@format_option
@spreadsheet_option
@json_option
@quiet_option
@show_values_option
def extend(
    *, release: Path, job: Path, private: Path | None, output: Path, overwrite: bool, form: Any, spreadsheet_safe: bool,
    as_json: bool,
) -> None:  # fmt: skip
    """Add marginals to an ANGEL release, over the same batches.

    Of JOB.toml the input and its columns are read, and of its section [angel] the marginals, joint_k and joint_time.
    The new release is to be published in place of RELEASE.
    """
    from jali.errors import InputError
    from jali.job import Job
    from jali.releases.angel import Angel
    from jali.releases.base import load

    reserve_release(output, overwrite=overwrite)
    found = load(release)
    if not isinstance(found, Angel):
        raise InputError(f"{release} is {an(found.kind)} release", do="marginals can be added to an ANGEL release only")
    loaded = Job.load(job)
    keys = private or loaded.private
    if keys is None:
        raise InputError("the private file of the release is needed", do="pass --private FILE")
    marginals = loaded.options.get("marginals", ())
    joint = {name: loaded.options[name] for name in ("joint_k", "joint_time") if name in loaded.options}
    extended = found.extend(loaded.table(), marginals, keys, **joint, on_step=on_step())
    save_new(
        extended, output, overwrite=overwrite, form=form, as_json=as_json,
        spreadsheet_safe=spreadsheet_safe or loaded.spreadsheet_safe,
    )  # fmt: skip
    note(f"publish it in place of {release}; the private file stays as it is")
