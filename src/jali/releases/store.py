"""Releases on disk: written whole or not at all, read back only if nothing was changed."""

from __future__ import annotations

import csv
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from jali.core.files import Place, hold, put_folder, reason, sync
from jali.core.formats import any_length, in_blocks, quoted, unquoted
from jali.encoding import values as v
from jali.errors import InputError, path_of

MANIFEST = "manifest.json"
SPREADSHEET_SAFE = "spreadsheet_safe"
FORMAT_VERSION = 1
Format = Literal["csv", "parquet"]


def write(
    folder: str | Path,
    tables: dict[str, pa.Table],
    manifest: dict[str, Any],
    *,
    overwrite: bool,
    form: Format,
    check: Callable[[Path], None],
    texts: Mapping[str, str] = MappingProxyType({}),
    spreadsheet_safe: bool = False,
) -> Path:
    """Write the tables and the manifest into a folder; a crash leaves what was there before, or all of the new.

    `texts` are further files, such as pictures. `spreadsheet_safe` quotes what a spreadsheet would run. `check` looks
    at the finished files before they take their place; what it raises leaves everything as it was.
    """
    if form not in ("csv", "parquet"):
        raise InputError('format must be "csv" or "parquet"', got=repr(form))
    if spreadsheet_safe and form == "csv":  # a spreadsheet runs nothing of what Parquet files hold
        kinds = {facts["name"]: facts["kind"] for facts in manifest["columns"]}
        tables = {name: quoted(table, kinds) for name, table in tables.items()}
        manifest = manifest | {SPREADSHEET_SAFE: True}
    with hold_release(folder, overwrite=overwrite) as place:
        before = _identity(place.target)
        try:
            place.building.mkdir(mode=0o700)  # nobody else may look into it
            place.new.mkdir()
            for name, text in texts.items():
                _write_text(place.new / name, text)
            _build(place.new, tables, manifest, form, tuple(texts))
            check(place.new)
            if _identity(place.target) != before:  # by a process that no lock keeps out, on another machine perhaps
                raise InputError(f"{folder} was replaced meanwhile", do="look at what is there now, and save again")
            put_folder(place)
        except OSError as problem:
            do = "free some space or choose another folder"
            raise InputError(f"cannot write to {folder}", got=reason(problem), do=do) from None
    return Path(folder)


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
    building: Path, tables: dict[str, pa.Table], manifest: dict[str, Any], form: Format, texts: tuple[str, ...]
) -> None:
    files: dict[str, dict[str, Any]] = {}
    for name, table in tables.items():
        path = building / f"{name}.{form}"
        _write_table(table, path, form)
        files[path.name] = {"table": name, "rows": table.num_rows, "sha256": _digest(path)[0]}
    for name in texts:
        files[name] = {"table": None, "rows": 0, "sha256": _digest(building / name)[0]}
    facts = {"format_version": FORMAT_VERSION, **manifest, "files": files}
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


def _write_table(table: pa.Table, path: Path, form: Format) -> None:
    with path.open("wb") as file:
        if form == "csv":
            # every text is quoted, so that an empty text stays apart from a missing value
            table = pa.table({name: _as_read(table[name]) for name in table.column_names})
            pacsv.write_csv(table, file, pacsv.WriteOptions(quoting_style="needed", batch_size=65536))
        else:
            pq.write_table(table, file)
    sync(path)


def _as_read(column: pa.ChunkedArray) -> pa.ChunkedArray | pa.Array:
    """Times as jali reads them; the CSV writer has a form of its own."""
    return v.texts(column.combine_chunks()) if pa.types.is_timestamp(column.type) else column


def _write_text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    sync(path)


def _digest(path: Path) -> tuple[str, int]:
    """A file's digest, and how many line breaks of any sort it has."""
    digest, breaks = hashlib.sha256(), 0
    with path.open("rb") as file:
        while part := file.read(1 << 22):
            digest.update(part)
            breaks += part.count(b"\n") + part.count(b"\r")
    return digest.hexdigest(), breaks


def read(folder: str | Path) -> tuple[dict[str, pa.Table], dict[str, Any]]:
    """The tables (as text) and the manifest of a release; an error if a file is missing or was changed."""
    folder = path_of(folder)
    manifest = _manifest(folder)
    tables = {}
    safe = manifest.pop(SPREADSHEET_SAFE, False) is True
    for name, facts in manifest.pop("files").items():
        if Path(name).name != name:
            raise InputError(f"the manifest of {folder} names a file outside its folder", do="get the release again")
        file = folder / name
        if not file.is_file():
            raise InputError(f"the release {folder} lacks {name}", do="copy the whole folder again")
        try:
            digest, breaks = _digest(file)
            if digest != facts["sha256"]:
                raise InputError(f"{name} in {folder} was changed after it was published", do="get the release again")
            if facts["table"] is not None:  # else a picture beside the tables
                table = _read_table(file, broken=breaks != facts["rows"] + 1)
                tables[facts["table"]] = unquoted(table) if safe else table
        except (OSError, UnicodeError, csv.Error, pa.ArrowException) as problem:
            got = reason(problem) if isinstance(problem, OSError) else "not a table"
            raise InputError(f"{file} cannot be read", got=got, do="get the release again") from None
    return tables, manifest


def _manifest(folder: Path) -> dict[str, Any]:
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
    if version != FORMAT_VERSION:
        raise InputError(
            f"{path} has format {version}; this jali reads format {FORMAT_VERSION}", do="use the jali that wrote it"
        )
    return manifest


def _is_file(facts: Any) -> bool:
    """Whether this is what a manifest says of a file."""
    table, rows, digest = facts["table"], facts["rows"], facts["sha256"]
    return isinstance(table, (str, type(None))) and isinstance(rows, int) and isinstance(digest, str)


def _read_table(path: Path, *, broken: bool) -> pa.Table:
    """A table as text; `broken`: some value holds a line break, so that lines cannot be read side by side."""
    if path.suffix == ".parquet":
        return pq.read_table(path)
    with path.open(encoding="utf-8", newline="") as file, any_length():
        header = next(csv.reader(file), [])
    convert = pacsv.ConvertOptions(
        column_types=dict.fromkeys(header, pa.dictionary(pa.int32(), pa.string())), null_values=[""],
        strings_can_be_null=True, quoted_strings_can_be_null=False,
    )  # fmt: skip
    parse = pacsv.ParseOptions(newlines_in_values=broken, ignore_empty_lines=False)  # an empty line is a missing value

    def read(size: int) -> pa.Table:
        return pacsv.read_csv(path, pacsv.ReadOptions(block_size=size), parse, convert)

    return in_blocks(read, 1 << 24 if broken else 1 << 20, path)
