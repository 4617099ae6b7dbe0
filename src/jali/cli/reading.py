"""Commands that read a release alone: query, sample, audit, report, disclosure, presence."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jali.cli import shared
from jali.cli.shared import PATH, names
from jali.cli.starting import types_option
from jali.core.files import put_file
from jali.errors import InputError

if TYPE_CHECKING:
    from jali.risk.audit.figures import Audit
    from jali.risk.audit.joint_figures import JointAudit, JointAudits
    from jali.risk.policy import Policy
    from jali.risk.verdict import Verdict


@click.command()
@shared.release_argument
@click.argument("condition", metavar="CONDITION")
@shared.printing_options
def query(*, release: Path, condition: str, as_json: bool) -> None:
    """Estimate how many rows of RELEASE meet a condition.

    CONDITION is a text such as "age BETWEEN 35 AND 45 AND disease IN ('flu', 'cold')", with AND, OR, NOT and
    comparisons; a column whose name is no plain word stands in double quotes. Where the answer depends on a column
    that is shown as * with no declared domain, there are bounds and no estimate.
    """
    import jali
    from jali.core.text import lines_of
    from jali.errors import UndeterminedError

    estimate: float | None
    try:
        count = jali.load(release).estimate().count(condition)
        estimate, low, high, assumes = float(count), count.low, count.high, count.assumes
    except UndeterminedError as problem:
        estimate, low, high, assumes = None, problem.low, problem.high, ()
        shared.note(str(problem))
    if as_json:
        shared.emit({"condition": condition, "count": estimate, "low": low, "high": high, "assumes": list(assumes)})
        return
    figures_shown = (("estimate", estimate), ("at least", low), ("at most", high))
    told = [(name, "not known" if figure is None else _number(figure, name)) for name, figure in figures_shown]
    click.echo("\n".join(lines_of(told)))
    for assumed in assumes:
        click.echo(f"assuming: {assumed}")


def _number(figure: float, name: str) -> str:
    """A figure with six digits, or all before the point; bounds are rounded outward, so that they stay bounds."""
    rounding = {"at least": ROUND_FLOOR, "at most": ROUND_CEILING}.get(name, ROUND_HALF_EVEN)
    exact = Decimal(f"{figure:.15g}")  # what lies beyond are errors of adding
    digits = max(0, 5 - exact.adjusted()) if exact else 0
    rounded = exact.quantize(Decimal(1).scaleb(-digits), rounding)
    whole, _, rest = f"{rounded:,f}".partition(".")
    return f"{whole}.{rest}".rstrip("0").rstrip(".") if rest else whole


@click.command()
@shared.release_argument
@click.option("-n", "--rows", type=int, metavar="NUMBER", help="How many people; by default as many as were published.")
@click.option("--seed", type=int, default=0, show_default=True, metavar="NUMBER", help="Same seed, same people.")
@click.option("-o", "--output", type=PATH, metavar="FILE", help="A CSV or Parquet file, instead of stdout.")
@shared.overwrite_option
@shared.spreadsheet_option
@shared.quiet_option
def sample(
    *, release: Path, rows: int | None, seed: int, output: Path | None, overwrite: bool, spreadsheet_safe: bool
) -> None:
    """Draw people from RELEASE, with exact values in every column.

    They are drawn from what the release shows, so they say no more than it does: somebody of the original is among them
    by chance only.
    """
    import pyarrow.csv as pacsv
    import pyarrow.parquet as pq

    import jali
    from jali.core.formats import formula_columns, quoted

    if output is not None and output.suffix not in (".csv", ".parquet"):
        raise InputError("a sample is written as CSV or Parquet", got=output.name, do="name it e.g. sample.csv")
    if output is not None:
        shared.reserve_file(output, overwrite=overwrite)
    loaded = jali.load(release)
    drawn = loaded.estimate().sample(rows, seed=seed)
    if output is not None and output.suffix == ".parquet":
        put_file(output, lambda path: pq.write_table(drawn, path), overwrite=overwrite)
        return
    kinds = {column.name: column.kind for column in loaded.columns}
    written = quoted(drawn, kinds) if spreadsheet_safe else drawn
    if output is None:
        pacsv.write_csv(written, sys.stdout.buffer)
    else:
        put_file(output, lambda path: pacsv.write_csv(written, path), overwrite=overwrite)
    shared.note_formulas(formula_columns(drawn, kinds), safe=spreadsheet_safe)


@click.command()
@click.argument("releases", type=PATH, nargs=-1, required=True, metavar="RELEASE...")
@click.option("--quasi", callback=names, metavar="A,B,…", help="Of a file: what an attacker may know.")
@click.option("--sensitive", callback=names, metavar="S,…", help="Of a file: what nobody should learn.")
@click.option("--person", metavar="COLUMN", help="Of a file: whose row it is, where a person has several.")
@types_option
@click.option("--public-table", type=PATH, metavar="FILE", help="Judge presence against this public table.")
@click.option("--job", type=PATH, metavar="JOB.toml", help="The job of a concealed release, which names that table.")
@click.option("--policy", metavar="NAME", help="Judge it: public, researchers, internal, or a job with [policy].")
@shared.reading_options
def audit(
    *, releases: tuple[Path, ...], quasi: list[str] | None, sensitive: list[str] | None, person: str | None,
    types: dict[str, Any] | None, public_table: Path | None, job: Path | None, policy: str | None, as_json: bool,
    **reading: Any,
) -> None:  # fmt: skip
    """Say what an attacker can learn.

    RELEASE... is a folder that jali wrote, or any file that it reads together with --quasi and --sensitive; of several
    folders, releases of one table, it says what an attacker who holds them all can learn. The exit code is 3 if a
    promise of a release is broken, and with --policy if it is not safe to publish under that policy.
    """
    import jali

    thresholds = None if policy is None else shared.policy_named(policy)
    if thresholds is not None and len(releases) > 1:
        raise InputError("a policy judges one release", do="leave --policy out, or name one release")
    found: Audit | JointAudit | JointAudits
    release = releases[0]
    notes: tuple[str, ...] = ()
    beside = public_table is not None or job is not None
    of_rows = holds_rows(release, named=bool(quasi))
    if beside and (len(releases) > 1 or of_rows):
        raise InputError("presence is judged for one release", do="leave --public-table and --job out")
    if len(releases) > 1:
        if quasi or sensitive or person or types:
            do = "leave --quasi, --sensitive, --person and --types out"
            raise InputError("several releases know their columns", do=do)
        found = jali.audit(list(releases))
    elif not of_rows:
        if quasi or sensitive or person or types:
            do = "--quasi, --sensitive, --person and --types are for files of rows"
            raise InputError(f"{release} is no file", do=do)
        found = _audited(release, public_table, job, "--public-table", **reading) if beside else jali.audit(release)
    else:
        if not quasi:
            raise InputError(f"to audit the file {release}, name its columns", do="--quasi age,zip --sensitive disease")
        columns: dict[str, Any] = {"quasi": dict.fromkeys(quasi, jali.suppress()), "sensitive": sensitive or []}
        table = shared.tell_notes(jali.read(release, **columns, person=person, types=types, **reading))
        found, notes = jali.audit(table), table.notes
    if thresholds is None:
        shared.tell(found, as_json=as_json, notes=notes)
        _require_kept(found.kept)
        return
    judged = _judged(thresholds, found, None if of_rows else release)
    if as_json:
        shared.emit(found.to_dict() | {"verdict": judged.to_dict()})
    else:
        click.echo(f"{found!r}\n\n{judged!r}")
    _require_kept(found.kept)
    shared.require_safe(judged)


def holds_rows(place: Path, *, named: bool) -> bool:
    """Whether a place holds rows rather than a release; in a database, or a folder, it does where columns are named."""
    from jali.sources.engines.locations import located

    found = located(place)
    if found is not None:
        return named or (found.scheme == "parquet" and not place.is_dir())
    return place.exists() and not place.is_dir()  # a pipe too


def _judged(policy: Policy, found: Any, release: Path | None) -> Verdict:
    """The verdict on what was audited: a release, or a file that promises nothing."""
    import jali
    from jali.risk.verdict import verdict

    return verdict(policy, found, None if release is None else jali.load(release))


def _audited(release: Path, public_table: Path | None, job: Path | None, option: str, **reading: Any) -> Audit:
    """The audit of a release and its presence against a public table, which the option or the job names."""
    import jali

    loaded = jali.load(release)
    public = shared.public_beside(loaded, public_table, job, judged=True, **reading)
    if public is None:
        raise InputError(f"{job} names no public table", do=f"pass {option} FILE")
    return jali.audit(loaded, public_table=public)


def _require_kept(promises: Mapping[str, bool | None]) -> None:
    broken = [name for name, kept in promises.items() if kept is False]
    if broken:
        raise shared.BrokenPromise(f"a promise is broken: {', '.join(broken)}")


@click.command()
@click.argument("releases", type=PATH, nargs=-1, required=True, metavar="RELEASE...")
@shared.original_options
@click.option("--public", is_flag=True, help="The edition to hand out; also what is made without an original.")
@click.option("--public-table", type=PATH, metavar="FILE", help="Judge presence against this public table.")
@click.option("--title", metavar="TEXT", help="What stands at the top of the page.")
@click.option("--policy", metavar="NAME", help="public, researchers, internal, or a job; by default that of --job.")
@click.option("--check", is_flag=True, help="Exit with 3 unless the verdict is that it is safe to publish.")
@click.option("--attacks", is_flag=True, help="Also try the attack by somebody who knows the algorithm: a minute.")
@click.option("--frontier", type=PATH, metavar="FILE", help="What changes would cost, from jali frontier --json.")
@click.option("--decision", metavar="TEXT", help="For the sign-off: what was decided.")
@click.option("--decided-by", metavar="NAME", help="For the sign-off: who decided it.")
@click.option("--decided-on", metavar="DAY", help="For the sign-off: when.")
@click.option(
    "-o", "--output", type=PATH, default=Path("report.html"), show_default=True, metavar="FILE.html",
    help="Where the page goes.",
)  # fmt: skip
@shared.overwrite_option
@shared.quiet_option
@shared.file_options
@shared.show_values_option
def report(
    *, releases: tuple[Path, ...], original: Path | None, job: Path | None, public: bool, public_table: Path | None,
    title: str | None, policy: str | None, check: bool, attacks: bool, frontier: Path | None, decision: str | None,
    decided_by: str | None, decided_on: str | None, output: Path, overwrite: bool, **reading: Any,
) -> None:  # fmt: skip
    """Write one page to decide from, which opens without a network.

    It begins with the verdict under a policy: the thresholds that a release must meet. The public edition is computed
    from the release alone. With --original or --job it is the private edition, which compares with the original and is
    marked as confidential wherever it does. Presence is judged against the public table, which --public-table or the
    job of a concealed release names. RELEASE... is one release, or two of one table, which it shows side by side. With
    --check the exit code is 3 if one of them is not safe to publish.
    """
    import jali
    from jali.reports.page import digest, require_outside

    private = original is not None or job is not None
    if public and private:
        raise InputError("the public edition does not use the original", do="leave out --original and --job")
    if len(releases) > 2:
        raise InputError("a report is about one release or two", got=str(len(releases)), do="name one or two")
    require_outside(output)
    shared.reserve_file(output, overwrite=overwrite)
    thresholds = shared.policy_for(policy, job)
    signed = {"decision": decision, "by": decided_by, "on": decided_on}
    said = {name: text for name, text in signed.items() if text is not None}
    every = [jali.load(release) for release in releases]
    table = shared.original_table(every[0], original, job, **reading) if private else None
    beside = shared.public_beside(every[0], public_table, job, judged=True, **reading)
    sealed = {"digest": digest(releases[0]), "release": releases[0].name} if private and len(releases) == 1 else {}
    page = jali.report(
        every[0] if len(every) == 1 else every, table, public=public, public_table=beside, title=title,
        policy=thresholds, attacks=attacks, frontier=frontier, decided={**said, **sealed},
    )  # fmt: skip
    path = page.save(output, overwrite=overwrite)
    click.echo(f"The {page.edition} edition is in {path}")
    for name, judged in zip(releases, page.verdicts, strict=True):
        whom = f": {judged.audience}" if judged.audience else ""
        shared.note(f"{name}: {judged.sentence.lower()}{whom} (policy {judged.policy.preset})")
    if page.edition == "public" and any(judged.decision == "stop" for judged in page.verdicts):
        shared.note(f"{path} shows what the release gives away: do not hand it out either")
    if check:
        for judged in page.verdicts:
            shared.require_safe(judged)


MOST = 10_000
"""Numbers of facts that one call may ask for."""


@click.command()
@shared.release_argument
@click.option("-k", "facts", default="0..13", show_default=True, metavar="K", help="How many facts: 3, 0..13 or 1,3,5.")
@shared.sensitive_option
@click.option("--witness", is_flag=True, help="Also show the worst knowledge, for the largest K.")
@click.option("--knowledge", type=PATH, metavar="FILE", help="Also judge an attacker who knows what a JSON file says.")
@click.option("--seed", type=int, help="For --knowledge, where worlds must be drawn because they cannot be counted.")
@click.option("--plot", type=PATH, metavar="FILE", help="Draw the curve, as .svg or .png.")
@shared.printing_options
def disclosure(
    *, release: Path, facts: str, sensitive: str | None, witness: bool, knowledge: Path | None, seed: int | None,
    plot: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Say how much an attacker with background knowledge can learn.

    For each number of facts K, how sure the worst attacker is of somebody's value: one who knows K implications
    ("if Ann has flu, so has Bob"), and one who can only rule out K values.
    """
    from jali import disclosure as found
    from jali.core.charts import require_form
    from jali.releases.load import load
    from jali.releases.summary import many

    asked = _numbers(facts)
    if plot is not None:
        require_form(plot)
        shared.reserve_file(plot, overwrite=True)
    known = None if knowledge is None else found.read_knowledge(knowledge)
    published = load(release)
    curve = found.curve(published, asked, sensitive=sensitive)
    worst = found.witness(published, max(asked), sensitive=sensitive) if witness else None
    risk = None if known is None else found.risk(published, known, sensitive=sensitive, seed=seed)
    if plot is not None:
        curve.plot(plot)
    if as_json:
        extra: dict[str, Any] = {} if worst is None else {"witness": worst.to_dict()}
        if risk is not None:
            figures = {name: getattr(risk, name) for name in ("low", "high", "exact", "how")}
            extra["risk"] = {"probability": float(risk)} | figures | {"target": str(risk.target)}
        shared.emit(curve.to_dict() | extra)
        return
    click.echo(repr(curve))
    if worst is not None:
        told = many(len(worst.knowledge), "fact")
        more = "; more would add nothing" * (len(worst.knowledge) < max(asked))
        click.echo(f"\nThe worst {told}{more}\n{worst!r}")
    if risk is not None:
        click.echo(f"\nWith the knowledge of {knowledge}: {risk} that {risk.target} ({risk.how})")
    if plot is not None:
        click.echo(f"Saved in {plot}")


