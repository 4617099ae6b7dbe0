"""Releases on disk: written whole or not at all, read back only if nothing was changed."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from jali.core.arrays import steps
from jali.core.files import Place, hold, put_folder, reason, require_space, sync
from jali.core.formats import (
    AT_ONCE,
    NEARLY,
    Lines,
    csv_parts,
    distinct_lines,
    joined_lines,
    line_breaks,
    parsed,
    quoted,
    unquoted,
)
from jali.core.rows import Paired, Rows, bytes_of, distinct_rows, pairs_of, together
from jali.encoding import values as v
from jali.errors import InputError, path_of

MANIFEST = "manifest.json"
SPREADSHEET_SAFE = "spreadsheet_safe"
FORMAT_VERSION = 1
PARTS_VERSION = 2  # a table may have several files, which a jali that reads version 1 would take for one another
Format = Literal["csv", "parquet"]
WriteFiles = Callable[[Path, str, Rows], dict[str, dict[str, Any]]]
"""Writes a table of this name into a folder; what the manifest says of each file."""


def write(
    folder: str | Path,
    tables: Mapping[str, Rows],
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
        tables = {name: replace(rows, distinct=quoted(rows.distinct, kinds)) for name, rows in tables.items()}
        manifest = manifest | {SPREADSHEET_SAFE: True}
    with hold_release(folder, overwrite=overwrite) as place:
        before = _identity(place.target)
        require_space(place.target.parent, sum(bytes_of(rows) for rows in tables.values()))
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


def _let_go(tables: Mapping[str, Rows]) -> None:
    """Free the orders of tables that are written, as long as the files are judged: they can be drawn again."""
    for rows in tables.values():
        if rows.order is not None:
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
    building: Path, tables: Mapping[str, Rows], manifest: dict[str, Any], texts: tuple[str, ...],
    write_files: WriteFiles,
) -> None:  # fmt: skip
    files: dict[str, dict[str, Any]] = {}
    for name, rows in tables.items():
        files |= write_files(building, name, rows)
    for name in texts:
        files[name] = {"table": None, "rows": 0, "sha256": _digest(building / name)}
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


PART = 1 << 23
"""Rows of a Parquet file: a table of more has several, which are written side by side."""


def files_of(building: Path, name: str, rows: Rows, form: Format) -> dict[str, dict[str, Any]]:
    """Write a table into one file or, where it is large, into several; what the manifest says of them."""
    some = list(steps(rows.count, 1, PART)) if form == "parquet" and rows.count > PART else [slice(0, rows.count)]
    numbers = [f"-{at}" for at in range(1, len(some) + 1)] if len(some) > 1 else [""]
    paths = [building / f"{name}{number}.{form}" for number in numbers]
    if len(some) == 1:
        digests = [_write_table(rows, paths[0], form, some[0])]
    else:
        with ThreadPoolExecutor(os.cpu_count()) as workers:
            digests = list(workers.map(lambda path, own: _write_table(rows, path, form, own), paths, some))
    told = zip(paths, some, digests, strict=True)
    return {path.name: {"table": name, "rows": own.stop - own.start, "sha256": digest} for path, own, digest in told}


def _write_table(rows: Rows, path: Path, form: Format, some: slice) -> str:
    """Write a slice of a table in one pass; its digest."""
    with path.open("wb") as file:
        digest = _write_csv(rows, file) if form == "csv" else _write_parquet(rows, file, some)
    sync(path)
    return digest


def _write_csv(rows: Rows, file: IO[bytes]) -> str:
    """The digest of a part is computed while the next one is made."""
    digest, last = hashlib.sha256(), None
    with ThreadPoolExecutor(1) as side:
        for part in csv_parts(replace(rows, distinct=_as_read(rows.distinct))):
            if last is not None:
                last.result()
            last = side.submit(digest.update, part)
            file.write(part)
    return digest.hexdigest()


class _Digested:
    """A file that keeps the digest of what is written to it."""

    closed = False  # asked by Arrow

    def __init__(self, file: IO[bytes]) -> None:
        self.file, self.digest = file, hashlib.sha256()

    def write(self, part: bytes) -> int:
        """Write some bytes."""
        self.digest.update(part)
        return self.file.write(part)

    def flush(self) -> None:
        """See that everything is written."""
        self.file.flush()


def _write_parquet(rows: Rows, file: IO[bytes], some: slice) -> str:
    """Rows in random order have no statistics worth writing. A reader sees values, not that they were dictionaries."""
    written = _Digested(file)
    many = not isinstance(rows, Paired) and rows.held > rows.count / 2  # then dictionaries are no help
    schema = Rows(rows.schema.empty_table()).plain().schema if many else rows.schema
    repeated: Any = rows.distinct.column_names if isinstance(rows, Paired) else True
    options: Any = {"write_statistics": False, "store_schema": False, "use_dictionary": repeated}
    with pq.ParquetWriter(written, schema, **options) as writer:
        for part in rows.parts(GROUP, some):
            writer.write_table(Rows(part).plain() if many else part)
    return written.digest.hexdigest()


GROUP = 1 << 20
"""Rows of a row group in Parquet."""


def _as_read(table: pa.Table) -> pa.Table:
    """Times as jali reads them, in a table for CSV."""
    return pa.table({name: _times(table[name]) for name in table.column_names})


def _times(column: pa.ChunkedArray) -> pa.ChunkedArray | pa.Array:
    of = column.type
    if not pa.types.is_timestamp(of.value_type if pa.types.is_dictionary(of) else of):
        return column
    whole = column.combine_chunks()
    if not pa.types.is_dictionary(of):
        return v.texts(whole)
    whole = whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole
    return pa.DictionaryArray.from_arrays(whole.indices, v.texts(whole.dictionary))


def _write_text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    sync(path)


def _digest(path: Path) -> str:
    """A file's digest."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read(folder: str | Path, *, in_order: bool = True) -> tuple[Mapping[str, Rows], dict[str, Any]]:
    """The tables (as text) and the manifest of a release; an error if a file is missing or was changed.

    Without `in_order` the order of many rows is not kept, which no promise is about, and each table is read when it is
    asked for, so that not all of them need be held.
    """
    folder = path_of(folder)
    manifest = manifest_of(folder)
    safe = manifest.pop(SPREADSHEET_SAFE, False) is True
    links = _links(manifest)
    files: dict[str | None, list[tuple[Path, Mapping[str, Any]]]] = {None: []}
    for name, facts in manifest.pop("files").items():
        if Path(name).name != name:
            raise InputError(f"the manifest of {folder} names a file outside its folder", do="get the release again")
        if not (folder / name).is_file():
            raise InputError(f"the release {folder} lacks {name}", do="copy the whole folder again")
        files.setdefault(facts["table"], []).append((folder / name, facts))

    def table(own: list[tuple[Path, Mapping[str, Any]]]) -> Rows:
        found = [_read_file(folder, file, facts, links, in_order=in_order) for file, facts in own]
        parts = [replace(part, distinct=unquoted(part.distinct)) if safe else part for part in found if part]
        del found
        return together(parts, in_order=in_order)

    for file, facts in files.pop(None):  # pictures
        _read_file(folder, file, facts, links, in_order=in_order)
    tables = _Tables({name: partial(table, own) for name, own in files.items() if name is not None})
    return ({name: tables[name] for name in tables} if in_order else tables), manifest


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


