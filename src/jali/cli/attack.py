"""jali attack: what known attacks learn from a release."""

from __future__ import annotations

from pathlib import Path

import click

from jali.cli.measure import original_table
from jali.cli.shared import PATH, emit, json_option, public_beside, quiet_option, reading_options, release_argument


@click.command()
@release_argument
@click.option("--original", type=PATH, metavar="FILE", help="The table that was published, CSV or Parquet.")
@click.option("--job", type=PATH, metavar="JOB.toml", help="The job it was published with: how to read the original.")
@click.option("--public", type=PATH, metavar="FILE", help="A public table, for linkage and presence.")
@click.option("--sensitive", metavar="COLUMN", help="Which sensitive column, where the release has several.")
@click.option(
    "--threshold", metavar="SHARE", default="0.95", show_default=True, help="How sure of a value counts as exposed."
)
@click.option(
    "--cases", metavar="NUMBER", default="3", show_default=True, help="How many cases to tell of each attack."
)
@json_option
@quiet_option
@reading_options
def attack(
    *, release: Path, original: Path | None, job: Path | None, public: Path | None, sensitive: str | None,
    threshold: str, cases: str, as_json: bool, separator: str | None, encoding: str | None,
) -> None:  # fmt: skip
    """Try known attacks on a release.

    Homogeneity, background knowledge, linkage with a public table, minimality, presence in a public table: how many
    people each exposes, and a few cases. The original tells which beliefs are right, so the output is for its holder
    alone. Of a concealed release --job also names the public table.
    """
    import jali
    from jali.errors import InputError
    from jali.principles.base import exact, whole_number
    from jali.releases.base import load

    if job is None and original is None:
        raise InputError("the original is needed to attack a release", do="pass --original FILE or --job JOB.toml")
    found = load(release)
    table = original_table(found, original, job, separator, encoding)
    looked_up = public_beside(found, public, job, separator, encoding)
    gallery = jali.attacks(
        found, table, public=looked_up, sensitive=sensitive, threshold=exact("threshold", threshold),
        cases=whole_number("cases", cases, least=0),
    )  # fmt: skip
    if as_json:
        emit(gallery.to_dict())
    else:
        click.echo(repr(gallery))
