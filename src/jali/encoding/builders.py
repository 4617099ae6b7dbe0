"""Hierarchies as people write them: mask, suppress, frequency; what a column gets that has none; edits by hand."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from jali.core.arrays import Bools, Ints
from jali.encoding import values as v
from jali.encoding.calendar import AGES, UNITS, Dates, day_of
from jali.encoding.codes import COUNTRIES, SYSTEMS, Grid, Prefix, Zip
from jali.encoding.hierarchy import ROOT, Builder, Hierarchy, Recipe, by_label, from_steps
from jali.encoding.intervals import Bands, Counted, Number, Quantiles, nice
from jali.errors import HierarchyError, InputError, listed

LONGEST_MASKED = 100
"""Characters of the longest value that mask() takes: each is a level."""


@dataclass(frozen=True)
class Suppress(Builder):
    """Keep the value or show `*`."""

    def build(self, column: str, values: pa.Array, *, declared: bool = False) -> Hierarchy:
        """Two levels: the values and the root."""
        return from_steps(column, v.texts(values), [], declared=declared, recipe=Recipe("suppress"))


@dataclass(frozen=True)
class Mask(Builder):
    """Hide characters from the right, the first one last: 13053, 1305*, 130**, …, `*`."""

    reads_text: ClassVar[bool] = True

    def typed(self, column: str, present: pa.Array) -> pa.Array:
        """The values as text."""
        return v.texts(present)

    def build(self, column: str, values: pa.Array, *, declared: bool = False) -> Hierarchy:
        """One level per character of the longest value, then the root."""
        texts = v.texts(values)
        lengths = pc.utf8_length(texts).fill_null(0).to_numpy(zero_copy_only=False)
        longest = int(lengths.max(initial=0))
        if longest > LONGEST_MASKED:
            raise HierarchyError(
                f'mask() of column "{column}": the longest value has {longest} characters',
                do=f"mask() takes up to {LONGEST_MASKED}; use suppress() or a taxonomy",
            )
        steps = [by_label(_masked(texts, lengths, hidden)) for hidden in range(1, longest)]
        return from_steps(column, texts, steps, declared=declared, recipe=Recipe("mask"))


def _masked(texts: pa.Array, lengths: NDArray[np.int32], hidden: int) -> pa.Array:
    """The texts without their last characters; one always stays, so that no label reads as the root."""
    parts, order = [], []
    for length in np.unique(lengths):
        rows = np.flatnonzero(lengths == length)
        some = texts.take(pa.array(rows))
        kept = int(max(length - hidden, min(length, 1)))
        cut = pc.utf8_slice_codeunits(some, 0, kept) if kept else some
        parts.append(pc.binary_join_element_wise(cut, ROOT * (int(length) - kept), ""))
        order.append(rows)
    return v.put_back(parts, order)


RARE = "(rare)"


@dataclass(frozen=True)
class Frequency(Builder):
    """Rare values together, until each that is left has at least a number of rows."""

    counts_rows: ClassVar[bool] = True

    least: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.least or any(isinstance(k, bool) or not isinstance(k, int) or k < 2 for k in self.least):
            raise HierarchyError("frequency() needs whole numbers of at least 2", do="e.g. frequency(5) or (5, 50)")
        if list(self.least) != sorted(set(self.least)):
            raise HierarchyError("the numbers of frequency() must become larger", got=str(self.least))

    @property
    def recipe(self) -> Recipe:
        """Its arguments: which values are rare is not in it."""
        return Recipe("frequency", tuple(map(Fraction, self.least)))

    def counted(self, column: str, values: pa.Array, rows: Ints) -> Builder:
        """A level for each number: the values with fewer rows are one node, with more values while it has too few."""
        texts = v.texts(values)
        label = RARE
        while int(pc.index(texts, label).as_py()) >= 0:
            label = f"({label})"
        steps = []
        for least in self.least:
            rare = _rare(rows, least)
            if rare.any() and not rare.all():
                steps.append(by_label(pc.if_else(pa.array(rare), label, texts)))
        return Counted(self.recipe, tuple(steps))

    def build(self, column: str, values: pa.Array, *, declared: bool = False) -> Hierarchy:
        """As if every value were in one row."""
        return self.counted(column, values, np.ones(len(values), dtype=np.int64)).build(column, values)


def _rare(rows: Ints, least: int) -> Bools:
    """The values with fewer rows than this, and while they have fewer together, the next one; of equals the first."""
    order = np.argsort(rows, kind="stable")
    upto = np.cumsum(rows[order])
    few = int((rows < least).sum())
    if few:
        few = max(few, int(np.searchsorted(upto, least)) + 1)
    rare = np.zeros(len(rows), dtype=bool)
    rare[order[:few]] = True
    return rare


# -- what a column gets that has none ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Automatic(Builder):
    """What a column gets that has no hierarchy: by the kind of its values, and by what they look like."""

    def build(self, column: str, values: pa.Array, *, declared: bool = False) -> Hierarchy:
        """Whatever fits the values, without levels that change nothing; the release says that it was chosen."""
        builder, note = _choice(column, values)
        made = builder.build(column, values, declared=declared)
        kept = _telling(made)
        if len(kept) < made.height - 1:
            made = _only(builder, made, kept).build(column, values, declared=declared)
        return replace(made, chosen=True, note=note if made.height > 1 else "")


def _telling(made: Hierarchy) -> list[int]:
    """The levels between values and root that join some values of the level below, and not all."""
    return [i for i in range(1, made.height) if 1 < len(made.levels[i]) < len(made.levels[i - 1])]


def _only(builder: Builder, made: Hierarchy, kept: list[int]) -> Builder:
    """The builder with some of its levels."""
    if not kept:
        return Suppress()
    match builder:
        case Bands():
            return replace(builder, widths=tuple(builder.widths[i - 1] for i in kept))
        case Grid():
            return replace(builder, widths=tuple(builder.widths[i - 1] for i in kept))
        case Prefix(lengths=lengths) if lengths:
            return replace(builder, lengths=tuple(lengths[i - 1] for i in kept))
        case Prefix() | Zip():
            return replace(builder, levels=tuple(kept))
        case Dates():
            units = ("day", *UNITS[2:])[0 if not made.whole else 1 :]
            return Dates(tuple(units[i - 1] for i in kept))
    return builder


FEWEST_BANDED = 6
"""Distinct numbers from which on a column gets bands rather than keep-or-hide."""
_CODED = 4
"""Digits from which on numbers that all have as many may be codes."""
_PLACE = re.compile(r"(?i)(.*[^a-z])?(lat|lon|lng|long|latitude|longitude|breite|l(ae|ä)nge|laengengrad|breitengrad)")
_PAIRED = re.compile(r"-?[0-9]{1,3}\.[0-9]+ *[,;] *-?[0-9]{1,3}\.[0-9]+")
_ICD = re.compile(r"[A-Z][0-9]{2}(\.[0-9]{1,2})?")
_NUTS = re.compile(r"[A-Z]{2}[0-9A-Z]{1,3}")


def _choice(column: str, values: pa.Array) -> tuple[Builder, str]:
    """The builder that fits a column, and what its holder should check."""
    known, kind = values.drop_null(), v.kind_of(values)
    if kind == "date" and len(known):
        return Dates(), ""
    if kind == "text":
        return _of_texts([text for text in known.to_pylist() if text])
    if kind != "number" or len(known) < FEWEST_BANDED:
        return Suppress(), ""
    found = v.numbers(known)
    assert found is not None  # the kind says so
    least, most = float(found.min()), float(found.max())
    if least == most:  # whole numbers beyond 2**53, which floats do not tell apart
        return Suppress(), ""
    if _PLACE.fullmatch(column) and least >= -180 and most <= 180 and not v.is_whole(known):
        return Grid(), ""
    width = nice((most - least) / 32)
    width = max(width, Fraction(2)) if v.is_whole(known) else width
    widths = tuple(int(w) if w.denominator == 1 else w for w in (width * 2**step for step in range(5)))
    digits = len(str(int(least)))
    coded = (
        v.is_whole(known) and least > 0 and digits == len(str(int(most))) >= _CODED and not 1800 <= least <= most < 2100
    )
    note = f"all its numbers have {digits} digits: if they are codes, use prefix, zip or mask instead" if coded else ""
    return Bands(widths), note


def _of_texts(texts: Sequence[str]) -> tuple[Builder, str]:
    """The builder that fits words, codes or places; keep-or-hide for words."""
    if len(texts) < 2:
        return Suppress(), ""

    def all_are(pattern: re.Pattern[str]) -> bool:
        return all(pattern.fullmatch(text) for text in texts)

    for country in ("UK", "CA", "NL"):
        if all_are(COUNTRIES[country].pattern):
            return Zip(country), f"its values look like postal codes ({country})"
    if all_are(_ICD) and any("." in text for text in texts):
        return Prefix(system="icd-10"), "its values look like codes of ICD-10"
    if all_are(SYSTEMS["atc"].pattern) and any(len(text) == 7 for text in texts):
        return Prefix(system="atc"), "its values look like ATC codes"
    if all_are(_NUTS) and all(any(c.isdigit() for c in text) for text in texts):
        return Prefix(system="nuts"), "its values look like NUTS codes"
    if all_are(_PAIRED):
        return Grid(), "its values look like coordinates"
    digits = {len(text) if text.isascii() and text.isdigit() else 0 for text in texts}
    if len(digits) == 1 and (length := digits.pop()) > 2:
        lengths = (3, 2, 1) if length > 3 else tuple(range(length - 1, 0, -1))
        return Prefix(lengths), f"its values are codes of {length} digits: if they are postal codes, name zip(country)"
    return Suppress(), ""


# -- as people call them ----------------------------------------------------------------------------------------


def bands(
    *widths: Number, origin: Number = 0, low: Number | None = None, high: Number | None = None,
    bottom: Number | None = None, top: Number | None = None,
) -> Builder:  # fmt: skip
    """Numbers into [0, 4], [5, 9], …: one level per width, each a multiple of the one before.

    `origin` is where a band begins; `low` and `high` declare the domain of whole numbers. From `top` on all numbers are
    one band, `90+`, and so are those below `bottom`; without widths the numbers between stay as they are.
    """
    return Bands(widths, origin, low, high, bottom, top)


def mask() -> Builder:
    """Characters hidden from the right, one more at each level and the first one last: 13053, 1305*, 130**, …, `*`."""
    return Mask()


def dates(
    *units: str, ages: Number | Iterable[Number] = (), on: str | dt.date | None = None, top: int | None = 90
) -> Builder:
    """Days into months, quarters, years, decades, `*`; or into the given units, "week" among them.

    With `on`, dates of birth become the ages that people have on that day, in bands of the widths `ages`; from `top` on
    they are one band.
    """
    day = day_of(on)
    widths = listed(ages)
    widths = (ages,) if widths is None else widths
    return Dates(units, widths or AGES if day is not None else widths, day, None if day is None else top)


def suppress() -> Builder:
    """The value itself, or `*`."""
    return Suppress()


def frequency(*least: int) -> Builder:
    """Values with fewer rows than this together as one, a level per number; reads how often each value occurs."""
    return Frequency(least)


def quantiles(
    *parts: int, step: Number | None = None, low: Number | None = None, high: Number | None = None
) -> Builder:
    """Numbers into this number of intervals with about equally many rows each; reads how often each value occurs.

    Intervals are cut at multiples of `step`, by default about a hundredth of the range; the first begins at `low` and
    the last ends at `high`, by default rounded outward.
    """
    return Quantiles(parts, step, low, high)


def of_recipe(recipe: Recipe) -> Builder:
    """The builder that a recipe names, but for a taxonomy; HierarchyError where there is none like it."""
    numbers = tuple(int(n) if n.denominator == 1 else float(n) for n in recipe.widths)
    match recipe.family:
        case "bands":
            return Bands.of(recipe)
        case "dates":
            return Dates.of(recipe)
        case "mask":
            return Mask()
        case "prefix":
            return Prefix.of(recipe)
        case "zip":
            return Zip(", ".join(recipe.words), numbers)  # type: ignore[arg-type]  # it refuses fractions
        case "grid":
            return Grid(numbers)
        case "frequency":
            return Frequency(numbers)  # type: ignore[arg-type]  # it refuses fractions
        case "quantiles":
            return Quantiles(numbers, recipe.step, recipe.low, recipe.high)  # type: ignore[arg-type]  # likewise
    return Suppress()


def builder_of(column: str, given: object) -> Builder:
    """What the caller gave for a column as a builder."""
    if given is None:
        return Automatic()
    if isinstance(given, Builder):
        return given
    raise InputError(
        f'column "{column}": not a hierarchy',
        got=f"{given.__name__} without ()" if callable(given) and hasattr(given, "__name__") else type(given).__name__,
        do="use jali.bands(…), mask(), dates(), suppress() or taxonomy(…), or None for one that jali chooses",
    )


# -- edited by hand --------------------------------------------------------------------------------------------------
#
# A hierarchy is its rows here, as ARX's CSV form has them: one row per value, one text per level, the value first and
# the root last. A node is a text at a level. Every edit gives new rows that are a tree again, and leaves values alone.

Row = tuple[str, ...]
Rows = tuple[Row, ...]


def renamed(rows: Sequence[Row], level: int, node: str, to: str) -> Rows:
    """A node under another name, which no node of its level has yet."""
    _require_inner(rows, level)
    _require_node(rows, level, node)
    if to != node and to in _nodes(rows, level):
        raise HierarchyError("a node of this level has that name already", do="merge the two, or choose another name")
    return _changed(rows, lambda row: row[level] == node, lambda row: (*row[:level], _name(to), *row[level + 1 :]))


def merged(rows: Sequence[Row], level: int, node: str, other: str) -> Rows:
    """Another node's values go to a node of the same level, which keeps its name and its place."""
    _require_inner(rows, level)
    above = _require_node(rows, level, node)[level:]
    _require_node(rows, level, other)
    if node == other:
        raise HierarchyError("a node cannot be merged with itself", do="name another one of the same level")
    return _changed(rows, lambda row: row[level] == other, lambda row: (*row[:level], *above))


