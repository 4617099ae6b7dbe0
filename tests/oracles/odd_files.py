"""Broken and odd files as people send them: each is to give a table, or one line that shows no cell.

Every cell of a person holds the mark SECRET or the number 918273, so that a message which shows a cell is found.
"""

from __future__ import annotations

import bz2
import datetime as dt
import gzip
import io
import random
import struct
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from oracles.reading import ods, xlsx, zipped

SECRETS = ("SECRET", "918273")
ENCODINGS = (
    "utf-8",
    "utf-8-sig",
    "utf-16",
    "utf-16-le",
    "utf-16-be",
    "utf-32",
    "cp1252",
    "latin-1",
    "cp1250",
    "cp437",
    "shift_jis",
    "gb18030",
    "koi8-r",
    "mac_roman",
    "utf-7",
)
ROWS = [["age", "name", "income"], *([str(20 + i), f"SECRET{i} Größe", f"{918273 + i}"] for i in range(12))]


def plain(rows: list[list[str]] = ROWS, separator: str = ",", end: str = "\n") -> str:
    return end.join(separator.join(row) for row in rows) + end


CSV = plain().encode()


def odd_files() -> Iterator[tuple[str, bytes]]:
    """The name and the bytes of each; several hundred, the same ones every time."""
    yield from encoded()
    yield from lines()
    yield from curious()
    yield from misnamed()
    yield from numbers()
    yield from archives()
    yield from sheets()
    yield from damaged()


def encoded() -> Iterator[tuple[str, bytes]]:
    for encoding in ENCODINGS:
        for separator in ",;\t|":
            text = plain(separator=separator).encode(encoding, errors="replace")
            yield f"{encoding.replace('-', '')}-{ord(separator)}.csv", text


def lines() -> Iterator[tuple[str, bytes]]:
    for number, end in enumerate(("\n", "\r\n", "\r", "\n\r", "\n\n", "\r\n\r", "\u2028", "\x0b", "\x85")):
        yield f"end{number}.csv", plain(end=end).encode()
        quoted = [[f'"{cell}"' for cell in row] for row in ROWS]
        yield f"quoted{number}.csv", plain(quoted, end=end).encode()
    yield "mixed-ends.csv", CSV.replace(b"\n", b"\r\n", 3).replace(b"\r\n", b"\r", 1)


def curious() -> Iterator[tuple[str, bytes]]:
    wide = ",".join(f"c{i}" for i in range(5000))
    contents: dict[str, bytes] = {
        "empty": b"",
        "blank": b" \n\t\n",
        "mark": b"\xef\xbb\xbf",
        "mark16": b"\xff\xfe",
        "newline": b"\n",
        "nul": b"\0",
        "nuls": b"\0" * 4096,
        "header": b"age,name\n",
        "header-bare": b"age,name",
        "one": b"age\n918273\n",
        "double": b"age,age\n918273,2\n",
        "nameless": b",,\n918273,2,3\n",
        "separators": b",,,,\n,,,,\n",
        "no-header": b"918273,SECRET\n918274,SECRET2\n",
        "nul-cell": b"age,b\n91\x008273,SECRET\n",
        "nul-header": b"a\0ge,b\n1,SECRET\n",
        "long-cell": b"age,b\n1," + b"SECRET" * 170_000 + b"\n",
        "long-header": b"a" * 1_000_000 + b",b\n1,SECRET\n",
        "long-row": wide.encode() + b"\n" + b"918273," * 5000 + b"\n",
        "wide": wide.encode() + b"\n" + b",".join([b"918273"] * 5000) + b"\n",
        "open": b'age,b\n1,"SECRET\n2,x\n',
        "open-first": b'"age,b\n1,SECRET\n',
        "stray": b'age,b\n1,SEC"RET\n2,"SE"CRET\n',
        "lonely": b'"',
        "quotes": b'""""""\n""""\n',
        "short": b"age,b,c\n918273,SECRET\n1,2,3\n",
        "long": b"age,b\n918273,SECRET,3,4\n",
        "ragged": b"age,b\n" + b"".join(b"918273," * (i % 5) + b"SECRET\n" for i in range(50)),
        "comment": b"# SECRET\n# more\nage,b\n1,918273\n",
        "title": b"Patients of ward SECRET\n\nage,b\n1,918273\n",
        "total": CSV + b"Total: 918273\n",
        "bytes": bytes(range(256)) * 20,
        "high": b"\xff" * 1000,
        "surrogate": b"age,b\n1,\xed\xa0\x80SECRET\n",
        "overlong": b"age,b\n1,\xc0\xafSECRET\n",
        "late": CSV * 200 + b"33,\xe4SECRET,918273\n",
        "json": b'[{"age": 918273, "name": "SECRET"}]',
        "html": b"<html><table><tr><td>age</td></tr><tr><td>SECRET</td></tr></table></html>",
        "xml": b"<?xml version='1.0'?><r><age>918273</age></r>",
        "sql": b"INSERT INTO t VALUES (918273, 'SECRET');",
        "pdf": b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj SECRET",
        "png": b"\x89PNG\r\n\x1a\n" + b"\0" * 50 + b"SECRET",
        "elf": b"\x7fELF\x02\x01\x01" + b"\0" * 100,
        "pickle": b"\x80\x04\x95SECRET.",
        "sqlite": b"SQLite format 3\0SECRET",
        "star": b"age,b\n*,SECRET\n1,SECRET\n",
        "controls": b"age,b\n\x01\x02\x1b[31mSECRET,1\n",
        "inf": b"age,b\ninf,1\n-inf,SECRET\n1e999,2\n",
        "huge": b"age,b\n" + b"9" * 5000 + b",SECRET\n1,2\n",
        "excel-sep": b"sep=;\nage;b\n1;SECRET\n",
        "spaces": b"age name\n918273 SECRET\n",
        "colon": b"age:b\n1:SECRET\n",
    }
    yield from ((f"{name}.csv", content) for name, content in contents.items())


