"""Commands that come first: profile says what a table tells about its people, init writes a job to begin with."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jali.cli import shared
from jali.cli.shared import PATH
from jali.core.files import put_content
from jali.core.text import printable
from jali.errors import InputError

if TYPE_CHECKING:
    from jali.risk.profile import ColumnProfile, Profile


@click.command()
@click.argument("data", type=PATH, metavar="DATA")
@click.option("-o", "--output", type=PATH, metavar="FILE.html", help="Write one page instead of text.")
@click.option("--person", metavar="COLUMN", help="The column that says whose row it is, where people have several.")
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
@shared.file_options
@shared.overwrite_option
@shared.quiet_option
def init(*, data: Path, output: Path, overwrite: bool, **reading: Any) -> None:
    """Write a commented job for a table, which runs as it is.

    Columns of DATA that look like identifiers are dropped, those that others may know get hierarchies, sensitive ones a
    promise. Guesses are marked with "# check"; it shows no row. See jali profile for the figures behind it.
    """
    import jali

    if not data.is_file():  # a pipe cannot be read again when the job is run
        raise InputError(f"no file {data}", do="name a CSV or Parquet file")
    to_stdout = str(output) == "-"
    if not to_stdout:
        shared.reserve_file(output, overwrite=overwrite)
    found = jali.profile(data, **reading)
    for text in found.notes:
        shared.note(text)
    folder = Path.cwd() if to_stdout else output.parent
    source = Path(os.path.relpath(data, folder)).as_posix()
    text = job_text(found, source, "job.toml" if to_stdout else output.name)
    if to_stdout:
        click.echo(text, nl=False)
        return
    put_content(output, text, overwrite=overwrite)
    shared.note(f'wrote {output}: see what is marked "# check" in it, then run jali publish {output}')


# -- the job -------------------------------------------------------------------------------------------------------


def job_text(made: Profile, source: str, name: str) -> str:
    """A job for the table of a profile, as the text of a TOML file that runs as it is."""
    from jali.risk.profile import FEWEST, LATTICE, NODES

    if not made.of_role("quasi"):
        raise InputError("no column can be published", do="see jali profile for the reasons")
    enough = made.people >= FEWEST or bool(made.of_role("person"))  # groups of people with several rows may not merge
    searched = made.nodes <= NODES and len(made.of_role("quasi")) <= LATTICE and enough
    method = "generalize" if searched else "partition"
    parts = [
        f"# A job for jali. It runs as it is:  jali publish {name}\n"
        "# jali guessed what each column is from its name and values; the lines marked # check are doubtful.\n",
        "\n".join(_head(made, source, method)) + "\n",
        _left_out(made),
        "[quasi]      # what an attacker may know, with its hierarchy; the most telling column first\n"
        + _lines((c, c.hierarchy) for c in made.of_role("quasi")),
        "[sensitive]  # what nobody should learn about a person\n"
        + _lines((c, "true") for c in made.of_role("sensitive")),
        _types(made),
        _METHOD[method],
        '[[principles]]\nname = "KAnonymity"\nk = 5\n',
        *(f"[[principles]]\n{c.promise}\nsensitive = {quoted(c.name)}\n" for c in made.of_role("sensitive")),
    ]
    return "\n".join(part for part in parts if part)


_METHOD = {
    "generalize": '[generalize]\nmetric = "kl"        # or "discernibility", "average", "height", "loss"\n'
    "suppress = 0.05      # the share of rows that may be shown as *\n",
    "partition": '[partition]\nmode = "relaxed"     # groups follow the people: too many levels or too few people\n'
    'show = "taxonomy"    # levels of the hierarchies; "interval" and "set" would show values of the rows\n',
}


def _head(made: Profile, source: str, method: str) -> Iterable[str]:
    """The keys above the sections."""
    yield f"input = {quoted(source)}"
    yield 'output = "release"'
    yield f'method = "{method}"'
    yield from (f"{key} = {quoted(value)}" for key, value in made.reading.items())
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
    """Numbers that are codes are read as texts, so that nobody sees an interval of them."""
    coded = [c.name for c in made.of_role("quasi") if c.kind == "number" and "frequency" in c.hierarchy]
    return "" if not coded else "[types]\n" + "".join(f'{quoted(name)} = "text"  # codes\n' for name in coded)


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
