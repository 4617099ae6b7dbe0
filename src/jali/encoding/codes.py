"""Codes whose beginnings mean something: prefixes, ICD-10, postal codes; and coordinates as cells of a grid."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from jali.encoding import values as v
from jali.encoding.hierarchy import Builder, Hierarchy, Recipe, Step, by_label, from_steps
from jali.encoding.intervals import Number, band_step, multiples, spelt
from jali.errors import HierarchyError, nearest

Cut = Callable[[str], str]
"""What a code becomes at a level."""

# -- facts about code systems -----------------------------------------------------------------------------------------

_CHAPTERS = (
    "A00 I, C00 II, D50 III, E00 IV, F00 V, G00 VI, H00 VII, H60 VIII, I00 IX, J00 X, K00 XI, L00 XII, M00 XIII, "
    "N00 XIV, O00 XV, P00 XVI, Q00 XVII, R00 XVIII, S00 XIX, U00 XXII, V00 XX, Z00 XXI"
)
"""The chapters of ICD-10 by the category that each begins with (World Health Organization, version 2019)."""
_BLOCKS = (
    "A00-A09 A15-A19 A20-A28 A30-A49 A50-A64 A65-A69 A70-A74 A75-A79 A80-A89 A90-A99 B00-B09 B15-B19 B20-B24 B25-B34 "
    "B35-B49 B50-B64 B65-B83 B85-B89 B90-B94 B95-B98 B99-B99 "
    "C00-C14 C15-C26 C30-C39 C40-C41 C43-C44 C45-C49 C50-C50 C51-C58 C60-C63 C64-C68 C69-C72 C73-C75 C76-C80 C81-C96 "
    "C97-C97 D00-D09 D10-D36 D37-D48 D50-D53 D55-D59 D60-D64 D65-D69 D70-D77 D80-D89 "
    "E00-E07 E10-E14 E15-E16 E20-E35 E40-E46 E50-E64 E65-E68 E70-E90 "
    "F00-F09 F10-F19 F20-F29 F30-F39 F40-F48 F50-F59 F60-F69 F70-F79 F80-F89 F90-F98 F99-F99 "
    "G00-G09 G10-G14 G20-G26 G30-G32 G35-G37 G40-G47 G50-G59 G60-G64 G70-G73 G80-G83 G90-G99 "
    "H00-H06 H10-H13 H15-H22 H25-H28 H30-H36 H40-H42 H43-H45 H46-H48 H49-H52 H53-H54 H55-H59 "
    "H60-H62 H65-H75 H80-H83 H90-H95 I00-I02 I05-I09 I10-I15 I20-I25 I26-I28 I30-I52 I60-I69 I70-I79 I80-I89 I95-I99 "
    "J00-J06 J09-J18 J20-J22 J30-J39 J40-J47 J60-J70 J80-J84 J85-J86 J90-J94 J95-J99 "
    "K00-K14 K20-K31 K35-K38 K40-K46 K50-K52 K55-K64 K65-K67 K70-K77 K80-K87 K90-K93 "
    "L00-L08 L10-L14 L20-L30 L40-L45 L50-L54 L55-L59 L60-L75 L80-L99 M00-M25 M30-M36 M40-M54 M60-M79 M80-M94 M95-M99 "
    "N00-N08 N10-N16 N17-N19 N20-N23 N25-N29 N30-N39 N40-N51 N60-N64 N70-N77 N80-N98 N99-N99 "
    "O00-O08 O10-O16 O20-O29 O30-O48 O60-O75 O80-O84 O85-O92 O94-O99 "
    "P00-P04 P05-P08 P10-P15 P20-P29 P35-P39 P50-P61 P70-P74 P75-P78 P80-P83 P90-P96 "
    "Q00-Q07 Q10-Q18 Q20-Q28 Q30-Q34 Q35-Q37 Q38-Q45 Q50-Q56 Q60-Q64 Q65-Q79 Q80-Q89 Q90-Q99 "
    "R00-R09 R10-R19 R20-R23 R25-R29 R30-R39 R40-R46 R47-R49 R50-R69 R70-R79 R80-R82 R83-R89 R90-R94 R95-R99 "
    "S00-S09 S10-S19 S20-S29 S30-S39 S40-S49 S50-S59 S60-S69 S70-S79 S80-S89 S90-S99 T00-T07 T08-T14 T15-T19 T20-T32 "
    "T33-T35 T36-T50 T51-T65 T66-T78 T79-T79 T80-T88 T90-T98 U00-U49 U82-U85 "
    "V01-V09 V10-V19 V20-V29 V30-V39 V40-V49 V50-V59 V60-V69 V70-V79 V80-V89 V90-V94 V95-V97 V98-V99 "
    "W00-W19 W20-W49 W50-W64 W65-W74 W75-W84 W85-W99 X00-X09 X10-X19 X20-X29 X30-X39 X40-X49 X50-X57 X58-X59 X60-X84 "
    "X85-Y09 Y10-Y34 Y35-Y36 Y40-Y59 Y60-Y69 Y70-Y82 Y83-Y84 Y85-Y89 Y90-Y98 "
    "Z00-Z13 Z20-Z29 Z30-Z39 Z40-Z54 Z55-Z65 Z70-Z76 Z80-Z99"
)
"""The blocks of ICD-10, outermost where blocks are nested; where editions differ, the one that covers more."""
_STARTS = [chapter.split()[0] for chapter in _CHAPTERS.split(", ")]
_NUMERALS = [chapter.split()[1] for chapter in _CHAPTERS.split(", ")]
_FIRSTS = [block.split("-")[0] for block in _BLOCKS.split()]
_LASTS = [block.split("-")[1] for block in _BLOCKS.split()]


def icd_category(code: str) -> str:
    """The three characters of a code of ICD-10.

    >>> icd_category("I11.0"), icd_block("I11.0"), icd_chapter("I11.0")
    ('I11', 'I10–I15', 'IX')
    """
    return code[:3].upper()


def icd_block(code: str) -> str:
    """The block of a code; its category where it lies in none, as codes of national editions may."""
    category = icd_category(code)
    at = bisect_right(_FIRSTS, category) - 1
    if at < 0 or category > _LASTS[at]:
        return category
    return category if _FIRSTS[at] == _LASTS[at] else f"{_FIRSTS[at]}–{_LASTS[at]}"


def icd_chapter(code: str) -> str:
    """The chapter of a code."""
    return _NUMERALS[bisect_right(_STARTS, icd_category(code)) - 1]


_SECTORS = {"31": "31-33", "32": "31-33", "33": "31-33", "44": "44-45", "45": "44-45", "48": "48-49", "49": "48-49"}
"""The sectors of NAICS that have several codes of two digits."""


@dataclass(frozen=True)
class System:
    """A code system: how its codes are written, and what they become at each level."""

    pattern: re.Pattern[str]
    cuts: tuple[int | Cut, ...]  # a number is the length of a beginning
    example: str
    digits: int = 0  # where codes are whole numbers with this number of digits, leading zeros included

    def steps(self, end: str = "") -> list[Cut]:
        """What codes become at each level; `end` marks beginnings of codes."""
        return [_beginning(cut, end) if isinstance(cut, int) else _marked(cut, end) for cut in self.cuts]


def _beginning(length: int, end: str) -> Cut:
    return lambda code: code if len(code) < length else code[:length] + end


def _marked(cut: Cut, end: str) -> Cut:
    def marked(code: str) -> str:
        label = cut(code)
        return label + end if code.upper().startswith(label) else label

    return marked


def _system(pattern: str, *cuts: int | Cut, example: str, digits: int = 0) -> System:
    return System(re.compile(pattern, re.IGNORECASE), cuts, example, digits)


SYSTEMS: dict[str, System] = {
    "icd-10": _system(r"[a-z][0-9][0-9a-z](\.?[0-9a-z]{1,4})?", icd_category, icd_block, icd_chapter, example="I11.0"),
    "atc": _system(r"[a-z]([0-9]{2}([a-z]([a-z]([0-9]{2})?)?)?)?", 5, 4, 3, 1, example="C09AA05"),
    "nuts": _system(r"[a-z]{2}[0-9a-z]{0,3}", 4, 3, 2, example="DE212"),
    "naics": _system(r"[0-9]{2,6}", 5, 4, 3, lambda code: _SECTORS.get(code[:2], code[:2]), example="334111"),
}
"""What `prefix` knows by name."""


def _hidden(kept: int) -> Cut:
    return lambda code: code[:kept] + "*" * (len(code) - kept)


def _digits(length: int, *kept: int, example: str) -> System:
    """Postal codes of digits alone: what is hidden is shown as stars, as masks do."""
    return _system(rf"[0-9]{{{length}}}", *map(_hidden, kept), example=example, digits=length)


def _outward(code: str) -> str:
    """The first part of a British postcode: all but the last three characters."""
    return re.sub(r"\s", "", code)[:-3].upper()


COUNTRIES: dict[str, System] = {
    "AT": _digits(4, 2, 1, example="1010"),
    "CA": _system(r"[a-z][0-9][a-z] ?[0-9][a-z][0-9]", 3, 1, example="K1A 0B1"),
    "CH": _digits(4, 2, 1, example="8001"),
    "DE": _digits(5, 3, 2, 1, example="10115"),
    "ES": _digits(5, 3, 2, example="28013"),
    "FR": _digits(5, 3, 2, example="75001"),
    "NL": _system(r"[0-9]{4} ?[a-z]{2}", 4, 2, example="1012 AB"),
    "UK": _system(
        r"[a-z]{1,2}[0-9][0-9a-z]? ?[0-9][a-z]{2}",
        lambda code: f"{_outward(code)} {code.strip()[-3]}",
        _outward,
        lambda code: re.match(r"[A-Z]+", _outward(code))[0],  # type: ignore[index]
        example="SW1A 1AA",
    ),
    "US": _system(r"[0-9]{5}(-[0-9]{4})?", 5, 3, 1, example="02138", digits=5),
}
"""Postal codes: AT and CH region and route, CA forward sortation area and district, DE region and zone, ES and FR
province and department, NL district and region, UK sector, district and area, US sectional centre and group of states.
"""

# -- builders -----------------------------------------------------------------------------------------------------


def _checked(column: str, occurring: pa.Array, name: str, system: System) -> None:
    """Raise HierarchyError for a value that is no code of the system."""
    for text in occurring.drop_null().to_pylist():
        if system.pattern.fullmatch(text) is None:
            raise HierarchyError(
                f'column "{column}" has a value that is no {name} code',
                do=f"correct it (codes look like {system.example}), or choose another hierarchy",
                value=text,
            )


def _require_levels(name: str, levels: tuple[int, ...], system: System) -> None:
    """Raise HierarchyError where these are no levels of a system, in their order."""
    known = range(1, len(system.cuts) + 1)
    if list(levels) != sorted(set(levels)) or any(isinstance(n, bool) or n not in known for n in levels):
        raise HierarchyError(f"{name} has the levels 1 to {len(known)}", got=str(levels), do="name some, each once")


def _kept(cuts: list[Cut], levels: tuple[int, ...]) -> list[Cut]:
    """The cuts of these levels; of all where none are named."""
    return [cuts[level - 1] for level in levels if level <= len(cuts)] if levels else cuts


def _level(values: pa.Array, cut: Cut) -> Step:
    """The level that a cut makes; the missing value stays itself."""
    return by_label(pa.array([None if text is None else cut(text) for text in values.to_pylist()], pa.string()))


@dataclass(frozen=True)
class Prefix(Builder):
    """Codes by their beginnings: of given lengths, up to a separator, or as a code system has it."""

    reads_text: ClassVar[bool] = True

    lengths: tuple[int, ...] = ()  # the longest first
    separator: str | None = None
    system: str | None = None
    levels: tuple[int, ...] = ()  # of the system those that are kept; none: all

    def __post_init__(self) -> None:
        ways = [bool(self.lengths), self.separator is not None, self.system is not None]
        if sum(ways) != 1:
            do = 'e.g. prefix(3, 1), prefix(separator=".") or prefix("icd-10")'
            raise HierarchyError("prefix() needs lengths, a separator or the name of a code system", do=do)
        if any(isinstance(n, bool) or not isinstance(n, int) or n < 1 for n in self.lengths):
            raise HierarchyError("the lengths of prefix() must be whole numbers of at least 1", got=str(self.lengths))
        if list(self.lengths) != sorted(set(self.lengths), reverse=True):
            do = "give the longest first, each once"
            raise HierarchyError("the lengths of prefix() must become shorter", got=str(self.lengths), do=do)
        mark = self.separator
        if mark is not None and (not isinstance(mark, str) or len(mark) != 1 or mark.isalnum() or mark in ',=()*" '):
            raise HierarchyError("the separator of prefix() must be one sign", got=repr(mark), do='e.g. "." or "-"')
        if self.system is not None and self.system not in SYSTEMS:
            raise HierarchyError(f'no code system "{self.system}"', do=nearest(self.system, SYSTEMS))
        if self.system is not None:
            _require_levels(f'prefix("{self.system}")', self.levels, SYSTEMS[self.system])

    @property
    def recipe(self) -> Recipe:
        """Its arguments."""
        words = () if self.system is None else (self.system,)
        numbers = tuple(map(Fraction, self.lengths or self.levels))
        return Recipe("prefix", numbers, words=words, separator=self.separator)

    @classmethod
    def of(cls, recipe: Recipe) -> Prefix:
        """The builder of this recipe."""
        numbers = tuple(map(int, recipe.widths))
        return cls((), None, recipe.words[0], numbers) if recipe.words else cls(numbers, recipe.separator)

    def typed(self, column: str, present: pa.Array) -> pa.Array:
        """The values as text."""
        return v.texts(present)

    def domain(self, column: str, present: pa.Array) -> tuple[pa.Array, bool]:
        """The codes that occur, which must be codes of the system where one is named."""
        occurring = v.ordered(present)
        if self.system is not None:
            _checked(column, occurring, self.system, SYSTEMS[self.system])
        return occurring, False

    def build(self, column: str, values: pa.Array, *, declared: bool = False) -> Hierarchy:
        """A level per length, separator or step of the system, then the root."""
        texts = v.texts(values)
        steps = [_level(texts, cut) for cut in self._cuts(texts, marked=False)]
        if _ambiguous(texts, steps):
            steps = [_level(texts, cut) for cut in self._cuts(texts, marked=True)]
        return from_steps(column, texts, steps, declared=declared, recipe=self.recipe)

    def _cuts(self, texts: pa.Array, *, marked: bool) -> Sequence[Cut]:
        """What codes become at each level; marked, a beginning ends in … and is never read as a whole code."""
        end = "…" if marked else ""
        if self.system is not None:
            return _kept(SYSTEMS[self.system].steps(end), self.levels)
        if self.separator is not None:
            mark = self.separator
            deepest = max((text.count(mark) for text in texts.drop_null().to_pylist()), default=0)
            return [_up_to(mark, kept, end) for kept in range(deepest, 0, -1)]
        return [_beginning(length, end) for length in self.lengths]


def _up_to(mark: str, kept: int, end: str) -> Cut:
    def cut(code: str) -> str:
        parts = code.split(mark)
        return code if len(parts) < kept else mark.join(parts[:kept]) + end

    return cut


def _ambiguous(texts: pa.Array, steps: Sequence[Step]) -> bool:
    """Whether a label stands for different values at two levels: I11 for itself, and for I11.0 too."""
    codes = texts.to_pylist()
    seen: dict[str | None, frozenset[int]] = {text: frozenset([place]) for place, text in enumerate(codes)}
    for nodes, level in steps:
        members: dict[int, set[int]] = {}
        for place, node in enumerate(nodes.tolist()):
            members.setdefault(node, set()).add(place)
        for node, label in enumerate(level.texts()):
            if seen.setdefault(label, frozenset(members[node])) != members[node]:
                return True
    return False


@dataclass(frozen=True)
class Zip(Builder):
    """Postal codes by the regions that their beginnings stand for."""

    reads_text: ClassVar[bool] = True

    country: str
    levels: tuple[int, ...] = ()  # those that are kept; none: all

    def __post_init__(self) -> None:
        if not isinstance(self.country, str) or self.country not in COUNTRIES:
            do = f"known: {', '.join(COUNTRIES)}; for others prefix(…) or mask()"
            raise HierarchyError("zip() needs the code of a country that jali knows", got=repr(self.country), do=do)
        _require_levels(f'zip("{self.country}")', self.levels, COUNTRIES[self.country])

    @property
    def recipe(self) -> Recipe:
        """Its arguments."""
        return Recipe("zip", tuple(map(Fraction, self.levels)), words=(self.country,))

    def typed(self, column: str, present: pa.Array) -> pa.Array:
        """The values as text; whole numbers get the leading zeros that they lost."""
        texts, digits = v.texts(present), COUNTRIES[self.country].digits
        if digits and v.kind_of(present) == "number" and v.is_whole(present):
            return pc.utf8_lpad(texts, digits, "0")
        return texts

    def domain(self, column: str, present: pa.Array) -> tuple[pa.Array, bool]:
        """The codes that occur, each of which must look like one of the country."""
        occurring = v.ordered(present)
        _checked(column, occurring, f"postal ({self.country})", COUNTRIES[self.country])
        return occurring, False

    def build(self, column: str, values: pa.Array, *, declared: bool = False) -> Hierarchy:
        """The levels of the country, then the root."""
        texts = v.texts(values)
        cuts = COUNTRIES[self.country].steps()
        if self.country == "US" and not bool(pc.any(pc.match_substring(texts, "-")).as_py()):
            cuts = [_hidden(3), _hidden(1)]  # without ZIP+4 all codes have five digits
        steps = [_level(texts, cut) for cut in _kept(cuts, self.levels)]
        return from_steps(column, texts, steps, declared=declared, recipe=self.recipe)


_PAIR = re.compile(r"\s*(-?[0-9]+(?:\.[0-9]+)?)\s*[,; ]\s*(-?[0-9]+(?:\.[0-9]+)?)\s*")
GRID: tuple[Number, ...] = (0.01, 0.1, 1, 10)
"""Degrees: about 1, 11, 111 and 1,113 km from south to north."""


@dataclass(frozen=True)
class Grid(Builder):
    """Coordinates into the cells of a grid: one number a value, or a text with two ("52.52, 13.40")."""

    widths: tuple[Number, ...] = GRID

    def __post_init__(self) -> None:
        multiples("grid", self.widths, "0.01, 0.1, 1")

    def typed(self, column: str, present: pa.Array) -> pa.Array:
        """The values as numbers, or as texts where they are pairs."""
        numbers = spelt(present, pa.float64())
        if v.kind_of(numbers) in ("number", "text"):
            return numbers
        raise HierarchyError(
            f'grid() of column "{column}" needs coordinates',
            got=f"{v.kind_of(numbers)} values",
            do='write them as numbers, or as pairs: "52.52, 13.40"',
        )

    def domain(self, column: str, present: pa.Array) -> tuple[pa.Array, bool]:
        """The values that occur, each of which must be a number or a pair of them."""
        occurring = v.ordered(present)
        if v.kind_of(occurring) == "text":
            for text in occurring.drop_null().to_pylist():
                if _PAIR.fullmatch(text) is None:
                    do = 'write pairs as "52.52, 13.40", or choose another hierarchy'
                    raise HierarchyError(f'column "{column}" has a value that is no coordinate', do=do, value=text)
        return occurring, False

    def build(self, column: str, values: pa.Array, *, declared: bool = False) -> Hierarchy:
        """One level per width, then the root; cells hold their lower edges and not their upper ones."""
        recipe = Recipe("grid", multiples("grid", self.widths, ""))
        sides = [Recipe("bands", (width,)) for width in recipe.widths]
        if v.kind_of(values) == "text":
            steps = [self._cells(column, values, side) for side in sides]
        else:
            steps = [band_step(column, values, side, side.widths[0], whole=False) for side in sides]
        return from_steps(column, v.texts(values), steps, declared=declared, recipe=recipe, whole=False)

    @staticmethod
    def _cells(column: str, values: pa.Array, side: Recipe) -> Step:
        """The cells of pairs: a band of the first number and one of the second."""
        pairs = [None if text is None else _PAIR.fullmatch(text) for text in values.to_pylist()]
        names = []
        for part in (1, 2):
            numbers = pa.array([None if pair is None else float(pair[part]) for pair in pairs], pa.float64())
            nodes, level = band_step(column, numbers, side, side.widths[0], whole=False)
            names.append(level.labels.take(pa.array(nodes)))
        return by_label(pc.binary_join_element_wise(*names, " × "))


def prefix(*beginnings: int | str, separator: str | None = None) -> Builder:
    """Codes by their beginnings: I11.0, I11, I10–I15, IX, `*`.

    `beginnings` are lengths, the longest first, or the name of a code system ("icd-10", "atc", "nuts" or "naics") and,
    where not all are wanted, which of its levels. `separator` cuts at each of these signs instead: 1.2.3, 1.2, 1, `*`.
    """
    numbers: Any = beginnings  # it refuses texts
    if beginnings and isinstance(beginnings[0], str):
        return Prefix((), separator, beginnings[0], numbers[1:])
    return Prefix(numbers, separator)


def zip(country: str, *levels: int) -> Builder:
    """Postal codes of a country ("AT", "CA", "CH", "DE", "ES", "FR", "NL", "UK" or "US") by their regions.

    `levels` are those of the country that are wanted, all by default.
    """
    return Zip("UK" if country == "GB" else country, levels)


def grid(*widths: Number) -> Builder:
    """Coordinates into the cells of a grid, numbers or pairs such as "52.52, 13.40"; by default 0.01, 0.1, 1 and 10."""
    return Grid(widths or GRID)
