"""Cells as an obvious, slow reader takes them, one character at a time; and spreadsheets written by hand."""

from __future__ import annotations

import datetime as dt
import io
import re
import zipfile
from collections.abc import Iterator, Sequence
from typing import Any
from xml.sax.saxutils import escape

GROUPS = ("", ",", ".", "'", "’", " ", "\u00a0", "\u202f")
MARKERS = {
    "NA", "N/A", "n/a", "n.a.", "NaN", "nan", "NULL", "null", "#N/A", "k. A.", "k.A.", ".", "._", "-", "--", "?",
    *("." + letter for letter in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"),
}  # fmt: skip


def column_of(table: Any, name: str) -> list[Any]:
    """The values of a column of a table, row by row."""
    values = table[name].values.to_pylist()
    return [values[code] for code in table[name].codes]


def digits(text: str) -> bool:
    return text != "" and all(letter in "0123456789" for letter in text)


def number(text: str, decimal: str, group: str) -> float | None:
    """The number that a text is under a convention; None where it is none. Leading zeros make a code."""
    sign, text = (-1, text[1:]) if text.startswith("-") else (1, text)
    power = 0
    for letter in "eE":
        if letter in text:
            text, _, exponent = text.partition(letter)
            if not digits(exponent.removeprefix("-").removeprefix("+")) or exponent[:2] in ("+-", "-+"):
                return None
            power = int(exponent)
    whole, mark, rest = text.partition(decimal)
    if rest and not digits(rest):
        return None
    if group and group in whole:
        first, *others = whole.split(group)
        if not 1 <= len(first) <= 3 or any(len(part) != 3 for part in others):
            return None
        whole = first + "".join(others)
        if not digits(whole) or whole.startswith("0"):
            return None
    if whole == "" and not rest:
        return None
    if whole and (not digits(whole) or (whole.startswith("0") and whole != "0")):
        return None
    return sign * float(f"{whole or 0}.{rest or 0}e{power}") if mark or power or rest else sign * float(whole)


def plain(cells: Sequence[str]) -> list[float] | None:
    """The numbers of cells that are written as everywhere, with a decimal point and nothing between digits."""
    found = [number(cell, ".", "") for cell in cells]
    return None if None in found else found  # type: ignore[return-value]


def numbers(cells: Sequence[str]) -> list[float] | None:
    """The numbers that cells are: as everywhere, else if every convention that fits says the same ones.

    And one of the cells must have a decimal part, for grouped digits alone may be the number of a passport.
    """
    if (found := plain(cells)) is not None:
        return found
    readings, parts = [], False
    for decimal in ",.":
        for group in GROUPS:
            if group == decimal:
                continue
            found = [number(cell, decimal, group) for cell in cells]  # type: ignore[misc]
            if None not in found:
                readings.append(found)
                parts |= any(digits(re.split("[eE]", cell)[0].partition(decimal)[2]) for cell in cells)
    same = bool(readings) and all(one == readings[0] for one in readings)
    return readings[0] if same and parts else None


def date(text: str, order: str) -> dt.datetime | None:
    """The date that a text is, as Python reads it, where it is written in plain digits and letters."""
    if not text.isascii() or text.count(" ") != order.count(" "):  # Python also takes a blank for a digit
        return None
    try:
        return dt.datetime.strptime(text, order)
    except ValueError:
        return None


def dates(cells: Sequence[str]) -> list[dt.datetime] | None:
    """The dates that cells are, where only one order of day and month makes dates of them all."""
    found: dict[str, list[dt.datetime]] = {}
    for mark in "./-":
        for time in ("", " %H:%M", " %H:%M:%S", "T%H:%M", "T%H:%M:%S"):
            for order in ("%d{0}%m{0}%Y", "%m{0}%d{0}%Y", "%Y{0}%m{0}%d"):
                read = [date(cell, order.format(mark) + time) for cell in cells]
                if None not in read:
                    found[order] = read  # type: ignore[assignment]
    return next(iter(found.values())) if len(found) == 1 else None


# -- spreadsheets, written by hand ---------------------------------------------------------------------------------

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"


def xlsx(sheets: dict[str, Sequence[Sequence[Any]]], *, merged: Sequence[str] = (), raw: str = "") -> bytes:
    """A workbook of these sheets; the second style is a date, the third a time."""
    names = list(sheets)
    listed = "".join(f'<sheet name="{escape(name)}" sheetId="{i}" r:id="rId{i}"/>' for i, name in enumerate(names, 1))
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types"><Default Extension="rels" '
        'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        '<Default Extension="xml" ContentType="application/xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="rId1" '
        f'Type="{RELATIONS}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{RELATIONS}"><sheets>{listed}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{PACKAGE}/relationships">'
        + "".join(
            f'<Relationship Id="rId{i}" Type="{RELATIONS}/worksheet" Target="worksheets/sheet{i}.xml"/>'
            for i in range(1, len(names) + 1)
        )
        + f'<Relationship Id="styles" Type="{RELATIONS}/styles" Target="styles.xml"/></Relationships>',
        "xl/styles.xml": f'<styleSheet xmlns="{MAIN}"><cellXfs count="3"><xf numFmtId="0"/><xf numFmtId="14"/>'
        '<xf numFmtId="22"/></cellXfs></styleSheet>',
    }
    merges = "".join(f'<mergeCell ref="{each}"/>' for each in merged)
    merges = f"<mergeCells>{merges}</mergeCells>" if merged else ""
    for i, rows in enumerate(sheets.values(), 1):
        data = "".join(f'<row r="{r}">{"".join(_cells(r, row))}</row>' for r, row in enumerate(rows, 1))
        parts[f"xl/worksheets/sheet{i}.xml"] = (
            f'<worksheet xmlns="{MAIN}"><sheetData>{data}{raw}</sheetData>{merges}</worksheet>'
        )
    return zipped({name: text.encode() for name, text in parts.items()})


