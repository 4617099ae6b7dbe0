"""How a file writes its cells: what stands for a missing value, numbers with a decimal comma, dates in any order.

Each column shows how it is written by itself. What is decided is said with the number of cells that decided it; what
the cells leave open stays text, with the option that settles it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from string import ascii_letters, ascii_lowercase, ascii_uppercase

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from jali.core.arrays import Bools, Ints
from jali.core.text import printable
from jali.encoding import values as v
from jali.errors import LONGEST, InputError, listed, one_of, told

MARKERS: dict[str, tuple[str, ...]] = {
    "r": ("", "NA", "NaN"),
    "stata": ("", ".", *(f".{letter}" for letter in ascii_lowercase)),
    "sas": ("", ".", "._", *(f".{letter}" for letter in ascii_uppercase)),
}
"""What stands for a missing value in the files of a program, by its name."""
_USUAL = pa.array((
    "NA", "N/A", "n/a", "n.a.", "NaN", "nan", "NULL", "null", "#N/A", "k. A.", "k.A.", ".", "._", "-", "--", "?",
    *(f".{letter}" for letter in ascii_letters),
))  # fmt: skip
_DECIMALS, _GROUPS = (",", "."), (",", ".", "'", "’", " ", "\u00a0", "\u202f")
_WRITTEN = tuple((decimal, group) for decimal in _DECIMALS for group in ("", *_GROUPS) if group != decimal)
_SHAPE = re.compile(r"([0-9]{1,4})([./-])[0-9]{1,2}[./-]([0-9]{1,4})(?:([ T])[0-9]{1,2}:[0-9]{2}(:[0-9]{2})?)?")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_FULL = ("uary", "ruary", "ch", "il", "", "e", "y", "ust", "tember", "ober", "ember", "ember")
_DIRECTIVES = {
    "d": "[0-9]{1,2}", "m": "[0-9]{1,2}", "Y": "[0-9]{4}", "y": "[0-9]{2}", "H": "[0-9]{1,2}", "M": "[0-9]{1,2}",
    "S": "[0-9]{1,2}", "b": f"(?i:{'|'.join(_MONTHS)})",
    "B": f"(?i:{'|'.join(a + b for a, b in zip(_MONTHS, _FULL, strict=True))})",
}  # fmt: skip
_PIVOT = 69  # as in POSIX: a year of two digits below it is in this century


@dataclass(frozen=True)
class Writing:
    """How the cells of a file are written, as far as the caller says; None where each column shows it."""

    missing_markers: tuple[str, ...] | None = None
    decimal: str | None = None
    thousands: str | None = None
    date_format: str | None = None

    def __post_init__(self) -> None:
        if self.decimal is not None and not one_of(self.decimal, _DECIMALS):
            raise InputError('decimal must be "," or "."', got=repr(told(self.decimal)))
        if self.thousands is not None and not one_of(self.thousands, ("", *_GROUPS)):
            do = "write , or . or ' or a space, or nothing between the quotes for none"
            raise InputError("thousands is what groups digits", got=repr(told(self.thousands)), do=do)
        if self.decimal is not None and self.decimal == self.thousands:
            raise InputError("decimal and thousands are the same character", got=repr(self.decimal))
        if self.date_format is not None:
            _pattern(self.date_format)

    @classmethod
    def of(
        cls, missing_markers: str | Iterable[str] | None, decimal: str | None, thousands: str | None,
        date_format: str | None,
    ) -> Writing:  # fmt: skip
        """The caller's options, checked; a name such as "r" stands for the markers of that program."""
        markers: tuple[str, ...] | None = None
        if missing_markers is not None:
            given = (missing_markers,) if isinstance(missing_markers, str) else listed(missing_markers)
            if given is None or not all(isinstance(marker, str) for marker in given):
                do = 'e.g. missing_markers=["NA", "k. A."], or "r", "stata" or "sas"'
                raise InputError("missing_markers must be a list of texts", do=do)
            if isinstance(missing_markers, str) and missing_markers not in MARKERS:
                do = f'name {", ".join(MARKERS)}, or write a list: missing_markers=["{missing_markers}"]'
                raise InputError(f'no set of missing markers "{missing_markers}"', do=do)
            markers = tuple(dict.fromkeys(each for marker in given for each in MARKERS.get(marker, (marker.strip(),))))
        return cls(markers, decimal, thousands, date_format)

    @property
    def numbers(self) -> tuple[str, str] | None:
        """The decimal mark and what groups digits, where the caller says either."""
        if self.decimal is None and self.thousands is None:
            return None
        other = "," if self.thousands == "." else "."
        return self.decimal or other, self.thousands or ""

    def without_markers(self, values: pa.Array) -> pa.Array:
        """The values with those missing that the caller's markers stand for."""
        if not self.missing_markers:
            return values
        texts = pc.utf8_trim_whitespace(v.texts(values))
        return pc.if_else(pc.is_in(texts, pa.array(self.missing_markers, pa.string())), None, values)


