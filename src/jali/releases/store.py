"""Releases on disk: written whole or not at all, read back only if nothing was changed."""

from __future__ import annotations

import contextlib
import csv
import ctypes
import hashlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from jali.encoding import values as v
from jali.errors import InputError, path_of

MANIFEST = "manifest.json"
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
) -> Path:
    """Write the tables and the manifest into a folder; a crash leaves what was there before, or all of the new.

    `texts` are further files, such as pictures. `check` looks at the finished files before they take their place; what
    it raises leaves everything as it was.
    """
    target = Path(os.path.realpath(path_of(folder)))
    if form not in ("csv", "parquet"):
        raise InputError('format must be "csv" or "parquet"', got=repr(form))
    try:
        _check_target(target, overwrite)
        target.parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))  # nobody else may look into it
    except OSError as problem:
        raise InputError(f"cannot write to {folder}", got=_reason(problem), do="choose another folder") from None
    try:
        building = work / "new"
        building.mkdir()
        for name, text in texts.items():
            _write_text(building / name, text)
        _build(building, tables, manifest, form, tuple(texts))
        check(building)
        _put(building, target, work / "old")
    except OSError as problem:
        do = "free some space or choose another folder"
        raise InputError(f"cannot write to {folder}", got=_reason(problem), do=do) from None
    finally:
        if not (work / "old").exists():  # else a release that could not be put back: the only copy
            shutil.rmtree(work, ignore_errors=True)
    return Path(folder)


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
    _sync(building)


def _check_target(target: Path, overwrite: bool) -> None:
    if target.exists() and not target.is_dir():
        raise InputError(f"{target} is a file", do="name a folder")
    if not target.is_dir() or not any(target.iterdir()):
        return
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
    except (ValueError, KeyError, TypeError, OSError):
        return set()


def within_release(path: Path) -> bool:
    """Whether a file at this place would lie in the folder of a release, however deep, which is handed out as it is."""
    folder = Path(os.path.realpath(path)).parent
    return any(release_files(place) for place in (folder, *folder.parents))


def _reason(problem: OSError) -> str:
    return problem.strerror or type(problem).__name__


def _write_table(table: pa.Table, path: Path, form: Format) -> None:
    with path.open("wb") as file:
        if form == "csv":
            # every text is quoted, so that an empty text stays apart from a missing value
            table = pa.table({name: _as_read(table[name]) for name in table.column_names})
            pacsv.write_csv(table, file, pacsv.WriteOptions(quoting_style="needed", batch_size=65536))
        else:
            pq.write_table(table, file)
        file.flush()
        os.fsync(file.fileno())


def _as_read(column: pa.ChunkedArray) -> pa.ChunkedArray | pa.Array:
    """Times as jali reads them; the CSV writer has a form of its own."""
    return v.texts(column.combine_chunks()) if pa.types.is_timestamp(column.type) else column


def _write_text(path: Path, text: str) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _digest(path: Path) -> tuple[str, int]:
    """A file's digest, and how many line breaks of any sort it has."""
    digest, breaks = hashlib.sha256(), 0
    with path.open("rb") as file:
        while part := file.read(1 << 22):
            digest.update(part)
            breaks += part.count(b"\n") + part.count(b"\r")
    return digest.hexdigest(), breaks


def _put(building: Path, target: Path, aside: Path) -> None:
    """Put the finished folder in its place, in one step where the system can."""
    if not target.exists() or not any(target.iterdir()):
        os.replace(building, target)
    elif not _exchange(building, target):
        try:
            os.replace(target, aside)
            os.replace(building, target)
        except BaseException:
            if aside.exists():
                os.replace(aside, target)
            raise
        shutil.rmtree(aside, ignore_errors=True)
    with contextlib.suppress(OSError):  # the release is in place; some file systems cannot sync a folder
        _sync(target.parent)


def _exchange(first: Path, second: Path) -> bool:
    """Swap two folders atomically (Linux); False where that cannot be done."""
    if not sys.platform.startswith("linux"):
        return False
    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if renameat2 is None:
        return False
    at_cwd, exchange = -100, 2
    return bool(renameat2(at_cwd, os.fsencode(first), at_cwd, os.fsencode(second), exchange) == 0)


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def read(folder: str | Path) -> tuple[dict[str, pa.Table], dict[str, Any]]:
    """The tables (as text) and the manifest of a release; an error if a file is missing or was changed."""
    folder = path_of(folder)
    manifest = _manifest(folder)
    tables = {}
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
                tables[facts["table"]] = _read_table(file, broken=breaks != facts["rows"] + 1)
        except (OSError, UnicodeError, csv.Error, pa.ArrowException) as problem:
            reason = _reason(problem) if isinstance(problem, OSError) else "not a table"
            raise InputError(f"{file} cannot be read", got=reason, do="get the release again") from None
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
        raise InputError(f"{path} cannot be read", got=_reason(problem)) from None
    except (ValueError, KeyError, TypeError, AttributeError):
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
    with path.open(encoding="utf-8", newline="") as file:
        header = next(csv.reader(file), [])
    return pacsv.read_csv(
        path,
        pacsv.ReadOptions(block_size=1 << 24 if broken else 1 << 20),
        pacsv.ParseOptions(newlines_in_values=broken, ignore_empty_lines=False),  # an empty line is a missing value
        pacsv.ConvertOptions(
            column_types=dict.fromkeys(header, pa.dictionary(pa.int32(), pa.string())),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
