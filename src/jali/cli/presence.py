"""jali presence: how surely people of a public table can be told to be in a release."""

from __future__ import annotations

from pathlib import Path

import click

from jali.cli.failures import BrokenPromise
from jali.cli.shared import PATH, emit, json_option, public_beside, quiet_option, reading_options, release_argument


@click.command()
@release_argument
@click.option("--public", type=PATH, metavar="FILE", help="The public table, CSV or Parquet.")
@click.option("--job", type=PATH, metavar="JOB.toml", help="The job it was published with, which names that table.")
@json_option
@quiet_option
@reading_options
def presence(
    *, release: Path, public: Path | None, job: Path | None, as_json: bool, separator: str | None, encoding: str | None
) -> None:
    """Say how surely people of a public table are in RELEASE.

    The least and the greatest probability, from the published cells alone. The exit code is 3 if a bound that the
    release promises is broken beside this table.
    """
    import jali
    from jali.errors import InputError

    if public is None and job is None:
        raise InputError("presence is judged beside a public table", do="pass --public FILE or --job JOB.toml")
    found = jali.load(release)
    table = public_beside(found, public, job, separator, encoding, judged=True)
    if table is None:
        raise InputError(f"{job} names no public table", do="pass --public FILE")
    audited = jali.audit(found, public_table=table)
    assert audited.presence is not None
    judged = {name: kept for name, kept in audited.kept.items() if name.startswith("DeltaPresence")}
    if as_json:
        emit(audited.presence.to_dict() | {"kept": judged})
    else:
        click.echo(repr(audited.presence))
        for name, kept in judged.items():
            click.echo(f"  {name}: {'kept' if kept else 'BROKEN'}")
    broken = [name for name, kept in judged.items() if not kept]
    if broken:
        raise BrokenPromise(f"a promise is broken: {', '.join(broken)}")
