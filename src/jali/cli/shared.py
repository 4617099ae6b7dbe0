"""What commands share: options, notes on stderr, figures on stdout, and failures.

A failure becomes one line on stderr and an exit code; never a traceback, which could show original values.
"""

from __future__ import annotations

import csv
import json
import math
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

import click

from jali.errors import InputError, InternalError, JaliError
from jali.sources.engines.locations import place_of, target_of

if TYPE_CHECKING:
    from jali.core.progress import Step
    from jali.encoding.table import Table
    from jali.job import Job
    from jali.releases.base import Release
    from jali.risk.policy import Policy
    from jali.risk.verdict import Verdict

SHOW_VALUES = "jali.show_values"
"""Where a context keeps whether messages may show original values."""
QUIET = "jali.quiet"

Function = TypeVar("Function", bound=Callable[..., Any])


class _Place(click.Path):
    """A path, or an address that keeps both its slashes."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        return place_of(str(super().convert(value, param, ctx)))


PATH = _Place()


def _remember(key: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    def callback(ctx: click.Context, param: click.Parameter, value: Any) -> None:
        ctx.meta[key] = value

    return callback


job_argument = click.argument("job", type=PATH, metavar="JOB.toml")
release_argument = click.argument("release", type=PATH, metavar="RELEASE")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout.")
quiet_option = click.option(
    "-q", "--quiet", is_flag=True, expose_value=False, callback=_remember(QUIET), help="No progress bar and no notes."
)
show_values_option = click.option(
    "--show-values", is_flag=True, expose_value=False, callback=_remember(SHOW_VALUES), is_eager=True,
    help="Let error messages show original values of the table.",
)  # fmt: skip
memory_option = click.option(
    "--memory",
    metavar="SIZE",
    help='What distinct combinations may take, e.g. "4GB"; by default half of the machine\'s.',
)
overwrite_option = click.option("--overwrite", is_flag=True, help="Replace what is there.")
format_option = click.option(
    "--format", "form", type=click.Choice(["csv", "parquet"]), default="csv", show_default=True,
    help="The files of the release.",
)  # fmt: skip

spreadsheet_option = click.option(
    "--spreadsheet-safe",
    is_flag=True,
    help="Quote CSV cells that a spreadsheet would run: they begin with =, +, - or @.",
)


def options(*several: Callable[[Function], Function]) -> Callable[[Function], Function]:
    """Several options as one, listed by the help in this order."""

    def every(command: Function) -> Function:
        for option in reversed(several):
            command = option(command)
        return command

    return every


def _markers(ctx: click.Context, param: click.Parameter, value: str | None) -> list[str] | None:
    """Markers from `NA,"k. A."`; an empty text is one too."""
    return None if value is None else next(csv.reader([value], skipinitialspace=True), [])


file_options = options(
    click.option("--separator", metavar="CHAR", help="The separator of a CSV file, by default detected."),
    click.option("--encoding", metavar="NAME", help="The encoding of a CSV file, by default UTF-8."),
    click.option("--sheet", metavar="NAME", help="The sheet of a spreadsheet, by default the first one."),
    click.option(
        "--missing-markers", callback=_markers, metavar="A,B,…",
        help="What stands for a missing value: texts, or the name of a set: r, stata or sas.",
    ),
    click.option("--decimal", metavar="CHAR", help="The decimal mark, by default as each column shows."),
    click.option("--thousands", metavar="CHAR", help="What groups digits, by default as each column shows."),
    click.option("--date-format", metavar="FORMAT", help='How dates are written, e.g. "%d.%m.%Y".'),
)  # fmt: skip
printing_options = options(json_option, quiet_option)
reading_options = options(printing_options, file_options, show_values_option)
"""Of commands that print figures and read a file of original rows without a job."""
saving_options = options(overwrite_option, format_option, spreadsheet_option, printing_options)
"""Of commands that make a release from another one; they hand them to `save_new`."""
new_output_option = click.option(
    "-o", "--output", type=PATH, required=True, metavar="FOLDER", help="Where the new release goes."
)
original_options = options(
    click.option("--original", type=PATH, metavar="FILE", help="The table that was published."),
    click.option(
        "--job", type=PATH, metavar="JOB.toml", help="The job it was published with: how to read the original."
    ),
)
sensitive_option = click.option(
    "--sensitive", metavar="COLUMN", help="Which sensitive column, where the release has several."
)


def names(ctx: click.Context, param: click.Parameter, value: str | None) -> list[str] | None:
    """Column names from `a,b,"c, d"`."""
    if value is None:
        return None
    return [name for name in next(csv.reader([value], skipinitialspace=True), []) if name]


def note(text: str) -> None:
    """A remark on stderr, unless --quiet."""
    if not click.get_current_context().meta.get(QUIET):
        click.echo(f"note: {text}", err=True)


def on_step() -> Step | None:
    """Progress as the library shows it (a bar on a terminal), or none at all with --quiet."""
    return (lambda done, total: None) if click.get_current_context().meta.get(QUIET) else None


def emit(data: Any) -> None:
    """Data as JSON on stdout; numbers that JSON does not have become null."""
    ascii_only = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
    click.echo(json.dumps(_plain(data), indent=2, ensure_ascii=ascii_only, allow_nan=False))


def reserve_file(path: Path, *, overwrite: bool) -> None:
    """See before the work that a file can be written, and keep other processes from it until the command ends."""
    from jali.core.files import hold_file

    click.get_current_context().with_resource(hold_file(path, overwrite=overwrite))


def reserve_release(folder: Path, *, overwrite: bool) -> None:
    """The same for the folder of a release; in a database its tables must be free, or may be overwritten."""
    from jali.releases.store import hold_release

    if (location := target_of(folder)) is not None:
        from jali.sources.engines.stored import require_room

        require_room(location, overwrite=overwrite)
        return
    click.get_current_context().with_resource(hold_release(folder, overwrite=overwrite))


def note_formulas(columns: Iterable[str], *, safe: bool) -> None:
    """Say which columns hold what a spreadsheet would run, unless it is quoted."""
    if listed := ", ".join(columns):
        done = "quoted, as asked" if safe else "pass --spreadsheet-safe to quote them"
        note(f"texts that begin with =, +, - or @, which spreadsheets run, in {listed}; {done}")


def tell(figures: Any, *, as_json: bool, notes: Sequence[str] = ()) -> None:
    """Figures on stdout, as JSON or as they print; the JSON has the notes of the reading too."""
    if as_json:
        told = figures.to_dict()
        emit(told | ({"notes": [*told.get("notes", ()), *notes]} if notes else {}))
    else:
        click.echo(repr(figures))


def of_release(release: Release) -> dict[str, Any]:
    """The manifest of a release with every measure, for the person who made it."""
    return release.told() | {"metrics": dict(release.manifest.metrics), "levels": release.levels}


def put_release(
    release: Release, place: Path, *, overwrite: bool, form: Any, spreadsheet_safe: bool, **more: Any
) -> Path:
    """Save a release in a folder, or write it into the database that is named."""
    if target_of(place) is None:
        return release.save(place, overwrite=overwrite, format=form, spreadsheet_safe=spreadsheet_safe, **more)
    if more:
        raise InputError("a private file is kept beside a folder", do="publish into a folder, or leave --private out")
    return release.write(place, overwrite=overwrite)


def _plain(data: Any) -> Any:
    if isinstance(data, Mapping):
        return {str(key): _plain(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_plain(value) for value in data]
    if hasattr(data, "item"):  # a numpy number
        data = data.item()
    if isinstance(data, float):
        return data if math.isfinite(data) else None
    return data if isinstance(data, (int, str, bool, type(None))) else str(data)


def columns_of_text(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Rows of figures under a header, aligned to the right.

    >>> print(columns_of_text(["zip", "groups"], [["2", "12"], ["3", "4"]]))
    zip  groups
      2      12
      3       4
    """
    from jali.core.text import aligned

    return "\n".join(aligned([list(header), *map(list, rows)]))


