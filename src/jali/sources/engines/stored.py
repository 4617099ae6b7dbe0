"""Releases in a database: all tables and the manifest in one transaction, judged from what was written in it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from jali.core.files import built_file, require_space
from jali.core.formats import bytes_of, csv_lines, joined_lines
from jali.core.rows import Rows
from jali.errors import InputError
from jali.sources.engines.base import ROWS, in_order, quoted, rows_of
from jali.sources.engines.databases import ARROW, Database, Kind, Names, of_table, refused
from jali.sources.engines.embedded import FULL, JOURNALS, opened
from jali.sources.engines.locations import Location

MANIFEST = "manifest"
FORMAT_VERSION = 3  # of releases in databases: the manifest names tables, not files
MAIN = "data"  # the table of a release that has the name that was asked for
Tables = Mapping[str, Rows]
Check = Callable[[Callable[[], tuple[dict[str, Rows], dict[str, Any]]]], None]
"""What looks at a written release before it takes its place; it is given a way to read it."""


def write(location: Location, tables: Tables, manifest: dict[str, Any], *, overwrite: bool, check: Check) -> None:
    """Write tables and manifest; whatever fails or is killed, the database is as before, or has all of the new."""
    name = location.require_table()
    with _in_place(location, tables) as place, opened(place, writes=True) as database:
        _make_room(database, name, tables, overwrite=overwrite)
        written = {own: _write_table(database, database.target(own), rows) for own, rows in _named(name, tables)}
        files = {own: {"table": table} | _told(*written[own]) for own, table in zip(written, tables, strict=True)}
        facts = {"format_version": FORMAT_VERSION, **manifest, "tables": files}
        _write_manifest(database, database.target(f"{name}_{MANIFEST}"), facts)
        counted = {own: rows for own, (rows, _) in written.items()}  # in this transaction, which nobody else changes
        check(lambda: _read(database, place, name, counted))


@contextlib.contextmanager
def _in_place(location: Location, tables: Tables) -> Iterator[Location]:
    """Where to write: a database file that does not exist yet is built beside its place."""
    if location.scheme == "postgresql":
        yield location
        return
    path = Path(os.path.realpath(location.place))
    # what is written, and as much again for the journal of the transaction
    require_space(path.parent, 2 * sum(bytes_of(rows) for rows in tables.values()))
    if path.exists():
        yield location
        return
    made: list[Path] = []

    def begin(own: Path) -> None:
        made.append(own)
        _clear(own)
        if location.scheme == "duckdb":  # which takes no empty file for a database
            own.unlink()
            with opened(Location(location.scheme, str(own)), writes=True):
                own.chmod(0o600)

    with built_file(path, begin, overwrite=False, parents=True):
        try:
            yield Location(location.scheme, str(made[0]), location.table)
            if any(journal.exists() for journal in _journals(made[0])):  # the file without it would not be all
                raise refused(location, FULL, "free some space or choose another place")
        finally:
            _clear(made[0])


def _journals(own: Path) -> Iterator[Path]:
    """What a database that could not end its transaction leaves beside its file."""
    return (Path(f"{own}{end}") for end in JOURNALS)


def _clear(own: Path) -> None:
    for journal in _journals(own):
        journal.unlink(missing_ok=True)


def _named(name: str, tables: Tables) -> list[tuple[str, Rows]]:
    return [(_own(name, table), rows) for table, rows in tables.items()]


def _own(name: str, table: str) -> str:
    """What a table of a release is called in the database."""
    return name if table == MAIN else f"{name}_{table}"


def _make_room(database: Database, name: str, tables: Tables, *, overwrite: bool) -> None:
    """Drop the release of this name, if it may be overwritten; an InputError for tables that are none of it."""
    wanted = [own for own, _ in _named(name, tables)] + [f"{name}_{MANIFEST}"]
    for own in _taken(database, name, wanted, overwrite=overwrite):
        found = database.named(own)
        if found is not None:
            database.run(f"DROP TABLE {of_table(found)}")


def _taken(database: Database, name: str, wanted: list[str], *, overwrite: bool) -> list[str]:
    """The tables of the release of this name; an InputError where a wanted one may not be replaced."""
    there = [own for own in wanted if database.named(own) is not None]
    old = _own_tables(database, name)
    if there and not overwrite:
        do = "choose another name, or pass overwrite (--overwrite)"
        raise InputError(f'{database.shown} has a table "{there[0]}" already', do=do)
    foreign = [own for own in there if own not in old]
    if foreign:
        what = f'the table "{foreign[0]}" of {database.shown} is not one of a release, or was changed since'
        raise InputError(what, do="choose another name, or drop it yourself")
    return old


def require_room(location: Location, *, overwrite: bool) -> None:
    """See before the work that a release of this name can be written; an InputError where it cannot."""
    name = location.require_table()
    if location.scheme == "postgresql" or Path(location.place).exists():
        with opened(location) as database:
            _taken(database, name, [name, f"{name}_{MANIFEST}"], overwrite=overwrite)


def _own_tables(database: Database, name: str) -> list[str]:
    """The tables of the release of this name, its manifest among them; none where there is no release.

    A manifest that names other tables than `write` makes, or other columns or rows than they have, is none of a
    release: whoever can only create a table cannot have somebody else's dropped.
    """
    try:
        facts = _manifest(database, name)["tables"]
        for own, told in facts.items():
            found = database.named(own)
            if own != _own(name, told["table"]) or (found and _as_told(database, found, told) is None):
                return []
    except InputError:
        return []
    return [*facts, f"{name}_{MANIFEST}"]


def _write_table(database: Database, names: Names, rows: Rows) -> tuple[Rows, dict[str, Kind]]:
    """Write a table; what the database counts in it, and the kinds of its columns."""
    distinct = rows.distinct
    kinds = {field.name: _kind(field.type) for field in distinct.schema}
    _create(database, names, kinds)
    plain = Rows(distinct).plain()
    if rows.order is None:
        database.put(names, plain, [*kinds.values()])
    else:
        numbered = plain.rename_columns([f"c{at}" for at in range(len(kinds))])
        numbered = numbered.append_column("n", pa.array(rows.numbers))
        source = (f"jali_distinct_{os.getpid()}",)
        _create(database, source, dict(zip(numbered.column_names, (*kinds.values(), "integer"), strict=True)), own=True)
        database.put(source, numbered, [*kinds.values(), "integer"])
        database.repeat(source, names, len(kinds))
        database.run(f"DROP TABLE {of_table(source)}")
    return _counted(database, names, kinds), kinds


def _told(found: Rows, kinds: Mapping[str, Kind]) -> dict[str, Any]:
    """What the manifest says of a table, from what the database counts in it."""
    return {"rows": found.count, "types": kinds, "sha256": _digest(found)}


def _create(database: Database, names: Names, kinds: Mapping[str, Kind], *, own: bool = False) -> None:
    _require_short(database, names[-1], *kinds)
    columns = ", ".join(f"{quoted(name)} {database.types[kind]}" for name, kind in kinds.items())
    database.run(f"CREATE {'TEMPORARY ' if own else ''}TABLE {of_table(names)} ({columns})")


def _require_short(database: Database, *names: str) -> None:
    for name in names:
        if len(name.encode()) > database.longest:
            what = f'"{name}" is too long a name for {database.shown}'
            raise InputError(what, got=f"more than {database.longest} bytes", do="choose a shorter one")


def _kind(of: pa.DataType) -> Kind:
    own = of.value_type if pa.types.is_dictionary(of) else of
    if pa.types.is_integer(own):
        return "integer"
    if pa.types.is_floating(own):
        return "real"
    return next((kind for kind, known in ARROW.items() if known == own), "text")


def _write_manifest(database: Database, names: Names, facts: Mapping[str, Any]) -> None:
    _require_short(database, names[-1])
    text = json.dumps(facts, indent=1, ensure_ascii=False, allow_nan=False)
    database.run(f"CREATE TABLE {of_table(names)} ({quoted(MANIFEST)} {database.document})")
    database.put(names, pa.table({MANIFEST: [text]}), ["text"])


# -- reading --------------------------------------------------------------------------------------------------------


def read(location: Location) -> tuple[dict[str, Rows], dict[str, Any]]:
    """The tables of a release as the database counts them, and its manifest; an error if one was changed."""
    with opened(location) as database:
        return _read(database, location, location.table or _only(database))


def _only(database: Database) -> str:
    """The name of the only release of a database."""
    found = [own for _, own in database.tables() if own.endswith(f"_{MANIFEST}")]
    if len(found) == 1:
        return found[0].removesuffix(f"_{MANIFEST}")
    do = 'name its table: add "?table=NAME" to the address'
    raise InputError(f"{database.shown} has {len(found)} releases", do=do)


def _read(
    database: Database, location: Location, name: str, counted: Tables | None = None
) -> tuple[dict[str, Rows], dict[str, Any]]:
    """Tables and manifest; what has been `counted` in this transaction is not counted again."""
    manifest = _manifest(database, name)
    found: dict[str, Rows] = {}
    for own, facts in manifest.pop("tables").items():
        if facts["table"] in found:  # of two that are called the same only one would be judged
            raise _no_manifest(database, name)
        names = database.named(own)
        if names is None:
            raise InputError(f'the release "{name}" of {location.shown} lacks the table "{own}"', do="publish it again")
        rows = _as_told(database, names, facts, None if counted is None else counted[own])
        if rows is None:
            raise _changed(own, location)
        found[facts["table"]] = rows
    return found, manifest


def _as_told(database: Database, names: Names, facts: Mapping[str, Any], counted: Rows | None = None) -> Rows | None:
    """The distinct rows of a table; None where they are not those that the manifest was written for."""
    if list(database.columns(names)) != list(facts["types"]):
        return None
    rows = _counted(database, names, facts["types"]) if counted is None else counted
    return rows if (rows.count, _digest(rows)) == (facts["rows"], facts["sha256"]) else None


def _changed(name: str, location: Location) -> InputError:
    return InputError(f'"{name}" in {location.shown} was changed after it was published', do="publish it again")


def _manifest(database: Database, name: str) -> dict[str, Any]:
    names = database.named(f"{name}_{MANIFEST}")
    if names is None:
        raise InputError(f'no release "{name}" in {database.shown}', do=f"there is no table {name}_{MANIFEST}")
    try:
        if list(database.columns(names)) != [MANIFEST]:
            raise ValueError
        texts = database.ask(
            f"SELECT CAST({MANIFEST} AS {database.types['text']}) FROM {of_table(names)}", (), ["text"]
        )
        (text,) = texts.column(0).to_pylist()
        facts: dict[str, Any] = json.loads(text)
        well_formed = all(_is_table(own, told) for own, told in facts["tables"].items())
        well_formed &= isinstance(facts["kind"], str) and isinstance(facts["jali"], str)
        version = facts["format_version"]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        well_formed, version = False, FORMAT_VERSION
    if not well_formed:
        raise _no_manifest(database, name)
    if version != FORMAT_VERSION:
        raise InputError(f'"{name}" in {database.shown} has format {version}', do="use the jali that wrote it")
    return facts


def _no_manifest(database: Database, name: str) -> InputError:
    return InputError(f'"{name}_{MANIFEST}" in {database.shown} is not a manifest', do="name a release")


def _is_table(own: Any, told: Any) -> bool:
    """Whether this is what a manifest says of a table."""
    texts = [own, told["table"], told["sha256"], *told["types"]]
    return (
        all(isinstance(text, str) for text in texts)
        and isinstance(told["rows"], int)
        and bool(told["types"])
        and all(kind in ARROW for kind in told["types"].values())
    )


def _counted(database: Database, names: Names, kinds: Mapping[str, Kind]) -> Rows:
    """The distinct rows of a table with their numbers, as the database counts them."""
    asked = ", ".join(f"{database.expression(name, kind)}" for name, kind in kinds.items())
    places = ", ".join(str(at + 1) for at in range(len(kinds)))
    question = f"SELECT {asked}, count(*) FROM {of_table(names)} AS t GROUP BY {places}"
    answer = database.ask(question, (), [*kinds.values(), "integer"]).rename_columns([*kinds, ROWS])
    return rows_of(in_order(answer, list(kinds)))


def _digest(rows: Rows) -> str:
    """A digest of what a table says, in whatever order its rows stand."""
    digest = hashlib.sha256("\n".join(rows.distinct.column_names).encode())
    if rows.distinct.num_rows:
        digest.update(joined_lines(csv_lines(rows.distinct)))
    digest.update(rows.numbers.astype("<i8").tobytes())
    return digest.hexdigest()
