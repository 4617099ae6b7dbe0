"""jali audit: what an attacker can learn."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jali.cli.failures import BrokenPromise
from jali.cli.shared import PATH, emit, json_option, names, public_beside, quiet_option, reading_options

if TYPE_CHECKING:
    from jali.risk.audit import Audit
    from jali.risk.joint_figures import JointAudit, JointAudits


@click.command()
@click.argument("releases", type=PATH, nargs=-1, required=True, metavar="RELEASE...")
@click.option("--quasi", callback=names, metavar="A,B,…", help="Of a file: what an attacker may know.")
@click.option("--sensitive", callback=names, metavar="S,…", help="Of a file: what nobody should learn.")
@click.option("--person", metavar="COLUMN", help="Of a file: whose row it is, where a person has several.")
@click.option("--public-table", type=PATH, metavar="FILE", help="Judge presence beside this public table.")
@click.option("--job", type=PATH, metavar="JOB.toml", help="The job of a concealed release, which names that table.")
@json_option
@quiet_option
@reading_options
def audit(
    *, releases: tuple[Path, ...], quasi: list[str] | None, sensitive: list[str] | None, person: str | None,
    public_table: Path | None, job: Path | None, as_json: bool, separator: str | None, encoding: str | None,
) -> None:  # fmt: skip
    """Say what an attacker can learn.

    RELEASE... is a folder that jali wrote, or any CSV or Parquet file together with --quasi and --sensitive; of several
    folders, releases of one table, it says what an attacker who holds them all can learn. The exit code is 3 if a
    promise of a release is broken.
    """
    import jali
    from jali.errors import InputError

    found: Audit | JointAudit | JointAudits
    release = releases[0]
    beside = public_table is not None or job is not None
    if beside and (len(releases) > 1 or release.is_file()):
        raise InputError("presence is judged for one release", do="leave --public-table and --job out")
    if len(releases) > 1:
        if quasi or sensitive or person:
            raise InputError("several releases know their columns", do="leave --quasi, --sensitive and --person out")
        found = jali.audit(list(releases))
    elif release.is_dir() or not release.exists():
        if quasi or sensitive or person:
            raise InputError(
                f"{release} is no file", do="--quasi, --sensitive and --person are for CSV and Parquet files"
            )
        found = _audited(release, public_table, job, separator, encoding) if beside else jali.audit(release)
    else:
        if not quasi:
            raise InputError(f"to audit the file {release}, name its columns", do="--quasi age,zip --sensitive disease")
        columns: dict[str, Any] = {"quasi": dict.fromkeys(quasi, jali.suppress()), "sensitive": sensitive or []}
        table = jali.read(release, **columns, person=person, separator=separator, encoding=encoding)
        found = jali.audit(table)
    if as_json:
        emit(found.to_dict())
    else:
        click.echo(repr(found))
    _require_kept(found)


def _audited(
    release: Path, public_table: Path | None, job: Path | None, separator: str | None, encoding: str | None
) -> Audit:
    """The audit of a release beside a public table."""
    import jali
    from jali.errors import InputError

    loaded = jali.load(release)
    public = public_beside(loaded, public_table, job, separator, encoding, judged=True)
    if public is None:
        raise InputError(f"{job} names no public table", do="pass --public-table FILE")
    return jali.audit(loaded, public_table=public)


def _require_kept(found: Audit | JointAudit | JointAudits) -> None:
    broken = [name for name, kept in found.kept.items() if kept is False]
    if broken:
        raise BrokenPromise(f"a promise is broken: {', '.join(broken)}")