def _cells(number: int, row: Sequence[Any]) -> Iterator[str]:
    for at, value in enumerate(row):
        place = f"{chr(ord('A') + at)}{number}"
        if isinstance(value, bool):
            yield f'<c r="{place}" t="b"><v>{int(value)}</v></c>'
        elif isinstance(value, (int, float)):
            yield f'<c r="{place}"><v>{value!r}</v></c>'
        elif isinstance(value, dt.date):
            since = dt.datetime(value.year, value.month, value.day) - dt.datetime(1899, 12, 30)
            yield f'<c r="{place}" s="1"><v>{since.days}</v></c>'
        elif isinstance(value, BaseException):
            yield f'<c r="{place}" t="e"><f>1/0</f><v>#DIV/0!</v></c>'
        elif value is not None:
            yield f'<c r="{place}" t="inlineStr"><is><t xml:space="preserve">{escape(value)}</t></is></c>'


def ods(rows: Sequence[Sequence[Any]]) -> bytes:
    """A document of one sheet."""
    office, table, text = (f"urn:oasis:names:tc:opendocument:xmlns:{part}:1.0" for part in ("office", "table", "text"))
    body = "".join(f"<table:table-row>{''.join(map(_ods_cell, row))}</table:table-row>" for row in rows)
    content = (
        f'<office:document-content xmlns:office="{office}" xmlns:table="{table}" xmlns:text="{text}" '
        f'office:version="1.2"><office:body><office:spreadsheet><table:table table:name="Data">{body}</table:table>'
        "</office:spreadsheet></office:body></office:document-content>"
    )
    manifest = '<m:manifest xmlns:m="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"/>'
    mime = b"application/vnd.oasis.opendocument.spreadsheet"
    return zipped({"mimetype": mime, "content.xml": content.encode(), "META-INF/manifest.xml": manifest.encode()})


def _ods_cell(value: Any) -> str:
    if value is None:
        return "<table:table-cell/>"
    kind, name, shown = "string", "", str(value)
    if isinstance(value, bool):
        kind, name, shown = "boolean", "boolean-value", str(value).lower()
    elif isinstance(value, (int, float)):
        kind, name, shown = "float", "value", repr(value)
    elif isinstance(value, dt.date):
        kind, name = "date", "date-value"
    attribute = f' office:{name}="{shown}"' if name else ""
    return (
        f'<table:table-cell office:value-type="{kind}"{attribute}><text:p>{escape(shown)}</text:p></table:table-cell>'
    )


def zipped(files: dict[str, bytes], *, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """An archive of these files."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", method) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return made.getvalue()