def load_job(path: Path, **reading: Any) -> Job:
    """A job, with the options of reading that are given in place of its own."""
    from jali.job import Job

    given = {name: value for name, value in reading.items() if value is not None}
    return replace(Job.load(path), **given)


def taken(options: dict[str, Any]) -> dict[str, Any]:
    """The options of reading, taken out of those of a command that has others too."""
    from jali.sources.tables import READING

    return {name: options.pop(name) for name in READING}


def tell_notes(table: Table) -> Table:
    """The table, after a note for everything that its reading decided."""
    for text in table.notes:
        note(text)
    return table


def original_table(release: Release, original: Path | None, job: Path | None, **reading: Any) -> Table:
    """The table that a release was made from, read as its job says, else as the release describes it."""
    if job is not None:
        return tell_notes(load_job(job, **reading).table(original))
    assert original is not None
    return read_like(release, original, weights=release.weight_name, **reading)


def public_beside(
    release: Release, public: Path | None, job: Path | None, *, judged: bool = False, **reading: Any
) -> Table | None:
    """The public table that is named, or that the job of a concealed release names; None where there is none.

    `judged` where its presence is: then it needs the hierarchies of the release.
    """
    if job is None and public is None:
        return None
    if job is None:
        from jali.risk.attacks.links import public_table

        return public_table(release, public, judged=judged, **reading)
    loaded = load_job(job, **reading)
    return None if public is None and "public" not in loaded.options else loaded.public(public)


