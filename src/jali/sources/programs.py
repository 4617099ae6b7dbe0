"""Files of other programs: spreadsheets (Excel, ODS), data of Stata, SPSS and SAS, and ZIP archives with one file.

Their readers run in a process of their own: a damaged file may end that process, and one stray cell may ask for more
memory than there is. This one goes on and says so in a line.
"""

from __future__ import annotations

import datetime as dt
import io
import json
import lzma
import os
import subprocess
import sys
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa

from jali.errors import InputError, nearest


@dataclass(frozen=True)
class Program:
    """Whose files they are, and what reads them."""

    words: str
    package: str
    extra: str
    reader: str = ""  # the function of pyreadstat


SHEET = Program("a spreadsheet", "python_calamine", "excel")
_STATA, _SPSS, _PORTABLE, _SAS, _TRANSPORT = (
    Program(words, "pyreadstat", "stats", reader)
    for words, reader in (
        ("a Stata file", "read_dta"), ("an SPSS file", "read_sav"), ("a portable SPSS file", "read_por"),
        ("a SAS file", "read_sas7bdat"), ("a SAS transport file", "read_xport"),
    )
)  # fmt: skip
_BY_NAME = {
    ".dta": _STATA, ".sav": _SPSS, ".zsav": _SPSS, ".por": _PORTABLE, ".sas7bdat": _SAS, ".xpt": _TRANSPORT,
}  # fmt: skip
_BY_START = (
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", SHEET),
    (b"<stata_dta>", _STATA),
    *((bytes([version, order, 1, 0]), _STATA) for version in range(104, 116) for order in (1, 2)),
    (b"$FL2", _SPSS),
    (b"$FL3", _SPSS),
    (b"HEADER RECORD*******LIB", _TRANSPORT),
    (b"\0" * 12 + b"\xc2\xea\x81\x60", _SAS),
)
_ARCHIVE = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
_ODS = b"application/vnd.oasis.opendocument.spreadsheet"
_BESIDE = ("thumbs.db", "desktop.ini")
LARGE, PACKED = 100_000_000, 250
"""An archive that unpacks to more bytes, and to more than this many times its own size, is refused: it is a bomb."""


def program_of(head: bytes, suffix: str) -> Program | None:
    """Whose file it is, by its first bytes, else by its name; None for CSV, Parquet and archives."""
    for start, program in _BY_START:
        if head.startswith(start):
            return program
    by_name = _BY_NAME.get(suffix.lower())
    is_text = not any(byte < 9 or 13 < byte < 32 for byte in head)  # a CSV file with another's name is one still
    return by_name if by_name is _PORTABLE or not is_text else None


def is_archive(head: bytes) -> bool:
    """Whether a file begins as a ZIP archive does; spreadsheets do too."""
    return head.startswith(_ARCHIVE)


@dataclass(frozen=True)
class Member:
    """The one file of an archive: its name there, its bytes, and what is to be said about it."""

    name: str
    content: bytes
    notes: tuple[str, ...] = ()


def unpacked(name: str, source: Path | bytes) -> Member | None:
    """The one file in an archive; None where the archive is a spreadsheet."""
    with _readable(name), zipfile.ZipFile(io.BytesIO(source) if isinstance(source, bytes) else source) as archive:
        _refuse_bomb(name, archive, len(source) if isinstance(source, bytes) else source.stat().st_size)
        names = archive.namelist()
        ods = "mimetype" in names and archive.read("mimetype").startswith(_ODS)
        if ods or any(each.startswith("xl/workbook.") for each in names):
            return None
        one, files = _one_of(name, archive)
        if one.flag_bits & 1:
            raise InputError(f"{name} is locked with a password", do="unpack it first")
        said = (f"{PurePosixPath(one.filename).name} was read, the only CSV file of {files} in {Path(name).name}",)
        return Member(one.filename, archive.read(one), said if files > 1 else ())


def _one_of(name: str, archive: zipfile.ZipFile) -> tuple[zipfile.ZipInfo, int]:
    """The member that is meant, and how many there are."""
    files = [
        info
        for info in archive.infolist()
        if not info.is_dir()
        and not info.filename.startswith("__MACOSX/")
        and not (last := PurePosixPath(info.filename).name.lower()).startswith(".")
        and last not in _BESIDE
    ]
    if not files:
        raise InputError(f"{name} is an archive without files", do="give one with a CSV file")
    wanted = files if len(files) == 1 else [f for f in files if f.filename.lower().endswith((".csv", ".tsv"))]
    if len(wanted) != 1:
        raise InputError(f"{name} is an archive of {len(files)} files", do="unpack it, and name the one that is meant")
    return wanted[0], len(files)


def _refuse_bomb(name: str, archive: zipfile.ZipFile, size: int) -> None:
    whole = sum(info.file_size for info in archive.infolist())
    if whole > LARGE and whole > PACKED * size:
        what = f"{name} is an archive that unpacks to {whole / size:,.0f} times its size"
        raise InputError(what, got=f"{whole:,} bytes", do="unpack it first if you know where it comes from")


