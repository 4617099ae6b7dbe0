"""Commands for the holder of the original: measure, attack, beliefs; repair, inject and extend."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jali.cli import shared
from jali.cli.shared import PATH
from jali.errors import InputError
from jali.releases.summary import an

if TYPE_CHECKING:
    from jali.encoding.table import Table
    from jali.releases.base import Release


@click.command()
@shared.release_argument
@shared.original_options
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
@click.option(
    "--queries", type=int, default=0, metavar="NUMBER", help="Ask this number of random counts, and print the error."
)
@click.option(
    "--volume", default="0.05", show_default=True, metavar="SHARE", help="How much of the table each count is about."
)
@click.option("--seed", type=int, default=0, show_default=True, metavar="NUMBER", help="Same seed, same counts.")
@shared.memory_option
@shared.reading_options
def measure(
    *, release: Path, original: Path | None, job: Path | None, holdout: Path | None, volume: str, memory: str | None,
    as_json: bool, **asked: Any,
) -> None:  # fmt: skip
    """Say what an analyst keeps and loses.

    RELEASE is compared with the table it was made from.
    With --job the original is read as it was for publishing (by default the job's own input); otherwise as
    the release itself describes its columns.
    """
    import jali
    from jali.principles.base import exact

    reading = shared.taken(asked)
    found, table = _compared("measure", release, original, job, memory=memory, **reading)
    others = None if holdout is None else shared.original_table(found, holdout, job, **reading)
    share = float(exact("volume", volume))
    figures = jali.measure(found, table, holdout=others, volume=share, **asked)
    shared.tell(figures, as_json=as_json, notes=table.notes)


def _compared(
    what: str, release: Path, original: Path | None, job: Path | None, **reading: Any
) -> tuple[Release, Table]:
    """A release and the table that it was made from, for a command that needs both."""
    import jali

    if job is None and original is None:
        raise InputError(f"the original is needed to {what} a release", do="pass --original FILE or --job JOB.toml")
    found = jali.load(release)
    return found, shared.original_table(found, original, job, **reading)


@click.command()
@shared.release_argument
@shared.original_options
@click.option("--public", type=PATH, metavar="FILE", help="A public table, for linkage and presence.")
@shared.sensitive_option
@click.option(
    "--threshold", metavar="SHARE", default="0.95", show_default=True, help="How sure of a value counts as exposed."
)
@click.option(
    "--cases", metavar="NUMBER", default="3", show_default=True, help="How many cases of each attack to show."
)
@click.option("--algorithm", is_flag=True, help="Only the attack by somebody who knows the algorithm.")
@click.option(
    "--time-limit",
    metavar="SECONDS",
    type=float,
    default=60.0,
    show_default=True,
    help="How long that attack may take.",
)
@shared.reading_options
def attack(
    *, release: Path, original: Path | None, job: Path | None, public: Path | None, sensitive: str | None,
    threshold: str, cases: str, algorithm: bool, time_limit: float, as_json: bool, **reading: Any,
) -> None:  # fmt: skip
    """Try known attacks on a release.

    Homogeneity, background knowledge, linkage with a public table, knowledge of the algorithm, presence in a public
    table: how many people each exposes, and a few cases. The original shows which beliefs are right, so the output is
    for its holder alone. Of a concealed release --job also names the public table.
    """
    import jali
    from jali.principles.base import exact, whole_number

    found, table = _compared("attack", release, original, job, **reading)
    looked_up = shared.public_beside(found, public, job, **reading)
    gallery = jali.attacks(
        found, table, public=looked_up, sensitive=sensitive, threshold=exact("threshold", threshold),
        cases=whole_number("cases", cases, least=0), time_limit=time_limit,
    )  # fmt: skip
    shared.tell(gallery.only("algorithm") if algorithm else gallery, as_json=as_json, notes=table.notes)


@click.command()
@shared.release_argument
@click.option(
    "--population",
    type=PATH,
    required=True,
    metavar="FILE",
    help="What the attacker knows: people or frequencies.",
)
@click.option("--frequency", metavar="COLUMN", help="The population's column of joint frequencies, where it has one.")
@shared.sensitive_option
@click.option("--rho1", type=float, help="With --rho2: count the breaches from below rho1 to above rho2.")
@click.option("--rho2", type=float, help="See --rho1.")
@shared.reading_options
def beliefs(
    *, release: Path, population: Path, frequency: str | None, sensitive: str | None, rho1: float | None,
    rho2: float | None, as_json: bool, **reading: Any,
) -> None:  # fmt: skip
    """Compare an attacker's beliefs before and after.

    Prior and posterior belief of each value, for each quasi-identifier combination of the population, by Theorem 3.1 of
    the l-diversity paper.
    """
    import jali

    if (rho1 is None) != (rho2 is None):
        raise InputError("--rho1 and --rho2 go together", do="give both or none")
    given = jali.load(release)
    found = given.grouped_rows
    if found is None:
        raise InputError(f"{release} is {an(given.kind)} release", do="name a generalized one")
    column = found[sensitive].name if sensitive else None
    named = {"sensitive": [column]} if column else {}
    table = shared.read_like(found, population, weights=frequency, **reading, **named)
    result = jali.beliefs(found, table, sensitive=column)
    breaches = None if rho1 is None or rho2 is None else result.breaches(rho1, rho2).num_rows
    if as_json:
        shared.emit(result.to_dict() | ({} if breaches is None else {"breaches": breaches}))
        return
    click.echo(repr(result))
    if breaches is not None:
        click.echo(f"({rho1:g}, {rho2:g})-breaches: {breaches:,}")


@click.command()
@shared.release_argument
@shared.job_argument
@shared.new_output_option
@click.option(
    "--suppress", type=float, default=1.0, show_default=True, help="The largest share of rows that may be suppressed."
)
@click.option(
    "--by", type=click.Choice(["groups", "tuples"]), default="groups", show_default=True,
    help="Suppress whole groups that break a promise, or single tuples of them.",
)  # fmt: skip
@shared.saving_options
def repair(*, release: Path, job: Path, output: Path, suppress: float, by: Any, overwrite: bool, **saving: Any) -> None:
    """Suppress what keeps RELEASE from the principles of a job.

    Of JOB.toml only [[principles]] is read. The original table is not needed.
    """
    import jali
    from jali.job import requirement

    principles = requirement(job)
    shared.reserve_release(output, overwrite=overwrite)
    repaired = jali.repair(release, principles, suppress=suppress, by=by)
    save_new(repaired, output, overwrite=overwrite, **saving)
    if by == "tuples":
        shared.note("an attacker who knows the algorithm can learn from this release who was taken out")
    shared.note(f"publish it instead of {release}, never together with it: the difference would give groups away")


@click.command()
@shared.release_argument
@shared.job_argument
@shared.new_output_option
@click.option(
    "--attacker", type=click.Choice(["quasi", "marginals"]), default=None,
    help="The attacker knows everybody's quasi-identifiers (by default), or those of one person only.",
)  # fmt: skip
@shared.saving_options
@shared.show_values_option
def inject(*, release: Path, job: Path, output: Path, attacker: str | None, overwrite: bool, **saving: Any) -> None:
    """Add marginals to RELEASE that keep the promises of a job.

    JOB.toml is the job that RELEASE was published with; its [marginals] section, if any, says how to search. The new
    release holds RELEASE among its marginals.
    """
    loaded = shared.load_job(job)
    shared.reserve_release(output, overwrite=overwrite)
    options = loaded.options if loaded.method == "marginals" else {}
    named = {} if attacker is None else {"attacker": attacker}
    loaded = replace(loaded, method="marginals", options={**options, **named, "base": release})
    injected = loaded.run(on_step=shared.on_step())
    save_new(injected, output, overwrite=overwrite, **saving, always_safe=loaded.spreadsheet_safe)
    shared.note(f"publish it instead of {release}: the first release is one of its marginals, or follows from one")


@click.command()
@shared.release_argument
@shared.job_argument
@click.option("--private", type=PATH, metavar="FILE", help="The private file that was saved with the release.")
@shared.new_output_option
@shared.saving_options
@shared.show_values_option
def extend(*, release: Path, job: Path, private: Path | None, output: Path, overwrite: bool, **saving: Any) -> None:
    """Add marginals to an ANGEL release, over the same batches.

    Of JOB.toml the input and its columns are read, and of its section [angel] the marginals, joint_k and joint_time.
    The new release is to be published in place of RELEASE.
    """
    import jali

    shared.reserve_release(output, overwrite=overwrite)
    given = jali.load(release)
    angel = given.batched
    if angel is None:
        raise InputError(f"{release} is {an(given.kind)} release", do="marginals can be added to an ANGEL release only")
    loaded = shared.load_job(job)
    keys = private or loaded.private
    if keys is None:
        raise InputError("the private file of the release is needed", do="pass --private FILE")
    marginals = loaded.options.get("marginals", ())
    joint = {name: loaded.options[name] for name in ("joint_k", "joint_time") if name in loaded.options}
    extended = angel.extend(loaded.table(), marginals, keys, **joint, on_step=shared.on_step())
    save_new(extended, output, overwrite=overwrite, **saving, always_safe=loaded.spreadsheet_safe)
    shared.note(f"publish it in place of {release}; the private file stays as it is")


def save_new(
    release: Release, output: Path, *, overwrite: bool, form: Any, as_json: bool, spreadsheet_safe: bool,
    always_safe: bool = False,
) -> None:  # fmt: skip
    """Save a release that was made from another one, and say what it is; `always_safe` if its job says so."""
    spreadsheet_safe |= always_safe
    summary = repr(release)  # made before anything is written, so that a failure leaves nothing behind
    path = shared.put_release(release, output, overwrite=overwrite, form=form, spreadsheet_safe=spreadsheet_safe)
    if as_json:
        shared.emit({"path": path} | shared.of_release(release))
    else:
        click.echo(summary)
        click.echo(f"Saved in {path}")
    if form == "csv":
        shared.note_formulas(release.formula_columns(), safe=spreadsheet_safe)
