"""Commands for the holder of the original: measure, attack, beliefs; repair, inject and extend."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jali.cli.shared import (
    PATH,
    emit,
    format_option,
    generalized,
    job_argument,
    json_option,
    note,
    on_step,
    overwrite_option,
    public_beside,
    quiet_option,
    read_like,
    reading_options,
    release_argument,
    reserve_release,
    save_new,
    show_values_option,
    spreadsheet_option,
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
@click.option(
    "--queries", type=int, default=0, metavar="NUMBER", help="Ask this number of random counts, and print the error."
)
@click.option(
    "--volume", default="0.05", show_default=True, metavar="SHARE", help="The share of the space of each count."
)
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
    With --job the original is read as it was for publishing (by default the job's own input); otherwise as
    the release itself describes its columns.
    """
    import jali
    from jali.errors import InputError
    from jali.principles.base import exact
    from jali.releases.load import load

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
    """The table that a release was made from, read as its job says, else as the release describes it."""
    if job is not None:
        from dataclasses import replace

        from jali.job import Job

        loaded = Job.load(job)
        loaded = replace(loaded, separator=separator or loaded.separator, encoding=encoding or loaded.encoding)
        return loaded.table(original)
    assert original is not None
    return read_like(release, original, weights=release.weight_name, separator=separator, encoding=encoding)


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
@json_option
@quiet_option
@reading_options
def attack(
    *, release: Path, original: Path | None, job: Path | None, public: Path | None, sensitive: str | None,
    threshold: str, cases: str, algorithm: bool, time_limit: float, as_json: bool, separator: str | None,
    encoding: str | None,
) -> None:  # fmt: skip
    """Try known attacks on a release.

    Homogeneity, background knowledge, linkage with a public table, knowledge of the algorithm, presence in a public
    table: how many people each exposes, and a few cases. The original shows which beliefs are right, so the output is
    for its holder alone. Of a concealed release --job also names the public table.
    """
    import jali
    from jali.errors import InputError
    from jali.principles.base import exact, whole_number
    from jali.releases.load import load

    if job is None and original is None:
        raise InputError("the original is needed to attack a release", do="pass --original FILE or --job JOB.toml")
    found = load(release)
    table = original_table(found, original, job, separator, encoding)
    looked_up = public_beside(found, public, job, separator, encoding)
    gallery = jali.attacks(
        found, table, public=looked_up, sensitive=sensitive, threshold=exact("threshold", threshold),
        cases=whole_number("cases", cases, least=0), time_limit=time_limit,
    )  # fmt: skip
    if algorithm:
        gallery = gallery.only("algorithm")
    if as_json:
        emit(gallery.to_dict())
    else:
        click.echo(repr(gallery))


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


@click.command()
@release_argument
@job_argument
@click.option("-o", "--output", type=PATH, required=True, metavar="FOLDER", help="Where the new release goes.")
@click.option(
    "--suppress", type=float, default=1.0, show_default=True, help="The largest share of rows that may be suppressed."
)
@click.option(
    "--by", type=click.Choice(["groups", "tuples"]), default="groups", show_default=True,
    help="Suppress whole groups that break a promise, or single tuples of them.",
)  # fmt: skip
@overwrite_option
@format_option
@spreadsheet_option
@json_option
@quiet_option
def repair(
    *, release: Path, job: Path, output: Path, suppress: float, by: Any, overwrite: bool, form: Any,
    spreadsheet_safe: bool, as_json: bool,
) -> None:  # fmt: skip
    """Suppress what keeps RELEASE from the principles of a job.

    Of JOB.toml only [[principles]] is read. The original table is not needed.
    """
    import jali
    from jali.job import requirement

    principles = requirement(job)
    reserve_release(output, overwrite=overwrite)
    repaired = jali.repair(release, principles, suppress=suppress, by=by)
    save_new(repaired, output, overwrite=overwrite, form=form, as_json=as_json, spreadsheet_safe=spreadsheet_safe)
    if by == "tuples":
        note("an attacker who knows the algorithm can learn from this release who was taken out")
    note(f"publish it instead of {release}, never together with it: the difference would give groups away")


@click.command()
@release_argument
@job_argument
@click.option("-o", "--output", type=PATH, required=True, metavar="FOLDER", help="Where the new release goes.")
@click.option(
    "--attacker", type=click.Choice(["quasi", "marginals"]), default=None,
    help="The attacker knows everybody's quasi-identifiers (by default), or those of one person only.",
)  # fmt: skip
@overwrite_option
@format_option
@spreadsheet_option
@json_option
@quiet_option
@show_values_option
def inject(
    *,
    release: Path,
    job: Path,
    output: Path,
    attacker: str | None,
    overwrite: bool,
    form: Any,
    spreadsheet_safe: bool,
    as_json: bool,
) -> None:
    """Add marginals to RELEASE that keep the promises of a job.

    JOB.toml is the job that RELEASE was published with; its [marginals] section, if any, says how to search. The new
    release holds RELEASE among its marginals.
    """
    from jali.job import Job

    loaded = Job.load(job)
    reserve_release(output, overwrite=overwrite)
    options = loaded.options if loaded.method == "marginals" else {}
    named = {} if attacker is None else {"attacker": attacker}
    loaded = replace(loaded, method="marginals", options={**options, **named, "base": release})
    injected = loaded.run(on_step=on_step())
    save_new(
        injected, output, overwrite=overwrite, form=form, as_json=as_json,
        spreadsheet_safe=spreadsheet_safe or loaded.spreadsheet_safe,
    )  # fmt: skip
    note(f"publish it instead of {release}: the first release is one of its marginals, or follows from one")


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
    from jali.releases.load import load

    reserve_release(output, overwrite=overwrite)
    given = load(release)
    angel = given.batched
    if angel is None:
        raise InputError(f"{release} is {an(given.kind)} release", do="marginals can be added to an ANGEL release only")
    loaded = Job.load(job)
    keys = private or loaded.private
    if keys is None:
        raise InputError("the private file of the release is needed", do="pass --private FILE")
    marginals = loaded.options.get("marginals", ())
    joint = {name: loaded.options[name] for name in ("joint_k", "joint_time") if name in loaded.options}
    extended = angel.extend(loaded.table(), marginals, keys, **joint, on_step=on_step())
    save_new(
        extended, output, overwrite=overwrite, form=form, as_json=as_json,
        spreadsheet_safe=spreadsheet_safe or loaded.spreadsheet_safe,
    )  # fmt: skip
    note(f"publish it in place of {release}; the private file stays as it is")
