"""jali measure: what an analyst keeps."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jali.cli.shared import (
    PATH,
    emit,
    json_option,
    quiet_option,
    read_like,
    reading_options,
    release_argument,
)
from jali.releases.summary import an

if TYPE_CHECKING:
    from jali.encoding.table import Table
    from jali.releases.base import Release


@click.command()
@release_argument
@click.option("--original", type=PATH, metavar="FILE", help="The table that was published, CSV or Parquet.")
@click.option("--job", type=PATH, metavar="JOB.toml", help="The job it was published with: how to read the original.")
@click.option(
    "--domain", type=click.Choice(["declared", "present"]),
    help="Spread a cell over the values declared for its column, or over those that occur.",
)  # fmt: skip
@click.option("--rules", is_flag=True, help="Compare the association rules of reconstructions with the original's.")
@click.option("--classify", metavar="COLUMN", help="Class rules of a column, and how well a classifier predicts it.")
@click.option("--holdout", type=PATH, metavar="FILE", help="People who were not published, for --classify to test on.")
@click.option(
    "--support", type=float, default=0.05, show_default=True, help="The least share of rows that a rule is in."
)
@click.option("--confidence", type=float, default=0.8, show_default=True, help="How often a rule must hold.")
@click.option("--queries", type=int, default=0, metavar="NUMBER", help="Ask so many random counts, and say the error.")
@click.option("--volume", default="0.05", show_default=True, metavar="SHARE", help="How much of the space each asks.")
@click.option("--seed", type=int, default=0, show_default=True, metavar="NUMBER", help="Same seed, same counts.")
@json_option
@quiet_option
@reading_options
def measure(
    *, release: Path, original: Path | None, job: Path | None, domain: Any, rules: bool, classify: str | None,
    holdout: Path | None, support: float, confidence: float, queries: int, volume: str, seed: int, as_json: bool,
    separator: str | None, encoding: str | None,
) -> None:  # fmt: skip
    """Say what an analyst keeps and loses.

    RELEASE is compared with the table it was made from.
    With --job the original is read as it was for publishing (by default the job's own input); otherwise with what
    the release itself tells of its columns.
    """
    import jali
    from jali.errors import InputError
    from jali.principles.base import exact
    from jali.releases.base import load

    if job is None and original is None:
        raise InputError("the original is needed to measure a release", do="pass --original FILE or --job JOB.toml")
    found = load(release)
    table = original_table(found, original, job, separator, encoding)
    others = None if holdout is None else original_table(found, holdout, job, separator, encoding)
    figures = jali.measure(
        found, table, domain=domain, rules=rules, classify=classify, holdout=others, support=support,
        confidence=confidence, queries=queries, volume=float(exact("volume", volume)), seed=seed,
    )  # fmt: skip
    if as_json:
        emit(figures.to_dict())
    else:
        click.echo(repr(figures))


def original_table(
    release: Release, original: Path | None, job: Path | None, separator: str | None, encoding: str | None
) -> Table:
    """The table that a release was made from, read as its job says, else as the release tells."""
    if job is not None:
        from dataclasses import replace

        from jali.job import Job

        loaded = Job.load(job)
        loaded = replace(loaded, separator=separator or loaded.separator, encoding=encoding or loaded.encoding)
        return loaded.table(original)
    from jali.errors import InputError
    from jali.releases.angel import Angel
    from jali.releases.buckets import Buckets
    from jali.releases.generalized import Generalized
    from jali.releases.marginals import Marginals

    if not isinstance(release, (Generalized, Buckets, Angel, Marginals)):
        raise InputError(f"{an(release.kind)} release does not say how to read its original", do="pass --job JOB.toml")
    assert original is not None
    return read_like(release, original, weights=release.weight_name, separator=separator, encoding=encoding)