@dataclass
class Cells:
    """The distinct texts of a column, what they are read as, and what is to be said about it."""

    column: str
    texts: pa.Array  # (values,) the caller's missing markers are missing already
    writing: Writing
    count: Callable[[], Ints]  # how many cells each of them has
    notes: list[str] = field(default_factory=list)
    options: dict[str, str] = field(default_factory=dict)  # what was decided, as the options would say it
    markers: tuple[str, ...] = ()  # texts that were taken as missing
    suspects: tuple[str, ...] = ()  # texts among texts that often mark a missing value
    hint: str = ""  # which option settles what the cells leave open

    @cached_property
    def trimmed(self) -> pa.Array:
        """The texts without blanks around them; blanks alone are missing."""
        bare = pc.utf8_trim_whitespace(self.texts)
        return pc.if_else(pc.equal(bare, ""), None, bare)

    @cached_property
    def _usual(self) -> pa.Array:
        """Which texts often stand for a missing value: none where the caller has a say in it."""
        if self.writing.missing_markers is not None:
            return pa.array(np.zeros(len(self.texts), dtype=bool))
        return pc.is_in(self.trimmed, _USUAL)

    def read(self) -> pa.Array:
        """The values as what they are: numbers, dates, truth values or the texts themselves, each in its place."""
        typed = self._plain(self.texts)
        if v.kind_of(typed) != "text" or len(self.trimmed.drop_null()) == 0:
            return typed
        known = pc.if_else(self._usual, None, self.trimmed)
        if len(filled := known.drop_null()) == 0:
            return self.as_text()
        if known.null_count > self.trimmed.null_count:
            typed = self._plain(known)
        if v.kind_of(typed) == "text":
            typed = self._written(known, filled)
        if v.kind_of(typed) == "text":
            return self.as_text()
        self._say_markers(v.kind_of(typed))
        return typed

    def _plain(self, texts: pa.Array) -> pa.Array:
        """What every file writes alike; no numbers where the caller says how they are written."""
        typed = v.inferred(texts)
        otherwise = self.writing.numbers not in (None, (".", ""))
        return texts if otherwise and v.kind_of(typed) == "number" else typed

    def _written(self, known: pa.Array, filled: pa.Array) -> pa.Array:
        """What the texts are as the caller or their own cells say that they are written; else the texts."""
        numbers = self.writing.numbers
        if numbers is None:
            return self._other_numbers(known, filled)
        return self._numbers(known, *numbers) if v.all_match(filled, _grammar(*numbers)) else self._dates(known)

    def _other_numbers(self, known: pa.Array, filled: pa.Array) -> pa.Array:
        """Numbers whose own cells show a decimal comma or grouped digits beyond doubt; otherwise dates or texts."""
        for decimal, group in _WRITTEN:
            if (decimal, group) == (".", "") or not v.all_match(filled, _grammar(decimal, group)):
                continue
            if group and v.all_match(filled, _grammar(decimal, "")):
                continue  # no digits are grouped
            sure = _matches(known, _proof(decimal, group))
            if cells := self._cells(sure):
                typed = self._numbers(known, decimal, group)
                if v.kind_of(typed) == "text":
                    return typed
                self.options |= {"decimal": decimal} | ({"thousands": group} if group else {})
                groups = f' and thousands = "{group}"' if group else ""
                self._say(f'decimal = "{decimal}"{groups}, which {_of(cells, self._cells(known.is_valid()))} show')
                return typed
        for mark in (",", "."):  # 1,500 and 12.345.678 could be either, or a number that names somebody
            once = rf"^-?[1-9][0-9]{{0,2}}(\{mark}[0-9]{{3}})?$"
            if v.all_match(filled, once.replace("?$", "*$")):
                either = f' or decimal = "{mark}"' if v.all_match(filled, once) else ""
                cells = self._cells(pc.match_substring(known, mark))
                self.hint = f'write thousands = "{mark}"{either}'
                stays = f'"{mark}" before three digits in {_many(cells)}, so that the column stays text'
                self._say(f"{stays}; {self.hint} if it holds numbers")
                return self.texts
        return self._dates(known)

    def _numbers(self, known: pa.Array, decimal: str, group: str) -> pa.Array:
        plain = pc.replace_substring(known, group, "") if group else known
        plain = plain if decimal == "." else pc.replace_substring(plain, decimal, ".")
        typed = v.inferred(plain)
        return typed if v.kind_of(typed) == "number" else self.texts

    def dates(self) -> pa.Array | None:
        """The texts as dates of the caller's format; None where there is none, or one of them is no such date."""
        if self.writing.date_format is None:
            return None
        typed = parsed(self.trimmed, self.writing.date_format)
        return typed if typed.null_count == self.trimmed.null_count else None

    def _dates(self, known: pa.Array) -> pa.Array:
        """Dates as the caller's format has them, or in the one order that all cells allow."""
        if self.writing.date_format is not None:
            typed = parsed(known, self.writing.date_format)
            return typed if typed.null_count == known.null_count else self.texts
        orders = list(_orders(known.drop_null()[0].as_py()))
        read = [(order, parsed(known, order)) for order in orders]
        fitting = [(order, typed) for order, typed in read if typed.null_count == known.null_count]
        if not fitting:
            return self.texts
        order, typed = fitting[0]
        if len(fitting) > 1 or "%y" in order:
            what = "the century" if "%y" in order else "which is the day and which the month"
            self.hint = f'write e.g. date_format = "{order}"'
            dates = f"dates in {_many(self._cells(known.is_valid()))}"
            self._say(f"{dates} stay text, since none shows {what}; {self.hint}")
            return self.texts
        every = self._cells(known.is_valid())
        others = [other for name, other in read if name != order]
        sure = self._cells(pc.and_(known.is_valid(), others[0].is_null())) if others else every
        self.options["date_format"] = order
        self._say(f'date_format = "{order}", which {_of(sure, every)} show')
        return typed

    def as_text(self) -> pa.Array:
        """The texts as they are; those that often mark a missing value are said."""
        if found := self._marks():
            self.suspects = tuple(name for name, _ in found)
            write = f"missing_markers = {_list(name for name, _ in found)}"
            self._say(f"{_counted(found)} read as a text; write {write} if it means missing")
        return self.texts

    @property
    def taken(self) -> str:
        """What is said where the suspects are taken as missing, as the markers of other columns are."""
        what = _counted(self._marks())
        return f'column "{self.column}": {what} taken as missing; take it out of missing_markers if it is a word'

    def _say_markers(self, kind: v.Kind) -> None:
        found = self._marks()
        if not found:
            return
        others = self._cells(self.trimmed.is_valid()) - sum(cells for _, cells in found)
        plural = {"number": "numbers", "date": "dates", "boolean": "truth values"}[kind]
        self.markers = tuple(name for name, _ in found)
        self._say(f"{_counted(found)} taken as missing, since the others ({_many(others)}) are {plural}")

    def _marks(self) -> list[tuple[str, int]]:
        """The texts that often mark a missing value, with the number of cells of each."""
        if not pc.any(self._usual).as_py():
            return []
        found = pc.unique(self.trimmed.filter(self._usual)).to_pylist()
        return [(name, self._cells(pc.equal(self.trimmed, name))) for name in found]

    def _cells(self, mask: pa.Array) -> int:
        return int(self.count()[_bools(mask)].sum())

    def _say(self, what: str) -> None:
        self.notes.append(f'column "{self.column}": {what}')

    def misfits(self, kind: v.Kind) -> Bools:
        """Which texts cannot be read as a kind, as far as each can be judged alone."""
        filled = self.trimmed.is_valid()
        if kind == "number":
            decimal, group = self.writing.numbers or (".", "")
            loose = _grammar(decimal, group).replace("(0|[1-9][0-9]*)", "[0-9]+")
            fits = _matches(self.trimmed, f"{loose}|^(?i:-?inf(inity)?|nan)$")
        elif kind == "date":
            formats = (self.writing.date_format,) if self.writing.date_format else ()
            some = (*formats, "%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S")
            fits = pa.array(np.any([_bools(parsed(self.trimmed, each).is_valid()) for each in some], axis=0))
        else:
            fits = _matches(self.trimmed, "^(?i:true|false)$")
        return _bools(pc.and_(filled, pc.invert(fits)))