def numbers() -> Iterator[tuple[str, bytes]]:
    columns = {
        "commas": ["1,5", "918273,25"],
        "points": ["1.500", "918.273"],
        "both": ["918.273,5", "1,5"],
        "mixed": ["1,5", "2.5"],
        "swiss": ["918'273.50", "1.5"],
        "spaces": ["918 273,5", "1,5"],
        "zeros": ["0918273", "1,5"],
        "signs": ["+918273", "-1"],
        "percent": ["918273%", "1%"],
        "money": ["€918273", "1"],
        "minus": ["918273-", "\u2212918273"],
        "exp": ["9e18273", "1"],
        "german": ["17.05.1970", "01.02.1971"],
        "open": ["01.02.1970", "03.04.1971"],
        "short": ["17.05.70", "1.2.71"],
        "american": ["05/17/1970", "01/02/1971"],
        "impossible": ["31.02.1970", "00.00.0000"],
        "year0": ["17.05.0000", "1.1.0001"],
        "times": ["17.05.1970 25:61", "17.05.1970 10:30"],
        "iso": ["1970-05-17T10:30:00Z", "1970-05-17"],
        "na": ["NA", "918273"],
        "only-na": ["NA", "NA"],
        "dots": [".", "..", "..."],
        "ka": ["k. A.", "918273"],
        "arabic": ["٩١٨٢٧٣", "١"],
        "wide": ["９１８２７３", "１"],
        "truth": ["true", "NA", "SECRET"],
        "blank": [" ", "\u00a0"],
    }
    for name, cells in columns.items():
        yield f"number-{name}.csv", ("age;b\n" + "".join(f"{cell};SECRET\n" for cell in cells * 3)).encode()


