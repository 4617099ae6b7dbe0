"""Releases on disk: written whole or not at all, read back only if nothing was changed."""

from __future__ import annotations

import ctypes
import ctypes.util
import hashlib
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from jali.errors import InputError

MANIFEST = "manifest.json"
FORMAT_VERSION = 1
Format = Literal["csv", "parquet"]


def write(folder: str | Path, tables: dict[str, pa.Table], manifest: dict[str, Any], *, overwrite: bool, form: Format) -> Path:
    """Write the tables and the manifest into a folder; a crash leaves what was there before, or all of the new."""
    target = Path(folder)
    if form not in ("csv", "parquet"):
        raise InputError('format must be "csv" or "parquet"', got=repr(form))
    _check_target(target, overwrite)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        building = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    except OSError as problem:
        raise InputError(f"cannot write to {target}", got=_reason(problem), do="choose another folder") from None
    try:
        building.chmod(0o755)
        files = {}
        for name, table in tables.items():
            path = building / f"{name}.{form}"
            _write_table(table, path, form)
            files[path.name] = {"table": name, "sha256": _digest(path)}
        text = json.dumps({"format_version": FORMAT_VERSION, **manifest, "files": files}, indent=1, ensure_ascii=False)
        _write_text(building / MANIFEST, text + "\n")
        _put(building, target)
    except OSError as problem:
        raise InputError(f"cannot write to {target}", got=_reason(problem), do="free some space or choose another folder") from None
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return target


def _check_target(target: Path, overwrite: bool) -> None:
    if target.exists() and not target.is_dir():
        raise InputError(f"{target} is a file", do="name a folder")
    if not target.is_dir() or not any(target.iterdir()):
        return
    if not overwrite:
        raise InputError(f"the folder {target} is not empty", do="choose another one, or pass overwrite (--overwrite)")
    if not (target / MANIFEST).is_file():
        raise InputError(f"the folder {target} holds something that is not a release", do="choose another one")


def _reason(problem: OSError) -> str:
    return problem.strerror or type(problem).__name__


def _write_table(table: pa.Table, path: Path, form: Format) -> None:
    with path.open("wb") as file:
        if form == "csv":
            # every text is quoted, so that an empty text stays apart from a missing value
            pacsv.write_csv(table, file, pacsv.WriteOptions(quoting_style="needed", batch_size=65536))
        else:
            pq.write_table(table, file)
        file.flush()
        os.fsync(file.fileno())


def _write_text(path: Path, text: str) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _put(building: Path, target: Path) -> None:
    """Put the finished folder in its place, in one step where the system can."""
    if not target.exists() or not any(target.iterdir()):
        os.replace(building, target)
    elif not _exchange(building, target):
        aside = Path(tempfile.mkdtemp(prefix=f".{target.name}-old-", dir=target.parent))
        os.replace(target, aside)
        try:
            os.replace(building, target)
        except OSError:
            os.replace(aside, target)
            raise
        shutil.rmtree(aside, ignore_errors=True)
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
    folder = Path(folder)
    path = folder / MANIFEST
    if not path.is_file():
        raise InputError(f"no release in {folder}", do="name a folder that jali wrote: it holds a manifest.json")
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        version, files = manifest["format_version"], manifest.pop("files")
    except (ValueError, KeyError, TypeError, OSError):
        raise InputError(f"{path} is not a manifest that jali can read") from None
    if version != FORMAT_VERSION:
        raise InputError(f"{path} has format {version}; this jali reads {FORMAT_VERSION}", do="use a newer jali")
    tables = {}
    for name, facts in files.items():
        file = folder / Path(name).name
        if not file.is_file():
            raise InputError(f"the release {folder} lacks {name}", do="copy the whole folder again")
        if _digest(file) != facts["sha256"]:
            raise InputError(f"{name} in {folder} was changed after it was published", do="get the release again")
        tables[facts["table"]] = _read_table(file)
    return tables, manifest


def _read_table(path: Path) -> pa.Table:
    if path.suffix == ".parquet":
        return pq.read_table(path)
    with path.open("rb") as file:
        header = pacsv.open_csv(file, pacsv.ReadOptions(block_size=1 << 20)).schema.names
    text = pa.dictionary(pa.int32(), pa.string())
    return pacsv.read_csv(
        path,
        pacsv.ReadOptions(block_size=1 << 24),
        pacsv.ParseOptions(newlines_in_values=True),
        pacsv.ConvertOptions(
            column_types=dict.fromkeys(header, text), null_values=[""], strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),  # fmt: skip
    )
