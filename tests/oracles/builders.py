"""Slow and obvious twins of the builders: one value at a time, from what they promise."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from fractions import Fraction

CHAPTERS = {
    "I": "A00-B99", "II": "C00-D48", "III": "D50-D89", "IV": "E00-E90", "V": "F00-F99", "VI": "G00-G99",
    "VII": "H00-H59", "VIII": "H60-H95", "IX": "I00-I99", "X": "J00-J99", "XI": "K00-K93", "XII": "L00-L99",
    "XIII": "M00-M99", "XIV": "N00-N99", "XV": "O00-O99", "XVI": "P00-P96", "XVII": "Q00-Q99", "XVIII": "R00-R99",
    "XIX": "S00-T98", "XX": "V01-Y98", "XXI": "Z00-Z99", "XXII": "U00-U99",
}  # fmt: skip
"""The chapters of ICD-10 with their first and last category."""


def chapter_of(code: str) -> str | None:
    """The chapter whose range a code lies in."""
    for numeral, span in CHAPTERS.items():
        first, last = span.split("-")
        if first <= code[:3] <= last:
            return numeral
    return None


def band_label(number: int, width: int, bottom: int | None, top: int | None) -> str:
    """The band of a whole number between two tails."""
    if bottom is not None and number < bottom:
        return f"below {bottom}"
    if top is not None and number >= top:
        return f"{top}+"
    inside = [n for n in range(number - width, number + width + 1) if n // width == number // width]
    inside = [n for n in inside if (bottom is None or n >= bottom) and (top is None or n < top)]
    return str(number) if len(inside) == 1 else f"[{inside[0]}, {inside[-1]}]"


def week_label(day: dt.date) -> str:
    """The week of ISO 8601."""
    year, week, _ = day.isocalendar()
    return f"{year:04}-W{week:02}"


def thursday(day: dt.date) -> dt.date:
    """The Thursday of a day's week."""
    return day + dt.timedelta(days=4 - day.isoweekday())


def age_on(born: dt.date, on: dt.date) -> int:
    """How many birthdays somebody has had, one born on 29 February on the last day of the month or the next."""
    age = on.year - born.year
    return age - 1 if (on.month, on.day) < (born.month, born.day) else age


def rare(rows: Sequence[int], least: int) -> set[int]:
    """The places of the values that are put together: the rarest first, until all others and they have enough rows."""
    order = sorted(range(len(rows)), key=lambda place: (rows[place], place))
    found: set[int] = set()
    while order and (rows[order[0]] < least or (found and sum(rows[place] for place in found) < least)):
        found.add(order.pop(0))
    return found


def cuts(values: Sequence[Fraction], parts: int, step: Fraction) -> list[Fraction]:
    """Where the intervals begin, without the first: multiples of the step that come nearest to equal shares."""
    least, most = min(values), max(values)
    ends = sorted({(value // step + 1) * step for value in values})
    ends = [end for end in ends if least < end <= most]
    if not ends:
        return []
    found = set()
    for part in range(1, parts):
        share = Fraction(len(values) * part, parts)
        found.add(min(ends, key=lambda end: (abs(sum(value < end for value in values) - share), end)))
    return sorted(found)


def up_to(code: str, sign: str, kept: int) -> str:
    """The first parts of a code, or all of it where it has fewer."""
    parts, at = [""], 0
    for letter in code:
        if letter == sign:
            parts.append("")
            at += 1
        else:
            parts[at] += letter
    return sign.join(parts[:kept])