def _numbers(text: str) -> list[int]:
    """3, 0..13 and 1,3,5 as numbers."""

    if span := re.fullmatch(r"\s*(\d+)\s*\.\.\s*(\d+)\s*", text):
        low, high = int(span[1]), int(span[2])
        if low <= high < low + MOST:
            return list(range(low, high + 1))
        if low <= high:
            raise InputError("-k asks for too many numbers of facts", got=text, do=f"ask for at most {MOST:,} at once")
    elif re.fullmatch(r"\s*\d+\s*(,\s*\d+\s*)*", text):
        return [int(number) for number in text.split(",")]
    raise InputError("-k is no number of facts", got=text, do="write 3, 0..13 or 1,3,5")


@click.command()
@shared.release_argument
@click.option("--public", type=PATH, metavar="FILE", help="The public table.")
@click.option("--job", type=PATH, metavar="JOB.toml", help="The job it was published with, which names that table.")
@shared.reading_options
def presence(*, release: Path, public: Path | None, job: Path | None, as_json: bool, **reading: Any) -> None:
    """Say how surely people of a public table are in RELEASE.

    The least and the greatest probability, from the published cells alone. The exit code is 3 if a bound that the
    release promises is broken against this table.
    """
    if public is None and job is None:
        raise InputError("presence is judged against a public table", do="pass --public FILE or --job JOB.toml")
    audited = _audited(release, public, job, "--public", **reading)
    assert audited.presence is not None
    judged = {name: kept for name, kept in audited.kept.items() if name.startswith("DeltaPresence")}
    if as_json:
        shared.emit(audited.presence.to_dict() | {"kept": judged})
    else:
        click.echo(repr(audited.presence))
        for name, kept in judged.items():
            click.echo(f"  {name}: {'kept' if kept else 'BROKEN'}")
    _require_kept(judged)