def parsed(texts: pa.Array, order: str) -> pa.Array:
    """Texts as dates (or times, where the format has hours), missing where they are none of this format."""
    pattern = _pattern(order)
    parts = pc.extract_regex(texts, pattern)
    found = dict(zip(re.findall(r"\(\?P<(\w)>", pattern), parts.flatten(), strict=True))

    def numbers(name: str, default: int) -> Ints:
        if name not in found:
            return np.full(len(texts), default, dtype=np.int64)
        read: Ints = found[name].cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
        return read

    year, month, day = numbers("Y", 0), numbers("m", 0), numbers("d", 1)
    if "y" in found:
        short = numbers("y", 0)
        year = short + np.where(short < _PIVOT, 2000, 1900)
    for name in ("b", "B"):
        if name in found:
            start = pc.utf8_slice_codeunits(pc.utf8_lower(found[name]), 0, 3)
            month = pc.index_in(start, pa.array(_MONTHS)).fill_null(-1).to_numpy(zero_copy_only=False) + 1
    hour, minute, second = numbers("H", 0), numbers("M", 0), numbers("S", 0)
    known = _bools(parts.is_valid()) & (year >= 1) & (month >= 1) & (month <= 12) & (day >= 1)
    known &= (hour < 24) & (minute < 60) & (second < 60)
    first = ((np.where(known, year, 1970) - 1970) * 12 + np.where(known, month, 1) - 1).astype("datetime64[M]")
    days = first.astype("datetime64[D]") + np.where(known, day - 1, 0).astype("timedelta64[D]")
    known &= days.astype("datetime64[M]") == first
    if "H" not in found:
        return pa.array(days, mask=~known).cast(pa.date32())
    seconds = np.where(known, (hour * 60 + minute) * 60 + second, 0)
    return pa.array(days.astype("datetime64[us]") + seconds.astype("timedelta64[s]"), mask=~known)


