"""The command `jali`: data on stdout, notes on stderr; exit 0 fine, 1 could not, 2 wrong input, 3 the audit failed."""

from __future__ import annotations

import contextlib
import io
import json
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jali._version import __version__
from jali.cli import shared
from jali.cli.holding import attack, beliefs, extend, inject, measure, repair
from jali.cli.publishing import frontier, hierarchy, minimal, publish
from jali.cli.reading import audit, disclosure, presence, query, report, sample
from jali.cli.shared import PATH
from jali.cli.starting import init, profile, studio
from jali.core.files import hold_folder, put_content
from jali.errors import InputError, nearest

if TYPE_CHECKING:
    from jali.encoding.table import Table
    from jali.releases.base import Release
    from jali.reports.material import Material

REPORT = "report.html"
TITLE = "An invented census, published"
POLICY = "researchers"
"""The policy that the demo is judged by."""
QUERIES = (
    "age >= 50 AND occupation = 'Sales'",
    "age BETWEEN 30 AND 39 AND occupation IN ('Exec-managerial', 'Prof-specialty')",
)


@click.command()
@click.option(
    "-o", "--output", type=PATH, default=Path("jali-demo"), show_default=True, metavar="FOLDER",
    help="Where the release and the report go; earlier ones of the demo are replaced.",
)  # fmt: skip
@click.option("--rows", type=click.IntRange(min=1), default=45222, show_default=True, help="How many people to invent.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Another seed, other people.")
@shared.printing_options
def demo(*, output: Path, rows: int, seed: int, as_json: bool) -> None:
    """Show jali at work on an invented census.

    Compares the methods, publishes with the one that the frontier recommends among those that withstand an attacker
    who knows the algorithm, shows risk and use before and after, and writes the report; needs no input.
    Every group has at least 10 people and entropy diversity 6 in occupation.
    """
    import jali
    from jali.compare.page import reasons
    from jali.core.text import listed
    from jali.reports.material import Material
    from jali.risk.policy import PRESETS

    started = time.perf_counter()
    click.get_current_context().with_resource(hold_folder(output))
    table = jali.datasets.census(rows=rows, seed=seed)
    _require_own(output, table)
    promises = [jali.KAnonymity(10), jali.EntropyDiversity(6)]
    compared = jali.frontier(table, promises, transparent=True, strengths=(), on_step=shared.on_step())
    release = compared.release(table, on_step=shared.on_step())
    (output / REPORT).unlink(missing_ok=True)
    path = release.save(output, overwrite=True)
    material = Material(release, table, policy=PRESETS[POLICY])
    answers = _answers(release, table)
    page = _report(release, table, path)
    seconds = time.perf_counter() - started
    if as_json:
        figures: dict[str, Any] = {
            "audit": jali.audit(path).to_dict(), "measures": jali.measure(release, table).to_dict(), "queries": answers,
            "reason": compared.reason, "verdict": material.verdict.to_dict(),
        }  # fmt: skip
        shared.emit({"path": path, "report": page, "seconds": seconds} | shared.of_release(release) | figures)
        return
    known = listed([c.name for c in table.quasi])
    click.echo(f"An invented census of {rows:,} people: {known}, which an attacker may know, and their occupation.\n")
    click.echo(f"{next(iter(reasons(compared)))}\n\n{release!r}\n")
    _compare(material)
    click.echo(f"\n{material.verdict!r}\n\nWhat an analyst can ask")
    for answer in answers:
        shown = "{condition}: about {count:,.0f}, between {low:,.0f} and {high:,.0f}; in truth {truth:,}"
        click.echo(shown.format(**answer))
    click.echo(f"\nReport: open {page} in a browser")
    click.echo(f"Saved in {path} after {seconds:.1f} s. Try: jali audit {path}")


def _compare(material: Material) -> None:
    """Risk and use before and after, as the report has them."""
    from jali.core.text import percent
    from jali.reports.answers import ranked
    from jali.reports.decision import risks

    for header, rows in (
        (("What an attacker can do", "before", "after"), [*risks(material)]),
        (
            ("What an analyst loses most", "lost", ""),
            [(one.what, percent(one.lost), "") for one in ranked(material)[:5]],
        ),
    ):
        every = [[cell.replace("\u00a0", " ") for cell in row] for row in (header, *rows)]
        widths = [max(len(row[at]) for row in every) for at in range(len(header))]
        lines = [f"{row[0]:<{widths[0]}}  {row[1]:>{widths[1]}}  {row[2]:>{widths[2]}}".rstrip() for row in every]
        click.echo("\n".join([*lines, ""]), nl=header[2] != "")


