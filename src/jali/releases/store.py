"""Releases on disk: written whole or not at all, read back only if nothing was changed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from jali.core.files import Place, hold, put_folder, reason, require_space, sync
from jali.core.formats import bytes_of, quoted, unquoted
from jali.core.rows import Rows, folded, tallied, together
from jali.core.spill import Portioned, Written
from jali.errors import InputError, path_of
from jali.releases.written import Format, Kept, digest_of, files_of, no_memory, read_file

MANIFEST = "manifest.json"
SPREADSHEET_SAFE = "spreadsheet_safe"
FORMAT_VERSION = 1
PARTS_VERSION = 2  # a table may have several files, which a jali that reads version 1 would take for one another
Held = Mapping[str, Written]
"""Tables that are written, by name."""
WriteFiles = Callable[[Path, str, Any], dict[str, dict[str, Any]]]
"""Writes a table of this name into a folder; what the manifest says of each file."""


def write(
    folder: str | Path,
    tables: Held,
    manifest: dict[str, Any],
    *,
    overwrite: bool,
    form: Format,
    check: Callable[[Path], None],
    texts: Mapping[str, str] = MappingProxyType({}),
    spreadsheet_safe: bool = False,
    write_files: WriteFiles | None = None,
) -> Path:
    """Write the tables and the manifest into a folder; a crash leaves what was there before, or all of the new.

    `texts` are further files, such as pictures. `spreadsheet_safe` quotes what a spreadsheet would run. `check` looks
    at the finished files before they take their place; what it raises leaves everything as it was. `write_files` writes
    the tables where an engine does that, by default this process.
    """
    if form not in ("csv", "parquet"):
        raise InputError('format must be "csv" or "parquet"', got=repr(form))
    if spreadsheet_safe and form == "csv":  # a spreadsheet runs nothing of what Parquet files hold
        kinds = {facts["name"]: facts["kind"] for facts in manifest["columns"]}
        tables = {name: _quoted(rows, kinds) for name, rows in tables.items()}
        manifest = manifest | {SPREADSHEET_SAFE: True}
    with hold_release(folder, overwrite=overwrite) as place:
        before = _identity(place.target)
        require_space(place.target.parent, sum(map(_bytes, tables.values())))
        try:
            place.building.mkdir(mode=0o700)  # nobody else may look into it
            place.new.mkdir()
            for name, text in texts.items():
                _write_text(place.new / name, text)
            _build(place.new, tables, manifest, tuple(texts), write_files or partial(files_of, form=form))
            _let_go(tables)
            tables = {}
            check(place.new)
            if _identity(place.target) != before:  # by a process that no lock keeps out, on another machine perhaps
                raise InputError(f"{folder} was replaced meanwhile", do="look at what is there now, and save again")
            put_folder(place)
        except OSError as problem:
            do = "free some space or choose another folder"
            raise InputError(f"cannot write to {folder}", got=reason(problem), do=do) from None
    return Path(folder)


def _quoted(rows: Written, kinds: Mapping[str, str]) -> Written:
    if isinstance(rows, Portioned):
        return rows.changed(lambda table: quoted(table, kinds))
    return replace(rows, distinct=quoted(rows.distinct, kinds))


def _bytes(rows: Written) -> int:
    return rows.bytes if isinstance(rows, Portioned) else bytes_of(rows)


def _let_go(tables: Held) -> None:
    """Free the orders of tables that are written, as long as the files are judged: they can be drawn again."""
    for rows in tables.values():
        if isinstance(rows, Rows) and rows.order is not None:
            rows.order.rest()


@contextmanager
def hold_release(folder: str | Path, *, overwrite: bool) -> Iterator[Place]:
    """Hold a folder in which a release can be written; an InputError where it cannot."""
    target = Path(os.path.realpath(path_of(folder)))
    _check_target(folder, target, overwrite)  # before anything is made for it
    with hold(folder, parents=True) as place:
        _check_target(folder, target, overwrite)  # again, now that nobody else writes there
        yield place


def _identity(folder: Path) -> tuple[int, int] | None:
    """Which folder stands at a path, if any."""
    try:
        found = folder.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _build(
    building: Path, tables: Held, manifest: dict[str, Any], texts: tuple[str, ...],
    write_files: WriteFiles,
) -> None:  # fmt: skip
    files: dict[str, dict[str, Any]] = {}
    for name, rows in tables.items():
        files |= write_files(building, name, rows)
    for name in texts:
        files[name] = {"table": None, "rows": 0, "sha256": digest_of(building / name)}
    version = FORMAT_VERSION if len(files) == len(tables) + len(texts) else PARTS_VERSION
    facts = {"format_version": version, **manifest, "files": files}
    _write_text(building / MANIFEST, json.dumps(facts, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    sync(building)


def _check_target(folder: str | Path, target: Path, overwrite: bool) -> None:
    try:
        if target.exists() and not target.is_dir():
            raise InputError(f"{target} is a file", do="name a folder")
        if not target.is_dir() or not any(target.iterdir()):
            return
    except OSError as problem:
        raise InputError(f"cannot write to {folder}", got=reason(problem), do="choose another folder") from None
    if not overwrite:
        raise InputError(f"the folder {target} is not empty", do="choose another one, or pass overwrite (--overwrite)")
    if not _is_release(target):
        raise InputError(f"the folder {target} holds something that is not a release", do="choose another one")


def _is_release(folder: Path) -> bool:
    """Whether everything in the folder was written by `write`, so that nothing else is lost with it."""
    return {path.name for path in folder.iterdir()} <= release_files(folder)


def release_files(folder: Path) -> set[str]:
    """The names of the files that `write` put into a folder; none where it holds no release."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        return {MANIFEST, *manifest["files"]} if {"format_version", "jali", "kind"} <= set(manifest) else set()
    except (ValueError, KeyError, TypeError, OSError, RecursionError):
        return set()


