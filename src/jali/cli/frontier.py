"""jali frontier: every method at a range of strengths, and which one to take."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from jali.cli.shared import (
    PATH,
    emit,
    job_argument,
    json_option,
    names,
    note,
    on_step,
    overwrite_option,
    quiet_option,
    reserve_file,
    show_values_option,
)


def _strengths(ctx: click.Context, param: click.Parameter, value: str | None) -> list[float | int | str] | None:
    """Numbers as they are written; "1/3" stays as it is."""
    found: list[float | int | str] = []
    for text in names(ctx, param, value) or []:
        try:
            found.append(float(text) if "." in text or "e" in text.lower() else int(text))
        except ValueError:
            found.append(text)
    return None if value is None else found


@click.command()
@job_argument
@click.option("-o", "--output", type=PATH, metavar="FILE.html", help="Write one page with pictures and tables.")
@click.option("--methods", callback=names, metavar="A,B,…", help="Which methods to compare, by default all.")
@click.option("--vary", metavar="NAME", help="The parameter that changes, e.g. k or EntropyDiversity.l.")
@click.option("--strengths", callback=_strengths, metavar="X,Y,…", help="Its values, beside the one that the job has.")
@click.option("--accept", callback=names, metavar="A,B,…", help="Methods whose own sense of the promises is enough.")
@click.option("--queries", type=int, metavar="N", help="How many random questions the query error is the mean of.")
@click.option("--volume", type=float, metavar="SHARE", help="How much of the table each question is about.")
@click.option("--resume", type=PATH, metavar="FILE", help="A private file from which an interrupted run continues.")
@overwrite_option
@json_option
@quiet_option
@show_values_option
def frontier(
    *, job: Path, output: Path | None, resume: Path | None, overwrite: bool, as_json: bool, **changes: Any
) -> None:
    """Compare every method at a range of strengths.

    The promises are those of the job, with one parameter varied; the job's section [frontier] can say the same as the
    options here. All of it is computed from the original: keep the page and the file to resume from as safe as that.
    """
    from jali.charts import require_plots
    from jali.errors import InputError
    from jali.job import Job
    from jali.releases.store import within_release

    loaded = Job.load(job)
    if output is not None:
        require_plots()  # before anything takes long
    for place, what in ((output, "page"), (resume, "file to resume from")):
        inside = [] if place is None else place.resolve().parents
        if place is not None and (within_release(place) or (loaded.output and loaded.output.resolve() in inside)):
            do = "choose another place"
            raise InputError(f"the {what} is confidential and must not lie in the folder that is handed out", do=do)
        if place is not None:
            reserve_file(place, overwrite=overwrite or place is resume)
    given = {name: value for name, value in changes.items() if value is not None}
    found = loaded.frontier(on_step=on_step(), resume=resume, **given)
    path = None if output is None else found.save(output, overwrite=overwrite)
    if as_json:
        emit({"path": path} | found.to_dict())
    else:
        click.echo(repr(found))
    if path is not None:
        note(f"the page is in {path}; it is confidential, for the holder of the table alone")