def moved(rows: Sequence[Row], level: int, nodes: Collection[str], under: str) -> Rows:
    """Nodes go under another one, a level higher: one that is there, else a new one beside the first one's own.

    A new one splits them off. Where nothing is left under a node, it is gone.
    """
    if not nodes:
        raise HierarchyError("no node was chosen", do="tick those that are to move")
    for node in nodes:
        _require_node(rows, level, node)
    if level + 1 >= len(rows[0]) - 1:
        raise HierarchyError("above this level there is the root alone", do="add a level above it first")
    first = next(row for row in rows if row[level] in nodes)
    known = next((row for row in rows if row[level + 1] == under.strip()), None)
    above = (_name(under), *first[level + 2 :]) if known is None else known[level + 1 :]
    return _changed(rows, lambda row: row[level] in nodes, lambda row: (*row[: level + 1], *above))


def with_level(rows: Sequence[Row], level: int) -> Rows:
    """One level more, above this one and the same as it: a place for nodes to be merged in.

    Above the values, each is a node of its own; the missing value stays what it is.
    """
    if not 0 <= level < len(rows[0]) - 1:
        raise HierarchyError("no level can stand above the root", do="choose a lower one")
    return tuple((*row[: level + 1], row[level], *row[level + 1 :]) for row in rows)