def _pattern(order: object) -> str:
    """The regular expression of a date format; InputError for one that says no day."""
    do = 'e.g. date_format="%d.%m.%Y"; known are ' + ", ".join(f"%{name}" for name in _DIRECTIVES)
    if not isinstance(order, str):
        raise InputError("date_format must be text", got=type(order).__name__, do=do)
    parts, before = [], ""
    for name, letters in re.findall(r"%(.)|([^%]+|%)", order, flags=re.DOTALL):
        if letters:
            parts.append(re.escape(letters))
        elif name not in _DIRECTIVES or f"(?P<{name}>" in "".join(parts):
            raise InputError(f'date_format: "%{name}" is not known or stands twice', do=do)
        else:
            parts.append(f"(?P<{name}>{_DIRECTIVES[name]})")
        if name and before and name not in "bB":  # 17051970: where no letter parts them, each has all its digits
            parts[-2:] = [part.replace("{1,2}", "{2}") for part in parts[-2:]]
        before = name
    pattern = "".join(parts)
    names = set(re.findall(r"\(\?P<(\w)>", pattern))
    if not ("d" in names and len(names & {"m", "b", "B"}) == 1 and len(names & {"Y", "y"}) == 1) or (
        names & {"M", "S"} and "H" not in names
    ):
        raise InputError("date_format must say day, month and year, once each", got=repr(order), do=do)
    return f"^{pattern}$"