def policy_named(name: str) -> Policy:
    """The policy of a preset, or that of a job file."""
    from jali.job import policy_in
    from jali.risk.policy import policy_of

    if not name.endswith(".toml"):
        return policy_of(name)
    found = policy_in(name)
    if found is None:
        raise InputError(f"{name} has no [policy]", do='write [policy] with preset = "public"')
    return found


def policy_for(name: str | None, job: Path | None) -> Policy | None:
    """The policy that is named, else that of the job; None where neither says one."""
    from jali.job import policy_in

    if name is not None:
        return policy_named(name)
    return None if job is None else policy_in(job)


def require_safe(verdict: Verdict) -> None:
    """End with exit code 3 unless the verdict is that the release is safe to publish."""
    if not verdict.safe:
        why = "; ".join(one.told for one in verdict.drivers)
        raise BrokenPromise(f"{verdict.sentence.lower()} (policy {verdict.policy.preset}): {why}")


def read_like(release: Release, source: Path, **reading: Any) -> Table:
    """A file of original rows, read with the columns, kinds and hierarchies that a release tells of."""
    from jali.measures.holder import builders
    from jali.sources.tables import read

    own = release.of_role("sensitive")
    valued = [
        c.name for c in own if c.judged is not None and None in c.judged[0].labels and c.judged[0].unknown is None
    ]
    arguments = {"quasi": builders(release), "sensitive": [column.name for column in own]} | reading
    arguments["missing_is_value"] = [name for name in valued if name in arguments["sensitive"]]
    wanted = {*arguments["quasi"], *arguments["sensitive"]}
    kinds = {column.name: column.kind for column in release.columns if column.name in wanted}
    domain = release.manifest.domain
    declared = [c for c in release.of_role("quasi") if c.facts and c.facts.named is not None]
    present = any(domain[column.name] == "present" for column in declared)
    return tell_notes(read(source, types=kinds, domain="present" if present else "declared", **arguments))


# -- failures ------------------------------------------------------------------------------------------------------


class Failure(click.ClickException):
    """The end of a command: a line, and the exit code."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the line on stderr."""
        click.echo(f"jali: error: {self.message}", file=file or sys.stderr)


class CouldNot(Failure):
    """What was asked for cannot be had, or jali has a bug."""

    exit_code = 1


class WrongInput(Failure):
    """The caller's data, parameters or places are wrong."""

    exit_code = 2


class BrokenPromise(Failure):
    """A release does not keep what it promises, or is not safe to publish under a policy."""

    exit_code = 3


class Interrupted(Failure):
    """The user pressed ctrl-C."""

    exit_code = 130


@contextmanager
def one_line(ctx: click.Context) -> Iterator[None]:
    """Whatever goes wrong inside ends as a Failure."""
    try:
        yield
    except (click.exceptions.Exit, click.Abort, Failure):
        raise
    except BrokenPipeError:
        _discard_output()
        ctx.exit(CouldNot.exit_code)
    except KeyboardInterrupt:
        raise Interrupted("interrupted") from None
    except Exception as problem:
        help_wanted = type(problem).__name__ == "NoArgsIsHelpError"  # `jali` alone
        if os.environ.get("JALI_DEBUG") or help_wanted:
            raise
        raise _failure(problem, show_values=bool(ctx.meta.get(SHOW_VALUES))) from None


def _failure(problem: Exception, *, show_values: bool) -> Failure:
    match problem:
        case InputError():
            return WrongInput(problem.with_value() if show_values else str(problem))
        case InternalError():
            report = "" if "please report" in str(problem) else "; please report this bug"
            return CouldNot(f"{problem}{report}")
        case JaliError():
            return CouldNot(str(problem))
        case SystemError() if isinstance(problem.__cause__, KeyboardInterrupt):  # ctrl-C inside machine code
            return Interrupted("interrupted")
        case click.UsageError():
            see = f" (see {problem.ctx.command_path} --help)" if problem.ctx else ""
            return WrongInput(problem.format_message().rstrip(".") + see)
        case click.ClickException():
            return WrongInput(problem.format_message())
        case OSError():
            where = f" {problem.filename}" if problem.filename else ""
            return WrongInput(f"cannot read or write{where}: {problem.strerror or type(problem).__name__}")
        case MemoryError():
            return CouldNot("there is not enough memory")
    return _bug(problem)


def _bug(problem: Exception) -> Failure:
    """What jali did not foresee: its kind and place only, since its text could hold original values."""
    frames = traceback.extract_tb(problem.__traceback__)
    ours = [frame for frame in frames if f"{os.sep}jali{os.sep}" in frame.filename] or frames
    place = f"{os.path.basename(ours[-1].filename)}:{ours[-1].lineno}"
    return CouldNot(f"a bug ({type(problem).__name__} in {place}); please report it")


def _discard_output() -> None:
    """Nobody reads any more: let what is still buffered go nowhere, quietly."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):  # a stream without a file behind it
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # lives as long as the process