def without_level(rows: Sequence[Row], level: int) -> Rows:
    """The same without a level between the values and the root."""
    _require_inner(rows, level)
    return tuple((*row[:level], *row[level + 1 :]) for row in rows)


def _changed(rows: Sequence[Row], which: Callable[[Row], bool], make: Callable[[Row], Row]) -> Rows:
    return tuple(make(row) if which(row) else row for row in rows)


def _nodes(rows: Sequence[Row], level: int) -> set[str]:
    return {row[level] for row in rows}


def _require_inner(rows: Sequence[Row], level: int) -> None:
    if level == 0:
        raise HierarchyError("the values themselves stay as the table has them", do="edit a level above them")
    if not 0 < level < len(rows[0]) - 1:
        raise HierarchyError("the root stays as it is", do="edit a level below it")


def _require_node(rows: Sequence[Row], level: int, node: str) -> Row:
    """A row with this node at this level."""
    found = next((row for row in rows if row[level] == node), None) if 0 <= level < len(rows[0]) else None
    if found is None:
        raise HierarchyError("there is no such node at this level", do="name one that is there")
    return found


def _name(given: str) -> str:
    text = given.strip()
    if not text or text == ROOT:
        raise HierarchyError("a node needs a name", do=f'write one; "{ROOT}" is the name of the root')
    return text