def archives() -> Iterator[tuple[str, bytes]]:
    locked = bytearray(zipped({"a.csv": CSV}))
    locked[6] |= 1
    locked[locked.index(b"PK\x01\x02") + 8] |= 1
    unknown = bytearray(zipped({"a.csv": CSV}))
    unknown[8] = unknown[unknown.index(b"PK\x01\x02") + 10] = 99
    wrong = bytearray(zipped({"a.csv": CSV}, method=zipfile.ZIP_STORED))
    wrong[wrong.index(b"SECRET")] ^= 1
    contents: dict[str, bytes] = {
        "one": zipped({"a.csv": CSV}),
        "two": zipped({"a.csv": CSV, "b.csv": CSV}),
        "none": zipped({}),
        "folder": zipped({"a/": b""}),
        "nested": zipped({"a.zip": zipped({"a.csv": CSV})}),
        "locked": bytes(locked),
        "unknown": bytes(unknown),
        "crc": bytes(wrong),
        "bomb": zipped({"a.csv": b"0" * 120_000_000}),
        "up": zipped({"../../a.csv": CSV}),
        "nothing": zipped({"a.csv": b""}),
        "gz": zipped({"a.csv.gz": gzip.compress(CSV)}),
        "sheet": zipped({"a.xlsx": xlsx({"a": [["age"], [1]]})}),
        "docx": zipped({"word/document.xml": b"SECRET"}),
        "jar": zipped({"META-INF/MANIFEST.MF": b"SECRET", "a.class": b"\xca\xfe"}),
        "start": b"PK\x03\x04",
        "end": b"PK\x05\x06",
        "lzma": zipped({"a.csv": CSV}, method=zipfile.ZIP_LZMA),
        "bz": zipped({"a.csv": CSV}, method=zipfile.ZIP_BZIP2),
        "mime": zipped({"mimetype": b"application/vnd.oasis.opendocument.spreadsheet"}),
        "mime-only": zipped({"mimetype": b"application/epub+zip", "a.csv": CSV}),
    }
    yield from ((f"{name}.zip", content) for name, content in contents.items())
    yield "bomb.csv.gz", gzip.compress(b"age\n" + b"1\n" * 2_000_000)
    yield "twice.csv.gz", gzip.compress(gzip.compress(CSV))
    yield "members.csv.gz", gzip.compress(CSV) + gzip.compress(CSV)
    yield "tail.csv.gz", gzip.compress(CSV) + b"SECRET"