def _read_file(
    folder: Path, file: Path, facts: Mapping[str, Any], links: tuple[str, ...], *, in_order: bool
) -> Rows | None:  # fmt: skip
    """The rows of a file of a release; None for a picture. An InputError where the file was changed."""
    is_csv = facts["table"] is not None and file.suffix != ".parquet"
    try:
        digest, lines = _lines(file, in_order=in_order) if is_csv else (_digest(file), None)
        if digest != facts["sha256"]:
            raise InputError(f"{file.name} in {folder} was changed after it was published", do="get the release again")
        if facts["table"] is None:
            return None
        if is_csv:
            return _read_csv(file, lines, facts["rows"], links, in_order=in_order)
        return _read_parquet(file, links, in_order=in_order)
    except MemoryError:
        raise no_memory(folder) from None
    except (OSError, UnicodeError, csv.Error, pa.ArrowException) as problem:
        got = reason(problem) if isinstance(problem, OSError) else "not a table"
        raise InputError(f"{file} cannot be read", got=got, do="get the release again") from None


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


def _lines(path: Path, *, in_order: bool) -> tuple[str, Lines | None]:
    """The digest of a CSV file, and its distinct lines where that is a way to read it."""
    with ThreadPoolExecutor(1) as side, path.open("rb") as file:
        digest = side.submit(_digest, path)
        lines = distinct_lines(file, in_order=in_order)
        return digest.result(), lines


def _read_csv(path: Path, lines: Lines | None, rows: int, links: tuple[str, ...], *, in_order: bool) -> Rows:
    """The rows of a CSV file: where every line is one, only the distinct ones are parsed."""
    if lines is None or lines.order.rows != rows:  # many are distinct, or a value holds a line break
        broken = line_breaks(path) != rows + 1
        try:
            table = parsed(path, path.open("rb"), links, broken=broken)
        except pa.ArrowInvalid:  # the links are no numbers, which is judged when the release is made
            table = parsed(path, path.open("rb"), (), broken=broken)
        apart = [f.name for f in table.schema if f.name in links and _is_whole(f)]
        return pairs_of(table, apart, in_order=in_order) if apart and table.num_rows else Rows(table)
    distinct = lines.first + joined_lines(lines.distinct).to_pybytes()
    return Rows(parsed(distinct, io.BytesIO(distinct), (), broken=False), lines.order)


def _read_parquet(path: Path, links: tuple[str, ...], *, in_order: bool) -> Rows:
    """The rows of a Parquet file, as distinct ones unless nearly all of the first are; numbers that link are apart."""
    with pq.ParquetFile(path) as file:
        texts = [f.name for f in file.schema_arrow if pa.types.is_string(f.type) or pa.types.is_large_string(f.type)]
    with pq.ParquetFile(path, read_dictionary=texts) as file:
        if file.metadata.num_rows == 0:
            return Rows(file.read())
        batches = (pa.Table.from_batches([batch]) for batch in file.iter_batches(GROUP))
        apart = [name for name in file.schema_arrow.names if name in links]
        if apart and all(_is_whole(file.schema_arrow.field(name)) for name in apart):
            return together([pairs_of(batch, apart, in_order=in_order) for batch in batches])
        first = distinct_rows([next(batches)], in_order=in_order)
        if first.distinct.num_rows > NEARLY * first.count and first.count > AT_ONCE:
            return Rows(file.read())
        others = (distinct_rows([batch], in_order=in_order) for batch in batches)
        return together([first, *others], in_order=in_order)


def _is_whole(column: pa.Field) -> bool:
    return bool(pa.types.is_integer(column.type))


def no_memory(folder: str | Path) -> MemoryError:
    """What to raise where memory is what a release lacks: Arrow's error for that is one about data too."""
    return MemoryError(f"there is not enough memory to read {folder}")
