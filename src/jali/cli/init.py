"""jali init: a job to start from."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from jali.cli.shared import PATH, note, overwrite_option, quiet_option, reserve_file
from jali.writing import put_content

if TYPE_CHECKING:
    from jali.sources.delimited import Delimited

_LIKE_DATA = re.compile(r"\s*[-+]?[\d.,:/-]+\s*")  # numbers and dates
_START = """\
# A job for jali. Say below what each column is, then run:  jali publish {job}
input = {input}
output = "release"
# person = "…"        # whose row it is, where a person has several
# weights = "…"       # survey weights
# other = ["…"]       # columns to publish untouched

# A column that is named nowhere never leaves the building. Uncomment each one that is to be published, once.

[quasi]               # what an attacker may know; instead of "auto" also
                      # "mask", "dates", "suppress", {{ bands = [5, 10, 20] }}, {{ taxonomy = "file.csv" }}
{quasi}

[sensitive]           # what nobody should learn about a person
{sensitive}

[generalize]
metric = "kl"         # or "discernibility", "average", "height", "loss"
suppress = 0.0        # the share of rows that may be shown as *

[[principles]]
name = "KAnonymity"
k = 5
"""


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
@click.option("--separator", metavar="CHAR", help="The separator of a CSV file, by default detected.")
@click.option("--encoding", metavar="NAME", help="The encoding of a CSV file, by default UTF-8.")
@overwrite_option
@quiet_option
def init(*, data: Path, output: Path, separator: str | None, encoding: str | None, overwrite: bool) -> None:
    """Write a commented job for a CSV or Parquet file.

    It lists the columns of DATA and assigns none; of the rows it shows nothing.
    """
    from jali.errors import InputError

    if not data.is_file():  # a pipe cannot be read again when the job is run
        raise InputError(f"no file {data}", do="name a CSV or Parquet file")
    to_stdout = str(output) == "-"
    if not to_stdout:
        reserve_file(output, overwrite=overwrite)
    names = _columns(data, separator, encoding)
    folder = Path.cwd() if to_stdout else output.parent
    text = _START.format(
        job="job.toml" if to_stdout else output.name,
        input=_quoted(Path(os.path.relpath(data, folder)).as_posix()),
        quasi="\n".join(f'# {_quoted(name)} = "auto"' for name in names),
        sensitive="\n".join(f"# {_quoted(name)} = true" for name in names),
    )
    given = {"separator": separator, "encoding": encoding}
    extra = "".join(f"{key} = {_quoted(value)}\n" for key, value in given.items() if value is not None)
    text = text.replace('output = "release"\n', f'output = "release"\n{extra}', 1)
    if to_stdout:
        click.echo(text, nl=False)
        return
    put_content(output, text, overwrite=overwrite)
    note(f"wrote {output}: say in it what each column is, then run jali publish {output}")


def _quoted(text: str) -> str:
    """As TOML spells a text."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _columns(path: Path, separator: str | None, encoding: str | None) -> list[str]:
    """The column names of a file, from its first line or its schema."""
    from jali.errors import InputError
    from jali.sources.delimited import Delimited
    from jali.sources.files import parquet_columns

    with path.open("rb") as start:
        is_parquet = start.read(4) == b"PAR1"
    if is_parquet:
        return parquet_columns(path)
    file = Delimited.opened(str(path), path, separator, encoding)
    names = [name for name in file.header if name]
    if len(set(names)) < len(names) or any(_LIKE_DATA.fullmatch(name) for name in names) or _repeated(file, names):
        do = "add a first line with a name of its own for each column"
        raise InputError(f"the first line of {path} does not look like column names", do=do)
    return names


def _repeated(file: Delimited, names: list[str]) -> bool:
    """Whether a name is also a value of its column: then the first line is a person's row, and nobody's to copy."""
    import pyarrow.compute as pc

    columns = file.columns(names)
    return any(pc.index(part.dictionary, name).as_py() >= 0 for name in names for part in columns[name].chunks)
