"""jali beliefs: how a release changes what an attacker thinks."""

from __future__ import annotations

from pathlib import Path

import click

from jali.cli.shared import (
    PATH,
    emit,
    generalized,
    json_option,
    quiet_option,
    read_like,
    reading_options,
    release_argument,
)


@click.command()
@release_argument
@click.option(
    "--population",
    type=PATH,
    required=True,
    metavar="FILE",
    help="What the attacker knows: people or frequencies.",
)
@click.option("--frequency", metavar="COLUMN", help="The population's column of joint frequencies, where it has one.")
@click.option("--sensitive", metavar="COLUMN", help="Which sensitive column, where the release has several.")
@click.option("--rho1", type=float, help="With --rho2: count the breaches from below rho1 to above rho2.")
@click.option("--rho2", type=float, help="See --rho1.")
@json_option
@quiet_option
@reading_options
def beliefs(
    *, release: Path, population: Path, frequency: str | None, sensitive: str | None, rho1: float | None,
    rho2: float | None, as_json: bool, separator: str | None, encoding: str | None,
) -> None:  # fmt: skip
    """Compare an attacker's beliefs before and after.

    Prior and posterior belief of each value, for each quasi-identifier combination of the population, by Theorem 3.1 of
    the l-diversity paper.
    """
    import jali
    from jali.errors import InputError

    if (rho1 is None) != (rho2 is None):
        raise InputError("--rho1 and --rho2 go together", do="give both or none")
    found = generalized(release)
    column = found[sensitive].name if sensitive else None
    reading = {"sensitive": [column]} if column else {}
    table = read_like(found, population, weights=frequency, separator=separator, encoding=encoding, **reading)
    result = jali.beliefs(found, table, sensitive=column)
    breaches = None if rho1 is None or rho2 is None else result.breaches(rho1, rho2).num_rows
    if as_json:
        emit(result.to_dict() | ({} if breaches is None else {"breaches": breaches}))
        return
    click.echo(repr(result))
    if breaches is not None:
        click.echo(f"({rho1:g}, {rho2:g})-breaches: {breaches:,}")
