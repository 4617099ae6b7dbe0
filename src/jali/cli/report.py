"""jali report: one page that a data steward can decide from."""

from __future__ import annotations

from pathlib import Path

import click

from jali.cli.measure import original_table
from jali.cli.shared import (
    PATH,
    overwrite_option,
    public_beside,
    quiet_option,
    reading_options,
    release_argument,
    reserve_file,
)


@click.command()
@release_argument
@click.option("--original", type=PATH, metavar="FILE", help="The table that was published, CSV or Parquet.")
@click.option("--job", type=PATH, metavar="JOB.toml", help="The job it was published with: how to read the original.")
@click.option("--public", is_flag=True, help="The edition to hand out; also what is made without an original.")
@click.option("--public-table", type=PATH, metavar="FILE", help="Judge presence beside this public table.")
@click.option("--title", metavar="TEXT", help="What stands at the top of the page.")
@click.option(
    "-o", "--output", type=PATH, default=Path("report.html"), show_default=True, metavar="FILE.html",
    help="Where the page goes.",
)  # fmt: skip
@overwrite_option
@quiet_option
@reading_options
def report(
    *, release: Path, original: Path | None, job: Path | None, public: bool, public_table: Path | None,
    title: str | None, output: Path, overwrite: bool, separator: str | None, encoding: str | None,
) -> None:  # fmt: skip
    """Write one page about RELEASE that opens without a network.

    The public edition is computed from the release alone. With --original or --job it is the private edition, which
    compares with the original and is marked as confidential wherever it does. Presence is judged beside the public
    table, which --public-table or the job of a concealed release names.
    """
    import jali
    from jali.charts import require_plots
    from jali.errors import InputError
    from jali.releases.base import load
    from jali.reports.page import require_outside

    private = original is not None or job is not None
    if public and private:
        raise InputError("the public edition does not use the original", do="leave out --original and --job")
    require_plots()
    require_outside(output)
    reserve_file(output, overwrite=overwrite)
    found = load(release)
    table = original_table(found, original, job, separator, encoding) if private else None
    beside = public_beside(found, public_table, job, separator, encoding, judged=True)
    page = jali.report(found, table, public=public, public_table=beside, title=title)
    path = page.save(output, overwrite=overwrite)
    click.echo(f"The {page.edition} edition is in {path}")