def within_release(path: Path) -> bool:
    """Whether a file at this place would lie in the folder of a release, however deep, which is handed out as it is."""
    folder = Path(os.path.realpath(path)).parent
    return any(release_files(place) for place in (folder, *folder.parents))


def _write_text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    sync(path)


def read(
    folder: str | Path, *, in_order: bool = True, only: Mapping[str, Sequence[str]] = MappingProxyType({})
) -> tuple[Mapping[str, Rows], dict[str, Any]]:
    """The tables (as text) and the manifest of a release; an error if a file is missing or was changed.

    Without `in_order` the order of many rows is not kept, which no promise is about, and each table is read when it is
    asked for, so that not all of them need be held. Of tables in `only` nothing but these columns is kept, as distinct
    rows.
    """
    folder = path_of(folder)
    manifest = manifest_of(folder)
    safe = manifest.pop(SPREADSHEET_SAFE, False) is True
    links = _links(manifest)
    files: dict[str | None, list[tuple[Path, Mapping[str, Any]]]] = {None: []}
    for name, facts in manifest.pop("files").items():
        if Path(name).name != name:
            raise InputError(f"the manifest of {folder} names a file outside its folder", do="get the release again")
        if not os.path.isfile(folder / name):  # which finds none under a name that there cannot be
            raise InputError(f"the release {folder} lacks {name}", do="copy the whole folder again")
        files.setdefault(facts["table"], []).append((folder / name, facts))

    def table(own: list[tuple[Path, Mapping[str, Any]]]) -> Rows:
        columns = only.get(own[0][1]["table"])
        if columns is not None:
            most = sum(facts["rows"] for _, facts in own)  # the largest link that there can be: none is without a row
            counts = partial(tallied, name=columns[0], most=most) if set(columns) <= set(links) else folded
            kept = Kept(columns, partial(_reduced, columns=columns, safe=safe, counts=counts))
            read = (read_file(folder, file, facts, links, in_order=False, only=kept) for file, facts in own)
            return counts(part for part in read if part)
        found = [read_file(folder, file, facts, links, in_order=in_order) for file, facts in own]
        parts = [replace(part, distinct=unquoted(part.distinct)) if safe else part for part in found if part]
        del found
        try:
            return together(parts, in_order=in_order)
        except MemoryError:
            raise no_memory(folder) from None
        except (KeyError, pa.ArrowException):
            what = f"{own[0][0].name} and {own[-1][0].name} in {folder} are not of one table"
            raise InputError(what, do="get the release again") from None

    for file, facts in files.pop(None):  # pictures
        read_file(folder, file, facts, links, in_order=in_order)
    tables = _Tables({name: partial(table, own) for name, own in files.items() if name is not None})
    return ({name: tables[name] for name in tables} if in_order else tables), manifest


def _reduced(
    parts: Iterator[pa.Table], columns: Sequence[str], counts: Callable[[Iterable[Rows]], Rows], *, safe: bool
) -> Rows:  # fmt: skip
    """The distinct rows of some columns of a table that comes in parts, as `counts` finds them."""
    return counts(Rows((unquoted(part) if safe else part).select(list(columns))) for part in parts)


class _Tables(dict[str, Any]):
    """The tables of a folder by name, each read whenever somebody asks for it."""

    def __getitem__(self, name: str) -> Rows:
        found: Rows = super().__getitem__(name)()
        return found


def _links(manifest: Mapping[str, Any]) -> tuple[str, ...]:
    """The columns of numbers that link the tables of a release, as its manifest names them."""
    try:
        columns = [facts for facts in manifest["columns"] if "table" not in facts and facts["role"] in _LINKS]
        return tuple(facts["name"] for facts in columns if isinstance(facts["name"], str))
    except (KeyError, TypeError):
        return ()  # the manifest is judged when the release is made


_LINKS = ("bucket", "batch")


def manifest_of(folder: Path) -> dict[str, Any]:
    """What the manifest of a folder says, its files included; an InputError where it is none."""
    path = folder / MANIFEST
    try:
        if not path.is_file():
            raise InputError(f"no release in {folder}", do=f"name a folder that jali wrote: it holds a {MANIFEST}")
        manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        version, files = manifest["format_version"], manifest["files"]
        well_formed = all(_is_file(facts) for facts in files.values())
    except OSError as problem:
        raise InputError(f"{path} cannot be read", got=reason(problem)) from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        well_formed, version = False, FORMAT_VERSION
    if not well_formed:
        raise InputError(f"{path} is not a manifest that jali can read", do="name a folder that jali wrote")
    if version not in (FORMAT_VERSION, PARTS_VERSION):
        what = f"{path} has format {version}; this jali reads formats {FORMAT_VERSION} and {PARTS_VERSION}"
        raise InputError(what, do="use the jali that wrote it")
    return manifest


def _is_file(facts: Any) -> bool:
    """Whether this is what a manifest says of a file."""
    table, rows, digest = facts["table"], facts["rows"], facts["sha256"]
    return isinstance(table, (str, type(None))) and isinstance(rows, int) and isinstance(digest, str)
