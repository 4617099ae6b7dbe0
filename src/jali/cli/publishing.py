"""Commands that lead from a table to a release: hierarchy, minimal, frontier, publish."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jali.cli import shared
from jali.cli.shared import PATH, names
from jali.core.files import put_content
from jali.errors import InputError

if TYPE_CHECKING:
    from jali.encoding.table import Table
    from jali.job import Job
    from jali.releases.base import Release
    from jali.search.lattice.costs import Node


@click.command()
@shared.job_argument
@click.option("-o", "--output", type=PATH, metavar="FOLDER", help="Where to, instead of the job's own output.")
@click.option("--private", type=PATH, metavar="FILE", help="Keep the batches of an ANGEL release for its holder.")
@shared.overwrite_option
@shared.format_option
@shared.spreadsheet_option
@click.option(
    "--auto", is_flag=True, help="Compare all methods, and publish with the one that jali frontier recommends."
)
@click.option("--dry-run", is_flag=True, help="Do everything but write the release.")
@click.option("--strict", is_flag=True, help="Publish nothing that a note is about: notes are errors.")
@shared.memory_option
@shared.printing_options
@shared.show_values_option
def publish(
    *,
    job: Path,
    output: Path | None,
    private: Path | None,
    overwrite: bool,
    form: Any,
    spreadsheet_safe: bool,
    auto: bool,
    dry_run: bool,
    strict: bool,
    memory: str | None,
    as_json: bool,
) -> None:
    """Publish the table that a job names, under its promises.

    JOB.toml says what each column is and what must hold; `jali init` writes one to start from. The release is written
    whole or not at all. With --auto the job's own method does not matter.
    """
    loaded = _asked(job, strict=strict, dry_run=dry_run, memory=memory)
    folder = output or loaded.output
    if folder is None and not dry_run:
        raise InputError(f"{job.name}: no output was named", do='write output = "folder", or pass -o FOLDER')
    keys = private or loaded.private
    if keys is not None and loaded.method != "angel" and not auto:
        raise InputError("--private is for ANGEL releases", got=f'method = "{loaded.method}"', do="leave it out")
    safe = spreadsheet_safe or loaded.spreadsheet_safe
    if folder is not None and not dry_run:
        _reserve(folder, keys, overwrite=overwrite)
    table = loaded.table()
    prefer = {"transparent": loaded.compare.get("transparent", "prefer")}
    compared = loaded.frontier(table, strengths=(), on_step=shared.on_step(), **prefer) if auto else None
    release = (loaded.run if compared is None else compared.release)(table, on_step=shared.on_step())
    notes = _noted(table, release, strict=loaded.strict)
    summary = repr(release)  # made before anything is written, so that a failure leaves nothing behind
    beside = {"private": keys} if keys is not None and release.batched is not None else {}
    path = None
    if folder is not None and not dry_run:
        path = shared.put_release(release, folder, overwrite=overwrite, form=form, spreadsheet_safe=safe, **beside)
    if as_json:
        told = {} if compared is None else compared.to_dict()
        keys_told = ("recommended", "recommended_transparent", "reason")
        chosen = {"chosen": {name: told[name] for name in keys_told}} if told else {}
        shared.emit({"path": path} | shared.of_release(release) | {"notes": notes} | chosen)
    else:
        if compared is not None:
            click.echo(f"{compared.reason}\n")
        click.echo(summary)
        if path is not None:
            click.echo(f"Saved in {path}")
    note_reading(table)
    if release.batched is not None and keys is None:
        shared.note("no private file was kept, so no marginal can be added later; see --private")
    if form == "csv":
        shared.note_formulas(release.formula_columns(), safe=safe)
    if dry_run:
        shared.note("a dry run: nothing was written")


def _asked(job: Path, *, strict: bool, dry_run: bool, memory: str | None) -> Job:
    """The job; a dry run leaves no new key of pseudonyms behind."""
    loaded = shared.load_job(job, memory=memory)
    key = loaded.pseudonym_key
    kept = None if dry_run and key is not None and not key.exists() else key
    return replace(loaded, strict=strict or loaded.strict, pseudonym_key=kept)


def _noted(table: Table, release: Release, *, strict: bool) -> list[str]:
    """Tell the notes of a table and its release before anything else; an InputError where there may be none."""
    from jali.publish.checks import refuse_notes

    notes = [*table.notes, *release.notes]
    if strict:
        refuse_notes(notes)
    for text in notes:
        shared.note(text)
    return notes


def _reserve(folder: Path, private: Path | None, *, overwrite: bool) -> None:
    """See before the work that the release, and its private file if there is one, can be written."""
    from jali.core.files import hold_file
    from jali.releases.linked.private import check_place

    shared.reserve_release(folder, overwrite=overwrite)
    if private is not None:
        place = check_place(private, folder, overwrite=overwrite)
        click.get_current_context().with_resource(hold_file(place, overwrite=overwrite, parents=True))


def note_reading(table: Table) -> None:
    """What the holder of a table should know before it is published."""
    if table.dropped:
        shared.note(f"identifiers, not published: {', '.join(table.dropped)}")
    unnamed = [name or "a column without a name" for name in table.unnamed]
    if unnamed:
        shared.note(f"not named and not published: {', '.join(unnamed)}")
    if table.incomplete:
        dropped = "row with a missing value was" if table.incomplete == 1 else "rows with a missing value were"
        shared.note(f"{table.incomplete:,} {dropped} dropped")
    chosen = [c.name for c in table.quasi if c.hierarchy is not None and c.hierarchy.chosen]
    if chosen:
        shared.note(f"jali chose the hierarchy of {', '.join(chosen)}; see jali hierarchy")
    made = {c.name: c.hierarchy for c in table.quasi if c.hierarchy is not None and c.hierarchy.chosen}
    intervals = [name for name, one in made.items() if one.recipe is not None and one.recipe.family == "bands"]
    if intervals:
        shared.note(f"numbers are shown as intervals in {', '.join(intervals)}: where they are codes, choose another")
    for name, one in made.items():
        if one.note:
            shared.note(f"{name}: {one.note}")
    if table.person_name is None:
        shared.note("one row per person is assumed; name a person column if that is not so")


@click.command()
@shared.job_argument
@shared.memory_option
@shared.printing_options
@shared.show_values_option
def minimal(*, job: Path, memory: str | None, as_json: bool) -> None:
    """List every minimal generalization.

    Each keeps the promises of the job.
    In a minimal one no column can be shown more finely. To publish one of them, write its levels into the job:
    [generalize] levels = { zip = 2 }.
    """
    import jali

    loaded = shared.load_job(job, memory=memory)
    nodes = jali.minimal(shared.tell_notes(loaded.table()), loaded.requirement, on_step=shared.on_step())
    if as_json:
        shared.emit([vars(node) for node in nodes])
    else:
        header = [*nodes[0].levels, "groups", "smallest", "height", "KL", "discernibility", "average", "loss"]
        click.echo(shared.columns_of_text(header, [_row(node) for node in nodes]))
    if loaded.options.get("suppress"):
        shared.note("the job's suppress is left out: minimal generalizations are those without suppression")


def _row(node: Node) -> list[str]:
    return [
        *(str(level) for level in node.levels.values()), f"{node.groups:,}", f"{node.smallest:,}", f"{node.height:g}",
        f"{node.kl:.4f}", f"{node.discernibility:,.0f}", f"{node.average:,.2f}", f"{node.loss:.4f}",
    ]  # fmt: skip


@click.command()
@shared.job_argument
@click.argument("column", metavar="COLUMN")
@click.option("-o", "--output", type=PATH, metavar="FILE", help="Where to; by default stdout.")
@click.option("--tree", is_flag=True, help="Print the hierarchy as a tree; with -o the file is written too.")
@click.option("--counts", is_flag=True, help="With --tree: how many rows each node has.")
@shared.memory_option
@shared.overwrite_option
@shared.quiet_option
@shared.show_values_option
def hierarchy(
    *, job: Path, column: str, output: Path | None, tree: bool, counts: bool, memory: str | None, overwrite: bool
) -> None:
    """Write the hierarchy of a column as CSV, or show it as a tree.

    COLUMN is a quasi-identifier of the job. The form is that of ARX: a row per value, a column per level, no header.
    Edit it and name it in the job: { taxonomy = "FILE" }.
    """
    from jali.core.arrays import counted
    from jali.core.formats import has_formula
    from jali.encoding.hierarchy import hierarchy_text

    loaded = shared.load_job(job, memory=memory)
    if output is not None:
        shared.reserve_file(output, overwrite=overwrite)
    if counts and not tree:
        raise InputError("--counts goes with --tree", do="add --tree")
    table = shared.tell_notes(loaded.table())
    found = table.hierarchy(column)
    if counts or not found.declared:
        shared.note(f"it lists the values of {column} that occur in the table: keep it as safe as the table")
    if found.note:
        shared.note(f"{column}: {found.note}")
    text = hierarchy_text(found)
    if output is not None:
        put_content(output, text, overwrite=overwrite)
    if tree:
        rows = table[column].value_rows  # known where the table is beyond memory
        rows = counted(table[column].codes, table.multiplicity, len(found.maps[0])) if rows is None else rows
        click.echo(found.tree(rows.tolist() if counts else None), nl=False)
    elif output is None:
        click.echo(text, nl=False)
    labels = (label for level in found.levels for label in level.texts() if label is not None)
    if has_formula(labels):
        shared.note(f"labels of {column} begin with =, +, - or @, which spreadsheets run; edit the file as text")


def _strengths(ctx: click.Context, param: click.Parameter, value: str | None) -> list[float | int | str] | None:
    """Numbers as they are written; "1/3" stays as it is."""
    found: list[float | int | str] = []
    for text in names(ctx, param, value) or []:
        try:
            found.append(float(text) if "." in text or "e" in text.lower() else int(text))
        except ValueError:
            found.append(text)
    return None if value is None else found


@click.command()
@shared.job_argument
@click.option("-o", "--output", type=PATH, metavar="FILE.html", help="Write one page with pictures and tables.")
@click.option("--methods", callback=names, metavar="A,B,…", help="Which methods to compare, by default all.")
@click.option("--vary", metavar="NAME", help="The parameter that changes, e.g. k or EntropyDiversity.l.")
@click.option("--strengths", callback=_strengths, metavar="X,Y,…", help="Its values, besides the one in the job.")
@click.option(
    "--accept", callback=names, metavar="A,B,…", help="Methods that may keep the promises in a sense of their own."
)
@click.option("--queries", type=int, metavar="N", help="The number of random questions; the query error is their mean.")
@click.option("--volume", type=float, metavar="SHARE", help="How much of the table each question is about.")
@click.option("--resume", type=PATH, metavar="FILE", help="A private file from which an interrupted run continues.")
@shared.memory_option
@shared.overwrite_option
@shared.printing_options
@shared.show_values_option
def frontier(
    *, job: Path, output: Path | None, resume: Path | None, memory: str | None, overwrite: bool, as_json: bool,
    **changes: Any,
) -> None:  # fmt: skip
    """Compare every method at a range of strengths.

    The promises are those of the job, with one parameter varied; the job's section [frontier] can say the same as the
    options here. All of it is computed from the original: keep the page and the file to resume from as safe as that.
    """
    from jali.core.charts import require_plots
    from jali.releases.store import within_release

    loaded = shared.load_job(job, memory=memory)
    if output is not None:
        require_plots()  # before anything takes long
    for place, what in ((output, "page"), (resume, "file to resume from")):
        inside = [] if place is None else place.resolve().parents
        if place is not None and (within_release(place) or (loaded.output and loaded.output.resolve() in inside)):
            do = "choose another place"
            raise InputError(f"the {what} is confidential and must not lie in the folder that is handed out", do=do)
        if place is not None:
            shared.reserve_file(place, overwrite=overwrite or place is resume)
    given = {name: value for name, value in changes.items() if value is not None}
    found = loaded.frontier(on_step=shared.on_step(), resume=resume, **given)
    path = None if output is None else found.save(output, overwrite=overwrite)
    if as_json:
        shared.emit({"path": path} | found.to_dict())
    else:
        click.echo(repr(found))
    if path is not None:
        shared.note(f"the page is in {path}; it is confidential, for the holder of the table alone")
