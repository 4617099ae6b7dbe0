"""Commands that come first: profile says what a table tells, init writes a first job, studio opens the browser."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jali.cli import shared
from jali.cli.shared import PATH
from jali.core.files import put_content
from jali.core.text import printable
from jali.errors import InputError
from jali.sources.engines.locations import is_address, located

if TYPE_CHECKING:
    from jali.risk.profile import ColumnProfile, Profile


person_option = click.option(
    "--person", metavar="COLUMN", help="The column that says whose row it is, where people have several."
)


def _kinds(ctx: click.Context, param: click.Parameter, value: str | None) -> dict[str, str] | None:
    """Kinds of columns from `zip=text,"a, b"=number`."""
    given = [each.rpartition("=") for each in shared.names(ctx, param, value) or ()]
    if wrong := [name for name, sign, _ in given if not sign or not name]:
        raise InputError(
            f"--types: {len(wrong)} of {len(given)} name no column and kind", do="write zip=text,year=number"
        )
    return None if value is None else {name: kind for name, _, kind in given}


types_option = click.option(
    "--types", callback=_kinds, metavar="A=KIND,…",
    help="Of columns that are not what they look like: number, text, date or boolean.",
)  # fmt: skip


@click.command()
@click.argument("data", type=PATH, metavar="DATA")
@click.option("-o", "--output", type=PATH, metavar="FILE.html", help="Write one page instead of text.")
@person_option
@types_option
@shared.overwrite_option
@shared.printing_options
@shared.file_options
@click.option("--show-values", is_flag=True, help="Show frequent values of each column.")
def profile(
    *, data: Path, output: Path | None, person: str | None, overwrite: bool, as_json: bool, show_values: bool,
    **reading: Any,
) -> None:  # fmt: skip
    """Say what a table tells about its people, before it is published.

    Of every column of DATA: its kind, its values, how far it singles people out, its likely role and hierarchy; the
    smallest sets of columns that make people unique; what HIPAA's Safe Harbor and the GDPR's supervisors ask. All of it
    is computed from the original: keep it as safe as that.
    """
    import jali

    if output is not None:
        shared.reserve_file(output, overwrite=overwrite)
    found = jali.profile(data, person=person, show_values=show_values, **reading)
    for text in found.notes:
        shared.note(text)
    path = None if output is None else found.save(output, overwrite=overwrite)
    if as_json:
        shared.emit({"path": path} | found.to_dict())
    elif path is None:
        click.echo(repr(found))
    if path is not None:
        shared.note(f"the page is in {path}; it is confidential, for the holder of the table alone")


@click.command()
@click.argument("data", type=PATH, metavar="DATA")
@click.option(
    "-o",
    "--output",
    type=PATH,
    default=Path("job.toml"),
    show_default=True,
    metavar="FILE",
    help="The job; - is stdout.",
)
@person_option
@types_option
@shared.file_options
@shared.overwrite_option
@shared.quiet_option
def init(*, data: Path, output: Path, person: str | None, overwrite: bool, **reading: Any) -> None:
    """Write a commented job for a table, which runs as it is.

    Columns of DATA that look like identifiers are dropped, those that others may know get hierarchies, sensitive ones a
    promise. Guesses are marked with "# check"; it shows no row. See jali profile for the figures behind it.
    """
    import jali
    from jali.risk.roles import K

    if not data.is_file() and located(data) is None:  # a pipe cannot be read again when the job is run
        raise InputError(f"no file {data}", do="name a file with a table")
    to_stdout = str(output) == "-"
    if not to_stdout:
        shared.reserve_file(output, overwrite=overwrite)
    found = jali.profile(data, person=person, **reading)
    for text in found.notes:
        shared.note(text)
    if found.people < K:
        what = f"a first job makes groups of at least {K} people, and the table is about {found.people}"
        raise InputError(what, do="give a larger table; jali profile says what this one tells")
    folder = Path.cwd() if to_stdout else output.parent
    source = str(data) if is_address(data) else Path(os.path.relpath(data, folder)).as_posix()
    text = job_text(found, source, "job.toml" if to_stdout else output.name)
    if to_stdout:
        click.echo(text, nl=False)
        return
    put_content(output, text, overwrite=overwrite)
    if few := few_people(found):
        shared.note(few)
    shared.note(f'wrote {output}: see what is marked "# check" in it, then run jali publish {output}')


@click.command()
@click.argument("data", type=PATH, required=False, metavar="[DATA]")
@click.option("--demo", is_flag=True, help="Try it on an invented census, which is written into jali-studio-demo.")
@click.option("--no-browser", is_flag=True, help="Print the address and open nothing.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="The port; 0, the default, is any.")
@click.option(
    "--stop-after",
    type=click.FloatRange(0, min_open=True),
    metavar="MINUTES",
    help="Stop when no page was open for this time.",
)
@shared.quiet_option
def studio(*, data: Path | None, demo: bool, no_browser: bool, port: int, stop_after: float | None) -> None:
    """Go the whole way in a browser, on this machine alone.

    DATA is a table, or a job; without it the page asks for one below the current folder. Only files below the folder
    of DATA are read and written. The address is for one use: it opens the page and is worth nothing afterwards. What
    is done there is kept beside DATA at once, in a file that only you can read, and saved as a job for jali publish.
    """
    from jali.studio.app import require_studio, serve

    require_studio()
    if demo:
        if data is not None:
            raise InputError("--demo brings its own table", do="leave DATA or --demo out")
        data = _demo_table(Path("jali-studio-demo"))
    if data is not None and not data.is_file():
        raise InputError(f"no file {data}", do="name a file with a table")
    data = None if data is None else data.resolve()  # the folder of the table itself, where its name is a link
    root = Path.cwd() if data is None else data.parent
    serve(
        root, data, first_job=_demo_job if demo else job_text, port=port, stop_after=stop_after,
        announce=lambda address: click.echo(f"The studio is at {address}"), opened=None if no_browser else _browse,
    )  # fmt: skip
    shared.note("the studio has stopped")


def _browse(address: str) -> None:
    """Open the address in a browser, where there is one."""
    import webbrowser

    webbrowser.open(address)


def _demo_job(made: Profile, source: str, name: str) -> str:
    """A first job in which nobody should learn the occupation, as in `jali demo`."""
    told: dict[str, Any] = {
        "role": "sensitive",
        "promise": 'name = "DistinctDiversity"\nl = 3',
        "rank": None,
        "hierarchy": "",
    }
    columns = [replace(c, **told) if c.name == "occupation" else c for c in made.columns]
    return job_text(replace(made, columns=tuple(columns)), source, name)


def _demo_table(folder: Path) -> Path:
    """The invented census as a file; the one that is there from an earlier time stays."""
    import jali
    from jali.core.formats import csv_parts
    from jali.core.rows import Rows

    target = folder / "census.csv"
    folder.mkdir(exist_ok=True)
    if not target.exists():
        census = Rows(jali.datasets.census(10_000).frame("arrow"))
        put_content(target, b"".join(csv_parts(census)), overwrite=False)
    return target


# -- the job -------------------------------------------------------------------------------------------------------


def job_text(made: Profile, source: str, name: str) -> str:
    """A job for the table of a profile, as the text of a TOML file that runs as it is."""
    from jali.risk.profile import FEWEST, LATTICE, NODES
    from jali.risk.roles import K

    if not made.of_role("quasi"):
        raise InputError("no column can be published", do="see jali profile for the reasons")
    enough = made.people >= FEWEST or bool(made.of_role("person"))  # groups of people with several rows may not merge
    searched = made.nodes <= NODES and len(made.of_role("quasi")) <= LATTICE and enough
    searched = searched and not made.of_role("sensitive")  # only equal halves withstand who knows the algorithm
    method = "generalize" if searched else "partition"
    k = PUBLIC_K if made.people >= PUBLIC_K else K
    parts = [
        f"# A job for jali. It runs as it is:  jali publish {name}\n"
        "# jali guessed what each column is from its name and values; the lines marked # check are doubtful.\n"
        + (f"# {few_people(made)}  # check\n" if few_people(made) else ""),
        "\n".join(_head(made, source, method)) + "\n",
        _left_out(made),
        "[quasi]      # what an attacker may know, with its hierarchy; the most telling column first\n"
        + _lines((c, c.hierarchy) for c in made.of_role("quasi")),
        "[sensitive]  # what nobody should learn about a person\n"
        + _lines((c, "true") for c in made.of_role("sensitive")),
        _types(made),
        _METHOD[method],
        f'[[principles]]\nname = "KAnonymity"\nk = {k}\n',
        *(
            f"[[principles]]\n{promise}\nsensitive = {quoted(c.name)}\n"
            for c in made.of_role("sensitive")
            for promise in c.promise.split("\n\n")
        ),
    ]
    return "\n".join(part for part in parts if part)


def few_people(made: Profile) -> str:
    """What is to be said of a table that is too small for the policy "public"; nothing of a larger one."""
    if made.people >= PUBLIC_K:
        return ""
    return f"no release of {made.people} people meets the policy public: that takes groups of {PUBLIC_K} on average"


PUBLIC_K = 20
"""Groups of this number of people meet the policy "public": at most 1/11 for anybody, and 1/20 on average."""
_KNOWN = "transparent = true   # also against an attacker who knows how jali chooses groups\n"
_METHOD = {
    "generalize": '[generalize]\nmetric = "loss"      # or "discernibility", "average", "height"\n'
    f"suppress = 0.05      # the share of rows that may be shown as *\n{_KNOWN}",
    "partition": f"[partition]\n{_KNOWN}",
}


def _head(made: Profile, source: str, method: str) -> Iterable[str]:
    """The keys above the sections."""
    yield f"input = {quoted(source)}"
    yield 'output = "release"'
    yield f'method = "{method}"'
    doubt = {"missing_markers": "  # cells in which nothing is known  # check"}
    yield from (f"{key} = {quoted(value)}{doubt.get(key, '')}" for key, value in made.reading.items())
    for key, single in (("person", made.of_role("person")), ("weights", made.of_role("weights"))):
        yield from (f"{key} = {quoted(column.name)}  {_comment(column)}" for column in single[:1])
    untouched = (("identifier", "dropped", made.of_role("identifier")), ("other", "untouched", made.of_role("other")))
    for key, about, columns in untouched:
        if columns:
            yield f"{key} = [  # {about}"
            yield from (f"    {quoted(column.name)},  {_comment(column)}" for column in columns)
            yield "]"


def _left_out(made: Profile) -> str:
    """Columns that the job does not name, as comments."""
    more = [(column, "a table has one such column") for column in made.of_role("weights")[1:]]
    columns = [*((column, column.reason) for column in made.of_role("left out")), *more]
    if not columns and not made.unread:
        return ""
    lines = [f"#     {quoted(column.name)}  # {_plain(reason)}  # check" for column, reason in columns]
    lines += [f"#     {quoted(name)}  # values that jali cannot publish" for name in made.unread]
    return "# Not named and not published:\n" + "\n".join(lines) + "\n"


def _types(made: Profile) -> str:
    """Numbers that are codes are read as texts, so that nobody sees an interval of them; value labels are meant."""
    named = {c.name: c.kind for c in made.columns if c.role in ("quasi", "sensitive", "other", "weights")}
    coded = {
        c.name: '"text"  # codes' for c in made.of_role("quasi") if c.kind == "number" and "frequency" in c.hierarchy
    }
    for name, every in made.labelled:
        if name in named and every:
            coded[name] = '"text"  # its value labels'
        elif name in named:
            coded.setdefault(name, f'"{named[name]}"  # codes, of which only some have a label  # check')
    coded |= {name: f'"{kind}"' for name, kind in made.types.items() if name in named}
    return "" if not coded else "[types]\n" + "".join(f"{quoted(name)} = {said}\n" for name, said in coded.items())


def _lines(columns: Iterable[tuple[ColumnProfile, str]]) -> str:
    return "".join(f"{quoted(column.name)} = {said}  {_comment(column)}\n" for column, said in columns)


def _comment(column: ColumnProfile) -> str:
    return f"# {_plain(column.reason)}" + ("" if column.sure else "  # check")


def _plain(text: str) -> str:
    """A text that fits into a comment: a reason may name a column, and a name may have a line break."""
    return " ".join(printable(text).split())


def quoted(text: str | list[str]) -> str:
    """As TOML spells a text, or a list of texts."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