@contextmanager
def _readable(name: str) -> Iterator[None]:
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, RuntimeError, ValueError, KeyError):
        raise InputError(f"{name} is a damaged or unusual archive", do="unpack it first, or get it again") from None


@dataclass(frozen=True)
class Foreign:
    """The columns of another program's file: texts of a spreadsheet are read as those of a CSV file are."""

    header: list[str]
    table: pa.Table
    infer: bool
    notes: tuple[str, ...]
    sheet: str | None = None  # which was read, where there are several
    labelled: tuple[tuple[str, bool], ...] = ()  # columns with value labels, and whether these stand for all codes

    @classmethod
    def opened(
        cls, name: str, source: Path | bytes, program: Program, *, wanted: Iterable[str] | None = None,
        types: Mapping[str, str] | None = None, sheet: str | None = None, encoding: str | None = None,
    ) -> Foreign:  # fmt: skip
        """The columns that are wanted, by default all; codes have value labels unless `types` says what they are."""
        texts = [name for name, kind in (types or {}).items() if kind == "text"]
        if find_spec(program.package) is None:
            what = f"{name} is {program.words}; {program.package.replace('_', '-')}, which reads it, is not installed"
            raise InputError(what, do=f'pip install "jali[{program.extra}]"')
        request = {
            "path": None if isinstance(source, bytes) else str(source.absolute()), "reader": program.reader,
            "wanted": None if wanted is None else list(wanted), "texts": texts, "sheet": sheet,
            "codes": [name for name in types or () if name not in texts],
            "encoding": encoding,
        }  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-c", _START, json.dumps(sys.path)],
            input=json.dumps(request).encode() + b"\n" + (source if isinstance(source, bytes) else b""),
            capture_output=True,  # what a reader says on stderr could hold values
            check=False,
        )
        if done.returncode:
            raise _refused(name, program, done)
        with pa.ipc.open_stream(done.stdout) as stream:
            table = stream.read_all()
        told = json.loads(table.schema.metadata[b"jali"])
        return cls(
            told["header"], table, infer=program is SHEET, notes=tuple(told["notes"]), sheet=told.get("sheet"),
            labelled=tuple((name, every) for name, every in told.get("labelled", ())),
        )  # fmt: skip

    def columns(self, wanted: list[str]) -> dict[str, pa.ChunkedArray]:
        """The columns of these names."""
        return {name: self.table[name] for name in wanted}


_START = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from jali.sources import programs; programs.serve()"
_REFUSED = 3  # the exit code of a process that says why


def _refused(name: str, program: Program, done: subprocess.CompletedProcess[bytes]) -> InputError:
    if done.returncode == _REFUSED:
        said = json.loads(done.stdout)
        return InputError(f"{name}: {said['what']}", do=said["do"])
    what = f"{name} cannot be read as {program.words}: it is damaged, or too large for the memory"
    return InputError(what, do="open it in its program and save it again, or save it as CSV")


# -- in the process that reads -------------------------------------------------------------------------------------


def serve() -> None:
    """Read the file that standard input asks for, and write its columns to standard output; exit with a code if not."""
    request = json.loads(sys.stdin.buffer.readline())
    _limit_memory()
    try:
        told, columns = (_statistical if request["reader"] else _spreadsheet)(request)
    except InputError as problem:
        sys.stdout.write(json.dumps({"what": problem.what, "do": problem.do}))
        sys.exit(_REFUSED)
    table = pa.table(columns).replace_schema_metadata({"jali": json.dumps(told)})
    with pa.ipc.new_stream(sys.stdout.buffer, table.schema) as stream:
        stream.write_table(table)


def _limit_memory() -> None:
    """Fail before the machine swaps, where the system can tell how much memory it has."""
    try:
        import resource

        whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (whole, resource.getrlimit(resource.RLIMIT_AS)[1]))
    except (ImportError, ValueError, OSError):
        return


def _source(request: Mapping[str, Any]) -> Any:
    return io.BytesIO(sys.stdin.buffer.read()) if request["path"] is None else request["path"]


def _spreadsheet(request: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, pa.Array]]:
    """The columns of a sheet: its first row that is not empty has their names."""
    import python_calamine as calamine

    try:
        book = calamine.load_workbook(_source(request))
    except calamine.PasswordError:
        raise InputError("it is locked with a password", do="save it without one") from None
    tables = [each for each in book.sheets_metadata if each.typ == calamine.SheetTypeEnum.WorkSheet]
    shown = [each.name for each in tables if each.visible == calamine.SheetVisibleEnum.Visible]
    names = [name for name in shown if request["sheet"] in (None, name)]
    if request["sheet"] is not None and request["sheet"] in book.sheet_names:
        names = [request["sheet"]]
    if not names:
        raise InputError(f'no sheet "{request["sheet"]}"', do=nearest(request["sheet"], book.sheet_names))
    for name in names:
        sheet = book.get_sheet_by_name(name)
        rows = [row for row in sheet.to_python() if any(cell != "" for cell in row)]
        if rows:
            break
    else:
        raise InputError("the sheet is empty", do="give one with a row of names and at least one more row")
    notes = []
    if len(shown) > 1 and request["sheet"] is None:
        notes.append(f'sheet "{name}" was read, one of {len(shown)}; sheet = "…" names another')
    merged = len([last for _, last in sheet.merged_cell_ranges or () if last[0] > (sheet.start or (0, 0))[0]])
    if merged:
        ranges = "1 range" if merged == 1 else f"{merged:,} ranges"
        notes.append(f"{ranges} of merged cells: only the first of each has a value")
    header = [_seen(cell) for cell in rows[0]]
    wanted = [name for name in header if name] if request["wanted"] is None else request["wanted"]
    columns = {each: _cells([row[header.index(each)] for row in rows[1:]]) for each in wanted if each in header}
    return {"header": header, "notes": notes, "sheet": name if len(shown) > 1 else None}, columns


