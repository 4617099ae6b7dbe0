"""jali sample: people drawn from what a release tells."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from jali.cli.shared import (
    PATH,
    note_formulas,
    overwrite_option,
    quiet_option,
    release_argument,
    reserve_file,
    spreadsheet_option,
)
from jali.writing import put_file


@click.command()
@release_argument
@click.option("-n", "--rows", type=int, metavar="NUMBER", help="How many people; by default as many as were published.")
@click.option("--seed", type=int, default=0, show_default=True, metavar="NUMBER", help="Same seed, same people.")
@click.option("-o", "--output", type=PATH, metavar="FILE", help="A CSV or Parquet file, instead of stdout.")
@overwrite_option
@spreadsheet_option
@quiet_option
def sample(
    *, release: Path, rows: int | None, seed: int, output: Path | None, overwrite: bool, spreadsheet_safe: bool
) -> None:
    """Draw people from RELEASE, with exact values in every column.

    They are drawn from what the release tells, so they say no more than it does: nobody of the original is among them
    but by chance.
    """
    import pyarrow.csv as pacsv
    import pyarrow.parquet as pq

    import jali
    from jali.encoding.spreadsheet import formula_columns, quoted
    from jali.errors import InputError

    if output is not None and output.suffix not in (".csv", ".parquet"):
        raise InputError("a sample is written as CSV or Parquet", got=output.name, do="name it e.g. sample.csv")
    if output is not None:
        reserve_file(output, overwrite=overwrite)
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
    note_formulas(formula_columns(drawn, kinds), safe=spreadsheet_safe)