def sheets() -> Iterator[tuple[str, bytes]]:
    rows: list[list[Any]] = [["age", "name", "born"], [1, "SECRET", dt.date(1970, 5, 17)], [2.5, "918273", None]]
    good = xlsx({"Data": rows})
    laughs = '<!DOCTYPE x [<!ENTITY a "SECRET"><!ENTITY b "&a;&a;&a;&a;&a;&a;">]>'
    contents: dict[str, bytes] = {
        "good": good,
        "merged": xlsx({"Data": rows}, merged=["A2:A3", "B1:C1"]),
        "nothing": xlsx({"Data": []}),
        "header": xlsx({"Data": rows[:1]}),
        "errors": xlsx({"Data": [*rows, [ZeroDivisionError(), "SECRET", None]]}),
        "numbers": xlsx({"Data": [[1, 2, 3], *rows]}),
        "double": xlsx({"Data": [["age", "age"], [1, "SECRET"]]}),
        "title": xlsx({"Data": [["SECRET"], [], *rows]}),
        "several": xlsx({"Empty": [], "Data": rows, "More": rows}),
        "stray": xlsx({"Data": rows}, raw='<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'),
        "reference": xlsx({"Data": rows}, raw='<row r="9"><c r="?!9"><v>SECRET</v></c></row>'),
        "value": xlsx({"Data": rows}, raw='<row r="9"><c r="A9"><v>SECRET</v></c></row>'),
        "shared": xlsx({"Data": rows}, raw='<row r="9"><c r="A9" t="s"><v>99</v></c></row>'),
        "date": xlsx({"Data": rows}, raw='<row r="9"><c r="C9" s="1"><v>99999999999</v></c></row>'),
        "negative": xlsx({"Data": rows}, raw='<row r="9"><c r="C9" s="1"><v>-5</v></c></row>'),
        "time": xlsx({"Data": rows}, raw='<row r="9"><c r="C9" s="2"><v>0.4375</v></c></row>'),
        "unclosed": xlsx({"Data": rows}, raw="<row><c>SECRET"),
        "nan": xlsx({"Data": rows}, raw='<row><c r="A9"><v>NaN</v></c></row>'),
        "no-sheet": without(good, "xl/worksheets/sheet1.xml"),
        "no-styles": without(good, "xl/styles.xml"),
        "no-book": without(good, "xl/workbook.xml"),
        "no-links": without(good, "xl/_rels/workbook.xml.rels"),
        "laughs": changed(good, "xl/workbook.xml", lambda text: laughs.encode() + text),
        "bomb": changed(good, "xl/worksheets/sheet1.xml", lambda text: text + b" " * 120_000_000),
    }
    yield from ((f"{name}.xlsx", content) for name, content in contents.items())
    yield "good.ods", ods(rows)
    yield "mixed.ods", ods([["age", "b"], ["1,5", True], [918273, "SECRET"], [None, dt.date(1970, 5, 17)]])
    yield "bad.ods", changed(ods(rows), "content.xml", lambda text: text[: len(text) // 2])
    yield "locked.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 504 + b"\xff" * 2048


def without(archive: bytes, name: str) -> bytes:
    return zipped({key: data for key, data in parts(archive).items() if key != name})


def changed(archive: bytes, name: str, change: Any) -> bytes:
    return zipped({key: change(data) if key == name else data for key, data in parts(archive).items()})


def parts(archive: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def statistical() -> dict[str, bytes]:
    """Good files of Stata, SPSS and SAS."""
    import pyreadstat

    frame = pd.DataFrame(
        {
            "age": [20.0, 31.5, None, 918273.0],
            "name": ["SECRET1", "SECRETö", "", "SECRET3"],
            "sex": [1.0, 2.0, 1.0, 2.0],
            "born": [dt.date(1970, 5, 17), None, dt.date(1971, 1, 2), dt.date(1980, 3, 4)],
        }
    )
    labels = {"sex": {1: "male", 2: "female"}}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        pyreadstat.write_dta(frame, str(place / "a.dta"), variable_value_labels=labels)
        pyreadstat.write_sav(frame, str(place / "a.sav"), variable_value_labels=labels)
        pyreadstat.write_sav(frame, str(place / "a.zsav"), variable_value_labels=labels, compress=True)
        pyreadstat.write_por(frame.drop(columns="name"), str(place / "a.por"))
        pyreadstat.write_xport(frame, str(place / "a.xpt"))
        return {path.suffix[1:]: path.read_bytes() for path in sorted(place.iterdir())}


def good_files() -> dict[str, bytes]:
    """One sound file of each form."""
    rows: list[list[Any]] = [["age", "name"], *([20 + i, f"SECRET{i}"] for i in range(12))]
    parquet = io.BytesIO()
    pq.write_table(pa.table({"age": [20, 918273], "name": ["SECRET1", "SECRET2"]}), parquet)
    return {
        "csv": CSV,
        "csv.gz": gzip.compress(CSV),
        "csv.bz2": bz2.compress(CSV),
        "zip": zipped({"a.csv": CSV}),
        "xlsx": xlsx({"Data": rows}),
        "ods": ods(rows),
        "parquet": parquet.getvalue(),
        **statistical(),
    }


def misnamed() -> Iterator[tuple[str, bytes]]:
    """Each form under the name of others."""
    good = good_files()
    for own, content in good.items():
        for other in ("csv", "xlsx", "dta", "sav", "xpt", "sas7bdat", "parquet", "zip", "txt"):
            if own != other and (own in ("csv", "zip", "xlsx", "parquet") or other in ("csv", "dta")):
                yield f"{own.replace('.', '-')}-as.{other}", content
    yield "por-as.csv", good["por"]
    yield "sas.sas7bdat", b"\0" * 12 + bytes.fromhex("c2ea8160b31411cfbd92080009c7318c181f1011") + b"\0" * 4096
    yield "old.dta", struct.pack("4B", 114, 2, 1, 0) + b"\0" * 1000


def damaged() -> Iterator[tuple[str, bytes]]:
    """Each form cut short, and with bytes changed."""
    source = random.Random(16)
    for form, content in good_files().items():
        for number in range(6):
            yield f"cut{number}.{form}", content[: source.randrange(1, len(content))]
        for number in range(12):
            wrong = bytearray(content)
            for _ in range(source.choice((1, 1, 3, 20))):
                wrong[source.randrange(len(wrong))] = source.choice((0, 255, 128, 34, source.randrange(256)))
            yield f"changed{number}.{form}", bytes(wrong)