def _cells(cells: list[Any]) -> pa.Array:
    """The cells of a column in the one type that they have, or as the texts that a reader of the sheet sees."""
    found = [None if cell == "" else cell for cell in cells]
    kinds = {type(cell) for cell in found if cell is not None}
    if not kinds:
        return pa.nulls(len(cells), pa.string())
    if kinds <= {int, float}:
        return _whole(pa.array(found, pa.float64()))
    if kinds == {bool}:
        return pa.array(found, pa.bool_())
    if kinds == {dt.date}:
        return pa.array(found, pa.date32())
    if kinds <= {dt.date, dt.datetime}:
        times = [dt.datetime(x.year, x.month, x.day) if type(x) is dt.date else x for x in found]
        return pa.array(times, pa.timestamp("us"))
    return pa.array([None if cell is None else _seen(cell) for cell in found], pa.string())


def _seen(cell: object) -> str:
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() else repr(cell)
    return str(cell)


def _whole(numbers: pa.Array) -> pa.Array:
    """Whole numbers where all are: programs that know only floats hold those too."""
    found = numbers.to_numpy(zero_copy_only=False)
    some = found[~np.isnan(found)]
    exact = np.abs(some).max(initial=0) < 2**53 and np.array_equal(some, np.floor(some))
    return numbers.cast(pa.int64()) if exact else numbers


def _statistical(request: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, pa.Array]]:
    """The columns of a Stata, SPSS or SAS file; codes that all have labels become those."""
    import pyreadstat

    reader, source = getattr(pyreadstat, request["reader"]), _source(request)
    named = {"encoding": request["encoding"]} if request["encoding"] else {}
    _, about = reader(source, metadataonly=True, output_format="dict", **named)
    header = list(about.column_names)
    wanted = header if request["wanted"] is None else [name for name in request["wanted"] if name in header]
    if not wanted:
        return {"header": header, "notes": []}, {}
    if request["path"] is None:
        source.seek(0)
    data, about = reader(source, usecols=wanted, output_format="dict", **named)
    columns = {name: _typed(list(data[name]), about.readstat_variable_types[name]) for name in wanted}
    labelled, partly, kept = [], [], []
    for name in wanted:
        labels = about.variable_value_labels.get(name, {})
        if labels and name not in request["codes"]:
            columns[name], missing, every = _with_labels(columns[name], labels)
            if missing:
                partly.append(f"{name} ({missing:,} of {every:,} values)")
                kept.append((name, False))
            elif name not in request["texts"]:
                labelled.append(name)
    notes = []
    if labelled:
        keep = f'types = {{ {labelled[0]} = "number" }} keeps codes, "text" says that labels are meant'
        notes.append(f"value labels stand for the codes of {', '.join(labelled)}; {keep}")
    if partly:
        notes.append(f"codes are kept where some have no label: {', '.join(partly)}")
    return {"header": header, "notes": notes, "labelled": [*((n, True) for n in labelled), *kept]}, columns


def _typed(cells: list[Any], kind: str) -> pa.Array:
    """The values in their type; empty texts are missing, for these programs have no other missing text."""
    if all(cell is None or isinstance(cell, (int, float)) for cell in cells):
        numbers = pa.array(cells, pa.float64(), from_pandas=True)
        if kind == "float":  # 3.2 was stored in 32 bits: the shortest number that is stored so, not 3.200000048
            short = [None if x is None else float(str(np.float32(x))) for x in numbers.to_pylist()]
            numbers = pa.array(short, pa.float64())
        return _whole(numbers)
    return _cells(["" if cell is None else cell for cell in cells])


def _with_labels(codes: pa.Array, labels: Mapping[Any, str]) -> tuple[pa.Array, int, int]:
    """The labels of the codes, how many codes that occur have none, and how many codes there are."""
    coded = codes.dictionary_encode()
    present = coded.dictionary.to_pylist()
    names = [str(labels.get(code, "")).strip() for code in present]
    missing = names.count("")
    if missing:
        return codes, missing, len(present)
    often = Counter(names)
    shown = [f"{name} ({code})" if often[name] > 1 else name for code, name in zip(present, names, strict=True)]
    texts = pa.DictionaryArray.from_arrays(coded.indices, pa.array(shown, pa.string()))
    return texts.cast(pa.string()), 0, len(present)
