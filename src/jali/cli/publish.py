"""jali publish: from a job to a release on disk."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jali.cli.shared import (
    PATH,
    emit,
    format_option,
    job_argument,
    json_option,
    note,
    note_formulas,
    of_release,
    on_step,
    overwrite_option,
    quiet_option,
    reserve_release,
    show_values_option,
    spreadsheet_option,
)

if TYPE_CHECKING:
    from jali.encoding.table import Table


@click.command()
@job_argument
@click.option("-o", "--output", type=PATH, metavar="FOLDER", help="Where to, instead of the job's own output.")
@click.option("--private", type=PATH, metavar="FILE", help="Keep the batches of an ANGEL release for its holder.")
@overwrite_option
@format_option
@spreadsheet_option
@click.option(
    "--auto", is_flag=True, help="Compare all methods, and publish with the one that jali frontier recommends."
)
@click.option("--dry-run", is_flag=True, help="Do everything but write the release.")
@json_option
@quiet_option
@show_values_option
def publish(
    *,
    job: Path,
    output: Path | None,
    private: Path | None,
    overwrite: bool,
    form: Any,
    spreadsheet_safe: bool,
    auto: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Publish the table that a job names, under its promises.

    JOB.toml says what each column is and what must hold; `jali init` writes one to start from. The release is written
    whole or not at all. With --auto the job's own method does not matter.
    """
    from jali.errors import InputError
    from jali.job import Job

    loaded = Job.load(job)
    folder = output or loaded.output
    if folder is None and not dry_run:
        raise InputError(f"{job.name}: no output was named", do='write output = "folder", or pass -o FOLDER')
    keys = private or loaded.private
    if keys is not None and loaded.method != "angel" and not auto:
        raise InputError("--private is for ANGEL releases", got=f'method = "{loaded.method}"', do="leave it out")
    safe = spreadsheet_safe or loaded.spreadsheet_safe
    if folder is not None and not dry_run:
        _reserve(folder, keys, overwrite=overwrite)
    table = loaded.table()
    compared = loaded.frontier(table, strengths=(), on_step=on_step()) if auto else None
    release = (loaded.run if compared is None else compared.release)(table, on_step=on_step())
    summary = repr(release)  # made before anything is written, so that a failure leaves nothing behind
    beside = {"private": keys} if keys is not None and release.kind == "angel" else {}
    path = None
    if folder is not None and not dry_run:
        path = release.save(folder, overwrite=overwrite, format=form, spreadsheet_safe=safe, **beside)
    if as_json:
        told = {} if compared is None else compared.to_dict()
        chosen = {"chosen": {name: told[name] for name in ("recommended", "reason")}} if told else {}
        emit({"path": path} | of_release(release) | chosen)
    else:
        if compared is not None:
            click.echo(f"{compared.reason}\n")
        click.echo(summary)
        if path is not None:
            click.echo(f"Saved in {path}")
    tell(table)
    if release.kind == "angel" and keys is None:
        note("no private file was kept, so no marginal can be added later; see --private")
    if form == "csv":
        note_formulas(release.formula_columns(), safe=safe)
    if dry_run:
        note("a dry run: nothing was written")


def _reserve(folder: Path, private: Path | None, *, overwrite: bool) -> None:
    """See before the work that the release, and its private file if there is one, can be written."""
    from jali.releases.angel_keys import check_place
    from jali.writing import hold_file

    reserve_release(folder, overwrite=overwrite)
    if private is not None:
        place = check_place(private, folder, overwrite=overwrite)
        click.get_current_context().with_resource(hold_file(place, overwrite=overwrite, parents=True))


def tell(table: Table) -> None:
    """What the holder of a table should know before it is published."""
    if table.unnamed:
        note(f"not named and not published: {', '.join(table.unnamed)}")
    if table.incomplete:
        dropped = "row with a missing value was" if table.incomplete == 1 else "rows with a missing value were"
        note(f"{table.incomplete:,} {dropped} dropped")
    chosen = [c.name for c in table.quasi if c.hierarchy is not None and c.hierarchy.chosen]
    if chosen:
        note(f"jali chose the hierarchy of {', '.join(chosen)}; see jali hierarchy")
    if table.person_name is None:
        note("one row per person is assumed; name a person column if that is not so")