def _orders(text: str) -> Iterator[str]:
    """The formats that a text could have been written in, day first."""
    if (shape := _SHAPE.fullmatch(text)) is None:
        return
    first, mark, last, gap, seconds = shape.groups()
    time = f"{gap}%H:%M{':%S' if seconds else ''}" if gap else ""
    if len(first) == 4:
        yield f"%Y{mark}%m{mark}%d{time}"
    elif len(first) <= 2 and len(last) in (2, 4):
        year = "%Y" if len(last) == 4 else "%y"
        yield f"%d{mark}%m{mark}{year}{time}"
        yield f"%m{mark}%d{mark}{year}{time}"


def _grammar(decimal: str, group: str) -> str:
    """Numbers without leading zeros; grouped digits stand in threes."""
    d, whole = re.escape(decimal), "(0|[1-9][0-9]*)"
    if group:
        whole = f"({whole}|[1-9][0-9]{{0,2}}({re.escape(group)}[0-9]{{3}})+)"
    return f"^-?({whole}({d}[0-9]*)?|{d}[0-9]+)([eE][+-]?[0-9]+)?$"


def _proof(decimal: str, group: str) -> str:
    """What a cell looks like whose decimal mark can be nothing else.

    A comma or point before three digits may group them, unless nothing, a zero or more than three digits stand before
    it, or other digits are grouped otherwise. Grouped digits alone prove nothing: they may be a number that names
    somebody.
    """
    d = re.escape(decimal)
    if group and group not in _DECIMALS:
        return rf"{d}[0-9]+([eE][+-]?[0-9]+)?$"
    plain = rf"([0-9]+{d}([0-9]{{1,2}}|[0-9]{{4,}})|(0|[0-9]{{4,}}){d}[0-9]+|{d}[0-9]+|[0-9]+{d}[0-9]+[eE][+-]?[0-9]+)"
    plain += "([eE][+-]?[0-9]+)?"
    return rf"^-?({plain}|[0-9]{{1,3}}({re.escape(group)}[0-9]{{3}})+{d}[0-9]+)$" if group else f"^-?{plain}$"


def groups_of_three(texts: pa.Array) -> bool:
    """Whether every number has a point before its last three digits: 1.500 may mean 1500."""
    filled = pc.utf8_trim_whitespace(texts).drop_null()
    return len(filled) > 0 and v.all_match(filled, r"^-?[1-9][0-9]{0,2}\.[0-9]{3}$")


def as_line(note: str) -> str:
    """A note in one line that a terminal can show, whatever the names in it, cut where it is long."""
    line = " ".join(printable(note).splitlines())
    return line if len(line) <= LONGEST else line[:LONGEST] + "…"


def _matches(texts: pa.Array, pattern: str) -> pa.Array:
    return pc.match_substring_regex(texts, pattern).fill_null(False)


def _bools(mask: pa.Array) -> Bools:
    return np.asarray(mask.fill_null(False).to_numpy(zero_copy_only=False), dtype=bool)


def _many(cells: int) -> str:
    return "1 cell" if cells == 1 else f"{cells:,} cells"


def _of(some: int, every: int) -> str:
    return f"{some:,} of {every:,} cells"


def _counted(found: list[tuple[str, int]]) -> str:
    """`"NA" in 12 cells and "." in 1 cell are`, for a sentence to go on."""
    parts = [f'"{name}" in {_many(cells)}' for name, cells in found]
    return (", ".join(parts[:-1]) + " and " if parts[1:] else "") + parts[-1] + (" are" if parts[1:] else " is")


def _list(names: Iterable[str]) -> str:
    return "[" + ", ".join(f'"{name}"' for name in names) + "]"