def _report(release: Release, table: Table, folder: Path) -> Path:
    """The private edition, since nobody lives in this census."""
    import jali

    page = jali.report(release, table, title=TITLE, policy=POLICY).html
    # Nobody is in this table, so that its confidential page may lie beside the release, where `save` puts none.
    put_content(folder / REPORT, page, overwrite=True)
    return folder / REPORT


def _answers(release: Release, table: Table) -> list[dict[str, Any]]:
    """The queries' answers from the release, and those of the table itself."""
    import jali

    exact = jali.generalize(table, [jali.KAnonymity(1)], levels={}).estimate()
    estimate = release.estimate()
    answers = []
    for condition in QUERIES:
        count = estimate.count(condition)
        truth = round(exact.count(condition))
        answers.append(
            {"condition": condition, "count": float(count), "low": count.low, "high": count.high, "truth": truth}
        )
    return answers


def _require_own(folder: Path, table: Table) -> None:
    """Raise InputError when the folder holds anything but an earlier release of the demo."""
    if not folder.is_dir() or not any(folder.iterdir()):
        return
    do = "choose another one with -o"
    problem = InputError(f"the folder {folder} holds something that the demo did not write", do=do)
    try:
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        expected = {"manifest.json", *manifest["files"]}
        columns = [column["name"] for column in manifest["columns"]]
    except (OSError, ValueError, KeyError, TypeError):
        raise problem from None
    found = {path.name for path in folder.iterdir()} - ({REPORT} if _is_own(folder / REPORT) else set())
    if columns != [c.name for c in table.columns] or found != expected:
        raise problem


def _is_own(page: Path) -> bool:
    """Whether a report is one that the demo wrote."""
    try:
        return f"<title>{TITLE}</title>" in page.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return False


@click.command()
@click.argument("name", metavar="NAME")
@click.option("--adult", type=PATH, metavar="FILE", help="The Adult table, instead of the environment's JALI_ADULT.")
@click.option("-o", "--output", type=PATH, metavar="FOLDER", help="Where tables and plots go; by default nowhere.")
@click.option("--quick", is_flag=True, help="Leave out the larger settings.")
@shared.quiet_option
def reproduce(*, name: str, adult: Path | None, output: Path | None, quick: bool) -> None:
    """Compute the figures of a paper again.

    NAME is the paper: l-diversity, background-knowledge, marginals, pdf or angel.
    """
    from jali.reproduce import run

    report = run(name, adult=adult, out=output, quick=quick, on_step=shared.on_step())
    click.echo(repr(report))
    if output is not None:
        click.echo(f"Saved in {output}")


class App(click.Group):
    """A group whose every failure is one line; commands are listed in the order of a first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order in which they were added."""
        return list(self.commands)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The options before the command."""
        with shared.one_line(ctx):
            return super().parse_args(ctx, args)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """The command of a name, or a hint at the nearest one."""
        if args[0] not in self.commands:
            raise InputError(f'no command "{args[0]}"', do=nearest(args[0], self.commands))
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, and see that its output reached its reader."""
        with shared.one_line(ctx):
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result


@click.group("jali", cls=App, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="jali", help="Show the version and exit.")
def app() -> None:
    """Publish tables about people without exposing anybody.

    Start with `jali demo`, or with `jali init DATA.csv`. Exit codes: 0 fine, 1 could not, 2 wrong input, 3 a promise is
    broken or a policy not met.
    """


for command in (
    demo,
    profile,
    init,
    studio,
    publish,
    frontier,
    minimal,
    hierarchy,
    audit,
    measure,
    report,
    query,
    sample,
    extend,
    repair,
    inject,
    beliefs,
    disclosure,
    attack,
    presence,
    reproduce,
):
    app.add_command(command)


def main() -> None:
    """What the installed command `jali` runs."""
    with contextlib.suppress(ValueError, AttributeError):  # not in the main thread, or no such signal
        signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # so that half-written files go
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that lacks a sign shows its number instead
    try:
        app(prog_name="jali")
    except KeyboardInterrupt:
        sys.exit(shared.Interrupted.exit_code)
